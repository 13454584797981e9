"""`auditkit plan`: how many examples it takes to show a given ε."""

import argparse
from typing import Any

from auditkit.cli import audit, terminal
from auditkit.cli.methods import METHODS
from auditkit.thresholds import Bonferroni, Fixed, Threshold

FINITE = 1e-5  # the δ of the true ε, where that of the bound is 0
TIMES = (1.25, 1.5, 2.0, 4.0)  # true ε over the one to be shown


def add_to(rooms: Any) -> None:
    """Add the command to those of the program."""
    command = rooms.add_parser(
        "plan",
        help="how many examples it takes to show a given ε",
        description="How many examples it takes until the bound reaches a given ε.",
    )
    command.add_argument("--target-epsilon", type=audit.positive, required=True, metavar="ε")
    audit.add_settings(command, methods=METHODS)
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
    from auditkit.cli import power
    from auditkit.cli.verdict import counted, delta_of

    target = options.target_epsilon
    if options.true_epsilon is not None and options.true_epsilon <= target:
        options.usage(
            f"--true-epsilon must be above the target of {target:g}, which a bound at most reaches"
        )
    if options.shift and options.method != "zero-run":
        options.usage(f"--shift is for --method zero-run, got --method {options.method}")
    rule = options.threshold or _usual(options.method)
    whole = 1_000_000
    size, part = counted(rule, whole)
    shares: tuple[float, ...] | None = None
    if isinstance(rule, Fixed):
        if isinstance(rule.guesses, int):
            options.usage("--threshold must guess on a share: how many examples is the question")
        if options.threshold and options.method != "two-worlds":
            shares = (rule.guesses or 1.0,)
    delta = delta_of(options.method, options.delta, options.family)
    setting = power.Setting(
        method=options.method,
        target=target,
        family=options.family,
        delta=delta,
        confidence=1.0 - (1.0 - options.confidence) * part,
        shift=options.shift,
    )
    unit = "runs" if options.method == "two-worlds" else "examples"
    what = "runs, in both worlds together," if unit == "runs" else "examples"
    kept = f"{100 * power.kept_share(setting):.2g}%"
    if not power.can_show(setting):
        raise ValueError(
            f"At a shift of {options.shift:g} no number of examples shows ε = {target:g}, not even "
            f"without an error: thinning keeps {kept} of the right guesses."
        )
    least = power.least_without_error(setting)
    if least is None:
        raise ValueError(
            f"--method {options.method} cannot show ε = {target:g} at δ = {delta:g} with "
            f"{power.MOST:,} {what} or fewer, not even without an error"
        )
    all_in = whole / size  # the rest goes to choosing the threshold
    thinned = f", where thinning keeps {kept} of its guesses" if options.shift else ""
    terminal.say(
        f"An attack without an error takes {_rounded(least * all_in)} {what} to show "
        f"ε = {target:g}{thinned}."
    )
    known = "" if options.method == "panoramia" else ", its threshold known beforehand"
    terminal.say(
        f"The best attack on a Gaussian mechanism{known}, in {100 * options.power:g}% of audits:"
    )
    part_of = "above the cut" if unit == "runs" else "guesses on"
    rows = [("true ε", unit, "of them counted", part_of, "power")]
    trues = [options.true_epsilon] if options.true_epsilon else [target * k for k in TIMES]
    progress = terminal.Progress()
    for true in trues:
        progress(f"planning for a true ε of {true:g}")
        mu = power.mu_of(true, delta or FINITE)
        found = power.plan(setting, mu=mu, power=options.power, shares=shares)
        if found is None:
            rows.append((f"{true:g}", f"above {power.MOST:,}", "–", "–", "–"))
            continue
        rows.append(
            (
                f"{true:g}",
                _rounded(found.examples * all_in),
                f"{found.examples:,}",
                f"{100 * found.share:g}%",
                f"{found.power:.2f}",
            )
        )
    progress.done()
    for line in terminal.table(rows):
        terminal.say(f"  {line}")
    told = []
    if size < whole:
        told.append(
            f"Of these, {100 * size / whole:g}% are counted on, and the rest choose the share of "
            f"guesses ({rule!r}). The share so chosen is often not the best, and the bound then "
            "reaches the target less often than the table says, with few examples much less often. "
            "Where the share, or for two worlds the cut, is fixed beforehand, no rest is needed."
        )
    elif isinstance(rule, Bonferroni):
        told.append(
            f"{rule!r} shares the level among its rules: the table says how often the one that "
            "guesses on this share reaches the target."
        )
    elif options.method not in ("two-worlds", "panoramia"):
        told.append("The share of guesses has to be said beforehand: --threshold guesses:SHARE.")
    if options.method == "observational-label":
        told.append("A placebo takes as many examples again.")
    if delta == 0.0:
        told.append(f"The true ε is that at δ = {FINITE:g}: at 0 a Gaussian mechanism has none.")
    told.append(
        "No attack on a mechanism of this ε does better than the one assumed here. Real ones do "
        "worse, so take more."
    )
    terminal.say(terminal.paragraph(" ".join(told)))
    return 0


def _usual(method: str) -> Threshold:
    """Return how guesses are chosen; these two methods choose nothing on a part of their own."""
    from auditkit.cli.verdict import usual

    return Fixed(guesses=1.0) if method in ("observational-label", "panoramia") else usual(method)


def _rounded(number: float) -> str:
    return f"{int(-(-number // 1)):,}"
