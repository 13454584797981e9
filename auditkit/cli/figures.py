"""The figures of a report: what the scores are, what they show, and what they could have shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from auditkit._types import Floats
from auditkit.bounds.one_run import one_run
from auditkit.bounds.result import rounded
from auditkit.bounds.roc import roc, tpr_at_fpr
from auditkit.bounds.tradeoff import ApproxDP, GaussianDP
from auditkit.cli.question import Question
from auditkit.cli.statement import Audit
from auditkit.cli.verdict import all_right, game_of, proved
from auditkit.evidence import ErrorCounts, Scores
from auditkit.figures import PALETTE, house_style, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 40
POINTS = 300  # of a curve: more than anybody can tell apart
RULES = 30  # numbers of guesses that are tried one by one
DELTAS = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3)


@dataclass(frozen=True)
class Picture:
    """A figure of the report.

    Attributes
    ----------
    title, says : str
        What is seen, and what it means.
    svg : str
        The picture, as a part of the page.
    axes : tuple of str
        What the axes show.
    numbers : list of tuple
        The name of a line, and one of its points; every so many.
    """

    title: str
    says: str
    svg: str
    axes: tuple[str, str]
    numbers: list[tuple[str, float, float]]


def pictures(audit: Audit) -> list[Picture]:
    """Return the figures that the method and the columns allow."""
    import matplotlib as mpl

    question = audit.question
    with mpl.rc_context():
        house_style()
        drawn = [_scores(question), _roc(question), _against_guesses(audit), _trade_off(audit)]
        if question.propensity is not None:
            drawn.append(_overlap(question, question.propensity))
    return [picture for picture in drawn if picture is not None]


def _axes(x: str, y: str, **settings: Any) -> "Axes":
    from matplotlib.figure import Figure

    axes = Figure().subplots(subplot_kw={"xlabel": x, "ylabel": y, **settings})
    if axes.get_yscale() == "linear":  # as many ticks whatever room the legend leaves
        axes.locator_params(axis="y", nbins=6)
    return axes


def _line(axes: "Axes", role: str, name: str, x: Any, y: Any, **looks: Any) -> None:
    axes.plot(x, y, label=name, **{**PALETTE[role], "marker": "", **looks})


def _picture(axes: "Axes", title: str, says: str) -> Picture:
    figure = axes.figure.get_figure(root=True)
    assert figure is not None
    wide = max(len(str(line.get_label())) for line in axes.lines) > 25
    figure.legend(loc="outside lower center", ncols=1 if wide else 2)
    numbers = []
    for line in axes.lines:
        points = np.asarray(line.get_xydata()).tolist()
        every = max(1, -(-len(points) // 12))
        numbers += [(str(line.get_label()), x, y) for x, y in points[::every]]
    drawn = svg(figure, title.lower().replace(" ", "-"), f"{title}. {says}")
    return Picture(title, says, drawn, (axes.get_xlabel(), axes.get_ylabel()), numbers)


def _kinds(question: Question) -> tuple[str, str]:
    if question.method == "observational-label":
        return "training label shown", "generated label shown"
    if question.method == "two-worlds":
        return "runs with the canary", "runs without"
    return "members", "non-members"


def _scores(question: Question) -> Picture | None:
    """Draw the shares of both kinds over the scores; the ends take what lies beyond."""
    score = question.table.score
    low, high = np.quantile(score, (0.001, 0.999), method="inverted_cdf")
    if low == high:
        low, high = score.min(), score.max()
    if (high - low) / BINS <= np.spacing(max(abs(low), abs(high))):
        return None  # no float could tell one bin from the next
    edges = np.linspace(low, high, BINS + 1)
    label = "score (the outermost bins hold all beyond)"
    return _shares("Scores", label, question, np.clip(score, low, high), edges)


def _overlap(question: Question, propensity: Floats) -> Picture:
    edges, label = (
        np.linspace(0.0, 1.0, BINS // 2 + 1),
        "chance of being a member, given the example",
    )
    return _shares("Propensities", label, question, propensity, edges)


def _shares(title: str, label: str, question: Question, values: Floats, edges: Floats) -> Picture:
    axes, kinds, medians = _axes(label, "share of the kind"), _kinds(question), []
    for kind, name, role in ((True, kinds[0], "ours"), (False, kinds[1], "paper")):
        own = values[question.truth == kind]
        shares = np.histogram(own, edges)[0] / own.size
        _line(axes, role, name, edges, np.append(shares, shares[-1:]), drawstyle="steps-post")
        medians.append(float(np.median(own)))
    axes.set_ylim(bottom=0.0)
    return _picture(
        axes,
        title,
        f"The median is {medians[0]:.4g} for {kinds[0]} and {medians[1]:.4g} for {kinds[1]}. "
        "Heights are shares of each kind.",
    )


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return as many points of a curve as can be told apart, by its ends and by its middle."""
    ends = np.concatenate((np.geomspace(1, x.size, POINTS), np.linspace(1, x.size, POINTS)))
    places = np.unique(ends.astype(np.int64)) - 1
    return x[places], y[places]


def _roc(question: Question) -> Picture:
    score, truth = question.table.score, question.truth
    fpr, tpr, _ = roc(score, truth)
    least = min(0.1, 1.0 / max(int((~truth).sum()), int(truth.sum())))
    limits = (least, 1.0)
    axes = _axes("false positive rate", "true positive rate", xscale="log", yscale="log")
    axes.set(xlim=limits, ylim=limits)
    seen = (fpr > 0.0) & (tpr > 0.0)
    _line(axes, "null", "guessing", limits, limits)
    _line(axes, "ours", "the scores", *_thinned(fpr[seen], tpr[seen]))
    kinds = _kinds(question)
    return _picture(
        axes,
        "ROC curve",
        f"Both axes are logarithmic. Where 1% of {kinds[1]} at most are taken for {kinds[0]}, the "
        f"share of {kinds[0]} that are found is "
        f"{tpr_at_fpr(score, truth, 0.01, confidence=question.confidence)}; guessing would find "
        "0.010.",
    )


def _against_guesses(audit: Audit) -> Picture | None:
    """Draw what each number of guesses would show by itself, and its ceiling."""
    question, bound = audit.question, audit.bound
    across, shown, most = curve(question)
    if np.unique(across).size < 2:
        return None
    best, panoramia = float(shown.max()), question.method == "panoramia"
    label = {"two-worlds": "runs taken for runs with the canary", "panoramia": "guesses of member"}
    name = "bound on c + ε" if panoramia else "bound on ε"
    axes = _axes(label.get(question.method, "guesses"), name, xscale="log")
    _line(axes, "upper bound", "ceiling: had every guess been right", across, most)
    _line(axes, "ours", "each number of guesses by itself, on all rows", across, shown)
    if panoramia:
        says = f"Each number has its share of the level, so that the best counts: {best:.3g}."
    else:
        says = (
            f"Alone, a number of guesses fixed beforehand would show at most {best:.3g}; "
            "to take the best of them afterwards is what a stated bound may not do."
        )
        epsilon, ends = float(np.asarray(bound.epsilon)), across[[0, -1]]
        stated = f"stated: {rounded(epsilon, bound.claim)}"
        _line(axes, "truth", stated, ends, [epsilon, epsilon])
        if "guesses" in bound.details:
            made = bound.details["guesses"]
            at, mark = [np.clip(made, *ends)], PALETTE["truth"]["marker"]
            _line(
                axes,
                "truth",
                f"stated, from {made:,} guesses",
                at,
                [epsilon],
                marker=mark,
                linestyle="",
            )
    axes.set_ylim(bottom=0.0)
    says += f" The ceiling is {float(most.max()):.3g} at its highest."
    return _picture(axes, "Bound and number of guesses", says)


def curve(question: Question) -> tuple[Floats, Floats, Floats]:
    """Return numbers of guesses, with what each shows by itself and would show without an error."""
    confidence = question.confidence
    if question.method == "panoramia":
        scores = Scores(question.table.score, question.truth)
        cuts = np.unique(scores.values)[::-1]
        kept = np.unique(np.geomspace(1, cuts.size, RULES).astype(np.int64)) - 1
        errors = ErrorCounts.at(scores, cuts[kept])
        right = errors.positives - errors.false_negatives
        across = right + errors.false_positives
        level: Any = {"delta": 0.0, "confidence": 1.0 - (1.0 - confidence) / 2.0 / cuts.size}
        shown = one_run(right, across, len(scores), **level).epsilon
        most = one_run(np.minimum(across, errors.positives), across, len(scores), **level).epsilon
    else:
        game, scores = game_of(question)
        bound = game.preset(scores, RULES).bound(confidence)
        shown, counts = bound.epsilon, bound.details
        perfect = all_right(question, counts)
        most = proved(question, perfect, delta=question.delta, confidence=confidence)
        if question.method == "two-worlds":
            found = counts["positives"] - counts["false_negatives"]
            across = np.asarray(counts["false_positives"] + found)
        else:
            across = np.asarray(counts["guesses"])
    order = np.argsort(across, kind="stable")
    shown, most = (np.broadcast_to(each, across.shape)[order] for each in (shown, most))
    return across[order].astype(np.float64), shown, most


def _trade_off(audit: Audit) -> Picture:
    question, bound = audit.question, audit.bound
    fpr, tpr, _ = roc(question.table.score, question.truth)
    axes = _axes("false positive rate", "false negative rate", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    _line(axes, "null", "no leak at all", [0.0, 1.0], [1.0, 0.0])
    attack = _thinned(fpr, 1.0 - tpr)
    _line(axes, "estimate", "the scores, every threshold", *attack)
    grid = np.unique(np.concatenate((np.geomspace(1e-6, 0.05, 40), np.linspace(0.0, 1.0, 80))))
    epsilon, mu = float(np.asarray(bound.epsilon)), bound.details.get("mu")
    ruled = ApproxDP(epsilon, question.delta) if mu is None else GaussianDP(float(mu))
    lower = "lower" if bound.claim == "lower bound" else "estimated"
    name = f"{lower} bound, ε = {rounded(epsilon, bound.claim)}"
    _line(axes, "ours", name, grid, ruled.beta(grid))
    says = (
        "The nearer a curve lies to the lower left corner, the more leaks. A mechanism whose whole "
        f"curve lies above that of the {lower} bound "
        f"{'is ruled out.' if lower == 'lower' else 'would be ruled out, were it proved.'}"
    )
    if audit.promise is not None and audit.upper is not None:
        key = "add/remove" if bound.adjacency == "add/remove" else "substitute"
        name = f"theory's promise, {key}, ε = {rounded(audit.upper[key], 'upper bound')}"
        _line(axes, "upper bound", name, grid, promised(audit.promise, key, grid))
        says += " No attack gets below theory's promise, but by chance."
    return _picture(axes, "Trade-off of the two errors", says)


def promised(promise: Mapping[str, float], adjacency: str, grid: Floats) -> Floats:
    """Return the curve that theory promises: the highest of those at several δ."""
    from auditkit.accounting import dp_sgd_epsilon

    run: Any = {**promise, "adjacency": adjacency}
    found = np.zeros(grid.size)
    for delta in DELTAS:
        epsilon = dp_sgd_epsilon(**run, delta=delta)
        found = np.maximum(found, np.asarray(ApproxDP(epsilon, delta).beta(grid)))
    return found
