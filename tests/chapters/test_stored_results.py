"""What is stored can be trusted: nobody touched it, and it comes out again."""

import pkgutil
import re
import shutil

import numpy as np
import pytest
from experiments import EXPERIMENTS, NOT_SHIPPED

from auditkit.experiment import home, recompute, stored

RESULTS = home() / "data" / "results"
STORED = sorted(path.stem for path in RESULTS.glob("*.json"))
# Timings depend on the machine and on what else it does: they cannot come out again.
TIMINGS = {"speed"}


@pytest.mark.parametrize("name", STORED)
def test_stored_results_are_what_the_experiment_wrote(name):
    assert stored(name).rows


def test_every_stored_result_has_its_function_and_every_function_its_result():
    assert set(STORED) - TIMINGS == set(EXPERIMENTS)
    assert {path.stem for path in RESULTS.glob("*.csv")} == set(STORED)


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_stored_results_are_of_the_paper_profile_and_of_the_registered_function(name):
    provenance = stored(name).provenance
    benchmark = EXPERIMENTS[name].startswith("benchmarks.")  # which has one scale
    assert benchmark or provenance["profile"] == "paper"
    assert provenance["function"] == EXPERIMENTS[name]


@pytest.mark.parametrize("name", sorted(EXPERIMENTS.keys() - NOT_SHIPPED))
def test_stored_cells_come_out_again(name):
    seed = int(np.random.SeedSequence().generate_state(1)[0])  # other cells in every run
    try:
        recompute(name, pkgutil.resolve_name(EXPERIMENTS[name]), cells=2, rng=seed)
    except AssertionError as error:
        error.add_note(f"the cells were chosen by rng={seed}")
        raise


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_a_number_changed_by_hand_is_found(name, tmp_path):
    for kind in ("csv", "json"):
        shutil.copy(RESULTS / f"{name}.{kind}", tmp_path)
    assert stored(name, store=tmp_path).rows == stored(name).rows
    table = tmp_path / f"{name}.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("1", "2", 1), encoding="utf-8")
    with pytest.raises(ValueError, match="is not what the experiment stored"):
        stored(name, store=tmp_path)


def test_every_lower_bound_of_the_coverage_study_keeps_its_level():
    rows = [row for row in stored("validity").rows if row["claim"] == "lower bound"]
    bounds = [row for row in rows if row["broken"] is None]
    assert len(bounds) > 100
    assert not [row for row in bounds if row["low"] > row["level"]]
    assert min(row["simulations"] for row in bounds) >= 10_000


def test_the_coverage_study_sees_a_bound_that_breaks_its_level():
    rows = {(row["audit"], row["setting"]): row for row in stored("validity").rows}
    for where in (
        ("audit_scores, Sweep", "one-run, null"),
        ("two_worlds, not Gaussian", "randomised response, ε = 3"),
        ("zero_run, no correction", "null, δ = 0"),
    ):
        assert rows[where]["low"] > rows[where]["level"]


@pytest.mark.parametrize("name", STORED)
def test_provenance_names_no_folder_of_the_machine_that_ran(name):
    text = (RESULTS / f"{name}.json").read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|work|mnt|Users)/", text)
