"""How high a statistic lies among those of alike non-members."""

import numpy as np
import pytest
from scipy.stats import kstest

from auditkit import audit_scores
from auditkit.attacks.quantile_regression import quantile_regression
from auditkit.bounds.roc import auc

EXAMPLES, PUBLIC = 1000, 3000


def world(leak, seed=0):
    """Statistics whose mean and spread follow from the features; the first examples are audited."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(EXAMPLES + PUBLIC, 3))
    members = rng.random(EXAMPLES + PUBLIC) < 0.5
    members[EXAMPLES:] = False
    spread = np.exp(features[:, 1])
    said = 4.0 * np.abs(features[:, 0]) + spread * (leak * members + rng.normal(size=len(members)))
    split = said[:EXAMPLES], features[:EXAMPLES], said[EXAMPLES:], features[EXAMPLES:]
    return split, members[:EXAMPLES]


def test_the_law_of_non_members_is_learnt_with_its_mean_and_its_spread():
    (said, features, *public), members = world(leak=0.0)
    scores = quantile_regression(said, features, *public, rng=0)
    assert kstest(scores[~members], "norm").statistic < 0.08
    for column in features.T:
        assert abs(np.corrcoef(column, scores)[0, 1]) < 0.1
    assert np.abs(scores).max() < 8.0  # nowhere is the spread taken for nothing
    wide = features[:, 1] > 0.0
    noise = said - 4.0 * np.abs(features[:, 0])
    assert noise[wide].std() > 3.0 * noise[~wide].std()
    assert 0.67 < scores[wide].std() / scores[~wide].std() < 1.5


def test_members_lie_high_among_alike_non_members():
    split, members = world(leak=2.0)
    scores = quantile_regression(*split, rng=0)
    assert auc(scores, members).low > auc(split[0], members).high + 0.1
    np.testing.assert_array_equal(scores, quantile_regression(*split, rng=0))


def test_an_audit_of_a_model_that_leaks_nothing_proves_nothing():
    split, members = world(leak=0.0)
    scores = quantile_regression(*split, rng=0)
    found = auc(scores, members)
    assert found.low < 0.5 < found.high
    rng = np.random.default_rng(1)
    coins = [rng.random(EXAMPLES) < 0.5 for _ in range(60)]
    bounds = [audit_scores(scores, coin, method="one-run").epsilon for coin in coins]
    assert sum(bound > 0.0 for bound in bounds) <= 8  # at 5%: more with probability 0.005


def test_audited_non_members_among_the_public_examples_are_known_by_it():
    """Why they are forbidden: nothing leaks, and yet memberships are found."""
    (said, features, *_), members = world(leak=0.0)
    scores = -np.abs(quantile_regression(said, features, said[~members], features[~members], rng=0))
    assert auc(scores, ~members).low > 0.55


def some(**changed):
    rng = np.random.default_rng(0)
    given = {
        "statistics": rng.normal(size=5),
        "features": rng.normal(size=(5, 2)),
        "public_statistics": rng.normal(size=20),
        "public_features": rng.normal(size=(20, 2)),
    }
    return {**given, **changed, "rng": 0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"statistics": [0.0] * 4}, "same length: statistics has 4, features has 5"),
        ({"features": np.zeros(5)}, r"^features must have 2 dimension\(s\)"),
        ({"public_statistics": [np.inf] * 20}, "^public_statistics must hold finite numbers"),
        ({"public_features": np.zeros((20, 3))}, "^public_features must have 2 columns as feat"),
        (
            {"public_statistics": [0.0] * 9, "public_features": np.zeros((9, 2))},
            "^public_statistics must hold 10 or more, got 9",
        ),
        ({"public_statistics": [1.0] * 20}, "^public_statistics must vary"),
    ],
)
def test_what_does_not_fit_together_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        quantile_regression(**some(**changed))
