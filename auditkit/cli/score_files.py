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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from auditkit.cli.terminal import printable, quoted

CHUNK = 20_000  # rows that are text at one time
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

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


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
    member: Bits | None = None
    id: NDArray[Any] | None = None
    propensity: Floats | None = None
    baseline: Floats | None = None
    chosen: Bits | None = None
    placebo: Bits | None = None
    features: Floats | None = None

    def __len__(self) -> int:
        return self.score.size

    @property
    def unused(self) -> list[str]:
        """The columns that serve as nothing."""
        used = {*self.used.values(), self.used["score"].removeprefix("-")}
        return [name for name in self.headers if name not in used]


def read_scores(path: Path, columns: Sequence[str] = ()) -> ScoreTable:
    """Read a file; `columns` are wishes such as ``score=-loss`` or ``member=is_train``."""
    wishes = _wishes(columns)
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise ValueError(f"{path.name} is empty")
    reader = _from_csv
    if start == b"PAR1":
        reader = _from_parquet
    elif start in (b"PK\x03\x04", b"PK\x05\x06"):  # the second is an archive of nothing
        reader = _from_npz
    return reader(path, wishes).table(path)


@dataclass(frozen=True)
class _Roles:
    """Which column serves as what; a score that is high for non-members is turned round."""

    headers: tuple[str, ...]
    places: Mapping[str, int]
    features: tuple[int, ...]
    turned: bool

    @classmethod
    def of(cls, headers: Sequence[str], wishes: Mapping[str, list[str]]) -> "_Roles":
        plain = [_plain(header) for header in headers]
        places: dict[str, int] = {}
        turned = False
        for role, names in NAMES.items():
            found = [place for place, name in enumerate(plain) if name in names]
            for wish in wishes.get(role, []):
                found = _called(headers, wish)
                if not found and role == "score" and wish.startswith("-"):
                    found = _called(headers, wish[1:])
                    turned = bool(found)
                if not found:
                    raise ValueError(f"no column is called {quoted(wish)}; {_found(headers)}")
            if len(found) > 1:
                twice = " and ".join(quoted(headers[place]) for place in found[:2])
                alike = headers[found[0]].strip() == headers[found[1]].strip()
                way = "give one another name" if alike else f"say --column {role}=…"
                raise ValueError(f"two columns could be the {role}: {twice}; {way}")
            if found:
                places[role] = found[0]
        if "score" not in places:
            raise ValueError(
                f"no column is called score; {_found(headers)}; say --column score=NAME, or "
                "score=-NAME where a low value means member, as with a loss"
            )
        features = {
            place
            for place, name in enumerate(plain)
            if name.startswith(FEATURE) and place not in places.values()
        }
        for wish in wishes.get("feature", []):
            found = _called(headers, wish)
            if not found:
                raise ValueError(f"no column is called {quoted(wish)}; {_found(headers)}")
            features.update(found)
        return cls(tuple(headers), places, tuple(sorted(features)), turned)

    def used(self) -> dict[str, str]:
        """Return the names of the columns by what they serve as."""
        used = {role: self.headers[place] for role, place in self.places.items()}
        if self.turned:
            used["score"] = f"-{used['score']}"
        used |= {f"feature {i + 1}": self.headers[place] for i, place in enumerate(self.features)}
        return used


@dataclass(frozen=True)
class _Columns:
    """Raw columns: floats, codes of flags with the words they stand for, hashes of ids."""

    roles: _Roles
    numbers: Mapping[int, Floats]
    flags: Mapping[str, tuple[NDArray[np.int8], Sequence[str]]]
    ids: NDArray[Any] | None
    notes: tuple[str, ...] = ()

    def table(self, path: Path) -> ScoreTable:
        """Return the table, every column checked."""
        roles = self.roles
        size = self.numbers[roles.places["score"]].size
        _not_too_many(size)
        if size == 0:
            raise ValueError(f"{path.name} holds column names and no row")
        for place, values in self.numbers.items():
            _finite(roles.headers[place], values)
        found: dict[str, Any] = {
            role: self.numbers[roles.places[role]] for role in NUMBERS if role in roles.places
        }
        found |= {role: _flag(role, *coded) for role, coded in self.flags.items()}
        if roles.turned:
            found["score"] = -found["score"]
        if self.ids is not None:
            _once(self.ids)
            found["id"] = self.ids
        if "propensity" in found:
            _chances(found["propensity"])
        if roles.features:
            found["features"] = np.column_stack([self.numbers[p] for p in roles.features])
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return ScoreTable(
            path.name, digest.hexdigest(), roles.headers, roles.used(), self.notes, **found
        )


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


def _called(headers: Sequence[str], name: str) -> list[int]:
    return [place for place, header in enumerate(headers) if header.strip() == name]


# CSV


def _from_csv(path: Path, wishes: Mapping[str, list[str]]) -> _Columns:
    with path.open("rb") as binary, io.TextIOWrapper(binary, _encoding(binary), newline="") as file:
        try:
            return _from_text(file, path.name, wishes)
        except UnicodeDecodeError:
            raise ValueError(f"{path.name} must be text in UTF-8, or Parquet or NPZ") from None
        except csv.Error as error:
            raise ValueError(f"{path.name} is no CSV file: {error}") from None


def _encoding(file: IO[bytes]) -> str:
    start = file.read(4)
    file.seek(0)
    wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if wide else "utf-8-sig"


def _from_text(file: IO[str], name: str, wishes: Mapping[str, list[str]]) -> _Columns:
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
    roles = _Roles.of(headers, wishes)
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    rows = ((row, before + reader.line_num) for row in reader if any(map(str.strip, row)))
    return _gathered(rows, roles, delimiter)


def _gathered(rows: Iterator[tuple[list[str], int]], roles: _Roles, delimiter: str) -> _Columns:
    """Turn rows of text into columns of numbers, a chunk at a time."""
    wanted = [roles.places[role] for role in NUMBERS if role in roles.places]
    wanted = list(dict.fromkeys([*wanted, *roles.features]))  # one may serve twice
    numbers: dict[int, list[Floats]] = {place: [np.empty(0)] for place in wanted}
    flags = {role: _Words() for role in FLAGS if role in roles.places}
    codes: dict[str, list[NDArray[np.int8]]] = {role: [np.empty(0, np.int8)] for role in flags}
    ids: list[NDArray[np.int64]] = []
    notes: set[str] = set()
    # of each row only these fields are kept, so that long texts beside them take no room
    kept = list(dict.fromkeys([*roles.places.values(), *roles.features]))
    picked, seen = _picked(rows, len(roles.headers), kept), 0
    while chunk := list(itertools.islice(picked, CHUNK)):
        texts = zip(*(row for row, _ in chunk), strict=True)
        columns = dict(zip(kept, texts, strict=True))
        where = _Where(seen, [line for _, line in chunk])
        for place in wanted:
            header = roles.headers[place]
            numbers[place].append(_floats(columns[place], header, where, delimiter, notes))
        for role, words in flags.items():
            column = columns[roles.places[role]]
            empty = [place for place, text in enumerate(column) if not text.strip()]
            if empty:
                raise ValueError(f"{role} must not be empty, got {where.nothing(empty)}")
            codes[role].append(words.codes(column, role))
        if "id" in roles.places:
            ids.append(np.fromiter(map(hash, columns[roles.places["id"]]), np.int64, len(chunk)))
        seen += len(chunk)
        _not_too_many(seen)
    return _Columns(
        roles,
        {place: np.concatenate(parts) for place, parts in numbers.items()},
        {role: (np.concatenate(codes[role]), tuple(words)) for role, words in flags.items()},
        np.concatenate(ids) if ids else None,
        tuple(sorted(notes)),
    )


def _picked(
    rows: Iterator[tuple[list[str], int]], width: int, kept: Sequence[int]
) -> Iterator[tuple[list[str], int]]:
    """Yield the fields that are kept of each row, which has to be as wide as the first line."""
    for number, (row, line) in enumerate(rows, start=1):
        if len(row) != width:
            raise ValueError(
                f"row {number} has {len(row)} fields where the column names are {width} (line "
                f"{line} of the file)"
            )
        yield [row[place] for place in kept], line


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


class _Words(dict[str, int]):
    """The different words of a column, numbered as they come."""

    def __missing__(self, word: str) -> int:
        if len(self) == 100:
            raise OverflowError
        self[word] = len(self)
        return self[word]

    def codes(self, column: Sequence[str], role: str) -> NDArray[np.int8]:
        """Return the number of each word."""
        try:
            return np.fromiter(map(self.__getitem__, column), np.int8, len(column))
        except OverflowError:
            some = ", ".join(map(quoted, itertools.islice(self, 3)))
            raise ValueError(f"{role} must be one of two words, got {some} and more") from None


def _floats(
    column: Sequence[str], header: str, where: _Where, delimiter: str, notes: set[str]
) -> Floats:
    try:
        return np.fromiter(map(float, column), np.float64, len(column))
    except ValueError:
        pass
    plain, commas = column, delimiter == ";" and not any("." in text for text in column)
    if commas:
        plain = [text.replace(",", ".", 1) for text in column]
    bad = [place for place, text in enumerate(plain) if not _is_number(text)]
    if not bad:
        notes.add(f"{quoted(header)} was read with a comma for the decimal point.")
        return np.array([float(text) for text in plain])
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


def _from_parquet(path: Path, wishes: Mapping[str, list[str]]) -> _Columns:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError(
            f"reading {path.name} takes pyarrow: pip install pyarrow, or save it as CSV or NPZ"
        ) from None
    with _parquet_errors(path.name):
        file = parquet.ParquetFile(path)
        headers = file.schema_arrow.names
    roles = _Roles.of(headers, wishes)
    wanted = {headers[place] for place in (*roles.places.values(), *roles.features)}
    for name in wanted:
        if headers.count(name) > 1:  # Parquet reads by name alone
            raise ValueError(f"two columns are called {quoted(name)}; give one another name")
    _not_too_many(file.metadata.num_rows)
    with _parquet_errors(path.name):
        read = file.read(columns=list(wanted))

    def column(place: int) -> NDArray[Any]:
        found = read.column(headers[place])
        if found.null_count:
            empty = int(np.flatnonzero(found.is_null().to_numpy())[0]) + 1
            raise ValueError(
                f"{quoted(headers[place])} must not be empty, got nothing in row {empty} "
                f"({found.null_count} such in all). {LEFT_OUT}"
            )
        values: NDArray[Any] = found.to_numpy()
        return values

    return _from_arrays(roles, column)


@contextmanager
def _parquet_errors(name: str) -> Iterator[None]:
    """Turn what pyarrow raises, of several kinds, into a sentence with the name of the file."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        told = printable(str(error).splitlines()[0])
        raise ValueError(f"{name} is no Parquet file that can be read: {told}") from None


def _from_npz(path: Path, wishes: Mapping[str, list[str]]) -> _Columns:
    try:
        with path.open("rb") as binary, np.load(binary, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path.name} is no NPZ file of plain arrays: {error}") from None
    flat: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if array.ndim == 2 and _plain(name).startswith(FEATURE):
            flat |= {f"{name}_{place + 1}": values for place, values in enumerate(array.T)}
        else:
            flat[name] = array
    roles = _Roles.of(list(flat), wishes)
    return _from_arrays(roles, lambda place: flat[roles.headers[place]])


def _from_arrays(roles: _Roles, column: Callable[[int], NDArray[Any]]) -> _Columns:
    """Turn arrays by place into columns."""
    lengths: dict[str, int] = {}

    def checked(place: int) -> NDArray[Any]:
        array, header = column(place), roles.headers[place]
        if array.ndim != 1:
            raise ValueError(f"{quoted(header)} must have 1 dimension, got shape {array.shape}")
        lengths[header] = array.size
        return array

    places = [roles.places[role] for role in NUMBERS if role in roles.places]
    numbers = {}
    for place in [*places, *roles.features]:
        values = checked(place)
        if values.dtype.kind not in "biuf":
            header = quoted(roles.headers[place])
            raise ValueError(f"{header} must hold numbers, got {values.dtype}")
        numbers[place] = values.astype(np.float64)
    flags = {}
    for role in FLAGS:
        if role in roles.places:
            values = checked(roles.places[role])
            if values.dtype.kind not in "biufSUO":
                raise ValueError(f"{role} must hold numbers or words, got {values.dtype}")
            words, codes = np.unique(values.astype(str), return_inverse=True)
            if words.size > 100:
                some = ", ".join(map(quoted, words[:3]))
                raise ValueError(f"{role} must be one of two words, got {some} and more")
            flags[role] = (codes.astype(np.int8), words.tolist())
    ids = None
    if "id" in roles.places:
        # by their hashes, as those of a CSV file: so words and numbers may be mixed
        ids = np.array([hash(str(name)) for name in checked(roles.places["id"]).tolist()], np.int64)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{quoted(name)} has {size}" for name, size in lengths.items())
        raise ValueError(f"columns must have the same length: {listed}")
    return _Columns(roles, numbers, flags, ids)


# What every column has to be


def _plain(header: str) -> str:
    return header.strip().casefold().replace(" ", "_").replace("-", "_")


def listed(headers: Iterable[str]) -> str:
    """Return the names of columns, the first eight where there are many."""
    shown = [quoted(header) for header in headers]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"{', '.join(shown[:8])}{more}"


def _found(headers: Iterable[str]) -> str:
    return f"found {listed(headers)}"


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


def _flag(role: str, codes: NDArray[np.int8], words: Sequence[str]) -> Bits:
    """Return a flag as booleans, by the one pair of words that all of them belong to."""
    plain = [_word(word) for word in words]
    for no, yes in FLAGS[role]:
        if set(plain) <= {no, yes}:
            true = np.array([word == yes for word in plain])
            bits: Bits = true[codes]
            return bits
    pairs = ", ".join("/".join(pair) for pair in FLAGS[role])
    shown = ", ".join(map(quoted, words[:4]))
    raise ValueError(f"{role} must be written as one of {pairs}, got {shown}")


def _word(word: str) -> str:
    """Return a word as it is compared; 1.0 is 1."""
    plain = word.strip().casefold()
    return plain[:-2] if plain.endswith(".0") else plain


def _once(ids: NDArray[Any]) -> None:
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if same.size:
        first, second = order[same[0]] + 1, order[same[0] + 1] + 1
        raise ValueError(
            f"id must not repeat, got the same one in rows {first} and {second} "
            f"({same.size} repetitions in all)"
        )


def _chances(values: Floats) -> None:
    outside = np.flatnonzero((values <= 0.0) | (values >= 1.0))
    if outside.size:
        raise ValueError(
            f"propensity must lie strictly between 0 and 1, got {values[outside[0]]:g} in row "
            f"{outside[0] + 1} ({outside.size} such in all): a membership that is certain tells "
            "nothing, so leave such rows out before any score is looked at"
        )
