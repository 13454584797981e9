"""What an attack leaves: scores with their membership, and the counts made from them.

The bounds take counts and nothing else, so a count that cannot be is stopped here, before it can
turn into a number with a confidence attached.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from scipy.stats import rankdata

from auditkit import _check, _keyed
from auditkit._types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False, init=False)
class GuessCounts:
    """Guesses of a one-run game: how many there could be, how many were made, how many held.

    Parameters
    ----------
    correct : int or array
        Guesses that were right.
    guesses : int or array
        Guesses made; the other examples were abstained on.
    examples : int or array
        Examples in the game. Arrays are brought to one shape.

    Examples
    --------
    >>> counts = GuessCounts.from_guesses([1, 0, -1, 1], [True, True, False, False])
    >>> int(counts.correct), int(counts.guesses), int(counts.examples)
    (2, 3, 4)
    """

    correct: Ints
    guesses: Ints
    examples: Ints

    def __init__(self, correct: ArrayLike, guesses: ArrayLike, examples: ArrayLike) -> None:
        _set(self, correct=correct, guesses=guesses, examples=examples)
        _check.at_most("correct", self.correct, "guesses", self.guesses)
        _check.at_most("guesses", self.guesses, "examples", self.examples)

    @classmethod
    def from_guesses(cls, guesses: ArrayLike, members: ArrayLike) -> Self:
        """Count guesses (1 member, -1 non-member, 0 abstain) against the truth."""
        _check.aligned(guesses=guesses, members=members)
        guess = _check.codes("guesses", guesses, (-1, 0, 1))
        member = _check.members("members", members)
        _check.same_length(guesses=guess, members=member)
        right = guess == np.where(member, 1, -1)
        return cls(right.sum(), np.count_nonzero(guess), guess.size)


@dataclass(frozen=True, eq=False, init=False)
class ErrorCounts:
    """Errors of a test between two worlds, with the number of runs in each.

    Parameters
    ----------
    false_positives : int or array
        Runs of the world without the canary that the test took for the other.
    negatives : int or array
        Runs of the world without the canary.
    false_negatives : int or array
        Runs of the world with the canary that the test took for the other.
    positives : int or array
        Runs of the world with the canary. Arrays are brought to one shape.

    Examples
    --------
    >>> scores = Scores([0.1, 0.8, 0.4, 0.9], [False, False, True, True])
    >>> counts = ErrorCounts.at(scores, 0.5)
    >>> int(counts.false_positives), int(counts.false_negatives)
    (1, 1)
    """

    false_positives: Ints
    negatives: Ints
    false_negatives: Ints
    positives: Ints

    def __init__(
        self,
        false_positives: ArrayLike,
        negatives: ArrayLike,
        false_negatives: ArrayLike,
        positives: ArrayLike,
    ) -> None:
        _set(
            self,
            false_positives=false_positives,
            negatives=negatives,
            false_negatives=false_negatives,
            positives=positives,
        )
        _check.at_most("false_positives", self.false_positives, "negatives", self.negatives)
        _check.at_most("false_negatives", self.false_negatives, "positives", self.positives)

    @classmethod
    def at(cls, scores: "Scores", cuts: ArrayLike) -> Self:
        """Count the errors of "member if the score is at or above the cut", for every cut."""
        cut = _check.numbers("cuts", cuts)
        absent = np.sort(scores.values[~scores.members])
        present = np.sort(scores.values[scores.members])
        return cls(
            absent.size - np.searchsorted(absent, cut, side="left"),
            absent.size,
            np.searchsorted(present, cut, side="left"),
            present.size,
        )


@dataclass(frozen=True, eq=False, init=False)
class Scores:
    """Scores of an attack, each with the membership of the same example.

    Parameters
    ----------
    values : array of shape (examples,)
        Finite scores; a higher one means member.
    members : array of shape (examples,)
        True or 1 for members, False or 0 for non-members.

    Examples
    --------
    Joined by id, the order of the membership list does not matter:

    >>> joined = Scores.joined([0.9, 0.2], [0, 1], ids=["a", "b"], member_ids=["b", "a"])
    >>> joined.members
    array([ True, False])
    """

    values: Floats
    members: Bools

    def __init__(self, values: ArrayLike, members: ArrayLike) -> None:
        _check.aligned(scores=values, members=members)
        object.__setattr__(self, "values", _check.numbers("scores", values, ndim=1))
        object.__setattr__(self, "members", _check.members("members", members))
        _check.same_length(scores=self.values, members=self.members)
        if not self.values.size:
            raise ValueError("scores must hold at least 1 score, got none")

    @classmethod
    def joined(
        cls, scores: ArrayLike, members: ArrayLike, *, ids: ArrayLike, member_ids: ArrayLike
    ) -> Self:
        """Join `scores`, named by `ids`, to `members`, named by `member_ids`.

        Each id has to occur once on either side: a duplicate or a missing one is an error, so that
        a shuffled or shortened array cannot pass for the right one.
        """
        _check.aligned(scores=scores, ids=ids)
        _check.aligned(members=members, member_ids=member_ids)
        score = _check.numbers("scores", scores, ndim=1)
        member = _check.members("members", members)
        left, right = _places("ids", ids), _places("member_ids", member_ids)
        _check.same_length(scores=score, ids=left)
        _check.same_length(members=member, member_ids=right)
        lost = [item for item in left if item not in right]
        lost += [item for item in right if item not in left]
        if lost:
            raise ValueError(
                f"ids and member_ids must name the same examples, got {lost[0]!r} on one side only "
                f"({len(lost)} such in all)"
            )
        return cls(score, member[[right[item] for item in left]])

    def __len__(self) -> int:
        return self.values.size

    def take(self, index: NDArray[np.intp]) -> "Scores":
        """Return the scores at `index`, with their membership."""
        return Scores(self.values[index], self.members[index])

    @cached_property
    def canonical(self) -> NDArray[np.intp]:
        """The rows by score, and by membership where scores tie: however they stood before."""
        return _keyed.canonical(self.values, self.members)

    @cached_property
    def key(self) -> str:
        """What all random numbers of an audit of these scores follow from; see `_keyed`."""
        order = self.canonical
        return _keyed.key_of(_keyed.ranks(self.values[order]), self.members[order])

    def shuffled(self, use: str) -> NDArray[np.intp]:
        """Return an order that knows nothing of how the rows stood, nor of a seed of the user's."""
        return self.canonical[_keyed.generator(self.key, use).permutation(len(self))]

    def few(self) -> bool:
        """Say whether scores tie so much that a mere thousand or two tables could have them."""
        return _keyed.few(self.values)

    def area(self) -> float:
        """Return the chance that a member's score is above a non-member's; ties count half."""
        own = int(self.members.sum())
        others = len(self) - own
        ranks = rankdata(self.values)[self.members].sum()
        return float((ranks - own * (own + 1) / 2.0) / (own * others))

    def repeated(self) -> float:
        """Return how likely it is that tied rows agree in membership as they do, at most.

        A row that stands twice shares its score and its membership, and is no second coin. This
        sees repeats where few rows tie by themselves and little leaks; among scores of a few values
        they go unseen, and ids are the safeguard. Take the
        groups of two and more equal scores in pairs of neighbours. Where each membership has a coin
        of its own, and a higher score does not speak against it, a pair whose lower group is all
        members and whose higher group has none has chance ``p^2 (1 - p)^2`` at most, hence 1/16.
        Rows that are repeated look like that in every fourth pair if scores tell nothing.
        """
        ordered, members = self.values[self.canonical], self.members[self.canonical]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sizes = np.diff(np.append(starts, len(self)))
        inside = np.add.reduceat(members.astype(np.int64), starts)[sizes > 1]
        sizes = sizes[sizes > 1]
        pairs = sizes.size // 2
        low, high = inside[: 2 * pairs : 2], inside[1 : 2 * pairs : 2]
        turned = int(((low == sizes[: 2 * pairs : 2]) & (high == 0)).sum())
        return float(betainc(turned, pairs - turned + 1.0, 1 / 16)) if turned else 1.0


@dataclass(frozen=True, eq=False)
class PairedScores:
    """What a classifier says of both examples of every pair; higher means real.

    Attributes
    ----------
    real : array of shape (pairs,)
        Scores of the members.
    other : array of shape (pairs,)
        Scores of the examples they are paired with, generated or real.

    Examples
    --------
    >>> PairedScores(np.array([3.0, 2.0]), np.array([1.0, 2.5])).shown(np.array([True, False]))
    array([3. , 2.5])
    """

    real: Floats
    other: Floats

    def __post_init__(self) -> None:
        for name in ("real", "other"):
            scores = _check.numbers(name, getattr(self, name), ndim=1)
            object.__setattr__(self, name, scores)
        _check.same_length(real=self.real, other=self.other)

    def __len__(self) -> int:
        return len(self.real)

    def shown(self, coins: Bools) -> Floats:
        """Return the scores of the examples that coins show; True shows the real one."""
        return np.where(coins, self.real, self.other)

    def first(self, pairs: int) -> "PairedScores":
        """Return the scores of so many pairs."""
        return PairedScores(self.real[:pairs], self.other[:pairs])


def _set(target: Any, **values: ArrayLike) -> None:
    checked = {name: _check.counts(name, value) for name, value in values.items()}
    for name, array in zip(checked, _check.one_shape(**checked), strict=True):
        object.__setattr__(target, name, array)


def _places(name: str, value: ArrayLike) -> dict[Any, int]:
    array = np.asarray(value)
    if array.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension, got shape {array.shape}")
    try:
        places = {item: place for place, item in enumerate(array.tolist())}
    except TypeError:
        raise TypeError(f"{name} must hold numbers or texts, got {array[0]!r}") from None
    if len(places) < array.size:
        values, times = np.unique(array, return_counts=True)
        raise ValueError(
            f"{name} must not repeat, got {values.tolist()[times.argmax()]!r} {times.max()} times"
        )
    return places
