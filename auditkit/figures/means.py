"""Means over independent repetitions, how sure they are, and a compact table of them.

**An error bar means one thing in the whole book: the 95% t-interval of the mean over independent
repetitions**, such as trainings or deals of data.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame


def spread(
    frame: "DataFrame", by: str | Sequence[str], value: str, over: str | None = "seed"
) -> "DataFrame":
    """Return the mean of a column over independent repetitions, and how sure it is.

    Within a repetition everything else is averaged first: ten games with one training are one
    repetition, not ten.

    Parameters
    ----------
    frame : DataFrame
        One row a result.
    by : str or sequence of str
        The columns that tell settings apart.
    value : str
        The column to average.
    over : str, optional
        The column that tells repetitions apart. None where there are none.

    Returns
    -------
    DataFrame
        A row for each setting, in their order of appearance: the columns of `by`, ``mean``,
        ``half_width`` of the 95% t-interval of the mean (NaN with a single repetition) and
        ``repetitions``.

    References
    ----------
    `scipy.stats.t`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"epsilon": [1, 1, 2, 2], "seed": [0, 1, 0, 1], "bound": [1, 3, 4, 4]})
    >>> spread(rows, "epsilon", "bound")
       epsilon  mean  half_width  repetitions
    0        1   2.0   12.706205            2
    1        2   4.0    0.000000            2
    """
    from scipy.stats import t

    keys = [by] if isinstance(by, str) else list(by)
    for name in dict.fromkeys([*keys, value, *([over] if over else [])]):
        if name not in frame:
            raise ValueError(f"frame has no column {name!r}; it has {', '.join(frame.columns)}")
    if over in keys:
        raise ValueError(f"over must be none of the columns of by, got {over!r}")
    units = [*keys, *([over] if over else [])]
    numbers = frame.assign(**{value: frame[value].astype("float64")})
    # a column of one value stands for no setting at all
    means = numbers.assign(_all=0).groupby(["_all", *units], sort=False, dropna=False)[value].mean()
    groups = means.reset_index().groupby(["_all", *keys], sort=False, dropna=False)[value]
    found = groups.agg(mean="mean", deviation="std", repetitions="count").reset_index()
    count = found["repetitions"]
    half = t.ppf(0.975, np.maximum(count - 1, 1)) * found["deviation"] / np.sqrt(count)
    found = found.assign(half_width=half)
    found.attrs = dict(frame.attrs)
    return found[[*keys, "mean", "half_width", "repetitions"]]


def table(
    frame: "DataFrame",
    rows: str | Sequence[str],
    columns: str | Sequence[str],
    value: str | Sequence[str],
    *,
    over: str | None = "seed",
    digits: int = 2,
) -> "DataFrame":
    """Return a compact table of means, each with its 95% interval.

    Parameters
    ----------
    frame : DataFrame
        One row a result.
    rows, columns : str or sequence of str
        The columns whose values go down and across; `columns` may be empty.
    value : str or sequence of str
        The columns to average; several of them stand side by side.
    over : str, optional
        The column that tells repetitions apart, as in `spread`.
    digits : int
        After the point.

    Returns
    -------
    DataFrame
        Texts such as ``"1.20 ± 0.13"``, in the order of appearance.

    References
    ----------
    `spread` says what stands behind ±.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"epsilon": [1, 1], "seed": [0, 1], "bound": [1.0, 1.1]})
    >>> table(rows, "epsilon", [], "bound")
       epsilon        bound
    0        1  1.05 ± 0.64
    """
    import pandas as pd

    down = [rows] if isinstance(rows, str) else list(rows)
    across = [columns] if isinstance(columns, str) else list(columns)
    values = [value] if isinstance(value, str) else list(value)
    parts = []
    for one in values:
        found = spread(frame, [*down, *across], one, over)
        pairs = zip(found["mean"], found["half_width"], strict=True)
        told = found.assign(_text=[_told(mean, half, digits) for mean, half in pairs])
        heads = [
            _heading(across, row, one if len(values) > 1 else "") for row in _rows(told, across)
        ]
        told = told.assign(_head=heads or one)
        parts.append(
            told.pivot(index=down, columns="_head", values="_text")[told["_head"].unique()]
        )
    order = frame[down].drop_duplicates()
    whole = order.merge(pd.concat(parts, axis=1).reset_index(), on=down, how="left")
    whole.attrs = dict(frame.attrs)
    return whole


def _told(mean: float, half: float, digits: int) -> str:
    if math.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" + ("" if math.isnan(half) else f" ± {half:.{digits}f}")


def _rows(frame: "DataFrame", names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(frame[list(names)].itertuples(index=False, name=None)) if names else []


def _heading(names: Sequence[str], values: Sequence[Any], value: str) -> str:
    """Return what stands above a column: numbers with their names, words alone."""
    said = [
        f"{name} = {one:g}" if is_number(one) else str(one)
        for name, one in zip(names, values, strict=True)
    ]
    return ", ".join([*([value] if value else []), *said])


def is_number(value: Any) -> bool:
    """Say whether a value is a number and no truth value."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)
