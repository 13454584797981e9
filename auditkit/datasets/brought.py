"""Read the files that you bring yourself, each in its published format.

A reader takes a path and, where files are long, how many rows to read.
"""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np

from . import table
from .readers import NEGATIVE_POSITIVE, Content

CRITEO_NUMBERS = [f"I{number}" for number in range(1, 14)]
CRITEO_CATEGORIES = [f"C{number}" for number in range(1, 27)]
NEWS = ("World", "Sports", "Business", "Sci/Tech")
SPLITS = ("train", "val", "test", "id_val", "id_test")


def criteo(path: Path, rows: int | None = None) -> Content:
    """Read one day, or a folder of days; `rows` are those of each day."""
    found = sorted(path.glob("day_*"), key=_day) if path.is_dir() else [path]
    if not found:
        raise FileNotFoundError(f"{path} has no file called day_0, day_1, …")
    names = ["label", *CRITEO_NUMBERS, *CRITEO_CATEGORIES]
    pieces: dict[str, list[Any]] = {"numbers": [], "categories": [], "labels": [], "days": []}
    kinds = dict.fromkeys(CRITEO_NUMBERS, float)
    options = {"sep": "\t", "quoting": csv.QUOTE_NONE, "nrows": rows}
    for file in found:
        frame = table.read_csv(file, names, kinds=kinds, missing=CRITEO_NUMBERS, **options)
        pieces["labels"].append(table.labels(frame["label"], {"0": 0, "1": 1}, file))
        pieces["numbers"].append(table.numbers(frame[CRITEO_NUMBERS], file, missing=True))
        hashed = [_hexadecimal(frame[name], name, file) for name in CRITEO_CATEGORIES]
        pieces["categories"].append(np.stack(hashed, axis=1))
        pieces["days"].append(np.full(len(frame), _day(file)))
    return {
        "arrays": {name: np.concatenate(parts) for name, parts in pieces.items()},
        "feature_names": (*CRITEO_NUMBERS, *CRITEO_CATEGORIES),
        "class_names": ("no click", "click"),
        "description": "Missing numbers are NaN, missing categories -1; a day of -1 is unknown.",
    }


def _day(path: Path) -> int:
    number = re.match(r"day_(\d+)", path.name)
    return int(number[1]) if number else -1


def _hexadecimal(column: Any, name: str, path: Path) -> Any:
    import pandas as pd

    codes, texts = pd.factorize(column)
    wrong = [text for text in texts if not re.fullmatch("[0-9a-fA-F]{0,8}", text)]
    if wrong:
        raise ValueError(
            f"column {name!r} of {path.name} must hold hexadecimal numbers of up to 8 digits, "
            f"got {wrong[0]!r}"
        )
    values = [int(text, 16) if text else -1 for text in texts]
    return np.array(values, np.int64)[codes]


def purchase100(path: Path, rows: int | None = None) -> Content:
    """Read `dataset_purchase`: a class from 1 to 100, then 600 times 0 or 1."""
    features = [f"product {number}" for number in range(1, 601)]
    kinds = dict.fromkeys(features, np.uint8)
    frame = table.read_csv(path, ["class", *features], kinds=kinds, nrows=rows)
    values = frame[features].to_numpy(np.uint8)
    if values.max(initial=0) > 1:
        raise ValueError(f"{path.name} must hold 0 and 1 only, got {values.max()}")
    classes = {str(number): number - 1 for number in range(1, 101)}
    return {
        "arrays": {
            "features": values,
            "labels": table.labels(frame["class"], classes, path),
        },
        "feature_names": tuple(features),
    }


def sst2(path: Path, rows: int | None = None) -> Content:
    """Read `train.tsv` or `dev.tsv`."""
    frame = table.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, nrows=rows)
    table.need(frame, ["sentence", "label"], path)
    return {
        "arrays": {
            "texts": table.texts(frame["sentence"]),
            "labels": table.labels(frame["label"], {"0": 0, "1": 1}, path),
        },
        "class_names": NEGATIVE_POSITIVE,
    }


def agnews(path: Path, rows: int | None = None) -> Content:
    """Read `train.csv` or `test.csv`: class, title, description."""
    frame = table.read_csv(path, ["class", "title", "description"], nrows=rows)
    classes = {str(number + 1): number for number in range(len(NEWS))}
    return {
        "arrays": {
            "titles": table.texts(frame["title"]),
            "texts": table.texts(frame["description"]),
            "labels": table.labels(frame["class"], classes, path),
        },
        "class_names": NEWS,
    }


def twitter_sentiment(path: Path, rows: int | None = None) -> Content:
    """Read `twitter_dataset.csv`; which code is which sentiment its author does not say."""
    frame = table.read_csv(path, nrows=rows)
    table.need(frame, ["tweet", "sentiment"], path)
    words = {"negative": 0, "neutral": 1, "positive": 2}
    codes = {str(number): number for number in range(3)}
    values = frame["sentiment"].str.removesuffix(".0")
    worded = values.isin(words).all()
    return {
        "arrays": {
            "texts": table.texts(frame["tweet"]),
            "labels": table.labels(values, words if worded else codes, path),
        },
        "class_names": tuple(words) if worded else tuple(codes),
    }


def wikitext(path: Path) -> Content:
    """Read articles: a line ``= Title =`` begins one, lines with more signs are its sections."""
    titles: list[str] = []
    bodies: list[list[str]] = []
    for line in path.read_text(encoding="utf-8-sig").split("\n"):
        title = re.fullmatch(r" = ([^=].*[^=]|[^=]) = ", line)
        if title:
            titles.append(title[1])
            bodies.append([])
        elif bodies:
            bodies[-1].append(line)
        elif line.strip():
            raise ValueError(f"{path.name} must begin with a title ' = … = ', got {line[:40]!r}")
    if not titles:
        raise ValueError(f"{path.name} holds no article")
    texts = ["\n".join(body).strip() for body in bodies]
    return {"arrays": {"titles": table.texts(titles), "texts": table.texts(texts)}}


def iwildcam(path: Path, rows: int | None = None) -> Content:
    """Read `metadata.csv`, or the folder that holds it."""
    path = path / "metadata.csv" if path.is_dir() else path
    kinds = {"y": float, "location_remapped": float}
    frame = table.read_csv(path, kinds=kinds, nrows=rows)
    table.need(frame, ["split", "filename", "y", "location_remapped", "datetime"], path)
    numbers = table.whole_numbers(frame[["y", "location_remapped"]], path)
    try:
        moments = frame["datetime"].to_numpy(str).astype("datetime64[s]")
    except ValueError:
        raise ValueError(f"column 'datetime' of {path.name} must hold dates and times") from None
    splits = {name: code for code, name in enumerate(SPLITS)}
    return {
        "arrays": {
            "filenames": table.texts(frame["filename"]),
            "labels": table.in_range(numbers[:, 0], 182, path),
            "locations": numbers[:, 1],
            "moments": moments,
            "splits": table.labels(frame["split"], splits, path),
        },
        "categories": {"splits": SPLITS},
    }
