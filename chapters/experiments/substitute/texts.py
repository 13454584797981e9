"""Heads with 384 weights on sentences: Figure A6 of SUB.

The paper has 5,000 sentences of SST-2 and 2,500 runs. Here stand in 500 sentences of film reviews,
of those that SST-2 was made from, and 1,000 runs: 25 times less work. Their vectors of 384 numbers
ship, from a sentence encoder.

The encoder's vectors have length 1, and no gradient is longer than its features: with a clipping
norm of 2 nothing is ever clipped, and the noise is meant for far more than a record can do. The
paper does not say how long its features are. Here they are audited less the mean of public
sentences and brought to a mean norm of 8, and also as they come.
"""

from functools import lru_cache

import numpy as np

from auditkit.datasets import load
from auditkit.experiment import study
from experiments.substitute.heads import TOLERANCE
from experiments.substitute.linear import CANARIES, Records, Training, audit_rows

PUBLIC = 2_000  # for the mean, and for natural canaries
TESTED = 1_500


@lru_cache(maxsize=2)
def sentences(size: int, norm: float | None, repeat: int) -> Records:
    """Deal sentences.

    Parameters
    ----------
    size : int
        How many are trained on.
    norm : float or None
        Mean norm of the features after centring. None leaves them as they come.
    repeat : int
        Deals all of them: the public ones, those that are tested on, and those that are trained on.
    """
    shipped = load("film-sentences", part="embeddings")
    order = np.random.default_rng(repeat).permutation(len(shipped["labels"]))
    parts = np.split(order, [PUBLIC, PUBLIC + TESTED, PUBLIC + TESTED + size])[:3]
    pool, tested, dealt = (shipped["embeddings"][rows].astype(np.float64) for rows in parts)
    if norm is not None:
        mean = pool.mean(axis=0)
        scale = norm / np.linalg.norm(pool - mean, axis=1).mean()
        pool, tested, dealt = (scale * (part - mean) for part in (pool, tested, dealt))
    of_pool, of_tested, of_dealt = (shipped["labels"][rows] for rows in parts)
    return Records(dealt, of_dealt, pool, of_pool, tested, of_tested, logits=1)


def grid(scale: str) -> list[dict]:
    """Return the cells: features as they come and centred, each canary at each sampling rate."""
    if scale == "quick":
        size = {"size": 250, "steps": 250, "runs": 500, "looks": 5}
        settings = [(1.0, 8.0, 0), (1.0, None, 0)]
        canaries: tuple[str, ...] = ("crafted gradient", "crafted input")
    else:
        size = {"size": 500, "steps": 2_500, "runs": 1_000, "looks": 10}
        settings = [
            (rate, norm, repeat)
            for rate, norm in ((1.0, 8.0), (0.25, 8.0), (1.0, None))
            for repeat in range(3)
        ]
        canaries = CANARIES
    return [
        {"canary": canary, "sampling_rate": rate, "norm": norm, "repeat": repeat, **size}
        for rate, norm, repeat in settings
        for canary in canaries
    ]


@study(
    "sub-texts",
    tolerance=TOLERANCE,
    paper=grid("paper"),
    live=grid("quick"),
    reduced=grid("quick")[:2],
)
def fine_tuned(
    canary: str,
    sampling_rate: float,
    norm: float | None,
    size: int,
    steps: int,
    runs: int,
    looks: int,
    repeat: int,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit heads with C = 2, η = 0.01 and ε_S = 10; `linear.audit_rows` says what the rows hold.

    Parameters
    ----------
    canary : str
        One of `linear.CANARIES`.
    sampling_rate : float
        q.
    norm, size, repeat
        As in `sentences`.
    steps : int
        T.
    runs, looks : int
        Models, half of them with z', and at how many steps they are looked at.
    """
    return audit_rows(
        canary,
        sentences(size, norm, repeat),
        Training(sampling_rate, 10.0, 2.0, steps, 0.01),
        runs=runs,
        looks=looks,
        rng=rng,
    )
