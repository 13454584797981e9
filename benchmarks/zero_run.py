"""Zero-run audits: bootstraps over propensities against the plain way to make each of them."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from auditkit.bounds.zero_run import zero_run, zero_run_bootstrap

EXAMPLES, SETS, FEW = 10_000, 600, 3
AUDIT: dict[str, Any] = {"correction": "untampered", "family": "approx", "delta": 0.0}


def measure() -> list[dict[str, Any]]:
    """Time 600 bootstraps of 10,000 untampered guesses, the plain way on a few of them."""
    rng = np.random.default_rng(0)
    prior = 0.5 * rng.normal(size=EXAMPLES)
    members = rng.random(EXAMPLES) < expit(prior)
    guesses = np.where(prior + 2.0 * rng.normal(np.where(members, 1.0, -1.0)) > 0, 1, -1)
    sets = expit(prior + rng.normal(0.0, 0.1, (SETS, EXAMPLES)))
    found = [zero_run(guesses, members, row, **AUDIT).epsilon for row in sets[:FEW]]
    start = time.perf_counter()
    zero_run_bootstrap(guesses, members, sets, **AUDIT)
    seconds = (time.perf_counter() - start) / SETS
    wrong = int((guesses != np.where(members, 1, -1)).sum())
    start = time.perf_counter()
    slow = [_bisect(np.abs(logit(row)), wrong, 0.05) for row in sets[:FEW]]
    baseline = (time.perf_counter() - start) / FEW
    return [
        {
            "what": f"zero run, untampered, {SETS} bootstraps of {EXAMPLES} guesses",
            "baseline": "bisection over ε, the law built anew by numpy at each ε",
            "seconds": seconds,
            "baseline_seconds": baseline,
            "ratio": baseline / seconds,
            "agreement": float(np.max(np.abs(np.divide(found, slow) - 1.0))),
        }
    ]


def _bisect(shifts: NDArray[np.float64], wrong: int, level: float) -> float:
    """Return the ε at which so few wrong guesses have the chance `level`."""
    low, high = 0.0, 20.0
    while high - low > 1e-8:
        middle = (low + high) / 2.0
        law = np.zeros(wrong + 1)
        law[0] = 1.0
        for miss in expit(-middle - shifts):
            law[1:] = law[1:] * (1.0 - miss) + law[:-1] * miss
            law[0] *= 1.0 - miss
        low, high = (middle, high) if law.sum() <= level else (low, middle)
    return low


if __name__ == "__main__":
    for row in measure():
        print(row)
