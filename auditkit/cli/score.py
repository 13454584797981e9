"""`auditkit score`: from a model and two datasets to a file of scores."""

import argparse
from pathlib import Path
from typing import Any

from auditkit.cli import audit, terminal

ATTACKS = ("loss", "calibrated", "rmia", "label-inference")
DESCRIPTION = """\
Score the examples of two datasets, one that the model was trained on and one that it was not.

MODEL is module:factory, a function without arguments that returns a torch module or a fitted
scikit-learn classifier; the module is looked for in the current folder too, and its code is run.
A dataset is an NPZ file with the arrays features and labels, and ids if examples have names: the
scores then carry them, and auditkit audit --coins knows whose coin is whose. For label-inference
the labels are the true ones, before any label mechanism, and never those that it released.

A torch module may return logits, or probabilities that sum to 1, of shape (examples, classes); or
of label 1 alone, of shape (examples, 1) or (examples,), where all in [0, 1] are probabilities. In a
dict or an object the logits are looked for, in a tuple or a list the first tensor is taken.
"""


def add_to(rooms: Any) -> None:
    """Add the command to those of the program."""
    command = rooms.add_parser(
        "score",
        help="from a model and two datasets to a file of scores",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", type=_factory, metavar="MODEL", help="module:factory")
    command.add_argument("--weights", type=audit.existing, help="a state dict saved by torch")
    command.add_argument("--members", type=audit.existing, required=True, metavar="NPZ")
    command.add_argument("--others", type=audit.existing, required=True, metavar="NPZ")
    command.add_argument("--attack", choices=ATTACKS, default="loss", help="by default loss")
    command.add_argument(
        "--reference",
        type=_factory,
        metavar="MODEL",
        help="a model that saw none of the examples: for all attacks but loss",
    )
    command.add_argument("--reference-weights", type=audit.existing, metavar="WEIGHTS")
    command.add_argument(
        "--population",
        type=audit.existing,
        metavar="NPZ",
        help="examples that neither model saw: for rmia",
    )
    command.add_argument(
        "--features",
        action="store_true",
        help="write the features too: audit then tests whether they give membership away, and "
        "zero-run takes its propensities from them",
    )
    command.add_argument("--seed", type=audit.whole, default=0, help="of the label game; 0")
    command.add_argument(
        "--device", default="cpu", help="where torch modules run, cuda for example; cpu"
    )
    command.add_argument("--output", type=Path, required=True, help="a CSV or NPZ file to write")
    command.set_defaults(run=_run, usage=command.error)


def _run(options: argparse.Namespace) -> int:
    needs = options.attack != "loss"
    if needs != (options.reference is not None):
        options.usage(f"--attack {options.attack} takes {'a' if needs else 'no'} --reference")
    if (options.attack == "rmia") != (options.population is not None):
        options.usage("--population goes with --attack rmia")
    if options.output.suffix not in (".csv", ".npz"):
        options.usage(f"--output must end in .csv or .npz, got {str(options.output)!r}")
    read = (
        options.weights,
        options.members,
        options.others,
        options.reference_weights,
        options.population,
    )
    if any(path and path.resolve() == options.output.resolve() for path in read):
        options.usage("--output must not overwrite what is read")
    # the models' libraries take seconds to load
    from auditkit.cli import scoring

    progress = terminal.Progress()
    try:
        columns, notes = scoring.columns_of(options, progress)
    finally:
        progress.done()
    scoring.write(options.output, columns)
    for note in notes:
        terminal.warn(f"note: {note}")
    terminal.say(f"{len(columns['score'])} rows in {options.output}.")
    if options.attack == "label-inference":
        ways = {"": "--membership randomised"}
    else:
        ways = {", if a coin decided": "--membership randomised"}
        if "id" in columns:
            ways[", if auditkit coins tossed it"] = "--coins COINS.json"
        ways[", if nobody tossed one"] = "--membership observed"
    terminal.following(options.output, ways)
    return 0


def _factory(text: str) -> str:
    module, colon, name = text.partition(":")
    if not colon or not name.isidentifier() or not all(p.isidentifier() for p in module.split(".")):
        raise argparse.ArgumentTypeError(f"must be module:factory, got {text!r}")
    return text
