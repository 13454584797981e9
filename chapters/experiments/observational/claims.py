"""What became of the claims of the paper on observational audits, and of what its chapter says."""

import math
from collections.abc import Iterable
from itertools import pairwise

import pandas as pd

from auditkit.claims import claim
from auditkit.experiment import stored

# Tables 1, 6 and 4 of the paper: sweep, 1%, accuracy in %, each at ε = ∞, 10, 1
PAPER_IMAGES = {
    "LP-1ST": ((2.13, 2.02, 0.43), (1.98, 1.99, 0.41), (91.3, 91.07, 60.4)),
    "LP-1ST (out-of-domain prior)": ((2.26, 1.86, 0.90), (2.08, 1.78, 0.81), (92.1, 91.5, 87.9)),
    "PATE-FM": ((2.42, 2.22, 0.79), (2.26, 2.16, 0.74), (92.5, 92.3, 91.3)),
    "ALIBI": ((2.53, 2.18, 0.67), (2.43, 2.10, 0.65), (90.1, 87.1, 66.9)),
}
# Tables 2 and 5: sweep and log-loss, each at ε = ∞, 8, 4, 2, 1, 0.1
PAPER_CENSUS = {
    "LP-1ST": ((1.37, 1.29, 1.22, 0.59, 0.34, 0.06), (0.130, 0.130, 0.136, 0.206, 0.362, 0.653)),
    "LP-1ST (domain prior)": ((1.47, 1.37, 1.28), (0.130, 0.130, 0.136)),
    "LP-1ST (noise correction)": (
        (1.31, 1.26, 1.04, 0.52, 0.40, 0.06),
        (0.130, 0.130, 0.131, 0.156, 0.171, 0.645),
    ),
    "LP-2ST": ((1.52, 1.46, 1.24, 0.75, 0.61, 0.06), (0.130, 0.130, 0.123, 0.207, 0.342, 0.527)),
    "PATE": ((1.60, 1.48, 1.28, 0.71, 0.59, 0.06), (0.130, 0.151, 0.156, 0.188, 0.255, 0.680)),
}
PAPER_TEXTS = {"label inference": 2.34, "difficulty calibration": 0.72, "RMIA": 2.52}  # Table 7
PATE, PATE_TABLE, IN_DOMAIN = "PATE-FM", "PATE", "LP-1ST (in-domain prior)"
FRESH, CHECKPOINT, PASSES = "fresh weights", "earlier checkpoint", 16
# names in two or three lines, for panels
NAMES = {
    name: name.replace(" (", "\n(").replace("-domain prior", "-domain\nprior")
    for name in (*PAPER_IMAGES, IN_DOMAIN, *PAPER_CENSUS)
}


def ends(values: Iterable[float], digits: str = ".2f") -> str:
    """Return the least and the largest of some numbers, as text."""
    said = [f"{value:{digits}}" for value in sorted(values)]
    return said[0] if said[0] == said[-1] else f"{said[0]} to {said[-1]}"


def told(*frames: pd.DataFrame) -> pd.DataFrame:
    """Return audits one below the other, with ε as text and whose number each is."""
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(
        ε=frame["epsilon"].map("{:g}".format).replace("inf", "∞"),
        who=frame["played_on"].replace("training", "ours"),
    )


def mean(frame: pd.DataFrame, column: str = "bound", **setting: object) -> float:
    """Return a mean over trainings, of label inference and a sweep unless said otherwise."""
    usual = {"attack": "label inference", "reference": "trained", "guesses": "sweep"}
    wanted = pd.Series({**usual, "played_on": "training", **setting})
    found = frame[(frame[list(wanted.index)] == wanted).all(axis=1)]
    assert len(found), f"nothing is stored of {dict(wanted)}"
    assert not found["seed"].duplicated().any(), f"{dict(wanted)} is more than one setting"
    return float(found[column].mean())


def in_panels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return audits with the place of their panel, images before the census, by ε."""
    panel = (frame["data"] + ": " + frame["mechanism"]).str.replace(" (", "\n(", regex=False)
    panel = panel.str.replace("features: ", "features:\n")
    kinds = ("pixels", "features", "census")
    order = sorted(panel.unique(), key=lambda name: (kinds.index(name.partition(":")[0]), name))
    placed = frame.assign(panel=panel, place=panel.map(order.index))
    return placed.sort_values(["epsilon", "place"], kind="stable")


def panels(frame: pd.DataFrame) -> dict:
    """Return what the places of `in_panels` are called."""
    return dict(zip(frame["place"], frame["panel"], strict=True))


# Randomised response

response = stored("obs-randomized-response")
# what the figures show: one draw of data, a proxy that is the law or fitted on as many examples
once = response[(response["draws"] == 1) & (response["epsilon"] > 0)]
law = once[once["proxy"] == "posterior"].assign(
    gaussian_share=once["gaussian"] / once["epsilon"],
    ideal_share=once["ideal_gaussian"] / once["epsilon"],
    pure_share=once["pure"] / once["epsilon"],
)
by_paper, by_ratio = (law[law["attack"] == name] for name in ("paper", "likelihood ratio"))
tight = by_paper.query("guesses == 0.001 and 1 <= epsilon <= 4")
generous = by_paper.query("guesses == 0.01 and epsilon >= 2")["ideal_share"]
# what the figure draws: the paper's score with either proxy, and the best that is ours beside it
shares = once[once["attack"] == "paper"].assign(
    gaussian_share=once["gaussian"] / once["epsilon"],
    ideal_share=once["ideal_gaussian"] / once["epsilon"],
)
best = by_ratio[["classes", "epsilon", "guesses", "pure_share"]]
shares = shares.merge(best.rename(columns={"pure_share": "best_share"}))
shares = shares.sort_values("guesses", kind="stable")
claim(
    "OBS-1",
    paper="tight for ε from 1 to 4 (figure, no numbers)",
    measured=f"{ends(tight['gaussian_share'], '.0%')} of the true ε",
    verdict="partly",
    why="The audit follows the truth from below: part of the gap is the score's, part the "
    f"family's. An ideal attacker is credited with {ends(tight['ideal_share'], '.0%')} at this "
    "number of guesses and this δ, and with more than the truth at ten times as many, so that "
    "tightness of the Gaussian ε is a choice of δ and of guesses.",
    figure="OBS-F2",
    check=tight["gaussian_share"].min() > 0.65
    and tight["gaussian_share"].max() < 0.95
    and tight["ideal_share"].max() < 1.0,
)
# "even an ideal attacker is credited with 81 to 92%", "from ε = 2 on, up to 110%"
assert ends(tight["ideal_share"], ".0%") == "81% to 92%"
assert generous.min() > 1.0
assert f"{generous.max():.0%}" == "110%"
# "With 2 classes and ε = 4, over ten draws of data, the paper's score reaches 69%, the ratio 91%"
anew = response.query("draws == 10 and proxy == 'posterior' and classes == 2 and epsilon == 4")
anew = anew[anew["guesses"] == 0.001].set_index("attack")["gaussian"] / 4.0
assert {name: f"{share:.0%}" for name, share in anew.items()} == {
    "paper": "69%",
    "likelihood ratio": "91%",
}
# "With the likelihood ratio its mean stays below the truth and reaches 87 to 96% of it"
pure = by_ratio.query("guesses == 0.01 and 1 <= epsilon <= 4")["pure_share"]
assert by_ratio["pure_share"].max() < 1.0
assert ends(pure, ".0%") == "87% to 96%"

few, many = (
    by_paper.query("guesses == @share and epsilon <= 0.5")["gaussian_share"]
    for share in (0.001, 0.01)
)
middle = by_paper.query("epsilon == 4").set_index(["classes", "guesses"])["gaussian"]
poor = response.query("fresh == 1000 and classes == 10 and epsilon == 1 and attack == 'paper'")
poor = poor.set_index("guesses")["gaussian"]
assert f"{poor[0.001]:.2f}" == "1.31"  # "reports ε = 1 as 1.31"
claim(
    "OBS-2",
    paper="0.1% of guesses overestimates small ε; 1% repairs it and is looser in the middle",
    measured=f"0.1%: {ends(few, '.0%')} of ε ≤ ½, 1%: {ends(many, '.0%')}",
    verdict="not reproduced",
    why="The mean bound stays below the truth at small ε with either number of guesses, closer "
    "with more; in the middle more guesses loosen the audit for 2 classes only, where unlikely "
    "labels run out. Varied: classes, score and proxy, of which one fitted on 1,000 examples of 10 "
    f"classes overestimates (ε = 1 as {poor[0.001]:.2f}), but 1% of guesses repair little of it "
    f"({poor[0.01]:.2f}).",
    figure="OBS-F2",
    check=few.max() < 1.0
    and many.max() < 1.0
    and many.min() > few.min()
    and by_ratio.query("epsilon <= 0.5")["gaussian_share"].max() < 1.0
    and poor.min() > 1.2
    and middle[2, 0.001] > middle[2, 0.01]
    and middle[10, 0.001] < middle[10, 0.01],
)

proxies = response.query("attack == 'paper' and guesses == 0.01")
truth = proxies.query("proxy == 'posterior' and draws == 1")[["classes", "epsilon", "gaussian"]]
beside = proxies.merge(truth, on=["classes", "epsilon"], suffixes=("", "_by_law"))
gaps = (beside["gaussian"] - beside["gaussian_by_law"]).abs().groupby(beside["fresh"]).max()
null = response.query("fresh == 1000 and epsilon == 0 and classes == 10")["gaussian"].max()
claim(
    "OBS-3",
    paper="logistic regression serves as well as the true law",
    measured=f"difference at 1% of guesses at most {gaps[1_000_000]:.2f} when fitted on 1,000,000 "
    f"examples, {gaps[1000]:.2f} on 1,000",
    verdict="reproduced",
    why="With as many fresh examples as are audited the two agree; the paper does not say how many "
    f"it used. With 1,000 and 10 classes the audit reports up to {null:.2f} where nothing is "
    "released at all.",
    figure="OBS-F2",
    check=gaps[1_000_000] < 0.15 and gaps[1000] > gaps[1_000_000] and null > 0.1,
)

shift = stored("obs-shift").query("attack == 'paper'")
left = shift.groupby("tau")["accounted"].max()
at = shift.query("epsilon == 2 and tau == 1e-3").set_index("guesses")["accounted"]
claim(
    "OBS-4",
    paper="larger τ lowers the bound, near 0 at τ ≥ 0.01; more guesses help",
    measured=f"at τ = 0.01 at most {left[1e-2]:.2f}; at τ = 0.001, ε = 2: "
    + ", ".join(f"{share:.1%}: {value:.2f}" for share, value in at.items()),
    verdict="reproduced",
    why="The theorem takes τ off in units of all examples, however few are guessed on.",
    figure="OBS-F4",
    check=left[1e-2] < 0.4 and left[1e-1] == 0 and at[0.5] > at[0.1] > at[0.01],
)
# "with 1% of them, ε = 0.5 is reported as 1.6, and with 0.1% every ε as 6.2"
far = shift.query("tau == 0.1").set_index(["guesses", "epsilon"])["believed"]
assert f"{far[0.01, 0.5]:.1f}" == "1.6"
assert {f"{value:.1f}" for value in far[0.001]} == {"6.2"}
# "Taking τ for 0 does no harm here up to τ = 0.01"
believed = shift[shift["tau"] <= 0.01]
assert (believed["believed"] <= 1.01 * believed["epsilon"]).all()

# Images

published = [
    {"mechanism": name, "epsilon": epsilon, "seed": 0, "reference": "trained"}
    | {"attack": "label inference", "played_on": "paper", "guesses": guesses}
    | {"bound": bound, "accuracy": accuracy / 100}
    for name, (sweeps, fixed, accuracies) in PAPER_IMAGES.items()
    for guesses, bounds in (("sweep", sweeps), ("1%", fixed))
    for epsilon, bound, accuracy in zip((math.inf, 10.0, 1.0), bounds, accuracies, strict=True)
]
NETWORKS = ("LP-1ST", "LP-1ST (out-of-domain prior)", IN_DOMAIN, "ALIBI")


def under_every_name(frame: pd.DataFrame) -> pd.DataFrame:
    """Return audits with those at ε = ∞ for all mechanisms: without noise all train one network."""
    free = frame[frame["epsilon"] == math.inf]
    others = [free.assign(mechanism=name) for name in NETWORKS[1:]]
    return pd.concat([frame, *others], ignore_index=True)


audits = stored("obs-networks-audits")
alike = audits.query("start == @FRESH and passes == @PASSES")
# what the figures draw: networks on pixels, their nulls, the same of drawn labels, PATE-FM on
# features, the paper's values
pixels = told(
    pd.DataFrame(published),
    under_every_name(alike.query("game == 'observational' and not calibrated")),
    under_every_name(
        alike.query("game == 'null' and not calibrated and played_on == 'training'")
    ).assign(played_on="null"),
    under_every_name(alike.query("game == 'interventional' and played_on == 'training'")).assign(
        played_on="interventional"
    ),
    stored("obs-images-pate").query("reference == 'trained'").assign(mechanism=PATE),
)
# and how good the models are
skill = pixels.query("attack == 'label inference' and guesses == '1%' and who in ('paper', 'ours')")
skill = skill.assign(percent=100 * skill["accuracy"], level="ε = " + skill["ε"])
skill = skill.sort_values("epsilon", ascending=False, kind="stable")
LEVELS = (("ε = ∞", math.inf), ("10", 10.0), ("1", 1.0))
found = {
    (name, epsilon): mean(pixels, mechanism=name, epsilon=epsilon)
    for name in NETWORKS
    for _, epsilon in LEVELS
}
votes = [mean(pixels, mechanism=PATE, epsilon=epsilon) for _, epsilon in LEVELS]
vote_placebos = [
    mean(pixels, mechanism=PATE, epsilon=epsilon, played_on="placebo") for _, epsilon in LEVELS
]
placebo = mean(pixels, mechanism="LP-1ST", epsilon=math.inf, played_on="placebo")
off = max(
    abs(found[name, epsilon] - bound)
    for name, (sweeps, _, _) in PAPER_IMAGES.items()
    for (_, epsilon), bound in zip(LEVELS[:2], sweeps, strict=False)
    if name != PATE
)
put_right = alike.query("calibrated and game == 'observational' and epsilon == 1")
least = mean(put_right, mechanism="LP-1ST")
least_placebo = mean(put_right, mechanism="LP-1ST", played_on="placebo")
claim(
    "OBS-5",
    paper="ε = ∞: 2.13 to 2.53, 10: 1.86 to 2.22, 1: .43 to .90; ordered, below ε",
    measured=", ".join(
        f"{said}: {ends(found[name, epsilon] for name in NETWORKS)}" for said, epsilon in LEVELS
    )
    + " for networks on pixels; PATE-FM on features "
    + ", ".join(f"{value:.2f}" for value in votes),
    verdict="partly",
    why=f"By networks on pixels the bounds at ε = 10 and ∞ are within {off:.1f} of the paper's, "
    f"though not all is leaked (placebo {placebo:.2f} at ∞). At 1 randomised response and ALIBI "
    "leave next to nothing, where the paper finds .43 and .67. Varied were the reference's passes, "
    f"its calibration (LP-1ST at 1: {least:.2f}, placebo {least_placebo:.2f}), the prior, and "
    "features for pixels. PATE-FM, whose 250 teachers on pixels are out of reach, stays at its "
    "placebo on features (" + ", ".join(f"{value:.2f}" for value in vote_placebos) + ").",
    figure=("OBS-T1", "OBS-T4", "OBS-F9"),
    check=all(found[name, 10.0] > 1.5 * found[name, 1.0] for name in NETWORKS)
    and all(value < epsilon for (_, epsilon), value in found.items())
    and all(found[name, math.inf] > found[name, 10.0] - 0.3 for name in NETWORKS)
    and max(found["LP-1ST", 1.0], found["ALIBI", 1.0]) < 0.2
    and all(value < noise + 0.1 for value, noise in zip(votes, vote_placebos, strict=True))
    and off < 0.8
    and placebo > 0.5,
)

# "label inference reports about half of what it reports on the target's own"
assert 0.3 < placebo / found["LP-1ST", math.inf] < 0.7
# "lies between audit and placebo", on average over mechanisms
between = pixels.query("attack == 'label inference' and guesses == 'sweep' and epsilon >= 10")
between = between[between["mechanism"] != PATE].groupby("who")["bound"].mean()
assert between["placebo"] < between["interventional"] < between["ours"]
# "About two points below the paper's at most at ε = ∞ and 10"
behind = {
    (name, epsilon): theirs - 100 * mean(pixels, "accuracy", mechanism=name, epsilon=epsilon)
    for name, (_, _, accuracies) in PAPER_IMAGES.items()
    for (_, epsilon), theirs in zip(LEVELS[:2], accuracies, strict=False)
    if name != PATE
}
assert max(behind.values()) < 2.5, behind
# "audit and placebo both rise" where the reference is calibrated
without = alike.query("epsilon == inf and attack == 'label inference' and guesses == '1%'")
without = without.query("game == 'observational'")
rise = without.groupby(["played_on", "calibrated"])["bound"].mean().unstack()
assert (rise[True] > rise[False]).all()

loud = [key for key, value in found.items() if value > 1.0]
price = [
    found[name, epsilon] - mean(pixels, mechanism=name, epsilon=epsilon, guesses="1%")
    for name, epsilon in loud
]
claim(
    "OBS-9",
    paper="1% gives .02 to .18 less than the sweep",
    measured=f"{ends(price)} less where more than 1 is found",
    verdict="reproduced",
    why="The price of an honest choice is small where something leaks. Where nothing leaks the "
    "sweep invents something in a quarter of all runs (OBS-F7).",
    figure=("OBS-T1", "OBS-T6", "OBS-F7"),
    check=min(price) > 0 and max(price) < 0.4,
)

# Attacks on membership

census = stored("obs-catboost").dropna(subset=["bound"])
three = {
    attack: [mean(pixels, mechanism=name, epsilon=10.0, attack=attack) for name in NETWORKS]
    + [mean(pixels, mechanism="LP-1ST", epsilon=math.inf, attack=attack)]
    for attack in PAPER_TEXTS
}
label, calibration, ratio = three.values()
by_boosting = census.query("learner == 'CatBoost' and game == 'observational'")
(label_all, calibration_all, ratio_all), (label_two, calibration_two, _) = (
    [mean(by_boosting, mechanism="LP-1ST", epsilon=e, attack=attack) for attack in PAPER_TEXTS]
    for e in (math.inf, 2.0)
)
before_training = census.query("learner == 'CatBoost' and game == 'interventional'")
drawn_two = mean(before_training, mechanism="LP-1ST", epsilon=2.0)
# who is ahead without protection, by the passes of the reference: sweep, then 1% of guesses
by_reference = audits.query(
    "game == 'observational' and start == @FRESH and mechanism == 'LP-1ST' and epsilon == inf"
    " and not calibrated and played_on == 'training'"
).pivot_table("bound", ["guesses", "passes"], "attack")
ahead = by_reference["label inference"] - by_reference["difficulty calibration"]
claim(
    "OBS-7",
    paper="label inference and difficulty calibration find about the same",
    measured=f"networks on pixels, ε = 10 and ∞: {ends(label)} against {ends(calibration)}; census "
    f"by CatBoost, ε = ∞: {label_all:.2f} against {calibration_all:.2f}",
    verdict="reproduced",
    why="With one recipe for target and reference, as in the paper, the two agree on images and on "
    "the census; varied, the agreement is of the recipe and no law: without protection label "
    f"inference finds {ahead['sweep', 8]:+.2f} more than calibration by a reference of 8 passes, "
    f"{ahead['sweep', 32]:+.2f} by one of 32. At the census's small ε it finds more "
    f"({label_two:.2f} against {calibration_two:.2f} at ε = 2), of which the interventional audit "
    f"finds {drawn_two:.2f}.",
    figure=("OBS-F1", "OBS-F9"),
    check=sum(abs(one - other) for one, other in zip(label, calibration, strict=True)) < 2.0
    and ahead["sweep", 8] < ahead["sweep", 32]
    and abs(label_all - calibration_all) < 0.2
    and drawn_two < 0.6 * label_two
    and calibration_two < 0.5 * label_two,
)
# their placebo "is nearly silent everywhere", on average over trainings
SETTING = ["game", "mechanism", "epsilon", "start", "passes", "attack", "guesses"]
frozen = stored("obs-images").query("reference == 'trained'")
for frame in (audits.query("not calibrated"), by_boosting, frozen):
    others = frame.query("attack != 'label inference' and played_on == 'placebo'")
    by = [name for name in SETTING if name in others]
    assert others.groupby(by)["bound"].mean().max() < 0.2

# "RMIA still reports 0.20, with a placebo of 0.01; difficulty calibration reports 0.01"
blind = {"mechanism": "drawn labels", "guesses": "1%", "epsilon": 0.0}
heads = stored("obs-images")
seen = [
    mean(heads, **blind, attack="RMIA", played_on="training"),
    mean(heads, **blind, attack="RMIA", played_on="placebo"),
    mean(heads, **blind, attack="difficulty calibration", played_on="training"),
]
assert [f"{value:.2f}" for value in seen] == ["0.20", "0.01", "0.01"]

# what the figures draw: three attacks, the placebo of the first, and what it finds where labels
# were drawn before training
LABEL_ALONE = "(played_on == 'training' or attack == 'label inference')"
DRAWN_FIRST = (
    "(game == 'interventional' and played_on == 'training' and attack == 'label inference')"
)


def in_lines(frame: pd.DataFrame) -> pd.DataFrame:
    """Return audits with the line of a figure of attacks that they belong to."""
    line = frame["attack"].where(frame["played_on"] == "training", "its placebo")
    return frame.assign(line=line.mask(frame["game"] == "interventional", "interventional"))


rivals = pd.concat(
    [
        pixels.query("who in ('ours', 'placebo') and mechanism != @PATE").assign(data="pixels"),
        pixels.query("who in ('ours', 'placebo') and mechanism == @PATE").assign(data="features"),
        under_every_name(told(alike.query(DRAWN_FIRST))).assign(data="pixels"),
        told(by_boosting).assign(data="census"),
        told(before_training.query(DRAWN_FIRST)).assign(data="census"),
    ],
    ignore_index=True,
)
rivals = in_panels(in_lines(rivals.query(f"guesses == 'sweep' and {LABEL_ALONE}")))
# and by the passes of the reference model
by_passes = audits.query(
    "start == @FRESH and mechanism == 'LP-1ST' and epsilon != 10 and guesses == '1%'"
    " and (not calibrated and (game == 'observational' or game == 'null' and epsilon == inf)"
    f" and {LABEL_ALONE} or {DRAWN_FIRST})"
)
by_passes = in_lines(by_passes).assign(
    target=by_passes["epsilon"]
    .map({math.inf: "no protection (ε = ∞)", 1.0: "ε = 1"})
    .mask(by_passes["game"] == "null", "labels never used (ε = 0)")
)
# and by where the target starts
by_start = audits.query(
    "passes == @PASSES and mechanism == 'LP-1ST' and epsilon != 10 and guesses == '1%'"
    " and (game == 'observational' and not calibrated or game == 'interventional')"
)
by_start = told(by_start.sort_values("game", ascending=False, kind="stable"))
by_start = by_start.assign(
    start=by_start["start"].mask(by_start["game"] == "interventional", "fresh, drawn labels"),
    level="ε = " + by_start["ε"],
)
# "All three attacks and the placebo say much the same", "nothing is found at ε = 1"
starts = by_start.groupby(["epsilon", "attack", "played_on", "start"])["bound"].mean().unstack()
assert (starts[CHECKPOINT] - starts[FRESH]).abs().max() < 0.6
assert starts.loc[1.0].max().max() < 0.2
sharper = alike.query("game == 'observational' and calibrated")
sharp = [
    mean(sharper, mechanism="LP-1ST", epsilon=math.inf, attack=attack) for attack in PAPER_TEXTS
]
more = [
    sum(one - other for one, other in zip(ratio, others, strict=True)) / len(ratio)
    for others in (label, calibration)
]
by_few = (by_reference["RMIA"] - by_reference["label inference"])["1%"]
claim(
    "OBS-8",
    paper="RMIA slightly above both others at large ε (figure, no numbers)",
    measured=f"networks on pixels, ε = 10 and ∞: RMIA {ends(ratio)}, label inference "
    f"{ends(label)}, calibration {ends(calibration)}; census, ε = ∞: RMIA {ratio_all:.2f}",
    verdict="partly",
    why="By the paper's rule, the best of 100 shares, RMIA finds on images, on average over "
    f"mechanisms, {more[0]:+.2f} more than label inference and {more[1]:+.2f} more than "
    "calibration; on the census, which the paper does not try, it finds half as much as the "
    "others. Varied: with 1% of guesses its lead over label inference goes from "
    f"{by_few[4]:+.2f} by a reference of 4 passes to {by_few[32]:+.2f} by one of 32, and "
    "calibrated label inference is ahead of it "
    f"({sharp[0]:.2f} against {sharp[2]:.2f} for LP-1ST), its placebo louder.",
    figure=("OBS-F1", "OBS-F9"),
    check=abs(more[0]) < 0.4
    and abs(more[1]) < 0.4
    and by_few[4] > by_few[32] + 0.1
    and ratio_all < 0.6 * min(label_all, calibration_all)
    and sharp[0] > sharp[2],
)

# "Against that one nothing is found ... against any other", of one that never used the labels
never = by_passes.query("game == 'null' and line == 'label inference'")
never = never.groupby("passes")["bound"].mean()
assert never[PASSES] < 0.3
assert never.drop(PASSES).min() > never[PASSES] + 0.1
assert never.idxmax() == 4

# The headline: an observational audit finds what an interventional one finds

calibrated = under_every_name(alike.query("calibrated")).assign(data="pixels")
boosted = census.query("learner == 'CatBoost'").assign(data="census")
# the students of PATE-FM learn from frozen features, in the observational game alone
students = stored("obs-images-pate").query("reference == 'scaled'")
students = students.assign(mechanism=PATE, game="observational", data="features")
LINES = {
    ("observational", "training"): "observational",
    ("observational", "placebo"): "its placebo",
    ("interventional", "training"): "interventional",
    ("null", "training"): "labels never used",
}
games = told(calibrated, students, boosted)
games = games.query("attack == 'label inference' and guesses == '1%'")
asked = pd.Series(list(zip(games["game"], games["played_on"], strict=True)), games.index)
# what the figure draws: the same mechanism in both games, by a calibrated reference on images
games = in_panels(games.assign(line=asked.map(LINES)))
apart = games.pivot_table("bound", ["data", "mechanism", "epsilon"], "line")
silence = told(calibrated, boosted).query(
    "attack == 'label inference' and guesses == '1%' and game == 'interventional'"
    " and played_on == 'placebo'"
)
assert silence["bound"].mean() < 0.05
# "On pixels it says about half as much again as is leaked", where much leaks
on_pixels = apart.loc["pixels"].query("epsilon >= 10").mean()
assert 1.3 < on_pixels["observational"] / on_pixels["interventional"] < 1.8
# "the observational audit says more each time"
both = apart.dropna(subset=["observational", "interventional"])
assert (both["observational"] > both["interventional"] - 0.05).all()
# "1.31 and 1.24", "At ε = 2 ... .62 and ... .26; the placebo, .12"
on_census = apart.loc["census", ["observational", "interventional", "its placebo"]]
assert on_census.loc["LP-1ST", math.inf].round(2).tolist()[:2] == [1.31, 1.24]
assert on_census.loc["LP-1ST", 2.0].round(2).tolist() == [0.62, 0.26, 0.12]

# Tables

published = [
    {"mechanism": name, "epsilon": epsilon, "seed": 0, "reference": "trained"}
    | {"attack": "label inference", "played_on": "paper", "guesses": "sweep"}
    | {"bound": bound, "log_loss": loss}
    for name, columns in PAPER_CENSUS.items()
    for epsilon, bound, loss in zip((math.inf, 8.0, 4.0, 2.0, 1.0, 0.1), *columns, strict=False)
]
people = told(pd.DataFrame(published), by_boosting)
# what the figure draws: both games, the placebo of the first, and the other learner
beside = told(census).query(
    "attack == 'label inference' and guesses == 'sweep'"
    " and (learner == 'CatBoost' and (game == 'observational' or who == 'ours') or who == 'ours')"
)
beside = beside.assign(
    line=beside["game"]
    .mask(beside["who"] == "placebo", "placebo")
    .mask(beside["learner"] == "scikit-learn", "scikit-learn's trees")
)
beside = pd.concat([people.query("who == 'paper'").assign(line="paper"), beside])
beside = beside.sort_values("epsilon", kind="stable")
bounds = (
    people.query("attack == 'label inference' and guesses == 'sweep' and played_on == 'training'")
    .groupby(["mechanism", "epsilon"])["bound"]
    .mean()
)
by_heart = bounds.drop("PATE").groupby("epsilon")
theirs = people.query("who == 'paper'").set_index(["mechanism", "epsilon"])["bound"]
gap = (bounds - theirs).drop("PATE").abs().groupby("epsilon").max()
heard = mean(people, mechanism="LP-1ST", epsilon=math.inf, played_on="placebo")
teachers = stored("obs-pate-teachers").query("attack == 'label inference' and guesses == 'sweep'")
alone = teachers.query("queries > 1000 and teachers == 1").groupby("played_on")["bound"].mean()
crowd = teachers.query("queries > 1000 and teachers == 25").groupby("played_on")["bound"].mean()
claim(
    "OBS-6",
    paper="1.31 to 1.60 at ε = ∞, .34 to .61 at 1, .06 at .1; ordered, below ε",
    measured=", ".join(
        f"{said}: {ends(by_heart.get_group(epsilon))}"
        for said, epsilon in (("ε = ∞", math.inf), ("1", 1.0), (".1", 0.1))
    )
    + f" without PATE, which gives {bounds['PATE', math.inf]:.2f} at ε = ∞",
    verdict="partly",
    why="By CatBoost at its defaults on the census LP-1ST, noise correction, domain prior and "
    f"LP-2ST are ordered in ε, below it, and from ε = 4 on within {gap[gap.index >= 4].max():.1f} "
    f"of the paper's values, with a placebo of {heard:.2f} at ∞; below 4 they part in both "
    "directions. PATE is not reproduced: with 200 teachers nothing is found, though it predicts "
    "well; varied, one teacher who labels everybody gives "
    f"{alone['training']:.2f} (placebo {alone['placebo']:.2f}) and 25 give "
    f"{crowd['training']:.2f}, and scikit-learn's trees find two thirds of CatBoost's.",
    figure=("OBS-T2", "OBS-T5", "OBS-T10"),
    check=all(
        less < more + 0.1
        for name in PAPER_CENSUS
        for less, more in pairwise(bounds[name].sort_index())
    )
    and (bounds < bounds.index.get_level_values("epsilon")).all()
    and gap[gap.index >= 4].max() < 0.21
    and bounds["PATE"].max() < 0.1
    and mean(by_boosting, "log_loss", mechanism=PATE_TABLE, epsilon=math.inf) < 0.2
    and alone["training"] > 2 * crowd["training"],
)
# "noise correction gives .89 at ε = 2 ... and LP-2ST .21 at ε = 1"
assert round(bounds["LP-1ST (noise correction)", 2.0], 2) == 0.89
assert round(bounds["LP-2ST", 1.0], 2) == 0.21
# "scikit-learn's trees find two thirds of CatBoost's"
by_scikit = census.query("learner == 'scikit-learn' and game == 'observational'")
assert 0.5 < mean(by_scikit, mechanism="LP-1ST", epsilon=math.inf) / label_all < 0.75

# Texts

reviews = stored("obs-texts")
anyhow = {
    (game, passes, attack): mean(reviews, game=game, passes=passes, attack=attack)
    for game in ("observational", "interventional")
    for passes in (1, 2, 5, 10, 20)
    for attack in PAPER_TEXTS
}
ten, one = (
    [anyhow["observational", passes, attack] for attack in PAPER_TEXTS] for passes in (10, 1)
)
leaked = [anyhow["interventional", 1, attack] for attack in PAPER_TEXTS]
echo = mean(reviews, game="observational", passes=10, played_on="placebo")
lowest = min(anyhow[game, passes, "difficulty calibration"] for game, passes, _ in anyhow)


def said(values: Iterable[float]) -> str:
    """Return numbers as text."""
    return ", ".join(f"{value:.2f}" for value in values)


claim(
    "OBS-10",
    paper="label inference 2.34, difficulty calibration .72, RMIA 2.52",
    measured=f"film reviews, target and reference of ten passes: {said(ten)}; reference of one: "
    f"{said(one)}; interventional: {said(leaked)}",
    verdict="partly",
    why="With a reference model stopped after one pass label inference and RMIA give the paper's "
    "values, but calibration is ahead of both; label inference beats it by far only where the "
    f"reference is as sure of itself as the target, and then the placebo says {echo:.2f}. Varied: "
    "one to 20 passes of the reference, and labels drawn before training, where no reference is at "
    f"fault; calibration is never below {lowest:.1f}, where the paper has .72.",
    figure="OBS-T7",
    check=ten[0] > 1.5 * ten[1]
    and echo > 0.5 * ten[0]
    and abs(one[0] - 2.34) < 0.2
    and abs(one[2] - 2.52) < 0.2
    and one[1] > max(one[0], one[2])
    and lowest > 1.5,
)
# "the interventional audit stays between 1.7 and 2.3", the observational one goes from 2.2 to 6.1
ours = [anyhow["observational", passes, "label inference"] for passes in (1, 20)]
assert [f"{value:.1f}" for value in ours] == ["2.2", "6.1"]
steady = [anyhow["interventional", passes, "label inference"] for passes in (1, 2, 5, 10, 20)]
assert ends(steady, ".1f") == "1.7 to 2.3"

# Where it breaks

validity = stored("obs-validity")
wrong = validity.query("mechanism == 'randomised response' and family == 'gaussian'")
one_percent = wrong[wrong["way"] == "fixed 1%"]
# "where nothing leaks, more than a quarter of the sweeps find something"
assert validity.query("way == 'sweep' and truth == 0")["share"].min() > 0.25
# "Guesses fixed at 1% exceed the truth too often in 9 of 25 settings, in one of them in 74%"
assert (len(one_percent), (one_percent["low"] > 0.05).sum()) == (25, 9)
assert f"{one_percent['share'].max():.0%}" == "74%"
# "Fixed 0.1% and the corrected sweep stay below 5% there because they are loose"
assert wrong[wrong["way"].isin(["fixed 0.1%", "corrected sweep"])]["share"].max() <= 0.05
# "In its own family every way that pays for its choice keeps the promise, up to the error"
promised = validity[validity["promised"]]
assert (promised["low"] > 0.05).mean() < 0.05
