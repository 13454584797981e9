"""What became of the claims of the paper on PANORAMIA, and of what the chapter says of numbers."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from scipy.special import logit

from auditkit.claims import claim
from auditkit.experiment import stored
from auditkit.figures import spread
from experiments.panoramia.reading import NESTED, PAPERS, against_null

AUDITS = ["release", "audit", "attack"]


def means(frame: DataFrame, by: list[str], value: str = "difference") -> Series:
    """Return means over seeds, by setting."""
    return spread(frame, by, value).set_index(by)["mean"].sort_index()


def listed(values: Iterable[float], between: str = ", ") -> str:
    """Return numbers one after another."""
    return between.join(f"{value:.2f}" for value in values)


def interval(found: Series) -> str:
    """Return a mean and its interval."""
    return f"{found['mean']:.2f} ± {found['half_width']:.2f}"


# The simulation

known = stored("pan-known").set_index(["correction", "closeness", "epsilon", "noise"]).sort_index()
union, worst = known.loc["union bound"], known.loc["union bound", 2.4, 0.0, 4.0]
missed = union[["c_missed", "both_missed"]].to_numpy().max()
claim(
    "PAN-11",
    paper="ε̃ is a measurement, not a lower bound on ε (Section 4.2)",
    measured=f"c = 2.4, ε = 0, blurred baseline: ε̃ = {worst['difference']:.2f}, above ε in "
    f"{worst['above']:.0%} of 100 audits; c_lb and {{c + ε}}_lb above the truth in {missed:.0%}",
    verdict="reproduced",
    why="In simulation, where c and ε are known. How far ε̃ is above ε depends on the baseline.",
    figure="PAN-F16",
    check=worst["difference"] > 1.2 and worst["above"] > 0.95 and missed <= 0.05,
)

# The baseline

helpers = stored("pan-helpers")
full = helpers.query("fitted_on == 7_500")
c_by = means(full.query("release == 'audited'"), ["labels", "helper"], "c_lower").unstack()
assert (c_by.generated > 2 * c_by[["real", "none"]].max(axis=1)).all()
assert abs(c_by.real["sampled"] - c_by.none["sampled"]) < 0.15
# with the most likely label and a weak helper c + ε is proved to be less than c is by a strong one,
# while the null shows next to nothing
weak = full.query("labels == 'most likely' and helper in ('real', 'none')")
proved = means(weak, ["release", "helper"], "both_lower")["audited"]
assert c_by.generated["most likely"] > 0.2 + proved.max()
assert means(weak, ["release", "helper"])["null"].max() < 0.1
# the most likely label makes c_lb about three times as large, and less than halves ε̃
strong = full.query("helper == 'generated' and release == 'audited'")
for column, low, high in (("c_lower", 2.5, 3.5), ("difference", 0.2, 0.5)):
    by_labels = means(strong, ["labels"], column)
    assert low < by_labels["most likely"] / by_labels["sampled"] < high
# the null's 95th percentile is 0.2 to 0.4; it is above 0 in most games, or in about half of them
nulls = full.query("helper == 'generated' and release == 'null'")
nulls = nulls.set_index("labels")["difference"].drop("class of the mixture")
assert nulls.groupby("labels").quantile(0.95).between(0.15, 0.4).all()
assert (nulls["sampled"] > 0).mean() > 0.7
assert (nulls["most likely"] > 0).mean() > 0.3
# an owner's null is within 0.1 of the other null, and a margin of 0.2 is never passed
owners = helpers.query("fitted_on == 3_750").groupby(["labels", "release"])["difference"]
assert (owners.quantile(0.95).unstack().diff(axis=1).abs().iloc[:, 1] < 0.1).all()
by_deal = helpers.query("fitted_on == 3_750").groupby(["labels", "seed", "release"])["difference"]
own_top = by_deal.quantile(0.95).unstack()["owner's null"]
assert not (by_deal.mean().unstack()["null"] > own_top + 0.2).any()

training = stored("pan-training").query("share == 'fixed'")
c_grown = means(training.query("release == 'audited'"), ["helper", "training"], "c_lower")
steps, blind = c_grown["generated"], c_grown["none"]
claim(
    "PAN-2",
    paper="c_lb levels off as the baseline's training set grows (figure)",
    measured=f"with helper {listed(steps[[500, 1_000, 5_000, 10_000]])} for 500, 1,000, 5,000 and "
    f"10,000 examples of each kind; without {blind[5_000]:.2f} and {blind[10_000]:.2f} for the "
    "last two",
    verdict="partly",
    why="From 5,000 to 10,000 either gains less than 0.1 in the mean, and five seeds do not tell "
    "levelling off from slow growth. But without a helper c_lb stays less than half as large: flat "
    "is a property of a baseline, and says nothing about the true c.",
    figure="PAN-F2",
    check=steps[10_000] - steps[5_000] < 0.5 * (steps[1_000] - steps[500])
    and steps[10_000] - steps[5_000] < 0.15 < steps[5_000] - steps[1_000]
    and (blind[[5_000, 10_000]] < 0.6 * steps[[5_000, 10_000]]).all(),
)
# with a hundred examples ε̃ is half of its peak, then it falls from 1.9 to 1.6; where only the
# attack has a helper the null shows more than a half
grown = means(training, ["helper", "release", "training"])
few, some, most = grown["generated", "audited"][[100, 500, 10_000]]
assert 0.3 * some < few < 0.6 * some
assert 1.8 < some < 2.0
assert 1.5 < most < 1.7
assert 0.5 < grown["none", "null", 10_000] < 0.75

# Overfitted models

images = stored("pan-images")
whole = images.query("pairs == 10_000")
audits = means(whole, [*AUDITS, "epochs"])
tilde = audits["audited", "PANORAMIA", NESTED]
papers, papers_null = (audits[one, "PANORAMIA", PAPERS] for one in ("audited", "null"))
real, one_run = audits["audited", "RM;RN", NESTED], audits["audited", "O(1)", "loss"]
gap = tilde - real
assert (real < one_run).all()
assert gap[5] > 0.1
assert gap[[60, 100]].max() < 0
assert (papers < audits["audited", "RM;RN", PAPERS]).all()
# the attack as in the paper is below 0 up to 20 passes, its null at -0.6 throughout; held against
# the null it finds the leak from 20 passes on
papers_beyond = papers - papers_null
assert papers[20] < 0 < papers[60]
assert 0.2 < papers[100] < 0.4
assert (abs(papers_null + 0.6) < 0.1).all()
assert abs(papers_beyond[5]) < 0.1 < papers_beyond[[20, 60, 100]].min()
# with the helper ε̃ stops at about 1.7
assert tilde[[60, 100]].between(1.6, 1.8).all()
# from 20 passes on O(1) finds more than twice as much, and with guesses of members only a few
# tenths more than RM;RN
one_sided, both_sided = (
    audits["audited", audit, NESTED].drop(5) for audit in ("O(1), members only", "O(1)")
)
assert (one_sided - real.drop(5)).between(0.25, 0.45).all()
assert (one_sided < both_sided - 1.5).all()
assert (one_run.drop(5) > 2 * tilde.drop(5)).all()
# after 100 passes most games of O(1) end at 1,280 guesses without an error
perfect = logit((0.05 / 434) ** (1 / 1_280))
ends = whole.set_index([*AUDITS, "epochs"]).sort_index()["difference"]
assert (abs(ends["audited", "O(1)", "loss", 100] - perfect) < 1e-6).mean() > 0.6

tops = whole.query("release == 'null' and audit == 'PANORAMIA' and attack == @NESTED")
null_top = tops.groupby("epochs")["difference"].quantile(0.95).max()
assert tilde[5] < tilde[20] < tilde[60]
assert abs(tilde[100] - tilde[60]) < 0.2
assert papers_beyond.is_monotonic_increasing
# baseline and attack prove most between 2% and 10% of recall; after 60 passes the surest guesses
# lie next to the ceiling; at 0.3% of recall the ceiling is 0
curves = stored("pan-curves").query("attack == @NESTED and release == 'audited'")
points = curves.groupby(["epochs", "guesses"])[["recall", "lower"]].mean()
level = 0.025 / 10_000


def ceiling_at(recall: Series) -> Series:
    """Return what guesses without an error prove at a recall, of 10,000 examples."""
    return logit(level ** (1 / (recall * 5_000)))


for passes in (20, 60, 100):
    line = points.loc[passes]
    assert 0.02 < line["recall"][line["lower"].idxmax()] < 0.1
    sure = line[line["recall"].between(0.005, 0.02)]
    assert passes == 20 or (ceiling_at(sure["recall"]) - sure["lower"]).max() < 0.25
assert ceiling_at(0.003) < 0

by_pairs = means(images, [*AUDITS, "epochs", "pairs"])
grows, falls = (by_pairs["audited", "PANORAMIA", attack, 60] for attack in (NESTED, PAPERS))
ones, tildes = by_pairs["audited", "O(1)", "loss"], by_pairs["audited", "PANORAMIA", NESTED]
assert grows.is_monotonic_increasing
assert falls[10_000] < min(falls[500], falls[2_000] - 0.1)
assert all(
    ones[passes, fewer] > tildes[passes, 10_000]
    for passes, fewer in ((60, 500), (100, 500), (20, 2_000))
)

losses = stored("pan-losses")
laws = losses.groupby(["release", "kind", "epochs", "level"])["loss"].mean()


def parting(passes: int, one: str, other: str, release: str = "audited") -> float:
    """Return the largest difference of two cumulative shares, of mean quantiles over deals."""
    first, second = (laws[release, kind, passes] for kind in (one, other))
    places = np.sort(np.concatenate((first, second)))
    below = [np.interp(places, law, law.index) for law in (first, second)]
    return float(np.abs(below[0] - below[1]).max())


PASSES = (5, 20, 60, 100)
real_gap = [parting(passes, "members", "unseen") for passes in PASSES]
made_gap = [parting(passes, "members", "generated, sampled") for passes in PASSES]
null_gap = max(parting(passes, "members", "unseen", "null") for passes in PASSES)
assert real_gap[0] < real_gap[1] < real_gap[2]
assert made_gap[0] < made_gap[1] < made_gap[2]
assert null_gap < 0.05

sizes = stored("pan-sizes").query("release == 'audited'")
by_size = means(sizes, ["audit", "attack", "weights"])
leak, proved = by_size["PANORAMIA", NESTED], by_size["O(1)", "loss"]
assert leak.is_monotonic_increasing
assert proved.is_monotonic_increasing

# the map: c_lb is at most four tenths of its ceiling, and ε̃ of one network 1.7 or about a half
quality = stored("pan-quality").query("release == 'audited'")
filled = means(quality.assign(part=quality.c_lower / quality.ceiling), ["quality", "pairs"], "part")
assert filled.max() < 0.42
mapped = means(quality.query("pairs == 10_000"), ["quality"])
assert 1.6 < mapped["4 Gaussians a class"] < 1.8
assert 0.4 < mapped["1, uncorrelated"] < 0.6

# Pixels

pixels = stored("pan-pixels")
strongest = pixels.query("baseline == 'network and helper'")
shown = means(strongest, ["preparation", "generator", "release", "pairs"])
c_of = means(
    pixels.query("release == 'none'"), ["baseline", "preparation", "generator", "pairs"], "c_lower"
)
c_most = c_of.xs(10_000, level="pairs")["network and helper"]
c_trees = c_of.xs(10_000, level="pairs")["trees"]
# images as they are: c_lb next to the ceiling, where trees alone prove 2.3 to 3.3
assert c_most["28 × 28"].min() > 5.5
assert c_trees["28 × 28"][["mixtures", "filtered mixtures", "diffusion"]].between(1.5, 3.5).all()
# a filter takes little away at 14 × 14, and nothing along 32 directions
assert c_most["32 directions", "mixtures"] < 1.2
assert 1.2 < c_most["32 directions", "filtered mixtures"] < 1.5
assert 4.1 < c_most["14 × 14", "mixtures"] < 4.35
assert 3.7 < c_most["14 × 14", "filtered mixtures"] < 3.9
# every generator trains within two minutes
assert means(pixels, ["preparation", "generator"], "training_seconds").max() < 120
# with noise c_lb is below 0.2 and ε̃ of the leaky network near 2, where its null shows 0
assert c_most["14 × 14, noise 0.3", "mixtures"] < 0.15
noisy = shown["14 × 14, noise 0.3", "mixtures"].xs(10_000, level="pairs")
assert noisy["60 passes"] > 1.6
assert abs(noisy["null"]) < 0.1
# the share of the ceiling moves by less than 17 points with the number of pairs; along few
# directions it grows, and stays below a third
ceilings = strongest.groupby("pairs")["ceiling"].mean()
parts = (c_of["network and helper"].unstack() / ceilings)[[500, 10_000]]
assert (parts.diff(axis=1)[10_000].abs() < 1 / 6).all()
along = parts.loc[["16 directions", "32 directions"]].drop(
    index=["variational autoencoder", "resampled members"], level="generator"
)
assert ((along[500] < along[10_000]) & (along[10_000] < 1 / 3)).all()
# real images along 128 directions are told from whole ones by a network, and not by trees; smaller
# images and 32 directions by nobody
floors = stored("pan-pixels-floor")
floor = floors.groupby(["preparation", "baseline", "seed"])["c_lower"].mean()
assert floor["28 × 28", "network"].min() > 0.9 * floors["ceiling"].max()
assert floor["28 × 28", "trees"].max() < 0.3
assert floor[["14 × 14", "32 directions"]].max() < 0.05

# Private models

private = pd.concat([stored("pan-private"), stored("pan-private-longer")])
KEYS = ["network", "epochs", "epsilon", "pairs"]
at = spread(private, [*AUDITS, *KEYS], "difference").set_index([*AUDITS, *KEYS]).sort_index()
held = against_null(private.query("audit == 'PANORAMIA' and attack == @NESTED"))
held = spread(held, KEYS, "beyond").set_index(KEYS).sort_index()
LARGE, SMALL = ("64-64", 30), ("64", 30)
finite = [(*network, epsilon, 10_000) for network in (LARGE, SMALL) for epsilon in (1.0, 15.0)]
finite += [(*LARGE, epsilon, 10_000) for epsilon in (2.0, 6.0, 10.0)]
free, long = (*LARGE, math.inf, 10_000), ("64-64", 300, 15.0, 10_000)
tildes, reals, ones = (
    at.loc[("audited", *audit)]
    for audit in (("PANORAMIA", NESTED), ("RM;RN", NESTED), ("O(1)", "loss"))
)
small = [one.loc[finite, "mean"].max() for one in (tildes, reals, ones)]
null_games = private.query("release == 'null' and audit == 'PANORAMIA' and attack == @NESTED")
null_tops = null_games.groupby(KEYS)["difference"].quantile(0.95)
small_beyond = held.loc[finite, "mean"]
assert small[0] < null_tops[finite].min()
assert ones["half_width"][long] < ones["mean"][long] < 0.1
assert max(small[1:]) < 0.01
assert small_beyond.abs().max() < 0.1
assert held["mean"][free] > 0.15
assert ones["mean"][free] > 0.5
# the nulls of RM;RN and O(1) are 0
for audit in (("RM;RN", NESTED), ("O(1)", "loss")):
    assert at.loc[("null", *audit), "mean"].max() < 0.005
# the attack as in the paper says about -0.6 of every private network and of its null
for release in ("audited", "null"):
    assert at.loc[(release, "PANORAMIA", PAPERS), "mean"][finite].between(-0.7, -0.5).all()
# private networks are right on members at most about a point more often; from ε = 1 to 15 they get
# better by two to five points, to nearly what networks without privacy reach
private["points"] = 100 * (private["member_accuracy"] - private["unseen_accuracy"])
points = means(private, KEYS, "points")
assert points[finite].max() < 1.2
for network in (LARGE, SMALL):
    level = 100 * means(private, KEYS, "unseen_accuracy").xs(10_000, level="pairs")[network]
    assert 1.5 < level[15.0] - level[1.0] < 5
    assert level[math.inf] - level[15.0] < 1
    assert 2.5 < points[(*network, math.inf, 10_000)] < 5.5
# without privacy ε̃ is 0.3 beyond its null for the larger network, and does not stand out for the
# smaller, of which O(1) proves a little
assert held["mean"][(*SMALL, math.inf, 10_000)] < 0.15
assert 0.25 < held["mean"][free] < 0.35
assert 0.05 < ones["mean"][(*SMALL, math.inf, 10_000)] < 0.25
# passes at ε = 15 double the difference, and double it again, to what ten leave without privacy;
# then O(1) finds far more
gaps = [points["64-64", passes, 15.0, 10_000] for passes in (10, 30, 100, 300)]
assert np.allclose(np.diff(np.log2(gaps))[:2], 1, atol=0.35)
assert 1.9 < gaps[2] < 2.5
assert 3 < gaps[3] < 4
shorter = ("64-64", 10, math.inf, 10_000)
assert 2 < points[shorter] < min(2.6, 0.55 * points[free])
assert ones["mean"][free] > 3 * ones["mean"][shorter]
assert ones["mean"]["64-64", 100, 15.0, 10_000] < 0.03
# what ε̃ shows beyond its null at ε = 15 after 100 and 300 passes does not stand out
for passes, most in ((100, 0.1), (300, 0.2)):
    more = held.loc["64-64", passes, 15.0, 10_000]
    assert more["mean"] < min(most, 2 * more["half_width"])
# after 30 private passes nothing is found with any number of pairs; after 300 O(1) needs them all
for epsilon in (1.0, 15.0):
    assert ones.loc[(*LARGE, epsilon), "mean"].max() < 0.01
    assert held.loc[(*LARGE, epsilon), "mean"].abs().max() < 0.1
assert ones["mean"]["64-64", 300, 15.0][[500, 2_000]].max() < 0.005
# without privacy O(1) rises to 0.6, and ε̃ beyond its null has its 0.3 with 2,000 pairs already
rising, mores = (one["mean"][(*LARGE, math.inf)] for one in (ones, held))
assert rising[500] < 0.05
assert rising[2_000] < 0.15
assert 0.5 < rising[10_000] < 0.7
assert abs(mores[500]) < 0.1
assert mores[[2_000, 10_000]].between(0.2, 0.4).all()

# Tables

census = stored("pan-tables")
census["people"] = census["who"].where(~census["filtered"], census["who"] + ", filtered")
by_people = means(census, [*AUDITS, "epochs", "people"])
tilde, real, one_run = (
    by_people["audited"][audit]
    for audit in (("PANORAMIA", NESTED), ("RM;RN", NESTED), ("O(1)", "loss"))
)
nulls = census.query("release == 'null' and audit == 'PANORAMIA' and attack == @NESTED")
tops = nulls.groupby(["epochs", "people"])["difference"].quantile(0.95)
blind = census.query("audit == 'PANORAMIA' and epochs == 10 and release == 'audited'")
c_lb = means(blind, ["people"], "c_lower")
surest, overall = (means(blind, ["people"], f"rare_{one}") for one in ("share", "overall"))
people_beyond = by_people["audited", "PANORAMIA", NESTED] - by_people["null", "PANORAMIA", NESTED]
ALL, FILTERED, PLAIN = "everybody", "everybody, filtered", "without capital income or wage"
of_one_run = census.query("release == 'audited' and audit == 'O(1)' and attack == 'loss'")
by_deal = of_one_run.groupby(["epochs", "people", "seed"])["difference"].mean()
assert tilde[10, ALL] < tops[10, ALL]
assert tops[100, ALL] < tilde[100, ALL] < 0.2 * one_run[100, ALL]
assert real[100].between(0.3, 0.6).all()
assert people_beyond[100].between(0.2, 0.5).all()
assert real[10].max() < 0.1
assert by_deal[100].min() > 2
assert surest[ALL] > 1.3 * overall[ALL]
assert 0.8 * c_lb[ALL] < c_lb[PLAIN] < c_lb[ALL]
# the nulls of RM;RN and O(1) are 0
for audit in (("RM;RN", NESTED), ("O(1)", "loss")):
    assert by_people[("null", *audit)].max() < 0.005
# the baseline is right in more than nine of ten of its surest guesses; after 100 passes the attacks
# prove about 0.2 more between 5% and 30% of recall
lines = stored("pan-tables-curves").query("epochs == 100 and release != 'null'")
lines = lines.groupby(["attack", "guesses"])[["recall", "precision", "lower"]].mean()
base = lines.loc["baseline"]
assert base["precision"][base["recall"].between(0.003, 0.1)].min() > 0.9
for attack in (PAPERS, NESTED):
    more = (lines.loc[attack] - base)["lower"][base["recall"].between(0.05, 0.3)]
    assert 0.15 < more.mean() < 0.3

# Texts

tuned, secret = stored("pan-texts"), stored("pan-texts-private")
tuned["model"] = tuned["passes"].map("{:.0f} passes".format)
secret["model"] = secret["epsilon"].map("private, ε = {:g}".format)
texts = pd.concat([tuned, secret]).query("release != 'none'")
TUNED, SECRET = (frame["model"].unique() for frame in (tuned.dropna(subset="passes"), secret))
by_model = means(texts.query("pairs == 3_000"), [*AUDITS, "model"])
tilde, papers, real, one_run = (
    by_model["audited"][audit]
    for audit in (("PANORAMIA", NESTED), ("PANORAMIA", PAPERS), ("RM;RN", PAPERS), ("O(1)", "loss"))
)
null, papers_null = (by_model["null", "PANORAMIA", attack] for attack in (NESTED, PAPERS))
text_beyond = tilde - null
assert tilde[TUNED].is_monotonic_increasing
assert text_beyond[TUNED].is_monotonic_increasing
assert (real > one_run)[TUNED].all()
assert one_run["12 passes"] > tilde["12 passes"]
assert text_beyond[SECRET].abs().max() < 0.15
assert one_run[SECRET].max() < 0.1
# the nulls of RM;RN and O(1) are 0
for audit in (("RM;RN", PAPERS), ("O(1)", "loss")):
    assert by_model[("null", *audit)].max() < 0.005
# after two passes ε̃ is 0.3 and its null 0.2, with single games above 0.4, and five seeds do not
# tell them apart; after twelve it is 1.4, of which the null explains 0.4, and the attack at 4.7
nested = texts.query("pairs == 3_000 and audit == 'PANORAMIA' and attack == @NESTED")
assert 0.15 < null["2 passes"] < null["12 passes"] < 0.45
assert 1.3 < tilde["12 passes"] < 1.45
assert 0.85 < real["2 passes"] < 0.95
two = nested.query("model == '2 passes'")
assert two.query("release == 'null'")["difference"].quantile(0.95) > 0.4
[more] = spread(against_null(two), ["model"], "beyond").itertuples()
assert 0 < more.mean < more.half_width
bounds = [means(nested, ["release", "model"], one)["audited"] for one in ("c_lower", "both_lower")]
assert 3.2 < bounds[0]["2 passes"] < 3.4
assert 4.6 < bounds[1]["12 passes"] < 4.75
# whether the null shows more after twelve passes than after two, five deals cannot tell
of_null = nested.query("release == 'null'").pivot_table("difference", ["seed", "flip"], "model")
rise = (of_null["12 passes"] - of_null["2 passes"]).rename("rise").reset_index()
[rise] = spread(rise, [], "rise").itertuples()
assert abs(rise.mean) < rise.half_width
# after twelve passes the attack fills more than nine tenths of the ceiling with any number of pairs
full = tuned.query("model == '12 passes' and release == 'audited' and attack == @NESTED")
full = full.groupby("pairs")[["both_lower", "ceiling"]].mean()
assert (full["both_lower"] > 0.95 * full["ceiling"]).all()

# Slack

relaxed = stored("pan-relaxed").query("release == 'audited'")
slack = means(relaxed, ["delta", "epochs", "slack"])
c_slack = means(relaxed, ["delta", "epochs", "slack"], "c_lower")
pure, approximate = (
    [listed(slack[delta, epochs].drop(1e-6)) for epochs in (60, 20)] for delta in (0.0, 1e-5)
)
levels = slack.unstack("slack")
assert (levels[1e-5] > 0.95 * levels[0.0]).all()
assert (levels[1e-3] > 0.8 * levels[0.0]).all()
assert (levels[1e-2] < 0.8 * levels[0.0]).all()
assert (c_slack[0.0, 60] == c_slack[1e-5, 60]).all()

# Zero runs

zero = means(stored("pan-propensities"), ["release", "audit", "propensity", "epochs"], "bound")
# the test refuses at most one of the five fits
refused = stored("pan-propensities").query("epochs == 60 and release == 'audited'")
assert refused.groupby("seed")["refused"].first().sum() <= 1
# with PANORAMIA's own propensity the null of a zero run shows 0.2 to 0.4 more; nulls of fitted
# propensities are above 0
worst = zero["null", "untampered", "c for all"] - zero["null", "PANORAMIA", "c for all"]
assert worst.between(0.15, 0.35).all()
assert zero["null", "untampered", "fitted"].between(0, 0.45).all()
# after 60 passes much more is found with fitted propensities, but for the conditional Gaussian
least = zero["audited"].xs(60, level="epochs").xs("fitted", level="propensity")
theirs = zero["audited", "PANORAMIA", "c for all", 60]
assert least[["untampered", "conditional", "sharp, Gaussian"]].min() > theirs + 0.8
assert abs(least["conditional, Gaussian"] - theirs) < 0.4

# Photographs, Adult and reviews. TODO: drafts of verdicts, until the results are there

NOISY = "half the side, noise 0.3"
kinds = means(stored("pan-detectors"), ["preparation", "labels", "baseline"], "c_lower")[NOISY]
paper_order = ["helper, generated", "helper, real", "detector"]
claim(
    "PAN-1",
    paper="CIFAR-10: c_lb 2.44 with a helper trained on generated data, 2.21 on real data, "
    "1.25 without one",
    measured="photographs, most likely labels: "
    f"{listed(kinds['most likely'][paper_order])}; drawn labels: "
    f"{listed(kinds['sampled'][paper_order])}; features: "
    + "; ".join(
        f"{labels} {listed(c_by.loc[labels, ['generated', 'real', 'none']])}"
        for labels in c_by.index
    ),
    verdict="partly",
    why="TODO. With the most likely labels the order is the paper's. How the paper chooses labels "
    "it does not say.",
    figure=["PAN-T22", "PAN-T2"],
    check=kinds["most likely"][paper_order].is_monotonic_decreasing
    and (c_by.generated > 2 * c_by[["real", "none"]].max(axis=1)).all(),
)

networks = stored("pan-networks")
whole = networks.query("pairs == 10_000")
by_passes = means(whole, [*AUDITS, "passes"])
tilde, real, one_run = (
    by_passes["audited"][audit]
    for audit in (("PANORAMIA", NESTED), ("RM;RN", NESTED), ("O(1)", "loss"))
)
null = by_passes["null", "PANORAMIA", NESTED]
later = [4, 8, 16, 32]
claim(
    "PAN-3",
    paper="ε̃ grows with epochs: ResNet101 .33/.67/1.16, CelebA .76/1.33, GPT-2 .22/1.57/2.40",
    measured=f"photographs, 2/4/8/16/32 passes: {listed(tilde)}; null {listed(null)}",
    verdict="reproduced",
    why="TODO. CelebA is not tried. Texts are a claim of their own, PAN-9.",
    figure=["PAN-F22", "PAN-T3", "PAN-F3", "PAN-F4"],
    check=tilde[later].is_monotonic_increasing and tilde[32] > null[32] + 0.5,
)
claim(
    "PAN-4",
    paper="ResNet101, 20/50/100 epochs: ε̃ .33/.67/1.16, RM;RN .42/.71/1.22, O(1) .45/.79/1.41",
    measured=f"2/4/8/16/32 passes: ε̃ {listed(tilde)}; RM;RN {listed(real)}; O(1) {listed(one_run)}",
    verdict="partly",
    why="TODO.",
    figure=["PAN-F22", "PAN-T3"],
    check=(tilde[later] < one_run[later]).all(),
)
by_number = means(networks.query("passes == 32"), [*AUDITS, "pairs"])
grows = by_number["audited", "PANORAMIA", NESTED]
claim(
    "PAN-6",
    paper="ResNet101, 100 epochs: ε̃ grows with m, up to 2.62 (m up to 35,000), where O(1) is held "
    "to 2.23 by its test set",
    measured=f"32 passes, 500 to 10,000 pairs: ε̃ {listed(grows)}; O(1) "
    f"{listed(by_number['audited', 'O(1)', 'loss'])}",
    verdict="partly",
    why="TODO. 35,000 pairs we do not have.",
    figure=["PAN-F23", "PAN-F6"],
    check=grows[10_000] > grows[500],
)
by_width = means(stored("pan-networks-wide"), [*AUDITS, "width"])
wider = by_width["audited", "PANORAMIA", NESTED]
claim(
    "PAN-7",
    paper="ε̃ grows from a Wide ResNet-28-2 to ResNet-50 to ResNet-101 (figure, one run)",
    measured=f"photographs, 16/32/64 channels: ε̃ {listed(wider)}, O(1) "
    f"{listed(by_width['audited', 'O(1)', 'loss'])}",
    verdict="partly",
    why="TODO: larger networks need not show a larger leak; on features they do (PAN-F15).",
    figure=["PAN-F24", "PAN-F15"],
    check=wider[64] > wider[16],
)
by_epsilon = means(stored("pan-private-networks").query("pairs == 10_000"), [*AUDITS, "epsilon"])
private_tilde, private_null = (
    by_epsilon[release, "PANORAMIA", NESTED] for release in ("audited", "null")
)
proved_privately = by_epsilon["audited", "O(1)", "loss"]
claim(
    "PAN-5",
    paper="ResNet18: nothing at ε = 1, 2; ε̃ .26, 1.13, 1.43 at ε = 10, 15, ∞; O(1) .28, 1.22, 1.47",
    measured="photographs, ε = 1, 2, 6, 10, 15, ∞: ε̃ beyond the null "
    f"{listed(private_tilde - private_null)}; O(1) {listed(proved_privately)}",
    verdict="partly",
    why="TODO. Nothing is found at small ε, and neither at 15, on pixels or on features.",
    figure=["PAN-F25", "PAN-F5", "PAN-T7", "PAN-T10", "PAN-T21"],
    check=proved_privately.drop(math.inf).max() < 0.05
    and (private_tilde - private_null).drop(math.inf).abs().max() < 0.2,
)
slacks = means(stored("pan-slack").query("release == 'audited'"), ["epsilon", "delta", "slack"])
claim(
    "PAN-10",
    paper="ε = 10: ε̃ .325, .294, .071, 0 at γ = 0, 1e-5, 1e-4, 1e-3 (ε = 15: 1.153 to .947); "
    "with δ = 1e-5 .730, .512, 0 (no union bound)",
    measured="with the union bound, γ = 0, 1e-5, 1e-4, 1e-3, 1e-2: private network, ε = 15: "
    f"{listed(slacks[15.0, 0.0])}; without privacy {listed(slacks[math.inf, 0.0])}, with δ = 1e-5 "
    f"{listed(slacks[math.inf, 1e-5])}; features, 60 passes: {pure[0]}",
    verdict="partly",
    why="TODO. One Markov bound serves all thresholds, so that a small slack costs little.",
    figure=["PAN-T26", "PAN-T11"],
    check=(levels[1e-5] > 0.95 * levels[0.0]).all(),
)
of_losses = stored("pan-networks-losses")
laws = of_losses.groupby(["release", "kind", "passes", "level"])["loss"].mean()
PASSES = (2, 4, 8, 16, 32)
real_gap = [parting(passes, "members", "unseen") for passes in PASSES]
made_gap = [parting(passes, "members", "generated") for passes in PASSES]
claim(
    "PAN-12",
    paper="the loss distributions of members, non-members and generated data part with overfitting "
    "(figures)",
    measured="largest difference of cumulative shares at 2/4/8/16/32 passes: members and unseen "
    f"{listed(real_gap)}; members and generated {listed(made_gap)}",
    verdict="reproduced",
    why="TODO.",
    figure=["PAN-F13", "PAN-F8"],
    check=bool(np.all(np.diff(real_gap[1:]) > 0)) and made_gap[-1] > made_gap[0],
)

adult = stored("pan-adult").query("pairs == 8_000")
by_release = means(adult, [*AUDITS, "passes"])
nulls = adult.query("release == 'null' and audit == 'PANORAMIA' and attack == @NESTED")
top = nulls.groupby("passes")["difference"].quantile(0.95)
tilde, one_run = (
    by_release["audited"][audit] for audit in (("PANORAMIA", NESTED), ("O(1)", "loss"))
)
claim(
    "PAN-8",
    paper="Adult: ε̃ 0 and .06 after 10 and 100 epochs, O(1) .65 and .65; extreme values give real "
    "people away",
    measured=f"Adult and MST: ε̃ {listed(tilde)} (null's 95th percentile {listed(top)}), O(1) "
    f"{listed(one_run)}",
    verdict="partly",
    why="TODO. PANORAMIA finds nothing significant after 10 passes. O(1) finds nothing then, and "
    "far more than the paper after 100, where the paper has the same for both.",
    figure=["PAN-T23", "PAN-T6", "PAN-F12"],
    check=tilde[10] < top[10] and one_run[10] < 0.1 and one_run[100] > 1.5,
)

of_reviews = stored("pan-reviews").query("pairs == 2_000 and release != 'none'")
by_review = means(of_reviews, [*AUDITS, "passes"])
tilde, real, one_run = (
    by_review["audited"][audit]
    for audit in (("PANORAMIA", NESTED), ("RM;RN", NESTED), ("O(1)", "loss"))
)
claim(
    "PAN-9",
    paper="GPT-2, 37/75/150 epochs: ε̃ .22/1.57/2.40, RM;RN 1.04/2.52/3.60, O(1) 2.82/4.71/5.73; "
    "with DP-SGD at ε = 1, 3, 10 nothing",
    measured=f"SmolLM2, 1/2/3 passes: ε̃ {listed(tilde, between='/')}, null "
    f"{listed(by_review['null', 'PANORAMIA', NESTED], between='/')}; RM;RN "
    f"{listed(real, between='/')}, O(1) {listed(one_run, between='/')}",
    verdict="partly",
    why="TODO. Private tuning is tried on a smaller language model only (PAN-T9): nothing is left.",
    figure=["PAN-F26", "PAN-T9", "PAN-F20"],
    check=tilde.is_monotonic_increasing and (one_run > tilde).all(),
)
