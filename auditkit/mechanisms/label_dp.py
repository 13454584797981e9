"""Label privacy: what is released of labels when the features are public.

Randomised response, with and without a prior, and ALIBI release a noisy label for every example; in
several stages (LP-MST), the model of one stage is the prior of the next. Voting teachers release
labels for public examples only. Whatever is trained on a release keeps its ε.

Neighbours are two datasets that differ in one label, replaced by another. OBS audits another
notion: the label is dropped, and a simulator imputes one from a reference model. What the simulator
releases is a mixture over imputed labels, each within ε of the truth in both directions, so an ε
stated here holds for the simulated notion too, and a valid lower bound there must stay below it.
The reverse fails. The simulated ε may be smaller: for randomised response on two labels that the
reference model holds equally likely it is log((1 + e^ε) / 2), almost log 2 less at large ε. A bound
below the ε stated here need not mean that the audit is loose.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit import _check
from auditkit._types import Bools, Floats, Ints, Randomness
from auditkit.accounting import noise_multiplier_for

Model: TypeAlias = Callable[[Any], ArrayLike]


@dataclass(frozen=True)
class RandomizedResponse:
    """Keep a label or replace it by one of the others, all equally likely.

    Private with ε under replacement of a label, exactly: a label is e^ε times likelier to be
    released where it is the true one.

    Parameters
    ----------
    epsilon : float
        Above 0; `math.inf` keeps every label.
    classes : int
        Number of classes, at least 2.

    References
    ----------
    Warner, "Randomized response: a survey technique for eliminating evasive answer bias", 1965.
    OBS, Section 6.1.

    Examples
    --------
    >>> response = RandomizedResponse(epsilon=math.log(3.0), classes=3)
    >>> print(response.law.round(2))
    [[0.6 0.2 0.2]
     [0.2 0.6 0.2]
     [0.2 0.2 0.6]]
    >>> print(response.privatize([0, 0, 0, 1, 1, 1], rng=3))
    [0 0 1 1 1 1]
    """

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        _epsilon(self.epsilon)
        object.__setattr__(self, "classes", _check.whole("classes", self.classes, least=2))

    @property
    def law(self) -> Floats:
        """Probability of each release (column) for each true label (row)."""
        same = np.eye(self.classes, dtype=np.bool_)
        return np.where(same, 1.0, math.exp(-self.epsilon)) * self._keep

    @property
    def _keep(self) -> float:
        # in powers of e^-ε, which vanish where those of e^ε would overflow
        return 1.0 / (1.0 + (self.classes - 1) * math.exp(-self.epsilon))

    def privatize(self, labels: ArrayLike, *, rng: Randomness) -> Ints:
        """Return a noisy label for each of `labels`."""
        truth = _labels(labels, self.classes)
        places = np.full(len(truth), self.classes)
        return _respond(truth, places, self.epsilon, _check.generator("rng", rng))

    def corrected(self, probabilities: ArrayLike) -> Floats:
        """Return the probabilities of the true label, from those of the noisy one.

        The probabilities of the noisy label are those of the true one times `law`, so its inverse
        leads back. But a model trained on noisy labels may give a class less than noise alone does,
        and the inverse is then negative. It is replaced by the nearest point, in the Euclidean
        distance, of the simplex: the true probabilities lie there, and the simplex is convex, so
        that this cannot lead away from them. With two classes it is the clipping of Wu et al.
        Classes can come out at 0, which costs an infinite log-loss where they occur.

        Parameters
        ----------
        probabilities : array of shape (..., classes)
            What a model says of the noisy label.

        Returns
        -------
        ndarray of the same shape

        References
        ----------
        Wu, Zhou, Weinberger and Guo, "Does label differential privacy prevent label inference
        attacks?", 2023, whose setup OBS, Section 6.4, follows. Duchi et al., "Efficient projections
        onto the l1-ball", 2008, Figure 1, for the projection.

        Examples
        --------
        >>> response = RandomizedResponse(epsilon=math.log(3.0), classes=3)
        >>> print(response.corrected([[0.4, 0.4, 0.2], [0.7, 0.2, 0.1]]).round(2))
        [[0.5 0.5 0. ]
         [1.  0.  0. ]]
        """
        noisy = _check.distributions("probabilities", probabilities)
        if noisy.shape[-1] != self.classes:
            raise ValueError(
                f"probabilities must have {self.classes} classes on its last axis, "
                f"got shape {noisy.shape}"
            )
        # law = gap I + chance 11ᵀ, and rows sum to 1, so the inverse is taken entry by entry
        chance = math.exp(-self.epsilon) * self._keep
        gap = -math.expm1(-self.epsilon) * self._keep
        return _nearest_on_simplex((noisy - chance) / gap)


@dataclass(frozen=True)
class RandomizedResponseWithPrior:
    """Randomised response among the k classes that a prior holds most likely.

    The k is the one for which a label drawn from the prior is most likely to be kept; of all
    mechanisms with this ε none keeps it more often. A true label that is not among the k is
    answered by one of them at random. This is LP-1ST where the prior comes from a model.

    Private with ε under replacement of a label, provided that the prior does not depend on the
    labels: a model trained on them elsewhere spends an ε of its own.

    Parameters
    ----------
    epsilon : float
        Above 0; with `math.inf` k is the number of classes, and every label is kept.

    References
    ----------
    Ghazi et al., "Deep learning with label differential privacy", 2021, Section 3, Algorithms 1
    and 2. OBS, Section 6.1.

    Examples
    --------
    >>> response = RandomizedResponseWithPrior(epsilon=math.log(3.0))
    >>> print(response.support([[0.5, 0.4, 0.1], [0.8, 0.1, 0.1]]))
    [[ True  True False]
     [ True False False]]
    >>> print(response.law([0.5, 0.4, 0.1]))
    [[0.75 0.25 0.  ]
     [0.25 0.75 0.  ]
     [0.5  0.5  0.  ]]
    >>> response.privatize([1, 2], [[0.5, 0.4, 0.1], [0.8, 0.1, 0.1]], rng=0)
    array([1, 0])
    """

    epsilon: float

    def __post_init__(self) -> None:
        _epsilon(self.epsilon)

    def law(self, prior: ArrayLike) -> Floats:
        """Return the probability of each release (column) for each true label (row).

        Parameters
        ----------
        prior : array of shape (..., classes)

        Returns
        -------
        ndarray of shape (..., classes, classes)
        """
        inside = self.support(prior)
        flip = math.exp(-self.epsilon)
        places = inside.sum(axis=-1)[..., None, None]
        among = np.where(np.eye(inside.shape[-1], dtype=np.bool_), 1.0, flip)
        among = among / (1.0 + (places - 1) * flip)
        law: Floats = np.where(inside[..., :, None], among, 1.0 / places) * inside[..., None, :]
        return law

    def support(self, prior: ArrayLike) -> Bools:
        """Return which classes can be released, in the shape of `prior`.

        Of classes that the prior holds equally likely the lower ones come first.
        """
        given = _prior(prior)
        order, places = self._ranked(given)
        inside = np.empty(given.shape, dtype=np.bool_)
        np.put_along_axis(inside, order, np.arange(given.shape[-1]) < places[..., None], axis=-1)
        return inside

    def privatize(self, labels: ArrayLike, prior: ArrayLike, *, rng: Randomness) -> Ints:
        """Return a noisy label for each of `labels`, with a row of `prior` each."""
        given = _prior(prior)
        truth = _labels(labels, given.shape[-1])
        if given.shape[:-1] != truth.shape:
            raise ValueError(
                f"prior must have shape {(len(truth), given.shape[-1])}, one row a label, "
                f"got {given.shape}"
            )
        order, places = self._ranked(given)
        ranks = (order == truth[:, None]).argmax(axis=1)
        answers = _respond(ranks, places, self.epsilon, _check.generator("rng", rng))
        noisy: Ints = np.take_along_axis(order, answers[:, None], axis=1)[:, 0]
        return noisy

    def _ranked(self, prior: Floats) -> tuple[Ints, Ints]:
        """Return the classes from the likeliest down, and how many of them can be released."""
        order = np.argsort(-prior, axis=-1, kind="stable")
        kept = np.take_along_axis(prior, order, axis=-1).cumsum(axis=-1)
        kept /= 1.0 + np.arange(prior.shape[-1]) * math.exp(-self.epsilon)
        # the last of the best, so that without noise all classes stay even if the prior has zeros
        return order, prior.shape[-1] - kept[..., ::-1].argmax(axis=-1)


@dataclass(frozen=True, eq=False)
class MultiStageTraining:
    """What `lp_mst` releases.

    Attributes
    ----------
    epsilon : float
        The ε of everything in here, under replacement of a label.
    labels : ndarray of shape (n,)
        The noisy labels.
    stages : ndarray of shape (n,)
        The stage, from 0, in which each label was released.
    model : callable
        The last model, trained on all noisy labels: class probabilities from features.
    """

    epsilon: float
    labels: Ints = field(repr=False)
    stages: Ints = field(repr=False)
    model: Model = field(repr=False)


def lp_mst(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    epsilon: float,
    classes: int,
    fit: Callable[[NDArray[Any], Ints], Model],
    stages: int = 2,
    rng: Randomness,
) -> MultiStageTraining:
    """Train in stages, each with the model before it as the prior of its labels.

    The examples are split at random. The labels of the first part are released by plain randomised
    response, and a model is trained on them. Its predictions are the prior with which the labels of
    the second part are released, then a model is trained on both parts, and so on.

    The ε is that of one stage, however many there are. A label is used once, in its own stage. When
    it is replaced, the stages before never saw it; its own releases it with ε, given all earlier
    releases, for the prior was made from public features and labels already released; the stages
    after see only the release. Were a label used in two stages, their ε would add up.

    Parameters
    ----------
    features : array of shape (n, ...)
        What the models look at; public.
    labels : array of shape (n,)
        The labels to protect.
    epsilon : float
        Above 0, or `math.inf`.
    classes : int
        Number of classes, at least 2.
    fit : callable
        Trains: takes features and noisy labels, returns a function from features to class
        probabilities of shape (rows, classes). It must not know the labels in any other way.
    stages : int
        At least 1; 2 is LP-2ST, and 1 is randomised response.
    rng : Generator or int
        Source of randomness.

    Returns
    -------
    MultiStageTraining

    References
    ----------
    Ghazi et al., "Deep learning with label differential privacy", 2021, Algorithm 3. McSherry,
    "Privacy integrated queries", 2009, for parallel composition. OBS, Section 6.1.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=3000)
    >>> x = rng.normal(3.0 * np.eye(3)[y])
    >>> trained = lp_mst(
    ...     x, y, epsilon=1.0, classes=3, rng=rng,
    ...     fit=lambda x, y: LogisticRegression().fit(x, y).predict_proba,
    ... )
    >>> kept = trained.labels == y
    >>> print([round(float(kept[trained.stages == stage].mean()), 1) for stage in (0, 1)])
    [0.6, 0.7]
    """
    truth = _labels(labels, _check.whole("classes", classes, least=2))
    shown = np.asarray(features)
    if shown.ndim < 1 or len(shown) != len(truth):
        raise ValueError(
            f"features must have a row for each of {len(truth)} labels, got shape {shown.shape}"
        )
    count = _check.whole("stages", stages, least=1)
    if count > len(truth):
        raise ValueError(f"stages must be at most the number of labels, {len(truth)}, got {count}")
    if not callable(fit):
        raise TypeError(f"fit must be a function that returns a model, got {fit!r:.60}")
    response, generator = RandomizedResponseWithPrior(epsilon), _check.generator("rng", rng)

    noisy, at = np.full(len(truth), -1), np.empty(len(truth), dtype=np.int64)
    model: Model = _Uniform(classes)
    for stage, rows in enumerate(np.array_split(generator.permutation(len(truth)), count)):
        prior = np.asarray(model(shown[rows]))
        if prior.shape != (len(rows), classes):
            raise ValueError(
                f"fit must return a model whose answer to {len(rows)} rows has shape "
                f"{(len(rows), classes)}, got {prior.shape}"
            )
        noisy[rows] = response.privatize(truth[rows], prior, rng=generator)
        at[rows] = stage
        released = np.flatnonzero(noisy >= 0)
        model = fit(shown[released], noisy[released])
    return MultiStageTraining(float(epsilon), noisy, at, model)


@dataclass(frozen=True)
class Alibi:
    """Additive Laplace noise with iterative Bayesian inference.

    Each entry of the one-hot label gets Laplace noise of scale 2/ε. Replacing a label changes two
    entries by 1 each, so that this is private with ε, exactly. A model learns from the posterior of
    the label given the noisy vector, where the prior is what the model itself says; that is
    computed from the release, and keeps ε.

    Parameters
    ----------
    epsilon : float
        Above 0; `math.inf` adds no noise.
    classes : int
        Number of classes, at least 2.

    References
    ----------
    Malek et al., "Antipodes of label differential privacy: PATE and ALIBI", 2021. OBS, Section 6.1.

    Examples
    --------
    The prior is estimated again in each round of training, by the model so far:

    >>> from functools import partial
    >>> from auditkit.models.networks import linear
    >>> from auditkit.models.training import fit_many
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=2000)
    >>> x = rng.normal(3.0 * np.eye(3)[y])
    >>> alibi = Alibi(epsilon=2.0, classes=3)
    >>> noisy = alibi.privatize(y, rng=rng)
    >>> prior, weights = np.full(3, 1 / 3), None
    >>> for seed in range(5):
    ...     models = fit_many(
    ...         partial(linear, 3, 3), x, alibi.posterior(noisy, prior), seeds=[seed],
    ...         initial=weights, epochs=1, batch_size=100, learning_rate=0.3,
    ...     )
    ...     prior, weights = models.probabilities(x)[0], models.weights
    >>> seen, learnt = (noisy.argmax(axis=1) == y).mean(), (prior.argmax(axis=1) == y).mean()
    >>> bool(seen < 0.6), bool(learnt > 0.9)
    (True, True)
    """

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        _epsilon(self.epsilon)
        object.__setattr__(self, "classes", _check.whole("classes", self.classes, least=2))

    def privatize(self, labels: ArrayLike, *, rng: Randomness) -> Floats:
        """Return a noisy vector for each of `labels`, of shape (n, classes)."""
        truth = _labels(labels, self.classes)
        scale = 2.0 / self.epsilon
        noise = _check.generator("rng", rng).laplace(scale=scale, size=(len(truth), self.classes))
        noise[np.arange(len(truth)), truth] += 1.0
        return noise

    def posterior(self, noisy: ArrayLike, prior: ArrayLike) -> Floats:
        """Return the probability of each true label, given the noisy vectors.

        Parameters
        ----------
        noisy : array of shape (n, classes)
            What `privatize` returned.
        prior : array of shape (classes,) or (n, classes)
            Probabilities of the labels before the vectors were seen. What the prior excludes stays
            excluded, except with ε = ∞, where the vectors are the labels.

        Returns
        -------
        ndarray of shape (n, classes)
            Soft labels; `fit_many` takes them.
        """
        seen = _check.numbers("noisy", noisy, ndim=2)
        if seen.shape[1] != self.classes:
            raise ValueError(f"noisy must have shape (n, {self.classes}), got {seen.shape}")
        given = _check.distributions("prior", prior)
        if given.shape not in ((self.classes,), seen.shape):
            raise ValueError(
                f"prior must have shape {(self.classes,)} or {seen.shape}, got {given.shape}"
            )
        if self.epsilon == math.inf:
            if not np.array_equal(seen, np.eye(self.classes)[seen.argmax(axis=1)]):
                raise ValueError("noisy must hold one-hot vectors if epsilon is infinite")
            return seen.copy()
        # log densities less what they have in common: only the entry of the label itself differs
        with np.errstate(divide="ignore"):  # log 0 = -inf is what is meant
            logs = (np.abs(seen) - np.abs(seen - 1.0)) * (self.epsilon / 2.0) + np.log(given)
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        soft: Floats = odds / odds.sum(axis=1, keepdims=True)
        return soft


@dataclass(frozen=True)
class LabelPate:
    """Labels for public examples, by a noisy vote of teachers with labels of their own.

    Teachers learn from disjoint parts of the labels; features may be shared, as in PATE-FM. One
    label replaced changes one teacher, and with it at most one vote in each query: two counts, by
    one each. The counts of all queries together move by √(2 queries) at most, which with Gaussian
    noise is Gaussian differential privacy with μ = √(2 queries) / σ. That the student sees only the
    largest count cannot hurt.

    Parameters
    ----------
    epsilon : float
        The ε to promise for all queries together, under replacement of a label. Above 0;
        `math.inf` adds no noise.
    delta : float
        The δ at which it holds, in (0, 1).
    queries : int
        How many examples the teachers label, at least 1. They must be chosen without a look at the
        private labels.

    References
    ----------
    Papernot et al., "Scalable private learning with PATE", 2018, Section 4.1. Malek et al.,
    "Antipodes of label differential privacy: PATE and ALIBI", 2021. Dong, Roth and Su, "Gaussian
    differential privacy", 2022, Theorem 2.7 and Corollary 2.13. OBS, Section 6.1.

    Examples
    --------
    >>> pate = LabelPate(epsilon=1.0, delta=1e-5, queries=100)
    >>> round(pate.sigma, 2), round(pate.mu, 4)
    (52.76, 0.2681)
    >>> votes = np.tile([180, 40, 30], (100, 1))
    >>> print(np.bincount(pate.release(votes, rng=0), minlength=3))
    [94  4  2]
    """

    epsilon: float
    delta: float
    queries: int

    def __post_init__(self) -> None:
        _epsilon(self.epsilon)
        _check.fraction("delta", self.delta)
        object.__setattr__(self, "queries", _check.whole("queries", self.queries, least=1))

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of the noise on each count, the least that keeps the promise."""
        if self.epsilon == math.inf:
            return 0.0
        # a changed vote is two unit changes: as much as one unit change in twice the queries
        return noise_multiplier_for(
            self.epsilon,
            sampling_rate=1.0,
            steps=2 * self.queries,
            delta=self.delta,
            adjacency="add/remove",
        )

    @property
    def mu(self) -> float:
        """The μ of Gaussian differential privacy for all queries together."""
        return math.sqrt(2.0 * self.queries) / self.sigma if self.sigma else math.inf

    def release(self, votes: ArrayLike, *, rng: Randomness) -> Ints:
        """Return a label for each query; asked twice, it spends ε twice.

        Parameters
        ----------
        votes : array of shape (queries, classes)
            How many teachers vote for each class.
        rng : Generator or int
            Source of randomness.

        Returns
        -------
        ndarray of shape (queries,)
            Without noise the class with most votes, one of them at random where several have.
        """
        counts = _check.counts("votes", votes)
        if counts.ndim != 2 or len(counts) != self.queries or counts.shape[1] < 2:
            raise ValueError(
                f"votes must have shape ({self.queries}, classes) with 2 classes or more, "
                f"got {counts.shape}"
            )
        generator = _check.generator("rng", rng)
        if self.sigma:
            noise = self.sigma * generator.standard_normal(counts.shape)
        else:
            noise = generator.random(counts.shape)  # below 1, so that it decides ties alone
        released: Ints = (counts + noise).argmax(axis=1)
        return released


@dataclass(frozen=True)
class _Uniform:
    """The model before the first stage: all classes are equally likely."""

    classes: int

    def __call__(self, features: NDArray[Any]) -> Floats:
        return np.full((len(features), self.classes), 1.0 / self.classes)


def _respond(ranks: Ints, places: Ints, epsilon: float, generator: np.random.Generator) -> Ints:
    """Answer for each rank by randomised response among the first `places` ranks.

    A rank beyond them is answered by any of them.
    """
    keeps = generator.random(len(ranks)) * (1.0 + (places - 1) * math.exp(-epsilon)) < 1.0
    # a single place is always kept, and the draw among no others is thrown away
    others = generator.integers(np.maximum(places - 1, 1))
    answers: Ints = np.where(keeps, ranks, others + (others >= ranks))
    outside = ranks >= places
    answers[outside] = generator.integers(places[outside])
    return answers


def _nearest_on_simplex(points: Floats) -> Floats:
    """Return the nearest row of probabilities for each row of numbers."""
    # a constant added to a row does not matter; with the largest at 0 no size of numbers does
    level = points - points.max(axis=-1, keepdims=True)
    falling = -np.sort(-level, axis=-1)
    cuts = (falling.cumsum(axis=-1) - 1.0) / np.arange(1, points.shape[-1] + 1)
    last = (falling > cuts).sum(axis=-1, keepdims=True) - 1
    near: Floats = np.maximum(level - np.take_along_axis(cuts, last, axis=-1), 0.0)
    return near


def _epsilon(value: float) -> None:
    if isinstance(value, float | np.floating) and value == math.inf:
        return
    _check.positive("epsilon", value)


def _labels(value: ArrayLike, classes: int) -> Ints:
    labels = _check.counts("labels", value)
    if labels.ndim != 1:
        raise ValueError(f"labels must have 1 dimension, got shape {labels.shape}")
    if labels.size and labels.max() >= classes:
        raise ValueError(f"labels must lie in 0 to {classes - 1}, got {labels.max()}")
    return labels


def _prior(value: ArrayLike) -> Floats:
    prior = _check.distributions("prior", value)
    if prior.shape[-1] < 2:
        raise ValueError(f"prior must have 2 classes or more on its last axis, got {prior.shape}")
    return prior
