"""PANORAMIA from the training data to the scores: generated examples stand in for unseen ones.

Part of the members trains a generator. What it makes is mixed with other members, and two
classifiers learn to tell the kinds apart: a baseline, which sees the examples alone, and an attack,
which also sees what the audited model makes of them. Both then score fresh pairs of a member and a
generated example; `auditkit.bounds.panoramia_games` tosses the coins. With real unseen examples in
place of generated ones the same steps are the comparison that the paper calls RM;RN.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit import _check
from auditkit._types import Floats, Ints, Randomness
from auditkit.evidence import PairedScores
from auditkit.models.generators import Examples, Generator


class Classifier(Protocol):
    """A model of classes, as scikit-learn has them."""

    def predict_proba(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Return the probability of every class for every example."""


# What a model makes of examples: a number for each, or several
Loss = Callable[[Examples], ArrayLike]


def cross_entropy(model: Classifier) -> Loss:
    """Return the loss of a classifier: minus the log of the probability of the label.

    Parameters
    ----------
    model : object with `predict_proba`
        Columns are its `classes_`, or 0, 1, and so on if it has none.

    Returns
    -------
    callable
        Takes `Examples` with labels.

    Notes
    -----
    A probability of 0, which trees and forests give, counts as the smallest positive number of its
    precision, so that the loss stays finite. So does that of a class the model has never met.

    References
    ----------
    PANORAMIA, Appendix C.1: the loss is all that the attack sees of the audited model.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier().fit([[0.0]] * 4, [0, 1, 1, 1])
    >>> cross_entropy(model)(Examples(np.zeros((2, 1)), np.array([0, 1]))).round(3)
    array([1.386, 0.288])
    """
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"model must have predict_proba, got {model!r:.60}")

    def loss(examples: Examples) -> Floats:
        if examples.labels is None:
            raise ValueError("examples must have labels for a cross-entropy, got none")
        said, classes = _said(model, examples.inputs)
        matches = examples.labels[:, np.newaxis] == classes
        if not matches.any():
            raise ValueError(f"model must know classes of the examples, it has {classes!r:.60}")
        own = np.where(matches, said, 0.0).sum(axis=1)
        losses: Floats = -np.log(np.maximum(own, np.finfo(said.dtype).tiny)).astype(np.float64)
        return losses

    return loss


def sampled_labels(model: Classifier, inputs: NDArray[Any], *, rng: Randomness) -> Ints:
    """Draw each example's label from the probabilities of a model.

    Parameters
    ----------
    model : object with `predict_proba`
        The labeller.
    inputs : array of shape (n, ...)
        What to label.
    rng : Generator, int or None
        Draws the labels.

    Returns
    -------
    ndarray of shape (n,)

    Notes
    -----
    The most likely label is one that models agree with: generated examples then have lower losses
    than real ones, and a classifier that sees a loss tells many of them apart.

    References
    ----------
    PANORAMIA, Appendix C.1, has a labeller and does not say how it decides.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier().fit([[0.0]] * 4, [0, 1, 1, 1])
    >>> sampled_labels(model, np.zeros((6, 1)), rng=0)
    array([1, 1, 0, 0, 1, 1])
    """
    generator = _check.generator("rng", rng)
    said, classes = _said(model, inputs)
    steps = np.cumsum(said, axis=1, dtype=np.float64)
    draws = generator.random(len(steps)) * steps[:, -1]
    labels: Ints = classes[(draws[:, np.newaxis] > steps[:, :-1]).sum(axis=1)]
    return labels


def features_of(examples: Examples) -> Floats:
    """Return what a classifier sees of examples: inputs as flat rows, and a column a class.

    Parameters
    ----------
    examples : Examples
        With labels or without.

    Returns
    -------
    ndarray of shape (n, columns)
        The last columns, one a class up to the largest label, are 0 and 1.

    References
    ----------
    In PANORAMIA classifiers see the inputs alone. But the loss depends on the label, and an attack
    that sees it through the loss has to meet a baseline that sees it too.

    Examples
    --------
    >>> features_of(Examples(np.array([[0.5], [2.0]]), np.array([1, 0])))
    array([[0.5, 0. , 1. ],
           [2. , 1. , 0. ]])
    """
    flat = np.asarray(examples.inputs, np.float64).reshape(len(examples), -1)
    if examples.labels is None:
        return flat
    classes = np.arange(int(examples.labels.max(initial=0)) + 1)
    return np.column_stack((flat, examples.labels[:, np.newaxis] == classes))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Members and other examples, some to learn the difference from, and pairs to be tested on.

    Attributes
    ----------
    train_real, train_other : Examples
        What baseline and attack are trained on.
    real, other : Examples
        The audited pairs, as many of one as of the other. Inputs with decimals must have the same
        precision as those of `train_real` and `train_other`, or their rounding tells them apart.
    see : callable or array of shape (n, columns)
        Takes examples and returns what a classifier sees of them; or that itself, for the four
        parts one after another.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> parts = [Examples(rng.normal(size=(500, 2)) + shift) for shift in (0, 1, 0, 1)]
    >>> scores = Mixture(*parts).scores()
    >>> bool((scores.real > scores.other).mean() > 0.8)
    True
    """

    train_real: Examples
    train_other: Examples
    real: Examples
    other: Examples
    see: Callable[[Examples], ArrayLike] | ArrayLike = field(default=features_of)

    def __post_init__(self) -> None:
        _check.same_length(real=self.real, other=self.other)
        labels = [part.labels is None for part in self._parts()]
        if any(labels) and not all(labels):
            raise ValueError("real and other examples must all have labels, or none of them")
        kinds = [part.inputs.dtype for part in self._parts()]
        floats = {kind.name: None for kind in kinds if kind.kind == "f"}  # the real ones' first
        if len(floats) > 1:
            raise ValueError(
                "real and other examples must have inputs of the same precision, got "
                f"{' and '.join(floats)}: the rounding alone would tell them apart"
            )

    def scores(self, *losses: Loss, classifier: Any = None) -> PairedScores:
        """Train a classifier to tell members from others, and score the pairs.

        Parameters
        ----------
        *losses : callable
            What the classifier sees of each example beside it. A baseline sees nothing, or the
            loss of a helper that never met the audited members; an attack sees the loss of the
            audited model, and should see all that the baseline does.
        classifier : scikit-learn classifier, optional
            With `fit`, and with `decision_function` or `predict_proba`; it is copied, not trained
            itself. By default `default_classifier`.

        Returns
        -------
        PairedScores
        """
        parts = self._parts()
        model = _fresh(classifier)
        everything = _joined(parts)
        seen = self.see(everything) if callable(self.see) else self.see
        columns = [_check.numbers("see", seen, ndim=2)]
        _check.same_length(examples=everything, see=columns[0])
        for loss in losses:
            column = _check.numbers("loss(examples)", loss(everything))
            columns.append(column.reshape(len(everything), -1))
        ends = np.cumsum([len(part) for part in parts])[:-1]
        train_real, train_other, real, other = np.split(np.concatenate(columns, axis=1), ends)
        truth = np.repeat((1, 0), (len(train_real), len(train_other)))
        model.fit(np.concatenate((train_real, train_other)), truth)
        return PairedScores(_scores_of(model, real), _scores_of(model, other))

    def loss_scores(self, loss: Loss) -> PairedScores:
        """Score the pairs by minus a loss, as an audit of one run does."""
        scores = [
            -_check.numbers("loss(examples)", loss(part), ndim=1)
            for part in (self.real, self.other)
        ]
        return PairedScores(*scores)

    def _parts(self) -> tuple[Examples, ...]:
        return self.train_real, self.train_other, self.real, self.other


class GeneratedScores(NamedTuple):
    """What `score_with_generated` says of the audited pairs.

    Attributes
    ----------
    baseline, attack : PairedScores
        By the examples alone, and with the audited model.
    null : PairedScores
        With a model that has not seen the audited members.
    """

    baseline: PairedScores
    attack: PairedScores
    null: PairedScores


def score_with_generated(
    members: Examples,
    model: Classifier,
    *,
    fit_generator: Callable[[Examples, np.random.Generator], Generator],
    fit_model: Callable[[Examples, np.random.Generator], Classifier],
    training: int,
    audited: int,
    classifier: Any = None,
    rng: Randomness,
) -> GeneratedScores:
    """Score a classifier's members after the fact, with nothing but its training data.

    Of the members `training` train baseline and attack and `audited` are audited. Half of the rest
    trains the generator and a labeller, and the other half a model in which the audit should find
    no leak. The helper, whose loss the baseline sees, is trained on generated examples. Attack and
    null see the helper's loss too.

    Parameters
    ----------
    members : Examples
        Examples that the model was trained on, with their labels.
    model : object with `predict_proba`
        The audited model.
    fit_generator : callable
        Takes examples and a numpy Generator, and returns a generator. Labels that its examples
        come with are kept; else they are drawn from the labeller's probabilities. Inputs with
        decimals must have the precision of the members': float64 if those are float64.
    fit_model : callable
        Takes examples and a numpy Generator, and trains a model as the audited one was trained.
    training, audited : int
        How many members each part gets.
    classifier
        As in `Mixture.scores`.
    rng : Generator, int or None
        Deals the members, and is passed on to what is fitted.

    Returns
    -------
    GeneratedScores
        For `auditkit.bounds.panoramia_games.generated_audit`.

    References
    ----------
    PANORAMIA, Algorithm 1. The null model is not in the paper.

    Examples
    --------
    A tree knows its training examples by heart:

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from auditkit.models.generators import fit_gaussian_mixtures
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=4000)
    >>> members = Examples(rng.normal(size=(4000, 4)) + y[:, np.newaxis], y)
    >>> def fit(examples, rng):
    ...     return DecisionTreeClassifier(random_state=0).fit(examples.inputs, examples.labels)
    >>> scores = score_with_generated(
    ...     members, fit(members, rng), fit_generator=fit_gaussian_mixtures, fit_model=fit,
    ...     training=1000, audited=1000, rng=0,
    ... )
    >>> from auditkit.bounds.panoramia_games import generated_audit
    >>> print(generated_audit(*scores, rng=0))  # doctest: +ELLIPSIS
    ε̃ = ...
    """
    generator = _check.generator("rng", rng)
    loss = cross_entropy(model)
    if members.labels is None:
        raise ValueError("members must have labels, got none")
    _check.numbers("members.inputs", members.inputs)
    loss(members[:100])  # a model that cannot read the members is told so before anything is fitted
    spare, train, audit = split_members(
        len(members), training=training, audited=audited, rng=generator
    )
    # Labels of generated examples lean towards what their labeller was trained on. A model that
    # shares these examples would seem to leak.
    own, apart = members[spare[: len(spare) // 2]], members[spare[len(spare) // 2 :]]
    source, unaware = fit_generator(own, generator), fit_model(apart, generator)
    made = generate(source, training + audited + len(own), rng=generator)
    if made.labels is None:
        labeller = fit_model(own, generator)
        made = made.labelled(sampled_labels(labeller, made.inputs, rng=generator))
    fake_train, fake, lessons = (
        made[:training],
        made[training : training + audited],
        made[training + audited :],
    )
    mixture = Mixture(members[train], fake_train, members[audit], fake)
    helper = cross_entropy(fit_model(lessons, generator))
    baseline = mixture.scores(helper, classifier=classifier)
    attack, null = (
        mixture.scores(helper, each, classifier=classifier)
        for each in (loss, cross_entropy(unaware))
    )
    return GeneratedScores(baseline, attack, null)


def split_members(
    members: int, *, training: int, audited: int, rng: Randomness
) -> tuple[Ints, Ints, Ints]:
    """Deal members at random: to the generator, to the training of the attack, and to the audit.

    Parameters
    ----------
    members : int
        How many there are.
    training, audited : int
        How many the last two parts get; the generator gets the rest.
    rng : Generator, int or None
        Deals.

    Returns
    -------
    tuple of ndarray
        Row numbers of the three parts.

    References
    ----------
    PANORAMIA, Algorithm 1, phase 1.

    Examples
    --------
    >>> [part.tolist() for part in split_members(6, training=2, audited=1, rng=0)]
    [[3, 2, 5], [4, 0], [1]]
    """
    total = _check.whole("members", members, least=1)
    some = _check.whole("training", training, least=1)
    others = _check.whole("audited", audited, least=1)
    if some + others >= total:
        raise ValueError(
            f"training and audited must leave members to the generator, got {some} and {others} "
            f"of {total}"
        )
    order = _check.generator("rng", rng).permutation(total)
    rest = total - some - others
    return order[:rest], order[rest : rest + some], order[rest + some :]


def generate(generator: Generator, number: int, *, rng: Randomness) -> Examples:
    """Return so many examples of a generator, after a look at what it gives.

    Parameters
    ----------
    generator : object with `sample`
        Its ``sample(number, rng=…)`` returns `Examples`, or an array of inputs.
    number : int
        How many examples.
    rng : Generator, int or None
        What the generator draws from.

    Returns
    -------
    made : Examples

    References
    ----------
    PANORAMIA, Algorithm 1, phase 1.

    Examples
    --------
    >>> class Noise:
    ...     def sample(self, number, *, rng):
    ...         return rng.normal(size=(number, 2))
    >>> len(generate(Noise(), 5, rng=0))
    5
    """
    if not hasattr(generator, "sample"):
        raise TypeError(f"generator must have sample, got {generator!r:.60}")
    wanted = _check.whole("number", number, least=1)
    made = generator.sample(wanted, rng=_check.generator("rng", rng))
    examples = made if isinstance(made, Examples) else Examples(np.asarray(made))
    if len(examples) != wanted:
        raise ValueError(f"generator must make {wanted} examples, it made {len(examples)}")
    return examples


def default_classifier() -> Any:
    """Return the classifier that baseline and attack are, unless one says otherwise.

    Returns
    -------
    sklearn.ensemble.HistGradientBoostingClassifier

    References
    ----------
    PANORAMIA has boosted trees for tables (Appendix C.3).

    Examples
    --------
    >>> default_classifier().max_iter
    100
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.1, max_leaf_nodes=15, early_stopping=False, random_state=0
    )


def _fresh(classifier: Any) -> Any:
    from sklearn.base import clone

    if classifier is None:
        return default_classifier()
    if not (hasattr(classifier, "decision_function") or hasattr(classifier, "predict_proba")):
        raise TypeError(
            f"classifier must have decision_function or predict_proba, got {classifier!r:.60}"
        )
    return clone(classifier)


def _scores_of(model: Any, rows: Floats) -> Floats:
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(rows), np.float64)
    return np.asarray(model.predict_proba(rows)[:, 1], np.float64)


def _said(model: Classifier, inputs: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a model's probabilities, and the class of each column."""
    said = np.asarray(model.predict_proba(inputs))
    classes = np.asarray(getattr(model, "classes_", np.arange(said.shape[1])))
    if classes.shape != said.shape[1:]:
        raise ValueError(
            f"model must have a column of probabilities for each of its classes, it has "
            f"{said.shape[1]} for {classes!r:.60}"
        )
    return said, classes


def _joined(parts: tuple[Examples, ...]) -> Examples:
    labels = [part.labels for part in parts if part.labels is not None]
    inputs = np.concatenate([part.inputs for part in parts])
    return Examples(inputs, np.concatenate(labels) if labels else None)
