"""What every table goes through before it is data: its columns, its numbers, its labels."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditkit._types import Floats, Ints


def read_csv(
    path: Path,
    names: Sequence[str] | None = None,
    *,
    kinds: Mapping[str, Any] | None = None,
    missing: Sequence[str] = (),
    **options: Any,
) -> Any:
    """Read a table; a column is text unless `kinds` says what else it is, and nothing is guessed.

    With `names` the file has no header row, and must have as many columns as there are names. In
    the columns listed in `missing` an empty field is NaN; nothing else ever is.
    """
    import pandas as pd

    options |= {"header": None if names else 0, "keep_default_na": False}
    try:
        first = pd.read_csv(path, dtype=str, na_filter=False, **{**options, "nrows": 1})
        columns = list(names or first.columns)
        if len(columns) != first.shape[1]:
            raise ValueError(
                f"{path.name} must have {len(columns)} columns and no header row, got "
                f"{first.shape[1]} columns"
            )
        options |= {"names": columns, "na_filter": bool(missing)}
        if missing:
            options["na_values"] = {name: [""] for name in missing}
        kinds = {name: (kinds or {}).get(name, str) for name in columns}
        try:
            return pd.read_csv(path, dtype=kinds, **options)
        except ValueError as error:
            if isinstance(error, pd.errors.ParserError | UnicodeDecodeError):
                raise
            _blame(path, kinds, missing, options)
            raise
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read as a table: {error}") from None


def _blame(
    path: Path, kinds: Mapping[str, Any], missing: Sequence[str], options: Mapping[str, Any]
) -> None:
    """Raise a ValueError that names the first field which is not the number it should be."""
    import pandas as pd

    options = {**options, "na_filter": False, "chunksize": 10_000}
    numeric = [name for name, kind in kinds.items() if kind is not str]
    with pd.read_csv(path, dtype=str, **options) as chunks:
        for chunk, name in ((chunk, name) for chunk in chunks for name in numeric):
            values = pd.to_numeric(chunk[name], errors="coerce").to_numpy(np.float64)
            wrong = ~np.isfinite(values)
            if kinds[name] is not float:
                wrong |= ~((values >= 0) & (values <= 255) & (values == np.floor(values)))
            if name in missing:
                wrong &= (chunk[name] != "").to_numpy()
            if wrong.any():
                row = int(chunk.index[wrong][0]) + 1
                _refuse(name, path, chunk[name][wrong].iloc[0], row)


def _refuse(name: str, path: Path, value: Any, row: int) -> None:
    raise ValueError(
        f"column {name!r} of {path.name} must hold finite numbers, got {value!r} in row {row}"
    )


def need(frame: Any, columns: Sequence[str], path: Path) -> None:
    """Raise a ValueError unless the table has the columns."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        has = ", ".join(map(str, frame.columns[:12])) + (", …" if len(frame.columns) > 12 else "")
        raise ValueError(
            f"{path.name} lacks the column(s) {', '.join(map(repr, missing))}; it has {has}"
        )


def numbers(frame: Any, path: Path, *, missing: bool = False) -> Floats:
    """Return columns that were read as numbers, all of them finite unless some may be missing."""
    array = np.empty(frame.shape, np.float64)
    for place, name in enumerate(frame.columns):
        values = frame[name].to_numpy(np.float64)
        wrong = np.isinf(values) if missing else ~np.isfinite(values)
        if wrong.any():
            _refuse(name, path, float(values[wrong][0]), _row(wrong))
        array[:, place] = values
    return array


def whole_numbers(frame: Any, path: Path) -> Ints:
    """Return columns of codes: whole numbers, none of them negative."""
    array = numbers(frame, path)
    wrong = (array < 0) | (array != np.floor(array))
    if wrong.any():
        row, place = np.argwhere(wrong)[0]
        raise ValueError(
            f"column {frame.columns[place]!r} of {path.name} must hold whole numbers of at least "
            f"0, got {array[row, place]:g} in row {row + 1}"
        )
    return array.astype(np.int64)


def labels(column: Any, codes: Mapping[str, int], path: Path) -> Ints:
    """Return the code of each label."""
    found = column.map(codes)
    wrong = found.isna()
    if wrong.any():
        raise ValueError(
            f"the label in row {_row(wrong)} of {path.name} must be one of "
            f"{', '.join(map(repr, codes))}, got {column[wrong].iloc[0]!r}"
        )
    coded: Ints = found.to_numpy(np.int64)
    return coded


def coded(
    frames: Sequence[Any], features: Sequence[str]
) -> tuple[list[Floats], dict[str, tuple[str, ...]]]:
    """Return the categories of tables as codes that are the same in each, and their names."""
    import pandas as pd

    names = {}
    arrays = [np.empty((len(frame), len(features))) for frame in frames]
    for place, feature in enumerate(features):
        found = [pd.factorize(frame[feature]) for frame in frames]
        names[feature] = tuple(sorted({str(name) for _, levels in found for name in levels}))
        code = {name: number for number, name in enumerate(names[feature])}
        for array, (codes, levels) in zip(arrays, found, strict=True):
            array[:, place] = np.array([code[str(name)] for name in levels])[codes]
    return arrays, names


def texts(values: Sequence[str] | Any) -> NDArray[np.object_]:
    """Return an array of Python strings; fixed-width ones would need gigabytes for long texts."""
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def in_range(values: NDArray[Any], classes: int, path: Path) -> Ints:
    """Return labels that are codes already, from 0."""
    coded = values.astype(np.int64)
    wrong = (coded < 0) | (coded >= classes)
    if wrong.any():
        raise ValueError(
            f"the label of example {_row(wrong)} of {path.name} must lie in 0 to {classes - 1}, "
            f"got {coded[wrong][0]}"
        )
    return coded


def _row(wrong: Any) -> int:
    """Return the number of the first row that is wrong, from 1, the header not counted."""
    return int(np.flatnonzero(np.asarray(wrong))[0]) + 1
