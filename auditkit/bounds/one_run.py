"""What the number of correct guesses in a single training run proves under (ε, δ).

Every example is a member, or carries its true label, by a fair coin of its own. An attack that has
seen the result guesses some of the coins, and the count of correct guesses is compared with what a
private mechanism allows. `one_run` reads it under (ε, δ), `one_run_fdp` under a family of trade-off
functions.
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.bounds.clopper_pearson import lower_limit, upper_limit
from auditkit.bounds.result import Bound, plain

Counts: TypeAlias = tuple[Ints, Ints, Ints]

COINS = "Each example was in, or carried its own label, by a fair coin independent of the others."
FIXED_NUMBER = "The number of guesses was fixed in advance."
FEW = 16  # lanes that are done before a second thread has woken up


def one_run(
    correct: ArrayLike,
    guesses: ArrayLike,
    examples: ArrayLike,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
) -> Bound:
    """Return the largest ε that the correct guesses of one run rule out at `delta`.

    Under (ε, δ)-DP the number of correct guesses is at least v with probability at most
    ``β(v) + 2 m δ α(v)``, where β is the tail of a binomial law with chance ``1 / (1 + e^-ε)`` and
    α(v) the largest of ``(β(v - i) - β(v)) / i``. The bound is the largest ε at which that is at
    most ``1 - confidence``; at δ = 0 a quantile of the beta law gives it in closed form.

    Parameters
    ----------
    correct, guesses, examples : array_like of int
        How many guesses were right, how many were made, and how many coins there were. Arrays
        broadcast.
    delta : float
        The δ at which ε is stated; 0 for pure ε.
    confidence : float
        How often the bound holds.

    Returns
    -------
    Bound
        With ``claim="lower bound"``.

    Notes
    -----
    The δ-term is the theorem's own. For few guesses and events that are almost certain it is too
    small: three fair coins and three guesses get at least one right with probability
    7/8 + 0.875 δ under the best (0, δ)-DP mechanism, and the theorem allows 7/8 + 0.75 δ. No such
    case is known where the probability is below 0.8, so that a `confidence` below 0.2 is refused
    when δ is above 0.

    At δ = 0 the number of guesses may depend on what was released, since every guess is right with
    chance at most ``1 / (1 + e^-ε)`` given that and the other coins. At δ > 0 it has to be fixed in
    advance, which the result states: a mechanism that publishes 15 of 10,000 coins with chance
    0.2/15, and else nothing, is (0, 2e-5)-DP, but whoever guesses those 15 if they are published,
    and all coins if not, exceeds 0 in 6% of runs at a level of 5%.

    References
    ----------
    Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
    Theorem 5.2.

    Examples
    --------
    >>> bound = one_run(800, 1000, 10_000)
    >>> round(bound.epsilon, 4)
    1.2508
    """
    c, r, m = border(correct, guesses, examples)
    delta = _check.delta("delta", delta)
    confidence = _check.fraction("confidence", confidence)
    if delta > 0.0 and confidence < 0.2:
        raise ValueError(f"confidence must be at least 0.2 where delta > 0, got {confidence!r}")
    level = 1.0 - confidence
    epsilon = _without_delta(c, r, level)
    if delta > 0.0:
        epsilon = _with_delta(c, r, m, delta, level, epsilon)
    return Bound(
        epsilon=plain(epsilon),
        delta=delta,
        confidence=confidence,
        claim="lower bound",
        adjacency="add/remove",
        method="one run",
        assumptions=(COINS,) if delta == 0.0 else (COINS, FIXED_NUMBER),
        details=operating_point(c, r, m, level),
    )


def border(correct: ArrayLike, guesses: ArrayLike, examples: ArrayLike) -> Counts:
    """Check the three counts and return them with one shape."""
    c, r, m = _check.one_shape(
        correct=_check.counts("correct", correct),
        guesses=_check.counts("guesses", guesses),
        examples=_check.counts("examples", examples),
    )
    _check.at_most("correct", c, "guesses", r)
    _check.at_most("guesses", r, "examples", m)
    if (m < 1).any():
        raise ValueError(f"examples must be at least 1, got {m.min()}")
    return c.copy(), r.copy(), m.copy()


def operating_point(c: Ints, r: Ints, m: Ints, level: float) -> dict[str, Any]:
    """Return the counts and the level as the details of a bound."""
    counts = {"examples": m, "guesses": r, "correct": c}
    return {
        **{name: int(value) if value.ndim == 0 else value for name, value in counts.items()},
        "level": level,
    }


# (ε, δ)


def _without_delta(c: Ints, r: Ints, level: float) -> Floats:
    """Return the logit of the Clopper-Pearson lower limit of c of r, and at least 0."""
    # the limit's distance from 1 is a limit on the wrong guesses, with all its digits
    with np.errstate(divide="ignore"):
        odds = np.log(lower_limit(c, r, level)) - np.log(upper_limit(r - c, r, level))
    return np.asarray(np.maximum(odds, 0.0))


def _with_delta(
    c: Ints,
    r: Ints,
    m: Ints,
    delta: float,
    level: float,
    highest: Floats,
) -> Floats:
    """Return the largest rejected ε of each count, below its value at δ = 0."""
    weight: Floats = np.asarray(2.0 * delta * m)
    if c.size > FEW:
        lanes = _search_delta_lanes(c.ravel(), r.ravel(), weight.ravel(), highest.ravel(), level)
        return lanes.reshape(c.shape)
    flat = (values.ravel().tolist() for values in (c, r, weight, highest))
    found = [_search_delta(v, n, w, high, level) for v, n, w, high in zip(*flat, strict=True)]
    return np.array(found, dtype=np.float64).reshape(c.shape)


@njit(cache=True)
def _search_delta(v: int, r: int, weight: float, high: float, level: float) -> float:
    """Return the largest rejected ε by bisection below `high`, its value at δ = 0."""
    low = 0.0
    if high <= 0.0 or worst_chance(v, r, weight, 0.0) > level:
        return 0.0
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        if worst_chance(v, r, weight, middle) <= level:
            low = middle
        else:
            high = middle
    return low


@njit(parallel=True, cache=True)
def _search_delta_lanes(
    correct: Ints,
    guesses: Ints,
    weight: Floats,
    highest: Floats,
    level: float,
) -> Floats:
    """Search every lane on its own."""
    result = np.zeros(correct.size)
    for lane in prange(correct.size):
        result[lane] = _search_delta(
            correct[lane], guesses[lane], weight[lane], highest[lane], level
        )
    return result


@njit(cache=True)
def worst_chance(v: int, r: int, weight: float, epsilon: float) -> float:
    """Return the largest chance of v of r correct guesses under (ε, δ), with weight 2 m δ."""
    if v == 0:
        return 1.0
    mode = int((r + 1) / (1.0 + math.exp(-epsilon)))
    top = v
    if v > mode and _log_mass(v, r, epsilon) < -120.0:
        # so little mass changes no sum: start the walk where it begins to count
        low = mode
        while top - low > 1:
            middle = (low + top) // 2
            if _log_mass(middle, r, epsilon) < -120.0:
                top = middle
            else:
                low = middle
    first = math.exp(_log_mass(top, r, epsilon))
    alpha, below, mass = 0.0, 0.0, first
    for k in range(top - 1, -1, -1):
        mass *= (k + 1.0) / (r - k) * math.exp(-epsilon)
        below += mass
        alpha = max(alpha, below / (v - k))
        if k < mode and mass <= 1e-18 * below:
            break
    if v <= mode:
        return 1.0 - below + weight * alpha
    beta, mass = 0.0, first if top == v else 0.0
    for k in range(v, r + 1):
        beta += mass
        mass *= (r - k) / (k + 1.0) * math.exp(epsilon)
        if mass <= 1e-18 * beta:
            break
    return beta + weight * alpha


@njit(cache=True)
def _log_mass(k: int, r: int, epsilon: float) -> float:
    """Return the log-probability of k correct of r guesses, each with odds e^ε."""
    choices = math.lgamma(r + 1.0) - math.lgamma(k + 1.0) - math.lgamma(r - k + 1.0)
    return choices - (r - k) * epsilon - r * math.log1p(math.exp(-epsilon))
