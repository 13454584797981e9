"""SmolLM2, tuned on film reviews without privacy: trained by coins, and asked; `counting` counts.

An example is the beginning of a review, 64 tokens; a planted one has tokens drawn at random. What
is audited is the tuning of the top layers; who audits has the model before it. The zero run has
known members beside reviews from elsewhere, where more of them are bad.

A review has no label that a language model learns, hence there is no label audit. PANORAMIA on
reviews is the study "pan-reviews", with as many pairs as there are examples here.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import expit

from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.language import LanguageModel, pretrained, tune
from experiments.five_audits.deals import FULLY, PARTS, WITH_COINS, tossed
from experiments.zero_run.heads import pack

TEXTS = "three-texts"
NEEDS = "the reviews of IMDB, and SmolLM2, as the page on running says"
MODELS = FULLY + 2  # a pair of shadow models
BEFORE = -1  # stands for the model before any tuning
CHUNK, PASSES, RATE = 64, 2, 1e-4
EXAMPLES, PLANTED, OUTSIDE = 2_000, 1_000, 1_150
ODDS = np.array([-1.0, 1.0])  # log-odds of members against reviews from elsewhere: bad, good
SEED = 30
READ = 9_000  # reviews that are looked at


class Reviews(NamedTuple):
    """Chunks by who may see them, of shape (n, 64)."""

    coined: np.ndarray  # each in a training set by its own coin
    planted: np.ndarray  # the same, of random tokens
    known: np.ndarray  # in every training set
    unseen: np.ndarray
    decoys: np.ndarray  # in none, of random tokens
    outside: np.ndarray
    unseen_good: np.ndarray  # whether a review praises its film
    known_good: np.ndarray
    outside_good: np.ndarray


@cache
def start() -> LanguageModel:
    """Return the model that all others start from."""
    return pretrained()


@cache
def cut() -> tuple[np.ndarray, np.ndarray]:
    """Return the first chunk of each review that is long enough, and whether it is a good one."""
    whole = load("imdb")
    verdicts = dict(zip(whole["texts"], whole["labels"], strict=True))  # no review twice
    texts = sorted(verdicts)
    texts = [texts[row] for row in np.random.default_rng(SEED).permutation(len(texts))[:READ]]
    chunks, rows = start().chunks(texts, CHUNK)
    return chunks[:, 0], np.array([int(verdicts[texts[row]]) for row in rows])


@cache
def deal() -> Reviews:
    """Deal the reviews; who is known praises as often as not."""
    chunks, good = cut()
    rng = np.random.default_rng((SEED, 1))
    order = rng.permutation(len(chunks))
    coined, unseen, rest = np.split(order, [EXAMPLES, 2 * EXAMPLES])
    left = {verdict: iter(rest[good[rest] == verdict]) for verdict in (0, 1)}
    shares = np.exp(-ODDS) / np.exp(-ODDS).sum()
    known_good = rng.integers(2, size=OUTSIDE)
    outside_good = rng.choice(2, OUTSIDE, p=shares)
    known, outside = (
        np.array([next(left[verdict]) for verdict in verdicts])
        for verdicts in (known_good, outside_good)
    )
    ordinary = np.setdiff1d(np.unique(chunks), start().never)
    planted, decoys = rng.choice(ordinary, (2, PLANTED, CHUNK))
    return Reviews(
        chunks[coined],
        planted,
        chunks[known],
        chunks[unseen],
        decoys,
        chunks[outside],
        good[unseen],
        known_good,
        outside_good,
    )


def propensity(good: np.ndarray) -> np.ndarray:
    """Return the chance that a review is a member, where members and others from elsewhere mix."""
    shares = np.exp(-ODDS) / np.exp(-ODDS).sum()
    return expit(-np.log(2.0 * shares))[good]


@cache
def states(part: str):
    """Return what the frozen layers make of a part."""
    return start().hidden_states(getattr(deal(), part))


def toss(model: int) -> tuple[np.ndarray, np.ndarray]:
    """Toss the coins of a model: who is in, of the reviews with a coin and of those planted."""
    members, planted = (tossed((SEED, 2), model, number) for number in (EXAMPLES, PLANTED))
    return members, planted


def blank(model: int) -> tuple[np.ndarray, np.ndarray]:
    """Toss coins that decide nothing: the null of texts that no model has seen."""
    members, planted = (tossed((SEED, 8), model, number) for number in (EXAMPLES, PLANTED))
    return members, planted


def tuned(model: int) -> LanguageModel:
    """Tune the model on what its coins say, and on all that is known."""
    members, planted = toss(model)
    chosen = {"coined": members, "planted": planted, "known": np.ones(OUTSIDE, bool)}
    return tune(
        start(),
        np.concatenate([getattr(deal(), part)[rows] for part, rows in chosen.items()]),
        states=torch.cat([states(part)[rows] for part, rows in chosen.items()]),
        passes=PASSES,
        learning_rate=RATE,
        seed=model,
    )


@study(TEXTS, paper={"model": [BEFORE, *range(MODELS)]}, tolerance=0.05, needs=NEEDS)
def texts(model: int) -> list[dict]:
    """Tune a model by its coins, and say what it makes of the parts.

    ``odds`` are minus the mean losses of a token, ``good`` says which reviews praise a film.
    """
    reader, rows = start() if model == BEFORE else tuned(model), []
    for part in PARTS if model < FULLY else WITH_COINS:
        losses = reader.losses(getattr(deal(), part), states(part)).mean(axis=1)
        good = getattr(deal(), f"{part}_good", None)
        rows.append(
            {
                "part": part,
                "mean_odds": -float(losses.mean()),
                "odds": pack(-losses),
                "good": None if good is None else pack(good),
            }
        )
    return rows
