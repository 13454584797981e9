"""From a model and two datasets to scores: members, which it was trained on, and others.

The attacks themselves are in `membership` and `label_inference`. Here a model is asked, and what
would make its scores mean nothing is refused.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.attacks.label_inference import label_game, label_scores
from auditkit.attacks.membership import difficulty_calibration, rmia

ATTACKS = ("loss", "calibrated", "rmia", "label-inference")
LEAST = 1e-12  # what a probability of 0 counts as, where its logarithm is needed

Columns: TypeAlias = dict[str, NDArray[Any]]
Model: TypeAlias = Callable[..., list[Floats]]  # from features of datasets to probabilities


@dataclass(frozen=True, eq=False, init=False)
class Labelled:
    """Examples with their labels, 0 to classes - 1.

    Parameters
    ----------
    features : array of shape (examples, ...)
        What a model takes.
    labels : array of int, shape (examples,)
        For label inference the true ones, before any label mechanism.

    Examples
    --------
    >>> Labelled([[0.5], [1.5]], [0, 1]).own(np.array([[0.9, 0.1], [0.3, 0.7]]))
    array([0.9, 0.7])
    """

    features: NDArray[Any]
    labels: Ints

    def __init__(self, features: ArrayLike, labels: ArrayLike) -> None:
        rows, own = np.asarray(features), np.asarray(labels)
        if rows.ndim < 2 or own.shape != rows.shape[:1] or not own.size:
            raise ValueError(
                f"labels must hold one label for each example, got shapes {rows.shape} and "
                f"{own.shape}"
            )
        if own.dtype.kind not in "biu" or own.min() < 0:
            raise ValueError("labels must be whole numbers of at least 0")
        object.__setattr__(self, "features", rows)
        object.__setattr__(self, "labels", own.astype(np.int64))

    def __len__(self) -> int:
        return self.labels.size

    def rows(self, kind: np.dtype[Any]) -> Iterator[bytes]:
        """Yield features of a kind, and label, of each example."""
        for features, label in zip(self.features, self.labels, strict=True):
            yield features.astype(kind).tobytes() + label.tobytes()

    def own(self, probabilities: Floats) -> Floats:
        """Return the probability of each example's own label."""
        if self.labels.max() >= probabilities.shape[1]:
            raise ValueError(
                f"labels must be below {probabilities.shape[1]}, the classes of the model, got "
                f"{self.labels.max()}"
            )
        found: Floats = probabilities[np.arange(self.labels.size), self.labels]
        return found


def score_model(
    target: Model,
    members: Labelled,
    others: Labelled,
    *,
    attack: Literal["loss", "calibrated", "rmia", "label-inference"] = "loss",
    reference: Model | None = None,
    population: Labelled | None = None,
    seed: int = 0,
) -> tuple[Columns, list[str]]:
    """Score the examples that a model was trained on, and others that it was not.

    Parameters
    ----------
    target : callable
        From the features of datasets, each an argument, to the probabilities of all labels, as a
        list: `auditkit.models.outputs.probabilities` makes them of a torch module or classifier.
    members, others : Labelled
        What the model was trained on, and what not.
    attack : {"loss", "calibrated", "rmia", "label-inference"}
        All but the first take a reference.
    reference : callable, optional
        A model that saw none of the examples.
    population : Labelled, optional
        For "rmia": examples that neither model saw.
    seed : int
        Of the label game.

    Returns
    -------
    columns : dict of ndarray
        The members first: ``score`` and ``member``, or for label inference ``score``, ``chosen``
        and ``placebo``, which the others are.
    notes : list of str
        What has to be said of them.

    References
    ----------
    `difficulty_calibration`, `rmia`, `label_game` and `label_scores`, which name theirs.

    Examples
    --------
    >>> target = lambda *parts: [np.full((len(rows), 2), 0.5) for rows in parts]
    >>> columns, _ = score_model(target, Labelled([[1.0]], [0]), Labelled([[2.0]], [1]))
    >>> columns["score"].round(3), columns["member"]
    (array([-0.693, -0.693]), array([1, 0]))
    """
    _check.choice("attack", attack, ATTACKS)
    if (attack != "loss") != (reference is not None):
        raise ValueError(f"attack={attack!r} takes {'a' if attack != 'loss' else 'no'} reference")
    if (attack == "rmia") != (population is not None):
        raise ValueError("population goes with attack='rmia'")
    notes = _shared(members, others)
    parts = [members, others, *([population] if population is not None else [])]
    said = target(*(data.features for data in parts))
    if reference is None:
        (own,) = _own(said, parts)
        score = -_losses(own, notes)
    else:
        expected = reference(*(data.features for data in parts))
        if attack == "label-inference":
            return _label_columns(said, expected, parts, seed), notes
        own, *seen = _own(said, parts)
        other, *general = _own(expected, parts)
        if attack == "calibrated":
            score = difficulty_calibration(_losses(own, notes), _losses(other, notes))
        else:
            score = rmia(own, other, *seen, *general)
    _finite(score)
    member = np.arange(own.size) < len(members)
    return {"score": score, "member": member.astype(np.int64)}, notes


def _own(said: list[Floats], parts: list[Labelled]) -> list[Floats]:
    """Return the probability of each example's own label, of the first two datasets together."""
    own = [data.own(chances) for data, chances in zip(parts, said, strict=True)]
    return [np.concatenate(own[:2]), *own[2:]]


def _label_columns(
    said: list[Floats], expected: list[Floats], parts: list[Labelled], seed: int
) -> Columns:
    """Play the label game on the members, and as a placebo on the others."""
    scores, chosen = [], []
    for data, audited, generating in zip(parts, said, expected, strict=True):
        data.own(generating)  # checks the labels
        game = label_game(data.labels, generating, rng=seed)
        scores.append(label_scores(audited, generating)[np.arange(len(data)), game.shown])
        chosen.append(game.chosen)
    score = np.concatenate(scores)
    _finite(score)
    placebo = np.arange(score.size) >= len(parts[0])
    return {
        "score": score,
        "chosen": np.concatenate(chosen),
        "placebo": placebo.astype(np.int64),
    }


def _shared(inside: Labelled, outside: Labelled) -> list[str]:
    """Say how many of the others are members too; refuse datasets of which one holds the other.

    Two people may have the same features and label, and a coin may have parted them. That all of a
    dataset have a twin in the other is no chance.
    """
    if inside.features.shape[1:] != outside.features.shape[1:]:
        return []  # the model will have its say
    kind = np.result_type(inside.features, outside.features)
    first, second = ([hash(row) for row in data.rows(kind)] for data in (inside, outside))
    members = sum(map(set(second).__contains__, first))
    others = sum(map(set(first).__contains__, second))
    if members == len(first) or others == len(second):
        raise ValueError(
            f"members and others must hold different examples: {others} of the {len(second)} "
            f"others are among the members, and {members} of the {len(first)} members among the "
            "others. What the model was trained on is a member"
        )
    if not others:
        return []
    return [
        f"{others} of the others have the features and the label of a member. Leave them out if "
        "they are the same records: what the model was trained on is a member."
    ]


def _losses(chances: Floats, notes: list[str]) -> Floats:
    none = int((chances < LEAST).sum())
    if none:
        notes.append(f"{none} probabilities below {LEAST:g} were taken for {LEAST:g}.")
    losses: Floats = -np.log(np.maximum(chances, LEAST))
    return losses


def _finite(score: Floats) -> None:
    bad = int((~np.isfinite(score)).sum())
    if bad:
        raise ValueError(
            f"a model's scores must be finite, and {bad} of {score.size} are not: look for NaN in "
            "its features and its weights"
        )
