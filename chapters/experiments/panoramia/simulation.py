"""What the number says where c and ε are known, with and without a union bound.

Examples carry a mark or do not; c is the log-odds that the mark gives away. The model says of each
example whether it was a member, by randomised response with ε.
"""

import numpy as np
from scipy.special import betaincinv, expit, logit

from auditkit import panoramia
from auditkit.experiment import study

MARKED = 0.5  # of the real examples
UNION, ALONE = "union bound", "no union bound"


@study(
    "pan-known",
    paper={
        "closeness": [0.5, 2.4],
        "epsilon": [0.0, 1.0],
        "noise": [0.0, 1.0, 2.0, 4.0],
        "pairs": [10_000],
        "repeats": [100],
    },
    live={
        "closeness": [2.4],
        "epsilon": [0.0],
        "noise": [0.0, 4.0],
        "pairs": [10_000],
        "repeats": [10],
    },
)
def known(
    closeness: float,
    epsilon: float,
    noise: float,
    pairs: int,
    repeats: int,
    rng: np.random.Generator,
) -> list[dict]:
    r"""Measure a model of known ε with a generator of known c, by a baseline that sees it blurred.

    Half of the real examples carry the mark and :math:`e^{-c}/2` of the generated ones, so that c
    is the largest log-odds of being real given the example. The attack sees the mark and what the
    model says. The baseline sees the log-odds of the mark with normal noise of this deviation.
    ``missed`` says how often a bound exceeded the truth, ``above`` how often ε̃ exceeded ε.
    """
    mark, fake_mark = MARKED, MARKED * np.exp(-closeness)
    found: dict[str, list[tuple[float, float]]] = {UNION: [], ALONE: []}
    for _ in range(repeats):
        real = rng.random(pairs) < 0.5
        marked = rng.random(pairs) < np.where(real, mark, fake_mark)
        told = (rng.random(pairs) < expit(epsilon)) == real
        odds = np.where(marked, closeness, np.log((1.0 - mark) / (1.0 - fake_mark)))
        # the attack's noise orders equal scores only: real audits have as many thresholds as pairs
        blur = rng.normal(size=(2, pairs))
        baseline = odds + max(noise, 1e-6) * blur[0]
        attack = odds + np.where(told, epsilon, -epsilon) + 1e-6 * blur[1]
        result = panoramia(baseline, attack, real)
        found[UNION].append((result.c_lower, result.c_plus_epsilon_lower))
        found[ALONE].append((alone(baseline, real), alone(attack, real)))
    rows = []
    for correction, several in found.items():
        c, both = np.array(several).T
        difference = both - c
        low, high = np.quantile(difference, (0.025, 0.975))
        rows.append(
            {
                "correction": correction,
                "c_lower": float(c.mean()),
                "both_lower": float(both.mean()),
                "difference": float(difference.mean()),
                "difference_low": float(low),
                "difference_high": float(high),
                "c_missed": float((c > closeness).mean()),
                "both_missed": float((both > closeness + epsilon).mean()),
                "above": float((difference > epsilon).mean()),
            }
        )
    return rows


def alone(scores: np.ndarray, real: np.ndarray, level: float = 0.025) -> float:
    """Return the best bound over all thresholds, each of them at the full level."""
    correct = np.cumsum(real[np.argsort(-scores, kind="stable")])
    guesses = np.arange(1, len(real) + 1)
    some = correct > 0
    bounds = logit(betaincinv(correct[some], (guesses - correct)[some] + 1.0, level))
    return max(0.0, float(bounds.max(initial=0.0)))
