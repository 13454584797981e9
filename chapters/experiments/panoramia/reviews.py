"""Reviews: texts that SmolLM2 has learnt, and what it writes in their place.

The paper has GPT-2 on WikiText. Here SmolLM2 of 135 million weights is tuned on film reviews, on
its top layers: as the generator, as the audited model and as its null. An example is the second
chunk of a review, 64 tokens. A generated one follows the first chunk of a review that no model was
tuned on. Each prompt is used once, where the paper uses it eight times, and is no member, where the
paper's are: the games ask for independent examples.

This module makes the generated chunks. `reviews_scores` trains and stores what models say of all
chunks, `reviews_audits` only counts.
"""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from auditkit.datasets import load
from auditkit.experiment import stored, study
from auditkit.models.language import LanguageModel, pretrained, tune
from experiments.panoramia.packed import pack_bytes, unpack_bytes

MADE = "pan-reviews-made"
NEEDS = "the reviews of IMDB, and SmolLM2, as the page on running says"
SEEDS = range(3)
CHUNK, TOP_K = 64, 200
READ = 20_000  # reviews that are looked at
# members: the generator's, the attack's, the audit's
SPARE, TRAINING, AUDITED = 1_000, 1_000, 2_000
MEMBERS = SPARE + TRAINING + AUDITED
LESSONS = 1_000  # generated chunks for the helper
PURPOSES = {"train": TRAINING, "audited": AUDITED, "lessons": LESSONS}
GENERATOR_PASSES = 1
RATE = 1e-4


class World(NamedTuple):
    """Chunks of reviews by who may see them."""

    spare: np.ndarray  # (n, 128), both chunks; the second ones are members
    train: np.ndarray  # (n, 64), and so on
    real: np.ndarray
    members: np.ndarray
    others: np.ndarray  # as many, for the null
    unseen_train: np.ndarray
    unseen: np.ndarray
    prompts: np.ndarray


@cache
def start() -> LanguageModel:
    """Return the model that all others start from."""
    return pretrained()


@cache
def cut() -> np.ndarray:
    """Return two chunks of each review that is long enough, of shape (n, 2, 64)."""
    texts = sorted(set(load("imdb")["texts"]))
    order = np.random.default_rng(0).permutation(len(texts))[:READ]
    return start().chunks([texts[row] for row in order], CHUNK, number=2)[0]


@cache
def world(seed: int) -> World:
    """Deal the reviews."""
    sizes = (SPARE, TRAINING, AUDITED, MEMBERS, TRAINING, AUDITED, sum(PURPOSES.values()))
    order = np.random.default_rng((seed, 1)).permutation(len(cut()))
    if len(order) < sum(sizes):
        raise ValueError(f"there must be {sum(sizes)} reviews of two chunks, got {len(order)}")
    dealt = [cut()[rows] for rows in np.split(order[: sum(sizes)], np.cumsum(sizes)[:-1])]
    spare, train, real, others, unseen_train, unseen, prompts = dealt
    return World(
        spare.reshape(len(spare), -1),
        train[:, 1],
        real[:, 1],
        np.concatenate([part[:, 1] for part in (spare, train, real)]),
        others[:, 1],
        unseen_train[:, 1],
        unseen[:, 1],
        prompts[:, 0],
    )


@lru_cache(maxsize=1)
def source(seed: int) -> LanguageModel:
    """Tune the generator on members that nobody audits."""
    return tune(start(), world(seed).spare, passes=GENERATOR_PASSES, learning_rate=RATE, seed=seed)


@study(
    MADE,
    paper={"seed": list(SEEDS), "purpose": list(PURPOSES)},
    tolerance=0.05,
    needs=NEEDS,
)
def generated(seed: int, purpose: str, rng: np.random.Generator) -> dict:
    """Let the generator go on after the prompts of a purpose.

    The tokens, of shape (n, 64), and how many of them are different. A cell is a purpose, so that
    a run that is killed loses minutes.
    """
    ends = np.cumsum(list(PURPOSES.values()))[:-1]
    prompts = dict(zip(PURPOSES, np.split(world(seed).prompts, ends), strict=True))[purpose]
    tokens = source(seed).continued(prompts, CHUNK, top_k=TOP_K, rng=rng)
    return {
        "different": len(np.unique(tokens)),
        "tokens": pack_bytes(tokens.astype("<u2").view(np.uint8)),
    }


@cache
def made(seed: int) -> dict[str, np.ndarray]:
    """Return the generated chunks by their purpose."""
    rows = stored(MADE)
    rows = rows[rows["seed"] == seed].set_index("purpose")
    return {
        purpose: unpack_bytes(rows.loc[purpose, "tokens"])
        .view("<u2")
        .reshape(-1, CHUNK)
        .astype(np.int64)
        for purpose in PURPOSES
    }


SHOWN = 8


@study(
    "pan-texts-shown",
    paper={"seed": [0]},
    needs=NEEDS,
    sources=[MADE],
)
def shown(seed: int) -> list[dict]:
    """Return the first generated chunks beside the first members, each after its prompt."""
    deal, written = world(seed), made(seed)["audited"]
    read = start().tokenizer.decode
    prompts = deal.prompts[TRAINING : TRAINING + SHOWN]
    real = [{"kind": "member", "prompt": "", "text": read(row)} for row in deal.real[:SHOWN]]
    return real + [
        {"kind": "generated", "prompt": read(prompt), "text": read(row)}
        for prompt, row in zip(prompts, written[:SHOWN], strict=True)
    ]
