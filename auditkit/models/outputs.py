"""What a model says of examples, as probabilities of labels, whoever wrote it and however it says.

A network may end in logits or in probabilities, and wrap them in whatever its library likes. To
take one for the other would weaken an attack without a word, so each reading is told.
"""

import itertools
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from auditkit._types import Floats

ROWS = 1024  # examples that a network sees at a time
ROUNDING = 4e-3  # by which probabilities in half precision may miss a sum of 1


def probabilities(
    model: Any, *features: NDArray[Any], name: str = "the model"
) -> tuple[list[Floats], list[str]]:
    """Return the probabilities of all labels, from a torch module or a fitted classifier.

    Parameters
    ----------
    model : torch.nn.Module or classifier
        A module returns logits, or probabilities that sum to 1, of shape (examples, classes); or of
        label 1 alone, of shape (examples, 1) or (examples,). In a dict or an object the logits are
        looked for, in a tuple or a list the first tensor is taken. It is asked on the device where
        its weights are. A classifier has ``predict_proba``, and labels that are whole numbers.
    *features : array
        Of the examples of one or more datasets. Which a module returns, probabilities or logits, is
        decided once for all of them: decided for each by itself, it could make scores of members
        and of others that do not compare.
    name : str
        What to call the model where something has to be said of it.

    Returns
    -------
    probabilities : list of ndarray of shape (examples, classes)
        Of each dataset, those of labels that a classifier never saw at 0.
    notes : list of str
        How its outputs were read.

    References
    ----------
    Not in the papers, whose attacks take confidences as given.

    Examples
    --------
    >>> class Always:
    ...     classes_ = np.array([0, 2])
    ...
    ...     def predict_proba(self, features):
    ...         return np.full((len(features), 2), 0.5)
    >>> probabilities(Always(), np.zeros((1, 3)))
    ([array([[0.5, 0. , 0.5]])], [])
    """
    if hasattr(model, "predict_proba"):
        return [_by_label(model, rows) for rows in features], []
    notes: list[str] = []
    return _network(model, features, name, notes), notes


@contextmanager
def theirs(what: str) -> Iterator[None]:
    """Turn whatever somebody else's code raises into a sentence that says where.

    Parameters
    ----------
    what : str
        What failed.

    Examples
    --------
    >>> with theirs("the model failed"):
    ...     1 / 0
    Traceback (most recent call last):
    ValueError: the model failed (line 2 of ...): ZeroDivisionError: division by zero
    """
    try:
        yield
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        told = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        told = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in told)
        raise ValueError(f"{what} (line {at.lineno} of {Path(at.filename).name}): {told}") from None


def _by_label(model: Any, rows: NDArray[Any]) -> Floats:
    with theirs(f"predict_proba of the {_kind(model)} failed"):
        given = np.asarray(model.predict_proba(rows), dtype=np.float64)
    classes = np.asarray(model.classes_)
    if classes.dtype.kind not in "biu":
        raise ValueError(f"classes of the model must be whole numbers, got {classes[:3].tolist()}")
    sums = given.sum(axis=1, keepdims=True)
    if not (np.abs(sums - 1.0) <= 1e-4).all():
        raise ValueError("predict_proba must return probabilities that sum to 1")
    found = np.zeros((len(given), int(classes.max()) + 1))
    found[:, classes.astype(np.int64)] = given / sums  # in single precision they nearly do
    return found


def _network(
    model: Any, parts: tuple[NDArray[Any], ...], name: str, notes: list[str]
) -> list[Floats]:
    """Return the probabilities of all labels, whether the network returns them or their logits."""
    found = [_outputs(model, part, name, notes) for part in parts]
    if len({each.shape[1] for each in found}) > 1:
        shapes = " and ".join(str(each.shape) for each in found)
        raise ValueError(f"a model must return as many columns for each dataset, got {shapes}")
    told = np.concatenate(found)
    chances = bool(((told >= 0.0) & (told <= 1.0)).all())
    if told.shape[1] == 1:
        told = np.column_stack((1.0 - told if chances else np.zeros_like(told), told))
        taken = "probability of label 1, since all lie in [0, 1]" if chances else "logit of label 1"
        notes.append(f"the one output of {name} was taken for the {taken}.")
    elif chances and (np.abs(told.sum(axis=1) - 1.0) <= ROUNDING).all():
        notes.append(
            f"the outputs of {name} were taken for probabilities and not for logits, since they "
            "sum to 1 for each example."
        )
    elif chances:
        notes.append(
            f"the outputs of {name} were taken for logits, though all lie in [0, 1], since they "
            "do not sum to 1."
        )
        chances = False
    told = told / told.sum(axis=1, keepdims=True) if chances else softmax(told, axis=1)
    return np.split(told, np.cumsum([len(each) for each in found])[:-1])


def _outputs(model: Any, features: NDArray[Any], name: str, notes: list[str]) -> Floats:
    """Return what a network says of examples, a row each."""
    import torch

    with theirs(f"eval() of the {_kind(model)} failed"):
        model.eval()
    weights = next(itertools.chain(model.parameters(), model.buffers()), torch.empty(0))
    found = []
    with torch.no_grad():
        for start in range(0, len(features), ROWS):
            rows = torch.as_tensor(features[start : start + ROWS]).to(weights.device)
            if rows.dtype not in (torch.float32, torch.int64):  # whole numbers may be tokens
                rows = rows.float()
            with theirs(f"the {_kind(model)} failed on features of shape {tuple(rows.shape)}"):
                said = model(rows)
            told, where = _taken(said)
            note = f"{where} that {name} returns was taken, and the rest left."
            if where and note not in notes:
                notes.append(note)
            if not torch.is_tensor(told) or not told.is_floating_point():
                raise ValueError(
                    "a model must return a tensor of logits or probabilities, or a dict or an "
                    "object with logits, or a tuple or a list that begins with them, got "
                    f"{_described(said)}"
                )
            if len(told.shape) not in (1, 2) or len(told) != len(rows) or not told.numel():
                raise ValueError(
                    "a model must return logits or probabilities of shape (examples, classes), or "
                    "of label 1 alone in shape (examples, 1) or (examples,), got "
                    f"{tuple(told.shape)} for {len(rows)} examples"
                )
            found.append(told.cpu().double().reshape(len(rows), -1).numpy())
    return np.concatenate(found)


def _taken(said: Any) -> tuple[Any, str]:
    """Return the part of an output that holds the logits, and what to call it."""
    import torch

    if isinstance(said, Mapping):
        return said.get("logits"), 'the entry "logits" of the dict'
    if hasattr(said, "logits"):
        return said.logits, "the attribute logits of the object"
    if isinstance(said, tuple | list):
        return next(filter(torch.is_tensor, said), None), f"the first tensor of the {_kind(said)}"
    return said, ""


def _described(said: Any) -> str:
    if isinstance(said, Mapping):
        return f"a {_kind(said)} of {', '.join(map(repr, said)) or 'nothing'}"
    kind = getattr(said, "dtype", None)
    return f"a {_kind(said)}" + (f" of {kind}" if kind else "")


def _kind(model: Any) -> str:
    return type(model).__name__
