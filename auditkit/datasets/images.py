"""Read the formats in which images are published: IDX and the batches of CIFAR-10."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IMAGES, LABELS = 0x0803, 0x0801  # unsigned bytes, in 3 dimensions and in 1
RECORD = 1 + 3 * 32 * 32  # a label, then red, green and blue, row by row
BATCH = 10_000


def idx(path: Path, magic: int) -> NDArray[np.uint8]:
    """Return the array in an IDX file."""
    content = path.read_bytes()
    dimensions = magic & 0xFF
    start = 4 * (1 + dimensions)
    head = np.frombuffer(content[:start], ">u4") if len(content) >= start else np.zeros(1, ">u4")
    shape = tuple(int(number) for number in head[1:])
    if head[0] != magic or len(content) - start != np.prod(shape):
        raise ValueError(
            f"{path.name} is no IDX file of {dimensions} dimension(s), or it is cut short"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images, with their channels last, and labels of a batch of CIFAR-10."""
    content = np.fromfile(path, np.uint8)
    if len(content) == 0 or len(content) % RECORD:
        raise ValueError(
            f"{path.name} has {len(content):,} bytes, no multiple of {RECORD}: it is no batch of "
            "CIFAR-10, or it is cut short"
        )
    records = content.reshape(-1, RECORD)
    images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), records[:, 0].copy()


def batches_from_png(folder: Path) -> None:
    """Turn the pictures that the npm package has into the batches as they were published.

    There a row of a picture is an image, and the labels lie in a list beside it. The outcome has
    the published hashes.
    """
    from PIL import Image

    labels = {
        split: np.array(json.loads((folder / f"{split}_labels.json").read_text()), np.uint8)
        for split in ("train", "test")
    }
    for path in sorted(folder.glob("*.png")):
        split, number = ("test", 0) if "test" in path.name else ("train", int(path.stem[-1]) - 1)
        with Image.open(path) as picture:
            images = np.asarray(picture).reshape(-1, 32, 32, 3)
        own = labels[split][number * BATCH : (number + 1) * BATCH]
        planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        np.concatenate([own[:, None], planes], axis=1).tofile(path.with_suffix(".bin"))
        path.unlink()
