"""From trained models to scores: which of two records, or of two gradients, was there.

The models come from `mechanisms.dp_sgd.audit_sgd`, or from a training loop of your own, written
with Opacus, that `audit_opacus` runs again and again with a canary in it.
"""

import copy
from collections.abc import Callable, Sized
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset

from auditkit import _check
from auditkit._types import Floats
from auditkit.attacks.canaries import gradient_direction, logit_score
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, Trained

Canary: TypeAlias = InputCanary | GradientCanary


def substitution_scores(trained: Trained, canary: Canary) -> Floats:
    """Score models by how much they look like those of z', at each snapshot.

    Parameters
    ----------
    trained : Trained
        Models, some or all.
    canary : InputCanary or GradientCanary
        What their worlds differ in.

    Returns
    -------
    ndarray of shape (runs, snapshots)
        For a gradient, how far the weights moved against g_z' and along g_z; for a record, what the
        models say for z' less what they say for z. Both are high for runs with bit 1.

    References
    ----------
    SUB, Algorithm 1, line 20, and Table 1, scenarios S2 to S5.

    Examples
    --------
    >>> from auditkit.mechanisms.dp_sgd import audit_sgd
    >>> rng = np.random.default_rng(0)
    >>> x, y, target = rng.normal(size=(50, 8)), rng.integers(2, size=50), 3 * np.ones(8)
    >>> canary = InputCanary([target, target], [0, 1])
    >>> trained = audit_sgd(x, y, canary, runs=100, steps=30, sampling_rate=1.0,
    ...                     noise_multiplier=2.0, clip=1.0, learning_rate=0.1)
    >>> scores = substitution_scores(trained, canary)[:, 0]
    >>> bool(scores[trained.bits == 1].mean() > scores[trained.bits == 0].mean())
    True
    """
    if isinstance(canary, GradientCanary):
        return trained.along(gradient_direction(canary.gradients)).astype(float)
    said = trained.logits(canary.features)
    count = 1 if said.ndim == 3 else said.shape[-1]
    return logit_score(said, canary.labels, logits=count)


class CanaryRun:
    """One run of a training loop with a canary in it, as `audit_opacus` hands it to the loop.

    Attributes
    ----------
    bit : int
        0 if the run is in the world of z, 1 if in that of z'.

    Examples
    --------
    >>> data = torch.utils.data.TensorDataset(torch.zeros(9, 2), torch.zeros(9, dtype=int))
    >>> run = CanaryRun(InputCanary([[1.0, 0.0], [0.0, 1.0]], [0, 1]), bit=1)
    >>> run.dataset(data)[9]
    (tensor([0., 1.]), tensor(1))
    """

    def __init__(self, canary: Canary, bit: int) -> None:
        self.bit, self._canary = bit, canary
        self._has_canary = isinstance(canary, GradientCanary)
        self._start: NDArray[np.float32] | None = None
        self._coins = torch.Generator()
        self.steps = 0

    def dataset(self, dataset: "Dataset[Any]") -> "Dataset[Any]":
        """Return your other records with the run's own canary after them.

        The items of `dataset` are pairs of features and label. For a gradient canary it comes back
        as it was.
        """
        if isinstance(self._canary, GradientCanary):
            return dataset
        self._has_canary = True
        features = np.asarray(self._canary.features)[self.bit]
        return _OneMore(dataset, features, int(np.asarray(self._canary.labels)[self.bit]))

    def attach(self, model: nn.Module, optimizer: Any, loader: Any) -> None:
        """Note the first weights, and let a gradient canary into the optimiser's steps.

        Call it once, with what ``PrivacyEngine.make_private`` returned. A gradient canary is added
        with the loader's probability, by a hook beside the accountant's, to what the optimiser has
        clipped, summed and scaled.
        """
        self._start = _flat(model)
        self._coins.manual_seed(int(torch.randint(2**31, ()).item()))
        before = optimizer.step_hook

        def hook(optimizer: Any) -> None:
            if before is not None:
                before(optimizer)
            self.steps += 1
            if isinstance(self._canary, GradientCanary):
                self._plant(self._canary, optimizer, loader.sample_rate)

        optimizer.attach_step_hook(hook)

    def _plant(self, canary: GradientCanary, optimizer: Any, rate: float) -> None:
        gradient = torch.as_tensor(np.asarray(canary.gradients)[self.bit], dtype=torch.float32)
        norm, most = float(gradient.norm()), float(optimizer.max_grad_norm)
        if norm > most * (1.0 + 1e-6):
            raise ValueError(
                f"gradients must have a norm of at most max_grad_norm = {most:g}, got {norm:g}"
            )
        sizes = [weight.numel() for weight in optimizer.params]
        if sum(sizes) != len(gradient):
            raise ValueError(
                f"gradients must have {sum(sizes)} numbers each, one a weight that is trained, "
                f"got {len(gradient)}"
            )
        if torch.rand((), generator=self._coins) >= rate:
            return
        if optimizer.loss_reduction == "mean":
            gradient /= optimizer.expected_batch_size * optimizer.accumulated_iterations
        gradient = gradient.to(optimizer.params[0].device)
        for weight, part in zip(optimizer.params, torch.split(gradient, sizes), strict=True):
            weight.grad += part.view_as(weight)

    def weights(self, model: nn.Module) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the weights before and after the training, if the canary took part in it."""
        if self._start is None:
            raise ValueError("train must call run.attach with what make_private returned")
        if not self._has_canary:
            raise ValueError("train must learn from run.dataset(...), which holds the canary")
        return self._start, _flat(model)


def audit_opacus(
    train: Callable[[CanaryRun], nn.Module],
    canary: Canary,
    *,
    runs: int,
    bits: ArrayLike | None = None,
    seed: int = 0,
) -> Trained:
    """Run a training loop of your own, written with Opacus, in the two worlds of a canary.

    Parameters
    ----------
    train : callable
        Your loop. It is given a `CanaryRun`, takes its data from `CanaryRun.dataset`, calls
        `CanaryRun.attach` after ``make_private``, and returns the trained module.
    canary : InputCanary or GradientCanary
        What the worlds differ in.
    runs : int
        How often to train.
    bits : array of shape (runs,), optional
        The coin b of each run, by default 0 and 1 in turn.
    seed : int
        Torch's own stream has a fresh seed in each run, and is put back afterwards; that of a GPU
        is not put back.

    Returns
    -------
    Trained
        As from `audit_sgd`, looked at after the last step: `substitution_scores` takes it.

    Notes
    -----
    Opacus divides by n·q rounded down, and n is what the loader holds: with a gradient canary, that
    is the other records only.

    References
    ----------
    SUB, Algorithm 1. Yousefpour et al. (2021), "Opacus: user-friendly differential privacy library
    in PyTorch".

    Examples
    --------
    With `model`, `records` and `loss_of` of your own::

        def train(run):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            loader = DataLoader(run.dataset(records), batch_size=25)
            private, optimizer, loader = PrivacyEngine().make_private(
                module=model, optimizer=optimizer, data_loader=loader,
                noise_multiplier=1.0, max_grad_norm=1.0,
            )
            run.attach(private, optimizer, loader)
            for x, y in loader:
                optimizer.zero_grad()
                loss_of(private(x), y).backward()
                optimizer.step()
            return private

        trained = audit_opacus(train, canary, runs=500)
        audit_scores(substitution_scores(trained, canary)[:, 0], trained.bits, method="two-worlds")
    """
    runs = _check.whole("runs", runs, least=1)
    coins = np.arange(runs) % 2 if bits is None else _check.codes("bits", bits, (0, 1))
    if len(coins) != runs:
        raise ValueError(f"bits must hold one for each of {runs} runs, got {len(coins)}")
    seeds = np.random.SeedSequence(_check.whole("seed", seed)).generate_state(runs)
    before, after, steps = [], [], set()
    for bit, own in zip(coins.tolist(), seeds.tolist(), strict=True):
        run = CanaryRun(canary, bit)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(own)
            model = train(run)
        start, end = run.weights(model)
        before.append(start)
        after.append(end)
        steps.add(run.steps)
    if len(steps) > 1:
        raise ValueError(f"train must take as many steps in each run, got {sorted(steps)}")
    layer = copy.deepcopy(getattr(model, "_module", model)).eval()
    return Trained(
        coins,
        np.array(sorted(steps)),
        None,
        np.stack(after)[:, None],
        np.stack(before),
        None,
        partial(copy.deepcopy, layer),
    )


class _OneMore(Dataset[Any]):
    """A dataset and a record, in the types of the others."""

    def __init__(self, others: "Dataset[Any]", features: NDArray[Any], label: int) -> None:
        if not isinstance(others, Sized):
            raise TypeError(f"dataset must have a length, got {others!r:.60}")
        x, y = others[0]
        self._others, self._size = others, len(others)
        self._x = torch.as_tensor(features, dtype=x.dtype)
        self._y = torch.as_tensor(label, dtype=y.dtype) if isinstance(y, Tensor) else type(y)(label)
        if self._x.shape != x.shape:
            raise ValueError(
                f"canary.features must be like those of dataset, of shape {(2, *x.shape)}, "
                f"got {(2, *self._x.shape)}"
            )

    def __len__(self) -> int:
        return self._size + 1

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index <= self._size:
            raise IndexError(f"index must lie in 0 to {self._size}, got {index}")
        return (self._x, self._y) if index == self._size else self._others[index]


def _flat(model: nn.Module) -> NDArray[np.float32]:
    """Return the weights that are trained, in the order of ``parameters_to_vector``."""
    own = [weight.detach().flatten() for weight in model.parameters() if weight.requires_grad]
    found: NDArray[np.float32] = torch.cat(own).float().cpu().numpy()
    return found
