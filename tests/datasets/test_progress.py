"""A terminal sees how much has arrived; a file or a notebook sees nothing."""

import io
import sys
import time

from auditkit.datasets import progress
from auditkit.datasets.progress import Watching


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_the_folder_fill(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    monkeypatch.setattr(sys, "stderr", Terminal())
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/file").write_bytes(b"0" * 1_500_000)
    with Watching("cifar10: npm", tmp_path, 3_000_000):
        time.sleep(0.2)
    shown = sys.stderr.getvalue()
    assert "cifar10: npm [##########..........] 2 of 3 MB, 0 s" in shown
    assert shown.endswith("\r\x1b[K")


def test_a_log_sees_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Watching("x", tmp_path, 1):
        time.sleep(0.05)
    assert sys.stderr.getvalue() == ""
