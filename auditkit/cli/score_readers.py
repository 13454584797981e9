"""From the bytes of a file to named columns: text, JSON, NumPy and Parquet, plain or in gzip.

What a file is follows from its first bytes, and not from its name. Sizes are looked at before
memory is taken. What can be read in one way only is read so and noted, and all else is refused.
"""

import codecs
import csv
import gzip
import hashlib
import importlib
import io
import itertools
import json
import re
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from auditkit._types import Floats
from auditkit.cli.score_columns import FEATURE, FLAGS, Layout, hashed, known_as, layout_of, listed
from auditkit.cli.terminal import printable, quoted

CHUNK = 200_000  # rows that are text at one time
MOST_ROWS = 10_000_000  # that fit into 1 GB with room for all that is computed of them
MOST_NUMBERS = 300_000_000  # in all columns that are used, 2.4 GB
MOST_UNPACKED = 8_000_000_000  # bytes on the disk, of what comes packed or through a pipe
MOST_JSON = 500_000_000  # bytes of one document, which is read at once
STDIN = Path("-")
LEFT_OUT = "Leave such rows out only if what emptied them cannot depend on membership"
BARE = "score"  # what a column without a name is called, in a file of scores of one kind
THOUSANDS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")  # in Europe a point may part them
COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*")
# scores of members and of others, as jax_privacy and PrivacyGuard call them, and others
PAIRS = (
    ("in_canary_scores", "out_canary_scores"),
    ("score_train", "score_test"),
    ("in_scores", "out_scores"),
    ("member_scores", "non_member_scores"),
    ("member_scores", "nonmember_scores"),
    ("train_scores", "test_scores"),
)
OTHER_KINDS = (
    (b"ARROW1", "a Feather file: save it as Parquet"),
    (b"\x89HDF", "an HDF5 file: save it as NPZ, Parquet or CSV"),
    (b"\x80", "a pickle, which could run code when it is read: save it as NPZ or CSV"),
    (b"BZh", "packed by bzip2: unpack it first, or pack it by gzip"),
    (b"\xfd7zXZ", "packed by xz: unpack it first, or pack it by gzip"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd: unpack it first, or pack it by gzip"),
    (b"SQLite", "a database: save a table of it as CSV"),
)
ARCHIVES = (
    ("xl/", "a spreadsheet: save it as CSV"),
    ("data.pkl", "a file of torch's: save scores by numpy.savez, or as CSV"),
    ("content.xml", "a spreadsheet: save it as CSV"),
)
MANY_MODELS = (
    "holds the scores of several models, one after the other, as ML Privacy Meter averages them. "
    "They are no rows of one run: audit each attack_result_N.npz by itself"
)

Column: TypeAlias = NDArray[Any]
Chunks: TypeAlias = Iterator[tuple[Mapping[int, Column], Sequence[int] | None]]  # and their lines
Read: TypeAlias = tuple[Layout, dict[str, Any], tuple[str, ...]]  # columns by role, and notes


@dataclass(frozen=True)
class Asked:
    """How a file is to be read.

    Attributes
    ----------
    wishes : mapping
        Columns by the role that they are to serve as.
    decimal : str or None
        What stands before the fraction of a number, where somebody said so.
    bare : bool
        Whether numbers without a name may be the scores, as in a file of one kind.
    """

    wishes: Mapping[str, list[str]]
    decimal: str | None = None
    bare: bool = False


@dataclass(frozen=True)
class Source:
    """An open file: what it is called, its bytes, unpacked, and the hash of what was given."""

    name: str
    file: IO[bytes]
    sha256: str


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open a file, a pipe or standard input; what is packed or flows goes to the disk first."""
    name = "standard input" if path == STDIN else path.name
    with ExitStack() as stack:
        # standard input is not ours to close
        file = sys.stdin.buffer if path == STDIN else stack.enter_context(path.open("rb"))
        if not file.seekable():
            file = _copied(file, stack.enter_context(tempfile.TemporaryFile()), name)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        file.seek(0)
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if packed:
            unpacked = stack.enter_context(tempfile.TemporaryFile())
            try:
                file = _copied(gzip.GzipFile(fileobj=file), unpacked, name)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(f"{name} is no gzip file that can be read: {error}") from None
            file.seek(0)
        yield Source(name, file, digest)


def _copied(source: Any, target: IO[bytes], name: str) -> Any:
    """Copy what flows to the disk, as long as it is not more than belongs there."""
    while block := source.read(1 << 20):
        target.write(block)
        if target.tell() > MOST_UNPACKED:
            raise ValueError(
                f"{name} holds more than {MOST_UNPACKED / 1e9:g} GB once it is unpacked, which is "
                "more than this command takes"
            )
    return target


def read(source: Source, asked: Asked) -> Read:
    """Return the columns of a file, by what its first bytes say that it is."""
    start = source.file.read(64)
    source.file.seek(0)
    if not start:
        raise ValueError(f"{source.name} is empty")
    for magic, what in OTHER_KINDS:
        if start.startswith(magic):
            raise ValueError(f"{source.name} is {what}")
    if start.startswith(b"PAR1"):
        return _from_parquet(source, asked)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # the second is an archive of nothing
        return _from_npz(source, asked)
    if start.startswith(b"\x93NUMPY"):
        return _from_npy(source, asked)
    if start.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"["):
        return _from_json(source, asked)
    return _from_csv(source, asked)


# CSV


def _from_csv(source: Source, asked: Asked) -> Read:
    file = io.TextIOWrapper(source.file, _encoding(source.file), newline="")
    try:
        layout, delimiter, before = _head(file, source.name, asked)
        start = file.tell()
        widths = Counter(map(len, csv.reader(file, delimiter=delimiter, strict=True)))
        not_too_many(widths[len(layout.headers)], len(layout.places))
        numbers = _Numbers(asked.decimal, delimiter == ";")
        file.seek(start)
        if set(widths) <= {0, len(layout.headers)}:
            with suppress(ValueError):
                return _gathered(_by_pandas(file, layout, delimiter), layout, numbers)
        # of what is not plain pandas cannot say the line
        file.seek(start)
        return _gathered(_row_by_row(file, layout, delimiter, before), layout, numbers)
    except UnicodeDecodeError:
        raise ValueError(
            f"{source.name} must be text in UTF-8, or Parquet, NPZ, NPY, or any of them in gzip"
        ) from None
    except csv.Error as error:
        raise ValueError(f"{source.name} is no CSV file: {error}") from None
    finally:
        with suppress(ValueError):
            file.detach()  # whoever opened the file closes it


def _encoding(file: IO[bytes]) -> str:
    start = file.read(4)
    file.seek(0)
    wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if wide else "utf-8-sig"


def _head(file: IO[str], name: str, asked: Asked) -> tuple[Layout, str, int]:
    """Return what the columns are, what stands between them, and how many lines that took."""
    place, first, before = file.tell(), file.readline(), 1
    # a spreadsheet may say on a line of its own how it separates columns
    while first and (not first.strip() or first.strip('"\r\n').casefold().startswith("sep=")):
        place, first, before = file.tell(), file.readline(), before + 1
    if not first:
        raise ValueError(f"{name} is empty")
    if asked.bare and _is_number(first):  # a column of numbers, as numpy.savetxt writes it
        file.seek(place)
        return layout_of([BARE], asked.wishes), ",", before - 1
    delimiter = max(",;\t", key=first.count)
    if first.count('"') % 2:
        raise ValueError(f"{name} must have its column names in one line, got {quoted(first)}")
    headers = next(csv.reader([first], delimiter=delimiter, strict=True))
    if all(_is_number(header) for header in headers):
        shown = ", ".join(map(quoted, headers[:4]))
        raise ValueError(f"{name} must begin with the names of its columns, got {shown}")
    return layout_of(headers, asked.wishes), delimiter, before


def _by_pandas(file: IO[str], layout: Layout, delimiter: str) -> Chunks:
    import pandas as pd

    with pd.read_csv(
        file,
        sep=delimiter,
        header=None,
        names=range(len(layout.headers)),
        usecols=sorted(set(layout.places.values())),
        dtype=object,
        na_filter=False,
        index_col=False,
        chunksize=CHUNK,
    ) as chunks:
        for chunk in chunks:
            yield {place: chunk[place].to_numpy() for place in chunk}, chunk.index


def _row_by_row(file: IO[str], layout: Layout, delimiter: str, before: int) -> Chunks:
    """Yield columns of text with the lines that their rows end on, rows of nothing left out."""
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    rows = (row for row in reader if any(map(str.strip, row)))
    width, kept = len(layout.headers), sorted(set(layout.places.values()))
    for first in itertools.count(1, CHUNK):
        chunk, lines = [], []
        for number, row in enumerate(itertools.islice(rows, CHUNK), start=first):
            lines.append(before + reader.line_num)
            if len(row) != width:
                raise ValueError(
                    f"row {number} has {len(row)} fields where the column names are {width} (line "
                    f"{lines[-1]} of the file)"
                )
            chunk.append([row[place] for place in kept])
        if not chunk:
            return
        columns = np.array(chunk, dtype=object).T
        yield dict(zip(kept, columns, strict=True)), lines


def _gathered(chunks: Chunks, layout: Layout, numbers: "_Numbers") -> Read:
    """Turn chunks of text into columns: numbers, words, and hashes of ids."""
    seen, parts = 0, {role: [np.empty(0, float)] for role in layout.places}
    for columns, lines in chunks:
        rows = len(next(iter(columns.values())))
        where = _Where(seen, rows, lines)
        for role, place in layout.places.items():
            texts = columns[place]
            if role == "id" or role in FLAGS:
                empty = [row for row, text in enumerate(texts) if not text.strip()]
                if empty:
                    raise ValueError(f"{role} must not be empty, got {where.nothing(empty)}")
                parts[role].append(hashed(texts) if role == "id" else texts)
            else:
                parts[role].append(numbers.of(texts, layout.headers[place], where))
        seen += rows
        not_too_many(seen, len(layout.places))
    # what is first has no row, and is there for a file without any
    found = {role: np.concatenate(part[1:] or part) for role, part in parts.items()}
    return layout, found, numbers.notes


@dataclass(frozen=True)
class _Where:
    """Where the rows of a chunk are: how many came before, and the line that each ends on."""

    before: int
    rows: int
    lines: Sequence[int] | None

    def of(self, places: Sequence[int]) -> str:
        """Return where the first of some rows is, and how many more there are."""
        row, last = self.before + places[0] + 1, self.before + self.rows
        told = [] if self.lines is None else [f"line {self.lines[places[0]]} of the file"]
        if len(places) > 1:
            told.append(f"{len(places)} such in rows {self.before + 1} to {last}")
        return f"row {row}" + (f" ({'; '.join(told)})" if told else "")

    def nothing(self, places: Sequence[int]) -> str:
        """Return where nothing is, and what may be done about it."""
        return f"nothing in {self.of(places)}. {LEFT_OUT}"


class _Numbers:
    """Reads numbers; what a comma or a point stands for in Europe is asked about, not guessed."""

    def __init__(self, decimal: str | None, european: bool) -> None:
        self.decimal, self.european = decimal, european
        self._read: set[str] = set()

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said of the columns that were read."""
        return tuple(
            f"{name} was read with a comma for the decimal point." for name in sorted(self._read)
        )

    def of(self, column: Column, header: str, where: _Where) -> Floats:
        """Return a column of text as numbers."""
        plain = column
        if self.decimal == ",":
            plain = np.array([_with_point(text) for text in column], dtype=object)
        try:
            found: Floats = plain.astype(np.float64)
        except ValueError:
            raise self._refused(column, plain, header, where) from None
        if self.decimal == ",":
            self._read.add(quoted(header))
        elif self.decimal is None and self.european and where.before == 0:
            self._ask(column, header)
        return found

    def _ask(self, column: Column, header: str) -> None:
        points = [text.strip() for text in column if "." in text]
        if points and all(map(THOUSANDS.fullmatch, points)):
            raise ValueError(
                f"{quoted(header)} has numbers such as {quoted(points[0])} between semicolons, "
                "where a point may part thousands: say --decimal . if it stands before the "
                "fraction, and else write them without it"
            )

    def _refused(self, column: Column, plain: Column, header: str, where: _Where) -> ValueError:
        bad = [place for place, text in enumerate(plain) if not _is_number(text)]
        empty = [place for place in bad if not column[place].strip()]
        told = f"{quoted(header)} must hold numbers, got"
        if empty:
            return ValueError(f"{told} {where.nothing(empty)}")
        text, hint = column[bad[0]], ""
        if self.decimal == "," and "." in text:
            hint = ": with --decimal , no number may have a point"
        elif self.decimal is None and COMMA.fullmatch(text):
            hint = ": if its comma is the decimal point, say --decimal ,"
        return ValueError(f"{told} {quoted(text)} in {where.of(bad)}{hint}")


def _with_point(text: str) -> str:
    """Return a number with a decimal comma as Python reads it; what has a point is none."""
    return "." + text if "." in text else text.replace(",", ".", 1)


# JSON and JSON Lines


def _from_json(source: Source, asked: Asked) -> Read:
    file = io.TextIOWrapper(source.file, "utf-8-sig")
    try:
        first = _first_record(file)
        file.seek(0)
        if first is not None:
            layout = layout_of(list(first), asked.wishes)
            return _gathered(
                _chunks(_lines(file, source.name), layout), layout, _Numbers(".", False)
            )
        size = file.buffer.seek(0, io.SEEK_END)
        if size > MOST_JSON:
            raise ValueError(
                f"{source.name} is one JSON document of more than {MOST_JSON / 1e6:g} MB, which "
                "would be read at once: write JSON Lines, an object a line"
            )
        file.seek(0)
        return _from_document(_parsed(file.read(), source.name), source.name, asked)
    except UnicodeDecodeError:
        raise ValueError(f"{source.name} must be text in UTF-8") from None
    finally:
        with suppress(ValueError):
            file.detach()


def _first_record(file: IO[str]) -> Mapping[str, Any] | None:
    """Return the object in the first line of JSON Lines, None for one document of many lines."""
    line = file.readline(MOST_JSON)
    while line and not line.strip():
        line = file.readline(MOST_JSON)
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    flat = isinstance(told, dict) and not any(isinstance(v, list | dict) for v in told.values())
    return told if flat and told else None


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no JSON that can be read: {error}") from None


def _lines(file: IO[str], name: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield number, _parsed(line, f"line {number} of {name}")


def _chunks(rows: Iterable[tuple[int | None, Any]], layout: Layout) -> Chunks:
    """Yield columns of text from objects, with their lines if they have any."""
    kept = sorted(set(layout.places.values()))
    rows = iter(rows)
    for first in itertools.count(1, CHUNK):
        chunk, lines = [], []
        for row, (line, record) in enumerate(itertools.islice(rows, CHUNK), start=first):
            where = f"row {row}" if line is None else f"line {line}"
            if not isinstance(record, dict):
                raise ValueError(f"{where} must be an object with names, got {_short(record)}")
            missing = [layout.headers[p] for p in kept if layout.headers[p] not in record]
            if missing:
                raise ValueError(f"{where} has no {quoted(missing[0])}; it has {listed(record)}")
            chunk.append([_text(record[layout.headers[place]]) for place in kept])
            lines.append(line)
        if not chunk:
            return
        columns = np.array(chunk, dtype=object).T
        yield dict(zip(kept, columns, strict=True)), None if None in lines else lines  # type: ignore[misc]


def _from_document(told: Any, name: str, asked: Asked) -> Read:
    """Read rows of objects, or an object of columns, as pandas writes them in several ways."""
    if isinstance(told, list) and told and isinstance(told[0], dict):
        layout = layout_of(list(told[0]), asked.wishes)
        rows = ((None, record) for record in told)
        return _gathered(_chunks(rows, layout), layout, _Numbers(".", False))
    if isinstance(told, list) and asked.bare:
        told = {BARE: told}
    if isinstance(told, dict) and told and all(isinstance(each, dict) for each in told.values()):
        keys = [list(each) for each in told.values()]  # pandas' own way: rows by their index
        if any(each != keys[0] for each in keys):
            raise ValueError(f"the columns of {name} must have the same rows in the same order")
        told = {header: list(each.values()) for header, each in told.items()}
    if not isinstance(told, dict) or not any(isinstance(each, list) for each in told.values()):
        raise ValueError(
            f"{name} must hold an object for each row, in a list or one a line, or lists by the "
            f"names of columns, got {_short(told)}"
        )
    texts = {
        header: np.array([_text(item) for item in each], dtype=object)
        for header, each in told.items()
        if isinstance(each, list)
    }
    columns, notes = _two_kinds(texts)
    layout = layout_of(list(columns), asked.wishes)
    used = {place: columns[layout.headers[place]] for place in layout.places.values()}
    _same_length({layout.headers[place]: len(column) for place, column in used.items()})
    chunks: Chunks = iter([(used, None)] if len(next(iter(used.values()))) else [])
    layout, found, _ = _gathered(chunks, layout, _Numbers(".", False))
    return layout, found, notes


def _text(value: Any) -> str:
    """Return a value of JSON as a file of text would have it, nothing for null."""
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def _short(value: Any) -> str:
    return quoted(repr(value)[:70])


# Parquet and NumPy


def _from_parquet(source: Source, asked: Asked) -> Read:
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


def _from_npz(source: Source, asked: Asked) -> Read:
    with _numpy_errors(source.name, "NPZ"), ZipFile(source.file) as archive:
        names = archive.namelist()
        kinds = {name.removesuffix(".npy"): _kind(archive, name) for name in names}
    for inside, what in ARCHIVES:
        if any(inside in name for name in names):
            raise ValueError(f"{source.name} is {what}")
    pair = _pair(kinds)
    if pair is not None:
        columns, notes = _two_kinds(_loaded(source, {name: kinds[name] for name in pair}))
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


def _from_npy(source: Source, asked: Asked) -> Read:
    with _numpy_errors(source.name, "NPY"):
        shape, kind = _header(source.file)
    if kind.names is None and not (asked.bare and len(shape) == 1):
        raise ValueError(
            f"{source.name} is one array without the names of columns. Where it holds the scores "
            "of members, name those of the others: --others FILE; else save arrays by their names, "
            "as in numpy.savez('scores.npz', score=..., member=...)"
        )
    _fits(source.name, shape, kind)
    with _numpy_errors(source.name, "NPY"):
        source.file.seek(0)
        array = np.load(source.file, allow_pickle=False)
    columns = {BARE: array} if kind.names is None else {name: array[name] for name in kind.names}
    return _from_arrays(layout_of(list(columns), asked.wishes), columns.__getitem__)


@contextmanager
def _numpy_errors(name: str, format_: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, EOFError, BadZipFile, SyntaxError) as error:
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
        _fits(name, shape, kind)
    with _numpy_errors(source.name, "NPZ"):
        source.file.seek(0)
        with np.load(source.file, allow_pickle=False) as file:
            return {name: np.asarray(file[name]) for name in kinds}


def _one_dimension(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 1:
        raise ValueError(f"{quoted(name)} must have 1 dimension, got shape {shape}")


def _fits(name: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    not_too_many(shape[0] if shape else 0)
    size = int(np.prod(shape, dtype=object)) * kind.itemsize
    if size > 8 * MOST_NUMBERS:
        raise ValueError(
            f"{quoted(name)} would take {size / 1e9:.3g} GB, which is more than this command takes"
        )


def _pair(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the names of the scores of members and of others, where scores come in two arrays."""
    known = {known_as(name): name for name in names}
    if {"score", "scores"} & set(known):
        return None
    for inside, outside in PAIRS:
        if inside in known and outside in known:
            return known[inside], known[outside]
    return None


def _two_kinds(columns: Mapping[str, Column]) -> tuple[Mapping[str, Column], tuple[str, ...]]:
    """Join the scores of members and of others, where they come in two arrays."""
    pair = _pair(columns)
    if pair is None:
        return columns, ()
    inside, outside = (columns[name] for name in pair)
    note = f"{quoted(pair[0])} was read as the scores of members, {quoted(pair[1])} of the others."
    member = np.repeat(["1", "0"], [inside.size, outside.size])
    return {"score": np.concatenate((inside, outside)), "member": member}, (note,)


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
    _same_length(lengths)
    return layout, found, notes


def _same_length(lengths: Mapping[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{quoted(name)} has {size}" for name, size in lengths.items())
        raise ValueError(f"columns must have the same length: {sizes}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
