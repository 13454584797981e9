"""How far a download is, on the standard error stream of a terminal."""

import sys
import threading
import time
from pathlib import Path
from types import TracebackType

PAUSE = 0.2


class Watching:
    """Show how much has arrived in a folder, as long as the block runs.

    The clients have progress bars of their own, each different, and some write none into a pipe.
    What they all do is fill the folder.
    """

    def __init__(self, what: str, folder: Path, size: int) -> None:
        self.what, self.folder, self.size = what, folder, size
        self.start = time.monotonic()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            self.thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _show(self) -> None:
        while not self.over.wait(PAUSE):
            sys.stderr.write(f"\r\x1b[K{self._state()}")
            sys.stderr.flush()

    def _state(self) -> str:
        done = min(_bytes_in(self.folder), self.size)
        filled = round(20 * done / max(self.size, 1))
        bar = "#" * filled + "." * (20 - filled)
        seconds = time.monotonic() - self.start
        return f"{self.what} [{bar}] {done / 1e6:.0f} of {self.size / 1e6:.0f} MB, {seconds:.0f} s"


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # gone since it was listed
            continue
    return total
