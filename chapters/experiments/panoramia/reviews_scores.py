"""Reviews: what the audited model, its null and a helper say of chunks, as `reviews` says."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auditkit.experiment import study
from auditkit.models.language import LanguageModel, tune
from experiments.panoramia.audits import NULL, TARGET
from experiments.panoramia.packed import pack
from experiments.panoramia.reviews import MADE, NEEDS, RATE, World, made, start, world
from experiments.panoramia.stacks import PARTS

SCORES = "pan-reviews-scores"
PASSES = (1, 2, 3)
HELPED = 2  # passes of the helper
QUARTERS = 4
Chunks = dict[str, np.ndarray]


def scores(seed: int, passes: int) -> list[dict]:
    """Train the audited model, its null and the helper, and say what they make of all chunks.

    A row for each part of the chunks and each model. ``start`` is the model before any tuning, and
    has the detector's verdict, too. ``losses`` are the means over quarters of a chunk, and the
    largest of a token, chunk by chunk.
    """
    deal, fake = world(seed), made(seed)
    chunks = parts_of(deal, fake)
    states = {name: start().hidden_states(tokens) for name, tokens in chunks.items()}
    rows = said(start(), chunks, states, verdicts(states), model="start", after=0)
    helper = tune(start(), fake["lessons"], passes=HELPED, learning_rate=RATE, seed=seed + 10)
    rows += said(helper, chunks, states, model="helper", after=HELPED)
    for place, (name, lessons) in enumerate({TARGET: deal.members, NULL: deal.others}.items()):
        model, below = start(), start().hidden_states(lessons)
        for after in range(1, passes + 1):
            # Adam's averages start anew with each pass
            model = tune(
                model,
                lessons,
                states=below,
                passes=1,
                learning_rate=RATE,
                seed=100 * seed + 10 * after + place,
            )
            rows += said(model, chunks, states, model=name, after=after)
    return rows


def parts_of(deal: World, fake: Chunks) -> Chunks:
    """Return the chunks that baseline and attack meet."""
    found = (deal.train, deal.real, fake["train"], fake["audited"], deal.unseen_train, deal.unseen)
    return dict(zip(PARTS, found, strict=True))


def verdicts(states: dict[str, torch.Tensor]) -> Chunks:
    """Return log-odds of being real, cross-fitted, from what the model makes of a chunk.

    A logistic regression sees the mean and the last of the hidden states below the top layers.
    """
    seen = {
        name: torch.cat((part.float().mean(1), part[:, -1].float()), 1).numpy()
        for name, part in states.items()
    }
    kinds = np.repeat((1, 0), [len(seen["train"]), len(seen["made train"])])
    lessons = np.concatenate((seen["train"], seen["made train"]))
    judge = make_pipeline(StandardScaler(), LogisticRegression(C=1e-3, max_iter=1_000))
    found = {name: judge.fit(lessons, kinds).decision_function(part) for name, part in seen.items()}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    fitted = cross_val_predict(judge, lessons, kinds, cv=folds, method="decision_function")
    cut = len(seen["train"])
    return found | {"train": fitted[:cut], "made train": fitted[cut:]}


def said(
    reader: LanguageModel,
    chunks: Chunks,
    states: dict[str, torch.Tensor],
    judged: Chunks | None = None,
    **about: object,
) -> list[dict]:
    """Return what a model says of each part."""
    rows = []
    for name, tokens in chunks.items():
        losses = reader.losses(tokens, states[name])
        rows.append(
            {
                **about,
                "part": name,
                "loss": float(losses.mean()),
                "losses": pack(seen_of(losses).ravel()),
                "detector": None if judged is None else pack(judged[name]),
            }
        )
    return rows


def seen_of(losses: np.ndarray) -> np.ndarray:
    """Return what classifiers see of a chunk's losses: means over quarters, and the largest."""
    quarters = [part.mean(axis=1) for part in np.array_split(losses, QUARTERS, axis=1)]
    return np.column_stack((*quarters, losses.max(axis=1)))


def _studied(seed: int):
    """Return the study of a seed: three of them can run apart."""
    cell = {"seed": [seed], "passes": [PASSES[-1]]}
    return study(f"{SCORES}-{seed}", paper=cell, tolerance=0.05, needs=NEEDS, sources=[MADE])(
        scores
    )


first, second, third = (_studied(seed) for seed in range(3))
