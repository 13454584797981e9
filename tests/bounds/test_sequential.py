"""Bets against a promise win nothing where it holds, however long one goes on."""

from itertools import product

import numpy as np
import pytest

from auditkit import ApproxDP, CustomTradeOff, GaussianDP, PureDP
from auditkit.bounds.power import Setting, plan
from auditkit.bounds.sequential import SequentialAudit

ODDS = 1.0 / (1.0 + np.exp(-1.0))
KEPT = {  # laws of the score with and without the canary, at the edge of the promise
    "pure": (PureDP(1.0), {1: ODDS, 0: 1 - ODDS}, {1: 1 - ODDS, 0: ODDS}),
    "failure": (ApproxDP(0.0, 0.3), {2: 0.3, 1: 0.7}, {0: 0.3, 1: 0.7}),
    "one tail": (ApproxDP(0.0, 0.3), {2: 0.3, 1: 0.7}, {1: 1.0}),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def alternating(runs):
    return np.tile([True, False], runs // 2)


def drawn(rng, members, law, other):
    scores = [rng.choice(list(each), members.size, p=list(each.values())) for each in (law, other)]
    return np.where(members, *scores).astype(float)


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("lesson", [1, 12])  # pairs that tell the worlds apart without an error
def test_a_bet_against_a_promise_that_holds_does_not_pay_on_average(kept, lesson):
    promise, present, absent = KEPT[kept]
    learnt = np.tile([max(present), min(absent)], lesson)
    start = SequentialAudit(promise).update(learnt, alternating(2 * lesson)).e_value
    mean = 0.0
    for pairs in product(product(present, absent), repeat=3):
        scores = np.append(learnt, np.ravel(pairs))
        audit = SequentialAudit(promise).update(scores, alternating(scores.size))
        chance = np.prod([present[a] * absent[b] for a, b in pairs])
        mean += chance * audit.e_value / start
    assert 0.1 < mean <= 1.0 + 1e-12


def false_alarms(promise, draw, runs, times, rng):
    """How often a promise that holds is refuted by whoever stops at the first chance."""
    members = alternating(runs)
    return np.mean(
        [SequentialAudit(promise).update(draw(rng, members), members).refuted for _ in range(times)]
    )


def test_a_promise_that_holds_is_hardly_ever_refuted(rng):
    law = KEPT["pure"]
    rate = false_alarms(law[0], lambda rng, m: drawn(rng, m, *law[1:]), 120, 120, rng)
    assert rate <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("case", [*KEPT, "gaussian"])
def test_stopping_at_the_first_chance_keeps_the_level(case, rng):
    if case == "gaussian":
        promise, draw = GaussianDP(1.0), lambda rng, m: rng.normal(1.0 * m)
    else:
        promise, law, other = KEPT[case]

        def draw(rng, members):
            return drawn(rng, members, law, other)

    assert false_alarms(promise, draw, 300, 2000, rng) <= 0.05


def test_the_bound_of_randomised_response_stays_below_the_truth(rng):
    _, law, other = KEPT["pure"]
    members = alternating(400)
    bounds = [
        SequentialAudit(PureDP(1.0), delta=0.0).update(drawn(rng, members, law, other), members)
        for _ in range(20)
    ]
    epsilons = np.array([audit.bound().epsilon for audit in bounds])
    assert np.mean(epsilons > 1.0) <= 0.05
    assert np.median(epsilons) > 0.3


def test_in_whatever_order_and_portions_runs_come_the_pairs_are_the_same(rng):
    members = alternating(120)
    scores = rng.normal(1.5 * members)
    whole = SequentialAudit(PureDP(0.5)).update(scores, members)
    single = SequentialAudit(PureDP(0.5))
    for score, member in zip(scores, members, strict=True):
        single.update(score, member)
        if single.refuted:
            break
    assert whole.refuted_after == single.refuted_after == single.runs < 120
    blocks = np.argsort(~members, kind="stable")
    apart = SequentialAudit(PureDP(0.5)).update(scores[blocks], members[blocks])
    assert apart.e_value == pytest.approx(whole.e_value, rel=1e-9)
    assert apart.refuted_after > 60


def test_an_increasing_function_of_the_score_changes_nothing(rng):
    members = alternating(200)
    scores = rng.normal(members)
    plain, bent = (
        SequentialAudit(GaussianDP(0.5)).update(values, members)
        for values in (scores, np.exp(3.0 * scores))
    )
    assert plain.e_value == pytest.approx(bent.e_value, rel=1e-9)


def test_it_takes_fewer_runs_than_the_best_fixed_number(rng):
    fixed = plan(Setting("two-worlds", 1.0, "approx"), mu=1.0, power=0.5).examples
    members = alternating(2000)
    runs = [
        SequentialAudit(ApproxDP(1.0, 1e-5)).update(rng.normal(members), members).refuted_after
        for _ in range(15)
    ]
    assert np.median(runs) < 0.75 * fixed


OWN = CustomTradeOff(GaussianDP(1.0).beta, GaussianDP(1.0).inverse)


@pytest.mark.parametrize("promise", [PureDP(3.0), ApproxDP(3.0, 1e-3), GaussianDP(1.0), OWN])
def test_a_canary_in_plain_sight_is_seen(promise):
    members = alternating(400)
    audit = SequentialAudit(promise).update(1.0 * members, members)
    assert audit.refuted
    assert audit.bound().epsilon > 3.0


def test_a_leak_in_one_run_of_ten_is_seen(rng):
    members = alternating(2000)
    scores = rng.normal(size=2000) + 5.0 * (members & (rng.random(2000) < 0.1))
    assert SequentialAudit(ApproxDP(1.0, 1e-5)).update(scores, members).refuted


def test_scores_of_one_world_prove_nothing(rng):
    audit = SequentialAudit(PureDP(0.0)).update(rng.normal(size=50), np.ones(50))
    assert (audit.e_value, audit.p_value, audit.refuted) == (1.0, 1.0, False)
    assert audit.bound().epsilon == 0.0


def test_what_it_does_not_take():
    with pytest.raises(TypeError, match="promise must be one TradeOff"):
        SequentialAudit(1.0)
    with pytest.raises(TypeError, match="promise must be one TradeOff"):
        SequentialAudit(PureDP([1.0, 2.0]))
    audit = SequentialAudit(PureDP(1.0))
    with pytest.raises(ValueError, match="members must hold 0, 1"):
        audit.update(0.0, 2)
    with pytest.raises(ValueError, match="same length"):
        audit.update([0.0, 1.0], [True])
