"""The pages around the chapters: made from their sources, complete, and true to them."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import book_site
import book_version
import citable_figures
import glossary_links
import pytest
import run_times
import soft_links
import student
import teaching
import yaml

ROOT = book_site.ROOT
PAPERS = ["OBS", "SUB", "PRED", "ZERO", "PAN"]
ERRATA = (ROOT / "book/errata.md").read_text(encoding="utf-8")
NUMBERED = [
    chapter["file"]
    for part in yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    for chapter in part["chapters"]
    if part.get("numbered")
]


def app_of(root: Path, pages: list[str]) -> SimpleNamespace:
    """Return as much of Sphinx as the extensions ask."""
    env = SimpleNamespace(
        found_docs=set(pages),
        doc2path=lambda name: str(root / f"{name}.md"),
        titles={},
    )
    options = {"repository_url": "https://example.org/r", "repository_branch": "main"}
    config = SimpleNamespace(html_theme_options=options, html_context={})
    return SimpleNamespace(srcdir=str(root), confdir=str(root), env=env, config=config)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


# --- links to what may not be there yet ----------------------------------------------------------


@pytest.fixture
def handbook(tmp_path):
    """Return a book with a chapter of one paper, a test and a stored result."""
    files = {
        "chapters/one.md": '(here)=\n# One\n\ncitable(figure, "ONE-F1", rows)\n',
        "tests/test_it.py": "def test_it_is_so():\n    pass\n",
        "data/results/one-run.csv": "a\n",
    }
    write(tmp_path, files)
    return app_of(tmp_path, ["chapters/one", "book/page"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[x](chapter:one)", "[x](../chapters/one.md)"),
        ("[x](chapter:two)", "x"),
        ("[x](section:here)", "[x](#here)"),
        ("[x](section:there)", "x"),
        ("[x](figure:ONE-F1)", '<a href="../chapters/one.html#ONE-F1">x</a>'),
        ("[x](figure:TWO-F1)", "x"),
        ("[x](test:test_it_is_so)", "[x](https://example.org/r/blob/main/tests/test_it.py)"),
        ("[x](result:one-run)", "[x](https://example.org/r/blob/main/data/results/one-run.csv)"),
        ("[x](result:two-run)", "x"),
        ("[x](other.md)", "[x](other.md)"),
    ],
)
def test_a_soft_link_leads_to_what_is_there_and_is_words_where_nothing_is(handbook, before, after):
    source = [before]
    soft_links.resolve(handbook, "book/page", source)
    assert source == [after]


@pytest.mark.parametrize("link", ["[x](figure:ONE-F2)", "[x](test:test_it_is_not_so)"])
def test_a_soft_link_to_a_mistake_fails_the_build(handbook, link, monkeypatch):
    warnings: list[str] = []
    monkeypatch.setattr(soft_links, "warn", warnings.append)
    soft_links.resolve(handbook, "book/page", [link])
    assert len(warnings) == 1


# --- errata --------------------------------------------------------------------------------------


def test_errata_are_numbered_for_each_paper_and_have_an_address():
    ids = re.findall(r"^### ([A-Z]+)-E(\d+): ", ERRATA, re.MULTILINE)
    assert list(dict.fromkeys(paper for paper, _ in ids)) == PAPERS
    for paper in PAPERS:
        numbers = [int(number) for short, number in ids if short == paper]
        assert numbers == list(range(1, len(numbers) + 1))
    labels = re.findall(r"^\(([a-z]+-e\d+)\)=\n### (\S+): ", ERRATA, re.MULTILINE)
    assert [(f"{a}-E{b}".lower(), f"{a}-E{b}") for a, b in ids] == labels


def test_an_erratum_says_what_is_printed_what_we_find_and_how_we_know():
    entries = re.split(r"^\([a-z]+-e\d+\)=\n", ERRATA, flags=re.MULTILINE)[1:]
    for entry in entries:
        entry = re.split(r"^##+ (?![A-Z]+-E\d)", entry, flags=re.MULTILINE)[0]
        parts = re.findall(r"^([A-Z][a-z ]+)\n: (.+)$", entry, re.MULTILINE)
        assert [name for name, _ in parts] == ["As printed", "What we find", "How we know"]
        assert all(len(text) > 10 for _, text in parts), entry


def test_the_tests_that_errata_rest_on_exist():
    named = re.findall(r"\(test:(\w+)\)", ERRATA)
    written = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    assert len(named) > 30
    assert [name for name in named if f"def {name}(" not in written] == []


# --- teaching ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", student.chapters(ROOT), ids=lambda path: path.stem)
def test_goals_and_prerequisites_are_those_of_the_chapter(path):
    about = teaching.of_chapter(path)
    text = path.read_text(encoding="utf-8")
    goals = re.findall(
        r"^- (.+)$", text.partition("What you will learn")[2].partition("```")[0], re.M
    )
    assert len(goals) >= 3
    assert all(goal in about for goal in goals)
    assert re.search(r"^You need", about, re.MULTILINE)
    assert "## " not in about.partition("\n")[2]


def test_a_chapter_that_says_not_what_one_learns_is_refused(tmp_path):
    write(tmp_path, {"one.md": "# One\n"})
    with pytest.raises(ValueError, match=r"one\.md does not say what one will learn"):
        teaching.of_chapter(tmp_path / "one.md")


def test_the_plans_have_a_place_for_every_chapter():
    plans = (ROOT / "book/teaching.md").read_text(encoding="utf-8")
    assert [name for name in NUMBERED if f"(chapter:{Path(name).stem})" not in plans] == []


def test_every_question_of_the_quiz_is_numbered_and_has_an_answer():
    text = (ROOT / "book/quiz.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(sections) >= 7
    choices = 0
    for section in sections:
        asked = r"^:::\{(dropdown|checkpoint)\} (\d+)\. .+[?.]\n(?:.+\n)+:::$"
        found = re.findall(asked, section, re.MULTILINE)
        assert [int(number) for _, number in found] == list(range(1, len(found) + 1))
        assert len(found) == section.count(":::{") >= 3
        choices += sum(kind == "checkpoint" for kind, _ in found)
    assert choices >= 20


# --- slides and the list of figures --------------------------------------------------------------


def entry(id_: str, page: str, **more: object) -> dict:
    run = {"id": "one-run", "profile": "paper", "code_sha256": "c" * 64, "csv_sha256": "d" * 64}
    files = {kind: f"figures/{id_}.{kind}" for kind in ("svg", "png", "csv")}
    return {
        "id": id_,
        "title": "Apples & pears",
        "answers": "ONE Figure 2",
        "page": page,
        **files,
        "provenance": f"figures/{id_}.json",
        "command": "python -m experiments run one-run",
        "bibtex": "@misc{x}",
        "alt": 'A line "rises" from left to right.',
        "experiments": [run],
        "code_sha256": "e" * 64,
        "versions": {"dp-auditkit": "1.2.3"},
        **more,
    }


def test_the_list_has_thumbnail_answer_downloads_bibtex_and_origin():
    text = citable_figures.section(entry("ONE-F1", "chapters/one.html"))
    assert 'alt="A line &quot;rises&quot; from left to right."' in text
    assert "Apples &amp; pears. Answers ONE Figure 2." in text
    for kind in ("svg", "png", "csv", "json"):
        assert f'href="../figures/ONE-F1.{kind}"' in text
    assert "@misc{x}" in text
    assert "<code>one-run</code> (paper profile, code cccccccc, data dddddddd)" in text
    assert "made again by <code>python -m experiments run one-run</code>" in text
    assert "Drawn by dp-auditkit 1.2.3." in text


def test_a_figure_leads_to_the_line_that_draws_it(handbook):
    last = '<a href="a.json" aria-label="ONE-F1: provenance" download>provenance</a>'
    context = {"body": f"<p>{last}</p>"}
    citable_figures.lead_to_source(handbook, "chapters/one", "", context, None)
    link = "https://example.org/r/blob/main/chapters/one.md?plain=1#L4"
    assert f'{last} · <a href="{link}" aria-label="ONE-F1: source">source</a>' in context["body"]


def test_a_table_has_no_thumbnail_and_a_figure_of_its_page_says_so():
    table = entry("ONE-T1", "chapters/one.html", svg=None, png=None, alt=None, experiments=[])
    text = citable_figures.section(table)
    assert "<img" not in text
    assert "Numbers: computed on its page;" in text


def test_slides_follow_the_contents_and_the_order_of_a_page(tmp_path):
    call = 'citable(figure, "{}", rows)\n'
    files = {
        "_toc.yml": "root: book/start\n  - file: chapters/two\n  - file: chapters/one\n",
        "book/start.md": "# Start\n",
        "chapters/one.md": call.format("ONE-F2") + call.format("ONE-F1"),
        "chapters/two.md": call.format("TWO-F1") + call.format("TWO-T1"),
        "book/slides.template.html": "<!-- START -->|<!-- SLIDES -->|<!-- VERSION -->",
    }
    write(tmp_path, files)
    app = app_of(tmp_path, [])
    app.env.titles = {
        f"chapters/{name}": SimpleNamespace(astext=lambda name=name: name.title())
        for name in ("one", "two")
    }
    found = [
        entry("ONE-F1", "chapters/one.html"),
        entry("ONE-F2", "chapters/one.html"),
        entry("TWO-F1", "chapters/two.html"),
        entry("TWO-T1", "chapters/two.html", svg=None, png=None),
    ]
    index, slides, _ = citable_figures.write_slides(app, found).split("|")
    assert re.findall(r'<section id="([^"]+)"', slides) == [
        "part-TWO", "TWO-F1", "part-ONE", "ONE-F2", "ONE-F1",
    ]  # fmt: skip
    assert re.findall(r">(\w+)</a>, (\d figures?)<", index) == [
        ("Two", "1 figure"),
        ("One", "2 figures"),
    ]


@pytest.mark.site
@pytest.mark.usefixtures("pages")
def test_every_picture_of_the_book_is_listed_and_is_a_slide():
    figures = json.loads((book_site.SITE / "figures.json").read_text(encoding="utf-8"))
    listed = (book_site.SITE / "book/figures.html").read_text(encoding="utf-8")
    slides = (book_site.SITE / "book/slides.html").read_text(encoding="utf-8")
    assert [row["id"] for row in figures if f'id="{row["id"]}"' not in listed] == []
    pictures = {row["id"] for row in figures if row["png"]}
    assert set(re.findall(r'<section id="([A-Z]+-[FT]\w+)"', slides)) == pictures
    assert all(book_site.is_sentence(alt) for alt in re.findall(r'<img[^>]*alt="([^"]*)"', slides))


@pytest.mark.site
@pytest.mark.xdist_group("site")
def test_keys_lead_through_the_slides_and_each_prints_on_a_page(seen):
    order, led = seen["slides"]["order"], seen["slides"]["led"]
    assert led == [*order[1:5], order[3], order[-1], order[-1], order[0]]
    assert seen["slides"]["printed"] == len(order)


# --- versions ------------------------------------------------------------------------------------


def test_the_version_is_one_in_citation_package_and_page():
    now = book_version.number(ROOT)
    assert f'version = "{now}"' in (ROOT / "pyproject.toml").read_text()
    page = (ROOT / "book/cite.md").read_text(encoding="utf-8")
    assert set(re.findall(r"version\s*=? *\{?(\d+\.\d+\.\d+)", page)) == {now}


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("## Unreleased\n\n- A thing.\n", "Version 1.2.3, with changes not yet released ·"),
        ("## Unreleased\n\n## 1.2.3\n\n- A thing.\n", "Version 1.2.3 ·"),
        ("## 1.2.3\n\n- A thing.\n", "Version 1.2.3 ·"),
    ],
)
def test_the_foot_says_the_version_and_what_is_not_released(tmp_path, log, words):
    write(
        tmp_path, {"CITATION.cff": 'version: "1.2.3"\n', "CHANGELOG.md": f"# What is new\n\n{log}"}
    )
    app = app_of(tmp_path, [])
    book_version.say_the_version(app, app.config)
    context = dict(app.config.html_context)
    book_version.foot(app, "book/cite", "", context, None)
    assert words in context["theme_extra_footer"]
    assert 'href="../book/changes.html"' in context["theme_extra_footer"]
    assert app.config.version == app.config.release == "1.2.3"


@pytest.mark.site
def test_every_page_says_its_version(pages):
    foot = f"Version {book_version.number(ROOT)}"
    whole = [name for name, page in pages.items() if not page.redirect]
    assert [
        name for name in whole if foot not in pages[name].path.read_text(encoding="utf-8")
    ] == []


@pytest.mark.site
def test_what_is_new_is_the_change_log(pages):
    html = pages["book/changes.html"].path.read_text(encoding="utf-8")
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\S+)", log, re.MULTILINE)
    assert re.findall(r"<h2>(\S+?)(?: \(.*?\))?<a", html) == releases


# --- time and memory -----------------------------------------------------------------------------


def test_times_are_those_of_the_build_and_of_the_stored_results(tmp_path):
    run = {
        "page": "chapters/one",
        "profile": "quick",
        "seconds": 61.2,
        "megabytes": 1234,
        "cores": 2,
    }
    files = {
        "_toc.yml": "root: book/start\n  - file: chapters/one\n",
        "book/start.md": "# Start\n",
        "chapters/one.md": 'stored("one-long")\nstored("one-short")\nstored("one-long")\n',
        "_build/runs/one.json": json.dumps(run),
        "data/results/one-long.json": json.dumps({"id": "one-long", "seconds": 7200.0}),
        "data/results/one-short.json": json.dumps(
            {"id": "one-short", "seconds": 60.0, "sources": {"one-trained": "c" * 64}}
        ),
        "data/results/one-trained.json": json.dumps({"id": "one-trained", "seconds": 3600.0}),
    }
    write(tmp_path, files)
    source = [(ROOT / "book/times.md").read_text(encoding="utf-8")]
    run_times.write_page(app_of(tmp_path, []), run_times.PAGE, source)
    assert "| {doc}`/chapters/one` | quick | 61 s | 1,234 MB |" in source[0]
    assert "| {doc}`/chapters/one` | 3 | 3.0 h | `one-long`, 2.0 h |" in source[0]
    assert "with 2 notebooks at a time" in source[0]
    assert "<!--" not in source[0]


@pytest.mark.site
def test_every_notebook_of_the_site_has_its_time_and_memory(pages):
    html = pages["book/times.html"].path.read_text(encoding="utf-8")
    table = html.partition("<tbody>")[2].partition("</tbody>")[0]
    run = ROOT / "_build/jupyter_execute"
    linked = set(re.findall(r'href="([^"#]+)', table))
    there = [path.relative_to(run).with_suffix(".html") for path in sorted(run.rglob("*.ipynb"))]
    assert [page for page in there if not linked & {f"../{page}", page.name}] == []
    assert all(int(text.replace(",", "")) > 50 for text in re.findall(r"([\d,]+) MB", table))


# --- the glossary and the chapters ---------------------------------------------------------------


def test_everyday_words_that_are_left_alone_are_terms():
    app = app_of(ROOT, [glossary_links.GLOSSARY])
    assert set(glossary_links.terms(app)) >= glossary_links.EVERYDAY
    assert len(glossary_links.terms(app)) > 50
