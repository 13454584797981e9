"""The worst pair of datasets: accountants, audits, and where the Gaussian step goes wrong.

`worst_pair` is Figure 1 of SUB, `accountants` its Figure A5. `gaussian_step` is not in the paper:
on the same pair, whose laws are known, it holds what an audit says against what there is to find.
"""

import numpy as np
from scipy.special import ndtri

from auditkit import (
    Bound,
    Fixed,
    GaussianDP,
    Split,
    audit_scores,
    dp_sgd_epsilon,
    group_privacy,
    noise_multiplier_for,
    two_worlds,
)
from auditkit.evidence import ErrorCounts, Scores
from auditkit.experiment import study
from auditkit.mechanisms.worst_case import FinalSum, simulate_steps

DELTA = 1e-5
STEPS = 500
REPEATS = 3
# Nothing here depends on threads. On another machine the noise for a promise may differ in its last
# digits, and a sum can then pass a cut.
TOLERANCE = 1e-3
METHODS = {"gaussian": "gaussian", "clopper-pearson": "approx"}  # and what audit_scores calls it

# --- Figure 1: what an audit finds on the worst pair ----------------------------------------------


@study(
    "sub-worst-case",
    tolerance=TOLERANCE,
    paper={
        "sampling_rate": [1.0, 0.25, 0.0625],
        "epsilon": [1.0, 2.0, 4.0, 8.0, 10.0],
        "runs": [25_000],
    },
    live={"sampling_rate": [1.0, 0.0625], "epsilon": [4.0, 10.0], "runs": [5_000]},
)
def worst_pair(
    sampling_rate: float, epsilon: float, runs: int, *, rng: np.random.Generator
) -> list[dict]:
    """Audit DP-SGD of a given ε under substitution on the worst pair, three times.

    Parameters
    ----------
    sampling_rate, epsilon : float
        q, and the ε_S for which the noise is chosen.
    runs : int
        Runs of a repeat, half of them with z'.

    Returns
    -------
    list of dict
        A row for each repeat, adversary, way to choose the threshold, and method: the audited
        ``audited``, whether it ``is_bound``, and the numbers to hold it against, which are the same
        in all rows of a cell.
    """
    noise = noise_multiplier_for(
        epsilon, sampling_rate=sampling_rate, steps=STEPS, delta=DELTA, adjacency="substitute"
    )
    law = FinalSum(noise, sampling_rate, STEPS)
    known = {
        "noise_multiplier": noise,
        **promises(noise, sampling_rate),
        "exact_final_sum": law.epsilon(DELTA),
    }
    bits = np.arange(runs) % 2
    rows = []
    for repeat in range(REPEATS):
        seen = simulate_steps(
            bits, noise_multiplier=noise, sampling_rate=sampling_rate, steps=STEPS, rng=rng
        )
        scores = {
            "final sum": law.log_ratio(seen.sums[:, 0]),
            "every step": seen.log_ratios[:, 0],
        }
        rows += [
            {"repeat": repeat, "adversary": adversary, **row, **known}
            for adversary, score in scores.items()
            for row in _audits(score, bits, law, rng)
        ]
    return rows


def _audits(
    scores: np.ndarray, bits: np.ndarray, law: FinalSum, rng: np.random.Generator
) -> list[dict]:
    """Audit with each way to choose a threshold, with and without the Gaussian step."""
    splits = _splits(int(rng.integers(2**31)))
    rows = []
    for method, family in METHODS.items():
        cut = float(law.log_ratio(cut_from_the_law(law, len(bits) // 2, method)))
        thresholds = {**splits, "from the law": Fixed(cut)}
        found = {
            name: audit_scores(
                scores, bits, method="two-worlds", threshold=threshold, family=family, delta=DELTA
            )
            for name, threshold in thresholds.items()
        }
        rows.append(_row("best of all", method, best_of_all(scores, bits, method), is_bound=False))
        rows += [_row(name, method, bound.epsilon, is_bound=True) for name, bound in found.items()]
    return rows


def _row(threshold: str, method: str, audited: float, *, is_bound: bool) -> dict:
    return {"threshold": threshold, "method": method, "audited": audited, "is_bound": is_bound}


def _splits(seed: int) -> dict[str, Split]:
    return {
        "half and half": Split(0.5, seed=seed),
        "midpoint": Split(0.2, seed=seed, rule="midpoint"),
    }


def cut_from_the_law(law: FinalSum, runs: int, method: str) -> float:
    """Return the cut through the final sum that promises most, before any run is made.

    On the worst pair an auditor knows the laws of both worlds, hence which errors to expect in
    `runs` runs of each, and what they would prove. Without the Gaussian step the best cut leaves
    next to no false positives.
    """
    false_positives = np.unique(np.geomspace(1, runs // 2, 100).round())
    rates = false_positives / runs
    missed = np.asarray(law.beta(rates))
    counts = ErrorCounts(false_positives, runs, np.round(runs * missed), runs)
    promised = np.asarray(_bound(counts, method).epsilon)
    return float(law.cut(rates[promised.argmax()]))


def best_of_all(scores: np.ndarray, bits: np.ndarray, method: str) -> float:
    """Return what SUB seems to report: the best cut of all, each limit with its own level.

    The paper says neither how its threshold is fixed nor how its level is shared. The number is no
    lower bound.
    """
    evidence = Scores(scores, bits)
    counts = ErrorCounts.at(evidence, np.unique(evidence.values[evidence.members]))
    return float(np.max(_bound(counts, method, paper_convention=True).epsilon))


def _bound(counts: ErrorCounts, method: str, *, paper_convention: bool = False) -> Bound:
    return two_worlds(
        counts.false_positives,
        counts.negatives,
        counts.false_negatives,
        counts.positives,
        method=method,
        delta=DELTA,
        paper_convention=paper_convention,
    )


def promises(noise: float, sampling_rate: float, steps: int = STEPS) -> dict[str, float | None]:
    """Return the ε of the accountants, and what group privacy makes of the one for add/remove.

    Group privacy is None where it would have to ask the accountant for a δ that it does not know.
    """

    def epsilon(delta: float, adjacency: str) -> float:
        return dp_sgd_epsilon(
            noise_multiplier=noise,
            sampling_rate=sampling_rate,
            steps=steps,
            delta=delta,
            adjacency=adjacency,
        )

    def known(delta: float) -> float:
        # Below 1e-10 the accountant answers for q = 1 only; that all may be lost is always true.
        return epsilon(delta, "add/remove") if sampling_rate == 1.0 or delta >= 1e-10 else np.inf

    group = group_privacy(known, DELTA)
    return {
        "add_remove": epsilon(DELTA, "add/remove"),
        "substitute": epsilon(DELTA, "substitute"),
        "group_privacy": group if np.isfinite(group) else None,
    }


# --- Figure A5: the accountants -------------------------------------------------------------------


@study(
    "sub-accountants",
    tolerance=TOLERANCE,
    paper={
        "sampling_rate": [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.01],
        "noise_multiplier": [float(noise) for noise in np.round(2.0 ** np.arange(-1, 6.5, 0.5), 4)],
    },
    live={"sampling_rate": [1.0, 0.0625], "noise_multiplier": [1.0, 4.0, 16.0]},
)
def accountants(sampling_rate: float, noise_multiplier: float) -> dict:
    """Return what each adjacency promises for the same training."""
    return promises(noise_multiplier, sampling_rate)


# --- beyond the paper: the Gaussian step ----------------------------------------------------------

RATE = 1e-6  # an error rate below this no audit can measure


@study(
    "sub-gaussian-step",
    tolerance=TOLERANCE,
    paper={
        "sampling_rate": [1.0, 0.9, 0.5, 0.25, 0.0625],
        "steps": [1, 2, 5, 20, 100, 500],
        "epsilon": [4.0, 10.0],
        "runs": [2_500],
        "simulations": [200],
    },
    live={
        "sampling_rate": [0.9, 0.25],
        "steps": [1, 500],
        "epsilon": [10.0],
        "runs": [2_500],
        "simulations": [20],
    },
)
def gaussian_step(
    sampling_rate: float,
    steps: int,
    epsilon: float,
    runs: int,
    simulations: int,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Hold the Gaussian step, and whole audits with it, against the true ε.

    Parameters
    ----------
    sampling_rate, steps, epsilon
        q, T, and the ε_S for which the noise is chosen.
    runs, simulations : int
        Runs of an audit, half of them with z', and how many audits are made.

    Returns
    -------
    list of dict
        For each method and way to choose the threshold, the ``mean`` audited ε and in how many of
        the simulations it ``exceeded`` the true ε, which is the accountant's ``substitute``.
        ``at_midpoint`` and ``at_best`` are what the method says of the exact error rates of the
        final sum, at the cut halfway between the worlds and at the best one whose rates are both at
        least 1e-6, which is that with a false positive rate of ``best_rate``.
    """
    noise = noise_multiplier_for(
        epsilon, sampling_rate=sampling_rate, steps=steps, delta=DELTA, adjacency="substitute"
    )
    law = FinalSum(noise, sampling_rate, steps)
    known = {
        "noise_multiplier": noise,
        "substitute": dp_sgd_epsilon(
            noise_multiplier=noise,
            sampling_rate=sampling_rate,
            steps=steps,
            delta=DELTA,
            adjacency="substitute",
        ),
        "exact_final_sum": law.epsilon(DELTA),
    }
    bits = np.arange(runs) % 2
    # the sum itself is scored: the log-likelihood ratio is a function of it that only ever falls
    cuts = {method: -cut_from_the_law(law, runs // 2, method) for method in METHODS}
    audited: dict[tuple[str, str], list[float]] = {}
    for _ in range(simulations):
        scores, seed = -law.draw(bits, rng=rng), int(rng.integers(2**31))
        for method, threshold, value in _whole_audits(scores, bits, cuts, seed):
            audited.setdefault((method, threshold), []).append(value)
    exact = {method: _of_exact_rates(law, method) for method in METHODS}
    return [
        {
            "method": method,
            "threshold": threshold,
            "is_bound": threshold != "best of all",
            "mean": float(np.mean(values)),
            "exceeded": int(np.sum(np.array(values) > known["substitute"])),
            **exact[method],
            **known,
        }
        for (method, threshold), values in audited.items()
    ]


def _whole_audits(
    scores: np.ndarray, bits: np.ndarray, cuts: dict[str, float], seed: int
) -> list[tuple[str, str, float]]:
    """Return what is audited of the runs, for each method and way to choose the threshold."""
    evidence = Scores(scores, bits)
    found = []
    for method, family in METHODS.items():
        # the worlds mirror each other, so that 0 is halfway between them
        fixed = _bound(ErrorCounts.at(evidence, [0.0, cuts[method]]), method).epsilon
        found += [
            (method, "fixed at 0", float(fixed[0])),
            (method, "from the law", float(fixed[1])),
            (method, "best of all", best_of_all(scores, bits, method)),
        ]
        for name, split in _splits(seed).items():
            bound = audit_scores(
                scores, bits, method="two-worlds", threshold=split, family=family, delta=DELTA
            )
            found.append((method, name, float(bound.epsilon)))
    return found


def _of_exact_rates(law: FinalSum, method: str) -> dict[str, float]:
    """Return what the method makes of error rates that are known."""
    middle = _middle(law)
    rates = np.append(np.geomspace(RATE, 0.5, 200), middle)
    missed = np.asarray(law.beta(rates))
    if method == "gaussian":
        mu = np.maximum(-ndtri(rates) - ndtri(missed), 0.0)
        values = np.asarray(GaussianDP(mu).epsilon(DELTA))
    else:
        values = np.log(np.maximum((1.0 - DELTA - missed) / rates, 1.0))
    measurable = np.where((rates >= RATE) & (missed >= RATE), values, -np.inf)
    best = int(measurable.argmax())
    return {
        "at_midpoint": float(values[-1]),
        "at_best": float(values[best]),
        "best_rate": float(rates[best]),
    }


def _middle(law: FinalSum) -> float:
    """Return the error rate, the same in both worlds, of the cut at 0: half of 1 less δ(0)."""
    return 0.5 * (1.0 - float(law.delta(0.0)))
