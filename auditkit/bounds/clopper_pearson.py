"""Exact limits on a rate from a count, by Clopper and Pearson."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from auditkit._types import Floats


def lower_limit(hits: ArrayLike, trials: ArrayLike, level: ArrayLike) -> Floats:
    """Return the lower limit on a rate, which exceeds it with probability `level` at most.

    Parameters
    ----------
    hits, trials : int or array
        Successes among independent trials of one rate. Hits below 0 count as none.
    level : float or array
        Of this limit alone.

    Returns
    -------
    ndarray
        0 without a hit.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits", 1934.

    Examples
    --------
    >>> lower_limit([0, 60], 100, 0.05).round(3)
    array([0.   , 0.513])
    """
    successes = np.asarray(hits)
    some = successes > 0
    failures = np.asarray(trials) - successes
    return np.where(some, betaincinv(np.where(some, successes, 1), failures + 1.0, level), 0.0)


def upper_limit(hits: ArrayLike, trials: ArrayLike, level: ArrayLike) -> Floats:
    """Return the upper limit on a rate, which falls short of it with probability `level` at most.

    Parameters
    ----------
    hits, trials, level
        As in `lower_limit`.

    Returns
    -------
    ndarray
        1 where every trial, or no trial, is a hit.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits", 1934.

    Notes
    -----
    It is taken from the upper side of the beta distribution, so that a tiny level keeps its digits.

    Examples
    --------
    >>> upper_limit([60, 100], 100, 0.05).round(3)
    array([0.682, 1.   ])
    """
    successes = np.asarray(hits)
    some = successes < trials
    failures = np.where(some, np.asarray(trials) - successes, 1)
    return np.where(some, betainccinv(np.where(some, successes, 0) + 1.0, failures, level), 1.0)


def limits(hits: ArrayLike, trials: ArrayLike, level: ArrayLike) -> tuple[Floats, Floats]:
    """Return `lower_limit` and `upper_limit`, each at the whole of `level`."""
    return lower_limit(hits, trials, level), upper_limit(hits, trials, level)
