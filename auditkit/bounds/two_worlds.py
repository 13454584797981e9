"""From the two error rates of a test between two worlds to ε.

Many runs are made with the canary and many without; a test says which is which. Differential
privacy limits how small its two error rates can be together.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.bounds.clopper_pearson import upper_limit
from auditkit.bounds.result import Bound, plain
from auditkit.bounds.tradeoff import GaussianDP
from auditkit.evidence import ErrorCounts

INDEPENDENT = (
    "What is counted are whole runs of the mechanism and not examples of one run: each on one of "
    "the same two datasets, independent of the others."
)
FIXED = "The test was fixed before it met the runs that it is counted on."
GAUSSIAN = (
    "The trade-off curve of the mechanism between the two worlds is that of Gaussian differential "
    "privacy for some μ; where it is not, as for subsampled noise in few steps, the number can "
    "exceed the true ε."
)

Limits: TypeAlias = Literal["clopper-pearson", "gaussian"]


@overload
def two_worlds(
    false_positives: int,
    negatives: int,
    false_negatives: int,
    positives: int,
    *,
    method: Literal["clopper-pearson", "gaussian"] = ...,
    delta: float = ...,
    confidence: float = ...,
    paper_convention: bool = ...,
) -> Bound[float]: ...
@overload
def two_worlds(
    false_positives: ArrayLike,
    negatives: ArrayLike,
    false_negatives: ArrayLike,
    positives: ArrayLike,
    *,
    method: Literal["clopper-pearson", "gaussian"] = ...,
    delta: float = ...,
    confidence: float = ...,
    paper_convention: bool = ...,
) -> Bound[Any]: ...
def two_worlds(
    false_positives: ArrayLike,
    negatives: ArrayLike,
    false_negatives: ArrayLike,
    positives: ArrayLike,
    *,
    method: Literal["clopper-pearson", "gaussian"] = "clopper-pearson",
    delta: float = 1e-5,
    confidence: float = 0.95,
    paper_convention: bool = False,
) -> Bound[Any]:
    r"""Bound ε from the errors of a test between two worlds.

    Both error rates get an upper limit by Clopper and Pearson. The confidence is joint: the level
    ``1 - confidence`` is split evenly over the two limits.

    Parameters
    ----------
    false_positives, negatives : int or array
        Runs without the canary that were taken for runs with it, and all runs without it.
    false_negatives, positives : int or array
        Runs with the canary that were taken for runs without it, and all runs with it. A world
        without runs is allowed; it proves nothing.
    method : {"clopper-pearson", "gaussian"}
        "clopper-pearson" needs no more than the definition of (ε, δ)-differential privacy.
        "gaussian" reads the limits as one point of a Gaussian trade-off curve, takes its μ and
        converts; it is larger, and holds on condition that the curve is Gaussian.
    delta : float
        The δ at which ε is stated. "gaussian" takes no 0: a Gaussian mechanism that leaks at all
        has no finite ε there.
    confidence : float
        Joint confidence of the two limits.
    paper_convention : bool
        Give each limit the whole level, as SUB does. The result then states the joint confidence
        that is left, ``2 * confidence - 1``.

    Returns
    -------
    Bound
        `details` hold the counts, the rates `fpr` and `fnr`, their limits `fpr_upper` and
        `fnr_upper`, and for the Gaussian method `mu`.

    Notes
    -----
    With limits a on the false positive and b on the false negative rate, "clopper-pearson" gives

    .. math:: \max\left(0,\ \log\frac{1-\delta-b}{a},\ \log\frac{1-\delta-a}{b}\right)

    and "gaussian" :math:`\mu = \Phi^{-1}(1-a) - \Phi^{-1}(b)`, not below 0.

    The Gaussian step is not valid in general. DP-SGD under substitution with sampling rate 0.9, one
    step and noise 0.5 has ε = 12.15 at δ = 1e-5; with exact error rates this method reports 16.28.

    References
    ----------
    SUB, Section 5, eq. (5) and Theorem 5.1. Nasr et al. (2023), "Tight auditing of differentially
    private machine learning". Kairouz, Oh and Viswanath (2015), Theorem 2.1, for the two
    directions of "clopper-pearson". Clopper and Pearson (1934).

    Examples
    --------
    >>> bound = two_worlds(10, 1000, 20, 1000)
    >>> print(round(bound.epsilon, 2), bound.claim)
    3.97 lower bound
    >>> assumed = two_worlds(10, 1000, 20, 1000, method="gaussian")
    >>> print(round(assumed.epsilon, 2), round(assumed.details["mu"], 2))
    24.06 3.96
    """
    counts = ErrorCounts(false_positives, negatives, false_negatives, positives)
    method = _check.choice("method", method, ("clopper-pearson", "gaussian"))
    delta = _check.delta("delta", delta, gaussian=method == "gaussian")
    level = 1.0 - _check.fraction("confidence", confidence)
    stated = 1.0 - level
    if _check.flag("paper_convention", paper_convention):
        stated = 2.0 * confidence - 1.0
        if stated <= 0.0:
            raise ValueError(
                "confidence must be above 0.5 with paper_convention, which gives each of two "
                f"limits its own level, got {confidence!r}"
            )
    share = level if paper_convention else level / 2.0
    details: dict[str, Any] = {
        "false_positives": counts.false_positives,
        "negatives": counts.negatives,
        "false_negatives": counts.false_negatives,
        "positives": counts.positives,
        "fpr": _rate(counts.false_positives, counts.negatives),
        "fnr": _rate(counts.false_negatives, counts.positives),
        "fpr_upper": upper_limit(counts.false_positives, counts.negatives, share),
        "fnr_upper": upper_limit(counts.false_negatives, counts.positives, share),
    }
    fpr, fnr = details["fpr_upper"], details["fnr_upper"]
    if method == "gaussian":
        details["mu"] = np.maximum(-ndtri(fpr) - ndtri(fnr), 0.0)
        epsilon = GaussianDP(details["mu"]).epsilon(delta)
    else:
        epsilon = np.maximum(_log_ratio(1.0 - delta - fnr, fpr), _log_ratio(1.0 - delta - fpr, fnr))
    split = "each limit at its own level, as in SUB" if paper_convention else "joint confidence"
    return Bound(
        epsilon=plain(epsilon),
        delta=delta,
        confidence=stated,
        claim="lower bound",
        adjacency="the two worlds'",
        method=f"two worlds, {method}, {split}",
        assumptions=(INDEPENDENT, FIXED, *([GAUSSIAN] if method == "gaussian" else [])),
        details={name: plain(value) for name, value in details.items()},
    )


def _rate(errors: Ints, trials: Ints) -> Floats:
    """Share of errors; 1 where there was no trial, the value that proves nothing."""
    return np.where(trials > 0, errors / np.maximum(trials, 1), 1.0)


def _log_ratio(top: Floats, bottom: Floats) -> Floats:
    """log(top / bottom), and 0 where that is negative or has no meaning."""
    return np.log(np.maximum(top, bottom) / bottom)
