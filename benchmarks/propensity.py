"""Propensities on resampled data: all resamples at once against one fit after another."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from auditkit.attacks.propensity import propensity_bootstrap
from auditkit.mechanisms.noisy_sum import PulledSphere

EXAMPLES, SETS, FEW = 10_000, 600, 5


def measure() -> list[dict[str, Any]]:
    """Time 600 resamples of 10,000 examples, the loop on a few of them."""
    return [_row(50), _row(1000)]


def _row(features: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    family = PulledSphere(features, 2.0, 1.0)
    members = rng.random(EXAMPLES) < 0.5
    records = family.draw(members, rng=rng)
    audited = family.draw(rng.random(EXAMPLES) < 0.5, rng=rng)
    propensity_bootstrap(records, members, audited, bootstraps=2, rng=1)
    start = time.process_time()
    ours = propensity_bootstrap(records, members, audited, bootstraps=SETS, rng=1)
    seconds = time.process_time() - start
    start = time.process_time()
    drawn = np.random.default_rng(1).integers(EXAMPLES, size=(min(SETS, 300), EXAMPLES))[:FEW]
    theirs = [_one(records, members, audited, row) for row in drawn]
    baseline = (time.process_time() - start) * SETS / FEW
    gap = np.abs(np.stack(theirs) - ours[:FEW]).max()
    return {
        "what": f"propensities, {SETS} resamples of {EXAMPLES:,} examples, {features:,} features",
        "baseline": f"scikit-learn, one resample after another, extrapolated from {FEW}",
        "seconds": seconds,
        "baseline_seconds": baseline,
        "ratio": baseline / seconds,
        "agreement": f"propensities differ by {gap:.1g} at most",
    }


def _one(
    records: NDArray[np.float32],
    members: NDArray[np.bool_],
    audited: NDArray[np.float32],
    drawn: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Fit on a resample, calibrate on what it has left out, and score the audited examples."""
    centre, scale = records.mean(axis=0), records.std(axis=0)
    counts = np.bincount(drawn, minlength=EXAMPLES)
    rows, out = (records - centre) / scale, counts == 0
    fit = LogisticRegression(C=1.0, max_iter=1000).fit(rows, members, sample_weight=counts)
    calibrated = CalibratedClassifierCV(FrozenEstimator(fit)).fit(rows[out], members[out])
    chances: NDArray[np.float64] = calibrated.predict_proba((audited - centre) / scale)[:, 1]
    return chances


if __name__ == "__main__":
    for row in measure():
        print(row)
