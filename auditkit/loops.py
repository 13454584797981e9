"""In a training loop: score the canaries before and after, and leave scores, coins and a report.

A folder holds the coins before training and the whole audit after it. What trains (torch, Opacus,
Hugging Face) is imported by whoever trains with it, and not here.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditkit._types import Floats
from auditkit.attacks.membership import difficulty_calibration
from auditkit.bounds.result import Bound
from auditkit.cli import parser, terminal
from auditkit.cli.scoring import write
from auditkit.coins import Coins


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

    Attributes
    ----------
    members : torch.utils.data.Dataset
        The canaries to train on, to be put among the other records: ``others + audit.members``.
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
        loader = DataLoader(others + audit.members, batch_size=64, shuffle=True)
        with audit.training(model):
            ...  # the loop as it was

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
    ) -> None:
        self.folder, self.canaries, self._loss = Path(folder), canaries, loss
        self.bound: Bound | None = None
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

    @property
    def members(self) -> Any:
        """The canaries whose coin says that they are trained on, as a torch dataset."""
        import torch

        chosen = np.flatnonzero(self.coins.members).tolist()
        return torch.utils.data.Subset(self.canaries, chosen)  # type: ignore[arg-type]

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
        path = self.folder / "before.csv"
        if not path.exists():
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
            self._report(path, history)
        except ValueError as error:
            warnings.warn(f"the training is over, and its audit refused: {error}", stacklevel=4)

    def _report(self, path: Path, history: Sequence[Any]) -> None:
        from auditkit.cli.report import write_report
        from auditkit.cli.statement import perform

        line = ["audit", str(path), "--coins", str(self.folder / "coins.json")]
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
        options.command = " ".join(["auditkit", *line])
        progress = terminal.Progress()
        try:
            found = perform(options, progress)
            write_report(found, self.folder / "report.html")
        finally:
            progress.done()
        self.bound = found.bound
        terminal.say(f"{found.sentence} The report is in {self.folder / 'report.html'}.")

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
