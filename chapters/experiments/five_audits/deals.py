"""Who is whose: the images that heads and networks are trained and asked on.

Heads on features and networks on pixels share one deal. Every model has coins of its own, so that
the others serve as its shadow models. The images with a coin are as many as those of the label
audit, of the zero run and of PANORAMIA: what an audit could find at most is then the same for all.
Planted images are fewer, since too many wrong labels would make another model; the ceiling of their
audit is stored beside it.
"""

from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit, log_softmax

from auditkit.attacks.label_inference import LabelGame, label_game
from auditkit.attacks.lira import logit_confidence
from auditkit.datasets import load
from auditkit.models.networks import linear
from auditkit.models.training import Models, fit_many
from experiments.zero_run.heads import pack

CIFAR, FASHION = "cifar10", "fashion-mnist"
CLASSES = 10
SEED = 29  # of the deal: every model of the chapter sees the same images
# log-odds of known members against images from elsewhere, by class
CLASS_ODDS = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5, -1.5, 1.0, -1.0])
REPORTED, CHOOSING = 5, 3  # models that results are of, and models that attacks are chosen on
FULLY = REPORTED + CHOOSING  # that are asked about all parts; the others are shadow models only


class Sizes(NamedTuple):
    """How many images have which task."""

    examples: int  # of each audit, but for planted images
    planted: int
    spare: int  # members beside, that a generator, its attack or a propensity is fitted on
    outside: int  # from elsewhere, of either purpose
    auditor: int


SIZES = {
    CIFAR: Sizes(5_000, 2_000, 2_000, 2_700, 10_000),
    FASHION: Sizes(300, 100, 100, 180, 300),  # shipped images, for a cell that a test can run
}


class Deal(NamedTuple):
    """The images, as rows of the pool; but for those with a coin all members are in every model."""

    coined: np.ndarray  # each in a training set by its own coin
    planted: np.ndarray  # the same, with a wrong label
    wrong: np.ndarray  # which
    spare: np.ndarray  # in every training set
    known: np.ndarray  # in every training set, and audited for it
    unseen: np.ndarray  # in none
    decoys: np.ndarray  # in none, with a wrong label, beside those planted
    misread: np.ndarray  # which
    outside: np.ndarray  # in none, with another mix of classes: to audit,
    fitting: np.ndarray  # and to fit propensities on
    auditor: np.ndarray  # what she trains her own model on


class Coins(NamedTuple):
    """Who is in, of one model."""

    members: np.ndarray
    planted: np.ndarray


class Seen(Protocol):
    """A trained model."""

    def log_probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """Return the logarithms of the probabilities of all classes."""


@cache
def labels_of(data: str) -> np.ndarray:
    """Return the labels of all images."""
    whole = load(data, part="features") if data == CIFAR else load(data)
    return np.concatenate([whole[f"{part}_labels"] for part in ("train", "test")])


@cache
def pixels(data: str) -> np.ndarray:
    """Return all images, of shape (n, side, side, channels)."""
    whole = load(data)
    images = np.concatenate([whole[f"{part}_images"] for part in ("train", "test")])
    return images if images.ndim == 4 else images[..., np.newaxis]


@cache
def features(data: str) -> np.ndarray:
    """Return what a frozen network sees, of mean square norm 16; of clothes 256 pixels."""
    if data == CIFAR:
        whole = load(data, part="features")
        x = np.concatenate([whole[f"{part}_features"] for part in ("train", "test")])
    else:
        x = pixels(data)[:, 6:22, 6:22].reshape(-1, 256)
    x = x.astype(np.float32)
    return x * np.float32(4.0 / np.sqrt((x.astype(np.float64) ** 2).sum(axis=1).mean()))


@cache
def deal(data: str) -> Deal:
    """Deal the images."""
    labels, size = labels_of(data), SIZES[data]
    rng = np.random.default_rng((SEED, 1))
    counts = (
        *(size.examples, size.planted, size.spare, size.examples, size.examples, size.planted),
        size.auditor,
    )
    *parts, rest = np.split(rng.permutation(len(labels)), np.cumsum(counts))
    coined, planted, spare, known, unseen, decoys, auditor = parts
    wrong, misread = (
        (labels[rows] + rng.integers(1, CLASSES, len(rows))) % CLASSES for rows in (planted, decoys)
    )
    shares = np.exp(-CLASS_ODDS) / np.exp(-CLASS_ODDS).sum()
    wanted = rng.choice(CLASSES, 2 * size.outside, p=shares)
    by_class = [iter(rest[labels[rest] == label]) for label in range(CLASSES)]
    elsewhere = np.array([next(by_class[label]) for label in wanted])
    parts = coined, planted, wrong, spare, known, unseen, decoys, misread
    return Deal(*parts, *np.split(elsewhere, 2), auditor)


def propensity(data: str, rows: np.ndarray) -> np.ndarray:
    """Return the chance that an image is a member, where members and images from elsewhere mix."""
    shares = np.exp(-CLASS_ODDS) / np.exp(-CLASS_ODDS).sum()
    return expit(-np.log(CLASSES * shares))[labels_of(data)[rows]]


def toss(data: str, model: int) -> Coins:
    """Toss the coins of a model."""
    size = SIZES[data]
    return Coins(*(tossed((SEED, 2), model, number) for number in (size.examples, size.planted)))


def blank(data: str, model: int) -> Coins:
    """Toss coins that decide nothing: the null of images that no model has seen."""
    size = SIZES[data]
    return Coins(*(tossed((SEED, 8), model, number) for number in (size.examples, size.planted)))


def tossed(seed: tuple[int, ...], model: int, number: int) -> np.ndarray:
    """Toss coins for so many examples.

    Those that are shadow models only come in pairs, of which the second has what the first has not:
    every example is seen by one and not by another. Audited models have coins of their own.
    """
    second = model >= FULLY and (model - FULLY) % 2 == 1
    return (np.random.default_rng((*seed, number, model - second)).random(number) < 0.5) ^ second


def lessons(data: str, model: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what a model is trained on: rows of the pool, and labels."""
    images, coins, labels = deal(data), toss(data, model), labels_of(data)
    own = np.concatenate((images.coined[coins.members], images.spare, images.known))
    planted = images.planted[coins.planted]
    return (
        np.concatenate((own, planted)),
        np.concatenate((labels[own], images.wrong[coins.planted])),
    )


@cache
def reference(data: str) -> Models:
    """Train the auditor's own model: a head, on images that no audited model has seen."""
    rows = deal(data).auditor
    return fit_many(
        lambda: linear(features(data).shape[1], CLASSES),
        features(data)[rows],
        labels_of(data)[rows],
        seeds=[0],
        epochs=10,
        batch_size=64,
        learning_rate=0.002,
        optimizer="adam",
    )


@cache
def expected(data: str, part: str) -> np.ndarray:
    """Return the logarithms of the auditor's model's probabilities of a part."""
    rows = getattr(deal(data), part)
    said = reference(data).logits(features(data)[rows])[0]
    return log_softmax(said.astype(np.float64), axis=1)


def asked(data: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and the labels that they are asked with."""
    images = deal(data)
    rows = getattr(images, part)
    given = {"planted": images.wrong, "decoys": images.misread}
    return rows, given[part] if part in given else labels_of(data)[rows]


# a null beside each part with coins, and what models are asked about that are no shadow models only
PARTS = ("coined", "planted", "unseen", "decoys", "known", "outside")
WITH_COINS = PARTS[:4]
GAMES = ("known", "unseen")  # that label games are played on, the second one as a placebo


def said(data: str, seen: Seen, inputs: np.ndarray, model: int) -> list[dict]:
    """Return what a model says of the parts, one row each.

    ``odds`` are log-odds of the own label, ``shown`` the logarithm of the probability of the label
    that a label game shows. Numbers by example are stored at full scale only: rounding on another
    processor makes another text.
    """
    rows = []
    for part in PARTS if model < FULLY else WITH_COINS:
        which, labels = asked(data, part)
        logs = seen.log_probabilities(inputs[which])
        odds = logit_confidence(logs, labels)
        row = {
            "part": part,
            "accuracy": float((odds > 0.0).mean()),
            "mean_odds": float(odds.mean()),
        }
        packed: dict[str, str | None] = {"odds": pack(odds), "shown": None}
        if part in GAMES:
            shown = game_of(data, part, model).shown
            packed["shown"] = pack(logs[np.arange(len(which)), shown])
        rows.append(row | (packed if data == CIFAR else dict.fromkeys(packed)))
    return rows


def game_of(data: str, part: str, model: int) -> LabelGame:
    """Play a label game, the same each time: the auditor's model makes up labels."""
    _, labels = asked(data, part)
    law = np.exp(expected(data, part))  # sums to 1 but for rounding
    rng = np.random.default_rng((SEED, 3, model, GAMES.index(part)))
    return label_game(labels, law / law.sum(axis=1, keepdims=True), rng=rng)


def others(data: str) -> np.ndarray:
    """Return images without any task."""
    images = deal(data)
    labels = ("wrong", "misread")
    used = np.concatenate([rows for name, rows in images._asdict().items() if name not in labels])
    return np.setdiff1d(np.arange(len(labels_of(data))), used)


def generator_parts(data: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return members: a generator's, those that its attack learns from, those that are audited."""
    images, half = deal(data), SIZES[data].spare // 2
    return images.spare[:half], images.spare[half:], images.known
