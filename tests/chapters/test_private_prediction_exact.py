"""Noisy argmax on known histograms: what each audit finds, needs, and how often it is wrong."""

import math

import numpy as np
import pytest
from experiments.private_prediction import exact, failure_rates
from experiments.private_prediction.exact import CLOSE, PAPER, best_cut, laws

from auditkit import renyi_divergence


def test_one_vote_leaks_far_less_than_theory_says_and_a_2_cut_finds_nearly_all():
    for direction in ("forward", "backward"):
        for row in exact.audited(PAPER, direction, 10**7, np.random.default_rng(0)):
            assert row["exact"] < 0.7 * row["dependent"] <= 0.7 * row["independent"]
            assert 0.94 * row["exact"] < row["best_cut"] <= row["exact"]
            assert 0.97 * row["best_cut"] < row["corner"] <= row["best_cut"]


def test_moving_a_vote_has_sensitivity_root_two():
    row = exact.audited(PAPER, "backward", 10**4, np.random.default_rng(0))[0]
    assert row["exact"] > row["order"] / (2.0 * 2.0**2)  # what sensitivity 1 would promise
    assert row["independent"] == pytest.approx(row["order"] / 2.0**2)


def test_the_best_cut_is_the_largest_of_all_and_merging_loses():
    p, q = laws(CLOSE, "backward")
    value, chosen = best_cut(p, q, 2.0)
    for cut in exact.cuts(5):
        coins = [[law[list(cut)].sum(), 1 - law[list(cut)].sum()] for law in (p, q)]
        assert renyi_divergence(*coins, [2.0])[0] <= value + 1e-12
    assert len(exact.cuts(5)) == 2**5 - 2
    assert chosen in exact.cuts(5)


def test_the_corner_needs_hundreds_of_times_fewer_trials_than_appendix_b_where_little_leaks():
    trials = {
        audit: exact.trials_needed(CLOSE, audit, 2.0, 0.9)["trials"]
        for audit in ("corner", "Appendix B")
    }
    assert 1e6 < trials["corner"] < 1e8
    assert trials["Appendix B"] > 300 * trials["corner"]


def test_trials_suffice_and_a_little_fewer_do_not():
    row = exact.trials_needed(PAPER, "corner", 2.0, 0.9)
    p, q = laws(PAPER, "backward")
    goal, cut = best_cut(p, q, 2.0)
    found = [
        exact.AUDITS["corner"](*(np.rint(share * row["trials"] * law) for law in (p, q)), 2.0, cut)
        for share in (1.01, 0.98)
    ]
    assert found[0].epsilon[0] >= 0.9 * goal > found[1].epsilon[0]
    assert row["best_cut"] == goal <= row["exact"]


def test_an_audit_that_can_never_find_it_needs_infinitely_many(monkeypatch):
    monkeypatch.setattr(exact, "MOST", 1e3)
    row = exact.trials_needed(CLOSE, "corner", 2.0, 0.9)
    assert row["trials"] == math.inf


def shares(case, audit, simulations, trials=10**5):
    rows = failure_rates.failing(case, audit, trials, simulations, np.random.default_rng(0))
    return {row["order"]: row for row in rows}


@pytest.mark.parametrize("case", [PAPER, CLOSE, failure_rates.ZERO, failure_rates.ZERO_TEN])
@pytest.mark.parametrize(
    "audit", ["2-cut", "2-cut, pilot", "k-cut", "2-cut, Appendix B", "k-cut, Goodman"]
)
def test_what_is_called_a_lower_bound_keeps_its_level(case, audit):
    assert shares(case, audit, 400)[None]["low"] < 0.05


@pytest.mark.parametrize("audit", ["2-cut bootstrap", "k-cut bootstrap"])
def test_the_bootstrap_is_always_wrong_where_nothing_leaks(audit):
    assert shares(failure_rates.ZERO, audit, 40)[2.0]["share"] == 1.0


def test_the_k_cut_bootstrap_breaks_its_level_where_little_leaks():
    assert shares(CLOSE, "k-cut bootstrap", 60, trials=10**4)[None]["low"] > 0.05


def test_a_set_chosen_on_the_counts_that_test_it_breaks_the_level():
    assert shares(failure_rates.ZERO_TEN, "2-cut, chosen afterwards", 300)[None]["low"] > 0.05


def test_a_failure_at_any_order_is_counted_once():
    rows = shares(PAPER, "2-cut bootstrap", 40)
    assert rows[None]["failures"] >= max(rows[order]["failures"] for order in failure_rates.ORDERS)
    assert rows[None]["truth"] is None
