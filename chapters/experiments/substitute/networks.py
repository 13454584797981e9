"""Networks trained from scratch with DP-Adam: Figure 3 of SUB, at a size that two cores allow.

The paper trains 600-128-100 networks, 89,828 parameters each, on 50,000 records of Purchase100 for
2,500 steps. That is work for a cluster, and the data cannot be had from a package. Here are two
stand-ins, both with 500 records, which is what makes them small enough:

- "answers": the paper's network with all its parameters, on the census. Each of the 600 most
  frequent answers is a feature, given or not, as each of 600 products of Purchase100 is bought or
  not; and as there, the 100 classes are clusters. 400 models are trained for 200 steps.
- "images": a 64-32-10 network, 2,410 parameters, on the first 64 principal directions of CIFAR-10's
  features. 2,500 models are trained for 500 steps.

With 500 records instead of 50,000 a batch is a hundred times smaller and the noise on the mean
gradient a hundred times larger, so that networks learn less than the paper's. The canary is not
further away: it stands against the noise on the sum, which is the same. Whoever has Purchase100
gives the path of its file in the place of "answers".

Every model starts from weights of its own, as in the paper; beside it stands one setting where all
start alike, as the paper's heads do. That matters to Algorithm 2: it puts the gradient where a
reference moves least, and from another start that place moves like any other. So there is a second
gradient canary, ours, at the place where three references from three starts move least in sum.

The score of a gradient canary is the movement from the start, so its adversary knows that. The
score of an input canary does not make use of it; beside it stands one that does, "since the start",
which is ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import nn

from auditkit.attacks.canaries import (
    Reference,
    clipped_gradients,
    crafted_gradient,
    crafted_input,
    logit_score,
    train_reference,
)
from auditkit.attacks.substitution import Canary, substitution_scores
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, Trained, audit_sgd
from auditkit.models.networks import mlp
from experiments.substitute.audits import DIGITS, audited, promised
from experiments.substitute.heads import images
from experiments.substitute.linear import OBJECTIVES, Records, Training, null_of, record_canary

PRINTED = "crafted gradient"
GRADIENTS = (PRINTED, "crafted gradient, three starts")
CANARIES = (*GRADIENTS, "crafted input", "mislabelled", "adversarial natural")
RECORDS = 500
PUBLIC = 5_000  # records that answers are counted on, and clusters made of
POOL = 1_000  # records that natural canaries come from
TESTED = 200
ANSWERS, CLASSES = 600, 100
DIRECTIONS = 64
STARTS = 3
FRESH = 10  # networks that a canary is looked at on

# --- the records ---------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def records_of(data: str, repeat: int) -> Records:
    """Deal 500 records, and others for canaries and tests.

    Parameters
    ----------
    data : str
        "answers", "images", or the path of the file ``dataset_purchase`` of Purchase100, which has
        to be brought: ``auditkit data list`` says from where.
    repeat : int
        Deals the records.
    """
    if data == "images":
        whole = images(10, 16.0, True, repeat)
        return Records(
            whole.features[:, :DIRECTIONS],
            whole.labels,
            whole.pool_features[:POOL, :DIRECTIONS],
            whole.pool_labels[:POOL],
            whole.test_features[:TESTED, :DIRECTIONS],
            whole.test_labels[:TESTED],
            10,
        )
    features, labels = _answers() if data == "answers" else _purchases(data)
    order = np.random.default_rng(repeat).permutation(len(labels))
    own, pool, tested, _ = np.split(order, np.cumsum([RECORDS, POOL, TESTED]))
    return Records(
        features[own].astype(np.float64),
        labels[own],
        features[pool].astype(np.float64),
        labels[pool],
        features[tested].astype(np.float64),
        labels[tested],
        CLASSES,
    )


def _purchases(path: str) -> tuple[np.ndarray, np.ndarray]:
    brought = load("purchase100", path=path)
    return brought["features"], brought["labels"]


@lru_cache(maxsize=1)
def _answers() -> tuple[np.ndarray, np.ndarray]:
    """Return the census as yes and no, and clusters."""
    rows = load("census-income")["train_features"][: 4 * PUBLIC]
    frequent = []
    for column in range(rows.shape[1]):
        given, times = np.unique(rows[:PUBLIC, column], return_counts=True)
        frequent += [(-count, column, answer) for answer, count in zip(given, times, strict=True)]
    kept = sorted(frequent)[:ANSWERS]
    features = np.stack([rows[:, column] == answer for _, column, answer in kept], axis=1)
    features = features.astype(np.float64)
    clusters = KMeans(CLASSES, n_init=1, random_state=0).fit(features[:PUBLIC])
    return features[PUBLIC:], clusters.predict(features[PUBLIC:]).astype(np.int64)


# --- the adversary as crafter --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Crafted:
    """A canary, and what it looks like to the reference, and to networks that start afresh."""

    target: int
    canary: Canary
    about: dict[str, float]


def network_of(data: str, records: Records) -> Callable[[], nn.Module]:
    """Return what makes a network with fresh weights."""
    hidden = 32 if data == "images" else 128  # as in the paper
    return partial(mlp, records.features.shape[1], records.logits, hidden=(hidden,))


@lru_cache(maxsize=4)
def reference(
    data: str, training: Training, repeat: int, start: int, *, clipped: bool
) -> Reference:
    """Train a network without noise: as it comes, or with clipped gradients and sampled batches."""
    records = records_of(data, repeat)
    return train_reference(
        fresh(network_of(data, records), start),
        records.features,
        records.labels,
        steps=training.steps,
        learning_rate=training.learning_rate,
        sampling_rate=training.sampling_rate if clipped else 1.0,
        clip=training.clip if clipped else None,
        optimizer="adam",
        rng=0,
    )


def fresh(network: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Make a network by a seed, without touching torch's own stream."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return network()


def craft(
    name: str, data: str, training: Training, repeat: int, rng: np.random.Generator
) -> Crafted:
    """Craft a canary by its name, one of `CANARIES` or "crafted input as printed"."""
    records = records_of(data, repeat)
    plain = reference(data, training, repeat, repeat, clipped=False)
    z = plain.target
    x, y = records.features[z], int(records.labels[z])
    if name in GRADIENTS:
        starts = range(repeat, repeat + (1 if name == PRINTED else STARTS))
        movement = sum(
            reference(data, training, repeat, at, clipped=True).movement for at in starts
        )
        pair = crafted_gradient(movement, clip=training.clip)
        length = training.clip
        about = dict.fromkeys(("norm_target", "norm_canary"), length) | {"cosine": -1.0}
        return Crafted(z, GradientCanary(pair), {**about, "cosine_fresh": -1.0})
    if name in OBJECTIVES:
        other = crafted_input(
            plain.model, x, y, learning_rate=0.0003, objective=OBJECTIVES[name], rng=rng
        )  # with steps as long as for a head, x' leaves some networks' reach for good
        canary = InputCanary(np.stack([x, other]), [y, y])
    else:
        canary = record_canary(name, plain.model, x, y, records, rng)
    network = network_of(data, records)
    starts = [_pair(fresh(network, 1_000 + seed), canary) for seed in range(FRESH)]
    norm_target, norm_canary, cosine = np.mean(starts, axis=0)
    about = {
        "norm_target": norm_target,
        "norm_canary": norm_canary,
        "cosine": _pair(plain.model, canary)[2],
        "cosine_fresh": cosine,
    }
    return Crafted(z, canary, {key: round(float(value), DIGITS) for key, value in about.items()})


def _pair(model: nn.Module, canary: InputCanary) -> tuple[float, float, float]:
    """Return the norms of the gradients of z and z', and the cosine between them."""
    g = clipped_gradients(model, canary.features, canary.labels, clip=1e9)
    norms = np.linalg.norm(g, axis=1)
    return norms[0], norms[1], float(g[0] @ g[1] / max(norms.prod(), 1e-30))


# --- training and audit --------------------------------------------------------------------------


def train(
    data: str,
    crafted: Crafted,
    training: Training,
    repeat: int,
    *,
    runs: int,
    snapshots: np.ndarray,
    seed: int,
    shared: bool = False,
    met: Canary | None = None,
) -> Trained:
    """Train with DP-Adam in both worlds; keep both scores and the accuracy.

    All models start like the reference if the start is ``shared``. They have ``met`` the canary,
    unless another is given.
    """
    records = records_of(data, repeat)
    others = np.arange(len(records.labels)) != crafted.target
    network = network_of(data, records)
    start = nn.utils.parameters_to_vector(fresh(network, repeat).parameters()).detach().numpy()
    return audit_sgd(
        records.features[others],
        records.labels[others],
        crafted.canary if met is None else met,
        runs=runs,
        steps=training.steps,
        sampling_rate=training.sampling_rate,
        noise_multiplier=training.noise,
        clip=training.clip,
        learning_rate=training.learning_rate,
        optimizer="adam",
        network=network,
        initial=start if shared else None,
        snapshots=snapshots,
        seed=seed,
        keep=_kept(records, crafted.canary, fresh(network, 0)),
    )


def _kept(records: Records, canary: Canary, module: nn.Module) -> Callable[[Trained], np.ndarray]:
    def keep(seen: Trained) -> np.ndarray:
        score = substitution_scores(seen, canary)[:, 0]
        said = seen.logits(records.test_features)[:, 0]
        return np.stack(
            [
                score,
                score - _at_the_start(seen, canary, module),
                np.mean(said.argmax(axis=-1) == records.test_labels, axis=1),
            ],
            axis=1,
        )

    return keep


def _at_the_start(seen: Trained, canary: Canary, module: nn.Module) -> np.ndarray:
    """Return the scores that models had before they were trained."""
    if isinstance(canary, GradientCanary):
        return np.zeros(len(seen.bits))
    pair, said = torch.from_numpy(np.asarray(canary.features)).float(), []
    with torch.no_grad():
        for start in seen.initial:
            nn.utils.vector_to_parameters(torch.from_numpy(start), module.parameters())
            said.append(module(pair).numpy())
    logits = np.stack(said)
    return logit_score(logits, canary.labels, logits=logits.shape[-1])


SCORES = ("paper", "since the start")
CLIP, LEARNING_RATE = 5.0, 0.0018  # as in Table A1
REPEATS = 3
USUAL = {"start": "fresh", "epsilon": 10.0}
LARGE = {**USUAL, "data": "answers", "runs": 400, "steps": 200, "looks": 5}
SMALL = {**USUAL, "data": "images", "runs": 2_500, "steps": 500, "looks": 10}


def grid() -> list[dict]:
    """Return the cells of the paper's profile."""
    cells = [
        {**setting, "canary": canary, "sampling_rate": rate, "repeat": repeat}
        for setting, canaries, rate, repeats in (
            (SMALL, CANARIES, 0.0625, REPEATS),
            (SMALL, CANARIES, 0.25, REPEATS),
            (LARGE, CANARIES, 0.0625, 1),
            (LARGE, CANARIES, 0.25, 1),
            ({**SMALL, "start": "shared"}, [PRINTED, "crafted input", "mislabelled"], 0.0625, 1),
            (SMALL, ["crafted input as printed"], 0.0625, 1),
        )
        for repeat in range(repeats)
        for canary in canaries
    ]
    return cells


# A few passes of a few models: other threads and other instructions of the processor left every
# digit as it is. Over hundreds of steps they decide which side of a threshold some models fall on.
TOLERANCE = 0.01
FEW = {**SMALL, "runs": 500, "steps": 20, "looks": 1, "sampling_rate": 0.25, "repeat": 0}
REDUCED = [{**FEW, "canary": PRINTED}, {**FEW, "canary": "mislabelled", "start": "shared"}]


@study("sub-networks", tolerance=TOLERANCE, paper=grid(), live=REDUCED, reduced=REDUCED)
def from_scratch(
    data: str,
    canary: str,
    start: str,
    sampling_rate: float,
    epsilon: float,
    runs: int,
    steps: int,
    looks: int,
    repeat: int,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit networks trained from scratch with one canary.

    Parameters
    ----------
    data
        The records, as in `records_of`, and with them the network.
    canary : str
        One of `CANARIES`, or "crafted input as printed".
    start : {"fresh", "shared"}
        Whether every model starts from weights of its own, or all from those of the reference on
        which the canary is crafted.
    sampling_rate, epsilon, steps
        q, the ε_S for which the noise is chosen, and T.
    runs, looks : int
        Models, half of them with z', and at how many steps they are looked at.
    repeat : int
        Deals the records.

    Returns
    -------
    list of dict
        A row for each ``step`` that was looked at, with the ``score`` of the paper, and for input
        canaries another with ours, "since the start". Each has what `audits.audited` says, the
        ``add_remove`` and ``substitute`` ε spent up to that step, and the mean ``accuracy`` of all
        models on test records. The same in all rows: the ``noise_multiplier``, the number of
        ``parameters``, ``norm_target`` and ``norm_canary`` of the gradients on fresh networks,
        their ``cosine`` on the reference, and ``cosine_fresh`` on fresh networks.
    """
    training = Training(sampling_rate, epsilon, CLIP, steps, LEARNING_RATE)
    crafted = craft(canary, data, training, repeat, rng)
    at = np.linspace(steps / looks, steps, looks).round().astype(int)
    trained = train(
        data,
        crafted,
        training,
        repeat,
        runs=runs,
        snapshots=at,
        seed=int(rng.integers(2**31)),
        shared=start == "shared",
    )
    module = fresh(network_of(data, records_of(data, repeat)), 0)
    about = {
        "noise_multiplier": round(training.noise, DIGITS),
        "parameters": sum(weight.numel() for weight in module.parameters()),
        **crafted.about,
    }
    seed = int(rng.integers(2**31))
    return [
        {
            "step": int(step),
            "score": score,
            **audited(trained.kept[:, look, column], trained.bits, seed),
            **promised(training.noise, sampling_rate, step),
            "accuracy": round(float(trained.kept[:, look, 2].mean()), DIGITS),
            **about,
        }
        for column, score in enumerate(SCORES[: 1 if canary in GRADIENTS else 2])
        for look, step in enumerate(at)
    ]


# --- does the audit ever say too much? -----------------------------------------------------------


NULL_STEPS = 100


@study(
    "sub-networks-null",
    tolerance=TOLERANCE,
    paper=[
        {"data": data, "canary": canary, "runs": runs}
        for data, runs in (("images", 2_500), ("answers", 500))
        for canary in (PRINTED, "mislabelled")
    ],
)
def at_the_null(data: str, canary: str, runs: int, *, rng: np.random.Generator) -> list[dict]:
    """Audit where there is nothing to find: z was there in both worlds.

    Returns
    -------
    list of dict
        A row for each ``score``, with what `audits.audited` says. A bound above 0 is wrong.
    """
    training = Training(0.0625, 10.0, CLIP, NULL_STEPS, LEARNING_RATE)
    crafted = craft(canary, data, training, 0, rng)
    trained = train(
        data,
        crafted,
        training,
        0,
        runs=runs,
        snapshots=np.array([NULL_STEPS]),
        seed=int(rng.integers(2**31)),
        met=null_of(crafted.canary),
    )
    scores = SCORES[: 1 if canary in GRADIENTS else 2]
    return [
        {"score": score, **audited(trained.kept[:, 0, at], trained.bits, int(rng.integers(2**31)))}
        for at, score in enumerate(scores)
    ]
