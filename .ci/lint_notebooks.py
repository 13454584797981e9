"""Check notebooks: ruff on the code of their cells, and the page as jupytext would write it.

    python .ci/lint_notebooks.py PAGE...

One process for all of them: jupytext takes longer to start than to read a page.
"""

import difflib
import subprocess
import sys
from pathlib import Path

import jupytext

RUFF = Path(sys.executable).with_name("ruff")


def complaints(page: Path) -> str:
    """Return what ruff says of the code, and how the page differs from a tidy one."""
    notebook = jupytext.read(page)
    code = jupytext.writes(notebook, fmt="py:percent")
    read = ("--stdin-filename", f"{page}.py", "-")
    said = ruff("check", "--ignore", "E501,F811", *read, code=code)
    tidy = ruff("format", "--line-length", "80", *read, code=code).stdout
    cells = jupytext.reads(tidy, fmt="py:percent").cells
    for cell, new in zip(notebook.cells, cells, strict=True):
        cell.source = new.source
    lines = [
        text.splitlines(keepends=True)
        for text in (page.read_text(encoding="utf-8"), jupytext.writes(notebook, fmt="md:myst"))
    ]
    difference = "".join(difflib.unified_diff(*lines, str(page), "tidy"))
    return (said.stdout if said.returncode else "") + difference


def ruff(*arguments: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run ruff on code and return what it printed; where it cannot run, that is the end."""
    command = [RUFF, *arguments]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    if done.stderr and not done.stdout:
        sys.exit(done.stderr)
    return done


if __name__ == "__main__":
    found = [text for text in map(complaints, map(Path, sys.argv[1:])) if text]
    sys.stdout.write("\n".join(found))
    sys.exit(1 if found else 0)
