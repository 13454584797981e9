"""Notebooks for students hold no solution, have a gap for each exercise, and run up to it."""

import ast
import zipfile
from pathlib import Path

import book_site
import jupytext
import nbformat
import pytest
import student

CHAPTERS = student.chapters(book_site.ROOT)
NAMES = {path.stem for path in CHAPTERS}
ZIP = book_site.SITE / "book" / "auditkit-student.zip"

every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)

TINY = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  name: python3
---
# Tiny

```{{admonition}} What you will learn
:class: tip
- Adding.
```

You need [numbers](foundations.md) and {{cite}}`dong2022gaussian`, see {{func}}`~tiny.add`.

```{{code-cell}} ipython3
{code}
```

```{{exercise}}
:label: tiny-words
Why?
```

```{{solution}} tiny-words
:class: dropdown
Because of the secret.
```

```{{exercise}}
:label: tiny-code
How much is 1 + 1?
```

```{{solution-start}} tiny-code
:class: dropdown
```

By the secret rule.

```{{code-cell}} ipython3
secret = 1 + 1
```

```{{solution-end}}
```

## After
"""


@pytest.fixture
def book(tmp_path):
    """Return the root of a book with one chapter."""

    def write(text: str) -> Path:
        (tmp_path / "chapters" / "experiments").mkdir(parents=True, exist_ok=True)
        (tmp_path / "chapters" / "experiments" / "__init__.py").write_text("")
        (tmp_path / "chapters" / "tiny.md").write_text(text, encoding="utf-8")
        (tmp_path / "_toc.yml").write_text("      - file: chapters/tiny\n")
        return tmp_path

    return write


def test_a_gap_is_where_a_solution_was(book):
    notebook = student.notebook_of(book(TINY.format(code="1")) / "chapters/tiny.md", {"tiny"})
    kinds = [(cell.cell_type, cell.source) for cell in notebook.cells]
    assert "secret" not in "".join(source for _, source in kinds)
    assert [pair for pair in kinds if pair[1] in (student.WORDS, student.GAP)] == [
        ("markdown", student.WORDS),
        ("code", student.GAP),
    ]
    assert kinds[-1] == ("markdown", "## After")


def test_directives_and_roles_become_plain_markdown(book):
    notebook = student.notebook_of(book(TINY.format(code="1")) / "chapters/tiny.md", {"tiny"})
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "> **What you will learn**\n>\n> - Adding." in words
    assert "You need numbers and (Dong et al. 2022), see `add`." in words
    assert "**Exercise 2** `tiny-code`\n\nHow much is 1 + 1?" in words
    assert "](foundations.ipynb)" in student.plain("[x](foundations.md)", {"foundations"})


def test_a_solution_without_an_end_is_refused(book):
    text = TINY.format(code="1").replace("```{solution-end}\n```\n", "")
    with pytest.raises(ValueError, match="start and no end"):
        student.notebook_of(book(text) / "chapters/tiny.md", {"tiny"})


@pytest.mark.parametrize(("code", "status"), [("1 + 1", 0), ("1 / 0", 1)])
def test_the_check_runs_what_comes_out_of_the_zip(book, tmp_path, code, status, capfd):
    student.write_zip(book(TINY.format(code=code)), tmp_path / "s.zip")
    assert student.check(tmp_path / "s.zip") == status
    assert ("ZeroDivisionError" in capfd.readouterr().err) is bool(status)


def code_exercises(path: Path) -> dict[str, dict[str, str]]:
    """Return the cells of each exercise in code: to fill in, its solution, its check."""
    found: dict[str, dict[str, str]] = {}
    for cell in jupytext.read(path, fmt="md:myst").cells:
        if cell.cell_type == "markdown":
            label = (student.STARTS.findall(cell.source) or [""])[-1]
            given = student.LABELS.findall(cell.source)
            name = label or (given[-1] if given else "")
            inside = bool(label) and not student.ENDS.search(cell.source.rpartition(label)[2])
        elif "exercise" in student.tags(cell):
            found[name] = {"exercise": cell.source, "solution": ""}
        elif "check" in student.tags(cell):
            found[list(found)[-1]]["check"] = cell.source
        elif inside and name in found:
            found[name]["solution"] += cell.source + "\n"
    return found


def passes(*cells: str) -> bool:
    try:
        exec(compile("\n".join(cells), "exercise", "exec"), {})
    except (AssertionError, AttributeError, TypeError):
        return False
    return True


SOLVED = {
    f"{path.stem}: {label}": (path, cells)
    for path in CHAPTERS
    for label, cells in code_exercises(path).items()
}


@pytest.mark.parametrize("name", SOLVED)
def test_a_solution_passes_its_check_and_an_empty_answer_fails_it(name):
    path, cells = SOLVED[name]
    notebook = jupytext.read(path, fmt="md:myst")
    imports = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert passes(imports, cells["exercise"], cells["solution"], cells["check"])
    assert not passes(imports, cells["exercise"], cells["check"])


@every_chapter
def test_a_chapter_has_six_exercises_and_its_notebook_a_place_for_each(path):
    text = path.read_text(encoding="utf-8")
    tasks = student.exercises(text)
    assert len(tasks) >= 6
    assert len(tasks) == text.count("{exercise}"), "an exercise has no solution"
    cells = student.notebook_of(path, NAMES).cells
    places = [
        cell
        for cell in cells
        if "exercise" in student.tags(cell) or cell.source in (student.GAP, student.WORDS)
    ]
    assert len(places) == len(tasks)
    assert sum(cell.cell_type == "code" for cell in places) == sum(task.code for task in tasks)


@every_chapter
def test_nbgrader_knows_each_answer_and_each_check(path):
    cells = student.notebook_of(path, NAMES).cells
    about = [cell.metadata["nbgrader"] for cell in cells if "nbgrader" in cell.metadata]
    names = [one["grade_id"] for one in about]
    assert len(names) == len(set(names)), "two cells have one name"
    assert {one["grade_id"] for one in about if one["locked"]} <= {f"{n}-asserts" for n in names}
    labels = [task.label for task in student.exercises(path.read_text(encoding="utf-8"))]
    assert {name.removesuffix("-asserts") for name in names} <= set(labels)


@every_chapter
def test_what_the_book_folds_is_folded_and_its_own_checks_are_left_out(path):
    cells = student.notebook_of(path, NAMES).cells
    assert not any("remove-cell" in student.tags(cell) for cell in cells)
    for cell in cells:
        if "hide-input" in student.tags(cell):
            assert cell.metadata["jupyter"]["source_hidden"]


@every_chapter
def test_no_line_of_a_solution_is_left(path):
    text = path.read_text(encoding="utf-8")
    solved = [match[0] for match in student.SOLUTION.finditer(text)]
    first, *parts = student.SOLUTION.sub("", text).split("{solution-start}")
    given = [first]
    for part in parts:
        solution, _, rest = part.partition("{solution-end}")
        solved.append(solution)
        given.append(rest)
    left = "\n".join(cell.source for cell in student.notebook_of(path, NAMES).cells)
    # a solution may take up lines of the chapter
    told = {line for part in given for line in part.splitlines()}
    lines = {line for part in solved for line in part.splitlines() if len(line) > 40} - told
    assert lines
    assert [line for line in lines if line in left] == []


@every_chapter
def test_what_is_no_solution_is_there(path):
    before = [cell for cell in jupytext.read(path, fmt="md:myst").cells if cell.cell_type == "code"]
    after = [cell.source for cell in student.notebook_of(path, NAMES).cells]
    codes = sum(task.code for task in student.exercises(path.read_text(encoding="utf-8")))
    shown = [cell for cell in before if "remove-cell" not in student.tags(cell)]
    kept = [cell for cell in shown if cell.source in after]
    assert codes <= len(shown) - len(kept) <= 3 * codes


@every_chapter
def test_nothing_of_myst_is_left(path):
    words = [cell.source for cell in student.notebook_of(path, NAMES).cells]
    prose = "\n".join(source for source in words if "import" not in source)
    assert not [mark for mark in ("{cite", "{term", "{prf:", "{func}", "```{") if mark in prose]


def test_the_zip_has_every_chapter_what_they_import_and_the_same_bytes_each_time(tmp_path):
    for name in ("one.zip", "two.zip"):
        student.write_zip(book_site.ROOT, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        names = {name.removeprefix("auditkit-student/") for name in archive.namelist()}
        assert {name for name in names if name.endswith(".ipynb")} == {f"{n}.ipynb" for n in NAMES}
        assert len(archive.read("auditkit-student/README.md").strip().splitlines()) <= 12
        for name in sorted(names):
            if name.endswith(".ipynb"):
                text = archive.read(f"auditkit-student/{name}").decode()
                nbformat.validate(nbformat.reads(text, as_version=4))
                assert imported(text) <= names


def imported(text: str) -> set[str]:
    """Return the files of the experiments that the code of a notebook imports."""
    found = set()
    for cell in nbformat.reads(text, as_version=4).cells:
        if cell.cell_type == "code" and "experiments" in cell.source and "%" not in cell.source[:2]:
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("experiments"):
                    module = str(node.module).replace(".", "/")
                    for alias in node.names:
                        path = book_site.ROOT / "chapters" / module / f"{alias.name}.py"
                        found.add(f"{module}/{alias.name}.py" if path.exists() else f"{module}.py")
    return {name for name in found if (book_site.ROOT / "chapters" / name).exists()}


@pytest.mark.site
@pytest.mark.usefixtures("pages")
def test_the_site_offers_the_zip_of_its_chapters(tmp_path):
    student.write_zip(book_site.ROOT, tmp_path / "now.zip")
    assert ZIP.read_bytes() == (tmp_path / "now.zip").read_bytes()
    assert ZIP.stat().st_size < 25e6
