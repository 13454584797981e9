"""Photographs: who sees what, what is generated and stored, and the audits of what is stored."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from experiments.panoramia import photograph_audits, photograph_networks, photographs
from experiments.panoramia.audits import NESTED, NULL, TARGET
from experiments.panoramia.packed import pack
from experiments.panoramia.photographs import CIFAR, FASHION, NOISY, PREPARATIONS, SAMPLED
from experiments.panoramia.stacks import PARTS

from auditkit.models.generators import Examples

SEED = 0


def known(images) -> set[bytes]:
    return {image.tobytes() for image in images.inputs}


def test_parts_share_no_image_and_the_null_sees_none_that_is_audited():
    images = photographs.world(FASHION, "half the side", SEED)
    assert [len(part) for part in images] == [2000, 500, 500, 500, 1000, 2000, 500, 1000]
    apart = ("train", "real", "others", "unseen_train", "unseen")
    together = np.concatenate([getattr(images, name).inputs for name in apart])
    # a few images of clothes are alike when they are small
    assert len(np.unique(together.reshape(len(together), -1), axis=0)) >= len(together) - 3
    for name in ("spare", "train", "real"):
        assert known(getattr(images, name)) <= known(images.members)
    # the null has met the generator's images, as the target has
    assert known(images.spare) <= known(images.others)


@pytest.mark.parametrize("preparation", list(PREPARATIONS))
def test_real_and_generated_images_have_the_same_levels(preparation):
    images = photographs.world(FASHION, preparation, SEED)
    drawn = photographs.made(FASHION, preparation, SEED)
    assert [len(part) for part in drawn] == [500, 1000, 500]
    side = 28 // PREPARATIONS[preparation].factor
    for part in (images.real, images.unseen, drawn.other):
        assert part.inputs.dtype == np.uint8
        assert part.inputs.shape[1:] == (side, side, 1)
    if PREPARATIONS[preparation].noise:
        assert (images.real.inputs == 0).mean() < 0.005
        assert abs(images.real.inputs.mean() - drawn.other.inputs.mean()) < 3.0


def test_images_are_reduced_to_means_of_squares_with_white_as_one():
    pixels = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    small = photographs.reduced(pixels, 2)
    assert small.shape == (2, 2, 2, 3)
    assert small[0, 0, 0, 1] == pytest.approx(pixels[0, :2, :2, 1].mean() / 255.0)
    np.testing.assert_array_equal(
        photographs.finished(photographs.reduced(pixels, 1), 0.0, np.random.default_rng(0)), pixels
    )


def test_the_painter_keeps_mean_and_spread_of_each_class():
    rng = np.random.default_rng(0)
    labels = np.arange(6_000) % 10
    flat = rng.normal(size=(6_000, 16)) * np.linspace(2.0, 0.1, 16) + labels[:, None] / 10.0
    clean = Examples(flat.reshape(-1, 4, 4, 1).astype(np.float32), labels)
    drawn = photographs.painter(clean, 8).sample(20_000, rng=rng)
    for label in (0, 9):
        real, made = clean.inputs[labels == label], drawn.inputs[drawn.labels == label]
        assert np.abs(real.mean(axis=0) - made.mean(axis=0)).max() < 0.3
    assert np.abs(clean.inputs.std(axis=0) / drawn.inputs.std(axis=0) - 1.0).max() < 0.15


class Judge:
    """A labeller that says one thing of dark images, and is unsure of bright ones."""

    def log_probabilities(self, images):
        dark = images.mean(axis=(1, 2, 3)) < 100
        said = np.full((len(images), 10), 0.02)
        said[:, 3] = 0.82
        said[~dark] = 0.1
        return np.log(said)


def test_labels_are_drawn_or_the_most_likely_ones(monkeypatch):
    images = np.repeat(np.array([0, 255], np.uint8), 4_000)[:, None, None, None]
    drawn = photographs.Made(*[Examples(images, np.zeros(8_000, np.int64))] * 3)
    monkeypatch.setattr(photographs, "labeller", lambda *_: (Judge(), 1.0))
    monkeypatch.setattr(photographs, "made", lambda *_: drawn)
    sampled, likely = (
        photographs.labelled(FASHION, NOISY, SEED, how).other.labels
        for how in (SAMPLED, photographs.MOST_LIKELY)
    )
    assert set(likely[:4_000]) == {3}
    assert np.mean(sampled[:4_000] == 3) == pytest.approx(0.82, abs=0.03)
    assert np.bincount(sampled[4_000:], minlength=10).min() > 300


def test_odds_are_those_of_the_label_and_tell_small_losses_apart():
    logits = np.array([[40.0, 0.0, 0.0], [60.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    found = photographs.own_odds(logs, np.array([0, 0, 1]))
    np.testing.assert_allclose(found, [40 - np.log(2), 60 - np.log(2), 1 - np.log(2)], rtol=1e-6)


def test_the_null_is_trained_on_others(monkeypatch):
    lessons = []

    class Known:
        kept: ClassVar[dict] = {}

        def log_probabilities(self, images):
            return np.full((len(images), 10), -np.log(10.0))

    def train(_, examples, *_args, **_options):
        lessons.append(examples)
        return Known()

    images = photographs.world(FASHION, NOISY, SEED)
    parts = dict.fromkeys(PARTS, images.real)
    monkeypatch.setattr(photograph_networks, "shown", lambda *_: (images, parts))
    monkeypatch.setattr(photograph_networks, "trained", train)
    for release in (TARGET, NULL):
        rows = photograph_networks.networks(FASHION, release, 2, SEED)
        assert [row["part"] for row in rows] == list(PARTS)
    assert lessons[0] is images.members
    assert lessons[1] is images.others


@pytest.fixture
def told(monkeypatch):
    """Let the audits read scores of members that a network knows, and of a null that knows none."""
    rng = np.random.default_rng(0)
    sizes = dict(zip(PARTS, (1_000, 2_000, 1_000, 2_000, 1_000, 2_000), strict=True))
    real = {name: name in ("train", "real") for name in PARTS}
    columns = {
        name: {
            "label": rng.integers(10, size=size),
            "detector": rng.normal(0.5 * ("made" not in name), 1.0, size),
            "generated": rng.normal(2.0, 1.0, size),
            "real": rng.normal(2.0, 1.0, size),
        }
        for name, size in sizes.items()
    }
    rows = pd.DataFrame(
        [
            {"release": release, "part": name, "after": 2, "seed": 0, "accuracy": 0.5}
            | {"epsilon": 10.0, "odds": pack(rng.normal(4.0 * (gain and real[name]), 1.0, size))}
            for release, gain in ((TARGET, True), (NULL, False))
            for name, size in sizes.items()
        ]
    )
    monkeypatch.setattr(photograph_audits, "told", lambda *_: columns)
    monkeypatch.setattr(photograph_audits, "stored", lambda _: rows)
    monkeypatch.setattr(photograph_audits, "PAIRS", (2_000,))
    photograph_audits.detected.cache_clear()
    photograph_audits.private_scores.cache_clear()
    yield
    photograph_audits.detected.cache_clear()
    photograph_audits.private_scores.cache_clear()


@pytest.mark.usefixtures("told")
def test_a_network_that_knows_its_members_is_told_from_its_null():
    rows = pd.DataFrame(photograph_audits.overfitting(2, 0, 2))
    means = rows.groupby(["release", "audit", "attack"])["difference"].mean()
    for audit, attack in (("PANORAMIA", NESTED), ("RM;RN", NESTED), ("O(1)", "loss")):
        assert means[TARGET, audit, attack] > 1.0
        assert means[NULL, audit, attack] < 0.2


@pytest.mark.usefixtures("told")
def test_a_helper_and_a_detector_count_where_they_tell_something():
    rows = pd.DataFrame(photograph_audits.detectors(NOISY, SAMPLED, 0, 2))
    c = rows.groupby("baseline")["c_lower"].mean()
    assert c["none"] < 0.1 < c["detector"]


@pytest.mark.usefixtures("told")
def test_slack_takes_little_where_it_is_small():
    found = [
        pd.DataFrame(photograph_audits.slack(slack, 0.0, 10.0, 0, 2)).query("release == 'audited'")
        for slack in (0.0, 1e-5, 1e-2)
    ]
    none, little, much = (one["both_lower"].mean() for one in found)
    assert none >= little > 0.8 * none
    assert much < little


@pytest.mark.usefixtures("told")
def test_curves_and_losses_are_of_the_right_images():
    curves = pd.DataFrame(photograph_audits.recall_curves(2, 0))
    best = curves[curves["recall"] < 0.3].groupby(["attack", "release"])["precision"].min()
    assert best[NESTED, TARGET] > 0.9 > best[NESTED, NULL]
    found = pd.DataFrame(photograph_audits.losses(2, 0)).query("level < 0.51 and level > 0.49")
    found = found.set_index(["release", "kind"])["loss"]
    assert found[TARGET, "members"] < 0.1 < found[TARGET, "unseen"]
    assert found[NULL, "members"] == pytest.approx(found[NULL, "unseen"], abs=0.1)


@pytest.mark.usefixtures("told")
def test_a_network_that_is_not_stored_is_named():
    with pytest.raises(ValueError, match="has no network of"):
        photograph_audits.networks("pan-networks-scores", after=99, seed=0)


def test_scores_are_stored_at_the_papers_scale_only():
    columns = {"odds": np.array([1.0, 2.0])}
    assert photographs.summary(FASHION, columns)["odds"] is None
    assert photographs.summary(CIFAR, columns)["odds"] == pack(columns["odds"])
