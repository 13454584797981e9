"""LiRA: a likelihood ratio of each example, by shadow models trained with and without it.

Shadow models are trained like the audited one, on examples drawn as for it. How confident they are
of an example where they have seen it, and where they have not, are two Gaussian laws; which of them
the audited model's confidence speaks for is the score. A higher score means member.

`auditkit.models.training.fit_many` trains small shadow models all at once.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from auditkit import _check
from auditkit._types import Bools, Floats


def logit_confidence(outputs: ArrayLike, labels: ArrayLike) -> Floats:
    r"""Return a model's confidence in the own label of each example, on the scale of logits.

    Parameters
    ----------
    outputs : array of shape (..., examples, classes)
        Logits, or logarithms of probabilities: what all classes have added to them falls out. All
        finite; probabilities themselves are refused.
    labels : array of int, shape (examples,) or (..., examples)
        The own labels, 0 to classes - 1.

    Returns
    -------
    ndarray of shape (..., examples)
        :math:`\varphi = \log p_y - \log \sum_{y' \ne y} p_{y'}`. It is near to Gaussian over
        models, which the loss is not, and keeps its digits where p is almost 1.

    References
    ----------
    Carlini et al., "Membership inference attacks from first principles", IEEE S&P 2022, Section V.

    Examples
    --------
    >>> logit_confidence([[800.0, 0.0], [0.0, 1.0]], [0, 1])  # a probability of 1, to all digits
    array([800.,   1.])
    """
    said = _logits(outputs)
    own = _check.counts("labels", labels)
    if own.size and own.max() >= said.shape[-1]:
        raise ValueError(f"labels must be below {said.shape[-1]}, the classes, got {own.max()}")
    try:
        places = np.broadcast_to(own, said.shape[:-1])[..., np.newaxis]
    except ValueError:
        raise ValueError(
            f"labels must fit the examples of outputs, {said.shape[:-1]}, got shape {own.shape}"
        ) from None
    _no_probabilities(said)
    others = said.copy()
    np.put_along_axis(others, places, -np.inf, axis=-1)
    rest = logsumexp(others, axis=-1)
    found: Floats = np.take_along_axis(said, places, axis=-1)[..., 0] - rest
    return found


def _logits(outputs: ArrayLike) -> Floats:
    """Return outputs, if they can be logits or logarithms."""
    bare = np.asarray(outputs)
    if bare.dtype.kind == "f" and np.isneginf(bare).any():
        raise ValueError(
            f"outputs must hold finite logits, got -inf {int(np.isneginf(bare).sum())} times: the "
            "logarithm of a probability of 0 is none. Give the logits, from before the softmax"
        )
    said = _check.numbers("outputs", outputs)
    _check.classes("outputs", said)
    return said


def _no_probabilities(said: Floats) -> None:
    """Refuse rows that all sum to 1, which logits do not."""
    sums = said.sum(axis=-1)
    if said.size and (said >= 0.0).all() and np.allclose(sums, 1.0, rtol=0.0, atol=1e-4):
        raise ValueError(
            "outputs must hold logits or logarithms of probabilities, got probabilities: numbers "
            f"of at least 0 that sum to 1 in every row, {said.ravel()[:2].tolist()} among them. "
            "Give the logits, from before the softmax, or where no probability is 0 numpy.log of "
            "them"
        )


def lira(
    statistics: ArrayLike,
    shadow_statistics: ArrayLike,
    shadow_members: ArrayLike,
    *,
    mode: Literal["online", "offline"] = "online",
    variance: Literal["example", "global"] = "example",
) -> Floats:
    r"""Score membership by the likelihood ratio attack.

    Parameters
    ----------
    statistics : array of shape (examples,) or (examples, queries)
        Of the audited model, `logit_confidence` in the paper. Queries are augmentations of an
        example, for instance; their covariance is taken to be diagonal.
    shadow_statistics : array of shape (models, examples) or (models, examples, queries)
        Of the shadow models. The audited one is not among them.
    shadow_members : array of bool, shape (models, examples)
        Which shadow model was trained on which example.
    mode : {"online", "offline"}
        "online" compares models with the example to models without it. "offline" asks how far the
        statistic lies above that of models without it, and looks at no others.
    variance : {"example", "global"}
        Of each example by itself, or one for all. With few shadow models, 16 for example, the
        second finds more members at low false positive rates.

    Returns
    -------
    ndarray of shape (examples,)
        Online the logarithm of the likelihood ratio. Offline how many standard deviations z the
        statistic lies above the mean; the paper's one-sided test is :math:`\Phi(z)`, which keeps
        the order. Of several queries the z are summed, and divided by the root of their number.

    Raises
    ------
    ValueError
        Among others, where too few models have, or have not, seen an example: one on each side is
        needed, two for a variance of its own; and where a shadow model is the audited one.

    Notes
    -----
    For an audit, the memberships of the shadow models are drawn independently of the audited
    model's. Pairs of shadow models, of which the second has what the first has not, see every
    example equally often. But where that holds of all models, the audited one among them, the
    others tell its memberships: online, statistics without any meaning have an area under the ROC
    curve of .37 among 6 models, .44 among 8 and .49 among 16.

    The centres are means, as in Algorithm 1; the authors' code takes medians. A global variance is
    about the examples' own means, one for models with the example and one for those without.

    References
    ----------
    Carlini et al., "Membership inference attacks from first principles", IEEE S&P 2022,
    Algorithm 1 and Section VI.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> difficulty = rng.normal(0.0, 3.0, size=1000)
    >>> members = rng.random((65, 1000)) < 0.5
    >>> said = difficulty + members + 0.5 * rng.normal(size=(65, 1000))
    >>> scores = lira(said[0], said[1:], members[1:])
    >>> print(((scores > 0.0) == members[0]).mean(), ((said[0] > 0.0) == members[0]).mean())
    0.818 0.548
    """
    own, others, inside = _statistics(statistics, shadow_statistics, shadow_members)
    _check.choice("mode", mode, ("online", "offline"))
    _check.choice("variance", variance, ("example", "global"))
    mean, square = _law(others, ~inside, variance, "without")
    without = (own - mean) ** 2 / square + np.log(square)
    if mode == "offline":
        distance: Floats = ((own - mean) / np.sqrt(square)).sum(axis=-1) / np.sqrt(own.shape[-1])
        return distance
    mean, square = _law(others, inside, variance, "with")
    ratio: Floats = 0.5 * (without - (own - mean) ** 2 / square - np.log(square)).sum(axis=-1)
    return ratio


def _statistics(
    statistics: ArrayLike, shadow_statistics: ArrayLike, shadow_members: ArrayLike
) -> tuple[Floats, Floats, Bools]:
    """Return what was given, with an axis of queries, if it fits together."""
    own = _check.numbers("statistics", statistics)
    others = _check.numbers("shadow_statistics", shadow_statistics)
    inside = np.asarray(shadow_members)
    if own.ndim not in (1, 2) or not own.size:
        raise ValueError(
            f"statistics must have shape (examples,) or (examples, queries), got {own.shape}"
        )
    if others.ndim != own.ndim + 1 or others.shape[1:] != own.shape:
        raise ValueError(
            f"shadow_statistics must have shape (models, {', '.join(map(str, own.shape))}), "
            f"got {others.shape}"
        )
    if inside.shape != others.shape[:2]:
        raise ValueError(f"shadow_members must have shape {others.shape[:2]}, got {inside.shape}")
    same = np.flatnonzero((others == own).reshape(len(others), -1).all(axis=1))
    if same.size:
        raise ValueError(
            f"shadow_statistics must not hold the audited model, which row {same[0]} is: its row "
            "of shadow_members would be the answer"
        )
    members = _check.members("shadow_members", inside.ravel()).reshape(inside.shape)
    return own.reshape(len(own), -1), others.reshape(*inside.shape, -1), members


def _law(values: Floats, chosen: Bools, variance: str, which: str) -> tuple[Floats, Floats]:
    """Return mean and variance of each example and query over the chosen models."""
    count = chosen.sum(axis=0)
    least = 2 if variance == "example" else 1
    if count.min() < least or count.max() < 2:
        raise ValueError(
            f"shadow_members must leave {least} models or more {which} each example, and 2 {which} "
            f"some example, got {count.min()} {which} example {count.argmin()}"
        )
    mask, count = chosen[..., np.newaxis], count[:, np.newaxis]
    mean = np.where(mask, values, 0.0).sum(axis=0) / count
    squares = (np.where(mask, values - mean, 0.0) ** 2).sum(axis=0)
    if variance == "example":
        square = squares / (count - 1)
    else:
        square = squares.sum(axis=0) / (count - 1).sum()
    if (square <= 0.0).any():
        raise ValueError(
            f"shadow_statistics must vary over the models {which} an example, got the same number "
            "from all; variance='global' asks it of all examples together"
        )
    return mean, square
