"""Label privacy on an imbalanced table, audited with a reference model from an earlier day.

The paper has Criteo, with a click on 3% of advertisements, and CatBoost. Here stand in two years of
census-income, where 6% earn above 50,000 dollars, and scikit-learn's boosted trees. Who has day_0
and day_1 of Criteo puts them into the folder `criteo` of the cache, and every function here takes
them too.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from auditkit.datasets import cache as cache_folder
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.label_dp import (
    LabelPate,
    RandomizedResponse,
    RandomizedResponseWithPrior,
    lp_mst,
)
from experiments.observational.audits import DELTA, audit_rows
from experiments.observational.references import lessons

CENSUS = "census-income"
CLICKS = 1_000_000  # of each day of Criteo, as in the paper
TEACHERS, QUERIES = 200, 1000
# A third of all people share every feature with somebody, and hardly any of these has the income:
# of what is learnt about an audited person a double among the unseen ones gets a share.
EVERYBODY, UNLIKE = "everybody", "unlike any other"
FIVE = ("LP-1ST", "LP-1ST (domain prior)", "LP-1ST (noise correction)", "LP-2ST", "PATE")

Model = Callable[[np.ndarray], np.ndarray]  # features to the probability of either label


class Day(NamedTuple):
    """Examples of one day, or year."""

    features: np.ndarray  # (n, columns)
    labels: np.ndarray  # (n,) 0 and 1


class Split(NamedTuple):
    """Who is whose."""

    earlier: Day  # the auditor's own examples
    audited: Day  # those that the audited model is trained on, all of them
    unseen: Day  # as many of the same day


@study(
    "obs-tables",
    paper=[
        {"data": CENSUS, "people": people, "mechanism": mechanism, "epsilon": epsilon}
        | {"size": size, "games": 100, "seed": seed}
        for people, mechanisms, epsilons, size in (
            (EVERYBODY, FIVE, (math.inf, 8.0, 4.0, 2.0, 1.0, 0.1), 70_000),
            (EVERYBODY, FIVE[:1], (math.inf, 4.0, 1.0), 45_000),
            (UNLIKE, FIVE[:1], (math.inf, 4.0, 1.0), 45_000),
        )
        for seed in range(3)
        for mechanism in mechanisms
        for epsilon in epsilons
    ],
    live=[
        {"data": CENSUS, "people": EVERYBODY, "mechanism": "LP-1ST", "epsilon": epsilon}
        | {"size": 10_000, "games": 20, "seed": 0}
        for epsilon in (math.inf, 1.0)
    ],
    # Columns say the same of people in several ways, so that trees often have two cuts alike to
    # choose from, and rounding on another processor may choose the other: less often with fewer.
    reduced=[
        {"data": CENSUS, "people": EVERYBODY, "mechanism": mechanism, "epsilon": epsilon}
        | {"size": 2000, "games": 5, "seed": 0}
        for mechanism, epsilon in (("LP-1ST", math.inf), ("LP-2ST", 2.0))
    ],
    tolerance=1e-3,
)
def protected_table(
    data: str,
    people: str,
    mechanism: str,
    epsilon: float,
    size: int,
    games: int,
    seed: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train with a mechanism on the later day, and audit with a reference model of the earlier one.

    ``log_loss`` is that of the audited model on unseen examples of its day. The `seed` deals the
    examples, so that all mechanisms get the same.
    """
    dealt = split(data, people, size, seed)
    earlier, audited, unseen = dealt
    model = MECHANISMS[mechanism](dealt, epsilon, rng)
    if model is None:
        why = "the domain prior leaves one label only, whatever the training label is"
        return [{"reference": None, "attack": None, "log_loss": None, "note": why}]
    said, unsaid = model(audited.features), model(unseen.features)
    references = {
        "trained": reference(data, people, size, seed),
        "distilled": distilled(earlier, model(earlier.features)),
    }
    rows = [
        row
        for which, other in references.items()
        for row in audit_rows(
            audited.labels,
            said,
            other(audited.features),
            held_out=(unseen.labels, unsaid, other(unseen.features)),
            repetitions=games,
            rng=rng,
            which=which,
        )
    ]
    return [{**row, "log_loss": log_loss(unseen.labels, unsaid), "note": None} for row in rows]


def log_loss(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Return the mean loss."""
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).mean())


# The data.


@cache
def days(name: str) -> tuple[Day, Day]:
    """Return an earlier and a later day of a dataset."""
    return {CENSUS: _census, "criteo": _criteo}[name]()


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


def split(data: str, people: str, size: int, seed: int) -> Split:
    """Deal the examples of two days at random: twice as many of the earlier one to the auditor."""
    rng = np.random.default_rng(seed)
    earlier, later = (
        np.flatnonzero(alone) if people == UNLIKE else np.arange(len(alone))
        for alone in singular(data)
    )
    if 2 * size > min(len(earlier), len(later)):
        raise ValueError(
            f"size must be at most {min(len(earlier), len(later)) // 2}, half of the {people} "
            f"of the smaller day, got {size}"
        )
    before, after = days(data)
    own, dealt = (rng.choice(pool, 2 * size, replace=False) for pool in (earlier, later))
    return Split(
        Day(before.features[own], before.labels[own]),
        *(Day(after.features[rows], after.labels[rows]) for rows in np.split(dealt, 2)),
    )


@cache
def singular(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Return whose features nobody else has on either day, for each day."""
    before, after = (day.features for day in days(data))
    rows = np.ascontiguousarray(np.concatenate((before, after)))
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    _, place, counts = np.unique(whole, return_inverse=True, return_counts=True)
    alone = counts[place] == 1
    return alone[: len(before)], alone[len(before) :]


# The models.


def fit(
    features: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    rounds: int = 80,
    leaves: int = 127,
    rate: float = 0.15,
) -> Model:
    """Train boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(
        max_iter=rounds,
        max_leaf_nodes=leaves,
        learning_rate=rate,
        early_stopping=False,
        random_state=0,  # draws nothing but the examples that bins are cut at, if they are many
    )
    trees.fit(features, labels, sample_weight=weights)
    # Rounding can make a probability 0, and n labels do not tell one below 1 / n from it: what a
    # model says stays this far from 0, which would cost an infinite loss.
    least = 1.0 / len(labels)
    return lambda shown: trees.predict_proba(shown).clip(least, 1.0 - least)


@cache
def reference(data: str, people: str, size: int, seed: int) -> Model:
    """Train the paper's reference model, on the earlier day; it is the same for all mechanisms."""
    return fit(*split(data, people, size, seed).earlier)


def distilled(own: Day, said: np.ndarray) -> Model:
    """Train a reference model on what the audited model says of the auditor's own examples.

    Trees take no soft labels, so that each example enters with either label, weighted.
    """
    positive = lessons(said, own.labels)[:, 1]
    features = np.concatenate((own.features, own.features))
    labels = np.repeat((1, 0), len(positive))
    return fit(features, labels, np.concatenate((positive, 1.0 - positive)))


# The mechanisms. Each trains a model that is private with ε on the audited examples. The auditor's
# own are no secret to it.


def lp_1st(dealt: Split, epsilon: float, rng: np.random.Generator) -> Model:
    """Train on labels of randomised response; of two labels LP-1ST keeps both."""
    features, labels = dealt.audited
    return fit(features, RandomizedResponse(epsilon, 2).privatize(labels, rng=rng))


def domain_prior(dealt: Split, epsilon: float, rng: np.random.Generator) -> Model | None:
    """Train on labels of LP-1ST with the earlier day's shares as prior, if two labels are left."""
    features, labels = dealt.audited
    response = RandomizedResponseWithPrior(epsilon)
    prior = np.bincount(dealt.earlier.labels, minlength=2) / len(dealt.earlier.labels)
    if not response.support(prior).all():
        return None
    rows = np.broadcast_to(prior, (len(labels), 2))
    return fit(features, response.privatize(labels, rows, rng=rng))


def noise_correction(dealt: Split, epsilon: float, rng: np.random.Generator) -> Model:
    """Train on labels of randomised response, and take the noise back out of the predictions."""
    noisy = lp_1st(dealt, epsilon, rng)
    response = RandomizedResponse(epsilon, 2)
    least = 1.0 / len(dealt.audited.labels)

    def model(features: np.ndarray) -> np.ndarray:
        return response.corrected(noisy(features)).clip(least, 1.0 - least)

    return model


def lp_2st(dealt: Split, epsilon: float, rng: np.random.Generator) -> Model:
    """Train in two stages, the first model being the prior of the second half's labels."""
    return lp_mst(*dealt.audited, epsilon=epsilon, classes=2, fit=fit, rng=rng).model


def pate(dealt: Split, epsilon: float, rng: np.random.Generator) -> Model:
    """Train a student on labels that teachers with disjoint parts release by a noisy vote.

    It asks for some of the audited examples themselves, whose features are public.
    """
    features, labels = dealt.audited
    queries = features[rng.choice(len(labels), QUERIES, replace=False)]
    positive = np.zeros(QUERIES, np.int64)
    for part in np.array_split(rng.permutation(len(labels)), TEACHERS):
        teacher = fit(features[part], labels[part], rounds=20, leaves=15)
        positive += teacher(queries)[:, 1] > 0.5
    votes = np.stack((TEACHERS - positive, positive), axis=1)
    released = LabelPate(epsilon, DELTA, QUERIES).release(votes, rng=rng)
    return fit(queries, released, rounds=20, leaves=7, rate=0.1)


MECHANISMS = {
    "LP-1ST": lp_1st,
    "LP-1ST (domain prior)": domain_prior,
    "LP-1ST (noise correction)": noise_correction,
    "LP-2ST": lp_2st,
    "PATE": pate,
}
