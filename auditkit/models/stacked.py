"""One network with many sets of weights at once: the model axis comes first everywhere.

A weight of shape s becomes one of shape (models, *s), a batch of shape (batch, *t) one of shape
(models, batch, *t). Batched matrix products over the model axis are several times faster than
`torch.vmap`, because they keep weights and gradients in the layout in which they are stored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from auditkit.models.networks import CausalAttention, Residual, Tokens

FULLER = 16  # times as much as a CPU does a GPU work on at once

Weights = Mapping[str, Tensor]


def forward(layer: nn.Module, weights: Weights, x: Tensor, at: str = "") -> Tensor:
    """Return what each model makes of its own batch; `at` is the name of the layer, with a dot.

    Layers without a rule of their own are left to `torch.vmap`.
    """
    rule = _RULES.get(type(layer))
    if rule is not None:
        return rule(layer, weights, x, at)
    own = {name: weights[at + name] for name, _ in layer.named_parameters()}

    def one(own: dict[str, Tensor], x: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(layer, own, (x,))
        return result

    result: Tensor = torch.func.vmap(one)(own, x)
    return result


def first_weights(
    network: Callable[[], nn.Module], seeds: Sequence[int], initial: Mapping[str, Tensor] | None
) -> dict[str, Tensor]:
    """Return the weights that each model starts from, stacked."""
    weights = list(fresh(network).named_parameters(remove_duplicate=False))
    shapes = {name: weight.shape for name, weight in weights}
    if len({id(weight) for _, weight in weights}) < len(weights):
        raise ValueError("network must not use one weight in two places, got " + ", ".join(shapes))
    frozen = [name for name, weight in weights if not weight.requires_grad]
    if frozen:
        raise ValueError(f"network must have weights that are all trained, got {frozen} frozen")
    stacked = {name: torch.empty(len(seeds), *shape) for name, shape in shapes.items()}
    if initial is None:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for place, seed in enumerate(seeds):
                torch.default_generator.manual_seed(seed)  # torch.manual_seed without its detours
                for name, weight in network().named_parameters():
                    stacked[name][place] = weight
        return stacked
    if not isinstance(initial, Mapping) or set(initial) != set(shapes):
        raise ValueError(f"initial must hold the weights {', '.join(shapes)}, got {initial!r:.60}")
    for name, stack in stacked.items():
        given = torch.as_tensor(initial[name]).detach()
        if given.shape not in (shapes[name], stack.shape):
            raise ValueError(
                f"initial[{name!r}] must have shape {tuple(shapes[name])} or "
                f"{tuple(stack.shape)}, got {tuple(given.shape)}"
            )
        stack.copy_(given)
    return stacked


def fresh(network: Callable[[], nn.Module]) -> nn.Module:
    """Return a fresh network, leaving torch's random stream as it was."""
    with torch.random.fork_rng(devices=[]):
        return network()


def room(cached: int, device: torch.device) -> int:
    """Return how much to work on at once: a CPU is quickest in its cache, a GPU when it is full."""
    return cached if device.type == "cpu" else FULLER * cached


def slices(length: int, step: int) -> Iterator[slice]:
    """Cut 0 to `length` into parts of `step`, the last one shorter."""
    return (slice(first, min(first + step, length)) for first in range(0, length, step))


def _sequential(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:
    for name, inner in layer._modules.items():  # named_children leaves out what is used twice
        assert inner is not None
        x = forward(inner, weights, x, f"{at}{name}.")
    return x


def _residual(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:
    assert isinstance(layer, Residual)
    return x + forward(layer.inner, weights, x, f"{at}inner.")


def _elementwise(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:  # noqa: ARG001
    result: Tensor = layer(x)
    return result


def _flatten(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:  # noqa: ARG001
    result: Tensor = layer(x.flatten(0, 1))
    return result.view(*x.shape[:2], *result.shape[1:])


def _linear(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:  # noqa: ARG001
    rows = x.reshape(x.shape[0], -1, x.shape[-1])
    result: Tensor = _Linear.apply(  # type: ignore[no-untyped-call]
        rows, weights[f"{at}weight"], weights.get(f"{at}bias")
    )
    return result.view(*x.shape[:-1], -1)


def _convolution(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:
    # A convolution keeps a core busy by itself: grouped, unfolded or under vmap it is slower.
    own = {name: weights[f"{at}{name}"] for name, _ in layer.named_parameters()}
    if len(x) == 1:  # without a copy between layers, a pixel's channels can stay side by side
        alone = {name: weight.squeeze(0) for name, weight in own.items()}
        image = x.squeeze(0).contiguous(memory_format=torch.channels_last)
        result: Tensor = torch.func.functional_call(layer, alone, (image,))
        return result.unsqueeze(0)
    parts = {name: weight.unbind() for name, weight in own.items()}
    each = (dict(zip(parts, one, strict=True)) for one in zip(*parts.values(), strict=True))
    calls = [torch.func.functional_call(layer, w, (one,)) for w, one in zip(each, x, strict=True)]
    return torch.stack(calls)


def _average(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:
    assert isinstance(layer, nn.AvgPool2d)
    by_two = layer.kernel_size in (2, (2, 2)) and layer.stride in (2, (2, 2))
    plain = not layer.padding and layer.divisor_override is None
    if by_two and plain and x.shape[-2] % 2 == 0 and x.shape[-1] % 2 == 0:
        result: Tensor = _Halve.apply(x)  # type: ignore[no-untyped-call]
        return result
    return _flatten(layer, weights, x, at)


def _layer_norm(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:
    assert isinstance(layer, nn.LayerNorm)
    normed = F.layer_norm(x, layer.normalized_shape, eps=layer.eps)
    for name, combine in (("weight", torch.mul), ("bias", torch.add)):
        if f"{at}{name}" in weights:
            own = weights[f"{at}{name}"]
            normed = combine(
                normed, own.view(len(own), *(1,) * (x.ndim - own.ndim), *own.shape[1:])
            )
    return normed


def _attention(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:
    assert isinstance(layer, CausalAttention)
    mixed = layer.attend(_linear(layer.project, weights, x, f"{at}project."))
    return _linear(layer.combine, weights, mixed, f"{at}combine.")


def _tokens(layer: nn.Module, weights: Weights, x: Tensor, at: str) -> Tensor:  # noqa: ARG001
    token, place = weights[f"{at}token"], weights[f"{at}place"]
    models, vocabulary, _ = token.shape
    if x.min() < 0 or x.max() >= vocabulary:  # the neighbour's embeddings would be read
        raise ValueError(f"tokens must lie in 0 to {vocabulary - 1}, got {x.min()} to {x.max()}")
    first = torch.arange(0, models * vocabulary, vocabulary, device=x.device)
    found = F.embedding(x + first.view(-1, *(1,) * (x.ndim - 1)), token.flatten(0, 1))
    return found + place[:, None, : x.shape[-1]]


class _Linear(torch.autograd.Function):
    """A batch of affine maps, with gradients in the layout of the weights.

    Left to itself, autograd multiplies the other way round and hands back a transposed view, which
    makes this product and the optimiser's step twice as slow.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        if bias is None:
            return torch.bmm(x, weight.mT)
        return torch.baddbmm(bias[:, None], x, weight.mT)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        (gradient,) = gradients
        x, weight = ctx.saved_tensors
        return (
            torch.bmm(gradient, weight) if ctx.needs_input_grad[0] else None,
            torch.bmm(gradient.mT, x),
            gradient.sum(1) if ctx.needs_input_grad[2] else None,
        )


class _Halve(torch.autograd.Function):
    """Means over squares of 2 by 2, in a quarter of the time that torch's pooling takes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004
        upper, lower = x[..., ::2, :], x[..., 1::2, :]
        # torch's order, so that no unit nearby changes sides for a rounding error
        return (upper[..., ::2] + upper[..., 1::2] + lower[..., ::2] + lower[..., 1::2]) * 0.25

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ARG004
        (gradient,) = gradients
        *others, high, wide = gradient.shape
        result = gradient.new_empty(*others, 2 * high, 2 * wide)
        result[..., ::2, ::2] = gradient * 0.25
        result[..., ::2, 1::2] = result[..., ::2, ::2]
        result[..., 1::2, :] = result[..., ::2, :]
        return result


Rule = Callable[[nn.Module, Weights, Tensor, str], Tensor]
_RULES: dict[type[nn.Module], Rule] = {
    nn.Sequential: _sequential,
    Residual: _residual,
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.LayerNorm: _layer_norm,
    CausalAttention: _attention,
    Tokens: _tokens,
    nn.AvgPool2d: _average,
    nn.MaxPool2d: _flatten,
    nn.Flatten: _flatten,
    **dict.fromkeys((nn.ReLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.SiLU, nn.Identity), _elementwise),
}
