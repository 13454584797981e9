"""Without torch a file with features is audited."""

import json
import subprocess
import sys

import numpy as np
import pytest

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "sklearn", "seaborn", "pyarrow"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import importlib.util
known = importlib.util.find_spec
def find_spec(name, package=None):
    return None if name == "torch" else known(name, package)
importlib.util.find_spec = find_spec
from auditkit.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("membership", ["randomised", "observed"])
def test_a_plain_install_audits_features(tmp_path, membership):
    rng = np.random.default_rng(0)
    members = rng.integers(2, size=600)
    rows = zip(rng.normal(3.0 * members), members, rng.normal(size=600), strict=True)
    path, report = tmp_path / "scores.csv", tmp_path / "report.html"
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(["score,member,feature age", *lines]), encoding="utf-8")
    asked = ["audit", str(path), "--membership", membership, "--json", "--report", str(report)]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *asked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["diagnostics"]["shift_p_value"] > 1e-3
    assert report.exists()
