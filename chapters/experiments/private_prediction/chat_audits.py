"""What one prompt leaks in the chats of `chats`: audits of stored votes, without the model.

Only the noise is random, and each answer has its own. So divergences add up, and bounds that hold
for all queries together bound the session.
"""

import numpy as np

from auditkit.experiment import stored, study
from experiments.private_prediction.chats import (
    TASKS,
    poisons_id,
    stored_histograms,
    stored_votes,
    votes_id,
)
from experiments.private_prediction.composing import (
    CONFIDENCE,
    ORDERS,
    audits,
    curve_rows,
    floor,
    summary,
    theory,
    theory_of_one,
    total,
)
from experiments.private_prediction.prompt_audits import SIGMA, most_telling, moved
from experiments.private_prediction.prompts import LABELS, OWN, TEACHER, mislabel, read

PLACES = 10  # teachers whose place a prompt takes, one after the other
HONEST = "honest"
VOTES, POISONS = ([id_(task) for task in TASKS] for id_ in (votes_id, poisons_id))


@study("pred-chat-adversarial", tolerance=1e-6, paper={"task": list(TASKS)}, sources=VOTES)
def adversarial(task: str, rng: np.random.Generator) -> list[dict]:
    """Ask each query as often as there are queries; one teacher is shown it, with a label.

    ``copies`` is how often the teacher then says that label, ``flips`` how often it says another
    than before; ``accuracy`` is that of the teachers. The "first" teacher is replaced, or one is
    "chosen" who shows most.
    """
    votes, histograms = stored_votes(task, TEACHER), stored_histograms(task)
    truth = stored_votes(task, LABELS)[0]
    limits, rows = theory(histograms, SIGMA), []
    for adversary in ("natural", "poisoned"):
        for teacher in ("first", "chosen"):
            shown, before, after = exchanged(task, adversary, teacher)
            pair = moved(histograms, before, after)
            found = {**limits, "exact": pair.directions(ORDERS), **audits(pair, rng)}
            about = {
                "adversary": adversary,
                "teacher": teacher,
                "copies": float((after == shown).mean()),
                "flips": float((after != before).mean()),
                "accuracy": float((votes == truth).mean()),
                "floor": floor(),
            }
            rows += [{**about, **row} for row in summary(found, len(truth))]
    return rows


def exchanged(task: str, adversary: str, teacher: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each query the label that is shown, and the votes of the one teacher."""
    histograms, truth = stored_histograms(task), stored_votes(task, LABELS)[0]
    wrong = [mislabel(*one) for one in zip(histograms, truth, strict=True)]
    shown = truth if adversary == "natural" else np.array(wrong)
    after = stored_votes(task, OWN)[shown, np.arange(len(truth))]
    first = teacher == "first"
    before = stored_votes(task, TEACHER)[0] if first else most_telling(histograms, after)
    return shown, before, after


@study(
    "pred-chat-natural",
    tolerance=1e-6,
    paper={"task": list(TASKS), "honest": [40]},
    live={"task": list(TASKS)[:1], "honest": [1]},
    reduced={"task": list(TASKS)[:1], "honest": [1]},
    sources=[*VOTES, *POISONS],
)
def natural(task: str, honest: int, rng: np.random.Generator) -> list[dict]:
    """Ask each query once: a row for each prompt and each of ten teachers whose place it takes.

    Honest prompts, of other teachers, are the null. ``flips`` is how many votes differ from those
    of the teacher replaced. Audits are made in the first teacher's place; joint ones hold for all
    queries together.
    """
    votes, truth = stored_votes(task, TEACHER), stored_votes(task, LABELS)[0]
    histograms = stored_histograms(task)
    limits = total(theory(histograms, SIGMA))
    others = range(PLACES, PLACES + honest)
    prompts = [(HONEST, other, votes[other]) for other in others] + [
        (row.poison, number, read(row.votes))
        for number, row in enumerate(stored(poisons_id(task)).itertuples())
    ]
    rows = []
    for poison, number, after in prompts:
        for place in range(PLACES):
            pair = moved(histograms, votes[place], after)
            found = {"exact": pair.directions(ORDERS)}
            if place == 0:
                level = 1.0 - (1.0 - CONFIDENCE) / len(truth)
                found |= audits(pair, rng)
                found["corner_jointly"] = audits(pair, rng, confidence=level)["corner"]
            rows.append(
                {
                    "poison": poison,
                    "number": number,
                    "teacher": place,
                    **limits,
                    **total(found),
                    "flips": float((votes[place] != after).mean()),
                    "accuracy": float((after == truth).mean()),
                    "floor": floor(),
                }
            )
    return rows


@study(
    "pred-chat-curves",
    tolerance=1e-6,
    paper={"task": list(TASKS), "adversary": ["natural", "poisoned"]},
    sources=VOTES,
)
def curves(task: str, adversary: str, rng: np.random.Generator) -> list[dict]:
    """Return the divergence of one answer to the query that leaks most: a row an order.

    The teacher is the chosen one, and rows are those of `composing.curve_rows`.
    """
    histograms = stored_histograms(task)
    _, before, after = exchanged(task, adversary, "chosen")
    pair = moved(histograms, before, after)
    worst = int(pair.divergences([10.0])[:, 0].argmax())
    laws = pair.without[worst], pair.with_point[worst]
    limits = theory_of_one(histograms[worst].astype(float), SIGMA)
    return curve_rows(*laws, limits, len(histograms), rng)
