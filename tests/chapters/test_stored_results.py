"""Stored results can be trusted: untouched, of today's code, and they come out again."""

import csv
import hashlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from experiments import studies

from auditkit.experiment import about, home, stored
from auditkit.experiment.provenance import compare

RESULTS = home() / "data" / "results"
STORED = sorted(path.stem for path in RESULTS.glob("*.json"))
STUDIES = studies()
# a study takes part in a quarter of the commits
SHARE = 4
ALONE = """
from experiments import studies
study = studies()[{name!r}]
study.recompute(*study.affordable()[{place}])
"""


def commit() -> str:
    """Return what decides which cells are run again: one commit passes or fails."""
    command = ["git", "rev-parse", "HEAD"]
    said = subprocess.run(command, cwd=home(), capture_output=True, text=True, check=False)
    return said.stdout.strip()


def chance(name: str) -> int:
    return int(hashlib.sha256(f"{commit()} {name}".encode()).hexdigest(), 16)


def with_cells(name):
    """Return the cells of a study that can be run again, each with what is stored of it."""
    return STUDIES[name].affordable()


def test_every_stored_result_has_its_study_and_every_study_its_result_or_is_under_way():
    under_way = {path.name.partition(".")[0] for path in RESULTS.glob("*.jsonl")}
    waiting = {name for name, study in STUDIES.items() if under_way & set(study.sources)}
    assert set(STORED) <= set(STUDIES) <= set(STORED) | under_way | waiting
    assert {path.stem for path in RESULTS.glob("*.csv")} == set(STORED)


@pytest.mark.parametrize("name", STORED)
def test_stored_results_are_of_todays_code_and_of_the_papers_scale(name):
    assert STUDIES[name].stale() == []
    one_scale = STUDIES[name].live == STUDIES[name].paper
    assert one_scale or about(name)["profile"] == "paper"


@pytest.mark.parametrize("name", STORED)
def test_a_study_has_a_cell_that_can_be_run_again(name):
    assert STUDIES[name].needs or with_cells(name)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in STORED
        if (STUDIES[name].reduced or not STUDIES[name].needs) and chance(name) % SHARE == 0
    ],
)
def test_a_stored_cell_comes_out_again(name):
    cells = with_cells(name)
    place = chance(f"cell of {name}") % len(cells)
    try:
        STUDIES[name].recompute(*cells[place])
    except AssertionError:
        # After thousands of other tests a last digit may be another one, from which thinning draws
        # anew and trees branch off: what counts is a process like the one that stored it.
        command = [sys.executable, "-c", ALONE.format(name=name, place=place)]
        again = subprocess.run(
            command, cwd=home() / "chapters", capture_output=True, text=True, check=False
        )
        assert again.returncode == 0, again.stderr


def found(rows, others, tolerance, cell):
    """Say whether a comparison notices that other rows stand in place of these."""
    try:
        compare(rows, others, tolerance, apart=tuple(cell))
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("name", STORED)
def test_a_column_set_to_zero_and_the_rows_of_another_cell_are_found(name):
    study, cells = STUDIES[name], with_cells(name)[:8]
    for place, (cell, rows) in enumerate(cells):
        assert not found(rows, rows, study.tolerance, cell)
        present = rows.dropna(axis=1, how="all").select_dtypes("number")
        for column in present.columns.difference([*cell]):
            values = present[column]
            if "seconds" not in column and values.abs().max() > 1e-9:
                assert found(rows, rows.assign(**{column: 0 * values}), study.tolerance, cell)
        other = cells[place - 1][1]
        # but for rounding
        assert found(rows, other, study.tolerance, cell) == found(rows, other, 1e-9, cell)


@pytest.mark.parametrize("name", STORED)
def test_a_number_changed_by_hand_is_found(name, tmp_path):
    for kind in ("csv", "json"):
        shutil.copy(RESULTS / f"{name}.{kind}", tmp_path)
    assert stored(name, store=tmp_path).equals(stored(name))
    table = tmp_path / f"{name}.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("1", "2", 1), encoding="utf-8")
    with pytest.raises(ValueError, match="is not what the experiment stored"):
        stored(name, store=tmp_path)


def test_what_was_not_run_again_keeps_its_numbers_to_the_digit():
    """Results of the last release, but for those that have been run again since."""
    with (RESULTS.parent / "released.csv").open(newline="") as file:
        released = {row["id"]: row["csv_sha256"] for row in csv.DictReader(file)}
    assert len(released) > 0
    for name, digest in released.items():
        assert about(name)["csv_sha256"] == digest, name


def test_every_lower_bound_of_the_coverage_study_keeps_its_level():
    bounds = stored("validity").query("claim == 'lower bound' and broken.isna()")
    assert len(bounds) > 100
    assert (bounds["low"] <= bounds["level"]).all()
    assert bounds["simulations"].min() >= 10_000


def test_the_coverage_study_sees_a_bound_that_breaks_its_level():
    rows = stored("validity").set_index(["audit", "setting"])
    for where in (
        ("audit_scores, Sweep", "one-run, null"),
        ("two_worlds, not Gaussian", "randomised response, ε = 3"),
        ("zero_run, no correction", "null, δ = 0"),
    ):
        assert np.all(rows.loc[where, "low"] > rows.loc[where, "level"])


def test_the_default_rule_loses_by_what_the_page_on_validity_says():
    rules = stored("threshold-rules")
    best = rules.groupby(["game", "mu", "examples", "ties"])["median"].transform("max")
    share = (rules["median"] / best)[best > 0]
    means = share.groupby([rules["game"], rules["ties"], rules["rule"]]).mean().unstack("rule")
    ahead = means["Split(0.2)"] - means["Bonferroni(10)"]
    assert ahead["one-run-fdp"].between(0.08, 0.13).all()
    for game in ("two-worlds", "two-worlds, Gaussian"):
        assert 0.17 < ahead[game, True] < 0.27
    assert (ahead["one-run"] < 0).all()


@pytest.mark.parametrize("name", STORED)
def test_provenance_names_no_folder_of_the_machine_that_ran(name):
    text = (RESULTS / f"{name}.json").read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|work|mnt|Users)/", text)
