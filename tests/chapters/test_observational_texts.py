"""Texts are dealt once, and audited in two games against reference models of so many passes."""

import numpy as np
import pytest
from experiments.observational import texts
from experiments.observational.audits import INTERVENTIONAL, OBSERVATIONAL


def audited(game, passes):
    rows = texts.protected_texts(texts.MADE_UP, game, passes, 5, 0, np.random.default_rng(1))
    return {
        row["played_on"]: row
        for row in rows
        if (row["attack"], row["guesses"]) == ("label inference", "sweep")
    }


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A cache to put files into, and no texts that were counted before."""
    monkeypatch.setenv("AUDITKIT_DATA", str(tmp_path))
    texts.bag_of_words.cache_clear()
    yield tmp_path
    texts.bag_of_words.cache_clear()


def test_texts_are_dealt_once():
    dealt = texts.split(1004, seed=0)
    assert [len(rows) for rows in dealt] == [334, 334, 334]
    assert len(np.unique(np.concatenate(dealt))) == 1002
    assert not np.array_equal(dealt.own, texts.split(1004, seed=1).own)


@pytest.mark.usefixtures("fresh")
def test_more_texts_than_fit_are_chosen_at_random(monkeypatch):
    monkeypatch.setattr(texts, "TEXTS", 50)
    chosen = texts.bag_of_words(texts.MADE_UP)
    assert chosen.features.shape[0] == len(chosen.labels) == 50
    assert np.allclose(np.linalg.norm(chosen.features, axis=1), 1.0)


def test_neutral_tweets_are_left_out(fresh):
    (fresh / "twitter-sentiment").mkdir()
    path = fresh / "twitter-sentiment" / "twitter_dataset.csv"
    tweets = [("good", 1), ("bad", 2), ("hm", 0), ("fine", 1), ("poor", 2)]
    lines = "\n".join(f"{tweet},{code}" for tweet, code in tweets)
    path.write_text(f"tweet,sentiment\n{lines}\n", encoding="utf-8")
    kept, labels = texts.classified("twitter-sentiment")
    assert list(zip(kept.tolist(), labels.tolist(), strict=True)) == [
        *[("good", 0), ("bad", 1), ("fine", 0), ("poor", 1)]
    ]


def test_labels_are_drawn_from_the_law_and_the_same_each_time():
    law = np.tile([0.3, 0.7], (20_000, 1))
    labels = texts.draw(law, 0, 0)
    assert labels.mean() == pytest.approx(0.7, abs=0.02)
    assert np.array_equal(labels, texts.draw(law, 0, 0))
    assert not np.array_equal(labels, texts.draw(law, 0, 1))


def test_a_sure_reference_makes_the_placebo_loud_and_drawn_labels_make_it_silent():
    found = audited(OBSERVATIONAL, 20)
    assert {row["examples"] for row in found.values()} == {1000}
    assert found["training"]["bound"] > 1.0
    assert found["placebo"]["bound"] > 0.4
    drawn = audited(INTERVENTIONAL, 20)
    assert drawn["training"]["bound"] > 0.5
    assert drawn["placebo"]["bound"] < 0.3
