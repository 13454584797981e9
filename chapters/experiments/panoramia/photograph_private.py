"""Photographs: private networks at six of the paper's eight ε, and nulls, as `photographs` says."""

import math
from functools import partial

import numpy as np

from auditkit.experiment import study
from auditkit.mechanisms.private_training import PrivateNetwork, fit_private
from auditkit.models.generators import Examples
from auditkit.models.networks import resnet8
from experiments.panoramia.audits import NULL, TARGET
from experiments.panoramia.photograph_networks import said, shown
from experiments.panoramia.photographs import CIFAR, CLASSES, DETECTORS, FASHION, NEEDS

PRIVATE = "pan-private-scores"
EPSILONS = (1.0, 2.0, 6.0, 10.0, 15.0, math.inf)
SEEDS = range(3)
PASSES, BATCH = 8, 1024
CLIP, RATE, AVERAGING = 1.0, 2.0, 0.95
TINY = {"data": FASHION, "epsilon": 10.0, "release": TARGET, "passes": 1, "seed": 0}


class Seen:
    """A private network that takes images as they are stored."""

    def __init__(self, network: PrivateNetwork) -> None:
        self.network = network

    def log_probabilities(self, images: np.ndarray) -> np.ndarray:
        """Return the logarithms of the probabilities of images."""
        return self.network.log_probabilities(channels_first(images))


def channels_first(images: np.ndarray) -> np.ndarray:
    """Return images as the network sees them, around 0."""
    return images.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(128.0) - np.float32(1.0)


@study(
    PRIVATE,
    paper=[
        {"data": CIFAR, "epsilon": epsilon, "release": release, "passes": PASSES, "seed": seed}
        for seed in SEEDS
        for epsilon in EPSILONS
        for release in (TARGET, NULL)
    ],
    live=[TINY],
    reduced=[TINY],
    tolerance=0.05,
    needs=NEEDS,
    sources=[DETECTORS],
)
def private_networks(data: str, epsilon: float, release: str, passes: int, seed: int) -> list[dict]:
    """Train a network privately, and say what it makes of images; columns as in `networks`.

    With ``epsilon`` infinite gradients are clipped and there is no noise.
    """
    images, parts = shown(data, seed)
    lessons = {TARGET: images.members, NULL: images.others}[release]
    return said(data, Seen(private(lessons, epsilon, passes, seed, release)), parts)


def private(
    lessons: Examples, epsilon: float, passes: int, seed: int, release: str
) -> PrivateNetwork:
    """Train a residual network of eight layers, (ε, 1e-5)-DP."""
    share = min(1.0, BATCH / len(lessons))
    return fit_private(
        partial(resnet8, CLASSES, channels=lessons.inputs.shape[-1]),
        channels_first(lessons.inputs),
        lessons.labels,
        epsilon=epsilon,
        steps=round(passes / share),
        sampling_rate=share,
        clip=CLIP,
        learning_rate=RATE,
        averaging=AVERAGING,
        seed=10 * seed + (release == NULL),
    )
