"""Real data by name: found, fetched, verified and described.

Here belong loaders and the cards that say what a dataset is, where it comes from and what it may
be used for. Models and features made from the data belong to `models`.
"""

from .cards import Card, File, Package, Part
from .catalogue import CARDS
from .loading import load, verify
from .result import Dataset
from .sources import fetch
from .store import cache

__all__ = [
    "CARDS",
    "Card",
    "Dataset",
    "File",
    "Package",
    "Part",
    "cache",
    "fetch",
    "load",
    "verify",
]
