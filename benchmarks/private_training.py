"""One network under DP-SGD, against Opacus in each of its three ways to clip.

ResNet-8 on images of CIFAR-10, whole batches and no noise, so that weights can be compared: noise
costs either side next to nothing. Opacus is `PrivacyEngine.make_private` with tensors in memory and
no loader. Batches are of 64, since Opacus is fastest with small ones; larger batches are cut into
parts on our side by itself. Both sides run on one thread, and their time is that of the processor.
Each is timed in turn, three times, after a run for warming up, and the best time counts.
"""

import math
import time
import warnings
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from auditkit.datasets import load
from auditkit.mechanisms.private_training import fit_private
from auditkit.models.networks import resnet8

IMAGES, STEPS, CLIP, RATE, ROUNDS = 64, 8, 1.0, 0.1, 3
MODES = {"hooks": "gradients by hooks", "functorch": "functorch", "ghost": "ghost clipping"}


def measure() -> list[dict[str, Any]]:
    """Time eight steps on 64 images."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        data = load("cifar10")
        x = np.moveaxis(data["train_images"][:IMAGES], -1, 1).astype(np.float32) / 127.5 - 1.0
        # without the copy channels are stored last, and hooks and ghost clipping of Opacus 1.6.0
        # take them for stored first: their gradients would be wrong
        return _rows(np.ascontiguousarray(x), data["train_labels"][:IMAGES])
    finally:
        torch.set_num_threads(threads)


def _rows(x: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    ways = {"ours": lambda: _ours(x, y)}
    ways |= {mode: lambda mode=mode: _opacus(x, y, mode) for mode in MODES}
    weights = {name: run() for name, run in ways.items()}
    seconds = dict.fromkeys(ways, math.inf)
    for _ in range(ROUNDS):
        for name, run in ways.items():
            start = time.process_time()
            run()
            seconds[name] = min(seconds[name], time.process_time() - start)
    ours = IMAGES * STEPS / seconds["ours"]
    return [
        {
            "what": f"ResNet-8 with DP-SGD, {STEPS} steps of {IMAGES} images ({ours:.0f} a second)",
            "baseline": f"Opacus, {kind} ({IMAGES * STEPS / seconds[mode]:.0f} a second)",
            "seconds": seconds["ours"],
            "baseline_seconds": seconds[mode],
            "ratio": seconds[mode] / seconds["ours"],
            "agreement": "largest difference of a weight "
            f"{float((weights['ours'] - weights[mode]).abs().max()):.0e}",
        }
        for mode, kind in MODES.items()
    ]


def _ours(x: np.ndarray, y: np.ndarray) -> torch.Tensor:
    model = fit_private(
        resnet8,
        x,
        y,
        epsilon=math.inf,
        steps=STEPS,
        sampling_rate=1.0,
        clip=CLIP,
        learning_rate=RATE,
    )
    return nn.utils.parameters_to_vector(model.module.parameters())


def _opacus(x: np.ndarray, y: np.ndarray, mode: str) -> torch.Tensor:
    """Train as everybody would, from the same start."""
    from opacus import PrivacyEngine

    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "secure RNG turned off", and hooks without an input
        torch.manual_seed(0)
        network = resnet8()
        data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
        private, descent, *criterion, _ = PrivacyEngine().make_private(
            module=network,
            optimizer=torch.optim.SGD(network.parameters(), lr=RATE),
            criterion=nn.CrossEntropyLoss(),
            data_loader=DataLoader(data, batch_size=len(y)),
            noise_multiplier=0.0,
            max_grad_norm=CLIP,
            poisson_sampling=False,
            grad_sample_mode=mode,
        )
        loss = criterion[0] if criterion else nn.CrossEntropyLoss()
        for _ in range(STEPS):
            descent.zero_grad()
            loss(private(data.tensors[0]), data.tensors[1]).backward()
            descent.step()
    return nn.utils.parameters_to_vector(network.parameters()).detach()


if __name__ == "__main__":
    for row in measure():
        print(row)
