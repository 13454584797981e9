"""What models say of examples, as the columns of a file of scores."""

import argparse
import csv
import importlib
import io
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from auditkit.attacks.label_inference import label_game, label_scores
from auditkit.attacks.membership import difficulty_calibration, rmia
from auditkit.cli.terminal import Progress, printable
from auditkit.datasets.store import write_whole

Columns = Mapping[str, NDArray[Any]]
Model = Callable[..., list[NDArray[np.float64]]]  # from features of datasets to probabilities
ROWS = 1024  # examples that a network sees at a time
ROUNDING = 4e-3  # by which probabilities in half precision may miss a sum of 1
LEAST = 1e-12  # what a probability of 0 counts as, where its logarithm is needed


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples with their labels, 0 to classes - 1."""

    features: NDArray[Any]
    labels: NDArray[np.int64]

    @classmethod
    def read(cls, path: Path) -> "Examples":
        """Read an NPZ file of features and labels."""
        try:
            with path.open("rb") as binary, np.load(binary, allow_pickle=False) as file:
                arrays = {name: file[name] for name in ("features", "labels")}
        except (ValueError, OSError, EOFError, BadZipFile, KeyError) as error:
            raise ValueError(
                f"{path.name} must be an NPZ file of plain arrays features and labels: {error}"
            ) from None
        features, labels = arrays["features"], arrays["labels"]
        if features.ndim < 2 or labels.shape != features.shape[:1] or not labels.size:
            raise ValueError(
                f"{path.name} must hold one label for each example, got shapes {features.shape} "
                f"and {labels.shape}"
            )
        if labels.dtype.kind not in "biu" or labels.min() < 0:
            raise ValueError(f"labels of {path.name} must be whole numbers of at least 0")
        return cls(features, labels.astype(np.int64))

    def rows(self, kind: np.dtype[Any]) -> Iterator[bytes]:
        """Yield features of a kind, and label, of each example."""
        for features, label in zip(self.features, self.labels, strict=True):
            yield features.astype(kind).tobytes() + label.tobytes()

    def own(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each example's own label."""
        if self.labels.max() >= probabilities.shape[1]:
            raise ValueError(
                f"labels must be below {probabilities.shape[1]}, the classes of the model, got "
                f"{self.labels.max()}"
            )
        found: NDArray[np.float64] = probabilities[np.arange(self.labels.size), self.labels]
        return found


def columns_of(options: argparse.Namespace, progress: Progress) -> tuple[Columns, list[str]]:
    """Return the columns of the file, and what has to be said of them."""
    progress("loading the model")
    notes: list[str] = []
    target = model(options.model, options.weights, notes)
    reference = None
    if options.reference is not None:
        reference = model(options.reference, options.reference_weights, notes)
    inside, outside = Examples.read(options.members), Examples.read(options.others)
    notes += _shared(inside, outside)
    progress(f"scoring {inside.labels.size + outside.labels.size} examples")
    features = _feature_columns(inside, outside) if options.features else {}
    if options.attack == "label-inference":
        assert reference is not None
        game = _label_columns(target, reference, inside, outside, options.seed)
        return game | features, notes
    parts = [inside, outside]
    if options.attack == "rmia":
        parts.append(Examples.read(options.population))
    own, *population = _own(target, parts)
    if options.attack == "loss":
        score = -_losses(own, notes)
    else:
        assert reference is not None
        other, *general = _own(reference, parts)
        if options.attack == "calibrated":
            score = difficulty_calibration(_losses(own, notes), _losses(other, notes))
        else:
            score = rmia(own, other, *population, *general)
    _finite(score)
    member = np.arange(own.size) < inside.labels.size
    return {"score": score, "member": member.astype(np.int64)} | features, notes


def _own(scores: Model, parts: list[Examples]) -> list[NDArray[np.float64]]:
    """Return the probability of each example's own label, of the first two datasets together."""
    told = scores(*(data.features for data in parts))
    own = [data.own(chances) for data, chances in zip(parts, told, strict=True)]
    return [np.concatenate(own[:2]), *own[2:]]


def _feature_columns(inside: Examples, outside: Examples) -> dict[str, NDArray[Any]]:
    """Return the features as columns, those of the members first."""
    if inside.features.ndim != 2 or inside.features.shape[1:] != outside.features.shape[1:]:
        raise ValueError(
            "features must be rows of the same numbers in both datasets, to be written as columns, "
            f"got shapes {inside.features.shape} and {outside.features.shape}"
        )
    both = np.concatenate([inside.features, outside.features])
    width = len(str(both.shape[1]))
    return {f"feature_{place + 1:0{width}}": column for place, column in enumerate(both.T)}


def _label_columns(
    target: Model,
    reference: Model,
    inside: Examples,
    outside: Examples,
    seed: int,
) -> dict[str, NDArray[Any]]:
    """Play the label game on the members, and as a placebo on the others."""
    scores, chosen = [], []
    both = (inside.features, outside.features)
    for data, generating, audited in zip(
        (inside, outside), reference(*both), target(*both), strict=True
    ):
        data.own(generating)  # checks the labels
        game = label_game(data.labels, generating, rng=seed)
        every = label_scores(audited, generating)
        scores.append(every[np.arange(data.labels.size), game.shown])
        chosen.append(game.chosen)
    _finite(np.concatenate(scores))
    placebo = np.arange(inside.labels.size + outside.labels.size) >= inside.labels.size
    return {
        "score": np.concatenate(scores),
        "chosen": np.concatenate(chosen),
        "placebo": placebo.astype(np.int64),
    }


def _shared(inside: Examples, outside: Examples) -> list[str]:
    """Say how many of the others are members too; refuse datasets of which one holds the other.

    Two people may have the same features and label, and a coin may have parted them. That all of a
    dataset have a twin in the other is no chance.
    """
    if inside.features.shape[1:] != outside.features.shape[1:]:
        return []  # the model will have its say
    kind = np.result_type(inside.features, outside.features)
    first, second = ([hash(row) for row in data.rows(kind)] for data in (inside, outside))
    members = sum(map(set(second).__contains__, first))
    others = sum(map(set(first).__contains__, second))
    if members == len(first) or others == len(second):
        raise ValueError(
            f"--members and --others must hold different examples: {others} of the {len(second)} "
            f"others are among the members, and {members} of the {len(first)} members among the "
            "others. What the model was trained on is a member"
        )
    if not others:
        return []
    return [
        f"{others} of the others have the features and the label of a member. Leave them out if "
        "they are the same records: what the model was trained on is a member."
    ]


def _losses(chances: NDArray[np.float64], notes: list[str]) -> NDArray[np.float64]:
    none = int((chances < LEAST).sum())
    if none:
        notes.append(f"{none} probabilities below {LEAST:g} were taken for {LEAST:g}.")
    losses: NDArray[np.float64] = -np.log(np.maximum(chances, LEAST))
    return losses


def _finite(score: NDArray[np.float64]) -> None:
    bad = int((~np.isfinite(score)).sum())
    if bad:
        raise ValueError(
            f"a model's scores must be finite, and {bad} of {score.size} are not: look for NaN in "
            "its features and its weights"
        )


def write(path: Path, columns: Columns) -> None:
    """Write columns as CSV or NPZ, whole or not at all."""
    if path.suffix == ".npz":
        target = io.BytesIO()
        np.savez(target, **columns)  # type: ignore[arg-type]
        write_whole(path, target.getvalue())
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    write_whole(path, text.getvalue().encode("utf-8"))


def model(factory: str, weights: Path | None, notes: list[str]) -> Model:
    """Return a function from the features of datasets to the probabilities of all labels."""
    made = _made(factory)
    if hasattr(made, "predict_proba"):
        if weights is not None:
            raise ValueError(f"weights are for a torch module, and {factory} made a {_kind(made)}")
        return lambda *parts: [_by_label(_probabilities(made, part), made) for part in parts]
    if not hasattr(made, "load_state_dict"):
        raise ValueError(
            f"{factory} must return a torch module or a classifier with predict_proba, got a "
            f"{_kind(made)}"
        )
    if weights is None:
        notes.append(f"no weights were named: the module is scored as {factory}() returned it")
    else:
        _load(made, weights)
    return lambda *parts: _network(made, parts, factory, notes)


def _made(factory: str) -> Any:
    module, _, name = factory.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        with _theirs(f"{module} cannot be imported"):
            found = importlib.import_module(module)
    finally:
        sys.path.pop(0)
    if not callable(getattr(found, name, None)):
        raise ValueError(f"{module} has no function {name}")
    with _theirs(f"{factory}() failed"):
        return getattr(found, name)()


@contextmanager
def _theirs(what: str) -> Iterator[None]:
    """Turn whatever somebody else's code raises into a sentence that says where."""
    try:
        yield
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        told = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        raise ValueError(
            f"{what} (line {at.lineno} of {Path(at.filename).name}): {printable(told)}"
        ) from None


def _kind(made: Any) -> str:
    return type(made).__name__


def _probabilities(made: Any, features: NDArray[Any]) -> NDArray[np.float64]:
    with _theirs(f"predict_proba of the {_kind(made)} failed"):
        return np.asarray(made.predict_proba(features), dtype=np.float64)


def _by_label(given: NDArray[np.float64], made: Any) -> NDArray[np.float64]:
    """Return probabilities with a column for each label, those never seen at 0."""
    classes = np.asarray(made.classes_)
    if classes.dtype.kind not in "biu":
        raise ValueError(f"classes of the model must be whole numbers, got {classes[:3].tolist()}")
    sums = given.sum(axis=1, keepdims=True)
    if not (np.abs(sums - 1.0) <= 1e-4).all():
        raise ValueError("predict_proba must return probabilities that sum to 1")
    found = np.zeros((len(given), int(classes.max()) + 1))
    found[:, classes.astype(np.int64)] = given / sums  # in single precision they nearly do
    return found


def _load(made: Any, weights: Path) -> None:
    import torch

    try:
        # nothing but tensors is read: a state dict is no program
        state = torch.load(weights, map_location="cpu", weights_only=True)
        # Opacus and torch.compile put a word of their own before each name
        plain = {
            key.removeprefix("_orig_mod.").removeprefix("_module."): value
            for key, value in state.items()
        }
        made.load_state_dict(plain)
    except Exception as error:  # of a broken file, torch raises whatever its bytes lead to
        told = printable(" ".join(f"{type(error).__name__}: {error}".split())[:300])
        raise ValueError(
            f"{weights.name} must be a state dict of the model's own tensors: {told}"
        ) from None


def _network(
    made: Any, parts: tuple[NDArray[Any], ...], factory: str, notes: list[str]
) -> list[NDArray[np.float64]]:
    """Return the probabilities of all labels, whether the network returns them or their logits.

    Which it returns is decided once, for all datasets together. Decided for each by itself, it
    could make scores of members and of others that do not compare.
    """
    found = [_outputs(made, part, factory, notes) for part in parts]
    if len({each.shape[1] for each in found}) > 1:
        shapes = " and ".join(str(each.shape) for each in found)
        raise ValueError(f"a model must return as many columns for each dataset, got {shapes}")
    told = np.concatenate(found)
    chances = bool(((told >= 0.0) & (told <= 1.0)).all())
    if told.shape[1] == 1:
        told = np.column_stack((1.0 - told if chances else np.zeros_like(told), told))
        taken = "probability of label 1, since all lie in [0, 1]" if chances else "logit of label 1"
        notes.append(f"the one output of {factory} was taken for the {taken}.")
    elif chances and (np.abs(told.sum(axis=1) - 1.0) <= ROUNDING).all():
        notes.append(
            f"the outputs of {factory} were taken for probabilities and not for logits, since they "
            "sum to 1 for each example."
        )
    elif chances:
        notes.append(
            f"the outputs of {factory} were taken for logits, though all lie in [0, 1], since they "
            "do not sum to 1."
        )
        chances = False
    told = told / told.sum(axis=1, keepdims=True) if chances else softmax(told, axis=1)
    return np.split(told, np.cumsum([len(each) for each in found])[:-1])


def _outputs(
    made: Any, features: NDArray[Any], factory: str, notes: list[str]
) -> NDArray[np.float64]:
    """Return what a network says of examples, a row each."""
    import torch

    with _theirs(f"eval() of the {_kind(made)} failed"):
        made.eval()
    found = []
    with torch.no_grad():
        for start in range(0, len(features), ROWS):
            rows = torch.as_tensor(features[start : start + ROWS])
            if rows.dtype not in (torch.float32, torch.int64):  # whole numbers may be tokens
                rows = rows.float()
            with _theirs(f"the {_kind(made)} failed on features of shape {tuple(rows.shape)}"):
                said = made(rows)
            told, where = _taken(said)
            note = f"{where} that {factory} returns was taken, and the rest left."
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
            found.append(told.double().reshape(len(rows), -1).numpy())
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
