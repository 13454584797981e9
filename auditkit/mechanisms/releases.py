"""From votes to the two laws of an audit: what is released without a point, and with it.

PATE, CaPC and PromptPATE differ in where their randomness lies, and in nothing else. So each
function here takes how the teachers vote for queries, without the point and with it, and returns
the two laws of the released label. Private-kNN, whose teachers are the training points, is in
`private_knn`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.bounds.renyi import renyi_divergence
from auditkit.mechanisms.voting import noisy_argmax_probabilities, vote_table


@dataclass(frozen=True, eq=False)
class Releases:
    """The laws of the released label in the two worlds of an audit.

    Attributes
    ----------
    without, with_point : ndarray of shape (queries, classes)
        Probability of each label, without the point and with it.

    Examples
    --------
    >>> pair = Releases(np.array([[0.5, 0.5]]), np.array([[0.75, 0.25]]))
    >>> pair.divergences([2, 10]).round(4)
    array([[0.2877, 0.6161]])
    """

    without: Floats
    with_point: Floats

    def directions(self, orders: ArrayLike) -> Floats:
        """Return the Rényi divergences of both directions, (2, queries, orders).

        Where answers are independent, each direction adds up by itself: the larger one of each
        query, added, may be more than either.
        """
        return np.array(
            [
                renyi_divergence(self.without, self.with_point, orders),
                renyi_divergence(self.with_point, self.without, orders),
            ]
        )

    def divergences(self, orders: ArrayLike) -> Floats:
        """Return the larger of the two directions for each query, (queries, orders)."""
        larger: Floats = self.directions(orders).max(axis=0)
        return larger


def pate_releases(
    votes: ArrayLike, changed: ArrayLike, teachers: int, *, classes: int, sigma: float
) -> Releases:
    """Compute the laws of PATE, where points are dealt to the teachers at random.

    All teachers are alike: the histogram is multinomial. With the point, one of them was trained on
    it and votes with the law of `changed`. Both laws are shares of votes that were seen.

    Parameters
    ----------
    votes : array of shape (models, queries)
        Votes of models, each trained on a random part of the data.
    changed : array of shape (other models, queries)
        Votes of models that were trained on such a part and the point.
    teachers : int
        Number of teachers that vote.
    classes : int
        Number of classes.
    sigma : float
        Standard deviation of the Gaussian noise on each count.

    Returns
    -------
    Releases
        Laws of single queries. All queries share the training, so their divergences do not add up.

    References
    ----------
    PRED, Section 5.1.

    Examples
    --------
    >>> pair = pate_releases([[0], [0], [1], [1]], [[1]], teachers=250, classes=2, sigma=40.0)
    >>> pair.without.round(3), pair.with_point.round(3)
    (array([[0.5, 0.5]]), array([[0.493, 0.507]]))
    """
    seen = vote_shares(votes, classes)
    moved = vote_shares(changed, classes)
    _same_queries(seen, moved)
    tables = vote_table(_check.whole("teachers", teachers, least=2), seen[:, None], sigma)
    return Releases(*(np.einsum("qc,qco->qo", law, tables) for law in (seen, moved)))


def capc_releases(
    votes: ArrayLike,
    changed: ArrayLike,
    teacher: int,
    *,
    classes: int,
    sigma: float,
    samples: int = 100,
    rng: int | np.random.Generator,
) -> Releases:
    """Estimate the laws of CaPC, where each teacher has its own data.

    Only training is random, and each teacher has a law of its own. The histogram of the others is
    sampled, the same for both worlds; given it, the laws are exact.

    Parameters
    ----------
    votes : array of shape (trainings, teachers, queries)
        Votes of every teacher, each time trained anew on its own data.
    changed : array of shape (other trainings, queries)
        Votes of one teacher, trained on its data and the point.
    teacher : int
        Which teacher that is.
    classes : int
        Number of classes.
    sigma : float
        Standard deviation of the Gaussian noise on each count.
    samples : int
        Histograms of the other teachers to draw, as in `other_votes_table`.
    rng : Generator or int
        Source of randomness; an integer is a seed.

    Returns
    -------
    Releases
        Laws of single queries, whose divergences do not add up where training is random.

    References
    ----------
    PRED, Section 5.2.

    Examples
    --------
    >>> votes = np.repeat([[[0]], [[1]]], [120, 130], axis=0).reshape(1, 250, 1)
    >>> pair = capc_releases(votes, [[1]], 0, classes=2, sigma=40.0, rng=0)
    >>> pair.without.round(3), pair.with_point.round(3)
    (array([[0.43, 0.57]]), array([[0.416, 0.584]]))
    """
    kinds = _check.whole("classes", classes, least=2)
    given = _labels("votes", votes, kinds)
    if given.ndim != 3 or given.shape[1] < 2:
        raise ValueError(
            f"votes must have shape (trainings, teachers, queries), got shape {given.shape}"
        )
    place = _check.whole("teacher", teacher)
    if place >= given.shape[1]:
        raise ValueError(f"teacher must lie below {given.shape[1]}, got {teacher!r}")
    moved = vote_shares(changed, kinds)
    rows = (given[..., None] == np.arange(kinds)).mean(axis=0)  # (teachers, queries, classes)
    _same_queries(rows[0], moved)
    others = np.delete(rows, place, axis=0)
    generator = _check.generator("rng", rng)
    tables = np.empty((len(moved), kinds, kinds))
    for query in range(len(moved)):
        tables[query] = other_votes_table(others[:, query], sigma, samples=samples, rng=generator)
    return Releases(*(np.einsum("qc,qco->qo", law, tables) for law in (rows[place], moved)))


def other_votes_table(
    rows: ArrayLike, sigma: float, *, samples: int = 100, rng: int | np.random.Generator
) -> Floats:
    """Estimate the law of the released label given one vote, where the others differ.

    Histograms of the others are drawn, and given a histogram the law is exact. All votes are cast
    on the same histograms. So worlds that differ in one vote are compared on them, and a hundred
    will do for their divergence: it depends on the histogram far less than on the vote.

    Parameters
    ----------
    rows : array of shape (other teachers, classes)
        Law of the vote of each of the others.
    sigma : float
        Standard deviation of the Gaussian noise on each count.
    samples : int
        Histograms to draw; one is enough, and exact, where all are sure of their votes.
    rng : Generator or int
        Source of randomness; an integer is a seed.

    Returns
    -------
    ndarray of shape (classes, classes)
        Entry [c, o] is the probability that o is released given one vote for c.

    References
    ----------
    PRED, Section 5.2. `auditkit.mechanisms.voting.sampled_vote_table` estimates the law itself with
    less error, which takes more time.

    Examples
    --------
    >>> other_votes_table([[1, 0], [0, 1]], 1.0, samples=1, rng=0).round(3)
    array([[0.76, 0.24],
           [0.24, 0.76]])
    """
    law = _check.distributions("rows", rows)
    if law.ndim != 2 or law.shape[1] < 2:
        raise ValueError(f"rows must have shape (teachers, classes), got shape {law.shape}")
    draws = _check.generator("rng", rng).random(
        (_check.whole("samples", samples, least=1), len(law), 1)
    )
    one = np.eye(law.shape[1])
    # the last limit is left out, so that rounding leaves no teacher without a vote
    drawn = (draws >= law.cumsum(axis=1)[:, :-1]).sum(axis=2)
    histograms = one[drawn].sum(axis=1)
    cast = noisy_argmax_probabilities(histograms[:, None] + one, sigma)
    table: Floats = cast.mean(axis=0)
    return table


def prompt_releases(
    votes: ArrayLike, changed: ArrayLike, teacher: int, *, classes: int, sigma: float
) -> Releases:
    """Compute the laws of PromptPATE, where teachers always vote alike.

    Parameters
    ----------
    votes : array of shape (teachers, queries)
        Vote of each teacher.
    changed : array of shape (queries,)
        Votes of one teacher with another prompt.
    teacher : int
        Which teacher that is.
    classes : int
        Number of classes.
    sigma : float
        Standard deviation of the Gaussian noise on each count.

    Returns
    -------
    Releases
        Only the noise is random, and each query has its own: divergences of queries add up.

    References
    ----------
    PRED, Section 5.3.

    Examples
    --------
    >>> pair = prompt_releases([[0], [0], [1]], [1], 0, classes=2, sigma=2.0)
    >>> pair.without.round(4), pair.with_point.round(4)
    (array([[0.6382, 0.3618]]), array([[0.3618, 0.6382]]))
    """
    kinds = _check.whole("classes", classes, least=2)
    given, moved = _labels("votes", votes, kinds), _labels("changed", changed, kinds)
    if given.ndim != 2 or moved.shape != given.shape[1:]:
        raise ValueError(
            "votes must have shape (teachers, queries) and changed (queries,), "
            f"got {given.shape} and {moved.shape}"
        )
    place = _check.whole("teacher", teacher)
    if place >= len(given):
        raise ValueError(f"teacher must lie below {len(given)}, got {teacher!r}")
    one = np.eye(kinds)
    histograms = one[given].sum(axis=0)
    after = histograms - one[given[place]] + one[moved]
    return Releases(*(noisy_argmax_probabilities(count, sigma) for count in (histograms, after)))


def vote_shares(votes: ArrayLike, classes: int) -> Floats:
    """Return how many of the models voted for each class, as shares.

    Parameters
    ----------
    votes : array of shape (models, queries)
        Labels from 0.
    classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (queries, classes)

    References
    ----------
    PRED, Section 5.1: the maximum likelihood estimate of P_q.

    Examples
    --------
    >>> vote_shares([[0, 1], [1, 1]], 2)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    kinds = _check.whole("classes", classes, least=2)
    given = _labels("votes", votes, kinds)
    if given.ndim != 2 or not len(given):
        raise ValueError(f"votes must have shape (models, queries), got shape {given.shape}")
    shares: Floats = (given[..., None] == np.arange(kinds)).mean(axis=0)
    return shares


def _labels(name: str, votes: ArrayLike, classes: int) -> Ints:
    given = _check.counts(name, votes)
    if given.size and given.max() >= classes:
        raise ValueError(f"{name} must hold labels below {classes}, got {given.max()}")
    return given


def _same_queries(first: Floats, second: Floats) -> None:
    if len(first) != len(second):
        raise ValueError(
            f"votes and changed must be of the same queries, got {len(first)} and {len(second)}"
        )
