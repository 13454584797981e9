"""The report: one HTML file that needs no other, for a screen by day or night and for paper.

Everything that comes from a file is escaped. The page holds no script and asks nothing of any
host; its own policy forbids both, should an escape ever fail.
"""

import platform
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path

import numpy as np

from auditkit._files import write_whole
from auditkit.bounds.result import rounded
from auditkit.cli.explain import explain
from auditkit.cli.figures import Picture, pictures
from auditkit.cli.statement import (
    Audit,
    as_json,
    columns_used,
    hashed_from,
    operating_point,
    settings,
    shown,
)
from auditkit.cli.terminal import printable

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Privacy audit of {name}</title><style>
{style}</style></head><body><main>
<h1>Privacy audit of {name}</h1>
{verdict}
<h2>In plain words</h2>
{words}
<h2>The bound</h2>
{bound}
<h2>Had the settings been others</h2>
<p>At another confidence or δ the guesses are the same. To pick the most pleasing line of this table
afterwards would make it an estimate.</p>
{settings}
<h2>Figures</h2>
<div class="pictures">{pictures}</div>
<h2>What was looked at</h2>
{findings}
<h2>To repeat it</h2>
{repeat}
<div class="signature"><span>Name</span><span>Date and signature</span></div>
</main></body></html>
"""


def write_report(audit: Audit, path: Path) -> None:
    """Write the report, whole or not at all."""
    write_whole(path, page(audit).encode("utf-8"))


def page(audit: Audit) -> str:
    """Return the report as one page."""
    findings = [
        (item.what, "–" if item.value is None else shown(item.value), item.says)
        for item in audit.findings
    ]
    alarming = {place for place, item in enumerate(audit.findings) if item.alarming}
    words = (f"<h3>{escape(head)}</h3>{_list(said)}" for head, said in explain(as_json(audit)))
    return PAGE.format(
        policy=POLICY,
        style=Path(__file__).with_name("report.css").read_text(encoding="utf-8"),
        name=escape(printable(audit.question.table.name)),
        verdict=_verdict(audit),
        words="".join(words),
        bound=_table("The bound", (), operating_point(audit)),
        settings=_table("Other settings", ("changed", "to", "ε", "claim"), settings(audit)),
        pictures="".join(map(_figure, pictures(audit))),
        findings=_table("Looked at", ("what", "found", "which means"), findings, alarming),
        repeat=_repeat(audit),
    )


def _verdict(audit: Audit) -> str:
    sign = {"lower bound": "≥", "estimate": "≈", "upper bound": "≤"}[audit.bound.claim]
    epsilon = rounded(float(np.asarray(audit.bound.epsilon)), audit.bound.claim)
    kind = "estimate" if audit.bound.claim == "estimate" else "bound"
    beside = f"Had every guess been right, it would have been {audit.ceiling:.3g}."
    if audit.upper is not None:
        promised = " and ".join(
            f"{rounded(value, 'upper bound')} ({key})" for key, value in audit.upper.items()
        )
        beside += f" Theory promises ε ≤ {escape(promised)}."
    if audit.promised is not None:
        beside += f" {escape(audit.promised.sentence)}"
    told = ""
    if audit.warnings:
        told = (
            f'<div class="warnings"><strong>Read this first</strong>{_list(audit.warnings)}</div>'
        )
    return (
        f'<div class="verdict {kind}"><div class="number">ε {sign} {epsilon}</div>'
        f'<p><span class="claim">{escape(audit.bound.claim.capitalize())}.</span> '
        f"{escape(audit.sentence)}</p><p>{beside}</p></div>{told}"
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
    columns = (f"{role}: “{name}”" for role, name in columns_used(table))
    rows = [
        ("command", f"“{printable(audit.command)}”"),
        ("file", f"“{printable(table.name)}”"),
        (f"SHA-256 of {hashed_from(table)}", table.sha256),
        ("columns used", _some(columns)),
        ("other columns", _some(f"“{printable(name)[:80]}”" for name in table.unused)),
        ("threshold rule", audit.question.rule),
        ("seed", str(audit.question.seed)),
        ("auditkit", version("dp-auditkit")),
        ("numpy, Python", f"{np.__version__}, {platform.python_version()}"),
    ]
    return _table("To repeat it", (), rows)


def _some(names: Iterable[str]) -> str:
    told = list(names)
    more = f" and {len(told) - 30} more" if len(told) > 30 else ""
    return (", ".join(told[:30]) or "none") + more


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
