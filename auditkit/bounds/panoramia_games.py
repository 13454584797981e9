"""The games of PANORAMIA: coins tossed over scored pairs, and what each toss measures or proves.

Every pair is a member and another example, of which a coin shows one. Where the other one is
generated the difference of two tests is an estimate; where it is real, and of the members' law, the
same games bound ε.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from auditkit import _check
from auditkit._types import Bools, Randomness
from auditkit.bounds.one_run import one_run
from auditkit.bounds.panoramia import PanoramiaEstimate, panoramia
from auditkit.bounds.result import Bound
from auditkit.evidence import PairedScores

PAIRS = (
    "A fair coin of its own decided which example of each pair the model was trained on, or both "
    "come from one law: the neighbour has another example in its place."
)
APART = "None of the examples served to fit the attack."


def panoramia_games(
    baseline: PairedScores,
    attack: PairedScores,
    *,
    flips: int = 10,
    delta: float = 0.0,
    closeness_slack: float = 0.0,
    confidence: float = 0.95,
    rng: Randomness,
) -> tuple[PanoramiaEstimate, ...]:
    """Toss the coins of all pairs, and measure what the attack adds to the baseline; repeatedly.

    Parameters
    ----------
    baseline, attack : PairedScores
        Of the same pairs.
    flips : int
        How often the coins are tossed anew. The games share their pairs, so that they are not
        independent.
    delta, closeness_slack, confidence : float
        As in `auditkit.panoramia`; each game holds by itself.
    rng : Generator, int or None
        Tosses the coins.

    Returns
    -------
    tuple of PanoramiaEstimate
        One a game.

    References
    ----------
    PANORAMIA, Definition 2 and Algorithm 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> blind = PairedScores(rng.normal(0.5, 1, 2000), rng.normal(0, 1, 2000))
    >>> seeing = PairedScores(rng.normal(3, 1, 2000), rng.normal(0, 1, 2000))
    >>> games = panoramia_games(blind, seeing, flips=3, rng=0)
    >>> [round(game.epsilon, 2) for game in games]
    [3.51, 3.28, 3.47]
    """
    _check.same_length(baseline=baseline, attack=attack)
    return tuple(
        panoramia(
            baseline.shown(coins),
            attack.shown(coins),
            coins,
            delta=delta,
            closeness_slack=closeness_slack,
            confidence=confidence,
        )
        for coins in _coins(len(attack), flips, rng)
    )


def real_games(
    attack: PairedScores, *, flips: int = 10, confidence: float = 0.95, rng: Randomness
) -> tuple[Bound, ...]:
    """Bound ε by the same games with unseen real examples in place of generated ones.

    Members and others are of one law, so that c is 0 and needs no baseline. Half of the level is
    spent on it all the same, so that the number compares with `panoramia_games`.

    Parameters
    ----------
    attack : PairedScores
        Of pairs of a member and an unseen real example.
    flips, confidence, rng
        As in `panoramia_games`.

    Returns
    -------
    tuple of Bound
        A lower bound for each game.

    References
    ----------
    PANORAMIA, Section 5.2 (RM;RN).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> attack = PairedScores(rng.normal(3, 1, 2000), rng.normal(0, 1, 2000))
    >>> round(real_games(attack, flips=1, rng=0)[0].epsilon, 2)
    3.64
    """
    level = (1.0 - _check.fraction("confidence", confidence)) / 2.0
    blind = PairedScores(np.zeros(len(attack)), np.zeros(len(attack)))
    games = panoramia_games(blind, attack, flips=flips, confidence=confidence, rng=rng)
    return tuple(
        Bound(
            epsilon=game.c_plus_epsilon_lower,
            delta=0.0,
            confidence=1.0 - level,
            claim="lower bound",
            adjacency="substitute",
            method="PANORAMIA with unseen real examples",
            assumptions=(PAIRS, APART),
            details={
                name: game.details[name]
                for name in ("examples", "members", "ceiling", "attack_guesses", "attack_correct")
            },
        )
        for game in games
    )


def one_run_games(
    scores: PairedScores,
    *,
    guess: Literal["both", "members"] = "both",
    flips: int = 10,
    confidence: float = 0.95,
    rng: Randomness,
) -> tuple[Bound, ...]:
    """Bound ε by guesses of either kind, with thresholds that are paid for.

    The examples of the highest scores are guessed to be members, those of the lowest scores to be
    others, and the rest is left alone. Both numbers run over a grid in which each is about 1.4
    times the one before, and each pair of them is tested at its share of the level.

    Parameters
    ----------
    scores : PairedScores
        Of pairs of a member and an unseen real example, for example by `Mixture.loss_scores`.
    guess : {"both", "members"}
        Whether others are guessed, too.
    flips, confidence, rng
        As in `panoramia_games`.

    Returns
    -------
    tuple of Bound
        A lower bound for each game.

    References
    ----------
    Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", 2023; PANORAMIA,
    Appendix C.4, for the two thresholds and the union bound.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = PairedScores(rng.normal(3, 1, 2000), rng.normal(0, 1, 2000))
    >>> round(one_run_games(scores, flips=1, rng=0)[0].epsilon, 2)
    4.23
    """
    level = 1.0 - _check.fraction("confidence", confidence)
    both = _check.choice("guess", guess, ("both", "members")) == "both"
    pairs = len(scores)
    numbers = np.unique((10.0 * np.sqrt(2.0) ** np.arange(2 * np.log2(pairs))).astype(np.int64))
    numbers = np.append(0, numbers[numbers <= pairs])
    high, low = (table.ravel() for table in np.meshgrid(numbers, numbers if both else [0]))
    possible = (high + low > 0) & (high + low <= pairs)
    high, low = high[possible], low[possible]
    if not high.size:
        raise ValueError(f"scores must be of at least 10 pairs, got {pairs}")
    found = []
    for coins in _coins(pairs, flips, rng):
        order = np.argsort(-scores.shown(coins), kind="stable")
        hits = np.append(0, np.cumsum(coins[order]))
        misses = np.append(0, np.cumsum(~coins[order][::-1]))
        correct = hits[high] + misses[low]
        tests = np.full(high.size, pairs)
        sharper = 1.0 - level / high.size
        every = one_run(correct, high + low, tests, delta=0.0, confidence=sharper).epsilon
        best = int(np.argmax(every))
        bound = one_run(correct[best], high[best] + low[best], pairs, delta=0.0, confidence=sharper)
        found.append(
            Bound(
                epsilon=bound.epsilon,
                delta=0.0,
                confidence=confidence,
                claim="lower bound",
                adjacency="substitute",
                method="one run with two thresholds",
                assumptions=(PAIRS,),
                details={
                    "examples": pairs,
                    "members_guessed": int(high[best]),
                    "others_guessed": int(low[best]),
                    "correct": int(correct[best]),
                    "tests": int(high.size),
                },
            )
        )
    return tuple(found)


@dataclass(frozen=True, eq=False)
class GeneratedAudit:
    """What `generated_audit` measured, and what the same steps say of a model without a leak.

    Attributes
    ----------
    games : tuple of PanoramiaEstimate
        The audited model, one a toss of the coins.
    null_games : tuple of PanoramiaEstimate
        A model that has not seen the audited members, at the same coins.
    """

    games: tuple[PanoramiaEstimate, ...]
    null_games: tuple[PanoramiaEstimate, ...]

    def __str__(self) -> str:
        c, both = (
            np.mean([getattr(game, name) for game in self.games])
            for name in ("c_lower", "c_plus_epsilon_lower")
        )
        measured, null = (
            [game.details["difference"] for game in games]
            for games in (self.games, self.null_games)
        )
        return (
            f"ε̃ = {np.mean(measured):.2f} on average over {len(measured)} games "
            f"(c ≥ {c:.2f}, c + ε ≥ {both:.2f}; ceiling {self.games[0].details['ceiling']:.2f}); "
            f"a model without the members shows {np.mean(null):.2f}, "
            f"and {np.quantile(null, 0.95):.2f} at its 95th percentile. An estimate, not a bound."
        )


def generated_audit(
    baseline: PairedScores,
    attack: PairedScores,
    null: PairedScores,
    *,
    flips: int = 10,
    rng: Randomness,
) -> GeneratedAudit:
    """Measure a model, and one without a leak, by the same tosses of the coins.

    Parameters
    ----------
    baseline, attack, null : PairedScores
        As `auditkit.attacks.generated.score_with_generated` returns them: by the examples alone,
        with the audited model, and with a model that has not seen the audited members.
    flips, rng
        As in `panoramia_games`.

    Returns
    -------
    GeneratedAudit

    References
    ----------
    PANORAMIA, Algorithm 1. The null model is not in the paper.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> blind, seeing, null = (
    ...     PairedScores(rng.normal(gap, 1, 2000), rng.normal(0, 1, 2000)) for gap in (0.5, 3, 0.5)
    ... )
    >>> print(generated_audit(blind, seeing, null, rng=0))  # doctest: +ELLIPSIS
    ε̃ = 3.5... on average over 10 games (c ≥ ..., c + ε ≥ ...; ceiling ...); a model without ...
    """
    seed = int(_check.generator("rng", rng).integers(2**63))
    games, null_games = (
        panoramia_games(baseline, each, flips=flips, rng=seed) for each in (attack, null)
    )
    return GeneratedAudit(games, null_games)


def _coins(pairs: int, flips: int, rng: Randomness) -> Bools:
    generator = _check.generator("rng", rng)
    number = _check.whole("flips", flips, least=1)
    return generator.random((number, pairs)) < 0.5
