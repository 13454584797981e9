"""Many small networks trained at once, each on its own data and from its own seed.

Audits need hundreds of models that differ in a seed, a few examples or a label: teachers, shadow
models, canaries in and out. Trained one after another they spend their time in the overhead of
small operations. Here they are one program: weights carry a model axis, and every step is a batched
matrix product.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.models import border
from auditkit.models.descent import Optimiser, slope
from auditkit.models.stacked import first_weights, forward, fresh, room, slices

CACHED = 1_300_000  # numbers that a chunk of models touches in a step: 5 MB stay in the cache
ROWS = 1024  # examples that are looked at in one go when models are asked, over all models


@dataclass(frozen=True, eq=False)
class Models:
    """Trained networks of one shape, their weights stacked.

    Attributes
    ----------
    network : callable
        Makes a fresh network of that shape.
    weights : mapping of str to torch.Tensor
        Each weight by its name in the network, of shape (models, ...), on the device where models
        were trained and are asked.

    Examples
    --------
    >>> from functools import partial
    >>> from auditkit.models.networks import linear
    >>> x = np.array([[-1.0], [1.0]])
    >>> models = fit_many(partial(linear, 1, 2), x, [0, 1], seeds=range(3),
    ...                   epochs=10, batch_size=2, learning_rate=1.0)
    >>> models
    Models(3 of linear)
    >>> models.predict(x)
    array([[0, 1],
           [0, 1],
           [0, 1]])
    """

    network: Callable[[], nn.Module]
    weights: Mapping[str, Tensor] = field(repr=False)

    def __len__(self) -> int:
        return len(next(iter(self.weights.values())))

    def __repr__(self) -> str:
        made = getattr(self.network, "func", self.network)
        return f"Models({len(self)} of {getattr(made, '__name__', type(made).__name__)})"

    def logits(self, inputs: ArrayLike) -> NDArray[np.float32]:
        """Return what every model says of every example, of shape (models, examples, classes)."""
        x = border.inputs(inputs)
        border.network_output(self.network, x)
        device = next(iter(self.weights.values())).device
        layer, x = fresh(self.network).eval().to(device), x.to(device)
        most = min(room(ROWS, device), max(1, room(CACHED, device) // _touched(layer, x)))
        rows = min(len(x), most)
        found = []
        with torch.no_grad():
            for part in slices(len(self), max(1, most // rows)):
                own = {name: weight[part] for name, weight in self.weights.items()}
                count = len(next(iter(own.values())))
                pieces = (
                    x[piece].expand(count, -1, *x.shape[1:]) for piece in slices(len(x), rows)
                )
                found.append(torch.cat([forward(layer, own, piece) for piece in pieces], dim=1))
        result: NDArray[np.float32] = torch.cat(found).cpu().numpy()
        return result

    def predict(self, inputs: ArrayLike) -> Ints:
        """Return the class that every model gives every example, of shape (models, examples)."""
        classes: Ints = self.logits(inputs).argmax(axis=-1)
        return classes

    def probabilities(self, inputs: ArrayLike) -> Floats:
        """Return the probability every model gives every class, (models, examples, classes)."""
        # in float64, so that rows sum to 1 as closely as every function of the package asks for
        logits = torch.from_numpy(self.logits(inputs)).double()
        result: Floats = torch.softmax(logits, -1).numpy()
        return result

    def losses(self, inputs: ArrayLike, labels: ArrayLike) -> NDArray[np.float32]:
        """Return the cross-entropy of every model on every example, (models, examples)."""
        logits = torch.from_numpy(self.logits(inputs))
        y = border.labels(labels, len(logits[0]), logits.shape[2:])
        logs = torch.log_softmax(logits, -1)
        picked = logs.gather(-1, y.expand(len(self), *y.shape)[..., None])
        result: NDArray[np.float32] = -picked.flatten(2).mean(-1).numpy()
        return result

    def module(self, index: int) -> nn.Module:
        """Return one of the models as a network of its own on the CPU, in evaluation mode."""
        network = fresh(self.network).eval()
        network.load_state_dict({name: weight[index] for name, weight in self.weights.items()})
        return network


def fit_many(
    network: Callable[[], nn.Module],
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    seeds: ArrayLike,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    indices: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    initial: Mapping[str, Tensor] | None = None,
    optimizer: Literal["sgd", "adam"] = "sgd",
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    device: str | torch.device = "cpu",
) -> Models:
    """Train many networks of one shape at once, each as if it were alone.

    A model's seed decides its first weights, those of ``torch.manual_seed(seed)`` followed by
    ``network()``, and the order of its examples: each epoch takes the next ``permutation`` of
    ``numpy.random.default_rng(seed)``, and the last batch may be a short one. The loss of a batch
    is the mean cross-entropy. So a plain loop with torch's optimisers gives the same weights, up to
    rounding. Random streams of torch and numpy are left as they were.

    Small fully connected networks gain most, ten times and more, because alone they spend their
    time on starting operations. Convolutions keep a core busy by themselves and gain little here;
    `fit_lenets` trains LeNet-5 by loops of its own.

    Parameters
    ----------
    network : callable
        Makes a fresh network: a function of `models.networks`, ``partial(mlp, 784, 10)`` for
        example, or any other without dropout or running statistics.
    inputs : array of shape (n, ...)
        The pool of examples: floats, or whole numbers for tokens.
    labels : array of shape (n,) or (n, length)
        Class of each example, or of each of its places. With an axis more, of shape (n, classes) or
        (n, length, classes), soft labels: a probability for each class, and the loss is the
        cross-entropy against them.
    seeds : array of shape (models,)
        A seed for each model.
    epochs : int
        How often each model sees its examples.
    batch_size : int
        Examples in a step.
    learning_rate : float
        Step size.
    indices : array of shape (models, size), optional
        Which examples of the pool each model is trained on; all of them if not given.
    weights : array of shape (models, size), optional
        How much each of these examples counts: the loss of a batch is then the weighted mean. With
        weights of 0 and 1 models have training sets of different sizes.
    initial : mapping of str to torch.Tensor, optional
        First weights, as `Models.weights` or as the state of one network for all.
    optimizer : {"sgd", "adam"}
        Adam with its usual decay rates.
    momentum : float
        Of "sgd", in [0, 1).
    weight_decay : float
        Added to the gradient, times the weights.
    device : str or torch.device
        Where models are trained, and stay: "cuda", for example. All draws are the CPU's, so that
        another device changes nothing but rounding. The tests run on a stand-in that refuses what a
        GPU would refuse; no GPU has run this package yet.

    Returns
    -------
    Models

    Raises
    ------
    FloatingPointError
        If weights did not stay finite; it says whose.

    References
    ----------
    Papernot et al., *Semi-supervised knowledge transfer for deep learning from private training
    data*, 2017: 250 teachers on parts of the data, which the example trains.

    Examples
    --------
    >>> from functools import partial
    >>> from auditkit.models.networks import mlp
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(5000, 8))
    >>> teachers = fit_many(partial(mlp, 8, 2), x, x[:, 0] > 0, seeds=range(250),
    ...                     indices=rng.permutation(5000).reshape(250, 20),
    ...                     epochs=10, batch_size=10, learning_rate=0.5)
    >>> votes = teachers.predict(x).mean(axis=0) > 0.5
    >>> bool((votes == (x[:, 0] > 0)).mean() > 0.95)
    True
    """
    where = border.device("device", device)
    pool, many = border.inputs(inputs), border.seeds(seeds)
    shown = border.network_output(network, pool)
    data = _Data(
        inputs=pool.to(where),
        labels=border.targets(labels, len(pool), shown[1:]).to(where),
        indices=border.indices(indices, len(many), len(pool)),
        weights=weights if weights is None else _check.at_least("weights", weights, 0.0),
        epochs=_check.whole("epochs", epochs, least=0),
        batch_size=_check.whole("batch_size", batch_size, least=1),
    )
    data.check_weights()
    rule = partial(
        Optimiser,
        kind=_check.choice("optimizer", optimizer, ("sgd", "adam")),
        rate=_check.positive("learning_rate", learning_rate),
        momentum=border.momentum(momentum, optimizer),
        decay=_check.scalar("weight_decay", weight_decay, least=0.0),
    )
    drawn, layer = first_weights(network, many, initial), fresh(network).to(where)
    stacked = {name: weight.to(where) for name, weight in drawn.items()}
    for part in slices(len(many), _at_once(layer, data)):
        own = {name: weight[part].requires_grad_() for name, weight in stacked.items()}
        optimiser = rule(tuple(own.values()))
        for x, y, share in data.batches(many[part], part):
            logits = forward(layer, own, x)
            downhill = slope(logits.detach(), y, share)
            optimiser.step(torch.autograd.grad(logits, optimiser.weights, downhill))
    border.finite(stacked.values())
    return Models(network, stacked)


@dataclass(frozen=True)
class _Data:
    """A pool of examples, and which of them each model sees, how often and in what company."""

    inputs: Tensor
    labels: Tensor
    indices: Ints  # (models, size)
    weights: Floats | None
    epochs: int
    batch_size: int

    def check_weights(self) -> None:
        if self.weights is not None and self.weights.shape != self.indices.shape:
            raise ValueError(
                f"weights must have shape {self.indices.shape}, one row a model, "
                f"got {self.weights.shape}"
            )

    def batches(self, seeds: Sequence[int], part: slice) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield inputs, labels and the share of each example in its batch."""
        indices, device = self.indices[part], self.inputs.device
        generators = [np.random.default_rng(seed) for seed in seeds]
        for _ in range(self.epochs):
            order = np.stack([generator.permutation(indices.shape[1]) for generator in generators])
            rows = torch.from_numpy(np.take_along_axis(indices, order, axis=1)).to(device)
            labels, counts = self.labels[rows], torch.ones(rows.shape, device=device)
            if self.weights is not None:
                chosen = np.take_along_axis(self.weights[part], order, axis=1)
                counts = torch.from_numpy(chosen.astype(np.float32)).to(device)
            for batch in slices(indices.shape[1], self.batch_size):
                total = counts[:, batch].sum(1, keepdim=True)
                total[total == 0] = 1.0  # a batch of nothing but weights of 0 has nothing to say
                at = rows[:, batch]
                x = self.inputs.index_select(0, at.reshape(-1))
                x = x.view(*at.shape, *x.shape[1:])
                yield x, labels[:, batch], counts[:, batch] / total


def _at_once(layer: nn.Module, data: _Data) -> int:
    """Return how many models to train side by side, so that a step stays in the cache."""
    own = sum(weight.numel() for weight in layer.parameters())
    most = room(CACHED, data.inputs.device)
    return max(1, most // (own + data.batch_size * _touched(layer, data.inputs)))


def _touched(layer: nn.Module, inputs: Tensor) -> int:
    """Return how many numbers an example becomes on its way through a network, with itself."""
    made = [inputs[0].numel()]

    def count(_layer: nn.Module, _given: Any, result: Tensor) -> None:
        made.append(result.numel())

    hooks = [inner.register_forward_hook(count) for inner in layer.modules()]
    with torch.no_grad():
        layer(inputs[:1])
    for hook in hooks:
        hook.remove()
    return sum(made)
