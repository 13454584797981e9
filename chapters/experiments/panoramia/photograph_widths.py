"""Photographs: audited networks of three widths, and their nulls, as `photographs` says."""

from auditkit.experiment import study
from experiments.panoramia.audits import NULL, TARGET
from experiments.panoramia.photograph_networks import said, shown
from experiments.panoramia.photographs import CIFAR, DETECTORS, FASHION, NEEDS, SEEDS, trained

WIDE = "pan-networks-wide-scores"
FIRST = (16, 32, 64)  # channels of the first block; each further one has twice as many
PASSES = 16
TINY = {"data": FASHION, "width": 16, "release": TARGET, "passes": 2, "seed": 0}


@study(
    WIDE,
    paper=[
        {"data": CIFAR, "width": width, "release": release, "passes": PASSES, "seed": seed}
        for seed in SEEDS
        for width in FIRST
        for release in (TARGET, NULL)
    ],
    live=[TINY],
    reduced=[TINY],
    tolerance=0.05,
    needs=NEEDS,
    sources=[DETECTORS],
)
def wide_networks(data: str, width: int, release: str, passes: int, seed: int) -> list[dict]:
    """Train a network of a width, and say what it makes of images; columns as in `networks`."""
    images, parts = shown(data, seed)
    lessons = {TARGET: images.members, NULL: images.others}[release]
    widths = (width, 2 * width, 4 * width)
    model = trained(
        data,
        lessons,
        (seed, 9, width, release == NULL),
        passes=passes,
        augment=False,
        widths=widths,
    )
    weights = sum(weight.numel() for weight in model.module.parameters())
    return said(data, model, parts, weights=weights)
