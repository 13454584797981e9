"""Figures 2b and 2c on real data: audits of the networks that `heads` and `pixel_networks` train.

Nothing is trained here but propensities. They are fitted on 10,000 records, as in the synthetic
game, and on all that are left, 40,000 at most; of none of them is anybody audited, and no network
has seen one. Algorithm 4 needs no such records: it fits on the audited ones, crosswise.
"""

from typing import Any

import numpy as np
from scipy.special import expit

from auditkit import zero_run
from auditkit.attacks.propensity import (
    conservative_propensity,
    cross_fit,
    fit_propensity,
    propensity_bootstrap,
    rival_guesses,
)
from auditkit.bounds.propensity import diagnose_propensity
from auditkit.experiment import study
from experiments.zero_run.audits import (
    CORRECTED,
    DELTA,
    EXAMPLES,
    LEVEL,
    POSTERIOR,
    SINGLE,
    audit_rows,
    guesses_of,
)
from experiments.zero_run.games import CENSUS, HARD, MIX, PATIENTS, SIZES, Game, Pool, play
from experiments.zero_run.heads import HEADS, PATIENT_HEADS, PLACEBO, TARGET, cells, told
from experiments.zero_run.pixel_networks import PIXELS

TRUE, FITTED, RESAMPLED, LIMIT = "true", "fitted", "bootstrapped", "simultaneous limit"
CROSS = "cross-fitted"
NARROW, WIDE = "10,000", "all that are left"  # records that propensities are fitted on
FEATURES, IMAGES = "head on features", "network on pixels"
SOURCES = {MIX: HEADS, HARD: HEADS, CENSUS: HEADS, PATIENTS: PATIENT_HEADS}
# audits of (ε, δ) itself, and how they correct
APPROX = {
    "(ε, δ), composition": "composition",
    "(ε, δ), conditional": "conditional",
    "(ε, δ), untampered": "untampered",
}


def audits(
    data: str,
    split: str,
    seed: int,
    records: str,
    bootstraps: int,
    digits: int | None = None,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit networks by their losses, and those that were trained on other members.

    The attack is the loss: members have a low one. ``auc``, ``kept_share`` and ``refused`` are what
    the diagnostics say of each set of propensities. Where two propensities change places thinning
    draws anew: those rounded to a few `digits` stay in order on other processors.
    """
    pool, game = play(data, split, seed)
    examples, members = game.audited
    scores = {
        (network, release): -told(id_, data=data, split=split, seed=seed, release=release)
        for network, id_ in ((FEATURES, SOURCES[data]), (IMAGES, PIXELS))
        if network == FEATURES or data in (MIX, HARD)
        for release in (TARGET, PLACEBO)
    }
    rows = []
    for source, exact in propensities(pool, game, records, bootstraps, rng).items():
        propensity = exact if digits is None else exact.round(digits)
        typical = propensity if propensity.ndim == 1 else np.median(propensity, axis=0)
        rival = rival_guesses(pool.seen[examples], members, typical, rng=rng)
        report = diagnose_propensity(typical, members, *rival, rng=rng)
        about = {
            "propensities": source,
            "auc": report.auc,
            "kept_share": report.kept,
            "largest_shift": report.largest_shift,
            "refused": report.test.rejected,
        }
        fitted = source in (FITTED, RESAMPLED, CROSS)
        for (network, release), score in scores.items():
            found = audit_rows(score, members, propensity, fitted=fitted, rng=rng)
            if propensity.ndim == 1:
                found += approx_rows(score, members, propensity, fitted=fitted, rng=rng)
            rows += [{"network": network, "release": release, **about, **row} for row in found]
    return rows


def propensities(
    pool: Pool, game: Game, records: str, bootstraps: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the propensities of the audited records, from each source that there is."""
    most = EXAMPLES if records == NARROW else None
    seen, spare = pool.seen[game.fitting[0][:most]], game.fitting[1][:most]
    wanted, members = pool.seen[game.audited[0]], game.audited[1]
    found = {
        FITTED: fit_propensity(seen, spare, rng=rng).propensity(wanted),
        RESAMPLED: propensity_bootstrap(seen, spare, wanted, bootstraps=bootstraps, rng=rng),
    }
    if records == NARROW:
        found[LIMIT] = conservative_propensity(seen, spare, wanted, confidence=1.0 - LEVEL)
        found[CROSS] = cross_fit(wanted, members, rng=rng)
        if pool.odds is not None:
            found[TRUE] = expit(pool.odds[game.audited[0]])
    return found


def approx_rows(
    scores: np.ndarray,
    members: np.ndarray,
    propensity: np.ndarray,
    *,
    fitted: bool,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """Audit (ε, δ) itself, by posterior guesses, with one number of guesses and the best of six."""
    odds = np.log(propensity) - np.log1p(-propensity)
    made, seed = guesses_of(POSTERIOR, scores, odds), int(rng.integers(2**63))
    rows = []
    for audit, correction in APPROX.items():
        for choice, guesses in ((SINGLE, made[0]), (CORRECTED, made)):
            bound = zero_run(
                guesses,
                members,
                propensity,
                correction=correction,
                family="approx",
                delta=DELTA,
                confidence=1.0 - LEVEL,
                rng=seed,
            )
            rows.append(
                {
                    "audit": audit,
                    "choice": choice,
                    "claim": "estimate" if fitted else bound.claim,
                    "mu": None,
                    "bound": float(bound.epsilon),
                    "guesses": bound.details["guesses"],
                    "correct": bound.details["correct"],
                    "kept": float(bound.details["kept"]),
                }
            )
    return rows


def counted(*data: str) -> list[dict]:
    """Return the paper profile's cells for some of the data."""
    return [
        cell | {"records": records, "bootstraps": 600}
        for cell in cells(*data)
        for records in (NARROW, WIDE)
        if records == NARROW or SIZES[cell["data"]][2] > EXAMPLES
    ]


REDUCED = [
    {"data": MIX, "split": split, "seed": seed, "records": NARROW, "bootstraps": 5, "digits": 2}
    for split, seed in (("IID", 1), ("OOD", 0))
]
real = study(
    "zero-real",
    tolerance=0.02,
    paper=counted(MIX, HARD, CENSUS),
    live=REDUCED,
    reduced=REDUCED,
    sources=[HEADS, PIXELS],
)(audits)
patients = study(
    "zero-patients",
    tolerance=0.02,
    paper=counted(PATIENTS),
    sources=[PATIENT_HEADS],
    needs="the tables of the Heritage Health Prize, which are not ours to ship",
)(audits)
