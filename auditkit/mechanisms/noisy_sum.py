"""A noisy sum of unit vectors, and members and others who differ along one direction.

It is the synthetic game of ZERO, where everything is known: the mechanism is Gaussian and exactly
as private as it says, the shift is turned on at will, and the propensity has a formula.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit import _check
from auditkit._types import Floats, Randomness

NODES = 100  # of the integral over lengths, which is smooth and falls off like a normal density
REACH = 10.0  # of the nodes, in standard deviations


@dataclass(frozen=True)
class PulledSphere:
    """Unit vectors that are pulled along a direction, members more than others.

    A record is drawn from N(pull · direction, identity) and divided by its length. Every record is
    a member with chance 1/2 before anything is seen of it.

    Parameters
    ----------
    dimension : int
        At least 2.
    member_pull, other_pull : float
        How far members and others are pulled: γ and ργ in the paper.

    References
    ----------
    ZERO, Appendix F, which leaves the numbers open.

    Examples
    --------
    >>> family = PulledSphere(dimension=100, member_pull=2.0, other_pull=1.0)
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random(1000) < 0.5
    >>> records = family.draw(members, rng=rng)
    >>> propensity = family.propensity(records[:, 0])
    >>> print(f"{members.mean():.3f} {propensity.mean():.3f}")
    0.473 0.512
    """

    dimension: int
    member_pull: float
    other_pull: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", _check.whole("dimension", self.dimension, least=2))
        for name in ("member_pull", "other_pull"):
            object.__setattr__(self, name, _check.scalar(name, getattr(self, name), least=0.0))

    def draw(self, members: ArrayLike, *, rng: Randomness) -> NDArray[np.float32]:
        """Return a record for each of `members`, the direction being the first axis."""
        pulls = np.where(_check.members("members", members), self.member_pull, self.other_pull)
        shape = (pulls.size, self.dimension)
        records = _check.generator("rng", rng).standard_normal(shape, np.float32)
        records[:, 0] += pulls.astype(np.float32)
        records /= np.linalg.norm(records, axis=1, keepdims=True)
        return records

    def draw_projections(self, members: ArrayLike, *, axes: int, rng: Randomness) -> Floats:
        """Return what `draw` gives along the first `axes` axes only, which is as quick as it looks.

        Whoever sees records through a few directions, fixed beforehand, needs no more of them.
        """
        axes = _check.whole("axes", axes, least=1)
        if axes > self.dimension:
            raise ValueError(f"axes must be at most dimension, got {axes} of {self.dimension}")
        pulls = np.where(_check.members("members", members), self.member_pull, self.other_pull)
        generator = _check.generator("rng", rng)
        seen = generator.standard_normal((pulls.size, axes))
        seen[:, 0] += pulls
        rest = (
            generator.chisquare(self.dimension - axes, pulls.size) if axes < self.dimension else 0
        )
        found: Floats = seen / np.sqrt((seen**2).sum(axis=1) + rest)[:, np.newaxis]
        return found

    def log_odds(self, along: ArrayLike) -> Floats:
        r"""Return the log-odds of membership of records, from their coordinate along the direction.

        Notes
        -----
        A record of :math:`N(\gamma u, I)` has length r and direction x with density proportional to
        :math:`r^{d-1} e^{-r^2/2 + r\gamma t - \gamma^2/2}`, where :math:`t = \langle x, u\rangle`.
        With r integrated out the log-odds are
        :math:`\log M(\gamma_1 t) - \log M(\gamma_0 t) - (\gamma_1^2 - \gamma_0^2)/2`, where
        :math:`M(a) = \int_0^\infty r^{d-1} e^{-r^2/2 + ra}\,dr`.
        """
        place = _check.numbers("along", along)
        if (np.abs(place) > 1.0 + 1e-6).any():
            raise ValueError(f"along must lie in [-1, 1], got {np.abs(place).max():g}")
        own, other = self.member_pull, self.other_pull
        gain = self._log_mass(own * place) - self._log_mass(other * place)
        odds: Floats = gain - 0.5 * (own**2 - other**2)
        return odds

    def propensity(self, along: ArrayLike) -> Floats:
        """Return the chance that records are members, from their coordinate along the direction."""
        chances: Floats = 1.0 / (1.0 + np.exp(-self.log_odds(along)))
        return chances

    def _log_mass(self, pull: Floats) -> Floats:
        """Return log M(pull), by the rule of Gauss and Legendre around the peak."""
        power = self.dimension - 1
        peak = 0.5 * (pull + np.sqrt(pull**2 + 4.0 * power))
        reach = REACH / np.sqrt(1.0 + power / peak**2)
        low, high = np.maximum(peak - reach, 0.0), peak + reach
        total = np.zeros_like(pull)
        for node, weight in zip(*np.polynomial.legendre.leggauss(NODES), strict=True):
            length = 0.5 * (low + high + node * (high - low))
            rise = power * np.log(length / peak) - 0.5 * (length**2 - peak**2)
            total += weight * np.exp(rise + pull * (length - peak))
        total *= 0.5 * (high - low)
        logs: Floats = np.log(total) + power * np.log(peak) - 0.5 * peak**2 + pull * peak
        return logs


def noisy_sum(records: ArrayLike, *, sigma: float, rng: Randomness) -> Floats:
    """Release the sum of records with Gaussian noise.

    With records no longer than 1 it is μ-Gaussian DP under adding or removing a record, μ = 1/σ.

    Parameters
    ----------
    records : array_like of shape (records, dimension)
        No longer than 1 each.
    sigma : float
        Standard deviation of the noise in each coordinate.
    rng : Generator, int or None
        Where the noise is drawn from.

    Returns
    -------
    ndarray of shape (dimension,)

    References
    ----------
    ZERO, Appendix F; Dong, Roth and Su, "Gaussian differential privacy", 2022, Theorem 1.

    Examples
    --------
    >>> noisy_sum([[1.0, 0.0], [0.0, 1.0]], sigma=1e-9, rng=0).round(3)
    array([1., 1.])
    """
    rows = np.asarray(records)
    if rows.dtype != np.float32:
        rows = _check.numbers("records", rows)
    if rows.ndim != 2:
        raise ValueError(f"records must have 2 dimension(s), got shape {rows.shape}")
    sigma = _check.positive("sigma", sigma)
    longest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))
    if not longest <= 1.0 + 1e-5:
        raise ValueError(f"records must be no longer than 1, got one of length {longest:g}")
    total = rows.sum(axis=0, dtype=np.float64)
    noise = _check.generator("rng", rng).standard_normal(total.size)
    released: Floats = total + sigma * noise
    return released
