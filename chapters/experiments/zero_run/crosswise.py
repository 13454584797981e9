"""Algorithm 4: propensities that are fitted on the audited examples themselves, crosswise.

Who has no examples to spare fits on one half and audits the other, and the other way round. The fit
of a half has seen memberships that the audit counts. Does a leak appear where there is none? The
mechanism is that of `validity`, which has not met the audited examples: μ = 0, and a bound above 0
is false.
"""

import numpy as np

from auditkit.attacks.propensity import cross_fit, fit_propensity
from auditkit.experiment import study
from experiments.zero_run.audits import EXAMPLES, LEVEL
from experiments.zero_run.validity import CHOICES, audits, draw

APART, HALF, CROSSWISE = "other examples", "half as many others", "crosswise"


@study(
    "zero-cross-fit",
    # regressions stop a little before the root: now and then a run falls on the border's other side
    tolerance=0.02,
    paper=[
        {"dimension": dimension, "rho": rho, "runs": 100, "batch": batch}
        for dimension, several in ((10, 10), (50, 10), (300, 4))
        for rho in (1.0, 0.5)
        for batch in range(several)
    ],
    live=[{"dimension": 10, "rho": 0.5, "runs": 5, "batch": 0}],
    reduced=[{"dimension": 10, "rho": rho, "runs": 5, "batch": 0} for rho in (1.0, 0.5)],
)
def false_bounds_crosswise(
    dimension: int, rho: float, runs: int, batch: int, rng: np.random.Generator
) -> list[dict]:
    """Repeat the audit of a mechanism that leaks nothing, with fits of the same size and of twice.

    "other examples" fits on 10,000 others, "half as many others" on 5,000, which is what each fit
    of "crosswise" has. The `batch` is another draw of everything. ``exceeding`` is the share of
    runs with a bound above 0.
    """
    del batch  # it is in the random stream
    false: dict[tuple[str, str, str, str], int] = {}
    for _ in range(runs):
        _, spare, others, records, game = draw(dimension, rho, rng)
        half = EXAMPLES // 2
        crosswise = cross_fit(records, game.members, rng=rng)
        sources = {
            APART: fit_propensity(others, spare, rng=rng).log_odds(records),
            HALF: fit_propensity(others[:half], spare[:half], rng=rng).log_odds(records),
            CROSSWISE: np.log(crosswise) - np.log1p(-crosswise),
        }
        for source, odds in sources.items():
            for (correction, ranking), found in audits(game, odds, LEVEL).items():
                for choice, above in zip(CHOICES, found, strict=True):
                    key = (source, correction, ranking, choice)
                    false[key] = false.get(key, 0) + bool(above)
    return [
        {
            "propensities": source,
            "correction": correction,
            "ranking": ranking,
            "choice": choice,
            "level": LEVEL,
            "exceeding": count / runs,
        }
        for (source, correction, ranking, choice), count in false.items()
    ]
