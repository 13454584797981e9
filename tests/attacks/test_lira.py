"""Likelihood ratios by shadow models: what they are, and that they know nothing they should not."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import multivariate_normal, norm

from auditkit import Bonferroni, audit_scores
from auditkit.attacks.lira import lira, logit_confidence
from auditkit.bounds.roc import auc, tpr_at_fpr


def world(examples=2000, models=65, leak=1.0, uneven=0.5, queries=None, seed=0):
    """Statistics and memberships of models, of which the first is audited."""
    rng = np.random.default_rng(seed)
    members = rng.random((models, examples)) < 0.5
    shape = (models, examples) if queries is None else (models, examples, queries)
    easy = rng.normal(0.0, 3.0, shape[1:])
    noise = rng.normal(size=shape) * np.exp(rng.normal(0.0, uneven, shape[1:]))
    own = members if queries is None else members[..., np.newaxis]
    return easy + leak * own + noise, members


def test_logit_confidence_is_the_log_odds_of_the_own_label():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(4, 30, 10)), rng.integers(10, size=30)
    own = softmax(logits, axis=-1)[:, np.arange(30), labels]
    found = logit_confidence(logits, labels)
    np.testing.assert_allclose(found, np.log(own / (1.0 - own)))
    np.testing.assert_allclose(logit_confidence(log_softmax(logits, axis=-1), labels), found)
    np.testing.assert_allclose(logit_confidence(logits[1], labels), found[1])
    of_queries = logit_confidence(logits.swapaxes(0, 1), labels[:, np.newaxis])
    np.testing.assert_allclose(of_queries, found.T)


def test_logit_confidence_keeps_its_digits_where_a_probability_has_none():
    logits = np.array([[300.0, 0.0, 0.0], [0.0, 300.0, 300.0]], np.float32)
    expected = [300.0 - np.log(2.0), -300.0 - np.log(2.0)]
    np.testing.assert_allclose(logit_confidence(logits, [0, 0]), expected, rtol=1e-15)
    np.testing.assert_allclose(logit_confidence(logits + 1e6, [0, 0]), expected, rtol=1e-12)


@pytest.mark.parametrize("variance", ["example", "global"])
def test_scores_are_the_ratios_of_two_gaussian_laws(variance):
    said, members = world(examples=30, models=25)
    inside, others = members[1:], said[1:]
    law = {}
    for kind in (True, False):
        of = [others[inside[:, i] == kind, i] for i in range(30)]
        squares, free = [v.var() * len(v) for v in of], [len(v) - 1 for v in of]
        square = np.divide(squares, free) if variance == "example" else sum(squares) / sum(free)
        law[kind] = norm(np.array([v.mean() for v in of]), np.sqrt(square))
    online = lira(said[0], others, inside, variance=variance)
    np.testing.assert_allclose(online, law[True].logpdf(said[0]) - law[False].logpdf(said[0]))
    offline = lira(said[0], others, inside, mode="offline", variance=variance)
    np.testing.assert_allclose(norm.cdf(offline), law[False].cdf(said[0]))


def test_queries_have_one_law_with_a_diagonal_covariance():
    said, members = world(examples=5, models=40, queries=3)
    online = lira(said[0], said[1:], members[1:])
    for place in range(5):
        densities = []
        for kind in (True, False):
            of = said[1:][members[1:, place] == kind, place]
            covariance = np.diag(of.var(axis=0, ddof=1))
            densities.append(multivariate_normal.logpdf(said[0, place], of.mean(0), covariance))
        assert online[place] == pytest.approx(densities[0] - densities[1])


def test_one_query_or_the_same_one_twice_makes_no_other_order():
    said, members = world(examples=200)
    for mode in ("online", "offline"):
        once = lira(said[0], said[1:], members[1:], mode=mode)
        twice = np.repeat(said[..., np.newaxis], 2, axis=2)
        np.testing.assert_allclose(
            lira(twice[0, :, :1], twice[1:, :, :1], members[1:], mode=mode), once
        )
        both = lira(twice[0], twice[1:], members[1:], mode=mode)
        np.testing.assert_allclose(both, once * (2.0 if mode == "online" else np.sqrt(2.0)))


def test_shadow_models_find_what_the_statistic_hides():
    said, members = world()
    areas = [
        auc(scores, members[0]).value
        for scores in (
            said[0],
            lira(said[0], said[1:], members[1:], mode="offline"),
            lira(said[0], said[1:], members[1:]),
        )
    ]
    assert areas[0] < 0.6 < 0.7 < areas[1] < areas[2] + 0.02


def test_one_variance_for_all_finds_more_members_where_shadow_models_are_few():
    said, members = world(examples=20_000, models=9, leak=2.0, uneven=0.2)
    seen = np.clip(members[1:].sum(axis=0), 2, 6) == members[1:].sum(axis=0)
    own, common = (
        tpr_at_fpr(
            lira(said[0, seen], said[1:, seen], members[1:, seen], variance=variance),
            members[0, seen],
            0.01,
        )
        for variance in ("example", "global")
    )
    assert own.high < common.low


@pytest.mark.parametrize("variance", ["example", "global"])
def test_shadow_models_whose_memberships_are_exchanged_know_nothing(variance):
    """Online, where both laws are then the same; offline they still say what is high."""
    said, members = world(examples=20_000, models=33, leak=3.0)
    wrong = np.random.default_rng(5).permuted(members[1:], axis=0)
    seen = np.clip(wrong.sum(axis=0), 2, 30) == wrong.sum(axis=0)
    scores = lira(said[0, seen], said[1:, seen], wrong[:, seen], variance=variance)
    assert auc(scores, members[0, seen]).value == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_memberships_of_another_model_are_not_found(mode):
    said, members = world(examples=20_000, models=41, leak=3.0)
    scores = lira(said[0], said[1:], members[1:], mode=mode)
    for coins in np.random.default_rng(6).random((5, 20_000)) < 0.5:
        assert auc(scores, coins).value == pytest.approx(0.5, abs=0.016)  # four deviations


def test_an_audit_of_a_model_that_leaks_nothing_proves_nothing_however_shadow_models_leak():
    above = 0
    for seed in range(60):
        said, members = world(examples=300, models=17, leak=3.0, seed=seed)
        seen = np.clip(members[1:].sum(axis=0), 2, 14) == members[1:].sum(axis=0)
        coins = np.random.default_rng(1000 + seed).random(300) < 0.5
        scores = lira(said[0, seen], said[1:, seen], members[1:, seen])
        bound = audit_scores(scores, coins[seen], method="one-run", threshold=Bonferroni(10))
        above += bound.epsilon > 0.0
    assert above <= 8  # of 60 at a level of 5%: more with probability 0.005


def test_where_the_coins_of_all_models_balance_the_others_give_a_models_own_away():
    rng = np.random.default_rng(0)
    said, half = rng.normal(size=(8, 4000)), np.arange(8) < 4
    balanced = np.stack([rng.permutation(half) for _ in range(4000)], axis=1)
    assert auc(lira(said[0], said[1:], balanced[1:]), balanced[0]).high < 0.48
    pairs = np.stack([rng.permutation(half[1:7]) for _ in range(4000)], axis=1)
    apart = auc(lira(said[0], said[1:7], pairs), rng.random(4000) < 0.5)
    assert apart.low < 0.5 < apart.high


def some(**changed):
    said, members = world(examples=6, models=20)
    given = {"statistics": said[0], "shadow_statistics": said[1:], "shadow_members": members[1:]}
    return {**given, **changed}


NEVER = np.zeros((19, 6), bool)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"statistics": 1.0}, r"^statistics must have shape \(examples,\) or \(exam.*got \(\)"),
        ({"statistics": [np.nan] * 6}, "^statistics must hold finite numbers, got nan"),
        (
            {"shadow_statistics": np.full((19, 6), np.nan)},
            "^shadow_statistics must hold finite numbers",
        ),
        (
            {"shadow_statistics": np.zeros((19, 5))},
            r"^shadow_statistics must have shape \(models, 6\), got \(19, 5\)",
        ),
        ({"shadow_members": NEVER[1:]}, r"^shadow_members must have shape \(19, 6\), got \(18, 6"),
        ({"shadow_members": NEVER + 2}, "^shadow_members must hold 0, 1 only, got 2"),
        ({"shadow_members": NEVER}, "must leave 2 models or more with each example.*got 0 with ex"),
        ({"shadow_members": ~NEVER}, "must leave 2 models or more without each example"),
        (
            {"shadow_members": ~NEVER, "variance": "global"},
            "must leave 1 models or more without each example",
        ),
        ({"shadow_statistics": np.ones((19, 6))}, "must vary over the models without an example"),
        ({"mode": "both"}, "^mode must be one of 'online', 'offline', got 'both'"),
        ({"variance": "fixed"}, "^variance must be one of 'example', 'global', got 'fixed'"),
    ],
)
def test_what_does_not_fit_together_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        lira(**some(**changed))


def test_the_audited_model_is_no_shadow_model_of_its_own():
    said, members = world(examples=6, models=20)
    with pytest.raises(ValueError, match="must not hold the audited model, which row 3 is"):
        lira(said[3], said, members)


def test_offline_no_shadow_model_needs_to_have_seen_an_example():
    said, _ = world(examples=6, models=20)
    assert lira(said[0], said[1:], NEVER, mode="offline").shape == (6,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: logit_confidence([[0.3, 0.7], [1.0, 0.0]], [0, 1]),
            "^outputs .* got probabilities",
        ),
        (
            lambda: logit_confidence([[0.0, -np.inf]], [0]),
            "^outputs must hold finite .*-inf 1 times",
        ),
        (lambda: logit_confidence([[1.0]], [0]), "^outputs must have at least 2 classes"),
        (lambda: logit_confidence([[1.0, 0.0]], [2]), "^labels must be below 2, the classes, got"),
        (lambda: logit_confidence([[1.0, 0.0]], [-1]), "^labels must hold whole numbers"),
        (lambda: logit_confidence([[1.0, 0.0]], [0, 1]), r"^labels must fit the examples of outp"),
        (lambda: logit_confidence([[0.0, np.inf]], [0]), "^outputs must hold finite numbers"),
    ],
)
def test_outputs_without_a_confidence_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
