"""PromptPATE in the chat format: what is written, which poisons there are, how audits add up."""

import numpy as np
import pandas as pd
import pytest
from experiments.private_prediction import chat_audits, chats
from experiments.private_prediction.chats import FILM, TASKS, TOPICS
from experiments.private_prediction.prompts import LABELS, OWN, TEACHER, Texts, digits

QUERIES, TEACHERS = 20, 60


def test_a_chat_shows_an_example_as_a_turn_and_asks_for_a_number():
    form = TASKS[FILM]
    whole = form.prompt("a dull film", 0) + form.query("a fine film")
    turns = whole.split("<|im_start|>")[1:]
    roles = [turn.split("\n")[0] for turn in turns]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert "0 (negative) or 1 (positive)" in turns[0]
    assert turns[2] == f"assistant\nSentiment: 0{chats.END}"
    assert turns[3] == f"user\na fine film{chats.END}"
    assert turns[4] == "assistant\nSentiment: "
    assert form.words == ("0", "1")


def test_there_are_four_poisons_and_those_that_are_queries_are_mislabelled():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=QUERIES)
    queries = Texts([f"text {i}." for i in range(QUERIES)], labels)
    histograms = rng.multinomial(TEACHERS, [0.4, 0.3, 0.2, 0.1], size=QUERIES)
    made = chats.poisons(TASKS[TOPICS], queries, histograms, rng)
    names = [name for name, *_ in made]
    assert [names.count(name) for name in dict.fromkeys(names)] == [5, 5, 4, 5]
    for name, label, prompt in made:
        if name != chats.ALWAYS:
            (place,) = [i for i, text in enumerate(queries.texts) if f"\n{text}<" in prompt]
            assert labels[place] != label
            assert prompt.count(f"Topic: {label}{chats.END}") == 1
        assert ("0 (computers)" in prompt) == (name in (chats.CONFIDENT, chats.UNCONFIDENT))


def test_texts_are_short_and_each_is_there_once():
    kept = chats.short(["a b", "", "a b", "c " * 101, "d"], np.array([0, 1, 0, 1, 1]))
    assert kept.texts == ["a b", "d"]
    assert kept.labels.tolist() == [0, 1]
    assert chats.topic("rec.sport.baseball", chats.GROUPS[chats.HOBBIES]) == 2
    assert chats.topic("rec.autos", chats.GROUPS[TOPICS]) == -1


@pytest.fixture
def votes(monkeypatch):
    """Store votes of teachers that are right three times in four, and of those who copy."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=QUERIES)
    right = rng.random((TEACHERS, QUERIES)) < 0.75
    kinds = {
        TEACHER: np.where(right, labels, 1 - labels),
        OWN: np.array([np.zeros(QUERIES, int), np.ones(QUERIES, int)]),
        LABELS: labels[None],
    }
    rows = [
        {"kind": kind, "teacher": number, "label": number, "votes": digits(row)}
        for kind, stored in kinds.items()
        for number, row in enumerate(stored)
    ]
    poisons = [
        {"poison": chats.ALWAYS, "label": 1, "votes": digits(np.ones(QUERIES, int))},
        {"poison": chats.MAPPING, "label": 0, "votes": digits(kinds[TEACHER][0])},
    ]
    tables = {chats.votes_id(FILM): rows, chats.poisons_id(FILM): poisons}
    for module in (chats, chat_audits):
        monkeypatch.setattr(module, "stored", lambda id_: pd.DataFrame(tables[id_]))
    return kinds


@pytest.mark.usefixtures("votes")
def test_who_copies_is_as_telling_as_a_vote_that_is_turned_for_sure():
    rows = chat_audits.adversarial(FILM, np.random.default_rng(0))
    found = {(row["adversary"], row["teacher"], row["which"]): row for row in rows}
    for adversary in ("natural", "poisoned"):
        first, chosen = (found[adversary, who, "average"] for who in ("first", "chosen"))
        assert chosen["copies"] == chosen["flips"] == 1.0
        assert first["exact"] < chosen["exact"]
    for row in rows:
        assert row["corner"] - 1e-9 <= row["exact"] <= row["flip"] + 1e-9 <= row["dependent"] + 2e-9
        assert row["accuracy"] == pytest.approx(0.75, abs=0.05)


@pytest.mark.usefixtures("votes")
def test_a_prompt_leaks_what_it_turns_in_the_place_that_it_takes():
    rows = pd.DataFrame(chat_audits.natural(FILM, 2, np.random.default_rng(0)))
    assert rows.groupby("poison").size().to_dict() == {
        chat_audits.HONEST: 20,
        chats.ALWAYS: 10,
        chats.MAPPING: 10,
    }
    same = rows.query("poison == 'mapping' and teacher == 0").iloc[0]
    assert same["flips"] == 0.0
    assert same["exact"] == pytest.approx(same["floor"])
    assert (rows.query("flips > 0")["exact"] > same["floor"]).all()
    audited = rows.dropna(subset="corner")
    assert audited["teacher"].eq(0).all()
    assert (audited["corner_jointly"] <= audited["corner"] + 1e-9).all()
    assert (audited["corner"] <= audited["exact"] + 1e-9).all()


@pytest.mark.usefixtures("votes")
def test_curves_rise_with_the_order_and_no_audit_passes_the_law():
    rows = chat_audits.curves(FILM, "poisoned", np.random.default_rng(0))
    assert [row["exact"] for row in rows[:-1]] == sorted(row["exact"] for row in rows[:-1])
    for row in rows:
        assert max(row["corner"], row["k_cut"]) <= row["exact"] <= row["dependent"] + 1e-9
