"""Whatever a file holds and whatever is asked of it, the answer is a result or a sentence."""

import gzip
import io
import json
import zipfile

import numpy as np
import pytest

from auditkit.cli import main
from auditkit.coins import toss_coins

GOOD = [(score / 7.0, score % 2) for score in range(200)]


def csv(rows=GOOD, head="score,member", end="\n"):
    return (head + end + end.join(",".join(map(str, row)) for row in rows) + end).encode()


def jsonl(*records):
    return "\n".join(map(json.dumps, records)).encode()


def npz(**arrays):
    target = io.BytesIO()
    np.savez(target, **arrays)
    return target.getvalue()


def npy(array):
    target = io.BytesIO()
    np.save(target, array, allow_pickle=True)
    return target.getvalue()


def archive(**files):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return target.getvalue()


def changed(row, column, value):
    rows = [list(each) for each in GOOD]
    rows[row][column] = value
    return csv(rows)


TEXTS = [
    "",
    "  ",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "x",
    "1,5",
    "0x1F",
    "1_000",
    "١٢",
    "None",
    "'1",
    "1e999",
]
CONTENTS = {
    "nothing": b"",
    "one byte": b"\0",
    "bytes": bytes(range(256)),
    "newlines": b"\n\n\n",
    "names alone": b"score,member\n",
    "names without an end": b"score,member",
    "no names": csv(head="1,2"),
    "one row": csv(GOOD[:1]),
    "two rows": csv(GOOD[:2]),
    "no member": csv([(1.0, 0), (2.0, 0), (3.0, 0)]),
    "all members": csv([(1.0, 1), (2.0, 1), (3.0, 1)]),
    "one score": csv([(1.0, i % 2) for i in range(40)]),
    "two scores": csv([(i % 2, i % 2) for i in range(40)]),
    "perfect": csv([(i % 2 + i / 1e3, i % 2) for i in range(40)]),
    "turned": csv([(-(i % 2) + i / 1e3, i % 2) for i in range(400)]),
    "only score": b"score\n1\n2\n",
    "only member": b"member\n1\n0\n",
    "twice a score": csv([(1, 2, 1), (2, 3, 0)], head="score,Score,member"),
    "a long line": csv([(1, 0, 1), (2, 1)]),
    "a short line": csv([(1,), (2, 1)]),
    "an open quote": b'score,member\n"1,0\n2,1\n',
    "a quote in names": b'scor"e,member\n1,0\n',
    "a null byte": b"score,member\n1\0,0\n2,1\n",
    "latin-1": "score,member,größe\n1,0,ü\n".encode("latin-1"),
    "utf-16": csv().decode().encode("utf-16"),
    "utf-16 cut short": csv().decode().encode("utf-16")[:-1],
    "carriage returns": csv(end="\r"),
    "semicolons": csv().replace(b",", b";"),
    "huge numbers": csv([(10.0**300 * (i + 1), i % 2) for i in range(40)]),
    "tiny numbers": csv([(5e-324 * i, i % 2) for i in range(40)]),
    "long integers": csv([(2**70 + i, i % 2) for i in range(40)]),
    "a wide field": b"score,member,x\n1,0," + b"x" * 200_000 + b"\n",
    "many columns": csv([range(2000)] * 3, head=",".join(["score", *map(str, range(1999))])),
    "repeated ids": csv([(i, i % 2, "a") for i in range(40)], head="score,member,id"),
    "empty ids": csv([(i, i % 2, "") for i in range(40)], head="score,member,id"),
    "features of text": csv([(i, i % 2, "a") for i in range(40)], head="score,member,feature a"),
    "a feature of one value": csv(
        [(i, i % 2, 1) for i in range(40)], head="score,member,feature a"
    ),
    "certain propensity": csv([(i, i % 2, 1) for i in range(40)], head="score,member,propensity"),
    "a chosen of three": csv([(i, i % 3) for i in range(40)], head="score,chosen"),
    "placebo alone": csv([(i, i % 2, 1) for i in range(40)], head="score,chosen,placebo"),
    "a baseline": csv([(i, i % 2, 5) for i in range(40)], head="score,member,baseline_score"),
    "json null": b"null",
    "json true": b"true",
    "json empty list": b"[]",
    "json empty object": b"{}",
    "json numbers": b"[1, 2, 3]",
    "json texts": b'["a"]',
    "json lists": b"[[1, 0], [2, 1]]",
    "json deep": b"[" * 200_000,
    "json deep object": b'{"score":' * 5000,
    "json cut short": b'{"score": [1, 2',
    "json of columns": json.dumps({"score": [1, 2], "member": [0, 1]}).encode(),
    "json of other lengths": json.dumps({"score": [1, 2], "member": [0]}).encode(),
    "json of objects": json.dumps({"score": {"0": 1}, "member": {"0": 1}}).encode(),
    "json mixed": json.dumps({"score": [1, None, "x", [], {}], "member": [0] * 5}).encode(),
    "json lines": jsonl(*({"score": s, "member": m} for s, m in GOOD)),
    "json lines of two shapes": jsonl({"score": 1, "member": 0}, {"score": 1}),
    "json lines of lists": jsonl({"score": 1, "member": 0}, [1, 2]),
    "json big number": b'{"score": 1' + b"0" * 5000 + b', "member": 1}\n{"score": 2, "member": 0}',
    "json in and out": json.dumps({"in_scores": [1.0], "out_scores": [2.0]}).encode(),
    "gzip of nothing": gzip.compress(b""),
    "gzip cut short": gzip.compress(csv())[:-9],
    "gzip of gzip": gzip.compress(gzip.compress(csv())),
    "gzip of csv": gzip.compress(csv()),
    "gzip with more after": gzip.compress(csv()) + b"more",
    "npy": npy(np.arange(5.0)),
    "npy of nothing": npy(np.array([])),
    "npy of objects": npy(np.array([{}], dtype=object)),
    "npy cut short": npy(np.arange(500.0))[:-9],
    "npy of a table": npy(np.zeros((5, 2))),
    "npy of fields": npy(np.zeros(5, [("score", float), ("member", bool)])),
    "npy of nested fields": npy(np.zeros(5, [("score", float, 2), ("member", bool)])),
    "npy header": b"\x93NUMPY\1\0\xff\xff{'descr'",
    "npz of nothing": archive(),
    "npz of text": archive(score="1"),
    "npz": npz(score=np.arange(40.0), member=np.arange(40) % 2),
    "npz of two lengths": npz(score=np.arange(40.0), member=np.zeros(3)),
    "npz of objects": npz(score=np.array([1, None]), member=np.zeros(2)),
    "npz of complex": npz(score=np.zeros(4, complex), member=np.arange(4) % 2),
    "npz of dates": npz(score=np.zeros(4, "M8[s]"), member=np.arange(4) % 2),
    "npz of scalars": npz(score=1.0, member=1),
    "npz in and out": npz(in_canary_scores=np.arange(9.0), out_canary_scores=np.zeros((2, 2))),
    "npz of none out": npz(in_canary_scores=np.arange(9.0), out_canary_scores=np.zeros(0)),
    "npz cut short": npz(score=np.arange(40.0))[:-30],
    "an npy whose header never ends": npy(np.arange(9.0)).replace(b"}", b"{", 1),
    "npz of bad magic": archive(**{"score.npy": b"\x93NUMPX"}),
    "parquet magic": b"PAR1" + b"\0" * 20 + b"PAR1",
    "a spreadsheet": archive(**{"xl/workbook.xml": ""}),
    "html": b"<html><body>404</body></html>",
    "a pickle": b"\x80\x04N.",
    **{f"a score {text!r}": changed(3, 0, text) for text in TEXTS},
    **{f"a member {text!r}": changed(3, 1, text) for text in TEXTS[:7]},
}
OPTIONS = {
    "delta 1": ["--delta", "1"],
    "delta below 0": ["--delta", "-1e-5"],
    "delta nan": ["--delta", "nan"],
    "delta of text": ["--delta", "small"],
    "delta 0 of a Gaussian": ["--delta", "0", "--method", "one-run-fdp"],
    "confidence 1": ["--confidence", "1"],
    "confidence 0": ["--confidence", "0"],
    "nearly sure": ["--confidence", "0.9999999999"],
    "a method of another table": ["--method", "panoramia"],
    "labels": ["--method", "observational-label"],
    "zero-run": ["--method", "zero-run"],
    "observed": ["--membership", "observed"],
    "no such rule": ["--threshold", "best"],
    "no guess": ["--threshold", "guesses:0"],
    "more guesses than rows": ["--threshold", "guesses:1000"],
    "a cut at nan": ["--threshold", "nan"],
    "a cut above all": ["--threshold", "1e9"],
    "a split of all": ["--threshold", "split:1"],
    "a promise of one": ["--promise", "1"],
    "a promise below 0": ["--promise", "-1,1e-5"],
    "a promise of nothing": ["--promise", "0,0", "--membership", "randomised"],
    "half a theory": ["--steps", "3"],
    "no column": ["--column", "score=loss"],
    "no role": ["--column", "points=score"],
    "a loss": ["--column", "score=-score"],
    "a title without a report": ["--title", "x"],
    "a report over the scores": ["--report", "scores"],
    "a report on a folder": ["--report", "."],
    "others that are the same": ["--others", "scores"],
    "others that are not there": ["--others", "none"],
    "a decimal comma": ["--decimal", ","],
    "no such decimal": ["--decimal", ";"],
    "coins that are none": ["--coins", "scores"],
    "coins of others": ["--coins", "coins.json"],
    "a model that is not there": ["--model", "none", "--report", "a.html"],
    "a family": ["--family", "gaussian"],
}
CASES = {name: (content, []) for name, content in CONTENTS.items()}
CASES |= {name: (csv(), options) for name, options in OPTIONS.items()}


def answered(capsys, arguments):
    """Return the exit code; whatever is not understood ends the program with 2."""
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    told = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "Traceback" not in told.err
    if code == 0:
        assert "epsilon" in json.loads(told.out)
    else:
        assert len(told.err.split()) > 2, "a refusal says why"
        assert told.out == ""
    return code


@pytest.mark.parametrize("name", CASES)
def test_an_odd_input_gives_a_result_or_a_sentence(tmp_path, monkeypatch, capsys, name):
    content, options = CASES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scores").write_bytes(content)
    if "coins.json" in options:
        toss_coins(range(200), method="one-run").save("coins.json")
    answered(capsys, ["audit", "scores", "--json", *options])
    assert (tmp_path / "scores").read_bytes() == content
