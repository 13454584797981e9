"""What became of the claims of SUB, and of what its chapter says about stored numbers."""

import numpy as np
import pandas as pd

from auditkit import claim
from auditkit.claims import VERDICTS
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
GRADIENT, REPAIRED, PRINTED, WRONG, NATURAL = CANARIES
# Verdicts stand on the paper's canaries alone, and its crafted input is Algorithm 3 as printed. Our
# repair of it is told beside them.
RECORDS = (PRINTED, WRONG, NATURAL)
LEVEL = 0.05
# how the figures of the chapter and of its appendix draw each canary
ROLES = dict(zip(CANARIES, ("ours", "paper", "null", "estimate", "upper bound"), strict=True))


def mean(frame: pd.DataFrame, column: str = "bound", **setting: object) -> float:
    """Return the mean of a column over the repeats of a setting, in which None is no value."""
    for name, value in setting.items():
        frame = frame[frame[name].isna() if value is None else frame[name] == value]
    assert len(frame), f"nothing is stored of {setting}"
    return float(frame[column].mean())


def fits(verdict: str, *parts: bool) -> bool:
    """Say whether a verdict is that of the parts of a claim: all of them hold, some, or none."""
    if verdict not in VERDICTS:
        raise ValueError(f"verdict must be one of {VERDICTS}, got {verdict!r}; parts are {parts}")
    return verdict == ("reproduced" if all(parts) else "partly" if any(parts) else "not reproduced")


def keep_their_level(audits: pd.DataFrame) -> None:
    """Raise unless bounds lie above the ε that is spent no more often than their level allows.

    Rows of one training are audits of the same models at other steps, so that its last one counts.
    Where both worlds are one a bound can hardly lie above ε, so leave such audits out.
    """
    last = audits[audits["step"] == audits.groupby("steps")["step"].transform("max")]
    for rows in (audits, last):
        for name in ("bound", "bound_plain"):
            above = float(np.mean(rows[name] > rows["substitute"]))
            assert above <= LEVEL, f"{above:.1%} of the stored numbers {name!r} lie above ε"


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
    and bool((with_step > 0.9 * known["substitute"])[large].all())
    and bool(above[1.0, 10.0]),
)
# "and then exceeds add/remove clearly at q = 1 for εₛ = 10"
assert sure[sure].index.tolist() == [(1.0, 10.0)]

groups = known["group_privacy"]
too_much = (groups / known["substitute"]).unstack("epsilon")  # a row for each sampling rate
claim(
    "SUB-2",
    paper="the substitute accountant is tighter than group privacy",
    measured=f"εₛ = 10: group privacy says {groups[1.0, 10.0]:.2f} (q = 1), "
    f"{groups[0.25, 10.0]:.2f} (¼), {groups[0.0625, 10.0]:.2f} (1/16)",
    verdict="reproduced",
    why="Group privacy knows nothing of the mechanism. The loss is small at εₛ = 1 and grows with "
    "ε and with smaller q.",
    figure="SUB-F1",
    check=bool((too_much > 1).all(axis=None))
    and bool((too_much[1.0] < 1.05).all())
    and bool((too_much.diff(axis="columns").iloc[:, 1:] > 0).all(axis=None))
    and bool((too_much.sort_index().diff().iloc[1:] < 0).all(axis=None)),
)

# --- heads on images -----------------------------------------------------------------------------

heads = stored("sub-raw")
keep_their_level(heads)
trained = heads.query("score == 'paper'")
USUAL: dict[str, object] = {
    "sampling_rate": 1.0,
    "epsilon": 10.0,
    "clip": 2.0,
    "steps": 500,
    "learning_rate": 0.001,
    "norm": None,
}
LATE, EARLY, LOOKS = 500, 50, 10


def called(canary: str) -> str:
    """Return the name of a canary, and say of our repair whose it is."""
    return f"{canary}, our repair" if canary == REPAIRED else canary


def head(canary: str, column: str = "bound", **change: object) -> float:
    """Return the mean over repeats at the last step of the usual setting, or of a changed one."""
    setting = {**USUAL, "canary": canary, **change}
    return mean(trained, column, **{"step": setting["steps"], **setting})


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
at_the_end = track.query("step == @LATE")
claim(
    "SUB-3",
    paper="gradient canaries exceed εₐᵣ and track εₛ, step by step (figure, no numbers)",
    measured="share of the ε that substitution has spent by then, over the three q: "
    f"{told[10.0, LATE]} at the last step and {told[10.0, EARLY]} at step {EARLY} with εₛ = 10, "
    f"{told[4.0, LATE]} and {told[4.0, EARLY]} with εₛ = 4; {track['over'].sum()} of "
    f"{len(track)} bounds lie above the add/remove ε by then",
    verdict=(verdict := "TODO"),
    why="The verdict is on the last step. The canary's gradient is as long as the clipping bound "
    "in every step. What is missing is the price of 2,500 runs and of a valid threshold: the best "
    f"threshold of all finds {min(greedy):.0%} to {max(greedy):.0%} at the last step, εₛ = 10.",
    figure="SUB-F2",
    check=fits(
        verdict,
        bool(at_the_end["over"].all()),
        bool(at_the_end["share"].min() > 0.7 and track["share"].max() <= 1),
    ),
)


def share(canary: str, **change: object) -> pd.Series:
    """Return the bound over the ε that is spent, by step."""
    steps = np.linspace(LATE / LOOKS, LATE, LOOKS).astype(int)
    return pd.Series(
        {
            step: head(canary, step=step, **change)
            / head(canary, "substitute", step=step, **change)
            for step in steps
        }
    )


def late_loss(canary: str, **change: object) -> float:
    """Return by how much the share at the last step lies below the largest one."""
    by_step = share(canary, **change)
    return float(by_step.max() - by_step[LATE])


def margin(canary: str, **change: object) -> float:
    """Return by how much the bound exceeds the add/remove ε."""
    return head(canary, **change) - head(canary, "add_remove", **change)


FADES = 0.05  # what counts as fading: a twentieth of what is spent
lead = {one: margin(one) for one in (*RECORDS, REPAIRED)}
# not the margin: the add/remove ε itself grows as q falls
strength = {q: [head(one, sampling_rate=q) for one in RECORDS] for q in RATES}
late = {q: [late_loss(one, sampling_rate=q) for one in RECORDS] for q in RATES}
late_norms = {
    norm: max(late_loss(one, norm=norm) for one in RECORDS) for norm in (16.0, 32.0, 64.0)
}
claim(
    "SUB-4",
    paper="input canaries exceed εₐᵣ at q = 1 and fade with smaller q and later steps",
    measured="above εₐᵣ by "
    + ", ".join(f"{more:.1f} ({called(one)})" for one, more in lead.items())
    + " at q = 1, εₛ = 10; bounds of "
    + ", ".join(f"{min(strength[q]):.1f} to {max(strength[q]):.1f} (q = {RATES[q]})" for q in RATES)
    + " of the paper's three; the share of εₛ at the last step lies below its largest by "
    + ", ".join(f"{min(late[q]):.0%} to {max(late[q]):.0%} (q = {RATES[q]})" for q in RATES),
    verdict=(verdict := "TODO"),
    why="TODO. With features of other lengths the share falls late by at most "
    + ", ".join(f"{loss:.0%} (norm {norm:g})" for norm, loss in late_norms.items())
    + ".",
    figure=("SUB-F2", "SUB-F10"),
    check=fits(
        verdict,
        all(lead[one] > 0 for one in RECORDS),
        all(before > after for before, after in zip(strength[1.0], strength[0.0625], strict=True)),
        min(late[0.0625]) > FADES,
    ),
)
# "It helps where it should, at small q. At q = 1 … there is nothing to gain for a wrong label."


def helped(canary: str, q: float) -> float:
    """Return what the whitened score finds more."""
    usual = {**USUAL, "sampling_rate": q, "step": LATE}
    return mean(heads, canary=canary, score="whitened", **usual) - head(canary, sampling_rate=q)


assert min(helped(one, 0.0625) for one in (WRONG, NATURAL)) > 0.2
assert abs(helped(WRONG, 1.0)) < 0.2

by_runs = stored("sub-raw-runs")


def at_runs(q: float, runs: int) -> float:
    """Return the bound of a crafted gradient from so many runs."""
    return mean(by_runs, canary=GRADIENT, sampling_rate=q, runs=runs)


growth = {q: at_runs(q, 2_500) - at_runs(q, 1_000) for q in RATES}
limit = mean(by_runs, "plug_in", canary=GRADIENT, sampling_rate=0.0625, runs=2_500)
claim(
    "SUB-6",
    paper="few runs underestimate; at small q not converged at R = 2,500",
    measured=f"crafted gradient, q = 1: {at_runs(1.0, 100):.2f} with 100 runs, "
    f"{at_runs(1.0, 2_500):.2f} with 2,500; from 1,000 to 2,500 it gains {growth[1.0]:.2f} at "
    f"q = 1 and {growth[0.0625]:.2f} at 1/16, where the scores point to {limit:.2f}",
    verdict=(verdict := "TODO"),
    why="It has not converged at q = 1 either: more runs narrow the intervals of the error rates "
    "at every q. A bound from few runs is low and not wrong.",
    figure="SUB-F4",
    check=fits(verdict, at_runs(1.0, 100) < 0.7 * at_runs(1.0, 2_500), growth[0.0625] > 0)
    and growth[1.0] > 0,
)

# models with z are those of a wrong label's other world: a gradient is planted in both of its own
loss = {
    (canary, norm): head(WRONG, "accuracy", norm=norm) - head(canary, "accuracy_canary", norm=norm)
    for canary in CANARIES
    for norm in (None, 64.0)
}
worst_loss = max(loss, key=lambda one: abs(loss[one]))
accuracy = {norm: head(GRADIENT, "accuracy", norm=norm) for norm in (None, 64.0)}
# "a head learns little in 500 steps; with features of norm 64 it learns more"
assert accuracy[64.0] > accuracy[None] + 0.02
claim(
    "SUB-7",
    paper="canaries cost no utility",
    measured=f"at most {100 * abs(loss[worst_loss]):.2f} percentage points ({worst_loss[0]}), "
    f"q = 1; accuracy {accuracy[None]:.2f}, with features of norm 64 {accuracy[64.0]:.2f}",
    verdict=(verdict := "TODO"),
    why="A canary moves the model along one direction; the noise moves it along all.",
    figure="SUB-FA1",
    check=fits(verdict, abs(loss[worst_loss]) < 0.02),
)


def gain(before: dict[str, object], after: dict[str, object]) -> dict[str, float]:
    """Return by how much the bound of each canary changes from one setting to another."""
    return {canary: head(canary, **after) - head(canary, **before) for canary in CANARIES}


def said(gains: dict[str, float]) -> str:
    """Return the gains in words."""
    return ", ".join(f"{value:+.1f} ({called(canary)})" for canary, value in gains.items())


def fall(gains: dict[str, float], *canaries: str) -> bool:
    """Say whether the bounds of all these canaries fall by more than 1."""
    return all(gains[canary] < -1 for canary in canaries)


def level(gains: dict[str, float], *canaries: str) -> bool:
    """Say whether the bounds of all these canaries stay within 0.8."""
    return all(abs(gains[canary]) < 0.8 for canary in canaries)


clip = gain({"clip": 1.0}, {"clip": 8.0})
claim(
    "SUB-8",
    paper="larger C hurts crafted-input and natural canaries only",
    measured=f"from C = 1 to 8 the bound changes by {said(clip)}",
    verdict=(verdict := "TODO"),
    why="TODO. Once C exceeds the length of a gradient, the noise grows and the canary does not.",
    figure="SUB-FA2",
    check=fits(verdict, fall(clip, PRINTED, NATURAL), level(clip, GRADIENT, WRONG)),
)

sampled = {"sampling_rate": 0.0625}
longer = {**sampled, "steps": 2_500}
steps = gain(sampled, longer)
half, end = (head(PRINTED, **{**longer, "step": step}) for step in (1_250, 2_500))


def of_spent(canary: str, step: int) -> float:
    """Return the bound over the ε that is spent, in the long training."""
    at = {**longer, "step": step}
    return head(canary, **at) / head(canary, "substitute", **at)


lost = {one: of_spent(one, 1_250) - of_spent(one, 2_500) for one in (PRINTED, NATURAL)}
claim(
    "SUB-9",
    paper="larger T at fixed q hurts crafted-input and adversarial natural canaries late in "
    "training",
    measured=f"from T = 500 to 2,500 the bound at the last step changes by {said(steps)}; the "
    f"crafted input as printed has {half:.1f} after half of 2,500 steps and {end:.1f} at the end",
    verdict=(verdict := "TODO"),
    why="TODO. A model that has learnt a record no longer pulls at it with a full-length gradient.",
    figure="SUB-FA3",
    check=fits(
        verdict,
        fall(steps, PRINTED),
        fall(steps, NATURAL),
        min(lost.values()) > FADES,
        level(steps, GRADIENT),
    ),
)

speed = gain({"learning_rate": 0.0003}, {"learning_rate": 0.01})
claim(
    "SUB-10",
    paper="the learning rate moves input canaries",
    measured=f"from η = .0003 to .01 the bound changes by {said(speed)}",
    verdict=(verdict := "TODO"),
    why="TODO. Faster learning, sooner learnt: the gradient falls below the clipping bound.",
    figure="SUB-FA4",
    check=fits(
        verdict,
        all(abs(speed[canary]) > 1 for canary in (PRINTED, NATURAL)),
        level(speed, GRADIENT),
    ),
)

# "The crafted gradient stays level in all of them"; the claims above have the other settings
assert all(abs(head(GRADIENT, norm=norm) - head(GRADIENT)) < 0.8 for norm in (4.0, 16.0, 64.0))
# "A record whose features are short against C cannot use its budget."
assert head(WRONG, norm=4.0) < head(WRONG) - 1
# "Algorithm 3 taken as printed makes a weak canary … is short"
assert head(PRINTED) < head(REPAIRED)
assert head(PRINTED, "norm_canary") < head(REPAIRED, "norm_canary")

# --- networks from scratch -----------------------------------------------------------------------

networks = stored("sub-scratch")
keep_their_level(networks.query("not null"))
final = networks.query("score == 'paper' and step == steps and not null")
many_runs, many_steps = final.query("size == 500"), final.query("size == 5000")
fresh = {"start": "fresh"}
single = {q: mean(many_runs, "add_remove", sampling_rate=q) for q in (0.25, 0.0625)}
gradient = {q: mean(many_runs, canary=GRADIENT, sampling_rate=q, **fresh) for q in single}
three = mean(many_runs, canary=f"{GRADIENT}, three starts")
wrong = {q: mean(many_runs, canary=WRONG, sampling_rate=q, **fresh) for q in single}
natural, printed, repaired = (
    mean(many_runs, canary=one, sampling_rate=0.0625, **fresh)
    for one in (NATURAL, PRINTED, REPAIRED)
)
weak = max(wrong[0.0625], natural, printed)
shared = [mean(many_runs, canary=one, start="shared") for one in (GRADIENT, WRONG)]
long = [mean(many_steps, canary=one) for one in (GRADIENT, WRONG)]
(long_runs,) = many_steps["runs"].unique()
long_single = mean(many_steps, "add_remove")
# a bound of few runs is low whatever the canary, so that the estimate has to be low too
long_limit = mean(many_steps, "plug_in", canary=WRONG)
claim(
    "SUB-5",
    paper="from scratch input canaries are weak, below εₐᵣ; gradient canaries still tight",
    measured=f"500 records, 2,500 runs, q = ¼: gradient {gradient[0.25]:.2f}, wrong label "
    f"{wrong[0.25]:.2f} (εₐᵣ {single[0.25]:.2f}); q = 1/16: {gradient[0.0625]:.2f}, from three "
    f"starts {three:.2f}, wrong label {wrong[0.0625]:.2f}, natural {natural:.2f}, "
    f"crafted input {printed:.2f}, our repair of it {repaired:.2f} (εₐᵣ {single[0.0625]:.2f}). "
    f"5,000 records, {long_runs} runs, q = 1/16: "
    f"gradient {long[0]:.2f}, wrong label {long[1]:.2f}, its scores point to {long_limit:.2f} (εₐᵣ "
    f"{long_single:.2f})",
    verdict=(verdict := "TODO"),
    why="TODO. With first weights shared by all runs, at q = 1/16, 1,000 runs, the gradient "
    f"reaches {shared[0]:.2f} and the wrong label {shared[1]:.2f}.",
    figure="SUB-F3",
    check=fits(
        verdict,
        weak < single[0.0625]
        and all(wrong[q] < single[q] for q in single)
        and long[1] < long[0]
        and long_limit < long_single,
        all(gradient[q] > single[q] for q in single),
        min(gradient.values()) > 0.7 * 10.0,
    ),
)
# where both worlds hold z there is nothing to be found
assert networks.query("null")["bound"].max() < 0.3

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
    and ratio[1.0, LOW] == ratio[accountants["add_remove"].between(0.05, 30)].max()
    and bool(ratio[0.0625, 64.0] > 2 > ratio[0.0625, 1.0]),
)

texts = stored("sub-sentences")
keep_their_level(texts.assign(steps=2_500))
ended = texts.query("score == 'paper' and step == 2500")


def text(
    canary: str, column: str = "bound", vectors: str = "as they come", q: float = 1.0
) -> float:
    """Return what is stored of heads on sentences."""
    return mean(ended, column, canary=canary, vectors=vectors, sampling_rate=q)


# Algorithm 3 as printed was trained at q = 1 alone
there = {1.0: [text(one) for one in RECORDS], 0.25: [text(one, q=0.25) for one in (WRONG, NATURAL)]}
line = {q: text(GRADIENT, "add_remove", q=q) for q in there}
centred = [text(one, vectors="centred") for one in (REPAIRED, WRONG, NATURAL)]
claim(
    "SUB-12",
    paper="text: gradient canaries tight, input canaries exceed εₐᵣ",
    measured="; ".join(
        f"q = {RATES[q]}: gradient {text(GRADIENT, q=q):.2f}, records "
        f"{min(found):.2f} to {max(found):.2f}, our crafted input {text(REPAIRED, q=q):.2f} "
        f"(εₐᵣ {line[q]:.2f})"
        for q, found in there.items()
    ),
    verdict=(verdict := "TODO"),
    why=f"TODO. Centred and brought to norm 8, records have {min(centred):.2f} to "
    f"{max(centred):.2f} at q = 1, our crafted input among them; at length 1, where no gradient "
    f"reaches the clipping bound, a wrong label has {text(WRONG, vectors='length 1'):.2f}.",
    figure="SUB-FA6",
    check=fits(
        verdict,
        all(text(GRADIENT, q=q) > 0.7 * 10.0 for q in line),
        min(there[1.0]) > line[1.0],
        min(there[0.25]) > line[0.25],
    ),
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

# "found nothing where nothing was, and never exceeded the truth. The best of all found up to .36"
nothing, coverage = stored("sub-heads-null"), stored("sub-heads-coverage")
assert not nothing[["bound", "bound_plain"]].to_numpy().any()
assert not coverage[["bound_exceeded", "bound_plain_exceeded"]].to_numpy().any()
assert round(nothing["best_of_all"].max(), 2) == 0.36
# "It stayed within its 20 of 200 audits here"
assert coverage.groupby("sampling_rate")["best_of_all_exceeded"].sum().max() <= 20
