"""Randomness that follows from the data: what it depends on, and what it does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditkit import _keyed

VALUES = np.array([0.5, -0.0, 2.0, 0.5])
MEMBERS = np.array([True, False, True, False])


@given(st.permutations(range(4)))
def test_rows_in_any_order_come_to_one_canonical_order(order):
    values, members = VALUES[list(order)], MEMBERS[list(order)]
    canonical = _keyed.canonical(values, members)
    assert values[canonical].tolist() == [0.0, 0.5, 0.5, 2.0]
    assert members[canonical].tolist() == [False, False, True, True]


def test_a_key_depends_on_values_types_shapes_and_the_callers_seed():
    keys = [
        _keyed.key_of(VALUES, MEMBERS),
        _keyed.key_of(VALUES, ~MEMBERS),
        _keyed.key_of(VALUES[::-1], MEMBERS),
        _keyed.key_of(VALUES.reshape(2, 2), MEMBERS),
        _keyed.key_of(VALUES.astype(np.float32), MEMBERS),
        _keyed.key_of(VALUES, MEMBERS, rng=0),
        _keyed.key_of(VALUES, MEMBERS, rng=1),
        _keyed.key_of(VALUES, MEMBERS, rng=np.random.default_rng(0)),
        _keyed.key_of(VALUES, MEMBERS, rng=np.random.default_rng(1)),
    ]
    assert len(set(keys)) == len(keys)
    assert _keyed.key_of(VALUES, MEMBERS) == keys[0]
    assert _keyed.key_of(np.abs(VALUES), MEMBERS) == keys[0]  # 0.0 equals -0.0


@pytest.mark.parametrize("seed", range(10))
def test_no_seed_of_numpy_brings_about_what_a_key_does(seed):
    """Permutations and draws of the first seeds stand in no relation to those of a key."""
    drawn = _keyed.generator(_keyed.key_of(np.arange(2000.0), rng=seed), "thinning").random(2000)
    assert abs(np.corrcoef(drawn, np.random.default_rng(seed).random(2000))[0, 1]) < 0.1


def test_each_use_has_a_stream_of_its_own():
    key = _keyed.key_of(VALUES)
    first, other = (_keyed.generator(key, use).random() for use in ("ties", "split 0"))
    assert first != other
    assert first == _keyed.generator(key, "ties").random()
