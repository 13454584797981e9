"""Linear heads on raw features of CIFAR-10: Figures 2, 4 and A1 to A4 of SUB.

A head of 1,280 weights is trained on 500 images, on what a frozen network says of them as it comes:
no mean is taken off, nothing is scaled. The paper's network has 768 features, and it says nothing
of their mean and length. So settings of our own have features scaled to other mean norms. Which two
classes the paper's one logit tells apart is not said; here they are animals and vehicles. Heads
start from weights of 0; the paper has them fixed and does not say where. They are looked at at 10
steps, in the paper at 20. A repeat has images of its own, hence its own target and canaries.

The network needs the extra `encoders`. Without it there are the 256 principal directions of its
features that ship, turned back into 1,280 numbers: for trials and pages.
"""

from functools import lru_cache

import numpy as np
import pandas as pd

from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.encoders import encode
from experiments.substitute.linear import CANARIES, Records, Training
from experiments.substitute.scores import RUNS, score_rows

SCORES = "sub-raw-scores"
RECORDS = 500
POOL, TESTED = 1_000, 500  # images that natural canaries come from, and for the accuracy
ANIMALS = (2, 3, 4, 5, 6, 7)
COMPLETE, SHIPPED = "complete", "shipped"

# Table A1
TRAINING = {
    "sampling_rate": 1.0,
    "epsilon": 10.0,
    "clip": 2.0,
    "steps": 500,
    "learning_rate": 0.001,
}
USUAL: dict = {**TRAINING, "norm": None}
RATES = (1.0, 0.25, 0.0625)
LOOKS, REPEATS = 10, 3
CHANGES = [
    # Figure 2, and A1, of which these are the accuracies
    *({"sampling_rate": q, "epsilon": e} for e in (10.0, 4.0) for q in RATES),
    # Figures A2, A3 and A4; the settings of Figure 2 belong to each
    *({"clip": clip} for clip in (1.0, 4.0, 8.0)),
    {"sampling_rate": 0.0625, "steps": 2_500},
    *({"learning_rate": rate} for rate in (0.0003, 0.003, 0.01)),
    # not in the paper: the scale of the features
    *({"norm": norm, "sampling_rate": q} for q in (1.0, 0.0625) for norm in (16.0, 64.0)),
    {"norm": 32.0},
    {"norm": 4.0},
]
PAPER = [
    {"canary": canary, **USUAL, **change, "repeat": repeat, "features": COMPLETE}
    | {"runs": RUNS, "looks": LOOKS}
    for change in CHANGES
    for repeat in range(REPEATS)
    for canary in CANARIES
]
SMALL = [
    {"canary": canary, **USUAL, "steps": 50, "learning_rate": 0.01, **change, "repeat": 0}
    | {"features": SHIPPED, "runs": 200, "looks": 2}
    for canary, change in (
        ("crafted gradient", {}),
        ("crafted input", {"sampling_rate": 0.25}),
        ("mislabelled", {"norm": 16.0, "sampling_rate": 0.0625}),
    )
]


def varied(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Return the rows of the usual setting, but for the columns that are named."""
    for name, value in USUAL.items():
        if name not in names:
            rows = rows[rows[name].isna() if value is None else rows[name] == value]
    return rows


@lru_cache(maxsize=4)
def images(features: str, norm: float | None, repeat: int) -> Records:
    """Deal 500 images.

    Parameters
    ----------
    features : {"complete", "shipped"}
        What the network says of the images, or what the shipped directions keep of it.
    norm : float or None
        What features are scaled to in the mean; None leaves them as they come.
    repeat : int
        Deals the images that are trained on; the others are the same in all repeats.
    """
    shipped = load("cifar10", part="features")
    left = np.arange(POOL, len(shipped["train_labels"]))
    dealt = np.random.default_rng(repeat).choice(left, RECORDS, replace=False)
    pool, tested = np.arange(POOL), np.arange(TESTED)
    own, others, unseen = (
        _seen(features, part, rows)
        for part, rows in (("train", dealt), ("train", pool), ("test", tested))
    )
    scale = 1.0 if norm is None else norm / np.linalg.norm(others, axis=1).mean()

    def kinds(part: str, rows: np.ndarray) -> np.ndarray:
        return np.isin(shipped[f"{part}_labels"][rows], ANIMALS).astype(np.int64)

    return Records(
        scale * own,
        kinds("train", dealt),
        scale * others,
        kinds("train", pool),
        scale * unseen,
        kinds("test", tested),
        logits=1,
    )


def _seen(features: str, part: str, rows: np.ndarray) -> np.ndarray:
    """Return what the network says of images, 1,280 numbers each."""
    if features == SHIPPED:
        shipped = load("cifar10", part="features")
        kept = shipped[f"{part}_features"][rows].astype(np.float64)
        return kept @ shipped["directions"] + shipped["mean"]
    pixels = load("cifar10")[f"{part}_images"][rows]
    return encode("efficientnet-lite0", pixels).astype(np.float64)


@study(
    SCORES,
    # scores are rounded, and a trial has few runs
    tolerance=0.02,
    paper=PAPER,
    live=SMALL,
    reduced=SMALL,
    needs="the images of CIFAR-10 and the extra `encoders`, as data/README.md says",
)
def raw_scores(
    canary: str,
    sampling_rate: float,
    epsilon: float,
    clip: float,
    steps: int,
    learning_rate: float,
    norm: float | None,
    repeat: int,
    features: str,
    runs: int,
    looks: int,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Train heads of one setting and one repeat; `scores.score_rows` says what the rows hold.

    Parameters
    ----------
    canary : str
        One of `linear.CANARIES`.
    sampling_rate, epsilon, clip, steps, learning_rate : float
        q, the ε_S for which the noise is chosen, C, T and η.
    norm, repeat, features
        As in `images`.
    runs, looks : int
        Models, half of them with z', and at how many steps they are looked at.
    """
    return score_rows(
        canary,
        images(features, norm, repeat),
        Training(sampling_rate, epsilon, clip, steps, learning_rate),
        runs=runs,
        looks=looks,
        rng=rng,
    )
