"""`auditkit explain`: what a bound means and what not, in plain words."""

import argparse
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auditkit.bounds.result import rounded, short_of
from auditkit.cli.terminal import paragraph, printable, quoted, say

NEEDED = ("epsilon", "delta", "confidence", "claim")
HIGHEST = {"epsilon": math.inf, "delta": 1.0, "confidence": 1.0}
LARGEST = 1e300  # an ε above it is no number that anybody found
CLAIMS = ("lower bound", "estimate", "upper bound")
NEIGHBOURS = {
    "add/remove": "Neighbouring datasets differ in one example that only one of them holds.",
    "substitute": "Neighbouring datasets differ in one example that is replaced by another.",
    "label": "Neighbouring datasets differ in the label of one example; features are no secret.",
    "the two worlds'": "The two neighbouring datasets are those that the runs were made with.",
}


def add_to(rooms: Any) -> None:
    """Add the command to those of the program."""
    command = rooms.add_parser("explain", help="say in plain words what a bound means and what not")
    command.add_argument("file", type=Path, metavar="BOUND.json", help="as auditkit audit --json")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        bound = json.loads(options.file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{options.file.name} is no JSON file: {error}") from None
    for heading, sentences in explain(bound):
        say(heading)
        for sentence in sentences:
            say(paragraph(sentence, first="  - "))
    return 0


def explain(bound: Any) -> list[tuple[str, list[str]]]:
    """Return headings, each with sentences, for the fields of a bound."""
    checked = _checked(bound)
    return [
        ("What it says", _says(checked)),
        ("What it does not say", _says_not(checked)),
        ("What it rests on", _rests(checked)),
    ]


def _checked(bound: Any) -> Mapping[str, Any]:
    if not isinstance(bound, Mapping) or any(name not in bound for name in NEEDED):
        raise ValueError(f"a bound has the fields {', '.join(NEEDED)}, as auditkit audit --json")
    if bound["claim"] not in CLAIMS:
        raise ValueError(f"claim must be one of {', '.join(CLAIMS)}, got {quoted(bound['claim'])}")
    checked = dict(bound)
    for name, highest in HIGHEST.items():
        value = bound[name]
        if name == "confidence" and value is None:
            continue
        if value == "inf":  # as --json writes what JSON has no number for
            value = math.inf
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be one number, got {quoted(value)}")
        if not 0.0 <= value <= highest:
            raise ValueError(f"{name} must lie between 0 and {highest:g}, got {quoted(value)}")
        checked[name] = value if value <= LARGEST else math.inf
    if not isinstance(bound.get("assumptions") or [], list):
        raise ValueError(f"assumptions must be a list, got {quoted(bound['assumptions'])}")
    return checked


def _says(bound: Mapping[str, Any]) -> list[str]:
    epsilon, delta = bound["epsilon"], bound["delta"]
    sure = ""
    if bound["confidence"] is not None:
        sure = f"with {short_of(100, 100 * bound['confidence'])}% confidence"
    number = rounded(epsilon, bound["claim"])
    odds = math.exp(epsilon) if epsilon < 700.0 else math.inf
    if bound["claim"] == "upper bound":
        return [
            f"The mechanism is ({number}, {delta:g})-differentially private: no attack, of "
            "whatever kind, can do better.",
            f"Whoever sees the result can raise the odds that one example was used by a factor of "
            f"{rounded(odds, 'upper bound')} at most, but for an event of probability {delta:g}.",
        ]
    if epsilon == 0.0:
        return [
            "Nothing was found: this attack, with this many examples, is no better than guessing "
            "allows for."
        ]
    if bound["claim"] == "estimate":
        return [
            f"ε looks like {number} at δ = {delta:g}. This is an estimate and proves nothing: "
            "the true ε may lie below it as well as above."
        ]
    return [
        f"The mechanism leaks, {sure} if what it rests on holds: it is not (ε, {delta:g})-"
        f"differentially private for any ε below {number}.",
        f"In odds: some event is about {odds:.3g} times as likely with the example as without it, "
        f"or the reverse, after a probability of {delta:g} has been given away.",
        *(
            [
                "The confidence is that of the procedure: were the whole audit repeated many "
                f"times, at most {100 * (1 - bound['confidence']):.3g}% of the bounds would lie "
                "above the true ε."
            ]
            if sure
            else []
        ),
    ]


def _says_not(bound: Mapping[str, Any]) -> list[str]:
    if bound["claim"] == "upper bound":
        return [
            "It does not say that the program does what the theory assumes: audits look for that.",
            "It does not say that an attack comes near it.",
        ]
    told = [
        "It is not an upper limit. The true ε may be much larger: a stronger attack, or more "
        "examples, may show more.",
        "It speaks of the mechanism on this dataset and with these examples, not of every dataset.",
    ]
    if bound["epsilon"] == 0.0:
        told.insert(0, "It does not say that the mechanism is private.")
    if bound["claim"] == "estimate":
        told.insert(0, "It may not be reported as a proved leak, nor as a proof of privacy.")
    return told


def _rests(bound: Mapping[str, Any]) -> list[str]:
    found = []
    adjacency = bound.get("adjacency")
    if isinstance(adjacency, str) and adjacency in NEIGHBOURS:
        found.append(NEIGHBOURS[adjacency])
    assumptions = bound.get("assumptions") or []
    found += [printable(sentence) for sentence in assumptions if isinstance(sentence, str)]
    details = bound.get("details")
    if isinstance(details, Mapping) and "correct" in details and "guesses" in details:
        found.append(
            f"{printable(details['correct'])} of {printable(details['guesses'])} guesses were "
            f"right, among {printable(details.get('examples', 'some'))} examples."
        )
        if "kept" in details:  # of a zero run
            found.append(f"After the correction {printable(details['kept'])} of them are counted.")
    return found or ["Nothing was written down with it. Ask for its assumptions."]
