"""Files of scores: CSV, Parquet or NPZ in, named columns out, or a refusal that says which row.

A column is known by its name, whatever its case. Nothing is repaired without a word: what can be
read in one way only is read so and noted, and all else is refused.
"""

import codecs
import csv
import hashlib
import importlib
import io
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from auditkit._types import Bools, Floats
from auditkit.cli.terminal import printable, quoted

CHUNK = 200_000  # rows that are text at one time
MOST_ROWS = 10_000_000  # that fit into 1 GB with room for all that is computed of them
NAMES: Mapping[str, tuple[str, ...]] = {
    "score": ("score", "scores"),
    "member": ("member", "members", "membership", "memberships", "is_member"),
    "id": ("id", "ids"),
    "propensity": ("propensity", "propensities"),
    "baseline": ("baseline_score", "baseline_scores", "baseline"),
    "chosen": ("chosen", "chosen_label", "chosen_label_bit", "chosen_bit"),
    "placebo": ("placebo", "placebo_flag", "is_placebo"),
}
ROLES = (*NAMES, "feature")
FEATURE = ("feature", "propensity_feature")
LEFT_OUT = "Leave such rows out only if what emptied them cannot depend on membership"
LARGEST = 1e150  # squares of larger numbers overflow
NUMBERS = ("score", "propensity", "baseline")
FLAGS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "member": (
        ("0", "1"),
        ("false", "true"),
        ("out", "in"),
        ("no", "yes"),
        ("test", "train"),
        ("non-member", "member"),
        ("nonmember", "member"),
        ("-1", "1"),
    ),
    "chosen": (("0", "1"), ("false", "true"), ("training", "generated")),
    "placebo": (("0", "1"), ("false", "true"), ("no", "yes")),
}

Column: TypeAlias = NDArray[Any]
Chunks: TypeAlias = Iterator[tuple[Mapping[int, Column], Sequence[int]]]  # and their lines


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The columns of a file that an audit can use, and what the file is.

    Attributes
    ----------
    name, sha256 : str
        The file, and the hash of its bytes.
    headers : tuple of str
        All columns of the file, as they are written there.
    used : mapping
        Which column serves as what.
    notes : tuple of str
        What was read in a way that has to be said.
    """

    name: str
    sha256: str
    headers: tuple[str, ...]
    used: Mapping[str, str]
    notes: tuple[str, ...]
    score: Floats
    member: Bools | None = None
    id: NDArray[Any] | None = None
    propensity: Floats | None = None
    baseline: Floats | None = None
    chosen: Bools | None = None
    placebo: Bools | None = None
    features: Floats | None = None

    def __len__(self) -> int:
        return self.score.size

    @property
    def unused(self) -> list[str]:
        """The columns that serve as nothing."""
        used = {*self.used.values(), self.used["score"].removeprefix("-")}
        return [name for name in self.headers if name not in used]

    def take(self, where: Bools) -> "ScoreTable":
        """Return some rows of the table, in the order given."""
        names = ("score", "member", "id", "propensity", "baseline", "chosen", "placebo", "features")
        columns = {name: getattr(self, name) for name in names}
        return replace(self, **{k: v[where] for k, v in columns.items() if v is not None})


def read_scores(path: Path, columns: Sequence[str] = ()) -> ScoreTable:
    """Read a file; `columns` are wishes such as ``score=-loss`` or ``member=is_train``."""
    wishes = _wishes(columns)
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not start:
        raise ValueError(f"{path.name} is empty")
    reader = _from_csv
    if start == b"PAR1":
        reader = _from_parquet
    elif start in (b"PK\x03\x04", b"PK\x05\x06"):  # the second is an archive of nothing
        reader = _from_npz
    layout, found, notes = reader(path, wishes)
    _not_too_many(found["score"].size)
    if not found["score"].size:
        raise ValueError(f"{path.name} holds column names and no row")
    for role, place in layout.places.items():
        if role in FLAGS:
            found[role] = _flag(role, found[role])
        elif role != "id":
            _finite(layout.headers[place], found[role])
    if "id" in found:
        _once(found["id"])
    if "propensity" in found:
        _chances(found["propensity"])
    used = {role: layout.headers[place] for role, place in layout.places.items()}
    if layout.turned:
        found["score"], used["score"] = -found["score"], f"-{used['score']}"
    features = [found.pop(role) for role in used if role.startswith("feature")]
    if features:
        found["features"] = np.column_stack(features)
    return ScoreTable(path.name, digest, layout.headers, used, notes, **found)


@dataclass(frozen=True)
class _Layout:
    """Which column serves as what; a score that is high for non-members is turned round."""

    headers: tuple[str, ...]
    places: Mapping[str, int]
    turned: bool


Read: TypeAlias = tuple[_Layout, dict[str, Any], tuple[str, ...]]  # columns by role, and notes


def _wishes(columns: Sequence[str]) -> dict[str, list[str]]:
    wishes: dict[str, list[str]] = {}
    for column in columns:
        role, equals, name = column.partition("=")
        if role not in ROLES or not equals or not name:
            raise ValueError(
                f"--column must be as in score=-loss, for one of {', '.join(ROLES)}, got "
                f"{quoted(column)}"
            )
        if role in wishes and role != "feature":
            raise ValueError(
                f"--column {role} must be given once, got {quoted(wishes[role][0])} and "
                f"{quoted(name)}; a feature alone may repeat"
            )
        wishes.setdefault(role, []).append(name)
    return wishes


def _layout(headers: Sequence[str], wishes: Mapping[str, list[str]]) -> _Layout:
    plain = [_plain(header) for header in headers]
    places: dict[str, int] = {}
    turned = False
    for role, names in NAMES.items():
        found = [place for place, name in enumerate(plain) if name in names]
        for wish in wishes.get(role, []):
            loss = role == "score" and wish.startswith("-") and not _called(headers, wish)
            found, turned = _wished(headers, wish[1:] if loss else wish), turned or loss
        if len(found) > 1:
            twice = " and ".join(quoted(headers[place]) for place in found[:2])
            alike = headers[found[0]].strip() == headers[found[1]].strip()
            way = "give one another name" if alike else f"say --column {role}=…"
            raise ValueError(f"two columns could be the {role}: {twice}; {way}")
        if found:
            places[role] = found[0]
    if "score" not in places:
        raise ValueError(
            f"no column is called score; found {listed(headers)}; say --column score=NAME, or "
            "score=-NAME where a low value means member, as with a loss"
        )
    features = {place for place, name in enumerate(plain) if name.startswith(FEATURE)}
    features -= set(places.values())
    for wish in wishes.get("feature", []):
        features.update(_wished(headers, wish))
    places |= {f"feature {i}": place for i, place in enumerate(sorted(features), start=1)}
    return _Layout(tuple(headers), places, turned)


def _called(headers: Sequence[str], name: str) -> list[int]:
    return [place for place, header in enumerate(headers) if header.strip() == name]


def _wished(headers: Sequence[str], name: str) -> list[int]:
    found = _called(headers, name)
    if not found:
        raise ValueError(f"no column is called {quoted(name)}; found {listed(headers)}")
    return found


# CSV


def _from_csv(path: Path, wishes: Mapping[str, list[str]]) -> Read:
    with path.open("rb") as binary, io.TextIOWrapper(binary, _encoding(binary), newline="") as file:
        try:
            layout, delimiter, before = _head(file, path.name, wishes)
            start = file.tell()
            widths = Counter(map(len, csv.reader(file, delimiter=delimiter, strict=True)))
            _not_too_many(widths[len(layout.headers)])
            file.seek(start)
            if set(widths) <= {0, len(layout.headers)}:
                with suppress(ValueError):
                    return _gathered(_by_pandas(file, layout, delimiter), layout, delimiter)
            # of what is not plain pandas cannot say the line
            file.seek(start)
            return _gathered(_row_by_row(file, layout, delimiter, before), layout, delimiter)
        except UnicodeDecodeError:
            raise ValueError(f"{path.name} must be text in UTF-8, or Parquet or NPZ") from None
        except csv.Error as error:
            raise ValueError(f"{path.name} is no CSV file: {error}") from None


def _encoding(file: IO[bytes]) -> str:
    start = file.read(4)
    file.seek(0)
    wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if wide else "utf-8-sig"


def _head(file: IO[str], name: str, wishes: Mapping[str, list[str]]) -> tuple[_Layout, str, int]:
    """Return what the columns are, what stands between them, and how many lines that took."""
    first, before = file.readline(), 1
    # a spreadsheet may say on a line of its own how it separates columns
    while first and (not first.strip() or first.strip('"\r\n').casefold().startswith("sep=")):
        first, before = file.readline(), before + 1
    if not first:
        raise ValueError(f"{name} is empty")
    delimiter = max(",;\t", key=first.count)
    if first.count('"') % 2:
        raise ValueError(f"{name} must have its column names in one line, got {quoted(first)}")
    headers = next(csv.reader([first], delimiter=delimiter, strict=True))
    if all(_is_number(header) for header in headers):
        shown = ", ".join(map(quoted, headers[:4]))
        raise ValueError(f"{name} must begin with the names of its columns, got {shown}")
    return _layout(headers, wishes), delimiter, before


def _by_pandas(file: IO[str], layout: _Layout, delimiter: str) -> Chunks:
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


def _row_by_row(file: IO[str], layout: _Layout, delimiter: str, before: int) -> Chunks:
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


def _gathered(chunks: Chunks, layout: _Layout, delimiter: str) -> Read:
    """Turn chunks of text into columns: numbers, words, and hashes of ids."""
    notes: set[str] = set()
    seen, parts = 0, {role: [np.empty(0, float)] for role in layout.places}
    for columns, lines in chunks:
        where = _Where(seen, lines)
        for role, place in layout.places.items():
            texts = columns[place]
            if role == "id" or role in FLAGS:
                empty = [row for row, text in enumerate(texts) if not text.strip()]
                if empty:
                    raise ValueError(f"{role} must not be empty, got {where.nothing(empty)}")
                parts[role].append(hashed(texts) if role == "id" else texts)
            else:
                name = layout.headers[place]
                parts[role].append(_floats(texts, name, where, delimiter, notes))
        seen += len(lines)
        _not_too_many(seen)
    # what is first has no row, and is there for a file without any
    found = {role: np.concatenate(part[1:] or part) for role, part in parts.items()}
    return layout, found, tuple(sorted(notes))


@dataclass(frozen=True)
class _Where:
    """Where the rows of a chunk are: how many came before, and the line that each ends on."""

    before: int
    lines: Sequence[int]

    def of(self, places: Sequence[int]) -> str:
        """Return where the first of some rows is, and how many more there are."""
        row, last = self.before + places[0] + 1, self.before + len(self.lines)
        more = f"; {len(places)} such in rows {self.before + 1} to {last}"
        return f"row {row} (line {self.lines[places[0]]} of the file{more * (len(places) > 1)})"

    def nothing(self, places: Sequence[int]) -> str:
        """Return where nothing is, and what may be done about it."""
        return f"nothing in {self.of(places)}. {LEFT_OUT}"


def _floats(column: Column, header: str, where: _Where, delimiter: str, notes: set[str]) -> Floats:
    with suppress(ValueError):
        return column.astype(np.float64)
    plain, commas = column, delimiter == ";" and not any("." in text for text in column)
    if commas:
        plain = np.array([text.replace(",", ".", 1) for text in column], dtype=object)
    bad = [place for place, text in enumerate(plain) if not _is_number(text)]
    if not bad:
        notes.add(f"{quoted(header)} was read with a comma for the decimal point.")
        return plain.astype(np.float64)
    empty = [place for place in bad if not column[place].strip()]
    if empty:
        raise ValueError(f"{quoted(header)} must hold numbers, got {where.nothing(empty)}")
    text, hint = column[bad[0]], ""
    if "," in text and not commas:
        hint = "; a decimal comma is read only where columns are separated by semicolons and no "
        hint += "number has a point"
    raise ValueError(
        f"{quoted(header)} must hold numbers, got {quoted(text)} in {where.of(bad)}{hint}"
    )


# Parquet and NPZ


def _from_parquet(path: Path, wishes: Mapping[str, list[str]]) -> Read:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError(
            f"reading {path.name} takes pyarrow: pip install pyarrow, or save it as CSV or NPZ"
        ) from None
    with _parquet_errors(path.name):
        file = parquet.ParquetFile(path)
        headers = file.schema_arrow.names
    layout = _layout(headers, wishes)
    wanted = {headers[place] for place in layout.places.values()}
    for name in wanted:
        if headers.count(name) > 1:  # Parquet reads by name alone
            raise ValueError(f"two columns are called {quoted(name)}; give one another name")
    _not_too_many(file.metadata.num_rows)
    with _parquet_errors(path.name):
        read = file.read(columns=list(wanted))

    def column(name: str) -> Column:
        found = read.column(name)
        if found.null_count:
            empty = int(np.flatnonzero(found.is_null().to_numpy())[0]) + 1
            raise ValueError(
                f"{quoted(name)} must not be empty, got nothing in row {empty} "
                f"({found.null_count} such in all). {LEFT_OUT}"
            )
        values: Column = found.to_numpy()
        return values

    return _from_arrays(layout, column)


@contextmanager
def _parquet_errors(name: str) -> Iterator[None]:
    """Turn what pyarrow raises, of several kinds, into a sentence with the name of the file."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        told = printable(str(error).splitlines()[0])
        raise ValueError(f"{name} is no Parquet file that can be read: {told}") from None


def _from_npz(path: Path, wishes: Mapping[str, list[str]]) -> Read:
    with _npz(path) as file:
        shapes = {name: _shape(file, name) for name in file.files}
    places: dict[str, tuple[str, Any]] = {}
    for name, shape in shapes.items():
        if len(shape) == 2 and _plain(name).startswith(FEATURE):
            places |= {f"{name}_{column + 1}": (name, (..., column)) for column in range(shape[1])}
        else:
            places[name] = (name, ...)
    layout = _layout(list(places), wishes)
    used = {places[layout.headers[place]][0] for place in layout.places.values()}
    _not_too_many(max((shapes[name][0] for name in used if shapes[name]), default=0))
    with _npz(path) as file:
        arrays = {name: np.asarray(file[name]) for name in used}

    def column(header: str) -> Column:
        name, part = places[header]
        values: Column = arrays[name][part]
        return values

    return _from_arrays(layout, column)


@contextmanager
def _npz(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb") as binary, np.load(binary, allow_pickle=False) as file:
            yield file
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path.name} is no NPZ file of plain arrays: {error}") from None


def _shape(file: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array before it takes any memory."""
    if f"{name}.npy" not in file.zip.namelist():
        return ()  # no array at all
    with file.zip.open(f"{name}.npy") as entry:
        version = np.lib.format.read_magic(entry)[0]
        read = np.lib.format.read_array_header_1_0
        shape, _, _ = (read if version == 1 else np.lib.format.read_array_header_2_0)(entry)
    return shape


def _from_arrays(layout: _Layout, column: Callable[[str], Column]) -> Read:
    found, lengths = {}, {}
    for role, place in layout.places.items():
        name = layout.headers[place]
        values = column(name)
        if values.ndim != 1:
            raise ValueError(f"{quoted(name)} must have 1 dimension, got shape {values.shape}")
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
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{quoted(name)} has {size}" for name, size in lengths.items())
        raise ValueError(f"columns must have the same length: {sizes}")
    return layout, found, ()


# What every column has to be


def _plain(header: str) -> str:
    return header.strip().casefold().replace(" ", "_").replace("-", "_")


def listed(headers: Iterable[str]) -> str:
    """Return the names of columns, the first eight where there are many."""
    shown = [quoted(header) for header in headers]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"{', '.join(shown[:8])}{more}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _not_too_many(rows: int) -> None:
    if rows > MOST_ROWS:
        raise ValueError(
            f"more than {MOST_ROWS:,} rows are more than this command takes. Draw so many of them "
            "by chance, whatever their scores and membership: more would hardly raise a bound"
        )


def _finite(header: str, values: Floats) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{quoted(header)} must hold finite numbers, got {values[bad[0]]} in row {bad[0] + 1} "
            f"({bad.size} such in all)"
        )
    large = np.flatnonzero(np.abs(values) > LARGEST)
    if large.size:
        raise ValueError(
            f"{quoted(header)} must hold numbers within ±{LARGEST:g}, got {values[large[0]]:g} in "
            f"row {large[0] + 1}; a logarithm of them ranks the rows alike"
        )


def hashed(ids: Iterable[Any]) -> Column:
    """Return ids by their hashes, which take little room, and mix words and numbers."""
    from pandas.util import hash_array

    texts = np.array([str(name) for name in ids], dtype=object)
    hashes: Column = hash_array(texts, categorize=False)
    return hashes


def _flag(role: str, column: Column) -> Bools:
    """Return a flag as booleans, by the one pair of words that all of them belong to."""
    import pandas as pd

    codes, words = pd.factorize(column)
    if len(words) > 100:
        some = ", ".join(map(quoted, words[:3]))
        raise ValueError(f"{role} must be one of two words, got {some} and more")
    plain = [_word(word) for word in words]
    for no, yes in FLAGS[role]:
        if set(plain) <= {no, yes}:
            bits: Bools = np.array([word == yes for word in plain])[codes]
            return bits
    pairs = ", ".join("/".join(pair) for pair in FLAGS[role])
    shown = ", ".join(map(quoted, words[:4]))
    raise ValueError(f"{role} must be written as one of {pairs}, got {shown}")


def _word(word: str) -> str:
    """Return a word as it is compared; 1.0 is 1."""
    plain = word.strip().casefold()
    return plain[:-2] if plain.endswith(".0") else plain


def _once(ids: Column) -> None:
    import pandas as pd

    again = np.flatnonzero(pd.Series(ids).duplicated())
    if again.size:
        first = int(np.argmax(ids == ids[again[0]]))
        raise ValueError(
            f"id must not repeat, got the same one in rows {first + 1} and {again[0] + 1} "
            f"({again.size} repetitions in all)"
        )


def _chances(values: Floats) -> None:
    outside = np.flatnonzero((values <= 0.0) | (values >= 1.0))
    if outside.size:
        raise ValueError(
            f"propensity must lie strictly between 0 and 1, got {values[outside[0]]:g} in row "
            f"{outside[0] + 1} ({outside.size} such in all): a membership that is certain tells "
            "nothing, so leave such rows out before any score is looked at"
        )
