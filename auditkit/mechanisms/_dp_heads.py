"""Linear heads under DP-SGD: clipping in closed form, training in the span of the data."""

import itertools
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from auditkit.mechanisms._dp_descent import WORK, Bytes, Coins, Draws, Learners, Recipe, block_of

SPARSE = 0.3  # sampling rates below which sampled records are visited one by one
PIECES = 6  # that a triangle is cut into, to leave out most of its zeros


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
    reach: NDArray[np.int64]
    gradients: Tensor | None
    network: int  # logits
    width: int  # features
    basis: NDArray[np.float32] | None

    @classmethod
    def of(
        cls,
        features: NDArray[np.float64],
        labels: NDArray[np.int64],
        gradients: NDArray[np.float64] | None,
        *,
        clip: float,
        logits: int,
        turn: bool,
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
            basis = np.ascontiguousarray(square.T, dtype=np.float32)
            records = triangle[: len(spanning), : len(features)].T
            own = None if own is None else own @ square[:, : len(spanning)]
        filled = records != 0.0
        with np.errstate(divide="ignore"):  # features of 0 have no gradient to clip
            limits = clip / np.linalg.norm(features, axis=1)
        return cls(
            records=_singles(records),
            labels=torch.from_numpy(labels),
            limits=_singles(limits),
            reach=np.where(filled.any(1), filled.shape[1] - filled[:, ::-1].argmax(1), 0),
            gradients=None if own is None else _singles(own.reshape(2, -1)),
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

    def at_once(self) -> int:
        """Return how many models to train side by side."""
        trained = self.network * self.records.shape[1]
        block = block_of(trained)
        numbers = (block + 4) * trained + 4 * self.parameters
        numbers += (3 * self.network + block) * len(self.records)
        return max(1, WORK // (4 * numbers))

    def first(self, draws: Draws) -> Tensor:  # noqa: ARG002
        """Return weights of 0."""
        return torch.zeros(1, self.parameters)

    def begin(self, start: Tensor, bits: Coins, recipe: Recipe) -> Learners:
        """Return models that start from weights in the basis, (models, parameters)."""
        return LinearHeads(self, start.view(len(start), self.network, self.width), bits, recipe)


class LinearHeads:
    """Linear heads in training."""

    def __init__(self, task: HeadTask, start: Tensor, bits: Coins, recipe: Recipe) -> None:
        self._task, self._recipe = task, recipe
        models, size, inside = len(start), *task.records.shape
        self.weights = start[:, :, :inside].reshape(models, -1).contiguous()
        self._outside = start[:, :, inside:].clone()
        self._own = np.zeros((models, len(task.records) - task.others), dtype=np.uint8)
        if self._own.size:
            self._own[np.arange(models), bits] = 1
        self._present: tuple[Bytes, Bytes] | None = None
        self._truth = F.one_hot(task.labels, max(2, task.network)).float().T.contiguous()
        self._errors = torch.empty(models, task.network, size)
        self._mean = torch.empty_like(self.weights)
        reach = np.maximum.accumulate(task.reach) if size else task.reach
        bounds = np.linspace(0, size, PIECES + 1).astype(int)
        self._pieces = [
            (slice(a, b), int(reach[b - 1]))
            for a, b in itertools.pairwise(bounds.tolist())
            if b > a
        ]

    def clipped_mean(self, sampled: Bytes | None, step: int) -> Tensor:
        """Return sums of clipped gradients over |B|, (models, trained)."""
        task, shape = self._task, (len(self.weights), self._task.network, -1)
        if sampled is None:
            errors = self._clipped_errors()
            errors[:, :, task.others :].mul_(torch.from_numpy(self._own)[:, None])
            return self._pull(errors.flatten(0, 1))
        present = self._who(sampled)
        if self._recipe.sampling_rate >= SPARSE:
            errors = self._clipped_errors()
            errors.mul_(torch.from_numpy(present[:, step])[:, None])
            return self._pull(errors.flatten(0, 1))
        _add_sampled(
            self.weights.view(shape).numpy(),
            task.records.numpy(),
            task.labels.numpy(),
            task.limits.numpy(),
            task.reach,
            present,
            step,
            np.float32(1.0 / self._recipe.batch),
            self._mean.view(shape).numpy(),
        )
        return self._mean

    def whole(self, draws: Draws, deviation: float) -> Tensor:
        """Return all weights, (models, parameters), in the task's basis."""
        if self._outside.shape[2]:
            self._outside.add_(draws.outside(self._outside.shape[1:]), alpha=deviation)
        inside = self.weights.view(*self._outside.shape[:2], -1)
        return torch.cat([inside, self._outside], 2).flatten(1)

    def _who(self, sampled: Bytes) -> Bytes:
        """Return which records are in the batches of a block, of the canary's two the own one."""
        if self._present is None or self._present[0] is not sampled:
            own = sampled[:, :, -1:] * self._own[:, None]
            self._present = (sampled, np.concatenate([sampled[:, :, :-1], own], axis=2))
        return self._present[1]

    def _clipped_errors(self) -> Tensor:
        """Return errors of the probabilities, cut so that gradients keep to C, over |B|."""
        task, errors = self._task, self._errors
        rows, flat = self.weights.view(-1, task.records.shape[1]), errors.flatten(0, 1)
        for piece, stop in self._pieces:
            torch.mm(rows[:, :stop], task.records[piece, :stop].T, out=flat[:, piece])
        if task.network == 1:
            errors.sigmoid_().sub_(self._truth[1])
            torch.clamp(errors, -task.limits, task.limits, out=errors)
            return errors.div_(self._recipe.batch)
        torch.softmax(errors, 1, out=errors)
        # forty times faster than linalg.vector_norm, whose axis must be the last to be fast
        norms = errors.sub_(self._truth).square().sum(1, keepdim=True).sqrt_()
        return errors.mul_((task.limits / norms).clamp_(max=1.0).div_(self._recipe.batch))

    def _pull(self, errors: Tensor) -> Tensor:
        """Return sums over the records of errors times features."""
        records, mean = self._task.records, self._mean.view(len(errors), -1)
        before = 0
        for piece, stop in self._pieces:
            if stop > before:  # columns that no earlier record reaches
                columns = slice(before, stop)
                later = slice(piece.start, None)
                torch.mm(errors[:, later], records[later, columns], out=mean[:, columns])
                before = stop
        mean[:, before:] = 0.0
        return self._mean


def _singles(array: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


# no "nnan" and no "ninf": what diverges must show
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _add_sampled(weights, x, y, limits, reach, present, step, scale, mean):  # type: ignore[no-untyped-def]
    """Fill `mean` with sums of clipped gradients over the records that are present, times scale."""
    models, logits, _ = weights.shape
    error = np.empty(logits, dtype=np.float32)
    one = np.float32(1.0)
    for model in range(models):
        mean[model] = np.float32(0.0)
        for record in range(len(x)):
            if not present[model, step, record]:
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
