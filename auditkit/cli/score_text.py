"""Scores as text: CSV, JSON and JSON Lines become named columns.

What can be read in one way only is read so and noted. What is bad is told by its row and its line.
"""

import codecs
import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

import numpy as np

from auditkit._types import Floats
from auditkit.cli.score_columns import (
    BARE,
    FLAGS,
    LEFT_OUT,
    Asked,
    Column,
    Layout,
    Read,
    hashed,
    layout_of,
    listed,
    same_length,
    two_kinds,
)
from auditkit.cli.score_containers import Source
from auditkit.cli.score_limits import not_too_many
from auditkit.cli.terminal import quoted

CHUNK = 200_000  # rows that are text at one time
MOST_JSON = 500_000_000  # bytes of one document, which is read at once
THOUSANDS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")  # in Europe a point may part them
COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*")

Chunks: TypeAlias = Iterator[tuple[Mapping[int, Column], Sequence[int] | None]]  # and their lines


def from_csv(source: Source, asked: Asked) -> Read:
    """Return the columns of a CSV file."""
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
        raise ValueError(
            f"{name} must have its column names in one line, got {quoted(first.strip())}"
        )
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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# JSON and JSON Lines


def from_json(source: Source, asked: Asked) -> Read:
    """Return the columns of JSON Lines, or of one JSON document."""
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
    columns, notes = two_kinds(texts)
    layout = layout_of(list(columns), asked.wishes)
    used = {place: columns[layout.headers[place]] for place in layout.places.values()}
    same_length({layout.headers[place]: len(column) for place, column in used.items()})
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
