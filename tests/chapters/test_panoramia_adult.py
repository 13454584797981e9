"""Adult and MST: who is what, what networks see, and the authors' own predictions."""

import numpy as np
import pandas as pd
import pytest
from experiments.panoramia import adult, published

from auditkit import panoramia_ceiling
from auditkit.datasets import load


def test_people_are_dealt_once_and_mst_was_fitted_to_members():
    data, deal = load("adult", part="mst"), adult.world(1)
    fitted = adult.people(data["people"][data["spare"][1]])
    np.testing.assert_array_equal(deal.members.inputs[: len(fitted)], fitted.inputs)
    together = np.concatenate((deal.members.inputs, deal.others.inputs))
    everybody = np.concatenate((together, deal.unseen_train.inputs, deal.unseen.inputs))
    assert everybody.shape == data["people"][:, :-1].shape
    ordered = [rows[np.lexsort(rows.T)] for rows in (everybody, data["people"][:, :-1])]
    np.testing.assert_array_equal(*ordered)


@pytest.mark.parametrize("seed", adult.SEEDS)
def test_generated_people_have_the_levels_of_real_ones_and_much_of_their_law(seed):
    data = load("adult", part="mst")
    drawn, real = data["made"][seed], data["people"]
    assert drawn.shape == (18_000, 14)
    for place in range(14):
        known = np.bincount(real[:, place], minlength=256) / len(real)
        made = np.bincount(drawn[:, place], minlength=256) / len(drawn)
        assert made[known == 0.0].sum() < 0.01
        assert np.abs(known - made).sum() < 0.15


def test_networks_see_numbers_in_deviations_and_categories_as_columns():
    shown = adult.seen(adult.world(0).real[:2_000])
    assert shown.shape[1] == len(adult.NUMBERS) + 102
    assert set(np.unique(shown[:, 1:10])) == {0.0, 1.0}
    np.testing.assert_array_equal(shown[:, 1:10].sum(axis=1), 1.0)
    assert abs(shown[:, 0].mean()) < 0.1
    assert shown[:, 0].std() == pytest.approx(1.0, abs=0.1)


@pytest.fixture
def predictions(monkeypatch):
    """Give the study a file as the authors have it."""
    rng = np.random.default_rng(0)
    members = rng.random(4_000) < 0.5
    scores = {name: (members + rng.normal(0.5, 1.0, 4_000)) / 3 for name in ("baseline_pred",)}
    for name, spread in (("mia_mlp10_pred", 1.0), ("mia_mlp100_pred", 0.2)):
        scores[name] = (members + rng.normal(0.5, spread, 4_000)) / 3
    table = pd.DataFrame({"member": members.astype(int), **scores})
    monkeypatch.setattr(published, "predictions", lambda: table)
    return table


def test_published_predictions_are_bounded_at_every_score_or_at_a_hundred_thresholds(predictions):
    every, hundred = (published.published(one, 100) for one in (published.EVERY, published.HUNDRED))
    members = int(predictions["member"].sum())
    assert (every["examples"], every["members"]) == (4_000, members)
    assert every["ceiling"] == pytest.approx(panoramia_ceiling(4_000), abs=0.1)
    # fewer tests share the level
    assert hundred["ceiling"] > every["ceiling"] + 0.3
    assert hundred["both_lower"] == pytest.approx(every["both_lower"], abs=0.6)
    assert every["difference"] > 1.0
    assert published.published(published.EVERY, 10)["difference"] < 0.5
