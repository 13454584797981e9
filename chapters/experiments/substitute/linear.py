"""A linear head in two worlds: its canaries, its models, and what an audit of them says.

What the heads on images and those on texts share. `Records` come from either; `craft` and `train`
are Algorithm 1 of SUB for scenarios S2 to S5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import ArrayLike

from auditkit import noise_multiplier_for
from auditkit.attacks.canaries import (
    Reference,
    adversarial_natural,
    clipped_gradients,
    crafted_gradient,
    crafted_input,
    mislabelled,
    train_reference,
    whitened_direction,
)
from auditkit.attacks.substitution import Canary, substitution_scores
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, Trained, audit_sgd
from experiments.substitute.worst_case import DELTA

CANARIES = (
    "crafted gradient",
    "crafted input",
    "crafted input as printed",
    "mislabelled",
    "adversarial natural",
)
OBJECTIVES = {"crafted input": "norm", "crafted input as printed": "printed"}


@dataclass(frozen=True, eq=False)
class Records:
    """Features of records as a head without a bias sees them.

    The target z is one of the records; the auditor takes natural canaries from the pool.
    """

    features: np.ndarray  # (n, d), of the dataset D
    labels: np.ndarray  # (n,)
    pool_features: np.ndarray
    pool_labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray
    logits: int  # 1, or one a class


@dataclass(frozen=True)
class Training:
    """DP-SGD with the noise that an ε under substitution asks for."""

    sampling_rate: float
    epsilon: float
    clip: float
    steps: int
    learning_rate: float

    @property
    def noise(self) -> float:
        """The noise multiplier σ."""
        return _noise(self.epsilon, self.sampling_rate, self.steps)


@lru_cache(maxsize=64)
def _noise(epsilon: float, sampling_rate: float, steps: int) -> float:
    return noise_multiplier_for(
        epsilon, sampling_rate=sampling_rate, steps=steps, delta=DELTA, adjacency="substitute"
    )


# --- the adversary as crafter --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Crafted:
    """A canary, the direction along which it shows best, and what it looks like beforehand.

    The gradients are those of a model that was trained with clipping, but without noise.
    """

    target: int  # which of the records is z
    canary: Canary
    direction: np.ndarray  # whitened, our addition to the paper
    norms: tuple[float, float]  # of the gradients of z and z', not clipped
    cosine: float  # between them


@lru_cache(maxsize=4)
def references(records: Records, training: Training) -> tuple[Reference, Reference]:
    """Return a model trained as it comes, and one with clipped gradients and sampled batches.

    The first takes all records in each step, so that z depends on nothing that is drawn.
    """
    head = torch.nn.Linear(records.features.shape[1], records.logits, bias=False)
    torch.nn.init.zeros_(head.weight)
    recipe = {"steps": training.steps, "learning_rate": training.learning_rate, "rng": 0}
    plain = train_reference(head, records.features, records.labels, **recipe)
    clipped = train_reference(
        head,
        records.features,
        records.labels,
        clip=training.clip,
        sampling_rate=training.sampling_rate,
        **recipe,
    )
    return plain, clipped


def craft(name: str, records: Records, training: Training, rng: np.random.Generator) -> Crafted:
    """Craft a canary by its name, one of `CANARIES`."""
    plain, clipped = references(records, training)
    z = plain.target
    x, y = records.features[z], int(records.labels[z])
    others = np.arange(len(records.labels)) != z
    if name == "crafted gradient":
        pair = crafted_gradient(clipped.movement, clip=training.clip)
        canary: Canary = GradientCanary(pair)
        whole = pair
    else:
        canary = record_canary(name, plain.model, x, y, records, rng)
        seen = canary.features, canary.labels
        pair = clipped_gradients(clipped.model, *seen, clip=training.clip)
        whole = clipped_gradients(clipped.model, *seen, clip=1e9)
    shared = clipped_gradients(
        clipped.model, records.features[others], records.labels[others], clip=training.clip
    )
    direction = whitened_direction(
        pair,
        shared,
        sampling_rate=training.sampling_rate,
        noise_multiplier=training.noise,
        clip=training.clip,
    )
    norms = np.linalg.norm(whole, axis=1)
    return Crafted(
        z, canary, direction, tuple(norms), float(whole[0] @ whole[1] / max(norms.prod(), 1e-30))
    )


def record_canary(
    name: str,
    model: torch.nn.Module,
    x: np.ndarray,
    y: int,
    records: Records,
    rng: np.random.Generator,
) -> InputCanary:
    """Craft a canary that is a record, on a model trained as it comes."""
    if name in OBJECTIVES:
        other = crafted_input(model, x, y, objective=OBJECTIVES[name], rng=rng)
        return InputCanary(np.stack([x, other]), [y, y])
    if name == "mislabelled":
        return InputCanary(np.stack([x, x]), [y, mislabelled(model, x, y)])
    if name != "adversarial natural":
        raise ValueError(f"name must be one of {CANARIES}, got {name!r}")
    pool, labels = records.pool_features, records.pool_labels
    at = adversarial_natural(model, x, y, pool_features=pool, pool_labels=labels)
    return InputCanary(np.stack([x, pool[at]]), [y, int(labels[at])])


def null_of(canary: Canary) -> Canary:
    """Return a canary whose two worlds are one: both hold z."""
    if isinstance(canary, GradientCanary):
        return GradientCanary(np.asarray(canary.gradients)[[0, 0]])
    return InputCanary(np.asarray(canary.features)[[0, 0]], np.asarray(canary.labels)[[0, 0]])


# --- the challenger as trainer, the adversary as distinguisher -----------------------------------


def train(
    records: Records,
    crafted: Crafted,
    training: Training,
    *,
    runs: int,
    snapshots: ArrayLike,
    seed: int,
    met: Canary | None = None,
) -> Trained:
    """Train in both worlds; keep the paper's score, the whitened one, and the accuracy.

    The models have ``met`` the canary, unless another is given.
    """
    others = np.arange(len(records.labels)) != crafted.target
    return audit_sgd(
        records.features[others],
        records.labels[others],
        crafted.canary if met is None else met,
        runs=runs,
        steps=training.steps,
        sampling_rate=training.sampling_rate,
        noise_multiplier=training.noise,
        clip=training.clip,
        learning_rate=training.learning_rate,
        logits=records.logits,
        snapshots=snapshots,
        seed=seed,
        keep=_kept(records, crafted),
    )


def _kept(records: Records, crafted: Crafted) -> Callable[[Trained], np.ndarray]:
    def keep(seen: Trained) -> np.ndarray:
        said = seen.logits(records.test_features)[:, 0]
        guesses = said > 0.0 if records.logits == 1 else said.argmax(axis=-1)
        return np.stack(
            [
                substitution_scores(seen, crafted.canary)[:, 0],
                seen.along(crafted.direction)[:, 0],
                np.mean(guesses == records.test_labels, axis=1),
            ],
            axis=1,
        )

    return keep
