"""Bounds from one run: the compiled recursion against a plain loop over scipy's scalar functions.

The loop is the one anybody would write: bisection over μ to the same tolerance, one call of
`ndtri` and one of `ndtr` a step. It leaves a pass as soon as the pass rejects; in a second version
it leaves as well where nothing grows any more, which most published code does not do.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import block_array, coo_array, eye_array
from scipy.special import ndtr, ndtri

from auditkit.bounds.one_run import one_run
from auditkit.bounds.one_run_fdp import best_over_thresholds, largest_rejected, one_run_fdp

TOLERANCE = 1e-8
CONFIDENCES = (0.9, 0.95, 0.99, 0.999)
LANES = 10_000


def measure() -> list[dict[str, Any]]:
    """Time both bounds on arrays of counts, and the best of 100 thresholds."""
    one_run(np.full(100, 90), 100, 100)
    one_run_fdp(np.full(100, 90), 100, 100)  # compile, or load what was compiled
    best_over_thresholds(np.full((2, 2), 90), 100, 100)
    rng = np.random.default_rng(0)
    dense = rng.integers(8_800, 9_200, LANES)
    sparse = rng.integers(600, 900, LANES)
    return [
        _bounds("m = r = 10,000, c about 9,000", dense, 10_000, False, 4),
        _bounds("m = r = 10,000, c about 9,000", dense, 10_000, True, 40),
        _bounds("m = 10,000, r = 1,000, c = 600 to 900", sparse, 1_000, True, 40),
        _best(rng),
        _exact(sparse),
    ]


def _bounds(
    what: str, correct: NDArray[np.int64], guesses: int, leaves: bool, few: int
) -> dict[str, Any]:
    """Compare seconds a bound, the loop on `few` of the counts."""
    start = time.perf_counter()
    found = np.concatenate(
        [
            np.asarray(one_run_fdp(part, guesses, 10_000, confidence=confidence).details["mu"])
            for part, confidence in zip(np.split(correct, 4), CONFIDENCES, strict=True)
        ]
    )
    seconds = (time.perf_counter() - start) / len(correct)
    picked = np.linspace(0, len(correct) - 1, few).astype(int)
    levels = 1.0 - np.repeat(CONFIDENCES, len(correct) // 4)
    start = time.perf_counter()
    slow = np.array([_loop(int(correct[i]), guesses, 10_000, levels[i], leaves) for i in picked])
    baseline = (time.perf_counter() - start) / few
    exits = "leaves on rejection and where nothing grows" if leaves else "leaves on rejection"
    return {
        "what": f"f-DP bound, {what}, {len(correct)} counts at four confidences",
        "baseline": f"a plain loop over scipy's scalar functions that {exits}",
        "seconds": seconds,
        "baseline_seconds": baseline,
        "ratio": baseline / seconds,
        "agreement": float(np.max(np.abs(found[picked] / slow - 1.0))),
    }


def _exact(correct: NDArray[np.int64]) -> dict[str, Any]:
    """Compare the exact (ε, δ) bound with bisection over linear programs, on four of the counts."""
    start = time.perf_counter()
    found = np.asarray(one_run(correct, 1_000, 10_000).epsilon)
    seconds = (time.perf_counter() - start) / len(correct)
    picked = np.linspace(0, len(correct) - 1, 4).astype(int)
    start = time.perf_counter()
    slow = np.array([_by_programs(int(correct[i]), 1_000, 0.1) for i in picked])
    baseline = (time.perf_counter() - start) / len(picked)
    return {
        "what": f"(ε, δ) bound, m = 10,000, r = 1,000, c = 600 to 900, {len(correct)} counts",
        "baseline": "bisection over linear programs, scipy's HiGHS, to 1e-6",
        "seconds": seconds,
        "baseline_seconds": baseline,
        "ratio": baseline / seconds,
        "agreement": float(np.max(np.abs(found[picked] / slow - 1.0))),
    }


def _by_programs(correct: int, guesses: int, weight: float) -> float:
    """Return the largest ε at which the best law of right guesses meets 5%."""
    k = np.arange(1, guesses + 1)
    kept = coo_array((k, (k - 1, k)), shape=(guesses, guesses + 1))
    lost = coo_array((guesses - k + 1.0, (k - 1, k - 1)), shape=(guesses, guesses + 1))
    slack, none = -eye_array(guesses), coo_array((guesses, guesses))
    spent = np.append(np.zeros(guesses + 1), np.ones(2 * guesses))
    wanted = np.append(-1.0 * (np.arange(guesses + 1) >= correct), np.zeros(2 * guesses))
    low, high = 0.0, 8.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        g = np.exp(middle)
        rows = block_array([[kept - g * lost, slack, none], [lost - g * kept, none, slack]])
        limits = block_array([[rows], [coo_array(spent[None])]]).tocsr()
        budget = np.append(np.zeros(2 * guesses), weight)
        best = linprog(wanted, limits, budget, (spent == 0)[None].astype(float), [1.0])
        low, high = (middle, high) if -best.fun <= 0.05 else (low, middle)
    return low


def _best(rng: np.random.Generator) -> dict[str, Any]:
    """Compare the best of 100 thresholds with a search at every threshold, 100 repetitions."""
    m, mu = 200_000, 0.5
    guesses = np.arange(1, 101) * (m // 100)
    correct = np.stack([_channel(rng, m, mu, guesses) for _ in range(100)])
    start = time.perf_counter()
    best, _ = best_over_thresholds(correct, guesses, m)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    every = largest_rejected(
        correct, guesses, np.asarray(m), family="gaussian", level=0.05, tau=0.0
    )
    baseline = time.perf_counter() - start
    return {
        "what": "best of 100 thresholds, 100 repetitions, m = 200,000",
        "baseline": "a compiled search at every threshold",
        "seconds": seconds,
        "baseline_seconds": baseline,
        "ratio": baseline / seconds,
        "agreement": float(np.max(np.abs(best / every.max(axis=-1) - 1.0))),
    }


def _channel(
    rng: np.random.Generator, m: int, mu: float, guesses: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the correct guesses of the best attack on m Gaussian channels, surest first."""
    member = rng.random(m) < 0.5
    evidence = rng.standard_normal(m) + mu * (member - 0.5)
    right = ((evidence > 0) == member)[np.argsort(-np.abs(evidence))]
    counts: NDArray[np.int64] = np.cumsum(right)[guesses - 1]
    return counts


def _loop(correct: int, guesses: int, examples: int, level: float, leaves: bool) -> float:
    """Return the largest rejected μ by bisection."""
    low, high = 0.0, 1.0
    while _rejects(high, correct, guesses, examples, level, leaves):
        low, high = high, 2.0 * high
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2.0
        if _rejects(middle, correct, guesses, examples, level, leaves):
            low = middle
        else:
            high = middle
    return low


def _rejects(
    mu: float, correct: int, guesses: int, examples: int, level: float, leaves: bool
) -> bool:
    """Run the recursion once."""
    r, h = level * correct / examples, level * (guesses - correct) / examples
    for i in range(correct - 1, -1, -1):
        new = max(h, ndtr(ndtri(r) - mu))
        if leaves and new == h:
            break
        r, h = r + i / (guesses - i) * (new - h), new
        if r + h >= guesses / examples:
            return True
    return False


if __name__ == "__main__":
    table: Callable[[], list[dict[str, Any]]] = measure
    for row in table():
        print(row)
