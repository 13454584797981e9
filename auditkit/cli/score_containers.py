"""What a file of scores comes in: a plain file, a pipe, standard input, and gzip around it.

How much there is to unpack is looked at before the disk is full.
"""

import gzip
import hashlib
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile

MOST_UNPACKED = 8_000_000_000  # bytes on the disk, of what comes packed or through a pipe
STDIN = Path("-")
# what NumPy raises on files that are damaged
DAMAGED = (ValueError, OSError, EOFError, BadZipFile, zlib.error, SyntaxError, TokenError)


@dataclass(frozen=True)
class Source:
    """An open file: what it is called, its bytes, unpacked, and the hash of what was given."""

    name: str
    file: IO[bytes]
    sha256: str


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open a file, a pipe or standard input; what is packed or flows goes to the disk first."""
    name = "standard input" if path == STDIN else path.name
    with ExitStack() as stack:
        # standard input is not ours to close
        file = sys.stdin.buffer if path == STDIN else stack.enter_context(path.open("rb"))
        if not file.seekable():
            file = _copied(file, stack.enter_context(tempfile.TemporaryFile()), name)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        file.seek(0)
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if packed:
            unpacked = stack.enter_context(tempfile.TemporaryFile())
            try:
                file = _copied(gzip.GzipFile(fileobj=file), unpacked, name)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(f"{name} is no gzip file that can be read: {error}") from None
            file.seek(0)
        yield Source(name, file, digest)


def _copied(source: Any, target: IO[bytes], name: str) -> Any:
    """Copy what flows to the disk, as long as it is not more than belongs there."""
    while block := source.read(1 << 20):
        target.write(block)
        if target.tell() > MOST_UNPACKED:
            raise ValueError(
                f"{name} holds more than {MOST_UNPACKED / 1e9:g} GB once it is unpacked, which is "
                "more than this command takes"
            )
    return target
