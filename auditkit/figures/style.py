"""The house style: what plays a role looks the same in every figure, by day and in the dark."""

import io
import re
from collections.abc import Mapping
from html import escape
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What plays a role looks the same in every figure: `ax.plot(x, y, **PALETTE["ours"])`. Each colour
# stands out from the light and from the dark page with a contrast of 3, and from the other five
# for every kind of colour blindness; marker and line say the same once more.
PALETTE: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "paper": {"color": "#c88516", "marker": "s", "linestyle": "--"},
        "ours": {"color": "#0064de", "marker": "o", "linestyle": "-"},
        "upper bound": {"color": "#bc009b", "marker": "v", "linestyle": "-."},
        "truth": {"color": "#4e6f37", "marker": "D", "linestyle": ":"},
        "estimate": {"color": "#4e90e9", "marker": "^", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
        "null": {"color": "#90909b", "marker": "x", "linestyle": (0, (1, 3))},
    }
)

# Text and axes. On the page an SVG takes the colour of the text around it; alone, on a background
# that nobody knows, it takes the grey that is as far from white as from the dark page.
INK = "#1b1e23"
GREY = "#7b7b7b"
# Words need a contrast of 4.5, so a coloured label takes this share of its colour, and the rest
# from the text around it.
LABEL_SHARE = 0.6
PHONE = 4.2  # inches: on a phone letters are as large as on the page
LOWEST = 3.0  # inches: a panel whose words stand upright below it needs them
LABEL = re.compile(r'(<!-- .*? -->\s*<g style="fill: )(#[0-9a-f]{6})')  # how matplotlib writes one


def house_style() -> None:
    """Make matplotlib draw as the book does, from here on.

    Transparent, with text and axes that follow the page into the dark, and `PALETTE` as the cycle
    of colours.

    References
    ----------
    Contrast: Web Content Accessibility Guidelines 2.2, 1.4.3 and 1.4.11. Colour blindness: Machado,
    Oliveira and Fernandes, *A physiologically-based model for simulation of color vision
    deficiency*, 2009.

    Examples
    --------
    >>> import matplotlib
    >>> with matplotlib.rc_context():
    ...     house_style()
    ...     matplotlib.rcParams["axes.labelcolor"]
    '#1b1e23'
    """
    import matplotlib as mpl
    from cycler import cycler

    order = ("ours", "paper", "upper bound", "truth", "estimate", "null")
    mpl.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.edgecolor": INK,
            "axes.facecolor": "none",
            "axes.grid": True,
            "axes.labelcolor": INK,
            "axes.prop_cycle": cycler(color=[PALETTE[role]["color"] for role in order]),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.facecolor": "none",
            "figure.figsize": (5.6, 3.6),
            "font.family": "DejaVu Sans",  # comes with matplotlib, so all machines have it
            "font.size": 10.5,
            "grid.alpha": 0.15,
            "grid.color": INK,
            "legend.frameon": False,
            "legend.handlelength": 3.0,  # long enough to tell the kinds of line apart
            "lines.linewidth": 1.8,
            "lines.markersize": 5.0,
            "patch.edgecolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    )


def svg(figure: "Figure", id: str, alt: str) -> str:  # noqa: A002
    """Return a figure as a part of a page, where it takes the page's colour, and close it.

    Parameters
    ----------
    figure : matplotlib Figure
        The picture, in the house style.
    id : str
        Unique in the page.
    alt : str
        What a reader who cannot see the picture has to know.

    Returns
    -------
    str
        An SVG element.

    Examples
    --------
    >>> from matplotlib import pyplot as plt
    >>> svg(plt.figure(), "nothing", "An empty picture.")[:16]
    '<svg style="colo'
    """
    from matplotlib import pyplot as plt

    drawn = inline(svg_file(figure, id, alt))
    plt.close(figure)
    return drawn


def svg_file(figure: "Figure", id: str, alt: str) -> bytes:  # noqa: A002
    """Draw the figure so that the file can stand alone, in a page, and beside others there."""
    import matplotlib as mpl

    # only now: seaborn lays out in a way of its own while it draws
    figure.set_layout_engine("constrained")
    target = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": id}):
        figure.savefig(target, format="svg", transparent=True, metadata=nothing)
    text = target.getvalue()
    text = text[text.index("<svg") :]
    # Its style sheet would reach every other picture of the page; the root says the same.
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(f"{INK}|#000000", "currentColor", text)
    # An id is unique in a page, not in a figure.
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{id}-", text)
    root = (
        f'<svg role="img" aria-label="{escape(alt)}" color="{GREY}" fill="currentColor" '
        'stroke-linejoin="round" stroke-linecap="butt"'
    )
    lines = [line.rstrip() for line in text.replace("<svg", root, 1).splitlines()]
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', *filter(None, lines), ""]).encode()


def png_file(figure: "Figure") -> bytes:
    """Draw the figure on white, for slides and papers, and close it."""
    from matplotlib import pyplot as plt

    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    plt.close(figure)
    return target.getvalue()


def inline(file: bytes, look: str = "max-width: 100%; height: auto") -> str:
    """Return the picture as a part of a page, where it takes the page's colour and width."""
    mixed = rf"\1color-mix(in srgb, \2 {LABEL_SHARE:.0%}, currentColor)"
    svg = LABEL.sub(mixed, file.decode())
    return svg[svg.index("<svg") :].replace("<svg", f'<svg style="color: inherit; {look}"', 1)


def stack(figure: "Figure") -> bool:
    """Put the panels of a figure below each other, as a phone shows them; False for one column."""
    from matplotlib.gridspec import GridSpec

    placed = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    places = [axes.get_subplotspec() for axes in placed]
    columns = {place.colspan.start for place in places if place is not None}
    if len(columns) < 2:
        return False
    rows = {place.rowspan.start for place in places if place is not None}
    height = max(figure.get_figheight() / len(rows), LOWEST)
    figure.set_layout_engine("constrained")
    figure.set_size_inches(PHONE, height * len(placed))
    grid = GridSpec(len(placed), 1, figure)
    for line, axes in enumerate(placed):
        axes.set_subplotspec(grid[line])
        # neighbours had these in common
        axes.tick_params(labelleft=True, labelbottom=True)
        for axis in (axes.xaxis, axes.yaxis):
            for label in (axis.label, *axis.get_ticklabels()):
                label.set_visible(True)
    for before, axes in pairwise(placed):
        axes.set_ylabel(axes.get_ylabel() or before.get_ylabel())
    for axes, after in pairwise(placed[::-1]):
        after.set_xlabel(after.get_xlabel() or axes.get_xlabel())
    return True
