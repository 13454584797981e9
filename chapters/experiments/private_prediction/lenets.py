"""PATE and CaPC with the paper's network: LeNet-5 on pixels learns, and its votes are stored.

250 teachers have 240 images of MNIST or Fashion-MNIST each, as in the paper, and 200 have 250 of
CIFAR-10, whose middle 28 × 28 pixels in three colours the same network sees (the paper has a wide
residual network for the last two). Batches have 16 images.

The paper does not say how long it trains, and at its rate of 0.03 for Adam most teachers stay at
chance, which `pred-lenet-optimiser` shows. Here it is SGD with momentum, for 20 passes.
`pred-lenet-passes` says what other numbers do to accuracy, and to a wrong label.

Numbers of trainings are the same for both systems. They are fewer than the 2,000 that the small
networks of `teachers` can have: a training takes a tenth of a second. Nothing is counted or bounded
here; `lenet_audits` does.

A teacher with a point has an image more than one without. Of MNIST and Fashion-MNIST that is the
241st, so each pass ends with a batch of that one image or of another. Any point brings it along: a
query with its own label shows what comes of that alone.
"""

import base64
import bz2
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import nn

from auditkit.attacks.poisoning import least_sure_teacher, runner_up
from auditkit.datasets import load
from auditkit.experiment import stored, study
from auditkit.models.lenet import fit_lenets
from auditkit.models.networks import lenet5
from auditkit.models.training import fit_many
from experiments.private_prediction.matching import matched_image

CLASSES = 10
QUERIES, ASKED = 1000, 100  # natural queries, and those that are asked again and again
DEALS = 8  # times that all teachers of a system are trained without a point
REPEATS = 16  # trainings of the one teacher with each point, to be asked that point
BLOCK = 10  # queries of a cell
NATURAL_REPEATS = 600  # trainings with one poison, to be asked natural queries
WORST, WORST_REPEATS = 3, 100  # queries that leaked most, and their fresh trainings
CHUNK = 250  # models that are held at a time
SEEN = 1000  # images that set the scale

MNIST, FASHION, CIFAR = "mnist", "fashion-mnist", "cifar10"
DATA = [MNIST, FASHION, CIFAR]
SMALL = "fashion-mnist, 20 teachers"  # shipped images, few teachers that learn for a short time
# teachers, and the noise on their votes
ENSEMBLES = {MNIST: (250, 40.0), FASHION: (250, 40.0), CIFAR: (200, 25.0), SMALL: (20, 4.0)}
PATE, CAPC = "PATE", "CaPC"
FIRST, CHOSEN = "CaPC, first teacher", "CaPC, chosen teacher"
PLACES = [PATE, FIRST, CHOSEN]  # whose teacher gets the point
NONE, AGAIN, NATURAL, POISONED = "none", "again", "natural", "poisoned"
MISLABELLED, MATCHED = "mislabelled", "gradient matching"
NEEDS = "the images of MNIST, Fashion-MNIST and CIFAR-10, as data/README.md says"
TEACHERS, EPSILONS = "pred-lenet-teachers", "pred-lenet-epsilon"


class Setting(NamedTuple):
    """Images, and the ensemble that is trained on them."""

    inputs: np.ndarray  # (n, channels, 28, 28)
    labels: np.ndarray
    query_inputs: np.ndarray
    query_labels: np.ndarray
    teachers: int
    sigma: float
    passes: int

    @property
    def size(self) -> int:
        """Images a teacher."""
        return len(self.labels) // self.teachers


class Points(NamedTuple):
    """A point for each model."""

    inputs: np.ndarray  # (points, channels, 28, 28)
    labels: np.ndarray
    which: np.ndarray  # (models,): whose point is which


class Pool(NamedTuple):
    """How teachers without a point vote."""

    pate: np.ndarray  # (deals, QUERIES, classes): histograms of PATE
    capc: np.ndarray  # the same of CaPC
    models: np.ndarray  # (models, ASKED): votes of PATE's teachers, deal after deal
    parties: np.ndarray  # (deals, teachers, ASKED): votes of CaPC's
    first: np.ndarray  # (deals, QUERIES): votes of CaPC's first one


@cache
def setting(data: str, passes: int = 20) -> Setting:
    """Return images by name, scaled by the mean and the spread of some of them."""
    loaded = load("fashion-mnist") if data == SMALL else load(data, part="complete")
    x, t = (middle(loaded[f"{name}_images"]) for name in ("train", "test"))
    images, queries = len(x), QUERIES
    if data == SMALL:
        images, queries, passes = 1600, 20, 3
    mean, spread = x[:SEEN].mean(), x[:SEEN].std()
    x, t = ((rows - mean) / spread for rows in (x[:images], t[:queries]))
    labels = loaded["train_labels"][:images], loaded["test_labels"][:queries]
    return Setting(x, labels[0], t, labels[1], *ENSEMBLES[data], passes)


def middle(images: np.ndarray) -> np.ndarray:
    """Return the middle 28 × 28 pixels of images, (n, channels, 28, 28)."""
    deep = images[..., None] if images.ndim == 3 else images
    edge = (deep.shape[1] - 28) // 2
    cut = deep[:, edge : edge + 28, edge : edge + 28]
    return np.ascontiguousarray(cut.transpose(0, 3, 1, 2), dtype=np.float32) / np.float32(255.0)


def deal(images: Setting, rng: np.random.Generator) -> np.ndarray:
    """Return whose images are whose, (teachers, size)."""
    used = images.teachers * images.size
    return rng.permutation(len(images.labels))[:used].reshape(images.teachers, images.size)


def parties(images: Setting) -> np.ndarray:
    """Return CaPC's partition, which never changes."""
    return deal(images, np.random.default_rng(0))


def random_parts(images: Setting, models: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random part of the images for each model."""
    deals = [deal(images, rng) for _ in range(-(-models // images.teachers))]
    return np.concatenate(deals)[:models]


def votes(
    images: Setting,
    parts: np.ndarray,
    asked: np.ndarray,
    rng: np.random.Generator,
    points: Points | None = None,
) -> np.ndarray:
    """Train a LeNet-5 on each part, and its point if given, and return votes, (models, asked)."""
    x, y = images.inputs, images.labels
    if points is not None:
        x, y = np.concatenate([x, points.inputs]), np.concatenate([y, points.labels])
        parts = np.concatenate([parts, len(images.labels) + points.which[:, None]], axis=1)
    seeds = rng.integers(2**31, size=len(parts))
    said = []
    for first in range(0, len(parts), CHUNK):
        chunk = slice(first, first + CHUNK)
        models = fit_lenets(x, y, seeds=seeds[chunk], indices=parts[chunk], **options(images))
        said.append(models.predict(asked))
    return np.concatenate(said)


def options(images: Setting) -> dict:
    """Return how teachers are trained."""
    return {"epochs": images.passes, "batch_size": 16, "learning_rate": 0.01, "momentum": 0.9}


def pack(values: np.ndarray) -> str:
    """Return small whole numbers as a text."""
    return base64.b85encode(bz2.compress(values.astype("<u2").tobytes())).decode()


def unpack(text: str, *shape: int) -> np.ndarray:
    """Return what `pack` was given."""
    flat = np.frombuffer(bz2.decompress(base64.b85decode(text)), "<u2")
    return flat.reshape(shape).astype(np.int64)


def rows_where(id_: str, **which: str) -> pd.DataFrame:
    """Return the stored rows of a kind."""
    rows = stored(id_)
    for name, value in which.items():
        rows = rows[rows[name] == value]
    return rows


def counts(said: np.ndarray) -> np.ndarray:
    """Return how many models vote for each class, (queries, classes), from (models, queries)."""
    return (said[..., None] == np.arange(CLASSES)).sum(axis=0)


# Which training works, and for how long.


def squashed() -> nn.Sequential:
    """Make LeNet-5 with squashing functions in place of rectifiers, as in 1998."""
    return nn.Sequential(
        *(nn.Tanh() if isinstance(layer, nn.ReLU) else layer for layer in lenet5())
    )


VARIANTS = {  # network, optimiser, rate, whether inputs are scaled to mean 0 and spread 1
    "as printed": (lenet5, "adam", 0.03, False),
    "scaled inputs": (lenet5, "adam", 0.03, True),
    "tanh": (squashed, "adam", 0.03, False),
    "tanh, scaled inputs": (squashed, "adam", 0.03, True),
    "rate 0.001": (lenet5, "adam", 0.001, False),
}


@study(
    "pred-lenet-optimiser",
    tolerance=0.2,
    paper={"data": [MNIST, FASHION], "variant": list(VARIANTS), "models": [16], "passes": [10]},
    reduced={"data": [SMALL], "variant": list(VARIANTS)[-2:], "models": [2], "passes": [2]},
    needs=NEEDS,
)
def printed(
    data: str, variant: str, models: int, passes: int, rng: np.random.Generator
) -> list[dict]:
    """Train teachers by Adam at the printed rate of 0.03, as printed and with one thing changed.

    A row a teacher; ``accuracy`` is that on queries. At chance it is a tenth.
    """
    images = setting(data)
    network, optimizer, rate, scaled = VARIANTS[variant]
    x, t = images.inputs, images.query_inputs
    if not scaled:
        least = x.min()
        x, t = ((rows - least) / (x.max() - least) for rows in (x, t))
    said = fit_many(
        network,
        x,
        images.labels,
        seeds=rng.integers(2**31, size=models),
        indices=deal(images, rng)[:models],
        epochs=passes,
        batch_size=16,
        learning_rate=rate,
        optimizer=optimizer,
    ).predict(t)
    return [{"accuracy": float(share)} for share in (said == images.query_labels).mean(axis=1)]


@study(
    "pred-lenet-passes",
    tolerance=0.3,
    paper={"data": DATA, "passes": [5, 10, 20, 40], "queries": [10], "repeats": [10]},
    reduced={"data": [SMALL], "passes": [3], "queries": [2], "repeats": [2]},
    needs=NEEDS,
)
def longer(
    data: str, passes: int, queries: int, repeats: int, rng: np.random.Generator
) -> list[dict]:
    """Train teachers with a point for so many passes, and ask them that point: a row a query.

    ``natural`` and ``poisoned`` are the shares of trainings that say the point's label, true or the
    next one, and ``without_natural`` and ``without_poisoned`` those without the point. ``accuracy``
    is that without it.
    """
    images = setting(data, passes)
    which = np.repeat(np.arange(queries), repeats)
    asked, truth = images.query_inputs[:queries], images.query_labels[:queries]
    plain = votes(images, random_parts(images, len(which), rng), images.query_inputs, rng)
    rows = {"accuracy": np.full(queries, (plain == images.query_labels).mean())}
    for name, labels in ((NATURAL, truth), (POISONED, (truth + 1) % CLASSES)):
        points = Points(asked, labels, which)
        said = votes(images, random_parts(images, len(which), rng), asked, rng, points)
        own = said[np.arange(len(which)), which].reshape(queries, repeats)
        rows[name] = (own == labels[:, None]).mean(axis=1)
        rows[f"without_{name}"] = (plain[:, :queries] == labels).mean(axis=0)
    return [
        {"query": query, **{name: float(values[query]) for name, values in rows.items()}}
        for query in range(queries)
    ]


# Teachers without a point.


@study(
    TEACHERS,
    tolerance=0.1,
    paper={"data": DATA, "system": [PATE, CAPC], "deal": list(range(DEALS))},
    # one of the systems: on so few images they are as accurate, and no tolerance tells them apart
    reduced={"data": [SMALL], "system": [CAPC], "deal": [0]},
    needs=NEEDS,
)
def ensemble(data: str, system: str, deal: int, rng: np.random.Generator) -> dict:
    """Train all teachers of a system once.

    CaPC's have the same images in each deal, PATE's others. ``accuracy`` and ``lowest`` are the
    mean and the least of the teachers, on a thousand queries; ``plurality`` is how often the label
    with most votes is right. Stored are the histograms of all queries, the votes on those that are
    asked again and again, and the first teacher's votes; of the small ensemble they are not, since
    rounding on another processor makes another text.
    """
    images = setting(data)
    return ensemble_row(images, trained(images, system, deal, rng), whole=data != SMALL)


def trained(images: Setting, system: str, deal: int, rng: np.random.Generator) -> np.ndarray:
    """Return the votes of all teachers, (teachers, queries)."""
    del deal  # the number of a repetition, whose chances are in `rng`
    parts = parties(images) if system == CAPC else random_parts(images, images.teachers, rng)
    return votes(images, parts, images.query_inputs, rng)


def ensemble_row(images: Setting, said: np.ndarray, *, whole: bool) -> dict:
    """Return what is stored of the votes of all teachers."""
    right = (said == images.query_labels).mean(axis=1)
    most = counts(said)
    packed = {"histograms": most, "votes": said[:, :ASKED], "first": said[0]}
    return {
        "accuracy": float(right.mean()),
        "lowest": float(right.min()),
        "plurality": float((most.argmax(axis=1) == images.query_labels).mean()),
        **{name: pack(values) if whole else None for name, values in packed.items()},
    }


@cache
def pool(data: str) -> Pool:
    """Return the stored votes of teachers without a point; of the small ensemble, train them."""
    if data == SMALL:
        images, rng = setting(data), np.random.default_rng(0)
        asked = len(images.query_labels)
        both = [
            np.array([trained(images, system, deal, rng) for deal in range(2)])
            for system in (PATE, CAPC)
        ]
        most = [np.array([counts(said) for said in whole]) for whole in both]
        models = both[0][..., :asked].reshape(-1, asked)
        return Pool(*most, models, both[1][..., :asked], both[1][:, 0])
    read = {
        (system, name): np.array(
            [unpack(text, *shape) for text in rows_where(TEACHERS, data=data, system=system)[name]]
        )
        for system in (PATE, CAPC)
        for name, shape in (
            ("histograms", (-1, CLASSES)),
            ("votes", (-1, ASKED)),
            ("first", (-1,)),
        )
    }
    return Pool(
        read[PATE, "histograms"],
        read[CAPC, "histograms"],
        read[PATE, "votes"].reshape(-1, ASKED),
        read[CAPC, "votes"],
        read[CAPC, "first"],
    )


def shares(data: str) -> np.ndarray:
    """Return the law of the vote of one of PATE's teachers, (queries, classes)."""
    return pool(data).pate.sum(axis=0) / pool(data).pate.sum(axis=(0, 2))[:, None]


def party_shares(data: str) -> np.ndarray:
    """Return how CaPC's teachers vote, (teachers, asked, classes)."""
    said = pool(data).parties
    return np.stack([(said == label).mean(axis=0) for label in range(CLASSES)], axis=-1)


# One teacher with a point.


def place_of(data: str, place: str, query: int, label: int) -> int:
    """Return which of CaPC's teachers gets a point: the first, or who rarely says its label."""
    if place == FIRST:
        return 0
    return least_sure_teacher(party_shares(data)[:, query], label)


def own_votes(
    data: str,
    place: str,
    point: str,
    adversary: str,
    queries: np.ndarray,
    repeats: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train the one teacher anew and ask it for each query: a row a query.

    The point is "natural" or "poisoned", which is the adversary's, or "none" or "again", which is
    none; the teacher is chosen for the adversary's label all the same.
    """
    images, which = setting(data), np.repeat(np.arange(len(queries)), repeats)
    truth = images.query_labels[queries]
    labels = truth if adversary == NATURAL else runner_up(shares(data)[queries])
    teachers = np.zeros(len(queries), dtype=int)
    if place == PATE:
        parts = random_parts(images, len(which), rng)
    else:
        teachers = np.array(
            [place_of(data, place, *one) for one in zip(queries, labels, strict=True)]
        )
        parts = parties(images)[teachers[which]]
    asked = images.query_inputs[queries]
    points = None if point in (NONE, AGAIN) else Points(asked, labels, which)
    said = votes(images, parts, asked, rng, points)
    own = said[np.arange(len(which)), which].reshape(len(queries), repeats)
    return [
        {
            "query": int(query),
            "label": int(label),
            "teacher": None if place == PATE else int(teacher),
            **{f"votes_{kind}": int(count) for kind, count in enumerate(row)},
        }
        for query, label, teacher, row in zip(queries, labels, teachers, counts(own.T), strict=True)
    ]


ADVERSARIAL = [  # place, point, adversary
    *((place, point, point) for place in PLACES for point in (NATURAL, POISONED)),
    # the other two places have their trainings without a point in `TEACHERS` and "natural"
    *((CHOSEN, NONE, adversary) for adversary in (NATURAL, POISONED)),
]


def cells(data: list[str], firsts: range, queries: int, repeats: int) -> list[dict]:
    """Return the cells of queries that are asked again and again."""
    return [
        {"data": one, "place": place, "point": point, "adversary": adversary, "first": first}
        | {"queries": queries, "repeats": repeats}
        for one in data
        for place, point, adversary in ADVERSARIAL
        for first in firsts
    ]


@study(
    "pred-lenet-adversarial",
    tolerance=0.3,
    paper=cells(DATA, range(0, ASKED, BLOCK), BLOCK, REPEATS),
    reduced=cells([SMALL], range(1), 2, 2)[1::3],
    needs=NEEDS,
    sources=[TEACHERS],
)
def adversarial(
    data: str,
    place: str,
    point: str,
    adversary: str,
    first: int,
    queries: int,
    repeats: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train the one teacher with each query as its point, and count its votes for that query."""
    chosen = np.arange(first, first + queries)
    return own_votes(data, place, point, adversary, chosen, repeats, rng)


@study(
    "pred-lenet-worst",
    tolerance=0.3,
    paper=cells(DATA, range(1), WORST, WORST_REPEATS),
    reduced=cells([SMALL], range(1), 2, 2)[::4],
    needs=NEEDS,
    sources=[TEACHERS, EPSILONS],
)
def worst(
    data: str,
    place: str,
    point: str,
    adversary: str,
    first: int,
    queries: int,
    repeats: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Train the one teacher anew for the queries that leaked most, so that luck is left behind."""
    if data == SMALL:
        chosen = np.arange(first, first + queries)
    else:
        rows = rows_where(EPSILONS, data=data, system=place, adversary=adversary)
        chosen = rows.nlargest(queries, "exact")["query"].to_numpy()
    return own_votes(data, place, point, adversary, chosen, repeats, rng)


# One teacher with a poison, and natural queries.

KINDS = [
    (NONE, 0),
    (AGAIN, 0),
    (NATURAL, 0),
    *((MISLABELLED, i) for i in range(5)),
    *((MATCHED, i) for i in range(3)),
]


def natural_cells(data: list[str], kinds: list[tuple[str, int]], repeats: int) -> list[dict]:
    """Return the cells of natural queries."""
    return [
        {"data": one, "system": system, "poison": poison, "number": number, "repeats": repeats}
        for one in data
        for system in (PATE, CAPC)
        for poison, number in kinds
    ]


@study(
    "pred-lenet-natural",
    tolerance=0.3,
    paper=natural_cells(DATA, KINDS, NATURAL_REPEATS),
    reduced=natural_cells([SMALL], [KINDS[0], KINDS[-1]], 4),
    needs=NEEDS,
    sources=[TEACHERS],
)
def natural(
    data: str, system: str, poison: str, number: int, repeats: int, rng: np.random.Generator
) -> dict:
    """Train the one teacher with a poison, and count its votes for a thousand natural queries.

    CaPC's is its first one. Both systems have the same poisons, by number: a query with the label
    that comes second, or an image that was made to turn many votes. "natural" is a query with its
    own label, which turns few. ``label`` is the point's, ``turned`` how many votes differ from what
    most teachers of PATE say, and ``counts`` has the votes, (queries, classes).
    """
    images = setting(data)
    parts = (
        random_parts(images, repeats, rng)
        if system == PATE
        else np.repeat(parties(images)[:1], repeats, axis=0)
    )
    points = label = None
    if poison not in (NONE, AGAIN):
        point, label = poisons(data, poison, number)
        points = Points(point[None], np.array([label]), np.zeros(repeats, dtype=int))
    said = votes(images, parts, images.query_inputs, rng, points)
    turned = (said != shares(data).argmax(axis=1)).sum(axis=1).mean()
    packed = pack(counts(said)) if data != SMALL else None
    return {"label": label, "turned": float(turned), "counts": packed}


def poisons(data: str, poison: str, number: int) -> tuple[np.ndarray, int]:
    """Return a poison: an image and its label."""
    images, labels = setting(data), runner_up(shares(data))
    query = int(np.random.default_rng(number).integers(len(labels)))
    if poison == NATURAL:
        return images.query_inputs[query], int(images.query_labels[query])
    if poison == MISLABELLED:
        return images.query_inputs[query], int(labels[query])
    # another stream than that of `parties`: else the networks of number 0 would have the images
    # of the very teacher that gets the poison
    rng = np.random.default_rng([1, number])
    return matched_image(images, labels, query, options(images), rng)
