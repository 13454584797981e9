"""How well a promise fits what an audit counted: a p-value, whatever was promised.

A bound answers "how large must ε be"; whoever was promised an (ε, δ), or a trade-off curve, asks
how likely such counts are if the promise holds. `p_value` gives the largest chance that any
mechanism within the promise leaves to counts as extreme as these.
"""

import numpy as np
from scipy.special import bdtr
from scipy.stats import binom

from auditkit._types import Floats, Ints
from auditkit.bounds.clopper_pearson import upper_limit
from auditkit.bounds.one_run_fdp import smallest_level
from auditkit.bounds.result import Bound, plain
from auditkit.bounds.tradeoff import ApproxDP, TradeOff
from auditkit.evidence import ErrorCounts, GuessCounts

FAR = 1e9  # an ε beyond that of any promise
CLOSE = 1.01  # how far a stated chance may lie above the largest one, as a ratio
STEPS = 1000  # of a region's edge; more are rounded outwards


def p_value(evidence: GuessCounts | ErrorCounts | Bound, promise: TradeOff) -> float | Floats:
    r"""Return how likely counts as extreme as these are, at most, if a promise holds.

    Parameters
    ----------
    evidence : GuessCounts, ErrorCounts or Bound
        The counts of one run, or of a test between two worlds, whose rule was fixed beforehand. Of
        a bound, such as `audit_scores` returns, the counts in its `details`; where it is the best
        of several rules (`Bonferroni`), the p-value is multiplied by their number.
    promise : TradeOff
        ``ApproxDP(epsilon, delta)``, ``PureDP(epsilon)``, ``GaussianDP(mu)`` or another curve. For
        one run it has to be its own inverse.

    Returns
    -------
    float or array
        In [0, 1], an array where the counts are arrays. If the promise holds it is at most α with
        chance α at most, for every α; a large one does not show that the promise is kept.

    Notes
    -----
    *One run, (ε, δ).* The largest chance of so many correct guesses, over all mechanisms that are
    (ε, δ)-differentially private. With :math:`K\sim\mathrm{Bin}(r, e^\varepsilon/(1+e^\varepsilon))`,
    :math:`\beta=P(K\ge v)` and :math:`c=v\,P(K=v)/\beta` it is

    .. math:: \beta+(1-\beta)\min(1,\ m\delta/c)

    *One run, another curve.* The smallest level at which the recursion of `one_run_fdp` rejects.

    *Two worlds.* Error counts are as extreme as those found if Clopper and Pearson's limits reject
    the promise from them at the smallest joint level at which they reject it from these. The
    p-value is the largest chance of that over all pairs of error rates that the curve allows; it
    is never above that level. The chance falls in either rate, so that it is largest on the curve,
    and at most that of the lower corner over any piece of it: pieces are divided until the largest
    corner is within 1% of a chance that is reached. That corner is stated.

    References
    ----------
    Steinke, Nasr and Jagielski (2023), Theorem 5.2, whose term in δ is sharpened here.
    Mahloujifar, Melis and Chaudhuri (2025), Theorem 3.2. For two worlds: Barnard, "Significance
    tests for 2×2 tables", Biometrika 1947, and Boschloo, "Raised conditional level of significance
    for the 2×2-table when testing the equality of two probabilities", 1970, who do the same for
    the curve of no leak at all.

    Examples
    --------
    >>> from auditkit import GaussianDP
    >>> counts = GuessCounts(800, 1000, 10_000)
    >>> [round(p_value(counts, promise), 4) for promise in (ApproxDP(1.2, 1e-5), GaussianDP(0.4))]
    [0.0082, 0.0084]
    >>> round(p_value(ErrorCounts(10, 1000, 20, 1000), ApproxDP(3.9, 1e-5)), 3)
    0.005
    """
    if not isinstance(promise, TradeOff) or np.ndim(promise.delta(0.0)):
        raise TypeError(f"promise must be one TradeOff, got {promise!r}")
    rules = 1
    if isinstance(evidence, Bound):
        evidence, rules = _counted(evidence)
    if isinstance(evidence, GuessCounts):
        found = _of_guesses(evidence, promise)
    elif isinstance(evidence, ErrorCounts):
        names = ("false_positives", "negatives", "false_negatives", "positives")
        lanes = np.stack([getattr(evidence, name) for name in names], axis=-1)
        found = np.apply_along_axis(lambda lane: _of_errors(*lane.tolist(), promise), -1, lanes)
    else:
        raise TypeError(f"evidence must be GuessCounts, ErrorCounts or a Bound, got {evidence!r}")
    return plain(np.minimum(rules * found, 1.0))


def _counted(bound: Bound) -> tuple[GuessCounts | ErrorCounts, int]:
    """Return the counts of a bound, and of how many rules they are those of the best."""
    details, rule = bound.details, str(bound.details.get("threshold", ""))
    if bound.claim != "lower bound" or "MultiSplit" in rule:
        raise ValueError(
            "evidence must be counts of rules fixed beforehand, of which an estimate, or the "
            f"median of several splits, gives no p-value, got {bound.claim!r} by {rule or 'counts'}"
        )
    rules = int(details["candidates"]) if rule.startswith("Bonferroni") else 1
    if "false_positives" in details:
        names = ("false_positives", "negatives", "false_negatives", "positives")
        return ErrorCounts(*(details[name] for name in names)), rules
    if "correct" in details and details.get("tau", 0.0) == 0.0 and "kept" not in details:
        return GuessCounts(details["correct"], details["guesses"], details["examples"]), rules
    raise ValueError(f"evidence must be of one run or of two worlds, got {bound.method!r}")


# one run


def _of_guesses(counts: GuessCounts, promise: TradeOff) -> Floats:
    c, r, m = counts.correct, counts.guesses, counts.examples
    if isinstance(promise, ApproxDP):
        delta = float(promise.delta(FAR))
        return _most_likely(c, r, m * delta, float(promise.epsilon(delta)))
    lanes = zip(c.ravel().tolist(), r.ravel().tolist(), m.ravel().tolist(), strict=True)
    return np.array([smallest_level(promise, *lane) for lane in lanes]).reshape(c.shape)


def _most_likely(v: Ints, r: Ints, weight: Floats, epsilon: float) -> Floats:
    """Return the largest chance of v of r correct guesses under (ε, δ), with weight m δ."""
    # TODO(lead): `most_likely` of one_run.py takes its place
    wrong = 1.0 / (1.0 + np.exp(min(epsilon, 700.0)))
    log_tail = binom.logcdf(r - v, r, wrong)
    tail = np.exp(log_tail)
    ratio = np.exp(log_tail - binom.logpmf(r - v, r, wrong))
    excess = np.minimum(1.0, weight * ratio / np.maximum(v, 1))
    return np.where(v > 0, tail + (1.0 - tail) * excess, 1.0)


# two worlds


def _of_errors(fp: int, negatives: int, fn: int, positives: int, promise: TradeOff) -> float:
    """Return the largest chance, on the curve, of a pair of error counts as extreme as this."""
    level = _rejecting_level(fp, negatives, fn, positives, promise)
    if level >= 1.0:
        return 1.0
    last, most = _region(negatives, positives, level, promise)

    def chance(fpr: Floats, fnr: Floats) -> Floats:
        columns = np.diff(bdtr(last, negatives, fpr[:, None]), axis=1, prepend=0.0)
        result: Floats = (columns * bdtr(most, positives, fnr[:, None])).sum(axis=1)
        return result

    # where the two variances are stable, an even grid suits both rates
    even = np.sin(np.linspace(0.0, np.pi / 2.0, 17)) ** 2
    fpr = np.unique(np.concatenate((even, _least(promise, even))))
    left, right, reached, above = fpr[:-1], fpr[1:], 0.0, 0.0
    for _ in range(60):
        corner = chance(left, _least(promise, right))
        reached = max(reached, float(chance(left, _least(promise, left)).max()))
        open_ = corner > CLOSE * reached
        above = max(above, float(corner[~open_].max(initial=0.0)))
        if not open_.any():
            break
        left, right, rest = left[open_], right[open_], float(corner[open_].max())
        middle = _middle(left, right, negatives, positives, promise)
        left, right = np.concatenate((left, middle)), np.concatenate((middle, right))
    else:
        above = max(above, rest)
    return min(above, level)


def _least(promise: TradeOff, rate: Floats) -> Floats:
    """Return the least other error rate; the promise holds in both directions of the test."""
    return np.maximum(promise.beta(rate), promise.inverse(rate))


def _rejects(x: int, m: int, y: int, n: int, level: float, promise: TradeOff) -> bool:
    fpr, fnr = upper_limit(x, m, level / 2.0), upper_limit(y, n, level / 2.0)
    return bool(_least(promise, fpr) > fnr)


def _rejecting_level(x: int, m: int, y: int, n: int, promise: TradeOff) -> float:
    """Return the smallest joint level at which Clopper and Pearson's limits reject, at most 1."""
    low, high = -230.0, 0.0  # below 1e-100 the limits are not known
    if not _rejects(x, m, y, n, 1.0, promise):
        return 1.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _rejects(x, m, y, n, np.exp(middle), promise) else (middle, high)
    return float(np.exp(high))


def _region(m: int, n: int, level: float, promise: TradeOff) -> tuple[Ints, Ints]:
    """Return the counts that are rejected at a level: up to so many x, up to so many y."""
    other = upper_limit(np.arange(n + 1), n, level / 2.0)
    own = upper_limit(np.arange(m + 1), m, level / 2.0)
    most = np.searchsorted(other, _least(promise, own), side="left") - 1
    first = np.flatnonzero(np.diff(most, prepend=n + 1) < 0)  # where a step begins
    first = first[most[first] >= 0]
    end = int((most >= 0).sum()) - 1
    if first.size > STEPS:
        first = first[:: -(-first.size // STEPS)]
    return np.append(first[1:] - 1, end), most[first]


def _middle(left: Floats, right: Floats, m: int, n: int, promise: TradeOff) -> Floats:
    """Divide each piece where the rate is in the middle that differs by more standard errors."""

    def halved(a: Floats, b: Floats) -> tuple[Floats, Floats]:
        angles = np.arcsin(np.sqrt(a)), np.arcsin(np.sqrt(b))
        return np.sin((angles[0] + angles[1]) / 2.0) ** 2, np.abs(angles[1] - angles[0])

    across, width = halved(left, right)
    down, height = halved(_least(promise, left), _least(promise, right))
    back = _least(promise, down)
    inside = (back > left) & (back < right)
    return np.where((np.sqrt(n) * height > np.sqrt(m) * width) & inside, back, across)
