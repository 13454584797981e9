"""Many small networks at once, against the plain loop that trains one after another.

The plain loop is an ordinary torch module, `torch.optim` and batches cut from tensors in memory: no
loader and no copying, the same batch size, epochs, seeds and order. Both sides run on one thread,
which is the loop's best here: its operations are too small to share. A convolution keeps a core
busy by itself, so LeNet-5 has little to gain on a CPU, and its row says so. Each side is timed
three times, in turn, after one run for warming up, and the best time counts.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from auditkit.datasets import load
from auditkit.models.networks import lenet5, linear, mlp
from auditkit.models.training import fit_many

PARTS, ROUNDS = 250, 3


def measure() -> list[dict[str, Any]]:
    """Time teachers of three kinds on disjoint parts of Fashion-MNIST."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        data = load("fashion-mnist", part="small")
        images = data["train_images"].astype(np.float32)[:, None] / 255.0
        small = images.reshape(-1, 1, 14, 2, 14, 2).mean((3, 5))
        pixels, labels = small.reshape(len(small), -1), data["train_labels"]
        return [
            _row("MLP teachers, 196-32-10", partial(mlp, 196, 10), pixels, labels, 250, 20),
            _row("linear teachers, 196-10", partial(linear, 196, 10), pixels, labels, 250, 20),
            _row("LeNet-5 teachers", lenet5, images, labels, 50, 5),
        ]
    finally:
        torch.set_num_threads(threads)


def _row(
    what: str,
    network: Callable[[], nn.Module],
    inputs: np.ndarray,
    labels: np.ndarray,
    teachers: int,
    epochs: int,
) -> dict[str, Any]:
    """Train as many teachers both ways."""
    options: dict[str, Any] = {"epochs": epochs, "batch_size": 10, "learning_rate": 0.1}
    rows = np.random.default_rng(0).permutation(len(labels)).reshape(PARTS, -1)[:teachers]
    x, y = torch.from_numpy(inputs), torch.from_numpy(labels)
    for seed in range(2):
        _alone(network, x[rows[seed]], y[rows[seed]], seed, **options)
    fit_many(network, inputs, labels, seeds=[0, 1], indices=rows[:2], **options)
    ours, loops = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        models = fit_many(network, inputs, labels, seeds=range(len(rows)), indices=rows, **options)
        middle = time.perf_counter()
        alone = [_alone(network, x[r], y[r], seed, **options) for seed, r in enumerate(rows)]
        ours.append(middle - start)
        loops.append(time.perf_counter() - middle)
    difference = max(
        float((weight - models.weights[name][seed]).abs().max())
        for seed, state in enumerate(alone)
        for name, weight in state.items()
    )
    return {
        "what": f"{len(rows)} {what}, {rows.shape[1]} images each, {epochs} epochs, batches of 10",
        "baseline": "one model after another, torch modules and torch.optim.SGD",
        "seconds": min(ours),
        "baseline_seconds": min(loops),
        "ratio": min(loops) / min(ours),
        "agreement": f"largest difference of a weight {difference:.0e}",
    }


def _alone(
    network: Callable[[], nn.Module],
    x: torch.Tensor,
    y: torch.Tensor,
    seed: int,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
) -> dict[str, torch.Tensor]:
    """Train one model as everybody would."""
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    shuffle = np.random.default_rng(seed)
    for _ in range(epochs):
        for batch in torch.from_numpy(shuffle.permutation(len(y))).split(batch_size):
            optimizer.zero_grad()
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
    return model.state_dict()
