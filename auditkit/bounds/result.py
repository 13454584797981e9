"""What a number means: every audit returns a `Bound`, never a bare float."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from html import escape
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats

Claim = Literal["lower bound", "estimate", "upper bound"]
SAFE_SIDE: dict[str, str] = {
    "lower bound": ROUND_FLOOR,
    "estimate": ROUND_HALF_EVEN,
    "upper bound": ROUND_CEILING,
}


@dataclass(frozen=True, eq=False)
class Bound:
    """A statement about ε, with all that is needed to read it.

    Attributes
    ----------
    epsilon : float or ndarray
        The number; an array where the counts were arrays.
    delta : float
        The δ at which it is stated.
    confidence : float or None
        How often a lower bound may be trusted: it exceeds the true ε in at most a share
        ``1 - confidence`` of repetitions. An estimate aims at it and may miss. None where nothing
        random was measured, and where a sweep without correction leaves none to state.
    claim : {"lower bound", "estimate", "upper bound"}
        What is proved. An estimate proves nothing, whatever its size.
    adjacency : str
        Which datasets count as neighbours.
    method : str
        How the number was made.
    assumptions : tuple of str
        Sentences that have to hold for the claim to hold.
    details : mapping
        The realised operating point: examples, guesses, correct, threshold, μ, τ and so on.
    notices : tuple of str
        Sentences on what was seen in the input and has to be known, though the claim stands.

    Examples
    --------
    >>> print(Bound(1.25, 1e-5, 0.95, "lower bound", "add/remove", "one run"))
    ε ≥ 1.250 at δ = 1e-05 with 95% confidence (lower bound, add/remove adjacency; one run)
    """

    epsilon: float | Floats
    delta: float
    confidence: float | None
    claim: Claim
    adjacency: str
    method: str
    assumptions: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check.choice("claim", self.claim, SAFE_SIDE)

    def __str__(self) -> str:
        sign = {"lower bound": "≥", "estimate": "≈", "upper bound": "≤"}[self.claim]
        confidence = ""
        if self.confidence is not None:
            # an estimate aims at its confidence, a bound has it
            link = "at a nominal" if self.claim == "estimate" else "with"
            confidence = f" {link} {short_of(100, 100 * self.confidence)}% confidence"
        assumed = f"; assumes: {' '.join(self.assumptions)}" if self.assumptions else ""
        kind = "estimate, not a bound" if self.claim == "estimate" else self.claim
        return (
            f"ε {sign} {_number(self.epsilon, self.claim)} at δ = {self.delta:g}{confidence} "
            f"({kind}, {self.adjacency} adjacency; {self.method}{assumed})"
            f"{noticed(self.notices)}"
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[str, str]] = [
            ("ε", _number(self.epsilon, self.claim)),
            ("δ", f"{self.delta:g}"),
            ("confidence", "none" if self.confidence is None else short_of(1, self.confidence)),
            ("claim", self.claim),
            ("adjacency", self.adjacency),
            ("method", self.method),
            *(("assumes", sentence) for sentence in self.assumptions),
            *(("notice", sentence) for sentence in self.notices),
            *((str(name), _number(value)) for name, value in self.details.items()),
        ]
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
            for name, text in rows
        )
        return f'<table class="auditkit-bound"><tbody>{body}</tbody></table>'


def plain(value: ArrayLike) -> float | Floats:
    """Return a plain number for an array without dimensions, an array otherwise."""
    array = np.asarray(value)
    found: float | Floats = array if array.ndim else array.item()
    return found


def noticed(notices: tuple[str, ...]) -> str:
    """Return what follows a result in one line, empty where there is nothing to notice."""
    return f" – notice: {' '.join(notices)}" if notices else ""


def rounded(value: float, claim: str) -> str:
    """Write ε in a few digits that claim no more than it does.

    A lower bound is rounded down and an upper bound up; only an estimate goes to the nearest.

    Examples
    --------
    >>> rounded(0.8469, "lower bound"), rounded(0.8469, "estimate"), rounded(0.8462, "upper bound")
    ('0.846', '0.847', '0.847')
    """
    if not isfinite(value):
        return str(value)
    exact = Decimal(repr(float(value)))  # 0.3 stays 0.300, though its binary form lies below
    if value == 0 or 1e-2 <= abs(value) < 1e6:
        return str(exact.quantize(Decimal("0.001"), rounding=SAFE_SIDE[claim]))
    four_digits = Decimal(1).scaleb(exact.adjusted() - 3)
    return f"{float(exact.quantize(four_digits, rounding=SAFE_SIDE[claim])):.4g}"


def short_of(whole: int, part: float) -> str:
    """Write a part of a whole in six digits, or in all its digits where six would say the whole."""
    text = f"{part:.6g}"
    return text if float(text) < whole else repr(float(part))


def _number(value: Any, claim: str = "estimate") -> str:
    if isinstance(value, (float, np.floating)):
        return rounded(float(value), claim)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return _number(value.item(), claim)
        if value.size > 6:
            ends = (_number(value.min(), claim), _number(value.max(), claim))
            return f"{value.size} values from {ends[0]} to {ends[1]}"
        return "[" + ", ".join(_number(item, claim) for item in value.ravel().tolist()) + "]"
    return str(value)
