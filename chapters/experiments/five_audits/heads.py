"""Heads on features: trained by coins, with Opacus and without privacy, and asked.

This trains, and stores what heads say; `counting` counts.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from auditkit.attacks.canaries import crafted_gradient, mislabelled, train_reference
from auditkit.attacks.generated import Mixture, cross_entropy, generate, sampled_labels
from auditkit.attacks.substitution import substitution_scores
from auditkit.experiment import study
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, audit_sgd
from auditkit.models.generators import Examples, fit_gaussian_mixtures
from experiments.five_audits.audits import (
    CLIP,
    LEARNING_RATE,
    LONG,
    SAMPLING_RATE,
    SHORT,
    STEPS,
    Head,
    fresh_head,
    noise_for,
    plain_head,
    plain_runs,
    private_head,
)
from experiments.five_audits.deals import (
    CIFAR,
    CLASSES,
    FASHION,
    REPORTED,
    features,
    generator_parts,
    labels_of,
    lessons,
    others,
    said,
    toss,
)
from experiments.zero_run.heads import pack

HEADS, GENERATED, RUNS = "three-heads", "three-generated", "three-runs"
EPSILONS = (2.0, 8.0)
TRAININGS = (*((epsilon, SHORT) for epsilon in EPSILONS), (math.inf, SHORT), (math.inf, LONG))
MODELS = 24


@dataclass(frozen=True, eq=False)
class Asked:
    """A head that takes inputs without the column of ones."""

    head: Head

    def log_probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """Return the logarithms of the probabilities."""
        return log_softmax(self.head.logits(with_one(inputs)), axis=1)


def with_one(inputs: np.ndarray) -> np.ndarray:
    """Return inputs with a column of ones."""
    return np.column_stack((inputs, np.ones(len(inputs)))).astype(np.float32)


def trained(inputs: np.ndarray, labels: np.ndarray, epsilon: float, passes: int, seed: int) -> Head:
    """Train a head; passes are chosen only without privacy."""
    inputs = with_one(inputs)
    if epsilon == math.inf:
        return plain_head(inputs, labels, seed, passes=passes)
    return private_head(inputs, labels, noise_for(epsilon), seed)


def grid(models: range) -> list[dict]:
    """Return a cell for each training and model."""
    return [
        {"data": CIFAR, "epsilon": epsilon, "passes": passes, "model": model}
        for epsilon, passes in TRAININGS
        for model in models
    ]


REDUCED = [
    {"data": FASHION, "epsilon": epsilon, "passes": SHORT, "model": 0}
    for epsilon in (EPSILONS[-1], math.inf)
]


@study(HEADS, paper=grid(range(MODELS)), live=REDUCED, reduced=REDUCED, tolerance=0.05)
def heads(data: str, epsilon: float, passes: int, model: int) -> list[dict]:
    """Train a head by its coins, and say what it makes of the parts."""
    rows, labels = lessons(data, model)
    head = trained(features(data)[rows], labels, epsilon, passes, model)
    return said(data, Asked(head), features(data), model)


OWN, OTHER = "audited images", "other images"
SMALL = [REDUCED[0] | {"trained_on": OWN}]


@study(
    GENERATED,
    paper=[
        cell | {"trained_on": trained_on}
        for cell in grid(range(REPORTED))  # there is one attack, and none to choose
        for trained_on in (OWN, OTHER)
    ],
    live=SMALL,
    reduced=SMALL,
    tolerance=0.05,
)
def generated(
    data: str, epsilon: float, passes: int, model: int, trained_on: str, rng: np.random.Generator
) -> list[dict]:
    """Score members beside images that a generator makes, by baseline and attack.

    The null is a head that was trained on as many images, as many of them with a wrong label, none
    of them a member.
    """
    rows, labels = lessons(data, model)
    if trained_on == OTHER:
        wrong = labels != labels_of(data)[rows]
        rows = rng.permutation(others(data))[: len(rows)]
        labels = (labels_of(data)[rows] + wrong * rng.integers(1, CLASSES, len(rows))) % CLASSES
    head = trained(features(data)[rows], labels, epsilon, passes, model)
    own, learnt, audited = (
        Examples(features(data)[part], labels_of(data)[part]) for part in generator_parts(data)
    )
    number = len(learnt) + len(audited)
    made = generate(fit_gaussian_mixtures(own, rng, components=1), number + len(own), rng=rng)
    made = made.labelled(sampled_labels(helper(own, rng), made.inputs, rng=rng))
    helped, audit = (cross_entropy(one) for one in (helper(made[number:], rng), head))
    mixture = Mixture(learnt, made[: len(learnt)], audited, made[len(learnt) : number])
    scores = {
        "baseline": mixture.scores(helped),
        "attack": mixture.scores(helped, audit, lambda seen: audit(seen) - helped(seen)),
    }
    return [
        {
            "scores": name,
            "area": float(np.mean(pair.real > pair.other)),
            "real": pack(pair.real) if data == CIFAR else None,
            "other": pack(pair.other) if data == CIFAR else None,
        }
        for name, pair in scores.items()
    ]


def helper(examples: Examples, rng: np.random.Generator) -> Head:
    """Train a head that has not met the audited members."""
    inputs = with_one(examples.inputs)
    return plain_head(inputs, examples.labels, int(rng.integers(2**31)), passes=SHORT)


# --- many runs -----------------------------------------------------------------------------------

INSERTED, OPPOSITE, WRONG = "gradient, in or out", "gradient, this or that", "wrong label"
SAME = "gradient, no difference"
DEALS = 3
NUMBER, PLAIN = 1_500, 60  # runs, and runs without privacy
KINDS = [
    (canary, epsilon, NUMBER) for epsilon in EPSILONS for canary in (INSERTED, OPPOSITE, WRONG)
]
KINDS += [(SAME, EPSILONS[-1], NUMBER), (WRONG, math.inf, PLAIN)]
FEW = {"data": FASHION, "canary": OPPOSITE, "epsilon": EPSILONS[-1], "runs": 100, "model": 0}


@study(
    RUNS,
    paper=[
        {"data": CIFAR, "canary": canary, "epsilon": epsilon, "runs": runs, "model": model}
        for model in range(DEALS)
        for canary, epsilon, runs in KINDS
    ],
    live=[FEW],
    reduced=[FEW],
    tolerance=0.05,
)
def many_runs(
    data: str, canary: str, epsilon: float, runs: int, model: int, rng: np.random.Generator
) -> dict:
    """Train a head of these settings many times, in two worlds that differ in a canary."""
    rows, labels = lessons(data, model)
    inputs = with_one(features(data)[rows])
    seen = train_reference(
        fresh_head(), inputs, labels, steps=STEPS, learning_rate=LEARNING_RATE, rng=rng
    )
    # not one of those planted, which have a wrong label as it is, and stand last
    natural = len(labels) - int(toss(data, model).planted.sum())
    z = int(seen.confidence[:natural].argmin())
    rest = np.arange(len(labels)) != z
    pair = crafted_gradient(seen.movement, clip=CLIP)
    other = mislabelled(seen.model, inputs[z], int(labels[z]))
    canaries = {
        INSERTED: GradientCanary(pair * [[0], [1]]),
        OPPOSITE: GradientCanary(pair),
        SAME: GradientCanary(pair[[0, 0]]),
        WRONG: InputCanary(np.stack([inputs[z], inputs[z]]), [labels[z], other]),
    }
    draw = int(rng.integers(2**31))
    if epsilon == math.inf:
        scores, bits = plain_runs(inputs, labels, rest, canaries[canary], runs, draw)
    else:
        models = audit_sgd(
            inputs[rest],
            labels[rest],
            canaries[canary],
            runs=runs,
            steps=STEPS,
            sampling_rate=SAMPLING_RATE,
            noise_multiplier=noise_for(epsilon),
            clip=CLIP,
            learning_rate=LEARNING_RATE,
            logits=CLASSES,
            seed=draw,
        )
        looked_at = canaries[OPPOSITE if canary == SAME else canary]
        scores, bits = substitution_scores(models, looked_at)[:, 0], models.bits
    return {
        "gap": float(scores[bits == 1].mean() - scores[bits == 0].mean()),
        "scores": pack(scores) if data == CIFAR else None,
        "bits": pack(bits) if data == CIFAR else None,
    }
