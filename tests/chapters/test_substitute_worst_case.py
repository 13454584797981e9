"""The worst pair: the pieces of the experiments against the package, and what they must say."""

import numpy as np
import pytest
from experiments.substitute import worst_case
from scipy.special import ndtr

from auditkit import GaussianDP, Sweep, audit_scores, two_worlds
from auditkit.mechanisms.worst_case import FinalSum


def test_the_best_of_all_cuts_is_above_the_sweep_that_shares_its_level():
    bits = np.arange(400) % 2
    scores = FinalSum(2.0, 1.0, 4).draw(1 - bits, rng=0)
    swept = audit_scores(
        scores, bits, method="two-worlds", family="gaussian", threshold=Sweep()
    ).epsilon
    found = worst_case.best_of_all(scores, bits, "gaussian")
    by_hand = [
        two_worlds(
            (scores[bits == 0] >= cut).sum(),
            200,
            (scores[bits == 1] < cut).sum(),
            200,
            method="gaussian",
            paper_convention=True,
        ).epsilon
        for cut in scores
    ]
    assert found == max(by_hand) > swept


@pytest.mark.parametrize("method", worst_case.METHODS)
def test_the_cut_from_the_law_promises_more_than_its_neighbours(method):
    law, runs = FinalSum(20.0, 1.0, 500), 5000
    cut = worst_case.cut_from_the_law(law, runs, method)

    def promised(cut):
        spread = 20.0 * np.sqrt(500.0)
        rng = np.random.default_rng(0)
        false = rng.binomial(runs, ndtr((cut - 500.0) / spread), 300)
        missed = rng.binomial(runs, ndtr(-(cut + 500.0) / spread), 300)
        return two_worlds(false, runs, missed, runs, method=method).epsilon.mean()

    best = promised(cut)
    assert all(promised(cut + shift) < best * 1.02 for shift in (-400.0, -200.0, 200.0, 400.0))


def test_where_the_law_is_gaussian_exact_rates_give_the_exact_epsilon():
    law = FinalSum(22.3557, 1.0, 500)
    exact = worst_case._of_exact_rates(law, "gaussian")
    assert exact["at_midpoint"] == pytest.approx(law.epsilon(1e-5), rel=1e-9)
    assert exact["at_best"] == pytest.approx(GaussianDP(2.0 * 500**0.5 / 22.3557).epsilon(1e-5))
    plain = worst_case._of_exact_rates(law, "clopper-pearson")
    assert plain["at_midpoint"] < plain["at_best"] < law.epsilon(1e-5)


def test_one_step_with_nearly_every_record_breaks_the_gaussian_step_and_nothing_else():
    rows = worst_case.gaussian_step(0.9, 1, 10.0, 2500, 10, rng=np.random.default_rng(0))
    exceeded = {(row["method"], row["threshold"]): row["exceeded"] for row in rows}
    assert exceeded["gaussian", "fixed at 0"] == exceeded["gaussian", "midpoint"] == 10
    assert not any(count for (method, _), count in exceeded.items() if method != "gaussian")
    assert rows[0]["at_midpoint"] > 13.0 > rows[0]["substitute"]


def test_a_cell_of_the_figure_lies_between_its_accountants():
    rows = worst_case.worst_pair(1.0, 10.0, 4000, rng=np.random.default_rng(1))
    assert len(rows) == 3 * 2 * 2 * 4
    for row in rows:
        assert row["add_remove"] < row["substitute"] < row["group_privacy"]
        if row["is_bound"]:
            assert row["audited"] < row["substitute"]
        if row["method"] == "gaussian" and row["threshold"] == "from the law":
            assert row["audited"] > row["add_remove"]


def test_group_privacy_is_left_out_where_the_accountant_does_not_reach():
    assert worst_case.promises(1.0, 0.0625)["group_privacy"] is None
    assert worst_case.promises(4.0, 0.0625)["group_privacy"] == pytest.approx(3.077, abs=1e-3)
    assert worst_case.promises(4.0, 1.0)["group_privacy"] == pytest.approx(191.09, abs=0.01)
