"""The authors' own predictions for Adult, which their repository holds, under our bound.

One run: 11,023 examples, whether each is a member, and the scores of the baseline and of the
attacks on networks of 10 and 100 passes. The file is fetched, at one commit and with its hash.
"""

import numpy as np
import pandas as pd
from scipy.special import logit

from auditkit import panoramia
from auditkit.bounds.clopper_pearson import lower_limit
from auditkit.datasets import store
from auditkit.experiment import study

ADDRESS = (
    "https://raw.githubusercontent.com/ubc-systopia/panoramia-privacy-measurement/"
    "ec3c0b071cf55524b6820f28083604f7d3d41a6f/Tabular_Models_Privacy_Measurement/data/results/"
    "mia_baseline_default_0.csv"
)
SHA256 = "9a91dde048688a5b4b67ee5fcd0dd9f737a21e26604a49289b59ca9df8321fde"
BASELINE, ATTACKS = "baseline_pred", {10: "mia_mlp10_pred", 100: "mia_mlp100_pred"}
THRESHOLDS = 100  # of the authors' code, evenly from 0 to 1
EVERY, HUNDRED = "every score", "100 thresholds"


def predictions() -> pd.DataFrame:
    """Fetch the file, or take it from the cache."""
    import pooch  # type: ignore[import-not-found,import-untyped,unused-ignore]

    path = store.cache() / "panoramia-published"
    file = pooch.retrieve(ADDRESS, f"sha256:{SHA256}", fname="predictions.csv", path=path)
    return pd.read_csv(file)


@study(
    "pan-published",
    paper={"thresholds": [EVERY, HUNDRED], "passes": list(ATTACKS)},
    needs="the network, for a file of the authors' repository",
)
def published(thresholds: str, passes: int) -> dict:
    """Bound c and c + ε at every score, or at the 100 thresholds of the authors' code."""
    table = predictions()
    members = table["member"].to_numpy() == 1
    weak, strong = (table[name].to_numpy() for name in (BASELINE, ATTACKS[passes]))
    about = {"examples": len(table), "members": int(members.sum())}
    if thresholds == EVERY:
        game = panoramia(weak, strong, members)
        found = game.c_lower, game.c_plus_epsilon_lower
        ceiling = game.details["ceiling"]
    else:
        found = at_hundred(weak, members), at_hundred(strong, members)
        ceiling = at_hundred(members.astype(float), members)
    c, both = found
    return {**about, "c_lower": c, "both_lower": both, "difference": both - c, "ceiling": ceiling}


def at_hundred(scores: np.ndarray, members: np.ndarray) -> float:
    """Return the best bound at 100 thresholds, each at its share of half of the level."""
    above = scores > np.linspace(0.0, 1.0, THRESHOLDS)[:, np.newaxis]
    guesses, correct = above.sum(axis=1), (above & members).sum(axis=1)
    some = guesses > 0
    limits = lower_limit(correct[some], guesses[some], 0.025 / THRESHOLDS)
    return max(0.0, float(logit(limits).max()))
