"""What became of the claims about private prediction, and of what the chapter says of its numbers.

Everything is computed from stored results, within a second or two.
"""

import pandas as pd

from auditkit import claim
from auditkit.experiment import stored

IMAGES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
TEXTS = {"film": "film sentences", "newsgroups": "newsgroups"}
VOTES = {"paper": "the paper's pair", "easy": "easy query", "close contest": "close contest"}
NEIGHBOURS = {
    ("film-sentences", "angle", 200): "film, k = 200, σ = 20",
    ("film-sentences", "angle", 20): "film, k = 20, σ = 2",
    ("cifar10", "distance", 200): "CIFAR-10, k = 200, σ = 30",
    ("cifar10", "angle", 200): "CIFAR-10, by angle",
    ("fashion-mnist", "distance", 200): "Fashion-MNIST, k = 200, σ = 30",
    ("fashion-mnist", "angle", 200): "Fashion-MNIST, by angle",
}

# which role a column plays in every figure, and what figures call columns and values
LOOKS = {
    "independent": "upper bound",
    "dependent": "paper",
    "flip": "upper bound",
    "exact": "truth",
    "exact_all": "truth",
    "corner": "ours",
    "appendix_b": "estimate",
    "corner_jointly": "estimate",
    "a poison": "ours",
    "no poison": "null",
    "total": "paper",
    "joint": "truth",
    "audit": "ours",
}
WORDS = {
    **VOTES,
    "zero": "no difference, 5 answers",
    "zero, ten labels": "no difference, 10 answers",
    "independent": "theory, any data",
    "dependent": "theory, these votes",
    "flip": "a vote turned for sure",
    "exact_all": "exact, any teacher",
    "corner": "audit, nearest corner",
    "appendix_b": "audit, Appendix B",
    "corner_jointly": "audit, 95% for all queries",
    "null": "exact, trained alike (null)",
    "total": "sum over answers",
    "joint": "truth, whole session",
    "audit": "audit of whole sessions",
    "order": "order α",
    "divergence": "Rényi divergence",
    "share": "too high",
    "2-cut, pilot": "2-cut,\npilot",
    "2-cut, chosen afterwards": "2-cut,\nafterwards",
    "2-cut, Appendix B": "2-cut,\nAppendix B",
    "k-cut, Goodman": "k-cut,\nGoodman",
    "2-cut bootstrap": "2-cut\nbootstrap",
    "k-cut bootstrap": "k-cut\nbootstrap",
    "any": "any teacher:\nPATE",
    "first": "the first:\nCaPC, prompts",
    "chosen": "a chosen one:\nCaPC, prompts",
    "film": "PromptPATE, film sentences",
    "film-arrow": "PromptPATE, film sentences in the other format",
    "film sentences": "PromptPATE, film sentences",
    "newsgroups": "PromptPATE, newsgroups",
    "honest": "another\nhonest teacher",
    "average natural": "own point,\naverage",
    "worst natural": "own point,\nworst query",
    "average poisoned": "mislabelled,\naverage",
    "worst poisoned": "mislabelled,\nworst query",
    "all test": "test\npoint",
    "all train": "training\npoint",
    "all embedding": "any\nembedding",
    "all embedding, length 1": "embedding\nof length 1",
    "all null": "no\npoint",
    **dict.fromkeys(["who", "way", "poison"], ""),
}
STYLE = {"over": None, "roles": LOOKS, "names": WORDS}


def asked_again(which: str) -> pd.DataFrame:
    """Return ε of a query asked again and again: the worst of all queries, or their average.

    A row for each dataset, system and adversary, from cells of as many queries each.
    """
    images = pd.concat([stored("pred-teachers-mnist"), stored("pred-teachers")])
    prompts = stored("pred-prompt-adversarial").query("teacher != 'flip' and task != 'film-arrow'")
    named = prompts.assign(system="PromptPATE, " + prompts["teacher"] + " teacher")
    cells = pd.concat([images, named.rename(columns={"task": "data"})], ignore_index=True)
    cells = cells[cells["which"] == which]
    groups = cells.groupby(["data", "system", "adversary"], sort=False)
    worst = which == "worst"
    rows = cells.loc[groups["exact"].idxmax()] if worst else groups.mean(numeric_only=True)
    rows = rows.reset_index(drop=worst)
    names = [*IMAGES, *TEXTS]
    rows = rows.sort_values("data", key=lambda data: data.map(names.index), kind="stable")
    who = rows["system"].str.extract("(first|chosen)")[0].fillna("any")
    return rows.assign(data=rows["data"].map(IMAGES | TEXTS), who=who).reset_index(drop=True)


def marks(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each mark of a figure: audits, limits, and ε of teachers trained alike."""
    audits = ["dependent", "flip", "exact", "corner", "appendix_b"]
    long = rows.melt(["data", "who", "adversary"], audits, "mark", "epsilon")
    null = long.query("adversary == 'null' and mark == 'exact'").assign(mark="null")
    beside = [null.assign(adversary=adversary) for adversary in ("natural", "poisoned")]
    return pd.concat([long.query("adversary != 'null'"), *beside])


def listed(values: pd.Series, digits: int = 2) -> str:
    """Return numbers with their names."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


# Known histograms.

at_10 = stored("pred-exact").query(
    "case == 'paper' and direction == 'backward' and trials == 10**8 and order == 10"
)
at_10 = at_10.iloc[0]
claim(
    "PRED-1",
    paper="the exact divergence is far below the data-dependent analysis; the 2-cut audit nearly "
    "reaches it (figure)",
    measured=f"order 10: exact {at_10.exact:.3f}, data-dependent {at_10.dependent:.2f}, 2-cut "
    f"audit with 10⁸ runs {at_10.corner:.3f} (nearest corner), {at_10.appendix_b:.3f} (Appendix B)",
    verdict="reproduced",
    why=f"The best cut alone has {at_10.best_cut / at_10.exact:.1%} of the divergence. The paper "
    "does not give the votes of its Figure 2; these are the pair of its Figure 6, on which the "
    "data-dependent analysis is no better than the data-independent one; it helps on easy votes.",
    figure="PRED-F2",
    check=at_10.dependent > 3 * at_10.exact and at_10.corner > 0.95 * at_10.exact,
)

failures = stored("pred-failure-rates").query("order.isna()")
shares = failures.groupby("audit")["share"].max()
lows = failures.groupby("audit")["low"].max()
no_difference = failures.query("audit == '2-cut bootstrap' and case == 'zero' and trials == 10**6")
valid = ["2-cut", "2-cut, pilot", "k-cut", "2-cut, Appendix B", "k-cut, Goodman"]
claim(
    "PRED-2",
    paper="only the 2-cut with Clopper-Pearson is always valid; bootstraps fail at 0",
    measured=f"2-cut {shares['2-cut']:.1%}, k-cut {shares['k-cut']:.1%}, k-cut with Goodman's "
    f"intervals {shares['k-cut, Goodman']:.1%}; 2-cut bootstrap at no difference "
    f"{no_difference['share'].item():.0%}",
    verdict="partly",
    why="For the paper's four audits nothing contradicts it: a fixed cut is valid, and bootstraps "
    "fail at 0. Goodman's intervals, promised for large counts only, did not fail at 10⁴ and 10⁶ "
    "runs. Ours to add: a k-cut with exact intervals and a shared level is valid too, and a cut "
    f"chosen on the counts that test it is not ({shares['2-cut, chosen afterwards']:.0%}).",
    figure="PRED-F6",
    check=lows[valid].max() <= 0.05 and no_difference["share"].item() > 0.9,
)
# "among ten equal answers a cut chosen on the counts that test it fails in one audit of seven"
assert abs(shares["2-cut, chosen afterwards"] - 1 / 7) < 0.02

# "at order 2 the nearest corner needs hundreds of times fewer; at order 50 hardly fewer"
needed = stored("pred-trials").query("case == 'close contest' and share == 0.9")
needed = needed.pivot(index="order", columns="audit", values="trials")
needed = needed["Appendix B"] / needed["corner"]
assert needed[2.0] > 200
assert needed[50.0] < 2

# A query asked again and again.

worst, average = (
    asked_again(which).set_index(["data", "system", "adversary"]) for which in ("worst", "average")
)
turned = (worst["exact"] / worst["flip"]).unstack(["system", "adversary"])
pate, capc = turned["PATE", "poisoned"], turned["CaPC, chosen teacher", "poisoned"]
prompted = turned["PromptPATE, chosen teacher", "poisoned"]
images, texts = list(IMAGES.values()), list(TEXTS.values())
claim(
    "PRED-3",
    paper="relative to exact RDP calculations (we read: of a vote turned for sure), leakage under "
    "adversarial queries: PATE < CaPC < PromptPATE, the last nearly maximal (figure)",
    measured="worst query, in ε, as a share of a vote turned for sure: "
    + "; ".join(f"{name} PATE {pate[name]:.2f}, CaPC {capc[name]:.2f}" for name in images)
    + f"; PromptPATE {listed(prompted[texts])}",
    verdict="partly",
    why="At the worst query, with an adversary who chooses the party or the prompt, PATE stays far "
    "below the other two, but CaPC comes as near to a turned vote as PromptPATE does. On average "
    "over queries PATE and CaPC with its first teacher hardly differ.",
    figure=["PRED-F3", "PRED-F7"],
    check=pate[images].max() < 0.7
    and capc[images].between(0.9, 1.05).all()
    and prompted[texts].min() > 0.995,
)
# "theory allows 1.3 times the ε that CaPC and PromptPATE show, 2.6 to 2.7 times that of PATE"
allowed = (worst["dependent"] / worst["exact"]).unstack(["system", "adversary"])
assert allowed["PATE", "poisoned"][images].round(1).between(2.6, 2.7).all()
assert allowed["CaPC, chosen teacher", "poisoned"][images].round(1).between(1.2, 1.4).all()
assert allowed["PromptPATE, chosen teacher", "poisoned"][texts].round(1).eq(1.3).all()
# "on average over queries theory still allows 1.4 to 1.8 times what a turned vote shows"
assert (average["dependent"] / average["flip"]).round(1).between(1.4, 1.8).all()
# "at a thousand answers to the worst query the sum is tens of times too high"
above = (worst["total_2"] / worst["ceiling_2"]).dropna().unstack("adversary")
assert above[["natural", "poisoned"]].min().min() > 10

poison = average["exact"].unstack("adversary")
poison = (poison["poisoned"] / poison["natural"]).unstack("system")
poison_worst = worst["exact"].unstack("adversary")
poison_worst = (poison_worst["poisoned"] / poison_worst["natural"]).unstack("system")
claim(
    "PRED-4",
    paper="poisoning beats natural membership in PATE, equals it in CaPC and PromptPATE (figure)",
    measured="ε poisoned over ε natural, average query, "
    f"PATE: {listed(poison['PATE'][images])}; "
    f"CaPC, chosen teacher: {listed(poison['CaPC, chosen teacher'][images])}, "
    f"first teacher: {listed(poison['CaPC, first teacher'][images])}; "
    f"PromptPATE, chosen teacher: {listed(poison['PromptPATE, chosen teacher'][texts])}. "
    f"Worst query, PATE: {listed(poison_worst['PATE'][images])}",
    verdict="partly",
    why="For the worst query, which the paper plots, nobody gains by poisoning: there a natural "
    "record leaks as much. On average over queries it holds, if CaPC's teacher is chosen; with its "
    "first teacher poisoning wins as well.",
    figure=["PRED-F3", "PRED-F7"],
    check=poison["PATE"][images].min() > 1.2
    and poison["CaPC, chosen teacher"][images].between(0.75, 1.33).all()
    and poison_worst["PATE"][images].between(0.9, 1.1).all(),
)
# "an adversary of CaPC who chooses the party gains nearly a half with a poison, and about twice as
# much with a natural record"
chosen = average["exact"].unstack("system").loc[images]
chosen = (chosen["CaPC, chosen teacher"] / chosen["CaPC, first teacher"]).unstack("adversary")
assert chosen["poisoned"].between(1.3, 1.6).all()
assert chosen["natural"].between(1.6, 2.4).all()

# Natural queries.

natural = stored("pred-teachers-natural")
natural = natural.assign(
    share=natural["exact"] / natural["flip"],
    kind=natural["poison"].notna().map({True: "poison", False: "null"}),
    data=natural["data"].map(IMAGES),
)
of_turned = natural.groupby(["system", "kind", "data"])["share"].mean()
prompts = stored("pred-prompt-natural")
best = prompts.dropna(subset="poison").groupby("task")[["exact_all", "flip"]].max()
best = best.loc[list(TEXTS)].rename(index=TEXTS)
best_share = best["exact_all"] / best["flip"]
in_pate = natural.query("system == 'PATE' and kind == 'poison'").groupby("data")["exact"].mean()
fewer = in_pate[images] / worst["exact"].xs(("PATE", "poisoned"), level=[1, 2])[images]
chosen_prompt = worst["exact"].xs(("PromptPATE, chosen teacher", "poisoned"), level=[1, 2])
fewer_prompts = best["exact_all"] / chosen_prompt[texts]
capc_shares, pate_shares = (of_turned[system, "poison"][images] for system in ("CaPC", "PATE"))
claim(
    "PRED-5",
    paper="natural queries leak far less for all; PATE ≪ CaPC < PromptPATE, PATE next to nothing, "
    "PromptPATE significantly (figure)",
    measured="in ε, as a share of a vote turned in every query: "
    f"PATE {listed(pate_shares)} (null {listed(of_turned['PATE', 'null'][images])}); "
    f"CaPC {listed(capc_shares)} (null {listed(of_turned['CaPC', 'null'][images])}); "
    f"best prompt {listed(best_share)}. Natural queries over the worst adversarial one: "
    f"PATE {listed(fewer)}; prompts {listed(fewer_prompts)}",
    verdict="partly",
    why="PATE and CaPC leak far less, a good part of it without a poison as well, and PATE is "
    "below CaPC by less than a factor of two. Prompts leak much, but so does an honest prompt; and "
    "they leak less than adversarial queries only if these are the worst ones.",
    figure="PRED-F4",
    check=(pate_shares < capc_shares).all()
    and (capc_shares < (2 * pate_shares).clip(upper=0.2)).all()
    and best_share.min() > 0.5
    and fewer.max() < 0.1
    and fewer_prompts.max() < 0.8,
)
# "on average a mislabelled image turns 8 to 17 of a thousand votes in PATE, and 12 to 34 in CaPC,
# more than training anew turns"
flips = natural.groupby(["system", "kind", "data"])["flips"].mean().unstack("kind")
flips = (flips["poison"] - flips["null"]).round()
assert flips["PATE"].between(8, 17).all()
assert flips["CaPC"].between(12, 34).all()
# "film sentences: the same votes to always 0 and to always 1"
always = stored("pred-prompt-poisons-film").query("poison == 'all same'")
assert always["votes"].nunique() == 1
# "any swap turns a fifth of the votes and more"
honest = prompts[prompts["poison"].isna()]
assert honest.groupby("task")["flips"].mean().min() > 0.2
# "on newsgroups it is right in about one of three cases"
assert abs(honest.groupby("task")["accuracy"].mean()["newsgroups"] - 1 / 3) < 0.06

kinds = prompts.assign(poison=prompts["poison"].fillna("honest"))
kinds = kinds.groupby(["task", "poison"])["exact_all"].mean().unstack()
kinds = kinds[["confident", "unconfident", "all same", "mapping", "honest"]]
claim(
    "PRED-6",
    paper="four poisoned prompts (confident, unconfident, all same, mapping) leak differently, and "
    "which is best depends on the data (figures)",
    measured="ε on average over the teacher replaced. "
    + "; ".join(f"{task}: {listed(values)}" for task, values in kinds.iterrows()),
    verdict="not reproduced",
    why="With this small model all four leak alike on average over the teacher that is replaced, "
    "and about as much as honest prompts: it does not obey a prompt, it is only thrown off by it. "
    "In the place of one given teacher they differ, and so do honest ones.",
    figure=["PRED-F21", "PRED-F4"],
    check=(kinds.max(axis=1) < 1.2 * kinds.min(axis=1)).all(),
)

# Private-kNN.

knn = stored("pred-knn").set_index(["data", "metric", "neighbours"])
knn = knn.rename(index=str).assign(setting=[NEIGHBOURS[place] for place in knn.index])
strongest = knn.groupby("setting", sort=False)["exact"].max()
theory = knn.groupby("setting")[["independent", "one_vote"]].first().loc[strongest.index]
gaps = theory["independent"] / strongest
closer = theory["one_vote"] / strongest
repeated = knn.query("which == 'worst'").pivot(index="setting", columns="adversary", values="exact")
alike = repeated["poisoned"] / repeated["natural"]
once = knn.query("queries_are == 'natural'").pivot(
    index="setting", columns="adversary", values="exact"
)
quieter = once[["test", "train", "embedding"]].div(repeated["natural"], axis=0)
lowest, highest = quieter.min().min(), quieter.max().max()
claim(
    "PRED-7",
    paper="theory is far above every adversary; poisoned and natural alike; natural queries less "
    "(figure)",
    measured=f"theory over the strongest adversary {gaps.min():.1f} to {gaps.max():.1f} times in ε "
    f"(with a sensitivity of 1, as if a vote came and none went, {closer.min():.1f} to "
    f"{closer.max():.1f}); at the worst query poisoned over natural {alike.min():.2f} to "
    f"{alike.max():.2f}; natural queries over adversarial ones {lowest:.2f} to {highest:.2f}",
    verdict="reproduced",
    why="Theory has the right sensitivity, √2, and a tighter accountant than our conversion. On "
    "average over queries a mislabelled point leaks up to a third more than a natural one, and an "
    "embedding on natural queries may leak more than one's own point does on average.",
    figure="PRED-F5",
    check=gaps.min() > 1.5 and alike.between(0.9, 1.1).all() and highest < 1,
)

gains = (once["embedding"] / once[["test", "train"]].max(axis=1))[list(NEIGHBOURS.values())]
claim(
    "PRED-8",
    paper="on text, choosing the embedding about doubles the leakage of a test or training point "
    "(figure)",
    measured="ε of the embedding over that of the best point: "
    + "; ".join(f"{name} {value:.2f}" for name, value in gains.items()),
    verdict="partly",
    why="On film sentences it does with 20 neighbours, which are 1.3% of the points drawn (paper: "
    "1.5% on SST-2, 0.8% on AGNews), and hardly with 200, which are 13%. It is not special to "
    "text: on images the gain goes from 1.2 to 4, and depends on the metric.",
    figure="PRED-F5",
    check=gains["film, k = 20, σ = 2"] > 1.8 and gains["film, k = 200, σ = 20"] < 1.5,
)

# Several points at once.

group = (
    stored("pred-group").query("order == 2").pivot(index="case", columns="points", values="exact")
)
eight = (group[8] / group[1])[list(VOTES)].rename(VOTES)
in_one = stored("pred-teachers-group")
in_one = in_one.assign(turned=in_one["flips"] - in_one["again"], data=in_one["data"].map(IMAGES))
in_one = in_one.pivot(index="data", columns="points", values="turned").loc[images[1:]]
claim(
    "PRED-9",
    paper="PATE: m points in one teacher that change its vote on at least m² queries could yield "
    "stronger bounds; CaPC: all points of a teacher at the price of one (Appendix C: intuitions, "
    "no experiment)",
    measured="votes turned by m = 1, 8, 32 poisons in one party: "
    + "; ".join(
        f"{name} {', '.join(f'{row[m]:.0f}' for m in (1, 8, 32))}"
        for name, row in in_one.iterrows()
    )
    + f" of 1,000. Eight votes at once: {listed(eight, 0)} times the divergence of one (m² = 64)",
    verdict="partly",
    why="In CaPC more poisons do turn more votes at the price of one record, and eight turn the "
    "m² = 64 votes that the paper asks for in PATE, or nearly. But against what one point does, m² "
    "times as many votes are needed (our derivation), and they turn four to nine times as many.",
    figure=["PRED-T4", "PRED-T5"],
    check=abs(eight["close contest"] - 64) < 6
    and eight["easy query"] > 64
    and (in_one[32] > in_one[8]).all()
    and (in_one[8] > in_one[1]).all()
    and in_one[8].gt(55).all()
    and (in_one[8] < 16 * in_one[1]).all(),
)

# One query, its session.

# "at ten thousand answers the sum is more than four hundred times too high", "a third lower at ten"
sums = stored("pred-repeated").query("after == 0.9 and order == 2").set_index("queries")
sums = sums["total"] / sums["joint"]
assert sums[10_000] > 400
assert 1.4 < sums[10] < 1.7
