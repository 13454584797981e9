"""Networks from scratch in two worlds: records, canaries, starts, and what is stored."""

import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from experiments.substitute import scratch
from experiments.substitute.linear import Training
from experiments.substitute.scratch import CANARIES, PRINTED, THREE, TINY, craft, fresh, records_of
from scipy.spatial.distance import cdist
from torch import nn

from auditkit.attacks.substitution import substitution_scores
from auditkit.mechanisms.dp_sgd import audit_sgd

LOUD = Training(1.0, 200.0, 5.0, 4, 0.0018)  # little noise
SIZE = 100


def rng():
    return np.random.default_rng(0)


# --- records -------------------------------------------------------------------------------------


def test_features_are_pairs_of_answers_that_some_gave_and_not_all():
    records = records_of("answers", 500)
    assert records.features.shape == (500, 600)
    assert set(np.unique(records.features)) == {0.0, 1.0}
    shares = records.features.mean(axis=0)
    assert 0.0 < shares.min() < shares.max() < 0.6
    assert records.labels.min() >= 0
    assert len(np.unique(records.labels)) > 80


def test_clusters_are_alike_inside():
    records = records_of("answers", 500)
    x, y = records.features, records.labels
    apart = cdist(x, x, "sqeuclidean")
    same = (y[:, None] == y) & ~np.eye(len(y), dtype=bool)
    assert apart[same].mean() < 0.6 * apart[y[:, None] != y].mean()


def test_a_larger_deal_holds_the_smaller_one_and_cannot_exceed_the_data():
    few, many = records_of("answers", 100), records_of("answers", 5_000)
    np.testing.assert_array_equal(many.features[:100], few.features)
    np.testing.assert_array_equal(many.test_features, few.test_features)
    with pytest.raises(ValueError, match="size must be at most 13800 with these data, got 20000"):
        records_of("answers", 20_000)


def test_the_network_has_the_parameters_of_the_papers():
    assert sum(weight.numel() for weight in scratch.network().parameters()) == 89_828


def test_whoever_brings_purchase100_can_train_on_it(tmp_path):
    """The file as it is published: packed, no header, a kind from 1 to 100, then 600 products."""
    bought, kinds = rng().integers(2, size=(1_500, 600)), rng().integers(1, 101, size=1_500)
    lines = [f"{kind}," + ",".join(map(str, row)) for kind, row in zip(kinds, bought, strict=True)]
    plain = tmp_path / "dataset_purchase"
    plain.write_bytes("".join(f"{line}\n" for line in lines).encode())
    with tarfile.open(tmp_path / "dataset_purchase.tgz", "w:gz") as packed:
        packed.add(plain, plain.name)
    plain.unlink()
    with tarfile.open(tmp_path / "dataset_purchase.tgz") as packed:
        packed.extractall(tmp_path, filter="data")
    records = records_of(str(plain), 300)
    assert records.features.shape == (300, 600)
    known = {row.tobytes(): kind - 1 for row, kind in zip(bought.astype(float), kinds, strict=True)}
    assert [known[row.tobytes()] for row in records.features] == records.labels.tolist()
    rows = scratch.trained_scores(**TINY | {"data": str(plain), "canary": "mislabelled"}, rng=rng())
    assert [row["step"] for row in rows] == [3, 6, 6]


# --- canaries and scores -------------------------------------------------------------------------


def test_the_gradient_is_put_where_the_reference_does_not_move():
    crafted = craft(PRINTED, "answers", SIZE, LOUD, rng())
    (at,) = np.flatnonzero(crafted.canary.gradients[0])
    movement = scratch.reference("answers", SIZE, LOUD, 0, clipped=True).movement
    assert movement[at] == movement.min()


def test_three_starts_have_to_agree_on_where_nothing_moves():
    three = [scratch.reference("answers", SIZE, LOUD, at, clipped=True).movement for at in range(3)]
    crafted = craft(THREE, "answers", SIZE, LOUD, rng())
    (at,) = np.flatnonzero(crafted.canary.gradients[0])
    assert np.sum(three, axis=0)[at] == np.sum(three, axis=0).min()


@pytest.mark.parametrize("canary", CANARIES)
def test_scores_are_high_for_the_canary_where_noise_is_little(canary):
    crafted = craft(canary, "answers", SIZE, LOUD, rng())
    ask = {"runs": 40, "snapshots": np.array([4]), "seed": 0, "shared": True}
    trained = scratch.train("answers", SIZE, crafted, LOUD, **ask)
    zero, one = (trained.kept[trained.bits == bit, 0, 1] for bit in (0, 1))
    assert one.mean() > zero.mean() + 3 * np.hypot(zero.std(), one.std()) / np.sqrt(20)
    null = scratch.train("answers", SIZE, crafted, LOUD, null=True, **ask)
    np.testing.assert_allclose(null.kept[null.bits == 0], trained.kept[trained.bits == 0])
    zero, one = (null.kept[null.bits == bit, 0, 1] for bit in (0, 1))
    assert abs(one.mean() - zero.mean()) < 4 * np.hypot(zero.std(), one.std()) / np.sqrt(20)


def test_the_score_since_the_start_is_that_of_the_network_less_that_of_its_start():
    crafted = craft("adversarial natural", "answers", SIZE, LOUD, rng())
    records, canary = records_of("answers", SIZE), crafted.canary
    others = np.arange(SIZE) != crafted.target
    whole = audit_sgd(
        records.features[others], records.labels[others], canary, runs=4, steps=4,
        sampling_rate=1.0, noise_multiplier=LOUD.noise, clip=5.0, learning_rate=0.0018,
        optimizer="adam", network=scratch.network, seed=3,
    )  # fmt: skip
    ask = {"runs": 4, "snapshots": np.array([4]), "seed": 3}
    found = scratch.train("answers", SIZE, crafted, LOUD, **ask).kept[:, 0]
    module, slow = scratch.network(), []
    for weights in (whole.initial, whole.weights[:, 0]):
        said = []
        for own in weights:
            nn.utils.vector_to_parameters(torch.from_numpy(own), module.parameters())
            logits = module(torch.from_numpy(canary.features).float()).detach().numpy()
            said.append(logits[1, canary.labels[1]] - logits[0, canary.labels[0]])
        slow.append(np.array(said))
    near = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(found[:, 0], slow[1], **near)
    np.testing.assert_allclose(found[:, 1], slow[1] - slow[0], **near)
    np.testing.assert_allclose(found[:, 0], substitution_scores(whole, canary)[:, 0], **near)


def test_all_start_alike_or_each_afresh():
    crafted = craft("mislabelled", "answers", SIZE, LOUD, rng())
    still = replace(LOUD, learning_rate=1e-12)
    ask = {"runs": 6, "snapshots": np.array([1]), "seed": 0}
    said = [
        scratch.train("answers", SIZE, crafted, still, shared=shared, **ask).kept[:, 0, 0]
        for shared in (False, True)
    ]
    assert np.ptp(said[0]) > 1e-3
    assert np.ptp(said[1]) < 1e-6
    states = torch.random.get_rng_state()
    weights = [next(fresh(3).parameters()) for _ in range(2)]
    assert torch.equal(*weights)
    assert torch.equal(states, torch.random.get_rng_state())


# --- cells ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("canary", [PRINTED, "mislabelled"])
def test_a_cell_has_a_row_for_each_score_and_look(canary):
    rows = scratch.trained_scores(**TINY | {"canary": canary}, rng=rng())
    scores = ["paper"] * 2 if canary == PRINTED else ["paper", "paper", "since the start"]
    assert [row["score"] for row in rows] == scores
    for row in rows:
        assert not set(row) & (set(TINY) - {"steps"})
        assert row["scores"] is None  # a trial
        assert all(value == value for value in row.values())  # no NaN
    assert rows == scratch.trained_scores(**TINY | {"canary": canary}, rng=rng())


def test_parts_of_an_audit_have_one_canary_and_draws_of_their_own():
    cells = [TINY | {"canary": "crafted input", "size": 210, "part": part} for part in (0, 1)]
    first, second = (
        scratch.trained_scores(**cell, rng=np.random.default_rng(cell["part"]))[-1]
        for cell in cells
    )
    assert first["norm_canary"] == second["norm_canary"]
    assert first["scores"] != second["scores"]
