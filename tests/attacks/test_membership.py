import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit.attacks.membership import (
    difficulty_calibration,
    inner_product,
    posterior_log_odds,
    rmia,
    top_guesses,
)


def some(examples=20, population=50, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.05, 1.0, size) for size in (examples, examples, population, population)]


def test_a_lower_loss_than_the_reference_says_member():
    scores = difficulty_calibration([0.1, 3.0], [1.0, 1.0])
    assert scores[0] > 0.0 > scores[1]


def test_the_difficulty_of_an_example_drops_out():
    target, reference = np.random.default_rng(0).exponential(size=(2, 10))
    np.testing.assert_allclose(
        difficulty_calibration(target + 5.0, reference + 5.0),
        difficulty_calibration(target, reference),
    )


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    gamma=st.floats(0.5, 3.0),
    share=st.floats(0.0, 0.99),
)
def test_rmia_is_the_share_of_pairs_whose_ratio_reaches_gamma(seed, gamma, share):
    target, reference, population_target, population_reference = given_to = some(seed=seed)
    found = rmia(*given_to, gamma=gamma, offline_a=share)

    def ratio(confidence, elsewhere):
        trained_on_it = share * elsewhere + 1.0 - share
        return confidence / ((elsewhere + trained_on_it) / 2.0)

    for x in range(len(target)):
        mine = ratio(target[x], reference[x])
        others = [ratio(*z) for z in zip(population_target, population_reference, strict=True)]
        reached = np.mean([mine / other >= gamma for other in others])
        assert found[x] == pytest.approx(reached, abs=1e-12)


def test_the_population_changes_no_order_among_examples():
    examples = some(200)[:2]
    one, other = (rmia(*examples, *some(population=500, seed=seed)[2:]) for seed in (1, 2))
    order = np.argsort(one, kind="stable")
    assert (np.diff(other[order])[np.diff(one[order]) > 0.0] >= 0.0).all()


def test_a_larger_gamma_never_scores_higher():
    given_to = some()
    assert (rmia(*given_to, gamma=2.0) <= rmia(*given_to, gamma=1.0)).all()


def test_a_model_that_has_seen_nothing_scores_everyone_alike():
    rng = np.random.default_rng(3)
    confidences = rng.uniform(0.1, 1.0, (4, 5000))
    scores = rmia(*confidences)
    assert abs(scores.mean() - 0.5) < 0.02


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (([0.1], [0.1, 0.2]), "same length: target_losses has 1, reference_losses has 2"),
        (([np.inf], [0.1]), "target_losses must hold finite numbers, got inf"),
        (([0.1], [[0.1]]), "reference_losses must have 1 dimension"),
    ],
)
def test_bad_losses_are_named(losses, message):
    with pytest.raises(ValueError, match=message):
        difficulty_calibration(*losses)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, [1.1] * 20, r"target_confidences must lie in \[0, 1\], got 1.1"),
        (1, [0.5], "same length: target_confidences has 20, reference_confidences has 1"),
        (2, [0.5], "same length: population_target has 1, population_reference has 50"),
        (3, [[0.5]] * 50, "population_reference must have 1 dimension"),
    ],
)
def test_bad_confidences_are_named(place, value, message):
    given_to = some()
    given_to[place] = value
    with pytest.raises(ValueError, match=message):
        rmia(*given_to)


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="gamma must be above 0"):
        rmia(*some(), gamma=0.0)
    with pytest.raises(ValueError, match=r"offline_a must lie in \[0, 1\), got 1.0"):
        rmia(*some(), offline_a=1.0)
    with pytest.raises(ValueError, match="population_target must hold at least 1 confidence"):
        rmia(*some()[:2], [], [])


# guesses


def test_guesses_go_where_they_are_worth_most():
    rng = np.random.default_rng(0)
    evidence, worth = rng.normal(size=(2, 200))
    guesses = top_guesses(evidence, [0, 5, 200], worth=worth)
    assert (np.abs(guesses).sum(axis=1) == [0, 5, 200]).all()
    made = guesses[1] != 0
    assert worth[made].min() > worth[~made].max()
    np.testing.assert_array_equal(guesses[2], np.where(evidence > 0, 1, -1))
    np.testing.assert_array_equal(
        top_guesses(evidence, 7), top_guesses(evidence, 7, worth=np.abs(evidence))
    )


def test_the_posterior_adds_what_scores_say_beyond_the_log_odds():
    rng = np.random.default_rng(0)
    odds, noise = rng.normal(size=(2, 5000))
    found = posterior_log_odds(7.0 * odds + 3.0 * noise + 2.0, odds) - odds
    assert abs(np.corrcoef(found, odds)[0, 1]) < 1e-12
    assert found.std() == pytest.approx(1.0)
    assert np.corrcoef(found, noise)[0, 1] > 0.99
    np.testing.assert_allclose(posterior_log_odds(np.ones(3), np.ones(3)), 1.0)


def test_the_inner_product_is_that_in_either_precision():
    rng = np.random.default_rng(0)
    records, release = rng.normal(size=(5, 3)), rng.normal(size=3)
    np.testing.assert_allclose(inner_product(records, release), records @ release)
    single = inner_product(records.astype(np.float32), release)
    np.testing.assert_allclose(single, records @ release, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_guesses([1.0], 2), r"^numbers must hold counts of at most 1, got \[2\]"),
        (lambda: top_guesses([1.0], -1), "^numbers must hold whole numbers"),
        (lambda: top_guesses([1.0], 1, worth=[1.0, 2.0]), "worth"),
        (lambda: top_guesses([np.nan], 1), "^evidence must"),
        (lambda: posterior_log_odds([1.0], [1.0, 2.0]), "log_odds"),
        (lambda: inner_product([[1.0]], [1.0, 2.0]), r"^records must have shape \(examples, 2\)"),
    ],
)
def test_guesses_that_cannot_be_made_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_ties_are_not_guessed_in_the_order_of_the_rows():
    """In a file that lists its members first, the first of the tied rows are members."""
    rng = np.random.default_rng(0)
    right = []
    for _ in range(200):
        evidence = np.where(rng.random(400) < 0.9, 1.0, -1.0)
        guesses = top_guesses(evidence, [100])[0]
        right.append((guesses == np.where(np.arange(400) < 200, 1, -1)).sum())
    assert 45 < np.mean(right) < 55  # 90 by the order of the rows
