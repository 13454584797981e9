"""Photographs: CIFAR-10 as pixels, a generator that leaves room, detectors and helpers.

The paper has StyleGAN2 and a residual network that tells images apart. No generator that two cores
train draws a photograph that such a network takes for real, and then nothing can be measured. What
can be imitated is a photograph with less in it. So an audited example is an image after a stated
preparation: fewer pixels and noise, in 256 levels. The audited models are trained on images
prepared so, hence their privacy is that of the prepared images.

The generator blurs images of members that nobody audits towards their class. A labeller gives its
images their labels. Detectors, helpers and audited models are convolutional networks.

This module and those of the networks train, and store what networks say of each image. Those of
`photograph_audits` only stack what is stored, and count.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from auditkit.attacks.generated import split_members
from auditkit.datasets import load
from auditkit.experiment import stored, study
from auditkit.models.convolutional import Convolutional, train_convolutional
from auditkit.models.generators import Examples
from experiments.panoramia.packed import pack, pack_bytes, unpack
from experiments.panoramia.stacks import PARTS

CIFAR, FASHION = "cifar10", "fashion-mnist"
CLASSES = 10
WIDTHS = (32, 64, 128)
LABELLED, HELPED, LOOKED = 16, 8, 16  # passes of the labeller, of a helper, of a detector
BLUR = 0.7  # the share of a Gaussian in a generated image
SAMPLED, MOST_LIKELY = "sampled", "most likely"


class Scale(NamedTuple):
    """How many images have which task, and in which precision networks train."""

    members: int
    training: int  # members, and as many unseen images, that baseline and attack learn from
    audited: int
    directions: int  # that vary together in the generator
    precision: str
    batch: int | None  # None for that of the recipe, which is for thousands of images

    @property
    def spare(self) -> int:
        """Members that train generator and labeller."""
        return self.members - self.training - self.audited


SCALES = {
    CIFAR: Scale(22_500, 5_000, 10_000, 150, "bfloat16", None),
    # shipped images, and few of them, which leave rounding little time to grow
    FASHION: Scale(2_000, 500, 1_000, 30, "float32", 50),
}


class Preparation(NamedTuple):
    """What is done to an image before anybody trains on it."""

    factor: int = 1  # pixels along a square that becomes one
    noise: float = 0.0  # its spread, where white is 1


NOISY = "half the side, noise 0.3"
PREPARATIONS = {
    "as they are": Preparation(),
    "half the side": Preparation(2),
    "half the side, noise 0.2": Preparation(2, 0.2),
    NOISY: Preparation(2, 0.3),
}


class World(NamedTuple):
    """Prepared images, and who may see them."""

    members: Examples
    spare: Examples  # members that train generator and labeller
    clean: Examples  # the same without noise, not yet rounded
    train: Examples  # members that train baseline and attack
    real: Examples  # members that are audited
    others: Examples  # what the null is trained on: spare members, and others for all the rest
    unseen_train: Examples
    unseen: Examples


@cache
def world(data: str, preparation: str, seed: int) -> World:
    """Deal and prepare the images."""
    whole, size, how = load(data), SCALES[data], PREPARATIONS[preparation]
    labels = np.concatenate([whole[f"{split}_labels"] for split in ("train", "test")])
    rng = np.random.default_rng((seed, 1))
    order = rng.permutation(len(labels))
    members, others, rest = np.split(order, (size.members, 2 * size.members))
    spare, train, real = (
        members[rows]
        for rows in split_members(
            size.members, training=size.training, audited=size.audited, rng=rng
        )
    )
    # the null meets the generator's images as the target does, and differs by what is audited
    others = np.concatenate((spare, others[size.spare :]))
    pixels = np.concatenate([whole[f"{split}_images"] for split in ("train", "test")])
    smaller = reduced(pixels, how.factor)
    images = finished(smaller, how.noise, rng)
    unseen_train, unseen = np.split(rest[: size.training + size.audited], [size.training])
    every = Examples(images, labels)
    return World(
        every[members],
        every[spare],
        Examples(smaller[spare], labels[spare]),
        *(every[rows] for rows in (train, real, others, unseen_train, unseen)),
    )


def reduced(pixels: np.ndarray, factor: int) -> np.ndarray:
    """Return images with their channels last, squares of pixels as their mean, white as 1."""
    count, side = len(pixels), pixels.shape[1] // factor
    squares = pixels.reshape(count, side, factor, side, factor, -1)
    return squares.mean(axis=(2, 4), dtype=np.float32) / np.float32(255.0)


def finished(images: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Add noise and round to 256 levels, which leave room for three deviations of it at either end.

    Where the levels ended at black and white, noise would be cut there, and who sees it cut knows
    where an image is black or white.
    """
    room = 3.0 * noise
    shown = images
    if noise:
        drawn = rng.standard_normal(images.shape, dtype=np.float32)
        shown = images + np.float32(noise) * drawn
    levels = (shown + np.float32(room)) / np.float32(1.0 + 2.0 * room)
    return np.rint(255.0 * np.clip(levels, 0.0, 1.0)).astype(np.uint8)


class Painter(NamedTuple):
    """A smoothed bootstrap: images that were fitted, drawn again and blurred towards their class.

    An image is the centre of its class, what sets an image that was fitted apart from it, and a
    Gaussian, in shares that keep the spread of the class. The Gaussian alone knows nothing of edges
    and of even skies. A share of a member makes the audited model a little more familiar with what
    is generated, and an attack a little worse.
    """

    mean: np.ndarray
    directions: np.ndarray  # rows
    fitted: Examples  # along the directions
    centres: np.ndarray  # of each class
    factors: np.ndarray  # of each class, along the first directions, lower triangles
    spread: np.ndarray  # along the rest
    shape: tuple[int, ...]

    def sample(self, number: int, *, rng: np.random.Generator) -> Examples:
        """Draw images without noise."""
        chosen = self.fitted[rng.integers(len(self.fitted), size=number)]
        blur = rng.standard_normal(chosen.inputs.shape, dtype=np.float32)
        first = self.factors.shape[1]
        for label in range(CLASSES):
            own = chosen.labels == label
            blur[own, :first] = blur[own, :first] @ self.factors[label].T
        blur[:, first:] *= self.spread
        centres = self.centres[chosen.labels]
        drawn = centres + np.sqrt(1.0 - BLUR**2) * (chosen.inputs - centres) + BLUR * blur
        flat = self.mean + drawn.astype(np.float32) @ self.directions
        return Examples(flat.reshape(number, *self.shape), chosen.labels)


def painter(clean: Examples, directions: int) -> Painter:
    """Fit the generator."""
    flat = clean.inputs.reshape(len(clean), -1)
    mean = flat.mean(axis=0)
    turned = np.linalg.svd(flat - mean, full_matrices=False)[2]
    fitted = Examples((flat - mean) @ turned.T, clean.labels)
    classes = [fitted.inputs[clean.labels == label] for label in range(CLASSES)]
    centres = np.array([own.mean(axis=0) for own in classes])
    # a little more along every direction, since a class has few images
    more = 1e-6 * np.eye(directions)
    factors = [np.linalg.cholesky(np.cov(own[:, :directions].T) + more) for own in classes]
    spread = fitted.inputs[:, directions:].std(axis=0)
    clouds = fitted, centres, np.array(factors, np.float32), spread
    return Painter(mean, turned, *clouds, clean.inputs.shape[1:])


class Made(NamedTuple):
    """Generated images for each purpose; their labels are those of the images they come from."""

    train: Examples
    other: Examples
    lessons: Examples  # for the helper


@cache
def made(data: str, preparation: str, seed: int) -> Made:
    """Generate images, with noise as the real ones have it."""
    size, images = SCALES[data], world(data, preparation, seed)
    rng = np.random.default_rng((seed, 2))
    source = painter(images.clean, size.directions)
    drawn = source.sample(size.training + size.audited + size.spare, rng=rng)
    shown = Examples(finished(drawn.inputs, PREPARATIONS[preparation].noise, rng), drawn.labels)
    ends = np.cumsum((size.training, size.audited))
    return Made(*(shown[rows] for rows in np.split(np.arange(len(shown)), ends)))


def trained(data: str, examples: Examples, seed: tuple[int, ...], **options: Any) -> Convolutional:
    """Train a network, all by one recipe."""
    return train_convolutional(
        examples.inputs,
        examples.labels,
        seed=int(np.random.SeedSequence(seed).generate_state(1)[0]),
        **{
            "classes": CLASSES,
            "widths": WIDTHS,
            "batch": SCALES[data].batch,
            "precision": SCALES[data].precision,
            **options,
        },
    )


@cache
def labeller(data: str, preparation: str, seed: int) -> tuple[Convolutional, float]:
    """Train what labels generated images, and find the power that makes it as sure as it may be.

    It learns smoothed labels, and would draw the wrong label too often. The power is found on the
    fifth of the members that it is not trained on.
    """
    spare = world(data, preparation, seed).spare
    kept = len(spare) // 5
    judge = trained(data, spare[kept:], (seed, 3), passes=LABELLED)
    logs, labels = judge.log_probabilities(spare.inputs[:kept]), spare.labels[:kept]

    def loss(power: float) -> float:
        return float(-log_softmax(power * logs, axis=1)[np.arange(kept), labels].mean())

    return judge, float(minimize_scalar(loss, bounds=(0.2, 5.0), method="bounded").x)


def labelled(data: str, preparation: str, seed: int, labels: str) -> Made:
    """Return generated images with labels that are drawn, or the most likely ones."""
    (judge, power), drawn = labeller(data, preparation, seed), made(data, preparation, seed)
    rng, parts = np.random.default_rng((seed, 4)), []
    for part in drawn:
        logs = power * judge.log_probabilities(part.inputs)
        said = np.exp(log_softmax(logs, axis=1)).cumsum(axis=1)
        draws = rng.random((len(part), 1)) * said[:, -1:]
        sampled = (said[:, :-1] < draws).sum(axis=1)
        parts.append(part.labelled(sampled if labels == SAMPLED else logs.argmax(axis=1)))
    return Made(*parts)


def parts_of(images: World, drawn: Made) -> dict[str, Examples]:
    """Return the images that baseline and attack meet."""
    shown = (images.train, images.real, drawn.train, drawn.other, images.unseen_train)
    return dict(zip(PARTS, (*shown, images.unseen), strict=True))


def detected(data: str, parts: dict[str, Examples], seed: int) -> dict[str, np.ndarray]:
    """Return log-odds of being real by convolutional networks, cross-fitted.

    Two networks learn from one half of the training parts each, and judge the other half; any other
    image gets the mean of both.
    """
    lessons = (parts["train"], parts["made train"])
    images = np.concatenate([part.inputs for part in lessons])
    kinds = np.repeat((1, 0), [len(part) for part in lessons])
    halves = np.random.default_rng((seed, 5)).permutation(len(kinds)).reshape(2, -1)
    judges = [
        trained(
            data, Examples(images[half], kinds[half]), (seed, 6, which), passes=LOOKED, classes=2
        )
        for which, half in enumerate(halves)
    ]
    found = {
        name: np.mean([odds(judge.logits(part.inputs)) for judge in judges], axis=0)
        for name, part in parts.items()
    }
    fitted = np.empty(len(kinds))
    for judge, half in zip(judges, halves[::-1], strict=True):
        fitted[half] = odds(judge.logits(images[half]))
    cut = len(lessons[0])
    return found | {"train": fitted[:cut], "made train": fitted[cut:]}


def odds(logits: np.ndarray) -> np.ndarray:
    """Return log-odds of the second class."""
    return (logits[:, 1] - logits[:, 0]).astype(np.float64)


def own_odds(logs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the log-odds of each image's label from the logarithms of all probabilities.

    They are high where the loss is low, and tell small losses apart.
    """
    own = np.eye(logs.shape[1], dtype=bool)[labels]
    rest = np.where(own, -np.inf, logs)
    top = rest.max(axis=1)
    return logs[own] - top - np.log(np.exp(rest - top[:, None]).sum(axis=1))


DETECTORS = "pan-detectors-scores"
SEEDS = range(5)
NEEDS = "the images of CIFAR-10, as data/README.md says"
TINY = {"data": FASHION, "preparation": NOISY, "labels": SAMPLED, "seed": 0}


@study(
    DETECTORS,
    paper=[
        {"data": CIFAR, "preparation": preparation, "labels": labels, "seed": seed}
        for seed in SEEDS
        for preparation, labels in (
            *((one, SAMPLED) for one in PREPARATIONS),
            (NOISY, MOST_LIKELY),
        )
    ],
    live=[TINY],
    reduced=[TINY],
    tolerance=0.05,
    needs=NEEDS,
)
def detectors(data: str, preparation: str, labels: str, seed: int) -> list[dict]:
    """Generate images, and say what detectors and helpers make of them and of real ones.

    A row for each part of the images: its labels, the detectors' log-odds of being real, and the
    log-odds that two helpers give the labels, one trained on generated images and one on as many
    unseen real ones, which are those of RM;RN. They are stored at the paper's scale only: rounding
    on another processor makes another text.
    """
    images, drawn = world(data, preparation, seed), labelled(data, preparation, seed, labels)
    parts = parts_of(images, drawn)
    verdicts = detected(data, parts, seed)
    lessons = {"generated": drawn.lessons, "real": images.unseen[: len(drawn.lessons)]}
    helpers = {
        name: trained(data, part, (seed, 7, place), passes=HELPED)
        for place, (name, part) in enumerate(lessons.items())
    }
    rows = []
    for name, part in parts.items():
        said = {
            one: own_odds(model.log_probabilities(part.inputs), part.labels)
            for one, model in helpers.items()
        }
        columns = {"label": part.labels, "detector": verdicts[name], **said}
        rows.append(summary(data, columns, part=name))
    return rows


def summary(data: str, columns: dict[str, np.ndarray], **about: object) -> dict:
    """Return a row of a table: the mean of each column, and all of it at the paper's scale."""
    row = dict(about)
    for name, column in columns.items():
        row[f"{name}_mean"] = float(np.mean(column))
        row[name] = pack(column) if data == CIFAR else None
    return row


@cache
def told(preparation: str, labels: str, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Return the stored columns of each part of the images."""
    rows = stored(DETECTORS)
    which = {"preparation": preparation, "labels": labels, "seed": seed}
    for name, value in which.items():
        rows = rows[rows[name] == value]
    if set(rows["part"]) != set(PARTS) or len(rows) != len(PARTS):
        raise ValueError(f"{DETECTORS} has no scores of {which}")
    names = ("label", "detector", "generated", "real")
    return {row["part"]: {name: unpack(row[name]) for name in names} for _, row in rows.iterrows()}


SHOWN = 10
FEW = {"data": FASHION, "preparation": NOISY, "seed": 0}


@study(
    "pan-images-shown",
    paper={"data": [CIFAR], "preparation": list(PREPARATIONS), "seed": [0]},
    live=[FEW],
    reduced=[FEW],
    tolerance=0.02,
    needs=NEEDS,
)
def shown(data: str, preparation: str, seed: int) -> list[dict]:
    """Return the first audited members, and as many generated images: one of each class."""
    kinds = {
        "member": world(data, preparation, seed).real,
        "generated": made(data, preparation, seed).other,
    }
    rows = []
    for kind, part in kinds.items():
        for label in range(SHOWN):
            image = part.inputs[np.flatnonzero(part.labels == label)[0]]
            pixels = pack_bytes(image) if data == CIFAR else None
            about = {"kind": kind, "label": label, "side": image.shape[0]}
            rows.append(about | {"brightness": float(image.mean()), "pixels": pixels})
    return rows
