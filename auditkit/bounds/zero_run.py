"""Audits without a run of one's own: members and non-members as they were found.

Nobody tossed a coin for membership. Members and non-members may differ as examples, and an attack
can guess from that alone. The propensity, the chance of membership given the example, says how far;
the corrections here take it out of the count of correct guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check, _keyed
from auditkit._types import Floats, Ints, Randomness
from auditkit.bounds.result import Bound
from auditkit.bounds.shift_corrections import (
    Game,
    approx_parameter,
    games_of,
    gaussian_parameter,
    shift_of,
)
from auditkit.bounds.tradeoff import GaussianDP

Correction: TypeAlias = Literal["conditional", "sharp", "composition", "untampered", "none"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
FAMILIES = ("gaussian", "approx")

INDEPENDENT = "Given the examples, the memberships are independent of one another."
BLIND = "The guesses were made from the examples and the released model alone."
TRUE = "Each propensity is the true one, or lies farther from 1/2 than it."
FIXED = "The number of guesses was fixed in advance."
GAUSSIAN = "The mechanism's trade-off curve is Gaussian."
ESTIMATED = (
    "The propensities are estimated: where the fit misses what an attack can see, the result "
    "exceeds the truth, and no resampling shows it."
)
FEW_VALUES = (
    "The propensities have so few values that a thinning drawn from the memberships is no fresh "
    "chance: this is an estimate."
)
UNCORRECTED = "Nothing is corrected: the examples alone may explain the correct guesses."


@dataclass(frozen=True)
class _Setting:
    """How an audit is made, checked."""

    correction: str
    family: str
    delta: float
    confidence: float

    def parameter(self, game: Game, shifts: Floats, level: float) -> tuple[Floats, Ints]:
        """Return μ or ε, and the correct guesses counted, for every row of shifts."""
        if self.family == "gaussian":
            return gaussian_parameter(game, shifts, level, self.correction)
        return approx_parameter(game, shifts, level, self.correction, self.delta)

    def assumptions(self) -> list[str]:
        """Return what the corrected count rests on."""
        fixed = self.family == "gaussian" or self.delta > 0.0
        return [
            INDEPENDENT,
            BLIND,
            *([FIXED] if fixed else []),
            *([GAUSSIAN] if self.family == "gaussian" else []),
        ]

    def bound(self, parameter: float, details: dict[str, Any], **fields: Any) -> Bound:
        """Return the result for one μ or ε."""
        epsilon = parameter
        if self.family == "gaussian":
            epsilon = float(np.asarray(GaussianDP(parameter).epsilon(self.delta)))
            details = {"mu": parameter, **details}
        return Bound(
            epsilon=epsilon,
            delta=self.delta,
            confidence=self.confidence,
            adjacency="add/remove",
            details=details,
            **fields,
        )


def zero_run(
    guesses: ArrayLike,
    members: ArrayLike,
    propensity: ArrayLike,
    *,
    correction: Correction = "conditional",
    family: Literal["gaussian", "approx"] = "gaussian",
    delta: float = 1e-5,
    confidence: float = 0.95,
    rng: Randomness = None,
) -> Bound[float]:
    r"""Bound ε from guesses about members and non-members that may differ as examples.

    Parameters
    ----------
    guesses : array_like of {-1, 0, 1}, shape (m,) or (rules, m)
        1 for member, -1 for non-member, 0 for none. With several rows, say for several numbers of
        guesses, each row is tested at its share of the level and the best one counts; to choose
        the row without that price, choose it on examples of its own.
    members : array_like of bool, shape (m,)
        Which examples were in the training set.
    propensity : array_like of float, shape (m,)
        The chance that each example is a member, given the example; strictly between 0 and 1.
    correction : {"conditional", "sharp", "composition", "untampered", "none"}
        "conditional" drops correct guesses at random, the more so the more the example betrays,
        and reads the rest as one run. "sharp" (family "gaussian" only) does so too and drops as few
        as the proof allows: it is the better one, and not in the paper. "untampered" (family
        "approx" only) drops none, and compares with guesses that are right with chance
        ``sigmoid(ε + shift)``, each with the shift of its example. "composition" takes the largest
        shift off the bound of one run. "none" is one run.
    family : {"gaussian", "approx"}
        What is ruled out: μ-Gaussian DP, converted at `delta`, or (ε, δ)-DP itself.
    delta : float
        The δ at which ε is stated; above 0 with the Gaussian family, which has no finite ε at 0.
    confidence : float
        How often the bound holds, over memberships, mechanism and thinning, given the examples.
    rng : Generator, int or None
        Adds to where the thinning is drawn from, which is a key of the memberships in the order of
        the propensities: the same data are thinned alike in whatever order they stand, and no seed
        can make the thinning depend on membership. Draw once: the best of many draws is no bound.

    Returns
    -------
    Bound
        A lower bound if its assumptions hold, and with ``correction="none"`` an estimate unless
        every propensity is 1/2. `details` hold the counts, the correct guesses `kept` after
        thinning, the `rule` that was best, the largest shift, the `key` of the thinning and, for
        the Gaussian family, `mu`.
        With fitted propensities the result is an estimate, whatever `claim` says.

    Notes
    -----
    The shift of an example is :math:`\varepsilon_i = |\log \pi_i/(1-\pi_i)|`. Independence given
    the examples is needed in every proof; the paper's own Assumption 1, with two sets of a fixed
    and equal size, does not give it.

    *Conditional, Gaussian.* A correct guess is kept with probability :math:`e^{-\varepsilon_i}`,
    the limit of the (ε, δ) rule as ε goes to minus infinity (the text has plus infinity, where
    nothing would be dropped), and the kept ones are counted against all r guesses.

    *Sharp, Gaussian.* A correct guess is kept with the chance of
    `auditkit.bounds.sharp_tampering.sharp_keep`, which depends on the μ that is tested; its notes
    hold the proof. The bound is the first μ that is not rejected; the same draws serve every μ.

    *Conditional, (ε, δ).* A correct guess is kept with probability
    :math:`b_i = (1 + e^{-\varepsilon-\varepsilon_i})/(1 + e^{-\varepsilon})`. The bound is the
    first ε that is not rejected; the same draws serve every ε. More guesses come in as ε grows, so
    an ε above it may be rejected again; the largest such ε, which Section 6 asks for, exceeds the
    truth too often (in 6.6% of 3,000 runs at level 5%, randomised response with ε = 1, shift 2).
    Algorithm 9 as printed thins by :math:`e^{-\varepsilon_i}` and then compares with the untampered
    threshold: it pays twice, and shows less than either. The count is read by the law of
    `one_run`: with all propensities at 1/2 the two audits are one.

    That replaces the δ-term printed in Theorem 5.1, :math:`m\delta(1+e^{-\varepsilon})
    \sum_{i \le v} P(Z = v-i)/i`, which is too small for small v: the best (1/2, δ)-DP mechanism on
    two fair coins, a linear program, gets at least one right with probability
    :math:`P(Z \ge 1) + 0.52\,\delta`, and the theorem allows 0.46 δ. Its proof draws the terms of
    :math:`B'_m` independently of the successes so far, on which they may depend. In its place, let
    N count the kept guesses and :math:`a_k` be as in the notes of `one_run`, and write
    :math:`A = a_{N+1}` without guess i, :math:`R_i` and :math:`W_i` for the means of A where guess
    i is right and wrong. (ε, δ)-DP on either side of coin i gives
    :math:`R_i \le e^{\varepsilon+\varepsilon_i} W_i + \lambda\delta`. Guess i is kept with weight
    :math:`b_i R_i`, and not kept with :math:`W_i + (1-b_i) R_i`. The choice of :math:`b_i` makes

    .. math:: b_i R_i - e^{\varepsilon} (W_i + (1-b_i) R_i)
              = e^{-\varepsilon_i} R_i - e^{\varepsilon} W_i
              \le e^{-\varepsilon_i} \lambda\delta.

    Summed over i, :math:`\mathrm{E}[N a_N] \le e^\varepsilon \mathrm{E}[(r-N) a_{N+1}] +
    \lambda\delta \sum_i e^{-\varepsilon_i}`; the rest is the proof of `one_run`. The sum is m at
    most. Taking m for it costs little, and keeps Corollary 2. Whether a mechanism attains the sum
    for unequal propensities is open.

    *Untampered.* With δ > 0 a number u of correct guesses, fixed by m, r, δ and the level, is given
    away: more than u owe their success to the excess with probability at most
    :math:`m\delta/(u+1)`, whatever the dependence. This replaces Theorem D.2, which is printed with
    v under its roots where Theorem D.3, from which it follows, has u.

    *Composition.* Given the examples, the audit is one run of a mechanism that first gives every
    coin away by randomised response with its own :math:`\varepsilon_i`, then runs the audited one.
    So the largest shift among the examples counts, not that of a population, and
    :math:`\mu^2 = \mu_\mathrm{one\ run}^2 - \mu_\mathrm{DS}^2` with
    :math:`\mu_\mathrm{DS} = 2\Phi^{-1}(\mathrm{sigmoid}(\max \varepsilon_i))`, as Corollary 1 has
    it and the text below it has not. To bring the largest shift down, leave out examples by their
    propensity, before any membership is seen; this costs no level. Algorithm 8, which keeps such
    examples and adds their probability :math:`\delta_\mathrm{DS}` to the level, is not built:
    Proposition 6 is false. Each of m records may fail, not one in all. If an example gives its
    membership away with probability 0.005 and else nothing, then among 10,000 some 50 do, and an
    attack on those is right every time, with no leak at all.

    Propensities that are too far from 1/2 only lower the bound of every correction (Corollary 2);
    propensities that are too near break it.

    References
    ----------
    Ceberé et al., "Privacy Auditing with Zero (0) Training Run": Theorem 5.1 and Algorithms 1, 2
    and 9 (conditional), Theorems D.1 and D.2 (untampered), Corollary 1 and Algorithms 6 and 7
    (composition), Corollary 2.

    Examples
    --------
    >>> from scipy.special import expit
    >>> rng = np.random.default_rng(0)
    >>> shift = rng.normal(size=10_000)
    >>> propensity = expit(shift)
    >>> members = rng.random(10_000) < propensity
    >>> leak = rng.normal(np.where(members, 1.0, -1.0))
    >>> score = shift + 2 * leak
    >>> worth = np.exp(-abs(shift)) * abs(score)
    >>> guesses = np.where(worth >= np.sort(worth)[-1000], np.sign(score), 0)
    >>> bound = zero_run(guesses, members, propensity, rng=1)
    >>> print(bound.claim, f"{bound.epsilon:.3f}", bound.details["correct"], bound.details["kept"])
    lower bound 1.443 988 766
    """
    setting = _setting(correction, family, delta, confidence)
    _check.aligned(members=members, propensity=propensity)
    chances = _check.fractions("propensity", propensity, ndim=1)
    games, key = games_of(guesses, members, chances, rng)
    shifts = shift_of(chances)[np.newaxis]
    level = (1.0 - setting.confidence) / len(games)
    found = [setting.parameter(game, shifts, level) for game in games]
    best = int(np.argmax([parameter[0] for parameter, _ in found]))
    parameter, kept = found[best]
    fair = bool((chances == 0.5).all())
    uncorrected = correction == "none" and not fair
    lumped = correction in ("conditional", "sharp") and not fair and _keyed.few(chances)
    return setting.bound(
        float(parameter[0]),
        {
            **_counts(games, best),
            "kept": int(kept[0]),
            "largest_shift": float(shifts.max()),
            "key": key[:16],
        },
        claim="estimate" if uncorrected or lumped else "lower bound",
        method=f"zero run, {_named(correction)}",
        assumptions=(
            *setting.assumptions(),
            UNCORRECTED if uncorrected else TRUE,
            *([FEW_VALUES] if lumped else []),
        ),
    )


def zero_run_bootstrap(
    guesses: ArrayLike,
    members: ArrayLike,
    propensities: ArrayLike,
    *,
    correction: Correction = "conditional",
    family: Literal["gaussian", "approx"] = "gaussian",
    delta: float = 1e-5,
    confidence: float = 0.95,
    share: float = 0.5,
    rebase: ArrayLike | None = None,
    rng: Randomness = None,
) -> Bound[float]:
    """Estimate ε with propensities that were fitted on resampled data.

    The audit is made once for each set of propensities, all else equal, the thinning included. The
    result is a lower quantile of the K bounds.

    Parameters
    ----------
    guesses, members
        As in `zero_run`.
    propensities : array_like of float, shape (K, m)
        One set of propensities a row, each fitted on a sample drawn with replacement from examples
        that are not audited.
    correction, family, delta, confidence
        As in `zero_run`.
    share : float
        The part of ``1 - confidence`` that goes to the quantile; the rest is the level of the
        audits. The paper halves it.
    rebase : array_like of float, shape (m,), optional
        The propensities fitted on the whole sample. If given, the K bounds are first moved so that
        their median is the bound made with these: Algorithm 3. It is the less cautious way:
        resampled fits are noisier, so their bounds lie lower, and that margin is moved away.
    rng : Generator, int or None
        As in `zero_run`.

    Returns
    -------
    Bound
        An estimate, never a lower bound. `details` hold what `zero_run` reports, `kept` as the mean
        over the sets, the number of `bootstraps`, the `quantile` taken, and the `bounds` of all
        sets that it is a quantile of, μ or ε, in the order of the sets.

    Notes
    -----
    A bootstrap sees how much a fit varies. It does not see what every fit misses, and that is what
    an attack uses: the book's page on validity shows it find leakage where there is none. Hence the
    claim. `reject_propensity` can show that a model is wrong, not that it is right.

    The text of Algorithm 3 speaks of an upper confidence limit, where the lower one is meant.

    References
    ----------
    Ceberé et al., "Privacy Auditing with Zero (0) Training Run", Section 6; Algorithm 3.

    Examples
    --------
    >>> from scipy.special import expit
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random(1000) < 0.5
    >>> guesses = np.where(rng.random(1000) < 0.9, 1, -1) * np.where(members, 1, -1)
    >>> propensities = expit(rng.normal(0, 0.1, (200, 1000)))
    >>> bound = zero_run_bootstrap(guesses, members, propensities, rng=1)
    >>> print(bound.claim, f"{bound.details['mu']:.3f}")
    estimate 0.571
    """
    setting = _setting(correction, family, delta, confidence)
    share = _check.fraction("share", share)
    sets = _check.fractions("propensities", propensities, ndim=2)
    if len(sets) == 0:
        raise ValueError(f"propensities must hold at least one set, got shape {sets.shape}")
    games, key = games_of(guesses, members, sets, rng, "propensities")
    bootstraps = len(sets)
    if rebase is not None:
        whole = _check.fractions("rebase", rebase, ndim=1)
        _check.same_length(members=games[0].members, rebase=whole)
        sets = np.vstack([sets, whole])
    shifts = shift_of(sets)
    level = (1.0 - setting.confidence) / len(games)
    found = [setting.parameter(game, shifts, level * (1.0 - share)) for game in games]
    spread = [_rebased(bounds) if rebase is not None else bounds for bounds, _ in found]
    quantiles = [np.quantile(bounds, level * share, method="lower") for bounds in spread]
    best = int(np.argmax(quantiles))
    return setting.bound(
        float(quantiles[best]),
        {
            **_counts(games, best),
            "kept": float(found[best][1][:bootstraps].mean()),
            "largest_shift": float(shifts.max()),
            "bootstraps": bootstraps,
            "quantile": level * share,
            "bounds": spread[best],
            "key": key[:16],
        },
        claim="estimate",
        method=f"zero run, {_named(correction)}, "
        f"{'re-based' if rebase is not None else 'lower'} bootstrap quantile",
        assumptions=(*setting.assumptions(), ESTIMATED),
    )


def _setting(correction: str, family: str, delta: float, confidence: float) -> _Setting:
    correction = _check.choice("correction", correction, CORRECTIONS)
    family = _check.choice("family", family, FAMILIES)
    if correction == "untampered" and family != "approx":
        raise ValueError(
            f"family must be 'approx' with correction='untampered', got {family!r}: "
            "there is no such theorem for trade-off curves"
        )
    if correction == "sharp" and family != "gaussian":
        raise ValueError(
            f"family must be 'gaussian' with correction='sharp', got {family!r}: "
            "for pure ε the conditional correction is the sharp one"
        )
    return _Setting(
        correction,
        family,
        _check.delta("delta", delta, gaussian=family == "gaussian"),
        _check.fraction("confidence", confidence),
    )


def _rebased(bounds: Floats) -> Floats:
    """Return all bounds but the last one, moved so that it is their median."""
    moved: Floats = np.maximum(bounds[:-1] + bounds[-1] - np.median(bounds[:-1]), 0.0)
    return moved


def _counts(games: list[Game], best: int) -> dict[str, Any]:
    game = games[best]
    return {
        "examples": game.examples,
        "guesses": game.number,
        "correct": game.correct,
        "rules": len(games),
        "rule": best,
    }


def _named(correction: str) -> str:
    return "no correction" if correction == "none" else f"{correction} correction"
