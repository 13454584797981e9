"""Results as tables, and where they come from: code, versions, machine, and hashes that vouch."""

import hashlib
import io
import json
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from auditkit import _check
from auditkit._files import write_whole
from auditkit.datasets.shipped import home
from auditkit.experiment.code import closure, sha256_of
from auditkit.experiment.journal import seed_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "torch", "dp-auditkit")
TINY = 1e-12  # below this a number is 0 but for rounding
ORIGIN = ("id", "csv_sha256", "code_sha256", "profile")

# what has been read in this process: a figure has to say whether it draws it
READ: set[str] = set()


def profile() -> Literal["quick", "paper"]:
    """Return the scale at which to work, which the environment variable AUDITKIT_PROFILE sets.

    Returns
    -------
    {"quick", "paper"}
        Quick unless the variable says otherwise.

    References
    ----------
    The page *How to run* says what either takes.

    Examples
    --------
    >>> repeats = {"quick": 20, "paper": 1000}[profile()]
    """
    options = ("quick", "paper")
    value = os.environ.get("AUDITKIT_PROFILE", "quick")
    return "paper" if _check.choice("AUDITKIT_PROFILE", value, options) == "paper" else "quick"


def results_folder(at: Literal["quick", "paper"] | None = None) -> Path:
    """Return where the results of a profile lie."""
    return home() / ("data/results" if (at or profile()) == "paper" else "_build/results")


def stored(id: str, *, store: str | Path | None = None) -> "DataFrame":  # noqa: A002
    """Read stored results, after checking that nobody has touched them.

    Parameters
    ----------
    id : str
        The experiment's id.
    store : path, optional
        Where the results are. By default `data/results`, where the paper profile puts them.

    Returns
    -------
    DataFrame
        One row a result, with typed columns. ``attrs`` hold ``id``, ``csv_sha256``,
        ``code_sha256`` and ``profile``, which pandas carries along (`query`, sorting, new
        columns). A csv or a json that differs from the one that was stored is a ValueError.

    References
    ----------
    What is stored beside the rows is listed at `provenance`.

    Examples
    --------
    >>> stored("pan-known").query("closeness == 2.4 and noise == 0")["repeats"].max()
    np.int64(100)
    """
    folder = results_folder("paper") if store is None else Path(store)
    origin, content = _vouched(folder, id)
    frame = read_table(content, origin["columns"])
    frame.attrs = {name: origin[name] for name in ORIGIN}
    READ.add(id)
    return frame


def about(id: str, *, store: str | Path | None = None) -> dict[str, Any]:  # noqa: A002
    """Return all that is stored beside the rows: code, versions, machine, seconds, seeds."""
    folder = results_folder("paper") if store is None else Path(store)
    return _vouched(folder, id)[0]


def provenance(function: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Return where a result comes from: code, versions and machine.

    No name of a host, a user or a folder is part of it.

    Parameters
    ----------
    function : callable, optional
        What was run.

    Returns
    -------
    dict
        With ``function``, ``code`` (a hash of each definition that the function reaches),
        ``code_sha256``, ``versions`` and ``machine``.

    References
    ----------
    `experiment` and `citable` store it beside what they write.

    Examples
    --------
    >>> sorted(provenance())
    ['code', 'code_sha256', 'function', 'machine', 'versions']
    """
    code = {} if function is None else closure(function)
    name = None if function is None else f"{function.__module__}:{function.__qualname__}"
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "function": name,
        "code": code,
        "code_sha256": sha256_of(code),
        "versions": versions,
        "machine": {"cores": os.cpu_count(), "cpu": _cpu(), "platform": platform.platform()},
    }


def save(
    id: str,  # noqa: A002
    folder: Path,
    runs: Sequence[Mapping[str, Any]],
    origin: Mapping[str, Any],
    reduced: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write csv and json; the csv first, so that a json never vouches for what is not there."""
    frame = frame_of(runs)
    text = frame.to_csv(index=False, lineterminator="\n")
    content = text.encode()
    said = {
        "id": id,
        "csv_sha256": hashlib.sha256(content).hexdigest(),
        "columns": {name: kind_of(frame[name]) for name in frame.columns},
        "parameters": {
            name: list(dict.fromkeys(plain_json(run["cell"][name]) for run in runs))
            for name in runs[0]["cell"]
        },
        "seeds": [seed_of(id, run["cell"]) for run in runs],
        "seconds": round(math.fsum(run["seconds"] for run in runs), 3),
        **origin,
        "reduced": [plain_json(run) for run in reduced],
    }
    write_whole(folder / f"{id}.csv", content)
    write_json(folder / f"{id}.json", said)


def compare(
    before: "DataFrame", after: "DataFrame", tolerance: float, *, apart: Sequence[str] = ()
) -> None:
    """Raise an AssertionError unless two tables agree, column by column.

    Numbers may differ by `tolerance` in the root mean square, relative to that of the column: what
    another processor rounds in another way moves single values where networks train. Times and the
    columns named in `apart` are not compared.
    """
    if len(before) != len(after):
        raise AssertionError(f"{len(before)} rows are stored, {len(after)} recomputed")
    # a column without a value is none: another cell has some
    before, after = (one.dropna(axis=1, how="all") for one in (before, after))
    names = dict.fromkeys([*before, *after])
    for name in (name for name in names if name not in apart and "seconds" not in name):
        if name not in before or name not in after:
            there = "stored" if name in before else "recomputed"
            raise AssertionError(f"column {name} is {there} only")
        was, now = before[name], after[name]
        kinds = {kind_of(was), kind_of(now)}
        if kinds - {"float", "int"}:
            if len(kinds) > 1:
                raise AssertionError(f"{name} is stored as {was.dtype}, recomputed as {now.dtype}")
            _same(name, was, now)
            continue
        old, new = (column.to_numpy(np.float64, na_value=np.nan) for column in (was, now))
        _same(name, was.isna(), now.isna())
        with np.errstate(invalid="ignore"):
            gaps = np.where((old == new) | np.isnan(old), 0.0, np.abs(old - new))
            size = max(_mean_square(old), _mean_square(new))
        if not np.isfinite(gaps).all() or _mean_square(gaps) > max(tolerance * size, TINY):
            worst = int(np.argmax(np.nan_to_num(gaps, nan=np.inf)))
            raise AssertionError(
                f"{name} is stored as {old[worst]!r} and recomputed as {new[worst]!r} in row "
                f"{worst}; its {len(gaps)} values differ by {_mean_square(gaps) / (size or 1):.3g} "
                f"of their size in the root mean square, with a tolerance of {tolerance:g}"
            )


def _same(name: str, was: "Series[Any]", now: "Series[Any]") -> None:
    old, new = (column.astype(object).where(column.notna(), None).tolist() for column in (was, now))
    for row, (one, other) in enumerate(zip(old, new, strict=True)):
        if one != other:
            raise AssertionError(
                f"{name} is stored as {one!r} and recomputed as {other!r} in row {row}"
            )


def _mean_square(values: Any) -> float:
    """Return the root mean square of what is finite."""
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if known.size else 0.0


def write_json(path: Path, said: Mapping[str, Any]) -> None:
    """Write what stands beside the rows, with a hash of it."""
    rest = {name: value for name, value in said.items() if name != "json_sha256"}
    text = json.dumps(
        {**rest, "json_sha256": sha256_of(rest)}, indent=1, ensure_ascii=False, allow_nan=False
    )
    write_whole(path, (text + "\n").encode())


def frame_of(runs: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """Return the table of some runs; seconds stand last whatever columns later cells bring."""
    import pandas as pd

    rows = [
        {**run["cell"], **row, "seconds": round(run["seconds"], 4)}
        for run in runs
        for row in run["rows"]
    ]
    names = dict.fromkeys(name for row in rows for name in row if name != "seconds")
    table = {name: _column(name, [row.get(name) for row in rows]) for name in [*names, "seconds"]}
    return pd.DataFrame(table)


def _column(name: str, values: list[Any]) -> Any:
    """Return a column of one type, in which no value is lost on the way to a file and back."""
    import pandas as pd

    present = {type(value) for value in values if value is not None}
    if present == {int, float} and all(
        abs(value) <= 2**53 for value in values if type(value) is int
    ):
        present = {float}
    if len(present) > 1:
        kinds = ", ".join(sorted(kind.__name__ for kind in present))
        raise TypeError(f"{name!r} must hold values of one type, got {kinds}")
    texts = [value for value in values if isinstance(value, str)]
    if any(text == "" or "\r" in text for text in texts):
        raise ValueError(f"{name!r} must not hold empty texts or carriage returns")
    gap = any(value is None for value in values)
    kind = present.pop() if present else float
    types = {int: "Int64" if gap else "int64", bool: "boolean" if gap else "bool"}
    return pd.Series(values, dtype={**types, float: "float64", str: "str"}[kind])


def kind_of(column: Any) -> str:
    """Return what kind of values a column has: float, int, bool or str."""
    return {"i": "int", "b": "bool", "f": "float"}.get(column.dtype.kind, "str")


def read_table(content: bytes, kinds: Mapping[str, str]) -> "DataFrame":
    """Return a csv as a table, every number to the last digit, every column of its type."""
    import pandas as pd

    types = {"float": "float64", "int": "Int64", "bool": "boolean"}
    frame = pd.read_csv(
        io.BytesIO(content),
        dtype={name: types.get(kind, "str") for name, kind in kinds.items()},
        keep_default_na=False,
        na_values={name: [""] for name in kinds},
        true_values=["true", "True"],
        false_values=["false", "False"],
    )
    whole = frame.columns[~frame.isna().any()]
    plain = {"int": "int64", "bool": "bool"}
    return frame.astype({name: plain[kinds[name]] for name in whole if kinds[name] in plain})


def _vouched(folder: Path, id: str) -> tuple[dict[str, Any], bytes]:  # noqa: A002
    """Read a json and its csv, which nobody has touched."""
    path = folder / f"{_check.identifier('id', id)}.json"
    try:
        text, content = path.read_text(encoding="utf-8"), path.with_suffix(".csv").read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"there are no stored results of {id!r}: {error.filename} is missing"
        ) from None
    try:
        said = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is not what an experiment stored: {error}") from None
    rest = {name: value for name, value in dict(said).items() if name != "json_sha256"}
    if said.get("json_sha256") != sha256_of(rest):
        raise ValueError(
            f"{path} is not what the experiment stored: its content differs from the hash that it "
            "holds. Restore the file, or run the experiment again"
        )
    if hashlib.sha256(content).hexdigest() != said["csv_sha256"]:
        raise ValueError(
            f"{path.with_suffix('.csv')} is not what the experiment stored: its SHA-256 differs "
            f"from the one in {path.name}. Restore the file, or run the experiment again"
        )
    return said, content


def plain_json(value: Any) -> Any:
    """Return what JSON knows: it has no infinity."""
    if isinstance(value, Mapping):
        return {name: plain_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(one) for one in value]
    return repr(value) if isinstance(value, float) and math.isinf(value) else value


def from_json(value: Any) -> Any:
    """Return what `plain_json` was given."""
    if isinstance(value, Mapping):
        return {name: from_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [from_json(one) for one in value]
    return float(value) if value in ("inf", "-inf") else value


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
