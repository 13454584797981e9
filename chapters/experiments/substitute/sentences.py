"""Linear heads on sentences: Figure A6 of SUB, with its 5,000 sentences and 2,500 runs.

The paper fine-tunes on SST-2. Here stand in sentences of the film reviews that SST-2 was made from.
A sentence encoder turns each into 384 numbers, as in the paper; its vectors are the mean over
tokens. As published it brings them to length 1, where with a clipping norm of 2 nothing is ever
clipped. The paper does not say whether it did. So there are three settings: the mean over tokens as
it comes, vectors of length 1, and the shipped vectors less the mean of public ones, brought to a
mean norm of 8.

One study trains with one canary.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from auditkit.datasets import load
from auditkit.experiment import Study, study
from auditkit.models.encoders import token_means
from experiments.substitute.linear import Records, Training
from experiments.substitute.scores import RUNS, score_rows

RECORDS = 5_000
PUBLIC = 2_000  # for the mean, and for natural canaries
TESTED = 1_000
PLAIN, UNIT, CENTRED = "as they come", "length 1", "centred"
NORM = 8.0  # of what is centred
CLIP, STEPS, LEARNING_RATE = 2.0, 2_500, 0.01  # Table A1
EPSILON, LOOKS = 10.0, 10
NEEDS = "the extra `encoders` and the film sentences, as data/README.md says"

FULL = {"size": RECORDS, "steps": STEPS, "runs": RUNS, "looks": LOOKS}
TINY = {"size": 200, "steps": 40, "runs": 200, "looks": 2}
# What the gradient canary does hangs on the clipping norm, and not on the length of the features.
# Of records of length 1, which can use half of their budget at most, one kind is enough.
BOTH_RATES = [(PLAIN, 1.0), (PLAIN, 0.25)]


@lru_cache(maxsize=2)
def sentences(vectors: str, size: int) -> Records:
    """Deal sentences: so many to train on, others for canaries and tests.

    Parameters
    ----------
    vectors : {"as they come", "length 1", "centred"}
        The mean over tokens; the same at length 1, as it ships; and that less the mean of public
        sentences and brought to a mean norm of 8.
    size : int
        How many are trained on.
    """
    shipped = load("film-sentences", part="embeddings")
    labels = shipped["labels"]
    order = np.random.default_rng(0).permutation(len(labels))
    public, tested, dealt = np.split(order, [PUBLIC, PUBLIC + TESTED, PUBLIC + TESTED + size])[:3]
    if vectors == PLAIN:
        texts = load("film-sentences")["texts"]
        whole = token_means([str(text) for text in texts]).astype(np.float64)
    else:
        whole = shipped["embeddings"].astype(np.float64)
    if vectors == CENTRED:
        whole = whole - whole[public].mean(axis=0)
        whole *= NORM / np.linalg.norm(whole[public], axis=1).mean()
    return Records(
        whole[dealt], labels[dealt], whole[public], labels[public], whole[tested], labels[tested], 1
    )


def training(sampling_rate: float) -> Training:
    """Return how heads are trained."""
    return Training(sampling_rate, EPSILON, CLIP, STEPS, LEARNING_RATE)


def scored(
    canary: str,
    vectors: str,
    sampling_rate: float,
    size: int,
    steps: int,
    runs: int,
    looks: int,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Train heads with one canary; `scores.score_rows` says what the rows hold.

    Parameters
    ----------
    canary : str
        One of `linear.CANARIES`.
    vectors, size
        As in `sentences`.
    sampling_rate : float
        q.
    steps : int
        T.
    runs, looks : int
        Models, half of them with z', and at how many steps they are looked at.
    """
    return score_rows(
        canary,
        sentences(vectors, size),
        replace(training(sampling_rate), steps=steps),
        runs=runs,
        looks=looks,
        rng=rng,
    )


def _study(name: str, settings: dict[str, list[tuple[str, float]]]) -> Study:
    """Make a study of one way to choose a canary."""
    small = [
        {"canary": canary, "vectors": vectors, "sampling_rate": rate} | TINY
        for canary in settings
        for vectors, rate in ((CENTRED, 1.0), (UNIT, 0.25))
    ]
    paper = [
        {"canary": canary, "vectors": vectors, "sampling_rate": rate} | FULL
        for canary, pairs in settings.items()
        for vectors, rate in pairs
    ]
    make = study(
        f"sub-sentences-{name}-scores",
        tolerance=0.02,
        paper=paper,
        live=small,
        reduced=small,
        needs=NEEDS,
    )
    return make(scored)


gradient_scores = _study("gradient", {"crafted gradient": BOTH_RATES})
input_scores = _study(
    "input",
    {"crafted input": [*BOTH_RATES, (CENTRED, 1.0)], "crafted input as printed": [(PLAIN, 1.0)]},
)
mislabelled_scores = _study(
    "mislabelled", {"mislabelled": [*BOTH_RATES, (CENTRED, 1.0), (UNIT, 1.0)]}
)
natural_scores = _study("natural", {"adversarial natural": [*BOTH_RATES, (CENTRED, 1.0)]})
TRAINED = gradient_scores, input_scores, mislabelled_scores, natural_scores
