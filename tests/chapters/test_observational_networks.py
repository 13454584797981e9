"""The audits of networks on pixels: what is stored, who learns from what, the three games."""

import math

import numpy as np
import pytest
from experiments.observational import drawn_networks, network_audits, networks
from experiments.observational.network_audits import INTERVENTIONAL, NULL, OBSERVATIONAL
from experiments.observational.networks import CHECKPOINT, FRESH, PASSES

TINY = networks.TINY | {"seed": 0}


def law(rows, rng):
    return rng.dirichlet(np.full(networks.CLASSES, 0.2), size=rows)


def test_what_is_stored_is_what_was_said():
    said = law(500, np.random.default_rng(0)).clip(1e-9)
    said /= said.sum(axis=1, keepdims=True)
    again = networks.unpack(networks.pack(np.log(said)))
    assert np.abs(again / said - 1.0).max() < 2e-2
    np.testing.assert_allclose(again.sum(axis=1), 1.0, rtol=1e-12)
    with pytest.raises(ValueError, match="logs must be at least -655"):
        networks.pack(np.array([[-700.0]]))


def test_labels_are_drawn_from_the_law_and_the_same_each_time():
    rows = np.repeat(law(1, np.random.default_rng(0)), 20_000, axis=0)
    labels = networks.draw(rows, 0, "audited")
    shares = np.bincount(labels, minlength=networks.CLASSES) / len(labels)
    assert np.abs(shares - rows[0]).max() < 0.02
    assert np.array_equal(labels, networks.draw(rows, 0, "audited"))
    for other in (networks.draw(rows, 1, "audited"), networks.draw(rows, 0, "unseen")):
        assert not np.array_equal(labels, other)


def test_a_reference_model_that_is_unsure_is_put_right_on_images_that_are_not_played_with():
    sure = law(20_000, np.random.default_rng(0)).clip(1e-6)
    sure /= sure.sum(axis=1, keepdims=True)
    labels = networks.draw(sure, 0, "audited")
    unsure = networks.raised(sure, 0.5)
    labels[: 20_000 * networks.PLAYED // networks.WHOLE] = 0
    power = networks.exponent(unsure, labels)
    assert power == pytest.approx(2.0, rel=0.03)
    np.testing.assert_allclose(networks.raised(unsure, 2.0), sure, rtol=1e-6)


def test_nobody_shares_an_image():
    images = networks.split(networks.FASHION, 1000)
    assert [len(half.labels) for half in images] == [1000] * 3
    together = np.concatenate([half.features for half in images])
    assert len(np.unique(together, axis=0)) == len(together)


@pytest.fixture
def trainings(monkeypatch):
    """Record what networks are trained on, and train none."""
    found = []

    class Known:
        def log_probabilities(self, images):
            return np.full((len(images), networks.CLASSES), -math.log(networks.CLASSES))

    def train(images, labels, **options):
        found.append((images, np.asarray(labels), options))
        return Known()

    monkeypatch.setattr(networks, "train_convolutional", train)
    networks.law.cache_clear()
    yield found
    networks.law.cache_clear()


@pytest.mark.parametrize("mechanism", ["LP-1ST", networks.CLUSTERED, networks.MODELLED, "ALIBI"])
def test_without_noise_every_mechanism_trains_the_same_network(trainings, mechanism):
    half = networks.split(networks.FASHION, 1000).audited
    recipe = {"data": networks.FASHION, "passes": 4, "precision": "float32"}
    networks.private(half, mechanism, math.inf, 0, np.random.default_rng(0), **recipe)
    images, labels, options = trainings[-1]
    assert images is half.images
    hard = labels.argmax(axis=1) if labels.ndim == 2 else labels
    assert np.array_equal(hard, half.labels)
    if relabel := options.get("relabel"):
        assert np.array_equal(relabel(networks.trained(half, labels, 0, 0, **recipe)), labels)


@pytest.mark.parametrize("mechanism", ["LP-1ST", networks.CLUSTERED, networks.MODELLED, "ALIBI"])
def test_noise_hides_labels(trainings, mechanism):
    half = networks.split(networks.FASHION, 1000).audited
    recipe = {"data": networks.FASHION, "passes": 4, "precision": "float32"}
    kept = []
    for epsilon in (10.0, 0.1):
        networks.private(half, mechanism, epsilon, 0, np.random.default_rng(0), **recipe)
        labels = trainings[-1][1]
        kept.append(((labels.argmax(axis=1) if labels.ndim == 2 else labels) == half.labels).mean())
    assert kept[0] > kept[1] + 0.1


def test_a_target_goes_on_from_a_checkpoint_of_other_images(trainings):
    cell = TINY | {"mechanism": "LP-1ST", "epsilon": math.inf, "start": CHECKPOINT}
    rows = networks.audited_networks(**cell, rng=np.random.default_rng(0))
    images = networks.split(networks.FASHION, 1000)
    (first, _, _), (second, labels, options) = trainings
    assert first is images.own.images
    assert second is images.audited.images
    assert np.array_equal(labels, images.audited.labels)
    assert options["initial"] is not None
    assert [(row["network"], row["images"]) for row in rows] == [
        (network, name) for network in (CHECKPOINT, "target") for name in ("audited", "unseen")
    ]


def test_drawn_labels_take_the_place_of_true_ones(trainings):
    cell = TINY | {"mechanism": "LP-1ST", "epsilon": math.inf}
    drawn_networks.drawn_networks(**cell, rng=np.random.default_rng(0))
    half = networks.split(networks.FASHION, 1000).audited
    images, labels, _ = trainings[-1]
    assert images is half.images
    # of a reference model that knows nothing
    assert 0.05 < (labels == half.labels).mean() < 0.15


@pytest.fixture
def audited(monkeypatch):
    """Let targets know the labels that they were trained on, and what else the reference knows."""
    rng = np.random.default_rng(0)
    laws = {name: law(5000, rng).clip(1e-6) for name in network_audits.EITHER}
    laws = {name: one / one.sum(axis=1, keepdims=True) for name, one in laws.items()}
    true = {name: networks.draw(laws[name], 9, name) for name in laws}
    monkeypatch.setattr(network_audits, "PLAYED", 2000)

    def told(id_, *, images, network="reference", **_):
        if network in ("reference", CHECKPOINT):
            return laws[images][: 5000 if images == "audited" else 2000]
        if images == "unseen":
            return laws[images][:2000]
        power = networks.exponent(laws[images], true[images])
        drawn = networks.draw(networks.raised(laws[images], power), 0, images)
        known = true[images] if id_ == networks.OBSERVED else drawn
        return (0.4 * laws[images] + 0.6 * np.eye(networks.CLASSES)[known])[:2000]

    halves = {name: networks.Half(laws[name], laws[name], true[name]) for name in laws}
    halves["unseen"] = halves["unseen"].first(2000)
    split = networks.Split(halves["audited"], halves["audited"], halves["unseen"])
    monkeypatch.setattr(network_audits, "told", told)
    monkeypatch.setattr(network_audits, "split", lambda _: split)

    def audit(game, start=FRESH):
        rows = network_audits.network_audits(
            game, "LP-1ST", math.inf, start, PASSES, True, 0, 5, np.random.default_rng(1)
        )
        wanted = ("label inference", "1%")
        return {
            row["played_on"]: row["bound"]
            for row in rows
            if (row["attack"], row["guesses"]) == wanted
        }

    return audit


@pytest.mark.parametrize("start", [FRESH, CHECKPOINT])
def test_true_labels_are_found_where_they_were_learnt(audited, start):
    found = audited(OBSERVATIONAL, start)
    assert found["training"] > 1.0
    assert found["placebo"] < 0.5


def test_drawn_labels_are_found_where_they_were_learnt_and_true_ones_are_not(audited):
    assert audited(INTERVENTIONAL)["training"] > 1.0
    assert audited(NULL)["training"] < 0.5


def test_every_audit_has_a_network_that_is_stored():
    targets = {
        OBSERVATIONAL: networks.audited_networks.paper,
        INTERVENTIONAL: drawn_networks.drawn_networks.paper,
        NULL: drawn_networks.drawn_networks.paper,
    }
    names = ("mechanism", "epsilon", "seed")
    known = {(cell["passes"], cell["seed"]) for cell in networks.reference_networks.paper}
    for cell in network_audits.PAPER:
        rows = [one for one in targets[cell["game"]] if one.get("start", FRESH) == cell["start"]]
        assert sum(all(one[x] == cell[x] for x in names) for one in rows) == 1
        assert (cell["passes"], cell["seed"]) in known
