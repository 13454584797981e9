"""The report: one HTML file that needs no other, for a screen by day or night and for paper.

Everything that comes from a file is escaped. The page holds no script and asks nothing of any
host; its own policy forbids both, should an escape ever fail.
"""

import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from auditkit._files import write_whole
from auditkit.bounds.power import best_would_find
from auditkit.bounds.result import Bound, jsonable, rounded
from auditkit.cli.explain import explain
from auditkit.cli.figures import Picture, pictures
from auditkit.cli.statement import (
    TRUE,
    Audit,
    accountant,
    as_json,
    columns_used,
    counted_from,
    hashed_from,
    now,
    operating_point,
    power_in_words,
    settings,
    shown,
    stated,
)
from auditkit.cli.terminal import printable

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
{style}</style></head><body><main>
<h1>{title}</h1>
<p class="made">{made}</p>
{body}
<div class="signature"><span>Name</span><span>Date and signature</span></div>
</main></body></html>
"""
OTHERS = """<p>At another confidence or δ the guesses are the same. To pick the most pleasing line
of this table afterwards would make it an estimate.</p>
"""
FOUND = """<p>The mechanism is taken to be Gaussian, and the attack to be the best there is on it,
with as many guesses as were made here. A real attack finds less.</p>
"""
SIGNS = {"lower bound": "≥", "estimate": "≈", "upper bound": "≤"}
FOLDED = 8  # names that are shown before the rest is folded away


def write_report(audit: Audit, path: Path) -> None:
    """Write the report, whole or not at all."""
    write_whole(path, page(audit).encode("utf-8"))


def write_bound(bound: Bound, path: str, title: str) -> None:
    """Write the report of a bound by itself, whole or not at all."""
    if np.ndim(bound.epsilon):
        raise ValueError(f"a report is of one bound, got {np.size(bound.epsilon)}: {bound}")
    found = []
    with suppress(ValueError):  # of a design that has no such number
        found = [(true, best_would_find(bound, true)) for true in TRUE]
    sentence = str(replace(bound, assumptions=(), notices=())).replace("; assumes: )", ")")
    notices = list(bound.notices)
    if bound.claim == "estimate":
        notices.insert(0, "This is an estimate: it proves nothing, whatever its size.")
    told = {item.name: getattr(bound, item.name) for item in fields(bound)}
    sections = [
        ("", _verdict(bound, sentence, [], notices)),
        ("In plain words", _explained(jsonable(told))),
        ("The bound", _table("The bound", (), [*stated(bound), *counted_from(bound)])),
        ("What this audit could have found", _power(found)),
        ("To repeat it", _table("To repeat it", (), _versions())),
    ]
    write_whole(Path(path), _page(title, now(), sections).encode("utf-8"))


def page(audit: Audit) -> str:
    """Return the report as one page."""
    findings = [
        (
            item.what,
            "–" if item.value is None else shown(item.value),
            "–" if item.level is None else f"{item.level:g}",
            item.says,
        )
        for item in audit.findings
    ]
    alarming = {place for place, item in enumerate(audit.findings) if item.alarming}
    head = ("what", "found", "level of the test", "which means")
    others = ("changed", "to", "ε", "claim")
    drawn = "".join(map(_figure, pictures(audit)))
    sections = [
        ("", _verdict(audit.bound, audit.sentence, _beside(audit), audit.warnings)),
        ("In plain words", _explained(as_json(audit))),
        ("The bound", _table("The bound", (), operating_point(audit))),
        ("What this audit could have found", _power(audit.found)),
        ("Had the settings been others", OTHERS + _table("Settings", others, settings(audit))),
        ("Figures", f'<div class="pictures">{drawn}</div>'),
        ("What was looked at", _table("Looked at", head, findings, alarming)),
        ("To repeat it", _repeat(audit)),
    ]
    return _page(audit.title, audit.made, sections)


def _page(title: str, made: str, sections: Iterable[tuple[str, str]]) -> str:
    body = "\n".join(
        (f"<h2>{escape(head)}</h2>\n" if head else "") + text for head, text in sections if text
    )
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    name = escape(printable(title))
    return PAGE.format(policy=POLICY, style=style, title=name, made=escape(made), body=body)


def _explained(bound: Mapping[str, Any]) -> str:
    return "".join(f"<h3>{escape(head)}</h3>{_list(said)}" for head, said in explain(bound))


def _power(found: list[tuple[float, float]]) -> str:
    """Return what could have been found, nothing where no such number is known."""
    return FOUND + _list(power_in_words(found)) if found else ""


def _beside(audit: Audit) -> list[str]:
    """Return what has to be read beside the number: what it could have been, what was promised."""
    told = [f"Had every guess been right, it would have been {audit.ceiling:.3g}."]
    if audit.found:
        promised = (audit.upper or {}).values()
        near = [pair for pair in audit.found if pair[0] in promised]
        seen = near or [pair for pair in audit.found if pair[1] > 0.0] or audit.found[-1:]
        told += power_in_words(seen[:1])
    if audit.upper is not None:
        limits = " and ".join(
            f"{rounded(value, 'upper bound')} ({key})" for key, value in audit.upper.items()
        )
        told.append(f"Theory promises ε ≤ {limits}, by {accountant(audit.promise or {})}.")
    if audit.promised is not None:
        told.append(audit.promised.sentence)
    return told


def _verdict(bound: Bound, sentence: str, beside: list[str], warnings: list[str]) -> str:
    epsilon = rounded(float(np.asarray(bound.epsilon)), bound.claim)
    kind = "estimate" if bound.claim == "estimate" else "bound"
    told = ""
    if warnings:
        told = f'<div class="warnings"><strong>Read this first</strong>{_list(warnings)}</div>'
    return (
        f'<div class="verdict {kind}"><div class="number">ε {SIGNS[bound.claim]} {epsilon}</div>'
        f'<p><span class="claim">{escape(bound.claim.capitalize())}.</span> '
        f"{escape(sentence)}</p><p>{escape(' '.join(beside))}</p></div>{told}"
    )


def _figure(picture: Picture) -> str:
    rows = [(name, f"{x:.4g}", f"{y:.4g}") for name, x, y in picture.numbers]
    numbers = _table(f"Numbers of {picture.title}", ("line", *picture.axes), rows)
    return (
        f"<figure>{picture.svg}<figcaption><strong>{escape(picture.title)}.</strong> "
        f"{escape(picture.says)}</figcaption><details><summary>The numbers, every so many</summary>"
        f"{numbers}</details></figure>"
    )


def _repeat(audit: Audit) -> str:
    table = audit.question.table
    # in quotation marks, so that a cell copied into a spreadsheet is text and no formula
    columns = [f"{role}: “{name}”" for role, name in columns_used(table)]
    rows = [
        ("command", f"“{printable(audit.command)}”"),
        ("scores", f"“{printable(table.name)}”"),
        (f"SHA-256 of {hashed_from(table)}", table.sha256),
        ("columns used", ", ".join(columns)),
        ("threshold rule", audit.question.rule),
        ("seed", str(audit.question.seed)),
        *_versions(),
    ]
    if audit.model is not None:
        name, digest = audit.model
        rows[:0] = [("model", f"“{printable(name)}”"), ("SHA-256 of the model", digest)]
    folded = _folded("other columns", [f"“{printable(name)[:80]}”" for name in table.unused])
    return _table("To repeat it", (), rows) + folded


def _versions() -> list[tuple[str, str]]:
    return [
        ("auditkit", version("dp-auditkit")),
        ("numpy, Python", f"{np.__version__}, {platform.python_version()}"),
    ]


def _folded(what: str, names: list[str]) -> str:
    """Return names in a line, and the rest of many behind a mark that opens."""
    if len(names) <= FOLDED:
        return f"<p>{what}: {escape(', '.join(names) or 'none')}</p>"
    first, rest = escape(", ".join(names[:FOLDED])), escape(", ".join(names[FOLDED:]))
    return (
        f"<p>{what}: {first} and {len(names) - FOLDED} more</p>"
        f"<details><summary>The other {len(names) - FOLDED}</summary><p>{rest}</p></details>"
    )


def _table(
    label: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    alarming: Iterable[int] = (),
) -> str:
    body = "".join(
        f'<tr{" class=alarming" if place in alarming else ""}><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for place, (first, *rest) in enumerate(rows)
    )
    cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    top = f"<thead><tr>{cells}</tr></thead>" if head else ""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"<table>{top}<tbody>{body}</tbody></table></div>"
    )


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in sentences)}</ul>"
