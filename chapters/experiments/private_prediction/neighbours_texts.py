"""Private-kNN at the paper's number of neighbours, on as many texts: all reviews of IMDB.

Of 49,000 reviews 200 neighbours are 2% of those drawn at γ = 0.2; of the paper's SST-2, of 67,300
texts, 1.5%. A sentence encoder reads the first words of a review, which are more than a sentence
of SST-2 has. Reviews that begin alike are there once, since a copy of a query would be its nearest
neighbour.

Reading 50,000 beginnings takes the encoder half an hour of one core; they are kept in the cache.
"""

from functools import cache

import numpy as np

from auditkit.attacks.poisoning import runner_up
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.private_knn import neighbour_votes, private_knn_releases
from auditkit.models.encoders import encode
from experiments.private_prediction.composing import ORDERS, curve_rows
from experiments.private_prediction.neighbours import (
    FILM,
    RATE,
    Points,
    audited,
    grid,
    nearest,
    points,
    within,
)

IMDB = "imdb"
WORDS = 64  # of a review, from its beginning
NEIGHBOURS, SIGMA, QUERIES = 200, 20.0, 1000


# neighbours at one distance may change places with another order of sums
@study(
    "pred-knn-imdb",
    tolerance=1e-3,
    paper=grid(QUERIES, [(IMDB, "angle", NEIGHBOURS, SIGMA), (IMDB, "angle", 20, 2.0)]),
    needs="IMDB and the encoder of sentences, as data/README.md says",
)
def reviews_by_adversary(
    data: str,
    metric: str,
    neighbours: int,
    sigma: float,
    queries: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit with every adversary: rows are those of `neighbours.audited`."""
    del data, metric  # there is one of each, named as in the other study
    return audited(reviews(queries), neighbours, sigma, rng)


@study(
    "pred-knn-curves",
    tolerance=1e-3,
    paper={
        "data": [FILM, "cifar10", "fashion-mnist", IMDB],
        "adversary": ["natural", "poisoned"],
        "queries": [200],
    },
    reduced={"data": ["fashion-mnist"], "adversary": ["natural"], "queries": [20]},
    needs="IMDB and the encoder of sentences, as data/README.md says",
)
def curves(data: str, adversary: str, queries: int, rng: np.random.Generator) -> list[dict]:
    """Return the divergence of one answer to the query that leaks most: a row an order.

    The point is the query, with its own or a wrong label. Rows are those of `composing.curve_rows`
    for a thousand answers.
    """
    given = reviews(queries) if data == IMDB else points(data, "angle", queries)
    sigma = SIGMA if data in (FILM, IMDB) else 30.0
    labels = given.labels[nearest(given).order[:, : within(NEIGHBOURS, len(given.labels))]]
    votes = neighbour_votes(labels, NEIGHBOURS, RATE, classes=int(given.labels.max()) + 1)
    own = given.query_labels if adversary == "natural" else runner_up(votes.others)
    chance = np.full(queries, RATE)
    pair = private_knn_releases(votes, own, chance, neighbours=NEIGHBOURS, sigma=sigma)
    worst = int(pair.divergences(ORDERS)[:, ORDERS.tolist().index(10.0)].argmax())
    return curve_rows(pair.without[worst], pair.with_point[worst], {}, 1000, rng)


@cache
def reviews(queries: int) -> Points:
    """Return what the encoder makes of reviews: those that vote, and queries."""
    data = load("imdb")
    beginnings = [" ".join(text.split()[:WORDS]) for text in data["texts"]]
    places = {text: i for i, text in enumerate(beginnings)}  # each once
    labels = np.asarray(data["labels"])[list(places.values())]
    seen = encode("all-minilm-l6-v2", list(places))
    dealt = np.random.default_rng(0).permutation(len(labels))
    asked, kept = dealt[:queries], dealt[QUERIES:]
    whole = seen.astype(np.float64)
    return Points(whole[kept], labels[kept], whole[asked], labels[asked])
