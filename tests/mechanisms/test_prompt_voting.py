"""Teachers that are prompts: a small model of random weights, and the real one where it is."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from auditkit.mechanisms.prompt_voting import PromptTask, paired_logits, prompt_logits

WORDS = ["<pad>", " a", " b", " c", " yes", " no", "\n"]


def tokenizer(text, **_):
    """Cut a text into the words above."""
    tokens, rest = [], text
    while rest:
        word = next(word for word in WORDS[1:] if rest.startswith(word))
        tokens.append(WORDS.index(word))
        rest = rest[len(word) :]
    return {"input_ids": tokens}


class Layer(SimpleNamespace):
    """What is kept of one layer."""


class Kept:
    """Keeps what was read, as the transformers package does."""

    def __init__(self):
        self.layers = []

    def update(self, keys, values, number):
        assert number == len(self.layers)
        self.layers.append(Layer(keys=keys, values=values))


class Reader(torch.nn.Module):
    """A model whose state after a token is a weighted sum of all tokens before it."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.token = torch.randn(len(WORDS), 5, generator=generator)
        self.head = SimpleNamespace(weight=torch.randn(len(WORDS), 5, generator=generator))
        self.base_model = self.read

    def get_output_embeddings(self):
        return self.head

    def forward(self, input_ids, use_cache, logits_to_keep):
        assert use_cache
        assert logits_to_keep == 1
        kept = Kept()
        states = self.token[input_ids]
        kept.update(states[:, None], states[:, None], 0)
        return SimpleNamespace(past_key_values=kept)

    def read(self, input_ids, attention_mask, past_key_values, use_cache):
        states = self.token[input_ids]
        if past_key_values is not None:
            assert use_cache
            states = torch.cat([past_key_values.layers[0].keys[:, 0], states], dim=1)
        assert attention_mask.shape == states.shape[:2]
        places = torch.arange(1.0, states.shape[1] + 1)[:, None]
        sums = (states * places * attention_mask[..., None]).cumsum(dim=1)
        return SimpleNamespace(last_hidden_state=sums[:, -input_ids.shape[1] :])


PROMPTS = [" a b\n", " c\n", " b b b\n"]
QUERIES = [" a", " b c a b", " c c", " a a a"]
ANSWERS = [" yes", " no"]


def one_by_one(prompt, query):
    model = Reader()
    tokens = torch.tensor([tokenizer(prompt + query)["input_ids"]])
    states = model.read(tokens, torch.ones_like(tokens), None, False).last_hidden_state
    return (states[0, -1] @ model.head.weight[[4, 5]].T).numpy()


@pytest.mark.parametrize("batch_size", [1, 3, 50])
def test_batches_and_kept_prompts_give_what_reading_each_text_gives(batch_size):
    found = prompt_logits((tokenizer, Reader()), PROMPTS, QUERIES, ANSWERS, batch_size=batch_size)
    assert found.shape == (3, 4, 2)
    for i, prompt in enumerate(PROMPTS):
        for j, query in enumerate(QUERIES):
            np.testing.assert_allclose(found[i, j], one_by_one(prompt, query), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch_size", [1, 2, 50])
def test_pairs_are_read_together(batch_size):
    found = paired_logits(
        (tokenizer, Reader()), PROMPTS, QUERIES[:3], ANSWERS, batch_size=batch_size
    )
    for row, prompt, query in zip(found, PROMPTS, QUERIES, strict=False):
        np.testing.assert_allclose(row, one_by_one(prompt, query), rtol=1e-4, atol=1e-4)


def test_a_task_writes_examples_and_queries_alike():
    task = PromptTask("Yes or no?", ("yes", "no"), before="", after=" =>")
    assert task.prompt("a b", 1) == "Yes or no?\na b => no\n"
    assert task.query("a b") == "a b =>"
    assert task.words == (" yes", " no")


@pytest.mark.parametrize(
    ("prompts", "queries", "answers", "message"),
    [
        ([], [" a"], ANSWERS, "prompts must be a list of texts"),
        (" a", [" a"], ANSWERS, "prompts must be a list of texts"),
        ([" a"], [""], ANSWERS, "queries must be a list of texts"),
        ([" a"], [" a"], [" yes no", " no"], "answers must be one token each"),
        ([" a"], [" a"], [" yes", " yes"], "answers must be 2 different words"),
        ([" a"], [" a"], [" yes"], "answers must be 2 different words"),
    ],
)
def test_bad_texts_are_named(prompts, queries, answers, message):
    for call in (prompt_logits, paired_logits):
        with pytest.raises(ValueError, match=message):
            call((tokenizer, Reader()), prompts, queries, answers)


def test_pairs_have_to_be_as_many_and_batches_to_hold_something():
    with pytest.raises(ValueError, match="same length"):
        paired_logits((tokenizer, Reader()), [" a"], [" a", " b"], ANSWERS)
    with pytest.raises(ValueError, match="batch_size must be"):
        prompt_logits((tokenizer, Reader()), [" a"], [" a"], ANSWERS, batch_size=0)
