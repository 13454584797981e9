"""Point the Colab button at a notebook: Colab cannot open the MyST source of a chapter.

The release workflow publishes each executed chapter as `.ipynb` on the branch `notebooks`.
"""

from typing import Any

from sphinx.application import Sphinx


def colab_opens_the_published_notebook(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Rewrite the link that the theme has just made."""
    branch = app.config.html_theme_options["repository_branch"]
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("text") == "Colab":
                there = button["url"].replace(f"/blob/{branch}/", "/blob/notebooks/")
                button["url"] = there.removesuffix(".md") + ".ipynb"


def setup(app: Sphinx) -> dict[str, bool]:
    """Run after the theme, which makes the buttons at priority 501."""
    app.connect("html-page-context", colab_opens_the_published_notebook, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
