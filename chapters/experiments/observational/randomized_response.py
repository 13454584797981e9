"""The audit of randomised response on a Gaussian mixture, where everything is known.

The true label of an example, its posterior given the features, and the ε of the mechanism are all
known, so that two things can be told apart which look alike in a trained model: how loose the audit
is, and what a wrong reference model adds.

As printed in OBS, Appendix C, the mean of class y is the y-th unit vector in 5 dimensions, of which
there are not enough for 10 classes. There are as many dimensions as classes here, and at least 5.
"""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import binom

from auditkit import one_run_fdp
from auditkit.attacks.label_inference import (
    label_scores,
    likelihood_ratio_scores,
    repeat_label_game,
)
from auditkit.experiment import study
from auditkit.mechanisms.label_dp import RandomizedResponse

DELTA = 1e-5
CONFIDENCE = 0.95
SHARES = (0.001, 0.01)  # of the examples that are guessed on
SHIFT_SHARES = (0.001, 0.01, 0.1, 0.5)
CLASSES = (2, 5, 10)
EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)  # 0: nothing is released
POSTERIOR, FITTED = "posterior", "logistic regression"
MILLION, ONCE, ANEW = 1_000_000, {"draws": 1, "games": 100}, {"draws": 10, "games": 10}


class Mixture(NamedTuple):
    """Examples of a mixture of as many Gaussians as there are classes, all equally likely."""

    labels: np.ndarray  # (n,)
    features: np.ndarray  # (n, dimensions)
    posterior: np.ndarray  # (n, classes), given the features


@study(
    "obs-randomized-response",
    paper=[
        {"classes": classes, "epsilon": epsilon, "proxy": proxy, "fresh": fresh}
        | {"examples": MILLION, **repeats}
        for proxies, epsilons, repeats in (
            (((POSTERIOR, 0), (FITTED, MILLION)), EPSILONS, ONCE),
            (((FITTED, 1_000), (FITTED, 10_000)), (0.0, 1.0), ANEW),
            (((POSTERIOR, 0),), (0.5, 2.0, 4.0), ANEW),
        )
        for classes in CLASSES
        for epsilon in epsilons
        for proxy, fresh in proxies
    ],
    live=[
        {"classes": classes, "epsilon": epsilon, "proxy": proxy, "fresh": fresh}
        | {"examples": 100_000, "draws": 1, "games": 20}
        for classes in CLASSES
        for epsilon in (0.5, 2.0, 4.0)
        for proxy, fresh in ((POSTERIOR, 0), (FITTED, 100_000))
    ],
    # One thread or two change no count. On another processor exp and log may differ in the last
    # digit and swap two examples at the edge of the guesses: one count of one game, hence less.
    tolerance=1e-3,
)
def response(
    classes: int,
    epsilon: float,
    proxy: str,
    fresh: int,
    examples: int,
    draws: int,
    games: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit randomised response by two attacks and two numbers of guesses.

    The `proxy` that generates labels is the true posterior, or a logistic regression on as many
    `fresh` examples. Data, proxy and noisy labels are drawn `draws` times, and so many `games` are
    played on each. The paper draws once, so that its deviations are those `within` a set of data.
    """
    correct: dict[str, list[np.ndarray]] = {}
    distances = []
    for _ in range(draws):
        mixture = mix(examples, classes, rng)
        reference = mixture.posterior
        if proxy == FITTED:
            reference = fitted(mix(fresh, classes, rng), mixture.features)
        distances.append(0.5 * np.abs(reference - mixture.posterior).sum(axis=1).mean())
        released = respond(mixture.labels, classes, epsilon, rng)
        for name, scores in attacks(released, reference, epsilon):
            counts = repeat_label_game(
                mixture.labels, reference, scores, guesses=SHARES, repetitions=games, rng=rng
            )
            correct.setdefault(name, []).append(counts.correct)
    return [
        {
            "attack": name,
            "guesses": share,
            "proxy_distance": float(np.mean(distances)),
            **summary(np.stack(found)[:, :, place], share, examples, epsilon),
        }
        for name, found in correct.items()
        for place, share in enumerate(SHARES)
    ]


@study(
    "obs-shift",
    paper={
        "epsilon": [0.5, 2.0, 4.0],
        "tau": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        "examples": [MILLION],
        "games": [100],
    },
    live={
        "epsilon": [0.5, 2.0, 4.0],
        "tau": [1e-5, 1e-3, 1e-1],
        "examples": [100_000],
        "games": [20],
    },
    reduced={"epsilon": [0.5, 4.0], "tau": [1e-5], "examples": [100_000], "games": [10]},
    tolerance=1e-3,
)
def shifted_response(
    epsilon: float, tau: float, examples: int, games: int, rng: np.random.Generator
) -> list[dict]:
    """Audit randomised response on two labels, the second of which is generated too often by τ.

    ``accounted`` is the bound that knows of τ, ``believed`` the one that takes τ for 0.
    """
    mixture = mix(examples, 2, rng)
    second = np.minimum(mixture.posterior[:, 1] + tau, 1.0)
    reference = np.stack((1.0 - second, second), axis=1)
    released = respond(mixture.labels, 2, epsilon, rng)
    rows = []
    for name, scores in (
        ("paper", label_scores(np.eye(2)[released], reference)),
        ("likelihood ratio", informed(released, mixture.posterior, reference, epsilon)),
    ):
        counts = repeat_label_game(
            mixture.labels, reference, scores, guesses=SHIFT_SHARES, repetitions=games, rng=rng
        )
        for place, share in enumerate(SHIFT_SHARES):
            correct, guesses = counts.correct[:, place], counts.guesses[0, place]
            row = {"attack": name, "guesses": share, "accuracy": float(correct.mean() / guesses)}
            for column, known in (("accounted", tau), ("believed", 0.0)):
                found = bounds(correct, int(guesses), examples, tau=known)
                row |= {
                    column: float(found.mean()),
                    f"{column}_deviation": float(found.std(ddof=1)),
                }
            rows.append(row)
    return rows


def mix(examples: int, classes: int, rng: np.random.Generator) -> Mixture:
    """Draw from the mixture: the mean of class y is the y-th unit vector, the covariance is I."""
    labels = rng.integers(classes, size=examples)
    features = rng.normal(size=(examples, max(5, classes)))
    features[np.arange(examples), labels] += 1.0
    return Mixture(labels, features, softmax(features[:, :classes], axis=1))


def fitted(fresh: Mixture, features: np.ndarray) -> np.ndarray:
    """Return what a logistic regression on fresh examples, by scikit-learn's defaults, predicts."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(fresh.features, fresh.labels)
    return model.predict_proba(features)


def respond(
    labels: np.ndarray, classes: int, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """Release noisy labels; with ε = 0 they have nothing to do with the true ones."""
    if epsilon == 0.0:
        return rng.integers(classes, size=len(labels))
    return RandomizedResponse(epsilon, classes).privatize(labels, rng=rng)


def attacks(
    released: np.ndarray, reference: np.ndarray, epsilon: float
) -> Iterable[tuple[str, np.ndarray]]:
    """Return the scores of the paper's attack, and of the best one where the proxy is the truth.

    The best one has nothing to go by at ε = 0: its ratio is 1.
    """
    yield "paper", label_scores(np.eye(reference.shape[1])[released], reference)
    if epsilon > 0.0:
        yield (
            "likelihood ratio",
            likelihood_ratio_scores(updated(released, reference, epsilon), reference),
        )


def updated(released: np.ndarray, prior: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the law of the true label given the noisy one, by Bayes' rule."""
    joint = prior * np.exp(-epsilon)
    rows = np.arange(len(released))
    joint[rows, released] = prior[rows, released]
    return joint / joint.sum(axis=1, keepdims=True)


def informed(
    released: np.ndarray, posterior: np.ndarray, reference: np.ndarray, epsilon: float
) -> np.ndarray:
    """Score by the likelihood ratio, for an attacker who knows the true posterior and the proxy.

    On a scale from -1 to 1: the ratio is infinite where the proxy never generates a label.
    """
    target = updated(released, posterior, epsilon)
    return (target - reference) / (target + reference)


def summary(correct: np.ndarray, share: float, examples: int, epsilon: float) -> dict:
    """Return mean and deviation of the bounds of all games, and how many exceed the true ε.

    `correct` has a row for each set of data, and a column for each game on it.
    """
    guesses = round(share * examples)
    row = {"accuracy": float(correct.mean() / guesses)}
    for family in ("gaussian", "pure"):
        found = bounds(correct, guesses, examples, family=family)
        deviation, within = spread(found)
        row |= {
            family: float(found.mean()),
            f"{family}_deviation": deviation,
            f"{family}_within": within,
            f"{family}_above": float(np.mean(found > epsilon)),
            f"ideal_{family}": ideal(epsilon, guesses, examples, family),
        }
    return row


def spread(found: np.ndarray) -> tuple[float, float]:
    """Return the deviation of games that are each on data of their own, and of those on the same.

    With one set of data, a row, only the second is known, and given twice.
    """
    sets, games = found.shape
    within = found.var(axis=1, ddof=1).mean()
    if sets == 1:
        return float(np.sqrt(within)), float(np.sqrt(within))
    # the mean of a set's games has the variance between sets and what its games have left of theirs
    total = found.mean(axis=1).var(ddof=1) + within * (1.0 - 1.0 / games)
    return float(np.sqrt(total)), float(np.sqrt(within))


def bounds(
    correct: np.ndarray,
    guesses: int,
    examples: int,
    *,
    family: str = "gaussian",
    tau: float = 0.0,
) -> np.ndarray:
    """Bound each count; counts that occur more than once are bounded once."""
    table, place = np.unique(correct, return_inverse=True)
    delta = 0.0 if family == "pure" else DELTA
    bound = one_run_fdp(
        table, guesses, examples, family=family, delta=delta, tau=tau, confidence=CONFIDENCE
    )
    return np.asarray(bound.epsilon)[place].reshape(correct.shape)


@cache
def ideal(epsilon: float, guesses: int, examples: int, family: str) -> float:
    """Return the mean bound where every guess is right as often as ε-privacy allows."""
    chance = expit(epsilon)
    low, high = binom.ppf((1e-12, 1.0 - 1e-12), guesses, chance)
    counts = np.arange(low, high + 1.0)
    weights = binom.pmf(counts, guesses, chance)
    return float(weights @ bounds(counts, guesses, examples, family=family) / weights.sum())
