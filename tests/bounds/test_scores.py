"""From scores to a bound: what each way of choosing a threshold may and may not claim."""

from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri
from scipy.stats import binom

from auditkit.bounds.games import OneRunGame, TwoWorldsGame
from auditkit.bounds.one_run import COINS, one_run
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.result import Bound
from auditkit.bounds.scores import audit, audit_scores
from auditkit.bounds.tradeoff import GaussianDP, PureDP
from auditkit.bounds.two_worlds import two_worlds
from auditkit.evidence import Scores
from auditkit.thresholds import Bonferroni, Fixed, MultiSplit, Split, Sweep

ONE_RUN = ("one-run", "one-run-fdp")
METHODS = (*ONE_RUN, "two-worlds")
STRATEGIES = (
    Fixed(0.5),
    Bonferroni(),
    Bonferroni((Fixed(0.3), Fixed(0.7))),
    Split(0.5, seed=0),
    Split(0.4, rule="midpoint"),
    MultiSplit(5),
    Sweep(),
)
VALID = STRATEGIES[:-1]
SHARES = (Fixed(guesses=0.2), Fixed(guesses=1.0), Bonferroni((Fixed(guesses=5), Fixed(0.5))))


def gaussian(rng, mu, examples):
    """Scores of a mechanism that is exactly μ-GDP in every example."""
    members = rng.random(examples) < 0.5
    return Scores(rng.normal(mu * members), members)


def response(rng, epsilon, examples):
    """Scores of randomised response: the reported bit, with ties between its two values broken."""
    members = rng.random(examples) < 0.5
    told = members == (rng.random(examples) < 1 / (1 + np.exp(-epsilon)))
    return Scores(told + 0.1 * rng.random(examples), members)


# what is counted


def obvious_extremes(values, members, number):
    """Count the right guesses without ties, by a walk over the sorted scores."""
    ranked = sorted(zip(values, members, strict=True), reverse=True)
    high, low = ranked[: (number + 1) // 2], ranked[len(ranked) - number // 2 :]
    return sum(member for _, member in high) + sum(not member for _, member in low)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 60), st.data())
def test_guesses_go_half_to_the_highest_and_half_to_the_lowest_scores(seed, examples, data):
    scores = gaussian(np.random.default_rng(seed), 1.0, examples)
    number = data.draw(st.integers(1, examples))
    bound = audit_scores(
        scores.values, scores.members, method="one-run", threshold=Fixed(guesses=number), delta=0.0
    )
    correct = obvious_extremes(scores.values.tolist(), scores.members.tolist(), number)
    assert bound.details["correct"] == correct
    assert bound.details["guesses"] == number
    assert bound.epsilon == one_run(correct, number, examples, delta=0.0).epsilon


def test_a_cut_is_at_or_above_and_guesses_on_everybody():
    values, members = [0.1, 0.5, 0.5, 0.9], [0, 1, 0, 1]
    bound = audit_scores(values, members, method="one-run-fdp", threshold=Fixed(0.5))
    assert (bound.details["correct"], bound.details["guesses"]) == (3, 4)
    bound = audit_scores(values, members, method="two-worlds", threshold=Fixed(0.5))
    assert (bound.details["false_positives"], bound.details["false_negatives"]) == (1, 0)
    assert bound.details["cut"] == 0.5


def test_the_realised_cut_of_a_number_of_guesses_is_the_last_score_at_either_end():
    values = [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    rule = Fixed(guesses=3)
    bound = audit_scores(values, [1, 1, 0, 1, 0, 0], method="one-run", threshold=rule)
    assert bound.details["cut"] == [4.0, 0.0]
    rule = Fixed(guesses=1)
    bound = audit_scores(values, [1, 1, 0, 1, 0, 0], method="one-run", threshold=rule)
    assert bound.details["cut"] == [5.0, -np.inf]


@pytest.mark.parametrize("method", ONE_RUN)
@pytest.mark.parametrize("guesses", [0.1, 0.5, 1.0])
def test_ties_know_nothing_of_membership_even_where_members_come_first(method, guesses):
    members = np.arange(2000) < 1000
    scores = np.random.default_rng(0).random(2000) < 0.9
    bound = audit_scores(scores, members, method=method, threshold=Fixed(guesses=guesses))
    assert abs(bound.details["correct"] - bound.details["guesses"] / 2) < 4.0 * np.sqrt(2000) / 2
    assert bound.epsilon < 0.2


@pytest.mark.parametrize("method", ONE_RUN)
@pytest.mark.parametrize("odd", [0, 1, 5])
def test_a_score_that_is_the_same_in_all_rows_but_a_few_makes_an_estimate(method, odd):
    """Where few tables are possible, what is drawn from the data decides for a whole setting."""
    members = np.random.default_rng(0).random(200) < 0.5
    scores = np.arange(200) < odd
    for rule in (Fixed(guesses=0.5), Bonferroni(), Split()):
        bound = audit_scores(scores, members, method=method, threshold=rule)
        assert bound.claim == "estimate"
        assert any("so few values" in sentence for sentence in bound.assumptions)
    assert audit_scores(scores, members, method=method, threshold=Fixed(0.5)).claim != "estimate"
    halves = np.arange(200) % 2
    assert audit_scores(halves, members, method=method).claim == "lower bound"


@pytest.mark.parametrize("strategy", [Split(), Bonferroni(), MultiSplit(3), Sweep()])
def test_constant_scores_prove_nothing_between_two_worlds(strategy):
    members = np.arange(100) < 50
    assert (
        audit_scores(np.zeros(100), members, method="two-worlds", threshold=strategy).epsilon == 0.0
    )


def test_a_sweep_between_two_worlds_finds_the_best_of_all_cuts():
    scores = gaussian(np.random.default_rng(0), 1.5, 200)
    bound = audit_scores(scores.values, scores.members, method="two-worlds", threshold=Sweep())
    best = 0.0
    for cut in scores.values:
        above = scores.values >= cut
        counts = (above & ~scores.members).sum(), (~above & scores.members).sum()
        here = two_worlds(counts[0], (~scores.members).sum(), counts[1], scores.members.sum())
        best = max(best, here.epsilon)
    assert bound.epsilon == pytest.approx(best, rel=1e-12)


def test_a_sweep_in_one_run_finds_the_best_percentage():
    scores = gaussian(np.random.default_rng(0), 1.5, 200)
    bound = audit_scores(scores.values, scores.members, method="one-run-fdp", threshold=Sweep())
    alone = [
        audit_scores(
            scores.values,
            scores.members,
            method="one-run-fdp",
            threshold=Fixed(guesses=percent / 100),
        ).epsilon
        for percent in range(1, 101)
    ]
    assert bound.epsilon == pytest.approx(max(alone), rel=1e-7)
    assert bound.details["candidates"] == 100


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_every_strategy_says_what_it_did(method, strategy):
    scores = gaussian(np.random.default_rng(3), 2.0, 400)
    bound = audit_scores(scores.values, scores.members, method=method, threshold=strategy)
    swept = isinstance(strategy, Sweep)
    assert bound.claim == ("estimate" if swept else "lower bound")
    assert bound.confidence == (None if swept else 0.95)
    assert bound.details["threshold"] == repr(strategy)
    assert bound.details["candidates"] >= 1
    assert isinstance(bound.epsilon, float)
    assert bound.epsilon > 0.0
    assert all(sentence.endswith(".") for sentence in bound.assumptions)
    assert any("without correction" in text for text in bound.assumptions) == swept
    beforehand = isinstance(strategy, Fixed) or isinstance(
        strategy.__dict__.get("candidates"), tuple
    )
    assert any("fixed before" in text for text in bound.assumptions) == beforehand
    assert str(bound).startswith("ε ≈" if swept else "ε ≥")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_the_same_scores_give_the_same_bound(method, strategy):
    scores = gaussian(np.random.default_rng(3), 2.0, 100)
    twice = [
        audit_scores(scores.values, scores.members, method=method, threshold=strategy).epsilon
        for _ in range(2)
    ]
    assert twice[0] == twice[1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_more_confidence_never_proves_more_with_a_rule_that_stays(method, strategy):
    scores = gaussian(np.random.default_rng(3), 2.0, 400)
    values = [
        audit_scores(
            scores.values, scores.members, method=method, threshold=strategy, confidence=confidence
        ).epsilon
        for confidence in (0.8, 0.99)
    ]
    if strategy != Split():  # which may choose another rule
        assert values[1] <= values[0]


@pytest.mark.parametrize("method", METHODS)
def test_the_default_is_the_best_of_ten_rules_and_no_draw(method):
    scores = gaussian(np.random.default_rng(3), 2.0, 400)
    bound = audit_scores(scores.values, scores.members, method=method)
    assert bound.details["threshold"] == repr(Bonferroni(10))
    assert bound.details["candidates"] == 10
    assert "chosen_on" not in bound.details
    assert bound.delta == 1e-5


def test_a_split_is_no_permutation_that_a_seed_could_repeat():
    """Members drawn by the split's own seed fall into both parts, half and half."""
    members = np.isin(np.arange(400), np.random.default_rng(0).permutation(400)[:200])
    scores = Scores(np.random.default_rng(3).normal(size=400), members)
    first, second = OneRunGame(one_run).divide(scores, Split(0.5, seed=0))
    assert 70 < first.members.sum() < 130
    assert first.members.sum() + second.members.sum() == 200


# orders, ties, seeds


def shuffled_audits(values, members, **options):
    """Audit the same rows in four orders."""
    rng = np.random.default_rng(5)
    orders = [np.arange(len(values)), np.argsort(members), np.argsort(-values)]
    for order in [*orders, rng.permutation(len(values))]:
        yield audit_scores(values[order], members[order], **options)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize("method", ["one-run", "one-run-fdp", "two-worlds"])
def test_the_order_of_the_rows_does_not_matter(method, strategy):
    if method == "two-worlds" and isinstance(strategy, Fixed):
        strategy = Fixed(1.0)
    rng = np.random.default_rng(4)
    members = rng.random(600) < 0.5
    values = rng.integers(0, 3, 600) + 1.0 * members
    found = list(shuffled_audits(values, members, method=method, threshold=strategy))
    assert len({bound.epsilon for bound in found}) == 1
    assert len({bound.details["key"] for bound in found}) == 1
    again = audit_scores(values, members, method=method, threshold=strategy)
    assert str(again) == str(found[0])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize("method", ["one-run", "one-run-fdp", "two-worlds"])
def test_the_unit_of_a_score_does_not_matter(method, strategy):
    """Who tries sixty units would else find in one of them what is not there."""
    if isinstance(strategy, Fixed) or "Fixed" in repr(strategy):
        pytest.skip("a fixed cut has the unit of the score")
    rng = np.random.default_rng(4)
    members = rng.random(600) < 0.5
    values = rng.integers(1, 4, 600) + 1.0 * members
    found = [
        audit_scores(scale(values), members, method=method, threshold=strategy)
        for scale in (np.copy, np.log, np.exp, lambda score: 3.0 * score - 7.0)
    ]
    assert len({bound.epsilon for bound in found}) == 1
    assert len({bound.details["key"] for bound in found}) == 1


def test_who_lists_the_members_first_gains_nothing_from_ties():
    """Where nine in ten score 1, a shuffle fixed beforehand exceeds 0 in a third of runs."""
    rng = np.random.default_rng(0)
    exceeding = 0
    for _ in range(400):
        members = np.sort(rng.random(200) < 0.5)[::-1]
        values, rule = rng.random(200) < 0.9, Fixed(guesses=1.0)
        bound = audit_scores(values, members, method="one-run", delta=0.0, threshold=rule)
        exceeding += bound.epsilon > 0.0
    assert exceeding <= binom.isf(1e-4, 400, 0.05)


def test_rows_that_are_repeated_make_an_estimate():
    rng = np.random.default_rng(0)
    values, members = rng.normal(size=400), rng.random(400) < 0.5
    once = audit_scores(values, members, method="one-run")
    assert once.claim == "lower bound"
    for times in (2, 5, 20):
        copies = np.repeat(values, times), np.repeat(members, times)
        bound = audit_scores(*copies, method="one-run", threshold=Fixed(guesses=1.0))
        assert bound.claim == "estimate"
        assert "repeated" in str(bound)


def test_exactly_half_is_noticed_and_a_draw_of_fixed_size_is_an_estimate():
    members = np.arange(1000) % 2 == 0
    values = np.random.default_rng(0).normal(3.0 * members)
    bound = audit_scores(values, members, method="one-run")
    assert bound.claim == "lower bound"
    assert "Exactly half of members are 1. Fair coins land there with chance 0.025" in str(bound)
    assert "notice" in bound._repr_html_()
    declared = audit_scores(values, members, method="one-run", fixed_size=True)
    assert (declared.claim, declared.epsilon) == ("estimate", bound.epsilon)
    assert "was fixed in advance" in str(declared)
    uneven = audit_scores(values[1:], members[1:], method="one-run")
    assert not uneven.notices
    worlds = audit_scores(values, members, method="two-worlds", fixed_size=True)
    assert worlds.claim == "lower bound"
    assert not worlds.notices


def test_a_score_that_is_turned_round_is_noticed():
    rng = np.random.default_rng(0)
    members = rng.random(501) < 0.5
    losses = rng.normal(-2.0 * members)
    bound = audit_scores(losses, members, method="one-run")
    assert bound.epsilon == 0.0
    assert any("needs its sign turned" in notice for notice in bound.notices)
    assert not audit_scores(-losses, members, method="one-run").notices


def test_a_split_of_two_worlds_leaves_both_in_both_parts():
    members = np.arange(100) < 4
    game = TwoWorldsGame("gaussian", 1e-5)
    first, second = game.divide(Scores(np.arange(100.0), members), Split(0.5))
    assert first.members.sum() == second.members.sum() == 2
    assert sorted([*first.values, *second.values]) == list(range(100))


def test_the_midpoint_lies_between_the_means_of_the_first_part():
    scores = gaussian(np.random.default_rng(3), 2.0, 1000)
    strategy = Split(0.2, rule="midpoint")
    bound = audit_scores(scores.values, scores.members, method="two-worlds", threshold=strategy)
    first, _ = TwoWorldsGame("gaussian", 1e-5).divide(scores, strategy)
    means = [np.mean(first.values[first.members == member]) for member in (True, False)]
    assert bound.details["cut"] == pytest.approx(np.mean(means))
    assert bound.details["negatives"] + bound.details["positives"] == 800


def test_the_median_of_many_splits_is_reached_by_at_least_half_of_them():
    scores = gaussian(np.random.default_rng(3), 2.0, 400)
    for splits in (1, 4, 5):
        strategy = MultiSplit(splits)
        bound = audit_scores(scores.values, scores.members, method="one-run", threshold=strategy)
        alone = [
            audit_scores(
                scores.values, scores.members, method="one-run", threshold=split, confidence=0.975
            ).epsilon
            for split in strategy.each()
        ]
        assert bound.details["split_epsilons"].tolist() == alone
        assert bound.epsilon == sorted(alone, reverse=True)[(splits + 1) // 2 - 1]
        assert bound.confidence == 0.95


def test_bonferroni_pays_for_each_rule():
    scores = gaussian(np.random.default_rng(3), 2.0, 400)
    rules = Fixed(guesses=0.1), Fixed(guesses=0.5)
    both = audit_scores(
        scores.values, scores.members, method="one-run", threshold=Bonferroni(rules)
    )
    alone = [
        audit_scores(
            scores.values, scores.members, method="one-run", threshold=rule, confidence=0.975
        ).epsilon
        for rule in rules
    ]
    assert both.epsilon == pytest.approx(max(alone), rel=1e-9)
    assert both.details["candidates"] == 2


def test_families_reach_the_theorem():
    scores = response(np.random.default_rng(3), 2.0, 1000)

    def epsilon(method, family):
        return audit_scores(
            scores.values,
            scores.members,
            method=method,
            threshold=Fixed(0.5),
            family=family,
        )

    limits, gauss = epsilon("two-worlds", "approx"), epsilon("two-worlds", "gaussian")
    assert "clopper-pearson" in limits.method
    assert gauss.epsilon > limits.epsilon == epsilon("two-worlds", None).epsilon
    pure = epsilon("one-run-fdp", PureDP)
    assert pure.epsilon == epsilon("one-run-fdp", "pure").epsilon
    assert epsilon("one-run-fdp", None).details["mu"] > 0.0


def test_a_shuffled_membership_list_is_joined_by_id():
    rng = np.random.default_rng(0)
    scores = gaussian(rng, 3.0, 500)
    ids = np.array([f"row-{place}" for place in range(500)])
    order = rng.permutation(500)
    right = audit_scores(scores.values, scores.members, method="one-run")
    lost = audit_scores(scores.values, scores.members[order], method="one-run")
    joined = audit_scores(
        scores.values, scores.members[order], method="one-run", ids=ids, member_ids=ids[order]
    )
    assert joined.epsilon == right.epsilon > 1.0
    assert lost.epsilon < 0.3


def test_where_nothing_is_proved_the_rule_with_the_fewest_errors_is_taken():
    scores = Scores([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1, 0, 0, 1, 0, 1])
    tried = TwoWorldsGame("gaussian", 1e-5).every(scores)
    place, bound = tried.best(0.95)
    assert bound.epsilon == 0.0
    assert (place, tried.settings[0]) == (0, 3.0)
    tried = OneRunGame(one_run).every(scores)
    place, bound = tried.best(0.999)
    assert bound.epsilon == 0.0
    assert tried.settings[place] == 1.0


def test_one_rule_set_by_ranks_is_the_highest_score_without_the_canary():
    scores = Scores([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0, 0, 1, 0, 1, 1])
    rules = TwoWorldsGame("gaussian", 1e-5).preset(scores, 1)
    details = rules.bound(0.95).details
    assert rules.cuts.tolist() == [3.0]
    assert (details["false_positives"].tolist(), details["false_negatives"].tolist()) == ([0], [1])


def test_the_coins_of_one_run_are_among_the_assumptions():
    scores = gaussian(np.random.default_rng(3), 2.0, 400)
    bound = audit_scores(scores.values, scores.members, method="one-run")
    assert COINS in bound.assumptions


# coverage

EXAMPLES = 60
SIMULATIONS = 800


def tabled(theorem):
    """Look the bound of every possible count up, so that thousands of games cost little."""

    @cache
    def table(examples, confidence):
        guesses, correct = np.meshgrid(np.arange(examples + 1), np.arange(examples + 1))
        return theorem(
            np.minimum(correct, guesses), guesses, examples, confidence=confidence
        ).epsilon

    def look_up(correct, guesses, examples, *, confidence):
        epsilon = table(int(np.max(examples)), confidence)[correct, guesses]
        return Bound(epsilon, 0.0, confidence, "lower bound", "add/remove", "table")

    return look_up


PURE = OneRunGame(tabled(partial(one_run, delta=0.0)))
GAUSSIAN = OneRunGame(tabled(partial(one_run_fdp, delta=1e-5)))


def share_above(game, strategy, draw, truth, simulations=SIMULATIONS):
    rng = np.random.default_rng(12345)
    found = [audit(game, draw(rng), strategy, 0.95).epsilon for _ in range(simulations)]
    return np.mean(np.array(found) > truth)


def within(share, simulations=SIMULATIONS, level=0.05):
    """Whether a share could come from a rate of `level`, but for one chance in 1e6."""
    return stats.binom.sf(round(share * simulations) - 1, simulations, level) > 1e-6


def beyond(share, simulations=SIMULATIONS, level=0.05):
    """Whether a share cannot come from a rate of `level`, but for one chance in 1e6."""
    return not within(share, simulations, level)


@pytest.mark.parametrize("strategy", [*VALID, *SHARES], ids=repr)
@pytest.mark.parametrize(
    ("game", "draw", "truth"),
    [
        pytest.param(PURE, partial(response, epsilon=0.0, examples=EXAMPLES), 0.0, id="null"),
        pytest.param(PURE, partial(response, epsilon=1.0, examples=EXAMPLES), 1.0, id="response"),
        pytest.param(
            GAUSSIAN,
            partial(gaussian, mu=0.3, examples=EXAMPLES),
            GaussianDP(0.3).epsilon(1e-5),
            id="gaussian",
        ),
    ],
)
def test_one_run_is_covered_however_the_guesses_are_chosen(game, draw, truth, strategy):
    number = SIMULATIONS // 4 if isinstance(strategy, MultiSplit) else SIMULATIONS
    assert within(share_above(game, strategy, draw, truth, number), number)


@pytest.mark.parametrize("strategy", VALID, ids=repr)
@pytest.mark.parametrize("mu", [0.0, 1.0])
@pytest.mark.parametrize("method", ["gaussian", "clopper-pearson"])
def test_two_worlds_are_covered_however_the_cut_is_chosen(method, mu, strategy):
    game, draw = TwoWorldsGame(method, 1e-5), partial(gaussian, mu=mu, examples=100)
    number = 40 if isinstance(strategy, MultiSplit) else 200
    share = share_above(game, strategy, draw, GaussianDP(mu).epsilon(1e-5), number)
    assert within(share, number)


def test_a_sweep_in_one_run_exceeds_its_level_on_a_null_attack():
    draw = partial(response, epsilon=0.0, examples=EXAMPLES)
    for game in (PURE, GAUSSIAN):
        share = share_above(game, Sweep(), draw, 0.0)
        assert beyond(share)
        assert share > 0.1


@pytest.mark.parametrize("paper_convention", [False, True])
def test_a_sweep_between_two_worlds_exceeds_its_level(paper_convention):
    """25,000 runs, as SUB has them; every cut at a run with the canary, best μ."""
    runs, mu, rng = 12_500, 2.2, np.random.default_rng(0)
    errors = np.arange(runs + 1)
    limits = two_worlds(errors, runs, 0, 1, paper_convention=paper_convention)
    quantile = -ndtri(limits.details["fpr_upper"])
    found = []
    for _ in range(100):
        absent, present = np.sort(rng.normal(0.0, size=runs)), np.sort(rng.normal(mu, size=runs))
        false_positives = runs - np.searchsorted(absent, present)
        found.append(np.max(quantile[false_positives] + quantile[:-1]))
    exceeding = np.mean(np.array(found) > mu)
    assert beyond(exceeding, 100, level=0.10 if paper_convention else 0.05)


def test_the_best_of_many_seeds_is_a_sweep_too():
    def best(rng):
        scores = response(rng, 0.0, EXAMPLES)
        return max(audit(PURE, scores, split, 0.95).epsilon for split in MultiSplit(15).each())

    rng = np.random.default_rng(0)
    assert beyond(np.mean([best(rng) > 0.0 for _ in range(100)]), 100)


def test_several_rules_without_bonferroni_exceed_the_level():
    def best(rng):
        scores = response(rng, 0.0, EXAMPLES)
        _, bound = PURE.preset(scores, 10).best(0.95)
        return bound.epsilon

    rng = np.random.default_rng(0)
    assert beyond(np.mean([best(rng) > 0.0 for _ in range(SIMULATIONS)]))


def test_counting_on_the_part_that_chose_exceeds_the_level():
    def best(rng):
        first, _ = PURE.divide(response(rng, 0.0, 2 * EXAMPLES), Split())
        place, _ = PURE.every(first).best(0.95)
        rule = PURE.as_rule(PURE.every(first).settings[place])
        return PURE.single(first, rule).best(0.95)[1].epsilon

    rng = np.random.default_rng(0)
    assert beyond(np.mean([best(rng) > 0.0 for _ in range(SIMULATIONS)]))


@pytest.mark.parametrize("tied", [False, True])
def test_a_rank_within_one_world_keeps_each_limit_at_its_own_level(tied):
    """The share beyond the j-th highest score follows a beta law: exact without ties."""
    rng, game, games = np.random.default_rng(0), TwoWorldsGame("gaussian", 1e-5), 1500
    failed = np.zeros(6)
    for _ in range(games):
        members = np.arange(120) < 60
        values = rng.normal(1.0 * members)
        rules = game.preset(Scores(np.floor(2 * values) if tied else values, members), 6)
        details = rules.bound(0.6).details  # 0.2 for each limit
        # above a score of the one world, and below one of the other: where floors tie, the cut
        # lies at the next multiple of a half, or at its own
        above, below = (rules.cuts[:3] + 1) / 2 if tied else rules.cuts[:3], rules.cuts[3:]
        failed[:3] += stats.norm.sf(above) > details["fpr_upper"][:3]
        failed[3:] += stats.norm.cdf((below / 2 if tied else below) - 1) > details["fnr_upper"][3:]
    for share in failed / games:
        assert within(share, games, level=0.2)
        assert tied or within(1 - share, games, level=0.8)


def test_the_gaussian_family_is_no_family_for_randomised_response():
    game = OneRunGame(tabled(partial(one_run_fdp, delta=1e-5)))
    pure = OneRunGame(tabled(partial(one_run_fdp, family="pure", delta=0.0)))
    draw = partial(response, epsilon=4.0, examples=200)
    assert share_above(game, Fixed(guesses=1.0), draw, 4.0, 200) > 0.3
    assert within(share_above(pure, Fixed(guesses=1.0), draw, 4.0, 200), 200)


# the border

GOOD = {"scores": np.arange(20.0), "members": np.arange(20) % 2, "method": "one-run"}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scores": np.full(20, np.nan)}, ValueError, "scores must hold finite numbers, got nan"),
        ({"scores": ["a"] * 20}, TypeError, "scores must be an array of numbers"),
        ({"scores": np.zeros((20, 1))}, ValueError, "scores must have 1 dimension"),
        ({"scores": np.zeros(19)}, ValueError, "scores has 19, members has 20"),
        ({"members": np.arange(20)}, ValueError, "members must hold 0, 1 only, got 2"),
        ({"method": "many-runs"}, ValueError, "method must be one of 'one-run'.* 'many-runs'"),
        ({"threshold": 0.5}, TypeError, "threshold must be Fixed, .* got 0.5"),
        ({"threshold": Fixed}, TypeError, "threshold must be Fixed, .* got <class"),
        ({"threshold": Fixed(guesses=21)}, ValueError, "guesses must be at most .* 20, got 21"),
        ({"family": "gaussian"}, ValueError, "family must be None with method='one-run'"),
        ({"family": "laplace", "method": "one-run-fdp"}, ValueError, "family must be .*'laplace'"),
        ({"family": "pure", "method": "two-worlds"}, ValueError, "family must be one of .*'pure'"),
        ({"delta": 1.0}, ValueError, r"delta must lie in \[0, 1\), got 1.0"),
        ({"delta": -1, "method": "two-worlds"}, ValueError, r"delta must lie in \[0, 1\), got -1"),
        (
            {"delta": 0, "method": "two-worlds", "family": "gaussian"},
            ValueError,
            "delta must be above 0 under the Gaussian assumption, got 0",
        ),
        ({"delta": 0.0, "method": "one-run-fdp"}, ValueError, "delta must be above 0 under the G"),
        ({"confidence": 0.0}, ValueError, "confidence must lie strictly between 0 and 1, got 0.0"),
        ({"confidence": 2, "threshold": Sweep()}, ValueError, "confidence must lie .* got 2"),
        ({"ids": np.arange(20)}, ValueError, "ids and member_ids must be given together"),
        ({"member_ids": np.arange(20)}, ValueError, "ids and member_ids must be given together"),
        (
            {"ids": np.arange(20), "member_ids": np.arange(1, 21)},
            ValueError,
            "ids and member_ids must name the same examples, got 0 on one side only",
        ),
        (
            {"method": "two-worlds", "threshold": Fixed(guesses=0.5)},
            ValueError,
            "threshold must be a cut with method='two-worlds'",
        ),
        (
            {"method": "two-worlds", "members": np.zeros(20)},
            ValueError,
            "members must hold runs of both worlds .* got 0 members among 20 runs",
        ),
        ({"threshold": Split(0.01)}, ValueError, "fraction must leave examples .* got 0.01 of 20"),
        (
            {"method": "two-worlds", "threshold": Split(0.99)},
            ValueError,
            "fraction must leave examples .* got 0.99 of 10, 10",
        ),
        (
            {"threshold": Split(0.05, rule="midpoint")},
            ValueError,
            "fraction must leave members and non-members to choose a midpoint on, got 0.05",
        ),
    ],
)
def test_bad_input_is_refused_by_name(change, error, message):
    with pytest.raises(error, match=message):
        audit_scores(**(GOOD | change))


@pytest.mark.parametrize("method", ONE_RUN)
def test_membership_that_no_coin_can_have_drawn_is_refused(method):
    members = np.arange(1000) < 900
    with pytest.raises(ValueError, match=r"members must come from .* coins .* got 900 members"):
        audit_scores(np.arange(1000.0), members, method=method)
    assert audit_scores(np.arange(1000.0), members, method="two-worlds").epsilon >= 0.0
