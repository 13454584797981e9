"""PromptPATE: what is stored reads as it was written, poisons are prompts, and audits add up."""

import numpy as np
import pandas as pd
import pytest
from experiments.private_prediction import prompt_audits, prompts
from experiments.private_prediction.prompts import FILM, NEWS, TASKS, Texts

from auditkit import epsilon_from_renyi

QUERIES, TEACHERS = 30, 40


def test_votes_are_read_as_they_were_written():
    logits = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    row = prompts.written(logits)
    np.testing.assert_array_equal(prompts.read(row["votes"]), logits.argmax(axis=1))
    ranked = np.sort(logits, axis=1)
    assert row["margin"] == pytest.approx((ranked[:, 3] - ranked[:, 2]).min())
    assert prompts.read(prompts.digits(np.array([0, 0, 3]))).tolist() == [0, 0, 3]


def test_there_are_four_poisons_and_those_that_are_queries_are_mislabelled():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=QUERIES)
    queries = Texts([f"text {i}" for i in range(QUERIES)], labels)
    histograms = rng.multinomial(TEACHERS, [0.4, 0.3, 0.2, 0.1], size=QUERIES)
    made = prompts.poisons(TASKS[NEWS], queries, histograms, rng)
    names = [name for name, *_ in made]
    assert [names.count(name) for name in dict.fromkeys(names)] == [3, 3, 4, 3]
    for name, label, prompt in made:
        if name != "all same":
            (text,) = [text for text in queries.texts if f"{text} =>" in prompt]
            assert labels[queries.texts.index(text)] != label
            assert prompt.endswith(f"{prompts.TOPICS[label]}\n")
    assert len({prompt for *_, prompt in made}) == len(made)


def test_a_mislabel_has_most_votes_but_is_not_the_own_label():
    assert prompts.mislabel(np.array([9, 5, 2]), 0) == 1
    assert prompts.mislabel(np.array([9, 5, 2]), 2) == 0


@pytest.fixture
def votes(monkeypatch):
    """Votes of teachers that are right three times in four, and of those who copy what they see."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=QUERIES)
    right = rng.random((TEACHERS, QUERIES)) < 0.75
    kinds = {
        prompts.TEACHER: np.where(right, labels, 1 - labels),
        prompts.OWN: np.array([np.zeros(QUERIES, int), np.ones(QUERIES, int)]),
        prompts.LABELS: labels[None],
    }
    histograms = (kinds[prompts.TEACHER][..., None] == np.arange(2)).sum(axis=0)
    rows = [
        {"poison": "all same", "label": 1, "votes": prompts.digits(np.ones(QUERIES, int))},
        {"poison": "mapping", "label": 0, "votes": prompts.digits(kinds[prompts.TEACHER][0])},
    ]
    monkeypatch.setattr(prompt_audits, "stored_votes", lambda _, kind: kinds[kind])
    monkeypatch.setattr(prompt_audits, "stored_histograms", lambda _: histograms)
    monkeypatch.setattr(prompt_audits, "stored", lambda _: pd.DataFrame(rows))
    return kinds


@pytest.mark.usefixtures("votes")
def test_who_copies_is_as_telling_as_a_vote_that_is_moved_for_sure():
    rows = prompt_audits.adversarial(FILM, np.random.default_rng(0))
    found = {(row["adversary"], row["teacher"], row["which"]): row for row in rows}
    for adversary in ("natural", "poisoned"):
        chosen, flip = (found[adversary, name, "average"] for name in ("chosen", "flip"))
        assert chosen["copies"] == 1.0
        assert chosen["flips"] == 1.0
        assert chosen["exact"] == flip["exact"]
        assert found[adversary, "first", "average"]["exact"] < chosen["exact"]
    for row in rows:
        assert row["corner"] - 1e-9 <= row["exact"] <= row["flip"] + 1e-9 <= row["dependent"] + 2e-9
        assert row["dependent"] <= row["independent"] + 1e-9


@pytest.mark.usefixtures("votes")
def test_a_poison_that_changes_no_vote_leaks_nothing():
    rows = prompt_audits.natural(FILM, 1, np.random.default_rng(0))
    null, same, nothing = rows
    assert [row["poison"] for row in rows] == [None, "all same", "mapping"]
    assert nothing["exact"] == pytest.approx(nothing["floor"], abs=1e-9)
    assert same["exact"] > nothing["exact"]
    assert null["exact"] > nothing["exact"]
    for row in rows:
        assert row["corner_jointly"] <= row["corner"] + 1e-9 <= row["exact"] + 2e-9
        assert 0.0 <= row["flips"] <= 1.0


def test_divergences_of_answers_are_those_of_all_answers_together():
    """Two queries: the joint law is a product, so that composing is exact."""
    votes = np.array([[0, 1], [1, 1], [0, 0]])
    pair = prompt_audits.prompt_releases(votes, [1, 0], 0, classes=2, sigma=2.0)
    single = pair.divergences([3.0])
    both = [np.outer(*law).ravel() for law in (pair.without, pair.with_point)]
    joint = type(pair)(both[0][None], both[1][None]).divergences([3.0])
    # the larger direction of each query is taken, so the sum may be a little above
    assert joint[0, 0] <= single.sum() + 1e-12
    assert epsilon_from_renyi([3.0], single.sum(axis=0), 1e-6) > 0.0


@pytest.mark.skipif(not prompts.at_hand(), reason="the model or the film sentences are not here")
def test_stored_votes_come_out_again():
    before, logits = prompts.asked_anew(2)
    same = logits.argmax(axis=2) == before
    assert same.mean() >= 0.95
    # numbers of 8 bits around 16 are an eighth apart, and processors round in another order
    assert np.abs(logits[..., 1] - logits[..., 0])[~same].max(initial=0.0) <= 0.25
