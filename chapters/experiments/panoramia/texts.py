"""Texts: chunks of film reviews, and what a small language model writes in their place.

The paper has GPT-2 on WikiText. Here a transformer of two small blocks and a thousand words learns
English from reviews of IMDB that nobody audits, and is the start of all other models, as GPT-2 is
in the paper. An example is the second chunk of a review, 32 tokens. A generated one follows the
first chunk of a review that the generator has not been trained on: the first half of what it can
look at is the prompt, the second half its own. Each prompt is used once, where the paper uses it
eight times, since the games ask for independent examples.

The audited models learn second chunks alone, at 2, 5 and 12 passes, or privately with Opacus. Each
has a null, which learns as many chunks of other reviews in the same way.
"""

import time
import warnings
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from auditkit.attacks.generated import Mixture, generate
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.models.generators import Examples
from auditkit.models.networks import small_gpt
from auditkit.models.training import Models
from experiments.panoramia.audits import (
    NESTED,
    NULL,
    PAPERS,
    TARGET,
    curves,
    game_rows,
    one_run_rows,
    real_rows,
)
from experiments.panoramia.text_generator import (
    LanguageModel,
    Prompted,
    Vocabulary,
    chunks,
    fit_language_model,
    fit_vocabulary,
)

REVIEWS = "reviews of IMDB, which are not shipped"
SEEDS = list(range(5))
WORDS, CHUNK = 1_000, 32
PUBLIC = 8_000  # reviews that the start is trained on
SPARE, TRAINING, AUDITED = (
    2_000,
    2_000,
    3_000,
)  # members: the generator's, the attack's, the audit's
UNSEEN_TRAINING, UNSEEN = 2_000, 3_000
PROMPTS = 7_000  # of the generator's reviews: 2,000 for training, 3,000 for the audit, the helper
MEMBERS = SPARE + TRAINING + AUDITED
PASSES = (2, 5, 12)
HELPED = 3  # passes of the helper, after which its loss on other generated chunks is least
PAIRS = (500, 1_000, 3_000)
COUNTED = 100  # words that the classifiers count
TOP_K = 200

# private fine-tuning
CLIP, BATCH, PRIVATE_PASSES, DELTA = 1.0, 250, 6, 1e-5


class World(NamedTuple):
    """Reviews of a seed: chunks by who may see them."""

    public: np.ndarray  # (n, 64), both chunks in one
    spare: np.ndarray  # (n, 64); the second chunks are members
    train: Examples
    real: Examples
    members: np.ndarray  # (n, 32)
    unseen_train: Examples
    unseen: Examples
    others: np.ndarray  # as many as members, for the null
    prompts: np.ndarray  # (n, 32)


@cache
def words() -> Vocabulary:
    """Return the vocabulary, from public reviews."""
    texts, order = reviews()
    return fit_vocabulary([texts[row] for row in order[:PUBLIC]], WORDS)


@cache
def reviews() -> tuple[list[str], np.ndarray]:
    """Return the reviews, each once, and an order in which the first ones are public."""
    texts = sorted(set(load("imdb")["texts"]))
    return texts, np.random.default_rng(0).permutation(len(texts))


@cache
def cut() -> np.ndarray:
    """Return two chunks of every review that is long enough, the public ones first."""
    texts, order = reviews()
    found, _ = chunks([texts[row] for row in order], words(), CHUNK, number=2)
    return found


@cache
def world(seed: int) -> World:
    """Deal the reviews that are not public."""
    rng = np.random.default_rng((seed, 1))
    pieces = cut()
    rest = rng.permutation(pieces[PUBLIC:])
    sizes = (SPARE, TRAINING, AUDITED, UNSEEN_TRAINING, UNSEEN, MEMBERS, PROMPTS)
    spare, train, real, unseen_train, unseen, others, prompts = np.split(
        rest[: sum(sizes)], np.cumsum(sizes)[:-1]
    )
    second = partial(np.take, indices=1, axis=1)
    return World(
        pieces[:PUBLIC].reshape(PUBLIC, -1),
        spare.reshape(SPARE, -1),
        Examples(second(train)),
        Examples(second(real)),
        np.concatenate([second(part) for part in (spare, train, real)]),
        Examples(second(unseen_train)),
        Examples(second(unseen)),
        second(others),
        prompts[:, 0],
    )


def trained(
    rows: np.ndarray, passes: int, seed: int, initial: LanguageModel | None = None
) -> LanguageModel:
    """Train a model on rows of tokens."""
    return fit_language_model(
        rows,
        vocabulary=len(words()),
        length=2 * CHUNK,
        passes=passes,
        seed=seed,
        initial=initial,
        learning_rate=2e-3 if initial is None else 1e-3,
    )


@cache
def start() -> LanguageModel:
    """Train the model that all others start from."""
    return trained(world(0).public, 3, 0)


@cache
def made(seed: int) -> tuple[Examples, float]:
    """Generate chunks, for training, audit and helper; and say how many seconds that took."""
    first = time.perf_counter()
    deal = world(seed)
    source = Prompted(trained(deal.spare, 3, seed, start()), deal.prompts, TOP_K)
    found = generate(source, PROMPTS, rng=np.random.default_rng((seed, 2)))
    return found, time.perf_counter() - first


@cache
def mixtures(seed: int) -> tuple[Mixture, Mixture]:
    """Return members with generated chunks, and members with unseen ones."""
    deal, (drawn, _) = world(seed), made(seed)
    fake = drawn[:TRAINING], drawn[TRAINING : TRAINING + AUDITED]
    return (
        mixed((deal.train, fake[0], deal.real, fake[1])),
        mixed((deal.train, deal.unseen_train, deal.real, deal.unseen)),
    )


def mixed(parts: tuple[Examples, ...]) -> Mixture:
    """Return a mixture of which classifiers see the below; what they see is worked out once."""
    matrix = sight(Examples(np.concatenate([part.inputs for part in parts])))
    return Mixture(*parts, see=matrix)


def sight(examples: Examples) -> np.ndarray:
    """Return what classifiers see of chunks.

    How often common words are there, what the start gathers from a chunk, and the losses that the
    start has: it is public, as GPT-2 is.
    """
    rows = examples.inputs
    counts = (rows[:, :, None] == np.arange(COUNTED)).sum(axis=1)
    return np.column_stack((counts, start().states(rows), Reader(start()).sequence(examples)))


@dataclass(eq=False)
class Reader:
    """A language model that works out the losses of a chunk once, however often it is asked."""

    model: LanguageModel
    known: dict[bytes, np.ndarray] = field(default_factory=dict)

    def losses(self, examples: Examples) -> np.ndarray:
        """Return the loss of every token but the first."""
        keys = [row.tobytes() for row in examples.inputs]
        new = [place for place, key in enumerate(keys) if key not in self.known]
        if new:
            found = self.model.losses(examples.inputs[new])
            self.known.update((keys[place], row) for place, row in zip(new, found, strict=True))
        return np.stack([self.known[key] for key in keys])

    def sequence(self, examples: Examples) -> np.ndarray:
        """Return the loss as classifiers see it: of every token, their mean and their largest."""
        each = self.losses(examples)
        return np.column_stack((each.mean(axis=1), each.max(axis=1), each))

    def mean(self, examples: Examples) -> np.ndarray:
        """Return the loss as O(1) sees it: the mean over tokens."""
        return self.losses(examples).mean(axis=1)


@cache
def helper(seed: int) -> Reader:
    """Train the helper on generated chunks that nobody else sees."""
    lessons = made(seed)[0].inputs[TRAINING + AUDITED :]
    return Reader(trained(lessons, HELPED, seed + 10, start()))


@cache
def tuned(seed: int, release: str) -> dict[int, Reader]:
    """Train the audited model or its null; a longer training goes on from a shorter one."""
    lessons = {TARGET: world(seed).members, NULL: world(seed).others}[release]
    model, done, found = start(), 0, {}
    for passes in PASSES:
        model = trained(lessons, passes - done, 100 * seed + passes + 50 * (release == NULL), model)
        found[passes], done = Reader(model), passes
    return found


@study("pan-texts", paper={"seed": SEEDS, "flips": [5]}, tolerance=0.02, needs=REVIEWS)
def fine_tuned(seed: int, flips: int) -> list[dict]:
    """Audit models of 2, 5 and 12 passes, and nulls of as many.

    Rows without a release are baselines: ``none`` sees the chunk alone, ``helper`` the helper's
    losses too. ``loss`` and ``unseen_loss`` are the model's on members and on unseen chunks,
    ``generated_loss`` on generated ones.
    """
    # the same coins for private models
    options = {"pairs": PAIRS, "flips": flips, "coins": seed}
    rows = baseline_rows(seed, options)
    for release in (TARGET, NULL):
        for passes, model in tuned(seed, release).items():
            rows += release_rows(seed, model, options, release=release, passes=passes)
    return rows


@study(
    "pan-texts-private",
    paper={"epsilon": [1.0, 10.0], "seed": SEEDS, "flips": [5]},
    tolerance=0.02,
    needs=REVIEWS,
)
def privately_tuned(
    epsilon: float, seed: int, flips: int, *, rng: np.random.Generator
) -> list[dict]:
    """Audit a model that was fine-tuned privately, and a null; columns as in `fine_tuned`."""
    options = {"pairs": PAIRS, "flips": flips, "coins": seed}
    rows = []
    for release, lessons in ((TARGET, world(seed).members), (NULL, world(seed).others)):
        model = Reader(private(lessons, epsilon, int(rng.integers(2**31))))
        rows += release_rows(seed, model, options, release=release)
    return rows


@study("pan-texts-curves", paper={"seed": SEEDS}, tolerance=0.02, needs=REVIEWS)
def recall_curves(seed: int) -> list[dict]:
    """Return precision and bound along the recall, after each number of passes; one toss."""
    generated, _ = mixtures(seed)
    rows = []
    for passes in PASSES:
        losses = {name: tuned(seed, name)[passes].sequence for name in (TARGET, NULL)}
        rows += curves(generated, helper(seed).sequence, losses, coins=seed, passes=passes)
    return rows


def baseline_rows(seed: int, options: dict) -> list[dict]:
    """Play the games of both baselines against themselves."""
    generated, _ = mixtures(seed)
    about = {"attack": "none", "release": "none", "training_seconds": made(seed)[1]}
    rows = []
    for name, scores in (("none", generated.scores()), ("helper", baseline_scores(seed))):
        rows += game_rows(scores, scores, baseline=name, **about, **options)
    return rows


@cache
def baseline_scores(seed: int):
    """Return the scores of the baseline that sees the helper's losses."""
    return mixtures(seed)[0].scores(helper(seed).sequence)


def release_rows(seed: int, model: Reader, options: dict, **about: object) -> list[dict]:
    """Audit a model by generated and by unseen chunks."""
    generated, unseen = mixtures(seed)
    rows = []
    for attack, seen in (
        (PAPERS, (model.sequence,)),
        (NESTED, (helper(seed).sequence, model.sequence)),
    ):
        scores = generated.scores(*seen)
        about_game = {"attack": attack, "baseline": "helper", **about}
        rows += game_rows(baseline_scores(seed), scores, **about_game, **options)
    rows += real_rows(unseen.scores(model.sequence), attack=PAPERS, **about, **options)
    rows += one_run_rows(unseen.loss_scores(model.mean), **about, **options)
    losses = {
        "loss": float(model.mean(generated.real).mean()),
        "unseen_loss": float(model.mean(unseen.other).mean()),
        "generated_loss": float(model.mean(generated.other).mean()),
    }
    return [{**row, **losses} for row in rows]


def private(rows: np.ndarray, epsilon: float, seed: int) -> LanguageModel:
    """Fine-tune the start with DP-SGD: Poisson batches, clipped gradients of chunks, and noise."""
    from opacus import PrivacyEngine

    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # of torch's hooks, of noise that is not for cryptography, of orders at the end of a list
        warnings.simplefilter("ignore")
        torch.default_generator.manual_seed(seed)
        network = start().models.module(0).train()
        optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
        tokens = torch.from_numpy(rows)
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(tokens[:, :-1], tokens[:, 1:]), batch_size=BATCH
        )
        network, optimiser, loader = PrivacyEngine(accountant="rdp").make_private_with_epsilon(
            module=network,
            optimizer=optimiser,
            data_loader=loader,
            target_epsilon=epsilon,
            target_delta=DELTA,
            epochs=PRIVATE_PASSES,
            max_grad_norm=CLIP,
        )
        for _ in range(PRIVATE_PASSES):
            # rows of a batch at once: the loader itself would take them one by one
            for batch in loader.batch_sampler:
                if len(batch):
                    optimiser.zero_grad()
                    logits, truth = network(tokens[batch, :-1]), tokens[batch, 1:]
                    nn.functional.cross_entropy(logits.flatten(0, 1), truth.flatten()).backward()
                    optimiser.step()
    weights = {name: weight.detach()[None] for name, weight in network._module.named_parameters()}
    return LanguageModel(Models(partial(small_gpt, len(words()), 2 * CHUNK), weights))
