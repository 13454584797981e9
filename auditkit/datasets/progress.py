"""How far a download is, on the standard error stream of a terminal."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

PAUSE = 0.2


@contextlib.contextmanager
def watching(what: str, folder: Path, size: int) -> Iterator[None]:
    """Show how much has arrived in a folder, as long as the block runs.

    The clients have progress bars of their own, each different, and some write none into a pipe.
    What they all do is fill the folder.
    """
    from tqdm import tqdm  # not before something is fetched

    with tqdm(
        desc=what, total=size, unit="B", unit_scale=True, leave=False, disable=None, mininterval=0
    ) as bar:
        over = threading.Event()

        def show() -> None:
            while not over.wait(PAUSE):
                bar.update(min(_bytes_in(folder), size) - bar.n)

        thread = threading.Thread(target=show, daemon=True)
        if not bar.disable:  # as it is where nobody looks
            thread.start()
        try:
            yield
        finally:
            over.set()
            if thread.is_alive():
                thread.join()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # gone since it was listed
            total += path.stat().st_size if path.is_file() else 0
    return total
