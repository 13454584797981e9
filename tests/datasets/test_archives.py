"""Nothing in an archive is trusted: no path, no size, no link."""

import contextlib
import gzip
import io
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_data import tar

from auditkit.datasets import archives
from auditkit.datasets.archives import unpack

CLIMBING = ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:\\evil", "C:/evil"]


def deb(members, kind="xz"):
    data = tar(members, kind)
    parts = [(b"debian-binary", b"2.0\n"), (b"control.tar.xz", b"odd"), (b"data.tar.xz", data)]
    content = b"!<arch>\n"
    for name, part in parts:
        content += name.ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"100644".ljust(8)
        content += str(len(part)).encode().ljust(10) + b"`\n" + part + b"\n" * (len(part) % 2)
    return content


def pack(kind, members):
    if kind == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return buffer.getvalue()
    return deb(members) if kind == "deb" else tar(members, kind)


@pytest.mark.parametrize("kind", ["zip", "gz", "xz", "deb"])
def test_the_members_named_come_out_under_the_names_given(tmp_path, kind):
    (tmp_path / "archive").write_bytes(pack(kind, {"./a/b.txt": b"one", "a/c.txt": b"two"}))
    prefix = "data.tar.xz!" if kind == "deb" else ""
    members = {f"{prefix}a/b.txt": "first", f"{prefix}a/c.txt": "second"}
    unpack(tmp_path / "archive", members, tmp_path, limit=10_000)
    assert (tmp_path / "first").read_bytes() == b"one"
    assert (tmp_path / "second").read_bytes() == b"two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "first", "second"]


def test_an_archive_in_an_archive_and_a_lone_gzip_are_opened_step_by_step(tmp_path):
    inner = tar({"x.gz": gzip.compress(b"deep")})
    (tmp_path / "outer").write_bytes(pack("zip", {"inner.tgz": inner}))
    unpack(tmp_path / "outer", {"inner.tgz!x.gz!gunzip": "x"}, tmp_path, limit=10_000)
    assert (tmp_path / "x").read_bytes() == b"deep"
    unpack(tmp_path / "outer", {"": "itself"}, tmp_path, limit=10_000)
    assert (tmp_path / "itself").read_bytes() == (tmp_path / "outer").read_bytes()


@pytest.mark.parametrize("kind", ["zip", "gz", "deb"])
@pytest.mark.parametrize("path", CLIMBING)
def test_a_path_that_climbs_out_is_refused(tmp_path, kind, path):
    folder = tmp_path / "deep/down"
    folder.mkdir(parents=True)
    (folder / "archive").write_bytes(pack(kind, {path: b"evil", "good": b"good"}))
    prefix = "data.tar.xz!" if kind == "deb" else ""
    with pytest.raises(ValueError, match="holds a path that climbs out of it"):
        unpack(folder / "archive", {f"{prefix}good": "good"}, folder, limit=10_000)
    assert not list(tmp_path.rglob("evil"))


@given(st.text(alphabet="./\\ab:", max_size=12))
def test_whatever_its_path_a_file_never_lands_outside(tmp_path_factory, path):
    folder = tmp_path_factory.mktemp("top") / "inside"
    folder.mkdir()
    (folder / "archive").write_bytes(tar({path: b"evil"}))
    with contextlib.suppress(ValueError):
        unpack(folder / "archive", {path.removeprefix("./"): "out"}, folder, limit=10)
    assert {path.name for path in folder.parent.rglob("*")} <= {"inside", "archive", "out"}


def test_a_link_is_not_followed(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("data")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    (tmp_path / "archive").write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="'data' in archive is a link, not a file"):
        unpack(tmp_path / "archive", {"data": "data"}, tmp_path, limit=10)


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_a_bomb_stops_at_the_limit(tmp_path, kind):
    (tmp_path / "archive").write_bytes(pack(kind, {"bomb": b"0" * 5_000_000}))
    with pytest.raises(ValueError, match="unpacks to more than the 1,000 bytes expected"):
        unpack(tmp_path / "archive", {"bomb": "bomb"}, tmp_path, limit=1_000)
    assert (tmp_path / "bomb").stat().st_size == 0


@pytest.mark.parametrize("kind", ["zip", "gz", "xz", "deb", "nothing"])
def test_a_truncated_archive_is_told_as_such(tmp_path, kind):
    whole = b"words" if kind == "nothing" else pack(kind, {"a": bytes(range(256)) * 40})
    (tmp_path / "archive").write_bytes(whole[: len(whole) * 2 // 3])
    member = "data.tar.xz!a" if kind == "deb" else "a"
    with pytest.raises(ValueError, match="cut short, or no archive"):
        unpack(tmp_path / "archive", {member: "a"}, tmp_path, limit=100_000)


def test_a_truncated_gzip_is_told_as_such(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(range(256)))[:-20])
    with pytest.raises(ValueError, match="cut short, or no archive"):
        unpack(tmp_path / "a.gz", {"gunzip": "a"}, tmp_path, limit=1_000)


def test_a_member_that_is_missing_is_named(tmp_path):
    (tmp_path / "archive").write_bytes(tar({"a": b""}))
    with pytest.raises(ValueError, match="archive lacks 'b'"):
        unpack(tmp_path / "archive", {"a": "a", "b": "b"}, tmp_path, limit=10)


@pytest.mark.parametrize("path", ["a/b", "..a", "a..b/c", "./a", "a b"])
def test_harmless_paths_are_not_suspected(path):
    assert not archives._climbs(path)
