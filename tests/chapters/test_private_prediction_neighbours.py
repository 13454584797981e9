"""Private-kNN: adversaries by how much they may choose, and ranks by counting."""

import numpy as np
import pytest
from experiments.private_prediction import neighbours
from experiments.private_prediction.neighbours import Points, nearest, ranks, squared
from scipy.stats import binom

from auditkit import dp_sgd_epsilon, epsilon_from_renyi
from auditkit.mechanisms.private_knn import neighbour_probability


@pytest.fixture
def cloud(monkeypatch):
    """Two overlapping clouds in 15 directions."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=460)
    x = rng.normal(size=(460, 15)) + 0.4 * labels[:, None]
    given = Points(x[:400], labels[:400], x[400:], labels[400:])
    monkeypatch.setattr(neighbours, "points", lambda *_: given)
    return given


@pytest.mark.usefixtures("cloud")
def test_who_may_choose_more_leaks_more_and_theory_is_above_all():
    rows = neighbours.by_adversary("cloud", "distance", 10, 2.0, 60, np.random.default_rng(0))
    found = {(row["adversary"], row["which"]): row for row in rows}
    test, embedding = found["test", "all"], found["embedding", "all"]
    assert embedding["reach"] > 1.3 * test["reach"]
    assert embedding["exact"] > test["exact"]
    natural = found["natural", "worst"]
    assert natural["exact"] > embedding["exact"]
    for row in rows:
        assert row["exact"] < row["one_vote"] < row["independent"]
        assert row["appendix_b"] <= row["corner"] + 1e-9
    null = found["null", "all"]
    assert null["exact"] == pytest.approx(null["floor"], abs=1e-9)
    assert null["corner_jointly"] == pytest.approx(null["floor"], abs=1e-6)
    assert embedding["corner_jointly"] <= embedding["corner"]


def test_ranks_count_the_training_points_that_are_nearer(cloud):
    near = nearest(cloud)
    candidates = np.random.default_rng(1).normal(size=(7, 15))
    found = ranks(near, squared(cloud.query_points, candidates))
    for query in range(60):
        own = ((cloud.points - cloud.query_points[query]) ** 2).sum(axis=1)
        asked = ((candidates - cloud.query_points[query]) ** 2).sum(axis=1)
        counted = 1 + (own[:, None] < asked).sum(axis=0)
        np.testing.assert_array_equal(found[query], counted)


def test_a_copy_of_a_training_point_has_the_place_of_its_original(cloud):
    near = nearest(cloud)
    found = ranks(near, squared(cloud.query_points, cloud.points[:5]))
    places = 1 + np.argsort(near.order, axis=1)[:, :5]
    np.testing.assert_array_equal(found, places)


def test_the_best_training_point_is_the_best_of_all_by_brute_force(cloud):
    near = nearest(cloud)
    best = neighbours.central(cloud, near, 10)
    reach = [
        neighbour_probability(place, 10, neighbours.RATE).sum() / (neighbours.RATE * 60)
        for place in (1 + np.argsort(near.order, axis=1)).T
    ]
    # ties within rounding give a place or two
    assert best["train"][1] == pytest.approx(max(reach), rel=0.01)


def test_enough_neighbours_are_kept_that_k_are_drawn():
    for k in (20, 200):
        kept = neighbours.within(k, 10**6)
        assert binom.cdf(k - 1, kept, neighbours.RATE) < 1e-6
    assert neighbours.within(200, 700) == 700


def test_a_vote_that_takes_the_place_of_another_moves_root_two():
    """Without subsampling the theory of this module is the Gaussian mechanism's."""
    orders = np.arange(2.0, 200.0)
    accountant = dp_sgd_epsilon(
        noise_multiplier=30.0 / 2**0.5,
        sampling_rate=1.0,
        steps=1000,
        delta=1e-6,
        adjacency="add/remove",
    )
    assert accountant <= epsilon_from_renyi(orders, 1000 * orders / 30.0**2, 1e-6)


def test_shipped_points_are_dealt_without_overlap():
    neighbours.points.cache_clear()
    given = neighbours.points("film-sentences", "angle", 50)
    assert given.points.shape == (7530, 384)
    np.testing.assert_allclose((given.points**2).sum(axis=1), 1.0)
    near = nearest(given._replace(points=given.points[:2000], labels=given.labels[:2000]))
    assert near.distances[:, 0].min() > 1e-6
