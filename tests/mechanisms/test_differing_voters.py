"""Voters that differ: their histograms, drawn."""

import numpy as np

from auditkit.mechanisms import differing_voters


def test_drawn_histograms_count_certain_teachers():
    rows = np.vstack([np.tile([1.0, 0.0], (5, 1)), np.tile([0.5, 0.5], (5, 1))])
    drawn = differing_voters._draw_histograms(rows, np.random.default_rng(0).random((50, 10)))
    assert (drawn.sum(axis=1) == 10).all()
    assert (drawn[:, 0] >= 5).all()
