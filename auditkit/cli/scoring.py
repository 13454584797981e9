"""Models, datasets and weights for `auditkit score` as they are brought, and the file of scores."""

import argparse
import importlib
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditkit._files import write_whole
from auditkit._types import Floats
from auditkit.attacks.model_scores import Columns, Labelled, Model, score_model
from auditkit.cli.score_containers import DAMAGED
from auditkit.cli.terminal import Progress, printable
from auditkit.coins import names
from auditkit.models.outputs import probabilities, theirs


def columns_of(options: argparse.Namespace, progress: Progress) -> tuple[Columns, list[str]]:
    """Return the columns of the file, and what has to be said of them."""
    progress("loading the model")
    notes: list[str] = []
    target = _model(options.model, options.weights, options.device, notes)
    reference, population = None, None
    if options.reference is not None:
        reference = _model(options.reference, options.reference_weights, options.device, notes)
    (inside, ids), (outside, more) = _examples(options.members), _examples(options.others)
    if options.population is not None:
        population, _ = _examples(options.population)
    progress(f"scoring {len(inside) + len(outside)} examples")
    columns, told = score_model(
        target,
        inside,
        outside,
        attack=options.attack,
        reference=reference,
        population=population,
        seed=options.seed,
    )
    features = _feature_columns(inside, outside) if options.features else {}
    return _ids(ids, more) | columns | features, notes + told


def _examples(path: Path) -> tuple[Labelled, tuple[str, ...]]:
    """Return a dataset, and the names of its examples, nothing if they have none."""
    try:
        with path.open("rb") as binary, np.load(binary, allow_pickle=False) as file:
            features, labels = file["features"], file["labels"]
            ids = names("ids", file["ids"]) if "ids" in file.files else ()
    except (*DAMAGED, KeyError) as error:
        raise ValueError(
            f"{path.name} must be an NPZ file of plain arrays features and labels: {error}"
        ) from None
    try:
        examples = Labelled(features, labels)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    if ids and len(ids) != len(examples):
        raise ValueError(f"{path.name}: ids must be one for each example, got {len(ids)}")
    return examples, ids


def _ids(inside: tuple[str, ...], outside: tuple[str, ...]) -> Columns:
    """Return a column of names, by which an audit knows whose coin is whose."""
    if not inside and not outside:
        return {}
    if not inside or not outside:
        raise ValueError("ids must be in both datasets or in neither, got them in one")
    return {"id": np.array(names("ids", [*inside, *outside]))}


def _feature_columns(inside: Labelled, outside: Labelled) -> dict[str, NDArray[Any]]:
    """Return the features as columns, those of the members first."""
    if inside.features.ndim != 2 or inside.features.shape[1:] != outside.features.shape[1:]:
        raise ValueError(
            "features must be rows of the same numbers in both datasets, to be written as columns, "
            f"got shapes {inside.features.shape} and {outside.features.shape}"
        )
    both = np.concatenate([inside.features, outside.features])
    width = len(str(both.shape[1]))
    return {f"feature_{place + 1:0{width}}": column for place, column in enumerate(both.T)}


def write(path: Path, columns: Columns) -> None:
    """Write columns as CSV or NPZ, whole or not at all."""
    if path.suffix == ".npz":
        target = io.BytesIO()
        np.savez(target, **columns)  # type: ignore[arg-type]
        write_whole(path, target.getvalue())
        return
    import pandas as pd

    # in all their digits: a number in single precision reads differently in double
    wide = {name: c.astype(float) if c.dtype.kind == "f" else c for name, c in columns.items()}
    text = pd.DataFrame(wide).to_csv(index=False, lineterminator="\n")
    write_whole(path, text.encode("utf-8"))


def _model(factory: str, weights: Path | None, device: str, notes: list[str]) -> Model:
    """Return what a model says of datasets, and note how that was read."""
    made = _made(factory, weights, notes)
    if not hasattr(made, "predict_proba"):
        from auditkit.models import border

        made.to(border.device("--device", device))

    def said(*features: NDArray[Any]) -> list[Floats]:
        told, read = probabilities(made, *features, name=factory)
        notes.extend(read)
        return told

    return said


def _made(factory: str, weights: Path | None, notes: list[str]) -> Any:
    """Return what a factory makes, with its weights."""
    module, _, name = factory.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        with theirs(f"{module} cannot be imported"):
            found = importlib.import_module(module)
    finally:
        sys.path.pop(0)
    if not callable(getattr(found, name, None)):
        raise ValueError(f"{module} has no function {name}")
    with theirs(f"{factory}() failed"):
        made = getattr(found, name)()
    kind = type(made).__name__
    if hasattr(made, "predict_proba"):
        if weights is not None:
            raise ValueError(f"weights are for a torch module, and {factory} made a {kind}")
    elif not hasattr(made, "load_state_dict"):
        raise ValueError(
            f"{factory} must return a torch module or a classifier with predict_proba, got a {kind}"
        )
    elif weights is None:
        notes.append(f"no weights were named: the module is scored as {factory}() returned it")
    else:
        _load(made, weights)
    return made


def plain_names(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state dict without the word that Opacus and torch.compile put before each name."""
    return {
        name.removeprefix("_orig_mod.").removeprefix("_module."): value
        for name, value in state.items()
    }


def _load(made: Any, weights: Path) -> None:
    import torch

    try:
        # nothing but tensors is read: a state dict is no program
        state = torch.load(weights, map_location="cpu", weights_only=True)
        made.load_state_dict(plain_names(state))
    except Exception as error:  # of a broken file, torch raises whatever its bytes lead to
        told = printable(" ".join(f"{type(error).__name__}: {error}".split())[:300])
        raise ValueError(
            f"{weights.name} must be a state dict of the model's own tensors: {told}"
        ) from None
