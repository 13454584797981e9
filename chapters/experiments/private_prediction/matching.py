"""A poison that pulls where many wrong labels would: gradient matching, as in "Witches' Brew".

One image is changed, any pixel as far as pixels go, until the gradient of its loss points where
the gradient of the loss of all queries with wrong labels points. A step on the poison is then a
step towards turning many votes. The networks that give the gradients are fresh ones, since the
adversary does not know the teacher.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from auditkit.models.lenet import fit_lenets

NETWORKS, STEPS = 4, 100
RATE = 0.1


def matched_image(
    images: Any, labels: np.ndarray, start: int, options: dict, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """Return an image that began as a query, and its label.

    Parameters
    ----------
    images : Setting
        What the networks learn, and the queries.
    labels : ndarray of shape (queries,)
        The wrong labels that queries are to get.
    start : int
        The query that the image begins as; the poison's label is its wrong one.
    options : dict
        How networks are trained.
    rng : Generator
        Source of randomness.

    References
    ----------
    Geiping et al., *Witches' Brew*, 2021; PRED, Section 5.1.
    """
    parts = rng.permutation(len(images.labels))[: NETWORKS * images.size]
    models = fit_lenets(
        images.inputs,
        images.labels,
        seeds=rng.integers(2**31, size=NETWORKS),
        indices=parts.reshape(NETWORKS, -1),
        # half-way, where a poison still moves what is learnt
        **{**options, "epochs": (options["epochs"] + 1) // 2},
    )
    networks = [models.module(place).requires_grad_() for place in range(NETWORKS)]
    queries, wrong = torch.from_numpy(images.query_inputs), torch.from_numpy(labels)
    wanted = [slopes(network, queries, wrong, fixed=True) for network in networks]
    low, high = float(images.inputs.min()), float(images.inputs.max())
    image = torch.from_numpy(images.query_inputs[start : start + 1].copy()).requires_grad_()
    label = wrong[start : start + 1]
    optimiser = torch.optim.Adam([image], lr=RATE)
    for _ in range(STEPS):
        apart = sum(
            1.0 - F.cosine_similarity(slopes(network, image, label), goal, dim=0)
            for network, goal in zip(networks, wanted, strict=True)
        )
        optimiser.zero_grad()
        apart.backward()
        optimiser.step()
        with torch.no_grad():
            image.clamp_(low, high)
    return image.detach().numpy()[0], int(label[0])


def slopes(
    network: nn.Module, x: torch.Tensor, y: torch.Tensor, *, fixed: bool = False
) -> torch.Tensor:
    """Return the gradient of the loss by all weights, as one vector."""
    weights = [*network.parameters()]
    loss = F.cross_entropy(network(x), y)
    found = torch.autograd.grad(loss, weights, create_graph=not fixed)
    return torch.cat([one.ravel() for one in found])
