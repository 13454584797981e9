"""Make notebooks for students from the chapters: the same source, with the solutions taken out.

    python book/student.py ZIP            write the zip
    python book/student.py --check ZIP    unpack it and run every notebook up to its gaps

A solution goes, and what a student fills in stays: the cell tagged `exercise`, with its signature,
and the one tagged `check`, with its asserts, as nbgrader knows them. MyST's directives and roles
become plain Markdown, and citations names and years, so that any notebook program shows them.
Cells that the book hides are folded, and its own checks are left out. The zip also has the
experiments that the chapters import, and a README. The package, the data and the stored results
come from the clone that the README has installed: they are 80 MB, and one clone serves all
notebooks.
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
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import jupytext
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from pybtex.database import Person, parse_file

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
4. Fill in the cell below each exercise, then run the one after it: its asserts pass, or say what
   is missing. The rest runs as it is; the book has the solutions. `nbgrader` reads the notebooks.
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
LABELS = re.compile(r"^`{3,}\{exercise\}[^\n]*\n:label: (\S+)", re.MULTILINE)
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
    return [Exercise(label, solved[label]) for label in LABELS.findall(text) if label in solved]


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook with a gap in the place of each solution."""
    cells: list[NotebookNode] = []
    inside = False
    for cell in notebook.cells:
        text = cell.source
        if cell.cell_type != "markdown":
            if not inside and "remove-cell" not in tags(cell):
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
            if not inside:
                cells += [new_markdown_cell(WORDS)]
            elif not any("exercise" in tags(one) for one in cells[-2:]):
                cells += [new_code_cell(GAP)]
            kept, text = "", text[first.end() :]
        cells.append(new_markdown_cell(kept))
    if inside:
        raise ValueError("a solution has a start and no end")
    notebook.cells = [cell for cell in cells if cell.source.strip()]
    return notebook


def tags(cell: NotebookNode) -> list[str]:
    """Return the tags of a cell."""
    return list(cell.metadata.get("tags", []))


def graded(cells: list[NotebookNode]) -> None:
    """Say of each cell what it is to nbgrader: an answer, its check, or an answer in words."""
    label = ""
    for cell in cells:
        if found := LABELS.findall(cell.source):
            label = found[-1]
        if "exercise" in tags(cell):
            about = {"grade": False, "solution": True, "locked": False}
        elif "check" in tags(cell):
            about = {"grade": True, "solution": False, "locked": True, "points": 1}
        elif cell.source == WORDS:
            about = {"grade": True, "solution": True, "locked": False, "points": 1}
        else:
            continue
        name = f"{label}-asserts" if "check" in tags(cell) else label
        cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": name, "task": False, **about}


def folded(cells: list[NotebookNode]) -> None:
    """Fold the cells that the book folds."""
    for cell in cells:
        if "hide-input" in tags(cell) or "hide-cell" in tags(cell):
            cell.metadata["jupyter"] = {"source_hidden": True}


def plain(text: str, names: set[str]) -> str:
    """Return Markdown that any notebook program shows, for that of MyST.

    A link leads to a notebook that is in the zip by its name; of any other the words stay.
    """
    text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.MULTILINE)
    text = BLOCK.sub(_block, text)
    text = re.sub(r"\{cite(:t)?(?::[a-z]+)?\}`([^`]+)`", _citation, text)
    text = re.sub(r"\{(?:term|prf:ref|ref|numref)\}`([^`<]+)(?: <[^>]*>)?`", r"*\1*", text)
    text = re.sub(r"\{(?:func|class|meth|mod)\}`~[\w.]*?(\w+)`", r"`\1`", text)
    text = re.sub(r"\$\$ \(([\w-]+)\)", r"\\tag{\1}$$", text)
    text = re.sub(r"\{eq\}`([\w-]+)`", r"(\1)", text)
    return re.sub(r"\[([^\]]+)\]\(((?!https?:)[^)\s]*)\)", partial(_link, names), text).strip()


def _citation(match: re.Match[str]) -> str:
    """Return names and years: in the sentence, or in brackets after it."""
    works = [cited()[key.strip()] for key in match[2].split(",")]
    if match[1]:
        return " and ".join(f"{names} ({year})" for names, year in works)
    return "(" + "; ".join(f"{names} {year}" for names, year in works) + ")"


@cache
def cited() -> dict[str, tuple[str, str]]:
    """Return who wrote each work that the book cites, and when."""
    entries = parse_file(ROOT / "book" / "references.bib").entries
    return {
        key: (_names(one.persons.get("author", [])) or key, one.fields.get("year", "n.d."))
        for key, one in entries.items()
    }


def _names(persons: list[Person]) -> str:
    last = [" ".join(person.prelast_names + person.last_names).strip("{}") for person in persons]
    return f"{last[0]} et al." if len(last) > 2 else " and ".join(last)


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
        head = f"**Exercise** `{options['label']}`" + (f" {title}" if title else "")
        return f"{head}\n\n{body}"
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
    graded(notebook.cells)
    folded(notebook.cells)
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
    """Execute a notebook where it lies, but for its checks; return what went wrong, or None."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "check" not in tags(cell)]
    nbformat.write(notebook, path)
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
