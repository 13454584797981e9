"""Label inference that leaves the training alone: which label did the model learn from."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from numpy.typing import ArrayLike

from auditkit import _check
from auditkit.bounds.games import OneRunGame
from auditkit.bounds.one_run import one_run_fdp
from auditkit.bounds.result import Bound
from auditkit.bounds.scores import audit
from auditkit.bounds.tradeoff import TradeOff
from auditkit.evidence import Scores
from auditkit.thresholds import Fixed, Threshold

ONE_PERCENT = Fixed(guesses=0.01)
SYMMETRIC = (
    "The trade-off curve bounds both directions of the test; for one direction only, Theorem 5 of "
    "OBS is false."
)


def observational_label(
    scores: ArrayLike,
    chosen: ArrayLike,
    *,
    placebo_scores: ArrayLike | None = None,
    placebo_chosen: ArrayLike | None = None,
    tau: float = 0.0,
    family: str | Callable[[float], TradeOff] = "gaussian",
    delta: float = 1e-5,
    threshold: Threshold = ONE_PERCENT,
    confidence: float = 0.95,
) -> Bound:
    """Bound the ε of label privacy from an observational label inference game.

    For each example the attacker is shown the label it was trained with or one drawn from a
    reference model, by a fair coin, and scores which it is.

    A reference model that differs from the true law of the labels can be told from it without any
    help from the audited model, and the game takes that for leakage. A placebo shows how much: the
    same game on examples that the audited model was not trained on, where nothing can leak.

    Parameters
    ----------
    scores : array of shape (examples,)
        Finite; above 0 says "training label", below 0 "generated label". Guesses are made on the
        scores largest in size, as their sign says. A score of 0 within that number makes no guess,
        and counts like a wrong one, since the theorem needs the number fixed in advance.
    chosen : array of shape (examples,)
        The coin b of each example: 0 where the training label was shown, 1 where the generated one.
    placebo_scores, placebo_chosen : array, optional
        The same game on examples that the model was not trained on; as many examples as there are.
    tau : float
        Largest total variation distance between the law of the true and that of the generated
        label, given the features. It enters as printed in OBS, Theorem 5: f̄⁻¹(y) - τ.
    family : str or callable
        As in `one_run_fdp`.
    delta : float
        The δ at which ε is stated.
    threshold : Fixed, Bonferroni, Split, MultiSplit or Sweep
        How the guesses are chosen, for the placebo too; by default `Fixed(guesses=0.01)`.
    confidence : float
        Confidence of the bound.

    Returns
    -------
    Bound
        A lower bound, on the assumption that the generated labels lie within τ of the true ones,
        where a placebo of at least as many examples was played and its own bound is 0. A silent
        placebo does not prove the assumption. Where its bound is above 0, the assumption is seen to
        fail, and the result is an estimate. Without a placebo nobody knows, and it is an estimate
        too. `details["placebo_epsilon"]` is the placebo's own bound, or None.

    References
    ----------
    OBS, Algorithms 2 and 3, Theorem 5 and Section 6.2. The placebo is not in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> chosen, placebo_chosen = rng.integers(2, size=(2, 10000))
    >>> scores = rng.normal(np.where(chosen == 0, 1.0, -1.0))
    >>> bound = observational_label(
    ...     scores, chosen, placebo_scores=rng.normal(size=10000), placebo_chosen=placebo_chosen
    ... )
    >>> print(f"{bound.epsilon:.2f}", bound.details["placebo_epsilon"], bound.claim)
    4.34 0.0 lower bound
    """
    if (placebo_scores is None) != (placebo_chosen is None):
        raise ValueError(
            "placebo_scores and placebo_chosen must be given together, got "
            f"{'placebo_scores' if placebo_chosen is None else 'placebo_chosen'} only"
        )
    theorem = partial(one_run_fdp, family=family, delta=delta, tau=tau)

    def play(score: ArrayLike, coin: ArrayLike, prefix: str) -> Bound:
        game = OneRunGame(theorem, by_size=True, truth=f"{prefix}chosen")
        return audit(game, _game_scores(score, coin, prefix), threshold, confidence)

    bound = play(scores, chosen, "")
    placebo = None
    if placebo_scores is not None and placebo_chosen is not None:
        placebo = play(placebo_scores, placebo_chosen, "placebo_")
    heard = (
        placebo is not None
        and placebo.epsilon == 0.0
        and placebo.details["examples"] >= bound.details["examples"]
    )
    return replace(
        bound,
        claim=bound.claim if heard else "estimate",
        adjacency="label",
        method=f"observational label inference, {bound.method}",
        assumptions=(*bound.assumptions, SYMMETRIC, *_on_the_reference(tau, placebo, heard)),
        details={
            **bound.details,
            "tau": float(tau),
            "placebo_epsilon": None if placebo is None else placebo.epsilon,
            "placebo_examples": None if placebo is None else placebo.details["examples"],
        },
    )


def _game_scores(scores: ArrayLike, chosen: ArrayLike, prefix: str) -> Scores:
    """Return a game's scores, where showing the training label is what membership is elsewhere."""
    values = _check.numbers(f"{prefix}scores", scores, ndim=1)
    coins = _check.codes(f"{prefix}chosen", chosen, (0, 1))
    _check.same_length(**{f"{prefix}scores": values, f"{prefix}chosen": coins})
    return Scores(values, coins == 0)


def _on_the_reference(tau: float, placebo: Bound | None, heard: bool) -> list[str]:
    """Return what the result asks of the reference model, and what the placebo says of that."""
    exact = "The generated labels follow the law of the true ones, given the features (τ = 0)."
    # above 0 the theorem itself says how far they may lie apart, and what is open there
    asked = [exact] if tau == 0.0 else []
    if placebo is None:
        return [*asked, "No placebo was played that could speak against the reference model."]
    if placebo.epsilon > 0.0:
        return [
            *asked,
            "The placebo speaks against the reference model: on examples that the model was not "
            f"trained on the same game gives ε = {placebo.epsilon:.3f}.",
        ]
    if not heard:
        return [
            *asked,
            "The placebo has fewer examples than the audit and may miss a shift.",
        ]
    return [
        *asked,
        "The placebo's own bound is 0, which does not speak against the reference model.",
    ]
