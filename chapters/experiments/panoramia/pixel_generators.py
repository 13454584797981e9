"""Generators of small images that a laptop trains in a minute.

A classifier of images sees through most generators, and an audit with them then shows nothing.
What helps more than a better generator is a better question: an audited example may be an image
after a stated preparation, if the audited model was trained on images prepared the same way. The
parts to build such a preparation from are here too.

All is computed in single precision. What a generator makes has the precision of the examples that
it was fitted to, while `reduced` and `grey_levels` always return single precision: real and
generated images should both go through them.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Floats, Ints, Randomness
from auditkit.models.generators import DOUBLE, Examples, Generator, precision

Singles = NDArray[np.float32]


def reduced(images: ArrayLike, factor: int) -> Singles:
    """Return smaller images, whose pixels are means of squares of pixels.

    Parameters
    ----------
    images : array of shape (n, side, side)
        Side must be a multiple of `factor`.
    factor : int
        Pixels along a square.

    Returns
    -------
    ndarray of shape (n, side / factor, side / factor)

    References
    ----------
    PANORAMIA audits what a model was trained on; here that may be images of fewer pixels.

    Examples
    --------
    >>> reduced(np.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 2.5,  4.5],
            [10.5, 12.5]]], dtype=float32)
    """
    pixels = _images("images", images)
    by = _check.whole("factor", factor, least=1)
    n, side = pixels.shape[:2]
    if side % by:
        raise ValueError(f"factor must divide {side}, the side of images, got {factor!r}")
    squares = pixels.reshape(n, side // by, by, side // by, by)
    small: Singles = squares.mean(axis=(2, 4), dtype=np.float32)
    return small


def grey_levels(images: ArrayLike, *, noise: float = 0.0, rng: Randomness = None) -> Singles:
    """Return images of 256 grey levels in [0, 1], with noise if wanted.

    Real and generated images should both go through it: a level between two that exist, or one
    outside [0, 1], would give the generated ones away.

    Parameters
    ----------
    images : array of shape (n, side, side)
        Grey levels, about in [0, 1].
    noise : float
        Standard deviation of Gaussian noise that is added first.
    rng : Generator, int or None
        Draws the noise.

    Returns
    -------
    ndarray of shape (n, side, side)

    References
    ----------
    PANORAMIA, Definition 3: c compares densities, and noise smooths both.

    Examples
    --------
    >>> grey_levels(np.array([[[-0.2, 0.5], [1.0, 1.3]]])).round(3)
    array([[[0.   , 0.502],
            [1.   , 1.   ]]], dtype=float32)
    """
    pixels = _images("images", images)
    spread = _check.scalar("noise", noise, least=0.0)
    if spread:
        draws = _check.generator("rng", rng).standard_normal(pixels.shape, np.float32)
        pixels = pixels + np.float32(spread) * draws
    levels: Singles = np.round(255.0 * np.clip(pixels, 0.0, 1.0)).astype(np.float32)
    return levels / np.float32(255.0)


@dataclass(frozen=True, eq=False)
class Directions:
    """The directions in which images vary most.

    Attributes
    ----------
    mean : array of shape (side * side,)
        The mean image.
    basis : array of shape (number, side * side)
        Orthonormal directions, the one of largest spread first.
    dtype : dtype
        The precision of images that are made; that of those that the directions are of.
    """

    mean: Singles
    basis: Singles
    dtype: np.dtype[Any] = DOUBLE

    def coordinates(self, images: ArrayLike) -> Singles:
        """Return where images lie along the directions, of shape (n, number)."""
        pixels = _images("images", images)
        found = (pixels.reshape(len(pixels), -1) - self.mean) @ self.basis.T
        return found.astype(np.float32)

    def images(self, coordinates: ArrayLike) -> NDArray[Any]:
        """Return the images that lie at coordinates, of shape (n, side, side)."""
        rows = _check.numbers("coordinates", coordinates, ndim=2).astype(np.float32)
        side = round(len(self.mean) ** 0.5)
        return (rows @ self.basis + self.mean).reshape(-1, side, side).astype(self.dtype)


def principal_directions(images: ArrayLike, number: int) -> Directions:
    """Return the directions in which images vary most.

    Parameters
    ----------
    images : array of shape (n, side, side)
        Grey levels.
    number : int
        How many directions, at most the number of images and that of pixels.

    Returns
    -------
    Directions

    References
    ----------
    Pearson, *On lines and planes of closest fit to systems of points in space*, 1901.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((50, 4, 4))
    >>> directions = principal_directions(images, 16)
    >>> bool(np.allclose(directions.images(directions.coordinates(images)), images, atol=1e-5))
    True
    """
    pixels = _images("images", images)
    rows = pixels.reshape(len(pixels), -1)
    count = _check.whole("number", number, least=1)
    if count > min(rows.shape):
        raise ValueError(f"number must be at most {min(rows.shape)}, got {number!r}")
    mean = rows.mean(axis=0, dtype=np.float64)
    spread = (rows - mean).T @ (rows - mean)
    basis = np.linalg.eigh(spread)[1][:, ::-1][:, :count].T
    return Directions(
        mean.astype(np.float32), basis.astype(np.float32), precision(np.asarray(images))
    )


@dataclass(frozen=True, eq=False)
class Along:
    """A generator of coordinates, as a generator of images.

    Attributes
    ----------
    directions : Directions
        What the coordinates belong to.
    coordinates : Generator
        Makes them.

    Examples
    --------
    >>> from auditkit.models.generators import fit_gaussian_mixtures
    >>> rng = np.random.default_rng(0)
    >>> images = rng.random((100, 4, 4))
    >>> directions = principal_directions(images, 3)
    >>> seen = Examples(directions.coordinates(images), np.arange(100) % 2)
    >>> made = Along(directions, fit_gaussian_mixtures(seen, rng)).sample(5, rng=rng)
    >>> made.inputs.shape
    (5, 4, 4)
    """

    directions: Directions
    coordinates: Generator

    def sample(self, number: int, *, rng: Randomness) -> Examples:
        """Draw coordinates, and the images that lie there."""
        made = self.coordinates.sample(number, rng=_check.generator("rng", rng))
        return Examples(self.directions.images(made.inputs), made.labels)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Real examples drawn again, with noise: a kernel density.

    It is no generator to audit with, but a warning. The audited model may have been trained on
    those very examples, and so finds them as familiar as members.

    Attributes
    ----------
    examples : Examples
        With labels.
    noise : float
        Standard deviation of the Gaussian noise.

    Examples
    --------
    >>> Resampled(Examples(np.zeros((9, 2)), np.zeros(9, int)), 0.1).sample(4, rng=0).inputs.shape
    (4, 2)
    """

    examples: Examples
    noise: float

    def sample(self, number: int, *, rng: Randomness) -> Examples:
        """Draw examples with replacement, and add noise."""
        generator = _check.generator("rng", rng)
        count = _check.whole("number", number, least=1)
        drawn = self.examples[generator.integers(len(self.examples), size=count)]
        spread = _check.scalar("noise", self.noise, least=0.0)
        draws = np.float32(spread) * generator.standard_normal(drawn.inputs.shape, np.float32)
        return Examples(drawn.inputs.astype(precision(drawn.inputs)) + draws, drawn.labels)


@dataclass(frozen=True, eq=False)
class Filtered:
    """A generator some of whose examples are thrown away.

    Attributes
    ----------
    generator : Generator
        Makes the examples.
    score : callable
        How real examples look, of shape (n,).
    least : float
        Examples with a score below it are thrown away.
    """

    generator: Generator
    score: Callable[[Examples], Floats]
    least: float

    def sample(self, number: int, *, rng: Randomness) -> Examples:
        """Draw until enough examples look real enough."""
        source = _check.generator("rng", rng)
        count = _check.whole("number", number, least=1)
        kept: list[Examples] = []
        while sum(map(len, kept)) < count:
            made = self.generator.sample(count, rng=source)
            kept.append(made[self.score(made) >= self.least])
            if len(kept) > 100 and sum(map(len, kept)) < len(kept):
                raise ValueError(f"least must let some examples through, got {self.least!r}")
        labels = [part.labels for part in kept if part.labels is not None]
        inputs = np.concatenate([part.inputs for part in kept])[:count]
        return Examples(inputs, np.concatenate(labels)[:count] if labels else None)


def fit_filter(
    generator: Generator,
    real: Examples,
    rng: Randomness,
    *,
    removed: float = 0.25,
    see: Callable[[Examples], ArrayLike],
    classifier: Any = None,
) -> Filtered:
    """Throw away the generated examples that look least real.

    A classifier is trained to tell real examples from generated ones, and the threshold is set so
    that the given share of fresh generated examples falls below it.

    Parameters
    ----------
    generator : Generator
        Makes the examples.
    real : Examples
        Real ones, those that the generator was trained on, say, but none of the audited ones.
    rng : Generator, int or None
        What `generator` draws from.
    removed : float
        Share of the generated examples that is thrown away, in (0, 1).
    see : callable
        Takes examples and returns what the classifier sees of them, of shape (n, columns).
    classifier : scikit-learn classifier, optional
        Trees, boosted, by default.

    Returns
    -------
    Filtered

    References
    ----------
    PANORAMIA, Appendices C.1 and C.3, which leave classifier and threshold open.

    Examples
    --------
    >>> class Wide:
    ...     def sample(self, number, *, rng):
    ...         return Examples(rng.normal(0, 2, (number, 1)))
    >>> rng = np.random.default_rng(0)
    >>> real = Examples(rng.normal(0, 1, (2000, 1)))
    >>> better = fit_filter(Wide(), real, rng, removed=0.4, see=lambda made: made.inputs)
    >>> bool(better.sample(2000, rng=rng).inputs.std() < 1.5)
    True
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    source = _check.generator("rng", rng)
    share = _check.fraction("removed", removed)
    made = generator.sample(2 * len(real), rng=source)
    lessons, fresh = made[: len(real)], made[len(real) :]
    if classifier is None:
        classifier = HistGradientBoostingClassifier(max_iter=100, random_state=0)
    rows = np.concatenate([np.asarray(see(part)) for part in (real, lessons)])
    classifier.fit(rows, np.repeat((1, 0), len(real)))

    def score(examples: Examples) -> Floats:
        # chances and not log-odds, which every classifier of scikit-learn has
        likely: Floats = classifier.predict_proba(np.asarray(see(examples)))[:, 1]
        return likely

    return Filtered(generator, score, float(np.quantile(score(fresh), share)))


@dataclass(frozen=True, eq=False)
class Variational:
    """The decoder of a variational autoencoder, one that knows classes.

    Attributes
    ----------
    decoder : torch.nn.Module
        From latent numbers and a class, as columns of 0 and 1, to pixels.
    shares : array of shape (classes,)
        How likely each class is.
    latent : int
        Latent numbers.
    dtype : dtype
        The precision of the images that are made; that of those that were fitted.
    """

    decoder: nn.Module
    shares: Floats
    latent: int
    dtype: np.dtype[Any] = DOUBLE

    def sample(self, number: int, *, rng: Randomness) -> Examples:
        """Draw latent numbers and classes, and decode them."""
        generator = _check.generator("rng", rng)
        labels = _classes(number, self.shares, generator)
        latent = torch.from_numpy(generator.standard_normal((len(labels), self.latent), np.float32))
        with torch.no_grad():
            pixels = torch.cat((latent, _columns(labels, len(self.shares))), 1)
            made = torch.sigmoid(self.decoder(pixels)).numpy()
        side = round(made.shape[1] ** 0.5)
        return Examples(made.reshape(-1, side, side).astype(self.dtype), labels)


def fit_variational(
    examples: Examples,
    rng: Randomness,
    *,
    latent: int = 16,
    width: int = 400,
    passes: int = 20,
) -> Variational:
    """Train a variational autoencoder on images.

    Parameters
    ----------
    examples : Examples
        Images of shape (n, side, side), grey levels in [0, 1], with labels.
    rng : Generator, int or None
        First weights, batches and noise.
    latent : int
        Latent numbers.
    width : int
        Of the hidden layers.
    passes : int
        How often each image is seen.

    Returns
    -------
    Variational

    References
    ----------
    Kingma and Welling, *Auto-encoding variational Bayes*, 2014; with classes as in Kingma,
    Mohamed, Rezende and Welling, *Semi-supervised learning with deep generative models*, 2014.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = Examples(rng.random((64, 4, 4)), np.arange(64) % 2)
    >>> fit_variational(images, rng, latent=2, width=8, passes=1).sample(3, rng=rng).inputs.shape
    (3, 4, 4)
    """
    pixels, labels, shares = _labelled_images(examples)
    numbers = _check.whole("latent", latent, least=1)
    hidden = _check.whole("width", width, least=1)
    turns = _check.whole("passes", passes, least=1)
    flat = torch.from_numpy(pixels.reshape(len(pixels), -1))
    columns = _columns(labels, len(shares))
    source, noise = _torch_streams(rng)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(torch.randint(2**31, (1,), generator=source)))
        encoder, decoder = (
            nn.Sequential(nn.Linear(given, hidden), nn.ReLU(), nn.Linear(hidden, result))
            for given, result in (
                (flat.shape[1] + len(shares), 2 * numbers),
                (numbers + len(shares), flat.shape[1]),
            )
        )
    weights = [*encoder.parameters(), *decoder.parameters()]
    optimiser = torch.optim.Adam(weights, lr=1e-3)
    for _ in range(turns):
        for rows in torch.split(torch.randperm(len(flat), generator=source), 128):
            x, y = flat[rows], columns[rows]
            mean, logs = encoder(torch.cat((x, y), 1)).chunk(2, 1)
            draws = mean + torch.exp(logs / 2) * torch.randn(mean.shape, generator=noise)
            said = decoder(torch.cat((draws, y), 1))
            misfit = nn.functional.binary_cross_entropy_with_logits(said, x, reduction="sum")
            excess = (mean**2 + torch.exp(logs) - logs - 1.0).sum() / 2
            optimiser.zero_grad()
            ((misfit + excess) / len(rows)).backward()
            optimiser.step()
    return Variational(decoder.requires_grad_(False), shares, numbers, precision(examples.inputs))


@dataclass(frozen=True, eq=False)
class Diffusion:
    """A diffusion model of rows of numbers, one that knows classes.

    Attributes
    ----------
    network : torch.nn.Module
        Takes noisy rows, times in [0, 1] and classes, and gives velocities.
    shares : array of shape (classes,)
        How likely each class is.
    mean, scale : array of shape (columns,)
        What rows were made less and divided by.
    steps : int
        From noise to a row.
    dtype : dtype
        The precision of the rows that are made; that of those that were fitted.
    """

    network: nn.Module
    shares: Floats
    mean: Singles
    scale: Singles
    steps: int
    dtype: np.dtype[Any] = DOUBLE

    def sample(self, number: int, *, rng: Randomness) -> Examples:
        """Draw noise and classes, and take the noise away step by step."""
        generator = _check.generator("rng", rng)
        labels = _classes(number, self.shares, generator)
        noise = generator.standard_normal((len(labels), len(self.mean)), np.float32)
        parts = zip(
            torch.split(torch.from_numpy(noise), 2000),
            torch.split(_tensor(labels), 2000),
            strict=True,
        )
        rows = np.concatenate([self._denoised(x, y).numpy() for x, y in parts])
        return Examples((rows * self.scale + self.mean).astype(self.dtype), labels)

    def _denoised(self, x: Tensor, y: Tensor) -> Tensor:
        """Follow the deterministic path of the velocities from time 1 to time 0."""
        angles = torch.linspace(np.pi / 2, 0.0, self.steps + 1)
        with torch.no_grad():
            for now, then in itertools.pairwise(angles):
                velocity = self.network(x, (now * 2 / np.pi).expand(len(x)), y)
                # on a circle of data and noise the velocity is a rotation
                x = torch.cos(now - then) * x - torch.sin(now - then) * velocity
        return x


def fit_diffusion(
    examples: Examples,
    rng: Randomness,
    *,
    width: int = 256,
    updates: int = 2000,
    steps: int = 50,
) -> Diffusion:
    """Train a diffusion model on rows of numbers, such as coordinates of images.

    Parameters
    ----------
    examples : Examples
        Inputs of shape (n, columns), with labels.
    rng : Generator, int or None
        First weights, batches and noise.
    width : int
        Of the hidden layers.
    updates : int
        Steps of training, 256 rows each.
    steps : int
        From noise to a row.

    Returns
    -------
    Diffusion

    References
    ----------
    Ho, Jain and Abbeel, *Denoising diffusion probabilistic models*, 2020; velocities after Salimans
    and Ho, *Progressive distillation for fast sampling of diffusion models*, 2022; in coordinates
    of few dimensions as in Rombach et al., *High-resolution image synthesis with latent diffusion
    models*, 2022.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = Examples(rng.normal(size=(100, 2)), np.arange(100) % 2)
    >>> fit_diffusion(rows, rng, width=8, updates=5).sample(3, rng=rng).inputs.shape
    (3, 2)
    """
    inputs = _check.numbers("examples.inputs", examples.inputs, ndim=2).astype(np.float32)
    labels, shares = _labels(examples)
    hidden = _check.whole("width", width, least=1)
    turns = _check.whole("updates", updates, least=1)
    path = _check.whole("steps", steps, least=1)
    mean, scale = inputs.mean(axis=0), inputs.std(axis=0) + np.float32(1e-6)
    rows, classes = _tensor((inputs - mean) / scale), _tensor(labels)
    source, noise = _torch_streams(rng)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(torch.randint(2**31, (1,), generator=source)))
        network = _Velocity(rows.shape[1], len(shares), hidden)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    # the mean of late weights makes better samples than the last weights
    late = torch.optim.swa_utils.AveragedModel(
        network,
        multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995),  # type: ignore[no-untyped-call]
    )
    slower = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.01, turns)
    for _ in range(turns):
        picked = torch.randint(len(rows), (256,), generator=source)
        times = torch.rand(256, generator=noise)
        angles = times[:, None] * np.pi / 2
        x, draws = rows[picked], torch.randn(256, rows.shape[1], generator=noise)
        said = network(torch.cos(angles) * x + torch.sin(angles) * draws, times, classes[picked])
        loss = ((said - torch.cos(angles) * draws + torch.sin(angles) * x) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        slower.step()
        late.update_parameters(network)
    return Diffusion(
        late.module.requires_grad_(False), shares, mean, scale, path, precision(examples.inputs)
    )


class _Velocity(nn.Module):
    """Residual layers that know time and class."""

    def __init__(self, columns: int, classes: int, width: int) -> None:
        super().__init__()
        self.given = nn.Linear(columns, width)
        self.time = nn.Linear(32, width)
        self.label = nn.Embedding(classes, width)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)
            )
            for _ in range(3)
        )
        self.result = nn.Linear(width, columns)

    def forward(self, x: Tensor, times: Tensor, labels: Tensor) -> Tensor:
        """Return velocities."""
        waves = times[:, None] * torch.exp(torch.linspace(0.0, 5.0, 16))
        h = self.given(x) + self.time(torch.cat((waves.sin(), waves.cos()), 1)) + self.label(labels)
        for layer in self.layers:
            h = h + layer(h)
        result: Tensor = self.result(h)
        return result


def _images(name: str, value: ArrayLike) -> Singles:
    pixels = _check.numbers(name, value, ndim=3)
    if not len(pixels) or pixels.shape[1] != pixels.shape[2]:
        raise ValueError(f"{name} must be of shape (n, side, side), got shape {pixels.shape}")
    return pixels.astype(np.float32)


def _labels(examples: Examples) -> tuple[Ints, Floats]:
    if examples.labels is None or not len(examples):
        raise ValueError("examples must have labels, and be at least one")
    counts = np.bincount(examples.labels)
    return examples.labels, counts / counts.sum()


def _labelled_images(
    examples: Examples,
) -> tuple[Singles, Ints, Floats]:
    pixels = _images("examples.inputs", examples.inputs)
    if pixels.min() < 0.0 or pixels.max() > 1.0:
        raise ValueError("examples.inputs must be grey levels in [0, 1]")
    return pixels, *_labels(examples)


def _classes(number: int, shares: Floats, rng: np.random.Generator) -> Ints:
    count = _check.whole("number", number, least=1)
    return rng.choice(len(shares), count, p=shares)


def _columns(labels: Ints, classes: int) -> Tensor:
    return nn.functional.one_hot(_tensor(labels), classes).float()


def _tensor(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))


def _torch_streams(rng: Randomness) -> tuple[torch.Generator, torch.Generator]:
    """Return a stream for weights and batches, and one for noise."""
    seeds = _check.generator("rng", rng).integers(2**63, size=2)
    first, second = (torch.Generator().manual_seed(int(seed)) for seed in seeds)
    return first, second
