"""Figures and tables with an address: an id, downloads, provenance and a citation."""

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from auditkit import _check
from auditkit._files import write_whole
from auditkit.experiment import home, provenance
from auditkit.experiment.provenance import ORIGIN, READ
from auditkit.figures.drawing import Drawing
from auditkit.figures.style import inline, png_file, stack, svg_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# Where the site keeps the files, seen from its root, and the page that lists all of them.
FOLDER = "figures"
LIST = "book/figures.html"
LONG = 12  # rows: a longer table is folded, for a reader looks things up in it or passes by


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


def citable(
    figure: "Figure | Drawing | None",
    id: str,  # noqa: A002
    data: Any = None,
    *,
    title: str,
    answers: str | None = None,
    alt: str | None = None,
    sources: "Sequence[DataFrame] | None" = None,
    directory: str | Path | None = None,
) -> Citable:
    """Give a figure or a table an address: its files, its provenance and its caption.

    Writes ``<id>.svg``, ``<id>.png``, ``<id>.csv`` and ``<id>.json``, the same bytes for the same
    figure. The SVG is transparent, with letters as outlines. The figure is closed, so that a
    notebook shows it once.

    Parameters
    ----------
    figure : Drawing, matplotlib Figure or None
        The picture; None for a table, which is made from the data.
    id : str
        Never changes: chapter, F or T, number, as in ``"OBS-F2"``, ``"SUB-FA1"``, ``"PAN-T3"``.
    data : DataFrame, mapping of columns or sequence of mappings, optional
        The numbers that are shown; of a `Drawing` its own. None and NaN become empty fields.
    title : str
        What is seen, without a full stop.
    answers : str, optional
        The paper's figure or table that this one answers, as in ``"OBS Figure 2"``.
    alt : str, optional
        What a reader who cannot see the picture has to know, in sentences; a table has none.
    sources : sequence of DataFrame, optional
        The stored results that the data come from, where pandas has not carried their origin
        along. A figure without a source on a page that reads stored results is refused; ``[]``
        says that it draws none of them.
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
    ...     citable(None, "FND-T1", errors, title="Two bounds", sources=[], directory=folder)
    Citable(id='FND-T1', title='Two bounds')
    """
    if isinstance(figure, Drawing):
        data = figure.data if data is None else data
        figure = figure.finished()
    _check_words(figure, id, title, answers, alt)
    frame = _frame(data)
    origins = _origins(id, frame, sources)
    files: dict[str, bytes] = {"csv": frame.to_csv(index=False, lineterminator="\n").encode()}
    if figure is not None:
        files = {"svg": svg_file(figure, id, str(alt)), "png": png_file(figure), **files}
    links: dict[str, Any] = {kind: f"{FOLDER}/{id}.{kind}" for kind in files}
    entry = {
        "id": id,
        "title": title,
        "answers": answers,
        **{"svg": None, "png": None, **links},
        "provenance": f"{FOLDER}/{id}.json",
        "bibtex": _bibtex(id, title, answers),
    }
    names = [origin["id"] for origin in origins if origin["profile"] == "paper"]
    command = f"python -m experiments run {' '.join(names)}" if names else "make book"
    made = provenance()
    about = {
        **entry,
        "alt": alt,
        "sha256": {kind: hashlib.sha256(content).hexdigest() for kind, content in files.items()},
        "experiments": origins,
        "command": command,
        **{key: made[key] for key in ("versions", "machine")},
    }
    files["json"] = (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
    folder = Path(directory or os.environ.get("AUDITKIT_FIGURES") or home() / "_build" / "figures")
    for kind, content in files.items():
        write_whole(folder / f"{id}.{kind}", content)
    shown = _table(frame, title) if figure is None else inline(files["svg"])
    if figure is not None and stack(figure):
        shown += inline(svg_file(figure, f"{id}-stacked", str(alt)), "display: none")
    return Citable(**entry, html=_captioned(shown, {**entry, "command": command}))


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


def _frame(data: Any) -> "DataFrame":
    """Return the data as a table of plain values."""
    import pandas as pd

    if data is None or np.isscalar(data):
        raise TypeError(f"data must be a table, columns by name, or rows, got {data!r}")
    if isinstance(data, Mapping):
        for name, values in data.items():
            if not hasattr(values, "__len__"):
                raise TypeError(f"data[{name!r}] must be a column of values, got {values!r}")
        if len({len(values) for values in data.values()}) > 1:
            lengths = {name: len(values) for name, values in data.items()}
            raise ValueError(f"data must have columns of the same length, got {lengths}")
    elif not isinstance(data, pd.DataFrame) and not all(isinstance(row, Mapping) for row in data):
        raise TypeError(f"data must be columns by name, or rows that are mappings, got {data!r}")
    frame = data if isinstance(data, pd.DataFrame) else pd.DataFrame(data)
    if frame.empty:
        raise ValueError("data must have at least one row and one column")
    for name in frame.columns:
        for value in frame[name] if frame[name].dtype == object else ():
            if not (value is None or value is pd.NA or np.isscalar(value)):
                raise TypeError(f"data[{name!r}] must hold numbers and texts, got {value!r}")
    return frame


def _origins(
    id: str,  # noqa: A002
    frame: "DataFrame",
    sources: "Sequence[DataFrame] | None",
) -> list[dict[str, str]]:
    """Return where the numbers come from; who says nothing must not have read any."""
    for one in sources or ():
        if "csv_sha256" not in getattr(one, "attrs", {}):
            raise ValueError(f"sources must be tables as stored returns them, got {one!r:.60}")
    frames = [one for one in (frame, *(sources or ())) if "csv_sha256" in one.attrs]
    found = {one.attrs["id"]: {key: one.attrs[key] for key in ORIGIN} for one in frames}
    if not found and sources is None and READ:
        listed = ", ".join(sorted(READ))
        raise ValueError(
            f"{id} does not say where its numbers come from, and this page reads {listed}: give "
            "the stored results it draws as sources, or sources=[] if there are none"
        )
    return list(found.values())


def _table(frame: "DataFrame", title: str) -> str:
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in frame.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
        for row in frame.astype(object).where(frame.notna(), None).to_numpy()
    )
    # on a phone the table scrolls, not the page; what scrolls can be reached by keyboard
    shown = (
        f'<div role="region" aria-label="{escape(title)}" tabindex="0" style="overflow-x: auto">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    if len(frame) <= LONG:
        return shown
    return f"<details><summary>All {len(frame)} rows</summary>{shown}</details>"


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
    panels = " panels" if shown.count("<svg ") > 1 else ""
    return (
        f'<figure class="auditkit-figure{panels}" id="{entry["id"]}">\n{shown}\n'
        f"<figcaption><p><strong>{entry['id']}.</strong> {escape(entry['title'])}.{answers} "
        f"{links}</p>\n<details><summary>Cite it, make it again</summary>"
        f'<pre style="white-space: pre-wrap">{escape(entry["bibtex"])}</pre>'
        f"<p>Its numbers: <code>{escape(entry['command'])}</code></p></details>"
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
