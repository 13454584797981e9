"""How often a zero-run audit finds a leak where there is none.

The audited mechanism sums members who are not audited: drawn like the audited ones, they give it
the direction of the shift and nothing else. So μ = 0, and a bound above 0 is false. At μ = 0 the
tests are as sharp as they get; further up counts are compared with more than they could be.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from auditkit import reject_propensity
from auditkit.attacks.logistic import fit_columns
from auditkit.attacks.membership import posterior_log_odds
from auditkit.attacks.propensity import (
    conservative_propensity,
    fit_propensity,
    propensity_bootstrap,
)
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.poisson_binomial import poisson_binomial_tail
from auditkit.experiment import study
from auditkit.mechanisms.noisy_sum import PulledSphere
from experiments.validity import clopper_pearson
from experiments.zero_run.audits import (
    CORRECTED,
    DELTA,
    EXAMPLES,
    LARGEST,
    LEVEL,
    NUMBERS,
    SINGLE,
)
from experiments.zero_run.synthetic import ESTIMATED, LINE, MU, TRUE

PULL = 2.0
BOOTSTRAP, REBASED = "bootstrapped", "bootstrapped, re-based"
POINTWISE, SIMULTANEOUS = "pointwise limit", "simultaneous limit"
SPENT = 0.5 * LEVEL  # by the limits; the audits have the other half
KNOWING, BY_RANK = "knows the shift", "aware by rank"
FORMULA, FITTED, RESAMPLED = "formula", "fitted", "resampled"
CHOICES = (SINGLE, LARGEST, CORRECTED)
MOST = NUMBERS[0]

AUDITS = (
    ("none", "unaware"),
    ("composition", "unaware"),
    ("conditional", "unaware"),
    ("conditional", "aware"),
    ("conditional", BY_RANK),
    ("conditional", "posterior"),
    ("conditional", KNOWING),
    ("sharp", "unaware"),
    ("sharp", "posterior"),
    ("sharp", KNOWING),
    ("untampered", "posterior"),
    ("untampered", KNOWING),
)


def batches(*settings: tuple[str, int, tuple[float, ...], int, int]) -> list[dict]:
    """Return the cells of each setting: so many runs a cell, and so many cells."""
    return [
        {"source": source, "dimension": dimension, "rho": rho, "runs": runs, "batch": batch}
        for source, dimension, shares, runs, several in settings
        for rho in shares
        for batch in range(several)
    ]


@study(
    "zero-validity",
    # regressions stop a little before the root, in single precision: now and then a run that is
    # close to the border falls on the other side of it
    tolerance=2e-3,
    paper=batches(
        (FORMULA, 1000, (1.0, 0.9, 0.5, 0.25), 1000, 2),
        (FITTED, 50, (1.0, 0.5), 200, 10),
        (FITTED, 1000, (0.5,), 20, 12),
        (RESAMPLED, 50, (1.0, 0.5), 100, 4),
        (RESAMPLED, 300, (0.5,), 50, 8),
        (RESAMPLED, 1000, (0.5,), 20, 5),
    ),
    live=batches((FORMULA, 1000, (1.0, 0.5), 100, 1), (FITTED, 50, (0.5,), 10, 1)),
)
def false_bounds(
    source: str, dimension: int, rho: float, runs: int, batch: int, rng: np.random.Generator
) -> list[dict]:
    """Repeat the audit of a mechanism that leaks nothing, and count the bounds above 0.

    The `source` says which propensities: "formula" are the true ones, "fitted" come from 10,000
    other examples, "resampled" from 200 resamples of such. The `batch` is another draw of
    everything. ``exceeding`` is the share of runs with a false bound, ``passed`` that of runs with
    one and with propensities that a rival has not rejected, ``rejected`` that of runs where it has.
    """
    del batch  # it is in the random stream
    counts: dict[tuple[str, str, str, str], np.ndarray] = {}
    for _ in range(runs):
        for propensities, refused, made in SOURCES[source](dimension, rho, rng):
            for (correction, ranking), found in made.items():
                for choice, above in zip(CHOICES, found, strict=True):
                    key = (propensities, correction, ranking, choice)
                    total = counts.setdefault(key, np.zeros(3, np.int64))
                    total += (above, above and not refused, refused)
    return [
        {
            "propensities": propensities,
            "correction": correction,
            "ranking": ranking,
            "choice": choice,
            "level": LEVEL * (1 + (propensities in {BOOTSTRAP, REBASED})),
            "exceeding": total[0] / runs,
            "passed": total[1] / runs,
            "rejected": total[2] / runs,
        }
        for (propensities, correction, ranking, choice), total in counts.items()
    ]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Add up the batches, and return shares with their 95% confidence intervals."""
    names = ["source", "dimension", "rho", "propensities", "correction", "ranking", "choice"]
    counts = ["exceeding", "passed", "rejected"]
    runs = rows["runs"]
    rows = rows.assign(**{name: (rows[name] * runs).round().astype(int) for name in counts})
    total = rows.groupby([*names, "level"], sort=False)[["runs", *counts]].sum().reset_index()
    ends = [clopper_pearson(*pair) for pair in zip(total["exceeding"], total["runs"], strict=True)]
    total["share"] = total["exceeding"] / total["runs"]
    total[["low", "high"]] = ends
    total["broken"] = total["low"] > total["level"]
    total.attrs = rows.attrs
    return total


# what one run is


@dataclass(frozen=True)
class Game:
    """Audited examples, and scores of a release that has never met them."""

    members: np.ndarray
    true_odds: np.ndarray
    scores: np.ndarray
    draws: np.ndarray


Made = Iterator[tuple[str, bool, dict[tuple[str, str], tuple[bool, bool, bool]]]]


def formula(dimension: int, rho: float, rng: np.random.Generator) -> Made:
    """Audit with the true propensities; records are drawn as far as two directions show them."""
    members = rng.random(EXAMPLES) < 0.5
    family = PulledSphere(dimension, PULL, rho * PULL)
    seen = family.draw_projections(members, axes=2, rng=rng)
    release = other_sum(family, rng)
    scores = seen[:, 0] * release[0] + seen[:, 1] * np.linalg.norm(release[1:])
    odds = log_odds(dimension, rho)(seen[:, 0])
    game = Game(members, odds, scores, rng.random(EXAMPLES))
    yield TRUE, False, audits(game, odds, LEVEL)


def fitted(dimension: int, rho: float, rng: np.random.Generator) -> Made:
    """Audit with propensities from 10,000 other examples, and let a rival try to reject them."""
    _, spare, others, records, game = draw(dimension, rho, rng)
    sources = {
        TRUE: game.true_odds,
        LINE: fit_propensity(others[:, :1], spare, rng=rng).log_odds(records[:, :1]),
        ESTIMATED: fit_propensity(others, spare, rng=rng).log_odds(records),
    }
    for name, simultaneous in ((POINTWISE, False), (SIMULTANEOUS, True)):
        limit = conservative_propensity(
            others, spare, records, confidence=1.0 - SPENT, simultaneous=simultaneous
        )
        sources[name] = np.log(limit) - np.log1p(-limit)
    first = rng.permutation(EXAMPLES) < EXAMPLES // 2
    rival = rival_odds(
        np.concatenate((others, records[first])),
        np.concatenate((spare, game.members[first])),
        records[~first],
    )
    for name, odds in sources.items():
        rest = odds[~first]
        bold = expit(np.abs(rival)) * (1.0 + np.exp(-np.abs(rest))) > 1.0
        test = reject_propensity(
            np.where(bold, np.where(rival > 0.0, 1, -1), 0),
            game.members[~first],
            expit(rest),
            rng=rng,
        )
        level = LEVEL - SPENT if name in {POINTWISE, SIMULTANEOUS} else LEVEL
        yield name, test.rejected, audits(game, odds, level)


def resampled(dimension: int, rho: float, rng: np.random.Generator) -> Made:
    """Audit with 200 sets of propensities, and take a quantile of the bounds, in two ways."""
    _, spare, others, records, game = draw(dimension, rho, rng)
    whole = fit_propensity(others, spare, rng=rng).log_odds(records)
    sets = propensity_bootstrap(others, spare, records, bootstraps=200, rng=rng)
    shifts = np.abs(np.log(sets) - np.log1p(-sets))
    typical = np.median(np.log(sets) - np.log1p(-sets), axis=0)
    lower, rebased = {}, {}
    for correction, ranking in AUDITS:
        if correction not in {"conditional", "sharp"}:
            continue
        order, right = ranked(game, typical, correction, ranking)
        right, draws = right[order], game.draws[order]
        keep = kept_share(correction, shifts[:, order])
        kept = np.cumsum(right & (draws < keep), axis=1)[:, np.array(NUMBERS) - 1]
        bounds, strict = limits(LEVEL)(kept), limits(LEVEL / len(NUMBERS))(kept)
        low = np.quantile(bounds, LEVEL, axis=0, method="lower")
        low_strict = np.quantile(strict, LEVEL / len(NUMBERS), axis=0, method="lower")
        lower[correction, ranking] = (low[0] > 0, low.max() > 0, low_strict.max() > 0)
        if correction == "sharp":  # its bounds above 0 need more than the share kept at 0
            continue
        keep = kept_share(correction, np.abs(whole[order]))
        kept = np.cumsum(right & (draws < keep))[np.array(NUMBERS) - 1]
        moved = [
            np.quantile(found + limits(level)(kept) - np.median(found, axis=0), level, axis=0)
            for found, level in ((bounds, LEVEL), (strict, LEVEL / len(NUMBERS)))
        ]
        rebased[correction, ranking] = (moved[0][0] > 0, moved[0].max() > 0, moved[1].max() > 0)
    yield BOOTSTRAP, False, lower
    yield REBASED, False, rebased


SOURCES = {FORMULA: formula, FITTED: fitted, RESAMPLED: resampled}


def draw(dimension: int, rho: float, rng: np.random.Generator):
    """Return the family, members and records to fit on, and audited records with their game."""
    family = PulledSphere(dimension, PULL, rho * PULL)
    spare = rng.random(EXAMPLES) < 0.5
    others = family.draw(spare, rng=rng)
    members = rng.random(EXAMPLES) < 0.5
    records = family.draw(members, rng=rng)
    scores = (records @ other_sum(family, rng).astype(np.float32)).astype(float)
    odds = log_odds(dimension, rho)(records[:, 0])
    return family, spare, others, records, Game(members, odds, scores, rng.random(EXAMPLES))


def other_sum(family: PulledSphere, rng: np.random.Generator) -> np.ndarray:
    """Return a noisy sum of 5,000 members who are not audited.

    Across the direction they point anywhere, and their sum is drawn from the normal law with its
    covariance.
    """
    own = np.ones(EXAMPLES // 2, bool)
    along = family.draw_projections(own, axes=1, rng=rng)[:, 0]
    across = ((1.0 - along**2).sum() / (family.dimension - 1) + MU**-2) ** 0.5
    rest = across * rng.standard_normal(family.dimension - 1)
    return np.append(along.sum() + rng.normal() / MU, rest)


@cache
def log_odds(dimension: int, rho: float):
    """Return the true log-odds as a function of the coordinate along the direction."""
    family = PulledSphere(dimension, PULL, rho * PULL)
    far = min(1.0, 12.0 / np.sqrt(dimension))
    nodes = np.linspace(-far, far, 20_001)
    values = family.log_odds(nodes)
    return lambda along: np.interp(along, nodes, values)


def rival_odds(features: np.ndarray, members: np.ndarray, sought: np.ndarray) -> np.ndarray:
    """Return what a regression says that has seen half of the audited examples as well."""
    centre, scale = features.mean(axis=0), features.std(axis=0)
    rows = [
        np.column_stack(((part - centre) / scale, np.ones(len(part), np.float32))).astype(
            np.float32
        )
        for part in (features, sought)
    ]
    weights = fit_columns(rows[0], members, np.ones((len(members), 1)), 1.0)[:, 0]
    return (rows[1] @ weights).astype(float)


# what an audit makes of it


def kept_share(correction: str, shifts: np.ndarray) -> np.ndarray:
    """Return with what chance a correct guess is kept when μ = 0 is tested."""
    if correction == "conditional":
        return np.exp(-shifts)
    return 0.5 * (1.0 + np.exp(-shifts)) if correction == "sharp" else np.ones_like(shifts)


def ranked(
    game: Game, odds: np.ndarray, correction: str, ranking: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the 1,000 examples to guess on, best first, and where a guess is right."""
    keep = kept_share(correction, np.abs(odds))
    evidence = game.scores - np.median(game.scores)
    if ranking == "unaware":
        worth = np.abs(evidence)
    elif ranking == "aware":
        worth = np.abs(evidence) * keep
    elif ranking == BY_RANK:
        worth = rankdata(np.abs(evidence)) * keep
    else:
        known = ranking == KNOWING
        evidence = game.true_odds if known else posterior_log_odds(game.scores, odds)
        chance = expit(np.abs(evidence))
        # untampered guesses are compared with sigmoid(shift) each
        worth = chance - expit(np.abs(odds)) if correction == "untampered" else keep * chance
    top = np.argpartition(-worth, MOST)[:MOST]
    order = top[np.argsort(-worth[top], kind="stable")]
    return order, (evidence > 0.0) == game.members


def audits(game: Game, odds: np.ndarray, level: float) -> dict:
    """Return, for each audit and choice, whether the bound is above 0."""
    shifts, made = np.abs(odds), {}
    for correction, ranking in AUDITS:
        order, right = ranked(game, odds, correction, ranking)
        right, own = right[order], shifts[order]
        if correction == "untampered":
            tails = [
                poisson_binomial_tail(expit(own[:number]), int(right[:number].sum()))
                for number in NUMBERS
            ]
            found = (
                tails[0] <= level,
                min(tails) <= level,
                min(tails) <= level / len(NUMBERS),
            )
        else:
            kept = np.cumsum(right & (game.draws[order] < kept_share(correction, own)))
            kept = kept[np.array(NUMBERS) - 1]
            floor = 0.0
            if correction == "composition":
                floor = -2.0 * float(ndtri(expit(-shifts.max())))
            bounds, strict = limits(level)(kept), limits(level / len(NUMBERS))(kept)
            found = (bounds[0] > floor, bounds.max() > floor, strict.max() > floor)
        made[correction, ranking] = found
    return made


@cache
def limits(level: float):
    """Return a function from counts of each of the six numbers of guesses to μ."""
    tables = [
        one_run_fdp(
            np.arange(number + 1), number, EXAMPLES, delta=DELTA, confidence=1.0 - level
        ).details["mu"]
        for number in NUMBERS
    ]

    def look_up(kept: np.ndarray) -> np.ndarray:
        return np.stack([table[kept[..., place]] for place, table in enumerate(tables)], axis=-1)

    return look_up
