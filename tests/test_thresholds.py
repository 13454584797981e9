"""A strategy says how guesses were chosen; nothing else can be said with one."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit.thresholds import Bonferroni, Fixed, MultiSplit, Split, Sweep


@pytest.mark.parametrize(
    ("guesses", "examples", "number"),
    [(1, 50, 1), (50, 50, 50), (1.0, 50, 50), (0.5, 50, 25), (0.07, 100, 7), (1e-9, 50, 1)],
)
def test_guesses_are_a_number_or_a_share(guesses, examples, number):
    assert Fixed(guesses=guesses).number(examples) == number


def test_a_cut_guesses_on_everybody():
    assert Fixed(0.5).number(50) == 50


@settings(deadline=None)
@given(share=st.floats(0, 1, exclude_min=True), examples=st.integers(1, 10**6))
def test_a_share_is_never_nobody_and_never_more_than_all(share, examples):
    assert 1 <= Fixed(guesses=share).number(examples) <= examples


def test_more_guesses_than_examples_are_refused():
    with pytest.raises(ValueError, match=r"guesses must be at most .* examples, 10, got 11"):
        Fixed(guesses=11).number(10)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "either a threshold or a number of guesses"),
        ({"threshold": 0.5, "guesses": 1}, ValueError, "either a threshold or a number of guesses"),
        ({"threshold": np.nan}, ValueError, "threshold must be a finite number, got nan"),
        ({"threshold": "high"}, TypeError, "threshold must be one number"),
        ({"guesses": 0}, ValueError, "guesses must be .* got 0"),
        ({"guesses": 0.0}, ValueError, r"guesses must be .* share in \(0, 1\], got 0.0"),
        ({"guesses": 1.5}, ValueError, "guesses must be .* got 1.5"),
        ({"guesses": -3}, ValueError, "guesses must be .* got -3"),
        ({"guesses": True}, TypeError, "guesses must be .* got True"),
        ({"guesses": "all"}, TypeError, "guesses must be one number"),
    ],
)
def test_a_fixed_rule_is_one_rule(arguments, error, message):
    with pytest.raises(error, match=message):
        Fixed(**arguments)


@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [
        (0, ValueError, "candidates must be a whole number of at least 1, got 0"),
        (2.5, TypeError, "candidates must be a whole number, got 2.5"),
        (True, TypeError, "candidates must be a whole number, got True"),
        ((), TypeError, "candidates must be one or more rules"),
        ((0.1, 0.2), TypeError, "candidates must be one or more rules"),
        ([Fixed(0.1)], TypeError, "candidates must be a whole number"),
    ],
)
def test_bonferroni_takes_a_number_or_rules(candidates, error, message):
    with pytest.raises(error, match=message):
        Bonferroni(candidates)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"fraction": 0.0}, ValueError, "fraction must lie strictly between 0 and 1, got 0.0"),
        ({"fraction": 1}, ValueError, "fraction must lie strictly between 0 and 1, got 1"),
        ({"fraction": "half"}, TypeError, "fraction must be one number"),
        ({"seed": -1}, ValueError, "seed must be a whole number of at least 0, got -1"),
        ({"seed": 0.5}, TypeError, "seed must be a whole number, got 0.5"),
        ({"seed": None}, TypeError, "seed must be a whole number, got None"),
        ({"rule": "mean"}, ValueError, "rule must be one of 'best', 'midpoint', got 'mean'"),
    ],
)
def test_a_split_is_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        Split(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"splits": 0}, ValueError, "splits must be a whole number of at least 1, got 0"),
        ({"splits": 2.0}, TypeError, "splits must be a whole number, got 2.0"),
        ({"fraction": -0.1}, ValueError, "fraction must lie strictly"),
        ({"seed": "a"}, TypeError, "seed must be a whole number, got 'a'"),
    ],
)
def test_many_splits_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        MultiSplit(**arguments)


def test_many_splits_differ_and_come_back_the_same():
    splits = MultiSplit(11, fraction=0.3, seed=4).each()
    assert len({split.seed for split in splits}) == 11
    assert {split.fraction for split in splits} == {0.3}
    assert splits == MultiSplit(11, fraction=0.3, seed=4).each()
    assert splits != MultiSplit(11, fraction=0.3, seed=5).each()


@pytest.mark.parametrize("strategy", [Fixed(0.5), Bonferroni(), Split(), MultiSplit(), Sweep()])
def test_a_strategy_is_a_value(strategy):
    assert strategy == dataclasses.replace(strategy)
    assert hash(strategy) == hash(dataclasses.replace(strategy))
    assert eval(repr(strategy)) == strategy
