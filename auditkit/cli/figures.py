"""The figures of a report: what the scores are, what they show, and what they could have shown."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditkit.bounds.games import OneRunGame
from auditkit.bounds.one_run import one_run, one_run_fdp
from auditkit.bounds.result import rounded
from auditkit.bounds.scores import limits_of
from auditkit.bounds.tradeoff import ApproxDP, GaussianDP
from auditkit.bounds.two_worlds import two_worlds
from auditkit.cli.charts import Axis, Chart, Line
from auditkit.cli.score_files import Floats
from auditkit.cli.statement import Audit
from auditkit.cli.verdict import SHARES, Question, guesses_on, kept_at_most, shuffled
from auditkit.evidence import ErrorCounts, Scores
from auditkit.thresholds import Fixed

BINS = 40
POINTS = 300  # of a curve: more than anybody can tell apart
DELTAS = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3)


def figures(audit: Audit) -> list[Chart]:
    """Return the figures that the method and the columns allow."""
    question = audit.question
    drawn = [
        _histogram(question),
        _roc(question),
        _against_guesses(audit),
        _trade_off(audit),
    ]
    if question.propensity is not None:
        drawn.append(_overlap(question, question.propensity))
    return [chart for chart in drawn if chart is not None]


def _kinds(question: Question) -> tuple[str, str]:
    if question.method == "observational-label":
        return "training label shown", "generated label shown"
    if question.method == "two-worlds":
        return "runs with the canary", "runs without"
    return "members", "non-members"


def _histogram(question: Question) -> Chart | None:
    """Return the shares of both kinds over the scores; the ends take what lies beyond."""
    score, truth = question.table.score, question.truth
    low, high = np.quantile(score, (0.001, 0.999), method="inverted_cdf")
    if low == high:
        low, high = score.min(), score.max()
    if (high - low) / BINS <= np.spacing(max(abs(low), abs(high))):
        return None  # no float could tell one bin from the next
    return _shares_chart(
        "Scores",
        "score (the outermost bins hold all beyond)",
        np.linspace(low, high, BINS + 1),
        np.clip(score, low, high),
        truth,
        _kinds(question),
    )


def _overlap(question: Question, propensity: Floats) -> Chart:
    return _shares_chart(
        "Propensities",
        "chance of being a member, given the example",
        np.linspace(0.0, 1.0, BINS // 2 + 1),
        propensity,
        question.truth,
        _kinds(question),
    )


def _shares_chart(
    title: str,
    label: str,
    edges: Floats,
    values: Floats,
    truth: NDArray[np.bool_],
    kinds: tuple[str, str],
) -> Chart:
    lines, highest, means = [], 0.0, []
    for kind, name, role in ((True, kinds[0], "ours"), (False, kinds[1], "paper")):
        counts, _ = np.histogram(values[truth == kind], edges)
        shares = counts / max(int(counts.sum()), 1)
        highest = max(highest, float(shares.max()))
        steps = zip(np.repeat(edges, 2)[1:-1].tolist(), np.repeat(shares, 2).tolist(), strict=True)
        lines.append(Line(role, name, list(steps)))
        means.append(float(np.median(values[truth == kind])))
    alt = (
        f"The median is {means[0]:.4g} for {kinds[0]} and {means[1]:.4g} for {kinds[1]}. "
        "Heights are shares of each kind."
    )
    x = Axis(label, float(edges[0]), float(edges[-1]))
    return Chart(title, alt, x, Axis("share of the kind", 0.0, 1.05 * highest), lines)


def rates(scores: Floats, truth: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return false and true positive rates at every distinct score, from the highest."""
    last, right = _tops(scores, truth)
    wrong = last + 1 - right
    return wrong / int((~truth).sum()), right / int(truth.sum())


def _tops(scores: Floats, truth: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the place of the last row of each tie, from the highest, and the members so far."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), scores.size - 1)
    return last, np.cumsum(truth[order])[last]


def _roc(question: Question) -> Chart:
    fpr, tpr = rates(question.table.score, question.truth)
    least = 1.0 / max(int((~question.truth).sum()), int(question.truth.sum()))
    least = min(least, 0.1)
    seen = (fpr > 0.0) & (tpr > 0.0)
    curve = _thinned(fpr[seen], tpr[seen], log=True)
    at = float(np.interp(0.01, fpr, tpr))
    kinds = _kinds(question)
    alt = (
        f"Both axes are logarithmic. Where 1% of {kinds[1]} are taken for {kinds[0]}, "
        f"{100.0 * at:.3g}% of {kinds[0]} are found; guessing would find 1%."
    )
    return Chart(
        "ROC curve",
        alt,
        Axis("false positive rate", least, 1.0, log=True),
        Axis("true positive rate", least, 1.0, log=True),
        [
            Line("null", "guessing", [(least, least), (1.0, 1.0)]),
            Line("ours", "the scores", curve),
        ],
    )


def _against_guesses(audit: Audit) -> Chart | None:
    """Return what each number of guesses would show by itself, and its ceiling."""
    question = audit.question
    if question.method == "two-worlds":
        across, shown, most = _two_worlds_curve(question)
        label = "runs taken for runs with the canary"
    elif question.method == "panoramia":
        across, shown, most = _panoramia_curve(question)
        label = "guesses of member"
    elif question.method == "zero-run":
        across, shown, most = _zero_run_curve(question)
        label = "guesses"
    else:
        across, shown, most = _one_run_curve(question)
        label = "guesses"
    if len(across) < 2:
        return None
    epsilon = float(np.asarray(audit.bound.epsilon))
    top = 1.05 * max(float(most.max()), epsilon, 1e-9)
    name = "c + ε" if question.method == "panoramia" else "ε"
    lines = [
        Line("upper bound", "ceiling: had every guess been right", _pairs(across, most)),
        Line("ours", "each number of guesses by itself, on all rows", _pairs(across, shown)),
    ]
    guesses = audit.bound.details.get("guesses")
    if question.method != "panoramia":
        ends = [(float(across[0]), epsilon), (float(across[-1]), epsilon)]
        lines.append(Line("truth", f"stated: {rounded(epsilon, audit.bound.claim)}", ends))
        if guesses is not None:
            at = min(max(float(guesses), float(across[0])), float(across[-1]))
            lines.append(
                Line("truth", f"stated, from {guesses:,} guesses", [(at, epsilon)], mark="points")
            )
    best = float(shown.max())
    alt = (
        f"Alone, a number of guesses fixed beforehand would show at most {best:.3g}; "
        "to take the best of them afterwards is what a stated bound may not do."
    )
    if question.method == "panoramia":
        alt = (
            f"Each number has its share of the level, so that the best of them counts: {best:.3g}."
        )
    alt += f" The ceiling is {float(most.max()):.3g} at its highest."
    x = Axis(label, float(across[0]), float(across[-1]), log=True)
    return Chart("Bound and number of guesses", alt, x, Axis(f"bound on {name}", 0.0, top), lines)


def _one_run_curve(question: Question) -> tuple[Floats, Floats, Floats]:
    theorem = one_run if question.method == "one-run" else one_run_fdp
    stated = partial(theorem, delta=question.delta)
    by_size = question.method == "observational-label"
    game = OneRunGame(stated, by_size=by_size)
    bound = game.preset(Scores(question.table.score, question.truth), 30).bound(
        question.request.confidence
    )
    guesses = np.asarray(bound.details["guesses"])
    most = stated(guesses, guesses, len(question.truth), confidence=question.request.confidence)
    order = np.argsort(guesses)
    shown, ceiling = np.atleast_1d(bound.epsilon), np.atleast_1d(most.epsilon)
    return guesses[order].astype(np.float64), shown[order], ceiling[order]


def _zero_run_curve(question: Question) -> tuple[Floats, Floats, Floats]:
    from auditkit.bounds.zero_run import zero_run

    scores, members, propensity = shuffled(question)
    rules = [Fixed(guesses=share) for share in SHARES[::-1].tolist()]
    common: Mapping[str, Any] = {
        "delta": question.delta,
        "confidence": question.request.confidence,
    }
    rows = []
    for guesses in guesses_on(scores, propensity, rules):
        alone = zero_run(guesses, members, propensity, rng=question.request.seed, **common)
        number = int(np.count_nonzero(guesses))
        (kept,) = kept_at_most(guesses, members, propensity, question.request.seed)
        most = one_run_fdp(kept, number, members.size, **common)
        rows.append((number, float(alone.epsilon), float(most.epsilon)))
    table = np.unique(np.array(rows, dtype=np.float64), axis=0)
    return table[:, 0], table[:, 1], table[:, 2]


def _two_worlds_curve(question: Question) -> tuple[Floats, Floats, Floats]:
    scores = Scores(question.table.score, question.truth)
    places = np.unique(np.geomspace(1, len(scores), 60).astype(np.int64))
    cuts = np.unique(np.sort(scores.values)[::-1][places - 1])
    counts = ErrorCounts.at(scores, cuts)
    common: Any = {
        "method": limits_of(question.request.family),
        "delta": question.delta,
        "confidence": question.request.confidence,
    }
    bound = two_worlds(
        counts.false_positives,
        counts.negatives,
        counts.false_negatives,
        counts.positives,
        **common,
    )
    most = two_worlds(0, counts.negatives, 0, counts.positives, **common)
    taken = counts.false_positives + counts.positives - counts.false_negatives
    order = np.argsort(taken)
    shown = np.atleast_1d(bound.epsilon)[order]
    ceiling = np.broadcast_to(np.atleast_1d(most.epsilon), shown.shape)
    return taken[order].astype(np.float64), shown, ceiling


def _panoramia_curve(question: Question) -> tuple[Floats, Floats, Floats]:
    scores, truth = question.table.score, question.truth
    last, right = _tops(scores, truth)
    kept = np.unique(np.geomspace(1, last.size, 40).astype(np.int64)) - 1
    guesses, correct = last[kept] + 1, right[kept]
    each = 1.0 - (1.0 - question.request.confidence) / 2.0 / last.size
    shown = one_run(correct, guesses, scores.size, delta=0.0, confidence=each)
    sure = np.minimum(guesses, int(truth.sum()))
    most = one_run(sure, guesses, scores.size, delta=0.0, confidence=each)
    return guesses.astype(np.float64), np.atleast_1d(shown.epsilon), np.atleast_1d(most.epsilon)


def _trade_off(audit: Audit) -> Chart:
    question, bound = audit.question, audit.bound
    fpr, tpr = rates(question.table.score, question.truth)
    attack = _thinned(np.append(0.0, fpr), np.append(1.0, 1.0 - tpr), log=False)
    grid = np.unique(np.concatenate((np.geomspace(1e-6, 0.05, 40), np.linspace(0.0, 1.0, 80))))
    epsilon = float(np.asarray(bound.epsilon))
    lines = [
        Line("null", "no leak at all", [(0.0, 1.0), (1.0, 0.0)]),
        Line("estimate", "the scores, every threshold", attack),
    ]
    mu = bound.details.get("mu")
    curve = ApproxDP(epsilon, question.delta) if mu is None else GaussianDP(float(mu))
    lower = "lower" if bound.claim == "lower bound" else "estimated"
    lines.append(
        Line(
            "ours",
            f"{lower} bound, ε = {rounded(epsilon, bound.claim)}",
            _pairs(grid, np.asarray(curve.beta(grid))),
        )
    )
    alt = (
        "The nearer a curve lies to the lower left corner, the more leaks. A mechanism whose whole "
        f"curve lies above that of the {lower} bound "
        f"{'is ruled out.' if lower == 'lower' else 'would be ruled out, were it proved.'}"
    )
    if audit.promise is not None and audit.upper is not None:
        key = "add/remove" if bound.adjacency == "add/remove" else "substitute"
        lines.append(
            Line(
                "upper bound",
                f"theory's promise, {key}, ε = {rounded(audit.upper[key], 'upper bound')}",
                _pairs(grid, _promised(audit.promise, key, grid)),
            )
        )
        alt += " No attack gets below theory's promise, but by chance."
    return Chart(
        "Trade-off of the two errors",
        alt,
        Axis("false positive rate", 0.0, 1.0),
        Axis("false negative rate", 0.0, 1.0),
        lines,
    )


def _promised(promise: Mapping[str, float], adjacency: str, grid: Floats) -> Floats:
    """Return the curve that theory promises: the highest of those at several δ."""
    from auditkit.accounting import dp_sgd_epsilon

    found = np.zeros(grid.size)
    for delta in DELTAS:
        run: Any = dict(promise)
        epsilon = dp_sgd_epsilon(**run, delta=delta, adjacency=adjacency)
        found = np.maximum(found, np.asarray(ApproxDP(epsilon, delta).beta(grid)))
    return found


def _thinned(x: Floats, y: Floats, *, log: bool) -> list[tuple[float, float]]:
    """Return at most so many points of a curve as can be told apart."""
    if x.size > POINTS:
        along = np.log(x) if log else x + (1.0 - y)
        wanted = np.linspace(along[0], along[-1], POINTS)
        places = np.unique(np.searchsorted(along, wanted).clip(0, x.size - 1))
        x, y = x[places], y[places]
    return _pairs(x, y)


def _pairs(x: Floats, y: Floats) -> list[tuple[float, float]]:
    return list(zip(np.asarray(x).tolist(), np.asarray(y).tolist(), strict=True))
