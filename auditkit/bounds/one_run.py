"""What the number of correct guesses in a single training run proves under (ε, δ).

Every example is a member, or carries its true label, by a fair coin of its own. An attack that has
seen the result guesses some of the coins, and the count of correct guesses is compared with what a
private mechanism allows. `one_run` reads it under (ε, δ), `one_run_fdp` under a family of trade-off
functions.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.bounds.clopper_pearson import lower_limit, upper_limit
from auditkit.bounds.one_run_certificate import check_fdp
from auditkit.bounds.one_run_steinke import FEW, steinke
from auditkit.bounds.result import Bound, plain

Counts: TypeAlias = tuple[Ints, Ints, Ints]

COINS = "Each example was in, or carried its own label, by a fair coin independent of the others."
FIXED_NUMBER = "The number of guesses was fixed in advance."
# Of the level, what a number of guesses that depends on the release leaves to chance; the rest pays
# for δ.
SHARE_OF_CHANCE = 0.9


@overload
def one_run(
    correct: int,
    guesses: int,
    examples: int,
    *,
    delta: float = ...,
    confidence: float = ...,
    method: Literal["exact", "steinke"] = ...,
    choices: int = ...,
    guesses_fixed: bool = ...,
) -> Bound[float]: ...
@overload
def one_run(
    correct: ArrayLike,
    guesses: ArrayLike,
    examples: ArrayLike,
    *,
    delta: float = ...,
    confidence: float = ...,
    method: Literal["exact", "steinke"] = ...,
    choices: int = ...,
    guesses_fixed: bool = ...,
) -> Bound[Any]: ...
def one_run(
    correct: ArrayLike,
    guesses: ArrayLike,
    examples: ArrayLike,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    method: Literal["exact", "steinke"] = "exact",
    choices: int = 2,
    guesses_fixed: bool = True,
) -> Bound[Any]:
    """Return the largest ε that the correct guesses of one run rule out at `delta`.

    No valid bound can be larger: under (ε, δ)-DP, at least v of r guesses on m coins are right with
    probability at most ``P* = β + (1 - β) min(1, m δ / κ)``, and a mechanism attains it
    (`auditkit.mechanisms.worst_count`). Here K is a binomial count of r with chance
    ``e^ε / (1 + e^ε)``, β is P(K ≥ v) and κ the mean of ``K - e^ε (r - K)`` given K ≥ v. The bound
    is the largest ε at which P* is at most ``1 - confidence``.

    Parameters
    ----------
    correct, guesses, examples : array_like of int
        How many guesses were right, how many were made, and how many coins there were. Arrays
        broadcast.
    delta : float
        The δ at which ε is stated; 0 for pure ε.
    confidence : float
        How often the bound holds.
    method : {"exact", "steinke"}
        "steinke" is Theorem 5.2 of the paper below, a smaller number, to reproduce what papers
        report.
    choices : int
        How many values each coin has. With more than two, an example carried one of them, drawn
        uniformly, and neighbours differ in one value.
    guesses_fixed : bool
        False where the number of guesses depends on what was released. It costs a little of ε, and
        nothing at δ = 0.

    Returns
    -------
    Bound
        With ``claim="lower bound"``, and in `details` the ``nu`` and ``lambda`` of its proof, which
        `check_certificate` verifies.

    Notes
    -----
    *Proof.* Write ``g = e^ε`` and let N count the right guesses. Take numbers ``0 ≤ a_k ≤ λ`` and ν
    with ``k a_k - g (r - k) a_{k+1} ≥ 1[k ≥ v] - ν`` for k = 0 … r. For each coin i apply (ε, δ)-DP
    to the function that is a_N where guess i is made and right, and 0 elsewhere: its mean is at
    most g times its mean after coin i is turned over, plus λδ. There guess i is wrong, and the
    count is one lower. Averaged over all coins and summed over i,
    ``E[N a_N] ≤ g E[(r - N) a_{N+1}] + m λ δ``. So ``P(N ≥ v) ≤ ν + m λ δ``. The best choice is
    ν = β and λ = (1 - β) / κ, with a_k from Stein's equation of the binomial law, where "≥" is "=".

    *More choices.* With L values, turning coin i over means each of the L - 1 others, and
    ``g = e^ε / (L - 1)``.

    *Guesses that depend on the release.* Let v(r) be the count that is judged significant among r
    guesses, and fix t below the level α. If ``β_r(v(r)) ≤ t`` and ``κ_r(v(r)) ≥ κ* = m δ (1 - t) /
    (α - t)`` for every r, the a_k of each r times ``(1 - t) / (1 - β_r)`` satisfy the inequalities
    with ν = t and λ = (1 - t) / κ*, so that a false alarm has probability α at most. Here
    t = 0.9 α.

    References
    ----------
    Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023: the
    game, and the case δ = 0.

    Examples
    --------
    >>> bound = one_run(98, 100, 10_000, delta=1e-4)
    >>> round(bound.epsilon, 4), check_certificate(bound)
    (2.6579, True)
    >>> round(one_run(98, 100, 10_000, delta=1e-4, method="steinke").epsilon, 4)
    0.7218
    """
    c, r, m = border(correct, guesses, examples)
    delta = _check.delta("delta", delta)
    level = 1.0 - _check.fraction("confidence", confidence)
    choices = _check.whole("choices", choices, least=2)
    fixed = _check.flag("guesses_fixed", guesses_fixed) or delta == 0.0
    proof = {}
    if _check.choice("method", method, ("exact", "steinke")) == "exact":
        share = 1.0 if fixed else SHARE_OF_CHANCE
        epsilon, nu, price = largest_epsilon(
            c, r, np.asarray(delta * m), level=level, choices=choices, share=share
        )
        proof = {"nu": plain(nu), "lambda": plain(price), "choices": choices}
    else:
        _check_steinke(delta, level, choices, fixed)
        epsilon = _without_delta(c, r, level, 2)
        if delta > 0.0:
            epsilon = steinke(c, r, m, delta, level, epsilon)
    return Bound(
        epsilon=plain(epsilon),
        delta=delta,
        confidence=confidence,
        claim="lower bound",
        adjacency="add/remove" if choices == 2 else "substitute",
        method="one run, exact" if proof else "one run, Theorem 5.2 of Steinke et al.",
        assumptions=_assumptions(choices, fixed and delta > 0.0),
        details={**operating_point(c, r, m, level), **proof},
    )


def check_certificate(bound: Bound) -> bool:
    """Say whether the proof that a one-run bound carries holds, by arithmetic alone.

    Parameters
    ----------
    bound : Bound
        Of `one_run`, or of ``one_run_fdp(..., method="certificate")``.

    Returns
    -------
    bool
        Whether the numbers a_k that ν allows satisfy the inequalities in the notes of `one_run`,
        stay below λ, and give a chance of at most the level; for f-DP see
        `auditkit.bounds.one_run_certificate.check_fdp`. Of an array, whether all proofs hold.

    Examples
    --------
    >>> check_certificate(one_run([60, 80], 100, 1000))
    True
    """
    said = bound.details
    if "certificate" in said:
        return bool(np.all(check_fdp(bound)))
    if "lambda" not in said:
        raise ValueError(f"bound must carry a certificate, got one of {bound.method!r}")
    names = ("correct", "guesses", "examples", "nu", "lambda")
    rows = np.broadcast(bound.epsilon, *(said[name] for name in names))
    return all(
        epsilon == 0.0
        or _proves(
            math.exp(epsilon) / (said["choices"] - 1),
            v,
            r,
            nu,
            price,
            m * bound.delta,
            said["level"],
        )
        for epsilon, v, r, m, nu, price in rows
    )


def _proves(g: float, v: int, r: int, nu: float, price: float, weight: float, level: float) -> bool:
    """Check one certificate: least a_k from above, largest from below, and what they cost."""
    slack = 1.0 + 1e-9
    above = highest = 0.0
    for k in range(r, v - 1, -1):
        above = (1.0 - nu + g * (r - k) * above) / k
        highest = max(highest, above)
    below = 0.0
    for k in range(v):
        below = min(price * slack, (nu + k * below) / (g * (r - k)))
    return (
        above <= below * slack
        and highest <= price * slack
        and nu + weight * price <= level * (1.0 + 1e-12)
    )


def border(correct: ArrayLike, guesses: ArrayLike, examples: ArrayLike) -> Counts:
    """Check the three counts and return them with one shape."""
    c, r, m = _check.one_shape(
        correct=_check.counts("correct", correct),
        guesses=_check.counts("guesses", guesses),
        examples=_check.counts("examples", examples),
    )
    _check.at_most("correct", c, "guesses", r)
    _check.at_most("guesses", r, "examples", m)
    if (m < 1).any():
        raise ValueError(f"examples must be at least 1, got {m.min()}")
    return c.copy(), r.copy(), m.copy()


def operating_point(c: Ints, r: Ints, m: Ints, level: float) -> dict[str, Any]:
    """Return the counts and the level as the details of a bound."""
    counts = {"examples": m, "guesses": r, "correct": c}
    return {
        **{name: int(value) if value.ndim == 0 else value for name, value in counts.items()},
        "level": level,
    }


def _assumptions(choices: int, fixed_number: bool) -> tuple[str, ...]:
    coins = COINS
    if choices > 2:
        coins = f"Each example carried one of {choices} values, drawn uniformly and independently."
    return (coins, FIXED_NUMBER) if fixed_number else (coins,)


def _check_steinke(delta: float, level: float, choices: int, fixed: bool) -> None:
    if delta > 0.0 and level > 0.8:
        raise ValueError(
            "confidence must be at least 0.2 where delta > 0 with method='steinke', "
            f"got {1.0 - level!r}"
        )
    if choices != 2 or not fixed:
        raise ValueError(
            "method='steinke' takes choices=2 and guesses_fixed=True, "
            f"got choices={choices!r} and guesses_fixed={fixed!r}"
        )


def _without_delta(c: Ints, r: Ints, level: float, choices: int) -> Floats:
    """Return ε at δ = 0: from the Clopper-Pearson lower limit of c of r, and at least 0."""
    # the limit's distance from 1 is a limit on the wrong guesses, with all its digits
    with np.errstate(divide="ignore"):
        odds = np.log(lower_limit(c, r, level)) - np.log(upper_limit(r - c, r, level))
    return np.asarray(np.maximum(odds + math.log(choices - 1), 0.0))


def largest_epsilon(
    c: Ints, r: Ints, weight: Floats, *, level: float, choices: int = 2, share: float = 1.0
) -> tuple[Floats, Floats, Floats]:
    """Return the largest ε that each count rejects at weight m δ, and the ν and λ that prove it.

    A `share` below 1 of the level is left to chance where the number of guesses may depend on the
    release.
    """
    highest = _without_delta(c, r, share * level, choices)
    counts, weights, ends = (c.ravel(), r.ravel()), weight.ravel(), highest.ravel()
    others = choices - 1.0
    if share < 1.0:
        found = _search_shared(*counts, weights, ends, level, share * level, others)
    elif c.size > FEW:
        found = _search_lanes(*counts, weights, ends, level, others)
    else:
        lanes = zip(*(column.tolist() for column in (*counts, weights, ends)), strict=True)
        found = np.array([_search(v, n, w, end, level, others) for v, n, w, end in lanes]).reshape(
            -1, 3
        )
    epsilon, nu, price = (column.reshape(c.shape) for column in found.T)
    return epsilon, nu, price


@njit(cache=True)
def _search(
    v: int, r: int, weight: float, high: float, level: float, others: float
) -> tuple[float, float, float]:
    """Return the largest rejected ε by Newton's method on log P*, bracketed by bisection.

    `high` is the value at δ = 0, and the end is on the rejected side.
    """
    if high > 0.0 and weight == 0.0:
        ratio = _ratio(v, r, math.exp(high) / others, math.inf)
        return high, level, (1.0 - level) * ratio / v
    low = 0.0
    if high <= 0.0 or worst_chance(v, r, weight, 0.0, others)[0] > level:
        return 0.0, 1.0, 0.0
    x = high
    for _ in range(200):
        chance, slope, _, _ = worst_chance(v, r, weight, x, others)
        if chance <= level:
            low = x
        else:
            high = x
        step = math.log(chance / level) * chance / slope if slope > 0.0 else math.inf
        if low == high or abs(step) <= 1e-14 * x:
            break
        x -= step
        if not low < x < high:
            x = 0.5 * (low + high)
            if x in (low, high):
                break
    # rounding alone separates the last step from the level
    retreat = 1e-15
    while x > 0.0:
        chance, _, nu, price = worst_chance(v, r, weight, x, others)
        if chance <= level:
            return x, nu, price
        x = max(low, x * (1.0 - retreat))
        retreat *= 2.0
    return 0.0, 1.0, 0.0


@njit(parallel=True, cache=True)
def _search_lanes(
    correct: Ints, guesses: Ints, weight: Floats, highest: Floats, level: float, others: float
) -> Floats:
    """Search every lane on its own."""
    result = np.zeros((correct.size, 3))
    for lane in prange(correct.size):
        result[lane] = _search(
            correct[lane], guesses[lane], weight[lane], highest[lane], level, others
        )
    return result


@njit(cache=True)
def _search_shared(
    correct: Ints,
    guesses: Ints,
    weight: Floats,
    highest: Floats,
    level: float,
    chance: float,
    others: float,
) -> Floats:
    """Return the largest ε at which both halves of the test reject, by bisection.

    `highest` is the largest with β at most `chance`; below it κ has to be large enough.
    """
    result = np.zeros((correct.size, 3))
    for lane in range(correct.size):
        v, r = correct[lane], guesses[lane]
        # v / H is κ, and price its price at ν = chance
        price = (level - chance) / weight[lane]
        most = v * price / (1.0 - chance)
        low, high = 0.0, highest[lane]
        if high > 0.0 and _ratio(v, r, 1.0 / others, most) <= most:
            if _ratio(v, r, math.exp(high) / others, most) <= most:
                low = high
            while high - low > 1e-14 * high:
                x = 0.5 * (low + high)
                if x in (low, high):
                    break
                if _ratio(v, r, math.exp(x) / others, most) <= most:
                    low = x
                else:
                    high = x
        if low > 0.0:
            result[lane] = low, chance, price
        else:
            result[lane] = 0.0, 1.0, 0.0
    return result


@njit(cache=True)
def worst_chance(
    v: int, r: int, weight: float, epsilon: float, others: float
) -> tuple[float, float, float, float]:
    """Return P* of v of r right guesses, its slope in ε, and the ν and λ that prove it.

    `weight` is m δ, and each coin has `others` values besides its own.
    """
    if v == 0:
        return 1.0, 0.0, 1.0, 0.0
    g = math.exp(epsilon) / others
    q = 1.0 / (1.0 + g)
    most = v / weight if weight > 0.0 else math.inf
    ratio = _ratio(v, r, g, most)
    if ratio >= most:
        return 1.0, 0.0, 1.0, 0.0
    beta = min(1.0, math.exp(_log_mass(v, r, g)) * ratio)
    by_one = weight * ratio / v
    chance = beta + (1.0 - beta) * by_one
    slope = beta * q * v / ratio + (weight / v) * (
        q * v * (1.0 - 2.0 * beta) - (1.0 - beta) * ratio * (v - r * g * q)
    )
    return chance, slope, beta, (1.0 - beta) * ratio / v


@njit(cache=True)
def _ratio(v: int, r: int, g: float, most: float) -> float:
    """Return P(K ≥ v) / P(K = v), or what it has passed `most` with."""
    total = term = 1.0
    for j in range(r - v):
        term *= g * (r - v - j) / (v + 1.0 + j)
        total += term
        if term <= 1e-17 * total or total > most:
            break
    return total


@njit(cache=True)
def _log_mass(k: int, r: int, g: float) -> float:
    """Return the log-probability of k ≥ 1 right of r guesses with odds g, by Loader's formula."""
    if k == r:
        return -r * math.log1p(1.0 / g)
    p, q = g / (1.0 + g), 1.0 / (1.0 + g)
    return (
        _stirling_error(r)
        - _stirling_error(k)
        - _stirling_error(r - k)
        - _deviance(k, r * p)
        - _deviance(r - k, r * q)
        - 0.5 * math.log(2.0 * math.pi * k * (1.0 - k / r))
    )


@njit(cache=True)
def _stirling_error(n: int) -> float:
    """Return log n! less Stirling's formula."""
    if n < 16:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.9189385332046727
    s = 1.0 / (n * n)
    return (
        1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - (1 / 1188 - 691 / 360360 * s) * s) * s) * s) * s
    ) / n


@njit(cache=True)
def _deviance(x: float, mean: float) -> float:
    """Return x log(x / mean) + mean - x, with its digits where the two are close."""
    away = (x - mean) / (x + mean)
    if abs(away) >= 0.1:
        return x * math.log(x / mean) + mean - x
    total = (x - mean) * away
    term, square, j = 2.0 * x * away, away * away, 1
    while True:
        term *= square
        j += 2
        new = total + term / j
        if new == total:
            return total
        total = new
