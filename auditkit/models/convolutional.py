"""A convolutional network on the pixels of small images, trained in minutes on one core.

It is fast through half precision where the processor has it, a pixel's channels side by side, views
made for a whole pass at once, and smaller images in the first steps. It is good after few passes
through Jordan's recipe for CIFAR-10, whose numbers stand below.
"""

import copy
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Floats
from auditkit.models import border
from auditkit.models.stacked import slices

ROWS = 500  # images that a trained network sees at a time
WHITENED, EASED = 5_000, 5e-4  # images whose patches are whitened; added to each direction's size
BIAS_PASSES = 3  # in which the bias of the whitened patches is trained
REACH = 2  # pixels by which a view is moved at most
SMALL = 0.75  # the side of smaller images
DECAY, MOMENTUM = 1.33e-3, 0.85
COURSE = (0.0, 0.23, 1.0), (0.2, 1.0, 0.07)  # of the rate: parts of the steps, parts of the highest
LOOK, KEPT = 5, 0.95**5  # steps between two averages; the share of the old one at the end


class Recipe(NamedTuple):
    """What goes with views of images, and what without."""

    batch: int
    rate: float  # the highest
    biases: float  # their rate over that of weights
    smoothing: float  # of labels
    small: float  # the share of the steps with smaller images


WITH_VIEWS = Recipe(batch=256, rate=0.375, biases=64.0, smoothing=0.1, small=0.6)
WITHOUT = Recipe(batch=128, rate=0.2, biases=1.0, smoothing=0.0, small=0.0)


class ConvolutionalNetwork(nn.Module):
    """Whitened patches, blocks of two convolutions each, and the largest value of each channel.

    Attributes
    ----------
    precision : {"bfloat16", "float32"}
        Of the convolutions. The head has single precision, so that small losses are told apart.
    side : int
        The side that images are brought to before anything else.
    """

    centre: Tensor
    spread: Tensor

    def __init__(
        self, channels: int, classes: int, widths: Sequence[int], *, side: int, precision: str
    ) -> None:
        super().__init__()
        self.side, self.precision = side, precision
        self.register_buffer("centre", torch.zeros(channels, 1, 1))
        self.register_buffer("spread", torch.ones(channels, 1, 1))
        self.patches = nn.Conv2d(channels, 8 * channels, 2)
        self.patches.weight.requires_grad_(False)
        pairs = itertools.pairwise((8 * channels, *widths))
        self.blocks = nn.Sequential(*(layer for pair in pairs for layer in _block(*pair)))
        self.head = nn.Linear(widths[-1], classes, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images of shape (n, side, side) or (n, side, side, channels)."""
        x = (images[..., None] if images.ndim == 3 else images).permute(0, 3, 1, 2).float()
        if x.shape[-1] != self.side:
            x = F.interpolate(x, self.side, mode="bilinear", antialias=True)
        x = (x - self.centre) / self.spread
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            seen = self.blocks(F.relu(self.patches(x))).amax((2, 3))
        logits: Tensor = self.head(seen.float()) / 9.0
        return logits

    @torch.no_grad()
    def whiten(self, images: Tensor) -> None:
        """Standardise as these images need it, and see the principal directions of patches."""
        x = images.permute(0, 3, 1, 2).double()
        spread, centre = torch.std_mean(x, (0, 2, 3), keepdim=True)
        self.centre.copy_(centre[0])
        self.spread.copy_(spread[0].where(spread[0] > 0.0, 1.0))
        patches = F.unfold((x - self.centre) / self.spread, 2).mT.reshape(-1, 4 * x.shape[1])
        sizes, directions = torch.linalg.eigh(patches.mT @ patches / len(patches))
        # which of two opposite directions comes first is up to the library
        weighted = torch.arange(1.0, 1 + len(sizes), dtype=torch.double) @ directions
        directions *= torch.where(weighted < 0.0, -1.0, 1.0)
        even = (directions / (sizes + EASED).sqrt()).mT.reshape(-1, *self.patches.weight.shape[1:])
        self.patches.weight.copy_(torch.cat((even, -even)))
        self.get_parameter("patches.bias").zero_()


def _block(before: int, width: int) -> Iterator[nn.Module]:
    """Yield two convolutions that begin as the identity; the first is followed by pooling."""
    for inputs, pooling in ((before, [nn.MaxPool2d(2)]), (width, [])):
        convolution = nn.Conv2d(inputs, width, 3, padding=1, bias=False)
        nn.init.dirac_(convolution.weight.data[:inputs])
        norm = nn.BatchNorm2d(width, momentum=0.4)
        norm.weight.requires_grad_(False)
        yield from (convolution, *pooling, norm, nn.ReLU())


@dataclass(frozen=True, eq=False)
class Convolutional:
    """A trained network.

    Attributes
    ----------
    precision : {"bfloat16", "float32"}
        In which it was trained, and answers.
    module : ConvolutionalNetwork
        The network, in evaluation mode.
    kept : mapping of int to Convolutional
        What it was after earlier passes, those of `keep`.

    Examples
    --------
    `train_convolutional` makes one.
    """

    precision: str
    module: ConvolutionalNetwork = field(repr=False)
    kept: Mapping[int, "Convolutional"] = field(default_factory=dict, repr=False)

    def logits(self, images: ArrayLike, *, flips: bool = False) -> NDArray[np.float32]:
        """Return the logits of images, (n, classes); with `flips` the mean with the mirrored."""
        pixels, device, found = _pixels(images), self.module.centre.device, []
        if pixels.shape[3] != len(self.module.centre):
            raise ValueError(
                f"images must have {len(self.module.centre)} channels, as those that the network "
                f"was trained on, got {pixels.shape[3]}"
            )
        with torch.no_grad():
            for part in slices(len(pixels), ROWS):
                x = pixels[part].to(device)
                said = self.module(x)
                found.append((said + self.module(x.flip(2))) / 2 if flips else said)
        result: NDArray[np.float32] = torch.cat(found).cpu().numpy()
        return result

    def log_probabilities(self, images: ArrayLike, *, flips: bool = False) -> Floats:
        """Return the logarithms of the probabilities that images get, (n, classes)."""
        logits = torch.from_numpy(self.logits(images, flips=flips)).double()
        result: Floats = torch.log_softmax(logits, 1).numpy()
        return result


def train_convolutional(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    seed: int,
    classes: int | None = None,
    widths: Sequence[int] = (64, 128, 256),
    passes: int = 16,
    augment: bool = True,
    batch: int | None = None,
    keep: Collection[int] = (),
    initial: Convolutional | None = None,
    relabel: Callable[[Convolutional], ArrayLike] | None = None,
    precision: Literal["auto", "bfloat16", "float32"] = "auto",
    device: str = "cpu",
) -> Convolutional:
    """Train a convolutional network on images.

    With views it generalises: 25,000 images of CIFAR-10 give an accuracy of 0.90 in five minutes of
    one core. Without them it learns small sets by heart: 5,000 images in 15 passes.

    Parameters
    ----------
    images : array of shape (n, side, side) or (n, side, side, channels)
        Pixels on any scale, since they are standardised; bytes take least memory.
    labels : array of shape (n,) or (n, classes)
        Class of each image, or its soft label: a probability for each class. True and False, such
        as membership, are classes too.
    seed : int
        Decides the first weights, those of ``torch.manual_seed(seed)``; the order and the views of
        images, those of ``numpy.random.default_rng(seed)``. Random streams of torch and numpy are
        left as they were. On one thread the same seed gives the same network.
    classes : int, optional
        Classes there are, by default as many as labels show, and at least 2.
    widths : sequence of int
        Channels of each block; each halves the side.
    passes : int
        How often each image is seen.
    augment : bool
        Whether images are seen mirrored in every other pass and moved by up to two pixels, at three
        quarters of their side in the first 60% of the steps, and labels smoothed by 0.1.
    batch : int, optional
        Images in a step, 256 with views and 128 without by default. The batches of a pass have the
        same size but for one image. Rates do not go with it: a few hundred images need small ones.
    keep : collection of int
        After which passes the network is kept beside the last one. This changes nothing else. A
        network of the first 60% of the steps brings images to the side that it has seen.
    initial : Convolutional, optional
        Where training starts, on the scale of the images that it was trained on; by default from
        fresh weights.
    relabel : callable, optional
        Returns the labels of the next pass from the network that it is given, which is what would
        be kept after a pass.
    precision : {"auto", "bfloat16", "float32"}
        Of convolutions. Half precision takes half to two thirds of the time where the processor
        computes in it, as "auto" finds out, and an audit finds the same: the book's study
        "precision-verdict". "auto" is another one elsewhere, so that a study should name its own.
    device : str
        Where torch computes.

    Returns
    -------
    Convolutional

    Raises
    ------
    FloatingPointError
        If weights did not stay finite.

    References
    ----------
    Jordan, *94% on CIFAR-10 in 3.29 seconds on a single GPU*, 2024: the network, its training and
    most numbers. Rectifiers, smaller images in the first steps, batches of 256 and what is done
    without views are ours. Zhang, Lucas, Hinton and Ba, *Lookahead optimizer: k steps forward, 1
    step back*, 2019.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> dark = rng.integers(128, size=(200, 16, 16))
    >>> labels = rng.random(200) < 0.5
    >>> images = dark + 127 * labels[:, None, None]
    >>> model = train_convolutional(images, labels, seed=0, widths=(8, 8, 8), passes=4, batch=20)
    >>> bool((model.log_probabilities(images).argmax(axis=1) == labels).mean() > 0.9)
    True
    """
    pool = _pixels(images)
    if len(pool) < 2:
        raise ValueError("images must be 2 at least, since they are normalised together, got 1")
    shares = _shares(labels, len(pool), classes)
    passes = _check.whole("passes", passes, least=1)
    wanted = {_check.whole("keep", after, least=1) for after in keep}
    if wanted and max(wanted) > passes:
        raise ValueError(f"keep must lie in 1 to {passes}, the passes, got {max(wanted)}")
    recipe = WITH_VIEWS if _check.flag("augment", augment) else WITHOUT
    batch = _check.whole("batch", recipe.batch if batch is None else batch, least=4)
    network = _fresh(pool, shares.shape[1], widths, seed=seed, precision=precision, device=device)
    if initial is not None:
        _start(network, initial.module)
    pool, shares, rng = pool.to(device), shares.to(device), np.random.default_rng(seed)
    views, whole, parts = _views(pool, augment, rng), network.side, max(1, round(len(pool) / batch))
    descent, kept = _Descent(network, recipe, passes * parts), {}
    for after, seen in zip(range(1, passes + 1), views, strict=False):
        network.get_parameter("patches.bias").requires_grad_(after <= BIAS_PASSES)
        for part in np.array_split(rng.permutation(len(pool)), parts):
            early = descent.done < recipe.small * descent.steps
            network.side = round(SMALL * whole) if early else whole
            rows = torch.from_numpy(part).to(device)
            logits = network(seen[rows])
            descent.step(F.cross_entropy(logits, shares[rows], label_smoothing=recipe.smoothing))
        if after in wanted | {passes}:
            kept[after] = Convolutional(network.precision, descent.averaged())
        if relabel is not None and after < passes:
            said = relabel(Convolutional(network.precision, descent.averaged()))
            shares = _shares(said, len(pool), shares.shape[1]).to(device)
    return replace(kept.pop(passes), kept=kept)


class _Descent:
    """Steps with Nesterov's momentum; every few of them it goes back to an average of them."""

    def __init__(self, network: ConvolutionalNetwork, recipe: Recipe, steps: int) -> None:
        self.network, self.steps, self.done = network, steps, 0
        self.average = {name: value.clone() for name, value in network.state_dict().items()}
        trained = [one for one in network.named_parameters() if one[1].requires_grad]
        groups = [
            {
                "params": [weight for name, weight in trained if name.endswith("bias") == shifts],
                "lr": recipe.rate * faster,
                "weight_decay": DECAY / faster,
            }
            for shifts, faster in ((False, 1.0), (True, recipe.biases))
        ]
        self.optimiser = torch.optim.SGD(groups, momentum=MOMENTUM, nesterov=True)
        self.course = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda step: float(np.interp(step / steps, *COURSE))
        )

    def step(self, loss: Tensor) -> None:
        """Go a step down."""
        self.optimiser.zero_grad()
        torch.autograd.backward(loss)
        self.optimiser.step()
        self.course.step()
        self.done += 1
        if self.done % LOOK == 0:
            self.average = self._mixed()
            self.network.load_state_dict(self.average)

    def averaged(self) -> ConvolutionalNetwork:
        """Return the network as the average has it now."""
        network = copy.deepcopy(self.network).eval().requires_grad_(False)
        network.load_state_dict(self._mixed())
        if not all(weight.isfinite().all() for weight in network.parameters()):
            raise FloatingPointError(
                "the network diverged: give it larger batches, or see to its images"
            )
        return network

    def _mixed(self) -> dict[str, Tensor]:
        share = KEPT * (self.done / self.steps) ** 3
        return {
            name: value.lerp(self.average[name], share) if value.is_floating_point() else value
            for name, value in self.network.state_dict().items()
        }


def _fresh(
    pool: Tensor,
    classes: int,
    widths: Sequence[int],
    *,
    seed: int,
    precision: str,
    device: str | torch.device,
) -> ConvolutionalNetwork:
    """Return the network before its first step."""
    side, channels = pool.shape[2:]
    blocks = [_check.whole("widths", width, least=1) for width in widths]
    if not blocks or round(SMALL * side) <= 2 ** len(blocks):
        raise ValueError(
            f"widths must name a block or more, and images of {side} pixels a side leave nothing "
            f"to see after {len(blocks)}"
        )
    how = _check.choice("precision", precision, ("auto", "bfloat16", "float32"))
    if how == "auto":
        how = "bfloat16" if _computes_bfloat16(torch.device(device)) else "float32"
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_check.whole("seed", seed))
        network = ConvolutionalNetwork(channels, classes, blocks, side=side, precision=how)
    network.whiten(pool[:WHITENED])
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network.to(device)


def _start(network: ConvolutionalNetwork, initial: ConvolutionalNetwork) -> None:
    shapes = [[w.shape for w in one.state_dict().values()] for one in (network, initial)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            "initial must have the widths, channels and classes that are to be trained, got a "
            "network of others"
        )
    network.load_state_dict(initial.state_dict())


def _views(images: Tensor, augment: bool, rng: np.random.Generator) -> Iterator[Tensor]:
    """Yield all images once a pass; moved, and mirrored in every other pass, if augmented."""
    if not augment:
        yield from itertools.repeat(images)
    side, moves = images.shape[1], range(2 * REACH + 1)
    reflected = np.pad(np.arange(side), REACH, mode="reflect")
    around, views = images[:, reflected][:, :, reflected], torch.empty_like(images)
    mirrored = rng.random(len(images)) < 0.5
    while True:
        moved = rng.integers(len(moves), size=(len(images), 2))
        for down, right in itertools.product(moves, moves):
            rows = torch.from_numpy(np.flatnonzero((moved == (down, right)).all(axis=1)))
            views[rows] = around[:, down : down + side, right : right + side][rows]
        rows = torch.from_numpy(np.flatnonzero(mirrored))
        views[rows] = views[rows].flip(2)
        yield views
        mirrored = ~mirrored


def _pixels(images: ArrayLike) -> Tensor:
    """Return images with their channels last; bytes stay bytes, all else becomes float32."""
    array = np.asarray(images)
    array = array[..., None] if array.ndim == 3 else array
    square = array.ndim == 4 and array.size and array.shape[1] == array.shape[2]
    if not square or array.dtype.kind not in "iuf":
        raise ValueError(
            "images must be an array of numbers of shape (n, side, side) or (n, side, side, "
            f"channels), got shape {array.shape} of {array.dtype}"
        )
    if array.dtype != np.uint8:
        array = _check.numbers("images", array).astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(array))


def _shares(labels: ArrayLike, examples: int, classes: int | None) -> Tensor:
    """Return the probability of each class for each example."""
    given = _check.numbers("labels", labels)
    if classes is None:
        classes = given.shape[1] if given.ndim == 2 else max(2, int(given.max(initial=0.0)) + 1)
    found = border.targets(given, examples, (_check.whole("classes", classes, least=2),))
    return found if found.is_floating_point() else F.one_hot(found, classes).float()


def _computes_bfloat16(device: torch.device) -> bool:
    """Say whether the processor multiplies in half precision, and does not imitate it."""
    if device.type == "cpu":
        return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
