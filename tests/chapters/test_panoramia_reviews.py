"""Reviews: who sees which chunk, what is stored of it, and the audits of what is stored.

A model of fifty words stands in for SmolLM2, which is optional.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from experiments.panoramia import reviews, reviews_audits, reviews_scores
from experiments.panoramia.audits import NESTED, NULL, TARGET
from experiments.panoramia.stacks import PARTS
from torch import nn

from auditkit.experiment.journal import cells_of
from auditkit.models.language import LanguageModel

WORDS, WIDTH = 50, 16
SCORED = reviews_scores.states, reviews_scores.lessons, reviews_scores.tuned
AUDITED = reviews_audits.told, reviews_audits.verdicts


class LastWord(nn.Module):
    """A lower part that sees the last word only, so that it needs no cache."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH).to(torch.bfloat16).requires_grad_(False)

    def cache(self):
        return None

    def forward(self, tokens, _kept=None):
        return self.table(tokens)


class Top(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, states, _kept=None):
        return states + self.layer(states)


def decode(row):
    return " ".join(map(str, row))


def forget():
    for cached in (reviews.world, reviews.made, reviews.source, *SCORED, *AUDITED):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Give all functions few chunks and the small model, and let studies read each other."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        head = (0.3 * torch.randn(WORDS, WIDTH)).to(torch.bfloat16)
        model = LanguageModel(LastWord(), Top(), head, SimpleNamespace(decode=decode))
    chunks = np.random.default_rng(0).integers(WORDS, size=(700, 2, 64))
    sizes = {"SPARE": 40, "TRAINING": 40, "AUDITED": 60, "MEMBERS": 140}
    sizes |= {"PURPOSES": {"train": 40, "audited": 60, "lessons": 40}, "TOP_K": 10}
    for name, value in {**sizes, "start": lambda: model, "cut": lambda: chunks}.items():
        monkeypatch.setattr(reviews, name, value)
    monkeypatch.setattr(reviews_scores, "start", lambda: model)
    monkeypatch.setattr(reviews_scores, "RATE", 1e-2)
    monkeypatch.setattr(reviews_audits, "PAIRS", (60,))
    forget()
    rows = pd.DataFrame(
        {"seed": 0, "purpose": purpose} | reviews.generated(0, purpose, np.random.default_rng(0))
        for purpose in reviews.PURPOSES
    )
    monkeypatch.setattr(reviews, "stored", lambda _: rows)
    yield
    forget()


def test_chunks_are_dealt_once_and_members_are_second_ones():
    deal = reviews.world(0)
    assert [len(part) for part in deal] == [40, 40, 60, 140, 140, 40, 60, 140]
    second = np.concatenate(
        (deal.members, deal.others, deal.unseen_train, deal.unseen, deal.spare[:, :64])
    )
    rows = {row.tobytes() for row in (*second, *deal.prompts)}
    assert len(rows) == len(second) + len(deal.prompts)
    members = {row.tobytes() for row in deal.members}
    assert {row.tobytes() for row in (*deal.spare[:, 64:], *deal.train, *deal.real)} == members


def test_generated_chunks_are_stored_whole():
    fake = reviews.made(0)
    assert {name: part.shape for name, part in fake.items()} == {
        "train": (40, 64),
        "audited": (60, 64),
        "lessons": (40, 64),
    }
    assert all(0 <= part.min() <= part.max() < WORDS for part in fake.values())
    rows = reviews.shown(0)
    assert [row["kind"] for row in rows] == ["member"] * 8 + ["generated"] * 8
    assert rows[8]["text"] == decode(fake["audited"][0])
    assert rows[8]["prompt"] == decode(reviews.world(0).prompts[40])
    assert rows[0]["text"] == decode(reviews.world(0).real[0])


@pytest.fixture
def scored(monkeypatch):
    """Train models for long enough that they know their chunks."""
    cells = cells_of(reviews_scores.first.paper)
    told = pd.DataFrame(cell | row for cell in cells for row in reviews_scores.scores(**cell))
    monkeypatch.setattr(reviews_audits, "stored", lambda _: told)
    return told


def test_a_model_learns_its_members_and_its_null_does_not(scored):
    loss = scored.set_index(["model", "after", "part"])["loss"]
    assert set(scored["part"]) == set(PARTS)
    assert scored["model"].unique().tolist() == ["start", "helper", TARGET, NULL]
    assert loss[TARGET, 3, "real"] < loss["start", 0, "real"]
    gain = loss[NULL, 3, "real"] - loss[TARGET, 3, "real"]
    assert gain > 3 * abs(loss[NULL, 3, "unseen"] - loss[TARGET, 3, "unseen"])


def test_a_run_that_was_killed_goes_on_with_the_same_numbers(scored):
    before = scored.query("model == @TARGET and after == 3")
    for cached in SCORED:
        cached.cache_clear()
    again = pd.DataFrame(reviews_scores.scores(0, TARGET, 3))
    assert again["losses"].tolist() == before["losses"].tolist()


def test_what_is_stored_of_a_chunk_are_its_quarters_and_its_largest_loss():
    losses = np.arange(63.0)[None]
    np.testing.assert_allclose(reviews_scores.seen_of(losses), [[7.5, 23.5, 39.5, 55.0, 62.0]])


@pytest.mark.usefixtures("scored")
def test_audits_read_what_is_stored():
    rows = pd.DataFrame(reviews_audits.fine_tuned(3, 0, 3))
    assert set(rows["release"]) == {"none", TARGET, NULL}
    assert set(rows["audit"]) == {"PANORAMIA", "RM;RN", "O(1)"}
    assert (rows["c_lower"] >= 0.0).all()
    known, unknown = (
        (scores.real - scores.other).mean()
        for scores in (reviews_audits.gained(0, release, 3) for release in (TARGET, NULL))
    )
    assert known > 0.01 + abs(unknown)
    curves = pd.DataFrame(reviews_audits.recall_curves(3, 0))
    assert {"baseline", NESTED} < set(curves["attack"])
    losses = pd.DataFrame(reviews_audits.losses(3, 0))
    assert (
        losses.groupby(["release", "kind"])["loss"].apply(lambda x: x.is_monotonic_increasing).all()
    )


def test_scores_that_lack_a_part_are_refused(scored, monkeypatch):
    less = scored[scored["part"] != "unseen"]
    monkeypatch.setattr(reviews_audits, "stored", lambda _: less)
    with pytest.raises(ValueError, match="must have a row of each of"):
        reviews_audits.told(0)
