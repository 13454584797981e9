"""Games on real data: who is a member, and what an attack sees, whatever is trained or counted.

The paper has iWildCam. Here are images of CIFAR-10, of which the auditor decides who is a member
and how likely, so that the true propensity is known: by the class, as in two sources with another
mix of classes, or by how hard an image is for another network, which confounds the very thing that
the attack looks at. And two tables where time has done it and nobody knows the propensity: the
census of 1994 and 1995, and patients of a first and a third year.

A game follows from its seed, so that studies which train and studies which count play the same one.
No record has two parts in it: those audited, those that the placebo's network learns from, and
those that propensities are fitted on.
"""

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from auditkit.datasets import load
from auditkit.models.networks import mlp
from auditkit.models.training import fit_many
from experiments.zero_run.audits import EXAMPLES

MIX, HARD = "CIFAR-10, class mix", "CIFAR-10, hard images"
CENSUS, PATIENTS = "census 1994, 1995", "patients, year 1, 3"
TINY = "Fashion-MNIST, class mix"  # a small game of shipped images, for tests and pages
IID, OOD = "IID", "OOD"
CLASS_ODDS = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5, -1.5, 1.0, -1.0])
HARDNESS = -1.0  # log-odds for a standard deviation of hardness
DIRECTIONS = 50
JUDGING = np.arange(40_000, 50_000)  # images that the judge of hardness learns from
# records audited, records of the placebo, and records to fit on: all that are left, 40,000 at most
SIZES = {
    MIX: (EXAMPLES, EXAMPLES, 40_000),
    HARD: (EXAMPLES, EXAMPLES, 30_000),
    CENSUS: (EXAMPLES, EXAMPLES, 40_000),
    PATIENTS: (EXAMPLES, EXAMPLES, 10_000),
    TINY: (1_000, 1_000, 2_000),
}


class Pool(NamedTuple):
    """Records, whatever an attack sees of them, and the log-odds that they are members."""

    inputs: np.ndarray
    labels: np.ndarray
    seen: np.ndarray
    odds: np.ndarray | None


class Game(NamedTuple):
    """Rows of the pool and who of them is a member: audited, of the placebo, and to fit on."""

    audited: tuple[np.ndarray, np.ndarray]
    placebo: tuple[np.ndarray, np.ndarray]
    fitting: tuple[np.ndarray, np.ndarray]


@lru_cache(2)
def play(data: str, split: str, seed: int) -> tuple[Pool, Game]:
    """Return the records and the game of a seed.

    "OOD" has members and others of different laws; in "IID" both are drawn alike.
    """
    return DATA[data](split, np.random.default_rng((seed, 27)))


# images


@cache
def features() -> tuple[np.ndarray, np.ndarray]:
    """Return what a frozen network sees in all images of CIFAR-10, and their labels."""
    data = load("cifar10", part="features")
    inputs = np.concatenate((data["train_features"], data["test_features"])).astype(np.float32)
    return inputs, np.concatenate((data["train_labels"], data["test_labels"]))


@cache
def hardness() -> np.ndarray:
    """Return how hard images are for a network that is in no game, as normal scores."""
    inputs, labels = features()
    judge = fit_many(
        partial(mlp, inputs.shape[1], 10, hidden=(256,)),
        inputs[JUDGING],
        labels[JUDGING],
        seeds=[0],
        epochs=3,
        batch_size=64,
        learning_rate=1e-3,
        optimizer="adam",
    )
    losses = judge.losses(inputs, labels)[0]
    normal: np.ndarray = ndtri(rankdata(losses) / (len(losses) + 1.0))
    return normal


def pixels(data: str) -> np.ndarray:
    """Return the images of a pool as they are, in the order of its rows."""
    loaded = load("fashion-mnist" if data == TINY else "cifar10")
    return np.concatenate((loaded["train_images"], loaded["test_images"]))


def of_images(kind: str, split: str, rng: np.random.Generator) -> tuple[Pool, Game]:
    """Draw games of images of CIFAR-10, the members by a coin with the propensity of each."""
    inputs, labels = features()
    if kind == MIX:
        odds, free = CLASS_ODDS[labels], np.arange(len(labels))
    else:
        odds = HARDNESS * np.clip(hardness(), -2.5, 2.5)
        free = np.delete(np.arange(len(labels)), JUDGING)
    return tossed(inputs, labels, odds, free, SIZES[kind], split, rng)


def of_small_images(split: str, rng: np.random.Generator) -> tuple[Pool, Game]:
    """Draw a small game of shipped images, whose features are their pixels."""
    data = load("fashion-mnist")
    labels = np.concatenate((data["train_labels"], data["test_labels"]))
    inputs = pixels(TINY).reshape(len(labels), -1).astype(np.float32) / 255.0
    free = np.arange(len(labels))
    return tossed(inputs, labels, CLASS_ODDS[labels], free, SIZES[TINY], split, rng)


def tossed(
    inputs: np.ndarray,
    labels: np.ndarray,
    odds: np.ndarray,
    free: np.ndarray,
    sizes: Sequence[int],
    split: str,
    rng: np.random.Generator,
) -> tuple[Pool, Game]:
    """Deal free images to the parts of a game, and toss each one's coin."""
    if split == IID:
        odds = np.zeros(len(labels))
    seen = np.column_stack((inputs[:, :DIRECTIONS], labels[:, np.newaxis] == np.arange(10)))
    parts = np.split(rng.permutation(free)[: sum(sizes)], np.cumsum(sizes)[:-1])
    game = Game(*((part, rng.random(part.size) < expit(odds[part])) for part in parts))
    return Pool(inputs, labels, seen, odds), game


# tables


def of_tables(kind: str, split: str, rng: np.random.Generator) -> tuple[Pool, Game]:
    """Draw members from the first year and others from the last, or both from the first."""
    columns, labels, years = TABLES[kind]()
    first, last = np.unique(years)[[0, -1]]
    chosen = [rng.random(size) < 0.5 for size in SIZES[kind]]
    early = rng.permutation(np.flatnonzero(years == first))
    members, early = np.split(early, [sum(int(own.sum()) for own in chosen)])
    others = early if split == IID else rng.permutation(np.flatnonzero(years == last))
    parts = []
    for own in chosen:
        rows, number = np.empty(own.size, np.int64), int(own.sum())
        rows[own], members = members[:number], members[number:]
        rows[~own], others = others[: own.size - number], others[own.size - number :]
        parts.append((rows, own))
    seen = np.column_stack((columns, labels)).astype(np.float32)
    return Pool(columns, labels, seen, None), Game(*parts)


@cache
def census() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the census: numbers standardised, categories as columns of 0 and 1."""
    data = load("census-income")
    table, columns = data["train_features"], []
    for place, name in enumerate(data.feature_names):
        column = table[:, place]
        if name in data.categories:
            levels, counts = np.unique(column, return_counts=True)
            columns += [column == level for level in levels[counts >= 500]]
        else:
            columns.append((column - column.mean()) / column.std())
    return np.stack(columns, axis=1).astype(np.float32), data["train_labels"], data["train_years"]


@cache
def patient_records() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one row of each patient, so that nobody is a member and not one."""
    data = load("patients")
    table = data["features"].astype(np.float64)
    table = (table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-9)
    order = np.random.default_rng(0).permutation(len(table))
    _, place = np.unique(data["patients"][order], return_index=True)
    rows = np.sort(order[place])
    return table[rows].astype(np.float32), data["labels"][rows], data["years"][rows]


TABLES = {CENSUS: census, PATIENTS: patient_records}
DATA = {
    MIX: partial(of_images, MIX),
    HARD: partial(of_images, HARD),
    CENSUS: partial(of_tables, CENSUS),
    PATIENTS: partial(of_tables, PATIENTS),
    TINY: of_small_images,
}
