"""Simultaneous intervals against published ones, and against new counts."""

import numpy as np
import pytest

from auditkit.bounds.multinomial_intervals import goodman, sison_glaz


def test_goodman_gives_his_intervals():
    low, high = goodman(np.array([56, 72, 73, 59, 62, 87, 58]), 0.05)
    # Sison and Glaz (1995), Table 5, for the same counts
    assert low.round(3)[:3].tolist() == pytest.approx([0.085, 0.115, 0.117], abs=2e-3)
    assert high.round(3)[:3].tolist() == pytest.approx([0.166, 0.204, 0.206], abs=2e-3)


def test_sison_and_glaz_reach_as_far_as_new_counts_do():
    seen = np.array([56, 72, 73, 59, 62, 87, 58])
    again = np.random.default_rng(0).multinomial(seen.sum(), seen / seen.sum(), size=200_000)
    furthest = np.abs(again - seen).max(axis=1)
    for level in (0.5, 0.2, 0.05, 0.01):
        low, high = sison_glaz(seen, level)
        reach = int(np.quantile(furthest, 1.0 - level))
        assert (low * seen.sum()).round(6).tolist() == pytest.approx(seen - reach + 1, abs=1.0)
    # one width for all, and more room above than below
    assert np.ptp(high - low) == pytest.approx(0.0, abs=1e-12)
    assert (high - seen / seen.sum() >= seen / seen.sum() - low - 1e-12).all()


def test_sison_and_glaz_keep_their_level_where_counts_are_large():
    rng = np.random.default_rng(0)
    for law_ in ([0.5, 0.3, 0.2], [0.7, 0.25, 0.04, 0.01]):
        inside = []
        for counts in rng.multinomial(5000, law_, size=400):
            low, high = sison_glaz(counts, 0.05)
            inside.append(((low <= law_) & (law_ <= high)).all())
        assert np.mean(inside) > 0.92


def test_intervals_of_sison_and_glaz_may_come_from_few_counts():
    for counts in ([1, 0], [10, 0, 0], [3, 1], [10**8, 2 * 10**8]):
        low, high = sison_glaz(np.array(counts), 0.05)
        shares = np.array(counts) / sum(counts)
        assert ((low >= 0.0) & (low <= shares) & (shares <= high) & (high <= 1.0)).all()
