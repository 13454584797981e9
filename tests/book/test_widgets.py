"""The widgets say what the package says, to everybody, from disk and without a network."""

import ast
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import book_site
import numpy as np
import pytest
import widgets
from scipy.special import expit, ndtri

import auditkit as ak
from auditkit.bounds.power import would_find
from auditkit.bounds.sharp_tampering import sharp_keep
from auditkit.figures import PALETTE

FOLDER = book_site.ROOT / "book" / "_static" / widgets.FOLDER
POINTS = 60
CLOSE = 1e-9
SLIDERS = ["null_audits", "confidence", "ceiling", "exact", "tradeoff", "shift"]


def in_the_browser(test: Any) -> Any:
    """Mark a test that looks at what Chromium saw."""
    for mark in (pytest.mark.site, pytest.mark.xdist_group("widgets")):
        test = mark(test)
    return test


Call = tuple[str, list[Any], Any]  # function, arguments, and what the package says


def whole(rng: np.random.Generator, most: float, least: float = 0.0) -> int:
    """Return a count, as likely small as large."""
    return int(10 ** rng.uniform(least, most))


def confidence(rng: np.random.Generator) -> Call:
    runs = whole(rng, 5, 1), whole(rng, 5, 1)
    errors = [1 + int((n - 1) * rng.uniform(0, 0.5)) for n in runs]
    delta, sure = float(rng.choice([0.0, 1e-5])), float(rng.choice([0.5, 0.9, 0.95, 0.999]))
    bound = ak.two_worlds(errors[0], runs[0], errors[1], runs[1], delta=delta, confidence=sure)
    rates = {"alpha": errors[0] / runs[0], "beta": errors[1] / runs[1]}
    top = 1 - delta - rates["beta"], 1 - delta - rates["alpha"]
    bottom = rates["alpha"], rates["beta"]
    estimate = max(0.0, *(math.log(max(a, b) / b) for a, b in zip(top, bottom, strict=True)))
    limits = {"fpr": bound.details["fpr_upper"], "fnr": bound.details["fnr_upper"]}
    says = {**rates, **limits, "estimate": estimate, "epsilon": bound.epsilon}
    return "confidence", [errors[0], runs[0], errors[1], runs[1], delta, sure], says


def null_audit(rng: np.random.Generator) -> Call:
    tried = int(rng.choice([1, 2, 4, 5, 10, 20, 50, 100]))
    lean = float(rng.choice([0.0, 0.1]))  # at times something to find, or nearly all is silence
    members = rng.random(400) < 0.5
    scores = rng.normal(lean * 2 * members)
    order = np.argsort(-scores)
    sides = np.stack([order[:200], order[:199:-1]], axis=1).ravel()  # highest, lowest, ...
    guessed = np.tile([True, False], 200)
    rules = tuple(ak.Fixed(guesses=400 * (i + 1) // tried) for i in range(tried))

    def found(rule: object) -> bool:
        bound = ak.audit_scores(scores, members, method="one-run", threshold=rule, delta=0.0)
        return bool(bound.epsilon > 0)

    says = {
        "fixed": found(ak.Fixed(guesses=0.1)),
        "best": any(found(rule) for rule in rules),
        "corrected": found(ak.Bonferroni(rules)),
    }
    return "nullAudit", [(members[sides] == guessed).astype(int).tolist(), tried], says


def ceiling(rng: np.random.Generator) -> Call:
    guesses = whole(rng, 5, 0.5)
    right = int(rng.integers(guesses // 2, guesses)) or 1
    sure = float(rng.choice([0.8, 0.95, 0.99]))
    exact = {"delta": 0.0, "confidence": sure}
    says = {
        "estimate": max(0.0, math.log(right / (guesses - right))),
        "bound": ak.one_run(right, guesses, guesses, **exact).epsilon,
        "ceiling": ak.one_run(guesses, guesses, guesses, **exact).epsilon,
    }
    return "ceiling", [right, guesses, sure], says


def exact(rng: np.random.Generator) -> Call:
    guesses = whole(rng, 4.5, 0.5)
    right = int(guesses * rng.uniform(0.5, 1.0)) + int(rng.random() < 0.2)
    examples, delta = guesses * whole(rng, 3), float(10 ** rng.uniform(-9, -4))
    says = {
        "bound": ak.one_run(right, guesses, examples, delta=delta).epsilon,
        "pure": ak.one_run(right, guesses, examples, delta=0.0).epsilon,
    }
    return "exact", [right, guesses, examples * delta, 0.95], says


def tradeoff(rng: np.random.Generator) -> Call:
    epsilon, mu, alpha = (float(rng.uniform(0, most)) for most in (5, 4, 1))
    delta = float(rng.choice([0.0, *10 ** rng.uniform(-10, -0.5, 9)]))
    gaussian = ak.GaussianDP(mu)
    says = {
        "approx": ak.ApproxDP(epsilon, delta).beta(alpha),
        "gaussian": gaussian.beta(alpha),
        "epsilon": gaussian.epsilon(delta),
    }
    return "tradeoff", [epsilon, delta, mu, alpha], says


def shift(rng: np.random.Generator) -> Call:
    size, mu = float(rng.uniform(0, 4)), float(rng.uniform(0, 3))
    says = {
        "propensity": float(expit(size)),
        "paper": math.exp(-size),
        "sharp": float(sharp_keep([size], mu)[0]),
        "composition": 2 * float(ndtri(expit(size))),
    }
    return "shift", [size, mu], says


def one_run_answer(rng: np.random.Generator) -> Call:
    guesses = whole(rng, 4.5)
    right = int(rng.integers(0, guesses + 1)) if rng.random() < 0.3 else round(0.8 * guesses)
    examples = guesses * whole(rng, 2)
    at = settings(rng)
    bound = ak.one_run(right, guesses, examples, **at)
    best = ak.one_run(guesses, guesses, examples, **at).epsilon
    counts = {"correct": right, "guesses": guesses, "examples": examples}
    return answer(rng, "one run", counts, at, bound, best)


def two_worlds_answer(rng: np.random.Generator) -> Call:
    runs = whole(rng, 3.5), whole(rng, 3.5)
    errors = [int(n * rng.uniform(0, 0.4)) for n in runs]
    at = settings(rng)
    bound = ak.two_worlds(errors[0], runs[0], errors[1], runs[1], **at)
    best = ak.two_worlds(0, runs[0], 0, runs[1], **at).epsilon
    names = ("false_positives", "negatives", "false_negatives", "positives")
    numbers = errors[0], runs[0], errors[1], runs[1]
    return answer(rng, "two worlds", dict(zip(names, numbers, strict=True)), at, bound, best)


def settings(rng: np.random.Generator) -> dict[str, float]:
    deltas, sure = [0.0, 1e-5, 1e-4, 3.25e-7, 0.001], [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999999]
    return {"delta": float(rng.choice(deltas)), "confidence": float(rng.choice(sure))}


def answer(
    rng: np.random.Generator,
    kind: str,
    counts: dict[str, int],
    at: dict[str, float],
    bound: ak.Bound,
    best: float,
) -> Call:
    accuracy = round(float(rng.uniform(0.5, 0.99)), 2)
    power = would_find(bound, accuracy)
    says = {"epsilon": bound.epsilon, "ceiling": best, "power": power, "sentence": str(bound)}
    return "answer", [kind, {**counts, **at, "accuracy": accuracy}], says


KINDS = [confidence, null_audit, ceiling, exact, tradeoff, shift, one_run_answer, two_worlds_answer]


@pytest.fixture(scope="module")
def calls() -> dict[str, list[Call]]:
    """Return what is asked of the browser, with the package's answers."""
    rng = np.random.default_rng(7)
    return {kind.__name__: [kind(rng) for _ in range(POINTS)] for kind in KINDS}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page with every widget, as Sphinx makes it with the extension alone."""
    root = tmp_path_factory.mktemp("widgets")
    questions = "\n".join(f"{i}. Is it {i}?\n   - Then {i}.\n" for i in range(1, 4))
    stand = [f"```{{widget}} {name}\nThe caption of {name}.\n```\n" for name in SLIDERS]
    stand += ["```{widget} calculator\nCounts in.\n```\n"]
    stand += [f"```{{widget}} walk\n{questions}4. The end.\n```\n"]
    files = {
        "conf.py": f"import sys\nsys.path.insert(0, {str(Path(widgets.__file__).parent)!r})\n"
        'extensions = ["myst_parser", "widgets"]\n'
        f"html_static_path = [{str(FOLDER.parent)!r}]\nhtml_theme = 'basic'\nlanguage = 'en'\n",
        "index.md": "\n".join(["# Widgets", *stand, "```{toctree}\nother\n```\n"]),
        "other.md": "# Other\n\nNo widget.\n",
    }
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", ".", "site"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return root / "site" / "index.html"


@pytest.fixture(scope="module")
def worked(
    tools: None,  # noqa: ARG001 (skips where there is no browser)
    page: Path,
    calls: dict[str, list[Call]],
) -> dict[str, Any]:
    """What Chromium made of the page."""
    asked, report = page.with_name("calls.json"), page.with_name("report.json")
    asked.write_text(
        json.dumps([[name, values] for kind in calls.values() for name, values, _ in kind])
    )
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("widgets.mjs")), page, asked, report],
        env={**os.environ, "CHROMIUM": str(book_site.browser())},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    seen["results"] = iter(json.loads(seen["results"]))
    seen["results"] = {kind: [next(seen["results"]) for _ in calls[kind]] for kind in calls}
    return seen


def agree(found: Any, says: Any) -> bool:
    """Say whether two answers are one: numbers to 1e-9, and all else to the letter."""
    if isinstance(says, dict):
        return found.keys() >= says.keys() and all(agree(found[k], v) for k, v in says.items())
    if isinstance(says, float):
        return math.isclose(float(found), says, rel_tol=CLOSE, abs_tol=CLOSE)
    return bool(found == says)


@in_the_browser
@pytest.mark.parametrize("kind", [kind.__name__ for kind in KINDS])
def test_the_calculator_says_what_the_package_says(kind, calls, worked):
    found = worked["results"][kind]
    assert len(found) >= 50
    wrong = [
        (call, one) for call, one in zip(calls[kind], found, strict=True) if not agree(one, call[2])
    ]
    assert wrong == []


@in_the_browser
def test_a_widget_is_quiet_and_asks_nothing_of_a_network(worked):
    assert worked["errors"] == []
    assert [url for url in worked["requests"] if not url.startswith("file:")] == []


@in_the_browser
@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_moves_by_keys_and_the_sentence_follows(name, worked):
    seen = worked["widgets"][name]
    assert seen["value"] != seen["moved"]
    assert seen["after"] != seen["before"] or name == "null_audits"  # which has not begun
    assert seen["picture"] == widgets.WIDGETS[name]
    assert float(seen["width"]) > 200


@in_the_browser
def test_nothing_is_audited_again_by_a_key(worked):
    nulls = worked["nulls"]
    assert nulls["dots"] == 3 * 200
    assert nulls["first"].startswith("There is no leak. Of 200 audits")
    assert nulls["first"] != nulls["second"]


@in_the_browser
def test_the_walk_asks_one_question_at_a_time(worked):
    walk = worked["walk"]
    assert len(walk["atFirst"]) == len(walk["again"]) == 1
    assert "Is it 1?" in walk["atFirst"][0]
    assert "Then" not in "".join(walk["atFirst"])
    assert len(walk["afterYes"]) == 3
    assert "Then 3." in walk["afterYes"][-1]
    assert walk["focus"] == "Start again"
    assert walk["heard"] == "Question 1 of 3."


@in_the_browser
def test_the_calculator_follows_names_a_fault_and_remembers(worked):
    said = worked["calculator"]
    assert said["first"][0] == str(ak.one_run(90, 100, 1000))
    assert said["worlds"][0] == str(ak.two_worlds(10, 1000, 20, 1000))
    assert said["fault"] == ["“False positives” is at most “Runs without the canary”."]
    assert said["changed"][0] == str(ak.two_worlds(3, 1000, 20, 1000))
    assert said["reloaded"] == said["changed"]


@in_the_browser
def test_a_widget_shuts_nobody_out(worked):
    # of the bare page: contrast is that of the theme, which the whole site is measured in
    assert [one for one in worked["violations"] if one[0] != "color-contrast"] == []
    assert worked["phone"] <= book_site.PHONE


@in_the_browser
def test_without_scripts_a_widget_is_told_and_the_walk_can_be_read(worked):
    told = "\n".join(worked["withoutScript"])
    names = [name for name in widgets.WIDGETS if name != "walk"]
    assert [name for name in names if widgets.WIDGETS[name] not in told] == []
    assert all(f"Then {i}." in told for i in (1, 2, 3))


@pytest.mark.site
@pytest.mark.xdist_group("widgets")
def test_a_page_loads_the_files_of_its_own_widgets_and_no_other(page):
    loaded = re.findall(r'src="_static/widgets/(\w+)\.js', page.read_text(encoding="utf-8"))
    assert loaded[:2] == list(widgets.SHARED)
    assert sorted(loaded[2:]) == sorted(widgets.WIDGETS)
    assert "widgets" not in page.with_name("other.html").read_text().partition("<body")[0]


def test_every_widget_has_a_small_file_and_every_file_is_one():
    files = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.js")}
    assert sorted(files) == sorted([*widgets.WIDGETS, *widgets.SHARED])
    lines = {name: text.count("\n") for name, text in files.items()}
    assert max(lines[name] for name in widgets.WIDGETS) <= 150
    assert "://" not in "".join(files.values()).replace("http://www.w3.org/2000/svg", "")


def test_the_colours_are_the_palette():
    css = (FOLDER / "widgets.css").read_text(encoding="utf-8")
    stated = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", css))
    assert stated == {role.split()[0]: look["color"] for role, look in PALETTE.items()}


def test_the_walk_is_that_of_the_chapter():
    chapter = (book_site.ROOT / "chapters" / "five_audits.md").read_text(encoding="utf-8")
    ladder = ast.literal_eval(re.search(r"^ladder = (\[.*?^\])", chapter, re.S | re.M)[1])
    start = (book_site.ROOT / "book" / "start.md").read_text(encoding="utf-8")
    items = re.findall(r"^\d\. (.*)\n   - \[([^\]]+)\]\([^)]+\): (.*)\.$", start, re.M)
    told = [tuple(part.replace("\n", " ").lower() for part in step) for step in ladder]
    assert [tuple(part.lower() for part in item) for item in items] == told


def test_every_widget_stands_in_the_calculator_or_at_the_start():
    pages = [
        (book_site.ROOT / "book" / f"{name}.md").read_text() for name in ("calculator", "start")
    ]
    placed = [re.findall(r"^```\{widget\} (\w+)$", text, re.M) for text in pages]
    assert sorted({*placed[0], *placed[1]}) == sorted(widgets.WIDGETS)
    assert placed[0][0] == "calculator"
    assert set(SLIDERS) < set(placed[0])
