"""Coins that decide who is trained on: tossed before training, and kept with the plan of the audit.

An audit in one run rests on a fair coin of its own for each example, and on a method and a rule
that were chosen before any score was seen. Both are decided here and written into one small file.

What such a file can show, and what not. Its digest shows that nothing in it was edited since the
digest was published: in a commit, a mail, a registry that others keep. Unpublished it shows nothing
to others, since whoever edits the file can make the digest anew. No file shows that the training
followed the coins, nor that these are the first that were tossed. A result names these conditions.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._files import write_whole
from auditkit._types import Bools
from auditkit.thresholds import TEN, Bonferroni, Fixed, MultiSplit, Split, Sweep, Threshold

Method: TypeAlias = Literal["one-run", "one-run-fdp", "two-worlds"]
FAMILIES: Mapping[str, tuple[str | None, ...]] = {  # the first is what None stands for
    "one-run": (None,),
    "one-run-fdp": ("gaussian", "pure"),
    "two-worlds": ("approx", "gaussian"),
}
RULES = {rule.__name__: rule for rule in get_args(Threshold)}
FORMAT = "auditkit coins 1"
SIDES = ("out", "in")


class Plan(TypedDict):
    """What was decided before training: the arguments of `audit_scores` of the same names."""

    method: Method
    family: str | None
    threshold: Threshold
    delta: float
    confidence: float


@dataclass(frozen=True, eq=False, repr=False)
class Coins:
    """Who is trained on, as coins decided, and how the audit will be made. `toss_coins` makes them.

    Attributes
    ----------
    ids : tuple of str
        Names of the examples, or in two worlds of the runs.
    members : ndarray of bool, shape (ids,)
        Whether each coin says that its example is trained on.
    plan : dict
        Method, family, threshold, delta and confidence, as `audit_scores` takes them.
    tossed : str
        When, by the machine's clock.
    salt : str
        Random digits. They hide few coins from whoever knows the digest, and give chance that knows
        nothing of the coins, which canaries are drawn from.
    promise : tuple of float, optional
        What is to be tested, as `toss_coins` takes it. No bound depends on it, so it is no part of
        `plan`, which `audit_scores` takes; ``auditkit audit --coins`` gives its p-value.

    Examples
    --------
    >>> coins = toss_coins(["a", "b", "c"], method="one-run")
    >>> coins.of(["c", "a", "b"]).tolist() == [bool(coins.members[i]) for i in (2, 0, 1)]
    True
    """

    ids: tuple[str, ...]
    members: Bools
    plan: Plan
    tossed: str
    salt: str
    promise: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        self.members.setflags(write=False)  # the digest is made once

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Coins({len(self)} ids, {int(self.members.sum())} in, SHA-256 {self.digest[:16]}…)"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all else in the file, as JSON in ASCII without spaces: publish it."""
        text = json.dumps(self._content(), separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def of(self, ids: ArrayLike) -> Bools:
        """Return who is a member, in the order of `ids`, which have to be those of the coins.

        All of them: an example that is left out once scores are known leaves the game unfair.
        """
        asked = names("ids", ids)
        places = {name: place for place, name in enumerate(self.ids)}
        lost = [name for name in asked if name not in places]
        lost += list(set(self.ids).difference(asked))
        if lost:
            raise ValueError(
                f"ids must name the {len(self)} examples that coins were tossed for, got "
                f"{lost[0]!r} on one side only ({len(lost)} such in all)"
            )
        return self.members[[places[name] for name in asked]]

    def changes(self, asked: Plan) -> tuple[str, ...]:
        """Say what of a plan is not as it was planned with the coins, nothing if all is."""
        then, now = _plain(self.plan), _plain(asked)
        return tuple(
            f"{name} is {_told(now[name])}, planned was {_told(value)}"
            for name, value in then.items()
            if json.dumps(value) != json.dumps(now[name])  # 1 guess is not 1.0, which is all
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one JSON file, whole or not at all, and never over another.

        To toss until the coins please would make them unfair; so they are not overwritten.
        """
        text = json.dumps(self._content() | {"sha256": self.digest}, indent=1)
        try:
            write_whole(Path(path), (text + "\n").encode("ascii"), new=True)
        except FileExistsError:
            raise FileExistsError(
                f"path must be a new file, and {os.fspath(path)!r} is there: coins are tossed "
                "once. If they were never used, remove it by hand"
            ) from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; a file that was edited and no longer fits its digest is refused.

        Compare `digest` with the one that you published: this alone shows that nothing was edited.
        """
        name = Path(path).name
        try:
            told = json.loads(Path(path).read_text(encoding="utf-8-sig"))
            coins = cls._of(told)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{name} is no file of coins: {error!r}") from None
        if coins.digest != told.get("sha256"):
            raise ValueError(
                f"{name} was edited after the coins were tossed: the SHA-256 of what it holds is "
                f"{coins.digest}, and it says {told.get('sha256')!r}"
            )
        return coins

    def _content(self) -> dict[str, Any]:
        sides = (SIDES[member] for member in self.members.tolist())
        return {
            "format": FORMAT,
            "tossed": self.tossed,
            "plan": _plain(self.plan),
            **({} if self.promise is None else {"promise": list(self.promise)}),
            "salt": self.salt,
            "coins": dict(zip(self.ids, sides, strict=True)),
        }

    @classmethod
    def _of(cls, told: Mapping[str, Any]) -> Self:
        if told["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {told['format']!r}")
        values = dict(told["plan"])
        ((kind, rule),) = values.pop("threshold").items()
        if isinstance(rule.get("candidates"), list):
            rule |= {"candidates": tuple(Fixed(**each) for each in rule["candidates"])}
        members = np.array([SIDES.index(side) for side in told["coins"].values()], bool)
        plan = _plan(threshold=RULES[kind](**rule), **values)
        tossed, salt, promise = str(told["tossed"]), str(told["salt"]), told.get("promise")
        return cls(tuple(told["coins"]), members, plan, tossed, salt, _promise(promise))


def toss_coins(
    ids: ArrayLike,
    *,
    method: Literal["one-run", "one-run-fdp", "two-worlds"],
    threshold: Threshold = TEN,
    delta: float = 1e-5,
    confidence: float = 0.95,
    family: Literal["gaussian", "pure", "approx"] | None = None,
    promise: tuple[float, ...] | None = None,
) -> Coins:
    """Toss a fair coin for each example, before training, and keep the plan of the audit with it.

    The draw comes from the operating system and takes no seed: nobody can have it again, or know it
    beforehand. So it has to be saved. Save it before you train, publish `digest`, train on the
    examples whose coin says so, and hand the coins to `audit_scores` in the place of members.

    Parameters
    ----------
    ids : array of shape (examples,)
        A name for each example, or in two worlds for each run: texts or whole numbers, which are
        kept as text. ``range(1000)`` will do.
    method : {"one-run", "one-run-fdp", "two-worlds"}
        The method of the audit.
    threshold : Fixed, Bonferroni, Split, MultiSplit or Sweep
        How guesses will be chosen, by default as in `audit_scores`.
    delta : float
        The δ at which ε will be stated.
    confidence : float
        Confidence of the bound.
    family : str, optional
        As in `audit_scores`, by a word: "gaussian" or "pure" for "one-run-fdp", "approx" or
        "gaussian" for "two-worlds". The first is the default.
    promise : tuple of float, optional
        What the audit will test by a p-value: ``(epsilon, delta)``, or ``(mu,)`` of Gaussian DP.

    Returns
    -------
    Coins

    Notes
    -----
    What was planned and is changed afterwards makes an estimate. One other rule would keep the
    confidence if its choice saw neither scores nor members, or if it shared the level with the rule
    that was planned; a file can show neither. Who wants to try several plans them, by `Bonferroni`.

    References
    ----------
    Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run", Algorithm 1,
    line 2. On plans that are kept before the data: Nosek et al. (2018), "The preregistration
    revolution".

    Examples
    --------
    >>> import tempfile
    >>> from auditkit import audit_scores
    >>> coins = toss_coins(range(2000), method="one-run", threshold=Fixed(guesses=0.1))
    >>> path = Path(tempfile.mkdtemp()) / "coins.json"
    >>> coins.save(path)
    >>> scores = np.random.default_rng().normal(3.0 * coins.members)  # the model, and an attack
    >>> bound = audit_scores(scores, coins, ids=range(2000), **Coins.load(path).plan)
    >>> bound.epsilon > 1.0, bound.claim
    (True, 'lower bound')
    """
    plan = _plan(method, family, threshold, delta, confidence)
    kept = names("ids", ids)
    _countable(plan, len(kept))
    bits = np.frombuffer(secrets.token_bytes(len(kept) // 8 + 1), np.uint8)
    members = np.unpackbits(bits)[: len(kept)].astype(np.bool_)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Coins(kept, members, plan, now, secrets.token_hex(16), _promise(promise))


def names(argument: str, ids: ArrayLike) -> tuple[str, ...]:
    """Return ids as text, each of which may occur once."""
    array = np.asarray(ids)
    if not array.size:
        raise ValueError(f"{argument} must name at least 1 example, got none")
    if array.ndim != 1 or array.dtype.kind not in "iuUSO":
        raise ValueError(
            f"{argument} must be a list of texts or whole numbers, got shape {array.shape} of "
            f"{array.dtype}"
        )
    found = tuple(map(str, array.tolist()))
    if len(set(found)) < len(found):
        values, times = np.unique(np.array(found), return_counts=True)
        raise ValueError(
            f"{argument} must not repeat, got {str(values[times.argmax()])!r} {times.max()} times"
        )
    return found


def _plan(
    method: str, family: str | None, threshold: Threshold, delta: float, confidence: float
) -> Plan:
    method = _check.choice("method", method, FAMILIES)
    if family is not None:
        given = [name for name in FAMILIES[method] if name is not None]
        if not given:
            raise ValueError(f"family must be None with method={method!r}, got {family!r}")
        _check.choice("family", family, given)
    if not isinstance(threshold, Fixed | Bonferroni | Split | MultiSplit | Sweep):
        raise TypeError(
            f"threshold must be Fixed, Bonferroni, Split, MultiSplit or Sweep, got {threshold!r}"
        )
    family = family or FAMILIES[method][0]
    return {
        "method": method,  # type: ignore[typeddict-item]  # one of them, as was checked
        "family": family,
        "threshold": threshold,
        "delta": _check.delta("delta", delta, gaussian=family == "gaussian"),
        "confidence": _check.fraction("confidence", confidence),
    }


def _promise(given: Any) -> tuple[float, ...] | None:
    """Return (ε, δ), or the μ of a Gaussian curve, as they are kept."""
    if given is None:
        return None
    if isinstance(given, str) or len(given) not in (1, 2):
        raise ValueError(f"promise must be (epsilon, delta) or (mu,), got {given!r}")
    first = _check.scalar("promise", given[0], least=0.0)
    return (first, *(_check.delta("the δ of promise", each) for each in given[1:]))


def _countable(plan: Plan, examples: int) -> None:
    """Refuse a rule that the audit would refuse, which is too late after training."""
    rule = plan["threshold"]
    fixed = rule.candidates if isinstance(rule, Bonferroni) else rule
    for one in fixed if isinstance(fixed, tuple) else (fixed,):
        if isinstance(one, Fixed) and one.guesses is not None:
            if plan["method"] == "two-worlds":
                raise ValueError(
                    "threshold must be a cut for method='two-worlds', which guesses on every run, "
                    f"got {one!r}"
                )
            one.number(examples)


def _plain(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON has it: the rule by its name, and what None stands for."""
    rule = {type(plan["threshold"]).__name__: asdict(plan["threshold"])}
    family = plan["family"] or FAMILIES[plan["method"]][0]
    numbers = {"delta": float(plan["delta"]), "confidence": float(plan["confidence"])}
    told = {"method": plan["method"], "family": family, "threshold": rule, **numbers}
    found: dict[str, Any] = json.loads(json.dumps(told, default=_item))
    return found


def _item(value: Any) -> Any:
    """Return a number of numpy's as Python's; a family that is a function by its name."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def _told(value: Any) -> str:
    if isinstance(value, dict):
        ((kind, rule),) = value.items()
        return f"{kind}({', '.join(f'{name}={each}' for name, each in rule.items())})"
    return f"{value:g}" if isinstance(value, float) else str(value)
