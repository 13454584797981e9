"""Runs survive being killed, stored numbers survive being read, and edited ones do not."""

# ruff: noqa: ARG001, ARG005 - a cell's function takes its parameters and rng, used or not
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit import experiment as package_experiment
from auditkit.datasets.store import write_whole
from auditkit.experiment import (
    Results,
    experiment,
    home,
    plain,
    profile,
    provenance,
    recompute,
    stored,
    to_csv,
)

MODULE = sys.modules["auditkit.experiment"]


def noise(sigma, repeat, rng):
    return {"value": sigma * rng.normal(), "sign": "up" if repeat else "down"}


GRID = {"sigma": [0.5, 1.0, 2.0], "repeat": [0, 1]}


def untimed(results):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in results.rows]


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


def test_rows_come_in_the_order_of_the_grid_with_their_seconds(tmp_path):
    results = experiment("E-1", noise, GRID, store=tmp_path)
    assert [(r["sigma"], r["repeat"]) for r in results.rows] == [
        (s, r) for s in GRID["sigma"] for r in GRID["repeat"]
    ]
    assert list(results.rows[0]) == ["sigma", "repeat", "value", "sign", "seconds"]
    assert all(0 <= row["seconds"] < 1 for row in results.rows)
    assert repr(results) == "Results(id='E-1', 6 rows of sigma, repeat, value, sign, seconds)"


def test_a_cell_draws_the_same_numbers_in_any_order_and_in_any_company(tmp_path):
    forth = experiment("E-1", noise, GRID, store=tmp_path / "a")
    cells = [{"repeat": r, "sigma": s} for r in (1, 0) for s in (2.0, 0.5)]
    back = experiment("E-1", noise, cells, store=tmp_path / "b")
    value = {(r["sigma"], r["repeat"]): r["value"] for r in forth.rows}
    assert all(row["value"] == value[row["sigma"], row["repeat"]] for row in back.rows)


def test_one_and_one_point_zero_are_the_same_cell(tmp_path):
    whole = experiment("E-1", noise, {"sigma": [1, 2], "repeat": [0]}, store=tmp_path / "a")
    mixed = experiment("E-1", noise, {"sigma": [1, 2, 2.5], "repeat": [0]}, store=tmp_path / "b")
    assert [r["value"] for r in whole.rows] == [r["value"] for r in mixed.rows[:2]]


def test_streams_differ_between_cells_and_between_experiments(tmp_path):
    grid = {"repeat": range(100), "sigma": [1.0]}
    one = {r["value"] for r in experiment("E-1", noise, grid, store=tmp_path).rows}
    two = {r["value"] for r in experiment("E-2", noise, grid, store=tmp_path).rows}
    assert len(one | two) == 200


def test_parallel_work_gives_what_one_worker_gives(tmp_path):
    alone = experiment("E-1", noise, GRID, store=tmp_path / "a")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        threads = experiment("E-1", noise, GRID, store=tmp_path / "b")
    processes = experiment("E-1", noise, GRID, store=tmp_path / "c", n_jobs=2)
    assert untimed(alone) == untimed(threads) == untimed(processes)


def test_a_backend_that_hands_back_lists_only_is_served_round_by_round(tmp_path, monkeypatch):
    # Ray's backend is one; this stands in for it without processes
    class Lists(joblib._parallel_backends.ThreadingBackend):
        supports_return_generator = False

    joblib.register_parallel_backend("lists", Lists)
    appended = []
    append = MODULE._Journal.append
    monkeypatch.setattr(
        MODULE._Journal, "append", lambda self, run: (appended.append(run), append(self, run))
    )

    def seen(i, rng):
        return {"journal": len(appended)}

    with joblib.parallel_config(backend="lists", n_jobs=2):
        results = experiment("E-1", seen, {"i": range(6)}, store=tmp_path)
    # when a round starts, the one before it is on disk
    assert [row["journal"] for row in results.rows] == [0, 0, 2, 2, 4, 4]


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
    assert [r["k"] for r in results.rows] == [0, None, 0, 1, None]
    assert [r["bound"] for r in results.rows] == [math.inf, None, math.inf, 1.0, None]
    assert results.rows[1]["note"] == 'done, "quoted"\nand broken'
    assert list(results.rows[0])[-1] == "seconds"


def test_numpy_scalars_become_plain_numbers():
    values = [np.float32(0.5), np.int64(3), np.bool_(True), np.array(2.0), np.str_("a"), None]
    assert [plain("x", value) for value in values] == [0.5, 3, True, 2.0, "a", None]
    assert [type(plain("x", v)) for v in values[:4]] == [float, int, bool, float]


def test_infinity_is_a_parameter_and_the_json_stays_readable_for_all(tmp_path):
    results = experiment("E-1", noise, {"sigma": [math.inf, 1.0], "repeat": [0]}, store=tmp_path)
    assert results.rows[0]["sigma"] == math.inf

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
        ([], "must return a mapping or a list of them"),
        (None, "must return a mapping or a list of them"),
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


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8"), max_size=5),
)


@settings(deadline=None)
@given(st.lists(st.fixed_dictionaries({"a": values, "b": values}), min_size=1, max_size=4))
def test_every_value_survives_the_csv_with_all_its_digits(rows):
    content, kinds = to_csv(rows)
    read = MODULE._from_csv(content, kinds)
    assert list(read) == rows
    for name, kind in kinds.items():
        if kind == "mixed":
            assert [type(row[name]) for row in read] == [type(row[name]) for row in rows]


@settings(deadline=None)
@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_float_is_read_back_bit_for_bit(first, second):
    content, kinds = to_csv([{"a": first}, {"a": second}])
    read = [row["a"] for row in MODULE._from_csv(content, kinds)]
    assert [math.copysign(1, v) for v in read] == [math.copysign(1, v) for v in (first, second)]
    assert read == [first, second]


# --- provenance ----------------------------------------------------------------------------------


def test_the_json_says_where_the_numbers_come_from(tmp_path):
    results = experiment("E-1", noise, GRID, store=tmp_path, tolerance=0.01)
    about = json.loads((tmp_path / "E-1.json").read_text())
    assert about == results.provenance
    assert about["id"] == "E-1"
    assert about["function"].endswith("test_experiment:noise")
    assert about["parameters"] == GRID
    assert about["tolerance"] == 0.01
    assert len(set(about["seeds"])) == 6
    assert max(about["seeds"]) < 2**53
    assert about["seconds"] == pytest.approx(sum(r["seconds"] for r in results.rows), abs=1e-3)
    assert set(about["versions"]) >= {"python", "numpy", "scipy", "numba", "dp-auditkit"}
    assert about["machine"]["cores"] == os.cpu_count()
    assert about["profile"] == "quick"
    text = json.dumps(about)
    assert os.uname().nodename not in text
    assert str(tmp_path) not in text
    assert str(Path.home()) + "/" not in text


def test_layout_and_comments_do_not_change_the_hash_of_the_code_and_code_does():
    sources = [
        'def f(n):\n    """Say."""\n    return n  # why\n',
        "def f(n):\n    return (\n        n\n    )\n",
        "def f(n):\n    return n + 1\n",
    ]
    meanings = [MODULE._meaning(source) for source in sources]
    assert meanings[0] == meanings[1] != meanings[2]
    hashes = {provenance(function)["code_sha256"] for function in (noise, failing, None)}
    assert len(hashes) == 3


def test_an_edit_of_the_package_changes_the_hash_of_the_code(tmp_path, monkeypatch):
    module = tmp_path / "bounds" / "one_run.py"
    write_whole(module, b"x = 1\n")
    monkeypatch.setattr(MODULE, "__file__", str(tmp_path / "experiment.py"))
    before = provenance()["code_sha256"]
    assert provenance()["code_sha256"] == before
    module.write_text("x = 2\n")
    os.utime(module, ns=(1, 1))
    assert provenance()["code_sha256"] != before


def test_a_package_that_is_missing_is_said_to_be_missing(monkeypatch):
    monkeypatch.setattr(MODULE, "PACKAGES", ("no-such-distribution",))
    assert provenance()["versions"]["no-such-distribution"] == "not installed"


def test_a_machine_without_proc_still_has_a_processor(monkeypatch):
    def missing(self, *args, **kwargs):
        raise OSError

    monkeypatch.setattr(Path, "read_text", missing)
    assert MODULE._cpu()


def test_results_become_a_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = experiment("E-1", noise, GRID, store=tmp_path).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["sigma"].tolist() == [0.5, 0.5, 1.0, 1.0, 2.0, 2.0]


# --- the store -----------------------------------------------------------------------------------


def test_stored_results_are_read_as_they_were_returned(tmp_path):
    results = experiment("E-1", noise, GRID, store=tmp_path)
    assert stored("E-1", store=tmp_path) == results
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
    with pytest.raises(ValueError, match="is not what the experiment stored"):
        recompute("E-1", noise, rng=0, store=tmp_path)


@pytest.mark.parametrize("edit", [('"tolerance": 1e-09', '"tolerance": 1e9'), ("{", "[")])
def test_a_json_edited_by_hand_is_an_error(tmp_path, edit):
    experiment("E-1", noise, GRID, store=tmp_path)
    about = tmp_path / "E-1.json"
    text = about.read_text()
    assert edit[0] in text
    about.write_text(text.replace(*edit))
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
    monkeypatch.setattr(MODULE, "home", lambda: tmp_path)
    experiment("E-1", noise, GRID)
    assert (tmp_path / "_build/results/E-1.csv").exists()
    with pytest.raises(FileNotFoundError):
        stored("E-1")
    monkeypatch.setenv("AUDITKIT_PROFILE", "paper")
    results = experiment("E-1", noise, GRID)
    assert (tmp_path / "data/results/E-1.csv").exists()
    assert stored("E-1") == results
    assert results.provenance["profile"] == "paper"


def test_home_is_the_clone_or_else_where_python_was_started(tmp_path, monkeypatch):
    assert (home() / "pyproject.toml").exists()
    monkeypatch.setattr(MODULE, "__file__", str(tmp_path / "site-packages/auditkit/experiment.py"))
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
    assert untimed(results) == untimed(
        experiment("E-1", failing, {"n": range(6)}, store=tmp_path / "b")
    )


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
    assert len(results.rows) == 6
    assert not journal.exists()
    journal.write_bytes(b'{"cell": {"n": 0')
    CALLS.clear()
    experiment("E-1", failing, {"n": range(2)}, store=tmp_path)
    assert CALLS == [0, 1]


def test_a_run_killed_again_after_a_torn_line_still_goes_on(tmp_path, monkeypatch):
    journal = interrupted(tmp_path, monkeypatch)
    journal.write_bytes(journal.read_bytes()[:-9])
    interrupted(tmp_path, monkeypatch)
    assert len(experiment("E-1", failing, {"n": range(6)}, store=tmp_path).rows) == 6
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
    assert len(results.rows) == 3


@pytest.mark.parametrize("change", ["code", "version"])
def test_a_journal_of_other_code_is_neither_used_nor_lost(tmp_path, monkeypatch, capsys, change):
    journal = interrupted(tmp_path, monkeypatch)
    before = journal.read_bytes()
    if change == "code":

        def other(n, rng):
            CALLS.append(n)
            return {"value": -rng.random()}

    else:
        other = failing
        monkeypatch.setattr(MODULE.metadata, "version", lambda name: "0")
    results = experiment("E-1", other, {"n": range(6)}, store=tmp_path)
    assert CALLS == [0, 1, 2, 3, 4, 5]
    assert len(results.rows) == 6
    assert f"{journal.name} holds cells of a run by other code" in capsys.readouterr().err
    assert journal.read_bytes() == before


def test_a_finished_paper_run_is_not_run_again_unless_something_changed(tmp_path, paper):
    CALLS.clear()
    first = experiment("E-1", failing, {"n": range(3)}, store=tmp_path)
    assert experiment("E-1", failing, {"n": range(3)}, store=tmp_path) == first
    assert len(CALLS) == 3
    experiment("E-1", failing, {"n": range(4)}, store=tmp_path)
    assert len(CALLS) == 7
    with (tmp_path / "E-1.csv").open("a") as file:
        file.write("edited")
    experiment("E-1", failing, {"n": range(4)}, store=tmp_path)
    assert len(CALLS) == 11
    experiment("E-1", lambda n, rng: {"value": n}, {"n": range(4)}, store=tmp_path)
    assert stored("E-1", store=tmp_path).rows[3]["value"] == 3


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
    values = [row["value"] for row in stored("E-1", store=tmp_path / "store").rows]
    undisturbed = experiment(
        "E-1", lambda n, rng: {"value": rng.random()}, {"n": range(12)}, store=tmp_path
    )
    assert values == [row["value"] for row in undisturbed.rows]


# --- recomputing ---------------------------------------------------------------------------------


def test_stored_cells_can_be_recomputed(tmp_path):
    experiment("E-1", noise, GRID, store=tmp_path)
    assert len(recompute("E-1", noise, rng=0, store=tmp_path)) == 3
    every = recompute("E-1", noise, cells=99, rng=np.random.default_rng(0), store=tmp_path)
    assert sorted(map(str, every)) == sorted(
        str({"sigma": s, "repeat": r}) for s in GRID["sigma"] for r in GRID["repeat"]
    )
    choices = {str(recompute("E-1", noise, cells=1, rng=i, store=tmp_path)) for i in range(40)}
    assert len(choices) == 6


def test_a_number_that_cannot_be_recomputed_is_named(tmp_path):
    experiment("E-1", noise, GRID, store=tmp_path, tolerance=1e-3)

    def second_draw(sigma, repeat, rng):
        rng.normal()
        return noise(sigma, repeat, rng)

    def shifted(by):
        def function(sigma, repeat, rng):
            row = noise(sigma, repeat, rng)
            return {**row, "value": row["value"] + by}

        return function

    assert recompute("E-1", shifted(9e-4), cells=9, rng=0, store=tmp_path)
    with pytest.raises(
        AssertionError, match=r"value is stored as .* in cell .* tolerance of 0.001"
    ):
        recompute("E-1", shifted(0.1), rng=0, store=tmp_path)
    with pytest.raises(AssertionError, match="value is stored as"):
        recompute("E-1", second_draw, cells=9, rng=0, store=tmp_path)


def test_a_column_is_compared_as_a_whole(tmp_path):
    def column(*values):
        return lambda n, rng: [{"x": value} for value in values]

    stored_one = column(*[0.0] * 100, 5.0, math.inf)
    experiment("E-1", stored_one, {"n": [1]}, store=tmp_path, tolerance=0.02)
    recompute("E-1", stored_one, rng=0, store=tmp_path)
    recompute("E-1", column(0.1, *[0.0] * 99, 5.1, math.inf), rng=0, store=tmp_path)
    for wrong in ((0.3, *[0.0] * 99, 5.0, math.inf), (*[0.0] * 100, 5.0, 5.0)):
        with pytest.raises(AssertionError, match="its 102 values differ by"):
            recompute("E-1", column(*wrong), rng=0, store=tmp_path)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([{"x": 1.0, "s": "a"}] * 2, "1 rows are stored, 2 recomputed"),
        ({"x": 1.0, "s": "b"}, "s is stored as 'a' and recomputed as 'b'"),
        ({"x": 1.0}, "s is stored as 'a' and recomputed as None"),
        ({"x": 1.0, "s": "a", "y": 0}, "y is stored as None and recomputed as 0"),
        ({"x": True, "s": "a"}, "x is stored as 1.0 and recomputed as True"),
    ],
)
def test_anything_else_that_changed_is_named_too(tmp_path, returned, message):
    experiment("E-1", lambda n, rng: {"x": 1.0, "s": "a"}, {"n": [1]}, store=tmp_path)
    recompute("E-1", lambda n, rng: {"x": 1, "s": "a"}, rng=0, store=tmp_path)
    with pytest.raises(AssertionError, match=message):
        recompute("E-1", lambda n, rng: returned, rng=0, store=tmp_path)


def test_cells_that_take_too_long_are_left_alone(tmp_path, monkeypatch):
    experiment("E-1", noise, GRID, store=tmp_path)
    monkeypatch.setattr(MODULE, "AFFORDABLE", 0.0)
    assert recompute("E-1", failing, rng=0, store=tmp_path) == ()


def test_seeds_that_were_changed_by_hand_are_noticed(tmp_path):
    experiment("E-1", noise, GRID, store=tmp_path)
    about = json.loads((tmp_path / "E-1.json").read_text())
    about["seeds"][0] += 1
    about["json_sha256"] = MODULE._json_sha256(about)
    (tmp_path / "E-1.json").write_text(json.dumps(about))
    with pytest.raises(AssertionError, match="seeds of experiment 'E-1'"):
        recompute("E-1", noise, rng=0, store=tmp_path)


@pytest.mark.parametrize("cells", [0, -1, 1.5, True])
def test_at_least_one_cell_is_recomputed(tmp_path, cells):
    with pytest.raises(ValueError, match="cells must be a whole number"):
        recompute("E-1", noise, cells=cells, rng=0, store=tmp_path)


# --- progress ------------------------------------------------------------------------------------


class Clock:
    def __init__(self, monkeypatch, tick):
        self.now, self.tick = 0.0, tick
        monkeypatch.setattr(MODULE.time, "monotonic", self)

    def __call__(self):
        return self.now


def walk(clock, total, done=0):
    progress = MODULE._Progress("E-1", done, total)
    for _ in range(total - done):
        clock.now += clock.tick
        progress.step()
    progress.close()


def test_a_log_gets_a_line_now_and_then_with_the_time_that_is_left(monkeypatch, capsys):
    walk(Clock(monkeypatch, 4.0), 6, done=1)
    assert capsys.readouterr().err == (
        "E-1: 4 of 6 cells, 12 s, about 8 s left\nE-1: 6 of 6 cells, 20 s\n"
    )


def test_a_terminal_gets_one_line_that_changes(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    walk(Clock(monkeypatch, 1800.0), 2)
    assert capsys.readouterr().err == (
        "\r\x1b[KE-1: 1 of 2 cells, 30 min, about 30 min left"
        "\r\x1b[KE-1: 2 of 2 cells, 60 min"
        "\r\x1b[KE-1: 2 of 2 cells, 60 min\n"
    )


@pytest.fixture
def notebook(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

    def display(data, *, raw, display_id):
        shown.append(data["text/plain"])
        return handle

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=1)
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return shown


def test_a_page_of_the_quick_profile_shows_no_progress(monkeypatch, capsys, notebook):
    walk(Clock(monkeypatch, 5.0), 3)
    assert notebook == []
    assert capsys.readouterr().err == ""


def test_a_notebook_of_the_paper_profile_has_one_line_that_changes(
    monkeypatch, capsys, notebook, paper
):
    walk(Clock(monkeypatch, 4000.0), 2)
    assert notebook == [
        "E-1: 0 of 2 cells, 0 s",
        "E-1: 1 of 2 cells, 67 min, about 67 min left",
        "E-1: 2 of 2 cells, 2 h 13 min",
        "E-1: 2 of 2 cells, 2 h 13 min",
    ]
    assert capsys.readouterr().err == ""


def test_results_have_a_short_name_for_one_row():
    assert repr(Results("E-1", ({"a": 1},), {})) == "Results(id='E-1', 1 row of a)"


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
