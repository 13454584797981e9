"""Label inference proves something only where the reference model cannot be told from the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auditkit.bounds.observational import observational_label
from auditkit.bounds.one_run import one_run_fdp
from auditkit.bounds.tradeoff import PureDP
from auditkit.thresholds import Bonferroni, Fixed, Split, Sweep

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
    bound = observational_label(np.ones(2000), chosen, threshold=Fixed(guesses=0.25))
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
    assert any("placebo's own bound is 0" in sentence for sentence in bound.assumptions)
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
    assert any("speaks against" in sentence for sentence in bound.assumptions)
    assert f"{bound.details['placebo_epsilon']:.3f}" in str(bound)


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
    assert any("open" in sentence for sentence in shifted)
    assert all(any("both directions" in text for text in texts) for texts in (exact, shifted))


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


# the border

GOOD = {"scores": np.arange(-9.5, 10.0), "chosen": np.arange(20) % 2}


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
        ({"tau": "none"}, TypeError, "tau must be one number"),
        ({"family": "laplace"}, ValueError, "family must be .* got 'laplace'"),
        ({"delta": 1}, ValueError, r"delta must lie in \[0, 1\), got 1"),
        ({"threshold": 0.01}, TypeError, "threshold must be Fixed, .* got 0.01"),
        ({"confidence": 1}, ValueError, "confidence must lie strictly between 0 and 1, got 1"),
    ],
)
def test_bad_input_is_refused_by_name(change, error, message):
    with pytest.raises(error, match=message):
        observational_label(**(GOOD | change))


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
    assert any("fewer examples than the audit" in sentence for sentence in small.assumptions)
