"""What a count of correct guesses proves when the examples alone betray some memberships.

The propensity π of an example is the chance that it is a member, given the example. Its shift
|log π/(1 - π)| is what a guess can gain without any leak. A correction takes that gain away before
the count is read; each one here maps counts and shifts to the largest parameter ruled out.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from auditkit import _check, _keyed
from auditkit._types import Bools, Floats, Ints, Randomness
from auditkit.bounds.one_run import largest_epsilon as exact_limit
from auditkit.bounds.one_run import one_run
from auditkit.bounds.one_run_fdp import largest_rejected
from auditkit.bounds.poisson_binomial import largest_epsilon
from auditkit.bounds.sharp_tampering import KeepTable


@dataclass(frozen=True, eq=False)
class Game:
    """Guesses of one rule against the truth, and the draws that thin them out."""

    guesses: Ints
    members: Bools
    draws: Floats

    @cached_property
    def guessed(self) -> Bools:
        """Where a guess was made."""
        made: Bools = self.guesses != 0
        return made

    @cached_property
    def right(self) -> Bools:
        """Where the guess was correct."""
        same: Bools = self.guesses == np.where(self.members, 1, -1)
        return same

    @property
    def examples(self) -> int:
        """How many examples there are."""
        return self.guesses.size

    @cached_property
    def number(self) -> int:
        """How many guesses were made."""
        return int(self.guessed.sum())

    @cached_property
    def correct(self) -> int:
        """How many of them were correct."""
        return int(self.right.sum())


def games_of(
    guesses: ArrayLike,
    members: ArrayLike,
    propensity: Floats,
    rng: Randomness,
    name: str = "propensity",
) -> tuple[list[Game], str]:
    """Return one game a row of guesses, checked, and the key of the draws, which all of them share.

    The draws follow from the memberships, in the order of the propensities, and from `rng`: see
    `_keyed` for why no seed can make them depend on membership. So attacks are compared by the same
    draws, and so are propensity models that agree on the order.
    """
    _check.aligned(guesses=guesses, members=members)
    table = _check.numbers("guesses", guesses)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(
            f"guesses must have shape (examples,) or (rules, examples), got {table.shape}"
        )
    rules = _check.codes("guesses", table.ravel(), (-1, 0, 1)).reshape(-1, table.shape[-1])
    truth = _check.members("members", members)
    _check.same_length(guesses=rules[0], members=truth)
    _check.same_length(members=truth, **{name: np.atleast_2d(propensity)[0]})
    order = _keyed.canonical(np.atleast_2d(propensity)[0], truth, *rules)
    _check.generator("rng", rng)
    key = _keyed.key_of(truth[order], rng=rng)
    draws = np.empty(truth.size)
    draws[order] = _keyed.generator(key, "thinning").random(truth.size)
    return [Game(rule, truth, draws) for rule in rules], key


def shift_of(propensity: Floats) -> Floats:
    """Return |log π/(1 - π)|, the log-odds that an example gives to a guess by itself."""
    shift: Floats = np.abs(np.log(propensity) - np.log1p(-propensity))
    return shift


def gaussian_parameter(
    game: Game, shifts: Floats, level: float, correction: str
) -> tuple[Floats, Ints]:
    """Return the μ ruled out and the correct guesses counted, one each for every row of shifts."""
    kept = np.full(len(shifts), game.correct)
    if correction == "sharp":
        return _sharp_parameter(game, shifts, level)
    if correction == "conditional":
        draws, right = game.draws[game.right], shifts[:, game.right]
        kept = np.array([(draws < np.exp(-row)).sum() for row in right])
    # bootstraps come to the same few counts again and again
    counts, row = np.unique(kept, return_inverse=True)
    mu = largest_rejected(
        counts,
        np.full_like(counts, game.number),
        np.full_like(counts, game.examples),
        family="gaussian",
        level=level,
        tau=0.0,
    )[row]
    if correction == "composition":
        most = -2.0 * ndtri(expit(-shifts.max(axis=1)))
        mu = np.sqrt(np.maximum(mu - most, 0.0) * (mu + most))
    return mu, kept


def _sharp_parameter(game: Game, shifts: Floats, level: float) -> tuple[Floats, Ints]:
    """Return the first μ that the thinned guesses do not reject, for every row of shifts.

    The chance to be kept grows with μ. So the limit of the count at one μ is rejected along with
    all below it, and the count at that limit is larger: as in `_thinned_epsilon`.
    """

    @cache
    def limit(kept: int) -> float:
        count = (np.array([value]) for value in (kept, game.number, game.examples))
        return float(largest_rejected(*count, family="gaussian", level=level, tau=0.0)[0])

    draws, result = game.draws[game.right], np.zeros(len(shifts))
    counted = np.zeros(len(shifts), np.int64)
    for place, row in enumerate(shifts[:, game.right]):
        table, mu = KeepTable(row), 0.0
        while True:
            kept = int((draws < table.at(mu)).sum())
            reached = limit(kept)
            if reached <= mu:
                break
            mu = reached
        result[place], counted[place] = mu, kept
    return result, counted


def approx_parameter(
    game: Game, shifts: Floats, level: float, correction: str, delta: float
) -> tuple[Floats, Ints]:
    """Return the ε ruled out and the correct guesses counted, one each for every row of shifts."""
    kept = np.full(len(shifts), game.correct)
    if correction == "conditional":
        return _thinned_epsilon(game, shifts, level, delta)
    if correction == "untampered":
        spare, rest = _allowance(game.number, game.examples * delta, level)
        own = shifts[:, game.guessed]
        tail = [
            largest_epsilon(row, game.correct - spare, rest) if rest > 0.0 else 0.0 for row in own
        ]
        return np.array(tail), kept
    plain = one_run(
        game.correct, game.number, game.examples, delta=delta, confidence=1.0 - level
    ).epsilon
    shift = shifts.max(axis=1) if correction == "composition" else np.zeros(len(shifts))
    return np.maximum(plain - shift, 0.0), kept


def _thinned_epsilon(game: Game, shifts: Floats, level: float, delta: float) -> tuple[Floats, Ints]:
    """Return the first ε that the thinned guesses do not reject, for every row of shifts.

    The chance to be kept, (1 + e^(-ε - shift)) / (1 + e^-ε), grows with ε, so that a correct guess
    comes in at some ε and stays. With the count of ε = 0 all ε up to a limit are rejected; the
    count at that limit is larger and has a limit of its own; and so on until nothing comes in.
    """
    limit = cache(lambda kept: _limit(kept, game.number, game.examples * delta, level))
    draws, result = game.draws[game.right], np.zeros(len(shifts))
    counted = np.zeros(len(shifts), np.int64)
    for place, row in enumerate(np.exp(-shifts[:, game.right])):
        late = draws > row
        comes_in = np.sort(np.log(draws[late] - row[late]) - np.log1p(-draws[late]))
        epsilon, always = 0.0, draws.size - comes_in.size
        while True:
            kept = always + int(np.searchsorted(comes_in, epsilon, side="right"))
            reached = limit(kept)
            if reached <= epsilon:
                break
            epsilon = reached
        result[place], counted[place] = epsilon, kept
    return result, counted


def _limit(kept: int, guesses: int, weight: float, level: float) -> float:
    """Return the largest ε whose chance of `kept` correct guesses is at most the level."""
    counts = np.array(kept), np.array(guesses), np.array(weight)
    return float(exact_limit(*counts, level=level)[0])


def _allowance(guesses: int, slack: float, level: float) -> tuple[int, float]:
    """Return how many correct guesses to give away, and the level that is left.

    More than u guesses owe their success to δ with probability at most ``slack / (u + 1)``. The u
    that costs least at ε = 0 and without shift is taken: it must not depend on the guesses made.
    """
    if slack == 0.0:
        return 0, level
    spare = np.arange(guesses + 1)
    rest = level - slack / (spare + 1.0)
    cost = np.where(rest > 0.0, spare - 0.5 * sqrt(guesses) * ndtri(np.maximum(rest, 1e-300)), inf)
    best = int(np.argmin(cost))
    return best, float(rest[best])
