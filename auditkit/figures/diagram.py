"""Games as pictures: boxes with words, and arrows between them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from auditkit import _check
from auditkit.figures.style import INK, PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def diagram(
    boxes: Mapping[str, tuple[float, float, str] | tuple[float, float, str, str]],
    arrows: Sequence[tuple[str, str] | tuple[str, str, str]],
    *,
    size: tuple[float, float] = (6.8, 3.2),
) -> "Figure":
    """Draw who gives what to whom.

    Parameters
    ----------
    boxes : mapping
        By name: where the middle of a box is, its words and, if it has one, its role in `PALETTE`.
    arrows : sequence of tuple
        From which box to which, and words beside the arrow, if any.
    size : tuple of float
        Width and height in inches.

    Returns
    -------
    Figure
        For `citable`.

    Examples
    --------
    >>> figure = diagram(
    ...     {"member": (0, 0, "a member", "ours"), "model": (1, 0, "model")}, [("member", "model")]
    ... )
    """
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=size)
    axes.axis("off")
    places = {name: (box[0], box[1]) for name, box in boxes.items()}
    patches: dict[str, Any] = {}
    for name, (x, y, words, *role) in boxes.items():
        color = PALETTE[_check.choice("role", role[0], PALETTE)]["color"] if role else INK
        look = {"boxstyle": "round,pad=0.55", "facecolor": "none", "edgecolor": color}
        text = axes.text(x, y, words, ha="center", va="center", fontsize=9, bbox=look)
        patches[name] = text.get_bbox_patch()
    axes.set_position((0.01, 0.01, 0.98, 0.98))
    for put, at in ((axes.set_xlim, 0), (axes.set_ylim, 1)):
        ends = [place[at] for place in places.values()]
        put(min(ends) - 0.5, max(ends) + 0.5)
    for _ in range(3):  # a box has its size when its words are set, in the scale of the axes
        figure.canvas.draw()
        extents = [patch.get_window_extent() for patch in patches.values()]
        corners = np.concatenate([[box.p0, box.p1] for box in extents])
        low, high = np.sort(axes.transData.inverted().transform(corners), axis=0)[[0, -1]]
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    for start, end, *told in arrows:
        look = {"arrowstyle": "-|>", "color": INK, "lw": 1.3, "shrinkA": 3, "shrinkB": 3}
        look |= {"patchA": patches[start], "patchB": patches[end]}
        axes.annotate("", places[end], places[start], arrowprops=look)
        if told:
            (a, b), (c, d) = places[start], places[end]
            middle = ((a + c) / 2, (b + d) / 2)
            axes.annotate(told[0], middle, (0, 7), textcoords="offset points", fontsize=8.5)
    return figure
