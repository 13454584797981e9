"""What one run proves about a family of trade-off functions.

`one_run_fdp` reads the number of correct guesses by the recursion of Mahloujifar et al., or by a
certificate, and gives the least private curve of a family that the count rules out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike

from auditkit import _check
from auditkit._types import Floats, Ints
from auditkit.bounds.one_run import COINS, FIXED_NUMBER, border, operating_point
from auditkit.bounds.one_run_certificate import largest_certified, refuse_many
from auditkit.bounds.one_run_steinke import FEW
from auditkit.bounds.result import Bound, plain
from auditkit.bounds.tradeoff import (
    GaussianDP,
    PureDP,
    TradeOff,
    normal_cdf,
    normal_quantile,
)

Family: TypeAlias = Literal["gaussian", "pure"] | Callable[[float], TradeOff]

_GAUSSIAN, _PURE = 0, 1
_EXACT = 1e-6  # the relative gap to the best possible ε at which a bound is called exact
_SHORT = 0.05  # steps at which the series below are exact to 1e-9
_COMPILED = {"gaussian": _GAUSSIAN, "pure": _PURE}


@overload
def one_run_fdp(
    correct: int,
    guesses: int,
    examples: int,
    *,
    family: Family = ...,
    delta: float = ...,
    tau: float = ...,
    confidence: float = ...,
    method: Literal["recursion", "certificate"] = ...,
) -> Bound[float]: ...
@overload
def one_run_fdp(
    correct: ArrayLike,
    guesses: ArrayLike,
    examples: ArrayLike,
    *,
    family: Family = ...,
    delta: float = ...,
    tau: float = ...,
    confidence: float = ...,
    method: Literal["recursion", "certificate"] = ...,
) -> Bound[Any]: ...
def one_run_fdp(
    correct: ArrayLike,
    guesses: ArrayLike,
    examples: ArrayLike,
    *,
    family: Family = "gaussian",
    delta: float = 1e-5,
    tau: float = 0.0,
    confidence: float = 0.95,
    method: Literal["recursion", "certificate"] = "recursion",
) -> Bound[Any]:
    """Return the ε at `delta` of the least private curve of a family that one run rules out.

    Parameters
    ----------
    correct, guesses, examples : array_like of int
        How many guesses were right, how many were made, and how many coins there were. Arrays
        broadcast.
    family : {"gaussian", "pure"} or callable
        The family that the mechanism's trade-off curve belongs to. A callable takes one number of
        at least 0 and returns a `TradeOff` that leaks more as the number grows.
    delta : float
        The δ at which ε is stated. "gaussian" takes no 0: a Gaussian mechanism that leaks at all
        has no finite ε there.
    tau : float
        How far, in total variation, the counterfactuals may lie from the data's own law.
    confidence : float
        How often the bound holds.
    method : {"recursion", "certificate"}
        The recursion of the paper takes microseconds. The certificate rules out more, by .02 to .15
        of ε where some of 1,000 guesses are wrong, and takes milliseconds (up to seconds for 2,000
        guesses, the most it takes). It knows "gaussian" and "pure", and τ = 0.

    Returns
    -------
    Bound
        A lower bound for mechanisms whose curve belongs to the family, with ``details["mu"]`` or
        ``details["parameter"]``, the largest one ruled out. With the certificate, the details also
        have

        - ``"certificate"``, what `check_fdp` verifies, one for each count;
        - ``"proved_by"``: "certificate", or "recursion" where that gave more (both are proved);
        - ``"best_possible"``, an ε that no bound can exceed which rises with the count and holds
          with this confidence, since there is a mechanism of the family that would break it;
        - ``"exact"``, whether the bound is within 1e-6 of that, relative.

    Notes
    -----
    `check_fdp` states the theorem of the certificates, `worst_law` the mechanisms that no bound can
    beat. Where all guesses are right, the recursion is as good as any certificate.

    The recursion's theorem speaks of an attack that makes a number of guesses fixed in advance. Its
    printed text is read so: line 3 of Algorithm 3 sets h[c] to γ (c' - c) / m, and h never falls
    from one line to the next, since what it bounds does not. One direction of the recursion is not
    enough for a curve that differs from its inverse (for the curve max(0, 1 - 2α) of uniform labels
    it rejects what is true), so that the curves of a family must be their own inverse.

    References
    ----------
    OBS, "Observational Auditing of Privacy", Theorem 5 and Algorithm 3.
    Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in one run", ICML 2025,
    Theorem 3.2.

    Examples
    --------
    >>> bound = one_run_fdp(800, 1000, 10_000)
    >>> round(bound.epsilon, 4), round(bound.details["mu"], 4)
    (1.7119, 0.4362)
    >>> bound = one_run_fdp(80, 100, 1000, method="certificate")
    >>> round(one_run_fdp(80, 100, 1000).epsilon, 4), round(bound.epsilon, 4)
    (1.4022, 1.4524)
    """
    c, r, m = border(correct, guesses, examples)
    delta = _check.delta("delta", delta, gaussian=_code(family) == _GAUSSIAN)
    tau = _check.delta("tau", tau)
    confidence = _check.fraction("confidence", confidence)
    certify = _check.choice("method", method, ("recursion", "certificate")) == "certificate"
    if certify:
        _refuse_what_has_no_certificate(r, family, tau)
    level = 1.0 - confidence
    parameter = largest_rejected(c, r, m, family=family, level=level, tau=tau)
    proof: dict[str, Any] = {}
    if certify:
        parameter, proof = _certified(c, r, m, parameter, family, level, delta)
    name = "mu" if _code(family) == _GAUSSIAN else "parameter"
    return Bound(
        epsilon=plain(_epsilon_of(family, parameter, delta)),
        delta=delta,
        confidence=confidence,
        claim="lower bound",
        adjacency="add/remove",
        method=f"one run, f-DP {method} over the {_family_name(family)} family",
        assumptions=_assumptions(family, delta, tau),
        details={name: plain(parameter), "tau": tau, **operating_point(c, r, m, level), **proof},
    )


def largest_rejected(
    correct: Ints,
    guesses: Ints,
    examples: Ints,
    *,
    family: Family,
    level: ArrayLike,
    tau: float,
) -> Floats:
    """Return the largest parameter of a family that each count rules out, 0 where none is."""
    together = np.broadcast_arrays(correct, guesses, examples, np.asarray(level, dtype=np.float64))
    c, r, m, levels = (values.ravel().copy() for values in together)
    shape, code = together[0].shape, _code(family)
    if code is not None and c.size > FEW:
        return _search_lanes(code, c, r, m, levels, tau).reshape(shape)
    lanes = zip(c.tolist(), r.tolist(), m.tolist(), levels.tolist(), strict=True)
    if code is not None:
        found = [_search(code, *lane, tau, 0.0) for lane in lanes]
    else:
        curve_of = _checked_family(family)
        found = [_search_family(curve_of, *lane, tau) for lane in lanes]
    return np.array(found, dtype=np.float64).reshape(shape)


def best_over_thresholds(
    correct: ArrayLike,
    guesses: ArrayLike,
    examples: ArrayLike,
    *,
    family: str = "gaussian",
    level: float = 0.05,
    tau: float = 0.0,
) -> tuple[Floats, Ints]:
    """Return the largest parameter ruled out along the last axis, and where it stands.

    A threshold that cannot beat the best so far costs one pass of the recursion, not a search. The
    level is that of a single threshold: nothing is corrected here.
    """
    c, r, m = border(correct, guesses, examples)
    code = _COMPILED[_check.choice("family", family, _COMPILED)]
    rows = (-1, c.shape[-1])
    best, where = _best_of_rows(code, c.reshape(rows), r.reshape(rows), m.reshape(rows), level, tau)
    return best.reshape(c.shape[:-1]), where.reshape(c.shape[:-1])


def smallest_level(curve: TradeOff, correct: int, guesses: int, examples: int) -> float:
    """Return the smallest level at which so many correct guesses rule a curve out, 1 if none does.

    No mechanism with this curve has so many with a larger chance.
    """
    if isinstance(curve, GaussianDP):
        mu = float(curve.mu)
    else:
        _checked_family(lambda _: curve)

    def rejects(level: float) -> bool:
        if isinstance(curve, GaussianDP):
            return bool(_recursion(_GAUSSIAN, mu, correct, guesses, examples, level, 0.0)[0])
        return _rejects(curve, correct, guesses, examples, level, 0.0)

    low, high = -690.0, math.log1p(-1e-9)
    if correct == 0 or not rejects(math.exp(high)):
        return 1.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if rejects(math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def _refuse_what_has_no_certificate(guesses: Ints, family: Family, tau: float) -> None:
    refuse_many(guesses)
    if _code(family) is None:
        raise ValueError(
            f"family must be 'gaussian' or 'pure' for method 'certificate', got {family!r}: method "
            "'recursion' takes any family"
        )
    if tau != 0.0:
        raise ValueError(
            f"tau must be 0 for method 'certificate', got {tau!r}: method 'recursion' takes others"
        )


def _certified(
    c: Ints, r: Ints, m: Ints, recursion: Floats, family: Family, level: float, delta: float
) -> tuple[Floats, dict[str, Any]]:
    """Return the larger of the certified parameter and the recursion's, and its details."""
    name = "gaussian" if _code(family) == _GAUSSIAN else "pure"
    found, ceiling, proofs = largest_certified(c, r, m, recursion, family=name, level=level)
    by_recursion = recursion > found * (1.0 + 1e-7)  # less is rounding, and can be checked
    parameter = np.where(by_recursion, recursion, found)
    known = np.isfinite(ceiling)
    best = _epsilon_of(family, np.maximum(parameter, np.where(known, ceiling, 0.0)), delta)
    best = np.where(known, best, np.inf)
    exact = best <= (1.0 + _EXACT) * _epsilon_of(family, parameter, delta)
    kept = tuple(None if by else p for by, p in zip(by_recursion.flat, proofs, strict=True))
    proved_by = tuple("recursion" if by else "certificate" for by in by_recursion.flat)
    return parameter, {
        "certificate": kept if c.ndim else kept[0],
        "proved_by": proved_by if c.ndim else proved_by[0],
        "best_possible": plain(best),
        "exact": plain(exact),
    }


def _code(family: Family) -> int | None:
    """Return the number of a compiled family, None for any other."""
    if family in ("gaussian", GaussianDP):
        return _GAUSSIAN
    if family in ("pure", PureDP):
        return _PURE
    if isinstance(family, str) or not callable(family):
        raise ValueError(
            f"family must be 'gaussian', 'pure' or a function from a number to a TradeOff, "
            f"got {family!r}"
        )
    return None


def _family_name(family: Family) -> str:
    return {_GAUSSIAN: "Gaussian", _PURE: "pure", None: "given"}[_code(family)]


def _assumptions(family: Family, delta: float, tau: float) -> tuple[str, ...]:
    sentences = {
        _GAUSSIAN: "The mechanism's trade-off curve is Gaussian.",
        _PURE: "The mechanism's trade-off curve is that of pure differential privacy.",
        None: "The mechanism's trade-off curve belongs to the given family.",
    }
    code = _code(family)
    # at δ = 0 a rejected pure curve rejects ε-DP itself, whatever the mechanism's own curve
    known = () if code == _PURE and delta == 0.0 else (sentences[code],)
    if tau == 0.0:
        return (COINS, FIXED_NUMBER, *known)
    return (
        COINS,
        FIXED_NUMBER,
        *known,
        f"The counterfactuals lie within {tau:g} of the data's law in total variation.",
        "That shift enters once, as printed in Theorem 5 of OBS, which is false in general.",
    )


def _epsilon_of(family: Family, parameter: Floats, delta: float) -> Floats:
    code = _code(family)
    if code is not None:
        curves = GaussianDP(parameter) if code == _GAUSSIAN else PureDP(parameter)
        return np.asarray(curves.epsilon(delta))
    assert callable(family)
    return np.array(
        [family(float(p)).epsilon(delta) if p > 0.0 else 0.0 for p in parameter.ravel()]
    ).reshape(parameter.shape)


@njit(cache=True)
def _type_one(family: int, power: float, p: float) -> tuple[float, float, float, float, float]:
    """Return the type-I error at this power, its slopes in the power and in the parameter.

    For the Gaussian family the quantile z of the power follows, and 1/φ(z).
    """
    if family == _GAUSSIAN:
        z = normal_quantile(power)
        x = z - p
        inverse_density = 2.5066282746310002 * math.exp(min(0.5 * z * z, 700.0))
        density = 0.3989422804014327 * math.exp(-0.5 * x * x)
        return normal_cdf(x), density * inverse_density, -density, z, inverse_density
    shrunk = power * math.exp(-p)
    lost = (1.0 - power) * math.exp(p)
    if shrunk >= 1.0 - lost:
        return shrunk, math.exp(-p), -shrunk, 0.0, 0.0
    return 1.0 - lost, math.exp(p), -lost, 0.0, 0.0


@njit(cache=True)
def _gaussian_nearby(
    found: float, by_power: float, z: float, inverse_density: float, u: float, p: float
) -> tuple[float, float, float, float, float]:
    """Return what `_type_one` does at a power that is larger by u φ(z), for small u.

    Both series are Taylor's in the power, to the seventh order. The n-th derivative of z is
    P_n / φ(z)^n with P_(n+1) = n z P_n + P_n'; that of the type-I error is its slope times
    p K_n / φ(z)^(n-1) with K_(n+1) = (p + (n-1) z) K_n + K_n'. No logarithm and no exponential:
    that is three times as fast.
    """
    zz = z * z
    p3 = 1.0 + 2.0 * zz
    p4 = z * (7.0 + 6.0 * zz)
    p5 = 7.0 + zz * (46.0 + 24.0 * zz)
    p6 = z * (127.0 + zz * (326.0 + 120.0 * zz))
    p7 = 127.0 + zz * (1740.0 + zz * (2556.0 + 720.0 * zz))
    k3 = p + z
    k4 = (p + 2.0 * z) * k3 + 1.0
    slope4 = 3.0 * p + 4.0 * z
    k5 = (p + 3.0 * z) * k4 + slope4
    slope5 = 3.0 * k4 + (p + 3.0 * z) * slope4 + 4.0
    k6 = (p + 4.0 * z) * k5 + slope5
    k7 = (p + 5.0 * z) * k6 + 4.0 * k5 + (p + 4.0 * z) * slope5 + 22.0 * p + 36.0 * z
    a2, a3, a4, a5, a6, a7 = u / 2, u / 3, u / 4, u / 5, u / 6, u / 7
    k = a3 * (k3 + a4 * (k4 + a5 * (k5 + a6 * (k6 + a7 * k7))))
    found += u * by_power / inverse_density * (1.0 + p * a2 * (1.0 + k))
    k = a2 * (k3 + a3 * (k4 + a4 * (k5 + a5 * (k6 + a6 * k7))))
    by_power *= 1.0 + p * u * (1.0 + k)
    q = a2 * (z + a3 * (p3 + a4 * (p4 + a5 * (p5 + a6 * (p6 + a7 * p7)))))
    shifted = z + u * (1.0 + q)
    q = u * (z + a2 * (p3 + a3 * (p4 + a4 * (p5 + a5 * (p6 + a6 * p7)))))
    inverse_density *= 1.0 + q
    return found, by_power, -by_power / inverse_density, shifted, inverse_density


@njit(cache=True)
def _recursion(
    family: int, p: float, c: int, guesses: int, m: int, level: float, tau: float
) -> tuple[bool, float]:
    """Return whether parameter p is rejected, and if not how far away the root seems to be.

    r and h bound from below the chance-weighted shares of correct and of wrong guesses. Both only
    grow, so that the pass ends once their sum reaches all there is, or once it no longer can: with
    all further steps shrinking by at least rho, what is left to add is a geometric series.
    The distance is log(sum) over its slope in p, the step of Newton's method.
    """
    full = guesses / m
    r, h = level * c / m, level * (guesses - c) / m
    r_slope, h_slope = 0.0, 0.0
    found, by_power, by_parameter, z, inverse_density = _type_one(family, r, p)
    for i in range(c - 1, -1, -1):
        rise = found - tau - h
        if rise <= 0.0:
            break
        weight = i / (guesses - i)
        rise_slope = by_power * r_slope + by_parameter - h_slope
        r, h = r + weight * rise, h + rise
        r_slope, h_slope = r_slope + weight * rise_slope, h_slope + rise_slope
        if r + h >= full:
            return True, 0.0
        if i % 8 == 0:
            most = 10.0 * rise * (1.0 + weight)
            if most < 0.01 * min(full - r - h, r + h):
                rho = weight * _type_one(family, min(r + most, 1.0 - 1e-16), p)[1]
                if rho < 0.9:
                    break
        u = weight * rise * inverse_density
        if family == _GAUSSIAN and u * (1.0 + abs(z) + p) < _SHORT:
            found, by_power, by_parameter, z, inverse_density = _gaussian_nearby(
                found, by_power, z, inverse_density, u, p
            )
        else:
            found, by_power, by_parameter, z, inverse_density = _type_one(family, r, p)
    slope = (r_slope + h_slope) / (r + h)
    return False, math.log((r + h) / full) / slope if slope < 0.0 else math.inf


@njit(cache=True)
def _ceiling(family: int, c: int, guesses: int, m: int, level: float, tau: float) -> float:
    """Return a parameter that is not rejected: h cannot leave its start, or guesses are perfect."""
    r, h = level * c / m, level * (guesses - c) / m + tau
    if h >= r:
        return 0.0
    if h <= 0.0:
        p = 1.0
        while _recursion(family, p, c, guesses, m, level, tau)[0]:
            p *= 2.0
        return p
    if family == _GAUSSIAN:
        return normal_quantile(r) - normal_quantile(h)
    return max(math.log(r / h), math.log((1.0 - h) / (1.0 - r)))


@njit(cache=True)
def _search(
    family: int, c: int, guesses: int, m: int, level: float, tau: float, least: float
) -> float:
    """Return the largest rejected parameter if it is above `least`, else `least`.

    `low` is always rejected and `high` never, and they end 1e-8 apart. The ceiling itself is often
    the answer. Otherwise the secant through the last two distances leads down to the root; where it
    has passed the root, the next trial is close above, and after that the middle.
    """
    low, high = least, _ceiling(family, c, guesses, m, level, tau)
    if high <= low or not _recursion(family, low, c, guesses, m, level, tau)[0]:
        return least
    trial, above, distance_above, passed = high * (1.0 - 1e-8), 0.0, 0.0, False
    while high - low > 1e-8 * high and high > 1e-12:  # 0 itself may be all that is rejected
        rejected, distance = _recursion(family, trial, c, guesses, m, level, tau)
        if rejected:
            low = trial
            trial = 0.5 * (low + high) if passed or above == 0.0 else low + 0.1 * (high - low)
            passed = True
            continue
        high, passed = trial, False
        if not math.isfinite(distance):
            trial = 0.5 * (low + high)
            continue
        step = distance / 8.0
        if above > 0.0 and distance_above > distance:
            step = distance * (above - trial) / (distance_above - distance)
        above, distance_above = trial, distance
        trial -= step + 3e-9 * high
        if trial <= low:
            trial = low + 0.1 * (high - low)
    # a pass is exact to about 1e-10: what is reported is rejected by exact arithmetic too
    return max(low * (1.0 - 1e-9), least)


@njit(parallel=True, cache=True)
def _search_lanes(
    family: int,
    correct: Ints,
    guesses: Ints,
    examples: Ints,
    level: Floats,
    tau: float,
) -> Floats:
    """Search every lane on its own."""
    result = np.zeros(correct.size)
    for lane in prange(correct.size):
        result[lane] = _search(
            family, correct[lane], guesses[lane], examples[lane], level[lane], tau, 0.0
        )
    return result


@njit(parallel=True, cache=True)
def _best_of_rows(
    family: int,
    correct: Ints,
    guesses: Ints,
    examples: Ints,
    level: float,
    tau: float,
) -> tuple[Floats, Ints]:
    """Search each row from the best parameter that its earlier columns have reached."""
    rows, columns = correct.shape
    best, where = np.zeros(rows), np.zeros(rows, np.int64)
    for row in prange(rows):
        for j in range(columns):
            found = _search(
                family,
                correct[row, j],
                guesses[row, j],
                examples[row, j],
                level,
                tau,
                best[row],
            )
            if found > best[row]:
                best[row], where[row] = found, j
    return best, where


# a family given as a function, in plain Python


def _checked_family(family: Family) -> Callable[[float], TradeOff]:
    """Return the family with each of its curves checked as it is made."""
    assert callable(family)
    grid = np.linspace(0.0, 1.0, 65)

    def curve_of(parameter: float) -> TradeOff:
        try:
            curve = family(parameter)
        except TypeError as error:
            raise TypeError(f"family must take one number, got {family!r}: {error}") from None
        if not isinstance(curve, TradeOff):
            raise TypeError(f"family must return a TradeOff, got {curve!r} for {parameter:g}")
        f, back = np.asarray(curve.beta(grid)), np.asarray(curve.inverse(grid))
        if f.shape != grid.shape or back.shape != grid.shape:
            raise ValueError(f"family must return one curve for one number, got {curve!r}")
        worst = int(np.argmax(np.abs(f - back)))
        if abs(f[worst] - back[worst]) > 1e-6:
            raise ValueError(
                f"family must give curves that are their own inverse, since one direction of the "
                f"recursion proves nothing about others; got {curve!r} with f({grid[worst]:g}) = "
                f"{f[worst]:g} and inverse {back[worst]:g}"
            )
        return curve

    if (np.asarray(curve_of(2.0).beta(grid)) > np.asarray(curve_of(1.0).beta(grid)) + 1e-9).any():
        raise ValueError(f"family must leak more as its parameter grows, got {family!r}")
    return curve_of


def _rejects(curve: TradeOff, c: int, guesses: int, m: int, level: float, tau: float) -> bool:
    """Run the recursion for one curve."""
    r, h = level * c / m, level * (guesses - c) / m
    for i in range(c - 1, -1, -1):
        rise = float(curve.inverse(1.0 - r)) - tau - h
        if rise <= 0.0:
            return False
        r, h = r + i / (guesses - i) * rise, h + rise
        if r + h >= guesses / m:
            return True
    return False


def _search_family(
    curve_of: Callable[[float], TradeOff], c: int, guesses: int, m: int, level: float, tau: float
) -> float:
    """Return the largest rejected parameter by doubling and bisection, 0 if none is."""
    if 2 * c <= guesses or not _rejects(curve_of(0.0), c, guesses, m, level, tau):
        return 0.0
    low, high = 0.0, 1.0
    while _rejects(curve_of(high), c, guesses, m, level, tau):
        low, high = high, 2.0 * high
        if high > 1e6:
            raise ValueError("family must reach a curve that the counts do not reject, got none")
    while high - low > 1e-8 * high and high > 1e-12:  # 0 itself may be all that is rejected
        middle = 0.5 * (low + high)
        if _rejects(curve_of(middle), c, guesses, m, level, tau):
            low = middle
        else:
            high = middle
    return low
