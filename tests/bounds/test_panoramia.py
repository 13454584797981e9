"""PANORAMIA: two lower bounds that hold, and a difference that is no bound at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import expit, logit
from scipy.stats import beta, binom

from auditkit.bounds import panoramia as module
from auditkit.bounds.one_run import worst_chance
from auditkit.bounds.panoramia import PanoramiaEstimate, panoramia, panoramia_ceiling

# The share of simulations that exceed the truth may pass the level by chance: this often at most.
FLUKE = 1e-6


def tie(guesses, correct, examples, members):
    """Scores with one threshold apart from the lowest: `correct` of `guesses` above it are real."""
    scores = np.r_[np.ones(guesses), np.zeros(examples - guesses)]
    truth = np.zeros(examples, dtype=bool)
    truth[:correct] = True
    truth[guesses : guesses + members - correct] = True
    return scores, truth


def scan(scores, members, level, failures=0.0):
    """The bound as the paper states it: at each threshold, by bisection over the exact tail."""
    thresholds = np.unique(scores)
    best = 0.0
    for threshold in thresholds:
        guessed = scores >= threshold
        r, v = guessed.sum(), members[guessed].sum()
        low, high = 0.0, 30.0
        if v == 0 or worst_tail(0.0, r, v, failures) > level / len(thresholds):
            continue
        for _ in range(60):
            middle = (low + high) / 2
            if worst_tail(middle, r, v, failures) <= level / len(thresholds):
                low = middle
            else:
                high = middle
        best = max(best, low)
    return best


def worst_tail(log_odds, r, v, failures):
    tail = binom.sf(v - 1, r, expit(log_odds))
    if failures == 0.0:
        return tail
    back = np.arange(1, v + 1)
    steps = (binom.sf(v - back - 1, r, expit(log_odds)) - tail) / back
    return tail + failures * steps.max()


def world(rng, examples, c, epsilon=0.0, share=0.5):
    """Examples, and what an attack may see of them, at a known c and ε.

    A mark that real examples carry with probability `share` is e^c times rarer among generated
    ones. The model shows a bit that is e^ε times as likely to be right as wrong. Both are hidden
    under a little noise that breaks ties and means nothing.
    """
    members = rng.random(examples) < 0.5
    mark = rng.random(examples) < np.where(members, share, share * np.exp(-c))
    shown = np.where(rng.random(examples) < expit(epsilon), members, ~members)
    noise = rng.random(examples)
    return members, mark, shown, noise


# Against a slow reference


@pytest.mark.parametrize("examples", [1, 2, 7, 60])
@pytest.mark.parametrize("levels", [3, 1000])
@pytest.mark.parametrize("slack", [0.0, 1e-5, 1e-3])
def test_the_best_threshold_is_that_of_a_scan(examples, levels, slack):
    rng = np.random.default_rng(examples)
    members = rng.random(examples) < 0.5
    scores = np.round(levels * (members + rng.normal(0, 0.3, examples)))
    result = panoramia(scores, scores, members, closeness_slack=slack, confidence=0.9)
    slow = scan(scores, members, 0.05, 2 * examples * slack)
    assert result.c_lower == pytest.approx(slow, abs=1e-9)
    assert result.c_plus_epsilon_lower == result.c_lower


def test_one_threshold_gives_the_clopper_pearson_bound():
    scores, members = tie(4_000, 3_720, 10_000, 5_000)
    result = panoramia(scores, scores, members)
    expected = logit(beta.ppf(0.025 / 2, 3_720, 281))
    assert result.c_lower == pytest.approx(expected, rel=1e-12)
    assert result.details["attack_guesses"] == 4_000
    assert result.details["attack_correct"] == 3_720
    assert result.details["attack_threshold"] == 1.0
    assert result.details["attack_thresholds"] == 2


@pytest.mark.parametrize(
    ("slack", "expected"), [(0, 2.46), (1e-5, 2.46), (1e-4, 2.40), (1e-3, 1.09)]
)
def test_slack_lowers_the_bound_as_it_does_by_hand(slack, expected):
    scores, members = tie(4_000, 3_720, 10_000, 5_000)
    # two thresholds share the level, so that twice 0.025 leaves 0.025 for the one that counts
    result = panoramia(scores, scores, members, closeness_slack=slack, confidence=0.9)
    assert result.c_lower == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("guesses", [1, 2, 5, 30])
@pytest.mark.parametrize("log_odds", [0.0, 1.3, 4.0])
@pytest.mark.parametrize("failures", [0.01, 0.3, 0.9])
def test_the_worst_failures_are_those_of_the_linear_program(guesses, log_odds, failures):
    """Over all laws of the number of failures with the given mean, on 0 to m."""
    mean = int(guesses * expit(log_odds))
    for correct in range(mean + 1, guesses + 1):  # below, no test rejects
        numbers = np.arange(guesses + 1)
        gain = binom.sf(correct - numbers - 1, guesses, expit(log_odds))
        program = linprog(
            -gain, A_ub=[numbers], b_ub=[failures], A_eq=[np.ones(guesses + 1)], b_eq=[1.0]
        )
        for chance in (worst_chance, worst_chance.py_func):
            closed = chance(correct, guesses, failures, log_odds)
            assert closed == pytest.approx(-program.fun, abs=1e-11)


@pytest.mark.parametrize("failures", [1e-3, 0.05, 5.0])
def test_the_compiled_search_does_what_its_source_says(failures):
    rng = np.random.default_rng(5)
    correct = rng.integers(1, 40, 30)
    guesses = correct + rng.integers(0, 20, 30)
    bounds = logit(beta.ppf(0.01, correct, guesses - correct + 1))
    arguments = (bounds, guesses, correct, np.arange(30), 0.01, failures)
    fast, slow = (
        search(*arguments)
        for search in (module._best_with_failures, module._best_with_failures.py_func)
    )
    assert fast[1] == slow[1]
    assert fast[0] == pytest.approx(slow[0], rel=1e-12, abs=1e-12)


# Properties

CASE = st.tuples(st.integers(1, 60), st.integers(0, 2**32 - 1), st.sampled_from([2, 5, 10**6]))


def drawn(case):
    examples, seed, levels = case
    rng = np.random.default_rng(seed)
    members = rng.random(examples) < 0.5
    baseline, attack = (
        np.round(levels * (members + rng.normal(0, spread, examples))) for spread in (2.0, 0.4)
    )
    return baseline, attack, members


@settings(deadline=None, max_examples=60)
@given(CASE, st.floats(1e-8, 1e-2), st.floats(0.5, 0.999))
def test_more_slack_more_delta_and_more_confidence_never_raise_a_bound(case, slack, confidence):
    plain = panoramia(*drawn(case), confidence=confidence)
    relaxed = panoramia(*drawn(case), closeness_slack=slack, confidence=confidence)
    approximate = panoramia(*drawn(case), delta=slack, confidence=confidence)
    surer = panoramia(*drawn(case), confidence=0.5 + confidence / 2)
    for other in (relaxed, surer):
        assert other.c_lower <= plain.c_lower + 1e-9
        assert other.c_plus_epsilon_lower <= plain.c_plus_epsilon_lower + 1e-9
    assert approximate.c_lower == plain.c_lower
    assert approximate.c_plus_epsilon_lower <= plain.c_plus_epsilon_lower + 1e-9


@settings(deadline=None, max_examples=60)
@given(CASE)
def test_a_bound_stays_below_the_ceiling_and_above_zero(case):
    result = panoramia(*drawn(case))
    # with ties there are fewer thresholds to pay for, perhaps one
    most = module._ceiling(result.details["members"], 1, 0.025)
    for value in (result.c_lower, result.c_plus_epsilon_lower):
        assert 0.0 <= value <= most
    assert result.epsilon == max(0.0, result.details["difference"])


@settings(deadline=None, max_examples=40)
@given(CASE, st.integers(0, 2**32 - 1), st.floats(-5, 5))
def test_neither_order_nor_scale_of_the_scores_matters(case, seed, shift):
    baseline, attack, members = drawn(case)
    order = np.random.default_rng(seed).permutation(len(members))
    there = panoramia(baseline, attack, members)
    back = panoramia(3 * baseline[order] + shift, attack[order], members[order].astype(int))
    assert (there.c_lower, there.c_plus_epsilon_lower) == (back.c_lower, back.c_plus_epsilon_lower)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200), st.data())
def test_one_more_right_guess_never_lowers_the_bound(guesses, data):
    correct = data.draw(st.integers(0, guesses - 1))
    slack = data.draw(st.sampled_from([0.0, 1e-4]))
    lower = [
        module._best_threshold(*tie(guesses, v, 400, 200), 0.05, slack).lower
        for v in (correct, correct + 1)
    ]
    assert lower[0] <= lower[1] + 1e-9


def test_delta_and_slack_add_up_for_the_attack_alone():
    rng = np.random.default_rng(1)
    members = rng.random(400) < 0.5
    scores = np.round(members + rng.normal(0, 0.3, 400))
    gamma, delta = 3e-5, 2e-4
    both = panoramia(scores, scores, members, delta=delta, closeness_slack=gamma)
    weak = panoramia(scores, scores, members, closeness_slack=gamma)
    strong = panoramia(scores, scores, members, closeness_slack=gamma + delta - gamma * delta)
    assert both.c_lower == weak.c_lower
    assert both.c_plus_epsilon_lower == pytest.approx(strong.c_lower, rel=1e-9)


def test_slack_of_next_to_nothing_changes_next_to_nothing():
    rng = np.random.default_rng(2)
    members = rng.random(3_000) < 0.5
    scores = members + rng.normal(0, 0.5, 3_000)
    plain = panoramia(scores, scores, members)
    relaxed = panoramia(scores, scores, members, closeness_slack=1e-15)
    assert relaxed.c_lower == pytest.approx(plain.c_lower, rel=1e-6)
    assert relaxed.details["attack_guesses"] == plain.details["attack_guesses"]


# The ceiling


@pytest.mark.parametrize(
    ("examples", "expected"),
    [
        (500, 3.21),
        (1_000, 3.84),
        (2_000, 4.48),
        (5_000, 5.32),
        (10_000, 5.96),
        (20_000, 6.60),
        (35_000, 7.12),
    ],
)
def test_the_ceiling_is_what_a_perfect_attack_shows(examples, expected):
    scores = np.arange(examples)
    members = scores >= examples // 2
    result = panoramia(scores, scores, members)
    assert panoramia_ceiling(examples) == pytest.approx(expected, abs=0.005)
    assert result.c_lower == pytest.approx(panoramia_ceiling(examples), rel=1e-9)
    assert result.details["ceiling"] == pytest.approx(result.c_lower, rel=1e-9)


def test_the_papers_largest_bounds_lie_above_the_ceiling_it_states():
    assert panoramia_ceiling(10_000) < 5.98 < 6.02
    level = 0.025
    with_5100_members = logit((level / 10_000) ** (1 / 5_100))
    with_1000_thresholds = logit((level / 1_000) ** (1 / 5_000))
    assert (with_5100_members, with_1000_thresholds) == pytest.approx((5.98, 6.16), abs=0.005)


def test_a_few_examples_prove_nothing():
    for examples in (1, 2, 3, 10):
        assert panoramia_ceiling(examples) == 0.0


def test_the_ceiling_rises_with_examples_and_falls_with_confidence():
    ceilings = [panoramia_ceiling(m) for m in (20, 50, 500, 10**6, 10**9)]
    assert ceilings == sorted(ceilings)
    assert panoramia_ceiling(500, 0.5) > panoramia_ceiling(500, 0.99)


# Coverage


def share_above(simulate, truth, runs, seed):
    rng = np.random.default_rng(seed)
    return sum(simulate(rng) > truth + 1e-9 for _ in range(runs))


def allowed(runs, level):
    return binom.isf(FLUKE, runs, level)


@pytest.mark.parametrize(("c", "epsilon"), [(0.0, 0.0), (2.4, 0.0), (0.5, 1.0)])
@pytest.mark.parametrize("slack", [0.0, 1e-9])
def test_the_two_bounds_hold_together_as_often_as_they_say(c, epsilon, slack):
    runs, level = 500, 0.3

    def largest_excess(rng):
        members, mark, shown, noise = world(rng, 400, c, epsilon)
        result = panoramia(
            mark + 0.5 * noise,
            mark + shown + 0.5 * noise,
            members,
            closeness_slack=slack,
            confidence=1 - level,
        )
        return max(result.c_lower - c, result.c_plus_epsilon_lower - c - epsilon)

    assert share_above(largest_excess, 0.0, runs, 7) <= allowed(runs, level)


def test_given_the_attacks_guesses_the_baselines_tail_does_not_hold():
    """PAN-E8: the attack is randomised response, the baseline says "member" always, and c = 0."""
    said, told, epsilon = 100, 70, 2.0
    right = expit(epsilon)
    # members among those that the attack guesses, and among the others
    guessed = binom.pmf(np.arange(told + 1), told, right)
    others = binom.pmf(np.arange(said - told + 1), said - told, 1.0 - right)
    many_members = np.convolve(guessed, others)[60:].sum()
    baselines_tail = binom.sf(59, said, 0.5)
    attacks_tail = binom.sf(told, told, right)  # of more right guesses than guesses
    assert many_members == pytest.approx(0.96, abs=0.005)
    assert baselines_tail + attacks_tail == pytest.approx(0.03, abs=0.005)


def test_a_single_threshold_uses_up_its_share_of_the_level():
    """Tight: with the threshold fixed beforehand the excess is as frequent as allowed."""
    runs, c = 2_000, 1.5

    def bound(rng):
        members, mark, _, _ = world(rng, 400, c)
        return panoramia(mark, mark, members, confidence=0.6).c_lower

    count = share_above(bound, c, runs, 11)
    # 0.2 for the test, over two thresholds; counts are discrete, so somewhat less is used
    assert 0.06 * runs <= count <= allowed(runs, 0.1)


def test_without_the_union_bound_the_best_threshold_exceeds_the_truth_far_too_often():
    runs, c, m = 400, 2.4, 1_000
    rng = np.random.default_rng(3)
    excess = 0
    for _ in range(runs):
        members, mark, _, noise = world(rng, m, c)
        thresholds = m
        # the level is handed out m times over: as if each threshold were the only one
        bare = module._best_threshold(mark + noise, members, 0.025 * thresholds, 0.0).lower
        excess += bare > c
    assert excess > 0.08 * runs
    assert excess > allowed(runs, 0.025)


def test_slack_is_needed_where_closeness_fails_on_a_few_examples():
    """A share γ of the real examples that the generator never makes breaks c-closeness."""
    gamma, c, m, runs = 0.1, 0.5, 300, 400

    def simulate(slack, rng):
        members, mark, _, _ = world(rng, m, c, share=1 - gamma)
        telling = members & (rng.random(m) < gamma)
        scores = np.where(telling, 2.0, mark)
        return panoramia(scores, scores, members, closeness_slack=slack, confidence=0.6).c_lower

    plain = share_above(lambda rng: simulate(0.0, rng), c, runs, 5)
    relaxed = share_above(lambda rng: simulate(gamma, rng), c, runs, 5)
    assert plain > 0.9 * runs
    assert relaxed <= allowed(runs, 0.2)


def test_the_estimate_exceeds_epsilon_when_the_baseline_is_weak():
    """PAN-11: nothing leaks, and still ε̃ is 1.6, for want of a better baseline."""
    rng = np.random.default_rng(0)
    estimates = []
    for _ in range(30):
        members, mark, _, noise = world(rng, 10_000, 2.4)
        blurred = np.where(rng.random(10_000) < 0.5, mark, rng.random(10_000) < 0.5)
        result = panoramia(blurred + 0.5 * noise, mark + 0.5 * noise, members)
        assert result.claim == "estimate"
        assert result.c_plus_epsilon_lower <= 2.4
        estimates.append(result.epsilon)
    assert min(estimates) > 1.0
    assert np.mean(estimates) == pytest.approx(1.6, abs=0.15)


def test_a_null_attack_proves_nothing():
    rng = np.random.default_rng(4)
    for _ in range(50):
        members = rng.random(300) < 0.5
        result = panoramia(rng.random(300), rng.random(300), members, confidence=0.9999)
        assert result.c_lower == result.c_plus_epsilon_lower == result.epsilon == 0.0


def test_a_baseline_as_good_as_the_attack_leaves_nothing():
    rng = np.random.default_rng(6)
    members = rng.random(500) < 0.5
    scores = members + rng.normal(0, 0.2, 500)
    assert panoramia(scores, scores, members).epsilon == 0.0


# What the result says


def test_the_result_says_that_it_is_an_estimate_and_why():
    rng = np.random.default_rng(8)
    members = rng.random(500) < 0.5
    attack = members + rng.normal(0, 0.2, 500)
    result = panoramia(rng.random(500), attack, members)
    assert isinstance(result, PanoramiaEstimate)
    assert result.claim == "estimate"
    assert result.epsilon > 2
    assert result.epsilon == result.c_plus_epsilon_lower - result.c_lower
    assert result.adjacency == "substitute"
    text = str(result)
    assert text.startswith(f"ε̃ = {result.epsilon:.3f} at δ = 0 (estimate, not a bound")
    assert "95% confidence" in text
    assert "only if the generator's true c were exactly c_lower" in text
    assert all(sentence.endswith(".") for sentence in result.assumptions)
    table = result._repr_html_()
    assert "c + ε is at least" in table
    assert "baseline_guesses" in table
    with pytest.raises(AttributeError):
        result.c_lower = 0.0


def test_slack_brings_an_assumption_of_its_own():
    scores, members = tie(40, 38, 100, 50)
    plain = panoramia(scores, scores, members)
    relaxed = panoramia(scores, scores, members, delta=1e-6)
    assert len(relaxed.assumptions) == len(plain.assumptions) + 1
    assert relaxed.delta == 1e-6


def test_a_worse_attack_than_the_baseline_keeps_its_sign_in_the_details():
    rng = np.random.default_rng(9)
    members = rng.random(500) < 0.5
    result = panoramia(members + rng.normal(0, 0.2, 500), rng.random(500), members)
    assert result.epsilon == 0.0
    assert result.details["difference"] == -result.c_lower < -1


# Limits and numerics


@pytest.mark.parametrize("truth", [0, 1])
@pytest.mark.parametrize("slack", [0.0, 1e-3])
def test_examples_of_one_kind_give_finite_bounds(truth, slack):
    members = np.full(50, truth)
    result = panoramia(np.arange(50), np.ones(50), members, closeness_slack=slack)
    assert np.isfinite([result.epsilon, result.c_lower, result.c_plus_epsilon_lower]).all()
    if truth == 0:
        assert result.epsilon == result.c_lower == 0.0


def test_equal_scores_are_guessed_together():
    members = np.r_[np.ones(50, bool), np.zeros(50, bool)]
    result = panoramia(np.zeros(100), np.zeros(100), members)
    assert result.details["attack_guesses"] == 100
    assert result.details["attack_thresholds"] == 1
    assert result.c_lower == 0.0


@pytest.mark.parametrize(("slack", "level"), [(0.0, 1e-12), (1e-18, 1e-9), (1e-9, 0.05)])
def test_a_million_examples_are_no_trouble(slack, level):
    rng = np.random.default_rng(10)
    members = rng.random(1_000_000) < 0.5
    scores = np.round(members + rng.normal(0, 0.5, 1_000_000), 3)
    result = panoramia(scores, scores, members, closeness_slack=slack, confidence=1 - level)
    assert np.isfinite(result.c_lower)
    assert 0.0 < result.c_lower < result.details["ceiling"]


# Bad input

GOOD = {"baseline_scores": [0.1, 0.2], "attack_scores": [0.3, 0.4], "members": [0, 1]}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("baseline_scores", [0.1, np.nan], ValueError),
        ("baseline_scores", [[0.1, 0.2]], ValueError),
        ("baseline_scores", ["a", "b"], TypeError),
        ("baseline_scores", [0.1], ValueError),
        ("attack_scores", [np.inf, 0.0], ValueError),
        ("attack_scores", [1.0, 2.0, 3.0], ValueError),
        ("members", [0, 2], ValueError),
        ("members", [0, 1, 1], ValueError),
        ("members", [-1, 1], ValueError),
        ("delta", -0.1, ValueError),
        ("delta", 1.0, ValueError),
        ("delta", [0.1, 0.2], TypeError),
        ("closeness_slack", -1e-9, ValueError),
        ("closeness_slack", np.nan, ValueError),
        ("confidence", 1.0, ValueError),
        ("confidence", 0.0, ValueError),
        ("confidence", "high", TypeError),
    ],
)
def test_bad_input_is_refused_by_name(name, value, error):
    with pytest.raises(error, match=name):
        panoramia(**(GOOD | {name: value}))


def test_no_examples_are_refused():
    with pytest.raises(ValueError, match="members must hold at least one example"):
        panoramia([], [], [])


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ((0,), ValueError, "examples"),
        ((10.5,), ValueError, "examples"),
        ((np.inf,), ValueError, "examples"),
        (([10, 20],), TypeError, "examples"),
        ((100, 1.5), ValueError, "confidence"),
    ],
)
def test_the_ceiling_refuses_bad_input_by_name(arguments, error, name):
    with pytest.raises(error, match=name):
        panoramia_ceiling(*arguments)
