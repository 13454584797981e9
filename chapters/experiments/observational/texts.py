"""Label privacy of a text classifier without noise, beside two membership attacks.

The paper has 3 million tweets. Here stand in 50,000 film reviews of IMDB, which do not ship: the
quick profile shows the stored results. Who has twitter_dataset.csv puts it into the folder
`twitter-sentiment` of the cache, and every function here takes tweets too.

A reference model that is too sure of itself makes the label attack look good, whatever the audited
model has learnt by heart. So models are trained for 2 passes, and for 10, after which they are too
sure, and audited against three reference models each.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from auditkit.datasets import cache, load
from auditkit.experiment import study
from auditkit.models.networks import mlp
from auditkit.models.training import Models, fit_many
from experiments.observational.audits import audit_rows
from experiments.observational.references import lessons, temperature

WORDS = 4_000
TEXTS = 50_000  # chosen at random if there are more, since their rows are dense: 0.8 GB
PASSES = (2, 10)
MADE_UP = "made up"


class Texts(NamedTuple):
    """Texts as a network sees them."""

    features: np.ndarray  # (n, words)
    labels: np.ndarray  # (n,) 0 and 1


class Split(NamedTuple):
    """Who is whose, by row."""

    unseen: np.ndarray  # a tenth of all, to test and to play the placebo on
    audited: np.ndarray  # half of the rest: the audited model is trained on these
    own: np.ndarray  # the other half is the auditor's


@study(
    "obs-texts",
    paper={"data": ["imdb"], "games": [100], "seed": [0, 1, 2, 3, 4]},
    reduced={"data": [MADE_UP], "games": [20], "seed": [0, 1]},
    tolerance=0.05,  # of 200 texts a single guess that rounding turns is a part one sees
    needs="the film reviews of IMDB, which data/README.md says how to fetch",
)
def protected_texts(data: str, games: int, seed: int, rng: np.random.Generator) -> list[dict]:
    """Train models for 2 passes and for 10, and audit them against three reference models each.

    As many training texts are audited as there are unseen ones, as in the paper. ``accuracy`` and
    ``log_loss`` are those of the audited model on unseen texts, ``reference_log_loss`` that of the
    reference model. The `seed` deals the texts.
    """
    texts = bag_of_words(*classified(data), seed)
    dealt = split(len(texts.labels), seed)
    return [
        {"passes": passes, **row}
        for passes in PASSES
        for row in audited_rows(texts, dealt, passes, games, rng)
    ]


def audited_rows(
    texts: Texts, dealt: Split, passes: int, games: int, rng: np.random.Generator
) -> list[dict]:
    """Train a target and its reference models, and audit."""
    target = fit(texts, dealt.audited, passes, rng)
    played = rng.choice(dealt.audited, len(dealt.unseen), replace=False)
    said, unsaid = (
        target.probabilities(texts.features[rows])[0] for rows in (played, dealt.unseen)
    )
    labels, unseen = texts.labels[played], texts.labels[dealt.unseen]
    rows = []
    for which, reference in references(texts, dealt.own, target, passes, rng).items():
        other = reference(texts.features[dealt.unseen])
        losses = {
            "accuracy": float(np.mean(unsaid.argmax(axis=1) == unseen)),
            "log_loss": log_loss(unsaid, unseen),
            "reference_log_loss": log_loss(other, unseen),
        }
        found = audit_rows(
            labels,
            said,
            reference(texts.features[played]),
            held_out=(unseen, unsaid, other),
            repetitions=games,
            rng=rng,
            which=which,
        )
        rows += [{**row, **losses} for row in found]
    return rows


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean loss."""
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).mean())


# The texts.


def classified(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return texts and which of two classes each is in.

    Tweets have a third, neutral, which its small size tells: their author does not say which code
    is which. Of texts that are made up one word in ten tells the class; tests need no others.
    """
    if name == MADE_UP:
        return made_up()
    if name == "imdb":
        reviews = load(name)
        return reviews["texts"], reviews["labels"]
    tweets = load(name, path=cache() / name / "twitter_dataset.csv")
    first, second = np.sort(np.argsort(np.bincount(tweets["labels"], minlength=3))[1:])
    kept = np.isin(tweets["labels"], (first, second))
    return tweets["texts"][kept], (tweets["labels"][kept] == second).astype(np.int64)


def made_up(number: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Make texts of 33 words, three of which are used by one class only."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=number)
    words = rng.integers(200, size=(number, 30))
    telling = 1000 + labels[:, None] * 50 + rng.integers(50, size=(number, 3))
    lines = [" ".join(f"w{word}" for word in line) for line in np.hstack((words, telling))]
    return np.array(lines, dtype=object), labels


def bag_of_words(texts: np.ndarray, labels: np.ndarray, seed: int) -> Texts:
    """Return how often each of the most frequent words occurs, weighted by how rare it is.

    The weights come from all texts alike: only labels are private, and no text must stand out by
    having had a say in them.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if len(texts) > TEXTS:
        kept = np.random.default_rng(seed).choice(len(texts), TEXTS, replace=False)
        texts, labels = texts[kept], labels[kept]
    counted = TfidfVectorizer(max_features=WORDS, dtype=np.float32).fit_transform(texts)
    return Texts(counted.toarray(), labels)


def split(texts: int, seed: int) -> Split:
    """Deal texts at random: a tenth is nobody's, the rest is halved."""
    order = np.random.default_rng(seed).permutation(texts)
    tenth = texts // 10
    return Split(order[:tenth], *np.array_split(order[tenth:], 2))


# The models.


def fit(
    texts: Texts,
    rows: np.ndarray,
    passes: int,
    rng: np.random.Generator,
    labels: np.ndarray | None = None,
) -> Models:
    """Train a network with one hidden layer, on their own labels unless others are given."""
    return fit_many(
        partial(mlp, texts.features.shape[1], 2, hidden=(64,)),
        texts.features[rows],
        texts.labels[rows] if labels is None else labels,
        seeds=[rng.integers(2**32)],
        epochs=passes,
        batch_size=32,
        learning_rate=1e-3,
        optimizer="adam",
    )


def references(
    texts: Texts, own: np.ndarray, target: Models, passes: int, rng: np.random.Generator
) -> dict:
    """Return the paper's reference model, the same put right, and one that learns from the target.

    The first is trained on nine tenths of the auditor's texts, so that its temperature can be set
    on the rest. Of the target only the third knows, and only what it says of the auditor's texts.
    """
    rest, kept = np.split(own, [len(own) // 10])
    trained = fit(texts, kept, passes, rng)
    heat = temperature(
        trained.logits(texts.features[rest])[0].astype(np.float64), texts.labels[rest]
    )
    taught = lessons(target.probabilities(texts.features[own])[0], texts.labels[own])
    pupil = fit(texts, own, passes, rng, taught)
    return {
        "trained": lambda shown: trained.probabilities(shown)[0],
        "scaled": lambda shown: softmax(trained.logits(shown)[0].astype(np.float64) / heat, axis=1),
        "distilled": lambda shown: pupil.probabilities(shown)[0],
    }
