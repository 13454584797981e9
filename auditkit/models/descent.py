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
    """SGD and Adam as in torch, whose own take a second to import.

    Adam is the function that torch's own calls with ``fused=True``: networks of small layers train
    in four fifths of the time that five operations on each weight take.
    """

    def __init__(
        self, weights: Sequence[Tensor], kind: str, rate: float, momentum: float, decay: float
    ) -> None:
        self.weights, self.kind = tuple(weights), kind
        self.rate, self.momentum, self.decay = rate, momentum, decay
        self.mean = [torch.zeros_like(weight) for weight in weights]
        self.square = [torch.zeros_like(weight) for weight in weights]
        self.steps = [torch.zeros((), device=weight.device) for weight in weights]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Change the weights."""
        if self.kind == "adam":
            self._adam(gradients)
            return
        for weight, gradient, mean in zip(self.weights, gradients, self.mean, strict=True):
            full = gradient.add(weight, alpha=self.decay) if self.decay else gradient
            change = mean.mul_(self.momentum).add_(full) if self.momentum else full
            weight.sub_(change, alpha=self.rate)

    def _adam(self, gradients: Sequence[Tensor]) -> None:
        for steps in self.steps:
            steps.add_(1.0)
        first, second, tiny = ADAM
        torch._fused_adam_(
            self.weights,
            # memory is gone through from end to end, so a transposed view would be misread
            [gradient.contiguous() for gradient in gradients],
            self.mean,
            self.square,
            [],
            self.steps,
            lr=self.rate,
            beta1=first,
            beta2=second,
            weight_decay=self.decay,
            eps=tiny,
            amsgrad=False,
            maximize=False,
        )
