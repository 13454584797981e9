"""Private-kNN on reviews: who votes, who asks, and the curves."""

import numpy as np
import pytest
from experiments.private_prediction import neighbours_texts


@pytest.fixture
def small(monkeypatch):
    """Have a few reviews, one of them twice, seen as points of length 1."""
    rng = np.random.default_rng(0)
    texts = [f"{'good' if i % 2 else 'bad'} {i}" for i in range(400)]
    seen = {}

    def encode(_, given):
        points = rng.normal(size=(len(given), 5))
        points[:, 0] += [2.0 if text.startswith("good") else -2.0 for text in given]
        seen["texts"] = given
        return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)

    begun = f"{texts[0]}   "  # what stands apart from it is not read
    data = {"texts": [*texts, begun], "labels": np.array([*[i % 2 for i in range(400)], 0])}
    monkeypatch.setattr(neighbours_texts, "load", lambda _: data)
    monkeypatch.setattr(neighbours_texts, "encode", encode)
    monkeypatch.setattr(neighbours_texts, "QUERIES", 40)
    monkeypatch.setattr(neighbours_texts, "NEIGHBOURS", 10)
    neighbours_texts.reviews.cache_clear()
    yield seen
    neighbours_texts.reviews.cache_clear()


def test_reviews_are_there_once_and_nobody_asks_for_one_that_votes(small):
    given = neighbours_texts.reviews(30)
    assert len(small["texts"]) == 400
    assert (len(given.labels), len(given.query_labels)) == (360, 30)
    apart = given.query_points @ given.points.T
    assert apart.max() < 1.0 - 1e-9


@pytest.mark.usefixtures("small")
def test_all_adversaries_leak_less_than_theory_allows():
    rng = np.random.default_rng(0)
    rows = neighbours_texts.reviews_by_adversary("imdb", "angle", 10, 2.0, 30, rng)
    assert len(rows) == 9
    for row in rows:
        assert row["floor"] <= row["exact"] < row["independent"]


@pytest.mark.usefixtures("small")
def test_curves_rise_with_the_order():
    rows = neighbours_texts.curves("imdb", "poisoned", 30, np.random.default_rng(0))
    exact = [row["exact"] for row in rows[:-1]]
    assert exact == sorted(exact)
    assert all(max(row["corner"], row["k_cut"]) <= row["exact"] for row in rows)
