"""Under a promise that holds, a p-value of at most α comes about with chance α at most."""

import numpy as np
import pytest
from scipy import stats

from auditkit import (
    ApproxDP,
    Bonferroni,
    CustomTradeOff,
    Fixed,
    GaussianDP,
    MultiSplit,
    PureDP,
    Split,
    Sweep,
    one_run,
    one_run_fdp,
    two_worlds,
)
from auditkit.bounds import promise
from auditkit.bounds.promise import p_value, p_value_from_scores, refuted_curve
from auditkit.evidence import ErrorCounts, GuessCounts

CURVES = [PureDP(0.0), PureDP(2.0), ApproxDP(1.0, 0.01), ApproxDP(0.0, 0.4), GaussianDP(1.0)]
RULES = [Fixed(guesses=0.5), Bonferroni(5), Split(0.5), MultiSplit(3), Bonferroni((Fixed(0.3),))]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def on_the_curve(curve, counts, chosen):
    """Return the largest chance of the chosen counts over a fine grid of the curve."""
    fpr = np.unique(np.concatenate((np.linspace(0, 1, 2001), np.geomspace(1e-8, 1, 500))))
    fnr = np.asarray(curve.beta(fpr))
    laws = (
        stats.binom.pmf(np.arange(number + 1), number, rate[:, None])
        for number, rate in zip(counts, (fpr, fnr), strict=True)
    )
    return float(np.einsum("gx,xy,gy->g", next(laws), chosen.astype(float), next(laws)).max())


@pytest.mark.parametrize("curve", CURVES, ids=repr)
@pytest.mark.parametrize("counts", [(9, 14), (16, 16)])
def test_in_two_worlds_no_rates_that_the_curve_allows_give_small_p_values_too_often(curve, counts):
    x, y = np.meshgrid(*(np.arange(number + 1) for number in counts), indexing="ij")
    p = p_value(ErrorCounts(x, counts[0], y, counts[1]), curve)
    levels = np.unique(p[(p < 0.9) & (p > 1e-12)])[::3]
    often = np.array([on_the_curve(curve, counts, p <= level * (1 + 1e-9)) for level in levels])
    assert (often <= levels * (1 + 1e-9)).all()
    assert np.median(often / levels) > 0.97
    assert (np.diff(p, axis=0) >= -0.011 * p[1:]).all()  # more errors say less, within 1%
    assert (np.diff(p, axis=1) >= -0.011 * p[:, 1:]).all()


@pytest.mark.parametrize("counts", [(3, 50, 0, 40), (10, 1000, 20, 1000), (0, 9, 0, 9)])
@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_what_clopper_and_pearson_refute_has_a_p_value_below_their_level(counts, confidence):
    epsilon = two_worlds(*counts, confidence=confidence).epsilon
    assert p_value(ErrorCounts(*counts), ApproxDP(0.999 * epsilon, 1e-5)) <= 1.0 - confidence


def test_a_coarser_edge_of_what_is_as_extreme_only_makes_the_p_value_larger(monkeypatch):
    counts = ErrorCounts([110, 150], 1000, 100, 1000)
    fine = p_value(counts, PureDP(1.9))
    monkeypatch.setattr(promise, "STEPS", 60)
    coarse = p_value(counts, PureDP(1.9))
    assert (coarse >= 0.99 * fine).all()
    assert (coarse <= 5.0 * fine).all()


@pytest.mark.parametrize("counts", [(60, 80, 200), (80, 80, 80), (800, 1000, 1000)])
def test_the_p_value_of_what_a_bound_just_refutes_is_its_level(counts):
    pure = one_run(*counts, delta=0.0, confidence=0.9)
    assert p_value(GuessCounts(*counts), refuted_curve(pure)) == pytest.approx(0.1, rel=1e-6)
    gaussian = one_run_fdp(*counts, confidence=0.9)
    assert p_value(GuessCounts(*counts), refuted_curve(gaussian)) == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize(
    ("counts", "delta", "epsilon"),
    [((98, 100, 10_000), 1e-4, 2.6579), ((30, 30, 100_000), 1e-5, 1.9315)],
)
def test_one_run_is_exact_at_any_delta(counts, delta, epsilon):
    bound = one_run(*counts, delta=delta, confidence=0.9)
    assert p_value(GuessCounts(*counts), refuted_curve(bound)) == pytest.approx(0.1, rel=1e-9)
    # ε at the level of .05, by linear programming over all mechanisms
    assert p_value(GuessCounts(*counts), ApproxDP(epsilon, delta)) == pytest.approx(0.05, rel=1e-3)


def test_a_mechanism_that_is_as_bad_as_promised_has_uniform_p_values(rng):
    right = rng.binomial(200, 1.0 / (1.0 + np.exp(-1.0)), size=20_000)
    p = p_value(GuessCounts(right, 200, 200), PureDP(1.0))
    for level in (0.01, 0.1, 0.5):
        assert 0.8 * level < np.mean(p <= level) <= level + 4 * np.sqrt(level / 20_000)


def test_a_curve_by_any_name_has_the_same_p_value():
    gaussian = GaussianDP(0.7)
    same = CustomTradeOff(gaussian.beta, gaussian.inverse)
    for counts in (GuessCounts(40, 50, 60), ErrorCounts(3, 30, 5, 40)):
        assert p_value(counts, same) == pytest.approx(p_value(counts, gaussian), rel=1e-3)


@pytest.mark.parametrize("curve", [PureDP(0.5), GaussianDP(0.5)])
@pytest.mark.parametrize(
    "counts", [GuessCounts([0, 3, 9], [0, 5, 9], 10), ErrorCounts([0, 4, 9], [0, 9, 9], 3, 9)]
)
def test_arrays_give_arrays_and_nothing_found_gives_1(curve, counts):
    p = p_value(counts, curve)
    assert p.shape == (3,)
    assert p[0] == 1.0
    assert ((p >= 0.0) & (p <= 1.0)).all()


@pytest.mark.parametrize("method", ["one-run", "two-worlds"])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_scores_that_leak_nothing_seldom_have_a_small_p_value(method, rule, rng):
    if method == "two-worlds" and getattr(rule, "guesses", None):
        rule = Fixed(0.3)
    if method == "one-run" and isinstance(rule, Bonferroni) and isinstance(rule.candidates, tuple):
        rule = Bonferroni((Fixed(guesses=0.2), Fixed(guesses=0.9)))
    p = []
    for _ in range(40):
        members = rng.random(100) < 0.5
        scores = rng.normal(size=100)
        p.append(p_value_from_scores(scores, members, PureDP(0.0), method=method, threshold=rule))
    assert np.mean(np.array(p) <= 0.1) <= 0.25
    leak = scores + 3.0 * members
    assert p_value_from_scores(leak, members, PureDP(0.2), method=method, threshold=rule) < 0.01


def test_several_rules_pay_for_their_number(rng):
    members = rng.random(300) < 0.5
    scores = rng.normal(0.4 * members)

    def p(rule):
        return p_value_from_scores(scores, members, PureDP(0.1), method="one-run", threshold=rule)

    rules = tuple(Fixed(guesses=share) for share in (0.9, 0.5, 0.3))
    assert p(Bonferroni(rules)) == pytest.approx(min(1.0, 3 * min(map(p, rules))))
    halves = MultiSplit(3)
    assert p(halves) == pytest.approx(
        min(1.0, 2 * np.median([p(split) for split in halves.each()]))
    )
    shares = np.unique([Fixed(guesses=share).number(300) for share in np.geomspace(1.0, 0.01, 4)])
    each = [p(Fixed(guesses=int(number))) for number in shares]
    assert p(Bonferroni(4)) == pytest.approx(min(1.0, 4 * min(each)))


def test_a_sweep_has_no_p_value(rng):
    members = rng.random(100) < 0.5
    with pytest.raises(ValueError, match="an estimate gives no p-value"):
        p_value_from_scores(
            rng.normal(members), members, PureDP(0.0), method="one-run", threshold=Sweep()
        )


def test_what_it_does_not_take():
    with pytest.raises(TypeError, match="promise must be one TradeOff"):
        p_value(GuessCounts(1, 2, 3), 1.0)
    with pytest.raises(TypeError, match="counts must be GuessCounts or ErrorCounts"):
        p_value((1, 2, 3), PureDP(1.0))
    uniform = CustomTradeOff(lambda a: np.maximum(0, 1 - 2 * a), lambda b: (1 - b) / 2)
    with pytest.raises(ValueError, match="their own inverse"):
        p_value(GuessCounts(9, 10, 10), uniform)


def test_a_bound_says_which_promise_it_refutes():
    gaussian = one_run_fdp(800, 1000, 1000)
    assert refuted_curve(gaussian) == GaussianDP(gaussian.details["mu"])
    plain = two_worlds(10, 1000, 20, 1000)
    assert refuted_curve(plain) == ApproxDP(plain.epsilon, 1e-5)
    with pytest.raises(ValueError, match="one lower bound"):
        refuted_curve(one_run([3, 4], 5, 5))
