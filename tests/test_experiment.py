"""Runs survive being killed, stored numbers survive being read, and edited ones do not."""

# ruff: noqa: ARG001, ARG005 - a cell's function takes its parameters and rng, used or not
import importlib
import json
import linecache
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit import experiment as package_experiment
from auditkit import study as package_study
from auditkit.datasets.store import write_whole
from auditkit.experiment import (
    STUDIES,
    about,
    experiment,
    home,
    profile,
    provenance,
    stored,
    study,
)
from auditkit.experiment.code import closure
from auditkit.experiment.journal import Journal, plain
from auditkit.experiment.provenance import compare, frame_of, read_table

PROVENANCE = sys.modules["auditkit.experiment.provenance"]


def noise(sigma, repeat, rng):
    return {"value": sigma * rng.normal(), "sign": "up" if repeat else "down"}


GRID = {"sigma": [0.5, 1.0, 2.0], "repeat": [0, 1]}


def untimed(table):
    return table.drop(columns="seconds")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.delenv("AUDITKIT_PROFILE", raising=False)


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.setenv("AUDITKIT_PROFILE", "paper")


# --- the profile -------------------------------------------------------------------------------


def test_quick_is_the_profile_unless_the_environment_says_paper(monkeypatch):
    assert profile() == "quick"
    for value in ("quick", "paper"):
        monkeypatch.setenv("AUDITKIT_PROFILE", value)
        assert profile() == value


@pytest.mark.parametrize("value", ["", "Paper", "fast", "1"])
def test_another_profile_is_an_error_that_names_the_variable(monkeypatch, value):
    monkeypatch.setenv("AUDITKIT_PROFILE", value)
    with pytest.raises(ValueError, match="AUDITKIT_PROFILE must be one of 'quick', 'paper'"):
        profile()


# --- the grid and its random streams -------------------------------------------------------------


def test_the_package_offers_the_function_and_not_the_module():
    assert package_experiment is experiment
    assert package_study is study


def test_rows_come_in_the_order_of_the_grid_with_their_seconds(tmp_path):
    results = experiment("E-1", noise, GRID, store=tmp_path)
    assert list(zip(results["sigma"], results["repeat"], strict=True)) == [
        (s, r) for s in GRID["sigma"] for r in GRID["repeat"]
    ]
    assert list(results) == ["sigma", "repeat", "value", "sign", "seconds"]
    assert results["seconds"].between(0, 1).all()
    assert [column.dtype.kind for _, column in results.items()][:3] == ["f", "i", "f"]


def test_a_cell_draws_the_same_numbers_in_any_order_and_in_any_company(tmp_path):
    forth = experiment("E-1", noise, GRID, store=tmp_path / "a")
    cells = [{"repeat": r, "sigma": s} for r in (1, 0) for s in (2.0, 0.5)]
    back = experiment("E-1", noise, cells, store=tmp_path / "b")
    both = forth.merge(back, on=["sigma", "repeat"])
    assert len(both) == 4
    assert (both["value_x"] == both["value_y"]).all()


def test_one_and_one_point_zero_are_the_same_cell(tmp_path):
    whole = experiment("E-1", noise, {"sigma": [1, 2], "repeat": [0]}, store=tmp_path / "a")
    mixed = experiment("E-1", noise, {"sigma": [1, 2, 2.5], "repeat": [0]}, store=tmp_path / "b")
    assert whole["value"].tolist() == mixed["value"].tolist()[:2]


def test_streams_differ_between_cells_and_between_experiments(tmp_path):
    grid = {"repeat": range(100), "sigma": [1.0]}
    one = {*experiment("E-1", noise, grid, store=tmp_path)["value"]}
    two = {*experiment("E-2", noise, grid, store=tmp_path)["value"]}
    assert len(one | two) == 200


def test_parallel_work_gives_what_one_worker_gives(tmp_path):
    alone = experiment("E-1", noise, GRID, store=tmp_path / "a")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        threads = experiment("E-1", noise, GRID, store=tmp_path / "b")
    processes = experiment("E-1", noise, GRID, store=tmp_path / "c", n_jobs=2)
    assert untimed(alone).equals(untimed(threads))
    assert untimed(alone).equals(untimed(processes))


def test_a_backend_that_hands_back_lists_only_is_served_round_by_round(tmp_path, monkeypatch):
    # Ray's backend is one; this stands in for it without processes
    class Lists(joblib._parallel_backends.ThreadingBackend):
        supports_return_generator = False

    joblib.register_parallel_backend("lists", Lists)
    appended = []
    append = Journal.append
    monkeypatch.setattr(
        Journal, "append", lambda self, run: (appended.append(run), append(self, run))
    )

    def seen(i, rng):
        return {"journal": len(appended)}

    with joblib.parallel_config(backend="lists", n_jobs=2):
        results = experiment("E-1", seen, {"i": range(6)}, store=tmp_path)
    # when a round starts, the one before it is on disk
    assert results["journal"].tolist() == [0, 0, 2, 2, 4, 4]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "at least one cell"),
        ({"a": []}, "at least one cell"),
        ([], "at least one cell"),
        ([{}], "at least one cell"),
        ({"a": "2-cut"}, "must be a list of values"),
        ({"a": 3}, "must be a list of values"),
        ("grid", "lists of values by name"),
        ([{"a": 1}, 2], "lists of values by name"),
        ({"rng": [1]}, "other than rng and seconds"),
        ({"seconds": [1]}, "other than rng and seconds"),
        ({"a b": [1]}, "words that Python takes"),
        ({1: [1]}, "words that Python takes"),
        ([{"a": 1}, {"b": 1}], "same parameters in each cell"),
        ({"a": [1, 1.0]}, "a cell twice"),
        ({"a": [math.nan]}, r"grid\['a'\] must not be NaN"),
        ({"a": [[1, 2]]}, r"grid\['a'\] must be a number"),
        ({"a": [1j]}, r"grid\['a'\] must be a number"),
    ],
)
def test_a_grid_that_cannot_be_run_is_turned_away(tmp_path, grid, message):
    with pytest.raises((ValueError, TypeError), match=message):
        experiment("E-1", noise, grid, store=tmp_path)


@pytest.mark.parametrize("name", ["", "a/b", "../up", "a.b", "é", "-a", 3, None])
def test_an_id_that_cannot_name_a_file_is_turned_away(tmp_path, name):
    with pytest.raises(ValueError, match="id must be letters, digits"):
        experiment(name, noise, GRID, store=tmp_path)
    with pytest.raises(ValueError, match="id must be letters, digits"):
        stored(name, store=tmp_path)


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
def test_n_jobs_must_be_a_whole_number(tmp_path, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be a whole number"):
        experiment("E-1", noise, GRID, store=tmp_path, n_jobs=n_jobs)


@pytest.mark.parametrize("tolerance", [-1e-9, math.nan, math.inf, "0"])
def test_a_tolerance_is_a_number_that_is_not_negative(tmp_path, tolerance):
    with pytest.raises((ValueError, TypeError), match="tolerance must be"):
        experiment("E-1", noise, GRID, store=tmp_path, tolerance=tolerance)


def test_a_function_without_source_is_turned_away(tmp_path):
    for function in (len, noise.__code__.replace):
        with pytest.raises(ValueError, match="whose source can be read"):
            experiment("E-1", function, GRID, store=tmp_path)


# --- what a cell may return ----------------------------------------------------------------------


def test_a_cell_may_give_several_rows_and_rows_may_differ_in_columns(tmp_path):
    def cuts(n, rng):
        rows = [{"k": k, "bound": math.inf if k == 0 else float(k)} for k in range(n)]
        return [*rows, {"note": 'done, "quoted"\nand broken'}]

    results = experiment("E-1", cuts, {"n": [1, 2]}, store=tmp_path)
    assert results["k"].isna().tolist() == [False, True, False, False, True]
    assert results["k"].dropna().tolist() == [0, 0, 1]
    assert results["bound"].dropna().tolist() == [math.inf, math.inf, 1.0]
    assert results["note"][1] == 'done, "quoted"\nand broken'
    assert list(results)[-1] == "seconds"


def test_a_cell_may_return_a_table(tmp_path):
    def scores(n, rng):
        return pd.DataFrame({"example": range(n), "score": rng.normal(size=n)})

    results = experiment("E-1", scores, {"n": [2, 3]}, store=tmp_path)
    assert results["example"].tolist() == [0, 1, 0, 1, 2]


def test_a_cell_without_chance_takes_no_rng(tmp_path):
    results = experiment("E-1", lambda n: {"twice": 2 * n}, {"n": [1, 2]}, store=tmp_path)
    assert results["twice"].tolist() == [2, 4]


def test_a_column_has_one_type(tmp_path):
    def mixed(n, rng):
        return {"x": "a" if n else 1.0}

    with pytest.raises(TypeError, match="'x' must hold values of one type, got float, str"):
        experiment("E-1", mixed, {"n": [0, 1]}, store=tmp_path)


def test_numpy_scalars_become_plain_numbers():
    values = [np.float32(0.5), np.int64(3), np.bool_(True), np.array(2.0), np.str_("a"), None]
    assert [plain("x", value) for value in values] == [0.5, 3, True, 2.0, "a", None]
    assert [type(plain("x", v)) for v in values[:4]] == [float, int, bool, float]


def test_infinity_is_a_parameter_and_the_json_stays_readable_for_all(tmp_path):
    results = experiment("E-1", noise, {"sigma": [math.inf, 1.0], "repeat": [0]}, store=tmp_path)
    assert results["sigma"][0] == math.inf

    def strict(constant):
        raise AssertionError(constant)

    text = (tmp_path / "E-1.json").read_text()
    assert json.loads(text, parse_constant=strict)["parameters"]["sigma"] == ["inf", 1.0]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"x": math.nan}, "'x' must not be NaN; None stands for no value"),
        ({"x": [1, 2]}, "'x' must be a number"),
        ({"x": np.zeros(2)}, "'x' must be a number"),
        ({"sigma": 1.0}, "must not return a parameter or seconds, got {'sigma'}"),
        ({"seconds": 1.0}, "must not return a parameter or seconds"),
        ({}, "mappings that hold something"),
        ([], "must return a mapping, a list of them or a table"),
        (None, "must return a mapping, a list of them or a table"),
        ([1.0], "mappings that hold something"),
        ("text", "mappings that hold something"),
    ],
)
def test_a_return_value_that_cannot_be_stored_is_an_error_that_names_the_cell(
    tmp_path, returned, message
):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        experiment("E-1", lambda sigma, rng: returned, {"sigma": [1.0]}, store=tmp_path)
    assert caught.value.__notes__ == ["in cell {'sigma': 1.0} of experiment 'E-1'"]


NUMBERS = st.one_of(st.none(), st.floats(allow_nan=False))
TEXTS = st.one_of(
    st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1)
)
WHOLE = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, TEXTS, WHOLE, st.booleans()), min_size=1, max_size=4))
def test_every_value_survives_the_file_with_all_its_digits(rows):
    runs = [
        {"cell": {"n": n}, "seconds": 0.0, "rows": [dict(zip("abcd", row, strict=True))]}
        for n, row in enumerate(rows)
    ]
    table = frame_of(runs)
    content = table.to_csv(index=False).encode()
    read = read_table(content, {name: PROVENANCE.kind_of(table[name]) for name in table})
    pd.testing.assert_frame_equal(read, table, check_exact=True)


# --- provenance ----------------------------------------------------------------------------------


def test_the_json_says_where_the_numbers_come_from(tmp_path):
    results = experiment("E-1", noise, GRID, store=tmp_path, tolerance=0.01)
    said = json.loads((tmp_path / "E-1.json").read_text())
    assert said == about("E-1", store=tmp_path)
    assert results.attrs == {
        name: said[name] for name in ("id", "csv_sha256", "code_sha256", "profile")
    }
    assert said["function"].endswith("test_experiment:noise")
    assert said["parameters"] == GRID
    assert said["tolerance"] == 0.01
    assert len(set(said["seeds"])) == 6
    assert max(said["seeds"]) < 2**53
    assert said["seconds"] == pytest.approx(results["seconds"].sum(), abs=1e-3)
    assert set(said["versions"]) >= {"python", "numpy", "scipy", "numba", "dp-auditkit"}
    assert said["machine"]["cores"] == os.cpu_count()
    assert said["profile"] == "quick"
    text = json.dumps(said)
    assert os.uname().nodename not in text
    assert str(tmp_path) not in text
    assert str(Path.home()) + "/" not in text


def test_the_origin_goes_along_with_the_table(tmp_path):
    results = experiment("E-1", noise, GRID, store=tmp_path)
    for derived in (
        results.query("repeat == 0"),
        results.assign(x=1),
        results.sort_values("value"),
    ):
        assert derived.attrs["id"] == "E-1"


HELPER = """
LIMIT = 3


def helper(n):
    return n * LIMIT


def elsewhere(n):
    return n
"""
CELL = """
from mystudies import helpers


def cell(n):
    return {"value": helpers.helper(n)}
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that writes a package of studies and gives what its cell reaches."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def reached(helper=HELPER, cell=CELL):
        folder = tmp_path / "mystudies"
        folder.mkdir(exist_ok=True)
        for name, text in {"__init__": "", "helpers": helper, "study": cell}.items():
            (folder / f"{name}.py").write_text(text)
        for name in [name for name in sys.modules if name.startswith("mystudies")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        linecache.checkcache()
        for cached in vars(sys.modules["auditkit.experiment.code"]).values():
            getattr(cached, "cache_clear", lambda: None)()
        return closure(importlib.import_module("mystudies.study").cell)

    return reached


def test_a_result_rests_on_what_its_function_reaches_and_on_nothing_else(written):
    assert list(written()) == [
        "mystudies.helpers:LIMIT",
        "mystudies.helpers:helper",
        "mystudies.study:cell",
    ]


@pytest.mark.parametrize(
    ("edit", "changed"),
    [
        (("n * LIMIT", "n * LIMIT + 1000"), ["mystudies.helpers:helper"]),
        (("LIMIT = 3", "LIMIT = 4"), ["mystudies.helpers:LIMIT"]),
        (("return n\n", "return 2 * n\n"), []),
        (("def helper(n):", "def helper(n: int) -> int:"), []),
        (("def helper(n):", "def helper(n):\n    # why\n    'Say.'"), []),
    ],
)
def test_a_changed_helper_makes_a_result_stale_and_an_edit_elsewhere_does_not(
    written, edit, changed
):
    before, after = written(), written(HELPER.replace(*edit))
    assert [name for name in after if after[name] != before[name]] == changed


def test_the_words_of_an_error_do_not_change_a_result_and_its_condition_does(written):
    cells = [
        CELL.replace(
            "    return", f"    if n > {limit}:\n        raise ValueError({words!r})\n    return"
        )
        for limit, words in ((9, "too large"), (9, "more than nine"), (8, "too large"))
    ]
    hashes = [written(cell=cell)["mystudies.study:cell"] for cell in cells]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_public_name_leads_to_the_code_behind_it():
    def bound(n):
        import auditkit as ak

        return {"epsilon": ak.one_run(n, n, n).epsilon}

    reached = closure(bound)
    assert "auditkit.bounds.one_run:one_run" in reached
    assert not [name for name in reached if name.startswith(("auditkit.figures", "auditkit.cli"))]


def test_a_package_that_is_missing_is_said_to_be_missing(monkeypatch):
    monkeypatch.setattr(PROVENANCE, "PACKAGES", ("no-such-distribution",))
    assert provenance()["versions"]["no-such-distribution"] == "not installed"


# --- the store -----------------------------------------------------------------------------------


def test_stored_results_are_read_as_they_were_returned(tmp_path):
    results = experiment("E-1", noise, GRID, store=tmp_path)
    assert stored("E-1", store=tmp_path).equals(results)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["E-1.csv", "E-1.json"]


@pytest.mark.parametrize("edit", [(b"up", b"UP"), (b"0.5,", b"0.6,"), (b"\n", b"\r\n")])
def test_a_csv_edited_by_hand_is_an_error(tmp_path, edit):
    experiment("E-1", noise, GRID, store=tmp_path)
    table = tmp_path / "E-1.csv"
    content = table.read_bytes()
    assert edit[0] in content
    table.write_bytes(content.replace(*edit))
    with pytest.raises(ValueError, match="is not what the experiment stored"):
        stored("E-1", store=tmp_path)


@pytest.mark.parametrize("edit", [('"tolerance": 1e-09', '"tolerance": 1e9'), ("{", "[")])
def test_a_json_edited_by_hand_is_an_error(tmp_path, edit):
    experiment("E-1", noise, GRID, store=tmp_path)
    said = tmp_path / "E-1.json"
    text = said.read_text()
    assert edit[0] in text
    said.write_text(text.replace(*edit))
    with pytest.raises(ValueError, match=r"E-1.json is not what (the|an) experiment stored"):
        stored("E-1", store=tmp_path)


def test_results_that_are_not_there_are_an_error_that_names_the_file(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no stored results of 'E-1': .*E-1.json is missing"
    ):
        stored("E-1", store=tmp_path)
    experiment("E-1", noise, GRID, store=tmp_path)
    (tmp_path / "E-1.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"E-1.csv is missing"):
        stored("E-1", store=tmp_path)


def test_the_profiles_have_a_store_each_and_reading_means_the_paper_one(tmp_path, monkeypatch):
    monkeypatch.setattr(PROVENANCE, "home", lambda: tmp_path)
    experiment("E-1", noise, GRID)
    assert (tmp_path / "_build/results/E-1.csv").exists()
    with pytest.raises(FileNotFoundError):
        stored("E-1")
    monkeypatch.setenv("AUDITKIT_PROFILE", "paper")
    results = experiment("E-1", noise, GRID)
    assert (tmp_path / "data/results/E-1.csv").exists()
    assert stored("E-1").equals(results)
    assert results.attrs["profile"] == "paper"


def test_home_is_the_clone_or_else_where_python_was_started(tmp_path, monkeypatch):
    assert (home() / "pyproject.toml").exists()
    file = tmp_path / "site-packages/auditkit/datasets/shipped.py"
    monkeypatch.setattr(sys.modules["auditkit.datasets.shipped"], "__file__", str(file))
    monkeypatch.chdir(tmp_path)
    assert home() == tmp_path


def test_a_write_that_fails_leaves_the_old_file_and_nothing_half(tmp_path, monkeypatch):
    write_whole(tmp_path / "a.csv", b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "a.csv", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert (tmp_path / "a.csv").read_bytes() == b"old"


def test_a_store_that_cannot_be_written_stops_the_run_before_its_first_cell(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        experiment("E-1", failing, {"n": [1]}, store=tmp_path / "file" / "results")


# --- resuming ------------------------------------------------------------------------------------


def failing(n, rng):
    if n == 3 and os.environ.get("FAIL"):
        raise RuntimeError("the third cell fails")
    CALLS.append(n)
    return {"value": rng.random()}


CALLS = []


def test_a_run_that_failed_goes_on_with_every_finished_cell(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIL", "1")
    CALLS.clear()
    with pytest.raises(RuntimeError, match="third cell") as caught:
        experiment("E-1", failing, {"n": range(6)}, store=tmp_path)
    assert caught.value.__notes__ == ["in cell {'n': 3} of experiment 'E-1'"]
    assert CALLS == [0, 1, 2]
    monkeypatch.delenv("FAIL")
    results = experiment("E-1", failing, {"n": range(6)}, store=tmp_path)
    assert CALLS == [0, 1, 2, 3, 4, 5]
    alone = experiment("E-1", failing, {"n": range(6)}, store=tmp_path / "b")
    assert untimed(results).equals(untimed(alone))


def interrupted(tmp_path, monkeypatch):
    """Leave a journal of three cells, and return its path."""
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(RuntimeError):
        experiment("E-1", failing, {"n": range(6)}, store=tmp_path)
    monkeypatch.delenv("FAIL")
    CALLS.clear()
    (journal,) = tmp_path.glob("*.jsonl")
    return journal


def test_a_line_torn_by_the_kill_is_dropped_and_its_cell_run_again(tmp_path, monkeypatch):
    journal = interrupted(tmp_path, monkeypatch)
    journal.write_bytes(journal.read_bytes()[:-9])
    results = experiment("E-1", failing, {"n": range(6)}, store=tmp_path)
    assert CALLS == [2, 3, 4, 5]
    assert len(results) == 6
    assert not journal.exists()
    journal.write_bytes(b'{"cell": {"n": 0')
    CALLS.clear()
    experiment("E-1", failing, {"n": range(2)}, store=tmp_path)
    assert CALLS == [0, 1]


def test_a_run_killed_again_after_a_torn_line_still_goes_on(tmp_path, monkeypatch):
    journal = interrupted(tmp_path, monkeypatch)
    journal.write_bytes(journal.read_bytes()[:-9])
    interrupted(tmp_path, monkeypatch)
    assert len(experiment("E-1", failing, {"n": range(6)}, store=tmp_path)) == 6
    assert CALLS == [3, 4, 5]


def test_a_journal_with_a_broken_line_inside_is_not_guessed_at(tmp_path, monkeypatch):
    journal = interrupted(tmp_path, monkeypatch)
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join([lines[0], lines[1][:-4], *lines[2:]]))
    with pytest.raises(ValueError, match=r"line 2 of .*jsonl cannot be read"):
        experiment("E-1", failing, {"n": range(6)}, store=tmp_path)


def test_a_larger_grid_keeps_the_cells_that_were_finished(tmp_path, monkeypatch):
    interrupted(tmp_path, monkeypatch)
    results = experiment("E-1", failing, {"n": [7, 2, 1.5]}, store=tmp_path)
    assert CALLS == [7, 1.5]
    assert len(results) == 3


def test_a_journal_of_other_code_is_neither_used_nor_lost(tmp_path, monkeypatch, capsys):
    journal = interrupted(tmp_path, monkeypatch)
    before = journal.read_bytes()

    def other(n, rng):
        CALLS.append(n)
        return {"value": -rng.random()}

    results = experiment("E-1", other, {"n": range(6)}, store=tmp_path)
    assert CALLS == [0, 1, 2, 3, 4, 5]
    assert len(results) == 6
    assert f"{journal.name} holds cells of a run by other code" in capsys.readouterr().err
    assert journal.read_bytes() == before


def test_a_finished_paper_run_is_not_run_again_unless_something_changed(tmp_path, paper):
    CALLS.clear()
    first = experiment("E-1", failing, {"n": range(3)}, store=tmp_path)
    assert experiment("E-1", failing, {"n": range(3)}, store=tmp_path).equals(first)
    assert len(CALLS) == 3
    experiment("E-1", failing, {"n": range(4)}, store=tmp_path)
    assert len(CALLS) == 7
    with (tmp_path / "E-1.csv").open("a") as file:
        file.write("edited")
    experiment("E-1", failing, {"n": range(4)}, store=tmp_path)
    assert len(CALLS) == 11
    experiment("E-1", lambda n, rng: {"value": n}, {"n": range(4)}, store=tmp_path)
    assert stored("E-1", store=tmp_path)["value"][3] == 3


def test_a_finished_quick_run_runs_again(tmp_path):
    CALLS.clear()
    for _ in range(2):
        experiment("E-1", failing, {"n": range(3)}, store=tmp_path)
    assert len(CALLS) == 6


SCRIPT = """
import sys
import time
from pathlib import Path

from auditkit.experiment import experiment

here = Path(__file__).parent


def slow(n, rng):
    time.sleep(0.15)
    with (here / "calls").open("a") as file:
        file.write(f"{n}\\n")
    return {"value": rng.random()}


if __name__ == "__main__":
    experiment("E-1", slow, {"n": range(12)}, store=here / "store", n_jobs=int(sys.argv[1]))
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_kill_9_loses_at_most_the_running_cells(tmp_path, n_jobs):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(script), str(n_jobs)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        finished, end = [], time.monotonic() + 30
        while len(finished) < 4:
            assert process.poll() is None
            assert time.monotonic() < end, "no cell was finished in 30 s"
            time.sleep(0.02)
            journals = list((tmp_path / "store").glob("*.jsonl"))
            finished = journals[0].read_bytes().splitlines() if journals else []
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    ran = [int(n) for n in (tmp_path / "calls").read_text().split()]
    (journal,) = (tmp_path / "store").glob("*.jsonl")
    kept = [json.loads(line)["cell"]["n"] for line in journal.read_bytes().split(b"\n")[:-1]]
    assert not (tmp_path / "store" / "E-1.csv").exists()
    assert 4 <= len(kept) < 12
    # alone, only the cell that was ending; two workers may each have handed in one more
    assert set(kept) <= set(ran)
    assert len(ran) - len(kept) <= {1: 1, 2: 4}[n_jobs]

    subprocess.run([*command[:2], "1"], check=True, stderr=subprocess.DEVNULL)
    again = [int(n) for n in (tmp_path / "calls").read_text().split()][len(ran) :]
    assert sorted(again) == sorted(set(range(12)) - set(kept))
    values = stored("E-1", store=tmp_path / "store")["value"]
    undisturbed = experiment(
        "E-1", lambda n, rng: {"value": rng.random()}, {"n": range(12)}, store=tmp_path
    )
    assert values.equals(undisturbed["value"])


def test_two_processes_that_start_one_study_do_so_one_after_the_other(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).replace("range(12)", "range(4)"))
    both = [
        subprocess.Popen([sys.executable, str(script), "1"], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("another process runs it; waiting for it" in one for one in said) == 1
    assert len(stored("E-1", store=tmp_path / "store")) == 4
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["E-1.csv", "E-1.json"]


# --- studies -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def own_studies(monkeypatch):
    monkeypatch.setattr(sys.modules["auditkit.experiment.study"], "STUDIES", dict(STUDIES))


def demo(function=noise, **options):
    return study("demo", **{"paper": GRID, "live": {"sigma": [1.0], "repeat": [0]}} | options)(
        function
    )


def test_a_study_runs_its_function_and_the_grid_of_the_profile(tmp_path, monkeypatch):
    one = demo()
    assert one(0.0, 1, rng=np.random.default_rng(0)) == {"value": 0.0, "sign": "up"}
    assert len(one.run(store=tmp_path / "quick")) == 1
    monkeypatch.setenv("AUDITKIT_PROFILE", "paper")
    assert len(one.run(store=tmp_path / "paper", n_jobs=2)) == 6


def test_two_functions_cannot_have_one_id():
    demo()
    with pytest.raises(ValueError, match="id must be of one study only, got 'demo', which is"):
        demo(failing, paper={"n": [1]})
    demo()  # the cell of a notebook that runs again


def test_a_study_knows_its_cells_and_recomputes_them(tmp_path, paper):
    one = demo(tolerance=1e-3)
    one.run(store=tmp_path)
    cells = one.affordable(store=tmp_path)
    assert cells[0][0] == {"sigma": 0.5, "repeat": 0}
    assert len(cells) == 6
    for cell, rows in cells:
        one.recompute(cell, rows)
    with pytest.raises(AssertionError, match="value is stored as") as caught:
        one.recompute(*cells[0][:1], cells[2][1])
    assert caught.value.__notes__ == ["in cell {'sigma': 0.5, 'repeat': 0} of study 'demo'"]


def test_reduced_cells_stand_for_those_that_take_too_long(tmp_path, paper):
    reduced = {"sigma": 3.0, "repeat": 1}
    one = demo(reduced=[reduced])
    table = one.run(store=tmp_path)
    assert 3.0 not in table["sigma"].tolist()
    ((cell, rows),) = one.affordable(store=tmp_path)
    assert cell == reduced
    one.recompute(cell, rows)


def test_stale_names_what_has_changed(tmp_path, paper):
    demo().run(store=tmp_path)
    assert demo().stale(store=tmp_path) == []
    longer = demo(paper={"sigma": [0.5], "repeat": [0]}, reduced=[{"sigma": 3.0, "repeat": 1}])
    assert longer.stale(store=tmp_path) == ["the grid", "the reduced cells"]


def scaled(sigma, repeat, rng):
    return noise(2 * sigma / 2, repeat, rng)


def doubled(sigma, repeat, rng):
    return noise(2 * sigma, repeat, rng)


def doubled_here_and_there(sigma, repeat, rng):
    return noise((2 if sigma == 2.0 else 1) * sigma, repeat, rng)


@pytest.mark.parametrize(
    ("now", "equal"), [(scaled, True), (doubled, False), (doubled_here_and_there, False)]
)
def test_a_result_is_stamped_where_a_cell_comes_out_equal_and_only_there(
    tmp_path, paper, monkeypatch, now, equal
):
    demo().run(store=tmp_path)
    before = (tmp_path / "demo.csv").read_bytes()
    now.__qualname__ = noise.__qualname__
    other = demo(now, reduced=[{"sigma": 3.0, "repeat": 1}])
    assert other.stale(store=tmp_path)
    if equal:
        other.stamp(store=tmp_path)
        assert other.stale(store=tmp_path) == []
        assert len(other.affordable(store=tmp_path)) == 1
    else:
        with pytest.raises(AssertionError, match="value is stored as"):
            other.stamp(store=tmp_path)
        assert other.stale(store=tmp_path)
    assert (tmp_path / "demo.csv").read_bytes() == before


def test_a_study_that_reads_another_is_stale_when_that_has_changed(tmp_path, paper, monkeypatch):
    monkeypatch.setattr(PROVENANCE, "home", lambda: tmp_path)
    experiment("votes", lambda n, rng: {"vote": n}, {"n": [1, 2]})

    def counted(n):
        return {"votes": int(stored("votes")["vote"].sum())}

    one = study("counts", paper={"n": [1]}, sources=["votes"])(counted)
    assert one.run()["votes"].tolist() == [3]
    assert one.stale() == []
    experiment("votes", lambda n, rng: {"vote": n + 1}, {"n": [1, 2]})
    assert one.stale() == ["stored votes"]


# --- comparing -----------------------------------------------------------------------------------


def table(**columns):
    return pd.DataFrame({"n": 1, **columns, "seconds": 1.0})


def test_a_column_is_compared_as_a_whole_and_by_its_own_size():
    small = 1e-3 * np.arange(1, 101)
    compare(table(x=small), table(x=small + 1e-6), 0.02)
    compare(table(x=[1.0, math.inf, math.nan]), table(x=[1.01, math.inf, math.nan]), 0.02)
    for wrong in (0.0 * small, small[::-1]):
        with pytest.raises(AssertionError, match="its 100 values differ by"):
            compare(table(x=small), table(x=wrong), 0.02)


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"x": [1.0, 1.0], "s": ["a", "a"]}, "1 rows are stored, 2 recomputed"),
        ({"x": [1.0], "s": ["b"]}, "s is stored as 'a' and recomputed as 'b'"),
        ({"x": [1.0]}, "column s is stored only"),
        ({"x": [1.0], "s": ["a"], "y": [0]}, "column y is recomputed only"),
        ({"x": [True], "s": ["a"]}, "x is stored as float64, recomputed as bool"),
        ({"x": [math.inf], "s": ["a"]}, "x is stored as .* and recomputed as"),
        ({"x": [math.nan], "s": ["a"]}, "column x is stored only"),
    ],
)
def test_anything_else_that_changed_is_named_too(now, message):
    before = table(x=[1.0], s=["a"])
    compare(before, table(x=[1], s=["a"]).assign(seconds=9.0), 1e-9)
    with pytest.raises(AssertionError, match=message):
        compare(before, table(**now), 1e-9)


@pytest.mark.parametrize(
    ("function", "grid", "message"),
    [
        (None, {"n": [1]}, "function must take the parameters of a cell, got None"),
        (noise, None, "grid must be lists of values by name, or mappings, got None"),
        (noise, 3, "grid must be lists of values by name, or mappings, got 3"),
    ],
)
def test_what_is_no_function_and_no_grid_is_named(tmp_path, function, grid, message):
    with pytest.raises(TypeError, match=message):
        experiment("E-1", function, grid, store=tmp_path)


# --- progress ------------------------------------------------------------------------------------


def test_a_page_of_the_quick_profile_shows_no_progress_and_a_long_run_does(
    tmp_path, monkeypatch, capsys
):
    experiment("E-1", noise, GRID, store=tmp_path)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("AUDITKIT_PROFILE", "paper")
    experiment("E-2", noise, GRID, store=tmp_path)
    assert "6/6" in capsys.readouterr().err
