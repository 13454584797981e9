"""Random numbers that follow from the data, so that no seed of a user's can bring them about.

Ties, splits and thinning need chance that knows nothing of membership. A seed cannot give it: who
draws members by ``default_rng(0)`` and splits by ``default_rng(0)`` splits by membership. Nor can
the order of the rows, which a file may have sorted. So rows are first put into an order of their
own, by what they hold, and the numbers then come from a SHA-256 of them.

Why a bound stays valid: take the hash for a function drawn at random, as cryptography does. Then to
each table belong numbers of its own, uniform and independent of everything in it, as if drawn
afresh. The share of tables whose bound exceeds the truth is that of fresh numbers, where there are
many tables; where there are a few, those few decide, and whoever draws has to see to that. The same
table, in whatever order its rows stand, gets the same numbers.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit._types import Randomness


def canonical(first: NDArray[Any], *others: NDArray[Any]) -> NDArray[np.intp]:
    """Return an order of the rows that depends on what they hold, and not on how they stand."""
    order = np.argsort(first)
    ordered = first[order]
    if (ordered[1:] > ordered[:-1]).all():  # which is quicker than to sort by every column
        return order
    return np.lexsort((*reversed(others), first))


def ranks(ordered: NDArray[Any]) -> NDArray[np.intp]:
    """Return which of the distinct values each of some ordered ones is, counted from 0.

    That is what a key takes of a score: another unit, or another scale that keeps the order, is no
    other table, and cannot be tried for its luck.
    """
    return np.cumsum(np.r_[False, ordered[1:] != ordered[:-1]])


def few(values: NDArray[Any]) -> bool:
    """Say whether values tie so much that hardly any tables of memberships could have them.

    Groups of n equal values hold 0 to n members. Below 2,500 tables in all, what is drawn from them
    has been seen to exceed a level of 5% in 7% and more of a setting's audits, or in none.
    """
    _, sizes = np.unique(values, return_counts=True)
    return bool(sizes.max() > 1 and np.log1p(sizes).sum() < np.log(2_500.0))


def key_of(*data: ArrayLike, rng: Randomness = None) -> str:
    """Return the key of some arrays, in hexadecimal, with what the caller's `rng` adds to it."""
    digest = hashlib.sha256()
    for values in data:
        array = np.asarray(values)
        plain = array + 0.0 if array.dtype.kind == "f" else array  # -0.0 equals 0.0
        digest.update(f"{plain.dtype.str} {plain.shape} ".encode())
        digest.update(np.ascontiguousarray(plain).data)
    if isinstance(rng, np.random.Generator):
        digest.update(rng.bytes(32))
    elif rng is not None:
        digest.update(f"seed {int(rng)}".encode())
    return digest.hexdigest()


def generator(key: str, use: str) -> np.random.Generator:
    """Return the source of randomness that a key has for one use."""
    return np.random.default_rng(int(hashlib.sha256(f"{use} {key}".encode()).hexdigest(), 16))
