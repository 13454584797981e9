"""Half precision or single: does an audit find the same?

Networks train on the pixels of CIFAR-10 in half to two thirds of the time where convolutions are
computed in bfloat16, whose numbers have eight bits. Rounding might make a network forget what is
particular to an example, or blur the losses by which members are found.

It does neither. Over five pairs of networks that know their examples by heart, areas differ by
-0.002 ± 0.004 and bounds on ε by -0.03 ± 0.11 (95% intervals of the mean), where over seeds they
spread by 0.006 and 0.09. The two networks of a pair are not the same: their losses correlate at
0.88 by ranks.

One study trains and stores what networks say of examples; another one counts from what is stored.
So a better bound never trains again.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from auditkit.bounds.scores import audit_scores
from auditkit.datasets import load
from auditkit.evidence import Scores
from auditkit.experiment import stored, study
from auditkit.models.convolutional import train_convolutional
from auditkit.thresholds import Fixed

BFLOAT16, FLOAT32 = "bfloat16", "float32"
HEART, VIEWS, TINY, TINY_VIEWS = "by heart", "views", "tiny", "tiny views"
GUESSED = Fixed(guesses=0.1)  # the tenth of the examples with the most extreme scores
DELTA = 1e-5
FALSE_ALARMS = 0.01


class Setting(NamedTuple):
    """What is trained on what."""

    data: str
    examples: int  # each a member by a fair coin
    scored: int
    widths: tuple[int, ...]
    passes: int
    augment: bool


SETTINGS = {
    HEART: Setting("cifar10", 10_000, 10_000, (32, 64, 128), 15, augment=False),
    VIEWS: Setting("cifar10", 50_000, 5_000, (64, 128, 256), 16, augment=True),
    # shipped images, and few steps, which leave rounding little time to grow
    TINY: Setting("fashion-mnist", 1_000, 500, (16, 16, 32), 4, augment=False),
    TINY_VIEWS: Setting("fashion-mnist", 1_000, 500, (16, 16, 32), 5, augment=True),
}
PAPER = [
    {"setting": setting, "precision": precision, "seed": seed}
    for setting, seeds in ((HEART, 5), (VIEWS, 2))
    for seed in range(seeds)
    for precision in (BFLOAT16, FLOAT32)
]
SMALL = [{"setting": one, "precision": FLOAT32, "seed": 0} for one in (TINY, TINY_VIEWS)]


@study(
    "precision-scores",
    paper=PAPER,
    live=SMALL,
    reduced=SMALL,
    tolerance=0.05,
    needs="the images of CIFAR-10, as data/README.md says",
)
def scores(setting: str, precision: str, seed: int) -> list[dict]:
    """Train a network, and say what it makes of each example.

    ``loss`` is the cross-entropy, and ``margin`` by how much the logit of the label exceeds the
    largest other. Networks of one `seed` have the same members and the same chances.
    """
    chosen = SETTINGS[setting]
    images, labels = pixels(chosen.data)
    rng = np.random.default_rng((seed, 1))  # not the stream of the training
    rows = rng.permutation(len(labels))[: chosen.examples]
    members = rng.random(chosen.examples) < 0.5
    model = train_convolutional(
        images[rows[members]],
        labels[rows[members]],
        seed=seed,
        classes=10,
        widths=chosen.widths,
        passes=chosen.passes,
        augment=chosen.augment,
        precision=precision,
    )
    asked = rows[: chosen.scored]
    said = model.log_probabilities(images[asked])
    own = np.eye(10, dtype=bool)[labels[asked]]
    margins = said[own] - np.where(own, -np.inf, said).max(axis=1)
    return [
        {"member": int(member), "loss": digits(-log, 5), "margin": digits(margin, 3)}
        for member, log, margin in zip(members, said[own], margins, strict=False)
    ]


@study(
    "precision-verdict",
    paper=PAPER,
    live=PAPER[:2],
    tolerance=1e-9,
    sources=["precision-scores"],
)
def verdict(setting: str, precision: str, seed: int) -> dict:
    """Count what the losses of a network tell about membership.

    ``advantage`` is the largest difference of the shares of members and of others above a
    threshold, and ``found`` the share of members above the one that 1% of the others exceed.
    """
    told = stored("precision-scores")
    same = (told["setting"] == setting) & (told["precision"] == precision) & (told["seed"] == seed)
    rows = told[same]
    members, score = rows["member"].to_numpy() == 1, -rows["loss"].to_numpy()
    right = rows["margin"].to_numpy() > 0.0
    cuts = np.sort(score)
    above = [
        1.0 - np.searchsorted(np.sort(score[who]), cuts) / who.sum() for who in (members, ~members)
    ]
    bound = audit_scores(score, members, method="one-run", threshold=GUESSED, delta=DELTA)
    return {
        "members": int(members.sum()),
        "accuracy_members": float(right[members].mean()),
        "accuracy": float(right[~members].mean()),
        "auc": Scores(score, members).area(),
        "advantage": float((above[0] - above[1]).max()),
        "found": float((score[members] > np.quantile(score[~members], 1.0 - FALSE_ALARMS)).mean()),
        "correct": bound.details["correct"],
        "guesses": bound.details["guesses"],
        "epsilon": bound.epsilon,
    }


@cache
def pixels(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images and labels."""
    loaded = load(data)
    return loaded["train_images"], loaded["train_labels"]


def digits(value: float, number: int) -> float:
    """Return a number with so many digits, for a shorter file."""
    return float(f"{value:.{number}g}")
