"""The synthetic game of Figure 2a: members and others are pulled along a direction, and summed.

The paper leaves out the dimension, the pull and the grid. Here they are: 10,000 dimensions, so that
a record has a place of its own in the noise (they have to be many more than members times μ²), and
a pull of 2, which others get a share ρ of. Propensities are fitted in 3,000 dimensions too.
"""

import numpy as np

from auditkit.attacks.membership import inner_product
from auditkit.attacks.propensity import fit_propensity
from auditkit.experiment import study
from auditkit.mechanisms.noisy_sum import PulledSphere, noisy_sum
from experiments.zero_run.audits import EXAMPLES, audit_rows

MU = 0.66
WIDE = 3000  # dimensions beyond which a regression on all features takes minutes
TRUE, LINE, ESTIMATED = "true", "regression on the direction", "regression on all features"
TARGET, PLACEBO = "audited members", "other members"


@study(
    "zero-synthetic",
    tolerance=0.01,
    paper=[
        {"dimension": dimension, "pull": 2.0, "rho": rho, "seed": seed}
        for dimension, shares in (
            (10_000, (1.0, 0.98, 0.9, 0.75, 0.5, 0.25)),
            (3000, (1.0, 0.9, 0.5, 0.25)),
        )
        for rho in shares
        for seed in range(10)
    ],
    live={"dimension": [1000], "pull": [2.0], "rho": [1.0, 0.5], "seed": [0]},
    # in 3,000 dimensions propensities change places for a rounding error, and thinning draws anew
    reduced=[{"dimension": 50, "pull": 2.0, "rho": 0.25, "seed": seed} for seed in (0, 1)],
)
def known_leak(
    dimension: int, pull: float, rho: float, seed: int, rng: np.random.Generator
) -> list[dict]:
    """Release a noisy sum of the members, and one of others drawn like them, and audit both.

    The second leaks nothing about the audited members. The `seed` is another draw of everything.
    """
    del seed  # it is in the random stream
    family = PulledSphere(dimension, pull, rho * pull)
    members = rng.random(EXAMPLES) < 0.5
    records = family.draw(members, rng=rng)
    released = {TARGET: noisy_sum(records[members], sigma=1.0 / MU, rng=rng)}
    spare = rng.random(EXAMPLES) < 0.5  # a sample to fit propensities on, or to sum
    others = family.draw(spare, rng=rng)
    released[PLACEBO] = noisy_sum(others[spare], sigma=1.0 / MU, rng=rng)
    # the direction is the first axis, which none but the auditor of `LINE` knows
    propensities = {
        TRUE: family.propensity(records[:, 0]),
        LINE: fit_propensity(others[:, :1], spare, rng=rng).propensity(records[:, :1]),
    }
    if dimension <= WIDE:
        propensities[ESTIMATED] = fit_propensity(others, spare, rng=rng).propensity(records)
    return [
        {"release": release, "propensities": source, **row}
        for release, theta in released.items()
        for scores in (inner_product(records, theta),)
        for source, propensity in propensities.items()
        # the other members' sum knows the sample that propensities were fitted on
        if release == TARGET or source == TRUE
        for row in audit_rows(scores, members, propensity, fitted=source != TRUE, rng=rng)
    ]
