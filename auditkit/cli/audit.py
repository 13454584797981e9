"""`auditkit audit`: from a file of scores to a sentence, a table, JSON and a report."""

import argparse
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from auditkit.cli import terminal
from auditkit.cli.score_columns import ROLES
from auditkit.thresholds import Bonferroni, Fixed, MultiSplit, Split, Sweep, Threshold

METHODS = (
    "one-run",
    "one-run-fdp",
    "two-worlds",
    "observational-label",
    "zero-run",
    "panoramia",
)
FAMILIES = ("approx", "gaussian")
THRESHOLDS = (
    "split[:SHARE], multi-split[:SPLITS], bonferroni[:RULES], guesses:NUMBER, guesses:SHARE, sweep "
    "(an estimate), or a number, which is a cut through the scores"
)
EPILOG = """\
Columns, in JSON the names of an object, are known in any case: score (higher means member), member
(0/1, true/false, in/out, no/yes, test/train), and as they apply id, propensity, baseline_score,
chosen (0 where the true label was shown, the one before any label mechanism), placebo, and features
of the example in columns that begin with "feature". Other names: --column score=NAME, or
score=-NAME for a loss; feature=NAME may repeat.

Scores of members and of others may also come in two files (FILE --others FILE), or in two arrays
of one NPZ or JSON file, such as in_canary_scores and out_canary_scores.

--method auto goes by the columns: observational-label where there is chosen, panoramia where there
is baseline_score, zero-run where there is propensity, or features and --membership observed, and
else one-run.

Exit codes: 0 done, 1 refused, 2 not understood.
"""


def add_to(rooms: Any) -> None:
    """Add the command to those of the program."""
    command = rooms.add_parser(
        "audit",
        help="from a file of scores to a bound on ε, and a report",
        description="Bound ε from a file of scores.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "file",
        type=readable,
        metavar="FILE",
        help="CSV, JSON, JSON Lines, Parquet, NPZ or NPY, also in gzip; - is standard input, and "
        "of a folder all files are parts of one table",
    )
    command.add_argument(
        "--others",
        type=readable,
        metavar="FILE",
        help="the scores of those who were not trained on; the first file then holds the members'",
    )
    command.add_argument(
        "--decimal",
        choices=(".", ","),
        help="what stands before the fraction of a number, asked for where it is not clear",
    )
    add_settings(command, methods=("auto", *METHODS))
    command.add_argument(
        "--threshold",
        type=threshold,
        metavar="RULE",
        help=f"how guesses are chosen: {THRESHOLDS}; by default bonferroni, or "
        "guesses:0.01 for observational-label",
    )
    command.add_argument("--seed", type=whole, help="of splits and thinning; 0")
    command.add_argument(
        "--coins",
        type=existing,
        metavar="COINS.json",
        help="what auditkit coins kept before training: who is in, and the plan, which settings "
        "are taken from; --membership is then not asked for",
    )
    command.add_argument(
        "--membership",
        choices=("randomised", "fixed-size", "observed"),
        help="whether a coin of its own decided for each example, a draw of so many of them, or "
        "nobody; only the first gives a bound in one run, and without an answer there is none",
    )
    command.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help=f"a column under another name; roles: {', '.join(ROLES)}; a feature may repeat",
    )
    add_promise(command)
    theory = command.add_argument_group("DP-SGD's upper bound, to set beside the lower one")
    theory.add_argument("--noise-multiplier", type=positive, metavar="SIGMA")
    theory.add_argument("--sampling-rate", type=positive, metavar="Q")
    theory.add_argument("--steps", type=whole, metavar="T")
    command.add_argument("--json", action="store_true", help="the result as JSON, nothing else")
    command.add_argument(
        "--report", "--html", dest="report", type=Path, metavar="REPORT.html", help="write a report"
    )
    command.add_argument("--title", help="of the report")
    command.add_argument(
        "--model",
        type=readable,
        metavar="PATH",
        help="the audited model's file or folder, whose SHA-256 the report states",
    )
    command.set_defaults(run=_run, usage=command.error, confidence=None)


def add_settings(command: argparse.ArgumentParser, *, methods: tuple[str, ...]) -> None:
    """Add what the commands audit and plan have in common."""
    first = methods[0]
    command.add_argument("--method", choices=methods, default=first, help=f"the theorem; {first}")
    command.add_argument(
        "--family",
        choices=FAMILIES,
        help="two-worlds: approx, which assumes no more than (ε, δ), or gaussian, which shows more "
        "if the trade-off curve is Gaussian; approx",
    )
    command.add_argument("--delta", type=delta, help="the δ of ε; 1e-5, and 0 for panoramia")
    command.add_argument("--confidence", type=fraction, default=0.95, help="of the bound; 0.95")


def add_promise(command: argparse.ArgumentParser) -> None:
    """Add the promise that is tested, which coins keep with the plan."""
    command.add_argument(
        "--promise",
        type=promise,
        action=_Once,
        metavar="CURVE",
        help="what was promised, as EPSILON,DELTA or gaussian:MU, to be given a p-value",
    )


class _Once(argparse.Action):
    """An option that may be given once: which of two was meant is not guessed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "must be given once: of several, one is chosen")
        setattr(namespace, self.dest, values)


def check_family(options: argparse.Namespace) -> None:
    """Refuse a family where there is no choice of one."""
    if options.family is not None and options.method != "two-worlds":
        options.usage(f"--family is for --method two-worlds, got --method {options.method}")


def _run(options: argparse.Namespace) -> int:
    check_family(options)
    given = [options.noise_multiplier, options.sampling_rate, options.steps]
    if any(value is not None for value in given) and None in given:
        options.usage("--noise-multiplier, --sampling-rate and --steps go together")
    if options.sampling_rate is not None and options.sampling_rate > 1.0:
        options.usage(f"--sampling-rate must lie in (0, 1], got {options.sampling_rate:g}")
    if options.threshold is not None and options.method == "panoramia":
        options.usage("--threshold is not for panoramia, which tests every score as a threshold")
    _check_report(options)
    # what computes takes a second to load, and nobody who asks for help should wait for it
    from auditkit.cli import statement

    progress = terminal.Progress()
    try:
        audit = statement.perform(options, progress)
        if options.report is not None:
            from auditkit.cli.report import write_report

            progress("drawing the report")
            write_report(audit, options.report)
    finally:
        progress.done()
    if options.json:
        # in ASCII, since it has to be JSON in whatever encoding the output is
        terminal.say(json.dumps(statement.as_json(audit), indent=1, allow_nan=False))
        for warning in audit.warnings:
            terminal.warn(f"warning: {warning}")
    else:
        statement.show(audit)
        if options.report is not None:
            terminal.say(f"The report is in {options.report}.")
    return 0


def _check_report(options: argparse.Namespace) -> None:
    """Refuse what the report would overwrite, and what only a report says."""
    if options.report is None:
        for word in ("title", "model"):
            if getattr(options, word) is not None:
                options.usage(f"--{word} is for a report: say --report REPORT.html too")
        return
    read = [path.resolve() for path in (options.file, options.others, options.model) if path]
    if options.report.resolve() in read:
        options.usage("--report must not overwrite what is read")
    if options.report.is_dir():
        options.usage(f"--report must name a file, and {str(options.report)!r} is a folder")


def threshold(text: str) -> Threshold:
    """Return the strategy that a word stands for."""
    word, _, number = text.partition(":")
    try:
        if re.fullmatch(r"[+-]?(\d|\.).*", text):
            return Fixed(float(text))
        if word == "split":
            return Split(float(number) if number else 0.5)
        if word == "multi-split":
            return MultiSplit(int(number) if number else 21)
        if word == "bonferroni":
            return Bonferroni(int(number) if number else 10)
        if word == "guesses":
            return Fixed(guesses=int(number) if number.isdigit() else float(number))
        if word == "sweep" and not number:
            return Sweep()
    except (ValueError, TypeError) as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    raise argparse.ArgumentTypeError(f"must be {THRESHOLDS}, got {text!r}")


def promise(text: str) -> tuple[float, ...]:
    """Return the ε and δ, or the μ, that a promise consists of."""
    gaussian = text.startswith("gaussian:")
    parts = text.removeprefix("gaussian:").split(",")
    if len(parts) != (1 if gaussian else 2):
        raise argparse.ArgumentTypeError(f"must be EPSILON,DELTA or gaussian:MU, got {text!r}")
    return (least(parts[0]), *map(delta, parts[1:]))


def as_promised(numbers: Sequence[float]) -> str:
    """Return a promise in words."""
    if len(numbers) == 1:
        return f"{numbers[0]:g}-GDP"
    return "({:g}, {:g})-DP".format(*numbers)


def _number(takes: str, good: Callable[[float], bool]) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
        if not good(value):
            raise argparse.ArgumentTypeError(f"must {takes}, got {text!r}")
        return value

    return number


fraction = _number("lie strictly between 0 and 1", lambda value: 0.0 < value < 1.0)
positive = _number("be above 0", lambda value: 0.0 < value < math.inf)
delta = _number("lie in [0, 1)", lambda value: 0.0 <= value < 1.0)
least = _number("be at least 0", lambda value: 0.0 <= value < math.inf)


def whole(text: str) -> int:
    """Return a whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def readable(text: str) -> Path:
    """Return the path of a file, a pipe or a folder that is there, or of standard input."""
    path = Path(text)
    if text != "-" and not path.exists():
        _missing(text)
    return path


def existing(text: str) -> Path:
    """Return the path of a file that is there."""
    path = Path(text)
    if not path.is_file():
        _missing(text)
    return path


def _missing(text: str) -> NoReturn:
    """End with a line: argparse would put all options of the command before it."""
    where = "" if Path(text).is_absolute() else f" in {Path.cwd()}"
    terminal.warn(f"there is no file {text!r}{where}")
    raise SystemExit(2)
