"""PATE and CaPC: a poison that is learnt shows, no poison shows nothing, and sums are no bounds."""

import numpy as np
import pytest
from experiments.private_prediction import composing, joint, teachers
from scipy.stats import binom

from auditkit import epsilon_from_renyi, renyi_divergence
from auditkit.mechanisms.releases import Releases

QUERIES = 40


@pytest.fixture
def small(monkeypatch):
    """Ten clouds of points, and twenty teachers of thirty points each."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=1.2, size=(10, 6))
    labels = rng.integers(10, size=600 + QUERIES)
    x = (centres[labels] + rng.normal(size=(len(labels), 6))).astype(np.float32)
    images = teachers.Setting(
        x[:600],
        labels[:600],
        x[600:],
        labels[600:],
        teachers=20,
        sigma=4.0,
        passes=20,
    )
    monkeypatch.setattr(teachers, "setting", lambda _: images)
    monkeypatch.setattr(joint, "setting", lambda _: images)
    for name, value in {
        "DIRECTIONS": 6,
        "QUERIES": QUERIES,
        "DEALS": 5,
        "TRAININGS": 6,
        "PATE_REPEATS": 20,
        "CAPC_REPEATS": 8,
        "PATE_NATURAL": 60,
        "CAPC_NATURAL": 20,
        "GROUP_REPEATS": 2,
    }.items():
        monkeypatch.setattr(teachers, name, value)
    caches = (teachers.votes, teachers.fixed_parts, teachers.teacher_shares)
    for cached in caches:
        cached.cache_clear()
    yield images
    for cached in caches:
        cached.cache_clear()


def by_name(rows, which):
    return {(row["system"], row["adversary"]): row for row in rows if row["which"] == which}


@pytest.mark.usefixtures("small")
def test_a_point_shows_more_than_no_point_and_no_audit_exceeds_the_law():
    rows = teachers.adversarial("small", 0, 10, np.random.default_rng(0))
    average = by_name(rows, "average")
    for system in ("PATE", "CaPC, first teacher", "CaPC, chosen teacher"):
        null = average[system, "null"]
        assert abs(null["gain"]) < 0.25
        for adversary in ("natural", "poisoned"):
            row = average[system, adversary]
            assert row["gain"] > null["gain"]
            assert null["exact"] < row["exact"] < row["independent"]
            assert row["appendix_b"] <= row["corner"] + 1e-9 <= row["exact"] + 0.05
    worst = by_name(rows, "worst")
    assert all(worst[key]["exact"] >= average[key]["exact"] for key in worst)
    assert average["PATE", "poisoned"]["gain"] > average["PATE", "natural"]["gain"]


@pytest.mark.usefixtures("small")
def test_only_pate_has_a_ceiling_for_a_query_that_is_repeated():
    rows = teachers.adversarial("small", 0, 10, np.random.default_rng(0))
    row = by_name(rows, "average")["PATE", "null"]
    assert row["ceiling_2"] > 0.0
    assert by_name(rows, "average")["CaPC, first teacher", "null"].get("ceiling_2") is None


def test_teachers_of_pate_get_other_images_each_time_and_those_of_capc_the_same(small):
    rng = np.random.default_rng(0)
    first, second = teachers.random_parts(small, 40, rng).reshape(2, 20, -1)
    assert sorted(first.ravel()) == list(range(600))
    assert (first != second).any()
    assert teachers.random_parts(small, 7, rng).shape == (7, 30)
    np.testing.assert_array_equal(teachers.fixed_parts("small"), teachers.fixed_parts("small"))


def test_models_with_a_point_say_its_label_more_often_than_models_without(small):
    chosen = np.arange(5)
    labels = (small.query_labels[chosen] + 1) % 10
    parts = teachers.random_parts(small, 5 * 12, np.random.default_rng(0))
    told, untold = (
        teachers.own_votes(small, parts, chosen, point, 12, np.random.default_rng(1))
        for point in (labels, None)
    )
    assert told.shape == untold.shape == (12, 5)
    assert (told == labels).mean() > (untold == labels).mean() + 0.3


@pytest.mark.usefixtures("small")
def test_a_natural_session_shows_a_poison_beside_its_null():
    rows = teachers.natural("small", 2, np.random.default_rng(0))
    assert [row["poison"] is None for row in rows] == [True, True, False, False, False, False]
    for row in rows:
        assert row["floor"] <= row["appendix_b"] <= row["corner"] + 1e-9
        assert row["exact"] < row["independent"]


@pytest.mark.usefixtures("small")
def test_more_poisons_change_more_votes():
    few, many = (
        teachers.several_points("small", points, np.random.default_rng(0)) for points in (1, 16)
    )
    assert many["flips"] > few["flips"]


# Composing.


def test_epsilon_of_nothing_is_the_floor_and_theory_composes_to_what_was_tried():
    assert composing.epsilon(np.zeros(len(composing.ORDERS))) == composing.floor() > 0.0
    assert composing.epsilon(1000 * composing.ORDERS / 40.0**2) == pytest.approx(5.95, abs=0.01)
    ours = epsilon_from_renyi(composing.ORDERS, composing.ORDERS / 40.0, 1e-6)
    assert composing.epsilon(composing.ORDERS / 40.0) == ours


def test_audits_of_one_law_against_itself_find_nothing_and_of_two_nearly_all():
    p, q = np.array([[0.5, 0.3, 0.2]]), np.array([[0.52, 0.29, 0.19]])
    rng = np.random.default_rng(0)
    for rows in composing.audits(Releases(p, p), rng).values():
        assert rows.max() < 1e-5
    pair = Releases(p, q)
    exact = pair.directions(composing.ORDERS)
    found = composing.audits(pair, rng)
    assert (found["corner"] <= exact).all()
    assert (found["corner"] >= 0.75 * exact).all()
    assert (found["appendix_b"] <= found["corner"] + 1e-9).all()


def test_bounds_that_hold_jointly_add_up_to_less_than_the_truth_as_often_as_they_say():
    """Five queries that leak nothing, where any bound above 0 is a failure, and five that leak."""
    rng = np.random.default_rng(2)
    null = np.tile([[0.5, 0.3, 0.2]], (5, 1))
    other = np.tile([[0.5004, 0.2998, 0.1998]], (5, 1))
    pair = Releases(np.concatenate([null, null]), np.concatenate([null, other]))
    truth = pair.directions(composing.ORDERS)
    failures = 0
    for _ in range(60):
        found = composing.audits(pair, rng, confidence=1.0 - 0.05 / 10)
        failures += (found["corner"] > truth + 1e-12).any()
    assert failures <= 6


def test_each_direction_of_a_session_adds_up_by_itself():
    """Of two queries one leaks more this way, the other that way."""
    rare, rarer = [0.9, 0.1], [0.99, 0.01]
    pair = Releases(np.array([rare, rarer]), np.array([rarer, rare]))
    both = np.array(
        [
            [np.log(np.sum(np.power(p, 2.0) / q)) for p, q in ((rare, rarer), (rarer, rare))],
            [np.log(np.sum(np.power(p, 2.0) / q)) for p, q in ((rarer, rare), (rare, rarer))],
        ]
    )
    np.testing.assert_allclose(pair.directions([2.0])[..., 0], both)
    session = composing.total({"exact": pair.directions(composing.ORDERS)})["exact"]
    joint = [np.multiply.outer(*law).ravel() for law in (pair.without, pair.with_point)]
    truth = Releases(joint[0][None], joint[1][None]).divergences(composing.ORDERS)[0]
    assert session == pytest.approx(composing.epsilon(truth))
    assert session < composing.epsilon(pair.divergences(composing.ORDERS).sum(axis=0)) - 0.05


def test_a_worst_neighbour_leaks_less_than_theory_allows():
    limits = composing.theory(np.array([[20.0, 18.0, 2.0], [40.0, 0.0, 0.0]]), 5.0)
    assert (limits["flip"] <= limits["dependent"] + 1e-12).all()
    assert (limits["dependent"] <= limits["independent"] + 1e-12).all()
    assert limits["flip"][0, 1, 4] < 0.01 * limits["flip"][0, 0, 4]
    assert len(composing.neighbours(np.array([2.0, 0.0, 0.0]))) == 2


def test_the_ceiling_is_the_divergence_of_the_laws_of_histograms():
    before, after, count = np.array([0.7, 0.3]), np.array([0.2, 0.8]), 12
    ones = np.arange(count + 1)
    p = binom.pmf(ones, count, before[1])
    others = binom.pmf(ones, count - 1, before[1])
    q = after[0] * others + after[1] * np.concatenate([[0.0], others[:-1]])
    exact = renyi_divergence(q, p, [2.0])[0]
    found = composing.histogram_ceiling(before[None], after[None], count)[0]
    assert found == pytest.approx(exact, rel=1e-10)


# The session as a whole.


def test_the_sum_over_answers_passes_the_ceiling_and_the_session_does_not():
    rng = np.random.default_rng(0)
    rows = [joint.asked_again(0.9, 2.0, queries, rng) for queries in (1, 10, 1000)]
    one, ten, many = rows
    assert one["joint"] == pytest.approx(one["total"], rel=1e-6)
    assert ten["joint"] < 0.8 * ten["total"]
    assert many["total"] > 40 * many["ceiling"]
    for row in rows:
        assert 0.4 * row["joint"] < row["audit"] <= row["joint"] <= row["ceiling"]


def test_two_equal_worlds_of_a_session_leak_nothing():
    row = joint.asked_again(0.5, 2.0, 30, np.random.default_rng(0))
    assert row["total"] == row["audit"] == row["ceiling"] == 0.0
    assert row["joint"] == pytest.approx(0.0, abs=1e-12)


def test_the_law_of_a_session_is_what_drawing_teachers_gives():
    rng = np.random.default_rng(0)
    laws = joint.session_laws(5)
    np.testing.assert_allclose(laws.sum(axis=1), 1.0)
    ones = 1 + rng.binomial(joint.TEACHERS - 1, 0.5, size=40_000)
    noise = rng.normal(scale=joint.SIGMA, size=(2, 40_000, 5))
    said = (ones[:, None] + noise[1] > joint.TEACHERS - ones[:, None] + noise[0]).sum(axis=1)
    np.testing.assert_allclose(np.bincount(said, minlength=6) / 40_000, laws[1], atol=0.012)


def test_the_audit_of_a_session_is_below_its_exact_law_as_often_as_it_says():
    """At the null a bound above 0 is a failure; one of a few queries is rare."""
    rng = np.random.default_rng(1)
    failures = sum(joint.asked_again(0.5, 2.0, 10, rng)["audit"] > 0.0 for _ in range(200))
    rows = [joint.asked_again(0.6, 2.0, 10, rng) for _ in range(200)]
    assert failures <= 10
    assert sum(row["audit"] > row["joint"] for row in rows) <= 10


@pytest.mark.usefixtures("small")
def test_a_session_with_real_teachers_is_audited_as_a_whole():
    poisoned, null = joint.whole_session("small", 3, 4000, np.random.default_rng(0))
    assert poisoned["poison"] is not None
    assert null["poison"] is None
    for row in (poisoned, null):
        assert row["largest"] <= row["total"]
        assert row["audit"] <= row["total"]
    assert null["audit"] == 0.0
