"""Small copies ship in `data`: without pickles, checked, and first in line."""

# ruff: noqa: ARG001 - a fixture may be asked for because of what it does
import io
import json

import numpy as np
import pytest
from tiny_data import digest

from auditkit.datasets import CARDS, Dataset, load, loading, shipped, verify


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "folder", lambda: tmp_path / "data")
    return tmp_path / "data"


def write(part="small", dataset="mnist", **changes):
    arrays = {"labels": np.array([3, 1]), "features": np.zeros((2, 2), np.float16)}
    about = {"what": "Two digits.", "made_by": "Made by a test.", "class_names": ["a", "b"]}
    return shipped.write(dataset, part, arrays, **{**about, **changes})


def test_what_is_written_is_read_back(data):
    levels = {"colour": ["blue", "red"]}
    part = write(feature_names=["x", "colour"], categories=levels)
    assert CARDS["mnist"].shipped == (part,)
    assert part.file == "mnist.npz"
    assert part.size == (data / "mnist.npz").stat().st_size
    got = load("mnist")
    assert got.part == "small"
    assert got["labels"].tolist() == [3, 1]
    assert got["features"].dtype == np.float16
    assert got.feature_names == ("x", "colour")
    assert got.class_names == ("a", "b")
    assert got.categories == {"colour": ("blue", "red")}
    assert got.description == "Two digits. Made by a test."
    assert list(got.arrays) == ["labels", "features"]


def test_the_same_arrays_give_the_same_bytes(data):
    assert write() == write()
    assert len(json.loads((data / "shipped.json").read_text())) == 1


def test_a_part_is_asked_for_by_name(data):
    write("features")
    assert load("mnist", part="features").part == "features"
    assert (data / "mnist-features.npz").exists()
    with pytest.raises(ValueError, match="part must be one of 'complete', 'features' for mnist"):
        load("mnist", part="small")
    with pytest.raises(ValueError, match="path and part exclude each other"):
        load("mnist", part="features", path="somewhere")
    write("sample", "census-income")
    with pytest.raises(TypeError, match="a shipped part takes no options, got year_columns"):
        load("census-income", part="sample", year_columns=True)


def test_arrays_of_8_bits_are_read_times_their_scale(data):
    steps = np.array([[-127, 0], [5, 127]], np.int8)
    arrays = {"features": steps, "labels": np.array([1, 0]), "mean": np.ones(2, np.float32)}
    scale = np.array([0.5, 0.01], np.float32)
    shipped.write("mnist", "features", arrays, what="W.", made_by="M.", scale=scale)
    got = load("mnist", part="features")
    assert list(got.arrays) == list(arrays)
    assert got["features"].dtype == np.float32
    assert np.array_equal(got["features"], steps * scale)
    assert got["labels"].tolist() == [1, 0]
    assert got["mean"].tolist() == [1, 1]
    shipped.write("mnist", "features", arrays, what="W.", made_by="M.")
    assert load("mnist", part="features")["features"].dtype == np.int8


def test_the_small_copy_comes_first_and_complete_passes_it_by(data, monkeypatch):
    write()
    complete = {"arrays": {"labels": np.arange(5)}}
    monkeypatch.setattr(loading.sources, "fetch", lambda _: {})
    monkeypatch.setitem(loading.READERS, "mnist", lambda _: dict(complete))
    assert len(load("mnist")["labels"]) == 2
    assert len(load("mnist", part="complete")["labels"]) == 5
    (data / "shipped.json").unlink()
    assert len(load("mnist")["labels"]) == 5


def test_an_edited_copy_is_refused_and_verify_tells(data, cache):
    write()
    path = data / "mnist.npz"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"mnist\.npz is not the file its card describes"):
        load("mnist")
    assert "is not the file" in verify("mnist")["mnist.npz"]
    path.unlink()
    with pytest.raises(FileNotFoundError, match="restore it from the repository"):
        load("mnist")
    assert verify("mnist")["mnist.npz"] == "missing"


def test_no_pickle_is_written_or_read(data):
    with pytest.raises(TypeError, match=r"arrays\['texts'\] holds objects"):
        shipped.write("mnist", "x", {"texts": np.array(["a", None])}, what="", made_by="")
    content = io.BytesIO()
    np.savez(content, texts=np.array(["a", None]))
    part = write()
    (data / "mnist.npz").write_bytes(content.getvalue())
    entry = {**part.__dict__, "sha256": digest(content.getvalue()), "size": len(content.getvalue())}
    (data / "shipped.json").write_text(json.dumps([entry]))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load("mnist")


def test_names_of_parts_and_datasets_are_checked(data):
    with pytest.raises(ValueError, match="part must be letters, digits"):
        write("../evil")
    with pytest.raises(ValueError, match="dataset must be one of"):
        write(dataset="mnst")


def test_what_ships_with_the_book_is_whole():
    for card in CARDS.values():
        for part in card.shipped:
            got = shipped.read(part)
            assert got.arrays
            assert all(len(part.__dict__[name]) > 0 for name in ("what", "licence", "made_by"))


def test_a_dataset_names_the_arrays_it_has(data):
    got = Dataset(CARDS["mnist"], {"labels": np.zeros(2)})
    with pytest.raises(KeyError, match="has no array 'label'; it has 'labels'"):
        got["label"]
    with pytest.raises(TypeError):
        got.arrays["more"] = np.zeros(2)
    assert repr(got) == "Dataset 'mnist' (complete): labels (2,) float64"
