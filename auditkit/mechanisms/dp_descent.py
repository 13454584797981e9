"""DP-SGD for many models side by side: what each draws, and how all go downhill.

Each model has streams of its own. What it draws depends on the seed, its number and the shape of
the task, and on nothing else: not on its company, on where snapshots are taken or on how long it
trains.
"""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from auditkit._types import Ints
from auditkit.mechanisms.dp_draws import add_normal, fill_sampled
from auditkit.models.descent import Optimiser

Bytes: TypeAlias = NDArray[np.uint8]

WORK = 16_000_000  # bytes that a chunk of models works on

_INSIDE, _OUTSIDE = 0, 1  # streams of noise


@dataclass(frozen=True)
class Recipe:
    """How every model is trained."""

    steps: int
    sampling_rate: float
    noise: float  # standard deviation of the noise on the mean gradient, σC/|B|
    clip: float
    batch: float  # |B|, the expected size of a batch
    learning_rate: float
    optimizer: str


class Draws:
    """The randomness of a chunk of models: batches, noise, and noise that meets no record.

    Every number is a function of the seed, the model's number, the step and a place, so that models
    need no generators of their own and none of them waits for another.
    """

    def __init__(self, seed: int, models: range) -> None:
        self.models = models
        self._key = np.random.SeedSequence(seed).generate_state(2).astype(np.uint64)
        self._word = int(np.random.SeedSequence(seed).generate_state(3)[2])

    def add_noise(self, to: Tensor, step: int, deviation: float) -> None:
        """Add normal numbers to rows of shape (models, parameters), for a step."""
        self._add(to, step, _INSIDE, deviation)

    def add_outside(self, to: Tensor, step: int, deviation: float) -> None:
        """Add normal numbers to rows of shape (models, parameters), from another stream."""
        self._add(to, step, _OUTSIDE, deviation)

    def sampled(self, step: int, records: int, rate: float) -> Bytes:
        """Return 1 for each record in a step's batch, each with probability `rate`, else 0.

        The shape is (models, records). The rate is rounded to a multiple of 2⁻³².
        """
        result = np.empty((len(self.models), records), dtype=np.uint8)
        below = np.uint64(round(rate * 2.0**32))
        fill_sampled(result, self._key, self.models.start, step, below)
        return result

    def seeds(self) -> list[int]:
        """Return a seed for the first weights of each model."""
        # torch's generators take seeds of 32 bits. An odd multiple of the number keeps them apart,
        # where hashes would meet by chance once in some ten thousand models.
        return [(self._word + 2_654_435_761 * model) % 2**32 for model in self.models]

    def _add(self, to: Tensor, step: int, stream: int, deviation: float) -> None:
        here = to.device.type == "cpu"
        drawn = to if here else torch.zeros(to.shape)  # the same draws whatever the device
        add_normal(drawn.numpy(), self._key, self.models.start, step, stream, deviation)
        if not here:
            to.add_(drawn.to(to.device))


class Learners(Protocol):
    """Some models in training."""

    @property
    def weights(self) -> Tensor:
        """What is trained, of shape (models, trained), to be changed in place."""

    def clipped_mean(self, sampled: Bytes | None) -> Tensor:
        """Return sums of clipped gradients over |B|, (models, trained); the caller may change it.

        `sampled` has shape (models, n), the canary last. None says that every batch is all the
        records.
        """

    def whole(self, draws: Draws, step: int, deviation: float) -> Tensor:
        """Return all weights, (models, parameters), in the task's basis.

        `deviation` is that of the noise on a weight since the last call.
        """


class Task(Protocol):
    """What is trained on what."""

    @property
    def network(self) -> Callable[[], nn.Module] | int:
        """What makes the network, or how many logits the linear head has."""

    @property
    def basis(self) -> NDArray[np.float32] | None:
        """Rows in which weights are written, or None for the usual ones."""

    @property
    def gradients(self) -> Tensor | None:
        """Both rows of a gradient canary, (2, trained)."""

    @property
    def others(self) -> int:
        """Records beside the canary's."""

    @property
    def parameters(self) -> int:
        """Weights of a model."""

    def at_once(self, batch: float) -> int:
        """Return how many models to train side by side, with batches of this size on average."""

    def first(self, draws: Draws) -> Tensor:
        """Return the first weights that a model has by default, (1 or models, parameters)."""

    def begin(self, start: Tensor, bits: Ints, recipe: Recipe) -> Learners:
        """Return models that start from weights in the task's basis, (models, parameters)."""


def descend(
    task: Task,
    recipe: Recipe,
    draws: Draws,
    start: Tensor,
    bits: Ints,
    snapshots: Collection[int],
) -> Iterator[Tensor]:
    """Train models; yield the weights of all, (models, parameters), after each of the snapshots."""
    learners = task.begin(start, bits, recipe)
    weights, seen, planted = learners.weights, 0, None
    if task.gradients is not None:
        planted = task.gradients[torch.from_numpy(bits).to(weights.device)] / recipe.batch
    optimiser = Optimiser(
        (weights,), recipe.optimizer, recipe.learning_rate, momentum=0.0, decay=0.0
    )
    for step in range(1, recipe.steps + 1):
        sampled = None
        if recipe.sampling_rate < 1.0:
            sampled = draws.sampled(step, task.others + 1, recipe.sampling_rate)
        mean = learners.clipped_mean(sampled)
        draws.add_noise(mean, step, recipe.noise)
        if planted is not None:
            mean.add_(
                planted if sampled is None else planted * _column(sampled[:, -1]).to(mean.device)
            )
        optimiser.step((mean,))
        if step in snapshots:
            spread = recipe.learning_rate * recipe.noise * math.sqrt(step - seen)
            yield learners.whole(draws, step, spread)
            seen = step


def _column(chosen: Bytes) -> Tensor:
    return torch.from_numpy(chosen.astype(np.float32))[:, None]
