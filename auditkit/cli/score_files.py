"""Files of scores: named columns that an audit can use, or a refusal that says which row.

What a file comes in is the matter of `score_containers`, what is in it that of `score_readers`, and
which column serves as what that of `score_columns`. Here the parts are put together and every
column is checked.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditkit._types import Bools, Floats
from auditkit.cli.score_columns import FLAGS, Asked, Column, Read, listed, wishes_of
from auditkit.cli.score_containers import opened
from auditkit.cli.score_limits import not_too_many
from auditkit.cli.score_readers import read
from auditkit.cli.terminal import quoted

LARGEST = 1e150  # squares of larger numbers overflow
BY_FILE = "the file"  # what says who is a member, where two files do
COLUMNS = ("score", "member", "id", "propensity", "baseline", "chosen", "placebo", "features")


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The columns of a file that an audit can use, and what the file is.

    Attributes
    ----------
    name : str
        What was read.
    parts : mapping
        The files of it, each with the hash of its bytes.
    headers : tuple of str
        All columns of the file, as they are written there.
    used : mapping
        Which column serves as what.
    notes : tuple of str
        What was read in a way that has to be said.
    """

    name: str
    parts: Mapping[str, str]
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
    def sha256(self) -> str:
        """The hash of the file; of several that of the lines by which sha256sum lists them."""
        if len(self.parts) == 1:
            return next(iter(self.parts.values()))
        lines = "".join(f"{digest}  {name}\n" for name, digest in self.parts.items())
        return hashlib.sha256(lines.encode("utf-8")).hexdigest()

    @property
    def unused(self) -> list[str]:
        """The columns that serve as nothing."""
        used = {*self.used.values(), self.used["score"].removeprefix("-")}
        return [name for name in self.headers if name not in used]

    def take(self, where: Bools) -> "ScoreTable":
        """Return some rows of the table, in the order given."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        return replace(self, **{k: v[where] for k, v in columns.items() if v is not None})


def read_scores(
    path: Path,
    columns: Sequence[str] = (),
    *,
    others: Path | None = None,
    decimal: str | None = None,
) -> ScoreTable:
    """Read a file, a folder of parts, or standard input.

    Parameters
    ----------
    path : Path
        CSV, JSON, JSON Lines, Parquet, NPZ or NPY, each also in gzip; ``-`` is standard input, and
        of a folder all files are parts of one table.
    columns : sequence of str
        Wishes such as ``score=-loss`` or ``member=is_train``.
    others : Path, optional
        The scores of those who are no members; `path` then holds those of members.
    decimal : {",", "."}, optional
        What stands before the fraction of a number in text; where that is not clear it is asked.
    """
    wishes = wishes_of(columns)
    if others is None:
        return _one(path, Asked(wishes, decimal))
    if path == others:
        raise ValueError(f"--others must be another file than {path.name}")
    return _two(*(_one(each, Asked(wishes, decimal, bare=True)) for each in (path, others)))


def _one(path: Path, asked: Asked) -> ScoreTable:
    """Read a file, or all files of a folder."""
    parts: dict[str, str] = {}
    found: list[Read] = []
    for place in _parts(path):
        with opened(place) as source:
            try:
                found.append(read(source, asked))
            except ValueError as error:
                if place == path:
                    raise
                raise ValueError(f"{place.name} in {path.name}: {error}") from None
        parts[source.name] = source.sha256
        not_too_many(sum(columns["score"].size for _, columns, _ in found))
    used = [{role: one.headers[at] for role, at in one.places.items()} for one, _, _ in found]
    for name, each in zip(parts, used, strict=True):
        if each != used[0]:
            raise ValueError(
                f"all parts of {path.name} must have the same columns, got {listed(each.values())} "
                f"in {name} and {listed(used[0].values())} in {next(iter(parts))}"
            )
    layout, whole = found[0][0], found[0][1]
    if len(found) > 1:
        whole = {role: np.concatenate([columns[role] for _, columns, _ in found]) for role in whole}
    notes = tuple(dict.fromkeys(note for _, _, told in found for note in told))
    name = source.name if place == path else path.name
    table = ScoreTable(name, parts, layout.headers, used[0], notes, whole["score"])
    return _checked(table, whole, turned=layout.turned)


def _parts(path: Path) -> list[Path]:
    """Return the files that a path stands for; a folder's marks of others are no parts."""
    if not path.is_dir():
        return [path]
    held = [part for part in sorted(path.iterdir()) if part.name[0] not in "._"]
    folders = [part.name for part in held if not part.is_file()]
    if folders or not held:
        what = f"the folder {quoted(folders[0])}" if folders else "no file"
        raise ValueError(
            f"{path.name} must hold the parts of one table and nothing else, got {what}"
        )
    return held


def _checked(table: ScoreTable, found: dict[str, Any], *, turned: bool) -> ScoreTable:
    """Return the table with its columns, if each is what it has to be."""
    if not found["score"].size:
        raise ValueError(f"{table.name} holds column names and no row")
    used = dict(table.used)
    for role, header in used.items():
        if role in FLAGS:
            found[role] = _flag(role, found[role])
        elif role != "id":
            _finite(header, found[role])
    if "id" in found:
        _once(found["id"])
    if "propensity" in found:
        _chances(found["propensity"])
    if turned:
        found["score"], used["score"] = -found["score"], f"-{used['score']}"
    features = [found.pop(role) for role in used if role.startswith("feature")]
    if features:
        found["features"] = np.column_stack(features)
    return replace(table, used=used, **found)


def _two(members: ScoreTable, others: ScoreTable) -> ScoreTable:
    """Join the scores of members and of others, which two files hold."""
    for table in (members, others):
        if table.member is not None:
            raise ValueError(
                f"{table.name} says by a column {table.used['member']} who is a member, and "
                "--others does so by the file: leave one of them out"
            )
    if dict(members.used) != dict(others.used):
        raise ValueError(
            f"{members.name} and {others.name} must have the same columns, got "
            f"{listed(members.used.values())} and {listed(others.used.values())}"
        )
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(members, name), getattr(others, name)])
        for name in COLUMNS
        if getattr(members, name) is not None
    }
    if "id" in joined:
        _once(joined["id"])
    not_too_many(joined["score"].size)
    parts = {**members.parts, **others.parts}
    if len(parts) < len(members.parts) + len(others.parts):  # files of one name in two folders
        parts = {
            f"{t.name}, {n}": d
            for n, t in (("members", members), ("others", others))
            for d in t.parts.values()
        }
    member = np.repeat([True, False], [len(members), len(others)])
    return replace(
        members,
        name=f"{members.name} and {others.name}",
        parts=parts,
        notes=tuple(dict.fromkeys((*members.notes, *others.notes))),
        used={**members.used, "member": BY_FILE},
        member=member,
        **joined,
    )


# What every column has to be


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
