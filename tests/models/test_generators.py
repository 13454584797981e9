"""Generators draw from the law that they were fitted to, and leave nothing out by accident."""

import itertools

import numpy as np
import pytest

from auditkit.models.generators import (
    ChowLiuTree,
    Examples,
    GaussianMixtures,
    fit_chow_liu_tree,
    fit_gaussian_mixtures,
    rounded_like,
)


def test_examples_keep_inputs_and_labels_together():
    examples = Examples(np.arange(6).reshape(3, 2), np.array([0, 1, 2]))
    part = examples[[2, 0]]
    np.testing.assert_array_equal(part.inputs, [[4, 5], [0, 1]])
    np.testing.assert_array_equal(part.labels, [2, 0])
    assert examples[:2].labelled(None).labels is None


@pytest.mark.parametrize(
    ("inputs", "labels", "error"),
    [
        (np.zeros(3), None, "shape"),
        (np.zeros((3, 1)), [0, 1], "same length"),
        (np.zeros((1, 1)), [0.5], "whole"),
    ],
)
def test_examples_turn_bad_input_away(inputs, labels, error):
    with pytest.raises(ValueError, match=error):
        Examples(inputs, labels)


# mixtures


def test_a_mixture_draws_its_shares_means_and_covariances():
    factors = np.array([[[[1.0, 0.0], [0.5, 2.0]]], [[[3.0, 0.0], [0.0, 0.1]]]])
    source = GaussianMixtures(
        np.array([[0.3], [0.7]]), np.array([[[0.0, 1.0]], [[5.0, -5.0]]]), factors
    )
    made = source.sample(40_000, rng=0)
    for label, share in enumerate((0.3, 0.7)):
        own = made.inputs[made.labels == label]
        assert len(own) / 40_000 == pytest.approx(share, abs=0.01)
        np.testing.assert_allclose(own.mean(0), source.means[label, 0], atol=0.08)
        want = factors[label, 0] @ factors[label, 0].T
        np.testing.assert_allclose(np.cov(own.T), want, atol=0.15)


@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_a_fit_finds_the_law_again(covariance):
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=6000)
    base = rng.normal(size=(6000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    data = Examples(base + 4 * labels[:, np.newaxis], labels)
    made = fit_gaussian_mixtures(data, rng, components=1, covariance=covariance).sample(
        20_000, rng=rng
    )
    own = made.inputs[made.labels == 1]
    np.testing.assert_allclose(own.mean(0), [4, 4], atol=0.1)
    np.testing.assert_allclose(own.var(0), [1, 1], atol=0.1)
    correlation = np.corrcoef(own.T)[0, 1]
    assert correlation == pytest.approx(0.8 if covariance == "full" else 0.0, abs=0.05)


def test_a_class_without_examples_is_never_drawn():
    data = Examples(np.random.default_rng(0).normal(size=(50, 2)), np.repeat((0, 2), 25))
    made = fit_gaussian_mixtures(data, 0, components=1).sample(500, rng=0)
    assert set(made.labels) == {0, 2}


def test_a_column_that_never_changes_is_no_obstacle():
    inputs = np.column_stack((np.ones(50), np.random.default_rng(0).normal(size=50)))
    made = fit_gaussian_mixtures(Examples(inputs, np.zeros(50)), 0, components=1).sample(9, rng=0)
    np.testing.assert_allclose(made.inputs[:, 0], 1.0, atol=0.1)


def test_equal_seeds_draw_equal_examples():
    data = Examples(np.random.default_rng(0).normal(size=(50, 2)), np.zeros(50))
    one, other = (fit_gaussian_mixtures(data, 3).sample(20, rng=4) for _ in range(2))
    np.testing.assert_array_equal(one.inputs, other.inputs)


@pytest.mark.parametrize(
    ("examples", "ask", "error"),
    [
        (Examples(np.zeros((5, 2))), {}, "labels"),
        (Examples(np.zeros((3, 2)), [0, 0, 1]), {}, "class 0"),
        (Examples(np.zeros((5, 2)), [0] * 5), {"components": 0}, "components"),
        (Examples(np.zeros((5, 2)), [0] * 5), {"covariance": "tied"}, "covariance"),
    ],
)
def test_mixtures_turn_bad_input_away(examples, ask, error):
    with pytest.raises(ValueError, match=error):
        fit_gaussian_mixtures(examples, 0, **ask)


# trees


def information(one, other):
    total = 0.0
    for a, b in itertools.product(np.unique(one), np.unique(other)):
        both = np.mean((one == a) & (other == b))
        if both:
            total += both * np.log(both / np.mean(one == a) / np.mean(other == b))
    return total


def some_table(seed, columns=4, rows=300):
    rng = np.random.default_rng(seed)
    table = rng.integers(3, size=(rows, columns))
    for place in range(1, columns):
        copy = rng.random(rows) < rng.random()
        table[copy, place] = table[copy, rng.integers(place)]
    return table


@pytest.mark.parametrize("seed", range(10))
def test_the_tree_keeps_most_mutual_information_of_all_trees(seed):
    table = some_table(seed)
    tree = fit_chow_liu_tree(Examples(table[:, :-1], table[:, -1]))
    edges = [(a, b) for a, b in enumerate(tree.parents) if b >= 0]
    found = sum(information(table[:, a], table[:, b]) for a, b in edges)
    best = 0.0
    for several in itertools.combinations(itertools.combinations(range(4), 2), 3):
        if len(set(itertools.chain(*several))) == 4:  # three edges that reach all are a tree
            best = max(best, sum(information(table[:, a], table[:, b]) for a, b in several))
    assert found == pytest.approx(best, abs=1e-12)


def test_a_tree_draws_the_law_of_each_pair_that_it_joins():
    table = some_table(0, rows=2000)
    tree = fit_chow_liu_tree(Examples(table[:, :-1], table[:, -1]), smoothing=0.0)
    made = tree.sample(60_000, rng=0)
    drawn = np.column_stack((made.inputs, made.labels)).astype(int)
    for column, above in enumerate(tree.parents):
        if above >= 0:
            for a, b in itertools.product(range(3), repeat=2):
                want = np.mean((table[:, column] == a) & (table[:, above] == b))
                got = np.mean((drawn[:, column] == a) & (drawn[:, above] == b))
                assert got == pytest.approx(want, abs=0.01)


def test_the_root_is_the_label_and_every_column_is_drawn_once():
    table = some_table(1)
    tree = fit_chow_liu_tree(Examples(table[:, :-1], table[:, -1]))
    assert tree.order[0] == 3
    assert sorted(tree.order) == [0, 1, 2, 3]
    assert tree.parents[3] == -1
    seen = set()
    for column in tree.order:
        assert tree.parents[column] in seen | {-1}
        seen.add(column)


def test_numbers_come_from_the_table_and_keep_their_law():
    rng = np.random.default_rng(0)
    column = np.where(rng.random(3000) < 0.5, 0.0, rng.exponential(size=3000))
    tree = fit_chow_liu_tree(Examples(column[:, np.newaxis], column > 1), bins=8)
    made = tree.sample(30_000, rng=0).inputs[:, 0]
    assert np.isin(made, column).all()
    assert np.mean(made == 0.0) == pytest.approx(0.5, abs=0.03)
    for level in (0.6, 0.75, 0.9):
        assert np.quantile(made, level) == pytest.approx(np.quantile(column, level), abs=0.1)


def test_without_smoothing_no_pair_is_made_that_was_not_seen():
    table = np.repeat([[0, 0], [1, 1]], 50, axis=0)
    examples = Examples(table[:, :1], table[:, 1])
    exact, loose = (
        fit_chow_liu_tree(examples, smoothing=extra).sample(2000, rng=0) for extra in (0.0, 5.0)
    )
    assert (exact.inputs[:, 0] == exact.labels).all()
    assert 0.0 < (loose.inputs[:, 0] != loose.labels).mean() < 0.1


@pytest.mark.parametrize(
    ("examples", "ask", "error"),
    [
        (Examples(np.zeros((5, 2))), {}, "labels"),
        (Examples(np.zeros((0, 2)), []), {}, "at least one"),
        (Examples(np.zeros((5, 2)), [0] * 5), {"bins": 1}, "bins"),
        (Examples(np.zeros((5, 2)), [0] * 5), {"smoothing": -1.0}, "smoothing"),
    ],
)
def test_trees_turn_bad_input_away(examples, ask, error):
    with pytest.raises(ValueError, match=error):
        fit_chow_liu_tree(examples, **ask)


@pytest.mark.parametrize("kind", [GaussianMixtures, ChowLiuTree])
def test_at_least_one_example_has_to_be_asked_for(kind):
    data = Examples(np.random.default_rng(0).normal(size=(50, 2)), np.zeros(50))
    fitted = {
        GaussianMixtures: lambda: fit_gaussian_mixtures(data, 0),
        ChowLiuTree: lambda: fit_chow_liu_tree(data),
    }[kind]()
    with pytest.raises(ValueError, match="number"):
        fitted.sample(0, rng=0)


def test_rounded_numbers_are_those_that_real_columns_have():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    whole, prices = rng.integers(10, size=2000) + 5 * y, rng.choice([0.99, 1.49, 9.99], 2000)
    real = Examples(np.column_stack((whole, prices)), y)
    source = fit_gaussian_mixtures(real, 0)
    made = rounded_like(source, real).sample(500, rng=np.random.default_rng(1))
    raw = source.sample(500, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(made.labels, raw.labels)
    for column in range(2):
        seen = np.unique(real.inputs[:, column])
        nearest = seen[np.abs(raw.inputs[:, [column]] - seen).argmin(axis=1)]
        np.testing.assert_allclose(made.inputs[:, column], nearest, rtol=1e-6)
    with pytest.raises(ValueError, match=r"examples\.inputs"):
        rounded_like(source, Examples(np.zeros((2, 2, 2))))


# precision


def priced(kind, rows=2000):
    """Prices with one decimal, as a file has them, and what depends on them."""
    rng = np.random.default_rng(0)
    prices = np.round(rng.gamma(4.0, 2.0, (rows, 3)), 1)
    return Examples(prices.astype(kind), prices[:, 0] > 8)


GENERATORS = {
    "mixtures": lambda real: fit_gaussian_mixtures(real, 0),
    "rounded": lambda real: rounded_like(fit_gaussian_mixtures(real, 0), real),
    "tree": fit_chow_liu_tree,
    "rounded tree": lambda real: rounded_like(fit_chow_liu_tree(real, bins=4), real),
}


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_generated_numbers_have_the_precision_of_real_ones(name, kind):
    real = priced(kind)
    made = GENERATORS[name](real).sample(3000, rng=np.random.default_rng(1))
    assert made.inputs.dtype == kind
    if name != "mixtures":
        for fake, column in zip(made.inputs.T, real.inputs.T, strict=True):
            assert np.isin(fake, column).all()
            assert np.isin(fake, np.round(np.arange(0, 60, 0.1), 1).astype(kind)).all()


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int32])
def test_whole_numbers_stay_what_they_are(kind):
    real = Examples((10 * priced(float).inputs).clip(0, 250).astype(kind), np.zeros(2000, int))
    for name, dtype in {"mixtures": float, "rounded": kind, "tree": kind}.items():
        made = GENERATORS[name](real).sample(500, rng=np.random.default_rng(1)).inputs
        assert made.dtype == dtype
        assert name == "mixtures" or all(map(np.all, map(np.isin, made.T, real.inputs.T)))


def test_what_is_rounded_looks_like_the_examples_and_not_like_its_source():
    real = priced(np.float64)
    source = fit_gaussian_mixtures(priced(np.float32), 0)
    made = rounded_like(source, real).sample(500, rng=np.random.default_rng(1))
    assert made.inputs.dtype == np.float64
    assert np.isin(made.inputs, real.inputs).all()
