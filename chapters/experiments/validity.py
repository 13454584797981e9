"""How often each bound exceeds the truth, in repetitions of an audit whose truth is known.

A case is one audit in one setting: a mechanism small enough that its ε is known, an attack on it,
and the call of the package that is on trial. It returns the bounds of many repetitions. The
mechanisms are as bad as their ε allows wherever that is known, since a bound that is never put to
the test proves nothing about itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv, expit, ndtr

from auditkit import (
    ApproxDP,
    Bonferroni,
    Bound,
    Fixed,
    GaussianDP,
    MultiSplit,
    PureDP,
    Split,
    Sweep,
    TradeOff,
    audit_scores,
    dp_sgd_epsilon,
    observational_label,
    one_run,
    one_run_fdp,
    panoramia,
    renyi_audit,
    renyi_divergence,
    two_worlds,
    zero_run,
    zero_run_bootstrap,
)
from auditkit.bounds.renyi import appendix_b_bound
from auditkit.experiment import study
from auditkit.mechanisms.worst_count import worst_mechanism

DELTA = 1e-5
EXAMPLES = 1000  # coins in a one-run game
RUNS = 1000  # in each of two worlds
SCORED = 200  # examples whose scores go through a threshold strategy


@dataclass(frozen=True)
class Repetitions:
    """The bounds of many repetitions of one audit, beside the truth.

    A bound that is an array, one number an order, exceeds the truth if it does so anywhere; the
    first order stands for all where one number is shown.
    """

    bounds: np.ndarray  # (repetitions,) or (repetitions, orders)
    truth: float | np.ndarray
    specimen: Bound  # the result of one of them, or of all at once
    claim: str | None = None  # where the proved number is not the result's own ε
    level: float | None = None
    broken: str | None = None  # words of an assumption of the result that does not hold here


@dataclass(frozen=True)
class Audit:
    """A game and its settings, and how often each is repeated in either profile."""

    game: Callable[..., Repetitions]
    settings: Mapping[str, Mapping[str, Any]]
    paper: int = 10_000
    quick: int = 500


def level_of(bound: Bound) -> float:
    """Return how often the result says that it may exceed the truth; a sweep keeps no promise."""
    if bound.confidence is None:
        return 1.0 - bound.details["nominal_confidence"]
    return 1.0 - bound.confidence


def clopper_pearson(count: int, trials: int) -> tuple[float, float]:
    """Return the 95% interval for a share."""
    low = float(betaincinv(count, trials - count + 1, 0.025)) if count > 0 else 0.0
    high = float(betainccinv(count + 1, trials - count, 0.025)) if count < trials else 1.0
    return low, high


def counted(audit: Callable[..., Bound], correct: np.ndarray) -> tuple[np.ndarray, Bound]:
    """Audit each count once and look all repetitions up in that table."""
    table, place = np.unique(correct, return_inverse=True)
    bound = audit(table)
    return np.asarray(bound.epsilon)[place], bound


def one_by_one(audit: Callable[[], Bound], simulations: int) -> tuple[np.ndarray, Bound]:
    """Play the game and audit it, again and again."""
    bounds = [audit() for _ in range(simulations)]
    return np.array([bound.epsilon for bound in bounds]), bounds[0]


# One run. A guess is right with a chance of its own, so that a game is its count.


def fails(rng: np.random.Generator, delta: float, together: int, simulations: int) -> np.ndarray:
    """Return how many coins are given away in each run of a mechanism that fails with chance δ.

    One by one, or a number of examples at once: each is given away with probability δ all the same.
    The second does more harm, since a failure that moves a count a little is wasted.
    """
    if together == 1:
        return rng.binomial(EXAMPLES, delta, simulations)
    return together * rng.binomial(1, EXAMPLES * delta / together, simulations)


def response(
    simulations: int,
    rng: np.random.Generator,
    *,
    audit: Callable[..., Bound],
    epsilon: float,
    guesses: int = EXAMPLES,
    delta: float = 0.0,
    together: int = 1,
    broken: str | None = None,
) -> Repetitions:
    """Audit randomised response, which fails with probability δ and then tells the truth."""
    known = fails(rng, delta, together, simulations) if delta else np.zeros(simulations, int)
    known = np.minimum(known, guesses)
    correct = known + rng.binomial(guesses - known, expit(epsilon))
    bounds, bound = counted(lambda c: audit(c, guesses, EXAMPLES), correct)
    return Repetitions(bounds, epsilon, bound, broken=broken)


def worst(simulations: int, rng: np.random.Generator, *, right: int, guesses: int) -> Repetitions:
    """Audit the mechanism that makes so many right guesses as likely as (ε, δ) allows."""
    audit = partial(one_run, guesses=guesses, examples=EXAMPLES, delta=2e-4)
    epsilon = float(audit(right).epsilon) * (1.0 - 1e-9)
    mechanism = worst_mechanism(right, guesses, EXAMPLES, epsilon=epsilon, delta=2e-4)
    bounds, bound = counted(audit, mechanism.counts(simulations, rng))
    return Repetitions(bounds, epsilon, bound)


def sided(simulations: int, rng: np.random.Generator, *, epsilon: float) -> Repetitions:
    """Audit randomised response of coins with ten sides, which fails as in `response`."""
    known = fails(rng, 2e-4, 15, simulations)
    correct = known + rng.binomial(EXAMPLES - known, expit(epsilon - np.log(9.0)))
    audit = partial(one_run, guesses=EXAMPLES, examples=EXAMPLES, delta=2e-4, choices=10)
    bounds, bound = counted(audit, correct)
    return Repetitions(bounds, epsilon, bound)


def published(
    simulations: int, rng: np.random.Generator, *, guesses_fixed: bool, broken: str | None = None
) -> Repetitions:
    """Audit a mechanism that publishes 15 of 10,000 coins with chance 0.2/15, and else nothing.

    They are guessed where they are published, all coins where not. The mechanism is (0, 2e-5)-DP.
    """
    shown = rng.random(simulations) < 0.2 / 15.0
    right = np.where(shown, 15, rng.binomial(10_000, 0.5, simulations))
    number = np.where(shown, 15, 10_000)
    bound = one_run(right, number, 10_000, delta=2e-5, guesses_fixed=guesses_fixed)
    return Repetitions(np.asarray(bound.epsilon), 0.0, bound, broken=broken)


def channel(
    simulations: int,
    rng: np.random.Generator,
    *,
    mu: float,
    guesses: int = EXAMPLES,
    tau: float = 0.0,
) -> Repetitions:
    """Audit a Gaussian channel from each coin, on the examples where it says most.

    With probability τ the law of the counterfactual gives the coin away by itself.
    """
    correct = np.empty(simulations, int)
    for run in range(simulations):
        evidence = rng.normal(mu / 2.0, 1.0, EXAMPLES)  # above 0: points to the truth
        evidence[rng.random(EXAMPLES) < tau] = np.inf
        said_most = np.argpartition(-np.abs(evidence), guesses - 1)[:guesses]
        correct[run] = np.count_nonzero(evidence[said_most] > 0.0)
    audit = partial(one_run_fdp, guesses=guesses, examples=EXAMPLES, tau=tau, delta=DELTA)
    bounds, bound = counted(audit, correct)
    return Repetitions(bounds, float(GaussianDP(mu).epsilon(DELTA)), bound)


# Two worlds. A test is its two error rates.


def between(
    simulations: int,
    rng: np.random.Generator,
    *,
    curve: TradeOff,
    fpr: float,
    method: str,
    delta: float = DELTA,
    runs: int = RUNS,
    broken: str | None = None,
    **options: object,
) -> Repetitions:
    """Audit the best test that a mechanism with this trade-off curve allows at a cut."""
    errors = rng.binomial(runs, [[fpr], [curve.beta(fpr)]], (2, simulations))
    bound = two_worlds(errors[0], runs, errors[1], runs, method=method, delta=delta, **options)
    return Repetitions(np.asarray(bound.epsilon), curve.epsilon(delta), bound, broken=broken)


def one_step(simulations: int, rng: np.random.Generator, *, broken: str) -> Repetitions:
    """Audit a step of DP-SGD, which takes a record with probability 0.9, or another in its place.

    The noise is half of the clipping norm, and the cut lies halfway between the two worlds.
    """
    runs, rate, noise = 20_000, 0.9, 0.5
    error = rate * ndtr(-1.0 / noise) + (1.0 - rate) / 2.0
    errors = rng.binomial(runs, error, (2, simulations))
    bound = two_worlds(errors[0], runs, errors[1], runs, method="gaussian", delta=DELTA)
    truth = dp_sgd_epsilon(
        noise_multiplier=noise, sampling_rate=rate, steps=1, delta=DELTA, adjacency="substitute"
    )
    return Repetitions(np.asarray(bound.epsilon), truth, bound, broken=broken)


# Thresholds. The scores are audited as they come.


def scored(
    simulations: int,
    rng: np.random.Generator,
    *,
    threshold: object,
    method: str,
    leak: float,
    pure: bool,
) -> Repetitions:
    """Audit scores that leak: a lie now and then, or Gaussian noise."""
    delta = 0.0 if pure else DELTA
    families = {"family": "approx" if pure else "gaussian"}
    options = families if method == "two-worlds" else {}

    def play() -> Bound:
        half = np.arange(SCORED) % 2 == 0
        members = half if method == "two-worlds" else rng.random(SCORED) < 0.5
        sign = np.where(members, 1.0, -1.0)
        if pure:
            truthful = rng.random(SCORED) < expit(leak)
            scores = np.where(truthful, sign, -sign) * rng.random(SCORED)
        else:
            scores = rng.normal(0.5 * leak * sign)
        return audit_scores(
            scores, members, method=method, threshold=threshold, delta=delta, **options
        )

    bounds, bound = one_by_one(play, simulations)
    return Repetitions(bounds, leak if pure else float(GaussianDP(leak).epsilon(DELTA)), bound)


# Labels. The attacker sees the training label or one from the true law.


def labels(
    simulations: int,
    rng: np.random.Generator,
    *,
    leak: float,
    pure: bool,
    family: str,
    guesses: float = 0.1,
    tilt: float = 0.0,
    tau: float | str = 0.0,
    claimed: bool = True,
    broken: str | None = None,
) -> Repetitions:
    """Play the game on labels that are released by randomised response or with Gaussian noise.

    True labels are uniform: one of 50 for randomised response, since a reference label that agrees
    with the answer by chance hides the leak, and one of 2 for noise. With a `tilt` the second of
    the 2 is generated too often. Nothing is released of the labels that the placebo is played on.
    Where only what is `claimed` counts, an estimate counts as a bound of 0.
    """

    def play(leak: float) -> tuple[np.ndarray, np.ndarray]:
        classes = 50 if pure else 2
        label = rng.integers(classes, size=EXAMPLES)
        generated = rng.integers(classes, size=EXAMPLES)
        if tilt > 0.0:
            generated = (rng.random(EXAMPLES) < 0.5 + tilt).astype(int)
        chosen = rng.integers(2, size=EXAMPLES)
        shown = np.where(chosen == 0, label, generated)
        if pure:
            honest = np.exp(leak) / (np.exp(leak) + classes - 1)
            lie = (label + rng.integers(1, classes, EXAMPLES)) % classes
            released = np.where(rng.random(EXAMPLES) < honest, label, lie)
            agreed = released == shown
            posterior = np.where(agreed, honest, (1.0 - honest) / (classes - 1))
        else:
            released = rng.normal(leak * (label - 0.5))
            posterior = expit(leak * released * (2 * shown - 1))
        # how much likelier what is seen is with the training label than with a generated one
        score = np.log(classes * posterior) - np.log1p(2.0 * tilt * (2 * shown - 1))
        return score + 1e-9 * rng.normal(size=EXAMPLES), chosen  # a lot breaks ties

    def audit() -> Bound:
        scores, chosen = play(leak)
        placebo_scores, placebo_chosen = play(0.0)
        return observational_label(
            scores,
            chosen,
            placebo_scores=placebo_scores,
            placebo_chosen=placebo_chosen,
            family=family,
            delta=0.0 if family == "pure" else DELTA,
            tau=tau,
            threshold=Fixed(guesses=guesses),
        )

    bounds = [audit() for _ in range(simulations)]
    truth = leak if pure else float(GaussianDP(leak).epsilon(DELTA))
    values = np.array([bound.epsilon for bound in bounds])
    if not claimed:
        return Repetitions(values, truth, bounds[0], broken=broken)
    values *= [bound.claim == "lower bound" for bound in bounds]
    return Repetitions(values, truth, bounds[0], claim="lower bound")


# Rényi divergences. Two worlds of labels, by counts.

ZERO = ((0.5, 0.3, 0.2), (0.5, 0.3, 0.2))
SMALL = ((0.5, 0.3, 0.2), (0.45, 0.33, 0.22))
COINS = ((0.6, 0.4), (0.5, 0.5))
SIXTEEN = ((1 / 16,) * 16, (1 / 16,) * 16)


def divergences(
    simulations: int,
    rng: np.random.Generator,
    *,
    laws: tuple[tuple[float, ...], tuple[float, ...]],
    audit: Callable[..., Bound],
    orders: tuple[float, ...] = (2.0, 0.5, 20.0),
    draws: bool = False,
    broken: str | None = None,
) -> Repetitions:
    """Audit two laws that are known; where the audit `draws`, from the stream of the cell."""
    counts = [rng.multinomial(10_000, law, size=simulations) for law in laws]
    options = {"rng": rng} if draws else {}
    bounds = [audit(*pair, orders, **options) for pair in zip(*counts, strict=True)]
    values = np.array([bound.epsilon for bound in bounds])
    # rounding leaves a divergence of 0 a little above it
    truth = renyi_divergence(*laws, orders) if laws[0] != laws[1] else np.zeros(len(orders))
    return Repetitions(values, truth, bounds[0], broken=broken)


def own_cut(counts_p: np.ndarray, counts_q: np.ndarray, orders: tuple[float, ...]) -> Bound:
    """Choose the cut on the counts that it is tested on."""
    better = np.flatnonzero(counts_p > counts_q)
    return renyi_audit(counts_p, counts_q, orders, cut=better if better.size else {0})


# Zero run. The examples betray something by themselves.


def shifted(
    simulations: int,
    rng: np.random.Generator,
    *,
    correction: str,
    family: str,
    leak: float,
    delta: float = 0.0,
    together: int = 10,
    uneven: bool = False,
    guesses: tuple[int, ...] = (100,),
    believed: float = 1.0,
    broken: str | None = None,
) -> Repetitions:
    """Audit members who can be told in part from how they look.

    The log-odds of each are 0.5 to one side, or spread evenly from -1.5 to 1.5. An attacker who
    knows them guesses where most guesses will survive the correction. With several numbers of
    guesses the best one counts. `believed` stretches the log-odds that the audit is told of.
    """
    if uneven:
        prior = np.linspace(-1.5, 1.5, EXAMPLES)
    else:
        prior = np.where(np.arange(EXAMPLES) % 2 == 0, 0.5, -0.5)
    sure = np.exp(-np.abs(prior))
    thinned = {"conditional": sure, "sharp": 0.5 * (1.0 + sure)}.get(correction, 1.0)

    def audit() -> Bound:
        members = rng.random(EXAMPLES) < expit(prior)
        sign = np.where(members, 1.0, -1.0)
        if family == "gaussian":
            posterior = prior + leak * rng.normal(0.5 * leak * sign)
        else:
            posterior = prior + leak * np.where(rng.random(EXAMPLES) < expit(leak), sign, -sign)
        if delta > 0.0 and rng.random() < EXAMPLES * delta / together:
            known = rng.permutation(EXAMPLES)[:together]
            posterior[known] = 50.0 * sign[known]
        worth = thinned * expit(np.abs(posterior)) + 1e-9 * rng.random(EXAMPLES)
        ranked = np.argsort(-worth)
        table = np.zeros((len(guesses), EXAMPLES), int)
        for row, number in zip(table, guesses, strict=True):
            row[ranked[:number]] = np.where(posterior[ranked[:number]] > 0.0, 1, -1)
        return zero_run(
            table,
            members,
            expit(believed * prior),
            correction=correction,
            family=family,
            delta=DELTA if family == "gaussian" else delta,
            rng=rng,
        )

    bounds, bound = one_by_one(audit, simulations)
    truth = float(GaussianDP(leak).epsilon(DELTA)) if family == "gaussian" else leak
    return Repetitions(bounds, truth, bound, broken=broken)


def resampled(
    simulations: int, rng: np.random.Generator, *, seen: int, features: int = 10, sets: int = 20
) -> Repetitions:
    """Audit a mechanism that leaks nothing, with propensities fitted on some of the features."""

    def audit() -> Bound:
        x = rng.normal(size=(1500, features))
        truth = x.sum(axis=1) / np.sqrt(features)
        members = rng.random(1500) < expit(truth)
        draws = rng.multinomial(500, np.full(500, 1 / 500), size=sets)
        fitted = logistic(x[1000:, :seen], members[1000:], draws)
        strongest = np.argsort(-np.abs(truth[:1000]))[:300]
        guesses = np.zeros(1000, int)
        guesses[strongest] = np.sign(truth[strongest])
        return zero_run_bootstrap(
            guesses,
            members[:1000],
            expit(fitted @ x[:1000, :seen].T),
            family="approx",
            delta=0.0,
            rng=rng,
        )

    bounds, bound = one_by_one(audit, simulations)
    return Repetitions(bounds, 0.0, bound)


def logistic(x: np.ndarray, members: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Fit a logistic regression for each row of weights, by ten of Newton's steps."""
    fitted = np.zeros((len(weights), x.shape[1]))
    squares = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    for _ in range(10):
        chance = expit(fitted @ x.T)
        slope = (weights * (members - chance)) @ x
        curvature = (weights * chance * (1.0 - chance)) @ squares
        curvature = curvature.reshape(len(weights), x.shape[1], -1) + 1e-3 * np.eye(x.shape[1])
        fitted += np.linalg.solve(curvature, slope[..., None])[..., 0]
    return fitted


# PANORAMIA. Real examples among generated ones, whose closeness is known.


def generated(
    simulations: int,
    rng: np.random.Generator,
    *,
    c: float,
    epsilon: float,
    measure: str,
    examples: int = 500,
    tied: bool = False,
    slack: float = 0.0,
    noise: float = 0.0,
) -> Repetitions:
    """Audit a generator that is c-close and a model that is ε-DP, each by a lie now and then.

    With probability `slack` an example shows by itself that it is real. `noise` is the share of
    examples of which the baseline sees nothing.
    """

    def audit() -> Bound:
        members = rng.random(examples) < 0.5
        sign = np.where(members, 1.0, -1.0)
        look = c * np.where(rng.random(examples) < expit(c), sign, -sign)
        look[members & (rng.random(examples) < slack)] = 50.0
        leak = epsilon * np.where(rng.random(examples) < expit(epsilon), sign, -sign)
        small = 0.0 if tied else 1e-3
        seen = np.where(rng.random(examples) < noise, 0.0, look)
        return panoramia(
            seen + small * rng.random(examples),
            look + leak + small * rng.random(examples),
            members,
            closeness_slack=slack,
        )

    results = [audit() for _ in range(simulations)]
    values = np.array([getattr(result, measure) for result in results])
    truth = {"c_lower": c, "c_plus_epsilon_lower": c + epsilon, "epsilon": epsilon}[measure]
    if measure == "epsilon":
        return Repetitions(values, truth, results[0])
    # the level is split evenly over the two, which hold together
    level = level_of(results[0]) / 2.0
    return Repetitions(values, truth, results[0], claim="lower bound", level=level)


# The study.

NULL, RESPONSE, FAILING = PureDP(0.0), PureDP(3.0), ApproxDP(3.0, 0.01)
LIE = float(expit(-3.0))
MANY = {"paper": 100_000, "quick": 10_000}  # where counts are looked up
FEW = {"paper": 400, "quick": 100}  # bootstraps

STRATEGIES = {
    "Fixed": (Fixed(guesses=0.25), Fixed(0.0)),  # in one run, between two worlds
    "Bonferroni": (Bonferroni(), Bonferroni()),
    "Bonferroni, own": (
        Bonferroni((Fixed(guesses=0.1), Fixed(guesses=0.5))),
        Bonferroni((Fixed(-0.5), Fixed(0.5))),
    ),
    "Split": (Split(), Split()),
    "Split, midpoint": (Split(0.2, rule="midpoint"), Split(0.2, rule="midpoint")),
    "MultiSplit": (MultiSplit(3), MultiSplit(3)),
    "Sweep": (Sweep(), Sweep()),
}
SCORES = {
    "one-run, null": {"method": "one-run", "pure": True, "leak": 0.0},
    "one-run, ε = 1": {"method": "one-run", "pure": True, "leak": 1.0},
    "one-run-fdp, null": {"method": "one-run-fdp", "pure": False, "leak": 0.0},
    "one-run-fdp, μ = 0.5": {"method": "one-run-fdp", "pure": False, "leak": 0.5},
    "two-worlds, approx, null": {"method": "two-worlds", "pure": True, "leak": 0.0},
    "two-worlds, approx, ε = 1": {"method": "two-worlds", "pure": True, "leak": 1.0},
    "two-worlds, Gaussian, null": {"method": "two-worlds", "pure": False, "leak": 0.0},
    "two-worlds, Gaussian, μ = 0.5": {"method": "two-worlds", "pure": False, "leak": 0.5},
}
LAWS = {"zero": {"laws": ZERO}, "small": {"laws": SMALL}, "two outcomes": {"laws": COINS}}
UNEVEN = {
    "null": {"leak": 0.0},
    "null, uneven shift": {"leak": 0.0, "uneven": True},
    "leak 1": {"leak": 1.0},
    "leak 1, uneven shift": {"leak": 1.0, "uneven": True},
    "leak 1, best of 4 rules": {"leak": 1.0, "guesses": (30, 100, 300, 1000)},
}


def strategy(name: str) -> Audit:
    """Return the trial of a threshold strategy in all games."""
    one, two = STRATEGIES[name]
    settings = {
        setting: {**options, "threshold": two if options["method"] == "two-worlds" else one}
        for setting, options in SCORES.items()
    }
    return Audit(scored, settings, quick=300 if name != "MultiSplit" else 100)


def zero(correction: str, family: str, delta: float = 0.0) -> Audit:
    """Return the trial of a correction for shift."""
    return Audit(partial(shifted, correction=correction, family=family, delta=delta), UNEVEN)


STUDY: dict[str, dict[str, Audit]] = {
    "one run": {
        "one_run, δ = 0": Audit(
            partial(response, audit=partial(one_run, delta=0.0)),
            {
                "null, all guessed": {"epsilon": 0.0},
                "null, 1 in 10": {"epsilon": 0.0, "guesses": 100},
                "ε = 1, all guessed": {"epsilon": 1.0},
                "ε = 1, 1 in 10": {"epsilon": 1.0, "guesses": 100},
                "ε = 4, all guessed": {"epsilon": 4.0},
            },
            **MANY,
        ),
        "one_run, δ > 0": Audit(
            partial(response, audit=partial(one_run, delta=2e-4), delta=2e-4),
            {
                "null, fails 15 at a time": {"epsilon": 0.0, "together": 15},
                "ε = 1, fails one by one": {"epsilon": 1.0},
                "ε = 1, fails 15 at a time": {"epsilon": 1.0, "together": 15},
                "ε = 1, 1 in 10, fails 5 at a time": {
                    "epsilon": 1.0,
                    "together": 5,
                    "guesses": 100,
                },
            },
            **MANY,
        ),
        "one_run, worst mechanism": Audit(
            worst,
            {
                "98 of 100 right": {"right": 98, "guesses": 100},
                "750 of 1,000 right": {"right": 750, "guesses": 1_000},
            },
            **MANY,
        ),
        "one_run, ten choices": Audit(
            sided,
            {
                "null, fails 15 at a time": {"epsilon": 0.0},
                "ε = 1, fails 15 at a time": {"epsilon": 1.0},
            },
            **MANY,
        ),
        "one_run, guesses not fixed": Audit(
            partial(published, guesses_fixed=False), {"null, publishes 15 coins": {}}, **MANY
        ),
        "one_run_fdp, Gaussian": Audit(
            channel,
            {
                "null, all guessed": {"mu": 0.0},
                "null, 1 in 10": {"mu": 0.0, "guesses": 100},
                "μ = 1, all guessed": {"mu": 1.0},
                "μ = 1, 1 in 10": {"mu": 1.0, "guesses": 100},
                "μ = 1, 1 in 100": {"mu": 1.0, "guesses": 10},
            },
        ),
        "one_run_fdp, pure": Audit(
            partial(response, audit=partial(one_run_fdp, family="pure", delta=0.0)),
            {
                "null, all guessed": {"epsilon": 0.0},
                "ε = 1, all guessed": {"epsilon": 1.0},
                "ε = 1, 1 in 10": {"epsilon": 1.0, "guesses": 100},
            },
            **MANY,
        ),
        "one_run_fdp, own family": Audit(
            partial(
                response,
                audit=partial(one_run_fdp, family=lambda e: ApproxDP(e, 2e-4), delta=2e-4),
                delta=2e-4,
                guesses=100,
            ),
            {
                "null, fails 5 at a time": {"epsilon": 0.0, "together": 5},
                "ε = 1, fails 5 at a time": {"epsilon": 1.0, "together": 5},
            },
        ),
        "one_run_fdp, τ = 0.005": Audit(
            partial(channel, tau=0.005),
            {
                "null, all guessed": {"mu": 0.0},
                "null, 1 in 10": {"mu": 0.0, "guesses": 100},
                "μ = 1, all guessed": {"mu": 1.0},
                "μ = 3, 1 in 3": {"mu": 3.0, "guesses": 333},
            },
        ),
    },
    "two worlds": {
        "two_worlds, Clopper-Pearson": Audit(
            partial(between, method="clopper-pearson"),
            {
                "null, even cut": {"curve": NULL, "fpr": 0.5, "delta": 0.0},
                "null, strict cut": {"curve": NULL, "fpr": 0.02, "delta": 0.0},
                "ε = 3": {"curve": RESPONSE, "fpr": LIE, "delta": 0.0},
                "ε = 3, 20,000 runs": {
                    **{"curve": RESPONSE, "fpr": LIE, "delta": 0.0},
                    "runs": 20_000,
                },
                "ε = 3, fails with δ = 0.01": {"curve": FAILING, "fpr": 0.99 * LIE, "delta": 0.01},
            },
            **MANY,
        ),
        "two_worlds, Gaussian": Audit(
            partial(between, method="gaussian"),
            {
                "null, even cut": {"curve": GaussianDP(0.0), "fpr": 0.5},
                "null, strict cut": {"curve": GaussianDP(0.0), "fpr": 0.02},
                "μ = 1, even cut": {"curve": GaussianDP(1.0), "fpr": float(ndtr(-0.5))},
                "μ = 1, strict cut": {"curve": GaussianDP(1.0), "fpr": 0.02},
            },
            **MANY,
        ),
        "two_worlds, paper's convention": Audit(
            partial(between, paper_convention=True),
            {
                "Clopper-Pearson, ε = 3, 20,000 runs": {
                    **{"curve": RESPONSE, "fpr": LIE, "delta": 0.0},
                    **{"runs": 20_000, "method": "clopper-pearson"},
                },
                "Gaussian, μ = 1, even cut": {
                    **{"curve": GaussianDP(1.0), "fpr": float(ndtr(-0.5))},
                    "method": "gaussian",
                },
                "Gaussian, μ = 1, strict cut": {
                    **{"curve": GaussianDP(1.0), "fpr": 0.02},
                    "method": "gaussian",
                },
            },
            **MANY,
        ),
    },
    "thresholds": {
        f"audit_scores, {name}": strategy(name) for name in STRATEGIES if name != "Sweep"
    },
    "labels": {
        "observational_label, pure": Audit(
            partial(labels, pure=True, family="pure"),
            {"null": {"leak": 0.0}, "ε = 1": {"leak": 1.0, "guesses": 0.03}},
        ),
        "observational_label, Gaussian": Audit(
            partial(labels, pure=False, family="gaussian"),
            {"null": {"leak": 0.0}, "μ = 1": {"leak": 1.0}},
        ),
        "observational_label, τ = 0.005": Audit(
            partial(labels, pure=False, family="gaussian", tilt=0.005, tau=0.005, guesses=1.0),
            {"null": {"leak": 0.0}, "μ = 3": {"leak": 3.0}},
        ),
        # an estimate, since the shift is the placebo's own here and need not be elsewhere
        "observational_label, τ from the placebo": Audit(
            partial(
                labels, pure=False, family="gaussian", tau="placebo", guesses=0.5, claimed=False
            ),
            {
                "null": {"leak": 0.0},
                "null, labels off by 0.02": {"leak": 0.0, "tilt": 0.02},
                "null, labels off by 0.2": {"leak": 0.0, "tilt": 0.2},
                "μ = 1, labels off by 0.1": {"leak": 1.0, "tilt": 0.1},
                "μ = 3, labels off by 0.2": {"leak": 3.0, "tilt": 0.2},
            },
        ),
    },
    "Rényi": {
        "renyi_audit, 2-cut, fixed": Audit(
            partial(divergences, audit=partial(renyi_audit, cut={0})), LAWS
        ),
        "renyi_audit, 2-cut, chosen": Audit(
            partial(divergences, audit=renyi_audit, draws=True), LAWS
        ),
        "renyi_audit, k-cut": Audit(
            partial(divergences, audit=partial(renyi_audit, method="k-cut")), LAWS
        ),
        "PRED, Appendix B": Audit(
            partial(divergences, audit=partial(appendix_b_bound, cut={0}), orders=(2.0, 20.0)),
            LAWS,
        ),
    },
    "zero run": {
        "zero_run, conditional, Gaussian": zero("conditional", "gaussian"),
        "zero_run, conditional, δ = 0": zero("conditional", "approx"),
        "zero_run, conditional, δ > 0": zero("conditional", "approx", 1e-4),
        "zero_run, sharp, Gaussian": zero("sharp", "gaussian"),
        "zero_run, composition, Gaussian": zero("composition", "gaussian"),
        "zero_run, composition, δ = 0": zero("composition", "approx"),
        "zero_run, composition, δ > 0": zero("composition", "approx", 1e-4),
        "zero_run, untampered, δ = 0": zero("untampered", "approx"),
        "zero_run, untampered, δ > 0": zero("untampered", "approx", 1e-4),
    },
    "PANORAMIA": {
        "panoramia, c": Audit(
            partial(generated, measure="c_lower", epsilon=0.0),
            {
                "c = 0": {"c": 0.0},
                "c = 1": {"c": 1.0},
                "c = 0, two thresholds": {"c": 0.0, "tied": True},
                "c = 1, two thresholds": {"c": 1.0, "tied": True},
                "c = 1, two thresholds, slack 1e-5": {"c": 1.0, "tied": True, "slack": 1e-5},
            },
        ),
        "panoramia, c + ε": Audit(
            partial(generated, measure="c_plus_epsilon_lower", c=1.0),
            {
                "c = 1, ε = 0": {"epsilon": 0.0},
                "c = 1, ε = 1": {"epsilon": 1.0},
                "c = 1, ε = 1, four thresholds": {"epsilon": 1.0, "tied": True},
            },
        ),
    },
    # estimates, and bounds of which an assumption is broken on purpose
    "no bound": {
        "audit_scores, Sweep": strategy("Sweep"),
        "one_run, guesses called fixed": Audit(
            partial(published, guesses_fixed=True, broken="number of guesses was fixed"),
            {"null, publishes 15 coins": {}},
            **MANY,
        ),
        "one_run_fdp, not Gaussian": Audit(
            partial(response, audit=one_run_fdp, broken="trade-off curve is Gaussian"),
            {"randomised response, ε = 1": {"epsilon": 1.0}},
        ),
        "two_worlds, not Gaussian": Audit(
            partial(between, method="gaussian", broken="is that of Gaussian differential privacy"),
            {"randomised response, ε = 3": {"curve": RESPONSE, "fpr": LIE}},
        ),
        "two_worlds, subsampled": Audit(
            partial(one_step, broken="is that of Gaussian differential privacy"),
            {"DP-SGD, one step, q = 0.9": {}},
        ),
        "observational_label, τ too small": Audit(
            partial(
                labels,
                pure=False,
                family="gaussian",
                guesses=0.5,
                claimed=False,
                broken="The generated labels follow the law of the true ones",
            ),
            {"null, labels off by 0.2": {"leak": 0.0, "tilt": 0.2}},
        ),
        "renyi_audit, cut on its counts": Audit(
            partial(divergences, audit=own_cut, broken="The cut was fixed before"),
            {"zero, 16 outcomes": {"laws": SIXTEEN}},
        ),
        "renyi_audit, 2-cut bootstrap": Audit(
            partial(
                divergences,
                audit=partial(renyi_audit, method="2-cut bootstrap", cut={0}),
                draws=True,
                orders=(2.0,),
            ),
            LAWS,
            **FEW,
        ),
        "renyi_audit, k-cut bootstrap": Audit(
            partial(
                divergences,
                audit=partial(renyi_audit, method="k-cut bootstrap"),
                draws=True,
                orders=(2.0,),
            ),
            LAWS,
            **FEW,
        ),
        "zero_run, no correction": Audit(
            partial(shifted, correction="none"),
            {
                "null, Gaussian": {"family": "gaussian", "leak": 0.0},
                "null, δ = 0": {"family": "approx", "leak": 0.0},
                "leak 1, δ = 0": {"family": "approx", "leak": 1.0},
            },
        ),
        "zero_run, wrong propensities": Audit(
            partial(shifted, correction="conditional", family="approx", broken="is the true one"),
            {
                "null, half the log-odds": {
                    **{"leak": 0.0, "uneven": True, "guesses": (EXAMPLES,)},
                    "believed": 0.5,
                }
            },
        ),
        "zero_run_bootstrap": Audit(
            resampled,
            {"null, all features fitted": {"seen": 10}, "null, half of them": {"seen": 5}},
            **FEW,
        ),
        "panoramia, ε̃": Audit(
            partial(generated, measure="epsilon", epsilon=0.0, c=2.4),
            {"ε = 0, full baseline": {}, "ε = 0, baseline half blind": {"noise": 0.5}},
        ),
    },
}


def cases(scale: str) -> list[dict]:
    """Return the cells of a profile."""
    return [
        {"group": group, "audit": name, "setting": setting, "simulations": getattr(audit, scale)}
        for group, audits in STUDY.items()
        for name, audit in audits.items()
        for setting in audit.settings
    ]


# searches end some 1e-8 from the root, on another processor elsewhere than here
@study("validity", tolerance=1e-6, paper=cases("paper"), live=cases("quick"))
def coverage(
    group: str, audit: str, setting: str, simulations: int, rng: np.random.Generator
) -> dict:
    """Repeat one case and count how often it exceeds the truth."""
    case = STUDY[group][audit]
    done = case.game(simulations, rng, **case.settings[setting])
    claim = done.specimen.claim if done.claim is None else done.claim
    level = level_of(done.specimen) if done.level is None else done.level
    broken = None
    if done.broken is not None:  # the result has to say that it assumes so
        (broken,) = [text for text in done.specimen.assumptions if done.broken in text]
    above = done.bounds > done.truth
    exceeding = int(above.reshape(simulations, -1).any(axis=1).sum())
    low, high = clopper_pearson(exceeding, simulations)
    return {
        "claim": claim,
        "broken": broken,
        "level": round(level, 12),
        "exceeding": exceeding,
        "share": exceeding / simulations,
        "low": low,
        "high": high,
        "mean_bound": float(done.bounds.reshape(simulations, -1)[:, 0].mean()),
        "truth": float(np.ravel(done.truth)[0]),
    }
