"""Run until a promise is refuted: a test between two worlds that may be looked at after each run.

Runs of the mechanism come one by one, with the canary or without it, and each leaves a score. The
audit bets against the promise on every pair of runs. As long as the promise holds, nobody's wealth
grows on average, so that it hardly ever reaches 20 from 1, however long the betting goes on and
whatever decides when it stops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from auditkit import _check
from auditkit._types import Floats
from auditkit.bounds.result import Bound
from auditkit.bounds.tradeoff import ApproxDP, TradeOff
from auditkit.bounds.two_worlds import INDEPENDENT

Bet: TypeAlias = tuple[Floats, Floats, Floats]  # ε, δ, and the part staked of what can be lost

WHOLE = (
    "Every run made was handed over, and one rule that was fixed beforehand gave all scores. Which "
    "world a run is of, and when to stop, may depend on the runs before."
)
STEP = 0.05  # between the ε that a bound tries
STAKES = np.array([0.03, 0.1, 0.25, 0.5, 0.75, 0.97])  # parts of what can be lost at once
SHARES = np.array([1.0, 0.5, 0.2, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5])  # of the largest δ
FAR = 1e9  # an ε at which no curve asks for a smaller δ
GROWTH = 1.1  # a new fit when there are so many times the pairs
RIDGE = np.array([2.0, 0.5, 1.0, 1.0, 0.3])  # of the constant, slope, two bends and step


class SequentialAudit:
    r"""An audit of two worlds that is valid at any stopping time.

    The scores of the k-th run with the canary and of the k-th run without it make a pair, in
    whatever order they came. Before a pair is looked at, a logistic regression on the pairs before
    it says how likely a score is that of a run with the canary, and the audit stakes a part of its
    wealth on either run, more where it is surer.

    Parameters
    ----------
    promise : TradeOff
        What is promised: ``ApproxDP(epsilon, delta)``, ``PureDP(epsilon)``, ``GaussianDP(mu)`` or
        any other curve.
    delta : float
        The δ at which `bound` states its ε.
    confidence : float
        A promise that holds is refuted with chance ``1 - confidence`` at most, ever.

    Attributes
    ----------
    runs : int
        How many have come.
    refuted_after : int or None
        How many had come when the promise fell.

    Notes
    -----
    Let P and Q be the laws of the score with and without the canary, and :math:`0\le\varphi\le c` a
    stake that depends on the score. Under (ε, δ)-DP :math:`E_P\varphi - e^\varepsilon
    E_Q\varphi\le\delta c`, and the same with P and Q exchanged. With a stake :math:`\varphi` on
    "with the canary" and :math:`\psi` on "without", the wealth is multiplied by
    :math:`F = 1-\delta c+\varphi-e^\varepsilon\psi` for a run of P and by
    :math:`G = 1-\delta c+\psi-e^\varepsilon\varphi` for a run of Q. Hence
    :math:`E_P F + E_Q G\le 2`, so that the pair's factor has mean :math:`E_P F\cdot E_Q G\le 1`,
    and no world has to be drawn by a coin. The wealth is a nonnegative supermartingale, and by
    Ville's inequality it ever reaches 1/α with probability α at most.

    The stake is what is best if the regression is right; nothing has to be right for the
    confidence. For a curve, ε and δ(ε) are chosen before each fit too. The regression takes ranks,
    so that an increasing function of the score changes nothing.

    References
    ----------
    González, Dulce-Rubio, Ramdas and Ribero, "Sequentially auditing differential privacy", NeurIPS
    2025, who bet by a kernel's witness. Kutta, Dunsche, Wei and Zikas, "Sequential auditing for
    f-differential privacy", 2026. Waudby-Smith and Ramdas, "Estimating means of bounded random
    variables by betting", JRSS B 2024. Ville, "Étude critique de la notion de collectif", 1939.

    Examples
    --------
    >>> from auditkit import ApproxDP
    >>> rng = np.random.default_rng(0)
    >>> audit = SequentialAudit(ApproxDP(1.0, 1e-5))
    >>> while not audit.refuted:
    ...     member = rng.random() < 0.5
    ...     audit = audit.update(rng.normal(2.0 * member), member)
    >>> audit.runs, round(audit.p_value, 3), audit.bound().epsilon
    (29, 0.036, 1.05)
    """

    def __init__(self, promise: TradeOff, *, delta: float = 1e-5, confidence: float = 0.95) -> None:
        self._epsilons, self._deltas = _implied(promise)
        self.promise = promise
        self.delta = _check.delta("delta", delta)
        self.confidence = _check.fraction("confidence", confidence)
        self.runs = 0
        self.refuted_after: int | None = None
        self._scores: dict[bool, list[float]] = {True: [], False: []}
        self._came: dict[bool, list[int]] = {True: [], False: []}
        self._rounds: list[_Round] = []
        self._played = 1  # the first pair only teaches
        self._log_wealth, self._highest = 0.0, 0.0

    def update(self, scores: ArrayLike, members: ArrayLike) -> Self:
        """Take further runs into account, one or many.

        Parameters
        ----------
        scores : float or array
            In the order in which the runs were made. A higher score means with the canary.
        members : bool or array
            Whether each run was with the canary.

        Returns
        -------
        SequentialAudit
            The same one.
        """
        _check.aligned(scores=scores, members=members)
        values = _check.numbers("scores", np.atleast_1d(scores), ndim=1)
        worlds = _check.members("members", np.atleast_1d(members))
        _check.same_length(scores=values, members=worlds)
        for score, world in zip(values.tolist(), worlds.tolist(), strict=True):
            self.runs += 1
            self._scores[world].append(score)
            self._came[world].append(self.runs)
        pairs = min(len(each) for each in self._scores.values())
        while self._played < pairs:
            if not self._rounds or self._played >= self._rounds[-1].end:
                self._rounds.append(self._fitted())
            self._play(slice(self._played, min(pairs, self._rounds[-1].end)))
        return self

    @property
    def e_value(self) -> float:
        """The wealth now, from 1 at the start; its mean is at most 1 at any complete pair."""
        return float(np.exp(self._log_wealth))

    @property
    def p_value(self) -> float:
        """The chance, at most, that a promise that holds ever looks as bad as this one has."""
        return float(np.exp(-self._highest))

    @property
    def refuted(self) -> bool:
        """Whether the promise has been refuted, at the confidence asked for."""
        return self.refuted_after is not None

    def bound(self) -> Bound:
        """Return the largest ε that the runs rule out at `delta`, with all smaller ones.

        Each ε of a grid has a wealth of its own, won by bets against (ε, δ)-DP on the same runs.
        The bound is the last before the first that never reached ``1 / (1 - confidence)``: it
        exceeds the true ε only if a promise that holds, the first above, was refuted.

        Returns
        -------
        Bound
            Valid at any stopping time, 0 where nothing is ruled out.
        """
        fallen, first = np.array([], dtype=np.bool_), 0
        while fallen.all():  # so it is where there is none yet
            fallen = (
                self._against(STEP * np.arange(first, first + 20, dtype=np.float64)) >= self._goal
            )
            first += fallen.size
        standing = first - fallen.size + int(fallen.argmin())
        return Bound(
            epsilon=round(STEP * max(standing - 1, 0), 9),
            delta=self.delta,
            confidence=self.confidence,
            claim="lower bound",
            adjacency="the two worlds'",
            method="two worlds, sequential bets",
            assumptions=(INDEPENDENT, WHOLE),
            details={"runs": self.runs, "pairs": min(map(len, self._scores.values()))},
        )

    @property
    def _goal(self) -> float:
        return float(-np.log(1.0 - self.confidence))

    def _fitted(self) -> _Round:
        """Return the fit to all pairs played, and the bet that follows from it."""
        start = self._played
        scores = np.array(self._scores[True][:start] + self._scores[False][:start])
        ranks = np.sort(scores)
        weights = _regression(_features(ranks, scores), np.repeat([1.0, 0.0], start))
        some = ranks[np.linspace(0, ranks.size - 1, min(ranks.size, 200)).astype(np.int64)]
        past = _features(ranks, some) @ weights
        bet = _best(past, self._epsilons[None, :], self._deltas[None, :])
        return _Round(max(start + 1, int(GROWTH * start)), ranks, weights, past, bet)

    def _play(self, pairs: slice) -> None:
        """Let the wealth follow the pairs of one fit."""
        now = self._rounds[-1]
        scores = np.stack([self._scores[world][pairs] for world in (True, False)])
        odds = _features(now.ranks, scores) @ now.weights
        now.odds = np.append(now.odds, odds, axis=1)
        path = self._log_wealth + np.cumsum(_gains(odds, now.bet)[:, 0])
        self._log_wealth, self._highest = float(path[-1]), max(self._highest, float(path.max()))
        if self._highest >= self._goal and not self.refuted:
            pair = pairs.start + int((path >= self._goal).argmax())
            self.refuted_after = max(came[pair] for came in self._came.values())
        self._played = pairs.stop

    def _against(self, epsilons: Floats) -> Floats:
        """Return the highest log-wealth that bets against each ε at δ have reached."""
        wealth, highest = np.zeros(epsilons.size), np.zeros(epsilons.size)
        deltas = np.full_like(epsilons, self.delta)
        for each in self._rounds:
            bet = _best(each.past, epsilons[:, None], deltas[:, None])
            path = wealth + np.cumsum(_gains(each.odds, bet), axis=0)
            wealth, highest = path[-1], np.maximum(highest, path.max(axis=0))
        return highest


@dataclass(eq=False)
class _Round:
    """A fit to the pairs before it, and what became of the pairs that were bet on.

    Attributes
    ----------
    end : int
        The number of pairs at which the next fit is due.
    ranks, weights : array
        All scores before, in order, and the weights of the regression on their ranks.
    past : array
        The log-odds that the fit gives the scores before, or some of them.
    bet : tuple of arrays
        Against the promise.
    odds : array of shape (2, pairs)
        The log-odds of the runs with the canary, and of those without it.
    """

    end: int
    ranks: Floats
    weights: Floats
    past: Floats
    bet: Bet
    odds: Floats = field(default_factory=lambda: np.empty((2, 0)))


def _implied(promise: TradeOff) -> tuple[Floats, Floats]:
    """Return pairs (ε, δ) that a curve promises."""
    if not isinstance(promise, TradeOff) or np.ndim(promise.delta(0.0)):
        raise TypeError(f"promise must be one TradeOff, got {promise!r}")
    least, most = float(promise.delta(FAR)), float(promise.delta(0.0))
    if isinstance(promise, ApproxDP):
        deltas = np.array([least])  # all others follow from it
    else:
        deltas = np.maximum(least + SHARES * (most - least), 1e-9)
    epsilons = np.asarray(promise.epsilon(deltas))
    finite = np.isfinite(epsilons)
    return epsilons[finite], deltas[finite]


def _features(ranks: Floats, scores: Floats) -> Floats:
    """Return the normal quantile of a score's rank among earlier ones, with bends and a step."""
    below, upto = (np.searchsorted(ranks, scores, side=side) for side in ("left", "right"))
    z = ndtri((below + upto + 1.0) / (2.0 * ranks.size + 2.0))
    bends = (np.maximum(z - 1.0, 0.0), np.minimum(z + 1.0, 0.0))  # a leak in one tail only
    step = np.tanh(3.0 * z)  # two worlds that hardly overlap
    return np.stack((np.ones_like(z), z, *bends, step), axis=-1)


def _regression(features: Floats, truth: Floats) -> Floats:
    """Return the weights of a logistic regression with a ridge, by Newton's method."""
    weights = np.zeros(RIDGE.size)
    for _ in range(25):
        chance = expit(features @ weights)
        slope = features.T @ (truth - chance) - RIDGE * weights
        curvature = (features.T * (chance * (1.0 - chance))) @ features + np.diag(RIDGE)
        step = np.linalg.solve(curvature, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def _best(odds: Floats, epsilon: Floats, delta: Floats) -> Bet:
    """Return the bet along the last axis of ε and δ that grows most if the log-odds are right."""
    e, d, part = np.broadcast_arrays(epsilon[..., None], delta[..., None], STAKES)
    e, d, part = (array.reshape(len(epsilon), -1) for array in (e, d, part))
    won, lost = (_growth(odds[:, None, None], world, (e, d, part)) for world in (True, False))
    chance = expit(odds)[:, None, None]
    place = (chance * won + (1.0 - chance) * lost).mean(axis=0).argmax(axis=1)
    here = np.arange(place.size)
    return e[here, place], d[here, place], part[here, place]


def _gains(odds: Floats, bet: Bet) -> Floats:
    """Return the growth of log-wealth by each pair of log-odds, one column a bet."""
    present, absent = odds[..., None]
    return _growth(present, True, bet) + _growth(absent, False, bet)


def _growth(odds: Floats, present: bool, bet: Bet) -> Floats:
    """Return the growth of log-wealth by a run of a world whose score has these log-odds.

    The stake is Kelly's, cut off at the bet's own: what a wrong guess costs is e^ε times what a
    right one brings.
    """
    epsilon, delta, part = bet
    most = part / (1.0 + delta * np.exp(-epsilon))
    fee = delta * np.exp(-epsilon) * most
    chance, rest = expit(odds), expit(-odds)
    price = np.exp(np.minimum(epsilon, 700.0))
    high = np.clip((1.0 - fee) * (chance - rest * price), 0.0, most)
    low = np.clip((1.0 - fee) * (rest - chance * price), 0.0, most)
    right, wrong = (high, low) if present else (low, high)
    growth: Floats = np.log1p(right * np.exp(-epsilon) - wrong - fee)
    return growth
