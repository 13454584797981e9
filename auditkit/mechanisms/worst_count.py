"""The worst mechanism for a one-run audit: no private one lets more guesses be right.

It draws how many guesses will be right, then on which coins, and publishes the guesses. By symmetry
the law of that number says everything about it, its privacy included.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from auditkit import _check
from auditkit._types import Floats, Ints, Randomness
from auditkit.bounds.one_run import worst_chance


@dataclass(frozen=True, eq=False)
class WorstMechanism:
    """Guesses on r of m coins, of which so many are right as a law w says.

    Attributes
    ----------
    w : ndarray of float, shape (r + 1,)
        The chance that 0, 1, …, r guesses are right.
    examples : int
        The number m of coins.
    """

    w: Floats
    examples: int

    def counts(self, size: int, rng: Randomness) -> Ints:
        """Return how many guesses are right in each of `size` runs."""
        return _check.generator("rng", rng).choice(self.w.size, size, p=self.w)

    def release(self, members: ArrayLike, rng: Randomness) -> Ints:
        """Return what one run on these coins publishes: 1 and -1 for guesses, 0 for none."""
        coins = _check.members("members", members)
        if coins.size != self.examples:
            raise ValueError(f"members must hold {self.examples} coins, got {coins.size}")
        rng = _check.generator("rng", rng)
        guesses = np.zeros(self.examples, np.int64)
        chosen = rng.permutation(self.examples)[: self.w.size - 1]
        right = np.arange(chosen.size) < self.counts(1, rng)
        guesses[chosen] = np.where(coins[chosen] == right, 1, -1)
        return guesses

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ at which the mechanism is (ε, δ)-DP: exact, in both directions.

        Turning a coin over makes a right guess wrong. The released guesses with k right, one of
        them on that coin, become as likely as those with k - 1 right and one wrong on it.
        """
        k = np.arange(1, self.w.size)
        kept, lost = k * self.w[1:], (self.w.size - k) * self.w[:-1]
        g = np.exp(epsilon)
        above = np.maximum(kept - g * lost, 0.0) + np.maximum(lost - g * kept, 0.0)
        return float(above.sum() / self.examples)


def worst_mechanism(
    correct: int, guesses: int, examples: int, *, epsilon: float, delta: float
) -> WorstMechanism:
    """Return the (ε, δ)-DP mechanism under which `correct` right guesses are likeliest.

    Parameters
    ----------
    correct, guesses, examples : int
        At least how many of how many guesses are to be right, on how many coins.
    epsilon, delta : float
        What the mechanism promises, and keeps.

    Notes
    -----
    A binomial count is what ε alone allows. With the chance that δ pays for, the count is drawn
    again, from its upper tail: so ``P(N ≥ v)`` is the P* of `one_run`, and the bound is tight.

    Examples
    --------
    >>> mechanism = worst_mechanism(80, 100, 1000, epsilon=1.0, delta=1e-5)
    >>> print(f"{mechanism.delta(1.0):.3g}, {mechanism.w[80:].sum():.4f}")
    1e-05, 0.0719
    """
    v = _check.whole("correct", correct, least=1)
    r = _check.whole("guesses", guesses, least=v)
    m = _check.whole("examples", examples, least=r)
    epsilon = _check.scalar("epsilon", epsilon, least=0.0)
    weight = m * _check.delta("delta", delta)
    chance, _, beta, _ = worst_chance(v, r, weight, epsilon, 1.0)
    law = binom.pmf(np.arange(r + 1), r, 1.0 / (1.0 + np.exp(-epsilon)))
    tail = np.where(np.arange(r + 1) >= v, law, 0.0)
    again = (chance - beta) / (1.0 - beta) if chance < 1.0 else 1.0
    w = (1.0 - again) * law + again * tail / tail.sum()
    return WorstMechanism(w / w.sum(), m)
