"""From a table of scores to a bound that claims what it may, or a refusal that says what would do.

Who was trained on has to come from a coin, or its chance has to be known. A file cannot show
either, so it is asked for; without an answer the number is an estimate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditkit import _keyed
from auditkit.bounds.observational import observational_label
from auditkit.bounds.one_run import one_run, one_run_fdp
from auditkit.bounds.panoramia import panoramia, panoramia_ceiling
from auditkit.bounds.result import Bound, short_of
from auditkit.bounds.scores import FIXED_SIZE, TEN, UNSEEN, audit_scores, doubted, limits_of
from auditkit.bounds.shift_corrections import games_of, shift_of
from auditkit.bounds.two_worlds import two_worlds
from auditkit.bounds.zero_run import ESTIMATED, zero_run
from auditkit.cli.methods import GAUSSIAN, NEEDS
from auditkit.cli.score_files import Bits, Floats, ScoreTable, listed
from auditkit.evidence import Scores
from auditkit.thresholds import Bonferroni, Fixed, MultiSplit, Split, Sweep, Threshold

COINS = ("one-run", "one-run-fdp", "two-worlds")
SHARES = np.geomspace(1.0, 0.01, 20)  # of guesses, that a zero-run audit chooses from

UNSAID = (
    "Nobody said how {} came about: --membership was not given. Had no coin decided it, the score "
    "may tell the two kinds apart without any leak, so that this number is an estimate."
)
OFFER = (
    "Where nobody tossed a coin, zero-run is the method that may speak. It takes the chance that "
    "each example is a member, given the example: put it into a column called propensity (the "
    "package fits it from features: auditkit.attacks.propensity.fit_propensity), or put the "
    "features themselves into columns feature_1, feature_2, … for an estimate, and say "
    "--method zero-run --membership observed. Or train once more, and let a fair coin decide for "
    "each example whether it is in."
)
FITTED = "The propensities were fitted here, on the audited examples, each on the other half."


@dataclass(frozen=True)
class Request:
    """What is asked of a table.

    Attributes
    ----------
    method : str
        One of `auditkit.cli.methods.METHODS`, or "auto".
    family : str or None
        As in `audit_scores`.
    delta : float or None
        As in `audit_scores`; None for what the package takes for the method.
    confidence : float
        As in `audit_scores`.
    threshold : Threshold or None
        How guesses are chosen; None for what suits the method.
    membership : {"randomised", "fixed-size", "observed"} or None
        How the bit that is guessed came about.
    seed : int
        Of splits and thinning.
    """

    method: str = "auto"
    family: str | None = None
    delta: float | None = None
    confidence: float = 0.95
    threshold: Threshold | None = None
    membership: str | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Question:
    """A table with the method that will answer, and the two kinds of rows to tell apart.

    Attributes
    ----------
    table : ScoreTable
        The rows that are audited; those of a placebo are apart.
    truth : array of bool
        Membership, or where the label shown is the true one.
    request : Request
        With method and threshold settled.
    propensity : array or None
        As given, or fitted here.
    placebo : ScoreTable or None
        The rows of a placebo.
    """

    table: ScoreTable
    truth: Bits
    request: Request
    propensity: Floats | None = None
    placebo: ScoreTable | None = None

    @property
    def method(self) -> str:
        """The method that answers."""
        return self.request.method

    @property
    def threshold(self) -> Threshold:
        """The strategy for guesses."""
        assert self.request.threshold is not None
        return self.request.threshold

    @property
    def delta(self) -> float:
        """The δ of ε."""
        assert self.request.delta is not None
        return self.request.delta

    @property
    def rule(self) -> str:
        """The strategy in words."""
        if self.method == "panoramia":
            return "every score, each at its share of the level"
        return repr(self.threshold)


def pose(table: ScoreTable, request: Request) -> Question:
    """Settle method and threshold, and refuse what no method can answer."""
    method = _method(table, request)
    _refuse_observed(table, request, method)
    missing = [name for name in NEEDS[method] if getattr(table, name) is None]
    if missing:
        raise ValueError(
            f"--method {method} takes a column {' and a column '.join(missing)}; found "
            f"{listed(table.headers)}"
        )
    asked = request.threshold or usual(method)
    if isinstance(asked, Split | MultiSplit):
        asked = replace(asked, seed=request.seed)
    delta = delta_of(method, request.delta, request.family)
    family = request.family or ("approx" if method == "two-worlds" else None)
    request = replace(request, method=method, family=family, threshold=asked, delta=delta)
    if method == "observational-label":
        question = _label_question(table, request)
    else:
        assert table.member is not None
        question = Question(table, table.member, request)
    _refuse_one_kind(question)
    if method == "zero-run":
        question = replace(question, propensity=_propensities(question))
    _refuse_too_few(question)
    return question


def answer(question: Question) -> Bound:
    """Return the bound, as large a claim as the table and what was said about it allow."""
    table, request = question.table, question.request
    common: Any = {"delta": question.delta, "confidence": request.confidence}
    fixed = request.membership == "fixed-size"
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
        bound = _zero_run(question)
    else:
        bound = audit_scores(
            table.score,
            question.truth,
            method=question.method,
            family=request.family,
            threshold=question.threshold,
            fixed_size=fixed,
            **common,
        )
    if fixed and question.method in ("observational-label", "zero-run"):
        bound = replace(bound, claim="estimate", assumptions=(*bound.assumptions, FIXED_SIZE))
    if request.membership is None and question.method != "panoramia":
        bit = (
            "the bit that is guessed"
            if question.method == "observational-label"
            else ("membership")
        )
        bound = replace(
            bound, claim="estimate", assumptions=(*bound.assumptions, UNSAID.format(bit))
        )
    return bound


def restated(
    question: Question, bound: Bound, *, delta: float | None = None, confidence: float | None = None
) -> float:
    """Return ε for the counts of a bound at another δ or confidence, the guesses unchanged."""
    delta = question.delta if delta is None else delta
    confidence = question.request.confidence if confidence is None else confidence
    if question.method == "panoramia":
        assert question.table.baseline is not None
        again = panoramia(
            question.table.baseline,
            question.table.score,
            question.truth,
            delta=delta,
            confidence=confidence,
        )
        return float(again.epsilon)
    counts = bound.details
    each = 1.0 - (1.0 - confidence) * _part_of_level(question, bound)
    if question.method == "two-worlds":
        names = ("false_positives", "negatives", "false_negatives", "positives")
        found = two_worlds(
            *(counts[name] for name in names),
            method=limits_of(question.request.family),
            delta=delta,
            confidence=each,
        )
    else:
        right = counts["kept"] if question.method == "zero-run" else counts["correct"]
        theorem = one_run if question.method == "one-run" else one_run_fdp
        found = theorem(right, counts["guesses"], counts["examples"], delta=delta, confidence=each)
    return float(found.epsilon)


def ceiling(question: Question, bound: Bound) -> float:
    """Return what the same guesses would have shown, had every one of them been right."""
    if question.method == "panoramia":
        return float(bound.details["ceiling"])
    counts = dict(bound.details)
    if question.method == "two-worlds":
        counts |= {"false_positives": 0, "false_negatives": 0}
    elif question.method == "zero-run":
        counts |= {"kept": counts["kept_at_most"]}
    else:
        counts |= {"correct": counts["guesses"]}
    return restated(question, replace(bound, details=counts))


def flawless(
    method: str,
    examples: int,
    *,
    family: str | None = None,
    delta: float,
    confidence: float,
    guesses: int | None = None,
    kept: float = 1.0,
) -> float:
    """Return the bound of an attack without an error: nothing shows more with so few examples.

    Of its guesses a share `kept` is counted, as where zero runs are thinned.
    """
    if examples < 1:
        return 0.0
    if method == "panoramia":
        return panoramia_ceiling(examples, confidence)
    if method == "two-worlds":
        runs = examples // 2
        clean = two_worlds(
            0, runs, 0, runs, method=limits_of(family), delta=delta, confidence=confidence
        )
        return float(clean.epsilon)
    theorem = one_run if method == "one-run" else one_run_fdp
    number = examples if guesses is None else min(guesses, examples)
    right = int(kept * number)
    found = theorem(right, number, examples, delta=delta, confidence=confidence)
    return float(found.epsilon)


def counted(threshold: Threshold, examples: int) -> tuple[int, float]:
    """Return how many of the examples a strategy counts on, and its part of the level."""
    if isinstance(threshold, Split):
        return examples - round(threshold.fraction * examples), 1.0
    if isinstance(threshold, MultiSplit):
        return examples - round(threshold.fraction * examples), 0.5
    if isinstance(threshold, Bonferroni):
        rules = threshold.candidates
        return examples, 1.0 / (len(rules) if isinstance(rules, tuple) else rules)
    return examples, 1.0


def _part_of_level(question: Question, bound: Bound) -> float:
    if question.method == "zero-run":
        return 1.0 / int(bound.details["rules"])
    if isinstance(question.threshold, Bonferroni):
        return 1.0 / int(bound.details["candidates"])
    return counted(question.threshold, 2)[1]


def _method(table: ScoreTable, request: Request) -> str:
    """Return the method asked for, or the one that the columns speak of."""
    if request.method != "auto":
        return request.method
    if table.chosen is not None:
        return "observational-label"
    if table.baseline is not None:
        return "panoramia"
    known = table.propensity is not None
    if known or (request.membership == "observed" and table.features is not None):
        return "zero-run"
    return "one-run"


def delta_of(method: str, asked: float | None, family: str | None = None) -> float:
    """Return the δ asked for, or the one that the package takes for a method."""
    if asked == 0.0 and (method in GAUSSIAN or family == "gaussian"):
        said = f"--method {method}" + (f" --family {family}" if family else "")
        other = "--family approx" if family else "one-run"
        raise ValueError(
            f"{said} takes a δ above 0: a Gaussian mechanism that leaks at all has no finite ε at "
            f"δ = 0. Where δ has to be 0 and a coin decided, {other} answers"
        )
    if asked is None:
        return 0.0 if method == "panoramia" else 1e-5
    return asked


def usual(method: str) -> Threshold:
    """Return how guesses are chosen where nobody says how."""
    return Fixed(guesses=0.01) if method == "observational-label" else TEN


def _refuse_observed(table: ScoreTable, request: Request, method: str) -> None:
    if request.membership != "observed":
        return
    if method == "observational-label":
        raise ValueError(
            "with --method observational-label the bit that is guessed is the column chosen, not "
            "membership, and the method asks for a coin that was tossed for it: say --membership "
            "randomised if one was"
        )
    if method not in COINS:
        return
    why = f"The method {method} proves nothing where membership was observed and not randomised."
    if table.propensity is not None or table.features is not None:
        raise ValueError(f"{why} This file has what zero-run takes: say --method zero-run.")
    raise ValueError(f"{why} {OFFER}")


def _refuse_one_kind(question: Question) -> None:
    score, truth = question.table.score, question.truth
    if score.size == 0:
        raise ValueError("every row is a placebo: there is nothing to audit")
    if truth.all() or not truth.any():
        what = "chosen" if question.method == "observational-label" else "member"
        same = truth[0] == (what == "member")
        raise ValueError(
            f"{what} is {int(same)} in every row: an attack has to tell two kinds apart, so both "
            "have to be there"
        )
    if score.min() == score.max():
        raise ValueError(
            f"the score is {score[0]:g} in every row: scores that tell no row from another prove "
            "nothing about any ε"
        )


def _refuse_too_few(question: Question) -> None:
    """Refuse a table so small that an attack without an error would prove nothing."""
    request = question.request
    examples = len(question.truth)
    if question.method == "two-worlds":
        examples = 2 * int(min(question.truth.sum(), (~question.truth).sum()))
    elif question.method == "panoramia":
        examples = 2 * int(question.truth.sum())
    size, part = (
        (examples, 1.0)
        if question.method == "panoramia"
        else (counted(question.threshold, examples))
    )
    rule = question.threshold
    number = None
    if isinstance(rule, Fixed) and rule.guesses is not None:
        number = rule.number(size)
    confidence = 1.0 - (1.0 - request.confidence) * part
    best = partial(
        flawless,
        question.method,
        family=request.family,
        delta=question.delta,
        confidence=confidence,
    )
    if best(size, guesses=number) > 0.0:
        return
    least = _least(best, rule, 1.0)
    if least is None:
        raise ValueError(
            f"--method {question.method} shows no ε of 1 by {question.rule} at δ = "
            f"{question.delta:g} with {short_of(100, 100 * request.confidence)}% confidence, with "
            "however many rows and not even without an error: guess on more, or ask for a smaller "
            "δ or less confidence"
        )
    raise ValueError(
        f"{len(question.truth)} rows are fewer than --method {question.method} can use: "
        f"{size} are counted on, and not even an attack without an error would show ε above 0. "
        f"For ε = 1 without an error it takes {least} rows, for any real attack "
        f"more; see auditkit plan --target-epsilon 1 --method {question.method}"
        + (f" --family {request.family}" if request.family else "")
    )


def _least(best: Callable[..., float], rule: Threshold, target: float) -> int | None:
    """Return the least number of rows at which an attack without an error shows `target`.

    There may be none: with few guesses, or where δ is large for the confidence.
    """

    def enough(rows: int) -> bool:
        size = counted(rule, rows)[0]
        number = None
        if isinstance(rule, Fixed) and rule.guesses is not None:
            if isinstance(rule.guesses, int) and rule.guesses > size:
                return False
            number = rule.number(size)
        return best(size, guesses=number) >= target

    high = 2
    while not enough(high):
        high *= 2
        if high > 1 << 26:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _label_question(table: ScoreTable, request: Request) -> Question:
    assert table.chosen is not None
    if table.placebo is None:
        return Question(table, ~table.chosen, request)
    audited, placebo = _rows(table, ~table.placebo), _rows(table, table.placebo)
    assert audited.chosen is not None
    return Question(audited, ~audited.chosen, request, placebo=placebo if len(placebo) else None)


def _rows(table: ScoreTable, where: NDArray[Any]) -> ScoreTable:
    """Return some rows of a table, in the order given."""
    names = ("score", "member", "id", "propensity", "baseline", "chosen", "placebo", "features")
    taken: dict[str, Any] = {
        name: None if getattr(table, name) is None else getattr(table, name)[where]
        for name in names
    }
    return replace(table, **taken)


# Zero runs


def _propensities(question: Question) -> Floats:
    """Return the propensities of the table, or such as are fitted on its features."""
    table, request = question.table, question.request
    if table.propensity is not None:
        return table.propensity
    if table.features is None:
        hint = ""
        if request.membership == "randomised":
            hint = " Where a fair coin decided, --method one-run-fdp needs none."
        raise ValueError(f"--method zero-run takes a column propensity. {OFFER}{hint}")
    from auditkit.attacks.propensity import cross_fit

    return cross_fit(table.features, question.truth, rng=chance(question, "halves"))


def _zero_run(question: Question) -> Bound:
    """Guess where a correct guess is worth most, and correct for the propensities."""
    request, rule = question.request, question.threshold
    scores, members, propensity = shuffled(question)
    evidence = Scores(evidence_of(scores, propensity), members)
    noted: dict[str, Any] = {"threshold": repr(rule)}
    if isinstance(rule, Split):
        if rule.rule != "best":
            raise ValueError(f"--threshold must choose the best share with zero-run, got {rule!r}")
        cut = round(rule.fraction * members.size)
        first, second = np.split(np.arange(members.size), [cut])  # the rows are shuffled
        shares = [Fixed(guesses=share) for share in SHARES.tolist()]
        tried = _bound_of(scores, members, propensity, first, shares, request)
        best = shares[tried.details["rule"]]
        bound = _bound_of(scores, members, propensity, second, [best], request)
        noted |= {"chosen_on": cut, "candidates": len(shares)}
    else:
        if isinstance(rule, Fixed):
            rules = [rule]
        elif isinstance(rule, Bonferroni):
            given = rule.candidates
            if not isinstance(given, tuple):
                shares = np.geomspace(1.0, 0.01, given).tolist()
                given = tuple(Fixed(guesses=share) for share in shares)
            rules = list(given)
        else:
            raise ValueError(f"--threshold must be fixed, a split or bonferroni, got {rule!r}")
        everything = np.arange(members.size)
        bound = _bound_of(scores, members, propensity, everything, rules, request)
    assumptions = (*bound.assumptions, *([UNSEEN] if isinstance(rule, Fixed) else []))
    bound = replace(bound, assumptions=assumptions, details={**bound.details, **noted})
    if question.table.propensity is None:
        bound = replace(bound, claim="estimate", assumptions=(*assumptions, FITTED, ESTIMATED))
    return doubted(bound, evidence)


def _bound_of(
    scores: Floats,
    members: Bits,
    propensity: Floats,
    where: NDArray[np.int64],
    rules: list[Fixed],
    request: Request,
) -> Bound:
    """Return the best of some rules on some rows, each at its share of the level."""
    assert request.delta is not None
    chances = propensity[where]
    guesses = guesses_on(scores[where], chances, rules)
    settings: Any = {"delta": request.delta, "confidence": request.confidence, "rng": request.seed}
    bound = zero_run(guesses, members[where], chances, **settings)
    most = kept_at_most(guesses, members[where], chances, request.seed)[bound.details["rule"]]
    return replace(bound, details={**bound.details, "kept_at_most": most})


def kept_at_most(
    guesses: NDArray[np.int64], members: Bits, propensity: Floats, seed: int
) -> list[int]:
    """Return how many of each row's guesses the thinning keeps, had every one been right."""
    games, _ = games_of(guesses, members, propensity, seed)
    keep = np.exp(-shift_of(propensity))
    return [int((game.guessed & (game.draws < keep)).sum()) for game in games]


def chance(question: Question, use: str) -> np.random.Generator:
    """Return randomness for a use of the features, which no seed can make depend on membership."""
    assert question.table.features is not None
    data = (question.table.features, question.truth)
    return _keyed.generator(_keyed.key_of(*data, rng=question.request.seed), use)


def guesses_on(scores: Floats, propensity: Floats, rules: Sequence[Fixed]) -> NDArray[np.int64]:
    """Guess where a correct guess, times its chance to be kept, is worth most; a row a rule."""
    from auditkit.attacks.membership import top_guesses

    evidence = evidence_of(scores, propensity)
    worth = np.abs(evidence) * np.exp(-shift_of(propensity))
    numbers = [1 if rule.threshold is not None else rule.number(scores.size) for rule in rules]
    guesses: NDArray[np.int64] = top_guesses(evidence, numbers, worth=worth)
    for row, rule in zip(guesses, rules, strict=True):
        if rule.threshold is not None:
            row[:] = np.where(scores >= rule.threshold, 1, -1)
    return guesses


def evidence_of(scores: Floats, propensity: Floats) -> Floats:
    """Return the log-odds of membership that score and propensity make together."""
    from auditkit.attacks.membership import posterior_log_odds

    return posterior_log_odds(scores, np.log(propensity) - np.log1p(-propensity))


def shuffled(question: Question) -> tuple[Floats, Bits, Floats]:
    """Return scores, members and propensities in an order that knows of none of them.

    A file may be sorted by membership, and neither ties nor splits must go by that; a seed may be
    the one that membership was drawn by. See `auditkit._keyed` for why this order is safe.
    """
    assert question.propensity is not None
    rows = (question.table.score, question.truth, question.propensity)
    canonical = _keyed.canonical(*rows)
    key = _keyed.key_of(*(column[canonical] for column in rows), rng=question.request.seed)
    order = canonical[_keyed.generator(key, "rows").permutation(canonical.size)]
    return question.table.score[order], question.truth[order], question.propensity[order]


def sensitivity(question: Question, bound: Bound) -> list[tuple[str, str, float | None, str]]:
    """Return what else would have been stated: what was changed, to what, ε and the claim.

    There is no ε where the table is too small for a rule.
    """
    request = question.request
    rows: list[tuple[str, str, float | None, str]] = []
    for confidence in sorted({0.9, 0.95, 0.99, request.confidence}):
        value = restated(question, bound, confidence=confidence)
        rows.append(("confidence", short_of(1, confidence), value, bound.claim))
    for delta in sorted({1e-7, 1e-6, 1e-5, 1e-4, question.delta}):
        rows.append(("δ", f"{delta:g}", restated(question, bound, delta=delta), bound.claim))
    rows.append(("threshold rule", f"{question.rule} (used)", _one(bound), bound.claim))
    for rule in _other_rules(question):
        try:
            other = answer(replace(question, request=replace(request, threshold=rule)))
        except ValueError:
            rows.append(("threshold rule", repr(rule), None, "cannot be used on these rows"))
            continue
        rows.append(("threshold rule", repr(rule), _one(other), other.claim))
    return rows


def _other_rules(question: Question) -> list[Threshold]:
    if question.method == "panoramia":
        return []
    seed = question.request.seed
    rules: list[Threshold] = [TEN, Split(0.5, seed=seed)]
    if question.method == "observational-label":
        rules += [Fixed(guesses=0.1)]
    if question.method != "zero-run" and len(question.truth) <= 200_000:
        rules += [Split(0.2, seed=seed), MultiSplit(5, seed=seed), Sweep()]
    return [rule for rule in rules if rule != question.threshold]


def _one(bound: Bound) -> float:
    return float(np.asarray(bound.epsilon))
