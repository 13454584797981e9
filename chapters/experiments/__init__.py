"""The studies of the chapters, one folder a paper, and what became of the papers' claims.

`python -m experiments list` shows all studies; `status`, `run`, `recompute` and `stamp` do what
their names say. A study is a function of one cell with its grids; a paper's `claims.py` records
what was found.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

from auditkit.experiment import STUDIES, Study

PLACES = ("experiments", "benchmarks")
CLONE = str(Path(__file__).parents[2])


def modules() -> Iterator[str]:
    """Yield the name of every module that may hold studies or claims."""
    if CLONE not in sys.path[:1]:
        sys.path.insert(0, CLONE)  # a library installs a package of the name benchmarks
    for place in PLACES:
        package = importlib.import_module(place)
        for found in pkgutil.walk_packages(package.__path__, f"{place}."):
            if not found.name.endswith("__main__"):
                yield found.name


def studies() -> dict[str, Study]:
    """Return every study by id, after importing all modules."""
    for name in modules():
        if not name.endswith(".claims"):
            importlib.import_module(name)
    return {id_: STUDIES[id_] for id_ in sorted(STUDIES)}
