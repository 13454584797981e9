"""Figure 2a by the paper's whole procedure: fitted propensities and the quantile of resamples.

As the synthetic game, in as many dimensions as a regression can take: there every correction is
made with true propensities, with one regression, and with one for each resample, of whose bounds
the lower quantile counts.
"""

import numpy as np

from auditkit.attacks.membership import inner_product
from auditkit.attacks.propensity import fit_propensity, propensity_bootstrap
from auditkit.experiment import study
from auditkit.mechanisms.noisy_sum import PulledSphere, noisy_sum
from experiments.zero_run.audits import EXAMPLES, audit_rows
from experiments.zero_run.synthetic import ESTIMATED, MU, PLACEBO, TARGET, TRUE, WIDE

RESAMPLED = "bootstrapped"


@study(
    "zero-procedure",
    # in many dimensions propensities change places for a rounding error, and thinning draws anew
    tolerance=0.01,
    paper={
        "dimension": [WIDE],
        "rho": [1.0, 0.9, 0.5, 0.25],
        "seed": list(range(6)),
        "bootstraps": [200],
    },
    live={"dimension": [300], "rho": [0.5], "seed": [0], "bootstraps": [20]},
    reduced=[{"dimension": 50, "rho": 0.25, "seed": seed, "bootstraps": 5} for seed in (1, 2)],
)
def whole_procedure(
    dimension: int, rho: float, seed: int, bootstraps: int, rng: np.random.Generator
) -> list[dict]:
    """Audit the sum of the members, and one of others, with three kinds of propensities."""
    del seed  # it is in the random stream
    family = PulledSphere(dimension, 2.0, 2.0 * rho)
    members, spare, third = (rng.random(EXAMPLES) < 0.5 for _ in range(3))
    records, others = family.draw(members, rng=rng), family.draw(spare, rng=rng)
    released = {
        TARGET: noisy_sum(records[members], sigma=1.0 / MU, rng=rng),
        # members in neither sample: the regression has not met them
        PLACEBO: noisy_sum(family.draw(third, rng=rng)[third], sigma=1.0 / MU, rng=rng),
    }
    propensities = {
        TRUE: family.propensity(records[:, 0]),
        ESTIMATED: fit_propensity(others, spare, rng=rng).propensity(records),
        RESAMPLED: propensity_bootstrap(others, spare, records, bootstraps=bootstraps, rng=rng),
    }
    return [
        {"release": release, "propensities": source, **row}
        for release, theta in released.items()
        for scores in (inner_product(records, theta),)
        for source, propensity in propensities.items()
        for row in audit_rows(scores, members, propensity, fitted=source != TRUE, rng=rng)
    ]
