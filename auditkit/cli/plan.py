"""`auditkit plan`: how many examples it takes to show a given ε."""

import argparse
import math
from typing import Any

from auditkit.cli import audit, terminal
from auditkit.thresholds import Bonferroni, Fixed, Threshold, counted

TIMES = (1.25, 1.5, 2.0, 4.0)  # true ε over the one to be shown


def add_to(rooms: Any) -> None:
    """Add the command to those of the program."""
    command = rooms.add_parser(
        "plan",
        help="how many examples it takes to show a given ε",
        description="How many examples it takes until the bound reaches a given ε.",
    )
    command.add_argument("--target-epsilon", type=audit.positive, required=True, metavar="ε")
    audit.add_settings(command, methods=audit.METHODS)
    command.add_argument(
        "--true-epsilon",
        type=audit.positive,
        metavar="ε",
        help="of the mechanism, taken to be Gaussian; by default several above the target",
    )
    command.add_argument("--power", type=audit.fraction, default=0.8, help="how often; 0.8")
    command.add_argument(
        "--threshold",
        type=audit.threshold,
        metavar="RULE",
        help="as in auditkit audit, and by default what is used there",
    )
    command.add_argument(
        "--shift",
        type=audit.positive,
        default=0.0,
        help="zero-run: the log-odds by which an example betrays its membership; 0",
    )
    command.set_defaults(run=_run, usage=command.error)


def _run(options: argparse.Namespace) -> int:
    audit.check_family(options)
    from auditkit.bounds import power
    from auditkit.cli.question import delta_of, usual

    target, method = options.target_epsilon, options.method
    if options.true_epsilon is not None and options.true_epsilon <= target:
        options.usage(
            f"--true-epsilon must be above the target of {target:g}, which a bound at most reaches"
        )
    if options.shift and method != "zero-run":
        options.usage(f"--shift is for --method zero-run, got --method {method}")
    # these two choose nothing on a part of their own
    rule = power.ALL if method in ("observational-label", "panoramia") else usual(method)
    rule = options.threshold or rule
    shares: tuple[float, ...] | None = None
    if isinstance(rule, Fixed):
        if isinstance(rule.guesses, int):
            options.usage("--threshold must guess on a share: how many examples is the question")
        if options.threshold and method != "two-worlds":
            shares = (rule.guesses or 1.0,)
    size, part = counted(rule, 1_000_000)
    delta, kept = delta_of(method, options.delta, options.family), size / 1_000_000
    setting = power.Setting(
        method=method,
        target=target,
        family=options.family,
        delta=delta,
        confidence=1.0 - (1.0 - options.confidence) * part,
        shift=options.shift,
    )
    unit, where = (
        ("runs", "above the cut") if method == "two-worlds" else ("examples", "guesses on")
    )
    what = "runs, in both worlds together," if unit == "runs" else unit
    thinning = f"thinning keeps {100 * setting.kept:.2g}%"
    if not setting.possible:
        raise ValueError(
            f"At a shift of {options.shift:g} no number of examples shows ε = {target:g}, not even "
            f"without an error: {thinning} of the right guesses."
        )
    least = power.least_without_error(setting)
    if least is None:
        raise ValueError(
            f"--method {method} cannot show ε = {target:g} at δ = {delta:g} with "
            f"{power.MOST:,} {what} or fewer, not even without an error"
        )
    thinned = f", where {thinning} of its guesses" if options.shift else ""
    terminal.say(
        f"An attack without an error takes {_up(least / kept)} {what} to show ε = {target:g}"
        f"{thinned}."
    )
    known = "" if method == "panoramia" else ", its threshold known beforehand"
    terminal.say(
        f"The best attack on a Gaussian mechanism{known}, in {100 * options.power:g}% of audits:"
    )
    rows = [("true ε", unit, "of them counted", where, "power")]
    progress = terminal.Progress()
    for true in [options.true_epsilon] if options.true_epsilon else [target * k for k in TIMES]:
        progress(f"planning for a true ε of {true:g}")
        mu = power.mu_of(true, delta or power.FINITE)
        found = power.plan(setting, mu=mu, power=options.power, shares=shares)
        row = (f"above {power.MOST:,}", "–", "–", "–")
        if found is not None:
            share = f"{100 * found.share:g}%"
            row = (_up(found.examples / kept), f"{found.examples:,}", share, f"{found.power:.2f}")
        rows.append((f"{true:g}", *row))
    progress.done()
    for line in terminal.table(rows):
        terminal.say(f"  {line}")
    terminal.say(terminal.paragraph(" ".join(_told(method, rule, kept, delta))))
    return 0


def _told(method: str, rule: Threshold, kept: float, delta: float) -> list[str]:
    """Return what has to be known beside the table."""
    told = []
    if kept < 1.0:
        told.append(
            f"Of these, {100 * kept:g}% are counted on, and the rest choose the share of guesses "
            f"({rule!r}). The share so chosen is often not the best, and the bound then reaches "
            "the target less often than the table says, with few examples much less often. "
            "Where the share, or for two worlds the cut, is fixed beforehand, no rest is needed."
        )
    elif isinstance(rule, Bonferroni):
        told.append(
            f"{rule!r} shares the level among its rules: the table says how often the one that "
            "guesses on this share reaches the target."
        )
    elif method not in ("two-worlds", "panoramia"):
        told.append("The share of guesses has to be said beforehand: --threshold guesses:SHARE.")
    if method == "observational-label":
        told.append("A placebo takes as many examples again.")
    if delta == 0.0:
        from auditkit.bounds import power

        told.append(
            f"The true ε is that at δ = {power.FINITE:g}: at 0 a Gaussian mechanism has none."
        )
    told.append(
        "No attack on a mechanism of this ε does better than the one assumed here. Real ones do "
        "worse, so take more."
    )
    return told


def _up(number: float) -> str:
    return f"{math.ceil(number):,}"
