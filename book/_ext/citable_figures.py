"""Bring the citable figures to the site: files, the page that lists them, slides, `figures.json`.

The chapters write each figure's files to `_build/figures` when they run, which is before Sphinx
reads the first page.
"""

import csv
import json
import re
import shutil
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import book_version
from sphinx.application import Sphinx

LIST = "book/figures"
SLIDES = "book/slides.html"
CALL = re.compile(r'\bcitable\(.*?"([A-Z]+-[FT][A-Z]?[0-9]+[a-z]?)"', re.DOTALL)
LISTED = ("id", "title", "answers", "page", "svg", "png", "csv", "provenance", "command", "bibtex")
APPENDICES = "chapters/appendices/"
UP = re.compile(r'(href|src)="\.\./(?=figures/|book/)')


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
    if docname == LIST:
        found = entries(app)
        source[0] += "\n".join(["", count(found), *map(section, found)])


def count(found: list[dict[str, Any]]) -> str:
    """Return how many there are, and of which numbers they are made."""
    pictures = sum(1 for entry in found if entry["svg"])
    many = f"There are {pictures} figures and {len(found) - pictures} tables."
    return f'{many}\n\n```{{raw}} html\n<div id="count"></div>\n```\n'


def section(entry: dict[str, Any]) -> str:
    """Return what the list says of one figure or table."""
    kinds = {"svg": "SVG", "png": "PNG", "csv": "CSV", "provenance": "provenance"}
    links = [f'<a href="../{entry["page"]}#{entry["id"]}">where it stands</a>']
    links += [
        f'<a href="../{entry[kind]}" aria-label="{entry["id"]}: {name}" download>{name}</a>'
        for kind, name in kinds.items()
        if entry[kind]
    ]
    lines = [f'<div class="auditkit-entry" id="{entry["id"]}">']
    if entry["svg"]:
        alt, there = escape(entry["alt"]), f"../{entry['page']}#{entry['id']}"
        picture = f'<img src="../{entry["svg"]}" alt="{alt}" loading="lazy" width="320">'
        lines.append(f'<a href="{there}">{picture}</a>')
    answers = f" Answers {escape(entry['answers'])}." if entry["answers"] else ""
    lines += [
        f"<div><p>{escape(entry['title'])}.{answers}</p>",
        f"<p>{' · '.join(links)}</p>",
        f'<p class="auditkit-origin">{origin(entry)}</p></div></div>',
    ]
    raw = "\n".join(lines)
    fold = f"````{{dropdown}} BibTeX of {entry['id']}\n```bibtex\n{entry['bibtex']}\n```\n````"
    return f"## {entry['id']}\n\n```{{raw}} html\n{raw}\n```\n\n{fold}\n"


def origin(entry: dict[str, Any]) -> str:
    """Return in a sentence where the numbers of a figure come from, and how to make them again."""
    runs = [
        f"<code>{escape(run['id'])}</code> ({run['profile']} profile, code "
        f"{run['code_sha256'][:8]}, data {run['csv_sha256'][:8]})"
        for run in entry["experiments"]
    ]
    where = f"stored runs {', '.join(runs)}" if runs else "computed on its page"
    again = f"made again by <code>{escape(entry['command'])}</code>"
    return f"Numbers: {where}; {again}. Drawn by dp-auditkit {entry['versions']['dp-auditkit']}."


def merged(app: Sphinx) -> dict[str, str]:
    """Return which figure has taken up which one that stood alone once."""
    path = Path(app.srcdir) / "book" / "merged.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["old"]: row["new"] for row in csv.DictReader(file)}


def leave_addresses(app: Sphinx, docname: str, source: list[str]) -> None:
    """Keep the anchors of figures that have left a chapter: where each of them stands now."""
    if not docname.startswith("chapters/") or docname.startswith(APPENDICES):
        return
    appendix = docname.replace("chapters/", APPENDICES, 1)
    found = {entry["id"]: entry for entry in entries(app)}
    gone = {id_: id_ for id_, entry in found.items() if entry["page"] == f"{appendix}.html"}
    chapter = {entry["id"] for entry in found.values() if entry["page"] == f"{docname}.html"}
    for old, new in merged(app).items():
        if new in gone or new in chapter:
            gone[old] = new
    lines = []
    for old, new in sorted(gone.items(), key=lambda pair: natural(pair[0])):
        here, title = f"{found[new]['page']}#{new}", escape(found[new]["title"])
        href = here.removeprefix("chapters/")
        name = old if old == new else f"{old}, now part of {new}"
        lines.append(f'<li id="{old}"><a href="{href}">{name}</a>: {title}</li>')
    if lines:
        listed = "\n".join(lines)
        source[0] += (
            "\n## Figures and tables elsewhere\n\nThese stand in the appendix, or have become a "
            f'part of another.\n\n```{{raw}} html\n<ul class="auditkit-moved">\n{listed}\n</ul>\n'
            "```\n"
        )


def go_up(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let the links of a figure lead out of the folder of appendices, which lies a level deeper."""
    if pagename.startswith(APPENDICES) and "body" in context:
        context["body"] = UP.sub(r'\1="../../', context["body"])


def lead_to_source(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Link each figure to the line of its page that draws it, if the book has a repository."""
    known = "repository_url" in app.config.html_theme_options
    if known and pagename.startswith("chapters/") and "body" in context:
        text = Path(app.env.doc2path(pagename)).read_text(encoding="utf-8")
        for call in CALL.finditer(text):
            line = 1 + text.count("\n", 0, call.start())
            page = f"{repository(app)}/{pagename}.md?plain=1#L{line}"
            last = f'aria-label="{call[1]}: provenance" download>provenance</a>'
            link = f'<a href="{page}" aria-label="{call[1]}: source">source</a>'
            context["body"] = context["body"].replace(last, f"{last} · {link}")


def repository(app: Sphinx) -> str:
    """Return where the sources can be looked at."""
    options = app.config.html_theme_options
    return f"{options['repository_url']}/blob/{options['repository_branch']}"


def write_slides(app: Sphinx, found: list[dict[str, Any]]) -> str:
    """Return the page of slides: each picture of the book, in the order of reading."""
    pages = [f"{page}.html" for page in reading_order(app)]
    pictures = []
    for page in pages:
        text = (Path(app.srcdir) / page).with_suffix(".md").read_text(encoding="utf-8")
        place = {id_: i for i, id_ in enumerate(CALL.findall(text))}
        here = [entry for entry in found if entry["page"] == page and entry["png"]]
        pictures += sorted(here, key=lambda entry: place[entry["id"]])
    parts, index = [], []
    for page, group in groupby(pictures, lambda entry: entry["page"]):
        title, here = escape(app.env.titles[page[:-5]].astext()), list(group)
        first = f"part-{here[0]['id'].partition('-')[0]}"
        many = f"{len(here)} figure{'s' if len(here) > 1 else ''}"
        index.append(f'<li><a href="#{first}">{title}</a>, {many}</li>')
        parts.append(f'<section id="{first}"><h2>{title}</h2></section>')
        parts += map(slide, here)
    start, slides = "\n".join(["<ol>", *index, "</ol>"]), "\n".join(parts)
    title = "Auditing differential privacy: the figures"
    return page_of_slides(app, TITLE=title, UP="../", MATHS="", START=start, SLIDES=slides)


def page_of_slides(app: Sphinx, **said: str) -> str:
    """Return the template of slides, filled in."""
    said["VERSION"] = number(app)
    page = (Path(app.srcdir) / "book" / "slides.template.html").read_text(encoding="utf-8")
    return re.sub(r"<!-- ([A-Z]+) -->", lambda match: said[match[1]], page)


def slide(entry: dict[str, Any]) -> str:
    """Return one figure, as large as the screen."""
    answers = f", answers {escape(entry['answers'])}" if entry["answers"] else ""
    return (
        f'<section id="{entry["id"]}"><figure>'
        f'<img src="../{entry["png"]}" alt="{escape(entry["alt"])}">'
        f'<figcaption><p>{escape(entry["title"])}</p><p class="id">'
        f'<a href="../{entry["page"]}#{entry["id"]}">{entry["id"]}</a>{answers}, '
        f"version {entry['versions']['dp-auditkit']}, the auditkit authors, CC BY 4.0</p>"
        "</figcaption></figure></section>"
    )


def reading_order(app: Sphinx) -> list[str]:
    """Return the pages as the table of contents has them; where there is none, by name."""
    contents = Path(app.srcdir) / "_toc.yml"
    if not contents.exists():
        return sorted(app.env.found_docs)
    return re.findall(r"^[ -]*(?:root|file): *(\S+)", contents.read_text(), flags=re.MULTILINE)


def number(app: Sphinx) -> str:
    """Return the version of the book, or nothing where it has none."""
    return (
        book_version.number(Path(app.srcdir))
        if (Path(app.srcdir) / "CITATION.cff").exists()
        else ""
    )


def publish(app: Sphinx, exception: Exception | None) -> None:
    """Copy the files and say the same to a program."""
    if exception is not None or app.builder.name != "html":
        return
    target = Path(app.outdir) / "figures"
    target.mkdir(exist_ok=True)
    for entry in entries(app):
        for path in (Path(app.srcdir) / "_build" / "figures").glob(f"{entry['id']}.*"):
            shutil.copy(path, target)
    for old, new in merged(app).items():
        for path in target.glob(f"{new}.*"):
            shutil.copy(path, path.with_name(f"{old}{path.suffix}"))
    rows = [{name: entry[name] for name in LISTED} for entry in entries(app)]
    text = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    (Path(app.outdir) / "figures.json").write_text(text, encoding="utf-8")
    if (Path(app.srcdir) / "book" / "slides.template.html").exists():
        (Path(app.outdir) / SLIDES).write_text(write_slides(app, entries(app)), encoding="utf-8")


def always_read_the_list(app: Sphinx, env: Any, *_changes: Any) -> list[str]:
    """Have the list read in every build: it depends on files that Sphinx does not watch."""
    return [LIST] if LIST in env.found_docs else []


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the steps."""
    app.connect("source-read", write_list)
    app.connect("source-read", leave_addresses)
    app.connect("html-page-context", go_up)
    app.connect("html-page-context", lead_to_source)
    app.connect("env-get-outdated", always_read_the_list)
    app.connect("build-finished", publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
