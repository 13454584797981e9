"""Take named files out of an archive, without trusting a single path in it.

A file of the archive is copied under the name that the card gives it, never under its own, and
never more bytes of it than the card allows. Nothing that lies in an archive is run.

Where the file wanted lies in an archive within the archive, its path has steps separated by
``!``: ``outer.tar.gz!folder/file``. The step ``gunzip`` decompresses a single file, and the empty
path is the file itself.
"""

import gzip
import io
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error)
Entry = tuple[str, Callable[[], Any] | None]  # what it returns has `read` and is closed


def unpack(archive: Path, members: Mapping[str, str], into: Path, *, limit: int) -> None:
    """Copy the members of an archive into a folder, under the names given.

    Parameters
    ----------
    archive : Path
        A zip, wheel, tar, tar.gz, deb or gz file.
    members : mapping
        The path within the archive and the name to store it under.
    into : Path
        The folder to write to.
    limit : int
        No member may be larger than this many bytes.

    References
    ----------
    Why paths are not trusted: the documentation of `tarfile`, on extraction filters.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with zipfile.ZipFile(folder / "a.zip", "w") as archive:
    ...     archive.writestr("deep/inside.txt", "words")
    >>> unpack(folder / "a.zip", {"deep/inside.txt": "out.txt"}, folder, limit=100)
    >>> (folder / "out.txt").read_text()
    'words'
    """
    steps: dict[str, dict[str, str]] = {}
    for path, name in members.items():
        head, _, rest = path.partition("!")
        steps.setdefault(head, {})[rest] = name
    try:
        _take(archive, steps, into, limit)
    except (*BROKEN, lzma.LZMAError) as error:
        raise ValueError(
            f"{archive.name} cannot be unpacked: it is cut short, or no archive ({error})"
        ) from error


def _take(archive: Path, steps: dict[str, dict[str, str]], into: Path, limit: int) -> None:
    left = dict(steps)
    if "" in left:
        shutil.copyfile(archive, into / left.pop("")[""])
    for path, opened in _entries(archive, left) if left else ():
        if _climbs(path):
            raise ValueError(
                f"{archive.name} holds a path that climbs out of it, {path!r}: it was not unpacked"
            )
        inner = left.pop(path.removeprefix("./"), None)
        if inner is None:
            continue
        if opened is None:
            raise ValueError(f"{path!r} in {archive.name} is a link, not a file: it was not read")
        direct = inner.pop("", None)
        target = into / (direct or f".inner-{PurePosixPath(path).name}")
        with opened() as source:
            _copy(source, target, limit, f"{path!r} in {archive.name}")
        if inner:
            unpack(target, inner, into, limit=limit)
        if direct is None:
            target.unlink()
    if left:
        raise ValueError(f"{archive.name} lacks {', '.join(map(repr, left))}")


def _entries(archive: Path, wanted: Mapping[str, object]) -> Iterator[Entry]:
    """Give each entry with a way to open it, None where it is no plain file."""
    if "gunzip" in wanted:
        yield "gunzip", lambda: gzip.open(archive)  # noqa: SIM115 - whoever calls it closes it
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as bundle:
            for info in bundle.infolist():
                yield info.filename, lambda info=info: bundle.open(info)  # type: ignore[misc]
    elif _begins(archive, b"!<arch>\n"):
        yield from _entries_of_ar(archive)
    else:
        with tarfile.open(archive) as bundle:
            for member in bundle:
                plain = member.isreg()
                yield (
                    member.name,
                    (lambda member=member: bundle.extractfile(member)) if plain else None,  # type: ignore[misc]
                )


def _entries_of_ar(archive: Path) -> Iterator[Entry]:
    """Read the format of Debian packages: after 8 bytes, headers of 60 bytes and their content."""
    with archive.open("rb") as file:
        file.seek(8)
        while header := file.read(60):
            if len(header) < 60 or header[58:] != b"`\n":
                raise EOFError("a header is broken")
            size, start = int(header[48:58]), file.tell()
            yield header[:16].decode().rstrip(" /"), lambda size=size: io.BytesIO(file.read(size))  # type: ignore[misc]
            file.seek(start + size + size % 2)


def _begins(archive: Path, magic: bytes) -> bool:
    with archive.open("rb") as file:
        return file.read(len(magic)) == magic


def _climbs(path: str) -> bool:
    parts = PurePosixPath(path.replace("\\", "/"))
    return parts.is_absolute() or ".." in parts.parts or bool(PureWindowsPath(path).drive)


def _copy(source: IO[bytes], target: Path, limit: int, what: str) -> None:
    written = 0
    with target.open("wb") as file:
        while block := source.read(1 << 20):
            written += len(block)
            if written > limit:
                raise ValueError(f"{what} unpacks to more than the {limit:,} bytes expected")
            file.write(block)
