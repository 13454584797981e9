"""What is told to run on another device runs there, draws what the CPU draws and says the same."""

import copy
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from auditkit.attacks.canaries import (
    adversarial_natural,
    clipped_gradients,
    crafted_input,
    mislabelled,
    train_reference,
)
from auditkit.attacks.substitution import audit_opacus, substitution_scores
from auditkit.cli import main
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, audit_sgd
from auditkit.mechanisms.prompt_voting import paired_logits, prompt_logits
from auditkit.models import encoders
from auditkit.models.encoders import encode, language_model
from auditkit.models.networks import lenet5, linear, mlp, small_cnn, small_gpt
from auditkit.models.outputs import probabilities
from auditkit.models.training import fit_many

FAR = "meta"  # where the fixture `far` computes
RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(60, 6)), RNG.integers(3, size=60)
IMAGES = RNG.normal(size=(12, 1, 28, 28))
TEXTS = RNG.integers(7, size=(12, 5))


class Halved(nn.Module):
    """A layer with a number that is not trained."""

    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.full((4,), 0.5))

    def forward(self, rows):
        return rows * self.factor


def odd_layers():
    """Make a network with layers that are left to vmap."""
    odd = (nn.RMSNorm(4), nn.ELU(), Halved(), nn.Unflatten(1, (2, 2)), nn.Flatten())
    return nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), *odd, *mlp(4, 3))


# many models


@pytest.mark.parametrize(
    ("network", "inputs", "labels"),
    [
        (partial(mlp, 6, 3), ROWS, LABELS),
        (partial(linear, 6, 3), ROWS, np.eye(3)[LABELS]),
        (odd_layers, ROWS, LABELS),
        (lenet5, IMAGES, np.arange(12) % 10),
        (small_cnn, IMAGES, np.arange(12) % 10),
        (partial(small_gpt, 7, 5, width=8, heads=2), TEXTS, TEXTS),
    ],
)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_many_models_train_and_answer_there(network, inputs, labels, optimizer, far):
    fit = partial(
        fit_many, network, inputs, labels, seeds=range(3), epochs=2, batch_size=5,
        learning_rate=0.01, optimizer=optimizer,
        weights=np.tile(np.arange(len(inputs)) % 3, (3, 1)) if optimizer == "sgd" else None,
    )  # fmt: skip
    here = fit()
    far.made.clear()
    there = fit(device=FAR)
    assert far.share > 0.9
    assert {str(weight.device) for weight in there.weights.values()} == {FAR}
    far.made.clear()
    np.testing.assert_allclose(there.logits(inputs), here.logits(inputs), atol=1e-5)
    np.testing.assert_allclose(there.probabilities(inputs), here.probabilities(inputs), atol=1e-5)
    assert 0.4 < far.share < 0.6  # half of the questions went there


@pytest.mark.usefixtures("far")
def test_models_of_another_device_go_on_there_and_come_back():
    fit = partial(fit_many, partial(mlp, 6, 3), ROWS, LABELS, seeds=[1, 2], batch_size=60)
    first = fit(epochs=1, learning_rate=0.1, device=FAR)
    then = fit(epochs=1, learning_rate=0.1, device=FAR, initial=first.weights)
    again = fit(epochs=1, learning_rate=0.1, initial=first.weights)
    np.testing.assert_allclose(then.logits(ROWS), again.logits(ROWS), atol=1e-5)
    np.testing.assert_allclose(then.losses(ROWS, LABELS), again.losses(ROWS, LABELS), atol=1e-5)
    alone = then.module(1)(torch.from_numpy(ROWS).float())
    np.testing.assert_allclose(alone.detach().numpy(), then.logits(ROWS)[1], atol=1e-5)


# DP-SGD


def gradients(parameters):
    return GradientCanary(np.eye(2, parameters) * 0.5)


RECORDS = InputCanary([ROWS[0], -ROWS[0]], [0, 1])


@pytest.mark.parametrize(
    ("canary", "options"),
    [
        (RECORDS, {}),
        (RECORDS, {"logits": 3}),
        (RECORDS, {"logits": 3, "optimizer": "adam"}),
        (gradients(6), {}),
        (gradients(18), {"logits": 3}),
        (RECORDS, {"network": partial(mlp, 6, 3)}),
        (gradients(18 + 3), {"network": partial(linear, 6, 3), "optimizer": "adam"}),
        (RECORDS, {"network": odd_layers}),
    ],
)
@pytest.mark.parametrize("sampling_rate", [1.0, 0.2])
@pytest.mark.parametrize("records", [3, 40])  # fewer than features, and more
def test_private_models_train_there_by_the_same_draws(canary, options, sampling_rate, records, far):
    single = "logits" not in options and "network" not in options
    labels = LABELS[:records] % 2 if single else LABELS[:records]
    train = partial(
        audit_sgd, ROWS[:records], labels, canary, runs=6, steps=5, sampling_rate=sampling_rate,
        noise_multiplier=1.0, clip=1.0, learning_rate=0.1, snapshots=[2, 5], seed=3, **options,
    )  # fmt: skip
    here = train()
    far.made.clear()
    there = train(device=FAR)
    assert far.share > 0.9
    np.testing.assert_allclose(there.weights, here.weights, atol=2e-5)
    np.testing.assert_allclose(there.initial, here.initial, atol=2e-5)
    far.made.clear()
    np.testing.assert_allclose(there.logits(ROWS), here.logits(ROWS), atol=1e-4)
    if "network" in options:  # those of heads are products of numpy's
        assert 0.4 < far.share < 0.6


def test_what_is_kept_of_models_is_asked_of_them_there(far):
    trained = audit_sgd(
        ROWS, LABELS, RECORDS, runs=4, steps=3, sampling_rate=1.0, noise_multiplier=1.0, clip=1.0,
        learning_rate=0.1, network=partial(mlp, 6, 3), device=FAR,
        keep=lambda models: substitution_scores(models, RECORDS),
    )  # fmt: skip
    assert trained.kept.shape == (4, 1, 1)
    assert far.share > 0.9


# models that somebody brings


@pytest.mark.parametrize("last", [nn.Identity(), nn.Softmax(dim=1)])
def test_a_network_is_asked_where_its_weights_are(last, far):
    network = nn.Sequential(*mlp(6, 3), last)
    (here,), _ = probabilities(network, ROWS)
    far.made.clear()
    (there,), _ = probabilities(copy.deepcopy(network).to(FAR), ROWS)
    assert far.share == 1.0
    np.testing.assert_allclose(there, here, atol=1e-6)


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """Return a command that scores a network, in a folder with all that it takes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brought_networks.py").write_text(
        "from torch import manual_seed, nn\n\n"
        "def network():\n    manual_seed(0)\n    return nn.Linear(6, 3)\n"
    )
    for name, part in (("members", slice(30)), ("others", slice(30, 60))):
        np.savez(tmp_path / f"{name}.npz", features=ROWS[part], labels=LABELS[part])
    torch.save(nn.Linear(6, 3).state_dict(), tmp_path / "weights.pt")
    return [
        "score", "brought_networks:network", "--members", "members.npz", "--others", "others.npz",
        "--weights", "weights.pt", "--attack", "calibrated",
        "--reference", "brought_networks:network",
    ]  # fmt: skip


def test_the_command_scores_there(far, scored):
    assert main([*scored, "--output", "here.csv"]) == 0
    far.made.clear()
    assert main([*scored, "--output", "there.csv", "--device", FAR]) == 0
    assert far.share == 1.0
    here, there = (
        np.loadtxt(name, delimiter=",", skiprows=1) for name in ("here.csv", "there.csv")
    )
    np.testing.assert_allclose(there, here, atol=1e-5)


# canaries


@pytest.mark.parametrize("clip", [None, 1.0])
def test_canaries_are_crafted_where_the_model_is(clip, far):
    def crafted(model):
        options = {"steps": 20, "learning_rate": 0.1, "sampling_rate": 0.5, "rng": 0}
        reference = train_reference(model, ROWS, LABELS, clip=clip, optimizer="adam", **options)
        trained, x, y = reference.model, ROWS[0], int(LABELS[0])
        return [
            reference.confidence,
            reference.movement,
            crafted_input(trained, x, y, steps=5, rng=0),
            mislabelled(trained, x, y),
            adversarial_natural(trained, x, y, pool_features=ROWS, pool_labels=LABELS),
            clipped_gradients(trained, ROWS, LABELS, clip=1.0),
        ]

    network = mlp(6, 3)
    here = crafted(network)
    far.made.clear()
    there = crafted(copy.deepcopy(network).to(FAR))
    assert far.share == 1.0
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("device", ["cpu", FAR])
def test_a_training_loop_of_ones_own_may_run_there(device):
    def train(run):
        model = nn.Linear(2, 1, bias=False).to(device)
        weight, hooks = model.weight, []
        optimizer = SimpleNamespace(
            step_hook=None, attach_step_hook=hooks.append, params=[weight], max_grad_norm=1.0,
            loss_reduction="mean", expected_batch_size=4, accumulated_iterations=1,
        )  # fmt: skip
        run.attach(model, optimizer, SimpleNamespace(sample_rate=1.0))
        weight.grad = torch.zeros(1, 2, device=device)
        hooks[0](optimizer)
        with torch.no_grad():
            weight -= weight.grad
        return model

    canary = GradientCanary([[1.0, 0.0], [-1.0, 0.0]])
    moved = audit_opacus(train, canary, runs=2).along([1.0, 0.0])
    np.testing.assert_allclose(moved[:, 0], [-0.25, 0.25], atol=1e-6)


# encoders and language models


class Reader(nn.Module):
    """A language model of one embedding, in the form of the transformers package."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.token = nn.Parameter(torch.randn(128, 576, generator=generator), requires_grad=False)
        self.mix = nn.Parameter(torch.randn(576, 576, generator=generator), requires_grad=False)
        self.model = self.base_model = self.read

    def get_output_embeddings(self):
        return SimpleNamespace(weight=self.token)

    def forward(self, input_ids, use_cache, logits_to_keep):  # noqa: ARG002
        kept = (self.token[input_ids] @ self.mix)[:, None]
        return SimpleNamespace(past_key_values=Kept([SimpleNamespace(keys=kept, values=kept)]))

    def read(self, input_ids, attention_mask, past_key_values=None, use_cache=False):  # noqa: ARG002
        states = self.token[input_ids] @ self.mix
        if past_key_values is not None:
            states = torch.cat([past_key_values.layers[0].keys[:, 0], states], dim=1)
        sums = (states * attention_mask[..., None]).cumsum(dim=1)
        return SimpleNamespace(last_hidden_state=sums[:, -input_ids.shape[1] :])


class Kept:
    def __init__(self, layers=()):
        self.layers = list(layers)

    def update(self, keys, values, _):
        self.layers.append(SimpleNamespace(keys=keys, values=values))


def tokens(text, **_):
    return {"input_ids": [ord(letter) for letter in text]}


class Batch(dict):
    """Tokens of some texts, filled up, as the transformers package hands them over."""

    def to(self, device):
        return Batch({name: tensor.to(device) for name, tensor in self.items()})


def padded(texts, **_):
    rows = [torch.tensor(tokens(text)["input_ids"]) for text in texts]
    numbers = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return Batch(input_ids=numbers, attention_mask=(numbers > 0).long())


@pytest.mark.parametrize("pairs", [False, True])
def test_teachers_are_asked_where_the_language_model_is(pairs, far):
    def ask(model):
        prompts = ["ab", "c", "bbb"]
        if pairs:
            return paired_logits((tokens, model), prompts, prompts[::-1], ["y", "n"])
        return prompt_logits((tokens, model), prompts, ["a", "bcab"], ["y", "n"])

    here = ask(Reader())
    far.made.clear()
    np.testing.assert_allclose(ask(Reader().to(FAR)), here, rtol=1e-5)
    assert far.share == 1.0


class Eye(nn.Module):
    """An image encoder: one convolution."""

    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(3, 1280, 8, 8)

    def forward(self, images):
        return self.look(images)


@pytest.fixture
def brought(monkeypatch, tmp_path):
    """Stand-ins for the packages with encoders."""
    monkeypatch.setenv("AUDITKIT_DATA", str(tmp_path))
    monkeypatch.setattr(encoders, "_check_installed", lambda _: None)
    monkeypatch.setattr(encoders, "version", lambda _: "1.0")
    monkeypatch.setattr(encoders, "_folder", lambda _: tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "some.gguf").touch()
    eye, reader = Eye().eval(), Reader()
    torch.save(eye.state_dict(), tmp_path / "models" / "eye.pth")
    short = Reader()
    short.mix = nn.Parameter(short.mix[:, :384], requires_grad=False)

    def sentences(**kwargs):
        return short.read(kwargs["input_ids"], kwargs["attention_mask"])

    short.forward = sentences
    eye.extract_features = eye.forward
    packages = {
        "efficientnet_lite_pytorch": SimpleNamespace(
            EfficientNet=SimpleNamespace(from_name=lambda _: eye)
        ),
        "transformers": SimpleNamespace(
            AutoTokenizer=SimpleNamespace(
                from_pretrained=lambda *_, **options: tokens if "gguf_file" in options else padded
            ),
            AutoModel=SimpleNamespace(from_pretrained=lambda *_, **__: short),
            AutoModelForCausalLM=SimpleNamespace(from_pretrained=lambda *_, **__: reader),
        ),
    }
    for package, stand_in in packages.items():
        monkeypatch.setitem(sys.modules, package, stand_in)
    found = (encoders._efficientnet, encoders._minilm, encoders._smollm2)
    for make in found:
        make.cache_clear()
    yield tmp_path / "features"
    for make in found:
        make.cache_clear()


@pytest.mark.parametrize("name", sorted(encoders.ENCODERS))
def test_encoders_run_there_and_their_features_are_kept_apart(name, brought, far):
    images = RNG.integers(256, size=(3, 32, 32, 3), dtype=np.uint8)
    inputs = images if name == "efficientnet-lite0" else ["a fine film", "fine"]
    here = encode(name, inputs)
    far.made.clear()
    there = encode(name, inputs, device=FAR)
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-5)
    assert len(list(brought.iterdir())) == 2
    assert far.share == 1.0


@pytest.mark.usefixtures("brought", "far")
def test_a_language_model_is_where_it_was_asked_for():
    _, model = language_model(device=FAR)
    assert model.token.device == torch.device(FAR)


# what is not there

UNKNOWN = ["cuda", "cuda:1", "mps", "meta", "gpu", "", None, 3]


missing = pytest.mark.skipif(torch.accelerator.is_available(), reason="there is another device")


@missing
@pytest.mark.parametrize("device", UNKNOWN)
@pytest.mark.parametrize(
    "call",
    [
        lambda device: fit_many(
            partial(mlp, 6, 3), ROWS, LABELS, seeds=[0], epochs=1, batch_size=5, learning_rate=0.1,
            device=device,
        ),
        lambda device: audit_sgd(
            ROWS, LABELS % 2, RECORDS, runs=1, steps=1, sampling_rate=1.0, noise_multiplier=1.0,
            clip=1.0, learning_rate=0.1, device=device,
        ),
        lambda device: encode("all-minilm-l6-v2", ["fine"], device=device),
        lambda device: language_model(device=device),
    ],
)  # fmt: skip
def test_a_device_that_is_not_there_is_named_with_those_that_are(call, device, monkeypatch):
    monkeypatch.setattr(encoders, "_check_installed", lambda _: None)
    with pytest.raises(ValueError, match=f"^device must be one of 'cpu', got {device!r}$"):
        call(device)


@missing
def test_the_command_names_a_device_that_is_not_there(scored, capsys):
    assert main([*scored, "--output", "there.csv", "--device", "cuda"]) != 0
    assert "--device must be one of 'cpu', got 'cuda'" in capsys.readouterr().err
    assert not Path("there.csv").exists()
