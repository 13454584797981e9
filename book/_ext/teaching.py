"""Make the teaching kit: what the page says of each chapter, and the zip for students.

Goals, time and prerequisites are those that each chapter opens with. Nothing is typed twice, and a
chapter that is added to the table of contents appears by itself.
"""

import re
import sys
from pathlib import Path
from typing import Any

from citable_figures import CALL
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))
import student

PAGE = "book/teaching"
ZIP = "book/auditkit-student.zip"
GOALS = re.compile(
    r"^```\{admonition\} What you will learn\n(?::[^\n]*\n)*(.*?)^```\n+"
    r"(?:\*\*Time:\*\* ([^\n]+)\n+)?(.*?)\n\n",
    re.M | re.S,
)


def write_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill in what each chapter teaches and needs."""
    if docname == PAGE:
        about = [of_chapter(path) for path in student.chapters(Path(app.srcdir))]
        source[0] = source[0].replace("<!-- CHAPTERS -->", "\n".join(about))


def of_chapter(path: Path) -> str:
    """Return what a teacher wants to know of a chapter."""
    text = path.read_text(encoding="utf-8")
    opening = GOALS.search(text)
    if opening is None:
        raise ValueError(f"{path.name} does not say what one will learn, and what one needs")
    goals, time, needs = (
        re.sub(r"\]\((\w+\.md)", r"](../chapters/\1", part) for part in opening.groups("")
    )
    tasks = student.exercises(text)
    code = sum(task.code for task in tasks)
    figures = [id_ for id_ in CALL.findall(text) if "-F" in id_]
    return (
        f"### {{doc}}`/chapters/{path.stem}`\n\n{goals.strip()}\n\n{needs}\n\n"
        f"{len(tasks)} exercises with solutions, {code} of them in code. "
        f"{time} {len(figures)} figures, from "
        f'<a href="slides.html#{figures[0]}">{figures[0]}</a> on among the slides.\n'
    )


def publish(app: Sphinx, exception: Exception | None) -> None:
    """Write the zip beside the page that offers it."""
    if exception is None and app.builder.name == "html" and PAGE in app.env.found_docs:
        student.write_zip(Path(app.srcdir), Path(app.outdir) / ZIP)


def always_read_the_page(app: Sphinx, env: Any, *_changes: Any) -> list[str]:
    """Have the page read in every build: it depends on all chapters."""
    return [PAGE] if PAGE in env.found_docs else []


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the three steps."""
    app.connect("source-read", write_page)
    app.connect("env-get-outdated", always_read_the_page)
    app.connect("build-finished", publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
