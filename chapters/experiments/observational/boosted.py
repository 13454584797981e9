"""Label privacy on the census by the paper's learner, CatBoost, beside another one at its defaults.

`tables` has trees that are larger and more eager than either learner's defaults, and twice as many
people for the reference model. Here both models learn from equally many, and what is unseen is a
fifth of that, as the paper splits a day.

In `tables` PATE's student predicts worse than a constant: hardly any teacher holds a positive label
the likelier one, and how likely a label is cannot be learnt from votes. Here a teacher says
"positive" above the share of positives in the auditor's year, which is public, and on that year the
student's odds are put right.

Each mechanism protects either the true labels or, in the interventional audit, labels that were
drawn from the reference model before training: then nothing shifts, and what is found is leaked.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import logit

from auditkit.experiment import study
from auditkit.mechanisms.label_dp import (
    LabelPate,
    RandomizedResponse,
    RandomizedResponseWithPrior,
    lp_mst,
)
from experiments.observational.audits import DELTA, audit_rows
from experiments.observational.tables import (
    CENSUS,
    FIVE,
    QUERIES,
    TEACHERS,
    Day,
    Model,
    Split,
    days,
    log_loss,
)

CATBOOST, SCIKIT = "CatBoost", "scikit-learn"
SIZE = 120_000  # of 149,642 people of the later year
EPSILONS = (math.inf, 8.0, 4.0, 2.0, 1.0, 0.1)
OBSERVATIONAL, INTERVENTIONAL = "observational", "interventional"
Fit = Callable[[np.ndarray, np.ndarray], Model]


@study(
    "obs-catboost",
    paper=[
        {"game": game, "learner": learner, "mechanism": mechanism, "epsilon": epsilon}
        | {"size": SIZE, "games": 100, "seed": seed}
        for seed in range(3)
        for game, learner in (
            (OBSERVATIONAL, CATBOOST),
            (INTERVENTIONAL, CATBOOST),
            (OBSERVATIONAL, SCIKIT),
        )
        for mechanism in FIVE
        for epsilon in EPSILONS
    ],
    live=[
        {"game": game, "learner": SCIKIT, "mechanism": "LP-1ST", "epsilon": math.inf}
        | {"size": 10_000, "games": 20, "seed": 0}
        for game in (OBSERVATIONAL, INTERVENTIONAL)
    ],
    # of two cuts alike rounding on another processor may choose the other: less often with fewer
    reduced=[
        {"game": game, "learner": learner, "mechanism": mechanism, "epsilon": epsilon}
        | {"size": 5000, "games": 5, "seed": 0}
        for game, learner, mechanism, epsilon in (
            (OBSERVATIONAL, CATBOOST, "LP-1ST", math.inf),
            (INTERVENTIONAL, SCIKIT, "LP-2ST", 2.0),
            (OBSERVATIONAL, SCIKIT, "PATE", 8.0),
        )
    ],
    tolerance=1e-3,
)
def boosted_table(
    game: str,
    learner: str,
    mechanism: str,
    epsilon: float,
    size: int,
    games: int,
    seed: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train with a mechanism on the later year, and audit with a model of the earlier one.

    ``log_loss`` is that of the audited model on unseen people.
    """
    dealt = labelled(game, learner, size, seed)
    model = private(game, learner, mechanism, epsilon, size, seed, rng)
    if model is None:
        why = "the domain prior leaves one label only, whatever the training label is"
        return [{"reference": None, "attack": None, "log_loss": None, "note": why}]
    other, played = reference(learner, size, seed), len(dealt.unseen.labels)
    (shown, labels), (hidden, truth) = Day(*(x[:played] for x in dealt.audited)), dealt.unseen
    said = model(hidden)
    rows = audit_rows(
        labels,
        model(shown),
        other(shown),
        held_out=(truth, said, other(hidden)),
        repetitions=games,
        rng=rng,
    )
    return [{**row, "log_loss": log_loss(truth, said), "note": None} for row in rows]


@cache
def deal(size: int, seed: int) -> Split:
    """Deal people at random: as many of the earlier year as are audited, and a fifth unseen."""
    rng = np.random.default_rng(seed)
    before, after = days(CENSUS)
    own = rng.choice(len(before.labels), size, replace=False)
    dealt = rng.choice(len(after.labels), size + size // 5, replace=False)
    return Split(
        Day(before.features[own], before.labels[own]),
        *(Day(after.features[x], after.labels[x]) for x in np.split(dealt, [size])),
    )


@cache
def labelled(game: str, learner: str, size: int, seed: int) -> Split:
    """Deal people, with labels drawn from the reference model where the auditor intervenes."""
    dealt = deal(size, seed)
    if game == OBSERVATIONAL:
        return dealt
    other, rng = reference(learner, size, seed), np.random.default_rng((seed, 2))

    def drawn(day: Day) -> Day:
        positive = other(day.features)[:, 1]
        return day._replace(labels=(rng.random(len(positive)) < positive).astype(int))

    return Split(dealt.earlier, drawn(dealt.audited), drawn(dealt.unseen))


def fit(learner: str, features: np.ndarray, labels: np.ndarray) -> Model:
    """Train boosted trees at the defaults of the one who made them."""
    if learner == CATBOOST:
        from catboost import CatBoostClassifier

        options: dict[str, Any] = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
        trees = CatBoostClassifier(random_seed=0, **options)
    else:
        from sklearn.ensemble import HistGradientBoostingClassifier

        trees = HistGradientBoostingClassifier(random_state=0)
    least = 1.0 / len(labels)  # as in `tables`
    if len(np.unique(labels)) == 1:  # CatBoost takes two at least
        sure = np.eye(2)[labels[:1]].clip(least, 1.0 - least)
        return lambda shown: np.repeat(sure, len(shown), axis=0)
    trees.fit(features, labels)
    return lambda shown: trees.predict_proba(shown).clip(least, 1.0 - least)


@cache
def reference(learner: str, size: int, seed: int) -> Model:
    """Train the reference model, the same for all mechanisms."""
    return fit(learner, *deal(size, seed).earlier)


def private(
    game: str,
    learner: str,
    mechanism: str,
    epsilon: float,
    size: int,
    seed: int,
    rng: np.random.Generator,
) -> Model | None:
    """Train with a mechanism; None where it leaves no labels to learn from."""
    dealt, learn = labelled(game, learner, size, seed), partial(fit, learner)
    features, labels = dealt.audited
    plain = RandomizedResponse(epsilon, 2)
    if mechanism == "LP-2ST":
        return lp_mst(features, labels, epsilon=epsilon, classes=2, fit=learn, rng=rng).model
    if mechanism == "PATE":
        return pate(game, learner, epsilon, size, seed, rng)
    if mechanism == "LP-1ST (domain prior)":
        response = RandomizedResponseWithPrior(epsilon)
        prior = np.bincount(dealt.earlier.labels, minlength=2) / len(dealt.earlier.labels)
        if not response.support(prior).all():
            return None
        rows = np.broadcast_to(prior, (len(labels), 2))
        return learn(features, response.privatize(labels, rows, rng=rng))
    noisy = learn(features, plain.privatize(labels, rng=rng))
    if mechanism == "LP-1ST":
        return noisy
    least = 1.0 / len(labels)
    return lambda shown: plain.corrected(noisy(shown)).clip(least, 1.0 - least)


def pate(
    game: str, learner: str, epsilon: float, size: int, seed: int, rng: np.random.Generator
) -> Model:
    """Train a student on what teachers with disjoint parts vote, and calibrate it."""
    queries, votes = voted(game, learner, size, seed)
    student = fit(learner, queries, LabelPate(epsilon, DELTA, QUERIES).release(votes, rng=rng))
    return calibrated(student, *deal(size, seed).earlier)


@cache
def voted(game: str, learner: str, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features of audited people, and how many teachers give them which label."""
    features, labels = labelled(game, learner, size, seed).audited
    rng = np.random.default_rng((seed, 1))  # not the stream that deals
    queries = features[rng.choice(len(labels), QUERIES, replace=False)]
    share = deal(size, seed).earlier.labels.mean()
    positive = np.zeros(QUERIES, np.int64)
    for part in np.array_split(rng.permutation(len(labels)), TEACHERS):
        positive += fit(learner, features[part], labels[part])(queries)[:, 1] > share
    return queries, np.stack((TEACHERS - positive, positive), axis=1)


def calibrated(model: Model, features: np.ndarray, labels: np.ndarray) -> Model:
    """Return a model whose odds are a power of those of another, times a number.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", 1999.
    """
    from sklearn.linear_model import LogisticRegression

    line = LogisticRegression().fit(logit(model(features)[:, 1:]), labels)
    return lambda shown: line.predict_proba(logit(model(shown)[:, 1:]))
