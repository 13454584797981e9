"""Figure 2b as the paper draws it: the density of the bounds of 600 resampled propensities.

`real` keeps a lower quantile of each audit. Here are all the bounds that it is a quantile of, in
the first game of each kind.
"""

import numpy as np

from auditkit import zero_run_bootstrap
from auditkit.attacks.propensity import propensity_bootstrap
from auditkit.experiment import study
from experiments.zero_run.audits import AUDITS, DELTA, EXAMPLES, LEVEL, guesses_of
from experiments.zero_run.games import CENSUS, HARD, IID, MIX, OOD, play
from experiments.zero_run.heads import HEADS, PLACEBO, TARGET, told
from experiments.zero_run.pixel_networks import PIXELS
from experiments.zero_run.real import FEATURES, IMAGES

NEIGHBOURS = 120  # rows of an audit at most
DRAWN = (
    "conditional, aware",
    "conditional, aware by rank",
    "conditional, posterior",
    "sharp, posterior",
)


@study(
    "zero-density",
    tolerance=0.02,
    paper=[
        {"data": data, "network": network, "split": split, "bootstraps": 600}
        for data, network in (
            (MIX, FEATURES),
            (MIX, IMAGES),
            (HARD, FEATURES),
            (HARD, IMAGES),
            (CENSUS, FEATURES),
        )
        for split in (IID, OOD)
    ],
    live=[{"data": MIX, "network": FEATURES, "split": OOD, "bootstraps": 20}],
    # few resamples, whose bounds are the same few counts on any processor
    reduced=[
        {"data": MIX, "network": FEATURES, "split": split, "bootstraps": 10} for split in (IID, OOD)
    ],
    sources=[HEADS, PIXELS],
)
def bootstrapped_bounds(
    data: str, network: str, split: str, bootstraps: int, rng: np.random.Generator
) -> list[dict]:
    """Audit with resampled propensities, and return the bounds on μ, neighbours put together.

    ``mu`` is the mean of as many bounds as ``sets`` says, which follow each other in size. The
    number of guesses is the best of six for the lower quantile, which the paper chooses too.
    """
    pool, game = play(data, split, 0)
    examples, members = game.audited
    seen, spare = pool.seen[game.fitting[0][:EXAMPLES]], game.fitting[1][:EXAMPLES]
    sets = propensity_bootstrap(seen, spare, pool.seen[examples], bootstraps=bootstraps, rng=rng)
    typical = np.median(sets, axis=0)
    odds, seed = np.log(typical) - np.log1p(-typical), int(rng.integers(2**63))
    rows = []
    for release in (TARGET, PLACEBO):
        which = {"data": data, "split": split, "seed": 0, "release": release}
        score = -told(HEADS if network == FEATURES else PIXELS, **which)
        for audit in DRAWN:
            correction, ranking = AUDITS[audit]
            options = {"correction": correction, "delta": DELTA, "rng": seed}
            single = [
                zero_run_bootstrap(one, members, sets, confidence=1.0 - 2 * LEVEL, **options)
                for one in guesses_of(ranking, score, odds)
            ]
            best = max(single, key=lambda bound: bound.details["mu"]).details
            about = {"release": release, "audit": audit, "quantile": best["mu"]}
            rows += [
                {**about, "mu": float(part.mean()), "sets": part.size}
                for part in np.array_split(np.sort(best["bounds"]), min(bootstraps, NEIGHBOURS))
            ]
    return rows
