"""What the experiments of the chapter share: how guesses are made, and the audits compared."""

from collections.abc import Callable

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

from auditkit import zero_run, zero_run_bootstrap
from auditkit.attacks.membership import posterior_log_odds, top_guesses

DELTA = 1e-5
LEVEL = 0.025  # of an audit; with resampled propensities the quantile takes as much again
EXAMPLES = 10_000
NUMBERS = (1000, 500, 200, 100, 50, 25)  # the paper abstains on the others
LARGEST, CORRECTED, SINGLE = "largest of six", "corrected for six", "1,000 guesses"

# what the paper calls confidence is not defined: how far a score lies from the median, or how high
# it ranks by that, which is bounded, so that no score outweighs b
UNAWARE, AWARE, RANKED = "unaware", "confidence × b", "rank × b"
POSTERIOR, SHARP_POSTERIOR = "posterior", "posterior, sharp b"

# evidence, and what a guess is worth, from scores and the log-odds that the attack believes
RANKINGS: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    UNAWARE: lambda scores, _: (scores, np.abs(scores)),
    AWARE: lambda scores, odds: (scores, np.abs(scores) * np.exp(-np.abs(odds))),
    RANKED: lambda scores, odds: (scores, rankdata(np.abs(scores)) * np.exp(-np.abs(odds))),
    POSTERIOR: lambda scores, odds: _posterior(scores, odds, np.exp(-np.abs(odds))),
    # at μ = 0, where the smallest share is kept
    SHARP_POSTERIOR: lambda scores, odds: _posterior(
        scores, odds, 0.5 * (1.0 + np.exp(-np.abs(odds)))
    ),
}

# the correction, and how guesses are ranked
AUDITS = {
    "no correction": ("none", UNAWARE),
    "composition": ("composition", UNAWARE),
    "conditional, unaware": ("conditional", UNAWARE),
    "conditional, aware": ("conditional", AWARE),
    "conditional, aware by rank": ("conditional", RANKED),
    "conditional, posterior": ("conditional", POSTERIOR),
    "sharp, unaware": ("sharp", UNAWARE),
    "sharp, posterior": ("sharp", SHARP_POSTERIOR),
}


def _posterior(
    scores: np.ndarray, odds: np.ndarray, keep: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    evidence = posterior_log_odds(scores, odds)
    return evidence, keep * expit(np.abs(evidence))


def guesses_of(ranking: str, scores: np.ndarray, odds: np.ndarray) -> np.ndarray:
    """Return the guesses of an attack, a row for each of the six numbers."""
    centred = scores - np.median(scores)
    evidence, worth = RANKINGS[ranking](centred, odds)
    return top_guesses(evidence, NUMBERS, worth=worth)


def audit_rows(
    scores: np.ndarray,
    members: np.ndarray,
    propensity: np.ndarray,
    *,
    fitted: bool,
    rng: np.random.Generator,
) -> list[dict]:
    """Make every audit with one set of propensities, or with many, by how the number was chosen.

    With many the level of the quantile is added to that of the audits. Propensities that were
    fitted and are taken at their word prove nothing: what comes of them is an estimate.
    """
    seed = int(rng.integers(2**63))
    typical = propensity if propensity.ndim == 1 else np.median(propensity, axis=0)
    odds = np.log(typical) - np.log1p(-typical)
    made = {ranking: guesses_of(ranking, scores, odds) for ranking in RANKINGS}
    rows = []
    for audit, (correction, ranking) in AUDITS.items():
        single = [
            _bound(guesses, members, propensity, correction, seed) for guesses in made[ranking]
        ]
        together = _bound(made[ranking], members, propensity, correction, seed)
        best = max(single, key=lambda bound: bound.details["mu"])
        for choice, bound in ((SINGLE, single[0]), (LARGEST, best), (CORRECTED, together)):
            rows.append(
                {
                    "audit": audit,
                    "choice": choice,
                    "claim": "estimate" if fitted or choice == LARGEST else bound.claim,
                    "mu": bound.details["mu"],
                    "bound": float(bound.epsilon),
                    "guesses": bound.details["guesses"],
                    "correct": bound.details["correct"],
                    "kept": float(bound.details["kept"]),
                }
            )
    return rows


def _bound(guesses, members, propensity, correction, seed):
    options = {"correction": correction, "delta": DELTA, "rng": seed}
    if propensity.ndim == 1:
        return zero_run(guesses, members, propensity, confidence=1.0 - LEVEL, **options)
    return zero_run_bootstrap(guesses, members, propensity, confidence=1.0 - 2 * LEVEL, **options)
