"""A convolutional network on the pixels of CIFAR-10 against a plain loop.

One network takes long enough to be timed once. The plain loop has the same layers, passes and
batches, in single precision, with the usual steps in one cycle and contiguous images of full size,
moved and mirrored one by one.
"""

import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from auditkit.datasets import load
from auditkit.models.convolutional import train_convolutional


def measure(examples: int = 5_000, passes: int = 8) -> list[dict[str, Any]]:
    """Train one convolutional network both ways, with one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [_row(examples, passes)]
    finally:
        torch.set_num_threads(threads)


def _row(examples: int, passes: int) -> dict[str, Any]:
    data = load("cifar10", part="complete")
    images, labels = data["train_images"][:examples], data["train_labels"][:examples]
    start = time.perf_counter()
    ours = train_convolutional(images, labels, seed=0, passes=passes)
    middle = time.perf_counter()
    network = _everyday(images, labels, passes)
    end = time.perf_counter()
    with torch.no_grad():
        said = [
            network(_ready(data["test_images"][rows])) for rows in np.split(np.arange(10_000), 20)
        ]
    told = ours.logits(data["test_images"]), torch.cat(said).numpy()
    own, other = ((each.argmax(axis=1) == data["test_labels"]).mean() for each in told)
    return {
        "what": f"a convolutional network of 1.2 million weights, {examples:,} images of CIFAR-10, "
        f"{passes} passes, {ours.precision}",
        "baseline": "its layers in a plain loop, float32, images moved and mirrored one by one",
        "seconds": middle - start,
        "baseline_seconds": end - middle,
        "ratio": (end - middle) / (middle - start),
        "agreement": f"accuracy {own:.2f} and {other:.2f}",
    }


def _everyday(images: np.ndarray, labels: np.ndarray, passes: int) -> nn.Module:
    """Train the convolutional network as everybody would."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, 24, 2), nn.ReLU()]
    for before, width in ((24, 64), (64, 128), (128, 256)):
        layers += [nn.Conv2d(before, width, 3, padding=1, bias=False), nn.MaxPool2d(2)]
        layers += [nn.BatchNorm2d(width), nn.ReLU()]
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(width), nn.ReLU()]
    network = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(256, 10))
    x, y, batch = _ready(images), torch.from_numpy(labels), 256
    steps = passes * -(-len(y) // batch)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    course = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)
    for _ in range(passes):
        for rows in torch.randperm(len(y)).split(batch):
            views = []
            for image in x[rows]:
                down, right = torch.randint(5, (2,)).tolist()
                around = F.pad(image, (2, 2, 2, 2), mode="reflect")
                view = around[:, down : down + 32, right : right + 32]
                views.append(view.flip(2) if torch.rand(()) < 0.5 else view)
            optimizer.zero_grad()
            F.cross_entropy(network(torch.stack(views)), y[rows]).backward()
            optimizer.step()
            course.step()
    return network.eval()


def _ready(images: np.ndarray) -> torch.Tensor:
    """Return images as everybody would give them to a network."""
    x = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().float() / 255.0
    return (x - 0.47) / 0.25


if __name__ == "__main__":
    for row in measure():
        print(row)
