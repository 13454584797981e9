"""Images, generated images and networks of the chapter: who is what, and what the rows say."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from experiments.panoramia import audits, dp_images, images, reading, simulation
from opacus import PrivacyEngine
from scipy.stats import binom
from torch.utils.data import DataLoader, TensorDataset

from auditkit import panoramia
from auditkit.attacks.generated import Mixture
from auditkit.evidence import PairedScores
from auditkit.experiment import stored
from auditkit.models.generators import Examples
from auditkit.models.networks import mlp
from auditkit.models.training import Models


def keys(examples):
    return {row.tobytes() for row in np.ascontiguousarray(examples.inputs)}


def normal(number, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return Examples(rng.normal(size=(number, 2)) + shift, rng.integers(2, size=number))


def test_images_are_dealt_once_each():
    own = images.world(0)
    assert len(own.members) == len(own.others) == images.MEMBERS
    dealt = keys(own.spare), keys(own.train), keys(own.real)
    assert set().union(*dealt) == keys(own.members)
    groups = (*dealt, keys(own.others), keys(own.unseen_train), keys(own.unseen))
    for one, other in itertools.combinations(groups, 2):
        assert not one & other


def test_what_is_compared_tosses_the_same_coins():
    assert images.coins_of(1) == images.coins_of(1) != images.coins_of(2)


def test_generated_images_lie_on_the_grid_of_real_ones():
    everything, steps, most = images.images()
    rng = np.random.default_rng(0)
    made = images.rounded(Examples(20 * rng.normal(size=(500, images.DIRECTIONS)), np.zeros(500)))
    for found in (everything.inputs[:500], made.inputs):
        counts = found / steps
        np.testing.assert_allclose(counts, np.rint(counts), atol=1e-3)
        assert (np.abs(counts) <= most + 1e-3).all()


def test_training_settles_in_its_last_fifth():
    rng = np.random.default_rng(0)
    network = partial(mlp, 8, 4)
    examples = rng.normal(size=(500, 8)), rng.integers(4, size=500)
    how = {"rate": 1e-2, "batch_size": 50, "seed": 0}
    train = partial(audits.settled, network, *examples, **how)
    # fewer than five passes have no last fifth
    four, slow = (train(passes=passes).weights for passes in (4, 5))
    fast = train(passes=1, start=Models(network, four)).weights
    for name, before in four.items():
        assert 0 < (slow[name] - before).norm() < 0.3 * (fast[name] - before).norm()


def test_a_curve_counts_the_best_guesses():
    rng = np.random.default_rng(0)
    scores = PairedScores(rng.normal(1, 1, 400), rng.normal(0, 1, 400))
    coins = rng.random(400) < 0.5
    shown = scores.shown(coins)
    for row in audits.curve(scores, coins):
        best = np.sort(shown)[-row["guesses"]]
        assert row["correct"] == coins[shown >= best].sum()
        assert row["precision"] == row["correct"] / row["guesses"]
        if row["lower"] > 0.0:
            chance = 1.0 / (1.0 + np.exp(-row["lower"]))
            tail = binom.sf(row["correct"] - 1, row["guesses"], chance)
            assert tail == pytest.approx(0.025 / len(coins))
    whole = panoramia(shown, shown, coins).c_lower
    assert max(row["lower"] for row in audits.curve(scores, coins)) <= whole + 1e-9


def test_the_simulation_knows_its_truth():
    rows = simulation.known(2.0, 0.0, 0.0, 4000, 20, np.random.default_rng(0))
    for row in rows:
        assert 1.4 < row["c_lower"] < 2.6
        assert abs(row["difference"]) < 0.4
    blurred = simulation.known(2.4, 0.0, 4.0, 10_000, 3, np.random.default_rng(0))[0]
    assert blurred["correction"] == simulation.UNION
    assert blurred["difference"] > 1.0  # with ε = 0
    assert blurred["c_missed"] == blurred["both_missed"] == 0.0


def test_private_training_hides_a_mistake_in_scale_nowhere():
    examples = Examples(
        np.random.default_rng(0).normal(size=(300, images.DIRECTIONS)).astype(np.float32),
        np.arange(300) % 10,
    )
    one, other = (dp_images.fit_private(examples, 8.0, 2, 5, (8,)) for _ in range(2))
    np.testing.assert_array_equal(one.logits(examples.inputs), other.logits(examples.inputs))
    network = one.module(0)
    first = network[1].weight.detach().numpy() * dp_images.SCALE
    hidden = np.maximum(
        examples.inputs / dp_images.SCALE @ first.T + network[1].bias.detach().numpy(), 0
    )
    last = hidden @ network[3].weight.detach().numpy().T + network[3].bias.detach().numpy()
    np.testing.assert_allclose(one.logits(examples.inputs)[0], last, atol=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")  # of Opacus
def test_private_training_is_that_of_opacus_with_a_gradient_for_each_example():
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(600, images.DIRECTIONS)).astype(np.float32)
    examples = Examples(inputs, np.arange(600) % images.CLASSES)
    made = dp_images.fit_private(examples, 8.0, 2, 5, (8,))
    torch.manual_seed(5)
    network = mlp(images.DIRECTIONS, images.CLASSES, hidden=(8,))
    data = TensorDataset(
        torch.from_numpy(inputs / np.float32(dp_images.SCALE)), torch.from_numpy(examples.labels)
    )
    wrapped, optimiser, loader = PrivacyEngine(accountant="rdp").make_private_with_epsilon(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=dp_images.RATE),
        data_loader=DataLoader(
            data, batch_size=dp_images.BATCH, generator=torch.Generator().manual_seed(5)
        ),
        target_epsilon=8.0,
        target_delta=dp_images.DELTA,
        epochs=2,
        max_grad_norm=dp_images.CLIP,
        noise_generator=torch.Generator().manual_seed(6),
    )
    for _ in range(2):
        for rows in loader.batch_sampler:
            x, y = data[rows]
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(wrapped(x), y).backward()
            optimiser.step()
    scale = torch.tensor(dp_images.SCALE)
    for name, weight in network.named_parameters():
        found = made.weights[name][0] * (scale if name == "1.weight" else 1.0)
        torch.testing.assert_close(found, weight.detach(), rtol=1e-3, atol=1e-4)


def test_every_model_is_audited_in_four_ways_with_equal_coins():
    parts = [normal(100, 0, 1), normal(100, 1, 2), normal(60, 0, 3), normal(60, 1, 4)]
    mixed = Mixture(*parts)

    def helper(examples):
        return examples.inputs[:, 0]

    rows = audits.all_rows(
        mixed,
        mixed,
        helper,
        {audits.TARGET: helper, audits.NULL: helper},
        pairs=(30, 60),
        flips=2,
        coins=3,
        labels="any",
    )
    assert len(rows) == 2 * 2 * 2 * (2 + 2 + 4)
    names = (audits.PANORAMIA, audits.REAL, audits.ONE_RUN, audits.MEMBERS_ONLY)
    assert {row["audit"] for row in rows} == set(names)
    for audit in (audits.ONE_RUN, audits.MEMBERS_ONLY):
        seen = {row["attack"] for row in rows if row["audit"] == audit}
        assert seen == {"loss", audits.NESTED}
    same = [
        [row["difference"] for row in rows if row["release"] == name]
        for name in (audits.TARGET, audits.NULL)
    ]
    assert same[0] == same[1]


def test_a_model_is_held_against_its_null_toss_by_toss():
    rows = [
        {"release": release, "seed": seed, "flip": flip, "epochs": 5, "difference": shown}
        for release, found in (("audited", (3.0, 2.0, 5.0)), ("null", (1.0, 0.5, 0.0)))
        for (seed, flip), shown in zip(((0, 0), (0, 1), (1, 0)), found, strict=True)
    ]
    held = reading.against_null(pd.DataFrame(rows))
    assert held["beyond"].tolist() == [2.0, 1.5, 5.0]
    assert set(held["null_95"]) == {"0.95"}


def test_a_table_of_audits_has_a_row_for_each_setting_and_names_every_audit():
    private = stored("pan-private").query("epochs == 30 and pairs == 500 and network == '64'")
    shown = reading.audit_table(private, ["epsilon"], ("member_accuracy",))
    assert shown["ε of the training"].tolist() == [1.0, 15.0, np.inf]
    assert {"c_lb", "beyond the null", reading.OURS, reading.THEIRS, "RM;RN", "O(1)"} < set(shown)


def test_along_the_recall_every_classifier_ends_with_all_guesses():
    curves = reading.along_recall(stored("pan-tables-curves"))
    assert set(curves["line"]) == set(reading.GUESSES)
    last = curves.loc[curves.groupby("line")["guesses"].idxmax()]
    assert (last["recall"] == 1.0).all()


def test_losses_of_a_trial_come_in_tenths():
    own = images.world(0).real[:100]
    models = images.train(own, 1, 0)
    exact, stepped = (images.loss_of(models, trial)(own) for trial in (False, True))
    np.testing.assert_allclose(10 * stepped, np.round(10 * exact), atol=1e-4)


def test_losses_of_every_kind_are_told_under_every_model():
    rows = images.losses(0, 1, trial=True)
    assert len(rows) == 3 * 5 * 53
    assert {row["release"] for row in rows} == {audits.TARGET, audits.NULL, "helper"}
