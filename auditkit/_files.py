"""How a file gets to its place whole: nobody ever sees half of one, and nothing is left behind."""

import contextlib
import os
import time
from pathlib import Path

LEFT = 3600.0  # seconds after which a half file belongs to a process that was killed


def write_whole(path: Path, content: bytes, *, new: bool = False) -> None:
    """Write a file so that it is there whole or not at all, making its folder if need be.

    The content goes to a file beside it, which gets the name when all is on the disk. Of two
    processes the later one wins. What a killed process has left beside it is removed an hour later.

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        What it shall hold.
    new : bool
        Whether the name has to be free, even where two processes ask at once; FileExistsError else.
    """
    half = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        with half.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if new:
            os.link(half, path)  # which fails where there is a file, unlike a move
        else:
            half.replace(path)
    except FileExistsError:
        raise
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror or error}; nothing was written, and nothing half is left behind",
            str(path),
        ) from error
    finally:
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove what killed processes have left of this file."""
    for left in path.parent.iterdir():
        number = left.name.removeprefix(f"{path.name}.").removesuffix(".part")
        if left.name == f"{path.name}.{number}.part" and number.isdecimal():
            with contextlib.suppress(OSError):  # its writer may just have finished
                if time.time() - left.stat().st_mtime > LEFT:
                    left.unlink()
