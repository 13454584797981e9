"""The two laws of an audit, from votes, against sums over all histograms and against simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit import noisy_argmax_probabilities, renyi_divergence
from auditkit.mechanisms.releases import (
    Releases,
    capc_releases,
    other_votes_table,
    pate_releases,
    prompt_releases,
    vote_shares,
)

SIGMA = 1.5


def by_all_votes(rows):
    """Sum over everything that voters, a row of probabilities each, may say."""
    classes = rows.shape[1]
    law = np.zeros(classes)
    for said in itertools.product(range(classes), repeat=len(rows)):
        chance = np.prod([row[vote] for row, vote in zip(rows, said, strict=True)])
        histogram = np.bincount(said, minlength=classes)
        law += chance * noisy_argmax_probabilities(histogram, SIGMA)
    return law


def test_pate_is_the_sum_over_all_votes_of_teachers_who_are_alike_but_one():
    rng = np.random.default_rng(0)
    votes, changed = rng.integers(3, size=(40, 2)), rng.integers(3, size=(7, 2))
    pair = pate_releases(votes, changed, 4, classes=3, sigma=SIGMA)
    alike, other = vote_shares(votes, 3), vote_shares(changed, 3)
    for query in range(2):
        rows = np.tile(alike[query], (4, 1))
        np.testing.assert_allclose(pair.without[query], by_all_votes(rows), atol=1e-10)
        rows[0] = other[query]
        np.testing.assert_allclose(pair.with_point[query], by_all_votes(rows), atol=1e-10)


def test_capc_approaches_the_sum_over_all_votes_of_teachers_who_differ():
    rng = np.random.default_rng(1)
    votes, changed = rng.integers(3, size=(5, 4, 1)), rng.integers(3, size=(6, 1))
    pair = capc_releases(votes, changed, 2, classes=3, sigma=SIGMA, samples=20_000, rng=0)
    rows = (votes[..., 0, None] == np.arange(3)).mean(axis=0)
    np.testing.assert_allclose(pair.without[0], by_all_votes(rows), atol=0.01)
    rows[2] = vote_shares(changed, 3)[0]
    np.testing.assert_allclose(pair.with_point[0], by_all_votes(rows), atol=0.01)


def test_a_hundred_histograms_find_the_divergence_of_teachers_who_differ():
    rows = np.random.default_rng(2).dirichlet(np.full(3, 0.3), size=60)
    few, many = (
        np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
        @ other_votes_table(rows, 10.0, samples=samples, rng=0)
        for samples in (100, 20_000)
    )
    exact, found = (renyi_divergence(*pair, [2.0])[0] for pair in (many, few))
    assert found == pytest.approx(exact, rel=0.1)


def test_teachers_who_are_sure_make_capc_the_same_as_prompt_pate():
    votes = np.array([[0, 1], [1, 1], [1, 2], [0, 0]])
    changed = np.array([2, 0])
    prompt = prompt_releases(votes, changed, 1, classes=3, sigma=SIGMA)
    capc = capc_releases(votes[None], changed[None], 1, classes=3, sigma=SIGMA, samples=1, rng=0)
    np.testing.assert_allclose(capc.without, prompt.without, rtol=1e-12)
    np.testing.assert_allclose(capc.with_point, prompt.with_point, rtol=1e-12)
    moved = np.bincount([0, 2, 1, 0], minlength=3)  # the first query, where teacher 1 now says 2
    np.testing.assert_allclose(prompt.with_point[0], noisy_argmax_probabilities(moved, SIGMA))


def test_the_laws_are_what_drawing_votes_and_noise_gives():
    rng = np.random.default_rng(3)
    votes, changed = rng.integers(3, size=(30, 1)), np.full((5, 1), 2)
    pair = pate_releases(votes, changed, 20, classes=3, sigma=SIGMA)
    draws = 200_000
    for law, own in ((pair.without, votes), (pair.with_point, changed)):
        counts = rng.multinomial(19, vote_shares(votes, 3)[0], size=draws)
        counts += np.eye(3, dtype=int)[rng.choice(own[:, 0], draws)]
        released = (counts + SIGMA * rng.normal(size=counts.shape)).argmax(axis=1)
        shares = np.bincount(released, minlength=3) / draws
        np.testing.assert_allclose(shares, law[0], atol=4.5 * np.sqrt(0.25 / draws))


def test_divergences_are_the_larger_of_both_directions():
    pair = Releases(np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]]))
    there = renyi_divergence(pair.without, pair.with_point, [2, 10])
    back = renyi_divergence(pair.with_point, pair.without, [2, 10])
    assert (there != back).all()
    np.testing.assert_array_equal(pair.divergences([2, 10]), np.maximum(there, back))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=2, max_size=12))
def test_a_point_that_changes_no_vote_leaks_nothing(said):
    votes = np.array(said)[:, None]
    pate = pate_releases(votes, votes, 10, classes=3, sigma=SIGMA)
    prompt = prompt_releases(votes, votes[0], 0, classes=3, sigma=SIGMA)
    for pair in (pate, prompt):
        np.testing.assert_allclose(pair.divergences([2.0, 50.0]), 0.0, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_nothing_leaks_more_than_the_gaussian_bound_for_one_vote(seed):
    rng = np.random.default_rng(seed)
    votes, changed = rng.integers(4, size=(9, 3)), rng.integers(4, size=(2, 3))
    pair = pate_releases(votes, changed, 6, classes=4, sigma=2.0)
    orders = np.array([1.5, 2.0, 10.0])
    assert (pair.divergences(orders) <= orders / 2.0**2 + 1e-12).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pate_releases([[3]], [[0]], 5, classes=3, sigma=1.0), "votes must hold labels"),
        (lambda: pate_releases([[0]], [[0, 1]], 5, classes=3, sigma=1.0), "same queries"),
        (lambda: pate_releases([[0]], [[0]], 1, classes=3, sigma=1.0), "teachers must be"),
        (lambda: pate_releases([[0]], [[0]], 5, classes=3, sigma=0.0), "sigma must be above 0"),
        (lambda: pate_releases([0], [[0]], 5, classes=3, sigma=1.0), "votes must have shape"),
        (lambda: pate_releases([[0]], [[0]], 5, classes=1, sigma=1.0), "classes must be"),
        (
            lambda: capc_releases([[[0], [1]]], [[0]], 2, classes=2, sigma=1.0, rng=0),
            "teacher must lie below 2",
        ),
        (
            lambda: capc_releases([[0]], [[0]], 0, classes=2, sigma=1.0, rng=0),
            "votes must have shape",
        ),
        (
            lambda: capc_releases([[[0], [1]]], [[0]], 0, classes=2, sigma=1.0, rng="x"),
            "rng must be",
        ),
        (
            lambda: capc_releases([[[0], [1]]], [[0]], 0, classes=2, sigma=1.0, rng=0, samples=0),
            "samples must be",
        ),
        (
            lambda: prompt_releases([[0], [1]], [0, 1], 0, classes=2, sigma=1.0),
            "changed",
        ),
        (lambda: prompt_releases([[0], [1]], [0], 2, classes=2, sigma=1.0), "teacher must lie"),
        (lambda: other_votes_table([0.5, 0.5], 1.0, rng=0), "rows must have shape"),
        (lambda: other_votes_table([[0.5, 0.4]], 1.0, rng=0), "rows must sum to 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
