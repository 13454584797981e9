"""What a bad reference model does to the audit: too few images, or too many passes over them.

The target is that of `images`. One of ε = 0 never saw the audited labels, and one of ε = 1 has a
known ceiling, so that what lies above either is the reference model's doing alone.
"""

import math
from functools import cache

import numpy as np

from auditkit.experiment import study
from experiments.observational.audits import audit_rows
from experiments.observational.images import (
    PASSES,
    REFERENCE,
    TARGET,
    Half,
    fit,
    lp_1st,
    split,
)

STOPPED = {
    1000: 20,
    5000: 6,
    25_000: 3,
}  # passes after which the log-loss on unseen images is least
OVERFITTED = 6  # times as many


@study(
    "obs-reference",
    paper=[
        {"epsilon": epsilon, "learnt_from": learnt_from, "training": training, "seed": seed}
        | {"size": 25_000, "games": 100}
        for seed in range(5)
        for epsilon in (math.inf, 1.0, 0.0)
        for learnt_from in STOPPED
        for training in ("stopped", "overfitted")
    ],
    live=[
        {"epsilon": 0.0, "learnt_from": 1000, "training": training, "seed": 0}
        | {"size": 8000, "games": 20}
        for training in ("stopped", "overfitted")
    ],
    # eight steps a pass leave rounding little time to grow
    reduced=[
        {"epsilon": epsilon, "learnt_from": 1000, "training": training, "seed": 0}
        | {"size": 1000, "games": 5}
        for epsilon, training in ((math.inf, "stopped"), (0.0, "overfitted"))
    ],
    tolerance=0.1,  # whole cells differ by up to 0.07 on another processor
)
def with_worse_reference(
    epsilon: float,
    learnt_from: int,
    training: str,
    seed: int,
    size: int,
    games: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit a target against a reference model of the first few of the auditor's images.

    ``training`` is "stopped" in time or "overfitted". ``accuracy`` and ``log_loss`` are those of
    the reference model on unseen images.
    """
    images = split(size)
    said, unseen = target(epsilon, seed, size)
    played = len(images.unseen.labels)
    features, labels = images.audited.features[:played], images.audited.labels[:played]
    few = Half(images.own.features[:learnt_from], images.own.labels[:learnt_from])
    longer = OVERFITTED if training == "overfitted" else 1
    reference = fit(few, seed, REFERENCE, passes=STOPPED[learnt_from] * longer)
    predicted = reference.probabilities(images.unseen.features)[0]
    rows = audit_rows(
        labels,
        said[:played],
        reference.probabilities(features)[0],
        held_out=(images.unseen.labels, unseen, predicted),
        repetitions=games,
        rng=rng,
        which=training,
    )
    losses = reference.losses(images.unseen.features, images.unseen.labels)[0]
    accuracy = (predicted.argmax(axis=1) == images.unseen.labels).mean()
    found = {"accuracy": float(accuracy), "log_loss": float(losses.mean())}
    return [{**row, **found} for row in rows]


@cache
def target(epsilon: float, seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what the target says of the audited and of the unseen images, one for all cells."""
    images = split(size)
    if epsilon == 0.0:
        trained = fit(images.own, seed, TARGET, passes=PASSES)
    else:
        trained = lp_1st(images, epsilon, seed, np.random.default_rng(seed))
    audited, unseen = images.audited.features, images.unseen.features
    return trained.probabilities(audited)[0], trained.probabilities(unseen)[0]
