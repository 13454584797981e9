"""Canaries of coins: the same for the same coins, wrong or random, and blind to how they fell."""

import numpy as np
import pytest
from scipy.stats import chisquare

from auditkit import Coins, toss_coins
from auditkit.attacks.coin_canaries import random_texts, wrong_labels

WORDS = [f"w{number}" for number in range(50)]


@pytest.fixture
def coins():
    return toss_coins(range(3000), method="one-run")


def test_labels_are_wrong_each_with_the_same_chance(coins):
    own = np.arange(3000) % 5
    shown = wrong_labels(coins, own, classes=5)
    shift = (shown - own) % 5
    assert set(shift) == {1, 2, 3, 4}
    assert chisquare(np.bincount(shift)[1:]).pvalue > 1e-6


def test_canaries_follow_from_the_file_and_not_from_how_coins_fell(coins, tmp_path):
    coins.save(tmp_path / "coins.json")
    again = Coins.load(tmp_path / "coins.json")
    turned = Coins(coins.ids, ~coins.members, coins.plan, coins.tossed, coins.salt)
    other = toss_coins(range(3000), method="one-run")
    labels = np.zeros(3000, int)
    first = wrong_labels(coins, labels, classes=9)
    texts = random_texts(coins, WORDS, length=8)
    for same in (again, turned):
        np.testing.assert_array_equal(wrong_labels(same, labels, classes=9), first)
        assert random_texts(same, WORDS, length=8) == texts
    assert (wrong_labels(other, labels, classes=9) != first).any()
    assert random_texts(other, WORDS, length=8) != texts


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda c: wrong_labels(c, [0, 1], classes=2), "one for each of 3000 coins, got 2"),
        (lambda c: wrong_labels(c, np.full(3000, 2), classes=2), "labels must hold 0, 1 only"),
        (lambda c: wrong_labels(c, np.zeros(3000), classes=1), "classes must be a whole number"),
        (lambda c: random_texts(c, ["a", "a"], length=9), "at least 2 words"),
        (lambda c: random_texts(c, "word", length=9), "at least 2 words"),
        (lambda c: random_texts(c, ["a", "b"], length=5), "texts repeat another"),
        (lambda c: random_texts(c, WORDS, length=0), "length must be a whole number"),
    ],
)
def test_what_makes_no_canaries_is_refused(coins, ask, match):
    with pytest.raises(ValueError, match=match):
        ask(coins)
