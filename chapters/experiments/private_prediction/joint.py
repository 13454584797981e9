"""What a session of PATE leaks, and what the sum over its queries says.

Teachers are trained once and answer all queries. A sum of the divergences of single answers counts
the randomness of training again for each answer, though it was drawn once. Two studies: one query
asked again and again, where the joint law is known, and natural queries to real teachers, where it
is audited as a whole.
"""

from functools import cache

import numpy as np
from numba import njit
from scipy.special import gammaln, ndtr, xlog1py, xlogy

from auditkit import renyi_audit, renyi_divergence
from auditkit.attacks.poisoning import runner_up
from auditkit.experiment import study
from auditkit.mechanisms.releases import pate_releases, vote_shares
from experiments.private_prediction.teachers import (
    CLASSES,
    SMALL,
    Setting,
    poisoned_votes,
    setting,
    votes,
)

TEACHERS, SIGMA = 250, 40.0
DRAWS = 10**8  # sessions that the audit of a known law sees in each world


@study(
    "pred-repeated",
    tolerance=1e-6,
    paper={
        "after": [0.5, 0.6, 0.9],
        "order": [2.0, 10.0],
        "queries": [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000],
    },
    live={"after": [0.5, 0.9], "order": [2.0], "queries": [1, 10, 100, 1000]},
)
def asked_again(after: float, order: float, queries: int, rng: np.random.Generator) -> dict:
    """Ask one query again and again; one teacher of 250 says 1 with probability `after`, not 1/2.

    The teachers vote alike each time, the others by a fair coin. ``total`` is the sum of the
    divergences of single answers, ``joint`` the divergence of the whole session, and ``ceiling``
    that of the histograms, which no number of queries exceeds. ``audit`` is the corner bound on
    `joint` from 10⁸ sessions, with a cut of the number of answers 1 that was fixed beforehand.
    """
    laws = session_laws(queries)
    p, q = ((1.0 - chance) * laws[0] + chance * laws[1] for chance in (0.5, after))
    single = session_laws(1)
    one = [(1.0 - chance) * single[0] + chance * single[1] for chance in (0.5, after)]
    # the ratio of the two laws of the histogram is the mean, over teachers, of the ratio of the
    # two laws of a vote: its variance is χ² of these over the number of teachers
    chi_squared = (after - 0.5) ** 2 / 0.25
    tail_p, tail_q = (np.cumsum(law[::-1])[::-1][1:] for law in (p, q))
    spread = np.sqrt(np.maximum(tail_p * (1 - tail_p) + tail_q * (1 - tail_q), 1e-300))
    seen = (np.minimum(tail_p, tail_q) > 1e-6) & (np.maximum(tail_p, tail_q) < 1.0 - 1e-6)
    cut = int(np.where(seen, np.abs(tail_q - tail_p) / spread, -1.0).argmax())
    counts = []
    for tail in (tail_p, tail_q):
        hits = rng.binomial(DRAWS, min(tail[cut], 1.0))  # a sum of all, but for rounding
        counts.append([hits, DRAWS - hits])
    return {
        "total": queries * float(renyi_divergence(one[1], one[0], [order])[0]),
        "joint": float(renyi_divergence(q, p, [order])[0]),
        "ceiling": float(np.log1p(chi_squared / TEACHERS)) if order == 2.0 else None,
        "audit": float(renyi_audit(*counts[::-1], [order], cut={0}).epsilon[0]),
    }


@cache
def session_laws(queries: int) -> np.ndarray:
    """Return the law of how often 1 is released, given the one vote: 0 or 1.

    The other votes are fair coins.
    """
    others, times = np.arange(TEACHERS), np.arange(queries + 1)
    n = TEACHERS - 1
    log_weights = gammaln(n + 1) - gammaln(others + 1) - gammaln(n - others + 1) - n * np.log(2.0)
    choose = gammaln(queries + 1) - gammaln(times + 1) - gammaln(queries - times + 1)
    laws = []
    for vote in (0, 1):
        ones = others + vote
        chance = ndtr((2.0 * ones - TEACHERS) / (SIGMA * np.sqrt(2.0)))[:, None]
        given = np.exp(
            log_weights[:, None] + choose + xlogy(times, chance) + xlog1py(queries - times, -chance)
        )
        law = given.sum(axis=0)
        laws.append(law / law.sum())
    return np.array(laws)


@study(
    "pred-session",
    tolerance=0.02,
    paper={"data": ["cifar10"], "queries": [1, 3, 10], "sessions": [1_000_000]},
    reduced={"data": [SMALL], "queries": [3], "sessions": [50_000]},
)
def whole_session(data: str, queries: int, sessions: int, rng: np.random.Generator) -> list[dict]:
    """Audit sessions of a few queries as a whole, with teachers drawn from those that were trained.

    One of the queries, mislabelled, is the poison; the others are those whose votes it moves most.
    A session's score adds up the logarithms of the ratios of single answers; the cut at the median
    of a tenth of the sessions, drawn apart, is fixed before the others are counted. In the row
    without a poison teachers trained anew take the place of those trained with it: the null. What
    is audited are laws of votes as seen in some hundred trainings. Order 2 throughout.
    """
    images, before = setting(data), votes(data).pate
    shares = vote_shares(before, CLASSES)
    labels = runner_up(shares)
    rows = []
    for poison in (int(rng.choice(len(labels))), None):
        after = poisoned_votes(data, "PATE", poison, labels, rng)
        found = audited_sessions(images, before, after, queries, sessions, rng)
        rows.append({"poison": poison, **found})
    return rows


def audited_sessions(
    images: Setting,
    before: np.ndarray,
    after: np.ndarray,
    queries: int,
    sessions: int,
    rng: np.random.Generator,
) -> dict:
    """Ask the queries whose votes `after` moves most, and audit sessions as a whole."""
    shares = vote_shares(before, CLASSES)
    moved = np.abs(vote_shares(after, CLASSES) - shares).sum(axis=1)
    asked = np.argsort(-moved, kind="stable")[:queries]
    pair = pate_releases(
        before[:, asked],
        after[:, asked],
        images.teachers,
        classes=CLASSES,
        sigma=images.sigma,
    )
    single = pair.directions([2.0])[1, :, 0]  # with the point from without it, as audited
    ratios = np.log(pair.with_point) - np.log(pair.without)

    def scores(pool: np.ndarray, count: int) -> np.ndarray:
        return session_scores(
            before[:, asked],
            pool[:, asked],
            ratios,
            images.teachers,
            images.sigma,
            count,
            rng,
        )

    pilot = np.concatenate([scores(pool, sessions // 10) for pool in (before, after)])
    limit = float(np.median(pilot))
    worlds = [scores(pool, sessions) > limit for pool in (after, before)]
    hits = [[int(world.sum()), int((~world).sum())] for world in worlds]
    return {
        "total": float(single.sum()),
        "largest": float(single.max()),
        "audit": float(renyi_audit(hits[0], hits[1], [2.0], cut={0}).epsilon[0]),
        "gain": float(worlds[0].mean() - worlds[1].mean()),
        "error": float(np.sqrt(0.5 / sessions)),
    }


@njit(cache=True)
def session_scores(
    pool: np.ndarray,
    changed: np.ndarray,
    ratios: np.ndarray,
    teachers: int,
    sigma: float,
    sessions: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw teachers with all their votes, and one from `changed`; release and add up the ratios."""
    queries, classes = ratios.shape
    scores = np.zeros(sessions)
    votes = np.zeros((queries, classes))
    for session in range(sessions):
        votes[:] = 0.0
        for teacher in range(teachers):
            if teacher == 0:
                row = changed[rng.integers(0, len(changed))]
            else:
                row = pool[rng.integers(0, len(pool))]
            for query in range(queries):
                votes[query, row[query]] += 1.0
        for query in range(queries):
            best, label = -np.inf, 0
            for c in range(classes):
                noisy = votes[query, c] + sigma * rng.standard_normal()
                if noisy > best:
                    best, label = noisy, c
            scores[session] += ratios[query, label]
    return scores
