"""What a student betrays of its teachers' labels, by how many teachers there are.

PATE with 200 teachers and 1,000 votes is not found to leak (`obs-catboost`), where the paper finds
about as much as in any other mechanism. Nothing here is private: there is no noise, and the student
asks about everybody. Still a vote hides what one teacher has learnt by heart, and the fewer they
are, the less.
"""

import math

import numpy as np

from auditkit.experiment import study
from experiments.observational.audits import OBSERVATIONAL
from experiments.observational.tables import (
    CATBOOST,
    CENSUS,
    QUERIES,
    SCIKIT,
    SIZE,
    Setting,
    audited_rows,
    pate,
)


@study(
    "obs-pate-teachers",
    paper=[
        {"learner": CATBOOST, "teachers": teachers, "queries": queries}
        | {"size": SIZE, "games": 100, "seed": seed}
        for seed in range(3)
        for teachers, queries in ((1, SIZE), (5, SIZE), (25, SIZE), (1, QUERIES))
    ],
    live=[
        {"learner": SCIKIT, "teachers": teachers, "queries": 5000}
        | {"size": 5000, "games": 20, "seed": 0}
        for teachers in (1, 25)
    ],
    # of two cuts alike rounding on another processor may choose the other: less often with fewer
    reduced=[
        {"learner": SCIKIT, "teachers": teachers, "queries": 2000}
        | {"size": 2000, "games": 5, "seed": 0}
        for teachers in (1, 5)
    ],
    tolerance=1e-3,
)
def taught_table(
    learner: str,
    teachers: int,
    queries: int,
    size: int,
    games: int,
    seed: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train a student on the votes of so many teachers, without noise, and audit it."""
    setting = Setting(CENSUS, learner, size, seed)
    model = pate(OBSERVATIONAL, setting, math.inf, teachers, queries, rng)
    return audited_rows(OBSERVATIONAL, setting, model, games, rng)
