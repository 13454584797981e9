"""Voting: the exact laws against slow references, and their limits."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from auditkit.bounds.renyi import renyi_divergence
from auditkit.mechanisms.voting import (
    noisy_argmax_probabilities,
    sampled_vote_table,
    vote_probabilities,
    vote_table,
)

QUICK = settings(max_examples=30, deadline=None)
SIGMAS = st.sampled_from([0.4, 1.0, 2.0, 7.0, 40.0])


def by_quadrature(votes, sigma):
    """PRED, eq. (4), word by word."""
    votes = np.asarray(votes, dtype=float) / sigma

    def density(x, c):
        others = np.delete(votes, c)
        return (
            math.exp(-0.5 * (x - votes[c]) ** 2) / math.sqrt(2 * math.pi) * ndtr(x - others).prod()
        )

    low, high = votes.min() - 9, votes.max() + 9
    return np.array(
        [
            quad(density, low, high, args=(c,), epsabs=1e-13, epsrel=1e-12, limit=400)[0]
            for c in range(len(votes))
        ]
    )


def by_enumeration(rows, sigma):
    """All ways in which the teachers can vote, one at a time."""
    law = np.zeros(rows.shape[1])
    for votes in itertools.product(range(rows.shape[1]), repeat=len(rows)):
        chance = math.prod(row[vote] for row, vote in zip(rows, votes, strict=True))
        histogram = np.bincount(votes, minlength=rows.shape[1])
        law += chance * noisy_argmax_probabilities(histogram, sigma)
    return law


# --- a histogram that is known -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "sigma"), [([14, 12, 10, 8, 6], 2.0), ([3, 3], 0.5), ([200, 20, 10, 10, 10], 40.0)]
)
def test_the_law_of_noisy_argmax_is_the_integral(votes, sigma):
    assert noisy_argmax_probabilities(votes, sigma) == pytest.approx(
        by_quadrature(votes, sigma), abs=1e-12
    )


def test_the_law_of_noisy_argmax_is_what_simulation_shows():
    rng = np.random.default_rng(0)
    votes, draws = np.array([14, 12, 10, 8, 6]), 400_000
    winners = (votes + 2.0 * rng.standard_normal((draws, 5))).argmax(axis=1)
    share = np.bincount(winners, minlength=5) / draws
    exact = noisy_argmax_probabilities(votes, 2.0)
    assert (np.abs(share - exact) < 5 * np.sqrt(exact * (1 - exact) / draws)).all()


@pytest.mark.parametrize("gap", [0.0, 1.0, 10.0, 30.0, 45.0, 51.0])
def test_two_classes_have_a_closed_form_down_to_the_last_double(gap):
    law = noisy_argmax_probabilities([gap, 0.0], 1.0)
    exact = log_ndtr(np.array([gap, -gap]) / math.sqrt(2.0))
    assert np.log(law) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_a_hopeless_class_keeps_divergences_finite_and_raises_no_warning():
    law = noisy_argmax_probabilities([1e6, 0.0, 10.0], 1e-3)
    assert law[0] == pytest.approx(1.0, abs=1e-13)
    assert (law[1:] == np.finfo(float).tiny).all()
    faint, fainter = noisy_argmax_probabilities([[108, 1], [109, 0]], 2.0)
    assert renyi_divergence(faint, fainter, [2.0, 5.0]) == pytest.approx([0.0, 0.0], abs=1e-200)


@pytest.mark.parametrize("classes", [2, 3, 10, 30, 100, 300])
def test_classes_that_tie_share_evenly(classes):
    law = noisy_argmax_probabilities(np.full(classes, 7.0), 2.0)
    assert law == pytest.approx(np.full(classes, 1 / classes), rel=1e-12)


@QUICK
@given(
    st.lists(st.integers(0, 60), min_size=2, max_size=8),
    st.floats(0.3, 50.0),
    st.floats(0.1, 10.0),
    st.randoms(use_true_random=False),
)
def test_the_law_sums_to_one_and_follows_its_votes(votes, sigma, scale, random):
    votes = np.array(votes, dtype=float)
    law = noisy_argmax_probabilities(votes, sigma)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert law == pytest.approx(noisy_argmax_probabilities(votes + 5.0, sigma), rel=1e-10)
    assert law == pytest.approx(noisy_argmax_probabilities(votes * scale, sigma * scale), rel=1e-9)
    order = list(range(len(votes)))
    random.shuffle(order)
    assert law[order] == pytest.approx(noisy_argmax_probabilities(votes[order], sigma), rel=1e-12)
    assert (np.diff(law[np.argsort(votes, kind="stable")]) >= -1e-13).all()


def test_arrays_of_histograms_equal_single_ones():
    votes = np.random.default_rng(0).multinomial(50, [0.4, 0.4, 0.2], size=(3, 4))
    laws = noisy_argmax_probabilities(votes, 3.0)
    assert laws.shape == (3, 4, 3)
    assert (laws[2, 1] == noisy_argmax_probabilities(votes[2, 1], 3.0)).all()


# --- teachers that vote at random ----------------------------------------------------------------


@QUICK
@given(
    st.integers(1, 5),
    st.integers(2, 3),
    SIGMAS,
    st.integers(0, 10**6),
    st.sampled_from(["alike", "differ", "some certain"]),
)
def test_random_votes_have_the_law_that_enumeration_gives(teachers, classes, sigma, seed, kind):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(classes, 0.7), size=teachers)
    if kind == "alike":
        rows[:] = rows[0]
    if kind == "some certain":
        rows[: teachers // 2 + 1] = np.eye(classes)[rng.integers(classes)]
    (law,) = vote_probabilities(teachers, rows[None], sigma)
    assert law == pytest.approx(by_enumeration(rows, sigma), abs=1e-12)
    if kind == "alike":
        assert vote_probabilities(teachers, rows[0], sigma) == pytest.approx(law, abs=1e-12)


def test_ten_classes_agree_with_simulation():
    rng = np.random.default_rng(2)
    p, draws = rng.dirichlet(np.ones(10)), 300_000
    votes = rng.multinomial(250, p, size=draws) + 40.0 * rng.standard_normal((draws, 10))
    share = np.bincount(votes.argmax(axis=1), minlength=10) / draws
    exact = vote_probabilities(250, p, 40.0)
    assert (np.abs(share - exact) < 5 * np.sqrt(exact * (1 - exact) / draws)).all()


def test_a_unanimous_vote_is_a_known_histogram_down_to_the_tails():
    for sigma in (2.0, 5.0, 40.0):
        law = vote_probabilities(60, [1.0, 0.0], sigma)
        assert law == pytest.approx(noisy_argmax_probabilities([60, 0], sigma), rel=1e-10)


def test_each_row_of_the_table_is_a_teacher_that_is_certain():
    p = np.array([0.5, 0.3, 0.2])
    table = vote_table(20, p, 3.0)
    assert p @ table == pytest.approx(vote_probabilities(20, p, 3.0), abs=1e-13)
    for c, vote in enumerate(np.eye(3)):
        rows = np.vstack([vote, np.tile(p, (19, 1))])
        assert table[c] == pytest.approx(vote_probabilities(20, rows[None], 3.0)[0], abs=1e-12)


def test_one_teacher_alone_is_a_histogram_with_one_vote():
    for p in ([[0.5, 0.3, 0.2]], np.zeros((0, 3))):
        (table,) = vote_table(1, [p], 1.0)
        assert table == pytest.approx(noisy_argmax_probabilities(np.eye(3), 1.0), abs=1e-13)


def test_two_axes_are_queries_and_three_say_which():
    rows = np.random.default_rng(0).dirichlet([1.0, 1.0], size=4)
    assert vote_probabilities(5, rows, 1.0).shape == (4, 2)
    queries = vote_probabilities(4, rows[:, None], 1.0)
    assert queries.shape == (4, 2)
    assert queries[1] == pytest.approx(vote_probabilities(4, rows[1], 1.0), abs=1e-14)
    stacked = np.stack([rows, rows[::-1]])
    assert vote_probabilities(4, stacked, 1.0) == pytest.approx(
        np.repeat(vote_probabilities(4, rows[None], 1.0), 2, axis=0), abs=1e-13
    )
    assert vote_table(5, rows[None], 1.0).shape == (1, 2, 2)
    assert vote_table(4, rows, 1.0).shape == (4, 2, 2)


@pytest.mark.parametrize("voters", [1, 2, 4])
def test_as_many_rows_as_voters_are_refused_since_they_may_be_queries(voters):
    rows = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=voters)
    told = re.escape(
        f"shape ({voters}, 3) may hold a row a query or a row for each of {voters} voters: make it "
        f"(1, {voters}, 3) for one query with a row a voter, or ({voters}, 1, 3) for a row a query"
    )
    for call, teachers in ((vote_probabilities, voters), (vote_table, voters + 1)):
        with pytest.raises(ValueError, match=told):
            call(teachers, rows, 1.0)
        assert len(call(teachers, rows[None], 1.0)) == 1
        assert len(call(teachers, rows[:, None], 1.0)) == voters


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3)])
def test_rows_that_are_neither_one_nor_one_a_voter_are_refused(shape):
    rows = np.random.default_rng(0).dirichlet([1.0, 1.0], size=shape)
    told = re.escape(f"(queries, 5, classes) with a row a voter, got shape {rows.shape}")
    for call, teachers in ((vote_probabilities, 5), (vote_table, 6)):
        with pytest.raises(ValueError, match=told):
            call(teachers, rows, 1.0)


def test_sampled_tables_are_within_their_standard_error():
    rng = np.random.default_rng(3)
    rows = rng.dirichlet([1.0, 1.0, 1.0], size=99)
    rows[:20] = 1.0, 0.0, 0.0  # teachers that are certain
    (exact,) = vote_table(100, rows[None], 20.0)
    scores = []
    for seed in range(40):
        sampled = sampled_vote_table(rows, 20.0, samples=200, rng=seed)
        scores.append((sampled.probabilities - exact) / sampled.standard_error)
    scores = np.array(scores)
    assert sampled.probabilities.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    assert abs(scores.mean(axis=0)).max() < 5 / math.sqrt(40)
    assert 0.6 < scores.std() < 1.4


def test_sampling_repeats_with_its_seed():
    rows = np.vstack([np.tile([1.0, 0.0], (5, 1)), np.tile([0.5, 0.5], (5, 1))])
    first = sampled_vote_table(rows, 2.0, samples=100, rng=1)
    again = sampled_vote_table(rows, 2.0, samples=100, rng=np.random.default_rng(1))
    assert (first.probabilities == again.probabilities).all()
    assert first.samples == 100


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noisy_argmax_probabilities([1, 2], 0.0), "sigma must be above 0, got 0.0"),
        (lambda: noisy_argmax_probabilities([1, 2], -1.0), "sigma must be above 0"),
        (lambda: noisy_argmax_probabilities([1, 2], np.nan), "sigma must be a finite number"),
        (lambda: noisy_argmax_probabilities([1, -2], 1.0), "votes must hold numbers of at least 0"),
        (lambda: noisy_argmax_probabilities([1, np.nan], 1.0), "votes must hold finite numbers"),
        (lambda: noisy_argmax_probabilities([1], 1.0), "votes must have at least 2 classes"),
        (lambda: noisy_argmax_probabilities(3, 1.0), "votes must have at least 2 classes"),
        (lambda: vote_probabilities(0, [0.5, 0.5], 1.0), "teachers must be a whole number of at"),
        (lambda: vote_probabilities(2.5, [0.5, 0.5], 1.0), "teachers must be a whole number of at"),
        (lambda: vote_probabilities(3, [0.5, 0.6], 1.0), "class_probabilities must sum to 1"),
        (lambda: vote_probabilities(3, [1.5, -0.5], 1.0), "class_probabilities must hold numbers"),
        (lambda: vote_probabilities(3, [1.0], 1.0), "class_probabilities must have at least 2"),
        (lambda: vote_probabilities(3, 0.5, 1.0), "class_probabilities must be an array"),
        (lambda: vote_probabilities(3, [0.5, 0.5], 0.0), "sigma must be above 0"),
        (lambda: vote_table(0, [0.5, 0.5], 1.0), "teachers must be a whole number of at"),
        (lambda: vote_table(3, [0.5, 0.6], 1.0), "class_probabilities must sum to 1"),
        (lambda: vote_table(3, [0.5, 0.5], -1.0), "sigma must be above 0"),
        (lambda: vote_table(250, [0.5, 0.5], 1e-6), "sigma = 1e-06 is too small beside teachers"),
        (
            lambda: vote_table(10_000, np.eye(10)[0], 10.0),
            "a label has a probability below 1e-11; with teachers = 10000",
        ),
        (
            lambda: vote_table(
                100, np.random.default_rng(0).dirichlet(np.ones(9), size=(1, 99)), 9.0
            ),
            "class_probabilities allow .* histograms, .* take sampled_vote_table",
        ),
        (lambda: sampled_vote_table([0.5, 0.5], 1.0, rng=0), "class_probabilities must have shape"),
        (lambda: sampled_vote_table([[1.0]], 1.0, rng=0), "class_probabilities must have at least"),
        (lambda: sampled_vote_table([[0.5, 0.6]], 1.0, rng=0), "class_probabilities must sum to 1"),
        (lambda: sampled_vote_table([[0.5, 0.5]], 0.0, rng=0), "sigma must be above 0"),
        (
            lambda: sampled_vote_table([[0.5, 0.5]], 1.0, samples=5, rng=0),
            "samples must be a whole number of at least 20, got 5",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_number_is_a_type_error():
    with pytest.raises(TypeError, match="votes must be an array of numbers"):
        noisy_argmax_probabilities(["a", "b"], 1.0)
    with pytest.raises(TypeError, match="sigma must be one number"):
        noisy_argmax_probabilities([1, 2], [1.0])
    with pytest.raises(TypeError, match="teachers must be one number"):
        vote_probabilities("many", [0.5, 0.5], 1.0)
