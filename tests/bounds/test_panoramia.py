"""PANORAMIA: two lower bounds that hold, and a difference that is no bound at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import beta, binom

from auditkit.bounds.clopper_pearson import lower_limit
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


def scan(scores, members, level, discounted=0):
    """The bound as the paper states it: at each threshold, by bisection over the exact tail."""
    thresholds = np.unique(scores)
    best = 0.0
    for threshold in thresholds:
        guessed = scores >= threshold
        r, v = guessed.sum(), members[guessed].sum() - discounted
        low, high = 0.0, 30.0
        if v <= 0 or binom.sf(v - 1, r, 0.5) > level / len(thresholds):
            continue
        for _ in range(60):
            middle = (low + high) / 2
            if binom.sf(v - 1, r, expit(middle)) <= level / len(thresholds):
                low = middle
            else:
                high = middle
        best = max(best, low)
    return best


def allowance(examples, slack, delta, level):
    """How many guesses are given away, and the level that is left: counted up one by one."""
    missing = told = 0
    while binom.sf(missing, examples, slack / 2) > level / 4:
        missing += 1
    while examples * delta / 2 / (told + 1) > level / 2:
        told += 1
    spent = level / 4 if missing else binom.sf(0, examples, slack / 2)
    spent += level / 2 if told else examples * delta / 2
    return missing + told, level - spent


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
@pytest.mark.parametrize(
    ("slack", "delta"), [(0, 0), (1e-5, 0), (1e-3, 0), (0, 1e-3), (0.01, 0.011)]
)
def test_the_best_threshold_is_that_of_a_scan(examples, levels, slack, delta):
    rng = np.random.default_rng(examples)
    members = rng.random(examples) < 0.5
    scores = np.round(levels * (members + rng.normal(0, 0.3, examples)))
    result = panoramia(scores, scores, members, closeness_slack=slack, delta=delta, confidence=0.9)
    for name, lower, failing in (
        ("baseline", result.c_lower, 0.0),
        ("attack", result.c_plus_epsilon_lower, delta),
    ):
        discounted, level = allowance(examples, slack, failing, 0.05)
        assert result.details[f"{name}_discounted"] == discounted
        assert lower == pytest.approx(scan(scores, members, level, discounted), abs=1e-9)


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
    ("slack", "delta", "discounted", "part"),
    [
        (0, 0, 0, 1),
        (1e-6, 0, 0, 0.9),  # one failure has a chance of 0.005, a tenth of the level
        (1e-5, 0, 1, 0.75),
        (1e-4, 0, 3, 0.75),
        (1e-3, 0, 11, 0.75),
        (0, 1e-6, 0, 0.9),
        (0, 0.9e-5, 1, 0.5),
        (0, 0.911e-3, 182, 0.5),
        (1e-3, 0.911e-3, 193, 0.25),
    ],
)
def test_slack_lowers_the_bound_as_it_does_by_hand(slack, delta, discounted, part):
    scores, members = tie(4_000, 3_720, 10_000, 5_000)
    result = panoramia(scores, scores, members, closeness_slack=slack, delta=delta, confidence=0.9)
    # two thresholds share the level
    expected = logit(beta.ppf(0.025 * part, 3_720 - discounted, 281 + discounted))
    assert result.details["attack_discounted"] == discounted
    assert result.c_plus_epsilon_lower == pytest.approx(expected, abs=1e-4)


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
    members = max(1, result.details["members"])
    most = max(0.0, logit(0.025 ** (1.0 / members))) + 1e-9
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
    slack = data.draw(st.sampled_from([0, 3e-3]))
    lower = []
    for v in (correct, correct + 1):
        scores, members = tie(guesses, v, 400, 200)
        lower.append(panoramia(scores, scores, members, closeness_slack=slack).c_lower)
    assert lower[0] <= lower[1] + 1e-9


def test_delta_and_slack_add_up_for_the_attack_alone():
    rng = np.random.default_rng(1)
    members = rng.random(400) < 0.5
    scores = np.round(members + rng.normal(0, 0.3, 400))
    both, weak, strong = (
        panoramia(scores, scores, members, closeness_slack=gamma, delta=delta)
        for gamma, delta in ((3e-3, 2e-4), (3e-3, 0.0), (0.0, 2e-4))
    )
    assert both.c_lower == weak.c_lower < strong.c_lower
    assert [each.details["baseline_discounted"] for each in (both, weak, strong)] == [3, 3, 0]
    assert [each.details["attack_discounted"] for each in (both, weak, strong)] == [6, 3, 3]
    assert both.c_plus_epsilon_lower < min(weak.c_plus_epsilon_lower, strong.c_plus_epsilon_lower)


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
    with_100_thresholds = logit((level / 100) ** (1 / 5_000))  # as in the authors' code
    found = with_5100_members, with_1000_thresholds, with_100_thresholds
    assert found == pytest.approx((5.98, 6.16, 6.40), abs=0.005)


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
        right = np.cumsum(members[np.argsort(-(mark + noise))])
        # the level is handed out m times over: as if each threshold were the only one
        excess += logit(lower_limit(right, np.arange(1, m + 1), 0.025).max()) > c
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


def failing_generator(rng, examples, c, slack):
    """A share of real examples is never generated; the others are e^c times rarer among those."""
    members = rng.random(examples) < 0.5
    telling = members & (rng.random(examples) < slack)
    common = rng.random(examples) < np.where(members, 1.0, (1.0 - slack) * np.exp(-c))
    return np.where(telling, 2.0, common), members


@pytest.mark.parametrize(
    ("examples", "slack", "c", "typical"),
    [
        (200, 0.05, 1.0, 0.4),
        (500, 0.02, 1.0, 0.65),
        (500, 0.01, 0.0, 0.0),
        (1_000, 1e-3, 1.5, 1.25),
        pytest.param(3_000, 0.01, 0.5, 0.35, marks=pytest.mark.slow),
    ],
)
def test_bounds_hold_where_the_generator_uses_all_its_slack(examples, slack, c, typical):
    runs, level = 2_000, 0.2
    rng = np.random.default_rng(13)
    found = np.empty(runs)
    for run in range(runs):
        scores, members = failing_generator(rng, examples, c, slack)
        result = panoramia(scores, scores, members, closeness_slack=slack, confidence=1 - 2 * level)
        found[run] = result.c_lower
    assert (found > c + 1e-9).sum() <= allowed(runs, level)
    assert np.median(found) >= typical
    assert result.details["baseline_discounted"] <= 10 + examples * slack


@pytest.mark.parametrize(
    ("examples", "group", "chance", "epsilon", "typical"),
    [(600, 40, 0.1, 1.0, 0.45), (2_000, 60, 0.1, 0.5, 0.25), (600, 10, 0.3, 1.0, 0.5)],
)
def test_bounds_hold_where_the_model_fails_for_many_at_once(
    examples, group, chance, epsilon, typical
):
    """Randomised response that now and then publishes who is in one of the groups."""
    runs, level = 2_000, 0.2
    rng = np.random.default_rng(14)
    found = np.empty(runs)
    for run in range(runs):
        members = rng.random(examples) < 0.5
        shown = np.where(rng.random(examples) < expit(epsilon), members, ~members).astype(float)
        if rng.random() < chance:
            first = group * int(rng.integers(examples // group))
            part = slice(first, first + group)
            shown[part] = np.where(members[part], 2.0, -1.0)
        result = panoramia(
            np.zeros(examples),
            shown,
            members,
            delta=chance * group / examples,
            confidence=1 - 2 * level,
        )
        found[run] = result.c_plus_epsilon_lower
    assert (found > epsilon + 1e-9).sum() <= allowed(runs, level)
    assert np.median(found) >= typical
    assert result.c_lower == 0.0


@pytest.mark.parametrize("slack", [1e-6, 1e-5, 1e-4, 1e-3])
def test_ten_thousand_thresholds_leave_a_bound_under_slack(slack):
    """With the failures paid for at each threshold all of these were 0."""
    rng = np.random.default_rng(0)
    members = rng.random(10_000) < 0.5
    baseline, attack = (members + rng.normal(0, spread, 10_000) for spread in (1.2, 0.55))
    plain = panoramia(baseline, attack, members)
    relaxed = panoramia(baseline, attack, members, closeness_slack=slack)
    assert plain.c_lower - 0.2 < relaxed.c_lower < plain.c_lower
    assert plain.epsilon - 0.3 < relaxed.epsilon
    told = panoramia(baseline, attack, members, delta=slack)
    assert told.c_lower == plain.c_lower
    most = {1e-6: 0.02, 1e-5: 0.3, 1e-4: 0.8, 1e-3: 2.0}[slack]
    assert 0.0 < plain.epsilon - told.epsilon < most


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


def test_slack_assumes_nothing_more():
    scores, members = tie(40, 38, 100, 50)
    plain = panoramia(scores, scores, members)
    relaxed = panoramia(scores, scores, members, closeness_slack=1e-6, delta=1e-6)
    assert relaxed.assumptions == plain.assumptions
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
    members = np.full(30, truth)  # fair coins do that, once in a thousand million times
    result = panoramia(np.arange(30), np.ones(30), members, closeness_slack=slack)
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


@pytest.mark.parametrize(("members", "nearer"), [(900, 500), (595, 594), (405, 406), (100, 500)])
def test_a_share_of_members_that_no_fair_coins_draw_is_refused(members, nearer):
    """Null scores would prove c >= 1.8 with 900 members and 100 others."""
    scores = np.random.default_rng(0).random(1_000)
    taken = panoramia(scores, scores, np.arange(1_000) < nearer)
    assert taken.details["members"] == nearer
    with pytest.raises(ValueError, match=rf"members must .* got {members} members among 1000"):
        panoramia(scores, scores, np.arange(1_000) < members)


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
