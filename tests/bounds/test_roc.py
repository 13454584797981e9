"""Areas and rates of an attack: what they are, and how often their intervals are right."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom, norm
from sklearn import metrics

from auditkit.bounds.clopper_pearson import limits
from auditkit.bounds.roc import auc, roc, tpr_at_fpr
from auditkit.evidence import Scores


def drawn(rng, own, others, shift, step=0.0):
    """Gaussian scores of members and others; with a step they are rounded, and tie."""
    members = np.arange(own + others) < own
    scores = rng.normal(shift * members)
    return (np.round(scores / step) * step if step else scores), members


@pytest.mark.parametrize("step", [0.0, 0.7])
def test_the_curve_and_the_area_are_those_of_scikit_learn(step):
    scores, members = drawn(np.random.default_rng(0), 40, 70, 1.0, step)
    fpr, tpr, cuts = roc(scores, members)
    for found, known in zip(
        (fpr, tpr, cuts),
        metrics.roc_curve(members, scores, drop_intermediate=False),
        strict=True,
    ):
        np.testing.assert_allclose(found, known)
    area = auc(scores, members).value
    assert area == pytest.approx(metrics.roc_auc_score(members, scores))
    assert area == pytest.approx(Scores(scores, members).area())


def test_the_variance_of_the_area_is_delongs():
    """Of eight scores, by the definition over pairs."""
    own, others = np.array([3.0, 1.0, 4.0, 1.5]), np.array([1.0, 0.5, 2.0, 0.0])
    wins = (own[:, None] > others) + 0.5 * (own[:, None] == others)
    variance = wins.mean(1).var(ddof=1) / 4 + wins.mean(0).var(ddof=1) / 4
    area = wins.mean()
    pairs = area * (1 - area) / variance
    assert 4 < pairs < 8
    found = auc(np.append(own, others), [1] * 4 + [0] * 4, confidence=0.9)
    assert (found.low, found.high) == pytest.approx(
        (
            beta.ppf(0.05, area * pairs, pairs - area * pairs + 1),
            beta.isf(0.05, area * pairs + 1, pairs - area * pairs),
        )
    )


def test_without_an_error_the_area_is_known_as_well_as_so_many_pairs_tell():
    """P(no error) is at most that of as many disjoint pairs as the smaller kind has examples."""
    found = auc(np.arange(50.0), np.arange(50) >= 30)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.025 ** (1 / 20))
    assert auc(np.zeros(50), np.arange(50) >= 30).value == 0.5


def misses(interval, truth, draw, repetitions, seed=0):
    """How often the truth lies below, and above, an interval."""
    rng = np.random.default_rng(seed)
    found = [interval(*draw(rng)) for _ in range(repetitions)]
    below = np.mean([truth < one.low for one in found])
    return below, np.mean([truth > one.high for one in found])


@pytest.mark.parametrize("area", [0.5, 0.75, 0.95, 0.999])
@pytest.mark.parametrize(("own", "others"), [(30, 30), (20, 400), (400, 20)])
def test_an_interval_of_the_area_is_as_often_right_as_it_says(area, own, others):
    shift = np.sqrt(2.0) * norm.ppf(area)
    sides = misses(auc, area, lambda rng: drawn(rng, own, others, shift), 400)
    # of 400 at 2.5%: 21 or more with probability 0.001, on either side
    assert max(sides) <= 20 / 400


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0.01, 0.002])
@pytest.mark.parametrize(("own", "others"), [(20, 20), (50, 950), (950, 50), (1000, 1000)])
def test_a_few_outliers_deceive_no_interval_of_the_area(lost, own, others):
    """Intervals of A ± z √V miss here in 13 to 96% of attacks: most often no outlier is seen."""

    def draw(rng):
        scores, members = drawn(rng, own, others, 9.0)
        return np.where(members & (rng.random(own + others) < lost), -9.0, scores), members

    truth = (1.0 - lost) * norm.cdf(9.0 / np.sqrt(2.0))
    assert max(misses(auc, truth, draw, 2000)) <= 0.036  # a level of 2.5% and three deviations


@pytest.mark.slow
@pytest.mark.parametrize("step", [1.0, 3.0])
def test_ties_deceive_no_interval_of_the_area(step):
    scores, members = drawn(np.random.default_rng(9), 10**6, 10**6, 2.0, step)
    truth = Scores(scores, members).area()
    assert max(misses(auc, truth, lambda rng: drawn(rng, 300, 100, 2.0, step), 2000)) <= 0.036


def test_the_rate_is_the_largest_at_cuts_that_keep_to_the_false_positive_rate():
    rng = np.random.default_rng(1)
    for step in (0.0, 0.5):
        scores, members = drawn(rng, 150, 100, 1.5, step)
        fpr, tpr, _ = roc(scores, members)
        for allowed in (0.001, 0.01, 0.07, 0.29, 0.999):  # 0.29 · 100 is below 29 in floats
            found = tpr_at_fpr(scores, members, allowed)
            assert found.value == tpr[fpr <= allowed].max()
            assert found.low <= found.value <= found.high


def test_the_ends_are_limits_at_the_cuts_between_which_the_right_one_lies():
    scores, members = drawn(np.random.default_rng(2), 300, 400, 1.0)
    found = tpr_at_fpr(scores, members, 0.02, confidence=0.9)
    others = np.sort(scores[~members])[::-1]
    few = max(k for k in range(400) if binom.cdf(k, 400, 0.02) <= 0.025)
    many = min(k for k in range(400) if binom.sf(k, 400, 0.02) <= 0.025)
    low, high = ((scores[members] > others[k]).sum() for k in (few, many))
    assert found.low == limits(low, 300, 0.025)[0]
    assert found.high == limits(high, 300, 0.025)[1]


def test_too_few_others_show_no_cut_that_keeps_to_the_rate():
    """437 others all lie below a cut of rate 0.01 with chance .0124, a quarter of 5% at most."""
    for others, known in ((436, False), (437, True)):
        scores, members = drawn(np.random.default_rng(0), 200, others, 5.0)
        assert (tpr_at_fpr(scores, members, 0.01).low > 0.0) == known
    assert tpr_at_fpr([1.0, 0.0], [1, 0], 0.5).high == 1.0


@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("allowed", [0.01, 0.1])
def test_an_interval_of_the_rate_is_right_more_often_than_it_says(shift, allowed):
    truth = norm.sf(norm.isf(allowed) - shift)

    def interval(scores, members):
        return tpr_at_fpr(scores, members, allowed)

    assert sum(misses(interval, truth, lambda rng: drawn(rng, 500, 500, shift), 500)) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("others", [500, 5000])
def test_a_steep_curve_deceives_no_interval_of_the_rate_and_does_one_at_the_cut_alone(others):
    """All members within a fifth of a standard deviation of where the cut should be."""
    truth = norm.sf(norm.isf(0.01), 2.4, 0.1)
    alone = []

    def draw(rng):
        members = np.arange(500 + others) < 500
        return np.where(members, 2.4, 0.0) + np.where(members, 0.1, 1.0) * rng.normal(
            size=500 + others
        ), members

    def interval(scores, members):
        found = tpr_at_fpr(scores, members, 0.01)
        low, high = limits(found.value * 500, 500, 0.025)
        alone.append(low <= truth <= high)
        return found

    assert sum(misses(interval, truth, draw, 1000)) <= 0.03
    assert np.mean(alone) < 0.5


def test_scores_that_tie_may_have_no_cut_of_the_rate():
    """Others score 1 with chance .02: above 1 there is nothing, and the rate there is 0."""

    def draw(rng):
        members = rng.random(3000) < 0.5
        return (rng.random(3000) < np.where(members, 0.5, 0.02)).astype(float), members

    for allowed, truth in ((0.01, 0.0), (0.03, 0.5)):
        below, above = misses(lambda s, m, a=allowed: tpr_at_fpr(s, m, a), truth, draw, 300)
        assert below + above <= 0.03


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: roc([0.1, 0.2], [1, 1]), r"^members must hold 1 or more of each kind, got 2 memb"),
        (lambda: auc([0.1, 0.2, 0.3], [1, 0, 0]), "^members must hold 2 or more of each kind, got"),
        (lambda: auc([np.nan, 0.2], [1, 0]), "^scores must hold finite numbers"),
        (lambda: auc([0.1] * 4, [1, 0, 1, 0], confidence=95), "^confidence must lie strictly"),
        (lambda: tpr_at_fpr([0.1, 0.2], [1, 0], 0.0), "^fpr must lie strictly between 0 and 1"),
        (lambda: tpr_at_fpr([0.1], [1, 0], 0.1), "same length"),
        (
            lambda: auc(pd.Series([0.1, 0.2, 0.3]), pd.Series([1, 0, 1], index=[2, 1, 0])),
            "must have the same index",
        ),
    ],
)
def test_what_has_no_curve_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
