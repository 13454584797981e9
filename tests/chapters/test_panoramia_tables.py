"""People of the chapter: nobody twice, and generated people are like them."""

import itertools

import numpy as np
from experiments.panoramia import tables
from experiments.panoramia.audits import NULL, TARGET

from auditkit.attacks.generated import Mixture
from auditkit.datasets import load


def keys(examples):
    rows = np.column_stack((examples.inputs, examples.labels))
    return {row.tobytes() for row in np.ascontiguousarray(rows, dtype=np.float64)}


def test_nobody_is_in_two_places():
    own = tables.world(0, tables.EVERYBODY)
    dealt = keys(own.spare), keys(own.train), keys(own.real)
    assert set().union(*dealt) == keys(own.members)
    groups = (*dealt, keys(own.others), keys(own.unseen_train), keys(own.unseen))
    assert sum(len(group) for group in groups) == (
        2 * tables.MEMBERS + tables.TRAINING + tables.AUDITED
    )
    for one, other in itertools.combinations(groups, 2):
        assert not one & other


def test_plain_people_have_no_rare_income():
    own = tables.world(0, tables.PLAIN)
    names = load("census-income").feature_names
    for name in tables.RARE:
        assert (own.members.inputs[:, names.index(name)] == 0).all()


def test_networks_see_each_frequent_category_as_a_column():
    everybody, _ = tables.people()
    shown = tables.seen(everybody[:200]).inputs
    data = load("census-income")
    place = data.feature_names.index("sex")
    start = sum(
        1 if levels is None else len(levels)
        for column, levels, _, _ in tables.columns()
        if column < place
    )
    np.testing.assert_array_equal(
        shown[:, start : start + 2].argmax(axis=1), everybody.inputs[:200, place]
    )


def test_generated_people_have_numbers_of_real_ones():
    drawn, own = tables.made(0, tables.EVERYBODY, False), tables.world(0, tables.EVERYBODY)
    assert len(drawn) == tables.TRAINING + tables.AUDITED + len(own.spare)
    for column, real in zip(drawn.inputs.T, own.spare.inputs.T, strict=True):
        assert np.isin(column, real).all()


def test_filtered_people_are_harder_to_tell_from_real_ones():
    own = tables.world(0, tables.EVERYBODY)
    right = []
    for filtered in (False, True):
        fake = tables.made(0, tables.EVERYBODY, filtered)[: 2 * tables.TRAINING]
        halves = Mixture(
            own.train,
            fake[: tables.TRAINING],
            own.real[: tables.TRAINING],
            fake[tables.TRAINING :],
        )
        scores = halves.scores()
        right.append((scores.real > scores.other).mean())
    assert right[1] < right[0] - 0.02


def test_a_cell_audits_the_model_and_its_null(monkeypatch):
    monkeypatch.setattr(tables, "AUDITED", 500)
    monkeypatch.setattr(tables, "TRAINING", 500)
    dealt = (tables.world, tables.made, tables.mixture, tables.networks, tables.taught)
    for each in dealt:
        each.cache_clear()
    rows = tables.census(tables.EVERYBODY, False, 1, 0, 2)
    lines = tables.recall_curves(1, 0)
    for each in dealt:
        each.cache_clear()
    assert {row["release"] for row in rows} == {TARGET, NULL}
    assert all(0.0 <= row["rare_share"] <= 1.0 for row in rows)
    assert {row["pairs"] for row in rows} == {500}
    # the last of all guesses are those of everything that was shown
    assert {row["guesses"] for row in lines if row["recall"] == 1.0} >= {500}
    assert {row["release"] for row in lines} == {"none", TARGET, NULL}
