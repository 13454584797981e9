"""Files are written whole or not at all: two processes, a full disk, a kill."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from auditkit import toss_coins
from auditkit._files import LEFT, write_whole
from auditkit.cli import main
from auditkit.experiment.journal import Journal

WRITER = """
import sys
from pathlib import Path
from auditkit._files import write_whole
while True:
    write_whole(Path(sys.argv[1]), sys.argv[2].encode() * 3_000_000)
"""


@pytest.fixture
def _full(monkeypatch):
    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)


def scores(folder):
    rng = np.random.default_rng(0)
    members = rng.integers(2, size=300)
    rows = zip(rng.normal(3.0 * members).tolist(), members.tolist(), strict=True)
    path = folder / "scores.csv"
    path.write_text("score,member\n" + "".join(f"{s},{m}\n" for s, m in rows), encoding="utf-8")
    return path


@pytest.mark.usefixtures("_full")
def test_a_full_disk_is_told_with_the_path_and_leaves_nothing(tmp_path, capsys):
    path, report = scores(tmp_path), tmp_path / "new" / "report.html"
    assert main(["audit", str(path), "--report", str(report)]) == 1
    told = capsys.readouterr()
    assert "No space left on device; nothing was written" in told.err
    assert str(report) in told.err
    assert told.out == ""
    assert list(report.parent.iterdir()) == []
    with pytest.raises(OSError, match="No space left on device") as caught:
        toss_coins(range(10), method="one-run").save(tmp_path / "coins.json")
    assert caught.value.filename == str(tmp_path / "coins.json")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "scores.csv"]


def test_a_folder_that_is_none_is_told(tmp_path, capsys):
    path = scores(tmp_path)
    assert main(["audit", str(path), "--report", str(path / "report.html")]) == 1
    assert str(path) in capsys.readouterr().err


def test_a_journal_on_a_full_disk_keeps_its_whole_lines(tmp_path, monkeypatch):
    journal = Journal(tmp_path, "study", "0" * 64)
    journal.append({"cell": {"a": 1}})
    before = journal.path.read_bytes()

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="this cell was not written") as caught:
        journal.append({"cell": {"a": 2}})
    assert caught.value.filename == str(journal.path)
    assert journal.path.read_bytes() == before


def test_two_processes_and_a_kill_leave_one_whole_file(tmp_path):
    path = tmp_path / "report.html"
    each = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), letter]) for letter in "ab"]
    deadline = time.monotonic() + 60.0
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    for _ in range(20):
        content = path.read_bytes()
        assert content in (b"a" * 3_000_000, b"b" * 3_000_000)
    for process in each:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert path.read_bytes() in (b"a" * 3_000_000, b"b" * 3_000_000)
    old = time.time() - LEFT - 1.0
    (tmp_path / "report.html.1.part").touch()  # of a process that still writes
    for left in tmp_path.glob("*.part"):
        if left.name != "report.html.1.part":
            os.utime(left, (old, old))
    write_whole(path, b"c")
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["report.html", "report.html.1.part"]


def test_coins_are_tossed_once_though_two_ask(tmp_path):
    write_whole(tmp_path / "a", b"1", new=True)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a", b"2", new=True)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"1"
