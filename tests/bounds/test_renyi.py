"""Rényi divergences: exact ones, conversion, and audits that keep their promise."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from auditkit import Bound
from auditkit.bounds import renyi
from auditkit.bounds.clopper_pearson import limits
from auditkit.bounds.renyi import (
    METHODS,
    appendix_b_bound,
    epsilon_from_renyi,
    renyi_audit,
    renyi_divergence,
)

QUICK = settings(max_examples=50, deadline=None)
ORDERS = np.array([1.5, 2.0, 5.0, 10.0, 20.0, 50.0])
LAWS = st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=6)


def law(values):
    return np.array(values) / math.fsum(values)


def coins(p, q, inside, orders):
    inside = list(inside)
    return renyi_divergence(
        [p[inside].sum(), 1 - p[inside].sum()], [q[inside].sum(), 1 - q[inside].sum()], orders
    )


# --- exact divergences ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worlds():
    from auditkit.mechanisms.voting import noisy_argmax_probabilities

    votes = [[14, 12, 10, 8, 6], [13, 13, 10, 8, 6]]
    return noisy_argmax_probabilities(votes, 2.0)


def test_the_histograms_of_pred_have_their_known_divergences(worlds):
    p, q = worlds
    assert renyi_divergence(p, q, ORDERS).round(3).tolist() == [
        0.196,
        0.240,
        0.357,
        0.399,
        0.418,
        0.428,
    ]
    assert renyi_divergence(q, p, ORDERS).round(3).tolist() == [
        0.237,
        0.312,
        0.564,
        0.664,
        0.708,
        0.733,
    ]
    subsets = [c for size in range(1, 5) for c in itertools.combinations(range(5), size)]
    best = np.max([coins(p, q, c, ORDERS) for c in subsets], axis=0)
    assert best.round(3).tolist() == [0.189, 0.233, 0.356, 0.399, 0.418, 0.428]


@QUICK
@given(LAWS, st.data(), st.floats(0.1, 30.0).filter(lambda a: abs(a - 1) > 0.05))
def test_a_divergence_is_its_definition(values, data, order):
    p = law(values)
    q = law(data.draw(st.lists(st.floats(1e-3, 1.0), min_size=len(p), max_size=len(p))))
    slow = math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True)))
    assert renyi_divergence(p, q, order) == pytest.approx(slow / (order - 1), abs=1e-10)
    assert renyi_divergence(p, p, order) <= 1e-12
    steps = renyi_divergence(p, q, [0.3, 0.9, 1.1, 2, 10, 1000, 1e5])
    assert (np.diff(steps) >= -1e-9).all()
    assert steps[-1] <= np.log(p / q).max() + 1e-9
    merged = renyi_divergence(
        [p[0], 1 - p[0]] if len(p) > 2 else p, [q[0], 1 - q[0]] if len(p) > 2 else q, order
    )
    assert merged <= renyi_divergence(p, q, order) + 1e-12


def test_outcomes_without_probability_are_handled():
    orders = [0.5, 2.0]
    assert renyi_divergence([0.5, 0.5, 0.0], [0.5, 0.5, 0.0], orders).tolist() == [0.0, 0.0]
    assert renyi_divergence([1.0, 0.0], [0.5, 0.5], orders) == pytest.approx([math.log(2)] * 2)
    low, high = renyi_divergence([0.5, 0.5], [1.0, 0.0], orders)
    assert low == pytest.approx(math.log(2))
    assert high == math.inf
    assert renyi_divergence([1.0, 0.0], [0.0, 1.0], orders).tolist() == [math.inf, math.inf]


def test_tiny_probabilities_and_huge_orders_stay_finite():
    values = renyi_divergence([1e-300, 1.0], [1e-290, 1.0], [500.0, 1e4, 1e6])
    assert values == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    assert renyi_divergence([1e-290, 1.0], [1e-300, 1.0], 1e6) == pytest.approx(
        10 * math.log(10), rel=1e-3
    )


def test_arrays_of_laws_equal_single_ones():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), size=(3, 2)), rng.dirichlet(np.ones(4))
    values = renyi_divergence(p, q, ORDERS)
    assert values.shape == (3, 2, 6)
    assert values[1, 0] == pytest.approx(renyi_divergence(p[1, 0], q, ORDERS), rel=1e-14)
    assert renyi_divergence(p, q, 2.0).shape == (3, 2)


# --- conversion ----------------------------------------------------------------------------------


def test_the_conversion_takes_the_best_order_and_none_below_one():
    orders, delta = np.array([0.5, 2.0, 8.0]), 1e-6
    values = np.array([0.0, 0.1, 0.4])
    slow = [
        d + math.log((a - 1) / a) - (math.log(delta) + math.log(a)) / (a - 1)
        for a, d in zip(orders[1:], values[1:], strict=True)
    ]
    assert epsilon_from_renyi(orders, values, delta) == pytest.approx(min(slow))
    assert isinstance(epsilon_from_renyi(orders, values, delta), float)
    assert epsilon_from_renyi([2.0], [0.0], 0.9) == 0.0
    assert epsilon_from_renyi(2.0, math.inf, delta) == math.inf
    assert epsilon_from_renyi([2.0, 8.0], [math.inf, 0.4], delta) == pytest.approx(slow[1])


@QUICK
@given(st.floats(0.0, 3.0), st.floats(1e-12, 0.5), st.floats(0.0, 1.0))
def test_the_conversion_grows_with_leakage_and_falls_with_delta(slope, delta, more):
    orders = np.array([1.5, 2, 4, 16, 64])
    epsilon = epsilon_from_renyi(orders, slope * orders, delta)
    assert epsilon <= epsilon_from_renyi(orders, (slope + more) * orders, delta)
    assert epsilon >= epsilon_from_renyi(orders, slope * orders, min(2 * delta, 0.99))


def test_the_conversion_has_a_floor_where_nothing_leaks():
    orders = np.arange(2, 500)
    assert 0.012 < epsilon_from_renyi(orders, np.zeros(498), 1e-6) < 0.0135


# --- audits --------------------------------------------------------------------------------------


def share_above(method, p, q, trials, simulations, cut=None):
    """Share of simulations in which the bound exceeds the truth at some order."""
    truth = renyi_divergence(p, q, ORDERS)
    rng = np.random.default_rng(7)
    above = 0
    trials_p, trials_q = np.broadcast_to(trials, 2)
    for seed in range(simulations):
        counts = rng.multinomial(trials_p, p), rng.multinomial(trials_q, q)
        bound = renyi_audit(*counts, ORDERS, method=method, cut=cut, rng=seed)
        above += bool((bound.epsilon > truth + 1e-12).any())
    return above / simulations


@pytest.mark.parametrize("method", ["2-cut", "k-cut"])
@pytest.mark.parametrize("world", ["the same", "flat", "near", "far", "rare", "coins"])
@pytest.mark.parametrize("trials", [300, 20_000, (200, 10**6), (10**6, 200)])
def test_lower_bounds_exceed_the_truth_as_rarely_as_they_promise(method, world, trials, worlds):
    p, q = worlds
    if world == "the same":
        q = p
    if world == "near":
        q = 0.98 * p + 0.02 * q
    if world == "flat":
        p = q = np.full(10, 0.1)
    if world == "coins":
        p, q = np.array([0.6, 0.4]), np.array([0.3, 0.7])
    if world == "rare":
        p, q = np.array([0.99, 0.008, 0.002]), np.array([0.985, 0.014, 0.001])
    simulations = 800
    allowed = binom.ppf(1 - 1e-6, simulations, 0.05) / simulations
    assert share_above(method, p, q, trials, simulations) <= allowed


@pytest.mark.parametrize("world", ["the same", "other way"])
def test_a_cut_given_beforehand_keeps_the_promise_either_way(world, worlds):
    p, q = worlds if world == "other way" else (worlds[0], worlds[0])
    allowed = binom.ppf(1 - 1e-6, 800, 0.05) / 800
    assert share_above("2-cut", p, q, 3000, 800, cut={1}) <= allowed


def test_a_cut_chosen_on_the_tested_counts_breaks_the_promise():
    p = np.full(10, 0.1)
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(300):
        first, second = rng.multinomial(10_000, p), rng.multinomial(10_000, p)
        cut = set(np.flatnonzero(first > second).tolist())
        above += renyi_audit(first, second, [2.0], cut=cut).epsilon[0] > 0.0
    assert above / 300 > 0.1


@pytest.mark.parametrize("method", ["2-cut bootstrap", "k-cut bootstrap"])
def test_the_bootstrap_fails_where_nothing_leaks(method, worlds):
    assert share_above(method, worlds[0], worlds[0], 20_000, 40) > 0.9


def test_the_bootstrap_is_an_estimate_and_says_when_it_fails(worlds):
    counts = (20_000 * worlds).astype(int)
    for method in METHODS:
        bound = renyi_audit(*counts, ORDERS, method=method)
        assert bound.claim == ("estimate" if "bootstrap" in method else "lower bound")
        assert any("bootstrap exceeds it" in s for s in bound.assumptions) == ("boot" in method)
        assert all(sentence.endswith(".") for sentence in bound.assumptions)
        assert bound.delta == 0.0
        assert (bound.details["orders"] == ORDERS).all()
        assert bound.epsilon.shape == ORDERS.shape


def test_what_is_printed_is_a_divergence_and_no_epsilon(worlds):
    counts = (1_000_000 * worlds).astype(int)
    audited = renyi_audit(*counts, [2, 8], cut={0})
    printed = appendix_b_bound(*counts, [2, 8], cut={0})
    guess = renyi_audit(*counts, [0.5], method="2-cut bootstrap", cut={0})
    many = renyi_audit(*counts, np.arange(2, 50), cut={0})
    for bound, shown, orders, how in (
        (audited, "≥ [", "[2, 8] with 95%", "2-cut; assumes"),
        (printed, "≥ [", "[2, 8] with 95%", "2-cut, terms; assumes"),
        (guess, "≈ [", "[0.5] at a nominal 95%", "2-cut bootstrap; assumes"),
        (many, "≥ 48 values from ", "2 to 49 with 95%", "2-cut; assumes"),
    ):
        text, table = str(bound), bound._repr_html_()
        assert isinstance(bound, Bound)
        assert text.startswith(f"Rényi divergence {shown}")
        assert f" at orders {orders} confidence ({bound.claim}" in text
        assert f"the two worlds' adjacency; {how}" in text
        assert '<th scope="row">Rényi divergence</th>' in table
        assert '<th scope="row">orders</th>' in table
        for said in (text, table):
            assert not set(said) & set("εδ")
        assert bound.delta == 0.0


def test_the_best_cut_is_found_and_the_bound_comes_near_it(worlds):
    counts = (1e8 * worlds).astype(int)
    bound = renyi_audit(*counts, ORDERS)
    assert bound.details["cut"] == (0,)
    assert bound.epsilon == pytest.approx(coins(*worlds, [0], ORDERS), rel=0.01)
    whole = renyi_audit(*counts, ORDERS, method="k-cut")
    assert whole.epsilon == pytest.approx(renyi_divergence(*worlds, ORDERS), rel=0.01)
    assert whole.epsilon[0] > bound.epsilon[0]


def test_more_confidence_gives_a_smaller_bound_and_more_trials_a_larger_one(worlds):
    for method in ("2-cut", "k-cut"):
        cut = {0} if method == "2-cut" else None
        bounds = [
            renyi_audit(*(n * worlds).astype(int), ORDERS, method=method, confidence=c, cut=cut)
            for n, c in [(1000, 0.99), (1000, 0.95), (1000, 0.5), (10**5, 0.5)]
        ]
        for smaller, larger in itertools.pairwise(bounds):
            assert (smaller.epsilon <= larger.epsilon).all()


@QUICK
@given(st.integers(0, 500), st.integers(0, 500), st.floats(0.05, 40.0).filter(lambda a: a != 1.0))
def test_a_cut_and_its_complement_say_the_same_and_worlds_mirror(first, second, order):
    one, two = [first, 500 - first], [second, 500 - second]
    bound = renyi_audit(one, two, order, cut={0}).epsilon
    assert bound == pytest.approx(renyi_audit(one, two, order, cut=[1]).epsilon, abs=1e-10)
    turned = renyi_audit(one[::-1], two[::-1], order, cut={0}).epsilon
    assert bound == pytest.approx(turned, abs=1e-10)


@QUICK
@given(st.integers(0, 10**6))
def test_the_two_cut_is_the_least_divergence_in_its_box(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.multinomial(200, rng.dirichlet([1, 1]), size=2)
    orders = np.array([0.4, 2.0, 9.0])
    bound = renyi_audit(first, second, orders, cut={0})
    (pl, pu), (ql, qu) = bound.details["limits_p"], bound.details["limits_q"]
    grid_p, grid_q = np.meshgrid(np.linspace(pl, pu, 60), np.linspace(ql, qu, 60))
    p = np.stack([grid_p, 1 - grid_p], axis=-1).reshape(-1, 2)
    q = np.stack([grid_q, 1 - grid_q], axis=-1).reshape(-1, 2)
    least = renyi_divergence(p, q, orders).min(axis=0)
    assert (bound.epsilon <= least + 1e-10).all()
    if pl > qu or pu < ql:
        assert bound.epsilon == pytest.approx(least, rel=1e-8, abs=1e-12)


def within(law, low, high):
    """The law between `low` and `high` that is proportional to `law` where it may be."""

    def excess(log_factor):
        return np.clip(np.exp(log_factor) * law, low, high).sum() - 1.0

    return np.clip(np.exp(brentq(excess, -50.0, 50.0)) * law, low, high)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_the_k_cut_is_the_least_divergence_in_its_box(seed, outcomes):
    rng = np.random.default_rng(seed)
    trials = int(10 ** rng.uniform(1.5, 6))
    first = rng.multinomial(trials, rng.dirichlet(np.ones(outcomes)))
    second = rng.multinomial(trials, rng.dirichlet(np.ones(outcomes)))
    orders = np.array([0.4, 2.0, 9.0, 200.0])
    bound = renyi_audit(first, second, orders, method="k-cut").epsilon
    tail = (1 - math.sqrt(0.95)) / (2 * outcomes)
    box_p, box_q = limits(first, trials, tail), limits(second, trials, tail)
    # no pair within the boxes goes below the bound
    for _ in range(20):
        p, q = (within(rng.dirichlet(np.ones(outcomes)), *box) for box in (box_p, box_q))
        assert (bound <= renyi_divergence(p, q, orders) + 1e-9).all()
    # and the pair that is found by turns meets it
    p, q, before = second / trials, second / trials, None
    while before is None or np.abs(p - before).max() > 1e-12:
        before, p = p, within(q, *box_p)
        q = within(p, *box_q)
    assert bound == pytest.approx(renyi_divergence(p, q, orders), rel=1e-3, abs=1e-6)


def test_the_k_cut_is_valid_wherever_its_search_stops(monkeypatch):
    first, second = np.array([500, 300, 200]), np.array([300, 300, 400])
    orders = np.array([0.4, 2.0, 9.0])
    least = renyi_audit(first, second, orders, method="k-cut").epsilon
    assert (least > 0.01).all()
    for p, q in (([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]), ([0.48, 0.3, 0.22], [0.33, 0.3, 0.37])):
        monkeypatch.setattr(renyi, "_nearest_pair", lambda *_, p=p, q=q: (np.array(p), np.array(q)))
        early = renyi_audit(first, second, orders, method="k-cut").epsilon
        assert (early < least).all()


def test_few_trials_and_empty_outcomes_prove_nothing_and_raise_no_warning():
    for method in METHODS:
        for counts in ([1, 0], [0, 1]):
            for seed in range(30):
                bound = renyi_audit(counts, [1, 0], [0.5, 2.0], method=method, rng=seed)
                assert not np.isnan(bound.epsilon).any()
                if "bootstrap" not in method:
                    assert (bound.epsilon == 0.0).all()


def test_worlds_without_a_common_outcome_give_large_but_finite_bounds():
    for method in ("2-cut", "k-cut"):
        bound = renyi_audit([10**6, 0, 0], [0, 10**6, 0], [0.5, 2.0, 50.0], method=method)
        assert (bound.epsilon > 10.0).all()
        assert np.isfinite(bound.epsilon).all()
    assert renyi_audit([9, 0], [0, 9], [2.0], method="k-cut bootstrap").epsilon[0] == math.inf


def test_the_formula_of_appendix_b_never_exceeds_the_corner(worlds):
    for trials in (10**3, 10**5, 10**7):
        counts = (trials * worlds).astype(int)
        printed = appendix_b_bound(*counts, ORDERS, cut={0})
        corner = renyi_audit(*counts, ORDERS, cut={0})
        assert printed.claim == "lower bound"
        assert (printed.epsilon <= corner.epsilon + 1e-12).all()
    near = (10**6 * np.array([[0.21, 0.79], [0.2, 0.8]])).astype(int)
    assert appendix_b_bound(*near, [2.0], cut={0}).epsilon[0] == 0.0
    assert renyi_audit(*near, [2.0], cut={0}).epsilon[0] > 0.0
    assert appendix_b_bound(*near, [2.0]).claim == "estimate"


def test_worlds_with_equal_counts_prove_exactly_nothing():
    for cut in (None, {0}):
        bound = renyi_audit([400, 300, 300], [400, 300, 300], ORDERS, cut=cut)
        assert (bound.epsilon == 0.0).all()


def test_the_k_cut_of_appendix_b_takes_either_kind_of_interval(worlds):
    counts = (10**6 * worlds).astype(int)
    exact = renyi_divergence(*worlds, ORDERS)
    for kind in ("goodman", "sison-glaz"):
        bound = appendix_b_bound(*counts, ORDERS, intervals=kind)
        assert bound.claim == "estimate"
        assert (bound.epsilon <= exact).all()
        assert bound.epsilon[-1] > 0.5 * exact[-1]
    with pytest.raises(ValueError, match="intervals must be one of"):
        appendix_b_bound(*counts, ORDERS, intervals="wald")


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: renyi_divergence([0.5, 0.6], [0.5, 0.5], [2.0]), "p must sum to 1 within 1e-9"),
        (lambda: renyi_divergence([0.5, 0.5], [0.5, 0.4], [2.0]), "q must sum to 1 within 1e-9"),
        (lambda: renyi_divergence([1.5, -0.5], [0.5, 0.5], [2.0]), "p must hold numbers of at lea"),
        (lambda: renyi_divergence([1.0], [0.5, 0.5], [2.0]), "p and q must have the same outcomes"),
        (
            lambda: renyi_divergence(np.full((2, 2), 0.5), np.full((3, 2), 0.5), [2.0]),
            "p and q must fit together",
        ),
        (
            lambda: renyi_divergence([1.0, 0.0], [1.0, 0.0], [1.0]),
            "orders must lie above 0 and not",
        ),
        (lambda: renyi_divergence([1.0, 0.0], [1.0, 0.0], [-2.0]), "orders must lie above 0"),
        (lambda: renyi_divergence([1.0, 0.0], [1.0, 0.0], np.inf), "orders must hold finite"),
        (lambda: epsilon_from_renyi([2.0], [0.1, 0.2], 1e-5), "divergences must be one an order"),
        (lambda: epsilon_from_renyi([2.0], [-0.1], 1e-5), "divergences must hold numbers of at"),
        (lambda: epsilon_from_renyi([2.0], [np.nan], 1e-5), "divergences must hold numbers of at"),
        (lambda: epsilon_from_renyi([0.5], [0.1], 1e-5), "orders must hold one above 1"),
        (lambda: epsilon_from_renyi([], [], 1e-5), "orders must hold at least one order"),
        (lambda: epsilon_from_renyi([2.0], [0.1], 0.0), "delta must lie strictly between 0 and 1"),
        (lambda: renyi_audit([1, -1], [1, 1], [2.0]), "counts_p must hold whole numbers"),
        (lambda: renyi_audit([1, 1], [1.5, 1], [2.0]), "counts_q must hold whole numbers"),
        (lambda: renyi_audit([1, 1], [0, 0], [2.0]), "counts_q must hold at least one trial"),
        (lambda: renyi_audit([1], [1], [2.0]), "counts_p must have shape"),
        (lambda: renyi_audit([1, 1], [1, 1, 1], [2.0]), "arrays must have the same length"),
        (lambda: renyi_audit([1, 1], [1, 1], [1.0]), "orders must lie above 0 and not be 1"),
        (lambda: renyi_audit([1, 1], [1, 1], [2.0], method="3-cut"), "method must be one of"),
        (lambda: renyi_audit([1, 1], [1, 1], [2.0], confidence=1.0), "confidence must lie"),
        (lambda: renyi_audit([1, 1], [1, 1], [2.0], cut={2}), "cut must hold outcomes below 2"),
        (lambda: renyi_audit([1, 1], [1, 1], [2.0], cut={-1}), "cut must hold whole numbers"),
        (lambda: renyi_audit([1, 1], [1, 1], [2.0], cut={0, 1}), "cut must leave outcomes on both"),
        (lambda: renyi_audit([1, 1], [1, 1], [2.0], cut=[]), "cut must leave outcomes on both"),
        (
            lambda: renyi_audit([1, 1], [1, 1], [2.0], method="k-cut", cut={0}),
            "cut must be left out with method 'k-cut'",
        ),
        (lambda: appendix_b_bound([1, 1], [1, 1], [0.5]), "orders must lie above 1, got 0.5"),
        (lambda: appendix_b_bound([1, 1], [1, 1], [2.0], cut={5}), "cut must hold outcomes below"),
        (lambda: appendix_b_bound([1, 1], [1, 1], [2.0], confidence=0), "confidence must lie"),
        (lambda: appendix_b_bound([0, 0], [1, 1], [2.0]), "counts_p must hold at least one trial"),
        (lambda: appendix_b_bound([1, 1], [1, np.nan], [2.0]), "counts_q must hold finite"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_number_is_a_type_error():
    with pytest.raises(TypeError, match="p must be an array of numbers"):
        renyi_divergence(["a"], ["b"], [2.0])
    with pytest.raises(TypeError, match="divergences must be an array of numbers"):
        epsilon_from_renyi([2.0], ["a"], 1e-5)
