"""What the theme offers for running a page elsewhere, put right.

Colab cannot open the MyST source of a chapter, so its button leads to a notebook: the release
workflow publishes each executed chapter as `.ipynb` on the branch `notebooks`. Thebe, which no page
uses, comes with Jupyter Book; it names another host and declares itself twice, so it is left out.
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


def leave_out_thebe(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Take its scripts from the page."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in f"{script.filename}{script.attributes.get('body', '')}".lower()
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Run after the theme, which makes the buttons at priority 501."""
    app.connect("html-page-context", colab_opens_the_published_notebook, priority=900)
    # last: a script that is added to the page after this list was made would be lost
    app.connect("html-page-context", leave_out_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
