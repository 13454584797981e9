"""The exact one-run bound: no mechanism beats it, one attains it, and its proof can be checked."""

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import block_array, coo_array, eye_array
from scipy.stats import binom

from auditkit.bounds.one_run import FIXED_NUMBER, check_certificate, one_run, worst_chance
from auditkit.bounds.one_run_certificate import worst_law
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.tradeoff import GaussianDP
from auditkit.mechanisms.worst_count import WorstMechanism, worst_mechanism

# right, guesses, examples, δ, ε at 95%: by a linear program
KNOWN = [
    (98, 100, 10_000, 1e-4, 2.6579),
    (20, 20, 1_000, 1e-4, 1.7872),
    (50, 50, 10_000, 1e-5, 2.7715),
    (30, 30, 100_000, 1e-5, 1.9315),
    (800, 1_000, 10_000, 1e-5, 1.2537),
    (80, 100, 100_000, 1e-5, 0.8767),
    (100_000, 100_000, 100_000, 1e-5, 10.4157),
]


def best_law(v, r, weight, g):
    """The largest P(N ≥ v) over all laws of N that are private, by linear programming."""
    k = np.arange(1, r + 1)
    kept = coo_array((k, (k - 1, k)), shape=(r, r + 1))
    lost = coo_array((r - k + 1.0, (k - 1, k - 1)), shape=(r, r + 1))
    slack, none = -eye_array(r), coo_array((r, r))
    rows = block_array([[kept - g * lost, slack, none], [lost - g * kept, none, slack]])
    total = np.concatenate([np.zeros(r + 1), np.ones(2 * r)])
    found = linprog(
        np.concatenate([-(np.arange(r + 1) >= v).astype(float), np.zeros(2 * r)]),
        block_array([[rows], [coo_array(total[None])]]).tocsr(),
        np.append(np.zeros(2 * r), weight),
        (1.0 - np.minimum(total, 1.0))[None],
        [1.0],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    return -found.fun


def exact_chance(v, r, weight, epsilon):
    """P* in 50 digits."""
    g = mpmath.e ** mpmath.mpf(epsilon)
    masses = [mpmath.binomial(r, k) * g**k / (1 + g) ** r for k in range(v, r + 1)]
    beta = mpmath.fsum(masses)
    return beta + (1 - beta) * min(1, weight * beta / masses[0] / v)


@pytest.mark.parametrize(("v", "r", "m", "delta", "epsilon"), KNOWN)
def test_known_bounds_are_met(v, r, m, delta, epsilon):
    bound = one_run(v, r, m, delta=delta)
    assert bound.epsilon == pytest.approx(epsilon, abs=1e-4)
    assert check_certificate(bound)


def test_a_thousand_linear_programs_agree():
    rng = np.random.default_rng(0)
    for _ in range(1_000):
        r = int(rng.integers(1, 25))
        v, epsilon = int(rng.integers(1, r + 1)), float(rng.uniform(0.0, 3.0))
        weight = float(10 ** rng.uniform(-6, 1.5))
        found = worst_chance(v, r, weight, epsilon, 1.0)[0]
        assert found == pytest.approx(best_law(v, r, weight, math.exp(epsilon)), abs=2e-7)


def test_fifty_digits_agree():
    rng = np.random.default_rng(1)
    with mpmath.workdps(50):
        for _ in range(60):
            r = int(10 ** rng.uniform(0, 3.3))
            v = max(1, int(r * rng.uniform(0.5, 1.0)))
            weight, epsilon = float(10 ** rng.uniform(-9, 1)), float(rng.exponential())
            exact = exact_chance(v, r, weight, epsilon)
            assert abs(worst_chance(v, r, weight, epsilon, 1.0)[0] / exact - 1) < 1e-12


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 1 - 1e-9])
def test_the_bound_is_the_last_rejected_epsilon(confidence):
    rng = np.random.default_rng(2)
    for _ in range(50):
        r = int(rng.integers(1, 400))
        v, m = int(rng.integers(0, r + 1)), int(rng.integers(r, 10_000))
        delta = float(10 ** rng.uniform(-9, -1))
        epsilon = one_run(v, r, m, delta=delta, confidence=confidence).epsilon
        above = worst_chance(v, r, m * delta, epsilon + 1e-9, 1.0)[0]
        assert above > 1.0 - confidence
        if epsilon > 0.0:
            assert worst_chance(v, r, m * delta, epsilon, 1.0)[0] <= 1.0 - confidence


def test_the_slope_is_that_of_the_chance():
    for v, r, weight, epsilon, others in [(80, 100, 0.01, 1.0, 1.0), (7, 9, 0.5, 0.3, 3.0)]:
        _, slope, _, _ = worst_chance(v, r, weight, epsilon, others)
        near = [worst_chance(v, r, weight, epsilon + step, others)[0] for step in (-1e-6, 1e-6)]
        assert slope == pytest.approx((near[1] - near[0]) / 2e-6, rel=1e-6)


@given(
    st.integers(1, 60).flatmap(lambda r: st.tuples(st.integers(0, r), st.just(r))),
    st.integers(1, 5),
    st.sampled_from([0.0, 1e-8, 1e-4, 1e-2]),
)
@settings(max_examples=100, deadline=None)
def test_the_papers_term_proves_less_and_fewer_guesses_of_more_coins_too(counts, times, delta):
    v, r = counts
    exact = one_run(v, r, times * r, delta=delta).epsilon
    assert one_run(v, r, times * r, delta=delta, method="steinke").epsilon <= exact + 1e-9
    assert one_run(v, r, (times + 1) * r, delta=delta).epsilon <= exact
    depends = one_run(v, r, times * r, delta=delta, guesses_fixed=False)
    assert depends.epsilon <= exact
    assert check_certificate(depends)


# the worst mechanism


@pytest.mark.parametrize(("v", "r", "m", "delta"), [known[:4] for known in KNOWN[:6]])
def test_the_worst_mechanism_keeps_its_promise_and_meets_the_level(v, r, m, delta):
    bound = one_run(v, r, m, delta=delta)
    worst = worst_mechanism(v, r, m, epsilon=bound.epsilon, delta=delta)
    assert worst.delta(bound.epsilon) == pytest.approx(delta, rel=1e-6)
    assert worst.w[v:].sum() == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize(("v", "r", "m", "delta"), [(40, 50, 1_000, 1e-4), (95, 100, 10_000, 1e-5)])
def test_false_alarms_under_the_worst_mechanism_are_as_frequent_as_the_level(v, r, m, delta):
    runs, promised = 100_000, one_run(v, r, m, delta=delta).epsilon * (1.0 - 1e-9)
    worst = worst_mechanism(v, r, m, epsilon=promised, delta=delta)
    stated = one_run(np.arange(r + 1), r, m, delta=delta).epsilon
    alarms = (stated > promised)[worst.counts(runs, 3)].sum()
    assert binom.ppf(1e-6, runs, 0.05) <= alarms <= binom.ppf(1.0 - 1e-6, runs, 0.05)


def test_what_the_worst_mechanism_publishes_has_so_many_right():
    members = np.random.default_rng(0).random(200) < 0.5
    surely = WorstMechanism(np.eye(31)[21], 200)
    guesses = surely.release(members, 1)
    assert np.count_nonzero(guesses) == 30
    assert (guesses == np.where(members, 1, -1)).sum() == 21
    with pytest.raises(ValueError, match="members must hold 200 coins, got 20"):
        surely.release(members[:20], 1)


def test_the_worst_law_of_a_curve_is_a_mechanism_too():
    bound = one_run_fdp(80, 100, 1_000, method="certificate")
    worst = WorstMechanism(worst_law(bound.details["mu"], 80, 100, 1_000), 1_000)
    for epsilon in (0.5, 1.0, bound.epsilon):
        allowed = GaussianDP(bound.details["mu"]).delta(epsilon)
        assert worst.delta(epsilon) <= allowed + 1e-12
    assert check_certificate(bound)


# the certificate


def test_a_wrong_certificate_is_refused():
    bound = one_run(98, 100, 10_000, delta=1e-4)
    assert check_certificate(bound)
    for changed in (
        replace(bound, epsilon=bound.epsilon * 1.001),
        replace(bound, delta=2e-4),
        *(
            replace(bound, details={**bound.details, name: bound.details[name] * 0.999})
            for name in ("nu", "lambda", "level")
        ),
        replace(bound, details={**bound.details, "correct": 97}),
    ):
        assert not check_certificate(changed)
    with pytest.raises(ValueError, match="bound must carry a certificate, got one of 'one run, T"):
        check_certificate(one_run(98, 100, 10_000, method="steinke"))


@pytest.mark.parametrize("choices", [2, 3, 10])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
def test_every_bound_carries_its_proof(choices, delta):
    counts = np.arange(0, 301, 7)
    bound = one_run(counts, 300, 2_000, delta=delta, choices=choices)
    assert check_certificate(bound)
    assert (bound.epsilon > 0.0).any()


# more choices, and guesses that depend on the release


def test_no_mechanism_on_two_coins_of_three_values_beats_the_law():
    epsilon, delta = 0.7, 0.01
    worlds = list(itertools.product(range(3), repeat=2))
    pairs = [
        (a, b)
        for a, b in itertools.permutations(range(9), 2)
        if sum(x != y for x, y in zip(worlds[a], worlds[b], strict=True)) == 1
    ]
    right = np.array([[sum(map(int.__eq__, w, o)) for o in worlds] for w in worlds])
    keys = np.arange(81).reshape(9, 9)
    rows = np.zeros((len(pairs) * 10, 81 + len(pairs) * 9))
    limits = np.zeros(len(rows))
    for place, (a, b) in enumerate(pairs):
        for o in range(9):
            slack = 81 + place * 9 + o
            row = rows[place * 10 + o]
            row[keys[a, o]], row[keys[b, o]], row[slack] = 1.0, -math.exp(epsilon), -1.0
            rows[place * 10 + 9, slack] = 1.0
        limits[place * 10 + 9] = delta
    sums = np.hstack([np.kron(np.eye(9), np.ones(9)), np.zeros((9, rows.shape[1] - 81))])
    for v in (1, 2):
        gain = np.append((right >= v).ravel() / 9, np.zeros(rows.shape[1] - 81))
        best = -linprog(-gain, rows, limits, sums, np.ones(9)).fun
        assert worst_chance(v, 2, 2 * delta, epsilon, 2.0)[0] == pytest.approx(best, abs=1e-9)


def test_more_choices_prove_more_and_chance_proves_nothing():
    three, four = (one_run(50, 100, 500, choices=choices).epsilon for choices in (3, 4))
    assert four > three > 0.0
    assert one_run(33, 100, 500, choices=3).epsilon == 0.0
    bound = one_run(40, 100, 500, choices=3)
    assert bound.adjacency == "substitute"
    assert "one of 3 values" in bound.assumptions[0]


def test_a_number_of_guesses_that_follows_the_release_may_not_be_called_fixed():
    # 15 coins are published with chance .2 / 15, else nothing: (0, 2e-5)-DP
    m, delta, runs = 10_000, 2e-5, 200_000
    rng = np.random.default_rng(0)
    published = rng.random(runs) < 0.2 / 15
    all_right = rng.binomial(m, 0.5, runs)
    right, number = np.where(published, 15, all_right), np.where(published, 15, m)
    fixed = one_run(right, number, m, delta=delta).epsilon > 0.0
    depends = one_run(right, number, m, delta=delta, guesses_fixed=False)
    allowed = binom.ppf(1.0 - 1e-6, runs, 0.05) / runs
    assert fixed.mean() > allowed >= (depends.epsilon > 0.0).mean()
    assert FIXED_NUMBER not in depends.assumptions
    assert one_run(80, 100, m, delta=0.0, guesses_fixed=False).epsilon == pytest.approx(
        one_run(80, 100, m, delta=0.0).epsilon
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "method must be one of"),
        ({"choices": 1}, "choices must be"),
        ({"guesses_fixed": 1}, "guesses_fixed must be"),
        ({"method": "steinke", "choices": 3}, "takes choices=2 and guesses_fixed=True, got choi"),
        ({"method": "steinke", "guesses_fixed": False}, "takes choices=2 and guesses_fixed=True"),
    ],
)
def test_impossible_options_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        one_run(5, 10, 20, **options)
