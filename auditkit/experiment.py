"""Grids of runs that survive: a seed per cell, results as they come, and where each came from.

Here belongs what every long run shares: which cells there are, their random streams, progress,
resuming, parallel work, stored results and their recomputation. What a cell does lives with the
chapter or the room that does it, and drawing lives in `figures`.
"""

import ast
import csv
import functools
import hashlib
import inspect
import io
import itertools
import json
import math
import os
import platform
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeGuard

import joblib
import numpy as np

from auditkit import _check
from auditkit.datasets.store import write_whole

Value = str | int | float | bool | None
Row = dict[str, Any]  # of Values
Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]

# A test recomputes stored cells; those above this many seconds it cannot afford.
AFFORDABLE = 20.0
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "torch", "dp-auditkit")


@dataclass(frozen=True)
class Results:
    """The rows of an experiment, as they stand in the store.

    Attributes
    ----------
    id : str
        The experiment's id.
    rows : tuple of dict
        One or more for each cell, in the order of the grid: the cell's parameters, what its
        function returned, and ``seconds``, the time of the whole cell.
    provenance : mapping
        Parameters, seeds, versions, hashes, tolerance, seconds in all, and machine.

    Examples
    --------
    >>> Results("DEMO-1", ({"sigma": 1.0, "epsilon": 0.5, "seconds": 0.1},), {})
    Results(id='DEMO-1', 1 row of sigma, epsilon, seconds)
    """

    id: str
    rows: tuple[Row, ...]
    provenance: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        rows = "1 row" if len(self.rows) == 1 else f"{len(self.rows)} rows"
        return f"Results(id={self.id!r}, {rows} of {', '.join(self.rows[0])})"

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        import pandas as pd  # type: ignore[import-untyped]

        return pd.DataFrame(list(self.rows))


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


def experiment(
    id: str,  # noqa: A002
    function: Callable[..., Mapping[str, Any] | Sequence[Mapping[str, Any]]],
    grid: Grid,
    *,
    tolerance: float = 1e-9,
    store: str | Path | None = None,
    n_jobs: int | None = None,
) -> Results:
    """Run a function on every cell of a grid, and lose nothing when killed.

    Each cell draws from its own random stream, which depends on the experiment's id and on the
    cell, never on the order of running: a grid that grows keeps its old cells. A finished cell is
    on disk before the next one is waited for. A run that was killed goes on where it stopped, if
    the code (comments, layout and docstrings aside) and the versions are the same; if they are not
    it starts anew, says so, and leaves the old journal alone. What a function reads besides its
    arguments, such as a file or a variable of the notebook, is not looked at.

    In the paper profile a finished experiment of the same code is returned as stored. In the quick
    one it runs again, because it is there to be seen running.

    Parameters
    ----------
    id : str
        Names the experiment and its files.
    function : callable
        Takes the parameters of one cell and `rng`, a numpy Generator, all by name. Returns a
        mapping of numbers, texts, booleans and None, or a list of such mappings for several rows.
        Infinity is a number here; NaN is not, None stands for no value.
    grid : mapping or sequence of mappings
        Lists of values by name, of which all combinations are run, or the cells one by one.
    tolerance : float
        How far recomputed numbers may lie from the stored ones, relative or absolute, whichever
        allows more: the root mean square over a column of a cell. It is stored with the results.
    store : path, optional
        Where results go: ``<id>.csv`` and ``<id>.json``. By default `data/results` in the paper
        profile and `_build/results` in the quick one.
    n_jobs : int, optional
        Cells run side by side. By default what `joblib.parallel_config` says, hence one unless a
        cluster has been set up there.

    Returns
    -------
    Results
        Read back from the store.

    References
    ----------
    Random streams: `numpy.random.SeedSequence`. Parallel work: `joblib.Parallel`.

    Examples
    --------
    >>> import tempfile
    >>> def noise(sigma, rng):
    ...     return {"value": sigma * rng.normal()}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     experiment("DEMO-1", noise, {"sigma": [0.0, 1.0]}, store=folder)
    Results(id='DEMO-1', 2 rows of sigma, value, seconds)
    """
    _check.identifier("id", id)
    if not callable(function):
        raise TypeError(f"function must take the parameters of a cell, got {function!r}")
    tolerance = _check.scalar("tolerance", tolerance, least=0.0)
    if n_jobs is not None and (type(n_jobs) is not int or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")
    cells = _cells(grid)
    origin = provenance(function)
    folder = _folder(profile()) if store is None else Path(store)
    journal = _Journal(folder, id, origin)
    if profile() == "paper" and not journal.path.exists():
        finished = _finished(id, folder, cells, origin)
        if finished is not None:
            return finished

    runs = journal.read()
    left = [cell for cell in cells if _text(cell) not in runs]
    progress = _Progress(id, len(cells) - len(left), len(cells))
    for run in _run_all(id, function, left, n_jobs):
        journal.append(run)
        runs[_text(run["cell"])] = run
        progress.step()
    progress.close()
    _save(id, folder, [runs[_text(cell)] for cell in cells], {**origin, "tolerance": tolerance})
    journal.path.unlink()
    return stored(id, store=folder)


def stored(id: str, *, store: str | Path | None = None) -> Results:  # noqa: A002
    """Read stored results, after checking that nobody has touched them.

    Parameters
    ----------
    id : str
        The experiment's id.
    store : path, optional
        Where the results are. By default `data/results`, where the paper profile puts them.

    Returns
    -------
    Results
        Rows and provenance. A csv or a json that differs from the one that was stored is a
        ValueError.

    References
    ----------
    What is stored beside the rows is listed at `provenance`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = experiment("DEMO-1", lambda n, rng: {"twice": 2 * n}, {"n": [3]}, store=folder)
    ...     stored("DEMO-1", store=folder).rows[0]["twice"]
    6
    """
    folder = _folder("paper") if store is None else Path(store)
    table = folder / f"{_check.identifier('id', id)}.csv"
    try:
        origin = _vouched(table.with_suffix(".json"))
        content = table.read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"there are no stored results of {id!r}: {error.filename} is missing"
        ) from None
    if hashlib.sha256(content).hexdigest() != origin["csv_sha256"]:
        raise ValueError(
            f"{table} is not what the experiment stored: its SHA-256 differs from the one in "
            f"{table.stem}.json. Restore the file, or run the experiment again"
        )
    return Results(id, _from_csv(content, origin["columns"]), origin)


def recompute(
    id: str,  # noqa: A002
    function: Callable[..., Mapping[str, Any] | Sequence[Mapping[str, Any]]],
    *,
    cells: int = 3,
    rng: np.random.Generator | int,
    store: str | Path | None = None,
) -> tuple[Row, ...]:
    """Run stored cells again, chosen at random, and compare.

    Parameters
    ----------
    id : str
        The experiment's id.
    function : callable
        What the experiment ran on each cell.
    cells : int
        How many cells, at most; only those that took under 20 seconds are chosen from.
    rng : Generator or int
        Chooses the cells. Their own randomness is that of the stored run.
    store : path, optional
        Where the results are, by default `data/results`.

    Returns
    -------
    tuple of dict
        The cells that were run, empty where every one takes too long. Numbers outside the stored
        tolerance, or a text that differs, are an AssertionError that names cell and column.

    Notes
    -----
    Another kind of processor adds in another order. What is computed comes out the same; where
    networks train, they amplify the last digit, and single values move. A column of such values is
    therefore compared as a whole, by the root mean square of the differences.

    References
    ----------
    The tolerance is the one given to `experiment`.

    Examples
    --------
    >>> import tempfile
    >>> def noise(sigma, rng):
    ...     return {"value": sigma * rng.normal()}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = experiment("DEMO-1", noise, {"sigma": [1.0, 2.0]}, store=folder)
    ...     recompute("DEMO-1", noise, cells=1, rng=0, store=folder)
    ({'sigma': 1.0},)
    """
    if type(cells) is not int or cells < 1:
        raise ValueError(f"cells must be a whole number of at least 1, got {cells!r}")
    results = stored(id, store=store)
    names = list(results.provenance["parameters"])
    by_cell: dict[str, list[Row]] = {}
    for row in results.rows:
        by_cell.setdefault(_text({name: row[name] for name in names}), []).append(row)
    seeds = [_seed(id, {name: rows[0][name] for name in names}) for rows in by_cell.values()]
    if seeds != results.provenance["seeds"]:
        raise AssertionError(f"the seeds of experiment {id!r} do not follow from its id and cells")
    affordable = [rows for rows in by_cell.values() if rows[0]["seconds"] < AFFORDABLE]
    chosen = np.random.default_rng(rng).permutation(len(affordable))[:cells]
    again = []
    for rows in (affordable[index] for index in chosen):
        cell = {name: rows[0][name] for name in names}
        run = _run(id, function, cell)
        _compare(id, cell, rows, run["rows"], results.provenance["tolerance"])
        again.append(cell)
    return tuple(again)


def provenance(function: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Return where a result comes from: code, versions and machine.

    The hash of the code covers every source of the package and the source of `function`, without
    comments, layout and docstrings. No name of a host, a user or a folder is part of it.

    Parameters
    ----------
    function : callable, optional
        What was run, when it is not all in the package.

    Returns
    -------
    dict
        With ``code_sha256``, ``versions``, ``machine`` and ``profile``.

    References
    ----------
    `experiment` and `citable` store it beside what they write.

    Examples
    --------
    >>> sorted(provenance())
    ['code_sha256', 'function', 'machine', 'profile', 'versions']
    """
    code = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        code.update(path.relative_to(package).as_posix().encode())
        code.update(_hash_of_module(path, path.stat().st_mtime_ns))
    name = None
    if function is not None:
        try:
            code.update(_meaning(textwrap.dedent(inspect.getsource(function))).encode())
            name = f"{function.__module__}:{function.__qualname__}"
        except (TypeError, OSError):
            raise ValueError(
                "function must be a Python function whose source can be read, from a file or a "
                f"notebook, so that its results can be traced to it, got {function!r}"
            ) from None
    versions = {"python": platform.python_version()}
    for package_name in PACKAGES:
        try:
            versions[package_name] = metadata.version(package_name)
        except metadata.PackageNotFoundError:
            versions[package_name] = "not installed"
    return {
        "function": name,
        "code_sha256": code.hexdigest(),
        "profile": profile(),
        "versions": versions,
        "machine": {"cores": os.cpu_count(), "cpu": _cpu(), "platform": platform.platform()},
    }


def home() -> Path:
    """Return the folder that `data` and `_build` lie in: the clone, or where Python was started."""
    clone = Path(__file__).resolve().parents[1]
    return clone if (clone / "pyproject.toml").exists() else Path.cwd()


def to_csv(rows: Sequence[Row]) -> tuple[bytes, dict[str, str]]:
    """Return rows as csv, with every digit of every number, and the kind of each column."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    kinds = {name: _kind([row.get(name) for row in rows]) for name in names}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        values = ((row.get(name), _WRITE[kinds[name]]) for name in names)
        writer.writerow(["" if value is None else write(value) for value, write in values])
    return text.getvalue().encode(), kinds


def plain(name: str, value: Any) -> Value:
    """Return a number, text, boolean or None as Python's own kind; NaN is turned away."""
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        value = value.item()
    if value is not None and not isinstance(value, (str, bool, int, float)):
        raise TypeError(f"{name} must be a number, a text, a boolean or None, got {value!r}")
    if isinstance(value, float) and math.isnan(value):
        raise ValueError(f"{name} must not be NaN; None stands for no value")
    return value


# csv knows texts only: these write and read each kind of column without losing a digit. "mixed"
# is JSON, for the rare column in which, say, a number and a text stand side by side.
_WRITE: dict[str, Callable[[Any], str]] = {
    "float": lambda value: repr(float(value)),
    "int": str,
    "bool": lambda value: str(value).lower(),
    "str": str,
    "mixed": json.dumps,
}
_READ: dict[str, Callable[[str], Value]] = {
    "float": float,
    "int": int,
    "bool": lambda text: text == "true",
    "str": str,
    "mixed": json.loads,
}


def _kind(values: Sequence[Value]) -> str:
    present = [value for value in values if value is not None]
    types = {type(value) for value in present}
    # an empty field is None, and a lone carriage return would end the line
    if types <= {str} and not any(text == "" or "\r" in str(text) for text in present):
        return "str"
    if len(types) == 1 and types != {str}:
        return types.pop().__name__
    exact = all(abs(value) <= 2**53 for value in present if type(value) is int)
    return "float" if types == {int, float} and exact else "mixed"


def _from_csv(content: bytes, kinds: Mapping[str, str]) -> tuple[Row, ...]:
    lines = csv.reader(io.StringIO(content.decode(), newline=""))
    names = next(lines)
    return tuple(
        {
            name: None if text == "" else _READ[kinds[name]](text)
            for name, text in zip(names, line, strict=True)
        }
        for line in lines
    )


def _cells(grid: Grid) -> list[Row]:
    """Return the cells of a grid, checked, in order, each number of the kind it is stored as."""
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
                raise TypeError(f"grid[{name!r}] must be a list of values, got {values!r}")
        raw = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    else:
        if not isinstance(grid, Sequence) or not all(isinstance(cell, Mapping) for cell in grid):
            raise TypeError(f"grid must be lists of values by name, or mappings, got {grid!r}")
        raw = [dict(cell) for cell in grid]
    if not raw or not raw[0]:
        raise ValueError(
            f"grid must have at least one cell with at least one parameter, got {grid}"
        )
    names = list(raw[0])
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name in ("rng", "seconds"):
            raise ValueError(
                "grid must name its parameters by words that Python takes as arguments, "
                f"other than rng and seconds, got {name!r}"
            )
    for cell in raw:
        if set(cell) != set(names):
            raise ValueError(f"grid must have the same parameters in each cell, got {cell}")
    cells = [{name: plain(f"grid[{name!r}]", cell[name]) for name in names} for cell in raw]
    cells = list(_from_csv(*to_csv(cells)))
    if len({_text(cell) for cell in cells}) < len(cells):
        raise ValueError(
            "grid must not hold a cell twice; a repetition needs a parameter of its own"
        )
    return cells


def _text(cell: Row) -> str:
    """Return what identifies a cell: 1 and 1.0 are the same, and so is another order of names."""
    same = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in cell.items()
    }
    return json.dumps(same, sort_keys=True)


def _seed(id: str, cell: Row) -> int:  # noqa: A002
    """Return the seed of a cell: 53 bits, which every reader of JSON keeps exactly."""
    digest = hashlib.sha256(f"{id} {_text(cell)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 11


def _run(id: str, function: Callable[..., Any], cell: Row) -> dict[str, Any]:  # noqa: A002
    """Run one cell, here or on another machine."""
    start = time.perf_counter()
    try:
        returned = function(**cell, rng=np.random.default_rng(_seed(id, cell)))
        seconds = time.perf_counter() - start
        rows = [returned] if isinstance(returned, Mapping) else returned
        if not isinstance(rows, Sequence) or not rows:
            raise TypeError(f"function must return a mapping or a list of them, got {returned!r}")
        clean = []
        for row in rows:
            if not isinstance(row, Mapping) or not row:
                raise TypeError(f"function must return mappings that hold something, got {row!r}")
            taken = {*cell, "seconds"} & set(row)
            if taken:
                raise ValueError(f"function must not return a parameter or seconds, got {taken}")
            clean.append({str(name): plain(f"{name!r}", value) for name, value in row.items()})
    except Exception as error:
        error.add_note(f"in cell {cell} of experiment {id!r}")
        raise
    return {"cell": cell, "seconds": seconds, "rows": clean}


def _run_all(
    id: str,  # noqa: A002
    function: Callable[..., Any],
    cells: Sequence[Row],
    n_jobs: int | None,
) -> Iterator[dict[str, Any]]:
    """Yield each run as it ends; one cell a task, so that a kill costs the running cells only."""
    calls = [joblib.delayed(_run)(id, function, cell) for cell in cells]
    try:
        parallel = joblib.Parallel(n_jobs, batch_size=1, return_as="generator_unordered")
    except ValueError:
        # Some backends, Ray's among them, hand back whole lists only: go round by round.
        with joblib.Parallel(n_jobs, batch_size=1) as parallel:
            at_once = parallel._effective_n_jobs()
            for first in range(0, len(calls), at_once):
                yield from parallel(calls[first : first + at_once])
    else:
        yield from parallel(calls)


class _Journal:
    """The finished cells of a run that has not ended, one a line.

    The name carries code and versions, so that a journal of other code is never read.
    """

    def __init__(self, folder: Path, id: str, origin: Mapping[str, Any]) -> None:  # noqa: A002
        key = json.dumps([origin["code_sha256"], origin["versions"]], sort_keys=True)
        self.path = folder / f"{id}.{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsonl"
        self.id = id

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the finished runs by cell, and leave the file ready for more."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in self.path.parent.glob(f"{self.id}.*.jsonl")]
        for other in sorted({*others} - {self.path.name}):
            sys.stderr.write(
                f"{self.id}: {other} holds cells of a run by other code or versions, which are "
                f"not used. If the change cannot matter here, rename it to {self.path.name}\n"
            )
        with self.path.open("a+b") as file:
            file.seek(0)
            whole, _, torn = file.read().rpartition(b"\n")
            if torn:  # killed while writing
                file.truncate(len(whole) + 1 if whole else 0)
        runs = {}
        for number, line in enumerate(whole.split(b"\n") if whole else []):
            try:
                run = json.loads(line)
                runs[_text(run["cell"])] = run
            except (ValueError, KeyError, TypeError):
                raise ValueError(
                    f"line {number + 1} of {self.path} cannot be read: repair or remove it to go on"
                ) from None
        return runs

    def append(self, run: Mapping[str, Any]) -> None:
        """Put a run on disk, not merely on its way there."""
        with self.path.open("ab") as file:
            file.write(json.dumps(run).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


class _Progress:
    """How far a run is and how long it will take, on the standard error stream.

    A terminal gets one line that changes, a log a line now and then. A notebook gets one line that
    changes, in the paper profile: pages are built in the quick one, and should not show it.
    """

    def __init__(self, id: str, done: int, total: int) -> None:  # noqa: A002
        self.id, self.first, self.done, self.total = id, done, done, total
        self.start = time.monotonic()
        self.said = self.start
        self.line: Any = None
        self.terminal = sys.stderr.isatty()
        self.notebook = _in_notebook()
        if self.notebook and profile() == "paper":
            from IPython.display import display

            self.line = display({"text/plain": self._state()}, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def step(self) -> None:
        """Count one more cell, and say so if the last word was long enough ago."""
        self.done += 1
        pause = 0.1 if self.terminal else 2.0 if self.notebook else 10.0
        if time.monotonic() - self.said >= pause:
            self._say("")

    def close(self) -> None:
        """Say that all is done."""
        self._say("\n")

    def _say(self, end: str) -> None:
        self.said = time.monotonic()
        if self.line is not None:
            self.line.update({"text/plain": self._state()}, raw=True)
        elif self.terminal:
            sys.stderr.write(f"\r\x1b[K{self._state()}{end}")
            sys.stderr.flush()
        elif not self.notebook:
            sys.stderr.write(f"{self._state()}\n")
            sys.stderr.flush()

    def _state(self) -> str:
        gone = time.monotonic() - self.start
        text = f"{self.id}: {self.done} of {self.total} cells, {_duration(gone)}"
        ran = self.done - self.first
        if ran and self.done < self.total:
            text += f", about {_duration(gone / ran * (self.total - self.done))} left"
        return text


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def _folder(at: Literal["quick", "paper"]) -> Path:
    return home() / ("data/results" if at == "paper" else "_build/results")


def _save(
    id: str,  # noqa: A002
    folder: Path,
    runs: Sequence[Mapping[str, Any]],
    origin: Mapping[str, Any],
) -> None:
    """Write csv and json; the csv first, so that a json never vouches for what is not there."""
    rows = [
        {**run["cell"], **row, "seconds": round(run["seconds"], 4)}
        for run in runs
        for row in run["rows"]
    ]
    names = list(runs[0]["cell"])
    # seconds stand last whatever columns later cells bring
    columns = [*dict.fromkeys(name for row in rows for name in row if name != "seconds"), "seconds"]
    content, kinds = to_csv([{name: row.get(name) for name in columns} for row in rows])
    about = {
        "id": id,
        "csv_sha256": hashlib.sha256(content).hexdigest(),
        "columns": kinds,
        "parameters": {
            name: list(dict.fromkeys(_standard(run["cell"][name]) for run in runs))
            for name in names
        },
        "seeds": [_seed(id, run["cell"]) for run in runs],
        "seconds": round(math.fsum(run["seconds"] for run in runs), 3),
        **origin,
    }
    about["json_sha256"] = _json_sha256(about)
    write_whole(folder / f"{id}.csv", content)
    text = json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(folder / f"{id}.json", text.encode())


def _json_sha256(about: Mapping[str, Any]) -> str:
    """Return the hash of all that a json says besides this hash."""
    rest = {name: value for name, value in about.items() if name != "json_sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _vouched(path: Path) -> dict[str, Any]:
    """Read a json that nobody has touched."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not what an experiment stored: {error}") from None
    if not isinstance(about, dict) or about.get("json_sha256") != _json_sha256(about):
        raise ValueError(
            f"{path} is not what the experiment stored: its content differs from the hash that it "
            "holds. Restore the file, or run the experiment again"
        )
    return about


def _standard(value: Value) -> Value:
    """Return what JSON knows: it has no infinity."""
    return repr(value) if isinstance(value, float) and math.isinf(value) else value


def _finished(
    id: str,  # noqa: A002
    folder: Path,
    cells: Sequence[Row],
    origin: Mapping[str, Any],
) -> Results | None:
    """Return the stored results if they are of these cells and this code."""
    try:
        results = stored(id, store=folder)
    except (FileNotFoundError, ValueError):
        return None
    same = all(results.provenance[key] == origin[key] for key in ("code_sha256", "versions"))
    seeds = [_seed(id, cell) for cell in cells]
    return results if same and results.provenance["seeds"] == seeds else None


def _compare(
    id: str,  # noqa: A002
    cell: Row,
    before: Sequence[Row],
    after: Sequence[Row],
    tolerance: float,
) -> None:
    """Raise an AssertionError if a column is not what was stored."""
    where = f"in cell {cell} of experiment {id!r}"
    if len(before) != len(after):
        raise AssertionError(f"{len(before)} rows are stored, {len(after)} recomputed {where}")
    apart: dict[str, list[float]] = {}
    for old, new in zip(before, after, strict=True):
        for name in [name for name in {**old, **new} if name not in {*cell, "seconds"}]:
            was, now = old.get(name), new.get(name)
            if _is_number(was) and _is_number(now):
                gap = 0.0 if was == now else abs(was - now) / max(1.0, abs(was), abs(now))
                apart.setdefault(name, []).append(gap if gap >= 0.0 else math.inf)
            elif was != now or type(was) is not type(now):
                raise AssertionError(
                    f"{name} is stored as {was!r} and recomputed as {now!r} {where}"
                )
    for name, gaps in apart.items():
        mean_square = math.sqrt(math.fsum(gap**2 for gap in gaps) / len(gaps))
        if mean_square > tolerance:
            worst = gaps.index(max(gaps))
            raise AssertionError(
                f"{name} is stored as {before[worst][name]!r} and recomputed as "
                f"{after[worst][name]!r} {where}; its {len(gaps)} values differ by "
                f"{mean_square:.3g} in the root mean square, with a tolerance of {tolerance:g}"
            )


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _meaning(source: str) -> str:
    """Return code without comments, layout and docstrings: what they say does not change a run."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a lambda is cut out together with a part of its line
        return source
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


@functools.cache
def _hash_of_module(path: Path, modified: int) -> bytes:  # noqa: ARG001 - part of the cache's key
    return hashlib.sha256(_meaning(path.read_text(encoding="utf-8")).encode()).digest()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
