"""How well a promise fits what an audit counted: a p-value, whatever was promised.

A bound answers "how large must ε be"; whoever was promised an (ε, δ), or a trade-off curve, asks
how likely such counts are if the promise holds. `p_value` gives the largest chance that any
mechanism within the promise leaves to counts as extreme as these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.bounds.clopper_pearson import upper_limit
from auditkit.bounds.games import OneRunGame, TwoWorldsGame
from auditkit.bounds.one_run import one_run, worst_chance
from auditkit.bounds.one_run_fdp import smallest_level
from auditkit.bounds.result import Bound, plain
from auditkit.bounds.scores import audit
from auditkit.bounds.tradeoff import ApproxDP, GaussianDP, TradeOff
from auditkit.evidence import ErrorCounts, GuessCounts, Scores
from auditkit.thresholds import TEN, Bonferroni, MultiSplit, Threshold

FAR = 1e9  # an ε beyond that of any promise
CLOSE = 1.01  # how far a stated chance may lie above the largest one, as a ratio
STEPS = 1000  # of a region's edge; more are rounded outwards


def p_value(counts: GuessCounts | ErrorCounts, promise: TradeOff) -> float | Floats:
    r"""Return how likely counts as extreme as these are, at most, if a promise holds.

    Parameters
    ----------
    counts : GuessCounts or ErrorCounts
        Of one run, or of a test between two worlds, by a rule that was fixed beforehand.
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
    (ε, δ)-differentially private. For K of the law
    :math:`\mathrm{Bin}(r, e^\varepsilon/(1+e^\varepsilon))`, with :math:`\beta=P(K\ge v)` and
    :math:`c=v\,P(K=v)/\beta`, it is

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
    [0.0099, 0.019]
    >>> round(p_value(ErrorCounts(10, 1000, 20, 1000), ApproxDP(3.9, 1e-5)), 3)
    0.017
    """
    if not isinstance(promise, TradeOff) or np.ndim(promise.delta(0.0)):
        raise TypeError(f"promise must be one TradeOff, got {promise!r}")
    if isinstance(counts, GuessCounts):
        found = _of_guesses(counts, promise)
    elif isinstance(counts, ErrorCounts):
        found = _each(_of_errors, counts, promise)
    else:
        raise TypeError(f"counts must be GuessCounts or ErrorCounts, got {counts!r}")
    return plain(np.minimum(found, 1.0))


def p_value_from_scores(
    scores: ArrayLike,
    members: ArrayLike,
    promise: TradeOff,
    *,
    method: Literal["one-run", "two-worlds"],
    threshold: Threshold = TEN,
) -> float:
    """Return how likely scores as extreme as these are, at most, if a promise holds.

    Parameters
    ----------
    scores, members : array of shape (examples,)
        As in `audit_scores`.
    promise : TradeOff
        As in `p_value`.
    method : {"one-run", "two-worlds"}
        Whether the scores are those of examples of one run, or of runs in two worlds.
    threshold : Fixed, Bonferroni, Split or MultiSplit
        How guesses are chosen. Of `Bonferroni` the least p-value counts, times the number of rules;
        of `MultiSplit` twice the median.

    Returns
    -------
    float
        In [0, 1]. Where `audit_scores` would give an estimate, there is none, and an error says so.

    References
    ----------
    `p_value`. For the rules: Bonferroni (1936); Rüschendorf, "Random variables with maximum sums",
    1982, and Meinshausen, Meier and Bühlmann (2009) for twice the median.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> members = rng.random(2000) < 0.5
    >>> scores = rng.normal(0.5 * members)
    >>> p = p_value_from_scores(scores, members, ApproxDP(0.1, 1e-5), method="one-run")
    >>> p < 0.05
    True
    """
    method = _check.choice("method", method, ("one-run", "two-worlds"))
    game = OneRunGame(one_run) if method == "one-run" else TwoWorldsGame("clopper-pearson", 1e-5)
    return in_game(game, Scores(scores, members), threshold, promise)


def refuted_curve(bound: Bound) -> TradeOff:
    """Return the promise that a lower bound refutes, with all that promise more.

    Parameters
    ----------
    bound : Bound
        A lower bound, of one set of counts.

    Returns
    -------
    TradeOff
        ``GaussianDP(mu)`` where the curve was taken to be Gaussian. The mechanism then leaks at
        least as much: its ``beta(alpha)`` is at most that of this curve for every ``alpha``, and
        some attack has an advantage (true positive less false positive rate) of at least
        ``delta(0)``. Else ``ApproxDP(epsilon, delta)``: the mechanism's own curve falls below this
        one somewhere, and neither a point of it nor an advantage follows.

    References
    ----------
    Dong, Roth and Su (2022), Proposition 2.5, for ``delta``; at ε = 0 it is the advantage of the
    best attack, for (ε, δ)-DP ``(e^ε - 1 + 2δ) / (e^ε + 1)`` at most.

    Examples
    --------
    >>> from auditkit import one_run_fdp
    >>> curve = refuted_curve(one_run_fdp(800, 1000, 10_000))
    >>> round(curve.delta(0.0), 3), round(curve.beta(0.05), 3)
    (0.173, 0.887)
    """
    if bound.claim != "lower bound" or np.ndim(bound.epsilon):
        raise ValueError(f"bound must be one lower bound, got {bound}")
    if "mu" in bound.details:
        return GaussianDP(bound.details["mu"])
    return ApproxDP(bound.epsilon, bound.delta)


def in_game(
    game: OneRunGame | TwoWorldsGame, scores: Scores, threshold: Threshold, promise: TradeOff
) -> float:
    """Return the p-value of a promise where guesses in a game are chosen by a strategy."""
    bound = audit(game, scores, threshold, 0.95)
    if bound.claim == "estimate":
        raise ValueError(
            "threshold and scores must be such that a lower bound follows, since an estimate gives "
            f"no p-value, got {threshold!r} and: {bound.assumptions[-1]}"
        )
    if isinstance(threshold, MultiSplit):
        halves = [in_game(game, scores, split, promise) for split in threshold.each()]
        return min(2.0 * float(np.median(halves)), 1.0)
    if not isinstance(threshold, Bonferroni):
        return float(p_value(_counts(bound.details), promise))
    if isinstance(threshold.candidates, tuple):
        found = np.array([in_game(game, scores, each, promise) for each in threshold.candidates])
    else:
        counts = _counts(game.preset(scores, threshold.candidates).bound(0.95).details)
        # for a cut at a rank the two limits hold, though its counts are not those of a fixed cut
        if isinstance(counts, ErrorCounts):
            found = _each(_level, counts, promise)
        else:
            found = np.asarray(p_value(counts, promise))
    return min(found.size * float(found.min()), 1.0)


def _counts(details: Mapping[str, Any]) -> GuessCounts | ErrorCounts:
    """Return the counts among the details of a bound."""
    if "correct" in details:
        return GuessCounts(details["correct"], details["guesses"], details["examples"])
    names = ("false_positives", "negatives", "false_negatives", "positives")
    return ErrorCounts(*(details[name] for name in names))


# one run


def _of_guesses(counts: GuessCounts, promise: TradeOff) -> Floats:
    c, r, m = counts.correct, counts.guesses, counts.examples
    lanes = zip(c.ravel().tolist(), r.ravel().tolist(), m.ravel().tolist(), strict=True)
    if isinstance(promise, ApproxDP):
        delta = float(promise.delta(FAR))
        epsilon = min(float(promise.epsilon(delta)), 700.0)  # what an exponential can hold
        found = [worst_chance(v, n, size * delta, epsilon, 1.0)[0] for v, n, size in lanes]
    else:
        found = [smallest_level(promise, *lane) for lane in lanes]
    return np.array(found, dtype=np.float64).reshape(c.shape)


# two worlds


def _each(chance: Callable[..., float], counts: ErrorCounts, promise: TradeOff) -> Floats:
    """Return a chance for each of the counts."""
    names = ("false_positives", "negatives", "false_negatives", "positives")
    lanes = np.stack([getattr(counts, name) for name in names], axis=-1)
    found = [chance(*lane, promise) for lane in lanes.reshape(-1, 4).tolist()]
    return np.array(found, dtype=np.float64).reshape(lanes.shape[:-1])


def _of_errors(fp: int, negatives: int, fn: int, positives: int, promise: TradeOff) -> float:
    """Return the largest chance, on the curve, of a pair of error counts as extreme as this."""
    level = _level(fp, negatives, fn, positives, promise)
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


def _level(x: int, m: int, y: int, n: int, promise: TradeOff) -> float:
    """Return the smallest joint level at which Clopper and Pearson's limits reject, at most 1."""
    low, high = -230.0, 0.0  # below 1e-100 the limits are not known
    if not _rejects(x, m, y, n, 1.0, promise):
        return 1.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (
            (low, middle) if _rejects(x, m, y, n, np.exp(middle), promise) else (middle, high)
        )
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
