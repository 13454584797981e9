"""The teachers of PromptPATE: one language model, shown other examples each time.

A teacher is the text that it is shown before a query. It votes by the word that the model holds
most likely to come next, among the words that stand for the classes. Nothing is drawn, so that the
votes of the same prompts are the same again, up to rounding. Everything is computed on the device
where the model is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from auditkit import _check


@dataclass(frozen=True)
class PromptTask:
    """What is asked, and how examples and queries are written down.

    Attributes
    ----------
    description : str
        What a prompt begins with: the task in one sentence.
    answers : tuple of str
        The word for each class.
    before, after : str
        What stands before and after each text.

    Examples
    --------
    >>> task = PromptTask("Is the review negative or positive?", ("negative", "positive"))
    >>> print(task.prompt("a dull film", 0) + task.query("a fine film"))
    Is the review negative or positive?
    Text: a dull film
    Answer: negative
    Text: a fine film
    Answer:
    """

    description: str
    answers: tuple[str, ...]
    before: str = "Text: "
    after: str = "\nAnswer:"

    @property
    def words(self) -> tuple[str, ...]:
        """The answers as the model would write them, each after a space."""
        return tuple(f" {answer}" for answer in self.answers)

    def query(self, text: str) -> str:
        """Return a text, up to the word that is asked for."""
        return f"{self.before}{text}{self.after}"

    def prompt(self, text: str, label: int) -> str:
        """Return what a teacher with one example is shown: the task, the text and its label."""
        return f"{self.description}\n{self.query(text)}{self.words[label]}\n"


def prompt_logits(
    language_model: tuple[Any, Any],
    prompts: Sequence[str],
    queries: Sequence[str],
    answers: Sequence[str],
    *,
    batch_size: int = 50,
) -> NDArray[np.float32]:
    r"""Return how likely each teacher finds each answer to each query.

    What the model makes of a prompt is computed once and kept for all queries.

    Parameters
    ----------
    language_model : tuple
        A tokenizer and a causal language model, as the transformers package makes them and
        `auditkit.models.encoders.language_model` returns them. A model in half precision does; the
        last layer is computed in single precision all the same, where ties would be frequent.
    prompts : sequence of str
        What each teacher is shown first.
    queries : sequence of str
        What follows, up to the word that is asked for. Prompts and queries are cut into tokens
        apart, so that a query is the same whatever stands before it.
    answers : sequence of str
        A word for each class; each has to be one token.
    batch_size : int
        Queries that are read side by side.

    Returns
    -------
    ndarray of shape (prompts, queries, answers)
        Logits; the vote is the largest along the last axis.

    References
    ----------
    PRED, Section 5.3. Duan et al., *Flocks of stochastic parrots*, 2023.

    Examples
    --------
    >>> from auditkit.models.encoders import language_model
    >>> logits = prompt_logits(  # doctest: +SKIP
    ...     language_model(),
    ...     ["Text: a dull film\nAnswer: negative\n"],
    ...     ["Text: a fine film\nAnswer:"],
    ...     [" negative", " positive"],
    ... )
    >>> logits.shape  # doctest: +SKIP
    (1, 1, 2)
    """
    tokenizer, model = language_model
    size = _check.whole("batch_size", batch_size, least=1)
    shown, asked = _tokens(tokenizer, "prompts", prompts), _tokens(tokenizer, "queries", queries)
    head = _head(model, _words(tokenizer, answers))
    # queries of about one length side by side, so that little is padding
    order = sorted(range(len(asked)), key=lambda query: len(asked[query]))
    logits = torch.empty(len(shown), len(asked), len(head))
    with torch.inference_mode():
        for teacher, prompt in enumerate(shown):
            tokens = torch.tensor([prompt]).to(head.device)
            kept = model(tokens, use_cache=True, logits_to_keep=1).past_key_values
            for first in range(0, len(order), size):
                batch = order[first : first + size]
                read = [asked[query] for query in batch]
                logits[teacher, batch] = _said(model, head, read, kept, len(prompt))
    result: NDArray[np.float32] = logits.numpy()
    return result


def paired_logits(
    language_model: tuple[Any, Any],
    prompts: Sequence[str],
    queries: Sequence[str],
    answers: Sequence[str],
    *,
    batch_size: int = 50,
) -> NDArray[np.float32]:
    r"""Return how likely each teacher finds each answer to one query, which is its own.

    Parameters
    ----------
    language_model : tuple
        A tokenizer and a causal language model, as in `prompt_logits`.
    prompts, queries : sequence of str
        What each teacher is shown, and what it is asked, as many.
    answers : sequence of str
        A word for each class; each has to be one token.
    batch_size : int
        Pairs that are read side by side.

    Returns
    -------
    ndarray of shape (prompts, answers)
        Logits.

    References
    ----------
    PRED, Section 5.3: adversaries who show a teacher the very query that they ask.

    Examples
    --------
    >>> from auditkit.models.encoders import language_model
    >>> logits = paired_logits(  # doctest: +SKIP
    ...     language_model(),
    ...     ["Text: a dull film\nAnswer: positive\n"],
    ...     ["Text: a dull film\nAnswer:"],
    ...     [" negative", " positive"],
    ... )
    >>> logits.shape  # doctest: +SKIP
    (1, 2)
    """
    tokenizer, model = language_model
    size = _check.whole("batch_size", batch_size, least=1)
    shown, asked = _tokens(tokenizer, "prompts", prompts), _tokens(tokenizer, "queries", queries)
    _check.same_length(prompts=shown, queries=asked)
    head = _head(model, _words(tokenizer, answers))
    whole = [before + after for before, after in zip(shown, asked, strict=True)]
    order = sorted(range(len(whole)), key=lambda pair: len(whole[pair]))
    logits = torch.empty(len(whole), len(head))
    with torch.inference_mode():
        for first in range(0, len(order), size):
            batch = order[first : first + size]
            logits[batch] = _said(model, head, [whole[pair] for pair in batch], None, 0)
    result: NDArray[np.float32] = logits.numpy()
    return result


def _head(model: Any, words: list[int]) -> Tensor:
    """Return the last layer's row for each word, in single precision."""
    weight = model.get_output_embeddings().weight
    rows: Tensor = weight[torch.tensor(words).to(weight.device)].float()
    return rows


def _said(model: Any, head: Tensor, asked: list[list[int]], kept: Any, before: int) -> Tensor:
    """Return the logits at the end of each query, after a prompt of `before` tokens."""
    device = head.device
    lengths = torch.tensor([len(tokens) for tokens in asked]).to(device)
    rows = [torch.tensor(tokens) for tokens in asked]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
    here = torch.arange(before + padded.shape[1], device=device) < before + lengths[:, None]
    states = model.base_model(
        input_ids=padded,
        attention_mask=here.long(),
        past_key_values=None if kept is None else _repeated(kept, len(asked)),
        use_cache=kept is not None,
    ).last_hidden_state
    last = states[torch.arange(len(asked), device=device), lengths - 1]
    logits: Tensor = last.float() @ head.T
    return logits.cpu()


def _repeated(kept: Any, times: int) -> Any:
    """Return what is kept of a prompt once for each query; reading a query adds to it."""
    made = type(kept)()
    for number, layer in enumerate(kept.layers):
        made.update(
            layer.keys.expand(times, -1, -1, -1), layer.values.expand(times, -1, -1, -1), number
        )
    return made


def _tokens(tokenizer: Any, name: str, texts: Sequence[str]) -> list[list[int]]:
    given = [] if isinstance(texts, str) else list(texts)
    wrong = [text for text in given if not isinstance(text, str) or not text]
    if wrong or not given:
        got = wrong[0] if wrong else texts
        raise ValueError(f"{name} must be a list of texts, none of them empty, got {got!r}")
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in given]


def _words(tokenizer: Any, answers: Sequence[str]) -> list[int]:
    """Return the token of each answer."""
    tokens = _tokens(tokenizer, "answers", answers)
    several = [word for word, parts in zip(answers, tokens, strict=True) if len(parts) != 1]
    if several:
        raise ValueError(f"answers must be one token each, got {several[0]!r}")
    words = [parts[0] for parts in tokens]
    if len(set(words)) < max(len(words), 2):
        raise ValueError(f"answers must be 2 different words at least, got {list(answers)!r}")
    return words
