"""What became of the papers' claims is computed from stored results, without a notebook."""

import csv
import importlib
import subprocess
import sys

import pytest

from auditkit.claims import FINDINGS
from auditkit.experiment import home

PAPERS = {
    "OBS": "observational",
    "SUB": "substitute",
    "PRED": "private_prediction",
    "ZERO": "zero_run",
    "PAN": "panoramia",
}
CHAPTERS = home() / "chapters"
with (home() / "data" / "claims.csv").open(encoding="utf-8", newline="") as file:
    LISTED = [row["id"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("short", PAPERS)
def test_every_claim_of_a_paper_has_a_verdict_whose_check_holds(short):
    importlib.import_module(f"experiments.{PAPERS[short]}.claims")
    ours = [id_ for id_ in FINDINGS if id_.startswith(f"{short}-")]
    assert sorted(ours) == sorted(id_ for id_ in LISTED if id_.startswith(f"{short}-"))


@pytest.mark.parametrize("name", PAPERS.values())
def test_claims_need_no_training(name):
    code = (
        f"import sys; import experiments.{name}.claims; "
        "assert not {'torch', 'sklearn', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CHAPTERS)
