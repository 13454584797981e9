"""Heads in two worlds: from records to canaries, models, scores and audits."""

import numpy as np
import pytest
import torch
from experiments.substitute import audits, heads, linear
from experiments.substitute.linear import CANARIES, Records, Training

from auditkit import Bonferroni, Split, Sweep, audit_scores
from auditkit.attacks.canaries import clipped_gradients, logit_score
from auditkit.datasets import load
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, audit_sgd

TRAINING = Training(1.0, 10.0, 2.0, 40, 0.02)
BITS = np.arange(600) % 2


@pytest.fixture(scope="module")
def records() -> Records:
    rng = np.random.default_rng(0)
    centre = 3.0 * rng.normal(size=12) / np.sqrt(12)

    def some(number: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(2, size=number)
        return 2.0 * rng.normal(size=(number, 12)) + np.outer(2 * labels - 1, centre), labels

    return Records(*some(60), *some(80), *some(50), logits=1)


@pytest.fixture(scope="module")
def ten() -> Records:
    rng = np.random.default_rng(1)

    def some(number: int) -> tuple[np.ndarray, np.ndarray]:
        return 3.0 * rng.normal(size=(number, 12)), rng.integers(10, size=number)

    return Records(*some(60), *some(80), *some(50), logits=10)


# --- audits --------------------------------------------------------------------------------------


def test_the_three_numbers_are_those_of_the_package():
    scores = np.random.default_rng(0).normal(2.0 * BITS)
    found = audits.audited(scores, BITS, 7)

    def bound(threshold, family):
        audit = audit_scores(
            scores, BITS, method="two-worlds", threshold=threshold, family=family, delta=1e-5
        )
        return pytest.approx(audit.epsilon, abs=1e-5)

    # another fifth chooses the cut there than in the study
    assert abs(found["bound"] / bound(Split(0.2, rule="midpoint"), "gaussian").expected - 1) < 0.2
    assert found["bound"] < bound(Sweep(), "gaussian").expected
    assert found["bound_plain"] == bound(Bonferroni(10), "approx")
    assert found["best_of_all"] > bound(Sweep(), "gaussian").expected > found["bound_plain"]


@pytest.mark.parametrize("seed", range(3))
def test_permuted_and_swapped_worlds_prove_nothing(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(3.0 * BITS)
    for bits in (rng.permutation(BITS), 1 - BITS):
        found = audits.audited(scores, bits, seed)
        assert found["bound"] == found["bound_plain"] == 0.0
    assert audits.audited(scores, BITS, seed)["bound"] > 5.0


def test_what_is_spent_grows_with_the_steps_up_to_the_promise():
    training = Training(0.25, 10.0, 2.0, 500, 0.001)
    spent = [audits.promised(training.noise, 0.25, step) for step in (100, 500)]
    assert spent[0] == {
        "add_remove": pytest.approx(1.825, abs=1e-3),
        "substitute": pytest.approx(3.851, abs=1e-3),
    }
    assert spent[1]["add_remove"] == pytest.approx(4.476, abs=1e-3)
    assert 9.999 < spent[1]["substitute"] <= 10.0


# --- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("centred", [True, False])
def test_images_are_the_shipped_ones_at_another_scale(centred):
    dealt, shipped = heads.images(1, 16.0, centred, 0), load("cifar10", part="features")
    assert np.linalg.norm(dealt.pool_features, axis=1).mean() == pytest.approx(16.0)
    along = shipped["directions"][:128]
    slow = shipped["test_features"][:50, :128].astype(np.float64) @ along
    slow = slow if centred else slow + shipped["mean"]
    scale = np.linalg.norm(dealt.test_features[0]) / np.linalg.norm(slow[0])
    own = dealt.test_features[:50]
    np.testing.assert_allclose(own @ own.T, scale**2 * slow @ slow.T, rtol=1e-4, atol=1e-3)
    assert set(dealt.labels) == {0, 1}
    assert dealt.features.shape == (500, 128 + (not centred))


def test_repeats_have_other_images_and_none_of_them_is_public():
    first, second = (heads.images(10, 16.0, True, repeat) for repeat in (0, 1))
    public = {row.tobytes() for row in first.pool_features}
    own = [{row.tobytes() for row in dealt.features} for dealt in (first, second)]
    assert not public & (own[0] | own[1])
    assert len(own[0] & own[1]) < 20
    again = heads.images.__wrapped__(10, 16.0, True, 0)
    np.testing.assert_array_equal(again.features, first.features)
    assert set(first.labels) == set(range(10))


# --- canaries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CANARIES)
@pytest.mark.parametrize("many", [False, True])
def test_canaries_are_what_their_names_say(name, many, records, ten):
    of = ten if many else records
    crafted = linear.craft(name, of, TRAINING, np.random.default_rng(0))
    plain, _ = linear.references(of, TRAINING)
    x, y = of.features[crafted.target], of.labels[crafted.target]
    assert crafted.target == plain.target
    if name == "crafted gradient":
        assert isinstance(crafted.canary, GradientCanary)
        assert crafted.norms == (2.0, 2.0)
        assert crafted.cosine == -1.0
        return
    assert isinstance(crafted.canary, InputCanary)
    features, labels = crafted.canary.features, crafted.canary.labels
    np.testing.assert_array_equal(features[0], x)
    assert labels[0] == y
    if name == "mislabelled":
        np.testing.assert_array_equal(features[1], x)
        assert labels[1] != y
    elif name == "adversarial natural":
        place = int((of.pool_features == features[1]).all(axis=1).argmax())
        assert labels[1] == of.pool_labels[place]
    else:
        assert labels[1] == y
    assert crafted.cosine < (0.2 if many else -0.3)


def test_the_input_as_printed_has_a_shorter_gradient_than_the_repaired_one(records):
    norms = [
        linear.craft(name, records, TRAINING, np.random.default_rng(0)).norms[1]
        for name in linear.OBJECTIVES
    ]
    assert norms[1] < 0.5 * norms[0]


def test_without_sampling_the_whitened_direction_is_the_difference_of_the_gradients(records):
    crafted = linear.craft("mislabelled", records, TRAINING, np.random.default_rng(0))
    _, clipped = linear.references(records, TRAINING)
    pair = clipped_gradients(
        clipped.model, crafted.canary.features, crafted.canary.labels, clip=2.0
    )
    assert crafted.direction @ (pair[0] - pair[1]) == pytest.approx(
        np.linalg.norm(pair[0] - pair[1])
    )


def test_a_canary_without_a_name_is_refused(records):
    with pytest.raises(ValueError, match="name must be one of"):
        linear.craft("crafted", records, TRAINING, np.random.default_rng(0))


# --- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [False, True])
def test_scores_and_accuracy_are_those_of_the_weights(many, records, ten):
    of = ten if many else records
    crafted = linear.craft("mislabelled", of, TRAINING, np.random.default_rng(0))
    kept = linear.train(of, crafted, TRAINING, runs=6, snapshots=[20, 40], seed=3)
    others = np.arange(60) != crafted.target
    whole = audit_sgd(
        of.features[others],
        of.labels[others],
        crafted.canary,
        runs=6,
        steps=40,
        sampling_rate=1.0,
        noise_multiplier=TRAINING.noise,
        clip=2.0,
        learning_rate=0.02,
        logits=of.logits,
        snapshots=[20, 40],
        seed=3,
    )
    for run in range(6):
        for at in range(2):
            head = torch.from_numpy(whole.weights[run, at].reshape(of.logits, 12)).double()
            said = (torch.from_numpy(of.test_features) @ head.T).numpy()
            guess = said[:, 0] > 0 if of.logits == 1 else said.argmax(axis=1)
            pair = np.asarray(crafted.canary.features) @ head.numpy().T
            pair = pair[:, 0] if of.logits == 1 else pair
            slow = [
                logit_score(pair, crafted.canary.labels, logits=of.logits),
                whole.weights[run, at] @ crafted.direction,
                np.mean(guess == of.test_labels),
            ]
            np.testing.assert_allclose(kept.kept[run, at], slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["crafted gradient", "mislabelled"])
def test_the_null_cannot_tell_its_worlds_apart(name, records):
    crafted = linear.craft(name, records, TRAINING, np.random.default_rng(0))
    null = linear.null_of(crafted.canary)
    runs = {"runs": 8, "snapshots": [40], "seed": 0, "met": null}
    seen = linear.train(records, crafted, TRAINING, **runs)
    # whatever its bit, a run of the null is the run with z of the same number
    other = linear.train(records, crafted, TRAINING, **{**runs, "met": None})
    zeros = seen.bits == 0
    np.testing.assert_allclose(seen.kept[zeros], other.kept[zeros], rtol=1e-4, atol=1e-5)
    assert (seen.kept[~zeros, 0, 0] != other.kept[~zeros, 0, 0]).all()
    assert (seen.kept[~zeros, 0, 0] < other.kept[~zeros, 0, 0]).all()


def test_a_swapped_canary_turns_the_worlds_round(records):
    crafted = linear.craft("mislabelled", records, TRAINING, np.random.default_rng(0))
    own = crafted.canary
    swapped = InputCanary(np.asarray(own.features)[::-1], np.asarray(own.labels)[::-1])
    runs = {"runs": 300, "snapshots": [40], "seed": 0}
    found = [
        linear.train(records, crafted, TRAINING, **runs, met=met).kept[:, 0, 0]
        for met in (own, swapped)
    ]
    bits = np.arange(300) % 2
    assert audits.audited(found[0], bits, 0)["bound"] > 2.0
    assert audits.audited(found[1], bits, 0)["best_of_all"] == 0.0
    assert audits.audited(-found[1], bits, 0)["bound"] > 2.0


@pytest.mark.parametrize("name", CANARIES)
def test_the_audit_of_a_head_lies_below_its_accountant(name, records):
    crafted = linear.craft(name, records, TRAINING, np.random.default_rng(1))
    trained = linear.train(records, crafted, TRAINING, runs=400, snapshots=[20, 40], seed=1)
    for at, step in enumerate((20, 40)):
        spent = audits.promised(TRAINING.noise, 1.0, step)
        for column in (0, 1):
            found = audits.audited(trained.kept[:, at, column], trained.bits, 0)
            assert max(found["bound"], found["bound_plain"]) <= spent["substitute"]
            if name == "crafted gradient" and step == 40:
                assert found["bound"] > spent["add_remove"]


# --- the cells -----------------------------------------------------------------------------------


@pytest.mark.parametrize("canary", ["crafted gradient", "adversarial natural"])
def test_where_both_worlds_hold_the_target_nothing_is_proven(canary):
    for row in heads.at_the_null(canary, 0.0625, 300, rng=np.random.default_rng(0)):
        assert row["bound"] == row["bound_plain"] == 0.0
        assert row["best_of_all"] < 0.5


def test_audits_of_a_tight_canary_stay_below_the_truth():
    row = heads.coverage(1.0, 10.0, 200, 4, 0, rng=np.random.default_rng(0))
    assert row["bound_exceeded"] == row["bound_plain_exceeded"] == 0
    assert 4.0 < row["bound_mean"] < row["best_of_all_mean"]
