"""The audit of one model, played often: the paper's attack, two older ones, and their placebos.

Each attack is played on the examples that the audited model was trained on and, as its placebo, on
examples that it has never seen. Models, scores and examples are the same in all games of an audit:
what is drawn anew are the coins and, for label inference, the generated labels. The paper's
standard deviations are of that kind too, and hold nothing of the training or of the data.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditkit import GaussianDP, one_run_fdp
from auditkit.attacks.label_inference import label_scores, repeat_label_game
from auditkit.attacks.membership import difficulty_calibration, rmia
from auditkit.bounds.observational import tau_from_placebo
from auditkit.bounds.one_run_fdp import best_over_thresholds
from auditkit.evidence import GuessCounts
from auditkit.thresholds import Fixed

# the labels are those of the data, or drawn from the reference model before the training
OBSERVATIONAL, INTERVENTIONAL = "observational", "interventional"
DELTA = 1e-5
LEVEL = 0.05
SHARES = np.arange(1, 101) / 100  # of the examples that are guessed on
FIXED = 0  # the place of 1% among them
WIDE = 29  # and of 30%


class Examples(NamedTuple):
    """Examples, and what the two models say of them."""

    labels: np.ndarray  # (n,) the true ones
    target: np.ndarray  # (n, K) probabilities of the audited model
    reference: np.ndarray  # (n, K) probabilities of the model that generates labels


Attack = tuple[GuessCounts, GuessCounts]  # all games on training examples, and of the placebo


def audit_rows(
    labels: ArrayLike,
    target: ArrayLike,
    reference: ArrayLike,
    *,
    held_out: tuple[ArrayLike, ArrayLike, ArrayLike],
    repetitions: int,
    rng: np.random.Generator,
    which: str = "trained",
) -> list[dict]:
    """Audit a model with three attacks and return a row for each way to count their guesses.

    Parameters
    ----------
    labels, target, reference : array
        The labels of training examples, and the probabilities that the audited model and the
        reference model give each label.
    held_out : tuple of three arrays
        The same for as many examples that neither model was trained on.
    repetitions : int
        Games of each kind, at least 2.
    rng : Generator
        Draws the coins and the generated labels.
    which : str
        What is written into the column ``reference``.

    Returns
    -------
    list of dict
        By ``attack``, by what it was ``played_on`` and by how many ``guesses`` it made: the mean
        ``bound`` over the games (Gaussian family, δ = 1e-5, 95%) and its ``deviation``. ``pure``
        is the mean ε at δ = 0, which asks nothing of the mechanism's curve; ``tau`` the mean
        shift that the placebo makes plausible. The sweep takes the best of 1%, ..., 100% as the
        paper does, uncorrected; the corrected sweep pays for it with a level of 0.05 / 100 each.
    """
    training = Examples(*map(np.asarray, (labels, target, reference)))
    unseen = Examples(*map(np.asarray, held_out))
    if len(training.labels) != len(unseen.labels):
        raise ValueError(
            "held_out must hold as many examples as labels, got "
            f"{len(unseen.labels)} and {len(training.labels)}"
        )
    attacks = {
        "label inference": (
            _label_games(training, repetitions, rng),
            _label_games(unseen, repetitions, rng),
        ),
        "difficulty calibration": _membership_games(
            _calibrated(training), _calibrated(unseen), repetitions, rng
        ),
        "RMIA": _membership_games(_rmia(training, unseen), _rmia(unseen, unseen), repetitions, rng),
    }
    rows = [row for name, games in attacks.items() for row in _rows(name, *games)]
    return [{"reference": which, **row} for row in rows]


def _label_games(examples: Examples, repetitions: int, rng: np.random.Generator) -> GuessCounts:
    scores = label_scores(examples.target, examples.reference)
    return repeat_label_game(
        examples.labels,
        examples.reference,
        scores,
        guesses=SHARES.tolist(),
        repetitions=repetitions,
        rng=rng,
    )


def _membership_games(
    training: np.ndarray, unseen: np.ndarray, repetitions: int, rng: np.random.Generator
) -> Attack:
    """Play members against unseen examples, and one half of the unseen against the other."""
    half = len(unseen) // 2
    return (
        repeat_membership_game(training, unseen, repetitions, rng),
        repeat_membership_game(unseen[:half], unseen[half : 2 * half], repetitions, rng),
    )


def repeat_membership_game(
    members: np.ndarray, others: np.ndarray, repetitions: int, rng: np.random.Generator
) -> GuessCounts:
    """Show member i or non-member i by a fair coin; guess half at either end of the scores.

    The scores of all are sorted once. In each game those shown are walked in that order.
    """
    pairs = len(members)
    sizes = np.array([Fixed(guesses=share).number(pairs) for share in SHARES.tolist()])
    # ties fall as a shuffle has it, the same in every game
    shuffled = rng.permutation(2 * pairs)
    order = shuffled[np.argsort(-np.concatenate((members, others))[shuffled], kind="stable")]
    pair, is_member = order % pairs, order < pairs
    correct = np.empty((repetitions, sizes.size), np.int64)
    for game in correct:
        shows_member = rng.random(pairs) < 0.5
        shown = is_member[shows_member[pair] == is_member]
        from_top = np.concatenate(([0], np.cumsum(shown)))
        from_bottom = np.concatenate(([0], np.cumsum(~shown[::-1])))
        game[:] = from_top[(sizes + 1) // 2] + from_bottom[sizes // 2]
    return GuessCounts(correct, sizes, pairs)


def _calibrated(examples: Examples) -> np.ndarray:
    target, reference = _confidences(examples)
    return difficulty_calibration(-np.log(target), -np.log(reference))


def _rmia(examples: Examples, population: Examples) -> np.ndarray:
    # With one reference model the score is the place of an example's ratio among those of the
    # population, so that the population changes no order: unseen examples can be both.
    return rmia(*_confidences(examples), *_confidences(population))


def _confidences(examples: Examples) -> tuple[np.ndarray, np.ndarray]:
    """Return what both models give the true label."""
    rows = np.arange(len(examples.labels))
    return (
        examples.target[rows, examples.labels],
        examples.reference[rows, examples.labels],
    )


def _rows(attack: str, training: GuessCounts, placebo: GuessCounts) -> list[dict]:
    found = {
        (played_on, guesses): count(games)
        for played_on, games in (("training", training), ("placebo", placebo))
        for guesses, count in COUNTED.items()
    }
    if attack == "label inference":  # the others generate no labels that a shift could speak of
        found["training", "30%, τ from the placebo"] = _shifted(training, placebo)
    return [
        {
            "attack": attack,
            "played_on": played_on,
            "guesses": guesses,
            "bound": float(values["epsilon"].mean()),
            "deviation": float(values["epsilon"].std(ddof=1)),
            "pure": float(values["pure"].mean()) if "pure" in values else None,
            "tau": float(values["tau"].mean()) if "tau" in values else None,
            "examples": int((training if played_on == "training" else placebo).examples[0, 0]),
        }
        for (played_on, guesses), values in found.items()
    ]


def _at(games: GuessCounts, place: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the counts of every game at one of the shares."""
    return games.correct[:, place], games.guesses[:, place], games.examples[:, place]


def _fixed(games: GuessCounts) -> dict[str, np.ndarray]:
    at = _at(games, FIXED)
    return {
        "epsilon": one_run_fdp(*at, delta=DELTA, confidence=1 - LEVEL).epsilon,
        "pure": one_run_fdp(*at, family="pure", delta=0.0, confidence=1 - LEVEL).epsilon,
    }


def _swept(games: GuessCounts, *, tries: int) -> dict[str, np.ndarray]:
    """Take the best of all shares, at the level that is left where so many tries are paid for."""
    counts = games.correct, games.guesses, games.examples
    mu, _ = best_over_thresholds(*counts, level=LEVEL / tries)
    return {"epsilon": np.asarray(GaussianDP(mu).epsilon(DELTA))}


def _shifted(games: GuessCounts, placebo: GuessCounts) -> dict[str, np.ndarray]:
    """Audit each game with the shift that its own placebo makes plausible."""
    correct, guesses, examples = _at(games, WIDE)
    tau = tau_from_placebo(
        *_at(placebo, WIDE)[:2], audit_guesses=guesses, audit_examples=examples, level=LEVEL
    )
    epsilon = [
        one_run_fdp(*count, tau=shift, delta=DELTA, confidence=1 - LEVEL / 2).epsilon
        for *count, shift in zip(correct, guesses, examples, tau.tolist(), strict=True)
    ]
    return {"epsilon": np.array(epsilon), "tau": tau}


COUNTED: dict[str, Callable[[GuessCounts], dict[str, np.ndarray]]] = {
    "1%": _fixed,
    "sweep": partial(_swept, tries=1),
    "corrected sweep": partial(_swept, tries=SHARES.size),
}
