"""Label inference played 100 times: what can be shown is ranked once, against sorting every game.

The naive way draws the coin and the label of each of a million examples, sorts all the scores, and
bounds the one count it gets. Both ways use the same random numbers, so that the games are the same.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditkit import one_run_fdp
from auditkit.attacks.label_inference import label_scores, repeat_label_game
from auditkit.mechanisms.label_dp import RandomizedResponse

EXAMPLES, GUESSES, GAMES = 1_000_000, 10_000, 100
NAIVE = 10  # games of the naive way that are timed; their time is scaled
EPSILON = 2.0


def measure() -> list[dict[str, Any]]:
    """Time 100 games on the output of randomised response, for 2 and for 10 classes."""
    _games(*_setting(2, 1000), 10, 2)  # compile, or load what was compiled
    return [_row(2), _row(10)]


def _row(classes: int) -> dict[str, Any]:
    setting = _setting(classes, EXAMPLES)
    start = time.perf_counter()
    found = _games(*setting, GUESSES, GAMES)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    slow = _naive(*setting, GUESSES, NAIVE)
    baseline_seconds = (time.perf_counter() - start) * GAMES / NAIVE
    return {
        "what": f"label inference, {GAMES} games, n = {EXAMPLES:,}, {classes} classes, 1% guessed",
        "baseline": f"numpy sorting all scores in each game (timed on {NAIVE} games and scaled)",
        "seconds": seconds,
        "baseline_seconds": baseline_seconds,
        "ratio": baseline_seconds / seconds,
        "agreement": float(np.max(np.abs(found[:NAIVE] / slow - 1.0))),
    }


def _setting(
    classes: int, examples: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return labels of a Gaussian mixture, their posterior, and the paper's scores."""
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=examples)
    features = rng.normal(size=(examples, classes))
    features[np.arange(examples), labels] += 1.0
    odds = np.exp(features)
    posterior = odds / odds.sum(axis=1, keepdims=True)
    released = RandomizedResponse(EPSILON, classes).privatize(labels, rng=rng)
    return labels, posterior, label_scores(np.eye(classes)[released], posterior)


def _games(
    labels: NDArray[np.int64],
    reference: NDArray[np.float64],
    scores: NDArray[np.float64],
    guesses: int,
    games: int,
) -> NDArray[np.float64]:
    counts = repeat_label_game(
        labels, reference, scores, guesses=[guesses], repetitions=games, rng=1
    )
    correct, place = np.unique(counts.correct[:, 0], return_inverse=True)
    return np.asarray(one_run_fdp(correct, guesses, len(labels)).epsilon)[place]


def _naive(
    labels: NDArray[np.int64],
    reference: NDArray[np.float64],
    scores: NDArray[np.float64],
    guesses: int,
    games: int,
) -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    running = np.cumsum(reference, axis=1)[:, :-1]
    rows = np.arange(len(labels))
    bounds = []
    for _ in range(games):
        draws = rng.random(len(labels))
        training = draws < 0.5
        generated = (2.0 * draws[:, None] - 1.0 >= running).sum(axis=1)
        seen = scores[rows, np.where(training, labels, generated)]
        top = np.argsort(-np.abs(seen))[:guesses]
        correct = np.count_nonzero((seen[top] > 0.0) == training[top])
        bounds.append(one_run_fdp(correct, guesses, len(labels)).epsilon)
    return np.array(bounds)


if __name__ == "__main__":
    for row in measure():
        print(row)
