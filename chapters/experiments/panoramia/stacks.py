"""Audits of stored columns: an example is known by its place among all parts."""

import numpy as np

from auditkit.attacks.generated import Loss, Mixture
from auditkit.models.generators import Examples

# members and generated examples to learn from; members, generated and unseen ones that are audited
PARTS = ("train", "real", "made train", "made", "unseen train", "unseen")
GENERATED = ("train", "made train", "real", "made")
UNSEEN = ("train", "unseen train", "real", "unseen")
Columns = dict[str, np.ndarray]  # of each part, a number or several for each example


def mixture(parts: tuple[str, ...], *seen: Columns) -> Mixture:
    """Mix parts of which classifiers see columns."""
    ends = np.cumsum([0, *(len(seen[0][name]) for name in PARTS)])
    places = {name: np.arange(*ends[which : which + 2]) for which, name in enumerate(PARTS)}
    return Mixture(
        *(Examples(places[name][:, np.newaxis]) for name in parts),
        see=np.concatenate([np.column_stack([one[name] for one in seen]) for name in parts]),
    )


def loss(columns: Columns) -> Loss:
    """Return what gives each example its number, or numbers."""
    every = np.concatenate([columns[name] for name in PARTS])
    return lambda examples: every[examples.inputs[:, 0]]
