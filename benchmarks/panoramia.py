"""PANORAMIA over all thresholds: one vectorised call against one test at a time.

The naive way scans the scores, and at each one asks scipy for the Clopper-Pearson bound. With
slack in the closeness it searches the bound by bisection over the sum that Steinke et al. (2023)
write down.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import beta, binom

from auditkit import panoramia

CONFIDENCE = 0.95


def measure() -> list[dict[str, Any]]:
    """Time the estimate at m = 10,000, and with slack at m = 500."""
    _timed(_example(100), 1e-6)  # compile, or load what was compiled
    return [_row(10_000, 0.0, 5), _row(500, 1e-6, 1)]


def _row(examples: int, slack: float, repeats: int) -> dict[str, Any]:
    example = _example(examples)
    runs = [_timed(example, slack) for _ in range(repeats)]
    seconds, found = min(run[0] for run in runs), runs[0][1]
    baseline, attack, members = example
    start = time.perf_counter()
    slow = np.array([_scan(scores, members, slack) for scores in (baseline, attack)])
    baseline_seconds = time.perf_counter() - start
    relaxed = f", closeness slack {slack:g}" if slack else ""
    return {
        "what": f"PANORAMIA, both tests over all thresholds, m = {examples:,}{relaxed}",
        "baseline": "a scan that calls scipy at each threshold",
        "seconds": seconds,
        "baseline_seconds": baseline_seconds,
        "ratio": baseline_seconds / seconds,
        "agreement": float(np.max(np.abs(found / slow - 1.0))),
    }


def _example(
    examples: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(0)
    members = rng.random(examples) < 0.5
    weak, strong = (members + rng.normal(0, spread, examples) for spread in (1.0, 0.5))
    return weak, strong, members


def _timed(example: tuple[Any, ...], slack: float) -> tuple[float, NDArray[np.float64]]:
    start = time.perf_counter()
    result = panoramia(*example, closeness_slack=slack, confidence=CONFIDENCE)
    seconds = time.perf_counter() - start
    return seconds, np.array([result.c_lower, result.c_plus_epsilon_lower])


def _scan(scores: NDArray[np.float64], members: NDArray[np.bool_], slack: float) -> float:
    thresholds = np.unique(scores)
    level = (1.0 - CONFIDENCE) / 2.0 / len(thresholds)
    best = 0.0
    for threshold in thresholds:
        guessed = scores >= threshold
        r, v = int(guessed.sum()), int(members[guessed].sum())
        if v == 0:
            continue
        if slack == 0.0:
            best = max(best, float(logit(beta.ppf(level, v, r - v + 1))))
        else:
            best = max(best, _bisect(r, v, 2.0 * len(scores) * slack, level))
    return best


def _bisect(r: int, v: int, failures: float, level: float) -> float:
    back = np.arange(1, v + 1)

    def chance(log_odds: float) -> float:
        tail = binom.sf(v - 1, r, expit(log_odds))
        steps = (binom.sf(v - back - 1, r, expit(log_odds)) - tail) / back
        return float(tail + failures * steps.max())

    low, high = 0.0, 40.0
    if chance(low) > level:
        return 0.0
    while high - low > 1e-11:
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance(middle) <= level else (low, middle)
    return low


if __name__ == "__main__":
    for row in measure():
        print(row)
