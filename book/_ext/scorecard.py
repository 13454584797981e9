"""Bring the claims to the site: the scorecard with its filters, and `claims.json`.

What became of each claim is said by the modules `claims.py` of the experiments, which need no
notebook. Which claims there are is said in `data/claims.csv`, and there also which data and models
stand in for the paper's.
"""

import csv
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import citable_figures
from sphinx.application import Sphinx
from sphinx.util import logging

from auditkit.claims import FINDINGS

PAGE = "book/scorecard"
CALL = re.compile(r'\bfinding\(\s*"([A-Z]+-[0-9]+)"')
VERDICTS = ("reproduced", "partly", "not reproduced", "open")

warn = logging.getLogger(__name__).warning


def calls(app: Sphinx) -> Iterator[tuple[str, str]]:
    """Yield page and claim wherever a page of the book shows one."""
    for page in sorted(app.env.found_docs):
        for id_ in CALL.findall(Path(app.env.doc2path(page)).read_text(encoding="utf-8")):
            yield page, id_


def records(app: Sphinx) -> dict[str, dict[str, Any]]:
    """Return what the modules of claims record, by claim."""
    chapters = Path(app.srcdir) / "chapters"
    if str(chapters) not in sys.path:
        sys.path.insert(0, str(chapters))
    for path in sorted(chapters.glob("experiments/*/claims.py")):
        importlib.import_module(f"experiments.{path.parent.name}.claims")
    return {id_: asdict(finding) for id_, finding in FINDINGS.items()}


def claims(app: Sphinx) -> list[dict[str, Any]]:
    """Return all claims of the papers, each with its page and its record, or None without one."""
    pages, found = {id_: page for page, id_ in calls(app)}, records(app)
    with (Path(app.srcdir) / "data" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        shown = row["id"] in pages and row["id"] in found
        row["page"] = f"{pages[row['id']]}.html" if shown else None
        row["record"] = found[row["id"]] if shown else None
    return rows


def verdict(row: dict[str, Any]) -> str:
    """Return what became of a claim."""
    return row["record"]["verdict"] if row["record"] else "open"


def figures(row: dict[str, Any]) -> list[str]:
    """Return the ids of the figures and tables that show a claim."""
    named = row["record"]["figure"] if row["record"] else []
    return [named] if isinstance(named, str) else named


def complain(app: Sphinx, rows: list[dict[str, Any]]) -> None:
    """Warn, and so fail the build, where records, claims and figures do not fit together."""
    by_id = {row["id"]: row for row in rows}
    for id_, times in Counter(id_ for _, id_ in calls(app)).items():
        if id_ not in by_id:
            warn(f"claim {id_} is not in data/claims.csv")
        elif times > 1:
            warn(f"claim {id_} is shown {times} times")
        elif by_id[id_]["record"] is None:
            warn(f"claim {id_} is recorded by no claims.py")
    drawn = {entry["id"] for entry in citable_figures.entries(app)}
    for row in rows:
        for figure in figures(row):
            if figure not in drawn:
                warn(f"claim {row['id']} is shown by {figure}, which no page makes")


def write_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill the scorecard: how many of each verdict, then a card for each claim."""
    if docname != PAGE:
        return
    rows = claims(app)
    complain(app, rows)
    names = [*VERDICTS, "all"]
    totals = ["| |" + "".join(f" {one} |" for one in names), "|---|" + "--:|" * len(names)]
    sections = []
    for paper, group in groupby(rows, lambda row: row["paper"]):
        cards = list(group)
        short = cards[0]["id"].partition("-")[0]
        totals.append(f"| [{short}](#claims-{short.lower()}) {counts(cards)}")
        heading = f"\n(claims-{short.lower()})=\n## {short}: {paper}\n"
        sections += [heading, "```{raw} html", *map(card, cards), "```"]
    totals.append(f"| all {counts(rows)}")
    source[0] += "\n".join(["\n## Totals\n", *totals, *sections, ""])


def counts(rows: list[dict[str, Any]]) -> str:
    """Return the numbers of one line of the totals."""
    found = Counter(map(verdict, rows))
    return "".join(f"| {found[one]} " for one in VERDICTS) + f"| {len(rows)} |"


def card(row: dict[str, Any]) -> str:
    """Return one claim, with paper and book side by side where there is a record."""
    short, record = row["id"].partition("-")[0], row["record"]
    lines = [
        f'<div class="auditkit-claim" id="{row["id"]}" data-verdict="{verdict(row)}">',
        f"<p><strong>{row['id']} · {verdict(row)}</strong> · {short} {escape(row['where'])}</p>",
        f"<p>{escape(row['claim'])}</p>",
    ]
    if record:
        links = [f'<a href="../{row["page"]}#{row["id"]}">{row["id"]} in its chapter</a>']
        links += [f'<a href="figures.html#{one}">{one}</a>' for one in figures(row)]
        lines += [f"<p>Here: {escape(row['stands_in'])}</p>"] if row["stands_in"] else []
        lines += [
            f"<dl><div><dt>Paper</dt><dd>{shown(record['paper'])}</dd></div>"
            f"<div><dt>Measured</dt><dd>{shown(record['measured'])}</dd></div></dl>",
            f"<p>{escape(record['why'])}</p>",
            f"<p>{' · '.join(links)}</p>",
        ]
    return "\n".join([*lines, "</div>"])


def shown(value: str | float) -> str:
    """Return a value as the notebook shows it."""
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def bring_the_filters(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load the filters, which nothing depends on, where there is something to filter."""
    if pagename in (PAGE, citable_figures.LIST):
        app.add_js_file("filters.js", loading_method="defer")


def publish(app: Sphinx, exception: Exception | None) -> None:
    """Say the same to a program."""
    if exception is not None or app.builder.name != "html" or PAGE not in app.env.found_docs:
        return
    records = [
        {**row["record"], "stands_in": row["stands_in"]} for row in claims(app) if row["record"]
    ]
    text = json.dumps(records, indent=1, ensure_ascii=False) + "\n"
    (Path(app.outdir) / "claims.json").write_text(text, encoding="utf-8")


def always_read_the_page(app: Sphinx, env: Any, *_changes: Any) -> list[str]:
    """Have the scorecard read in every build: it depends on files that Sphinx does not watch."""
    return [PAGE] if PAGE in env.found_docs else []


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the three steps."""
    app.connect("source-read", write_page)
    app.connect("env-get-outdated", always_read_the_page)
    app.connect("html-page-context", bring_the_filters)
    app.connect("build-finished", publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
