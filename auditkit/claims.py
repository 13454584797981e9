"""What a paper claims and what was found: a verdict, and the check that it stands on.

Here belongs the record that the book's scorecard is made from. Which claims there are is said in
`data/claims.csv`; what was measured, and how it compares, is said by one module a paper,
`claims.py` among its experiments, which needs no notebook to run.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from auditkit import _check
from auditkit.figures import LIST

VERDICTS = ("reproduced", "partly", "not reproduced")

# The page that lists all claims, seen from the site's root.
SCORECARD = "book/scorecard.html"

# every claim that has been recorded, by id
FINDINGS: dict[str, "Finding"] = {}


@dataclass(frozen=True)
class Finding:
    """A claim of a paper, and what became of it; a notebook shows a small table.

    Attributes
    ----------
    id : str
        The claim.
    paper, measured : str, int or float
        The paper's value, and the book's.
    verdict : {"reproduced", "partly", "not reproduced"}
        What the two amount to.
    why : str
        The reason, in sentences.
    figure : str or tuple of str
        The figures and tables that show it.

    Examples
    --------
    >>> Finding("OBS-1", 2.0, 1.93, "reproduced", "The two agree within noise.", "OBS-F2").verdict
    'reproduced'
    """

    id: str
    paper: str | int | float
    measured: str | int | float
    verdict: str
    why: str
    figure: str | tuple[str, ...]

    def _repr_html_(self) -> str:
        figures = [self.figure] if isinstance(self.figure, str) else self.figure
        # chapters and pages lie one level below the site's root
        rows = {
            "claim": f'<a href="../{SCORECARD}#{self.id}">{self.id}</a>, {self.verdict}',
            "paper": _shown(self.paper),
            "measured": _shown(self.measured),
            "why": escape(self.why),
            "shown by": ", ".join(f'<a href="../{LIST}#{one}">{one}</a>' for one in figures),
        }
        body = "".join(
            f'<tr><th scope="row">{name}</th><td>{html}</td></tr>' for name, html in rows.items()
        )
        return f'<table class="auditkit-bound" id="{self.id}"><tbody>{body}</tbody></table>'


def claim(
    id: str,  # noqa: A002
    *,
    paper: str | float,
    measured: str | float,
    verdict: str,
    why: str,
    figure: str | Sequence[str],
    check: Callable[[], bool] | bool,
) -> Finding:
    """Record what became of a paper's claim, for as long as a check says that it is so.

    `finding` shows the record, and the scorecard is made from all of them.

    Parameters
    ----------
    id : str
        The claim, as `data/claims.csv` names it: ``"OBS-1"``.
    paper, measured : str or float
        The paper's value and ours, side by side: two numbers, or words that can be compared.
    verdict : {"reproduced", "partly", "not reproduced"}
        What the two amount to.
    why : str
        The reason for the verdict, in sentences: what agrees, and what explains the rest.
    figure : str or sequence of str
        The ids of the figures and tables that show it.
    check : bool or callable
        What the verdict stands on, computed from stored results. Where it does not hold the
        verdict is out of date: an AssertionError.

    Returns
    -------
    Finding
        The record.

    References
    ----------
    The page *Scorecard* lists every claim, `claims.json` says the same to a program.

    Examples
    --------
    >>> claim(
    ...     "DEMO-1",
    ...     paper=2.0,
    ...     measured=1.93,
    ...     verdict="reproduced",
    ...     why="The two agree within the noise of ten runs.",
    ...     figure="DEMO-F2",
    ...     check=abs(1.93 - 2.0) < 0.1,
    ... ).verdict
    'reproduced'
    """
    if not isinstance(id, str) or not re.fullmatch(r"[A-Z]+-[0-9]+", id):
        raise ValueError(f'id must be as in "OBS-1", got {id!r}')
    finding = Finding(
        id,
        _value("paper", paper),
        _value("measured", measured),
        _check.choice("verdict", verdict, VERDICTS),
        _check.sentences("why", why),
        _figures(figure),
    )
    if not _check.flag("check", check() if callable(check) else check):
        raise AssertionError(
            f"claim {id} is recorded as {verdict}, but its check does not hold. "
            f"Paper: {finding.paper!r}. Measured: {finding.measured!r}. "
            "Change the verdict, or what it stands on"
        )
    FINDINGS[id] = finding
    return finding


def finding(id: str) -> Finding:  # noqa: A002
    """Return what became of a claim, for a page that has imported the claims of its paper.

    Parameters
    ----------
    id : str
        The claim: ``"OBS-1"``.

    Returns
    -------
    Finding
        What a notebook shows: the paper's value, ours, the verdict and the reason.

    References
    ----------
    `claim` records it.

    Examples
    --------
    >>> record = claim(
    ...     "DEMO-2",
    ...     paper="grows",
    ...     measured="grows",
    ...     verdict="reproduced",
    ...     why="It grows in all ten runs.",
    ...     figure="DEMO-F2",
    ...     check=True,
    ... )
    >>> finding("DEMO-2").measured
    'grows'
    """
    if id not in FINDINGS:
        listed = ", ".join(FINDINGS) or "none"
        raise ValueError(
            f"id must be a claim that has been recorded, got {id!r}; recorded are {listed}. Import "
            "the claims of the paper first: from experiments.observational import claims"
        )
    return FINDINGS[id]


def _value(name: str, value: Any) -> str | int | float:
    """Return words or a finite number, which JSON can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    words = isinstance(value, str) and value.strip() != ""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not words and not number:
        raise ValueError(f"{name} must be a finite number or words, got {value!r}")
    return value  # type: ignore[no-any-return]


def _figures(figure: Any) -> str | tuple[str, ...]:
    if isinstance(figure, str):
        return _check.figure("figure", figure)
    if not isinstance(figure, Sequence) or not figure:
        raise ValueError(f"figure must be the id of a figure, or a list of them, got {figure!r}")
    return tuple(_check.figure("figure", one) for one in figure)


def _shown(value: str | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))
