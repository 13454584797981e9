"""One-run bounds against the packages that compute them, in an environment of their own.

The peers are installed from PyPI, pinned by peers-requirements.txt, into `.venv-peers` beside this
file. Each one runs in a process of its own, is called the way its users call it, and is timed
inside that process, without its imports. A peer that does not install or run has a row that says
so, and no ratio.

`opake` bounds by another theorem, on order statistics (Xiang et al. 2025). Its f-DP numbers are
therefore not those of the other peers: the column on agreement shows by how much. In its (ε, δ)
bound a δ below 1/(2m) is rounded away, so that it computes what the row on (ε, 0) compares.
"""

import json
import math
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from auditkit import one_run, one_run_fdp
from auditkit.bounds.result import Bound

HERE = Path(__file__).parent
ENVIRONMENT = HERE / ".venv-peers"
PINS = HERE / "peers-requirements.txt"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

EXAMPLES, DELTA, CONFIDENCE = 10_000, 1e-5, 0.95
AROUND = [9_000, 8_990, 9_010, 8_950, 9_050]  # counts of right guesses that the peers are asked for
ARRAY = np.random.default_rng(0).integers(8_900, 9_101, 4_000)  # and those that we are

# Each script fills `found` with {bound: [[correct, ε], ...]} and `seconds` with seconds a bound.
PREAMBLE = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
m, delta, level, counts = json.loads(sys.argv[1])
found, seconds = {}, {}

def clock(name, function, counts):
    function(counts[0])  # whatever is loaded or compiled at first is not counted
    again(name, function, counts)

def again(name, function, counts):
    start = time.perf_counter()
    found[name] = [[c, float(function(c))] for c in counts]
    seconds[name] = (time.perf_counter() - start) / len(counts)
"""
SCRIPTS = {
    "jax-privacy": """
import numpy as np
from jax_privacy import auditing

everything = auditing.Explicit(0.0)

def auditor(c):
    return auditing.CanaryScoreAuditor(np.ones(c), np.ones(m - c))

clock("f-DP", lambda c: auditor(c).epsilon_one_run_fdp(
    level, delta, threshold_strategy=everything), counts)
clock("(ε, δ)", lambda c: auditor(c).epsilon_one_run(
    level, delta, threshold_strategy=everything), counts)
""",
    "opake-auditing": """
import numpy as np
from opake import auditing
from opake.random import key

flip = auditing.coin_flip(range(m), num_canaries=m, key=key(0))

def estimate(c):
    scores = np.isin(flip.canary_indices, flip.in_indices).astype(float)
    scores[c:] = 1.0 - scores[c:]
    named = auditing.canary_scores(scores, canary_indices=flip.canary_indices)
    return auditing.one_run(named, coin_flip=flip)

estimates = {c: estimate(c) for c in counts}
for name, some in (("(ε, δ)", delta), ("(ε, 0)", 0.0)):
    clock(name, lambda c: estimates[c].eps_delta().epsilon_at(
        delta=some, significance=level), counts)
again("f-DP", lambda c: estimates[c].gdp().epsilon_at(
    delta=delta, significance=level), counts[:1])
""",
    "privacyguard-platform": """
from privacy_guard.analysis.mia.fdp_analysis_node import FDPAnalysisNode

again("f-DP", lambda c: FDPAnalysisNode(
    m=m, c=c, c_cap=m, threshold=level, delta=delta).run_analysis().eps, counts[:1])
""",
}


def measure() -> list[dict[str, Any]]:
    """Time each peer's bounds at m = r = 10,000 and c about 9,000, and ours on an array."""
    ours = {
        "f-DP": _ours(one_run_fdp, DELTA),
        "(ε, δ)": _ours(one_run, DELTA),
        "(ε, 0)": _ours(one_run, 0.0),
    }
    rows = []
    for peer, script in SCRIPTS.items():
        answer = _ask(peer, script)
        names = answer["seconds"] or ["f-DP"]
        rows += [_row(name, peer, answer, *ours[name]) for name in names]
    return rows


def _ours(bound: Callable[..., Bound], delta: float) -> tuple[float, dict[int, float]]:
    """Return our seconds a bound on the array, and ε of each count the peers are asked for."""

    def call(counts: Any) -> Any:
        return bound(counts, EXAMPLES, EXAMPLES, delta=delta, confidence=CONFIDENCE).epsilon

    call(ARRAY)  # compile, or load what was compiled
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call(ARRAY)
        times.append(time.perf_counter() - start)
    return min(times) / len(ARRAY), dict(zip(AROUND, call(np.array(AROUND)), strict=True))


def _row(
    name: str, peer: str, answer: dict[str, Any], seconds: float, ours: dict[int, float]
) -> dict[str, Any]:
    baseline = answer["seconds"].get(name, math.nan)
    differences = [
        float(abs(ours[c] / theirs - 1.0)) for c, theirs in answer["found"].get(name, [])
    ]
    return {
        "what": f"{name} bound, m = r = 10,000, c about 9,000, an array of {len(ARRAY)}",
        "baseline": f"{_pinned(peer)}{answer['trouble']}",
        "seconds": seconds,
        "baseline_seconds": baseline,
        "ratio": baseline / seconds,
        "agreement": max(differences, default=math.nan),
    }


def _ask(peer: str, script: str) -> dict[str, Any]:
    """Install one peer and run its script; a failure comes back as `trouble`."""
    problem = _install(peer)
    if not problem:
        asked = json.dumps([EXAMPLES, DELTA, 1.0 - CONFIDENCE, AROUND])
        tell = "\nprint(json.dumps([found, seconds]))"
        done = run([str(PYTHON), "-c", PREAMBLE + script + tell, asked])
        if done.returncode == 0:
            found, seconds = json.loads(done.stdout.splitlines()[-1])
            return {"found": found, "seconds": seconds, "trouble": ""}
        problem = "does not run"
        complain(peer, done)
    return {"found": {}, "seconds": {}, "trouble": f" ({problem})"}


def _install(peer: str) -> str:
    """Install one peer if it is not there; return what went wrong, if anything did."""
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    name, version = _pinned(peer).split()
    there = f"import importlib.metadata as m; assert m.version({name!r}) == {version!r}"
    if run([str(PYTHON), "-c", there]).returncode == 0:
        return ""
    # one at a time, so that a peer that fails does not take the others with it
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--constraint", str(PINS), name]
    done = run(pip)
    if done.returncode == 0:
        return ""
    complain(peer, done)
    return "does not install"


def _pinned(peer: str) -> str:
    pins = dict(
        line.split("==") for line in PINS.read_text().splitlines() if not line.startswith("#")
    )
    return f"{peer} {pins[peer]}"


def run(command: list[str], *, says: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command, which may read what is said to it."""
    try:
        return subprocess.run(
            command, input=says, capture_output=True, text=True, timeout=1_800, check=False
        )
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(command, 1, "", f"took over {late.timeout:g} seconds")


def complain(peer: str, done: subprocess.CompletedProcess[str]) -> None:
    """Say on the terminal how a command failed."""
    print(f"{peer}: {done.stderr.strip()[-2_000:]}", file=sys.stderr)


if __name__ == "__main__":
    for row in measure():
        print(row)
