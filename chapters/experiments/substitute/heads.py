"""Does an audit of heads ever say too much? Two studies that try to catch it.

A head is trained on 500 images of CIFAR-10, whose features come from a frozen network: the first
128 of its principal directions, which come from other images, less their mean and brought to a mean
norm of 16. There a canary can use all of its budget, so that an audit is as tight as it can be.

`at_the_null` has nothing to find, `coverage` knows the truth.
"""

from functools import lru_cache

import numpy as np

from auditkit.datasets import load
from auditkit.experiment import study
from experiments.substitute.audits import DIGITS, audited, promised
from experiments.substitute.linear import (
    CANARIES,
    Records,
    Training,
    craft,
    null_of,
    train,
)

RECORDS = 500
DIRECTIONS = 128
PUBLIC = 3_000  # images that the directions come from, and natural canaries
TESTED = 2_000
ANIMALS = (2, 3, 4, 5, 6, 7)
# Other threads and other instructions of the processor left every stored digit of the audits as it
# is. On another machine the last digit of a score may differ, and a run then pass a cut.
TOLERANCE = 0.01

# --- the records ---------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def images(logits: int, norm: float, centred: bool, repeat: int) -> Records:
    """Deal 500 images, none of which had a say in the features.

    Parameters
    ----------
    logits : int
        1 for animals (1) against vehicles (0), or 10.
    norm : float
        Mean norm of the features.
    centred : bool
        Whether the mean of the public images is taken off. If not, it lies along the directions and
        one more.
    repeat : int
        Deals the images.
    """
    shipped = load("cifar10", part="features")
    along, beside = shipped["directions"][:DIRECTIONS], np.zeros(0)
    if not centred:
        beside = along @ shipped["mean"]
        rest = shipped["mean"] - beside @ along
        beside = np.append(beside, np.linalg.norm(rest))

    def features(part: str, rows: slice | np.ndarray) -> np.ndarray:
        kept = shipped[f"{part}_features"][rows, :DIRECTIONS].astype(np.float64)
        return kept if centred else np.pad(kept, ((0, 0), (0, 1))) + beside

    def labels(part: str, rows: slice | np.ndarray) -> np.ndarray:
        own = shipped[f"{part}_labels"][rows]
        return np.isin(own, ANIMALS).astype(np.int64) if logits == 1 else own

    public, tested = slice(0, PUBLIC), slice(0, TESTED)
    left = np.arange(PUBLIC, len(shipped["train_labels"]))
    dealt = np.random.default_rng(repeat).choice(left, RECORDS, replace=False)
    pool = features("train", public)
    scale = norm / np.linalg.norm(pool, axis=1).mean()
    return Records(
        scale * features("train", dealt),
        labels("train", dealt),
        scale * pool,
        labels("train", public),
        scale * features("test", tested),
        labels("test", tested),
        logits,
    )


# --- does the audit ever say too much? -----------------------------------------------------------


USUAL = {
    "logits": 1,
    "sampling_rate": 1.0,
    "epsilon": 10.0,
    "clip": 2.0,
    "steps": 500,
    "learning_rate": 0.001,
    "norm": 16.0,
    "centred": True,
    "runs": 2_500,
    "looks": 5,
}
RATES = (1.0, 0.25, 0.0625)
RECIPE = ("epsilon", "clip", "steps", "learning_rate")


@study(
    "sub-heads-null",
    tolerance=TOLERANCE,
    paper={"canary": list(CANARIES), "sampling_rate": list(RATES), "runs": [2_500]},
    live={"canary": ["mislabelled"], "sampling_rate": [0.0625], "runs": [500]},
)
def at_the_null(
    canary: str, sampling_rate: float, runs: int, *, rng: np.random.Generator
) -> list[dict]:
    """Audit where there is nothing to find: z was there in both worlds.

    Returns
    -------
    list of dict
        A row for each ``score``, with what `audits.audited` says. A bound above 0 is wrong.
    """
    training = Training(sampling_rate, *(USUAL[name] for name in RECIPE))
    records = images(*(USUAL[name] for name in ("logits", "norm", "centred")), 0)
    crafted = craft(canary, records, training, rng)
    trained = train(
        records,
        crafted,
        training,
        runs=runs,
        snapshots=[training.steps],
        seed=int(rng.integers(2**31)),
        met=null_of(crafted.canary),
    )
    return [
        {"score": score, **audited(trained.kept[:, 0, at], trained.bits, int(rng.integers(2**31)))}
        for at, score in enumerate(("paper", "whitened"))
    ]


@study(
    "sub-heads-coverage",
    tolerance=TOLERANCE,
    paper={
        "sampling_rate": [1.0, 0.0625],
        "epsilon": [10.0],
        "runs": [500],
        "audits": [20],
        "part": list(range(10)),
    },
    live={
        "sampling_rate": [1.0],
        "epsilon": [10.0],
        "runs": [500],
        "audits": [4],
        "part": [0],
    },
)
def coverage(
    sampling_rate: float,
    epsilon: float,
    runs: int,
    audits: int,
    part: int,  # noqa: ARG001 - tells cells apart
    *,
    rng: np.random.Generator,
) -> dict:
    """Audit crafted gradients many times, where the truth is the ε of the accountant or just below.

    Cells that differ in `part` alone are one study.

    Returns
    -------
    dict
        For each of the numbers of `audits.audited`, in how many of the audits it ``exceeded`` ε_S,
        and its mean.
    """
    training = Training(sampling_rate, epsilon, *(USUAL[name] for name in RECIPE[1:]))
    records = images(*(USUAL[name] for name in ("logits", "norm", "centred")), 0)
    crafted = craft("crafted gradient", records, training, rng)
    trained = train(
        records,
        crafted,
        training,
        runs=runs * audits,
        snapshots=[training.steps],
        seed=int(rng.integers(2**31)),
    )
    shape = (audits, runs)
    found = [
        audited(scores, bits, int(rng.integers(2**31)))
        for scores, bits in zip(
            trained.kept[:, 0, 0].reshape(shape), trained.bits.reshape(shape), strict=True
        )
    ]
    known = promised(training.noise, sampling_rate, training.steps)
    row: dict = dict(known)
    for name in found[0]:
        values = np.array([one[name] for one in found])
        row[f"{name}_exceeded"] = int(np.sum(values > known["substitute"]))
        row[f"{name}_mean"] = round(float(values.mean()), DIGITS)
    return row
