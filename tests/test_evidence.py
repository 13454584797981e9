"""What an attack leaves cannot be impossible, shuffled or cut short."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit.evidence import ErrorCounts, GuessCounts, Scores


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((6, 5, 10), "correct must be at most guesses, got 6 of 5"),
        ((1, 11, 10), "guesses must be at most examples, got 11 of 10"),
        ((-1, 5, 10), "correct must hold whole numbers of at least 0, got -1"),
        ((1, 2.5, 10), "guesses must hold whole numbers of at least 0, got 2.5"),
        ((1, 5, np.nan), "examples must hold finite numbers, got nan"),
        (([1, 2], [5, 5, 5], 10), "counts must have shapes that fit together: correct has"),
        (([1, 6], 5, 10), "got 6 of 5"),
    ],
)
def test_guesses_that_cannot_be_are_refused(counts, message):
    with pytest.raises(ValueError, match=message):
        GuessCounts(*counts)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((6, 5, 0, 5), "false_positives must be at most negatives"),
        ((0, 5, 6, 5), "false_negatives must be at most positives"),
        ((0, -5, 0, 5), "negatives must hold whole numbers of at least 0, got -5"),
        ((0, 5, 0.5, 5), "false_negatives must hold whole numbers"),
        ((0, 5, 0, np.inf), "positives must hold finite numbers"),
    ],
)
def test_errors_that_cannot_be_are_refused(counts, message):
    with pytest.raises(ValueError, match=message):
        ErrorCounts(*counts)


def test_text_is_no_count():
    with pytest.raises(TypeError, match="correct"):
        GuessCounts("three", 5, 10)


def test_counts_are_brought_to_one_shape():
    counts = GuessCounts([1, 2], 5, [[10], [20]])
    assert counts.correct.shape == counts.guesses.shape == counts.examples.shape == (2, 2)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.booleans()), min_size=1, max_size=30))
def test_guesses_are_counted_one_by_one(pairs):
    guesses, members = zip(*pairs, strict=True)
    counts = GuessCounts.from_guesses(guesses, members)
    assert counts.correct == sum((g == 1 and m) or (g == -1 and not m) for g, m in pairs)
    assert counts.guesses == sum(g != 0 for g in guesses)
    assert counts.examples == len(pairs)


def test_guesses_hold_three_values_and_fit_the_members():
    with pytest.raises(ValueError, match="guesses must hold -1, 0, 1 only, got 2"):
        GuessCounts.from_guesses([2], [True])
    with pytest.raises(ValueError, match="guesses has 1, members has 2"):
        GuessCounts.from_guesses([1], [True, False])


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30),
    st.lists(st.integers(-1, 6), min_size=1, max_size=5),
)
def test_errors_at_a_cut_are_counted_one_by_one(pairs, cuts):
    values, members = zip(*pairs, strict=True)
    counts = ErrorCounts.at(Scores(values, members), cuts)
    for place, cut in enumerate(cuts):
        assert counts.false_positives[place] == sum(v >= cut and not m for v, m in pairs)
        assert counts.false_negatives[place] == sum(v < cut and m for v, m in pairs)
    assert counts.negatives[0] + counts.positives[0] == len(pairs)


@pytest.mark.parametrize(
    ("scores", "members", "message"),
    [
        ([], [], "scores must hold at least 1 score"),
        ([np.nan], [1], "scores must hold finite numbers, got nan"),
        ([[1.0]], [1], "scores must have 1 dimension"),
        ([1.0], [2], "members must hold 0, 1 only, got 2"),
        ([1.0], [1, 0], "scores has 1, members has 2"),
    ],
)
def test_scores_are_checked_at_the_border(scores, members, message):
    with pytest.raises(ValueError, match=message):
        Scores(scores, members)


@settings(deadline=None)
@given(st.permutations(range(6)))
def test_a_shuffled_membership_list_is_put_right_by_its_ids(order):
    values, members = np.arange(6.0), np.array([1, 0, 0, 1, 1, 0], dtype=bool)
    ids = np.array([f"record {place}" for place in range(6)])
    joined = Scores.joined(values, members[order], ids=ids, member_ids=ids[order])
    assert (joined.members == members).all()
    assert (joined.values == values).all()


@pytest.mark.parametrize(
    ("ids", "member_ids", "message"),
    [
        (["a", "a"], ["a", "b"], "ids must not repeat, got 'a' 2 times"),
        ([1, 2], [2, 2], "member_ids must not repeat, got 2 2 times"),
        (["a", "b"], ["a", "c"], r"got 'b' on one side only \(2 such in all\)"),
        (["a", "b"], ["a"], "members has 2, member_ids has 1"),
        (["a"], ["a", "b"], "scores has 2, ids has 1"),
        ([["a", "b"]], ["a", "b"], "ids must have 1 dimension"),
    ],
)
def test_ids_that_do_not_name_the_same_examples_are_refused(ids, member_ids, message):
    with pytest.raises(ValueError, match=message):
        Scores.joined([0.1, 0.2], [0, 1], ids=ids, member_ids=member_ids)


def test_a_shortened_membership_list_cannot_pass():
    with pytest.raises(ValueError, match="got 'b' on one side only"):
        Scores.joined([0.1, 0.2], [0], ids=["a", "b"], member_ids=["a"])


def test_a_part_keeps_each_score_with_its_member():
    part = Scores([0.1, 0.2, 0.3], [1, 0, 1]).take(np.array([2, 1]))
    assert part.values.tolist() == [0.3, 0.2]
    assert part.members.tolist() == [True, False]
    assert len(part) == 2


def test_ids_that_cannot_name_anything_are_refused():
    with pytest.raises(TypeError, match=r"ids must hold numbers or texts, got \{\}"):
        Scores.joined([0.1, 0.2], [0, 1], ids=[{}, {}], member_ids=["a", "b"])


# what is seen in scores


def test_the_area_under_the_curve_counts_ties_by_half():
    assert Scores([0.0, 1.0, 1.0, 2.0], [0, 0, 1, 1]).area() == 0.875
    assert Scores([1.0, 1.0], [0, 1]).area() == 0.5


@pytest.mark.parametrize("times", [2, 3, 10])
def test_repeated_rows_are_told_from_coins(times):
    rng = np.random.default_rng(times)
    values, members = rng.normal(size=200), rng.random(200) < 0.5
    assert Scores(values, members).repeated() == 1.0  # nothing ties
    assert Scores(np.repeat(values, times), np.repeat(members, times)).repeated() < 1e-3


@pytest.mark.parametrize("leak", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("digits", [0, 1, 2])
def test_scores_in_few_values_are_not_taken_for_repeated_rows(leak, digits):
    """Tied groups of fair coins, of any leak, are doubted less than once in a thousand times."""
    rng = np.random.default_rng(digits)
    doubted = 0
    for _ in range(200):
        members = rng.random(500) < 0.5
        scores = Scores(rng.normal(leak * members).round(digits), members)
        doubted += scores.repeated() < 1e-3
    assert doubted <= 1


def test_a_perfect_score_of_two_values_is_not_taken_for_repeated_rows():
    members = np.arange(1000) % 2
    assert Scores(members, members).repeated() == 1.0
    assert Scores(-members, members).repeated() > 1e-3


def test_an_order_forgets_how_the_rows_stood():
    rng = np.random.default_rng(0)
    values, members = rng.integers(0, 4, 100).astype(float), rng.random(100) < 0.5
    here = Scores(values, members)
    order = rng.permutation(100)
    there = Scores(values[order], members[order])
    assert here.key == there.key
    for use in ("ties", "split 0"):
        one, other = here.shuffled(use), there.shuffled(use)
        assert sorted(one) == list(range(100))
        assert (here.values[one] == there.values[other]).all()
        assert (here.members[one] == there.members[other]).all()
    assert (here.shuffled("ties") != here.shuffled("split 0")).any()


def test_pandas_objects_with_other_indexes_are_refused():
    table = pd.DataFrame({"score": [0.3, 0.1, 0.2], "member": [1, 0, 1]})
    with pytest.raises(ValueError, match=r"scores and members must have the same index, got ones "):
        Scores(table.score.sort_values(), table.member)
    with pytest.raises(ValueError, match="guesses and members must have the same index"):
        GuessCounts.from_guesses(table.member.sort_values(), table.member)
    ranked = table.sort_values("score")
    assert Scores(ranked.score, ranked.member).members.tolist() == [False, True, True]
    assert len(Scores(table.score, [1, 0, 1])) == 3
