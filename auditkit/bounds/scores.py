"""From raw scores to a bound, with what the choice of a threshold costs."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit.bounds.games import OneRunGame, TwoWorldsGame
from auditkit.bounds.one_run import one_run, one_run_fdp
from auditkit.bounds.result import Bound
from auditkit.bounds.tradeoff import TradeOff
from auditkit.evidence import Scores
from auditkit.thresholds import Bonferroni, Fixed, MultiSplit, Split, Sweep, Threshold

Game: TypeAlias = OneRunGame | TwoWorldsGame

HALF = Split(0.5, seed=0)
METHODS = ("one-run", "one-run-fdp", "two-worlds")
UNSEEN = "The rule for guessing was fixed before the scores were seen."
SWEPT = (
    "The best of {} rules was taken on the data it is stated for, without correction, so that the "
    "number exceeds the truth more often than a bound may."
)


def audit_scores(
    scores: ArrayLike,
    members: ArrayLike,
    *,
    method: str,
    threshold: Threshold = HALF,
    family: str | Callable[[float], TradeOff] | None = None,
    delta: float = 1e-5,
    confidence: float = 0.95,
    ids: ArrayLike | None = None,
    member_ids: ArrayLike | None = None,
) -> Bound:
    """Bound ε from the scores of a membership attack.

    Parameters
    ----------
    scores : array of shape (examples,)
        Finite; a higher score means member. For two worlds one score a run, where a member is a
        run with the canary.
    members : array of shape (examples,)
        The truth, as booleans or 0 and 1.
    method : {"one-run", "one-run-fdp", "two-worlds"}
        The theorem: `one_run`, `one_run_fdp` or `two_worlds`. The one-run methods take examples of
        one training run, each a member by its own fair coin; members far from half are refused.
    threshold : Fixed, Bonferroni, Split, MultiSplit or Sweep
        How the guesses are chosen, by default `Split(0.5, seed=0)`. All but `Sweep`, whose result
        is an estimate, keep the confidence; each class says why.
    family : str or callable, optional
        For "one-run-fdp" any family that `one_run_fdp` takes. For "two-worlds" "gaussian", or
        "approx" for Clopper and Pearson's limits without the Gaussian assumption. Both default to
        "gaussian". "one-run" takes none.
    delta : float
        The δ at which ε is stated: one default for all methods.
    confidence : float
        Confidence of the bound.
    ids, member_ids : array, optional
        Names of the scored examples, and names of the examples in `members`. Given together, the
        two arrays are joined by them; each name has to occur once in both.

    Returns
    -------
    Bound
        `details` also hold the strategy as `threshold`, the realised `cut` (for one run the lowest
        score guessed to be a member and the highest guessed to be a non-member), and the number of
        `candidates` it is the best of.

    References
    ----------
    Steinke et al. (2023), Algorithm 1; OBS, Algorithm 3; SUB, Section 5; and those of the
    strategies in `auditkit.thresholds`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> members = rng.random(2000) < 0.5
    >>> scores = rng.normal(2.0 * members)
    >>> bound = audit_scores(scores, members, method="one-run", threshold=Fixed(guesses=0.1))
    >>> print(f"{bound.epsilon:.2f}", bound.details["correct"], "of", bound.details["guesses"])
    3.41 198 of 200
    """
    if (ids is None) != (member_ids is None):
        alone = "ids" if member_ids is None else "member_ids"
        raise ValueError(f"ids and member_ids must be given together, got {alone} only")
    if ids is None or member_ids is None:
        evidence = Scores(scores, members)
    else:
        evidence = Scores.joined(scores, members, ids=ids, member_ids=member_ids)
    return audit(_game(method, family, delta), evidence, threshold, confidence)


def audit(game: Game, scores: Scores, threshold: Threshold, confidence: float) -> Bound:
    """Bound ε in a game, with guesses chosen by a strategy."""
    level = 1.0 - _check.fraction("confidence", confidence)
    game.check(scores)
    noted: dict[str, Any] = {"threshold": repr(threshold)}
    if isinstance(threshold, Fixed):
        _, bound = game.single(scores, threshold).best(confidence)
        bound = replace(bound, assumptions=(*bound.assumptions, UNSEEN))
    elif isinstance(threshold, Split):
        first, second = game.divide(scores, threshold)
        rule, noted["candidates"] = _chosen(game, first, threshold, confidence)
        _, bound = game.single(second, rule).best(confidence)
        noted["chosen_on"] = len(first)
    elif isinstance(threshold, MultiSplit):
        halves = [audit(game, scores, split, 1.0 - level / 2.0) for split in threshold.each()]
        epsilons = np.array([half.epsilon for half in halves])
        # the largest number that at least half of the splits reach
        middle = np.argsort(-epsilons, kind="stable")[(epsilons.size + 1) // 2 - 1]
        bound, noted["split_epsilons"] = halves[middle], epsilons
    elif isinstance(threshold, Bonferroni):
        if isinstance(threshold.candidates, tuple):
            each = 1.0 - level / len(threshold.candidates)
            alone = [audit(game, scores, rule, each) for rule in threshold.candidates]
            bound = max(alone, key=lambda one: one.epsilon)
            noted["candidates"] = len(alone)
        else:
            rules = game.preset(scores, threshold.candidates)
            _, bound = rules.best(1.0 - level / len(rules.settings))
    elif isinstance(threshold, Sweep):
        _, bound = game.every(scores).best(confidence)
        swept = SWEPT.format(bound.details["candidates"])
        bound = replace(bound, claim="estimate", assumptions=(*bound.assumptions, swept))
        noted["nominal_confidence"] = confidence
    else:
        raise TypeError(
            f"threshold must be Fixed, Bonferroni, Split, MultiSplit or Sweep, got {threshold!r}"
        )
    stated = None if isinstance(threshold, Sweep) else confidence
    return replace(bound, confidence=stated, details={**bound.details, **noted})


def _game(
    method: str, family: str | Callable[[float], TradeOff] | None, delta: float
) -> OneRunGame | TwoWorldsGame:
    """Return the game of a method, with its theorem."""
    method = _check.choice("method", method, METHODS)
    if method == "one-run":
        if family is not None:
            raise ValueError(f"family must be None with method='one-run', got {family!r}")
        return OneRunGame(partial(one_run, delta=delta))
    family = "gaussian" if family is None else family
    if method == "one-run-fdp":
        return OneRunGame(partial(one_run_fdp, family=family, delta=delta))
    limits = {"gaussian": "gaussian", "approx": "clopper-pearson"}
    return TwoWorldsGame(limits[_check.choice("family", family, limits)], delta)


def _chosen(game: Game, first: Scores, split: Split, confidence: float) -> tuple[Fixed, int]:
    """Return the rule that the first part of a split proposes, and out of how many."""
    if split.rule == "midpoint":
        if first.members.all() or not first.members.any():
            raise ValueError(
                "fraction must leave members and non-members to choose a midpoint on, got "
                f"{split.fraction} of the examples, {int(first.members.sum())} members among "
                f"{len(first)}"
            )
        means = [first.values[first.members == member].mean() for member in (False, True)]
        return Fixed(float(sum(means)) / 2.0), 1
    tried = game.every(first)
    place, _ = tried.best(confidence)
    return game.as_rule(float(tried.settings[place])), len(tried.settings)
