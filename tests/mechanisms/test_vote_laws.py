"""Vote laws: contour, polynomials and enumeration against each other, and their kernels."""

import numpy as np
import pytest

from auditkit.mechanisms import differing_voters, vote_laws
from auditkit.mechanisms.voting import noisy_argmax_probabilities, vote_table


def contour_only(voters, p, sigma, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(vote_laws, "UNRESOLVED", -1.0)
        return vote_laws._multinomial_tables(voters, np.array([p]), sigma)[0]


def polynomial_only(voters, p, sigma):
    nodes, step = vote_laws._grid(voters, len(p), sigma)
    return vote_laws._polynomial_table(voters, np.asarray(p), nodes, step, sigma)


@pytest.mark.parametrize("sigma", [0.7, 1.0, 1.9, 2.0, 5.0, 40.0])
@pytest.mark.parametrize("voters", [0, 1, 24, 119])
def test_the_contour_agrees_with_multiplied_polynomials(voters, sigma, monkeypatch):
    rng = np.random.default_rng(voters)
    for classes in (2, 3, 4):
        p = rng.dirichlet(np.full(classes, 0.5))
        exact = polynomial_only(voters, p, sigma)
        assert contour_only(voters, p, sigma, monkeypatch) == pytest.approx(exact, abs=2e-14)


def test_the_contour_is_not_cut_short_where_the_lattice_resonates(monkeypatch):
    p, voters = [0.51328525, 0.06123481, 0.42547994], 119
    exact = polynomial_only(voters, p, 0.7)
    assert contour_only(voters, p, 0.7, monkeypatch) == pytest.approx(exact, abs=1e-14)


def test_ten_classes_and_250_teachers_agree_with_multiplied_polynomials(monkeypatch):
    p = np.random.default_rng(1).dirichlet(np.full(10, 0.5))
    exact = polynomial_only(249, p, 40.0)
    contour = contour_only(249, p, 40.0, monkeypatch)
    assert contour == pytest.approx(exact, abs=1e-14)
    assert contour.sum(axis=1) == pytest.approx(np.ones(10), abs=1e-13)


def test_faint_labels_keep_their_relative_accuracy():
    p = np.array([0.999, 0.0005, 0.0005])
    table = vote_table(40, p, 1.5)
    histograms, weights = differing_voters._histogram_law(np.tile(p, (39, 1)))
    slow = np.array(
        [weights @ noisy_argmax_probabilities(histograms + vote, 1.5) for vote in np.eye(3)]
    )
    assert table.min() < 1e-11
    assert table == pytest.approx(slow, rel=1e-9)


def test_many_nodes_are_worked_on_in_blocks(monkeypatch):
    p = [0.6, 0.4]
    whole = vote_table(30, p, 1.0)
    monkeypatch.setattr(vote_laws, "NODES", 50)
    assert vote_table(30, p, 1.0) == pytest.approx(whole, abs=1e-14)
    assert polynomial_only(29, p, 1.0) == pytest.approx(whole, abs=1e-14)


def test_kernels_do_the_same_when_they_are_not_compiled():
    weights, compiled = np.empty((2, 30)), np.empty((2, 30))
    spans = np.array(
        [vote_laws._poisson_weights.py_func(m, 1e-21, weights[i]) for i, m in enumerate([1.2, 0.8])]
    )
    for i, m in enumerate([1.2, 0.8]):
        vote_laws._poisson_weights(m, 1e-21, compiled[i])
    assert weights == pytest.approx(compiled, rel=1e-14)

    angles = np.outer(2 * np.pi / 28 * np.arange(15), np.arange(31))
    turns = np.cos(angles), np.sin(angles)
    total = vote_laws._total_weight.py_func(weights, spans, *turns, 2)
    assert total == pytest.approx(vote_laws._total_weight(weights, spans, *turns, 2), rel=1e-12)
    below, density = vote_laws._smoothed(np.linspace(0.0, 3.0, 4), np.arange(31), 1.0)
    sums = np.empty((2, 2, 8, 4))
    args = (weights, spans, below, density, turns[0][1], turns[1][1])
    vote_laws._class_sums.py_func(sums[0], *args)
    vote_laws._class_sums(sums[1], *args)
    assert sums[0] == pytest.approx(sums[1], abs=1e-14)
    sums[:, 0, :2, 0] = 0.0  # as far below all counts
    tables = np.zeros((2, 2, 2))
    vote_laws._add_products.py_func(tables[0], sums[0], 1 + 1j)
    vote_laws._add_products(tables[1], sums[1], 1 + 1j)
    assert tables[0] == pytest.approx(tables[1], abs=1e-13)
    tables[:] = 0.0
    turn = (weights, spans, below, density, *turns, 2, 1, 1.0)
    vote_laws._add_turn.py_func(tables[0], *turn)
    vote_laws._add_turn(tables[1], *turn)
    assert tables[0] == pytest.approx(tables[1], abs=1e-13)
    tables[:] = 0.0
    query = (np.array([[0.6, 0.4]]), 2, below, density, *turns, True)
    vote_laws._add_contour.py_func(tables[:1], *query)
    vote_laws._add_contour(tables[1:], *query)
    assert tables[0] == pytest.approx(tables[1], abs=1e-13)


def test_polynomials_multiply_the_same_when_they_are_not_compiled():
    p = np.array([0.6, 0.4])
    weights = np.empty((2, 4))
    spans = np.array([vote_laws._poisson_weights(3 * p[i], 1e-300, weights[i]) for i in range(2)])
    below, density = (g.T.copy() for g in vote_laws._smoothed(np.arange(3.0), np.arange(5), 1.0))
    compiled = vote_laws._multiply(weights, spans, below, density)
    assert vote_laws._multiply.py_func(weights, spans, below, density) == pytest.approx(compiled)
    part = np.zeros((2, 2))
    vote_laws._multiply_at.py_func(part, weights, spans, below[1], density[1])
    assert part == pytest.approx(compiled[1])
    product = np.empty(4)
    vote_laws._times.py_func(weights[0], weights[1], below[1], spans[1], product)
    assert product == pytest.approx(np.convolve(weights[0], weights[1] * below[1, :4])[:4])
