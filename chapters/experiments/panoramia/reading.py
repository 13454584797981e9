"""How the chapter and its claims read stored audits: beside a null, by name, along the recall."""

import pandas as pd
from pandas import DataFrame

from auditkit.figures import table

PAPERS, NESTED = "as in the paper", "with the helper"
# what tells settings apart, over all studies
SETTINGS = ("labels", "helper", "fitted_on", "share", "training", "width", "weights", "quality")
SETTINGS += ("network", "epsilon", "people", "model", "slack", "delta", "epochs", "passes")
SETTINGS += ("audit", "attack", "pairs")

# what figures and tables compare, and the role that it plays
OURS, THEIRS = "ε̃, with the helper", "ε̃, as in the paper"
ROLES = {OURS: "ours", THEIRS: "paper", "RM;RN": "estimate", "O(1)": "truth"}
ROLES |= {"95% of ε̃'s null": "null"}
GUESSES = {"baseline": "estimate", "attack, with the helper": "ours"}
GUESSES |= {"attack, as in the paper": "paper", "null, with the helper": "null"}
WORDS = {
    "c_lower": "c_lb",
    "both_lower": "{c + ε}_lb",
    "difference": OURS,
    "null": "its null",
    "null_95": "null, 95th percentile",
    "beyond": "beyond the null",
    "epochs": "passes",
    "epsilon": "ε of the training",
    "member_accuracy": "members, % right",
    "unseen_accuracy": "unseen, % right",
    "rare_share": "rare incomes among the surest",
    "rare_overall": "overall",
}


def against_null(frame: DataFrame) -> DataFrame:
    """Return the games with a model beside those with its null, which tossed the same coins.

    ``null`` is what the null shows and ``beyond`` what the model shows beyond it; ``null_95`` is
    the 95th percentile of all the null's games in a setting, as a text.
    """
    setting = [name for name in SETTINGS if name in frame]
    keys = [*setting, "seed", "flip"]
    null = frame.query("release == 'null'").rename(columns={"difference": "null"})
    found = frame.query("release == 'audited'").merge(null[[*keys, "null"]], on=keys)
    tops = found.groupby(setting, dropna=False)["null"].transform("quantile", 0.95)
    return found.assign(
        beyond=found["difference"] - found["null"], null_95=tops.map("{:.2f}".format)
    )


def compared(frame: DataFrame, real: str = NESTED) -> DataFrame:
    """Return four audits, named in the column ``line``, and the 95th percentile of ε̃'s null.

    `real` is the attack of RM;RN.
    """
    names = {("PANORAMIA", NESTED): OURS, ("PANORAMIA", PAPERS): THEIRS}
    names |= {("RM;RN", real): "RM;RN", ("O(1)", "loss"): "O(1)"}
    rows = against_null(frame)
    rows["line"] = [names.get(pair) for pair in zip(rows["audit"], rows["attack"], strict=True)]
    top = rows[rows["line"] == OURS].assign(line="95% of ε̃'s null")
    top["difference"] = top["null_95"].astype(float)
    return pd.concat([rows.dropna(subset="line"), top])


def audit_table(
    frame: DataFrame, keys: list[str], also: tuple[str, ...] = (), real: str = NESTED
) -> DataFrame:
    """Return a row for each setting: ε̃, what it rests on and shows beyond its null; other audits.

    `also` names further columns.
    """
    rows = compared(frame, real)
    rows[[name for name in also if "accuracy" in name]] *= 100
    ours, theirs = rows[rows["line"] == OURS], rows[rows["line"] == THEIRS]
    values = [*also, "c_lower", "difference", "null", "beyond"]
    theirs_null = theirs.assign(difference=theirs["null"], line=f"{THEIRS}: null")
    others = pd.concat([theirs, theirs_null, rows[rows["line"].isin(("RM;RN", "O(1)"))]])
    left = table(ours, [*keys, "null_95"], [], values)
    return (
        left.merge(table(others, keys, "line", "difference"), on=keys)
        .rename(columns=WORDS)
        .replace("inf", "∞")
    )


def along_recall(curves: DataFrame) -> DataFrame:
    """Return every sixth number of guesses of each classifier, with its mean recall over deals."""
    names = dict(
        zip(
            (("baseline", "none"), (NESTED, "audited"), (PAPERS, "audited"), (NESTED, "null")),
            GUESSES,
            strict=True,
        )
    )
    pairs = zip(curves["attack"], curves["release"], strict=True)
    rows = curves.assign(line=[names[pair] for pair in pairs])
    passes = "epochs" if "epochs" in rows else "passes"
    recalls = rows.groupby([passes, "line", "guesses"])["recall"]
    numbers = sorted(rows["guesses"].unique(), reverse=True)[::6]
    return rows.assign(recall=recalls.transform("mean"))[rows["guesses"].isin(numbers)]
