"""Which column of a file serves as what: columns are known by their names, whatever their case."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditkit.cli.terminal import quoted

NAMES: Mapping[str, tuple[str, ...]] = {
    "score": ("score", "scores"),
    "member": ("member", "members", "membership", "memberships", "is_member"),
    "id": ("id", "ids"),
    "propensity": ("propensity", "propensities"),
    "baseline": ("baseline_score", "baseline_scores", "baseline"),
    "chosen": ("chosen", "chosen_label", "chosen_label_bit", "chosen_bit"),
    "placebo": ("placebo", "placebo_flag", "is_placebo"),
}
ROLES = (*NAMES, "feature")
FEATURE = ("feature", "propensity_feature")
FLAGS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "member": (
        ("0", "1"),
        ("false", "true"),
        ("out", "in"),
        ("no", "yes"),
        ("test", "train"),
        ("non-member", "member"),
        ("nonmember", "member"),
        ("-1", "1"),
    ),
    "chosen": (("0", "1"), ("false", "true"), ("training", "generated")),
    "placebo": (("0", "1"), ("false", "true"), ("no", "yes")),
}


@dataclass(frozen=True)
class Layout:
    """Which column serves as what; a score that is high for non-members is turned round."""

    headers: tuple[str, ...]
    places: Mapping[str, int]
    turned: bool


def wishes_of(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return what was wished by the role, from words such as ``score=-loss``."""
    wishes: dict[str, list[str]] = {}
    for column in columns:
        role, equals, name = column.partition("=")
        if role not in ROLES or not equals or not name:
            raise ValueError(
                f"--column must be as in score=-loss, for one of {', '.join(ROLES)}, got "
                f"{quoted(column)}"
            )
        if role in wishes and role != "feature":
            raise ValueError(
                f"--column {role} must be given once, got {quoted(wishes[role][0])} and "
                f"{quoted(name)}; a feature alone may repeat"
            )
        wishes.setdefault(role, []).append(name)
    return wishes


def layout_of(headers: Sequence[str], wishes: Mapping[str, list[str]]) -> Layout:
    """Return which column serves as what, or say why that is not known."""
    known = [known_as(header) for header in headers]
    places: dict[str, int] = {}
    turned = False
    for role, names in NAMES.items():
        found = [place for place, name in enumerate(known) if name in names]
        for wish in wishes.get(role, []):
            loss = role == "score" and wish.startswith("-") and not _called(headers, wish)
            found, turned = _wished(headers, wish[1:] if loss else wish), turned or loss
        if len(found) > 1:
            twice = " and ".join(quoted(headers[place]) for place in found[:2])
            alike = headers[found[0]].strip() == headers[found[1]].strip()
            way = "give one another name" if alike else f"say --column {role}=…"
            raise ValueError(f"two columns could be the {role}: {twice}; {way}")
        if found:
            places[role] = found[0]
    if "score" not in places:
        raise ValueError(
            f"no column is called score; found {listed(headers)}; say --column score=NAME, or "
            "score=-NAME where a low value means member, as with a loss"
        )
    features = {place for place, name in enumerate(known) if name.startswith(FEATURE)}
    features -= set(places.values())
    for wish in wishes.get("feature", []):
        features.update(_wished(headers, wish))
    places |= {f"feature {i}": place for i, place in enumerate(sorted(features), start=1)}
    return Layout(tuple(headers), places, turned)


def _called(headers: Sequence[str], name: str) -> list[int]:
    return [place for place, header in enumerate(headers) if header.strip() == name]


def _wished(headers: Sequence[str], name: str) -> list[int]:
    found = _called(headers, name)
    if not found:
        raise ValueError(f"no column is called {quoted(name)}; found {listed(headers)}")
    return found


def known_as(header: str) -> str:
    """Return a name as it is compared."""
    return header.strip().casefold().replace(" ", "_").replace("-", "_")


def listed(headers: Iterable[str]) -> str:
    """Return the names of columns, the first eight where there are many."""
    shown = [quoted(header) for header in headers]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"{', '.join(shown[:8])}{more}"


def hashed(ids: Iterable[Any]) -> NDArray[Any]:
    """Return ids by their hashes, which take little room, and mix words and numbers."""
    from pandas.util import hash_array

    texts = np.array([str(name) for name in ids], dtype=object)
    hashes: NDArray[Any] = hash_array(texts, categorize=False)
    return hashes
