"""Label privacy of images, audited with a reference model of the other half.

The paper trains convolutional networks on CIFAR-10. Here networks of two layers learn from what a
frozen ImageNet network sees in the same images, which takes seconds, and they know the labels of
their own images by heart all the same. The first half of the training images is the auditor's, the
second half is what the audited model is trained on, and the test images are the placebo.

Settings were chosen on these halves among widths of 512 and 1024, one hidden layer and two, sgd and
Adam, steps and passes. Twice the width gains half a point of accuracy. More passes gain none, the
audit finds more, and at ε = 1, where they learn the noise, accuracy falls; fewer do the reverse.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import log_softmax
from sklearn.cluster import KMeans

from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.label_dp import Alibi, RandomizedResponse, RandomizedResponseWithPrior
from auditkit.models.networks import mlp
from auditkit.models.training import Models, fit_many
from experiments.observational.audits import audit_rows
from experiments.observational.references import exponents, lessons, product

CLASSES = 10
PASSES = 8  # of a target over its images: it then knows 98 of 100 labels
STOPPED = 3  # of the reference model, where its log-loss on unseen images is least
TAUGHT = 12  # of a reference model that learns from the target
TARGET, REFERENCE, PUPIL, PRIOR = range(4)  # whose seed it is

CLUSTERS = 100
ASKED = 0.1  # of ε goes into what the clusters hold

OTHER, DRAWN = "other images", "drawn labels"
CLUSTERED, MODELLED = "LP-1ST (out-of-domain prior)", "LP-1ST (in-domain prior)"

# from features, and what the target says of them, to probabilities
Reference = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Half(NamedTuple):
    """Images, as the frozen network sees them."""

    features: np.ndarray  # (n, 256)
    labels: np.ndarray  # (n,)


class Images(NamedTuple):
    """Who is whose."""

    own: Half  # the auditor's
    audited: Half  # those that the target is trained on
    unseen: Half  # test images


class Said(NamedTuple):
    """The probabilities that a target gives the labels of images, three times (n, 10)."""

    own: np.ndarray
    audited: np.ndarray
    unseen: np.ndarray


@study(
    "obs-images",
    paper=[
        {"mechanism": mechanism, "epsilon": epsilon, "seed": seed, "size": 25_000, "games": 100}
        for seed in range(5)
        for mechanism, epsilons in (
            *((name, (math.inf, 10.0, 1.0)) for name in ("LP-1ST", CLUSTERED, MODELLED, "ALIBI")),
            *((name, (0.0,)) for name in (OTHER, DRAWN)),
        )
        for epsilon in epsilons
    ],
    live=[
        {"mechanism": mechanism, "epsilon": epsilon, "seed": 0, "size": 8000, "games": 20}
        for mechanism, epsilon in (("LP-1ST", math.inf), ("LP-1ST", 1.0), (OTHER, 0.0))
    ],
    # eight steps a pass leave rounding little time to grow
    reduced=[
        {"mechanism": mechanism, "epsilon": epsilon, "seed": 0, "size": 1000, "games": 5}
        for mechanism, epsilon in (("LP-1ST", math.inf), ("ALIBI", 10.0), (OTHER, 0.0))
    ],
    tolerance=0.02,
)
def protected_images(
    mechanism: str,
    epsilon: float,
    seed: int,
    size: int,
    games: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train a target with a mechanism, and audit it against four reference models.

    The `seed` is that of the networks; `size` is that of either half.
    """
    spare = size // 2 if mechanism == OTHER else 0
    said = target_probabilities(mechanism, epsilon, seed, size=size, spare=spare, rng=rng)
    return audited_rows(said, seed, size=size, spare=spare, games=games, rng=rng)


def target_probabilities(
    mechanism: str,
    epsilon: float,
    seed: int,
    *,
    size: int,
    spare: int = 0,
    rng: np.random.Generator,
) -> Said:
    """Return what a target says of the images, trained with one of `MECHANISMS`."""
    images = split(size, spare)
    target = MECHANISMS[mechanism](images, epsilon, seed, rng)
    return Said(*(_say(target, half.features) for half in images))


def audited_rows(
    said: Said, seed: int, *, size: int, spare: int = 0, games: int, rng: np.random.Generator
) -> list[dict]:
    """Audit a target by what it says, whichever way it was trained.

    As many of its images are played with as there are unseen ones. ``accuracy`` is that on unseen
    images.
    """
    images = split(size, spare)
    played = len(images.unseen.labels)
    right = said.unseen.argmax(axis=1) == images.unseen.labels
    rows = [
        row
        for which, reference in references(said, seed, size, spare).items()
        for row in audit_rows(
            images.audited.labels[:played],
            said.audited[:played],
            reference(images.audited.features[:played], said.audited[:played]),
            held_out=(
                images.unseen.labels,
                said.unseen,
                reference(images.unseen.features, said.unseen),
            ),
            repetitions=games,
            rng=rng,
            which=which,
        )
    ]
    return [{**row, "accuracy": float(right.mean())} for row in rows]


@cache
def split(size: int, spare: int = 0) -> Images:
    """Return the first images of either half, and as many test images at most.

    The auditor can do without some, for a target of images that nobody audits.
    """
    data = load("cifar10", part="features")
    train = Half(data["train_features"].astype(np.float32), data["train_labels"])
    test = Half(data["test_features"].astype(np.float32), data["test_labels"])
    half = len(train.labels) // 2
    if size > half:
        raise ValueError(f"size must be at most {half}, half of the images, got {size}")
    return Images(
        own=_part(train, spare, size),
        audited=_part(train, half, half + size),
        unseen=_part(test, 0, size),
    )


def _part(half: Half, first: int, last: int) -> Half:
    return Half(half.features[first:last], half.labels[first:last])


def fit(
    half: Half,
    seed: int,
    whose: int,
    *,
    passes: int,
    labels: np.ndarray | None = None,
    initial: Mapping[str, torch.Tensor] | None = None,
) -> Models:
    """Train a network on images, with labels of their own unless others are given."""
    return fit_many(
        partial(mlp, half.features.shape[1], CLASSES, hidden=(512,)),
        half.features,
        half.labels if labels is None else labels,
        seeds=[np.random.SeedSequence((seed, whose)).generate_state(1)[0]],
        epochs=passes,
        batch_size=128,
        learning_rate=5e-4,
        optimizer="adam",
        initial=initial,
    )


# The mechanisms. PATE with FixMatch needs the images themselves, which are not shipped: it is an
# experiment of its own, and its targets go through `audited_rows` too.


def lp_1st(images: Images, epsilon: float, seed: int, rng: np.random.Generator) -> Models:
    """Train on labels of randomised response: without a prior LP-1ST is nothing else."""
    noisy = RandomizedResponse(epsilon, CLASSES).privatize(images.audited.labels, rng=rng)
    return fit(images.audited, seed, TARGET, passes=PASSES, labels=noisy)


def lp_1st_with_clusters(
    images: Images, epsilon: float, seed: int, rng: np.random.Generator
) -> Models:
    """Train on labels of randomised response with a prior from a network that saw other images.

    Where the ImageNet network sees clusters, images of a cluster mostly share a label. Which one,
    is asked of the labels themselves, by counts with Laplace noise: a replaced label changes two
    of them by 1. What that spends is taken from ε. Features are public in label privacy.
    """
    noisy = clustered_response(*images.audited, epsilon, seed, rng)
    return fit(images.audited, seed, TARGET, passes=PASSES, labels=noisy)


def clustered_response(
    features: np.ndarray, labels: np.ndarray, epsilon: float, seed: int, rng: np.random.Generator
) -> np.ndarray:
    """Return noisy labels, whose prior is what the clusters of the features hold."""
    # few steps, and in float64: rounding must not decide where an image belongs
    clusters = KMeans(CLUSTERS, n_init=1, max_iter=20, random_state=seed)
    cluster = clusters.fit_predict(features.astype(np.float64))
    counts = np.zeros((CLUSTERS, CLASSES))
    np.add.at(counts, (cluster, labels), 1.0)
    asked = ASKED * epsilon
    counts = np.maximum(counts + rng.laplace(scale=2.0 / asked, size=counts.shape), 0.0)
    counts += 1e-3  # a cluster without a count holds all labels equally likely
    prior = counts / counts.sum(axis=1, keepdims=True)
    left = epsilon if epsilon == math.inf else epsilon - asked
    return RandomizedResponseWithPrior(left).privatize(labels, prior[cluster], rng=rng)


def lp_1st_with_model(
    images: Images, epsilon: float, seed: int, rng: np.random.Generator
) -> Models:
    """Train on labels of randomised response with a prior from a model of the other half."""
    features, labels = images.audited
    prior = fit(images.own, seed, PRIOR, passes=STOPPED).probabilities(features)[0]
    noisy = RandomizedResponseWithPrior(epsilon).privatize(labels, prior, rng=rng)
    return fit(images.audited, seed, TARGET, passes=PASSES, labels=noisy)


def alibi(images: Images, epsilon: float, seed: int, rng: np.random.Generator) -> Models:
    """Train on soft labels, whose prior is what the model itself says after each pass."""
    features, labels = images.audited
    mechanism = Alibi(epsilon, CLASSES)
    noisy = mechanism.privatize(labels, rng=rng)
    prior, weights = np.full(CLASSES, 1.0 / CLASSES), None
    for turn in range(PASSES):
        trained = fit(
            images.audited,
            seed * PASSES + turn,  # another order of the images in each pass
            TARGET,
            passes=1,
            labels=mechanism.posterior(noisy, prior),
            initial=weights,
        )
        prior, weights = trained.probabilities(features)[0], trained.weights
    return trained


def other_images(images: Images, _epsilon: float, seed: int, _: np.random.Generator) -> Models:
    """Train on the images that the auditor does without."""
    size = len(images.audited.labels)
    spared = _part(split(size).own, 0, size - len(images.own.labels))
    return fit(spared, seed, TARGET, passes=PASSES)


def drawn_labels(images: Images, _epsilon: float, seed: int, rng: np.random.Generator) -> Models:
    """Train on the audited images, with labels drawn from a model of the other half.

    The target knows labels by heart, but none that anybody could want to protect.
    """
    law = _say(fit(images.own, seed, PRIOR, passes=STOPPED), images.audited.features)
    drawn = (law.cumsum(axis=1) < rng.random((len(law), 1))).sum(axis=1)
    return fit(images.audited, seed, TARGET, passes=PASSES, labels=np.minimum(drawn, CLASSES - 1))


NULL = {OTHER: other_images, DRAWN: drawn_labels}  # ε = 0: the audited labels were never seen
PRIVATE = {
    "LP-1ST": lp_1st,
    CLUSTERED: lp_1st_with_clusters,
    MODELLED: lp_1st_with_model,
    "ALIBI": alibi,
}
MECHANISMS = PRIVATE | NULL


# The reference models.


def references(said: Said, seed: int, size: int, spare: int) -> dict[str, Reference]:
    """Return four reference models, the last two of which have to do with the target.

    "trained" is stopped in time. "scaled" is trained as long as the target, and its temperature set
    on images kept back. "distilled" learns from what the target says of the auditor's images.
    "pooled" is a product of powers of a model and of the target, which predicts the images kept
    back best.
    """
    own = split(size, spare).own
    kept = _kept(own)
    pupil = fit(own, seed, PUPIL, passes=TAUGHT, labels=lessons(said.own, own.labels))
    # the target was trained on none of the auditor's images, these models not on those kept back
    short = partial(_log, model(seed, size, spare, STOPPED, all_but_kept=True))
    long = partial(_log, model(seed, size, spare, PASSES, all_but_kept=True))
    alone = exponents(long(kept.features)[None], kept.labels)
    target = np.log(said.own[-len(kept.labels) :])
    both = exponents(np.stack((short(kept.features), target)), kept.labels)
    return {
        "trained": lambda x, _: _say(model(seed, size, spare, STOPPED), x),
        "scaled": lambda x, _: product(long(x)[None], alone),
        "distilled": lambda x, _: _say(pupil, x),
        "pooled": lambda x, said: product(np.stack((short(x), np.log(said))), both),
    }


@cache
def model(seed: int, size: int, spare: int, passes: int, *, all_but_kept: bool = False) -> Models:
    """Return a model of the auditor's images."""
    own = split(size, spare).own
    known = len(own.labels) - len(_kept(own).labels) if all_but_kept else len(own.labels)
    return fit(_part(own, 0, known), seed, REFERENCE, passes=passes)


def _kept(own: Half) -> Half:
    """Return the last tenth of images."""
    return _part(own, len(own.labels) - len(own.labels) // 10, len(own.labels))


def _say(model: Models, features: np.ndarray) -> np.ndarray:
    return model.probabilities(features)[0]


def _log(model: Models, features: np.ndarray) -> np.ndarray:
    return log_softmax(model.logits(features)[0].astype(np.float64), axis=1)
