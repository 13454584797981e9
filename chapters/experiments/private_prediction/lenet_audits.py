"""What the stored votes of `lenets` leak: laws, audits and theory. Nothing is trained here.

"Exact" is exact given the laws of votes, which were learnt from so many trainings. The null has two
sets of trainings without a point. A sum over answers is an estimate, as in `composing`. Limits
(theory, and a vote turned for sure) are those of PATE's mean histogram, for CaPC too.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from auditkit.experiment import study
from auditkit.mechanisms.releases import Releases, other_votes_table
from auditkit.mechanisms.voting import noisy_argmax_probabilities, vote_table
from experiments.private_prediction.composing import (
    ORDERS,
    audits,
    curve_rows,
    epsilon,
    floor,
    theory,
    theory_of_one,
    total,
)
from experiments.private_prediction.lenets import (
    CAPC,
    CHOSEN,
    CLASSES,
    DATA,
    ENSEMBLES,
    EPSILONS,
    FIRST,
    NATURAL,
    NATURAL_REPEATS,
    NONE,
    PATE,
    PLACES,
    POISONED,
    QUERIES,
    REPEATS,
    TEACHERS,
    counts,
    party_shares,
    pool,
    rows_where,
    shares,
    unpack,
)

NULL = "null"
POINTS, FRESH, SESSIONS = "pred-lenet-adversarial", "pred-lenet-worst", "pred-lenet-natural"
COUNTS = [f"votes_{label}" for label in range(CLASSES)]
CONTESTED, TYPICAL, EASY = "contested", "typical", "easy"


class Law(NamedTuple):
    """The two laws of one teacher's vote on some queries, and what is known of the others."""

    queries: np.ndarray
    labels: np.ndarray  # of the adversary's point
    before: np.ndarray  # (queries, classes)
    after: np.ndarray
    pair: Releases


@study(
    EPSILONS,
    paper={"data": DATA, "system": PLACES, "adversary": [NATURAL, POISONED, NULL]},
    tolerance=1e-6,
    sources=[TEACHERS, POINTS, SESSIONS],
)
def adversarial(data: str, system: str, adversary: str, rng: np.random.Generator) -> list[dict]:
    """Ask each query a thousand times; the point is the query itself: a row a query.

    ``gain`` is how much likelier the one teacher votes for the point's label.
    """
    return rows_of(data, law_of(data, system, adversary, rng), rng)


@study(
    "pred-lenet-worst-epsilon",
    paper={"data": DATA, "system": PLACES, "adversary": [NATURAL, POISONED]},
    tolerance=1e-6,
    sources=[TEACHERS, SESSIONS, FRESH],
)
def worst(data: str, system: str, adversary: str, rng: np.random.Generator) -> list[dict]:
    """Do the same for the queries that leaked most, with fresh trainings: a row a query."""
    return rows_of(data, fresh_law(data, system, adversary, rng), rng)


def rows_of(data: str, law: Law, rng: np.random.Generator) -> list[dict]:
    """Return ε of each query, asked a thousand times."""
    teachers, sigma = ENSEMBLES[data]
    found = {
        **theory(teachers * shares(data)[law.queries], sigma),
        "exact": law.pair.directions(ORDERS),
        **audits(law.pair, rng),
    }
    each = {
        name: [epsilon(QUERIES * row) for row in values.max(axis=0)]
        for name, values in found.items()
    }
    gains = np.take_along_axis(law.after - law.before, law.labels[:, None], axis=1)[:, 0]
    return [
        {
            "query": int(query),
            "gain": float(gains[row]),
            **{name: float(values[row]) for name, values in each.items()},
            "floor": floor(),
        }
        for row, query in enumerate(law.queries)
    ]


def law_of(data: str, system: str, adversary: str, rng: np.random.Generator) -> Law:
    """Return laws of all queries that are asked again and again; without a point for the null."""
    about = NATURAL if adversary == NULL else adversary
    points = kept(POINTS, data, system, about, about)
    queries, labels = points["query"].to_numpy(), points["label"].to_numpy()
    after, before = points[COUNTS].to_numpy(), without(data, system, about, queries)
    if adversary == NULL:
        before, after = parted(before, rng)
    return released(data, system, queries, labels, points["teacher"], before, after, rng)


def fresh_law(data: str, system: str, adversary: str, rng: np.random.Generator) -> Law:
    """Return the same laws from the fresh trainings of the worst queries."""
    points = kept(FRESH, data, system, adversary, adversary)
    queries, labels = points["query"].to_numpy(), points["label"].to_numpy()
    if system == CHOSEN:
        before = kept(FRESH, data, system, NONE, adversary)[COUNTS].to_numpy()
    else:
        before = without(data, system, adversary, queries)
    after = points[COUNTS].to_numpy()
    return released(data, system, queries, labels, points["teacher"], before, after, rng)


def released(
    data: str,
    system: str,
    queries: np.ndarray,
    labels: np.ndarray,
    teachers: pd.Series,
    before: np.ndarray,
    after: np.ndarray,
    rng: np.random.Generator,
) -> Law:
    """Return the laws of the release from counts of the one teacher's votes."""
    tables = tables_of(data, system, queries, teachers, rng)
    laws = [rows / rows.sum(axis=1, keepdims=True) for rows in (before, after)]
    pair = Releases(*(np.einsum("qc,qco->qo", law, tables) for law in laws))
    return Law(queries, labels, *laws, pair)


def kept(id_: str, data: str, system: str, point: str, adversary: str) -> pd.DataFrame:
    """Return the stored rows with a point, in the order of queries."""
    rows = rows_where(id_, data=data, place=system, point=point, adversary=adversary)
    return rows.sort_values("query").reset_index(drop=True)


def without(data: str, system: str, adversary: str, queries: np.ndarray) -> np.ndarray:
    """Return how often the one teacher votes for each class without a point."""
    if system == PATE:
        return counts(pool(data).models)[queries]
    if system == FIRST:
        return session_counts(data, CAPC, NONE)[queries]
    return kept(POINTS, data, system, NONE, adversary)[COUNTS].to_numpy()


def parted(votes: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of trainings without a point in two parts, the second of `REPEATS` if it can.

    A chosen teacher has only as many trainings in all: each part has half of them.
    """
    size = min(REPEATS, int(votes.sum(axis=1).min()) // 2)
    taken = np.array([rng.multivariate_hypergeometric(row, size) for row in votes])
    return votes - taken, taken


def tables_of(
    data: str, system: str, queries: np.ndarray, teachers: pd.Series, rng: np.random.Generator
) -> np.ndarray:
    """Return the law of the released label given the one vote, (queries, classes, classes)."""
    ensemble, sigma = ENSEMBLES[data]
    if system == PATE:
        return vote_table(ensemble, shares(data)[queries][:, None], sigma)
    known = party_shares(data)
    return np.array(
        [
            other_votes_table(np.delete(known[:, query], int(teacher), axis=0), sigma, rng=rng)
            for query, teacher in zip(queries, teachers, strict=True)
        ]
    )


# Natural queries.


@study(
    "pred-lenet-epsilon-natural",
    paper={"data": DATA, "system": [PATE, CAPC], "queries": [QUERIES]},
    reduced={"data": DATA[-1:], "system": [PATE, CAPC], "queries": [50]},
    tolerance=1e-6,
    sources=[TEACHERS, SESSIONS],
)
def natural(data: str, system: str, queries: int, rng: np.random.Generator) -> list[dict]:
    """Ask a thousand natural queries once: a row a poison, and one without ("again"), the null.

    "natural" is no poison but a query with its own label: what any point does. ``flips`` is how
    many votes of that one teacher a poison changes, of a thousand, in total variation; ``flip`` is
    the ε of a vote turned for sure in every query.
    """
    teachers, sigma = ENSEMBLES[data]
    known = shares(data)[:queries]
    limits = total(theory(teachers * known, sigma))
    if system == PATE:
        table = vote_table(teachers, known[:, None], sigma)
    else:
        table = others_table(data)[:queries]
    before = session_counts(data, system, NONE)[:queries] / NATURAL_REPEATS
    rows = []
    cells = rows_where(SESSIONS, data=data, system=system)
    for cell in cells[cells["poison"] != NONE].itertuples():
        after = unpack(cell.counts, -1, CLASSES)[:queries] / NATURAL_REPEATS
        pair = Releases(*(np.einsum("qc,qco->qo", law, table) for law in (before, after)))
        found = {"exact": pair.directions(ORDERS), **audits(pair, rng)}
        rows.append(
            {
                "poison": cell.poison,
                "number": cell.number,
                **limits,
                **total(found),
                "flips": float(0.5 * np.abs(after - before).sum()),
                "floor": floor(),
            }
        )
    return rows


def session_counts(data: str, system: str, poison: str) -> np.ndarray:
    """Return the stored votes of the one teacher without a poison, (queries, classes)."""
    rows = rows_where(SESSIONS, data=data, system=system, poison=poison)
    return unpack(rows["counts"].item(), -1, CLASSES)


def others_table(data: str) -> np.ndarray:
    """Return the law of CaPC's release given the first teacher's vote, over the stored deals."""
    one, (_, sigma) = np.eye(CLASSES), ENSEMBLES[data]
    others = pool(data).capc - one[pool(data).first]
    cast = noisy_argmax_probabilities(others[:, :, None] + one, sigma)
    return cast.mean(axis=0)


# Orders, one by one.


@study(
    "pred-lenet-curves",
    paper={"data": DATA, "system": PLACES, "adversary": [NATURAL, POISONED, NULL]},
    tolerance=1e-6,
    sources=[TEACHERS, POINTS, SESSIONS, FRESH],
)
def curves(data: str, system: str, adversary: str, rng: np.random.Generator) -> list[dict]:
    """Return the divergence of one answer to the query that leaks most: a row an order.

    With a point it is of the three that leaked most, and fresh trainings say how much; in the null
    nothing was chosen before, and it is the largest of all. Rows are those of
    `composing.curve_rows`, with a thousand answers.
    """
    law = (law_of if adversary == NULL else fresh_law)(data, system, adversary, rng)
    teachers, sigma = ENSEMBLES[data]
    worst = int(law.pair.divergences(ORDERS)[:, ORDERS == 10.0].argmax())
    p, q = law.pair.without[worst], law.pair.with_point[worst]
    votes = teachers * shares(data)[law.queries[worst]]
    return curve_rows(p, q, theory_of_one(votes, sigma), QUERIES, rng)


@study(
    "pred-lenet-histogram",
    paper={"data": DATA, "query": [CONTESTED, TYPICAL, EASY]},
    tolerance=1e-6,
    sources=[TEACHERS],
)
def histogram(data: str, query: str, rng: np.random.Generator) -> list[dict]:
    """Audit noisy argmax on votes that PATE's teachers really cast, and one vote moved.

    Of the first deal: the query of the smallest margin between the two leading classes, of the
    median, and of the largest. The vote moves from the first to the second, in the direction of the
    larger divergence.
    """
    sigma, cast = ENSEMBLES[data][1], pool(data).pate[0]
    ranked = np.sort(cast, axis=1)
    order = np.argsort(ranked[:, -1] - ranked[:, -2], kind="stable")
    place = {CONTESTED: 0, TYPICAL: len(order) // 2, EASY: len(order) - 1}[query]
    votes = cast[order[place]].astype(float)
    first, second = np.argsort(-votes, kind="stable")[:2]
    moved = votes.copy()
    moved[[first, second]] += (-1.0, 1.0)
    p, q = noisy_argmax_probabilities([votes, moved], sigma)
    about = {
        "margin": float(votes[first] - votes[second]),
        "votes": " ".join(map(str, cast[order[place]])),
    }
    limits = theory_of_one(votes, sigma)
    return [{**about, **row} for row in curve_rows(p, q, limits, QUERIES, rng)]
