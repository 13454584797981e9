"""How many examples an audit takes to show a given ε, before any model is trained.

What an attack without an error would show (`flawless`, `least_without_error`) is the ceiling of any
audit of so many examples. A plan (`plan`, `power_of`) goes by what the best attack shows of a
mechanism that is taken to be Gaussian: the score of a member lies μ above that of another, with a
standard deviation of 1, which is the best that any attack gets from a mechanism that is exactly
μ-GDP. The number of correct guesses is then binomial, and so is each error count of two worlds.
After an audit, `would_find` says what an attack of some accuracy would have shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from auditkit import _check
from auditkit.bounds.one_run import one_run
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.panoramia import panoramia_ceiling
from auditkit.bounds.result import Bound
from auditkit.bounds.scores import limits_of
from auditkit.bounds.tradeoff import GaussianDP
from auditkit.bounds.two_worlds import two_worlds
from auditkit.evidence import GuessCounts
from auditkit.thresholds import Fixed, Threshold, counted

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # of guesses, that a plan chooses from
CUTS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)  # shares of runs above one
ALL = Fixed(guesses=1.0)
MOST = 10_000_000  # examples; a plan that takes more is no plan
FINITE = 1e-5  # the δ of the true ε, where that of the bound is 0: a Gaussian ε is infinite there


@dataclass(frozen=True)
class Setting:
    """What is to be shown, and by which theorem.

    Attributes
    ----------
    method : str
        One of "one-run", "one-run-fdp", "two-worlds", "observational-label", "zero-run" and
        "panoramia".
    target : float
        The ε that the bound shall reach.
    family : str or None
        Of two worlds, as in `audit_scores`.
    delta, confidence : float
        Of the bound.
    shift : float
        For zero runs: the log-odds by which each example betrays its membership.

    Examples
    --------
    >>> Setting("one-run", 1.0).confidence
    0.95
    """

    method: str
    target: float
    family: str | None = None
    delta: float = 1e-5
    confidence: float = 0.95
    shift: float = 0.0

    @property
    def kept(self) -> float:
        """The share of right guesses that the thinning of a zero run leaves."""
        return float(np.exp(-self.shift)) if self.method == "zero-run" else 1.0

    @property
    def possible(self) -> bool:
        """Whether an attack without an error could show the target, with any number of examples.

        Thinning may leave fewer right guesses than the target's own mechanism allows.
        """
        return self.method != "zero-run" or _possible(self, 1.0, np.inf)


@dataclass(frozen=True)
class Plan:
    """The least number of examples, with the share that is guessed on and how often it is enough.

    Attributes
    ----------
    examples : int
        To be counted on; what goes to choosing a threshold comes on top.
    share : float
        Of them, the most extreme ones, that are guessed on; for two worlds, of runs with scores
        above the cut.
    power : float
        The probability that the bound reaches the target.
    """

    examples: int
    share: float
    power: float


def mu_of(epsilon: float, delta: float) -> float:
    """Return the μ of the Gaussian mechanism that has this ε at δ.

    Parameters
    ----------
    epsilon, delta : float
        Both above 0.

    Returns
    -------
    float
        μ, as in `GaussianDP`.

    References
    ----------
    Dong, Roth and Su (2022), "Gaussian differential privacy", Corollary 1, solved for μ.

    Examples
    --------
    >>> round(float(GaussianDP(mu_of(2.0, 1e-5)).epsilon(1e-5)), 6)
    2.0
    """

    def excess(mu: float) -> float:
        return float(GaussianDP(mu).epsilon(delta)) - epsilon

    high = 1.0
    while excess(high) < 0.0:
        high *= 2.0
    return float(brentq(excess, 0.0, high, xtol=1e-12))


def flawless(setting: Setting, examples: int, *, guesses: int | None = None) -> float:
    """Return the ε that an attack without an error shows: nothing shows more with so few examples.

    Parameters
    ----------
    setting : Setting
        The theorem; its target is of no matter here.
    examples : int
        That are counted on; for two worlds the runs of both together.
    guesses : int, optional
        How many guesses, by default on all examples.

    Returns
    -------
    float
        The ceiling, 0 where there is no example.

    References
    ----------
    `one_run`, `one_run_fdp`, `two_worlds` and `panoramia_ceiling`.

    Examples
    --------
    >>> round(flawless(Setting("one-run", 1.0), 100), 2)
    3.49
    """
    if examples < 1:
        return 0.0
    if setting.method == "panoramia":
        return panoramia_ceiling(examples, setting.confidence)
    level: Any = {"delta": setting.delta, "confidence": setting.confidence}
    if setting.method == "two-worlds":
        runs = examples // 2
        family = limits_of(setting.family)
        return float(two_worlds(0, runs, 0, runs, method=family, **level).epsilon)
    theorem = one_run if setting.method == "one-run" else one_run_fdp
    number = examples if guesses is None else min(guesses, examples)
    return float(theorem(int(setting.kept * number), number, examples, **level).epsilon)


def least_without_error(setting: Setting, rule: Threshold = ALL) -> int | None:
    """Return the least number of examples at which an attack without an error shows the target.

    Parameters
    ----------
    setting : Setting
        What is to be shown. Its confidence is that of one rule of the strategy.
    rule : Fixed, Bonferroni, Split, MultiSplit or Sweep
        How guesses are chosen: a split counts on a part of the examples, and fixed guesses may be
        few. By default all examples are guessed on.

    Returns
    -------
    int or None
        The number, with what goes to choosing; None where `MOST` fall short.

    References
    ----------
    `flawless`, solved for the number of examples.

    Examples
    --------
    >>> least_without_error(Setting("one-run", 1.0))
    10
    """
    if not setting.possible:
        return None

    def enough(examples: int) -> bool:
        size, number = counted(rule, examples)[0], None
        if isinstance(rule, Fixed) and rule.guesses is not None:
            if isinstance(rule.guesses, int) and rule.guesses > size:
                return False
            number = rule.number(size)
        return flawless(setting, size, guesses=number) >= setting.target

    return _least(enough, 1.0)


def plan(
    setting: Setting, *, mu: float, power: float, shares: tuple[float, ...] | None = None
) -> Plan | None:
    """Return the cheapest plan by which the bound reaches the target with probability `power`.

    Parameters
    ----------
    setting : Setting
        What is to be shown.
    mu : float
        Of the mechanism, which is taken to be Gaussian: see `mu_of`.
    power : float
        How often the bound shall reach the target.
    shares : tuple of float, optional
        Of guesses, to choose from; by default `SHARES`, and `CUTS` for two worlds.

    Returns
    -------
    Plan or None
        None where `MOST` examples fall short.

    References
    ----------
    `power_of`, solved for the number of examples.

    Examples
    --------
    >>> plan(Setting("two-worlds", 1.0, "gaussian"), mu=mu_of(4.0, 1e-5), power=0.8).examples
    216
    """
    plans = []
    for share in _usual_shares(setting) if shares is None else shares:
        if not _possible(setting, share, mu):
            continue

        def enough(examples: int, share: float = share) -> bool:
            return power_of(setting, examples, share=share, mu=mu) >= power

        examples = _least(enough, 0.01)
        if examples is not None:
            reached = power_of(setting, examples, share=share, mu=mu)
            plans.append(Plan(examples, share, reached))
    return min(plans, key=lambda one: one.examples, default=None)


def power_of(setting: Setting, examples: int, *, share: float, mu: float) -> float:
    """Return the probability that the bound from so many examples reaches the target.

    Parameters
    ----------
    setting : Setting
        What is to be shown.
    examples : int
        That are counted on; for two worlds the runs of both together.
    share, mu : float
        As in `Plan` and `plan`.

    Returns
    -------
    float
        The power of the best attack.

    References
    ----------
    Not in the papers. The count of right guesses is binomial, by `accuracy`; so are the errors of
    two worlds, by `error_rates`.

    Examples
    --------
    >>> setting = Setting("one-run-fdp", 1.0)
    >>> round(power_of(setting, 500, share=0.2, mu=mu_of(2.5, 1e-5)), 2)
    0.65
    """
    if setting.method == "two-worlds":
        return _two_worlds_power(setting, examples // 2, share, mu)
    guesses = max(1, round(share * examples))
    if setting.method == "panoramia":
        guesses = max(1, guesses // 2)  # it guesses members only
    needed = _needed(setting, guesses, examples)
    if needed is None:
        return 0.0
    return float(binom.sf(needed - 1, guesses, accuracy(share, mu) * setting.kept))


def accuracy(share: float, mu: float) -> float:
    """Return how often a guess is right, on the share of examples with the most extreme scores.

    Half of the guesses are for the highest scores, half for the lowest. The tail beyond a distance
    z from the middle holds ``Φ(μ/2 - z)`` of one kind and ``Φ(-μ/2 - z)`` of the other.

    Parameters
    ----------
    share, mu : float
        As in `power_of`.

    Returns
    -------
    float
        Above a half.

    References
    ----------
    Not in the papers.

    Examples
    --------
    >>> round(accuracy(1.0, 1.0), 3), round(accuracy(0.1, 1.0), 3)
    (0.691, 0.903)
    """
    if share >= 1.0:
        return float(ndtr(mu / 2.0))

    def excess(z: float) -> float:
        return float(ndtr(mu / 2.0 - z) + ndtr(-mu / 2.0 - z)) - share

    z = brentq(excess, 0.0, mu / 2.0 - float(ndtri(share / 4.0)) + 1.0)
    return float(ndtr(mu / 2.0 - z)) / share


def error_rates(share: float, mu: float) -> tuple[float, float]:
    """Return both error rates of the cut that this share of all runs lies above.

    Parameters
    ----------
    share, mu : float
        As in `power_of`; a share of a half is the cut in the middle.

    Returns
    -------
    fpr, fnr : float
        The first is that of runs without the canary.

    References
    ----------
    Not in the papers.

    Examples
    --------
    >>> [round(rate, 3) for rate in error_rates(0.5, 2.0)]
    [0.159, 0.159]
    """

    def excess(z: float) -> float:
        return float(ndtr(-z) + ndtr(mu - z)) - 2.0 * share

    z = mu / 2.0 if share == 0.5 else brentq(excess, mu / 2.0, mu + 1.0 - float(ndtri(share)))
    return float(ndtr(-z)), float(ndtr(z - mu))


def would_find(bound: Bound, accuracy: float, *, power: float = 0.8) -> float:
    """Return the ε that an attack of a given accuracy would have found in an audit of this design.

    After an audit that found little: how good would the attack have had to be? The design is the
    number of examples and guesses, or of runs in two worlds, with the δ, the level and the theorem.

    Parameters
    ----------
    bound : Bound
        Of `one_run`, `one_run_fdp`, `two_worlds` or `audit_scores`, for one set of counts.
    accuracy : float
        How often a guess is right, each independently of the others; for two worlds in either one.
    power : float
        In which share of such audits the bound would be at least what is returned.

    Returns
    -------
    float
        ε at the bound's own δ and confidence.

    References
    ----------
    The theorem of the bound. That guesses are independent is a benchmark, not a theorem.

    Examples
    --------
    >>> bound = one_run(540, 1000, 10_000)
    >>> round(bound.epsilon, 2), round(would_find(bound, 0.7), 2)
    (0.05, 0.68)
    """
    chance, power = _check.fraction("accuracy", accuracy), _check.fraction("power", power)
    details, rule = bound.details, str(bound.details.get("threshold", ""))
    counted_plainly = {"guesses", "negatives"} & set(details) and "kept" not in details
    if bound.confidence is None or np.ndim(bound.epsilon) or not counted_plainly:
        raise ValueError(f"bound must be of one run or of two worlds, of one count, got {bound}")
    part = {"Bonferroni": 1.0 / details.get("candidates", 1), "MultiSplit": 0.5}
    level = (1.0 - bound.confidence) * part.get(rule.partition("(")[0], 1.0)
    settings: Any = {"delta": bound.delta, "confidence": 1.0 - level}
    if "guesses" in details:
        theorem = one_run_fdp if "mu" in details else one_run
        settings |= {"tau": details["tau"]} if "mu" in details else {}
        guesses = details["guesses"]
        right = int(binom.ppf(1.0 - power, guesses, chance))
        return float(theorem(right, guesses, details["examples"], **settings).epsilon)
    likely, often = [], []
    for runs in (details["negatives"], details["positives"]):
        ends = binom.ppf([1e-9, 1.0 - 1e-9], runs, 1.0 - chance).astype(np.int64)
        likely.append(np.arange(ends[0], ends[1] + 1))
        often.append(binom.pmf(likely[-1], runs, 1.0 - chance))
    found = two_worlds(
        likely[0][:, None],
        details["negatives"],
        likely[1],
        details["positives"],
        method="gaussian" if "mu" in details else "clopper-pearson",
        **settings,
    )
    epsilons, weights = np.ravel(found.epsilon), np.outer(*often).ravel()
    order = np.argsort(-epsilons, kind="stable")
    reached = np.searchsorted(weights[order].cumsum(), power)
    return float(epsilons[order][reached])


def best_would_find(bound: Bound, epsilon: float, *, power: float = 0.8) -> float:
    """Return the ε that the best attack would have found of a mechanism with a true ε.

    The mechanism is taken to be Gaussian, as in `plan`, and the design to be that of `bound`.

    Parameters
    ----------
    bound : Bound
        As in `would_find`.
    epsilon : float
        The true ε at the bound's δ, or at 1e-5 where that is 0.
    power : float
        As in `would_find`.

    Returns
    -------
    float
        ε at the bound's own δ and confidence.

    References
    ----------
    `accuracy` of the guesses that were made, or for two worlds of the cut in the middle, and
    `would_find`.

    Examples
    --------
    >>> bound = one_run(540, 1000, 10_000)
    >>> [round(best_would_find(bound, true), 2) for true in (1.0, 2.0, 4.0)]
    [0.39, 0.88, 1.8]
    """
    mu = mu_of(_check.positive("epsilon", epsilon), bound.delta or FINITE)
    share = 1.0
    if "guesses" in bound.details:
        share = bound.details["guesses"] / bound.details["examples"]
    return would_find(bound, min(accuracy(share, mu), 1.0 - 1e-15), power=power)


def _possible(setting: Setting, share: float, mu: float) -> bool:
    """Say whether guesses of this accuracy could show the target with any number of examples.

    As examples grow, (ε, 0) in one run shows the log-odds of the accuracy, and nothing shows more
    in one run under the Gaussian family than the accuracy of all guesses under the target. Two
    worlds show what their exact error rates do.
    """
    if setting.method == "two-worlds":
        if limits_of(setting.family) == "gaussian":
            return mu > mu_of(setting.target, setting.delta)
        fpr, fnr = error_rates(share, mu)
        return float(np.log(max(1.0 - setting.delta - fnr, fpr) / fpr)) > setting.target
    chance = accuracy(share, mu) * setting.kept
    if setting.method in ("one-run", "panoramia"):
        return float(np.log(chance) - np.log1p(-chance)) > setting.target
    goal = mu_of(setting.target, setting.delta)
    return chance > accuracy(share, goal)


def _needed(setting: Setting, guesses: int, examples: int) -> int | None:
    """Return the least number of correct guesses that shows the target, None if all do not."""
    low, high = guesses // 2, guesses  # low is never enough
    if _shown(setting, np.array([high]), guesses, examples)[0] < setting.target:
        return None
    while high - low > 1:
        tried = np.unique(np.linspace(low, high, 34).astype(np.int64)[1:-1])
        tried = tried[(tried > low) & (tried < high)]
        enough = _shown(setting, tried, guesses, examples) >= setting.target
        low = int(tried[~enough].max()) if (~enough).any() else low
        high = int(tried[enough].min()) if enough.any() else high
    return high


def _shown(setting: Setting, right: np.ndarray, guesses: int, examples: int) -> np.ndarray:
    counts = GuessCounts(right, guesses, examples)
    settings = {"delta": setting.delta, "confidence": setting.confidence}
    if setting.method == "panoramia":
        level = (1.0 - setting.confidence) / 2.0 / examples
        settings = {"delta": 0.0, "confidence": 1.0 - level}
    pure = setting.method in ("one-run", "panoramia")
    theorem: Callable[..., object] = one_run if pure else one_run_fdp
    bound = theorem(counts.correct, counts.guesses, counts.examples, **settings)
    return np.asarray(bound.epsilon)  # type: ignore[attr-defined]


def _usual_shares(setting: Setting) -> tuple[float, ...]:
    """Return the shares to choose from; under the Gaussian family the cut stays in the middle."""
    if setting.method != "two-worlds":
        return SHARES
    return CUTS if limits_of(setting.family) == "clopper-pearson" else CUTS[:1]


def _two_worlds_power(setting: Setting, runs: int, share: float, mu: float) -> float:
    """Return the power of as many runs in either world, of which a share lies above the cut."""
    if runs < 1:
        return 0.0
    fpr, fnr = error_rates(share, mu)
    likely = np.arange(int(binom.ppf(1e-9, runs, fpr)), int(binom.isf(1e-9, runs, fpr)) + 1)
    low, high = np.full(likely.size, -1), np.full(likely.size, runs)  # low is enough, high not
    while (high - low > 1).any():
        middle = (low + high) // 2
        bound = two_worlds(
            likely,
            runs,
            np.maximum(middle, 0),
            runs,
            method=limits_of(setting.family),
            delta=setting.delta,
            confidence=setting.confidence,
        )
        enough = (np.asarray(bound.epsilon) >= setting.target) | (middle < 0)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return float((binom.pmf(likely, runs, fpr) * binom.cdf(low, runs, fnr)).sum())


def _least(enough: Callable[[int], bool], precision: float) -> int | None:
    """Return a number that is enough where one less, or a share `precision` less, is not."""
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST:
            return None
    low = high // 2
    while high - low > max(1.0, precision * low if precision < 1.0 else 1.0):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
