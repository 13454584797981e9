"""People of the census, and a tree over the columns as the generator.

The paper has Adult, MST and a small network at 10 and 100 epochs. Adult is not shipped; this census
is its larger relative. Of people who agree in every column one is kept, so that nobody unseen is a
member's double.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from auditkit.attacks.generated import Loss, Mixture, default_classifier, generate, split_members
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.generators import Examples, fit_chow_liu_tree
from auditkit.models.networks import mlp
from auditkit.models.training import Models, fit_many
from experiments.panoramia.audits import NULL, TARGET, all_rows, curves
from experiments.panoramia.images import (
    SEEDS,
    TRIAL,
    TRIAL_CURVES,
    accuracy,
    coins_of,
    loss_of,
)

MEMBERS, TRAINING, AUDITED = 12_000, 3_000, 5_000
WIDTHS = (150, 100, 50, 10)
RARE = ("capital gains", "capital losses", "dividends", "wage per hour")
EVERYBODY, PLAIN = "everybody", "without capital income or wage"
FREQUENT = 500  # a category with fewer people has no column of its own in the networks


class World(NamedTuple):
    """Who is what, for one seed."""

    members: Examples
    spare: Examples
    train: Examples
    real: Examples
    others: Examples
    unseen_train: Examples
    unseen: Examples


@cache
def people() -> tuple[Examples, np.ndarray]:
    """Return everybody once, and who has one of the rare kinds of income."""
    data = load("census-income")
    table, labels = data["train_features"], data["train_labels"]
    _, once = np.unique(np.column_stack((table, labels)), axis=0, return_index=True)
    once.sort()
    rare = [data.feature_names.index(name) for name in RARE]
    return Examples(table[once], labels[once]), (table[once][:, rare] > 0).any(axis=1)


@cache
def columns() -> tuple[tuple[int, np.ndarray | None, float, float], ...]:
    """Return how networks see each column: its frequent levels, or its mean and deviation."""
    data, (everybody, _) = load("census-income"), people()
    found = []
    for place, name in enumerate(data.feature_names):
        column = everybody.inputs[:, place]
        levels = None
        if name in data.categories:
            values, counts = np.unique(column, return_counts=True)
            levels = values[counts >= FREQUENT]
        found.append((place, levels, float(column.mean()), float(column.std())))
    return tuple(found)


def seen(examples: Examples) -> Examples:
    """Return people as networks see them."""
    parts = []
    for place, levels, mean, deviation in columns():
        column = examples.inputs[:, [place]]
        parts.append((column - mean) / deviation if levels is None else column == levels)
    return Examples(np.concatenate(parts, axis=1).astype(np.float32), examples.labels)


@cache
def world(seed: int, who: str) -> World:
    """Deal the people."""
    everybody, rich = people()
    pool = np.flatnonzero(~rich) if who == PLAIN else np.arange(len(everybody))
    rng = np.random.default_rng((seed, 11))
    order = rng.permutation(pool)[: 2 * MEMBERS + TRAINING + AUDITED]
    members, others, rest = np.split(order, (MEMBERS, 2 * MEMBERS))
    spare, train, real = (
        members[rows]
        for rows in split_members(MEMBERS, training=TRAINING, audited=AUDITED, rng=rng)
    )
    parts = (members, spare, train, real, others, rest[:TRAINING], rest[TRAINING:])
    return World(*(everybody[rows] for rows in parts))


@cache
def made(seed: int, who: str, filtered: bool) -> Examples:
    """Generate people: for training, for the audit, and for the helper, in this order.

    The filter drops the half that a classifier is surest of; it learns from spare members and from
    people generated for it alone.
    """
    spare = world(seed, who).spare
    rng = np.random.default_rng((seed, 12))
    source = fit_chow_liu_tree(spare)
    wanted = TRAINING + AUDITED + len(spare)
    if not filtered:
        return generate(source, wanted, rng=rng)
    lessons, drawn = (generate(source, n, rng=rng) for n in (len(spare), 2 * wanted))
    judge = default_classifier().fit(
        np.concatenate((spare.inputs, lessons.inputs)), np.repeat((1, 0), len(spare))
    )
    kept = judge.decision_function(drawn.inputs)
    return drawn[np.sort(np.argsort(-kept, kind="stable")[:wanted])]


def train(
    parts: list[Examples], epochs: int, seeds: list[int], start: Models | None = None
) -> Models:
    """Train the paper's network on each of several parts, or train these networks on."""
    shown = [seen(part) for part in parts]
    pool = np.concatenate([part.inputs for part in shown])
    return fit_many(
        partial(mlp, pool.shape[1], 2, hidden=WIDTHS),
        pool,
        np.concatenate([part.labels for part in shown]),
        seeds=seeds,
        indices=np.arange(len(pool)).reshape(len(parts), -1),
        epochs=epochs,
        batch_size=64,
        learning_rate=5e-4,
        optimizer="adam",
        initial=None if start is None else start.weights,
    )


@cache
def networks(seed: int, who: str, epochs: int) -> Models:
    """Train the audited model and its null, side by side; 100 epochs go on from 10."""
    own = world(seed, who)
    first = (1 + seed) * 1000 + epochs
    parts, seeds = [own.members, own.others], [first, first + 1]
    if epochs <= 10:
        return train(parts, epochs, seeds)
    return train(parts, epochs - 10, seeds, networks(seed, who, 10))


def network(seed: int, who: str, release: str, epochs: int) -> Models:
    """Return the audited model or its null."""
    both, place = networks(seed, who, epochs), (TARGET, NULL).index(release)
    return Models(both.network, {name: pair[[place]] for name, pair in both.weights.items()})


@cache
def taught(seed: int, who: str, filtered: bool) -> Models:
    """Train a helper on generated people."""
    lessons = made(seed, who, filtered)[TRAINING + AUDITED :]
    return train([lessons], 10, [(1 + seed) * 1000 + 8])


def loss_on(models: Models, trial: bool = False) -> Loss:
    """Return the loss of a network on people as they are."""
    loss = loss_of(models, trial)
    return lambda examples: loss(seen(examples))


@cache
def mixture(seed: int, who: str, filtered: bool) -> Mixture:
    """Mix members with generated people."""
    own, fake = world(seed, who), made(seed, who, filtered)
    return Mixture(own.train, fake[:TRAINING], own.real, fake[TRAINING : TRAINING + AUDITED])


@study(
    "pan-tables",
    paper=[
        {"who": who, "filtered": filtered, "epochs": epochs, "seed": seed, "flips": 10}
        for seed in SEEDS
        for who, filtered in ((EVERYBODY, False), (EVERYBODY, True), (PLAIN, False))
        for epochs in (10, 100)
    ],
    live={"who": [EVERYBODY], "filtered": [False], **TRIAL},
    reduced={"who": [EVERYBODY], "filtered": [False], **TRIAL},
    tolerance=0.02,
)
def census(
    who: str, filtered: bool, epochs: int, seed: int, flips: int, trial: bool = False
) -> list[dict]:
    """Audit a network on people, and one trained on other people.

    ``rare_share`` is the share with a rare kind of income among the 100 audited members that the
    baseline is surest of, ``rare_overall`` among all of them.
    """
    own, mixed = world(seed, who), mixture(seed, who, filtered)
    unseen = Mixture(own.train, own.unseen_train, own.real, own.unseen)
    models = {name: network(seed, who, name, epochs) for name in (TARGET, NULL)}
    helper = loss_on(taught(seed, who, filtered), trial)
    names = load("census-income").feature_names
    rare = (own.real.inputs[:, [names.index(name) for name in RARE]] > 0).any(axis=1)
    surest = np.argsort(-mixed.scores(helper).real, kind="stable")[:100]
    return all_rows(
        mixed,
        unseen,
        helper,
        {name: loss_on(model, trial) for name, model in models.items()},
        pairs=(AUDITED,),
        flips=flips,
        coins=coins_of(seed),
        rare_share=float(rare[surest].mean()),
        rare_overall=float(rare.mean()),
        member_accuracy=accuracy(models[TARGET], seen(own.members)),
        unseen_accuracy=accuracy(models[TARGET], seen(own.unseen)),
    )


@study(
    "pan-tables-curves",
    paper={"epochs": [10, 100], "seed": SEEDS},
    live=TRIAL_CURVES,
    reduced=TRIAL_CURVES,
    tolerance=0.02,
)
def recall_curves(epochs: int, seed: int, trial: bool = False) -> list[dict]:
    """Return precision and bound along the recall, for everybody; one toss."""
    which = (seed, EVERYBODY)
    losses = {name: loss_on(network(*which, name, epochs), trial) for name in (TARGET, NULL)}
    mixed, helper = mixture(*which, False), loss_on(taught(*which, False), trial)
    return curves(mixed, helper, losses, coins=coins_of(seed))
