"""What a propensity model is told, and what a refusal does to a bound."""

import re

import numpy as np
import pytest
from scipy.special import expit

from auditkit import reject_propensity, zero_run
from auditkit.bounds.propensity import diagnose_propensity, gated


def test_the_gate_withdraws_the_claim_and_nothing_else():
    rng = np.random.default_rng(0)
    odds = np.where(rng.random(4000) < 0.5, 1.5, -1.5)
    members = rng.random(4000) < expit(odds)
    guesses = np.where(odds > 0, 1, -1)
    for believed, claim in ((odds, "lower bound"), (0.3 * odds, "estimate")):
        bound = zero_run(guesses, members, expit(believed), rng=0)
        test = reject_propensity(guesses, members, expit(believed), rng=0)
        result = gated(bound, test)
        assert bound.claim == "lower bound"
        assert result.claim == claim
        assert result.epsilon == bound.epsilon
        assert result.details["rejection_p_value"] == test.p_value
        assert len(result.assumptions) == len(bound.assumptions) + 1


HALF, S, ALL = np.full(10, 0.5), np.arange(10) % 2 == 0, np.full(10, True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diagnose_propensity(2 * HALF, S, S, ALL), "propensity must lie strictly"),
        (lambda: diagnose_propensity(HALF, ALL, S, ALL), "members must hold members and others"),
        (lambda: diagnose_propensity(HALF, S, S, ALL[:4]), "tested has 4"),
        (lambda: diagnose_propensity(HALF, S, S, S), "guesses has 10, members has 5"),
        (lambda: diagnose_propensity(HALF, S, S, ALL, bins=0), "bins must"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_the_gate_takes_bounds_and_tests_only():
    test = reject_propensity([1, -1], [True, False], [0.5, 0.5], rng=0)
    with pytest.raises(TypeError, match=r"^bound must be a Bound"):
        gated(1.0, test)
    with pytest.raises(TypeError, match=r"^test must be a PropensityTest"):
        gated(zero_run([1], [True], [0.5], rng=0), True)
