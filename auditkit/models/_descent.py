"""One step downhill for many models at once: the slope of the loss, and what is done with it."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

ADAM = (0.9, 0.999, 1e-8)  # decay of the mean, of the mean square, and what is added to its root


def slope(logits: Tensor, labels: Tensor, scale: Tensor) -> Tensor:
    """Return the derivative by the logits of cross-entropies times `scale`.

    Logits have shape (models, batch, ..., classes), labels the same or that without the classes,
    and an example's loss is the mean over its places. Classes are moved forward, because a softmax
    over a short last axis is ten times slower.
    """
    models, batch, *places, classes = logits.shape
    columns = logits.reshape(models, -1, classes).mT.contiguous()
    result = torch.softmax(columns, 1)
    if labels.is_floating_point():
        result.sub_(labels.reshape(models, -1, classes).mT)
    else:
        truth = labels.reshape(models, 1, -1)
        result.scatter_add_(1, truth, result.new_full((1, 1, 1), -1.0).expand_as(truth))
    each = math.prod(places)
    result.view(models, classes, batch, each).mul_((scale / each)[:, None, :, None])
    return result.mT.reshape(logits.shape)


class Optimiser:
    """SGD and Adam as in torch, whose own take a second to import and gain nothing here."""

    def __init__(
        self, weights: Sequence[Tensor], kind: str, rate: float, momentum: float, decay: float
    ) -> None:
        self.weights, self.kind = tuple(weights), kind
        self.rate, self.momentum, self.decay = rate, momentum, decay
        self.mean = [torch.zeros_like(weight) for weight in weights]
        self.square = [torch.zeros_like(weight) for weight in weights]
        self.time = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Change the weights."""
        self.time += 1
        for place, (weight, gradient) in enumerate(zip(self.weights, gradients, strict=True)):
            full = gradient.add(weight, alpha=self.decay) if self.decay else gradient
            if self.kind == "adam":
                self._adam(weight, full, self.mean[place], self.square[place])
            elif self.momentum:
                weight.sub_(self.mean[place].mul_(self.momentum).add_(full), alpha=self.rate)
            else:
                weight.sub_(full, alpha=self.rate)

    def _adam(self, weight: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> None:
        first, second, tiny = ADAM
        mean.lerp_(gradient, 1.0 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1.0 - second)
        spread = square.sqrt().div_(math.sqrt(1.0 - second**self.time)).add_(tiny)
        weight.addcdiv_(mean, spread, value=-self.rate / (1.0 - first**self.time))
