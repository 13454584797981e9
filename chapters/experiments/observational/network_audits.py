"""The audits of the networks on pixels: nothing is trained here, stored probabilities are read."""

import math

import numpy as np

from auditkit.experiment import study
from experiments.observational.audits import INTERVENTIONAL, OBSERVATIONAL, audit_rows
from experiments.observational.drawn_networks import DRAWN
from experiments.observational.images import split
from experiments.observational.networks import (
    CHECKPOINT,
    FRESH,
    OBSERVED,
    PASSES,
    PLAYED,
    REFERENCE_PASSES,
    REFERENCES,
    SEEDS,
    SETTINGS,
    WHOLE,
    draw,
    exponent,
    raised,
    told,
)

NULL = "null"
EITHER = "audited", "unseen"
PAPER = [
    {"game": game, "mechanism": mechanism, "epsilon": epsilon, "start": start, "passes": passes}
    | {"calibrated": calibrated, "seed": seed, "games": 100}
    for seed in SEEDS
    for game, calibrated, mechanism, epsilon, start, passes in (
        # labels are drawn from the calibrated law, and fakes must be too
        *((INTERVENTIONAL, True, *one, FRESH, PASSES) for one in SETTINGS),
        *(
            (game, calibrated, *one)
            for game in (OBSERVATIONAL, NULL)
            for calibrated in (False, True)
            for one in (
                *((*setting, FRESH, PASSES) for setting in SETTINGS),
                *(
                    ("LP-1ST", epsilon, FRESH, passes)
                    for epsilon in (math.inf, 1.0)
                    for passes in REFERENCE_PASSES
                    if passes != PASSES
                ),
            )
        ),
        *(
            (OBSERVATIONAL, calibrated, "LP-1ST", epsilon, CHECKPOINT, PASSES)
            for calibrated in (False, True)
            for epsilon in (math.inf, 1.0)
        ),
    )
]


@study(
    "obs-networks-audits",
    paper=PAPER,
    live=PAPER[:2],
    tolerance=1e-9,
    sources=[REFERENCES, OBSERVED, DRAWN],
)
def network_audits(
    game: str,
    mechanism: str,
    epsilon: float,
    start: str,
    passes: int,
    calibrated: bool,
    seed: int,
    games: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit a target with a reference model of so many `passes`.

    The game is "observational", with the true labels that the target was trained on;
    "interventional", with labels that were drawn from the reference model before training; or
    "null", with true labels on a target of drawn ones. Placebos have labels of the same kind.
    Calibrated are the probabilities of both models, by the power that is best for the reference
    model: they had the same training. ``accuracy`` is that of the target on unseen images.
    """
    cell = {"mechanism": mechanism, "epsilon": epsilon, "seed": seed}
    if game == OBSERVATIONAL:
        target = {"id_": OBSERVED, "start": start, **cell}
    else:
        target = {"id_": DRAWN, **cell}
    images, played = split(WHOLE), []  # whose labels are shipped
    if start == CHECKPOINT:
        reference = {name: told(network=start, images=name, **target) for name in EITHER}
    else:
        reference = {
            name: told(REFERENCES, images=name, passes=passes, seed=seed) for name in EITHER
        }
    power = exponent(reference["audited"], images.audited.labels) if calibrated else 1.0
    for name, half in zip(EITHER, (images.audited, images.unseen), strict=True):
        law = raised(reference[name], power)
        labels = draw(law, seed, name) if game == INTERVENTIONAL else half.labels
        said = raised(told(network="target", images=name, **target), power)
        played.append((labels[:PLAYED], said, law[:PLAYED]))
    rows = audit_rows(*played[0], held_out=played[1], repetitions=games, rng=rng)
    right = played[1][1].argmax(axis=1) == images.unseen.labels[:PLAYED]
    return [{**row, "power": power, "accuracy": float(right.mean())} for row in rows]
