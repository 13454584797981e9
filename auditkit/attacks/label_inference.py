"""Label inference: was an example shown with its true label, or with a generated one.

The true label, which is also called the training label, is what goes into the mechanism that is
audited. A mechanism for label privacy hands a noisy label on, and a model may be trained on that.
But the noisy label is released, and no secret: an audit that plays with it finds all that was
released and refutes a promise that holds.

The attacker of OBS sees features, one label, the audited model and the reference model that
generates labels. Scores are given for every label that an example could be shown with, so that a
game can be played again and again without scoring anything twice: only its coins and its generated
labels change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from auditkit import _check, _keyed
from auditkit._types import Bools, Floats, Ints
from auditkit.evidence import GuessCounts
from auditkit.thresholds import Fixed

_MARGIN = 8.0  # standard deviations by which a game would have to fall short: chance below 1e-14


@dataclass(frozen=True, eq=False)
class LabelGame:
    """One game of label inference, as the challenger sets it up.

    Attributes
    ----------
    chosen : ndarray of shape (examples,)
        The coin of each example: 0 where the true label is shown, 1 where the generated one.
    shown : ndarray of shape (examples,)
        The label that the attacker sees.
    """

    chosen: Ints
    shown: Ints


def label_game(
    labels: ArrayLike, reference: ArrayLike, *, rng: np.random.Generator | int
) -> LabelGame:
    """Draw a coin for each example and show its true label or one from the reference model.

    Parameters
    ----------
    labels : array of shape (examples,)
        The true labels, before the label mechanism; never those it released. From 0 to
        classes - 1. Without such a mechanism they are the labels of the training data.
    reference : array of shape (examples, classes)
        Probabilities of each label under the reference model.
    rng : Generator or int
        Source of randomness; an integer is a seed, mixed with labels and reference so that it is
        not the stream of a mechanism with the same seed. A Generator is drawn from as it stands:
        give the one that the mechanism drew from, and not a second one of its seed.

    Returns
    -------
    LabelGame
        Coins and shown labels.

    References
    ----------
    OBS, Algorithm 2, lines 3 and 4.

    Examples
    --------
    >>> game = label_game([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.7, 0.3]], rng=0)
    >>> game.chosen, game.shown
    (array([1, 0, 0, 0]), array([0, 1, 1, 0]))

    Randomised response keeps its promise of ε = 0.5, though a model may know its noisy labels by
    heart. A game with the labels before the mechanism does not refute it; one with the released
    labels seems to:

    >>> from auditkit import observational_label
    >>> from auditkit.mechanisms.label_dp import RandomizedResponse
    >>> rng, half = np.random.default_rng(0), np.full((100_000, 2), 0.5)
    >>> true = rng.integers(2, size=100_000)
    >>> released = RandomizedResponse(epsilon=0.5, classes=2).privatize(true, rng=rng)
    >>> scores = label_scores(np.eye(2)[released], half)
    >>> for labels in (true, released):
    ...     game = label_game(labels, half, rng=rng)
    ...     seen = np.take_along_axis(scores, game.shown[:, np.newaxis], 1).ravel()
    ...     bound = observational_label(seen, game.chosen, family="pure", delta=0.0)
    ...     print(bool(bound.epsilon <= 0.5))
    True
    False
    """
    label, probabilities = _examples(labels, reference)
    draws = _coins(rng, label, probabilities).random(label.size)
    return LabelGame((draws >= 0.5).astype(np.int64), _show(draws, label, probabilities))


def label_scores(target: ArrayLike, reference: ArrayLike, *, exponent: float = 2.0) -> Floats:
    """Score every label of every example by the attack of OBS.

    The score is s₁ · s₂ᵗ. Here s₁ = M(x)[y] - M′(x)[y] says how much likelier label y is to the
    audited model M than to the reference model M′, and s₂ = 1 - M′(x)[y] how likely it is that a
    generated label differs from it.

    Parameters
    ----------
    target, reference : array of shape (examples, classes)
        Probabilities of each label under the audited model M and under the reference model M′.
    exponent : float
        The exponent t, at least 0. The paper takes 2.

    Returns
    -------
    ndarray of shape (examples, classes)
        Above 0 says "true label", below 0 "generated label".

    References
    ----------
    OBS, Section 6.2. The text calls s₂ the chance that the two labels differ, which is that of the
    generated label only where the other is given.

    Examples
    --------
    >>> label_scores([[0.9, 0.1]], [[0.5, 0.5]])
    array([[ 0.1, -0.1]])
    """
    audited, generating = _models(target, reference)
    exponent = _check.scalar("exponent", exponent, least=0.0)
    return (audited - generating) * (1.0 - generating) ** exponent


def likelihood_ratio_scores(target: ArrayLike, reference: ArrayLike) -> Floats:
    """Score every label of every example by log M(x)[y] - log M′(x)[y].

    No test between the two labels is better where M is the law of the true label given what was
    released, and M′ the law of the generated one (Neyman and Pearson).

    Parameters
    ----------
    target, reference : array of shape (examples, classes)
        Probabilities of each label under the audited model M and under the reference model M′; all
        above 0.

    Returns
    -------
    ndarray of shape (examples, classes)
        Above 0 says "true label", below 0 "generated label".

    References
    ----------
    Neyman and Pearson (1933). OBS scores by a difference of the two, as `label_scores` does.

    Examples
    --------
    >>> likelihood_ratio_scores([[0.9, 0.1]], [[0.5, 0.5]]).round(4)
    array([[ 0.5878, -1.6094]])
    """
    audited, generating = _models(target, reference)
    for name, values in (("target", audited), ("reference", generating)):
        if values.size and values.min() <= 0.0:
            raise ValueError(f"{name} must be above 0, whose logarithm is needed, got 0")
    scores: Floats = np.log(audited) - np.log(generating)
    return scores


def repeat_label_game(
    labels: ArrayLike,
    reference: ArrayLike,
    scores: ArrayLike,
    *,
    guesses: Sequence[int | float],
    repetitions: int,
    rng: np.random.Generator | int,
) -> GuessCounts:
    """Play the label game many times on the same scores, and count the correct guesses.

    Coins and generated labels are drawn anew in each game, as the paper does; data, mechanism and
    training are not. Guesses are made on the scores largest in size, as their sign says; where
    they tie, a shuffle decides that is fixed before the coins are drawn. A score of 0 makes no
    guess, and counts like a wrong one.

    Parameters
    ----------
    labels : array of shape (examples,)
        The true labels, before the label mechanism; never those it released. From 0 to
        classes - 1. Without such a mechanism they are the labels of the training data.
    reference : array of shape (examples, classes)
        Probabilities of each label under the reference model.
    scores : array of shape (examples, classes)
        The score of each example for each label it could be shown with; above 0 says "true label".
    guesses : sequence of int or float
        Numbers of guesses, each as in `Fixed`: a whole number, or a share of the examples.
    repetitions : int
        Number of games.
    rng : Generator or int
        Source of randomness; an integer is a seed.

    Returns
    -------
    GuessCounts
        `correct` of shape (repetitions, len(guesses)).

    Notes
    -----
    The games are those that `label_game` plays when it is called again and again with this `rng`,
    and the counts those of `observational_label`, but for the order of tied scores. What is saved
    is the sorting. Which score an example can show is known beforehand, so that all that could be
    shown is ranked once, and only down to where there are enough guesses in every game. A game that
    falls short all the same is counted again with twice as many.

    References
    ----------
    OBS, Algorithm 2 and Section 6.2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> reference = np.full((1000, 2), 0.5)
    >>> labels = rng.integers(2, size=1000)
    >>> scores = label_scores(np.eye(2)[labels], reference)  # the model knows all by heart
    >>> counts = repeat_label_game(
    ...     labels, reference, scores, guesses=[0.01, 0.1], repetitions=100, rng=0
    ... )
    >>> counts.correct.shape, counts.correct.mean(axis=0).round(1)
    ((100, 2), array([ 7.4, 74.7]))
    """
    label, probabilities = _examples(labels, reference)
    score = _check.numbers("scores", scores, ndim=2)
    if score.shape != probabilities.shape:
        raise ValueError(
            f"scores must have the shape of reference, {probabilities.shape}, got {score.shape}"
        )
    numbers = [Fixed(guesses=number).number(label.size) for number in guesses]
    if not numbers:
        raise ValueError(f"guesses must hold at least one number, got {guesses!r}")
    sizes, places = np.unique(numbers, return_inverse=True)
    rng = _coins(rng, label, probabilities)
    correct = np.empty((_check.whole("repetitions", repetitions, least=1), sizes.size), np.int64)
    wanted = sizes[-1] + _MARGIN * np.sqrt(sizes[-1]) + _MARGIN**2
    ranking = _rank(label, probabilities, score, wanted)
    draws = np.empty(label.size)
    for game in correct:
        rng.random(out=draws)
        while not _count(draws, *ranking, sizes, game):
            wanted *= 2.0
            ranking = _rank(label, probabilities, score, wanted)
    return GuessCounts(correct[:, places], sizes[places], label.size)


class _Ranking(NamedTuple):
    """What could be shown, by the size of its score, the largest first."""

    rows: Ints  # the example
    true: Bools  # whether the label is the example's own
    low: Floats  # where in [0, 1) the draws lie that generate the label
    high: Floats
    signs: NDArray[np.int8]  # of the score


def _rank(labels: Ints, reference: Floats, scores: Floats, wanted: float) -> _Ranking:
    """Rank the scores largest in size, down to where `wanted` are shown in a game on average."""
    examples, classes = reference.shape
    twice = reference.copy()  # the chance of being shown; halves of the smallest doubles would be 0
    twice[np.arange(examples), labels] += 1.0
    entries = _largest(scores.ravel(), twice.ravel(), 2.0 * wanted)
    turns = np.empty(examples, np.int64)
    turns[_keyed.generator("", "label game").permutation(examples)] = np.arange(examples)
    entries = entries[np.lexsort((turns[entries // classes], -np.abs(scores.ravel()[entries])))]
    entries = entries[: np.searchsorted(np.cumsum(twice.ravel()[entries]), 2.0 * wanted) + 1]
    rows, label = entries // classes, entries % classes
    signs = np.sign(scores.ravel()[entries]).astype(np.int8)
    return _Ranking(rows, labels[rows] == label, *_intervals(reference, rows, label), signs)


@njit(cache=True)
def _largest(scores: Floats, chance: Floats, wanted: float) -> Ints:
    """Return where the scores largest in size are, as many as have chances of `wanted` in all.

    A histogram tells where they begin, so that there may be more than are wanted. Scores that are
    never shown are left out.
    """
    highest = 0.0
    for at in range(scores.size):
        if chance[at] > 0.0:
            highest = max(highest, abs(scores[at]))
    scale = 4095.0 / highest if highest > 0.0 else 0.0
    shown = np.zeros(4096)
    number = np.zeros(4096, np.int64)
    for at in range(scores.size):
        if chance[at] > 0.0:
            place = int(abs(scores[at]) * scale)
            shown[place] += chance[at]
            number[place] += 1
    cut, total = 4095, shown[4095]
    while cut > 0 and total < wanted:
        cut -= 1
        total += shown[cut]
    found = np.empty(number[cut:].sum(), np.int64)
    count = 0
    for at in range(scores.size):
        if chance[at] > 0.0 and int(abs(scores[at]) * scale) >= cut:
            found[count] = at
            count += 1
    return found


# One draw is the coin of an example and its generated label: below 1/2 it shows the true label, and
# above, stretched to [0, 1), it falls into the interval of one of the others.


@njit(cache=True)
def _show(draws: Floats, labels: Ints, reference: Floats) -> Ints:
    """Return the label that each example is shown with."""
    shown = labels.copy()
    for row in range(labels.size):
        place = 2.0 * draws[row] - 1.0
        if place >= 0.0:
            total = 0.0
            for label in range(reference.shape[1]):
                if reference[row, label] > 0.0:
                    shown[row] = label  # the last one takes what rounding leaves
                    total += reference[row, label]
                    if place < total:
                        break
    return shown


@njit(cache=True)
def _intervals(reference: Floats, rows: Ints, labels: Ints) -> tuple[Floats, Floats]:
    """Return where the interval of each of the `labels` begins and ends."""
    low, high = np.zeros(rows.size), np.zeros(rows.size)
    for entry in range(rows.size):
        chance = reference[rows[entry]]
        for label in range(labels[entry]):
            low[entry] += chance[label]
        high[entry] = low[entry] + chance[labels[entry]]
        if chance[labels[entry]] > 0.0 and not (chance[labels[entry] + 1 :] > 0.0).any():
            high[entry] = 1.0
    return low, high


@njit(cache=True)
def _count(
    draws: Floats,
    rows: Ints,
    true: Bools,
    low: Floats,
    high: Floats,
    signs: NDArray[np.int8],
    sizes: Ints,
    correct: Ints,
) -> bool:
    """Count the correct guesses for each size; return whether there were scores enough."""
    guessed, right, at = 0, 0, 0
    for entry in range(rows.size):
        place = 2.0 * draws[rows[entry]] - 1.0
        if true[entry] if place < 0.0 else low[entry] <= place < high[entry]:
            guessed += 1
            right += signs[entry] == (1 if place < 0.0 else -1)
            if guessed == sizes[at]:
                correct[at] = right
                at += 1
                if at == sizes.size:
                    return True
    return False


def _coins(rng: np.random.Generator | int, labels: Ints, reference: Floats) -> np.random.Generator:
    """Return the generator, or for a seed one of the seed and the game.

    A seed alone may be the one that the label mechanism drew from, and its coins then those.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    _check.generator("rng", rng)
    return _keyed.generator(_keyed.key_of(labels, reference, rng=rng), "coins")


def _examples(labels: ArrayLike, reference: ArrayLike) -> tuple[Ints, Floats]:
    """Return labels and the reference model's probabilities, checked."""
    probabilities = _check.distributions("reference", reference)
    if probabilities.ndim != 2 or not probabilities.size:
        raise ValueError(
            "reference must have a row of probabilities for each of at least 1 example, got shape "
            f"{probabilities.shape}"
        )
    label = _check.codes("labels", labels, tuple(range(probabilities.shape[1])))
    _check.same_length(labels=label, reference=probabilities)
    return label, probabilities


def _models(target: ArrayLike, reference: ArrayLike) -> tuple[Floats, Floats]:
    """Return the probabilities of both models, checked."""
    audited = _check.distributions("target", target)
    generating = _check.distributions("reference", reference)
    if audited.ndim != 2 or audited.shape != generating.shape:
        raise ValueError(
            "target and reference must have the same shape (examples, classes), got "
            f"{audited.shape} and {generating.shape}"
        )
    return audited, generating
