"""Can a propensity model be right? Guesses that never met the audited model may tell.

The corrections of `zero_run` are as good as the propensities that they are given. Nothing proves
that those are right, but a rival who sees more in the examples can prove that they are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, expit

from auditkit import _check
from auditkit._types import Bools, Floats, Randomness
from auditkit.bounds.clopper_pearson import limits
from auditkit.bounds.poisson_binomial import poisson_binomial_tail
from auditkit.bounds.result import Bound
from auditkit.bounds.shift_corrections import games_of, shift_of
from auditkit.evidence import Scores

REJECTED = "The propensity model is rejected by the data that it is used on."
NOT_REJECTED = "The propensity model is right: the data that it is used on do not reject it."


@dataclass(frozen=True)
class PropensityTest:
    """Whether guesses about membership speak against a propensity model; true if they do.

    Attributes
    ----------
    rejected : bool
        Whether the model is rejected at `level`.
    p_value : float
        The chance, if the model were right, of at least as many kept correct guesses, at most.
    level : float
        One minus the confidence asked for.
    guesses, correct, kept : int
        Guesses made, those that were correct, and the correct ones that are left after thinning.
    threshold : int
        The smallest `kept` that rejects; more than `guesses` if none does.
    untampered_p_value : float
        The same chance from all the correct guesses, without thinning: the exact Poisson-binomial
        tail. It finds errors that the thinned count misses. It is a test of its own: who decides by
        the smaller of the two has to halve the level.
    """

    rejected: bool
    p_value: float
    level: float
    guesses: int
    correct: int
    kept: int
    threshold: int
    untampered_p_value: float

    def __bool__(self) -> bool:
        return self.rejected


def reject_propensity(
    guesses: ArrayLike,
    members: ArrayLike,
    propensity: ArrayLike,
    *,
    confidence: float = 0.95,
    rng: Randomness = None,
) -> PropensityTest:
    """Test a propensity model with guesses that use the examples alone.

    Guesses that never met the audited model leak nothing, so that an audit at ε = 0 may not reject.
    If it does, the propensities lie too near to 1/2 to explain how well the examples betray their
    membership. A correct guess is kept with probability ``(1 + e^-shift) / 2``, and the number kept
    is at most that of fair coins.

    Parameters
    ----------
    guesses : array_like of {-1, 0, 1}, shape (m,)
        Made from the examples alone: the sign of a rival's log-odds, for instance.
    members : array_like of bool, shape (m,)
        Which examples were in the training set.
    propensity : array_like of float, shape (m,)
        The model's chance of membership; strictly between 0 and 1.
    confidence : float
        A right model is rejected with probability at most one minus this.
    rng : Generator, int or None
        Adds to where the thinning is drawn from: a key of the data, as in `zero_run`.

    Returns
    -------
    PropensityTest
        The decision, its exact p-value and the counts.

    Notes
    -----
    The test is one-sided: it does not see propensities too far from 1/2, which are safe, and a
    model that passes is not thereby right. It may be run on many rivals' guesses, each at its
    share of the level.

    References
    ----------
    Ceberé et al., "Privacy Auditing with Zero (0) Training Run", Theorem C.1 with ε = 0, Theorem
    D.1 for the tail without thinning.

    Examples
    --------
    >>> from scipy.special import expit
    >>> rng = np.random.default_rng(0)
    >>> truth = expit(rng.normal(size=10_000))
    >>> members = rng.random(10_000) < truth
    >>> guesses = np.where(truth > 0.5, 1, -1)
    >>> reject_propensity(guesses, members, truth, rng=1).rejected
    False
    >>> reject_propensity(guesses, members, np.full(10_000, 0.5), rng=1).rejected
    True
    """
    _check.aligned(members=members, propensity=propensity)
    chances = _check.fractions("propensity", propensity, ndim=1)
    (game, *others), _ = games_of(guesses, members, chances, rng)
    if others:
        raise ValueError(f"guesses must have 1 dimension, got {len(others) + 1} rules")
    level = 1.0 - _check.fraction("confidence", confidence)
    shift = shift_of(chances)
    kept = int((game.right & (game.draws < 0.5 * (1.0 + np.exp(-shift)))).sum())
    p_value = _coin_tail(kept, game.number)
    low, high = 0, game.number + 1  # the tail is above the level at low, and at most it at high
    while high - low > 1:
        middle = (low + high) // 2
        if _coin_tail(middle, game.number) > level:
            low = middle
        else:
            high = middle
    return PropensityTest(
        rejected=p_value <= level,
        p_value=p_value,
        level=level,
        guesses=game.number,
        correct=game.correct,
        kept=kept,
        threshold=high,
        untampered_p_value=poisson_binomial_tail(expit(shift[game.guessed]), game.correct),
    )


@dataclass(frozen=True)
class CalibrationBin:
    """Examples of like propensity: what was said of them, and how many are members.

    Attributes
    ----------
    examples : int
        How many there are.
    said : float
        Their mean propensity.
    members : float
        The share of members among them.
    low, high : float
        The 95% confidence interval of that share, by Clopper and Pearson.
    """

    examples: int
    said: float
    members: float
    low: float
    high: float

    @classmethod
    def of(cls, chances: Floats, members: Bools) -> CalibrationBin:
        """Compare what was said of examples with what they are."""
        number, own = members.size, int(members.sum())
        low, high = limits(own, number, 0.025)
        return cls(number, float(chances.mean()), own / number, float(low), float(high))


@dataclass(frozen=True)
class PropensityReport:
    """What can be said of a propensity model before an audit.

    Attributes
    ----------
    auc : float
        How well propensities order members above others: 1/2 where nothing shifts.
    largest_shift : float
        The largest size of the log-odds. A composition takes it off in full.
    kept : float
        The mean of e^-shift: the share of correct guesses that the paper's correction keeps where
        guesses do not look at propensities.
    calibration : tuple of CalibrationBin
        Propensities against memberships, point by point.
    test : PropensityTest
        Whether a rival model, fitted on half of the audited examples, rejects the propensities on
        the other half.
    """

    auc: float
    largest_shift: float
    kept: float
    calibration: tuple[CalibrationBin, ...]
    test: PropensityTest


def diagnose_propensity(
    propensity: ArrayLike,
    members: ArrayLike,
    guesses: ArrayLike,
    tested: ArrayLike,
    *,
    confidence: float = 0.95,
    bins: int = 10,
    rng: Randomness = None,
) -> PropensityReport:
    """Say how far members and others differ, and whether a propensity model stands up to a rival.

    Parameters
    ----------
    propensity, members : array_like, shape (examples,)
        Of the audited examples. The audited model is not needed.
    guesses : array_like of {-1, 0, 1}
        Of a rival that never met the audited model, for the examples `tested`.
    tested : array_like of bool, shape (examples,)
        Examples that the rival was not fitted on. `auditkit.attacks.propensity.rival_guesses` has
        both.
    confidence : float
        A right propensity model is rejected with probability at most one minus this.
    bins : int
        Number of calibration bins, of equally many examples.
    rng : Generator, int or None
        As in `reject_propensity`.

    Returns
    -------
    PropensityReport

    References
    ----------
    ZERO, Theorem C.1 and Section 9.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> betrayed = np.where(rng.random(2000) < 0.5, 1, -1)
    >>> members = rng.random(2000) < np.where(betrayed > 0, 0.8, 0.2)
    >>> half = np.full(2000, 0.5)
    >>> report = diagnose_propensity(half, members, betrayed, np.full(2000, True), rng=0)
    >>> report.auc, report.test.rejected
    (0.5, True)
    """
    chances = _check.fractions("propensity", propensity, ndim=1)
    truth, where = _check.members("members", members), _check.members("tested", tested)
    _check.same_length(propensity=chances, members=truth, tested=where)
    if truth.all() or not truth.any():
        raise ValueError("members must hold members and others, got one kind")
    bins = _check.whole("bins", bins, least=1)
    odds = np.log(chances) - np.log1p(-chances)
    order = np.argsort(odds, kind="stable")
    return PropensityReport(
        auc=Scores(odds, truth).area(),
        largest_shift=float(np.abs(odds).max()),
        kept=float(np.exp(-np.abs(odds)).mean()),
        calibration=tuple(
            CalibrationBin.of(chances[part], truth[part])
            for part in np.array_split(order, bins)
            if part.size
        ),
        test=reject_propensity(
            guesses, truth[where], chances[where], confidence=confidence, rng=rng
        ),
    )


def gated(bound: Bound, test: PropensityTest) -> Bound:
    """Return the bound as an estimate if its propensity model is rejected.

    A model that is not rejected need not be right. The result says so among its assumptions.

    Parameters
    ----------
    bound : Bound
        As `zero_run` returns it.
    test : PropensityTest
        Of the propensities that it was made with, by guesses that never met the audited model.

    Returns
    -------
    Bound
        The same number. Its claim is "estimate" if the test rejects, and unchanged if not.

    References
    ----------
    Not in ZERO, which proposes the test (Section 9) and leaves open what follows from it.

    Examples
    --------
    >>> from auditkit import zero_run
    >>> rng = np.random.default_rng(0)
    >>> betrayed = np.where(rng.random(2000) < 0.5, 1, -1)
    >>> members = rng.random(2000) < np.where(betrayed > 0, 0.8, 0.2)
    >>> test = reject_propensity(betrayed, members, np.full(2000, 0.5), rng=0)
    >>> gated(zero_run(betrayed, members, np.full(2000, 0.5), rng=0), test).claim
    'estimate'
    """
    if not isinstance(bound, Bound):
        raise TypeError(f"bound must be a Bound, got {bound!r:.60}")
    if not isinstance(test, PropensityTest):
        raise TypeError(f"test must be a PropensityTest, got {test!r:.60}")
    sentence = REJECTED if test.rejected else NOT_REJECTED
    details = {**bound.details, "rejection_p_value": test.p_value}
    assumptions = (*bound.assumptions, sentence)
    if test.rejected:
        return replace(bound, claim="estimate", assumptions=assumptions, details=details)
    return replace(bound, assumptions=assumptions, details=details)


def _coin_tail(count: int, coins: int) -> float:
    """Return the chance of at least `count` heads."""
    return (
        float(betainc(count, coins - count + 1.0, 0.5)) if 0 < count <= coins else float(count <= 0)
    )
