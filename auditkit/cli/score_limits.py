"""How large a table of scores may be: asked before any memory is taken."""

from typing import Any

import numpy as np

from auditkit.cli.terminal import quoted

MOST_ROWS = 10_000_000  # that fit into 1 GB with room for all that is computed of them
MOST_NUMBERS = 300_000_000  # in all columns that are used, 2.4 GB


def not_too_many(rows: int, columns: int = 1) -> None:
    """Refuse a table that would take more memory than a small machine has."""
    if rows > MOST_ROWS:
        raise ValueError(
            f"more than {MOST_ROWS:,} rows are more than this command takes. Draw so many of them "
            "by chance, whatever their scores and membership: more would hardly raise a bound"
        )
    if rows * columns > MOST_NUMBERS:
        raise ValueError(
            f"{rows:,} rows of {columns} columns are more numbers than the {MOST_NUMBERS:,} that "
            "this command takes. Draw fewer rows by chance, or leave features out"
        )


def fits(name: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    """Refuse an array that would take more memory, by its shape and type."""
    not_too_many(shape[0] if shape else 0)
    size = int(np.prod(shape, dtype=object)) * kind.itemsize
    if size > 8 * MOST_NUMBERS:
        raise ValueError(
            f"{quoted(name)} would take {size / 1e9:.3g} GB, which is more than this command takes"
        )
