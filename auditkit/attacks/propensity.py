"""Propensities: how likely each example is a member, judged by the example alone.

Zero-run audits take them out of the count of correct guesses. Here they are fitted, on one sample
or on hundreds of resamples at once, and a rival makes the guesses that put them to the test in
`auditkit.bounds.propensity`. None of it can show that they are right.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri
from scipy.stats import chi2

from auditkit import _check, _keyed
from auditkit._types import Bools, Floats, Ints, Randomness
from auditkit.attacks.logistic import calibrate, fit_columns

FOLDS = 5  # of the examples that calibrate the fit on the others
AT_ONCE = 300  # resamples that are fitted side by side


@dataclass(frozen=True, eq=False)
class PropensityModel:
    """A logistic regression on standardised features, with Platt's calibration.

    Attributes
    ----------
    centre, scale : ndarray of shape (features,)
        Taken off the features, and what the rest is divided by.
    weights : ndarray of shape (features + 1,)
        The last is the intercept.
    slope, offset : float
        Calibrated log-odds are slope · score + offset.
    """

    centre: Floats
    scale: Floats
    weights: Floats
    slope: float
    offset: float

    def log_odds(self, features: ArrayLike) -> Floats:
        """Return the log-odds of membership of examples."""
        rows = _features("features", features)
        if rows.shape[1] != self.centre.size:
            raise ValueError(
                f"features must have {self.centre.size} columns, got shape {rows.shape}"
            )
        scores = ((rows - self.centre) / self.scale) @ self.weights[:-1] + self.weights[-1]
        odds: Floats = self.slope * scores + self.offset
        return odds

    def propensity(self, features: ArrayLike) -> Floats:
        """Return the chance of membership of examples."""
        return _chances(self.log_odds(features))


def fit_propensity(
    features: ArrayLike, members: ArrayLike, *, penalty: float = 1.0, rng: Randomness
) -> PropensityModel:
    """Fit the paper's propensity model: logistic regression with Platt's calibration.

    Parameters
    ----------
    features : array of shape (examples, features)
        Of examples that are not audited. Whatever an attack sees of an example belongs here, its
        label included.
    members : array of bool, shape (examples,)
        Which of them were in the training set.
    penalty : float
        Half of it times the squared weights is added to the sum of losses: 1 / C of scikit-learn.
    rng : Generator, int or None
        Deals the five folds. The fit on all but a fold scores it, and these scores calibrate.

    Returns
    -------
    PropensityModel

    References
    ----------
    ZERO, Section 7; Platt, "Probabilistic outputs for support vector machines", 1999.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(5000, 3))
    >>> members = rng.random(5000) < expit(features[:, 0])
    >>> fit_propensity(features, members, rng=0).propensity([[1.0, 0.0, 0.0]]).round(2)
    array([0.74])
    >>> expit([1.0]).round(2)
    array([0.73])
    """
    sample = _Sample.of(features, members)
    fold = _check.generator("rng", rng).permutation(sample.size) % FOLDS
    counts = np.ones((sample.size, FOLDS + 1))
    counts[np.arange(sample.size), fold] = 0.0
    weights = fit_columns(sample.rows, sample.members, counts, _check.positive("penalty", penalty))
    scores = sample.rows @ weights
    slope, offset = calibrate(scores[np.arange(sample.size), fold], sample.members)
    final = weights[:, -1].astype(np.float64)
    return PropensityModel(sample.centre, sample.scale, final, slope, offset)


def cross_fit(
    features: ArrayLike, members: ArrayLike, *, penalty: float = 1.0, rng: Randomness
) -> Floats:
    """Return the propensity of each example by a model that was fitted on the other half.

    For audits that have no examples to spare. The model of a half has seen the memberships of the
    other one, so that an attack may use neither.

    Parameters
    ----------
    features, members, penalty
        As in `fit_propensity`, for the audited examples.
    rng : Generator, int or None
        Deals the halves.

    Returns
    -------
    ndarray of shape (examples,)

    References
    ----------
    ZERO, Algorithm 4.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(5000, 3))
    >>> members = rng.random(5000) < expit(features[:, 0])
    >>> found = cross_fit(features, members, rng=0)
    >>> print(f"{np.abs(found - expit(features[:, 0])).mean():.3f}")
    0.012
    """
    rows, truth = _features("features", features), _check.members("members", members)
    _check.same_length(features=rows, members=truth)
    generator = _dealer(rng, rows)
    first = generator.permutation(truth.size) < truth.size // 2
    found = np.empty(truth.size)
    for half in (first, ~first):
        model = fit_propensity(rows[half], truth[half], penalty=penalty, rng=generator)
        found[~half] = model.propensity(rows[~half])
    return found


def _dealer(rng: Randomness, features: NDArray[Any]) -> np.random.Generator:
    """Return the generator, or for a seed one of seed and features.

    A seed alone may be the one that memberships were drawn by, and its halves then those.
    """
    if isinstance(rng, int | np.integer):
        _check.generator("rng", rng)
        return _keyed.generator(_keyed.key_of(features, rng=int(rng)), "halves")
    return _check.generator("rng", rng)


def propensity_bootstrap(
    features: ArrayLike,
    members: ArrayLike,
    audited: ArrayLike,
    *,
    bootstraps: int = 600,
    penalty: float = 1.0,
    rng: Randomness,
) -> Floats:
    """Return the propensities of audited examples, by models fitted on resampled examples.

    All resamples are fitted together: they share a change of coordinates in which their losses are
    nearly round, and every step is one product of matrices. Each fit is calibrated on the third of
    examples that its resample has left out. Folds of a resample would share examples.

    Parameters
    ----------
    features, members : array
        Of examples that are not audited, as `fit_propensity` takes them.
    audited : array of shape (audited, features)
        Features of the audited examples.
    bootstraps : int
        K, how many resamples are drawn; each is as large as the sample.
    penalty : float
        As in `fit_propensity`.
    rng : Generator, int or None
        Draws the resamples.

    Returns
    -------
    ndarray of shape (bootstraps, audited)
        As `zero_run_bootstrap` takes it.

    Raises
    ------
    ArithmeticError
        If a fit has not converged: the gradient of its mean loss is then above 1e-5.

    References
    ----------
    ZERO, Section 6 and Algorithm 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(5000, 3))
    >>> members = rng.random(5000) < expit(features[:, 0])
    >>> sets = propensity_bootstrap(features, members, [[1.0, 0.0, 0.0]], bootstraps=200, rng=0)
    >>> print(f"{sets.mean():.2f} ± {sets.std():.2f}")
    0.74 ± 0.01
    """
    sample = _Sample.of(features, members)
    sought = sample.standardised("audited", audited)
    many = _check.whole("bootstraps", bootstraps, least=1)
    penalty = _check.positive("penalty", penalty)
    generator = _check.generator("rng", rng)
    found = []
    for first in range(0, many, AT_ONCE):
        columns = min(AT_ONCE, many - first)
        drawn = generator.integers(sample.size, size=(columns, sample.size))
        counts = np.stack([np.bincount(row, minlength=sample.size) for row in drawn])
        weights = fit_columns(sample.rows, sample.members, counts.T.astype(np.float64), penalty)
        scores, wanted = weights.T @ sample.rows.T, weights.T @ sought.T
        for score, value, count in zip(scores, wanted, counts, strict=True):
            out = count == 0
            slope, offset = calibrate(score[out], sample.members[out])
            found.append(_chances(slope * value.astype(np.float64) + offset))
    return np.stack(found)


def conservative_propensity(
    features: ArrayLike,
    members: ArrayLike,
    audited: ArrayLike,
    *,
    confidence: float,
    simultaneous: bool = True,
    penalty: float = 1.0,
) -> Floats:
    r"""Return propensities that are moved away from 1/2 as far as the fit leaves open.

    Corrections need shifts that are not too small. Here each is an upper confidence limit, for a
    logistic regression without calibration.

    Parameters
    ----------
    features, members, audited, penalty
        As in `propensity_bootstrap`.
    confidence : float
        Of the limits. One minus it has to come off the confidence of the audit.
    simultaneous : bool
        Whether the limits hold for all examples at once (Scheffé) or for each by itself. An attack
        chooses the examples, and may choose those where the limit fails: only the first is safe.

    Returns
    -------
    ndarray of shape (audited,)

    Notes
    -----
    If the log-odds are linear in the features, their estimate at x is off by no more than
    :math:`\sqrt{q\,x^\top H^{-1} x}` for all x at once, where H is the Hessian of the loss and q
    the quantile of :math:`\chi^2` with as many degrees of freedom as there are weights. This is
    for many examples a weight. If the log-odds are not linear, nothing is promised.

    References
    ----------
    Not in ZERO; its Corollary 2 says what such propensities are good for. Scheffé, "The analysis of
    variance", 1959.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(5000, 3))
    >>> members = rng.random(5000) < expit(features[:, 0])
    >>> example = [[1.0, 0.0, 0.0]]
    >>> conservative_propensity(features, members, example, confidence=0.975).round(2)
    array([0.77])
    """
    sample = _Sample.of(features, members)
    sought = sample.standardised("audited", audited)
    level = 1.0 - _check.fraction("confidence", confidence)
    penalty = _check.positive("penalty", penalty)
    simultaneous = _check.flag("simultaneous", simultaneous)
    weights = fit_columns(sample.rows, sample.members, np.ones((sample.size, 1)), penalty)[:, 0]
    chances = expit(sample.rows @ weights)
    weighted = sample.rows * (chances * (1.0 - chances))[:, np.newaxis]
    hessian = (weighted.T @ sample.rows).astype(np.float64)
    hessian[np.diag_indices(len(hessian) - 1)] += penalty
    factor = np.linalg.inv(np.linalg.cholesky(hessian))
    error = np.linalg.norm(sought @ factor.T.astype(np.float32), axis=1).astype(np.float64)
    reach = float(ndtri(1.0 - 0.5 * level))
    if simultaneous:
        reach = float(np.sqrt(chi2.isf(level, weights.size)))
    odds = sought @ weights
    return _chances(np.where(odds < 0.0, -1.0, 1.0) * (np.abs(odds) + reach * error))


def rival_guesses(
    features: ArrayLike, members: ArrayLike, propensity: ArrayLike, *, rng: Randomness
) -> tuple[Ints, Bools]:
    """Guess memberships by a model of another kind, which sees the features and the propensities.

    Parameters
    ----------
    features, members, propensity : array
        Of the audited examples. The audited model is not needed.
    rng : Generator, int or None
        Deals the halves. The rival is fitted on one and guesses on the other.

    Returns
    -------
    guesses : ndarray of {-1, 0, 1}
        For the examples of the other half.
    tested : ndarray of bool, shape (examples,)
        Which these are.

    Notes
    -----
    The rival is the mean of a logistic regression and of boosted trees, which see the features and
    the model's own log-odds. It guesses where it expects more correct guesses to be left, after
    thinning, than of a coin. If it fails, a better rival may still succeed.

    References
    ----------
    ZERO, Section 9.

    Examples
    --------
    >>> from auditkit.bounds.propensity import diagnose_propensity
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(5000, 2))
    >>> members = rng.random(5000) < expit(features[:, 0] * features[:, 1])
    >>> half = np.full(5000, 0.5)
    >>> guesses, tested = rival_guesses(features, members, half, rng=0)
    >>> diagnose_propensity(half, members, guesses, tested, rng=0).test.rejected
    True
    """
    rows, truth = _features("features", features), _check.members("members", members)
    chances = _check.fractions("propensity", propensity, ndim=1)
    _check.same_length(features=rows, members=truth, propensity=chances)
    generator = _dealer(rng, rows)
    odds = np.log(chances) - np.log1p(-chances)
    half = generator.permutation(truth.size) < truth.size // 2
    both = np.column_stack((rows, odds))
    rival = _rival(both[half], truth[half], both[~half], generator)
    bold = expit(np.abs(rival)) * (1.0 + np.exp(-np.abs(odds[~half]))) > 1.0
    return np.where(bold, np.where(rival > 0.0, 1, -1), 0), ~half


@dataclass(frozen=True, eq=False)
class _Sample:
    """Examples to fit on: standardised features with a column of ones, in single precision."""

    rows: NDArray[np.float32]
    members: Bools
    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, features: ArrayLike, members: ArrayLike) -> "_Sample":
        rows, truth = _features("features", features), _check.members("members", members)
        _check.same_length(features=rows, members=truth)
        if truth.all() or not truth.any():
            raise ValueError("members must hold members and others, got one kind")
        centre = rows.mean(axis=0, dtype=np.float64)
        scale = rows.std(axis=0, dtype=np.float64)
        scale[scale == 0.0] = 1.0  # a column that never changes says nothing, and stays 0
        return cls(_standardised(rows, centre, scale), truth, centre, scale)

    @property
    def size(self) -> int:
        return self.members.size

    def standardised(self, name: str, features: ArrayLike) -> NDArray[np.float32]:
        rows = _features(name, features)
        if rows.shape[1] != self.centre.size:
            raise ValueError(f"{name} must have {self.centre.size} columns, got shape {rows.shape}")
        return _standardised(rows, self.centre, self.scale)


def _standardised(rows: NDArray[np.floating], centre: Floats, scale: Floats) -> NDArray[np.float32]:
    found = np.ones((rows.shape[0], rows.shape[1] + 1), np.float32)
    found[:, :-1] = (rows - centre) / scale
    return found


def _features(name: str, value: ArrayLike) -> NDArray[np.floating]:
    """Return features as they are in single precision, else in double."""
    array = np.asarray(value)
    if array.dtype != np.float32 or array.ndim != 2 or not np.isfinite(array).all():
        array = _check.numbers(name, value, ndim=2)
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    return array


def _chances(odds: Floats) -> Floats:
    """Return chances, at most as close to 0 and 1 as a float can be from both."""
    # beyond log-odds of 36 a chance rounds to 1, which no audit takes
    chances: Floats = expit(np.clip(odds, -36.0, 36.0))
    return chances


def _rival(features: Floats, members: Bools, sought: Floats, rng: np.random.Generator) -> Floats:
    """Return log-odds by a model of another kind."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.08, max_leaf_nodes=15, early_stopping=False, random_state=0
    ).fit(features, members)
    linear = fit_propensity(features, members, rng=rng).log_odds(sought)
    odds: Floats = 0.5 * (linear + trees.decision_function(sought))
    return odds
