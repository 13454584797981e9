"""Trade-off functions: how well two neighbouring datasets can be told apart at all.

A trade-off function f gives, for each type-I error α of a test between the two, the smallest
type-II error f(α) that any test can reach. A mechanism is f-DP if no test does better. Privacy in
the sense of (ε, δ), pure ε and Gaussian μ are three families of such curves, and every conversion
between them goes through f.

References
----------
Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from auditkit import _check
from auditkit._types import Floats
from auditkit.bounds.result import plain

Numbers: TypeAlias = float | Floats

_KNOWN = (
    "compositions known in closed form: GaussianDP @ GaussianDP, each with or without a failure, "
    "and anything @ PureDP(0) or ApproxDP(0, delta)"
)


class TradeOff(ABC):
    """The smallest type-II error f(α) of any test between two neighbouring datasets.

    f is convex, decreasing and lies below 1 - α. All methods take arrays and broadcast.

    Examples
    --------
    >>> isinstance(GaussianDP(1.0), TradeOff)
    True
    """

    @abstractmethod
    def beta(self, alpha: ArrayLike) -> Numbers:
        """Return f(α), the smallest type-II error at type-I error `alpha`."""

    @abstractmethod
    def inverse(self, beta: ArrayLike) -> Numbers:
        """Return the smallest type-I error at which a type-II error of `beta` can be reached."""

    def epsilon(self, delta: ArrayLike) -> Numbers:
        """Return the smallest ε, never below 0, for which the curve implies (ε, δ)-DP.

        It is the largest slope of a line from (0, δ) to the curve 1 - f, in either direction of the
        test, and infinite where no ε will do.
        """
        wanted = _check.unit("delta", delta)
        result = np.zeros_like(wanted)
        for index, goal in np.ndenumerate(wanted):
            result[index] = max(_steepest(self.beta, goal), _steepest(self.inverse, goal))
        return plain(result)

    def delta(self, epsilon: ArrayLike) -> Numbers:
        """Return the smallest δ for which the curve implies (ε, δ)-DP."""
        given = _check.at_least("epsilon", epsilon, 0.0)
        result = np.zeros_like(given)
        for index, goal in np.ndenumerate(given):
            result[index] = max(_highest(self.beta, goal), _highest(self.inverse, goal))
        return plain(result)

    def with_failure(self, delta: float) -> "TradeOff":
        """Return the curve of a mechanism that, with probability `delta`, gives everything away.

        This is the product of f with the curve of a δ-failure,
        (1 - δ) f(α / (1 - δ)) up to α = 1 - δ and 0 from there on.
        """
        failure = _check.delta("delta", delta)
        return self if failure == 0.0 else _Failing(self, failure)

    def __matmul__(self, other: "TradeOff") -> "TradeOff":
        """Return the curve of the two mechanisms run on the same data, one after the other."""
        if not isinstance(other, TradeOff):
            return NotImplemented
        first, first_failure = _split(self)
        second, second_failure = _split(other)
        composed: TradeOff
        if isinstance(first, GaussianDP) and isinstance(second, GaussianDP):
            composed = GaussianDP(np.hypot(first.mu, second.mu))
        elif second == PureDP(0.0):
            composed = first
        elif first == PureDP(0.0):
            composed = second
        else:
            raise TypeError(f"{self!r} @ {other!r} is not among the {_KNOWN}")
        return composed.with_failure(_either(first_failure, second_failure))

    def _key(self) -> tuple[Any, ...]:
        """Return what makes two curves of one class equal: nothing, unless the class says."""
        return (id(self),)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))


class GaussianDP(TradeOff):
    """Gaussian differential privacy: as hard to tell apart as N(0, 1) and N(μ, 1).

    Parameters
    ----------
    mu : float or array_like
        The distance μ of the two normal laws, at least 0.

    References
    ----------
    Dong, Roth and Su 2022, Definition 2.4 and Corollary 2.13.

    Examples
    --------
    >>> curve = GaussianDP(1.0)
    >>> round(curve.beta(0.05), 4)
    0.7405
    >>> round(curve.epsilon(1e-5), 4)
    4.3772
    >>> GaussianDP(3.0) @ GaussianDP(4.0)
    GaussianDP(mu=5.0)
    """

    def __init__(self, mu: ArrayLike) -> None:
        self._mu = _check.at_least("mu", mu, 0.0)

    @property
    def mu(self) -> Numbers:
        """The distance μ of the two normal laws."""
        return plain(self._mu)

    def beta(self, alpha: ArrayLike) -> Numbers:
        """Return Φ(Φ⁻¹(1 - α) - μ)."""
        return plain(ndtr(-ndtri(_check.unit("alpha", alpha)) - self._mu))

    def inverse(self, beta: ArrayLike) -> Numbers:
        """Return the smallest type-I error for `beta`; the curve is its own inverse."""
        return plain(ndtr(-ndtri(_check.unit("beta", beta)) - self._mu))

    def delta(self, epsilon: ArrayLike) -> Numbers:
        """Return Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)."""
        given = _check.at_least("epsilon", epsilon, 0.0)
        mu, given = np.broadcast_arrays(self._mu, given)
        result = np.zeros(given.shape)
        leaks = mu > 0.0
        result[leaks] = np.exp(_log_gaussian_delta(mu[leaks], given[leaks])[0])
        return plain(result)

    def epsilon(self, delta: ArrayLike) -> Numbers:
        """Return the ε at which `delta` is reached, by Newton's method on log δ.

        log δ is concave in ε, so that the steps go down to the root from a start above it and
        never pass it.
        """
        wanted = _check.unit("delta", delta)
        mu, wanted = np.broadcast_arrays(self._mu, wanted)
        result = np.zeros(wanted.shape)
        result[(mu > 0.0) & (wanted == 0.0)] = np.inf
        solve = (mu > 0.0) & (wanted > 0.0) & (wanted < np.asarray(self.delta(0.0)))
        m, goal = mu[solve], np.log(wanted[solve])
        # δ is below Φ(μ/2 - ε/μ), hence the root below the ε at which that equals δ
        x = np.maximum(m * (m / 2.0 - ndtri(wanted[solve])), 0.0)
        moves = np.full(x.shape, True)
        for _ in range(60):
            value, by_log_delta = _log_gaussian_delta(m, x)
            step = np.where(moves, (value - goal) * by_log_delta, 0.0)
            x = np.maximum(x - step, 0.0)
            # each lane stops by itself, so that an array gives what its elements give alone
            moves &= np.abs(step) > 4e-16 * x
            if not moves.any():
                break
        result[solve] = x
        return plain(result)

    def _key(self) -> tuple[Any, ...]:
        return _frozen(self._mu)

    def __repr__(self) -> str:
        return f"GaussianDP(mu={_show(self._mu)})"


class ApproxDP(TradeOff):
    """(ε, δ) differential privacy as a curve: two straight lines, and a failure of probability δ.

    Parameters
    ----------
    epsilon : float or array_like
        At least 0.
    delta : float or array_like
        In [0, 1].

    References
    ----------
    Dong, Roth and Su 2022, Equation 3.

    Examples
    --------
    >>> curve = ApproxDP(1.0, 0.01)
    >>> curve.epsilon(0.01), curve.epsilon(0.001)
    (1.0, inf)
    >>> round(curve.epsilon(0.1), 4)
    0.8672
    """

    def __init__(self, epsilon: ArrayLike, delta: ArrayLike) -> None:
        self._epsilon = _check.at_least("epsilon", epsilon, 0.0)
        self._delta = _check.unit("delta", delta)
        try:
            np.broadcast_shapes(self._epsilon.shape, self._delta.shape)
        except ValueError:
            raise ValueError(
                "epsilon and delta must have shapes that fit together, got "
                f"{self._epsilon.shape} and {self._delta.shape}"
            ) from None

    def beta(self, alpha: ArrayLike) -> Numbers:
        """Return max(0, 1 - δ - e^ε α, e^(-ε) (1 - δ - α))."""
        return plain(self._line(_check.unit("alpha", alpha)))

    def inverse(self, beta: ArrayLike) -> Numbers:
        """Return the smallest type-I error for `beta`; the curve is its own inverse."""
        return plain(self._line(_check.unit("beta", beta)))

    def _line(self, alpha: Floats) -> Floats:
        rest = 1.0 - self._delta
        # e^ε α in logs: ε may be far beyond what exp can hold where α is 0 or small
        with np.errstate(divide="ignore"):
            lost = np.exp(np.minimum(self._epsilon + np.log(alpha), 1.0))
        steep, flat = rest - lost, np.exp(-self._epsilon) * (rest - alpha)
        result: Floats = np.maximum(np.maximum(steep, flat), 0.0)
        return result

    def delta(self, epsilon: ArrayLike) -> Numbers:
        """Return δ from ε on, and below it what the corner of the curve asks for."""
        gap = np.maximum(self._epsilon - _check.at_least("epsilon", epsilon, 0.0), 0.0)
        # (e^ε - e^e) / (1 + e^ε) at the corner, without overflow
        corner = -np.expm1(-gap) / (1.0 + np.exp(-self._epsilon))
        return plain(self._delta + (1.0 - self._delta) * corner)

    def epsilon(self, delta: ArrayLike) -> Numbers:
        """Return ε at δ, less for a larger `delta`, infinity for a smaller one."""
        wanted = _check.unit("delta", delta)
        rest = np.where(self._delta < 1.0, 1.0 - self._delta, 1.0)
        spent = np.maximum(wanted - self._delta, 0.0) / rest
        inside = (1.0 - spent) - spent * np.exp(-self._epsilon)
        drop = np.log(np.where(inside > 0.0, inside, 1.0))
        finite = np.where(inside > 0.0, np.maximum(self._epsilon + drop, 0.0), 0.0)
        return plain(np.where(wanted < self._delta, np.inf, finite))

    def with_failure(self, delta: float) -> TradeOff:
        """Return the curve after a further failure: the same ε, the two failures as one δ."""
        failure = _check.delta("delta", delta)
        return self if failure == 0.0 else ApproxDP(self._epsilon, _either(self._delta, failure))

    def _key(self) -> tuple[Any, ...]:
        return (*_frozen(self._epsilon), *_frozen(self._delta))

    def __repr__(self) -> str:
        return f"ApproxDP(epsilon={_show(self._epsilon)}, delta={_show(self._delta)})"


class PureDP(ApproxDP):
    """Pure ε differential privacy as a curve: randomised response is its hardest case.

    Parameters
    ----------
    epsilon : float or array_like
        At least 0.

    References
    ----------
    Wasserman and Zhou, "A statistical framework for differential privacy", JASA 2010.

    Examples
    --------
    >>> curve = PureDP(1.0)
    >>> round(curve.beta(0.1), 4), curve.epsilon(0.0)
    (0.7282, 1.0)
    >>> curve.with_failure(0.01)
    ApproxDP(epsilon=1.0, delta=0.01)
    """

    def __init__(self, epsilon: ArrayLike) -> None:
        super().__init__(epsilon, 0.0)

    def __repr__(self) -> str:
        return f"PureDP(epsilon={_show(self._epsilon)})"


class CustomTradeOff(TradeOff):
    """A curve of your own, given with its inverse and checked on a grid.

    Parameters
    ----------
    f : callable
        Takes an array of type-I errors in [0, 1] and returns the smallest type-II errors. It has to
        be convex, decreasing and at most 1 - α.
    inverse : callable
        Takes an array of type-II errors and returns the smallest type-I errors that reach them.

    References
    ----------
    Dong, Roth and Su 2022, Proposition 2.2.

    Examples
    --------
    >>> uniform = CustomTradeOff(
    ...     lambda alpha: np.maximum(0, 1 - 2 * alpha), lambda beta: (1 - beta) / 2
    ... )
    >>> uniform.beta(0.2)
    0.6
    """

    def __init__(
        self,
        f: Callable[[Floats], ArrayLike],
        inverse: Callable[[Floats], ArrayLike],
    ) -> None:
        if not callable(f):
            raise TypeError(f"f must be a function of the type-I error, got {f!r}")
        if not callable(inverse):
            raise TypeError(f"inverse must be a function of the type-II error, got {inverse!r}")
        self._f, self._inverse = f, inverse
        _check_curve(self)

    def beta(self, alpha: ArrayLike) -> Numbers:
        """Return f(α)."""
        return plain(_check.numbers("f(alpha)", self._f(_check.unit("alpha", alpha))))

    def inverse(self, beta: ArrayLike) -> Numbers:
        """Return the smallest type-I error that reaches `beta`."""
        return plain(_check.numbers("inverse(beta)", self._inverse(_check.unit("beta", beta))))

    def _key(self) -> tuple[Any, ...]:
        return (self._f, self._inverse)

    def __repr__(self) -> str:
        return f"CustomTradeOff(f={self._f!r}, inverse={self._inverse!r})"


class _Failing(TradeOff):
    """A curve whose mechanism gives everything away with probability `failure`."""

    def __init__(self, curve: TradeOff, failure: float) -> None:
        self._curve, self._failure = curve, failure

    def beta(self, alpha: ArrayLike) -> Numbers:
        return self._scaled(self._curve.beta, _check.unit("alpha", alpha))

    def inverse(self, beta: ArrayLike) -> Numbers:
        return self._scaled(self._curve.inverse, _check.unit("beta", beta))

    def _scaled(self, side: Callable[[ArrayLike], Numbers], error: Floats) -> Numbers:
        rest = 1.0 - self._failure
        return plain(rest * np.asarray(side(np.minimum(error / rest, 1.0))))

    def delta(self, epsilon: ArrayLike) -> Numbers:
        return plain(self._failure + (1.0 - self._failure) * np.asarray(self._curve.delta(epsilon)))

    def epsilon(self, delta: ArrayLike) -> Numbers:
        wanted = _check.unit("delta", delta)
        spent = np.maximum(wanted - self._failure, 0.0) / (1.0 - self._failure)
        finite = self._curve.epsilon(spent)
        return plain(np.where(wanted < self._failure, np.inf, finite))

    def with_failure(self, delta: float) -> TradeOff:
        failure = _check.delta("delta", delta)
        return self._curve.with_failure(float(_either(self._failure, failure)))

    def _key(self) -> tuple[Any, ...]:
        return (self._curve, self._failure)

    def __repr__(self) -> str:
        return f"{self._curve!r}.with_failure({self._failure!r})"


def _split(curve: TradeOff) -> tuple[TradeOff, float]:
    """Return a curve without its failure, and the failure, where the two are known apart."""
    if isinstance(curve, _Failing):
        return curve._curve, curve._failure
    if isinstance(curve, ApproxDP) and curve._delta.ndim == 0 and curve._delta < 1.0:
        return PureDP(curve._epsilon), float(curve._delta)
    return curve, 0.0


def _either(first: ArrayLike, second: ArrayLike) -> Any:
    """Return the probability that at least one of two independent failures happens."""
    first, second = np.asarray(first), np.asarray(second)
    return first + second - first * second


def _steepest(side: Callable[[ArrayLike], Numbers], delta: float) -> float:
    """Return the largest log((1 - side(α) - δ) / α) over α, and at least 0."""
    if 1.0 - float(side(0.0)) > delta + 1e-15:
        return math.inf
    if delta < 1e-10:
        raise ValueError(
            f"delta must be at least 1e-10 for a curve that is known as a function only, got "
            f"{delta:g}: 1 - f(alpha) is not known to more than 1e-16"
        )

    def slope(log_alpha: float) -> float:
        rise = 1.0 - float(side(math.exp(log_alpha))) - delta
        return math.log(rise) - log_alpha if rise > 1e-15 else -math.inf

    return max(_top(slope), 0.0)


def _highest(side: Callable[[ArrayLike], Numbers], epsilon: float) -> float:
    """Return the largest 1 - side(α) - e^ε α over α, and at least 0."""

    def height(log_alpha: float) -> float:
        lost = math.exp(min(epsilon + log_alpha, 50.0))
        return 1.0 - float(side(math.exp(log_alpha))) - lost

    return max(_top(height), 1.0 - float(side(0.0)), 0.0)


def _top(function: Callable[[float], float]) -> float:
    """Return the largest value over log α of a quasi-concave function, by golden section.

    Both uses rise, perhaps after a stretch too flat for floats to see, and then fall strictly; a
    tie within rounding therefore means that the top lies to the right.
    """
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = -700.0, 0.0
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    best = max(at_left, at_right, function(high))
    for _ in range(90):
        if at_left > at_right + 1e-15:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
        best = max(best, at_left, at_right)
    return best


def _log_gaussian_delta(mu: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """Return log δ(ε) of the Gaussian curve, and how much ε changes with it.

    With a = μ/2 - ε/μ and M the Mills ratio, δ = φ(a) (M(-a) - M(μ - a)): no tail is subtracted
    from another in floats that have already underflown.
    """
    # below a = -1,000 no float can hold δ, and ε/μ may overflow
    a = mu / 2.0 - np.minimum(epsilon, mu * (mu / 2.0 + 1000.0)) / mu
    log_density = -0.5 * a * a - 0.5 * math.log(2.0 * math.pi)
    far = _mills(mu - a)
    middle = mu / 2.0 - a
    # for tiny μ the difference is its derivative
    tiny = np.log(mu) + np.log1p(-middle * _mills(middle))
    plain = np.log(np.maximum(_mills(-np.minimum(a, 5.0)) - far, 1e-300))
    # for large a the near Mills ratio overflows: there the two probabilities are far apart
    wide = log_ndtr(a) + np.log1p(-np.minimum(np.exp(log_density - log_ndtr(a)) * far, 0.5))
    value = np.where(a > 5.0, wide, log_density + np.where(mu < 1e-4, tiny, plain))
    return value, -np.exp(np.minimum(value - log_density - np.log(far), 700.0))


def _mills(x: Floats) -> Floats:
    """Return Φ(-x) / φ(x)."""
    result: Floats = math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))
    return result


def _check_curve(curve: TradeOff) -> None:
    """Check on a grid that a user's functions are a trade-off function and its inverse."""
    grid = np.concatenate(([0.0], np.geomspace(1e-9, 1e-2, 64), np.linspace(0.01, 1.0, 200)[1:]))
    f, back = np.asarray(curve.beta(grid)), np.asarray(curve.inverse(grid))
    slack = 1e-9
    for name, values in (("f", f), ("inverse", back)):
        if values.shape != grid.shape:
            raise ValueError(
                f"{name} must return one value for each of {grid.size}, got shape {values.shape}"
            )
        if (values < -slack).any() or (values > 1.0 - grid + slack).any():
            worst = grid[np.argmax(np.maximum(values - 1.0 + grid, -values))]
            raise ValueError(f"{name} must lie between 0 and 1 - x, got {name}({worst:g}) outside")
        slopes = np.diff(values) / np.diff(grid)
        if (np.diff(values) > slack).any():
            worst = grid[np.argmax(np.diff(values))]
            raise ValueError(f"{name} must be decreasing, got a rise after {worst:g}")
        if (np.diff(slopes) * np.diff(grid)[1:] < -slack).any():
            worst = grid[np.argmin(np.diff(slopes) * np.diff(grid)[1:])]
            raise ValueError(f"{name} must be convex, got a falling slope near {worst:g}")
    there_and_back = np.asarray(curve.inverse(np.clip(f, 0.0, 1.0))) - grid
    back_and_there = np.asarray(curve.beta(np.clip(back, 0.0, 1.0))) - grid
    if (there_and_back > 1e-6).any() or (back_and_there > 1e-6).any():
        worst = grid[np.argmax(np.maximum(there_and_back, back_and_there))]
        raise ValueError(f"inverse must undo f, got another curve's inverse near {worst:g}")


def _frozen(value: Floats) -> tuple[Any, ...]:
    return (value.shape, tuple(value.ravel().tolist()))


def _show(value: Floats) -> str:
    return repr(value.tolist())


# Scalar kernels for the recursions over counts, where a call into scipy costs more than the work.


@njit(cache=True)
def normal_cdf(x: float) -> float:
    """Return Φ(x), down to 1e-300 in the left tail."""
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@njit(cache=True)
def normal_quantile(p: float) -> float:
    """Return Φ⁻¹(p) to about 1e-15 relative (Wichura 1988, algorithm AS 241)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        s = 0.180625 - q * q
        top = 2.5090809287301226727e3
        top = top * s + 3.3430575583588128105e4
        top = top * s + 6.7265770927008700853e4
        top = top * s + 4.5921953931549871457e4
        top = top * s + 1.3731693765509461125e4
        top = top * s + 1.9715909503065514427e3
        top = top * s + 1.3314166789178437745e2
        top = top * s + 3.3871328727963666080e0
        bottom = 5.2264952788528545610e3
        bottom = bottom * s + 2.8729085735721942674e4
        bottom = bottom * s + 3.9307895800092710610e4
        bottom = bottom * s + 2.1213794301586595867e4
        bottom = bottom * s + 5.3941960214247511077e3
        bottom = bottom * s + 6.8718700749205790830e2
        bottom = bottom * s + 4.2313330701600911252e1
        bottom = bottom * s + 1.0
        return q * top / bottom
    tail = p if q < 0.0 else 1.0 - p
    if tail <= 0.0:
        return -math.inf if q < 0.0 else math.inf
    s = math.sqrt(-math.log(tail))
    if s <= 5.0:
        s -= 1.6
        top = 7.74545014278341407640e-4
        top = top * s + 2.27238449892691845833e-2
        top = top * s + 2.41780725177450611770e-1
        top = top * s + 1.27045825245236838258e0
        top = top * s + 3.64784832476320460504e0
        top = top * s + 5.76949722146069140550e0
        top = top * s + 4.63033784615654529590e0
        top = top * s + 1.42343711074968357734e0
        bottom = 1.05075007164441684324e-9
        bottom = bottom * s + 5.47593808499534494600e-4
        bottom = bottom * s + 1.51986665636164571966e-2
        bottom = bottom * s + 1.48103976427480074590e-1
        bottom = bottom * s + 6.89767334985100004550e-1
        bottom = bottom * s + 1.67638483018380384940e0
        bottom = bottom * s + 2.05319162663775882187e0
        bottom = bottom * s + 1.0
    else:
        s -= 5.0
        top = 2.01033439929228813265e-7
        top = top * s + 2.71155556874348757815e-5
        top = top * s + 1.24266094738807843860e-3
        top = top * s + 2.65321895265761230930e-2
        top = top * s + 2.96560571828504891230e-1
        top = top * s + 1.78482653991729133580e0
        top = top * s + 5.46378491116411436990e0
        top = top * s + 6.65790464350110377720e0
        bottom = 2.04426310338993978564e-15
        bottom = bottom * s + 1.42151175831644588870e-7
        bottom = bottom * s + 1.84631831751005468180e-5
        bottom = bottom * s + 7.86869131145613259100e-4
        bottom = bottom * s + 1.48753612908506148525e-2
        bottom = bottom * s + 1.36929880922735805310e-1
        bottom = bottom * s + 5.99832206555887937690e-1
        bottom = bottom * s + 1.0
    return -top / bottom if q < 0.0 else top / bottom
