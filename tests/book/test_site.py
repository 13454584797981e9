"""The built site: readable by everybody, on a phone, offline, and without dead links."""

from typing import Any

import book_site
import pytest
from book_site import Page

pytestmark = [pytest.mark.site, pytest.mark.xdist_group("site")]

Seen = dict[str, Any]

MODES = ("light", "dark", "phone")
WIDTHS = ("light", "tablet", "phone")  # 1280, 768 and 390 pixels
# tables of these pages are still too wide, or too long
TOO_LARGE = {
    f"chapters/{folder}{paper}.html"
    for folder in ("", "appendices/")
    for paper in (
        "substitute_adjacency",
        "private_prediction",
        "panoramia",
    )
}
# whose tables are what one comes for
LOOKED_UP = ("book/notation.html", "book/times.html", "prf-prf.html")

ALL = book_site.read(book_site.SITE)
NAMES = list(ALL) or ["not built"]
VISITED = [name for name, page in ALL.items() if not page.redirect] or ["not built"]
CHAPTERS = [name for name in VISITED if name.startswith("chapters/")] or ["no chapter"]

every_page = pytest.mark.parametrize("name", NAMES)
every_visit = pytest.mark.parametrize("name", VISITED)
every_chapter = pytest.mark.parametrize("name", CHAPTERS)


@every_page
def test_every_link_and_anchor_within_the_site_is_there(name: str, pages: dict[str, Page]) -> None:
    assert book_site.dead_links(pages[name], pages, book_site.SITE) == []


@every_page
def test_every_picture_is_told_in_a_sentence(name: str, pages: dict[str, Page]) -> None:
    assert [one for one in pages[name].pictures if not book_site.is_sentence(one[1])] == []


@every_page
def test_nothing_is_named_that_another_host_would_serve(name: str, pages: dict[str, Page]) -> None:
    assert book_site.outside(pages[name]) == []


@every_chapter
def test_a_chapter_can_be_downloaded_and_opened_elsewhere(
    name: str, pages: dict[str, Page]
) -> None:
    references = pages[name].references
    assert [one for one in references if one.endswith(".ipynb") and "://" not in one]
    binder, colab = "https://mybinder.org/", "https://colab.research.google.com/"
    assert [one for one in references if one.startswith(binder) and "urlpath=lab" in one]
    assert [one for one in references if one.startswith(colab) and one.endswith(".ipynb")]


@every_visit
def test_every_page_was_visited_in_every_mode(name: str, seen: Seen) -> None:
    themes = {mode: seen["pages"][name]["modes"][mode]["theme"] for mode in MODES}
    assert themes == {"light": "light", "dark": "dark", "phone": "light"}
    widths = [seen["pages"][name]["modes"][mode]["width"] for mode in WIDTHS]
    assert widths == [1280, 768, book_site.PHONE]


@pytest.mark.parametrize("mode", MODES)
@every_visit
def test_axe_finds_nothing_that_shuts_a_reader_out(name: str, mode: str, seen: Seen) -> None:
    assert seen["pages"][name]["modes"][mode]["violations"] == []


@every_visit
def test_a_page_is_quiet_complete_and_served_from_here(name: str, seen: Seen) -> None:
    visit = seen["pages"][name]
    assert visit["errors"] == []
    assert book_site.asked_elsewhere(visit, seen["origin"]) == []
    assert visit["failures"] == []


@pytest.mark.parametrize("mode", MODES)
@every_visit
def test_maths_is_drawn_with_the_fonts_of_the_site(name: str, mode: str, seen: Seen) -> None:
    assert book_site.maths_faults(seen["pages"][name]["modes"][mode]) == []


@pytest.mark.parametrize("mode", WIDTHS)
@every_visit
def test_nothing_is_wider_than_the_window(name: str, mode: str, seen: Seen) -> None:
    assert book_site.sticking_out(seen["pages"][name]["modes"][mode]) == []


@pytest.mark.parametrize("mode", WIDTHS)
@every_visit
def test_nothing_runs_past_the_column(name: str, mode: str, seen: Seen) -> None:
    past = book_site.past_the_column(seen["pages"][name]["modes"][mode])
    assert [one for one in past if one.startswith("<pre") or name not in TOO_LARGE] == []


@every_visit
def test_no_long_table_stands_unfolded(name: str, seen: Seen) -> None:
    left_alone = name in LOOKED_UP or name in TOO_LARGE
    assert left_alone or book_site.long_tables(seen["pages"][name]) == []


@every_visit
def test_no_markup_is_left_in_the_text(name: str, seen: Seen) -> None:
    assert book_site.raw_markup(seen["pages"][name]) == []


def test_the_search_finds_substitute_adjacency(seen: Seen) -> None:
    assert seen["search"]["question"] == "substitute adjacency"
    assert seen["search"]["found"]
    assert seen["search"]["errors"] == []
    assert book_site.asked_elsewhere(seen["search"], seen["origin"]) == []


def test_the_book_has_formulas_to_draw(seen: Seen) -> None:
    assert sum(visit["modes"]["light"]["formulas"] for visit in seen["pages"].values()) > 0


@pytest.mark.usefixtures("pages")
def test_the_picture_of_the_readme_is_the_figure_of_the_book() -> None:
    picture = book_site.SITE.parents[1] / "book" / "_static" / "null-audits.svg"
    assert picture.read_bytes() == (book_site.SITE / "figures" / "FND-F3.svg").read_bytes()
