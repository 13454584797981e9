"""Make the data that ship in this folder, from the complete datasets.

    python data/make.py                       all of them
    python data/make.py fashion_mnist census  some of them

Needs the complete datasets (`auditkit data fetch`) and the packages of the encoders. Features take
12 minutes on one core the first time, and are kept in the cache. The rest takes a minute.
"""

import itertools
import sys

import numpy as np
import torch
from numpy.typing import NDArray

from auditkit.datasets import load
from auditkit.datasets.shipped import write
from auditkit.models.encoders import encode

SEED = 0
DIRECTIONS = 256
BY = "Made by data/make.py."


def draw(labels: NDArray[np.int64], *each: int) -> list[NDArray[np.int32]]:
    """Return disjoint stratified samples, `each` of a class, in the original order."""
    rng = np.random.default_rng(SEED)
    classes = [rng.permutation(np.flatnonzero(labels == c)) for c in np.unique(labels)]
    ends = np.cumsum((0, *each))
    picked = [np.concatenate([c[a:b] for c in classes]) for a, b in itertools.pairwise(ends)]
    return [np.sort(rows).astype(np.int32) for rows in picked]


def fashion_mnist() -> None:
    """Keep a part of Fashion-MNIST, with as many images of each class."""
    whole = load("fashion-mnist", part="complete")
    arrays = {}
    for split, each in (("train", 2000), ("test", 400)):
        (rows,) = draw(whole[f"{split}_labels"], each)
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
    """Encode a part of CIFAR-10, and keep the directions in which other images of it vary most."""
    whole = load("cifar10", part="complete")
    train, others = draw(whole["train_labels"], 2000, 300)
    (test,) = draw(whole["test_labels"], 400)
    public = encode("efficientnet-lite0", whole["train_images"][others])
    mean = public.mean(axis=0)
    directions = np.linalg.svd(public - mean, full_matrices=False)[2][:DIRECTIONS]
    # a direction and its opposite are the same: make the largest entry positive
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.sign(directions[np.arange(DIRECTIONS), largest])[:, None]
    arrays = {"mean": mean, "directions": directions, "others_index": others}
    for split, rows in (("train", train), ("test", test)):
        features = encode("efficientnet-lite0", whole[f"{split}_images"][rows])
        arrays[f"{split}_features"] = ((features - mean) @ directions.T).astype(np.float16)
        arrays[f"{split}_labels"] = whole[f"{split}_labels"][rows]
        arrays[f"{split}_index"] = rows
    write(
        "cifar10",
        "features",
        arrays,
        what="Features of 2,000 training and 400 test images of each class, drawn with seed 0, by "
        "the frozen ImageNet network EfficientNet-lite0 (1,280 numbers), less `mean` and along "
        "the 256 principal `directions` of 3,000 other training images. The indices are places "
        "in the original order.",
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
