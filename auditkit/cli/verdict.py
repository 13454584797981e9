"""The answer to a question, claiming what it may, and what else would have been stated."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from auditkit import _keyed
from auditkit._types import Floats
from auditkit.bounds.games import OneRunGame, TwoWorldsGame
from auditkit.bounds.observational import observational_label
from auditkit.bounds.one_run import one_run
from auditkit.bounds.one_run_fdp import one_run_fdp
from auditkit.bounds.panoramia import panoramia
from auditkit.bounds.power import best_would_find
from auditkit.bounds.result import Bound, short_of
from auditkit.bounds.scores import FIXED_SIZE, Game, audit, audit_scores, by_coins, limits_of
from auditkit.bounds.two_worlds import two_worlds
from auditkit.bounds.zero_run import ESTIMATED
from auditkit.bounds.zero_run_game import ShiftedScores, ZeroRunGame
from auditkit.cli.question import Question
from auditkit.evidence import Scores
from auditkit.thresholds import (
    TEN,
    Bonferroni,
    Fixed,
    MultiSplit,
    Split,
    Sweep,
    Threshold,
    counted,
)

UNSAID = (
    "Nobody said how {} came about: --membership was not given. Had no coin decided it, the score "
    "may tell the two kinds apart without any leak, so that this number is an estimate."
)
FITTED = "The propensities were fitted here, on the audited examples, each on the other half."


def answer(question: Question) -> Bound:
    """Return the bound, as large a claim as the table and what was said about it allow."""
    table = question.table
    common: Any = {"delta": question.delta, "confidence": question.confidence}
    settled: Any = {"method": question.method, "family": question.family}
    fixed = question.membership == "fixed-size"
    bound: Bound
    if question.method == "observational-label":
        placebo = question.placebo
        bound = observational_label(
            table.score,
            ~question.truth,
            placebo_scores=None if placebo is None else placebo.score,
            placebo_chosen=None if placebo is None else placebo.chosen,
            threshold=question.threshold,
            **common,
        )
    elif question.method == "panoramia":
        assert table.baseline is not None
        bound = panoramia(table.baseline, table.score, question.truth, **common)
    elif question.method == "zero-run":
        bound = audit(*game_of(question), question.threshold, question.confidence)
        if table.propensity is None:
            stated = (*bound.assumptions, FITTED, ESTIMATED)
            bound = replace(bound, claim="estimate", assumptions=stated)
    else:
        bound = audit_scores(
            table.score,
            question.truth,
            threshold=question.threshold,
            fixed_size=fixed,
            **common,
            **settled,
        )
    if question.coins is not None:
        asked: Any = {name: getattr(question, name) for name in question.coins.plan}
        bound = by_coins(bound, question.coins, asked)
    told = []
    if fixed and question.method in ("observational-label", "zero-run"):
        told.append(FIXED_SIZE)
    if question.membership is None and question.method != "panoramia":
        label = question.method == "observational-label"
        told.append(UNSAID.format("the bit that is guessed" if label else "membership"))
    if told:
        return replace(bound, claim="estimate", assumptions=(*bound.assumptions, *told))
    return bound


def game_of(question: Question) -> tuple[Game, Scores]:
    """Return the game that a method plays, and what it is played with."""
    score, truth, delta = question.table.score, question.truth, question.delta
    if question.method == "two-worlds":
        return TwoWorldsGame(limits_of(question.family), delta), Scores(score, truth)
    if question.propensity is None or question.method != "zero-run":
        theorem = one_run if question.method == "one-run" else one_run_fdp
        by_size = question.method == "observational-label"
        game = OneRunGame(partial(theorem, delta=delta), by_size=by_size)
        return game, Scores(score, truth)
    from auditkit.attacks.membership import posterior_log_odds

    # sums depend on the order of the rows in their last digits, and a file may have any
    order = _keyed.canonical(score, truth, question.propensity)
    score, truth, chances = score[order], truth[order], question.propensity[order]
    evidence = posterior_log_odds(score, np.log(chances) - np.log1p(-chances))
    return ZeroRunGame(delta, question.seed), ShiftedScores(score, truth, chances, evidence)


def proved(
    question: Question, counts: Mapping[str, Any], *, delta: float, confidence: float
) -> Floats:
    """Return ε for counts of guesses, one for each where they are arrays."""
    level: Any = {"delta": delta, "confidence": confidence}
    if question.method == "two-worlds":
        names = ("false_positives", "negatives", "false_negatives", "positives")
        errors: Any = (counts[name] for name in names)
        bound = two_worlds(*errors, method=limits_of(question.family), **level)
    else:
        right = counts["kept"] if question.method == "zero-run" else counts["correct"]
        theorem = one_run if question.method == "one-run" else one_run_fdp
        bound = theorem(right, counts["guesses"], counts["examples"], **level)
    return np.asarray(bound.epsilon)


def all_right(question: Question, counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of the same guesses, had every one of them been right."""
    if question.method == "two-worlds":
        return {**counts, "false_positives": 0, "false_negatives": 0}
    if question.method == "zero-run":
        return {**counts, "kept": counts["kept_at_most"]}
    return {**counts, "correct": counts["guesses"]}


def restated(
    question: Question,
    counts: Mapping[str, Any],
    *,
    delta: float | None = None,
    confidence: float | None = None,
) -> float:
    """Return ε for the counts of a bound at another δ or confidence, the guesses unchanged."""
    delta = question.delta if delta is None else delta
    confidence = question.confidence if confidence is None else confidence
    if question.method == "panoramia":
        table = question.table
        assert table.baseline is not None
        level: Any = {"delta": delta, "confidence": confidence}
        return float(panoramia(table.baseline, table.score, question.truth, **level).epsilon)
    part = counted(question.threshold, 2)[1]
    if isinstance(question.threshold, Bonferroni):
        part = 1.0 / int(counts["candidates"])  # of few rows there are fewer than asked for
    each = 1.0 - (1.0 - confidence) * part
    return float(proved(question, counts, delta=delta, confidence=each))


def ceiling(question: Question, bound: Bound) -> float:
    """Return what the same guesses would have shown, had every one of them been right."""
    if question.method == "panoramia":
        return float(bound.details["ceiling"])
    return restated(question, all_right(question, bound.details))


def could_find(
    question: Question, bound: Bound, true_epsilons: list[float]
) -> list[tuple[float, float]]:
    """Return pairs of a true ε and what the best attack on it would have shown in 80% of audits.

    Nothing where the counts are thinned or compared with a baseline, and for a sweep.
    """
    if question.method in ("zero-run", "panoramia") or bound.confidence is None:
        return []
    return [(true, best_would_find(bound, true)) for true in true_epsilons]


def sensitivity(question: Question, bound: Bound) -> list[tuple[str, str, float | None, str]]:
    """Return what else would have been stated: what was changed, to what, ε and the claim.

    There is no ε where the table is too small for a rule.
    """
    rows: list[tuple[str, str, float | None, str]] = []
    for confidence in sorted({0.9, 0.95, 0.99, question.confidence}):
        value = restated(question, bound.details, confidence=confidence)
        rows.append(("confidence", short_of(1, confidence), value, bound.claim))
    for delta in sorted({1e-7, 1e-6, 1e-5, 1e-4, question.delta}):
        rows.append(
            ("δ", f"{delta:g}", restated(question, bound.details, delta=delta), bound.claim)
        )
    rows.append(("threshold rule", f"{question.rule} (used)", _one(bound), bound.claim))
    for rule in _other_rules(question):
        try:
            other = answer(replace(question, threshold=rule))
        except ValueError:
            rows.append(("threshold rule", repr(rule), None, "cannot be used on these rows"))
            continue
        rows.append(("threshold rule", repr(rule), _one(other), other.claim))
    return rows


def _other_rules(question: Question) -> list[Threshold]:
    if question.method == "panoramia":
        return []
    seed = question.seed
    rules: list[Threshold] = [TEN, Split(0.5, seed=seed)]
    if question.method == "observational-label":
        rules += [Fixed(guesses=0.1)]
    if question.method != "zero-run" and len(question.truth) <= 200_000:
        rules += [Split(0.2, seed=seed), MultiSplit(5, seed=seed), Sweep()]
    return [rule for rule in rules if rule != question.threshold]


def _one(bound: Bound) -> float:
    return float(np.asarray(bound.epsilon))
