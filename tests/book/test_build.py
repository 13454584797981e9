"""The build does not lie: stale pages and failing cells, tried on a book of one page."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import build
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
import os, sys
print(os.environ["NUMBA_NUM_THREADS"], len(bytearray(b"x") * 300_000_000))
sys.path.insert(0, "..")
from auditkit.answer import answer
print("the answer is", answer())
```
"""
ANSWER = "def answer():\n    return {}\n"


def write_book(root: Path) -> Path:
    """Write a book with one notebook, under the real configuration and builder."""
    files = {
        "_toc.yml": "format: jb-book\nroot: chapters/page\n",
        "requirements.lock": "",
        "auditkit/__init__.py": "",
        "auditkit/answer.py": ANSWER.format("1 / 0"),
        "chapters/experiments/study.py": "",
        "chapters/page.md": PAGE,
        "data/results.csv": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("_ext", "_static"):
        shutil.copytree(ROOT / "book" / name, root / "book" / name)
    for name in ("references.bib", "student.py"):
        shutil.copy(ROOT / "book" / name, root / "book")
    shutil.copy(ROOT / "_config.yml", root)
    return root


# --- what the cache stands on --------------------------------------------------------------------


@pytest.fixture
def cached(tmp_path):
    """Return the root of a book and a file of its cache."""
    root = write_book(tmp_path)
    file = build.fresh_cache(root) / "page.ipynb"
    file.parent.mkdir(parents=True)
    file.touch()
    return root, file


def test_what_ran_is_kept_while_nothing_changes(cached):
    root, file = cached
    (root / "chapters" / "page.md").write_text("prose")  # Jupyter Book's cache looks at cells
    build.fresh_cache(root)
    assert file.exists()


@pytest.mark.parametrize(
    "name",
    [
        "auditkit/answer.py",
        "chapters/experiments/study.py",
        "data/results.csv",
        "requirements.lock",
    ],
)
def test_a_change_in_what_a_notebook_stands_on_drops_what_ran(cached, name):
    root, file = cached
    (root / name).write_text("# changed")
    build.fresh_cache(root)
    assert not file.exists()


def test_another_profile_drops_what_ran(cached, monkeypatch):
    root, file = cached
    monkeypatch.setenv("AUDITKIT_PROFILE", "paper")
    build.fresh_cache(root)
    assert not file.exists()


def test_a_compiled_kernel_is_dropped_with_the_package_that_it_was_compiled_from(cached):
    root, _ = cached
    kernel = root / "auditkit" / "__pycache__" / "answer.nbc"
    kernel.parent.mkdir()
    kernel.touch()
    build.fresh_cache(root)
    assert kernel.exists()
    (root / "auditkit" / "answer.py").write_text("# changed")
    build.fresh_cache(root)
    assert not kernel.exists()


# --- the whole build -----------------------------------------------------------------------------


def on_the_build(test):
    """Mark a test that looks at the builds, which are made once."""
    return pytest.mark.site(pytest.mark.xdist_group("build")(test))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the root of a book and four builds: it fails, fails again, is mended, and once more.

    With each build comes the page that it left.
    """
    root = write_book(tmp_path_factory.mktemp("book"))
    page = root / "_build" / "html" / "chapters" / "page.html"
    builds = []
    for answer in ("1 / 0", "1 / 0", "41", "41"):
        (root / "auditkit" / "answer.py").write_text(ANSWER.format(answer))
        command = [sys.executable, ROOT / "book" / "build.py", root]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        builds.append((done.returncode, said, page.read_text() if page.exists() else ""))
    return root, builds


@on_the_build
def test_a_failing_cell_fails_the_build_every_time(built):
    _, (first, second, _, _) = built
    for status, said, _ in (first, second):
        assert status != 0
        assert "ZeroDivisionError" in said


@on_the_build
def test_a_change_in_the_package_changes_the_page(built):
    _, (_, failed, mended, _) = built
    assert "the answer is" not in failed[2]
    status, said, page = mended
    assert status == 0, said
    assert "the answer is 41" in page


@on_the_build
def test_a_second_build_runs_nothing_again(built):
    _, (_, _, mended, again) = built
    assert again[0] == 0
    assert "Executing" not in again[1]
    assert again[2] == mended[2]


@on_the_build
def test_a_build_notes_what_a_notebook_takes_with_one_thread_each(built):
    root, (_, _, mended, _) = built
    (noted,) = (root / "_build" / "runs").iterdir()
    run = json.loads(noted.read_text())
    assert run["page"] == "chapters/page"
    assert run["profile"] == "quick"
    assert 0.1 < run["seconds"] < 300
    assert 300 < run["megabytes"] < 1000
    assert "1 300000000" in mended[2]
