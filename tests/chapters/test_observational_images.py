"""The audits of images: games that add up, and reference models that are what they are called."""

import math

import numpy as np
import pytest
from experiments.observational import images
from experiments.observational.audits import SHARES, audit_rows, repeat_membership_game
from experiments.observational.references import exponents, lessons, product
from scipy.special import log_softmax, softmax

CLASSES = 4


def drawn(law, rng):
    """Draw a label from each row."""
    return (law.cumsum(axis=1)[:, :-1] < rng.random((len(law), 1))).sum(axis=1)


def played(knows, rng, examples=2000):
    """Audit a target that tells the labels of its own examples from others as much as it `knows`.

    The reference model is the law of the labels, so that nothing else is to be found.
    """
    laws = rng.dirichlet(np.ones(CLASSES), size=(2, examples))
    labels = [drawn(law, rng) for law in laws]
    said = (1.0 - knows) * laws[0] + knows * np.eye(CLASSES)[labels[0]]
    rows = audit_rows(
        labels[0],
        said,
        laws[0],
        held_out=(labels[1], laws[1], laws[1]),
        repetitions=5,
        rng=rng,
        which="law",
    )
    return {(row["attack"], row["played_on"], row["guesses"]): row for row in rows}


def test_a_target_that_remembers_labels_is_found_by_every_attack_but_not_by_the_placebo():
    rows = played(0.5, np.random.default_rng(0))
    for attack in ("label inference", "difficulty calibration", "RMIA"):
        assert rows[attack, "training", "1%"]["bound"] > 1.0
        assert rows[attack, "training", "1%"]["pure"] > 0.5
        assert rows[attack, "placebo", "corrected sweep"]["bound"] < 0.1


def test_a_target_that_is_the_law_itself_is_not_found():
    rows = played(0.0, np.random.default_rng(0))
    assert max(row["bound"] for (*_, guesses), row in rows.items() if guesses != "sweep") < 0.5


def test_the_sweep_is_never_below_what_it_takes_the_best_of_and_pays_nothing():
    for (attack, on, guesses), row in (rows := played(0.3, np.random.default_rng(1))).items():
        if guesses in ("1%", "corrected sweep"):
            assert row["bound"] <= rows[attack, on, "sweep"]["bound"] + 1e-6


def test_only_label_inference_has_a_shift():
    rows = played(0.3, np.random.default_rng(1))
    assert [key for key, row in rows.items() if row["tau"] is not None] == [
        ("label inference", "training", "30%, τ from the placebo")
    ]


def test_a_placebo_of_another_size_is_refused():
    law = np.full((10, 2), 0.5)
    held_out = np.zeros(9, int), law[:9], law[:9]
    with pytest.raises(ValueError, match="held_out must hold as many examples as labels"):
        audit_rows(np.zeros(10, int), law, law, held_out=held_out, repetitions=2, rng=None)


def test_the_membership_game_counts_what_sorting_each_game_counts():
    members, others = np.random.default_rng(0).normal([[0.5], [0.0]], size=(2, 250))
    games = repeat_membership_game(members, others, 7, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    rng.permutation(500)  # of ties, of which there are none
    for game in range(7):
        coins = rng.random(250) < 0.5
        ranked = coins[np.argsort(-np.where(coins, members, others))]
        for place, share in enumerate(SHARES):
            size = games.guesses[game, place]
            assert abs(size - 250 * share) <= 0.5
            right = ranked[: (size + 1) // 2].sum() + (~ranked[250 - size // 2 :]).sum()
            assert games.correct[game, place] == right


def test_exponents_come_out_of_labels_drawn_with_them():
    rng = np.random.default_rng(0)
    logs = log_softmax(rng.normal(scale=2.0, size=(2, 40_000, CLASSES)), axis=2)
    labels = drawn(product(logs, np.array([0.3, 0.9])), rng)
    np.testing.assert_allclose(exponents(logs, labels), [0.3, 0.9], atol=0.05)


def test_a_model_that_is_three_times_too_sure_has_the_exponent_one_third():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2.0, size=(40_000, CLASSES))
    labels = drawn(softmax(logits, axis=1), rng)
    assert exponents(3.0 * logits[None], labels) == pytest.approx(1.0 / 3.0, rel=0.05)


def test_lessons_are_probabilities_between_the_target_and_the_truth():
    said = np.array([[0.5, 0.5], [0.9, 0.1]])
    np.testing.assert_allclose(lessons(said, [0, 1]), [[0.6, 0.4], [0.72, 0.28]])


def test_nobody_shares_an_image():
    for spare in (0, 500):
        own, audited, unseen = images.split(1000, spare)
        assert [len(half.labels) for half in (own, audited, unseen)] == [1000 - spare, 1000, 1000]
        together = np.concatenate([half.features for half in (own, audited, unseen)])
        assert len(np.unique(together, axis=0)) == len(together)


def test_halves_larger_than_half_are_refused():
    with pytest.raises(ValueError, match="size must be at most 25000"):
        images.split(25_001)


def test_what_sets_a_temperature_was_not_trained_on(monkeypatch):
    shown = []
    monkeypatch.setattr(images, "fit", lambda half, *_, **__: shown.append(half))
    images.model.__wrapped__(0, 1000, 0, 1, all_but_kept=True)
    own = images.split(1000).own
    assert len(shown[0].labels) + len(images._kept(own).labels) == len(own.labels)
    np.testing.assert_array_equal(images._kept(own).features, own.features[len(shown[0].labels) :])


@pytest.mark.parametrize("mechanism", images.PRIVATE)
def test_a_target_without_noise_knows_its_labels_and_one_with_noise_does_not(mechanism):
    audited = images.split(1000).audited
    rng = np.random.default_rng(0)
    knows = [
        images.target_probabilities(mechanism, epsilon, 0, size=1000, rng=rng).audited
        for epsilon in (math.inf, 0.1)
    ]
    right = [(said.argmax(axis=1) == audited.labels).mean() for said in knows]
    assert right[0] > 0.8
    assert right[1] < right[0] - 0.05


def test_a_target_of_other_images_is_trained_on_those_the_auditor_does_without(monkeypatch):
    shown = []
    monkeypatch.setattr(images, "fit", lambda half, *_, **__: shown.append(half))
    images.other_images(images.split(1000, 400), 0.0, 0, None)
    np.testing.assert_array_equal(shown[0].labels, images.split(1000).own.labels[:400])


@pytest.mark.parametrize("mechanism", images.NULL)
def test_a_target_that_never_saw_the_labels_gives_what_its_placebo_gives(mechanism):
    bounds = {
        (row["reference"], row["played_on"]): row["bound"]
        for row in images.protected_images(
            mechanism, 0.0, 0, 3000, 20, rng=np.random.default_rng(0)
        )
        if (row["attack"], row["guesses"]) == ("label inference", "sweep")
    }
    for reference in ("trained", "scaled", "distilled", "pooled"):
        training, placebo = bounds[reference, "training"], bounds[reference, "placebo"]
        assert abs(training - placebo) < 0.5
    assert bounds["trained", "training"] > 0.1 or mechanism == images.DRAWN
    assert bounds["pooled", "training"] < 0.3
