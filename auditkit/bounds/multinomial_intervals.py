"""Simultaneous intervals for the probabilities of outcomes, as good as counts are large."""

import math

import numpy as np
from scipy.special import chdtri, gammaln, xlogy

from auditkit._types import Floats, Ints


def goodman(counts: Ints, level: float) -> tuple[Floats, Floats]:
    """Return Goodman's simultaneous intervals for the probabilities of all outcomes.

    Parameters
    ----------
    counts : ndarray of shape (outcomes,)
        How often each outcome was seen.
    level : float
        How often any of the probabilities lies outside, where counts are large.

    Returns
    -------
    low, high : ndarray

    References
    ----------
    Goodman, "On simultaneous confidence intervals for multinomial proportions", 1965.

    Examples
    --------
    >>> goodman(np.array([60, 40]), 0.05)[0].round(3)
    array([0.488, 0.298])
    """
    trials = counts.sum()
    quantile = float(chdtri(1, level / len(counts)))
    spread = np.sqrt(quantile * (quantile + 4.0 * counts * (trials - counts) / trials))
    middle, width = quantile + 2.0 * counts, 2.0 * (trials + quantile)
    return (middle - spread) / width, (middle + spread) / width


def sison_glaz(counts: Ints, level: float) -> tuple[Floats, Floats]:
    """Return the simultaneous intervals of Sison and Glaz for the probabilities of all outcomes.

    Parameters
    ----------
    counts, level
        As in `goodman`.

    Returns
    -------
    low, high : ndarray
        Of one width for all outcomes, but for limits below 0 and above 1.

    References
    ----------
    Sison and Glaz, "Simultaneous confidence intervals and sample size determination for multinomial
    proportions", 1995.

    Examples
    --------
    >>> sison_glaz(np.array([60, 40]), 0.05)[0].round(3)
    array([0.51, 0.31])
    """
    trials = int(counts.sum())
    narrow, wide = -1, min(math.isqrt(trials) + 1, trials)
    while wide < trials and _all_within(counts, wide) < 1.0 - level:
        narrow, wide = wide, min(2 * wide, trials)
    # the first is too narrow, the second wide enough
    while wide - narrow > 1:
        middle = (narrow + wide) // 2
        if _all_within(counts, middle) < 1.0 - level:
            narrow = middle
        else:
            wide = middle
    below = max(wide - 1, 0)
    less, more = (_all_within(counts, reach) for reach in (below, wide))
    between = (1.0 - level - less) / (more - less) if more > less else 0.0
    low = np.maximum((counts - below) / trials, 0.0)
    return low, np.minimum((counts + below + 2.0 * between) / trials, 1.0)


def _all_within(counts: Ints, reach: int) -> float:
    """Return the chance that new counts all lie within `reach` of those that were seen.

    New counts are multinomial with the shares seen: Poisson counts, given their total. The law of
    the total of truncated Poisson counts is taken from its first four moments, by Edgeworth.
    """
    trials = float(counts.sum())
    log_inside, moments = 0.0, np.zeros(4)
    for count in counts[counts > 0].astype(np.float64):
        span = min(reach, math.ceil(12.0 * math.sqrt(count)) + 40)  # beyond it nothing is left
        offsets = np.arange(-min(span, count), span + 1.0)
        log_weights = xlogy(count + offsets, count) - count - gammaln(count + offsets + 1.0)
        weights = np.exp(log_weights)
        inside = float(weights.sum())
        log_inside += math.log(inside)
        mean = float(weights @ offsets) / inside
        central = [float(weights @ (offsets - mean) ** power) / inside for power in (2, 3, 4)]
        moments += [mean, central[0], central[1], central[2] - 3.0 * central[0] ** 2]
    shift, variance, third, fourth = moments.tolist()
    log_total = gammaln(trials + 1.0) - trials * math.log(trials) + trials
    if variance == 0.0:  # no room to move: the total is right for sure
        return float(math.exp(log_inside + log_total))
    z = -shift / math.sqrt(variance)
    skew, excess = third / variance**1.5, fourth / variance**2
    density = math.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi * variance)
    density *= (
        1.0
        + skew * (z**3 - 3.0 * z) / 6.0
        + excess * (z**4 - 6.0 * z**2 + 3.0) / 24.0
        + skew**2 * (z**6 - 15.0 * z**4 + 45.0 * z**2 - 15.0) / 72.0
    )
    return float(math.exp(log_inside + log_total) * density)
