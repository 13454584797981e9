"""Many small networks at once, against the plain loop that trains one after another.

The plain loop is an ordinary torch module, `torch.optim` and batches cut from tensors in memory: no
loader and no copying, the same batch size, epochs, seeds and order. Both sides run on one thread,
which is the loop's best here: its operations are too small to share. A convolution keeps a core
busy by itself, so `fit_many` has little to gain from LeNet-5; `fit_lenets` is compared with both.
Each side is timed three times, in turn, after one run for warming up, in seconds of the processor,
and the best time counts.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numba
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from auditkit.datasets import load
from auditkit.models.lenet import fit_lenets
from auditkit.models.networks import lenet5, linear, mlp
from auditkit.models.training import Models, fit_many

PARTS, ROUNDS = 250, 3
PLAIN = "one model after another, torch modules and torch.optim.SGD"


def measure() -> list[dict[str, Any]]:
    """Time teachers of three kinds on disjoint parts of Fashion-MNIST."""
    torch_threads, numba_threads = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    try:
        data = load("fashion-mnist", part="small")
        images = data["train_images"].astype(np.float32)[:, None] / 255.0
        small = images.reshape(-1, 1, 14, 2, 14, 2).mean((3, 5))
        pixels, labels = small.reshape(len(small), -1), data["train_labels"]
        return [
            *_fully_connected("MLP teachers, 196-32-10", partial(mlp, 196, 10), pixels, labels),
            *_fully_connected("linear teachers, 196-10", partial(linear, 196, 10), pixels, labels),
            *_lenets(data),
        ]
    finally:
        torch.set_num_threads(torch_threads)
        numba.set_num_threads(numba_threads)


def _fully_connected(
    what: str, network: Callable[[], nn.Module], inputs: np.ndarray, labels: np.ndarray
) -> list[dict[str, Any]]:
    """Train as many teachers both ways."""
    options: dict[str, Any] = {"epochs": 20, "batch_size": 10, "learning_rate": 0.1}
    rows = np.random.default_rng(0).permutation(len(labels)).reshape(PARTS, -1)
    ways = {
        "ours": partial(fit_many, network, inputs, labels, **options),
        PLAIN: partial(_one_by_one, network, inputs, labels, **options),
    }
    size = f"{rows.shape[1]} images each, 20 epochs, batches of 10"
    return _compare(f"{len(rows)} {what}, {size}", ways, rows, 1, _largest_difference)


def _lenets(data: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Train teachers of a paper's size three ways; seconds are those of one teacher."""
    images, asked = (
        (data[f"{part}_images"].astype(np.float32)[:, None] / 255.0 - 0.286) / 0.353
        for part in ("train", "test")
    )
    labels, truth = data["train_labels"], data["test_labels"]
    rows = np.random.default_rng(0).permutation(len(labels))[:4800].reshape(20, 240)
    options: dict[str, Any] = {"epochs": 10, "batch_size": 16}
    options |= {"learning_rate": 0.02, "momentum": 0.9}
    ways = {
        "ours": partial(fit_lenets, images, labels, **options),
        PLAIN: partial(_one_by_one, lenet5, images, labels, **options),
        "fit_many": partial(fit_many, lenet5, images, labels, **options),
    }

    def accuracies(ours: Models, theirs: Models) -> str:
        right = [(models.predict(asked) == truth).mean() for models in (ours, theirs)]
        return f"accuracies {right[0]:.3f} and {right[1]:.3f}"

    what = "a LeNet-5 teacher, 240 images, 10 epochs, batches of 16, with momentum"
    return _compare(what, ways, rows, len(rows), accuracies)


def _compare(
    what: str,
    ways: dict[str, Callable[..., Models]],
    rows: np.ndarray,
    share: int,
    agreement: Callable[[Models, Models], str],
) -> list[dict[str, Any]]:
    """Time the first way against each of the others."""
    for fit in ways.values():
        fit(seeds=[0, 1], indices=rows[:2])
    times: dict[str, list[float]] = {name: [] for name in ways}
    models = {}
    for _ in range(ROUNDS):
        for name, fit in ways.items():
            start = time.process_time()
            models[name] = fit(seeds=range(len(rows)), indices=rows)
            times[name].append((time.process_time() - start) / share)
    ours, *others = ways
    return [
        {
            "what": what,
            "baseline": other,
            "seconds": min(times[ours]),
            "baseline_seconds": min(times[other]),
            "ratio": min(times[other]) / min(times[ours]),
            "agreement": agreement(models[ours], models[other]),
        }
        for other in others
    ]


def _largest_difference(ours: Models, theirs: Models) -> str:
    apart = max(
        float((weight - theirs.weights[name]).abs().max()) for name, weight in ours.weights.items()
    )
    return f"largest difference of a weight {apart:.0e}"


def _one_by_one(
    network: Callable[[], nn.Module],
    inputs: np.ndarray,
    labels: np.ndarray,
    *,
    seeds: Sequence[int],
    indices: np.ndarray,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    momentum: float = 0.0,
) -> Models:
    """Train models as everybody would."""
    states = []
    for seed, rows in zip(seeds, indices, strict=True):
        x, y = torch.from_numpy(inputs[rows]), torch.from_numpy(labels[rows])
        torch.manual_seed(seed)
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=momentum)
        shuffle = np.random.default_rng(seed)
        for _ in range(epochs):
            for batch in torch.from_numpy(shuffle.permutation(len(y))).split(batch_size):
                optimizer.zero_grad()
                F.cross_entropy(model(x[batch]), y[batch]).backward()
                optimizer.step()
        states.append(model.state_dict())
    return Models(network, {name: torch.stack([s[name] for s in states]) for name in states[0]})
