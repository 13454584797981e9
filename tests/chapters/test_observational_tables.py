"""The table experiments deal people as they say, and take the data that users bring."""

import math

import numpy as np
import pytest
from experiments.observational import tables, texts
from sklearn import metrics

from auditkit.datasets import load

RNG = np.random.default_rng


def row(rows, **wanted):
    (found,) = [each for each in rows if wanted.items() <= each.items()]
    return found


def features_with_labels(dealt):
    return [{*map(bytes, np.column_stack(part))} for part in dealt]


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """A cache to put files into; what was read from another one is forgotten, before and after."""
    functions = (tables.days, tables.singular, tables.reference)
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
    guess = tables.fit(np.concatenate([pool[:rows] for pool in pools]), years, rounds=20, leaves=15)
    said = guess(np.concatenate([pool[rows:] for pool in pools]))[:, 1]
    assert metrics.roc_auc_score(years, said) < 0.56


def test_nobody_is_dealt_twice():
    # those unlike any other can be told by their features
    dealt = tables.split(tables.CENSUS, tables.UNLIKE, 45_000, seed=0)
    people = features_with_labels(dealt)
    assert [len(part) for part in people] == [90_000, 45_000, 45_000]
    assert len(set.union(*people)) == 180_000


def test_the_seed_deals_and_nothing_else():
    first, again, other = (
        tables.split(tables.CENSUS, tables.EVERYBODY, 1000, seed) for seed in (3, 3, 4)
    )
    assert np.array_equal(first.audited.features, again.audited.features)
    assert not np.array_equal(first.audited.features, other.audited.features)


def test_too_many_are_refused():
    with pytest.raises(
        ValueError, match="size must be at most 49774, half of the unlike any other"
    ):
        tables.split(tables.CENSUS, tables.UNLIKE, 50_000, seed=0)


def test_people_unlike_any_other_are_found(monkeypatch):
    rng = RNG(0)
    days = [tables.Day(rng.integers(5, size=(60, 3)).astype(np.float32), None) for _ in range(2)]
    monkeypatch.setattr(tables, "days", lambda _: tuple(days))
    everybody = [tuple(person) for day in days for person in day.features]
    slow = [everybody.count(person) == 1 for person in everybody]
    found = tables.singular.__wrapped__("these")
    assert 0 < sum(slow) < 60
    assert np.concatenate(found).tolist() == slow


def test_criteo_goes_the_same_way_as_the_census(brought):
    (brought / "criteo").mkdir()
    for day in range(2):
        write_day(brought / "criteo" / f"day_{day}", 600, RNG(day))
    before, after = tables.days("criteo")
    assert before.features.shape == after.features.shape == (600, 39)
    assert np.isnan(before.features[:, :13]).any()
    # the first category is 0f unless somebody clicks, and then seen once, on another day never
    ordinary = np.sum(before.labels == 0)
    assert before.features[:, 13].tolist() == np.where(before.labels, 1, ordinary).tolist()
    assert after.features[:, 13].tolist() == np.where(after.labels, 0, ordinary).tolist()
    rows = tables.protected_table("criteo", tables.EVERYBODY, "LP-1ST", math.inf, 300, 2, 0, RNG(0))
    # clicks can be read off the first category
    assert rows[0]["log_loss"] < 0.1
    assert {each["reference"] for each in rows} == {"trained", "distilled"}


# the models


@pytest.mark.parametrize("mechanism", tables.MECHANISMS)
@pytest.mark.parametrize("epsilon", [math.inf, 0.5])
def test_every_mechanism_predicts_probabilities_of_finite_loss(mechanism, epsilon, monkeypatch):
    monkeypatch.setattr(tables, "TEACHERS", 10)
    dealt = tables.split(tables.CENSUS, tables.EVERYBODY, 2000, seed=0)
    model = tables.MECHANISMS[mechanism](dealt, epsilon, RNG(0))
    if mechanism == "LP-1ST (domain prior)" and epsilon == 0.5:
        assert model is None
        return
    said = model(dealt.unseen.features)
    assert np.allclose(said.sum(axis=1), 1.0)
    loss = tables.log_loss(dealt.unseen.labels, said)
    assert math.isclose(loss, metrics.log_loss(dealt.unseen.labels, said))
    # a student of so few teachers knows little at any ε, and a coin would have log 2
    if mechanism != "PATE":
        assert (loss < 0.4) == (epsilon == math.inf)


@pytest.mark.parametrize(("epsilon", "left"), [(0.1, 1), (2.0, 1), (4.0, 2), (8.0, 2)])
def test_the_domain_prior_leaves_one_label_where_the_paper_has_dashes(epsilon, left):
    if left == 1:
        (row,) = tables.protected_table(
            *(tables.CENSUS, tables.EVERYBODY, "LP-1ST (domain prior)", epsilon, 1000, 2, 0, RNG(0))
        )
        assert row["log_loss"] is None
        assert "one label only" in row["note"]
    else:
        dealt = tables.split(tables.CENSUS, tables.EVERYBODY, 1000, seed=0)
        assert tables.domain_prior(dealt, epsilon, RNG(0)) is not None


def test_a_distilled_model_is_taught_four_fifths_by_the_target():
    # of people who cannot be told apart it learns a mean
    own = tables.Day(np.zeros((1000, 1)), np.arange(1000) % 10 == 0)
    said = np.tile([0.2, 0.8], (1000, 1))
    pupil = tables.distilled(own._replace(labels=own.labels.astype(int)), said)
    assert np.allclose(pupil(np.zeros((1, 1))), [[0.34, 0.66]], atol=1e-3)


def test_what_is_learnt_by_heart_is_found_in_training_and_not_in_the_placebo():
    settings = (tables.CENSUS, tables.EVERYBODY, "LP-1ST", math.inf, 4000, 5, 0)
    rows = tables.protected_table(*settings, RNG(0))
    assert rows == tables.protected_table(*settings, RNG(0))
    for attack in ("label inference", "difficulty calibration"):
        where = {"reference": "distilled", "attack": attack, "guesses": "1%"}
        placebo = row(rows, played_on="placebo", **where)["bound"]
        assert row(rows, played_on="training", **where)["bound"] > placebo + 1.0


# texts


def test_texts_are_dealt_once():
    unseen, audited, own = texts.split(1003, seed=0)
    assert (len(unseen), len(audited), len(own)) == (100, 452, 451)
    assert np.array_equal(np.sort(np.concatenate((unseen, audited, own))), np.arange(1003))


def test_more_texts_than_fit_are_chosen_at_random(monkeypatch):
    monkeypatch.setattr(texts, "TEXTS", 50)
    lines, labels = texts.made_up(200)
    chosen = texts.bag_of_words(lines, labels, seed=0)
    assert chosen.features.shape[0] == len(chosen.labels) == 50
    assert np.allclose(np.linalg.norm(chosen.features, axis=1), 1.0)


def test_neutral_tweets_are_left_out(brought):
    (brought / "twitter-sentiment").mkdir()
    path = brought / "twitter-sentiment" / "twitter_dataset.csv"
    tweets = [("good", 1), ("bad", 2), ("hm", 0), ("fine", 1), ("poor", 2)]
    lines = "\n".join(f"{tweet},{code}" for tweet, code in tweets)
    path.write_text(f"tweet,sentiment\n{lines}\n", encoding="utf-8")
    kept, labels = texts.classified("twitter-sentiment")
    assert list(zip(kept.tolist(), labels.tolist(), strict=True)) == [
        *[("good", 0), ("bad", 1), ("fine", 0), ("poor", 1)]
    ]


def test_texts_are_audited_against_three_reference_models():
    rows = texts.protected_texts("made up", 2, 0, rng=RNG(1))
    assert {each["passes"] for each in rows} == {2, 10}
    assert {each["reference"] for each in rows} == {"trained", "scaled", "distilled"}
    assert {each["examples"] for each in rows if each["played_on"] == "training"} == {200}
    by_heart = [each for each in rows if each["passes"] == 10]
    assert min(each["accuracy"] for each in by_heart) > 0.8
    where = {"attack": "difficulty calibration", "guesses": "1%", "played_on": "training"}
    assert (
        len(
            {
                row(by_heart, reference=which, **where)["reference_log_loss"]
                for which in ("trained", "scaled", "distilled")
            }
        )
        == 3
    )
