"""Two error rates prove what the definition allows, and no more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from auditkit.bounds.tradeoff import GaussianDP
from auditkit.bounds.two_worlds import two_worlds

METHODS = ("clopper-pearson", "gaussian")
LIMITS, GAUSSIAN = ({"method": method} for method in METHODS)
counts = st.integers(0, 60)


def reference(fp, n0, fn, n1, method, delta, level):
    """The obvious way: limits by search over the binomial tail, ε by search over δ(ε)."""

    def limit(errors, trials):
        if errors == trials:
            return 1.0
        return brentq(lambda p: stats.binom.cdf(errors, trials, p) - level, 0, 1, xtol=1e-14)

    fpr, fnr = limit(fp, n0), limit(fn, n1)
    if method == "clopper-pearson":
        sides = [(1 - delta - b) / a for a, b in ((fpr, fnr), (fnr, fpr))]
        return max([0.0, *(np.log(side) for side in sides if side > 0)])
    mu = max(0.0, stats.norm.isf(fpr) - stats.norm.ppf(fnr))
    if mu == 0.0:
        return 0.0

    def excess(epsilon):
        there = stats.norm.cdf(mu / 2 - epsilon / mu)
        return there - np.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu) - delta

    return brentq(excess, 0, 100) if excess(0) > 0 else 0.0


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None)
@given(fp=counts, fn=counts, n0=st.integers(60, 200), n1=st.integers(60, 200))
def test_it_agrees_with_the_obvious_way(method, fp, fn, n0, n1):
    bound = two_worlds(fp, n0, fn, n1, method=method)
    assert bound.epsilon == pytest.approx(
        reference(fp, n0, fn, n1, method, 1e-5, 0.025), abs=1e-6, rel=1e-6
    )


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None)
@given(fp=counts, fn=counts, n=st.integers(60, 200))
def test_more_errors_more_confidence_and_more_delta_never_prove_more(method, fp, fn, n):
    def epsilon(fp, fn, delta=1e-5, confidence=0.95):
        return two_worlds(fp, n, fn, n, method=method, delta=delta, confidence=confidence).epsilon

    base = epsilon(fp, fn)
    assert base >= 0.0
    assert epsilon(min(fp + 1, n), fn) <= base
    assert epsilon(fp, min(fn + 1, n)) <= base
    assert epsilon(fp, fn, delta=1e-3) <= base
    assert epsilon(fp, fn, confidence=0.99) <= base


@pytest.mark.parametrize("method", METHODS)
def test_the_two_worlds_can_be_exchanged(method):
    there, back = two_worlds(3, 50, 9, 80, method=method), two_worlds(9, 80, 3, 50, method=method)
    assert there.epsilon == pytest.approx(back.epsilon, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_arrays_equal_scalars(method):
    fp, fn = np.array([0, 5, 20, 100]), np.array([[0], [7], [100]])
    bound = two_worlds(fp, 100, fn, 120, method=method)
    assert bound.epsilon.shape == (3, 4)
    for row, column in np.ndindex(3, 4):
        single = two_worlds(fp[column], 100, fn[row, 0], 120, method=method)
        assert isinstance(single.epsilon, float)
        assert single.epsilon == pytest.approx(bound.epsilon[row, column], rel=1e-12)
        assert single.details["fpr_upper"] == bound.details["fpr_upper"][row, column]


NOTHING = [(0, 0, 0, 0), (0, 0, 0, 100), (50, 50, 0, 50), (25, 50, 25, 50)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("counts", NOTHING)
def test_no_runs_and_a_coin_prove_nothing(method, counts):
    assert two_worlds(*counts, method=method).epsilon == 0.0


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_no_errors_give_the_ceiling_in_closed_form(confidence):
    upper = -np.expm1(np.log((1 - confidence) / 2) / 1000)  # p with (1 - p)^n = level / 2
    bound = two_worlds(0, 1000, 0, 1000, method="clopper-pearson", delta=0.0, confidence=confidence)
    assert bound.epsilon == pytest.approx(np.log((1 - upper) / upper), rel=1e-12)
    assert bound.details["fpr"] == bound.details["fnr"] == 0.0


def test_without_a_method_nothing_is_assumed():
    plain, asked = (two_worlds(10, 1000, 20, 1000, **how) for how in ({}, LIMITS))
    assert plain.epsilon == asked.epsilon == pytest.approx(3.9689, abs=1e-4)
    assert plain.method == asked.method
    assert plain.delta == 1e-5


@pytest.mark.parametrize("errors", [1, 500])
def test_the_gaussian_method_at_delta_zero_is_refused_as_it_has_no_finite_epsilon(errors):
    with pytest.raises(ValueError, match=r"delta must be above 0 .*Gaussian.* got 0\.0: .* δ = 0"):
        two_worlds(errors, 1000, errors, 1000, method="gaussian", delta=0.0)
    assert two_worlds(errors, 1000, errors, 1000, method="gaussian", delta=5e-324).epsilon < 800.0


@pytest.mark.parametrize("confidence", [1e-300, 0.95, 1 - 1e-16])
def test_without_the_gaussian_step_every_count_has_a_finite_epsilon_at_delta_zero(confidence):
    runs = np.array([1, 2, 1000, 2**53 - 1])
    for errors in (0, 1, runs // 2, runs):
        bound = two_worlds(errors, runs, 0, runs, delta=0.0, confidence=confidence)
        assert np.isfinite(bound.epsilon).all()


def test_huge_counts_and_tiny_levels_stay_finite():
    for method in METHODS:
        bound = two_worlds([0, 10, 10**9], 10**15, 0, 10**15, method=method, confidence=1 - 1e-12)
        assert np.isfinite(bound.epsilon).all()
        assert (np.diff(bound.epsilon) < 0).all()
    assert bound.details["mu"][0] > 14.0


def test_the_level_is_split_over_both_limits_unless_the_paper_is_followed():
    joint = two_worlds(10, 1000, 20, 1000)
    paper = two_worlds(10, 1000, 20, 1000, paper_convention=True)
    assert joint.details["fpr_upper"] == pytest.approx(stats.beta.isf(0.025, 11, 990))
    assert paper.details["fpr_upper"] == pytest.approx(stats.beta.isf(0.05, 11, 990))
    assert joint.confidence == 0.95
    assert paper.confidence == pytest.approx(0.9)
    assert "as in SUB" in paper.method
    assert paper.epsilon > joint.epsilon
    assert paper.epsilon == pytest.approx(two_worlds(10, 1000, 20, 1000, confidence=0.9).epsilon)


def test_the_result_says_what_it_rests_on():
    gaussian = two_worlds(10, 1000, 20, 1000, **GAUSSIAN)
    limits = two_worlds(10, 1000, 20, 1000, **LIMITS)
    assert gaussian.claim == limits.claim == "lower bound"
    assert any("Gaussian" in sentence for sentence in gaussian.assumptions)
    assert not any("Gaussian" in sentence for sentence in limits.assumptions)
    assert all(sentence.endswith(".") for sentence in gaussian.assumptions)
    assert gaussian.details["negatives"] == 1000
    assert gaussian.details["fnr"] == 0.02
    assert "mu" not in limits.details


# One step of DP-SGD under substitution: the record is drawn with probability q, and moves the sum
# by +1 in the one world and by -1 in the other.
Q, SIGMA = 0.9, 0.5


def subsampled_density(x, shift):
    drawn, left_out = stats.norm.pdf(x, shift, SIGMA), stats.norm.pdf(x, 0.0, SIGMA)
    return Q * drawn + (1 - Q) * left_out


def subsampled_truth(delta=1e-5):
    x, step = np.linspace(-8, 8, 200_001, retstep=True)
    here, there = subsampled_density(x, 1.0), subsampled_density(x, -1.0)
    return brentq(lambda e: np.maximum(here - np.exp(e) * there, 0).sum() * step - delta, 1, 40)


def test_the_gaussian_method_exceeds_the_truth_for_one_step_of_subsampled_noise():
    runs, cut = 10**14, np.linspace(-1.0, 1.0, 201)
    fpr = Q * stats.norm.sf(cut, -1.0, SIGMA) + (1 - Q) * stats.norm.sf(cut, 0.0, SIGMA)
    fnr = Q * stats.norm.cdf(cut, 1.0, SIGMA) + (1 - Q) * stats.norm.cdf(cut, 0.0, SIGMA)
    population = np.rint(fpr * runs), runs, np.rint(fnr * runs), runs
    truth = subsampled_truth()
    assert truth == pytest.approx(12.15, abs=0.01)
    assert two_worlds(*population, **GAUSSIAN).epsilon.max() == pytest.approx(16.28, abs=0.01)
    assert two_worlds(*population, **LIMITS).epsilon.max() <= truth


def test_the_gaussian_method_is_tight_on_a_gaussian():
    for mu in (0.5, 2.0, 6.0):
        rate = np.rint(stats.norm.sf(mu / 2) * 10**12)
        bound = two_worlds(rate, 10**12, rate, 10**12, **GAUSSIAN)
        assert bound.details["mu"] == pytest.approx(mu, abs=1e-3)
        assert bound.epsilon == pytest.approx(GaussianDP(mu).epsilon(1e-5), rel=1e-3)


def excess_is_within(exceeded, level):
    """Whether this many failures could come from a rate of `level`, but for one chance in 1e6."""
    return stats.binom.sf(np.sum(exceeded) - 1, np.size(exceeded), level) > 1e-6


@pytest.mark.parametrize("runs", [20, 300])
@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("method", METHODS)
def test_a_gaussian_mechanism_is_covered(method, mu, runs):
    rng = np.random.default_rng(0)
    for cut in (0.0, mu / 2, mu):
        fp = rng.binomial(runs, stats.norm.sf(cut), 5000)
        fn = rng.binomial(runs, stats.norm.cdf(cut - mu), 5000)
        bound = two_worlds(fp, runs, fn, runs, method=method)
        assert excess_is_within(bound.epsilon > GaussianDP(mu).epsilon(1e-5), 0.05)


def test_randomised_response_is_covered_without_the_gaussian_step():
    rng = np.random.default_rng(0)
    fp, fn = rng.binomial(200, 1 / (1 + np.e), (2, 5000))
    bound = two_worlds(fp, 200, fn, 200, method="clopper-pearson", delta=0.0)
    assert excess_is_within(bound.epsilon > 1.0, 0.05)
    assert (bound.epsilon > 0.6).mean() > 0.5


def test_randomised_response_is_not_covered_with_it():
    rng = np.random.default_rng(0)
    fp, fn = rng.binomial(200, 1 / (1 + np.e), (2, 5000))
    assert (two_worlds(fp, 200, fn, 200, **GAUSSIAN).epsilon > 1.0).mean() == 1.0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"false_positives": 101}, ValueError, "false_positives must be at most negatives"),
        ({"negatives": 5}, ValueError, "false_positives must be at most negatives"),
        ({"false_negatives": -1}, ValueError, "false_negatives must hold whole numbers"),
        ({"positives": 100.5}, ValueError, "positives must hold whole numbers"),
        ({"positives": "many"}, TypeError, "positives must be an array of numbers"),
        ({"method": "normal"}, ValueError, "method must be one of 'clopper-pearson', 'gaussian'"),
        ({"delta": 1.0}, ValueError, r"delta must lie in \[0, 1\), got 1.0"),
        ({"delta": -0.1}, ValueError, r"delta must lie in \[0, 1\)"),
        ({"confidence": 1.0}, ValueError, "confidence must lie strictly between 0 and 1, got 1.0"),
        ({"confidence": "high"}, TypeError, "confidence must be one number"),
        (
            {"confidence": 0.5, "paper_convention": True},
            ValueError,
            "confidence must be above 0.5 with paper_convention.* got 0.5",
        ),
        ({"paper_convention": "yes"}, TypeError, "paper_convention must be True or False"),
    ],
)
def test_bad_input_is_refused_by_name(change, error, message):
    good = {"false_positives": 10, "negatives": 100, "false_negatives": 10, "positives": 100}
    with pytest.raises(error, match=message):
        two_worlds(**(good | change))
