"""Make notebooks for students from the chapters: the same source, with the solutions taken out.

    python book/student.py ZIP            write the zip
    python book/student.py --check ZIP    unpack it and run every notebook up to its gaps

A solution becomes an empty cell. MyST's directives and roles become plain Markdown, so that any
notebook program shows them. The zip also has the experiments that the chapters import, and a
README. The package, the data and the stored results come from the clone that the README has
installed: they are 80 MB, and one clone serves all notebooks.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jupytext
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

ROOT = Path(__file__).parents[1]
FOLDER = "auditkit-student"
REPOSITORY = "https://github.com/dp-auditkit/dp-auditkit"
GAP = "# your code"
WORDS = "*Your answer*"

README = f"""\
# Notebooks for students

1. Once, with Python 3.11 or later: `git clone --depth 1 {REPOSITORY} book`,
   `python3 -m venv .venv` and `source .venv/bin/activate`
   (Windows: `py -3.11 -m venv .venv` and `.venv\\Scripts\\activate`).
2. For `foundations.ipynb`: `pip install -e book matplotlib jupyterlab`. For all notebooks:
   `pip install -e "book[chapters]" jupyterlab`; on Linux put
   `PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu` before it. PyTorch has no such build
   for Macs with Intel processors: use Colab there.
3. Start `jupyter lab` in this folder, which holds `experiments`, and open `foundations.ipynb`.
4. Fill the empty cell below each exercise. The rest runs as it is; the book has the solutions.
"""

INSTALL = f"""\
# Installs auditkit where it is not there yet, such as on Colab.
import importlib.util
import sys

if importlib.util.find_spec("auditkit") is None:
    !git clone --quiet --depth 1 {REPOSITORY} book
    %pip install --quiet -e "book[chapters]"
    %cd book/chapters
    sys.path.insert(0, "..")  # a running kernel does not see what was installed in place"""

SOLUTION = re.compile(r"^(`{3,})\{solution\} (?P<label>\S+)\n.*?^\1$", re.MULTILINE | re.DOTALL)
STARTS = re.compile(r"^`{3,}\{solution-start\} (\S+)\n.*?^`{3,}$", re.MULTILINE | re.DOTALL)
ENDS = re.compile(r"^`{3,}\{solution-end\}\n`{3,}$", re.MULTILINE)
BLOCK = re.compile(
    r"^(?P<fence>`{3,})\{(?P<kind>[a-z:]+)\} ?(?P<title>[^\n]*)\n(?P<body>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
KINDS = {"prf:definition": "Definition", "prf:theorem": "Theorem", "prf:lemma": "Lemma"}
KINDS |= {"prf:proof": "Proof", "prf:proposition": "Proposition", "prf:algorithm": "Algorithm"}
KINDS |= {"prf:remark": "Remark", "prf:example": "Example", "prf:corollary": "Corollary"}


class Exercise(NamedTuple):
    """An exercise of a chapter: its label, and whether its solution is code."""

    label: str
    code: bool


def exercises(text: str) -> list[Exercise]:
    """Return the exercises of a chapter that have a solution, in order."""
    solved = {match["label"]: False for match in SOLUTION.finditer(text)}
    solved |= dict.fromkeys(STARTS.findall(text), True)
    labels = re.findall(r"^`{3,}\{exercise\}[^\n]*\n:label: (\S+)", text, re.MULTILINE)
    return [Exercise(label, solved[label]) for label in labels if label in solved]


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook with a gap in the place of each solution."""
    cells: list[NotebookNode] = []
    inside = False
    for cell in notebook.cells:
        text = cell.source
        if cell.cell_type != "markdown":
            if not inside:
                cells.append(cell)
            continue
        kept = ""
        while text:
            if inside:
                end = ENDS.search(text)
                text, inside = (text[end.end() :], False) if end else ("", True)
                continue
            found = [match for one in (SOLUTION, STARTS) if (match := one.search(text))]
            if not found:
                kept, text = kept + text, ""
                continue
            first = min(found, key=lambda match: match.start())
            cells += [new_markdown_cell(kept + text[: first.start()])]
            inside = first.re is STARTS
            cells += [new_code_cell(GAP) if inside else new_markdown_cell(WORDS)]
            kept, text = "", text[first.end() :]
        cells.append(new_markdown_cell(kept))
    if inside:
        raise ValueError("a solution has a start and no end")
    notebook.cells = [cell for cell in cells if cell.source.strip()]
    return notebook


def plain(text: str, names: set[str]) -> str:
    """Return Markdown that any notebook program shows, for that of MyST.

    A link leads to a notebook that is in the zip by its name; of any other the words stay.
    """
    text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.MULTILINE)
    text = BLOCK.sub(_block, text)
    text = re.sub(r"\{cite(?::[a-z]+)?\}`([^`]+)`", r"[\1]", text)
    text = re.sub(r"\{(?:term|prf:ref|ref|numref)\}`([^`<]+)(?: <[^>]*>)?`", r"*\1*", text)
    text = re.sub(r"\{(?:func|class|meth|mod)\}`~[\w.]*?(\w+)`", r"`\1`", text)
    text = re.sub(r"\$\$ \(([\w-]+)\)", r"\\tag{\1}$$", text)
    text = re.sub(r"\{eq\}`([\w-]+)`", r"(\1)", text)
    return re.sub(r"\[([^\]]+)\]\(((?!https?:)[^)\s]*)\)", partial(_link, names), text).strip()


def _link(names: set[str], match: re.Match[str]) -> str:
    page = re.fullmatch(r"(?:\.\./chapters/)?(\w+)\.md(?:#[\w-]+)?", match[2])
    inside = page is not None and page[1] in names
    return f"[{match[1]}]({page[1]}.ipynb)" if page and inside else match[1]


def _block(match: re.Match[str]) -> str:
    kind, title = match["kind"], match["title"].strip()
    options = dict(re.findall(r"^:([\w-]+): *(.*)$", match["body"], flags=re.MULTILINE))
    body = re.sub(r"^:[\w-]+:.*\n", "", match["body"], flags=re.MULTILINE).strip()
    body = BLOCK.sub(_block, body)
    if kind == "exercise":
        return f"**Exercise** `{options['label']}`\n\n{body}"
    if kind == "admonition":
        head = title
    elif kind == "widget":
        head = "To be moved, in the book"
    elif kind in KINDS:
        head = f"{KINDS[kind]}. {title}".strip()
    else:
        return match[0]
    lines = [f"**{head}**", "", *body.splitlines()]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def notebook_of(path: Path, names: set[str]) -> NotebookNode:
    """Return the student's notebook of a chapter, one of those of the given names."""
    notebook = without_solutions(jupytext.read(path, fmt="md:myst"))
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = plain(cell.source, names)
    for number, exercise in enumerate(exercises(path.read_text(encoding="utf-8")), 1):
        name = f"`{exercise.label}`"
        for cell in notebook.cells:
            cell.source = cell.source.replace(
                f"**Exercise** {name}", f"**Exercise {number}** {name}"
            )
    first = next(i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    notebook.cells.insert(first, new_code_cell(INSTALL))
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the same zip for the same chapters
    return notebook


def chapters(root: Path) -> list[Path]:
    """Return the numbered chapters of the book: those with something to do for a student."""
    contents = (root / "_toc.yml").read_text(encoding="utf-8")
    names = re.findall(r"^ *- file: (chapters/\w+)$", contents, flags=re.MULTILINE)
    paths = [root / f"{name}.md" for name in names]
    return [path for path in paths if exercises(path.read_text(encoding="utf-8"))]


def write_zip(root: Path, target: Path) -> None:
    """Write the zip; the same bytes for the same sources."""
    files = {"README.md": README}
    paths = chapters(root)
    names = {path.stem for path in paths}
    for path in paths:
        files[f"{path.stem}.ipynb"] = nbformat.writes(notebook_of(path, names)) + "\n"
    experiments = root / "chapters" / "experiments"
    for path in sorted(experiments.rglob("*.py")):
        files[path.relative_to(root / "chapters").as_posix()] = path.read_text(encoding="utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            about = zipfile.ZipInfo(f"{FOLDER}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = 0o644 << 16
            archive.writestr(about, text)


def check(zipped: Path) -> int:
    """Run every notebook of a zip as it comes out of it, two at a time; 0 if all run."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(zipped, folder, "zip")
        paths = sorted((Path(folder) / FOLDER).glob("*.ipynb"))
        with ThreadPoolExecutor(2) as pool:
            problems = [problem for problem in pool.map(run, paths) if problem]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(paths) - len(problems)} of {len(paths)} notebooks run up to their gaps")
    return 1 if problems or not paths else 0


def run(path: Path) -> str | None:
    """Execute a notebook where it lies; return what went wrong, or None."""
    command = [sys.executable, "-m", "jupytext", "--quiet", "--to", "ipynb", "--execute"]
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run(
        [*command, "--output", f"executed-{path.name}", path.name],
        cwd=path.parent,
        env={**one, **os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else f"{path.name} does not run:\n{done.stderr[-3000:]}"


def main() -> int:
    """Write the zip, or check one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="run the notebooks of the zip")
    parser.add_argument("zip", type=Path)
    given = parser.parse_args()
    if given.check:
        return check(given.zip)
    write_zip(ROOT, given.zip)
    return 0


if __name__ == "__main__":
    sys.exit(main())
