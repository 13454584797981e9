"""What should be known of a table before its bound is believed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfc

from auditkit._types import Floats
from auditkit.bounds.propensity import PropensityTest
from auditkit.bounds.scores import DOUBT
from auditkit.bounds.shift_corrections import shift_of
from auditkit.cli.audit import as_promised
from auditkit.cli.question import Question
from auditkit.cli.score_columns import listed
from auditkit.cli.score_files import BY_FILE
from auditkit.coins import Coins
from auditkit.evidence import Scores

UNEVEN = 1e-3  # what a fair coin brings about less often than this is told
SHIFTING = ("one-run", "one-run-fdp", "zero-run")  # methods that a shift would deceive


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        What was looked at, as a program would call it.
    what : str
        The same in words.
    value : number, str or None
        What was found; None where it could not be looked at.
    says : str
        What that means.
    alarming : bool
        Whether the reader has to know before all else.
    level : float or None
        Of a test: how often it alarms where nothing is wrong, at most.
    """

    name: str
    what: str
    value: Any
    says: str
    alarming: bool = False
    level: float | None = None


def diagnose(question: Question) -> tuple[list[Finding], PropensityTest | None]:
    """Return what was found, and the test of whether features betray membership."""
    features, test = question.table.features, None
    if features is not None and question.method in SHIFTING:
        from auditkit.attacks.shift import shift_test

        test = shift_test(
            features, question.truth, propensity=question.propensity, rng=question.seed
        )
    findings = [*_balance(question), *_repeats(question), _order(question), _shift(question, test)]
    if question.propensity is not None:
        findings += _overlap(question.propensity)
    if question.coins is not None:
        findings.append(_plan(question.coins, question))
    return findings, test


def _plan(coins: Coins, question: Question) -> Finding:
    asked: Any = {name: getattr(question, name) for name in coins.plan}
    changes = list(coins.changes(asked))
    if question.promise is not None and question.promise != coins.promise:
        planned = "none" if coins.promise is None else as_promised(coins.promise)
        changes.append(f"promise is {as_promised(question.promise)}, planned was {planned}")
    found = "changed since" if changes else "planned before training"
    says = "; ".join(changes) or "method, rule, δ and confidence are those kept with the coins"
    says += (
        f"; tossed {coins.tossed} by the file's own word; that the file was not edited since is "
        "shown by its SHA-256, if that was published before training"
    )
    return Finding("plan", "plan", found, says, alarming=bool(changes))


def _balance(question: Question) -> list[Finding]:
    rows, members = len(question.truth), int(question.truth.sum())
    far = abs(2 * members - rows) / np.sqrt(rows)
    likely = float(erfc(far / np.sqrt(2.0)))
    coins = question.method in ("one-run", "one-run-fdp", "observational-label")
    says = f"a fair coin is as uneven as this with probability {likely:.2g}"
    names = ("members", "non-members")
    if question.method == "observational-label":
        names = ("training labels", "generated labels")
    says += "" if coins else "; this method does not ask for one"
    return [
        Finding("rows", "rows audited", rows, "placebo rows are not among them"),
        Finding("members", names[0], members, f"{100.0 * members / rows:.1f}% of the rows"),
        Finding(
            "imbalance_p_value",
            "imbalance, p-value",
            likely,
            says,
            coins and likely < UNEVEN,
            UNEVEN if coins else None,
        ),
    ]


def _repeats(question: Question) -> list[Finding]:
    table = question.table
    _, times = np.unique(table.score, return_counts=True)
    tied = int(times[times > 1].sum())
    ids = "none repeats" if table.id is not None else "there is no column id: repeats go unseen"
    says = (
        f"{100.0 * tied / len(table):.1f}% of the rows share a score with another, "
        f"{int(times.max())} the same one at most; ties are guessed in an order drawn from all "
        "scores together"
    )
    findings = [
        Finding("ids", "ids", "unique" if table.id is not None else None, ids),
        Finding("tied_scores", "tied scores", tied, says, tied > len(table) / 2),
    ]
    if question.method in SHIFTING[:2] or question.method == "two-worlds":
        likely = Scores(table.score, question.truth).repeated()
        says = "tied rows agree in membership as they do with this chance at most"
        low = likely < DOUBT
        findings.append(
            Finding("repeats_p_value", "repeated rows, p-value", likely, says, low, DOUBT)
        )
    if table.features is not None:
        import pandas as pd

        # -0.0 is 0.0, though its bits are others
        rows = pd.util.hash_pandas_object(pd.DataFrame(table.features + 0.0), index=False)
        groups = pd.Series(question.truth).groupby(rows.to_numpy()).agg(["size", "mean"])
        twins, both = len(table) - len(groups), int(groups["mean"].between(0, 1, "neither").sum())
        says = "no row has the features of an earlier one"
        if twins:
            says = (
                f"{twins} of {len(table)} rows have the features of an earlier one, and {both} "
                "groups of such twins hold both kinds; if the features are the whole example, one "
                "whose twin was trained on is no clean non-member, and a copy is no second coin"
            )
        findings.append(
            Finding("repeated_features", "repeated examples", twins, says, alarming=twins > 0)
        )
    return findings


def _order(question: Question) -> Finding:
    value = Scores(question.table.score, question.truth).area()
    low, perfect = value < 0.45, value > 0.999
    says = f"a member's score is above a non-member's with chance {value:.4g}, by luck with 0.5"
    swapped = low and question.table.used.get("member") == BY_FILE
    if low:
        says += "; below it the score may be a loss, whose sign --column score=-NAME turns"
    if swapped:
        says += (
            "; or the two files are the wrong way round: the first has to hold the scores of "
            "members, and --others those of the others"
        )
    if perfect:
        says += (
            "; so clear a score is right where canaries were learnt by heart, and wrong where it "
            "was made from the membership that it is to guess"
        )
    # where the bound itself takes notice of a score that is turned round, once is enough
    alarming = perfect or swapped or (low and question.method == "panoramia")
    return Finding("auc", "area under the ROC curve", value, says, alarming=alarming)


def _shift(question: Question, test: PropensityTest | None) -> Finding:
    what = "shift between members and non-members"
    if test is None:
        why = "this method does not ask for it"
        if question.method in SHIFTING:
            why = "no column name begins with “feature”, so it goes unseen"
            if question.table.unused:
                why += f"; not used: {listed(question.table.unused)}; a feature under another name "
                why += "is named by --column feature=NAME"
            if question.table.features is not None:
                why = "the half to fit on holds one kind only"
        return Finding("shift_p_value", what, None, why)
    than = "the propensities allow" if question.propensity is not None else "a fair coin allows"
    found = f"{test.correct} of {test.guesses} guesses from the features alone were right, "
    found += f"{'more' if test.rejected else 'not more'} than {than}"
    told = f"{what}, p-value"
    return Finding("shift_p_value", told, test.p_value, found, test.rejected, test.level)


def _overlap(propensity: Floats) -> list[Finding]:
    kept = float(np.exp(-shift_of(propensity)).mean())
    ends = [float(propensity.min()), float(propensity.max())]
    chance = "the least and the largest chance of being a member, given the example"
    share = (
        "the share of correct guesses that the correction leaves, were all examples guessed on; "
        "near 0 members and non-members hardly overlap and nothing can be shown"
    )
    return [
        Finding("propensity_range", "propensities", ends, chance),
        Finding("propensity_kept", "overlap", kept, share, alarming=kept < 0.2),
    ]
