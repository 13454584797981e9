"""Label inference proves something only where the reference model cannot be told from the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from auditkit.bounds.observational import (
    level_under_divergence,
    observational_label,
    tau_from_placebo,
)
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.tradeoff import PureDP
from auditkit.thresholds import Bonferroni, Fixed, MultiSplit, Split, Sweep

ALL = Fixed(guesses=1.0)


def game(rng, examples, *, epsilon, shift=0.0):
    """Play label inference against randomised response on binary labels.

    True labels are 1 with probability ½ + shift, generated ones with ½. The score is positive where
    the shown label is the one that the mechanism released; without a release (ε = 0), where it is
    the likelier one.
    """
    true = rng.random(examples) < 0.5 + shift
    generated = rng.random(examples) < 0.5
    chosen = rng.integers(2, size=examples)
    shown = np.where(chosen == 0, true, generated)
    released = true == (rng.random(examples) < 1 / (1 + np.exp(-epsilon)))
    seen = np.ones(examples, dtype=bool) if epsilon == 0.0 else released
    return np.where(shown == seen, 1.0, -1.0) * (1.0 + rng.random(examples)), chosen


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 80), st.data())
def test_the_largest_scores_in_size_are_guessed_as_their_sign_says(seed, examples, data):
    rng = np.random.default_rng(seed)
    scores, chosen = rng.normal(size=examples), rng.integers(2, size=examples)
    number = data.draw(st.integers(1, examples))
    bound = observational_label(scores, chosen, threshold=Fixed(guesses=number))
    largest = sorted(range(examples), key=lambda place: -abs(scores[place]))[:number]
    correct = sum((scores[place] > 0) == (chosen[place] == 0) for place in largest)
    assert bound.details["correct"] == correct
    assert bound.details["guesses"] == number
    assert bound.details["examples"] == examples
    assert bound.details["cut"] == abs(scores[largest[-1]])
    assert bound.epsilon == one_run_fdp(correct, number, examples).epsilon


def test_a_score_of_zero_makes_no_guess_and_counts_like_a_wrong_one():
    scores, chosen = np.array([3.0, -2.0, 0.0, 0.0]), [0, 1, 0, 1]
    bound = observational_label(scores, chosen, threshold=ALL)
    assert (bound.details["correct"], bound.details["guesses"]) == (2, 4)


def test_ties_know_nothing_of_the_coins_even_where_they_are_sorted():
    chosen = np.arange(2000) >= 1000
    always = np.where(np.random.default_rng(0).random(2000) < 0.9, 1.0, -1.0)
    bound = observational_label(always, chosen, threshold=Fixed(guesses=0.25))
    assert abs(bound.details["correct"] - 250) < 60


def test_a_cut_guesses_on_everybody():
    bound = observational_label([2.0, 1.0, 0.5, -1.0], [0, 0, 1, 1], threshold=Fixed(0.75))
    assert (bound.details["correct"], bound.details["guesses"]) == (4, 4)


def test_one_percent_is_guessed_on_by_default():
    scores, chosen = game(np.random.default_rng(0), 3000, epsilon=1.0)
    assert observational_label(scores, chosen).details["guesses"] == 30


# what the placebo decides


def test_without_a_placebo_it_is_an_estimate_that_says_why():
    scores, chosen = game(np.random.default_rng(0), 2000, epsilon=2.0)
    bound = observational_label(scores, chosen, threshold=ALL)
    assert bound.claim == "estimate"
    assert bound.epsilon > 0.5
    assert bound.details["placebo_epsilon"] is None
    assert any("No placebo" in sentence for sentence in bound.assumptions)
    assert "estimate, not a bound, label adjacency" in str(bound)


def test_with_a_silent_placebo_it_is_a_lower_bound_on_label_privacy():
    rng = np.random.default_rng(0)
    scores, chosen = game(rng, 2000, epsilon=2.0)
    placebo_scores, placebo_chosen = game(rng, 2000, epsilon=0.0)
    bound = observational_label(
        scores,
        chosen,
        placebo_scores=placebo_scores,
        placebo_chosen=placebo_chosen,
        threshold=ALL,
    )
    assert bound.claim == "lower bound"
    assert bound.adjacency == "label"
    assert bound.details["placebo_epsilon"] == 0.0
    assert bound.details["placebo_examples"] == 2000
    assert 0.0 < bound.details["placebo_limit"] < bound.epsilon
    assert any("no more shifted than in the placebo" in text for text in bound.assumptions)
    assert all(sentence.endswith(".") for sentence in bound.assumptions)
    assert "ε ≥" in str(bound)


@pytest.mark.parametrize("threshold", [ALL, Split(), Bonferroni(), Sweep()], ids=repr)
def test_a_reference_unlike_the_truth_passes_for_leakage_until_the_placebo_speaks(threshold):
    rng = np.random.default_rng(0)
    scores, chosen = game(rng, 4000, epsilon=0.0, shift=0.3)
    placebo_scores, placebo_chosen = game(rng, 4000, epsilon=0.0, shift=0.3)
    bound = observational_label(
        scores,
        chosen,
        placebo_scores=placebo_scores,
        placebo_chosen=placebo_chosen,
        threshold=threshold,
    )
    assert bound.epsilon > 0.3  # from a model that never saw a label
    assert bound.details["placebo_epsilon"] > 0.3
    assert bound.claim == "estimate"
    assert f"{bound.details['placebo_limit']:.3f}" in str(bound)
    if not isinstance(threshold, Sweep):  # whose best rule may exceed its own limit
        assert bound.details["placebo_limit"] >= bound.epsilon
        assert any("so that nothing is proved" in text for text in bound.assumptions)


@pytest.mark.parametrize("shift", [0.02, 0.05, 0.08])
@pytest.mark.parametrize("guesses", [0.05, 0.5, 1.0])
def test_a_wrong_reference_is_called_a_leak_no_more_often_than_promised(shift, guesses):
    """The placebo may well be silent: what it has to give is a limit."""
    rng = np.random.default_rng(0)
    claimed = silent = 0
    for _ in range(200):
        placebo_scores, placebo_chosen = game(rng, 500, epsilon=0.0, shift=shift)
        bound = observational_label(
            *game(rng, 500, epsilon=0.0, shift=shift),
            placebo_scores=placebo_scores,
            placebo_chosen=placebo_chosen,
            threshold=Fixed(guesses=guesses),
        )
        claimed += bound.claim == "lower bound" and bound.epsilon > 0.0
        silent += bound.details["placebo_epsilon"] == 0.0
    assert claimed <= stats.binom.isf(1e-4, 200, 0.05)
    assert silent > 20  # and yet it proves nothing


def test_a_median_of_splits_is_a_lower_bound_only_if_half_of_them_are():
    rng = np.random.default_rng(0)
    placebo_scores, placebo_chosen = game(rng, 1000, epsilon=0.0)
    claims = {
        leak: observational_label(
            *game(rng, 1000, epsilon=leak),
            placebo_scores=placebo_scores,
            placebo_chosen=placebo_chosen,
            threshold=MultiSplit(5),
        ).claim
        for leak in (0.0, 4.0)
    }
    assert claims == {0.0: "estimate", 4.0: "lower bound"}


def test_a_sweep_stays_an_estimate_whatever_the_placebo():
    rng = np.random.default_rng(0)
    scores, chosen = game(rng, 1000, epsilon=3.0)
    bound = observational_label(
        scores,
        chosen,
        placebo_scores=np.ones(100),
        placebo_chosen=np.arange(100) % 2,
        threshold=Sweep(),
    )
    assert bound.claim == "estimate"
    assert bound.confidence is None


def test_a_tau_as_large_as_the_shift_silences_it():
    scores, chosen = game(np.random.default_rng(0), 4000, epsilon=0.0, shift=0.1)
    free = observational_label(scores, chosen, threshold=ALL)
    paid = observational_label(scores, chosen, threshold=ALL, tau=0.1)
    assert free.epsilon > 0.0 == paid.epsilon
    assert paid.details["tau"] == 0.1


def test_more_tau_never_proves_more():
    scores, chosen = game(np.random.default_rng(0), 2000, epsilon=3.0)
    found = [
        observational_label(scores, chosen, threshold=ALL, tau=tau).epsilon
        for tau in (0.0, 1e-3, 1e-2, 1e-1)
    ]
    assert (np.diff(found) <= 0.0).all()
    assert found[0] > found[-1]


def test_the_shift_is_named_among_the_assumptions():
    scores, chosen = game(np.random.default_rng(0), 200, epsilon=3.0)
    exact = observational_label(scores, chosen, threshold=ALL).assumptions
    shifted = observational_label(scores, chosen, threshold=ALL, tau=0.01).assumptions
    assert any("τ = 0" in sentence for sentence in exact)
    assert any("0.01" in sentence for sentence in shifted)
    assert any("false in general" in sentence for sentence in shifted)
    assert any("once is too little" in sentence for sentence in shifted)
    assert not any("once is too little" in sentence for sentence in exact)
    assert all(any("both directions" in text for text in texts) for texts in (exact, shifted))


# τ from the placebo


def silenced(correct, guesses, audit_guesses, level):
    """Return the largest count that proves nothing, from the quantiles of scipy."""
    limit = stats.beta.isf(level / 2, correct + 1, guesses - correct) if correct < guesses else 1.0
    quantile = stats.binom.isf(level / 2, audit_guesses, max(limit, 0.5))
    return min(int(quantile) + 1, audit_guesses)


PLACEBOS = [  # correct, guesses, and guesses and examples of the audit
    (50, 100, 100, 1000),
    (60, 100, 100, 100),
    (0, 10, 10, 10),
    (50, 50, 50, 60),
    (1550, 3000, 3000, 10_000),
    (2600, 5000, 1000, 10_000),
    (15_500, 30_000, 30_000, 100_000),
]


@pytest.mark.parametrize("family", ["gaussian", "pure"])
@pytest.mark.parametrize("counts", PLACEBOS, ids=str)
def test_tau_silences_what_the_placebo_makes_plausible_and_no_more(counts, family):
    correct, guesses, r, m = counts
    tau = tau_from_placebo(correct, guesses, audit_guesses=r, audit_examples=m, level=0.05)
    c = silenced(correct, guesses, r, 0.05)

    def parameter(count, tau):
        found = one_run_fdp(count, r, m, family=family, tau=float(tau), confidence=0.975)
        return found.details["mu" if family == "gaussian" else "parameter"]

    assert parameter(c, tau) == 0.0
    assert parameter(c, tau * (1.0 - 1e-6)) > 0.0
    assert c == r or parameter(c + 1, tau) > 0.0


def test_tau_takes_arrays_and_grows_with_the_placebo_s_accuracy():
    right = np.arange(500, 1001, 50)
    every = tau_from_placebo(right, 1000, audit_guesses=2000, audit_examples=9000, level=0.05)
    alone = [
        float(tau_from_placebo(one, 1000, audit_guesses=2000, audit_examples=9000, level=0.05))
        for one in right
    ]
    assert every.tolist() == alone
    assert (np.diff(every) > 0.0).all()


def test_a_placebo_worse_than_chance_is_taken_for_chance():
    def tau(correct):
        return tau_from_placebo(correct, 100, audit_guesses=100, audit_examples=500, level=0.05)

    assert tau(10) == tau(20) > 0.0


@pytest.mark.parametrize("shift", ["odds", "gives away"])
@pytest.mark.parametrize("accuracy", [0.5, 0.52, 0.55, 0.65, 0.8])
@pytest.mark.parametrize("guesses", [10, 30, 100, 1000])
def test_a_leak_beside_the_shift_is_not_overestimated(guesses, accuracy, shift):
    """Exactly: the count that is exceeded at half the level proves no more than ε.

    The shift points to the truth with odds of its own, or gives some coins away.
    """
    half = 0.025
    for correct in range(guesses + 1):  # the placebo whose limit is this accuracy
        if stats.beta.isf(half, correct + 1, guesses - correct) >= accuracy:
            break
    limit = max(stats.beta.isf(half, correct + 1, guesses - correct), 0.5)
    tau = tau_from_placebo(
        correct, guesses, audit_guesses=guesses, audit_examples=guesses, level=2 * half
    )
    for epsilon in (0.02, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0):
        together = {
            "odds": special.expit(epsilon + special.logit(limit)),
            "gives away": (2 * limit - 1) + (2 - 2 * limit) * special.expit(epsilon),
        }[shift]
        count = int(stats.binom.isf(half, guesses, together))
        bound = one_run_fdp(
            count, guesses, guesses, family="pure", delta=0.0, tau=float(tau), confidence=1 - half
        )
        assert bound.epsilon <= epsilon + 1e-9


def calibrated(rng, examples, *, epsilon, shift, threshold=ALL, **options):
    scores, chosen = game(rng, examples, epsilon=epsilon, shift=shift)
    placebo_scores, placebo_chosen = game(rng, examples, epsilon=0.0, shift=shift)
    return observational_label(
        scores,
        chosen,
        placebo_scores=placebo_scores,
        placebo_chosen=placebo_chosen,
        threshold=threshold,
        tau="placebo",
        **options,
    )


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.3])
def test_with_tau_from_the_placebo_a_shift_passes_for_leakage_no_more_often_than_promised(shift):
    rng, simulations = np.random.default_rng(0), 200
    exceeded = sum(
        calibrated(rng, 500, epsilon=0.0, shift=shift).epsilon > 0.0 for _ in range(simulations)
    )
    assert stats.binom.sf(exceeded - 1, simulations, 0.05) > 1e-6


def test_with_tau_from_the_placebo_a_leak_is_still_found():
    bound = calibrated(np.random.default_rng(0), 4000, epsilon=4.0, shift=0.05)
    assert bound.epsilon > 0.5


def test_what_comes_from_the_placebo_is_an_estimate_that_says_so():
    bound = calibrated(np.random.default_rng(0), 2000, epsilon=3.0, shift=0.1)
    r, m = bound.details["guesses"], bound.details["examples"]
    assert bound.claim == "estimate"
    assert bound.confidence == 0.95
    assert bound.adjacency == "label"
    assert bound.details["tau_from"] == "placebo"
    assert bound.details["placebo_epsilon"] > 0.0  # what the shift would pass for
    counts = bound.details["correct"], r, m
    again = one_run_fdp(*counts, tau=bound.details["tau"], confidence=0.975)
    assert bound.epsilon == again.epsilon
    assert "from the placebo (not in the paper)" in bound.method
    text = " ".join(bound.assumptions)
    assert "may be another one than on the placebo" in text
    assert "simulated, not proved" in text
    assert "both directions" in text
    # it is no distance, and not the theorem's
    assert "total variation" not in text
    assert "as printed" not in text
    assert all(sentence.endswith(".") for sentence in bound.assumptions)


def test_a_tau_that_is_given_is_called_so():
    scores, chosen = game(np.random.default_rng(0), 200, epsilon=3.0)
    assert observational_label(scores, chosen, tau=0.01).details["tau_from"] == "given"


def test_a_placebo_of_another_size_serves_where_a_share_is_guessed_on():
    scores, chosen = game(np.random.default_rng(0), 4000, epsilon=4.0)
    small, large = (
        {"placebo_scores": 1.0 - 2.0 * (np.arange(size) % 3), "placebo_chosen": np.arange(size) % 2}
        for size in (1000, 9000)
    )
    found = [
        observational_label(
            scores, chosen, **placebo, threshold=Fixed(guesses=0.5), tau="placebo"
        ).epsilon
        for placebo in (small, large)
    ]
    assert 0.0 < found[0] < found[1]


def test_the_placebo_s_distance_in_total_variation_would_silence_six_thousand_guesses():
    limit = stats.beta.isf(0.025, 3001, 3000)
    distance = 2.0 * limit - 1.0
    assert one_run_fdp(6000, 6000, 6000, tau=distance, confidence=0.975).epsilon == 0.0
    tau = tau_from_placebo(3000, 6000, audit_guesses=6000, audit_examples=6000, level=0.05)
    assert 15.0 < distance / tau < 40.0  # about one over half the level
    assert one_run_fdp(6000, 6000, 6000, tau=float(tau), confidence=0.975).epsilon > 3.0


def test_a_tau_at_the_edge_of_silence_ends_the_search():
    edge = 0.025 * 50 / 60  # all there is to lose: ε = 0 itself is rejected, or nothing
    for tau in edge * (1.0 - np.array([0.0, 1e-15, 1e-14, 1e-13, 1e-12])):
        for family in ("gaussian", "pure", PureDP):
            bound = one_run_fdp(50, 50, 60, family=family, tau=tau, confidence=0.975)
            assert 0.0 <= bound.epsilon < 1e-6


# coverage


@pytest.mark.parametrize("threshold", [Fixed(guesses=0.1), ALL, Split(), Bonferroni()], ids=repr)
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_randomised_response_is_covered_within_its_own_family(epsilon, threshold):
    rng, exceeded, simulations = np.random.default_rng(0), 0, 150
    for _ in range(simulations):
        scores, chosen = game(rng, 200, epsilon=epsilon)
        bound = observational_label(scores, chosen, family=PureDP, delta=0.0, threshold=threshold)
        exceeded += bound.epsilon > epsilon
    assert stats.binom.sf(exceeded - 1, simulations, 0.05) > 1e-6


def test_a_sweep_exceeds_its_level_where_nothing_was_released():
    rng, exceeded, simulations = np.random.default_rng(0), 0, 150
    for _ in range(simulations):
        scores, chosen = game(rng, 200, epsilon=0.0)
        bound = observational_label(scores, chosen, family="pure", delta=0.0, threshold=Sweep())
        exceeded += bound.epsilon > 0.0
    assert stats.binom.sf(exceeded - 1, simulations, 0.05) < 1e-6


def best_guess(epsilon, shift):
    """Return how often the best guess at what is shown is right, by enumeration.

    The game is that of `game`, where the attacker knows the laws, the noise and what was released.
    """
    truth = 1.0 / (1.0 + np.exp(-epsilon))
    right = 0.0
    for released in (0, 1):
        for shown in (0, 1):
            joint = np.zeros(2)  # of the coin
            for true in (0, 1):
                law = 0.5 + shift if true else 0.5 - shift
                said = law * (truth if released == true else 1.0 - truth)
                joint += 0.5 * said * np.array([shown == true, 0.5])
            right += joint.max()
    return right


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("shift", "examples"), [(0.004, 2000), (0.02, 400), (0.1, 20)])
def test_at_the_level_that_a_divergence_leaves_a_shifted_game_is_covered(epsilon, shift, examples):
    one = special.rel_entr(0.5, 0.5 + shift) + special.rel_entr(0.5, 0.5 - shift)
    level = level_under_divergence(0.5 * examples * one)
    counts = np.arange(examples // 2, examples + 1)

    def chance(level):
        found = one_run_fdp(
            counts, examples, examples, family="pure", delta=0.0, confidence=1.0 - level
        )
        rejected = counts[found.epsilon > epsilon]
        return stats.binom.sf(rejected[0] - 1, examples, right) if rejected.size else 0.0

    right = best_guess(epsilon, shift)
    assert chance(level) <= 0.05
    # what is paid for is there: at the whole level a game where nothing was released is not covered
    assert epsilon > 0.0 or chance(0.05) > 0.05


@pytest.mark.parametrize("level", [0.01, 0.05, 0.5])
def test_a_divergence_takes_from_the_level_what_tells_two_coins_apart(level):
    assert level_under_divergence(0.0, level=level) == level
    found = [level_under_divergence(size, level=level) for size in (0.01, 0.1, 0.5)]
    for size, kept in zip((0.01, 0.1, 0.5), found, strict=True):
        entropy = special.rel_entr(level, kept) + special.rel_entr(1 - level, 1 - kept)
        assert entropy == pytest.approx(size, rel=1e-9)
    assert level > found[0] > found[1] > found[2] > 0.0
    assert level_under_divergence(1e6, level=level) == 0.0


def test_a_divergence_leaves_nearly_all_where_the_printed_theorem_leaves_nothing():
    # the second of two labels, as likely as the first, is generated too often by .001
    one = special.rel_entr(0.501, 0.5) + special.rel_entr(0.499, 0.5)
    level = level_under_divergence(0.5 * 100_000 * one)
    count = {"correct": 890, "guesses": 1000, "examples": 100_000, "family": "pure", "delta": 0.0}
    whole = one_run_fdp(**count).epsilon
    assert one_run_fdp(**count, tau=0.001).epsilon == 0.0
    assert one_run_fdp(**count, confidence=1.0 - level).epsilon > 0.9 * whole


# the border

GOOD = {"scores": np.arange(-9.5, 10.0), "chosen": np.arange(20) % 2}
PLACEBO = {"placebo_scores": np.arange(10.0), "placebo_chosen": np.arange(10) % 2}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scores": np.full(20, np.inf)}, ValueError, "scores must hold finite numbers, got inf"),
        ({"scores": "high"}, TypeError, "scores must be an array of numbers, got 'high'"),
        ({"scores": np.zeros(19)}, ValueError, "scores has 19, chosen has 20"),
        ({"scores": [], "chosen": []}, ValueError, "scores must hold at least 1 score"),
        ({"chosen": np.arange(20)}, ValueError, "chosen must hold 0, 1 only, got 2"),
        ({"placebo_scores": np.zeros(20)}, ValueError, "together, got placebo_scores only"),
        ({"placebo_chosen": np.zeros(20)}, ValueError, "together, got placebo_chosen only"),
        (
            {"placebo_scores": np.zeros(20), "placebo_chosen": np.full(20, 2)},
            ValueError,
            "placebo_chosen must hold 0, 1 only, got 2",
        ),
        (
            {"placebo_scores": np.full(20, np.nan), "placebo_chosen": np.arange(20) % 2},
            ValueError,
            "placebo_scores must hold finite numbers, got nan",
        ),
        (
            {"placebo_scores": np.zeros(3), "placebo_chosen": np.zeros(2)},
            ValueError,
            "placebo_scores has 3, placebo_chosen has 2",
        ),
        ({"tau": -0.1}, ValueError, r"tau must lie in \[0, 1\), got -0.1"),
        ({"tau": "none"}, TypeError, "tau must be one number or 'placebo', got 'none'"),
        ({"tau": None}, TypeError, "tau must be one number"),
        ({"tau": "placebo"}, ValueError, "tau='placebo' takes placebo_scores and placebo_chosen"),
        (
            {"tau": "placebo", **PLACEBO, "threshold": Split()},
            ValueError,
            r"threshold must be Fixed with tau='placebo', .* got Split\(",
        ),
        (
            {"tau": "placebo", **PLACEBO, "threshold": Fixed(guesses=3)},
            ValueError,
            r"threshold must guess on a share .* got Fixed\(.*\) for 20 and 10 examples",
        ),
        (
            {"tau": "placebo", **PLACEBO, "confidence": 2},
            ValueError,
            "confidence must lie strictly between 0 and 1, got 2",
        ),
        ({"family": "laplace"}, ValueError, "family must be .* got 'laplace'"),
        ({"delta": 1}, ValueError, r"delta must lie in \[0, 1\), got 1"),
        ({"delta": 0}, ValueError, "delta must be above 0 under the Gaussian assumption, got 0"),
        ({"threshold": 0.01}, TypeError, "threshold must be Fixed, .* got 0.01"),
        ({"confidence": 1}, ValueError, "confidence must lie strictly between 0 and 1, got 1"),
    ],
)
def test_bad_input_is_refused_by_name(change, error, message):
    with pytest.raises(error, match=message):
        observational_label(**(GOOD | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": 11}, "correct must be at most guesses, got 11 of 10"),
        ({"audit_guesses": [20, 31]}, "audit_guesses must be at most audit_examples, got 31 of 30"),
        ({"correct": 0, "guesses": 0}, "guesses must be at least 1, got 0"),
        ({"audit_guesses": 0}, "audit_guesses must be at least 1, got 0"),
        ({"correct": -1}, "correct must"),
        (
            {"correct": [5, 6], "audit_guesses": [20, 20, 20]},
            r"shapes that fit together: correct has \(2,\), .*, audit_guesses has \(3,\)",
        ),
        ({"level": 0}, "level must lie strictly between 0 and 1, got 0"),
    ],
)
def test_counts_of_a_placebo_that_cannot_be_are_refused_by_name(change, message):
    good = {"correct": 5, "guesses": 10, "audit_guesses": 20, "audit_examples": 30, "level": 0.05}
    with pytest.raises(ValueError, match=message):
        tau_from_placebo(**(good | change))


def test_coins_that_are_not_fair_are_refused():
    unfair = np.arange(1000) < 900
    with pytest.raises(ValueError, match=r"^chosen must come from .* got 100 members among 1000"):
        observational_label(np.arange(1000.0), unfair)
    with pytest.raises(ValueError, match="placebo_chosen must come from independent fair coins"):
        observational_label(*GOOD.values(), placebo_scores=np.arange(1000.0), placebo_chosen=unfair)


def test_a_placebo_smaller_than_the_audit_makes_no_lower_bound():
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 2, 2000)
    scores = np.where(chosen == 0, 1.0, -1.0)
    small = observational_label(scores, chosen, placebo_scores=[0.3], placebo_chosen=[1])
    assert small.epsilon > 0.0
    assert small.claim == "estimate"
    assert small.details["placebo_limit"] == small.epsilon  # one guess limits nothing
