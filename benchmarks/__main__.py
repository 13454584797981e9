"""Run every benchmark and store the table that the book's page on speed shows."""

import os

os.environ["AUDITKIT_PROFILE"] = "paper"  # where results are stored

from benchmarks.speed import speed

for row in speed.run().itertuples():
    print(f"{row.ratio:8.0f} times {row.baseline}: {row.what}")
