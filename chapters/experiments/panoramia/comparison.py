"""One set of scores, several theories: slack in the closeness, and audits by propensities.

PANORAMIA gives every example the same, worst, chance to be real: c bounds all log-odds. An audit
without runs of its own (ZERO) takes the log-odds of each example, from a model that is fitted on
real and generated examples of no other use.
"""

import numpy as np
from scipy.special import expit, logit

from auditkit import panoramia, zero_run
from auditkit.attacks.generated import Mixture
from auditkit.attacks.membership import posterior_log_odds, top_guesses
from auditkit.attacks.propensity import fit_propensity, rival_guesses
from auditkit.bounds.propensity import diagnose_propensity
from auditkit.evidence import PairedScores
from auditkit.experiment import study
from experiments.panoramia.audits import NULL, TARGET
from experiments.panoramia.images import (
    AUDITED,
    SEEDS,
    TRIAL,
    TRIAL_CURVES,
    Quality,
    coins_of,
    helper_of,
    loss_of,
    mixture,
    network,
)

LEVEL = 0.025
NUMBERS = (1000, 500, 200, 100, 50, 25)
DELTA = 1e-5


@study(
    "pan-relaxed",
    paper={
        "slack": [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2],
        "delta": [0.0, 1e-5],
        "seed": SEEDS,
        "flips": [3],
        "epochs": [20, 60],
    },
    live={"slack": [1e-3], "delta": [1e-5], **TRIAL},
    reduced={"slack": [1e-3], "delta": [1e-5], **TRIAL},
    tolerance=0.02,
)
def relaxed(
    slack: float, delta: float, seed: int, flips: int, epochs: int, trial: bool = False
) -> list[dict]:
    """Measure with (c, γ)-closeness and (ε, δ)-DP, at all thresholds and at a joint confidence."""
    mixed, helper = (
        mixture(seed, Quality(trial=trial)),
        helper_of(seed, Quality(trial=trial)),
    )
    baseline = mixed.scores(helper)
    coins = np.random.default_rng(coins_of(seed)).random((flips, AUDITED)) < 0.5
    rows = []
    for release in (TARGET, NULL):
        attack = mixed.scores(helper, loss_of(network(seed, release, epochs), trial))
        for flip, real in enumerate(coins):
            result = panoramia(
                baseline.shown(real),
                attack.shown(real),
                real,
                delta=delta,
                closeness_slack=slack,
            )
            rows.append(
                {
                    "release": release,
                    "flip": flip,
                    "c_lower": result.c_lower,
                    "both_lower": result.c_plus_epsilon_lower,
                    "difference": result.details["difference"],
                    "baseline_discounted": result.details["baseline_discounted"],
                    "attack_discounted": result.details["attack_discounted"],
                }
            )
    return rows


AUDITS = {
    "no correction": ("none", "approx"),
    "conditional": ("conditional", "approx"),
    "untampered": ("untampered", "approx"),
    "conditional, Gaussian": ("conditional", "gaussian"),
    "sharp, Gaussian": ("sharp", "gaussian"),
}
FITTED, WORST = "fitted", "c for all"


@study(
    "pan-propensities",
    paper={"seed": SEEDS, "epochs": [5, 20, 60]},
    live=TRIAL_CURVES,
    reduced=TRIAL_CURVES,
    tolerance=0.02,
)
def propensities(
    seed: int, epochs: int, rng: np.random.Generator, trial: bool = False
) -> list[dict]:
    """Audit the same examples by ZERO and by PANORAMIA, for the audited model and its null.

    The attack is the difference of the helper's and the model's loss. "fitted" propensities are a
    logistic regression on the baseline's score and the helper's loss, on pairs that are not
    audited; with "c for all" each example is given log-odds of PANORAMIA's lower bound c_lb, which
    is what its ε̃ amounts to. Only pure ε compares with ε̃; the Gaussian audits state ε at 1e-5.
    """
    mixed, helper = (
        mixture(seed, Quality(trial=trial)),
        helper_of(seed, Quality(trial=trial)),
    )
    half = AUDITED // 2
    # half of the pairs fit the propensities, on a score that was not fitted on them
    blind = mixed.scores(helper)
    real = np.random.default_rng(coins_of(seed)).random(AUDITED) < 0.5
    features = np.column_stack((blind.shown(real), _shown(mixed, helper, real)))
    draws = np.random.default_rng((seed, 5))  # one fit a seed, whichever model is audited by it
    fitted = fit_propensity(features[:half], real[:half], rng=draws).propensity(features[half:])
    rival = rival_guesses(features[half:], real[half:], fitted, rng=draws)
    report = diagnose_propensity(fitted, real[half:], *rival, rng=draws)
    audited, members = slice(half, None), real[half:]
    rows = []
    for release in (TARGET, NULL):
        loss = loss_of(network(seed, release, epochs), trial)
        attack = mixed.scores(helper, loss)
        weak, strong = (
            PairedScores(each.real[audited], each.other[audited]).shown(members)
            for each in (blind, attack)
        )
        game = panoramia(weak, strong, members)
        about = {
            "release": release,
            "auc": report.auc,
            # 1 if refused: a number, since a verdict near its level turns with the processor
            "refused": int(report.test.rejected),
        }
        rows.append(
            {
                **about,
                "audit": "PANORAMIA",
                "propensity": WORST,
                "bound": game.details["difference"],
                "claim": game.claim,
            }
        )
        evidence = _shown(mixed, helper, real)[audited] - _shown(mixed, loss, real)[audited]
        for source, chances in (
            (FITTED, fitted),
            (WORST, np.full(half, expit(max(game.c_lower, 1e-9)))),
        ):
            odds = np.log(chances) - np.log1p(-chances)
            posterior = posterior_log_odds(evidence, odds if source == FITTED else logit(fitted))
            if source == WORST:
                # as in PANORAMIA, where nobody is guessed to be generated
                posterior = np.maximum(posterior, 0.0)
            keep = np.exp(-np.abs(odds)) * expit(np.abs(posterior))
            guesses = top_guesses(posterior, NUMBERS, worth=keep)
            for audit, (correction, family) in AUDITS.items():
                bound = zero_run(
                    guesses,
                    members,
                    chances,
                    correction=correction,
                    family=family,
                    delta=DELTA if family == "gaussian" else 0.0,
                    confidence=1.0 - LEVEL,
                    rng=int(rng.integers(2**63)),
                )
                rows.append(
                    {
                        **about,
                        "audit": audit,
                        "propensity": source,
                        "bound": bound.epsilon,
                        "claim": "estimate",
                    }
                )
    return rows


def _shown(mixed: Mixture, loss, real: np.ndarray) -> np.ndarray:
    return np.where(real, loss(mixed.real), loss(mixed.other)).astype(np.float64)
