"""What should be known of a table before its bound is believed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfc

from auditkit.bounds.propensity import PropensityTest, reject_propensity
from auditkit.cli.score_files import Floats, listed
from auditkit.cli.verdict import Question, chance
from auditkit.evidence import Scores

MOST_FITTED = 50_000  # rows that the shift test looks at
MOST_COMPARED = 200_000  # rows whose features are compared with one another
SHIFT_CONFIDENCE = 0.999  # a right coin is doubted once in a thousand audits


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
    """

    name: str
    what: str
    value: Any
    says: str
    alarming: bool = False


def diagnose(question: Question) -> tuple[list[Finding], PropensityTest | None]:
    """Return what was found, and the test of whether features betray membership."""
    findings = [*_balance(question), *_repeats(question), _order(question)]
    test = shift_test(question)
    findings.append(_shift(question, test))
    if question.propensity is not None:
        findings += _overlap(question.propensity)
    return findings, test


def shift_test(question: Question) -> PropensityTest | None:
    """Try to guess membership from the features alone, on the half not fitted on.

    Who can do so better than the propensities allow, or than a fair coin where there are none, has
    shown that the audit's premise is false.
    """
    features = question.table.features
    if features is None or question.method not in ("one-run", "one-run-fdp", "zero-run"):
        return None
    from auditkit.attacks.propensity import fit_propensity

    rng = chance(question, "gate")
    order = rng.permutation(len(question.truth))[:MOST_FITTED]
    first, second = order[: order.size // 2], order[order.size // 2 :]
    if len(set(question.truth[first].tolist())) < 2:
        return None
    rival = fit_propensity(features[first], question.truth[first], rng=rng)
    seen = rival.log_odds(features[second])
    said = np.full(len(question.truth), 0.5)
    if question.propensity is not None:
        said = question.propensity
    return reject_propensity(
        np.where(seen > 0.0, 1, -1),
        question.truth[second],
        said[second],
        confidence=SHIFT_CONFIDENCE,
        rng=rng,
    )


def _balance(question: Question) -> list[Finding]:
    rows, members = len(question.truth), int(question.truth.sum())
    far = abs(2 * members - rows) / np.sqrt(rows)
    likely = float(erfc(far / np.sqrt(2.0)))
    coins = question.method in ("one-run", "one-run-fdp", "observational-label")
    says = f"a fair coin is as uneven as this with probability {likely:.2g}"
    names = ("members", "non-members")
    if question.method == "observational-label":
        names = ("training labels", "generated labels")
    return [
        Finding("rows", "rows audited", rows, "placebo rows are not among them"),
        Finding("members", names[0], members, f"{100.0 * members / rows:.1f}% of the rows"),
        Finding(
            "imbalance_p_value",
            "imbalance",
            likely,
            says if coins else f"{says}; this method does not ask for one",
            alarming=coins and likely < 1e-3,
        ),
    ]


def _repeats(question: Question) -> list[Finding]:
    table = question.table
    _, times = np.unique(table.score, return_counts=True)
    tied = int(times[times > 1].sum())
    ids = "none repeats" if table.id is not None else "there is no column id: repeats go unseen"
    findings = [
        Finding("ids", "ids", "unique" if table.id is not None else None, ids),
        Finding(
            "tied_scores",
            "tied scores",
            tied,
            f"{100.0 * tied / len(table):.1f}% of the rows share a score with another, "
            f"{int(times.max())} the same one at most; ties are guessed in an order "
            "drawn from all scores together",
            alarming=tied > len(table) / 2,
        ),
    ]
    if table.features is not None and len(table) <= MOST_COMPARED:
        _, place, count = np.unique(table.features, axis=0, return_inverse=True, return_counts=True)
        twins = int((count - 1).sum())
        inside = np.bincount(place.ravel(), weights=question.truth, minlength=count.size)
        both = int(((inside > 0) & (inside < count)).sum())
        findings.append(
            Finding(
                "repeated_features",
                "repeated examples",
                twins,
                f"rows with the features of an earlier one; {both} groups of equal rows hold both "
                "kinds; if the features are the whole example, one whose twin was trained on is "
                "no clean non-member",
                alarming=twins > len(table) / 2,
            )
        )
    return findings


def _order(question: Question) -> Finding:
    value = Scores(question.table.score, question.truth).area()
    low, perfect = value < 0.45, value > 0.999
    says = "the chance that a member's score is above a non-member's; one half is no attack"
    if low:
        says += "; below it the score may be a loss: then say --column score=-NAME"
    if perfect:
        says += (
            "; the score tells the two kinds apart almost without an error: make sure that it was "
            "not made from what it is to guess"
        )
    # where the bound itself takes notice of a score that is turned round, once is enough
    alarming = perfect or (low and question.method in ("zero-run", "panoramia"))
    return Finding("auc", "area under the ROC curve", value, says, alarming=alarming)


def _shift(question: Question, test: PropensityTest | None) -> Finding:
    what = "shift between members and non-members"
    if test is None:
        why = "this method does not ask for it"
        if question.method in ("one-run", "one-run-fdp", "zero-run"):
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
    return Finding("shift_p_value", what, test.p_value, found, alarming=test.rejected)


def _overlap(propensity: Floats) -> list[Finding]:
    shift = np.abs(np.log(propensity) - np.log1p(-propensity))
    kept = float(np.exp(-shift).mean())
    return [
        Finding(
            "propensity_range",
            "propensities",
            [float(propensity.min()), float(propensity.max())],
            "the least and the largest chance of being a member, given the example",
        ),
        Finding(
            "propensity_kept",
            "overlap",
            kept,
            "the share of correct guesses that the correction leaves, were all examples guessed "
            "on; near 0 members and non-members hardly overlap and nothing can be shown",
            alarming=kept < 0.2,
        ),
    ]
