"""Networks trained from scratch with DP-Adam: Figure 3 of SUB, with networks of its size.

The paper trains 2,500 networks 600-128-100, 89,828 parameters each, on 50,000 records of
Purchase100 for 2,500 steps: over a day for each canary on two cores. Here are two cuts through it,
both with the paper's network: 500 records and 200 steps with 2,500 runs, and 5,000 records and
2,500 steps with as many runs as fit into an hour. In place of Purchase100, which has to be brought,
stands the census: each of 600 pairs of answers is a feature, both given or not, as each of 600
products is bought or not, and the 100 classes are clusters. A pair is common: a weight on what
nobody has would never move, and Algorithm 2 would put its gradient there. Whoever has Purchase100
gives the path of its file in the place of "answers".

With fewer records than the paper's 50,000 a batch is smaller and the noise on the mean gradient is
larger, so that networks learn less. The canary is not further away: it stands against the noise on
the sum, which is the same.

Every model starts from weights of its own, as in the paper; beside it stand settings where all
start alike, as heads do. That matters to Algorithm 2: it puts the gradient where a reference moves
least, and from another start that place moves like any other. So there is a second gradient canary,
ours, at the place where three references from three starts move least in sum.

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
from auditkit.experiment import Study, study
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, Trained, audit_sgd
from auditkit.models.networks import mlp
from experiments.substitute.linear import OBJECTIVES, Records, Training, null_of, record_canary
from experiments.substitute.scores import PAPER, RUNS, described, digits, pack

PRINTED, THREE = "crafted gradient", "crafted gradient, three starts"
CANARIES = (PRINTED, THREE, *OBJECTIVES, "mislabelled", "adversarial natural")
ANSWERS = "answers"
FEATURES, HIDDEN, CLASSES = 600, 128, 100  # as in the paper
PUBLIC = 5_000  # records that answers are counted on, and clusters made of
COMMON = (0.02, 0.5)  # shares of people who give both answers of a pair
POOL, TESTED = 1_000, 200  # records that natural canaries come from, and for the accuracy
STARTS = 3
FRESH = 10  # networks that a canary is looked at on
REFERENCE_STEPS = 500  # of a reference at most: gradients of examples take their time
EPSILON, CLIP, LEARNING_RATE = 10.0, 5.0, 0.0018  # Table A1
SINCE = "since the start"
# units of stored scores: a part of a step of Adam, and of a logit
UNITS = {True: LEARNING_RATE / 8, False: 1 / 64}

# --- the records ---------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def records_of(data: str, size: int) -> Records:
    """Deal so many records, and others for canaries and tests.

    Parameters
    ----------
    data : str
        "answers", or the path of the file ``dataset_purchase`` of Purchase100, which has to be
        brought: ``auditkit data list`` says from where.
    size : int
        How many are trained on.
    """
    if data == ANSWERS:
        features, labels = _answers()
    else:
        brought = load("purchase100", path=data)
        features, labels = brought["features"], brought["labels"]
    order = np.random.default_rng(0).permutation(len(labels))
    parts = np.split(order, np.cumsum([POOL, TESTED, size]))[:3]
    if len(parts[2]) < size:
        raise ValueError(f"size must be at most {len(parts[2])} with these data, got {size}")
    (pool, of_pool), (tested, of_tested), (own, of_own) = (
        (features[rows].astype(np.float64), labels[rows]) for rows in parts
    )
    return Records(own, of_own, pool, of_pool, tested, of_tested, CLASSES)


@lru_cache(maxsize=1)
def _answers() -> tuple[np.ndarray, np.ndarray]:
    """Return who in the census gave both answers of a pair, and clusters."""
    rows = load("census-income")["train_features"][: 4 * PUBLIC]
    columns = range(rows.shape[1])
    given = [rows[:, [column]] == np.unique(rows[:PUBLIC, column]) for column in columns]
    answers = np.concatenate(given, axis=1)
    public = answers[:PUBLIC].astype(np.float32)
    shares = np.triu(public.T @ public / PUBLIC, k=1)
    pairs = np.argwhere((shares >= COMMON[0]) & (shares <= COMMON[1]))
    first, second = pairs[np.linspace(0, len(pairs) - 1, FEATURES).astype(int)].T
    features = (answers[:, first] & answers[:, second]).astype(np.float64)
    clusters = KMeans(CLASSES, n_init=1, random_state=0).fit(features[:PUBLIC])
    return features[PUBLIC:], clusters.predict(features[PUBLIC:]).astype(np.int64)


network = partial(mlp, FEATURES, CLASSES, hidden=(HIDDEN,))


def fresh(seed: int) -> nn.Module:
    """Make a network by a seed, without touching torch's own stream."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return network()


# --- the adversary as crafter --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Crafted:
    """A canary, and what it looks like to the reference, and to networks that start afresh."""

    target: int
    canary: Canary
    about: dict[str, float]


@lru_cache(maxsize=4)
def reference(data: str, size: int, training: Training, start: int, *, clipped: bool) -> Reference:
    """Train a network without noise, as it comes or with clipped gradients."""
    records = records_of(data, size)
    return train_reference(
        fresh(start),
        records.features,
        records.labels,
        steps=min(training.steps, REFERENCE_STEPS),
        learning_rate=training.learning_rate,
        sampling_rate=training.sampling_rate,
        clip=training.clip if clipped else None,
        optimizer="adam",
        rng=0,
    )


def craft(name: str, data: str, size: int, training: Training, rng: np.random.Generator) -> Crafted:
    """Craft a canary by its name, one of `CANARIES`."""
    records = records_of(data, size)
    plain = reference(data, size, training, 0, clipped=False)
    z = plain.target
    x, y = records.features[z], int(records.labels[z])
    if name in (PRINTED, THREE):
        starts = range(1 if name == PRINTED else STARTS)
        movement = sum(reference(data, size, training, at, clipped=True).movement for at in starts)
        pair = crafted_gradient(movement, clip=training.clip)
        about = dict.fromkeys(("norm_target", "norm_canary"), training.clip)
        return Crafted(z, GradientCanary(pair), {**about, "cosine": -1.0, "cosine_fresh": -1.0})
    if name in OBJECTIVES:
        # with steps as long as for a head, x' leaves some networks' reach for good
        how = {"learning_rate": 0.0003, "objective": OBJECTIVES[name]}
        other = crafted_input(plain.model, x, y, **how, rng=rng)
        canary = InputCanary(np.stack([x, other]), [y, y])
    else:
        canary = record_canary(name, plain.model, x, y, records, rng)
    starts = [_pair(fresh(1_000 + seed), canary) for seed in range(FRESH)]
    norm_target, norm_canary, cosine = np.mean(starts, axis=0)
    about = {
        "norm_target": norm_target,
        "norm_canary": norm_canary,
        "cosine": _pair(plain.model, canary)[2],
        "cosine_fresh": cosine,
    }
    return Crafted(z, canary, {key: digits(value) for key, value in about.items()})


def _pair(model: nn.Module, canary: InputCanary) -> tuple[float, float, float]:
    """Return the norms of the gradients of z and z', and the cosine between them."""
    g = clipped_gradients(model, canary.features, canary.labels, clip=1e9)
    norms = np.linalg.norm(g, axis=1)
    return norms[0], norms[1], float(g[0] @ g[1] / max(norms.prod(), 1e-30))


# --- training ------------------------------------------------------------------------------------


def train(
    data: str,
    size: int,
    crafted: Crafted,
    training: Training,
    *,
    runs: int,
    snapshots: np.ndarray,
    seed: int,
    shared: bool = False,
    null: bool = False,
) -> Trained:
    """Train with DP-Adam in both worlds; keep both scores and the accuracy.

    All models start like the reference if the start is ``shared``. With ``null`` both worlds hold
    z, and nothing is there to be found.
    """
    records = records_of(data, size)
    others = np.arange(size) != crafted.target
    start = nn.utils.parameters_to_vector(fresh(0).parameters()).detach().numpy()
    return audit_sgd(
        records.features[others],
        records.labels[others],
        null_of(crafted.canary) if null else crafted.canary,
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
        keep=_kept(records, crafted.canary),
    )


def _kept(records: Records, canary: Canary) -> Callable[[Trained], np.ndarray]:
    module = fresh(0)

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
    return logit_score(np.stack(said), canary.labels, logits=CLASSES)


# --- the studies ---------------------------------------------------------------------------------

FULL = {"data": ANSWERS, "start": "fresh", "null": False, "sampling_rate": 0.0625, "part": 0}
MANY_RUNS = FULL | {"size": 500, "steps": 200, "looks": 5, "runs": RUNS}
FEWER_RUNS = MANY_RUNS | {"runs": 1_000}
MANY_STEPS = FULL | {"size": 5_000, "steps": 2_500, "looks": 10, "runs": 60}
# runs of one audit that take long are in parts, a cell of some ten minutes each
HALVES = [{"sampling_rate": 0.25, "runs": RUNS // 2, "part": part} for part in range(2)]
LONG_PARTS = 5
TINY = MANY_RUNS | {"size": 200, "steps": 6, "looks": 2, "runs": 40}
SHORT = [
    *(MANY_RUNS | {"canary": canary} for canary in CANARIES),
    *(MANY_RUNS | {"canary": one} | half for one in (PRINTED, "mislabelled") for half in HALVES),
    *(FEWER_RUNS | {"canary": one, "start": "shared"} for one in (PRINTED, "mislabelled")),
    FEWER_RUNS | {"canary": "mislabelled", "null": True},
]


def training(sampling_rate: float, steps: int) -> Training:
    """Return how networks are trained."""
    return Training(sampling_rate, EPSILON, CLIP, steps, LEARNING_RATE)


def trained_scores(
    canary: str,
    data: str,
    size: int,
    start: str,
    null: bool,
    sampling_rate: float,
    steps: int,
    looks: int,
    runs: int,
    part: int,  # noqa: ARG001 - tells cells apart
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Train networks from scratch with one canary, and score.

    Cells that differ in `part` alone are parts of one audit: their canary is the same.

    Parameters
    ----------
    canary : str
        One of `CANARIES`.
    data, size
        The records, as in `records_of`.
    start : {"fresh", "shared"}
        Whether every model starts from weights of its own, or all from those of the reference on
        which the canary is crafted.
    null : bool
        Whether both worlds hold z.
    sampling_rate, steps
        q and T.
    runs, looks : int
        Models, half of them with z', and at how many steps they are looked at.

    Returns
    -------
    list of dict
        A row for each ``step`` that was looked at, with the ``score`` of the paper, and for input
        canaries one for the last with ours, "since the start". Each has the ``scores`` of all runs,
        what `scores.described` says of them, and the mean ``accuracy`` of all models on test
        records. The same in all rows: the ``noise_multiplier``, ``norm_target`` and ``norm_canary``
        of the gradients on fresh networks, their ``cosine`` on the reference, and ``cosine_fresh``.
    """
    recipe = training(sampling_rate, steps)
    crafted = craft(canary, data, size, recipe, np.random.default_rng(0))
    at = np.linspace(steps / looks, steps, looks).round().astype(int)
    trained = train(
        data,
        size,
        crafted,
        recipe,
        runs=runs,
        snapshots=at,
        seed=int(rng.integers(2**31)),
        shared=start == "shared",
        null=null,
    )
    planted = isinstance(crafted.canary, GradientCanary)
    looked = [(PAPER, 0, one) for one in range(looks)] + [(SINCE, 1, looks - 1)] * (not planted)
    rows = []
    for score, column, look in looked:
        whole = np.rint(trained.kept[:, look, column] / UNITS[planted])
        rows.append(
            {
                "step": int(at[look]),
                "score": score,
                "scores": pack(whole) if size > TINY["size"] else None,
                **described(whole, trained.bits),
                "accuracy": digits(trained.kept[:, look, 2].mean()),
                "noise_multiplier": digits(recipe.noise),
                **crafted.about,
            }
        )
    return rows


def _study(id_: str, cells: list[dict], small: list[str]) -> Study:
    """Make a study; what it trains on is the same in all."""
    reduced = [TINY | {"canary": canary} for canary in small]
    return study(id_, tolerance=0.05, paper=cells, live=reduced, reduced=reduced)(trained_scores)


def _long(canary: str) -> list[dict]:
    return [MANY_STEPS | {"canary": canary, "part": part} for part in range(LONG_PARTS)]


short_scores = _study("sub-scratch-scores", SHORT, [PRINTED, "crafted input"])
gradient_scores = _study("sub-scratch-gradient-scores", _long(PRINTED), [PRINTED])
input_scores = _study("sub-scratch-input-scores", _long("mislabelled"), ["mislabelled"])
TRAINED = short_scores, gradient_scores, input_scores
# the others are parts of one audit, or the same in all cells of a study
TELLS_APART = ("canary", "start", "null", "sampling_rate", "size", "steps")
