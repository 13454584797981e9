"""Linear heads under DP-SGD: clipping in closed form, training in the span of the data."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from auditkit._types import Floats, Ints
from auditkit.mechanisms.dp_descent import WORK, Bytes, Draws, Learners, Recipe
from auditkit.models.stacked import room

SPARSE = 0.2  # sampling rates below which sampled records are visited one by one
PIECES = 3  # that a triangle is cut into, to leave out most of its zeros


@dataclass(frozen=True)
class HeadTask:
    """A linear head without a bias, and its records, the canary's two last.

    The gradient of a record is the error of the probabilities times the features, so it lies in the
    span of the features. Noise outside the span of all records and canaries never meets a record:
    with SGD it can wait until somebody looks.

    `basis` holds the rows in which weights are written, the first of them for what is trained, or
    is None for the usual basis. `reach` says how many leading coordinates of each record can differ
    from 0: a basis made from the records one by one turns them into a triangle.
    """

    records: Tensor  # (records, trained coordinates)
    labels: Tensor
    limits: Tensor  # C / ‖x‖ of each record
    reach: Ints
    gradients: Tensor | None
    network: int  # logits
    width: int  # features
    basis: NDArray[np.float32] | None

    @classmethod
    def of(
        cls,
        features: Floats,
        labels: Ints,
        gradients: Floats | None,
        *,
        clip: float,
        logits: int,
        turn: bool,
        device: torch.device,
    ) -> "HeadTask":
        """Lay the records out; `turn` if a basis may be chosen, and it is where that is smaller."""
        width = features.shape[1]
        own = None if gradients is None else gradients.reshape(2, logits, width)
        spanning = features
        if own is not None:
            spanning = np.concatenate([features, own.reshape(-1, width)])
        basis = None
        records = features
        if turn and len(spanning) < width:
            square, triangle = np.linalg.qr(spanning.T, mode="complete")
            inside = _reached(triangle)
            basis = np.ascontiguousarray(square.T, dtype=np.float32)
            records = triangle[:inside, : len(features)].T
            own = None if own is None else own @ square[:, :inside]
        filled = records != 0.0
        with np.errstate(divide="ignore"):  # features of 0 have no gradient to clip
            limits = clip / np.linalg.norm(features, axis=1)
        return cls(
            records=_singles(records, device),
            labels=torch.from_numpy(labels).to(device),
            limits=_singles(limits, device),
            reach=np.where(filled.any(1), filled.shape[1] - filled[:, ::-1].argmax(1), 0),
            gradients=None if own is None else _singles(own.reshape(2, -1), device),
            network=logits,
            width=width,
            basis=basis,
        )

    @property
    def others(self) -> int:
        """Records beside the canary's."""
        return len(self.records) - (2 if self.gradients is None else 0)

    @property
    def parameters(self) -> int:
        """Weights of a model."""
        return self.network * self.width

    def at_once(self, batch: float) -> int:  # noqa: ARG002
        """Return how many models to train side by side; a head looks at all records."""
        trained = self.network * self.records.shape[1]
        numbers = 7 * trained + 4 * self.parameters + (5 * self.network + 1) * len(self.records)
        return max(1, room(WORK, self.records.device) // (4 * numbers))

    def first(self, draws: Draws) -> Tensor:  # noqa: ARG002
        """Return weights of 0."""
        return torch.zeros(1, self.parameters)

    def begin(self, start: Tensor, bits: Ints, recipe: Recipe) -> Learners:
        """Return models that start from weights in the basis, (models, parameters)."""
        return LinearHeads(self, start.view(len(start), self.network, self.width), bits, recipe)


class LinearHeads:
    """Linear heads in training."""

    def __init__(self, task: HeadTask, start: Tensor, bits: Ints, recipe: Recipe) -> None:
        self._task, self._recipe = task, recipe
        models, size, inside = len(start), *task.records.shape
        self.weights = start[:, :, :inside].reshape(models, -1).contiguous()
        self._outside = start[:, :, inside:].contiguous().clone()
        self._last = task.others + bits
        truth = F.one_hot(task.labels, max(2, task.network)).float().T
        self._truth = truth[-task.network :].contiguous()
        self._everybody = np.ones((models, task.others + 1), dtype=np.uint8)
        self._errors = start.new_empty(models, task.network, size)
        self._compiled = start.device.type == "cpu"
        self._mean = torch.empty_like(self.weights)
        self._forward, self._backward = _laid_out(task)

    def clipped_mean(self, sampled: Bytes | None) -> Tensor:
        """Return sums of clipped gradients over |B|, (models, trained)."""
        task, shape = self._task, (len(self.weights), self._task.network, -1)
        if self._recipe.sampling_rate >= SPARSE or not self._compiled:
            return self._pull(self._clipped_errors(sampled).flatten(0, 1))
        assert sampled is not None
        _add_sampled(
            self.weights.view(shape).numpy(),
            task.records.numpy(),
            task.labels.numpy(),
            task.limits.numpy(),
            task.reach,
            sampled,
            self._last,
            np.float32(1.0 / self._recipe.batch),
            self._mean.view(shape).numpy(),
        )
        return self._mean

    def whole(self, draws: Draws, step: int, deviation: float) -> Tensor:
        """Return all weights, (models, parameters), in the task's basis."""
        draws.add_outside(self._outside.flatten(1), step, deviation)
        inside = self.weights.view(*self._outside.shape[:2], -1)
        return torch.cat([inside, self._outside], 2).flatten(1)

    def _clipped_errors(self, sampled: Bytes | None) -> Tensor:
        """Return errors of the probabilities, cut so that gradients keep to C, over |B|."""
        task, errors = self._task, self._errors
        rows, flat = self.weights.view(-1, task.records.shape[1]), errors.flatten(0, 1)
        for given, made, matrix in self._forward:
            flat[:, made] = _times(rows[:, given], matrix)
        if task.network == 1:
            errors.sigmoid_()
        else:
            torch.softmax(errors, 1, out=errors)
        if not self._compiled:
            errors.sub_(self._truth)
            factor = (task.limits / errors.norm(dim=1)).clamp_(max=1.0).mul_(self._shares(sampled))
            return errors.mul_(factor[:, None])
        _cut(
            errors.numpy(),
            self._truth.numpy(),
            task.limits.numpy(),
            self._everybody if sampled is None else sampled,
            self._last,
            np.float32(1.0 / self._recipe.batch),
        )
        return errors

    def _shares(self, sampled: Bytes | None) -> Tensor:
        """Return 1/|B| for the records in each model's batch and 0 for the others."""
        present = self._everybody if sampled is None else sampled
        others, models = self._task.others, len(present)
        shares = np.zeros((models, len(self._task.records)), dtype=np.float32)
        shares[:, :others] = present[:, :others]
        if self._task.gradients is None:  # else the canary has no record
            shares[np.arange(models), self._last] = present[:, others]
        return torch.from_numpy(shares / self._recipe.batch).to(self.weights)

    def _pull(self, errors: Tensor) -> Tensor:
        """Return sums over the records of errors times features."""
        mean = self._mean.view(len(errors), -1)
        for given, made, matrix in self._backward:
            mean[:, made] = _times(errors[:, given], matrix)
        return self._mean


# columns that a product takes and those that it makes, and the matrix
Products: TypeAlias = list[tuple[slice, slice, Tensor]]


def _laid_out(task: HeadTask) -> tuple[Products, Products]:
    """Return products that turn weights into logits and errors into gradients, without the zeros.

    Records lie in a triangle, if at all, so pieces of them that come early reach a few coordinates.
    """
    size, inside = task.records.shape
    reach = np.maximum.accumulate(task.reach)
    ends = np.unique(np.linspace(0, size, PIECES + 1).astype(int))
    stops = reach[ends[1:] - 1] if size else reach
    last = np.append(stops[1:] != stops[:-1], True)[: len(stops)]  # of those that reach as far
    forward, backward, first, before = [], [], 0, 0
    for end, stop in zip(ends[1:][last].tolist(), stops[last].tolist(), strict=True):
        near, own = slice(0, stop), slice(first, end)
        forward.append((near, own, _prepared(task.records[own, near])))
        new, later = slice(before, stop), slice(first, size)
        if stop > before:
            backward.append((later, new, _prepared(task.records[later, new].T)))
        first, before = end, stop
    if before < inside:
        nothing = task.records.new_zeros(inside - before, size)
        backward.append((slice(0, size), slice(before, inside), nothing))
    return forward, backward


def _prepared(matrix: Tensor) -> Tensor:
    """Return a matrix as oneDNN has it, whose products are twice as fast on some processors."""
    there = matrix.numel() and matrix.device.type == "cpu"
    if there and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return matrix.contiguous().to_mkldnn()
    return matrix


def _times(rows: Tensor, matrix: Tensor) -> Tensor:
    """Return rows times the matrix's transpose."""
    if matrix.is_mkldnn:
        return F.linear(rows.contiguous().to_mkldnn(), matrix).to_dense()
    return F.linear(rows, matrix)


def _singles(array: Floats, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)).to(device)


def _reached(triangle: Floats) -> int:
    """Return how many leading rows are not 0 beyond rounding, beside the length of a column."""
    lengths = np.linalg.norm(triangle, axis=0)
    shares = np.abs(triangle) / np.where(lengths > 0.0, lengths, 1.0)
    filled = np.flatnonzero(shares.max(1) > np.finfo(np.float32).eps)
    return int(filled[-1]) + 1 if len(filled) else 0


# no "nnan" and no "ninf": what diverges must show
FREELY = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=FREELY)
def _cut(errors, truth, limits, sampled, last, scale):  # type: ignore[no-untyped-def]
    """Turn probabilities into errors, clipped, times `scale`, 0 for records not in the batch."""
    models, logits, size = errors.shape
    others = sampled.shape[1] - 1
    factor = np.empty(size, dtype=np.float32)
    for model in range(models):
        own = sampled[model]
        for i in range(others):
            factor[i] = scale * np.float32(own[i])
        for i in range(others, size):
            factor[i] = scale * np.float32(own[others] if i == last[model] else 0)
        if logits == 1:
            row, y = errors[model, 0], truth[0]
            for i in range(size):
                row[i] = min(max(row[i] - y[i], -limits[i]), limits[i]) * factor[i]
            continue
        square = np.zeros(size, dtype=np.float32)
        for k in range(logits):
            row, y = errors[model, k], truth[k]
            for i in range(size):
                row[i] -= y[i]
                square[i] += row[i] * row[i]
        for i in range(size):
            norm = np.sqrt(square[i])
            factor[i] *= np.float32(1.0) if norm <= limits[i] else limits[i] / norm
        for k in range(logits):
            row = errors[model, k]
            for i in range(size):
                row[i] *= factor[i]


@njit(cache=True, nogil=True, fastmath=FREELY)
def _add_sampled(weights, x, y, limits, reach, sampled, last, scale, mean):  # type: ignore[no-untyped-def]
    """Fill `mean` with sums of clipped gradients over the records that are present, times scale."""
    models, logits, _ = weights.shape
    others = sampled.shape[1] - 1
    error = np.empty(logits, dtype=np.float32)
    one = np.float32(1.0)
    for model in range(models):
        mean[model] = np.float32(0.0)
        for place in range(others + 1):
            if not sampled[model, place]:
                continue
            record = place if place < others else last[model]
            if record >= len(x):  # a gradient is planted there
                continue
            stop, limit = reach[record], limits[record]
            row = x[record, :stop]
            for k in range(logits):
                own = weights[model, k, :stop]
                logit = np.float32(0.0)
                for j in range(stop):
                    logit += own[j] * row[j]
                error[k] = logit
            if logits == 1:
                wrong = one / (one + np.exp(-error[0])) - np.float32(y[record])
                error[0] = min(max(wrong, -limit), limit) * scale
            else:
                error -= error.max()
                error[:] = np.exp(error)
                error /= error.sum()
                error[y[record]] -= one
                norm = np.sqrt((error * error).sum())
                error *= scale if norm <= limit else scale * limit / norm
            for k in range(logits):
                own = mean[model, k, :stop]
                factor = error[k]
                for j in range(stop):
                    own[j] += factor * row[j]
