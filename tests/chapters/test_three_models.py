"""Three models, every audit: who is whose, what is trained and stored, and what is counted."""

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from experiments.five_audits import attacks, counting, deals, heads, networks, shares, texts
from experiments.five_audits import planning as plans
from experiments.five_audits import private_networks as private
from experiments.zero_run.heads import pack

DATA = [deals.CIFAR, deals.FASHION]


@pytest.mark.parametrize("data", DATA)
def test_no_image_has_two_roles(data):
    dealt = deals.deal(data)._asdict()
    wrong, misread = (dealt.pop(name) for name in ("wrong", "misread"))
    used = np.concatenate([*dealt.values(), deals.others(data)])
    assert len(np.unique(used)) == len(used) == len(deals.labels_of(data))
    for labels, part in ((wrong, "planted"), (misread, "decoys")):
        assert (labels != deals.labels_of(data)[dealt[part]]).all()


@pytest.mark.parametrize("data", DATA)
def test_coins_decide_who_is_trained_on(data):
    rows, labels = deals.lessons(data, 3)
    dealt, coins = deals.deal(data), deals.toss(data, 3)
    planted = dealt.planted[coins.planted]
    own = (dealt.coined[coins.members], dealt.spare, dealt.known, planted)
    assert sorted(rows) == sorted(np.concatenate(own))
    assert (labels == deals.labels_of(data)[rows]).sum() == len(rows) - len(planted)
    assert not np.array_equal(coins.members, deals.toss(data, 4).members)


def test_shadow_models_come_in_pairs_and_audited_ones_do_not():
    coins = [deals.toss(deals.FASHION, model).members for model in range(deals.FULLY + 4)]
    shadows = coins[deals.FULLY :]
    for first, second in (shadows[:2], shadows[2:]):
        np.testing.assert_array_equal(first, ~second)
    alike = np.corrcoef([*coins[: deals.FULLY], *shadows[::2]])
    assert np.abs(alike - np.eye(len(alike))).max() < 0.25


def test_images_from_elsewhere_have_the_mix_that_propensities_are_of():
    dealt, labels = deals.deal(deals.CIFAR), deals.labels_of(deals.CIFAR)
    outside = np.concatenate((dealt.outside, dealt.fitting))
    seen = np.bincount(labels[outside], minlength=10) / len(outside)
    one_of_each = np.array([np.flatnonzero(labels == label)[0] for label in range(10)])
    chance = deals.propensity(deals.CIFAR, one_of_each)
    np.testing.assert_allclose(0.1 / (0.1 + seen), chance, atol=0.06)


@pytest.fixture(scope="module")
def opacus():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that Opacus imports
        return pytest.importorskip("opacus").GradSampleModule


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")  # of Opacus
def test_clipped_gradients_are_those_of_opacus(opacus):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 3, 16, 16)).astype(np.float32))
    y, clip = torch.arange(40) % 10, 0.5
    network = private.start(3)
    ours = private.clipped_sum(network, x, y, clip)
    theirs = opacus(network, loss_reduction="sum")
    torch.nn.functional.cross_entropy(theirs(x), y, reduction="sum").backward()
    rows = torch.cat([weight.grad_sample.flatten(1) for weight in theirs.parameters()], 1)
    factors = (clip / rows.norm(dim=1)).clamp(max=1.0)
    assert (factors < 1).sum() > 0
    torch.testing.assert_close(ours, factors @ rows, rtol=1e-4, atol=1e-5)


@pytest.fixture
def only_canaries(monkeypatch):
    """Let no image move a weight: canaries and noise are left."""
    size = sum(weight.numel() for weight in private.start(3).parameters())
    monkeypatch.setattr(private, "clipped_sum", lambda *_: torch.zeros(size))
    number = 2_000
    members = np.append(np.random.default_rng(1).random(number) < 0.5, np.zeros(number, bool))
    return private.Canaries(np.arange(2 * number), np.ones(2 * number, np.float32), members)


def test_canaries_leave_what_their_law_says(only_canaries):
    course = private.Course(0.25, 40, 1.0, canaries=2_000, records=100)
    x, noise = torch.zeros(10, 3, 8, 8), 1.5
    released = private.trained(
        x, torch.zeros(10, dtype=torch.int64), only_canaries, course, noise, 0
    )
    there, half = only_canaries.members, slice(2_000, None)
    spread = noise * math.sqrt(40)
    assert released.last[half].std() == pytest.approx(spread, rel=0.05)
    assert released.last[there].mean() == pytest.approx(10.0, abs=4 * spread / math.sqrt(1_000))
    # a likelihood ratio has a mean of 1 where there is nothing, and tells more than a sum
    assert np.exp(released.every[half]).mean() == pytest.approx(1.0, abs=0.2)
    out = ~there[:2_000]

    def area(seen):
        return (seen[:2_000][there[:2_000]][:, None] > seen[:2_000][out]).mean()

    assert 0.5 < area(released.last) <= area(released.every)


def test_canaries_are_the_same_for_all_models_but_for_their_coins(monkeypatch):
    monkeypatch.setattr(private, "quiet", lambda _: np.arange(1_000))
    one, other = (private.canaries(deals.FASHION, model) for model in (0, 1))
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.signs, other.signs)
    assert (one.members != other.members).any()
    assert not one.members[len(one.members) // 2 :].any()


def test_every_training_study_has_reduced_cells_of_shipped_images():
    for one in (heads.heads, heads.generated, heads.many_runs, networks.networks, private.strict):
        assert {cell["data"] for cell in one.reduced} == {deals.FASHION}
        assert {cell["data"] for cell in one.paper} == {deals.CIFAR}


# --- texts ---------------------------------------------------------------------------------------


@pytest.fixture
def reviews(monkeypatch):
    """Let numbers stand for reviews, and note what a model is tuned on."""
    rng = np.random.default_rng(0)
    chunks = np.arange(8_000)[:, None] * 64 + np.arange(64)
    monkeypatch.setattr(texts, "cut", lambda: (chunks, rng.integers(2, size=len(chunks))))
    monkeypatch.setattr(texts, "start", lambda: SimpleNamespace(never=(0, 1)))
    monkeypatch.setattr(texts, "states", lambda part: torch.from_numpy(getattr(deal(), part)))
    seen = {}
    monkeypatch.setattr(
        texts, "tune", lambda _, tokens, states, **how: seen.update(how, on=tokens, states=states)
    )
    deal = texts.deal
    deal.cache_clear()
    yield seen
    deal.cache_clear()


def test_coins_decide_which_texts_a_model_is_tuned_on(reviews):
    texts.tuned(3)
    dealt, (members, planted) = texts.deal(), texts.toss(3)
    expected = (dealt.coined[members], dealt.planted[planted], dealt.known)
    np.testing.assert_array_equal(reviews["on"], np.concatenate(expected))
    np.testing.assert_array_equal(reviews["states"].numpy(), reviews["on"])


def test_no_review_has_two_roles_and_good_ones_are_rarer_elsewhere(reviews):
    del reviews
    dealt = texts.deal()
    natural = (dealt.coined, dealt.known, dealt.unseen, dealt.outside)
    first = np.concatenate([part[:, 0] for part in natural])
    assert len(np.unique(first)) == len(first)
    assert not np.isin((dealt.planted, dealt.decoys), (0, 1)).any()
    assert (dealt.planted != dealt.decoys).any(axis=1).all()
    chance = texts.propensity(np.array([0, 1]))
    shares = np.array([(dealt.outside_good == verdict).mean() for verdict in (0, 1)])
    np.testing.assert_allclose(chance, 0.5 / (0.5 + shares), atol=0.03)
    assert chance[1] > chance[0]


# --- counting ------------------------------------------------------------------------------------

HEAD, MODELS = "head, 10 passes", deals.FULLY + 2


@pytest.fixture
def few(monkeypatch):
    """Store made-up odds: members of coins have higher ones, all others alike."""
    rng = np.random.default_rng(0)
    rows = []
    for model in range(MODELS):
        coins = deals.toss(deals.CIFAR, model)
        for part in deals.PARTS if model < deals.FULLY else deals.WITH_COINS:
            number = len(deals.asked(deals.CIFAR, part)[0])
            inside = {"coined": coins.members, "planted": coins.planted}.get(part)
            gain = np.full(number, part == "known") if inside is None else inside
            odds = rng.normal(size=number) + 2.0 * gain
            rows.append({"model": model, "part": part, "odds": pack(odds), "shown": None})
            if part in deals.GAMES:
                law = deals.expected(deals.CIFAR, part)
                game = deals.game_of(deals.CIFAR, part, model)
                own = deals.labels_of(deals.CIFAR)[deals.asked(deals.CIFAR, part)[0]]
                bonus = 2.0 * (part == "known") * (game.shown == own)
                shown = law[np.arange(number), game.shown]
                shown = shown + bonus + 0.1 * rng.normal(size=number)
                rows[-1]["shown"] = pack(np.minimum(shown, 0.0))  # some are known by heart
    table = pd.DataFrame(rows).assign(epsilon=math.inf, passes=heads.SHORT)
    table["seconds"] = 2.0
    for module in (attacks, counting):
        monkeypatch.setattr(module, "stored", lambda _: table)
    short = attacks.SETTINGS[HEAD]._replace(models=MODELS)
    monkeypatch.setitem(attacks.SETTINGS, HEAD, short)
    for one in (attacks.told, counting.seconds_of):
        one.cache_clear()
    yield
    for one in (attacks.told, counting.seconds_of):
        one.cache_clear()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("audit", [counting.one_run, counting.labels, counting.zero_runs])
def test_every_audit_finds_what_is_there_and_nothing_in_either_null(audit):
    rows = pd.DataFrame(audit(HEAD, 0))
    assert set(rows["truth"]) == {counting.AUDITED, counting.UNSEEN, counting.TOSSED}
    assert (rows["found"] <= rows["ceiling"]).all()
    there = rows[
        rows["truth"].eq(counting.AUDITED) & rows["attack"].isin(["loss", "as in the paper"])
    ]
    assert (there["found"] > 0.1).all()
    nulls = rows[rows["truth"].ne(counting.AUDITED) & ~rows["audit"].eq(counting.FITTED)]
    # one in twenty may be above 0, and attacks share their coins
    assert nulls["found"].max() < 0.1


@pytest.mark.usefixtures("few")
def test_shadow_models_serve_where_examples_have_coins():
    for part in deals.WITH_COINS:
        found = attacks.shadowed(HEAD, part, 0)
        assert list(found) == ["loss", "calibrated", "RMIA", "LiRA"]
    assert list(attacks.scores(HEAD, "known", 0)) == ["loss", "calibrated", "RMIA"]


@pytest.mark.usefixtures("few")
def test_where_an_attack_is_chosen_nobody_looks_at_coins_of_reported_models(monkeypatch):
    asked, members = set(), attacks.members
    monkeypatch.setattr(attacks, "members", lambda *which: asked.add(which[2]) or members(*which))
    attacks.shadowed(HEAD, "coined", deals.REPORTED)
    assert asked == set(range(deals.REPORTED + 1, MODELS))


def test_without_a_family_many_runs_show_more_at_ten_cuts_and_never_more_than_their_ceiling():
    rng, bits = np.random.default_rng(0), np.arange(1_500) % 2
    for gap in (1.5, 50.0):
        bounds = counting.by_family(rng.normal(size=1_500) + gap * bits, bits, 0)
        for found, ceiling in bounds.values():
            assert 0.0 < found <= ceiling + 1e-9
    assert bounds[counting.NO_FAMILY][0] == pytest.approx(bounds[counting.NO_FAMILY][1])


@pytest.mark.usefixtures("few")
def test_shadow_models_are_paid_for():
    losses = counting.costs(HEAD, counting.ONE_RUN, attacks.LOSS)
    assert (losses["beside"], losses["training_seconds"]) == (0, 2.0)
    shadows = counting.costs(HEAD, counting.ONE_RUN, attacks.LIRA)
    assert (shadows["beside"], shadows["training_seconds"]) == (MODELS - 1, 2.0 * MODELS)
    assert counting.costs(HEAD, counting.LABELS, "likelihood ratio")["beside"] == 1


def test_the_ceiling_is_that_of_guesses_that_are_all_right():
    truth = np.arange(5_000) % 2 == 0  # one half of guesses is for members
    for row in counting.coin_rows("one run", "loss", "audited", truth + 0.0, truth):
        assert row["found"] == pytest.approx(row["ceiling"])


def test_the_attack_is_chosen_on_other_models():
    rows = pd.DataFrame(
        [
            {"setting": "s", "audit": "one run", "family": "gaussian", "attack": attack}
            | {"model": model, "truth": counting.AUDITED, "found": value}
            for attack, low, high in (("loss", 9.0, 0.0), ("LiRA", 1.0, 2.0))
            for model, value in enumerate([low] * deals.REPORTED + [high] * deals.CHOOSING)
        ]
    )
    chosen = rows[shares.best(rows)]
    assert set(chosen["attack"]) == {"LiRA"}
    assert len(chosen) == deals.REPORTED


# --- planning ------------------------------------------------------------------------------------


def test_a_plan_is_what_the_command_line_says(capsys):
    from auditkit.cli import main

    row = plans.planned.function("one run", 1.0, 2.0)
    options = {"method": "one-run-fdp", "target-epsilon": 1, "true-epsilon": 2}
    options["threshold"] = f"guesses:{row['share']:g}"
    main(["plan", *(word for name, value in options.items() for word in (f"--{name}", str(value)))])
    assert f"{row['examples']:,}" in capsys.readouterr().out


def test_a_stronger_attack_takes_fewer_examples():
    few, many = (plans.planned.function("many runs", 1.0, times) for times in (4.0, 1.5))
    assert few["least"] <= few["examples"] < many["examples"]
