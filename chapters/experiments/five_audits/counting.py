"""What every audit finds in every model: nothing is trained here, stored scores are counted.

A row is a bound: of which model, by which audit and attack, with whose truth. Beside what is
audited there are two nulls: members that no model has seen, and memberships that are tossed anew
after training.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from auditkit import (
    ApproxDP,
    Bonferroni,
    Bound,
    audit_scores,
    dp_sgd_epsilon,
    observational_label,
    panoramia,
    two_worlds,
    zero_run,
)
from auditkit.attacks.label_inference import label_scores
from auditkit.attacks.propensity import fit_propensity
from auditkit.bounds.power import Setting as Goal
from auditkit.bounds.power import flawless
from auditkit.evidence import PairedScores
from auditkit.experiment import stored, study
from experiments.five_audits import audits, deals, heads, networks, private_networks, texts
from experiments.five_audits.attacks import (
    HEADS,
    LIRA,
    LOSS,
    RMIA,
    SETTINGS,
    members,
    scores,
    shadowed,
    told,
)
from experiments.substitute.audits import at_midpoint
from experiments.zero_run.audits import SHARP_POSTERIOR, guesses_of
from experiments.zero_run.heads import unpack

DELTA, CONFIDENCE = 1e-5, 0.95
RULE = Bonferroni(10)  # ten numbers of guesses, each at a tenth of the level
GAUSSIAN, NO_FAMILY = "gaussian", "approx"  # a curve is assumed, or nothing but (ε, δ)
METHODS = {GAUSSIAN: "one-run-fdp", NO_FAMILY: "one-run"}
AUDITED, UNSEEN, TOSSED = "audited", "unseen examples", "wrong membership"
ONE_RUN, PLANTED, LABELS = "one run", "one run, planted", "labels"
KNOWN, FITTED = "zero run, propensity known", "zero run, propensity fitted"
GENERATED, MANY = "generated examples", "many runs"
GRADIENTS = {"last": "one run, gradients, last weights", "every": "one run, gradients, every step"}
FLIPS = 10
ACCESS = {
    ONE_RUN: "coins before training, losses",
    PLANTED: "coins before training, losses",
    GRADIENTS["last"]: "coins and gradients, first and last weights",
    GRADIENTS["every"]: "coins and gradients, every step",
    LABELS: "training labels, probabilities",
    KNOWN: "known members, losses",
    FITTED: "known members, losses",
    GENERATED: "known members, losses",
    MANY: "the program, many times",
}


def rows_of(setting: str, model: int) -> list[dict]:
    """Return what every audit of a model finds, and its nulls."""
    chosen, found = SETTINGS[setting], []
    audits_of = [one_run, zero_runs]
    if not chosen.language:
        audits_of.append(labels)
    if chosen.study in private_networks.PRIVATE.values():
        audits_of.append(gradients)
    if setting in HEADS and model < deals.REPORTED:
        audits_of.append(generated)
    for audit in audits_of:
        for row in audit(setting, model):
            # without noise nobody knows a curve, but for a null, which is a curve of every family
            if chosen.promised == math.inf and row["family"] == GAUSSIAN:
                row |= {"claim": "estimate"} if row["truth"] == AUDITED else {}
            promised = {"promised": promise(setting, row["adjacency"])}
            found.append(promised | row | costs(setting, row["audit"], row["attack"]))
    return found


def costs(setting: str, audit: str, attack: str) -> dict:
    """Return what an audit takes: access, models beside the audited one, and seconds of them all.

    Who audits a tuned model has the one before it.
    """
    chosen = SETTINGS[setting]
    own = 0 if chosen.language else 1  # models of the auditor's own
    shadows = audit in (ONE_RUN, PLANTED) and attack in (RMIA, LIRA)
    beside = {LOSS: 0, "evidence": 0}.get(attack, own)
    if shadows:
        beside = chosen.models - 1
    return {
        "access": ACCESS[audit],
        "beside": beside,
        "training_seconds": (1 + beside) * seconds_of(setting),
    }


@cache
def seconds_of(setting: str) -> float:
    """Return the seconds that a model of a setting takes, in the mean."""
    rows = stored(SETTINGS[setting].study)
    for name, value in SETTINGS[setting].which.items():
        rows = rows[rows[name] == value]
    return float(rows[rows["model"] >= 0].drop_duplicates("model")["seconds"].mean())


def row(
    audit: str, attack: str, truth: str, family: str | None, bound: Bound, ceiling: float
) -> dict:
    """Return a bound as a row."""
    return {
        "audit": audit,
        "attack": attack,
        "truth": truth,
        "family": family,
        "claim": bound.claim,
        "adjacency": bound.adjacency,
        "found": float(bound.epsilon),
        "ceiling": ceiling,
        "examples": int(bound.details["examples"]),
    }


@cache
def promise(setting: str, adjacency: str) -> float | None:
    """Return the line above a bound: what the training promises to its neighbours."""
    epsilon = SETTINGS[setting].promised
    if epsilon == math.inf:
        return None
    if adjacency == "add/remove":
        return epsilon
    if setting in HEADS:  # a label is replaced as a record is
        return audits.substitute(epsilon)
    course = private_networks.COURSES[deals.CIFAR]
    return dp_sgd_epsilon(
        noise_multiplier=private_networks.noise_for(deals.CIFAR, epsilon),
        sampling_rate=course.sampling_rate,
        steps=course.steps,
        delta=DELTA,
        adjacency="substitute",
    )


def rng_of(*which: object) -> np.random.Generator:
    """Return what tosses coins for a null, the same each time."""
    return np.random.default_rng([deals.SEED, *map(ord, " ".join(map(str, which)))])


# --- one run -------------------------------------------------------------------------------------


def one_run(setting: str, model: int) -> Iterator[dict]:
    """Guess coins: of natural examples, and of planted ones."""
    for part, null, audit in (("coined", "unseen", ONE_RUN), ("planted", "decoys", PLANTED)):
        own, idle = (members(setting, one, model) for one in (part, null))
        tossed = rng_of(setting, part, model).random(len(own)) < 0.5
        unseen = shadowed(setting, null, model)
        for attack, found in shadowed(setting, part, model).items():
            for truth, seen, who in (
                (AUDITED, found, own),
                (UNSEEN, unseen[attack], idle),
                (TOSSED, found, tossed),
            ):
                yield from coin_rows(audit, attack, truth, seen, who)


def gradients(setting: str, model: int) -> Iterator[dict]:
    """Guess the coins of gradient canaries."""
    own = private_networks.coins(deals.CIFAR, model)
    tossed = rng_of(setting, "gradients", model).random(len(own)) < 0.5
    for access, audit in GRADIENTS.items():
        seen, idle = (told(setting, f"{name}, {access}")[model] for name in ("canaries", "null"))
        for truth, found, who in (
            (AUDITED, seen, own),
            (UNSEEN, idle, tossed),
            (TOSSED, seen, tossed),
        ):
            yield from coin_rows(audit, "evidence", truth, found, who)


def coin_rows(
    audit: str, attack: str, truth: str, found: np.ndarray, own: np.ndarray
) -> Iterator[dict]:
    """Bound ε from scores and coins by either family."""
    for family, method in METHODS.items():
        bound = audit_scores(
            found, own, method=method, threshold=RULE, delta=DELTA, confidence=CONFIDENCE
        )
        yield row(audit, attack, truth, family, bound, ceiling(family, len(own)))


@cache
def ceiling(family: str, examples: int) -> float:
    """Return what ten numbers of guesses show at most: all are right, at a tenth of the level."""
    level = 1.0 - (1.0 - CONFIDENCE) / 10
    goal = Goal(METHODS[family], 1.0, delta=DELTA, confidence=level)
    return max(
        flawless(goal, examples, guesses=round(share * examples))
        for share in np.geomspace(0.01, 1.0, 10)
    )


# --- labels --------------------------------------------------------------------------------------


def labels(setting: str, model: int) -> Iterator[dict]:
    """Guess which label members were trained with; the placebo has images that were not."""
    games = {part: label_scored(setting, part, model) for part in deals.GAMES}
    tossed = rng_of(setting, "labels", model).integers(2, size=len(games["known"][1]))
    curves = {GAUSSIAN: GAUSSIAN, NO_FAMILY: lambda epsilon: ApproxDP(epsilon, DELTA)}
    level = {"threshold": RULE, "delta": DELTA, "confidence": CONFIDENCE}
    (known, chosen), (unseen, coins) = games["known"], games["unseen"]
    for attack in known:
        placebo = {"placebo_scores": unseen[attack], "placebo_chosen": coins}
        for truth, found, told_, beside in (
            (AUDITED, known[attack], chosen, placebo),
            (TOSSED, known[attack], tossed, placebo),
            (UNSEEN, unseen[attack], coins, {}),  # the placebo itself
        ):
            for family, curve in curves.items():
                bound = observational_label(found, told_, family=curve, **level, **beside)
                yield row(LABELS, attack, truth, family, bound, ceiling(family, len(found)))


def label_scored(setting: str, part: str, model: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the scores of the labels shown by two attacks, and the coins of the game."""
    game = deals.game_of(deals.CIFAR, part, model)
    law = deals.expected(deals.CIFAR, part)[np.arange(len(game.shown)), game.shown]
    own = told(setting, part, "shown")[model]
    # of two classes: the label that is shown, and any other
    both = [np.column_stack((chance, 1.0 - chance)) for chance in (np.exp(own), np.exp(law))]
    return {
        "as in the paper": label_scores(*both)[:, 0],
        # a label known by heart leaves a chance of 0 to any other, which has no logarithm
        "likelihood ratio": own - law,
    }, game.chosen


# --- zero runs -----------------------------------------------------------------------------------


def zero_runs(setting: str, model: int) -> Iterator[dict]:
    """Guess members among known ones and examples from elsewhere."""
    language = SETTINGS[setting].language
    known, outside, unseen = (
        scores(setting, part, model) for part in ("known", "outside", "unseen")
    )
    examples = texts.EXAMPLES if language else deals.SIZES[deals.CIFAR].examples
    coins = rng_of(setting, "zero", model).random(examples) < 0.5
    rng = rng_of(setting, "zero again", model)
    for source, audit in (("known", KNOWN), ("fitted", FITTED)):
        if source == "fitted" and language:
            continue
        real, idle = (propensities(setting, part, source) for part in ("known", "unseen"))
        for attack in known:
            for truth, inside, chances in (
                (AUDITED, known, real),
                (TOSSED, known, real),
                (UNSEEN, unseen, idle),
            ):
                found, odds = (
                    mixed(coins, one, other)
                    for one, other in (
                        (inside[attack], outside[attack]),
                        (chances, propensities(setting, "outside", source)),
                    )
                )
                own = rng.random(examples) < odds if truth == TOSSED else coins
                yield from zero_rows(audit, attack, truth, found, own, odds, source == "fitted")


def mixed(coins: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Take as many of the first ones of either kind as the coins ask for."""
    values = np.empty(len(coins))
    values[coins], values[~coins] = inside[: coins.sum()], outside[: (~coins).sum()]
    return values


def zero_rows(
    audit: str,
    attack: str,
    truth: str,
    found: np.ndarray,
    own: np.ndarray,
    chances: np.ndarray,
    fitted: bool,
) -> Iterator[dict]:
    """Bound ε at six numbers of guesses, which share the level; the ceiling knows the truth."""
    guesses = guesses_of(SHARP_POSTERIOR, found, np.log(chances) - np.log1p(-chances))
    right = np.where(guesses != 0, np.where(own, 1, -1), 0)
    for family, correction in ((GAUSSIAN, "sharp"), (NO_FAMILY, "untampered")):
        bound, best = (
            zero_run(
                one,
                own,
                chances,
                correction=correction,
                family=family,
                delta=DELTA,
                confidence=CONFIDENCE,
                rng=0,
            )
            for one in (guesses, right)
        )
        if fitted:  # nobody can know that a fit is right
            bound = replace(bound, claim="estimate")
        told_ = row(audit, attack, truth, family, bound, float(best.epsilon))
        yield told_ | {"examples": len(own)}


@cache
def propensities(setting: str, part: str, source: str) -> np.ndarray:
    """Return the chances of membership, where known members and examples from elsewhere mix."""
    if SETTINGS[setting].language:
        return texts.propensity(told(setting, part, "good")[texts.BEFORE].astype(int))
    rows, _ = deals.asked(deals.CIFAR, part)
    if source == "known":
        return deals.propensity(deals.CIFAR, rows)
    return fit().propensity(about(rows))


@cache
def fit():
    """Fit propensities on members and images from elsewhere that are not audited."""
    dealt, number = deals.deal(deals.CIFAR), deals.SIZES[deals.CIFAR].spare
    sides = (dealt.spare, dealt.fitting[:number])
    members_ = np.repeat([True, False], number)
    return fit_propensity(about(np.concatenate(sides)), members_, rng=0)


def about(rows: np.ndarray) -> np.ndarray:
    """Return what propensities are fitted on: directions of the features, and the class."""
    seen = deals.features(deals.CIFAR)[rows, : audits.DIRECTIONS]
    return np.column_stack((seen, np.eye(deals.CLASSES)[deals.labels_of(deals.CIFAR)[rows]]))


# --- generated examples --------------------------------------------------------------------------


def generated(setting: str, model: int) -> Iterator[dict]:
    """Compare members with examples that a generator makes; a row is the mean over tosses."""
    for truth, trained_on in (
        (AUDITED, heads.OWN),
        (UNSEEN, heads.OTHER),
        (TOSSED, heads.OWN),
    ):
        pairs = paired(setting, model, trained_on)
        rng = rng_of(setting, "generated", model)
        games = []
        for coins in rng.random((FLIPS, len(pairs["attack"]))) < 0.5:
            own = rng.random(len(coins)) < 0.5 if truth == TOSSED else coins
            shown = (pairs[name].shown(coins) for name in ("baseline", "attack"))
            games.append(panoramia(*shown, own, delta=0.0, confidence=CONFIDENCE))
        yield {
            "audit": GENERATED,
            "attack": "trees",
            "truth": truth,
            "family": None,
            "claim": games[0].claim,
            "adjacency": games[0].adjacency,
            "found": float(np.mean([game.epsilon for game in games])),
            # the baseline's share is taken off
            "ceiling": float(np.mean([game.details["ceiling"] - game.c_lower for game in games])),
            "examples": len(pairs["attack"]),
            "baseline": float(np.mean([game.c_lower for game in games])),
            "with_model": float(np.mean([game.c_plus_epsilon_lower for game in games])),
        }


def paired(setting: str, model: int, trained_on: str) -> dict[str, PairedScores]:
    """Return the stored scores of baseline and attack."""
    rows = stored(heads.GENERATED)
    for name, value in {
        **SETTINGS[setting].which,
        "model": model,
        "trained_on": trained_on,
    }.items():
        rows = rows[rows[name] == value]
    return {
        one.scores: PairedScores(unpack(one.real), unpack(one.other)) for one in rows.itertuples()
    }


# --- many runs -----------------------------------------------------------------------------------

EVERY = [
    {"canary": canary, "epsilon": epsilon, "runs": runs, "model": model}
    for model in range(heads.DEALS)
    for canary, epsilon, runs in heads.KINDS
]


@study("three-audits-runs", paper=EVERY, tolerance=0.02, sources=[heads.RUNS])
def audits_of_runs(
    canary: str, epsilon: float, runs: int, model: int, rng: np.random.Generator
) -> list[dict]:
    """Audit a training by many runs, and by bits that are tossed anew."""
    rows = stored(heads.RUNS)
    for name, value in {"canary": canary, "epsilon": epsilon, "runs": runs, "model": model}.items():
        rows = rows[rows[name] == value]
    found, bits = (unpack(rows[name].iloc[0]) for name in ("scores", "bits"))
    setting = next(name for name, (one, _) in HEADS.items() if one == epsilon)
    adjacency = "add/remove" if canary == heads.INSERTED else "substitute"
    result = []
    for truth, own in ((AUDITED, bits.astype(int)), (TOSSED, rng.permutation(bits.astype(int)))):
        # a canary that makes no difference is the null in which nobody is a member
        named = UNSEEN if canary == heads.SAME and truth == AUDITED else truth
        for family, (bound, best) in by_family(found, own, model).items():
            guess = epsilon == math.inf and family == GAUSSIAN and named == AUDITED
            result.append(
                {
                    "promised": promise(setting, adjacency),
                    "audit": MANY,
                    "attack": canary,
                    "truth": named,
                    "family": family,
                    "claim": "estimate" if guess else "lower bound",
                    "adjacency": adjacency,
                    "found": bound,
                    "ceiling": best,
                    "examples": runs,
                    "access": ACCESS[MANY],
                    "beside": runs,
                    "training_seconds": float(rows["seconds"].iloc[0]),
                }
            )
    return result


def by_family(found: np.ndarray, own: np.ndarray, model: int) -> dict[str, tuple[float, float]]:
    """Return the bound of many runs and its ceiling, by either family.

    With a Gaussian curve the cut halfway between the means, chosen on a fifth, shows most. Without
    a family the best cut leaves next to no false positives: it is one of ten, as in one run.
    """
    runs = [int((own == world).sum()) for world in (0, 1)]
    counted = [round(0.8 * number) for number in runs]
    shared = 1.0 - (1.0 - CONFIDENCE) / 10
    best = (
        two_worlds(0, counted[0], 0, counted[1], method="gaussian", delta=DELTA),
        two_worlds(0, runs[0], 0, runs[1], delta=DELTA, confidence=shared),
    )
    free = audit_scores(
        found,
        own,
        method="two-worlds",
        family=NO_FAMILY,
        threshold=RULE,
        delta=DELTA,
        confidence=CONFIDENCE,
    )
    bounds = at_midpoint(found, own, model, GAUSSIAN), float(free.epsilon)
    ceilings = (float(one.epsilon) for one in best)
    return dict(zip((GAUSSIAN, NO_FAMILY), zip(bounds, ceilings, strict=True), strict=True))


def _studied(kind: str, sources: list[str]):
    """Return the study of a kind of model."""
    return study(
        f"three-audits-{kind}",
        paper=[
            {"setting": name, "model": model}
            for name, setting in SETTINGS.items()
            if setting.study in sources
            for model in range(deals.FULLY)
        ],
        tolerance=0.02,
        sources=sources,
    )(_audited)


def _audited(setting: str, model: int) -> list[dict]:
    """Return what every audit of a model finds, and its nulls."""
    return rows_of(setting, model)


of_heads = _studied("heads", [heads.HEADS, heads.GENERATED])
of_networks = _studied("networks", [networks.NETWORKS])
of_private = _studied("private", [*private_networks.PRIVATE.values()])
of_texts = _studied("texts", [texts.TEXTS])
