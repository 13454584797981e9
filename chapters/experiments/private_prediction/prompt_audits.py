"""What one prompt leaks in PromptPATE: audits of the votes that `prompts` has stored.

Only the noise is random, and each answer has its own. So divergences add up, and bounds that hold
for all queries together bound the session. Nothing here needs the language model.
"""

import numpy as np

from auditkit.experiment import stored, study
from auditkit.mechanisms.releases import Releases, prompt_releases
from auditkit.mechanisms.voting import noisy_argmax_probabilities
from experiments.private_prediction.composing import (
    CONFIDENCE,
    ORDERS,
    audits,
    floor,
    summary,
    theory,
    total,
)
from experiments.private_prediction.prompts import (
    FILM,
    LABELS,
    OWN,
    TASKS,
    TEACHER,
    mislabel,
    poisons_id,
    read,
    stored_histograms,
    stored_votes,
    votes_id,
)

SIGMA = 20.0
VOTES, POISONS = ([id_(task) for task in TASKS] for id_ in (votes_id, poisons_id))


@study("pred-prompt-adversarial", tolerance=1e-6, paper={"task": list(TASKS)}, sources=VOTES)
def adversarial(task: str, rng: np.random.Generator) -> list[dict]:
    """Ask each query as often as there are queries; one teacher is shown it, with a label.

    ``copies`` is how often the teacher then says that label, ``flips`` how often it says another
    than before. The "first" teacher is replaced, or one is "chosen": of those who said otherwise
    before one who said what most say, which shows most. "flip" rows let it copy always.
    """
    votes, own = stored_votes(task, TEACHER), stored_votes(task, OWN)
    histograms, labels = stored_histograms(task), stored_votes(task, LABELS)[0]
    queries = np.arange(votes.shape[1])
    wrong = np.array(
        [mislabel(count, label) for count, label in zip(histograms, labels, strict=True)]
    )
    limits = theory(histograms, SIGMA)
    rows = []
    for adversary, shown in (("natural", labels), ("poisoned", wrong)):
        copied = own[shown, queries]
        for teacher, after in (("first", copied), ("chosen", copied), ("flip", shown)):
            before = votes[0] if teacher == "first" else most_telling(histograms, after)
            pair = moved(histograms, before, after)
            found = {**limits, "exact": pair.directions(ORDERS), **audits(pair, rng)}
            about = {
                "adversary": adversary,
                "teacher": teacher,
                "copies": float((after == shown).mean()),
                "flips": float((after != before).mean()),
            }
            rows += [{**about, **row, "floor": floor()} for row in summary(found, len(queries))]
    return rows


@study(
    "pred-prompt-natural",
    tolerance=1e-6,
    paper={"task": list(TASKS), "honest": [40]},
    live={"task": [FILM], "honest": [1]},
    reduced={"task": [FILM], "honest": [1]},
    sources=[*VOTES, *POISONS],
)
def natural(task: str, honest: int, rng: np.random.Generator) -> list[dict]:
    """Ask each query once; a row for each poisoned prompt, put in the place of the first teacher.

    ``flips`` is how many votes differ from those of the teacher that it replaces, on average over
    all teachers; `exact_all` is ε on average over all of them. In rows of poison None some honest
    teacher is in that place: the null. Joint columns hold for all queries together.
    """
    votes, labels = stored_votes(task, TEACHER), stored_votes(task, LABELS)[0]
    histograms = stored_histograms(task)
    classes = histograms.shape[1]
    limits = total(theory(histograms, SIGMA))
    replacing = [(None, None, votes[teacher]) for teacher in range(1, 1 + honest)] + [
        (row.poison, row.label, read(row.votes)) for row in stored(poisons_id(task)).itertuples()
    ]
    rows = []
    for poison, label, after in replacing:
        pair = prompt_releases(votes, after, 0, classes=classes, sigma=SIGMA)
        jointly = audits(pair, rng, confidence=1.0 - (1.0 - CONFIDENCE) / len(after))
        found = total(
            {
                "exact": pair.directions(ORDERS),
                **audits(pair, rng),
                **{f"{name}_jointly": values for name, values in jointly.items()},
            }
        )
        everyone = [
            total({"exact": moved(histograms, before, after).directions(ORDERS)})["exact"]
            for before in votes
        ]
        rows.append(
            {
                "poison": poison,
                "label": label,
                **limits,
                **found,
                "exact_all": float(np.mean(everyone)),
                "flips": float((votes != after).mean()),
                "accuracy": float((after == labels).mean()),
                "floor": floor(),
            }
        )
    return rows


def moved(histograms: np.ndarray, before: np.ndarray, after: np.ndarray) -> Releases:
    """Return both laws where one vote a query moves."""
    one = np.eye(histograms.shape[1])
    changed = histograms - one[before] + one[after]
    return Releases(*(noisy_argmax_probabilities(count, SIGMA) for count in (histograms, changed)))


def most_telling(histograms: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the vote that is best replaced: the one with most votes but the new one, if any."""
    others = np.where(after[:, None] == np.arange(histograms.shape[1]), -1, histograms)
    best = others.argmax(axis=1)
    return np.where(others.max(axis=1) > 0, best, after)
