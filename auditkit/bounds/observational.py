"""Label inference that leaves the training alone: which label is the example's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, betaln, rel_entr

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.bounds.games import OneRunGame, plausible_count
from auditkit.bounds.one_run_fdp import one_run_fdp
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
ONCE = (
    "That the shift enters once is too little in general: for one example, at a level above 1/2, "
    "Theorem 5 is exceeded. No case is known at levels in use."
)
CALIBRATED = (
    "τ is set from the placebo, which is not in the paper: a model that learned nothing exceeds 0 "
    "at most as often as promised if the labels are shifted where it guesses as much as they are "
    "where it guesses in the placebo.",
    "The shift where the audited model guesses may be another one than on the placebo.",
    "That such a τ is enough for a model that learned something is simulated, not proved.",
)


def observational_label(
    scores: ArrayLike,
    chosen: ArrayLike,
    *,
    placebo_scores: ArrayLike | None = None,
    placebo_chosen: ArrayLike | None = None,
    tau: float | Literal["placebo"] = 0.0,
    family: Literal["gaussian", "pure"] | Callable[[float], TradeOff] = "gaussian",
    delta: float = 1e-5,
    threshold: Threshold = ONE_PERCENT,
    confidence: float = 0.95,
) -> Bound[float]:
    """Bound the ε of label privacy from an observational label inference game.

    For each example the attacker is shown its true label or one drawn from a reference model, by a
    fair coin, and scores which it is. The true label is the one before the label mechanism, never
    the one that it released: `label_game` shows what comes of that.

    A reference model that differs from the true law of the labels can be told from it without any
    help from the audited model, and the game takes that for leakage. A placebo shows how much: the
    same game on examples that the audited model was not trained on, where nothing can leak.

    Parameters
    ----------
    scores : array of shape (examples,)
        Finite; above 0 says "true label", below 0 "generated label". Guesses are made on the
        scores largest in size, as their sign says. A score of 0 within that number makes no guess,
        and counts like a wrong one, since the theorem needs the number fixed in advance.
    chosen : array of shape (examples,)
        The coin b of each example: 0 where the true label was shown, 1 where the generated one.
    placebo_scores, placebo_chosen : array, optional
        The same game on examples that the model was not trained on; as many examples as there are,
        since the fewer there are, the higher is the limit that they set.
    tau : float or "placebo"
        Largest total variation distance between the law of the true and that of the generated
        label, given the features. It enters as printed in OBS, Theorem 5: f̄⁻¹(y) - τ. With
        "placebo", which is not in the paper, `tau_from_placebo` sets it at half of the level and
        the audit runs at the other half. That takes a placebo, and a `Fixed` threshold.
    family : str or callable
        As in `one_run_fdp`.
    delta : float
        The δ at which ε is stated; above 0 with the Gaussian family, which has no finite ε at 0.
    threshold : Fixed, Bonferroni, Split, MultiSplit or Sweep
        How the guesses are chosen, for the placebo too; by default `Fixed(guesses=0.01)`.
    confidence : float
        Confidence of the bound.

    Returns
    -------
    Bound
        A lower bound, on the assumption that the generated labels lie within τ of the true ones,
        where it exceeds what a wrong reference model may show by itself, as far as the placebo can
        tell: `details["placebo_limit"]`. Below that limit it is an estimate, without a placebo it
        is one too, and with ``tau="placebo"`` in any case. `details["tau_from"]` says where τ came
        from, "given" or "placebo"; `details["placebo_epsilon"]` is the placebo's own bound (at
        τ = 0 where τ came from it), or None.

    Notes
    -----
    A silent placebo proves little: with 100 guesses one whose true accuracy is .55 shows nothing in
    four of five cases. So the placebo gives an upper limit. Its accuracy has one at half the level
    (Clopper and Pearson's); a count of guesses of that accuracy has one at the other half; what
    that count would seem to prove is the limit. Where a model has learned nothing, and guesses in
    the audit as it does in the placebo, the result exceeds the limit with chance
    ``1 - confidence`` at most: either the first limit fails or the second. Of several rules each
    has a placebo that guesses by it, at the same share of the level. A leak on top of a wrong
    reference model is not covered: what exceeds the limit holds both, and the assumption says so.

    References
    ----------
    OBS, Algorithms 2 and 3, Theorem 5 and Section 6.2. The placebo is not in the paper, nor is a τ
    that comes from it.

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
    audited, unaudited = _game_scores(scores, chosen, ""), None
    if placebo_scores is not None and placebo_chosen is not None:
        unaudited = _game_scores(placebo_scores, placebo_chosen, "placebo_")

    def play(evidence: Scores, tau: float, confidence: float, **how: Any) -> Bound:
        theorem = partial(one_run_fdp, family=family, delta=delta, tau=tau)
        game = OneRunGame(theorem, by_size=True, **how)
        return audit(game, evidence, threshold, confidence)

    if isinstance(tau, str):
        rule, unaudited = _calibrating(tau, threshold, audited, unaudited)
        placebo = play(unaudited, 0.0, confidence, truth="placebo_chosen")
        shift = tau_from_placebo(
            placebo.details["correct"],
            placebo.details["guesses"],
            audit_guesses=rule.number(len(audited)),
            audit_examples=len(audited),
            level=1.0 - confidence,
        )
        bound = play(audited, float(shift), (1.0 + confidence) / 2.0, truth="chosen")
        bound = replace(bound, claim="estimate", confidence=confidence)
        # the placebo's, since what is said of a τ that is given does not hold of this one
        stated = (*placebo.assumptions, SYMMETRIC, *CALIBRATED)
        return _labelled(bound, stated, placebo, tau)
    bound = play(audited, tau, confidence, truth="chosen", placebo=unaudited)
    stated = (*bound.assumptions, SYMMETRIC, *_on_the_reference(tau, bound))
    if unaudited is None:
        return _labelled(replace(bound, claim="estimate"), stated, None, "given")
    heard = play(unaudited, tau, confidence, truth="placebo_chosen")
    return _labelled(bound, stated, heard, "given")


def tau_from_placebo(
    correct: ArrayLike,
    guesses: ArrayLike,
    *,
    audit_guesses: ArrayLike,
    audit_examples: ArrayLike,
    level: float,
) -> Floats:
    """Return the smallest τ at which no count that a placebo makes plausible proves anything.

    The placebo's accuracy has an upper confidence limit (Clopper and Pearson's, at half the level).
    Guesses of that accuracy have an upper quantile of the audit's count (at half the level, too).
    τ is the smallest shift at which Algorithm 3, at half the level, finds nothing in that count and
    one more. Counts are whole: without the one more a small leak could move the quantile on to a
    count that is not paid for.

    Parameters
    ----------
    correct, guesses : array_like of int
        How many guesses were right in the placebo, and how many were made.
    audit_guesses, audit_examples : array_like of int
        How many guesses the audit makes, and how many coins it has. Arrays broadcast.
    level : float
        The level of the whole audit, one minus its confidence.

    Returns
    -------
    ndarray
        One τ for each count, for an audit at half the level.

    Notes
    -----
    Where a model learned nothing and guesses as accurately as in the placebo, the audit exceeds 0
    only if the limit lies below that accuracy or the count above the quantile, hence at most as
    often as `level` says. That is exact where each guess is as likely to be right as the others.
    Where the first ones are better, counts vary a little more, but the two halves leave room: in
    simulations 0 is exceeded in less than 1 of 100 runs at a level of 5%.

    This τ is not a total variation distance, which would be far larger. At ε = 0 the theorem allows
    r guesses among m examples a mean accuracy of 1/2 + τ m / (2 r), so that an accuracy a speaks of
    a distance of (2 a - 1) r / m. But the recursion starts from an event whose chance is the level,
    and adds the whole of τ to it, where a shift adds no more than the level's share. It finds
    nothing unless τ < level (2 c - r) / m. With the distance itself for τ an audit of 6,000 guesses
    finds nothing at 95%, were all of them right and the placebo silent.

    References
    ----------
    Not in OBS. Its Algorithm 3 at ε = 0 is a geometric series, solved for τ here.

    Examples
    --------
    >>> tau = tau_from_placebo(1550, 3000, audit_guesses=3000, audit_examples=10_000, level=0.05)
    >>> print(f"{tau:.6f}")
    0.000795
    """
    right, made, r, m = _check.one_shape(
        correct=_check.counts("correct", correct),
        guesses=_check.counts("guesses", guesses),
        audit_guesses=_check.counts("audit_guesses", audit_guesses),
        audit_examples=_check.counts("audit_examples", audit_examples),
    )
    _check.at_most("correct", right, "guesses", made)
    _check.at_most("audit_guesses", r, "audit_examples", m)
    for name, count in (("guesses", made), ("audit_guesses", r)):
        if (count < 1).any():
            raise ValueError(f"{name} must be at least 1, got {count.min()}")
    level = _check.fraction("level", level)
    silenced = np.minimum(plausible_count(right, made, r, level=level) + 1, r)
    return np.asarray(_least_tau(silenced, r, level / 2.0) / m)


def level_under_divergence(divergence: float, *, level: float = 0.05) -> float:
    """Return the level at which an audit that takes the generated labels for true may be stated.

    Where generated labels follow another law than true ones, whatever the game shows is more
    likely than it should be. How much more, their divergence says: an audit at the returned level,
    with τ = 0, errs no more often than `level` in the shifted game.

    Parameters
    ----------
    divergence : float
        Half the sum, over all examples, of the Kullback-Leibler divergence of the law that
        generates the example's label from the law of its true label, in nats. Half, since a fair
        coin decides which of the two is shown.
    level : float
        How often the audit may err.

    Returns
    -------
    float
        At most `level`, and 0 where it is too small for a double.

    Notes
    -----
    Two games differ in the generated labels only: in one they follow the reference model, in the
    other the law of the true ones. Given the coins, what is shown diverges by the sum over the
    examples whose generated label is shown, hence by `divergence` on average. No event tells the
    two apart by more (data processing): if it has chance p in the first and q in the second,
    p log(p / q) + (1 - p) log((1 - p) / (1 - q)) is at most the divergence. q is the level
    at which Theorem 5 holds without a shift.

    A total variation of τ for each of m examples costs as much as τ m guesses. A divergence goes
    with the square of τ, and costs level instead of guesses. The privacy of the mechanism is that
    for a simulator with the true law.

    References
    ----------
    OBS, Section 5, suggests the divergence without a theorem; this one is ours.

    Examples
    --------
    >>> print(f"{level_under_divergence(0.1):.5f}")
    0.00269
    """
    target = _check.scalar("divergence", divergence, least=0.0)
    level = _check.fraction("level", level)
    if target == 0.0:
        return level

    def excess(log_level: float) -> float:
        kept = np.exp(log_level)
        return float(rel_entr(level, kept) + rel_entr(1.0 - level, 1.0 - kept)) - target

    least = np.log(np.finfo(float).tiny)
    return 0.0 if excess(least) < 0.0 else float(np.exp(brentq(excess, least, np.log(level))))


def _least_tau(c: Ints, r: Ints, level: float) -> Floats:
    """Return the smallest τ m at which the recursion does not reject ε = 0 for c of r guesses.

    Its rises form a geometric series there. Their sum falls short of r / m exactly if the first
    one, level (2 c - r) / m - τ, is below (1 - level) c / m times the chance of c of r fair guesses
    over that of fewer.
    """
    chance = np.exp(-np.log1p(r) - betaln(r - c + 1.0, c + 1.0) - r * np.log(2.0))
    fewer = betainc(r - c + 1.0, c, 0.5)
    # a hair below, so that rounding in the recursion cannot take it for reached
    first = (1.0 - 1e-9) * (1.0 - level) * c * chance / fewer
    least: Floats = (1.0 + 1e-12) * level * (2 * c - r) - first
    return np.maximum(least, 0.0)


def _calibrating(
    tau: str, threshold: Threshold, audited: Scores, unaudited: Scores | None
) -> tuple[Fixed, Scores]:
    """Return the rule and the placebo's scores if τ can be taken from them."""
    if tau != "placebo":
        raise TypeError(f"tau must be one number or 'placebo', got {tau!r}")
    if unaudited is None:
        raise ValueError("tau='placebo' takes placebo_scores and placebo_chosen, got none")
    if not isinstance(threshold, Fixed):
        raise ValueError(
            "threshold must be Fixed with tau='placebo', which compares two games of the same "
            f"rule, got {threshold!r}"
        )
    if isinstance(threshold.guesses, int | np.integer) and len(audited) != len(unaudited):
        raise ValueError(
            "threshold must guess on a share with tau='placebo' and a placebo of another size, "
            f"got {threshold!r} for {len(audited)} and {len(unaudited)} examples"
        )
    return threshold, unaudited


def _labelled(bound: Bound, stated: tuple[str, ...], placebo: Bound | None, tau_from: str) -> Bound:
    """Return the bound as one on label privacy, with what the placebo said."""
    from_placebo = "" if tau_from == "given" else " with τ from the placebo (not in the paper)"
    return replace(
        bound,
        adjacency="label",
        method=f"observational label inference{from_placebo}, {bound.method}",
        assumptions=stated,
        details={
            **bound.details,
            "tau_from": tau_from,
            "placebo_epsilon": None if placebo is None else placebo.epsilon,
            "placebo_examples": None if placebo is None else placebo.details["examples"],
        },
    )


def _game_scores(scores: ArrayLike, chosen: ArrayLike, prefix: str) -> Scores:
    """Return a game's scores, where showing the true label is what membership is elsewhere."""
    values = _check.numbers(f"{prefix}scores", scores, ndim=1)
    coins = _check.codes(f"{prefix}chosen", chosen, (0, 1))
    _check.same_length(**{f"{prefix}scores": values, f"{prefix}chosen": coins})
    return Scores(values, coins == 0)


def _on_the_reference(tau: float, bound: Bound) -> list[str]:
    """Return what the result asks of the reference model, and what the placebo says of that."""
    exact = "The generated labels follow the law of the true ones, given the features (τ = 0)."
    # above 0 the theorem itself says how far they may lie apart
    asked = [exact] if tau == 0.0 else [ONCE]
    limit = bound.details.get("placebo_limit")
    if limit is None:
        return [*asked, "No placebo was played that could speak against the reference model."]
    told = (
        f"In the placebo {bound.details['placebo_correct']} of "
        f"{bound.details['placebo_guesses']} guesses were right. A reference model as wrong as "
        f"that allows may show ε = {limit:.3f} by itself"
    )
    if bound.epsilon <= limit:
        return [*asked, f"{told}, so that nothing is proved."]
    return [*asked, f"{told}, where labels are no more shifted than in the placebo."]
