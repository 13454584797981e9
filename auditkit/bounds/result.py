"""What a number means: every audit returns a `Bound`, never a bare float."""

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from html import escape
from math import isfinite
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats

# float for counts that are numbers, an array for arrays
E = TypeVar("E", bound=float | Floats, covariant=True)
Claim = Literal["lower bound", "estimate", "upper bound"]
SAFE_SIDE: dict[str, str] = {
    "lower bound": ROUND_FLOOR,
    "estimate": ROUND_HALF_EVEN,
    "upper bound": ROUND_CEILING,
}


@dataclass(frozen=True, eq=False)
class Bound(Generic[E]):
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

    Bounds of one δ, claim, adjacency and confidence are ordered by ε; others are not compared.

    >>> small, large = (Bound(e, 0.0, 0.95, "lower bound", "label", "a test") for e in (0.5, 1.5))
    >>> small < large, max(small, large).epsilon
    (True, 1.5)
    """

    epsilon: E
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

    def __eq__(self, other: object) -> bool:
        """Two bounds are equal if every field is, details included."""
        if not isinstance(other, Bound) or type(other) is not type(self):
            return NotImplemented
        return all(
            _same(getattr(self, item.name), getattr(other, item.name)) for item in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.delta, self.confidence, self.claim, self.adjacency, self.method))

    def __lt__(self, other: "Bound[Any]") -> bool:
        return self._beside(other) < other._beside(self)

    def __le__(self, other: "Bound[Any]") -> bool:
        return self._beside(other) <= other._beside(self)

    def __gt__(self, other: "Bound[Any]") -> bool:
        return self._beside(other) > other._beside(self)

    def __ge__(self, other: "Bound[Any]") -> bool:
        return self._beside(other) >= other._beside(self)

    def _beside(self, other: "Bound[Any]") -> float:
        """Return ε, if it may be set beside that of another: both say the same kind of thing."""
        if not isinstance(other, Bound):
            raise TypeError(f"a bound is compared with bounds, got {other!r}: compare its epsilon")
        for name in ("delta", "claim", "adjacency", "confidence"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                raise ValueError(
                    f"bounds must agree in {name} to be compared, got {one!r} and {two!r}"
                )
        if np.ndim(self.epsilon):
            raise ValueError("bounds must be of one ε each to be compared: compare their epsilon")
        return float(self.epsilon)

    def to_json(self) -> str:
        """Return all fields as JSON, with the sentence, as ``auditkit explain`` takes them.

        What JSON has no number for is a word, such as "inf".

        Examples
        --------
        >>> text = Bound(1.25, 1e-5, 0.95, "lower bound", "add/remove", "one run").to_json()
        >>> text[:41]
        '{"epsilon": 1.25, "delta": 1e-05, "confid'
        """
        told = {item.name: getattr(self, item.name) for item in fields(self)}
        return json.dumps(jsonable(told | {"sentence": str(self)}), allow_nan=False)

    def report(self, path: str | os.PathLike[str], *, title: str = "Privacy audit") -> None:
        """Write a report of one HTML file, whole or not at all.

        It says what the bound says and does not say, what it rests on, and what an audit of this
        design could have found. ``auditkit audit --report`` has the scores too, and draws them.

        Parameters
        ----------
        path : path
            The file to write.
        title : str
            What stands above it: the model, for instance.
        """
        # the report stands higher than bounds do, so that it is found by its name
        importlib.import_module("auditkit.cli.report").write_bound(self, os.fspath(path), title)

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


def _same(one: Any, two: Any) -> bool:
    """Say whether two values are equal, arrays in every number."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_same(one[name], two[name]) for name in one)
    if isinstance(one, tuple | list) and isinstance(two, tuple | list):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    return bool(one == two)


def jsonable(value: Any) -> Any:
    """Return a value as JSON can hold it; what is not finite becomes a word."""
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    return repr(value)


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
