"""Reviews: the audits. Nothing is trained here but trees on a few stored columns."""

from functools import cache

import numpy as np

from auditkit.attacks.generated import Loss, Mixture
from auditkit.evidence import PairedScores
from auditkit.experiment import stored, study
from experiments.panoramia.audits import (
    NESTED,
    NULL,
    PAPERS,
    TARGET,
    curves,
    game_rows,
    one_run_rows,
    real_rows,
)
from experiments.panoramia.packed import unpack
from experiments.panoramia.reviews import MADE, SEEDS
from experiments.panoramia.reviews_scores import PASSES, QUARTERS, SCORES
from experiments.panoramia.stacks import GENERATED, PARTS, UNSEEN, Columns, loss, mixture

PAIRS = (500, 1_000, 2_000)
# the chunks that were made, and what is said of them
SOURCES = [MADE, *(f"{SCORES}-{seed}" for seed in SEEDS)]
LEVELS = np.append(np.linspace(0.0, 0.98, 50), (0.99, 0.999, 1.0))
KINDS = {"members": "real", "unseen": "unseen", "generated": "made"}


@cache
def told(seed: int) -> dict[tuple[str, int], Columns]:
    """Return what classifiers see of each part, by model and passes."""
    found: dict[tuple[str, int], Columns] = {}
    for _, row in stored(f"{SCORES}-{seed}").iterrows():
        key = row["model"], int(row["after"])
        found.setdefault(key, {})[row["part"]] = unpack(row["losses"]).reshape(-1, QUARTERS + 1)
    if any(sorted(columns) != sorted(PARTS) for columns in found.values()):
        raise ValueError(f"{SCORES}-{seed} must have a row of each of {PARTS} for each model")
    return found


@cache
def verdicts(seed: int) -> Columns:
    """Return the detector's log-odds."""
    rows = stored(f"{SCORES}-{seed}").query("model == 'start'").set_index("part")
    return {name: unpack(rows.loc[name, "detector"]) for name in PARTS}


def mixtures(seed: int) -> tuple[Mixture, Mixture, Loss]:
    """Return members with generated chunks, members with unseen ones, and the helper's losses.

    Classifiers see the losses of the model before any tuning too: it is public.
    """
    every = told(seed)
    public = every["start", 0]
    helper = loss(next(columns for (name, _), columns in every.items() if name == "helper"))
    generated = mixture(GENERATED, verdicts(seed), public)
    return generated, mixture(UNSEEN, public), helper


def mean(columns: Columns) -> Loss:
    """Return the loss as O(1) sees it: the mean over tokens."""
    return loss({part: rows[:, :QUARTERS].mean(axis=1) for part, rows in columns.items()})


@study(
    "pan-reviews",
    paper={"passes": list(PASSES), "seed": list(SEEDS), "flips": [10]},
    tolerance=0.02,
    sources=SOURCES,
)
def fine_tuned(passes: int, seed: int, flips: int) -> list[dict]:
    """Audit a model and its null after so many passes, with several numbers of pairs.

    Rows without a release are of baselines, which see the helper's losses or not.
    """
    generated, unseen, helper = mixtures(seed)
    options = {"pairs": PAIRS, "flips": flips, "coins": seed}
    baselines = {"none": generated.scores(), "helper": generated.scores(helper)}
    rows = []
    for name, scores in baselines.items():
        about = {"release": "none", "attack": "none", "baseline": name}
        rows += game_rows(scores, scores, **about, **options)
    for release in (TARGET, NULL):
        columns = told(seed)[release, passes]
        for attack, seen in (
            (PAPERS, (loss(columns),)),
            (NESTED, (helper, loss(columns))),
        ):
            about = {"release": release, "attack": attack}
            scores = generated.scores(*seen)
            rows += game_rows(baselines["helper"], scores, baseline="helper", **about, **options)
            rows += real_rows(unseen.scores(*seen), **about, **options)
        scores = unseen.loss_scores(mean(columns))
        rows += one_run_rows(scores, release=release, **options)
        rows += one_run_rows(
            gained(seed, release, passes), attack="gain", release=release, **options
        )
    return rows


def gained(seed: int, release: str, passes: int) -> PairedScores:
    """Score by how much the loss fell through tuning."""
    before, after = (mean(told(seed)[key]) for key in (("start", 0), (release, passes)))
    unseen = mixture(UNSEEN, verdicts(seed))
    return unseen.loss_scores(lambda examples: after(examples) - before(examples))


@study(
    "pan-reviews-curves",
    paper={"passes": list(PASSES), "seed": list(SEEDS)},
    tolerance=0.02,
    sources=SOURCES,
)
def recall_curves(passes: int, seed: int) -> list[dict]:
    """Return precision and bound along the recall, for baseline and both attacks; one toss."""
    generated, _, helper = mixtures(seed)
    losses = {name: loss(told(seed)[name, passes]) for name in (TARGET, NULL)}
    return curves(generated, helper, losses, coins=seed)


@study(
    "pan-reviews-losses",
    paper={"passes": list(PASSES), "seed": list(SEEDS)},
    tolerance=0.02,
    sources=SOURCES,
)
def losses(passes: int, seed: int) -> list[dict]:
    """Return quantiles of the mean losses of members, unseen and generated chunks, by model."""
    every = told(seed)
    models = {name: every[name, passes] for name in (TARGET, NULL)}
    models["helper"] = next(columns for (name, _), columns in every.items() if name == "helper")
    return [
        {"release": name, "kind": kind, "level": float(level), "loss": float(value)}
        for name, columns in models.items()
        for kind, part in KINDS.items()
        for level, value in zip(
            LEVELS, np.quantile(columns[part][:, :QUARTERS].mean(axis=1), LEVELS), strict=True
        )
    ]
