"""Heads on sentences: how they are dealt, and what their length does."""

import numpy as np
import pytest
from experiments.substitute import texts

SMALL = {"size": 100, "steps": 60, "runs": 200, "looks": 2, "repeat": 0}


def rows(sentences: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in sentences}


def test_sentences_as_they_come_have_length_one_and_one_place_each():
    dealt = texts.sentences(500, None, 0)
    parts = (dealt.features, dealt.pool_features, dealt.test_features)
    assert [part.shape for part in parts] == [(500, 384), (2_000, 384), (1_500, 384)]
    for part in parts:
        np.testing.assert_allclose(np.linalg.norm(part, axis=1), 1.0, atol=2e-3)
    own = [rows(part) for part in parts]
    # a few sentences are in the dataset twice
    assert len(own[0] & own[1]) + len(own[0] & own[2]) <= 5
    assert set(dealt.labels) == {0, 1}


def test_centred_sentences_are_moved_and_stretched_by_public_ones_only():
    plain, centred = texts.sentences(500, None, 1), texts.sentences(500, 8.0, 1)
    assert np.abs(centred.pool_features.mean(axis=0)).max() < 1e-9
    assert np.linalg.norm(centred.pool_features, axis=1).mean() == pytest.approx(8.0)
    moved = plain.features - plain.pool_features.mean(axis=0)
    scale = centred.features[0] @ moved[0] / (moved[0] @ moved[0])
    np.testing.assert_allclose(centred.features, scale * moved)
    np.testing.assert_array_equal(centred.labels, plain.labels)
    more = texts.sentences(600, 8.0, 1)
    np.testing.assert_array_equal(more.features[:500], centred.features)


def test_features_of_length_one_hide_a_canary_that_longer_ones_show():
    found = {}
    for norm in (None, 8.0):
        rng = np.random.default_rng(0)
        found[norm] = final = texts.fine_tuned("crafted input", 1.0, norm, **SMALL, rng=rng)[1]
        assert final["bound"] <= final["substitute"]
    assert max(found[None]["norm_target"], found[None]["norm_canary"]) <= 2.0
    assert found[8.0]["bound"] > 1.0 > found[None]["bound"]
