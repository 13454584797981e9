"""Whether features alone betray membership, where a coin or a propensity says that they do not."""

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check, _keyed
from auditkit._types import Randomness
from auditkit.attacks.propensity import fit_propensity
from auditkit.bounds.propensity import PropensityTest, reject_propensity

MOST = 50_000  # examples that are looked at: more would hardly see more


def shift_test(
    features: ArrayLike,
    members: ArrayLike,
    *,
    propensity: ArrayLike | None = None,
    confidence: float = 0.999,
    rng: Randomness = None,
) -> PropensityTest | None:
    """Try to guess membership from the features alone, on the half not fitted on.

    Who can do so better than the propensities allow, or than a fair coin where there are none, has
    shown that the premise of an audit is false. The audited model is not needed.

    Parameters
    ----------
    features : array of shape (examples, columns)
        Of the audited examples.
    members : array of bool, shape (examples,)
        Which were in the training set.
    propensity : array of shape (examples,), optional
        The chance of membership; 1/2 where a fair coin decided.
    confidence : float
        A right coin is doubted with probability at most one minus this.
    rng : Generator, int or None
        Adds to a key of the data, which deals the halves: no seed can deal them by membership.

    Returns
    -------
    PropensityTest or None
        None where the half to fit on holds one kind only.

    References
    ----------
    ZERO, Section 9, for propensities.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random(1000) < 0.5
    >>> shift_test(rng.normal(size=(1000, 2)), members).rejected
    False
    >>> shift_test(rng.normal(members)[:, np.newaxis], members).rejected
    True
    """
    rows = _check.numbers("features", features, ndim=2)
    truth = _check.members("members", members)
    said = np.full(truth.size, 0.5) if propensity is None else propensity
    chances = _check.fractions("propensity", said, ndim=1)
    _check.same_length(features=rows, members=truth, propensity=chances)
    generator = _keyed.generator(_keyed.key_of(rows, truth, rng=rng), "gate")
    order = generator.permutation(truth.size)[:MOST]
    first, second = order[: order.size // 2], order[order.size // 2 :]
    if truth[first].all() or not truth[first].any():
        return None
    rival = fit_propensity(rows[first], truth[first], rng=generator)
    guesses = np.where(rival.log_odds(rows[second]) > 0.0, 1, -1)
    return reject_propensity(
        guesses, truth[second], chances[second], confidence=confidence, rng=generator
    )
