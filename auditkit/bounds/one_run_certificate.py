"""The largest bound on a family of trade-off functions that one run can prove, with its proof.

`one_run_fdp(..., method="certificate")` stands on this. A certificate is a handful of arrays that
`check_fdp` verifies by itself; beside it stands a mechanism of the same curve, whose law of the
number of correct guesses `worst_law` gives, and which no bound can beat.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit

from auditkit import _check
from auditkit._types import Bools, Floats, Ints
from auditkit.bounds.result import Bound
from auditkit.bounds.tradeoff import (
    GaussianDP,
    PureDP,
    TradeOff,
    normal_cdf,
    normal_quantile,
)

MOST_GUESSES = 2000
FAMILIES = ("gaussian", "pure")

_ROUNDING = 2.3e-16  # the relative error of one operation
_CLOSE = 1e-7  # a bracket of the tail this narrow is closed
_MARGIN = 1e-10  # what a tail stays below the level, relative, for rounding
_FAR = 1e-3  # a tail this far from the level, in logs, needs no long search
_SHORT, _LONG = 4, 40  # after so many laws in a row that are no better, a search ends
_ROOT_2PI = 2.5066282746310002


@dataclass(frozen=True, eq=False)
class Certificate:
    """What proves that under one curve of a family so many correct guesses are rare.

    Attributes
    ----------
    family : {"gaussian", "pure"}
        The family of the curve.
    parameter : float
        Its μ or ε: the one that the count rules out.
    nu : float
        ν, the largest of ``1[k ≥ v] - k a_k + (r - k) G(a_{k+1})``.
    largest : float
        λ, the largest of the values.
    knots, slopes : ndarray
        The function G: its knots from 0 to λ, and its slopes between them.
    values : ndarray
        a_k for k = 0..r correct guesses; the first is not used.
    """

    family: str
    parameter: float
    nu: float
    largest: float
    knots: Floats = field(repr=False)
    slopes: Floats = field(repr=False)
    values: Floats = field(repr=False)

    @property
    def curve(self) -> TradeOff:
        """The curve that is ruled out."""
        return GaussianDP(self.parameter) if self.family == "gaussian" else PureDP(self.parameter)

    def tail(self, correct: int, examples: int) -> float:
        """Return the chance of `correct` or more that this proves to be the largest one.

        Nothing is taken from the search that found the arrays, and ν is computed anew. What
        rounding may take from a condition is added to it, so that the value is never too small. It
        is 1 for arrays that are no certificate.

        Examples
        --------
        >>> g = math.e  # the pure curve at ε = 1, one guess: it is right with chance g / (1 + g)
        >>> knots, values = np.array([0.0, 1 / (1 + g)]), np.array([0.0, 1 / (1 + g)])
        >>> proof = Certificate("pure", 1.0, g / (1 + g), 1 / (1 + g), knots, np.array([g]), values)
        >>> round(proof.tail(1, 1), 6), round(g / (1 + g), 6)
        (0.731059, 0.731059)
        """
        k = np.arange(self.values.size)
        wrong = k[::-1]
        steps = np.diff(self.knots)
        if not (
            self.knots[0] == 0.0
            and (steps >= 0.0).all()
            and (self.slopes >= 1.0).all()
            and self.values.min() >= 0.0
            and self.values.max() <= self.knots[-1]
        ):
            return 1.0
        heights = np.append(0.0, np.cumsum(self.slopes * steps))
        after = np.append(np.interp(self.values[1:], self.knots, heights), 0.0)
        short = (k >= correct) - k * self.values + wrong * after
        rounding = _ROUNDING * (k.size + 8) * (1.0 + k * self.values + wrong * after)
        leaks = np.asarray(self.curve.delta(np.log(self.slopes)))
        return float((short + rounding).max() + examples * (leaks @ steps) * (1.0 + 1e-11))


def check_fdp(bound: Bound) -> bool | Bools:
    """Return whether the certificates in a bound of `one_run_fdp` prove it.

    Each condition is computed anew from the arrays, and from the curve's δ(ε): no search, and no
    compiled code.

    Parameters
    ----------
    bound : Bound
        From ``one_run_fdp(..., method="certificate")``.

    Returns
    -------
    bool or ndarray
        One answer for each bound: True if the certificate proves it, or if it is 0. False too where
        the recursion gave more, which comes without a certificate.

    Notes
    -----
    *Theorem.* Let f be a symmetric trade-off function, ``F = 1 - f`` and
    ``δ(γ) = max_t F(t) - γ t``. Let G be piecewise linear on [0, λ], with G(0) = 0 and slopes of at
    least 0, and let a_1, …, a_r in [0, λ] and ν satisfy, for k = 0..r,

        ``k a_k - (r - k) G(a_{k+1}) ≥ 1[k ≥ v] - ν``.

    Then an attack that makes r guesses on the m fair coins of an f-DP mechanism gets v or more of
    them right with probability at most ``ν + m ∫₀^λ δ(G'(a)) da``.

    *Proof.* Let P_x be the law of what is released when the coins are x, and x' be x with coin i
    turned. An event E has ``P_x(E) ≤ F(P_x'(E)) ≤ γ P_x'(E) + δ(γ)`` for every γ ≥ 0. Let E be
    "coin i is guessed, x_i is what is guessed, and a_N > a", where N counts the guesses that agree
    with x. Under P_x' the same outputs have coin i guessed wrong and one right guess less. So, with
    γ = G'(a) and averaged over the coins, since x' is as uniform as x,

        ``P(i right, a_N > a) ≤ G'(a) P(i wrong, a_{N+1} > a) + δ(G'(a))``.

    Sum over i: N guesses are right and r - N wrong. Integrate over a from 0 to λ: the integral of
    1[a_N > a] is a_N, that of G'(a) 1[a_{N+1} > a] is G(a_{N+1}). Hence
    ``E[N a_N] ≤ E[(r - N) G(a_{N+1})] + m ∫ δ(G')``, and the condition at k = N, in expectation, is
    ``P(N ≥ v) - ν ≤ E[N a_N - (r - N) G(a_{N+1})]``. ∎

    It holds for every G, so that a poor search only makes the bound smaller. Slopes below 1 are
    never of use where r ≤ m; the check refuses them.

    Examples
    --------
    >>> from auditkit import one_run_fdp
    >>> bound = one_run_fdp(80, 100, 1000, method="certificate")
    >>> round(bound.epsilon, 4), bound.details["exact"], check_fdp(bound)
    (1.4524, True, True)
    """
    found = bound.details.get("certificate", ())
    if found == ():
        raise ValueError(
            f"bound must come from one_run_fdp(..., method='certificate'), got {bound.method!r}"
        )
    proofs = found if isinstance(found, tuple) else (found,)
    c, r, m = (np.ravel(bound.details[name]) for name in ("correct", "guesses", "examples"))
    epsilon = np.asarray(bound.epsilon)
    result = np.zeros(epsilon.size, dtype=np.bool_)
    for i, (stated, proof) in enumerate(zip(epsilon.flat, proofs, strict=True)):
        result[i] = stated == 0.0
        if proof is not None and proof.values.size == r[i] + 1:
            reached = float(proof.curve.epsilon(bound.delta)) * (1.0 + 1e-12)
            result[i] = stated <= reached and proof.tail(c[i], m[i]) <= bound.details["level"]
    return result.reshape(epsilon.shape) if epsilon.ndim else bool(result[0])


def worst_law(
    parameter: float, correct: int, guesses: int, examples: int, *, family: str = "gaussian"
) -> Floats:
    """Return the law of the number of correct guesses under the least private mechanism known.

    Parameters
    ----------
    parameter : float
        The μ or ε of the curve, above 0.
    correct, guesses, examples : int
        The mechanism makes the chance of `correct` or more as large as is known to be possible.
    family : {"gaussian", "pure"}
        The family of the curve.

    Returns
    -------
    ndarray of shape (guesses + 1,)
        The chance of 0, 1, …, `guesses` correct guesses.

    Notes
    -----
    The mechanism draws N from this law, a uniform set of `guesses` coins and N places among them
    that are right. It keeps to the curve by construction. Seen from a coin, the outputs at which it
    is right as one of k have probability ``A_k = k w_k / m`` with it and
    ``B_k = (r - k + 1) w_{k-1} / m`` with it turned; those where it is wrong have the two
    exchanged, and those that do not guess it have 1 - r/m in both. Take the k in an order that
    starts at v and goes down to 1 and up to r in some interleaving. For k > v, w_{k-1} is known and
    gives B_k; for k ≤ v, w_k is known and gives A_k; the other one follows if the sums S of A and T
    of B are to have ``S = F(T)``. The scale of w_v makes w sum to 1, which is S + T = r/m at the
    end. So the most powerful tests of coin against coin turned have, as type-I error and power, a
    polygon with its corners on the concave curve F, from (0, 0) to the last (T, S), on with slope 1
    to the mirror image (1 - S, 1 - T), and on through the mirror images of the rest: nowhere above
    F. ∎

    Not every optimum is such an order. For 27 of 30 guesses right, 31 coins and μ = 1.1235, the
    best of all 3,654 orders attains 0.2127403. With its corner between k = 29 and k = 26 at 0.99228
    of the curve's height it still keeps to the curve and attains 0.2127439, as much as a
    certificate allows.

    Examples
    --------
    >>> w = worst_law(0.3761, 80, 100, 1000)
    >>> round(float(w.sum()), 9), round(float(w[80:].sum()), 4)
    (1.0, 0.05)
    """
    parameter = _check.positive("parameter", parameter)
    v = _check.whole("correct", correct, least=1)
    r, m = _check.whole("guesses", guesses, least=v), _check.whole("examples", examples, least=1)
    _check.at_most("guesses", np.asarray(r), "examples", np.asarray(m))
    refuse_many(np.asarray(r))
    gaussian = _check.choice("family", family, FAMILIES) == "gaussian"
    law = _start(v, r)
    _bracket(_Game(gaussian, parameter, v, r, m), law, _dual(r), _LONG)
    law += max(1.0 - law.sum(), 0.0) * _binomial(r, 0.5)  # for rounding: a coin that leaks nothing
    whole: Floats = law / law.sum()
    return whole


def refuse_many(guesses: Ints) -> None:
    """Raise if there are more guesses than the search can do."""
    if (guesses > MOST_GUESSES).any():
        raise ValueError(
            f"guesses must be at most {MOST_GUESSES} for method 'certificate', got "
            f"{guesses.max()}: method 'recursion' takes any number"
        )


def largest_certified(
    correct: Ints, guesses: Ints, examples: Ints, start: Floats, *, family: str, level: float
) -> tuple[Floats, Floats, tuple[Certificate | None, ...]]:
    """Return the largest certified parameters, ones that no bound can exceed, and certificates.

    `start` are parameters to begin with: those of the recursion.
    """
    certified, ceiling = np.zeros(correct.shape), np.zeros(correct.shape)
    proofs: list[Certificate | None] = []
    for index in np.ndindex(correct.shape):
        v, r, m = int(correct[index]), int(guesses[index]), int(examples[index])
        dual = _dual(r)
        found, least, nu = _search(family == "gaussian", v, r, m, level, float(start[index]), dual)
        certified[index], ceiling[index] = found, least
        proofs.append(_certificate(family, found, nu, dual) if found > 0.0 else None)
    return certified, ceiling, tuple(proofs)


class _Game(NamedTuple):
    """One curve, by its parameter, and the counts: v or more right of r guesses, m coins."""

    gaussian: bool
    parameter: float
    v: int
    r: int
    m: int


class _Dual(NamedTuple):
    """A certificate in the order of falling values.

    The q-th largest value belongs to rank[q] correct guesses and is knots[q]; from the next knot up
    to it, G has slope slopes[q], whose δ is deltas[q].
    """

    rank: Ints
    knots: Floats
    slopes: Floats
    deltas: Floats


@njit(cache=True)
def _dual(r: int) -> _Dual:
    return _Dual(np.zeros(r, np.int64), np.zeros(r), np.zeros(r), np.zeros(r))


def _certificate(family: str, parameter: float, nu: float, dual: _Dual) -> Certificate:
    values = np.zeros(dual.rank.size + 1)
    values[dual.rank] = dual.knots
    knots = np.append(0.0, dual.knots[::-1])
    return Certificate(
        family, float(parameter), nu, float(knots[-1]), knots, dual.slopes[::-1].copy(), values
    )


# the search for a parameter


@njit(cache=True)
def _search(
    gaussian: bool, v: int, r: int, m: int, level: float, start: float, best: _Dual
) -> tuple[float, float, float]:
    """Return the largest certified parameter, one that some mechanism exceeds, and ν.

    The trials are those of the secant through log(tail / level), within the bracket of what was
    certified and what was not. What is certified stays below the level by a margin for rounding.
    """
    fair = _binomial(r, 0.5)[v:].sum() if v > 0 else 1.0
    if fair > level:
        return 0.0, 0.0, 1.0
    goal, law, dual = level * (1.0 - _MARGIN), _start(v, r), _dual(r)
    low, high, ceiling, best_nu, short = 0.0, math.inf, math.inf, 1.0, 0.0
    x, before, excess_before = start if start > 0.0 else 0.02, 0.0, math.inf
    slope, patience = 0.0, _SHORT
    for _ in range(60):
        attained, proved, nu = _bracket(_Game(gaussian, x, v, r, m), law, dual, patience)
        excess, below = math.log(proved / goal), math.log(level / max(attained, 1e-300))
        if excess > 0.0:
            high = min(high, x)
        elif x > low:
            low, best_nu, short = x, nu, max(below, 0.0)
            _copy(dual, best)
        if below < 0.0:
            ceiling = min(ceiling, x)
        # where the bracket does not close, its own width is near enough
        near = max(4.0 * _MARGIN, 0.05 * (excess + below))
        if (patience == _LONG and -near <= excess <= 0.0) or high - low <= 1e-9 * low:
            break
        if patience == _SHORT and abs(excess) < _FAR:
            patience, high = _LONG, math.inf  # a longer search may certify what was not
        if excess_before < math.inf:
            slope = (excess - excess_before) / (x - before)
        before, excess_before = x, excess
        x = x - (excess + _MARGIN) / slope if slope > 0.0 else 1.02 * x
        if not low < x < min(high, 2.0 * before):
            x = 0.5 * (low + high) if high < math.inf else 2.0 * before
    # what the best mechanism falls short of the level here, it makes up for a little higher
    step = (short + _MARGIN) / max(slope, 1e-3)
    while low + step < min(ceiling, 2.0 * low + 1.0):
        attained, _, _ = _bracket(_Game(gaussian, low + step, v, r, m), law, dual, patience)
        if attained > level:
            ceiling = low + step
        step *= 1.5
    return low, ceiling, best_nu


@njit(cache=True)
def _bracket(game: _Game, law: Floats, best: _Dual, patience: int) -> tuple[float, float, float]:
    """Return a tail that a mechanism attains, one that no mechanism exceeds, and the latter's ν.

    `law` becomes the mechanism's, `best` the certificate. A law gives tangents to the curve, hence
    a certificate, whose order gives another law. A better law replaces the one before; one that is
    not is averaged with it: the laws that keep to the curve are convex, and the optimum may lie
    between two orders.
    """
    dual, other, mean = _dual(game.r), np.zeros(game.r + 1), law.copy()
    attained, proved, best_nu, nu, waited = 0.0, math.inf, 1.0, 1e-3, 0
    while True:
        tail, nu = _certify(game, mean, nu, dual)
        if tail < proved:
            proved, best_nu = tail, nu
            _copy(dual, best)
        width = (proved - attained) / proved
        # a width of 1e-5 is no more than 1e-6 or so of ε: not worth a long wait
        if width <= _CLOSE or waited > (min(patience, 16) if width <= 1e-5 else patience):
            return attained, proved, best_nu
        tail = _scale(game, dual.rank, mean[game.v], other)
        if tail > attained * (1.0 + 1e-13):
            attained, waited = tail, 0
            law[:] = other
            mean[:] = other
        else:
            mean += 2.0 / (waited + 4.0) * (other - mean)
            waited += 1


# certificates


@njit(cache=True)
def _certify(game: _Game, law: Floats, start: float, dual: _Dual) -> tuple[float, float]:
    """Fill `dual` for the tangents that a law gives, and return the tail and ν.

    The conditions are equations but for one gap, at v, which the least ν closes.
    """
    r, v, m = game.r, game.v, game.m
    sums, total = np.zeros(r + 2), 0.0
    for k in range(v, 0, -1):
        total += (r - k + 1) * law[k - 1] / m
        sums[k] = total
    total = 0.0
    for k in range(v + 1, r + 1):
        total += (r - k + 1) * law[k - 1] / m
        sums[k] = total
    errors = np.full(r, -1.0)
    low, high, x, before, gap_before = 0.0, 1.0, start, 0.0, math.inf
    for _ in range(80):
        gap = _backwards(game, sums, x, errors, dual)
        if gap >= 0.0:
            high = x
        else:
            low = x
        if gap == 0.0 or high - low < 4e-16 * high:
            break
        trial = x * (1.0 + 1e-6) if gap < 0.0 else x * (1.0 - 1e-6)
        if gap_before < math.inf and gap != gap_before:
            # a hair beyond the root, so that both sides close in
            trial = (x - gap * (x - before) / (gap - gap_before)) * (
                1.0 - math.copysign(1e-15, gap)
            )
        before, gap_before, x = x, gap, trial
        if not low < x < high:
            x = math.sqrt(max(low, 1e-290) * high) if high > 4.0 * low else 0.5 * (low + high)
    _backwards(game, sums, high, errors, dual)
    tail = high
    for q in range(r):
        inner = dual.knots[q + 1] if q + 1 < r else 0.0
        tail += m * dual.deltas[q] * (dual.knots[q] - inner)
    # at least the rounding that a check will allow for: no condition has terms above r λ + 1
    return tail + 2.0 * _ROUNDING * (r + 9) * (2.0 + r * dual.knots[0]), high


@njit(cache=True)
def _backwards(game: _Game, sums: Floats, nu: float, errors: Floats, dual: _Dual) -> float:
    """Fill `dual` from its smallest value to its largest, and return by how much v is met.

    Next comes the smaller of the two that may come: a_i, i ≤ v, from the condition at i - 1, which
    says what G(a_i) may be, or a_j, j > v, from its own. The order of the values is then the order
    of the coins' likelihood ratios. G's slope is the curve's at the type-I error of the test that
    says "right" to all that are left. The values rise as they come, so that all conditions hold
    when the one at v - 1 does.
    """
    p, v, r = game.parameter, game.v, game.r
    i, j = 1, r
    a, height, a_below, height_above = 0.0, 0.0, 0.0, 0.0
    for q in range(r - 1, -1, -1):
        error = sums[i] + (sums[j] if j > v else 0.0)
        if errors[q] != error:  # else the pass before came the same way
            errors[q] = error
            dual.slopes[q], dual.deltas[q] = _tangent(game.gaussian, p, error)
        slope = dual.slopes[q]
        allowed = (nu + (i - 1) * a_below) / (r - i + 1)
        below = a + (allowed - height) / slope
        above = (1.0 - nu + (r - j) * height_above) / j
        k, value = i, below
        if i == v and j == v:
            value = max(above, a)
        elif j > v and (i == v or above <= below):
            k, value = j, above
        height += slope * (value - a)
        a = value
        dual.rank[q], dual.knots[q] = k, value
        if k > v:
            j, height_above = j - 1, height
        elif k < v:
            i, a_below = i + 1, a
    return allowed - height


@njit(cache=True)
def _tangent(gaussian: bool, p: float, error: float) -> tuple[float, float]:
    """Return the slope γ of F at a type-I error, and δ(γ), what its tangent has at 0.

    Where errors and powers sum to at most 1, γ is at least 1 but for rounding.
    """
    if not gaussian:
        return math.exp(p) * (1.0 + 1e-14), 0.0  # so that δ is 0 after rounding too
    z = normal_quantile(error) + p
    slope = max(math.exp(p * (0.5 * p - z)), 1.0)
    return slope, max(normal_cdf(z) - slope * error, 0.0)


# mechanisms


@njit(cache=True)
def _scale(game: _Game, rank: Ints, start: float, law: Floats) -> float:
    """Fill the law of an order, and return its chance of v or more, or -1 if none was found.

    The law may sum to a little less than 1, never to more.
    """
    low, high = -math.inf, 0.0
    x, before, excess_before = math.log(max(start, 1e-300)), 0.0, math.inf
    for _ in range(100):
        excess = _forwards(game, rank, math.exp(x), law)
        if excess > 0.0:
            high = x
        else:
            low = x
        if -1e-13 < excess <= 0.0 or high - low < 4e-16 * abs(x):
            break
        trial = -math.inf
        if excess < math.inf:
            trial = x - excess
            if excess_before < math.inf and excess_before != excess:
                trial = x - (excess + 3e-14) * (x - before) / (excess - excess_before)
        before, excess_before, x = x, excess, trial
        if not low < x < high:
            x = 0.5 * (low + high) if low > -math.inf else high - 1.0
    if low == -math.inf:
        return -1.0
    _forwards(game, rank, math.exp(low), law)
    tail: float = law[game.v :].sum()
    return tail


@njit(cache=True)
def _forwards(game: _Game, rank: Ints, first: float, law: Floats) -> float:
    """Fill the law of an order from w_v on, and return the log of what it sums to."""
    p, v, r, m = game.parameter, game.v, game.r, game.m
    law[:] = 0.0
    law[v] = first
    power, error, z = 0.0, 0.0, -math.inf
    for q in range(r):
        k = rank[q]
        up, gain, loss = k > v, k * law[k] / m, (r - k + 1) * law[k - 1] / m
        if not game.gaussian:
            gain, loss = (loss * math.exp(p), loss) if up else (gain, gain * math.exp(-p))
        elif q == 0:
            if gain >= 1.0:
                return math.inf
            z = normal_quantile(gain)
            loss = normal_cdf(z - p)
        elif up:
            gain, step = _along(z - p, error, loss, p)
            z += step
        else:
            loss, step = _along(z, power, gain, -p)
            z += step
        law[k], law[k - 1] = m * gain / k, m * loss / (r - k + 1)
        power += gain
        error += loss
        if not power + error < 2.0 * r / m or power >= 1.0:
            return math.inf
    return math.log((power + error) * m / r)


@njit(cache=True)
def _along(x: float, below: float, mass: float, p: float) -> tuple[float, float]:
    """Return the mass at x + p of the step that has `mass` at x, and the step."""
    if mass < 1e-20 * below:  # as on a straight line; what is next to nothing slows a processor
        return (mass * math.exp(-p * (x + 0.5 * p)) if mass > 1e-280 else 0.0), 0.0
    step = _normal_step(x, below, mass)
    return _normal_mass(x + p, step), step


@njit(cache=True)
def _normal_mass(x: float, step: float) -> float:
    """Return Φ(x + step) - Φ(x), by a series around the middle where the step is short."""
    c = x + 0.5 * step
    if step >= 0.4 or abs(c) * step >= 0.4:
        if c > 0.0:
            return normal_cdf(-x) - normal_cdf(-x - step)
        return normal_cdf(x + step) - normal_cdf(x)
    s, q = c * c, 0.25 * step * step
    h2, h4 = s - 1.0, s * (s - 6.0) + 3.0
    h6 = s * (s * (s - 15.0) + 45.0) - 15.0
    h8 = s * (s * (s * (s - 28.0) + 210.0) - 420.0) + 105.0
    series = h2 / 6.0 + q * (h4 / 120.0 + q * (h6 / 5040.0 + q * h8 / 362880.0))
    return math.exp(-0.5 * s) / _ROOT_2PI * step * (1.0 + q * series)


@njit(cache=True)
def _normal_step(x: float, below: float, mass: float) -> float:
    """Return the step with Φ(x + step) = below + mass, where below is Φ(x).

    A short one is found from `mass` alone, so that it keeps all its digits.
    """
    density = math.exp(-0.5 * x * x) / _ROOT_2PI
    u = mass / density if density > 0.0 else math.inf
    if not u * (1.0 + abs(x)) < 0.1:
        return normal_quantile(min(below + mass, 1.0)) - x
    third = (1.0 + 2.0 * x * x) / 6.0 + u * x * (7.0 + 6.0 * x * x) / 24.0
    step = u * (1.0 + u * (0.5 * x + u * third))
    missing = mass - _normal_mass(x, step)
    return step + missing / density * math.exp(step * (x + 0.5 * step))


@njit(cache=True)
def _start(v: int, r: int) -> Floats:
    """Return a binomial law to begin with, whose tail from v on is small."""
    away = math.sqrt(1.0 + v * (r - v) / r)
    return _binomial(r, max((v - away) / r, 0.5))


@njit(cache=True)
def _binomial(r: int, chance: float) -> Floats:
    """Return the binomial law, walking away from its mode."""
    law, mode = np.zeros(r + 1), int((r + 1) * chance)
    odds = chance / (1.0 - chance)
    law[mode] = 1.0
    for k in range(mode, r):
        law[k + 1] = law[k] * odds * (r - k) / (k + 1)
    for k in range(mode, 0, -1):
        law[k - 1] = law[k] * k / (odds * (r - k + 1))
    whole: Floats = law / law.sum()
    return whole


@njit(cache=True)
def _copy(source: _Dual, target: _Dual) -> None:
    target.rank[:], target.knots[:] = source.rank, source.knots
    target.slopes[:], target.deltas[:] = source.slopes, source.deltas
