"""The small copies that ship in `data`: what lies there, and how to read and write it.

A part is one file ``data/<dataset>-<part>.npz``: arrays by name, compressed, no pickle. The part
called ``small`` is ``data/<dataset>.npz``, and has the same arrays as the complete dataset, only
fewer rows. More arrays may stand beside the data: ``_feature_names``, ``_class_names``,
``_categories`` (JSON) and ``_scale``, a number a column by which every array of 8 bits with a sign
is multiplied. The manifest ``data/shipped.json`` has the hash of each file, its size, its licence
and what made it; nothing is read that it does not name.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditkit import _check

from . import store
from .cards import File, Part
from .catalogue import CARDS
from .result import Dataset

MANIFEST = "shipped.json"
SMALL = "small"


def home() -> Path:
    """Return the folder of the clone, or where Python was started if the package is installed."""
    clone = Path(__file__).resolve().parents[2]
    return clone if (clone / "pyproject.toml").exists() else Path.cwd()


def folder() -> Path:
    """Return the folder that shipped data lie in."""
    return home() / "data"


def way_out() -> str:
    """Return what to do where the small copies are not, as with a package that was installed."""
    if (folder() / MANIFEST).exists():
        return ""
    return (
        "; the small copies lie in the folder data of the repository and are no part of an "
        f"installed package: clone it, and start Python there, not in {home()}; or leave part "
        "out, and the complete dataset is fetched from its publisher, where there is one"
    )


def parts(dataset: str) -> tuple[Part, ...]:
    """Return the parts of a dataset that ship, in the order in which they were written."""
    return tuple(part for part in _manifest() if part.dataset == dataset)


def read(part: Part) -> Dataset:
    """Read a part, after checking its hash.

    Parameters
    ----------
    part : Part
        One of the card's `shipped`.

    Returns
    -------
    Dataset
        Its arrays. Nothing in the file is run: arrays of objects are refused.

    References
    ----------
    `numpy.load` with ``allow_pickle=False``.

    Examples
    --------
    >>> [read(part).card.name for part in parts("mnist")]
    [...]
    """
    path = folder() / part.file
    try:
        store.check(path, File(part.file, part.sha256, part.size))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing, though {MANIFEST} names it: restore it from the repository"
        ) from None
    with np.load(path, allow_pickle=False) as content:
        arrays = {name: content[name] for name in content.files}
    scale = arrays.pop("_scale", None)
    if scale is not None:
        short = [name for name, array in arrays.items() if array.dtype == np.int8]
        arrays.update((name, arrays[name] * scale) for name in short)
    return Dataset(
        card=CARDS[part.dataset],
        feature_names=_names(arrays.pop("_feature_names", None)),
        class_names=_names(arrays.pop("_class_names", None)),
        categories=_categories(arrays.pop("_categories", None)),
        description=f"{part.what} {part.made_by}",
        part=part.name,
        arrays=arrays,
    )


def write(
    dataset: str,
    part: str,
    arrays: Mapping[str, NDArray[Any]],
    *,
    what: str,
    made_by: str,
    feature_names: Sequence[str] = (),
    class_names: Sequence[str] = (),
    categories: Mapping[str, Sequence[str]] | None = None,
    scale: NDArray[np.float32] | None = None,
    licence: str | None = None,
) -> Part:
    """Write a part to `data` and enter it in the manifest.

    The same arrays give the same bytes.

    Parameters
    ----------
    dataset, part : str
        The dataset, and what to call the part of it; `small` for fewer rows of the same arrays.
    arrays : mapping
        Arrays by name, none of them of objects.
    what, made_by : str
        Sentences: what it is, and what made it.
    feature_names, class_names, categories : optional
        As in `Dataset`.
    scale : array, optional
        A number a column. Arrays of dtype int8 are read as float32, multiplied by it.
    licence : str, optional
        The dataset's own unless given.

    Returns
    -------
    Part
        Its entry in the manifest.

    References
    ----------
    The format is described at the head of this module.

    Examples
    --------
    >>> write("mnist", "means", {"mean": np.zeros(10)}, what="Means.", made_by="By hand.")
    ... # doctest: +SKIP
    """
    _check.choice("dataset", dataset, CARDS)
    _check.identifier("part", part)
    extra = {
        "_feature_names": np.array(feature_names, dtype=np.str_),
        "_class_names": np.array(class_names, dtype=np.str_),
        "_categories": np.array(json.dumps({k: list(v) for k, v in (categories or {}).items()})),
        **({} if scale is None else {"_scale": np.asarray(scale, dtype=np.float32)}),
    }
    for name, array in {**arrays, **extra}.items():
        if np.asarray(array).dtype.hasobject:
            raise TypeError(f"arrays[{name!r}] holds objects, which only a pickle could store")
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays, **extra)
    path = folder() / (f"{dataset}.npz" if part == SMALL else f"{dataset}-{part}.npz")
    path.parent.mkdir(parents=True, exist_ok=True)
    store.write_whole(path, content.getvalue())
    entry = Part(
        dataset=dataset,
        name=part,
        file=path.name,
        sha256=store.sha256(path),
        size=path.stat().st_size,
        what=what,
        licence=licence or CARDS[dataset].licence,
        made_by=made_by,
    )
    kept = [old for old in _manifest() if (old.dataset, old.name) != (dataset, part)]
    entries = sorted((asdict(each) for each in [*kept, entry]), key=lambda each: each["file"])
    text = json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
    store.write_whole(folder() / MANIFEST, text.encode())
    return entry


def _manifest() -> tuple[Part, ...]:
    try:
        entries = json.loads((folder() / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    return tuple(Part(**entry) for entry in entries)


def _names(array: NDArray[Any] | None) -> tuple[str, ...]:
    return () if array is None else tuple(str(name) for name in array)


def _categories(text: NDArray[Any] | None) -> dict[str, tuple[str, ...]]:
    levels = {} if text is None else json.loads(str(text))
    return {feature: tuple(names) for feature, names in levels.items()}
