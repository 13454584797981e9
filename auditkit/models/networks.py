"""Small networks of the papers' experiments, as ordinary torch modules.

Each function makes a fresh network with weights drawn from torch's own stream, so that
``torch.manual_seed`` before the call decides them. `fit_many` trains any of them but `resnet8` many
at once, and a plain loop trains the same module one by one.
"""

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor, nn

from auditkit import _check


def linear(inputs: int, classes: int) -> nn.Sequential:
    """Make a linear classifier, which is logistic regression.

    Parameters
    ----------
    inputs : int
        Numbers in an example, whatever its shape.
    classes : int
        Classes, at least 2.

    Returns
    -------
    torch.nn.Sequential

    References
    ----------
    SUB, Section 5: a head on frozen features.

    Examples
    --------
    >>> linear(784, 10)
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=784, out_features=10, bias=True)
    )
    """
    return mlp(inputs, classes, hidden=())


def mlp(inputs: int, classes: int, *, hidden: Sequence[int] = (32,)) -> nn.Sequential:
    """Make a network of fully connected layers with rectifiers between them.

    Parameters
    ----------
    inputs : int
        Numbers in an example, whatever its shape.
    classes : int
        Classes, at least 2.
    hidden : sequence of int
        Width of each hidden layer.

    Returns
    -------
    torch.nn.Sequential

    References
    ----------
    Rumelhart, Hinton and Williams, *Learning representations by back-propagating errors*, 1986.

    Examples
    --------
    >>> network = mlp(784, 10, hidden=(128, 64))
    >>> sum(weights.numel() for weights in network.parameters())
    109386
    """
    widths = [_check.whole("inputs", inputs, least=1)]
    widths += [_check.whole("hidden", width, least=1) for width in hidden] + [
        _check.whole("classes", classes, least=2)
    ]
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet5(classes: int = 10, *, channels: int = 1) -> nn.Sequential:
    """Make LeNet-5 for images of 28 by 28, with rectifiers and max pooling.

    Parameters
    ----------
    classes : int
        Classes, at least 2.
    channels : int
        Channels of an image, of shape (channels, 28, 28).

    Returns
    -------
    torch.nn.Sequential

    References
    ----------
    LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document recognition*,
    1998, Section II.B. Its squashing functions, trained subsampling and output of radial bases are
    replaced by what has since become usual.

    Examples
    --------
    >>> sum(weights.numel() for weights in lenet5().parameters())
    61706
    """
    return nn.Sequential(
        nn.Conv2d(_check.whole("channels", channels, least=1), 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        *mlp(400, classes, hidden=(120, 84)),
    )


def small_cnn(classes: int = 10, *, channels: int = 1, side: int = 28) -> nn.Sequential:
    """Make a network of two convolutions for small images.

    Parameters
    ----------
    classes : int
        Classes, at least 2.
    channels : int
        Channels of an image, of shape (channels, side, side).
    side : int
        Width and height of an image, a multiple of 4.

    Returns
    -------
    torch.nn.Sequential

    References
    ----------
    Papernot, Thakurta, Song, Chien and Erlingsson, *Tempered sigmoid activations for deep learning
    with differential privacy*, 2021: a network of this size is usual for private training.

    Examples
    --------
    >>> sum(weights.numel() for weights in small_cnn().parameters())
    20490
    """
    if _check.whole("side", side, least=4) % 4:
        raise ValueError(f"side must be a multiple of 4, got {side!r}")
    return nn.Sequential(
        nn.Conv2d(_check.whole("channels", channels, least=1), 16, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        *linear(2 * side**2, classes),
    )


def resnet8(classes: int = 10, *, channels: int = 3) -> nn.Sequential:
    """Make a residual network of eight layers with weights, normalised within each example.

    Group normalisation takes the place of batch normalisation, which private training cannot have:
    there an example has a say in the gradients of others.

    Parameters
    ----------
    classes : int
        Classes, at least 2.
    channels : int
        Channels of an image, of shape (channels, height, width), of any size.

    Returns
    -------
    torch.nn.Sequential

    References
    ----------
    He, Zhang, Ren and Sun, *Deep residual learning for image recognition*, 2016, Section 4.2, with
    n = 1 and option B. Wu and He, *Group normalization*, 2018. De, Berrada, Hayes, Smith and Balle,
    *Unlocking high-accuracy differentially private image classification through scale*, 2022, for
    the exchange.

    Examples
    --------
    >>> sum(weights.numel() for weights in resnet8().parameters())
    77850
    """
    return nn.Sequential(
        nn.Conv2d(_check.whole("channels", channels, least=1), 16, 3, padding=1, bias=False),
        nn.GroupNorm(8, 16),
        nn.ReLU(),
        ResidualBlock(16, 16),
        ResidualBlock(16, 32, stride=2),
        ResidualBlock(32, 64, stride=2),
        nn.AdaptiveAvgPool2d(1),
        *linear(64, classes),
    )


def small_gpt(
    vocabulary: int, length: int, *, width: int = 64, heads: int = 4, blocks: int = 2
) -> nn.Sequential:
    """Make a small language model that reads from left to right.

    It takes token numbers of shape (..., length) and gives, at every place, the logits of the token
    that comes next. So the labels of a text are the text itself, one place further on.

    Parameters
    ----------
    vocabulary : int
        Tokens there are, at least 2.
    length : int
        Tokens in a text at most.
    width : int
        Numbers that stand for a token, a multiple of `heads`.
    heads : int
        Attention heads.
    blocks : int
        Blocks of attention and a fully connected layer.

    Returns
    -------
    torch.nn.Sequential

    References
    ----------
    Radford et al., *Language models are unsupervised multitask learners*, 2019, Section 2.3; here
    without dropout.

    Examples
    --------
    >>> small_gpt(100, 16)(torch.zeros(1, 16, dtype=torch.int64)).shape
    torch.Size([1, 16, 100])
    """
    if _check.whole("width", width, least=1) % _check.whole("heads", heads, least=1):
        raise ValueError(f"width must be a multiple of heads, got {width!r} and {heads!r}")
    layers: list[nn.Module] = [
        Tokens(_check.whole("vocabulary", vocabulary, least=2), length, width)
    ]
    for _ in range(_check.whole("blocks", blocks, least=1)):
        wide = [nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]
        layers += [
            Residual(nn.Sequential(nn.LayerNorm(width), CausalAttention(width, heads))),
            Residual(nn.Sequential(nn.LayerNorm(width), *wide)),
        ]
    return nn.Sequential(*layers, nn.LayerNorm(width), nn.Linear(width, vocabulary))


class ResidualBlock(nn.Module):
    """Two convolutions whose result is added to what they were given."""

    def __init__(self, before: int, after: int, *, stride: int = 1) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
            nn.GroupNorm(8, after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.GroupNorm(8, after),
        )
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified sum."""
        return F.relu(self.shortcut(x) + self.inner(x))


class Tokens(nn.Module):
    """What stands for each token, and what stands for its place."""

    def __init__(self, vocabulary: int, length: int, width: int) -> None:
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(vocabulary, width))
        self.place = nn.Parameter(
            0.02 * torch.randn(_check.whole("length", length, least=1), width)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the sum of both, of shape (..., length, width)."""
        return F.embedding(tokens, self.token) + self.place[: tokens.shape[-1]]


class Residual(nn.Module):
    """A layer whose result is added to what it was given."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum."""
        result: Tensor = x + self.inner(x)
        return result


class CausalAttention(nn.Module):
    """Attention of each place to itself and the places before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.combine = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return what each place has gathered."""
        result: Tensor = self.combine(self.attend(self.project(x)))
        return result

    def attend(self, projected: Tensor) -> Tensor:
        """Return the heads' results side by side, given queries, keys and values in one."""
        parts = projected.reshape(*projected.shape[:-1], 3, self.heads, -1).transpose(-4, -2)
        query, key, value = parts.unbind(-3)  # each (..., heads, length, width of a head)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return mixed.transpose(-3, -2).flatten(-2)
