"""Half precision and single: the stored networks, and what is counted from them."""

import numpy as np
import pandas as pd
import pytest
from experiments.training import precision
from scipy.stats import ttest_rel

from auditkit.experiment import stored


@pytest.fixture
def told(monkeypatch):
    """Let the second study read what the test gives it."""

    def tell(losses, margins, members):
        rows = pd.DataFrame({"loss": losses, "margin": margins, "member": members.astype(int)})
        rows[["setting", "precision", "seed"]] = precision.HEART, precision.FLOAT32, 0
        other = rows.assign(seed=1, loss=rows["loss"].iloc[::-1].to_numpy())
        monkeypatch.setattr(precision, "stored", lambda _: pd.concat((other, rows)))
        return precision.verdict(precision.HEART, precision.FLOAT32, 0)

    return tell


def test_losses_that_tell_all_and_losses_that_tell_nothing(told):
    rng = np.random.default_rng(0)
    members = rng.random(4_000) < 0.5
    noise = rng.random(4_000)
    everything = told(np.where(members, 0.0, 1.0) + 0.1 * noise, noise - 0.5, members)
    assert everything["auc"] == everything["advantage"] == everything["found"] == 1.0
    assert everything["correct"] == everything["guesses"] == 400
    assert everything["epsilon"] > 4.0
    nothing = told(noise, noise - 0.5, members)
    assert abs(nothing["auc"] - 0.5) < 0.03
    assert nothing["advantage"] < 0.06
    assert nothing["found"] < 0.03
    assert nothing["epsilon"] < 0.1


def test_accuracies_are_of_members_and_of_others(told):
    members = np.arange(1_000) % 2 == 0
    margins = np.where(members | (np.arange(1_000) % 4 == 1), 1.0, -1.0)
    found = told(np.arange(1_000) / 1_000, margins, members)
    assert (found["accuracy_members"], found["accuracy"]) == (1.0, 0.5)


@pytest.mark.parametrize("setting", [precision.TINY, precision.TINY_VIEWS])
def test_both_precisions_have_the_same_members(setting):
    half, single = (
        pd.DataFrame(precision.scores(setting, one, 0))
        for one in (precision.BFLOAT16, precision.FLOAT32)
    )
    assert half["member"].equals(single["member"])
    assert 0.4 < half["member"].mean() < 0.6
    assert half["loss"].corr(single["loss"]) > 0.9
    assert not half["loss"].equals(single["loss"])


@pytest.mark.parametrize("value", ["accuracy", "auc", "advantage", "epsilon"])
def test_an_audit_finds_the_same_in_both_precisions(value):
    """What the default of `train_convolutional` rests on."""
    rows = stored("precision-verdict")
    pairs = rows.pivot(index=["setting", "seed"], columns="precision", values=value)
    half, single = pairs[precision.BFLOAT16], pairs[precision.FLOAT32]
    heart = precision.HEART
    assert ttest_rel(half[heart], single[heart]).pvalue > 0.05
    limit = 0.2 if value == "epsilon" else 0.02
    assert (half - single).abs().max() < limit
