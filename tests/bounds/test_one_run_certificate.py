"""A certificate proves the largest bound there is, and anybody can check it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import brentq, linprog

from auditkit.bounds.one_run import one_run
from auditkit.bounds.one_run_certificate import check_fdp, worst_law
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.tradeoff import ApproxDP, GaussianDP, PureDP

CURVES = {"gaussian": GaussianDP, "pure": PureDP}


def certified(*counts, **options):
    return one_run_fdp(*counts, method="certificate", **options)


def random_games(number, most, seed):
    """Counts of which more than half are right, and levels."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        r = int(rng.integers(1, most + 1))
        m = int(r * 10 ** rng.uniform(0, 3))
        yield int(rng.integers(r // 2 + 1, r + 1)), r, m, 10 ** rng.uniform(-4, -0.3)


def sides(w, m):
    """The chances of what is seen when a coin is guessed right as one of k, and with it turned."""
    k = np.arange(1, w.size)
    return k * w[1:] / m, (w.size - k) * w[:-1] / m


@pytest.mark.parametrize(
    ("counts", "epsilon"),
    [((80, 100, 1000), 1.45239), ((800, 1000, 10_000), 1.76961), ((950, 1000, 100_000), 3.18861)],
)
def test_the_bound_is_exact_and_above_the_recursion(counts, epsilon):
    bound = certified(*counts)
    assert bound.epsilon == pytest.approx(epsilon, abs=1e-5)
    assert bound.epsilon > one_run_fdp(*counts).epsilon + 0.04
    assert bound.epsilon <= bound.details["best_possible"] <= bound.epsilon * (1 + 1e-6)
    assert bound.details["exact"] is True
    assert bound.details["proved_by"] == "certificate"
    assert check_fdp(bound) is True


@pytest.mark.parametrize("family", CURVES)
def test_every_certificate_can_be_checked_and_none_passes_the_best(family):
    exact = 0
    for c, r, m, level in random_games(150, 60, seed=1):
        delta = 0.0 if family == "pure" else 1e-6
        options = {"family": family, "delta": delta, "confidence": 1 - level}
        bound = certified(c, r, m, **options)
        assert bound.epsilon >= one_run_fdp(c, r, m, **options).epsilon * (1 - 2e-7)
        assert bound.epsilon <= bound.details["best_possible"] < bound.epsilon * 1.001 + 1e-12
        assert check_fdp(bound)
        exact += bound.details["exact"]
    assert exact >= 145


@pytest.mark.parametrize("r", [1, 2, 10, 300])
def test_where_all_guesses_are_right_the_recursion_is_exact(r):
    for m in (r, 30 * r):
        found = certified(r, r, m, confidence=0.8)
        assert found.epsilon == pytest.approx(
            one_run_fdp(r, r, m, confidence=0.8).epsilon, rel=1e-8
        )
        assert found.details["exact"]


def test_pure_privacy_has_a_closed_form():
    c = np.arange(0, 41, 4)
    found = certified(c, 40, 100, family="pure", delta=0.0)
    np.testing.assert_allclose(found.epsilon, one_run(c, 40, 100, delta=0.0).epsilon, rtol=1e-8)
    assert found.details["exact"].all()


def most_by_linear_program(curve, v, r, m, slopes):
    """The largest tail of a law that keeps below the tangents of some slopes.

    Variables: w_0, …, w_r, and the positive part of each side's excess over each slope.
    """
    k, g = np.arange(1, r + 1), slopes.size
    rows, blocks = [], 2 * r * g
    for sign in (0, 1):
        gain = sparse.csr_array((k / m, (k - 1, k)), shape=(r, r + 1))
        loss = sparse.csr_array(((r - k + 1) / m, (k - 1, k - 1)), shape=(r, r + 1))
        one, other = (gain, loss) if sign == 0 else (loss, gain)
        rows.append(sparse.vstack([one - gamma * other for gamma in slopes]))
    excess = sparse.hstack([sparse.vstack(rows), -sparse.eye_array(blocks)])
    each = sparse.kron(sparse.eye_array(g), np.ones((1, r)))
    total = sparse.hstack([sparse.csr_array((g, r + 1)), each, each])
    limits = np.append(np.zeros(blocks), curve.delta(np.log(slopes)))
    found = linprog(
        np.append(-(np.arange(r + 1) >= v).astype(float), np.zeros(blocks)),
        A_ub=sparse.vstack([excess, total]).tocsr(),
        b_ub=limits,
        A_eq=np.append(np.ones(r + 1), np.zeros(blocks))[None],
        b_eq=[1.0],
        method="highs",
    )
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize(
    ("v", "r", "m"), [(5, 5, 5), (5, 6, 10), (6, 8, 9), (9, 10, 40), (10, 12, 12), (8, 12, 200)]
)
def test_the_linear_program_of_all_laws_agrees(v, r, m):
    bound = certified(v, r, m, confidence=0.8)
    proof = bound.details["certificate"]
    slopes = np.unique(np.append(proof.slopes, np.geomspace(1.0, 3 * proof.slopes.max(), 60)))
    most = most_by_linear_program(proof.curve, v, r, m, slopes)
    attained = worst_law(proof.parameter, v, r, m)[v:].sum()
    assert attained - 1e-7 <= most <= proof.tail(v, m) + 1e-7
    assert most == pytest.approx(attained, abs=2e-7)


@pytest.mark.parametrize("family", CURVES)
def test_the_worst_mechanism_keeps_to_its_curve(family):
    epsilons = np.linspace(0.0, 12.0, 300)
    for v, r, m, _ in random_games(60, 80, seed=2):
        for parameter in (0.05, 0.8, 2.5):
            w = worst_law(parameter, v, r, m, family=family)
            assert w.min() >= 0.0
            assert w.sum() == pytest.approx(1.0, abs=1e-12)
            gain, loss = sides(w, m)
            ratio = np.exp(epsilons)[:, None]
            leak = np.maximum(gain - ratio * loss, 0) + np.maximum(loss - ratio * gain, 0)
            allowed = CURVES[family](parameter).delta(epsilons)
            assert (leak.sum(axis=1) <= allowed + 1e-12).all()


@pytest.mark.parametrize("counts", [(18, 20, 40), (80, 100, 1000)])
def test_under_the_worst_mechanism_the_bound_fails_as_often_as_it_may(counts):
    v, r, m = counts
    mu = certified(*counts).details["mu"] * (1 - 1e-6)
    w = worst_law(mu, v, r, m)
    too_high = certified(np.arange(r + 1), r, m).details["mu"] > mu
    assert (w / w.sum())[too_high].sum() == pytest.approx(0.05, abs=1e-5)
    rng, runs = np.random.default_rng(3), 20_000
    coins = rng.integers(0, 2, (runs, m)) * 2 - 1
    right = np.arange(r) < rng.choice(r + 1, runs, p=w / w.sum())[:, None]
    guessed = rng.permuted(np.broadcast_to(np.arange(m), (runs, m)), axis=1)[:, :r]
    guesses = np.zeros((runs, m), dtype=np.int64)
    truth = np.take_along_axis(coins, guessed, axis=1)
    np.put_along_axis(guesses, guessed, np.where(right, truth, -truth), axis=1)
    fails = too_high[(guesses == coins).sum(axis=1)].sum()
    assert stats.binomtest(fails, runs, 0.05).pvalue > 1e-3


@pytest.mark.parametrize(("counts", "level"), [((80, 100, 1000), 0.05), ((27, 30, 31), 0.21274)])
def test_just_above_the_best_possible_a_mechanism_breaks_every_bound(counts, level):
    best = certified(*counts, confidence=1 - level).details["best_possible"]
    mu = brentq(lambda mu: GaussianDP(mu).epsilon(1e-5) - best, 1e-3, 5.0, xtol=1e-14)
    v = counts[0]
    assert worst_law(mu * (1 + 1e-9), *counts)[v:].sum() > level
    assert worst_law(mu * (1 - 1e-4), *counts)[v:].sum() < level


def test_not_every_optimum_is_an_order():
    bound = certified(27, 30, 31, confidence=1 - 0.21274)
    assert bound.details["exact"] is False
    assert bound.epsilon < bound.details["best_possible"] < bound.epsilon * (1 + 3e-5)
    assert "certificate" in bound.method


@pytest.mark.parametrize(
    "change",
    [
        {"parameter": 0.4},
        {"parameter": 0.3},
        {"values": 1.001},
        {"values": 0.999},
        {"slopes": 1.001},
        {"slopes": 0.0},
        {"knots": 0.999},
    ],
)
def test_a_certificate_that_was_changed_is_found_out(change):
    bound = certified(80, 100, 1000)
    proof = bound.details["certificate"]
    changed = {
        name: value if name == "parameter" else value * getattr(proof, name)
        for name, value in change.items()
    }
    forged = {"certificate": replace(proof, **changed)}
    assert not check_fdp(replace(bound, details={**bound.details, **forged}))


def test_no_value_of_a_certificate_lies_where_its_function_is_not_defined():
    bound = certified(80, 100, 1000)
    proof = bound.details["certificate"]
    values = np.where(np.arange(101) == 80, 1.001, 1.0) * proof.values
    assert replace(proof, values=values).tail(80, 1000) == 1.0


@pytest.mark.parametrize("details", [{"correct": 79}, {"examples": 1010}, {"level": 0.0499}])
def test_a_certificate_is_for_its_own_counts(details):
    bound = certified(80, 100, 1000)
    assert not check_fdp(replace(bound, details={**bound.details, **details}))
    assert not check_fdp(replace(bound, epsilon=bound.epsilon + 1e-6))


def test_arrays_give_what_their_elements_give():
    c = np.array([[10, 15], [18, 20]])
    bound = certified(c, 20, [30, 300])
    assert bound.epsilon.shape == (2, 2)
    assert check_fdp(bound).tolist() == [[True, True], [True, True]]
    for index in np.ndindex(2, 2):
        single = certified(c[index], 20, (30, 300)[index[1]])
        assert bound.epsilon[index] == single.epsilon
        assert bound.details["best_possible"][index] == single.details["best_possible"]
    assert bound.details["certificate"][0] is None  # ten of twenty prove nothing
    assert "values" not in bound._repr_html_()


def test_no_guess_and_no_right_guess_prove_nothing():
    bound = certified([0, 0, 5], [0, 10, 10], 10)
    assert bound.epsilon.tolist() == [0.0, 0.0, 0.0]
    assert bound.details["exact"].all()
    assert check_fdp(bound).all()


@pytest.mark.parametrize("level", [1e-6, 1e-3, 0.6, 0.95])
def test_any_level_can_be_certified(level):
    c = np.array([12, 25, 29, 30])
    bound = certified(c, 30, 90, confidence=1 - level)
    assert check_fdp(bound).all()
    assert (bound.epsilon <= bound.details["best_possible"]).all()
    assert (bound.details["best_possible"] <= bound.epsilon * 1.001 + 1e-9).all()


def test_what_has_no_certificate_is_refused_by_name():
    with pytest.raises(ValueError, match=r"guesses must be at most 2000 .* got 2001"):
        certified(2000, 2001, 3000)
    with pytest.raises(ValueError, match=r"family must be 'gaussian' or 'pure' .* got <function"):
        certified(8, 10, 20, family=lambda p: ApproxDP(p, 0.01))
    with pytest.raises(ValueError, match=r"tau must be 0 .* got 0.1"):
        certified(8, 10, 20, tau=0.1)
    with pytest.raises(ValueError, match=r"method must be one of .* got 'exact'"):
        one_run_fdp(8, 10, 20, method="exact")
    with pytest.raises(ValueError, match=r"bound must come from .* got 'one run, f-DP recursion"):
        check_fdp(one_run_fdp(8, 10, 20))
    with pytest.raises(ValueError, match="guesses must be a whole number of at least 9, got 8"):
        worst_law(1.0, 9, 8, 20)
    with pytest.raises(ValueError, match="parameter must be above 0"):
        worst_law(0.0, 8, 9, 20)


@pytest.mark.slow
def test_the_bracket_is_narrow_up_to_the_most_guesses():
    rng = np.random.default_rng(4)
    for r in (300, 1000, 2000):
        for _ in range(8):
            m, c = int(r * 10 ** rng.uniform(0, 2)), int(r * rng.uniform(0.55, 1))
            bound = certified(c, r, m)
            assert check_fdp(bound)
            assert bound.details["best_possible"] <= bound.epsilon * (1 + 1e-4)
