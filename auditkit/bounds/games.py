"""The two games that scores are counted in: guesses in one run, and a test between two worlds.

A game says how guesses are made from scores, which rules there are to choose from, and what the
counts prove. It knows nothing of how the choice is paid for; that is `auditkit.bounds.scores`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from auditkit._types import Bools, Floats, Ints
from auditkit.bounds.clopper_pearson import upper_limit
from auditkit.bounds.result import Bound
from auditkit.bounds.two_worlds import FIXED, Limits, two_worlds
from auditkit.evidence import ErrorCounts, GuessCounts, Scores
from auditkit.thresholds import Fixed, Split


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rules, and what each of them does to the same scores.

    Attributes
    ----------
    settings : array of shape (rules,)
        What makes the rule: a share of guesses, or a cut.
    cuts : array of shape (rules,) or (rules, 2)
        Where the rule cuts the scores: one cut, or the lowest score guessed to be a member and the
        highest guessed to be a non-member.
    bound : callable
        From a confidence to what the counts prove, one ε a rule.
    """

    settings: Floats
    cuts: Floats
    bound: Callable[[float], Bound]

    def best(self, confidence: float) -> tuple[int, Bound]:
        """Return the place of the rule with the largest bound, and that bound."""
        bound = self.bound(confidence)
        # what a placebo's limit hides is not proved: the best of what it does not hide comes first
        hidden = np.ravel(bound.epsilon) <= bound.details.get("placebo_limit", -np.inf)
        place = int(np.lexsort((-np.ravel(bound.epsilon), hidden))[0])
        single = {
            name: value[place].item() if np.ndim(value) else value
            for name, value in bound.details.items()
        }
        details = single | {"candidates": len(self.settings), "cut": self.cuts[place].tolist()}
        epsilon = float(np.ravel(bound.epsilon)[place])
        claim = "estimate" if np.ravel(hidden)[place] else bound.claim
        return place, replace(bound, epsilon=epsilon, claim=claim, details=details)


@dataclass(frozen=True, eq=False)
class OneRunGame:
    """Guess the membership of the examples with the most extreme scores.

    Attributes
    ----------
    theorem : callable
        Takes correct, guesses and examples, and the confidence by keyword; returns a Bound.
    by_size : bool
        Guess where the score is largest in size, as its sign says, instead of half at either end.
        A score of 0 has no sign: within the fixed number it is an abstention, which the theorem
        counts like a wrong guess, since it holds for at most that many guesses.
    truth : str
        What the caller calls membership.
    placebo : Scores, optional
        The same game where nothing can leak. Its guesses, made by the same rule, say how large a
        count has to be before a leak is what explains it.
    """

    theorem: Callable[..., Bound]
    by_size: bool = False
    truth: str = "members"
    placebo: Scores | None = None

    def check(self, scores: Scores) -> None:
        """Refuse membership that fair coins cannot have drawn."""
        examples, members = len(scores), int(scores.members.sum())
        if abs(2 * members - examples) > 6.0 * np.sqrt(examples):  # chance below 2e-9
            way = "; where no coin decided, see `zero_run`" if self.truth == "members" else ""
            raise ValueError(
                f"{self.truth} must come from independent fair coins in a one-run game, got "
                f"{members} members among {examples} examples{way}"
            )

    def divide(self, scores: Scores, split: Split) -> tuple[Scores, Scores]:
        """Return a part to choose on and one to count on, drawn without a look at membership."""
        return _parts(scores, [scores.shuffled(f"split {split.seed}")], split.fraction)

    def every(self, scores: Scores) -> Candidates:
        """Return guesses on 100%, 99%, ..., 1% of the examples; the most win a tie."""
        return self._shares(scores, np.linspace(1.0, 0.01, 100))

    def preset(self, scores: Scores, number: int) -> Candidates:
        """Return a number of rules that are fixed in advance."""
        return self._shares(scores, np.geomspace(1.0, 0.01, number))

    def single(self, scores: Scores, rule: Fixed) -> Candidates:
        """Return one rule, fixed in advance."""
        if rule.threshold is None:
            return self._extremes(scores, np.array([rule.number(len(scores))]))
        cut = np.array([rule.threshold])
        counts, heard = (
            None
            if played is None
            else GuessCounts.from_guesses(np.where(played.values >= cut, 1, -1), played.members)
            for played in (scores, self.placebo)
        )
        assert counts is not None
        return Candidates(cut, cut, self._bound_of(counts, heard))

    def as_rule(self, setting: float) -> Fixed:
        """Return a candidate's setting as a rule."""
        return Fixed(guesses=setting)

    def _shares(self, scores: Scores, shares: Floats) -> Candidates:
        sizes = np.unique([Fixed(guesses=share).number(len(scores)) for share in shares.tolist()])
        return self._extremes(scores, sizes[::-1])

    def _extremes(self, scores: Scores, sizes: Ints) -> Candidates:
        """Count the correct guesses on the most extreme scores, for every number of guesses."""
        correct, cuts = self._ranked(scores, sizes)
        heard = None
        if self.placebo is not None:
            others = len(self.placebo)
            same = np.maximum(1, np.rint(sizes / len(scores) * others)).astype(np.int64)
            heard = GuessCounts(self._ranked(self.placebo, same)[0], same, others)
        counts = GuessCounts(correct, sizes, len(scores))
        return Candidates(sizes / len(scores), cuts, self._bound_of(counts, heard))

    def _ranked(self, scores: Scores, sizes: Ints) -> tuple[Ints, Floats]:
        """Return how many guesses on the most extreme scores are right, and where they are cut."""
        order = scores.shuffled("ties")
        values, members = scores.values[order], scores.members[order]
        if self.by_size:
            order = np.argsort(-np.abs(values), kind="stable")
            right = np.sign(values) == np.where(members, 1, -1)
            return _running(right[order])[sizes], np.abs(values)[order][sizes - 1]
        order = np.argsort(-values, kind="stable")
        high, low = (sizes + 1) // 2, sizes // 2
        top, bottom = members[order], ~members[order[::-1]]
        ranked = np.concatenate((values[order], [-np.inf]))  # -inf: no score guessed low
        cuts = np.stack((ranked[high - 1], ranked[len(scores) - low]), axis=-1)
        return _running(top)[high] + _running(bottom)[low], cuts

    def _bound_of(self, counts: GuessCounts, heard: GuessCounts | None) -> Callable[[float], Bound]:
        """Return what the counts prove at a confidence, with what a placebo heard could explain."""

        def proved(correct: Ints, confidence: float) -> Bound:
            return self.theorem(correct, counts.guesses, counts.examples, confidence=confidence)

        def bound(confidence: float) -> Bound:
            found = proved(counts.correct, confidence)
            if heard is None:
                return found
            most = plausible_count(
                heard.correct, heard.guesses, counts.guesses, level=1.0 - confidence
            )
            told = {
                "placebo_correct": heard.correct,
                "placebo_guesses": heard.guesses,
                "placebo_limit": proved(most, confidence).epsilon,
            }
            return replace(found, details={**found.details, **told})

        return bound


def plausible_count(
    correct: Ints,
    guesses: Ints,
    audited: Ints,
    *,
    level: float,
) -> Ints:
    """Return how many of an audit's guesses may be right where a placebo had so many.

    The placebo's accuracy has an upper limit, Clopper and Pearson's at half the level. Guesses of
    that accuracy exceed the count returned with at most the other half. So guesses of the placebo's
    own accuracy exceed it with chance `level` at most.
    """
    half = level / 2.0
    chance = np.maximum(upper_limit(correct, guesses, half), 0.5)
    low, high = np.zeros_like(audited), audited.copy()  # 0 is exceeded too often, all never
    while (high - low > 1).any():
        middle = (low + high) // 2
        often = betainc(middle + 1.0, audited - middle, chance) > half
        low, high = np.where(often, middle, low), np.where(often, high, middle)
    return high


@dataclass(frozen=True, eq=False)
class TwoWorldsGame:
    """Take a run for one with the canary if its score is at or above a cut.

    Attributes
    ----------
    method : {"clopper-pearson", "gaussian"}
        As in `two_worlds`.
    delta : float
        The δ at which ε is stated.
    """

    method: Limits
    delta: float

    def check(self, scores: Scores) -> None:
        """Refuse scores of one world only."""
        if scores.members.all() or not scores.members.any():
            raise ValueError(
                "members must hold runs of both worlds with method='two-worlds', got "
                f"{int(scores.members.sum())} members among {len(scores)} runs"
            )

    def divide(self, scores: Scores, split: Split) -> tuple[Scores, Scores]:
        """Return a part to choose on and one to count on, each with runs of both worlds."""
        order = scores.shuffled(f"split {split.seed}")
        worlds = [order[scores.members[order] == member] for member in (False, True)]
        return _parts(scores, worlds, split.fraction)

    def every(self, scores: Scores) -> Candidates:
        """Return every cut worth trying; those with the fewest errors come first and win a tie.

        A cut at a score of the world without the canary is no better than the next one above it,
        and one with none of these scores down to the next cut below is no better than that.
        """
        cuts = np.unique(scores.values[scores.members])
        below = np.searchsorted(np.sort(scores.values[~scores.members]), cuts)
        cuts = cuts[np.diff(below, prepend=-1) > 0]
        counts = ErrorCounts.at(scores, cuts)
        errors = counts.false_positives / counts.negatives
        errors += counts.false_negatives / counts.positives
        return self._at(scores, cuts[np.argsort(errors, kind="stable")])

    def preset(self, scores: Scores, number: int) -> Candidates:
        """Return cuts at ranks within one world; see `Bonferroni` for why the counts hold."""
        absent = np.sort(scores.values[~scores.members])
        present = np.sort(scores.values[scores.members])
        high = _spaced(absent.size, number - number // 2)
        low = _spaced(present.size, number // 2)
        from_absent, from_present = absent[absent.size - high], present[low - 1]
        cuts = np.concatenate((from_absent, from_present))
        counts = ErrorCounts(
            # at a score of the one world the cut runs just above it, at one of the other just below
            np.concatenate((high - 1, absent.size - np.searchsorted(absent, from_present, "left"))),
            absent.size,
            np.concatenate((np.searchsorted(present, from_absent, "right"), low - 1)),
            present.size,
        )
        return Candidates(cuts, cuts, lambda level: self._bound(counts, level))

    def single(self, scores: Scores, rule: Fixed) -> Candidates:
        """Return one cut, fixed in advance."""
        if rule.threshold is None:
            raise ValueError(
                "threshold must be a cut with method='two-worlds', where every run is guessed on, "
                f"got {rule!r}"
            )
        return self._at(scores, np.array([rule.threshold]))

    def as_rule(self, setting: float) -> Fixed:
        """Return a candidate's setting as a rule."""
        return Fixed(setting)

    def _at(self, scores: Scores, cuts: Floats) -> Candidates:
        counts = ErrorCounts.at(scores, cuts)
        return Candidates(cuts, cuts, lambda level: self._bound(counts, level))

    def _bound(self, counts: ErrorCounts, confidence: float) -> Bound:
        bound = two_worlds(
            counts.false_positives,
            counts.negatives,
            counts.false_negatives,
            counts.positives,
            method=self.method,
            delta=self.delta,
            confidence=confidence,
        )
        kept = tuple(sentence for sentence in bound.assumptions if sentence != FIXED)
        return replace(bound, assumptions=kept)


def _parts(scores: Scores, groups: list[NDArray[Any]], fraction: float) -> tuple[Scores, Scores]:
    """Divide every shuffled group of places at the same fraction."""
    sizes = [round(fraction * group.size) for group in groups]
    if any(not 0 < size < group.size for size, group in zip(sizes, groups, strict=True)):
        found = ", ".join(str(group.size) for group in groups)
        raise ValueError(
            f"fraction must leave examples to choose on and examples to count on, got {fraction} "
            f"of {found}"
        )
    first = [group[:size] for size, group in zip(sizes, groups, strict=True)]
    second = [group[size:] for size, group in zip(sizes, groups, strict=True)]
    return scores.take(np.concatenate(first)), scores.take(np.concatenate(second))


def _running(right: Bools) -> Ints:
    """Return how many of the first 0, 1, 2, ... are right."""
    return np.concatenate(([0], np.cumsum(right)))


def _spaced(size: int, number: int) -> Ints:
    """Return up to `number` different ranks from 1 to half of `size`, evenly spaced in the log."""
    if number == 0:
        return np.empty(0, dtype=np.int64)
    return np.unique(np.rint(np.geomspace(1, max(1, size // 2), number)).astype(np.int64))
