"""Networks from scratch in two worlds: records, canaries, starts, and what an audit says."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from experiments.substitute import networks
from experiments.substitute.linear import Training, null_of
from experiments.substitute.networks import (
    CANARIES,
    LARGE,
    RECORDS,
    SMALL,
    craft,
    fresh,
    from_scratch,
    network_of,
    records_of,
    train,
)
from scipy.spatial.distance import cdist
from torch import nn

from auditkit.attacks.substitution import substitution_scores
from auditkit.datasets import load
from auditkit.mechanisms.dp_sgd import audit_sgd

LOUD = Training(1.0, 200.0, 5.0, 6, 0.0018)  # little noise
TINY = {**SMALL, "runs": 60, "steps": 4, "looks": 2, "repeat": 0, "sampling_rate": 0.25}


def rng():
    return np.random.default_rng(0)


# --- records -------------------------------------------------------------------------------------


def test_answers_are_those_that_people_gave():
    records = records_of("answers", 0)
    assert records.features.shape == (RECORDS, 600)
    assert set(np.unique(records.features)) == {0.0, 1.0}
    columns = load("census-income")["train_features"].shape[1]
    given = records.features.sum(axis=1)
    assert given.max() <= columns  # one answer a question
    assert given.min() > 0.8 * columns  # and most answers are among the frequent
    assert records.labels.min() >= 0
    assert len(np.unique(records.labels)) > 80


def test_clusters_are_alike_inside():
    records = records_of("answers", 0)
    x, y = records.features, records.labels
    apart = cdist(x, x, "sqeuclidean")
    same = (y[:, None] == y) & ~np.eye(len(y), dtype=bool)
    assert apart[same].mean() < 0.6 * apart[y[:, None] != y].mean()


@pytest.mark.parametrize("data", ["answers", "images"])
def test_no_record_is_dealt_twice(data):
    records, other = records_of(data, 0), records_of(data, 1)
    assert not np.array_equal(records.features, other.features)
    if data == "images":  # rows of the census repeat
        parts = (records.features, records.pool_features, records.test_features)
        every = np.concatenate(parts)
        assert len(np.unique(every, axis=0)) == len(every)


@pytest.mark.parametrize(("data", "parameters"), [("answers", 89_828), ("images", 2_410)])
def test_the_networks_have_the_parameters_that_the_page_says(data, parameters):
    network = network_of(data, records_of(data, 0))()
    assert sum(weight.numel() for weight in network.parameters()) == parameters


def test_whoever_brings_purchase100_can_train_on_it(tmp_path):
    bought, kinds = rng().integers(2, size=(1_750, 600)), rng().integers(1, 101, size=1_750)
    path = tmp_path / "dataset_purchase"
    np.savetxt(path, np.column_stack((kinds, bought)), fmt="%d", delimiter=",")
    records = records_of(str(path), 0)
    every = np.concatenate((records.features, records.pool_features, records.test_features))
    assert every.shape == (RECORDS + networks.POOL + networks.TESTED, 600)
    assert {row.tobytes() for row in every} < {row.tobytes() for row in bought.astype(np.float64)}
    first = (bought == records.features[0]).all(axis=1).argmax()
    assert records.labels[0] == kinds[first] - 1
    network = network_of(str(path), records)()
    assert sum(weight.numel() for weight in network.parameters()) == 89_828


# --- canaries and scores -------------------------------------------------------------------------


def test_the_gradient_is_put_where_the_reference_does_not_move():
    training = replace(LOUD, steps=2)
    crafted = craft("crafted gradient", "answers", training, 0, rng())
    (at,) = np.flatnonzero(crafted.canary.gradients[0])
    assert networks.reference("answers", training, 0, 0, clipped=True).movement[at] == 0.0


def test_three_starts_have_to_agree_on_where_nothing_moves():
    training = replace(LOUD, steps=20)
    three = [
        networks.reference("images", training, 0, at, clipped=True).movement for at in range(3)
    ]
    crafted = craft("crafted gradient, three starts", "images", training, 0, rng())
    assert np.flatnonzero(crafted.canary.gradients[0]) == [np.sum(three, axis=0).argmin()]
    assert three[0].argmin() != three[1].argmin()


def test_swapped_labels_are_opposite_to_the_reference_but_not_to_a_fresh_network():
    crafted = craft("mislabelled", "images", replace(LOUD, steps=200), 0, rng())
    assert crafted.about["cosine"] < -0.5
    assert abs(crafted.about["cosine_fresh"]) < 0.3


@pytest.mark.parametrize("canary", CANARIES)
def test_scores_are_high_for_the_canary_where_noise_is_little(canary):
    crafted = craft(canary, "images", LOUD, 0, rng())
    ask = {"runs": 60, "snapshots": np.array([6]), "seed": 0}
    trained = train("images", crafted, LOUD, 0, shared=True, **ask)
    zero, one = (trained.kept[trained.bits == bit, 0, 1] for bit in (0, 1))
    assert one.mean() > zero.mean() + 3 * np.hypot(zero.std(), one.std()) / np.sqrt(30)
    null = train("images", crafted, LOUD, 0, met=null_of(crafted.canary), shared=True, **ask)
    np.testing.assert_allclose(null.kept[null.bits == 0], trained.kept[trained.bits == 0])
    zero, one = (null.kept[null.bits == bit, 0, 1] for bit in (0, 1))
    assert abs(one.mean() - zero.mean()) < 4 * np.hypot(zero.std(), one.std()) / np.sqrt(30)


def test_the_score_since_the_start_is_that_of_the_network_less_that_of_its_start():
    crafted = craft("adversarial natural", "images", LOUD, 0, rng())
    records, canary = records_of("images", 0), crafted.canary
    network = network_of("images", records)
    others = np.arange(RECORDS) != crafted.target
    whole = audit_sgd(
        records.features[others], records.labels[others], canary, runs=6, steps=6,
        sampling_rate=1.0, noise_multiplier=LOUD.noise, clip=5.0, learning_rate=0.0018,
        optimizer="adam", network=network, seed=3,
    )  # fmt: skip
    found = train("images", crafted, LOUD, 0, runs=6, snapshots=np.array([6]), seed=3).kept[:, 0]
    module, slow = network(), []
    for weights in (whole.initial, whole.weights[:, 0]):
        said = []
        for own in weights:
            nn.utils.vector_to_parameters(torch.from_numpy(own), module.parameters())
            logits = module(torch.from_numpy(canary.features).float()).detach().numpy()
            said.append(logits[1, canary.labels[1]] - logits[0, canary.labels[0]])
        slow.append(np.array(said))
    np.testing.assert_allclose(found[:, 0], slow[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[:, 1], slow[1] - slow[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        found[:, 0], substitution_scores(whole, canary)[:, 0], rtol=1e-4, atol=1e-4
    )


def test_all_start_alike_or_each_afresh():
    crafted = craft("crafted gradient", "images", LOUD, 0, rng())
    still = replace(LOUD, learning_rate=1e-12)
    ask = {"runs": 8, "snapshots": np.array([1]), "seed": 0}
    accuracies = [
        train("images", crafted, still, 0, shared=shared, **ask).kept[:, 0, 2]
        for shared in (False, True)
    ]
    assert len(np.unique(accuracies[0])) > 1
    assert len(np.unique(accuracies[1])) == 1
    states = torch.random.get_rng_state()
    weights = [next(fresh(network_of("images", records_of("images", 0)), 3).parameters())] * 2
    assert torch.equal(*weights)
    assert torch.equal(states, torch.random.get_rng_state())


# --- cells ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("canary", "scores"), [("mislabelled", 2), ("crafted gradient", 1)])
def test_a_cell_has_a_row_for_each_score_and_look(canary, scores):
    rows = from_scratch(**TINY, canary=canary, rng=rng())
    assert [row["step"] for row in rows] == [2, 4] * scores
    assert len({row["score"] for row in rows}) == scores
    for row in rows:
        assert not set(row) & set(TINY)
        assert row["parameters"] == 2_410
        assert row["add_remove"] < row["substitute"] < 10.0 + 1e-3
        assert row["bound_plain"] >= 0.0
        assert all(value == value for value in row.values())  # no NaN
    assert rows[1]["substitute"] > rows[0]["substitute"]
    assert rows == from_scratch(**TINY, canary=canary, rng=rng())


def test_the_large_network_is_audited_too():
    small = {**LARGE, "runs": 12, "steps": 2, "looks": 1, "repeat": 0, "sampling_rate": 0.0625}
    (row,) = from_scratch(**small, canary="crafted gradient", rng=rng())
    assert row["parameters"] == 89_828


def test_a_null_is_audited_at_next_to_nothing(monkeypatch):
    monkeypatch.setattr(networks, "NULL_STEPS", 4)
    for row in networks.at_the_null("images", "mislabelled", 200, rng=rng()):
        assert row["bound"] < 0.3
        assert row["bound_plain"] < 0.3
