"""Bring the citable figures to the site: their files, the page that lists them, `figures.json`.

The chapters write each figure's files to `_build/figures` when they run, which is before Sphinx
reads the first page.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

LIST = "book/figures"
CALL = re.compile(r'citable\(\s*\w+,\s*"([A-Z]+-[FT][A-Z]?[0-9]+[a-z]?)"')
LISTED = ("id", "title", "answers", "page", "svg", "png", "csv", "provenance", "bibtex")


def entries(app: Sphinx) -> list[dict[str, Any]]:
    """Return the figures that the book's pages make, in the order of pages and numbers."""
    source = Path(app.srcdir)
    found = {}
    for page in sorted(app.env.found_docs):
        text = Path(app.env.doc2path(page)).read_text(encoding="utf-8")
        for id_ in CALL.findall(text):
            about = source / "_build" / "figures" / f"{id_}.json"
            if about.exists():
                found[id_] = json.loads(about.read_text(encoding="utf-8")) | {
                    "page": f"{page}.html"
                }
    return sorted(found.values(), key=lambda entry: natural(entry["id"]))


def natural(id_: str) -> list[tuple[str, int]]:
    """Return a key that puts F2 before F10."""
    return [(letters, int(digits or 0)) for letters, digits in re.findall(r"(\D+)(\d*)", id_)]


def write_list(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill the page that lists all figures with one section for each."""
    if docname != LIST:
        return
    sections = []
    for entry in entries(app):
        kinds = [kind for kind in ("svg", "png", "csv", "provenance") if entry[kind]]
        links = " · ".join(f'<a href="../{entry[kind]}" download>{kind}</a>' for kind in kinds)
        picture = ""
        if entry["svg"]:
            alt = entry["alt"].replace('"', "&quot;")
            picture = f'<img src="../{entry["svg"]}" alt="{alt}">'
        answers = f" Answers {entry['answers']}." if entry["answers"] else ""
        where = f'<a href="../{entry["page"]}#{entry["id"]}">In its chapter</a>'
        sections.append(
            f"## {entry['id']}\n\n{entry['title']}.{answers}\n\n"
            f'```{{raw}} html\n<div id="{entry["id"]}">{picture}'
            f"<p>{where} · {links}</p></div>\n```\n\n"
            f"```bibtex\n{entry['bibtex']}\n```\n"
        )
    source[0] += "\n" + "\n".join(sections)


def publish(app: Sphinx, exception: Exception | None) -> None:
    """Copy the files and say the same to a program."""
    if exception is not None or app.builder.name != "html":
        return
    target = Path(app.outdir) / "figures"
    target.mkdir(exist_ok=True)
    for entry in entries(app):
        for path in (Path(app.srcdir) / "_build" / "figures").glob(f"{entry['id']}.*"):
            shutil.copy(path, target)
    rows = [{name: entry[name] for name in LISTED} for entry in entries(app)]
    text = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    (Path(app.outdir) / "figures.json").write_text(text, encoding="utf-8")


def always_read_the_list(app: Sphinx, env: Any, *_changes: Any) -> list[str]:
    """Have the list read in every build: it depends on files that Sphinx does not watch."""
    return [LIST] if LIST in env.found_docs else []


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the three steps."""
    app.connect("source-read", write_list)
    app.connect("env-get-outdated", always_read_the_list)
    app.connect("build-finished", publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
