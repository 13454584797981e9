"""Small charts as SVG, which a page takes its colours of light, dark and print from.

No library draws them: the report has to open anywhere, and the command to work without matplotlib.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from auditkit.figures import PALETTE

WIDTH, HEIGHT = 600, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 12, 52
DASHES = {
    "paper": "6 4",
    "upper bound": "8 3 2 3",
    "truth": "2 3",
    "estimate": "5 2",
    "null": "2 4",
}
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """One axis: what it shows, from where to where, and whether by its logarithm."""

    label: str
    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies, from 0 to 1."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low)

    def ticks(self) -> list[float]:
        """Return round values, five or so."""
        if self.log:
            first = math.ceil(math.log10(self.low) - 1e-9)
            last = math.floor(math.log10(self.high) + 1e-9)
            if last - first < 2:
                every = (m * 10.0**power for power in range(first - 1, last + 1) for m in (1, 2, 5))
                return [value for value in every if self.low <= value <= self.high]
            step = (last - first) // 6 + 1
            return [10.0**power for power in range(first, last + 1, step)]
        rough = (self.high - self.low) / 5.0
        size = 10.0 ** math.floor(math.log10(rough))
        step_size = min(
            (m * size for m in (1.0, 2.0, 2.5, 5.0, 10.0)), key=lambda s: abs(s - rough)
        )
        first, last = (
            math.ceil(self.low / step_size - 1e-9),
            math.floor(self.high / step_size + 1e-9),
        )
        return [number * step_size for number in range(first, last + 1)]


@dataclass(frozen=True)
class Line:
    """A line or single points, in the colours of a role of the house style."""

    role: str
    name: str
    points: Points
    mark: Literal["line", "points"] = "line"


@dataclass(frozen=True)
class Chart:
    """A figure of the report: lines over two axes, its caption and its text alternative."""

    title: str
    alt: str
    x: Axis
    y: Axis
    lines: Sequence[Line] = field(default_factory=tuple)

    def html(self) -> str:
        """Return the figure with its legend, its caption and its numbers."""
        return (
            f"<figure>{self._svg()}{self._legend()}<figcaption><strong>{escape(self.title)}.</strong>"
            f" {escape(self.alt)}</figcaption>{self._numbers()}</figure>"
        )

    def _svg(self) -> str:
        parts = [
            f'<svg role="img" aria-label="{escape(self.title)}. {escape(self.alt)}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}">'
        ]
        for value in self.x.ticks():
            at = self._across(value)
            parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
            parts.append(
                f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                f"{short(value)}</text>"
            )
        for value in self.y.ticks():
            at = self._down(value)
            parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(
                f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{short(value)}</text>'
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        height = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(
            f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
            f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">'
            f"{escape(self.x.label)}</text>"
            f'<text transform="translate(16 {height}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.y.label)}</text>"
        )
        parts += [self._drawn(line) for line in self.lines if len(line.points)]
        return "".join([*parts, "</svg>"])

    def _drawn(self, line: Line) -> str:
        colour = PALETTE[line.role]["color"]
        places = [(self._across(x), self._down(y)) for x, y in line.points]
        if line.mark == "points":
            return "".join(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>' for x, y in places
            )
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dash = f' stroke-dasharray="{DASHES[line.role]}"' if line.role in DASHES else ""
        return f'<path class="line" d="M{path}" stroke="{colour}"{dash}/>'

    def _legend(self) -> str:
        items = []
        for line in self.lines:
            if not len(line.points):
                continue
            colour = PALETTE[line.role]["color"]
            dash = f' stroke-dasharray="{DASHES[line.role]}"' if line.role in DASHES else ""
            mark = f'<path class="line" d="M1 6H33" stroke="{colour}"{dash}/>'
            if line.mark == "points":
                mark = f'<circle cx="17" cy="6" r="4.5" fill="{colour}"/>'
            items.append(
                f'<li><svg class="key" viewBox="0 0 34 12" aria-hidden="true">{mark}</svg>'
                f"{escape(line.name)}</li>"
            )
        return f'<ul class="legend">{"".join(items)}</ul>'

    def _numbers(self) -> str:
        rows = []
        for line in self.lines:
            step = max(1, math.ceil(len(line.points) / 12))
            rows += [
                f'<tr><th scope="row">{escape(line.name)}</th><td>{x:.4g}</td><td>{y:.4g}</td></tr>'
                for x, y in list(line.points)[::step]
            ]
        return (
            "<details><summary>The numbers, every so many</summary><div class='wide' tabindex='0' "
            f'role="region" aria-label="Numbers of {escape(self.title)}"><table><thead><tr>'
            f'<th scope="col">line</th><th scope="col">{escape(self.x.label)}</th>'
            f'<th scope="col">{escape(self.y.label)}</th></tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div></details>"
        )

    def _across(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * self.x.share(value)

    def _down(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.y.share(value)


def short(value: float) -> str:
    """Return a number as an axis shows it."""
    if value != 0.0 and not 1e-3 <= abs(value) < 1e5:
        power = math.floor(math.log10(abs(value)))
        digits = f"{value / 10.0**power:.3g}"
        raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{raised}" if digits == "1" else f"{digits}·10{raised}"
    return f"{value:.4g}".replace("-", "−")
