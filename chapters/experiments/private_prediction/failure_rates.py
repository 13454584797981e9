"""How often each audit of a Rényi divergence exceeds the truth: Table 2 of the paper, measured.

The paper's pair of histograms, a close contest where one vote of 250 hardly matters, and two pairs
of worlds that are the same, of five labels and of ten.
"""

from collections.abc import Callable

import numpy as np

from auditkit import Bound, renyi_audit, renyi_divergence
from auditkit.bounds.clopper_pearson import limits
from auditkit.bounds.renyi import appendix_b_bound
from auditkit.experiment import study
from experiments.private_prediction.exact import CLOSE, PAPER, best_cut, laws

ORDERS = (1.5, 2.0, 5.0, 20.0, 50.0)
ZERO, ZERO_TEN = "zero", "zero, ten labels"
Audit = Callable[..., Bound]


def fixed(method: str) -> Audit:
    """Return an audit with the cut that the exact laws recommend."""
    return lambda first, second, cut, rng: renyi_audit(
        first, second, ORDERS, method=method, cut=cut, rng=rng
    )


def free(method: str) -> Audit:
    """Return an audit that chooses for itself, or needs no cut."""
    return lambda first, second, _, rng: renyi_audit(first, second, ORDERS, method=method, rng=rng)


def chosen_afterwards(first: np.ndarray, second: np.ndarray) -> Bound:
    """Return the bound of the set that looks best on the very counts that it is tested on.

    The best set for any order collects the outcomes of the largest ratios.
    """
    ranked = np.argsort(-(first + 0.5) / (second + 0.5), kind="stable")
    bounds = [
        renyi_audit(first, second, ORDERS, cut=ranked[:size].tolist())
        for size in range(1, len(first))
    ]
    return max(bounds, key=lambda bound: bound.epsilon.sum())


AUDITS: dict[str, Audit] = {
    "2-cut": fixed("2-cut"),
    "2-cut, pilot": free("2-cut"),
    "2-cut, chosen afterwards": lambda first, second, *_: chosen_afterwards(first, second),
    "k-cut": free("k-cut"),
    "2-cut, Appendix B": lambda first, second, cut, _: appendix_b_bound(
        first, second, ORDERS, cut=cut
    ),
    "k-cut, Goodman": lambda first, second, *_: appendix_b_bound(first, second, ORDERS),
    "2-cut bootstrap": fixed("2-cut bootstrap"),
    "k-cut bootstrap": free("k-cut bootstrap"),
}
SLOW = [name for name in AUDITS if "bootstrap" in name or "after" in name]
ROUNDING = 1e-12  # a bound of 0 may come out a little above it


def grid(repeats: int, resampled: int, trials: list[int]) -> list[dict]:
    """Return the cells; what is slow is repeated less often."""
    return [
        {
            "case": case,
            "audit": audit,
            "trials": count,
            "simulations": resampled if audit in SLOW else repeats,
        }
        for case in (PAPER, CLOSE, ZERO, ZERO_TEN)
        for audit in AUDITS
        for count in trials
    ]


# a count of failures moves by 1 where a bound within rounding of the truth does
@study(
    "pred-failure-rates",
    tolerance=1e-3,
    paper=grid(10_000, 4_000, [10**4, 10**6]),
    live=grid(300, 100, [10**6]),
)
def failing(
    case: str, audit: str, trials: int, simulations: int, rng: np.random.Generator
) -> list[dict]:
    """Repeat an audit; a row an order, and one, without an order, for a failure at any.

    ``share`` of ``failures`` in the simulations lies between ``low`` and ``high`` with 95%.
    ``mean`` is that of the bounds.
    """
    if case in (ZERO, ZERO_TEN):
        p = laws(PAPER, "forward")[0] if case == ZERO else np.full(10, 0.1)
        q, truth, cut = p, np.zeros(len(ORDERS)), (0,)
    else:
        p, q = laws(case, "backward")
        truth, cut = renyi_divergence(p, q, ORDERS), best_cut(p, q, 2.0)[1]
    counts = [rng.multinomial(trials, law, size=simulations) for law in (p, q)]
    bounds = np.array(
        [
            AUDITS[audit](first, second, cut, rng).epsilon
            for first, second in zip(*counts, strict=True)
        ]
    )
    above = bounds > truth + ROUNDING
    rows = []
    for place, order in enumerate((*ORDERS, None)):
        failed = above.any(axis=1) if order is None else above[:, place]
        low, high = limits(failed.sum(), simulations, 0.025)
        rows.append(
            {
                "order": order,
                "failures": int(failed.sum()),
                "share": float(failed.mean()),
                "low": float(low),
                "high": float(high),
                "truth": None if order is None else float(truth[place]),
                "mean": None if order is None else float(bounds[:, place].mean()),
            }
        )
    return rows
