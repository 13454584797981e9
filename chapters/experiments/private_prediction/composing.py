"""From the laws of single queries to one ε: what leaks, what audits find, what theory allows.

Rényi divergences are added order by order and converted. Where queries share training, as in PATE
and CaPC, the sum is an illustration, as in the paper, and no bound on what the session leaks.
"""

import itertools
from functools import partial

import numpy as np

from auditkit import epsilon_from_renyi, renyi_audit
from auditkit.accounting import data_dependent_renyi, data_independent_renyi
from auditkit.bounds.renyi import appendix_b_bound
from auditkit.mechanisms.releases import Releases
from auditkit.mechanisms.voting import noisy_argmax_probabilities

ORDERS = np.array(
    [1.25, 1.5, 1.75, *np.arange(2.0, 33.0), 36, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512.0]
)
CURVES = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 48.0)  # of them, those that are drawn
DELTA = 1e-6
DRAWS = 10**8  # a query and world, as in the paper
CONFIDENCE = 0.95


def epsilon(divergences: np.ndarray) -> float:
    """Return ε at δ from divergences at `ORDERS`, composed."""
    return epsilon_from_renyi(ORDERS, divergences, DELTA)


def floor() -> float:
    """Return the ε that the conversion gives where nothing leaks at all."""
    return epsilon(np.zeros(len(ORDERS)))


def audits(
    pair: Releases, rng: np.random.Generator, *, confidence: float = CONFIDENCE
) -> dict[str, np.ndarray]:
    """Return what audits of `DRAWS` released labels a world find, (2, queries, orders) each.

    Counts are drawn from the exact laws, which is what drawing histograms and noise would give. The
    cut is fixed by the laws: of the sets of largest ratios the one that is told apart best. Both
    directions are looked at, by the same intervals, which hold for both.
    """
    found: dict[str, list[np.ndarray]] = {"appendix_b": [], "corner": []}
    bounds = {
        "appendix_b": partial(appendix_b_bound, orders=ORDERS, confidence=confidence),
        "corner": partial(renyi_audit, orders=ORDERS, confidence=confidence),
    }
    for p, q in zip(pair.without, pair.with_point, strict=True):
        counts = [rng.multinomial(DRAWS, law) for law in (p, q)]
        cut = telling_cut(p, q)
        for name, bound in bounds.items():
            found[name].append([bound(*pair, cut=cut).epsilon for pair in (counts, counts[::-1])])
    return {name: np.swapaxes(rows, 0, 1) for name, rows in found.items()}


def telling_cut(p: np.ndarray, q: np.ndarray) -> tuple[int, ...]:
    """Return the set of largest ratios whose frequencies differ most, in standard errors."""
    ranked = np.argsort(-q / p, kind="stable")
    a, b = np.cumsum(p[ranked])[:-1], np.cumsum(q[ranked])[:-1]
    spread = np.sqrt(np.maximum(a * (1.0 - a) + b * (1.0 - b), 1e-300))
    return tuple(ranked[: int(((b - a) / spread).argmax()) + 1].tolist())


def theory(histograms: np.ndarray, sigma: float) -> dict[str, np.ndarray]:
    """Return what theory and the exact law allow at histograms, (1, queries, orders) each.

    ``dependent`` is the larger of the analysis at a histogram and at its neighbours; ``flip`` the
    largest exact divergence from any neighbour with one vote moved: the most that any adversary
    could reach who moves a vote for sure.
    """
    dependent, flip = [], []
    for counts in np.asarray(histograms, dtype=float):
        moved = np.array([counts, *neighbours(counts)])
        dependent.append(data_dependent_renyi(moved, sigma, ORDERS).max(axis=0))
        laws = noisy_argmax_probabilities(moved, sigma)
        here = np.broadcast_to(laws[0], laws[1:].shape)
        flip.append(Releases(here, laws[1:]).divergences(ORDERS).max(axis=0))
    return {
        "independent": np.tile(data_independent_renyi(sigma, ORDERS), (1, len(flip), 1)),
        "dependent": np.array([dependent]),
        "flip": np.array([flip]),
    }


def histogram_ceiling(before: np.ndarray, after: np.ndarray, teachers: int) -> np.ndarray:
    """Return the divergence of order 2 of PATE's histograms with the point from those without.

    One number a query. Its answers, as many as one likes, are made of one histogram and noise, so
    they leak no more than it. The ratio of the two laws of a histogram is the mean, over its votes,
    of the ratios of the two laws of one teacher's vote, `before` and `after`, (queries, classes)
    each: its variance is their χ² over the number of teachers.
    """
    chi_squared = (after**2 / before).sum(axis=1) - 1.0
    return np.log1p(np.maximum(chi_squared, 0.0) / teachers)


def neighbours(counts: np.ndarray) -> list[np.ndarray]:
    """Return the histograms with one vote moved, from classes that have a vote to give."""
    one = np.eye(len(counts))
    return [
        counts - one[old] + one[new]
        for old, new in itertools.permutations(range(len(counts)), 2)
        if counts[old] >= 1.0
    ]


def summary(divergences: dict[str, np.ndarray], repeats: int, **others: np.ndarray) -> list[dict]:
    """Return ε where each query is asked `repeats` times: the mean over queries, and the worst.

    The worst query is the one with the largest ``exact``. What `others` hold, a number a query, is
    given as it is.
    """
    found = others | {
        name: np.array([epsilon(repeats * row) for row in rows.max(axis=0)])
        for name, rows in divergences.items()
    }
    worst = int(found["exact"].argmax())
    return [
        {"which": "average", **{name: float(values.mean()) for name, values in found.items()}},
        {"which": "worst", **{name: float(values[worst]) for name, values in found.items()}},
    ]


def total(divergences: dict[str, np.ndarray]) -> dict[str, float]:
    """Return ε where each query is asked once: each direction adds up by itself."""
    return {name: epsilon(rows.sum(axis=1).max(axis=0)) for name, rows in divergences.items()}


def curve_rows(
    p: np.ndarray,
    q: np.ndarray,
    limits: dict[str, np.ndarray],
    answers: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Return the divergence of two laws of one answer, what audits find, and limits at `ORDERS`.

    A row for each of some orders, and one of order None, which has ε of so many answers.
    ``corner`` has the cut that the laws recommend, ``k_cut`` all answers at once.
    """
    drawn, cut = [rng.multinomial(DRAWS, law) for law in (p, q)], telling_cut(p, q)
    found = {**limits, "exact": Releases(p[None], q[None]).divergences(ORDERS)[0]}
    for name, audit in (
        ("corner", partial(renyi_audit, cut=cut)),
        ("k_cut", partial(renyi_audit, method="k-cut")),
    ):
        both = [
            audit(*pair, orders=ORDERS, confidence=CONFIDENCE).epsilon
            for pair in (drawn, drawn[::-1])
        ]
        found[name] = np.max(both, axis=0)
    kept = [int(np.flatnonzero(order == ORDERS)[0]) for order in CURVES]
    rows = [
        {"order": ORDERS[place], **{name: float(values[place]) for name, values in found.items()}}
        for place in kept
    ]
    session = {name: epsilon(answers * values) for name, values in found.items()}
    return [*rows, {"order": None, **session}]


def theory_of_one(votes: np.ndarray, sigma: float) -> dict[str, np.ndarray]:
    """Return what `theory` says of one histogram, at `ORDERS`."""
    return {name: rows[0, 0] for name, rows in theory(votes[None], sigma).items()}
