"""One image classifier, every audit of the book.

The classifier is a linear head on what a frozen ImageNet network sees in images of CIFAR-10, 256
numbers an image: the part that is trained where images are classified with privacy. It is trained
with Opacus, or without privacy: either for as long as it gets better on unseen images, or until it
knows its own by heart. Of 6,000 images each is trained on by a coin; so is each of 1,000 more,
which the auditor has planted with a wrong label. All audits but that of many runs look at this one
model. Scores, steps and rates were chosen on other deals of the images than those of the grid.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from opacus import PrivacyEngine
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, softmax
from scipy.stats import binom, norm, rankdata
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from auditkit import (
    ApproxDP,
    Bonferroni,
    Bound,
    GaussianDP,
    audit_scores,
    dp_sgd_epsilon,
    epsilon_from_renyi,
    noise_multiplier_for,
    observational_label,
    two_worlds,
    zero_run,
)
from auditkit.attacks.canaries import crafted_gradient, logit_score, mislabelled, train_reference
from auditkit.attacks.generated import (
    Mixture,
    cross_entropy,
    generate,
    sampled_labels,
    split_members,
)
from auditkit.attacks.label_inference import label_game, label_scores
from auditkit.attacks.membership import difficulty_calibration
from auditkit.attacks.propensity import fit_propensity, rival_guesses
from auditkit.attacks.substitution import substitution_scores
from auditkit.bounds.panoramia_games import panoramia_games
from auditkit.bounds.propensity import diagnose_propensity
from auditkit.datasets import load
from auditkit.experiment import study
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, audit_sgd
from auditkit.mechanisms.releases import Releases, pate_releases, vote_shares
from auditkit.models.generators import Examples, fit_gaussian_mixtures
from auditkit.models.training import Models, fit_many
from experiments.private_prediction import composing
from experiments.substitute.audits import at_midpoint
from experiments.zero_run.audits import AWARE, NUMBERS, SHARP_POSTERIOR, guesses_of

CLASSES, COLUMNS = 10, 257  # the last column is 1
NATURAL, PLANTED = 6_000, 1_000  # images with a coin
DELTA = 1e-5
CONFIDENCE = 0.95
RULE = Bonferroni(10)  # ten numbers of guesses, each at a tenth of the level

SAMPLING_RATE, STEPS, CLIP, LEARNING_RATE = 1 / 20, 100, 1.0, 4.0
PRIVATE = round(STEPS * SAMPLING_RATE)  # passes over the images, on average
SHORT, LONG = 10, 100  # passes: where unseen images are predicted best, and until all are known
LEARNING_RATES = {SHORT: 0.002, LONG: 0.005}  # of trainings without privacy
OWN, OTHER = "audited images", "other images"
GAUSSIAN, NO_FAMILY = "gaussian", "approx"  # a curve is assumed, or nothing but (ε, δ)


# --- who is whose --------------------------------------------------------------------------------


class Coins(NamedTuple):
    """Images with coins, and the training set that follows."""

    natural: np.ndarray  # rows of the pool
    members: np.ndarray  # bool, their coins
    planted: np.ndarray
    planted_members: np.ndarray
    wrong: np.ndarray  # labels of those planted


class Deal(NamedTuple):
    """The images of one seed, as rows of the pool."""

    own: Coins
    other: Coins  # of the null's training
    auditor: np.ndarray  # to train what an audit needs
    outside: np.ndarray  # where other images come from, with another mix of classes
    test: np.ndarray


@cache
def pool() -> tuple[np.ndarray, np.ndarray]:
    """Return all images, of mean square norm 16 and with a column of ones, and their labels."""
    data = load("cifar10", part="features")
    x = np.concatenate((data["train_features"], data["test_features"])).astype(np.float64)
    x *= 4.0 / np.sqrt((x**2).sum(axis=1).mean())
    labels = np.concatenate((data["train_labels"], data["test_labels"]))
    return np.column_stack((x, np.ones(len(x)))).astype(np.float32), labels


@cache
def deal(seed: int) -> Deal:
    """Deal the images and toss the coins."""
    rng = np.random.default_rng((seed, 10))
    labels = pool()[1]
    sizes = (NATURAL, PLANTED, NATURAL, PLANTED, 10_000, 20_000)
    parts = np.split(rng.permutation(len(labels)), np.cumsum(sizes))

    def coins(natural: np.ndarray, planted: np.ndarray) -> Coins:
        wrong = (labels[planted] + rng.integers(1, CLASSES, PLANTED)) % CLASSES
        return Coins(natural, rng.random(NATURAL) < 0.5, planted, rng.random(PLANTED) < 0.5, wrong)

    return Deal(coins(*parts[:2]), coins(*parts[2:4]), *parts[4:])


def lessons(coins: Coins) -> tuple[np.ndarray, np.ndarray]:
    """Return what is trained on: images and labels."""
    x, labels = pool()
    natural = coins.natural[coins.members]
    planted = coins.planted[coins.planted_members]
    return (
        np.concatenate((x[natural], x[planted])),
        np.concatenate((labels[natural], coins.wrong[coins.planted_members])),
    )


# --- the model -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Head:
    """A trained head."""

    weights: np.ndarray  # (classes, columns)

    def logits(self, inputs: np.ndarray) -> np.ndarray:
        """Return the logits of images."""
        return np.asarray(inputs, np.float64) @ self.weights.T

    def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
        """Return the probabilities of labels, for inputs with the column of ones or without."""
        if inputs.shape[1] < COLUMNS:
            inputs = np.column_stack((inputs, np.ones(len(inputs))))
        return softmax(self.logits(inputs), axis=1)

    def losses(self, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the cross-entropy of images."""
        return -log_softmax(self.logits(inputs), axis=1)[np.arange(len(labels)), labels]


def fresh_head() -> nn.Linear:
    """Make a head that knows nothing."""
    layer = nn.Linear(COLUMNS, CLASSES, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


@cache
def noise_for(epsilon: float) -> float:
    """Return the noise multiplier of a training with ε for add/remove."""
    return noise_multiplier_for(
        epsilon, sampling_rate=SAMPLING_RATE, steps=STEPS, delta=DELTA, adjacency="add/remove"
    )


@cache
def substitute(epsilon: float) -> float:
    """Return the ε under substitution of the same training."""
    return dp_sgd_epsilon(
        noise_multiplier=noise_for(epsilon),
        sampling_rate=SAMPLING_RATE,
        steps=STEPS,
        delta=DELTA,
        adjacency="substitute",
    )


def private_head(inputs: np.ndarray, labels: np.ndarray, noise: float, seed: int) -> Head:
    """Train a head with Opacus."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # of randomness that is not secure, which an experiment is glad of, and of a linear model
        warnings.filterwarnings("ignore", message="Secure RNG|Full backward hook")
        torch.manual_seed(seed)
        layer = fresh_head()
        data = TensorDataset(torch.from_numpy(inputs), torch.from_numpy(labels))
        # Opacus samples with one over the number of batches
        loader = DataLoader(data, batch_size=math.ceil(len(labels) * SAMPLING_RATE))
        private, optimizer, loader = PrivacyEngine().make_private(
            module=layer,
            optimizer=torch.optim.SGD(layer.parameters(), lr=LEARNING_RATE),
            data_loader=loader,
            noise_multiplier=noise,
            max_grad_norm=CLIP,
        )
        for _ in range(PRIVATE):
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(private(x), y).backward()
                optimizer.step()
    return Head(layer.weight.detach().numpy().astype(np.float64))


def plain_head(inputs: np.ndarray, labels: np.ndarray, seed: int, *, passes: int) -> Head:
    """Train a head without privacy."""
    return Head(plain_heads(inputs, labels, [seed], passes=passes).weights["weight"][0].numpy())


def plain_heads(
    inputs: np.ndarray,
    labels: np.ndarray,
    seeds: list[int],
    *,
    passes: int,
    indices: np.ndarray | None = None,
) -> Models:
    """Train heads without privacy, all at once."""
    return fit_many(
        fresh_head,
        inputs,
        labels,
        seeds=seeds,
        indices=indices,
        epochs=passes,
        batch_size=64,
        learning_rate=LEARNING_RATES[passes],
        optimizer="adam",
    )


def target(epsilon: float, trained_on: str, seed: int, *, passes: int = LONG) -> Head:
    """Train the audited model; ε is infinite without privacy, and only then are passes chosen."""
    images = deal(seed)
    inputs, labels = lessons(images.own if trained_on == OWN else images.other)
    if epsilon == math.inf:
        return plain_head(inputs, labels, seed, passes=passes)
    return private_head(inputs, labels, noise_for(epsilon), seed)


@cache
def reference(seed: int) -> Head:
    """Train the auditor's own model, on images of her own."""
    x, labels = pool()
    rows = deal(seed).auditor
    return plain_head(x[rows], labels[rows], seed, passes=SHORT)


def score(model: Head, seed: int, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Score membership by how much lower the loss is than the auditor's own model's."""
    inputs = pool()[0][rows]
    return difficulty_calibration(
        model.losses(inputs, labels), reference(seed).losses(inputs, labels)
    )


# --- audits of the one model ---------------------------------------------------------------------


def one_audit(
    audit: str,
    epsilon: float,
    trained_on: str,
    passes: int,
    seed: int,
) -> list[dict]:
    """Train the model and make one audit of it.

    The same training and ``seed`` give the same model in every audit, and an audit draws the same
    for all models of a seed, so that they can be compared. ``found`` is the number that the audit
    reports, and ``claim`` what it is. Without noise nobody knows a curve, and what assumes one is
    an estimate, but for a model of other images: its coins are guessed by chance, which is a curve
    of every family.
    """
    reference.cache_clear()  # its training is part of the seconds of each audit that needs it
    model = target(epsilon, trained_on, seed, passes=passes)
    rows = AUDITS[audit](model, seed, np.random.default_rng((seed, 11)))
    if epsilon == math.inf and trained_on == OWN:
        rows = [
            {**row, "claim": "estimate"} if row.get("family") == GAUSSIAN else row for row in rows
        ]
    return rows


LOWEST, HIGHEST = "non-members among the 100 lowest scores", "members among the 100 highest scores"
DENIED = "guesses of the zero run, of 100, that say non-member"


def accuracy(model: Head, seed: int, _: np.random.Generator) -> list[dict]:
    """Return how many images the model knows, and where one attack finds members and others.

    The last three are of those natural images that the zero run without a shift is played on.
    """
    images, (x, labels) = deal(seed), pool()

    def right(rows: np.ndarray) -> float:
        return float((model.logits(x[rows]).argmax(axis=1) == labels[rows]).mean())

    coins = images.own
    rows, members = fair_half(images)
    scores = score(model, seed, rows, labels[rows])
    order = np.argsort(scores, kind="stable")
    hundred = guesses_of(SHARP_POSTERIOR, scores, np.zeros(len(rows)))[NUMBERS.index(100)]
    measured = {
        "test accuracy": right(images.test),
        "accuracy on members": right(coins.natural[coins.members]),
        "AUC, natural images": auc(
            score(model, seed, coins.natural, labels[coins.natural]), coins.members
        ),
        "AUC, planted images": auc(
            score(model, seed, coins.planted, coins.wrong), coins.planted_members
        ),
        LOWEST: float((~members[order[:100]]).mean()),
        HIGHEST: float(members[order[-100:]].mean()),
        DENIED: float((hundred < 0).sum() / 100),
    }
    return [
        {"method": name, "claim": "measured", "adjacency": None, "found": value}
        for name, value in measured.items()
    ]


def auc(scores: np.ndarray, members: np.ndarray) -> float:
    """Return the chance that a member scores above another."""
    own, others = int(members.sum()), int((~members).sum())
    above = rankdata(scores)[members].sum() - own * (own + 1) / 2
    return float(above / (own * others))


def row(method: str, family: str, bound: Bound, **others: float | str | None) -> dict:
    """Return what a bound says as a row."""
    return {
        "method": method,
        "family": family,
        "claim": bound.claim,
        "adjacency": bound.adjacency,
        "found": float(bound.epsilon),
        "examples": int(bound.details["examples"]),
        "guesses": int(bound.details["guesses"]),
        "correct": int(bound.details["correct"]),
        **others,
    }


def one_run_audit(model: Head, seed: int, _: np.random.Generator) -> list[dict]:
    """Guess the coins of natural images, and those of images planted with a wrong label."""
    coins, labels = deal(seed).own, pool()[1]
    played = {
        "natural": (coins.natural, labels[coins.natural], coins.members),
        "planted": (coins.planted, coins.wrong, coins.planted_members),
    }
    return [
        row(f"one run, {kind}", family, one_run_bound(model, seed, *images, family))
        for kind, images in played.items()
        for family in (GAUSSIAN, NO_FAMILY)
    ]


def one_run_bound(
    model: Head, seed: int, rows: np.ndarray, said: np.ndarray, members: np.ndarray, family: str
) -> Bound:
    """Audit at ten numbers of guesses, which share the level, by one of the two theorems."""
    return audit_scores(
        score(model, seed, rows, said),
        members,
        method={GAUSSIAN: "one-run-fdp", NO_FAMILY: "one-run"}[family],
        threshold=RULE,
        delta=DELTA,
        confidence=CONFIDENCE,
    )


def label_audit(model: Head, seed: int, rng: np.random.Generator) -> list[dict]:
    """Guess which label members were trained with; the placebo has images that were not."""
    coins, (x, labels) = deal(seed).own, pool()
    number = min(int(coins.members.sum()), int((~coins.members).sum()))

    def play(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        said, expected = (each.predict_proba(x[rows]) for each in (model, reference(seed)))
        game = label_game(labels[rows], expected, rng=rng)
        return label_scores(said, expected)[np.arange(number), game.shown], game.chosen

    scores, chosen = play(coins.natural[coins.members][:number])
    placebo, placebo_chosen = play(coins.natural[~coins.members][:number])
    curves = {GAUSSIAN: GAUSSIAN, NO_FAMILY: lambda epsilon: ApproxDP(epsilon, DELTA)}
    bounds = {
        family: observational_label(
            scores,
            chosen,
            placebo_scores=placebo,
            placebo_chosen=placebo_chosen,
            family=curve,
            threshold=RULE,
            delta=DELTA,
            confidence=CONFIDENCE,
        )
        for family, curve in curves.items()
    }
    return [
        row("labels", family, bound, placebo=float(bound.details["placebo_epsilon"]))
        for family, bound in bounds.items()
    ]


# log-odds of members against others, by class, for an outsider's other images
CLASS_ODDS = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5, -1.5, 1.0, -1.0])
DIRECTIONS = 50  # that propensities are fitted on, beside the class
NO_SHIFT, TRUE, FITTED = "no shift, propensity ½", "shift, true propensity", "shift, fitted"
SAME_COINS = "one run, the coins without a shift"
SPARE = 120  # members that the outsider knows and will not need
CORRECTIONS = {"none": SHARP_POSTERIOR, "conditional": AWARE, "sharp": SHARP_POSTERIOR}


def zero_run_audit(model: Head, seed: int, rng: np.random.Generator) -> list[dict]:
    """Guess members among images that nobody tossed a coin for, or as if nobody had."""
    images, (x, labels) = deal(seed), pool()
    who, members = fair_half(images)
    half = np.full(len(who), 0.5)
    rows = [
        row(
            NO_SHIFT,
            family,
            zero_run_bound(model, seed, who, members, half, "conditional", rng, family),
        )
        for family in (GAUSSIAN, NO_FAMILY)
    ]
    same = one_run_bound(model, seed, who, labels[who], members, GAUSSIAN)
    rows.append(row(SAME_COINS, GAUSSIAN, same))
    fitting, audited = outsiders_view(images, labels, rng)
    about = [
        np.column_stack((x[who, :DIRECTIONS], np.eye(CLASSES)[labels[who]]))
        for who, _ in (fitting, audited)
    ]
    fitted = fit_propensity(about[0], fitting[1], rng=rng).propensity(about[1])
    shares = np.exp(-CLASS_ODDS) / np.exp(-CLASS_ODDS).sum()
    true = expit(-np.log(CLASSES * shares))[labels[audited[0]]]
    for source, propensity in ((TRUE, true), (FITTED, fitted)):
        rival = rival_guesses(about[1], audited[1], propensity, rng=rng)
        report = diagnose_propensity(propensity, audited[1], *rival, rng=rng)
        for name in CORRECTIONS:
            if name == "none" and source == TRUE:
                continue  # the same number again
            bound = zero_run_bound(model, seed, *audited, propensity, name, rng)
            # nobody can know that a fit is right, though the data may not reject it; what is known
            # needs no test, which rejects one truth in twenty
            claim = {"claim": "estimate"} if source == FITTED else {}
            rows.append(
                row(
                    f"{source}, {name}",
                    GAUSSIAN,
                    bound,
                    p_value=float(report.test.p_value),
                    rejected=bool(report.test.rejected),
                    blind_auc=float(report.auc),
                    **claim,
                )
            )
    return rows


def fair_half(images: Deal) -> tuple[np.ndarray, np.ndarray]:
    """Return half of the natural images and their coins, as a random split would hand them over."""
    half = NATURAL // 2
    return images.own.natural[:half], images.own.members[:half]


def zero_run_bound(
    model: Head,
    seed: int,
    rows: np.ndarray,
    members: np.ndarray,
    propensity: np.ndarray,
    correction: str,
    rng: np.random.Generator,
    family: str = GAUSSIAN,
) -> Bound:
    """Audit at six numbers of guesses, which share the level."""
    odds = np.log(propensity) - np.log1p(-propensity)
    guesses = guesses_of(CORRECTIONS[correction], score(model, seed, rows, pool()[1][rows]), odds)
    return zero_run(
        guesses,
        members,
        propensity,
        correction=correction,
        family=family,
        delta=DELTA,
        confidence=CONFIDENCE,
        rng=rng,
    )


def outsiders_view(
    images: Deal, labels: np.ndarray, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return images with memberships twice, to fit propensities on and to audit.

    Known members stand beside images from elsewhere, whose classes are mixed otherwise.
    """
    known = rng.permutation(images.own.natural[images.own.members])
    elsewhere = rng.permutation(images.outside)
    by_class = [elsewhere[labels[elsewhere] == label] for label in range(CLASSES)]
    shares = np.exp(-CLASS_ODDS) / np.exp(-CLASS_ODDS).sum()
    used, views = np.zeros(CLASSES, int), []
    number = len(known) // 2
    for part in (known[:number], known[number : 2 * number]):
        # coins that are independent may ask for more than half: more than four deviations are spare
        members = rng.random(2 * (number - SPARE)) < 0.5
        rows = np.empty(len(members), int)
        rows[members] = part[: members.sum()]  # an error if too few are known
        drawn = rng.choice(CLASSES, int((~members).sum()), p=shares)
        for place, label in zip(np.flatnonzero(~members), drawn, strict=True):
            rows[place] = by_class[label][used[label]]
            used[label] += 1
        views.append((rows, members))
    return views


def generated_audit(model: Head, seed: int, rng: np.random.Generator) -> list[dict]:
    """Compare members with examples that a generator makes, which a part of them has trained.

    Beside the two losses the attack sees their difference, which trees would have to find.
    """
    coins, (x, labels) = deal(seed).own, pool()
    rows = coins.natural[coins.members]
    members = Examples(x[rows, :-1], labels[rows])
    spare, train, audited = split_members(len(members), training=PAIRS, audited=PAIRS, rng=rng)
    own = members[spare]
    made = generate(fit_gaussian_mixtures(own, rng, components=1), 2 * PAIRS + len(own), rng=rng)
    made = made.labelled(sampled_labels(helper_of(own, rng), made.inputs, rng=rng))
    helped, audit = (cross_entropy(each) for each in (helper_of(made[2 * PAIRS :], rng), model))
    mixture = Mixture(members[train], made[:PAIRS], members[audited], made[PAIRS : 2 * PAIRS])
    games = panoramia_games(
        mixture.scores(helped),
        mixture.scores(helped, audit, lambda seen: audit(seen) - helped(seen)),
        confidence=CONFIDENCE,
        rng=rng,
    )
    return [
        {
            "method": "generated",
            "claim": games[0].claim,
            "adjacency": games[0].adjacency,
            "found": float(np.mean([game.epsilon for game in games])),
            "examples": PAIRS,
            "baseline": float(np.mean([game.c_lower for game in games])),
            "with_model": float(np.mean([game.c_plus_epsilon_lower for game in games])),
            "ceiling": float(games[0].details["ceiling"]),
        }
    ]


PAIRS = 900


def helper_of(examples: Examples, rng: np.random.Generator) -> Head:
    """Train a head that has not met the audited members."""
    inputs = np.column_stack((examples.inputs, np.ones(len(examples)))).astype(np.float32)
    return plain_head(inputs, examples.labels, int(rng.integers(2**31)), passes=SHORT)


Audit = Callable[[Head, int, np.random.Generator], list[dict]]
TRAINING, ONE_RUN, LABELS, ZERO_RUN, GENERATED = (
    "training",
    "one run",
    "labels",
    "zero run",
    "generated examples",
)
AUDITS: dict[str, Audit] = {
    TRAINING: accuracy,
    ONE_RUN: one_run_audit,
    LABELS: label_audit,
    ZERO_RUN: zero_run_audit,
    GENERATED: generated_audit,
}


# --- many runs -----------------------------------------------------------------------------------

INSERTED, OPPOSITE, WRONG = "gradient, in or out", "gradient, this or that", "wrong label"
SAME = "gradient, no difference"


def audit_of_many_runs(
    canary: str, epsilon: float, runs: int, seed: int, rng: np.random.Generator
) -> list[dict]:
    """Train the same head many times in two worlds that differ in a canary.

    "gaussian" rows take the trade-off curve for a Gaussian one, which without noise is a guess;
    "approx" rows take nothing.
    """
    inputs, labels = lessons(deal(seed).own)
    trained = train_reference(
        fresh_head(), inputs, labels, steps=STEPS, learning_rate=LEARNING_RATE, rng=rng
    )
    # not one of those planted, which have a wrong label as it is
    z = int(trained.confidence[: deal(seed).own.members.sum()].argmin())
    rest = np.arange(len(labels)) != z
    if canary == WRONG:
        other = mislabelled(trained.model, inputs[z], int(labels[z]))
        planted = InputCanary(np.stack([inputs[z], inputs[z]]), [labels[z], other])
    else:
        pair = crafted_gradient(trained.movement, clip=CLIP)
        planted = GradientCanary(
            {INSERTED: pair * [[0], [1]], SAME: pair[[0, 0]]}.get(canary, pair)
        )
    draw = int(rng.integers(2**31))
    if epsilon == math.inf:
        scores, bits = plain_runs(inputs, labels, rest, planted, runs, draw)
    else:
        models = audit_sgd(
            inputs[rest],
            labels[rest],
            planted,
            runs=runs,
            steps=STEPS,
            sampling_rate=SAMPLING_RATE,
            noise_multiplier=noise_for(epsilon),
            clip=CLIP,
            learning_rate=LEARNING_RATE,
            logits=CLASSES,
            seed=draw,
        )
        looked_at = GradientCanary(pair) if canary == SAME else planted
        scores, bits = substitution_scores(models, looked_at)[:, 0], models.bits
    return [
        {
            "family": family,
            "claim": "estimate" if epsilon == math.inf and family == GAUSSIAN else "lower bound",
            "adjacency": "add/remove" if canary == INSERTED else "substitute",
            "found": at_midpoint(scores, bits, 0, family),
        }
        for family in (GAUSSIAN, NO_FAMILY)
    ]


def plain_runs(
    inputs: np.ndarray,
    labels: np.ndarray,
    rest: np.ndarray,
    canary: InputCanary,
    runs: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Train without privacy in both worlds; return scores and bits."""
    bits = np.arange(runs) % 2
    others = np.flatnonzero(rest)
    images = np.concatenate((inputs, inputs[~rest]))
    said = np.concatenate((labels, [canary.labels[1]]))
    z = int(np.flatnonzero(~rest)[0])
    indices = np.array([np.append(others, len(labels) if bit else z) for bit in bits])
    seeds = np.random.default_rng(seed).integers(2**31, size=runs).tolist()
    models = plain_heads(images, said, seeds, passes=LONG, indices=indices)
    logits = models.logits(np.asarray(canary.features, np.float32))
    return logit_score(logits, canary.labels, logits=CLASSES), bits


def unseen_steps(
    canary: str, epsilon: float, *, sampling_rate: float = SAMPLING_RATE
) -> tuple[float, float]:
    """Return ε for who sees a weight at the end only, and what endless runs would find.

    Nothing else moves that weight: it ends at noise of variance T σ², and a gradient of length 1 in
    as many of the T steps as the sampling says, or its opposite or nothing. Of two such laws those
    above a threshold are told apart best, in one direction or the other. Endless runs know both
    error rates at the middle of the two means, and take the curve for a Gaussian one.
    """
    times = np.arange(STEPS + 1)
    weights = binom.pmf(times, STEPS, sampling_rate)
    spread = noise_for(epsilon) * math.sqrt(STEPS)
    low = {INSERTED: 0, OPPOSITE: -1}[canary]

    def above(sign: int, thresholds: np.ndarray) -> np.ndarray:
        return norm.sf(thresholds[:, np.newaxis], sign * times, spread) @ weights

    def below(sign: int, thresholds: np.ndarray) -> np.ndarray:
        return norm.cdf(thresholds[:, np.newaxis], sign * times, spread) @ weights

    grid = np.linspace(-8 * spread + low * STEPS, 8 * spread + STEPS, 4_001)
    with np.errstate(divide="ignore", invalid="ignore"):
        true = [
            np.nanmax(np.log((one - DELTA) / two))
            for one, two in (
                (above(1, grid), above(low, grid)),
                (below(low, grid), below(1, grid)),
            )
        ]
    middle = np.array([(1 + low) / 2 * STEPS * sampling_rate])
    mu = norm.isf(above(low, middle)) - norm.ppf(below(1, middle))
    return float(max(true)), float(GaussianDP(float(mu[0])).epsilon(DELTA))


# --- the private-prediction twin -----------------------------------------------------------------

TEACHERS, QUERIES, ANSWERS = 50, 20, 100
DEALS, REPEATS = 10, 200
DRAWS = 10**7


def audit_of_pate(epsilon: float, point: str, seed: int, rng: np.random.Generator) -> list[dict]:
    """Answer by a vote of teachers who share the images; the point is a query, with a wrong label.

    Noise is such that theory allows ε for a hundred answers. "no point" has none in either world:
    what is found there is the noise of vote shares, which are measured on hundreds of models, and
    the best of twenty queries. One answer is to the query that leaks most, and so are a hundred.
    """
    inputs, labels = lessons(deal(seed).own)
    images = (inputs, labels, pool()[0][deal(seed).test[:QUERIES]])
    before = teachers(*images, None, DEALS * TEACHERS, rng)
    shares = vote_shares(before, CLASSES)
    if point == POISON:
        wrong = np.argsort(-shares, axis=1, kind="stable")[:, 1]
        after = np.stack(
            [teachers(*images, (q, wrong[q]), REPEATS, rng)[:, q] for q in range(QUERIES)], axis=1
        )
    else:
        order = rng.permutation(len(before))
        before, after = before[order[REPEATS:]], before[order[:REPEATS]]
    sigma = vote_noise(epsilon)
    pair = pate_releases(before, after, TEACHERS, classes=CLASSES, sigma=sigma)
    plugged = np.array([release_epsilon(*laws) for laws in zip(*laws_of(pair), strict=True)])
    worst = int(plugged.argmax())
    laws = [law[worst] for law in laws_of(pair)]
    together = ANSWERS * pair.divergences(composing.ORDERS)
    found = {
        FROM_SHARES: plugged[worst],
        AUDITED: answer_audit(*laws, rng),
        SUMMED: max(renyi_epsilon(one) for one in together),
    }
    return [
        {
            "method": name,
            "claim": "estimate",
            "adjacency": "add/remove",
            "found": float(value),
            "sigma": sigma,
        }
        for name, value in found.items()
    ]


POISON, NO_POINT = "a wrong label", "no point"
FROM_SHARES, AUDITED = "one answer, from vote shares", "one answer, audited"
SUMMED = "sum over a hundred answers"


def laws_of(pair: Releases) -> tuple[np.ndarray, np.ndarray]:
    """Return the laws of the released labels in both worlds."""
    return pair.without, pair.with_point


def teachers(
    inputs: np.ndarray,
    labels: np.ndarray,
    asked: np.ndarray,
    point: tuple[int, int] | None,
    models: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Train models on random parts, with a query as a point if given; return votes of all."""
    size = len(labels) // TEACHERS
    deals = [
        rng.permutation(len(labels))[: size * TEACHERS].reshape(TEACHERS, size)
        for _ in range(-(-models // TEACHERS))
    ]
    parts = np.concatenate(deals)[:models]
    if point is not None:
        query, label = point
        inputs = np.concatenate((inputs, asked[query][None]))
        labels = np.append(labels, label)
        parts = np.column_stack((parts, np.full(models, len(labels) - 1)))
    seeds = rng.integers(2**31, size=models).tolist()
    return fit_many(
        fresh_head,
        inputs,
        labels,
        seeds=seeds,
        indices=parts,
        epochs=20,
        batch_size=16,
        learning_rate=0.01,
        optimizer="adam",
    ).predict(asked)


@cache
def vote_noise(epsilon: float) -> float:
    """Return the noise on each count with which theory allows ε for all answers."""
    return float(brentq(lambda sigma: vote_theory(sigma) - epsilon, 1.0, 1e4, xtol=1e-6))


def vote_theory(sigma: float, answers: int = ANSWERS) -> float:
    """Return ε of as many noisy histograms, of which a point moves one vote: two counts by 1."""
    return float(GaussianDP(math.sqrt(2 * answers) / sigma).epsilon(DELTA))


def renyi_epsilon(divergences: np.ndarray) -> float:
    """Return ε from divergences at the orders that are looked at."""
    return float(epsilon_from_renyi(composing.ORDERS, divergences, DELTA))


def release_epsilon(p: np.ndarray, q: np.ndarray) -> float:
    """Return the ε at δ of one release with these two laws."""

    def excess(epsilon: float) -> float:
        return (
            max(
                np.maximum(one - math.exp(epsilon) * two, 0.0).sum()
                for one, two in ((p, q), (q, p))
            )
            - DELTA
        )

    return 0.0 if excess(0.0) <= 0.0 else float(brentq(excess, 0.0, 50.0, xtol=1e-12))


def answer_audit(p: np.ndarray, q: np.ndarray, rng: np.random.Generator) -> float:
    """Bound the ε of one answer from counts in two worlds.

    Whether an answer is in a set of labels, which the laws fix before anything is drawn, tells the
    worlds apart. The bound holds for these laws, whatever they were taken from.
    """
    chosen = list(composing.telling_cut(p, q))
    counts = [int(rng.binomial(DRAWS, min(1.0, law[chosen].sum()))) for law in (p, q)]
    bound = two_worlds(
        counts[0],
        DRAWS,
        DRAWS - counts[1],
        DRAWS,
        method="clopper-pearson",
        delta=DELTA,
        confidence=CONFIDENCE,
    )
    return float(bound.epsilon)


# --- grids ---------------------------------------------------------------------------------------

EPSILONS = [1.0, 2.0, 4.0, 8.0]
SEEDS = 5


def grid(epsilons: list[float], plain: list[int], seeds: int) -> list[dict]:
    """Return the cells of the audits of one model: private, without privacy, and the null."""
    trainings = [(epsilon, OWN, PRIVATE) for epsilon in epsilons]
    trainings += [(math.inf, OWN, passes) for passes in plain] + [(math.inf, OTHER, LONG)]
    names = ("audit", "epsilon", "trained_on", "passes", "seed")
    return [
        dict(zip(names, (audit, *training, seed), strict=True))
        for seed in range(seeds)
        for training in trainings
        for audit in AUDITS
    ]


def many_runs_grid(epsilons: list[float], runs: int, plain: int, seeds: int) -> list[dict]:
    """Return the cells of many runs: private ones, one without a difference, and plain ones."""
    settings = [
        (canary, epsilon, runs) for epsilon in epsilons for canary in (INSERTED, OPPOSITE, WRONG)
    ]
    settings += [(SAME, epsilons[-1], runs)] + [(WRONG, math.inf, plain)] * (plain > 0)
    return [
        {"canary": canary, "epsilon": epsilon, "runs": number, "seed": seed}
        for seed in range(seeds)
        for canary, epsilon, number in settings
    ]


def pate_grid(epsilons: list[float], seeds: int) -> list[dict]:
    """Return the cells of the twin."""
    settings = [(epsilon, point) for point in (POISON, NO_POINT) for epsilon in epsilons]
    return [
        {"epsilon": epsilon, "point": point, "seed": seed}
        for seed in range(seeds)
        for epsilon, point in settings
    ]


one_model = study(
    "five-audits",
    paper=grid(EPSILONS, [SHORT, LONG], SEEDS),
    live=grid([8.0], [], 1),
    # where there is most to find, a score that crosses a threshold by rounding moves it least
    reduced=[
        {"audit": audit, "epsilon": math.inf, "trained_on": OWN, "passes": LONG, "seed": 0}
        for audit in AUDITS
    ],
    tolerance=0.05,
)(one_audit)
many_runs = study(
    "five-audits-many-runs",
    paper=many_runs_grid(EPSILONS, 1500, 60, SEEDS),
    live=[
        {"canary": canary, "epsilon": 8.0, "runs": 200, "seed": 0} for canary in (OPPOSITE, SAME)
    ],
    reduced=[{"canary": OPPOSITE, "epsilon": 8.0, "runs": 100, "seed": 0}],
    tolerance=0.05,
)(audit_of_many_runs)
twin = study(
    "five-audits-pate",
    paper=pate_grid(EPSILONS, SEEDS),
    live=[{"epsilon": 8.0, "point": POISON, "seed": 0}],
    tolerance=0.02,
)(audit_of_pate)
