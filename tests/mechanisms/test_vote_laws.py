"""Vote laws: contour, polynomials and enumeration against each other."""

import numpy as np
import pytest
from scipy.stats import multinomial

from auditkit.mechanisms import vote_laws
from auditkit.mechanisms.voting import noisy_argmax_probabilities, vote_table


def by_contour(monkeypatch, *given):
    monkeypatch.setattr(vote_laws, "UNRESOLVED", -1.0)  # however few its digits are
    return vote_table(*given)


def by_polynomials(teachers, p, sigma):
    return vote_laws.polynomial_table(teachers - 1, np.asarray(p), sigma)


@pytest.mark.parametrize("sigma", [0.7, 1.0, 1.9, 2.0, 5.0, 40.0])
@pytest.mark.parametrize("teachers", [1, 2, 25, 120])
def test_the_contour_agrees_with_multiplied_polynomials(teachers, sigma, monkeypatch):
    rng = np.random.default_rng(teachers)
    for classes in (2, 3, 4):
        given = teachers, rng.dirichlet(np.full(classes, 0.5)), sigma
        exact = by_polynomials(*given)
        assert by_contour(monkeypatch, *given) == pytest.approx(exact, abs=2e-14)


def test_the_contour_is_not_cut_short_where_the_lattice_resonates(monkeypatch):
    given = 120, [0.51328525, 0.06123481, 0.42547994], 0.7
    exact = by_polynomials(*given)
    assert by_contour(monkeypatch, *given) == pytest.approx(exact, abs=1e-14)


def test_ten_classes_and_250_teachers_agree_with_multiplied_polynomials(monkeypatch):
    given = 250, np.random.default_rng(1).dirichlet(np.full(10, 0.5)), 40.0
    exact = by_polynomials(*given)
    contour = by_contour(monkeypatch, *given)
    assert contour == pytest.approx(exact, abs=1e-14)
    assert contour.sum(axis=1) == pytest.approx(np.ones(10), abs=1e-13)


def test_faint_labels_keep_their_relative_accuracy():
    p = np.array([0.999, 0.0005, 0.0005])
    table = vote_table(40, p, 1.5)
    histograms = np.array([(39 - i - j, i, j) for i in range(40) for j in range(40 - i)])
    weights = multinomial.pmf(histograms, 39, p)
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
    assert by_polynomials(30, p, 1.0) == pytest.approx(whole, abs=1e-14)
