"""LeNet-5 as teachers of PATE and CaPC: what trains and what is counted from stored votes."""

from functools import cache
from inspect import signature
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from experiments.private_prediction import lenet_audits, lenets
from experiments.private_prediction.lenets import CAPC, FIRST, MATCHED, NONE, PATE, SMALL

from auditkit.mechanisms.voting import vote_table
from auditkit.models.lenet import fit_lenets

TEACHERS, ASKED = 20, 6


def test_votes_are_read_as_they_were_written():
    votes = np.random.default_rng(0).integers(600, size=(30, 10))
    np.testing.assert_array_equal(lenets.unpack(lenets.pack(votes), -1, 10), votes)


def test_images_have_one_scale_and_the_middle_of_larger_ones_is_taken():
    images = np.arange(2 * 32 * 32 * 3, dtype=np.uint8).reshape(2, 32, 32, 3)
    cut = lenets.middle(images)
    assert cut.shape == (2, 3, 28, 28)
    assert cut[1, 2, 0, 0] == pytest.approx(images[1, 2, 2, 2] / 255)
    assert lenets.middle(images[..., 0][:, :28, :28]).shape == (2, 1, 28, 28)
    small = lenets.setting(SMALL)
    assert abs(small.inputs[: lenets.SEEN].mean()) < 1e-3
    assert small.size == 80


def test_the_parties_of_capc_keep_their_images_and_teachers_of_pate_do_not():
    images = lenets.setting(SMALL)
    np.testing.assert_array_equal(lenets.parties(images), lenets.parties(images))
    first, second = lenets.random_parts(images, 40, np.random.default_rng(0)).reshape(2, 20, -1)
    assert sorted(first.ravel()) == sorted(second.ravel()) == list(range(1600))
    assert (first != second).any()


@pytest.fixture
def trained(monkeypatch):
    """Count the teachers that are trained; they are there at once, LeNet-5 have to be compiled.

    Each says the class whose mean image is nearest. What they are asked for has to fit LeNet-5.
    """
    made = []

    def nearest(x, y, *, seeds, indices, **options):
        signature(fit_lenets).bind(x, y, seeds=seeds, indices=indices, **options)
        made.append(len(seeds))
        means = np.full((len(seeds), 10, x[0].size), np.inf)
        for model, rows in enumerate(indices):
            for kind in np.unique(y[rows]):
                means[model, kind] = x[rows][y[rows] == kind].mean(axis=0).ravel()
        flat = means[:, None]
        return SimpleNamespace(
            predict=lambda asked: (
                ((asked.reshape(len(asked), 1, -1) - flat) ** 2).sum(axis=-1).argmin(axis=-1)
            )
        )

    monkeypatch.setattr(lenets, "fit_lenets", nearest)
    monkeypatch.setattr(lenets, "pool", cache(lenets.pool.__wrapped__))
    return made


def test_small_cells_count_all_trainings(trained):
    rng = np.random.default_rng(0)
    assert 0.0 <= lenets.ensemble(SMALL, CAPC, 0, rng)["lowest"] <= 1.0
    assert trained == [TEACHERS]
    lenets.pool(SMALL)  # what each place compares with, trained once
    for place in lenets.PLACES:
        trained.clear()
        rows = lenets.adversarial(SMALL, place, "poisoned", "poisoned", 0, 2, 3, rng)
        assert trained == [2 * 3]
        assert [sum(row[name] for name in lenet_audits.COUNTS) for row in rows] == [3, 3]
        assert [row["teacher"] is None for row in rows] == [place == PATE] * 2
    for row in rows:
        truth = lenets.setting(SMALL).query_labels[row["query"]]
        assert (
            row["label"] != truth
            or row["label"] == lenets.shares(SMALL)[row["query"]].argsort()[-2]
        )
    trained.clear()
    row = lenets.natural(SMALL, PATE, NONE, 0, 2, rng)
    assert row["turned"] >= 0.0
    assert row["label"] is None
    assert trained == [2]


def test_a_matched_image_is_an_image_and_the_same_for_both_systems():
    images = lenets.setting(SMALL)
    first, again = (lenets.poisons(SMALL, MATCHED, 1) for _ in range(2))
    np.testing.assert_array_equal(first[0], again[0])
    assert first[0].shape == (1, 28, 28)
    assert images.inputs.min() <= first[0].min() <= first[0].max() <= images.inputs.max()
    start, label = lenets.poisons(SMALL, lenets.MISLABELLED, 1)
    assert first[1] == label
    assert np.abs(first[0] - start).max() > 0.1


@pytest.mark.usefixtures("trained")
def test_an_adversary_has_other_images_than_the_party_and_one_point_keeps_its_label(monkeypatch):
    images = lenets.setting(SMALL)
    seen = []

    def matched(_, labels, start, __, rng):
        seen.append(rng.permutation(len(images.labels))[: images.size])
        return images.query_inputs[start], int(labels[start])

    monkeypatch.setattr(lenets, "matched_image", matched)
    wrong = [lenets.poisons(SMALL, kind, 0) for kind in (MATCHED, lenets.MISLABELLED)]
    own = lenets.poisons(SMALL, "natural", 0)
    np.testing.assert_array_equal(own[0], wrong[1][0])
    assert wrong[0][1] == wrong[1][1]
    place = (images.query_inputs == own[0]).all(axis=(1, 2, 3)).argmax()
    assert own[1] == images.query_labels[place]
    assert len(np.intersect1d(seen[0], lenets.parties(images)[0])) < 0.3 * images.size


@pytest.fixture
def known(monkeypatch):
    """Store votes of teachers that say 0 or 1 by a coin, and 1 for sure with a poison."""
    rng = np.random.default_rng(0)
    said = rng.integers(2, size=(8, TEACHERS, ASKED))
    most = np.array([lenets.counts(one) for one in said])
    whole = lenets.Pool(most, most, said.reshape(-1, ASKED), said, said[:, 0])
    fair, sure = [30, 30, *[0] * 8], [0, 60, *[0] * 8]
    asked = [
        {"data": SMALL, "place": place, "point": point, "adversary": adversary}
        | {"query": query, "label": 1, "teacher": None if place == PATE else 0}
        | dict(zip(lenet_audits.COUNTS, fair if point == NONE else sure, strict=True))
        for place, point, adversary in lenets.ADVERSARIAL
        for query in range(ASKED)
    ]
    sessions = [
        {"data": SMALL, "system": system, "poison": poison, "number": 0}
        | {"counts": lenets.pack(np.tile(row, (ASKED, 1)))}
        for system in (PATE, CAPC)
        for poison, row in ((NONE, fair), ("again", fair), ("mislabelled", sure))
    ]
    tables = {
        lenet_audits.POINTS: pd.DataFrame(asked),
        lenet_audits.FRESH: pd.DataFrame(asked),
        lenet_audits.SESSIONS: pd.DataFrame(sessions),
    }
    monkeypatch.setattr(lenets, "stored", tables.get)
    for module in (lenets, lenet_audits):
        monkeypatch.setattr(module, "pool", lambda _: whole)
    monkeypatch.setattr(lenet_audits, "NATURAL_REPEATS", 60)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("system", lenets.PLACES)
def test_a_point_that_turns_a_coin_shows_half_of_a_vote_and_the_null_next_to_nothing(system):
    rng = np.random.default_rng(0)
    poisoned, null = (
        lenet_audits.adversarial(SMALL, system, one, rng) for one in ("poisoned", "null")
    )
    for row in poisoned:
        assert row["gain"] == pytest.approx(0.5, abs=0.1)
        assert row["corner"] <= row["exact"] < row["independent"]
        assert row["appendix_b"] <= row["corner"] + 1e-9
    for name in ("exact", "gain"):
        means = [np.mean([row[name] for row in rows]) for rows in (null, poisoned)]
        assert means[0] < 0.7 * means[1]
    assert len(lenet_audits.worst(SMALL, system, "poisoned", rng)) == ASKED


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("system", [PATE, CAPC])
def test_a_poison_of_natural_queries_stands_out_of_trainings_without_one(system):
    null, poison = lenet_audits.natural(SMALL, system, ASKED, np.random.default_rng(0))
    assert null["flips"] == 0.0
    assert null["exact"] == pytest.approx(null["floor"])
    assert poison["flips"] == pytest.approx(0.5 * ASKED)
    assert null["exact"] < poison["exact"] <= poison["flip"]


@pytest.mark.usefixtures("known")
def test_the_law_of_capc_given_a_vote_is_an_average_over_deals():
    table = lenet_audits.others_table(SMALL)
    np.testing.assert_allclose(table.sum(axis=-1), 1.0)
    alike = vote_table(TEACHERS, [0.5, 0.5, *[0.0] * 8], 4.0)
    np.testing.assert_allclose(table.mean(axis=0)[:2, :2], alike[:2, :2], atol=0.1)


@pytest.mark.usefixtures("known")
def test_curves_rise_with_the_order_and_no_audit_passes_the_law():
    rng = np.random.default_rng(0)
    for rows in (
        lenet_audits.curves(SMALL, FIRST, "poisoned", rng),
        lenet_audits.histogram(SMALL, lenet_audits.CONTESTED, rng),
    ):
        exact = [row["exact"] for row in rows[:-1]]
        assert exact == sorted(exact)
        assert rows[-1]["order"] is None
        for row in rows:
            assert max(row["corner"], row["k_cut"]) <= row["exact"]
            assert row["exact"] <= row["independent"]
