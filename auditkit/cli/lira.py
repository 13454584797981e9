"""`auditkit lira`: from the statistics of many models to a file of scores of one of them."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditkit.cli import audit, terminal
from auditkit.cli.score_containers import DAMAGED

if TYPE_CHECKING:
    import numpy as np

DESCRIPTION = """\
Score the examples of one model by the likelihood ratio attack (LiRA), from the same statistic of
many models that were trained alike.

MATRIX.npy has the shape (models, examples), or (models, examples, queries): by default how sure a
model is of an example's own label, on the scale of logits (auditkit.attacks.lira.logit_confidence
makes it). KEPT.npy has the shape (models, examples) and says which model was trained on which
example. One of the models is audited, the others are its shadow models.
"""
PAIRED = (
    "Every example is in exactly half of all models, the audited one among them. The others then "
    "tell its memberships, which are no independent coins: say --membership fixed-size, and the "
    "result is an estimate."
)
MOST = 2_000_000_000  # bytes of a matrix


def add_to(rooms: Any) -> None:
    """Add the command to those of the program."""
    command = rooms.add_parser(
        "lira",
        help="from a matrix of models × examples to a file of scores",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("matrix", type=audit.existing, metavar="MATRIX.npy")
    command.add_argument("kept", type=audit.existing, metavar="KEPT.npy")
    command.add_argument(
        "--audited", type=audit.whole, default=0, metavar="ROW", help="which model is audited; 0"
    )
    command.add_argument(
        "--mode",
        choices=("online", "offline"),
        default="online",
        help="online compares models with an example to models without it, offline looks at the "
        "latter alone; online",
    )
    command.add_argument(
        "--variance",
        choices=("example", "global"),
        default="example",
        help="of each example by itself, or one for all, where shadow models are few; example",
    )
    command.add_argument("--output", type=Path, required=True, help="a CSV or NPZ file to write")
    command.set_defaults(run=_run, usage=command.error)


def _run(options: argparse.Namespace) -> int:
    if options.output.suffix not in (".csv", ".npz"):
        options.usage(f"--output must end in .csv or .npz, got {str(options.output)!r}")
    if options.output.resolve() in (options.matrix.resolve(), options.kept.resolve()):
        options.usage("--output must not overwrite what is read")
    import numpy as np

    from auditkit.attacks.lira import lira
    from auditkit.cli.scoring import write

    said, kept = _array(options.matrix), _array(options.kept)
    if kept.ndim != 2 or said.shape[:2] != kept.shape or not said.size:
        raise ValueError(
            "MATRIX must have the shape (models, examples), or that and queries, and KEPT the "
            f"shape (models, examples), got {said.shape} and {kept.shape}"
        )
    _refuse(options.matrix, said, ~np.isfinite(said), "finite numbers")
    _refuse(options.kept, kept, ~np.isin(kept, (0, 1)), "0 or 1")
    row = options.audited
    if row >= len(said):
        raise ValueError(f"--audited must be one of {len(said)} models, 0 to {len(said) - 1}")
    others = np.arange(len(said)) != row
    try:
        score = lira(
            said[row], said[others], kept[others], mode=options.mode, variance=options.variance
        )
    except ValueError as error:  # which names them as a caller in Python does
        raise ValueError(
            f"{options.matrix.name} gives statistics and shadow_statistics, {options.kept.name} "
            f"shadow_members, which leave out row {row}: {error}"
        ) from None
    member = kept[row].astype(np.int64)
    if not np.isfinite(score).all():
        raise ValueError(f"the numbers in {options.matrix.name} are too large to be compared")
    write(options.output, {"id": np.arange(score.size), "score": score, "member": member})
    paired = bool((2 * kept.sum(axis=0) == len(kept)).all())
    if paired:
        terminal.warn(f"note: {PAIRED}")
    terminal.say(f"{score.size} rows in {options.output}, with ids from 0 to {score.size - 1}.")
    drawn = {
        ", if a coin decided for each model and example": "--membership randomised",
        ", if auditkit coins tossed those of the audited model": "--coins COINS.json",
    }
    terminal.following(options.output, {"": "--membership fixed-size"} if paired else drawn)
    return 0


def _refuse(path: Path, array: "np.ndarray", bad: "np.ndarray", takes: str) -> None:
    """Refuse an array with bad values, by the file and the place of the first of them."""
    import numpy as np

    if bad.any():
        row, column, *query = np.argwhere(bad)[0].tolist()
        where = f"row {row}, column {column}" + (f", query {query[0]}" if query else "")
        raise ValueError(
            f"{path.name} must hold {takes}, got {array[(row, column, *query)]} in {where}, "
            f"counted from 0 ({int(bad.sum())} such in all)"
        )


def _array(path: Path) -> "np.ndarray":
    """Return an array that memory can hold; NumPy knows its size without reading it."""
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it is an archive of several arrays")
    except DAMAGED as error:
        raise ValueError(f"{path.name} must be an NPY file of one plain array: {error}") from None
    if array.nbytes > MOST:
        raise ValueError(
            f"{path.name} would take {array.nbytes / 1e9:.3g} GB, which is more than this command "
            "takes: score fewer examples at a time"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{path.name} must hold numbers, got {array.dtype}")
    return np.array(array)
