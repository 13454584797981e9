"""Bounds under attack by what a user may do without a thought: seeds, orders of rows, ties.

Nothing leaks in most cells, or what leaks is known. Membership is drawn by the seeds that everybody
uses, or the file lists the members first, or the scores have one value, two, or three. A bound that
broke ties by the order of rows, or split by a seed, would let its guesses see membership here.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.special import expit

from auditkit import (
    Bonferroni,
    Bound,
    Fixed,
    MultiSplit,
    Split,
    audit_scores,
    observational_label,
    panoramia,
    reject_propensity,
    zero_run,
)
from auditkit.attacks.label_inference import label_game
from auditkit.experiment import study
from auditkit.mechanisms.label_dp import RandomizedResponse
from experiments.validity import clopper_pearson

EXAMPLES = 500
LEVEL = 0.05
COINS, FIRST, LAST, SORTED = "coins", "members first", "members last", "sorted by score"
OWN = "by the audit's own seed"  # another one in every repetition
ORDERS = (FIRST, LAST, SORTED)
HALF = EXAMPLES // 2
DRAWS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "permutation": lambda rng: np.isin(np.arange(EXAMPLES), rng.permutation(EXAMPLES)[:HALF]),
    "choice": lambda rng: np.isin(np.arange(EXAMPLES), rng.choice(EXAMPLES, HALF, replace=False)),
    "random": lambda rng: rng.random(EXAMPLES) < 0.5,
}
SEEDED = [f"{draw}, seed {seed}" for draw in DRAWS for seed in range(10)]

CONTINUOUS, ONE, THREE = "continuous", "one value", "three values"
HALF_ONES, MOST_ONES = "two values, 50% ones", "two values, 90% ones"
VALUES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    CONTINUOUS: lambda rng: rng.normal(size=EXAMPLES),
    ONE: lambda _: np.ones(EXAMPLES),
    HALF_ONES: lambda rng: (rng.random(EXAMPLES) < 0.5).astype(float),
    MOST_ONES: lambda rng: (rng.random(EXAMPLES) < 0.9).astype(float),
    THREE: lambda rng: rng.integers(3, size=EXAMPLES).astype(float),
}
LEAK = 1.0  # ε of randomised response, whose answers are scores of two values
RESPONSE = "answers at ε = 1"

ALL = Fixed(guesses=1.0)
RULES = {
    "Fixed, 10%": Fixed(guesses=0.1),
    "Fixed, 50%": Fixed(guesses=0.5),
    "Fixed, 90%": Fixed(guesses=0.9),
    "Fixed, 100%": ALL,
    "Bonferroni": Bonferroni(),
    "Split": Split(),
    "Split, midpoint": Split(0.2, rule="midpoint"),
    "MultiSplit": MultiSplit(3),
}
SPLITTING = ("Split", "Split, midpoint", "MultiSplit")
CHOOSING = ("Bonferroni", *SPLITTING)
CUT = "Fixed cut"


Found = tuple[float | None, float]  # the ε of a lower bound, None of an estimate; and the truth


# membership, scores and rows


def drawn(members: str, rng: np.random.Generator) -> np.ndarray:
    """Toss coins, or draw members by a seed that everybody uses, the same in every repetition."""
    draw, _, seed = members.partition(", seed ")
    return DRAWS[draw](np.random.default_rng(int(seed))) if seed else DRAWS["random"](rng)


def seed_of(members: str) -> int:
    """Return the seed of the draw, which the user gives to the audit as well."""
    return int(members.partition(", seed ")[2] or 0)


def ordered(members: str, truth: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the order of the rows in the user's file."""
    orders = {FIRST: ~truth, LAST: truth, SORTED: -scores}
    return np.argsort(orders.get(members, np.zeros(truth.size)), kind="stable")


def shown(scores: str, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return scores that tell nothing, or the answers of randomised response."""
    if scores == RESPONSE:
        return np.where(rng.random(truth.size) < expit(LEAK), truth, ~truth).astype(float)
    return VALUES[scores](rng)


# audits


def scored(members: str, scores: str, rule: str, rng: np.random.Generator, **method: str) -> Found:
    """Audit scores; a rule that splits is given the seed that drew the members."""
    truth = drawn(members, rng)
    values = shown(scores, truth, rng)
    order = ordered(members, truth, values)
    threshold = Fixed(0.5) if rule == CUT else RULES[rule]
    if isinstance(threshold, Split):
        threshold = Split(threshold.fraction, seed=seed_of(members), rule=threshold.rule)
    delta = 1e-5 if method["method"] == "one-run-fdp" else 0.0
    bound = audit_scores(values[order], truth[order], threshold=threshold, delta=delta, **method)
    return claimed_by(bound), LEAK if scores == RESPONSE else 0.0


def claimed_by(bound: Bound) -> float | None:
    """Return the ε of a lower bound; an estimate claims none."""
    return float(np.asarray(bound.epsilon)) if bound.claim == "lower bound" else None


def observed(
    members: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.random.Generator | int]:
    """Return members and propensities in the order of a file, and what the audit gets as `rng`.

    The seed is another one in every repetition, since with shifted examples one set of draws is
    luckier than another, whatever an audit does.
    """
    chance = expit(rng.permutation(np.linspace(-1.5, 1.5, EXAMPLES)))
    seed = int(rng.integers(2**31))
    truth = (np.random.default_rng(seed) if OWN in members else rng).random(EXAMPLES) < chance
    order = ordered(members, truth, chance)
    source = np.random.default_rng(seed) if "generator" in members else seed
    return truth[order], chance[order], source


def zero(
    members: str, scores: str, rule: str, rng: np.random.Generator, correction: str, family: str
) -> Found:
    """Guess by the propensities, where nothing leaks; the seed thins too, as a number or a stream.

    The `rule` is a number of guesses, and there are no scores.
    """
    del scores
    truth, chance, source = observed(members, rng)
    odds = np.log(chance) - np.log1p(-chance)
    worth = np.abs(odds) + 0.1 * rng.random(EXAMPLES)
    guesses = np.where(worth >= np.sort(worth)[-int(rule)], np.sign(odds), 0).astype(int)
    bound = zero_run(
        guesses,
        truth,
        chance,
        correction=correction,
        family=family,
        delta=1e-5 if family == "gaussian" else 0.0,
        rng=source,
    )
    return claimed_by(bound), 0.0


def rejected(members: str, scores: str, rule: str, rng: np.random.Generator) -> Found:
    """Test propensities that are right, by a rival who knows them."""
    del scores, rule  # it guesses on all
    truth, chance, source = observed(members, rng)
    guesses = np.where(chance > 0.5, 1, -1)
    return float(reject_propensity(guesses, truth, chance, rng=source).rejected), 0.0


def generated(members: str, scores: str, rule: str, rng: np.random.Generator) -> Found:
    """Audit generated examples that are as the real ones, with a model that leaks nothing."""
    truth = drawn(members, rng)
    baseline, attack = (shown(scores, truth, rng) for _ in range(2))
    order = ordered(members, truth, attack)
    slack = float(rule.partition("slack ")[2] or 0.0)
    if slack:
        known = truth & (rng.random(EXAMPLES) < slack)
        baseline, attack = np.where(known, 50.0, baseline), np.where(known, 50.0, attack)
    result = panoramia(baseline[order], attack[order], truth[order], closeness_slack=slack)
    return max(result.c_lower, result.c_plus_epsilon_lower), 0.0


LABELS = 2000


def labels(members: str, scores: str, rule: str, rng: np.random.Generator) -> Found:
    """Audit a model that learned nothing, where the reference model is off by a tilt.

    Labels are 0 or 1 by a fair coin, and 1 is generated too often by the tilt. The attack knows.
    The placebo is as large as the audit, or a tenth of it.
    """
    tilt, small, _ = scores.removeprefix("off by ").partition(", small placebo")

    def game(examples: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = rng.integers(2, size=examples)
        own, other = rng.random(examples) < 0.5, rng.random(examples) < 0.5 + float(tilt)
        seen = np.where(chosen == 0, own, other)
        values = np.where(seen, -1.0, 1.0) * (1.0 + 0.1 * rng.random(examples))
        order = ordered(members, chosen == 0, values)
        return values[order], chosen[order]

    (values, chosen), (placebo, placebo_chosen) = (
        game(LABELS),
        game(LABELS // 10 if small else LABELS),
    )
    bound = observational_label(
        values,
        chosen,
        placebo_scores=placebo,
        placebo_chosen=placebo_chosen,
        threshold=LABEL_RULES[rule],
    )
    return claimed_by(bound), 0.0


def told(members: str, scores: str, rule: str, rng: np.random.Generator) -> Found:
    """Audit randomised response of labels, in a game whose coins have the mechanism's own seed."""
    del members, scores  # there is one setting
    seed = int(rng.integers(2**31))
    own = rng.integers(2, size=LABELS)
    released = RandomizedResponse(epsilon=LEAK, classes=2).privatize(own, rng=seed)
    game = label_game(own, np.full((LABELS, 2), 0.5), rng=seed)
    values = np.where(game.shown == released, 1.0, -1.0) * (1.0 + 0.1 * rng.random(LABELS))
    fresh = label_game(rng.integers(2, size=LABELS), np.full((LABELS, 2), 0.5), rng=rng)
    bound = observational_label(
        values,
        game.chosen,
        placebo_scores=rng.normal(size=LABELS),
        placebo_chosen=fresh.chosen,
        family="pure",
        delta=0.0,
        threshold=LABEL_RULES[rule],
    )
    return float(np.asarray(bound.epsilon)), LEAK


LABEL_RULES = {
    **{f"Fixed, {share:.0%}": Fixed(guesses=share) for share in (0.01, 0.1, 0.5, 1.0)},
    "Bonferroni": Bonferroni(),
    "Split": Split(),
    "MultiSplit": MultiSplit(3),
}
CORRECTIONS = {
    "conditional, Gaussian": ("conditional", "gaussian"),
    "conditional, δ = 0": ("conditional", "approx"),
    "sharp, Gaussian": ("sharp", "gaussian"),
    "untampered, δ = 0": ("untampered", "approx"),
}
ONE_RUN, FDP, WORLDS = "one run", "one run, f-DP", "two worlds"
GENERATED, LABEL, REJECTED = "PANORAMIA", "labels", "reject_propensity"
RELEASED = "labels, randomised response"
GAMES: dict[str, Callable[[str, str, str, np.random.Generator], Found]] = {
    ONE_RUN: partial(scored, method="one-run"),
    FDP: partial(scored, method="one-run-fdp"),
    WORLDS: partial(scored, method="two-worlds"),
    **{
        f"zero run, {name}": partial(zero, correction=correction, family=family)
        for name, (correction, family) in CORRECTIONS.items()
    },
    REJECTED: rejected,
    GENERATED: generated,
    LABEL: labels,
    RELEASED: told,
}


def cells(simulations: int) -> Iterator[dict]:
    """Return the design: what each audit is attacked with, not the whole cross."""
    shares = ("Fixed, 50%", "Fixed, 90%", "Fixed, 100%")
    found = [(ONE_RUN, *at) for at in cross(ORDERS, (ONE, HALF_ONES, MOST_ONES, THREE), shares)]
    found += [(ONE_RUN, *at) for at in cross(SEEDED, (HALF_ONES,), ("Fixed, 10%",))]
    found += [(ONE_RUN, *at) for at in cross(SEEDED, (CONTINUOUS,), ("Split",))]
    found += [(ONE_RUN, *at) for at in cross(ORDERS, (CONTINUOUS, HALF_ONES), CHOOSING)]
    found += [(ONE_RUN, *at) for at in cross(ORDERS, (RESPONSE,), ("Fixed, 50%", "Fixed, 100%"))]
    found += [(FDP, *at) for at in cross((FIRST, SORTED), (HALF_ONES, THREE), CHOOSING)]
    found += [(FDP, *at) for at in cross((FIRST, LAST), (MOST_ONES,), shares)]
    found += [(WORLDS, *at) for at in cross(ORDERS, (CONTINUOUS, MOST_ONES), (CUT, *CHOOSING))]
    found += [(WORLDS, *at) for at in cross(SEEDED[:10], (CONTINUOUS,), ("Split",))]
    found += [(WORLDS, *at) for at in cross(ORDERS, (RESPONSE,), ("Bonferroni", CUT))]
    observed_by = (*ORDERS, OWN, f"{OWN}, as a generator")
    for name in CORRECTIONS:
        zeros = f"zero run, {name}"
        found += [(zeros, *at) for at in cross(observed_by, ("none",), ("100", "500"))]
    found += [(REJECTED, *at) for at in cross(observed_by, ("none",), ("500",))]
    found += [(GENERATED, *at) for at in cross(ORDERS, (*VALUES,), ("no slack",))]
    found += [(GENERATED, COINS, HALF_ONES, f"slack {slack}") for slack in ("1e-4", "1e-2")]
    tilts = [f"off by {tilt}" for tilt in (0.0, 0.02, 0.05, 0.08)]
    found += [(LABEL, *at) for at in cross((COINS,), tilts, tuple(LABEL_RULES)[:4])]
    found += [(LABEL, *at) for at in cross((FIRST,), tilts[2:3], tuple(LABEL_RULES)[4:])]
    small = [f"off by {tilt}, small placebo" for tilt in (0.02, 0.3)]
    found += [(LABEL, *at) for at in cross((COINS,), small, ("Fixed, 100%", "Split"))]
    found += [(RELEASED, OWN, RESPONSE, rule) for rule in ("Fixed, 50%", "Fixed, 100%")]
    for audit, members, scores, rule in found:
        # of a median of splits each one is audited
        number = simulations // 2 if rule == "MultiSplit" and simulations < 2000 else simulations
        yield {
            "audit": audit,
            "members": members,
            "scores": scores,
            "rule": rule,
            "simulations": number,
        }


def cross(
    members: tuple[str, ...] | list[str],
    scores: tuple[str, ...] | list[str],
    rules: tuple[str, ...],
) -> list[tuple[str, str, str]]:
    """Return every combination."""
    return [(member, score, rule) for member in members for score in scores for rule in rules]


@study("validity-attacked", tolerance=1e-6, paper=list(cells(2_000)), live=list(cells(200)))
def attack(
    audit: str, members: str, scores: str, rule: str, simulations: int, rng: np.random.Generator
) -> dict:
    """Repeat one audit and count how often it claims a lower bound that exceeds the truth.

    How often it claims one at all is told, too: who never does is never wrong.
    """
    play = GAMES[audit]
    found = [play(members, scores, rule, rng) for _ in range(simulations)]
    claimed = sum(epsilon is not None for epsilon, _ in found)
    exceeding = sum(epsilon is not None and epsilon > truth for epsilon, truth in found)
    low, high = clopper_pearson(exceeding, simulations)
    return {
        "level": LEVEL,
        "claimed": claimed / simulations,
        "exceeding": exceeding,
        "share": exceeding / simulations,
        "low": low,
        "high": high,
    }
