"""The border of models: what every function that trains or asks networks checks once."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Ints
from auditkit.models.stacked import fresh


def network_output(network: Callable[[], nn.Module], pool: Tensor) -> torch.Size:
    """Return the shape of what the network makes of one example, if it can be trained here."""
    layer = fresh(network) if callable(network) and not isinstance(network, nn.Module) else None
    if not isinstance(layer, nn.Module):
        raise TypeError(
            f"network must be a function that makes a torch module, got {network!r:.60}"
        )
    moody = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase)
    if any(isinstance(inner, moody) for inner in layer.modules()):
        raise ValueError(
            "network must have no dropout and no running statistics, got "
            f"{next(inner for inner in layer.modules() if isinstance(inner, moody))}; "
            "GroupNorm normalises without them"
        )
    try:
        with torch.no_grad():
            shape: torch.Size = layer(pool[:1]).shape
    except (RuntimeError, IndexError) as error:
        raise ValueError(
            f"inputs must be what network takes, got shape {tuple(pool.shape)} of {pool.dtype}: "
            f"{str(error).splitlines()[0]}"
        ) from None
    if len(shape) < 2 or shape[-1] < 2:
        raise ValueError(f"network must give a logit for each of 2 classes or more, got {shape}")
    return shape


def device(name: str, value: str | torch.device) -> torch.device:
    """Return where tensors are to be, if numbers can be put there and read again."""
    try:
        found = torch.device(value)
        torch.zeros((), device=found).item()
    except (RuntimeError, AssertionError, ImportError, TypeError):
        kind, count = torch.accelerator.current_accelerator(), torch.accelerator.device_count()
        others = [f"{kind}:{number}" for number in range(count)]
        listed = ", ".join(map(repr, ["cpu", *others]))
        raise ValueError(f"{name} must be one of {listed}, got {value!r}") from None
    return found


def finite(weights: Iterable[Tensor], first: int = 0) -> None:
    """Check that the weights of all models stayed finite; `first` is the number of the first."""
    lost = torch.stack([~weight.isfinite().flatten(1).all(1) for weight in weights]).any(0)
    if lost.any():
        raise FloatingPointError(
            f"{int(lost.sum())} of {len(lost)} models diverged, the first is number "
            f"{first + int(lost.nonzero()[0])}: take a smaller learning_rate"
        )


def inputs(value: ArrayLike) -> Tensor:
    """Return examples as a tensor: whole numbers stay so, all others become float32."""
    array = np.asarray(value)
    if array.ndim < 2 or array.dtype.kind not in "iuf" or not array.size:
        raise ValueError(
            "inputs must be an array of numbers of shape (n, ...), at least one of them, "
            f"got shape {array.shape} of {array.dtype}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"inputs must hold finite numbers, got {array[~np.isfinite(array)][0]}")
    return torch.from_numpy(array.astype(np.float32 if array.dtype.kind == "f" else np.int64))


def targets(value: ArrayLike, examples: int, places: Sequence[int]) -> Tensor:
    """Return labels as a tensor: classes as whole numbers, soft labels as floats."""
    array = _check.numbers("labels", value)
    if array.ndim <= len(places):
        return labels(array, examples, places)
    if array.shape != (examples, *places):
        raise ValueError(
            f"labels must have shape {(examples, *places[:-1])}, or {(examples, *places)} if they "
            f"are soft, got {array.shape}"
        )
    return torch.from_numpy(_check.distributions("labels", array).astype(np.float32))


def labels(value: ArrayLike, examples: int, places: Sequence[int]) -> Tensor:
    """Return labels as a tensor; the last of `places` is the number of classes."""
    *places, classes = places
    array = _check.counts("labels", value)
    if array.shape != (examples, *places):
        raise ValueError(f"labels must have shape {(examples, *places)}, got {array.shape}")
    if array.size and array.max() >= classes:
        raise ValueError(f"labels must lie in 0 to {classes - 1}, got {array.max()}")
    return torch.from_numpy(array)


def seeds(value: ArrayLike) -> list[int]:
    """Return a seed for each model."""
    found = _check.counts("seeds", list(value) if isinstance(value, range) else value)
    if found.ndim != 1 or not len(found):
        raise ValueError(f"seeds must be a list of at least one seed, got shape {found.shape}")
    return [int(seed) for seed in found]


def indices(value: ArrayLike | None, models: int, examples: int) -> Ints:
    """Return which examples each model sees; all of them if nothing is said."""
    if value is None:
        return np.broadcast_to(np.arange(examples), (models, examples))
    rows = _check.counts("indices", value)
    if rows.ndim != 2 or len(rows) != models or not rows.size:
        raise ValueError(
            f"indices must have one row for each of {models} seeds, got shape {rows.shape}"
        )
    if rows.max() >= examples:
        raise ValueError(f"indices must lie in 0 to {examples - 1}, got {rows.max()}")
    return rows


def momentum(value: float, optimizer: str) -> float:
    """Return the momentum of SGD."""
    number = _check.scalar("momentum", value, least=0.0)
    if number >= 1.0 or (number and optimizer == "adam"):
        raise ValueError(f'momentum must lie in [0, 1), and be 0 with "adam", got {value!r}')
    return number
