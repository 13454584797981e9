"""`auditkit data`: list, fetch, verify and find real data."""

import argparse
import logging
import sys
import time
from typing import Any

from auditkit import datasets
from auditkit.cli.terminal import say, table


def add_to(rooms: Any) -> None:
    """Add the command to those of the program."""
    data = rooms.add_parser("data", help="real data: list, fetch, verify, path")
    commands = data.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("list", help="what there is, and what is here already")
    command.set_defaults(run=_list)

    command = commands.add_parser("fetch", help="bring datasets into the cache")
    _add_names(command, every="all that can be fetched")
    command.set_defaults(run=_fetch)

    command = commands.add_parser("verify", help="check the hash of every file that is here")
    command.add_argument("names", nargs="*", metavar="NAME", help="by default all")
    command.set_defaults(run=_verify)

    command = commands.add_parser("path", help="where the cache is, or a dataset in it")
    command.add_argument("name", nargs="?", choices=list(datasets.CARDS), metavar="NAME")
    command.set_defaults(run=_path)


def _add_names(command: argparse.ArgumentParser, *, every: str) -> None:
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("names", nargs="*", default=[], metavar="NAME")
    which.add_argument("--all", action="store_true", help=every)


def _list(_: argparse.Namespace) -> int:
    rows = [("name", "here", "size", "task", "licence")]
    for card in datasets.CARDS.values():
        rows.append((card.name, _here(card), card.size, card.task, card.licence))
    for line in table(rows):
        say(line)
    return 0


def _here(card: datasets.Card) -> str:
    places = [f"ships {part.name!r}" for part in card.shipped]
    folder = datasets.cache() / card.name
    if card.files and all((folder / file.name).is_file() for file in card.files):
        places.append("in the cache")
    elif card.files:
        places.append("to fetch")
    else:
        places.append("yours to bring")
    return ", ".join(places)


def _fetch(options: argparse.Namespace) -> int:
    names = options.names
    if options.all:
        names = [card.name for card in datasets.CARDS.values() if card.files]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("auditkit.datasets")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    failed = 0
    try:
        for name in names:
            start = time.monotonic()
            try:
                files = datasets.fetch(name)
            except FileNotFoundError as error:  # the others may still be had
                sys.stderr.write(f"{error}\n")
                failed += 1
                continue
            size = sum(path.stat().st_size for path in files.values()) / 1e6
            seconds = time.monotonic() - start
            say(f"{name}: {len(files)} files, {size:.1f} MB, right, {seconds:.1f} s")
    finally:
        log.removeHandler(handler)
    return 1 if failed else 0


def _verify(options: argparse.Namespace) -> int:
    wrong = 0
    for name in options.names or datasets.CARDS:
        told = datasets.verify(name)
        if not told:
            say(f"{name}: bring it yourself")
        elif all(word == "missing" for word in told.values()):
            say(f"{name}: not here")
        else:
            for file, word in told.items():
                say(f"{name}: {file}: {word or 'right'}")
                wrong += bool(word)
    return 1 if wrong else 0


def _path(options: argparse.Namespace) -> int:
    say(str(datasets.cache() / options.name if options.name else datasets.cache()))
    return 0
