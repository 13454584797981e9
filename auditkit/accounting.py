"""What theory promises: upper bounds for DP-SGD and for votes, and the noise for a promise.

For DP-SGD the numbers come from dp-accounting's accountant of privacy loss distributions. Its Rényi
accountant is not used: for a plain Gaussian under substitute adjacency it answers with the
add/remove number (12.30 where 28.37 is right). Without subsampling the closed form of the Gaussian
mechanism answers, exactly and for every δ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, inf, log, log1p, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtri

from auditkit import _check
from auditkit._types import Floats
from auditkit.bounds.tradeoff import GaussianDP

# How far one record moves the sum of clipped gradients, in clipping norms.
_SENSITIVITY = {"add/remove": 1.0, "substitute": 2.0}

# The accountant convolves with Fourier transforms in double precision: probabilities below about
# 1e-13 are noise, and ε at such a δ may come out too small.
_LEAST_DELTA = 1e-10
_MOST_STEPS = 100_000_000  # with more the accountant does not come back
_NOISE = 1e-12

# Beyond these its grid of privacy losses gets too wide to be of use, and so does ε.
_LEAST_NOISE = 0.02
_LARGEST_EPSILON = 1e3


def dp_sgd_epsilon(
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    adjacency: Literal["add/remove", "substitute"],
) -> float:
    """Return an upper bound on ε for DP-SGD with Poisson sampling.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm, above 0. Below a sampling rate of 1
        it has to be at least 0.02.
    sampling_rate : float
        Probability q in (0, 1] that a record is in a batch. With 1 the answer is exact.
    steps : int
        Number of noisy steps.
    delta : float
        The δ, in (0, 1). Below a sampling rate of 1 it has to be at least 1e-10.
    adjacency : {"add/remove", "substitute"}
        Which datasets count as neighbours.

    Returns
    -------
    float
        ε, too large by about 1e-5 of its value where q is below 1, and by up to 1e-3 in hard cases,
        where the accountant's grid would pass some 100,000 points.

    Notes
    -----
    The accountant rounds privacy losses to a grid, upwards. The grid is refined until ε changes by
    less than a part in 10,000: the error falls with the square of the interval.

    References
    ----------
    Doroshenko et al., "Connect the Dots: Tighter Discrete Approximations of Privacy Loss
    Distributions", 2022. Dong, Roth and Su, "Gaussian differential privacy", 2022, Corollary 2.13,
    for q = 1.

    Examples
    --------
    >>> run = dict(noise_multiplier=10.0, sampling_rate=1.0, steps=500, delta=1e-5)
    >>> round(dp_sgd_epsilon(**run, adjacency="add/remove"), 3)
    11.48
    >>> round(dp_sgd_epsilon(**run, adjacency="substitute"), 3)
    28.373
    """
    sigma = _check.positive("noise_multiplier", noise_multiplier)
    q, count, goal, sensitivity = _checked(sampling_rate, steps, delta, adjacency)
    if q == 1.0:
        return float(GaussianDP(sensitivity * sqrt(count) / sigma).epsilon(goal))
    if sigma < _LEAST_NOISE:
        raise ValueError(
            f"noise_multiplier must be at least {_LEAST_NOISE:g} with a sampling_rate below 1, "
            f"got {noise_multiplier!r}"
        )
    return _refined(sigma, q, count, goal, adjacency)[0]


def noise_multiplier_for(
    epsilon: float,
    *,
    sampling_rate: float,
    steps: int,
    delta: float,
    adjacency: Literal["add/remove", "substitute"],
) -> float:
    """Return the least noise multiplier for which `dp_sgd_epsilon` is at most `epsilon`.

    Parameters
    ----------
    epsilon : float
        The ε to promise, above 0. Below a sampling rate of 1 it may be at most 1,000.
    sampling_rate, steps, delta, adjacency
        As in `dp_sgd_epsilon`.

    Returns
    -------
    float
        The noise multiplier, too large by about a part in 10,000. `dp_sgd_epsilon` of it never
        exceeds `epsilon`. Below a sampling rate of 1 it is never under 0.02, though `delta` may be
        above the chance that a record is sampled at all, and then no noise is needed.

    References
    ----------
    Bu et al., "Deep Learning with Gaussian Differential Privacy", 2020, for the first guess.

    Examples
    --------
    >>> sigma = noise_multiplier_for(
    ...     1.0, sampling_rate=1.0, steps=500, delta=1e-5, adjacency="substitute"
    ... )
    >>> round(sigma, 2)
    166.84
    """
    target = _check.positive("epsilon", epsilon)
    q, count, goal, sensitivity = _checked(sampling_rate, steps, delta, adjacency)
    mu = _gaussian_mu(target, goal)
    if q == 1.0:
        sigma = sensitivity * sqrt(count) / mu
        while GaussianDP(sensitivity * sqrt(count) / sigma).epsilon(goal) > target:
            sigma *= 1.0 + 1e-15
        return sigma

    if target > _LARGEST_EPSILON:
        raise ValueError(
            f"epsilon must be at most {_LARGEST_EPSILON:g} with a sampling_rate below 1, "
            f"got {epsilon!r}"
        )

    # Over many steps the run is nearly μ-GDP with μ = s q √(T (e^(1/σ²) - 1)).
    guess = -0.5 * log(log1p((mu / (sensitivity * q)) ** 2 / count))
    return _search_noise(target, guess, q, count, goal, adjacency)


def group_privacy(epsilon_at: Callable[[float], float], delta: float) -> float:
    """Return the ε under substitute adjacency that follows from add/remove, whatever the algorithm.

    A mechanism that is (ε, δ')-DP under add/remove is (2ε, (1 + e^ε) δ')-DP under substitute. The
    curve is entered at the largest δ' for which the second number is at most `delta`.

    Parameters
    ----------
    epsilon_at : callable
        The curve δ' → ε under add/remove, which must not rise with δ'. It is asked for δ' down to
        about ``delta * exp(-ε)``.
    delta : float
        The δ under substitute adjacency, in (0, 1).

    Returns
    -------
    float
        An upper bound on ε, infinite if no δ' above 1e-300 will do. An accountant for the mechanism
        itself is far tighter.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014; "Beyond Membership:
    Limitations of Add/Remove Adjacency in Differential Privacy", Theorem 4.1.

    Examples
    --------
    >>> from auditkit.bounds.tradeoff import GaussianDP
    >>> add_remove = GaussianDP(500**0.5 / 166.86).epsilon
    >>> round(add_remove(1e-5), 3), round(group_privacy(add_remove, 1e-5), 3)
    (0.469, 1.002)
    """
    if not callable(epsilon_at):
        raise TypeError(f"epsilon_at must be a function from δ to ε, got {epsilon_at!r}")
    goal = log(_check.fraction("delta", delta))

    def excess(log_delta: float) -> float:
        returned = epsilon_at(exp(log_delta))
        if not isinstance(returned, int | float | np.number) or not returned >= 0.0:
            raise ValueError(f"epsilon_at must return numbers of at least 0, got {returned!r}")
        value = float(returned)
        return log_delta + float(np.logaddexp(0.0, value)) - goal

    low, reach = goal - log(2.0), 1.0  # 1 + e^ε is at least 2
    high, over = low, excess(low)
    # A step of `over` down from above never passes the largest δ' that will do. Longer ones soon
    # do, and then the root lies between; where they end at an infinite ε they have gone too far.
    while over > 1e-12:
        step = low - reach * over
        beyond = excess(step) if step > log(1e-300) else inf
        if np.isfinite(beyond):
            high, low, over, reach = low, step, beyond, 2.0 * reach
        elif reach > 1.0:
            reach = 0.5
        else:
            return inf
    if over < 0.0 < excess(high):
        root = float(brentq(excess, low, high, xtol=1e-10)) - 1e-9
        low = root if excess(root) <= 0.0 else low
    return 2.0 * float(epsilon_at(exp(low)))


def data_independent_renyi(sigma: float, orders: ArrayLike) -> Floats:
    r"""Bound the Rényi divergence of noisy argmax from above, whatever the votes.

    One teacher that changes its mind moves one vote: two counts change by one, a distance of
    :math:`\sqrt 2`. The Gaussian mechanism with that sensitivity has divergence
    :math:`\alpha / \sigma^2`, and the argmax is post-processing. (With sensitivity 1, as for adding
    or removing one vote, it would be half of that; the exact divergence after moving a vote
    exceeds the half.)

    Parameters
    ----------
    sigma : float
        Standard deviation of the Gaussian noise on each count.
    orders : array
        Orders above 0 and not 1.

    Returns
    -------
    ndarray
        An upper bound an order.

    References
    ----------
    Papernot et al. (2018), "Scalable private learning with PATE", Proposition 8. Mironov (2017),
    "Rényi differential privacy", Corollary 3.

    Examples
    --------
    >>> print(data_independent_renyi(2.0, [1.5, 2, 5]))
    [0.375 0.5   1.25 ]
    """
    sigma = _check.positive("sigma", sigma)
    return _check.orders("orders", orders) / sigma**2


def data_dependent_renyi(votes: ArrayLike, sigma: float, orders: ArrayLike) -> Floats:
    r"""Bound the Rényi divergence of noisy argmax from above, given the votes.

    Where most teachers agree the label hardly depends on one of them. The bound is for the
    divergence of the law of the given votes from that of any neighbour, and never above
    `data_independent_renyi`. It depends on the votes, so it must not be published without
    protection.

    It says nothing about the divergence the other way round, of the neighbour from the given votes.
    That one can be larger: for the votes [109, 100], sigma 1 and order 2 the bound is 4.5e-6, and
    the neighbour [108, 101] diverges by 1.4e-3. For both ways take the larger of the bounds at both
    histograms.

    Parameters
    ----------
    votes : array of shape (..., classes)
        Histograms of votes.
    sigma : float
        Standard deviation of the Gaussian noise on each count.
    orders : array
        Orders above 0 and not 1.

    Returns
    -------
    ndarray of shape (..., orders)
        An upper bound an order.

    Notes
    -----
    With q at least the probability that another class than the leading one is released, and
    guarantees :math:`\varepsilon_1, \varepsilon_2` at orders :math:`\mu_1, \mu_2`,

    .. math:: \frac{1}{\alpha-1} \log\left((1-q) A^{\alpha-1} + q B^{\alpha-1}\right), \qquad
        A = \frac{1-q}{1-(q e^{\varepsilon_2})^{(\mu_2-1)/\mu_2}}, \quad
        B = \frac{e^{\varepsilon_1}}{q^{1/(\mu_1-1)}}

    for :math:`\alpha \le \mu_1` and q small enough. The orders are
    :math:`\mu_2 = \sigma\sqrt{\log(1/q)}` and :math:`\mu_1 = \mu_2 + 1`, and q is the union bound
    over the other classes.

    References
    ----------
    Papernot et al. (2018), "Scalable private learning with PATE", Theorem 6 and Propositions 7
    to 10.

    Examples
    --------
    >>> print(data_dependent_renyi([200, 20, 10, 10, 10], 40.0, [10]).round(6))
    [0.000696]
    """
    histograms = _check.at_least("votes", votes, 0.0)
    _check.classes("votes", histograms)
    sigma = _check.positive("sigma", sigma)
    alpha = _check.orders("orders", orders)
    independent = np.broadcast_to(alpha / sigma**2, histograms.shape[:-1] + alpha.shape)
    log_q = _log_other(histograms, sigma)
    log_q = log_q.reshape(log_q.shape + (1,) * alpha.ndim)
    mu2 = sigma * np.sqrt(-log_q)
    mu1 = mu2 + 1.0
    with np.errstate(divide="ignore", invalid="ignore"):  # outside the theorem, and masked below
        log_a = np.log1p(-np.exp(log_q)) - np.log1p(
            -np.exp((log_q + mu2 / sigma**2) * (mu2 - 1.0) / mu2)
        )
        log_b = mu1 / sigma**2 - log_q / (mu1 - 1.0)
        small_enough = log_q <= (mu2 - 1.0) * mu2 / sigma**2 - mu2 * (
            np.log(mu1 / (mu1 - 1.0)) + np.log(mu2 / (mu2 - 1.0))
        )
        dependent = np.logaddexp(
            np.log1p(-np.exp(log_q)) + (alpha - 1.0) * log_a, log_q + (alpha - 1.0) * log_b
        ) / (alpha - 1.0)
    holds = (mu2 > 1.0) & (alpha > 1.0) & (alpha <= mu1) & small_enough & (-log_q > mu2 / sigma**2)
    return np.where(holds, np.fmin(dependent, independent), independent)


def _checked(
    sampling_rate: float, steps: int, delta: float, adjacency: str
) -> tuple[float, int, float, float]:
    q = _check.rate("sampling_rate", sampling_rate)
    count = _check.scalar("steps", steps, least=1)
    if count != int(count) or count > _MOST_STEPS:
        raise ValueError(f"steps must be a whole number up to {_MOST_STEPS:,}, got {steps!r}")
    goal = _check.fraction("delta", delta)
    if q < 1.0 and goal < _LEAST_DELTA:
        raise ValueError(
            f"delta must be at least {_LEAST_DELTA:g} with a sampling_rate below 1, where the "
            f"accountant is exact to about 1e-13, got {delta!r}"
        )
    return q, int(count), goal, _SENSITIVITY[_check.choice("adjacency", adjacency, _SENSITIVITY)]


def _search_noise(
    epsilon: float, guess: float, q: float, steps: int, delta: float, adjacency: str
) -> float:
    """Return the noise for `epsilon`: a search on a coarse grid, then steps by its slope."""
    start = max(exp(guess), _LEAST_NOISE)
    coarse = _refined(start, q, steps, delta, adjacency, 1e-2)[1]

    def rough(x: float) -> float:
        accountant = _accountant(exp(x), q, steps, adjacency, coarse)
        return log(max(float(accountant.get_epsilon(delta)), 1e-9) / epsilon)

    def excess(x: float) -> float:
        return log(max(_refined(exp(x), q, steps, delta, adjacency)[0], 1e-9) / epsilon)

    low, high = _bracket(rough, guess, log(_LEAST_NOISE))
    if low == high:
        return _LEAST_NOISE
    x = float(brentq(rough, low, high, xtol=1e-4))
    slope = (rough(x + 0.01) - rough(x)) / 0.01
    for _ in range(20):
        over = excess(x)
        if -1e-4 <= over <= 0.0:
            break
        x -= (over + 3e-5) / slope
    while excess(x) > 0.0:
        x += 1e-4
    return exp(x)


def _refined(
    sigma: float, q: float, steps: int, delta: float, adjacency: str, change: float = 1e-4
) -> tuple[float, float]:
    """Return ε and the interval of a grid fine enough; each grid gives an upper bound."""
    delta -= _NOISE  # what is left is an upper bound in spite of rounding
    shift = _SENSITIVITY[adjacency] / sigma
    reach = shift * (shift / 2.0 + 10.0)  # of the privacy losses of a step, about
    spread = q * shift * exp(min(0.5 / sigma**2, 100.0))  # their standard deviation, about
    interval = max(min(1e-2, spread / 10.0), reach / 200_000)
    best = float(_accountant(sigma, q, steps, adjacency, interval).get_epsilon(delta))
    while interval > (finest := max(reach / 200_000, best / 400_000)):
        interval = max(interval / sqrt(10.0), finest)
        finer = float(_accountant(sigma, q, steps, adjacency, interval).get_epsilon(delta))
        if best - finer <= max(change * finer, 1e-7):
            return min(best, finer), interval
        best = finer
    return best, interval


@lru_cache(maxsize=8)
def _accountant(sigma: float, q: float, steps: int, adjacency: str, interval: float) -> Any:
    # The accountant is kept: a curve asks for many δ. It is imported here because dp-accounting
    # takes a second to load, and the closed form does without it.
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    relation = {
        "add/remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        "substitute": dp_accounting.NeighboringRelation.REPLACE_ONE,
    }[adjacency]
    accountant = PLDAccountant(
        neighboring_relation=relation, value_discretization_interval=interval
    )
    step = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    return accountant.compose(step, steps)


def _gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ for which μ-GDP implies (ε, δ)-DP."""

    def excess(log_mu: float) -> float:
        value = float(GaussianDP(exp(log_mu)).epsilon(delta))
        return log(max(value, 1e-12) / epsilon)

    z = float(ndtri(delta))
    guess = z + sqrt(z * z + 2.0 * epsilon)  # where Φ(μ/2 - ε/μ), which is above δ(ε), is δ
    low, high = _bracket(lambda x: excess(-x), -log(guess))
    return exp(float(brentq(excess, -high, -low, xtol=1e-14, rtol=1e-14)))


def _bracket(
    falling: Callable[[float], float], guess: float, least: float = -inf
) -> tuple[float, float]:
    """Return two points around the root of a falling function, or twice `least` if it is lower."""
    step = 0.05
    low = high = max(guess, least)
    value = falling(low)
    while value > 0.0:
        low, high = high, high + step
        value = falling(high)
        step *= 3.0
    if high > low:
        return low, high
    while value <= 0.0 and low > least:
        low, high = max(low - step, least), low
        value = falling(low)
        step *= 3.0
    return (low, high) if value > 0.0 else (least, least)


def _log_other(histograms: Floats, sigma: float) -> Floats:
    """Bound the log-probability that another class than the leading one wins."""
    leader = histograms.argmax(axis=-1)[..., None]
    gaps = np.take_along_axis(histograms, leader, axis=-1) - histograms
    log_tails = log_ndtr(-gaps / (sqrt(2.0) * sigma))
    np.put_along_axis(log_tails, leader, -np.inf, axis=-1)
    # the leader wins at least as often as any other class
    cap = log1p(-1.0 / histograms.shape[-1])
    log_q: Floats = np.minimum(logsumexp(log_tails, axis=-1), cap)
    return log_q
