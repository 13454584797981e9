"""How many correct guesses may be kept when the examples alone betray some memberships.

The paper keeps a correct guess with chance e^-shift, whatever μ is tested. But the more a mechanism
leaks, the less a shift adds to what a guess can gain. Here is the largest chance that the paper's
own proof allows.
"""

from functools import lru_cache
from math import exp, sqrt

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats
from auditkit.bounds.tradeoff import normal_cdf

STEPS = 24  # values of the threshold that are tried before the best of them is refined
NARROWINGS = 24  # of the interval around it, each by the golden ratio
LOWEST = -36.0  # threshold
SMALL = 0.1  # μ below which the chance is that of 0
SPARED = 1e-9  # off the chance, for what rounding and the last interval leave open
NODES = 128  # of a table, a unit of shift and a unit of μ
FAR = 8.0  # a larger shift is taken for one of 40


def sharp_keep(shifts: ArrayLike, mu: float) -> Floats:
    r"""Return the chance to keep a correct guess when μ-Gaussian DP is tested.

    Parameters
    ----------
    shifts : array_like of float
        The size of the log-odds of membership of each example.
    mu : float
        The hypothesis, at least 0.

    Returns
    -------
    ndarray
        In (0.5, 1], for each shift. It falls with the shift and grows with μ.

    Notes
    -----
    Let a guess be made on an example with chance :math:`q` together with any event. Without a shift
    it is right, together with that event, with chance at most :math:`h(q)`, where
    :math:`h = \Phi(z + \mu)` at :math:`q = \Phi(z + \mu) + \Phi(z)`. With a shift s it is at most
    :math:`H(q)`, that of the likelihood-ratio test with prior :math:`\pi = \mathrm{sigmoid}(s)`:
    :math:`H = \pi\Phi(z + \mu) + (1-\pi)\Phi(z - 2s/\mu + \mu)` where
    :math:`q - H = (1-\pi)\Phi(z) + \pi\Phi(z - 2s/\mu)`. Kept with chance b it is right with chance
    at most :math:`b H(q)`. Lemma 1 of the paper asks for :math:`h(q)`, its :math:`f'(q)`, and the
    rest of the proof for nothing else. So :math:`b = \min_q h(q) / H(q)` will do, and no larger one
    will. The paper's :math:`e^{-s}` is smaller for every μ. For pure ε-DP the same minimum is
    :math:`(1 + e^{-\varepsilon-s}) / (1 + e^{-\varepsilon})`, as in Theorem 5.1.

    References
    ----------
    Ceberé et al., "Privacy Auditing with Zero (0) Training Run", Lemma 1 and Theorem 5.1.2.

    Examples
    --------
    >>> sharp_keep([0.0, 1.0, 2.0], mu=0.4).round(3)
    array([1.   , 0.784, 0.657])
    >>> np.exp([-0.0, -1.0, -2.0]).round(3)
    array([1.   , 0.368, 0.135])
    """
    sizes = _check.at_least("shifts", shifts, 0.0)
    mu = _check.scalar("mu", mu, least=0.0)
    return keep_chances(sizes.ravel(), mu).reshape(sizes.shape)


class KeepTable:
    """The chances for many shifts, at one μ after another.

    Shifts are rounded up and μ down to a multiple of 1/128, which makes the chances smaller: by
    0.03 at μ = 0.1, and by less at larger μ.
    """

    def __init__(self, shifts: Floats) -> None:
        self.place = np.minimum(np.ceil(shifts * NODES), FAR * NODES + 1).astype(np.int64)

    def at(self, mu: float) -> Floats:
        """Return the chance for each shift."""
        return _column(int(mu * NODES))[self.place]


@lru_cache(maxsize=2048)
def _column(node: int) -> Floats:
    """Return the chances of all nodes at one μ."""
    nodes = np.append(np.arange(FAR * NODES + 1) / NODES, 40.0)
    return keep_chances(nodes, node / NODES)


@njit(cache=True)
def keep_chances(shifts: Floats, mu: float) -> Floats:
    """Return the chance for every shift."""
    kept = np.empty(shifts.size)
    for place, shift in enumerate(shifts):
        # the chance of μ = 0 is smaller; for small μ events matter that are too rare for a float
        if mu < SMALL:
            kept[place] = 0.5 * (1.0 + exp(-shift))
        else:
            kept[place] = _smallest(shift, mu)
    return kept


@njit(cache=True)
def _smallest(shift: float, mu: float) -> float:
    """Return the smallest ratio over the threshold of the likelihood-ratio test.

    At the highest threshold the event is everything that can happen. Far below it only outputs
    count that tell more than any shift, and the ratio is 1.
    """
    if shift == 0.0:
        return 1.0
    highest = shift / mu - 0.5 * mu
    best, where = _ratio(highest, shift, mu), highest
    # above 9 nothing is left to happen, below -36 hardly a float
    top, bottom = min(highest, 9.0), LOWEST
    step = (top - bottom) / STEPS
    for place in range(STEPS):
        ratio = _ratio(top - place * step, shift, mu)
        if ratio < best:
            best, where = ratio, top - place * step
    low, high = where - step, min(where + step, highest)
    golden = 0.5 * (sqrt(5.0) - 1.0)
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = _ratio(left, shift, mu), _ratio(right, shift, mu)
    for _ in range(NARROWINGS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = _ratio(left, shift, mu)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = _ratio(right, shift, mu)
    best = min(best, at_left, at_right)
    return best - SPARED


@njit(cache=True)
def _ratio(z: float, shift: float, mu: float) -> float:
    """Return h(q) / H(q) where the test has its threshold at z."""
    member = 1.0 / (1.0 + exp(-shift))
    other = z - 2.0 * shift / mu
    right = member * normal_cdf(z + mu) + (1.0 - member) * normal_cdf(other + mu)
    mass = right + (1.0 - member) * normal_cdf(z) + member * normal_cdf(other)
    if right <= 0.0:
        return 1.0
    # Newton for Φ(x + μ) + Φ(x) = q, kept inside an interval; the sum at most 1 has x <= -μ/2
    low, high = -45.0 - mu, -0.5 * mu
    x = max(min(z, high), low)
    for _ in range(60):
        excess = normal_cdf(x + mu) + normal_cdf(x) - mass
        if excess > 0.0:
            high = x
        else:
            low = x
        slope = (exp(-0.5 * (x + mu) ** 2) + exp(-0.5 * x * x)) / sqrt(2.0 * np.pi)
        following = x - excess / slope if slope > 0.0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - x) < 1e-12:
            break
        x = following
    return normal_cdf(x + mu) / right
