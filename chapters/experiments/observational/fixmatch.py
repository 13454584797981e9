"""FixMatch: a few labelled examples and many unlabelled ones, for many networks at once.

A network guesses the label of a weakly changed copy of an unlabelled example. Where it is sure, the
guess becomes the label of a strongly changed copy. So it learns from its own sure guesses that
both are of one class.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Ints
from auditkit.models import border
from auditkit.models.descent import Optimiser, slope
from auditkit.models.stacked import first_weights, forward, fresh, slices
from auditkit.models.training import Models

DECAY = 7 / 16  # of the rate: it ends at cos(7π/16), a fifth of where it began
ALIGNED = 0.99  # of the mean guess is what it was a step before
AT_ONCE = 32  # models side by side: with more a step is not faster any more


def fit_fixmatch(
    network: Callable[[], nn.Module],
    inputs: ArrayLike,
    labels: ArrayLike,
    weak: ArrayLike,
    strong: ArrayLike,
    *,
    seeds: ArrayLike,
    steps: int,
    batch_size: int,
    learning_rate: float,
    indices: ArrayLike | None = None,
    ratio: int = 7,
    threshold: float = 0.95,
    unlabelled_weight: float = 1.0,
    shares: ArrayLike | None = None,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
) -> Models:
    r"""Train many networks by FixMatch, each with its own labels, all with one unlabelled pool.

    The loss of a step is the mean cross-entropy on labelled examples, plus λ times the mean over
    unlabelled ones of the cross-entropy between the guess on the weak view and the network on the
    strong view, 0 where the guess has a probability below the threshold. No gradient goes through
    the guess. The rate of SGD falls as :math:`\cos(7 \pi k / 16 K)` over the K steps.

    A model's seed decides its first weights, as in `fit_many`, and then, by
    ``numpy.random.default_rng(seed)``, what it sees: rounds of permutations of its labelled
    examples, rounds of permutations of the unlabelled ones, which weak view of each, which strong
    one. So a plain loop gives the same weights, up to rounding.

    Parameters
    ----------
    network : callable
        Makes a fresh network, as in `fit_many`.
    inputs : array of shape (n, ...)
        Examples with labels.
    labels : array of shape (n,)
        The class of each.
    weak, strong : array of shape (views, u, ...)
        Weakly and strongly changed copies of the unlabelled examples, in the same order; there may
        be several of each.
    seeds : array of shape (models,)
        A seed for each model.
    steps : int
        Steps downhill, K.
    batch_size : int
        Labelled examples in a step.
    learning_rate : float
        Step size at the start.
    indices : array of shape (models, size), optional
        Which labelled examples each model has; all of them if not given.
    ratio : int
        Unlabelled examples in a step for each labelled one, μ.
    threshold : float
        Least probability of a guess that counts, in (0, 1).
    unlabelled_weight : float
        Weight of the unlabelled part of the loss, λ.
    shares : array of shape (classes,), optional
        Share of each class among the unlabelled examples, where it is known. Guesses are then
        aligned with it: multiplied by it, divided by their running mean, and made to sum to 1.
    momentum : float
        In [0, 1).
    weight_decay : float
        Added to the gradient, times the weights.

    Returns
    -------
    Models

    Raises
    ------
    FloatingPointError
        If weights did not stay finite; it says whose.

    References
    ----------
    Sohn et al., *FixMatch: simplifying semi-supervised learning with consistency and confidence*,
    2020, Algorithm 1, Sections 2.2 and 2.4. Their moving average of the weights is left out.
    Alignment is from Berthelot et al., *ReMixMatch*, 2020, Section 3.1.

    Examples
    --------
    Two long clouds, one label in each:

    >>> from functools import partial
    >>> from auditkit.models.networks import mlp
    >>> rng = np.random.default_rng(0)
    >>> truth = np.arange(500) % 2
    >>> x = np.c_[rng.normal(0, 2, 500), rng.normal(0, 0.2, 500) + 2 * truth - 1]
    >>> strong = x + rng.normal(0, [2.0, 0.1], (4, *x.shape))
    >>> model = fit_fixmatch(partial(mlp, 2, 2), x[:2] * [0, 1], truth[:2], x[None], strong,
    ...                      seeds=[0], steps=200, batch_size=2, learning_rate=0.1)
    >>> bool((model.predict(x) == truth).mean() > 0.95)
    True
    """
    pool, many = border.inputs(inputs), border.seeds(seeds)
    shown = border.network_output(network, pool)
    if len(shown) != 2:
        raise ValueError(f"network must give logits of shape (n, classes), got {tuple(shown)}")
    data = _Pool(
        inputs=pool,
        labels=border.labels(labels, len(pool), shown[1:]),
        weak=_views("weak", weak, pool),
        strong=_views("strong", strong, pool),
        indices=border.indices(indices, len(many), len(pool)),
        steps=_check.whole("steps", steps, least=0),
        batch_size=_check.whole("batch_size", batch_size, least=1),
        ratio=_check.whole("ratio", ratio, least=1),
    )
    data.check_views()
    sure = _check.fraction("threshold", threshold)
    known = None if shares is None else _shares(shares, shown[1])
    weight = _check.scalar("unlabelled_weight", unlabelled_weight, least=0.0)
    rule = partial(
        Optimiser,
        kind="sgd",
        rate=_check.positive("learning_rate", learning_rate),
        momentum=border.momentum(momentum, "sgd"),
        decay=_check.scalar("weight_decay", weight_decay, least=0.0),
    )
    stacked, layer = first_weights(network, many, None), fresh(network)
    for part in slices(len(many), AT_ONCE):
        own = {name: each[part].requires_grad_() for name, each in stacked.items()}
        optimiser, align = rule(tuple(own.values())), _Alignment(known)
        for step, (x, y, calm, wild) in enumerate(data.batches(many[part], part)):
            optimiser.rate = learning_rate * math.cos(math.pi * DECAY * step / data.steps)
            with torch.no_grad():
                guesses = torch.softmax(forward(layer, own, calm).mT.contiguous(), 1)
                chance, guess = align(guesses).max(1)
            logits = forward(layer, own, torch.cat((x, wild), 1))
            share = torch.cat((torch.ones(y.shape), weight / data.ratio * (chance >= sure)), 1)
            downhill = slope(logits.detach(), torch.cat((y, guess), 1), share / data.batch_size)
            optimiser.step(torch.autograd.grad(logits, optimiser.weights, downhill))
    border.finite(stacked.values())
    return Models(network, stacked)


class _Alignment:
    """Brings the mean of guesses to where the shares of the classes are, if they are known."""

    def __init__(self, shares: Tensor | None) -> None:
        self.shares, self.mean = shares, shares

    def __call__(self, guesses: Tensor) -> Tensor:
        """Return guesses, of shape (models, classes, batch), less what classes got too often."""
        if self.shares is None or self.mean is None:
            return guesses
        self.mean = torch.lerp(guesses.mean(2, keepdim=True), self.mean, ALIGNED)
        aligned = guesses * (self.shares / self.mean)
        return aligned / aligned.sum(1, keepdim=True)


@dataclass(frozen=True)
class _Pool:
    """Labelled examples, views of unlabelled ones, and which of them a model sees in a step."""

    inputs: Tensor
    labels: Tensor
    weak: Tensor  # (views, u, ...)
    strong: Tensor
    indices: Ints  # (models, size)
    steps: int
    batch_size: int
    ratio: int

    def check_views(self) -> None:
        if self.weak.shape[1] != self.strong.shape[1]:
            raise ValueError(
                "weak and strong must be views of the same examples, got "
                f"{self.weak.shape[1]} and {self.strong.shape[1]}"
            )

    def batches(
        self, seeds: Sequence[int], part: slice
    ) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Yield labelled inputs, their labels, and weak and strong views of others."""
        drawn = zip(*map(self._draw, seeds, self.indices[part]), strict=True)
        # steps first, models second
        seen, calm, wild = (torch.from_numpy(np.stack(each, axis=1)) for each in drawn)
        weak, strong = self.weak.flatten(0, 1), self.strong.flatten(0, 1)
        for rows, one, other in zip(seen, calm, wild, strict=True):
            yield (
                _rows(self.inputs, rows),
                self.labels[rows],
                _rows(weak, one),
                _rows(strong, other),
            )

    def _draw(self, seed: int, rows: Ints) -> Iterator[Ints]:
        """Return what a model sees, by step: labelled rows, and places among the views."""
        generator = np.random.default_rng(seed)
        views, hidden = self.weak.shape[:2]
        yield rows[_rounds(generator, len(rows), (self.steps, self.batch_size))]
        others = _rounds(generator, hidden, (self.steps, self.ratio * self.batch_size))
        yield others + hidden * generator.integers(views, size=others.shape)
        yield others + hidden * generator.integers(len(self.strong), size=others.shape)


def _rounds(generator: np.random.Generator, size: int, shape: tuple[int, int]) -> Ints:
    """Return permutations of `size` one after the other, cut to the shape."""
    length = math.prod(shape)
    rounds = [np.empty(0, np.int64)]
    rounds += [generator.permutation(size) for _ in range(math.ceil(length / size))]
    return np.concatenate(rounds)[:length].reshape(shape)


def _rows(inputs: Tensor, rows: Tensor) -> Tensor:
    return inputs.index_select(0, rows.reshape(-1)).view(*rows.shape, *inputs.shape[1:])


def _shares(value: ArrayLike, classes: int) -> Tensor:
    shares = _check.distributions("shares", value)
    if shares.shape != (classes,):
        raise ValueError(f"shares must have shape ({classes},), got {shares.shape}")
    if not shares.all():
        raise ValueError("shares must be above 0, got 0")
    return torch.from_numpy(shares.astype(np.float32))[:, None]


def _views(name: str, value: ArrayLike, pool: Tensor) -> Tensor:
    views = np.asarray(value)
    if views.ndim != pool.ndim + 1 or views.shape[2:] != pool.shape[1:] or not views.size:
        raise ValueError(
            f"{name} must have shape (views, u, {', '.join(map(str, pool.shape[1:]))}), "
            f"got {views.shape}"
        )
    found = border.inputs(views)
    if found.dtype != pool.dtype:
        raise ValueError(f"{name} must hold numbers as inputs does, got {views.dtype}")
    return found
