"""The build does not lie: stale pages and failing cells, tried on a book of one page."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
---
# Page

```{code-cell} ipython3
import sys
sys.path.insert(0, "..")
from auditkit.answer import answer
print("the answer is", answer())
```
"""


@pytest.fixture
def tiny_book(tmp_path):
    """Return the root of a book with one notebook, under the real configuration and builder."""
    for name in ("auditkit", "data", "chapters/experiments"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copytree(ROOT / "book" / "_ext", tmp_path / "book" / "_ext")
    shutil.copytree(ROOT / "book" / "_static", tmp_path / "book" / "_static")
    for name in ("references.bib", "student.py"):
        shutil.copy(ROOT / "book" / name, tmp_path / "book")
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: chapters/page\n")
    (tmp_path / "requirements.lock").write_text("")
    (tmp_path / "auditkit" / "answer.py").write_text("def answer():\n    return 41\n")
    (tmp_path / "chapters" / "page.md").write_text(PAGE)
    return tmp_path


def build(root: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, ROOT / "book" / "build.py", root]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def page(root: Path) -> str:
    return (root / "_build" / "html" / "chapters" / "page.html").read_text()


def test_a_change_in_the_package_changes_the_page(tiny_book):
    first = build(tiny_book)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "the answer is 41" in page(tiny_book)
    (tiny_book / "auditkit" / "answer.py").write_text("def answer():\n    return 42\n")
    assert build(tiny_book).returncode == 0
    assert "the answer is 42" in page(tiny_book)


def test_a_build_notes_what_a_notebook_takes_with_one_thread_each(tiny_book):
    shown = "print(os.environ['NUMBA_NUM_THREADS'], len(bytearray(b'x') * 300_000_000))"
    (tiny_book / "chapters" / "page.md").write_text(
        PAGE.replace("import sys\n", f"import os, sys\n{shown}\n")
    )
    done = build(tiny_book)
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads((tiny_book / "_build" / "runs" / "page.json").read_text())
    assert run["page"] == "chapters/page"
    assert run["profile"] == "quick"
    assert 0.1 < run["seconds"] < 300
    assert 300 < run["megabytes"] < 1000
    assert "1 300000000" in page(tiny_book)


def test_a_failing_cell_fails_the_build_every_time(tiny_book):
    broken = "def answer():\n    raise ZeroDivisionError\n"
    (tiny_book / "auditkit" / "answer.py").write_text(broken)
    for _ in range(2):
        failed = build(tiny_book)
        assert failed.returncode != 0
        assert "ZeroDivisionError" in failed.stdout + failed.stderr


def test_a_second_build_runs_nothing_again(tiny_book):
    assert build(tiny_book).returncode == 0
    executed = page(tiny_book)
    again = build(tiny_book)
    assert again.returncode == 0
    assert "Executing" not in again.stdout + again.stderr
    assert page(tiny_book) == executed
