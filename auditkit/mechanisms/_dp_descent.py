"""DP-SGD for many models side by side: what each draws, and how all go downhill.

Each model has streams of its own. What it draws depends on the seed, its number and the shape of
the task, and on nothing else: not on its company, on where snapshots are taken or on how long it
trains.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from auditkit.models._descent import Optimiser

Bytes: TypeAlias = NDArray[np.uint8]
Coins: TypeAlias = NDArray[np.int64]

WORK = 16_000_000  # bytes that a chunk of models works on


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


def block_of(parameters: int) -> int:
    """Return for how many steps noise is drawn in one go."""
    return max(1, min(8, 4096 // parameters))


class Draws:
    """The randomness of a chunk of models: batches, noise, and noise that meets no record."""

    def __init__(self, seed: int, models: Sequence[int]) -> None:
        self.models = models
        # torch's generators take seeds of 32 bits. An odd multiple of the number keeps them apart,
        # where hashes would meet by chance once in some ten thousand models.
        words = [int(word) for word in np.random.SeedSequence(seed).generate_state(3)]
        self._coins = [np.random.default_rng([seed, model]) for model in models]
        self._inside, self._outside, self._first = (
            [
                torch.Generator().manual_seed((word + 2_654_435_761 * model) % 2**32)
                for model in models
            ]
            for word in words
        )

    def noise(self, block: int, parameters: int) -> Tensor:
        """Return standard normal numbers of shape (models, block, parameters)."""
        return _normal(self._inside, (block, parameters))

    def outside(self, shape: Sequence[int]) -> Tensor:
        """Return standard normal numbers of shape (models, *shape), from other streams."""
        return _normal(self._outside, shape)

    def sampled(self, block: int, records: int, rate: float) -> Bytes:
        """Return 1 for each record in a batch, each with probability `rate`, else 0.

        The shape is (models, block, records). A byte decides, and where it says neither yes nor no,
        once in 256, a float does. So no rate is rounded.
        """
        size = block * records
        words = [coin.bit_generator.random_raw(-(-size // 8)) for coin in self._coins]
        drawn = np.stack(words).view(np.uint8)[:, :size]
        sure, rest = divmod(256.0 * rate, 1.0)
        result = drawn < sure
        if rest:
            for coin, own, byte in zip(self._coins, result, drawn, strict=True):
                (undecided,) = np.nonzero(byte == sure)
                own[undecided] = coin.random(len(undecided)) < rest
        return np.ascontiguousarray(result).reshape(-1, block, records).view(np.uint8)

    def seeds(self) -> list[int]:
        """Return a seed for the first weights of each model."""
        return [generator.initial_seed() for generator in self._first]


def _normal(generators: Sequence[torch.Generator], shape: Sequence[int]) -> Tensor:
    result = torch.empty(len(generators), *shape)
    for own, generator in zip(result, generators, strict=True):
        own.normal_(generator=generator)
    return result


class Learners(Protocol):
    """Some models in training."""

    @property
    def weights(self) -> Tensor:
        """What is trained, of shape (models, trained), to be changed in place."""

    def clipped_mean(self, sampled: Bytes | None, step: int) -> Tensor:
        """Return sums of clipped gradients over |B|, (models, trained); the caller may change it.

        `sampled` has shape (models, block, n), the canary last, and `step` is a place in the block.
        None says that every batch is all the records.
        """

    def whole(self, draws: Draws, deviation: float) -> Tensor:
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

    def at_once(self) -> int:
        """Return how many models to train side by side."""

    def first(self, draws: Draws) -> Tensor:
        """Return the first weights that a model has by default, (1 or models, parameters)."""

    def begin(self, start: Tensor, bits: Coins, recipe: Recipe) -> Learners:
        """Return models that start from weights in the task's basis, (models, parameters)."""


def descend(
    task: Task,
    recipe: Recipe,
    draws: Draws,
    start: Tensor,
    bits: Coins,
    snapshots: Collection[int],
) -> Iterator[Tensor]:
    """Train models; yield the weights of all, (models, parameters), after each of the snapshots."""
    learners = task.begin(start, bits, recipe)
    weights, seen = learners.weights, 0
    planted = None if task.gradients is None else task.gradients[bits] / recipe.batch
    optimiser = Optimiser(
        (weights,), recipe.optimizer, recipe.learning_rate, momentum=0.0, decay=0.0
    )
    block = block_of(weights.shape[1])
    for first in range(0, recipe.steps, block):
        # whole blocks even at the end, so that a shorter training begins like a longer one
        noise = draws.noise(block, weights.shape[1]).mul_(recipe.noise)
        sampled = None
        if recipe.sampling_rate < 1.0:
            sampled = draws.sampled(block, task.others + 1, recipe.sampling_rate)
        if planted is not None:
            here = torch.ones(1, 1) if sampled is None else torch.from_numpy(sampled[:, :, -1])
            noise.addcmul_(here.float()[..., None], planted[:, None])
        for step in range(min(block, recipe.steps - first)):
            mean = learners.clipped_mean(sampled, step)
            optimiser.step((mean.add_(noise[:, step]),))
            now = first + step + 1
            if now in snapshots:
                spread = recipe.learning_rate * recipe.noise * math.sqrt(now - seen)
                yield learners.whole(draws, spread)
                seen = now
