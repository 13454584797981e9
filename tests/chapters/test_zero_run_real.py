"""Members and others of real data: who is drawn how, and what is known of it."""

import numpy as np
import pytest
from experiments.zero_run import real
from scipy.special import expit

from auditkit import GaussianDP


@pytest.mark.parametrize("kind", [real.MIX, real.HARD])
def test_members_are_drawn_by_the_propensity_that_is_called_true(kind):
    pool, game = real.DATA[kind](real.OOD, np.random.default_rng(0))
    for rows, members in (game.audited, game.fitting, game.placebo):
        said = expit(pool.odds[rows])
        for part in np.array_split(np.argsort(said, kind="stable"), 5):
            assert abs(members[part].mean() - said[part].mean()) < 5 * np.sqrt(0.25 / part.size)


@pytest.mark.parametrize("kind", [real.MIX, real.CENSUS])
@pytest.mark.parametrize("split", [real.IID, real.OOD])
def test_no_example_is_in_two_games(kind, split):
    _, game = real.DATA[kind](split, np.random.default_rng(0))
    used = np.concatenate([rows for rows, _ in game])
    assert len(np.unique(used)) == len(used)


def test_hardness_is_judged_by_images_that_are_in_no_game():
    _, game = real.DATA[real.HARD](real.OOD, np.random.default_rng(0))
    used = np.concatenate([rows for rows, _ in game])
    assert not np.isin(used, np.arange(40_000, 50_000)).any()


def test_years_tell_members_from_others_only_out_of_distribution():
    _, _, years = real.census()
    for split, kinds in ((real.IID, 1), (real.OOD, 2)):
        _, game = real.DATA[real.CENSUS](split, np.random.default_rng(0))
        rows, members = game.audited
        assert len(np.unique(years[rows])) == kinds
        if split == real.OOD:
            assert (years[rows] == years[rows].min())[members].all()


def test_a_game_gives_a_row_for_every_propensity_release_audit_and_choice():
    rows = real.audits(real.MIX, real.OOD, 0, 3, passes=1, rng=np.random.default_rng(0))
    assert len(rows) == 4 * 2 * 7 * 3
    names = {real.TRUE, real.FITTED, real.RESAMPLED, real.LIMIT}
    assert {row["propensities"] for row in rows} == names
    for row in rows:
        if row["mu"] > 0:
            assert row["bound"] == pytest.approx(float(GaussianDP(row["mu"]).epsilon(1e-5)))
