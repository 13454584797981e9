"""Voting among teachers: the exact law of the label that noisy argmax releases.

PATE, CaPC and PromptPATE all end the same way. Each teacher votes for a class, Gaussian noise is
added to the histogram, and the class with the largest noisy count is released. The laws here are
computed, not simulated, so what an audit finds can be held against what there is to find.

Three laws are needed, one for each source of randomness beside the noise:

- the histogram is known (PromptPATE): `noisy_argmax_probabilities`;
- teachers vote at random, all with the same probabilities (PATE), or each with its own (CaPC):
  `vote_probabilities`;
- an adversary moves one teacher: `vote_table`, of which every such world is a row or a mixture of
  rows, and `sampled_vote_table` where the exact one is out of reach.

Laws of single queries compose only as far as the queries are independent. Under PromptPATE the
histograms are fixed and only the noise is random, so Rényi divergences of queries add up order by
order. Under PATE and CaPC all queries share the training randomness. A sum over queries of the
divergences of these marginal laws can then exceed the divergence of the joint law, so it is not a
lower bound on the leakage of the session.
"""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtr

from auditkit import _check

Floats = NDArray[np.float64]

TINY = float(np.finfo(np.float64).tiny)
REACH = 8.5  # standard deviations after which a Gaussian holds no more than 1e-17
FADED = 55.0  # standard deviations behind the winner after which exp(-d²/4) is no double any more
NODES = 512  # nodes of the outer integral that are worked on at once
UNRESOLVED = 1e-11  # the contour's absolute error is 1e-14, so less than this is done again
WORK = 2e11  # multiplications after which the slow way is refused, some minutes
GRID = 100_000  # nodes of the outer integral at most
LATTICE = 2.0  # noise from which on the lattice of counts is invisible: exp(-π² sigma²) < 1e-17
CELLS = 5_000_000  # histograms that are enumerated at most, some minutes


@dataclass(frozen=True)
class SampledTable:
    """A table of laws from sampled histograms; what `sampled_vote_table` returns.

    Attributes
    ----------
    probabilities : ndarray
        Shape (classes, classes); row c estimates the law of the label given one vote for c.
    standard_error : ndarray
        Of each entry, of the same shape.
    samples : int
        Histograms drawn.
    """

    probabilities: Floats
    standard_error: Floats
    samples: int


def noisy_argmax_probabilities(votes: ArrayLike, sigma: float) -> Floats:
    r"""Compute the exact law of the label that noisy argmax releases.

    Parameters
    ----------
    votes : array of shape (..., classes)
        Histograms of votes.
    sigma : float
        Standard deviation of the Gaussian noise on each count.

    Returns
    -------
    ndarray of shape (..., classes)
        Probability of each class; a row sums to 1 within 1e-12.

    Notes
    -----
    The probability of class c is

    .. math:: \int \phi(x - a_c) \prod_{i \ne c} \Phi(x - a_i)\,dx, \qquad a_i = n_i / \sigma.

    The integrand is analytic and falls like a Gaussian, so the trapezoidal rule converges faster
    than any power of its step. Its terms are positive and its nodes cover the mode of each class,
    which lies above the midpoint between the class and the winner: the error is relative, about
    1e-13, down to 1e-290. What lies below 2.2e-308, the smallest
    normal double, is returned as that number and not as 0, since no class is impossible: otherwise
    rounding would make divergences infinite.

    References
    ----------
    PRED, Section 4.2, eq. (4).

    Examples
    --------
    >>> print(noisy_argmax_probabilities([14, 12, 10, 8, 6], 2.0).round(4))
    [7.251e-01 2.222e-01 4.640e-02 6.000e-03 4.000e-04]
    """
    histograms = _check.at_least("votes", votes, 0.0)
    _at_least_two_classes("votes", histograms)
    sigma = _check.positive("sigma", sigma)
    rows = histograms.reshape(math.prod(histograms.shape[:-1]), histograms.shape[-1])
    laws = _argmax_rows(np.ascontiguousarray(rows) / sigma)
    return np.maximum(laws, TINY).reshape(histograms.shape)


def vote_probabilities(teachers: int, class_probabilities: ArrayLike, sigma: float) -> Floats:
    """Compute the exact law of the released label when the teachers vote at random.

    Teachers vote independently, given the query.

    Parameters
    ----------
    teachers : int
        Number of teachers.
    class_probabilities : array
        Shape (classes,): all teachers share these probabilities and the histogram is multinomial
        (PATE). Shape (..., teachers, classes): a row a teacher (CaPC). Shape (queries, classes):
        one law a query, shared by its teachers; if there happen to be as many queries as teachers
        the rows are taken for teachers, so use (queries, 1, classes), which always means queries.
    sigma : float
        Standard deviation of the Gaussian noise on each count.

    Returns
    -------
    ndarray of shape (classes,), (queries, classes) or (..., classes)
        Probability of each class.

    Raises
    ------
    ValueError
        Among others, if the rows of teachers differ and allow more than five million histograms.
        `sampled_vote_table` takes such rows.

    See Also
    --------
    vote_table : the law given one teacher's vote, with notes on the method and its error.

    References
    ----------
    PRED, Sections 5.1 (multinomial) and 5.2 (a row a teacher).

    Examples
    --------
    >>> print(vote_probabilities(250, [0.5, 0.4, 0.1], 40.0).round(4))
    [0.6562 0.3282 0.0156]
    >>> sure, torn = [1.0, 0.0], [0.5, 0.5]
    >>> print(vote_probabilities(3, [sure, torn, torn], 1.0).round(4))
    [0.6858 0.3142]
    """
    teachers = _whole("teachers", teachers, 1)
    rows, lead = _rows(class_probabilities, teachers)
    sigma = _check.positive("sigma", sigma)
    others = rows if rows.shape[1] != teachers else rows[:, 1:]
    tables = _tables(teachers - 1, others, sigma)
    laws: Floats = np.einsum("qc,qco->qo", rows[:, 0], tables)
    return laws.reshape(*lead, rows.shape[-1])


def vote_table(teachers: int, class_probabilities: ArrayLike, sigma: float) -> Floats:
    r"""Compute the exact law of the released label given the vote of one teacher.

    Every adversary that acts on one teacher is read off this table: a teacher that votes with
    probabilities p releases ``p @ table``. So one table gives both worlds of an audit.

    Parameters
    ----------
    teachers : int
        Number of teachers, among them the one whose vote is given.
    class_probabilities : array
        How the other ``teachers - 1`` vote: shape (classes,) if they are alike,
        (..., teachers - 1, classes) for a row each, (queries, classes) or (queries, 1, classes)
        for several queries, as in `vote_probabilities`.
    sigma : float
        Standard deviation of the Gaussian noise on each count.

    Returns
    -------
    ndarray of shape (..., classes, classes)
        Entry [c, o] is the probability that o is released given one vote for c.

    Raises
    ------
    ValueError
        Among others, if the rows of the others differ and allow more than five million histograms;
        `sampled_vote_table` takes such rows. Also if an entry below 1e-11 would take too long.

    Notes
    -----
    For votes alike, let the count of class i be Poisson with mean :math:`(k-1) p_i`; given that
    the total is k - 1 the counts are multinomial. A total is picked out by an integral over the
    circle, :math:`\frac{1}{2\pi}\int E[e^{i\theta(T - k + 1)} \cdots]\,d\theta`, under which the
    classes are independent, so the product over classes in `noisy_argmax_probabilities` becomes a
    product of one-dimensional sums. Both integrals are trapezoidal sums with errors below
    1e-14. Where an entry comes out below 1e-11 the table is computed again by multiplying the
    polynomials of the classes, which has no cancellation and gives each entry to a relative 1e-11.

    Rows that differ do not factorise over classes. Then all histograms that the rows allow are
    enumerated with their exact probabilities, by adding one teacher at a time.

    References
    ----------
    PRED, Sections 5.1 and 5.2.

    Examples
    --------
    >>> table = vote_table(250, [0.5, 0.4, 0.1], 40.0)
    >>> print(table.round(4))
    [[0.6618 0.3227 0.0154]
     [0.6494 0.335  0.0156]
     [0.6549 0.3284 0.0167]]
    """
    teachers = _whole("teachers", teachers, 1)
    rows, lead = _rows(class_probabilities, teachers - 1)
    sigma = _check.positive("sigma", sigma)
    tables = _tables(teachers - 1, rows, sigma)
    return tables.reshape(*lead, *tables.shape[1:])


def sampled_vote_table(
    class_probabilities: ArrayLike,
    sigma: float,
    *,
    samples: int = 2000,
    rng: int | np.random.Generator,
) -> SampledTable:
    """Estimate the table of `vote_table` when the exact one is out of reach.

    The histogram of the other teachers is sampled; given the histogram the law is exact. All rows
    share the same histograms, so that worlds that differ in one teacher are compared on them.

    Parameters
    ----------
    class_probabilities : array of shape (teachers - 1, classes)
        A row for each of the other teachers.
    sigma : float
        Standard deviation of the Gaussian noise on each count.
    samples : int
        Histograms to draw: at least ten for each of the ``(classes - 1) * (classes + 2) / 2``
        control variates.
    rng : numpy Generator or int
        Source of randomness, or a seed for one.

    Returns
    -------
    SampledTable
        The estimate with the standard error of each entry.

    Notes
    -----
    The law is a smooth function of the histogram, nearly a quadratic one. The counts and their
    products, whose means are known, therefore serve as control variates; coefficients are fitted
    on one half of the samples and used on the other, so that the estimate stays unbiased. A
    probability far below the standard error is not resolved, and may come out negative.

    References
    ----------
    PRED, Section 5.2, whose model of CaPC this samples. Glasserman (2003), "Monte Carlo Methods in
    Financial Engineering", Section 4.1, for control variates.

    Examples
    --------
    >>> rows = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=249)
    >>> sampled = sampled_vote_table(rows, 40.0, rng=0)
    >>> exact = vote_table(250, rows, 40.0)
    >>> bool((abs(sampled.probabilities - exact) < 5 * sampled.standard_error).all())
    True
    """
    rows = _check.distributions("class_probabilities", class_probabilities)
    if rows.ndim != 2:
        raise ValueError(
            f"class_probabilities must have shape (teachers - 1, classes), got shape {rows.shape}"
        )
    _at_least_two_classes("class_probabilities", rows)
    sigma = _check.positive("sigma", sigma)
    classes = rows.shape[1]
    controls = (classes - 1) * (classes + 2) // 2
    samples = _whole("samples", samples, 10 * controls)
    uniforms = np.random.default_rng(rng).random((samples, len(rows)))
    histograms = _draw_histograms(rows, uniforms)
    features = _centred_features(histograms, rows)
    laws = [_argmax_rows((histograms + vote) / sigma) for vote in np.eye(classes)]
    outcomes = np.concatenate(laws, axis=1)
    adjusted = _adjust(outcomes, features)
    error = adjusted.std(axis=0, ddof=1) / math.sqrt(samples)
    shape = (classes, classes)
    return SampledTable(adjusted.mean(axis=0).reshape(shape), error.reshape(shape), samples)


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
    _at_least_two_classes("votes", histograms)
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


# --- the border ----------------------------------------------------------------------------------


def _whole(name: str, value: int, least: int) -> int:
    """Return `value` as a whole number of at least `least`."""
    number = _check.scalar(name, value)
    if number != math.floor(number) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(number)


def _at_least_two_classes(name: str, array: Floats) -> None:
    """Refuse arrays whose last axis cannot be one of classes."""
    if array.ndim == 0 or array.shape[-1] < 2:
        raise ValueError(f"{name} must have at least 2 classes on its last axis, got {array.shape}")


def _rows(class_probabilities: ArrayLike, voters: int) -> tuple[Floats, tuple[int, ...]]:
    """Return the probabilities as (queries, rows, classes), and the shape of the queries."""
    given = _check.distributions("class_probabilities", class_probabilities)
    _at_least_two_classes("class_probabilities", given)
    classes = given.shape[-1]
    row_a_voter = given.ndim > 1 and given.shape[-2] == voters
    if row_a_voter or (given.ndim > 2 and given.shape[-2] == 1):
        lead = given.shape[:-2]
        return given.reshape(math.prod(lead), given.shape[-2], classes), lead
    return given.reshape(math.prod(given.shape[:-1]), 1, classes), given.shape[:-1]


# --- a histogram that is known -------------------------------------------------------------------


@njit(cache=True, parallel=True)
def _argmax_rows(scaled: Floats) -> Floats:
    """Compute the law for each row of votes over sigma."""
    laws = np.zeros(scaled.shape)
    for row in prange(scaled.shape[0]):
        _argmax_law(scaled[row], laws[row])
    return laws


@njit(cache=True)
def _argmax_law(scaled: Floats, law: Floats) -> None:
    """Add the law of argmax(scaled + standard noise) to `law`, by the trapezoidal rule."""
    classes = scaled.size
    top = scaled.max()
    bottom = top
    for i in range(classes):
        if scaled[i] > top - FADED:
            bottom = min(bottom, scaled[i])
    # on the line z = x + iy the integrand grows like exp(classes y²/2) at most: this step leaves
    # a relative error of exp(-2π² / (classes step²)) < 1e-13
    step = min(0.25, 0.8 / math.sqrt(classes))
    low = 0.5 * (bottom + top) - REACH
    high = top + REACH + math.sqrt(2.0 * math.log(classes))
    below = np.empty(classes)
    for node in range(int((high - low) / step) + 1):
        x = low + node * step
        product = step / math.sqrt(2.0 * math.pi)
        for i in range(classes):
            z = x - scaled[i]
            below[i] = 1.0 if z > REACH else 0.5 * math.erfc(-z / math.sqrt(2.0))
            product *= below[i]
        if product > 0.0:
            for i in range(classes):
                law[i] += math.exp(-0.5 * (x - scaled[i]) ** 2) * (product / below[i])


# --- teachers that vote at random ----------------------------------------------------------------


def _tables(voters: int, rows: Floats, sigma: float) -> Floats:
    """Compute the table for each query, from the rows (queries, 1 or voters, classes)."""
    queries, count, classes = rows.shape
    if count == 0:  # nobody else votes, so that any row will do
        rows = np.full((queries, 1, classes), 1.0 / classes)
    alike = (rows == rows[:, :1]).all(axis=(1, 2))
    tables = np.empty((queries, classes, classes))
    tables[alike] = _multinomial_tables(voters, rows[alike, 0], sigma)
    for query in np.flatnonzero(~alike):
        tables[query] = _enumerated_table(rows[query], sigma)
    return np.maximum(tables, TINY)


def _multinomial_tables(voters: int, p: Floats, sigma: float) -> Floats:
    """Compute the table for each row of `p` when the voters are alike."""
    classes = p.shape[1]
    # totals that differ by this many from the right one have a Poisson weight below 1e-17 of it
    points = 2 * math.ceil((9.5 * math.sqrt(voters) + 10.0) / 2.0)
    counts = np.arange(voters + points + 2)
    angles = np.outer(2.0 * math.pi / points * np.arange(points // 2 + 1), counts)
    cosines, sines = np.cos(angles), np.sin(angles)
    nodes, step = _grid(voters, classes, sigma)
    tables = np.zeros((len(p), classes, classes))
    for start in range(0, len(nodes), NODES):
        below, density = _smoothed(nodes[start : start + NODES], counts, sigma)
        _add_contour(tables, p, voters, below, density * step, cosines, sines, sigma >= LATTICE)
    faint = tables.min(axis=(1, 2), initial=1.0) < UNRESOLVED
    if faint.any():
        work = 0.5 * classes**2 * float(voters) ** 2 * len(nodes)
        if work > WORK:
            raise ValueError(
                f"a label has a probability below {UNRESOLVED:g}; with teachers = {voters + 1}, "
                f"{classes} classes and sigma = {sigma:g} it would take too long to resolve"
            )
        tables[faint] = [_polynomial_table(voters, row, nodes, step, sigma) for row in p[faint]]
    return tables


def _grid(voters: int, classes: int, sigma: float) -> tuple[Floats, float]:
    """Return the nodes of the outer integral, and their distance in units of sigma."""
    step = min(0.25, 0.8 / math.sqrt(classes))
    # the winner has voters / classes votes at least, and each class its mode above half of that
    low = 0.5 * voters / classes - REACH * sigma
    high = voters + 1.0 + (REACH + math.sqrt(2.0 * math.log(classes))) * sigma
    if high - low > GRID * step * sigma:
        raise ValueError(
            f"sigma = {sigma:g} is too small beside teachers = {voters + 1}: the integral would "
            f"take more than {GRID:,} nodes"
        )
    return np.arange(low, high + step * sigma, step * sigma), step


def _smoothed(nodes: Floats, counts: NDArray[np.int64], sigma: float) -> tuple[Floats, Floats]:
    """Return Φ and φ of (node - count) / sigma, of shape (counts, nodes)."""
    z = (nodes - counts[:, None]) / sigma
    return ndtr(z), np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)


@njit(cache=True)
def _poisson_weights(mean: float, least: float, weights: Floats) -> tuple[int, int]:
    """Fill in the Poisson weights above `least` of the largest; return the first and the last.

    Starting at the mode and multiplying keeps the relative error near rounding; logarithms of
    factorials would lose three digits.
    """
    weights[:] = 0.0
    mode = min(int(mean), weights.size - 1)
    weights[mode] = 1.0
    first, last = mode, mode
    while first > 0 and weights[first] * first / mean > least:
        weights[first - 1] = weights[first] * first / mean
        first -= 1
    while last < weights.size - 1 and weights[last] * mean / (last + 1) > least:
        weights[last + 1] = weights[last] * mean / (last + 1)
        last += 1
    weights /= weights.sum()
    return first, last


@njit(cache=True, parallel=True)
def _add_contour(
    tables: Floats,
    p: Floats,
    voters: int,
    below: Floats,
    density: Floats,
    cosines: Floats,
    sines: Floats,
    fades: bool,
) -> None:
    """Add the part of the outer integral that `below` and `density` cover to each table."""
    classes = p.shape[1]
    size = below.shape[0] - 1
    for query in prange(p.shape[0]):
        weights = np.empty((classes, size))
        spans = np.empty((classes, 2), dtype=np.int64)
        for i in range(classes):
            first, last = _poisson_weights(voters * p[query, i], 1e-21, weights[i])
            spans[i, 0] = first
            spans[i, 1] = last
        share = 1.0 / _total_weight(weights, spans, cosines, sines, voters)
        quiet = 0
        for turn in range(cosines.shape[0]):
            change = _add_turn(
                tables[query], weights, spans, below, density, cosines, sines, voters, turn, share
            )
            # smooth sums fade like a Gaussian along the half circle: after two turns without
            # effect there is nothing to come; sharp ones come back where the lattice resonates
            quiet = quiet + 1 if fades and change < 1e-16 else 0
            if quiet == 2:
                break


@njit(cache=True)
def _total_weight(
    weights: Floats, spans: NDArray[np.int64], cosines: Floats, sines: Floats, voters: int
) -> float:
    """Compute the contour sum for the total alone: what the table has to be divided by."""
    half = cosines.shape[0] - 1
    total = 0.0
    for turn in range(half + 1):
        product = complex(cosines[turn, voters], -sines[turn, voters])
        for i in range(weights.shape[0]):
            real, imaginary = 0.0, 0.0
            for j in range(spans[i, 0], spans[i, 1] + 1):
                real += weights[i, j] * cosines[turn, j]
                imaginary += weights[i, j] * sines[turn, j]
            product *= complex(real, imaginary)
        total += product.real if turn == 0 or turn == half else 2.0 * product.real
    return total


@njit(cache=True)
def _add_turn(
    table: Floats,
    weights: Floats,
    spans: NDArray[np.int64],
    below: Floats,
    density: Floats,
    cosines: Floats,
    sines: Floats,
    voters: int,
    turn: int,
    share: float,
) -> float:
    """Add one point of the contour, and its mirror image, to the table; return its effect."""
    sums = np.empty((weights.shape[0], 8, below.shape[1]))
    _class_sums(sums, weights, spans, below, density, cosines[turn], sines[turn])
    factor = share if turn in (0, cosines.shape[0] - 1) else 2.0 * share
    phase = complex(factor * cosines[turn, voters], -factor * sines[turn, voters])
    return _add_products(table, sums, phase)


@njit(cache=True)
def _class_sums(
    sums: Floats,
    weights: Floats,
    spans: NDArray[np.int64],
    below: Floats,
    density: Floats,
    cosine: Floats,
    sine: Floats,
) -> None:
    """Compute Σ w(j) e^{ijθ} g(j) for each class and node, real and imaginary parts.

    The four g are Φ and φ at j votes, then both at j + 1, for the class that gets the given vote.
    """
    sums[:] = 0.0
    for i in range(weights.shape[0]):
        for j in range(spans[i, 0], spans[i, 1] + 1):
            real = weights[i, j] * cosine[j]
            imaginary = weights[i, j] * sine[j]
            for x in range(below.shape[1]):
                sums[i, 0, x] += real * below[j, x]
                sums[i, 1, x] += imaginary * below[j, x]
                sums[i, 2, x] += real * density[j, x]
                sums[i, 3, x] += imaginary * density[j, x]
                sums[i, 4, x] += real * below[j + 1, x]
                sums[i, 5, x] += imaginary * below[j + 1, x]
                sums[i, 6, x] += real * density[j + 1, x]
                sums[i, 7, x] += imaginary * density[j + 1, x]


@njit(cache=True)
def _add_products(table: Floats, sums: Floats, phase: complex) -> float:
    """Add the products over classes to the table; return the largest change of an entry.

    With T the product of all Φ-sums, entry [c, o] is T (φ_o / Φ_o) (Φ⁺_c / Φ_c), and entry [o, o]
    is T φ⁺_o / Φ_o, where + marks one vote more.
    """
    classes = sums.shape[0]
    change = np.zeros((classes, classes))
    wins = np.empty(classes, dtype=np.complex128)
    shifts = np.empty(classes, dtype=np.complex128)
    both = np.empty(classes, dtype=np.complex128)
    for x in range(sums.shape[2]):
        product = phase
        for i in range(classes):
            base = complex(sums[i, 0, x], sums[i, 1, x])
            if abs(base.real) + abs(base.imag) < 1e-150:
                base = complex(1e-150, 0.0)  # left out of each product that is not itself 0
            product *= base
            inverse = 1.0 / base
            wins[i] = complex(sums[i, 2, x], sums[i, 3, x]) * inverse
            shifts[i] = complex(sums[i, 4, x], sums[i, 5, x]) * inverse
            both[i] = complex(sums[i, 6, x], sums[i, 7, x]) * inverse
        for o in range(classes):
            won = product * wins[o]
            for c in range(classes):
                change[c, o] += won.real * shifts[c].real - won.imag * shifts[c].imag
            change[o, o] += (product * both[o] - won * shifts[o]).real
    table += change
    return float(np.abs(change).max())


def _polynomial_table(voters: int, p: Floats, nodes: Floats, step: float, sigma: float) -> Floats:
    """Compute one table by multiplying polynomials with positive coefficients."""
    weights = np.empty((len(p), voters + 1))
    spans = np.array(
        [_poisson_weights(voters * p[i], 1e-300, weights[i]) for i in range(len(p))], dtype=np.int64
    )
    total = np.ones(1)
    for row in weights:
        total = np.convolve(total, row)[: voters + 1]
    table = np.zeros((len(p), len(p)))
    for start in range(0, len(nodes), NODES):
        block = nodes[start : start + NODES]
        below, density = _smoothed(block, np.arange(voters + 2), sigma)
        table += _multiply(weights, spans, below.T.copy(), density.T.copy()).sum(axis=0)
    table *= step / total[voters]
    return table


@njit(cache=True, parallel=True)
def _multiply(weights: Floats, spans: NDArray[np.int64], below: Floats, density: Floats) -> Floats:
    """Compute the last coefficient of the product over classes, a table for each node."""
    classes = weights.shape[0]
    parts = np.zeros((below.shape[0], classes, classes))
    for x in prange(below.shape[0]):
        _multiply_at(parts[x], weights, spans, below[x], density[x])
    return parts


@njit(cache=True)
def _multiply_at(
    part: Floats, weights: Floats, spans: NDArray[np.int64], below: Floats, density: Floats
) -> None:
    """Fill in the table of one node.

    Two classes of the product are special: o, which wins, and c, which has one vote more. The
    classes before the first of them are multiplied once, and so are those from the second on.
    """
    classes, size = weights.shape
    before = np.zeros((classes + 1, size))
    after = np.zeros((classes + 1, size))
    wins = np.empty((classes, size))
    shifts = np.empty((classes, size))
    run = np.empty((2, size))
    before[0, 0] = 1.0
    after[classes, 0] = 1.0
    for i in range(classes):
        _times(before[i], weights[i], below, spans[i], before[i + 1])
    for i in range(classes - 1, -1, -1):
        _times(after[i + 1], weights[i], below, spans[i], after[i])
        _times(after[i + 1], weights[i], density, spans[i], wins[i])
        _times(after[i + 1], weights[i], below[1:], spans[i], shifts[i])
    for first in range(classes):
        _times(before[first], weights[first], density[1:], spans[first], run[0])
        part[first, first] = (run[0] * after[first + 1][::-1]).sum()
        for wins_first in (True, False):
            g = density if wins_first else below[1:]
            _times(before[first], weights[first], g, spans[first], run[0])
            for second in range(first + 1, classes):
                if wins_first:
                    part[second, first] = (run[0] * shifts[second][::-1]).sum()
                else:
                    part[first, second] = (run[0] * wins[second][::-1]).sum()
                _times(run[0], weights[second], below, spans[second], run[1])
                run[0] = run[1]


@njit(cache=True)
def _times(
    left: Floats, weights: Floats, g: Floats, span: NDArray[np.int64], product: Floats
) -> None:
    """Multiply the polynomials `left` and ``weights * g``, up to the length of `product`."""
    product[:] = 0.0
    for j in range(span[0], span[1] + 1):
        factor = weights[j] * g[j]
        if factor > 0.0:
            for i in range(product.size - j):
                product[i + j] += factor * left[i]


# --- teachers that differ ------------------------------------------------------------------------


def _enumerated_table(rows: Floats, sigma: float) -> Floats:
    """Compute the table by going through all histograms that the rows allow."""
    classes = rows.shape[1]
    histograms, weights = _histogram_law(rows)
    table = np.zeros((classes, classes))
    for start in range(0, len(weights), 1 << 16):
        block = slice(start, start + (1 << 16))
        for c, vote in enumerate(np.eye(classes)):
            table[c] += weights[block] @ _argmax_rows((histograms[block] + vote) / sigma)
    return table


def _histogram_law(rows: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Enumerate the histograms with their probabilities, adding one teacher at a time.

    The class with the most to gain follows from the others and gets no axis; nor does a class
    get more cells than there are teachers who may vote for it.
    """
    certain = (rows == 1.0).any(axis=1)
    random = rows[~certain]
    gains = (random > 0.0).sum(axis=0)
    implied = int(gains.argmax())
    axes = [i for i in range(rows.shape[1]) if gains[i] > 0 and i != implied]
    cells = math.prod(int(gains[i]) + 1 for i in axes)
    if cells > CELLS:
        raise ValueError(
            f"class_probabilities allow {cells:,} histograms, of which at most {CELLS:,} can be "
            "enumerated: take sampled_vote_table for rows like these"
        )
    state = np.ones((1,) * len(axes))
    for row in random:
        grown = np.zeros([n + (row[i] > 0.0) for n, i in zip(state.shape, axes, strict=True)])
        home = [slice(n) for n in state.shape]
        grown[tuple(home)] = row[implied] * state
        for axis, i in enumerate(axes):
            if row[i] > 0.0:
                moved = home.copy()
                moved[axis] = slice(1, state.shape[axis] + 1)
                grown[tuple(moved)] += row[i] * state
        state = grown
    reached = np.argwhere(state > 0.0)
    histograms = np.zeros((len(reached), rows.shape[1]), dtype=np.int64)
    histograms[:, axes] = reached
    histograms[:, implied] = len(random) - reached.sum(axis=1)
    votes_for_certain = (rows[certain] == 1.0).sum(axis=0)
    return histograms + votes_for_certain, state[state > 0.0]


def _draw_histograms(rows: Floats, uniforms: Floats) -> NDArray[np.int64]:
    """Turn uniforms of shape (samples, teachers) into histograms of votes."""
    limits = np.cumsum(rows, axis=1)
    limits[:, -1] = np.inf  # rounding must not leave a teacher without a vote
    histograms = np.zeros((len(uniforms), rows.shape[1]), dtype=np.int64)
    lines = np.arange(len(uniforms))
    for teacher in range(len(rows)):
        votes = np.searchsorted(limits[teacher], uniforms[:, teacher], side="right")
        histograms[lines, votes] += 1
    return histograms


def _centred_features(histograms: NDArray[np.int64], rows: Floats) -> Floats:
    """Return the counts and their products, less their known means."""
    counts = (histograms - rows.sum(axis=0))[:, :-1]
    covariance = np.diag(rows.sum(axis=0)) - rows.T @ rows
    first, second = np.triu_indices(counts.shape[1])
    products = counts[:, first] * counts[:, second] - covariance[first, second]
    return np.concatenate([counts, products], axis=1)


def _adjust(outcomes: Floats, features: Floats) -> Floats:
    """Take the part that the features explain out of the outcomes, fitted on the other half."""
    adjusted = outcomes.copy()
    half = len(outcomes) // 2
    parts = slice(None, half), slice(half, None)
    for here, there in (parts, parts[::-1]):
        design = np.column_stack([np.ones(len(features[there])), features[there]])
        fitted = np.linalg.lstsq(design, outcomes[there], rcond=None)[0]
        adjusted[here] -= features[here] @ fitted[1:]
    return adjusted


# --- upper bounds --------------------------------------------------------------------------------


def _log_other(histograms: Floats, sigma: float) -> Floats:
    """Bound the log-probability that another class than the leading one wins."""
    leader = histograms.argmax(axis=-1)[..., None]
    gaps = np.take_along_axis(histograms, leader, axis=-1) - histograms
    log_tails = log_ndtr(-gaps / (math.sqrt(2.0) * sigma))
    np.put_along_axis(log_tails, leader, -np.inf, axis=-1)
    # the leader wins at least as often as any other class
    cap = math.log1p(-1.0 / histograms.shape[-1])
    log_q: Floats = np.minimum(logsumexp(log_tails, axis=-1), cap)
    return log_q
