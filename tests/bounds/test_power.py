"""A plan says what a simulation says."""

import numpy as np
import pytest
from scipy.special import ndtri

from auditkit import (
    Bonferroni,
    Fixed,
    GaussianDP,
    Split,
    audit_scores,
    one_run,
    one_run_fdp,
    panoramia,
    panoramia_ceiling,
    two_worlds,
    zero_run,
)
from auditkit.bounds.power import (
    Setting,
    accuracy,
    error_rates,
    flawless,
    least_without_error,
    mu_of,
    plan,
    power_of,
    would_find,
)
from auditkit.thresholds import counted

AUDITS = 1500


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 50.0])
def test_the_mechanism_of_a_plan_has_the_epsilon_asked_for(epsilon):
    assert float(GaussianDP(mu_of(epsilon, 1e-5)).epsilon(1e-5)) == pytest.approx(epsilon)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01])
@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_accuracy_on_the_most_extreme_scores_is_that_of_a_simulation(share, mu):
    rng = np.random.default_rng(0)
    members = rng.random(400_000) < 0.5
    scores = rng.normal(mu * members)
    guesses = round(share * members.size / 2)
    order = np.argsort(-scores)
    right = members[order[:guesses]].sum() + (~members[order[-guesses:]]).sum()
    found = right / (2 * guesses)
    error = np.sqrt(0.25 / (2 * guesses))
    assert accuracy(share, mu) == pytest.approx(found, abs=5 * error)


def simulated(setting, examples, share, mu):
    """Return the share of audits whose bound reaches the target, audits played one by one."""
    rng = np.random.default_rng(1)
    reached = 0
    for _ in range(AUDITS):
        members = rng.random(examples) < 0.5
        if setting.method == "two-worlds":
            members = np.arange(examples) < examples // 2
        scores = rng.normal(mu * members)
        cut = -ndtri(error_rates(share, mu)[0]) if setting.method == "two-worlds" else None
        bound = audit_scores(
            scores,
            members,
            method=setting.method,
            family=setting.family,
            threshold=Fixed(guesses=share) if cut is None else Fixed(cut),
            delta=setting.delta,
        )
        reached += bound.epsilon >= setting.target
    return reached / AUDITS


@pytest.mark.parametrize(
    ("method", "target", "true", "examples", "share"),
    [
        ("one-run", 1.0, 4.0, 600, 0.2),
        ("one-run", 0.5, 3.0, 300, 1.0),
        ("one-run-fdp", 1.0, 2.5, 500, 0.2),
        ("one-run-fdp", 2.0, 4.0, 900, 0.2),
        ("two-worlds, gaussian", 2.0, 4.0, 400, 0.5),
        ("two-worlds, gaussian", 1.0, 2.0, 1000, 0.5),
        ("two-worlds", 1.0, 4.0, 900, 0.1),
        ("two-worlds", 1.0, 6.0, 300, 0.2),
        ("two-worlds", 1.0, 12.0, 60, 0.5),
    ],
)
def test_the_power_agrees_with_simulation_within_its_error(method, target, true, examples, share):
    method, _, family = method.partition(", ")
    setting = Setting(method, target, family or None)
    mu = mu_of(true, setting.delta)
    planned = power_of(setting, examples, share=share, mu=mu)
    played = simulated(setting, examples, share, mu)
    error = np.sqrt(max(played * (1 - played), 0.01) / AUDITS)
    assert 0.02 < planned < 0.98  # a case that could go either way
    assert planned == pytest.approx(played, abs=3.5 * error)


def test_the_power_of_a_zero_run_agrees_with_simulation():
    """Every example betrays its membership as much: of the correct guesses e^-shift are left."""
    setting = Setting("zero-run", 1.0, shift=0.3)
    mu = mu_of(4.0, 1e-5)
    planned = power_of(setting, 3000, share=0.1, mu=mu)
    rng = np.random.default_rng(0)
    right = rng.binomial(300, accuracy(0.1, mu), size=20_000)
    kept = rng.binomial(right, np.exp(-0.3))
    played = np.mean(one_run_fdp(kept, 300, 3000).epsilon >= 1.0)
    assert planned == pytest.approx(played, abs=0.015)


def test_the_power_of_panoramia_is_not_above_that_of_a_simulation():
    """A plan fixes one threshold; the audit takes the best of all and does no worse."""
    setting = Setting("panoramia", 1.0, delta=0.0)
    mu = mu_of(6.0, 1e-5)
    planned = power_of(setting, 800, share=0.2, mu=mu)
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(300):
        members = rng.random(800) < 0.5
        bound = panoramia(rng.normal(size=800), rng.normal(mu * members), members)
        reached += bound.c_plus_epsilon_lower >= 1.0
    assert 0.05 < planned <= reached / 300 + 3.5 * np.sqrt(0.25 / 300)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.001])
@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_so_many_runs_lie_above_the_cut(share, mu):
    fpr, fnr = error_rates(share, mu)
    assert (fpr + 1.0 - fnr) / 2.0 == pytest.approx(share)
    assert -ndtri(fpr) - ndtri(fnr) == pytest.approx(mu)
    assert fpr <= fnr + 1e-12


def test_a_plan_for_two_worlds_follows_the_family_and_takes_the_best_cut():
    mu = mu_of(4.0, 1e-5)
    plain, gaussian = Setting("two-worlds", 1.0), Setting("two-worlds", 1.0, "gaussian")
    assert plan(gaussian, mu=mu, power=0.8).share == 0.5
    assert plan(gaussian, mu=mu, power=0.8).examples == 216
    found = plan(plain, mu=mu, power=0.8)
    assert found.share == 0.1
    assert 1400 < found.examples < 1500
    assert found.power >= 0.8
    for share in (0.2, 0.05):
        assert power_of(plain, found.examples, share=share, mu=mu) < 0.8
    assert least_without_error(gaussian) < least_without_error(plain)
    assert plan(plain, mu=mu_of(1.01, 1e-5), power=0.8) is None


@pytest.mark.parametrize(
    "method", ["one-run", "one-run-fdp", "two-worlds", "two-worlds, gaussian", "panoramia"]
)
@pytest.mark.parametrize("target", [0.5, 2.0])
def test_the_least_number_without_an_error_is_the_least(method, target):
    method, _, family = method.partition(", ")
    least = least_without_error(Setting(method, target, family or None))

    def shown(examples):
        if method == "panoramia":
            return panoramia_ceiling(examples)
        if method == "two-worlds":
            how = {"method": "gaussian"} if family else {}
            return two_worlds(0, examples // 2, 0, examples // 2, **how).epsilon
        if method == "one-run":
            return one_run(examples, examples, examples, delta=1e-5).epsilon
        return one_run_fdp(examples, examples, examples).epsilon

    assert shown(least) >= target > shown(least - 1)


def all_right(examples, shift, audits=40):
    """Return what zero runs show in the middle, where every guess is right."""
    members = np.arange(examples) % 2 == 0
    propensity = np.full(examples, 1.0 / (1.0 + np.exp(-shift)))
    guesses = np.where(members, 1, -1)
    return np.median([zero_run(guesses, members, propensity, rng=i).epsilon for i in range(audits)])


@pytest.mark.parametrize(("target", "shift"), [(1.0, 0.3), (3.0, 0.1)])
def test_the_least_number_of_a_zero_run_pays_for_its_shift(target, shift):
    least = least_without_error(Setting("zero-run", target, shift=shift))
    assert least > least_without_error(Setting("zero-run", target))
    assert all_right(round(1.1 * least), shift) >= target > all_right(round(0.8 * least), shift)


def test_a_large_shift_leaves_nothing_to_show():
    assert least_without_error(Setting("zero-run", 1.0, shift=1.0)) is None
    assert all_right(50_000, 1.0, audits=2) == 0.0


def test_a_plan_reaches_what_it_promises_and_hardly_more():
    setting = Setting("one-run-fdp", 1.0)
    mu = mu_of(3.0, 1e-5)
    found = plan(setting, mu=mu, power=0.8)
    assert found.power >= 0.8
    fewer = power_of(setting, round(0.9 * found.examples), share=found.share, mu=mu)
    assert fewer < 0.8


def test_more_leak_more_power_or_a_lower_target_take_no_more_examples():
    def examples(target, true, power):
        setting, mu = Setting("one-run-fdp", target), mu_of(true, 1e-5)
        return plan(setting, mu=mu, power=power, shares=(0.1,)).examples

    base = examples(1.0, 3.0, 0.8)
    assert examples(1.0, 4.0, 0.8) < base < examples(1.0, 3.0, 0.95)
    assert examples(0.8, 3.0, 0.8) < base


def test_what_no_number_of_examples_can_show_has_no_plan():
    assert plan(Setting("one-run", 2.0), mu=mu_of(2.1, 1e-5), power=0.8) is None
    assert least_without_error(Setting("one-run", 60.0)) is None


def test_what_goes_to_choosing_comes_on_top():
    setting = Setting("one-run", 1.0)
    rows = least_without_error(setting, Split(0.5))
    for number, enough in ((rows, True), (rows - 1, False)):
        size, part = counted(Split(0.5), number)
        assert part == 1.0
        assert (one_run(size, size, size).epsilon >= 1.0) == enough
    assert least_without_error(setting, Fixed(guesses=100)) == 100
    assert least_without_error(setting, Fixed(guesses=2)) is None


def test_a_strategy_says_what_it_counts_on_and_at_which_part_of_the_level():
    assert counted(Bonferroni((Fixed(guesses=0.1), Fixed(guesses=0.2))), 50) == (50, 0.5)
    assert counted(Fixed(0.0), 50) == (50, 1.0)


def test_no_example_shows_nothing_and_few_guesses_no_more_than_many():
    setting = Setting("one-run", 1.0)
    assert flawless(setting, 0) == 0.0
    assert flawless(setting, 100, guesses=20) < flawless(setting, 100)
    assert flawless(setting, 100, guesses=200) == flawless(setting, 100)


@pytest.mark.parametrize("theorem", [one_run, one_run_fdp])
def test_what_an_attack_would_have_found_is_what_its_counts_show_that_often(theorem):
    bound = theorem(210, 400, 500)
    found = would_find(bound, 0.8, power=0.75)
    right = np.random.default_rng(0).binomial(400, 0.8, size=20_000)
    assert np.mean(theorem(right, 400, 500).epsilon >= found) == pytest.approx(0.77, abs=0.03)


@pytest.mark.parametrize("method", ["clopper-pearson", "gaussian"])
def test_what_a_test_of_two_worlds_would_have_found_is_what_its_errors_show(method):
    bound = two_worlds(30, 100, 60, 150, method=method)
    found = would_find(bound, 0.9, power=0.6)
    rng = np.random.default_rng(0)
    errors = rng.binomial(100, 0.1, 20_000), rng.binomial(150, 0.1, 20_000)
    shown = two_worlds(errors[0], 100, errors[1], 150, method=method).epsilon
    assert np.mean(shown >= found) == pytest.approx(0.6, abs=0.02)


def test_a_rule_that_shared_the_level_is_asked_at_its_share():
    rng = np.random.default_rng(0)
    members = rng.random(500) < 0.5
    scores = rng.normal(0.1 * members)
    shared = audit_scores(scores, members, method="one-run", threshold=Bonferroni(10))
    counts = (shared.details["guesses"], shared.details["examples"])
    alone = one_run(counts[0] // 2, *counts, confidence=0.995)
    assert would_find(shared, 0.9) == pytest.approx(would_find(alone, 0.9), rel=1e-9)


def test_what_has_no_design_is_refused():
    with pytest.raises(ValueError, match="of one count"):
        would_find(one_run([3, 4], 5, 5), 0.9)
    with pytest.raises(ValueError, match="accuracy must lie strictly between"):
        would_find(one_run(3, 5, 5), 1.0)
