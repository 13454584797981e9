"""Quantile regression: what a model that was not trained on an example would say of it.

No shadow model is trained. From public examples, which the audited model was not trained on, the
law of its statistic is learnt as a function of the example. A member lies high in that law.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats, Randomness

FOLDS = 5  # of the public examples: what is left of them is that of a model without them


def quantile_regression(
    statistics: ArrayLike,
    features: ArrayLike,
    public_statistics: ArrayLike,
    public_features: ArrayLike,
    *,
    rng: Randomness,
) -> Floats:
    r"""Score membership by how high a statistic lies among those of alike non-members.

    Parameters
    ----------
    statistics : array of shape (examples,)
        Of the audited model; `auditkit.attacks.lira.logit_confidence` in the papers.
    features : array of shape (examples, columns)
        What is known of the examples: their label as one column for each class, too.
    public_statistics, public_features : array
        The same of examples that the audited model was not trained on. No audited example may be
        among them: those it is not a member of would be known by it.
    rng : Generator, int or None
        Deals the folds of the public examples.

    Returns
    -------
    ndarray of shape (examples,)
        :math:`z = (s - \mu(x)) / \sigma(x)`. The predicted quantile is :math:`\Phi(z)`, which keeps
        the order.

    Notes
    -----
    Boosted trees learn the mean by squared loss. What it leaves of public examples it was not
    fitted on, in five folds, is squared and given to other trees: their loss is that of Poisson
    counts, which learns the logarithm of an expectation, here the variance. That of gamma variables
    would be the Gaussian likelihood, as in the paper, but its steps overshoot where little varies.

    References
    ----------
    Bertran et al., "Scalable membership inference attacks via quantile regression", NeurIPS 2023,
    for the Gaussian law; Liu et al., "Enhancing one-run privacy auditing with quantile
    regression-based membership inference", 2025, for its quantile as the score of an audit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(3000, 2))
    >>> members = rng.random(3000) < 0.5
    >>> members[1000:] = False  # these are public
    >>> says = 3.0 * features[:, 0] + np.exp(features[:, 1]) * (members + rng.normal(size=3000))
    >>> scores = quantile_regression(says[:1000], features[:1000], says[1000:], features[1000:],
    ...                              rng=0)
    >>> for score in (scores, says[:1000]):
    ...     print(((score > np.median(score)) == members[:1000]).mean())
    0.673
    0.529
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_predict

    own, rows = _examples(statistics=statistics, features=features)
    known, seen = _examples(public_statistics=public_statistics, public_features=public_features)
    if seen.shape[1] != rows.shape[1]:
        raise ValueError(
            f"public_features must have {rows.shape[1]} columns as features, got {seen.shape[1]}"
        )
    if len(known) < 2 * FOLDS:
        raise ValueError(f"public_statistics must hold {2 * FOLDS} or more, got {len(known)}")
    state = int(_check.generator("rng", rng).integers(2**31))
    mean = HistGradientBoostingRegressor(random_state=state)
    folds = KFold(FOLDS, shuffle=True, random_state=state)
    square = (known - cross_val_predict(mean, seen, known, cv=folds)) ** 2
    if not square.any():
        raise ValueError("public_statistics must vary, got the same number from all")
    spread = HistGradientBoostingRegressor(loss="poisson", random_state=state)
    spread.fit(seen, square)
    scores: Floats = (own - mean.fit(seen, known).predict(rows)) / np.sqrt(spread.predict(rows))
    return scores


def _examples(**pair: ArrayLike) -> tuple[Floats, Floats]:
    """Return statistics and features, as many of the one as of the other."""
    (name, first), (other, second) = pair.items()
    values = _check.numbers(name, first, ndim=1)
    rows = _check.numbers(other, second, ndim=2)
    _check.same_length(**{name: values, other: rows})
    return values, rows
