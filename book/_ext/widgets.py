"""Place a widget: a picture with controls, worked out in the reader's browser and nowhere else.

    ```{widget} confidence
    The caption, in Markdown.
    ```

The name is that of a file in `_static/widgets`. A page loads the files of its own widgets, and what
they share, from the site itself, so that it works from disk. What a picture shows is said below,
for whoever cannot see it and where no script runs.
"""

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = "widgets"
SHARED = ("maths", "widget")
WIDGETS = {
    "null_audits": (
        "Two hundred audits of nothing, as dots, by threshold rule. Where the best of a hundred "
        "thresholds is kept, about a quarter of them report a leak; where every threshold is "
        "paid for, or one was fixed before looking, at most about one in twenty does."
    ),
    "walk": "Six questions lead to an audit.",
    "calculator": (
        "A form for the counts of an audit. It states the bound in a sentence with all that the "
        "bound assumes, the ceiling of so many guesses or runs, and what an attack of a given "
        "accuracy would have shown."
    ),
    "confidence": (
        "The square of false positive and false negative rates. The measured rates are a point, "
        "their upper limits a rectangle around it. The bound is the largest ε whose forbidden "
        "region reaches the far corner of the rectangle, so that the point lies inside it."
    ),
    "ceiling": (
        "Against the share of right guesses, the bound on ε, the estimate above it, and the "
        "ceiling, which the bound reaches when all guesses are right. With more guesses the "
        "ceiling rises and the bound comes nearer to the estimate."
    ),
    "exact": (
        "The exact bound on ε against m δ, with the bound that the same count has at δ = 0. The "
        "two agree for small m δ; then the exact bound falls, the later the more guesses were "
        "right, and reaches 0."
    ),
    "tradeoff": (
        "The square of false positive and false negative rates with two curves, one of ε and δ, "
        "made of straight lines, and one of μ, which is smooth. What lies below a curve is "
        "forbidden. A larger δ lowers the whole curve of ε and δ, also at its ends."
    ),
    "shift": (
        "Against the shift of an example, the share of right guesses that each correction "
        "keeps. The paper's falls like e to the minus s towards zero; the sharp one never falls "
        "below a half, and lies the higher the larger the μ that is tested."
    ),
}


class widget(nodes.General, nodes.Element):  # noqa: N801 (docutils names its nodes so)
    """Where a widget stands; its children are the caption."""


class Widget(SphinxDirective):
    """The directive above."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the place of the widget, its caption inside."""
        (name,) = self.arguments
        if name not in WIDGETS:
            raise self.error(f"no widget is called {name}")
        node = widget(name=name)
        node += self.parse_content_to_nodes()
        return [node]


def visit(self: Any, node: widget) -> None:
    """Open the figure; where no script runs its description stands in it."""
    name, alt = node["name"], escape(WIDGETS[node["name"]])
    self.body.append(
        f'<figure class="auditkit-widget" id="widget-{name}" data-widget="{name}" data-alt="{alt}" '
        f'aria-labelledby="widget-{name}-caption">\n'
        f"<noscript><p>{alt} It moves where scripts run.</p></noscript>\n"
        f'<figcaption id="widget-{name}-caption">\n'
    )


def depart(self: Any, node: widget) -> None:
    """Close the figure."""
    self.body.append("</figcaption></figure>\n")


def in_words(self: Any, node: widget) -> None:
    """Leave the caption alone where there is no browser."""


def bring_the_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load what the widgets of a page need, in this order, and nothing on other pages."""
    names = dict.fromkeys(node["name"] for node in doctree.findall(widget)) if doctree else {}
    if not names:
        return
    app.add_css_file(f"{FOLDER}/widgets.css")
    for name in (*SHARED, *names):
        app.add_js_file(f"{FOLDER}/{name}.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add node and directive."""
    silent = (in_words, in_words)
    app.add_node(widget, html=(visit, depart), latex=silent, text=silent)
    app.add_directive("widget", Widget)
    app.connect("html-page-context", bring_the_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
