"""The synthetic game: short cuts of the study are the package's audits; a placebo shows nothing."""

import numpy as np
import pandas as pd
import pytest
from experiments.zero_run import crosswise, procedure, synthetic, tables, validity
from experiments.zero_run.audits import (
    AUDITS,
    AWARE,
    EXAMPLES,
    LARGEST,
    LEVEL,
    NUMBERS,
    RANKED,
    audit_rows,
    guesses_of,
)
from scipy.special import expit
from scipy.stats import binom

from auditkit import GaussianDP, one_run, zero_run
from auditkit.bounds.shift_corrections import games_of
from auditkit.mechanisms.noisy_sum import PulledSphere


@pytest.fixture(scope="module")
def rows():
    return synthetic.known_leak(400, 2.0, 0.25, 0, np.random.default_rng(0))


def of(rows, **wanted):
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def test_without_a_correction_the_placebo_seems_to_leak_and_with_true_propensities_it_does_not(
    rows,
):
    placebo = of(rows, release=synthetic.PLACEBO, propensities=synthetic.TRUE, choice=LARGEST)
    assert len(placebo) == len(AUDITS)
    for row in placebo:
        assert row["mu"] > 0.5 if row["audit"] == "no correction" else row["mu"] < 0.1
    assert all(row["claim"] == "estimate" for row in placebo)


def test_only_true_propensities_make_lower_bounds(rows):
    claims = {
        source: {row["claim"] for row in of(rows, propensities=source)}
        for source in (synthetic.TRUE, synthetic.LINE, synthetic.ESTIMATED)
    }
    assert claims.pop(synthetic.TRUE) == {"estimate", "lower bound"}
    assert set.union(*claims.values()) == {"estimate"}


def test_the_papers_procedure_pays_for_its_resamples():
    rows = procedure.whole_procedure(1000, 0.25, 0, 10, np.random.default_rng(0))
    aware = {
        row["propensities"]: row["mu"]
        for row in of(rows, audit="conditional, aware", release=synthetic.TARGET, choice=LARGEST)
    }
    assert aware[procedure.RESAMPLED] < aware[synthetic.ESTIMATED]
    resampled = of(rows, propensities=procedure.RESAMPLED)
    assert {row["claim"] for row in resampled} == {"estimate"}


def test_corrected_bounds_are_below_uncorrected_ones(rows):
    for best, paid in zip(rows[1::3], rows[2::3], strict=True):
        assert best["mu"] >= paid["mu"]
        assert best["audit"] == paid["audit"]


def test_the_same_seed_gives_the_same_rows(rows):
    assert rows == synthetic.known_leak(400, 2.0, 0.25, 0, np.random.default_rng(0))


# the study of validity


@pytest.mark.parametrize("correction", ["none", "composition", "conditional", "sharp"])
def test_the_study_calls_false_what_the_package_bounds_above_0(correction):
    ranking = validity.KNOWING if correction in {"conditional", "sharp"} else "unaware"
    for seed, scale in enumerate((1.0, 0.9, 0.8, 0.7)):
        rng = np.random.default_rng(seed)
        true = rng.normal(size=EXAMPLES)
        members, odds = rng.random(EXAMPLES) < expit(true), scale * true
        anything = np.ones(EXAMPLES, int)
        (played,), _ = games_of(anything, members, expit(odds), seed)  # the package's draws
        game = validity.Game(members, true, true + rng.normal(size=EXAMPLES), played.draws)
        order, right = validity.ranked(game, odds, correction, ranking)
        guesses = np.zeros(EXAMPLES, int)
        guesses[order] = np.where(right == members, 1, -1)[order]
        bound = zero_run(
            guesses, members, expit(odds), correction=correction, confidence=1 - LEVEL, rng=seed
        )
        found = validity.audits(game, odds, LEVEL)[correction, ranking]
        assert found[0] == (bound.epsilon > 0.0)


def test_true_propensities_keep_the_level_at_one_number_and_after_paying_for_six():
    rows = validity.false_bounds(validity.FORMULA, 1000, 0.5, 120, 0, np.random.default_rng(0))
    told = {"source": validity.FORMULA, "dimension": 1000, "rho": 0.5, "runs": 120}
    total = validity.summary(pd.DataFrame(rows).assign(**told))
    assert (total.query("correction == 'none'")["share"] == 1.0).all()
    kept = total.query("correction != 'none' and choice != @LARGEST")
    assert len(kept) == 22
    assert not kept["broken"].any()


def test_a_summary_adds_up_batches():
    told = {"source": "fitted", "dimension": 50, "rho": 0.5, "propensities": "true"}
    told |= {"correction": "sharp", "ranking": "aware", "choice": "one", "level": 0.025}
    batches = pd.DataFrame([{**told, "runs": 40, "exceeding": share} for share in (0.05, 0.1)])
    total = validity.summary(batches.assign(passed=0.0, rejected=1.0))
    assert total[["runs", "exceeding", "passed", "rejected"]].to_numpy().tolist() == [
        [80, 6, 0, 80]
    ]
    assert total["low"][0] < total["share"][0] == 0.075 < total["high"][0]
    assert total["broken"][0]  # 6 of 80 are more than 2.5%


def test_estimated_propensities_find_leaks_where_there_are_none_and_limits_do_not():
    rows = validity.false_bounds(validity.FITTED, 400, 0.5, 4, 0, np.random.default_rng(0))
    shares = {
        row["propensities"]: row["exceeding"]
        for row in of(rows, correction="sharp", ranking=validity.KNOWING, choice="1,000 guesses")
    }
    assert shares[validity.ESTIMATED] == 1.0
    assert shares[validity.SIMULTANEOUS] == 0.0
    refused = {row["propensities"]: row["rejected"] for row in rows}
    assert refused[validity.ESTIMATED] >= 0.75


def test_fits_of_the_audited_examples_themselves_are_compared_with_fits_of_others():
    rows = crosswise.false_bounds_crosswise(5, 0.5, 2, 0, np.random.default_rng(0))
    names = {crosswise.APART, crosswise.HALF, crosswise.CROSSWISE}
    assert {row["propensities"] for row in rows} == names
    assert len(rows) == len(names) * len(validity.AUDITS) * len(validity.CHOICES)
    plain = of(rows, correction="none", choice="1,000 guesses")
    assert {row["exceeding"] for row in plain} == {1.0}  # without a correction all are false


def test_resampled_rows_have_both_quantiles():
    rows = validity.false_bounds(validity.RESAMPLED, 20, 0.5, 1, 0, np.random.default_rng(0))
    assert {row["propensities"] for row in rows} == {validity.BOOTSTRAP, validity.REBASED}
    assert {row["level"] for row in rows} == {2 * LEVEL}


def test_the_projected_release_has_the_length_of_the_whole_one():
    family, rng = PulledSphere(200, 2.0, 1.0), np.random.default_rng(0)
    drawn = np.array([validity.other_sum(family, rng) for _ in range(200)])
    own = np.ones(EXAMPLES // 2, bool)
    whole = np.array([family.draw(own, rng=rng).sum(axis=0) for _ in range(20)])
    assert drawn[:, 0].mean() == pytest.approx(whole[:, 0].mean(), rel=0.01)
    lengths = [np.linalg.norm(sums[:, 1:], axis=1).mean() for sums in (drawn, whole)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.05)


# the audits


def test_every_row_of_guesses_has_its_number_and_rows_are_nested():
    rng = np.random.default_rng(0)
    scores, odds = rng.normal(size=(2, EXAMPLES))
    guesses = guesses_of("posterior", scores, odds)
    assert tuple(np.abs(guesses).sum(axis=1)) == NUMBERS
    assert ((guesses[1] == 0) | (guesses[1] == guesses[0])).all()


def test_ranks_are_bounded_so_that_no_score_outweighs_its_shift():
    rng = np.random.default_rng(0)
    scores, odds = rng.standard_t(1, size=EXAMPLES), rng.normal(size=EXAMPLES)
    worst = int(np.abs(odds).argmax())
    scores[worst] = 1e6
    first = {name: guesses_of(name, scores, odds)[-1] for name in (AWARE, RANKED)}
    assert first[AWARE][worst] == 1
    assert first[RANKED][worst] == 0


def test_many_sets_of_propensities_make_estimates():
    rng = np.random.default_rng(0)
    scores, odds = rng.normal(size=(2, EXAMPLES))
    members = rng.random(EXAMPLES) < expit(odds)
    sets = expit(odds + 0.1 * rng.normal(size=(3, EXAMPLES)))
    rows = audit_rows(scores, members, sets, fitted=True, rng=rng)
    assert {row["claim"] for row in rows} == {"estimate"}
    assert len(rows) == 3 * len(AUDITS)


# the tables


def test_algorithm_8_is_wrong_every_time_and_algorithm_7_never():
    rows = {row["audit"]: row for row in tables.betrayal(50, 60, np.random.default_rng(0))}
    assert rows["Algorithm 8"]["share"] == 1.0
    assert rows["Algorithm 7"]["share"] == 0.0


def test_optimistic_propensities_break_the_audit_and_pessimistic_ones_do_not():
    shares = {
        scale: {
            row["correction"]: row["share"]
            for row in tables.channel(0.0, scale, 15, np.random.default_rng(0))
        }
        for scale in (0.5, 1.5)
    }
    assert shares[0.5]["sharp"] == 1.0
    assert shares[1.5]["sharp"] == shares[1.5]["conditional"] == 0.0
    assert shares[1.5]["none"] == 1.0


def test_algorithm_9_as_printed_shows_less_than_what_it_should_say():
    rows = {row["audit"]: row for row in tables.response(1.0, 0.0, 8, np.random.default_rng(0))}
    assert rows[tables.PRINTED]["mean_epsilon"] < rows["conditional"]["mean_epsilon"]
    assert rows["conditional"]["mean_epsilon"] < rows["untampered"]["mean_epsilon"] < 1.2
    assert rows["none"]["share"] == 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-5])
def test_algorithm_6_pays_for_delta_only_with_its_sign_mended(delta):
    free = tables.sixth_limit(420, 0.0, False)
    assert tables.sixth_limit(420, 0.0, True) == pytest.approx(free, abs=1e-6)
    if delta:
        mended, printed = (tables.sixth_limit(420, delta, way) for way in (False, True))
        assert mended < free <= printed


def test_algorithm_6_as_printed_rejects_a_private_mechanism_too_often():
    """One that gives all coins away with chance δ, and else nothing, is (0, δ)-private."""
    guesses, delta, level = 100, 0.02, 0.05
    least = next(
        count
        for count in range(guesses + 1)
        if tables.printed_chance(count, guesses, guesses, delta, 0.0) <= level
    )
    rejected = delta + (1.0 - delta) * binom.sf(least - 1, guesses, 0.5)
    assert rejected > level
    # with the sign mended the same count is no reason to reject
    assert one_run(least, guesses, guesses, delta=delta, method="steinke").epsilon == 0.0


def test_weighted_rates_obey_the_curve_where_plain_ones_do_not():
    """Proposition 1, on a release that knows the shift and leaks μ = 1 besides."""
    rng, number, curve = np.random.default_rng(0), 200_000, GaussianDP(1.0)
    odds = rng.normal(size=number)
    members = rng.random(number) < expit(odds)
    scores = odds + rng.normal(1.0 * members)
    for cut in (0.0, 1.0, 2.0):
        guessed = scores > cut
        own, other = tables.weighted_rates(guessed, members, expit(odds))
        assert own < 1.0 - curve.beta(other) + 0.01
        assert guessed[members].mean() > 1.0 - curve.beta(guessed[~members].mean()) + 0.03


def test_a_model_at_half_the_slope_is_rejected_and_a_steeper_one_is_not():
    rows = tables.rejection(1.0, 3, np.random.default_rng(0))
    shares = {(row["model"], row["test"]): row["share"] for row in rows}
    assert shares["50%", "thinned"] == shares["constant", "untampered"] == 1.0
    assert shares["120%", "thinned"] == 0.0


def test_without_overlap_a_mechanism_without_noise_looks_like_one_without_data():
    rng = np.random.default_rng(0)
    members, others = rng.random(50), -rng.random(50)
    audited = np.concatenate((members, others))
    np.testing.assert_array_equal(
        tables.knows_the_members(members, audited), tables.knows_the_side(members, audited)
    )
    assert tables.knows_the_members(np.array([-0.5]), np.array([-0.5]))[0]
    assert not tables.knows_the_side(np.array([-0.5]), np.array([-0.5]))[0]
