"""Make the data that ship in this folder, from the complete datasets.

    python data/make.py                       all of them
    python data/make.py fashion_mnist census  some of them

Needs the complete datasets (`auditkit data fetch`) and the packages of the encoders. Features take
5 minutes on one core the first time, and are kept in the cache. `adult_mst` needs dpmm 0.1.9 in an
environment of its own, whose Python the variable MST_PYTHON names, and ten minutes. The rest takes
a minute.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from auditkit.datasets import load
from auditkit.datasets.result import Dataset
from auditkit.datasets.shipped import write
from auditkit.models.encoders import encode

SEED = 0
DIRECTIONS = 256
SPARE, MADE = 5_000, 18_000  # people of Adult that MST is fitted to, and that it makes
STEPS = 100  # of a column of Adult with more values
SEEN = 3000  # training images that decide the mean and the directions
SPLITS = ("train", "test")
BY = "Made by data/make.py."


def draw(labels: NDArray[np.int64], each: int) -> NDArray[np.int32]:
    """Return a stratified sample, `each` of a class, in the original order."""
    rng = np.random.default_rng(SEED)
    classes = [rng.permutation(np.flatnonzero(labels == c)) for c in np.unique(labels)]
    return np.sort(np.concatenate([c[:each] for c in classes])).astype(np.int32)


def fashion_mnist() -> None:
    """Keep a part of Fashion-MNIST, with as many images of each class."""
    whole = load("fashion-mnist", part="complete")
    arrays = {}
    for split, each in zip(SPLITS, (2000, 400), strict=True):
        rows = draw(whole[f"{split}_labels"], each)
        arrays[f"{split}_images"] = whole[f"{split}_images"][rows]
        arrays[f"{split}_labels"] = whole[f"{split}_labels"][rows]
        arrays[f"{split}_index"] = rows
    write(
        "fashion-mnist",
        "small",
        arrays,
        what="2,000 training and 400 test images of each class, drawn with seed 0; the indices are "
        "their places in the original order.",
        made_by=BY,
        class_names=whole.class_names,
    )


def cifar10() -> None:
    """Encode CIFAR-10, and keep the directions in which its first images vary most."""
    whole = load("cifar10", part="complete")
    features = {split: encode("efficientnet-lite0", whole[f"{split}_images"]) for split in SPLITS}
    seen = features["train"][:SEEN]
    mean = seen.mean(axis=0)
    directions = np.linalg.svd(seen - mean, full_matrices=False)[2][:DIRECTIONS]
    # a direction and its opposite are the same: make the largest entry positive
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.sign(directions[np.arange(DIRECTIONS), largest])[:, None]
    along = {split: (features[split] - mean) @ directions.T for split in SPLITS}
    farthest = np.max([np.abs(found).max(axis=0) for found in along.values()], axis=0)
    scale = (farthest / np.iinfo(np.int8).max).astype(np.float32)
    arrays = {"mean": mean, "directions": directions}
    for split, found in along.items():
        arrays[f"{split}_features"] = np.rint(found / scale).astype(np.int8)
        arrays[f"{split}_labels"] = whole[f"{split}_labels"]
    write(
        "cifar10",
        "features",
        arrays,
        scale=scale,
        what="Features of all images in the original order, by the frozen ImageNet network "
        "EfficientNet-lite0 (1,280 numbers), less `mean` and along the 256 principal `directions` "
        "of the first 3,000 training images; each direction is kept in 255 even steps.",
        made_by=BY,
        class_names=whole.class_names,
    )


def census() -> None:
    """Keep all rows of Census-Income, as whole numbers."""
    whole = load("census-income", part="complete")
    arrays = {}
    for name, array in whole.arrays.items():
        if name.endswith("features"):
            numbers = array.astype(np.int32)
            assert (numbers == array).all()
            arrays[name] = np.asfortranarray(numbers)  # columns pack better than rows
        else:
            arrays[name] = array.astype(np.float32) if name.endswith("weights") else array
    write(
        "census-income",
        "small",
        arrays,
        what="All rows of both years, as 32-bit numbers. " + whole.description,
        made_by=BY,
        feature_names=whole.feature_names,
        class_names=whole.class_names,
        categories=whole.categories,
    )


def film_sentences() -> None:
    """Encode the film sentences."""
    whole = load("film-sentences", part="complete")
    write(
        "film-sentences",
        "embeddings",
        {
            "embeddings": encode("all-minilm-l6-v2", list(whole["texts"])).astype(np.float16),
            "labels": whole["labels"],
        },
        what="Embeddings of all sentences, in the original order, by the frozen sentence encoder "
        "all-MiniLM-L6-v2 (384 numbers, length 1), and labels. The sentences are not shipped.",
        made_by=BY,
        class_names=whole.class_names,
    )


def adult_mst() -> None:
    """Keep Adult as codes, and what MST makes of some members in each of five deals."""
    whole = load("adult", part="complete")
    columns = [_codes(column) for column in _both(whole, "features").T]
    people = np.column_stack((*columns, _both(whole, "labels"))).astype(np.uint8)
    spare = np.stack(
        [np.random.default_rng((seed, 21)).permutation(len(people))[:SPARE] for seed in range(5)]
    )
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "given.npz"), Path(folder, "made.npz")
        levels = 1 + people.max(axis=0).astype(np.int64)
        np.savez(given, tables=people[spare], levels=levels, number=MADE)
        script = Path(__file__).with_name("make_mst.py")
        subprocess.run([os.environ["MST_PYTHON"], script, given, made], check=True)
        with np.load(made) as content:
            drawn = content["made"]
    write(
        "adult",
        "mst",
        {"people": people, "spare": spare.astype(np.int32), "made": drawn},
        what="All 48,842 people as codes, the label last: a column of over 100 values in 100 even "
        "steps, any other by its values in order. For each of five deals `spare`, the people that "
        f"MST was fitted to at ε = 1,000, and `made`, {MADE:,} people drawn from it.",
        made_by="Made by data/make.py and data/make_mst.py (PyPI `dpmm` 0.1.9, Apache-2.0).",
        feature_names=whole.feature_names,
        class_names=whole.class_names,
    )


def _both(whole: Dataset, name: str) -> NDArray[Any]:
    return np.concatenate([whole[f"{split}_{name}"] for split in SPLITS])


def _codes(column: NDArray[Any]) -> NDArray[Any]:
    values, codes = np.unique(column, return_inverse=True)
    if len(values) <= STEPS:
        return codes
    shares = (column - values[0]) / (values[-1] - values[0])
    return np.minimum(shares * STEPS, STEPS - 1).astype(int)


if __name__ == "__main__":
    torch.set_num_threads(1)  # with more, sums come out in another order
    sets = {
        made.__name__: made for made in (fashion_mnist, cifar10, census, film_sentences, adult_mst)
    }
    for name in sys.argv[1:] or sets:
        sets[name]()
