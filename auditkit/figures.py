"""The house style, and figures with an address: an id, downloads, provenance and a citation.

Here belongs what every figure and table of the book shares. What a figure shows is drawn where it
is explained, in the chapters; the numbers come from `experiment` and from the bounds.
"""

import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from auditkit import _check
from auditkit.datasets.store import write_whole
from auditkit.experiment import Results, Row, home, plain, provenance, to_csv

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

# Where the site keeps the files, seen from its root, and the page that lists all of them.
FOLDER = "figures"
LIST = "book/figures.html"


@dataclass(frozen=True)
class Citable:
    """A figure or table with an address; a notebook shows it with its caption.

    Attributes
    ----------
    id, title : str
        What it is called.
    answers : str or None
        The paper's figure or table that it answers.
    svg, png : str or None
        Paths of the pictures from the site's root; None for a table.
    csv, provenance : str
        Paths of the numbers and of where they come from.
    bibtex : str
        An entry to copy.

    Examples
    --------
    >>> Citable("FND-T1", "Four errors", None, None, None, "a.csv", "a.json", "@misc{…}", "<p>")
    Citable(id='FND-T1', title='Four errors')
    """

    id: str
    title: str
    answers: str | None = field(repr=False)
    svg: str | None = field(repr=False)
    png: str | None = field(repr=False)
    csv: str = field(repr=False)
    provenance: str = field(repr=False)
    bibtex: str = field(repr=False)
    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


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
            "figure.constrained_layout.use": True,
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


def citable(
    figure: "Figure | None",
    id: str,  # noqa: A002
    data: Any,
    *,
    title: str,
    answers: str | None = None,
    alt: str | None = None,
    sources: Sequence[Results] = (),
    directory: str | Path | None = None,
) -> Citable:
    """Give a figure or a table an address: its files, its provenance and its caption.

    Writes ``<id>.svg``, ``<id>.png``, ``<id>.csv`` and ``<id>.json``, the same bytes for the same
    figure. The SVG is transparent, with letters as outlines. The figure is closed, so that a
    notebook shows it once.

    Parameters
    ----------
    figure : matplotlib Figure or None
        The picture; None for a table, which is made from the data.
    id : str
        Never changes: chapter, F or T, number, as in ``"OBS-F2"``, ``"SUB-FA1"``, ``"PAN-T3"``.
    data : Results, DataFrame, mapping of columns or sequence of mappings
        The numbers that are shown. None and NaN become empty fields.
    title : str
        What is seen, without a full stop.
    answers : str, optional
        The paper's figure or table that this one answers, as in ``"OBS Figure 2"``.
    alt : str, optional
        What a reader who cannot see the picture has to know, in sentences; a table has none.
    sources : sequence of Results
        The experiments that the data come from; Results given as `data` are among them anyway.
    directory : path, optional
        Where the files go. By default what the environment variable AUDITKIT_FIGURES says, else
        `_build/figures`.

    Returns
    -------
    Citable
        What a notebook shows, with links that work on the site.

    References
    ----------
    The page *Figures* lists all of them, `figures.json` says the same to a program.

    Examples
    --------
    >>> import tempfile
    >>> errors = {"epsilon": [0.5, 1.0], "bound": [0.41, 0.87]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     citable(None, "FND-T1", errors, title="Two bounds", directory=folder)
    Citable(id='FND-T1', title='Two bounds')
    """
    _check_words(figure, id, title, answers, alt)
    rows = _rows(data)
    files: dict[str, bytes] = {"csv": to_csv(rows)[0]}
    if figure is not None:
        files = {"svg": _svg(figure, id, str(alt)), "png": _png(figure), **files}
    links: dict[str, Any] = {kind: f"{FOLDER}/{id}.{kind}" for kind in files}
    entry = {
        "id": id,
        "title": title,
        "answers": answers,
        **{"svg": None, "png": None, **links},
        "provenance": f"{FOLDER}/{id}.json",
        "bibtex": _bibtex(id, title, answers),
    }
    from_stores = [*sources, *([data] if isinstance(data, Results) else [])]
    keys = ("id", "csv_sha256", "code_sha256", "profile")
    about = {
        **entry,
        "alt": alt,
        "sha256": {kind: hashlib.sha256(content).hexdigest() for kind, content in files.items()},
        "experiments": [{key: results.provenance[key] for key in keys} for results in from_stores],
        **{key: value for key, value in provenance().items() if key != "function"},
    }
    files["json"] = (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
    folder = Path(directory or os.environ.get("AUDITKIT_FIGURES") or home() / "_build" / "figures")
    for kind, content in files.items():
        write_whole(folder / f"{id}.{kind}", content)
    shown = _inline(files["svg"].decode()) if figure is not None else _table(rows, title)
    return Citable(**entry, html=_captioned(shown, entry))


def _check_words(
    figure: Any,
    id: str,  # noqa: A002
    title: str,
    answers: str | None,
    alt: str | None,
) -> None:
    if figure is not None and not hasattr(figure, "savefig"):
        raise TypeError(f"figure must be a matplotlib Figure, or None for a table, got {figure!r}")
    _check.figure("id", id)
    if not isinstance(title, str) or not title.strip() or title.endswith("."):
        raise ValueError(f"title must be words without a full stop at the end, got {title!r}")
    if answers is not None and (not isinstance(answers, str) or not answers.strip()):
        raise ValueError(f'answers must be as in "OBS Figure 2", or None, got {answers!r}')
    if figure is None and alt is not None:
        raise ValueError("alt must be left out for a table, which can be read as it is")
    if figure is not None:
        _check.sentences("alt", alt)


def _rows(data: Any) -> list[Row]:
    """Return the data as rows of plain values."""
    raw: Iterable[Mapping[Any, Any]]
    if isinstance(data, Results):
        raw = data.rows
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):
        raw = data.to_dict("records")
    elif isinstance(data, Mapping):
        for name, values in data.items():
            if not hasattr(values, "__len__"):
                raise TypeError(f"data[{name!r}] must be a column of values, got {values!r}")
        lengths = {name: len(values) for name, values in data.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"data must have columns of the same length, got {lengths}")
        raw = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
    else:
        raw = list(data) if isinstance(data, Iterable) else [data]
        if not all(isinstance(row, Mapping) for row in raw):
            raise TypeError(
                f"data must be columns by name, or rows that are mappings, got {data!r}"
            )
    rows = [
        {str(name): plain(f"data[{name!r}]", _present(value)) for name, value in row.items()}
        for row in raw
    ]
    if not rows or not rows[0]:
        raise ValueError("data must have at least one row and one column")
    return rows


def _present(value: Any) -> Any:
    """Return the value, None where pandas says NaN for no value."""
    return None if isinstance(value, (float, np.floating)) and math.isnan(value) else value


def _svg(figure: "Figure", id: str, alt: str) -> bytes:  # noqa: A002
    """Draw the figure so that the file can stand alone, in a page, and beside others there."""
    import matplotlib as mpl

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


def _png(figure: "Figure") -> bytes:
    """Draw the figure on white, for slides and papers, and close it."""
    from matplotlib import pyplot as plt

    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    plt.close(figure)
    return target.getvalue()


def _inline(svg: str) -> str:
    """Return the picture as a part of a page, where it takes the page's colour and width."""
    style = 'style="color: inherit; max-width: 100%; height: auto"'
    return svg[svg.index("<svg") :].replace("<svg", f"<svg {style}", 1)


def _table(rows: Sequence[Row], title: str) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in names) + "</tr>"
        for row in rows
    )
    # on a phone the table scrolls, not the page; what scrolls can be reached by keyboard
    return (
        f'<div role="region" aria-label="{escape(title)}" tabindex="0" style="overflow-x: auto">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "∞" if value == math.inf else f"{value:.4g}"
    # in a narrow column an interval takes two lines, not three
    return escape(str(value)).replace(" ±", "\N{NO-BREAK SPACE}±")


def _captioned(shown: str, entry: Mapping[str, Any]) -> str:
    """Return the figure element: anchor, picture or table, caption line, links and BibTeX."""
    kinds = {"svg": "SVG", "png": "PNG", "csv": "CSV", "provenance": "provenance"}
    # chapters and pages lie one level below the site's root
    links = " · ".join(
        f'<a href="../{entry[kind]}" aria-label="{entry["id"]}: {name}" download>{name}</a>'
        for kind, name in kinds.items()
        if entry[kind] is not None
    )
    answers = f" Answers {escape(entry['answers'])}." if entry["answers"] else ""
    return (
        f'<figure class="auditkit-figure" id="{entry["id"]}">\n{shown}\n'
        f"<figcaption><p><strong>{entry['id']}.</strong> {escape(entry['title'])}.{answers} "
        f"{links}</p>\n<details><summary>BibTeX</summary>"
        f'<pre style="white-space: pre-wrap">{escape(entry["bibtex"])}</pre></details>'
        "</figcaption>\n</figure>"
    )


def _bibtex(id: str, title: str, answers: str | None) -> str:  # noqa: A002
    """Return an entry for one figure of the book, whose own data are in CITATION.cff."""
    path = home() / "CITATION.cff"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    book = dict(re.findall(r"^([a-z-]+): *[\"']?(.*?)[\"']? *$", text, flags=re.MULTILINE))
    kind = "Table" if "-T" in id else "Figure"
    address = book.get("repository-code")
    if "url" in book:
        address = f"{book['url'].rstrip('/')}/{LIST}#{id}"
    note = f"{kind} {id}" + (f", version {book['version']}" if "version" in book else "")
    fields = {
        "author": "{The auditkit authors}",
        "title": title,
        "note": note + (f", answers {answers}" if answers else ""),
        "howpublished": book.get("title"),
        "year": book.get("date-released", "")[:4],
        "url": address,
    }
    lines = [f"  {name} = {{{_tex(name, text)}}}," for name, text in fields.items() if text]
    return "\n".join([f"@misc{{auditkit-{id},", *lines, "}"])


def _tex(name: str, text: str) -> str:
    return text if name in ("author", "url") else re.sub(r"([#$%&_{}])", r"\\\1", text)
