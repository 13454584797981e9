"""One network trained with DP-SGD on images or features, and what it promises.

For audits of a single training: `audit_sgd` trains thousands of models in two worlds, this trains
one as large as a core can bear.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from auditkit import _check
from auditkit._types import Bools, Floats
from auditkit.accounting import noise_multiplier_for
from auditkit.mechanisms.dp_descent import Draws
from auditkit.mechanisms.dp_networks import ByName, ClippedSum, by_name, clipped_by_rank
from auditkit.models import border
from auditkit.models.stacked import first_weights, fresh, slices

AT_ONCE = 32  # gradients of examples side by side: about what stays in the cache
ROWS = 1024  # examples that are looked at in one go when the network is asked


@dataclass(frozen=True)
class Privacy:
    """What DP-SGD promises, and the settings that it follows from.

    Attributes
    ----------
    epsilon, delta : float
        The promise, an upper bound: all weights of all steps together are (ε, δ)-DP.
    adjacency : str
        Which datasets count as neighbours.
    noise_multiplier, sampling_rate : float
        σ and q.
    steps : int
        T.
    """

    epsilon: float
    delta: float
    adjacency: str
    noise_multiplier: float
    sampling_rate: float
    steps: int


@dataclass(frozen=True, eq=False)
class PrivateNetwork:
    """A network trained with DP-SGD.

    Attributes
    ----------
    module : torch.nn.Module
        The network, in evaluation mode.
    privacy : Privacy
        What it promises.
    """

    module: nn.Module = field(repr=False)
    privacy: Privacy

    def log_probabilities(self, inputs: ArrayLike) -> Floats:
        """Return the logarithms of the probabilities, of shape (examples, ..., classes).

        Parameters
        ----------
        inputs : array of shape (examples, ...)
        """
        x, device = border.inputs(inputs), next(self.module.parameters()).device
        with torch.no_grad():
            said = [self.module(x[part].to(device)).cpu() for part in slices(len(x), ROWS)]
        result: Floats = torch.log_softmax(torch.cat(said).double(), -1).numpy()
        return result


def fit_private(
    network: Callable[[], nn.Module],
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    epsilon: float,
    steps: int,
    sampling_rate: float,
    clip: float,
    learning_rate: float,
    delta: float = 1e-5,
    adjacency: Literal["add/remove", "substitute"] = "add/remove",
    averaging: float = 0.0,
    members: ArrayLike | None = None,
    device: str = "cpu",
    seed: int = 0,
) -> PrivateNetwork:
    r"""Train a network with DP-SGD.

    Each step samples a batch, every member with probability `sampling_rate`, clips the gradient of
    each example to the norm C, adds Gaussian noise of standard deviation σC to their sum and
    divides it by the expected size of a batch. A batch may be empty; its step is noise alone.

    Nothing but the sum of gradients depends on who is a member: the expected size is qn for the n
    rows of `inputs`, members or not, and whether an example is sampled does not depend on others.

    Parameters
    ----------
    network : callable
        Makes a fresh network: a function of `models.networks`, `resnet8` for example, or any other
        without dropout or running statistics. It may come with weights from public data.
    inputs : array of shape (n, ...)
        Examples: floats, or whole numbers for tokens. Images have channels first.
    labels : array of shape (n,) or (n, classes)
        Class of each example, or soft labels: a probability for each class, and the loss is the
        cross-entropy against them. For texts (n, length) and (n, length, classes).
    epsilon : float
        The ε to promise, for which the noise is chosen; infinite for none.
    steps : int
        T.
    sampling_rate : float
        q, in (0, 1].
    clip : float
        C, above 0.
    learning_rate : float
        η, above 0.
    delta, adjacency
        As in `dp_sgd_epsilon`.
    averaging : float
        Decay β in [0, 1) of the moving average of weights that is returned; 0 for the last ones.
    members : array of shape (n,), optional
        Who is trained on, booleans or 0 and 1; all by default.
    device : str
        Where torch trains, "cpu" or "cuda". Noise and batches are the same everywhere.
    seed : int
        Of batches and noise, and of the first weights: those of ``torch.manual_seed(seed)``
        followed by ``network()``. Random streams of torch and numpy are left as they were.

    Returns
    -------
    PrivateNetwork

    Raises
    ------
    FloatingPointError
        If weights did not stay finite.

    Notes
    -----
    .. math:: \theta_{t+1} = \theta_t - \frac{\eta}{qn}
        \left[\sum_{z \in B_t} \nabla_\theta \ell(\theta_t; z)
        \min\left(1, \frac{C}{\lVert\nabla_\theta \ell(\theta_t; z)\rVert}\right) + Z_t\right],
        \qquad Z_t \sim N(0, \sigma^2 C^2 I)

    The average is :math:`\sum_{t=1}^T \beta^{T-t} \theta_t` over the sum of its weights.

    Whoever knows the seed knows the noise: this is for audits, and not for releases.

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy", Algorithm 1. De et al. (2022),
    "Unlocking high-accuracy differentially private image classification through scale", for the
    average.

    Examples
    --------
    >>> from functools import partial
    >>> from auditkit.models.networks import linear
    >>> x = np.random.default_rng(0).normal(size=(2000, 8))
    >>> model = fit_private(
    ...     partial(linear, 8, 2), x, x[:, 0] > 0, epsilon=2.0, steps=50, sampling_rate=0.1,
    ...     clip=1.0, learning_rate=1.0, averaging=0.9,
    ... )
    >>> round(model.privacy.noise_multiplier, 2)
    1.75
    >>> said = model.log_probabilities(x).argmax(axis=1)
    >>> bool(np.mean(said == (x[:, 0] > 0)) > 0.9)
    True
    """
    pool, number = border.inputs(inputs), _check.whole("seed", seed)
    shown = border.network_output(network, pool)
    training = _Training(
        inputs=pool.to(device),
        labels=border.targets(labels, len(pool), shown[1:]).to(device),
        members=_members(members, len(pool)),
        privacy=_promise(
            epsilon,
            _check.rate("sampling_rate", sampling_rate),
            _check.whole("steps", steps, least=1),
            delta,
            adjacency,
        ),
        clip=_check.positive("clip", clip),
        learning_rate=_check.positive("learning_rate", learning_rate),
        averaging=_check.delta("averaging", averaging),
    )
    layer = fresh(network)
    drawn = first_weights(network, [number], None)
    start = torch.cat([weight.flatten(1) for weight in drawn.values()], 1)
    average = training.descend(layer.to(device), start.to(device), Draws(number, range(1)))
    border.finite([average])
    nn.utils.vector_to_parameters(average[0], layer.parameters())
    return PrivateNetwork(layer.eval().requires_grad_(False), training.privacy)


@dataclass(frozen=True)
class _Training:
    """Who is trained on, and how."""

    inputs: Tensor
    labels: Tensor
    members: Bools
    privacy: Privacy
    clip: float
    learning_rate: float
    averaging: float

    def descend(self, layer: nn.Module, weights: Tensor, draws: Draws) -> Tensor:
        """Return the average of weights, all of shape (1, parameters); those given are changed."""
        privacy, average = self.privacy, torch.zeros_like(weights)
        batch = privacy.sampling_rate * len(self.inputs)
        deviation = privacy.noise_multiplier * self.clip / batch
        views, ranks = by_name(weights, layer), clipped_by_rank(layer)
        sums_of, size = (_by_example(layer), AT_ONCE) if ranks is None else (ranks, ROWS)
        for step in range(1, privacy.steps + 1):
            noise = torch.zeros(weights.shape)
            draws.add_noise(noise, step, deviation)
            mean = noise.to(weights.device)
            places = by_name(mean, layer).values()
            sampled = draws.sampled(step, len(self.inputs), privacy.sampling_rate)[0]
            rows = torch.from_numpy(np.flatnonzero(self.members & (sampled == 1)))
            for part in slices(len(rows), size):
                x, y = self.inputs[None, rows[part]], self.labels[None, rows[part]]
                share = x.new_full(x.shape[:2], 1.0 / batch, dtype=torch.float32)
                for place, found in zip(
                    places, sums_of(views, x, y, share, self.clip), strict=True
                ):
                    place.add_(found)
            weights.sub_(mean, alpha=self.learning_rate)
            # all weights so far count, with no trace of the start
            average.lerp_(weights, (1.0 - self.averaging) / (1.0 - self.averaging**step))
        return average


def _by_example(layer: nn.Module) -> ClippedSum:
    """Return the function that clips and sums, with a gradient for each example."""

    def loss(weights: ByName, x: Tensor, y: Tensor) -> Tensor:
        logits = torch.func.functional_call(layer, weights, (x[None],))[0]
        truth = y.reshape(-1, logits.shape[-1]) if y.is_floating_point() else y.reshape(-1)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), truth)

    by_example = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

    def sums(weights: ByName, x: Tensor, y: Tensor, share: Tensor, clip: float) -> list[Tensor]:
        with sdpa_kernel(SDPBackend.MATH):  # the other ways of attention know nothing of vmap
            found = by_example({name: own[0] for name, own in weights.items()}, x[0], y[0])
        gradients = [found[name].flatten(1) for name in weights]
        squares = torch.stack([own.square().sum(1) for own in gradients]).sum(0)
        factor = (clip / squares.sqrt()).clamp_(max=1.0).mul_(share[0])
        return [
            (factor @ own).view(place.shape)
            for own, place in zip(gradients, weights.values(), strict=True)
        ]

    return sums


@lru_cache
def _promise(
    epsilon: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    adjacency: Literal["add/remove", "substitute"],
) -> Privacy:
    noise = 0.0
    if epsilon != math.inf:
        noise = noise_multiplier_for(
            epsilon, sampling_rate=sampling_rate, steps=steps, delta=delta, adjacency=adjacency
        )
    return Privacy(epsilon, delta, adjacency, noise, sampling_rate, steps)


def _members(value: ArrayLike | None, examples: int) -> Bools:
    if value is None:
        return np.ones(examples, dtype=np.bool_)
    members = _check.members("members", value)
    if len(members) != examples:
        raise ValueError(f"members must have shape {(examples,)}, got {members.shape}")
    return members
