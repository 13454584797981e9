"""Limits on a rate: scipy's interval, and what is left where a count is all or nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from auditkit.bounds.clopper_pearson import limits, lower_limit, upper_limit


@given(st.integers(1, 500), st.data(), st.floats(1e-6, 0.4))
def test_the_limits_are_those_of_scipys_exact_interval(trials, data, level):
    hits = data.draw(st.integers(0, trials))
    known = binomtest(hits, trials).proportion_ci(1.0 - 2.0 * level, method="exact")
    assert limits(hits, trials, level) == pytest.approx((known.low, known.high), rel=1e-9)


def test_arrays_are_limited_place_by_place():
    low, high = limits([[0, 3], [5, 5]], [5, 5], 0.1)
    assert low[0, 0] == 0.0
    assert high[1].tolist() == [1.0, 1.0]
    assert low[0, 1] == lower_limit(3, 5, 0.1)
    assert high[0, 1] == upper_limit(3, 5, 0.1)


def test_no_trial_proves_nothing():
    assert limits(0, 0, 0.05) == (0.0, 1.0)
    assert lower_limit(-2, 10, 0.05) == 0.0  # more is given away than there is


def test_a_tiny_level_keeps_its_digits():
    assert np.log(1.0 - lower_limit(10**6, 10**6, 1e-300)) == pytest.approx(
        np.log(6.9e-4), rel=1e-2
    )
    assert 0.0 < upper_limit(0, 10, 1e-12) < 1.0
