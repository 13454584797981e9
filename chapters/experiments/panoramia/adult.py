"""Adult and MST: the paper's own tables, with five deals and models that cannot leak.

What MST draws is stored as data, since it comes from an environment of its own: `data/make_mst.py`.
Here the audit of it is run: the paper's network after 10 and 100 passes, boosted trees as baseline
and attack, RM;RN and O(1) beside them. People are codes throughout: columns of over 100 values have
100 even steps, for models, generator and classifiers alike. The paper also filters what MST draws,
and searches a grid for its trees; neither is done here.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from auditkit.attacks.generated import Loss, Mixture
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.generators import Examples
from auditkit.models.networks import mlp
from auditkit.models.training import Models, fit_many
from experiments.panoramia.audits import NULL, TARGET, all_rows, curves

MEMBERS, TRAINING, AUDITED = 18_000, 5_000, 8_000  # and 5,000 that MST was fitted to
UNSEEN_TRAINING = 4_000
WIDTHS = (150, 100, 50, 10)
PASSES, HELPED = (10, 100), 10
PAIRS = (1_000, AUDITED)
NUMBERS = ("age", "years of education", "capital gains", "capital losses", "hours per week")
SEEDS = list(range(5))


class World(NamedTuple):
    """Who is what, for one deal."""

    members: Examples
    train: Examples
    real: Examples
    others: Examples  # what the null is trained on, as many as members
    unseen_train: Examples
    unseen: Examples
    made_train: Examples
    made: Examples
    lessons: Examples  # generated, for the helper


def people(codes: np.ndarray) -> Examples:
    """Return people whose last code is the label."""
    return Examples(codes[:, :-1].astype(np.float32), codes[:, -1].astype(np.int64))


@cache
def world(seed: int) -> World:
    """Deal the people: those that MST was fitted to are members too."""
    data = load("adult", part="mst")
    every, spare, drawn = data["people"], data["spare"][seed], data["made"][seed]
    rest = np.setdiff1d(np.arange(len(every)), spare)
    rest = np.random.default_rng((seed, 22)).permutation(rest)
    sizes = (TRAINING, AUDITED, MEMBERS, UNSEEN_TRAINING)
    train, real, others, unseen_train, unseen = np.split(rest, np.cumsum(sizes))
    parts = (np.concatenate((spare, train, real)), train, real, others, unseen_train, unseen)
    fake = np.split(drawn, np.cumsum((TRAINING, AUDITED)))
    return World(*(people(every[rows]) for rows in parts), *(people(part) for part in fake))


@cache
def columns() -> tuple[tuple[float, float] | int, ...]:
    """Return how networks see each column: its mean and deviation, or how many levels it has."""
    data = load("adult", part="mst")
    found: list[tuple[float, float] | int] = []
    for name, column in zip(data.feature_names, data["people"].T[:-1], strict=True):
        shape = (float(column.mean()), float(column.std()))
        found.append(shape if name in NUMBERS else int(column.max()) + 1)
    return tuple(found)


def seen(examples: Examples) -> np.ndarray:
    """Return people as networks see them."""
    parts = []
    for shape, column in zip(columns(), examples.inputs.T, strict=True):
        if isinstance(shape, int):
            parts.append(column[:, np.newaxis] == np.arange(shape))
        else:
            parts.append(((column - shape[0]) / shape[1])[:, np.newaxis])
    return np.concatenate(parts, axis=1).astype(np.float32)


def train(lessons: Examples, passes: int, seed: int, start: Models | None = None) -> Models:
    """Train the paper's network, or train it on."""
    shown = seen(lessons)
    return fit_many(
        partial(mlp, shown.shape[1], 2, hidden=WIDTHS),
        shown,
        lessons.labels,
        seeds=[seed],
        epochs=passes,
        batch_size=64,
        learning_rate=5e-4,
        optimizer="adam",
        initial=None if start is None else start.weights,
    )


@cache
def network(seed: int, release: str, passes: int) -> Models:
    """Return the audited network or its null; more passes go on from fewer."""
    lessons = {TARGET: world(seed).members, NULL: world(seed).others}[release]
    earlier = [number for number in PASSES if number < passes]
    start = network(seed, release, earlier[-1]) if earlier else None
    done = earlier[-1] if earlier else 0
    first = (1 + seed) * 1000 + 10 * passes + (release == NULL)
    return train(lessons, passes - done, first, start)


def loss_of(models: Models, digits: int | None = None) -> Loss:
    """Return the loss of a network, in a trial in steps of a tenth."""

    def loss(examples: Examples) -> np.ndarray:
        found = models.losses(seen(examples), examples.labels)[0]
        return found if digits is None else found.round(digits)

    return loss


def mixtures(seed: int) -> tuple[Mixture, Mixture]:
    """Return members with generated people, and members with unseen ones, of which there are fewer.

    Pairs of unseen people come from the same audited members.
    """
    own = world(seed)
    pairs = min(len(own.real), len(own.unseen))
    unseen = (own.train[:UNSEEN_TRAINING], own.unseen_train, own.real[:pairs], own.unseen[:pairs])
    return Mixture(own.train, own.made_train, own.real, own.made), Mixture(*unseen)


def accuracy(models: Models, examples: Examples) -> float:
    """Return how often a network is right."""
    return float((models.predict(seen(examples))[0] == examples.labels).mean())


@cache
def helper(seed: int) -> Models:
    """Train a network on generated people."""
    return train(world(seed).lessons, HELPED, (1 + seed) * 1000 + 8)


TRIAL = {"passes": 1, "seed": 0, "flips": 3}


@study(
    "pan-adult",
    paper={"passes": list(PASSES), "seed": SEEDS, "flips": [10]},
    live=[TRIAL],
    reduced=[TRIAL],
    tolerance=0.02,
)
def audited(passes: int, seed: int, flips: int) -> list[dict]:
    """Audit a network and its null, by generated and by unseen people.

    After a single pass losses come in tenths, so that all processors agree.
    """
    digits = 1 if passes == 1 else None
    own, (generated, unseen) = world(seed), mixtures(seed)
    models = {name: network(seed, name, passes) for name in (TARGET, NULL)}
    losses = {name: loss_of(model, digits) for name, model in models.items()}
    return all_rows(
        generated,
        unseen,
        loss_of(helper(seed), digits),
        losses,
        pairs=PAIRS,
        flips=flips,
        coins=seed,
        member_accuracy=accuracy(models[TARGET], own.members),
        unseen_accuracy=accuracy(models[TARGET], own.unseen),
    )


@study(
    "pan-adult-curves",
    paper={"passes": list(PASSES), "seed": SEEDS},
    live=[{"passes": 1, "seed": 0}],
    reduced=[{"passes": 1, "seed": 0}],
    tolerance=0.02,
)
def recall_curves(passes: int, seed: int) -> list[dict]:
    """Return precision and bound along the recall, for baseline and both attacks; one toss."""
    digits = 1 if passes == 1 else None
    losses = {name: loss_of(network(seed, name, passes), digits) for name in (TARGET, NULL)}
    return curves(mixtures(seed)[0], loss_of(helper(seed), digits), losses, coins=seed)
