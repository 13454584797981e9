"""Every benchmark in one table, which the book's page on speed shows.

Each other module of this folder has a function `measure` that returns rows: `what` was computed,
the `baseline` it is compared with, `seconds` and `baseline_seconds`, their `ratio`, and the
`agreement` of the results. Both sides of a row are timed in the same run, on the same machine.
"""

import importlib
import pkgutil
from typing import Any

import benchmarks
from auditkit.experiment import study

APART = ("__main__", "speed", "threshold_rules")
TOPICS = [name for _, name, _ in pkgutil.iter_modules(benchmarks.__path__) if name not in APART]


@study(
    "speed", paper={"topic": TOPICS}, needs="an idle machine and benchmarks/peers-requirements.txt"
)
def speed(topic: str) -> list[dict[str, Any]]:
    """Return one topic's rows; the name `seconds` is taken by the time of the whole cell."""
    rows = importlib.import_module(f"benchmarks.{topic}").measure()
    return [
        {
            ("seconds_ours" if name == "seconds" else name): (
                f"{value:.1g}" if name == "agreement" and isinstance(value, float) else value
            )
            for name, value in row.items()
        }
        for row in rows
    ]
