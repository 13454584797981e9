"""Networks on pixels: convolutional ones, in the games of the heads on features.

The paper audits networks on photographs. These learn the images of a game from their pixels, and
know them by heart. Propensities are fitted on the features of the same records as ever, so that
either kind of network is audited with the same ones.
"""

from auditkit.experiment import study
from auditkit.models.convolutional import train_convolutional
from experiments.zero_run.games import HARD, MIX, TINY, pixels, play
from experiments.zero_run.heads import PLACEBO, REDUCED, TARGET, cells, said, seed_of

PIXELS = "zero-pixels"
WIDTHS, TINY_WIDTHS = (32, 64, 128), (16, 16, 32)
PASSES, TINY_PASSES = 12, 10


@study(
    PIXELS,
    paper=[cell | {"precision": "bfloat16"} for cell in cells(MIX, HARD)],
    live=[cell | {"precision": "float32"} for cell in REDUCED[:1]],
    reduced=[cell | {"precision": "float32"} for cell in REDUCED],
    tolerance=0.05,
    needs="the images of CIFAR-10, as data/README.md says",
)
def pixel_networks(data: str, split: str, seed: int, precision: str) -> list[dict]:
    """Train a network on a game's members and another on the placebo's."""
    pool, game = play(data, split, seed)
    images, (rows, members) = pixels(data), game.audited
    found = []
    for place, release in enumerate((TARGET, PLACEBO)):
        learnt, own = (game.audited, game.placebo)[place]
        model = train_convolutional(
            images[learnt[own]],
            pool.labels[learnt[own]],
            seed=seed_of(seed, place),
            classes=10,
            widths=TINY_WIDTHS if data == TINY else WIDTHS,
            passes=TINY_PASSES if data == TINY else PASSES,
            augment=False,
            precision=precision,
        )
        logs = model.log_probabilities(images[rows])
        losses = -logs[range(rows.size), pool.labels[rows]]
        found.append(said(release, losses, members, data))
    return found
