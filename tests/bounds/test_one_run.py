"""The count of correct guesses in one run proves what it can, and nothing beyond."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, ndtr, ndtri

from auditkit.bounds.one_run import COINS, FIXED_NUMBER, one_run
from auditkit.bounds.one_run_fdp import best_over_thresholds, largest_rejected, one_run_fdp
from auditkit.bounds.one_run_steinke import worst_chance as steinke_chance
from auditkit.bounds.tradeoff import ApproxDP, CustomTradeOff, GaussianDP, PureDP

relaxed = settings(max_examples=50, deadline=None)

# examples of 10,000: guesses, correct, ε under (ε, δ), ε of the Gaussian family
PEERS = [
    (1_000, 600, 0.29501, 0.39026),
    (1_000, 800, 1.25079, 1.71191),
    (2_000, 1_400, 0.76475, 1.08946),
    (5_000, 4_500, 2.11786, 3.39844),
    (10_000, 8_000, 1.34461, 2.33374),
]
TYPE_ONE = {
    "gaussian": lambda power, p: float(ndtr(ndtri(power) - p)),
    "pure": lambda power, p: max(power * math.exp(-p), 1.0 - (1.0 - power) * math.exp(p)),
}


@st.composite
def counts(draw, most=60):
    m = draw(st.integers(1, most))
    r = draw(st.integers(0, m))
    return draw(st.integers(0, r)), r, m


def slow_chance(v, r, m, epsilon, delta):
    """The theorem of Steinke et al., term by term."""
    law = stats.binom(r, expit(epsilon))
    beta = law.sf(v - 1)
    i = np.arange(1, v + 1)
    alpha = np.max((law.sf(v - i - 1) - beta) / i, initial=0.0)
    return beta + 2 * m * delta * alpha


def slow_one_run(c, r, m, delta, level):
    low, high = 0.0, 40.0
    if c == 0 or slow_chance(c, r, m, low, delta) > level:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if slow_chance(c, r, m, middle, delta) <= level:
            low = middle
        else:
            high = middle
    return low


def slow_rejects(family, p, c, r, m, level, tau=0.0):
    """Algorithm 3 with arrays of h and r, line by line."""
    h, sure = np.zeros(c + 1), np.zeros(c + 1)
    sure[c], h[c] = level * c / m, level * (r - c) / m
    for i in range(c - 1, -1, -1):
        if sure[i + 1] + h[i + 1] >= r / m:
            return True
        h[i] = max(h[i + 1], TYPE_ONE.get(family, family)(sure[i + 1], p) - tau, 0.0)
        sure[i] = sure[i + 1] + i / (r - i) * (h[i] - h[i + 1])
    return bool(sure[0] + h[0] >= r / m)


def slow_parameter(family, c, r, m, level, tau=0.0):
    low, high = 0.0, 30.0
    if r == 0 or not slow_rejects(family, low, c, r, m, level, tau):
        return 0.0
    for _ in range(50):
        middle = (low + high) / 2
        if slow_rejects(family, middle, c, r, m, level, tau):
            low = middle
        else:
            high = middle
    return low


def highest_share(level, runs):
    """The largest share of failures that `runs` simulations at this level show by luck of 1e-6."""
    return stats.binom.ppf(1.0 - 1e-6, runs, level) / runs


# against slow references and published figures


@pytest.mark.parametrize(("r", "c", "approximate", "gaussian"), PEERS)
def test_the_figures_of_other_implementations_are_met(r, c, approximate, gaussian):
    steinke = one_run(c, r, 10_000, method="steinke").epsilon
    assert steinke == pytest.approx(approximate, abs=2e-5)
    assert one_run_fdp(c, r, 10_000).epsilon == pytest.approx(gaussian, abs=2e-5)


@relaxed
@given(counts(), st.sampled_from([1e-8, 1e-4, 1e-2]), st.sampled_from([0.5, 0.95, 0.999]))
def test_the_theorem_of_steinke_is_followed_term_by_term(counts, delta, confidence):
    bound = one_run(*counts, delta=delta, confidence=confidence, method="steinke")
    reference = slow_one_run(*counts, delta, 1.0 - confidence)
    assert bound.epsilon == pytest.approx(reference, abs=1e-8)


@pytest.mark.parametrize("v", [0, 1, 150, 250, 299, 300])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0, 30.0])
def test_the_chance_is_that_of_the_theorem(v, epsilon):
    value = steinke_chance(v, 300, 2 * 1000 * 1e-4, epsilon)
    assert value == pytest.approx(slow_chance(v, 300, 1000, epsilon, 1e-4), rel=1e-9)


def test_the_chance_skips_only_what_no_float_sees():
    # far above the mode the walk starts where the mass does
    for v in (60_000, 99_999, 100_000):
        exact = max(
            (stats.binom.sf(v - i - 1, 100_000, 0.5) - stats.binom.sf(v - 1, 100_000, 0.5)) / i
            for i in range(max(1, v - 51_000), v - 48_000, 1)
        )
        assert steinke_chance(v, 100_000, 1.0, 0.0) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "pure"])
@relaxed
@given(
    counts=counts(),
    tau=st.sampled_from([0.0, 0.0, 1e-3, 0.05]),
    confidence=st.sampled_from([0.5, 0.95, 0.999]),
)
def test_the_recursion_agrees_with_the_algorithm_line_by_line(family, counts, tau, confidence):
    bound = one_run_fdp(*counts, family=family, tau=tau, confidence=confidence)
    parameter = bound.details["mu" if family == "gaussian" else "parameter"]
    level = 1.0 - confidence
    assert parameter == pytest.approx(
        slow_parameter(family, *counts, level, tau), rel=2e-8, abs=1e-12
    )
    assert parameter < 1e-12 or slow_rejects(family, parameter, *counts, level, tau)


@pytest.mark.parametrize(
    ("c", "r", "m", "level"),
    [
        (600, 1_000, 10_000, 0.05),
        (800, 1_000, 10_000, 0.05),
        (1_000, 1_000, 10_000, 0.05),
        (3_000, 3_000, 3_000, 0.01),
        (2_700, 3_000, 3_000, 1e-6),
        (1_980, 2_000, 20_000, 1e-12),
        (5_000, 5_000, 5_000, 0.5),  # far out, where the curve is steep
        (520, 1_000, 1_000, 0.05),  # and near the diagonal
    ],
)
def test_large_counts_agree_too(c, r, m, level):
    for family in TYPE_ONE:
        fast = largest_rejected(c, r, m, family=family, level=level, tau=0.0)
        assert fast == pytest.approx(slow_parameter(family, c, r, m, level), rel=2e-8)


# properties and limits

BOUNDS = {
    "one_run": lambda *n, **k: one_run(*n, **{"delta": 0.0} | k),
    "one_run, δ": lambda *n, **k: one_run(*n, **{"delta": 1e-3} | k),
    "gaussian": one_run_fdp,
    "pure": lambda *n, **k: one_run_fdp(*n, family="pure", **k),
    "gaussian, τ": lambda *n, **k: one_run_fdp(*n, tau=1e-3, **k),
}
every_bound = pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)


@every_bound
@relaxed
@given(counts=counts(300))
def test_more_correct_guesses_prove_more(bound, counts):
    _, r, m = counts
    epsilon = bound(np.arange(r + 1), r, m).epsilon
    assert (np.diff(epsilon) >= -1e-6 * epsilon[1:]).all()
    assert (epsilon >= 0.0).all()


@every_bound
@relaxed
@given(counts=counts(300))
def test_more_confidence_and_more_delta_prove_less(bound, counts):
    def falls(values):
        assert (np.diff(values) <= 1e-6 * np.max(values)).all()

    falls([bound(*counts, confidence=level).epsilon for level in (0.5, 0.9, 0.95, 0.999)])
    falls([bound(*counts, delta=delta).epsilon for delta in (1e-12, 1e-6, 1e-3, 0.1, 0.9)])


@pytest.mark.parametrize("family", ["gaussian", "pure"])
@relaxed
@given(counts=counts(300))
def test_a_larger_shift_proves_less(family, counts):
    epsilon = [
        one_run_fdp(*counts, family=family, tau=tau).epsilon for tau in (0, 1e-6, 1e-3, 0.1, 0.9)
    ]
    assert (np.diff(epsilon) <= 1e-6 * max(epsilon)).all()
    assert epsilon[-1] == 0.0


@every_bound
def test_arrays_equal_scalars(bound):
    c, r, m = np.array([[5], [80], [100]]), np.array([100, 120]), 150
    together = bound(c, r, m)
    assert together.epsilon.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            alone = bound(int(c[i, 0]), int(r[j]), m)
            assert isinstance(alone.epsilon, float)
            assert alone.epsilon == together.epsilon[i, j]
    assert together.details["guesses"].shape == (3, 2)
    assert bound([], [], 5).epsilon.shape == (0,)


@every_bound
def test_no_guess_no_hit_and_chance_prove_nothing(bound):
    for counts in ((0, 0, 10), (0, 10, 10), (1, 1, 1), (50, 100, 100), (10, 100, 1_000)):
        assert bound(*counts).epsilon == 0.0


@every_bound
def test_a_million_guesses_are_no_trouble(bound):
    m = 10**6
    epsilon = bound([500_000, 505_000, 900_000, 999_999, m], m, m).epsilon
    assert np.isfinite(epsilon).all()
    assert epsilon[0] == 0.0
    assert (np.diff(epsilon) >= 0.0).all()


@every_bound
def test_extreme_confidence_is_no_trouble(bound):
    for confidence in (1e-15, 0.2, 1.0 - 1e-15):
        epsilon = bound(
            [0, 1, 99, 100], 100, [100, 100, 1000, 10**9], confidence=confidence
        ).epsilon
        assert np.isfinite(epsilon).all()
        assert (epsilon >= 0.0).all()


def test_all_correct_has_a_closed_form_without_delta():
    for r in (5, 100, 10**6):
        p = 0.05 ** (1 / r)
        wrong = -math.expm1(math.log(0.05) / r)
        found = one_run(r, r, 10**6, delta=0.0).epsilon
        assert found == pytest.approx(math.log(p / wrong), rel=1e-9)


def test_a_delta_that_tends_to_0_changes_nothing():
    exact = one_run(800, 1_000, 10_000, delta=0.0).epsilon
    assert one_run(800, 1_000, 10_000, delta=1e-14).epsilon == pytest.approx(exact, abs=1e-6)


def test_many_examples_leave_little_slack():
    # randomised response at ε = 1, counted at its mean
    for m, slack in ((10**4, 0.05), (10**6, 0.005)):
        c = round(m * expit(1.0))
        assert 1.0 - slack < one_run(c, m, m, delta=0.0).epsilon < 1.0


@pytest.mark.parametrize("family", ["gaussian", GaussianDP])
@pytest.mark.parametrize("correct", [500, 800])
def test_a_gaussian_curve_without_delta_is_refused_as_it_has_no_finite_epsilon(family, correct):
    with pytest.raises(ValueError, match=r"delta must be above 0 .*Gaussian.* got 0\.0: .* δ = 0"):
        one_run_fdp(correct, 1_000, 10_000, family=family, delta=0.0)


# coverage


@pytest.mark.parametrize("true", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_randomised_response_is_not_overstated(true, confidence):
    for r in (1, 7, 60, 400):
        c = np.arange(r + 1)
        mass = stats.binom.pmf(c, r, expit(true))
        for bound in (
            one_run(c, r, r, delta=0.0, confidence=confidence),
            one_run(c, r, 4 * r, delta=1e-3, confidence=confidence),
            one_run_fdp(c, r, r, family="pure", delta=0.0, confidence=confidence),
        ):
            assert mass[bound.epsilon > true].sum() <= 1.0 - confidence + 1e-12


@pytest.mark.parametrize("true", [0.0, 1.0, 3.0])
def test_a_mechanism_that_fails_with_delta_is_not_overstated(true):
    m, r, delta, runs = 300, 60, 0.05, 4_000
    rng = np.random.default_rng(1)
    revealed = np.minimum(rng.binomial(m, delta, runs), r)
    c = revealed + rng.binomial(r - revealed, expit(true))
    epsilon = one_run(np.arange(r + 1), r, m, delta=delta, confidence=0.9).epsilon
    assert (epsilon[c] > true).mean() <= highest_share(0.1, runs)
    if true == 0.0:
        # without the δ term the same counts prove what is false
        assert (one_run(c, r, m, delta=0.0, confidence=0.9).epsilon > 0.0).mean() > 0.5


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize(("m", "r"), [(100, 100), (100, 25), (400, 10)])
def test_a_gaussian_channel_is_not_overstated(mu, m, r):
    runs = 2_000
    rng = np.random.default_rng([m, r, int(10 * mu)])
    member = rng.random((runs, m)) < 0.5
    evidence = rng.standard_normal((runs, m)) + mu * (member - 0.5)
    chosen = np.argsort(-np.abs(evidence), axis=1)[:, :r]
    c = np.take_along_axis((evidence > 0) == member, chosen, axis=1).sum(axis=1)
    for confidence in (0.6, 0.95):
        found = one_run_fdp(np.arange(r + 1), r, m, confidence=confidence).details["mu"]
        assert (found[c] > mu).mean() <= highest_share(1.0 - confidence, runs)


@every_bound
def test_a_null_attack_proves_nothing(bound):
    rng = np.random.default_rng(3)
    runs, r, m = 3_000, 50, 200
    epsilon = bound(np.arange(r + 1), r, m, confidence=0.9).epsilon
    share = (epsilon[rng.binomial(r, 0.5, runs)] > 0.0).mean()
    assert share <= highest_share(0.1, runs)


# families given as functions


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gaussian", lambda p: GaussianDP(p)),
        ("pure", lambda p: PureDP(p)),
        ("gaussian", lambda p: CustomTradeOff(GaussianDP(p).beta, GaussianDP(p).inverse)),
    ],
)
def test_a_family_given_as_a_function_agrees_with_its_kernel(name, family):
    c, r, m = [0, 60, 80, 95, 100], [0, 100, 100, 100, 100], [100, 100, 300, 300, 100]
    for tau in (0.0, 1e-3):
        np.testing.assert_allclose(
            largest_rejected(*map(np.array, (c, r, m)), family=family, level=0.05, tau=tau),
            largest_rejected(*map(np.array, (c, r, m)), family=name, level=0.05, tau=tau),
            rtol=3e-8,
        )
    bound = one_run_fdp(80, 100, 300, family=family)
    assert bound.epsilon == pytest.approx(one_run_fdp(80, 100, 300, family=name).epsilon, rel=1e-7)
    assert "The mechanism's trade-off curve belongs to the given family." in bound.assumptions


def test_a_class_of_curves_is_a_family():
    for family, name in ((GaussianDP, "gaussian"), (PureDP, "pure")):
        by_class = one_run_fdp(80, 100, 300, family=family)
        assert str(by_class) == str(one_run_fdp(80, 100, 300, family=name))


def test_a_family_with_a_failure_proves_less():
    plain = one_run_fdp(80, 100, 300).details["mu"]
    failing = one_run_fdp(80, 100, 300, family=lambda mu: GaussianDP(mu).with_failure(1e-3))
    assert 0.0 < failing.details["parameter"] < plain


def test_one_direction_of_an_asymmetric_curve_proves_what_is_false():
    # labels published at random are exactly this private, and 710 of 1,000 are then common
    curve = CustomTradeOff(lambda a: np.maximum(0.0, 1.0 - 2.0 * a), lambda b: (1.0 - b) / 2.0)
    assert slow_rejects(lambda power, _: curve.inverse(1.0 - power), 0, 710, 1_000, 1_000, 0.05)
    with pytest.raises(ValueError, match="their own inverse"):
        one_run_fdp(710, 1_000, 1_000, family=lambda _: curve)


def test_a_family_has_to_be_one():
    with pytest.raises(ValueError, match="family must be 'gaussian', 'pure' or a function"):
        one_run_fdp(80, 100, 300, family="laplace")
    with pytest.raises(ValueError, match="family must be 'gaussian', 'pure' or a function"):
        one_run_fdp(80, 100, 300, family=3)
    with pytest.raises(TypeError, match="family must return a TradeOff"):
        one_run_fdp(80, 100, 300, family=lambda p: p)
    with pytest.raises(ValueError, match="family must leak more"):
        one_run_fdp(80, 100, 300, family=lambda p: GaussianDP(1.0 / (1.0 + p)))
    with pytest.raises(ValueError, match="family must return one curve"):
        one_run_fdp(80, 100, 300, family=lambda p: GaussianDP([[p], [p]]))
    with pytest.raises(ValueError, match="family must reach"):
        one_run_fdp(80, 100, 300, family=lambda p: PureDP(min(p, 2.5) / 1e3))


def test_a_family_that_starts_above_the_data_proves_nothing():
    bound = one_run_fdp(80, 100, 300, family=lambda p: ApproxDP(p + 5.0, 0.0))
    assert bound.epsilon == bound.details["parameter"] == 0.0


# the best of many thresholds


@pytest.mark.parametrize("family", ["gaussian", "pure"])
def test_the_best_over_thresholds_is_the_largest_of_all(family):
    rng = np.random.default_rng(5)
    r = np.arange(10, 501, 10)
    c = rng.binomial(r, 0.5 + 0.4 * rng.random((20, 1)) * np.exp(-r / 300))
    best, where = best_over_thresholds(c, r, 500, family=family)
    every = largest_rejected(c, r, np.array(500), family=family, level=0.05, tau=0.0)
    np.testing.assert_allclose(best, every.max(axis=-1), rtol=2e-8)
    picked = np.take_along_axis(every, where[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(picked, best, rtol=2e-8)
    assert best_over_thresholds(c[0], r, 500, family=family)[0].shape == ()


def test_no_threshold_proves_nothing_on_a_null_count():
    best, where = best_over_thresholds([5, 50], [10, 100], 500)
    assert best == 0.0
    assert where == 0


# what the result says


def test_a_result_says_what_it_rests_on():
    plain = one_run(80, 100, 300)
    assert (plain.claim, plain.adjacency) == ("lower bound", "add/remove")
    assert plain.assumptions == (COINS, FIXED_NUMBER)
    assert one_run(5, 10, 20, delta=0.0).assumptions == (COINS,)
    assert plain.details == {
        "examples": 300,
        "guesses": 100,
        "correct": 80,
        "level": pytest.approx(0.05),
        "nu": pytest.approx(0.04991, abs=1e-5),
        "lambda": pytest.approx(0.02931, abs=1e-5),
        "choices": 2,
    }
    gaussian = one_run_fdp(80, 100, 300, tau=0.001)
    assert gaussian.claim == "lower bound"
    always = (COINS, FIXED_NUMBER)
    assert gaussian.assumptions[:2] == always
    assert gaussian.assumptions[2] == "The mechanism's trade-off curve is Gaussian."
    assert "0.001" in gaussian.assumptions[3]
    assert "false in general" in gaussian.assumptions[4]
    assert gaussian.epsilon == GaussianDP(gaussian.details["mu"]).epsilon(1e-5)
    # ε-DP itself is what a rejected pure curve rejects; at δ > 0 the family matters
    assert one_run_fdp(80, 100, 300, family="pure", delta=0.0).assumptions == always
    assert "pure" in one_run_fdp(80, 100, 300, family="pure").assumptions[2]


@pytest.mark.parametrize("bound", [one_run, one_run_fdp, best_over_thresholds])
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((-1, 5, 9), "correct must hold whole numbers"),
        ((1.5, 5, 9), "correct must hold whole numbers"),
        ((np.nan, 5, 9), "correct must hold finite numbers"),
        ((6, 5, 9), "correct must be at most guesses, got 6 of 5"),
        (([1, 6], 5, 9), "correct must be at most guesses, got 6 of 5"),
        ((1, -5, 9), "guesses must hold whole numbers"),
        ((1, 10, 9), "guesses must be at most examples, got 10 of 9"),
        ((0, 0, 0), "examples must be at least 1"),
        ((1, 5, 9.5), "examples must hold whole numbers"),
        (
            ([1, 2], [5, 5, 5], 9),
            r"shapes that fit together: correct has \(2,\), guesses has \(3,\), examples has \(\)",
        ),
    ],
)
def test_impossible_counts_are_named(bound, counts, message):
    with pytest.raises(ValueError, match=message):
        bound(*counts)


@pytest.mark.parametrize("bound", [one_run, one_run_fdp])
@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"delta": -0.1}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"confidence": 0.0}, "confidence"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 95}, "confidence"),
    ],
)
def test_impossible_options_are_named(bound, options, argument):
    with pytest.raises(ValueError, match=f"^{argument} must"):
        bound(5, 10, 20, **options)


@pytest.mark.parametrize("tau", [-0.1, 1.0, math.nan])
def test_an_impossible_shift_is_named(tau):
    with pytest.raises(ValueError, match=r"^tau must"):
        one_run_fdp(5, 10, 20, tau=tau)


@pytest.mark.parametrize("value", ["5", None, [[1], [2, 3]]])
def test_what_is_no_count_is_refused(value):
    for bound in (one_run, one_run_fdp):
        with pytest.raises(TypeError, match="correct must be"):
            bound(value, 10, 20)


def test_best_over_thresholds_takes_the_compiled_families():
    with pytest.raises(ValueError, match="family must be one of"):
        best_over_thresholds([5], [10], 20, family=GaussianDP)


def test_where_the_theorem_is_too_small_the_confidence_is_refused():
    steinke = partial(one_run, 1, 3, 3, delta=1e-6, method="steinke")
    assert steinke(confidence=0.2).epsilon == 0.0
    with pytest.raises(ValueError, match=r"confidence must be at least 0.2 where delta > 0"):
        steinke(confidence=0.12)
