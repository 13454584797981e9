"""How often an observational audit exceeds the truth, and two cases in which Theorem 5 does.

The shares that the paper's repetitions could show are those of coins and generated labels. Here
data, noise and coins are all drawn anew in each run, so that a share is what a confidence speaks
of. The two cases are exact: no simulation stands between them and the theorem.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
from numba import njit
from scipy.optimize import linprog
from scipy.stats import binom

from auditkit import Fixed, GaussianDP, MultiSplit, Split, one_run_fdp
from auditkit.attacks.label_inference import label_game
from auditkit.bounds.one_run_fdp import best_over_thresholds
from auditkit.experiment import study
from experiments.observational.randomized_response import attacks, mix, respond
from experiments.validity import clopper_pearson

DELTA = 1e-5
LEVEL = 0.05
RESPONSE, NOISE = "randomised response", "Gaussian noise"
PAPER, RATIO = "paper", "likelihood ratio"
ONE, BOTH = "one direction", "both directions"
SHARES = [0.001, *np.linspace(1.0, 0.01, 100)[::-1].tolist()]  # those of `Sweep`, and 0.1%
SWEPT = slice(1, None)
FIXED = {"fixed 0.1%": SHARES[0], "fixed 1%": SHARES[1], "fixed 10%": SHARES[10]}
MANY = MultiSplit()
SPLITS = (Split(), *MANY.each())


@study(
    "obs-validity",
    paper=[
        {"mechanism": mechanism, "classes": classes, "leak": leak, "score": score}
        | {"examples": examples, "runs": 1000}
        for mechanism, many_classes, leaks, scores, examples in (
            (RESPONSE, (2, 10), (0.25, 0.5, 1.0, 2.0, 4.0), (PAPER, RATIO), 10_000),
            (RESPONSE, (2, 10), (0.0,), (PAPER,), 10_000),
            (RESPONSE, (2,), (0.25, 1.0, 4.0), (RATIO,), 100_000),
            (NOISE, (1000,), (0.0, 0.1, 0.25, 1.0, 2.0), (RATIO,), 10_000),
            (NOISE, (1000,), (0.0, 0.1, 1.0), (RATIO,), 100_000),
        )
        for classes in many_classes
        for leak in leaks
        for score in scores
    ],
    live=[
        {"mechanism": mechanism, "classes": classes, "leak": leak, "score": score}
        | {"examples": 2000, "runs": 100}
        for mechanism, classes, leak, score in (
            (RESPONSE, 2, 0.0, PAPER),
            (RESPONSE, 2, 1.0, PAPER),
            (RESPONSE, 2, 1.0, RATIO),
            (NOISE, 1000, 0.0, RATIO),
            (NOISE, 1000, 1.0, RATIO),
        )
    ],
    reduced=[
        {"mechanism": mechanism, "classes": classes, "leak": leak, "score": RATIO}
        | {"examples": 2000, "runs": 100}
        for mechanism, classes, leak in (
            (RESPONSE, 2, 0.25),
            (RESPONSE, 10, 1.0),
            (NOISE, 1000, 0.25),
        )
    ],
    tolerance=1e-6,  # searches end some 1e-8 from the root, on another processor elsewhere
)
def overshooting(
    mechanism: str,
    classes: int,
    leak: float,
    score: str,
    examples: int,
    runs: int,
    rng: np.random.Generator,
) -> list[dict]:
    """Repeat an audit, everything drawn anew, and count how often each way to guess overshoots.

    The `leak` is the ε of randomised response, which is the hardest mechanism of the pure family,
    or the μ of Gaussian noise. A way to guess and a family together have a row, and a promise to
    keep if the mechanism belongs to the family and the choice is paid for.
    """
    counts = Counts(examples, runs)
    for run in range(runs):
        counts.add(run, *GAMES[mechanism](classes, leak, score, examples, rng))
    truths = {"pure": leak, "gaussian": leak}  # for noise there is no finite pure ε
    if mechanism == NOISE:
        truths = {"gaussian": float(GaussianDP(leak).epsilon(DELTA))}
    own = "pure" if mechanism == RESPONSE else "gaussian"
    rows = []
    for family, truth in truths.items():
        for way, bounds in ways(counts, family).items():
            exceeding = int(np.count_nonzero(bounds > truth))
            low, high = clopper_pearson(exceeding, runs)
            rows.append(
                {
                    "way": way,
                    "family": family,
                    "promised": family == own and way != "sweep",
                    "level": LEVEL,
                    "exceeding": exceeding,
                    "share": exceeding / runs,
                    "low": low,
                    "high": high,
                    "mean_bound": float(np.mean(bounds)),
                    "truth": truth,
                }
            )
    return rows


# games


def by_response(
    classes: int, epsilon: float, score: str, examples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Play against randomised response on the paper's mixture; labels come from their true law."""
    mixture = mix(examples, classes, rng)
    released = respond(mixture.labels, classes, epsilon, rng)
    scores = dict(attacks(released, mixture.posterior, epsilon))[score]
    game = label_game(mixture.labels, mixture.posterior, rng=rng)
    return scores[np.arange(examples), game.shown], game.chosen


def by_noise(
    classes: int, mu: float, score: str, examples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Play against one-hot labels that are released with N(0, 1 / μ²) noise; all equally likely.

    The attacker looks at the place of the shown label only. There the mechanism releases N(μ, 1) in
    its own units, and the simulator the same with chance 1 / classes, else N(0, 1): no better to
    tell apart than N(μ, 1) and N(0, 1), and hardly worse.
    """
    assert score == RATIO
    chosen = rng.integers(2, size=examples)
    own = (chosen == 0) | (rng.random(examples) < 1.0 / classes)
    # to within 1 / classes the logarithm of the likelihood ratio, over μ
    return rng.normal(mu * own) - 0.5 * mu, chosen


GAMES: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    RESPONSE: by_response,
    NOISE: by_noise,
}


# guesses


class Counts:
    """Correct guesses of every run: on all examples, and on the two parts of each split.

    They are what `observational_label` counts in scores without ties, for many runs at once.
    """

    def __init__(self, examples: int, runs: int) -> None:
        self.examples, self.part = examples, examples // 2
        self.sizes, self.part_sizes = (
            np.array([Fixed(guesses=share).number(number) for share in SHARES])
            for number in (self.examples, self.part)
        )
        if (np.diff(self.part_sizes) < 1).any():
            raise ValueError(f"examples must be enough for 0.1% and 1% to differ, got {examples}")
        self.first = np.zeros((examples, len(SPLITS)), bool)
        for split, column in zip(SPLITS, self.first.T, strict=True):
            column[np.random.default_rng(split.seed).permutation(examples)[: self.part]] = True
        self.whole = np.empty((runs, len(SHARES)), np.int64)
        self.parts = np.empty((2, runs, len(SPLITS), len(SHARES)), np.int64)

    def add(self, run: int, scores: np.ndarray, chosen: np.ndarray) -> None:
        """Count the guesses of a run."""
        order = np.argsort(-np.abs(scores), kind="stable")
        right = np.sign(scores) == np.where(chosen == 0, 1, -1)
        self.whole[run] = np.cumsum(right[order])[self.sizes - 1]
        _count(right, order, self.first, self.part_sizes, *self.parts[:, run])


@njit(cache=True)
def _count(
    right: np.ndarray,
    order: np.ndarray,
    first: np.ndarray,
    sizes: np.ndarray,
    ones: np.ndarray,
    others: np.ndarray,
) -> None:
    """Count in both parts of all splits, walking down the scores once."""
    splits = first.shape[1]
    seen = np.zeros((2, splits), np.int64)
    held = np.zeros((2, splits), np.int64)
    place = np.zeros((2, splits), np.int64)
    for example in order:
        for split in range(splits):
            part = 0 if first[example, split] else 1
            seen[part, split] += 1
            held[part, split] += right[example]
            at = place[part, split]
            if at < sizes.size and seen[part, split] == sizes[at]:
                if part == 0:
                    ones[split, at] = held[part, split]
                else:
                    others[split, at] = held[part, split]
                place[part, split] += 1


def ways(counts: Counts, family: str) -> dict[str, np.ndarray]:
    """Return the bound of each run, by the way in which it guessed."""
    found = {}
    for way, share in FIXED.items():
        place = SHARES.index(share)
        found[way] = epsilons(
            counts.whole[:, place], counts.sizes[place], counts.examples, family, LEVEL
        )
    sizes, part_sizes = counts.sizes[SWEPT], counts.part_sizes[SWEPT]
    games = counts.whole[:, SWEPT], sizes, counts.examples
    for way, level in (("sweep", LEVEL), ("corrected sweep", LEVEL / sizes.size)):
        best, _ = best_over_thresholds(*games, family=family, level=level)
        found[way] = best if family == "pure" else np.asarray(GaussianDP(best).epsilon(DELTA))
    first, second = counts.parts[..., SWEPT]
    split = divided(first[:, :1], second[:, :1], part_sizes, counts.part, family, LEVEL)
    found["split"] = split[:, 0]
    many = divided(first[:, 1:], second[:, 1:], part_sizes, counts.part, family, LEVEL / 2.0)
    found["many splits"] = np.sort(many, axis=1)[:, MANY.splits // 2]  # an odd number
    return found


def divided(
    first: np.ndarray, second: np.ndarray, sizes: np.ndarray, part: int, family: str, level: float
) -> np.ndarray:
    """Choose the share with the largest bound on one part, and bound the count on the other."""
    tried = epsilons(first, sizes, part, family, level)
    # of equal ones that with the most guesses
    best = tried.shape[-1] - 1 - np.argmax(tried[..., ::-1], axis=-1)
    correct = np.take_along_axis(second, best[..., None], axis=-1)[..., 0]
    return epsilons(correct, sizes[best], part, family, level)


def epsilons(
    correct: np.ndarray, guesses: np.ndarray, examples: int, family: str, level: float
) -> np.ndarray:
    """Bound each count; those that occur more than once are bounded once."""
    pairs, place = np.unique(guesses * (examples + 1) + correct, return_inverse=True)
    bound = one_run_fdp(
        pairs % (examples + 1),
        pairs // (examples + 1),
        examples,
        family=family,
        delta=0.0 if family == "pure" else DELTA,
        confidence=1.0 - level,
    )
    return np.asarray(bound.epsilon)[place].reshape(np.shape(correct))


# Theorem 5 from one direction


@study(
    "obs-theorem-5",
    paper={
        "examples": [10, 30, 100, 300, 1000, 3000, 10_000],
        "epsilon": [1.0, 2.0, np.inf],
        "curve": [ONE, BOTH],
    },
)
def one_direction(examples: int, epsilon: float, curve: str) -> dict:
    """Compare what Algorithm 3 calls rare with how rare it is, for answers to a yes-or-no question.

    Labels are uniform on two values, released by randomised response, and all guessed on. The
    attacker takes a shown label for the training label where it is the released one, and is right
    with chance 1/4 + e / 2, where e is that of an honest answer. With ε = ∞ labels are published.

    ``rejected`` is the smallest count that the algorithm calls rarer than the level under this
    curve, ``chance`` how often so many guesses are right, and ``limit`` the largest count that is
    in truth no rarer than that. ``allowed`` is the largest mean accuracy under the curve.
    """
    honest = 1.0 / (1.0 + np.exp(-epsilon))
    lines = CURVES[curve](honest)
    accuracy = 0.25 + 0.5 * honest
    low, high = 0, examples + 1  # a count of examples + 1 stands for none
    while high - low > 1:
        middle = (low + high) // 2
        if rejects(lines, middle, examples, LEVEL):
            high = middle
        else:
            low = middle
    found = high <= examples
    return {
        "rejected": high if found else None,
        "rejected_share": high / examples if found else None,
        "chance": float(binom.sf(high - 1, examples, accuracy)) if found else None,
        "limit": int(binom.isf(LEVEL, examples, accuracy)),
        "accuracy": float(accuracy),
        "allowed": allowed(lines),
    }


Lines = tuple[tuple[float, float], ...]


def printed(honest: float) -> Lines:
    """Return 1 - f for f as the appendix defines it: Pr[M(D) ∈ E] ≤ 1 - f(Pr[Sim ∈ E]).

    A curve is the lowest of lines (intercept, slope). The mechanism gives the true label's answer
    the chance e, and the simulator, who makes up a label, 1/2.
    """
    lie = 1.0 - honest
    return ((0.0, 2.0 * honest), (1.0 - 2.0 * lie, 2.0 * lie))


def both(honest: float) -> Lines:
    """Return the smallest symmetric curve above that one and its reverse: the hull of the two.

    That mechanism and simulator change places turns 1 - f(x) into 1 - f⁻¹(x), for the complements
    of the events: what holds in one direction gives the other one for nothing.
    """
    lie = 1.0 - honest
    steep = ((0.0, 0.5 / lie),) if lie > 0.0 else ()
    return (*steep, (honest - 0.5, 1.0), (1.0 - 2.0 * lie, 2.0 * lie))


CURVES: dict[str, Callable[[float], Lines]] = {
    ONE: printed,
    BOTH: both,
}


def rejects(lines: Lines, correct: int, examples: int, level: float) -> bool:
    """Run Algorithm 3 line by line for a curve made of lines, with a guess on every example.

    Its line 3 is read as γ (c' - c) / m. What h bounds is not below 0 and never falls.
    """
    r, h = level * correct / examples, level * (examples - correct) / examples
    for i in range(correct - 1, -1, -1):
        inverse = max((r - intercept) / slope for intercept, slope in lines if slope > 0.0)
        rise = max(inverse - h, 0.0)
        h += rise
        r += i / (examples - i) * rise
        if r + h >= 1.0:
            return True
    return False


def allowed(lines: Lines) -> float:
    """Return the largest accuracy p with p ≤ 1 - f(1 - p)."""
    return float(min(1.0, *((intercept + slope) / (1.0 + slope) for intercept, slope in lines)))


def largest_excess(examples: int, honest: float, lines: Lines, *, swapped: bool = False) -> float:
    """Return by how much some event breaks the definition, over all labels: at most 0 if none does.

    All events are tried, for randomised response on so many labels, of which the simulator makes up
    the first. With `swapped` mechanism and simulator change places.
    """
    outputs = list(product((0, 1), repeat=examples))
    worst = -np.inf
    for labels in outputs:
        true = np.array([chance(output, labels, honest) for output in outputs])
        other = np.array(
            [
                0.5 * sum(chance(output, (made_up, *labels[1:]), honest) for made_up in (0, 1))
                for output in outputs
            ]
        )
        if swapped:
            true, other = other, true
        for event in product((False, True), repeat=len(outputs)):
            held = np.array(event)
            ceiling = min(1.0, *(line + slope * other[held].sum() for line, slope in lines))
            worst = max(worst, float(true[held].sum() - ceiling))
    return worst


def chance(output: tuple[int, ...], labels: tuple[int, ...], honest: float) -> float:
    """Return how likely randomised response is to release an output."""
    same = [o == label for o, label in zip(output, labels, strict=True)]
    return float(np.prod([honest if equal else 1.0 - honest for equal in same]))


# Theorem 5 with a shift


@study(
    "obs-theorem-5-shift",
    paper={
        "labels": [1, 3, 10, 40],
        "epsilon": [0.1, 0.5, 1.0, 2.0, 4.0],
        "tau": [0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9],
    },
    tolerance=1e-6,  # the solver stops within 1e-7 of its constraints
)
def one_shift(labels: int, epsilon: float, tau: float) -> dict:
    """Return the best accuracy on one example that any mechanism and attacker reach under a shift.

    The curve is that of pure ε, in both directions. With chance τ the true label is one that is
    never generated, with chance τ the generated label one that is never true, and the other labels,
    as many as `labels`, are equally likely. The attacker knows the two at sight. The best mechanism
    for the rest is the solution of a linear programme. By symmetry a released value is the set of
    labels that it speaks for, and only the size of the set matters.

    ``allowed`` is the accuracy above which Algorithm 3 rejects the curve at every level, and
    ``repaired`` that of 1 - f(x + τ) + τ in place of 1 - f(x + τ).
    """
    sizes = np.arange(labels + 1)
    # a released size and whether the label is in the set; the label only true, that only generated
    inside, outside, true_only, made_only = np.split(np.eye(4 * (labels + 1)), 4)
    simulated = (1.0 - tau) * (inside + outside) + tau * made_only
    released = (1.0 - tau) * (inside + outside) + tau * true_only
    wins = 0.5 * (1.0 - tau) * (inside + (1.0 - sizes / labels)[:, None] * released).sum(axis=0)
    held, empty = sizes > 0, sizes < labels
    densities = [
        (inside[held] * (labels / sizes[held])[:, None], simulated[held]),
        (outside[empty] * (labels / (labels - sizes[empty]))[:, None], simulated[empty]),
        (true_only, simulated),
        (made_only, simulated),
    ]
    most = np.exp(epsilon)
    limits = [row for low, high in densities for row in (low - most * high, high - most * low)]
    sums = np.stack([(inside + outside).sum(axis=0), true_only.sum(axis=0), made_only.sum(axis=0)])
    never = inside[0] + outside[-1]  # the empty set holds no label, the full one all
    solution = linprog(
        -wins,
        A_ub=np.concatenate(limits),
        b_ub=np.zeros(sum(map(len, limits))),
        A_eq=np.vstack((sums, never)),
        b_eq=[1.0, 1.0, 1.0, 0.0],
        method="highs",
    )
    assert solution.success, solution.message
    honest = 1.0 / (1.0 + np.exp(-epsilon))
    return {
        "accuracy": float(tau - solution.fun),
        "allowed": float(honest + (1.0 - honest) * tau),
        "repaired": float(min(1.0, honest + tau)),
        "without_shift": float(honest),
    }


def three_labels(tau: Fraction = Fraction(4, 5)) -> dict[str, Fraction]:
    """Return an accuracy beyond Theorem 5 in fractions: ε = log 2, three labels and two outputs.

    The true label is "a" with chance τ, else "c"; the generated one "b" with chance τ, else "c". An
    attacker knows "a" and "b" at sight. Of "c" he says that it is the training label where the
    output is 1.
    """
    ones = {"a": Fraction(1, 3), "c": Fraction(5, 6)}  # how often each label releases a 1
    ones["b"] = (Fraction(2, 3) - (1 - tau) * ones["c"]) / tau  # so that the simulator's is 2/3
    simulated = tau * ones["b"] + (1 - tau) * ones["c"]
    ratios = [
        ratio
        for one in ones.values()
        for mine, its in ((one, simulated), (1 - one, 1 - simulated))
        for ratio in (mine / its, its / mine)
    ]
    released = tau * ones["a"] + (1 - tau) * ones["c"]
    accuracy = tau + (1 - tau) * (ones["c"] + 1 - released) / 2
    return {
        "accuracy": accuracy,
        "allowed": Fraction(2, 3) + tau / 3,
        "largest_ratio": max(ratios),
    }
