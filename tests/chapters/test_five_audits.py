"""One model and all audits: who is whose, what is trained, and what each audit may see."""

import importlib
import math

import numpy as np
import pytest
import torch
from experiments.five_audits import audits as five
from opacus.accountants import PRVAccountant
from scipy.stats import binom, norm

from auditkit import GaussianDP
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, audit_sgd

SEED = 50  # a deal that no grid has


def test_no_image_has_two_roles():
    deal = five.deal(SEED)
    parts = [deal.own.natural, deal.own.planted, deal.other.natural, deal.other.planted]
    used = np.concatenate((*parts, deal.auditor, deal.outside, deal.test))
    assert len(np.unique(used)) == len(used) == len(five.pool()[1])


def test_coins_decide_who_is_trained_on_and_planted_labels_are_wrong():
    coins, (x, labels) = five.deal(SEED).own, five.pool()
    inputs, said = five.lessons(coins)
    members = np.concatenate((coins.natural[coins.members], coins.planted[coins.planted_members]))
    np.testing.assert_array_equal(inputs, x[members])
    assert (coins.wrong != labels[coins.planted]).all()
    natural = coins.members.sum()
    np.testing.assert_array_equal(said[:natural], labels[members[:natural]])
    np.testing.assert_array_equal(said[natural:], coins.wrong[coins.planted_members])
    for tossed in (coins.members, coins.planted_members):
        assert abs(tossed.mean() - 0.5) < 4 * math.sqrt(0.25 / tossed.size)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_another_accountant_agrees_on_what_the_training_promises(epsilon):
    other = PRVAccountant()
    other.history = [(five.noise_for(epsilon), five.SAMPLING_RATE, five.STEPS)]
    assert other.get_epsilon(five.DELTA) == pytest.approx(epsilon, rel=0.01)
    assert epsilon < five.substitute(epsilon) < 2 * epsilon


def test_opacus_and_many_runs_train_the_same_head():
    # images without a gradient: what is left is the noise of all steps
    images, labels = np.zeros((400, five.COLUMNS), np.float32), np.zeros(400, np.int64)
    expected = five.LEARNING_RATE * 2.0 * five.CLIP / 20 * math.sqrt(five.STEPS)
    one = five.private_head(images, labels, 2.0, 1).weights
    many = audit_sgd(
        images[1:],
        labels[1:],
        GradientCanary(np.zeros((2, five.COLUMNS * five.CLASSES))),
        runs=2,
        steps=five.STEPS,
        sampling_rate=five.SAMPLING_RATE,
        noise_multiplier=2.0,
        clip=five.CLIP,
        learning_rate=five.LEARNING_RATE,
        logits=five.CLASSES,
    )
    for weights in (one, many.weights):
        assert weights.std() == pytest.approx(expected, rel=0.06)


def test_a_model_comes_out_again_and_leaves_the_stream_of_torch_alone():
    before = torch.get_rng_state()
    first, again = (five.target(8.0, five.OWN, SEED).weights for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert torch.equal(torch.get_rng_state(), before)
    assert not np.allclose(first, five.target(8.0, five.OTHER, SEED).weights)


def test_a_head_takes_inputs_with_the_column_of_ones_or_without():
    x = five.pool()[0][:5]
    head = five.Head(np.random.default_rng(0).normal(size=(five.CLASSES, five.COLUMNS)))
    said = head.predict_proba(x)
    np.testing.assert_allclose(said, head.predict_proba(x[:, :-1]))
    np.testing.assert_allclose(-np.log(said[np.arange(5), [3] * 5]), head.losses(x, [3] * 5))


def test_without_privacy_all_audits_find_something_and_the_null_has_nothing():
    found = {}
    for trained_on in (five.OWN, five.OTHER):
        model = five.target(math.inf, trained_on, SEED)
        for audit in (five.ONE_RUN, five.LABELS, five.ZERO_RUN):
            rows = five.AUDITS[audit](model, SEED, np.random.default_rng(3))
            found |= {(trained_on, row["method"], row["family"]): row for row in rows}
    for (trained_on, method, _), row in found.items():
        if row["claim"] == "lower bound" and trained_on == five.OTHER:
            assert row["found"] == 0.0, method
        elif trained_on == five.OTHER and method == five.LABELS:
            assert row["found"] < 0.05, method  # below what its placebo leaves open
        elif "shift" not in method or five.NO_SHIFT in method:
            assert row["found"] > 0.0, method
    # an attack that knows who looks like a member needs no model
    unaware = found[five.OTHER, f"{five.FITTED}, none", five.GAUSSIAN]
    assert unaware["claim"] == "estimate"
    assert unaware["found"] > 0.0
    assert found[five.OTHER, f"{five.TRUE}, sharp", five.GAUSSIAN]["found"] == 0.0


@pytest.mark.parametrize(
    ("epsilon", "trained_on", "passes", "claim"),
    [
        (8.0, five.OWN, five.PRIVATE, "lower bound"),
        (math.inf, five.OWN, five.SHORT, "estimate"),
        (math.inf, five.OTHER, five.SHORT, "lower bound"),
    ],
)
def test_what_assumes_a_curve_is_an_estimate_where_nobody_knows_one(
    epsilon, trained_on, passes, claim
):
    rows = five.one_audit(five.ONE_RUN, epsilon, trained_on, passes, SEED)
    claims = {(row["family"], row["claim"]) for row in rows}
    assert claims == {(five.GAUSSIAN, claim), (five.NO_FAMILY, "lower bound")}


def test_no_family_for_labels_still_means_a_delta():
    model = five.target(math.inf, five.OWN, SEED)
    rows = five.label_audit(model, SEED, np.random.default_rng(3))
    gaussian, free = (row["found"] for row in rows)
    assert [row["family"] for row in rows] == [five.GAUSSIAN, five.NO_FAMILY]
    assert 0.0 < free < gaussian


def test_where_guesses_are_made_is_counted_on_the_coins_of_the_zero_run():
    model = five.target(math.inf, five.OWN, SEED)
    measured = {row["method"]: row["found"] for row in five.accuracy(model, SEED, None)}
    rows, members = five.fair_half(five.deal(SEED))
    scores = five.score(model, SEED, rows, five.pool()[1][rows])
    lowest = np.argsort(scores)[:100]
    assert measured[five.LOWEST] == 1.0 - members[lowest].mean()
    far = np.argsort(-np.abs(scores - np.median(scores)))[:100]
    assert measured[five.DENIED] == (scores[far] < np.median(scores)).mean()
    assert measured[five.LOWEST] > 0.9 > measured[five.HIGHEST] > 0.5


def test_generated_examples_say_that_they_estimate():
    model = five.target(math.inf, five.OWN, SEED)
    (row,) = five.generated_audit(model, SEED, np.random.default_rng(0))
    assert row["claim"] == "estimate"
    assert 0 <= row["found"] <= row["with_model"] <= row["ceiling"]


def test_the_outsider_has_members_and_images_from_elsewhere_once_each():
    deal, labels = five.deal(SEED), five.pool()[1]
    views = five.outsiders_view(deal, labels, np.random.default_rng(0))
    every = np.concatenate([rows for rows, _ in views])
    assert len(np.unique(every)) == len(every)
    shares = np.exp(-five.CLASS_ODDS) / np.exp(-five.CLASS_ODDS).sum()
    for rows, members in views:
        assert np.isin(rows[members], deal.own.natural[deal.own.members]).all()
        assert np.isin(rows[~members], deal.outside).all()
        assert abs(members.mean() - 0.5) < 4 * math.sqrt(0.25 / len(rows))
        assert len(rows) == 2 * (deal.own.members.sum() // 2 - five.SPARE)
        seen = np.bincount(labels[rows[~members]], minlength=five.CLASSES) / (~members).sum()
        assert np.abs(seen - shares).max() < 0.04


def test_worlds_without_privacy_differ_in_one_label(monkeypatch):
    seen = {}

    def note(inputs, labels, seeds, *, passes, indices=None):
        seen.update(inputs=inputs, labels=labels, indices=indices, passes=passes)
        return five.fit_many(
            five.fresh_head, inputs, labels, seeds=seeds, indices=indices, epochs=1,
            batch_size=4, learning_rate=0.1,
        )  # fmt: skip

    monkeypatch.setattr(five, "plain_heads", note)
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(8, five.COLUMNS)).astype(np.float32)
    labels, rest = rng.integers(10, size=8), np.arange(8) != 3
    other = (labels[3] + 1) % 10
    canary = InputCanary(inputs[[3, 3]], [labels[3], other])
    scores, bits = five.plain_runs(inputs, labels, rest, canary, 4, 0)
    assert scores.shape == bits.shape == (4,)
    for world, label in ((0, labels[3]), (1, other)):
        for indices in seen["indices"][bits == world]:
            assert sorted(seen["labels"][indices]) == sorted([*labels[rest], label])
            np.testing.assert_array_equal(seen["inputs"][indices[-1]], inputs[3])
    assert seen["passes"] == five.LONG


@pytest.mark.parametrize(
    ("canary", "adjacency"), [(five.INSERTED, "add/remove"), (five.OPPOSITE, "substitute")]
)
def test_many_runs_say_which_neighbours_they_compare(canary, adjacency):
    rows = five.audit_of_many_runs(canary, 8.0, 40, SEED, np.random.default_rng(0))
    assert [row["family"] for row in rows] == ["gaussian", "approx"]
    assert {row["adjacency"] for row in rows} == {adjacency}
    assert {row["claim"] for row in rows} == {"lower bound"}


@pytest.mark.parametrize(("canary", "distance"), [(five.INSERTED, 1.0), (five.OPPOSITE, 2.0)])
def test_if_each_step_has_the_canary_the_last_weight_is_gaussian(canary, distance):
    mu = distance * math.sqrt(five.STEPS) / five.noise_for(4.0)
    expected = pytest.approx(GaussianDP(mu).epsilon(five.DELTA), rel=1e-3)
    assert five.unseen_steps(canary, 4.0, sampling_rate=1.0) == (expected, expected)


@pytest.mark.parametrize(("canary", "low"), [(five.INSERTED, 0), (five.OPPOSITE, -1)])
def test_at_the_epsilon_of_the_last_weight_its_two_laws_differ_by_delta(canary, low):
    true, endless = five.unseen_steps(canary, 8.0)
    spread = five.noise_for(8.0) * math.sqrt(five.STEPS)
    times = np.arange(five.STEPS + 1)
    chances = binom.pmf(times, five.STEPS, five.SAMPLING_RATE)
    # once more by adding up densities, and by drawing
    x, width = np.linspace(-12 * spread - 30, 12 * spread + 30, 20_000, retstep=True)
    p, q = (norm.pdf(x[:, np.newaxis], sign * times, spread) @ chances for sign in (low, 1))
    apart = [np.maximum(a - math.exp(true) * b, 0).sum() * width for a, b in ((p, q), (q, p))]
    assert max(apart) == pytest.approx(five.DELTA, rel=0.01)
    rng = np.random.default_rng(0)
    ends = spread * rng.normal(size=(2, 400_000))
    ends += rng.binomial(five.STEPS, five.SAMPLING_RATE, size=ends.shape) * [[low], [1]]
    middle = (1 + low) / 2 * five.STEPS * five.SAMPLING_RATE
    mu = -norm.ppf([(ends[0] > middle).mean(), (ends[1] < middle).mean()]).sum()
    assert endless == pytest.approx(GaussianDP(mu).epsilon(five.DELTA), rel=0.01)
    assert endless < true


def test_the_noise_of_votes_gives_what_theory_promises():
    for epsilon in (1.0, 8.0):
        assert five.vote_theory(five.vote_noise(epsilon)) == pytest.approx(epsilon)
        assert five.vote_theory(five.vote_noise(epsilon), answers=1) < epsilon / 5


def test_the_epsilon_of_a_release_is_that_of_its_laws():
    p = np.array([1 / (1 + math.exp(-1.3)), 1 / (1 + math.exp(1.3))])
    # at δ it falls short of the pure ε by δ over the smaller probability, nearly
    assert five.release_epsilon(p, p[::-1]) == pytest.approx(1.3, abs=1e-4)
    assert five.release_epsilon(p, p) == 0.0


def test_an_audit_of_answers_stays_below_the_truth():
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.3, 0.2])
    found = five.answer_audit(p, q, np.random.default_rng(0))
    assert 0.95 * five.release_epsilon(p, q) < found < five.release_epsilon(p, q)
    assert five.answer_audit(p, p, np.random.default_rng(0)) == 0.0


def test_every_audit_has_a_null_among_its_cells():
    one, many, twin = (study.paper for study in (five.one_model, five.many_runs, five.twin))
    for cells in (one, five.one_model.live):
        assert {cell["trained_on"] for cell in cells} == {five.OWN, five.OTHER}
        assert {cell["audit"] for cell in cells} == set(five.AUDITS)
    for cells in (many, five.many_runs.live):
        assert five.SAME in {cell["canary"] for cell in cells}
    votes = {point: set() for point in (five.POISON, five.NO_POINT)}
    for cell in twin:
        votes[cell["point"]].add(cell["epsilon"])
    assert votes[five.POISON] == votes[five.NO_POINT] == set(five.EPSILONS)
    assert {cell["seed"] for cell in one} == set(range(five.SEEDS))


def test_what_the_chapter_says_of_its_numbers_holds():
    importlib.import_module("experiments.five_audits.claims")
