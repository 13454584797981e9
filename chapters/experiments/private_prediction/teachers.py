"""PATE and CaPC on images: what one point leaks through the votes of 250 teachers.

Teachers are networks of one hidden layer, trained all at once on 64 principal directions of the
images, where the paper has convolutional networks on the images. They learn a mislabelled point by
heart as its teachers do. MNIST is complete, 240 images a teacher; of Fashion-MNIST it is the
shipped part, 80 images a teacher; of CIFAR-10 what a frozen ImageNet network sees in all images,
250 for each of 200 teachers. Directions come from training images without their labels; leave them
out where even that matters.

Passes were chosen among 5, 10 and 20 so that a poison is learnt, before any ε was looked at.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from auditkit import renyi_divergence
from auditkit.attacks.poisoning import least_sure_teacher, runner_up
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.releases import Releases, other_votes_table, pate_releases, vote_shares
from auditkit.mechanisms.voting import vote_table
from auditkit.models.networks import mlp
from auditkit.models.training import Models, fit_many
from experiments.private_prediction.composing import (
    ORDERS,
    audits,
    floor,
    histogram_ceiling,
    summary,
    theory,
    total,
)

CLASSES = 10
QUERIES = 1000  # of the session, and different ones in the paper profile
DIRECTIONS = 64
DEALS = 10  # random partitions from which the votes of PATE are learnt
TRAININGS = 20  # of all of CaPC's teachers
PATE_REPEATS, CAPC_REPEATS = 32, 16  # teachers trained with each point, to be asked that point
PATE_NATURAL, CAPC_NATURAL = 500, 100  # the same, to be asked natural queries

NATURAL, POISONED, NULL = "natural", "poisoned", "null"
GROUP_REPEATS, GROUP_MODELS = 5, 20  # sets of points, and models trained with each
SHIPPED = ("cifar10", "fashion-mnist")
SMALL = "fashion-mnist, 20 teachers"  # a reduced cell: few teachers that learn for a short time


class Setting(NamedTuple):
    """Images, and the ensemble that is trained on them."""

    inputs: np.ndarray  # (n, directions)
    labels: np.ndarray
    query_inputs: np.ndarray  # (queries, directions)
    query_labels: np.ndarray
    teachers: int
    sigma: float
    passes: int

    @property
    def size(self) -> int:
        """Images a teacher."""
        return len(self.labels) // self.teachers


class Votes(NamedTuple):
    """How teachers vote for the queries without the point."""

    pate: np.ndarray  # (models, queries)
    capc: np.ndarray  # (trainings, teachers, queries)
    first: np.ndarray  # (trainings, queries), of CaPC's first teacher, more of them


@cache
def setting(data: str) -> Setting:
    """Return images by name."""
    if data == "cifar10":
        loaded = load("cifar10", part="features")
        x, t = (loaded[f"{split}_features"].astype(np.float64) for split in ("train", "test"))
        teachers, sigma, passes = 200, 25.0, 10
    else:
        loaded = load("fashion-mnist" if data == SMALL else data)
        x, t = (halved(loaded[f"{split}_images"]) for split in ("train", "test"))
        teachers, sigma, passes = 250, 40.0, 20 if data == "fashion-mnist" else 10
    images, queries = len(x), QUERIES
    if data == SMALL:
        images, queries, teachers, sigma, passes = 1600, 40, 20, 4.0, 3
    x, t = principal(x[:images], t[:queries])
    return Setting(
        x,
        loaded["train_labels"][:images],
        t,
        loaded["test_labels"][:queries],
        teachers=teachers,
        sigma=sigma,
        passes=passes,
    )


def halved(images: np.ndarray) -> np.ndarray:
    """Return images of half the side, as rows."""
    n, side, _ = images.shape
    small = images.reshape(n, side // 2, 2, side // 2, 2).mean(axis=(2, 4))
    return small.reshape(n, -1) / 255.0


def principal(x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both along the directions of largest spread, scaled to a mean square of 16."""
    mean = x[:5000].mean(axis=0)
    directions = np.linalg.svd(x[:5000] - mean, full_matrices=False)[2][:DIRECTIONS]
    seen = [(rows - mean) @ directions.T for rows in (x, t)]
    scale = 4.0 / np.sqrt((seen[0] ** 2).sum(axis=1).mean())
    return (scale * seen[0]).astype(np.float32), (scale * seen[1]).astype(np.float32)


def train(
    images: Setting,
    parts: np.ndarray,
    rng: np.random.Generator,
    *,
    queries: np.ndarray | None = None,
    labels: np.ndarray | None = None,
) -> Models:
    """Train a model on each part, (models, size), with one query each as a point if given."""
    x, y = images.inputs, images.labels
    if queries is not None:
        added = len(x) + np.arange(len(queries))
        x = np.concatenate([x, images.query_inputs[queries]])
        y = np.concatenate([y, labels])
        parts = np.concatenate([parts, added[:, None]], axis=1)
    return fit_many(
        partial(mlp, DIRECTIONS, CLASSES),
        x,
        y,
        seeds=rng.integers(2**31, size=len(parts)),
        indices=parts,
        **options(images),
    )


def deal(images: Setting, rng: np.random.Generator) -> np.ndarray:
    """Return whose images are whose, (teachers, size)."""
    used = images.teachers * images.size
    return rng.permutation(len(images.labels))[:used].reshape(images.teachers, images.size)


def random_parts(images: Setting, models: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random part of the images for each model."""
    deals = [deal(images, rng) for _ in range(-(-models // images.teachers))]
    return np.concatenate(deals)[:models]


@cache
def fixed_parts(data: str) -> np.ndarray:
    """Return CaPC's partition, which never changes."""
    return deal(setting(data), np.random.default_rng(0))


@cache
def votes(data: str) -> Votes:
    """Train the teachers of PATE and CaPC without the point."""
    images, rng = setting(data), np.random.default_rng(1)
    asked = images.query_inputs
    pate = train(images, random_parts(images, DEALS * images.teachers, rng), rng).predict(asked)
    parts = fixed_parts(data)
    capc = train(images, np.tile(parts, (TRAININGS, 1)), rng).predict(asked)
    first = train(images, np.repeat(parts[:1], 2 * CAPC_NATURAL, axis=0), rng).predict(asked)
    return Votes(pate, capc.reshape(TRAININGS, images.teachers, -1), first)


class World(NamedTuple):
    """The two laws of one teacher's vote, and the two laws of the release that follow."""

    before: np.ndarray  # (queries, classes)
    after: np.ndarray
    pair: Releases


def adversarial(data: str, first: int, queries: int, rng: np.random.Generator) -> list[dict]:
    """Ask each of some queries a thousand times; the point is the query itself.

    ``gain`` is how much likelier the one teacher votes for the point's label. Rows of adversary
    "null" have no point: what they show is noise. ``floor`` is the ε of no leak at all. Of
    PATE, ``total_2`` is the sum over the thousand answers at order 2, and ``ceiling_2`` what the
    histogram leaks at that order, which the answers together cannot exceed.
    """
    images, chosen = setting(data), np.arange(first, first + queries)
    shares = vote_shares(votes(data).pate, CLASSES)[chosen]
    limits = theory(images.teachers * shares, images.sigma)
    rows = []
    for adversary, labels in (
        (NATURAL, images.query_labels[chosen]),
        (POISONED, runner_up(shares)),
        (NULL, images.query_labels[chosen]),
    ):
        point = None if adversary == NULL else labels
        teachers = {
            "CaPC, first teacher": np.zeros(queries, dtype=int),
            "CaPC, chosen teacher": weakest(data, chosen, labels),
        }
        worlds = {"PATE": pate_world(data, chosen, point, rng)} | {
            system: capc_world(data, chosen, which, point, rng)
            for system, which in teachers.items()
        }
        for system, world in worlds.items():
            found = {**limits, "exact": world.pair.directions(ORDERS), **audits(world.pair, rng)}
            order_2 = {}
            if system == "PATE":
                # half a vote more for each class: one that was never seen would have no end
                laws = [smoothed(law, len(votes(data).pate)) for law in world[:2]]
                order_2 = {
                    "total_2": QUERIES * with_point_from_without(world.pair),
                    "ceiling_2": histogram_ceiling(*laws, images.teachers),
                }
            gain = np.take_along_axis(world.after - world.before, labels[:, None], axis=1)
            about = {"system": system, "adversary": adversary}
            end = {"gain": float(gain.mean()), "floor": floor()}
            rows += [{**about, **row, **end} for row in summary(found, QUERIES, **order_2)]
    return rows


REDUCED = {"data": [SMALL], "first": [0, 10], "queries": [2]}
shipped = study(
    "pred-teachers",
    tolerance=0.02,
    paper={"data": list(SHIPPED), "first": list(range(0, QUERIES, 25)), "queries": [25]},
    reduced=REDUCED,
)(adversarial)
brought = study(
    "pred-teachers-mnist",
    tolerance=0.02,
    paper={"data": ["mnist"], "first": list(range(0, QUERIES, 100)), "queries": [100]},
    reduced=REDUCED,
    needs="MNIST",
)(adversarial)


def with_point_from_without(pair: Releases) -> np.ndarray:
    """Return the divergences of order 2 in one direction."""
    return renyi_divergence(pair.with_point, pair.without, [2.0])[:, 0]


def smoothed(law: np.ndarray, count: int) -> np.ndarray:
    """Return shares of `count` votes with half a vote more for each class."""
    return (count * law + 0.5) / (count + 0.5 * CLASSES)


def pate_world(
    data: str, chosen: np.ndarray, labels: np.ndarray | None, rng: np.random.Generator
) -> World:
    """Return PATE with each query as a point in turn, or with no point."""
    images, before = setting(data), votes(data).pate[:, chosen]
    if labels is None:
        order = rng.permutation(len(before))
        after, before = before[order[:PATE_REPEATS]], before[order[PATE_REPEATS:]]
    else:
        parts = random_parts(images, PATE_REPEATS * len(chosen), rng)
        after = own_votes(images, parts, chosen, labels, PATE_REPEATS, rng)
    pair = pate_releases(before, after, images.teachers, classes=CLASSES, sigma=images.sigma)
    return World(vote_shares(before, CLASSES), vote_shares(after, CLASSES), pair)


def capc_world(
    data: str,
    chosen: np.ndarray,
    teachers: np.ndarray,
    labels: np.ndarray | None,
    rng: np.random.Generator,
) -> World:
    """Return CaPC with each query as a point of one teacher, or with no point.

    The teacher was chosen by other trainings than those that its votes are counted in.
    """
    images = setting(data)
    parts = np.repeat(fixed_parts(data)[teachers], CAPC_REPEATS, axis=0)
    laws = [
        vote_shares(own_votes(images, parts, chosen, point, CAPC_REPEATS, rng), CLASSES)
        for point in (None, labels)
    ]
    tables = np.array(
        [
            other_votes_table(others(data, teacher)[:, query], images.sigma, rng=rng)
            for teacher, query in zip(teachers, chosen, strict=True)
        ]
    )
    return World(*laws, Releases(*(np.einsum("qc,qco->qo", law, tables) for law in laws)))


def own_votes(
    images: Setting,
    parts: np.ndarray,
    chosen: np.ndarray,
    labels: np.ndarray | None,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Train `repeats` models a query, with it as a point or without, and ask them that query."""
    place = np.repeat(np.arange(len(chosen)), repeats)
    point = {} if labels is None else {"queries": chosen[place], "labels": labels[place]}
    said = train(images, parts, rng, **point).predict(images.query_inputs[chosen])
    return said[np.arange(len(place)), place].reshape(len(chosen), repeats).T


def weakest(data: str, chosen: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return for each query the teacher of CaPC that rarely votes for the point's label."""
    shares = teacher_shares(data)[:, chosen]
    return np.array(
        [least_sure_teacher(shares[:, place], label) for place, label in enumerate(labels)]
    )


@cache
def teacher_shares(data: str) -> np.ndarray:
    """Return how CaPC's teachers vote, (teachers, queries, classes)."""
    seen = votes(data).capc
    return np.stack([(seen == label).mean(axis=0) for label in range(CLASSES)], axis=-1)


def others(data: str, teacher: int) -> np.ndarray:
    """Return how all of CaPC's teachers vote but one."""
    return np.delete(teacher_shares(data), teacher, axis=0)


@study(
    "pred-teachers-natural",
    tolerance=0.02,
    paper={"data": [*SHIPPED, "mnist"], "poisons": [10]},
    reduced={"data": [SMALL], "poisons": [1]},
)
def natural(data: str, poisons: int, rng: np.random.Generator) -> list[dict]:
    """Ask a thousand natural queries once; each of some mislabelled queries is a poison in turn.

    A row for each poison and each system, and one without a poison. CaPC's poison goes to its first
    teacher. ``flips`` is how many votes of that one teacher a poison changes, of a thousand, in
    total variation; in the row without a poison it is what training anew changes.
    """
    images, before = setting(data), votes(data)
    shares = vote_shares(before.pate, CLASSES)
    limits = total(theory(images.teachers * shares, images.sigma))
    tables = {
        "PATE": vote_table(images.teachers, shares[:, None], images.sigma),
        "CaPC": np.array(
            [
                other_votes_table(others(data, 0)[:, query], images.sigma, rng=rng)
                for query in range(len(shares))
            ]
        ),
    }
    laws = {"PATE": shares, "CaPC": vote_shares(before.first[:CAPC_NATURAL], CLASSES)}
    rows = []
    for poison in (None, *rng.choice(len(shares), poisons, replace=False)):
        for system, table in tables.items():
            seen = poisoned_votes(data, system, poison, runner_up(shares), rng)
            after = vote_shares(seen, CLASSES)
            pair = Releases(*(np.einsum("qc,qco->qo", law, table) for law in (laws[system], after)))
            found = {"exact": pair.directions(ORDERS), **audits(pair, rng)}
            moved = 0.5 * np.abs(after - laws[system]).sum()
            rows.append(
                {
                    "system": system,
                    "poison": None if poison is None else int(poison),
                    **limits,
                    **total(found),
                    "flips": float(moved),
                    "floor": floor(),
                }
            )
    return rows


def poisoned_votes(
    data: str, system: str, poison: int | None, labels: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return how a teacher with the poison votes for all queries, (trainings, queries)."""
    images, before = setting(data), votes(data)
    if poison is None and system == "CaPC":
        return before.first[CAPC_NATURAL:]
    if poison is None:
        return train(images, random_parts(images, PATE_NATURAL, rng), rng).predict(
            images.query_inputs
        )
    repeats = PATE_NATURAL if system == "PATE" else CAPC_NATURAL
    parts = (
        random_parts(images, repeats, rng)
        if system == "PATE"
        else np.repeat(fixed_parts(data)[:1], repeats, axis=0)
    )
    queries = np.full(repeats, poison)
    return train(images, parts, rng, queries=queries, labels=labels[queries]).predict(
        images.query_inputs
    )


@study(
    "pred-teachers-group",
    tolerance=0.02,
    paper={"data": list(SHIPPED), "points": [1, 2, 4, 8, 16, 32]},
    reduced={"data": [SMALL], "points": [1, 16]},
)
def several_points(data: str, points: int, rng: np.random.Generator) -> dict:
    """Give CaPC's first teacher several mislabelled queries and count the votes that change.

    ``flips`` is how many of a thousand natural queries one training answers otherwise, on average
    over sets of points and in total variation. ``again`` is the same where nothing was added.
    """
    images, before = setting(data), votes(data)
    part, labels = fixed_parts(data)[0], runner_up(vote_shares(before.pate, CLASSES))
    law = vote_shares(before.first[:CAPC_NATURAL], CLASSES)
    seen = []
    for _ in range(GROUP_REPEATS):
        chosen = rng.choice(len(labels), points, replace=False)
        added = len(images.labels) + np.arange(points)
        model = fit_many(
            partial(mlp, DIRECTIONS, CLASSES),
            np.concatenate([images.inputs, images.query_inputs[chosen]]),
            np.concatenate([images.labels, labels[chosen]]),
            seeds=rng.integers(2**31, size=GROUP_MODELS),
            indices=np.tile(np.concatenate([part, added]), (GROUP_MODELS, 1)),
            **options(images),
        )
        after = vote_shares(model.predict(images.query_inputs), CLASSES)
        seen.append(0.5 * np.abs(after - law).sum())
    again = vote_shares(before.first[-GROUP_MODELS:], CLASSES)
    return {
        "flips": float(np.mean(seen)),
        "again": float(0.5 * np.abs(again - law).sum()),
        "size": images.size,
    }


def options(images: Setting) -> dict:
    """Return how teachers are trained."""
    return {
        "epochs": images.passes,
        "batch_size": 16,
        "learning_rate": 0.01,
        "optimizer": "adam",
    }
