"""Propensity models: the fits are scikit-learn's, and what is wrong with them can be found out."""

import re
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from auditkit.attacks import logistic
from auditkit.attacks.logistic import calibrate, fit_columns
from auditkit.attacks.propensity import (
    conservative_propensity,
    cross_fit,
    fit_propensity,
    propensity_bootstrap,
    rival_guesses,
)
from auditkit.bounds.propensity import diagnose_propensity


def sample(seed=0, examples=3000, features=5, steep=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(examples, features)) * np.arange(1, features + 1) + 3.0
    odds = steep * ((x[:, 0] - 3.0) + 0.25 * (x[:, 1] - 3.0))
    return x, rng.random(examples) < expit(odds), odds


def rows(x):
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.column_stack((scaled, np.ones(len(x)))).astype(np.float32)


# the fits


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("whitened", [True, False])
def test_every_column_is_a_weighted_regression_of_scikit_learn(penalty, whitened, monkeypatch):
    if not whitened:  # as for many features and few columns
        monkeypatch.setattr(logistic, "NARROW", 0)
    columns = 1 if not whitened else 4
    x, members, _ = sample(features=30)
    table = rows(x)
    counts = np.random.default_rng(1).multinomial(len(x), np.full(len(x), 1 / len(x)), columns).T
    found = fit_columns(table, members, counts.astype(float), penalty)
    for column in range(columns):
        peer = LogisticRegression(C=1.0 / penalty, tol=1e-8, max_iter=1000).fit(
            table[:, :-1], members, sample_weight=counts[:, column]
        )
        np.testing.assert_allclose(found[:-1, column], peer.coef_[0], atol=3e-4)
        assert found[-1, column] == pytest.approx(peer.intercept_[0], abs=3e-4)


def test_a_plain_install_fits_propensities():
    program = (
        "import sys, numpy as np\n"
        "from auditkit.attacks.propensity import cross_fit, propensity_bootstrap\n"
        "x, own = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 2 == 0\n"
        "cross_fit(x, own, rng=0), propensity_bootstrap(x, own, x, bootstraps=2, rng=0)\n"
        "print(sorted({'torch', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout == "[]\n"


def test_features_that_repeat_each_other_and_separate_members_converge():
    rng = np.random.default_rng(0)
    members = rng.random(500) < 0.5
    x = np.column_stack([members + 0.01 * rng.normal(size=500)] * 3 + [np.zeros(500)])
    chances = fit_propensity(x, members, rng=0).propensity(x)
    assert ((chances > 0.5) == members).all()
    assert ((chances > 0.0) & (chances < 1.0)).all()


def test_a_fit_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr(logistic, "MOST", 2)
    x, members, _ = sample()
    with pytest.raises(ArithmeticError, match=r"^6 of 6 logistic regressions have not converged"):
        fit_propensity(x, members, rng=0)


def test_the_calibration_is_platts():
    x, members, odds = sample()
    scores = 3.0 * odds + 1.0
    peer = LogisticRegression().fit(x, members)
    frozen = CalibratedClassifierCV(FrozenEstimator(peer)).fit(x, members)
    line = frozen.calibrated_classifiers_[0].calibrators[0]
    slope, offset = calibrate(peer.decision_function(x), members)
    assert (-slope, -offset) == pytest.approx((line.a_, line.b_), abs=2e-3)
    slope, offset = calibrate(scores, members)
    assert slope == pytest.approx(1 / 3, abs=0.03)
    assert offset == pytest.approx(-1 / 3, abs=0.1)


def test_scores_that_say_all_are_calibrated_to_something_finite():
    members = np.repeat([True, False], 50)
    slope, offset = calibrate(np.where(members, 1.0, -1.0), members)
    assert expit(slope + offset) == pytest.approx(51 / 52, abs=1e-4)


def test_the_model_finds_the_truth_of_fresh_examples():
    x, members, _ = sample(examples=20_000)
    fresh, _, odds = sample(seed=1)
    model = fit_propensity(x, members, rng=0)
    assert np.abs(model.log_odds(fresh) - odds).max() < 0.35
    np.testing.assert_allclose(model.propensity(fresh), expit(model.log_odds(fresh)))


def test_cross_fitting_never_scores_an_example_by_its_own_membership():
    x, members, _ = sample(examples=400)
    other = members.copy()
    other[7] = not other[7]
    change = cross_fit(x, members, rng=0) != cross_fit(x, other, rng=0)
    assert not change[7]
    assert change.sum() == 200


def test_bootstraps_spread_as_the_estimate_does_and_somewhat_more():
    x, members, _ = sample(examples=4000)
    place = [[4.0, 3.0, 3.0, 3.0, 3.0]]
    sets = propensity_bootstrap(x, members, place, bootstraps=300, rng=0)[:, 0]
    assert sets.shape == (300,)
    fits = [fit_propensity(*sample(seed, 4000)[:2], rng=0).log_odds(place)[0] for seed in range(60)]
    # a third of the examples calibrates each of them, and all do in the fit
    assert 0.8 * np.std(fits) < logit(sets).std() < 2.5 * np.std(fits)
    assert logit(sets).mean() == pytest.approx(np.mean(fits), abs=0.15)


def test_more_resamples_than_fit_at_once_are_all_there(monkeypatch):
    monkeypatch.setattr("auditkit.attacks.propensity.AT_ONCE", 3)
    x, members, _ = sample(examples=300)
    sets = propensity_bootstrap(x, members, x[:2], bootstraps=7, rng=0)
    assert sets.shape == (7, 2)
    assert len(np.unique(sets[:, 0])) == 7


# limits


def test_simultaneous_limits_cover_all_examples_at_once_and_pointwise_ones_do_not():
    misses = {False: 0, True: 0}
    for seed in range(30):
        x, members, _ = sample(seed, 2000, 20)
        fresh, _, odds = sample(seed + 1000, 1000, 20)
        for simultaneous in misses:
            limit = conservative_propensity(
                x, members, fresh, confidence=0.9, simultaneous=simultaneous
            )
            misses[simultaneous] += (np.abs(logit(limit)) < np.abs(odds)).any()
    assert misses[True] <= binom.isf(1e-4, 30, 0.1)
    assert misses[False] > 20


def test_a_pointwise_limit_covers_an_example_as_often_as_it_says():
    covered = 0
    for seed in range(40):
        x, members, _ = sample(seed, 2000)
        limit = conservative_propensity(
            x, members, [[4.0, 3.0, 3.0, 3.0, 3.0]], confidence=0.9, simultaneous=False
        )
        covered += logit(limit[0]) >= 1.0
    assert covered >= 32


# diagnostics


def diagnosed(features, members, propensity, *, rng):
    rival = rival_guesses(features, members, propensity, rng=rng)
    return diagnose_propensity(propensity, members, *rival, rng=rng)


def test_a_right_model_is_calibrated_and_stands():
    x, members, odds = sample(examples=10_000)
    report = diagnosed(x, members, expit(odds), rng=0)
    assert not report.test.rejected
    assert sum(part.low <= part.said <= part.high for part in report.calibration) >= 7
    assert sum(part.examples for part in report.calibration) == 10_000
    assert report.kept == pytest.approx(np.exp(-np.abs(odds)).mean())
    assert report.largest_shift == pytest.approx(np.abs(odds).max())
    wins = odds[members][:200, None] > odds[~members][None, :200]
    assert report.auc == pytest.approx(wins.mean(), abs=0.05)


@pytest.mark.parametrize("wrong", ["half", "constant", "a product missed"])
def test_a_wrong_model_is_rejected_by_the_rival(wrong):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 4))
    odds = x[:, 0] + (x[:, 1] * x[:, 2] if wrong == "a product missed" else 0.0)
    members = rng.random(6000) < expit(odds)
    believed = {"half": 0.5 * odds, "constant": 0.0 * odds, "a product missed": x[:, 0]}[wrong]
    report = diagnosed(x, members, expit(believed), rng=0)
    assert report.test.rejected
    assert report.test.p_value < 1e-3


def test_a_right_model_is_rejected_as_rarely_as_promised():
    rejected = 0
    for seed in range(12):
        x, members, odds = sample(seed, 1500, 3)
        rejected += diagnosed(x, members, expit(odds), rng=seed).test.rejected
    assert rejected <= binom.isf(1e-4, 12, 0.05)


# the border

X, S = np.arange(20.0).reshape(10, 2), np.arange(10) % 2 == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_propensity(X[:, 0], S, rng=0), "features must have 2 dimension(s)"),
        (lambda: fit_propensity(X[:4], S, rng=0), "same length: features has 4, members has 10"),
        (lambda: fit_propensity(X, np.ones(10), rng=0), "members must hold members and others"),
        (lambda: fit_propensity(X * np.nan, S, rng=0), "features must hold finite numbers"),
        (lambda: fit_propensity(X, S, penalty=0.0, rng=0), "penalty must"),
        (lambda: fit_propensity(X, S, rng=0).propensity(X[:, :1]), "features must have 2 columns"),
        (lambda: propensity_bootstrap(X, S, X[:, :1], rng=0), "audited must have 2 columns"),
        (lambda: propensity_bootstrap(X, S, X, bootstraps=0, rng=0), "bootstraps must"),
        (lambda: conservative_propensity(X, S, X, confidence=1.0), "confidence must"),
        (lambda: rival_guesses(X, S, np.ones(10), rng=0), "propensity must lie strictly"),
        (lambda: cross_fit(X[:0], S[:0], rng=0), "features must not be empty"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_resamples_are_drawn_by_a_name_of_the_room():
    from auditkit import attacks

    assert attacks.propensity_bootstrap is propensity_bootstrap


def test_a_seed_that_drew_the_members_does_not_deal_the_halves():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(400, 2))
    members = np.random.default_rng(0).permutation(400) < 200
    report = diagnosed(features, members, np.full(400, 0.5), rng=0)
    assert not report.test.rejected
    assert cross_fit(features, members, rng=0).std() > 0.0  # a half of one kind cannot be fitted
