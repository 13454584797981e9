"""A cache of the test's own, and a tiny dataset with every kind of source."""

# ruff: noqa: ARG001 - a fixture may be asked for because of what it does
import sys
import types
from pathlib import Path

import pytest
from tiny_data import CONTENT, digest, read_tiny, tar

from auditkit.datasets import catalogue, clients, loading
from auditkit.datasets.cards import Address, Card, File, Package

# --doctest-modules would import it once more, under a name that other folders use too
collect_ignore = ["conftest.py"]


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("AUDITKIT_DATA", str(folder))
    return folder


@pytest.fixture
def no_network(monkeypatch):
    """An address cannot be reached, and no client is installed."""

    def retrieve(url, **_):
        raise ConnectionError(f"Max retries exceeded (Failed to resolve '{url}')")

    logger = types.SimpleNamespace(level=0, setLevel=lambda _: None)
    fake = types.SimpleNamespace(
        retrieve=retrieve, get_logger=lambda: logger, HTTPDownloader=lambda timeout: timeout
    )
    monkeypatch.setitem(sys.modules, "pooch", fake)
    monkeypatch.setattr(clients.shutil, "which", lambda _: None)
    return fake


@pytest.fixture
def archive(tmp_path) -> Path:
    path = tmp_path / "tiny-1.0.tgz"
    path.write_bytes(tar({"package/index.js": b"throw 1", "package/labels.txt": CONTENT}))
    return path


@pytest.fixture
def tiny(archive, cache, no_network, monkeypatch) -> Card:
    """A card whose publisher is out of reach, and whose package lies in a file."""
    content = archive.read_bytes()
    members = {"package/labels.txt": "labels.txt"}
    card = Card(
        name="tiny",
        title="Tiny",
        what="Three labels.",
        size="3",
        task="none",
        licence="none",
        citation="none",
        stands_in="Nothing.",
        files=(File("labels.txt", digest(CONTENT), len(CONTENT)),),
        addresses=(
            Address("https://example.org/labels.txt", digest(CONTENT), 6, {"": "labels.txt"}),
        ),
        package=Package(
            "npm", "tiny", "1.0", "tiny-1.0.tgz", digest(content), len(content), members
        ),
    )
    monkeypatch.setitem(catalogue.CARDS, "tiny", card)
    monkeypatch.setitem(loading.READERS, "tiny", read_tiny)
    return card


@pytest.fixture
def client(archive, monkeypatch):
    """A client that brings what lies in the archive's place."""

    def download(_, folder):
        arrived = folder / archive.name
        arrived.write_bytes(archive.read_bytes())
        return arrived

    monkeypatch.setattr(clients, "download", download)
    return archive
