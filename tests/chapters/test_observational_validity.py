"""The shares of the chapter are the package's own, and its cases against Theorem 5 are exact."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from experiments import validity as study
from experiments.observational import validity
from scipy.optimize import linprog
from scipy.stats import binom

from auditkit import (
    Bonferroni,
    CustomTradeOff,
    Fixed,
    GaussianDP,
    MultiSplit,
    PureDP,
    Split,
    Sweep,
    observational_label,
    one_run_fdp,
)
from auditkit.bounds.one_run_fdp import _rejects
from auditkit.evidence import Scores

ONE, BOTH = validity.ONE, validity.BOTH


def rows_by_way(*cell, family, seed=0):
    rows = validity.overshooting(*cell, np.random.default_rng(seed))
    return {row["way"]: row for row in rows if row["family"] == family}


# shares of runs


@pytest.mark.parametrize("family", ["pure", "gaussian"])
@pytest.mark.parametrize("score", [validity.PAPER, validity.RATIO])
def test_every_way_to_guess_is_that_of_the_package(family, score, monkeypatch):
    def divided(scores, use):
        """Divide as the study does, whose games stand in no order; nothing ties."""
        seed = int(use.removeprefix("split ")) if use.startswith("split") else 0
        return np.random.default_rng(seed).permutation(len(scores))

    monkeypatch.setattr(Scores, "shuffled", divided)
    counts = validity.Counts(examples=700, runs=2)
    games = [
        validity.by_response(10, 4.0, score, 700, np.random.default_rng(run)) for run in range(2)
    ]
    for run, game in enumerate(games):
        counts.add(run, *game)
    found = validity.ways(counts, family)
    thresholds = {name: Fixed(guesses=share) for name, share in validity.FIXED.items()}
    thresholds |= {
        "sweep": Sweep(),
        "corrected sweep": Bonferroni(
            tuple(Fixed(guesses=share) for share in np.linspace(1.0, 0.01, 100).tolist())
        ),
        "split": Split(),
        "many splits": MultiSplit(),
    }
    assert found.keys() == thresholds.keys()
    for run, game in enumerate(games):
        for way, threshold in thresholds.items():
            bound = observational_label(
                *game,
                family=family,
                delta=0.0 if family == "pure" else validity.DELTA,
                threshold=threshold,
            )
            assert found[way][run] == pytest.approx(bound.epsilon, rel=1e-7, abs=1e-12), way


def test_where_nothing_leaks_a_sweep_breaks_the_level_and_what_is_promised_keeps_it():
    rows = rows_by_way(validity.NOISE, 1000, 0.0, validity.RATIO, 2000, 300, family="gaussian")
    assert not rows["sweep"]["promised"]
    assert rows["sweep"]["low"] > validity.LEVEL
    kept = [row for row in rows.values() if row["promised"]]
    assert len(kept) == 6
    assert all(row["low"] <= validity.LEVEL for row in kept)


def test_the_gaussian_family_says_too_much_of_randomised_response():
    rows = rows_by_way(validity.RESPONSE, 2, 4.0, validity.RATIO, 10_000, 50, family="gaussian")
    assert rows["fixed 10%"]["low"] > 0.5
    assert not rows["fixed 10%"]["promised"]


def test_a_cell_has_a_row_for_each_family_and_way_and_says_what_is_promised():
    rows = validity.overshooting(
        validity.RESPONSE, 2, 1.0, validity.PAPER, 1000, 3, np.random.default_rng(0)
    )
    assert len(rows) == 2 * 7
    assert {row["way"] for row in rows if row["promised"]} == {
        *validity.FIXED,
        "corrected sweep",
        "split",
        "many splits",
    }
    assert {row["family"] for row in rows if row["promised"]} == {"pure"}
    assert all(row["truth"] == 1.0 for row in rows)


def test_too_few_examples_are_refused():
    with pytest.raises(ValueError, match=r"^examples must be enough .* got 100"):
        validity.Counts(examples=100, runs=1)


@pytest.mark.parametrize("setting", ["null, labels off by 0.02", "null, labels off by 0.2"])
def test_tau_from_the_placebo_keeps_its_level_in_the_study(setting):
    name = "observational_label, τ from the placebo"
    row = study.coverage("labels", name, setting, 200, np.random.default_rng(0))
    assert row["claim"] == "estimate"
    assert row["low"] <= row["level"] == 0.05


# one direction


@pytest.mark.parametrize("examples", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, np.inf])
def test_randomised_response_keeps_the_printed_definition_and_no_more(examples, epsilon):
    honest = 1.0 / (1.0 + np.exp(-epsilon))
    lines = {name: curve(honest) for name, curve in validity.CURVES.items()}
    assert abs(validity.largest_excess(examples, honest, lines[ONE])) < 1e-12
    assert validity.largest_excess(examples, honest, lines[ONE], swapped=True) > 0.02
    for swapped in (False, True):
        assert abs(validity.largest_excess(examples, honest, lines[BOTH], swapped=swapped)) < 1e-12


@pytest.mark.parametrize("honest", [0.6, 0.8, 1.0])
def test_the_attacker_is_right_as_often_as_is_said(honest):
    """By every label, made-up label, coin and answer of two examples."""
    law = np.zeros(3)
    for worlds in product(product((0, 1), repeat=4), repeat=2):
        weight, right = 1.0, 0
        for label, made_up, coin, answer in worlds:
            weight *= 0.125 * (honest if answer == label else 1.0 - honest)
            shown = label if coin == 0 else made_up
            right += (0 if shown == answer else 1) == coin
        law[right] += weight
    epsilon = np.inf if honest == 1.0 else np.log(honest / (1.0 - honest))
    accuracy = validity.one_direction(2, epsilon, ONE)["accuracy"]
    np.testing.assert_allclose(law, binom.pmf([0, 1, 2], 2, accuracy), atol=1e-12)


def test_710_of_1000_are_called_rare_though_they_are_all_but_certain():
    published = validity.printed(1.0)
    assert validity.rejects(published, 710, 1000, 0.05)
    assert binom.sf(709, 1000, 0.75) > 0.998
    # the printed curve max(0, 1 - 2 x), and the algorithm of the package
    uniform = CustomTradeOff(lambda x: np.maximum(0.0, 1.0 - 2.0 * x), lambda y: (1.0 - y) / 2.0)
    assert _rejects(uniform, 710, 1000, 1000, 0.05, 0.0)


@pytest.mark.parametrize("name", validity.CURVES)
@pytest.mark.parametrize("honest", [0.6, 0.85, 0.99])
def test_algorithm_3_is_that_of_the_package(name, honest):
    lines = validity.CURVES[name](honest)

    def curve(x):
        return 1.0 - np.min([line + slope * np.asarray(x) for line, slope in lines], axis=0)

    def inverse(y):
        at = np.max([(1.0 - np.asarray(y) - line) / slope for line, slope in lines], axis=0)
        return np.clip(at, 0.0, 1.0)

    made = CustomTradeOff(curve, inverse)
    for examples, level in ((20, 0.05), (60, 0.2)):
        found = [validity.rejects(lines, c, examples, level) for c in range(examples + 1)]
        package = [_rejects(made, c, examples, examples, level, 0.0) for c in range(examples + 1)]
        assert found == package
        assert found == sorted(found)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, np.inf])
def test_one_direction_proves_too_much_and_both_do_not(epsilon):
    for examples in (10, 100, 1000, 10_000):
        one = validity.one_direction(examples, epsilon, ONE)
        both = validity.one_direction(examples, epsilon, BOTH)
        assert one["allowed"] < one["accuracy"] == pytest.approx(both["allowed"])
        assert both["chance"] is None or both["chance"] <= validity.LEVEL
        assert examples < 10_000 or one["chance"] > 0.99
        assert one["limit"] == both["limit"]
        assert binom.sf(one["limit"] - 1, examples, one["accuracy"]) > validity.LEVEL


# a shift


def best_of_all_mechanisms(true, generated, epsilon):
    """Return the best accuracy on one example, over all sets of labels that an output may name."""
    labels = len(true)
    guesses = np.array(list(product((0, 1), repeat=labels)))
    outputs, most = len(guesses), np.exp(epsilon)
    wins = 0.5 * true[:, None] * (guesses.T + (1 - guesses) @ generated)
    limits = []
    for label, output in product(range(labels), range(outputs)):
        own, simulated = np.zeros((2, labels, outputs))
        own[label, output] = 1.0
        simulated[:, output] = generated
        limits += [(own - most * simulated).ravel(), (simulated - most * own).ravel()]
    solution = linprog(
        -wins.ravel(),
        A_ub=limits,
        b_ub=np.zeros(len(limits)),
        A_eq=np.kron(np.eye(labels), np.ones(outputs)),
        b_eq=np.ones(labels),
    )
    return -solution.fun


@pytest.mark.parametrize("labels", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "tau"), [(0.5, 0.1), (0.5, 0.7), (2.0, 0.9)])
def test_the_symmetric_programme_finds_what_the_full_one_does(labels, epsilon, tau):
    others = np.full(labels, (1.0 - tau) / labels)
    true, generated = np.concatenate(([tau, 0.0], others)), np.concatenate(([0.0, tau], others))
    full = best_of_all_mechanisms(true, generated, epsilon)
    assert validity.one_shift(labels, epsilon, tau)["accuracy"] == pytest.approx(full)


@pytest.mark.parametrize("epsilon", validity.one_shift.paper["epsilon"])
def test_theorem_5_allows_too_little_under_a_shift_and_the_repair_enough(epsilon):
    rows = [validity.one_shift(40, epsilon, tau) for tau in validity.one_shift.paper["tau"]]
    assert max(row["accuracy"] - row["allowed"] for row in rows) > 1e-3
    assert max(row["accuracy"] - row["allowed"] for row in rows) < 0.02
    assert all(row["accuracy"] <= row["repaired"] + 1e-7 for row in rows)


def test_without_a_shift_nothing_exceeds_the_theorem():
    rng = np.random.default_rng(0)
    for labels in (2, 3, 4):
        law = rng.dirichlet(np.ones(labels))
        for epsilon in (0.3, 1.0):
            most = 1.0 / (1.0 + np.exp(-epsilon))
            assert best_of_all_mechanisms(law, law, epsilon) <= most + 1e-7


@pytest.mark.parametrize("tau", [Fraction(7, 10), Fraction(4, 5), Fraction(9, 10)])
def test_three_labels_refute_theorem_5_in_fractions(tau):
    case = validity.three_labels(tau)
    assert case["largest_ratio"] == 2  # ε = log 2 against the simulator, in both directions
    assert case["accuracy"] > case["allowed"]
    # between the two the algorithm calls a right guess rarer than it is
    level = float(case["accuracy"] + case["allowed"]) / 2.0
    bound = one_run_fdp(1, 1, 1, family=PureDP, delta=0.0, tau=float(tau), confidence=1.0 - level)
    assert bound.epsilon > np.log(2.0)


def test_the_four_fifths_case_is_94_percent_against_93_and_a_third():
    case = validity.three_labels()
    assert (case["accuracy"], case["allowed"]) == (Fraction(47, 50), Fraction(14, 15))


# other errors of the paper's appendices


def test_nobody_keeps_the_definition_as_printed_in_appendix_a():
    """Pr[M ∈ E] ≤ f(Pr[Sim ∈ E]) fails for the event of all outputs, whatever the mechanism."""
    for curve in (GaussianDP(0.0), GaussianDP(3.0), PureDP(9.0)):
        assert curve.beta(1.0) == 0.0 < 1.0


def test_the_lower_bound_of_lemma_10_as_printed_fails_for_guesses_at_random():
    """With f(x) = 1 - x it is inf {t: 1 - t + s - t ≤ 1 - τ}, hence (s + τ) / 2."""
    tau, everything = 0.1, 1.0
    printed, corrected = (everything + tau) / 2.0, (everything - tau) / 2.0
    assert printed > 0.5 >= corrected  # and 1/2 is what guesses at random get right


def weights(c, guesses, start):
    """Return what the recursion makes of γ and each h for r[start], by running it on unit vectors.

    In units of 1 / m: r starts from γ c and h from γ (c' - c).
    """
    size = c + 1  # h[0], ..., h[c - 1], γ
    r, above = np.zeros(size), np.zeros(size)
    r[c], above[c] = c, guesses - c
    for i in range(c - 1, start - 1, -1):
        h = np.eye(size)[i]
        r, above = r + i / (guesses - i) * (h - above), h
    return r


@pytest.mark.parametrize(
    ("c", "guesses", "start"),
    [(3, 5, 0), (3, 5, 2), (7, 10, 3), (13, 20, 4), (60, 100, 0), (60, 100, 30), (60, 100, 59)],
)
def test_lemma_14_rewrites_the_recursion_wrongly_and_is_true_all_the_same(c, guesses, start):
    found = weights(c, guesses, start)
    printed, ours = np.zeros(c + 1), np.zeros(c + 1)
    for z in range(start, c):
        printed[z] = (z + 1) / (guesses - z - 1) - z / (guesses - z)
        ours[z] = z / (guesses - z) - (z - 1) / (guesses - z + 1)
    printed[c] = guesses * (c - c) / (guesses - c)
    ours[start] = start / (guesses - start)  # the first one has a weight of its own
    ours[c] = guesses / (guesses - c + 1)
    assert np.abs(found - printed).max() > 0.1
    np.testing.assert_allclose(found, ours, atol=1e-9)
    assert (found >= 0.0).all()  # what the lemma needs
    assert found[-1] > 0.0


def test_equation_6_leaves_out_the_runs_where_every_guess_is_right():
    guesses, m = 4, 10
    law = np.array([comb(guesses, i) for i in range(guesses + 1)]) / 2**guesses
    i = np.arange(guesses + 1)
    alpha = np.cumsum((i / m * law)[::-1])[::-1]
    beta = np.cumsum(((guesses - i) / m * law)[::-1])[::-1]
    for start in range(guesses):
        gamma = [z / (guesses - z) - (z - 1) / (guesses - z + 1) for z in range(1, guesses)]
        printed = start / (guesses - start) * beta[start]
        printed += sum(gamma[z - 1] * beta[z] for z in range(start + 1, guesses))
        assert alpha[start] - printed == pytest.approx(guesses / m * law[guesses])


def test_the_placebo_wins_by_half_the_distance_where_it_guesses():
    """Exactly, for one feature: the best guess from the label alone is right with 1/2 + TV / 2.

    An attacker who goes by another model's sign wins what the two laws differ by with that sign.
    """
    rng = np.random.default_rng(0)
    for _ in range(20):
        true, generated, target = rng.dirichlet(np.ones(4), size=3)
        shown = 0.5 * (true + generated)
        distance = 0.5 * np.abs(true - generated).sum()
        best = 0.5 * np.maximum(true, generated).sum()
        assert best == pytest.approx(0.5 + 0.5 * distance)
        says = np.sign(target - generated)
        right = 0.5 * np.where(says > 0, true, generated).sum()
        assert right - 0.5 == pytest.approx(0.25 * (says * (true - generated)).sum())
        # on the labels guessed on alone
        guessed = np.array([True, True, False, False])
        alone = 0.5 * np.where(says > 0, true, generated)[guessed].sum() / shown[guessed].sum()
        gain = says * (true - generated) / (2.0 * (true + generated))
        mean = (shown * gain)[guessed].sum() / shown[guessed].sum()
        assert alone - 0.5 == pytest.approx(mean)
