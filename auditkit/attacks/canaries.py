"""Canaries for substitute adjacency: what to put in the place of a record, and how to score it.

A record z of the training data is replaced by a canary z', and the attack says from the trained
model which of the two was there. A bit is 0 for a run with z and 1 for a run with z', and every
score here is high where z' was: `audit_scores` takes the two as they are. Descent moves weights
against a gradient, which is why the directions below begin with the gradient of z.

| scenario | canary | score |
|---|---|---|
| S1 crafted dataset | `mechanisms.worst_case` | `FinalSum.log_ratio` |
| S2 crafted gradient | `crafted_gradient` | movement along `gradient_direction` |
| S3 crafted input | `crafted_input` | `logit_score` |
| S4 crafted mislabelled sample | `mislabelled` | `logit_score` |
| S5 adversarial natural sample | `adversarial_natural` | `logit_score` |

Movement along `whitened_direction` is a score that the paper does not have; it is our addition.

Canaries are crafted on a reference model, trained without privacy. It may be any torch module that
treats its examples one by one and ends in one logit, for labels 0 and 1, or one a class. All is
computed on the device where its weights are, in double precision.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import ArrayLike
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Floats, Randomness

LOOKS = 25  # times that the reference model is asked for its confidence
NUMBERS = 4_000_000  # of gradients that are held at once


@dataclass(frozen=True, eq=False)
class Reference:
    """A model trained without privacy, and what was seen of its training.

    Attributes
    ----------
    model : torch.nn.Module
        The trained model, in double precision.
    confidence : ndarray of shape (examples,)
        Mean probability of an example's own label, over looks spread evenly over the training.
    movement : ndarray of shape (parameters,)
        The way each parameter has gone, back and forth, in the order of
        the model's ``parameters()``.

    References
    ----------
    SUB, Section 3.2.2, for the target, and Algorithm 2 for the movement.

    Examples
    --------
    >>> Reference(torch.nn.Linear(2, 1), np.array([0.9, 0.4, 0.7]), np.zeros(3)).target
    1
    """

    model: nn.Module
    confidence: Floats
    movement: Floats

    @property
    def target(self) -> int:
        """The example that the model was least confident of, which the paper takes for z."""
        return int(self.confidence.argmin())


def train_reference(
    model: nn.Module,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    steps: int,
    learning_rate: float,
    sampling_rate: float = 1.0,
    clip: float | None = None,
    optimizer: Literal["sgd", "adam"] = "sgd",
    rng: Randomness,
) -> Reference:
    """Train the reference model on which canaries are crafted, without noise.

    Parameters
    ----------
    model : torch.nn.Module
        The network with the weights θ₀ to start from. It is copied, not changed.
    features : array of shape (examples, ...)
        The dataset D.
    labels : array of shape (examples,)
        0 or 1 for a model with one logit, else the class.
    steps : int
        Steps T.
    learning_rate : float
        η. A step divides by the expected size of a batch.
    sampling_rate : float
        Probability that an example is in a batch.
    clip : float, optional
        The clipping norm C of each example's gradient, as Algorithm 2 has it. By default gradients
        are left as they are, as in Algorithms 3 to 5.
    optimizer : {"sgd", "adam"}
        How a gradient becomes a step.
    rng : Generator or int
        Draws the batches.

    Returns
    -------
    Reference

    References
    ----------
    SUB, Section 3.2 and Algorithms 2 to 5. Line 5 of Algorithm 2 leaves out the sum over the batch.

    Examples
    --------
    >>> x = np.array([[-2.0, 0.1], [-1.0, 0.1], [2.0, 0.1], [-0.1, 0.1]])
    >>> head = torch.nn.Linear(2, 1, bias=False)
    >>> reference = train_reference(head, x, [0, 0, 1, 1], steps=50, learning_rate=0.5, rng=0)
    >>> reference.target, int(reference.movement.argmin())
    (3, 1)
    """
    x, y = _records("features", features, "labels", labels)
    steps = _check.whole("steps", steps, least=1)
    rate = _check.rate("sampling_rate", sampling_rate)
    bound = None if clip is None else _check.positive("clip", clip)
    source = _check.generator("rng", rng)
    trained = _copied(model, x, "labels", y)
    x, y = _beside(trained, x, y)
    parameters = list(trained.parameters())
    step = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[
        _check.choice("optimizer", optimizer, ("sgd", "adam"))
    ](parameters, lr=_check.positive("learning_rate", learning_rate))
    looks = set(np.linspace(1, steps, min(steps, LOOKS)).round().astype(int).tolist())
    confidence = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    movement = torch.zeros(_size(trained), device=x.device)
    for t in range(1, steps + 1):
        batch = torch.from_numpy(np.flatnonzero(source.random(len(x)) < rate)).to(x.device)
        total = _batch_gradient(trained, x[batch], y[batch], bound)
        before = nn.utils.parameters_to_vector(parameters).detach()
        _put_gradient(parameters, total / (rate * len(x)))
        step.step()
        movement = movement + (nn.utils.parameters_to_vector(parameters).detach() - before).abs()
        if t in looks:
            with torch.no_grad():
                confidence += torch.exp(-_losses(trained(x), y)) / len(looks)
    moved = movement.double().cpu().numpy()
    return Reference(trained.eval(), confidence.cpu().numpy(), moved)


# --- canaries ------------------------------------------------------------------------------------


def crafted_gradient(movement: ArrayLike, *, clip: float) -> Floats:
    """Craft the pair of gradients of scenario S2: C and -C along the parameter that moves least.

    Parameters
    ----------
    movement : array of shape (parameters,)
        How far each parameter goes in training, as `Reference` has it.
    clip : float
        The clipping norm C.

    Returns
    -------
    ndarray of shape (2, parameters)
        The gradients g_z and g_z'.

    References
    ----------
    SUB, Algorithm 2, after Cebere, Bellet and Papernot (2025), "Tighter privacy auditing of DP-SGD
    in the hidden state threat model".

    Examples
    --------
    >>> print(crafted_gradient([3.0, 0.5, 2.0], clip=2.0))
    [[ 0.  2.  0.]
     [ 0. -2.  0.]]
    """
    moved = _check.at_least("movement", movement, 0.0)
    if moved.ndim != 1 or not moved.size:
        raise ValueError(f"movement must have a number a parameter, got shape {moved.shape}")
    bound = _check.positive("clip", clip)
    pair = np.zeros((2, moved.size))
    pair[:, moved.argmin()] = bound, -bound
    return pair


def crafted_input(
    model: nn.Module,
    features: ArrayLike,
    label: int,
    *,
    steps: int = 1000,
    learning_rate: float = 0.003,
    objective: Literal["norm", "printed"] = "norm",
    rng: Randomness,
) -> Floats:
    r"""Craft the input of scenario S3, whose gradient points against that of z.

    Parameters
    ----------
    model : torch.nn.Module
        The reference model.
    features : array
        x, of z = (x, y).
    label : int
        y, which z' = (x', y) keeps.
    steps : int
        N, steps of descent on x'.
    learning_rate : float
        Their length, in units of the squared norm of x, so that the scale of the features does not
        matter. The paper gives neither this nor N.
    objective : {"norm", "printed"}
        What is added to the cosine of the two gradients, see the notes.
    rng : Generator or int
        Draws the start, a point a tenth as far from 0 as x.

    Returns
    -------
    ndarray
        x', of the shape of x.

    Notes
    -----
    With "printed" the second term is the mean square of :math:`g_z - g_{z'}`. It is meant to keep
    the two gradients alike in size, but asks for the same direction too, against the first term:
    where the cosine is -1 it is least for :math:`g_{z'} = 0`. With "norm" it is
    :math:`(\lVert g_{z'} \rVert / \lVert g_z \rVert - 1)^2`, which speaks of size alone.

    The paper starts at x' = 0. There a model without a bias has no gradient, and the cosine is 0/0.
    Much nearer to 0 than we start, its slope, which falls with the distance, throws x' far away.

    References
    ----------
    SUB, Algorithm 3; "norm" is our repair.

    Examples
    --------
    >>> head = torch.nn.Linear(3, 1, bias=False)
    >>> x = np.array([1.0, 2.0, -1.0])
    >>> print(crafted_input(head, x, 1, rng=0).round(1) / -x > 0)
    [ True  True  True]
    """
    x, y = _record(features, label)
    steps = _check.whole("steps", steps, least=1)
    objective = _check.choice("objective", objective, ("norm", "printed"))
    rate = _check.positive("learning_rate", learning_rate)
    source = _check.generator("rng", rng)
    reference = _copied(model, x, "label", y)
    x, y = _beside(reference, x, y)
    target = _gradients(reference, x, y)[0]
    if not target.norm() > 0.0:
        raise ValueError("features must have a gradient on the model, got one of norm 0")
    scale = x.square().sum()
    start = source.standard_normal(tuple(x.shape))
    point = 0.1 * x.norm() * torch.from_numpy(start / np.linalg.norm(start)).to(x.device)
    for _ in range(steps):
        point = point.detach().requires_grad_()
        loss = _losses(reference(point), y).sum()
        own = torch.autograd.grad(loss, list(reference.parameters()), create_graph=True)
        gradient = torch.cat([part.flatten() for part in own])
        distance = F.cosine_similarity(gradient, target, dim=0, eps=0.0)
        if objective == "norm":
            distance = distance + (gradient.norm() / target.norm() - 1.0) ** 2
        else:
            distance = distance + (gradient - target).square().mean()
        (slope,) = torch.autograd.grad(distance, point)
        point = point - rate * scale * slope
    crafted: Floats = point.detach()[0].cpu().numpy()
    if not np.isfinite(crafted).all():
        raise FloatingPointError(
            f"x' did not stay finite: take a learning_rate below {learning_rate!r}"
        )
    return crafted


def mislabelled(model: nn.Module, features: ArrayLike, label: int) -> int:
    """Choose the label of scenario S4: the one whose gradient points furthest away from z's.

    Parameters
    ----------
    model : torch.nn.Module
        The reference model.
    features : array
        x, of z = (x, y).
    label : int
        y.

    Returns
    -------
    int
        y', of z' = (x, y').

    References
    ----------
    SUB, Algorithm 4.

    Examples
    --------
    >>> mislabelled(torch.nn.Linear(3, 1), [1.0, 2.0, -1.0], 1)
    0
    """
    x, y = _record(features, label)
    reference = _copied(model, x, "label", y)
    x, y = _beside(reference, x, y)
    with torch.no_grad():
        labels = torch.arange(max(reference(x).shape[-1], 2), device=x.device)
    pool = x.expand(len(labels), *x.shape[1:])
    return int(_cosines(reference, x, y, pool, labels).argmin())


def adversarial_natural(
    model: nn.Module,
    features: ArrayLike,
    label: int,
    *,
    pool_features: ArrayLike,
    pool_labels: ArrayLike,
) -> int:
    """Choose the record of scenario S5 out of records that were not trained on.

    Parameters
    ----------
    model : torch.nn.Module
        The reference model.
    features : array
        x, of z = (x, y).
    label : int
        y.
    pool_features : array of shape (records, ...)
        The auxiliary dataset.
    pool_labels : array of shape (records,)
        Its labels.

    Returns
    -------
    int
        The place in the pool of the record whose gradient points furthest away from that of z.
        Records without a gradient are passed over, since they point nowhere.

    References
    ----------
    SUB, Algorithm 5.

    Examples
    --------
    >>> pool = np.array([[1.0, 2.0], [-1.0, 2.0], [-2.0, -1.0]])
    >>> head = torch.nn.Linear(2, 1, bias=False)
    >>> adversarial_natural(head, [2.0, 1.0], 1, pool_features=pool, pool_labels=[1, 1, 1])
    2
    """
    x, y = _record(features, label)
    pool, labels = _records("pool_features", pool_features, "pool_labels", pool_labels)
    if pool.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"pool_features must hold records of shape {tuple(x.shape[1:])}, as features have, "
            f"got {tuple(pool.shape[1:])}"
        )
    reference = _copied(model, x, "label", y)
    _check_labels(reference, pool[:1], "pool_labels", labels)
    x, y, pool, labels = _beside(reference, x, y, pool, labels)
    return int(_cosines(reference, x, y, pool, labels).argmin())


# --- scores --------------------------------------------------------------------------------------


def gradient_direction(gradients: ArrayLike) -> Floats:
    """Return the direction along which weights move where z' was trained on instead of z.

    The score of scenario S2 is the movement θ_t - θ_0 along it.

    Parameters
    ----------
    gradients : array of shape (2, parameters)
        The gradients g_z and g_z'.

    Returns
    -------
    ndarray of shape (parameters,)
        The difference g_z - g_z' over its length; for gradients of length C that are each other's
        negative this is g_z / C.

    References
    ----------
    SUB, Algorithm 1, line 20, and Section 3.2.1. Weights move against the gradient, so that the
    score printed there for this scenario is high for z', and those of the others are high for z.

    Examples
    --------
    >>> direction = gradient_direction(crafted_gradient([3.0, 0.5], clip=2.0))
    >>> start, after_canary = np.zeros(2), np.array([0.1, 0.4])  # a step against (0, -2)
    >>> print((after_canary - start) @ direction)
    0.4
    """
    difference = _difference(gradients)
    return difference / np.linalg.norm(difference)


def whitened_direction(
    gradients: ArrayLike,
    others: ArrayLike,
    *,
    sampling_rate: float,
    noise_multiplier: float,
    clip: float,
) -> Floats:
    r"""Return the direction along which z and z' are told apart best, not the paper's but ours.

    The batches of the other records move the weights at random too, mostly along directions that
    their gradients share. Along those the canary is hard to see, and Fisher's discriminant gives
    them little weight. It matters where the sampling rate is small.

    Parameters
    ----------
    gradients : array of shape (2, parameters)
        The clipped gradients g_z and g_z', at a model that is typical for the training.
    others : array of shape (records, parameters)
        The clipped gradients of the other records, at the same model.
    sampling_rate : float
        q, in (0, 1].
    noise_multiplier : float
        σ.
    clip : float
        C.

    Returns
    -------
    ndarray of shape (parameters,)
        Of length 1. The score is the movement θ_t - θ_0 along it, high for z'.

    Notes
    -----
    The direction is that of :math:`(\Sigma + \sigma^2 C^2 I)^{-1} (g_z - g_{z'})`, where
    :math:`\Sigma = q (1 - q) \sum_i g_i g_i^T` is the covariance of a sampled sum. With q = 1 it is
    `gradient_direction`. Gradients are taken to stay as they are: a canary that changes much
    during the training would want a direction a step.

    References
    ----------
    Fisher (1936), "The use of multiple measurements in taxonomic problems".

    Examples
    --------
    >>> others = np.array([[1.0, 0.0]] * 100)
    >>> whitened_direction(
    ...     [[1.0, 1.0], [-1.0, -1.0]], others, sampling_rate=0.5, noise_multiplier=1.0, clip=1.0
    ... ).round(3)
    array([0.038, 0.999])
    """
    difference = _difference(gradients)
    rows = _check.numbers("others", others, ndim=2)
    if rows.shape[1] != difference.size:
        raise ValueError(
            f"others must have {difference.size} columns, as gradients have, got shape {rows.shape}"
        )
    rate = _check.rate("sampling_rate", sampling_rate)
    noise = _check.positive("noise_multiplier", noise_multiplier) * _check.positive("clip", clip)
    scaled = rows * (np.sqrt(rate * (1.0 - rate)) / noise)
    if len(scaled) < difference.size:  # the smaller of the two systems, by Woodbury's identity
        inner = scaled @ scaled.T + np.eye(len(scaled))
        direction = difference - scaled.T @ np.linalg.solve(inner, scaled @ difference)
    else:
        direction = np.linalg.solve(scaled.T @ scaled + np.eye(difference.size), difference)
    result: Floats = direction / np.linalg.norm(direction)
    return result


def logit_score(said: ArrayLike, labels: ArrayLike, *, logits: int = 1) -> Floats:
    """Score models by how much more they say for z' than for z: scenarios S3 to S5.

    Parameters
    ----------
    said : array of shape (..., 2) or (..., 2, logits)
        What the models say of z and of z'; the first shape for one logit.
    labels : array of shape (2,)
        The labels y and y'.
    logits : int
        Logits of a record.

    Returns
    -------
    ndarray of shape (...)
        The logit of z' less that of z, each that of the record's own label. With one logit that is
        the logit itself for label 1, and its negative for label 0.

    References
    ----------
    SUB, Algorithm 1, line 20, which leaves open whose logit it is. It has to be that of the label:
    for a mislabelled canary the features are the same and every other choice gives 0. The sign is
    turned, so that the score is high for z'.

    Examples
    --------
    >>> mislabelled_says = [[1.5, 1.5], [-0.5, -0.5]]  # two models, z = (x, 1) and z' = (x, 0)
    >>> print(logit_score(mislabelled_says, [1, 0]))
    [-3.  1.]
    """
    count = _check.whole("logits", logits, least=1)
    values = _check.numbers("said", said)
    shape = (2,) if count == 1 else (2, count)
    if values.shape[values.ndim - len(shape) :] != shape:
        raise ValueError(
            f"said must end in axes of length {', '.join(map(str, shape))}, for two records"
            f"{'' if count == 1 else ' and their logits'}, got shape {values.shape}"
        )
    pair = _check.codes("labels", labels, tuple(range(max(count, 2))))
    if len(pair) != 2:
        raise ValueError(f"labels must be two, of z and of z', got {len(pair)}")
    if count == 1:
        own = values * np.where(pair == 1, 1.0, -1.0)
    else:
        own = np.stack((values[..., 0, pair[0]], values[..., 1, pair[1]]), axis=-1)
    result: Floats = own[..., 1] - own[..., 0]
    return result


def clipped_gradients(
    model: nn.Module, features: ArrayLike, labels: ArrayLike, *, clip: float
) -> Floats:
    """Return the clipped gradient of the loss of each record, as DP-SGD adds it up.

    Parameters
    ----------
    model : torch.nn.Module
        A model, such as a reference.
    features : array of shape (records, ...)
        Records, such as z and z'.
    labels : array of shape (records,)
        Their labels.
    clip : float
        The clipping norm C.

    Returns
    -------
    ndarray of shape (records, parameters)
        In the order of the model's ``parameters()``.

    References
    ----------
    SUB, eq. (1).

    Examples
    --------
    >>> head = torch.nn.Linear(2, 1, bias=False)
    >>> _ = torch.nn.init.zeros_(head.weight)
    >>> print(clipped_gradients(head, [[3.0, 4.0], [0.3, 0.4]], [1, 0], clip=1.0))
    [[-0.6  -0.8 ]
     [ 0.15  0.2 ]]
    """
    x, y = _records("features", features, "labels", labels)
    bound = _check.positive("clip", clip)
    reference = _copied(model, x[:1], "labels", y)
    x, y = _beside(reference, x, y)
    parts = [_clipped(_gradients(reference, *part), bound) for part in _parts(reference, x, y)]
    result: Floats = torch.cat(parts).cpu().numpy()
    return result


# --- gradients -----------------------------------------------------------------------------------


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each example, binary where there is one logit."""
    if logits.shape[-1] == 1:
        return F.softplus((1 - 2 * labels) * logits[..., 0])
    losses: Tensor = F.cross_entropy(logits, labels, reduction="none")
    return losses


def _gradients(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of each example, (examples, parameters)."""
    weights = {name: weight.detach() for name, weight in model.named_parameters()}

    def loss(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return _losses(torch.func.functional_call(model, weights, (x[None],)), y[None])[0]

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    return torch.cat([part.flatten(1) for part in each.values()], dim=1)


def _clipped(gradients: Tensor, clip: float) -> Tensor:
    norms = gradients.norm(dim=1, keepdim=True)
    scaled: Tensor = gradients * (clip / norms.clamp(min=clip))
    return scaled


def _batch_gradient(model: nn.Module, x: Tensor, y: Tensor, clip: float | None) -> Tensor:
    """Return the sum of the gradients of a batch, clipped one by one if there is a clip."""
    if clip is None:
        own = torch.autograd.grad(_losses(model(x), y).sum(), list(model.parameters()))
        return torch.cat([part.flatten() for part in own])
    total = torch.zeros(_size(model), dtype=x.dtype, device=x.device)
    for part in _parts(model, x, y):
        total += _clipped(_gradients(model, *part), clip).sum(dim=0)
    return total


def _put_gradient(parameters: list[nn.Parameter], gradient: Tensor) -> None:
    end = 0
    for weight in parameters:
        start, end = end, end + weight.numel()
        weight.grad = gradient[start:end].view_as(weight)


def _cosines(model: nn.Module, x: Tensor, y: Tensor, pool: Tensor, labels: Tensor) -> Floats:
    """Return the cosine of each record's gradient with that of z, infinite where it has none."""
    target = _gradients(model, x, y)[0]
    if not target.norm() > 0.0:
        raise ValueError("features must have a gradient on the model, got one of norm 0")
    found = []
    for part in _parts(model, pool, labels):
        gradients = _gradients(model, *part)
        norms = gradients.norm(dim=1)
        cosines = (gradients / norms[:, None]) @ target / target.norm()
        found.append(torch.where(norms > 0.0, cosines, torch.inf))
    result: Floats = torch.cat(found).cpu().numpy()
    if not np.isfinite(result).any():
        raise ValueError("pool_features must have a gradient on the model, got none that has one")
    return result


def _parts(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Divide examples so that the gradients of a part fit into memory."""
    rows = max(1, NUMBERS // _size(model))
    for start in range(0, len(x), rows):
        yield x[start : start + rows], y[start : start + rows]


def _size(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


# --- the border ----------------------------------------------------------------------------------


def _records(
    features_name: str, features: ArrayLike, labels_name: str, labels: ArrayLike
) -> tuple[Tensor, Tensor]:
    x = _check.numbers(features_name, features)
    if x.ndim < 2 or not len(x):
        raise ValueError(f"{features_name} must hold a row a record, got shape {x.shape}")
    y = _check.counts(labels_name, labels)
    if y.ndim != 1:
        raise ValueError(f"{labels_name} must have 1 dimension, got shape {y.shape}")
    _check.same_length(**{features_name: x, labels_name: y})
    return torch.from_numpy(x.copy()), torch.from_numpy(y)


def _record(features: ArrayLike, label: int) -> tuple[Tensor, Tensor]:
    x = _check.numbers("features", features)
    if not x.ndim:
        raise ValueError(f"features must be those of one record, got {x}")
    return torch.from_numpy(x[None].copy()), torch.tensor([_check.whole("label", label)])


def _copied(model: nn.Module, x: Tensor, labels_name: str, labels: Tensor) -> nn.Module:
    """Return a copy of the model in double precision, after a look at whether it fits the data.

    In single precision a confident model's gradients are rounded to 0.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch module, got {model!r}")
    copied = copy.deepcopy(model).double().eval()
    for weight in copied.parameters():
        weight.requires_grad_()
    _check_labels(copied, x[:1], labels_name, labels)
    return copied


def _beside(model: nn.Module, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors on the device where a model's weights are, if it has any."""
    device = next(model.parameters(), tensors[0]).device
    return tuple(tensor.to(device) for tensor in tensors)


def _check_labels(model: nn.Module, x: Tensor, labels_name: str, labels: Tensor) -> None:
    with torch.no_grad():
        logits = model(*_beside(model, x))
    if logits.ndim != 2:
        raise ValueError(
            f"model must give each example its logits, got shape {tuple(logits.shape)} for one"
        )
    _check.codes(labels_name, labels.numpy(), tuple(range(max(logits.shape[-1], 2))))


def _difference(gradients: ArrayLike) -> Floats:
    pair = _check.numbers("gradients", gradients, ndim=2)
    if len(pair) != 2:
        raise ValueError(f"gradients must have two rows, of z and of z', got shape {pair.shape}")
    difference: Floats = pair[0] - pair[1]
    if not difference.any():
        raise ValueError("gradients must differ from each other, got two that are the same")
    return difference
