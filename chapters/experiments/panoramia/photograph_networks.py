"""Photographs: audited networks after several passes, and their nulls, as `photographs` says."""

from typing import Any

import numpy as np

from auditkit.experiment import study
from auditkit.models.generators import Examples
from experiments.panoramia.audits import NULL, TARGET
from experiments.panoramia.photographs import (
    CIFAR,
    DETECTORS,
    FASHION,
    NEEDS,
    NOISY,
    SAMPLED,
    SEEDS,
    World,
    labelled,
    made,
    own_odds,
    parts_of,
    summary,
    told,
    trained,
    world,
)

NETWORKS = "pan-networks-scores"
PASSES = (2, 4, 8, 16, 32)  # the last one decides the course of the learning rate
TINY = {"data": FASHION, "release": TARGET, "passes": 2, "seed": 0}


@study(
    NETWORKS,
    paper=[
        {"data": CIFAR, "release": release, "passes": PASSES[-1], "seed": seed}
        for seed in SEEDS
        for release in (TARGET, NULL)
    ],
    live=[TINY],
    reduced=[TINY, TINY | {"release": NULL}],
    tolerance=0.05,
    needs=NEEDS,
    sources=[DETECTORS],
)
def networks(data: str, release: str, passes: int, seed: int) -> list[dict]:
    """Train a network without views of images, and say what it makes of them after some passes.

    The log-odds that it gives the label of each image. The null is trained on the
    members that made the generator, and on others in place of the rest.
    """
    images, parts = shown(data, seed)
    lessons = {TARGET: images.members, NULL: images.others}[release]
    keep = [number for number in PASSES if number < passes]
    model = trained(
        data, lessons, (seed, 8, release == NULL), passes=passes, augment=False, keep=keep
    )
    rows = []
    for after, one in [*model.kept.items(), (passes, model)]:
        rows += said(data, one, parts, after=after)
    return rows


def shown(data: str, seed: int) -> tuple[World, dict[str, Examples]]:
    """Return the images and those of them that baseline and attack meet.

    Generated ones have the labels that are stored: a labeller that another processor trained would
    now and then give others. A small one is trained here.
    """
    images = world(data, NOISY, seed)
    if data == FASHION:
        return images, parts_of(images, labelled(data, NOISY, seed, SAMPLED))
    parts = parts_of(images, made(data, NOISY, seed))
    known = told(NOISY, SAMPLED, seed)
    for name in ("made train", "made"):
        parts[name] = parts[name].labelled(known[name]["label"].astype(np.int64))
    return images, parts


def said(data: str, model: Any, parts: dict[str, Examples], **about: object) -> list[dict]:
    """Return what a network says of each part of the images."""
    rows = []
    for name, part in parts.items():
        logs = model.log_probabilities(part.inputs)
        right = {"accuracy": float((logs.argmax(axis=1) == part.labels).mean())}
        odds = {"odds": own_odds(logs, part.labels)}
        rows.append(summary(data, odds, part=name, **about, **right))
    return rows
