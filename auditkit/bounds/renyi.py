"""Rényi divergences of what a mechanism releases: exact, and audited from counts.

A mechanism that answers with one of k labels has two laws, one for each of two neighbouring
datasets. Where both are known, `renyi_divergence` gives the leakage. Where they can only be
sampled, `renyi_audit` bounds it from below.

Exact divergences of independent queries add up order by order: sum the arrays. The sum says
nothing about queries that share training randomness, as those of PATE and CaPC do: their joint
divergence can lie far below the sum of the marginal ones. And a sum of audited lower bounds holds
with the confidence of all of them together, not of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Bools, Floats, Ints
from auditkit.bounds.clopper_pearson import limits
from auditkit.bounds.multinomial_intervals import goodman, sison_glaz
from auditkit.bounds.result import Bound

INDEPENDENT = "The outcomes are independent of one another, within a world and between the worlds."
FIXED = "The cut was fixed before the counts were seen."
PILOT = "The counts are of single outcomes, so that a random part of them can choose the cut."
SMOOTH = (
    "The true divergence is well above 0; where it is 0 or near it the bootstrap exceeds it in "
    "nearly every repetition."
)
MANY = "Every outcome was seen so often that the resampled divergence is close to normal."
LARGE = "The counts are so large that the simultaneous intervals, which hold in the limit, hold."

INTERVALS = ("goodman", "sison-glaz")
METHODS = ("2-cut", "k-cut", "2-cut bootstrap", "k-cut bootstrap")
PILOT_SHARE = 0.1
RESAMPLES = 1000


class RenyiBound(Bound):
    """A bound on Rényi divergences, one an order; what `renyi_audit` returns.

    The number is in `epsilon` as in every `Bound`, the orders are in ``details["orders"]``, and
    `delta` is 0. But a divergence is no ε, and what is printed calls it by its name.

    Examples
    --------
    >>> print(renyi_audit([7300, 2700], [6300, 3700], [2, 10], cut={0}))  # doctest: +ELLIPSIS
    Rényi divergence ≥ [0.026, 0.081] at orders [2, 10] with 95% confidence (lower bound, ...
    """

    def __str__(self) -> str:
        orders = f"orders {_listed(self.details['orders'])}"
        divergence = super().__str__().replace("ε", "Rényi divergence", 1)
        return divergence.replace(f"δ = {self.delta:g}", orders, 1)

    def _repr_html_(self) -> str:
        table = super()._repr_html_().replace(">ε</th>", ">Rényi divergence</th>", 1)
        # the orders are among the details
        return table.replace(f'<tr><th scope="row">δ</th><td>{self.delta:g}</td></tr>', "", 1)


def renyi_divergence(p: ArrayLike, q: ArrayLike, orders: ArrayLike) -> Floats:
    r"""Compute the Rényi divergence of p from q, exactly.

    .. math:: D_\alpha(P \| Q) = \frac{1}{\alpha - 1} \log \sum_i p_i^\alpha q_i^{1 - \alpha}

    Parameters
    ----------
    p, q : array of shape (..., outcomes)
        Probabilities, each row summing to 1 within 1e-9; the sums are made exact.
    orders : array
        Orders α above 0 and not 1.

    Returns
    -------
    ndarray of shape (..., orders)
        One value an order, infinite where p and q have nothing in common, and for an order above
        1 where p has an outcome that q has not.

    Notes
    -----
    Sums are taken in logarithms, so orders of thousands do no harm. PRED defines the divergence by
    an expectation of (P/Q)^α over P; it has to be over Q, as here.

    References
    ----------
    PRED, Section 2.1. Mironov (2017), "Rényi differential privacy", Definition 3.

    Examples
    --------
    >>> print(renyi_divergence([0.5, 0.5], [0.75, 0.25], [2, 10]).round(4))
    [0.2877 0.6161]
    """
    first = _check.distributions("p", p)
    second = _check.distributions("q", q)
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(
            f"p and q must have the same outcomes, got shapes {first.shape} and {second.shape}"
        )
    alpha = _check.orders("orders", orders)
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise ValueError(
            f"p and q must fit together, got shapes {first.shape} and {second.shape}"
        ) from None
    return _divergence(first, second, alpha)


def epsilon_from_renyi(orders: ArrayLike, divergences: ArrayLike, delta: float) -> float:
    r"""Convert Rényi divergences to ε at δ, by the best order.

    .. math:: \varepsilon = \min_{\alpha > 1} D_\alpha + \log\frac{\alpha - 1}{\alpha}
        - \frac{\log\delta + \log\alpha}{\alpha - 1}

    Upper bounds on the divergences give an upper bound on ε. Lower bounds do not give a lower
    bound: the conversion is one-sided, so what comes of them is an estimate.

    Parameters
    ----------
    orders : array of shape (orders,)
        Orders above 0 and not 1; only those above 1 are used.
    divergences : array of shape (orders,)
        Divergence at each order, not negative; infinite values are passed over.
    delta : float
        The δ at which ε is stated, in (0, 1).

    Returns
    -------
    float
        ε, never below 0; infinite if all divergences are.

    Notes
    -----
    The conversion has a floor. Where nothing leaks at all the formula still gives its value at
    D = 0, which depends on the largest order: 0.0133 at δ = 1e-6 and orders below 500. State it
    beside small values.

    References
    ----------
    Balle et al. (2020), "Hypothesis testing interpretations and Rényi differential privacy",
    Theorem 20. PRED, Theorem 1.

    Examples
    --------
    >>> orders = np.arange(2, 500)
    >>> print(round(epsilon_from_renyi(orders, orders / 20**2, 1e-6), 3))
    0.298
    >>> print(round(epsilon_from_renyi(orders, 0 * orders, 1e-6), 3))
    0.013
    """
    alpha = np.atleast_1d(_check.orders("orders", orders))
    given = np.atleast_1d(np.asarray(divergences))
    if given.dtype.kind not in "biuf":
        raise TypeError(f"divergences must be an array of numbers, got {divergences!r}")
    values = given.astype(np.float64)
    if alpha.size == 0:
        raise ValueError("orders must hold at least one order, got none")
    if values.shape != alpha.shape:
        raise ValueError(
            f"divergences must be one an order, got shape {values.shape} for {alpha.shape}"
        )
    if np.isnan(values).any() or (values < 0.0).any():
        bad = values[~(values >= 0.0)][0]
        raise ValueError(f"divergences must hold numbers of at least 0, got {bad}")
    delta = _check.fraction("delta", delta)
    above = alpha > 1.0
    if not above.any():
        raise ValueError(f"orders must hold one above 1, got {alpha.max(initial=0.0):g} at most")
    alpha, values = alpha[above], values[above]
    epsilon = values + np.log1p(-1.0 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1.0)
    return max(float(epsilon.min()), 0.0)


def renyi_audit(
    counts_p: ArrayLike,
    counts_q: ArrayLike,
    orders: ArrayLike,
    *,
    method: Literal["2-cut", "k-cut", "2-cut bootstrap", "k-cut bootstrap"] = "2-cut",
    confidence: float = 0.95,
    cut: Iterable[int] | None = None,
    rng: int | np.random.Generator = 0,
) -> RenyiBound:
    r"""Bound the Rényi divergence between two worlds from counts of their outcomes.

    Parameters
    ----------
    counts_p, counts_q : array of shape (outcomes,)
        How often each outcome was seen in either world; the bound is for the divergence of the
        first from the second. Take both directions for adjacency that is symmetric.
    orders : array
        Orders above 0 and not 1.
    method : {"2-cut", "k-cut", "2-cut bootstrap", "k-cut bootstrap"}
        A 2-cut looks at one set of outcomes against the rest, a k-cut at all outcomes. Without
        bootstrap the result is a lower bound, with it an estimate.
    confidence : float
        Joint confidence of all intervals; the bound holds at all orders at once.
    cut : set of int, optional
        The outcomes of a 2-cut, by index. Without it a random tenth of the counts chooses a set
        that the first world has more of; the other nine tenths are tested.
    rng : numpy Generator or int
        Source of randomness, or a seed for one, for the choice of that tenth and for resampling.

    Returns
    -------
    RenyiBound
        `epsilon` is an array: one lower bound on :math:`D_\alpha` an order, in the order of
        ``details["orders"]``. `details` hold also the `outcomes` and the numbers tested,
        `trials_p` and `trials_q`; for 2-cuts the `cut` and its counts `hits_p` and `hits_q`, the
        trials of the `pilot` if there was one, and without bootstrap the limits `limits_p` and
        `limits_q`.

    Notes
    -----
    *2-cut.* Let p and q be the probabilities of the cut, with intervals :math:`[p^l, p^u]` and
    :math:`[q^l, q^u]` by Clopper and Pearson. The bound is the divergence d of two coins at the
    near corner of the box: :math:`d(p^l, q^u)` if :math:`p^l > q^u`, :math:`d(p^u, q^l)` if
    :math:`p^u < q^l`, else 0.

    It holds because (i) no divergence grows when outcomes are merged, so d(p, q) is at most the
    divergence of the worlds; (ii) :math:`p^\alpha q^{1-\alpha} + (1-p)^\alpha (1-q)^{1-\alpha}` is
    convex in p and in q for α > 1, concave for α < 1, and takes its extreme value 1 at p = q. So d
    grows with p and falls with q wherever p > q. If both intervals cover and :math:`p^l > q^u`,
    then :math:`p \ge p^l > q^u \ge q`, hence :math:`d(p, q) \ge d(p^l, q^u)`; likewise mirrored.
    The worlds are independent, so each interval has confidence :math:`\sqrt{1-\beta}` for a joint
    level β; the intervals do not depend on the order, so one event serves all orders. Where the
    pilot chose the cut it also chose the direction: the second case is left out, and the two
    limits that remain are one-sided. The pilot is made by a coin for each outcome, hence it is
    independent of the rest.

    *k-cut.* The smallest divergence over all pairs of laws within simultaneous intervals: Clopper
    and Pearson for each outcome, the level of a world split evenly over its outcomes. These hold
    for any sample size; the intervals of Goodman and of Sison and Glaz, which PRED uses, hold in
    the limit only. The minimum is convex; its value is certified by a tangent plane, so stopping
    early can only make the bound smaller.

    *Bootstrap.* The ``1 - confidence`` quantile over 1,000 resampled pairs of counts, each order by
    itself. It fails at divergence 0, where every resample lies above the truth.

    References
    ----------
    PRED, Section 4.2 and Appendix B; `appendix_b_bound` is the formula printed there, which is
    valid and looser. Balle et al. (2020), Section 4, for k-cuts.

    Examples
    --------
    >>> bound = renyi_audit([7300, 2200, 500], [6300, 3200, 500], [2, 10], cut={0})
    >>> print(bound.epsilon.round(4), bound.claim)
    [0.0268 0.0815] lower bound
    """
    first, second = _two_counts(counts_p, counts_q)
    alpha = np.atleast_1d(_check.orders("orders", orders))
    method = _check.choice("method", method, METHODS)
    confidence = _check.fraction("confidence", confidence)
    inside = None if cut is None else _as_mask(cut, len(first))
    generator = _check.generator("rng", rng)
    details: dict[str, Any] = {"orders": alpha, "outcomes": len(first)}
    assumptions: tuple[str, ...] = (INDEPENDENT,)
    chosen = method.startswith("2-cut") and inside is None
    if chosen:
        pilot_p, pilot_q = _pilot(first, generator), _pilot(second, generator)
        first, second = first - pilot_p, second - pilot_q
        inside = _best_cut(pilot_p, pilot_q, alpha, int(first.sum()), int(second.sum()), confidence)
        details["pilot"] = (int(pilot_p.sum()), int(pilot_q.sum()))
    details |= {"trials_p": int(first.sum()), "trials_q": int(second.sum())}
    if method.startswith("2-cut") and inside is not None:
        assumptions = (*assumptions, PILOT if chosen else FIXED)
        first, second = _merge(first, inside), _merge(second, inside)
        details["cut"] = tuple(np.flatnonzero(inside).tolist())
        details |= {"hits_p": int(first[0]), "hits_q": int(second[0])}
    elif inside is not None:
        raise ValueError(f"cut must be left out with method {method!r}, got {cut!r}")
    if method.endswith("bootstrap"):
        epsilon = _bootstrap(first, second, alpha, confidence, generator)
        assumptions = (*assumptions, SMOOTH, MANY)
    elif method == "k-cut":
        epsilon = _least_divergence(first, second, alpha, confidence)
    else:
        tail = (1.0 - math.sqrt(confidence)) / (1.0 if chosen else 2.0)
        limits_p, limits_q = (
            limits(first[:1], first.sum(), tail),
            limits(second[:1], second.sum(), tail),
        )
        epsilon = _corner(limits_p, limits_q, alpha, mirrored=not chosen)[0]
        details["limits_p"] = tuple(float(limit[0]) for limit in limits_p)
        details["limits_q"] = tuple(float(limit[0]) for limit in limits_q)
    return RenyiBound(
        epsilon=epsilon,
        delta=0.0,
        confidence=confidence,
        claim="estimate" if method.endswith("bootstrap") else "lower bound",
        adjacency="the two worlds'",
        method=method,
        assumptions=assumptions,
        details=details,
    )


def appendix_b_bound(
    counts_p: ArrayLike,
    counts_q: ArrayLike,
    orders: ArrayLike,
    *,
    cut: Iterable[int] | None = None,
    intervals: Literal["goodman", "sison-glaz"] = "goodman",
    confidence: float = 0.95,
) -> RenyiBound:
    r"""Bound the Rényi divergence by the formulas printed in Appendix B of PRED.

    They are here to be compared with: `renyi_audit` is tighter, and far tighter where little
    leaks. With a cut,

    .. math:: \frac{1}{\alpha-1} \log\left((p^l)^\alpha (q^u)^{1-\alpha}
        + (1-p^u)^\alpha (1-q^l)^{1-\alpha}\right),

    and without one the sum of :math:`(p_i^l)^\alpha (q_i^u)^{1-\alpha}` over all outcomes. The
    formula bounds each term by itself. But p cannot lie at its lower limit in one term and at its
    upper limit in the other. The loss is at least about twice the width of the intervals, and a
    small divergence is of the order of a difference squared: hence PRED's 10⁸ trials a query.

    Parameters
    ----------
    counts_p, counts_q : array of shape (outcomes,)
        How often each outcome was seen in either world.
    orders : array
        Orders above 1; below 1 the formula bounds from the wrong side.
    cut : set of int, optional
        The outcomes of a 2-cut, fixed beforehand, with intervals by Clopper and Pearson. Without
        it the k-cut, whose intervals hold in the limit only: an estimate.
    intervals : {"goodman", "sison-glaz"}
        Simultaneous intervals of the k-cut. Those of Sison and Glaz have one width for all
        outcomes, so that rare outcomes are lost.
    confidence : float
        Joint confidence of all intervals. PRED leaves open whether its 95% are joint.

    Returns
    -------
    RenyiBound
        `epsilon` is an array, one value an order.

    References
    ----------
    PRED, Appendix B. Goodman (1965), "On simultaneous confidence intervals for multinomial
    proportions". Sison and Glaz (1995), "Simultaneous confidence intervals and sample size
    determination for multinomial proportions".

    Examples
    --------
    >>> bound = appendix_b_bound([7300, 2200, 500], [6300, 3200, 500], [2, 10], cut={0})
    >>> print(bound.epsilon.round(4))
    [0.     0.0804]
    """
    first, second = _two_counts(counts_p, counts_q)
    alpha = np.atleast_1d(_check.orders("orders", orders))
    if (alpha <= 1.0).any():
        raise ValueError(f"orders must lie above 1, got {alpha.min():g}")
    level = 1.0 - math.sqrt(_check.fraction("confidence", confidence))
    intervals = _check.choice("intervals", intervals, INTERVALS)
    if cut is None:
        simultaneous = goodman if intervals == "goodman" else sison_glaz
        low_p, _ = simultaneous(first, level)
        _, high_q = simultaneous(second, level)
    else:
        inside = _as_mask(cut, len(first))
        first, second = _merge(first, inside), _merge(second, inside)
        low_p, _ = limits(first, first.sum(), level / 2.0)
        _, high_q = limits(second, second.sum(), level / 2.0)
    with np.errstate(divide="ignore"):  # a lower limit of 0 leaves its term out
        terms = np.multiply.outer(np.log(low_p), alpha) + np.multiply.outer(
            np.log(high_q), 1.0 - alpha
        )
    epsilon = np.maximum(np.logaddexp.reduce(terms, axis=0) / (alpha - 1.0), 0.0)
    return RenyiBound(
        epsilon=epsilon,
        delta=0.0,
        confidence=confidence,
        claim="estimate" if cut is None else "lower bound",
        adjacency="the two worlds'",
        method=f"k-cut, {intervals.title()}" if cut is None else "2-cut, terms",
        assumptions=(INDEPENDENT, LARGE if cut is None else FIXED),
        details={"orders": alpha, "trials_p": int(first.sum()), "trials_q": int(second.sum())},
    )


def _listed(alpha: Floats) -> str:
    if alpha.size > 6:
        return f"{alpha[0]:g} to {alpha[-1]:g}"
    return f"[{', '.join(f'{order:g}' for order in alpha.tolist())}]"


def _two_counts(counts_p: ArrayLike, counts_q: ArrayLike) -> tuple[Ints, Ints]:
    """Return the counts of the two worlds, checked."""
    pair = _check.counts("counts_p", counts_p), _check.counts("counts_q", counts_q)
    for name, counts in zip(("counts_p", "counts_q"), pair, strict=True):
        if counts.ndim != 1 or len(counts) < 2:
            raise ValueError(f"{name} must have shape (outcomes,), got shape {counts.shape}")
        if counts.sum() == 0:
            raise ValueError(f"{name} must hold at least one trial, got none")
    _check.same_length(counts_p=pair[0], counts_q=pair[1])
    return pair


def _as_mask(cut: Iterable[int], outcomes: int) -> Bools:
    """Return the set of outcomes as a mask."""
    try:
        listed = np.asarray(list(cut))
    except TypeError:
        raise TypeError(f"cut must be a set of outcomes, got {cut!r}") from None
    indices = _check.counts("cut", listed)
    if indices.ndim != 1:
        raise ValueError(f"cut must be a set of outcomes, got {cut!r}")
    if indices.size and indices.max() >= outcomes:
        raise ValueError(f"cut must hold outcomes below {outcomes}, got {indices.max()}")
    mask = np.zeros(outcomes, dtype=np.bool_)
    mask[indices] = True
    if mask.all() or not mask.any():
        raise ValueError(f"cut must leave outcomes on both sides, got {cut!r}")
    return mask


def _merge(counts: Ints, inside: Bools) -> Ints:
    """Return the counts inside and outside of the cut."""
    return np.array([counts[inside].sum(), counts[~inside].sum()])


def _divergence(first: Floats, second: Floats, alpha: Floats) -> Floats:
    """Compute the divergences from arrays already checked."""
    order = np.atleast_1d(alpha)
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 is -inf, and -inf + inf is replaced
        terms = np.log(first)[..., None] * order + np.log(second)[..., None] * (1.0 - order)
    terms = np.where(first[..., None] == 0.0, -np.inf, terms)
    values: Floats = np.logaddexp.reduce(terms, axis=-2) / (order - 1.0)
    # rounding can leave a divergence of 0 a little below it
    return np.maximum(values, 0.0).reshape(values.shape[:-1] + alpha.shape)


def _corner(
    limits_p: tuple[Floats, Floats], limits_q: tuple[Floats, Floats], alpha: Floats, mirrored: bool
) -> Floats:
    """Return the divergence of two coins at the near corner of their box, (cuts, orders)."""
    (low_p, high_p), (low_q, high_q) = limits_p, limits_q
    above = low_p > high_q
    below = (high_p < low_q) & mirrored
    p = np.where(above, low_p, np.where(below, high_p, 0.5))
    q = np.where(above, high_q, np.where(below, low_q, 0.5))
    values = _divergence(np.stack([p, 1.0 - p], axis=-1), np.stack([q, 1.0 - q], axis=-1), alpha)
    return np.where((above | below)[..., None], values, 0.0)  # equal coins: 0, and no rounding


def _pilot(counts: Ints, generator: np.random.Generator) -> Ints:
    """Draw the part of the counts that chooses the cut, by a coin for each trial."""
    pilot = generator.binomial(counts, PILOT_SHARE)
    # something has to be left to test; the coins know nothing of the outcomes, so this is no bias
    return pilot if pilot.sum() < counts.sum() else np.zeros_like(counts)


def _best_cut(
    pilot_p: Ints, pilot_q: Ints, alpha: Floats, trials_p: int, trials_q: int, confidence: float
) -> Bools:
    """Return the set, of those the first world has more of, that promises most on the other part.

    The best set for any order collects the outcomes with the largest ratios, so there is one
    candidate of each size. Each is given the bound that its expected counts would have; the bounds
    of an order are taken relative to the best, so that no order outweighs the others.
    """
    # half a count more keeps outcomes that the pilot missed from an infinite ratio
    p = (pilot_p + 0.5) / (pilot_p + 0.5).sum()
    q = (pilot_q + 0.5) / (pilot_q + 0.5).sum()
    ranked = np.argsort(-p / q, kind="stable")
    a, b = np.cumsum(p[ranked])[:-1], np.cumsum(q[ranked])[:-1]
    tail = 1.0 - math.sqrt(confidence)
    promised = _corner(
        limits(a * trials_p, trials_p, tail), limits(b * trials_q, trials_q, tail), alpha, False
    )
    if promised.any():
        score = (promised / np.maximum(promised.max(axis=0), np.finfo(float).tiny)).sum(axis=1)
    else:
        score = (a - b) / np.sqrt(a * (1.0 - a) / trials_p + b * (1.0 - b) / trials_q)
    mask = np.zeros(len(p), dtype=np.bool_)
    mask[ranked[: int(score.argmax()) + 1]] = True
    return mask


def _bootstrap(
    first: Ints, second: Ints, alpha: Floats, confidence: float, generator: np.random.Generator
) -> Floats:
    """Return the low quantile of the divergences of resampled counts."""
    trials_p, trials_q = first.sum(), second.sum()
    p = generator.multinomial(trials_p, first / trials_p, size=RESAMPLES) / trials_p
    q = generator.multinomial(trials_q, second / trials_q, size=RESAMPLES) / trials_q
    # an order statistic: interpolation between infinite values would not be a number
    return np.quantile(_divergence(p, q, alpha), 1.0 - confidence, axis=0, method="lower")


def _least_divergence(first: Ints, second: Ints, alpha: Floats, confidence: float) -> Floats:
    r"""Return a floor under the divergence of all pairs of laws within simultaneous intervals.

    The pair that minimises is the same at all orders: given q, the best p is proportional to q
    except where it meets a limit, and the other way round, so the two are found in turns. A
    function that is convex lies above its tangent plane at any point, whose minimum over the boxes
    is a linear programme that filling up in order of the slopes solves. So the value is valid
    wherever the turns stopped. Below order 1 the sum is concave, and everything is mirrored.
    """
    tail = (1.0 - math.sqrt(confidence)) / (2.0 * len(first))
    box_p, box_q = limits(first, first.sum(), tail), limits(second, second.sum(), tail)
    p, q = _nearest_pair(*box_p, *box_q, second / second.sum())
    p, q = np.maximum(p, 1e-15), np.maximum(q, 1e-15)
    values = np.zeros(len(alpha))
    for index, order in enumerate(alpha):
        terms = order * np.log(p) + (1.0 - order) * np.log(q)
        log_sum = np.logaddexp.reduce(terms)
        shares = np.exp(terms - log_sum)
        sign = math.copysign(1.0, order - 1.0)
        change = _least_step(sign * order * shares / p, p, *box_p)
        change += _least_step(sign * (1.0 - order) * shares / q, q, *box_q)
        if sign * change > -1.0:
            # less than the sums can be off by rounding
            margin = 1e-14 * (1.0 + order)
            values[index] = (log_sum + math.log1p(sign * change) - sign * margin) / (order - 1.0)
    return np.maximum(values, 0.0)


def _least_step(slopes: Floats, start: Floats, low: Floats, high: Floats) -> float:
    """Return the minimum of slopes · (x - start) over the laws x between `low` and `high`."""
    ranked = np.argsort(slopes, kind="stable")
    room = (high - low)[ranked]
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    x = np.empty_like(low)
    x[ranked] = low[ranked] + np.clip(1.0 - low.sum() - before, 0.0, room)
    return float(slopes @ (x - start))


@njit(cache=True)
def _nearest_pair(
    low_p: Floats, high_p: Floats, low_q: Floats, high_q: Floats, start: Floats
) -> tuple[Floats, Floats]:
    """Find two laws within their boxes that are as close as possible, by turns."""
    q = start.copy()
    p = _nearest_law(q, low_p, high_p)
    for _ in range(1000):
        q = _nearest_law(p, low_q, high_q)
        closer = _nearest_law(q, low_p, high_p)
        moved = np.abs(closer - p).max()
        p = closer
        if moved < 1e-15:
            break
    return p, q


@njit(cache=True)
def _nearest_law(centre: Floats, low: Floats, high: Floats) -> Floats:
    """Find the law between `low` and `high` that is proportional to `centre` where it may be."""
    centre = np.maximum(centre, 1e-300)
    below, above = -700.0, 700.0
    for _ in range(80):
        middle = 0.5 * (below + above)
        total = 0.0
        for i in range(centre.size):
            total += min(max(math.exp(middle) * centre[i], low[i]), high[i])
        if total < 1.0:
            below = middle
        else:
            above = middle
    return np.minimum(np.maximum(math.exp(above) * centre, low), high)
