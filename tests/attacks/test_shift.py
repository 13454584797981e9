"""Features that betray membership are seen, whatever order and seed, and a coin is not doubted."""

import numpy as np
import pytest
from scipy.special import expit

from auditkit.attacks.shift import shift_test


def test_a_coin_is_doubted_no_more_often_than_the_level_says():
    doubted = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        members = rng.random(300) < 0.5
        test = shift_test(rng.normal(size=(300, 3)), members, confidence=0.9, rng=seed)
        doubted += test.rejected
    assert doubted <= 9  # of 40 at a level of 10%: more with probability 0.005


def test_the_right_propensities_explain_a_shift_that_a_coin_does_not():
    rng = np.random.default_rng(0)
    odds = rng.normal(size=2000)
    members = rng.random(2000) < expit(odds)
    rows = odds[:, np.newaxis]
    assert shift_test(rows, members).rejected
    assert not shift_test(rows, members, propensity=expit(odds)).rejected


def test_where_one_half_holds_one_kind_nothing_can_be_said():
    assert shift_test(np.arange(4.0)[:, np.newaxis], [0, 0, 0, 0]) is None
    with pytest.raises(ValueError, match="same length"):
        shift_test(np.zeros((3, 1)), [0, 1])
