"""`auditkit coins`: who is trained on, tossed and kept with a plan, and both in an audit."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from auditkit.cli import audit, terminal
from auditkit.coins import FAMILIES, Coins, toss_coins
from auditkit.thresholds import TEN, MultiSplit, Split

if TYPE_CHECKING:
    from auditkit.cli.score_files import ScoreTable

DESCRIPTION = """\
Toss a fair coin for each example, before training, and keep the plan of the audit with it.

IDS is a number of examples, which are then called 0, 1, 2 and so on, or a text file with the name
of one example a line. Train on those that the file says are in, and on none that are out. Then
write scores into a file with the columns id and score, and say

  auditkit audit SCORES --coins COINS.json

A --promise that is to be tested is kept with them, and no other one gets a p-value then.

Publish the SHA-256 before you train: in a commit, a mail, wherever others keep it. It shows later
that coins and plan were not edited since. It does not give the coins away.
"""


def add_to(rooms: Any) -> None:
    """Add the command to those of the program."""
    command = rooms.add_parser(
        "coins",
        help="toss the coins that decide who is trained on, and keep the plan of the audit",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("ids", metavar="IDS", help="how many examples, or a file of their names")
    audit.add_settings(command, methods=tuple(FAMILIES))
    command.add_argument(
        "--threshold",
        type=audit.threshold,
        default=TEN,
        metavar="RULE",
        help="as in auditkit audit; bonferroni",
    )
    audit.add_promise(command)
    command.add_argument("--seed", type=audit.whole, default=0, help="of splits; 0")
    command.add_argument("--output", type=Path, required=True, metavar="COINS.json")
    command.set_defaults(run=_run, usage=command.error)


def _run(options: argparse.Namespace) -> int:
    audit.check_family(options)
    rule = options.threshold
    if isinstance(rule, Split | MultiSplit):
        rule = replace(rule, seed=options.seed)
    coins = toss_coins(
        _names(options.ids),
        method=options.method,
        family=options.family,
        threshold=rule,
        delta=1e-5 if options.delta is None else options.delta,
        confidence=options.confidence,
        promise=options.promise,
    )
    coins.save(options.output)
    terminal.say(
        f"{len(coins):,} coins in {options.output}: {int(coins.members.sum()):,} are in. "
        "Train on these, and on no other of them."
    )
    plan = [f"{name} {value}" for name, value in coins.plan.items() if value is not None]
    plan += [] if coins.promise is None else [f"promise {audit.as_promised(coins.promise)}"]
    terminal.say(f"The plan: {', '.join(plan)}.")
    terminal.say(f"SHA-256, to be published before you train: {coins.digest}")
    return 0


def _names(text: str) -> Any:
    """Return the names in a file, one a line, or as many numbers as were asked for."""
    if text.isdecimal():
        return np.arange(int(text))
    lines = audit.existing(text).read_text(encoding="utf-8-sig").splitlines()
    if lines and lines[0].strip().casefold() in ("id", "ids"):
        raise ValueError(f"{text} must hold names and no heading, got {lines[0]!r} in line 1")
    for place, line in enumerate(lines, start=1):
        if not line or line != line.strip():
            raise ValueError(f"{text} must hold one name a line, got {line!r} in line {place}")
    return lines


def settle(options: argparse.Namespace) -> Coins | None:
    """Take from the plan that was kept with coins what was not said, and return the coins."""
    if options.coins is None:
        options.confidence = 0.95 if options.confidence is None else options.confidence
        options.seed = options.seed or 0
        return None
    if options.membership is not None:
        options.usage("--membership is told by --coins: leave it out")
    coins = Coins.load(options.coins)
    plan = coins.plan
    if options.method == "auto":
        options.method = plan["method"]
    if options.method not in FAMILIES:
        raise ValueError(
            f"--coins are for {', '.join(FAMILIES)}, got --method {options.method}, which asks for "
            "no coin that decides who is in"
        )
    if options.family is None and options.method == plan["method"] == "two-worlds":
        options.family = plan["family"]
    if options.seed is None:
        options.seed = getattr(plan["threshold"], "seed", 0)
    for name in ("threshold", "delta", "confidence"):
        if getattr(options, name) is None:
            setattr(options, name, plan[name])
    if options.promise is None:
        options.promise = coins.promise
    options.membership = "randomised"
    return coins


def decided(table: "ScoreTable", coins: Coins) -> "ScoreTable":
    """Return a table with its members as the coins decided, checked by id and by its own word."""
    from auditkit.cli.score_columns import hashed

    if table.id is None:
        raise ValueError(f"--coins takes a column id in {table.name}, to know whose coin is whose")
    told = hashed(coins.ids)
    order = np.argsort(told)
    place = order[np.searchsorted(told, table.id, sorter=order).clip(max=len(told) - 1)]
    strange = np.flatnonzero(told[place] != table.id)
    missing = len(told) - (len(table) - strange.size)  # no id repeats on either side
    if strange.size or missing:
        where = f", the first in row {strange[0] + 1}" if strange.size else ""
        raise ValueError(
            f"the ids in {table.name} must be those that coins were tossed for, each of the "
            f"{len(coins)}: {strange.size} rows have another id{where}, and {missing} of the coins "
            "have no row. To leave rows out once scores are known is to choose"
        )
    members = coins.members[place]
    if table.member is not None and (wrong := np.flatnonzero(table.member != members)).size:
        raise ValueError(
            f"the column {table.used['member']} must say what the coins decided, got another in "
            f"row {wrong[0] + 1} ({wrong.size} such in all): were they trained on by these coins?"
        )
    return replace(table, member=members)
