"""Which column of a file serves as what: columns are known by their names, whatever their case."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
# scores of members and of others, as jax_privacy and PrivacyGuard call them, and others
PAIRS = (
    ("in_canary_scores", "out_canary_scores"),
    ("score_train", "score_test"),
    ("in_scores", "out_scores"),
    ("member_scores", "non_member_scores"),
    ("member_scores", "nonmember_scores"),
    ("train_scores", "test_scores"),
)
BARE = "score"  # what a column without a name is called, in a file of scores of one kind
LEFT_OUT = "Leave such rows out only if what emptied them cannot depend on membership"

Column: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Asked:
    """How a file is to be read.

    Attributes
    ----------
    wishes : mapping
        Columns by the role that they are to serve as.
    decimal : str or None
        What stands before the fraction of a number, where somebody said so.
    bare : bool
        Whether numbers without a name may be the scores, as in a file of one kind.
    """

    wishes: Mapping[str, list[str]]
    decimal: str | None = None
    bare: bool = False


@dataclass(frozen=True)
class Layout:
    """Which column serves as what; a score that is high for non-members is turned round."""

    headers: tuple[str, ...]
    places: Mapping[str, int]
    turned: bool


Read: TypeAlias = tuple[Layout, dict[str, Any], tuple[str, ...]]  # columns by role, and notes


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


def pair_of(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the names of the scores of members and of others, where scores come in two arrays."""
    known = {known_as(name): name for name in names}
    if {"score", "scores"} & set(known):
        return None
    for inside, outside in PAIRS:
        if inside in known and outside in known:
            return known[inside], known[outside]
    return None


def two_kinds(columns: Mapping[str, Column]) -> tuple[Mapping[str, Column], tuple[str, ...]]:
    """Join the scores of members and of others, where they come in two arrays."""
    pair = pair_of(columns)
    if pair is None:
        return columns, ()
    inside, outside = (columns[name] for name in pair)
    note = f"{quoted(pair[0])} was read as the scores of members, {quoted(pair[1])} of the others."
    member = np.repeat(["1", "0"], [inside.size, outside.size])
    return {"score": np.concatenate((inside, outside)), "member": member}, (note,)


def same_length(lengths: Mapping[str, int]) -> None:
    """Refuse columns of which one is longer than another."""
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{quoted(name)} has {size}" for name, size in lengths.items())
        raise ValueError(f"columns must have the same length: {sizes}")
