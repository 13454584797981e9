"""DP-SGD on the worst pair of datasets that substitution allows, with its exact laws.

All records but one have no gradient. The one is z, whose clipped gradient is as long as the
clipping norm allows and always the same, or z', whose gradient points the other way. Nothing is
left of the training but a number on a line, in which one clipping norm is the unit: a step adds 1
for z or -1 for z' if the record is sampled, and Gaussian noise in any case.

This is scenario S1 of SUB. An adversary who sees only the final sum is `FinalSum`; one who sees
every step is simulated by `simulate_steps` beside it, and it is this one that an accountant bounds.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import binom

from auditkit import _check
from auditkit._types import Bools, Floats, Randomness
from auditkit.bounds.tradeoff import Numbers, TradeOff

_FAR = 40.0  # standard deviations after which a double holds nothing of a Gaussian


class FinalSum(TradeOff):
    r"""The sum of all noisy steps on the worst-case pair, and how well it tells z from z'.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation σ of a step's noise over the clipping norm, above 0.
    sampling_rate : float
        Probability q in (0, 1] that a record is in a batch.
    steps : int
        Number T of steps.

    Notes
    -----
    The record is sampled K times, where K is binomial. Given K = k the sum is
    :math:`\mathcal N(\pm k, T \sigma^2)`. The larger the sum, the more it speaks for z: a Gaussian
    is totally positive of order 2 in its argument and its mean, and so is the pair of laws of
    :math:`\pm K`, hence their mixture has a monotone likelihood ratio. The best test is therefore
    a cut through the sum, and the trade-off curve, ε and δ below are exact up to rounding, not
    bounds. The two worlds mirror each other, so that the curve is its own inverse.

    The ε of the final sum lies below that of all steps together, for which an accountant stands.
    With q = 1 the two agree.

    References
    ----------
    SUB, Section 3.1, eqs. (2) and (3). Karlin (1968), "Total positivity", for the ratio.

    Examples
    --------
    >>> law = FinalSum(1.403, 0.0625, 500)
    >>> round(law.epsilon(1e-5), 3)
    9.811
    >>> sums = law.draw([0, 1], rng=0)
    >>> law.log_ratio(sums).round(1)
    array([-1. ,  1.3])
    """

    def __init__(self, noise_multiplier: float, sampling_rate: float, steps: int) -> None:
        self.noise_multiplier, self.sampling_rate, self.steps = _checked(
            noise_multiplier, sampling_rate, steps
        )
        self._spread = self.noise_multiplier * math.sqrt(self.steps)
        times = np.arange(self.steps + 1)
        # scipy warns of 0 log 0 where every step takes the record
        weights = (
            np.where(times == self.steps, 0.0, -np.inf)
            if self.sampling_rate == 1.0
            else binom.logpmf(times, self.steps, self.sampling_rate)
        )
        self._times = times[weights > -np.inf].astype(np.float64)
        self._log_weights = weights[weights > -np.inf]

    def draw(self, bits: ArrayLike, *, rng: Randomness) -> Floats:
        """Draw a final sum for each run; a run's bit is 0 if it has z, 1 if it has z'."""
        sign = _signs(bits)
        source = _check.generator("rng", rng)
        times = source.binomial(self.steps, self.sampling_rate, sign.size)
        return sign * times + self._spread * source.standard_normal(sign.size)

    def log_density(self, sums: ArrayLike, *, substitute: bool) -> Floats:
        """Return the log-density of a sum in the world of z, or of z' if `substitute`."""
        values = _check.numbers("sums", sums)
        mirrored = -values if _check.flag("substitute", substitute) else values
        flat = _log_mixture(mirrored.ravel(), self._times, self._log_weights, self._spread)
        return flat.reshape(values.shape)

    def log_ratio(self, sums: ArrayLike) -> Floats:
        """Return the log-likelihood ratio of z' to z: the score of scenario S1.

        It is high where z' was trained on, as all scores of the package are high where the canary
        was. SUB states the ratio the other way round.
        """
        return self.log_density(sums, substitute=True) - self.log_density(sums, substitute=False)

    def beta(self, alpha: ArrayLike) -> Numbers:
        """Return the smallest type-II error at type-I error `alpha`."""
        return _each(self._beta, _check.unit("alpha", alpha))

    def inverse(self, beta: ArrayLike) -> Numbers:
        """Return the smallest type-I error for `beta`; the curve is its own inverse."""
        return _each(self._beta, _check.unit("beta", beta))

    def delta(self, epsilon: ArrayLike) -> Numbers:
        """Return the smallest δ at ε."""

        def one(epsilon: float) -> float:
            cut = self._solve(lambda c: self._loss(c) - epsilon, 0.0)
            return math.exp(self._log_delta(cut, epsilon))

        return _each(one, _check.at_least("epsilon", epsilon, 0.0))

    def epsilon(self, delta: ArrayLike) -> Numbers:
        """Return the smallest ε at δ, infinite at 0."""

        def one(delta: float) -> float:
            if delta == 0.0:
                return math.inf
            goal = math.log(delta)
            if self._log_delta(0.0, 0.0) <= goal:
                return 0.0
            return self._loss(
                self._solve(lambda c: goal - self._log_delta(c, self._loss(c)), self._spread)
            )

        return _each(one, _check.unit("delta", delta))

    def cut(self, alpha: ArrayLike) -> Numbers:
        """Return the sum below which the best test with type-I error `alpha` says z'.

        As a threshold for `log_ratio` it is ``law.log_ratio(law.cut(alpha))``, fixed before any run
        is made.
        """
        return _each(self._cut, _check.fractions("alpha", alpha))

    def _cut(self, alpha: float) -> float:
        if alpha <= 0.5:
            error, goal = self._log_below, math.log(alpha)
        else:  # from the other side, where the smaller probability keeps its digits
            error, goal = self._log_above, math.log1p(-alpha)
        reach = _FAR * self._spread
        bracket = -reach, self.steps + reach
        return float(brentq(lambda c: error(c) - goal, *bracket, xtol=1e-13, rtol=1e-14))

    def _beta(self, alpha: float) -> float:
        if alpha in (0.0, 1.0):
            return 1.0 - alpha
        return math.exp(self._log_below(-self._cut(alpha)))

    def _loss(self, cut: float) -> float:
        """Return the log-likelihood ratio of z to z' at a sum."""
        return -float(self.log_ratio(cut))

    def _log_delta(self, cut: float, epsilon: float) -> float:
        """Return log(P(sum ≥ cut | z) - e^ε P(sum ≥ cut | z'))."""
        above, mirrored = self._log_above(cut), self._log_below(-cut)
        rest = -math.expm1(min(epsilon + mirrored - above, 0.0))
        return above + math.log(rest) if rest > 0.0 else -math.inf

    def _log_above(self, cut: float) -> float:
        """Return log P(sum ≥ cut | z)."""
        return self._mixed(log_ndtr((self._times - cut) / self._spread))

    def _log_below(self, cut: float) -> float:
        """Return log P(sum < cut | z)."""
        return self._mixed(log_ndtr((cut - self._times) / self._spread))

    def _mixed(self, logs: Floats) -> float:
        """Return the log of a mean over the times that the record is sampled, at most 0."""
        terms = self._log_weights + logs
        top = terms.max()
        return min(float(top + np.log(np.exp(terms - top).sum())), 0.0)

    def _solve(self, rising: Callable[[float], float], start: float) -> float:
        """Return the cut, at least 0, at which a function that rises from below 0 is 0."""
        if rising(0.0) >= 0.0:
            return 0.0
        high = max(start, self._spread)
        while rising(high) < 0.0:
            high *= 2.0
        return float(brentq(rising, 0.0, high, xtol=1e-13, rtol=1e-14))

    def _key(self) -> tuple[Any, ...]:
        return (self.noise_multiplier, self.sampling_rate, self.steps)

    def __repr__(self) -> str:
        return f"FinalSum({self.noise_multiplier!r}, {self.sampling_rate!r}, {self.steps!r})"


class Observations(NamedTuple):
    """What two adversaries have of the same runs, a column a snapshot.

    Attributes
    ----------
    sums : ndarray of shape (runs, snapshots)
        The sum of the steps so far, which is all that the hidden-state adversary gets.
    log_ratios : ndarray of shape (runs, snapshots)
        The log-likelihood ratio of z' to z over all steps so far, one by one: the best score of an
        adversary who sees each step.

    References
    ----------
    SUB, Table 1: hidden-state and visible-state.
    """

    sums: Floats
    log_ratios: Floats


def simulate_steps(
    bits: ArrayLike,
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    snapshots: Sequence[int] | None = None,
    rng: Randomness,
) -> Observations:
    """Run DP-SGD on the worst-case pair, all runs at once, a step at a time.

    Parameters
    ----------
    bits : array of shape (runs,)
        0 for a run with z, 1 for a run with z'.
    noise_multiplier, sampling_rate, steps
        As in `FinalSum`.
    snapshots : sequence of int, optional
        The steps after which to look, rising, from 1 to `steps`. By default the last.
    rng : Generator or int
        Source of randomness, or a seed for one.

    Returns
    -------
    Observations
        The sums, in clipping norms, and the log-likelihood ratios.

    References
    ----------
    SUB, Section 3.1 and Algorithm 1. Table 1 calls the adversary visible-state, the text lets it
    see the final sum: both are here.

    Examples
    --------
    >>> bits = np.arange(1000) % 2
    >>> seen = simulate_steps(bits, noise_multiplier=5.6, sampling_rate=0.25, steps=500, rng=0)
    >>> seen.sums.shape, bool(((seen.log_ratios[:, 0] > 0) == bits).mean() > 0.8)
    ((1000, 1), True)
    """
    sign = _signs(bits)
    sigma, q, count = _checked(noise_multiplier, sampling_rate, steps)
    looks = _snapshots(snapshots, count)
    source = _check.generator("rng", rng)
    sums, ratios = np.zeros(sign.size), np.zeros(sign.size)
    seen = Observations(np.empty((sign.size, len(looks))), np.empty((sign.size, len(looks))))
    for step in range(1, looks[-1] + 1):
        sampled = source.random(sign.size) < q
        _add_step(sums, ratios, sign, sampled, source.standard_normal(sign.size), sigma, q)
        if step in looks:
            column = looks.index(step)
            seen.sums[:, column], seen.log_ratios[:, column] = sums, ratios
    return seen


@njit(cache=True)
def _add_step(
    sums: Floats,
    ratios: Floats,
    sign: Floats,
    sampled: Bools,
    noise: Floats,
    sigma: float,
    q: float,
) -> None:
    """Add a step to the sums, and what it says for z' against z to the ratios."""
    precision = 1.0 / (sigma * sigma)
    absent = 1.0 - q
    offset = math.log(q) - 0.5 * precision
    for run in range(sums.size):
        step = sigma * noise[run]
        if sampled[run]:
            step += sign[run]
        sums[run] += step
        lean = step * precision
        if absent == 0.0:
            ratios[run] -= 2.0 * lean
        elif abs(lean) < 700.0:  # offset is below 0: nothing overflows
            ratios[run] += math.log(
                (absent + math.exp(offset - lean)) / (absent + math.exp(offset + lean))
            )
        else:
            away = abs(lean) + offset  # the other world's record is lost beside `absent`
            top = max(away, math.log(absent))
            size = top + math.log(math.exp(away - top) + math.exp(math.log(absent) - top))
            ratios[run] -= math.copysign(size - math.log(absent), lean)


@njit(cache=True)
def _log_mixture(values: Floats, means: Floats, log_weights: Floats, spread: float) -> Floats:
    """Return the log-density of a mixture of normal laws of one spread, for each value."""
    result = np.empty(values.size)
    scale = 0.5 / (spread * spread)
    for i in range(values.size):
        top = -np.inf
        for k in range(means.size):
            term = log_weights[k] - scale * (values[i] - means[k]) ** 2
            if term > top:
                top = term
        total = 0.0
        for k in range(means.size):
            term = log_weights[k] - scale * (values[i] - means[k]) ** 2 - top
            if term > -45.0:  # smaller terms are no part of a double
                total += math.exp(term)
        result[i] = top + math.log(total) - math.log(spread * math.sqrt(2.0 * math.pi))
    return result


def _checked(noise_multiplier: float, sampling_rate: float, steps: int) -> tuple[float, float, int]:
    sigma = _check.positive("noise_multiplier", noise_multiplier)
    q = _check.rate("sampling_rate", sampling_rate)
    return sigma, q, _check.whole("steps", steps, least=1)


def _signs(bits: ArrayLike) -> Floats:
    """Return 1 for a run with z and -1 for a run with z'."""
    return np.where(_check.members("bits", bits), -1.0, 1.0)


def _snapshots(snapshots: Sequence[int] | None, steps: int) -> list[int]:
    if snapshots is None:
        return [steps]
    looks = [_check.whole("snapshots", look, least=1) for look in snapshots]
    if not looks or looks[-1] > steps or any(a >= b for a, b in itertools.pairwise(looks)):
        raise ValueError(
            f"snapshots must be one or more rising steps from 1 to {steps}, got {snapshots!r}"
        )
    return looks


def _each(function: Callable[[float], float], values: Floats) -> Numbers:
    """Apply a function of one number to each of an array, and return a float for a single one."""
    result = np.empty(values.shape)
    for index, value in np.ndenumerate(values):
        result[index] = function(float(value))
    return float(result) if result.ndim == 0 else result
