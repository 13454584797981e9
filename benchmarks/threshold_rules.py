"""Which rule for choosing guesses shows most, and how much it leaves to luck.

Scores of a Gaussian mechanism are drawn again and again, and each rule is given the same ones. The
median of its bounds says what it is worth, the distance between quartiles what the draw of the
scores, and of the rule's own splits, makes of it. The default of `audit_scores` is the rule that
comes out best.
"""

from typing import Any

import numpy as np

from auditkit import Bonferroni, MultiSplit, Split, audit_scores
from auditkit.experiment import study

DELTA = 1e-5
VALUES = 12  # to which scores are rounded where there are to be ties
GAMES: dict[str, dict[str, str]] = {
    "one-run": {"method": "one-run"},
    "one-run-fdp": {"method": "one-run-fdp"},
    "two-worlds": {"method": "two-worlds"},
    "two-worlds, Gaussian": {"method": "two-worlds", "family": "gaussian"},
}
RULES = {
    "Split(0.5)": Split(0.5),
    "Split(0.2)": Split(0.2),
    "Split(0.2, rule='midpoint')": Split(0.2, rule="midpoint"),
    "MultiSplit(21)": MultiSplit(21),
    "Bonferroni(5)": Bonferroni(5),
    "Bonferroni(10)": Bonferroni(10),
    "Bonferroni(20)": Bonferroni(20),
}


@study(
    "threshold-rules",
    tolerance=1e-6,
    paper={
        "game": list(GAMES),
        "mu": [0.5, 1.0, 2.0, 4.0],
        "examples": [500, 2_000, 10_000],
        "ties": [False, True],
        "draws": [100],
    },
)
def compared(
    game: str, mu: float, examples: int, ties: bool, draws: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Audit the same scores by every rule, and return what each of them comes to."""
    found: dict[str, list[float]] = {rule: [] for rule in RULES}
    for _ in range(draws):
        members = rng.random(examples) < 0.5
        scores = rng.normal(mu * members)
        if ties:
            scores = np.round(scores * VALUES / (4.0 + mu))
        for name, rule in RULES.items():
            bound = audit_scores(scores, members, threshold=rule, delta=DELTA, **GAMES[game])
            found[name].append(float(bound.epsilon))
    rows = []
    for rule, bounds in found.items():
        low, median, high = np.quantile(bounds, [0.25, 0.5, 0.75]).tolist()
        rows.append({"rule": rule, "median": median, "quartile_1": low, "quartile_3": high})
    return rows
