"""Small games whose truth is known: one for each theorem that the chapter puts to the test."""

from functools import cache

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from auditkit import GaussianDP, one_run, one_run_fdp, reject_propensity, zero_run
from auditkit.attacks.membership import top_guesses
from auditkit.attacks.propensity import fit_propensity
from auditkit.bounds.poisson_binomial import largest_epsilon
from auditkit.experiment import study
from experiments.validity import clopper_pearson
from experiments.zero_run.audits import DELTA, LEVEL

EXAMPLES = 10_000


def play(
    examples: int, shift: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log-odds of membership that are spread normally, memberships, and these as signs."""
    odds = shift * rng.normal(size=examples)
    members = rng.random(examples) < expit(odds)
    return odds, members, np.where(members, 1, -1)


def share(count: int, runs: int) -> dict:
    """Return how often something was seen, with its 95% confidence interval."""
    low, high = clopper_pearson(count, runs)
    return {"exceeding": count, "share": count / runs, "low": low, "high": high}


# right and wrong propensities

SCALES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.25, 1.5, 2.0)


@study(
    "zero-channel",
    tolerance=1e-6,  # searches end some 1e-8 from the root
    paper=[
        {"mu": mu, "scale": scale, "runs": 2000 if scale in (0.5, 1.0) else 500}
        for mu in (0.0, 0.4, 1.0, 2.0)
        for scale in (SCALES if mu in (0.0, 1.0) else (1.0,))
    ],
    live={"mu": [0.0, 1.0], "scale": [0.8, 1.0], "runs": [40]},
)
def channel(mu: float, scale: float, runs: int, rng: np.random.Generator) -> list[dict]:
    """Audit a mechanism that is as bad as μ allows, with log-odds that are off by a factor.

    It releases each membership with noise of its own. The attack knows the true log-odds and the
    release, and guesses on 1,000 examples where most guesses are kept. With a factor above 1
    propensities are pessimistic, below 1 optimistic.
    """
    found: dict[str, list[float]] = {"none": [], "composition": [], "conditional": [], "sharp": []}
    for _ in range(runs):
        odds, members, truth = play(EXAMPLES, 1.0, rng)
        evidence = odds + mu * rng.normal(0.5 * mu * truth)
        believed = expit(scale * odds)
        keep = np.exp(-np.abs(scale * odds))
        for correction, bounds in found.items():
            kept = {"conditional": keep, "sharp": 0.5 * (1.0 + keep)}.get(correction, 1.0)
            guesses = top_guesses(evidence, 1000, worth=kept * expit(np.abs(evidence)))
            bound = zero_run(
                guesses,
                members,
                believed,
                correction=correction,
                delta=DELTA,
                confidence=1.0 - LEVEL,
                rng=rng,
            )
            bounds.append(bound.details["mu"])
    return [
        {
            "correction": correction,
            "level": LEVEL,
            **share(int(np.sum(np.array(bounds) > mu)), runs),
            "mean_mu": float(np.mean(bounds)),
        }
        for correction, bounds in found.items()
    ]


# (ε, δ)

EPSILON, COINS, GUESSES = 1.0, 4000, 500
PRINTED = "Algorithm 9 as printed"
SIXTH, PRINTED_SIXTH = "Algorithm 6, sign mended", "Algorithm 6 as printed"


@study(
    "zero-response",
    tolerance=1e-6,
    paper={"shift": [0.0, 0.5, 1.0, 2.0], "delta": [0.0, 1e-6, 1e-5], "runs": [2000]},
    live={"shift": [1.0], "delta": [0.0], "runs": [40]},
)
def response(shift: float, delta: float, runs: int, rng: np.random.Generator) -> list[dict]:
    """Audit randomised response with ε = 1 at some δ, by each of the (ε, δ) audits.

    "composition" reads the count by the law of `one_run`. Algorithm 6, which takes the largest
    shift off as well, reads it by Theorem 5.2 of the paper that started one-run audits.
    """
    audits = ("none", "conditional", "untampered", "composition")
    sixth = {SIXTH: False, PRINTED_SIXTH: True}
    found: dict[str, list[float]] = {name: [] for name in (*audits, *sixth, PRINTED)}
    for _ in range(runs):
        odds, members, truth = play(COINS, shift, rng)
        shifts = np.abs(odds)
        reports = np.where(rng.random(COINS) < expit(EPSILON), truth, -truth)
        evidence = odds + EPSILON * reports
        chance = expit(np.abs(evidence))
        thinned = chance * (1.0 + np.exp(-EPSILON - shifts)) / (1.0 + np.exp(-EPSILON))
        for name in audits:
            worth = {"conditional": thinned, "untampered": chance - expit(shifts)}.get(name, chance)
            bound = zero_run(
                top_guesses(evidence, GUESSES, worth=worth),
                members,
                expit(odds),
                correction=name,
                family="approx",
                delta=delta,
                rng=rng,
            )
            found[name].append(float(bound.epsilon))
        for name, printed in sixth.items():
            limit = sixth_limit(bound.details["correct"], delta, printed)
            found[name].append(max(limit - float(shifts.max()), 0.0))
        if delta == 0.0:  # with δ its u would have to be defined
            guesses = top_guesses(evidence, GUESSES, worth=chance * np.exp(-shifts))[0]
            kept = (guesses == truth) & (rng.random(COINS) < np.exp(-shifts))
            found[PRINTED].append(largest_epsilon(shifts[guesses != 0], int(kept.sum()), 0.05))
    return [
        {
            "audit": name,
            "level": 0.05,
            **share(int(np.sum(np.array(bounds) > EPSILON)), runs),
            "mean_epsilon": float(np.mean(bounds)),
        }
        for name, bounds in found.items()
        if bounds
    ]


@cache
def sixth_limit(correct: int, delta: float, printed: bool) -> float:
    """Return the largest ε that Algorithm 6 rejects without a shift, at a level of 5%."""
    if not printed:
        return float(one_run(correct, GUESSES, COINS, delta=delta, method="steinke").epsilon)
    low, high = 0.0, 30.0
    if printed_chance(correct, GUESSES, COINS, delta, 0.0) > 0.05:
        return 0.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if printed_chance(correct, GUESSES, COINS, delta, middle) <= 0.05:
            low = middle
        else:
            high = middle
    return low


def printed_chance(correct: int, guesses: int, coins: int, delta: float, epsilon: float) -> float:
    """Return what line 6 of Algorithm 6 compares with the level, as printed.

    Its tail g falls, so that g(v) - g(v - i) is below 0: the term for δ lowers the chance, and the
    audit rejects more than it would at δ = 0. The theorem it comes from has g(v - i) - g(v).
    """
    back = np.arange(1, coins + 1)
    tail = binom.sf(correct - 1, guesses, expit(epsilon))
    earlier = binom.sf(correct - back - 1, guesses, expit(epsilon))
    return float(tail + 2.0 * coins * delta * ((tail - earlier) / back).max())


# Proposition 1


def weighted_rates(
    guessed: np.ndarray, members: np.ndarray, propensity: np.ndarray
) -> tuple[float, float]:
    """Return the rates of guesses "member" on members and on others, as if both were alike.

    Each example weighs as much as there are of its kind: one over its chance to be of its side. On
    average, f-DP allows no more than the rate on members that belongs to the rate on others.
    """
    own = (guessed & members) / propensity
    other = (guessed & ~members) / (1.0 - propensity)
    return float(own.mean()), float(other.mean())


# can a propensity model be rejected

MODELS = ("true", "120%", "95%", "80%", "50%", "constant", "a feature missing", "regression")


@study(
    "zero-rejection",
    # regressions stop a little before the root: now and then a p-value that is close to the level
    # falls on the other side of it
    tolerance=0.02,
    paper={"shift": [0.5, 1.0, 2.0], "runs": [500]},
    live={"shift": [1.0], "runs": [10]},
    reduced=[{"shift": shift, "runs": 5} for shift in (0.5, 1.0, 2.0)],
)
def rejection(shift: float, runs: int, rng: np.random.Generator) -> list[dict]:
    """Let a rival who knows the truth, and guesses on all examples, test models of propensity."""
    refused = {model: np.zeros(2, np.int64) for model in MODELS}
    for _ in range(runs):
        features, odds, members = linear(shift, rng)
        others, _, spare = linear(shift, rng)
        models = {
            "true": odds,
            **{f"{percent}%": 0.01 * percent * odds for percent in (120, 95, 80, 50)},
            "constant": np.zeros(EXAMPLES),
            "a feature missing": fit_propensity(others[:, 1:], spare, rng=rng).log_odds(
                features[:, 1:]
            ),
            "regression": fit_propensity(others, spare, rng=rng).log_odds(features),
        }
        for model, log_odds in models.items():
            # thinning draws anew where two fits change places: rounded ones do not elsewhere
            said = expit(log_odds.round(2))
            test = reject_propensity(np.where(odds > 0, 1, -1), members, said, rng=rng)
            refused[model] += (test.rejected, test.untampered_p_value <= test.level)
    return [
        {"model": model, "test": test, "level": 0.05, **share(int(count), runs)}
        for model, counts in refused.items()
        for test, count in zip(("thinned", "untampered"), counts, strict=True)
    ]


def linear(
    shift: float, rng: np.random.Generator, features: int = 10
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, log-odds that are their scaled sum, and memberships."""
    x = rng.normal(size=(EXAMPLES, features))
    odds = shift * x.sum(axis=1) / np.sqrt(features)
    return x, odds, rng.random(EXAMPLES) < expit(odds)


# Proposition 6

BETRAYED = 0.005


@study(
    "zero-betrayal",
    tolerance=1e-9,
    paper={"guesses": [25, 50, 100, 200, 500, 1000], "runs": [2000]},
    live={"guesses": [25, 100, 1000], "runs": [100]},
)
def betrayal(guesses: int, runs: int, rng: np.random.Generator) -> list[dict]:
    """Audit a mechanism that does nothing, on examples of which one in 200 betrays its membership.

    Overlap holds but for δ_DS = 0.005, with propensities of 1/2 else. Algorithm 8 adds δ_DS to its
    level, once; Algorithm 7 puts it into the curve.
    """
    rejects = {"Algorithm 7": 0, "Algorithm 8": 0}
    for _ in range(runs):
        betrayed = min(int(rng.binomial(EXAMPLES, BETRAYED)), guesses)
        correct = betrayed + int(rng.binomial(guesses - betrayed, 0.5))
        rejects["Algorithm 7"] += excess(correct, guesses, BETRAYED) > 0.0
        rejects["Algorithm 8"] += excess(correct, guesses, 0.0) > 0.0
    levels = {"Algorithm 7": LEVEL, "Algorithm 8": LEVEL + BETRAYED}
    return [
        {"audit": audit, "level": levels[audit], **share(int(count), runs)}
        for audit, count in rejects.items()
    ]


@cache
def excess(correct: int, guesses: int, failure: float) -> float:
    """Return the μ that a count rules out, where a record gives itself away with some chance."""
    bound = one_run_fdp(
        correct,
        guesses,
        EXAMPLES,
        family=(lambda mu: GaussianDP(mu).with_failure(failure)) if failure else "gaussian",
        delta=DELTA + failure,
        confidence=1.0 - LEVEL,
    )
    return float(bound.details["parameter" if failure else "mu"])


# Proposition 3


def knows_the_side(members: np.ndarray, examples: np.ndarray) -> np.ndarray:
    """Release, of each example, on which side of 0 it lies: no member is used."""
    del members
    return examples > 0.0


def knows_the_members(members: np.ndarray, examples: np.ndarray) -> np.ndarray:
    """Release the same, or that an example is a member: no noise, ε is infinite."""
    return (examples > 0.0) | np.isin(examples, members)
