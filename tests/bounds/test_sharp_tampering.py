"""Sharp tampering keeps as many correct guesses as Lemma 1 allows, and not one more."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

from auditkit.bounds.sharp_tampering import KeepTable, sharp_keep
from auditkit.bounds.zero_run import zero_run

MUS = [0.1, 0.4, 1.0, 2.5]
SHIFTS = [0.05, 0.5, 1.0, 3.0]


def most_right(mass, shift, mu):
    """The largest chance of a correct guess together with an event of some chance, by search.

    Over x, the chance of the event and the guess "member" for others, and y, that of the event and
    the guess "other" for members, which together have to make up the mass.
    """
    member, x = expit(shift), ndtr(np.linspace(-9, 6, 1501))
    own = member * ndtr(ndtri(x) + mu)

    def total(y):
        return own + member * y + (1 - member) * (x + ndtr(ndtri(y) + mu)) - mass

    low, high = np.zeros_like(x), np.ones_like(x)
    for _ in range(60):
        y = 0.5 * (low + high)
        low, high = np.where(total(y) < 0, y, low), np.where(total(y) < 0, high, y)
    right = own + (1 - member) * ndtr(ndtri(y) + mu)
    return right[(total(0.0) <= 0) & (total(1.0) >= 0)].max()


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_no_event_gains_more_than_without_a_shift(mu, shift):
    """Against a search over all pairs of chances, for events of many sizes."""
    keep = float(sharp_keep(shift, mu))
    ratios = []
    for mass in (1e-4, 1e-2, 0.1, 0.3, 0.6, 0.9, 1.0):
        fair = brentq(lambda c, q=mass: ndtr(ndtri(q - c) + mu) - c, 0.0, mass, xtol=1e-16)
        ratios.append(fair / most_right(mass, shift, mu))
    assert keep <= min(ratios) + 1e-5  # the search is a grid
    assert min(ratios) < keep + 0.05


@pytest.mark.parametrize("mu", [0.3, 1.0])
@pytest.mark.parametrize("shift", [0.5, 2.0])
def test_lemma_1_holds_for_the_worst_mechanism_of_many_outputs(mu, shift):
    """The best event is a linear program over the outputs of the Gaussian mechanism, cut finely."""
    edges = np.concatenate(([-np.inf], np.linspace(-6, 6 + mu, 150), [np.inf]))
    other, member = np.diff(ndtr(edges)), np.diff(ndtr(edges - mu))
    prior, keep = expit(shift), float(sharp_keep(shift, mu))
    # for each output the chance to be in the event with a guess of "member", and of "other"
    right = np.concatenate((prior * member, (1 - prior) * other))
    both = prior * member + (1 - prior) * other
    for mass in (0.01, 0.2, 0.7, 1.0):
        solution = linprog(
            -right,
            A_ub=np.hstack((np.eye(both.size), np.eye(both.size))),
            b_ub=np.ones(both.size),
            A_eq=np.concatenate((both, both))[None],
            b_eq=[mass],
            method="highs",
        )
        fair = brentq(lambda c, q=mass: ndtr(ndtri(q - c) + mu) - c, 0.0, mass, xtol=1e-16)
        assert keep * -solution.fun <= fair + 1e-9


@pytest.mark.parametrize("examples", [2, 3])
def test_inequality_2_holds_for_every_set_of_counts(examples):
    """Exactly: few examples, each released in one of ten pieces of a Gaussian, every outcome."""
    rng, closest = np.random.default_rng(examples), 0.0
    for _ in range(6):
        number, mu = int(rng.integers(1, examples + 1)), rng.uniform(0.1, 3.0)
        odds = rng.exponential(1.5, examples) * rng.choice([-1, 1], examples)
        prior, keep = expit(odds), sharp_keep(np.abs(odds), mu)
        edges = np.concatenate(([-np.inf], np.linspace(-2.5, 2.5 + mu, 9), [np.inf]))
        other, member = np.diff(ndtr(edges)), np.diff(ndtr(edges - mu))
        outcomes = np.array(list(product(range(10), repeat=examples)))
        own, rest = prior * member[outcomes], (1 - prior) * other[outcomes]
        right = keep * np.maximum(own, rest) / (own + rest)
        made = np.argsort(-right, axis=1)[:, :number]
        law = np.zeros(number + 1)
        for weight, chances in zip(
            (own + rest).prod(axis=1), np.take_along_axis(right, made, axis=1), strict=True
        ):
            counts = np.ones(1)
            for chance in chances:
                counts = np.convolve(counts, [1 - chance, chance])
            law += weight * counts
        for size in range(1, number + 1):
            for chosen in combinations(range(1, number + 1), size):
                left = sum(k * law[k] for k in chosen) / examples
                before = sum((number - k + 1) * law[k - 1] for k in chosen) / examples
                most = ndtr(ndtri(before) + mu)
                assert left <= most + 1e-12
                closest = max(closest, left / most)
    assert closest > 0.9  # the inequality is nearly met: the test could fail


def test_the_chance_falls_with_the_shift_and_grows_with_mu():
    table = np.array([sharp_keep(np.linspace(0, 8, 60), mu) for mu in np.linspace(0, 6, 50)])
    assert (np.diff(table, axis=1) <= 1e-9).all()
    assert (np.diff(table, axis=0) >= -1e-9).all()


def test_at_mu_0_it_is_that_of_the_rejection_test_and_above_it_more_than_the_papers():
    shifts = np.linspace(0.0, 5.0, 30)
    np.testing.assert_allclose(sharp_keep(shifts, 0.0), 0.5 * (1.0 + np.exp(-shifts)))
    for mu in MUS:
        assert (sharp_keep(shifts, mu)[1:] > np.exp(-shifts[1:])).all()
        assert (sharp_keep(shifts, mu)[1:] >= 0.5 * (1.0 + np.exp(-shifts[1:]))).all()


def test_the_table_is_never_above_the_chance_and_close_to_it():
    shifts = np.random.default_rng(0).exponential(1.5, 400)
    table = KeepTable(shifts)
    for mu in (0.0, 0.13, 0.777, 2.001):
        gap = sharp_keep(shifts, mu) - table.at(mu)
        assert gap.min() >= -1e-12
        assert gap.max() < 0.01


@pytest.mark.parametrize(
    ("mu", "number"),
    [
        (0.0, 1000),
        pytest.param(0.4, 500, marks=pytest.mark.slow),
        (1.0, 50),
        pytest.param(1.0, 2000, marks=pytest.mark.slow),
    ],
)
def test_the_bound_keeps_its_level_against_the_hardest_channel(mu, number):
    """Each membership is released with noise of its own, and the attack knows the log-odds."""
    rng, runs, above = np.random.default_rng(7), 40, 0
    for _ in range(runs):
        odds = 1.5 * rng.normal(size=2000)
        members = rng.random(2000) < expit(odds)
        evidence = odds + mu * rng.normal(0.5 * mu * np.where(members, 1, -1))
        worth = sharp_keep(np.abs(odds), mu) * expit(np.abs(evidence))
        guesses = np.where(worth >= np.sort(worth)[-number], np.sign(evidence), 0)
        bound = zero_run(guesses, members, expit(odds), correction="sharp", rng=rng)
        above += bound.details["mu"] > mu
    assert above <= binom.isf(1e-6, runs, 0.05)


def test_it_proves_more_than_the_papers_correction():
    rng = np.random.default_rng(0)
    odds = rng.normal(size=5000)
    members = rng.random(5000) < expit(odds)
    evidence = odds + 3.0 * rng.normal(np.where(members, 1, -1))
    guesses = np.where(np.abs(evidence) >= np.sort(np.abs(evidence))[-500], np.sign(evidence), 0)
    bounds = {
        name: zero_run(guesses, members, expit(odds), correction=name, rng=0)
        for name in ("sharp", "conditional", "none")
    }
    assert bounds["sharp"].claim == "lower bound"
    assert bounds["conditional"].epsilon + 1.0 < bounds["sharp"].epsilon
    assert bounds["sharp"].epsilon <= bounds["none"].epsilon


def test_without_a_shift_nothing_is_dropped():
    rng = np.random.default_rng(0)
    members = rng.random(500) < 0.5
    guesses = np.where(rng.random(500) < 0.8, 1, -1) * np.where(members, 1, -1)
    fair = np.full(500, 0.5)
    sharp = zero_run(guesses, members, fair, correction="sharp", rng=0)
    assert sharp.epsilon == zero_run(guesses, members, fair, correction="none", rng=0).epsilon
    assert sharp.details["kept"] == sharp.details["correct"]


def test_for_pure_epsilon_the_same_ratio_is_that_of_theorem_5():
    """h(q) = q σ(ε), and no pair of chances is right more often than that, once thinned."""
    x, y = np.random.default_rng(0).random((2, 20_000)) ** 4
    for epsilon, shift in [(0.5, 1.0), (2.0, 0.3)]:
        printed = (1 + np.exp(-epsilon - shift)) / (1 + np.exp(-epsilon))
        member = expit(shift)
        own, rest = (
            np.minimum(np.exp(epsilon) * part, 1 - np.exp(-epsilon) * (1 - part)) for part in (x, y)
        )
        right = member * own + (1 - member) * rest
        mass = right + (1 - member) * x + member * y
        assert (printed * right <= expit(epsilon) * mass + 1e-12).all()
        assert (printed * right / mass).max() > 0.99 * expit(epsilon)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"^shifts must hold numbers of at least 0"):
        sharp_keep([-1.0], 1.0)
    with pytest.raises(ValueError, match=r"^mu must"):
        sharp_keep([1.0], -0.1)
    with pytest.raises(ValueError, match=r"^family must be 'gaussian' with correction='sharp'"):
        zero_run([1], [True], [0.5], correction="sharp", family="approx", rng=0)
