"""The package as a whole: light to import, layered, and documented name by name."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import auditkit

ROOT = Path(__file__).parents[1]
HEAVY = ["torch", "sklearn", "pandas", "matplotlib", "seaborn", "numba", "dp_accounting"]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    return min(float(run(code)) for _ in range(3))


def test_importing_the_package_is_quick():
    assert seconds("import auditkit") < max(0.3, 1.3 * seconds("import numpy, scipy.stats"))


def test_importing_the_package_loads_nothing_heavy():
    assert run(f"import auditkit, sys; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


@pytest.mark.parametrize("room", ["evidence", "thresholds", "coins", "bounds"])
def test_the_statistics_import_numpy_scipy_and_numba_only(room):
    graph = grimp.build_graph("auditkit", include_external_packages=True)
    here = {name for name in graph.modules if name.startswith(f"auditkit.{room}")}
    imported = set().union(*(graph.find_modules_directly_imported_by(name) for name in here))
    outside = {name for name in imported if not name.startswith("auditkit")}
    assert outside - set(sys.stdlib_module_names) <= {"numpy", "scipy", "numba", "lazy_loader"}


def test_every_room_says_what_belongs_there():
    for path in sorted((ROOT / "auditkit").iterdir()):
        if path.suffix == ".py" or (path / "__init__.py").exists():
            source = path if path.is_file() else path / "__init__.py"
            assert ast.get_docstring(ast.parse(source.read_text())), source


NAMES = [
    name
    for name in auditkit.__all__
    if name != "__version__" and not inspect.ismodule(getattr(auditkit, name))
]


def test_the_package_knows_its_version():
    assert f'version = "{auditkit.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_data_and_models_are_at_hand_by_name():
    assert auditkit.datasets.load.__name__ == "load"
    assert inspect.ismodule(auditkit.models)


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_is_documented_with_an_example(name):
    thing = getattr(auditkit, name)
    assert inspect.isclass(thing) or inspect.isfunction(thing)
    doc = inspect.getdoc(thing)
    assert re.search(r"^Examples\n-+\n", doc, re.MULTILINE), f"{name} has no example"
    if inspect.isfunction(thing):
        section = re.search(r"^Parameters\n-+\n(.*?)\n\n?[A-Z]\w+\n-+", doc, re.M | re.S)
        documented = section.group(1)
        for argument in inspect.signature(thing).parameters:
            assert re.search(rf"\b{argument}\b", documented), f"{name} says nothing of {argument}"


def defaults(argument: str) -> dict[str, object]:
    """Return what each public function takes for an argument, where it takes something."""
    found = {}
    for name in NAMES:
        taken = inspect.signature(getattr(auditkit, name)).parameters.get(argument)
        if taken is not None and taken.default is not inspect.Parameter.empty:
            found[name] = taken.default
    return found


def test_delta_has_one_default_but_for_panoramia():
    assert defaults("delta") == {
        "SequentialAudit": 1e-5,
        "audit_scores": 1e-5,
        "observational_label": 1e-5,
        "one_run": 1e-5,
        "one_run_fdp": 1e-5,
        "panoramia": 0.0,
        "toss_coins": 1e-5,
        "two_worlds": 1e-5,
        "zero_run": 1e-5,
        "zero_run_bootstrap": 1e-5,
    }


def test_no_delta_but_one_is_the_default_of_anything_in_the_package():
    pattern = re.compile(r"\bdelta: float(?: \| None)? = ([^,\n]+)")
    found = {
        (str(path.relative_to(ROOT / "auditkit")), value)
        for path in (ROOT / "auditkit").rglob("*.py")
        for value in pattern.findall(path.read_text())
    }
    odd = {place for place, value in found if value not in ("1e-5", "None", "...")}
    # both are PANORAMIA's; dots are of an overload, None of the command line, which asks the method
    assert odd == {"bounds/panoramia.py", "bounds/panoramia_games.py"}


def test_nothing_is_assumed_between_two_worlds_unless_asked_for():
    assert defaults("method")["two_worlds"] == "clopper-pearson"
    assert defaults("family")["audit_scores"] is None


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_is_on_the_reference_page(name):
    assert re.search(rf"\bauditkit\.{name}\b", (ROOT / "book" / "reference.md").read_text())
