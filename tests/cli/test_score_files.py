"""What comes out of a file is what is in it, or a sentence that says why not."""

import codecs
import hashlib
import sys
import zipfile

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from auditkit.cli import score_limits
from auditkit.cli.score_files import read_scores


@pytest.fixture
def write(tmp_path):
    def written(content, name="scores.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


def test_columns_are_known_by_their_names_in_any_order_and_case(write):
    table = read_scores(write("Member, text ,SCORE\n1,a,0.5\n0,b,-2e3\n"))
    assert table.score.tolist() == [0.5, -2000.0]
    assert table.member.tolist() == [True, False]
    assert dict(table.used) == {"score": "SCORE", "member": "Member"}
    assert table.headers == ("Member", " text ", "SCORE")
    assert len(table.sha256) == 64


def test_every_role_is_read(write):
    head = "id,score,member,propensity,baseline score,chosen label bit,placebo flag,feature a,x"
    table = read_scores(write(f"{head}\nq,1,in,0.5,2,0,1,7,8\nr,2,out,0.25,3,1,0,9,8\n"))
    assert table.propensity.tolist() == [0.5, 0.25]
    assert table.baseline.tolist() == [2.0, 3.0]
    assert table.chosen.tolist() == [False, True]
    assert table.placebo.tolist() == [True, False]
    assert table.features.tolist() == [[7.0], [9.0]]
    assert len(table.id) == 2


@pytest.mark.parametrize(
    "pair",
    [
        "0 1",
        "False True",
        "false TRUE",
        "out in",
        "no yes",
        "test train",
        "non-member member",
        "-1 1",
        "0.0 1.0",
        "Out IN",
    ],
)
def test_membership_is_written_in_many_ways(write, pair):
    no, yes = pair.split()
    table = read_scores(write(f"score,member\n1,{yes}\n2,{no}\n3,{yes}\n"))
    assert table.member.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("0", "2"), '"2"'),
        (("in", "0"), "written as one of"),
        (("maybe", "in"), '"maybe"'),
        (("nan", "1"), '"nan"'),
    ],
)
def test_membership_in_no_known_words_is_refused(write, words, told):
    with pytest.raises(ValueError, match="member must be written as one of") as caught:
        read_scores(write(f"score,member\n1,{words[0]}\n2,{words[1]}\n"))
    assert told in str(caught.value)


def test_a_membership_of_many_words_is_refused_early(write):
    rows = "".join(f"{row},word{row}\n" for row in range(300))
    with pytest.raises(ValueError, match="member must be one of two words"):
        read_scores(write(f"score,member\n{rows}"))


@pytest.mark.parametrize("start", [codecs.BOM_UTF8, b""])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_bom_delimiter_and_line_ends_do_not_matter(write, start, delimiter, end):
    lines = ["score,member", "0.5,1", "0.25,0", ""]
    text = end.join(lines).replace(",", delimiter)
    table = read_scores(write(start + text.encode()))
    assert table.score.tolist() == [0.5, 0.25]
    assert not table.notes


def test_utf_16_as_spreadsheets_write_it_is_read(write):
    table = read_scores(write("score\tmember\n0.5\t1\n1.5\t0\n".encode("utf-16")))
    assert table.score.tolist() == [0.5, 1.5]


def test_a_decimal_comma_is_asked_about_and_never_guessed(write):
    path = write("score;member\n0,5;1\n-1;0\n")
    with pytest.raises(ValueError, match="if its comma is the decimal point, say --decimal ,"):
        read_scores(path)
    table = read_scores(path, decimal=",")
    assert table.score.tolist() == [0.5, -1.0]
    assert "comma for the decimal point" in table.notes[0]
    assert read_scores(write("score\tmember\n0,5\t1\n1\t0\n"), decimal=",").score.tolist() == [
        0.5,
        1,
    ]
    for content, told in (
        ("score;member\n0,5;1\n0.5;0\n", "with --decimal , no number may have a point"),
        ("score;member\n1,000,0;1\n0,5;0\n", '"1,000,0" in row 1'),
    ):
        with pytest.raises(ValueError, match='"score" must hold numbers') as caught:
            read_scores(write(content), decimal=",")
        assert told in str(caught.value)


def test_a_point_that_may_part_thousands_is_asked_about(write):
    path = write("score;member\n1.234;1\n7;0\n12.345;1\n")
    with pytest.raises(ValueError, match=r"say --decimal \. if it stands before the fraction"):
        read_scores(path)
    assert read_scores(path, decimal=".").score.tolist() == [1.234, 7.0, 12.345]
    assert read_scores(write("score;member\n1.234;1\n0.5;0\n")).score.tolist() == [1.234, 0.5]
    assert read_scores(write("score,member\n1.234,1\n2.345,0\n")).score.tolist() == [1.234, 2.345]


def test_an_empty_cell_is_told_with_its_row_and_line(write):
    rows = [f"-0,{row};{row % 2}" for row in range(1, 31)]
    rows[17] = rows[20] = rows[25] = ";1"
    with pytest.raises(ValueError, match='"score" must hold numbers, got nothing') as caught:
        read_scores(write("\n".join(["score;member", *rows])), decimal=",")
    told = str(caught.value)
    assert "nothing in row 18 (line 19 of the file; 3 such in rows 1 to 30)" in told
    assert "cannot depend on membership" in told
    with pytest.raises(ValueError, match="member must not be empty") as caught:
        read_scores(write("\nsep=,\nscore,member\n1,1\n\n2, \n"))
    assert "row 2 (line 6 of the file)" in str(caught.value)


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "SEP=;\n"])
def test_what_a_spreadsheet_adds_is_passed_over(write, first):
    table = read_scores(write(f"{first}score;member\n0,5;1\n;\n1,5;0\n; \n"), decimal=",")
    assert table.score.tolist() == [0.5, 1.5]
    assert table.headers == ("score", "member")


def test_features_under_other_names_are_named_one_by_one(write):
    path = write("score,age,member,feature_a,note\n1,30,1,7,x\n2,40,0,8,y\n")
    table = read_scores(path)
    assert table.features.tolist() == [[7.0], [8.0]]
    assert table.unused == ["age", "note"]
    table = read_scores(path, ["feature=age", "score=-score"])
    assert table.features.tolist() == [[30.0, 7.0], [40.0, 8.0]]
    assert table.unused == ["note"]
    with pytest.raises(ValueError, match='no column is called "height"'):
        read_scores(path, ["feature=height"])
    with pytest.raises(ValueError, match="--column score must be given once"):
        read_scores(path, ["score=age", "score=score"])


def test_unicode_headers_and_quoted_fields_are_read(write):
    table = read_scores(write('ἐψιλον,"score","member","a, ""b"""\n"ü",1,"in",x\n"ß",2,"out",y\n'))
    assert table.headers == ("ἐψιλον", "score", "member", 'a, "b"')
    assert table.score.tolist() == [1.0, 2.0]


def test_a_column_of_another_name_is_named_and_a_loss_is_turned_round(write):
    path = write("loss,is_train\n0.5,1\n2,0\n")
    table = read_scores(path, ["score=-loss", "member=is_train"])
    assert table.score.tolist() == [-0.5, -2.0]
    assert dict(table.used) == {"score": "-loss", "member": "is_train"}
    with pytest.raises(ValueError, match='no column is called "gain"; found "loss", "is_train"'):
        read_scores(path, ["score=gain"])
    with pytest.raises(ValueError, match="--column must be as in score=-loss"):
        read_scores(path, ["points=loss"])
    with pytest.raises(ValueError, match="say --column score=NAME"):
        read_scores(path)


def test_a_column_may_serve_twice(write):
    table = read_scores(write("score,member\n0.5,1\n2,0\n"), ["baseline=score"])
    assert table.baseline.tolist() == table.score.tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        ("score,member\n", "no row"),
        ("0.1,1\n0.2,0\n", "must begin with the names"),
        ("score,member\nnan,1\n1,0\n", "finite numbers, got nan in row 1"),
        ("score,member\n1,1\ninf,0\n-inf,1\n", r"got inf in row 2 \(2 such in all\)"),
        ("score,member\n1e308,1\n1,0\n", "within ±1e\\+150, got 1e\\+308 in row 1"),
        ("score,member\n1,1\n,0\n", "got nothing in row 2"),
        ("score,member\n1,1\nabc,0\n", 'got "abc" in row 2'),
        ("score,member\n1,1\n2,0,3\n", "row 2 has 3 fields where the column names are 2"),
        ("score,member\n1,1\n2\n", "row 2 has 1 fields"),
        ("score,scores,member\n1,1,1\n", "two columns could be the score"),
        ("score,member,id\n1,1,a\n2,0,b\n3,0,a\n", "same one in rows 1 and 3"),
        ("score,member,propensity\n1,1,1.0\n2,0,0.5\n", "strictly between 0 and 1, got 1 in row 1"),
        (b"score,member\n\xff\xfe1,1\n", "must be text in UTF-8"),
        (b"score,member\n1,\x001\n\x00,2\n", "member must be written|CSV|numbers"),
        ('score,member\n"1,1\n', "is no CSV file"),
        (b"PK\x03\x04 not a zip", "is no NPZ file"),
        (b"PK\x05\x06" + bytes(18), "no column is called score"),
        ("score,score,member\n1,1,1\n2,2,0\n", "give one another name"),
        (b"PAR1", "scores.csv is no Parquet file that can be read"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(write, content, told):
    with pytest.raises(ValueError, match=told):
        read_scores(write(content))


def test_control_characters_do_not_reach_the_terminal(write):
    with pytest.raises(ValueError, match="no column is called score") as caught:
        read_scores(write("\x1b[31mred,b\n1,2\n"))
    assert "\x1b" not in str(caught.value)
    assert "\\x1b[31mred" in str(caught.value)


def test_rows_beyond_a_chunk_keep_their_numbers(write):
    rows = [f"{row / 7},{row % 2},r{row}" for row in range(45_000)]
    head = "score,member,id\n"
    table = read_scores(write(head + "\n".join(rows)))
    assert np.allclose(table.score, np.arange(45_000) / 7)
    assert table.member.sum() == 22_500
    rows[41_234] = "x,0,r41234"
    with pytest.raises(ValueError, match='got "x" in row 41235'):
        read_scores(write(head + "\n".join(rows)))
    rows[41_234] = "1,0,r7"
    with pytest.raises(ValueError, match="same one in rows 8 and 41235"):
        read_scores(write(head + "\n".join(rows)))


def test_what_ml_privacy_meter_writes_is_read_as_it_is(tmp_path):
    rng = np.random.default_rng(0)
    scores, members = rng.normal(size=40).astype(np.float32), rng.random(40) < 0.5
    curve = {"fpr": np.linspace(0.0, 1.0, 7), "tpr": np.linspace(0.0, 1.0, 7)}
    shares = {name: np.float64(0.5) for name in ("auc", "one_tenth_fpr", "zero_fpr")}
    path = tmp_path / "attack_result_0.npz"
    np.savez(path, **curve, **shares, scores=scores, memberships=members)
    table = read_scores(path)
    assert dict(table.used) == {"score": "scores", "member": "memberships"}
    np.testing.assert_array_equal(table.score, scores)
    np.testing.assert_array_equal(table.member, members)


def test_npz_gives_what_csv_gives(tmp_path):
    rng = np.random.default_rng(0)
    scores, members, features = rng.normal(size=50), rng.random(50) < 0.5, rng.normal(size=(50, 2))
    np.savez(tmp_path / "a.npz", score=scores, member=members, features=features, id=np.arange(50))
    table = read_scores(tmp_path / "a.npz")
    assert (table.score == scores).all()
    assert (table.member == members).all()
    assert (table.features == features).all()
    for kind in (members.astype(int), members.astype(float), np.where(members, "in", "out")):
        np.savez_compressed(tmp_path / "b.npz", score=scores, member=kind)
        assert (read_scores(tmp_path / "b.npz").member == members).all()


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"score": np.ones((3, 2)), "member": np.ones(3)}, "must have 1 dimension"),
        ({"score": np.ones(3), "member": np.array([0, 1])}, "same length"),
        ({"score": np.array([1, None]), "member": np.array([0, 1])}, "is no NPZ file of plain"),
        ({"score": np.array(["a", "b"]), "member": np.array([0, 1])}, "must hold numbers"),
        ({"score": np.array([1.0, np.nan]), "member": np.array([0, 1])}, "got nan in row 2"),
        ({"score": np.ones(2), "member": np.array([0, 1]), "id": np.zeros(2)}, "must not repeat"),
        ({"score": np.ones(300), "member": np.arange(300)}, "one of two words"),
        ({"score": np.ones(3), "member": np.zeros(3, [("a", int)])}, "numbers or words"),
        ({"score": np.ones(2), "member": [0, 1], "id": [np.nan, np.nan]}, "must not repeat"),
    ],
)
def test_bad_arrays_are_told_in_a_sentence(tmp_path, arrays, told):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=told):
        read_scores(tmp_path / "a.npz")


def test_parquet_without_pyarrow_says_what_it_takes(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)  # as if it were not installed
    with pytest.raises(ImportError, match="takes pyarrow: pip install pyarrow"):
        read_scores(write(b"PAR1....", "scores.parquet"))


def test_parquet_gives_what_csv_gives(tmp_path):
    columns = {"score": [0.5, 1.5], "member": [True, False], "id": ["a", "b"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    table = read_scores(tmp_path / "a.parquet")
    assert table.score.tolist() == [0.5, 1.5]
    assert table.member.tolist() == [True, False]


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(st.floats(-1e150, 1e150), st.booleans()), min_size=1),
    delimiter=st.sampled_from(",;\t"),
)
def test_numbers_come_back_to_the_last_bit(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.mktemp("scores") / "a.csv"
    lines = [f"score{delimiter}member", *(f"{score!r}{delimiter}{flag}" for score, flag in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read_scores(path)
    assert table.score.tolist() == [score for score, _ in rows]
    assert table.member.tolist() == [flag for _, flag in rows]


def test_an_archive_of_anything_else_is_told_in_a_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("score", "no array")
        file.writestr("member", "nor this")
    with pytest.raises(ValueError, match="must have 1 dimension"):
        read_scores(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"id": ["a", None, "b"]}, '"id" must not be empty, got nothing in row 2'),
        ({"id": [1, None, None]}, r'"id" must not be empty, got nothing in row 2 \(2 such in all'),
        ({"member": [True, False, None]}, '"member" must not be empty, got nothing in row 3'),
        ({"score": [None, 1.0, 2.0]}, "Leave such rows out only if"),
    ],
)
def test_an_empty_cell_of_a_parquet_file_is_told_with_its_row(tmp_path, columns, told):
    table = {"score": [0.5, 1.5, 2.5], "member": [True, False, True]} | columns
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=told):
        read_scores(tmp_path / "a.parquet")


def test_parquet_columns_of_one_name_matter_only_where_they_are_used(tmp_path):
    for name in ("feature", "text"):
        arrays = [pyarrow.array([1.0, 2.0])] * 4
        table = pyarrow.table(arrays, names=["score", "propensity_", name, name])
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    assert read_scores(tmp_path / "text.parquet").score.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match='two columns are called "feature"'):
        read_scores(tmp_path / "feature.parquet")


def test_more_rows_than_memory_should_hold_are_refused_early(write, tmp_path, monkeypatch):
    monkeypatch.setattr(score_limits, "MOST_ROWS", 3)
    numbers = np.arange(4.0)
    np.savez(tmp_path / "a.npz", score=numbers)
    parquet.write_table(pyarrow.table({"score": numbers}), tmp_path / "a.parquet")
    for path in (write("score\n0\n1\n2\n3\n"), tmp_path / "a.npz", tmp_path / "a.parquet"):
        with pytest.raises(ValueError, match=r"more than 3 rows .* by chance"):
            read_scores(path)
    assert len(read_scores(write("score\n0\n1\n2\n"))) == 3


def test_the_hash_is_that_of_the_file_and_an_empty_id_is_no_id(write):
    path = write("id,score,member\na,1,1\n,2,0\n")
    with pytest.raises(ValueError, match="id must not be empty, got nothing in row 2"):
        read_scores(path)
    path = write("id,score,member\na,1,1\nb,2,0\n")
    assert read_scores(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_pandas_cannot_read_is_read_row_by_row(write):
    quoted = 'score,member,text\n1,in,"two\nlines"\n\n" 2 ",out,x\n'
    assert read_scores(write(quoted)).score.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r'got "y" in row 2 \(line 5 of the file\)'):
        read_scores(write(quoted.replace(" 2 ", "y")))


def test_an_array_of_too_many_rows_takes_no_memory(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", score=np.zeros(50), member=np.zeros(50), x=np.zeros(99))
    monkeypatch.setattr(score_limits, "MOST_ROWS", 50)
    assert read_scores(tmp_path / "a.npz").score.size == 50
    monkeypatch.setattr(score_limits, "MOST_ROWS", 49)
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", None)
    with pytest.raises(ValueError, match="more than 49 rows"):
        read_scores(tmp_path / "a.npz")
