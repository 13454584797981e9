"""What the chapter says of its numbers, checked against the stored ones."""

import numpy as np

from auditkit import stored
from experiments.five_audits.audits import substitute
from experiments.five_audits.comparison import (
    CURVE,
    ESTIMATE,
    FREE,
    LONG,
    NULL,
    PRIVATE,
    SHORT,
    TRAININGS,
    comparison,
    found,
    measured,
    training_of,
)

IN_OUT, THIS_THAT = "many runs: gradient, in or out", "many runs: gradient, this or that"
WRONG = "many runs: a wrong label"
rows = comparison()
bounds = rows[rows["kind"].isin([CURVE, FREE])]
means = bounds.groupby(["series", "kind", "training"], observed=True)["found"].mean().reset_index()

# "this or that" reaches half to two thirds of its line, "in or out" a fifth to a third
for training in PRIVATE:
    epsilon = float(training)
    assert 0.5 < found(THIS_THAT, training) / substitute(epsilon) < 0.7
    assert 0.2 < found(IN_OUT, training) / epsilon < 0.34
    assert found(IN_OUT, training) < found(WRONG, training) < found(THIS_THAT, training)
    assert training == "8" or found(THIS_THAT, training) > 0.9 * epsilon
    # everything valid on the one model stays below 0.4
    here = means[means["training"].eq(training) & ~means["series"].str.startswith("many runs")]
    assert len(here) == 8
    assert here["found"].max() < 0.4

# fourteen lower bounds in a private column, ten at the null
counts = {training: int(means["training"].eq(training).sum()) for training in TRAININGS}
assert (counts["8"], counts[NULL]) == (14, 10), counts

# without a family the zero run finds 2.3, one run 1.6, labels 1.1; ten passes leak much less
for series, said in (
    ("zero run: no shift", 2.3),
    ("one run: natural images", 1.6),
    ("labels", 1.1),
):
    private, brief, long = (found(series, training, "approx") for training in ("8", SHORT, LONG))
    assert round(long, 1) == said
    assert long > 2 * brief
    assert 1.8 < brief / private < 2.3

# at the null every lower bound is 0; labels say 0.006 in one deal, as an estimate
nulls = rows[rows["training"].eq(NULL) & rows["found"].gt(0)]
speaking = nulls[nulls["claim"].eq("lower bound") | nulls["series"].eq("labels")]
assert set(zip(speaking["series"], speaking["seed"], strict=True)) == {("labels", 4)}
assert set(speaking["claim"]) == {"estimate"}
assert round(speaking["found"].max(), 3) == 0.006
assert round(found("generated examples: ε̃", NULL, None), 2) == 0.23
assert round(found("generated examples: ε̃", LONG, None), 2) == 0.28

# ten passes predict best, a hundred worse than every private training
accurate = {training: measured("test accuracy", training) for training in TRAININGS}
assert max(accurate, key=accurate.get) == SHORT
assert accurate[LONG] < min(accurate[training] for training in PRIVATE)

# where guesses are made: 98 of the 100 lowest, 75 of the 100 highest, 85 that say non-member
assert round(measured("non-members among the 100 lowest scores", LONG), 2) == 0.98
assert round(measured("members among the 100 highest scores", LONG), 2) == 0.75
denied = measured("guesses of the zero run, of 100, that say non-member", LONG)
assert abs(denied - 0.85) < 0.02
one = stored("five-audits").assign(canary="")
one["training"] = training_of(one)
gaussian = one.query("family == 'gaussian'").groupby(["method", "training"], observed=True)["found"]
halves = gaussian.mean().round(1)
for method, both in (
    ("one run, the coins without a shift", (0.6, 1.8)),
    ("no shift, propensity ½", (0.6, 2.9)),
):
    assert tuple(halves[method][[SHORT, LONG]]) == both

# a known shift costs: 0.2 with the paper's correction, 1.3 with the sharper one
assert round(found("zero run: shift known", LONG), 1) == 1.3
assert round(found("zero run: known, as in the paper", LONG), 1) == 0.2
# sixty runs without an error: 10.86 with a curve, 1.79 without
plain = stored("five-audits-many-runs").query("epsilon == inf")
assert set(plain["found"].round(2)) == {10.86, 1.79}

# the fit finds more than the known propensity in three of five deals, and is rejected in one
deals = one[one["training"].eq(LONG)].set_index("seed")
known = deals[deals["method"].eq("shift, true propensity, sharp")]
fitted = deals[deals["method"].eq("shift, fitted, sharp")]
assert (fitted["found"] > known["found"]).sum() == 3
assert (fitted["rejected"].sum(), known["rejected"].sum()) == (1, 0)
assert round(found("zero run: shift fitted", LONG), 1) == 1.4
assert round(found("zero run: shift fitted", SHORT), 1) == 0.2
assert round(found("zero run: shift known", SHORT), 1) == 0.1

# the training of an exercise: the add/remove promise is 4.4 and audits find about 9
linked = stored("sub-raw").query(
    "canary == 'crafted gradient' and score == 'paper' and step == steps == 500"
    " and sampling_rate == 1 and epsilon == 10 and clip == 2 and learning_rate == 0.001"
    " and norm.isna()"
)
assert set(linked["add_remove"].round(1)) == {4.4}
assert abs(linked["bound"].mean() - 9) < 0.7
assert np.all(rows.loc[rows["kind"].eq(ESTIMATE), "claim"].notna())
