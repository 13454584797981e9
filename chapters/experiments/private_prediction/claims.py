"""What became of the claims about private prediction, and of what the chapter says of its numbers.

Everything is computed from stored results, within a second or two.
"""

import pandas as pd

from auditkit import claim
from auditkit.experiment import stored

IMAGES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
TEXTS = {  # of PromptPATE
    "film sentences": "film sentences",
    "reviews": "reviews",
    "topics": "topics",
    "hobbies": "hobbies",
}
VOTES = {"paper": "the paper's pair", "easy": "easy query", "close contest": "close contest"}
NEIGHBOURS = {
    ("film-sentences", "angle", 200): "film, k = 200, σ = 20",
    ("film-sentences", "angle", 20): "film, k = 20, σ = 2",
    ("imdb", "angle", 200): "reviews, k = 200, σ = 20",
    ("imdb", "angle", 20): "reviews, k = 20, σ = 2",
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
    "natural": "ours",
    "poisoned": "paper",
    "accuracy": "truth",
    "k_cut": "estimate",
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
    **{name: f"PromptPATE, {name}" for name in TEXTS},
    **IMAGES,
    "k_cut": "audit, k-cut",
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
# the marks of a figure that is read at one look
FEW = ["dependent", "flip", "exact", "corner", "null"]
STYLE = {"over": None, "roles": LOOKS, "names": WORDS}


def asked_again(which: str) -> pd.DataFrame:
    """Return ε of a query asked again and again: the worst queries, or the average.

    A row for each dataset, system and adversary. The worst of images are the three that leaked most
    of a hundred, with fresh trainings; there is no choice in the null, whose worst is its largest.
    """
    keys = ["data", "system", "adversary"]
    every = stored("pred-lenet-epsilon")
    if which == "worst":
        null = every.query("adversary == 'null'")
        null = null.loc[null.groupby(keys)["exact"].idxmax()]
        fresh = stored("pred-lenet-worst-epsilon")
        images = pd.concat([fresh.groupby(keys).mean(numeric_only=True).reset_index(), null])
    else:
        images = every.groupby(keys).mean(numeric_only=True).reset_index()
    chats = stored("pred-chat-adversarial").query("which == @which").drop(columns="which")
    chats = chats.assign(system="PromptPATE, " + chats["teacher"] + " teacher", data=chats["task"])
    rows = pd.concat([images, chats], ignore_index=True)
    who = rows["system"].str.extract("(first|chosen)")[0].fillna("any")
    names = [*IMAGES, *TEXTS]
    order = rows.assign(data=rows["data"].map(names.index), who=who).sort_values(keys).index
    return rows.assign(data=rows["data"].map(IMAGES | TEXTS), who=who).loc[order].reset_index()


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
    verdict="reproduced",
    why="A fixed cut is valid, and bootstraps fail at 0. Goodman's intervals, promised for large "
    "counts only, did not fail at 10⁴ and 10⁶ runs. Ours to add: a k-cut with exact intervals and "
    "a shared level is valid too, and a cut chosen on the counts that test it is not "
    f"({shares['2-cut, chosen afterwards']:.0%}).",
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
images, texts = list(IMAGES.values()), list(TEXTS.values())
CHOSEN, FIRST, PROMPT = "CaPC, chosen teacher", "CaPC, first teacher", "PromptPATE, chosen teacher"
turned = (worst["exact"] / worst["flip"]).unstack(["system", "adversary"])
pate, capc = turned["PATE", "poisoned"][images], turned[CHOSEN, "poisoned"][images]
prompted = turned[PROMPT, "poisoned"][texts]
claim(
    "PRED-3",
    paper="relative to exact RDP calculations (we read: of a vote turned for sure), leakage under "
    "adversarial queries: PATE < CaPC < PromptPATE, the last nearly maximal (figure)",
    measured="worst queries, in ε, as a share of a vote turned for sure: "
    + "; ".join(f"{name} PATE {pate[name]:.2f}, CaPC {capc[name]:.2f}" for name in images)
    + f"; PromptPATE {listed(prompted)}",
    verdict="partly",  # TODO: after the runs
    why="TODO",
    figure=["PRED-F3", "PRED-F7"],
    check=(pate < capc).all() and capc.max() < prompted.min(),
)

by_poison, by_poison_worst = (
    (one["poisoned"] / one["natural"]).unstack("system")
    for one in (rows["exact"].unstack("adversary") for rows in (average, worst))
)
claim(
    "PRED-4",
    paper="poisoning beats natural membership in PATE, equals it in CaPC and PromptPATE (figure)",
    measured="ε poisoned over ε natural, average query, "
    f"PATE: {listed(by_poison['PATE'][images])}; CaPC, chosen teacher: "
    f"{listed(by_poison[CHOSEN][images])}, first teacher: {listed(by_poison[FIRST][images])}; "
    f"PromptPATE, chosen teacher: {listed(by_poison[PROMPT][texts])}. "
    f"Worst queries, PATE: {listed(by_poison_worst['PATE'][images])}",
    verdict="partly",  # TODO: after the runs
    why="TODO",
    figure=["PRED-F3", "PRED-F7", "PRED-F9"],
    check=by_poison["PATE"][images].min() > 1.0,
)

# "at a thousand answers to the worst query the sum is tens of times too high"
small = pd.concat([stored("pred-teachers-mnist"), stored("pred-teachers")])
small = small.query("which == 'worst' and adversary != 'null'").dropna(subset="total_2")
small = small.loc[small.groupby(["data", "adversary"])["exact"].idxmax()]
assert (small["total_2"] / small["ceiling_2"]).min() > 10

# Natural queries.

natural = stored("pred-lenet-epsilon-natural")
natural = natural.assign(
    share=natural["exact"] / natural["flip"],
    kind=natural["poison"].map({"again": "null", "natural": "own label"}).fillna("poison"),
    data=natural["data"].map(IMAGES),
)
of_turned = natural.groupby(["system", "kind", "data"])["share"].mean()
prompts = stored("pred-chat-natural")
prompts = prompts.assign(data=prompts["task"].map(TEXTS))
by_prompt = prompts.groupby(["data", "poison", "number"])[["exact", "flip", "dependent"]].mean()
poisons = by_prompt.drop("honest", level="poison")
best = poisons.groupby("data").max().loc[texts]
best_share = best["exact"] / best["flip"]
pate_shares, capc_shares = (of_turned[system, "poison"][images] for system in ("PATE", "CaPC"))
in_pate = natural.query("system == 'PATE' and kind == 'poison'").groupby("data")["exact"].mean()
fewer = in_pate[images] / worst["exact"].xs(("PATE", "poisoned"), level=[1, 2])[images]
fewer_prompts = best["exact"] / worst["exact"].xs((PROMPT, "poisoned"), level=[1, 2])[texts]
claim(
    "PRED-5",
    paper="natural queries leak far less for all; PATE ≪ CaPC < PromptPATE, PATE next to nothing, "
    "PromptPATE significantly (figure)",
    measured="in ε, as a share of a vote turned in every query: "
    f"PATE {listed(pate_shares)} (null {listed(of_turned['PATE', 'null'][images])}); "
    f"CaPC {listed(capc_shares)} (null {listed(of_turned['CaPC', 'null'][images])}); "
    f"best prompt {listed(best_share)}. Natural queries over the worst adversarial ones: "
    f"PATE {listed(fewer)}; prompts {listed(fewer_prompts)}",
    verdict="partly",  # TODO: after the runs
    why="TODO",
    figure="PRED-F4",
    check=(pate_shares < capc_shares).all() and capc_shares.max() < best_share.min(),
)

# by fixed teacher: the spread of honest prompts in the same place is the null
KINDS = ["confident", "unconfident", "all same", "mapping"]
kinds = prompts.groupby(["data", "poison"])["exact"].mean().unstack()[[*KINDS, "honest"]]
spread = prompts.groupby(["data", "poison", "number", "teacher"])["exact"].mean()
honest = spread.xs("honest", level="poison").groupby("data").quantile(0.95)
strongest = kinds[KINDS].idxmax(axis=1)
claim(
    "PRED-6",
    paper="four poisoned prompts (confident, unconfident, all same, mapping) leak differently, and "
    "which is best depends on the data (figures)",
    measured="ε on average over ten teachers replaced. "
    + "; ".join(f"{task}: {listed(values)}" for task, values in kinds.iterrows())
    + f". One honest prompt of twenty shows more than {listed(honest[texts])}",
    verdict="partly",  # TODO: after the runs
    why="TODO",
    figure=["PRED-F21", "PRED-F4"],
    check=strongest.nunique() > 1,
)

# Private-kNN.

knn = pd.concat([stored("pred-knn"), stored("pred-knn-imdb")])
knn = knn.set_index(["data", "metric", "neighbours"])
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
    verdict="partly",  # TODO: after the run on reviews, of which 200 neighbours are 2%
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
