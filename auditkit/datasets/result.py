"""What `load` returns: plain arrays by name, and what is known of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from .cards import Card


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A dataset in memory.

    Attributes
    ----------
    card : Card
        Where it comes from, its licence and its citation.
    arrays : mapping
        Plain numpy arrays by name; ``dataset["labels"]`` is short for ``dataset.arrays["labels"]``.
        Texts are arrays of Python strings.
    feature_names : tuple of str
        Names of the columns of `features`, where they have names.
    categories : mapping
        For each feature that is a category: its levels, in the order of their codes.
    class_names : tuple of str
        What the labels 0, 1, … stand for.
    description : str
        What was read and what was left out.
    part : str
        "complete", or which of the shipped parts it is.

    Examples
    --------
    >>> import numpy as np
    >>> from auditkit.datasets import CARDS
    >>> Dataset(card=CARDS["mnist"], arrays={"labels": np.array([3, 1])})
    Dataset 'mnist' (complete): labels (2,) int64
    """

    card: Card
    arrays: Mapping[str, NDArray[Any]]
    feature_names: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    class_names: tuple[str, ...] = ()
    description: str = ""
    part: str = "complete"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", MappingProxyType(dict(self.arrays)))
        object.__setattr__(self, "categories", MappingProxyType(dict(self.categories)))

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.arrays:
            has = ", ".join(map(repr, self.arrays))
            raise KeyError(f"{self.card.name} ({self.part}) has no array {name!r}; it has {has}")
        return self.arrays[name]

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name} {a.shape} {a.dtype}" for name, a in self.arrays.items())
        return f"Dataset {self.card.name!r} ({self.part}): {arrays}"
