"""Many LeNet-5 trained by compiled loops: more than four times as fast on a core as torch does it.

Convolutions of so few channels are too small for the library that torch calls. Here the examples of
a batch lie side by side in the last axis: a loop over pixels is one over all examples, which a
compiler turns into operations on whole vectors. All that a network touches stays in the cache.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import get_num_threads, njit
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from auditkit import _check
from auditkit._types import Ints
from auditkit.models import border
from auditkit.models.networks import lenet5
from auditkit.models.stacked import Weights, first_weights
from auditkit.models.training import Models

Singles: TypeAlias = NDArray[np.float32]
Bytes: TypeAlias = NDArray[np.uint8]

LANES = 16  # examples that are looked at side by side when models are asked
FREELY = {"reassoc", "contract", "nsz"}  # no "nnan" and no "ninf": what diverges must show


class LeNets(Models):
    """Trained LeNet-5: `Models` that also answer by compiled loops."""

    def logits(self, inputs: ArrayLike) -> Singles:
        """Return what every model says of every example, of shape (models, examples, classes)."""
        x = _images(inputs)
        shape = border.network_output(self.network, x)
        images, said = x.numpy(), np.empty((len(self), len(x), shape[-1]), dtype=np.float32)
        _each(len(self), lambda place: _ask(_own(self.weights, place), images, said[place], LANES))
        return said


def fit_lenets(
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    seeds: ArrayLike,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    classes: int = 10,
    indices: ArrayLike | None = None,
    momentum: float = 0.0,
) -> LeNets:
    """Train many LeNet-5 at once by SGD, in about a quarter of the time that `fit_many` takes.

    First weights and batches are those of `fit_many` with `lenet5`, and so are trained weights, up
    to rounding. The first call compiles, which takes about ten seconds and is remembered. As many
    models are trained side by side as ``NUMBA_NUM_THREADS`` says.

    Parameters
    ----------
    inputs : array of shape (n, channels, 28, 28)
        The pool of images.
    labels : array of shape (n,)
        Class of each image.
    seeds : array of shape (models,)
        A seed for each model.
    epochs : int
        How often each model sees its images.
    batch_size : int
        Images in a step.
    learning_rate : float
        Step size.
    classes : int
        Classes, at least 2.
    indices : array of shape (models, size), optional
        Which images of the pool each model is trained on; all of them if not given.
    momentum : float
        In [0, 1).

    Returns
    -------
    LeNets

    Raises
    ------
    FloatingPointError
        If weights did not stay finite; it says whose.

    References
    ----------
    PRED, Appendix D.1: 250 teachers on parts of MNIST, which Adam trains there.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images, bright = rng.normal(size=(64, 1, 28, 28)), rng.integers(2, size=64)
    >>> images[bright == 1, :, :14] += 1.0
    >>> teachers = fit_lenets(images, bright, classes=2, seeds=range(3), epochs=5,
    ...                       batch_size=16, learning_rate=0.05, momentum=0.9)
    >>> (teachers.predict(images) == bright).mean(axis=1)
    array([1., 1., 1.])
    """
    pool, many = _images(inputs), border.seeds(seeds)
    network = partial(lenet5, classes, channels=pool.shape[1])
    places = border.network_output(network, pool)[1:]
    images, y = pool.numpy(), border.labels(labels, len(pool), places).numpy()
    rows = border.indices(indices, len(many), len(pool))
    passes = _check.whole("epochs", epochs, least=0)
    batch = min(_check.whole("batch_size", batch_size, least=1), rows.shape[1])
    rate = np.float32(_check.positive("learning_rate", learning_rate))
    decay = np.float32(border.momentum(momentum, "sgd"))
    stacked = first_weights(network, many, None)

    def train(place: int) -> None:
        own, generator = _own(stacked, place), np.random.default_rng(many[place])
        slope, change = _zeros_like(own), _zeros_like(own)
        steps = tuple(
            tuple(part.ravel() for part in parts) for parts in zip(own, slope, change, strict=True)
        )
        order = [generator.permutation(rows[place]) for _ in range(passes)]
        shown = np.array(order, dtype=np.int64).reshape(passes, rows.shape[1])
        _train(own, slope, steps, images, y, shown, batch, rate, decay)

    _each(len(many), train)
    border.finite(stacked.values())
    return LeNets(network, stacked)


def _images(inputs: ArrayLike) -> Tensor:
    x = border.inputs(inputs)
    if x.shape[2:] != (28, 28):
        raise ValueError(f"inputs must have shape (n, channels, 28, 28), got {tuple(x.shape)}")
    return x


def _each(models: int, work: Callable[[int], None]) -> None:
    """Do the work, which is compiled, for each model."""
    with ThreadPoolExecutor(get_num_threads()) as threads:
        for _ in threads.map(work, range(models)):
            pass


class _Own(NamedTuple):
    """Weights of one model, or the slope of the loss by them, or what momentum makes of that."""

    w1: Singles
    b1: Singles
    w2: Singles
    b2: Singles
    w3: Singles
    b3: Singles
    w4: Singles
    b4: Singles
    w5: Singles
    b5: Singles


class _Layers(NamedTuple):
    """What the layers make of a batch, or the slope of the loss by that.

    The image and maps have shape (channels, height, width, batch), the others (batch, features).
    """

    image: Singles  # with a margin of two pixels
    map1: Singles
    map2: Singles
    flat: Singles
    hidden3: Singles
    hidden4: Singles
    logits: Singles


class _Winners(NamedTuple):
    """Which of the four pixels that become one was the largest, or the first of the largest."""

    map1: Bytes
    map2: Bytes


def _own(stacked: Weights, place: int) -> _Own:
    return _Own(*(weight[place].numpy() for weight in stacked.values()))


def _zeros_like(own: _Own) -> _Own:
    return _Own(*(_zeros(weight.size).reshape(weight.shape) for weight in own))


@njit(cache=True, nogil=True, fastmath=FREELY)
def _train(
    w: _Own,
    dw: _Own,
    steps: tuple[tuple[Singles, ...], ...],
    images: Singles,
    labels: Ints,
    order: Ints,
    batch: int,
    rate: np.float32,
    momentum: np.float32,
) -> None:
    """Train a model on images in this order, (epochs, size)."""
    lanes = (batch + 3) // 4 * 4  # fully connected layers take four examples at a time
    x, best = _layers(images.shape[1], w.b5.size, lanes)
    dx, _ = _layers(images.shape[1], w.b5.size, lanes)
    for epoch in range(len(order)):
        for start in range(0, order.shape[1], batch):
            rows = order[epoch, start : start + batch]
            _forward(images, rows, w, x, best)
            _slope(x.logits, labels, rows, dx.logits)
            _backward(w, x, best, dw, dx)
            for weight, slope, change in steps:
                for i in range(weight.size):
                    change[i] = momentum * change[i] + slope[i]
                    weight[i] -= rate * change[i]
                    slope[i] = np.float32(0.0)


@njit(cache=True, nogil=True)
def _ask(w: _Own, images: Singles, said: Singles, lanes: int) -> None:
    """Fill in the logits of a model for images, (images, classes)."""
    x, best = _layers(images.shape[1], w.b5.size, lanes)
    for start in range(0, len(images), lanes):
        rows = np.arange(start, min(start + lanes, len(images)))
        _forward(images, rows, w, x, best)
        for place in range(len(rows)):
            for k in range(w.b5.size):
                said[start + place, k] = x.logits[place, k]


@njit(cache=True)
def _layers(channels: int, classes: int, lanes: int) -> tuple[_Layers, _Winners]:
    made = _Layers(
        _zeros(channels * 32 * 32 * lanes).reshape(channels, 32, 32, lanes),
        _zeros(6 * 14 * 14 * lanes).reshape(6, 14, 14, lanes),
        _zeros(16 * 5 * 5 * lanes).reshape(16, 5, 5, lanes),
        _zeros(lanes * 400).reshape(lanes, 400),
        _zeros(lanes * 120).reshape(lanes, 120),
        _zeros(lanes * 84).reshape(lanes, 84),
        _zeros(lanes * classes).reshape(lanes, classes),
    )
    first = np.zeros((6, 14, 14, lanes), dtype=np.uint8)
    return made, _Winners(first, np.zeros((16, 5, 5, lanes), dtype=np.uint8))


@njit(cache=True)
def _zeros(size: int) -> Singles:
    """Return zeros that begin with a line of the cache: elsewhere loops take twice as long."""
    room = np.zeros(size + 16, dtype=np.float32)
    start = -(room.ctypes.data // 4) % 16
    return room[start : start + size]


@njit(cache=True)
def _forward(images: Singles, rows: Ints, w: _Own, x: _Layers, best: _Winners) -> None:
    _show(images, rows, x.image)
    _convolve(x.image, w.w1, w.b1, x.map1, best.map1)
    _convolve(x.map1, w.w2, w.b2, x.map2, best.map2)
    _transpose(x.map2.reshape(400, len(x.flat)), x.flat)
    _dense(x.flat, w.w3, w.b3, x.hidden3)
    _rectify(x.hidden3.ravel())
    _dense(x.hidden3, w.w4, w.b4, x.hidden4)
    _rectify(x.hidden4.ravel())
    _dense(x.hidden4, w.w5, w.b5, x.logits)


@njit(cache=True)
def _slope(logits: Singles, labels: Ints, rows: Ints, result: Singles) -> None:
    """Fill in the slope of the mean cross-entropy by the logits, 0 behind the end of a batch."""
    share = np.float32(1.0 / len(rows))
    result[:] = np.float32(0.0)
    for place in range(len(rows)):
        own, slope = logits[place], result[place]
        top, total = own[0], np.float32(0.0)
        for k in range(own.size):
            top = max(top, own[k])
        for k in range(own.size):
            slope[k] = np.exp(own[k] - top)
            total += slope[k]
        for k in range(own.size):
            slope[k] *= share / total
        slope[labels[rows[place]]] -= share


@njit(cache=True)
def _backward(w: _Own, x: _Layers, best: _Winners, dw: _Own, dx: _Layers) -> None:
    """Add the slope by the weights to `dw`, given that by the logits."""
    _dense_back(x.hidden4, w.w5, dx.logits, dw.w5, dw.b5, dx.hidden4)
    _rectify_back(x.hidden4.ravel(), dx.hidden4.ravel())
    _dense_back(x.hidden3, w.w4, dx.hidden4, dw.w4, dw.b4, dx.hidden3)
    _rectify_back(x.hidden3.ravel(), dx.hidden3.ravel())
    _dense_back(x.flat, w.w3, dx.hidden3, dw.w3, dw.b3, dx.flat)
    _transpose(dx.flat, dx.map2.reshape(400, len(x.flat)))
    _rectify_back(x.map2.ravel(), dx.map2.ravel())
    _convolve_back(x.map1, w.w2, best.map2, dx.map2, dw.w2, dw.b2, dx.map1)
    _rectify_back(x.map1.ravel(), dx.map1.ravel())
    _convolve_back(x.image, w.w1, best.map1, dx.map1, dw.w1, dw.b1, dx.image[:0])


@njit(cache=True)
def _show(images: Singles, rows: Ints, result: Singles) -> None:
    """Lay images side by side; where rows are too few, old images stay, which nobody looks at."""
    for place in range(len(rows)):
        for channel in range(len(result)):
            image = images[rows[place], channel]
            for i in range(28):
                for j in range(28):
                    result[channel, i + 2, j + 2, place] = image[i, j]


@njit(cache=True)
def _convolve(x: Singles, w: Singles, b: Singles, result: Singles, best: Bytes) -> None:
    """Convolve, keep the largest of each square of 2 by 2, and rectify.

    Two maps at a time, all of them or as many rows as become one row of the result if they are
    large. The rows are as long as those of `x`: their last four columns mean nothing, but so one
    loop runs over all.
    """
    channels, height, width, lanes = x.shape
    deep = result.shape[1] if height < 32 else 1
    size, row = 2 * deep * width, width * lanes
    flat = x.reshape(channels, height * row)
    maps = _zeros(2 * size * lanes).reshape(2, size * lanes)
    squares = maps.reshape(2, deep, 2, width // 2, 2, lanes)
    first, second = maps[0, : (size - 4) * lanes], maps[1, : (size - 4) * lanes]
    for top in range(0, result.shape[1], deep):
        for out in range(0, len(w), 2):
            for i in range(first.size):
                first[i], second[i] = b[out], b[out + 1]
            for c in range(channels):
                for k in range(5):
                    seen = flat[c, (2 * top + k) * row :]
                    _slide(seen, w[out, c, k], w[out + 1, c, k], first, second, lanes)
            for i in range(2):
                for j in range(deep):
                    _pool(squares[i, j], result[out + i, top + j], best[out + i, top + j])


@njit(cache=True, fastmath=FREELY)
def _convolve_back(
    x: Singles, w: Singles, best: Bytes, slope: Singles, dw: Singles, db: Singles, dx: Singles
) -> None:
    """Add the slope by weights, and fill in that by `x` unless `dx` has no channels."""
    channels, height, width, lanes = x.shape
    deep = slope.shape[1] if height < 32 else 1
    size, row, edge = 2 * deep * width, width * lanes, 4 * lanes
    flat, by_flat = x.reshape(channels, height * row), dx.reshape(len(dx), height * row)
    dx[:] = np.float32(0.0)
    maps = _zeros(2 * (edge + size * lanes)).reshape(2, edge + size * lanes)
    first, second = maps[0, edge : size * lanes], maps[1, edge : size * lanes]
    for out in range(len(w)):
        total = np.float32(0.0)
        for one in slope[out].ravel():
            total += one
        db[out] += total
    for top in range(0, slope.shape[1], deep):
        for out in range(0, len(w), 2):
            for i in range(2):
                squares = maps[i, edge:].reshape(deep, 2, width // 2, 2, lanes)
                for j in range(deep):
                    _unpool(slope[out + i, top + j], best[out + i, top + j], squares[j])
            for c in range(channels):
                for k in range(5):
                    seen = flat[c, (2 * top + k) * row :]
                    _match(seen, first, second, dw[out, c, k], dw[out + 1, c, k], lanes)
            for c in range(0, len(dx), 2):
                for k in range(5):
                    here = slice((2 * top + k) * row, (2 * top + k) * row + size * lanes)
                    one, other = by_flat[c, here], by_flat[c + 1, here]
                    for i in range(2):  # from right to left, over the zeros between rows
                        kernels = w[out + i, c, k, ::-1], w[out + i, c + 1, k, ::-1]
                        _slide(maps[i], kernels[0], kernels[1], one, other, lanes)


@njit(cache=True, fastmath=FREELY)
def _slide(x: Singles, v: Singles, w: Singles, a: Singles, b: Singles, lanes: int) -> None:
    """Add to `a` and `b` what `v` and `w`, a row of two kernels, make of `x`."""
    v0, v1, v2, v3, v4 = v[0], v[1], v[2], v[3], v[4]
    w0, w1, w2, w3, w4 = w[0], w[1], w[2], w[3], w[4]
    x1, x2, x3, x4 = x[lanes:], x[2 * lanes :], x[3 * lanes :], x[4 * lanes :]
    for i in range(a.size):
        a[i] += v0 * x[i] + v1 * x1[i] + v2 * x2[i] + v3 * x3[i] + v4 * x4[i]
        b[i] += w0 * x[i] + w1 * x1[i] + w2 * x2[i] + w3 * x3[i] + w4 * x4[i]


@njit(cache=True, fastmath=FREELY)
def _match(x: Singles, a: Singles, b: Singles, v: Singles, w: Singles, lanes: int) -> None:
    """Add to `v` and `w` the slope by them, given that by `a` and `b`: sums stay in registers."""
    v0 = v1 = v2 = v3 = v4 = w0 = w1 = w2 = w3 = w4 = np.float32(0.0)
    x1, x2, x3, x4 = x[lanes:], x[2 * lanes :], x[3 * lanes :], x[4 * lanes :]
    for i in range(a.size):
        v0 += a[i] * x[i]
        v1 += a[i] * x1[i]
        v2 += a[i] * x2[i]
        v3 += a[i] * x3[i]
        v4 += a[i] * x4[i]
        w0 += b[i] * x[i]
        w1 += b[i] * x1[i]
        w2 += b[i] * x2[i]
        w3 += b[i] * x3[i]
        w4 += b[i] * x4[i]
    for k, more in enumerate((v0, v1, v2, v3, v4)):
        v[k] += more
    for k, more in enumerate((w0, w1, w2, w3, w4)):
        w[k] += more


@njit(cache=True)
def _pool(square: Singles, result: Singles, best: Bytes) -> None:
    for j in range(result.shape[0]):
        for i in range(result.shape[1]):
            a, b = square[0, j, 0, i], square[0, j, 1, i]
            c, d = square[1, j, 0, i], square[1, j, 1, i]
            at, top = (1, b) if b > a else (0, a)
            at, top = (2, c) if c > top else (at, top)
            at, top = (3, d) if d > top else (at, top)
            best[j, i] = at
            result[j, i] = np.float32(0.0) if top <= 0.0 else top


@njit(cache=True)
def _unpool(slope: Singles, best: Bytes, square: Singles) -> None:
    for y in range(2):
        for x in range(2):
            for j in range(slope.shape[0]):
                for i in range(slope.shape[1]):
                    won = best[j, i] == 2 * y + x
                    square[y, j, x, i] = slope[j, i] if won else np.float32(0.0)


@njit(cache=True, fastmath=FREELY)
def _dense(x: Singles, w: Singles, b: Singles, result: Singles) -> None:
    for out in range(len(w)):
        row = w[out]
        for place in range(0, len(x), 4):
            x0, x1, x2, x3 = x[place], x[place + 1], x[place + 2], x[place + 3]
            s0 = s1 = s2 = s3 = np.float32(0.0)
            for i in range(row.size):
                s0 += row[i] * x0[i]
                s1 += row[i] * x1[i]
                s2 += row[i] * x2[i]
                s3 += row[i] * x3[i]
            for k, more in enumerate((s0, s1, s2, s3)):
                result[place + k, out] = b[out] + more


@njit(cache=True)
def _dense_back(
    x: Singles, w: Singles, slope: Singles, dw: Singles, db: Singles, dx: Singles
) -> None:
    """Add the slope by weights, and fill in that by `x`."""
    dx[:] = np.float32(0.0)
    _add_product(slope, w, dx)
    _add_product(slope.T, x, dw)
    for place in range(len(slope)):
        for out in range(db.size):
            db[out] += slope[place, out]


@njit(cache=True, fastmath=FREELY)
def _add_product(a: Singles, b: Singles, result: Singles) -> None:
    """Add a product of matrices, four rows of the second at a time."""
    fours = len(b) // 4 * 4
    for j in range(0, fours, 4):
        b0, b1, b2, b3 = b[j], b[j + 1], b[j + 2], b[j + 3]
        for i in range(len(result)):
            row = result[i]
            a0, a1, a2, a3 = a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
            for k in range(row.size):
                row[k] += a0 * b0[k] + a1 * b1[k] + a2 * b2[k] + a3 * b3[k]
    for j in range(fours, len(b)):
        for i in range(len(result)):
            row, factor, more = result[i], a[i, j], b[j]
            for k in range(row.size):
                row[k] += factor * more[k]


@njit(cache=True)
def _transpose(x: Singles, result: Singles) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            result[j, i] = x[i, j]


@njit(cache=True)
def _rectify(x: Singles) -> None:
    for i in range(x.size):
        x[i] = np.float32(0.0) if x[i] <= 0.0 else x[i]


@njit(cache=True)
def _rectify_back(made: Singles, slope: Singles) -> None:
    for i in range(made.size):
        slope[i] = np.float32(0.0) if made[i] <= 0.0 else slope[i]
