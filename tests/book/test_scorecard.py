"""The scorecard shows every claim, as recorded or open, and lets nothing that does not fit pass."""

import csv
import json
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import book_site
import pytest

from auditkit.claims import VERDICTS
from auditkit.figures import citable

ROOT = Path(__file__).parents[2]
CSV = "data/claims.csv"
CLAIMS = list(csv.DictReader((ROOT / CSV).read_text(encoding="utf-8").splitlines()))

CONF = """
import sys
sys.path.insert(0, "book/_ext")
extensions = ["myst_parser", "sphinx_design", "citable_figures", "scorecard"]
exclude_patterns = ["_build"]
"""
INDEX = "# A book\n\n```{toctree}\nbook/scorecard\nbook/errata\nbook/figures\nchapters/one\n```\n"
CHAPTER = """# One

```python
citable(figure, "OBS-T1", rows)

ak.finding(
    "OBS-1",
)
finding("OBS-5")
```
"""
FAULTS = """
```python
finding("OBS-99")
finding("PAN-1")
finding("OBS-5")
finding("OBS-6")
```
"""
RECORD = """
claim(
    {id!r},
    paper="below <ε>",
    measured=0.123456,
    verdict={verdict!r},
    why="It is below in all 10 runs.",
    figure={figure!r},
    check=True,
)
"""
group = pytest.mark.xdist_group("scorecard")  # whose books are built once


def write_book(root: Path, chapter: str, records: str) -> None:
    """Write a book with a table, a chapter that shows claims, and the module that records them."""
    files = {
        "conf.py": CONF,
        "index.md": INDEX,
        "book/errata.md": "# Errata\n",
        "book/figures.md": "# Figures\n",
        "book/scorecard.md": (ROOT / "book/scorecard.md").read_text(encoding="utf-8"),
        "chapters/one.md": chapter,
        "chapters/experiments/__init__.py": "",
        "chapters/experiments/one/__init__.py": "",
        "chapters/experiments/one/claims.py": f"from auditkit.claims import claim\n{records}",
        CSV: (ROOT / CSV).read_text(encoding="utf-8"),
    }
    for extension in ("citable_figures.py", "scorecard.py", "book_version.py"):
        files[f"book/_ext/{extension}"] = (ROOT / "book/_ext" / extension).read_text()
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    citable(None, "OBS-T1", {"a": [1]}, title="A", sources=[], directory=root / "_build/figures")


def record(id_: str, verdict: str = "reproduced", figure: str = "OBS-T1") -> str:
    return RECORD.format(id=id_, verdict=verdict, figure=figure)


# no page shows the last
RECORDS = record("OBS-1") + record("OBS-5") + record("SUB-1")


def build(root: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", ".", "_build/html"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Return the root of the book, built."""
    root = tmp_path_factory.mktemp("scorecard")
    write_book(root, CHAPTER, RECORDS)
    done = build(root)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """Return what the build said of a book whose claims do not fit in four ways."""
    root = tmp_path_factory.mktemp("faulty")
    write_book(root, CHAPTER + FAULTS, RECORDS + record("OBS-6", figure="OBS-T2"))
    return build(root)


def page(root: Path) -> str:
    return (root / "_build/html/book/scorecard.html").read_text(encoding="utf-8")


def cards(html: str) -> dict[str, str]:
    """Return the verdict of each card by its claim."""
    return dict(re.findall(r'<div class="auditkit-claim" id="([^"]+)" data-verdict="(.*?)">', html))


# --- the page ------------------------------------------------------------------------------------


@group
def test_every_claim_has_a_card_and_what_no_page_shows_is_open(book):
    expected = {row["id"]: "open" for row in CLAIMS}
    expected |= dict.fromkeys(("OBS-1", "OBS-5"), "reproduced")
    assert cards(page(book)) == expected


@group
def test_a_card_has_both_values_the_reason_and_links_that_exist(book):
    card = page(book).partition('id="OBS-1"')[2].partition("</div>\n<div")[0]
    assert "<dt>Paper</dt><dd>below &lt;ε&gt;</dd>" in card
    assert "<dt>Measured</dt><dd>0.1235</dd>" in card
    assert "<p>It is below in all 10 runs.</p>" in card
    links = re.findall(r'href="([^"]+)"', card)
    assert links == ["../chapters/one.html#OBS-1", "figures.html#OBS-T1"]
    for link in links:
        assert (book / "_build/html/book" / link.partition("#")[0]).exists()


@group
def test_a_number_stands_beside_what_stands_in_for_the_papers_data(book):
    said = {row["id"]: row["stands_in"] for row in CLAIMS}
    assert said["OBS-5"]
    html = page(book)
    assert re.findall(r"<p>Here: (.*?)</p>", html) == [said["OBS-5"]]
    assert "Here: " in html.partition('id="OBS-5"')[2].partition("<dl>")[0]


@group
def test_the_totals_add_up(book):
    table = page(book).partition('id="totals"')[2].partition("</table>")[0]
    numbers = [
        [int(cell) for cell in re.findall(r"<p>(\d+)</p>", row)]
        for row in table.partition("<tbody>")[2].split("</tr>")
    ]
    *papers, everything = [row for row in numbers if row]
    assert len(papers) == 5
    assert [sum(column) for column in zip(*papers, strict=True)] == everything
    assert everything == [2, 0, 0, len(CLAIMS) - 2, len(CLAIMS)]


@group
def test_the_filters_come_where_there_is_something_to_filter(book):
    html = book / "_build/html"
    with_filters = {page.name for page in html.rglob("*.html") if "filters.js" in page.read_text()}
    assert with_filters == {"figures.html", "scorecard.html"}


@group
def test_a_program_gets_the_records_alone_and_what_stands_in(book):
    published = json.loads((book / "_build/html/claims.json").read_text(encoding="utf-8"))
    said = {row["id"]: row["stands_in"] for row in CLAIMS}
    common = {
        "paper": "below <ε>",
        "measured": 0.123456,
        "verdict": "reproduced",
        "why": "It is below in all 10 runs.",
        "figure": "OBS-T1",
    }
    assert published == [{"id": id_, "stands_in": said[id_]} | common for id_ in ("OBS-1", "OBS-5")]


def test_a_changed_record_changes_the_page_though_no_source_has_changed(tmp_path):
    write_book(tmp_path, CHAPTER, RECORDS)
    build(tmp_path)
    assert cards(page(tmp_path))["OBS-1"] == "reproduced"
    changed = RECORDS + record("OBS-1", "partly")
    write_book(tmp_path, CHAPTER, changed)
    assert build(tmp_path).returncode == 0
    assert cards(page(tmp_path))["OBS-1"] == "partly"


# --- what does not fit ---------------------------------------------------------------------------


@group
@pytest.mark.parametrize(
    "message",
    [
        "claim OBS-99 is not in data/claims.csv",
        "claim PAN-1 is recorded by no claims.py",
        "claim OBS-5 is shown 2 times",
        "claim OBS-6 is shown by OBS-T2, which no page makes",
    ],
)
def test_a_claim_that_does_not_fit_is_a_warning_which_fails_the_build(faulty, message):
    assert faulty.returncode != 0
    assert f"WARNING: {message}" in faulty.stderr


# --- the list of claims --------------------------------------------------------------------------


def test_claims_are_numbered_from_one_for_each_of_five_papers():
    papers = {
        short: list(rows)
        for short, rows in groupby(CLAIMS, lambda row: row["id"].partition("-")[0])
    }
    assert list(papers) == ["OBS", "SUB", "PRED", "ZERO", "PAN"]
    for short, rows in papers.items():
        assert [row["id"] for row in rows] == [f"{short}-{i + 1}" for i in range(len(rows))]
        assert len({row["paper"] for row in rows}) == 1


@pytest.mark.parametrize("row", CLAIMS, ids=lambda row: row["id"])
def test_a_claim_is_a_sentence_and_says_where_it_stands(row):
    assert re.fullmatch(r"[A-Zε].{20,}\.", row["claim"])
    assert re.match(r"(Fig|Tab|App|Sec|Th|Cor|Prop|Alg)\. ", row["where"])
    assert re.fullmatch(r"(.{10,} \(paper: .{10,}\)\.)?", row["stands_in"])


# --- the built site ------------------------------------------------------------------------------


@pytest.mark.site
@pytest.mark.xdist_group("site")
def test_the_filters_work_by_keyboard_and_are_not_missed_without_a_script(seen):
    found = seen["filters"]
    assert found["without a script"] == {"cards": len(CLAIMS), "hidden": 0, "forms": 0}
    assert found["at first"] == f"{len(CLAIMS)} of {len(CLAIMS)} claims"
    mine = [row["id"] for row in CLAIMS if row["id"].startswith("SUB-")]
    assert found["paper"] == {"shown": mine, "sections": ["SUB-1"]}
    assert found["paper and words"]["shown"] == ["SUB-5"]
    assert found["address"] == "?paper=SUB&words=from+scratch"
    assert found["from the address"] == ["SUB-5"]
    assert found["after a link to another"] == len(CLAIMS)


@pytest.mark.site
@pytest.mark.xdist_group("site")
def test_the_list_of_figures_has_the_same_filters(seen):
    assert seen["figures"]
    assert all(id_.startswith("FND-F") for id_ in seen["figures"])


@pytest.mark.site
def test_the_site_shows_all_claims_and_publishes_those_that_are_recorded(pages):
    html = pages["book/scorecard.html"].path.read_text(encoding="utf-8")
    verdicts = cards(html)
    assert list(verdicts) == [row["id"] for row in CLAIMS]
    published = json.loads((book_site.SITE / "claims.json").read_text(encoding="utf-8"))
    assert {row["id"]: row["verdict"] for row in published} == {
        id_: verdict for id_, verdict in verdicts.items() if verdict != "open"
    }
    figures = json.loads((book_site.SITE / "figures.json").read_text(encoding="utf-8"))
    for row in published:
        assert set(row) == {"id", "paper", "measured", "verdict", "why", "figure", "stands_in"}
        assert row["verdict"] in VERDICTS
        named = [row["figure"]] if isinstance(row["figure"], str) else row["figure"]
        assert set(named) <= {figure["id"] for figure in figures}
