"""All that is said of one file of scores: the bound, and what has to be read beside it."""

import argparse
import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from auditkit.bounds.games import OneRunGame, TwoWorldsGame
from auditkit.bounds.promise import in_game
from auditkit.bounds.propensity import PropensityTest, gated
from auditkit.bounds.result import Bound, jsonable, rounded, short_of
from auditkit.bounds.scores import METHODS, UNSEEN
from auditkit.bounds.tradeoff import ApproxDP, GaussianDP
from auditkit.cli import terminal
from auditkit.cli.audit import as_promised
from auditkit.cli.coins import decided, settle
from auditkit.cli.diagnostics import Finding, diagnose
from auditkit.cli.question import Question, pose, usual
from auditkit.cli.score_files import ScoreTable, read_scores
from auditkit.cli.verdict import answer, ceiling, could_find, game_of, sensitivity
from auditkit.datasets.store import sha256

LARGEST = 1000.0  # of a promise: what is beyond any audit needs no power
TRUE = (1.0, 2.0, 4.0, 8.0)  # of mechanisms that an audit might have met
PLAIN = {  # what the details of a bound are called in words
    "correct": "right guesses",
    "guesses": "guesses made",
    "examples": "examples counted on",
    "level": "level of the rule",
    "candidates": "rules that share the level",
    "threshold": "threshold rule",
    "cut": "lowest score guessed member, highest guessed not",
    "key": "key of ties and splits",
    "chosen_on": "examples that chose the rule",
    "split_epsilons": "ε of each split",
    "nominal_confidence": "nominal confidence",
    "nu": "ν of the proof, a chance",
    "lambda": "λ of the proof, a price of δ",
    "choices": "sides of a coin",
    "mu": "μ, the Gaussian curve that is ruled out",
    "tau": "τ, how far labels may be from their law",
    "tau_from": "where τ comes from",
    "kept": "right guesses after the correction",
    "kept_at_most": "most that the correction could keep",
    "rejection_p_value": "p-value of the test on features",
    "false_positives": "runs without, taken for runs with",
    "negatives": "runs without the canary",
    "false_negatives": "runs with, taken for runs without",
    "positives": "runs with the canary",
    "fpr": "false positive rate",
    "fnr": "false negative rate",
    "fpr_upper": "false positive rate, upper limit",
    "fnr_upper": "false negative rate, upper limit",
    "placebo_limit": "ε that a wrong reference could show",
    "placebo_epsilon": "ε of the placebo",
    "placebo_examples": "examples of the placebo",
    "placebo_correct": "right guesses of the placebo",
    "placebo_guesses": "guesses of the placebo",
    "difference": "attack less baseline",
    "closeness_slack": "slack of closeness",
    "members": "members",
    "coins": "SHA-256 of the coins",
    "certificate": "of the proof: certificate",
    "proved_by": "proved by",
    "best_possible": "most that any bound could prove",
    "exact": "no bound could prove more",
}
BETRAYED = (
    "The features alone betray membership better than they can where a fair coin decided it, so "
    "that this number is an estimate."
)
RUNS = (
    "Each row is counted as a training run of its own. If the rows are examples of one model, this "
    "number means nothing: say --method one-run."
)
TRUSTED = "That a coin decided is taken on your word: no feature columns were there to check it."
FIXED = (
    "The rule was taken as fixed before the scores were seen. If you chose it after an earlier "
    "report, this is an estimate."
)


@dataclass(frozen=True, eq=False)
class Audit:
    """All that is said of one file.

    Attributes
    ----------
    question, bound
        What was asked and the answer.
    ceiling : float
        What the same guesses would have shown, had all been right.
    findings : list of Finding
        The diagnostics.
    sensitivity : list
        What else would have been stated.
    upper : mapping or None
        What theory promises, by adjacency.
    warnings : list of str
        What has to be read beside the number.
    promised : Promised or None
        How well what was promised fits.
    found : list of (float, float)
        Of mechanisms with some true ε, what the best attack would have shown in 80% of such audits.
    command : str
        What was typed.
    made : str
        When, by the machine's clock.
    title : str
        What stands above the report.
    model : tuple or None
        The audited model's name and SHA-256.
    """

    question: Question
    bound: Bound
    ceiling: float
    findings: list[Finding]
    sensitivity: list[tuple[str, str, float | None, str]]
    upper: Mapping[str, float] | None
    promise: Mapping[str, float] | None
    warnings: list[str]
    promised: "Promised | None"
    found: list[tuple[float, float]]
    command: str
    made: str
    title: str
    model: tuple[str, str] | None

    @property
    def sentence(self) -> str:
        """The bound in one line, its assumptions apart."""
        return str(replace(self.bound, assumptions=(), notices=())).replace("; assumes: )", ")")


@dataclass(frozen=True)
class Promised:
    """A promise, and how likely the counts are if it holds: nothing is said where none can be.

    Attributes
    ----------
    curve : str
        The promise in words.
    p_value : float or None
        See `auditkit.bounds.promise`.
    sentence : str
        What follows.
    """

    curve: str
    p_value: float | None
    sentence: str


def perform(options: argparse.Namespace, progress: terminal.Progress) -> Audit:
    """Read, pose, answer, and look at everything that should be known beside the answer."""
    progress(f"reading {options.file.name}")
    coins = settle(options)
    table = read_scores(
        options.file, options.column, others=options.others, decimal=options.decimal
    )
    if coins is not None:
        table = decided(table, coins)
    names = ("method", "family", "delta", "confidence", "threshold", "membership", "seed")
    given = {name: getattr(options, name) for name in (*names, "promise")}
    question = pose(table, coins=coins, **given)
    progress(f"auditing {len(table)} rows by {question.method}")
    bound = answer(question)
    progress("looking at the data")
    findings, test = diagnose(question)
    if test is not None:
        bound = _tested(question, bound, test)
    progress("trying other settings")
    other = sensitivity(question, bound)
    if test is not None and test.rejected:  # what betrays membership does so under every rule
        other = [
            (what, to, value, "estimate" if claim == "lower bound" else claim)
            for what, to, value, claim in other
        ]
    upper, promise = None, None
    if options.steps is not None:
        progress("accounting for DP-SGD")
        upper, promise = _upper(options, question.delta)
    most = ceiling(question, bound)
    return Audit(
        question,
        bound,
        most,
        findings,
        other,
        upper,
        promise,
        _warnings(question, bound, most, findings, upper),
        None if question.promise is None else _promised(question.promise, question, bound),
        could_find(question, bound, _true_epsilons(options, upper, bound)),
        options.command,
        now(),
        options.title or f"Privacy audit of {terminal.printable(table.name)}",
        None if options.model is None else _digest(options.model),
    )


def now() -> str:
    """Return the time, or that of SOURCE_DATE_EPOCH, by which a report can be made again."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    return when.strftime("%Y-%m-%d %H:%M UTC")


def _digest(path: Path) -> tuple[str, str]:
    """Return the name and the SHA-256 of a model; of a folder that of the list of its files'."""
    if not path.is_dir():
        return path.name, sha256(path)
    files = sorted(part for part in path.rglob("*") if part.is_file())
    lines = "".join(f"{sha256(part)}  {part.relative_to(path).as_posix()}\n" for part in files)
    digest = hashlib.sha256(lines.encode("utf-8")).hexdigest()
    return f"{path.resolve().name}, the list that sha256sum makes of {len(files)} files", digest


def _true_epsilons(
    options: argparse.Namespace, upper: Mapping[str, float] | None, bound: Bound
) -> list[float]:
    """Return the ε of mechanisms that an audit might have met: what was promised, and others."""
    asked = list(TRUE)
    if options.promise is not None and len(options.promise) == 2 and options.promise[0] > 0.0:
        asked.append(options.promise[0])
    if upper is not None:
        asked.append(upper["add/remove" if bound.adjacency == "add/remove" else "substitute"])
    return sorted({true for true in asked if true <= LARGEST})


def as_json(audit: Audit) -> dict[str, Any]:
    """Return the bound's fields at the top level, and all else that a repetition needs."""
    question, table = audit.question, audit.question.table
    bound = {item.name: getattr(audit.bound, item.name) for item in fields(audit.bound)}
    found: dict[str, Any] = jsonable(
        {
            **bound,
            "sentence": audit.sentence,
            "ceiling": audit.ceiling,
            "upper_bounds": audit.upper,
            "promise": audit.promise,
            "accountant": None if audit.promise is None else accountant(audit.promise),
            "would_have_shown": [
                {"true_epsilon": true, "epsilon": shows, "power": 0.8}
                for true, shows in audit.found
            ],
            "date": audit.made,
            "title": audit.title,
            "model": None
            if audit.model is None
            else dict(zip(("name", "sha256"), audit.model, strict=True)),
            "promised": None if audit.promised is None else asdict(audit.promised),
            "warnings": audit.warnings,
            "sensitivity": [
                {"changed": what, "to": to, "epsilon": value, "claim": claim}
                for what, to, value, claim in audit.sensitivity
            ],
            "diagnostics": {finding.name: finding.value for finding in audit.findings},
            "asked": {
                "method": question.method,
                "family": question.family,
                "threshold": question.rule,
                "membership": question.membership,
                "seed": question.seed,
                "coins": None if question.coins is None else question.coins.digest,
            },
            "data": {
                "file": table.name,
                "sha256": table.sha256,
                "parts": dict(table.parts),
                "columns": dict(table.used),
                "notes": table.notes,
            },
            "auditkit": version("dp-auditkit"),
            "command": audit.command,
        }
    )
    return found


def _tested(question: Question, bound: Bound, test: PropensityTest) -> Bound:
    """Return an estimate where features betray membership although they may not."""
    if question.propensity is not None:
        return gated(bound, test)
    details = {**bound.details, "rejection_p_value": test.p_value}
    if not test.rejected:
        return replace(bound, details=details)
    return replace(
        bound, claim="estimate", assumptions=(*bound.assumptions, BETRAYED), details=details
    )


def _upper(options: argparse.Namespace, delta: float) -> tuple[dict[str, float], dict[str, float]]:
    from auditkit.accounting import dp_sgd_epsilon

    if delta == 0.0:
        raise ValueError(
            "theory promises no finite ε of DP-SGD at δ = 0: say --delta, as in --delta 1e-5, or "
            "leave --noise-multiplier, --sampling-rate and --steps out"
        )
    promise = {
        "noise_multiplier": options.noise_multiplier,
        "sampling_rate": options.sampling_rate,
        "steps": options.steps,
    }
    upper = {
        adjacency: dp_sgd_epsilon(**promise, delta=delta, adjacency=adjacency)
        for adjacency in ("add/remove", "substitute")
    }
    return upper, promise


def _promised(numbers: tuple[float, ...], question: Question, bound: Bound) -> Promised:
    """Return what a promise of (ε, δ), or of μ, is worth beside the counts."""
    if question.method not in METHODS:
        raise ValueError(
            f"--promise is for {', '.join(METHODS)}, got --method {question.method}, whose counts "
            "have no p-value of their own"
        )
    curve = GaussianDP(*numbers) if len(numbers) == 1 else ApproxDP(*numbers)
    said, coins = as_promised(numbers), question.coins
    if bound.claim == "estimate":
        return Promised(said, None, f"The promise of {said} gets no p-value from an estimate.")
    if coins is not None and coins.promise not in (None, numbers):
        why = "another was planned with the coins, and to test several is to choose among tests."
        return Promised(said, None, f"The promise of {said} gets no p-value: {why}")
    game, scores = game_of(question)
    assert isinstance(game, OneRunGame | TwoWorldsGame)
    found = in_game(game, scores, question.threshold, curve)
    level = f"{100 * (1 - question.confidence):.3g}%"
    verdict = (
        f"it is refuted at the level of {level}."
        if found <= 1.0 - question.confidence
        else f"it is not refuted at the level of {level}, which does not show that it is kept."
    )
    chance = rounded(found, "upper bound")
    known = ""
    if coins is not None and coins.promise is None:
        known = " It was not planned with the coins, and is taken to be older than the scores."
    return Promised(
        said,
        found,
        f"If the promise of {said} holds, counts this extreme come about with chance {chance} at "
        f"most: {verdict}{known}",
    )


def _warnings(
    question: Question,
    bound: Bound,
    most: float,
    findings: list[Finding],
    upper: Mapping[str, float] | None,
) -> list[str]:
    epsilon = float(np.asarray(bound.epsilon))
    told = list(question.table.notes)
    if bound.claim == "estimate":
        reasons = [text for text in bound.assumptions if "estimate" in text or "rejected" in text]
        reasons += [text for text in bound.assumptions if "placebo" in text.lower()]
        told += reasons[:1] or ["This is an estimate: it proves nothing, whatever its size."]
    if question.method == "zero-run" and bound.claim == "lower bound":
        told.append(
            "The bound is as good as the propensities: where they lie too near to 1/2 it exceeds "
            "the truth, and nothing in this file would show it."
        )
    if question.method == "two-worlds":
        told.append(RUNS)
    coin = question.method in ("one-run", "one-run-fdp") and bound.claim == "lower bound"
    if coin and question.table.features is None and question.coins is None:
        told.append(TRUSTED)
    by_hand = question.threshold != usual(question.method)
    if by_hand and UNSEEN in bound.assumptions and bound.claim == "lower bound":
        told.append(FIXED)
    told += [*bound.notices, *(f"{item.what}: {item.says}." for item in findings if item.alarming)]
    if 0.0 < 0.9 * most < epsilon:
        told.append(
            f"The number is near its ceiling of {most:.3g}, which these counts cannot pass: more "
            "examples may show more."
        )
    if upper is not None:
        key = "add/remove" if bound.adjacency == "add/remove" else "substitute"
        if bound.claim == "lower bound" and epsilon > upper[key]:
            errs = 100.0 * (1.0 - question.confidence)
            promised = rounded(upper[key], "upper bound")
            told.append(
                f"The lower bound exceeds the promised ε of {promised} under {key} "
                "adjacency. Either the program does not do what the theory assumes, or what this "
                f"bound rests on does not hold, or this is one of the {errs:g}% of audits in which "
                "such a bound errs."
            )
    return told


def operating_point(audit: Audit) -> list[tuple[str, str]]:
    """Return what was stated and what it was counted from, in words."""
    bound, question = audit.bound, audit.question
    rows = [
        *stated(bound, f"{question.method} ({bound.method})"),
        ("membership", question.membership or "not said"),
        *counted_from(bound),
        ("ceiling", f"{audit.ceiling:.4g}, had every guess been right"),
    ]
    if audit.promised is not None and audit.promised.p_value is not None:
        chance = rounded(audit.promised.p_value, "upper bound")
        rows.append(("p-value of the promise", f"{chance}, of {audit.promised.curve}"))
    for key, value in (audit.upper or {}).items():
        rows.append((f"upper bound, {key}", rounded(value, "upper bound")))
    for key, value in (audit.promise or {}).items():
        rows.append((key.replace("_", " "), f"{value:g}"))
    if audit.promise is not None:
        rows.append(("accountant of the upper bounds", accountant(audit.promise)))
    return rows


def accountant(promise: Mapping[str, float]) -> str:
    """Return what computed the upper bounds of DP-SGD, as `auditkit.accounting` does."""
    if promise["sampling_rate"] == 1.0:
        return "the Gaussian trade-off curve, which is exact where every record is in every batch"
    return (
        f"privacy loss distributions of dp-accounting {version('dp-accounting')}, by "
        f"auditkit.accounting {version('dp-auditkit')}; batches by Poisson sampling"
    )


def stated(bound: Bound, method: str | None = None) -> list[tuple[str, str]]:
    """Return what a bound states."""
    return [
        ("bound", rounded(float(np.asarray(bound.epsilon)), bound.claim)),
        ("δ", f"{bound.delta:g}"),
        ("confidence", "none" if bound.confidence is None else short_of(1, bound.confidence)),
        ("claim", bound.claim),
        ("adjacency", bound.adjacency),
        ("method", method or bound.method),
    ]


def counted_from(bound: Bound) -> list[tuple[str, str]]:
    """Return the details of a bound, by plain names where they have one."""
    return [
        (PLAIN.get(name, name.replace("_", " ")), shown(value))
        for name, value in bound.details.items()
        if name != "ceiling"
    ]


def power_in_words(found: list[tuple[float, float]]) -> list[str]:
    """Return what an audit of this design could have found, a sentence for each true ε."""
    return [
        f"Of a mechanism with ε = {true:.3g}, the best attack would have shown "
        + (f"ε ≥ {rounded(shows, 'lower bound')}" if shows > 0.0 else "nothing")
        + " in 80% of runs."
        for true, shows in found
    ]


def settings(audit: Audit) -> list[tuple[str, str, str, str]]:
    """Return what else would have been stated, in words."""
    return [
        (what, to, "–" if value is None else rounded(value, claim), claim)
        for what, to, value, claim in audit.sensitivity
    ]


def columns_used(table: ScoreTable) -> list[tuple[str, str]]:
    """Return the columns by what they serve as, where there are many features the first three."""
    used = [(role, terminal.printable(name)) for role, name in table.used.items()]
    features = [pair for pair in used if pair[0].startswith("feature")]
    if len(features) <= 4:
        return used
    others = [pair for pair in used if pair not in features]
    last = (f"and {len(features) - 3} more, to", features[-1][1])
    return [*others, *features[:3], last]


def hashed_from(table: ScoreTable) -> str:
    """Return what the hash of a table is the hash of."""
    if len(table.parts) == 1:
        return terminal.printable(table.name)
    return f"the list that sha256sum makes of the {len(table.parts)} files"


def show(audit: Audit) -> None:
    """Print a sentence, its warnings, and the tables."""
    table = audit.question.table
    terminal.say(terminal.paragraph(audit.sentence))
    if audit.promised is not None:
        terminal.say(terminal.paragraph(audit.promised.sentence))
    for warning in audit.warnings:
        terminal.say(terminal.paragraph(warning, first="  ! "))
    terminal.say()
    for line in terminal.table(operating_point(audit)):
        terminal.say(line)
    terminal.say("\nIt assumes")
    for sentence in audit.bound.assumptions:
        terminal.say(terminal.paragraph(sentence, first="  - "))
    terminal.say("\nIt would have been")
    for line in terminal.table([("changed", "to", "ε", "claim"), *settings(audit)]):
        terminal.say(f"  {line}")
    if audit.found:
        terminal.say("\nIt could have found")
        for sentence in power_in_words(audit.found):
            terminal.say(terminal.paragraph(sentence, first="  - "))
    terminal.say("\nThe data")
    for finding in audit.findings:
        value = "–" if finding.value is None else shown(finding.value)
        level = "" if finding.level is None else f"; level of the test: {finding.level:g}"
        said = f"{finding.what}: {value} ({finding.says}{level})"
        terminal.say(terminal.paragraph(said, first="  ! " if finding.alarming else "  - "))
    used = ", ".join(f"{role}: {terminal.quoted(name)}" for role, name in columns_used(table))
    terminal.say(terminal.paragraph(f"columns: {used}", first="  - "))
    terminal.say(f"  - SHA-256 of {hashed_from(table)}: {table.sha256}")


def shown(value: Any) -> str:
    """Return a value in a few characters."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}"
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(shown(item) for item in np.asarray(value).ravel().tolist())
    return str(value)
