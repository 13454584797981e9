"""Links of the handbook's pages to what may not be there yet, and to what proves a sentence.

    [words](chapter:zero_run)     a chapter, else the words alone
    [words](section:audit-map)    a labelled section of a chapter, else the words alone
    [words](figure:ZERO-F2)       a figure where it is drawn, else the words alone
    [words](test:test_the_name)   a test in the repository; a name that no test has fails the build
    [words](result:zero-null)     a stored result in the repository, else the words alone

A chapter that is added brings its links to life. Where the chapter is there and the section or the
figure is not, the link is a mistake and fails the build: what belongs to a chapter is known by the
first part of the figure's id, or is looked for in every chapter once all are there.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from citable_figures import CALL, repository
from sphinx.application import Sphinx
from sphinx.util import logging

LINK = re.compile(
    r"\[(?P<words>[^\]]+)\]\((?P<kind>chapter|section|figure|test|result):(?P<to>[\w-]+)\)"
)

warn = logging.getLogger(__name__).warning


def sources(app: Sphinx) -> dict[str, str]:
    """Return the text of every chapter by its name in the project."""
    names = sorted(name for name in app.env.found_docs if name.startswith("chapters/"))
    return {name: Path(app.env.doc2path(name)).read_text(encoding="utf-8") for name in names}


def resolve(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put ordinary links, or the words alone, in the place of those of this kind."""
    if docname.startswith("book/") and LINK.search(source[0]):
        chapters = sources(app)
        kinds: dict[str, Callable[[str, str], str]] = {
            "chapter": lambda words, to: chapter(words, to, chapters),
            "section": lambda words, to: section(words, to, chapters),
            "figure": lambda words, to: figure(words, to, chapters),
            "test": lambda words, to: test(app, words, to),
            "result": lambda words, to: result(app, words, to),
        }
        source[0] = LINK.sub(lambda m: kinds[m["kind"]](m["words"], m["to"]), source[0])


def chapter(words: str, to: str, chapters: dict[str, str]) -> str:
    """Return a link to a chapter."""
    return f"[{words}](../chapters/{to}.md)" if f"chapters/{to}" in chapters else words


def section(words: str, to: str, chapters: dict[str, str]) -> str:
    """Return a link to a labelled section of a chapter."""
    there = any(f"({to})=\n" in text for text in chapters.values())
    return f"[{words}](#{to})" if there else words


def figure(words: str, to: str, chapters: dict[str, str]) -> str:
    """Return a link to a figure or table where it is drawn."""
    drawn = {id_: page for page, text in chapters.items() for id_ in CALL.findall(text)}
    if to in drawn:
        return f'<a href="../{drawn[to]}.html#{to}">{words}</a>'
    if to.partition("-")[0] in {id_.partition("-")[0] for id_ in drawn}:
        warn(f"no page draws {to}, to which a page of the book links")
    return words


def test(app: Sphinx, words: str, to: str) -> str:
    """Return a link to the file of a test."""
    root = Path(app.srcdir)
    for path in sorted((root / "tests").rglob("test_*.py")):
        if f"def {to}(" in path.read_text(encoding="utf-8"):
            return f"[{words}]({repository(app)}/{path.relative_to(root).as_posix()})"
    warn(f"no test is called {to}, to which a page of the book links")
    return words


def result(app: Sphinx, words: str, to: str) -> str:
    """Return a link to a stored result."""
    path = f"data/results/{to}.csv"
    there = (Path(app.srcdir) / path).exists()
    return f"[{words}]({repository(app)}/{path})" if there else words


def always_read_what_links(app: Sphinx, env: Any, *_changes: Any) -> list[str]:
    """Have such pages read in every build: what they link to may have come or gone."""
    pages = [name for name in env.found_docs if name.startswith("book/")]
    return [name for name in pages if LINK.search(Path(env.doc2path(name)).read_text())]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both steps."""
    app.connect("source-read", resolve)
    app.connect("env-get-outdated", always_read_what_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
