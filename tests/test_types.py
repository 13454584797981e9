"""What a type checker, `help` and `dir` tell those who write against the package."""

import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import auditkit
from auditkit import Bound, audit_scores, one_run, two_worlds

ROOT = Path(__file__).parents[1]
# a line that ends in "# wrong: CODE" has to be refused for that reason, and no other line at all
SNIPPETS = """
import numpy as np
import auditkit
from auditkit import Bound, Fixed, audit_scores, dp_sgd_epsilon, one_run, one_run_fdp, toss_coins
from auditkit import observational_label, two_worlds, zero_run

scores, members = np.arange(9.0), np.arange(9) % 2
epsilon: float = one_run(60, 100, 1000).epsilon
twice: float = 2.0 * one_run_fdp(60, 100, 1000, family="pure").epsilon
between: float = two_worlds(1, 100, 2, 100).epsilon
scored: float = audit_scores(scores, members, method="one-run").epsilon
many = one_run(np.arange(9), 100, 1000).epsilon.max()
label: Bound[float] = observational_label(scores, members)
shown: float = zero_run(members, members, np.full(9, 0.5), delta=1e-5).epsilon
bounds: list[Bound[float]] = [one_run(n, 100, 1000) for n in (60, 70)]
best: Bound[float] = max(bounds)
smaller: bool = bounds[0] < bounds[1]
text: str = best.to_json()
best.report("report.html", title="A model")
one_run(60, 100, 1000, method="exakt")  # wrong: call-overload
audit_scores(scores, members, method="one_run")  # wrong: arg-type
audit_scores(scores, members, method="two-worlds", family="gauss")  # wrong: arg-type
run = {"noise_multiplier": 1.0, "sampling_rate": 1.0, "delta": 1e-5}
dp_sgd_epsilon(**run, steps=1, adjacency="remove")  # wrong: arg-type
coins = toss_coins(range(9), method="one-run", threshold=Fixed(guesses=0.5))
plan: float = coins.plan["delta"]
fitted = auditkit.attacks.propensity.fit_propensity(np.ones((9, 2)), members, rng=0)
sgd = auditkit.mechanisms.dp_sgd.audit_sgd
scored_by = auditkit.attacks.model_scores.score_model
auditkit.atacks  # wrong: attr-defined
"""


def test_a_checker_understands_what_users_write(tmp_path):
    path = tmp_path / "snippets.py"
    path.write_text(SNIPPETS, encoding="utf-8")
    # with the settings of the package itself, so that what `make types` has read is known
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = dict(re.findall(r"snippets\.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout))
    lines = enumerate(SNIPPETS.splitlines(), start=1)
    wanted = {str(n): line.split("# wrong: ")[1] for n, line in lines if "# wrong: " in line}
    assert found == wanted, done.stdout + done.stderr


def test_rooms_are_found():
    rooms = {"accounting", "attacks", "bounds", "datasets", "evidence", "figures", "mechanisms"}
    assert rooms | {"loops", "models", "thresholds"} <= set(dir(auditkit))
    for room in ("attacks", "bounds", "mechanisms", "models"):
        there = {path.stem for path in (ROOT / "auditkit" / room).glob("*.py")} - {"__init__"}
        assert there <= set(dir(getattr(auditkit, room)))
    assert inspect.ismodule(auditkit.attacks.membership)


@pytest.mark.parametrize(
    "name", [n for n in auditkit.__all__ if inspect.isfunction(getattr(auditkit, n))]
)
def test_help_opens_with_a_signature_that_can_be_read(name):
    text = pydoc.plain(pydoc.render_doc(getattr(auditkit, name)))
    signature = text.split("\n")[2]
    assert "_SupportsArray" not in signature
    assert len(signature) < 700


def bound(epsilon, **other):
    stated = {"delta": 1e-5, "confidence": 0.95, "claim": "lower bound", "adjacency": "label"}
    return Bound(epsilon, method="a test", **(stated | other))


def test_bounds_are_compared_where_they_say_the_same_kind_of_thing():
    small, large = bound(0.5), bound(1.5)
    assert small < large
    assert small <= large
    assert large > small
    assert large >= large
    assert sorted([large, small]) == [small, large]
    assert max(small, large) is large
    for name, value in (
        ("delta", 0.0),
        ("claim", "estimate"),
        ("adjacency", "substitute"),
        ("confidence", 0.9),
    ):
        with pytest.raises(ValueError, match=f"must agree in {name} to be compared"):
            assert small < bound(1.5, **{name: value})
    with pytest.raises(ValueError, match="compare their epsilon"):
        assert bound(np.ones(2)) < bound(np.ones(2))
    with pytest.raises(TypeError):
        assert small < 1.5


def test_equal_bounds_are_equal():
    assert one_run(60, 100, 1000) == one_run(60, 100, 1000) != one_run(61, 100, 1000)
    assert one_run([60, 70], 100, 1000) == one_run([60, 70], 100, 1000)
    assert two_worlds(1, 100, 2, 100) != one_run(60, 100, 1000)
    assert bound(1.0) != bound(1.0, details={"a": np.ones(2)})
    assert bound(1.0) != 1.0
    assert len({one_run(60, 100, 1000), one_run(60, 100, 1000)}) == 1
    scores, members = np.arange(200.0), np.arange(200) % 2
    assert audit_scores(scores, members, method="two-worlds") == audit_scores(
        scores, members, method="two-worlds"
    )
