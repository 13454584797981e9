"""From stored scores to audited ε: nothing is trained here.

`audits` says what the three numbers of an audit are. A bound that is better, or another figure,
runs this module again and no training.
"""

from functools import cache, lru_cache

import numpy as np
import pandas as pd

from auditkit import GaussianDP
from auditkit.experiment import stored, study
from experiments.substitute import raw, scratch, sentences
from experiments.substitute.audits import audited, promised
from experiments.substitute.linear import CANARIES, Training
from experiments.substitute.scores import PAPER, RUNS, digits, unpack
from experiments.substitute.worst_case import DELTA

# the accountant's promise may differ in its last digits on another machine
TOLERANCE = 1e-3
# what stored rows of scores say beside the scores
ABOUT = {"noise_multiplier", "norm_target", "norm_canary", "cosine", "cosine_fresh"}
ACCURACIES = {"accuracy", "accuracy_canary"}

# --- Figures 2, 4 and A1 to A4 -------------------------------------------------------------------

APART = {"features", "runs", "looks"}  # the same in all cells
RAW = [{key: value for key, value in cell.items() if key not in APART} for cell in raw.PAPER]


@study("sub-raw", tolerance=TOLERANCE, paper=RAW, live=RAW[:2], sources=[raw.SCORES])
def raw_audits(
    canary: str,
    sampling_rate: float,
    epsilon: float,
    clip: float,
    steps: int,
    learning_rate: float,
    norm: float | None,
    repeat: int,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit the heads of a cell of `raw.raw_scores`, which says what its parameters are.

    Returns
    -------
    list of dict
        A row for each ``step`` and ``score``, as `audit_rows` has it.
    """
    rows = rows_of(
        raw.SCORES,
        canary=canary,
        sampling_rate=sampling_rate,
        epsilon=epsilon,
        clip=clip,
        steps=steps,
        learning_rate=learning_rate,
        norm=norm,
        repeat=repeat,
    )
    return audit_rows(rows, Training(sampling_rate, epsilon, clip, steps, learning_rate), rng)


SIZES = (100, 250, 500, 1_000, RUNS)


@study(
    "sub-raw-runs",
    tolerance=TOLERANCE,
    paper={
        "canary": list(CANARIES),
        "sampling_rate": list(raw.RATES),
        "repeat": list(range(raw.REPEATS)),
    },
    live={"canary": list(CANARIES[:1]), "sampling_rate": [1.0], "repeat": [0]},
    sources=[raw.SCORES],
)
def by_runs(
    canary: str, sampling_rate: float, repeat: int, *, rng: np.random.Generator
) -> list[dict]:
    """Audit the same heads by the hundred, by the thousand, and all together.

    Returns
    -------
    list of dict
        A row for each number of ``runs`` of an audit. As many ``audits`` as there are disjoint sets
        of so many runs are made, and what `audits.audited` says is the mean of them. ``plug_in`` is
        that of all runs, in each row.
    """
    cell = raw.USUAL | {"sampling_rate": sampling_rate}
    rows = rows_of(raw.SCORES, canary=canary, repeat=repeat, **cell)
    (last,) = rows[(rows["step"] == cell["steps"]) & (rows["score"] == PAPER)]["scores"]
    scores, bits = unpack(last), coins(RUNS)
    training = Training(*(cell[name] for name in raw.TRAINING))
    known = {"plug_in": plug_in(scores, bits)} | spent(training, training.steps)
    found = []
    for runs in SIZES:
        parts = [slice(first, first + runs) for first in range(0, RUNS - runs + 1, runs)]
        each = [audited(scores[part], bits[part], int(rng.integers(2**31))) for part in parts]
        means = {key: digits(np.mean([one[key] for one in each])) for key in each[0]}
        found.append({"runs": runs, "audits": len(parts), **means, **known})
    return found


# --- Figure A6 -----------------------------------------------------------------------------------

TRAINED_BY = {cell["canary"]: one.id for one in sentences.TRAINED for cell in one.paper}
TEXTS = [
    {key: cell[key] for key in ("canary", "vectors", "sampling_rate")}
    for one in sentences.TRAINED
    for cell in one.paper
]


@study(
    "sub-sentences",
    tolerance=TOLERANCE,
    paper=TEXTS,
    live=TEXTS[:1],
    sources=sorted(set(TRAINED_BY.values())),
)
def sentence_audits(
    canary: str, vectors: str, sampling_rate: float, *, rng: np.random.Generator
) -> list[dict]:
    """Audit the heads of a cell of `sentences.scored`, which says what its parameters are.

    Returns
    -------
    list of dict
        A row for each ``step`` and ``score``, as `audit_rows` has it.
    """
    rows = rows_of(TRAINED_BY[canary], canary=canary, vectors=vectors, sampling_rate=sampling_rate)
    return audit_rows(rows, sentences.training(sampling_rate), rng)


# --- Figure 3 ------------------------------------------------------------------------------------

OF_NETWORKS = {one.id: one.paper for one in scratch.TRAINED}
NETWORKS = [
    {"study": name} | {key: cell[key] for key in scratch.TELLS_APART}
    for name, cells in OF_NETWORKS.items()
    for cell in cells
    if cell["part"] == 0
]


@study(
    "sub-scratch",
    tolerance=TOLERANCE,
    paper=NETWORKS,
    live=NETWORKS[:1],
    sources=list(OF_NETWORKS),
)
def scratch_audits(
    study: str,
    canary: str,
    start: str,
    null: bool,
    sampling_rate: float,
    size: int,
    steps: int,
    *,
    rng: np.random.Generator,
) -> list[dict]:
    """Audit the networks of all parts of a setting of `scratch.trained_scores`.

    Parameters
    ----------
    study : str
        The study that trained them.
    canary, start, null, sampling_rate, size, steps
        As there.

    Returns
    -------
    list of dict
        A row for each ``step`` and ``score``, as `audit_rows` has it.
    """
    rows = rows_of(
        study,
        canary=canary,
        start=start,
        null=null,
        sampling_rate=sampling_rate,
        size=size,
        steps=steps,
    )
    return audit_rows(rows, scratch.training(sampling_rate, steps), rng)


# --- what all share ------------------------------------------------------------------------------


def audit_rows(rows: pd.DataFrame, training: Training, rng: np.random.Generator) -> list[dict]:
    """Audit each step and score of one setting, whose parts are put together.

    Returns
    -------
    list of dict
        A row for each ``step`` and ``score``, with what `audits.audited` says, `plug_in`, the
        ``add_remove`` and ``substitute`` ε spent up to that step, the number of ``runs``, and what
        the training has stored of accuracies and gradients, means of the parts.
    """
    seed = int(rng.integers(2**31))  # the same runs choose the threshold at all steps
    about = sorted((ABOUT | ACCURACIES) & set(rows))
    found = []
    for (step, score), parts in rows.groupby(["step", "score"], sort=False):
        scores = np.concatenate([unpack(text) for text in parts["scores"]])
        bits = coins(len(scores))
        found.append(
            {
                "step": int(step),
                "score": score,
                "runs": len(scores),
                **audited(scores, bits, seed),
                "plug_in": plug_in(scores, bits),
                **spent(training, int(step)),
                **{name: digits(parts[name].mean()) for name in about},
            }
        )
    return found


def rows_of(id_: str, **cell: object) -> pd.DataFrame:
    """Return the stored rows of a setting, of all its parts."""
    rows = _table(id_)
    for name, value in cell.items():
        rows = rows[rows[name].isna() if value is None else rows[name] == value]
    if rows.empty:
        raise ValueError(f"cell must be one that is stored of {id_}, got {cell}")
    return rows


@cache
def _table(id_: str) -> pd.DataFrame:
    return stored(id_)


def coins(runs: int) -> np.ndarray:
    """Return the bits of runs, which are 0 and 1 in turn; a part has an even number of them."""
    return np.arange(runs) % 2


def plug_in(scores: np.ndarray, bits: np.ndarray) -> float:
    """Return the ε of a Gaussian curve whose μ is that of the scores, with no regard to chance.

    What more runs would lead to, an estimate.
    """
    zero, one = scores[bits == 0], scores[bits == 1]
    spread = np.sqrt((zero.var() + one.var()) / 2.0)
    mu = max(float((one.mean() - zero.mean()) / spread), 0.0)
    return digits(GaussianDP(mu).epsilon(DELTA))


@lru_cache(maxsize=512)
def spent(training: Training, step: int) -> dict[str, float]:
    """Return the ε of both accountants after so many steps."""
    return promised(training.noise, training.sampling_rate, step)
