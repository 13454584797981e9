"""The table experiments deal people as they say, protect them, and take data that users bring."""

import math

import numpy as np
import pytest
from experiments.observational import pate_teachers, tables
from experiments.observational.audits import INTERVENTIONAL, OBSERVATIONAL
from scipy.special import expit
from sklearn import metrics

from auditkit.datasets import load

RNG = np.random.default_rng
SIZE = 2000
HERE = tables.Setting(tables.CENSUS, tables.SCIKIT, SIZE, 0)


def bound(rows, **wanted):
    wanted = {"attack": "label inference", "guesses": "1%", **wanted}
    (found,) = [each["bound"] for each in rows if wanted.items() <= each.items()]
    return found


def constant_loss(labels):
    """Return the log-loss of whoever knows the share of positives only."""
    share = np.full(len(labels), labels.mean())
    return tables.log_loss(labels, np.stack((1.0 - share, share), axis=1))


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """A cache to put files into; what was read from another one is forgotten, before and after."""
    functions = (tables.days, tables.deal, tables.labelled, tables.reference)
    monkeypatch.setenv("AUDITKIT_DATA", str(tmp_path))
    for function in functions:
        function.cache_clear()
    yield tmp_path
    for function in functions:
        function.cache_clear()


def write_day(path, rows, rng):
    """Write a day of Criteo; people who see a rare advertisement click."""
    with path.open("w") as file:
        for _ in range(rows):
            click = int(rng.random() < 0.3)
            numbers = [str(value) if value else "" for value in rng.integers(5, size=13)]
            rare = [f"{rng.integers(2**32):08x}" if click else "0000000f"]
            others = ["" if value > 90 else f"{value:08x}" for value in rng.integers(100, size=25)]
            file.write("\t".join([str(click), *numbers, *rare, *others]) + "\n")


# the data


def test_the_years_of_the_census_are_apart_and_hard_to_tell_apart():
    before, after = tables.days(tables.CENSUS)
    assert (len(before.labels), len(after.labels)) == (149_643, 149_642)
    assert "year" not in load(tables.CENSUS).feature_names
    rng, rows = RNG(0), 20_000
    pools = [day.features[rng.choice(len(day.labels), 2 * rows)] for day in (before, after)]
    years = np.repeat([0, 1], rows)
    guess = tables.fit(tables.SCIKIT, np.concatenate([pool[:rows] for pool in pools]), years)
    said = guess(np.concatenate([pool[rows:] for pool in pools]))[:, 1]
    assert metrics.roc_auc_score(years, said) < 0.56


def test_the_auditor_has_as_many_people_as_the_target_and_a_fifth_is_unseen():
    earlier, audited, unseen = tables.deal(HERE)
    assert [len(day.labels) for day in (earlier, audited, unseen)] == [SIZE, SIZE, SIZE // 5]
    again = tables.deal.__wrapped__(HERE)
    assert np.array_equal(audited.features, again.audited.features)
    assert not np.array_equal(audited.features, tables.deal(HERE._replace(seed=1)).audited.features)


def test_too_many_are_refused():
    with pytest.raises(ValueError, match="size must be at most 124701, so that a fifth is left"):
        tables.deal(HERE._replace(size=130_000))


def test_criteo_goes_the_same_way_as_the_census(brought):
    (brought / "criteo").mkdir()
    for day in range(2):
        write_day(brought / "criteo" / f"day_{day}", 600, RNG(day))
    before, after = tables.days(tables.CRITEO)
    assert before.features.shape == after.features.shape == (600, 39)
    assert np.isnan(before.features[:, :13]).any()
    # the first category is 0f unless somebody clicks, and then seen once, on another day never
    ordinary = np.sum(before.labels == 0)
    assert before.features[:, 13].tolist() == np.where(before.labels, 1, ordinary).tolist()
    assert after.features[:, 13].tolist() == np.where(after.labels, 0, ordinary).tolist()
    rows = tables.protected_table(
        *(OBSERVATIONAL, tables.SCIKIT, "LP-1ST", math.inf, 400, 2, 0, RNG(0)), data=tables.CRITEO
    )
    # clicks can be read off the first category
    assert rows[0]["log_loss"] < 0.1


def test_an_auditor_who_intervenes_draws_labels_that_nobody_has_seen():
    true = tables.deal(HERE)
    drawn = tables.labelled(INTERVENTIONAL, HERE)
    assert drawn.earlier is true.earlier
    for ours, theirs in ((drawn.audited, true.audited), (drawn.unseen, true.unseen)):
        assert ours.features is theirs.features
        said = tables.reference(HERE)(ours.features)[:, 1]
        assert ours.labels.mean() == pytest.approx(said.mean(), abs=0.03)
        assert (ours.labels != theirs.labels).any()


# the models


@pytest.mark.parametrize("learner", [tables.CATBOOST, tables.SCIKIT])
def test_a_learner_predicts_better_than_a_constant_and_without_positives_is_one(learner):
    pytest.importorskip("catboost" if learner == tables.CATBOOST else "sklearn")
    earlier, audited, _ = tables.deal(HERE)
    model = tables.fit(learner, *earlier)
    loss = tables.log_loss(audited.labels, model(audited.features))
    assert loss < 0.85 * constant_loss(audited.labels)
    never = tables.fit(learner, earlier.features, np.zeros(SIZE, int))
    np.testing.assert_allclose(never(audited.features), [[1 - 1 / SIZE, 1 / SIZE]] * SIZE)


@pytest.mark.parametrize("mechanism", tables.FIVE)
@pytest.mark.parametrize("epsilon", [math.inf, 0.5])
def test_every_mechanism_predicts_probabilities_of_finite_loss(mechanism, epsilon, monkeypatch):
    monkeypatch.setattr(tables, "TEACHERS", 10)
    unseen = tables.deal(HERE).unseen
    model = tables.private(OBSERVATIONAL, HERE, mechanism, epsilon, RNG(0))
    if mechanism == "LP-1ST (domain prior)" and epsilon == 0.5:
        assert model is None
        return
    said = model(unseen.features)
    assert np.allclose(said.sum(axis=1), 1.0)
    loss = tables.log_loss(unseen.labels, said)
    assert math.isclose(loss, metrics.log_loss(unseen.labels, said))
    # a calibrated student is no worse than a constant at any ε, and a coin would have log 2
    if mechanism != "PATE":
        assert (loss < 0.4) == (epsilon == math.inf)


@pytest.mark.parametrize(("epsilon", "left"), [(0.1, 1), (2.0, 1), (4.0, 2), (8.0, 2)])
def test_the_domain_prior_leaves_one_label_where_the_paper_has_dashes(epsilon, left):
    name = "LP-1ST (domain prior)"
    if left == 1:
        (row,) = tables.protected_table(
            *(OBSERVATIONAL, tables.SCIKIT, name, epsilon, SIZE, 2, 0, RNG(0))
        )
        assert row["log_loss"] is None
        assert "one label only" in row["note"]
    else:
        assert tables.private(OBSERVATIONAL, HERE, name, epsilon, RNG(0)) is not None


def test_odds_that_are_too_large_are_put_right():
    rng = RNG(0)
    line = rng.normal(size=(50_000, 1))
    labels = (rng.random(50_000) < expit(line[:, 0] - 2.0)).astype(int)

    def model(features):
        positive = expit(3.0 * features)
        return np.hstack((1.0 - positive, positive))

    right = tables.calibrated(model, line, labels)
    np.testing.assert_allclose(right(line)[:, 1], expit(line[:, 0] - 2.0), atol=0.01)


def test_pate_without_noise_predicts_better_than_a_constant():
    model = tables.pate(OBSERVATIONAL, HERE, math.inf, 20, 1000, RNG(0))
    _, votes = tables.voted(OBSERVATIONAL, HERE, 20, 1000)
    assert (votes.sum(axis=1) == 20).all()
    unseen = tables.deal(HERE).unseen
    loss = tables.log_loss(unseen.labels, model(unseen.features))
    assert loss < 0.96 * constant_loss(unseen.labels)


def test_one_teacher_who_labels_everybody_passes_on_what_25_do_not():
    one, many = (
        pate_teachers.taught_table(tables.SCIKIT, teachers, 5000, 5000, 10, 0, RNG(0))
        for teachers in (1, 25)
    )
    found = [bound(rows, played_on="training", guesses="sweep") for rows in (one, many)]
    heard = bound(one, played_on="placebo", guesses="sweep")
    assert found[0] > max(found[1], heard) + 0.2


def test_what_is_learnt_by_heart_is_found_in_either_game_and_not_in_its_placebo():
    for game in (OBSERVATIONAL, INTERVENTIONAL):
        settings = (game, tables.SCIKIT, "LP-1ST", math.inf, 10_000, 5, 0)
        rows = tables.protected_table(*settings, RNG(0))
        assert rows == tables.protected_table(*settings, RNG(0))
        for attack in ("label inference", "difficulty calibration"):
            placebo = bound(rows, played_on="placebo", attack=attack)
            assert bound(rows, played_on="training", attack=attack) > placebo + 0.3
