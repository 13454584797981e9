"""Images of CIFAR-10 as frozen features, a mixture of Gaussians for each class as the generator.

The paper has StyleGAN2 and residual networks. Here the audited models are networks on the 24
principal directions of a frozen encoder's features, which a mixture of Gaussians imitates well. The
features are shipped as whole steps of a scale: what is generated is rounded to the same steps.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from auditkit.attacks.generated import (
    Loss,
    Mixture,
    generate,
    sampled_labels,
    split_members,
)
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.generators import Examples, fit_gaussian_mixtures
from auditkit.models.networks import mlp
from auditkit.models.training import Models
from experiments.panoramia.audits import (
    NESTED,
    NULL,
    OWNERS_NULL,
    TARGET,
    all_rows,
    curves,
    game_rows,
    settled,
)

DIRECTIONS, CLASSES = 24, 10
MEMBERS, TRAINING, AUDITED = 22_500, 5_000, 10_000
LABELLING = 3_750  # of the 7,500 spare members; the others train the owner's null
EPOCHS = (5, 20, 60, 100)
WIDTHS = (256, 256)
PAIRS = (500, 1_000, 2_000, 5_000, 10_000)
OWN, SAMPLED, MOST_LIKELY = "class of the mixture", "sampled", "most likely"
NONE, GENERATED, REAL, BOTH = "none", "generated", "real", "both"
SEEDS = [0, 1, 2, 3, 4]
LEAKY = {"seed": SEEDS, "flips": [10], "epochs": [60]}
# a trial comes out alike on all processors: labeller and helper have one pass, which amplifies
# little, and losses come in steps of a tenth, in which the last digits are lost
TRIAL_CURVES = {"seed": [0], "epochs": [1], "trial": [True]}
TRIAL = {"flips": [3], **TRIAL_CURVES}


class World(NamedTuple):
    """Who is what, for one seed. The audited model is trained on all members."""

    members: Examples
    spare: Examples  # members that train the generator and the labeller
    train: Examples  # members that train baseline and attack
    real: Examples  # members that are audited
    others: Examples  # what the null is trained on, as many as members
    unseen_train: Examples  # real examples that no model has seen
    unseen: Examples


class Quality(NamedTuple):
    """How images are generated and labelled."""

    labels: str = SAMPLED
    components: int = 4
    covariance: str = "full"
    fitted_on: int = 0  # of the spare members; 0 for all
    trial: bool = False

    @property
    def lessons(self) -> int:
        """How many passes labeller and helper have."""
        return 1 if self.trial else 20


class Made(NamedTuple):
    """Generated examples for each purpose."""

    train: Examples
    other: Examples
    lessons: Examples  # for the helper


@cache
def images() -> tuple[Examples, np.ndarray, np.ndarray]:
    """Return all images, the step of each feature, and the largest number of steps."""
    data = load("cifar10", part="features")
    found = np.concatenate((data["train_features"], data["test_features"]))[:, :DIRECTIONS]
    labels = np.concatenate((data["train_labels"], data["test_labels"]))
    steps = np.array([np.diff(np.unique(column)).min() for column in found.T])
    counts = np.rint(found / steps)
    return Examples((counts * steps).astype(np.float32), labels), steps, np.abs(counts).max(axis=0)


def rounded(made: Examples) -> Examples:
    """Return generated examples on the grid that real ones lie on."""
    _, steps, most = images()
    counts = np.clip(np.rint(made.inputs / steps), -most, most)
    return Examples((counts * steps).astype(np.float32), made.labels)


@cache
def world(seed: int) -> World:
    """Deal the images."""
    everything, _, _ = images()
    rng = np.random.default_rng((seed, 1))
    order = rng.permutation(len(everything))
    members, others, rest = np.split(order, (MEMBERS, 2 * MEMBERS))
    spare, train, real = (
        members[rows]
        for rows in split_members(MEMBERS, training=TRAINING, audited=AUDITED, rng=rng)
    )
    parts = (members, spare, train, real, others, rest[:TRAINING], rest[TRAINING:])
    return World(*(everything[rows] for rows in parts))


@cache
def made(seed: int, quality: Quality) -> Made:
    """Generate examples, and label them."""
    spare = world(seed).spare
    rng = np.random.default_rng((seed, 2))
    source = fit_gaussian_mixtures(
        spare[: quality.fitted_on or len(spare)],
        rng,
        components=quality.components,
        covariance=quality.covariance,
    )
    drawn = generate(source, TRAINING + AUDITED + len(spare), rng=rng)
    parts = relabelled(rounded(drawn), seed, quality)
    return Made(parts[:TRAINING], parts[TRAINING : TRAINING + AUDITED], parts[TRAINING + AUDITED :])


def relabelled(drawn: Examples, seed: int, quality: Quality) -> Examples:
    """Return examples as the labeller labels them, or as they are."""
    if quality.labels == OWN:
        return drawn
    judge = labeller(seed, quality.lessons)
    if quality.labels == MOST_LIKELY:
        return drawn.labelled(judge.predict(drawn.inputs)[0])
    rng = np.random.default_rng((seed, 3))
    return drawn.labelled(sampled_labels(Judge(judge), drawn.inputs, rng=rng))


class Judge(NamedTuple):
    """A network as scikit-learn would have it."""

    models: Models

    def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
        """Return the probability of every class."""
        return self.models.probabilities(inputs)[0]


# the models


def train(
    examples: Examples,
    epochs: int,
    seed: int,
    *,
    widths: tuple[int, ...] = WIDTHS,
    start: Models | None = None,
) -> Models:
    """Train a network, or train it on."""
    return settled(
        partial(mlp, DIRECTIONS, CLASSES, hidden=widths),
        examples.inputs,
        examples.labels,
        passes=epochs,
        rate=2e-3,
        batch_size=256,
        seed=seed,
        start=start,
    )


@cache
def network(seed: int, release: str, epochs: int, widths: tuple[int, ...] = WIDTHS) -> Models:
    """Return the audited model or a null after some epochs; each goes on from the one before.

    The owner's null is trained on members that nobody audits, which is all that an owner has, and
    which the labeller has not seen.
    """
    own = world(seed)
    parts = {TARGET: own.members, NULL: own.others, OWNERS_NULL: own.spare[LABELLING:]}
    earlier = [number for number in EPOCHS if number < epochs]
    start = network(seed, release, earlier[-1], widths) if earlier else None
    which = list(parts).index(release)
    return train(
        parts[release],
        epochs - (earlier[-1] if earlier else 0),
        (1 + seed) * 1000 + 10 * epochs + which,
        widths=widths,
        start=start,
    )


@cache
def labeller(seed: int, lessons: int) -> Models:
    """Train on half of the spare members what labels generated images."""
    return train(world(seed).spare[:LABELLING], lessons, (1 + seed) * 1000 + 7)


@cache
def taught(seed: int, quality: Quality) -> Models:
    """Train a helper on generated images."""
    return train(made(seed, quality).lessons, quality.lessons, (1 + seed) * 1000 + 8)


@cache
def taught_by_real(seed: int, lessons: int) -> Models:
    """Train a helper on real images that neither the audited model nor its null has seen.

    They are those of RM;RN and O(1): where these are played, this helper is not to be used.
    """
    return train(world(seed).unseen[: len(world(seed).spare)], lessons, (1 + seed) * 1000 + 9)


def loss_of(models: Models, trial: bool = False) -> Loss:
    """Return the loss of a network; in a trial, in steps of a tenth."""

    def loss(examples: Examples) -> np.ndarray:
        found = models.losses(examples.inputs, examples.labels)[0]
        return found.round(1) if trial else found

    return loss


def accuracy(models: Models, examples: Examples) -> float:
    """Return how often it is right."""
    return float((models.predict(examples.inputs)[0] == examples.labels).mean())


@cache
def mixture(seed: int, quality: Quality) -> Mixture:
    """Mix members with generated images."""
    own, fake = world(seed), made(seed, quality)
    return Mixture(own.train, fake.train, own.real, fake.other)


@cache
def unseen_mixture(seed: int) -> Mixture:
    """Mix members with images that no model has seen."""
    own = world(seed)
    return Mixture(own.train, own.unseen_train, own.real, own.unseen)


def helper_of(seed: int, quality: Quality) -> Loss:
    """Return the loss of the helper that generated images trained."""
    return loss_of(taught(seed, quality), quality.trial)


def coins_of(seed: int) -> int:
    """Return a seed for the coins: whatever is compared for one deal of images tosses the same."""
    return int(np.random.default_rng((seed, 4)).integers(2**63))


# the experiments


@study(
    "pan-images",
    paper={"seed": SEEDS, "flips": [10], "epochs": list(EPOCHS)},
    live=TRIAL,
    reduced=TRIAL,
    tolerance=0.02,
)
def overfitting(seed: int, flips: int, epochs: int, trial: bool = False) -> list[dict]:
    """Audit a model and its null at a degree of overfitting, with several numbers of pairs."""
    losses = {name: loss_of(network(seed, name, epochs), trial) for name in (TARGET, NULL)}
    target = network(seed, TARGET, epochs)
    about = {
        "member_accuracy": accuracy(target, world(seed).members),
        "unseen_accuracy": accuracy(target, world(seed).unseen),
    }
    return all_rows(
        mixture(seed, Quality(trial=trial)),
        unseen_mixture(seed),
        helper_of(seed, Quality(trial=trial)),
        losses,
        pairs=PAIRS,
        flips=flips,
        coins=coins_of(seed),
        **about,
    )


@study(
    "pan-helpers",
    paper={"seed": list(range(10)), "flips": [10], "epochs": [60]},
    live=TRIAL,
    reduced=TRIAL,
    tolerance=0.02,
)
def by_helper(seed: int, flips: int, epochs: int, trial: bool = False) -> list[dict]:
    """Measure c_lb for each helper and way of labelling, and what is then said of models.

    The attack sees the same helpers. The audited model and its null are audited with a generator
    that was fitted on all spare members (``fitted_on`` has their number). An owner without other
    images fits generator and labeller on a half of them, and trains a null on the other half: these
    rows compare that null with the one that was trained on other images.
    """
    lessons = Quality(trial=trial).lessons
    real, rows = loss_of(taught_by_real(seed, lessons), trial), []
    options = {"pairs": (AUDITED,), "flips": flips, "coins": coins_of(seed), "attack": NESTED}
    for labels in (OWN, SAMPLED, MOST_LIKELY)[: 1 if trial else 3]:
        whole = Quality(labels, trial=trial)
        half = whole._replace(fitted_on=LABELLING)
        fake = helper_of(seed, whole)
        owners = loss_of(
            train(made(seed, half).lessons[:LABELLING], lessons, (1 + seed) * 1000 + 8)
        )
        for helper, quality, seen, releases in (
            (NONE, whole, (), (TARGET, NULL)),
            (GENERATED, whole, (fake,), (TARGET, NULL)),
            (REAL, whole, (real,), (TARGET, NULL)),
            (BOTH, whole, (fake, real), (TARGET, NULL)),
            (GENERATED, half, (owners,), (NULL, OWNERS_NULL)),
        ):
            mixed = mixture(seed, quality)
            baseline = mixed.scores(*seen)
            about = {
                "labels": labels,
                "helper": helper,
                "fitted_on": LABELLING if quality == half else len(world(seed).spare),
            }
            for release in releases:
                attack = mixed.scores(*seen, loss_of(network(seed, release, epochs), trial))
                rows += game_rows(baseline, attack, release=release, **about, **options)
    return rows


@study(
    "pan-training",
    paper={"training": [100, 250, 500, 1_000, 2_250, 5_000, 10_000], **LEAKY},
    live={"training": [1_000], **TRIAL},
    reduced={"training": [1_000], **TRIAL},
    tolerance=0.02,
)
def by_training(
    training: int, seed: int, flips: int, epochs: int, trial: bool = False
) -> list[dict]:
    """Vary how many examples of either kind train baseline and attack.

    Half of the audited pairs train here. ``left`` audits all that are not needed for training, as
    who has only so many members would; else the same 5,000 pairs are audited.
    """
    mixed, helper = (
        mixture(seed, Quality(trial=trial)),
        helper_of(seed, Quality(trial=trial)),
    )
    losses = {name: loss_of(network(seed, name, epochs), trial) for name in (TARGET, NULL)}
    half = AUDITED // 2
    pool = [
        Examples(np.concatenate((a.inputs, b.inputs)), np.concatenate((a.labels, b.labels)))
        for a, b in ((mixed.train_real, mixed.real), (mixed.train_other, mixed.other))
    ]
    known, fake = pool
    end = TRAINING + half
    coins, rows = coins_of(seed), []
    for share, audited in (("fixed", slice(end, None)), ("left", slice(training, None))):
        game = Mixture(known[:training], fake[:training], known[audited], fake[audited])
        baselines = {NONE: game.scores(), GENERATED: game.scores(helper)}
        for release, loss in losses.items():
            attack = game.scores(helper, loss)
            for name, baseline in baselines.items():
                rows += game_rows(
                    baseline,
                    attack,
                    pairs=(len(game.real),),
                    flips=flips,
                    coins=coins,
                    share=share,
                    helper=name,
                    attack=NESTED,
                    release=release,
                )
    return rows


@study(
    "pan-sizes",
    paper={"width": [16, 64, 256], **LEAKY},
    live={"width": [16], **TRIAL},
    reduced={"width": [16], **TRIAL},
    tolerance=0.02,
)
def by_size(width: int, seed: int, flips: int, epochs: int, trial: bool = False) -> list[dict]:
    """Vary how wide the audited network's two layers are."""
    widths = (width, width)
    models = {name: network(seed, name, epochs, widths) for name in (TARGET, NULL)}
    weights = sum(weight[0].numel() for weight in models[TARGET].weights.values())
    return all_rows(
        mixture(seed, Quality(trial=trial)),
        unseen_mixture(seed),
        helper_of(seed, Quality(trial=trial)),
        {name: loss_of(model, trial) for name, model in models.items()},
        pairs=(AUDITED,),
        flips=flips,
        coins=coins_of(seed),
        weights=weights,
        member_accuracy=accuracy(models[TARGET], world(seed).members),
        unseen_accuracy=accuracy(models[TARGET], world(seed).unseen),
    )


QUALITIES = {
    "4 Gaussians a class": (4, "full"),
    "1 Gaussian a class": (1, "full"),
    "4, of 1,500 members": (4, "full", 1_500),
    "4, uncorrelated": (4, "diag"),
    "1, uncorrelated": (1, "diag"),
}


@study(
    "pan-quality",
    paper={"quality": list(QUALITIES), **LEAKY},
    live={"quality": ["1, uncorrelated"], **TRIAL},
    reduced={"quality": ["1, uncorrelated"], **TRIAL},
    tolerance=0.02,
)
def by_quality(quality: str, seed: int, flips: int, epochs: int, trial: bool = False) -> list[dict]:
    """Worsen the generator, and see what can still be shown with how many pairs."""
    made_so = Quality(SAMPLED, *QUALITIES[quality])._replace(trial=trial)
    mixed, helper = mixture(seed, made_so), helper_of(seed, made_so)
    baseline, coins, rows = mixed.scores(helper), coins_of(seed), []
    for release in (TARGET, NULL):
        loss = loss_of(network(seed, release, epochs), trial)
        rows += game_rows(
            baseline,
            mixed.scores(helper, loss),
            pairs=PAIRS,
            flips=flips,
            coins=coins,
            attack=NESTED,
            release=release,
        )
    return rows


@study(
    "pan-losses",
    paper={"seed": SEEDS, "epochs": list(EPOCHS)},
    live=TRIAL_CURVES,
    reduced=TRIAL_CURVES,
    tolerance=0.02,
)
def losses(seed: int, epochs: int, trial: bool = False) -> list[dict]:
    """Return quantiles of the losses of members, unseen and generated images, under each model."""
    own = world(seed)
    kinds = {"members": own.real, "unseen": own.unseen} | {
        f"generated, {labels}": made(seed, Quality(labels, trial=trial)).other
        for labels in (OWN, SAMPLED, MOST_LIKELY)
    }
    models = {name: network(seed, name, epochs) for name in (TARGET, NULL)}
    models["helper"] = taught(seed, Quality(trial=trial))
    levels = np.append(np.linspace(0.0, 0.98, 50), (0.99, 0.999, 1.0))
    return [
        {"release": name, "kind": kind, "level": float(level), "loss": float(value)}
        for name, model in models.items()
        for kind, examples in kinds.items()
        for level, value in zip(
            levels, np.quantile(loss_of(model, trial)(examples), levels), strict=True
        )
    ]


@study(
    "pan-curves",
    paper={"seed": SEEDS, "epochs": list(EPOCHS)},
    live=TRIAL_CURVES,
    reduced=TRIAL_CURVES,
    tolerance=0.02,
)
def recall_curves(seed: int, epochs: int, trial: bool = False) -> list[dict]:
    """Return precision and bound along the recall, for baseline and both attacks; one toss."""
    losses = {name: loss_of(network(seed, name, epochs), trial) for name in (TARGET, NULL)}
    mixed, helper = (
        mixture(seed, Quality(trial=trial)),
        helper_of(seed, Quality(trial=trial)),
    )
    return curves(mixed, helper, losses, coins=coins_of(seed))


@study("pan-rounding", paper={"seed": SEEDS, "flips": [10]}, live={"seed": [0], "flips": [3]})
def rounding(seed: int, flips: int) -> list[dict]:
    """Let the generator forget to round, and see what the baseline makes of it."""
    own, coins, rows = world(seed), coins_of(seed), []
    for grid in (True, False):
        draws = np.random.default_rng((seed, 2))
        source = fit_gaussian_mixtures(own.spare, draws)
        drawn = generate(source, TRAINING + AUDITED, rng=draws)
        fake = rounded(drawn) if grid else drawn
        baseline = Mixture(own.train, fake[:TRAINING], own.real, fake[TRAINING:]).scores()
        rows += game_rows(
            baseline, baseline, pairs=(AUDITED,), flips=flips, coins=coins, rounded=grid
        )
    return rows
