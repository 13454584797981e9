"""Chunks of reviews, what is generated in their place, and private fine-tuning."""

import numpy as np
import pytest
from experiments.panoramia import texts

SMALL = {
    "WORDS": 30,
    "CHUNK": 6,
    "PUBLIC": 60,
    "SPARE": 40,
    "TRAINING": 60,
    "AUDITED": 100,
    "UNSEEN_TRAINING": 60,
    "UNSEEN": 100,
    "PROMPTS": 200,
    "MEMBERS": 200,
    "PAIRS": (50, 100),
    "PASSES": (1, 2),
    "COUNTED": 10,
    "BATCH": 50,
    "PRIVATE_PASSES": 1,
}
CACHED = (
    "words",
    "reviews",
    "cut",
    "world",
    "start",
    "made",
    "mixtures",
    "helper",
    "tuned",
    "baseline_scores",
)

pytestmark = pytest.mark.usefixtures("few")


@pytest.fixture
def few(monkeypatch):
    """Make reviews of drawn words, and everything small."""
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"w{chr(97 + number)}" for number in range(26)])
    made = [" ".join(rng.choice(vocabulary, 15)) for _ in range(900)]
    monkeypatch.setattr(texts, "load", lambda _: {"texts": np.array(made, dtype=object)})
    for name, value in SMALL.items():
        monkeypatch.setattr(texts, name, value)
    for name in CACHED:
        getattr(texts, name).cache_clear()
    yield
    for name in CACHED:
        getattr(texts, name).cache_clear()


def known(rows: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in rows}


def test_no_review_has_two_parts():
    deal = texts.world(0)
    members, unseen, others = known(deal.members), known(deal.unseen.inputs), known(deal.others)
    assert known(deal.train.inputs) | known(deal.real.inputs) < members
    assert not members & unseen
    assert not members & others
    assert not known(deal.public[:, 6:]) & members
    assert len(deal.prompts) == SMALL["PROMPTS"]


def test_a_generated_chunk_is_as_long_as_a_real_one_and_no_copy():
    drawn, seconds = texts.made(0)
    assert drawn.inputs.shape == (SMALL["PROMPTS"], SMALL["CHUNK"])
    assert drawn.inputs.max() < len(texts.words())
    assert seconds > 0.0
    assert not known(drawn.inputs) & known(texts.world(0).prompts)


def test_a_cell_plays_both_baselines_and_every_model():
    rows = texts.fine_tuned(0, 2)
    models = {(row["release"], row.get("passes")) for row in rows}
    assert models == {("none", None), *((name, n) for name in ("audited", "null") for n in (1, 2))}
    assert {row["audit"] for row in rows} == {"PANORAMIA", "RM;RN", "O(1)"}
    blind = {row["baseline"] for row in rows if row["release"] == "none"}
    assert blind == {"none", "helper"}
    loss = {(row["release"], row.get("passes")): row.get("loss") for row in rows}
    assert loss["audited", 2] < loss["audited", 1]
    assert loss["audited", 2] < loss["null", 2]


def test_a_chunk_is_read_once_and_as_the_model_reads_it():
    class Counting:
        asked = 0

        def losses(self, rows):
            self.asked += len(rows)
            return texts.start().losses(rows)

    reader, shown = texts.Reader(Counting()), texts.world(0).unseen
    np.testing.assert_array_equal(reader.losses(shown), texts.start().losses(shown.inputs))
    np.testing.assert_allclose(
        reader.mean(shown[::-1]), texts.start().losses(shown.inputs[::-1]).mean(axis=1), atol=1e-6
    )
    assert reader.model.asked == len(shown)


def test_curves_are_there_for_every_number_of_passes_and_its_null():
    rows = texts.recall_curves(0)
    assert {row["passes"] for row in rows} == set(SMALL["PASSES"])
    assert {(row["attack"], row["release"]) for row in rows} == {
        ("baseline", "none"),
        ("as in the paper", "audited"),
        ("with the helper", "audited"),
        ("with the helper", "null"),
    }


def test_private_fine_tuning_moves_the_start_a_little():
    rows = texts.privately_tuned(3.0, 0, 2, rng=np.random.default_rng(0))
    assert {row["release"] for row in rows} == {"audited", "null"}
    model = texts.private(texts.world(0).members, 3.0, 1)
    before = texts.start().losses(texts.world(0).members)
    after = model.losses(texts.world(0).members)
    assert not np.allclose(before, after)
    again = texts.private(texts.world(0).members, 3.0, 1).losses(texts.world(0).members)
    np.testing.assert_allclose(after, again, atol=1e-6)
