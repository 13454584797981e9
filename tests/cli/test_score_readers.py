"""Scores come in many kinds of files, from many programs, and mean the same in each."""

import gzip
import io
import json
import pickle
import sys
import threading
import zipfile
from hashlib import sha256
from os import mkfifo

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from auditkit.cli import main, score_containers, score_limits, score_text
from auditkit.cli.score_files import read_scores

SCORES, MEMBERS = [0.1, -2.5, 1e-300, 3.0], [True, False, False, True]
TABLE = pd.DataFrame({"id": ["a", "b", "c", "d"], "score": SCORES, "member": MEMBERS})


def same(table):
    assert table.score.tolist() == SCORES
    assert table.member.tolist() == MEMBERS
    return True


@pytest.mark.parametrize("orient", ["records", "list", "dict"])
def test_json_is_read_as_pandas_writes_it(tmp_path, orient):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(TABLE.to_dict(orient=orient), indent=1), encoding="utf-8")
    assert same(read_scores(path))
    assert len(read_scores(path).id) == 4


@pytest.mark.parametrize("packed", [False, True])
def test_json_lines_are_read_packed_or_not(tmp_path, packed):
    lines = TABLE.to_json(orient="records", lines=True, double_precision=15)
    lines = "\n".join(json.dumps(row) for row in TABLE.to_dict("records")) + "\n\n"
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(lines.encode()) if packed else lines.encode())
    assert same(read_scores(path))
    assert read_scores(path).sha256 == sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"score": null, "member": 1}', "got nothing in row 2 (line 2 of the file)"),
        ('{"score": "high", "member": 1}', 'got "high" in row 2'),
        ('{"score": true, "member": 1}', 'got "True" in row 2'),
        ('{"score": [1], "member": 1}', 'got "[1]" in row 2'),
        ('{"score": NaN, "member": 1}', "got nan in row 2"),
        ('{"member": 1}', 'line 2 has no "score"; it has "member"'),
        ("[1, 2]", "line 2 must be an object with names"),
        ('{"score": 1', "line 2 of a.jsonl is no JSON"),
        ("[" * 100_000, "line 2 of a.jsonl is no JSON"),
    ],
)
def test_a_bad_line_of_json_is_told_by_its_number(tmp_path, line, told):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"score": 1.5, "member": 0}}\n{line}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="2") as caught:
        read_scores(path)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("[]", "must hold an object for each row"),
        ("{}", "must hold an object for each row"),
        ("[1, 2]", "must hold an object for each row"),
        ('{"score": [1, 2], "member": [1]}', "same length"),
        ('{"score": [], "member": []}', "no row"),
        ('{"score": {"0": 1}, "member": {"1": 1}}', "same rows in the same order"),
        ("[\n{]", "is no JSON"),
    ],
)
def test_a_bad_document_is_told_in_a_sentence(tmp_path, document, told):
    path = tmp_path / "a.json"
    path.write_text(document, encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        read_scores(path)


def test_numpy_arrays_are_read_with_names_or_in_two_files(tmp_path):
    kinds = [("score", float), ("member", bool)]
    np.save(tmp_path / "a.npy", np.array(list(zip(SCORES, MEMBERS, strict=True)), kinds))
    assert same(read_scores(tmp_path / "a.npy"))
    np.save(tmp_path / "in.npy", [1.0, 2.0, 3.0])
    np.save(tmp_path / "out.npy", np.float32([0.5, 0.25]))
    with pytest.raises(ValueError, match="name those of the others: --others FILE"):
        read_scores(tmp_path / "in.npy")
    table = read_scores(tmp_path / "in.npy", others=tmp_path / "out.npy")
    assert table.score.tolist() == [1.0, 2.0, 3.0, 0.5, 0.25]
    assert table.member.tolist() == [True, True, True, False, False]
    assert table.name == "in.npy and out.npy"
    lines = "".join(f"{table.parts[name]}  {name}\n" for name in ("in.npy", "out.npy"))
    assert table.sha256 == sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize("text", ["1\n2.5\n", "[1, 2.5]", "score\n1\n2.5\n", '{"score": [1, 2.5]}'])
def test_scores_of_one_kind_may_be_bare_numbers(tmp_path, text):
    (tmp_path / "in").write_text(text, encoding="utf-8")
    (tmp_path / "out.csv").write_text("score,user_id\n7,3\n", encoding="utf-8")
    assert read_scores(tmp_path / "in", others=tmp_path / "out.csv").score.tolist() == [1, 2.5, 7]


def test_two_files_have_to_fit_together(tmp_path):
    for name, text in (("a", "score\n1\n"), ("b", "score,id\n1,x\n"), ("c", "score,member\n1,1\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "d").write_text("score,id\n2,x\n", encoding="utf-8")
    for others, told in (("a", "another file"), ("b", "same columns"), ("c", "leave one of them")):
        with pytest.raises(ValueError, match=told):
            read_scores(tmp_path / "a", others=tmp_path / others)
    with pytest.raises(ValueError, match="id must not repeat"):
        read_scores(tmp_path / "b", others=tmp_path / "d")


def test_two_files_the_wrong_way_round_are_told(tmp_path, capsys):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "train.npy", rng.normal(2.0, 1.0, 200))
    np.save(tmp_path / "test.npy", rng.normal(0.0, 1.0, 200))
    for first, second, wrong in (("train", "test", False), ("test", "train", True)):
        paths = [str(tmp_path / f"{name}.npy") for name in (first, second)]
        assert main(["audit", paths[0], "--others", paths[1], "--json"]) == 0
        assert ("the wrong way round" in capsys.readouterr().err) == wrong


def test_what_others_write_is_read(tmp_path):
    inside, outside = np.array([1.0, 2.0]), np.array([0.5, 0.25, 0.125])
    np.savez(tmp_path / "jax_privacy.npz", in_canary_scores=inside, out_canary_scores=outside)
    guard = {"score_train": inside.tolist(), "score_test": outside.tolist(), "auc": 0.9}
    (tmp_path / "privacy_guard.json").write_text(json.dumps(guard), encoding="utf-8")
    for name in ("jax_privacy.npz", "privacy_guard.json"):
        table = read_scores(tmp_path / name)
        assert table.score.tolist() == [1.0, 2.0, 0.5, 0.25, 0.125]
        assert table.member.tolist() == [True, True, False, False, False]
        assert "was read as the scores of members" in table.notes[0]
    meter = {"fpr": inside, "tpr": inside, "scores": outside, "memberships": np.array([0, 1, 1])}
    np.savez(tmp_path / "attack_result_0.npz", auc=0.5, **meter)
    assert read_scores(tmp_path / "attack_result_0.npz").member.tolist() == [False, True, True]
    np.savez(tmp_path / "attack_result_average.npz", auc=0.5, **meter)
    twice = np.concatenate((inside, inside))
    pair = {**meter, "scores": twice, "memberships": np.array([0, 1, 1, 0])}
    np.savez(tmp_path / "renamed.npz", auc=0.5, **pair)
    for name in ("attack_result_average.npz", "renamed.npz"):
        with pytest.raises(ValueError, match="scores of several models"):
            read_scores(tmp_path / name)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_folder_of_parts_is_one_table(tmp_path, kind):
    for number, part in enumerate((TABLE[:1], TABLE[1:])):
        path = tmp_path / f"part-{number}.{kind}"
        part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.crc").touch()
    table = read_scores(tmp_path)
    assert same(table)
    assert (table.name, list(table.parts)) == (tmp_path.name, [f"part-{i}.{kind}" for i in (0, 1)])
    (tmp_path / "part-2.csv").write_text("score\n1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="must have the same columns"):
        read_scores(tmp_path)
    (tmp_path / "part-2.csv").write_text("score\nx\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"part-2.csv in .*: \"score\" must hold numbers"):
        read_scores(tmp_path)
    (tmp_path / "deeper").mkdir()
    with pytest.raises(ValueError, match='got the folder "deeper"'):
        read_scores(tmp_path)


def test_an_empty_folder_is_told(tmp_path):
    with pytest.raises(ValueError, match="got no file"):
        read_scores(tmp_path)


def test_standard_input_and_pipes_are_read(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    members = rng.integers(2, size=200)
    rows = zip(rng.normal(3.0 * members).tolist(), members.tolist(), strict=True)
    text = "score,member\n" + "".join(f"{score},{member}\n" for score, member in rows)

    class Pipe(io.BytesIO):
        def seekable(self):
            return False

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(text.encode())))
    assert main(["audit", "-", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["data"]["file"] == "standard input"
    assert told["data"]["sha256"] == sha256(text.encode()).hexdigest()
    mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    assert len(read_scores(tmp_path / "pipe")) == 200
    writer.join()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"ARROW1\0\0", "a Feather file: save it as Parquet"),
        (b"\x89HDF\r\n", "HDF5"),
        (pickle.dumps([1.0]), "a pickle"),
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\x1f\x8bnothing", "no gzip file"),
        # without the time of packing, by which two workers would collect tests of other names
        (gzip.compress(b"score\n1\n" * 99, mtime=0)[:-9], "no gzip file"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"\x93NUMPY\1\0", "no NPY file"),
    ],
)
def test_what_is_not_read_is_told_with_the_way_out(tmp_path, content, told):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=told):
        read_scores(tmp_path / "a")


@pytest.mark.parametrize(
    ("inside", "told"), [("xl/workbook.xml", "a spreadsheet"), ("archive/data.pkl", "of torch's")]
)
def test_archives_of_others_are_told_by_their_kind(tmp_path, inside, told):
    with zipfile.ZipFile(tmp_path / "a", "w") as file:
        file.writestr(inside, "")
    with pytest.raises(ValueError, match=told):
        read_scores(tmp_path / "a")


def test_decimals_of_parquet_are_numbers(tmp_path):
    column = pyarrow.array([1, 2], pyarrow.decimal128(5, 2))
    parquet.write_table(pyarrow.table({"score": column}), tmp_path / "a")
    assert read_scores(tmp_path / "a").score.tolist() == [1.0, 2.0]


def test_size_is_looked_at_before_memory_is_taken(tmp_path, monkeypatch):
    bomb = gzip.compress(b"score\n" + b"1\n" * 1_000_000)
    (tmp_path / "bomb.csv.gz").write_bytes(bomb)
    np.savez_compressed(tmp_path / "wide.npz", score=np.zeros(9), member=np.zeros(9, "U9999"))
    np.savez_compressed(tmp_path / "flat.npz", score=np.zeros((1, 999)))
    np.save(tmp_path / "long.npy", np.zeros(60))
    (tmp_path / "one.json").write_text("[" + "\n1," * 60 + "1]", encoding="utf-8")
    monkeypatch.setattr(score_containers, "MOST_UNPACKED", 100_000)
    monkeypatch.setattr(score_limits, "MOST_NUMBERS", 50)
    monkeypatch.setattr(score_text, "MOST_JSON", 60)
    monkeypatch.setattr(np, "load", None)
    for name, told in (
        ("bomb.csv.gz", "GB once it is unpacked"),
        ("wide.npz", "would take"),
        ("flat.npz", "1 dimension"),
        ("one.json", "write JSON Lines"),
    ):
        with pytest.raises(ValueError, match=told):
            read_scores(tmp_path / name)
    with pytest.raises(ValueError, match="more numbers than the 50"):
        read_scores(tmp_path / "long.npy", others=tmp_path / "wide.npz")
