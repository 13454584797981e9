"""Games on real data and the networks trained for them: who is drawn how, and what is kept."""

import numpy as np
import pandas as pd
import pytest
from experiments.zero_run import games, heads, pixel_networks
from scipy.special import expit


@pytest.mark.parametrize("kind", [games.MIX, games.HARD])
def test_members_are_drawn_by_the_propensity_that_is_called_true(kind):
    pool, game = games.play(kind, games.OOD, 0)
    for rows, members in game:
        said = expit(pool.odds[rows])
        for part in np.array_split(np.argsort(said, kind="stable"), 5):
            assert abs(members[part].mean() - said[part].mean()) < 5 * np.sqrt(0.25 / part.size)


@pytest.mark.parametrize("kind", [games.MIX, games.HARD, games.CENSUS, games.TINY])
@pytest.mark.parametrize("split", [games.IID, games.OOD])
def test_no_record_has_two_parts_in_a_game(kind, split):
    _, game = games.play(kind, split, 0)
    assert tuple(rows.size for rows, _ in game) == games.SIZES[kind]
    used = np.concatenate([rows for rows, _ in game])
    assert len(np.unique(used)) == len(used)
    if kind == games.HARD:  # nor has one that hardness was judged by
        assert not np.isin(used, games.JUDGING).any()


def test_years_tell_members_from_others_only_out_of_distribution():
    _, _, years = games.census()
    for split, kinds in ((games.IID, 1), (games.OOD, 2)):
        for rows, members in games.play(games.CENSUS, split, 0)[1]:
            assert len(np.unique(years[rows])) == kinds
            if split == games.OOD:
                assert (years[rows] == years[rows].min())[members].all()


def test_a_game_follows_from_its_seed():
    one, other = (
        games.of_small_images(games.OOD, np.random.default_rng((seed, 27)))[1] for seed in (0, 1)
    )
    same = games.play(games.TINY, games.OOD, 0)[1]
    assert (same.audited[0] == one.audited[0]).all()
    assert (same.audited[1] == one.audited[1]).all()
    assert not (one.audited[0] == other.audited[0]).all()


@pytest.mark.parametrize("networks", [heads.heads, pixel_networks.pixel_networks.function])
def test_a_network_knows_its_own_members_and_not_those_of_the_placebo(networks):
    more = {} if networks is heads.heads else {"precision": "float32"}
    target, placebo = networks(games.TINY, games.IID, 0, **more)
    assert target["auc"] > 0.55
    assert abs(placebo["auc"] - 0.5) < 4 * np.sqrt(1 / 3 / games.SIZES[games.TINY][0])
    assert (target["release"], placebo["release"]) == (heads.TARGET, heads.PLACEBO)


def test_losses_come_back_as_they_were_but_for_rounding(monkeypatch):
    losses = np.random.default_rng(0).exponential(size=1_000) ** 4
    kept = heads.unpack(heads.pack(losses))
    np.testing.assert_allclose(kept, losses, rtol=1e-3, atol=1e-7)
    with pytest.raises(ValueError, match=r"^losses must be at most 65504, got 70000\.0$"):
        heads.pack(np.array([7e4]))
    rows = pd.DataFrame(
        {"release": [heads.TARGET, heads.PLACEBO], "losses": [heads.pack(losses)] * 2}
    )
    monkeypatch.setattr(heads, "stored", lambda _: rows)
    assert (heads.told("zero-heads", release=heads.PLACEBO) == kept).all()
    with pytest.raises(ValueError, match=r"of 0 rows$"):
        heads.told("zero-heads", release="no such")
