"""Networks on pixels with DP-SGD, in which every coin of a gradient canary is tossed, too.

A gradient canary is a gradient of full length along one weight, in each batch that it is sampled
in. It stands for the worst record that the promise is about. Each has a weight of its own, out of
those that an auditor's training moves least, and a coin. Weights that no canary ever moves are the
null.

Nothing but the sum of clipped gradients depends on who is a member: it is divided by a number that
is the same for all models, the size of a batch that is expected before any coin is tossed.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from auditkit.accounting import noise_multiplier_for
from auditkit.experiment import study
from auditkit.models.networks import resnet8
from experiments.five_audits.deals import (
    CIFAR,
    CLASSES,
    FASHION,
    SEED,
    deal,
    labels_of,
    lessons,
    pixels,
    said,
)
from experiments.five_audits.networks import NEEDS
from experiments.zero_run.heads import pack

PRIVATE = {epsilon: f"three-private-{epsilon:g}" for epsilon in (2.0, 8.0)}
MODELS = 12
DELTA, CLIP = 1e-5, 1.0
AT_ONCE = 32  # gradients of examples side by side: about what stays in the cache


class Course(NamedTuple):
    """How long is trained, and on how many canaries."""

    sampling_rate: float
    steps: int
    rate: float
    canaries: int
    records: int  # that are expected, canaries among them


COURSES = {
    CIFAR: Course(0.1, 100, 2.0, canaries=5_000, records=13_000),
    FASHION: Course(0.1, 10, 1.0, canaries=200, records=700),
}


class Canaries(NamedTuple):
    """Weights that a canary's gradient lies along; the second half is the null, and never moved."""

    weights: np.ndarray  # places among all weights
    signs: np.ndarray
    members: np.ndarray  # bool, False in the second half


class Released(NamedTuple):
    """A private network, and what its canaries have left."""

    network: nn.Module
    last: np.ndarray  # by the first and the last weights
    every: np.ndarray  # by all steps

    def log_probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """Return the logarithms of the probabilities."""
        with torch.no_grad():
            found = [self.network(part) for part in torch.split(shown(inputs), 1_000)]
        return torch.log_softmax(torch.cat(found).double(), 1).numpy()


def shown(images: np.ndarray) -> Tensor:
    """Return images as the network sees them: channels first, around 0."""
    return torch.from_numpy(images.transpose(0, 3, 1, 2).astype(np.float32) / 128.0 - 1.0)


def clipped_sum(network: nn.Module, x: Tensor, y: Tensor, clip: float) -> Tensor:
    """Return the sum of the clipped gradients of examples, all weights in a row."""
    weights = {name: weight.detach() for name, weight in network.named_parameters()}

    def loss(own: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        logits = torch.func.functional_call(network, own, (image[None],))
        return F.cross_entropy(logits, label[None])

    by_example = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    total = torch.zeros(sum(weight.numel() for weight in weights.values()))
    for images, labels in zip(torch.split(x, AT_ONCE), torch.split(y, AT_ONCE), strict=True):
        found = by_example(weights, images, labels)
        rows = torch.cat([found[name].flatten(1) for name in weights], 1)
        total += (clip / rows.norm(dim=1)).clamp(max=1.0) @ rows
    return total


def start(channels: int) -> nn.Module:
    """Make the network that every training starts from: who audits knows it."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        return resnet8(CLASSES, channels=channels)


@cache
def quiet(data: str) -> np.ndarray:
    """Return the places of weights, those first that an auditor's training moves least."""
    course, rows = COURSES[data], deal(data).auditor
    x, y = shown(pixels(data)[rows]), torch.from_numpy(labels_of(data)[rows])
    network = start(x.shape[1])
    moved = torch.zeros(sum(weight.numel() for weight in network.parameters()))
    rng = np.random.default_rng((SEED, 4))
    for _ in range(course.steps // 5):
        batch = np.flatnonzero(rng.random(len(rows)) < course.sampling_rate)
        step = clipped_sum(network, x[batch], y[batch], CLIP) / len(batch)
        moved += step.abs()
        move(network, course.rate * step)
    return moved.argsort(stable=True).numpy()


@torch.no_grad()
def move(network: nn.Module, step: Tensor) -> None:
    """Take a step from all weights."""
    sizes = [weight.numel() for weight in network.parameters()]
    for weight, own in zip(network.parameters(), torch.split(step, sizes), strict=True):
        weight -= own.view_as(weight)


def coins(data: str, model: int) -> np.ndarray:
    """Toss the coins of canaries."""
    return np.random.default_rng((SEED, 5, model)).random(COURSES[data].canaries) < 0.5


def canaries(data: str, model: int) -> Canaries:
    """Return canaries, the same for all models but for their coins."""
    own, rng = coins(data, model), np.random.default_rng((SEED, 6))
    places = rng.permutation(quiet(data)[: 2 * len(own)])
    signs = rng.choice([-1.0, 1.0], len(places)).astype(np.float32)
    return Canaries(places, signs, np.append(own, np.zeros_like(own)))


def trained(
    x: Tensor, y: Tensor, planted: Canaries, course: Course, noise: float, model: int
) -> Released:
    """Train with DP-SGD, canaries among the records."""
    network, rng = start(x.shape[1]), np.random.default_rng((SEED, 7, model))
    sums, ratios = np.zeros((2, len(planted.weights)))
    for _ in range(course.steps):
        batch = np.flatnonzero(rng.random(len(x)) < course.sampling_rate)
        total = clipped_sum(network, x[batch], y[batch], CLIP)
        there = planted.members & (rng.random(len(planted.members)) < course.sampling_rate)
        total[planted.weights] += torch.from_numpy(CLIP * planted.signs * there)
        drawn = rng.standard_normal(len(total), dtype=np.float32)
        total += torch.from_numpy(np.float32(noise * CLIP) * drawn)
        seen = planted.signs * total[torch.from_numpy(planted.weights)].numpy() / CLIP
        sums += seen
        ratios += log_ratio(seen, course.sampling_rate, noise)
        move(network, course.rate / (course.sampling_rate * course.records) * total)
    return Released(network.eval().requires_grad_(False), sums, ratios)


def log_ratio(seen: np.ndarray, sampling_rate: float, noise: float) -> np.ndarray:
    """Return what a step says for a canary that is sampled, against one that is not there."""
    there = math.log(sampling_rate) + (seen - 0.5) / noise**2
    return np.logaddexp(math.log1p(-sampling_rate), there)


def private(data: str, epsilon: float, model: int) -> list[dict]:
    """Train a network at an ε by its coins, and say what it makes of the parts.

    Rows of part "canaries" hold evidence in place of log-odds; "null" that of untouched weights.
    """
    rows, labels = lessons(data, model)
    course = COURSES[data]
    released = trained(
        shown(pixels(data)[rows]),
        torch.from_numpy(labels),
        canaries(data, model),
        course,
        noise_for(data, epsilon),
        model,
    )
    found = said(data, released, pixels(data), model)
    halves = {"canaries": slice(0, course.canaries), "null": slice(course.canaries, None)}
    for name, half in halves.items():
        for access, evidence in (("last", released.last), ("every", released.every)):
            found.append(
                {
                    "part": f"{name}, {access}",
                    "accuracy": None,
                    "mean_odds": float(evidence[half].mean()),
                    "odds": pack(evidence[half]) if data == CIFAR else None,
                    "shown": None,
                }
            )
    return found


@cache
def noise_for(data: str, epsilon: float) -> float:
    """Return the noise multiplier of a training."""
    course = COURSES[data]
    return noise_multiplier_for(
        epsilon,
        sampling_rate=course.sampling_rate,
        steps=course.steps,
        delta=DELTA,
        adjacency="add/remove",
    )


def _studied(epsilon: float):
    """Return the study of an ε: two can run apart."""
    tiny = [{"data": FASHION, "epsilon": epsilon, "model": 0}]
    return study(
        PRIVATE[epsilon],
        paper=[{"data": CIFAR, "epsilon": epsilon, "model": model} for model in range(MODELS)],
        live=tiny,
        reduced=tiny,
        tolerance=0.05,
        needs=NEEDS,
    )(private)


strict, loose = (_studied(epsilon) for epsilon in PRIVATE)
