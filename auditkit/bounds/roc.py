"""How well scores tell members from others, with intervals: an attack's power, and no bound on ε.

The ROC curve, the area under it, and the true positive rate where few others are taken for members.
Intervals are about examples that could have been drawn in place of these. What another training of
the model would show is another question, and takes other trainings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from auditkit import _check
from auditkit._types import Floats
from auditkit.bounds.clopper_pearson import limits, lower_limit, upper_limit
from auditkit.bounds.result import rounded, short_of
from auditkit.evidence import ErrorCounts, Scores


@dataclass(frozen=True)
class Rate:
    """A rate that was measured, and the interval that it is known to.

    Attributes
    ----------
    value : float
        As measured.
    low, high : float
        The ends of the interval.
    confidence : float
        How often such intervals are right. On either side half of the rest is missed, or less.

    Examples
    --------
    >>> print(Rate(0.75, 0.60129, 0.86, 0.95))
    0.750, from 0.601 to 0.860 with 95% confidence
    """

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        low, high = rounded(self.low, "lower bound"), rounded(self.high, "upper bound")
        sure = short_of(100, 100 * self.confidence)
        return f"{rounded(self.value, 'estimate')}, from {low} to {high} with {sure}% confidence"


def roc(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return the ROC curve of an attack, from no guess of "member" to nothing else.

    Parameters
    ----------
    scores : array of shape (examples,)
        A higher score means member.
    members : array of bool, shape (examples,)
        The truth, with both kinds among it.

    Returns
    -------
    fpr, tpr : ndarray
        The share of others, and of members, with a score at or above each cut.
    cuts : ndarray
        Infinity, then every distinct score from the highest.

    References
    ----------
    Carlini et al., "Membership inference attacks from first principles", IEEE S&P 2022, Section IV,
    for why both axes should be logarithmic.

    Examples
    --------
    >>> fpr, tpr, cuts = roc([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    >>> fpr, tpr
    (array([0. , 0. , 0.5, 1. ]), array([0. , 0.5, 1. , 1. ]))
    """
    table = _both(scores, members, least=1)
    cuts = np.unique(table.values)[::-1]
    counts = ErrorCounts.at(table, cuts)
    found = counts.positives - counts.false_negatives
    fpr = np.append(0.0, counts.false_positives / counts.negatives)
    return fpr, np.append(0.0, found / counts.positives), np.append(np.inf, cuts)


def auc(scores: ArrayLike, members: ArrayLike, *, confidence: float = 0.95) -> Rate:
    r"""Return the area under the ROC curve: how likely a member scores above another example.

    Parameters
    ----------
    scores, members : array
        As in `roc`, with two examples or more of each kind. Ties count half.
    confidence : float
        Of the interval.

    Returns
    -------
    Rate

    Notes
    -----
    Were the area a share A of independent pairs, n = A (1 - A) / V of them would have its variance
    V, which is DeLong's. The interval is that of Clopper and Pearson for n pairs, which leaves room
    where A is near 1 and V is near 0, as intervals of A ± z √V do not. No fewer pairs are taken
    than the smaller kind has examples, whose variance is never exceeded (Birnbaum and Klose); and
    no more than twice the harmonic mean of the numbers of both kinds, lest a V that is small by
    chance be believed. It is no exact interval. Simulated at 95%, over areas from .5 to .999, ties,
    outliers and 5 to 1,000 of a kind, 94% to all of them were right.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, "Comparing the areas under two or more correlated receiver
    operating characteristic curves", 1988, for V. Korn and Graubard, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", 1998, for
    the step from V to n. Birnbaum and Klose, "Bounds for the variance of the Mann-Whitney
    statistic", 1957.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random(1000) < 0.5
    >>> print(auc(members + rng.normal(size=1000), members))
    0.747, from 0.715 to 0.777 with 95% confidence
    >>> print(auc([3.0, 2.0, 1.0, 0.0], [1, 1, 0, 0]))  # without an error, but of two each
    1.000, from 0.158 to 1.000 with 95% confidence
    """
    table = _both(scores, members, least=2)
    level = 1.0 - _check.fraction("confidence", confidence)
    present, absent = table.values[table.members], table.values[~table.members]
    above = _below(present, absent)
    value, own, others = float(above.mean()), present.size, absent.size
    spread = above.var(ddof=1) / own + _below(absent, present).var(ddof=1) / others
    least, most = min(own, others), 4.0 * own * others / (own + others)
    pairs = float(np.clip(value * (1.0 - value) / spread, least, most)) if spread > 0.0 else least
    low, high = limits(value * pairs, pairs, level / 2.0)
    return Rate(value, float(low), float(high), confidence)


def tpr_at_fpr(
    scores: ArrayLike, members: ArrayLike, fpr: float, *, confidence: float = 0.95
) -> Rate:
    """Return the true positive rate where so many others, at most, are taken for members.

    Parameters
    ----------
    scores, members : array
        As in `roc`.
    fpr : float
        The false positive rate that is allowed, 0.01 for example.
    confidence : float
        Of the interval.

    Returns
    -------
    Rate
        The lower end is 0 where there are too few others to tell any cut that keeps to `fpr`: at
        95%, 437 are needed for 0.01.

    Notes
    -----
    The cut lies just above as many of the others seen as `fpr` allows, and parts no tied scores.
    But what cut has this rate in truth is not known: limits on the share of members above that one,
    by Clopper and Pearson, leave that out, and miss the truth where the curve is steep. So the
    cut has limits too, which are scores of others, since how many of them lie above a cut of that
    rate is binomial. The share of members above either has its own limit. Each of these four events
    has a quarter of the level. The interval holds whatever the laws of the scores are, and is wide.

    References
    ----------
    Carlini et al., "Membership inference attacks from first principles", IEEE S&P 2022, for the
    rate; Clopper and Pearson, 1934, for the limits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random(4000) < 0.5
    >>> print(tpr_at_fpr(members + rng.normal(size=4000), members, 0.01))
    0.113, from 0.072 to 0.163 with 95% confidence
    """
    table = _both(scores, members, least=1)
    fpr = _check.fraction("fpr", fpr)
    part = (1.0 - _check.fraction("confidence", confidence)) / 4.0
    present = np.sort(table.values[table.members])
    absent = np.sort(table.values[~table.members])[::-1]
    own, others = present.size, absent.size

    def found(allowed: int) -> int:
        """Count the members above all others but those allowed."""
        if allowed >= others:
            return own
        return own - int(np.searchsorted(present, absent[allowed], side="right"))

    at = found(int(np.searchsorted(np.arange(1, others + 1) / others, fpr, side="right")))
    # above a cut of that rate so few lie, or more than so many, with chance `part` at most
    safe, sure = int(binom.ppf(part, others, fpr)) - 1, int(binom.isf(part, others, fpr))
    low = lower_limit(found(safe), own, part) if safe >= 0 else 0.0
    high = upper_limit(found(sure), own, part)
    return Rate(at / own, float(low), float(high), confidence)


def _both(scores: ArrayLike, members: ArrayLike, *, least: int) -> Scores:
    """Return the scores, if there are so many members among them, and so many others."""
    table = Scores(scores, members)
    own = int(table.members.sum())
    if min(own, len(table) - own) < least:
        raise ValueError(
            f"members must hold {least} or more of each kind, got {own} members of {len(table)}"
        )
    return table


def _below(values: Floats, others: Floats) -> Floats:
    """Return what share of the others each value is above, ties counting half."""
    ordered = np.sort(others)
    sides = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    shares: Floats = sides / (2.0 * others.size)
    return shares
