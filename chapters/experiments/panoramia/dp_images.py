"""Networks on images that are trained with DP-SGD, by Opacus, at several ε."""

import math
import warnings
from functools import cache, partial

import numpy as np
import torch

from auditkit.experiment import study
from auditkit.models.generators import Examples
from auditkit.models.networks import mlp
from auditkit.models.training import Models
from experiments.panoramia.audits import NULL, TARGET, all_rows
from experiments.panoramia.images import (
    AUDITED,
    CLASSES,
    DIRECTIONS,
    SEEDS,
    Quality,
    accuracy,
    coins_of,
    helper_of,
    loss_of,
    mixture,
    train,
    unseen_mixture,
    world,
)

DELTA = 1e-5
BATCH, RATE, CLIP = 512, 2.0, 1.0
SCALE = 5.0  # a typical feature, so that gradients are of the size that clipping expects
PAIRS = (500, 2_000, AUDITED)
NETWORKS = {"64-64": (64, 64), "64": (64,)}


def audited(
    network: str, epsilon: float, epochs: int, seed: int, flips: int, trial: bool = False
) -> list[dict]:
    """Audit a private network, and one trained as privately on other images.

    With ``epsilon`` infinite it is trained without clipping and noise, by the chapter's optimiser.
    """
    own = world(seed)
    models = {name: private(seed, name, network, epsilon, epochs) for name in (TARGET, NULL)}
    return all_rows(
        mixture(seed, Quality(trial=trial)),
        unseen_mixture(seed),
        helper_of(seed, Quality(trial=trial)),
        {name: loss_of(model, trial) for name, model in models.items()},
        pairs=PAIRS,
        flips=flips,
        coins=coins_of(seed),
        member_accuracy=accuracy(models[TARGET], own.members),
        unseen_accuracy=accuracy(models[TARGET], own.unseen),
    )


@cache
def private(seed: int, release: str, network: str, epsilon: float, epochs: int) -> Models:
    """Train a network on members or on others, with or without privacy."""
    examples = {TARGET: world(seed).members, NULL: world(seed).others}[release]
    start = (1 + seed) * 1000 + 500 + (release == NULL)
    widths = NETWORKS[network]
    if math.isinf(epsilon):
        return train(examples, epochs, start, widths=widths)
    return fit_private(examples, epsilon, epochs, start, widths)


def fit_private(
    examples: Examples, epsilon: float, epochs: int, seed: int, widths: tuple[int, ...]
) -> Models:
    """Train a network by DP-SGD with Poisson batches, (ε, 1e-5)-DP by the Rényi accountant."""
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    make = partial(mlp, DIRECTIONS, CLASSES, hidden=widths)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # Opacus says on every run that its noise is not cryptographic, and torch that hooks are old
        warnings.simplefilter("ignore")
        torch.default_generator.manual_seed(seed)
        network = make()
        data = TensorDataset(
            torch.from_numpy(examples.inputs / np.float32(SCALE)), torch.from_numpy(examples.labels)
        )
        # clipping without a gradient of each example's own: equal to rounding, and with whole
        # batches, below, 2.9 times as fast
        wrapped, optimiser, criterion, loader = PrivacyEngine(
            accountant="rdp"
        ).make_private_with_epsilon(
            module=network,
            optimizer=torch.optim.SGD(network.parameters(), lr=RATE),
            criterion=torch.nn.CrossEntropyLoss(),
            data_loader=DataLoader(
                data, batch_size=BATCH, generator=torch.Generator().manual_seed(seed)
            ),
            target_epsilon=epsilon,
            target_delta=DELTA,
            epochs=epochs,
            max_grad_norm=CLIP,
            noise_generator=torch.Generator().manual_seed(seed + 1),
            grad_sample_mode="ghost",
        )
        for _ in range(epochs):
            # rows of a batch at once: the loader itself would take them one by one
            for rows in loader.batch_sampler:
                inputs, labels = data[rows]
                optimiser.zero_grad()
                criterion(wrapped(inputs), labels).backward()
                optimiser.step()
    weights = {name: weight.detach()[None] for name, weight in network.named_parameters()}
    weights["1.weight"] = weights["1.weight"] / SCALE  # it takes features as they are from here on
    return Models(make, weights)


EVERY = (1.0, 2.0, 6.0, 10.0, 15.0, math.inf)
SMALL = [{"network": "64", "epsilon": 10.0, "epochs": 1, "seed": 0, "flips": 3, "trial": True}]
at_each_epsilon = study(
    "pan-private",
    # two networks, and at two ε one that is trained for less
    paper=[
        {"network": network, "epsilon": epsilon, "epochs": epochs, "seed": seed, "flips": 10}
        for seed in SEEDS
        for network, epochs, levels in (
            ("64-64", 30, EVERY),
            ("64-64", 10, EVERY[-2:]),
            ("64", 30, (1.0, *EVERY[-2:])),
        )
        for epsilon in levels
    ],
    live=SMALL,
    reduced=SMALL,
    tolerance=0.02,
)(audited)
for_longer = study(
    "pan-private-longer",
    paper=[
        {"network": "64-64", "epsilon": 15.0, "epochs": epochs, "seed": seed, "flips": 10}
        for seed in SEEDS
        for epochs in (100, 300)
    ],
    live=SMALL,
    reduced=SMALL,
    tolerance=0.02,
)(audited)
