"""Fit MST to tables of codes and draw from it: `python make_mst.py GIVEN.npz MADE.npz`.

It runs in an environment of its own, since dpmm 0.1.9 asks for older packages than the book has:
`pip install dpmm==0.1.9` on Python 3.11. `data/make.py adult_mst` calls it.
"""

import sys

import numpy as np
import pandas as pd
from dpmm.models.mst import MSTGM

EPSILON = 1_000.0  # of the paper, Appendix C.3: in effect without privacy


def made(rows: np.ndarray, levels: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Return so many rows of a table like the one given, whose columns have so many levels."""
    names = [f"column {place}" for place in range(rows.shape[1])]
    domain = dict(zip(names, levels.tolist(), strict=True))
    chance = np.random.RandomState(seed)
    model = MSTGM(epsilon=EPSILON, domain=domain, random_state=chance, n_jobs=1)
    model.fit(pd.DataFrame(rows.astype(np.int64), columns=names))
    return model.generate(number)[names].to_numpy().astype(np.uint8)


def main() -> None:
    """Read what is given, and write what is made of each table."""
    with np.load(sys.argv[1]) as given:
        tables, levels, number = given["tables"], given["levels"], int(given["number"])
    every = [made(table, levels, number, seed) for seed, table in enumerate(tables)]
    np.savez_compressed(sys.argv[2], made=np.stack(every))


main()
