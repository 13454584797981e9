"""Noisy argmax on known histograms: what leaks, what theory says, and what each audit finds.

Three pairs of histograms, one vote apart: the pair of the paper, an easy query and a close contest
of as many teachers as PATE has.
"""

import itertools
import math
from functools import cache

import numpy as np

from auditkit import renyi_audit, renyi_divergence
from auditkit.accounting import data_dependent_renyi, data_independent_renyi
from auditkit.bounds.renyi import appendix_b_bound
from auditkit.experiment import study
from auditkit.mechanisms.voting import noisy_argmax_probabilities

ORDERS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
PAPER, EASY, CLOSE = "paper", "easy", "close contest"
CASES = {  # two histograms and σ
    PAPER: ((14, 12, 10, 8, 6), (13, 13, 10, 8, 6), 2.0),
    EASY: ((200, 20, 10, 10, 10), (199, 21, 10, 10, 10), 40.0),
    CLOSE: ((80, 79, 40, 30, 21), (79, 80, 40, 30, 21), 40.0),
}
MOST = 1e15  # trials that are looked at


@cache
def laws(case: str, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the law of the released label in both worlds, in one of two directions."""
    first, second, sigma = CASES[case]
    p, q = noisy_argmax_probabilities([first, second], sigma)
    return (p, q) if direction == "forward" else (q, p)


def cuts(outcomes: int) -> list[tuple[int, ...]]:
    """Return all sets of outcomes but none and all."""
    return [
        chosen
        for size in range(1, outcomes)
        for chosen in itertools.combinations(range(outcomes), size)
    ]


def best_cut(p: np.ndarray, q: np.ndarray, order: float) -> tuple[float, tuple[int, ...]]:
    """Return the largest divergence of any 2-cut, and the set that has it."""
    sets = cuts(len(p))
    coins = [[(law[list(chosen)].sum(),) for chosen in sets] for law in (p, q)]
    both = [np.concatenate([coin, 1.0 - np.array(coin)], axis=1) for coin in coins]
    values = renyi_divergence(*both, [order])[:, 0]
    best = int(values.argmax())
    return float(values[best]), sets[best]


# quantiles of resamples may fall on another resample where rounding orders them differently
@study(
    "pred-exact",
    tolerance=1e-6,
    paper={"case": list(CASES), "direction": ["forward", "backward"], "trials": [10**6, 10**8]},
    live={"case": [PAPER], "direction": ["forward", "backward"], "trials": [10**6]},
)
def audited(case: str, direction: str, trials: int, rng: np.random.Generator) -> list[dict]:
    """Audit once with every method, a row an order; the cut that is fixed is the best at order 2.

    ``dependent`` and ``independent`` are the two analyses of theory, `best_cut` what no 2-cut
    exceeds. ``corner`` is ours with the fixed cut, ``pilot`` with a cut chosen on a tenth.
    """
    p, q = laws(case, direction)
    votes = CASES[case][0 if direction == "forward" else 1]
    sigma = CASES[case][2]
    counts = [rng.multinomial(trials, law) for law in (p, q)]
    cut = best_cut(p, q, 2.0)[1]
    found = {
        "exact": renyi_divergence(p, q, ORDERS),
        "dependent": data_dependent_renyi(votes, sigma, ORDERS),
        "independent": data_independent_renyi(sigma, ORDERS),
        "best_cut": [best_cut(p, q, order)[0] for order in ORDERS],
        "corner": renyi_audit(*counts, ORDERS, cut=cut).epsilon,
        "pilot": renyi_audit(*counts, ORDERS, rng=rng).epsilon,
        "k_cut": renyi_audit(*counts, ORDERS, method="k-cut").epsilon,
        "bootstrap": renyi_audit(
            *counts, ORDERS, method="2-cut bootstrap", cut=cut, rng=rng
        ).epsilon,
        "k_cut_bootstrap": renyi_audit(*counts, ORDERS, method="k-cut bootstrap", rng=rng).epsilon,
        "appendix_b": appendix_b_bound(*counts, ORDERS, cut=cut).epsilon,
        "goodman": appendix_b_bound(*counts, ORDERS).epsilon,
    }
    return [
        {"order": order, **{name: float(values[place]) for name, values in found.items()}}
        for place, order in enumerate(ORDERS)
    ]


AUDITS = {
    "corner": lambda first, second, order, cut: renyi_audit(first, second, [order], cut=cut),
    "k-cut": lambda first, second, order, _: renyi_audit(first, second, [order], method="k-cut"),
    "Appendix B": lambda first, second, order, cut: appendix_b_bound(
        first, second, [order], cut=cut
    ),
    "Goodman": lambda first, second, order, _: appendix_b_bound(first, second, [order]),
}


@study(
    "pred-trials",
    tolerance=1e-6,
    paper={
        "case": list(CASES),
        "audit": list(AUDITS),
        "order": [2.0, 10.0, 50.0],
        "share": [0.5, 0.9],
    },
    live={"case": [CLOSE], "audit": list(AUDITS), "order": [2.0], "share": [0.9]},
)
def trials_needed(case: str, audit: str, order: float, share: float) -> dict:
    """Count the trials that an audit needs, in either world, to find a share of the best 2-cut.

    So much can be found by each audit; what leaks is `exact`. Counts are the expected ones,
    rounded; the direction is that of the larger divergence.
    ``trials`` is infinite where 10¹⁵ are not enough.
    """
    pairs = [laws(case, direction) for direction in ("forward", "backward")]
    p, q = max(pairs, key=lambda pair: renyi_divergence(*pair, [order])[0])
    exact = float(renyi_divergence(p, q, [order])[0])
    goal, cut = best_cut(p, q, order)
    row = {"exact": exact, "best_cut": goal}

    def found(trials: float) -> float:
        counts = [np.rint(trials * law) for law in (p, q)]
        return float(AUDITS[audit](*counts, order, cut).epsilon[0])

    low, high = 2.0, math.log10(MOST)
    if found(10.0**high) < share * goal:
        return {**row, "trials": math.inf}
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if found(10.0**middle) >= share * goal else (middle, high)
    return {**row, "trials": 10.0**high}


@study("pred-group", paper={"case": list(CASES), "points": [1, 2, 4, 8], "order": [2.0, 10.0]})
def several_votes(case: str, points: int, order: float) -> dict:
    """Move the votes of several teachers from the leading class to the next, one teacher a point.

    ``exact`` is the larger of the two directions; ``gaussian`` the bound for that many votes,
    ``general`` that of group privacy for any mechanism with the Gaussian bound for one point.
    """
    votes, _, sigma = CASES[case]
    moved = np.array([votes, votes], dtype=float)
    moved[1, :2] += (-points, points)
    p, q = noisy_argmax_probabilities(moved, sigma)
    both = [float(renyi_divergence(*pair, [order])[0]) for pair in ((p, q), (q, p))]
    one = float(data_independent_renyi(sigma, [order])[0])
    doublings = math.ceil(math.log2(points))
    # (2^c α, ε) for one point gives (α, 3^c ε) for 2^c points
    return {
        "exact": max(both),
        "gaussian": points**2 * one,
        "general": 3.0**doublings * 2.0**doublings * one,
    }
