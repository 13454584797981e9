"""Can a propensity model be right? Guesses that never met the audited model may tell.

The corrections of `zero_run` are as good as the propensities that they are given. Nothing proves
that those are right, but a rival who sees more in the examples can prove that they are wrong.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, expit

from auditkit import _check
from auditkit.bounds.poisson_binomial import poisson_binomial_tail
from auditkit.bounds.shift_corrections import games_of, shift_of


@dataclass(frozen=True)
class PropensityTest:
    """Whether guesses about membership speak against a propensity model; true if they do.

    Attributes
    ----------
    rejected : bool
        Whether the model is rejected at `level`.
    p_value : float
        The chance, if the model were right, of at least as many kept correct guesses, at most.
    level : float
        One minus the confidence asked for.
    guesses, correct, kept : int
        Guesses made, those that were correct, and the correct ones that are left after thinning.
    threshold : int
        The smallest `kept` that rejects; more than `guesses` if none does.
    untampered_p_value : float
        The same chance from all the correct guesses, without thinning: the exact Poisson-binomial
        tail. It finds errors that the thinned count misses. It is a test of its own: who decides by
        the smaller of the two has to halve the level.
    """

    rejected: bool
    p_value: float
    level: float
    guesses: int
    correct: int
    kept: int
    threshold: int
    untampered_p_value: float

    def __bool__(self) -> bool:
        return self.rejected


def reject_propensity(
    guesses: ArrayLike,
    members: ArrayLike,
    propensity: ArrayLike,
    *,
    confidence: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> PropensityTest:
    """Test a propensity model with guesses that use the examples alone.

    Guesses that never met the audited model leak nothing, so that an audit at ε = 0 may not reject.
    If it does, the propensities lie too near to 1/2 to explain how well the examples betray their
    membership. A correct guess is kept with probability ``(1 + e^-shift) / 2``, and the number kept
    is at most that of fair coins.

    Parameters
    ----------
    guesses : array_like of {-1, 0, 1}, shape (m,)
        Made from the examples alone: the sign of a rival's log-odds, for instance.
    members : array_like of bool, shape (m,)
        Which examples were in the training set.
    propensity : array_like of float, shape (m,)
        The model's chance of membership; strictly between 0 and 1.
    confidence : float
        A right model is rejected with probability at most one minus this.
    rng : Generator, int or None
        Adds to where the thinning is drawn from: a key of the data, as in `zero_run`.

    Returns
    -------
    PropensityTest
        The decision, its exact p-value and the counts.

    Notes
    -----
    The test is one-sided: it does not see propensities too far from 1/2, which are safe, and a
    model that passes is not thereby right. It may be run on many rivals' guesses, each at its
    share of the level.

    References
    ----------
    Ceberé et al., "Privacy Auditing with Zero (0) Training Run", Theorem C.1 with ε = 0, Theorem
    D.1 for the tail without thinning.

    Examples
    --------
    >>> from scipy.special import expit
    >>> rng = np.random.default_rng(0)
    >>> truth = expit(rng.normal(size=10_000))
    >>> members = rng.random(10_000) < truth
    >>> guesses = np.where(truth > 0.5, 1, -1)
    >>> reject_propensity(guesses, members, truth, rng=1).rejected
    False
    >>> reject_propensity(guesses, members, np.full(10_000, 0.5), rng=1).rejected
    True
    """
    _check.aligned(members=members, propensity=propensity)
    chances = _check.fractions("propensity", propensity, ndim=1)
    (game, *others), _ = games_of(guesses, members, chances, rng)
    if others:
        raise ValueError(f"guesses must have 1 dimension, got {len(others) + 1} rules")
    level = 1.0 - _check.fraction("confidence", confidence)
    shift = shift_of(chances)
    kept = int((game.right & (game.draws < 0.5 * (1.0 + np.exp(-shift)))).sum())
    p_value = _coin_tail(kept, game.number)
    low, high = 0, game.number + 1  # the tail is above the level at low, and at most it at high
    while high - low > 1:
        middle = (low + high) // 2
        if _coin_tail(middle, game.number) > level:
            low = middle
        else:
            high = middle
    return PropensityTest(
        rejected=p_value <= level,
        p_value=p_value,
        level=level,
        guesses=game.number,
        correct=game.correct,
        kept=kept,
        threshold=high,
        untampered_p_value=poisson_binomial_tail(expit(shift[game.guessed]), game.correct),
    )


def _coin_tail(count: int, coins: int) -> float:
    """Return the chance of at least `count` heads."""
    return (
        float(betainc(count, coins - count + 1.0, 0.5)) if 0 < count <= coins else float(count <= 0)
    )
