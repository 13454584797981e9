"""The site and what a browser saw of it, or the reason why they are not there."""

import os
import sys
from pathlib import Path
from typing import Any

import book_site
import pytest

# the programs and extensions that make the site
sys.path[:0] = [str(book_site.ROOT / "book"), str(book_site.ROOT / "book" / "_ext")]

# set by `make site-test`, where a check that does not run is a check that fails
REQUIRED = os.environ.get("AUDITKIT_SITE_TESTS") == "required"


def absent(reason: str) -> None:
    """Fail where the site has to be looked at, skip where it may be."""
    if REQUIRED:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def pages() -> dict[str, book_site.Page]:
    """Every page of the built site."""
    pages = book_site.read(book_site.SITE)
    if not pages:
        absent("The site is not built: `make book` builds it.")
    return pages


@pytest.fixture(scope="session")
def tools() -> None:
    """A browser, node and node's packages."""
    lacking = book_site.missing_tools()
    if lacking:
        absent(lacking)


@pytest.fixture(scope="session")
def seen(
    pages: dict[str, book_site.Page],  # noqa: ARG001 (skips before the browser starts)
    tools: None,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """What a browser saw on every page, in the light, in the dark and on a phone."""
    report: Path = tmp_path_factory.mktemp("site") / "seen.json"
    return book_site.visit(book_site.SITE, report)
