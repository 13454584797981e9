"""Compiled LeNet-5 is the LeNet-5 of torch."""

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from auditkit.datasets import load
from auditkit.models import lenet
from auditkit.models.lenet import fit_lenets
from auditkit.models.networks import lenet5
from auditkit.models.training import Models, fit_many

SETTING = {"epochs": 2, "batch_size": 16, "learning_rate": 0.02, "momentum": 0.9}


def pool(examples=40, channels=1, classes=10):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(examples, channels, 28, 28)).astype(np.float32)
    return x, rng.integers(classes, size=examples)


def one_by_one(x, y, seed, *, classes, epochs, batch_size, learning_rate, momentum=0.0):
    """Train one model in the plainest way."""
    torch.manual_seed(seed)
    model = lenet5(classes, channels=x.shape[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=momentum)
    shuffle = np.random.default_rng(seed)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    for _ in range(epochs):
        for batch in torch.from_numpy(shuffle.permutation(len(y))).split(batch_size):
            optimizer.zero_grad()
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
    return model.state_dict()


def fit(x=None, y=None, **options):
    given = pool()
    x, y = given[0] if x is None else x, given[1] if y is None else y
    return fit_lenets(x, y, **{"seeds": range(3), **SETTING, **options})


def same(models, others):
    return all(torch.equal(weight, others.weights[name]) for name, weight in models.weights.items())


@pytest.mark.parametrize(
    ("channels", "classes", "options"),
    [
        (1, 10, {"epochs": 1, "batch_size": 16, "learning_rate": 0.02, "momentum": 0.9}),
        (3, 3, {"epochs": 2, "batch_size": 7, "learning_rate": 0.05}),
        (2, 5, {"epochs": 3, "batch_size": 100, "learning_rate": 0.05, "momentum": 0.5}),
    ],
)
def test_weights_are_those_of_torch_after_some_steps(channels, classes, options):
    x, y = pool(80, channels, classes)
    rows = np.stack([np.random.default_rng(seed).integers(80, size=73) for seed in range(2)])
    models = fit_lenets(x, y, seeds=[3, 1], classes=classes, indices=rows, **options)
    for place, seed in enumerate([3, 1]):
        alone = one_by_one(x[rows[place]], y[rows[place]], seed, classes=classes, **options)
        assert list(alone) == list(models.weights)
        for name, weight in alone.items():
            assert (models.weights[name][place] - weight).abs().max() < 1e-6, name


@pytest.mark.parametrize("examples", [1, 16, 37])
def test_answers_are_those_of_torch(examples):
    models, (x, y) = fit(), pool(examples)
    plain = Models(models.network, models.weights)
    assert np.abs(models.logits(x) - plain.logits(x)).max() < 1e-6
    assert np.array_equal(models.predict(x), plain.predict(x))
    assert np.allclose(models.losses(x, y), plain.losses(x, y), atol=1e-5)
    assert np.allclose(models.probabilities(x).sum(axis=-1), 1.0)
    assert np.allclose(
        models.module(1)(torch.from_numpy(x)).detach(), models.logits(x)[1], atol=1e-6
    )


def test_no_passes_leave_first_weights():
    first = fit_many(lenet5, *pool(), seeds=range(3), **{**SETTING, "epochs": 0})
    assert same(fit(epochs=0), first)


def test_a_model_does_not_depend_on_its_company():
    together, alone = fit(seeds=[5, 6, 7]), fit(seeds=[6])
    for name, weight in together.weights.items():
        assert torch.equal(weight[1], alone.weights[name][0])


def test_threads_change_nothing(monkeypatch):
    before = fit()
    monkeypatch.setattr(lenet, "get_num_threads", lambda: 3)
    assert same(before, fit())


def test_images_behind_the_end_of_a_batch_do_not_count():
    x, _ = pool()
    rows = np.arange(17)[None]
    other = x.copy()
    other[17:] = 100.0
    assert same(fit(seeds=[0], indices=rows), fit(other, seeds=[0], indices=rows))


def test_divergence_is_told():
    with pytest.raises(FloatingPointError, match="3 of 3 models diverged"):
        fit(learning_rate=1e6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": np.zeros((40, 784))}, "inputs must have shape"),
        ({"x": np.zeros((40, 1, 29, 29))}, "inputs must have shape"),
        ({"x": np.zeros((40, 1, 28, 28), dtype=np.uint8)}, "inputs must be what network takes"),
        ({"y": np.full(40, 10)}, "labels must lie in 0 to 9"),
        ({"y": np.zeros(39, dtype=int)}, "labels must have shape"),
        ({"classes": 1}, "classes"),
        ({"indices": np.zeros((2, 5), dtype=int)}, "indices must have one row"),
        ({"momentum": 1.0}, "momentum must lie in"),
        ({"epochs": -1}, "epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"learning_rate": 0.0}, "learning_rate"),
    ],
)
def test_nonsense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**options)


def test_models_are_asked_images_of_their_own_shape():
    with pytest.raises(ValueError, match="inputs must be what network takes"):
        fit().logits(np.zeros((2, 3, 28, 28)))


@pytest.mark.slow
def test_trained_teachers_know_as_much_as_those_of_torch():
    data = load("fashion-mnist")
    x, t = (
        ((data[f"{part}_images"] / 255.0 - 0.286) / 0.353)[:, None].astype(np.float32)
        for part in ("train", "test")
    )
    rows = np.random.default_rng(0).permutation(len(x))[:4800].reshape(20, 240)
    options = {**SETTING, "epochs": 10, "seeds": range(20), "indices": rows}
    ours, torchs = (
        (models.predict(t[:1000]) == data["test_labels"][:1000]).mean(axis=1)
        for models in (
            fit_lenets(x, data["train_labels"], **options),
            fit_many(partial(lenet5, 10), x, data["train_labels"], **options),
        )
    )
    assert torchs.mean() > 0.6
    assert abs(ours.mean() - torchs.mean()) < 0.01
