"""Label privacy: every ε is proved by enumeration, or by the ratio of densities."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import kstest, laplace

from auditkit.bounds.observational import observational_label
from auditkit.bounds.tradeoff import GaussianDP
from auditkit.mechanisms.label_dp import (
    Alibi,
    LabelPate,
    RandomizedResponse,
    RandomizedResponseWithPrior,
    lp_mst,
)
from auditkit.mechanisms.voting import noisy_argmax_probabilities

QUICK = settings(max_examples=60, deadline=None)
EPSILONS = st.floats(1e-3, 30.0)


@st.composite
def priors(draw, most=6):
    """Draw probabilities with many ties and zeros."""
    weights = draw(st.lists(st.integers(0, 4), min_size=2, max_size=most).filter(any))
    return np.array(weights) / sum(weights)


def largest_ratio(law):
    """The ε of a finite mechanism, a row an input; 0/0 is no leak and x/0 an infinite one."""
    logs = np.log(law, out=np.full(law.shape, -np.inf), where=law > 0)
    return max(
        logs[a, o] - logs[b, o]
        for a, b in itertools.permutations(range(len(law)), 2)
        for o in range(law.shape[1])
        if law[a, o] > 0
    )


def assert_drawn_from(counts, law, z=5.0):
    draws = counts.sum()
    assert (counts[law == 0.0] == 0).all()
    assert (np.abs(counts - draws * law) <= z * np.sqrt(draws * law * (1.0 - law)) + 1e-9).all()


# --- randomised response -------------------------------------------------------------------------


@QUICK
@given(EPSILONS, st.integers(2, 12))
def test_randomised_response_has_exactly_its_epsilon(epsilon, classes):
    law = RandomizedResponse(epsilon, classes).law
    assert np.allclose(law.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
    assert largest_ratio(law) == pytest.approx(epsilon, abs=1e-9)


def test_labels_are_released_by_the_law():
    response, rng = RandomizedResponse(1.3, 4), np.random.default_rng(0)
    for label, law in enumerate(response.law):
        noisy = response.privatize(np.full(100_000, label), rng=rng)
        assert_drawn_from(np.bincount(noisy, minlength=4), law)


@pytest.mark.parametrize("epsilon", [math.inf, 1e6])
def test_without_noise_labels_stay(epsilon):
    labels = np.random.default_rng(0).integers(5, size=1000)
    response = RandomizedResponse(epsilon, 5)
    assert np.array_equal(response.privatize(labels, rng=0), labels)
    assert np.array_equal(response.law, np.eye(5))
    probabilities = np.random.default_rng(0).dirichlet(np.ones(5), size=10)
    assert np.allclose(response.corrected(probabilities), probabilities, rtol=0.0, atol=1e-15)


@QUICK
@given(st.floats(0.01, 30.0), priors())
def test_the_correction_undoes_the_noise(epsilon, truth):
    response = RandomizedResponse(epsilon, len(truth))
    found = response.corrected(truth @ response.law)
    assert np.allclose(found, truth, rtol=0.0, atol=1e-10 / min(epsilon, 1.0))


@QUICK
@given(st.floats(0.05, 10.0), priors(), priors())
def test_the_correction_is_the_nearest_point_and_never_leads_away(epsilon, noisy, truth):
    classes = min(len(noisy), len(truth))
    noisy, truth = noisy[:classes] + 0.01, truth[:classes] + 0.01
    noisy, truth = noisy / noisy.sum(), truth / truth.sum()
    response = RandomizedResponse(epsilon, classes)
    inverse = noisy @ np.linalg.inv(response.law)
    found = response.corrected(noisy)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    # the nearest point of a convex set sees all others behind it
    assert ((np.eye(classes) - found) @ (inverse - found) <= 1e-7).all()
    assert np.linalg.norm(found - truth) <= np.linalg.norm(inverse - truth) + 1e-9


def test_with_two_classes_the_correction_clips():
    response = RandomizedResponse(1.0, 2)
    noisy = np.linspace(0.0, 1.0, 21)
    noisy = np.stack([1.0 - noisy, noisy], axis=1)
    clipped = np.clip(noisy @ np.linalg.inv(response.law), 0.0, 1.0)
    assert np.allclose(response.corrected(noisy), clipped)


def test_the_correction_stands_almost_no_privacy():
    found = RandomizedResponse(1e-17, 3).corrected([0.2, 0.5, 0.3])
    assert np.array_equal(found, [0.0, 1.0, 0.0])


# --- randomised response with a prior ------------------------------------------------------------


@QUICK
@given(EPSILONS, priors())
def test_with_a_prior_epsilon_holds_whatever_the_prior(epsilon, prior):
    law = RandomizedResponseWithPrior(epsilon).law(prior)
    assert np.allclose(law.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
    ratio = largest_ratio(law)
    assert ratio <= epsilon + 1e-9
    if (law > 0).any(axis=0).sum() > 1:  # else the release is a constant
        assert ratio == pytest.approx(epsilon, abs=1e-9)


@QUICK
@given(EPSILONS, priors())
def test_the_support_is_the_one_that_keeps_most_labels(epsilon, prior):
    response, falling = RandomizedResponseWithPrior(epsilon), -np.sort(-prior)
    kept = prior @ np.diag(response.law(prior))
    inside = response.support(prior)
    assert prior[inside].min() >= prior[~inside].max(initial=0.0)
    for k in range(1, len(prior) + 1):
        assert kept >= falling[:k].sum() / (1.0 + (k - 1) * math.exp(-epsilon)) - 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(
    "prior", [[0.5, 0.4, 0.1], [0.8, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1], [0.5, 0.5, 0.0], [0.25] * 4]
)
def test_no_mechanism_with_this_epsilon_keeps_more_labels(epsilon, prior):
    classes = len(prior)
    pairs = list(itertools.permutations(range(classes), 2))
    limits = np.zeros((len(pairs) * classes, classes, classes))
    for row, ((a, b), o) in enumerate(itertools.product(pairs, range(classes))):
        limits[row, a, o], limits[row, b, o] = 1.0, -math.exp(epsilon)
    best = linprog(
        -np.diag(prior).reshape(-1),
        A_ub=limits.reshape(len(limits), -1),
        b_ub=np.zeros(len(limits)),
        A_eq=np.repeat(np.eye(classes), classes, axis=1),
        b_eq=np.ones(classes),
    )
    kept = np.dot(prior, np.diag(RandomizedResponseWithPrior(epsilon).law(prior)))
    assert kept == pytest.approx(-best.fun, abs=1e-9)


@QUICK
@given(EPSILONS, st.integers(2, 10))
def test_a_prior_that_knows_nothing_gives_plain_randomised_response(epsilon, classes):
    prior = np.full(classes, 1.0 / classes)
    law = RandomizedResponseWithPrior(epsilon).law(prior)
    assert np.allclose(law, RandomizedResponse(epsilon, classes).law, rtol=0.0, atol=1e-12)


@QUICK
@given(priors())
def test_without_noise_every_label_can_be_released(prior):
    response = RandomizedResponseWithPrior(math.inf)
    assert response.support(prior).all()
    assert np.array_equal(response.law(prior), np.eye(len(prior)))
    labels = np.arange(len(prior))
    rows = np.broadcast_to(prior, (len(prior), len(prior)))
    assert np.array_equal(response.privatize(labels, rows, rng=0), labels)


@pytest.mark.parametrize(
    "prior", [[0.5, 0.4, 0.1], [0.1, 0.1, 0.8], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0]]
)
def test_with_a_prior_labels_are_released_by_the_law(prior):
    response, rng = RandomizedResponseWithPrior(1.0), np.random.default_rng(1)
    rows = np.broadcast_to(prior, (50_000, 3))
    for label, law in enumerate(response.law(prior)):
        noisy = response.privatize(np.full(50_000, label), rows, rng=rng)
        assert_drawn_from(np.bincount(noisy, minlength=3), law)


def test_each_label_has_its_own_prior():
    rng = np.random.default_rng(2)
    prior = rng.dirichlet(np.ones(4), size=(3, 5))
    response = RandomizedResponseWithPrior(1.0)
    for row in np.ndindex(3, 5):
        assert np.array_equal(response.law(prior)[row], response.law(prior[row]))
        assert np.array_equal(response.support(prior)[row], response.support(prior[row]))
    labels, rows = rng.integers(4, size=1000), rng.dirichlet(np.ones(4) / 3, size=1000)
    noisy = response.privatize(labels, rows, rng=rng)
    assert response.support(rows)[np.arange(1000), noisy].all()


def test_releasing_a_label_does_not_build_its_law():
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(100), size=2000)
    tracemalloc.start()
    RandomizedResponseWithPrior(1.0).privatize(rng.integers(100, size=2000), prior, rng=rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * prior.nbytes  # the laws would be 100 times as large


# --- in stages -----------------------------------------------------------------------------------


FEATURES = np.arange(3.0)[:, None]


def lookup(features, labels):
    """Fit a model that depends on the released labels in a way that shows."""
    share = (labels * (features[:, 0] + 1.0)).sum() / (features[:, 0] + 1.0).sum()
    second = 0.1 + 0.8 * share
    return lambda rows: np.tile([1.0 - second, second], (len(rows), 1))


def law_in_stages(labels, epsilon):
    """Enumerate what LP-2ST may release of three labels, word by word."""
    law = {}
    for early in itertools.permutations(range(3), 2):
        early = tuple(sorted(early))
        (late,) = set(range(3)) - set(early)
        stages = tuple(int(row == late) for row in range(3))
        for noisy in itertools.product(range(2), repeat=3):
            model = lookup(FEATURES[list(early)], np.array(noisy)[list(early)])
            chance = 1.0 / 3.0
            for row in early:
                chance *= RandomizedResponse(epsilon, 2).law[labels[row], noisy[row]]
            prior = model(FEATURES[[late]])[0]
            chance *= RandomizedResponseWithPrior(epsilon).law(prior)[labels[late], noisy[late]]
            law[stages, noisy] = chance
    return law


def test_stages_do_not_add_up():
    laws = {labels: law_in_stages(labels, 0.8) for labels in itertools.product(range(2), repeat=3)}
    worst = 0.0
    for labels, row in itertools.product(laws, range(3)):
        other = tuple(label ^ (place == row) for place, label in enumerate(labels))
        assert sum(laws[labels].values()) == pytest.approx(1.0)
        both = np.array([[law[key] for key in laws[labels]] for law in (laws[labels], laws[other])])
        worst = max(worst, largest_ratio(both))
    assert worst == pytest.approx(0.8)


def test_stages_release_what_the_enumeration_says():
    labels, rng = (0, 1, 1), np.random.default_rng(0)
    law = law_in_stages(labels, 0.8)
    counts = dict.fromkeys(law, 0)
    for _ in range(8000):
        done = lp_mst(FEATURES, labels, epsilon=0.8, classes=2, fit=lookup, rng=rng)
        counts[tuple(done.stages.tolist()), tuple(done.labels.tolist())] += 1
    assert_drawn_from(np.array(list(counts.values())), np.array(list(law.values())))


def test_each_stage_is_trained_on_all_labels_released_so_far():
    seen = []

    def fit(features, labels):
        seen.append((features[:, 0].astype(int), labels))
        return lambda rows: np.full((len(rows), 3), 1.0 / 3.0)

    labels = np.random.default_rng(0).integers(3, size=10)
    features = np.arange(10.0)[:, None]
    done = lp_mst(features, labels, epsilon=1.0, classes=3, fit=fit, stages=3, rng=5)
    assert done.epsilon == 1.0
    assert sorted(np.bincount(done.stages)) == [3, 3, 4]
    for stage, (rows, noisy) in enumerate(seen):
        assert np.array_equal(rows, np.flatnonzero(done.stages <= stage))
        assert np.array_equal(noisy, done.labels[rows])
    assert done.model(features).shape == (10, 3)


def test_one_stage_is_randomised_response_and_none_of_it_noise_at_infinity():
    labels = np.random.default_rng(0).integers(3, size=60_000)

    def fit(*_):
        return lambda rows: np.full((len(rows), 3), 1.0 / 3.0)

    done = lp_mst(labels[:, None], labels, epsilon=1.0, classes=3, fit=fit, stages=1, rng=1)
    for label, law in enumerate(RandomizedResponse(1.0, 3).law):
        assert_drawn_from(np.bincount(done.labels[labels == label], minlength=3), law)
    done = lp_mst(labels[:, None], labels, epsilon=math.inf, classes=3, fit=fit, rng=1)
    assert np.array_equal(done.labels, labels)


# --- ALIBI ---------------------------------------------------------------------------------------


def test_noise_is_laplace_of_scale_two_over_epsilon():
    labels = np.random.default_rng(0).integers(4, size=20_000)
    noise = Alibi(0.5, 4).privatize(labels, rng=1) - np.eye(4)[labels]
    assert kstest(noise.reshape(-1), laplace(scale=4.0).cdf).pvalue > 0.01
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.03


@QUICK
@given(EPSILONS, st.integers(2, 6), st.integers(0, 2**32))
def test_densities_of_noisy_vectors_never_differ_by_more_than_epsilon(epsilon, classes, seed):
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(size=(50, classes)), 3.0 * np.eye(classes)])
    densities = np.stack(
        [laplace.logpdf(points - one, scale=2.0 / epsilon).sum(axis=1) for one in np.eye(classes)]
    )
    spread = densities.max(axis=0) - densities.min(axis=0)
    assert spread.max() == pytest.approx(epsilon)  # reached far out
    # and with an even prior the posterior is in the same ratio
    soft = Alibi(epsilon, classes).posterior(points, np.full(classes, 1.0 / classes))
    assert np.allclose(np.log(soft.max(axis=1) / soft.min(axis=1)), spread)


@QUICK
@given(EPSILONS, priors(), st.integers(0, 2**32))
def test_the_posterior_is_that_of_bayes(epsilon, prior, seed):
    classes, rng = len(prior), np.random.default_rng(seed)
    alibi = Alibi(epsilon, classes)
    noisy = alibi.privatize(rng.integers(classes, size=20), rng=rng)
    logs = laplace.logpdf(noisy[:, None] - np.eye(classes), scale=2.0 / epsilon).sum(axis=2)
    joint = np.exp(logs - logs.max(axis=1, keepdims=True)) * prior
    expected = joint / joint.sum(axis=1, keepdims=True)
    assert np.allclose(alibi.posterior(noisy, prior), expected, rtol=1e-9, atol=0.0)
    rows = np.tile(prior, (20, 1))
    assert np.array_equal(alibi.posterior(noisy, rows), alibi.posterior(noisy, prior))


def test_the_posterior_is_calibrated():
    rng = np.random.default_rng(0)
    prior, alibi = np.array([0.6, 0.3, 0.1]), Alibi(1.5, 3)
    labels = rng.choice(3, p=prior, size=200_000)
    soft = alibi.posterior(alibi.privatize(labels, rng=rng), prior)
    for label in range(3):
        order = np.argsort(soft[:, label]).reshape(20, -1)
        found, said = (labels == label)[order].mean(axis=1), soft[order, label].mean(axis=1)
        assert np.abs(found - said).max() < 5 * 0.5 / math.sqrt(order.shape[1])


@pytest.mark.parametrize("epsilon", [1e6, math.inf])
def test_almost_no_noise_gives_almost_hard_labels(epsilon):
    labels = np.random.default_rng(0).integers(4, size=100)
    alibi = Alibi(epsilon, 4)
    soft = alibi.posterior(alibi.privatize(labels, rng=0), [0.97, 0.01, 0.01, 0.01])
    assert np.array_equal(soft, np.eye(4)[labels])


# --- teachers ------------------------------------------------------------------------------------


def histograms(teachers, classes):
    votes = itertools.product(range(teachers + 1), repeat=classes)
    return [np.array(row) for row in votes if sum(row) == teachers]


def moves(teachers, classes):
    """Every histogram, beside what it becomes when one teacher votes otherwise."""
    pairs = []
    for votes in histograms(teachers, classes):
        for a, b in itertools.permutations(range(classes), 2):
            if votes[a]:
                pairs.append((votes, votes - np.eye(classes)[a] + np.eye(classes)[b]))
    return np.array(pairs)


def hockey_stick(p, q, epsilon):
    return np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=-1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.1), (1.0, 0.05), (3.0, 1e-3), (0.5, 1e-5)])
def test_no_change_of_one_teacher_exceeds_delta(epsilon, delta):
    sigma = LabelPate(epsilon, delta, queries=1).sigma
    laws = noisy_argmax_probabilities(moves(6, 3), sigma)
    assert hockey_stick(laws[:, 0], laws[:, 1], epsilon).max() <= delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.05), (2.0, 1e-3)])
def test_nor_over_several_queries(epsilon, delta):
    sigma = LabelPate(epsilon, delta, queries=2).sigma
    laws = noisy_argmax_probabilities(moves(3, 3), sigma)
    for p, q in laws:
        both = [np.einsum("a,nb->nab", law, laws[:, at]) for at, law in ((0, p), (1, q))]
        p2, q2 = (joint.reshape(len(laws), -1) for joint in both)
        assert hockey_stick(p2, q2, epsilon).max() <= delta


def test_the_noise_is_no_more_than_needed():
    # with two classes the release is a test at a threshold, the best there is between Gaussians
    epsilon, delta = 0.3, 0.02
    sigma, pairs = LabelPate(epsilon, delta, queries=1).sigma, moves(60, 2)

    def worst(noise):
        laws = noisy_argmax_probabilities(pairs, noise)
        return hockey_stick(laws[:, 0], laws[:, 1], epsilon).max()

    assert 0.98 * delta < worst(sigma) <= delta
    assert worst(sigma / math.sqrt(2.0)) > delta  # as if one count moved, not two


def test_all_queries_together_have_the_promised_curve():
    pate = LabelPate(1.0, 1e-5, queries=250)
    assert pate.mu == pytest.approx(math.sqrt(500.0) / pate.sigma)
    assert GaussianDP(pate.mu).epsilon(1e-5) == pytest.approx(1.0, rel=1e-12)
    assert LabelPate(math.inf, 1e-5, queries=3).mu == math.inf


def test_teachers_release_the_law_of_noisy_argmax():
    pate, votes = LabelPate(3.0, 1e-3, queries=100_000), np.array([700, 500, 0])
    released = pate.release(np.tile(votes, (100_000, 1)), rng=0)
    law = noisy_argmax_probabilities(votes, pate.sigma)
    assert_drawn_from(np.bincount(released, minlength=3), law)


def test_without_noise_the_plurality_wins_and_ties_are_drawn():
    pate = LabelPate(math.inf, 1e-5, queries=30_000)
    assert (pate.release(np.tile([3, 5, 4], (30_000, 1)), rng=0) == 1).all()
    released = pate.release(np.tile([5, 5, 4], (30_000, 1)), rng=0)
    assert_drawn_from(np.bincount(released, minlength=3), np.array([0.5, 0.5, 0.0]))


# --- the audited notion --------------------------------------------------------------------------


@QUICK
@given(EPSILONS, priors())
def test_imputing_the_label_leaks_no_more_than_replacing_it(epsilon, imputed):
    law = RandomizedResponse(epsilon, len(imputed)).law
    for row in law:
        assert largest_ratio(np.stack([row, imputed @ law])) <= epsilon + 1e-9


def test_two_even_labels_leak_almost_log_two_less_when_imputed():
    law = RandomizedResponse(4.0, 2).law
    simulated = largest_ratio(np.stack([law[0], [0.5, 0.5] @ law]))
    assert simulated == pytest.approx(math.log((1.0 + math.exp(4.0)) / 2.0))


def play(release, rng, examples=40_000, classes=3):
    """Audit a release by the best score there is: the log-likelihood ratio of the shown label."""
    reference = rng.dirichlet(np.ones(classes) / 2, size=examples)
    true, generated = ((rng.random(examples)[:, None] > reference.cumsum(1)).sum(1) for _ in "ab")
    true, generated = np.minimum(true, classes - 1), np.minimum(generated, classes - 1)
    likelihood = release(true, reference)
    chosen = rng.integers(2, size=examples)
    shown = np.where(chosen == 0, true, generated)
    rows = np.arange(examples)
    scores = np.log(likelihood[rows, shown] / (likelihood * reference).sum(axis=1))
    return observational_label(scores, chosen, family="pure", confidence=0.95).epsilon


def mechanisms(epsilon, rng):
    """For each mechanism: the likelihood of what it released, for each true label."""
    plain, prior = RandomizedResponse(epsilon, 3), RandomizedResponseWithPrior(epsilon)
    alibi = Alibi(epsilon, 3)
    rows = slice(None)

    def laplace_likelihood(labels):
        noisy = alibi.privatize(labels, rng=rng)
        return np.exp(laplace.logpdf(noisy[:, None] - np.eye(3), scale=2 / epsilon).sum(axis=2))

    def prior_likelihood(labels, reference):
        noisy = prior.privatize(labels, reference, rng=rng)
        return prior.law(reference)[np.arange(len(labels)), rows, noisy]

    return {
        "plain": lambda labels, _: plain.law[:, plain.privatize(labels, rng=rng)].T,
        "with a prior": prior_likelihood,
        "alibi": lambda labels, _: laplace_likelihood(labels),
    }


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("name", ["plain", "with a prior", "alibi"])
def test_an_audit_stays_below_epsilon(name, epsilon):
    rng = np.random.default_rng(3)
    release = mechanisms(epsilon, rng)[name]
    assert max(play(release, rng) for _ in range(3)) <= epsilon


def test_an_audit_finds_most_of_epsilon_and_a_false_promise():
    rng = np.random.default_rng(4)
    assert play(mechanisms(1.0, rng)["plain"], rng) > 0.6
    # who promises 1 and keeps labels as with 3 is found out
    assert play(mechanisms(3.0, rng)["plain"], rng) > 1.5


# --- the border ----------------------------------------------------------------------------------

RESPONSE, WITH_PRIOR = RandomizedResponse(1.0, 3), RandomizedResponseWithPrior(1.0)
ALIBI, PATE = Alibi(1.0, 3), LabelPate(1.0, 1e-5, 2)
EVEN = np.full((2, 3), 1.0 / 3.0)


def train(**changes):
    good = {"epsilon": 1.0, "classes": 3, "fit": lambda *_: lambda _: EVEN[:1], "rng": 0}
    return lp_mst(**{"features": np.zeros((2, 1)), "labels": [0, 1], **good, **changes})


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, -math.inf, [1.0, 2.0], "1"])
@pytest.mark.parametrize(
    "make",
    [
        lambda epsilon: RandomizedResponse(epsilon, 3),
        RandomizedResponseWithPrior,
        lambda epsilon: Alibi(epsilon, 3),
        lambda epsilon: LabelPate(epsilon, 1e-5, 3),
        lambda epsilon: train(epsilon=epsilon),
    ],
)
def test_a_bad_epsilon_is_named(make, epsilon):
    with pytest.raises((ValueError, TypeError), match="epsilon must be"):
        make(epsilon)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomizedResponse(1.0, 1), "classes must be a whole number of at least 2, got 1"),
        (lambda: RandomizedResponse(1.0, 2.5), "classes"),
        (lambda: Alibi(1.0, 1), "classes must be a whole number of at least 2"),
        (lambda: LabelPate(1.0, 0.0, 3), "delta must lie strictly between 0 and 1, got 0.0"),
        (lambda: LabelPate(1.0, 1e-5, 0), "queries must be a whole number of at least 1, got 0"),
        (lambda: RESPONSE.privatize([0, 3], rng=0), "labels must lie in 0 to 2, got 3"),
        (lambda: RESPONSE.privatize([[0]], rng=0), "labels must have 1 dimension"),
        (lambda: RESPONSE.privatize([0.5], rng=0), "labels must hold whole numbers"),
        (lambda: RESPONSE.privatize([0], rng=-1), "rng must be a numpy Generator"),
        (lambda: RESPONSE.corrected([0.5, 0.5]), r"probabilities must have 3 classes.*\(2,\)"),
        (lambda: RESPONSE.corrected([0.5, 0.5, 0.5]), "probabilities must sum to 1"),
        (lambda: WITH_PRIOR.law([0.5, 0.6]), "prior must sum to 1 within 1e-9, got 1.1"),
        (lambda: WITH_PRIOR.support([1.0]), "prior must have 2 classes or more"),
        (lambda: WITH_PRIOR.privatize([0, 3], EVEN, rng=0), "labels must lie in 0 to 2"),
        (lambda: WITH_PRIOR.privatize([0], EVEN, rng=0), r"prior must have shape \(1, 3\).*\(2, 3"),
        (lambda: WITH_PRIOR.privatize([0, 0], EVEN[0], rng=0), r"prior must have shape \(2, 3\)"),
        (lambda: train(labels=[0, 3]), "labels must lie in 0 to 2"),
        (lambda: train(labels=[0]), r"features must have a row for each of 1 labels.*\(2, 1\)"),
        (lambda: train(features=3.0), "features must have a row"),
        (lambda: train(classes=1), "classes must be a whole number of at least 2"),
        (lambda: train(stages=0), "stages must be a whole number of at least 1"),
        (lambda: train(stages=3), "stages must be at most the number of labels, 2, got 3"),
        (lambda: train(fit=3), "fit must be a function"),
        (
            lambda: train(fit=lambda *_: lambda _: EVEN[:1, :2]),
            r"fit .*\(1, 3\), got \(1, 2\)",
        ),
        (lambda: train(fit=lambda *_: lambda _: EVEN[:1] * 2), "prior must sum to 1"),
        (lambda: ALIBI.privatize([3], rng=0), "labels must lie in 0 to 2"),
        (lambda: ALIBI.posterior([[0.0, 1.0]], EVEN[0]), r"noisy must have shape \(n, 3\)"),
        (lambda: ALIBI.posterior([0.0, 1.0, 0.0], EVEN[0]), "noisy must have 2 dim"),
        (lambda: ALIBI.posterior(EVEN, EVEN[:1]), r"prior must have shape \(3,\) or \(2, 3\)"),
        (lambda: ALIBI.posterior(EVEN, [0.5, 0.5, 0.5]), "prior must sum to 1"),
        (lambda: Alibi(math.inf, 3).posterior(EVEN, EVEN), "noisy must hold one-hot vectors"),
        (lambda: PATE.release([[1, 2]], rng=0), r"votes must have shape \(2, classes\)"),
        (lambda: PATE.release([[1], [2]], rng=0), "votes must have shape .* 2 classes or more"),
        (lambda: PATE.release([[1, 0.5], [1, 2]], rng=0), "votes must hold whole numbers"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
