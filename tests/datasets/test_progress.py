"""A terminal sees how much has arrived; a file or a notebook sees nothing."""

import io
import sys
import time

from auditkit.datasets import progress
from auditkit.datasets.progress import watching


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_the_folder_fill(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    monkeypatch.setattr(sys, "stderr", Terminal())
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/file").write_bytes(b"0" * 1_500_000)
    with watching("cifar10: npm", tmp_path, 3_000_000):
        time.sleep(0.2)
    shown = sys.stderr.getvalue()
    assert "cifar10: npm:  50%" in shown
    assert "1.50M/3.00M" in shown
    assert shown.endswith("\r")  # nothing is left of it


def test_a_log_sees_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with watching("x", tmp_path, 1):
        time.sleep(0.05)
    assert sys.stderr.getvalue() == ""
