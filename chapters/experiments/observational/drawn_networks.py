"""Targets of `networks` whose labels are drawn from the reference model before they are trained."""

import math

import numpy as np

from auditkit.experiment import study
from experiments.observational.networks import (
    FULL,
    NEEDS,
    REFERENCES,
    SEEDS,
    SETTINGS,
    TINY,
    draw,
    law,
    private,
    said,
    split,
)

DRAWN = "obs-networks-drawn"


@study(
    DRAWN,
    paper=[
        FULL | {"mechanism": mechanism, "epsilon": epsilon, "seed": seed}
        for seed in SEEDS
        for mechanism, epsilon in SETTINGS
    ],
    live=[TINY | {"mechanism": "LP-1ST", "epsilon": math.inf, "seed": 0}],
    reduced=[TINY | {"mechanism": "LP-1ST", "epsilon": math.inf, "seed": 0}],
    tolerance=0.1,
    needs=NEEDS,
    sources=[REFERENCES],
)
def drawn_networks(
    data: str,
    size: int,
    passes: int,
    precision: str,
    mechanism: str,
    epsilon: float,
    seed: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train a target with a mechanism that protects drawn labels.

    ``accuracy`` and ``log_loss`` are those of the true labels, which nobody has used.
    """
    images = split(data, size)
    labels = draw(law(data, size, passes, precision, seed), seed, "audited")
    recipe = {"data": data, "passes": passes, "precision": precision}
    half = images.audited._replace(labels=labels)
    return said(private(half, mechanism, epsilon, seed, rng, **recipe), images, network="target")
