"""The games of PANORAMIA: what the coins show, and where nothing may be found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit import one_run, panoramia
from auditkit.bounds.panoramia_games import (
    generated_audit,
    one_run_games,
    panoramia_games,
    real_games,
)
from auditkit.evidence import PairedScores


def paired(gap, pairs=2000, seed=0):
    rng = np.random.default_rng(seed)
    return PairedScores(rng.normal(gap, 1, pairs), rng.normal(0, 1, pairs))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), pairs=st.integers(1, 40))
def test_a_coin_shows_one_of_each_pair(seed, pairs):
    scores, coins = paired(1.0, pairs, seed), np.random.default_rng(seed).random(pairs) < 0.5
    shown = scores.shown(coins)
    assert [shown[i] for i in range(pairs)] == [
        scores.real[i] if coins[i] else scores.other[i] for i in range(pairs)
    ]


def test_games_are_panoramia_on_what_the_coins_show():
    weak, strong = paired(0.5), paired(2.0, seed=1)
    coins = np.random.default_rng(7).random((3, 2000)) < 0.5
    found = panoramia_games(weak, strong, flips=3, rng=7, delta=1e-5, closeness_slack=1e-4)
    for game, real in zip(found, coins, strict=True):
        want = panoramia(
            weak.shown(real), strong.shown(real), real, delta=1e-5, closeness_slack=1e-4
        )
        assert game == want


def test_equal_seeds_toss_equal_coins():
    one, other = (panoramia_games(paired(1.0), paired(2.0), flips=2, rng=3) for _ in range(2))
    assert one == other
    assert one[0] != one[1]


def test_an_attack_that_adds_nothing_measures_nothing():
    weak = paired(1.0)
    assert all(game.details["difference"] == 0.0 for game in panoramia_games(weak, weak, rng=0))


def test_real_unseen_examples_need_no_baseline():
    attack = paired(2.0)
    blind = PairedScores(np.zeros(2000), np.zeros(2000))
    games = panoramia_games(blind, attack, flips=3, rng=0)
    for bound, game in zip(real_games(attack, flips=3, rng=0), games, strict=True):
        assert (bound.epsilon, bound.claim) == (game.c_plus_epsilon_lower, "lower bound")
        assert bound.confidence == pytest.approx(0.975)


def test_scores_that_know_nothing_bound_nothing_in_any_of_three_audits():
    blind = paired(0.0)
    for games in (
        panoramia_games(blind, paired(0.0, seed=5), rng=0),
        real_games(blind, rng=0),
        one_run_games(blind, rng=0),
    ):
        assert all(game.epsilon == 0.0 for game in games)


def test_randomised_response_is_not_overstated():
    rng = np.random.default_rng(0)
    epsilon, missed = 1.0, 0
    for _ in range(40):
        told = rng.random((2, 500)) < np.array([[np.e], [1.0]]) / (1.0 + np.e)
        scores = PairedScores(*(told + 1e-3 * rng.normal(size=(2, 500))))
        bounds = [games(scores, flips=1, rng=rng)[0] for games in (real_games, one_run_games)]
        missed += sum(bound.epsilon > epsilon for bound in bounds)
    assert missed <= 4  # of 80, at 2.5% and 5%


def test_two_thresholds_are_the_best_of_all_pairs_at_a_share_of_the_level():
    scores, coins = paired(2.0, 200), np.random.default_rng(1).random(200) < 0.5
    (bound,) = one_run_games(scores, flips=1, rng=1)
    shown = scores.shown(coins)
    numbers = [0, 10, 14, 20, 28, 40, 56, 80, 113, 160]
    best, tests = 0.0, 0
    pairs = [(a, b) for a in numbers for b in numbers if 0 < a + b <= 200]
    for high, low in pairs:
        order = np.argsort(-shown, kind="stable")
        right = coins[order[:high]].sum() + (~coins[order[200 - low :]]).sum()
        sharper = 1.0 - 0.05 / len(pairs)
        pure = one_run(int(right), high + low, 200, delta=0.0, confidence=sharper)
        best = max(best, pure.epsilon)
        tests += 1
    assert bound.epsilon == pytest.approx(best, abs=1e-9)
    assert bound.details["tests"] == tests


def test_guesses_of_members_alone_are_some_of_all_guesses():
    scores = paired(1.0)
    (both,), (members,) = (
        one_run_games(scores, guess=guess, flips=1, rng=0) for guess in ("both", "members")
    )
    assert members.details["others_guessed"] == 0
    assert members.details["tests"] < both.details["tests"]
    # whose lowest scores alone tell others apart has nothing to say of members
    below = PairedScores(
        np.zeros(2000), -(np.random.default_rng(1).random(2000) < 0.2).astype(float)
    )
    (found,), (nothing,) = (
        one_run_games(below, guess=guess, flips=1, rng=0) for guess in ("both", "members")
    )
    assert found.epsilon > 2.0 > 0.5 > nothing.epsilon
    with pytest.raises(ValueError, match="guess"):
        one_run_games(scores, guess="others", rng=0)


def test_unseen_examples_that_stand_out_are_for_one_run_only():
    rng = np.random.default_rng(0)
    # some of the others have scores that no member has; members never stand out
    other = np.where(rng.random(2000) < 0.2, -9.0, 0.0) + 1e-3 * rng.normal(size=2000)
    scores = PairedScores(1e-3 * rng.normal(size=2000), other)
    (one_sided,), (both,) = (games(scores, flips=1, rng=1) for games in (real_games, one_run_games))
    assert one_sided.epsilon < 0.5 < 2.0 < both.epsilon


@pytest.mark.parametrize("games", [real_games, one_run_games])
@pytest.mark.parametrize(("ask", "name"), [({"flips": 0}, "flips"), ({"confidence": 1.0}, "conf")])
def test_games_turn_bad_input_away(games, ask, name):
    with pytest.raises(ValueError, match=name):
        games(paired(1.0), rng=0, **ask)


def test_games_need_the_same_pairs_and_enough_of_them():
    with pytest.raises(ValueError, match="same length"):
        panoramia_games(paired(1.0, 5), paired(1.0, 6), rng=0)
    with pytest.raises(ValueError, match="at least 10"):
        one_run_games(paired(1.0, 5), rng=0)
    with pytest.raises(ValueError, match="finite"):
        PairedScores(np.array([np.nan]), np.array([0.0]))


def test_a_model_and_its_null_meet_the_same_coins():
    weak, strong = paired(0.5), paired(2.0, seed=1)
    audit = generated_audit(weak, strong, weak, flips=3, rng=0)
    again = generated_audit(weak, weak, strong, flips=3, rng=0)
    assert (audit.games, audit.null_games) == (again.null_games, again.games)
    assert "An estimate, not a bound" in str(audit)
