"""The checks of the site, on pages that are broken in one way each: every one is caught."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import book_site
import pytest
from book_site import Visit

pytestmark = [pytest.mark.site, pytest.mark.xdist_group("site checks")]

BLANK = """<!doctype html><html lang="en"><head><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>A page</h1><article>{}</article></main></body></html>"""

SOUND = """<p id="here">Plain text with a <a href="#here">link</a> and <code>\\frac</code>.</p>
<img src="dot.svg" alt="A dot stands in the middle."><p>It costs $5 and then $10.</p>
<div role="region" tabindex="0" aria-label="code" style="overflow-x: auto">
<pre style="width: 900px">wide, but it scrolls</pre></div>"""

HIT = '<div id="search-results"><ul class="search"><li><a href="sound.html">x</a></li></ul></div>'
PALE = '<p style="color: #ccc; background: #fff">pale</p>'
GREY = "<style>@media (prefers-color-scheme: dark) { p { color: #333; background: #000 } }</style>"

IN_THE_SOURCE: dict[str, tuple[str, Callable[[book_site.Page], list[Any]]]] = {
    "a picture without a text": ('<img src="dot.svg">', lambda page: untold(page)),
    "a picture with an empty text": ('<img src="dot.svg" alt="">', lambda page: untold(page)),
    "a file name for a text": (
        '<img src="dot.svg" alt="one two three dot.svg">',
        lambda page: untold(page),
    ),
    "a drawing without a name": ("<svg><rect/></svg>", lambda page: untold(page)),
    "an outside picture": (
        '<img src="https://example.org/a.png" alt="A dot stands in the middle.">',
        book_site.outside,
    ),
    "an outside script": ('<script src="//example.org/a.js"></script>', book_site.outside),
    "an outside font": (
        '<link rel="preload stylesheet" href="https://example.org/a.css">',
        book_site.outside,
    ),
    "a dead link": ('<a href="nowhere.html">x</a>', lambda page: dead(page)),
    "a dead anchor": ('<a href="#nowhere">x</a>', lambda page: dead(page)),
    "a dead anchor elsewhere": ('<a href="other.html#nowhere">x</a>', lambda page: dead(page)),
    "a missing picture": (
        '<img src="none.svg" alt="A dot stands in the middle.">',
        lambda page: dead(page),
    ),
}

IN_THE_BROWSER: dict[str, tuple[str, Callable[[Visit], list[Any]]]] = {
    "pale text": (PALE, lambda visit: visit["violations"]),
    "pale text, folded": (
        f"<details><summary>More</summary>{PALE}</details>",
        lambda visit: visit["violations"],
    ),
    "pale text, in the dark": (
        f"{GREY}<p>pale</p>",
        lambda visit: visit["modes"]["dark"]["violations"],
    ),
    "a field without a label": ("<input>", lambda visit: visit["violations"]),
    "a request to another host": (
        '<script>fetch("https://example.org/a.json").catch(() => 0)</script>',
        lambda visit: book_site.asked_elsewhere(visit, "http://127.0.0.1"),
    ),
    "an error on the console": (
        '<script>console.error("ouch")</script>',
        lambda visit: visit["errors"],
    ),
    "an error in a script": ("<script>ouch()</script>", lambda visit: visit["errors"]),
    "a file that is not there": ('<script src="none.js"></script>', lambda v: v["failures"]),
    "wide code": ("<pre>" + "wide " * 100 + "</pre>", book_site.sticking_out),
    "code past the column": (
        '<div class="box"><pre style="overflow: auto">' + "wide " * 100 + "</pre></div>",
        book_site.past_the_column,
    ),
    "panels past the column": (
        '<figure class="auditkit-figure panels" style="overflow: auto">'
        '<p style="width: 2000px">a</p></figure>',
        book_site.past_the_column,
    ),
    "a long table": ("<table>" + "<tr><td>a</td></tr>" * 13 + "</table>", book_site.long_tables),
    "a long word": ("<p>" + "wide" * 100 + "</p>", book_site.sticking_out),
    "a formula not drawn": ('<span class="math">\\(x\\)</span>', book_site.maths_faults),
    "a formula in the text": ("<p>so \\(x\\) is</p>", book_site.raw_markup),
    "dollars in the text": ("<p>so $x^2$ is</p>", book_site.raw_markup),
    "a role in the text": ("<p>see {numref}<code>fig</code></p>", book_site.raw_markup),
    "a fence in the text": ("<p>:::{note}</p>", book_site.raw_markup),
}


def untold(page: book_site.Page) -> list[Any]:
    return [one for one in page.pictures if not book_site.is_sentence(one[1])]


def dead(page: book_site.Page) -> list[str]:
    return book_site.dead_links(page, book_site.read(page.path.parent), page.path.parent)


def site_of(bodies: dict[str, str], site: Path) -> Path:
    """Write one page a body, and what the pages refer to."""
    for name, body in {**bodies, "sound": SOUND, "other": "", "search": HIT}.items():
        (site / f"{name}.html").write_text(BLANK.format(body), encoding="utf-8")
    (site / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>', encoding="utf-8")
    return site


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, book_site.Page]:
    bodies = {name: body for name, (body, _) in IN_THE_SOURCE.items()}
    return book_site.read(site_of(bodies, tmp_path_factory.mktemp("source")))


@pytest.fixture(scope="module")
def visits(tools: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:  # noqa: ARG001
    bodies = {name: body for name, (body, _) in IN_THE_BROWSER.items()}
    site = site_of(bodies, tmp_path_factory.mktemp("broken"))
    return book_site.visit(site, site / "seen.json")


@pytest.mark.parametrize("fault", IN_THE_SOURCE)
def test_a_fault_in_the_source_is_caught(fault: str, source: dict[str, book_site.Page]) -> None:
    assert IN_THE_SOURCE[fault][1](source[f"{fault}.html"])
    assert IN_THE_SOURCE[fault][1](source["sound.html"]) == []


@pytest.mark.parametrize("fault", IN_THE_BROWSER)
def test_a_fault_in_the_browser_is_caught(fault: str, visits: dict[str, Any]) -> None:
    judge = IN_THE_BROWSER[fault][1]
    assert judge(altogether(visits["pages"][f"{fault}.html"]))
    sound = altogether(visits["pages"]["sound.html"])
    assert fault == "a request to another host" or judge(sound) == []


def altogether(visit: Visit) -> Visit:
    """Return what was seen on a phone, and what axe found there or elsewhere."""
    modes = visit["modes"]
    found = [one for mode in modes.values() for one in mode["violations"]]
    return visit | modes["phone"] | {"violations": found}
