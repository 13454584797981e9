"""One source of dependencies: the lock and the conda environment say what pyproject.toml says."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK_LINES = (ROOT / "requirements.lock").read_text().split()
LOCK = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in LOCK_LINES}
LOCKED_EXTRAS = ("chapters", "book", "dev")  # not the encoders: they are large, and optional
EXTRAS = [PROJECT["optional-dependencies"][extra] for extra in LOCKED_EXTRAS]
DIRECT = [Requirement(text) for texts in (PROJECT["dependencies"], *EXTRAS) for text in texts]


def test_the_lock_holds_exact_public_versions_and_no_addresses():
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in LOCK_LINES)
    assert "torch==2.13.0" in LOCK_LINES


@pytest.mark.parametrize("requirement", DIRECT, ids=str)
def test_the_lock_satisfies_each_dependency(requirement):
    assert requirement.specifier.contains(LOCK[canonicalize_name(requirement.name)])


def test_nothing_is_locked_that_nobody_needs():
    needed, waiting = set(), {canonicalize_name(r.name): r.extras for r in DIRECT}
    waiting[canonicalize_name("setuptools")] = set()
    while waiting:
        name, extras = waiting.popitem()
        needed.add(name)
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            wanted = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in (*extras, "")
            )
            child = canonicalize_name(requirement.name)
            if wanted and child not in needed and child in LOCK:
                waiting[child] = requirement.extras
    assert set(LOCK) == needed


def test_conda_installs_the_same_lock_with_its_own_cpu_build_of_torch():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    conda = dict(entry.split("=") for entry in entries if isinstance(entry, str) and "=" in entry)
    pip = next(entry["pip"] for entry in entries if isinstance(entry, dict))
    assert pip == ["--requirement requirements.lock", "--editable ."]
    assert conda["pytorch-cpu"] == LOCK["torch"]
    assert conda["jupytext"] == LOCK["jupytext"]
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(conda["python"])


def test_the_experiments_are_found_from_any_folder(tmp_path):
    code = "import experiments; print(experiments.__path__[0])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "`make` writes auditkit-chapters.pth when it installs"
    assert Path(done.stdout.strip()) == ROOT / "chapters" / "experiments"
