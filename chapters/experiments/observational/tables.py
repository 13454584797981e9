"""Label privacy on an imbalanced table, audited with a reference model from an earlier day.

The paper has Criteo, with a click on 3% of advertisements, and CatBoost. Here stand in two years of
census-income, where 6% earn above 50,000 dollars. The learner is the paper's at its defaults, and
scikit-learn's boosted trees at theirs beside it. Both models learn from equally many people, and
what is unseen is a fifth of that, as the paper splits a day. Who has day_0 and day_1 of Criteo puts
them into the folder `criteo` of the cache, and `protected_table` takes ``data="criteo"``.

In PATE hardly any teacher holds a positive label the likelier one, and how likely a label is cannot
be learnt from votes. So a teacher says "positive" above the share of positives in the auditor's
year, which is public, and on that year the student's odds are put right.

Each mechanism protects either the true labels or, in the interventional audit, labels that were
drawn from the reference model before training: then nothing shifts, and what is found is leaked.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from auditkit.datasets import cache as cache_folder
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.label_dp import (
    LabelPate,
    RandomizedResponse,
    RandomizedResponseWithPrior,
    lp_mst,
)
from experiments.observational.audits import DELTA, INTERVENTIONAL, OBSERVATIONAL, audit_rows

CENSUS, CRITEO = "census-income", "criteo"
CLICKS = 1_000_000  # of each day of Criteo, as in the paper
CATBOOST, SCIKIT = "CatBoost", "scikit-learn"
SIZE = 120_000  # of 149,642 people of the later year
TEACHERS, QUERIES = 200, 1000
EPSILONS = (math.inf, 8.0, 4.0, 2.0, 1.0, 0.1)
FIVE = ("LP-1ST", "LP-1ST (domain prior)", "LP-1ST (noise correction)", "LP-2ST", "PATE")

Model = Callable[[np.ndarray], np.ndarray]  # features to the probability of either label


class Day(NamedTuple):
    """Examples of one day, or year."""

    features: np.ndarray  # (n, columns)
    labels: np.ndarray  # (n,) 0 and 1


class Split(NamedTuple):
    """Who is whose."""

    earlier: Day  # the auditor's own examples
    audited: Day  # those that the audited model is trained on
    unseen: Day  # of the same day


class Setting(NamedTuple):
    """What is dealt, and who learns from it."""

    data: str
    learner: str
    size: int
    seed: int


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
def protected_table(
    game: str,
    learner: str,
    mechanism: str,
    epsilon: float,
    size: int,
    games: int,
    seed: int,
    rng: np.random.Generator,
    data: str = CENSUS,
) -> list[dict]:
    """Train with a mechanism on the later day, and audit with a reference model of the earlier one.

    ``log_loss`` is that of the audited model on unseen examples. The `seed` deals the examples, so
    that all mechanisms get the same.
    """
    setting = Setting(data, learner, size, seed)
    model = private(game, setting, mechanism, epsilon, rng)
    if model is None:
        why = "the domain prior leaves one label only, whatever the training label is"
        return [{"reference": None, "attack": None, "log_loss": None, "note": why}]
    rows = audited_rows(game, setting, model, games, rng)
    return [{**row, "note": None} for row in rows]


def audited_rows(
    game: str, setting: Setting, model: Model, games: int, rng: np.random.Generator
) -> list[dict]:
    """Audit a model, on as many of its examples as there are unseen ones."""
    dealt, other = labelled(game, setting), reference(setting)
    played = len(dealt.unseen.labels)
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
    return [{**row, "log_loss": log_loss(truth, said)} for row in rows]


def log_loss(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Return the mean loss."""
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).mean())


# The data.


@cache
def days(name: str) -> tuple[Day, Day]:
    """Return an earlier and a later day of a dataset."""
    return {CENSUS: _census, CRITEO: _criteo}[name]()


def _census() -> tuple[Day, Day]:
    """Return people of 1994 and of 1995; the columns that tell the year are not loaded."""
    people = load(CENSUS)
    features, labels, years = (
        np.concatenate((people[f"train_{name}"], people[f"test_{name}"]))
        for name in ("features", "labels", "years")
    )
    # categories stay the numbers of their levels: as categories the trees predict worse
    day = Day(features.astype(np.float32), labels)
    return tuple(Day(*(column[years == year] for column in day)) for year in (1994, 1995))


def _criteo() -> tuple[Day, Day]:
    """Return two days in a row; a category is how often it occurs on the first of them.

    The categories are too many for trees. CatBoost codes them by the labels that they come with,
    which would have to be private ones here.
    """
    clicks = load("criteo", path=cache_folder() / "criteo", rows=CLICKS)
    earlier, later, *_ = (clicks["days"] == day for day in np.unique(clicks["days"]))
    codes = np.empty(clicks["categories"].shape)
    for place, column in enumerate(clicks["categories"].T):
        levels, counts = np.unique(column[earlier], return_counts=True)
        at = np.minimum(np.searchsorted(levels, column), len(levels) - 1)
        codes[:, place] = np.where(levels[at] == column, counts[at], 0)
    features = np.concatenate((clicks["numbers"], codes), axis=1).astype(np.float32)
    return tuple(Day(features[day], clicks["labels"][day]) for day in (earlier, later))


@cache
def deal(setting: Setting) -> Split:
    """Deal examples at random: as many of the earlier day as are audited, and a fifth unseen."""
    size, rng = setting.size, np.random.default_rng(setting.seed)
    before, after = days(setting.data)
    most = min(len(before.labels), len(after.labels) * 5 // 6)
    if size > most:
        raise ValueError(f"size must be at most {most}, so that a fifth is left, got {size}")
    own = rng.choice(len(before.labels), size, replace=False)
    dealt = rng.choice(len(after.labels), size + size // 5, replace=False)
    return Split(
        Day(before.features[own], before.labels[own]),
        *(Day(after.features[x], after.labels[x]) for x in np.split(dealt, [size])),
    )


@cache
def labelled(game: str, setting: Setting) -> Split:
    """Deal examples, with labels drawn from the reference model where the auditor intervenes."""
    dealt = deal(setting)
    if game == OBSERVATIONAL:
        return dealt
    other, rng = reference(setting), np.random.default_rng((setting.seed, 2))

    def drawn(day: Day) -> Day:
        positive = other(day.features)[:, 1]
        return day._replace(labels=(rng.random(len(positive)) < positive).astype(int))

    return Split(dealt.earlier, drawn(dealt.audited), drawn(dealt.unseen))


# The models.


def fit(learner: str, features: np.ndarray, labels: np.ndarray) -> Model:
    """Train boosted trees at the defaults of the one who made them."""
    if learner == CATBOOST:
        from catboost import CatBoostClassifier

        options: dict[str, Any] = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
        trees = CatBoostClassifier(random_seed=0, **options)
    else:
        from sklearn.ensemble import HistGradientBoostingClassifier

        trees = HistGradientBoostingClassifier(random_state=0)
    # Rounding can make a probability 0, and n labels do not tell one below 1 / n from it: what a
    # model says stays this far from 0, which would cost an infinite loss.
    least = 1.0 / len(labels)
    if len(np.unique(labels)) == 1:  # CatBoost takes two at least
        sure = np.eye(2)[labels[:1]].clip(least, 1.0 - least)
        return lambda shown: np.repeat(sure, len(shown), axis=0)
    trees.fit(features, labels)
    return lambda shown: trees.predict_proba(shown).clip(least, 1.0 - least)


@cache
def reference(setting: Setting) -> Model:
    """Train the reference model, the same for all mechanisms."""
    return fit(setting.learner, *deal(setting).earlier)


def private(
    game: str, setting: Setting, mechanism: str, epsilon: float, rng: np.random.Generator
) -> Model | None:
    """Train with a mechanism; None where it leaves no labels to learn from."""
    dealt, learn = labelled(game, setting), partial(fit, setting.learner)
    features, labels = dealt.audited
    plain = RandomizedResponse(epsilon, 2)
    if mechanism == "LP-2ST":
        return lp_mst(features, labels, epsilon=epsilon, classes=2, fit=learn, rng=rng).model
    if mechanism == "PATE":
        return pate(game, setting, epsilon, TEACHERS, QUERIES, rng)
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
    game: str,
    setting: Setting,
    epsilon: float,
    teachers: int,
    queries: int,
    rng: np.random.Generator,
) -> Model:
    """Train a student on what teachers with disjoint parts vote, and calibrate it."""
    asked, votes = voted(game, setting, teachers, queries)
    labels = LabelPate(epsilon, DELTA, queries).release(votes, rng=rng)
    return calibrated(fit(setting.learner, asked, labels), *deal(setting).earlier)


@cache
def voted(
    game: str, setting: Setting, teachers: int, queries: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return features of audited examples, and how many teachers give them which label."""
    features, labels = labelled(game, setting).audited
    rng = np.random.default_rng((setting.seed, 1))  # not the stream that deals
    asked = features[rng.choice(len(labels), queries, replace=False)]
    share = deal(setting).earlier.labels.mean()
    positive = np.zeros(queries, np.int64)
    for part in np.array_split(rng.permutation(len(labels)), teachers):
        positive += fit(setting.learner, features[part], labels[part])(asked)[:, 1] > share
    return asked, np.stack((teachers - positive, positive), axis=1)


def calibrated(model: Model, features: np.ndarray, labels: np.ndarray) -> Model:
    """Return a model whose odds are a power of those of another, times a number.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", 1999.
    """
    from sklearn.linear_model import LogisticRegression

    line = LogisticRegression().fit(logit(model(features)[:, 1:]), labels)
    return lambda shown: line.predict_proba(logit(model(shown)[:, 1:]))
