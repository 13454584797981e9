"""PANORAMIA: what a model leaks beyond what generated examples betray by themselves.

Members of the training set are mixed with generated examples. A baseline that sees the example
alone tells how far the generator is from the data: it bounds the closeness c from below. An attack
that also sees the model bounds c + ε from below. The difference of the two lower bounds is the
measurement ε̃. It is not a lower bound on ε.
"""

from dataclasses import dataclass, replace
from math import exp, floor

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, logit

from auditkit import _check
from auditkit.bounds.one_run import worst_chance
from auditkit.bounds.result import Bound, rounded, short_of

_WHY_AN_ESTIMATE = (
    "ε̃ would bound ε only if the generator's true c were exactly c_lower: "
    "a baseline that is weaker than it could be makes ε̃ too large."
)


@dataclass(frozen=True, kw_only=True)
class PanoramiaEstimate(Bound):
    """The measurement ε̃ of PANORAMIA, with the two lower bounds that it is made of.

    Attributes
    ----------
    c_lower : float
        Lower bound on the generator's closeness c, from the baseline.
    c_plus_epsilon_lower : float
        Lower bound on c + ε, from the attack. Both hold together with probability `confidence`.

    Notes
    -----
    `epsilon` is ``max(0, c_plus_epsilon_lower - c_lower)`` and `claim` is always "estimate".
    ``details["difference"]`` keeps the sign. The other details are the operating points, and the
    ceiling: the most that any attack could have shown with these examples.
    """

    c_lower: float
    c_plus_epsilon_lower: float

    def __str__(self) -> str:
        # the two parts are lower bounds, and their difference is not
        closeness = rounded(self.c_lower, "lower bound")
        both = rounded(self.c_plus_epsilon_lower, "lower bound")
        return (
            f"ε̃ = {self.epsilon:.3f} at δ = {self.delta:g} (estimate, not a bound: "
            f"with {short_of(100, 100 * (self.confidence or 0))}% confidence c ≥ {closeness} and "
            f"c + ε ≥ {both}; {self.adjacency} adjacency; "
            f"{self.method}; assumes: {' '.join(self.assumptions)})"
        )

    def _repr_html_(self) -> str:
        bounds = {"c is at least": self.c_lower, "c + ε is at least": self.c_plus_epsilon_lower}
        shown = replace(self, details=bounds | dict(self.details))
        return super(PanoramiaEstimate, shown)._repr_html_()


@dataclass(frozen=True)
class _OperatingPoint:
    """The threshold that shows most, and what it shows."""

    lower: float
    threshold: float
    guesses: int
    correct: int
    thresholds: int


def panoramia(
    baseline_scores: ArrayLike,
    attack_scores: ArrayLike,
    members: ArrayLike,
    *,
    delta: float = 0.0,
    closeness_slack: float = 0.0,
    confidence: float = 0.95,
) -> PanoramiaEstimate:
    """Measure the leak of a model from real members and generated non-members.

    Half of ``1 - confidence`` goes to each of the two tests. Within a test it is split evenly over
    the distinct scores, each of which is a threshold: examples with equal scores are guessed
    together. The best threshold counts.

    Parameters
    ----------
    baseline_scores : array_like of float
        Score of each example from a baseline that sees the example alone. Higher means member.
    attack_scores : array_like of float
        Score of each example from an attack that also sees the model.
    members : array_like of bool
        Whether each example is real, hence a member. The others come from the generator.
    delta : float
        The δ of the model's (ε, δ)-DP.
    closeness_slack : float
        The γ of the generator's (c, γ)-closeness: ``P_D(A) <= e^c P_G(A) + γ`` for all sets A.
    confidence : float
        How often `c_lower` and `c_plus_epsilon_lower` hold together.

    Returns
    -------
    PanoramiaEstimate
        Its `epsilon` is an estimate, whatever its size.

    Notes
    -----
    With r guesses of "member", v of them right, the bound without slack is the Clopper-Pearson
    bound on the precision, as log-odds. With slack a number F of guesses may fail, with
    ``E[F] <= 2 m s``, and the worst law of F has the closed form of Steinke et al. (2023),
    Theorem 5.2. Here s is γ for the baseline and γ + δ - γδ for the attack.

    Where the text differs: Algorithm 1 takes a supremum where an infimum is meant and leaves out
    the maximum with 0 of Section 4.2; Proposition 4 prints δ where the baseline's bound has to
    carry γ. The parts of the generator in Lemma 1 are not distributions, yet the statement holds
    without them: a failure with probability ``(1 - e^c P_G/P_D)+`` gives it at once, and then
    ``m s / 2`` would do for E[F]. The paper's factor, which is never too small, is kept.
    Proposition 2 compares a data set that holds the shown example with one that holds another in
    its place, so ε is that of substitute adjacency: a model that is ε-DP under add/remove may show
    up to 2ε.

    References
    ----------
    Kazmi et al., "PANORAMIA: Privacy Auditing of Machine Learning Models without Retraining",
    2024: Propositions 1 and 2, Corollary 2, Algorithm 1; Appendix E, Propositions 3 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random(2000) < 0.5
    >>> baseline = members + rng.normal(0, 2, 2000)
    >>> attack = members + rng.normal(0, 0.5, 2000)
    >>> result = panoramia(baseline, attack, members)
    >>> result.claim, round(result.c_lower, 2), round(result.c_plus_epsilon_lower, 2)
    ('estimate', 0.52, 2.5)
    >>> round(result.epsilon, 2)
    1.98
    """
    baseline = _check.numbers("baseline_scores", baseline_scores, ndim=1)
    attack = _check.numbers("attack_scores", attack_scores, ndim=1)
    truth = _check.members("members", members)
    _check.same_length(baseline_scores=baseline, attack_scores=attack, members=truth)
    if truth.size == 0:
        raise ValueError("members must hold at least one example, got none")
    delta = _check.delta("delta", delta)
    gamma = _check.delta("closeness_slack", closeness_slack)
    confidence = _check.fraction("confidence", confidence)
    level = (1.0 - confidence) / 2.0
    weak = _best_threshold(baseline, truth, level, gamma)
    strong = _best_threshold(attack, truth, level, gamma + delta - gamma * delta)
    return _estimate(weak, strong, truth, delta, gamma, confidence)


def panoramia_ceiling(examples: int, confidence: float = 0.95) -> float:
    """Return the most that `panoramia` can show for c or c + ε, whatever the attack.

    It is what an attack without an error would show, with no slack, no ties, and half of the
    examples members. A measurement near its ceiling says that there are too few examples.

    Parameters
    ----------
    examples : int
        Number of examples, real and generated together.
    confidence : float
        As in `panoramia`.

    Returns
    -------
    float
        The largest value that `c_lower` or `c_plus_epsilon_lower` can take.

    References
    ----------
    Kazmi et al. (2024), Section 4.2, for the level split over two tests and over the thresholds.

    Examples
    --------
    >>> [round(panoramia_ceiling(m), 2) for m in (500, 1_000, 10_000)]
    [3.21, 3.84, 5.96]
    """
    number = _check.scalar("examples", examples, least=1)
    if number != floor(number):
        raise ValueError(f"examples must be a whole number, got {examples!r}")
    confidence = _check.fraction("confidence", confidence)
    return _ceiling(number / 2.0, number, (1.0 - confidence) / 2.0)


def _ceiling(correct: float, thresholds: float, level: float) -> float:
    if correct == 0:
        return 0.0
    miss = np.log(level / thresholds) / correct  # log of the smallest precision not rejected
    return max(0.0, float(miss - np.log(-np.expm1(miss))))


def _estimate(
    weak: _OperatingPoint,
    strong: _OperatingPoint,
    members: NDArray[np.bool_],
    delta: float,
    gamma: float,
    confidence: float,
) -> PanoramiaEstimate:
    count = int(members.sum())
    level = (1.0 - confidence) / 2.0
    details = {
        "examples": members.size,
        "members": count,
        "difference": strong.lower - weak.lower,
        "ceiling": _ceiling(count, members.size, level),
        "closeness_slack": gamma,
    }
    for name, point in (("baseline", weak), ("attack", strong)):
        details[f"{name}_guesses"] = point.guesses
        details[f"{name}_correct"] = point.correct
        details[f"{name}_threshold"] = point.threshold
        details[f"{name}_thresholds"] = point.thresholds
    assumptions = [
        _WHY_AN_ESTIMATE,
        "Each example is real or generated by a fair coin of its own.",
        "The examples are independent, and none of them served to fit generator, baseline or "
        "attack.",
        "The baseline sees nothing but the example.",
    ]
    if gamma > 0.0 or delta > 0.0:
        assumptions.append(
            "The number of guesses at each threshold does not depend on the data, as is so when "
            "no two scores are equal."
        )
    return PanoramiaEstimate(
        epsilon=max(0.0, strong.lower - weak.lower),
        delta=delta,
        confidence=confidence,
        claim="estimate",
        adjacency="substitute",
        method="PANORAMIA",
        assumptions=tuple(assumptions),
        details=details,
        c_lower=weak.lower,
        c_plus_epsilon_lower=strong.lower,
    )


def _best_threshold(
    scores: NDArray[np.float64], members: NDArray[np.bool_], level: float, slack: float
) -> _OperatingPoint:
    """Return the best lower bound on the log-odds of a right guess, not below 0."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # end of each tie
    level /= len(last)
    correct = np.cumsum(members[order])[last]
    wrong = last + 1 - correct
    # A threshold with fewer right guesses and no fewer wrong ones than another cannot be best.
    useful = np.append(wrong[1:] > wrong[:-1], True) & np.append(True, correct[1:] > correct[:-1])
    at, correct, wrong = last[useful], correct[useful], wrong[useful]
    bounds = np.full(len(at), -np.inf)
    some = correct > 0
    bounds[some] = logit(betaincinv(correct[some], wrong[some] + 1.0, level))
    best = int(np.argmax(bounds))
    lower = max(0.0, float(bounds[best]))
    if slack > 0.0:
        failures = 2.0 * len(scores) * slack
        # In an order without trend the best so far is passed about log(n) times, each time at the
        # price of a search. Sorted thresholds would pass it n times.
        mixed = np.random.default_rng(0).permutation(len(at))
        lower, found = _best_with_failures(bounds, at + 1, correct, mixed, float(level), failures)
        best = found if lower > 0.0 else best
    return _OperatingPoint(
        lower, float(ordered[at[best]]), int(at[best]) + 1, int(correct[best]), len(last)
    )


@njit(cache=True)
def _best_with_failures(
    bounds: NDArray[np.float64],
    guesses: NDArray[np.int64],
    correct: NDArray[np.int64],
    order: NDArray[np.int64],
    level: float,
    failures: float,
) -> tuple[float, int]:
    """Return the best bound when guesses may fail, not below 0, and its index.

    `bounds` are the values without failures, which failures only lower. A threshold whose value
    lies below the best so far costs nothing, and one that cannot beat it costs one evaluation.
    """
    best = 0.0
    index = order[0]
    for candidate in order:
        high = bounds[candidate]
        if high <= best:
            continue
        r, v = guesses[candidate], correct[candidate]
        # The chance is at least b(v) + E[F] (b(v - i) - b(v)) / i for every i, with b the tail of
        # the guesses that do not fail. b is at least 1/2 at its mean: for that i, either the second
        # term is enough or b(v) is above 0.1. This spares most thresholds the sum.
        mean = floor(r / (1.0 + exp(-best)))
        if level <= 0.1 and 0.4 * failures > level * (v - mean):
            continue
        if worst_chance(v, r, failures, best) > level:
            continue
        low = best
        while high - low > 1e-12 * max(1.0, high):
            middle = 0.5 * (low + high)
            if worst_chance(v, r, failures, middle) > level:
                high = middle
            else:
                low = middle
        best = low
        index = candidate
    return best, index
