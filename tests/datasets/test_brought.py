"""Files that users bring are read in their published format."""

import gzip
import itertools

import numpy as np
import pytest

from auditkit.datasets import CARDS, load

CRITEO = "\t".join(["1", *map(str, range(1, 13)), "", *["0000000f"] * 24, "12345678", ""])
PURCHASE = ",".join(["100", *["0", "1"] * 300])


def brought(tmp_path, dataset, text, name="file", **options):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load(dataset, path=path, **options)


def test_a_day_of_criteo_is_read(tmp_path):
    data = brought(tmp_path, "criteo", f"{CRITEO}\n0{CRITEO[1:]}\n", "day_3")
    assert data["labels"].tolist() == [1, 0]
    assert data["numbers"].shape == (2, 13)
    assert data["numbers"][0, :2].tolist() == [1, 2]
    assert np.isnan(data["numbers"][:, 12]).all()
    assert data["categories"][0, [0, 24, 25]].tolist() == [15, 0x12345678, -1]
    assert data["days"].tolist() == [3, 3]
    assert len(data.feature_names) == 39


def test_days_of_criteo_are_read_in_their_order_gzipped_or_not(tmp_path):
    (tmp_path / "day_10").write_text(f"{CRITEO}\n" * 3)
    (tmp_path / "day_2.gz").write_bytes(gzip.compress(f"{CRITEO}\n".encode()))
    assert load("criteo", path=tmp_path)["days"].tolist() == [2, 10, 10, 10]
    assert load("criteo", path=tmp_path, rows=1)["days"].tolist() == [2, 10]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="has no file called day_0"):
        load("criteo", path=tmp_path / "empty")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CRITEO.rpartition("\t")[0], "must have 40 columns and no header row, got 39"),
        (CRITEO.replace("\t2\t", "\tnan\t"), "column 'I2' of file .* got 'nan' in row 1"),
        (CRITEO.replace("12345678", "hello"), "column 'C25' .* must hold hexadecimal .* 'hello'"),
        (CRITEO.replace("12345678", "-1"), "column 'C25' .* must hold hexadecimal .* '-1'"),
        (CRITEO.replace("12345678", "123456789"), "of up to 8 digits, got '123456789'"),
        ("2" + CRITEO[1:], "must be one of '0', '1', got '2'"),
    ],
    ids=itertools.count(),
)
def test_criteo_that_is_odd_is_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        brought(tmp_path, "criteo", text)


def test_purchase100_is_read(tmp_path):
    data = brought(tmp_path, "purchase100", f"{PURCHASE}\n1{PURCHASE[3:]}\n", "dataset_purchase")
    assert data["features"].shape == (2, 600)
    assert data["features"].dtype == np.uint8
    assert data["features"][0, :3].tolist() == [0, 1, 0]
    assert data["labels"].tolist() == [99, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PURCHASE + ",0", "must have 601 columns and no header row, got 602"),
        ("0" + PURCHASE[3:], "label in row 1 .* got '0'"),
        (PURCHASE[:-1] + "7", "must hold 0 and 1 only, got 7"),
        (PURCHASE[:-1] + "0.5", "column 'product 600' .* got '0.5' in row 1"),
        (PURCHASE[:-1], "column 'product 600' .* got '' in row 1"),
    ],
    ids=itertools.count(),
)
def test_purchase100_that_is_odd_is_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        brought(tmp_path, "purchase100", text)


def test_sst2_is_read_with_its_quotes(tmp_path):
    text = 'sentence\tlabel\na "fine film \t1\nNA\t0\n'
    data = brought(tmp_path, "sst2", text, "train.tsv")
    assert data["texts"].tolist() == ['a "fine film ', "NA"]
    assert data["labels"].tolist() == [1, 0]
    with pytest.raises(ValueError, match="must be one of '0', '1', got '-1'"):
        brought(tmp_path, "sst2", "sentence\tlabel\nx\t-1\n")
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'label'; it has index, sentence"):
        brought(tmp_path, "sst2", "index\tsentence\n0\tx\n", "test.tsv")


def test_agnews_is_read(tmp_path):
    text = '"3","Wall St. Bears","Short-sellers, ""ultra-cynics"""\n"1","World","News"\n'
    data = brought(tmp_path, "agnews", text, "train.csv")
    assert data["labels"].tolist() == [2, 0]
    assert data["texts"].tolist() == ['Short-sellers, "ultra-cynics"', "News"]
    assert data.class_names[2] == "Business"
    with pytest.raises(ValueError, match="must be one of '1', '2', '3', '4', got '5'"):
        brought(tmp_path, "agnews", '"5","a","b"\n')


def test_tweets_are_read_by_code_or_word(tmp_path):
    data = brought(tmp_path, "twitter-sentiment", "tweet,sentiment\nhi,0\nho,2.0\n")
    assert data["labels"].tolist() == [0, 2]
    assert data.class_names == ("0", "1", "2")
    data = brought(
        tmp_path, "twitter-sentiment", "id,tweet,sentiment\n9,hi,positive\n8,ho,neutral\n"
    )
    assert data["labels"].tolist() == [2, 1]
    assert data.class_names == ("negative", "neutral", "positive")
    with pytest.raises(ValueError, match="got '4'"):
        brought(tmp_path, "twitter-sentiment", "tweet,sentiment\nhi,4\n")


def test_articles_are_cut_at_their_titles(tmp_path):
    text = " \n = R. Boulter = \n \n Actor . \n = = Life = = \n In 2000 . \n = Q = \n Last . \n"
    data = brought(tmp_path, "wikitext", text, "wiki.train.tokens")
    assert data["titles"].tolist() == ["R. Boulter", "Q"]
    assert data["texts"].tolist() == ["Actor . \n = = Life = = \n In 2000 .", "Last ."]
    assert brought(tmp_path, "wikitext", "\ufeff" + text[2:])["titles"].tolist() == [
        "R. Boulter",
        "Q",
    ]
    with pytest.raises(ValueError, match="must begin with a title"):
        brought(tmp_path, "wikitext", "words\n = Title = \n")
    with pytest.raises(ValueError, match="holds no article"):
        brought(tmp_path, "wikitext", "\n")


WILD = ",split,location_remapped,location,sequence_remapped,datetime,y,filename\n"
PHOTO = "0,id_test,7,9,3,2013-08-22 06:30:00,24,a.jpg\n"


def test_photographs_are_described(tmp_path):
    (tmp_path / "metadata.csv").write_text(WILD + PHOTO)
    for path in (tmp_path, tmp_path / "metadata.csv"):
        data = load("iwildcam", path=path)
        assert data["labels"].tolist() == [24]
        assert data["locations"].tolist() == [7]
        assert data["moments"][0] == np.datetime64("2013-08-22T06:30:00")
        assert data.categories["splits"][data["splits"][0]] == "id_test"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WILD.replace("datetime", "time") + PHOTO, r"lacks the column\(s\) 'datetime'"),
        (WILD + PHOTO.replace("24", "182"), "must lie in 0 to 181, got 182"),
        (WILD + PHOTO.replace("id_test", "dev"), "must be one of 'train', .* got 'dev'"),
        (WILD + PHOTO.replace("2013-08-22 06:30:00", "noon"), "must hold dates and times"),
        (WILD + PHOTO.replace("24", "1.5"), "must hold whole numbers of at least 0, got 1.5"),
        (WILD + PHOTO.replace("24", "nan"), "column 'y' .* got 'nan' in row 1"),
    ],
    ids=itertools.count(),
)
def test_photographs_that_are_odd_are_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        brought(tmp_path, "iwildcam", text)


@pytest.mark.parametrize("name", [name for name, card in CARDS.items() if not card.files])
def test_without_a_path_it_says_what_to_bring(name, tmp_path):
    with pytest.raises(
        ValueError, match=rf"{name} cannot be fetched: bring .*load\(\"{name}\", pa"
    ):
        load(name)
    with pytest.raises(FileNotFoundError, match="must be a file or a folder"):
        load(name, path=tmp_path / "nowhere")


@pytest.mark.parametrize("rows", [0, -1, 1.5, "all", True])
def test_rows_must_be_a_whole_number(rows, tmp_path):
    with pytest.raises(ValueError, match="rows must be a whole number of at least 1, got"):
        brought(tmp_path, "sst2", "sentence\tlabel\nx\t1\n", rows=rows)


def test_an_option_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TypeError, match="sst2 takes rows, got 'columns'"):
        brought(tmp_path, "sst2", "sentence\tlabel\nx\t1\n", columns=2)
    with pytest.raises(TypeError, match="wikitext takes no options, got 'rows'"):
        brought(tmp_path, "wikitext", " = T = \n", rows=2)
