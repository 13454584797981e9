"""Poisons: which point, which label, which prompt."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit.attacks.poisoning import (
    always,
    central_points,
    expected_votes,
    least_confident,
    least_sure_teacher,
    mapped,
    most_confident,
    runner_up,
    wrong_mapping,
)
from auditkit.mechanisms.prompt_voting import PromptTask

TASK = PromptTask("Which topic?", ("sports", "news", "films"))
HISTOGRAMS = st.lists(
    st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=12
).map(np.array)


@settings(max_examples=50, deadline=None)
@given(HISTOGRAMS)
def test_the_runner_up_has_most_votes_but_for_one_label(votes):
    second = runner_up(votes)
    for count, label in zip(votes, second, strict=True):
        assert sorted(count)[-2] == count[label]


@settings(max_examples=50, deadline=None)
@given(HISTOGRAMS)
def test_no_label_is_mapped_to_itself_and_queries_decide_before_votes(votes):
    mapping = wrong_mapping(votes)
    assert (mapping != np.arange(3)).all()
    for label in range(3):
        seconds = [
            second
            for top, second in zip(votes.argmax(1), runner_up(votes), strict=True)
            if top == label
        ]
        if seconds:
            assert seconds.count(mapping[label]) == max(map(seconds.count, seconds))


@settings(max_examples=50, deadline=None)
@given(HISTOGRAMS)
def test_the_confident_query_has_most_agreement_and_the_unconfident_one_least_margin(votes):
    assert votes[most_confident(votes, rng=0)].max() == votes.max()
    ranked = np.sort(votes, axis=1)
    margins = ranked[:, -1] - ranked[:, -2]
    assert margins[least_confident(votes, rng=0)] == margins.min()


def test_ties_are_broken_at_random():
    tied = [[5, 5], [5, 5], [5, 5]]
    assert {most_confident(tied, rng=seed) for seed in range(30)} == {0, 1, 2}
    assert {least_confident(tied, rng=seed) for seed in range(30)} == {0, 1, 2}


def test_the_teacher_that_is_moved_most_never_votes_for_the_label_and_is_sure_of_another():
    assert least_sure_teacher([[9, 1], [2, 8], [0, 10]], label=0) == 2
    assert least_sure_teacher([[0, 5, 5], [0, 0, 10], [1, 9, 0]], label=0) == 1


def test_prompts_say_what_their_poison_is():
    assert "answer is films" in always(TASK, 2)
    prompt = mapped(TASK, [1, 2, 0], "a match", 0)
    assert "news for sports, films for news and sports for films" in prompt
    assert prompt.endswith("Text: a match\nAnswer: news\n")
    assert TASK.prompt("a match", 0).endswith("Text: a match\nAnswer: sports\n")
    assert TASK.query("a match").endswith("Answer:")


def test_a_point_nearest_to_all_queries_is_expected_to_vote_on_a_share_of_them():
    assert expected_votes(np.ones((2, 50)), 10, 0.2) == pytest.approx([10.0, 10.0])
    far, near = expected_votes([[500] * 4, [5] * 4], 10, 0.2)
    assert far < 1e-6 < near


def test_a_central_point_is_the_mean_of_neighbours_weighted_by_how_often_they_are():
    train = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 6.0]])
    points = central_points(train, [[0, 1, 2], [0, 2, 1], [1, 0, 2]], [0, 0, 1], size=2)
    np.testing.assert_allclose(points, [[0.75, 1.5], [1.5, 0.0]])


def test_a_central_point_reaches_more_queries_than_any_query_of_a_cloud():
    rng = np.random.default_rng(0)
    train, queries = rng.normal(size=(500, 20)), rng.normal(size=(100, 20))
    distances = ((queries[:, None] - train) ** 2).sum(axis=2)
    nearest = distances.argsort(axis=1)
    made = central_points(train, nearest, np.zeros(100, int), size=100)

    def reach(candidates):
        asked = ((queries[:, None] - candidates) ** 2).sum(axis=2)
        ranks = 1 + (distances[:, None] < asked[..., None]).sum(axis=2)
        return expected_votes(ranks.T, 10, 0.2)

    assert reach(made)[0] > 1.5 * reach(queries).max()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: runner_up([[1]]), "votes must have shape"),
        (lambda: runner_up([[-1, 2]]), "votes must hold numbers of at least 0"),
        (lambda: least_sure_teacher([1, 2], 0), "votes must have shape"),
        (lambda: least_sure_teacher([[1, 2]], 2), "label must lie below 2"),
        (lambda: most_confident([1, 2], rng=0), "votes must have shape"),
        (lambda: most_confident([[1, 2]], rng="x"), "rng must be"),
        (lambda: least_confident([1, 2], rng=0), "votes must have shape"),
        (lambda: wrong_mapping([1, 2]), "votes must have shape"),
        (lambda: always(TASK, 3), "label must lie below 3"),
        (lambda: mapped(TASK, [0, 1], "x", 0), "mapping must have 3 labels"),
        (lambda: mapped(TASK, [0, 1, 3], "x", 0), "mapping must lie below 3"),
        (lambda: mapped(TASK, [1, 2, 0], "x", 5), "label must lie below 3"),
        (lambda: expected_votes([0], 5, 0.2), "ranks must hold"),
        (lambda: central_points([[0.0]], [0], [0], 1), "nearest must have shape"),
        (lambda: central_points([[0.0]], [[1]], [0], 1), "nearest must hold"),
        (lambda: central_points([[0.0]], [[0]], [0], 2), "nearest must hold"),
        (lambda: central_points([[0.0]], [[0]], [1], 1), "labels must hold each label"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
