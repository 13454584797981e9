"""Thousands of models under DP-SGD at once, against a loop of single runs with Opacus.

The loop is a torch module, `torch.optim`, a `DataLoader` over tensors in memory and
`PrivacyEngine.make_private` as its documentation has it: the same records, canary, optimiser,
steps, sampling rate, noise and clipping norm. Opacus rounds the expected size of a batch down; its
learning rate makes up for that. Both sides run on one thread, which is the loop's best here, and
their time is that of the processor. A few of the loop's models are timed and the rest is
extrapolated: each takes the same steps. Ours are timed in full, weights returned in full
dimension. Each side is timed in turn, twice, after a run for warming up, and the best time counts.

The records are 499 of CIFAR-10 with the 1,280 features of a frozen network, rebuilt from the 256
directions that the book ships, or the coordinates along these alone. Rebuilt ones get a little
noise, so that they span as many dimensions as there are records, as those of the network itself
do: fewer dimensions would be less work for us and not for the loop. Agreement is that of scores
after 10 steps, of 1,000 of the loop's models and 5,000 of ours, by the test of Kolmogorov and
Smirnov: twice the smaller p of the two worlds.

Beside the heads of full width stands a floor: what it takes to draw the noise and the batches and
to multiply weights by records and errors by records, of as many records as a batch has in the mean,
with the generator and the products of the trainer itself and nothing else. There the ratio is the
floor's share of our time.
"""

import math
import time
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.stats import ks_2samp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from auditkit.attacks.substitution import CanaryRun, audit_opacus, substitution_scores
from auditkit.datasets import load
from auditkit.mechanisms.dp_descent import Draws
from auditkit.mechanisms.dp_heads import HeadTask, _laid_out, _times
from auditkit.mechanisms.dp_sgd import InputCanary, audit_sgd
from auditkit.models.networks import mlp

OTHERS, ROUNDS, AGREEING, SHORT = 499, 2, 1000, 10
HEAD = {"clip": 2.0, "learning_rate": 0.001, "optimizer": "sgd"}
ADAM = {"clip": 5.0, "learning_rate": 0.0018, "optimizer": "adam"}


def measure() -> list[dict[str, Any]]:
    """Time linear heads at three sampling rates, heads of ten classes, and a small network."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        data = load("cifar10", part="features")
        small = data["train_features"][:5000].astype(float)
        small = (
            16.0 * (small - small.mean(0)) / np.linalg.norm(small - small.mean(0), axis=1).mean()
        )
        large, classes = small @ data["directions"], data["train_labels"][:5000]
        large += np.random.default_rng(0).normal(scale=0.05, size=large.shape)
        animal = np.isin(classes, [2, 3, 4, 5, 6, 7]).astype(int)
        heads = [
            _row("linear head", large, animal, 2500, 500, (1.0, 22.36), 3, **HEAD),
            _row("linear head", large, animal, 2500, 500, (0.25, 5.573), 5, **HEAD),
            _row("linear head", large, animal, 2500, 500, (0.0625, 1.403), 8, **HEAD),
        ]
        rates = (1.0, 0.25, 0.0625)
        floors = [
            _beside_the_floor(row, large, animal, rate)
            for row, rate in zip(heads, rates, strict=True)
        ]
        return [
            *heads,
            *floors,
            _row("linear head", small, animal, 2500, 500, (1.0, 22.36), 3, **HEAD),
            _row("ten-class head", small, classes, 250, 500, (1.0, 22.36), 3, logits=10, **HEAD),
            _row(
                "network with 128 hidden units", small, classes, 50, 50, (0.25, 1.0), 5,
                network=partial(mlp, 256, 10, hidden=(128,)), **ADAM,
            ),
        ]  # fmt: skip
    finally:
        torch.set_num_threads(threads)


def _row(
    what: str,
    features: np.ndarray,
    labels: np.ndarray,
    runs: int,
    steps: int,
    privacy: tuple[float, float],
    single: int,
    **options: Any,
) -> dict[str, Any]:
    """Train `runs` models at once and `single` of them one after another."""
    rate, sigma = privacy
    options |= {"sampling_rate": rate, "noise_multiplier": sigma}
    if "network" in options:  # one start for all, or chance in it would hide the training
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            start = nn.utils.parameters_to_vector(options["network"]().parameters())
        options |= {"initial": start.detach().numpy()}
    x, y, z = features[:OTHERS], labels[:OTHERS], features[OTHERS]
    canary = InputCanary([z, z], [labels[OTHERS], (labels[OTHERS] + 1) % (labels.max() + 1)])
    one = partial(_opacus, x=x, y=y, **options)

    def ours(count: int, length: int) -> Any:
        return audit_sgd(x, y, canary, runs=count, steps=length, **options)

    def theirs(count: int, length: int) -> Any:
        return audit_opacus(partial(one, steps=length), canary, runs=count)

    pair = ours(5 * AGREEING, SHORT), theirs(AGREEING, SHORT)
    scores = [(substitution_scores(trained, canary)[:, 0], trained.bits) for trained in pair]
    worlds = [ks_2samp(*(s[b == bit] for s, b in scores)).pvalue for bit in (0, 1)]
    fast, slow = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        ours(runs, steps)
        middle = time.process_time()
        theirs(single, steps)
        fast.append(middle - start)
        slow.append((time.process_time() - middle) * runs / single)
    return {
        "what": f"{runs:,} models, {what} on {x.shape[1]:,} features, {OTHERS + 1} records, "
        f"{steps} steps, q = {rate:g}",
        "baseline": f"Opacus, one model after another, extrapolated from {single}",
        "seconds": min(fast),
        "baseline_seconds": min(slow),
        "ratio": min(slow) / min(fast),
        "agreement": f"Kolmogorov-Smirnov on scores after {SHORT} steps: "
        f"p = {min(1.0, 2 * min(worlds)):.2f}",
    }


def _beside_the_floor(
    row: dict[str, Any], features: np.ndarray, labels: np.ndarray, rate: float
) -> dict[str, Any]:
    """Return a row that holds the time of another one against the floor."""
    floor = min(_floor(features, labels, 2500, 500, rate) for _ in range(ROUNDS))
    return {
        "what": row["what"],
        "baseline": "the floor: drawing the noise and multiplying the matrices, nothing else",
        "seconds": row["seconds"],
        "baseline_seconds": floor,
        "ratio": floor / row["seconds"],
        "agreement": "trains nothing",
    }


def _floor(features: np.ndarray, labels: np.ndarray, runs: int, steps: int, rate: float) -> float:
    """Return the seconds that draws and products take which training cannot do without."""
    task = HeadTask.of(
        features[: OTHERS + 1],
        labels[: OTHERS + 1],
        None,
        clip=2.0,
        logits=1,
        turn=True,
        device=torch.device("cpu"),
    )
    size, inside = task.records.shape
    batch = np.linspace(0, size - 1, round(rate * size)).astype(int)
    forward, backward = _laid_out(
        replace(task, records=task.records[batch], reach=task.reach[batch])
    )
    start = time.process_time()
    for first in range(0, runs, task.at_once()):
        models = range(first, min(first + task.at_once(), runs))
        draws = Draws(0, models)
        weights = torch.zeros(len(models), inside)
        errors = torch.zeros(len(models), len(batch))
        for step in range(1, steps + 1):
            if rate < 1.0:
                draws.sampled(step, size, rate)
            for given, made, matrix in forward:
                errors[:, made] = _times(weights[:, given], matrix)
            for given, made, matrix in backward:
                weights[:, made] = _times(errors[:, given], matrix)
            draws.add_noise(weights, step, 1e-3)
    return time.process_time() - start


def _opacus(
    run: CanaryRun,
    *,
    x: np.ndarray,
    y: np.ndarray,
    steps: int,
    sampling_rate: float,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    optimizer: str,
    logits: int = 1,
    network: Any = None,
    initial: np.ndarray | None = None,
) -> nn.Module:
    """Train one model as everybody would."""
    from opacus import PrivacyEngine

    model = nn.Linear(x.shape[1], logits, bias=False) if network is None else network()
    start = torch.zeros(x.shape[1] * logits) if initial is None else torch.from_numpy(initial)
    nn.utils.vector_to_parameters(start.clone(), model.parameters())
    descent = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    records = run.dataset(TensorDataset(torch.from_numpy(x).float(), torch.from_numpy(y)))
    expected = sampling_rate * len(records)
    loader = DataLoader(records, batch_size=math.ceil(expected))
    rate = learning_rate if optimizer == "adam" else learning_rate * int(expected) / expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "secure RNG turned off", and hooks without an input
        model, descent, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=descent(model.parameters(), lr=rate),
            data_loader=loader,
            noise_multiplier=noise_multiplier,
            max_grad_norm=clip,
        )
        run.attach(model, descent, loader)
        done = 0
        while done < steps:
            for inputs, labels in loader:
                descent.zero_grad()
                said = model(inputs)
                if said.shape[-1] == 1:
                    loss = F.binary_cross_entropy_with_logits(said[:, 0], labels.float())
                else:
                    loss = F.cross_entropy(said, labels)
                loss.backward()
                descent.step()
                done += 1
                if done == steps:
                    break
    return model


if __name__ == "__main__":
    for row in measure():
        print(row)
