"""Figures are one call: `spread` and `draw` and `table` of results, `citable` for their address.

The house style says once what plays which role, and what an error bar is. What a figure shows is
drawn where it is explained, in the chapters.
"""

from auditkit.figures.address import FOLDER, LIST, Citable, citable
from auditkit.figures.diagram import diagram
from auditkit.figures.drawing import Drawing, draw
from auditkit.figures.means import spread, table
from auditkit.figures.style import GREY, INK, PALETTE, house_style, svg

__all__ = [
    "FOLDER",
    "GREY",
    "INK",
    "LIST",
    "PALETTE",
    "Citable",
    "Drawing",
    "citable",
    "diagram",
    "draw",
    "house_style",
    "spread",
    "svg",
    "table",
]
