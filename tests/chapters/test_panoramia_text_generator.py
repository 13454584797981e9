"""A small language model, its losses, and what it writes after a prompt."""

import numpy as np
import pytest
import torch
from experiments.panoramia.text_generator import (
    UNKNOWN,
    LanguageModel,
    Prompted,
    Vocabulary,
    chunks,
    fit_language_model,
    fit_vocabulary,
)
from torch import nn

from auditkit.models.generators import Examples

WORDS = Vocabulary((UNKNOWN, "a", "film", "don't", "2", "."))
ROWS = np.random.default_rng(0).integers(1, 6, size=(40, 10))


@pytest.fixture(scope="module")
def model():
    return fit_language_model(ROWS, vocabulary=6, length=10, passes=3, seed=0, width=8)


@pytest.fixture(scope="module")
def counting():
    """Return a model that knows that 1, 2, 3 follow each other."""
    rows = np.stack([np.roll(np.tile([1, 2, 3], 4), -turn) for turn in range(3)] * 20)
    return fit_language_model(rows, vocabulary=4, length=12, passes=30, seed=1, width=8)


def test_words_numbers_and_marks_are_tokens_and_all_else_is_unknown():
    tokens = WORDS.tokens("A film? Don't!<br />2.")
    assert WORDS.text(tokens) == f"a film {UNKNOWN} don't {UNKNOWN} 2 ."
    np.testing.assert_array_equal(tokens, [1, 2, 0, 3, 0, 4, 5])


def test_the_vocabulary_does_not_depend_on_the_order_of_texts():
    texts = ["b a c", "c b", "d a"]
    assert fit_vocabulary(texts, 4) == fit_vocabulary(texts[::-1], 4)
    assert fit_vocabulary(texts, 4).words == (UNKNOWN, "a", "b", "c")


def test_chunks_are_the_beginning_of_a_text_cut_in_pieces():
    texts = ["a film " * 10, "a film", ". 2 " * 4]
    found, rows = chunks(texts, WORDS, 4, number=2)
    np.testing.assert_array_equal(rows, [0, 2])
    for place, row in enumerate(rows):
        np.testing.assert_array_equal(found[place].ravel(), WORDS.tokens(texts[row])[:8])
    assert chunks(["a"], WORDS, 4)[0].shape == (0, 1, 4)


def test_losses_are_the_cross_entropies_of_the_next_tokens(model):
    found = model.losses(ROWS)
    assert found.shape == (40, 9)
    network = model.models.module(0)
    with torch.no_grad():
        for place in range(1, 10):
            logits = network(torch.from_numpy(ROWS[:, :place]))[:, -1]
            slow = nn.functional.cross_entropy(
                logits, torch.from_numpy(ROWS[:, place]), reduction="none"
            )
            np.testing.assert_allclose(found[:, place - 1], slow, atol=1e-5)
    assert model.states(ROWS).shape == (40, 8)


def slowly(model: LanguageModel, prompts, number, top_k, rng):
    """Continue by reading everything anew for each token."""
    network, rows = model.models.module(0), torch.from_numpy(prompts)
    with torch.no_grad():
        for _ in range(number):
            logits = network(rows)[:, -1]
            likely = torch.argsort(-logits, dim=1, stable=True)[:, :top_k]
            chances = torch.softmax(logits.gather(1, likely).double(), 1)
            steps = chances.cumsum(1).numpy()
            draws = rng.random((len(rows), 1)) * steps[:, -1:]
            picked = torch.from_numpy((draws > steps[:, :-1]).sum(axis=1))
            rows = torch.cat((rows, likely.gather(1, picked[:, None])), 1)
    return rows[:, prompts.shape[1] :].numpy()


@pytest.mark.parametrize("top_k", [1, 3, 200])
def test_kept_keys_and_values_change_nothing(model, top_k):
    prompts = ROWS[:, :4]
    fast = model.continued(prompts, 6, top_k=top_k, rng=7)
    np.testing.assert_array_equal(fast, slowly(model, prompts, 6, top_k, np.random.default_rng(7)))


def test_a_model_goes_on_counting(counting):
    prompts = np.array([[1, 2, 3, 1], [3, 1, 2, 3]])
    np.testing.assert_array_equal(
        counting.continued(prompts, 5, top_k=1, rng=0), [[2, 3, 1, 2, 3], [1, 2, 3, 1, 2]]
    )


def test_tokens_are_drawn_from_the_likeliest_only(model):
    prompts = np.repeat(ROWS[:1, :4], 400, axis=0)
    drawn = model.continued(prompts, 1, top_k=2, rng=0)[:, 0]
    with torch.no_grad():
        logits = model.models.module(0)(torch.from_numpy(prompts[:1]))[0, -1]
    likely = torch.topk(logits, 2)
    assert set(drawn) == set(likely.indices.tolist())
    share = float(torch.softmax(likely.values, 0)[0])
    assert (drawn == int(likely.indices[0])).mean() == pytest.approx(share, abs=0.1)


def test_training_goes_on_from_another_model(model):
    same = fit_language_model(
        ROWS, vocabulary=6, length=10, passes=0, seed=5, width=8, initial=model
    )
    np.testing.assert_array_equal(same.losses(ROWS), model.losses(ROWS))
    more = fit_language_model(
        ROWS, vocabulary=6, length=10, passes=20, seed=5, width=8, initial=model
    )
    assert more.losses(ROWS).mean() < model.losses(ROWS).mean()
    assert set(more.weights) == set(model.weights)


def test_prompts_are_taken_in_turn_and_samples_are_as_long(counting):
    prompts = np.array([[1, 2, 3, 1], [3, 1, 2, 3]])
    made = Prompted(counting, prompts, top_k=1).sample(5, rng=0)
    assert isinstance(made, Examples)
    assert made.labels is None
    both = [[2, 3, 1, 2], [1, 2, 3, 1]]
    np.testing.assert_array_equal(made.inputs, [both[row % 2] for row in range(5)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: fit_vocabulary(["a"], 1), "size"),
        (lambda _: WORDS.text([0.5]), "tokens"),
        (lambda _: chunks(["a"], WORDS, 0), "length"),
        (lambda _: chunks(["a"], WORDS, 1, number=0), "number"),
        (lambda m: m.losses(ROWS[0]), "tokens"),
        (lambda m: m.losses(ROWS - 9), "tokens"),
        (lambda m: m.losses(ROWS.astype(float)), "tokens"),
        (lambda m: m.continued(ROWS[:, :2], 0, rng=0), "number"),
        (lambda m: m.continued(ROWS[:, :2], 1, top_k=0, rng=0), "top_k"),
        (lambda m: m.continued(ROWS[:, :8], 4, rng=0), "number"),
        (lambda m: Prompted(m, ROWS[:, :2]).sample(0, rng=0), "number"),
        (
            lambda _: fit_language_model(ROWS, vocabulary=6, length=9, passes=1, seed=0),
            "tokens must be at most 9",
        ),
        (
            lambda _: fit_language_model(ROWS, vocabulary=6, length=0, passes=1, seed=0),
            "length",
        ),
    ],
)
def test_bad_input_is_named(model, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(model)
