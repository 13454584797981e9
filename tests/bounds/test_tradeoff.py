"""A trade-off curve says the same thing in every language it is read in."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from auditkit.bounds import tradeoff
from auditkit.bounds.tradeoff import ApproxDP, CustomTradeOff, GaussianDP, PureDP, TradeOff

GRID = np.concatenate(([0.0], np.geomspace(1e-12, 0.1, 60), np.linspace(0.1, 1.0, 60)[1:]))
relaxed = settings(max_examples=100, deadline=None)
mus = st.floats(0.0, 30.0)
epsilons = st.floats(0.0, 50.0)
deltas = st.floats(1e-300, 0.999)
curves = st.one_of(
    mus.map(GaussianDP),
    epsilons.map(PureDP),
    st.builds(ApproxDP, epsilons, st.floats(0.0, 0.9)),
    st.builds(lambda mu, d: GaussianDP(mu).with_failure(d), mus, st.floats(0.0, 0.9)),
)


def uniform_labels():
    """The curve of an asymmetric mechanism: 1 - 2α one way, (1 - α) / 2 the other."""
    return CustomTradeOff(lambda a: np.maximum(0.0, 1.0 - 2.0 * a), lambda b: (1.0 - b) / 2.0)


def as_custom(curve):
    return CustomTradeOff(curve.beta, curve.inverse)


@relaxed
@given(curve=curves)
def test_a_curve_is_convex_decreasing_and_below_the_diagonal(curve):
    f = curve.beta(GRID)
    assert (np.diff(f) <= 1e-12).all()
    assert (f >= 0.0).all()
    assert (f <= 1.0 - GRID + 1e-12).all()
    slopes = np.diff(f) / np.diff(GRID)
    assert (np.diff(slopes)[1:] * np.diff(GRID)[2:] >= -1e-9).all()


@relaxed
@given(curve=curves)
def test_the_inverse_is_the_smallest_error_that_reaches(curve):
    reached = curve.beta(curve.inverse(GRID))
    assert (reached <= GRID + 1e-9).all()
    assert (curve.inverse(np.asarray(curve.beta(GRID))) <= GRID + 1e-9).all()


@relaxed
@given(curve=curves, epsilon=st.floats(0.0, 20.0))
def test_delta_is_the_largest_gap_to_the_line_of_slope_epsilon(curve, epsilon):
    gaps = 1.0 - np.asarray(curve.beta(GRID)) - math.exp(epsilon) * GRID
    delta = curve.delta(epsilon)
    assert delta >= gaps.max() - 1e-12
    assert 0.0 <= delta <= 1.0


@relaxed
@given(curve=curves, delta=st.floats(1e-12, 0.999))
def test_epsilon_and_delta_undo_each_other(curve, delta):
    epsilon = curve.epsilon(delta)
    if math.isinf(epsilon):
        assert curve.delta(1e4) >= delta
    elif epsilon == 0.0:
        assert curve.delta(0.0) <= delta * (1.0 + 1e-9)
    else:
        assert curve.delta(epsilon) <= delta * (1.0 + 1e-8) + 1e-13
        assert curve.delta(max(epsilon - 1e-6, 0.0)) >= delta * (1.0 - 1e-8) - 1e-13


@relaxed
@given(mu=st.floats(1e-6, 30.0), delta=deltas)
def test_gaussian_epsilon_agrees_with_a_search_in_logs(mu, delta):
    def excess(epsilon):
        near, far = log_ndtr(mu / 2 - epsilon / mu), log_ndtr(-mu / 2 - epsilon / mu)
        return near + math.log1p(-math.exp(min(epsilon + far - near, -1e-17))) - math.log(delta)

    epsilon = GaussianDP(mu).epsilon(delta)
    if math.erf(mu / math.sqrt(8.0)) <= delta:
        assert epsilon == 0.0
    elif mu > 0.01:
        high = mu * (mu / 2 + 40.0)
        assert epsilon == pytest.approx(brentq(excess, 0.0, high, xtol=1e-14), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(
    ("mu", "delta", "epsilon"),
    # by arithmetic with 60 digits
    [
        (1e-4, 1e-10, 4.424938159051e-4),
        (1.0, 1e-5, 4.3771780956812),
        (3.0, 1e-50, 48.940941190006),
        (30.0, 1e-10, 639.93352320145),
        (30.0, 1e-300, 1560.7617052319),
        (100.0, 1e-300, 8703.8589583007),
    ],
)
def test_gaussian_epsilon_holds_far_out(mu, delta, epsilon):
    assert GaussianDP(mu).epsilon(delta) == pytest.approx(epsilon, rel=1e-11)
    assert GaussianDP(mu).delta(epsilon) == pytest.approx(delta, rel=1e-6)


def test_no_leak_means_no_epsilon():
    for curve in (GaussianDP(0.0), PureDP(0.0), ApproxDP(0.0, 0.0)):
        assert curve.epsilon(0.0) == 0.0
        assert curve.delta(0.0) == 0.0
        np.testing.assert_allclose(curve.beta(GRID), 1.0 - GRID, atol=1e-15)


def test_a_gaussian_curve_allows_no_epsilon_at_delta_0():
    assert GaussianDP(0.1).epsilon(0.0) == math.inf


@relaxed
@given(epsilon=epsilons, delta=st.floats(0.0, 0.9))
def test_approximate_dp_gives_back_what_it_was_made_of(epsilon, delta):
    curve = ApproxDP(epsilon, delta)
    assert curve.epsilon(delta) == pytest.approx(epsilon, abs=1e-12)
    assert curve.delta(epsilon) == pytest.approx(delta, abs=1e-15)
    if delta > 0.0:
        assert curve.epsilon(delta / 2) == math.inf
    rest = 1.0 - delta
    plain = np.maximum(rest - math.exp(epsilon) * GRID, math.exp(-epsilon) * (rest - GRID))
    np.testing.assert_allclose(curve.beta(GRID), np.maximum(plain, 0.0), atol=1e-12)


def test_an_epsilon_beyond_what_exp_can_hold_is_no_trouble():
    curve = PureDP(2000.0)
    assert curve.epsilon(0.0) == 2000.0
    np.testing.assert_array_equal(curve.beta([0.0, 0.5, 1.0]), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(curve.delta([0.0, 1999.0]), [1.0, 1.0 - math.exp(-1.0)])


@relaxed
@given(mu=mus, failure=st.floats(1e-6, 0.9), delta=st.floats(1e-6, 0.99))
def test_a_failure_is_spent_first(mu, failure, delta):
    curve = GaussianDP(mu).with_failure(failure)
    # the formula of the product, written out
    inside = GRID[1.0 - failure >= GRID]
    np.testing.assert_allclose(
        curve.beta(inside),
        (1 - failure) * ndtr(-ndtri(inside / (1 - failure)) - mu),
        atol=1e-12,
    )
    assert (curve.beta(GRID[1.0 - failure < GRID]) == 0.0).all()
    if delta < failure:
        assert curve.epsilon(delta) == math.inf
    else:
        spent = (delta - failure) / (1.0 - failure)
        assert curve.epsilon(delta) == GaussianDP(mu).epsilon(spent)


def test_failures_add_up_as_independent_events():
    assert PureDP(1.0).with_failure(0.1) == ApproxDP(1.0, 0.1)
    assert ApproxDP(1.0, 0.1).with_failure(0.1) == ApproxDP(1.0, 0.1 + 0.1 - 0.1 * 0.1)
    twice = GaussianDP(1.0).with_failure(0.1).with_failure(0.1)
    assert twice == GaussianDP(1.0).with_failure(0.1 + 0.1 - 0.1 * 0.1)
    assert GaussianDP(1.0).with_failure(0.0) == GaussianDP(1.0)
    assert ApproxDP(1.0, 0.1).with_failure(0.0) == ApproxDP(1.0, 0.1)


def test_gaussians_compose_as_their_squares():
    assert GaussianDP(3.0) @ GaussianDP(4.0) == GaussianDP(5.0)
    failing = GaussianDP(3.0).with_failure(0.1) @ GaussianDP(4.0)
    assert failing == GaussianDP(5.0).with_failure(0.1)
    np.testing.assert_allclose((GaussianDP([3.0, 5.0]) @ GaussianDP([4.0, 12.0])).mu, [5.0, 13.0])


def test_composing_with_what_leaks_nothing_changes_nothing():
    assert PureDP(1.0) @ PureDP(0.0) == PureDP(1.0)
    assert PureDP(0.0) @ GaussianDP(1.0) == GaussianDP(1.0)
    assert GaussianDP(1.0) @ ApproxDP(0.0, 0.1) == GaussianDP(1.0).with_failure(0.1)


def test_what_has_no_closed_form_is_refused():
    with pytest.raises(TypeError, match="compositions known in closed form"):
        PureDP(1.0) @ PureDP(1.0)
    with pytest.raises(TypeError, match="compositions known in closed form"):
        GaussianDP(1.0) @ PureDP(1.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        GaussianDP(1.0) @ 3.0


@pytest.mark.parametrize("curve", [GaussianDP(0.5), GaussianDP(5.0), PureDP(2.0), ApproxDP(1, 0.1)])
def test_a_curve_given_as_a_function_agrees_with_its_closed_form(curve):
    custom = as_custom(curve)
    np.testing.assert_allclose(custom.beta(GRID), curve.beta(GRID))
    delta = np.array([1e-8, 1e-5, 1e-2, 0.2, 0.9])
    np.testing.assert_allclose(custom.epsilon(delta), curve.epsilon(delta), rtol=1e-8, atol=1e-8)
    epsilon = np.array([0.0, 0.5, 2.0, 8.0])
    np.testing.assert_allclose(custom.delta(epsilon), curve.delta(epsilon), atol=1e-12)
    np.testing.assert_allclose(
        custom.with_failure(0.1).epsilon(0.2), curve.with_failure(0.1).epsilon(0.2), rtol=1e-8
    )


def test_an_asymmetric_curve_is_read_in_both_directions():
    curve = uniform_labels()
    # one way it is (log 2, 0)-DP, the other way it fails with probability one half
    assert curve.epsilon(0.4) == math.inf
    assert curve.epsilon(0.5) == 0.0
    np.testing.assert_allclose(curve.delta([0.0, 3.0]), [0.5, 0.5])


def test_a_curve_given_as_a_function_says_where_floats_end():
    with pytest.raises(ValueError, match="delta must be at least 1e-10"):
        as_custom(GaussianDP(1.0)).epsilon(1e-12)


@pytest.mark.parametrize(
    ("f", "inverse", "message"),
    [
        (lambda a: 1.1 - a, lambda b: 1.0 - b, "f must lie between 0 and 1 - x"),
        (lambda a: 1.0 - a, lambda b: -b, "inverse must lie between 0 and 1 - x"),
        (lambda a: (1 - a) * (0.5 + 0.4 * np.sin(20 * a)), lambda b: 1 - b, "f must be decreasing"),
        (lambda a: np.minimum(0.5, 1 - a), lambda b: 1 - b, "f must be convex"),
        (lambda a: (1 - a) ** 2, lambda b: (1 - b) ** 2, "inverse must undo f"),
        (lambda a: np.maximum(0, 1 - 2 * a), lambda b: np.maximum(0, 1 - 2 * b), "must undo f"),
        (lambda _: 0.5, lambda b: 1 - b, "one value for each"),
        (lambda a: np.nan * a, lambda b: 1 - b, "finite"),
    ],
)
def test_functions_that_are_no_trade_off_are_refused(f, inverse, message):
    with pytest.raises(ValueError, match=message):
        CustomTradeOff(f, inverse)


def test_a_curve_needs_functions():
    with pytest.raises(TypeError, match="f must be a function"):
        CustomTradeOff(1.0, abs)
    with pytest.raises(TypeError, match="inverse must be a function"):
        CustomTradeOff(abs, 1.0)


@relaxed
@given(curve=curves, points=st.lists(st.floats(1e-9, 0.9), min_size=1, max_size=5))
def test_arrays_equal_scalars(curve, points):
    for method in (curve.beta, curve.inverse, curve.epsilon, curve.delta):
        together = method(np.array(points))
        assert isinstance(method(points[0]), float)
        np.testing.assert_array_equal(together, [method(point) for point in points])


def test_parameters_may_be_arrays():
    mu, epsilon = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 60.0])
    np.testing.assert_array_equal(
        GaussianDP(mu).epsilon(1e-5), [GaussianDP(m).epsilon(1e-5) for m in mu]
    )
    np.testing.assert_array_equal(PureDP(epsilon).beta(0.3), [PureDP(e).beta(0.3) for e in epsilon])
    np.testing.assert_array_equal(GaussianDP(mu).mu, mu)


def test_curves_of_one_kind_and_parameter_are_equal():
    assert GaussianDP(1.0) == GaussianDP(1.0)
    assert hash(GaussianDP(1.0)) == hash(GaussianDP(1.0))
    assert len({PureDP(1.0), PureDP(1.0), PureDP(2.0), ApproxDP(1.0, 0.0)}) == 3
    assert GaussianDP(1.0) != PureDP(1.0)
    assert GaussianDP([1.0, 2.0]) == GaussianDP([1.0, 2.0])
    f = uniform_labels()
    assert f == CustomTradeOff(f._f, f._inverse)
    assert f != uniform_labels()


def test_a_curve_shows_what_it_is():
    assert repr(GaussianDP(1.0)) == "GaussianDP(mu=1.0)"
    assert repr(PureDP(2)) == "PureDP(epsilon=2.0)"
    assert repr(ApproxDP(1, [0.1, 0.2])) == "ApproxDP(epsilon=1.0, delta=[0.1, 0.2])"
    assert repr(GaussianDP(1.0).with_failure(0.1)) == "GaussianDP(mu=1.0).with_failure(0.1)"
    assert repr(uniform_labels()).startswith("CustomTradeOff(f=")


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: GaussianDP(-1.0), "mu"),
        (lambda: GaussianDP(math.nan), "mu"),
        (lambda: GaussianDP(math.inf), "mu"),
        (lambda: PureDP(-0.1), "epsilon"),
        (lambda: ApproxDP(-0.1, 0.0), "epsilon"),
        (lambda: ApproxDP(1.0, 1.5), "delta"),
        (lambda: ApproxDP([1.0, 2.0], [0.1, 0.2, 0.3]), "epsilon and delta"),
        (lambda: GaussianDP(1.0).beta(1.5), "alpha"),
        (lambda: GaussianDP(1.0).beta(-0.1), "alpha"),
        (lambda: PureDP(1.0).beta(math.nan), "alpha"),
        (lambda: GaussianDP(1.0).inverse(2.0), "beta"),
        (lambda: PureDP(1.0).inverse(2.0), "beta"),
        (lambda: GaussianDP(1.0).epsilon(-1e-9), "delta"),
        (lambda: PureDP(1.0).epsilon(1.1), "delta"),
        (lambda: GaussianDP(1.0).delta(-1.0), "epsilon"),
        (lambda: PureDP(1.0).delta(-1.0), "epsilon"),
        (lambda: GaussianDP(1.0).with_failure(1.0), "delta"),
        (lambda: PureDP(1.0).with_failure(-0.5), "delta"),
        (lambda: GaussianDP(1.0).with_failure(0.1).beta(3.0), "alpha"),
        (lambda: GaussianDP(1.0).with_failure(0.1).inverse(3.0), "beta"),
        (lambda: GaussianDP(1.0).with_failure(0.1).epsilon(3.0), "delta"),
        (lambda: GaussianDP(1.0).with_failure(0.1).with_failure(3.0), "delta"),
        (lambda: uniform_labels().beta(3.0), "alpha"),
        (lambda: uniform_labels().inverse(3.0), "beta"),
        (lambda: uniform_labels().epsilon(-1.0), "delta"),
        (lambda: uniform_labels().delta(-1.0), "epsilon"),
    ],
)
def test_bad_input_is_named(make, argument):
    with pytest.raises(ValueError, match=f"^{argument} must"):
        make()


@pytest.mark.parametrize("value", ["1", None, [[1], [2, 3]]])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match="mu must be"):
        GaussianDP(value)


def test_the_kernels_agree_with_scipy():
    powers = np.concatenate((np.geomspace(1e-300, 0.5, 300), 1.0 - np.geomspace(1e-15, 0.5, 100)))
    found = [tradeoff.normal_quantile(p) for p in powers]
    np.testing.assert_allclose(found, ndtri(powers), rtol=1e-13, atol=1e-15)
    assert tradeoff.normal_quantile(0.0) == -math.inf
    assert tradeoff.normal_quantile(1.0) == math.inf
    points = np.linspace(-37.0, 9.0, 200)
    np.testing.assert_allclose([tradeoff.normal_cdf(x) for x in points], ndtr(points), rtol=1e-12)


def test_a_users_own_curve_needs_its_two_sides_only():
    class Mine(TradeOff):
        def beta(self, alpha):
            return 1.0 - np.asarray(alpha)

        inverse = beta

    mine = Mine()
    assert mine == mine
    assert mine != Mine()
    assert mine.delta(0.0) == pytest.approx(0.0)
