"""Voting among teachers: the exact law of the label that noisy argmax releases.

PATE, CaPC and PromptPATE all end the same way. Each teacher votes for a class, Gaussian noise is
added to the histogram, and the class with the largest noisy count is released. The laws here are
computed, not simulated, so what an audit finds can be held against what there is to find.
The quadrature is in `noisy_argmax`, the laws of random histograms in `vote_laws` and, for teachers
that differ, in `differing_voters`.

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

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats
from auditkit.mechanisms.differing_voters import sampled_table
from auditkit.mechanisms.noisy_argmax import TINY, argmax_rows
from auditkit.mechanisms.vote_laws import vote_tables


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
    _check.classes("votes", histograms)
    sigma = _check.positive("sigma", sigma)
    rows = histograms.reshape(math.prod(histograms.shape[:-1]), histograms.shape[-1])
    laws = argmax_rows(np.ascontiguousarray(rows) / sigma)
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
        (PATE). Shape (queries, 1, classes) or (queries, classes): one law a query, shared by its
        teachers. Shape (queries, teachers, classes): a row a teacher (CaPC); a single query is
        one of shape (1, teachers, classes), or ``rows[None]``.
    sigma : float
        Standard deviation of the Gaussian noise on each count.

    Returns
    -------
    ndarray of shape (classes,) or (queries, classes)
        Probability of each class.

    Raises
    ------
    ValueError
        Among others, if two axes leave open what a row is, since there are as many rows as
        teachers; and if the rows of teachers differ and allow more than five million histograms.
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
    >>> print(vote_probabilities(3, [[sure, torn, torn]], 1.0).round(4))  # one query
    [[0.6858 0.3142]]
    """
    teachers = _check.whole("teachers", teachers, least=1)
    rows, lead = _rows(class_probabilities, teachers)
    sigma = _check.positive("sigma", sigma)
    others = rows if rows.shape[1] != teachers else rows[:, 1:]
    tables = vote_tables(teachers - 1, others, sigma)
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
        How the other ``teachers - 1`` vote: shape (classes,) if they are alike, (queries, 1,
        classes) or (queries, classes) if they are alike in each query, and (queries, teachers - 1,
        classes) for a row each, as in `vote_probabilities`.
    sigma : float
        Standard deviation of the Gaussian noise on each count.

    Returns
    -------
    ndarray of shape (classes, classes) or (queries, classes, classes)
        Entry [c, o] is the probability that o is released given one vote for c.

    Raises
    ------
    ValueError
        Among others, if two axes leave open what a row is, since there are as many rows as other
        teachers; if the rows of the others differ and allow more than five million histograms,
        which `sampled_vote_table` takes; and if an entry below 1e-11 would take too long.

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
    teachers = _check.whole("teachers", teachers, least=1)
    rows, lead = _rows(class_probabilities, teachers - 1)
    sigma = _check.positive("sigma", sigma)
    tables = vote_tables(teachers - 1, rows, sigma)
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
    >>> exact = vote_table(250, rows[None], 40.0)[0]
    >>> bool((abs(sampled.probabilities - exact) < 5 * sampled.standard_error).all())
    True
    """
    rows = _check.distributions("class_probabilities", class_probabilities)
    if rows.ndim != 2:
        raise ValueError(
            f"class_probabilities must have shape (teachers - 1, classes), got shape {rows.shape}"
        )
    _check.classes("class_probabilities", rows)
    sigma = _check.positive("sigma", sigma)
    classes = rows.shape[1]
    controls = (classes - 1) * (classes + 2) // 2
    samples = _check.whole("samples", samples, least=10 * controls)
    uniforms = np.random.default_rng(rng).random((samples, len(rows)))
    table, error = sampled_table(rows, sigma, uniforms)
    return SampledTable(table, error, samples)


def _rows(class_probabilities: ArrayLike, voters: int) -> tuple[Floats, tuple[int, ...]]:
    """Return the probabilities as (queries, rows, classes), and the shape of the queries."""
    given = _check.distributions("class_probabilities", class_probabilities)
    _check.classes("class_probabilities", given)
    classes = given.shape[-1]
    if given.ndim == 2 and len(given) == voters:
        raise ValueError(
            f"class_probabilities of shape {given.shape} may hold a row a query or a row for each "
            f"of {voters} voters: make it (1, {voters}, {classes}) for one query with a row a "
            f"voter, or ({voters}, 1, {classes}) for a row a query"
        )
    if given.ndim > 2 and given.shape[-2] not in (1, voters):
        raise ValueError(
            "class_probabilities must have shape (classes,), (queries, classes), (queries, 1, "
            f"classes) or (queries, {voters}, classes) with a row a voter, got shape {given.shape}"
        )
    if given.ndim > 2:
        lead = given.shape[:-2]
        return given.reshape(math.prod(lead), given.shape[-2], classes), lead
    return given.reshape(math.prod(given.shape[:-1]), 1, classes), given.shape[:-1]
