"""What a number means: every audit returns a `Bound`, never a bare float."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Claim = Literal["lower bound", "estimate", "upper bound"]


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
        random was measured.
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

    Examples
    --------
    >>> print(Bound(1.25, 1e-5, 0.95, "lower bound", "add/remove", "one run"))
    ε ≥ 1.250 at δ = 1e-05 with 95% confidence (lower bound, add/remove adjacency; one run)
    """

    epsilon: float | NDArray[np.float64]
    delta: float
    confidence: float | None
    claim: Claim
    adjacency: str
    method: str
    assumptions: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        sign = {"lower bound": "≥", "estimate": "≈", "upper bound": "≤"}[self.claim]
        confidence = ""
        if self.confidence is not None:
            # an estimate aims at its confidence, a bound has it
            link = "at a nominal" if self.claim == "estimate" else "with"
            confidence = f" {link} {100 * self.confidence:.6g}% confidence"
        assumed = f"; assumes: {' '.join(self.assumptions)}" if self.assumptions else ""
        kind = "estimate, not a bound" if self.claim == "estimate" else self.claim
        return (
            f"ε {sign} {_number(self.epsilon)} at δ = {self.delta:g}{confidence} "
            f"({kind}, {self.adjacency} adjacency; {self.method}{assumed})"
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[str, str]] = [
            ("ε", _number(self.epsilon)),
            ("δ", f"{self.delta:g}"),
            ("confidence", "none" if self.confidence is None else f"{self.confidence:g}"),
            ("claim", self.claim),
            ("adjacency", self.adjacency),
            ("method", self.method),
            *(("assumes", sentence) for sentence in self.assumptions),
            *((str(name), _number(value)) for name, value in self.details.items()),
        ]
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
            for name, text in rows
        )
        return f'<table class="auditkit-bound"><tbody>{body}</tbody></table>'


def _number(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return f"{number:.4g}" if 0 < abs(number) < 1e-2 else f"{number:.3f}"
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return _number(value.item())
        if value.size > 6:
            return f"{value.size} values from {_number(value.min())} to {_number(value.max())}"
        return "[" + ", ".join(_number(item) for item in value.ravel().tolist()) + "]"
    return str(value)
