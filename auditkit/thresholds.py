"""How guesses were chosen, and why the count that follows may be trusted.

A threshold picked because it gave the best bound gives too large a bound. Each class below is a way
to pick one, and its docstring says why the bound keeps its confidence, or that it does not. In the
one-run methods a rule is a number of guesses: the most extreme scores are guessed, the highest as
members and the lowest as non-members. In the two-worlds method it is a cut through the scores.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

import numpy as np

from auditkit import _check


@dataclass(frozen=True)
class Fixed:
    """One rule, chosen before the scores were seen.

    Valid since the choice cannot depend on chance: each example above or below a fixed cut is
    counted as the theorem has it. The same holds for a fixed number of guesses, although the
    examples guessed on depend on the scores, since a one-run theorem lets the adversary pick any
    examples by any function of what the mechanism released, and the scores are that; only
    membership must not enter.

    Parameters
    ----------
    threshold : float, optional
        The cut: scores at or above it are guessed to be members, scores below it non-members.
        Nobody is abstained on.
    guesses : int or float, optional
        For the one-run methods: how many guesses, as a whole number or as a share in (0, 1] of the
        examples (rounded, at least one). ``1`` is one guess, ``1.0`` is all. Half go to the highest
        scores, half to the lowest, the odd one to the highest. Where scores tie at the edge, a
        shuffle picks that is drawn from the data themselves, whatever the order of the rows (see
        the notes of `audit_scores`), and the number of guesses stays what was fixed, as the
        theorems need.

    References
    ----------
    Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run", Algorithm 1.

    Examples
    --------
    >>> Fixed(guesses=0.01)
    Fixed(threshold=None, guesses=0.01)
    >>> Fixed(guesses=0.01).number(500)
    5
    """

    threshold: float | None = None
    _: KW_ONLY
    guesses: int | float | None = None

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.guesses is None):
            raise ValueError(
                "Fixed takes either a threshold or a number of guesses, got "
                f"threshold={self.threshold!r} and guesses={self.guesses!r}"
            )
        if self.threshold is not None:
            _check.scalar("threshold", self.threshold)
        if self.guesses is not None:
            guesses = _check.scalar("guesses", self.guesses)
            if isinstance(self.guesses, bool):
                raise TypeError(f"guesses must be a number or a share, got {self.guesses!r}")
            whole = isinstance(self.guesses, int | np.integer)
            if not (guesses >= 1.0 if whole else 0.0 < guesses <= 1.0):
                raise ValueError(
                    "guesses must be a whole number of at least 1 or a share in (0, 1], "
                    f"got {self.guesses!r}"
                )

    def number(self, examples: int) -> int:
        """Return how many of `examples` are guessed on."""
        if self.guesses is None:
            return examples
        if not isinstance(self.guesses, int | np.integer):
            return max(1, round(self.guesses * examples))
        if self.guesses > examples:
            raise ValueError(
                f"guesses must be at most the number of examples, {examples}, got {self.guesses}"
            )
        return int(self.guesses)


@dataclass(frozen=True)
class Bonferroni:
    """The best of several rules, each at the level divided by their number.

    Valid by the union bound: the chance that any of k bounds exceeds the truth is at most k times
    ``level / k``. Each rule has to be valid alone, and fixed in advance.

    A whole number k stands for k rules that suit most audits. For the one-run methods they are
    shares of guesses, evenly spaced in the logarithm from 1% to all. For two worlds they are cuts
    at ranks fixed in advance: at the j-th highest score of the runs without the canary, strictly
    above which j - 1 of them lie, or at the j-th lowest of the runs with it. The share of a
    continuous law beyond its own j-th order statistic follows the Beta(j, n - j + 1) law, whose
    upper quantile is Clopper and Pearson's limit for j - 1 errors in n trials; ties only make the
    share smaller. Given the one world, the other is independent of the cut. A cut at a rank among
    both worlds together has neither property.

    Parameters
    ----------
    candidates : int or tuple of Fixed
        The number of rules, or the rules.

    References
    ----------
    Bonferroni (1936). Wilks (1941), "Determination of sample sizes for setting tolerance limits",
    for the law of the share beyond an order statistic. Tong, Feng and Li (2018), "Neyman-Pearson
    classification algorithms and NP receiver operating characteristics", Proposition 1, for its
    use on thresholds, with ties.

    Examples
    --------
    >>> Bonferroni((Fixed(guesses=0.01), Fixed(guesses=0.1)))
    Bonferroni(candidates=(Fixed(threshold=None, guesses=0.01), Fixed(threshold=None, guesses=0.1)))
    """

    candidates: int | tuple[Fixed, ...] = 10

    def __post_init__(self) -> None:
        given = self.candidates
        if not isinstance(given, tuple):
            _whole("candidates", given, least=1)
        elif not given or not all(isinstance(rule, Fixed) for rule in given):
            raise TypeError(f"candidates must be one or more rules Fixed(...), got {given!r}")


@dataclass(frozen=True)
class Split:
    """A rule chosen on one part of the examples and counted on the other.

    Valid since, given the first part, the rule is fixed for the second. The division is drawn from
    a key of all scores and memberships, hence independent of them as far as a hash is random, so
    that membership in the second part of a one-run game is still a fair coin; the number of
    examples is that of the second part. Two worlds are divided one by one, so that both parts hold
    both.

    Parameters
    ----------
    fraction : float
        Share of the examples that go to choosing.
    seed : int
        Which examples those are, together with the data: by itself a seed could be the one that the
        members were drawn by.
    rule : {"best", "midpoint"}
        "best" takes the rule with the largest bound on the first part, out of those that `Sweep`
        tries. "midpoint" takes the cut halfway between the mean score of
        members and the mean score of non-members: ``Split(0.2, rule="midpoint")`` spends little
        on choosing.

    References
    ----------
    Cox (1975), "A note on data-splitting for the evaluation of significance levels".

    Examples
    --------
    >>> Split(0.2, rule="midpoint")
    Split(fraction=0.2, seed=0, rule='midpoint')
    """

    fraction: float = 0.5
    _: KW_ONLY
    seed: int = 0
    rule: Literal["best", "midpoint"] = "best"

    def __post_init__(self) -> None:
        _check.fraction("fraction", self.fraction)
        _whole("seed", self.seed, least=0)
        _check.choice("rule", self.rule, ("best", "midpoint"))


@dataclass(frozen=True)
class MultiSplit:
    """The median over many splits, each at half the level.

    A single split leaves the result to the seed. Here the bound is the largest number that at
    least half of the splits reach. It exceeds the truth only if at least half of them do. Each
    does with probability at most ``level / 2``, however they depend on one another, so that by
    Markov's inequality half of them do with probability at most ``level``.

    Parameters
    ----------
    splits : int
        How many.
    fraction : float
        Share of the examples that go to choosing in each.
    seed : int
        Seed of the first split; the others follow from it.

    References
    ----------
    Meinshausen, Meier and Bühlmann (2009), "p-values for high-dimensional regression". DiCiccio,
    DiCiccio and Romano (2020), "Exact tests via multiple data splitting". Both state it for
    p-values: twice their median is one.

    Examples
    --------
    >>> MultiSplit(splits=11)
    MultiSplit(splits=11, fraction=0.5, seed=0)
    """

    splits: int = 21
    _: KW_ONLY
    fraction: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        _whole("splits", self.splits, least=1)
        _check.fraction("fraction", self.fraction)
        _whole("seed", self.seed, least=0)

    def each(self) -> tuple[Split, ...]:
        """Return the splits."""
        seeds = np.random.SeedSequence(self.seed).generate_state(self.splits)
        return tuple(Split(self.fraction, seed=int(seed)) for seed in seeds)


@dataclass(frozen=True)
class Sweep:
    """The best of all rules, on the data it is stated for, without correction: an estimate.

    Not valid. The largest of many bounds exceeds the truth more often than each of them. It is what
    papers often report, and it is here to be compared with. For one-run methods the rules are
    guesses on 1%, 2%, ..., 100% of the examples, as in OBS, Section 6.2; for two worlds every cut
    through the scores.

    References
    ----------
    OBS, Section 6.2 and Appendix E, which names the problem.

    Examples
    --------
    >>> Sweep()
    Sweep()
    """


Threshold: TypeAlias = Fixed | Bonferroni | Split | MultiSplit | Sweep


def counted(threshold: Threshold, examples: int) -> tuple[int, float]:
    """Return how many examples a strategy counts on, and the part of the level that a rule has.

    Parameters
    ----------
    threshold : Fixed, Bonferroni, Split, MultiSplit or Sweep
        The strategy.
    examples : int
        How many there are.

    Returns
    -------
    size : int
        The examples that are left where some went to choosing.
    part : float
        What each bound that is made has of ``1 - confidence``.

    References
    ----------
    The classes of strategies, which say why.

    Examples
    --------
    >>> counted(Split(0.2), 1000), counted(Bonferroni(10), 1000)
    ((800, 1.0), (1000, 0.1))
    """
    size, part = examples, 1.0
    if isinstance(threshold, Split | MultiSplit):
        size -= round(threshold.fraction * examples)
    if isinstance(threshold, MultiSplit):
        part = 0.5
    elif isinstance(threshold, Bonferroni):
        rules = threshold.candidates
        part /= len(rules) if isinstance(rules, tuple) else rules
    return size, part


def _whole(name: str, value: int, *, least: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


TEN = Bonferroni(10)  # `benchmarks/threshold_rules.py`: near the best median, with little spread
