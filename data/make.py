"""Make the data that ship in this folder, from the complete datasets.

    python data/make.py                       all of them
    python data/make.py fashion_mnist census  some of them

Needs the complete datasets (`auditkit data fetch`) and the packages of the encoders. Features take
5 minutes on one core the first time, and are kept in the cache. The rest takes a minute.
"""

import sys

import numpy as np
import torch
from numpy.typing import NDArray

from auditkit.datasets import load
from auditkit.datasets.shipped import write
from auditkit.models.encoders import encode

SEED = 0
DIRECTIONS = 256
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


if __name__ == "__main__":
    torch.set_num_threads(1)  # with more, sums come out in another order
    sets = {made.__name__: made for made in (fashion_mnist, cifar10, census, film_sentences)}
    for name in sys.argv[1:] or sets:
        sets[name]()
