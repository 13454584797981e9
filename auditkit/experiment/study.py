"""Studies: a function of one cell, the grids it runs on, and the table that it leaves.

A study says once what is run, at which scale, and how near a second run has to come. The list of
all studies, their order and the command that runs them follow from that.
"""

import functools
import importlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditkit import _check
from auditkit.experiment.code import sha256_of
from auditkit.experiment.journal import (
    Cell,
    Grid,
    Journal,
    cells_of,
    identity,
    run_cell,
    run_cells,
    seed_of,
)
from auditkit.experiment.provenance import (
    about,
    compare,
    frame_of,
    from_json,
    plain_json,
    profile,
    provenance,
    results_folder,
    save,
    stored,
    write_json,
)

if TYPE_CHECKING:
    from pandas import DataFrame

AFFORDABLE = 20.0  # seconds: what a test can spend on a cell
STAMPED = 5  # cells that come out equal before a result is said to be of today's code

# every study whose module has been imported, by id
STUDIES: dict[str, "Study"] = {}


@dataclass(eq=False)
class Study:
    """A function of one cell with its grids; calling it runs the function.

    Attributes
    ----------
    id : str
        Names the study and its files.
    function : callable
        What runs on a cell.
    paper, live : grid
        The cells of the paper's scale, whose results are stored, and those that run on a page.
    tolerance : float
        How near a second run has to come, relative to the size of a column of a cell.
    reduced : sequence of mapping
        Small cells that a test runs again where those of the paper's scale are too long, or where
        networks amplify the last digit. Their results are stored beside the others.
    needs : str or None
        What a second run needs that is not shipped.
    sources : tuple of str
        The stored results that the function reads.
    """

    id: str
    function: Callable[..., Any] = field(repr=False)
    paper: Grid = field(repr=False)
    live: Grid = field(repr=False)
    tolerance: float
    reduced: Sequence[Cell] = field(repr=False)
    needs: str | None
    sources: tuple[str, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        return self.function(*args, **kwargs)

    def __reduce__(self) -> Any:
        # workers find a study of a module by its id; any other goes along whole
        module = self.function.__module__
        if any(value is self for value in vars(sys.modules[module]).values()):
            return _find, (module, self.id)
        return Study, tuple(self.__dict__[name] for name in self.__dataclass_fields__)

    def run(self, *, n_jobs: int | None = None, store: str | Path | None = None) -> "DataFrame":
        """Run the cells of the profile and return their table.

        Parameters
        ----------
        n_jobs : int, optional
            Cells run side by side, as in `experiment`.
        store : path, optional
            Where results go, as in `experiment`.

        Returns
        -------
        DataFrame
            One row a result.
        """
        grid = self.paper if profile() == "paper" else self.live
        return experiment(self.id, self, grid, tolerance=self.tolerance, store=store, n_jobs=n_jobs)

    def stale(self, *, store: str | Path | None = None) -> list[str]:
        """Return what has changed since the results were stored: definitions, sources, cells."""
        said, now = about(self.id, store=store), origin_of(self)
        names = {**said.get("code", {}), **now["code"]}
        changed = [
            name for name in names if said.get("code", {}).get(name) != now["code"].get(name)
        ]
        before, after = said.get("sources", {}), now.get("sources", {})
        changed += [f"stored {one}" for one in after if before.get(one) != after[one]]
        if said["seeds"] != [seed_of(self.id, cell) for cell in cells_of(self.paper)]:
            changed.append("the grid")
        if [run["cell"] for run in from_json(said.get("reduced", []))] != list(self.reduced):
            changed.append("the reduced cells")
        return changed

    def cells(self, *, store: str | Path | None = None) -> list[tuple[Cell, "DataFrame"]]:
        """Return the cells that can be run again, each with the rows that are stored of it."""
        said = about(self.id, store=store)
        if said.get("reduced"):
            return [(run["cell"], frame_of([run])) for run in from_json(said["reduced"])]
        frame = stored(self.id, store=store)
        rows: dict[str, list[int]] = {}
        for place, cell in enumerate(_cells_in(frame, list(said["parameters"]))):
            rows.setdefault(identity(cell), []).append(place)
        return [(cell, frame.iloc[rows[identity(cell)]]) for cell in cells_of(self.paper)]

    def affordable(self, *, store: str | Path | None = None) -> list[tuple[Cell, "DataFrame"]]:
        """Return those of `cells` that a test can run again."""
        return [one for one in self.cells(store=store) if _seconds(one[1]) < AFFORDABLE]

    def recompute(self, cell: Cell, before: "DataFrame") -> None:
        """Run a cell again; what does not come out as stored is an AssertionError that says so."""
        run = run_cell(self.id, self, dict(cell), draws(self))
        try:
            compare(before, frame_of([run]), self.tolerance, apart=tuple(cell))
        except AssertionError as error:
            error.add_note(f"in cell {cell} of study {self.id!r}")
            raise

    def stamp(self, *, store: str | Path | None = None) -> list[Cell]:
        """Record today's code for stored results, after cells of theirs have come out equal.

        For a change that cannot matter. Where it does, run the study again. Five cells are drawn
        of those that can be afforded, by the code, or the cheapest one where none can be.
        """
        folder = results_folder("paper") if store is None else Path(store)
        said = about(self.id, store=folder)
        if said["seeds"] != [seed_of(self.id, cell) for cell in cells_of(self.paper)]:
            raise ValueError(f"the grid of study {self.id!r} has changed: run it again")
        every = self.cells(store=folder)
        cells = self.affordable(store=folder) or [min(every, key=lambda one: _seconds(one[1]))]
        now = origin_of(self)
        drawn = random.Random(now["code_sha256"]).sample(cells, min(STAMPED, len(cells)))
        for cell, rows in drawn:
            self.recompute(cell, rows)
        reduced = from_json(said.get("reduced", []))
        if [run["cell"] for run in reduced] != list(self.reduced):
            reduced = run_reduced(self)
        write_json(
            folder / f"{self.id}.json",
            {
                **said,
                **{name: now[name] for name in ("function", "code", "code_sha256")},
                **({"sources": now["sources"]} if "sources" in now else {}),
                "tolerance": self.tolerance,
                "reduced": plain_json(reduced),
                "stamped": {
                    "cells": [plain_json(cell) for cell, _ in drawn],
                    "versions": now["versions"],
                },
            },
        )
        return [cell for cell, _ in drawn]


def _find(module: str, id: str) -> Study:  # noqa: A002
    importlib.import_module(module)
    return STUDIES[id]


def study(
    id: str,  # noqa: A002
    *,
    paper: Grid,
    live: Grid | None = None,
    tolerance: float = 1e-9,
    reduced: Grid = (),
    needs: str | None = None,
    sources: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Study]:
    """Make a function of one cell a study.

    Parameters
    ----------
    id : str
        Names the study and its files; never changes.
    paper : grid
        The paper's scale: lists of values by name, of which all combinations are run, or the
        cells one by one.
    live : grid, optional
        What runs on a page, in seconds; by default the same.
    tolerance : float
        How near a second run has to come: the root mean square of the differences in a column of
        a cell, relative to that of the column.
    reduced : grid, optional
        Small cells for the comparison, where those of the paper's scale take over 20 seconds or
        train networks, which amplify what another processor rounds in another way.
    needs : str, optional
        What a second run needs that is not shipped, for who wants to run it.
    sources : sequence of str
        Ids of the stored results that the function reads: when they change it is stale.

    Returns
    -------
    callable
        Makes a `Study` of a function that takes the parameters of a cell by name, and `rng`, a
        numpy Generator, if it draws anything.

    References
    ----------
    `experiment` says what a cell may return, and how runs survive.

    Examples
    --------
    >>> @study("demo", paper={"sigma": [1.0, 2.0, 3.0]}, live={"sigma": [2.0]})
    ... def variance(sigma):
    ...     return {"variance": sigma**2}
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     variance.run(store=folder)[["sigma", "variance"]]
       sigma  variance
    0    2.0       4.0
    """
    _check.identifier("id", id)
    tolerance = _check.scalar("tolerance", tolerance, least=0.0)
    for grid in (paper, live or paper, *([reduced] if reduced else [])):
        cells_of(grid)

    def make(function: Callable[..., Any]) -> Study:
        if not callable(function):
            raise TypeError(f"function must take the parameters of a cell, got {function!r}")
        other = STUDIES.get(id)
        same = other is not None and other.function.__qualname__ == function.__qualname__
        if other is not None and not same:
            raise ValueError(
                f"id must be of one study only, got {id!r}, which is "
                f"{other.function.__module__}.{other.function.__qualname__}"
            )
        cells = tuple(cells_of(reduced)) if reduced else ()
        made = Study(id, function, paper, live or paper, tolerance, cells, needs, tuple(sources))
        functools.update_wrapper(made, function)
        STUDIES[id] = made
        return made

    return make


def experiment(
    id: str,  # noqa: A002
    function: Callable[..., Any],
    grid: Grid,
    *,
    tolerance: float = 1e-9,
    store: str | Path | None = None,
    n_jobs: int | None = None,
) -> "DataFrame":
    """Run a function on every cell of a grid, and lose nothing when killed.

    Each cell draws from its own random stream, which depends on the experiment's id and on the
    cell, never on the order of running: a grid that grows keeps its old cells. A finished cell is
    on disk before the next one is waited for. A run that was killed goes on where it stopped, if
    the code that the function reaches is the same; if not it starts anew, says so, and leaves the
    old journal alone. Two processes that start one experiment do so one after the other.

    In the paper profile a finished experiment of the same code is returned as stored. In the quick
    one it runs again, because it is there to be seen running.

    Parameters
    ----------
    id : str
        Names the experiment and its files.
    function : callable or Study
        Takes the parameters of one cell by name and, if it draws anything, `rng`, a numpy
        Generator. Returns a mapping of numbers, texts, booleans and None, or for several rows a
        list of such mappings or a DataFrame. Infinity is a number here; NaN is not, None stands
        for no value.
    grid : mapping or sequence of mappings
        Lists of values by name, of which all combinations are run, or the cells one by one.
    tolerance : float
        How near a second run has to come, as `study` has it. It is stored with the results.
    store : path, optional
        Where results go: ``<id>.csv`` and ``<id>.json``. By default `data/results` in the paper
        profile and `_build/results` in the quick one.
    n_jobs : int, optional
        Cells run side by side. By default what `joblib.parallel_config` says, hence one unless a
        cluster has been set up there.

    Returns
    -------
    DataFrame
        A row a result, in the order of the grid: the cell's parameters, what its function
        returned, and ``seconds``, the time of the whole cell. ``attrs`` say where it comes from.

    References
    ----------
    Random streams: `numpy.random.SeedSequence`. Parallel work: `joblib.Parallel`.

    Examples
    --------
    >>> import tempfile
    >>> def noise(sigma, rng):
    ...     return {"value": 1.0 + sigma * rng.normal()}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     experiment("DEMO-1", noise, {"sigma": [0.0]}, store=folder)["value"].tolist()
    [1.0]
    """
    _check.identifier("id", id)
    if not callable(function):
        raise TypeError(f"function must take the parameters of a cell, got {function!r}")
    tolerance = _check.scalar("tolerance", tolerance, least=0.0)
    if n_jobs is not None and (type(n_jobs) is not int or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")
    cells = cells_of(grid)
    origin = origin_of(function, tolerance)
    folder = results_folder() if store is None else Path(store)
    journal = Journal(folder, id, origin["code_sha256"])
    with journal.alone():
        runs = journal.read()
        if profile() == "paper" and not runs and _is_current(id, folder, cells, origin):
            journal.path.unlink()
            return stored(id, store=folder)
        left = [cell for cell in cells if identity(cell) not in runs]
        for run in _watched(id, function, left, len(cells), n_jobs):
            journal.append(run)
            runs[identity(run["cell"])] = run
        again = isinstance(function, Study) and profile() == "paper"
        reduced = run_reduced(function) if again else []  # type: ignore[arg-type]
        save(id, folder, [runs[identity(cell)] for cell in cells], origin, reduced)
        journal.path.unlink()
    return stored(id, store=folder)


def origin_of(function: Callable[..., Any], tolerance: float = 0.0) -> dict[str, Any]:
    """Return the provenance of what a function gives now, with that of what it reads."""
    raw = function.function if isinstance(function, Study) else function
    sources = function.sources if isinstance(function, Study) else ()
    origin = provenance(raw)
    if sources:
        origin["sources"] = {one: about(one)["csv_sha256"] for one in sources}
        origin["code_sha256"] = sha256_of([origin["code"], origin["sources"]])
    return {**origin, "profile": profile(), "tolerance": tolerance}


def draws(function: Callable[..., Any]) -> bool:
    """Say whether a function takes `rng`; without it there is no chance in it."""
    raw = function.function if isinstance(function, Study) else function
    taken = inspect.signature(raw).parameters.values()
    return any(one.name == "rng" or one.kind is one.VAR_KEYWORD for one in taken)


def _watched(
    id: str,  # noqa: A002
    function: Callable[..., Any],
    cells: Sequence[Cell],
    total: int,
    n_jobs: int | None,
) -> Any:
    """Run the cells and show how far they are, but not on a page that is being built."""
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    return tqdm(
        run_cells(id, function, cells, draws(function), n_jobs),
        desc=id,
        unit="cell",
        initial=total - len(cells),
        total=total,
        mininterval=0.1 if terminal else 30.0,
        disable=not cells or (profile() == "quick" and not terminal),
    )


def run_reduced(one: Study) -> list[dict[str, Any]]:
    """Run the reduced cells of a study."""
    return [run_cell(one.id, one, dict(cell), draws(one)) for cell in one.reduced]


def _seconds(rows: "DataFrame") -> float:
    return float(rows["seconds"].iloc[0])


def _cells_in(frame: "DataFrame", names: list[str]) -> Iterator[Cell]:
    """Yield the cell of each row."""
    for values in frame[names].astype(object).where(frame[names].notna(), None).to_numpy():
        yield dict(zip(names, values, strict=True))


def _is_current(id: str, folder: Path, cells: Sequence[Cell], origin: Mapping[str, Any]) -> bool:  # noqa: A002
    """Say whether the stored results are of these cells and this code."""
    try:
        said = about(id, store=folder)
    except (FileNotFoundError, ValueError):
        return False
    seeds = [seed_of(id, cell) for cell in cells]
    return bool(said["code_sha256"] == origin["code_sha256"] and said["seeds"] == seeds)
