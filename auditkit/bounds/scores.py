"""From raw scores to a bound, with what the choice of a threshold costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import pi, sqrt
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit.bounds.games import OneRunGame, TwoWorldsGame
from auditkit.bounds.one_run import COINS, one_run
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.result import Bound
from auditkit.bounds.tradeoff import TradeOff
from auditkit.bounds.two_worlds import Limits
from auditkit.bounds.zero_run_game import ZeroRunGame
from auditkit.coins import Coins, Plan
from auditkit.evidence import Scores
from auditkit.thresholds import TEN, Bonferroni, Fixed, MultiSplit, Split, Sweep, Threshold

Game: TypeAlias = OneRunGame | TwoWorldsGame | ZeroRunGame
B = TypeVar("B", bound=Bound)

METHODS = ("one-run", "one-run-fdp", "two-worlds")
# families, as `two_worlds` calls them
TWO_WORLDS: Mapping[str, Limits] = {"approx": "clopper-pearson", "gaussian": "gaussian"}
DOUBT = 1e-3  # what a right coin brings about less often than this is doubted
REPEATED = (
    "Rows that tie have one membership more often than coins of their own allow (chance {:.1g} at "
    "most). Rows seem to be repeated, and a copy is no second coin: this is an estimate."
)
FIXED_SIZE = (
    "The number of members was fixed in advance, so that their coins are not independent, and what "
    "holds of independent ones does not follow: this is an estimate."
)
EXACT_HALF = (
    "Exactly half of {} are 1. Fair coins land there with chance {:.2g}; had half been drawn on "
    "purpose, they would be no independent coins, and this an estimate."
)
FLIPPED = (
    "The score is lower where it should be higher (area under the ROC curve {:.3f}). A higher one "
    "has to mean member; a loss needs its sign turned."
)
FEW_VALUES = (
    "The scores have so few values that an order or a split drawn from them is no fresh chance: "
    "this is an estimate."
)
UNSEEN = "The rule for guessing was fixed before the scores were seen."
BY_COINS = (
    "Membership was randomised by these coins (SHA-256 {}): they were tossed once, before "
    "training, and the training followed them."
)
PLANNED = (
    "Method, rule, δ and confidence were planned before training, with the coins. To others a file "
    "shows that only by a digest that was published then."
)
CHANGED = (
    "Changed since the plan that was kept with the coins: {}. A choice that may have seen the "
    "scores is a choice among results: this is an estimate."
)
SWEPT = (
    "The best of {} rules was taken on the data it is stated for, without correction, so that the "
    "number exceeds the truth more often than a bound may."
)


def audit_scores(
    scores: ArrayLike,
    members: ArrayLike | Coins,
    *,
    method: Literal["one-run", "one-run-fdp", "two-worlds"],
    threshold: Threshold = TEN,
    family: Literal["gaussian", "pure", "approx"] | Callable[[float], TradeOff] | None = None,
    delta: float = 1e-5,
    confidence: float = 0.95,
    ids: ArrayLike | None = None,
    member_ids: ArrayLike | None = None,
    fixed_size: bool = False,
) -> Bound[float]:
    """Bound ε from the scores of a membership attack.

    Parameters
    ----------
    scores : array of shape (examples,)
        Finite; a higher score means member. For two worlds one score a run, where a member is a
        run with the canary.
    members : array of shape (examples,)
        The truth, as booleans or 0 and 1. Or the `Coins` that were tossed for it before training:
        then `ids` name the scores, all that coins were tossed for, and the result says that
        membership was randomised by these coins. Settings other than the plan that was kept with
        them make an estimate; ``**coins.plan`` gives them all.
    method : {"one-run", "one-run-fdp", "two-worlds"}
        The theorem: `one_run`, `one_run_fdp` or `two_worlds`. The one-run methods take examples of
        one training run, each a member by its own fair coin; members far from half are refused.
    threshold : Fixed, Bonferroni, Split, MultiSplit or Sweep
        How the guesses are chosen, by default `Bonferroni(10)`: the best of ten rules fixed in
        advance, which leaves nothing to the draw of a split. All but `Sweep`, whose result is an
        estimate, keep the confidence; each class says why. The page on validity compares them.
    family : str or callable, optional
        For "one-run-fdp" any family that `one_run_fdp` takes, by default "gaussian". For
        "two-worlds" "approx", which asks no more than (ε, δ) and is the default, or "gaussian" for
        the larger number of `two_worlds` under that assumption. "one-run" takes none.
    delta : float
        The δ at which ε is stated: one default for all methods. Above 0 with "gaussian".
    confidence : float
        Confidence of the bound.
    ids, member_ids : array, optional
        Names of the scored examples, and names of the examples in `members`. Given together, the
        two arrays are joined by them; each name has to occur once in both. Coins have names of
        their own, and take `ids` alone.
    fixed_size : bool
        Whether the number of members was fixed in advance, as where half of the examples were
        drawn. Such memberships are no independent coins, which the one-run theorems ask for, so
        that their result is an estimate. Two worlds do not ask.

    Returns
    -------
    Bound
        `details` also hold the strategy as `threshold`, the realised `cut` (for one run the lowest
        score guessed to be a member and the highest guessed to be a non-member), the number of
        `candidates` it is the best of, and the `key` that ties and splits were drawn from.
        `notices` say what was seen in the scores: exactly half members, or a score turned round.
        Where rows seem to be repeated, the claim is "estimate".

    Notes
    -----
    The result depends on the pairs of score and membership alone, not on the order of the rows.
    Whoever lists the members first, or draws them by a seed that ties or splits are drawn by too,
    would otherwise let the guesses see membership. Equal scores are therefore taken in an order
    drawn from a SHA-256 of all pairs, and so are the parts of a split. Such numbers are uniform and
    independent of membership as far as the hash is random, and the theorems ask for no more; the
    same scores give the same result again. Where scores have so few values that hardly more than a
    thousand tables are possible, a hash of them is no fresh chance, and the result is an estimate:
    scores that are the same in every row, or in all but a few.

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
    3.44 198 of 200
    """
    evidence = _joined(scores, members, ids, member_ids)
    game = _game(method, family, delta)
    bound = audit(game, evidence, threshold, confidence)
    if _check.flag("fixed_size", fixed_size) and isinstance(game, OneRunGame):
        stated = (*bound.assumptions, FIXED_SIZE)
        bound = replace(bound, claim="estimate", assumptions=stated, notices=_turned(evidence))
    if isinstance(members, Coins):
        asked: Any = {"method": method, "family": family, "threshold": threshold}
        return by_coins(bound, members, asked | {"delta": delta, "confidence": confidence})
    return bound


def by_coins(bound: Bound, coins: Coins, asked: Plan) -> Bound:
    """Say that coins decided, and hold what was asked against the plan that was kept with them."""
    changes = coins.changes(asked)
    # what is known of the coins need not be assumed of them
    known = {COINS} if changes else {COINS, UNSEEN}
    stated = [BY_COINS.format(coins.digest), *(s for s in bound.assumptions if s not in known)]
    stated.append(CHANGED.format("; ".join(changes)) if changes else PLANNED)
    half = exact_half("members", len(coins))
    return replace(
        bound,
        claim="estimate" if changes else bound.claim,
        assumptions=tuple(stated),
        details={**bound.details, "coins": coins.digest},
        notices=tuple(notice for notice in bound.notices if notice != half),
    )


def _joined(
    scores: ArrayLike,
    members: ArrayLike | Coins,
    ids: ArrayLike | None,
    member_ids: ArrayLike | None,
) -> Scores:
    """Return scores with the membership of the same example."""
    if isinstance(members, Coins):
        if ids is None or member_ids is not None:
            raise ValueError(
                "ids must name the scores where members are coins, and member_ids be None, got "
                f"{'no ids' if ids is None else 'both'}"
            )
        _check.aligned(scores=scores, ids=ids)
        return Scores(np.asarray(scores), members.of(ids))
    if (ids is None) != (member_ids is None):
        alone = "ids" if member_ids is None else "member_ids"
        raise ValueError(f"ids and member_ids must be given together, got {alone} only")
    if ids is None or member_ids is None:
        return Scores(scores, members)
    return Scores.joined(scores, members, ids=ids, member_ids=member_ids)


def audit(game: Game, scores: Scores, threshold: Threshold, confidence: float) -> Bound:
    """Bound ε in a game, with guesses chosen by a strategy, and say what the scores look like."""
    game.check(scores)
    bound = _by(game, scores, threshold, confidence)
    examples, notices = len(scores), _turned(scores)
    if isinstance(game, OneRunGame) and 2 * int(scores.members.sum()) == examples:
        notices = (exact_half(game.truth, examples), *notices)
    details = {**bound.details, "key": scores.key[:16]}
    bound = doubted(replace(bound, details=details, notices=notices), scores)
    drawn = isinstance(threshold, Split | MultiSplit)
    ranked = isinstance(game, OneRunGame) and getattr(threshold, "threshold", None) is None
    if (drawn or ranked) and scores.few():
        bound = replace(bound, claim="estimate", assumptions=(*bound.assumptions, FEW_VALUES))
    return bound


def exact_half(name: str, examples: int) -> str:
    """Return what is noticed where exactly half of the coins are 1."""
    return EXACT_HALF.format(name, sqrt(2.0 / (pi * examples)))  # by Stirling


def doubted(bound: B, scores: Scores) -> B:
    """Return the bound as an estimate if rows seem to be repeated; see `Scores.repeated`."""
    chance = scores.repeated()
    if chance >= DOUBT:
        return bound
    stated = (*bound.assumptions, REPEATED.format(chance))
    return replace(bound, claim="estimate", assumptions=stated)


def _turned(scores: Scores) -> tuple[str, ...]:
    """Return the notice of a score that is higher for those who are not members, if it is one."""
    own = int(scores.members.sum())
    others = len(scores) - own
    if min(own, others) == 0:
        return ()
    spread = sqrt((own + others + 1.0) / (12.0 * own * others))  # of the area, by chance
    area = scores.area()
    return (FLIPPED.format(area),) if area < 0.5 - 4.0 * spread else ()


def _by(game: Game, scores: Scores, threshold: Threshold, confidence: float) -> Bound:
    """Bound ε with guesses chosen by a strategy."""
    level = 1.0 - _check.fraction("confidence", confidence)
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
        halves = [_by(game, scores, split, 1.0 - level / 2.0) for split in threshold.each()]
        epsilons = np.array([half.epsilon for half in halves])
        # the largest number that at least half of the splits reach
        reached = np.argsort(-epsilons, kind="stable")[: (epsilons.size + 1) // 2]
        bound, noted["split_epsilons"] = halves[reached[-1]], epsilons
        if any(halves[split].claim == "estimate" for split in reached):
            bound = replace(bound, claim="estimate")  # half of the splits have to prove it
    elif isinstance(threshold, Bonferroni):
        if isinstance(threshold.candidates, tuple):
            each = 1.0 - level / len(threshold.candidates)
            alone = [_by(game, scores, rule, each) for rule in threshold.candidates]
            bound = max(alone, key=lambda one: (one.claim == "lower bound", one.epsilon))
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
    if method == "one-run-fdp":
        family = "gaussian" if family is None else family
        return OneRunGame(partial(one_run_fdp, family=family, delta=delta))
    return TwoWorldsGame(limits_of(family), delta)


def limits_of(family: object) -> Limits:
    """Return what `two_worlds` calls a family; None is the default."""
    asked: Any = "approx" if family is None else family
    return TWO_WORLDS[_check.choice("family", asked, TWO_WORLDS)]


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
    # not by what the placebo hides: it has to meet a rule that was fixed without it
    alone = replace(game, placebo=None) if isinstance(game, OneRunGame) else game
    tried = alone.every(first)
    place, _ = tried.best(confidence)
    return game.as_rule(float(tried.settings[place])), len(tried.settings)
