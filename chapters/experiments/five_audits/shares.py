"""What share of the promise each audit finds, by the attack that was best on other models."""

from functools import cache
from pathlib import Path

import pandas as pd

from auditkit import stored
from experiments.five_audits.attacks import SETTINGS
from experiments.five_audits.comparison import CURVE, ESTIMATE, FREE, NULL
from experiments.five_audits.counting import AUDITED, MANY
from experiments.five_audits.deals import REPORTED
from experiments.five_audits.heads import OPPOSITE, SAME

COUNTED = [f"three-audits-{kind}" for kind in ("heads", "networks", "private", "texts", "runs")]
WHICH = ["setting", "audit", "family"]


@cache
def found() -> pd.DataFrame:
    """Return the bounds of reported models, by the attack that found most in the choosing ones.

    Nulls come with the attack that was chosen on what is audited. Many runs have canaries in place
    of attacks, and nothing to choose. ``share`` is what is found over what is promised.
    """
    tables = [stored(id_) for id_ in COUNTED]
    many = tables[-1]
    settings = {setting.promised: name for name, setting in SETTINGS.items() if "head" in name}
    many["setting"] = many["epsilon"].map(settings)
    rows = pd.concat([*tables[:-1], many], ignore_index=True)
    rows["family"] = rows["family"].fillna("none")
    rows = rows[rows["audit"].eq(MANY) | best(rows)].reset_index(drop=True)
    canaries = rows["attack"].replace({SAME: OPPOSITE})
    rows["audit"] = rows["audit"].where(rows["audit"].ne(MANY), MANY + ": " + canaries)
    rows["share"] = rows["found"] / rows["promised"]
    rows["ceiling_share"] = rows["ceiling"] / rows["promised"]
    rows["kind"] = rows["family"].map({"gaussian": CURVE, "approx": FREE, "none": ESTIMATE})
    doubted = rows.assign(doubt=rows["claim"].eq(ESTIMATE)).groupby([*WHICH, "truth"])["doubt"]
    rows["kind"] = rows["kind"].mask(doubted.transform("any"), ESTIMATE)
    rows["kind"] = rows["kind"].mask(rows["truth"].ne(AUDITED), NULL)
    return rows


def best(rows: pd.DataFrame) -> pd.Series:
    """Say which rows are of reported models and of the attack chosen on other models."""
    choosing = rows["model"].ge(REPORTED)
    tried = rows[choosing & rows["truth"].eq(AUDITED)]
    means = tried.groupby([*WHICH, "attack"], dropna=False)["found"].mean()
    # of equals the first by name
    winners = means.reset_index().sort_values("found", ascending=False, kind="stable")
    winners = winners.drop_duplicates(WHICH)[[*WHICH, "attack"]]
    marked = rows[[*WHICH, "attack"]].merge(winners.assign(chosen=True), how="left")
    return ~choosing & marked["chosen"].notna()


def published() -> pd.DataFrame:
    """Return results of others that state what is promised and what is found."""
    rows = pd.read_csv(Path(__file__).with_name("published.csv"))
    return rows[rows["promised"].lt(float("inf"))].reset_index(drop=True)
