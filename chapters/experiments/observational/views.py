"""Weakly and strongly changed copies of images, as FixMatch compares them.

A weak view is what most training on small images uses: mirrored or not, and moved by a few pixels.
A strong view is a weak one after two operations drawn from a list, with a square left out. Both
look at the image alone, never at its label.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from auditkit import _check
from auditkit._types import Randomness

Images = NDArray[np.uint8]
SHIFT = 8  # a weak view moves by an eighth of the side at most
OPERATIONS = 2  # in a strong view
BLOCK = 500  # images that are changed together


def weak_views(images: ArrayLike, *, rng: Randomness) -> Images:
    """Mirror every image or not, and move it by up to an eighth of its side.

    What moves in from outside is the mirror image of what lies at the border.

    Parameters
    ----------
    images : array of shape (n, side, side, 3), uint8
        Square images of 8 pixels a side or more.
    rng : Generator or int
        Source of randomness.

    Returns
    -------
    ndarray of the same shape, uint8

    References
    ----------
    Sohn et al., *FixMatch*, 2020, Section 2.3.

    Examples
    --------
    >>> image = np.arange(192, dtype=np.uint8).reshape(1, 8, 8, 3)
    >>> weak_views(image, rng=0).shape
    (1, 8, 8, 3)
    """
    return _in_blocks(_weak, images, rng)


def strong_views(images: ArrayLike, *, rng: Randomness) -> Images:
    """Change every image by a weak view, two operations of fourteen, and a hole.

    Operations and their strengths are drawn anew for each image: rotations, shears and shifts;
    changes of brightness, contrast, colour and sharpness; stretched or even histograms; fewer
    levels; bright pixels turned dark; or none. The hole is a grey square of up to half the side.

    Parameters
    ----------
    images : array of shape (n, side, side, 3), uint8
        Square images of 8 pixels a side or more.
    rng : Generator or int
        Source of randomness.

    Returns
    -------
    ndarray of the same shape, uint8

    References
    ----------
    Sohn et al., *FixMatch*, 2020, Section 2.3 and Table 12, whose ranges these are: RandAugment of
    Cubuk et al., 2020, with random strengths, then Cutout of DeVries and Taylor, 2017.

    Examples
    --------
    >>> image = np.arange(192, dtype=np.uint8).reshape(1, 8, 8, 3)
    >>> strong_views(image, rng=0).shape
    (1, 8, 8, 3)
    """
    return _in_blocks(_strong, images, rng)


def _in_blocks(
    change: Callable[[Tensor, np.random.Generator], Tensor], images: ArrayLike, rng: Randomness
) -> Images:
    array, generator = np.asarray(images), _check.generator("rng", rng)
    square = array.ndim == 4 and array.shape[3] == 3 and array.shape[1] == array.shape[2] >= SHIFT
    if array.dtype != np.uint8 or not square:
        raise ValueError(
            f"images must have shape (n, side, side, 3), {SHIFT} pixels a side or more, and dtype "
            f"uint8, got shape {array.shape} of {array.dtype}"
        )
    views = np.empty_like(array)
    for first in range(0, len(array), BLOCK):
        block = torch.from_numpy(array[first : first + BLOCK].astype(np.float32) / 255.0)
        x = change(block.permute(0, 3, 1, 2), generator)
        views[first : first + BLOCK] = (x * 255.0).round().byte().permute(0, 2, 3, 1).numpy()
    return views


def _strong(x: Tensor, generator: np.random.Generator) -> Tensor:
    x = _weak(x, generator)
    for _ in range(OPERATIONS):
        drawn = generator.integers(len(_ALL), size=len(x))
        strength = torch.from_numpy(generator.random(len(x), dtype=np.float32))
        for place, operation in enumerate(_ALL):
            rows = torch.from_numpy(np.flatnonzero(drawn == place))
            if len(rows):
                x[rows] = operation(x[rows], strength[rows])
    return _cut_out(x, generator)


def _weak(x: Tensor, generator: np.random.Generator) -> Tensor:
    n, side = len(x), x.shape[-1]
    margin = side // SHIFT
    wide = F.pad(x, (margin,) * 4, mode="reflect")
    corners = torch.from_numpy(generator.integers(2 * margin + 1, size=(n, 2, 1)))
    down, right = (corners + torch.arange(side)).unbind(1)
    mirrored = torch.from_numpy(generator.integers(2, size=(n, 1)).astype(bool))
    right = torch.where(mirrored, right.flip(1), right)
    at = torch.arange(n)[:, None, None], slice(None), down[:, :, None], right[:, None, :]
    return wide[at].permute(0, 3, 1, 2).contiguous()


def _cut_out(x: Tensor, generator: np.random.Generator) -> Tensor:
    n, side = len(x), x.shape[-1]
    size = torch.from_numpy(generator.uniform(0.0, 0.5 * side, (n, 1, 1)))
    middle = torch.from_numpy(generator.uniform(0.0, side, (n, 2, 1)))
    inside = (torch.arange(side) + 0.5 - middle).abs() < size / 2
    hole = inside[:, 0, :, None] & inside[:, 1, None, :]
    return x.masked_fill(hole[:, None], 0.5)


# Each operation takes images and a strength in [0, 1) for each of them.
Operation = Callable[[Tensor, Tensor], Tensor]


def _column(strength: Tensor) -> Tensor:
    return strength.view(-1, 1, 1, 1)


def _identity(x: Tensor, _strength: Tensor) -> Tensor:
    return x


def _towards(other: Callable[[Tensor], Tensor], x: Tensor, strength: Tensor) -> Tensor:
    """Mix images with what `other` makes of them, which is left with 5% to 95%."""
    return torch.lerp(x, other(x), 0.05 + 0.9 * _column(strength))


def _grey(x: Tensor) -> Tensor:
    red, green, blue = x.unbind(1)
    return (0.299 * red + 0.587 * green + 0.114 * blue)[:, None].expand_as(x)


def _mean_grey(x: Tensor) -> Tensor:
    return _grey(x).mean((1, 2, 3), keepdim=True).expand_as(x)


def _smooth(x: Tensor) -> Tensor:
    kernel = torch.tensor([[1.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]]) / 13.0
    wide = F.pad(x, (1, 1, 1, 1), mode="replicate")
    return F.conv2d(wide, kernel.expand(3, 1, 3, 3), groups=3)


def _stretch(x: Tensor, _strength: Tensor) -> Tensor:
    """Let every channel go from 0 to 1, unless it is of one value."""
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    return torch.where(high > low, (x - low) / (high - low).clamp(min=1e-6), x)


def _equalise(x: Tensor, _strength: Tensor) -> Tensor:
    """Give each pixel the share of the pixels of its channel that are darker."""
    flat = x.flatten(2).contiguous()
    darker = torch.searchsorted(flat.sort(2).values, flat)
    most = darker.amax(2, keepdim=True)
    return torch.where(most > 0, darker / most.clamp(min=1), flat).view_as(x)


def _posterise(x: Tensor, strength: Tensor) -> Tensor:
    """Keep 4 to 8 bits of each number."""
    step = 2.0 ** (_column(strength) * 5).floor()
    return ((x * 255.0).round() / step).floor() * step / 255.0


def _solarise(x: Tensor, strength: Tensor) -> Tensor:
    """Turn all that is brighter than a threshold into its negative."""
    return torch.where(x < _column(strength), x, 1.0 - x)


def _moved(matrix: Callable[[Tensor], list[Tensor]], x: Tensor, strength: Tensor) -> Tensor:
    """Apply an affine map, which strengths of 0 and 1 turn in opposite directions."""
    rows = torch.stack(matrix(2.0 * strength - 1.0), 1).view(-1, 2, 3)
    grid = F.affine_grid(rows, list(x.shape), align_corners=False)
    # around grey, so that what moves in from outside is neither black nor white
    return F.grid_sample(x - 0.5, grid, align_corners=False) + 0.5


def _affine(name: str) -> Operation:
    def matrix(s: Tensor) -> list[Tensor]:
        one, none = torch.ones_like(s), torch.zeros_like(s)
        angle = s * (np.pi / 6)
        rows: dict[str, list[Tensor]] = {
            "rotate": [angle.cos(), -angle.sin(), none, angle.sin(), angle.cos(), none],
            "shear x": [one, 0.3 * s, none, none, one, none],
            "shear y": [one, none, none, 0.3 * s, one, none],
            "shift x": [one, none, 0.6 * s, none, one, none],  # the side is 2 long
            "shift y": [one, none, none, none, one, 0.6 * s],
        }
        return rows[name]

    return partial(_moved, matrix)


_ALL: tuple[Operation, ...] = (
    _identity,
    partial(_towards, torch.zeros_like),  # brightness
    partial(_towards, _mean_grey),  # contrast
    partial(_towards, _grey),  # colour
    partial(_towards, _smooth),  # sharpness
    _stretch,
    _equalise,
    _posterise,
    _solarise,
    *map(_affine, ("rotate", "shear x", "shear y", "shift x", "shift y")),
)
