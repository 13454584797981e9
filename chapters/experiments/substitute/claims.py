"""What became of the claims of SUB, and of what its chapter says about stored numbers."""

import numpy as np
import pandas as pd

from auditkit import claim
from auditkit.experiment import stored
from auditkit.figures import spread

RATES = {1.0: "1", 0.25: "¼", 0.0625: "1/16"}
CANARIES = (
    "crafted gradient",
    "crafted input",
    "crafted input as printed",
    "mislabelled",
    "adversarial natural",
)
GRADIENT, PRINTED = CANARIES[0], CANARIES[2]
RECORDS = ("crafted input", "mislabelled", "adversarial natural")


def mean(frame: pd.DataFrame, column: str = "bound", **setting: object) -> float:
    """Return the mean of a column over the repeats of a setting."""
    found = frame.loc[(frame[list(setting)] == pd.Series(setting)).all(axis=1), column]
    assert len(found), f"nothing is stored of {setting}"
    return float(found.mean())


# --- the worst pair ------------------------------------------------------------------------------

worst = stored("sub-worst-case").query("adversary == 'final sum'")
known = worst.groupby(["sampling_rate", "epsilon"], sort=False).first()
means = worst.groupby(["threshold", "method", "sampling_rate", "epsilon"])["audited"].mean()
with_step, plain = means["midpoint", "gaussian"], means["from the law", "clopper-pearson"]
intervals = spread(
    worst.query("threshold == 'from the law' and method == 'clopper-pearson'"),
    ["sampling_rate", "epsilon"],
    "audited",
    over="repeat",
).set_index(["sampling_rate", "epsilon"])
low = intervals["mean"] - intervals["half_width"]
above, sure = (one > known["add_remove"] for one in (plain.reindex(known.index), low))
large = known.index.get_level_values("epsilon") >= 4.0
with_step = with_step.reindex(known.index)

claim(
    "SUB-1",
    paper="the audit exceeds εₐᵣ and closely tracks εₛ (figure, no numbers)",
    measured="εₛ = 10: "
    + ", ".join(
        f"{with_step[q, 10.0]:.2f} at q = {name} (εₐᵣ {known['add_remove'][q, 10.0]:.2f})"
        for q, name in RATES.items()
    ),
    verdict="reproduced",
    why=f"With a valid threshold it stays below εₛ in all {len(known)} settings. Most of the gap "
    "rests on the Gaussian step: without it the mean of three lies above εₐᵣ in "
    f"{above.sum()} settings, in {sure.sum()} with its whole 95% interval.",
    figure="SUB-F1",
    check=bool((with_step > known["add_remove"])[large].all())
    and bool((with_step < known["substitute"]).all())
    and bool(above[1.0, 10.0]),
)
# "and then exceeds add/remove clearly at q = 1 for εₛ = 10"
assert sure[sure].index.tolist() == [(1.0, 10.0)]

groups = known["group_privacy"].dropna()
claim(
    "SUB-2",
    paper="the substitute accountant is tighter than group privacy",
    measured=f"εₛ = 10: group privacy says {groups[1.0, 10.0]:.2f} (q = 1), "
    f"{groups[0.25, 10.0]:.2f} (¼), {groups[0.0625, 10.0]:.2f} (1/16)",
    verdict="reproduced",
    why="Group privacy knows nothing of the mechanism. The loss is small at εₛ = 1 and grows with "
    "ε and with smaller q.",
    figure="SUB-F1",
    check=bool((groups > known["substitute"][groups.index]).all()) and groups[1.0, 1.0] < 1.05,
)

# --- heads on images -----------------------------------------------------------------------------

heads = stored("sub-heads")
trained = heads.query("score == 'paper'")
USUAL: dict[str, object] = {
    "logits": 1,
    "sampling_rate": 1.0,
    "epsilon": 10.0,
    "clip": 2.0,
    "steps": 500,
    "learning_rate": 0.001,
    "norm": 16.0,
    "centred": True,
    "step": 500,
}


def head(canary: str, column: str = "bound", **change: object) -> float:
    """Return the mean over repeats at the last step of the usual setting, or of a changed one."""
    return mean(trained, column, **{**USUAL, "canary": canary, **change})


LATE, EARLY = 500, 100
settings = [
    {"sampling_rate": q, "epsilon": e, "step": step}
    for q in RATES
    for e in (10.0, 4.0)
    for step in (EARLY, LATE)
]
track = pd.DataFrame(
    {
        **one,
        "bound": head(GRADIENT, **one),
        "share": head(GRADIENT, **one) / head(GRADIENT, "substitute", **one),
        "over": head(GRADIENT, **one) > head(GRADIENT, "add_remove", **one),
    }
    for one in settings
)
shares = track.groupby(["epsilon", "step"])["share"].agg(["min", "max"])
told = {at: f"{one['min']:.0%} to {one['max']:.0%}" for at, one in shares.iterrows()}
greedy = [
    head(GRADIENT, "best_of_all", sampling_rate=q) / head(GRADIENT, "substitute", sampling_rate=q)
    for q in RATES
]
claim(
    "SUB-3",
    paper="gradient canaries exceed εₐᵣ and track εₛ, step by step (figure, no numbers)",
    measured=f"share of εₛ: {told[10.0, LATE]} at the last step and {told[10.0, EARLY]} at step "
    f"{EARLY} for εₛ = 10, {told[4.0, LATE]} and {told[4.0, EARLY]} for εₛ = 4; above εₐᵣ in "
    f"{track['over'].sum()} of {len(track)}",
    verdict="reproduced",
    why="The canary's gradient is as long as the clipping norm in every step, so nothing fades. "
    "What is missing is the price of 2,500 runs and of a valid threshold: the best threshold of "
    f"all gives {min(greedy):.0%} to {max(greedy):.0%} at εₛ = 10.",
    figure="SUB-F2",
    check=bool(track.query("step == @LATE")["over"].all())
    and bool(track["over"].sum() >= len(track) - 1)
    and bool(track.query("step == @LATE")["share"].min() > 0.7)
    and bool(track["share"].max() <= 1),
)

margin = {
    (canary, q): head(canary, sampling_rate=q) - head(canary, "add_remove", sampling_rate=q)
    for canary in RECORDS
    for q in RATES
}
faded = [margin[canary, 0.0625] for canary in RECORDS]
claim(
    "SUB-4",
    paper="input canaries exceed εₐᵣ at q = 1 and fade with smaller q and later steps",
    measured="above εₐᵣ by "
    + ", ".join(f"{margin[canary, 1.0]:.1f} ({canary})" for canary in RECORDS)
    + f" at q = 1, εₛ = 10, by {min(faded):.1f} to {max(faded):.1f} at q = 1/16",
    verdict="partly",
    why="They exceed εₐᵣ at q = 1 and fade with q. With centred features and this step length they "
    "hardly fade with the steps: what fades is a gradient that falls below the clipping norm "
    "(SUB-FA4). With the mean left in, records fall below εₐᵣ at q = 1/16, as in the paper "
    "(SUB-T2).",
    figure="SUB-F2",
    check=all(margin[canary, 1.0] > max(0, margin[canary, 0.0625]) for canary in RECORDS),
)
# "The records lose up to 2.6 at q = 1, … All stay above add/remove."
lost = [head(canary) - head(canary, logits=10) for canary in RECORDS]
assert 2.55 < max(lost) < 2.65
for canary in (GRADIENT, *RECORDS):
    for q in RATES:
        ten = {"logits": 10, "sampling_rate": q}
        assert head(canary, **ten) > head(canary, "add_remove", **ten)
# "3.71 becomes 5.87 for the mislabelled canary and 3.35 becomes 5.21 for the natural one"
uncentred = {**USUAL, "centred": False, "sampling_rate": 0.0625}
helped = [
    round(mean(heads, canary=canary, score=score, **uncentred), 2)
    for canary in ("mislabelled", "adversarial natural")
    for score in ("paper", "whitened")
]
assert helped == [3.71, 5.87, 3.35, 5.21]
# no valid bound says too much more often than its level allows
bounds = pd.concat([heads["bound"], heads["bound_plain"]])
limits = pd.concat([heads["substitute"]] * 2)
assert np.mean(bounds > limits) <= 0.05

by_runs = stored("sub-heads-runs")


def at_runs(q: float, runs: int) -> float:
    """Return the bound of a crafted gradient from so many runs."""
    return mean(by_runs, canary=GRADIENT, sampling_rate=q, runs=runs)


growth = {q: at_runs(q, 5_000) - at_runs(q, 2_500) for q in RATES}
claim(
    "SUB-6",
    paper="few runs underestimate; at small q not converged at R = 2,500",
    measured=f"crafted gradient, q = 1: {at_runs(1.0, 100):.2f} with 100 runs, "
    f"{at_runs(1.0, 2_500):.2f} with 2,500; twice as many add {growth[1.0]:.2f} at q = 1 and "
    f"{growth[0.0625]:.2f} at 1/16",
    verdict="reproduced",
    why="It has not converged at q = 1 either: more runs narrow the intervals of the error rates "
    "at every q. A bound from few runs is low and not wrong.",
    figure="SUB-F4",
    check=min(growth.values()) > 0 and at_runs(1.0, 100) < 0.7 * at_runs(1.0, 2_500),
)
# "the mean bound is about 4.4 with 100 runs, 7.2 with 500 and 8.6 with 2,500"
assert [round(at_runs(1.0, runs), 1) for runs in (100, 500, 2_500)] == [4.4, 7.2, 8.6]

loss = {canary: head(canary, "accuracy") - head(canary, "accuracy_canary") for canary in CANARIES}
worst_loss = max(loss, key=lambda canary: abs(loss[canary]))
claim(
    "SUB-7",
    paper="canaries cost no utility",
    measured=f"at most {100 * abs(loss[worst_loss]):.2f} percentage points ({worst_loss}), q = 1",
    verdict="reproduced",
    why="A canary moves the model along one direction out of 128; the noise moves it along all.",
    figure="SUB-FA1",
    check=abs(loss[worst_loss]) < 0.02,
)


def gain(before: dict[str, object], after: dict[str, object]) -> dict[str, float]:
    """Return by how much the bound of each canary changes from one setting to another."""
    return {canary: head(canary, **after) - head(canary, **before) for canary in CANARIES}


def said(gains: dict[str, float]) -> str:
    """Return the gains in words."""
    return ", ".join(f"{value:+.1f} ({canary})" for canary, value in gains.items())


def only_short_gradients_fall(gains: dict[str, float]) -> bool:
    """Say whether canaries of full length stay level, and all others fall by more than 1."""
    level = max(abs(gains[GRADIENT]), abs(gains["crafted input"])) < 0.8
    return level and max(gains[one] for one in CANARIES[2:]) < -1


clip = gain({"clip": 1.0}, {"clip": 8.0})
claim(
    "SUB-8",
    paper="larger C hurts crafted-input and natural canaries only",
    measured=f"from C = 1 to 8 the bound changes by {said(clip)}",
    verdict="partly",
    why="It hurts the mislabelled canary as much: once C exceeds the length of a gradient, the "
    "noise grows and the canary does not. An input crafted for length as well is not hurt.",
    figure="SUB-FA2",
    check=only_short_gradients_fall(clip),
)

longer = {"sampling_rate": 0.0625, "steps": 2_500, "step": 2_500}
steps = gain({"sampling_rate": 0.0625}, longer)
half, end = (head(PRINTED, **{**longer, "step": step}) for step in (1_250, 2_500))
claim(
    "SUB-9",
    paper="larger T at fixed q hurts crafted-input and adversarial natural canaries late in "
    "training",
    measured=f"from T = 500 to 2,500 the bound at the last step changes by {said(steps)}",
    verdict="partly",
    why=f"The crafted input as printed grows ever more slowly: {half:.1f} after half of 2,500 "
    f"steps, {end:.1f} at the end. A model that has learnt a record no longer pulls at it with a "
    "full-length gradient. The adversarial natural canary, which the paper says suffers too, does "
    "not at this learning rate and with features of this length; nor do the others.",
    figure="SUB-FA3",
    check=abs(steps[GRADIENT]) < 0.5 and steps[PRINTED] < -1 and steps["adversarial natural"] > 0,
)

speed = gain({"learning_rate": 0.0003}, {"learning_rate": 0.01})
claim(
    "SUB-10",
    paper="the learning rate moves input canaries",
    measured=f"from η = .0003 to .01 the bound changes by {said(speed)}",
    verdict="reproduced",
    why="Faster learning, sooner learnt: the canary's gradient falls below the clipping norm. "
    "Again the input crafted for length holds out.",
    figure="SUB-FA4",
    check=only_short_gradients_fall(speed),
)

# --- networks from scratch -----------------------------------------------------------------------

small = stored("sub-networks").query("data == 'images' and score == 'paper' and step == steps")
fresh = {"start": "fresh"}
single = {q: mean(small, "add_remove", sampling_rate=q) for q in (0.25, 0.0625)}
gradient = {q: mean(small, canary=GRADIENT, sampling_rate=q, **fresh) for q in single}
weak = {q: [mean(small, canary=one, sampling_rate=q, **fresh) for one in RECORDS] for q in single}
shared = [
    mean(small, canary=one, sampling_rate=0.0625, start="shared")
    for one in (GRADIENT, "mislabelled")
]
claim(
    "SUB-5",
    paper="from scratch input canaries are weak, below εₐᵣ; gradient canaries still tight",
    measured=f"small network, q = ¼: gradient {gradient[0.25]:.2f}, records {min(weak[0.25]):.2f} "
    f"to {max(weak[0.25]):.2f} (εₐᵣ {single[0.25]:.2f}); q = 1/16: {gradient[0.0625]:.2f} and "
    f"{min(weak[0.0625]):.2f} to {max(weak[0.0625]):.2f} (εₐᵣ {single[0.0625]:.2f})",
    verdict="partly",
    why="With the label kept there was no input that points the other way, even on the reference. "
    "A wrong label does there, but not on fresh first weights. The gradient canary depends on its "
    "weight: Algorithm 2 looks for a quiet one from a single start, and from another start it "
    "moves like any other. With first weights shared by all runs, at q = 1/16, the gradient "
    f"reaches {shared[0]:.2f} and the wrong label {shared[1]:.2f}.",
    figure="SUB-F3",
    check=gradient[0.25] > single[0.25] and all(max(weak[q]) < single[q] for q in single),
)

# --- accountants, texts, the Gaussian step -------------------------------------------------------

accountants = stored("sub-accountants").set_index(["sampling_rate", "noise_multiplier"])
ratio = accountants["substitute"] / accountants["add_remove"]
LOW = 5.6569  # where the figure begins at q = 1
claim(
    "SUB-11",
    paper="εₛ can exceed 2 εₐᵣ at one δ, especially for large q and low σ",
    measured=f"q = 1: {ratio[1.0, 64.0]:.2f} times at σ = 64, {ratio[1.0, LOW]:.2f} at σ = 5.7; "
    f"q = 1/16: {ratio[0.0625, 64.0]:.2f} at σ = 64, {ratio[0.0625, 1.0]:.2f} at σ = 1",
    verdict="reproduced",
    why="It exceeds 2, and most at q = 1 with little noise. Ours to add: at small q it falls with "
    "σ, below 2.",
    figure="SUB-FA5",
    check=bool(ratio[1.0, LOW] > ratio[1.0, 64.0] > 2)
    and bool(ratio[0.0625, 64.0] > 2 > ratio[0.0625, 1.0]),
)

texts = stored("sub-texts").query("sampling_rate == 1 and score == 'paper' and step == steps")
long, short = texts.query("norm == 8"), texts.query("norm.isna()")
tight, limit = mean(long, canary=GRADIENT), mean(long, "add_remove")
there = [mean(long, canary=canary) for canary in RECORDS]
as_they_come = max(mean(short, canary=canary) for canary in RECORDS)
claim(
    "SUB-12",
    paper="text: gradient canaries tight, input canaries exceed εₐᵣ",
    measured=f"q = 1, last step: gradient {tight:.2f}; records {min(there):.2f} to "
    f"{max(there):.2f} with features of norm 8, at most {as_they_come:.2f} as they come "
    f"(εₐᵣ {limit:.2f})",
    verdict="partly",
    why="The gradient canary is tight on text. Records of length 1 cannot reach a clipping norm of "
    "2, whatever their label; the paper does not state the norm of its features.",
    figure="SUB-FA6",
    check=tight > limit > as_they_come,
)

step = stored("sub-gaussian-step").query("epsilon == 10")
at = step.set_index(["sampling_rate", "steps", "method", "threshold"])
# "at q = 0.9 and one step 14 where the truth is 10 … At two steps, where the step says 11.7"
said_of_exact = at["at_midpoint"].xs(("gaussian", "fixed at 0"), level=("method", "threshold"))
assert [round(said_of_exact[0.9, one], 1) for one in (1, 2)] == [14.0, 11.7]
# "up to 185 of 200 audits with a valid threshold end above the truth; without the step, none"
valid = step.query("sampling_rate == 0.9 and steps == 2 and is_bound")
assert valid.query("method == 'gaussian'")["exceeded"].max() == 185
assert valid.query("method == 'clopper-pearson'")["exceeded"].max() == 0
# "exceeds the truth in 52 of 200 audits at q = 1 and in 25 at 1/16"
greedy_audits = at["exceeded"].xs(("gaussian", "best of all"), level=("method", "threshold"))
assert [greedy_audits[q, 500] for q in (1.0, 0.0625)] == [52, 25]
