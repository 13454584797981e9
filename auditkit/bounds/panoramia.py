"""PANORAMIA: what a model leaks beyond what generated examples betray by themselves.

Members of the training set are mixed with generated examples. A baseline that sees the example
alone tells how far the generator is from the data: it bounds the closeness c from below. An attack
that also sees the model bounds c + ε from below. The difference of the two lower bounds is the
measurement ε̃. It is not a lower bound on ε.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, logit

from auditkit import _check
from auditkit._types import Bools, Floats
from auditkit.bounds.clopper_pearson import lower_limit
from auditkit.bounds.result import Bound, noticed, rounded, short_of
from auditkit.bounds.scores import doubted, exact_half
from auditkit.evidence import Scores

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
            f"{self.method}; assumes: {' '.join(self.assumptions)}){noticed(self.notices)}"
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
    discounted: int


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
    bound on the precision, as log-odds. With slack some examples *fail*: they may be real for all
    to see. A number k of failures follows from m, γ, δ and the level, never from the scores, and k
    right guesses count as wrong at every threshold. What fails does so at all thresholds, so that
    the chance of more than k failures is paid for once, and not by each threshold.

    The proof. Write d and g for the density of an example among real and among generated ones, and
    a and b for that of what the model shows if this example was in training and if another was in
    its place, given all shown examples and the coins of those before this one. A real example
    escapes failure with probability ``min(1, e^c g/d) min(1, e^ε b/a)``, for the baseline the first
    factor alone, by draws of its own that nobody sees. A generated one never fails. Given what the
    attack sees and the coins before, an example is real and does not fail with probability
    ``min(d, e^c g) min(a, e^ε b) / (d a + g b)``. The numerator is at most ``d a`` and at most
    ``e^(c + ε) g b``, hence the whole at most ``p = 1 / (1 + e^-(c + ε))``. So, one example after
    the other: of r examples that the attack picks, those that are real and do not fail are
    stochastically at most Binomial(r, p). This holds given all that the attack sees, which fixes
    the thresholds, their ties and their number: the level may be shared among them. Where at most k
    fail, v right guesses hold at least v - k that do not, on r guesses still.

    How many fail? By the first factor an example does with probability ``∫ (d - e^c g)+ / 2``, at
    most γ/2. That depends on this example and its coin alone, and examples are independent: the
    failures are at most Binomial(m, γ/2). By the second it does with probability δ/2 at most, but a
    model may fail for many examples at once. That leaves Markov's inequality: more than k fail with
    probability at most ``m δ / (2 (k + 1))``. The first number is the smallest that is exceeded
    with at most a quarter of a test's level, the second the smallest with at most half of it. What
    a number of 0 does not use up stays with the thresholds.

    The paper lets generated examples fail, too: its ``E[F] <= 2 m (γ + δ - γδ)`` for the number F
    of failures is four times what it need be. It reads one test by the worst law of F, as in
    Steinke et al. (2023), Theorem 5.2; thousands of thresholds that each pay for F by themselves
    have next to nothing left.

    Where the text differs: Algorithm 1 takes a supremum where an infimum is meant and leaves out
    the maximum with 0 of Section 4.2; Proposition 4 prints δ where the baseline's bound has to
    carry γ. The parts of the generator in Lemma 1 are not distributions; the proof above does
    without them, and without a model that is independent of its members, as the lemmas have it.
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
    _check.aligned(baseline_scores=baseline_scores, attack_scores=attack_scores, members=members)
    baseline = _check.numbers("baseline_scores", baseline_scores, ndim=1)
    attack = _check.numbers("attack_scores", attack_scores, ndim=1)
    truth = _check.members("members", members)
    _check.same_length(baseline_scores=baseline, attack_scores=attack, members=truth)
    if truth.size == 0:
        raise ValueError("members must hold at least one example, got none")
    count = int(truth.sum())
    if abs(2 * count - truth.size) > 6.0 * np.sqrt(truth.size):  # by fair coins, chance below 2e-9
        raise ValueError(
            f"members must come from independent fair coins, got {count} members among "
            f"{truth.size} examples: toss a coin for each place, and show a real or a generated one"
        )
    delta = _check.delta("delta", delta)
    gamma = _check.delta("closeness_slack", closeness_slack)
    confidence = _check.fraction("confidence", confidence)
    level = (1.0 - confidence) / 2.0
    weak = _best_threshold(baseline, truth, *_allowance(truth.size, gamma, 0.0, level))
    strong = _best_threshold(attack, truth, *_allowance(truth.size, gamma, delta, level))
    estimate = _estimate(weak, strong, truth, delta, gamma, confidence)
    if 2 * count == truth.size:
        estimate = replace(estimate, notices=(exact_half("members", truth.size),))
    shown = (Scores(baseline, truth), Scores(attack, truth))
    return doubted(estimate, min(shown, key=Scores.repeated))


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
    members: Bools,
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
        details[f"{name}_discounted"] = point.discounted
    assumptions = (
        _WHY_AN_ESTIMATE,
        "Each example is real or generated by a fair coin of its own.",
        "The examples are independent, and none of them served to fit generator, baseline or "
        "attack.",
        "The baseline sees nothing but the example.",
    )
    return PanoramiaEstimate(
        epsilon=max(0.0, strong.lower - weak.lower),
        delta=delta,
        confidence=confidence,
        claim="estimate",
        adjacency="substitute",
        method="PANORAMIA",
        assumptions=assumptions,
        details=details,
        c_lower=weak.lower,
        c_plus_epsilon_lower=strong.lower,
    )


def _allowance(examples: int, gamma: float, delta: float, level: float) -> tuple[float, int]:
    """Return the level that is left for the thresholds, and how many right guesses to give away.

    More of either kind of failures happen with a chance that the rest of the level pays for. With
    more slack the one never grows and the other never shrinks.
    """
    number = np.arange(1.0, examples + 1.0)
    chance = np.append(betainc(number, number[::-1], gamma / 2.0), 0.0)  # of more than 0, 1, ...
    missing = int(np.argmax(chance <= level / 4.0))
    mean = examples * delta / 2.0
    told = max(0, ceil(2.0 * mean / level) - 1)
    rest = level - min(level / 4.0, float(chance[0])) - min(level / 2.0, mean)
    return rest, missing + told


def _best_threshold(
    scores: Floats, members: Bools, level: float, discounted: int
) -> _OperatingPoint:
    """Return the best lower bound on the log-odds of a right guess, not below 0."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # end of each tie
    correct = np.cumsum(members[order])[last]
    wrong = last + 1 - correct
    # A threshold with fewer right guesses and no fewer wrong ones than another cannot be best.
    useful = np.append(wrong[1:] > wrong[:-1], True) & np.append(True, correct[1:] > correct[:-1])
    at, correct, wrong = last[useful], correct[useful], wrong[useful]
    bounds = logit(lower_limit(correct - discounted, at + 1, level / len(last)))
    best = int(np.argmax(bounds))
    return _OperatingPoint(
        lower=max(0.0, float(bounds[best])),
        threshold=float(ordered[at[best]]),
        guesses=int(at[best]) + 1,
        correct=int(correct[best]),
        thresholds=len(last),
        discounted=discounted,
    )
