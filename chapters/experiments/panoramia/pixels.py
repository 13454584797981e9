"""Pixels: which generator, and which preparation of images, leave room below the ceiling.

The paper has StyleGAN2 and a residual network that tells images apart. Here images are the shipped
ones of Fashion-MNIST, generators train for two minutes or so, and what tells images apart is a
small convolutional network whose verdict is given to boosted trees.

An audited example is an image after a stated preparation: fewer pixels, the part that lies along a
few directions of largest spread, or noise, and always 256 grey levels. The audited models are
trained on images prepared so, hence their privacy is that of the prepared images, and the generator
has to imitate no more. Directions come from the generator's own images.
"""

import time
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from torch import nn

from auditkit.attacks.generated import Loss, Mixture, generate, split_members
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.generators import Examples, Generator, fit_gaussian_mixtures
from auditkit.models.networks import mlp
from auditkit.models.training import Models, fit_many
from experiments.panoramia.audits import (
    NESTED,
    NULL,
    game_rows,
    one_run_rows,
    real_rows,
    settled,
)
from experiments.panoramia.pixel_generators import (
    Along,
    Directions,
    Resampled,
    fit_diffusion,
    fit_filter,
    fit_variational,
    grey_levels,
    principal_directions,
    reduced,
)

CLASSES = 10
TRAINING, AUDITED = 4_000, 10_000  # members; the other 6,000 are the generator's
UNSEEN_TRAINING = 1_000  # real examples; the other 3,000 are the pairs of RM;RN and O(1)
PAIRS = (500, 2_000, 10_000)
PASSES = (5, 60)  # of an audited model over its images: it generalises, or knows them by heart
HELPED, LOOKED = 5, 10  # passes of the helper, and of who tells images apart
SEEN = 48  # directions that trees and audited models see
ALONG = 128  # directions of a generator at most


class Preparation(NamedTuple):
    """What is done to an image before anybody trains on it."""

    factor: int = 1  # pixels along a square that becomes one
    directions: int | None = None
    noise: float = 0.0


WHOLE, SMALL = "28 × 28", "14 × 14"
PREPARATIONS = {
    WHOLE: Preparation(),
    SMALL: Preparation(factor=2),
    "32 directions": Preparation(directions=32),
    "16 directions": Preparation(directions=16),
    "14 × 14, noise 0.3": Preparation(factor=2, noise=0.3),
}
LARGER_NULL, TRIED = "larger null", "trial"
SEEDS = [0, 1, 2, 3, 4]
NONE, TREES, NETWORK, HELPER = "none", "trees", "network", "network and helper"


class World(NamedTuple):
    """Prepared images, and who may see them."""

    spare: Examples  # members that train the generator, grey levels not yet rounded, without noise
    spare_finished: Examples  # the same as they are audited
    train: Examples
    real: Examples
    members: Examples
    unseen_train: Examples
    unseen: Examples
    rank: int  # directions that images without noise vary along
    seen: Directions  # along which trees and audited models see images
    scale: np.ndarray  # how much the generator's images vary along them
    noise: float

    def finish(self, images: Examples, rng: np.random.Generator) -> Examples:
        """Return generated images with the noise and the grey levels of audited ones."""
        return finished(images, self.noise, rng)


@cache
def world(preparation: str, seed: int) -> World:
    """Deal and prepare the images."""
    data, rng = load("fashion-mnist"), np.random.default_rng((seed, 1))
    members, unseen = (
        Examples(data[f"{part}_images"].astype(np.float32) / 255.0, data[f"{part}_labels"])
        for part in ("train", "test")
    )
    factor, directions, noise = PREPARATIONS[preparation]
    members, unseen = (
        Examples(reduced(part.inputs, factor), part.labels) for part in (members, unseen)
    )
    spare, train, real = split_members(len(members), training=TRAINING, audited=AUDITED, rng=rng)
    if directions is not None:
        along = principal_directions(members.inputs[spare], directions)
        members, unseen = (
            Examples(along.images(along.coordinates(part.inputs)), part.labels)
            for part in (members, unseen)
        )

    own, unseen = members[spare], unseen[rng.permutation(len(unseen))]
    members, unseen = finished(members, noise, rng), finished(unseen, noise, rng)
    seen = principal_directions(members.inputs[spare], min(SEEN, directions or SEEN))
    return World(
        own,
        members[spare],
        members[train],
        members[real],
        members,
        unseen[:UNSEEN_TRAINING],
        unseen[UNSEEN_TRAINING:],
        directions or own.inputs[0].size,
        seen,
        seen.coordinates(members.inputs[spare]).std(axis=0),
        noise,
    )


def finished(images: Examples, noise: float, rng: np.random.Generator) -> Examples:
    """Add noise, and round to grey levels."""
    return Examples(grey_levels(images.inputs, noise=noise, rng=rng), images.labels)


# The generators.


def variational(images: World, rng: np.random.Generator) -> Generator:
    """Train a variational autoencoder."""
    grey = Examples(np.clip(images.spare.inputs, 0.0, 1.0), images.spare.labels)
    return fit_variational(grey, rng, passes=30)


def mixtures(images: World, rng: np.random.Generator) -> Generator:
    """Fit a mixture of Gaussians for each class, along directions."""
    along, seen = _along(images)
    return Along(along, fit_gaussian_mixtures(seen, rng, components=4))


def diffusion(images: World, rng: np.random.Generator) -> Generator:
    """Train a diffusion model along directions."""
    along, seen = _along(images)
    return Along(along, fit_diffusion(seen, rng, updates=3_000))


def filtered(images: World, rng: np.random.Generator) -> Generator:
    """Throw away half of what the mixtures make: what a network finds least real."""
    side = images.spare.inputs.shape[1]
    return fit_filter(
        mixtures(images, rng),
        images.spare,
        rng,
        removed=0.5,
        see=lambda made: images.finish(made, rng).inputs.reshape(len(made), -1),
        classifier=Looker(side, seed=int(rng.integers(2**31))),
    )


def resampled(images: World, _: np.random.Generator) -> Generator:
    """Draw the generator's own members again, with a little noise."""
    return Resampled(images.spare, 0.1)


GENERATORS = {
    "variational autoencoder": variational,
    "mixtures": mixtures,
    "filtered mixtures": filtered,
    "diffusion": diffusion,
    "resampled members": resampled,
}


def _along(images: World, most: int = ALONG) -> tuple[Directions, Examples]:
    pixels = images.spare.inputs
    along = principal_directions(pixels, min(most, images.rank))
    return along, Examples(along.coordinates(pixels), images.spare.labels)


# Who tells images apart.


class Looker:
    """A convolutional network that tells two kinds of images apart, in scikit-learn's manner."""

    def __init__(self, side: int, *, seed: int) -> None:
        self.side, self.seed = side, seed

    def fit(self, rows: np.ndarray, kinds: np.ndarray) -> "Looker":
        """Train on flat images."""
        self.models = looking(self.side, rows, kinds, [self.seed], None, LOOKED)
        return self

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of either kind."""
        return self.models.probabilities(_layers(rows, self.side))[0]


def looking(
    side: int,
    rows: np.ndarray,
    kinds: np.ndarray,
    seeds: list[int],
    indices: np.ndarray | None,
    passes: int,
) -> Models:
    """Train networks that tell two kinds of images apart."""
    return fit_many(
        partial(_looker, side),
        _layers(rows, side),
        kinds,
        seeds=seeds,
        indices=indices,
        epochs=passes,
        batch_size=64,
        learning_rate=1e-3,
        optimizer="adam",
        weight_decay=1e-4,
    )


def _looker(side: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(24, 24, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Conv2d(24, 48, 3, padding=1, stride=2),
        nn.ReLU(),
        *mlp(48 * (-(-side // 4)) ** 2, 2, hidden=(64,)),
    )


def _layers(rows: np.ndarray, side: int) -> np.ndarray:
    """Return images with a channel, centred roughly."""
    return rows.reshape(-1, 1, side, side).astype(np.float32) - np.float32(0.3)


def verdicts(mixture: Mixture, seed: int, trial: int = 0) -> np.ndarray:
    """Return log-odds of being real, for the parts of a mixture one after another.

    Two networks learn from one half of the training part each, and judge the other half; what is
    audited gets the mean of both.
    """
    parts = (mixture.train_real, mixture.train_other, mixture.real, mixture.other)
    rows = np.concatenate([part.inputs for part in parts])
    trained = len(parts[0]) + len(parts[1])
    kinds = np.repeat((1, 0), (len(parts[0]), len(parts[1])))
    halves = np.random.default_rng((seed, 3)).permutation(trained).reshape(2, -1)
    seeds = [2 * seed, 2 * seed + 1]
    models = looking(rows.shape[1], rows[:trained], kinds, seeds, halves, trial or LOOKED)
    logits = models.logits(_layers(rows, rows.shape[1])).astype(np.float64)
    odds = logits[..., 1] - logits[..., 0]
    judged = odds.mean(axis=0)
    judged[halves[0]], judged[halves[1]] = odds[1, halves[0]], odds[0, halves[1]]
    return np.sign(judged) if trial else judged


def mixed(images: World, parts: tuple[Examples, ...], columns: np.ndarray | None = None) -> Mixture:
    """Return a mixture of which trees see coordinates and label, and a verdict if there is one."""
    pixels = np.concatenate([part.inputs for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    seen = [looked_at(images, pixels), labels[:, None] == np.arange(CLASSES)]
    matrix = np.column_stack(seen if columns is None else [*seen, columns])
    return Mixture(*parts, see=matrix)


def looked_at(images: World, pixels: np.ndarray) -> np.ndarray:
    """Return coordinates of images, each with a spread of about 1."""
    return images.seen.coordinates(pixels) / images.scale


def target(
    images: World, lessons: Examples, passes: int, seed: int, digits: int | None = None
) -> Loss:
    """Train a classifier on prepared images, which it sees by their coordinates."""
    models = settled(
        partial(mlp, len(images.scale), CLASSES, hidden=(256, 256)),
        looked_at(images, lessons.inputs),
        lessons.labels,
        passes=passes,
        rate=1e-3,
        batch_size=128,
        seed=seed,
    )

    def loss(made: Examples) -> np.ndarray:
        found = models.losses(looked_at(images, made.inputs), made.labels)[0]
        return found if digits is None else found.round(digits)

    return loss


@cache
def targets(preparation: str, seed: int, trial: int, digits: int | None = None) -> dict[str, Loss]:
    """Train the audited models and two nulls, which have seen none of the audited images.

    One has seen unseen images alone. They are few, and a worse model of real images is too lenient
    a null; the other has seen the generator's members, too.
    """
    images = world(preparation, seed)
    few = joined(images.unseen_train, images.unseen)
    larger = joined(few, images.spare_finished)
    if trial:
        losses = {TRIED: (images.real[: len(images.unseen)], trial), NULL: (few, trial)}
    else:
        losses = {f"{passes} passes": (images.members, passes) for passes in PASSES}
        losses |= {NULL: (few, PASSES[-1]), LARGER_NULL: (larger, PASSES[-1])}
    return {name: target(images, *how, seed, digits) for name, how in losses.items()}


def joined(*parts: Examples) -> Examples:
    """Return all examples of several parts."""
    labels = np.concatenate([part.labels for part in parts])
    return Examples(np.concatenate([part.inputs for part in parts]), labels)


# the generators, each with the preparations that it is of interest with
PAIRED = [("mixtures", name) for name in PREPARATIONS]
PAIRED += [
    (generator, name)
    for generator in ("variational autoencoder", "diffusion", "filtered mixtures")
    for name in (WHOLE, SMALL, "32 directions")
]
PAIRED += [("resampled members", SMALL), ("resampled members", "32 directions")]


FEW = [{"generator": "mixtures", "preparation": SMALL, "seed": 0, "flips": 3, "trial": 1}]


@study(
    "pan-pixels",
    paper=[
        {"generator": generator, "preparation": preparation, "seed": seed, "flips": 5}
        for seed in SEEDS
        # cells of one preparation share their audited models
        for generator, preparation in sorted(PAIRED, key=lambda pair: pair[1])
    ],
    live=FEW,
    reduced=FEW,
    tolerance=0.02,
)
def generated(
    generator: str,
    preparation: str,
    seed: int,
    flips: int,
    trial: int = 0,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Train a generator, and audit two models and two nulls with it.

    Rows without a release are baselines by what they see: ``trees`` see coordinates and the label,
    ``network`` adds the verdict of a convolutional network, and the strongest the helper's loss
    too. Attacks see the same and the model's loss. ``training_seconds`` is the generator's. In a
    `trial` of so many passes a model learns few images, losses come in tenths and verdicts as
    signs, so that all processors agree.
    """
    images = world(preparation, seed)
    start = time.perf_counter()
    source = GENERATORS[generator](images, rng)
    seconds = time.perf_counter() - start
    made = images.finish(generate(source, 2 * TRAINING + AUDITED, rng=rng), rng)
    digits = 1 if trial else None
    helper = target(images, made[TRAINING + AUDITED :], trial or HELPED, seed, digits)
    parts = (images.train, made[:TRAINING], images.real, made[TRAINING : TRAINING + AUDITED])
    blind = mixed(images, parts)
    seeing = mixed(images, parts, verdicts(blind, seed, trial))
    baselines = {
        TREES: blind.scores(),
        NETWORK: seeing.scores(),
        HELPER: seeing.scores(helper),
    }
    # the same coins for every generator
    options = {"pairs": PAIRS, "flips": flips, "coins": seed}
    rows = []
    for name, scores in baselines.items():
        rows += game_rows(scores, scores, attack=NONE, baseline=name, release=NONE, **options)
    for name, loss in targets(preparation, seed, trial, digits).items():
        attack = seeing.scores(helper, loss)
        about = {"attack": NESTED, "baseline": HELPER, "release": name}
        rows += game_rows(baselines[HELPER], attack, **about, **options)
    return [{**row, "training_seconds": seconds} for row in rows]


# so many passes that something leaks
LEAKY = [{"preparation": "16 directions", "seed": 0, "flips": 3, "trial": 20}]


@study(
    "pan-pixels-real",
    paper=[
        {"preparation": preparation, "seed": seed, "flips": 5}
        for seed in SEEDS
        for preparation in sorted(PREPARATIONS)
    ],
    live=LEAKY,
    reduced=LEAKY,
    # a game hangs on a single guess
    tolerance=0.1,
)
def unseen(preparation: str, seed: int, flips: int, trial: int = 0) -> list[dict]:
    """Audit the same models with unseen real images: RM;RN, and O(1) by the loss alone."""
    images = world(preparation, seed)
    train = images.train[:UNSEEN_TRAINING]
    pairs = len(images.unseen)
    parts = (train, images.unseen_train, images.real[:pairs], images.unseen)
    unseen = mixed(images, parts)
    options = {"pairs": (500, pairs), "flips": flips, "coins": seed}
    rows = []
    for name, loss in targets(preparation, seed, trial).items():
        if name not in (NULL, LARGER_NULL):  # the nulls were trained on these unseen images
            rows += real_rows(unseen.scores(loss), attack="loss", release=name, **options)
            rows += one_run_rows(unseen.loss_scores(loss), release=name, **options)
    return rows


CAUGHT = [{"preparation": SMALL, "seed": 0, "flips": 3, "trial": 2}]


@study(
    "pan-pixels-floor",
    paper={"preparation": [WHOLE, SMALL, "32 directions"], "seed": SEEDS, "flips": [5]},
    live=CAUGHT,
    reduced=CAUGHT,
    tolerance=0.02,
)
def floor(
    preparation: str, seed: int, flips: int, trial: int = 0, *, rng: np.random.Generator
) -> list[dict]:
    """Tell members from other real images of which only what lies along the directions is left.

    No generator along these directions can do better than to draw real images there. In a `trial`
    of so many passes there are four directions, and verdicts are signs.
    """
    images = world(preparation, seed)
    along, seen = _along(images, 4 if trial else ALONG)
    flat = Examples(along.images(seen.inputs), seen.labels)
    left, half = images.finish(flat, rng), len(flat) // 2
    parts = (images.train[:half], left[:half], images.real[:half], left[half:])
    blind = mixed(images, parts)
    seeing = mixed(images, parts, verdicts(blind, seed, trial))
    options = {"pairs": (half,), "flips": flips, "coins": seed}
    return [
        row
        for name, mixture in ((TREES, blind), (NETWORK, seeing))
        for scores in (mixture.scores(),)
        for row in game_rows(scores, scores, baseline=name, **options)
    ]
