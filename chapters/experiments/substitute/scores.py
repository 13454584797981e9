"""Scores of trained heads as they are stored, and back: training here, counting in `counts`.

A cell trains with one canary and leaves a row for each step that was looked at. Its scores stand
there as a text, in units that are fixed before the training, so that rounding tells no run anything
of another one. Runs have the bits 0 and 1 in turn.
"""

import base64
import bz2

import numpy as np

from auditkit.attacks.substitution import Canary
from auditkit.mechanisms.dp_sgd import GradientCanary
from experiments.substitute.audits import DIGITS
from experiments.substitute.linear import Records, Training, craft, train

RUNS = 2_500  # of an audit, as in the paper; scores of fewer are a trial and not kept
PARTS = 8  # of the deviation that noise alone gives a score: rounding adds .1% to its square
PAPER, WHITENED = "paper", "whitened"


def score_rows(
    name: str,
    records: Records,
    training: Training,
    *,
    runs: int,
    looks: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Craft a canary, train with it, and score.

    Returns
    -------
    list of dict
        A row for each ``step`` that was looked at, with the ``score`` of the paper, and one for the
        last with ours, "whitened". Each has the ``scores`` of all runs, what `described` says of
        them, and the mean ``accuracy`` on test records of models with z and of those with z',
        ``accuracy_canary``. The same in all rows: the ``noise_multiplier``, ``norm_target`` and
        ``norm_canary`` of the gradients of z and z', and their ``cosine``.
    """
    crafted = craft(name, records, training, rng)
    steps = np.linspace(training.steps / looks, training.steps, looks).round().astype(int)
    trained = train(
        records, crafted, training, runs=runs, snapshots=steps, seed=int(rng.integers(2**31))
    )
    units = unit(crafted.canary), float(np.linalg.norm(crafted.direction))
    about = {
        "noise_multiplier": training.noise,
        "norm_target": crafted.norms[0],
        "norm_canary": crafted.norms[1],
        "cosine": crafted.cosine,
    }
    batch = training.sampling_rate * len(records.labels)
    alone = training.learning_rate * training.noise * training.clip / batch
    rows = []
    for column, looked in ((0, range(looks)), (1, range(looks - 1, looks))):
        for at in looked:
            deviation = units[column] * alone * float(np.sqrt(steps[at]))
            whole = np.rint(trained.kept[:, at, column] * PARTS / deviation)
            right = trained.kept[:, at, 2]
            rows.append(
                {
                    "step": int(steps[at]),
                    "score": (PAPER, WHITENED)[column],
                    "scores": pack(whole) if runs >= RUNS else None,
                    **described(whole, trained.bits),
                    "accuracy": digits(right[trained.bits == 0].mean()),
                    "accuracy_canary": digits(right[trained.bits == 1].mean()),
                    **{key: digits(value) for key, value in about.items()},
                }
            )
    return rows


def unit(canary: Canary) -> float:
    """Return how long the direction is along which weights make the paper's score."""
    if isinstance(canary, GradientCanary):
        return 1.0
    signed = np.asarray(canary.features) * np.where(np.asarray(canary.labels) == 1, 1, -1)[:, None]
    return float(np.linalg.norm(signed[1] - signed[0]))


def described(scores: np.ndarray, bits: np.ndarray) -> dict[str, float]:
    """Return how far apart the worlds are, and how wide: ``gap`` and ``deviation`` of the scores.

    Both are in `PARTS` of what noise alone would spread the scores by, or in the unit of the study.
    """
    zero, one = scores[bits == 0], scores[bits == 1]
    return {
        "gap": digits(one.mean() - zero.mean()),
        "deviation": digits(np.sqrt((zero.var() + one.var()) / 2.0)),
    }


def digits(value: float) -> float:
    """Return a number with as many digits as are stored."""
    return round(float(value), DIGITS)


def pack(scores: np.ndarray) -> str:
    """Return whole numbers as a text."""
    limits = np.iinfo(np.int16)
    if not ((limits.min <= scores) & (scores <= limits.max)).all():
        raise ValueError(
            f"scores must lie in {limits.min} to {limits.max}, got {scores.min()} to {scores.max()}"
        )
    pairs = scores.astype("<i2").view(np.uint8).reshape(-1, 2)
    # high bytes apart from low ones: they are alike
    return base64.b85encode(bz2.compress(pairs.T.tobytes())).decode()


def unpack(text: str) -> np.ndarray:
    """Return the whole numbers that `pack` was given."""
    pairs = np.frombuffer(bz2.decompress(base64.b85decode(text)), np.uint8).reshape(2, -1)
    return np.ascontiguousarray(pairs.T).view("<i2").ravel().astype(np.float64)
