"""DP-SGD, run for thousands of models at once, in the two worlds that a substitution makes.

An audit trains many models that differ in their noise, their batches and one record: the target z
in one world, the canary z' in the other. `audit_sgd` trains them as one tensor program; scores
of the attacks come from the weights that it returns.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.mechanisms.dp_descent import Draws, Recipe, Task, descend
from auditkit.mechanisms.dp_heads import HeadTask
from auditkit.mechanisms.dp_networks import NetworkTask, said
from auditkit.models import border
from auditkit.models.stacked import fresh

Singles: TypeAlias = NDArray[np.float32]
Network: TypeAlias = Callable[[], nn.Module]


@dataclass(frozen=True, eq=False)
class InputCanary:
    """A record that is substituted by another: z where the bit is 0, z' where it is 1.

    Parameters
    ----------
    features : array of shape (2, ...)
        Of z and of z'.
    labels : array of shape (2,)
        Of z and of z'.

    References
    ----------
    SUB, Algorithm 1 and scenarios S3 to S5 of Table 1.

    Examples
    --------
    >>> mislabelled = InputCanary(features=[[0.5, 1.0], [0.5, 1.0]], labels=[0, 1])
    """

    features: ArrayLike
    labels: ArrayLike

    def __post_init__(self) -> None:
        for name in ("features", "labels"):
            if np.shape(getattr(self, name))[:1] != (2,):
                raise ValueError(
                    f"{name} must have two rows, for z and z', got shape "
                    f"{np.shape(getattr(self, name))}"
                )


@dataclass(frozen=True, eq=False)
class GradientCanary:
    """A gradient that is put in the place of the target's: g_z where the bit is 0, else g_z'.

    Parameters
    ----------
    gradients : array of shape (2, parameters)
        g_z and g_z', each of a norm of at most the clipping bound. A row of zeros is the record
        left out.

    References
    ----------
    SUB, Algorithm 1 and scenario S2 of Table 1.

    Examples
    --------
    >>> opposite = GradientCanary(gradients=[[2.0, 0.0], [-2.0, 0.0]])
    """

    gradients: ArrayLike

    def __post_init__(self) -> None:
        if len(_check.numbers("gradients", self.gradients, ndim=2)) != 2:
            raise ValueError(
                f"gradients must have two rows, for z and z', got shape {np.shape(self.gradients)}"
            )


@dataclass(frozen=True, eq=False)
class Trained:
    """Models as they were at chosen steps, and the world of each.

    Weights are vectors in the order of ``torch.nn.utils.parameters_to_vector``; those of a linear
    head for several classes are the rows of its matrix one after another.

    Attributes
    ----------
    bits : array of shape (runs,)
        0 for models that met z, 1 for those that met z'.
    snapshots : array of shape (snapshots,)
        Steps after which the models were looked at.
    kept : array of shape (runs, snapshots, ...) or None
        What the function `keep` made of them, if one was given.

    Examples
    --------
    >>> canary = GradientCanary([[1.0, 0.0], [-1.0, 0.0]])
    >>> trained = audit_sgd(
    ...     [[0.0, 2.0]], [1], canary, runs=2, steps=8, sampling_rate=1.0, noise_multiplier=0.0,
    ...     clip=1.0, learning_rate=0.5, snapshots=[4, 8],
    ... )
    >>> print(trained.along([1.0, 0.0]))
    [[-1. -2.]
     [ 1.  2.]]
    >>> trained.weights.shape, trained.logits([[1.0, 0.0]]).shape
    ((2, 2, 2), (2, 2, 1))
    """

    bits: Ints
    snapshots: Ints
    kept: NDArray[Any] | None = None
    _coordinates: Singles | None = field(default=None, repr=False)
    _initial: Singles | None = field(default=None, repr=False)  # (1 or runs, parameters)
    _basis: Singles | None = field(default=None, repr=False)  # rows; None for the usual one
    _network: Network | int = field(default=1, repr=False)
    _device: torch.device = field(default=torch.device("cpu"), repr=False)  # that networks are on

    @property
    def weights(self) -> Singles:
        """The weights θ, of shape (runs, snapshots, parameters)."""
        return _turn(self._theta(), self._basis)

    @property
    def initial(self) -> Singles:
        """The weights θ₀ before the first step, of shape (runs, parameters)."""
        self._theta()
        assert self._initial is not None
        start = np.repeat(self._initial, len(self.bits) // len(self._initial), axis=0)
        return _turn(start, self._basis)

    def along(self, directions: ArrayLike) -> Singles:
        """Return how far the weights have moved: (θ_t - θ₀) times each direction.

        Parameters
        ----------
        directions : array of shape (parameters,) or (directions, parameters)

        Returns
        -------
        ndarray of shape (runs, snapshots) or (runs, snapshots, directions)

        References
        ----------
        SUB, scenario S2 of Table 1.
        """
        theta, given = self._theta(), _check.numbers("directions", directions)
        assert self._initial is not None
        if given.ndim not in (1, 2) or given.shape[-1] != theta.shape[-1]:
            raise ValueError(
                f"directions must have {theta.shape[-1]} numbers each, got shape {given.shape}"
            )
        rows = _turn(given.astype(np.float32), _transposed(self._basis))
        result: Singles = np.matmul(theta - self._initial[:, None], rows.T)
        return result

    def logits(self, features: ArrayLike) -> Singles:
        """Return what every model says of every example.

        Parameters
        ----------
        features : array of shape (examples, ...)

        Returns
        -------
        ndarray of shape (runs, snapshots, examples) or (runs, snapshots, examples, classes)
            The first for a head with one logit.
        """
        theta = self._theta()
        if not isinstance(self._network, int):
            layer = fresh(self._network).eval().to(self._device)
            flat = torch.from_numpy(theta.reshape(-1, theta.shape[-1])).to(self._device)
            found = said(layer, flat, border.inputs(features).to(self._device))
            every = found.reshape(*theta.shape[:2], *found.shape[1:])
            return every[..., 0] if every.shape[-1] == 1 else every
        heads = theta.reshape(*theta.shape[:2], self._network, -1)
        rows = _check.numbers("features", features, ndim=2).astype(np.float32)
        if rows.shape[1] != heads.shape[-1]:
            raise ValueError(
                f"features must have {heads.shape[-1]} columns, got shape {rows.shape}"
            )
        turned = _turn(rows, _transposed(self._basis))
        result: Singles = np.moveaxis(heads @ turned.T, 2, 3)
        return result[..., 0] if self._network == 1 else result

    def _theta(self) -> Singles:
        if self._coordinates is None:
            raise ValueError("weights were not kept, since audit_sgd was told what to keep")
        return self._coordinates


def audit_sgd(
    features: ArrayLike,
    labels: ArrayLike,
    canary: InputCanary | GradientCanary,
    *,
    runs: int,
    steps: int,
    sampling_rate: float,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    optimizer: Literal["sgd", "adam"] = "sgd",
    logits: int = 1,
    network: Network | None = None,
    initial: ArrayLike | None = None,
    bits: ArrayLike | None = None,
    snapshots: ArrayLike | None = None,
    keep: Callable[[Trained], ArrayLike] | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Trained:
    r"""Train many models with DP-SGD at once, each in the world that its bit says.

    Each model samples its own batches, every record with probability `sampling_rate`, clips each
    gradient to the norm C, adds Gaussian noise of standard deviation σC, divides by the expected
    size of a batch and takes a step. The canary's record is one of n: `features` hold the n - 1
    others, and the expected size is qn.

    Without `network` the model is a linear head on `features` without a bias (a column of ones is
    one). Its clipping is a closed form. With "sgd" it is trained in the span of records and
    canaries, since noise outside never meets a record; outside, the weights are a Gaussian walk
    that is drawn at snapshots, so that they follow the law of DP-SGD in every direction.

    Parameters
    ----------
    features : array of shape (n - 1, ...)
        The records that both worlds share.
    labels : array of shape (n - 1,)
        0 or 1 for a head with one logit, else the class.
    canary : InputCanary or GradientCanary
        What the worlds differ in.
    runs : int
        Models to train.
    steps : int
        T, steps of each.
    sampling_rate : float
        q, in (0, 1].
    noise_multiplier : float
        σ, at least 0.
    clip : float
        C, above 0.
    learning_rate : float
        η, above 0.
    optimizer : {"sgd", "adam"}
        Adam acts on single coordinates, so that its heads are trained in full dimension.
    logits : int
        Of the linear head: 1 with the binary cross-entropy, or one a class with the softmax.
    network : callable, optional
        Makes a fresh network, as in `models.fit_many`. Fully connected ones are clipped by ranks,
        others by `torch.func` with a gradient an example and model.
    initial : array of shape (parameters,) or (runs, parameters), optional
        θ₀. By default 0 for a head, and for a network as each model's own seed has it.
    bits : array of shape (runs,), optional
        The coin b of each model, by default 0 and 1 in turn.
    snapshots : array, optional
        Steps after which the models are looked at, by default the last.
    keep : callable, optional
        What to keep instead of the weights: a function of a `Trained` with some of the models at
        one snapshot that returns an array with a row a model. Use it where weights would not fit.
    seed : int
        A model's draws depend on the seed and its number, not on its company.
    device : str or torch.device
        Where models are trained and networks asked, as in `models.fit_many`. Noise and batches are
        drawn on the CPU, so that they are the same on another device.

    Returns
    -------
    Trained

    Raises
    ------
    FloatingPointError
        If weights did not stay finite.

    Notes
    -----
    .. math:: \theta_{t+1} &= \theta_t - \frac{\eta}{qn}
        \left[\sum_{z \in B_t} \nabla_\theta \ell(\theta_t; z)
        \min\left(1, \frac{C}{\lVert\nabla_\theta \ell(\theta_t; z)\rVert}\right) + Z_t\right], \\
        Z_t &\sim N(0, \sigma^2 C^2 I)

    With "sgd", the sum of all noisy gradients along g is :math:`-qn/\eta` times ``along(g)``.

    Memory, beyond the records, a basis of features squared, and what is returned (4 bytes a weight,
    snapshot and run, or what is kept): about 60 MB, or what one model with one example takes; on
    another device about 1 GB there.

    References
    ----------
    SUB, Algorithm 1 and eq. (1); there the data already hold z, which is then added again. Abadi et
    al. (2016), "Deep learning with differential privacy". Bu, Wang, Zha and Karypis (2023),
    "Differentially private optimization on large model at small cost", for clipping by ranks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(99, 20)), rng.integers(2, size=99)
    >>> target = rng.normal(size=20)
    >>> trained = audit_sgd(
    ...     x, y, InputCanary([target, target], [0, 1]), runs=1000, steps=50, sampling_rate=0.5,
    ...     noise_multiplier=2.0, clip=1.0, learning_rate=0.1,
    ... )
    >>> moved = trained.along(target)[:, 0]
    >>> bool(moved[trained.bits == 1].mean() > moved[trained.bits == 0].mean())
    True
    """
    runs = _check.whole("runs", runs, least=1)
    optimizer = _check.choice("optimizer", optimizer, ("sgd", "adam"))
    clip, rate = _check.positive("clip", clip), _check.rate("sampling_rate", sampling_rate)
    where = border.device("device", device)
    turn = optimizer == "sgd"
    task = _task(features, labels, canary, clip, logits, network, turn=turn, device=where)
    batch = rate * (task.others + 1)
    noise = _check.scalar("noise_multiplier", noise_multiplier, least=0.0) * clip / batch
    recipe = Recipe(
        steps=_check.whole("steps", steps, least=1),
        sampling_rate=rate,
        noise=noise,
        clip=clip,
        batch=batch,
        learning_rate=_check.positive("learning_rate", learning_rate),
        optimizer=optimizer,
    )
    audit = _Audit(
        task=task,
        recipe=recipe,
        start=_initial(initial, runs, task),
        bits=_bits(bits, runs),
        snapshots=_snapshots(snapshots, recipe.steps),
        seed=_check.whole("seed", seed),
        device=where,
    )
    return audit.whole() if keep is None else audit.kept(keep)


# --- in chunks of models -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Audit:
    """What is to be trained, and what is to be looked at."""

    task: Task
    recipe: Recipe
    start: Tensor | None  # (1 or runs, parameters), in the task's basis
    bits: Ints
    snapshots: Ints
    seed: int
    device: torch.device

    def whole(self) -> Trained:
        """Return the weights of all models at all snapshots."""
        shape = (len(self.bits), len(self.snapshots), self.task.parameters)
        found, starts = np.empty(shape, dtype=np.float32), []
        for part, at, seen in self._looks():
            assert seen._coordinates is not None
            assert seen._initial is not None
            found[part, at] = seen._coordinates[:, 0]
            if at == 0:
                starts.append(seen._initial)
        shared = isinstance(self.task.network, int) if self.start is None else len(self.start) == 1
        initial = starts[0] if shared else np.concatenate(starts)
        return self._trained(self.bits, self.snapshots, found, initial)

    def kept(self, keep: Callable[[Trained], ArrayLike]) -> Trained:
        """Return what `keep` makes of the models."""
        result: NDArray[Any] | None = None
        for part, at, seen in self._looks():
            made = np.asarray(keep(seen))
            if made.shape[:1] != seen.bits.shape:
                raise ValueError(
                    f"keep must return a row for each of {len(seen.bits)} models, "
                    f"got shape {made.shape}"
                )
            if result is None:
                shape = (len(self.bits), len(self.snapshots), *made.shape[1:])
                result = np.empty(shape, dtype=made.dtype)
            result[part, at] = made
        return Trained(self.bits, self.snapshots, result)

    def _looks(self) -> Iterator[tuple[slice, int, Trained]]:
        """Train chunk by chunk; yield its place, the number of the snapshot and the models."""
        runs, size = len(self.bits), self.task.at_once(self.recipe.batch)
        for first in range(0, runs, size):
            part = slice(first, min(first + size, runs))
            draws, bits = Draws(self.seed, range(part.start, part.stop)), self.bits[part]
            start = self.task.first(draws) if self.start is None else self.start
            start = start[part] if len(start) == runs else start
            seen = descend(
                self.task,
                self.recipe,
                draws,
                start.to(self.device).expand(len(bits), -1),
                bits,
                frozenset(self.snapshots.tolist()),
            )
            for at, weights in enumerate(seen):
                border.finite([weights], part.start)
                step, theta = self.snapshots[at : at + 1], weights.cpu().numpy()[:, None]
                yield part, at, self._trained(bits, step, theta, start.numpy())

    def _trained(self, bits: Ints, steps: Ints, theta: Singles, initial: Singles) -> Trained:
        task = self.task
        return Trained(bits, steps, None, theta, initial, task.basis, task.network, self.device)


# --- the border ----------------------------------------------------------------------------------


def _task(
    features: ArrayLike,
    labels: ArrayLike,
    canary: InputCanary | GradientCanary,
    clip: float,
    logits: int,
    network: Network | None,
    *,
    turn: bool,
    device: torch.device,
) -> Task:
    """Return what is trained on what, with the canary's two records after the others."""
    if not isinstance(canary, InputCanary | GradientCanary):
        raise TypeError(f"canary must be an InputCanary or a GradientCanary, got {canary!r:.60}")
    logits = _check.whole("logits", logits, least=1)
    planted = isinstance(canary, GradientCanary)
    if network is not None:
        if logits != 1:
            raise ValueError(f"logits is for a linear head, and network has its own, got {logits}")
        inputs = border.inputs(features)
        shown = border.network_output(network, inputs)
        classes = border.labels(labels, len(inputs), shown[1:])
        if isinstance(canary, InputCanary):
            extra = border.inputs(canary.features)
            if extra.shape[1:] != inputs.shape[1:] or extra.dtype != inputs.dtype:
                raise ValueError(_unlike(extra.shape, inputs.shape))
            both = border.labels(canary.labels, 2, shown[1:])
            inputs, classes = torch.cat([inputs, extra]), torch.cat([classes, both])
        layer = fresh(network).to(device)
        parameters = sum(weight.numel() for weight in layer.parameters())
        gradients = _gradients(canary, parameters, clip) if planted else None
        rows = None
        if gradients is not None:
            rows = torch.from_numpy(gradients.astype(np.float32)).to(device)
        return NetworkTask(inputs.to(device), classes.to(device), rows, network, layer)
    x = _check.numbers("features", features, ndim=2)
    y = _head_labels("labels", labels, len(x), logits)
    if isinstance(canary, InputCanary):
        records = _check.numbers("canary.features", canary.features, ndim=2)
        if records.shape[1] != x.shape[1]:
            raise ValueError(_unlike(records.shape, x.shape))
        x = np.concatenate([x, records])
        y = np.concatenate([y, _head_labels("canary.labels", canary.labels, 2, logits)])
    gradients = _gradients(canary, logits * x.shape[1], clip) if planted else None
    return HeadTask.of(x, y, gradients, clip=clip, logits=logits, turn=turn, device=device)


def _unlike(canary: tuple[int, ...], features: tuple[int, ...]) -> str:
    return (
        f"canary.features must be like features, of shape {(2, *features[1:])}, got {tuple(canary)}"
    )


def _head_labels(name: str, value: ArrayLike, records: int, logits: int) -> Ints:
    """Return labels as classes below the number that the head tells apart."""
    labels = _check.counts(name, value)
    if labels.shape != (records,):
        raise ValueError(f"{name} must have shape {(records,)}, got {labels.shape}")
    if len(labels) and labels.max() >= max(2, logits):
        raise ValueError(f"{name} must lie in 0 to {max(2, logits) - 1}, got {labels.max()}")
    return labels


def _gradients(canary: InputCanary | GradientCanary, parameters: int, clip: float) -> Floats:
    """Return both gradients of a gradient canary."""
    assert isinstance(canary, GradientCanary)
    gradients = _check.numbers("gradients", canary.gradients, ndim=2)
    if gradients.shape[1] != parameters:
        raise ValueError(
            f"gradients must have {parameters} numbers each, one a weight, "
            f"got shape {gradients.shape}"
        )
    norm = np.linalg.norm(gradients, axis=1).max()
    if norm > clip * (1.0 + 1e-6):  # a longer one would be more than the noise is meant for
        raise ValueError(f"gradients must have a norm of at most clip = {clip:g}, got {norm:g}")
    return gradients


def _initial(value: ArrayLike | None, runs: int, task: Task) -> Tensor | None:
    """Return first weights in the task's basis, (1 or runs, parameters)."""
    if value is None:
        return None
    given = _check.numbers("initial", value)
    if given.shape not in ((task.parameters,), (runs, task.parameters)):
        raise ValueError(
            f"initial must have shape {(task.parameters,)} or {(runs, task.parameters)}, "
            f"got {given.shape}"
        )
    rows = np.atleast_2d(given).astype(np.float32)
    return torch.from_numpy(_turn(rows, _transposed(task.basis)))


def _bits(value: ArrayLike | None, runs: int) -> Ints:
    if value is None:
        return np.arange(runs) % 2
    bits = _check.codes("bits", value, (0, 1))
    if len(bits) != runs:
        raise ValueError(f"bits must hold one for each of {runs} runs, got {len(bits)}")
    return bits


def _snapshots(value: ArrayLike | None, steps: int) -> Ints:
    given = _check.counts("snapshots", [steps] if value is None else _listed(value))
    rising = given.ndim == 1 and len(given) and (np.diff(given) > 0).all()
    if not rising or given[0] < 1 or given[-1] > steps:
        raise ValueError(f"snapshots must be rising steps from 1 to {steps}, got {value!r:.60}")
    return given


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, range) else value


def _transposed(basis: Singles | None) -> Singles | None:
    return None if basis is None else basis.T


def _turn(weights: Singles, basis: Singles | None) -> Singles:
    """Return weights of shape (..., parameters) with coordinates in `basis` in the usual basis."""
    if basis is None:
        return weights
    result: Singles = (weights.reshape(-1, len(basis)) @ basis).reshape(weights.shape)
    return result
