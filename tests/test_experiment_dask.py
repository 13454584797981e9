"""A cluster takes over an experiment through joblib: same results, and nothing is lost."""

import os
import time
from pathlib import Path

import joblib
import pytest

from auditkit.experiment import experiment

distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")


def draws(sigma, rng):
    return [{"value": sigma * rng.normal(), "process": os.getpid()} for _ in range(2)]


def gated(number, store, rng):
    """Wait for the other two cells to be on disk, then fail, unless the gate is open."""
    if number == 0 and not Path(store, "gate").exists():
        for _ in range(1000):
            if sum(path.read_text().count("\n") for path in Path(store).glob("*.jsonl")) == 2:
                raise RuntimeError("the gate is shut")
            time.sleep(0.01)
    return {"value": rng.normal(), "process": os.getpid(), "time": time.time()}


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def on(cluster, *arguments, store):  # noqa: ARG001 - joblib finds the cluster that is open
    with joblib.parallel_config("dask"):
        return experiment(*arguments, store=store)


def without(results, *columns):
    return results.drop(columns=["seconds", *columns])


def test_a_cluster_gives_what_one_machine_gives(client, tmp_path):
    grid = {"sigma": [0.0, 0.5, 1.0, 1.5, 2.0]}
    alone = experiment("DASK-1", draws, grid, store=tmp_path / "alone")
    spread = on(client, "DASK-1", draws, grid, store=tmp_path / "spread")
    assert without(spread, "process").equals(without(alone, "process"))
    assert set(alone["process"]) == {os.getpid()}
    assert set(spread["process"]) <= set(client.run(os.getpid).values())


def test_a_function_of_the_notebook_needs_no_module_on_the_workers(client, tmp_path):
    shift = 1.0

    def shifted(n, rng):  # noqa: ARG001
        return {"value": n + shift}

    results = on(client, "DASK-2", shifted, {"n": [1, 2]}, store=tmp_path)
    assert results["value"].tolist() == [2.0, 3.0]


def test_a_cell_that_fails_on_the_cluster_is_named_and_costs_no_other(client, tmp_path):
    grid = {"number": [0, 1, 2], "store": [str(tmp_path)]}
    with pytest.raises(RuntimeError, match="the gate is shut") as error:
        on(client, "DASK-3", gated, grid, store=tmp_path)
    assert "in cell {'number': 0" in error.value.__notes__[0]
    (tmp_path / "gate").touch()
    reopened = time.time()
    results = on(client, "DASK-3", gated, grid, store=tmp_path)
    assert (results["time"] > reopened).tolist() == [True, False, False]
