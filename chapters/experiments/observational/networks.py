"""Label privacy of images from their pixels: the networks, and what they say of the images.

Convolutional networks learn one half of CIFAR-10's training images each, the reference model the
auditor's half and the target the other one, by the same recipe. Of every target there is a second
one, the same but for the labels that its mechanism protects: they are drawn from the reference
model before training. In a game with these labels no shift is left, whatever the reference model
is, so that what is found is leaked; it is the interventional audit. In a game with the true labels,
which nobody has used, nothing can be leaked.

Studies of this module and of `drawn_networks` train, and store what networks say of the images that
are played with. Those of `network_audits` only count. Without noise every mechanism here releases
the labels as they are, and trains the same network, which stands under LP-1ST.
"""

import base64
import bz2
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from auditkit.datasets import load
from auditkit.experiment import stored, study
from auditkit.mechanisms.label_dp import Alibi, RandomizedResponse, RandomizedResponseWithPrior
from auditkit.models.convolutional import Convolutional, train_convolutional
from experiments.observational.images import (
    CLASSES,
    CLUSTERED,
    MODELLED,
    clustered_response,
)
from experiments.observational.references import exponents, product

CIFAR, FASHION = "cifar10", "fashion-mnist"
WIDTHS = {CIFAR: (64, 128, 256), FASHION: (16, 16, 32)}
WHOLE, PLAYED = 25_000, 10_000  # images of a half, and those of either kind that are played with
PASSES = 16
PRIOR_PASSES = 8  # of the model that is the prior: another one than the reference model
REFERENCE_PASSES = (4, PRIOR_PASSES, PASSES, 32)
FRESH, CHECKPOINT = "fresh weights", "earlier checkpoint"
TARGET, REFERENCE, EARLIER, LABELS = range(4)  # whose seed it is
SAVED = 100  # parts of 1 to which logarithms are stored

REFERENCES, OBSERVED = "obs-networks-reference", "obs-networks"
FULL = {"data": CIFAR, "size": WHOLE, "passes": PASSES, "precision": "bfloat16"}
# shipped images, and few steps, which leave rounding little time to grow
TINY = {"data": FASHION, "size": 1000, "passes": 4, "precision": "float32"}
SEEDS = range(3)
SETTINGS = [
    ("LP-1ST", math.inf),
    *(
        (one, epsilon)
        for one in ("LP-1ST", CLUSTERED, MODELLED, "ALIBI")
        for epsilon in (10.0, 1.0)
    ),
]
NEEDS = "the images of CIFAR-10, as data/README.md says"


class Half(NamedTuple):
    """Images, with what a frozen network sees in them."""

    images: np.ndarray  # (n, side, side) or (n, side, side, channels)
    features: np.ndarray  # (n, directions)
    labels: np.ndarray  # (n,)

    def first(self, count: int) -> "Half":
        """Return the first of them."""
        return Half(*(column[:count] for column in self))


class Split(NamedTuple):
    """Who is whose."""

    own: Half  # the auditor's
    audited: Half  # those that the target is trained on
    unseen: Half  # test images


@study(
    REFERENCES,
    paper=[
        FULL | {"passes": passes, "seed": seed} for seed in SEEDS for passes in REFERENCE_PASSES
    ],
    live=[TINY | {"seed": 0}],
    reduced=[TINY | {"seed": 0}],
    tolerance=0.05,
    needs=NEEDS,
)
def reference_networks(data: str, size: int, passes: int, precision: str, seed: int) -> list[dict]:
    """Train a reference model, and say what it makes of the audited images and of unseen ones."""
    images = split(data, size)
    recipe = {"data": data, "passes": passes, "precision": precision}
    model = trained(images.own, images.own.labels, seed, REFERENCE, **recipe)
    return said(model, images, audited=size)


@study(
    OBSERVED,
    paper=[
        FULL | {"mechanism": mechanism, "epsilon": epsilon, "start": start, "seed": seed}
        for seed in SEEDS
        for mechanism, epsilon, start in (
            *((*setting, FRESH) for setting in SETTINGS),
            ("LP-1ST", math.inf, CHECKPOINT),
            ("LP-1ST", 1.0, CHECKPOINT),
        )
    ],
    live=[TINY | {"mechanism": "LP-1ST", "epsilon": math.inf, "start": FRESH, "seed": 0}],
    reduced=[
        TINY | {"mechanism": mechanism, "epsilon": epsilon, "start": start, "seed": 0}
        for mechanism, epsilon, start in (
            ("LP-1ST", math.inf, CHECKPOINT),
            (CLUSTERED, 10.0, FRESH),
            ("ALIBI", 1.0, FRESH),
        )
    ],
    tolerance=0.05,
    needs=NEEDS,
    sources=[REFERENCES],
)
def audited_networks(
    data: str,
    size: int,
    passes: int,
    precision: str,
    mechanism: str,
    epsilon: float,
    start: str,
    seed: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train a target with a mechanism, and say what it makes of audited images and unseen ones.

    One that starts from an earlier checkpoint goes on from a network of the auditor's half, as a
    model does that learns from what comes in. Rows of that checkpoint come first.
    """
    images = split(data, size)
    recipe = {"data": data, "passes": passes, "precision": precision}
    if start == FRESH:
        model = private(images.audited, mechanism, epsilon, seed, rng, **recipe)
        return said(model, images, network="target")
    earlier = trained(images.own, images.own.labels, seed, EARLIER, **recipe)
    model = private(images.audited, mechanism, epsilon, seed, rng, initial=earlier, **recipe)
    before = said(earlier, images, audited=size, network=start)
    return [*before, *said(model, images, network="target")]


def private(
    half: Half,
    mechanism: str,
    epsilon: float,
    seed: int,
    rng: np.random.Generator,
    **recipe: Any,
) -> Convolutional:
    """Train a network with a mechanism that protects the labels of images."""
    features, labels = half.features, half.labels
    if mechanism == "ALIBI":
        return alibi(half, epsilon, seed, rng, **recipe)
    if mechanism == CLUSTERED:
        noisy = clustered_response(features, labels, epsilon, seed, rng)
    elif mechanism == MODELLED:
        prior = law(recipe["data"], len(labels), PRIOR_PASSES, recipe["precision"], seed)
        noisy = RandomizedResponseWithPrior(epsilon).privatize(labels, prior, rng=rng)
    else:
        noisy = RandomizedResponse(epsilon, CLASSES).privatize(labels, rng=rng)
    return trained(half, noisy, seed, TARGET, **recipe)


def alibi(
    half: Half, epsilon: float, seed: int, rng: np.random.Generator, **recipe: Any
) -> Convolutional:
    """Train on soft labels, whose prior is what the network itself says after each pass."""
    mechanism = Alibi(epsilon, CLASSES)
    noisy = mechanism.privatize(half.labels, rng=rng)

    def soft(model: Convolutional) -> np.ndarray:
        return mechanism.posterior(noisy, np.exp(model.log_probabilities(half.images)))

    first = mechanism.posterior(noisy, np.full(CLASSES, 1.0 / CLASSES))
    return trained(half, first, seed, TARGET, relabel=soft, **recipe)


def trained(half: Half, labels: np.ndarray, seed: int, whose: int, **recipe: Any) -> Convolutional:
    """Train a network, all by one recipe."""
    return train_convolutional(
        half.images,
        labels,
        seed=int(np.random.SeedSequence((seed, whose)).generate_state(1)[0]),
        classes=CLASSES,
        widths=WIDTHS[recipe.pop("data")],
        **recipe,
    )


@cache
def split(data: str, size: int) -> Split:
    """Return the pixels of the images that `images.split` returns, or of others like that."""
    pixels = load(data)

    def part(name: str) -> Half:
        images, labels = pixels[f"{name}_images"], pixels[f"{name}_labels"]
        if data == CIFAR:
            return Half(images, load(data, part="features")[f"{name}_features"], labels)
        return Half(images, images.reshape(len(images), -1), labels)  # features of themselves

    train, test = part("train"), part("test")
    half = len(train.labels) // 2
    audited = Half(*(column[half:] for column in train))
    return Split(train.first(size), audited.first(size), test.first(min(size, PLAYED)))


# What networks say, on the way to a table and back.


def said(model: Convolutional, images: Split, *, audited: int = PLAYED, **about: str) -> list[dict]:
    """Return what a network says of the first `audited` images of the target, and of unseen ones.

    ``accuracy`` and ``log_loss`` are those of the true labels, ``said`` the logarithms of the
    probabilities of all labels. They are stored of whole halves only: rounding on another processor
    makes another text.
    """
    rows = []
    for name, shown in (("audited", images.audited.first(audited)), ("unseen", images.unseen)):
        logs = model.log_probabilities(shown.images)
        right = logs.argmax(axis=1) == shown.labels
        rows.append(
            {**about, "images": name, "accuracy": float(right.mean())}
            | {"log_loss": float(-logs[np.arange(len(right)), shown.labels].mean())}
            | {"said": pack(logs) if len(images.audited.labels) == WHOLE else None}
        )
    return rows


def pack(logs: np.ndarray) -> str:
    """Return logarithms of probabilities as a text, to `SAVED` parts of 1."""
    whole = np.rint(-SAVED * logs)
    if whole.max() > np.iinfo(np.uint16).max:
        raise ValueError(f"logs must be at least -655, got {logs.min()}")
    return base64.b85encode(bz2.compress(whole.astype("<u2").tobytes())).decode()


def unpack(text: str) -> np.ndarray:
    """Return the probabilities that `pack` was given the logarithms of, of shape (n, classes)."""
    whole = np.frombuffer(bz2.decompress(base64.b85decode(text)), "<u2").reshape(-1, CLASSES)
    probabilities = np.exp(whole / -SAVED)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


@cache
def law(data: str, size: int, passes: int, precision: str, seed: int) -> np.ndarray:
    """Return the probabilities that a reference model gives the labels of the target's images.

    They are those that are stored, so that a game is played with the law that labels were drawn
    from. A small model is trained here.
    """
    images = split(data, size)
    if size == WHOLE:
        said = told(REFERENCES, images="audited", passes=passes, seed=seed)
    else:
        recipe = {"data": data, "passes": passes, "precision": precision}
        model = trained(images.own, images.own.labels, seed, REFERENCE, **recipe)
        said = np.exp(model.log_probabilities(images.audited.images))
    return raised(said, exponent(said, images.audited.labels))


def exponent(said: np.ndarray, labels: np.ndarray) -> float:
    """Return the power of a reference model's probabilities that predicts labels best.

    Networks that learn smoothed labels are less sure than they could be: labels drawn from them
    would be wrong twice as often as they are. It is found on images that nobody plays with.
    """
    kept = len(labels) * PLAYED // WHOLE
    return float(exponents(np.log(said[None, kept:]), labels[kept:])[0])


def raised(said: np.ndarray, power: float) -> np.ndarray:
    """Return probabilities raised to a power, which sum to 1 again."""
    return product(np.log(said[None]), np.array([power]))


def told(id_: str, **which: object) -> np.ndarray:
    """Return the probabilities of all labels in the one stored row that is of this kind."""
    rows = stored(id_)
    for name, value in which.items():
        rows = rows[rows[name] == value]
    if len(rows) != 1:
        raise ValueError(f"which must be of one row of {id_}, got {which} of {len(rows)} rows")
    return unpack(rows["said"].iloc[0])


def draw(probabilities: np.ndarray, seed: int, images: str) -> np.ndarray:
    """Draw a label from each row, the same ones each time."""
    rng = np.random.default_rng((seed, LABELS, images == "unseen"))
    places = (probabilities.cumsum(axis=1) < rng.random((len(probabilities), 1))).sum(axis=1)
    return np.minimum(places, probabilities.shape[1] - 1)
