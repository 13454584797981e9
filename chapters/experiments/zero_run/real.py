"""Figures 2b and 2c on real data: members and others who differ, and a network trained on members.

The paper has iWildCam. Here are images of CIFAR-10, of which the auditor decides who is a member
and how likely, so that the true propensity is known: by the class, as in two sources with another
mix of classes, or by how hard an image is for another network, which confounds the very thing that
the attack looks at. And two tables where time has done it and nobody knows the propensity: the
census of 1994 and 1995, and patients of a first and a third year.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from auditkit.attacks.propensity import (
    conservative_propensity,
    fit_propensity,
    propensity_bootstrap,
    rival_guesses,
)
from auditkit.bounds.propensity import diagnose_propensity
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.networks import mlp
from auditkit.models.training import Models, fit_many
from experiments.zero_run.audits import EXAMPLES, LEVEL, audit_rows

MIX, HARD = "CIFAR-10, class mix", "CIFAR-10, hard images"
CENSUS, PATIENTS = "census 1994, 1995", "patients, year 1, 3"
IID, OOD = "IID", "OOD"
TARGET, PLACEBO = "audited members", "other members"
TRUE, FITTED, RESAMPLED, LIMIT = "true", "fitted", "bootstrapped", "simultaneous limit"
CLASS_ODDS = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5, -1.5, 1.0, -1.0])
HARDNESS = -1.0  # log-odds for a standard deviation of hardness
DIRECTIONS = 50
PASSES = 40  # over the members, who are then known by heart


class Pool(NamedTuple):
    """Examples, whatever an attack sees of them, and the log-odds that they are members."""

    inputs: np.ndarray
    labels: np.ndarray
    seen: np.ndarray
    odds: np.ndarray | None


class Game(NamedTuple):
    """Audited examples, those to fit propensities on, and those of the placebo, with members."""

    audited: tuple[np.ndarray, np.ndarray]
    fitting: tuple[np.ndarray, np.ndarray]
    placebo: tuple[np.ndarray, np.ndarray]


def audits(
    data: str,
    split: str,
    seed: int,
    bootstraps: int,
    passes: int = PASSES,
    digits: int | None = None,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit a network by its losses, and one that was trained on other members.

    "OOD" has members and others of different laws; in "IID" both are drawn alike. The attack is the
    loss: members have a low one. ``auc``, ``kept_share`` and ``refused`` are what the diagnostics
    say of each set of propensities. Where two propensities change places thinning draws anew: those
    rounded to a few `digits` stay in order on other processors.
    """
    pool, game = DATA[data](split, rng)
    examples, members = game.audited
    inputs, labels = pool.inputs[examples], pool.labels[examples]
    scores = {
        name: -model.losses(inputs, labels)[0].astype(np.float64)
        for name, model in zip((TARGET, PLACEBO), networks(pool, game, seed, passes), strict=True)
    }
    seen, spare = pool.seen[game.fitting[0]], game.fitting[1]
    wanted = pool.seen[examples]
    propensities = {
        FITTED: fit_propensity(seen, spare, rng=rng).propensity(wanted),
        RESAMPLED: propensity_bootstrap(seen, spare, wanted, bootstraps=bootstraps, rng=rng),
        LIMIT: conservative_propensity(seen, spare, wanted, confidence=1.0 - LEVEL),
    }
    if pool.odds is not None:
        propensities[TRUE] = expit(pool.odds[examples])
    if digits is not None:
        propensities = {name: found.round(digits) for name, found in propensities.items()}
    rows = []
    for source, propensity in propensities.items():
        typical = propensity if propensity.ndim == 1 else np.median(propensity, axis=0)
        rival = rival_guesses(wanted, members, typical, rng=rng)
        report = diagnose_propensity(typical, members, *rival, rng=rng)
        about = {
            "auc": report.auc,
            "kept_share": report.kept,
            "largest_shift": report.largest_shift,
            "refused": report.test.rejected,
        }
        for release, score in scores.items():
            rows += [
                {"propensities": source, "release": release, **about, **row}
                for row in audit_rows(
                    score, members, propensity, fitted=source in (FITTED, RESAMPLED), rng=rng
                )
            ]
    return rows


def networks(pool: Pool, game: Game, seed: int, passes: int) -> list[Models]:
    """Train the audited network and the placebo's, each on about 5,000 members."""
    sets = [rows[own] for rows, own in (game.audited, game.placebo)]
    seeds = np.random.SeedSequence((seed, 8)).generate_state(len(sets))
    classes = int(pool.labels.max()) + 1
    return [
        fit_many(
            partial(mlp, pool.inputs.shape[1], classes, hidden=(256, 256)),
            pool.inputs[rows],
            pool.labels[rows],
            seeds=[one],
            epochs=passes,
            batch_size=64,
            learning_rate=1e-3,
            optimizer="adam",
        )
        for rows, one in zip(sets, seeds, strict=True)
    ]


# the games


@cache
def images() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features of all images, their labels, and how hard they are, as normal scores.

    Hardness is the loss of a network that was trained on the last 10,000 training images, which are
    in no game.
    """
    data = load("cifar10", part="features")
    inputs = np.concatenate((data["train_features"], data["test_features"])).astype(np.float32)
    labels = np.concatenate((data["train_labels"], data["test_labels"]))
    apart = np.arange(40_000, 50_000)
    judge = fit_many(
        partial(mlp, inputs.shape[1], 10, hidden=(256,)),
        inputs[apart],
        labels[apart],
        seeds=[0],
        epochs=3,
        batch_size=64,
        learning_rate=1e-3,
        optimizer="adam",
    )
    losses = judge.losses(inputs, labels)[0]
    return inputs, labels, ndtri(rankdata(losses) / (len(losses) + 1.0))


def of_images(kind: str, split: str, rng: np.random.Generator) -> tuple[Pool, Game]:
    """Draw three games of 10,000 images, the members by a coin with the propensity of each."""
    inputs, labels, hard = images()
    odds = CLASS_ODDS[labels] if kind == MIX else HARDNESS * np.clip(hard, -2.5, 2.5)
    if split == IID:
        odds = np.zeros(len(labels))
    seen = np.column_stack((inputs[:, :DIRECTIONS], labels[:, np.newaxis] == np.arange(10)))
    free = np.delete(np.arange(len(labels)), np.arange(40_000, 50_000))
    parts = rng.permutation(free).reshape(5, EXAMPLES)[:3]
    chosen = [(part, rng.random(EXAMPLES) < expit(odds[part])) for part in parts]
    return Pool(inputs, labels, seen, odds), Game(*chosen)


def of_tables(kind: str, split: str, rng: np.random.Generator) -> tuple[Pool, Game]:
    """Draw members from the first year and others from the last, or both from the first."""
    features, labels, years = TABLES[kind]()
    first, last = np.unique(years)[[0, -1]]
    early = rng.permutation(np.flatnonzero(years == first))
    kept = min(2 * EXAMPLES, len(early) // 2)  # for members, of whom there are about 15,000
    late = early[kept:] if split == IID else rng.permutation(np.flatnonzero(years == last))
    groups, used_early, used_late = [], 0, 0
    for _ in range(3):
        own = rng.random(EXAMPLES) < 0.5
        rows = np.empty(EXAMPLES, np.int64)
        members, others = int(own.sum()), int((~own).sum())
        rows[own] = early[used_early : used_early + members]
        rows[~own] = late[used_late : used_late + others]
        used_early, used_late = used_early + members, used_late + others
        groups.append((rows, own))
    seen = np.column_stack((features, labels)).astype(np.float32)
    return Pool(features, labels, seen, None), Game(*groups)


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
    features = data["features"].astype(np.float64)
    features = (features - features.mean(axis=0)) / np.maximum(features.std(axis=0), 1e-9)
    order = np.random.default_rng(0).permutation(len(features))
    _, place = np.unique(data["patients"][order], return_index=True)
    rows = np.sort(order[place])
    return features[rows].astype(np.float32), data["labels"][rows], data["years"][rows]


TABLES = {CENSUS: census, PATIENTS: patient_records}
DATA = {
    MIX: partial(of_images, MIX),
    HARD: partial(of_images, HARD),
    CENSUS: partial(of_tables, CENSUS),
    PATIENTS: partial(of_tables, PATIENTS),
}


def cells(data: list[str]) -> dict:
    """Return the paper profile's cells for some of the data."""
    return {"data": data, "split": [IID, OOD], "seed": list(range(5)), "bootstraps": [600]}


real = study(
    "zero-real",
    tolerance=0.02,
    paper=cells([MIX, HARD, CENSUS]),
    live={"data": [MIX], "split": [IID, OOD], "seed": [0], "bootstraps": [20]},
    reduced=[
        {"data": MIX, "split": split, "seed": seed, "bootstraps": 5, "passes": 4, "digits": 2}
        for split, seed in ((IID, 1), (OOD, 0))
    ],
)(audits)
patients = study(
    "zero-patients",
    tolerance=0.02,
    paper=cells([PATIENTS]),
    needs="the tables of the Heritage Health Prize, which are not ours to ship",
)(audits)
