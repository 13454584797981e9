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

from auditkit.bounds.result import rounded, short_of
from auditkit.cli.explain import explain
from auditkit.cli.figures import figures
from auditkit.cli.statement import Audit, as_json, shown
from auditkit.cli.terminal import printable
from auditkit.datasets.store import write_whole

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1e23; --soft: #5b616b; --line: #d5d8dd;
  --box: #f4f5f7; --ours: #0064de; --alarm: #a33c00; --alarm-box: #fff3ea; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e9ebee; --soft: #a9b0ba;
  --line: #3a4048; --box: #1e2227; --ours: #6fb0ff; --alarm: #ffa25e; --alarm-box: #2d2017; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 3rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
p, ul { margin: .4rem 0; } li { margin: .2rem 0; }
.verdict { border-left: .4rem solid var(--ours); background: var(--box); padding: .8rem 1rem;
  margin: 1rem 0; }
.verdict.estimate { border-color: var(--alarm); }
.verdict .number { font-size: 1.9rem; font-weight: 650; line-height: 1.2; }
.claim { font-weight: 650; }
.warnings { background: var(--alarm-box); border-left: .4rem solid var(--alarm);
  padding: .5rem 1rem; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric:
  tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0;
  border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); } tbody th { font-weight: 500; }
td.value { white-space: nowrap; } td.long { overflow-wrap: anywhere; }
tr.alarming th, tr.alarming td { color: var(--alarm); font-weight: 600; }
.wide { overflow-x: auto; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr));
  gap: 1.5rem; }
figure { margin: 0; break-inside: avoid; }
figure > svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .grid { stroke: var(--line); fill: none; stroke-width: 1; }
svg .axis { stroke: var(--soft); fill: none; stroke-width: 1.2; }
svg .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
.key { width: 34px; height: 12px; margin-right: .4rem; vertical-align: middle; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1.2rem;
  font-size: .85rem; }
figcaption { font-size: .9rem; color: var(--soft); } summary { font-size: .85rem; cursor: pointer; }
code, pre { font: .88rem ui-monospace, monospace; white-space: pre-wrap; }
.signature { display: flex; gap: 2rem; margin-top: 2.5rem; }
.signature span { flex: 1; border-top: 1px solid var(--soft); color: var(--soft);
  font-size: .85rem; }
@media print {
  :root { color-scheme: light; --page: #fff; --ink: #000; --soft: #444; --line: #bbb; --box: #fff;
    --ours: #0064de; --alarm: #a33c00; --alarm-box: #fff; }
  @page { size: A4; margin: 16mm 15mm; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  .pictures { grid-template-columns: 1fr 1fr; gap: 6mm; }
  details:not([open]) { display: none; }
  h2, h3 { break-after: avoid; } tr, li, .verdict, .warnings { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def write_report(audit: Audit, path: Path) -> None:
    """Write the report, whole or not at all."""
    write_whole(path, page(audit).encode("utf-8"))


def page(audit: Audit) -> str:
    """Return the report as one page."""
    name = escape(printable(audit.question.table.name))
    parts = [
        "<!doctype html>\n",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Privacy audit of {name}</title><style>{STYLE}</style></head><body><main>",
        f"<h1>Privacy audit of {name}</h1>",
        _verdict(audit),
        _warnings(audit.warnings),
        "<h2>In plain words</h2>",
        *(f"<h3>{escape(head)}</h3>{_list(said)}" for head, said in explain(as_json(audit))),
        "<h2>The bound</h2>",
        _operating_point(audit),
        "<h2>Had the settings been others</h2>",
        _sensitivity(audit),
        "<h2>Figures</h2>",
        f'<div class="pictures">{"".join(chart.html() for chart in figures(audit))}</div>',
        "<h2>What was looked at</h2>",
        _findings(audit),
        "<h2>To repeat it</h2>",
        _repeat(audit),
        '<div class="signature"><span>Name</span><span>Date and signature</span></div>',
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _verdict(audit: Audit) -> str:
    sign = {"lower bound": "≥", "estimate": "≈", "upper bound": "≤"}[audit.bound.claim]
    epsilon = rounded(float(np.asarray(audit.bound.epsilon)), audit.bound.claim)
    kind = "estimate" if audit.bound.claim == "estimate" else "bound"
    promise = ""
    if audit.upper is not None:
        promised = " and ".join(
            f"{rounded(value, 'upper bound')} ({key})" for key, value in audit.upper.items()
        )
        promise = f"<p>Theory promises ε ≤ {escape(promised)}.</p>"
    return (
        f'<div class="verdict {kind}"><div class="number">ε {sign} {epsilon}</div>'
        f'<p><span class="claim">{escape(audit.bound.claim.capitalize())}.</span> '
        f"{escape(audit.sentence)}</p>{promise}</div>"
    )


def _warnings(told: Sequence[str]) -> str:
    if not told:
        return ""
    return f'<div class="warnings"><strong>Read this first</strong>{_list(told)}</div>'


def _operating_point(audit: Audit) -> str:
    bound, question = audit.bound, audit.question
    rows = [
        ("ε", rounded(float(np.asarray(bound.epsilon)), bound.claim)),
        ("δ", f"{bound.delta:g}"),
        ("confidence", "none" if bound.confidence is None else short_of(1, bound.confidence)),
        ("claim", bound.claim),
        ("adjacency", bound.adjacency),
        ("method", f"{question.method} ({bound.method})"),
        ("membership", question.request.membership or "not said"),
        ("ceiling", f"{audit.ceiling:.4g}, had every guess been right"),
    ]
    if audit.upper is not None and audit.promise is not None:
        rows += [
            (f"upper bound, {key}", rounded(value, "upper bound"))
            for key, value in audit.upper.items()
        ]
        rows += [(key.replace("_", " "), f"{value:g}") for key, value in audit.promise.items()]
    rows += [(key, shown(value)) for key, value in bound.details.items() if key != "ceiling"]
    return _table("The bound", ("", ""), rows)


def _sensitivity(audit: Audit) -> str:
    rows = [
        (what, to, "–" if value is None else rounded(value, claim), claim)
        for what, to, value, claim in audit.sensitivity
    ]
    note = (
        "<p>At another confidence or δ the guesses are the same. To pick the most pleasing line of "
        "this table afterwards would make it an estimate.</p>"
    )
    return note + _table("Other settings", ("changed", "to", "ε", "claim"), rows)


def _findings(audit: Audit) -> str:
    body = "".join(
        f'<tr{" class=alarming" if item.alarming else ""}><th scope="row">{escape(item.what)}</th>'
        f'<td class="value">{"–" if item.value is None else escape(shown(item.value))}</td>'
        f"<td>{escape(item.says)}</td></tr>"
        for item in audit.findings
    )
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="What was looked at"><table>'
        '<thead><tr><th scope="col">what</th><th scope="col">found</th><th scope="col">which '
        f"means</th></tr></thead><tbody>{body}</tbody></table></div>"
    )


def _repeat(audit: Audit) -> str:
    table, request = audit.question.table, audit.question.request
    # in quotation marks, so that a cell copied into a spreadsheet is text and no formula
    columns = ", ".join(f"{role}: “{printable(name)}”" for role, name in table.used.items())
    rows = [
        ("command", f"“{printable(audit.command)}”"),
        ("file", f"“{printable(table.name)}”"),
        ("SHA-256", table.sha256),
        ("columns used", columns),
        ("other columns", _some(table.unused)),
        ("threshold rule", audit.question.rule),
        ("seed", str(request.seed)),
        ("auditkit", version("dp-auditkit")),
        ("numpy, Python", f"{np.__version__}, {platform.python_version()}"),
    ]
    return _table("To repeat it", ("", ""), rows, kind=' class="long"')


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(f"“{printable(name)[:80]}”" for name in names[:30]) or "none"
    return f"{listed} and {len(names) - 30} more" if len(names) > 30 else listed


def _table(label: str, head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td{kind}>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    top = ""
    if any(head):
        cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
        top = f"<thead><tr>{cells}</tr></thead>"
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table>{top}'
        f"<tbody>{body}</tbody></table></div>"
    )


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in sentences)}</ul>"
