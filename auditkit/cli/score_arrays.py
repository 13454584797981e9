"""Scores as arrays: Parquet, NPZ and NPY become named columns, once it is known that they fit."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, TypeAlias
from zipfile import ZipFile

import numpy as np

from auditkit.cli.score_columns import (
    BARE,
    FEATURE,
    FLAGS,
    LEFT_OUT,
    Asked,
    Column,
    Layout,
    Read,
    hashed,
    known_as,
    layout_of,
    pair_of,
    same_length,
    two_kinds,
)
from auditkit.cli.score_containers import DAMAGED, Source
from auditkit.cli.score_limits import fits, not_too_many
from auditkit.cli.terminal import printable, quoted

ARCHIVES = (
    ("xl/", "a spreadsheet: save it as CSV"),
    ("data.pkl", "a file of torch's: save scores by numpy.savez, or as CSV"),
    ("content.xml", "a spreadsheet: save it as CSV"),
)
MANY_MODELS = (
    "holds the scores of several models, one after the other, as ML Privacy Meter averages them. "
    "They are no rows of one run: audit each attack_result_N.npz by itself"
)


def from_parquet(source: Source, asked: Asked) -> Read:
    """Return the columns of a Parquet file."""
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError(
            f"reading {source.name} takes pyarrow: pip install pyarrow, or save it as CSV or NPZ"
        ) from None
    with _parquet_errors(source.name):
        file = parquet.ParquetFile(source.file)
        headers = file.schema_arrow.names
    layout = layout_of(headers, asked.wishes)
    wanted = {headers[place] for place in layout.places.values()}
    for name in wanted:
        if headers.count(name) > 1:  # Parquet reads by name alone
            raise ValueError(f"two columns are called {quoted(name)}; give one another name")
    not_too_many(file.metadata.num_rows, len(wanted))
    with _parquet_errors(source.name):
        read = file.read(columns=list(wanted))

    def column(name: str) -> Column:
        found = read.column(name)
        if found.null_count:
            empty = int(np.flatnonzero(found.is_null().to_numpy())[0]) + 1
            raise ValueError(
                f"{quoted(name)} must not be empty, got nothing in row {empty} "
                f"({found.null_count} such in all). {LEFT_OUT}"
            )
        if str(found.type).startswith("decimal"):  # exact in the file, a float in the audit
            found = found.cast("float64")
        values: Column = found.to_numpy()
        return values

    return _from_arrays(layout, column)


@contextmanager
def _parquet_errors(name: str) -> Iterator[None]:
    """Turn what pyarrow raises, of several kinds, into a sentence with the name of the file."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        told = printable((str(error).splitlines() or [type(error).__name__])[0])
        raise ValueError(f"{name} is no Parquet file that can be read: {told}") from None


def from_npz(source: Source, asked: Asked) -> Read:
    """Return the columns of an NPZ file; features may be one array of two dimensions."""
    with _numpy_errors(source.name, "NPZ"), ZipFile(source.file) as archive:
        names = archive.namelist()
        kinds = {name.removesuffix(".npy"): _kind(archive, name) for name in names}
    for inside, what in ARCHIVES:
        if any(inside in name for name in names):
            raise ValueError(f"{source.name} is {what}")
    pair = pair_of(kinds)
    if pair is not None:
        columns, notes = two_kinds(_loaded(source, {name: kinds[name] for name in pair}))
        layout = layout_of(list(columns), asked.wishes)
        return _from_arrays(layout, columns.__getitem__, notes)
    places: dict[str, tuple[str, Any]] = {}
    for name, (shape, _) in kinds.items():
        if len(shape) == 2 and known_as(name).startswith(FEATURE):
            places |= {f"{name}_{column + 1}": (name, (..., column)) for column in range(shape[1])}
        else:
            places[name] = (name, ...)
    layout = layout_of(list(places), asked.wishes)
    used = {places[layout.headers[place]][0] for place in layout.places.values()}
    arrays = _loaded(source, {name: kinds[name] for name in used})
    if {"fpr", "tpr", "memberships"} <= set(kinds):
        _refuse_many_models(source.name, arrays.get("memberships"))
    return _from_arrays(layout, lambda header: arrays[places[header][0]][places[header][1]])


def _refuse_many_models(name: str, members: Column | None) -> None:
    """Refuse what ML Privacy Meter averages; of a pair of models each has what the other lacks."""
    paired = False
    if members is not None and members.ndim == 1 and members.size % 2 == 0:
        first, second = np.split(members.astype(np.float64), 2)
        paired = bool((first + second == 1.0).all())
    if paired or "average" in name:
        raise ValueError(f"{name} {MANY_MODELS}")


def from_npy(source: Source, asked: Asked) -> Read:
    """Return the columns of an array with named fields, or of bare scores."""
    with _numpy_errors(source.name, "NPY"):
        shape, kind = _header(source.file)
    if kind.names is None and not (asked.bare and len(shape) == 1):
        raise ValueError(
            f"{source.name} is one array without the names of columns. Where it holds the scores "
            "of members, name those of the others: --others FILE; else save arrays by their names, "
            "as in numpy.savez('scores.npz', score=..., member=...)"
        )
    fits(source.name, shape, kind)
    with _numpy_errors(source.name, "NPY"):
        source.file.seek(0)
        array = np.load(source.file, allow_pickle=False)
    columns = {BARE: array} if kind.names is None else {name: array[name] for name in kind.names}
    return _from_arrays(layout_of(list(columns), asked.wishes), columns.__getitem__)


@contextmanager
def _numpy_errors(name: str, format_: str) -> Iterator[None]:
    try:
        yield
    except DAMAGED as error:
        raise ValueError(f"{name} is no {format_} file of plain arrays: {error}") from None


Kind: TypeAlias = tuple[tuple[int, ...], np.dtype[Any]]


def _kind(archive: ZipFile, name: str) -> Kind:
    """Return shape and type of an array before it takes any memory."""
    if not name.endswith(".npy"):
        return (), np.dtype(object)  # no array at all
    with archive.open(name) as entry:
        return _header(entry)


def _header(entry: IO[bytes]) -> Kind:
    version = np.lib.format.read_magic(entry)[0]
    read = np.lib.format.read_array_header_1_0
    shape, _, kind = (read if version == 1 else np.lib.format.read_array_header_2_0)(entry)
    return shape, kind


def _loaded(source: Source, kinds: Mapping[str, Kind]) -> dict[str, Column]:
    """Return arrays that memory can hold."""
    for name, (shape, kind) in kinds.items():
        if not (len(shape) == 2 and known_as(name).startswith(FEATURE)):
            _one_dimension(name, shape)
        fits(name, shape, kind)
    with _numpy_errors(source.name, "NPZ"):
        source.file.seek(0)
        with np.load(source.file, allow_pickle=False) as file:
            return {name: np.asarray(file[name]) for name in kinds}


def _one_dimension(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 1:
        raise ValueError(f"{quoted(name)} must have 1 dimension, got shape {shape}")


def _from_arrays(
    layout: Layout, column: Callable[[str], Column], notes: tuple[str, ...] = ()
) -> Read:
    found, lengths = {}, {}
    for role, place in layout.places.items():
        name = layout.headers[place]
        values = column(name)
        _one_dimension(name, values.shape)
        lengths[name], kind = values.size, values.dtype.kind
        if role == "id":
            found[role] = hashed(values.tolist())
        elif role in FLAGS and kind in "biufSUO":
            found[role] = values.astype(str)
        elif role not in FLAGS and kind in "biuf":
            found[role] = values.astype(np.float64)
        else:
            said = f"{role} must hold numbers or words" if role in FLAGS else None
            raise ValueError(f"{said or f'{quoted(name)} must hold numbers'}, got {values.dtype}")
    same_length(lengths)
    return layout, found, notes
