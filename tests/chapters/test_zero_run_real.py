"""Audits of networks on real data: nothing is trained but propensities, all audits are made."""

import numpy as np
import pytest
from experiments.zero_run import density, games, heads, real
from experiments.zero_run.audits import AUDITS, CORRECTED, LARGEST, SINGLE

from auditkit import GaussianDP

KINDS = (games.MIX, games.OOD, 0)


@pytest.fixture(scope="module", autouse=True)
def told():
    """Let a network have a low loss on its members, who are not among the audited of a placebo."""

    def losses(_, *, data, split, seed, release):
        _, game = games.play(data, split, seed)
        rng = np.random.default_rng(0)
        known = game.audited[1] if release == heads.TARGET else rng.random(10_000) < 0.5
        return rng.exponential(np.where(known, 0.01, 1.0))

    with pytest.MonkeyPatch.context() as patch:
        for module in (real, density):
            patch.setattr(module, "told", losses)
        yield


@pytest.fixture(scope="module")
def rows():
    return real.audits(*KINDS, real.NARROW, 3, rng=np.random.default_rng(0))


def test_there_is_a_row_for_every_network_release_propensity_audit_and_choice(rows):
    names = {real.TRUE, real.FITTED, real.RESAMPLED, real.LIMIT, real.CROSS}
    assert {row["propensities"] for row in rows} == names
    # resamples make no audit of (ε, δ)
    assert len(rows) == 2 * 2 * (5 * 3 * len(AUDITS) + 4 * 2 * len(real.APPROX))
    for row in rows:
        if row["audit"] in real.APPROX:
            assert row["mu"] is None
        elif row["mu"] > 0:
            assert row["bound"] == pytest.approx(float(GaussianDP(row["mu"]).epsilon(1e-5)))


def test_corrections_find_the_leak_and_keep_silent_on_the_placebo(rows):
    true = [row for row in rows if row["propensities"] == real.TRUE and row["choice"] != LARGEST]
    for row in true:
        if row["audit"] == "no correction" or "composition" in row["audit"]:
            continue
        if row["release"] == heads.PLACEBO:
            assert row["bound"] < 0.05
        elif row["audit"] in ("conditional, aware by rank", "sharp, posterior", *real.APPROX):
            assert row["bound"] > 0.5, row


def test_only_true_propensities_and_limits_make_lower_bounds(rows):
    sure = {row["propensities"] for row in rows if row["claim"] == "lower bound"}
    assert sure == {real.TRUE, real.LIMIT}
    approx = {row["choice"] for row in rows if row["audit"] in real.APPROX}
    assert approx == {SINGLE, CORRECTED}


def test_propensities_come_from_records_that_nobody_plays_with():
    pool, game = games.play(*KINDS)
    used = set()

    class Seen(np.ndarray):
        def __getitem__(self, rows):
            used.update(np.asarray(rows).tolist())
            return np.asarray(self)[rows]

    watched = pool._replace(seen=pool.seen.view(Seen))
    found = real.propensities(watched, game, real.WIDE, 2, np.random.default_rng(0))
    assert set(found) == {real.FITTED, real.RESAMPLED}
    assert used == {*game.fitting[0].tolist(), *game.audited[0].tolist()}


def test_the_density_counts_every_set_and_its_quantile_is_that_of_the_audit():
    rows = density.bootstrapped_bounds(
        games.MIX, real.FEATURES, games.OOD, 6, np.random.default_rng(0)
    )
    for audit in density.DRAWN:
        for release in (heads.TARGET, heads.PLACEBO):
            own = [row for row in rows if (row["audit"], row["release"]) == (audit, release)]
            assert sum(row["sets"] for row in own) == 6
            assert own[0]["quantile"] == min(row["mu"] for row in own)
