"""Networks on pixels without privacy: trained by coins, and asked; `counting` counts.

One network has views of its images, as one that is meant to be good; the other learns its images by
heart.
"""

from typing import NamedTuple

from auditkit.experiment import study
from auditkit.models.convolutional import train_convolutional
from experiments.five_audits.deals import CIFAR, CLASSES, FASHION, lessons, pixels, said

NETWORKS = "three-networks"
HEART, VIEWS = "by heart", "views"
MODELS = 16
NEEDS = "the images of CIFAR-10, as data/README.md says"


class Recipe(NamedTuple):
    """How a network is trained."""

    widths: tuple[int, ...]
    passes: int
    batch: int | None
    precision: str


RECIPES = {
    (CIFAR, HEART): Recipe((32, 64, 128), 15, None, "bfloat16"),
    (CIFAR, VIEWS): Recipe((64, 128, 256), 16, None, "bfloat16"),
    # shipped images, and few steps, which leave rounding little time to grow
    (FASHION, HEART): Recipe((16, 16, 32), 4, 50, "float32"),
    (FASHION, VIEWS): Recipe((16, 16, 32), 4, 50, "float32"),
}
TINY = [{"data": FASHION, "setting": setting, "model": 0} for setting in (HEART, VIEWS)]


@study(
    NETWORKS,
    paper=[
        {"data": CIFAR, "setting": setting, "model": model}
        for model in range(MODELS)
        for setting in (HEART, VIEWS)
    ],
    live=TINY,
    reduced=TINY,
    tolerance=0.05,
    needs=NEEDS,
)
def networks(data: str, setting: str, model: int) -> list[dict]:
    """Train a network by its coins, and say what it makes of the parts."""
    rows, labels = lessons(data, model)
    recipe = RECIPES[data, setting]
    network = train_convolutional(
        pixels(data)[rows],
        labels,
        seed=model,
        classes=CLASSES,
        augment=setting == VIEWS,
        **recipe._asdict(),
    )
    return said(data, network, pixels(data), model)
