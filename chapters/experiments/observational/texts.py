"""Label privacy of a text classifier without noise, by how long its reference model is trained.

The paper has 3 million tweets. Here stand in 50,000 film reviews of IMDB, which do not ship: the
quick profile shows the stored results. Who has twitter_dataset.csv puts it into the folder
`twitter-sentiment` of the cache, and every function here takes tweets too.

A third of the texts is audited, a third the reference model learns from, and a third nobody sees.
The target is trained for ten passes, after which it is too sure of itself. A reference model that
is too sure as well makes the label attack look good, whatever the target has learnt by heart. So
there are five of them, and a target for each whose labels are drawn from it before the training:
then nothing shifts, and what is found is leaked.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from auditkit.datasets import cache as cache_folder
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.networks import mlp
from auditkit.models.training import Models, fit_many
from experiments.observational.audits import INTERVENTIONAL, OBSERVATIONAL, audit_rows

WORDS = 4_000
TEXTS = 50_000  # chosen at random if there are more, since their rows are dense: 0.8 GB
PASSES = 10
REFERENCE_PASSES = (1, 2, 5, 10, 20)
TARGET, REFERENCE, LABELS = range(3)  # whose seed it is
IMDB, MADE_UP = "imdb", "made up"


class Texts(NamedTuple):
    """Texts as a network sees them."""

    features: np.ndarray  # (n, words)
    labels: np.ndarray  # (n,) 0 and 1


class Split(NamedTuple):
    """Who is whose, by row: a third each."""

    own: np.ndarray  # the auditor's
    audited: np.ndarray  # the audited model is trained on these
    unseen: np.ndarray


@study(
    "obs-texts",
    paper=[
        {"data": IMDB, "game": game, "passes": passes, "games": 100, "seed": seed}
        for seed in range(3)
        for game in (OBSERVATIONAL, INTERVENTIONAL)
        for passes in REFERENCE_PASSES
    ],
    live=[
        {"data": MADE_UP, "game": game, "passes": passes, "games": 20, "seed": 0}
        for game in (OBSERVATIONAL, INTERVENTIONAL)
        for passes in (2, 10)
    ],
    reduced=[
        {"data": MADE_UP, "game": game, "passes": passes, "games": 20, "seed": 0}
        for game, passes in ((OBSERVATIONAL, 2), (OBSERVATIONAL, 10), (INTERVENTIONAL, 2))
    ],
    tolerance=0.05,  # of 1000 texts a single guess that rounding turns is a part one sees
    needs="the film reviews of IMDB, which data/README.md says how to fetch",
)
def protected_texts(
    data: str, game: str, passes: int, games: int, seed: int, rng: np.random.Generator
) -> list[dict]:
    """Train a target and a reference model of so many `passes`, and audit.

    All texts of the target are audited, and as many unseen ones are the placebo. ``accuracy`` and
    ``log_loss`` are those of the target on unseen texts and their true labels, and
    ``reference_log_loss`` that of the reference model. The `seed` deals the texts.
    """
    texts = bag_of_words(data)
    dealt = split(len(texts.labels), seed)
    labels, truth = (texts.labels[rows] for rows in (dealt.audited, dealt.unseen))
    law, expected = (says(reference(data, passes, seed), texts, rows) for rows in dealt[1:])
    if game == INTERVENTIONAL:
        labels, played = (draw(one, seed, place) for place, one in enumerate((law, expected)))
        model = fit(texts, dealt.audited, labels, PASSES, seed, TARGET)
    else:
        played, model = truth, target(data, seed)
    said, unsaid = (says(model, texts, rows) for rows in (dealt.audited, dealt.unseen))
    found = audit_rows(
        labels, said, law, held_out=(played, unsaid, expected), repetitions=games, rng=rng
    )
    losses = {
        "accuracy": float(np.mean(unsaid.argmax(axis=1) == truth)),
        "log_loss": log_loss(unsaid, truth),
        "reference_log_loss": log_loss(expected, truth),
    }
    return [{**row, **losses} for row in found]


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean loss."""
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).mean())


# The texts.


def classified(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return texts and which of two classes each is in.

    Tweets have a third, neutral, which its small size tells: their author does not say which code
    is which. Of texts that are made up one word in ten hints at the class; tests need no others.
    """
    if name == MADE_UP:
        return made_up()
    if name == IMDB:
        reviews = load(name)
        return reviews["texts"], reviews["labels"]
    tweets = load(name, path=cache_folder() / name / "twitter_dataset.csv")
    first, second = np.sort(np.argsort(np.bincount(tweets["labels"], minlength=3))[1:])
    kept = np.isin(tweets["labels"], (first, second))
    return tweets["texts"][kept], (tweets["labels"][kept] == second).astype(np.int64)


def made_up(number: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Make texts of 33 words, three of which are mostly used by one class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=number)
    words = rng.integers(200, size=(number, 30))
    side = labels[:, None] ^ (rng.random((number, 3)) < 0.3)
    hints = 1000 + side * 50 + rng.integers(50, size=(number, 3))
    lines = [" ".join(f"w{word}" for word in line) for line in np.hstack((words, hints))]
    return np.array(lines, dtype=object), labels


@cache
def bag_of_words(data: str) -> Texts:
    """Return how often each of the most frequent words occurs, weighted by how rare it is.

    The weights come from all texts alike: only labels are private, and no text must stand out by
    having had a say in them.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = classified(data)
    if len(texts) > TEXTS:
        kept = np.random.default_rng(0).choice(len(texts), TEXTS, replace=False)
        texts, labels = texts[kept], labels[kept]
    counted = TfidfVectorizer(max_features=WORDS, dtype=np.float32).fit_transform(texts)
    return Texts(counted.toarray(), labels)


def split(texts: int, seed: int) -> Split:
    """Deal texts at random, a third to each."""
    order = np.random.default_rng(seed).permutation(texts)
    return Split(*order[: texts // 3 * 3].reshape(3, -1))


# The models.


def fit(
    texts: Texts, rows: np.ndarray, labels: np.ndarray, passes: int, seed: int, whose: int
) -> Models:
    """Train a network with one hidden layer, all by one recipe."""
    return fit_many(
        partial(mlp, texts.features.shape[1], 2, hidden=(64,)),
        texts.features[rows],
        labels,
        seeds=np.random.SeedSequence((seed, whose)).generate_state(1),
        epochs=passes,
        batch_size=32,
        learning_rate=1e-3,
        optimizer="adam",
    )


@cache
def target(data: str, seed: int) -> Models:
    """Train a target on true labels, the same for all reference models."""
    texts = bag_of_words(data)
    rows = split(len(texts.labels), seed).audited
    return fit(texts, rows, texts.labels[rows], PASSES, seed, TARGET)


@cache
def reference(data: str, passes: int, seed: int) -> Models:
    """Train a reference model, the same for both games."""
    texts = bag_of_words(data)
    rows = split(len(texts.labels), seed).own
    return fit(texts, rows, texts.labels[rows], passes, seed, REFERENCE)


def says(model: Models, texts: Texts, rows: np.ndarray) -> np.ndarray:
    """Return the probabilities that a model gives both labels of some texts."""
    return model.probabilities(texts.features[rows])[0]


def draw(probabilities: np.ndarray, seed: int, place: int) -> np.ndarray:
    """Draw a label from each row."""
    rng = np.random.default_rng((seed, LABELS, place))
    return (rng.random(len(probabilities)) < probabilities[:, 1]).astype(np.int64)
