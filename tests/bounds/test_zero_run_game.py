"""The strategies for guesses keep their word in zero runs, where members and others may differ."""

import numpy as np
import pytest
from scipy.special import expit

from auditkit import Bonferroni, Fixed, MultiSplit, Split, Sweep, one_run_fdp, zero_run
from auditkit.bounds.scores import audit
from auditkit.bounds.zero_run_game import ShiftedScores, ZeroRunGame


def shifted(rows=2000, leak=0.0, seed=0):
    """Return scores of a leak on top of what the examples themselves betray."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=rows)
    members = rng.random(rows) < expit(odds)
    evidence = odds + rng.normal(np.where(members, leak, -leak))
    return ShiftedScores(evidence, members, expit(odds), evidence)


def bound_of(scores, rule, rng=0):
    return audit(ZeroRunGame(1e-5, rng), scores, rule, 0.95)


RULES = [Fixed(guesses=0.1), Fixed(0.0), Bonferroni(5), Split(0.5), MultiSplit(3)]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_shift_alone_proves_nothing(rule):
    above = sum(bound_of(shifted(400, seed=seed), rule).epsilon > 0.0 for seed in range(40))
    assert above <= 6  # of 40 at a level of 5%: more with probability 0.003


@pytest.mark.parametrize("rule", [*RULES, Sweep()], ids=repr)
def test_the_order_of_the_rows_does_not_matter_and_the_counts_prove_the_bound(rule):
    scores = shifted(leak=2.0)
    bound = bound_of(scores, rule)
    other = bound_of(scores.take(np.random.default_rng(1).permutation(len(scores))), rule)
    assert other.epsilon == bound.epsilon
    assert bound.epsilon > 0.0 or rule == Fixed(0.0)  # on all examples the shift takes too much
    assert bound.claim == ("estimate" if isinstance(rule, Sweep) else "lower bound")
    counts = bound.details
    assert counts["kept"] <= counts["kept_at_most"] <= counts["guesses"]
    assert counts["kept"] <= counts["correct"]
    if isinstance(rule, Fixed):
        proved = one_run_fdp(counts["kept"], counts["guesses"], counts["examples"])
        assert proved.epsilon == bound.epsilon


def test_a_cut_guesses_on_all_examples_by_their_scores():
    scores = shifted(leak=2.0)
    guesses = np.where(scores.values >= 0.5, 1, -1)
    alone = zero_run(guesses, scores.members, scores.propensity, rng=0)
    assert bound_of(scores, Fixed(0.5)).epsilon == alone.epsilon


def test_rules_at_their_share_of_the_level_are_those_of_zero_run():
    scores = shifted(leak=2.0)
    candidates = ZeroRunGame(1e-5).preset(scores, 4)
    alone = candidates.bound(0.9875)
    assert bound_of(scores, Bonferroni(4)).epsilon == alone.epsilon.max()
    assert candidates.settings.tolist() == pytest.approx(np.geomspace(1.0, 0.01, 4))
    assert len(ZeroRunGame(1e-5).preset(shifted(10), 4).settings) < 4  # no rule stands twice


def test_propensities_out_of_range_or_of_another_length_are_refused():
    with pytest.raises(ValueError, match="propensity must lie strictly between 0 and 1, got 1"):
        ShiftedScores([1.0, 2.0], [0, 1], [0.5, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="same length"):
        ShiftedScores([1.0, 2.0], [0, 1], [0.5, 0.5], [1.0])
