"""Say on every page which version of the book it belongs to.

The number stands in `CITATION.cff`, once. Where the change log has something that is not released
yet, the foot says so: the number alone would then name another book than the one at hand.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config


def say_the_version(app: Sphinx, config: Config) -> None:
    """Put the version into the foot of each page, where the theme has a place for it."""
    root = Path(app.confdir)
    if not (root / "CITATION.cff").exists():
        return
    config.version = config.release = version = number(root)
    later = ", with changes not yet released" if unreleased(root) else ""
    config.html_context["auditkit_foot"] = (
        f'<p>Version {version}{later} · <a href="{{home}}book/changes.html">what is new</a> · '
        '<a href="{home}book/cite.html">how to cite</a></p>'
    )


def number(root: Path) -> str:
    """Return the version that the citation names."""
    found = re.search(r"^version: *(\S+)", (root / "CITATION.cff").read_text(), flags=re.MULTILINE)
    if found is None:
        raise ValueError("CITATION.cff has no version")
    return found[1].strip("\"'")


def unreleased(root: Path) -> bool:
    """Tell whether the newest entries of the change log belong to no version yet."""
    log = root / "CHANGELOG.md"
    return log.exists() and re.search(r"^## Unreleased\s+- ", log.read_text(), re.M) is not None


def foot(app: Sphinx, pagename: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Give each page its foot, with links seen from where it lies."""
    if "auditkit_foot" in context:
        home = "../" * pagename.count("/")
        context["theme_extra_footer"] = context["auditkit_foot"].format(home=home)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both steps."""
    app.connect("config-inited", say_the_version)
    app.connect("html-page-context", foot)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
