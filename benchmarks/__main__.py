"""Run every benchmark and store the table that the book's page on speed shows.

Each module of this folder has a function `measure` that returns rows: `what` was computed, the
`baseline` it is compared with, `seconds` and `baseline_seconds`, their `ratio`, and the
`agreement` of the results. Both sides of a row are timed in the same run, on the same machine.
"""

import importlib
import pkgutil
from typing import Any

import numpy as np

import benchmarks
from auditkit.experiment import experiment, home

TOPICS = [name for _, name, _ in pkgutil.iter_modules(benchmarks.__path__) if name != "__main__"]


def measure(topic: str, rng: np.random.Generator) -> list[dict[str, Any]]:  # noqa: ARG001
    """Return one topic's rows; the name `seconds` is taken by the time of the whole cell."""
    rows = importlib.import_module(f"benchmarks.{topic}").measure()
    return [
        {"seconds_ours" if name == "seconds" else name: value for name, value in row.items()}
        for row in rows
    ]


if __name__ == "__main__":
    results = experiment("speed", measure, {"topic": TOPICS}, store=home() / "data" / "results")
    for row in results.rows:
        print(f"{row['ratio']:8.0f} times {row['baseline']}: {row['what']}")
