"""Heads on features: networks on what a frozen one sees of images, and on rows of tables.

Of every game two networks are trained, the audited one and that of the placebo, and what they make
of the audited records is stored. Nothing is counted here.
"""

import base64
import bz2
from functools import partial

import numpy as np

from auditkit.evidence import Scores
from auditkit.experiment import stored, study
from auditkit.models.networks import mlp
from auditkit.models.training import fit_many
from experiments.zero_run.games import CENSUS, HARD, IID, MIX, OOD, PATIENTS, TINY, play

HEADS, PATIENT_HEADS = "zero-heads", "zero-heads-patients"
TARGET, PLACEBO = "audited members", "other members"
PASSES = 40  # over the members, who are then known by heart
SEEDS = range(5)
REDUCED = [{"data": TINY, "split": OOD, "seed": 0}, {"data": TINY, "split": IID, "seed": 1}]


def cells(*data: str) -> list[dict]:
    """Return the paper profile's cells for some of the data."""
    return [
        {"data": one, "split": split, "seed": seed}
        for one in data
        for split in (IID, OOD)
        for seed in SEEDS
    ]


def heads(data: str, split: str, seed: int) -> list[dict]:
    """Train a network on a game's members and another on the placebo's."""
    pool, game = play(data, split, seed)
    rows, members = game.audited
    found = []
    for place, release in enumerate((TARGET, PLACEBO)):
        learnt, own = (game.audited, game.placebo)[place]
        model = fit_many(
            partial(mlp, pool.inputs.shape[1], int(pool.labels.max()) + 1, hidden=(256, 256)),
            pool.inputs[learnt[own]],
            pool.labels[learnt[own]],
            seeds=[seed_of(seed, place)],
            epochs=PASSES,
            batch_size=64,
            learning_rate=1e-3,
            optimizer="adam",
        )
        losses = model.losses(pool.inputs[rows], pool.labels[rows])[0]
        found.append(said(release, losses, members, data))
    return found


training = study(
    HEADS, paper=cells(MIX, HARD, CENSUS), live=REDUCED[:1], reduced=REDUCED, tolerance=0.05
)(heads)
training_on_patients = study(
    PATIENT_HEADS,
    paper=cells(PATIENTS),
    live=REDUCED[:1],
    reduced=REDUCED,
    tolerance=0.05,
    needs="the tables of the Heritage Health Prize, which are not ours to ship",
)(heads)


def seed_of(seed: int, place: int) -> int:
    """Return the seed of a network of a game."""
    return int(np.random.SeedSequence((seed, 8)).generate_state(2)[place])


# what networks say, on the way to a table and back


def said(release: str, losses: np.ndarray, members: np.ndarray, data: str) -> dict:
    """Return the losses of audited records, and what they come to.

    They are stored of the whole games only: rounding on another processor makes another text.
    """
    return {
        "release": release,
        "members_loss": float(losses[members].mean()),
        "others_loss": float(losses[~members].mean()),
        "auc": Scores(-losses.astype(np.float64), members).area(),
        "losses": None if data == TINY else pack(losses),
    }


def pack(losses: np.ndarray) -> str:
    """Return losses as a text, in half precision: three digits, and 6e-8 at the least."""
    if losses.max() > np.finfo(np.float16).max:
        raise ValueError(f"losses must be at most 65504, got {losses.max()}")
    return base64.b85encode(bz2.compress(losses.astype("<f2").tobytes())).decode()


def unpack(text: str) -> np.ndarray:
    """Return the losses that `pack` was given."""
    return np.frombuffer(bz2.decompress(base64.b85decode(text)), "<f2").astype(np.float64)


def told(id_: str, **which: object) -> np.ndarray:
    """Return the losses of audited records in the one stored row that is of this kind."""
    rows = stored(id_)
    for name, value in which.items():
        rows = rows[rows[name] == value]
    if len(rows) != 1:
        raise ValueError(f"which must be of one row of {id_}, got {which} of {len(rows)} rows")
    return unpack(rows["losses"].iloc[0])
