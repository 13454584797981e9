"""A small language model, and texts that it continues.

Examples are rows of tokens of one length: chunks of texts. A generated example is what a language
model writes after a prompt, as long as the prompt.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from auditkit import _check
from auditkit._types import Floats, Ints, Randomness
from auditkit.models.generators import Examples
from auditkit.models.networks import CausalAttention, Residual, small_gpt
from auditkit.models.training import Models, fit_many

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|[0-9]+|[^\sa-z0-9]")
UNKNOWN = "·"
ROWS = 512  # texts that are continued in one go: their keys and values stay small


@dataclass(frozen=True)
class Vocabulary:
    """Words and marks, each with a number; 0 stands for all others.

    Attributes
    ----------
    words : tuple of str
        By their number; the first is the one for unknown words.

    Examples
    --------
    >>> words = Vocabulary((UNKNOWN, "a", "film", "."))
    >>> words.tokens("A fine film.")
    array([1, 0, 2, 3])
    >>> words.text([1, 0, 2, 3])
    'a · film .'
    """

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    def tokens(self, text: str) -> Ints:
        """Return the numbers of a text's words and marks."""
        numbers = {word: number for number, word in enumerate(self.words)}
        return np.array([numbers.get(word, 0) for word in _split(text)], np.int64)

    def text(self, tokens: ArrayLike) -> str:
        """Return the words and marks of numbers."""
        numbers = _check.counts("tokens", tokens)
        return " ".join(self.words[number] for number in numbers)


def fit_vocabulary(texts: Sequence[str], size: int) -> Vocabulary:
    """Collect the commonest words and marks.

    Parameters
    ----------
    texts : sequence of str
        Where to look.
    size : int
        How many, with the one for unknown words, at most.

    Returns
    -------
    Vocabulary

    References
    ----------
    PANORAMIA takes GPT-2's pieces of words. Whole words keep a small model's output small.

    Examples
    --------
    >>> fit_vocabulary(["a film, a fine film"], 3).words
    ('·', 'a', 'film')
    """
    most = _check.whole("size", size, least=2)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_split(text))
    # by number of times and then by name, whatever the order of texts
    common = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary((UNKNOWN, *common[: most - 1]))


def chunks(
    texts: Sequence[str], words: Vocabulary, length: int, *, number: int = 1
) -> tuple[Ints, Ints]:
    """Cut the beginnings of texts into chunks of one length.

    Parameters
    ----------
    texts : sequence of str
        Those that are too short for all chunks are left out.
    words : Vocabulary
        Numbers the words.
    length : int
        Ints in a chunk.
    number : int
        Chunks from each text.

    Returns
    -------
    found : ndarray of shape (n, number, length)
        The chunks of each text.
    rows : ndarray of shape (n,)
        Which texts they are from.

    References
    ----------
    PANORAMIA, Appendix C.2: chunks of 64 tokens, at most 50 of a document.

    Examples
    --------
    >>> words = Vocabulary((UNKNOWN, "a", "film"))
    >>> chunks(["a film", "a film a film a"], words, 2, number=2)
    (array([[[1, 2],
            [1, 2]]]), array([1]))
    """
    size = _check.whole("length", length, least=1)
    many = _check.whole("number", number, least=1)
    numbers = {word: place for place, word in enumerate(words.words)}
    found, rows = [], []
    for row, text in enumerate(texts):
        # ten letters a word are more than any text has on average
        tokens = [numbers.get(word, 0) for word in _split(text[: 12 * size * many])]
        if len(tokens) >= size * many:
            found.append(tokens[: size * many])
            rows.append(row)
    shape = (len(rows), many, size)
    return np.array(found, np.int64).reshape(shape), np.array(rows, np.int64)


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A trained `small_gpt`, which reads from left to right.

    Attributes
    ----------
    models : Models
        Of one model.
    """

    models: Models

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The weights, for a training that starts from them."""
        return self.models.weights

    def losses(self, tokens: ArrayLike) -> Floats:
        """Return the loss of every token but the first, of shape (n, length - 1)."""
        rows = _tokens(tokens)
        network, found = self.models.module(0), []
        with torch.no_grad():
            for part in torch.split(torch.from_numpy(rows), ROWS):
                logits, truth = network(part[:, :-1]).flatten(0, 1), part[:, 1:]
                each = nn.functional.cross_entropy(logits, truth.flatten(), reduction="none")
                found.append(each.view(truth.shape))
        return torch.cat(found).double().numpy()

    def states(self, tokens: ArrayLike) -> Floats:
        """Return the mean over places of what the last block has gathered, (n, width)."""
        rows = _tokens(tokens)
        body = self.models.module(0)[:-1]  # type: ignore[index]
        with torch.no_grad():
            found = [body(part).mean(1) for part in torch.split(torch.from_numpy(rows), ROWS)]
        return torch.cat(found).double().numpy()

    def continued(
        self, prompts: ArrayLike, number: int, *, top_k: int = 200, rng: Randomness
    ) -> Ints:
        """Return what comes after prompts, token by token.

        Parameters
        ----------
        prompts : array of int, shape (n, length)
            Prompt and continuation together may not be longer than what the model was made for.
        number : int
            Ints to write.
        top_k : int
            Each token is drawn from so many likeliest ones.
        rng : Generator, int or None
            Draws them.

        Returns
        -------
        ndarray of shape (n, number)

        References
        ----------
        PANORAMIA, Appendix C.2, at temperature 1; keys and values of earlier places are kept.
        """
        rows = _tokens(prompts)
        count = _check.whole("number", number, least=1)
        most = _check.whole("top_k", top_k, least=1)
        generator = _check.generator("rng", rng)
        network = self.models.module(0)
        room = len(network[0].place) - rows.shape[1]  # type: ignore[index]
        if count > room:
            raise ValueError(f"number must be at most {room} after such prompts, got {number!r}")
        parts = [
            _continued(network, part, count, most, generator)
            for part in torch.split(torch.from_numpy(rows), ROWS)
        ]
        return torch.cat(parts).numpy()


def fit_language_model(
    tokens: ArrayLike,
    *,
    vocabulary: int,
    length: int,
    passes: int,
    seed: int,
    initial: LanguageModel | None = None,
    width: int = 64,
    blocks: int = 2,
    learning_rate: float = 2e-3,
) -> LanguageModel:
    """Train a language model on rows of tokens, from the start or from another model.

    Parameters
    ----------
    tokens : array of int, shape (n, row)
        At most `length` tokens a row.
    vocabulary : int
        Ints there are.
    length : int
        Ints that the model can look at.
    passes : int
        How often each row is seen.
    seed : int
        First weights and order.
    initial : LanguageModel, optional
        What to start from, of the same `vocabulary`, `length`, `width` and `blocks`.
    width, blocks : int
        As in `small_gpt`.
    learning_rate : float
        Of Adam.

    Returns
    -------
    LanguageModel

    References
    ----------
    PANORAMIA, Appendix C.2, fine-tunes GPT-2.

    Examples
    --------
    >>> rows = np.tile([1, 2, 3], (50, 4))
    >>> model = fit_language_model(rows, vocabulary=4, length=12, passes=40, seed=0, width=8)
    >>> model.continued([[1, 2, 3, 1]], 3, top_k=1, rng=0)
    array([[2, 3, 1]])
    """
    rows = _tokens(tokens)
    if len(rows[0]) > _check.whole("length", length, least=1):
        raise ValueError(f"tokens must be at most {length} a row, got {len(rows[0])}")
    make = partial(small_gpt, vocabulary, length, width=width, blocks=blocks)
    models = fit_many(
        make,
        rows[:, :-1],
        rows[:, 1:],
        seeds=[seed],
        epochs=passes,
        batch_size=32,
        learning_rate=learning_rate,
        optimizer="adam",
        initial=None if initial is None else initial.weights,
    )
    return LanguageModel(models)


@dataclass(frozen=True, eq=False)
class Prompted:
    """A generator of texts: a language model with prompts.

    Attributes
    ----------
    model : LanguageModel
        Continues the prompts.
    prompts : array of int, shape (n, length)
        Taken in turn; each gives as many samples as it takes.
    top_k : int
        As in `LanguageModel.continued`.
    """

    model: LanguageModel
    prompts: Ints
    top_k: int = 200

    def sample(self, number: int, *, rng: Randomness) -> Examples:
        """Continue as many prompts by as many tokens as they have."""
        count = _check.whole("number", number, least=1)
        taken = self.prompts[np.arange(count) % len(self.prompts)]
        length = self.prompts.shape[1]
        return Examples(self.model.continued(taken, length, top_k=self.top_k, rng=rng))


def _split(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("<br />", " "))


def _tokens(value: ArrayLike) -> Ints:
    rows = np.asarray(value)
    if rows.ndim != 2 or not rows.size or rows.dtype.kind not in "iu" or rows.min() < 0:
        raise ValueError(
            f"tokens must be rows of whole numbers from 0, got shape {rows.shape} of {rows.dtype}"
        )
    return rows.astype(np.int64)


def _continued(
    network: nn.Module, rows: Tensor, number: int, top_k: int, rng: np.random.Generator
) -> Tensor:
    """Continue a few prompts."""
    kept: dict[int, Tensor] = {}
    given, written = rows, []
    with torch.no_grad():
        for _ in range(number):
            logits = _next_logits(network, given, kept)
            likely = torch.topk(logits, min(top_k, logits.shape[1]))
            steps = torch.softmax(likely.values.double(), 1).cumsum(1)
            draws = torch.from_numpy(rng.random((len(rows), 1))) * steps[:, -1:]
            given = likely.indices.gather(1, (draws > steps[:, :-1]).sum(1, keepdim=True))
            written.append(given)
    return torch.cat(written, 1)


def _next_logits(network: nn.Module, given: Tensor, kept: dict[int, Tensor]) -> Tensor:
    """Return the logits after the last token; `kept` holds keys and values of those before."""
    layers = list(network.children())
    first = kept[1].shape[-2] if kept else 0
    embedding = layers[0]
    x = embedding.token[given] + embedding.place[first : first + given.shape[1]]  # type: ignore[index]
    for number, layer in enumerate(layers[1:-2], start=1):
        assert isinstance(layer, Residual)
        inner: nn.Sequential = layer.inner  # type: ignore[assignment]
        if isinstance(inner[1], CausalAttention):
            x = x + _attended(inner[1], inner[0](x), kept, number)
        else:
            x = layer(x)
    logits: Tensor = layers[-1](layers[-2](x[:, -1]))
    return logits


def _attended(layer: CausalAttention, x: Tensor, kept: dict[int, Tensor], number: int) -> Tensor:
    """Return what the new places gather from themselves and all before them."""
    n, length, width = x.shape
    parts = layer.project(x).reshape(n, length, 3, layer.heads, -1).permute(2, 0, 3, 1, 4)
    query, own = parts[0], parts[1:]
    before = own[:, :, :, :0] if number not in kept else kept[number]
    kept[number] = torch.cat((before, own), 3)
    mixed = nn.functional.scaled_dot_product_attention(
        # a prompt is read at once, and each of its places looks back only
        query,
        kept[number][0],
        kept[number][1],
        is_causal=length > 1,
    )
    result: Tensor = layer.combine(mixed.transpose(1, 2).reshape(n, length, width))
    return result
