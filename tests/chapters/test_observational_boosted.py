"""The census by learners at their defaults: who is dealt to whom, and a PATE that is of use."""

import math

import numpy as np
import pytest
from experiments.observational import boosted
from experiments.observational.tables import log_loss
from scipy.special import expit

SIZE = 2000


def test_the_auditor_has_as_many_people_as_the_target_and_a_fifth_is_unseen():
    earlier, audited, unseen = boosted.deal(SIZE, 0)
    assert [len(day.labels) for day in (earlier, audited, unseen)] == [SIZE, SIZE, SIZE // 5]
    again = boosted.deal.__wrapped__(SIZE, 0)
    assert np.array_equal(audited.features, again.audited.features)
    assert not np.array_equal(audited.features, boosted.deal(SIZE, 1).audited.features)


@pytest.mark.parametrize("learner", [boosted.CATBOOST, boosted.SCIKIT])
def test_a_learner_predicts_better_than_a_constant_and_without_positives_is_one(learner):
    pytest.importorskip("catboost" if learner == boosted.CATBOOST else "sklearn")
    earlier, audited, _ = boosted.deal(SIZE, 0)
    model = boosted.fit(learner, *earlier)
    share = np.full(len(audited.labels), audited.labels.mean())
    constant = log_loss(audited.labels, np.stack((1.0 - share, share), axis=1))
    assert log_loss(audited.labels, model(audited.features)) < 0.85 * constant
    never = boosted.fit(learner, earlier.features, np.zeros(SIZE, int))
    np.testing.assert_allclose(never(audited.features), [[1 - 1 / SIZE, 1 / SIZE]] * SIZE)


def test_odds_that_are_too_large_are_put_right():
    rng = np.random.default_rng(0)
    line = rng.normal(size=(50_000, 1))
    labels = (rng.random(50_000) < expit(line[:, 0] - 2.0)).astype(int)

    def model(features):
        positive = expit(3.0 * features)
        return np.hstack((1.0 - positive, positive))

    right = boosted.calibrated(model, line, labels)
    np.testing.assert_allclose(right(line)[:, 1], expit(line[:, 0] - 2.0), atol=0.01)


def test_pate_without_noise_predicts_better_than_a_constant(monkeypatch):
    monkeypatch.setattr(boosted, "TEACHERS", 20)
    boosted.voted.cache_clear()
    model = boosted.pate(
        boosted.OBSERVATIONAL, boosted.SCIKIT, math.inf, SIZE, 0, np.random.default_rng(0)
    )
    _, votes = boosted.voted(boosted.OBSERVATIONAL, boosted.SCIKIT, SIZE, 0)
    boosted.voted.cache_clear()
    assert (votes.sum(axis=1) == 20).all()
    unseen = boosted.deal(SIZE, 0).unseen
    share = np.full(len(unseen.labels), unseen.labels.mean())
    constant = log_loss(unseen.labels, np.stack((1.0 - share, share), axis=1))
    assert log_loss(unseen.labels, model(unseen.features)) < 0.96 * constant


def test_a_prior_that_leaves_one_label_leaves_no_model():
    assert (
        boosted.private(
            boosted.OBSERVATIONAL,
            boosted.SCIKIT,
            "LP-1ST (domain prior)",
            1.0,
            SIZE,
            0,
            np.random.default_rng(0),
        )
        is None
    )


def test_an_auditor_who_intervenes_draws_labels_that_nobody_has_seen():
    true = boosted.deal(SIZE, 0)
    drawn = boosted.labelled(boosted.INTERVENTIONAL, boosted.SCIKIT, SIZE, 0)
    assert drawn.earlier is true.earlier
    for ours, theirs in ((drawn.audited, true.audited), (drawn.unseen, true.unseen)):
        assert ours.features is theirs.features
        said = boosted.reference(boosted.SCIKIT, SIZE, 0)(ours.features)[:, 1]
        assert ours.labels.mean() == pytest.approx(said.mean(), abs=0.03)
        assert (ours.labels != theirs.labels).any()
