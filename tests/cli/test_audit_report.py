"""The report stands alone, escapes what comes from a file, and says what the bound says."""

import hashlib
import html
import json
import os
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from auditkit import one_run, two_worlds
from auditkit.bounds.result import rounded
from auditkit.bounds.tradeoff import GaussianDP
from auditkit.cli import main
from auditkit.cli.figures import promised

HOSTILE = [
    '=HYPERLINK("http://evil.example","x")',
    "<script>alert(1)</script>",
    '"><img src=http://evil.example/x onerror=alert(1)>',
    "@SUM(1)",
    "+1-cmd|' /C calc'!A0",
    "ἐψιλον ☃ \u202eabc",
]
LOADING = {"script", "img", "iframe", "link", "object", "embed", "video", "audio", "source", "base"}


class Page(HTMLParser):
    """What a page holds: elements, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.images = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        given = dict(attrs)
        if given.get("role") == "img":
            self.images.append(given.get("aria-label") or "")

    def handle_data(self, data):
        self.text.append(data)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


@pytest.fixture
def report(tmp_path, capsys):
    def made(columns, *arguments, name="scores.csv", others=()):
        path = tmp_path / name
        rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
        lines = [",".join(map(quoted, [*columns, *others]))]
        lines += [",".join([*map(str, row), *("=1+1" for _ in others)]) for row in rows]
        path.write_text("\n".join(lines), encoding="utf-8")
        out = tmp_path / "report.html"
        assert main(["audit", str(path), "--html", str(out), *arguments, "--json"]) == 0
        return out.read_text(encoding="utf-8"), json.loads(capsys.readouterr().out)

    return made


def columns_for(method, rows=600):
    rng = np.random.default_rng(0)
    odds = rng.normal(size=rows)
    members = rng.random(rows) < (expit(odds) if method == "zero-run" else 0.5)
    columns = {"score": rng.normal(2.0 * members), "member": members.astype(int)}
    if method == "zero-run":
        columns |= {"propensity": expit(odds), "feature_a": odds}
    if method == "panoramia":
        columns["baseline"] = rng.normal(size=rows)
    if method == "observational-label":
        columns = {"score": rng.normal(size=rows), "chosen": rng.integers(2, size=rows)}
    return columns


METHODS = ["one-run", "one-run-fdp", "two-worlds", "observational-label", "zero-run", "panoramia"]


@pytest.mark.parametrize("method", METHODS)
def test_the_report_stands_alone_and_every_figure_has_words(report, method):
    text, bound = report(columns_for(method), "--method", method)
    page = Page(text)
    assert not LOADING & set(page.tags)
    assert not [value for _, name, value in page.attributes if name in ("src", "href", "action")]
    assert text.count("url(") == text.count("url(#")  # of clips within a picture
    assert all(value[0] == "#" for _, name, value in page.attributes if name == "xlink:href")
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert len(page.images) == (5 if method == "zero-run" else 4)
    assert all(len(words.split()) > 8 for words in page.images)
    assert bound["data"]["sha256"] in text
    assert f"{bound['epsilon']:.3f}" in text
    said = "".join(page.text)
    for part in ("In plain words", "What it does not say", "seed", "0.1.0", "auditkit audit"):
        assert part in said
    for name in ("candidates", "tau", "mu", "rejection_p_value", "kept_at_most"):
        assert f'<th scope="row">{name}</th>' not in text
    if method not in ("zero-run", "panoramia"):
        assert "What this audit could have found" in said
        assert [row["power"] for row in bound["would_have_shown"]] == [0.8] * 4


def test_the_report_escapes_everything(report):
    columns = columns_for("zero-run")
    columns = {
        "feature <b>": columns.pop("feature_a"),
        'feature "><svg onload=alert(1)>': np.arange(600),
        **columns,
    }
    name = "a&b<i>.csv"
    text, _ = report(columns, "--membership", "observed", name=name, others=HOSTILE)
    page = Page(text)
    assert not LOADING & set(page.tags)
    assert not {"b", "i"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    said = "".join(page.text)
    for header in HOSTILE[:5]:
        assert header in said
        assert f"“{header}”" in said  # in quotation marks a spreadsheet takes it for text
    assert "\u202e" not in text  # nothing turns the reading direction round
    assert "a&b<i>.csv" in said


def test_the_same_command_writes_the_same_report(report, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, _ = report(columns_for("one-run"), "--membership", "randomised")
    assert report(columns_for("one-run"), "--membership", "randomised")[0] == first


def test_the_report_names_the_model_and_the_day(report, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (tmp_path / "model.pt").write_bytes(b"weights")
    asked = ["--title", "A <model>, version 3", "--model", str(tmp_path / "model.pt")]
    text, bound = report(columns_for("one-run"), "--membership", "randomised", *asked)
    digest = hashlib.sha256(b"weights").hexdigest()
    assert "<h1>A &lt;model&gt;, version 3</h1>" in text
    assert '<p class="made">2023-11-14 22:13 UTC</p>' in text
    assert digest in text
    assert bound["model"] == {"name": "model.pt", "sha256": digest}
    (tmp_path / "checkpoint" / "deep").mkdir(parents=True)
    for name in ("a", "deep/b"):
        (tmp_path / "checkpoint" / name).write_text(name, encoding="utf-8")
    _, bound = report(columns_for("one-run"), "--model", str(tmp_path / "checkpoint"))
    lines = "".join(f"{hashlib.sha256(n.encode()).hexdigest()}  {n}\n" for n in ("a", "deep/b"))
    assert bound["model"]["sha256"] == hashlib.sha256(lines.encode()).hexdigest()


def test_the_report_says_what_it_could_have_found(report):
    text, bound = report(
        columns_for("one-run"), "--membership", "randomised", "--promise", "3,1e-5"
    )
    shown = {row["true_epsilon"]: row["epsilon"] for row in bound["would_have_shown"]}
    assert list(shown) == [1.0, 2.0, 3.0, 4.0, 8.0]
    assert sorted(shown.values()) == list(shown.values())
    assert shown[8.0] <= bound["ceiling"]
    assert "Of a mechanism with ε = 3, the best attack would have shown" in text
    assert '<th scope="col">level of the test</th>' in text


def test_many_other_columns_are_folded(report):
    others = [f"column {number}" for number in range(30)]
    text, _ = report(columns_for("one-run"), others=others)
    assert "and 22 more</p><details><summary>The other 22</summary>" in text
    assert all(f"“{name}”" in text for name in others)


def test_a_bound_of_python_has_a_report_too(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    path = tmp_path / "report.html"
    bound = one_run(700, 1000, 10_000)
    bound.report(path, title="A <model>")
    text = path.read_text(encoding="utf-8")
    assert not LOADING & set(Page(text).tags)
    said = "".join(Page(text).text)
    for part in (
        "A <model>",
        rounded(bound.epsilon, bound.claim),
        "What it does not say",
        "right guesses",
        "80% of runs",
    ):
        assert part in said
    two_worlds(5, 500, 5, 500).report(path)
    assert "runs with the canary" in path.read_text(encoding="utf-8")
    estimate = replace(one_run(700, 1000, 10_000), claim="estimate", details={"odd": object})
    estimate.report(path)
    assert "it proves nothing" in path.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="a report is of one bound, got 2"):
        one_run([700, 800], 1000, 10_000).report(path)


def test_the_json_of_a_bound_is_explained(tmp_path, capsys):
    path = tmp_path / "bound.json"
    path.write_text(replace(one_run(700, 1000, 10_000), epsilon=np.inf).to_json())
    assert main(["explain", str(path)]) == 0
    assert "The mechanism leaks" in capsys.readouterr().out
    told = json.loads(one_run([700, 800], 1000, 10_000).to_json())
    assert len(told["epsilon"]) == 2


def test_warnings_come_before_the_figures(report):
    text, _ = report(columns_for("one-run"))
    assert text.index("--membership was not given") < text.index("<svg")
    assert 'class="verdict estimate"' in text


def test_theory_is_drawn_beside_the_bound(report):
    promise = ["--noise-multiplier", "1", "--sampling-rate", "1", "--steps", "2"]
    text, bound = report(columns_for("one-run"), "--membership", "randomised", *promise)
    assert (
        f"theory&#x27;s promise, add/remove, ε = {bound['upper_bounds']['add/remove']:.3g}" in text
    )


def test_a_promise_is_judged_beside_the_number(report):
    text, bound = report(
        columns_for("one-run"), "--membership", "randomised", "--promise", "gaussian:2"
    )
    assert html.escape(bound["promised"]["sentence"]) in text
    assert "p-value of the promise" in text


def test_scores_that_no_axis_can_hold_leave_their_figure_out(report):
    columns = columns_for("one-run")
    columns["score"] = np.where(columns["score"] > 1.0, 1.0, 1.0 + 2.0**-50)
    text, _ = report(columns)
    assert len(Page(text).images) == 3


def test_the_promised_curve_lies_below_the_true_one_and_near_it():
    grid = np.linspace(0.01, 0.99, 50)
    promise = {"noise_multiplier": 2.0, "sampling_rate": 1.0, "steps": 4}
    found = promised(promise, "add/remove", grid)
    true = np.asarray(GaussianDP(1.0).beta(grid))
    assert (found <= true + 1e-12).all()
    assert (true - found).max() < 0.06


ROOT = Path(__file__).parents[2]
BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
LACKING = not (
    BROWSER and shutil.which("node") and (ROOT / "node_modules/playwright-core").is_dir()
)


@pytest.mark.skipif(LACKING, reason="looks at the report in Chromium: needs node, node_modules")
def test_the_report_in_a_browser_asks_for_nothing_and_fits(report, tmp_path):
    text, _ = report(columns_for("zero-run"), "--membership", "observed", others=HOSTILE)
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("report.mjs")), str(tmp_path / "page.html")],
        env={**os.environ, "CHROMIUM": str(BROWSER)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert set(seen) == {"light", "dark", "print", "phone"}
    for mode, found in seen.items():
        assert found["requests"] == 1, mode  # the page itself
        assert found["said"] == [], mode
        assert found["overflow"] <= 0, mode
        assert found["violations"] == [], mode
    assert seen["light"]["background"] != seen["dark"]["background"]
    assert seen["print"]["background"] == "rgb(255, 255, 255)"
