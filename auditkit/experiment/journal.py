"""Runs that survive: a seed for each cell, finished cells on disk at once, one process at a time.

The journal of a run that has not ended lies beside its results, one finished cell a line. It can be
committed, so that a long study goes on elsewhere. Its name carries the code, so that cells of other
code are never taken for its own.
"""

import contextlib
import errno
import hashlib
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

try:
    import fcntl
except ImportError:  # Windows: two processes must not run one study at a time there
    fcntl = None  # type: ignore[assignment]

Value = str | int | float | bool | None
Cell = dict[str, Any]  # of Values
Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]


def cells_of(grid: Grid) -> list[Cell]:
    """Return the cells of a grid in order, checked, each parameter of one type throughout."""
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
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
    for name in raw[0]:
        if not isinstance(name, str) or not name.isidentifier() or name in ("rng", "seconds"):
            raise ValueError(
                "grid must name its parameters by words that Python takes as arguments, "
                f"other than rng and seconds, got {name!r}"
            )
    for cell in raw:
        if set(cell) != set(raw[0]):
            raise ValueError(f"grid must have the same parameters in each cell, got {cell}")
    cells = [{name: plain(f"grid[{name!r}]", cell[name]) for name in raw[0]} for cell in raw]
    for name in raw[0]:
        if {type(cell[name]) for cell in cells} == {int, float}:
            for cell in cells:
                cell[name] = 1.0 * cell[name]  # type: ignore[operator]
    if len({identity(cell) for cell in cells}) < len(cells):
        raise ValueError(
            "grid must not hold a cell twice; a repetition needs a parameter of its own"
        )
    return cells


def identity(cell: Cell) -> str:
    """Return what identifies a cell: 1 and 1.0 are the same, and so is another order of names."""
    same = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in cell.items()
    }
    return json.dumps(same, sort_keys=True)


def seed_of(id: str, cell: Cell) -> int:  # noqa: A002
    """Return the seed of a cell: 53 bits, which every reader of JSON keeps exactly."""
    digest = hashlib.sha256(f"{id} {identity(cell)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 11


def plain(name: str, value: Any) -> Value:
    """Return a number, text, boolean or None as Python's own kind; NaN is turned away."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is not None and not isinstance(value, str | bool | int | float):
        raise TypeError(f"{name} must be a number, a text, a boolean or None, got {value!r}")
    if isinstance(value, float) and math.isnan(value):
        raise ValueError(f"{name} must not be NaN; None stands for no value")
    return value


def run_cell(id: str, function: Callable[..., Any], cell: Cell, draws: bool) -> dict[str, Any]:  # noqa: A002
    """Run one cell, here or on another machine."""
    start = time.perf_counter()
    chance = {"rng": np.random.default_rng(seed_of(id, cell))} if draws else {}
    try:
        returned = function(**cell, **chance)
        seconds = time.perf_counter() - start
        if hasattr(returned, "to_dict") and hasattr(returned, "columns"):
            returned = returned.to_dict("records")
        rows = [returned] if isinstance(returned, Mapping) else returned
        if not isinstance(rows, Sequence) or not rows:
            raise TypeError(
                f"function must return a mapping, a list of them or a table, got {returned!r}"
            )
        clean = []
        for row in rows:
            if not isinstance(row, Mapping) or not row:
                raise TypeError(f"function must return mappings that hold something, got {row!r}")
            if taken := {*cell, "seconds"} & set(row):
                raise ValueError(f"function must not return a parameter or seconds, got {taken}")
            clean.append({str(name): plain(f"{name!r}", value) for name, value in row.items()})
    except Exception as error:
        error.add_note(f"in cell {cell} of experiment {id!r}")
        raise
    return {"cell": cell, "seconds": seconds, "rows": clean}


def run_cells(
    id: str,  # noqa: A002
    function: Callable[..., Any],
    cells: Sequence[Cell],
    draws: bool,
    n_jobs: int | None,
) -> Iterator[dict[str, Any]]:
    """Yield each run as it ends; one cell a task, so that a kill costs the running cells only."""
    calls = [joblib.delayed(run_cell)(id, function, cell, draws) for cell in cells]
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


class Journal:
    """The finished cells of a run that has not ended; whoever holds it is alone with the study.

    Parameters
    ----------
    folder : path
        Where the results go.
    id : str
        The study's id.
    code : str
        The hash of its code.
    """

    def __init__(self, folder: Path, id: str, code: str) -> None:  # noqa: A002
        self.path = folder / f"{id}.{code[:16]}.jsonl"
        self.id = id

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait for another process that runs the same study, then keep others waiting."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with self.path.open("ab") as file:
                if fcntl is not None:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        sys.stderr.write(f"{self.id}: another process runs it; waiting for it\n")
                        fcntl.flock(file, fcntl.LOCK_EX)
                # who ended removed the file: then there is a new one to hold
                if self.path.exists() and os.path.samestat(
                    os.fstat(file.fileno()), self.path.stat()
                ):
                    yield
                    return

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the finished runs by cell, and leave the file ready for more."""
        others = {path.name for path in self.path.parent.glob(f"{self.id}.*.jsonl")}
        for other in sorted(others - {self.path.name}):
            sys.stderr.write(
                f"{self.id}: {other} holds cells of a run by other code, which are not used. If "
                f"the change cannot matter here, rename it to {self.path.name}\n"
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
                runs[identity(run["cell"])] = run
            except (ValueError, KeyError, TypeError):
                raise ValueError(
                    f"line {number + 1} of {self.path} cannot be read: repair or remove it to go on"
                ) from None
        return runs

    def append(self, run: Mapping[str, Any]) -> None:
        """Put a run on disk, not merely on its way there, as a whole line or none."""
        line = json.dumps(run).encode() + b"\n"
        with self.path.open("ab", buffering=0) as file:
            before = file.seek(0, os.SEEK_END)
            try:
                if file.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError as error:
                file.truncate(before)
                told = f"{error.strerror or error}; this cell was not written, those before it are"
                raise OSError(error.errno, told, str(self.path)) from error
