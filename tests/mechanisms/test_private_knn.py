"""Private-kNN: the law of who votes, and of what is released, against drawing the points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from auditkit.mechanisms.private_knn import (
    NeighbourVotes,
    neighbour_probability,
    neighbour_votes,
    private_knn_releases,
)
from auditkit.mechanisms.voting import vote_table


def drawn_votes(labels, neighbours, rate, trials, rng, added=None):
    """Draw points, and return the histograms of the nearest; a point may be added at a rank."""
    ranked = labels if added is None else np.insert(labels, added[0] - 1, added[1])
    drawn = rng.random((trials, len(ranked))) < rate
    voting = drawn & (drawn.cumsum(axis=1) <= neighbours)
    return np.stack([(voting & (ranked == label)).sum(axis=1) for label in (0, 1)], axis=1)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.floats(0.01, 1.0))
def test_the_probability_to_vote_is_one_formula_for_both_cases_of_the_paper(rank, k, rate):
    sum_of_the_paper = rate if rank <= k else rate * binom.cdf(k - 1, rank - 1, rate)
    found = neighbour_probability(rank, k, rate)
    assert found == pytest.approx(sum_of_the_paper, rel=1e-9, abs=1e-12)


def test_the_probabilities_of_all_ranks_add_up_to_the_number_of_voters():
    assert neighbour_probability(np.arange(1, 2000), 10, 0.2).sum() == pytest.approx(10.0)


def test_shares_of_votes_are_those_of_drawn_points():
    rng = np.random.default_rng(0)
    labels = (np.arange(300) % 7 > 2).astype(int)
    votes = neighbour_votes(labels[None], 20, 0.2, classes=2)
    counts = drawn_votes(labels, 20, 0.2, 20_000, rng)
    both = (19 * votes.others + votes.last)[0]
    np.testing.assert_allclose(counts.mean(axis=0), both, atol=0.1)
    fewer = drawn_votes(labels, 19, 0.2, 20_000, rng)
    np.testing.assert_allclose(fewer.mean(axis=0), 19 * votes.others[0], atol=0.1)


def test_the_released_label_is_nearly_what_drawing_points_gives():
    """The counts are not quite multinomial, which noise of their size hides."""
    rng = np.random.default_rng(1)
    labels = (np.arange(300) % 7 > 2).astype(int)
    votes = neighbour_votes(labels[None], 20, 0.2, classes=2)
    rank, trials = 30, 40_000
    chance = neighbour_probability([rank], 20, 0.2)
    pair = private_knn_releases(votes, [0], chance, neighbours=20, sigma=4.0)
    for law, added in ((pair.without, None), (pair.with_point, (rank, 0))):
        counts = drawn_votes(labels, 20, 0.2, trials, rng, added)
        released = (counts + 4.0 * rng.normal(size=counts.shape)).argmax(axis=1)
        assert (released == 0).mean() == pytest.approx(law[0, 0], abs=0.01)


def test_no_count_is_negative_where_the_papers_model_has_one():
    """Eleven neighbours of class 0, the last of class 1: the paper takes a vote that nobody has."""
    votes = NeighbourVotes(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    pair = private_knn_releases(votes, [0], [1.0], neighbours=12, sigma=1.0)
    table = vote_table(12, votes.others[:, None], 1.0)[0]
    np.testing.assert_allclose(pair.without[0], table[1])
    np.testing.assert_allclose(pair.with_point[0], table[0])
    counts = 12 * votes.others[0] + np.array([1, -1])  # the paper's, after the swap
    assert counts.min() < 0


def test_a_table_at_hand_changes_nothing_and_a_point_that_never_votes_leaks_nothing():
    votes = neighbour_votes([[0, 1, 0] * 40, [1, 1, 0] * 40], 5, 0.3, classes=2)
    table = vote_table(5, votes.others[:, None], 2.0)
    options = {"neighbours": 5, "sigma": 2.0}
    first = private_knn_releases(votes, [0, 1], [0.3, 0.1], **options)
    second = private_knn_releases(votes, [0, 1], [0.3, 0.1], **options, table=table)
    np.testing.assert_allclose(first.with_point, second.with_point, rtol=1e-12)
    null = private_knn_releases(votes, [0, 1], [0.0, 0.0], **options)
    np.testing.assert_allclose(null.divergences([2.0]), 0.0, atol=1e-14)


VOTES = NeighbourVotes(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: neighbour_probability([0], 5, 0.2), "ranks must hold numbers of at least 1"),
        (lambda: neighbour_probability([1], 0, 0.2), "neighbours must be"),
        (lambda: neighbour_probability([1], 5, 0.0), "rate must lie in"),
        (lambda: neighbour_probability([1], 5, 1.1), "rate must lie in"),
        (lambda: neighbour_votes([[0] * 20], 10, 0.2, classes=2), "must hold more labels"),
        (lambda: neighbour_votes([[0, 2]], 2, 1.0, classes=2), "labels below 2"),
        (lambda: neighbour_votes([0, 1], 2, 1.0, classes=2), "nearest_labels must have shape"),
        (lambda: neighbour_votes([[0, 1]], 1, 1.0, classes=2), "neighbours must be"),
        (
            lambda: private_knn_releases(VOTES, [2], [0.1], neighbours=5, sigma=1.0),
            "labels below 2",
        ),
        (
            lambda: private_knn_releases(VOTES, [0], [1.1], neighbours=5, sigma=1.0),
            "probabilities must lie",
        ),
        (
            lambda: private_knn_releases(VOTES, [0, 1], [0.1], neighbours=5, sigma=1.0),
            "one a query",
        ),
        (
            lambda: private_knn_releases(
                VOTES, [0], [0.1], neighbours=5, sigma=1.0, table=[[1.0, 0.0]]
            ),
            "table must have shape",
        ),
        (
            lambda: private_knn_releases(VOTES, [0], [0.1], neighbours=5, sigma=-1.0),
            "sigma must be above 0",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
