import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from auditkit import Fixed, _keyed, observational_label
from auditkit.attacks import label_inference
from auditkit.attacks.label_inference import (
    label_game,
    label_scores,
    likelihood_ratio_scores,
    repeat_label_game,
)
from auditkit.mechanisms.label_dp import RandomizedResponse


def setting(examples, classes, seed, *, coarse=False):
    """Labels that follow the reference, and the paper's scores, or scores with zeros and ties."""
    rng = np.random.default_rng(seed)
    reference = rng.dirichlet(np.ones(classes), examples)
    labels = (rng.random((examples, 1)) > np.cumsum(reference, axis=1)[:, :-1]).sum(axis=1)
    if coarse:
        scores = rng.integers(-2, 3, (examples, classes)).astype(float)
    else:
        scores = label_scores(rng.dirichlet(np.ones(classes), examples), reference)
    return labels, reference, scores


def one_by_one(labels, reference, scores, guesses, repetitions, rng):
    """Play each game with `label_game` and count the largest scores, tied ones in a fixed order.

    Without ties the counts are those of `observational_label`.
    """
    correct = []
    order = _keyed.generator("", "label game").permutation(len(labels))
    for _ in range(repetitions):
        game = label_game(labels, reference, rng=rng)
        seen = scores[np.arange(len(labels)), game.shown]
        largest = order[np.argsort(-np.abs(seen[order]), kind="stable")]
        right = np.sign(seen) == np.where(game.chosen == 0, 1, -1)
        numbers = [Fixed(guesses=number).number(len(labels)) for number in guesses]
        correct.append([right[largest[:number]].sum() for number in numbers])
        if len(np.unique(np.abs(seen))) == len(seen):
            bounds = [
                observational_label(seen, game.chosen, threshold=Fixed(guesses=number))
                for number in guesses
            ]
            assert correct[-1] == [bound.details["correct"] for bound in bounds]
    return np.array(correct)


# the games


@settings(max_examples=30, deadline=None)
@given(
    examples=st.integers(1, 60),
    classes=st.integers(2, 5),
    coarse=st.booleans(),
    shares=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=3),
    seed=st.integers(0, 2**32),
)
def test_repeated_games_are_those_of_label_game_one_after_another(
    examples, classes, coarse, shares, seed
):
    played = *setting(examples, classes, seed, coarse=coarse), shares, 3
    counts = repeat_label_game(
        *played[:3], guesses=shares, repetitions=3, rng=np.random.default_rng(seed)
    )
    slow = one_by_one(*played, np.random.default_rng(seed))
    np.testing.assert_array_equal(counts.correct, slow)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("classes", [2, 10])
def test_examples_that_cannot_reach_the_top_change_nothing(classes, coarse):
    played = *setting(20_000, classes, 1, coarse=coarse), [7, 0.001, 0.02], 20
    counts = repeat_label_game(
        *played[:3], guesses=played[3], repetitions=20, rng=np.random.default_rng(5)
    )
    np.testing.assert_array_equal(counts.correct, one_by_one(*played, np.random.default_rng(5)))


def test_a_game_that_falls_short_is_counted_again(monkeypatch):
    played = *setting(5_000, 4, 2), [0.01, 0.1], 20
    monkeypatch.setattr(label_inference, "_MARGIN", -1.0)  # most games fall short now
    counts = repeat_label_game(
        *played[:3], guesses=played[3], repetitions=20, rng=np.random.default_rng(5)
    )
    np.testing.assert_array_equal(counts.correct, one_by_one(*played, np.random.default_rng(5)))


def test_everyone_guessed_on_needs_every_example():
    played = *setting(300, 3, 3), [1.0, 300], 10
    counts = repeat_label_game(
        *played[:3], guesses=played[3], repetitions=10, rng=np.random.default_rng(5)
    )
    np.testing.assert_array_equal(counts.correct, one_by_one(*played, np.random.default_rng(5)))


def test_the_law_of_a_small_game_is_the_enumerated_one():
    labels = np.array([0, 2, 1])
    reference = np.array([[0.5, 0.2, 0.3], [0.1, 0.3, 0.6], [0.7, 0.2, 0.1]])
    scores = np.array([[0.9, -0.2, -0.8], [-0.5, -0.6, 0.4], [-0.7, 0.3, 0.1]])
    law = np.zeros(3)
    for coins in itertools.product((0, 1), repeat=3):
        for generated in itertools.product(range(3), repeat=3):
            shown = np.where(np.array(coins) == 0, labels, generated)
            seen = scores[np.arange(3), shown]
            top = np.argsort(-np.abs(seen))[:2]
            right = np.sum((seen[top] > 0) == (np.array(coins)[top] == 0))
            law[right] += np.prod(reference[np.arange(3), generated]) / 8
    counts = repeat_label_game(labels, reference, scores, guesses=[2], repetitions=40_000, rng=0)
    found = np.bincount(counts.correct[:, 0], minlength=3)
    assert chisquare(found, 40_000 * law).pvalue > 1e-4


def test_the_counts_have_the_law_of_a_game_written_from_scratch():
    labels, reference, scores = setting(400, 3, 8)
    rng = np.random.default_rng(9)
    naive = np.empty(4000, int)
    for game in range(4000):
        coins = rng.integers(2, size=400)
        generated = (rng.random((400, 1)) >= np.cumsum(reference, axis=1)[:, :-1]).sum(axis=1)
        seen = scores[np.arange(400), np.where(coins == 0, labels, generated)]
        top = np.argsort(-np.abs(seen))[:20]
        naive[game] = np.sum((seen[top] > 0) == (coins[top] == 0))
    ours = repeat_label_game(labels, reference, scores, guesses=[20], repetitions=4000, rng=10)
    ours = ours.correct[:, 0]
    error = np.sqrt((naive.var() + ours.var()) / 4000)
    assert abs(naive.mean() - ours.mean()) < 4.5 * error
    assert 0.9 < naive.var() / ours.var() < 1.1


def test_a_null_attack_is_right_half_of_the_time():
    labels, reference, _ = setting(2000, 3, 4)
    noise = np.random.default_rng(5).normal(size=(2000, 3))
    counts = repeat_label_game(labels, reference, noise, guesses=[200], repetitions=500, rng=6)
    assert abs(counts.correct.mean() - 100.0) < 4.5 * np.sqrt(200 / 4 / 500)


def test_ties_are_broken_without_a_look_at_the_coins():
    labels, reference, _ = setting(2000, 2, 4)
    always = np.ones((2000, 2))  # "training label", whatever is shown
    counts = repeat_label_game(labels, reference, always, guesses=[100], repetitions=3000, rng=6)
    found = np.bincount(counts.correct[:, 0], minlength=101)[35:66]
    expected = binom.pmf(np.arange(35, 66), 100, 0.5)
    assert chisquare(found, found.sum() * expected / expected.sum()).pvalue > 1e-4


def test_a_score_of_zero_is_an_abstention_and_counts_as_wrong():
    labels, reference, _ = setting(100, 2, 4)
    silent = np.zeros((100, 2))
    counts = repeat_label_game(labels, reference, silent, guesses=[100], repetitions=5, rng=6)
    assert (counts.correct == 0).all()
    assert (counts.guesses == 100).all()


def test_counts_come_in_the_order_in_which_guesses_are_given():
    played = setting(100, 3, 4)
    there = repeat_label_game(*played, guesses=[5, 0.5, 5], repetitions=4, rng=6)
    back = repeat_label_game(*played, guesses=[0.5, 5], repetitions=4, rng=6)
    np.testing.assert_array_equal(there.guesses[0], [5, 50, 5])
    np.testing.assert_array_equal(there.correct[:, [1, 2]], back.correct)
    assert (there.examples == 100).all()


# one game


def test_the_coin_is_fair_and_generated_labels_follow_the_reference():
    reference = np.tile([0.2, 0.0, 0.5, 0.3, 0.0], (60_000, 1))
    game = label_game(np.ones(60_000), reference, rng=0)
    assert abs(game.chosen.mean() - 0.5) < 0.01
    assert (game.shown[game.chosen == 0] == 1).all()
    generated = np.bincount(game.shown[game.chosen == 1], minlength=5)
    assert generated[[1, 4]].tolist() == [0, 0]
    expected = generated.sum() * np.array([0.2, 0.5, 0.3])
    assert chisquare(generated[[0, 2, 3]], expected).pvalue > 1e-4


def test_labels_before_the_mechanism_keep_its_promise_and_released_ones_seem_to_break_it():
    for call in (label_game, repeat_label_game):
        assert "before the label mechanism; never those it released" in call.__doc__
    half, mechanism = np.full((20_000, 2), 0.5), RandomizedResponse(epsilon=0.5, classes=2)
    found = {"true": [], "released": []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true = rng.integers(2, size=20_000)
        released = mechanism.privatize(true, rng=rng)
        scores = label_scores(np.eye(2)[released], half)
        for name, labels in (("true", true), ("released", released)):
            game = label_game(labels, half, rng=rng)
            shown = scores[np.arange(20_000), game.shown]
            bound = observational_label(shown, game.chosen, family="pure", delta=0.0)
            found[name].append(bound.epsilon)
    simulated = np.log((1 + np.exp(0.5)) / 2)  # the ε of a label that is dropped, and drawn anew
    assert np.mean(np.array(found["true"]) > simulated) <= 0.15  # at 95%, of 40: chance below 0.4%
    assert np.mean(np.array(found["true"]) > 0.5) <= 0.05
    assert np.mean(np.array(found["released"]) > 0.5) > 0.8


class Highest(np.random.Generator):
    """Draws the largest number below 1, always."""

    def random(self, size=None, out=None):
        out = np.empty(size) if out is None else out
        out[:] = np.nextafter(1.0, 0.0)
        return out


def test_rounding_generates_no_label_without_probability():
    reference = np.array([[1.0 / 63.0] * 63 + [0.0]])
    highest = Highest(np.random.PCG64())
    assert np.cumsum(reference)[62] < 2.0 * highest.random(1) - 1.0
    assert label_game([0], reference, rng=highest).shown == [62]
    # a right guess: the score of what is shown says that it was generated
    scores = np.r_[np.zeros(62), -1.0, 2.0][None]
    game = repeat_label_game([0], reference, scores, guesses=[1], repetitions=1, rng=highest)
    assert game.correct == 1


def test_the_same_seed_draws_the_same_game():
    first, second = (label_game([0, 1] * 50, np.full((100, 2), 0.5), rng=3) for _ in range(2))
    np.testing.assert_array_equal(first.shown, second.shown)
    np.testing.assert_array_equal(first.chosen, second.chosen)


# scores


def test_the_score_is_the_papers_product():
    rng = np.random.default_rng(0)
    target, reference = rng.dirichlet(np.ones(3), (2, 5))
    for exponent in (0.0, 1.0, 2.0, 3.5):
        found = label_scores(target, reference, exponent=exponent)
        for x, y in np.ndindex(5, 3):
            first = target[x, y] - reference[x, y]
            second = 1.0 - reference[x, y]
            assert found[x, y] == pytest.approx(first * second**exponent, rel=1e-12)


def test_both_scores_say_the_same_sign():
    rng = np.random.default_rng(0)
    target, reference = rng.dirichlet(np.ones(4), (2, 100))
    np.testing.assert_array_equal(
        np.sign(label_scores(target, reference)),
        np.sign(likelihood_ratio_scores(target, reference)),
    )


def test_no_score_guesses_better_than_the_likelihood_ratio_where_the_posterior_is_known():
    rng = np.random.default_rng(1)
    examples, classes = 20_000, 3
    prior = rng.dirichlet(np.ones(classes), examples)
    posterior = rng.dirichlet(np.ones(classes), examples)
    labels = (rng.random((examples, 1)) > np.cumsum(posterior, axis=1)[:, :-1]).sum(axis=1)
    share = {
        name: repeat_label_game(
            labels, prior, scores, guesses=[0.05], repetitions=20, rng=2
        ).correct.mean()
        for name, scores in {
            "ratio": likelihood_ratio_scores(posterior, prior),
            "paper": label_scores(posterior, prior),
            "plain": label_scores(posterior, prior, exponent=0.0),
        }.items()
    }
    assert share["ratio"] == max(share.values())


# bad input

LABELS = [0, 1]
REFERENCE = [[0.5, 0.5], [0.2, 0.8]]
SCORES = [[0.1, -0.1], [0.3, 0.2]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": [0, 2]}, "labels must hold 0, 1 only, got 2"),
        ({"labels": [0]}, "same length: labels has 1, reference has 2"),
        ({"reference": [[0.5, 0.4], [0.2, 0.8]]}, "reference must sum to 1"),
        ({"reference": [0.5, 0.5]}, "reference must have a row of probabilities"),
        ({"reference": np.empty((0, 2)), "labels": []}, "reference must have a row"),
        ({"scores": [[0.1, -0.1]]}, r"scores must have the shape of reference, \(2, 2\)"),
        ({"scores": [[0.1, np.nan], [0.0, 0.0]]}, "scores must hold finite numbers, got nan"),
        ({"guesses": []}, "guesses must hold at least one number"),
        ({"guesses": [3]}, "guesses must be at most the number of examples, 2, got 3"),
        ({"guesses": [0.0]}, "guesses must be a whole number of at least 1 or a share"),
        ({"repetitions": 0}, "repetitions must be a whole number of at least 1, got 0"),
        ({"rng": "seed"}, "rng must be a numpy Generator"),
    ],
)
def test_bad_input_is_named(changed, message):
    given = {
        "labels": LABELS,
        "reference": REFERENCE,
        "scores": SCORES,
        "guesses": [1],
        "repetitions": 2,
        "rng": 0,
    }
    with pytest.raises(ValueError, match=message):
        repeat_label_game(**{**given, **changed})


@pytest.mark.parametrize(
    ("target", "reference", "message"),
    [
        ([[0.5, 0.5]], REFERENCE, "target and reference must have the same shape"),
        ([[0.5, 0.6]], [[0.5, 0.5]], "target must sum to 1"),
        ([0.5, 0.5], [0.5, 0.5], "target and reference must have the same shape"),
        ([[0.5, 0.5]], [[0.5, -0.5]], "reference must hold numbers of at least 0"),
    ],
)
def test_models_that_do_not_fit_are_named(target, reference, message):
    for score in (label_scores, likelihood_ratio_scores):
        with pytest.raises(ValueError, match=message):
            score(target, reference)


def test_an_exponent_below_zero_is_refused():
    with pytest.raises(ValueError, match="exponent must be a finite number of at least 0"):
        label_scores(REFERENCE, REFERENCE, exponent=-1.0)


def test_a_logarithm_of_nothing_is_refused():
    with pytest.raises(ValueError, match="target must be above 0"):
        likelihood_ratio_scores([[1.0, 0.0]], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="reference must be above 0"):
        likelihood_ratio_scores([[0.5, 0.5]], [[1.0, 0.0]])


def test_a_seed_that_the_mechanism_had_too_does_not_give_its_answers_away():
    """Randomised response and the game both draw one number an example, from the same seed."""
    for seed in range(5):
        labels = np.random.default_rng(99).integers(2, size=5000)
        released = RandomizedResponse(epsilon=0.5, classes=2).privatize(labels, rng=seed)
        game = label_game(labels, np.full((5000, 2), 0.5), rng=seed)
        scores = np.where(game.shown == released, 1.0, -1.0)
        rule = Fixed(guesses=1.0)
        bound = observational_label(scores, game.chosen, family="pure", delta=0, threshold=rule)
        assert bound.epsilon < 0.5  # 1.0 where the coins were the mechanism's own draws
