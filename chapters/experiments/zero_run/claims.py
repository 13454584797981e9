"""What became of the claims of the paper on audits without a run of one's own."""

import numpy as np
import pandas as pd

from auditkit import claim, stored
from experiments.zero_run.audits import AUDITS, CORRECTED, LARGEST, SINGLE
from experiments.zero_run.crosswise import APART, CROSSWISE, HALF
from experiments.zero_run.synthetic import ESTIMATED, LINE, PLACEBO, TARGET, TRUE
from experiments.zero_run.tables import knows_the_members, knows_the_side
from experiments.zero_run.validity import (
    BOOTSTRAP,
    KNOWING,
    POINTWISE,
    REBASED,
    SIMULTANEOUS,
    summary,
)

# named again here: the modules that name them load torch
MIX, HARD = "CIFAR-10, class mix", "CIFAR-10, hard images"
CENSUS, PATIENTS = "census 1994, 1995", "patients, year 1, 3"
IID, OOD, FITTED, CROSS = "IID", "OOD", "fitted", "cross-fitted"
NARROW, WIDE = "10,000", "all that are left"
FEATURES, IMAGES = "head on features", "network on pixels"
SHORT = {MIX: "class mix", HARD: "hard images", CENSUS: "census", PATIENTS: "patients"}
PLAIN, PAPERS, OURS = "no correction", "conditional, aware", "sharp, posterior"
BY_RANK, POSTERIOR = "conditional, aware by rank", "conditional, posterior"

sums, whole = stored("zero-synthetic"), stored("zero-procedure")
networks = pd.concat([stored("zero-real"), stored("zero-patients")])
rates = summary(stored("zero-validity"))
crosswise = stored("zero-cross-fit")
factors, refusals = stored("zero-channel"), stored("zero-rejection")
betrayed, answers = stored("zero-betrayal"), stored("zero-response")


def of(frame: pd.DataFrame, column: str | None = None, **wanted):
    """Return the rows with these settings, or one column of them."""
    keep = np.ones(len(frame), bool)
    for name, value in wanted.items():
        keep &= frame[name].isin(value if isinstance(value, list) else [value]).to_numpy()
    assert keep.any(), f"nothing is stored of {wanted}"
    return frame[keep] if column is None else frame[column][keep]


def listed(values) -> str:
    """Return numbers with two digits, separated by commas."""
    return ", ".join(f"{value:.2f}" for value in values)


# the sum with a known leak


def exact(audit: str, rho: float, release: str = TARGET, choice: str = LARGEST) -> pd.Series:
    """Return the bounds of the ten draws in 10,000 dimensions, with true propensities."""
    wanted = {"dimension": 10_000, "propensities": TRUE, "release": release, "choice": choice}
    return of(sums, "mu", audit=audit, rho=rho, **wanted)


def narrow(audit: str, rho: float, source: str = ESTIMATED) -> float:
    """Return the mean bound in 3,000 dimensions."""
    wanted = {"dimension": 3000, "release": TARGET, "choice": LARGEST}
    return of(sums, "mu", audit=audit, rho=rho, propensities=source, **wanted).mean()


def procedure(rho: float, audit: str = PAPERS, release: str = TARGET, choice: str = LARGEST):
    """Return the bounds of all draws by the paper's whole procedure."""
    wanted = {"propensities": BOOTSTRAP, "release": release, "choice": choice}
    return of(whole, "mu", audit=audit, rho=rho, **wanted)


def alarms(rho: float, choice: str) -> str:
    """Return in how many draws a sum of other members seems to leak."""
    found = procedure(rho, release=PLACEBO, choice=choice)
    return f"{(found > 0).sum()} of {len(found)}"


def network(
    data,
    split,
    audit,
    source=BOOTSTRAP,
    release=TARGET,
    choice=LARGEST,
    *,
    kind=FEATURES,
    records=NARROW,
    column="mu",
) -> float:
    """Return the mean bound on networks of a kind, with fits on so many records."""
    wanted = {"propensities": source, "release": release, "choice": choice}
    wanted |= {"data": data, "split": split, "network": kind, "records": records}
    return of(networks, column, audit=audit, **wanted).mean()


RHOS, FEWER = (1.0, 0.98, 0.9, 0.75, 0.5, 0.25), (1.0, 0.9, 0.5, 0.25)

plain = exact(PLAIN, 1.0)
same = (plain.to_numpy() == exact("conditional, unaware", 1.0).to_numpy()).all()
fitted = {audit: narrow(audit, 1.0) for audit in (PLAIN, PAPERS)}
by_quantile = {audit: procedure(1.0, audit).mean() for audit in (PLAIN, PAPERS)}
on_images = {audit: network(MIX, "IID", audit) for audit in (PLAIN, PAPERS)}
claim(
    "ZERO-1",
    paper="without a shift one run and conditional zero run are “identically valid”, below 0.66",
    measured=f"true propensities: {plain.mean():.2f} for both, the same number in each of "
    f"{len(plain)} draws, largest {plain.max():.2f}; in 3,000 dimensions: {fitted[PLAIN]:.2f} "
    f"without correction against {fitted[PAPERS]:.2f} with propensities fitted on all features; "
    f"with the quantile over resamples: {by_quantile[PLAIN]:.2f} against {by_quantile[PAPERS]:.2f} "
    f"there, {on_images[PLAIN]:.2f} against {on_images[PAPERS]:.2f} on images without a shift",
    verdict="reproduced",
    why="Both are valid and below 0.66, and with true propensities they are one number. With the "
    "paper's quantile over bootstraps they part company, as in its own Figure 2b.",
    figure=("ZERO-F2a", "ZERO-T2", "ZERO-F8"),
    check=bool(
        same
        and plain.max() < 0.66
        and max(procedure(1.0, audit).max() for audit in (PLAIN, PAPERS)) < 0.66
        and fitted[PAPERS] > 0.75 * fitted[PLAIN]
        and on_images[PAPERS] < 0.5 * on_images[PLAIN]
        and by_quantile[PAPERS] < 0.7 * by_quantile[PLAIN]
    ),
)

above = {rho: exact(PLAIN, rho) for rho in RHOS}
seeming = {rho: exact(PLAIN, rho, PLACEBO).mean() for rho in (0.5, 0.25)}
claim(
    "ZERO-2",
    paper="uncorrected bound above μ = 0.66 under shift (figure, no numbers)",
    measured=f"{above[0.5].mean():.2f} at ρ = .5 and {above[0.25].mean():.2f} at ρ = .25, above "
    f"0.66 in {(above[0.25] > 0.66).sum()} of {len(above[0.25])} draws; on the placebo "
    f"{seeming[0.5]:.2f} and {seeming[0.25]:.2f}",
    verdict="reproduced",
    why="The bound, the largest of six as in the paper, rises with the shift and exceeds the "
    "truth. A sum that leaks nothing of the audited records gets a positive one as well.",
    figure=("ZERO-F2a", "ZERO-T2"),
    check=bool(
        above[0.25].mean() > 0.66
        and above[0.25].mean() > above[0.5].mean() > above[1.0].mean()
        and seeming[0.25] > 0.1
    ),
)

composed = {rho: exact("composition", rho) for rho in RHOS}
eight = of(betrayed, audit="Algorithm 8").sort_values("share", ascending=False).iloc[0]
claim(
    "ZERO-3",
    paper="the compositional correction is valid and soon powerless; Algorithms 6 to 8 are valid",
    measured=", ".join(f"{composed[rho].mean():.2f} at ρ = {rho:g}" for rho in (1.0, 0.98, 0.9))
    + f"; Algorithm 8 is false in {eight['share']:.0%} of runs where it allows "
    f"{eight['level']:.0%}",
    verdict="partly",
    why="What Corollary 1 says is valid (with true propensities and without the paper's quantile "
    "over bootstraps), and has no power left from ρ = .9 on unless examples are left out. "
    "Algorithm 8 is not valid: Proposition 6 is false (ZERO-F7).",
    figure=("ZERO-F2a", "ZERO-F7"),
    check=bool(
        max(found.max() for found in composed.values()) < 0.66
        and composed[0.9].mean() < 0.05
        and composed[0.5].max() == 0.0
        and eight["low"] > eight["level"]
    ),
)

aware = {rho: exact(PAPERS, rho).mean() for rho in RHOS}
ranked = {rho: exact(BY_RANK, rho).mean() for rho in RHOS}
unaware = exact("conditional, unaware", 0.25).mean()
sharp_left = exact(OURS, 0.25).mean()
true_line = [narrow(PAPERS, rho, TRUE) for rho in FEWER]
fitted_line = [narrow(PAPERS, rho) for rho in FEWER]
quantile_line = [procedure(rho).mean() for rho in FEWER]
claim(
    "ZERO-4",
    paper="the aware adversary stays “relatively flat”, the unaware one loses power",
    measured=f"from ρ = 1 to .25 the aware one falls from {aware[1.0]:.2f} to {aware[0.25]:.2f}, "
    f"the unaware one to {unaware:.2f}; by rank × b from {ranked[1.0]:.2f} to {ranked[0.25]:.2f}; "
    f"sharp tampering (ours) to {sharp_left:.2f}; in 3,000 "
    f"dimensions at ρ = 1, .9, .5, .25 the aware one has {listed(true_line)} with true "
    f"propensities, {listed(fitted_line)} with fitted ones, {listed(quantile_line)} by the lower "
    "quantile of 200 resamples",
    verdict="partly",
    why="The aware adversary keeps a part of its power where the unaware one loses all, but is not "
    "flat, by either reading of its confidence. What is flat or rises comes with fitted "
    "propensities that are too near ½, and a placebo has a part of it too.",
    figure=("ZERO-F2a", "ZERO-T2", "ZERO-T9"),
    check=bool(
        0.1 < aware[0.25] / aware[1.0] < 0.6
        and ranked[0.25] / ranked[1.0] < 0.6
        and unaware < 0.02
        and sharp_left > 1.5 * aware[0.25]
        and true_line[1] < 0.5 * true_line[0]
        and fitted_line[-1] > 2 * fitted_line[0]
        and min(quantile_line[1:3]) > 1.5 * max(quantile_line[0], quantile_line[3])
        and procedure(0.5, release=PLACEBO).min() > 0
    ),
)
# "The aware attack keeps a part: .28, .24, .13, .10 and .08 as ρ falls."
kept = [exact(PAPERS, rho, choice=CORRECTED).mean() for rho in RHOS[1:]]
assert listed(kept) == "0.28, 0.24, 0.13, 0.10, 0.08"
# "Both ranked by the posterior, sharp tampering proves 1.2 to 1.9 times what e^-s does."
ours = {rho: exact(OURS, rho, choice=CORRECTED).mean() for rho in RHOS}
gains = [
    ours[rho] / exact("conditional, posterior", rho, choice=CORRECTED).mean() for rho in RHOS[2:]
]
assert [round(min(gains), 1), round(max(gains), 1)] == [1.2, 1.9]
# "Hence at ρ = .98 sharp tampering proves more than no correction with a plain ranking."
assert ours[0.98] > exact(PLAIN, 0.98, choice=CORRECTED).mean()
# "Every correction is below 0.66 on the sum, and silent on the placebo, but for .01 in one of sixty
# draws. (That draw has no shift.)"
corrected = {"dimension": 10_000, "propensities": TRUE, "choice": CORRECTED}
for audit in list(AUDITS)[1:]:
    assert of(sums, "mu", audit=audit, release=TARGET, **corrected).max() < 0.66
    silent = of(sums, audit=audit, release=PLACEBO, **corrected)
    loud = silent[silent["mu"] > 0]
    assert (len(silent), loud["rho"].tolist(), loud["mu"].round(2).tolist()) == (60, [1.0], [0.01])
# "In the third panel composition at ρ = ¼ is .16 on average, and .74, which is false, in one draw."
strays = of(
    sums,
    "mu",
    audit="composition",
    rho=0.25,
    dimension=3000,
    propensities=ESTIMATED,
    release=TARGET,
    choice=CORRECTED,
).sort_values()
assert listed([strays.mean(), strays.iloc[-1]]) == "0.16, 0.74"
assert strays.iloc[-2] < 0.66
# "In 3,000 dimensions true propensities give .16, .07, .10 and .10, fitted .14, .28, .38 and .46."
assert listed(true_line) == "0.16, 0.07, 0.10, 0.10"
assert listed(fitted_line) == "0.14, 0.28, 0.38, 0.46"
# "At ρ = .5 a sum that leaks nothing gets a positive bound in all six draws, with the sweep
# corrected too. Composition is 0 everywhere."
assert alarms(0.5, LARGEST) == alarms(0.5, CORRECTED) == "6 of 6"
assert of(whole, "mu", audit="composition", propensities=BOOTSTRAP).max() == 0.0

# networks, on real data


def both(data: str, audit: str, source: str = BOOTSTRAP, **more) -> tuple[float, float]:
    """Return the bounds with a shift and without one."""
    return network(data, OOD, audit, source, **more), network(data, IID, audit, source, **more)


def against(found: dict[str, tuple[float, float]]) -> str:
    """Return pairs in words."""
    return ", ".join(
        f"{SHORT[data]} {shifted:.2f} against {unshifted:.2f}"
        for data, (shifted, unshifted) in found.items()
    )


PICTURES, BOTH = (MIX, HARD), (PAPERS, BY_RANK)
by_size, by_rank, by_posterior = (
    {data: both(data, audit) for data in SHORT} for audit in (PAPERS, BY_RANK, POSTERIOR)
)
more_records = {data: both(data, BY_RANK, records=WIDE) for data in (*PICTURES, CENSUS)}
on_pixels = {data: both(data, BY_RANK, kind=IMAGES) for data in PICTURES}
one_run = network(MIX, IID, PLAIN, FITTED)
sharp_iid = network(MIX, IID, "sharp, unaware")
price = {source: network(MIX, IID, PAPERS, source) for source in (TRUE, FITTED, BOOTSTRAP)}
# on images, of either kind of network, fitted on 10,000 records or on all that are left
left = {
    audit: [
        np.divide(*both(data, audit, kind=kind, records=records))
        for data in PICTURES
        for kind in (FEATURES, IMAGES)
        for records in (NARROW, WIDE)
    ]
    for audit in BOTH
}
by_truth = {MIX: both(MIX, BY_RANK, TRUE)}
unaware_left, composed_left = (
    [network(data, OOD, audit) for data in SHORT]
    for audit in ("conditional, unaware", "composition")
)
loud = network(HARD, OOD, BY_RANK, BOOTSTRAP, PLACEBO, CORRECTED)
# on the class mix, where the regression sees all that decides; on hard images it does not
silent = max(
    network(MIX, OOD, audit, source, PLACEBO, CORRECTED, kind=kind, records=records)
    for audit in (*BOTH, POSTERIOR)
    for source, records in ((TRUE, NARROW), (BOOTSTRAP, NARROW), (BOOTSTRAP, WIDE))
    for kind in (FEATURES, IMAGES)
)
claim(
    "ZERO-5",
    paper="OOD .645, IID .652; one run on IID data 1.7, a penalty of about 1 for estimating "
    "propensities and for the doubt about them",
    measured="conditional, aware, bootstrapped, OOD against IID: by confidence × b "
    f"{against(by_size)}; by rank × b {against(by_rank)}, fitted on all records that are left "
    f"{against(more_records)}, networks on pixels {against(on_pixels)}; by the posterior "
    f"{against(by_posterior)}; by rank × b with true propensities {against(by_truth)}; one run on "
    f"IID images {one_run:.2f}; OOD the unaware attack {listed(unaware_left)}, composition "
    f"{max(composed_left):.2f}; placebo with the sweep corrected: class mix at most {silent:.2f}, "
    f"hard images by rank {loud:.2f}",
    verdict="partly",
    why="On images 30 to 60% of the IID bound is left by confidence × b and 57 to 72% by rank; the "
    "paper does not say which it takes. With true propensities the rank keeps all of it on the "
    "class mix, so there the loss, like the penalty of about 1, is the price of estimating; of "
    "what hard images keep, a harmless head gets a part.",
    figure=("ZERO-F9", "ZERO-F2b", "ZERO-T6"),
    check=bool(
        0.6 < one_run - by_size[MIX][1] < 1.4
        and [round(min(left[PAPERS]), 1), round(max(left[PAPERS]), 1)] == [0.3, 0.6]
        and [round(min(left[BY_RANK]), 2), round(max(left[BY_RANK]), 2)] == [0.57, 0.72]
        and by_truth[MIX][0] == by_truth[MIX][1]
        and max(composed_left) == 0.0
        and by_rank[PATIENTS][0] < by_rank[CENSUS][0]
        and one_run - price[TRUE] < 0.01
        and sharp_iid > price[BOOTSTRAP]
        and silent < 0.05
    ),
)
# "Fitted crosswise, by Algorithm 4, the same audit finds nearly what it finds with other records."
assert 0 < price[FITTED] - network(MIX, IID, PAPERS, CROSS) < 0.15
# "Without a shift the quantile is .61 to .72. With one it is .23 to .45 by confidence × b, and .47
# or .48 by rank × b."
drawn = stored("zero-density").query("release == @TARGET")
for reading, split, low, high in (
    (PAPERS, IID, 0.61, 0.72),
    (BY_RANK, IID, 0.61, 0.72),
    (PAPERS, OOD, 0.23, 0.45),
    (BY_RANK, OOD, 0.47, 0.48),
):
    quantiles = of(drawn, "quantile", audit=reading, split=split).round(2)
    assert quantiles.between(low, high).all(), (reading, split)
# "Means of five draws are .72 to .76 without a shift on images. The unaware attack keeps .09 to .21
# on images and .47 on the census."
unshifted, unaware_shifted = (
    [network(data, split, audit, kind=kind) for data in PICTURES for kind in (FEATURES, IMAGES)]
    for split, audit in ((IID, PAPERS), (OOD, "conditional, unaware"))
)
assert listed([min(unshifted), max(unshifted)]) == "0.72, 0.76"
assert listed([min(unaware_shifted), max(unaware_shifted), unaware_left[2]]) == "0.09, 0.21, 0.47"
# "Composition pays .04 there for the same resamples."
assert round(one_run - network(MIX, IID, "composition"), 2) == 0.04
# "On hard images a harmless head has .18 of the .47 by rank."
harmless_head = network(HARD, OOD, BY_RANK, BOOTSTRAP, PLACEBO)
assert listed([harmless_head, by_rank[HARD][0]]) == "0.18, 0.47"
# "More records lift the class mix to .63 with a shift, by rank, and to .89 without."
assert listed(more_records[MIX]) == "0.63, 0.89"
# "Without a shift all guesses on images are right, yet 5.60 stands against 4.23. On hard images a
# head that has never seen an audited image gets ε ≥ .94 and .90, and 0 with the true propensities."
by_delta = of(networks, choice=SINGLE, records=NARROW, network=FEATURES)
by_delta = by_delta[by_delta["audit"].str.startswith("(ε, δ)")]
truths = of(by_delta, propensities=TRUE, split=IID, data=list(PICTURES), release=TARGET)
assert (truths["correct"] == truths["guesses"]).all()
harmless = of(by_delta, data=HARD, split=OOD, release=PLACEBO)
for audit, with_truth, falsely in (
    ("(ε, δ), conditional", 5.60, 0.94),
    ("(ε, δ), untampered", 4.23, 0.90),
):
    assert (of(truths, "bound", audit=audit).round(2) == with_truth).all()
    assert round(of(harmless, "bound", audit=audit, propensities=FITTED).mean(), 2) == falsely
    assert of(harmless, "bound", audit=audit, propensities=TRUE).max() == 0.0
# "composition finds less than thinning wherever there is a shift"
shifted = of(by_delta, split=OOD, release=TARGET, propensities=[TRUE, FITTED])
shifted = shifted.groupby(["audit", "data", "propensities"])["bound"].mean()
assert (shifted["(ε, δ), composition"] < shifted["(ε, δ), conditional"]).all()
heads = of(networks, network=FEATURES, records=NARROW)
surest = of(heads, audit=PLAIN, propensities=FITTED, release=TARGET, choice=SINGLE)
right = surest.groupby("data")["correct"].agg(["min", "max"]) / 1000
assert (right.loc[[MIX, HARD], "min"] > 0.99).all()
judged = of(heads, split=OOD, audit=PLAIN, propensities=FITTED, choice=SINGLE, release=TARGET)
refused = judged.groupby("data")["refused"].sum()
assert refused[[PATIENTS, HARD]].tolist() == [5, 5]
# "On hard images the placebo gets a bound: without a correction, with fitted and bootstrapped
# propensities; with true ones it gets none."
stray = {
    (audit, source): network(HARD, OOD, audit, source, PLACEBO, CORRECTED)
    for audit in AUDITS
    for source in (FITTED, BOOTSTRAP, TRUE)
}
assert stray[PLAIN, FITTED] > 0.2
assert stray[OURS, BOOTSTRAP] > 0.1
assert max(stray[audit, TRUE] for audit in list(AUDITS)[1:]) < 0.02

# how often an audit of nothing finds a leak


def worst(**wanted) -> pd.Series:
    """Return the attack that breaks an audit most often, at ρ = .5 and with a corrected sweep."""
    found = of(rates, **{"rho": 0.5, "choice": CORRECTED, **wanted})
    return found.sort_values("share", ascending=False, kind="stable").iloc[0]


def resampled(name: str, dimension: int, correction: str = "conditional", **more) -> pd.Series:
    """Return the same, of propensities that were bootstrapped."""
    wanted = {"source": "resampled", "propensities": name, "dimension": dimension}
    return worst(correction=correction, **wanted, **more)


def shares(rows) -> str:
    """Return shares in percent, separated by commas."""
    return ", ".join(f"{row['share']:.0%}" for row in rows)


WIDTHS = (50, 300, 1000)
lower, rebased, lower_sharp = (
    {width: resampled(name, width, correction) for width in WIDTHS}
    for name, correction in (
        (BOOTSTRAP, "conditional"),
        (REBASED, "conditional"),
        (BOOTSTRAP, "sharp"),
    )
)
by_aware, rebased_aware, swept_aware, bounded_aware = (
    {width: resampled(name, width, ranking=ranking, choice=choice) for width in WIDTHS}
    for name, ranking, choice in (
        (BOOTSTRAP, "aware", CORRECTED),
        (REBASED, "aware", CORRECTED),
        (BOOTSTRAP, "aware", LARGEST),
        (BOOTSTRAP, "aware by rank", CORRECTED),
    )
)
single = resampled(BOOTSTRAP, 1000, choice=SINGLE)
claim(
    "ZERO-6",
    paper="the p′-quantile of K bootstrapped bounds is valid with probability 1 − p − p′ = 0.95, "
    "under regularity conditions that cannot be verified in practice",
    measured="false at μ = 0: "
    + "; ".join(
        f"{name} " + ", ".join(f"{row['share']:.0%} (d = {width})" for width, row in found.items())
        for name, found in (("lower quantile", lower), ("re-based", rebased))
    )
    + f"; the paper's own aware attack {shares(by_aware.values())} and re-based "
    f"{shares(rebased_aware.values())}, with the paper's uncorrected sweep "
    f"{shares(swept_aware.values())}, by rank × b {shares(bounded_aware.values())}; lower "
    f"quantile with 1,000 guesses {single['share']:.0%} "
    "(d = 1000); lower quantile with sharp tampering "
    + ", ".join(f"{row['share']:.0%} (d = {width})" for width, row in lower_sharp.items())
    + f"; the aware attack in 3,000 dimensions {alarms(0.5, CORRECTED)} draws",
    verdict="partly",
    why="By the strongest of our attacks the lower quantile with the paper's tampering keeps the "
    "level in 50 and 300 dimensions and fails in 1,000; re-based, or with sharp tampering, it "
    "fails in all. Resamples show how a fit varies, and not what every fit misses.",
    figure=("ZERO-T3", "ZERO-F4", "ZERO-T9"),
    check=bool(
        not lower[50]["broken"]
        and not lower[300]["broken"]
        and lower[1000]["broken"]
        and all(row["broken"] for row in rebased.values())
        and rebased[300]["low"] > 0.5
        and not any(row["broken"] for row in by_aware.values())
        and swept_aware[1000]["broken"]
        and [row["broken"] for row in bounded_aware.values()] == [False, False, True]
        and single["broken"]
        and lower_sharp[50]["broken"]
        and min(lower_sharp[width]["low"] for width in (300, 1000)) > 0.5
        and procedure(0.5, release=PLACEBO, choice=CORRECTED).min() > 0
    ),
)
# "With 1,000 guesses … 50 and 300 dimensions hold too."
assert max(resampled(BOOTSTRAP, width, choice=SINGLE)["share"] for width in (50, 300)) == 0.0
# "By rank × b they are false in 18% of audits in 1,000 dimensions."
assert round(bounded_aware[1000]["share"], 2) == 0.18
# "With one fixed number of guesses every correction keeps its level. The largest of six does not.
# Without a correction nearly all audits are false."
formula = of(rates, source="formula")
paid = formula[(formula["correction"] != "none") & (formula["choice"] != LARGEST)]
assert not paid["broken"].any()
assert of(formula, "broken", choice=LARGEST)[formula["correction"] != "none"].any()
assert worst(source="formula", correction="none", choice=SINGLE)["share"] > 0.9
# "A regression on the known direction is safe with e^-s; with sharp tampering it is false in up to
# 5% of audits."
direction = of(rates, source="fitted", rho=0.5, propensities=LINE, choice=[SINGLE, CORRECTED])
assert not of(direction, "broken", correction="conditional").any()
assert round(of(direction, "share", correction="sharp").max(), 2) == 0.05
# "One on 1,000 features is hopeless. In 50 dimensions some of the error shows; sharp tampering is
# false in 72% of audits against an attack that knows the shift, in 35% against the posterior; the
# untampered audit in 91%."
half_right, hopeless = (
    {
        correction: worst(
            source="fitted", propensities=ESTIMATED, dimension=width, correction=correction
        )
        for correction in ("conditional", "sharp", "untampered")
    }
    for width in (50, 1000)
)
assert min(hopeless[one]["share"] for one in ("conditional", "sharp")) > 0.95
assert half_right["conditional"]["broken"]
assert half_right["sharp"]["share"] > 0.5 > half_right["conditional"]["share"]
found = of(rates, source="fitted", propensities=ESTIMATED, dimension=50, rho=0.5, choice=CORRECTED)
found = found[found["correction"] == "sharp"].set_index("ranking")["share"]
assert found[[KNOWING, "posterior"]].round(2).tolist() == [0.72, 0.35]
assert round(half_right["untampered"]["share"], 2) == 0.91
assert half_right["untampered"]["ranking"] == KNOWING
# "Every audit with limits, one number of guesses or a corrected sweep keeps its level."
held = of(rates, source="fitted", propensities=[POINTWISE, SIMULTANEOUS])
held = of(held, correction=["composition", "conditional", "sharp"], choice=[SINGLE, CORRECTED])
assert not held["broken"].any()
# "With 1,000 guesses, at 200 records a feature, sharp tampering was false in 85% of audits, against
# an attack that knows the shift. With limits it was false in none. At 10 a feature in all."
few = {"correction": "sharp", "choice": SINGLE, "rho": 0.5, "source": "fitted"}
few |= {"ranking": KNOWING}
plain_fits = of(rates, propensities=ESTIMATED, **few).set_index("dimension")["share"]
assert plain_fits.round(2).to_dict() == {50: 0.85, 1000: 1.0}
assert of(rates, "share", propensities=SIMULTANEOUS, **few).max() == 0.0
# "The gate: a regression on 1,000 features does not get through. In 50 dimensions most models pass,
# and with sharp tampering most false bounds pass with them."
gross, small = hopeless["sharp"], half_right["sharp"]
assert gross["rejected"] > 0.9 * gross["runs"]
assert small["rejected"] < 0.5 * small["runs"]
assert small["passed"] > 0.5 * small["exceeding"]

# Algorithm 4: "Fitted crosswise, an audit is false about as often as with half as many others, and
# a little more often in 10 dimensions."
drawn = of(crosswise, rho=0.5, choice=CORRECTED, ranking=["posterior", KNOWING])
shares_of = drawn.groupby(["propensities", "correction", "ranking", "dimension"])[
    "exceeding"
].mean()
for correction in ("conditional", "sharp"):
    others, half_as_many, cross = (
        shares_of[source][correction] for source in (APART, HALF, CROSSWISE)
    )
    assert (cross - half_as_many).abs().max() < 0.04
    assert (others <= half_as_many).all()

# wrong propensities

safe = factors[(factors["scale"] >= 1.0) & (factors["correction"] != "none")]
false = of(factors, mu=0.0).set_index(["correction", "scale"])
claim(
    "ZERO-7",
    paper="exact or pessimistic propensities: valid; optimistic ones can invalidate the audit",
    measured="false at μ = 0, log-odds times .8: "
    f"sharp {false['share']['sharp', 0.8]:.0%}, conditional "
    f"{false['share']['conditional', 0.8]:.1%}; times .5: {false['share']['sharp', 0.5]:.0%} and "
    f"{false['share']['conditional', 0.5]:.1%}; times 1 or more: at most {safe['share'].max():.1%}",
    verdict="reproduced",
    why="Pessimistic propensities keep every audit below its level of 2.5%, and optimistic ones "
    "break sharp tampering at once. The paper's tampering throws away so much that a factor of one "
    "half brings it no further than its level; a fit in 1,000 dimensions breaks it (ZERO-F4).",
    figure=("ZERO-F5", "ZERO-F4"),
    check=bool(
        (safe["low"] <= safe["level"]).all()
        and false["low"]["sharp", 0.8] > 0.025
        and false["low"]["conditional", 0.5] <= 0.025
        and hopeless["conditional"]["low"] > 0.5
    ),
)

thinned = of(refusals, test="thinned").groupby("model")
range_of = thinned["share"].agg(["min", "max"])
spans = {model: f"{found['min']:.0%} to {found['max']:.0%}" for model, found in range_of.iterrows()}
claim(
    "ZERO-8",
    paper="a propensity model can be falsified by the audit at ε = 0",
    measured=f"refused over three sizes of shift: true {spans['true']}, log-odds times .5 "
    f"{spans['50%']}, times .8 {spans['80%']}, times .95 {spans['95%']}, a feature missing "
    f"{spans['a feature missing']}",
    verdict="reproduced",
    why="Wrong by a fifth is found nearly always, by a rival who knows the truth, and a right "
    "model is refused at about the level of 5%. Small errors mostly pass, and so do propensities "
    "too far from ½: a model that passes is not thereby right.",
    figure="ZERO-F6",
    check=bool(
        thinned["low"].max()["true"] <= 0.05
        and range_of["min"]["80%"] > 0.8
        and range_of["min"]["50%"] == 1.0
        and range_of["max"]["95%"] < 0.5
        and range_of["max"]["120%"] < 0.05
    ),
)

# limits of what can be audited

NUMBERS = np.arange(1, 500)
sides = np.concatenate((NUMBERS, -NUMBERS))
alike = {
    overlap: bool((knows_the_side(own, sides) == knows_the_members(own, sides)).all())
    for overlap, own in ((False, NUMBERS), (True, sides[::2]))
}
claim(
    "ZERO-9",
    paper="without overlap no valid audit can reject, even for a model that is not private at all",
    measured="without overlap the harmless model and the leaky one give the same output; with it "
    "they do not",
    verdict="reproduced",
    why="It is an identity: what is valid for the first model is silent on the second.",
    figure="ZERO-T1",
    check=alike == {False: True, True: False},
)

told = answers.set_index(["audit", "shift", "delta"]).sort_index()
means = told["mean_epsilon"].unstack("audit")
pair = means.loc[:, ["conditional", "untampered"]]
ahead = (pair["untampered"] - pair["conditional"]).unstack("delta")[[0.0, 1e-5]]
claim(
    "ZERO-10",
    paper="equivalent for pure ε; for δ > 0 the tampered audit is stronger",
    measured="mean bound, tampered against untampered: "
    + "; ".join(
        f"δ = {delta:g}: "
        + ", ".join(
            "{:.2f} against {:.2f}".format(*pair.loc[shift, delta]) + f" at shift {shift:g}"
            for shift in (0.0, 1.0, 2.0)
        )
        for delta in (0.0, 1e-5)
    ),
    verdict="partly",
    why="Under a shift the untampered audit is the stronger one at δ = 0, and by our own terms "
    "for δ at 1e-5 too; with the printed terms it pays more for δ, as the paper says.",
    figure="ZERO-T8",
    check=bool(
        abs(ahead.loc[0.0, 0.0]) < 1e-6
        and ahead.loc[0.0, 1e-5] < 0
        and (ahead.loc[0.5:] > 0.01).all(axis=None)
        # both stay within their level
        and of(answers, "low", audit=["conditional", "untampered"], delta=[0.0, 1e-5]).max() <= 0.05
    ),
)
