"""Networks under DP-SGD: gradients of every example of every model, clipped and summed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from auditkit._types import Ints
from auditkit.mechanisms.dp_descent import WORK, Bytes, Draws, Learners, Recipe
from auditkit.models.descent import slope
from auditkit.models.stacked import first_weights, forward, room, slices
from auditkit.models.training import ROWS

ByName: TypeAlias = dict[str, Tensor]
# weights, examples, labels, the factor of each example and C give the sum of each weight
ClippedSum: TypeAlias = Callable[[ByName, Tensor, Tensor, Tensor, float], list[Tensor]]

_ELEMENTWISE = (nn.ReLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.SiLU, nn.Identity)


@dataclass(frozen=True)
class NetworkTask:
    """A network without dropout and running statistics, and its records, the canary's two last."""

    inputs: Tensor
    labels: Tensor
    gradients: Tensor | None
    network: Callable[[], nn.Module]
    layer: nn.Module  # one of those that it makes
    basis: None = None

    @property
    def others(self) -> int:
        """Records beside the canary's."""
        return len(self.inputs) - (2 if self.gradients is None else 0)

    @property
    def parameters(self) -> int:
        """Weights of a model."""
        return sum(weight.numel() for weight in self.layer.parameters())

    def at_once(self, batch: float) -> int:
        """Return how many models to train side by side, with batches of this size on average."""
        own = 5 * self.parameters
        rows = min(len(self.inputs), self.rows(), math.ceil(2.0 * batch))
        return max(1, room(WORK, self.inputs.device) // (4 * (own + rows * self._an_example())))

    def rows(self) -> int:
        """Return how many examples of a model to look at in one go."""
        return max(1, room(WORK, self.inputs.device) // (8 * self._an_example()))

    def first(self, draws: Draws) -> Tensor:
        """Return the weights that the network has by each model's own seed."""
        drawn = first_weights(self.network, draws.seeds(), None)
        return torch.cat([weight.flatten(1) for weight in drawn.values()], 1)

    def begin(self, start: Tensor, bits: Ints, recipe: Recipe) -> Learners:
        """Return models that start from weights of shape (models, parameters)."""
        return Networks(self, start.clone(), bits, recipe)

    def _an_example(self) -> int:
        """Return how many numbers an example takes."""
        made = [self.inputs[0].numel()] if len(self.inputs) else []

        def count(_layer: nn.Module, _given: Any, result: Tensor) -> None:
            made.append(2 * result.numel())

        hooks = [inner.register_forward_hook(count) for inner in self.layer.modules()]
        with torch.no_grad():
            self.layer(self.inputs[:1])
        for hook in hooks:
            hook.remove()
        by_rank = isinstance(clipped_sum(self.layer), _ByRank)
        return sum(made) + (0 if by_rank else 2 * self.parameters)


class Networks:
    """Networks in training."""

    def __init__(self, task: NetworkTask, start: Tensor, bits: Ints, recipe: Recipe) -> None:
        self.weights = start
        self._task, self._bits, self._recipe, self._rows = task, bits, recipe, task.rows()
        self._views = by_name(start, task.layer)
        self._mean = torch.empty_like(start)
        self._places = list(by_name(self._mean, task.layer).values())
        self._clipped_sum = clipped_sum(task.layer)

    def clipped_mean(self, sampled: Bytes | None) -> Tensor:
        """Return sums of clipped gradients over |B|, (models, parameters)."""
        task, recipe = self._task, self._recipe
        if sampled is None:
            present = np.ones((len(self.weights), task.others + 1), dtype=np.uint8)
        else:
            present = sampled
        self._mean.zero_()
        rows, there = self._batches(present)
        for x, y, share in zip(
            *(torch.split(part, self._rows, 1) for part in (rows, rows, there / recipe.batch)),
            strict=True,
        ):
            sums = self._clipped_sum(
                self._views, task.inputs[x], task.labels[y], share, recipe.clip
            )
            for place, found in zip(self._places, sums, strict=True):
                place.add_(found)
        return self._mean

    def whole(self, draws: Draws, step: int, deviation: float) -> Tensor:  # noqa: ARG002
        """Return all weights, (models, parameters)."""
        return self.weights.clone()

    def _batches(self, present: Bytes) -> tuple[Tensor, Tensor]:
        """Return the records in each model's batch, and 0 where a shorter one was filled up."""
        others = self._task.others
        if self._task.gradients is not None:  # the canary has no record
            present = present[:, :-1]
        who, which = np.nonzero(present)
        which = np.where(which == others, others + self._bits[who], which)
        counts = np.bincount(who, minlength=len(present))
        place = np.arange(len(who)) - (np.cumsum(counts) - counts)[who]
        rows = np.zeros((len(present), int(counts.max())), dtype=np.int64)
        there = np.zeros(rows.shape, dtype=np.float32)
        rows[who, place], there[who, place] = which, 1.0
        device = self.weights.device
        return torch.from_numpy(rows).to(device), torch.from_numpy(there).to(device)


def by_name(flat: Tensor, layer: nn.Module) -> ByName:
    """Return views of weights of shape (models, parameters), by their names in the network."""
    shapes = {name: weight.shape for name, weight in layer.named_parameters()}
    parts = torch.split(flat, [math.prod(shape) for shape in shapes.values()], 1)
    named = zip(shapes.items(), parts, strict=True)
    return {name: part.view(len(flat), *shape) for (name, shape), part in named}


def said(layer: nn.Module, weights: Tensor, x: Tensor) -> NDArray[np.float32]:
    """Return what networks say of examples, of shape (models, examples, ..., logits)."""
    found = []
    with torch.no_grad():
        for part in slices(len(weights), max(1, room(ROWS, x.device) // len(x))):
            own = by_name(weights[part], layer)
            found.append(forward(layer, own, x.expand(len(weights[part]), *x.shape)))
    result: NDArray[np.float32] = torch.cat(found).cpu().numpy()
    return result


def clipped_sum(layer: nn.Module) -> ClippedSum:
    """Return the function that clips and sums a network's gradients."""
    layers = _connected(layer, "")
    return _ByExample(layer) if layers is None else _ByRank(layers)


def clipped_by_rank(layer: nn.Module) -> ClippedSum | None:
    """Return the function that clips and sums without gradients of examples, if there is one."""
    layers = _connected(layer, "")
    return None if layers is None else _ByRank(layers)


def _connected(layer: nn.Module, at: str) -> list[tuple[str, nn.Module]] | None:
    """Return the layers in order if all are fully connected or act on single numbers."""
    if type(layer) is nn.Sequential:
        found: list[tuple[str, nn.Module]] = []
        for name, child in layer._modules.items():
            assert child is not None
            inner = _connected(child, f"{at}{name}.")
            if inner is None:
                return None
            found += inner
        return found
    if isinstance(layer, nn.Flatten):
        simple = (layer.start_dim, layer.end_dim) == (1, -1)
    else:
        simple = type(layer) in (nn.Linear, *_ELEMENTWISE) and not getattr(layer, "inplace", False)
    return [(at, layer)] if simple else None


class _ByRank:
    """Clipping for fully connected layers.

    An example's gradient for such a layer is an outer product of what goes in and of the slope at
    what comes out. So norms need no gradient of an example, and sums are products of matrices.
    """

    def __init__(self, layers: list[tuple[str, nn.Module]]) -> None:
        self._layers = layers

    def __call__(self, weights: ByName, x: Tensor, y: Tensor, share: Tensor, clip: float) -> Any:
        given: list[Tensor] = []
        made: list[Tensor] = []
        biased = []
        for at, layer in self._layers:
            if isinstance(layer, nn.Flatten):
                x = x.flatten(2)
            elif isinstance(layer, nn.Linear):
                given.append(x.detach())
                biased.append(layer.bias is not None)
                x = torch.bmm(x, weights[f"{at}weight"].mT)
                if biased[-1]:
                    x = x + weights[f"{at}bias"][:, None]
                made.append(x if made else x.requires_grad_())
                x = made[-1]
            else:
                x = layer(x)
        slopes = torch.autograd.grad(x, made, slope(x.detach(), y, torch.ones_like(share)))
        layers = list(zip(given, slopes, biased, strict=True))
        squares = sum(d.square().sum(2) * (a.square().sum(2) + bias) for a, d, bias in layers)
        assert isinstance(squares, Tensor)
        factor = (clip / squares.sqrt()).clamp_(max=1.0).mul_(share)[..., None]
        sums = []
        for a, d, bias in layers:
            cut = d * factor
            sums += [torch.bmm(cut.mT, a)] + ([cut.sum(1)] if bias else [])
        return sums


class _ByExample:
    """Clipping for any network: a gradient for each model and example, by `torch.func`."""

    def __init__(self, layer: nn.Module) -> None:
        def loss(weights: ByName, x: Tensor, y: Tensor) -> Tensor:
            logits = torch.func.functional_call(layer, weights, (x[None],))
            return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

        by_example = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
        self._gradients = torch.func.vmap(by_example)

    def __call__(self, weights: ByName, x: Tensor, y: Tensor, share: Tensor, clip: float) -> Any:
        with sdpa_kernel(SDPBackend.MATH):  # the other ways of attention know nothing of vmap
            found = self._gradients(weights, x, y)
        gradients = [found[name].flatten(2) for name in weights]
        squares = torch.stack([own.square().sum(2) for own in gradients]).sum(0)
        factor = (clip / squares.sqrt()).clamp_(max=1.0).mul_(share)[:, None]
        sums = [torch.bmm(factor, own) for own in gradients]
        return [one.view(place.shape) for one, place in zip(sums, weights.values(), strict=True)]
