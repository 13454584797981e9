"""`auditkit …`: the command line, a thin layer over what the other rooms do.

Here belong arguments, files, printing, the report and exit codes. What is computed elsewhere is
not computed anew.
"""

import argparse
import io
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from auditkit._version import __version__
from auditkit.cli import audit, coins, completion, data, explain, lira, plan, score
from auditkit.cli.terminal import warn


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``auditkit`` on the command line.

    Returns
    -------
    int
        0 if all is well, 1 if something failed or was refused, 130 if interrupted, 141 if whoever
        reads the output has stopped reading. What cannot be understood ends the program with 2.

    References
    ----------
    ``auditkit --help``.

    Examples
    --------
    >>> main(["data", "verify", "criteo"])
    criteo: bring it yourself
    0
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    _open_streams()
    try:
        options = parser().parse_args(given)
        options.command = shlex.join(["auditkit", *given])
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # what is left unsaid would be tried again at the end, and fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (OSError, ValueError, ImportError) as error:
        warn(str(error))
    except MemoryError as error:
        warn(f"this takes more memory than there is. {error}".rstrip())
    except KeyboardInterrupt:
        warn("interrupted; nothing half has been left behind")
        return 130
    return 1


def _open_streams() -> None:
    """See to it that saying something cannot fail for want of a stream or of a letter in it."""
    # a program may be started with either stream closed
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a notebook's is not
            stream.reconfigure(errors="backslashreplace")  # not every code page has an ε


def parser() -> argparse.ArgumentParser:
    """Return what understands the command line."""
    whole = argparse.ArgumentParser("auditkit", description="Auditing differential privacy.")
    whole.add_argument("--version", action="version", version=f"auditkit {__version__}")
    rooms = whole.add_subparsers(required=True, metavar="COMMAND")
    for command in (coins, audit, plan, score, lira, explain, data):
        command.add_to(rooms)
    completion.add_to(rooms, whole)
    return whole
