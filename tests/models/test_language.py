"""A language model: what it reads, what it learns on its top layers, what it writes."""

import copy
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auditkit.models import encoders, language
from auditkit.models.encoders import ENCODERS
from auditkit.models.language import LanguageModel, pretrained, tunable, tune

WORDS, WIDTH = 50, 16
TEXTS = np.random.default_rng(0).integers(WORDS - 10, size=(70, 9))  # ten words are in none


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


@pytest.fixture
def model():
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        head = 0.3 * torch.randn(WORDS, WIDTH)
        return LanguageModel(LastWord(), Top(), head.to(torch.bfloat16), never=(7, 8))


def logits(model, tokens):
    """Return what the model says, all of it in single precision."""
    states = model.below(torch.from_numpy(tokens)).float()
    return model.top(states) @ model.head.float().T


def plain(model, tokens):
    said, truth = logits(model, tokens[:, :-1]), torch.from_numpy(tokens[:, 1:])
    with torch.no_grad():
        return F.cross_entropy(said.flatten(0, 1), truth.flatten(), reduction="none").view(
            truth.shape
        )


def test_losses_are_the_cross_entropies_of_the_next_tokens(model):
    found = model.losses(TEXTS)
    assert found.shape == (70, 8)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, plain(model, TEXTS).numpy(), atol=0.03)


def test_states_at_hand_are_those_of_the_texts(model):
    states = model.hidden_states(TEXTS)
    assert states.shape == (70, 9, WIDTH)
    assert states.dtype == torch.bfloat16
    np.testing.assert_array_equal(model.losses(TEXTS, states), model.losses(TEXTS))
    one = tune(model, TEXTS, states=states, seed=0).losses(TEXTS)
    np.testing.assert_array_equal(one, tune(model, TEXTS, seed=0).losses(TEXTS))


def test_tuning_is_adam_on_the_mean_cross_entropy_over_the_whole_vocabulary(model):
    mine = copy.deepcopy(model.top)
    optimiser = torch.optim.Adam(mine.parameters(), lr=1e-2)
    shuffle = np.random.default_rng(3)
    states = model.hidden_states(TEXTS).float()
    for _ in range(2):
        for batch in torch.from_numpy(shuffle.permutation(70)).split(16):
            said = mine(states[batch, :-1]) @ model.head.float().T
            truth = torch.from_numpy(TEXTS)[batch, 1:]
            optimiser.zero_grad()
            F.cross_entropy(said.flatten(0, 1), truth.flatten()).backward()
            optimiser.step()
    tuned = tune(model, TEXTS, passes=2, learning_rate=1e-2, seed=3)
    moved = (tuned.top.layer.weight - model.top.layer.weight).detach()
    apart = (tuned.top.layer.weight - mine.layer.weight).detach()
    assert apart.norm() < 0.05 * moved.norm()


def test_a_tuned_model_knows_its_texts_and_the_first_one_stays(model):
    before = model.losses(TEXTS)
    tuned = tune(model, TEXTS[:10], passes=60, learning_rate=1e-2, seed=0)
    gain = (before - tuned.losses(TEXTS)).mean(axis=1)
    assert gain[:10].min() > gain[10:].max()
    np.testing.assert_array_equal(model.losses(TEXTS), before)
    assert tuned.below is model.below


def test_a_seed_decides_the_order_of_texts(model):
    found = [tune(model, TEXTS, passes=1, seed=seed).losses(TEXTS) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
    np.testing.assert_array_equal(
        tune(model, TEXTS, passes=0, seed=0).losses(TEXTS), model.losses(TEXTS)
    )


def test_weights_that_run_away_are_named(model):
    with pytest.raises(FloatingPointError, match="smaller learning_rate"):
        tune(model, TEXTS, passes=2, learning_rate=1e38, seed=0)


def likeliest(share):
    """Return what leaves the likeliest tokens that have a share of all probability together."""

    def leave(p):
        falling = np.sort(p)[::-1]
        return np.where(p >= falling[(falling.cumsum() < share).sum()], p, 0)

    return leave


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({"top_k": WORDS}, lambda p: p),
        ({"top_k": WORDS, "temperature": 2.0}, np.sqrt),
        ({"top_k": 5}, lambda p: np.where(p >= np.sort(p)[-5], p, 0)),
        ({"top_k": WORDS, "top_p": 0.5}, likeliest(0.5)),
    ],
)
def test_a_token_is_drawn_as_often_as_the_model_holds_it_likely(model, options, changed):
    drawn = model.continued(np.full((20_000, 1), 3), 1, rng=0, **options)[:, 0]
    with torch.no_grad():
        likely = torch.softmax(logits(model, np.array([[3]]))[0, 0], -1).double().numpy()
    likely[[7, 8]] = 0
    right = changed(likely / likely.sum())
    right = right / right.sum()
    often = np.bincount(drawn, minlength=WORDS) / len(drawn)
    assert not often[right == 0].any()
    assert np.abs(often - right).sum() < 0.06


def test_what_is_written_follows_from_what_was_written_before(model):
    written = model.continued(TEXTS[:, :2], 5, top_k=1, rng=0)
    given = TEXTS[:, 1]
    for place in range(5):
        with torch.no_grad():
            said = logits(model, given[:, None])[:, 0]
        said[:, [7, 8]] = -torch.inf
        best = said.max(1).values - said[torch.arange(70), written[:, place]]
        assert best.max() < 0.1  # equal, but for rounding
        given = written[:, place]


def test_a_seed_decides_what_is_written(model):
    found = [model.continued(TEXTS, 5, rng=seed) for seed in (0, 0, 1)]
    assert found[0].shape == (70, 5)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.losses(TEXTS[0]), r"tokens must be rows .* got shape \(9,\)"),
        (lambda model: model.losses(TEXTS[:, :1]), "tokens must be rows of at least 2"),
        (lambda model: tune(model, TEXTS[:, :1], seed=0), "tokens must be rows of at least 2"),
        (lambda model: model.losses(TEXTS[:0]), "tokens must be rows"),
        (lambda model: model.losses(TEXTS + 45), "tokens must lie in 0 to 49, got 84"),
        (lambda model: model.losses(TEXTS - 1.5), "tokens must hold whole numbers"),
        (lambda model: model.losses(TEXTS, model.hidden_states(TEXTS[:9])), "states must be those"),
        (lambda model: tune(model, TEXTS, passes=-1, seed=0), "passes must be"),
        (lambda model: tune(model, TEXTS, batch_size=0, seed=0), "batch_size must be"),
        (lambda model: tune(model, TEXTS, learning_rate=0, seed=0), "learning_rate must be"),
        (lambda model: tune(model, TEXTS, seed=-1), "seeds must hold"),
        (lambda model: model.continued(TEXTS, 0, rng=0), "number must be"),
        (lambda model: model.continued(TEXTS, 1, temperature=0, rng=0), "temperature must be"),
        (lambda model: model.continued(TEXTS, 1, top_k=0, rng=0), "top_k must be"),
        (lambda model: model.continued(TEXTS, 1, top_p=0, rng=0), "top_p must lie in"),
    ],
)
def test_bad_arguments_are_named(model, call, message):
    with pytest.raises(ValueError, match=message):
        call(model)


def cut(texts, *, add_special_tokens, truncation, max_length):
    assert truncation
    assert not add_special_tokens
    return {"input_ids": [[int(word) for word in text.split()][:max_length] for text in texts]}


def test_chunks_are_the_beginning_of_a_text_cut_in_pieces(model):
    model = LanguageModel(model.below, model.top, model.head, tokenizer=cut)
    found, rows = model.chunks(["1 2 3 4 5", "1 2 3", "5 6 7 8"], 2, number=2)
    np.testing.assert_array_equal(found, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    np.testing.assert_array_equal(rows, [0, 2])
    assert model.chunks(["1"], 2)[0].shape == (0, 1, 2)
    with pytest.raises(TypeError, match="texts must be a list"):
        model.chunks("1 2 3", 2)


def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch):
    monkeypatch.setattr(encoders, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match="pip install transformers"):
        pretrained()


def test_other_weights_are_refused(monkeypatch, tmp_path):
    (tmp_path / language.WEIGHTS.name).write_bytes(b"another model")
    monkeypatch.setattr(language, "language_model", lambda: (None, None))
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(language, "find_spec", lambda _: spec)
    with pytest.raises(ValueError, match=r"SmolLM2.*gguf"):
        pretrained()


@pytest.fixture(scope="module")
def network():
    """Return a small network of Llama's shape with random weights."""
    transformers = pytest.importorskip("transformers")
    shape = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3}
    config = transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=32, intermediate_size=64, initializer_range=0.3, **shape
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return transformers.LlamaForCausalLM(config).eval()


def apart(network):
    return tunable(SimpleNamespace(all_special_ids=[7, 8]), network, layers=2)


def test_a_network_that_was_taken_apart_says_what_the_whole_says(network):
    with torch.no_grad():
        said = network(torch.from_numpy(TEXTS)).logits[:, :-1].flatten(0, 1)
    truth = torch.from_numpy(TEXTS[:, 1:])
    right = F.cross_entropy(said, truth.flatten(), reduction="none").view(truth.shape).numpy()
    assert np.abs(apart(network).losses(TEXTS) - right).mean() < 0.02 * right.std()


def test_what_is_kept_of_earlier_places_changes_nothing(network):
    written = apart(network).continued(TEXTS[:, :4], 6, top_k=1, rng=0)
    whole = torch.from_numpy(np.hstack([TEXTS[:, :4], written]))
    with torch.no_grad():
        said = network(whole).logits[:, 3:-1]
    said[..., [7, 8]] = -torch.inf
    lost = said.max(-1).values - said.gather(-1, whole[:, 4:, None])[..., 0]
    assert (lost > 0).float().mean() < 0.05  # in half precision a near tie may turn
    assert lost.max() < 0.1 * said[said.isfinite()].std()


def test_a_network_that_was_taken_apart_learns_on_top_and_stays(network):
    before = copy.deepcopy(network.state_dict())
    model = apart(network)
    tuned = tune(model, TEXTS[:20], passes=40, learning_rate=1e-2, seed=0)
    gain = (model.losses(TEXTS) - tuned.losses(TEXTS)).mean(axis=1)
    assert gain[:20].min() > gain[20:].max()
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, before[name])
    with pytest.raises(ValueError, match="layers must be below 3, got 3"):
        tunable(None, network, layers=3)


@pytest.mark.filterwarnings("default")
def test_the_language_model_knows_english():
    for module in ENCODERS["smollm2-135m"].needs:
        if find_spec(module) is None:
            pytest.skip(f"{module} is optional: {ENCODERS['smollm2-135m'].install}")
    model = pretrained()
    english = "The cat sat on the mat and looked at the dog that had come in from the rain."
    found, _ = model.chunks([english], 16)
    tokens = found[:, 0]
    assert model.losses(tokens).mean() < model.losses(tokens[:, ::-1]).mean() - 2
    written = model.continued(np.repeat(tokens, 4, axis=0), 8, rng=0)
    assert not np.isin(written, model.never).any()
    assert len({tuple(row) for row in written}) == 4
