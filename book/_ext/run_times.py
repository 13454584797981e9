"""Say what each page of code takes, in seconds and memory: the page on time and memory.

`book/build.py` leaves a note of each run in `_build/runs`. What the paper's scale takes is in the
stored results, whose names are in the pages that draw them.
"""

import json
import re
from pathlib import Path
from typing import Any

from citable_figures import reading_order
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PAGE = "book/times"
STORED = re.compile(r'\bstored\(\s*"([a-z0-9-]+)"')


def runs(app: Sphinx) -> list[dict[str, Any]]:
    """Return what was noted of each run, in the order of reading."""
    folder = Path(app.srcdir) / "_build" / "runs"
    noted = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    by_page = {run["page"]: run for run in noted}
    return [by_page[page] for page in reading_order(app) if page in by_page]


def results(app: Sphinx, page: str) -> list[dict[str, Any]]:
    """Return the records of the stored results that a page draws, and of what those count."""
    text = (Path(app.srcdir) / f"{page}.md").read_text(encoding="utf-8")
    names: list[str] = STORED.findall(text)
    found: dict[str, dict[str, Any]] = {}
    while names:
        name = names.pop()
        path = Path(app.srcdir) / "data" / "results" / f"{name}.json"
        if name not in found and path.exists():
            found[name] = json.loads(path.read_text(encoding="utf-8"))
            names += found[name].get("sources", [])
    return list(found.values())


def write_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill in a table for the run of this build and one for the stored results."""
    if docname != PAGE:
        return
    here = [
        f"| {link(run['page'])} | {run['profile']} | {run['seconds']:.0f} s "
        f"| {run['megabytes']:,} MB |"
        for run in runs(app)
    ]
    cores = max((run["cores"] for run in runs(app)), default=0)
    paper = []
    for page in reading_order(app):
        if found := results(app, page):
            seconds = sum(result["seconds"] for result in found)
            longest = max(found, key=lambda result: result["seconds"])
            paper.append(
                f"| {link(page)} | {len(found)} | {spoken(seconds)} "
                f"| `{longest['id']}`, {spoken(longest['seconds'])} |"
            )
    said = {
        "RUNS": "\n".join(["| page | profile | time | memory |", "|---|---|--:|--:|", *here]),
        "CORES": str(cores),
        "STORED": "\n".join(
            ["| page | experiments | all cells | longest |", "|---|--:|--:|---|", *paper]
        ),
    }
    source[0] = re.sub(r"<!-- ([A-Z]+) -->", lambda match: said[match[1]], source[0])


def link(page: str) -> str:
    """Return a link to a page by its own title, which Sphinx fills in."""
    return f"{{doc}}`/{page}`"


def spoken(seconds: float) -> str:
    """Return a time as one says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def always_read_the_page(app: Sphinx, env: BuildEnvironment, *_changes: Any) -> list[str]:
    """Have the page read in every build: it depends on files that Sphinx does not watch."""
    return [PAGE] if PAGE in env.found_docs else []


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both steps."""
    app.connect("source-read", write_page)
    app.connect("env-get-outdated", always_read_the_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
