"""Photographs: the audits. Nothing is trained here but trees on a few stored columns.

An image is known by its place among all parts; what classifiers see of it is stored: its label, the
detectors' verdict, and the log-odds that helpers and audited networks give the label. As in the
paper, an image classifier and a loss are stacked.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from auditkit import panoramia
from auditkit.attacks.generated import Loss, Mixture
from auditkit.experiment import stored, study
from experiments.panoramia.audits import NULL, TARGET, all_rows, curves, game_rows
from experiments.panoramia.packed import unpack
from experiments.panoramia.photograph_networks import NETWORKS, PASSES
from experiments.panoramia.photograph_private import EPSILONS, PRIVATE
from experiments.panoramia.photograph_private import SEEDS as PRIVATE_SEEDS
from experiments.panoramia.photograph_widths import FIRST, WIDE
from experiments.panoramia.photographs import (
    CLASSES,
    DETECTORS,
    MOST_LIKELY,
    NOISY,
    PREPARATIONS,
    SAMPLED,
    SEEDS,
    told,
)
from experiments.panoramia.stacks import GENERATED, PARTS, UNSEEN, Columns, loss, mixture

PAIRS = (500, 1_000, 2_000, 5_000, 10_000)
SETTINGS = [*((one, SAMPLED) for one in PREPARATIONS), (NOISY, MOST_LIKELY)]


@cache
def detected(preparation: str, labels: str, seed: int) -> dict[str, Columns]:
    """Return columns by their names."""
    rows = told(preparation, labels, seed)
    names = ("label", "detector", "generated", "real")
    return {name: {part: rows[part][name] for part in PARTS} for name in names}


def labels_of(known: dict[str, Columns]) -> Columns:
    """Return labels as classifiers see them: a column a class."""
    return {part: codes[:, None] == np.arange(CLASSES) for part, codes in known["label"].items()}


def losses_of(odds: Columns) -> Loss:
    """Return minus the log-odds of labels, which have the order of losses."""
    return loss({part: -column for part, column in odds.items()})


def mixtures(seed: int) -> tuple[Mixture, Mixture, Loss]:
    """Return members with generated images, members with unseen ones, and the helper's loss."""
    known = detected(NOISY, SAMPLED, seed)
    labels = labels_of(known)
    generated = mixture(GENERATED, labels, known["detector"])
    return generated, mixture(UNSEEN, labels), losses_of(known["generated"])


def networks(id_: str, **which: object) -> tuple[dict[str, Loss], dict[str, object]]:
    """Return the losses of an audited network and of its null, and what else is said of it."""
    rows = stored(id_)
    for name, value in which.items():
        rows = rows[rows[name] == value]
    losses, about = {}, {}
    for release in (TARGET, NULL):
        own = rows[rows["release"] == release].set_index("part")
        if sorted(own.index) != sorted(PARTS):
            raise ValueError(f"{id_} has no network of {which}")
        losses[release] = losses_of({name: unpack(own.loc[name, "odds"]) for name in PARTS})
        if release == TARGET:
            about = {
                "member_accuracy": float(own.loc["real", "accuracy"]),
                "unseen_accuracy": float(own.loc["unseen", "accuracy"]),
            }
    return losses, about


def audited(seed: int, flips: int, pairs: tuple[int, ...], id_: str, **which: object) -> list[dict]:
    """Audit a network and its null by generated and by unseen images."""
    generated, unseen, helper = mixtures(seed)
    losses, about = networks(id_, seed=seed, **which)
    options: dict[str, Any] = {"pairs": pairs, "flips": flips, "coins": seed}
    return all_rows(generated, unseen, helper, losses, **options, **about)


@study(
    "pan-detectors",
    paper=[
        {"preparation": preparation, "labels": labels, "seed": seed, "flips": 10}
        for seed in SEEDS
        for preparation, labels in SETTINGS
    ],
    tolerance=0.02,
    sources=[DETECTORS],
)
def detectors(preparation: str, labels: str, seed: int, flips: int) -> list[dict]:
    """Measure c_lb by what the baseline sees beside the label.

    ``none`` sees nothing else, ``detector`` what a convolutional network makes of the image, and
    the others what a helper makes of the label, too.
    """
    known, rows = detected(preparation, labels, seed), []
    for name, seen in {
        "none": (),
        "detector": ("detector",),
        "helper, real": ("detector", "real"),
        "helper, generated": ("detector", "generated"),
        "helpers, both": ("detector", "generated", "real"),
    }.items():
        mixed = mixture(GENERATED, labels_of(known), *(known[one] for one in seen))
        scores = mixed.scores()
        options = {"pairs": (len(scores),), "flips": flips, "coins": seed}
        rows += game_rows(scores, scores, baseline=name, **options)
    return rows


@study(
    "pan-networks",
    paper={"passes": list(PASSES), "seed": list(SEEDS), "flips": [10]},
    tolerance=0.02,
    sources=[DETECTORS, NETWORKS],
)
def overfitting(passes: int, seed: int, flips: int) -> list[dict]:
    """Audit a network and its null after so many passes, with several numbers of pairs."""
    return audited(seed, flips, PAIRS, NETWORKS, after=passes)


@study(
    "pan-networks-wide",
    paper={"width": list(FIRST), "seed": list(SEEDS), "flips": [10]},
    tolerance=0.02,
    sources=[DETECTORS, WIDE],
)
def widths(width: int, seed: int, flips: int) -> list[dict]:
    """Audit a network and its null whose first block has so many channels."""
    return audited(seed, flips, PAIRS[-1:], WIDE, width=width)


@study(
    "pan-private-networks",
    paper={"epsilon": list(EPSILONS), "seed": list(PRIVATE_SEEDS), "flips": [10]},
    tolerance=0.02,
    sources=[DETECTORS, PRIVATE],
)
def private_networks(epsilon: float, seed: int, flips: int) -> list[dict]:
    """Audit a network that is trained at an ε, and its null, with several numbers of pairs."""
    return audited(seed, flips, PAIRS, PRIVATE, epsilon=epsilon)


@study(
    "pan-networks-curves",
    paper={"passes": list(PASSES), "seed": list(SEEDS)},
    tolerance=0.02,
    sources=[DETECTORS, NETWORKS],
)
def recall_curves(passes: int, seed: int) -> list[dict]:
    """Return precision and bound along the recall, for baseline and both attacks; one toss."""
    generated, _, helper = mixtures(seed)
    losses, _ = networks(NETWORKS, seed=seed, after=passes)
    return curves(generated, helper, losses, coins=seed)


LEVELS = np.append(np.linspace(0.0, 0.98, 50), (0.99, 0.999, 1.0))
KINDS = {"members": "real", "unseen": "unseen", "generated": "made"}


@study(
    "pan-networks-losses",
    paper={"passes": list(PASSES), "seed": list(SEEDS)},
    tolerance=0.02,
    sources=[DETECTORS, NETWORKS],
)
def losses(passes: int, seed: int) -> list[dict]:
    """Return quantiles of the losses of members, unseen and generated images, by model."""
    rows = stored(NETWORKS)
    rows = rows[(rows["after"] == passes) & (rows["seed"] == seed)].set_index(["release", "part"])
    odds = {
        release: {part: unpack(rows.loc[(release, part), "odds"]) for part in KINDS.values()}
        for release in (TARGET, NULL)
    }
    odds["helper"] = detected(NOISY, SAMPLED, seed)["generated"]
    return [
        {"release": name, "kind": kind, "level": float(level), "loss": float(value)}
        for name, columns in odds.items()
        for kind, part in KINDS.items()
        for level, value in zip(
            LEVELS, np.quantile(np.logaddexp(0.0, -columns[part]), LEVELS), strict=True
        )
    ]


@study(
    "pan-slack",
    paper={
        "slack": [0.0, 1e-5, 1e-4, 1e-3, 1e-2],
        "delta": [0.0, 1e-5],
        "epsilon": [10.0, 15.0, math.inf],
        "seed": list(PRIVATE_SEEDS),
        "flips": [10],
    },
    tolerance=0.02,
    sources=[DETECTORS, PRIVATE, NETWORKS],
)
def slack(slack: float, delta: float, epsilon: float, seed: int, flips: int) -> list[dict]:
    """Measure networks with (c, γ)-closeness and (ε, δ)-DP, at all thresholds.

    Private ones; with ``epsilon`` infinite, the overfitted one after its last pass. Gradients that
    are only clipped leave next to nothing to find, and slack nothing to take away.
    """
    weak, attacks = private_scores(epsilon, seed)
    coins = np.random.default_rng(seed).random((flips, len(weak))) < 0.5
    rows = []
    for release, strong in attacks.items():
        for flip, real in enumerate(coins):
            shown = (weak.shown(real), strong.shown(real), real)
            game = panoramia(*shown, delta=delta, closeness_slack=slack)
            rows.append(
                {
                    "release": release,
                    "flip": flip,
                    "c_lower": game.c_lower,
                    "both_lower": game.c_plus_epsilon_lower,
                    "difference": game.details["difference"],
                    "baseline_discounted": game.details["baseline_discounted"],
                    "attack_discounted": game.details["attack_discounted"],
                }
            )
    return rows


@cache
def private_scores(epsilon: float, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return the scores of the baseline, and of the attacks on a network and its null."""
    generated, _, helper = mixtures(seed)
    if epsilon == math.inf:
        found, _ = networks(NETWORKS, seed=seed, after=PASSES[-1])
    else:
        found, _ = networks(PRIVATE, seed=seed, epsilon=epsilon)
    return generated.scores(helper), {
        name: generated.scores(helper, one) for name, one in found.items()
    }
