"""What is asked of a table of scores, or a refusal that says what would do.

Who was trained on has to come from a coin, or its chance has to be known. A file cannot show
either, so it is asked for; without an answer the number is an estimate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from auditkit._types import Bools, Floats
from auditkit.bounds.power import MOST, Setting, flawless, least_without_error
from auditkit.bounds.result import short_of
from auditkit.cli.score_columns import listed
from auditkit.cli.score_files import ScoreTable
from auditkit.coins import Coins
from auditkit.thresholds import TEN, Fixed, MultiSplit, Split, Threshold, counted

COINS = ("one-run", "one-run-fdp", "two-worlds")
GAUSSIAN = ("one-run-fdp", "observational-label", "zero-run")  # two-worlds only on request
NEEDS: Mapping[str, tuple[str, ...]] = {
    "observational-label": ("chosen",),
    "panoramia": ("member", "baseline"),
}
NO_MEMBER = (
    ". Where auditkit coins decided who is in, --coins COINS.json says so; where the scores of "
    "others are in a file of their own, --others FILE names it"
)
OFFER = (
    "Where nobody tossed a coin, zero-run is the method that may speak. It takes the chance that "
    "each example is a member, given the example: put it into a column called propensity (the "
    "package fits it from features: auditkit.attacks.propensity.fit_propensity), or put the "
    "features themselves into columns feature_1, feature_2, … for an estimate, and say "
    "--method zero-run --membership observed. Or train once more, and let a fair coin decide for "
    "each example whether it is in."
)


@dataclass(frozen=True, eq=False)
class Question:
    """A table with the method that will answer, and the two kinds of rows to tell apart.

    Attributes
    ----------
    table : ScoreTable
        The rows that are audited; those of a placebo are apart.
    truth : array of bool
        Membership, or where the label shown is the true one.
    method, family, threshold, delta, confidence
        As in `audit_scores`, all of them settled.
    membership : {"randomised", "fixed-size", "observed"} or None
        How the bit that is guessed came about.
    seed : int
        Of splits and thinning.
    placebo : ScoreTable or None
        The rows of a placebo.
    propensity : array or None
        As given, or fitted here.
    coins : Coins or None
        What decided who is in, with the plan of the audit.
    promise : tuple of float or None
        (ε, δ) or (μ,), to be given a p-value.
    """

    table: ScoreTable
    truth: Bools
    method: str
    family: str | None
    threshold: Threshold
    delta: float
    confidence: float
    membership: str | None
    seed: int
    placebo: ScoreTable | None = None
    propensity: Floats | None = None
    coins: Coins | None = None
    promise: tuple[float, ...] | None = None

    @property
    def rule(self) -> str:
        """The strategy in words."""
        if self.method == "panoramia":
            return "every score, each at its share of the level"
        return repr(self.threshold)


def pose(
    table: ScoreTable,
    method: str = "auto",
    *,
    family: str | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    threshold: Threshold | None = None,
    membership: str | None = None,
    seed: int = 0,
    coins: Coins | None = None,
    promise: tuple[float, ...] | None = None,
) -> Question:
    """Settle what was left open, and refuse what no method can answer."""
    if method == "auto":
        method = _spoken_of(table, membership)
    _refuse_observed(table, membership, method)
    needs = NEEDS.get(method, ("member",))
    if any(getattr(table, name) is None for name in needs):
        missing = [name for name in needs if getattr(table, name) is None]
        raise ValueError(
            f"--method {method} takes a column {' and a column '.join(missing)}; found "
            f"{listed(table.headers)}{NO_MEMBER if 'member' in missing else ''}"
        )
    rule, delta = threshold or usual(method), delta_of(method, delta, family)
    if isinstance(rule, Split | MultiSplit):
        rule = replace(rule, seed=seed)
    family = family or ("approx" if method == "two-worlds" else None)
    truth, placebo = table.member, None
    if method == "observational-label":
        if table.placebo is not None:
            placebo = table.take(table.placebo) if table.placebo.any() else None
            table = table.take(~table.placebo)
        truth = None if table.chosen is None else ~table.chosen
    assert truth is not None
    question = Question(
        table,
        truth,
        method,
        family,
        rule,
        delta,
        confidence,
        membership,
        seed,
        placebo,
        coins=coins,
        promise=promise,
    )
    _refuse_one_kind(question)
    if method == "zero-run":
        question = replace(question, propensity=_propensities(question))
    _refuse_too_few(question)
    return question


def _spoken_of(table: ScoreTable, membership: str | None) -> str:
    """Return the method that the columns speak of."""
    if table.chosen is not None:
        return "observational-label"
    if table.baseline is not None:
        return "panoramia"
    observed = membership == "observed" and table.features is not None
    return "zero-run" if observed or table.propensity is not None else "one-run"


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


def _refuse_observed(table: ScoreTable, membership: str | None, method: str) -> None:
    if membership != "observed":
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
    examples = len(question.truth)
    if question.method == "two-worlds":
        examples = 2 * int(min(question.truth.sum(), (~question.truth).sum()))
    elif question.method == "panoramia":
        examples = 2 * int(question.truth.sum())
    whole = question.method == "panoramia"
    rule = Fixed(guesses=1.0) if whole else question.threshold
    size, part = counted(rule, examples)
    number = rule.number(size) if isinstance(rule, Fixed) else None
    confidence = 1.0 - (1.0 - question.confidence) * part
    setting = Setting(question.method, 1.0, question.family, question.delta, confidence)
    if flawless(setting, size, guesses=number) > 0.0:
        return
    least = least_without_error(setting, rule)
    if least is None:
        raise ValueError(
            f"--method {question.method} shows no ε of 1 by {question.rule} at δ = "
            f"{question.delta:g} with {short_of(100, 100 * question.confidence)}% confidence, with "
            f"{MOST:,} rows or fewer and not even without an error: guess on more, or ask for a "
            "smaller δ or less confidence"
        )
    raise ValueError(
        f"{len(question.truth)} rows are fewer than --method {question.method} can use: "
        f"{size} are counted on, and not even an attack without an error would show ε above 0. "
        f"For ε = 1 without an error it takes {least} rows, for any real attack "
        f"more; see auditkit plan --target-epsilon 1 --method {question.method}"
        + (f" --family {question.family}" if question.family else "")
    )


def _propensities(question: Question) -> Floats:
    """Return the propensities of the table, or such as are fitted on its features."""
    table = question.table
    if table.propensity is not None:
        return table.propensity
    if table.features is None:
        hint = ""
        if question.membership == "randomised":
            hint = " Where a fair coin decided, --method one-run-fdp needs none."
        raise ValueError(f"--method zero-run takes a column propensity. {OFFER}{hint}")
    from auditkit.attacks.propensity import cross_fit

    return cross_fit(table.features, question.truth, rng=question.seed)
