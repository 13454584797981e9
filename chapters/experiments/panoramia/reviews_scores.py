"""Reviews: what the audited model, its null and a helper say of chunks, as `reviews` says."""

from functools import lru_cache

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
START, HELPER = "start", "helper"
TUNED = (TARGET, NULL, HELPER)
Chunks = dict[str, np.ndarray]


def scores(seed: int, model: str, after: int) -> list[dict]:
    """Say what a model makes of all chunks after so many passes.

    A row for each part of the chunks. ``start`` is the model before any tuning, and has the
    detector's verdict, too. ``losses`` are the means over quarters of a chunk, and the largest of a
    token, chunk by chunk. A run that is killed trains the earlier passes again and loses minutes.
    """
    chunks, seen = parts_of(world(seed), made(seed)), states(seed)
    if model == START:
        return said(start(), chunks, seen, verdicts(seen))
    return said(tuned(seed, model, after), chunks, seen)


@lru_cache(maxsize=1)
def states(seed: int) -> dict[str, torch.Tensor]:
    """Return the hidden states of each part, 74 kB a chunk."""
    chunks = parts_of(world(seed), made(seed))
    return {name: start().hidden_states(tokens) for name, tokens in chunks.items()}


@lru_cache(maxsize=1)
def lessons(seed: int, model: str) -> tuple[np.ndarray, torch.Tensor]:
    """Return the chunks that a model is tuned on, and their hidden states."""
    deal = world(seed)
    chunks = {HELPER: made(seed)["lessons"], TARGET: deal.members, NULL: deal.others}[model]
    return chunks, start().hidden_states(chunks)


@lru_cache(maxsize=2)
def tuned(seed: int, model: str, after: int) -> LanguageModel:
    """Tune a model pass by pass; Adam's averages start anew with each of them."""
    if after == 0:
        return start()
    chunks, below = lessons(seed, model)
    return tune(
        tuned(seed, model, after - 1),
        chunks,
        states=below,
        passes=1,
        learning_rate=RATE,
        seed=100 * seed + 10 * after + TUNED.index(model),
    )


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
    pairs = np.concatenate((seen["train"], seen["made train"]))
    judge = make_pipeline(StandardScaler(), LogisticRegression(C=1e-3, max_iter=1_000))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    fitted = cross_val_predict(judge, pairs, kinds, cv=folds, method="decision_function")
    judge.fit(pairs, kinds)
    found = {name: judge.decision_function(part) for name, part in seen.items()}
    cut = len(seen["train"])
    return found | {"train": fitted[:cut], "made train": fitted[cut:]}


def said(
    reader: LanguageModel,
    chunks: Chunks,
    states: dict[str, torch.Tensor],
    judged: Chunks | None = None,
) -> list[dict]:
    """Return what a model says of each part."""
    rows = []
    for name, tokens in chunks.items():
        losses = reader.losses(tokens, states[name])
        rows.append(
            {
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
    cells = [{"seed": seed, "model": START, "after": 0}]
    cells += [{"seed": seed, "model": HELPER, "after": HELPED}]
    cells += [
        {"seed": seed, "model": model, "after": after}
        for model in (TARGET, NULL)
        for after in PASSES
    ]
    return study(f"{SCORES}-{seed}", paper=cells, tolerance=0.05, needs=NEEDS, sources=[MADE])(
        scores
    )


first, second, third = (_studied(seed) for seed in range(3))
