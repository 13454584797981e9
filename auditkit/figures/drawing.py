"""From a table of results to a picture: panels, lines, bars, and what stands beside them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from auditkit.figures.means import is_number, spread
from auditkit.figures.style import INK, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

# what columns are called in figures, unless a page knows better
WORDS = {"alpha": "α", "delta": "δ", "epsilon": "ε", "mu": "μ", "sigma": "σ"}
# the order in which values without a role of their own take one
FREE = ("ours", "estimate", "paper", "upper bound", "null", "truth")


def draw(
    frame: "DataFrame",
    x: str,
    y: str,
    role: str | None = None,
    col: str | None = None,
    row: str | None = None,
    *,
    over: str | None = "seed",
    roles: Mapping[Any, str] | None = None,
    names: Mapping[Any, str] | None = None,
    size: tuple[float, float] = (3.4, 3.1),
    sharey: bool = True,
    wrap: int | None = None,
) -> "Drawing":
    """Draw means over independent repetitions, with their 95% intervals, in the house style.

    Numbers on the x axis make lines; anything else makes points side by side.

    Parameters
    ----------
    frame : DataFrame
        One row a result.
    x, y : str
        The columns of either axis; `y` is averaged as in `spread`.
    role : str, optional
        The column whose values are told apart by colour, marker and line.
    col, row : str, optional
        The columns whose values make panels.
    over : str, optional
        The column that tells repetitions apart, as in `spread`.
    roles : mapping, optional
        Which role of `PALETTE` a value of the column `role` plays. By default the one it is named
        after, else the next that is free.
    names : mapping, optional
        What to call columns and values where the reader needs other words.
    size : tuple of float
        Width and height of a panel in inches.
    sharey : bool, optional
        Whether all panels have one scale of y.
    wrap : int, optional
        After how many panels of `col` a new line begins.

    Returns
    -------
    Drawing
        Add to it what stands beside the results, and give it to `citable`.

    References
    ----------
    `spread` says what an error bar is.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"epsilon": [1, 1, 2, 2], "seed": [0, 1, 0, 1], "bound": [1, 3, 4, 4]})
    >>> draw(rows, "epsilon", "bound").truth(lambda epsilon: epsilon, "ε")
    Drawing(1 panel of bound by epsilon)
    """
    import pandas as pd
    import seaborn as sns

    keys = dict.fromkeys(name for name in (x, role, col, row) if name)
    data = spread(frame, list(keys), y, over)
    words = {**WORDS, **(names or {})}
    width, height = size
    grid = sns.FacetGrid(
        data,
        col=col,
        row=row,
        col_wrap=wrap,
        sharey=sharey,
        height=height,
        aspect=width / height,
    )
    numeric = pd.api.types.is_numeric_dtype(data[x]) and not pd.api.types.is_bool_dtype(data[x])
    looks = _looks(data, role, roles or {})
    drawing = Drawing(grid, data, frame, x, y, role, col, row, words, looks, numeric)
    drawing.put_results()
    return drawing


def _looks(
    data: "DataFrame", role: str | None, roles: Mapping[Any, str]
) -> dict[Any, Mapping[str, Any]]:
    """Return what each value of the role's column looks like."""
    if role is None:
        return {None: PALETTE["ours"]}
    values = list(data[role].unique())
    named = {value: roles.get(value, value) for value in values}
    free = iter([one for one in FREE if one not in named.values()])
    looks = {}
    for value, one in named.items():
        one = one if one in PALETTE else next(free, None)
        if one is None:
            raise ValueError(f"role must be a column of at most {len(FREE)} values, got {values}")
        looks[value] = PALETTE[one]
    return looks


@dataclass(repr=False, eq=False)
class Drawing:
    """Panels with results, to which what stands beside them is added; made by `draw`.

    Attributes
    ----------
    data : DataFrame
        What is drawn, as `spread` returns it.
    grid : seaborn.FacetGrid
        The panels, for whatever else a figure needs.
    frame, x, y, role, col, row, names, looks, numeric, labels
        What `draw` was given, and what it made of it.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"audit": ["A", "B"], "seed": [0, 0], "bound": [1.0, 2.0]})
    >>> draw(rows, "audit", "bound").null(0.0).set(ylabel="ε")
    Drawing(1 panel of bound by audit)
    """

    grid: Any
    data: "DataFrame"
    frame: "DataFrame"
    x: str
    y: str
    role: str | None
    col: str | None
    row: str | None
    names: Mapping[Any, str]
    looks: Mapping[Any, Mapping[str, Any]]
    numeric: bool
    labels: list[tuple["Axes", str, str, float]] = field(default_factory=list)

    def __repr__(self) -> str:
        panels = self.grid.axes.size
        return f"Drawing({panels} panel{'s' if panels > 1 else ''} of {self.y} by {self.x})"

    def put_results(self) -> None:
        """Draw what `spread` found into each panel."""
        places = self._places()
        step = 0.0 if self.numeric else min(0.15, 0.7 / len(self.looks))
        for (row, col, _), part in self.grid.facet_data():
            axes = self.grid.facet_axis(row, col, modify_state=False)
            for at, (value, look) in enumerate(self.looks.items()):
                mine = part if self.role is None else part[part[self.role] == value]
                if mine.empty:
                    continue
                mine = mine.sort_values(self.x) if self.numeric else mine
                x = mine[self.x] if self.numeric else mine[self.x].map(places).astype("float64")
                x = (x + step * (at - (len(self.looks) - 1) / 2)).to_numpy()
                y, bars = mine["mean"].to_numpy(), mine["half_width"].fillna(0.0)
                style = {**look} if self.numeric else {**look, "linestyle": "none"}
                axes.errorbar(x, y, bars, capsize=3, **style, label=self._name(value))
                if self.numeric and self.role is not None:
                    last = int(np.argmax(x))
                    self.labels.append((axes, self._name(value), look["color"], float(y[last])))
            if not self.numeric:
                axes.set_xticks(list(places.values()), [self._name(one) for one in places])
        self.grid.set_titles(col_template="", row_template="")
        self.grid.set_axis_labels(self._name(self.x), self._name(self.y))
        for (row, col, _), part in self.grid.facet_data():
            heads = [self._head(one, part) for one in (self.row, self.col) if one]
            axes = self.grid.facet_axis(row, col, modify_state=False)
            axes.set_title(", ".join(heads), fontsize=10)

    def truth(self, what: Any, label: str = "truth") -> Self:
        """Draw what is known to be true.

        Parameters
        ----------
        what : float, callable, mapping or str
            A number, a function of x, values by x, or the column of the frame that has it.
        label : str
            What to call it.
        """
        return self._beside("truth", what, label)

    def ceiling(self, what: Any, label: str = "ceiling") -> Self:
        """Draw the most that the audit could have shown."""
        return self._beside("upper bound", what, label, linestyle=(0, (6, 2)), linewidth=1.0)

    def upper_bound(self, what: Any, label: str = "theory") -> Self:
        """Draw what theory promises."""
        return self._beside("upper bound", what, label)

    def null(self, what: Any = 0.0, label: str = "nothing leaks") -> Self:
        """Draw what an audit of nothing shows."""
        return self._beside("null", what, label)

    def paper(self, what: Any, label: str = "paper") -> Self:
        """Draw the paper's value."""
        return self._beside("paper", what, label)

    def reference(self, what: Any, label: str) -> Self:
        """Draw what else there is to compare with, in the colour of the text."""
        return self._beside("truth", what, label, color=INK, linestyle="--", linewidth=1.4)

    def set(self, **settings: Any) -> Self:
        """Set axes in every panel, as seaborn's `FacetGrid.set` does."""
        self.grid.set(**settings)
        return self

    def finished(self) -> "Figure":
        """Name what is drawn, now that the scales are final, and return the figure."""
        self.grid.figure.set_layout_engine("constrained")
        self.grid.figure.canvas.draw()
        if not self.numeric and self.role is not None:
            # beside several panels it stands below all of them
            each = [axes.get_legend_handles_labels() for axes in self.grid.axes.flat]
            found = {label: handle for pair in each for handle, label in zip(*pair, strict=True)}
            named = found.values(), found
            where = {"loc": "outside lower center", "ncols": 3} if self.grid.axes.size > 1 else {}
            place = self.grid.figure if where else self.grid.axes.flat[0]
            place.legend(*named, **where, fontsize=8.5)
        said: set[str] = set()
        across = len(self.grid.col_names) or 1
        for axes in [*self.grid.axes.flat[:across][::-1], *self.grid.axes.flat]:
            mine = [one for one in self.labels if one[0] is axes and one[1] not in said]
            said |= {label for _, label, _, _ in mine}
            _write_beside(axes, [(y, label, color) for _, label, color, y in mine])
        return self.grid.figure  # type: ignore[no-any-return]

    def _beside(self, role: str, what: Any, label: str, **look: Any) -> Self:
        style = {**PALETTE[role], "marker": "", **look}
        for (row, col, _), part in self.grid.facet_data():
            axes = self.grid.facet_axis(row, col, modify_state=False)
            if callable(what):
                low, high = axes.get_xlim()
                log = axes.get_xscale() == "log"
                x = np.geomspace(low, high) if log else np.linspace(low, high)
                y = np.array([what(one) for one in x], dtype=np.float64)
                axes.plot(x, y, **style, scalex=False)
            elif isinstance(what, Mapping):
                x = np.array([self._places().get(one, one) for one in what])
                y = np.array(list(what.values()), dtype=np.float64)
                axes.plot(x, y, **{**style, "marker": PALETTE[role]["marker"]})
            elif isinstance(what, str):
                here = self.frame
                for name in (self.col, self.row):
                    here = here[here[name] == part[name].iloc[0]] if name else here
                means = spread(here, self.x, what, over=None).dropna(subset="mean")
                if not self.numeric:
                    means[self.x] = means[self.x].map(self._places())
                means = means.sort_values(self.x)
                x, y = means[self.x].to_numpy(), means["mean"].to_numpy()
                if not len(y):
                    continue
                axes.plot(x, y, **style)
            else:
                y = np.array([float(what)])
                axes.axhline(float(what), **style)
            self.labels.append((axes, label, style["color"], float(y[-1])))
        return self

    def _places(self) -> dict[Any, int]:
        """Return where the words on the x axis stand."""
        return {value: at for at, value in enumerate(self.data[self.x].unique())}

    def _head(self, column: str, part: "DataFrame") -> str:
        """Return what stands above a panel: a number with its name, words alone."""
        value = part[column].iloc[0]
        if value in self.names or not is_number(value):
            return self._name(value)
        return f"{self._name(column)} = {value:g}"

    def _name(self, value: Any) -> str:
        if value is None:
            return ""
        return self.names.get(value, f"{value:g}" if is_number(value) else str(value))


def _write_beside(axes: "Axes", lines: list[tuple[float, str, str]]) -> None:
    """Write the name of each line at its end, each above the one below."""
    gap = 10.0 * axes.figure.dpi / 72 / axes.bbox.height
    ends = [(axes.transData.transform((1.0, y))[1], label, color) for y, label, color in lines]
    height = -math.inf
    for end, label, color in sorted(ends):
        place = np.clip((end - axes.bbox.y0) / axes.bbox.height, 0.0, 1.0)
        height = max(place, height + gap)
        axes.annotate(
            label,
            (1.0, height),
            (5, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=color,
            fontsize=8.5,
            va="center",
        )
