"""Run, list and check the studies: `python -m experiments`, in the folder `chapters`.

`list` shows all, `status` what is stale and why, `run` runs the paper's scale, `recompute` runs
stored cells again and compares, `stamp` records today's code where cells come out equal. What is
interrupted goes on where it stopped.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

ENVIRONMENT = {
    "AUDITKIT_PROFILE": "paper",
    # one thread a process: two cores have no room for more
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    # one kernel on every processor: the last digit decides what thinning draws
    "OPENBLAS_CORETYPE": "Haswell",
    # glibc keeps memory for the next step and does not hand it back: private texts take two thirds
    # of the time
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
}


def main() -> int:
    """Do what the arguments say, and return 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("list", "status", "run", "recompute", "stamp"):
        command = commands.add_parser(name)
        command.add_argument("ids", nargs="*", metavar="ID", help="a study, or the start of its id")
        command.add_argument("--all", action="store_true", help="every study")
        if name == "run":
            command.add_argument("--jobs", type=int, default=2, help="processes at a time")
            command.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.command == "run" and not told.here:
        return run_apart(told)
    chosen = choose(told, parser)
    return {"list": show, "status": status, "run": run, "recompute": recompute, "stamp": stamp}[
        told.command
    ](chosen)


def choose(told: argparse.Namespace, parser: argparse.ArgumentParser) -> list:
    """Return the studies that are asked for: those of an id, or of an id's first words."""
    from experiments import studies

    every = studies()
    if told.all or (told.command in ("list", "status") and not told.ids):
        return list(every.values())
    if not told.ids:
        parser.error("name a study or the start of its id, or say --all")
    found: dict = {}
    for wanted in told.ids:
        fitting = [wanted] if wanted in every else [one for one in every if one.startswith(wanted)]
        if not fitting:
            parser.error(f"there is no study {wanted!r}; python -m experiments list shows all")
        found |= {one: every[one] for one in fitting}
    return list(found.values())


def show(chosen: list) -> int:
    """Print what there is: id, cells, minutes, module, what it does and what it needs."""
    from auditkit.experiment import about
    from auditkit.experiment.journal import cells_of

    for study in chosen:
        try:
            minutes = f"{about(study.id)['seconds'] / 60:7.1f} min"
        except FileNotFoundError:
            minutes = "  not stored"
        cells = len(cells_of(study.paper))
        print(f"{study.id:32} {cells:4} cells {minutes}  {study.function.__module__}")
        print(f"    {(study.__doc__ or '').partition(chr(10))[0]}")
        if study.needs:
            print(f"    needs {study.needs}")
    return 0


def status(chosen: list) -> int:
    """Print which stored results are not of today's code, and what has changed since."""
    from auditkit.experiment.provenance import results_folder

    stale = 0
    for study in chosen:
        journals = list(results_folder("paper").glob(f"{study.id}.*.jsonl"))
        under_way = "".join(
            f"; {sum(1 for _ in path.open())} cells in {path.name}" for path in journals
        )
        try:
            changed = study.stale()
        except FileNotFoundError:
            changed = ["nothing is stored"]
        if changed or under_way:
            stale += bool(changed)
            more = f" and {len(changed) - 6} more" if len(changed) > 6 else ""
            print(f"{study.id}: {', '.join(changed[:6]) or 'current'}{more}{under_way}")
    print(f"{len(chosen) - stale} of {len(chosen)} are current")
    return int(stale > 0)


def run(chosen: list) -> int:
    """Run studies in this process, so that those of a module share what they train."""
    for study in chosen:
        start = time.monotonic()
        study.run(n_jobs=1)
        print(f"{study.id}: {(time.monotonic() - start) / 60:.1f} min", flush=True)
    return 0


def run_apart(told: argparse.Namespace) -> int:
    """Run the studies of each module in a process of its own, with one thread."""
    chosen = choose(told, argparse.ArgumentParser(prog="python -m experiments run"))
    chosen = sorted(chosen, key=lambda study: study.function.__module__)
    groups = [
        [study.id for study in group]
        for _, group in groupby(chosen, key=lambda study: study.function.__module__)
    ]

    def one(ids: Iterable[str]) -> int:
        command = [sys.executable, "-m", "experiments", "run", "--here", *ids]
        return subprocess.run(command, check=False).returncode

    with ThreadPoolExecutor(told.jobs) as several:
        return max(several.map(one, groups))


def recompute(chosen: list) -> int:
    """Run every affordable stored cell again, and name what does not come out as stored."""
    failed = 0
    for study in chosen:
        if study.needs and not study.reduced:
            print(f"{study.id}: left out, needs {study.needs}")
            continue
        for cell, rows in study.affordable():
            try:
                study.recompute(cell, rows)
            except AssertionError as error:
                failed += 1
                print(f"{study.id}: {error}; {'; '.join(error.__notes__)}", flush=True)
    print(f"{failed} cells do not come out as stored")
    return int(failed > 0)


def stamp(chosen: list) -> int:
    """Record today's code for stored results of which the cells that are drawn come out equal."""
    failed = 0
    for study in chosen:
        try:
            if study.stale():
                print(f"{study.id}: equal in {study.stamp()}", flush=True)
        except (AssertionError, ValueError, OSError, ImportError) as error:
            failed += 1
            print(f"{study.id}: not stamped: {error}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    if not os.environ.keys() >= ENVIRONMENT.keys():  # which Python reads when it starts
        again = [sys.executable, "-m", "experiments", *sys.argv[1:]]
        os.execve(sys.executable, again, os.environ | ENVIRONMENT)
    sys.exit(main())
