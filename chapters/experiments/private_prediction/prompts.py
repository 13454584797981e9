"""The votes of PromptPATE's teachers: a small language model, with and without a poisoned prompt.

The paper has Mistral-7B and four sets of texts. Here SmolLM2 of 135 million weights reads film
sentences, in two ways of writing examples down, and the beginnings of newsgroup messages on four
topics, where its teachers are little better than chance. Texts are short, for time. The texts are
not shipped, and the model is a package of its own: pages read the stored votes.
"""

import copy
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch

from auditkit.attacks.poisoning import always, least_confident, mapped, most_confident
from auditkit.attacks.poisoning import wrong_mapping as mapping_of
from auditkit.datasets import CARDS, load, store
from auditkit.experiment import stored, study
from auditkit.mechanisms.prompt_voting import PromptTask, paired_logits, prompt_logits
from auditkit.models.encoders import ENCODERS, language_model

TEACHERS = 200
WORDS = 10  # of a text at most: longer film sentences are left out, messages are cut
BLOCK = 8  # teachers of a cell
DRAWS = 3  # queries that serve as poisons of one kind

FILM, ARROW, NEWS = "film", "film-arrow", "newsgroups"
TEACHER, OWN, LABELS = "teacher", "own query", "labels"
SENTIMENT = "Classify the sentiment of the text as negative or positive."
TOPICS = ("computers", "sports", "religion", "politics")
TASKS = {
    FILM: PromptTask(SENTIMENT, ("negative", "positive")),
    ARROW: PromptTask(SENTIMENT, ("negative", "positive"), before="", after=" =>"),
    NEWS: PromptTask(
        "Classify the topic of the text as computers, sports, religion or politics.",
        TOPICS,
        before="",
        after=" =>",
    ),
}
QUERIES = {FILM: 200, ARROW: 100, NEWS: 100}
GROUPS = {  # how the names of newsgroups on each topic begin
    "comp.": 0,
    "rec.sport.": 1,
    "alt.atheism": 2,
    "soc.religion.": 2,
    "talk.religion.": 2,
    "talk.politics.": 3,
}


class Texts(NamedTuple):
    """Texts with labels."""

    texts: list[str]
    labels: np.ndarray


def votes_of_block(task: str, block: int) -> list[dict]:
    """Ask some teachers all queries.

    ``votes`` has one digit a query. ``margin`` is the least distance of the two leading logits: a
    vote within rounding of a tie may be another elsewhere. Block 0 also has rows of kind "own
    query", where each query is asked of one who was shown it with this `label`, and one of kind
    "labels", where the digits are the queries' labels.
    """
    form, (examples, queries) = TASKS[task], texts(task)
    asked = [form.query(text) for text in queries.texts]
    chosen = range(block * BLOCK, (block + 1) * BLOCK)
    shown = [form.prompt(examples.texts[i], examples.labels[i]) for i in chosen]
    logits = prompt_logits(model(), shown, asked, form.words)
    rows = [
        {"kind": TEACHER, "teacher": i, "label": int(examples.labels[i]), **written(said)}
        for i, said in zip(chosen, logits, strict=True)
    ]
    if block > 0:
        return rows
    for label in range(len(form.answers)):
        own = [form.prompt(text, label) for text in queries.texts]
        said = paired_logits(model(), own, asked, form.words)
        rows.append({"kind": OWN, "teacher": None, "label": label, **written(said)})
    true = {"teacher": None, "label": None, "votes": digits(queries.labels), "margin": None}
    return [*rows, {"kind": LABELS, **true}]


def votes_of_poisons(task: str, rng: np.random.Generator) -> list[dict]:
    """Ask teachers all queries that were shown one of the four poisons of natural queries."""
    form, queries, histograms = TASKS[task], texts(task).queries, stored_histograms(task)
    asked = [form.query(text) for text in queries.texts]
    rows = [
        {"poison": name, "label": label, **written(said)}
        for name, label, prompt in poisons(form, queries, histograms, rng)
        for said in prompt_logits(model(), [prompt], asked, form.words)
    ]
    return rows


def poisons(
    form: PromptTask, queries: Texts, histograms: np.ndarray, rng: np.random.Generator
) -> list[tuple[str, int, str]]:
    """Return the name, the label and the prompt of each poison.

    Of a query that is mislabelled the label is the one with most votes that is not its own.
    """
    made = []
    left = np.arange(len(histograms))
    for name, choose in (("confident", most_confident), ("unconfident", least_confident)):
        rest = left.copy()
        for _ in range(DRAWS):
            query = rest[choose(histograms[rest], rng=rng)]
            rest = rest[rest != query]
            label = mislabel(histograms[query], queries.labels[query])
            made.append((name, label, form.prompt(queries.texts[query], label)))
    made += [("all same", label, always(form, label)) for label in range(len(form.answers))]
    mapping = mapping_of(histograms)
    for query in rng.choice(left, DRAWS, replace=False):
        label = int(queries.labels[query])
        prompt = mapped(form, mapping, queries.texts[query], label)
        made.append(("mapping", int(mapping[label]), prompt))
    return made


def mislabel(votes: np.ndarray, label: int) -> int:
    """Return the label with most votes that is not a query's own."""
    return int(np.where(np.arange(len(votes)) == label, -1, votes).argmax())


def written(logits: np.ndarray) -> dict[str, Any]:
    """Return the votes of one teacher as digits, from its logits (queries, classes)."""
    ranked = np.sort(logits, axis=1)
    margin = float((ranked[:, -1] - ranked[:, -2]).min())
    return {"votes": digits(logits.argmax(axis=1)), "margin": margin}


def digits(labels: np.ndarray) -> str:
    """Return labels as a text; a letter before them keeps spreadsheets from making it a number."""
    return "v" + "".join(map(str, labels))


def read(text: str) -> np.ndarray:
    """Return labels from such a text."""
    return np.array([int(digit) for digit in text[1:]])


def votes_id(task: str) -> str:
    """Return where the votes of a task are stored."""
    return f"pred-prompt-votes-{task}"


def poisons_id(task: str) -> str:
    """Return where the votes of poisoned teachers are stored."""
    return f"pred-prompt-poisons-{task}"


def stored_votes(task: str, kind: str) -> np.ndarray:
    """Return the rows of a kind, (rows, queries), in the order of teachers or of labels."""
    rows = stored(votes_id(task)).query("kind == @kind")
    ordered = rows.sort_values("teacher" if kind == TEACHER else "label")
    return np.array([read(text) for text in ordered["votes"]])


def stored_histograms(task: str) -> np.ndarray:
    """Return the votes for each class, (queries, classes)."""
    votes = stored_votes(task, TEACHER)
    return (votes[..., None] == np.arange(len(TASKS[task].answers))).sum(axis=0)


def at_hand() -> bool:
    """Say whether the model and the film sentences are on this machine."""
    modules = all(find_spec(module) for module in ENCODERS["smollm2-135m"].needs)
    return modules and store.cached(CARDS["film-sentences"]) is not None


def asked_anew(teachers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the stored votes of some teachers on film sentences, and their logits now."""
    form, (examples, queries) = TASKS[FILM], texts(FILM)
    shown = [form.prompt(examples.texts[i], examples.labels[i]) for i in range(teachers)]
    asked = [form.query(text) for text in queries.texts]
    return stored_votes(FILM, TEACHER)[:teachers], prompt_logits(model(), shown, asked, form.words)


@cache
def model() -> tuple[Any, Any]:
    """Return the language model in half precision, which is three times as fast."""
    tokenizer, network = language_model()
    return tokenizer, copy.deepcopy(network).to(torch.bfloat16)


class Deal(NamedTuple):
    """Whose texts are whose."""

    examples: Texts
    queries: Texts


@cache
def texts(task: str) -> Deal:
    """Return the teachers' examples and the queries."""
    whole = newsgroups() if task == NEWS else film_sentences()
    dealt = np.random.default_rng(0).permutation(len(whole.texts))
    picks = dealt[:TEACHERS], dealt[TEACHERS : TEACHERS + QUERIES[task]]
    return Deal(*(Texts([whole.texts[i] for i in pick], whole.labels[pick]) for pick in picks))


def film_sentences() -> Texts:
    """Return the sentences that are short."""
    data = load("film-sentences", part="complete")
    short = np.array([len(text.split()) <= WORDS for text in data["texts"]])
    return Texts(list(data["texts"][short]), data["labels"][short])


def newsgroups() -> Texts:
    """Return the beginnings of messages on the four topics."""
    data = load("newsgroups")
    kinds = np.array(
        [
            next((kind for start, kind in GROUPS.items() if name.startswith(start)), -1)
            for name in data.class_names
        ]
    )
    labels = kinds[data["train_labels"]]
    kept = np.flatnonzero(labels >= 0)
    return Texts([" ".join(data["train_texts"][i].split()[:WORDS]) for i in kept], labels[kept])


# texts have to be the same; a margin is a difference of numbers of 8 bits around 16
OPTIONS = {"tolerance": 0.1, "needs": "the film sentences, the newsgroups and SmolLM2-135M"}
VOTES = {
    task: study(
        votes_id(task), paper={"task": [task], "block": list(range(TEACHERS // BLOCK))}, **OPTIONS
    )(votes_of_block)
    for task in TASKS
}
POISONS = {
    task: study(poisons_id(task), paper={"task": [task]}, sources=[votes_id(task)], **OPTIONS)(
        votes_of_poisons
    )
    for task in TASKS
}
