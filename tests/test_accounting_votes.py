"""Upper bounds for votes: what no moved vote exceeds, in which direction, and where they end."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit.accounting import data_dependent_renyi, data_independent_renyi
from auditkit.bounds.renyi import renyi_divergence
from auditkit.mechanisms.voting import noisy_argmax_probabilities

ORDERS = np.array([1.5, 2.0, 5.0, 10.0, 20.0, 50.0])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 120), min_size=2, max_size=5), st.sampled_from([2.0, 8.0, 20.0, 40.0])
)
def test_no_moved_vote_leaks_more_than_the_upper_bounds(votes, sigma):
    votes = np.array(votes)
    upper = data_dependent_renyi(votes, sigma, ORDERS)
    assert (upper <= data_independent_renyi(sigma, ORDERS)).all()
    here = noisy_argmax_probabilities(votes, sigma)
    for loser, winner in itertools.permutations(range(len(votes)), 2):
        moved = votes.copy()
        moved[loser] -= 1
        moved[winner] += 1
        there = noisy_argmax_probabilities(moved, sigma)
        assert (renyi_divergence(here, there, ORDERS) <= upper * (1 + 1e-9) + 1e-12).all()


def test_the_dependent_bound_holds_in_one_direction_only():
    here, there = noisy_argmax_probabilities([[109, 100], [108, 101]], 1.0)
    bound = data_dependent_renyi([109, 100], 1.0, 2.0)
    assert renyi_divergence(here, there, 2.0) < bound < renyi_divergence(there, here, 2.0) / 100
    assert renyi_divergence(there, here, 2.0) < data_dependent_renyi([108, 101], 1.0, 2.0)


def test_half_of_the_independent_bound_is_too_little():
    near = noisy_argmax_probabilities([13, 13, 10, 8, 6], 2.0)
    far = noisy_argmax_probabilities([14, 12, 10, 8, 6], 2.0)
    assert renyi_divergence(near, far, 1.5) > 1.5 / (2 * 2.0**2)


def test_agreement_among_teachers_makes_the_dependent_bound_small():
    easy, hard = data_dependent_renyi([[200, 20, 10, 10, 10], [52, 50, 50, 49, 49]], 40.0, [10.0])
    assert easy[0] == pytest.approx(6.96e-4, rel=1e-2)
    assert hard[0] == data_independent_renyi(40.0, 10.0)
    sure = data_dependent_renyi([5000, 0], 10.0, 2.0)
    assert 0.0 <= sure < 1e-200


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data_independent_renyi(0.0, [2.0]), "sigma must be above 0"),
        (lambda: data_independent_renyi(1.0, [1.0]), "orders must lie above 0 and not be 1, got 1"),
        (lambda: data_dependent_renyi([1, -1], 1.0, [2.0]), "votes must hold numbers of at least"),
        (lambda: data_dependent_renyi([1], 1.0, [2.0]), "votes must have at least 2 classes"),
        (lambda: data_dependent_renyi([1, 1], 0.0, [2.0]), "sigma must be above 0"),
        (lambda: data_dependent_renyi([1, 1], 1.0, [0.0]), "orders must lie above 0 and not be 1"),
        (
            lambda: data_dependent_renyi([1, 1], 1.0, [[2.0]]),
            "orders must have at most 1 dimension",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
