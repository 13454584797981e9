"""Where files lie, whether they are what they should be, and how they get there whole."""

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from auditkit._files import write_whole as write_whole

from .cards import Card, File

FULL = {errno.ENOSPC, errno.EDQUOT}
BARRED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
STALE = 24 * 3600.0  # seconds after which a workshop belongs to a run that was killed


class NotWritableError(OSError):
    """The cache cannot be written, so that no source can help."""


def cache() -> Path:
    """Return the folder in which fetched datasets are kept.

    Returns
    -------
    Path
        What the environment variable AUDITKIT_DATA names, else the platform's place for caches.

    References
    ----------
    Platform's place: `pooch.os_cache`.

    Examples
    --------
    >>> cache()  # doctest: +SKIP
    PosixPath('.../auditkit')
    """
    chosen = os.environ.get("AUDITKIT_DATA")
    if chosen:
        return Path(chosen).expanduser()
    import pooch  # type: ignore[import-not-found,import-untyped,unused-ignore]  # takes a tenth of a second

    return Path(pooch.os_cache("auditkit"))


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, expected: File) -> None:
    """Raise a ValueError unless the file is the expected one, byte for byte."""
    size = path.stat().st_size
    if size != expected.size:
        short = "it is cut short" if size < expected.size else "it is another file"
        raise ValueError(
            f"{path.name} has {size:,} bytes where {expected.size:,} are expected: {short}. "
            "It was not read"
        )
    digest = sha256(path)
    if digest != expected.sha256:
        raise ValueError(
            f"{path.name} is not the file its card describes: its SHA-256 is {digest}, the card "
            f"says {expected.sha256}. It was not read"
        )


def cached(card: Card) -> dict[str, Path] | None:
    """Return the files of a dataset if all are in the cache and right."""
    paths = {file.name: cache() / card.name / file.name for file in card.files}
    try:
        for file in card.files:
            check(paths[file.name], file)
    except (OSError, ValueError):
        return None
    return paths


@contextlib.contextmanager
def workshop() -> Iterator[Path]:
    """Give a folder in the cache to work in, which is gone afterwards.

    It lies in the cache so that a finished file moves to its place in one step. What a killed run
    has left behind is removed a day later.
    """
    with writing(cache()):
        cache().mkdir(parents=True, exist_ok=True)
        for left in cache().glob(".partial-*"):
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=".partial-", dir=cache()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place(card: Card, folder: Path) -> dict[str, Path]:
    """Check the files of a dataset and move them into the cache, each in one step."""
    for file in card.files:
        path = folder / file.name
        if not path.is_file():
            raise ValueError(f"{file.name} is missing from what was brought")
        check(path, file)
    paths = {file.name: cache() / card.name / file.name for file in card.files}
    with writing(cache()):
        (cache() / card.name).mkdir(exist_ok=True)
        for name, path in paths.items():
            with (folder / name).open("rb+") as written:
                os.fsync(written.fileno())  # on disk before it has its name
            (folder / name).replace(path)
    return paths


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the system says of a full disk or a barred folder into a sentence that helps."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise full(folder, error) from error
        if error.errno in BARRED:
            raise NotWritableError(
                error.errno,
                f"the cache {folder} cannot be written ({error.strerror}): set AUDITKIT_DATA to a "
                "folder of your own",
            ) from error
        raise


def full(folder: Path, error: OSError) -> NotWritableError:
    """Return the error that says what to do about a full disk."""
    return NotWritableError(
        error.errno,
        f"the disk that holds {folder} is full: free some space, or set AUDITKIT_DATA to a folder "
        "on another disk. Nothing half has been left behind",
    )


def state(paths: Mapping[str, Path], files: tuple[File, ...]) -> dict[str, str]:
    """Say of each file what is wrong with it; nothing if it is right."""
    told = {}
    for file in files:
        try:
            check(paths[file.name], file)
            told[file.name] = ""
        except FileNotFoundError:
            told[file.name] = "missing"
        except (OSError, ValueError) as error:
            told[file.name] = str(error)
    return told
