"""Many models at once are what they are one by one."""

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from auditkit.models import training
from auditkit.models.networks import lenet5, linear, mlp, small_cnn, small_gpt
from auditkit.models.training import Models, fit_many

CLOSE = 1e-4


def one_by_one(network, x, y, seed, rows, counts, *, epochs, batch_size, make_optimizer):
    """Train one model in the plainest way."""
    torch.manual_seed(seed)
    model = network()
    optimizer = make_optimizer(model.parameters())
    shuffle = np.random.default_rng(seed)
    x, y, counts = torch.from_numpy(x[rows]), torch.from_numpy(y[rows]), torch.tensor(counts)
    for _ in range(epochs):
        for batch in torch.from_numpy(shuffle.permutation(len(rows))).split(batch_size):
            optimizer.zero_grad()
            truth = y[batch].movedim(-1, 1) if y.is_floating_point() else y[batch]
            losses = F.cross_entropy(model(x[batch]).movedim(-1, 1), truth, reduction="none")
            each = losses.flatten(1).mean(1) if losses.ndim > 1 else losses
            ((each * counts[batch]).sum() / counts[batch].sum().clamp(min=1e-9)).backward()
            optimizer.step()
    return model.state_dict()


class Strange(nn.Module):
    """A network that the package has never seen."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(torch.sin(x * self.scale))


def odd_convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, bias=False),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, padding=1, groups=2),
        nn.SiLU(),
        nn.AvgPool2d(3),
        nn.Flatten(),
        nn.Linear(16, 3, bias=False),
    )


VECTORS, IMAGES, BIG_IMAGES, TEXTS = (6,), (1, 28, 28), (3, 32, 32), (5,)
NETWORKS = {
    "linear": (partial(linear, 6, 3), VECTORS),
    "mlp": (partial(mlp, 6, 3, hidden=(8, 7)), VECTORS),
    "lenet5": (partial(lenet5, 3), IMAGES),
    "small_cnn": (partial(small_cnn, 3, channels=3, side=32), BIG_IMAGES),
    "small_gpt": (partial(small_gpt, 3, 5, width=8, heads=2, blocks=1), TEXTS),
    "strange": (Strange, VECTORS),
    "odd convolutions": (odd_convolutions, IMAGES),
}
OPTIMIZERS = {
    "sgd": ({"learning_rate": 0.1}, partial(torch.optim.SGD, lr=0.1)),
    "momentum": (
        {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.01},
        partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=0.01),
    ),
    "adam": (
        {"learning_rate": 0.01, "optimizer": "adam", "weight_decay": 0.01},
        partial(torch.optim.Adam, lr=0.01, weight_decay=0.01),
    ),
}


def pool(shape, examples=40, classes=3):
    rng = np.random.default_rng(7)
    if shape == TEXTS:
        tokens = rng.integers(classes, size=(examples, 6))
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()
    x = rng.normal(size=(examples, *shape)).astype(np.float32)
    return x, rng.integers(classes, size=examples)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seeds", [(3, 1, 4), (3,)], ids=["three", "one"])
def test_many_models_are_trained_as_if_each_were_alone(name, optimizer, seeds):
    (network, shape), (options, make_optimizer) = NETWORKS[name], OPTIMIZERS[optimizer]
    x, y = pool(shape)
    rng = np.random.default_rng(1)
    rows = rng.integers(40, size=(len(seeds), 10))
    models = fit_many(network, x, y, seeds=seeds, indices=rows, epochs=2, batch_size=4, **options)
    for place, seed in enumerate(seeds):
        alone = one_by_one(
            network,
            x,
            y,
            seed,
            rows[place],
            np.ones(10, np.float32),
            epochs=2,
            batch_size=4,
            make_optimizer=make_optimizer,
        )
        assert list(alone) == list(models.weights)
        for key, weight in alone.items():
            assert (models.weights[key][place] - weight).abs().max() < CLOSE, key


@pytest.mark.parametrize("name", ["mlp", "small_gpt"])
def test_weights_make_the_loss_a_weighted_mean(name):
    network, shape = NETWORKS[name]
    x, y = pool(shape)
    counts = np.random.default_rng(2).poisson(1.0, size=(3, 40)).astype(np.float32)
    counts[0, :] = 0.0
    models = fit_many(
        network, x, y, seeds=range(3), weights=counts, epochs=2, batch_size=7, learning_rate=0.1
    )
    for place in range(3):
        alone = one_by_one(
            network,
            x,
            y,
            place,
            np.arange(40),
            counts[place],
            epochs=2,
            batch_size=7,
            make_optimizer=partial(torch.optim.SGD, lr=0.1),
        )
        for key, weight in alone.items():
            assert (models.weights[key][place] - weight).abs().max() < CLOSE, key


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["linear", "mlp", "lenet5", "small_gpt"])
def test_soft_labels_make_the_loss_the_cross_entropy_against_them(name, weighted):
    network, shape = NETWORKS[name]
    x, hard = pool(shape)
    rng = np.random.default_rng(5)
    soft = rng.dirichlet([0.3] * 3, size=hard.shape)
    rows, counts = rng.integers(40, size=(3, 11)), np.ones((3, 11), np.float32)
    if weighted:
        counts = rng.uniform(size=(3, 11)).astype(np.float32)
    options = {"seeds": [3, 1, 4], "indices": rows, "epochs": 2, "batch_size": 4}
    models = fit_many(
        network, x, soft, weights=counts if weighted else None, learning_rate=0.1, **options
    )
    for place, seed in enumerate(options["seeds"]):
        alone = one_by_one(
            network,
            x,
            soft.astype(np.float32),
            seed,
            rows[place],
            counts[place],
            epochs=2,
            batch_size=4,
            make_optimizer=partial(torch.optim.SGD, lr=0.1),
        )
        for key, weight in alone.items():
            assert (models.weights[key][place] - weight).abs().max() < CLOSE, key


@pytest.mark.parametrize("name", ["mlp", "small_gpt"])
def test_soft_labels_that_are_sure_are_hard_labels(name):
    network, shape = NETWORKS[name]
    x, hard = pool(shape)
    options = {"seeds": range(3), "epochs": 2, "batch_size": 7, "learning_rate": 0.1}
    assert same(
        fit_many(network, x, hard, **options), fit_many(network, x, np.eye(3)[hard], **options)
    )


def test_models_can_be_taught_by_what_models_say():
    x, _ = pool(VECTORS)
    teacher = fit(seeds=[0])
    pupil = fit_many(
        partial(mlp, 6, 3),
        x,
        teacher.probabilities(x)[0],
        seeds=[1],
        epochs=300,
        batch_size=8,
        learning_rate=0.5,
    )
    assert np.abs(pupil.probabilities(x) - teacher.probabilities(x)).max() < 0.05


def fit(*, network=partial(mlp, 6, 3), seeds=range(4), **options):  # noqa: B008
    x, y = pool(VECTORS)
    settings = {"epochs": 2, "batch_size": 8, "learning_rate": 0.5, **options}
    return fit_many(network, x, y, seeds=seeds, **settings)


def same(models, others, tolerance=1e-6):
    return all(
        torch.allclose(weight, others.weights[name], atol=tolerance, rtol=0.0)
        for name, weight in models.weights.items()
    )


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=5), st.data())
def test_a_model_does_not_depend_on_its_company(seeds, data):
    place = data.draw(st.integers(0, len(seeds) - 1))
    rows = np.random.default_rng(0).integers(40, size=(len(seeds), 12))
    together = fit(seeds=seeds, indices=rows)
    alone = fit(seeds=[seeds[place]], indices=rows[[place]])
    for name, weight in together.weights.items():
        assert torch.allclose(weight[place], alone.weights[name][0], atol=1e-6)


def test_the_size_of_chunks_does_not_matter(monkeypatch):
    rows = np.random.default_rng(0).integers(40, size=(5, 12))
    counts = np.random.default_rng(0).uniform(size=(5, 12))
    whole = fit(seeds=range(5), indices=rows, weights=counts)
    monkeypatch.setattr(training, "CACHED", 1000)
    assert same(whole, fit(seeds=range(5), indices=rows, weights=counts))


def test_examples_of_weight_zero_are_never_seen():
    x, y = pool(VECTORS)
    counts = (np.random.default_rng(0).random((4, 40)) < 0.5).astype(float)
    other = x.copy()
    other[7] = 100.0
    options = {"seeds": range(4), "weights": counts, "epochs": 3, "batch_size": 5}
    before, after = (
        fit_many(partial(mlp, 6, 3), data, y, learning_rate=0.1, **options) for data in (x, other)
    )
    for place in range(4):
        unchanged = all(
            torch.equal(w[place], after.weights[k][place]) for k, w in before.weights.items()
        )
        assert unchanged == (counts[place, 7] == 0.0)


def test_random_streams_are_left_as_they_were():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - the global stream is the subject
    first = (torch.rand(3), np.random.random())  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    models = fit()
    models.logits(np.zeros((2, 6)))
    models.module(0)
    assert torch.equal(first[0], torch.rand(3))
    assert first[1] == np.random.random()  # noqa: NPY002


def test_training_goes_on_from_given_weights():
    start = fit(epochs=1)
    assert same(start, fit(initial=start.weights, epochs=0), 0.0)
    again = fit(initial={name: weight[2] for name, weight in start.weights.items()}, epochs=0)
    assert torch.equal(again.weights["1.weight"][0], start.weights["1.weight"][2])
    assert len(again) == 4
    moved = fit(initial=start.weights, epochs=1)
    assert not same(start, moved)


def test_given_weights_are_not_changed():
    start = fit(epochs=1)
    kept = {name: weight.clone() for name, weight in start.weights.items()}
    fit(initial=start.weights)
    assert same(start, Models(start.network, kept), 0.0)


def test_the_first_weights_are_those_of_the_seed():
    torch.manual_seed(11)
    expected = mlp(6, 3).state_dict()
    found = fit(seeds=[11], epochs=0).weights
    assert all(torch.equal(weight, found[name][0]) for name, weight in expected.items())


@pytest.mark.parametrize("name", NETWORKS)
def test_a_model_taken_out_says_the_same(name, monkeypatch):
    network, shape = NETWORKS[name]
    x, y = pool(shape)
    models = fit_many(network, x, y, seeds=range(3), epochs=1, batch_size=20, learning_rate=0.1)
    monkeypatch.setattr(training, "ROWS", 30)
    logits = models.logits(x)
    assert logits.shape == (3, 40, *shape[:1] * (shape == TEXTS), 3)
    assert np.array_equal(models.predict(x), logits.argmax(-1))
    probabilities = models.probabilities(x)
    assert probabilities.shape == logits.shape
    assert np.allclose(probabilities.sum(-1), 1.0, rtol=0.0, atol=1e-12)
    losses = models.losses(x, y)
    assert losses.shape == (3, 40)
    for place in range(3):
        with torch.no_grad():
            alone = models.module(place)(torch.from_numpy(x))
            expected = F.cross_entropy(
                alone.movedim(-1, 1), torch.from_numpy(y), reduction="none"
            ).view(40, -1)
        assert np.allclose(logits[place], alone, atol=1e-5)
        assert np.allclose(probabilities[place], alone.softmax(-1), atol=1e-5)
        assert np.allclose(losses[place], expected.mean(1), atol=1e-5)


def test_a_language_model_learns_an_order():
    rng = np.random.default_rng(0)
    tokens = (rng.integers(7, size=(200, 1)) + np.arange(9)) % 7
    models = fit_many(
        partial(small_gpt, 7, 8, width=16, heads=2, blocks=1),
        tokens[:, :-1],
        tokens[:, 1:],
        seeds=[0, 1],
        epochs=5,
        batch_size=20,
        learning_rate=0.01,
        optimizer="adam",
    )
    assert (models.predict(tokens[:, :-1]) == tokens[:, 1:]).mean() > 0.99


def test_models_say_how_many_they_are():
    assert repr(fit()) == "Models(4 of mlp)"
    assert repr(fit(network=lambda: mlp(6, 3))) == "Models(4 of <lambda>)"


def test_models_that_diverge_are_named():
    x, y = pool(VECTORS)
    x[0] = 1e30
    rows = [np.arange(1, 11), np.arange(10), np.arange(2, 12)]
    with pytest.raises(FloatingPointError, match="1 of 3 models diverged, the first is number 1"):
        fit_many(
            partial(mlp, 6, 3),
            x,
            y,
            seeds=range(3),
            indices=np.stack(rows),
            epochs=3,
            batch_size=2,
            learning_rate=10.0,
        )


GOOD = {
    "network": partial(mlp, 6, 3),
    "inputs": np.zeros((10, 6)),
    "labels": np.zeros(10),
    "seeds": [0, 1],
    "epochs": 1,
    "batch_size": 5,
    "learning_rate": 0.1,
}
START = mlp(6, 3).state_dict()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"network": mlp(6, 3)}, "network must be a function"),
        ({"network": 3}, "network must be a function"),
        ({"network": lambda: 3}, "network must be a function"),
        ({"network": lambda: nn.Sequential(mlp(6, 3), nn.Dropout())}, "no dropout"),
        ({"network": lambda: nn.Sequential(nn.BatchNorm1d(6), mlp(6, 3))}, "running statistics"),
        ({"network": lambda: nn.Linear(6, 1)}, "each of 2 classes or more"),
        ({"inputs": np.zeros((10, 7))}, r"inputs must be what network takes, got shape \(10, 7\)"),
        ({"inputs": np.zeros((10, 6), np.uint8)}, "inputs must be what network takes.*int64"),
        ({"inputs": np.zeros(10)}, r"inputs must be an array of numbers .*\(10,\)"),
        ({"inputs": np.zeros((0, 6))}, "inputs .*at least one"),
        ({"inputs": [["a"]]}, "inputs must be an array of numbers"),
        ({"inputs": np.full((10, 6), np.nan)}, "inputs must hold finite numbers, got nan"),
        ({"labels": np.zeros(9)}, r"labels must have shape \(10,\), got \(9,\)"),
        ({"labels": np.full(10, 3)}, "labels must lie in 0 to 2, got 3"),
        ({"labels": np.full(10, -1)}, "labels"),
        ({"labels": np.full(10, 0.5)}, "labels"),
        ({"labels": [[1.0], [0.5, 0.5]]}, "labels must be an array of numbers"),
        ({"labels": np.zeros((10, 2))}, r"labels .*\(10,\), or \(10, 3\) if .*soft, got \(10, 2\)"),
        ({"labels": np.zeros((9, 3))}, r"labels .*got \(9, 3\)"),
        ({"labels": np.full((10, 3), 0.5)}, "labels must sum to 1 within 1e-9, got 1.5"),
        ({"labels": np.tile([1.5, -0.5, 0.0], (10, 1))}, "labels must hold numbers of at least 0"),
        ({"labels": np.full((10, 3), np.nan)}, "labels must hold finite numbers, got nan"),
        ({"seeds": 3}, "seeds must be a list"),
        ({"seeds": []}, "seeds must be a list"),
        ({"seeds": [-1, 0]}, "seeds"),
        ({"epochs": -1}, "epochs must be a whole number of at least 0, got -1"),
        ({"epochs": 1.5}, "epochs"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"learning_rate": np.inf}, "learning_rate"),
        ({"indices": np.zeros((3, 4))}, r"indices must have one row for each of 2 seeds.*\(3, 4\)"),
        ({"indices": np.zeros(4)}, "indices must have one row"),
        ({"indices": np.zeros((2, 0))}, "indices must have one row"),
        ({"indices": np.full((2, 4), 10)}, "indices must lie in 0 to 9, got 10"),
        ({"indices": np.full((2, 4), -1)}, "indices"),
        ({"weights": np.ones((2, 9))}, r"weights must have shape \(2, 10\)"),
        ({"weights": np.ones((2, 4)), "indices": np.zeros((2, 5))}, r"weights .*\(2, 5\)"),
        ({"weights": np.full((2, 10), -1.0)}, "weights"),
        ({"weights": np.full((2, 10), np.nan)}, "weights"),
        ({"initial": {}}, "initial must hold the weights 1.weight"),
        ({"initial": 3}, "initial must hold the weights"),
        ({"initial": {**START, "1.bias": torch.zeros(5)}}, r"initial\['1.bias'\] must have shape"),
        ({"optimizer": "rmsprop"}, "optimizer must be one of 'sgd', 'adam'"),
        ({"momentum": 1.0}, r"momentum must lie in \[0, 1\)"),
        ({"momentum": 0.9, "optimizer": "adam"}, "momentum"),
        ({"weight_decay": -0.1}, "weight_decay"),
    ],
)
def test_bad_arguments_are_named(bad, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit_many(**{**GOOD, **bad})


def test_a_token_outside_the_vocabulary_is_refused():
    tokens = np.zeros((10, 4), np.int64)
    tokens[3, 2] = 9
    with pytest.raises(ValueError, match="tokens must lie in 0 to 8, got 0 to 9"):
        fit_many(
            **{**GOOD, "network": partial(small_gpt, 9, 4), "inputs": tokens, "labels": tokens * 0}
        )


def test_models_refuse_what_they_cannot_read():
    models = fit()
    with pytest.raises(ValueError, match="inputs must be what network takes"):
        models.logits(np.zeros((3, 7)))
    with pytest.raises(ValueError, match="labels must have shape"):
        models.losses(np.zeros((3, 6)), [0, 1])
    with pytest.raises(IndexError):
        models.module(4)


def test_a_layer_without_weights_may_be_used_twice():
    def network():
        again = nn.ReLU()
        return nn.Sequential(nn.Linear(8, 16), again, nn.Linear(16, 16), again, nn.Linear(16, 2))

    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 8)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    models = fit_many(network, x, y, seeds=[0], epochs=2, batch_size=20, learning_rate=0.1)
    alone = models.module(0)(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(np.asarray(models.logits(x))[0], alone, atol=CLOSE)


def tied():
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer)


def frozen():
    network = nn.Sequential(nn.Linear(4, 4))
    network[0].bias.requires_grad_(False)
    return network


@pytest.mark.parametrize(
    ("network", "message"),
    [(tied, "network must not use one weight in two places"), (frozen, r"got \['0.bias'\] frozen")],
)
def test_a_network_that_would_be_trained_otherwise_is_refused(network, message):
    x, y = np.zeros((8, 4), np.float32), np.zeros(8, np.int64)
    with pytest.raises(ValueError, match=message):
        fit_many(network, x, y, seeds=[0], epochs=1, batch_size=4, learning_rate=0.1)
