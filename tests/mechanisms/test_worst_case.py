"""The worst-case pair: exact laws against integrals, and runs against the laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.stats import binom, kstest, norm

from auditkit.accounting import dp_sgd_epsilon
from auditkit.bounds.tradeoff import CustomTradeOff, GaussianDP
from auditkit.mechanisms.worst_case import FinalSum, simulate_steps

QUICK = settings(max_examples=40, deadline=None)
LAWS = st.builds(
    FinalSum,
    st.floats(1.0, 30.0),  # with less, errors of 1e-300 would have to keep their digits
    st.one_of(st.just(1.0), st.floats(0.01, 0.999)),
    st.integers(1, 60),
)
SOME = [FinalSum(0.5, 0.9, 1), FinalSum(1.0, 0.3, 4), FinalSum(3.0, 0.0625, 500)]


def density(law, x, substitute):
    """SUB, eq. (3), word by word, with C = 1."""
    sign = -1.0 if substitute else 1.0
    spread = law.noise_multiplier * math.sqrt(law.steps)
    k = np.arange(law.steps + 1)
    chance = binom.pmf(k, law.steps, law.sampling_rate)
    return chance @ norm.pdf(np.asarray(x), sign * k[:, None], spread)


@pytest.mark.parametrize("law", [*SOME, FinalSum(2.0, 1.0, 3)])
@pytest.mark.parametrize("substitute", [False, True])
def test_the_density_is_that_of_the_paper(law, substitute):
    spread = law.noise_multiplier * math.sqrt(law.steps)
    x = np.linspace(-law.steps - 4.0 * spread, law.steps + 4.0 * spread, 9)
    expected = np.log(density(law, x, substitute))
    assert law.log_density(x, substitute=substitute) == pytest.approx(expected, rel=1e-10)


def test_far_out_the_density_is_still_a_number():
    law = FinalSum(1.0, 0.25, 20)
    assert np.isfinite(law.log_density([-1e6, 1e6], substitute=False)).all()
    assert law.log_ratio([1e4]).shape == (1,)


@QUICK
@given(law=LAWS)
def test_the_larger_the_sum_the_more_it_speaks_for_z(law):
    reach = law.steps + 6.0 * law.noise_multiplier * math.sqrt(law.steps)
    ratios = law.log_ratio(np.linspace(-reach, reach, 200))
    assert (np.diff(ratios) < 1e-9).all()
    assert ratios == pytest.approx(-ratios[::-1], abs=1e-9)


@pytest.mark.parametrize("law", SOME)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_delta_is_the_integral_of_the_excess(law, epsilon):
    spread = law.noise_multiplier * math.sqrt(law.steps)
    mean = law.steps * law.sampling_rate
    x = np.linspace(-8.0 * spread - 3.0, mean + 9.0 * spread + 3.0, 8_001)
    excess = density(law, x, False) - math.exp(epsilon) * density(law, x, True)
    expected = trapezoid(np.maximum(excess, 0.0), x)
    assert law.delta(epsilon) == pytest.approx(expected, rel=1e-5, abs=1e-11)


@QUICK
@given(law=LAWS, delta=st.floats(1e-12, 0.5))
def test_epsilon_and_delta_undo_each_other(law, delta):
    epsilon = law.epsilon(delta)
    if epsilon == 0.0:
        assert law.delta(0.0) <= delta * (1.0 + 1e-9)
    else:
        assert law.delta(epsilon) == pytest.approx(delta, rel=1e-7)


@settings(max_examples=3, deadline=None)
@given(law=LAWS, delta=st.floats(1e-8, 0.1))
def test_epsilon_is_the_slope_that_the_curve_has(law, delta):
    """The general search along β gives what the likelihood ratio gives."""
    curve = CustomTradeOff(law.beta, law.inverse)
    assert curve.epsilon(delta) == pytest.approx(law.epsilon(delta), rel=1e-5, abs=1e-6)


@QUICK
@given(law=LAWS, alpha=st.floats(1e-12, 1.0 - 1e-9))
def test_the_curve_is_its_own_inverse(law, alpha):
    assert law.inverse(law.beta(alpha)) == pytest.approx(alpha, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("law", SOME)
def test_no_cut_does_better_than_the_curve_and_each_lies_on_it(law):
    cuts = np.array([-2.0, -0.5, 0.0, 1.0, 4.0])
    spread = law.noise_multiplier * math.sqrt(law.steps)
    times = np.arange(law.steps + 1)
    chance = binom.pmf(times, law.steps, law.sampling_rate)
    missed = np.array([chance @ norm.cdf((cut - times) / spread) for cut in cuts])  # z below
    false = np.array([chance @ norm.cdf((-cut - times) / spread) for cut in cuts])  # z' above
    assert law.beta(false) == pytest.approx(missed, rel=1e-9)


@pytest.mark.parametrize("law", SOME)
def test_a_cut_has_the_errors_that_it_was_asked_for(law):
    rates = np.array([1e-4, 0.1, 0.5, 0.8])
    cuts = law.cut(rates)
    bits = np.arange(200_000) % 2
    says = law.draw(bits, rng=6)[:, None] < cuts
    error = 5.0 * np.sqrt(0.25 / 100_000)
    assert says[bits == 0].mean(axis=0) == pytest.approx(rates, abs=error)
    assert 1.0 - says[bits == 1].mean(axis=0) == pytest.approx(law.beta(rates), abs=error)
    assert (np.diff(law.log_ratio(cuts)) < 0.0).all()


def test_with_every_record_in_every_batch_the_pair_is_gaussian():
    law, curve = FinalSum(20.0, 1.0, 500), GaussianDP(2.0 * math.sqrt(500) / 20.0)
    alpha = [0.0, 1e-12, 1e-3, 0.5, 0.999, 1.0]
    assert law.beta(alpha) == pytest.approx(curve.beta(alpha), rel=1e-9)
    assert law.epsilon([1e-9, 1e-5]) == pytest.approx(curve.epsilon([1e-9, 1e-5]), rel=1e-9)
    assert law.delta([0.0, 7.0]) == pytest.approx(curve.delta([0.0, 7.0]), rel=1e-9)


@pytest.mark.parametrize(("q", "sigma"), [(0.9, 0.5), (0.5, 0.7), (0.1, 1.0), (1.0, 2.0)])
def test_one_step_has_the_epsilon_that_the_accountant_says(q, sigma):
    run = {"noise_multiplier": sigma, "sampling_rate": q, "steps": 1, "delta": 1e-5}
    promised = dp_sgd_epsilon(**run, adjacency="substitute")
    exact = FinalSum(sigma, q, 1).epsilon(1e-5)
    assert exact <= promised + 1e-9
    assert exact == pytest.approx(promised, rel=1e-4)


@pytest.mark.parametrize(("q", "sigma", "steps"), [(0.9, 1.0, 2), (0.0625, 1.403, 500)])
def test_the_final_sum_says_less_than_all_steps(q, sigma, steps):
    run = {"noise_multiplier": sigma, "sampling_rate": q, "steps": steps, "delta": 1e-5}
    assert FinalSum(sigma, q, steps).epsilon(1e-5) < dp_sgd_epsilon(**run, adjacency="substitute")


def test_at_the_edges_the_curve_says_what_it_must():
    law = FinalSum(1.0, 0.5, 3)
    assert law.beta([0.0, 1.0]).tolist() == [1.0, 0.0]
    assert law.epsilon(0.0) == math.inf
    assert law.epsilon(1.0) == 0.0
    assert law.delta(1e6) == 0.0
    assert FinalSum(0.5, 1e-6, 1).epsilon(1e-5) == 0.0  # rarer than δ
    assert law == FinalSum(1.0, 0.5, 3) != FinalSum(1.0, 0.5, 4)
    assert repr(law) == "FinalSum(1.0, 0.5, 3)"


# --- runs ----------------------------------------------------------------------------------------


def test_draws_follow_the_law_in_both_worlds():
    law = FinalSum(0.6, 0.4, 3)
    bits = np.arange(40_000) % 2
    sums = law.draw(bits, rng=1)
    times, spread = np.arange(4), 0.6 * math.sqrt(3)
    chance = binom.pmf(times, 3, 0.4)

    def below(x):
        return norm.cdf((np.asarray(x)[:, None] - times) / spread) @ chance

    assert kstest(sums[bits == 0], below).pvalue > 1e-4
    assert kstest(-sums[bits == 1], below).pvalue > 1e-4


@pytest.mark.parametrize(("sigma", "q"), [(0.7, 0.3), (2.0, 1.0), (0.02, 0.5), (0.04, 0.01)])
def test_each_step_adds_its_own_likelihood_ratio(sigma, q):
    bits = np.arange(200) % 2
    seen = simulate_steps(
        bits, noise_multiplier=sigma, sampling_rate=q, steps=6, snapshots=range(1, 7), rng=0
    )
    steps = np.diff(seen.sums, prepend=0.0)
    ratios = FinalSum(sigma, q, 1).log_ratio(steps).cumsum(axis=1)
    assert seen.log_ratios == pytest.approx(ratios, rel=1e-9, abs=1e-8)


def test_sums_of_the_simulated_steps_follow_the_law_of_the_final_sum():
    law = FinalSum(0.6, 0.4, 5)
    bits = np.arange(20_000) % 2
    seen = simulate_steps(bits, noise_multiplier=0.6, sampling_rate=0.4, steps=5, rng=2)
    drawn = law.draw(bits, rng=3)
    for world in (0, 1):
        assert kstest(seen.sums[bits == world, 0], drawn[bits == world]).pvalue > 1e-4


def test_the_ratio_turns_one_world_into_the_other():
    bits = np.zeros(200_000, dtype=int)
    seen = simulate_steps(bits, noise_multiplier=2.0, sampling_rate=0.5, steps=4, rng=4)
    weights = np.exp(seen.log_ratios[:, 0])
    error = weights.std() / math.sqrt(len(weights))
    assert weights.mean() == pytest.approx(1.0, abs=5 * error)
    tilted = weights * seen.sums[:, 0]
    assert tilted.mean() == pytest.approx(-2.0, abs=5 * tilted.std() / math.sqrt(len(bits)))


def test_who_sees_every_step_errs_less_and_both_score_high_for_the_canary():
    bits = np.arange(100_000) % 2
    seen = simulate_steps(bits, noise_multiplier=0.6, sampling_rate=0.1, steps=40, rng=5)
    hidden = FinalSum(0.6, 0.1, 40).log_ratio(seen.sums[:, 0])
    right = [((score > 0) == bits).mean() for score in (hidden, seen.log_ratios[:, 0])]
    assert 0.6 < right[0] < right[1] - 0.02


def test_looking_earlier_changes_nothing():
    run = {"noise_multiplier": 1.0, "sampling_rate": 0.5, "steps": 9, "rng": 7}
    bits = [0, 1, 1, 0]
    last = simulate_steps(bits, **run)
    often = simulate_steps(bits, **run, snapshots=[2, 5, 9])
    short = simulate_steps(bits, **{**run, "steps": 5})
    np.testing.assert_array_equal(often.sums[:, -1], last.sums[:, 0])
    np.testing.assert_array_equal(often.log_ratios[:, -1], last.log_ratios[:, 0])
    np.testing.assert_array_equal(often.sums[:, 1], short.sums[:, 0])


# --- the border ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.5, 3), "noise_multiplier must be above 0, got 0.0"),
        ((1.0, 0.0, 3), r"sampling_rate must lie in \(0, 1\], got 0.0"),
        ((1.0, 1.1, 3), r"sampling_rate must lie in \(0, 1\], got 1.1"),
        ((1.0, 0.5, 2.5), "steps must be a whole number of at least 1, got 2.5"),
        ((1.0, 0.5, 0), "steps must be a whole number of at least 1, got 0"),
    ],
)
def test_a_law_names_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        FinalSum(*arguments)
    names = ("noise_multiplier", "sampling_rate", "steps")
    with pytest.raises(ValueError, match=message):
        simulate_steps([0, 1], **dict(zip(names, arguments, strict=True)), rng=0)


@pytest.mark.parametrize("snapshots", [[], [3, 2], [0], [1, 11], [2, 2], [1.5]])
def test_snapshots_that_cannot_be_are_refused(snapshots):
    with pytest.raises(ValueError, match="snapshots must be"):
        simulate_steps(
            [0], noise_multiplier=1.0, sampling_rate=0.5, steps=10, snapshots=snapshots, rng=0
        )


def test_other_arguments_are_checked_too():
    law = FinalSum(1.0, 0.5, 3)
    for call, message in (
        (lambda: law.draw([0, 2], rng=0), "bits must hold 0, 1 only, got 2"),
        (lambda: law.draw([0, 1], rng=-1), "rng must be"),
        (lambda: law.log_ratio([math.nan]), "sums must hold finite numbers, got nan"),
        (lambda: law.beta(1.5), r"alpha must lie in \[0, 1\], got 1.5"),
        (lambda: law.inverse(-0.5), r"beta must lie in \[0, 1\], got -0.5"),
        (lambda: law.cut(0.0), "alpha must lie strictly between 0 and 1, got 0.0"),
        (lambda: law.delta(-1.0), "epsilon must hold numbers of at least 0, got -1"),
        (lambda: law.epsilon(2.0), r"delta must lie in \[0, 1\], got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="substitute must be True or False, got 1"):
        law.log_density(0.0, substitute=1)
