"""The game of a zero run: guess where a correct guess is worth most, once its shift is paid for.

The third game beside those of `auditkit.bounds.games`, so that every strategy for the choice of
guesses in `auditkit.bounds.scores` serves a zero run too.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit import _check, _keyed
from auditkit._types import Floats, Ints
from auditkit.bounds.games import Candidates, OneRunGame
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.result import Bound
from auditkit.bounds.shift_corrections import games_of, shift_of
from auditkit.bounds.zero_run import zero_run
from auditkit.evidence import Scores
from auditkit.thresholds import Fixed, Split

TRIED = 20  # rules that a split or a sweep chooses from


@dataclass(frozen=True, eq=False, init=False)
class ShiftedScores(Scores):
    """Scores of examples that may betray their membership by themselves.

    Parameters
    ----------
    values, members : array of shape (examples,)
        As in `Scores`.
    propensity : array of shape (examples,)
        The chance that each example is a member, given the example.
    evidence : array of shape (examples,)
        The log-odds of membership that score and propensity make together, as
        `auditkit.attacks.membership.posterior_log_odds` has them: above 0 a member is guessed.

    Examples
    --------
    >>> scores = ShiftedScores([0.9, 0.2], [True, False], [0.5, 0.4], [1.1, -1.2])
    >>> scores.take(np.array([1])).propensity
    array([0.4])
    """

    propensity: Floats
    evidence: Floats

    def __init__(
        self, values: ArrayLike, members: ArrayLike, propensity: ArrayLike, evidence: ArrayLike
    ) -> None:
        super().__init__(values, members)
        chances = _check.fractions("propensity", propensity, ndim=1)
        object.__setattr__(self, "propensity", chances)
        object.__setattr__(self, "evidence", _check.numbers("evidence", evidence, ndim=1))
        _check.same_length(scores=self.values, propensity=chances, evidence=self.evidence)

    def take(self, index: NDArray[np.intp]) -> "ShiftedScores":
        """Return the scores at `index`, with all that belongs to them."""
        columns = (self.values, self.members, self.propensity, self.evidence)
        return ShiftedScores(*(column[index] for column in columns))

    @cached_property
    def canonical(self) -> NDArray[np.intp]:
        """The rows by all that they hold, however they stood before."""
        return _keyed.canonical(self.values, self.members, self.propensity, self.evidence)

    @cached_property
    def key(self) -> str:
        """What ties and splits follow from; see `_keyed`."""
        order, columns = self.canonical, (self.members, self.propensity, self.evidence)
        ranks = _keyed.ranks(self.values[order])
        return _keyed.key_of(ranks, *(column[order] for column in columns))

    def repeated(self) -> float:
        """Return how likely tied rows are to agree as they do, by the evidence.

        Where propensities differ, rows of one score do not have one chance to be members.
        """
        return Scores(self.evidence, self.members).repeated()


@dataclass(frozen=True, eq=False)
class ZeroRunGame:
    """Guess on the examples where a correct guess, times its chance to be kept, is worth most.

    Attributes
    ----------
    delta : float
        The δ at which ε is stated.
    rng : int
        Adds to where the thinning is drawn from, as in `zero_run`.

    Examples
    --------
    >>> from auditkit.bounds.scores import audit
    >>> from auditkit.thresholds import Bonferroni
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random(2000) < 0.5
    >>> odds = rng.normal(1.5 * members - 0.75)
    >>> scores = ShiftedScores(odds, members, np.full(2000, 0.5), odds)
    >>> bound = audit(ZeroRunGame(1e-5), scores, Bonferroni(10), 0.95)
    >>> print(bound.claim, bound.details["correct"], "of", bound.details["guesses"])
    lower bound 254 of 258
    """

    delta: float
    rng: int = 0

    def check(self, scores: Scores) -> None:
        """Take any membership: nobody tossed a coin for it."""

    def divide(self, scores: Scores, split: Split) -> tuple[Scores, Scores]:
        """Return a part to choose on and one to count on, as in one run."""
        return OneRunGame(one_run_fdp).divide(scores, split)

    def every(self, scores: Scores) -> Candidates:
        """Return guesses on 100% to 1% of the examples, evenly spaced in the logarithm."""
        return self.preset(scores, TRIED)

    def preset(self, scores: Scores, number: int) -> Candidates:
        """Return a number of rules that are fixed in advance."""
        shares = [Fixed(guesses=share) for share in np.geomspace(1.0, 0.01, number).tolist()]
        return self._at(scores, list({rule.number(len(scores)): rule for rule in shares}.values()))

    def single(self, scores: Scores, rule: Fixed) -> Candidates:
        """Return one rule, fixed in advance; a cut is one through the scores themselves."""
        return self._at(scores, [rule])

    def as_rule(self, setting: float) -> Fixed:
        """Return a candidate's setting as a rule."""
        return Fixed(guesses=setting)

    def _at(self, scores: Scores, rules: list[Fixed]) -> Candidates:
        assert isinstance(scores, ShiftedScores)
        order = scores.shuffled("ties")
        worth = np.abs(scores.evidence) * np.exp(-shift_of(scores.propensity))
        ranked = order[np.argsort(-worth[order], kind="stable")]
        side = np.where(scores.evidence > 0.0, 1, -1)

        def guesses_by(rule: Fixed) -> Ints:
            if rule.threshold is not None:
                return np.where(scores.values >= rule.threshold, 1, -1)
            chosen = ranked[: rule.number(len(scores))]
            guesses = np.zeros(len(scores), np.int64)
            guesses[chosen] = side[chosen]
            return guesses

        def bound(confidence: float) -> Bound:
            alone = [self._proved(scores, guesses_by(rule), confidence) for rule in rules]
            counts: dict[str, Any] = {
                name: np.array([one.details[name] for one in alone]) for name in alone[0].details
            }
            claims = {one.claim for one in alone}
            epsilons = np.array([one.epsilon for one in alone])
            claim = alone[0].claim if len(claims) == 1 else "estimate"
            return replace(alone[0], epsilon=epsilons, claim=claim, details=counts)

        cuts = [rule.threshold for rule in rules if rule.threshold is not None]
        if cuts:
            return Candidates(np.array(cuts), np.array(cuts), bound)
        last = ranked[np.array([rule.number(len(scores)) for rule in rules]) - 1]
        return Candidates(np.array([rule.guesses for rule in rules], float), worth[last], bound)

    def _proved(self, scores: ShiftedScores, guesses: Ints, confidence: float) -> Bound:
        """Return the bound of one rule, with how many guesses would be kept, had all been right."""
        data = (guesses, scores.members, scores.propensity)
        found = zero_run(*data, delta=self.delta, confidence=confidence, rng=self.rng)
        (game,), _ = games_of(*data, self.rng)
        kept = game.guessed & (game.draws < np.exp(-shift_of(scores.propensity)))
        counts = {name: found.details[name] for name in ("mu", "examples", "guesses", "correct")}
        counts |= {name: found.details[name] for name in ("kept", "largest_shift")}
        return replace(found, details={**counts, "kept_at_most": int(kept.sum())})
