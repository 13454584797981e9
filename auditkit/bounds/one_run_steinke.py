"""The δ-term of the paper that started one-run audits, kept to reproduce what papers report.

`one_run` takes it with ``method="steinke"``. What it gives lies below the exact bound, and at
confidences below 0.2 it is no bound.
"""

import math

import numpy as np
from numba import njit, prange

from auditkit._types import Floats, Ints

FEW = 16  # lanes that are done before a second thread has woken up


def steinke(
    c: Ints,
    r: Ints,
    m: Ints,
    delta: float,
    level: float,
    highest: Floats,
) -> Floats:
    """Return the largest ε of each count that Theorem 5.2 rejects, below its value at δ = 0.

    Under (ε, δ)-DP the number of correct guesses is at least v with probability at most
    ``β(v) + 2 m δ α(v)``, where β is the tail of a binomial law with chance ``1 / (1 + e^-ε)`` and
    α(v) the largest of ``(β(v - i) - β(v)) / i``.

    The δ-term is the theorem's own. For few guesses and events that are almost certain it is too
    small: three fair coins and three guesses get at least one right with probability
    7/8 + 0.875 δ under the best (0, δ)-DP mechanism, and the theorem allows 7/8 + 0.75 δ.

    References
    ----------
    Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
    Theorem 5.2.
    """
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
