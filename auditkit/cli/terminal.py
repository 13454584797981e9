"""What the commands say: lines, tables, and how far they are."""

import shlex
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

WIDTH = 100
PATIENCE = 5.0  # seconds of silence that nobody minds where there is no terminal


def say(line: str = "") -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{line}\n")


def warn(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")


def paragraph(text: str, *, first: str = "", rest: str = "") -> str:
    """Return text broken into lines that fit a terminal."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest or " " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def following(path: Path, ways: Mapping[str, str]) -> None:
    """Say which audits may come next, by when that is, each on a line of its own to be copied."""
    for when, way in ways.items():
        say(f"Next{when}:\n  auditkit audit {shlex.quote(str(path))} {way}")


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def printable(text: object) -> str:
    """Return what came from a file with nothing in it that moves a cursor."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in str(text))


def quoted(text: object) -> str:
    """Return what came from a file in quotation marks, cut where it is long."""
    plain = printable(text)
    return f'"{plain}"' if len(plain) <= 60 else f'"{plain[:57]}…"'


class Progress:
    """Says what is being done: over one line of a terminal, else in lines once it takes long."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.shown = False

    def __call__(self, what: str) -> None:
        """Say what comes next."""
        seconds = time.monotonic() - self.start
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{what} … {seconds:.0f} s")
            sys.stderr.flush()
            self.shown = True
        elif seconds > PATIENCE:
            warn(f"{what} … {seconds:.0f} s")

    def done(self) -> None:
        """Take the line back."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.shown = False
