"""Private-kNN: the nearest of a random part of the training points vote, with Gaussian noise.

For each query every training point is drawn with probability γ, and the k nearest of those drawn
vote with their labels. One more training point votes if it is drawn and is near enough; then the
k-th neighbour drops out. So k - 1 votes are the same in both worlds and one may differ.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from auditkit import _check
from auditkit._types import Floats
from auditkit.mechanisms.releases import Releases
from auditkit.mechanisms.voting import vote_table


class NeighbourVotes(NamedTuple):
    """How the neighbours of queries vote; what `neighbour_votes` returns.

    Attributes
    ----------
    others : ndarray of shape (queries, classes)
        Law of the label of one of the k - 1 nearest drawn points.
    last : ndarray of shape (queries, classes)
        Law of the label of the k-th.
    """

    others: Floats
    last: Floats


def neighbour_probability(ranks: ArrayLike, neighbours: int, rate: float) -> Floats:
    r"""Return the probability ν that a training point is among the neighbours that vote.

    It has to be drawn, and of those before it at most k - 1 may be:

    .. math:: \nu = \gamma \sum_{i=0}^{k-1} \binom{r-1}{i} \gamma^i (1-\gamma)^{r-1-i}

    For ranks r of at most k the sum is 1, so that this is one formula for the two cases of PRED.

    Parameters
    ----------
    ranks : array of int
        How close the point is to a query among the training points, from 1.
    neighbours : int
        Neighbours that vote, k.
    rate : float
        Probability γ that a training point is drawn for a query, in (0, 1].

    Returns
    -------
    ndarray of the shape of `ranks`

    References
    ----------
    PRED, Section 6, second display.

    Examples
    --------
    >>> neighbour_probability([1, 10, 50, 200], neighbours=10, rate=0.2).round(4)
    array([0.2   , 0.2   , 0.0943, 0.    ])
    """
    places = _check.at_least("ranks", ranks, 1.0)
    size = _check.whole("neighbours", neighbours, least=1)
    share = _check.rate("rate", rate)
    before = np.maximum(places - 1.0, size)  # up to here the sum is 1
    # the binomial distribution function, which scipy's own computes through the same function
    below = betainc(np.maximum(before - size + 1.0, 1.0), size, 1.0 - share)
    probability: Floats = share * np.where(places <= size, 1.0, below)
    return probability


def neighbour_votes(
    nearest_labels: ArrayLike, neighbours: int, rate: float, *, classes: int
) -> NeighbourVotes:
    """Return how the neighbours of queries vote when the training points are drawn.

    Parameters
    ----------
    nearest_labels : array of shape (queries, n)
        Labels of the training points nearest to each query, the nearest first. They have to be so
        many that k of them are drawn in all but 1 of a million times.
    neighbours : int
        Neighbours that vote, k, at least 2.
    rate : float
        Probability γ that a training point is drawn for a query.
    classes : int
        Number of classes.

    Returns
    -------
    NeighbourVotes

    References
    ----------
    PRED, Section 6: `others` are its P_q, of the k - 1 nearest and not of k, `last` its P_q^k.

    Examples
    --------
    >>> votes = neighbour_votes([[0] * 10 + [1] * 90], neighbours=3, rate=0.2, classes=2)
    >>> votes.others.round(3), votes.last.round(3)
    (array([[0.758, 0.242]]), array([[0.322, 0.678]]))
    """
    labels = _check.counts("nearest_labels", nearest_labels)
    kinds = _check.whole("classes", classes, least=2)
    size = _check.whole("neighbours", neighbours, least=2)
    if labels.ndim != 2 or (labels >= kinds).any():
        raise ValueError(
            f"nearest_labels must have shape (queries, n) and labels below {kinds}, got shape "
            f"{labels.shape} with {labels.max()} as the largest"
        )
    ranks = np.arange(1, labels.shape[1] + 1)
    within, without = (neighbour_probability(ranks, k, rate) for k in (size, size - 1))
    if within.sum() < size * (1.0 - 1e-6):
        raise ValueError(
            f"nearest_labels must hold more labels: of {labels.shape[1]} points drawn with rate "
            f"{rate:g} not always {size} are"
        )
    shown = labels[..., None] == np.arange(kinds)
    others = np.einsum("qnc,n->qc", shown, without / without.sum())
    last = np.einsum("qnc,n->qc", shown, (within - without) / (within - without).sum())
    return NeighbourVotes(others, last)


def private_knn_releases(
    votes: NeighbourVotes,
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    neighbours: int,
    sigma: float,
    table: ArrayLike | None = None,
) -> Releases:
    """Compute the laws of the released label without a point and with it.

    The k - 1 votes of `votes.others` are multinomial. The last vote is the k-th neighbour's; with
    the added point it is the point's own label, with probability ν.

    Parameters
    ----------
    votes : NeighbourVotes
        How the neighbours of each query vote.
    labels : array of shape (queries,)
        Label of the point that is added, for each query.
    probabilities : array of shape (queries,)
        Probability ν that the point votes.
    neighbours : int
        Neighbours that vote, k.
    sigma : float
        Standard deviation of the Gaussian noise on each count.
    table : array of shape (queries, classes, classes), optional
        ``vote_table(neighbours, votes.others[:, None], sigma)``, if it is at hand: it takes nearly
        all of the time, and is the same for all points.

    Returns
    -------
    Releases

    Notes
    -----
    PRED lets all k votes be multinomial and then takes one away from the class of the k-th
    neighbour, as if the two were independent: a count can become -1. Here the k-th vote is drawn by
    itself and replaced.

    Every query draws its own points and noise, so that the divergences of queries do add up.

    References
    ----------
    PRED, Section 6, "Parametric Assumption".

    Examples
    --------
    >>> votes = neighbour_votes([[0] * 10 + [1] * 90], neighbours=3, rate=0.2, classes=2)
    >>> pair = private_knn_releases(votes, [0], [0.2], neighbours=3, sigma=2.0)
    >>> pair.without.round(4), pair.with_point.round(4)
    (array([[0.5851, 0.4149]]), array([[0.6175, 0.3825]]))
    """
    others = _check.distributions("votes.others", votes.others)
    last = _check.distributions("votes.last", votes.last)
    label = _check.counts("labels", labels)
    chance = _check.unit("probabilities", probabilities)
    if others.ndim != 2 or others.shape != last.shape:
        raise ValueError(
            f"votes must hold two arrays of shape (queries, classes), got {others.shape} and "
            f"{last.shape}"
        )
    queries, classes = others.shape
    if label.shape != (queries,) or chance.shape != (queries,) or (label >= classes).any():
        raise ValueError(
            f"labels and probabilities must be one a query, {queries}, labels below {classes}, got "
            f"shapes {label.shape} and {chance.shape}"
        )
    if table is None:
        size = _check.whole("neighbours", neighbours, least=2)
        tables = vote_table(size, others[:, None], sigma)
    else:
        tables = _check.distributions("table", table)
        if tables.shape != (queries, classes, classes):
            raise ValueError(
                f"table must have shape {(queries, classes, classes)}, got {tables.shape}"
            )
    own = np.eye(classes)[label]
    changed = (1.0 - chance[:, None]) * last + chance[:, None] * own
    return Releases(*(np.einsum("qc,qco->qo", vote, tables) for vote in (last, changed)))
