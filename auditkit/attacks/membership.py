"""Membership inference with one reference model: two attacks that OBS compares itself with.

Both need examples that the audited model was not trained on, which label inference does not. A
higher score means member.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit import _check

Floats = NDArray[np.float64]


def difficulty_calibration(target_losses: ArrayLike, reference_losses: ArrayLike) -> Floats:
    """Score membership by how much lower the loss is than that of a model without the example.

    Parameters
    ----------
    target_losses, reference_losses : array of shape (examples,)
        Losses of the audited model, and of a reference model that was trained on other examples.

    Returns
    -------
    ndarray of shape (examples,)
        The reference model's loss less the audited model's; a higher score means member.

    References
    ----------
    Watson, Guo, Cormode and Sablayrolles, "On the importance of difficulty calibration in
    membership inference attacks", ICLR 2022. OBS, Section 6.5.

    Examples
    --------
    >>> difficulty_calibration([0.1, 2.0], [0.9, 2.1]).round(2)
    array([0.8, 0.1])
    """
    audited = _check.numbers("target_losses", target_losses, ndim=1)
    other = _check.numbers("reference_losses", reference_losses, ndim=1)
    _check.same_length(target_losses=audited, reference_losses=other)
    scores: Floats = other - audited
    return scores


def rmia(
    target_confidences: ArrayLike,
    reference_confidences: ArrayLike,
    population_target: ArrayLike,
    population_reference: ArrayLike,
    *,
    gamma: float = 1.0,
    offline_a: float = 0.3,
) -> Floats:
    """Score membership by RMIA, offline and with one reference model.

    The audited model's confidence in an example is divided by what a model is expected to have,
    trained on it or not. The score is the share of the population with a ratio `gamma` times below.

    Parameters
    ----------
    target_confidences, reference_confidences : array of shape (examples,)
        Probability of the true label under the audited model, and under the reference model, which
        was not trained on the example.
    population_target, population_reference : array of shape (population,)
        The same for examples that neither model was trained on.
    gamma : float
        How many times the ratio of another example it has to be, at least, to count as above.
    offline_a : float
        In [0, 1). Where a model without the example has confidence p in it, one with it is expected
        to have a p + 1 - a; the mean of the two is ((1 + a) p + 1 - a) / 2.

    Returns
    -------
    ndarray of shape (examples,)
        In [0, 1]; a higher score means member.

    Notes
    -----
    With one reference model the population changes no order among examples: scores rise with the
    ratio, in steps as fine as the population is large. Both defaults are those of the authors' own
    code.

    References
    ----------
    Zarifzadeh, Liu and Shokri, "Low-cost high-power membership inference attacks", ICML 2024. OBS,
    Appendix E.

    Examples
    --------
    >>> rmia([0.99, 0.2], [0.5, 0.5], [0.5, 0.2, 0.9], [0.5, 0.6, 0.1])
    array([0.66666667, 0.33333333])
    """
    gamma = _check.positive("gamma", gamma)
    share = _check.delta("offline_a", offline_a)
    examples = _ratios(
        share,
        target_confidences=target_confidences,
        reference_confidences=reference_confidences,
    )
    population = _ratios(
        share, population_target=population_target, population_reference=population_reference
    )
    if not population.size:
        raise ValueError("population_target must hold at least 1 confidence, got none")
    below = np.searchsorted(np.sort(gamma * population), examples, side="right")
    scores: Floats = below / population.size
    return scores


def _ratios(share: float, **pair: ArrayLike) -> Floats:
    """Return the confidences of the audited model over those that any model is expected to have."""
    for name, value in pair.items():
        _check.numbers(name, value, ndim=1)
    checked = {name: _check.unit(name, value) for name, value in pair.items()}
    _check.same_length(**checked)
    audited, other = checked.values()
    ratios: Floats = audited / (((1.0 + share) * other + 1.0 - share) / 2.0)
    return ratios
