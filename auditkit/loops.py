"""In a training loop: score the canaries before and after, and leave scores, coins and a report.

A folder holds the coins before training and the whole audit after it. What trains (torch, Opacus,
Hugging Face) is imported by whoever trains with it, and not here.
"""

import contextlib
import hashlib
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from auditkit._types import Floats
from auditkit.attacks.membership import difficulty_calibration
from auditkit.bounds.result import Bound, noticed
from auditkit.cli import parser, terminal
from auditkit.cli.scoring import plain_names, write
from auditkit.coins import Coins

RESUMED = (
    "The training was resumed: the first losses are those of an earlier start, which before.csv "
    "held."
)
UNREAD = (
    "The training never read {} of the {} canaries that are in. What was not trained on leaves "
    "nothing to find, and the number says nothing of it. All is well only if they were copied from "
    "audit.members beforehand, and the copy was trained on."
)


class Members:
    """The canaries to train on, as a dataset of torch that marks which of them were read.

    It goes among other records by ``others + members``, where those are a dataset of torch or of
    Hugging Face, a list, or whatever else has a length and items; or, said in torch's own words, by
    ``torch.utils.data.ConcatDataset([others, members])``.

    Parameters
    ----------
    canaries : sequence
        All of them.
    places : sequence of int
        Which of them are in.

    Attributes
    ----------
    read : torch.Tensor of bool, shape (places,)
        Which of them were asked for, by any process of a loader.
    """

    def __init__(self, canaries: Sequence[Any], places: Sequence[int]) -> None:
        import torch

        self._canaries, self._places = canaries, places
        # the workers of a loader are processes of their own
        self.read = torch.zeros(len(places), dtype=torch.bool)
        self.read.share_memory_()  # type: ignore[no-untyped-call]  # torch's own

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> Any:
        found = self._canaries[self._places[place]]
        self.read[place] = True
        return found

    def __add__(self, others: Any) -> Any:
        return _joined(self, others)

    def __radd__(self, others: Any) -> Any:
        return _joined(others, self)


def _joined(first: Any, second: Any) -> Any:
    from torch.utils.data import ConcatDataset

    return ConcatDataset([first, second])


class LoopAudit:
    """An audit of one training run, from a folder with coins to the same folder with a report.

    The score of a canary is by how much its loss fell in training. Each is asked alone, in
    evaluation mode, so that what is asked beside it plays no part.

    Parameters
    ----------
    folder : path
        Where ``coins.json`` is, from `toss_coins` or ``auditkit coins``. After training it holds
        ``scores.csv`` and ``report.html`` too. ``before.csv`` is written at the start: should it be
        there already, an interrupted training goes on, and the losses in it are the first ones.
    canaries : sequence
        One for each coin, in their order: pairs of features and label, or for Hugging Face what its
        model takes. Canaries that are out are never trained on.
    loss : callable, optional
        From outputs and labels of a batch of one to its loss, as ``torch.nn.CrossEntropyLoss()``.
        By default the loss that a model of Hugging Face returns by itself.
    title : str, optional
        What stands above the report.

    Attributes
    ----------
    members : Members
        The canaries to train on, to be put among the other records: ``others + audit.members``,
        whether those are a dataset of torch or of Hugging Face, or a list. The report tells of
        members that the training never read.
    bound : Bound or None
        What was found, after training.

    References
    ----------
    Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run", Section 6: the
    score of the black box is the loss of the first model less that of the last.

    Examples
    --------
    A loop in plain torch. With Opacus, give `training` the private model and the engine, and its
    promise stands in the report::

        audit = LoopAudit("audit", canaries, torch.nn.CrossEntropyLoss())
        data = torch.utils.data.ConcatDataset([others, audit.members])
        with audit.training(model):
            ...  # the loop as it was, over DataLoader(data, batch_size=64, shuffle=True)

    A `Trainer` of Hugging Face::

        audit = LoopAudit("audit", canaries)
        trainer = Trainer(
            model, arguments, train_dataset=others + audit.members, callbacks=[audit.callback()]
        )
        trainer.train()

    >>> LoopAudit("nowhere", [])
    Traceback (most recent call last):
    FileNotFoundError: folder must hold coins.json, from `toss_coins` or `auditkit coins`, ...
    """

    def __init__(
        self,
        folder: str | Path,
        canaries: Sequence[Any],
        loss: Callable[[Any, Any], Any] | None = None,
        *,
        title: str | None = None,
    ) -> None:
        self.folder, self.canaries, self._loss = Path(folder), canaries, loss
        self.bound: Bound | None = None
        self._title, self._resumed = title, False
        if not (self.folder / "coins.json").is_file():
            raise FileNotFoundError(
                "folder must hold coins.json, from `toss_coins` or `auditkit coins`, got "
                f"{str(folder)!r} without one"
            )
        if (self.folder / "scores.csv").exists():
            raise FileExistsError(
                f"folder must hold no audit yet, got {str(folder)!r} with scores.csv: a second "
                "training takes coins and a folder of its own, since to keep the better of two "
                "audits is to choose"
            )
        self.coins = Coins.load(self.folder / "coins.json")
        if len(canaries) != len(self.coins):
            raise ValueError(
                f"canaries must be one for each of {len(self.coins)} coins, got {len(canaries)}"
            )

    @cached_property
    def members(self) -> Members:
        """The canaries whose coin says that they are trained on, as a torch dataset."""
        return Members(self.canaries, np.flatnonzero(self.coins.members).tolist())

    @contextlib.contextmanager
    def training(self, model: Any, engine: Any = None) -> Iterator["LoopAudit"]:
        """Audit the training of a torch module inside a ``with``.

        Parameters
        ----------
        model : torch.nn.Module
            What is trained; with Opacus what ``make_private`` returned.
        engine : opacus.PrivacyEngine, optional
            Whose accountant knows the noise, the sampling rate and the steps.
        """
        from torch.utils.data import default_collate

        self._start(model, default_collate)
        yield self  # after an error there is nothing to audit
        self._finish(model, default_collate, [] if engine is None else engine.accountant.history)

    def callback(self) -> Any:
        """Return the callback of a `transformers.Trainer`, which does the same.

        Only the first process asks and writes. Weights that are spread over devices, as by FSDP or
        DeepSpeed, are not gathered: audit such a model from a checkpoint.
        """
        from transformers import TrainerCallback

        audit = self

        class Callback(TrainerCallback):  # type: ignore[misc]  # Any, to a checker without it
            def on_train_begin(self, args: Any, state: Any, control: Any, **told: Any) -> None:  # noqa: ARG002
                if state.is_world_process_zero:
                    audit._start(told["model"], told["train_dataloader"].collate_fn)

            def on_train_end(self, args: Any, state: Any, control: Any, **told: Any) -> None:  # noqa: ARG002
                if state.is_world_process_zero:
                    audit._finish(told["model"], told["train_dataloader"].collate_fn, [])

        return Callback()

    def _start(self, model: Any, collate: Callable[[list[Any]], Any]) -> None:
        self.members.read.zero_()  # what was looked at beforehand was not trained on
        path = self.folder / "before.csv"
        self._resumed = path.exists()
        if not self._resumed:
            write(path, {"id": np.array(self.coins.ids), "loss": self._losses(model, collate)})
            return
        warnings.warn(
            f"{path} is there: the training goes on, and the first losses are those. To begin "
            "anew, remove it",
            stacklevel=4,
        )
        if len(self._read(path)) != len(self.coins):
            raise ValueError(f"{path} must hold a loss for each of {len(self.coins)} coins")

    def _read(self, path: Path) -> Floats:
        import pandas as pd

        table = pd.read_csv(path, dtype={"id": str}, keep_default_na=False)
        if tuple(table["id"]) != self.coins.ids:
            raise ValueError(f"{path} must hold the ids of the coins, in their order")
        losses: Floats = table["loss"].to_numpy(float)
        return losses

    def _finish(
        self, model: Any, collate: Callable[[list[Any]], Any], history: Sequence[Any]
    ) -> None:
        """Write the scores, then audit them; a refusal is told, and takes no training along."""
        after, path = self._losses(model, collate), self.folder / "scores.csv"
        try:
            score = difficulty_calibration(after, self._read(self.folder / "before.csv"))
            member = self.coins.members.astype(np.int64)
            write(path, {"id": np.array(self.coins.ids), "score": score, "member": member})
            self._report(path, model, history)
        except ValueError as error:
            warnings.warn(f"the training is over, and its audit refused: {error}", stacklevel=4)

    def _report(self, path: Path, model: Any, history: Sequence[Any]) -> None:
        from auditkit.cli.report import write_report
        from auditkit.cli.statement import perform

        report = self.folder / "report.html"
        line = ["audit", str(path), "--coins", str(self.folder / "coins.json")]
        line += ["--report", str(report)]
        line += [] if self._title is None else [f"--title={self._title}"]
        if len(history) == 1 and history[0][0] > 0.0 and self.coins.plan["delta"] > 0.0:
            words = ("--noise-multiplier", "--sampling-rate", "--steps")
            for word, number in zip(words, history[0], strict=True):
                line += [word, str(number)]
        elif history:
            warnings.warn(
                "the report has no upper bound, which takes one noise and one sampling rate for "
                "all steps, and noise and δ above 0",
                stacklevel=5,
            )
        options = parser().parse_args(line)
        options.command = shlex.join(["auditkit", *line])
        told = self._notices()
        progress = terminal.Progress()
        try:
            found = perform(options, progress)
            self.bound = replace(found.bound, notices=(*found.bound.notices, *told))
            name = f"{type(_bare(model)).__name__}, by auditkit.loops.digest"
            warned, held = [*told, *found.warnings], (name, digest(model))
            found = replace(found, bound=self.bound, warnings=warned, model=held)
            write_report(found, report)
        finally:
            progress.done()
        said = noticed(self.bound.notices)
        terminal.say(f"{found.sentence}{said} The report is in {report}.")

    def _notices(self) -> list[str]:
        """Say what the scores do not show: losses of an earlier start, members never read."""
        from torch import distributed

        told = [RESUMED] if self._resumed else []
        lost = int((~self.members.read).sum())
        # of a training in several processes each sees its own share
        parted = distributed.is_available() and distributed.is_initialized()
        if lost and not (parted and distributed.get_world_size() > 1):
            told.append(UNREAD.format(lost, len(self.members)))
            warnings.warn(told[-1], stacklevel=6)
        return told

    def _losses(self, model: Any, collate: Callable[[list[Any]], Any]) -> Floats:
        """Return the loss on each canary, one at a time, and leave the model as it was."""
        import torch

        modes = {module: module.training for module in model.modules()}
        device = next(model.parameters()).device
        found = []
        try:
            model.eval()
            with torch.no_grad():
                for place in range(len(self.canaries)):
                    batch = collate([self.canaries[place]])
                    if self._loss is None:
                        held = {name: value.to(device) for name, value in batch.items()}
                        said = model(**held)
                        loss = said["loss"] if isinstance(said, dict) else said[0]
                    else:
                        features, labels = (part.to(device) for part in batch)
                        loss = self._loss(model(features), labels)
                    found.append(float(loss))
        finally:
            for module, mode in modes.items():
                module.training = mode
        return np.array(found)


def _bare(model: Any) -> Any:
    """Return a module without what Opacus or torch.compile put around it."""
    for wrapped in ("_orig_mod", "_module"):
        model = getattr(model, wrapped, model)
    return model


def digest(model: Any) -> str:
    """Return the SHA-256 of a torch module's tensors, as the report of a `LoopAudit` states it.

    Parameters
    ----------
    model : torch.nn.Module
        As it was trained, or bare: what Opacus and torch.compile wrap around it plays no part.

    Returns
    -------
    str
        Of each tensor of the state dict, in the order of their names: a line of name, type and
        shape, then its bytes.

    References
    ----------
    SHA-256, FIPS 180-4.

    Examples
    --------
    >>> import torch
    >>> digest(torch.nn.Linear(2, 1)) == digest(torch.nn.Linear(2, 1))  # other first weights
    False
    """
    import torch

    found = hashlib.sha256()
    for name, value in sorted(plain_names(model.state_dict()).items()):
        if isinstance(value, torch.Tensor):
            held = value.detach().cpu().contiguous()
            found.update(f"{name} {held.dtype} {tuple(held.shape)}\n".encode())
            found.update(held.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
