"""Zero-run audits: the corrections, what they rest on, and where they stop."""

import itertools
import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import betaincinv, expit, logit, ndtri
from scipy.stats import binom

from auditkit.bounds.one_run import one_run, worst_chance
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.poisson_binomial import largest_epsilon, poisson_binomial_tail
from auditkit.bounds.propensity import reject_propensity
from auditkit.bounds.shift_corrections import games_of
from auditkit.bounds.tradeoff import GaussianDP
from auditkit.bounds.zero_run import zero_run, zero_run_bootstrap

CORRECTIONS = ("conditional", "composition", "untampered", "none")
VALID = [
    ("conditional", "gaussian", 1e-5),
    ("conditional", "approx", 0.0),
    ("conditional", "approx", 1e-5),
    ("untampered", "approx", 0.0),
    ("untampered", "approx", 1e-5),
    ("composition", "gaussian", 1e-5),
    ("composition", "approx", 0.0),
    ("composition", "approx", 1e-5),
]


def game(rng, examples, shift, *, epsilon=0.0, spread=False):
    """Members drawn by their propensity, and the posterior log-odds after randomised response."""
    size = shift * (np.abs(rng.normal(size=examples)) if spread else 1.0)
    prior = size * rng.choice([-1, 1], size=examples)
    members = rng.random(examples) < expit(prior)
    truth = np.where(members, 1, -1)
    report = np.where(rng.random(examples) < expit(epsilon), truth, -truth)
    return members, prior, prior + epsilon * report


def confident(posterior, prior, number):
    """Guesses where they are worth most after thinning; ties are broken by position."""
    worth = np.exp(-np.abs(prior)) * expit(np.abs(posterior))
    chosen = np.argsort(-worth, kind="stable")[:number]
    guesses = np.zeros(posterior.size, int)
    guesses[chosen] = np.where(posterior[chosen] > 0, 1, -1)
    return guesses


def most_allowed(runs, level):
    """The number of failures that a rate of `level` exceeds once in a million."""
    return binom.isf(1e-6, runs, level)


# the Poisson-binomial law


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=9), st.integers(-1, 10))
@settings(max_examples=60, deadline=None)
def test_the_tail_is_the_sum_over_all_outcomes(chances, count):
    chances = np.array(chances)
    total = sum(
        np.prod(np.where(outcome, chances, 1 - chances))
        for outcome in itertools.product([0, 1], repeat=len(chances))
        if sum(outcome) >= count
    )
    assert poisson_binomial_tail(chances, count) == pytest.approx(total, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("count", [5000, 5200, 6000, 6780])
def test_the_tail_is_exact_down_to_1e_minus_300(count):
    tail = poisson_binomial_tail(np.full(10_000, 0.5), count)
    assert tail == pytest.approx(binom.sf(count - 1, 10_000, 0.5), rel=1e-9)


@given(
    st.lists(st.floats(0, 6), min_size=1, max_size=40),
    st.integers(0, 41),
    st.sampled_from([1e-12, 1e-3, 0.05, 0.5, 0.9]),
)
@settings(max_examples=80, deadline=None)
def test_the_root_meets_the_level(shifts, count, level):
    shifts = np.array(shifts)
    epsilon = largest_epsilon(shifts, count, level)
    tail = poisson_binomial_tail(expit(epsilon + shifts), count)
    if epsilon > 0.0:
        assert tail == pytest.approx(level, rel=1e-8)
    else:
        assert tail >= level * (1 - 1e-9) or count > shifts.size


@pytest.mark.parametrize("level", [0.9, 0.05, 1e-12, 1e-100])
def test_without_shift_the_root_is_that_of_clopper_and_pearson(level):
    for trials, count in [(1, 1), (200, 150), (10_000, 6000), (10_000, 9990), (10_000, 10_000)]:
        expected = max(0.0, logit(betaincinv(count, trials - count + 1.0, level)))
        found = largest_epsilon(np.zeros(trials), count, level)
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_examples_that_betray_everything_do_not_disturb_the_root():
    shifts = np.append(np.zeros(100), [700.0, 744.0])
    expected = largest_epsilon(np.zeros(100), 80, 0.05)
    assert largest_epsilon(shifts, 82, 0.05) == pytest.approx(expected, rel=1e-11)
    assert largest_epsilon(np.full(5, 744.0), 5, 0.05) == 0.0


# the term for δ


def best_mechanism(examples, guesses, count, epsilon, delta, shifts, *, thinned=True):
    """The largest chance of `count` kept correct guesses under (ε, δ), by linear programming."""
    worlds = list(itertools.product([1, -1], repeat=examples))
    answers = [
        t for t in itertools.product([1, 0, -1], repeat=examples) if np.count_nonzero(t) == guesses
    ]
    keep = (1 + np.exp(-epsilon - np.abs(shifts))) / (1 + np.exp(-epsilon))
    keep = keep if thinned else np.ones(examples)
    gain = np.zeros((len(worlds), len(answers)))
    for (a, world), (b, answer) in itertools.product(enumerate(worlds), enumerate(answers)):
        prior = np.prod(expit(np.array(world) * shifts))
        right = np.array(answer) == np.array(world)
        gain[a, b] = prior * poisson_binomial_tail(keep[right], count)
    pairs = [
        (a, b)
        for a, b in itertools.permutations(range(len(worlds)), 2)
        if np.sum(np.array(worlds[a]) != worlds[b]) == 1
    ]
    # one slack a pair and answer, for the part of the hockey-stick divergence above 0
    width = gain.size + len(pairs) * len(answers)
    rows, limits = [], []
    for place, (a, b) in enumerate(pairs):
        start = gain.size + place * len(answers)
        for j in range(len(answers)):
            row = np.zeros(width)
            row[a * len(answers) + j], row[b * len(answers) + j] = 1, -np.exp(epsilon)
            row[start + j] = -1
            rows.append(row)
            limits.append(0)
        row = np.zeros(width)
        row[start : start + len(answers)] = 1
        rows.append(row)
        limits.append(delta)
    sums = np.kron(np.eye(len(worlds)), np.ones(len(answers)))
    sums = np.hstack([sums, np.zeros((len(worlds), width - gain.size))])
    target = np.append(-gain.ravel(), np.zeros(width - gain.size))
    found = linprog(target, np.array(rows), limits, sums, np.ones(len(worlds)))
    return -found.fun


@pytest.mark.parametrize(("examples", "guesses"), [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_no_mechanism_beats_the_law_of_one_run(examples, guesses, epsilon, shift):
    delta = 0.01
    shifts = shift * np.linspace(1, -0.5, examples)
    for count in range(1, guesses + 1):
        best = best_mechanism(examples, guesses, count, epsilon, delta, shifts)
        weight = delta * np.exp(-np.abs(shifts)).sum()
        bound = worst_chance(count, guesses, weight, epsilon, 1.0)[0]
        assert best <= bound + 1e-9
        if shift == 0.0:
            assert best == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("spare", [0, 1])
def test_no_mechanism_beats_the_untampered_tail_with_guesses_given_away(epsilon, spare):
    delta, shifts = 0.01, np.array([1.0, -0.3, 0.5])
    for count in range(1, 4):
        best = best_mechanism(3, 3, count, epsilon, delta, shifts, thinned=False)
        tail = poisson_binomial_tail(expit(epsilon + np.abs(shifts)), count - spare)
        assert best <= tail + 3 * delta / (spare + 1) + 1e-9


def test_the_printed_term_for_delta_is_too_small_for_small_counts():
    epsilon, delta, p = 0.5, 0.01, expit(0.5)
    best = best_mechanism(2, 2, 1, epsilon, delta, np.zeros(2))
    alpha = binom.pmf(0, 2, p)
    printed = binom.sf(0, 2, p) + alpha * 2 * delta * (1 + np.exp(-epsilon))
    assert best > printed + 0.05 * delta
    assert (best - binom.sf(0, 2, p)) / delta == pytest.approx(0.52, abs=0.01)


# what a bound is made of


@pytest.mark.parametrize("correct", [0, 500, 600, 800, 1000])
def test_without_shift_every_correction_is_one_run(correct):
    members = np.arange(4000) % 2 == 0
    guesses = np.where(members, 1, -1)
    guesses[correct:1000] *= -1
    guesses[1000:] = 0
    half = np.full(4000, 0.5)
    expected = one_run_fdp(correct, 1000, 4000)
    for correction in ("conditional", "composition", "none"):
        bound = zero_run(guesses, members, half, correction=correction)
        assert bound.epsilon == expected.epsilon
        assert bound.details["mu"] == expected.details["mu"]
        assert bound.claim == "lower bound"
    for correction in CORRECTIONS:
        bound = zero_run(guesses, members, half, correction=correction, family="approx", delta=0.0)
        pure = one_run(correct, 1000, 4000, delta=0.0)
        assert bound.epsilon == pytest.approx(pure.epsilon, abs=1e-9)


@pytest.mark.parametrize("correct", [0, 500, 600, 800, 1000])
def test_without_shift_the_term_for_delta_is_that_of_one_run(correct):
    members = np.ones(10_000, bool)
    guesses = np.zeros(10_000, int)
    guesses[:correct], guesses[correct:1000] = 1, -1
    half = np.full(10_000, 0.5)
    expected = one_run(correct, 1000, 10_000).epsilon
    for correction in ("conditional", "composition", "none"):
        bound = zero_run(guesses, members, half, correction=correction, family="approx")
        assert bound.epsilon == expected
    untampered = zero_run(guesses, members, half, correction="untampered", family="approx")
    assert untampered.epsilon <= expected


def test_untampered_guesses_are_given_away_at_the_price_of_the_level():
    rng = np.random.default_rng(1)
    members, prior, posterior = game(rng, 4000, 0.5, epsilon=3.0)
    guesses = confident(posterior, prior, 400)
    delta, shifts = 1e-5, np.abs(prior[guesses != 0])
    bound = zero_run(guesses, members, expit(prior), correction="untampered", family="approx")
    correct = bound.details["correct"]
    chances = expit(bound.epsilon + shifts)
    spent = [
        poisson_binomial_tail(chances, correct - u) + 4000 * delta / (u + 1) for u in range(20)
    ]
    assert min(spent) <= 0.05 + 1e-9
    best = max(largest_epsilon(shifts, correct - u, 0.05 - 0.04 / (u + 1)) for u in range(20))
    assert 0.9 * best < bound.epsilon <= best + 1e-9


def test_composition_takes_the_largest_shift_off():
    rng = np.random.default_rng(0)
    members, prior, posterior = game(rng, 4000, 0.5, epsilon=3.0)
    guesses, propensity = confident(posterior, prior, 1000), expit(prior)
    plain = partial(zero_run, guesses, members, propensity)
    composed = plain(correction="composition", family="approx", delta=0.0)
    none = plain(correction="none", family="approx", delta=0.0)
    assert composed.epsilon == pytest.approx(none.epsilon - 0.5, abs=1e-12)
    mu = plain(correction="none").details["mu"]
    shift = 2 * ndtri(expit(0.5))
    found = plain(correction="composition").details["mu"]
    assert found == pytest.approx(np.sqrt(mu**2 - shift**2), abs=1e-9)


def test_the_first_epsilon_that_is_not_rejected_is_reported():
    rng = np.random.default_rng(5)
    grid = np.linspace(0, 3, 3001)
    for _ in range(5):
        members, prior, posterior = game(rng, 400, 1.0, epsilon=2.0, spread=True)
        guesses = confident(posterior, prior, 150)
        seed = int(rng.integers(1 << 30))
        bound = zero_run(guesses, members, expit(prior), family="approx", delta=0.0, rng=seed)
        (played,), _ = games_of(guesses, members, expit(prior), seed)
        draws = played.draws
        right = guesses == np.where(members, 1, -1)
        keep = (1 + np.exp(-grid[:, None] - np.abs(prior))) / (1 + np.exp(-grid[:, None]))
        kept = (right & (draws < keep)).sum(axis=1)
        accepted = binom.sf(kept - 1, 150, expit(grid)) > 0.05
        assert bound.epsilon == pytest.approx(grid[np.argmax(accepted)], abs=1.1e-3)


def test_a_thinned_count_is_what_the_draws_leave():
    rng = np.random.default_rng(0)
    members, prior, posterior = game(rng, 500, 1.0)
    guesses = np.where(posterior > 0, 1, -1)
    bound = zero_run(guesses, members, expit(prior), rng=3)
    right = guesses == np.where(members, 1, -1)
    (played,), key = games_of(guesses, members, expit(prior), 3)
    assert bound.details["kept"] == (right & (played.draws < np.exp(-1.0))).sum()
    assert bound.details["key"] == key[:16]
    assert bound.details["correct"] == right.sum()
    assert bound.details["guesses"] == bound.details["examples"] == 500


@given(
    seed=st.integers(0, 2**20),
    stretch=st.floats(1, 3),
    setting=st.sampled_from(VALID),
)
@settings(max_examples=60, deadline=None)
def test_pessimistic_propensities_never_raise_a_bound(seed, stretch, setting):
    correction, family, delta = setting
    rng = np.random.default_rng(seed)
    members, prior, posterior = game(rng, 300, 0.3, epsilon=3.0, spread=True)
    guesses = confident(posterior, prior, 200)
    audit = partial(
        zero_run, guesses, members, correction=correction, family=family, delta=delta, rng=seed
    )
    assert audit(expit(stretch * prior)).epsilon <= audit(expit(prior)).epsilon + 1e-9


@given(seed=st.integers(0, 2**20), setting=st.sampled_from(VALID))
@settings(max_examples=40, deadline=None)
def test_more_confidence_and_more_delta_give_less(seed, setting):
    correction, family, delta = setting
    rng = np.random.default_rng(seed)
    members, prior, posterior = game(rng, 300, 0.2, epsilon=3.0)
    audit = partial(
        zero_run,
        confident(posterior, prior, 200),
        members,
        expit(prior),
        correction=correction,
        family=family,
        rng=seed,
    )
    base = audit(delta=delta).epsilon
    assert audit(delta=delta, confidence=0.99).epsilon <= base + 1e-9
    assert audit(delta=10 * delta + 1e-7).epsilon <= base + 1e-9
    assert base >= 0.0


@pytest.mark.parametrize(("correction", "family", "delta"), VALID)
def test_the_extremes_hold(correction, family, delta):
    audit = partial(zero_run, correction=correction, family=family, delta=delta, rng=0)
    members = np.arange(1000) % 2 == 0
    right = np.where(members, 1, -1)
    sharp = np.where(members, 1 - 1e-12, 1e-300)
    assert audit(0 * right, members, sharp).epsilon == 0.0
    assert audit(-right, members, np.full(1000, 0.4)).epsilon == 0.0
    assert 0 < audit(right, members, np.full(1000, 0.499)).epsilon < 30
    assert audit([1], [True], [0.5]).epsilon == 0.0
    high = audit(right, members, np.full(1000, 0.499), confidence=1 - 1e-9).epsilon
    assert 0 <= high < audit(right, members, np.full(1000, 0.499)).epsilon
    assert high > 0 or (family == "approx" and delta > 0)


def test_without_overlap_nothing_can_be_shown():
    members = np.arange(1000) % 2 == 0
    guesses = np.where(members, 1, -1)
    apart = np.where(members, 1 - 1e-9, 1e-9)
    for correction, family, delta in VALID:
        audit = partial(zero_run, correction=correction, family=family, delta=delta, rng=0)
        assert audit(guesses, members, apart).epsilon == 0.0


# validity


@pytest.mark.parametrize(("correction", "family", "delta"), VALID)
@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0])
def test_a_confounded_attack_without_leak_proves_nothing(correction, family, delta, shift):
    rng = np.random.default_rng(11)
    rejected = 0
    for _ in range(400):
        members, prior, posterior = game(rng, 1000, shift, spread=True)
        bound = zero_run(
            confident(posterior, prior, 300),
            members,
            expit(prior),
            correction=correction,
            family=family,
            delta=delta,
            rng=rng,
        )
        assert bound.claim == "lower bound"
        rejected += bound.epsilon > 0
    assert rejected <= most_allowed(400, 0.05)


@pytest.mark.parametrize(
    ("correction", "delta"),
    [
        ("conditional", 0.0),
        ("conditional", 1e-5),
        ("untampered", 0.0),
        ("untampered", 1e-5),
        ("composition", 0.0),
    ],
)
@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0, 2.0])
def test_a_corrected_bound_covers_randomised_response(correction, delta, shift):
    rng = np.random.default_rng(12)
    found, plain = [], []
    for _ in range(400):
        members, prior, posterior = game(rng, 4000, shift, epsilon=1.0)
        audit = partial(
            zero_run,
            confident(posterior, prior, 500),
            members,
            expit(prior),
            family="approx",
            delta=delta,
            rng=rng,
        )
        found.append(audit(correction=correction).epsilon)
        plain.append(audit(correction="none").epsilon)
    assert np.sum(np.array(found) > 1.0) <= most_allowed(400, 0.05)
    assert np.mean(found) > {0.0: 0.77, 0.5: 0.7, 1.0: 0.55, 2.0: 0.1}[shift]
    if shift > 0:
        assert np.mean(np.array(plain) > 1.0) > 0.95


def test_a_gaussian_bound_covers_gaussian_noise():
    rng = np.random.default_rng(13)
    exceeded, found = 0, []
    for _ in range(300):
        prior = 0.5 * rng.normal(size=2000)
        members = rng.random(2000) < expit(prior)
        posterior = prior + 1.5 * rng.normal(np.where(members, 0.75, -0.75))
        guesses = confident(posterior, prior, 300)
        mu = zero_run(guesses, members, expit(prior), rng=rng).details["mu"]
        exceeded += mu > 1.5
        found.append(mu)
    assert exceeded <= most_allowed(300, 0.05)
    assert np.mean(found) > 0.45


def test_optimistic_propensities_break_the_audit_and_pessimistic_ones_do_not():
    rng = np.random.default_rng(14)
    wrong = {0.5: 0, 1.5: 0}
    for _ in range(200):
        members, prior, posterior = game(rng, 2000, 1.5)
        guesses = confident(posterior, prior, 500)
        for slope in wrong:
            bound = zero_run(
                guesses, members, expit(slope * prior), family="approx", delta=0.0, rng=rng
            )
            wrong[slope] += bound.epsilon > 0
    assert wrong[0.5] > 190
    assert wrong[1.5] == 0


def test_the_best_of_many_rules_is_paid_for():
    rng = np.random.default_rng(15)
    corrected = swept = 0
    for _ in range(300):
        members, prior, posterior = game(rng, 1000, 0.5, spread=True)
        posterior = posterior + 1e-6 * rng.normal(size=1000)
        worth = rng.random(1000)
        rules = [np.where(worth >= cut, np.sign(posterior), 0) for cut in np.linspace(0, 0.98, 12)]
        audit = partial(zero_run, members=members, propensity=expit(prior), family="approx")
        bound = audit(rules, delta=0.0, rng=1)
        corrected += bound.epsilon > 0
        swept += max(audit(rule, delta=0.0, rng=1).epsilon for rule in rules) > 0
        assert bound.details["rules"] == 12
    assert corrected <= most_allowed(300, 0.05)
    assert swept > corrected


def test_a_rule_is_tested_at_its_share_of_the_level():
    rng = np.random.default_rng(16)
    members, prior, posterior = game(rng, 2000, 0.5, epsilon=3.0)
    rules = np.stack([confident(posterior, prior, number) for number in (50, 400)])
    for correction, family, delta in VALID:
        audit = partial(
            zero_run,
            members=members,
            propensity=expit(prior),
            correction=correction,
            family=family,
            delta=delta,
            rng=4,
        )
        both = audit(rules)
        single = [audit(rule, confidence=0.975).epsilon for rule in rules]
        assert both.epsilon == pytest.approx(max(single), abs=1e-7)
        assert both.details["rule"] == int(np.argmax(single))
        assert both.confidence == 0.95


def test_adding_the_failures_of_overlap_to_the_level_is_not_valid():
    """Proposition 6 and Algorithm 8: a failure of one record in 200 is no failure of the audit.

    The proposition wants a number of guesses that is fixed.
    """
    rng = np.random.default_rng(17)
    failure, level, number = 0.005, 0.03, 25
    for _ in range(5):
        betrays = rng.random(10_000) < failure
        members = rng.random(10_000) < 0.5
        guessed = np.flatnonzero(betrays)[:number]
        assert guessed.size == number  # fewer betray themselves in one run of thirty thousand
        guesses = np.zeros(10_000, int)
        guesses[guessed] = np.where(members, 1, -1)[guessed]
        # Algorithm 8: one run at level p, said to be valid at p + δ_DS; μ = 0 is true here
        printed = one_run_fdp(number, number, 10_000, confidence=1 - (level - failure))
        assert printed.details["mu"] > 0.4
        # Algorithm 7: the failure is in the curve
        allowed = one_run_fdp(
            number,
            number,
            10_000,
            family=lambda mu: GaussianDP(mu).with_failure(failure),
            confidence=1 - level,
        )
        assert allowed.details["parameter"] == 0.0
        propensity = np.where(betrays, np.where(members, 1 - 1e-9, 1e-9), 0.5)
        for correction, family, delta in VALID:
            audit = partial(zero_run, correction=correction, family=family, delta=delta, rng=rng)
            assert audit(guesses, members, propensity).epsilon == 0.0


# claims


def test_no_correction_is_a_bound_only_for_fair_coins():
    guesses, members = [1, -1, 1, -1], [1, 0, 1, 0]
    fair = zero_run(guesses, members, [0.5] * 4, correction="none")
    assert fair.claim == "lower bound"
    shifted = zero_run(guesses, members, [0.5, 0.5, 0.5, 0.6], correction="none")
    assert shifted.claim == "estimate"
    assert "estimate" in str(shifted)
    assert any("Nothing is corrected" in sentence for sentence in shifted.assumptions)


def test_a_result_says_what_it_rests_on():
    audit = partial(zero_run, [1, -1], [1, 0], [0.4, 0.6])
    gaussian = audit().assumptions
    assert any("Gaussian" in sentence for sentence in gaussian)
    assert any("fixed in advance" in sentence for sentence in gaussian)
    pure = audit(family="approx", delta=0.0).assumptions
    assert not any("Gaussian" in s or "fixed in advance" in s for s in pure)
    assert any("propensity is the true one" in sentence for sentence in pure)
    assert all(sentence.endswith(".") for sentence in gaussian + pure)


# bootstraps


@pytest.mark.parametrize(("correction", "family", "delta"), VALID)
def test_equal_sets_of_propensities_give_one_audit_at_its_share_of_the_level(
    correction, family, delta
):
    rng = np.random.default_rng(18)
    members, prior, posterior = game(rng, 2000, 0.3, epsilon=3.0)
    guesses, propensity = confident(posterior, prior, 500), expit(prior)
    sets = np.tile(propensity, (40, 1))
    options = {"correction": correction, "family": family, "delta": delta, "rng": 2}
    single = zero_run(guesses, members, propensity, confidence=0.975, **options)
    for extra in ({}, {"rebase": propensity}):
        bound = zero_run_bootstrap(guesses, members, sets, **options, **extra)
        assert bound.epsilon == pytest.approx(single.epsilon, abs=1e-7)
        assert bound.claim == "estimate"
        assert bound.details["bootstraps"] == 40


def test_the_lower_quantile_and_the_re_based_one_are_those_of_the_single_audits():
    rng = np.random.default_rng(19)
    members, prior, posterior = game(rng, 2000, 0.3, epsilon=4.0)
    guesses = confident(posterior, prior, 500)
    # stretched, so that their order is the same and so are the draws
    sets = expit(prior * rng.uniform(0.7, 1.3, (100, 1)))
    audit = partial(zero_run, guesses, members, confidence=0.96, rng=2)
    single = np.sort([audit(row).details["mu"] for row in sets])
    run = partial(zero_run_bootstrap, guesses, members, sets, confidence=0.9, share=0.6, rng=2)
    plain = run()
    assert plain.details["mu"] == pytest.approx(single[5], abs=1e-7)
    assert plain.details["quantile"] == pytest.approx(0.06)
    np.testing.assert_allclose(np.sort(plain.details["bounds"]), single, atol=1e-7)
    moved = run(rebase=expit(prior))
    whole = audit(expit(prior)).details["mu"]
    expected = single[5] + whole - np.median(single)
    assert moved.details["mu"] == pytest.approx(expected, abs=1e-7)
    assert np.median(moved.details["bounds"]) == pytest.approx(whole, abs=1e-7)
    assert moved.details["mu"] > plain.details["mu"]
    assert "re-based" in moved.method


def test_a_bootstrap_does_not_see_what_every_fit_misses():
    rng = np.random.default_rng(20)
    members, _, posterior = game(rng, 4000, 1.0)
    guesses = np.where(posterior > 0, 1, -1)
    blind = expit(rng.normal(0, 0.05, (50, 4000)))
    bound = zero_run_bootstrap(guesses, members, blind, family="approx", delta=0.0, rng=0)
    assert bound.epsilon > 0.5
    assert bound.claim == "estimate"
    assert any("estimated" in sentence for sentence in bound.assumptions)


# rejecting a propensity model


def test_a_right_propensity_model_is_rejected_as_often_as_it_may_be():
    rng = np.random.default_rng(21)
    thinned = exact = safe = 0
    for _ in range(400):
        members, prior, _ = game(rng, 1000, 1.0, spread=True)
        guesses = np.where(prior > 0, 1, -1)
        test = reject_propensity(guesses, members, expit(prior), rng=rng)
        thinned += test.rejected
        exact += test.untampered_p_value <= 0.05
        safe += reject_propensity(guesses, members, expit(1.2 * prior), rng=rng).rejected
    assert 5 <= thinned <= most_allowed(400, 0.05)
    assert 5 <= exact <= most_allowed(400, 0.05)
    assert safe <= 5


def test_a_flat_propensity_model_is_rejected_and_the_exact_tail_sees_more():
    rng = np.random.default_rng(22)
    caught = {0.95: [0, 0], 0.8: [0, 0], 0.5: [0, 0]}
    for _ in range(40):
        members, prior, _ = game(rng, 10_000, 1.0)
        guesses = np.where(prior > 0, 1, -1)
        for slope, counts in caught.items():
            test = reject_propensity(guesses, members, expit(slope * prior), rng=rng)
            counts[0] += test.rejected
            counts[1] += test.untampered_p_value <= 0.05
    assert caught[0.95][1] > caught[0.95][0]
    assert caught[0.8][0] > 30
    assert caught[0.5] == [40, 40]


@given(st.integers(0, 2**20), st.sampled_from([0.5, 0.9, 0.999999]))
@settings(max_examples=40, deadline=None)
def test_the_test_of_a_propensity_model_is_exact(seed, confidence):
    rng = np.random.default_rng(seed)
    members, prior, posterior = game(rng, 60, 1.0, spread=True)
    guesses = confident(posterior, prior, int(rng.integers(0, 61)))
    test = reject_propensity(guesses, members, expit(0.3 * prior), confidence=confidence, rng=seed)
    assert bool(test) is test.rejected
    assert test.p_value == pytest.approx(binom.sf(test.kept - 1, test.guesses, 0.5))
    assert test.rejected == (test.kept >= test.threshold)
    assert binom.sf(test.threshold - 1, test.guesses, 0.5) <= test.level
    assert binom.sf(test.threshold - 2, test.guesses, 0.5) > test.level
    chances = expit(np.abs(0.3 * prior[guesses != 0]))
    tail = poisson_binomial_tail(chances, test.correct)
    assert test.untampered_p_value == pytest.approx(tail)


# the border

GOOD = {"guesses": [1, -1, 0, 1], "members": [1, 0, 1, 0], "propensity": [0.5, 0.4, 0.6, 0.5]}
SETS = {**{k: GOOD[k] for k in ("guesses", "members")}, "propensities": [[0.5, 0.4, 0.6, 0.5]] * 3}
WRONG = [
    ("guesses", [1, 2, 0, 1], "guesses must hold -1, 0, 1 only, got 2"),
    ("guesses", [1, np.nan, 0, 1], "guesses must hold finite numbers, got nan"),
    ("guesses", [[[1, 1, 0, 1]]], "guesses must have shape"),
    ("guesses", [], "guesses must have shape"),
    ("guesses", [1, 1, 1], "guesses has 3"),
    ("members", [1, 0, 2, 0], "members must hold 0, 1 only, got 2"),
    ("members", [1, 0, 1], "members has 3"),
    ("confidence", 1.0, "confidence must lie strictly between 0 and 1, got 1.0"),
]
OF_AUDITS = [
    ("correction", "best", "correction must be one of 'conditional'"),
    ("family", "pure", "family must be one of 'gaussian', 'approx', got 'pure'"),
    ("correction", "untampered", "family must be 'approx' with correction='untampered'"),
    ("delta", -1e-5, "delta must lie in"),
    ("delta", 0.0, "delta must be above 0 under the Gaussian assumption, got 0.0"),
]
OF_ONE_SET = [
    ("propensity", [0.5, 0.4, 1.0, 0.5], "propensity must lie strictly between 0 and 1, got 1.0"),
    ("propensity", [0.5, 0.4, 0.0, 0.5], "propensity must lie strictly between 0 and 1, got 0.0"),
    ("propensity", [[0.5, 0.4, 0.6, 0.5]], "propensity must have 1 dimension"),
    ("propensity", [0.5, 0.4, 0.6], "propensity has 3"),
]


def refused(function, good, name, value, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(**{**good, name: value})


@pytest.mark.parametrize(("name", "value", "message"), WRONG + OF_AUDITS + OF_ONE_SET)
def test_zero_run_names_what_is_wrong(name, value, message):
    refused(zero_run, GOOD, name, value, message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *WRONG,
        *OF_AUDITS,
        ("propensities", [0.5, 0.4, 0.6, 0.5], "propensities must have 2 dimension"),
        ("propensities", np.zeros((0, 4)), "propensities must hold at least one set"),
        ("propensities", [[0.5, 0.4, 0.6]], "propensities has 3"),
        ("propensities", [[0.5, 0.4, 0.6, 1.2]], "propensities must lie strictly between"),
        ("share", 0.0, "share must lie strictly between 0 and 1, got 0.0"),
        ("rebase", [0.5, 0.5], "rebase has 2"),
        ("rebase", [0.5, 0.5, 0.0, 0.5], "rebase must lie strictly between"),
    ],
)
def test_zero_run_bootstrap_names_what_is_wrong(name, value, message):
    refused(zero_run_bootstrap, SETS, name, value, message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [*WRONG, *OF_ONE_SET, ("guesses", [[1, 0, 0, 1], [1, 1, 0, 0]], "guesses must have 1 dim")],
)
def test_reject_propensity_names_what_is_wrong(name, value, message):
    refused(reject_propensity, GOOD, name, value, message)


@pytest.mark.parametrize("value", ["seed", -1, 1.5, True])
def test_a_bad_source_of_randomness_is_refused(value):
    for function, good in (
        (zero_run, GOOD),
        (zero_run_bootstrap, SETS),
        (reject_propensity, GOOD),
    ):
        with pytest.raises(ValueError, match="rng must be a numpy Generator, a seed"):
            function(**good, rng=value)


def test_the_logit_of_a_propensity_is_its_shift():
    bound = zero_run(**{**GOOD, "propensity": [0.5, 0.4, 0.9, 0.2]})
    assert bound.details["largest_shift"] == pytest.approx(logit(0.9))


def test_thinning_does_not_depend_on_the_order_of_rows_nor_coincide_with_a_seed():
    rng = np.random.default_rng(0)
    propensity = expit(rng.normal(size=2000))
    members = np.random.default_rng(7).random(2000) < propensity
    guesses = np.where(propensity > 0.5, 1, -1)
    order = np.argsort(members)
    here = zero_run(guesses, members, propensity, family="approx", delta=0.0, rng=7)
    there = zero_run(
        guesses[order], members[order], propensity[order], family="approx", delta=0.0, rng=7
    )
    assert here.details == there.details
    assert here.epsilon == there.epsilon == 0.0  # 2.5 where the thinning knew the members
    other = zero_run(guesses, members, propensity, family="approx", delta=0.0, rng=8)
    assert other.details["kept"] != here.details["kept"]
    fresh = zero_run(guesses, members, propensity, family="approx", delta=0.0)
    assert (
        zero_run(guesses, members, propensity, family="approx", delta=0.0).details == fresh.details
    )
