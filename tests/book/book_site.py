"""Reads the built site: what its pages hold, load and point at, and what a browser saw of them."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# what a page loads by itself, as against what a reader may follow
LOADING = {"script", "img", "iframe", "source", "video", "audio", "embed", "object", "track"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch"}
LOADING_LINKS |= {"modulepreload", "manifest", "apple-touch-icon", "mask-icon"}

PHONE = 390  # pixels
LONG = 12  # rows: what is longer is folded, or a picture

# had it been rendered, a formula, role or fence would be in an element of its own
RAW = re.compile(
    r"\{(?:glue|numref|ref|eq|doc|term|cite|prf|download|figure|code-cell|math)(?::[a-z]+)*\}"
    r"|:::|```|\$\$|\\[()\[\]]|\\[A-Za-z]{2,}|\$[^\s$](?:[^$\n]*[^\s$])?\$"
)

Visit = dict[str, Any]  # what site.mjs writes down of one page, or of one page in one mode


@dataclass
class Page:
    """One page: where it is and what was found in it."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    references: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str | None]] = field(default_factory=list)
    redirect: bool = False


class Reader(HTMLParser):
    """Fills a `Page`; pictures count where the article is, not in the theme's buttons."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page = page
        self.in_article = 0
        self.drawing: int | None = None  # the <svg> we are in, which a <title> may yet name

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        named = ("id", "name") if tag == "a" else ("id",)
        self.page.anchors.update(given[name] for name in named if given.get(name))
        targets = [given[name] for name in ("href", "src", "data", "poster") if name in given]
        targets += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        if given.get("http-equiv", "").lower() == "refresh":
            self.page.redirect = True
            targets.append(given["content"].partition("url=")[2])
        self.page.references += targets
        if tag in LOADING or LOADING_LINKS & set(given.get("rel", "").split()):
            self.page.loads += targets
        self.in_article += tag == "article"
        if self.in_article:
            self.look_at_picture(tag, given)

    def look_at_picture(self, tag: str, given: dict[str, str]) -> None:
        if tag == "img":
            self.page.pictures.append((given.get("src", ""), given.get("alt")))
        elif tag in {"iframe", "object", "embed", "video"}:
            name = given.get("title") or given.get("aria-label")
            self.page.pictures.append((given.get("src") or given.get("data") or tag, name))
        elif tag == "svg" and given.get("aria-hidden") != "true":
            name = given.get("aria-label") if given.get("role") == "img" else None
            self.page.pictures.append(("<svg>", name))
            self.drawing = len(self.page.pictures) - 1 if given.get("role") == "img" else None

    def handle_data(self, data: str) -> None:
        if self.drawing is not None and self.lasttag == "title" and data.strip():
            source, name = self.page.pictures[self.drawing]
            self.page.pictures[self.drawing] = (source, name or data.strip())

    def handle_endtag(self, tag: str) -> None:
        self.in_article -= tag == "article"
        if tag == "svg":
            self.drawing = None


def read(site: Path) -> dict[str, Page]:
    """Return every page of a built site by its path."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if name.startswith(("_static/", "_sources/")):
            continue
        pages[name] = Page(path)
        reader = Reader(pages[name])
        reader.feed(path.read_text(encoding="utf-8"))
        reader.close()
    return pages


def dead_links(page: Page, pages: dict[str, Page], site: Path) -> list[str]:
    """Return the references of a page, within the site, to what is not there."""
    return [target for target in page.references if not _is_there(target, page, pages, site)]


def _is_there(target: str, page: Page, pages: dict[str, Page], site: Path) -> bool:
    url = urlsplit(target)
    if url.scheme or url.netloc:
        return True  # another host, or data: and mailto:
    file = page.path
    if url.path:
        start = site if url.path.startswith("/") else page.path.parent
        file = Path(os.path.normpath(start / unquote(url.path).lstrip("/")))
    if file.is_dir():
        file /= "index.html"
    if not file.is_file() or not file.is_relative_to(site):
        return False
    name = file.relative_to(site).as_posix()
    anchor = unquote(url.fragment)
    return not anchor or anchor == "top" or name not in pages or anchor in pages[name].anchors


def outside(page: Page) -> list[str]:
    """Return what a page loads from another host."""
    return [target for target in page.loads if urlsplit(target).netloc]


def is_sentence(alt: str | None) -> bool:
    """Tell whether an alternative text says what is seen, and is not the name of a file."""
    return (
        alt is not None
        and len(re.findall(r"\w+", alt)) >= 4
        and len(alt.split()) >= 4
        and not re.search(r"\.(png|svg|jpe?g|gif|webp|pdf)$", alt.strip(), re.IGNORECASE)
    )


def asked_elsewhere(visit: Visit, origin: str) -> list[str]:
    """Return the requests that went to another host."""
    at_home = (f"{origin}/", "data:", "blob:")
    return [url for url in visit["requests"] if not url.startswith(at_home)]


def sticking_out(visit: Visit) -> list[str]:
    """Return what makes a page wider than its window."""
    return visit["wide"] or ["the page"] if visit["scrollWidth"] > visit["width"] else []


def past_the_column(visit: Visit) -> list[str]:
    """Return what has to be moved sideways to be read.

    On a phone that is code, which can wrap, and figures of panels, which can stand below each
    other.
    """
    stacks = ("<pre", "<figure.auditkit-figure.panels")
    on_a_phone = visit["width"] == PHONE
    return [one for one in visit["sideways"] if one.startswith(stacks) or not on_a_phone]


def long_tables(visit: Visit) -> list[int]:
    """Return how many rows those tables have that are too long to stand unfolded."""
    return [rows for rows in visit["rows"] if rows > LONG]


def maths_faults(visit: Visit) -> list[str]:
    """Return the formulas that were not drawn, or not with the fonts of the site."""
    faults = [*visit["unrendered"], *visit["broken"]]
    if visit["fontsFailed"] or (visit["formulas"] and not visit["fontsLoaded"]):
        faults.append("the fonts did not load")
    return faults


def raw_markup(visit: Visit) -> list[str]:
    """Return the markup that a reader sees as such."""
    return RAW.findall(visit["text"])


def missing_tools() -> str | None:
    """Return what looking at the site with a browser lacks, in a sentence, or None."""
    if browser() is None:
        return f"No browser: none of {', '.join(BROWSERS)} is installed, and CHROMIUM is not set."
    if shutil.which("node") is None:
        return "No node."
    if not (ROOT / "node_modules" / "playwright-core").is_dir():
        return "No node_modules: `make site-test` installs them."
    return None


def browser() -> str | None:
    """Return the path of the browser."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


def visit(site: Path, report: Path) -> dict[str, Any]:
    """Visit every page of a built site in a browser and return what site.mjs saw."""
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("site.mjs")), str(site), str(report)],
        env={**os.environ, "CHROMIUM": str(browser())},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the visit to the site broke off:\n{done.stderr}")
    seen: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return seen
