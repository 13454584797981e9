"""From the bytes of a file to named columns: what a file is, and which reader takes it.

That follows from its first bytes, and not from its name. What is not read is refused by its kind.
"""

import codecs

from auditkit.cli.score_arrays import from_npy, from_npz, from_parquet
from auditkit.cli.score_columns import Asked, Read
from auditkit.cli.score_containers import Source
from auditkit.cli.score_text import from_csv, from_json

OTHER_KINDS = (
    (b"ARROW1", "a Feather file: save it as Parquet"),
    (b"\x89HDF", "an HDF5 file: save it as NPZ, Parquet or CSV"),
    (b"\x80", "a pickle, which could run code when it is read: save it as NPZ or CSV"),
    (b"BZh", "packed by bzip2: unpack it first, or pack it by gzip"),
    (b"\xfd7zXZ", "packed by xz: unpack it first, or pack it by gzip"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd: unpack it first, or pack it by gzip"),
    (b"SQLite", "a database: save a table of it as CSV"),
)


def read(source: Source, asked: Asked) -> Read:
    """Return the columns of a file, by what its first bytes say that it is."""
    start = source.file.read(64)
    source.file.seek(0)
    if not start:
        raise ValueError(f"{source.name} is empty")
    for magic, what in OTHER_KINDS:
        if start.startswith(magic):
            raise ValueError(f"{source.name} is {what}")
    if start.startswith(b"PAR1"):
        return from_parquet(source, asked)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # the second is an archive of nothing
        return from_npz(source, asked)
    if start.startswith(b"\x93NUMPY"):
        return from_npy(source, asked)
    if start.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"["):
        return from_json(source, asked)
    return from_csv(source, asked)
