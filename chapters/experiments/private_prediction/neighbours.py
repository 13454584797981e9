"""Private-kNN on images and sentences: what one point leaks through the votes of neighbours.

Frozen networks see the points: EfficientNet-lite0 all of CIFAR-10, a sentence encoder the film
sentences. Fashion-MNIST is the shipped part along 50 principal directions. The metric is that of
the paper's silence: the Euclidean one, on points as they are or on points scaled to length 1, which
is the angle. Embeddings of sentences have length 1.

The paper's SST-2 has 67,300 points, of which k = 200 of those drawn, at γ = 0.2, are 1.5%. Of 7,530
sentences they are 13%, and any point is a neighbour of many queries. With k = 20 they are as few as
in the paper.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from auditkit import dp_sgd_epsilon
from auditkit.attacks.poisoning import central_points, expected_votes, runner_up
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.private_knn import (
    neighbour_probability,
    neighbour_votes,
    private_knn_releases,
)
from auditkit.mechanisms.releases import Releases
from auditkit.mechanisms.voting import vote_table
from experiments.private_prediction.composing import (
    CONFIDENCE,
    DELTA,
    ORDERS,
    audits,
    floor,
    summary,
    total,
)

RATE = 0.2
COUNTED = (1, 3, 10, 30)  # times k / γ nearest points that the embedding adversary counts


class Points(NamedTuple):
    """Training points and queries."""

    points: np.ndarray  # (n, dimension)
    labels: np.ndarray
    query_points: np.ndarray  # (queries, dimension)
    query_labels: np.ndarray


class Near(NamedTuple):
    """Which training points are near the queries, the nearest first, and how near."""

    order: np.ndarray  # (queries, n)
    distances: np.ndarray  # (queries, n), squared


FILM = "film-sentences"


def grid(queries: int, names: list[tuple[str, str, int, float]]) -> list[dict]:
    """Return the cells."""
    return [
        {"data": data, "metric": metric, "neighbours": k, "sigma": sigma, "queries": queries}
        for data, metric, k, sigma in names
    ]


# neighbours at one distance may change places with another order of sums
@study(
    "pred-knn",
    tolerance=1e-3,
    paper=grid(
        1000,
        [
            (FILM, "angle", 200, 20.0),
            (FILM, "angle", 20, 2.0),
            ("cifar10", "distance", 200, 30.0),
            ("cifar10", "angle", 200, 30.0),
            ("fashion-mnist", "distance", 200, 30.0),
            ("fashion-mnist", "angle", 200, 30.0),
        ],
    ),
    live=grid(200, [(FILM, "angle", 20, 2.0)]),
)
def by_adversary(
    data: str,
    metric: str,
    neighbours: int,
    sigma: float,
    queries: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit with every adversary.

    A row each; `audited` says what the columns are.
    """
    return audited(points(data, metric, queries), neighbours, sigma, rng)


def audited(given: Points, neighbours: int, sigma: float, rng: np.random.Generator) -> list[dict]:
    """Audit with every adversary.

    Queries of "adversarial" rows are asked as often as there are natural ones; a row for the mean
    over queries and one for the worst. Of "natural" rows all queries are asked once. ``reach`` is
    E(x) over its largest value. ``independent`` is theory for a sensitivity of √2, that of a vote
    which takes the place of another; ``one_vote`` for 1. With "jointly" in its name a column of
    audits holds for all queries together with 95%.
    """
    near = nearest(given)
    queries = len(given.query_labels)
    classes = int(given.labels.max()) + 1
    votes = neighbour_votes(
        given.labels[near.order[:, : within(neighbours, len(given.labels))]],
        neighbours,
        RATE,
        classes=classes,
    )
    table = vote_table(neighbours, votes.others[:, None], sigma)

    def releases(labels: np.ndarray, chance: np.ndarray) -> Releases:
        return private_knn_releases(
            votes, labels, chance, neighbours=neighbours, sigma=sigma, table=table
        )

    limits = {
        name: dp_sgd_epsilon(
            noise_multiplier=sigma / shift,
            sampling_rate=RATE,
            steps=queries,
            delta=DELTA,
            adjacency="add/remove",
        )
        for name, shift in (("independent", 2.0**0.5), ("one_vote", 1.0))
    }
    rows = []
    for adversary, labels in (
        ("natural", given.query_labels),
        ("poisoned", runner_up(votes.others)),
    ):
        pair = releases(labels, np.full(queries, RATE))
        found = {"exact": pair.directions(ORDERS), **audits(pair, rng)}
        rows += [
            {"adversary": adversary, "queries_are": "adversarial", **row, "reach": 1.0}
            for row in summary(found, queries)
        ]
    for adversary, (ranks, reach) in central(given, near, neighbours).items():
        chance = neighbour_probability(ranks, neighbours, RATE)
        pairs = [releases(np.full(queries, label), chance) for label in range(classes)]
        pair = max(pairs, key=lambda pair: total({"exact": pair.directions(ORDERS)})["exact"])
        rows.append(
            {
                "adversary": adversary,
                "queries_are": "natural",
                "which": "all",
                **everything(pair, rng),
                "reach": reach,
            }
        )
    rows.append(
        {
            "adversary": "null",
            "queries_are": "natural",
            "which": "all",
            **everything(releases(given.query_labels, np.zeros(queries)), rng),
            "reach": 0.0,
        }
    )
    return [{**row, **limits, "floor": floor()} for row in rows]


def everything(pair: Releases, rng: np.random.Generator) -> dict[str, float]:
    """Return ε of all queries asked once: exact, and audits with 95% for each or for all."""
    jointly = audits(pair, rng, confidence=1.0 - (1.0 - CONFIDENCE) / len(pair.without))
    return total(
        {
            "exact": pair.directions(ORDERS),
            **audits(pair, rng),
            **{f"{name}_jointly": rows for name, rows in jointly.items()},
        }
    )


def central(given: Points, near: Near, neighbours: int) -> dict[str, tuple[np.ndarray, float]]:
    """Return the ranks and the reach of the point with the largest E(x), by adversary.

    "test" takes a query, "train" a copy of a training point, "embedding" any point. A mean of
    points of length 1 is shorter, hence nearer to all of them than they are to one another; where
    points have length 1, one more adversary has to keep to it.
    """
    queries = len(given.query_labels)
    most = RATE * queries
    pairwise = squared(given.query_points, given.query_points)  # (query, candidate)
    test = ranks(near, pairwise)
    train = np.zeros(len(given.labels))
    at = neighbour_probability(np.arange(1, len(train) + 1), neighbours, RATE)
    for order in near.order:
        train[order] += at
    copied = int(train.argmax())
    copy = squared(given.query_points, given.points[copied : copied + 1])
    made = np.concatenate(
        [
            central_points(
                given.points, near.order, given.query_labels, min(size, len(given.labels))
            )
            for size in (int(times * neighbours / RATE) for times in COUNTED)
        ]
    )
    candidates = {
        "test": test,
        "train": ranks(near, copy),
        "embedding": ranks(near, squared(given.query_points, made)),
    }
    if np.allclose((given.points[:100] ** 2).sum(axis=1), 1.0, atol=1e-3):
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        candidates["embedding, length 1"] = ranks(near, squared(given.query_points, made))
    best = {}
    for name, places in candidates.items():
        expected = expected_votes(places.T, neighbours, RATE)
        chosen = int(expected.argmax())
        best[name] = places[:, chosen], float(expected[chosen] / most)
    return best


def ranks(near: Near, distances: np.ndarray) -> np.ndarray:
    """Return how close candidates are among the training points, (queries, candidates), from 1."""
    slack = (
        1e-6 * near.distances[:, -1].mean()
    )  # a copy stands before its original in spite of rounding
    return 1 + np.array(
        [
            np.searchsorted(known, asked - slack)
            for known, asked in zip(near.distances, distances, strict=True)
        ]
    )


def within(neighbours: int, most: int) -> int:
    """Return how many of the nearest matter: the k-th drawn is among them but once in a million."""
    mean = neighbours / RATE
    return min(most, int(mean + 8.0 * np.sqrt(mean / RATE) + 10.0))


def squared(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return squared distances, (first, second)."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)
    return squares - 2.0 * first @ second.T


def nearest(given: Points) -> Near:
    """Sort the training points by their distance to each query."""
    distances = squared(given.query_points, given.points)
    order = np.argsort(distances, axis=1)
    return Near(order, np.take_along_axis(distances, order, axis=1))


@cache
def points(data: str, metric: str, queries: int) -> Points:
    """Return training points and queries by name."""
    if data == FILM:
        loaded = load(data, part="embeddings")
        dealt = np.random.default_rng(0).permutation(len(loaded["labels"]))
        asked, kept = dealt[:queries], dealt[1000:]
        whole = loaded["embeddings"].astype(np.float64)
        given = Points(whole[kept], loaded["labels"][kept], whole[asked], loaded["labels"][asked])
    else:
        cifar = data == "cifar10"
        loaded = load(data, part="features") if cifar else load(data)
        kind = "features" if cifar else "images"
        x, t = (
            loaded[f"{split}_{kind}"].reshape(len(loaded[f"{split}_{kind}"]), -1).astype(np.float64)
            for split in ("train", "test")
        )
        if not cifar:
            mean = x[:5000].mean(axis=0)
            directions = np.linalg.svd(x[:5000] - mean, full_matrices=False)[2][:50]
            x, t = (x - mean) @ directions.T, (t - mean) @ directions.T
        given = Points(x, loaded["train_labels"], t[:queries], loaded["test_labels"][:queries])
    if metric == "angle":
        lengths = [np.linalg.norm(rows, axis=1, keepdims=True) for rows in given[::2]]
        return given._replace(
            points=given.points / lengths[0], query_points=given.query_points / lengths[1]
        )
    return given
