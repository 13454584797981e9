"""A language model tuned on its top layers, and sampled, against the plain way with transformers.

As in `benchmarks.prompt_voting`, this runs in an environment of its own. Each side has one thread.
The plain way reads the texts through all layers in every pass, takes all logits of a batch at once,
and samples by `generate`. What is read once, the hidden states, counts as time of ours. In half
precision the two sides round differently.
"""

import json
import math
from typing import Any

from auditkit.datasets import load
from benchmarks.peers import HERE, complain, run
from benchmarks.prompt_voting import MODEL, PYTHON, install

CHUNKS, LENGTH, PASSES, PROMPTS = 128, 64, 3, 64

SCRIPT = """
import copy, json, sys, time
import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
home, texts, chunks, length, passes, prompts = json.loads(sys.stdin.read())
sys.path.insert(0, home)
from auditkit.models.encoders import language_model
from auditkit.models.language import pretrained, tune

model = pretrained()
tokens = model.chunks(texts, length, number=2)[0]
members, held, before = tokens[:chunks, 1], tokens[chunks:, 1], tokens[:prompts, 0]
_, network = language_model()

def theirs():
    whole = copy.deepcopy(network)
    whole.requires_grad_(False)
    for part in (*whole.model.layers[-4:], whole.model.norm):
        part.requires_grad_(True)
    own = [weight for weight in whole.parameters() if weight.requires_grad]
    optimiser, shuffle = torch.optim.Adam(own, lr=1e-4), np.random.default_rng(0)
    rows = torch.from_numpy(members)
    for _ in range(passes):
        for batch in torch.from_numpy(shuffle.permutation(len(rows))).split(16):
            optimiser.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                whole(input_ids=rows[batch], labels=rows[batch], use_cache=False).loss.backward()
            optimiser.step()
    return whole

def held_out(whole):
    rows = torch.from_numpy(held)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        return float(whole(input_ids=rows, labels=rows, use_cache=False).loss)

def generated():
    rows = torch.from_numpy(before)
    with torch.no_grad():
        return half.generate(rows, attention_mask=torch.ones_like(rows), do_sample=True, top_k=200,
                             max_new_tokens=length, min_new_tokens=length, pad_token_id=2)

def timed(run):
    start = time.perf_counter()
    return run(), time.perf_counter() - start

half = copy.deepcopy(network).to(torch.bfloat16)
tune(model, members[:16], passes=1, seed=0)
ours, seconds = timed(lambda: tune(model, members, passes=passes, seed=0))
other, plain = timed(theirs)
rows = [(seconds, plain, f"loss on other texts {ours.losses(held).mean():.3f} and "
         f"{held_out(other):.3f}, before {model.losses(held).mean():.3f}")]
model.continued(before[:2], 2, rng=0)
written, seconds = timed(lambda: model.continued(before, length, rng=0))
torch.manual_seed(0)
other, plain = timed(generated)
losses = [model.losses(np.hstack([before, after]))[:, length - 1:].mean()
          for after in (written, other[:, length:].numpy())]
rows.append((seconds, plain, "mean loss of what is written {:.2f} and {:.2f}".format(*losses)))
print(json.dumps(rows))
"""


def measure() -> list[dict[str, Any]]:
    """Time the tuning of four layers of thirty on film reviews, and 64 continuations."""
    trouble = install()
    found = [(math.nan, math.nan, "nothing to compare")] * 2
    if not trouble:
        given = [str(HERE.parent), _texts(), CHUNKS, LENGTH, PASSES, PROMPTS]
        done = run([str(PYTHON), "-c", SCRIPT], says=json.dumps(given))
        if done.returncode == 0:
            found = json.loads(done.stdout.splitlines()[-1])
        else:
            trouble = "does not run"
            complain(MODEL, done)
    topics = (
        (
            f"4 of 30 layers tuned, {CHUNKS} chunks of {LENGTH} tokens, {PASSES} passes, SmolLM2",
            "transformers, all layers read in every pass",
        ),
        (
            f"{PROMPTS} texts of {LENGTH} tokens continued by {LENGTH}, SmolLM2 135M",
            "transformers' generate",
        ),
    )
    return [
        {
            "what": what,
            "baseline": baseline + (f" ({trouble})" if trouble else ""),
            "seconds": seconds,
            "baseline_seconds": plain,
            "ratio": plain / seconds,
            "agreement": agreement,
        }
        for (what, baseline), (seconds, plain, agreement) in zip(topics, found, strict=True)
    ]


def _texts() -> list[str]:
    """Return reviews that are long enough, of members and of others."""
    texts = (str(text).replace("<br />", " ") for text in load("imdb")["texts"][::101])
    return [text for text in texts if len(text.split()) > 2 * LENGTH][: 2 * CHUNKS]


if __name__ == "__main__":
    for row in measure():
        print(row)
