"""Upper bounds for DP-SGD: the right adjacency, the right number, never too small."""

import subprocess
import sys
from math import exp, inf, log

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from auditkit.accounting import dp_sgd_epsilon, group_privacy, noise_multiplier_for
from auditkit.bounds.tradeoff import ApproxDP, GaussianDP, PureDP

BOTH = ("add/remove", "substitute")


def epsilon(sigma, q, steps, adjacency, delta=1e-5):
    return dp_sgd_epsilon(
        noise_multiplier=sigma, sampling_rate=q, steps=steps, delta=delta, adjacency=adjacency
    )


def noise(target, q, steps, adjacency, delta=1e-5):
    return noise_multiplier_for(
        target, sampling_rate=q, steps=steps, delta=delta, adjacency=adjacency
    )


def gaussian_epsilon(mu, delta):
    """The smallest ε of N(0, 1) against N(μ, 1), the obvious way."""

    def excess(value):
        return ndtr(mu / 2 - value / mu) - np.exp(value + log_ndtr(-mu / 2 - value / mu)) - delta

    return brentq(excess, 0, mu * mu + 40 * mu, xtol=1e-13) if excess(0) > 0 else 0.0


def one_step_epsilon(sigma, q, adjacency, delta):
    """The smallest ε of one step, from tails beyond the point where the likelihood ratio is e^ε."""
    both, none, mirror = ((1 - q, 0.0), (q, 1.0)), ((1.0, 0.0),), ((1 - q, 0.0), (q, -1.0))
    if adjacency == "substitute":
        pairs = [(both, mirror, 1)]
    else:
        pairs = [(both, none, 1), (none, both, -1)]

    def density(parts, x):
        return sum(weight * norm.pdf(x, mean, sigma) for weight, mean in parts)

    def tail(parts, x, side):
        return sum(weight * ndtr(side * (mean - x) / sigma) for weight, mean in parts)

    def reached(value, p, r, side):
        def beyond(x):
            return log(density(p, x) / density(r, x)) - value

        low, high = -30.0 * sigma, 30.0 * sigma
        if beyond(side * high) < 0:
            return 0.0
        x = brentq(beyond, low, high, xtol=1e-13)
        return tail(p, x, side) - exp(value) * tail(r, x, side)

    def excess(value):
        return max(reached(value, *pair) for pair in pairs) - delta

    return brentq(excess, 1e-6, 20, xtol=1e-12)


# Against tables, closed forms and quadrature


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "add_remove", "substitute"),
    [
        (1, 0.25, 500, 50.544, 99.484),
        (10, 1, 500, 11.480, 28.373),
        (5, 0.0625, 2500, 2.607, 5.673),
    ],
)
def test_the_two_adjacencies_have_their_own_numbers(sigma, q, steps, add_remove, substitute):
    assert epsilon(sigma, q, steps, "add/remove") == pytest.approx(add_remove, abs=1e-3)
    assert epsilon(sigma, q, steps, "substitute") == pytest.approx(substitute, abs=1e-3)


@pytest.mark.parametrize(
    ("q", "target", "sigma", "add_remove", "group"),
    [
        (1.0, 1, 166.84, 0.469, 1.002),
        (1.0, 4, 48.35, 1.827, 4.113),
        (1.0, 10, 22.356, 4.378, 11.05),
        (0.25, 10, 5.573, 4.476, 11.40),
        (0.0625, 4, 3.016, 1.939, 4.407),
        (0.0625, 10, 1.403, 5.393, 14.79),
    ],
)
def test_noise_add_remove_and_group_privacy_at_the_settings_of_the_paper(
    q, target, sigma, add_remove, group
):
    found = noise(target, q, 500, "substitute")
    assert found == pytest.approx(sigma, rel=4e-4)
    assert epsilon(found, q, 500, "add/remove") == pytest.approx(add_remove, rel=1e-3)
    curve = GaussianDP(500**0.5 / found).epsilon if q == 1 else sgd_curve(found, q, 500)
    assert group_privacy(curve, 1e-5) == pytest.approx(group, rel=1e-3)
    assert epsilon(found, q, 500, "substitute") <= target < group


def sgd_curve(sigma, q, steps):
    return lambda delta: epsilon(sigma, q, steps, "add/remove", delta)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
@pytest.mark.parametrize(("sigma", "steps"), [(50, 500), (10, 500), (3, 1), (0.5, 1000)])
def test_without_subsampling_the_answer_is_the_closed_form(sigma, steps, delta, adjacency):
    shift = {"add/remove": 1, "substitute": 2}[adjacency]
    expected = gaussian_epsilon(shift * steps**0.5 / sigma, delta)
    assert epsilon(sigma, 1.0, steps, adjacency, delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9, 1e-10])
@pytest.mark.parametrize(("sigma", "steps"), [(50, 500), (10, 500), (3, 10)])
def test_almost_no_subsampling_is_just_above_the_closed_form(sigma, steps, delta, adjacency):
    """The accountant, made to work where the truth is known: an upper bound, and a close one."""
    exact = epsilon(sigma, 1.0, steps, adjacency, delta)
    found = epsilon(sigma, 1.0 - 1e-15, steps, adjacency, delta)
    assert exact <= found <= exact * (1 + 1e-4) + 0.02 * (delta <= 1e-10)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(("sigma", "q"), [(1.0, 0.1), (3.0, 0.1), (0.7, 0.01), (1.0, 0.9)])
def test_one_step_is_just_above_the_exact_value(sigma, q, adjacency):
    exact = one_step_epsilon(sigma, q, adjacency, 1e-5)
    assert exact <= epsilon(sigma, q, 1, adjacency) <= exact * (1 + 1e-4)


def test_the_renyi_accountant_would_answer_substitute_with_the_wrong_number():
    """The reason why it is not used."""
    accountant = RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_accounting.GaussianDpEvent(10.0), 500)
    wrong = accountant.get_epsilon(1e-5)
    assert wrong == pytest.approx(12.30, abs=0.05)
    assert epsilon(10, 1.0, 500, "substitute") == pytest.approx(28.373, abs=1e-3)


# Properties


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("q", [0.02, 1.0])
def test_epsilon_falls_with_noise_and_delta_and_rises_with_steps_and_rate(q, adjacency):
    middle = epsilon(1.5, q, 200, adjacency)
    assert epsilon(1.6, q, 200, adjacency) < middle
    assert epsilon(1.5, q, 200, adjacency, 1e-4) < middle
    assert epsilon(1.5, q, 210, adjacency) > middle
    assert epsilon(1.5, q / 2, 200, adjacency) < middle


@pytest.mark.parametrize("q", [0.02, 0.5, 1.0])
def test_substitute_lies_between_add_remove_and_group_privacy(q):
    add_remove, substitute = (epsilon(9.0, q, 100, adjacency) for adjacency in BOTH)
    assert add_remove < substitute <= group_privacy(sgd_curve(9.0, q, 100), 1e-5)


@settings(deadline=None, max_examples=30)
@given(
    st.floats(1e-3, 60),
    st.integers(1, 10_000),
    st.floats(1e-12, 0.1),
    st.sampled_from(BOTH),
)
def test_the_noise_without_subsampling_spends_epsilon_and_no_more(target, steps, delta, adjacency):
    found = noise(target, 1.0, steps, adjacency, delta)
    assert epsilon(found, 1.0, steps, adjacency, delta) <= target
    assert epsilon(found * (1 - 1e-9), 1.0, steps, adjacency, delta) > target * (1 - 1e-12)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("target", "q", "steps", "delta"),
    [(0.1, 0.001, 1000, 1e-5), (8, 0.02, 500, 1e-6), (1, 0.9, 1, 1e-9), (50, 0.5, 1000, 1e-5)],
)
def test_the_noise_with_subsampling_spends_epsilon_and_no_more(target, q, steps, delta, adjacency):
    found = noise(target, q, steps, adjacency, delta)
    assert epsilon(found, q, steps, adjacency, delta) <= target
    assert epsilon(found * (1 - 1e-3), q, steps, adjacency, delta) > target


def test_no_noise_is_needed_for_a_record_that_is_hardly_ever_seen():
    assert noise(1.0, 1e-6, 1, "substitute") == 0.02


def test_steps_without_a_leak_cost_nothing():
    assert epsilon(1e5, 0.5, 1, "add/remove") == 0.0
    assert epsilon(1e6, 1.0, 1, "substitute") == 0.0


# Group privacy


@settings(deadline=None, max_examples=50)
@given(st.floats(1e-3, 12), st.floats(1e-9, 0.5))
def test_group_privacy_takes_the_theorem_at_its_best(mu, delta):
    curve = GaussianDP(mu).epsilon
    found = group_privacy(curve, delta) / 2

    # the δ' it stands for is allowed, and no larger one on a fine grid is
    grid = np.linspace(log(delta / 2), -690.0, 3_000)
    values = curve(np.exp(grid))
    allowed = grid + np.logaddexp(0.0, values) <= log(delta)
    if not allowed.any():
        assert found > values.max()
        return
    assert found <= values[np.argmax(allowed)] + 1e-9
    if found > 0:
        assert (1 + exp(found)) * GaussianDP(mu).delta(found) <= delta * (1 + 1e-6)


def flat(value):
    """A curve that is the same for every δ'."""
    return lambda _: value


def test_group_privacy_of_pure_privacy_is_twice_epsilon():
    assert group_privacy(flat(1.5), 1e-6) == 3.0
    assert group_privacy(PureDP(50.0).epsilon, 1e-5) == pytest.approx(100.0)
    assert group_privacy(flat(0.0), 1e-6) == 0.0


def test_group_privacy_finds_a_narrow_window():
    """The curve is finite from some δ' on, close below the δ' that the theorem takes."""
    for share in (0.5, 0.9, 0.99, 0.999):
        start = share * 1e-5 / (1 + exp(1.0))
        assert group_privacy(ApproxDP(1.0, start).epsilon, 1e-5) == pytest.approx(2.0, abs=1e-4)
    gaussian = GaussianDP(1.0)
    whole = group_privacy(gaussian.epsilon, 1e-5)
    entered = gaussian.delta(whole / 2)
    for share in (0.9, 0.99, 0.999):

        def cut(delta, least=share * entered):
            return gaussian.epsilon(delta) if delta >= least else inf

        assert group_privacy(cut, 1e-5) == pytest.approx(whole, abs=1e-6)


def test_group_privacy_is_infinite_where_no_split_will_do():
    assert group_privacy(ApproxDP(1.0, 3e-6).epsilon, 1e-5) == inf
    assert group_privacy(flat(inf), 1e-5) == inf
    assert group_privacy(flat(1_000.0), 1e-5) == inf


def test_group_privacy_copes_with_a_staircase():
    def stairs(delta):
        return float(np.ceil(-log(delta)) / 4)

    found = group_privacy(stairs, 1e-5)
    grid = np.exp(np.linspace(log(5e-6), -40, 20_000))
    best = min(2 * stairs(d) for d in grid if (1 + exp(stairs(d))) * d <= 1e-5)
    assert found == pytest.approx(best)


# Small δ, much or little noise, and what loads when


def test_a_delta_below_what_the_accountant_can_tell_is_refused():
    with pytest.raises(ValueError, match=r"delta must be at least 1e-10 .*got 1e-11"):
        epsilon(1.0, 0.5, 10, "substitute", 1e-11)
    assert np.isfinite(epsilon(1.0, 1.0, 10, "substitute", 1e-300))


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(
    ("sigma", "q", "steps"), [(0.2, 0.5, 100), (0.05, 0.001, 100), (1000.0, 1e-6, 1), (30, 0.9, 1)]
)
def test_extremes_give_finite_numbers(sigma, q, steps, adjacency):
    assert 0 <= epsilon(sigma, q, steps, adjacency) < 1e6


def test_the_accountant_loads_when_it_is_needed():
    program = (
        "import sys, auditkit; from auditkit.accounting import dp_sgd_epsilon as e;"
        "run = dict(noise_multiplier=1, steps=10, delta=1e-5, adjacency='substitute');"
        "e(sampling_rate=1, **run); print('dp_accounting' in sys.modules);"
        "e(sampling_rate=.5, **run); print('dp_accounting' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout.split() == ["False", "True"]


# Bad input

RUN = {"sampling_rate": 0.5, "steps": 10, "delta": 1e-5, "adjacency": "substitute"}
WRONG = [
    ("sampling_rate", 0.0, ValueError),
    ("sampling_rate", 1.1, ValueError),
    ("sampling_rate", "1", TypeError),
    ("steps", 0, ValueError),
    ("steps", 2.5, ValueError),
    ("steps", 10**14, ValueError),
    ("steps", [1, 2], TypeError),
    ("delta", 0.0, ValueError),
    ("delta", 1.0, ValueError),
    ("delta", np.nan, ValueError),
    ("adjacency", "replace", ValueError),
    ("adjacency", None, ValueError),
]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        *WRONG,
        ("noise_multiplier", 0.0, ValueError),
        ("noise_multiplier", -1.0, ValueError),
        ("noise_multiplier", np.inf, ValueError),
        ("noise_multiplier", 0.001, ValueError),
    ],
)
def test_epsilon_refuses_bad_input_by_name(name, value, error):
    with pytest.raises(error, match=f"^{name} must"):
        dp_sgd_epsilon(**({"noise_multiplier": 1.0} | RUN | {name: value}))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        *WRONG,
        ("epsilon", 0.0, ValueError),
        ("epsilon", np.nan, ValueError),
        ("epsilon", 1e4, ValueError),
        ("epsilon", None, TypeError),
    ],
)
def test_the_search_for_noise_refuses_bad_input_by_name(name, value, error):
    with pytest.raises(error, match=f"^{name} must"):
        noise_multiplier_for(**({"epsilon": 1.0} | RUN | {name: value}))


@pytest.mark.parametrize(
    ("curve", "delta", "error", "name"),
    [
        (1.0, 1e-5, TypeError, "epsilon_at"),
        (flat(-1.0), 1e-5, ValueError, "epsilon_at"),
        (flat(np.nan), 1e-5, ValueError, "epsilon_at"),
        (flat(1.0), 0.0, ValueError, "delta"),
        (flat(1.0), 1.0, ValueError, "delta"),
    ],
)
def test_group_privacy_refuses_bad_input_by_name(curve, delta, error, name):
    with pytest.raises(error, match=f"^{name} must"):
        group_privacy(curve, delta)
