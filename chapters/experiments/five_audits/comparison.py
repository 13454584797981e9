"""What all audits found, side by side: a series for each way of asking, with the line above it."""

from functools import cache

import numpy as np
import pandas as pd

from auditkit import stored

NULL, SHORT, LONG = "null", "10 passes", "100 passes"
TRAININGS = [NULL, "1", "2", "4", "8", SHORT, LONG]
PRIVATE = ("1", "2", "4", "8")
CURVE, FREE, ESTIMATE = "lower bound, a Gaussian curve", "lower bound, no family", "estimate"
NAMES = {
    "gradient, in or out": "many runs: gradient, in or out",
    "gradient, this or that": "many runs: gradient, this or that",
    "gradient, no difference": "many runs: gradient, this or that",
    "wrong label": "many runs: a wrong label",
    "one run, natural": "one run: natural images",
    "one run, planted": "one run: planted images",
    "labels": "labels",
    "no shift, propensity ½": "zero run: no shift",
    "shift, true propensity, sharp": "zero run: shift known",
    "shift, true propensity, conditional": "zero run: known, as in the paper",
    "shift, fitted, sharp": "zero run: shift fitted",
    "shift, fitted, none": "zero run: shift ignored",
    "generated": "generated examples: ε̃",
}


def training_of(rows: pd.DataFrame) -> pd.Series:
    """Return which model an audit looked at: its ε, its passes without privacy, or the null."""
    names = rows["epsilon"].map("{:g}".format)
    names = names.mask(np.isinf(rows["epsilon"]), rows["passes"].map("{:g} passes".format))
    idle = rows["trained_on"].eq("other images") | rows["canary"].eq("gradient, no difference")
    return pd.Categorical(names.mask(idle, NULL), TRAININGS, ordered=True)


@cache
def comparison() -> pd.DataFrame:
    """Return a row for each audit of a training: its series, what kind of number, ε found."""
    one, votes = stored("five-audits"), stored("five-audits-pate")
    many = stored("five-audits-many-runs").assign(passes=100)
    many["method"] = many["canary"]
    votes["method"] = "PATE: " + votes["method"]
    rows = pd.concat([one, many, votes], ignore_index=True)
    rows["training"] = training_of(rows)
    rows["series"] = rows["method"].map(NAMES).fillna(rows["method"].where(rows["point"].notna()))
    # a mark is an estimate as soon as one of its deals is
    settings = ["series", "family", "training", "point"]
    deals = rows.assign(doubt=rows["claim"].eq("estimate")).groupby(
        settings, dropna=False, observed=True
    )
    doubted = deals["doubt"].transform("any")
    kind = np.where(rows["family"].eq("approx"), FREE, CURVE)
    rows["kind"] = np.where(doubted, ESTIMATE, kind)
    rows.loc[rows["point"].eq("no point"), "kind"] = NULL
    known = rows["claim"].ne("measured") & rows["series"].notna()
    return rows[known].sort_values("training", kind="stable")


def found(series: str, training: str, family: str | None = "gaussian") -> float:
    """Return the mean over deals of what a series found, where there is something to find."""
    rows = comparison()
    here = rows["series"].eq(series) & rows["training"].eq(training) & rows["kind"].ne(NULL)
    here &= rows["family"].isna() if family is None else rows["family"].eq(family)
    return float(rows.loc[here, "found"].mean())


def measured(method: str, training: str) -> float:
    """Return the mean over deals of a property of the models, such as their accuracy."""
    rows = stored("five-audits").assign(canary="")
    here = rows["method"].eq(method) & (training_of(rows) == training)
    return float(rows.loc[here, "found"].mean())
