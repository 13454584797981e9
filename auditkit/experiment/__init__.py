"""Grids of runs: studies, journals that survive, and where each result comes from.

Here belongs what every long run shares: which cells there are, their random streams, progress,
resuming, parallel work, stored results and their recomputation. What a cell does lives with the
chapter or the room that does it, and drawing lives in `figures`.
"""

from auditkit.datasets.shipped import home
from auditkit.experiment.provenance import about, profile, provenance, stored
from auditkit.experiment.study import STUDIES, Study, experiment, study

__all__ = [
    "STUDIES",
    "Study",
    "about",
    "experiment",
    "home",
    "profile",
    "provenance",
    "stored",
    "study",
]
