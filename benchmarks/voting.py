"""The exact law of noisy argmax, against simulation, quadrature and a sum over histograms."""

import itertools
import math
import time
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

from auditkit.mechanisms import vote_laws
from auditkit.mechanisms.voting import noisy_argmax_probabilities, vote_table

TEACHERS, CLASSES, QUERIES, SIGMA = 250, 10, 1000, 40.0
DRAWS, NEEDED = 10**6, 10**8


def measure() -> list[dict[str, Any]]:
    """Time the laws of 1,000 query pairs, and hold them against slower ways."""
    vote_table(3, [0.5, 0.5], 3.0)  # compiles
    noisy_argmax_probabilities([1, 0], 1.0)
    return [_query_pairs(), _small_sum(), _known_histograms()]


def _query_pairs() -> dict[str, Any]:
    """Both worlds of each query, from one table, against drawing them."""
    rng = np.random.default_rng(0)
    natural = rng.dirichlet(np.full(CLASSES, 0.5), size=QUERIES)
    poisoned = rng.dirichlet(np.full(CLASSES, 0.5), size=QUERIES)
    start = time.perf_counter()
    tables = vote_table(TEACHERS, natural[:, None], SIGMA)
    worlds = np.einsum("qwc,qco->qwo", np.stack([natural, poisoned], axis=1), tables)
    seconds = time.perf_counter() - start

    start = time.perf_counter()
    votes = rng.multinomial(TEACHERS, natural[0], size=DRAWS).astype(np.float64)
    votes += SIGMA * rng.standard_normal(votes.shape)
    shares = np.bincount(votes.argmax(axis=1), minlength=CLASSES) / DRAWS
    drawing = (time.perf_counter() - start) * NEEDED / DRAWS * 2 * QUERIES
    error = np.abs(shares - worlds[0, 0]) / np.sqrt(worlds[0, 0] * (1 - worlds[0, 0]) / DRAWS)
    other = vote_laws.polynomial_table(TEACHERS - 1, natural[0], SIGMA)
    difference = np.abs(tables[0] - other).max()
    return _row(
        f"exact laws of {QUERIES:,} query pairs, {TEACHERS} teachers, {CLASSES} classes",
        f"{NEEDED:.0e} draws a query and world (extrapolated from {DRAWS:.0e} draws of one)",
        seconds,
        drawing,
        f"within {difference:.0e} of polynomials multiplied out, {error.max():.1f} standard errors "
        f"of {DRAWS:.0e} draws",
    )


def _small_sum() -> dict[str, Any]:
    """One law by the sum over all histograms and quadrature, where that can be waited for."""
    teachers, p = 20, np.array([0.5, 0.3, 0.2])
    start = time.perf_counter()
    law = p @ vote_table(teachers, p, SIGMA / 10)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    slow = np.zeros(3)
    for first, second in itertools.product(range(teachers + 1), repeat=2):
        if first + second <= teachers:
            histogram = np.array([first, second, teachers - first - second])
            ways = math.factorial(teachers) / math.prod(math.factorial(n) for n in histogram)
            slow += ways * (p**histogram).prod() * _by_quadrature(histogram, SIGMA / 10)
    return _row(
        f"exact law of one query, {teachers} teachers, 3 classes",
        "the sum over all histograms, each by scipy's quad",
        seconds,
        time.perf_counter() - start,
        f"largest difference {np.abs(law - slow).max():.0e}",
    )


def _known_histograms() -> dict[str, Any]:
    """Laws of histograms that are known."""
    rng = np.random.default_rng(1)
    histograms = rng.multinomial(TEACHERS, np.full(CLASSES, 0.1), size=10_000)
    start = time.perf_counter()
    laws = noisy_argmax_probabilities(histograms, SIGMA)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    slow = np.array([_by_quadrature(histogram, SIGMA) for histogram in histograms[:10]])
    return _row(
        f"noisy argmax of 10,000 histograms, {CLASSES} classes",
        "scipy's quad, a class at a time (extrapolated from 10 histograms)",
        seconds,
        (time.perf_counter() - start) * 1000,
        f"largest difference {np.abs(laws[:10] - slow).max():.0e}",
    )


def _by_quadrature(histogram: np.ndarray, sigma: float) -> np.ndarray:
    scaled = histogram / sigma

    def density(x: float, label: int) -> float:
        rest = ndtr(x - np.delete(scaled, label)).prod()
        return float(math.exp(-0.5 * (x - scaled[label]) ** 2) / math.sqrt(2 * math.pi) * rest)

    ends = scaled.min() - 9, scaled.max() + 9
    labels = range(len(scaled))
    return np.array(
        [quad(density, *ends, args=(i,), epsabs=1e-13, epsrel=1e-12, limit=400)[0] for i in labels]
    )


def _row(
    what: str, baseline: str, seconds: float, baseline_seconds: float, agreement: str
) -> dict[str, Any]:
    return {
        "what": what,
        "baseline": baseline,
        "seconds": seconds,
        "baseline_seconds": baseline_seconds,
        "ratio": baseline_seconds / seconds,
        "agreement": agreement,
    }
