"""DP-SGD for many models at once, against one model and one autograd call at a time."""

import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import ks_2samp, kstest, norm
from torch import nn

from auditkit.attacks.canaries import crafted_gradient, gradient_direction, logit_score
from auditkit.mechanisms import dp_draws, dp_heads, dp_networks
from auditkit.mechanisms.dp_descent import Draws
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, audit_sgd
from auditkit.models.networks import mlp, small_cnn, small_gpt

RECIPE = {
    "steps": 11,  # more than a block of draws
    "sampling_rate": 0.5,
    "noise_multiplier": 0.7,
    "clip": 1.5,
    "learning_rate": 0.3,
}
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_draws_in_any_order():
    """Let no test depend on which tests came before it."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


def records(n=15, width=6, classes=2):
    return RNG.normal(size=(n, width)), RNG.integers(classes, size=n)


def input_canary(width=6, classes=2):
    return InputCanary(RNG.normal(size=(2, width)), [0, classes - 1])


def gradient_canary(parameters, clip=1.5):
    g = RNG.normal(size=parameters)
    g *= clip / np.linalg.norm(g)
    return GradientCanary([g, -g])


def alone(trained, run, x, y, canary, *, network, seed=0, optimizer="sgd", inside=None, **recipe):
    """Train one model as Algorithm 1 of SUB has it, with the draws that the program made for it.

    All in double precision and in the usual basis. Returns the part of the weights that the records
    can reach, at the end.
    """
    bit, n = int(trained.bits[run]), len(x) + 1
    model = network.double()
    weights = list(model.parameters())
    nn.utils.vector_to_parameters(torch.from_numpy(trained.initial[run]).double(), weights)
    basis = np.eye(inside) if trained._basis is None else trained._basis[:inside].astype(float)
    logits = 1 if not isinstance(trained._network, int) else trained._network
    step_of = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    descent = step_of(weights, lr=recipe["learning_rate"])
    draws, size = Draws(seed, range(run, run + 1)), logits * inside
    rate, clip = recipe["sampling_rate"], recipe["clip"]
    if isinstance(canary, InputCanary):
        x = np.concatenate([x, np.asarray(canary.features)[[bit]]])
        y = np.concatenate([y, np.asarray(canary.labels)[[bit]]])
    for step in range(recipe["steps"]):
        noise = standard(draws, step + 1, size)[0]
        sampled = draws.sampled(step + 1, n, rate)[0] if rate < 1 else np.ones(n)
        total = np.zeros(len(trained.initial[run]))
        for i in np.flatnonzero(sampled[: len(x)]):
            said = model(torch.from_numpy(x[i])[None])
            if said.shape[-1] == 1:
                loss = F.binary_cross_entropy_with_logits(said[0, 0], torch.tensor(float(y[i])))
            else:
                loss = F.cross_entropy(said.flatten(0, -2), torch.tensor(y[i]).reshape(-1))
            own = torch.autograd.grad(loss, weights)
            flat = torch.cat([part.flatten() for part in own]).numpy()
            total += flat * min(1.0, clip / max(np.linalg.norm(flat), 1e-30))
        if isinstance(canary, GradientCanary) and sampled[-1]:
            total += np.asarray(canary.gradients)[bit]
        spread = recipe["noise_multiplier"] * clip
        drawn = noise.reshape(logits, inside)
        total += spread * (drawn @ basis if trained._basis is not None else drawn).reshape(-1)
        at = 0
        for weight in weights:
            part = total[at : at + weight.numel()] / (rate * n)
            weight.grad = torch.from_numpy(part).reshape(weight.shape)
            at += weight.numel()
        descent.step()
    final = torch.cat([weight.detach().flatten() for weight in weights]).numpy()
    return final, basis


def standard(draws, step, size):
    """Return the normal numbers of a step, (models, size)."""
    noise = torch.zeros(len(draws.models), size)
    draws.add_noise(noise, step, 1.0)
    return noise.numpy().astype(float)


def check_alone(trained, runs, x, y, canary, **how):
    assert set(trained.bits[list(runs)]) == {0, 1}
    for run in runs:
        final, basis = alone(trained, run, x, y, canary, **how)
        found = trained.weights[run, -1].astype(float)
        if trained._basis is not None:  # outside the span another stream draws
            logits = trained._network
            final = final.reshape(logits, -1) @ basis.T
            found = found.reshape(logits, -1) @ basis.T
        np.testing.assert_allclose(found, final, rtol=2e-4, atol=2e-5)


# --- one at a time -------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("rate", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("logits", [1, 10])
@pytest.mark.parametrize("width", [6, 30])
@pytest.mark.parametrize("kind", ["input", "gradient"])
def test_a_head_is_trained_as_by_autograd_one_example_at_a_time(
    kind, width, logits, rate, optimizer
):
    classes = max(2, logits)
    x, y = records(15, width, classes)
    planted = kind == "gradient"
    canary = gradient_canary(logits * width) if planted else input_canary(width, classes)
    recipe = RECIPE | {"sampling_rate": rate}
    start = 0.1 * RNG.normal(size=logits * width)
    trained = audit_sgd(
        x, y, canary, runs=4, logits=logits, optimizer=optimizer, initial=start, **recipe
    )
    spanning = 15 + ((2 if logits == 1 else 20) if planted else 2)
    turned = optimizer == "sgd" and spanning < width
    assert (trained._basis is not None) == turned
    check_alone(
        trained, [1, 2], x, y, canary, optimizer=optimizer,
        inside=spanning - (planted and logits == 1) if turned else width,  # g and -g are one
        network=nn.Linear(width, logits, bias=False), **recipe,
    )  # fmt: skip


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(
    ("make", "rank"),
    [
        (partial(mlp, 6, 3, hidden=(5, 4)), True),
        (lambda: nn.Sequential(nn.Linear(6, 4, bias=False), nn.Tanh(), nn.Linear(4, 3)), True),
        (lambda: nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Linear(4, 3)), False),
    ],
)
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("kind", ["input", "gradient"])
def test_a_network_is_trained_as_by_autograd(kind, rate, make, rank, optimizer):
    x, y = records(9, 6, 3)
    size = sum(weight.numel() for weight in make().parameters())
    canary = gradient_canary(size) if kind == "gradient" else input_canary(6, 3)
    recipe = RECIPE | {"sampling_rate": rate, "learning_rate": 0.05}
    trained = audit_sgd(x, y, canary, runs=4, network=make, optimizer=optimizer, seed=5, **recipe)
    assert isinstance(dp_networks.clipped_sum(make()), dp_networks._ByRank) is rank
    assert not np.array_equal(trained.initial[0], trained.initial[1])
    check_alone(
        trained, [1, 2], x, y, canary, network=make(), seed=5, optimizer=optimizer, inside=size,
        **recipe,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "x", "y"),
    [
        (partial(small_cnn, 2, side=4), RNG.normal(size=(6, 1, 4, 4)), RNG.integers(2, size=6)),
        (
            partial(small_gpt, 5, 3, width=4, heads=2, blocks=1),
            RNG.integers(5, size=(6, 3)),
            RNG.integers(5, size=(6, 3)),
        ),
    ],
)
def test_convolutions_and_language_models_are_trained_as_by_autograd(make, x, y):
    size = sum(weight.numel() for weight in make().parameters())
    canary = InputCanary(x[:2][::-1], y[:2])
    recipe = RECIPE | {"steps": 3, "learning_rate": 0.05, "noise_multiplier": 0.1}
    trained = audit_sgd(x, y, canary, runs=2, network=make, **recipe)
    check_alone(trained, [0, 1], x, y, canary, network=make(), inside=size, **recipe)


@pytest.mark.parametrize("rank", [True, False])
def test_networks_may_be_clipped_in_pieces(rank, monkeypatch):
    layers = [nn.Linear(6, 4), *([] if rank else [nn.LayerNorm(4)]), nn.Linear(4, 3)]
    x, y = records(20, 6, 3)
    ask = {"runs": 5, "network": lambda: nn.Sequential(*layers), **RECIPE}
    canary, start = input_canary(6, 3), 0.1 * RNG.normal(size=51 if not rank else 43)
    whole = audit_sgd(x, y, canary, initial=start, **ask)
    monkeypatch.setattr(dp_networks, "WORK", 8_000)
    pieces = audit_sgd(x, y, canary, initial=start, **ask)
    np.testing.assert_allclose(pieces.weights, whole.weights, rtol=1e-4, atol=1e-6)


# --- draws ---------------------------------------------------------------------------------------


def test_a_model_does_not_depend_on_its_company(monkeypatch):
    x, y = records(15, 30)
    ask = {"canary": input_canary(30), "snapshots": [3, 11], **RECIPE}
    many = audit_sgd(x, y, runs=9, **ask)
    monkeypatch.setattr(dp_heads, "WORK", 20_000)
    few = audit_sgd(x, y, runs=5, **ask)
    np.testing.assert_allclose(few.weights, many.weights[:5], rtol=1e-5, atol=1e-6)
    longer = audit_sgd(x, y, runs=9, **(ask | {"steps": 20}))
    np.testing.assert_array_equal(longer.weights, many.weights)


def test_the_seed_decides():
    x, y = records()
    same, again, other = (
        audit_sgd(x, y, gradient_canary(6), runs=3, seed=seed, **RECIPE).initial
        + audit_sgd(x, y, InputCanary(x[:2], y[:2]), runs=3, seed=seed, **RECIPE).weights[:, 0]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(same, again)
    assert not np.isclose(same, other).any()


def test_no_two_models_share_their_noise():
    noise = standard(Draws(3, range(5000)), 1, 2)
    assert len(np.unique(noise, axis=0)) == 5000
    assert ks_2samp(noise[:, 0], norm.rvs(size=5000, random_state=0)).pvalue > 1e-3
    assert abs(np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1]) < 4 / math.sqrt(5000)


@pytest.mark.parametrize("rate", [0.0625, 0.1, 1 / 3, 0.999, 0.001])
def test_records_are_sampled_at_the_rate_and_independently(rate):
    sampled = np.stack([Draws(0, range(50)).sampled(step, 501, rate) for step in range(8)], 1)
    assert sampled.shape == (50, 8, 501)
    assert set(np.unique(sampled)) <= {0, 1}
    assert abs(sampled.mean() - rate) < 4 * math.sqrt(rate * (1 - rate) / sampled.size)
    sizes = sampled.sum(2).ravel()
    assert sizes.var() == pytest.approx(501 * rate * (1 - rate), rel=4 * math.sqrt(2 / 400))
    assert len(np.unique(sizes)) > 1


def test_words_are_those_of_philox():
    """Against numpy's, which counts up before it draws, under another key and other places."""
    place, step, model, stream, keys = 7, 11, 1300, 2, np.array([123456789, 4000000000], np.uint64)
    words = np.empty((4, 16), dtype=np.uint64)
    dp_draws.fill_words(words, np.uint64(step), np.uint64(model), np.uint64(stream), *keys)
    slow = philox([place, step, model, stream], keys.tolist())
    assert words[:, place].tolist() == slow


def philox(counter, key):
    """Salmon et al., section 3.3, as printed, in whole numbers of any size."""
    x, k = list(counter), list(key)
    for _ in range(10):
        left, right = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [
            right // 2**32 ^ x[1] ^ k[0], right % 2**32,
            left // 2**32 ^ x[3] ^ k[1], left % 2**32,
        ]  # fmt: skip
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return x


def test_philox_gives_the_published_numbers():
    """Known answers of the authors' library, for counters and keys of all ones, and of π."""
    ones = [2**32 - 1] * 4
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(ones, ones[:2]) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    digits = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    found = philox(digits, [0xA4093822, 0x299F31D0])
    assert found == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_noise_is_normal_far_out_too():
    numbers = np.sort(standard(Draws(7, range(2000)), 3, 501).ravel())
    assert kstest(numbers, "norm").pvalue > 1e-3
    far = np.array([2.0, 3.0, 4.0, 4.5])
    for tail in (numbers, -numbers):
        expected = len(numbers) * norm.sf(far)
        seen = (tail[:, None] > far).sum(0)
        assert (abs(seen - expected) < 4.5 * np.sqrt(expected) + 1).all()
    steps = np.stack([standard(Draws(7, range(40)), step, 500).ravel() for step in range(1, 40)])
    assert abs(np.corrcoef(steps) - np.eye(39)).max() < 5 / math.sqrt(20_000)


def test_normal_numbers_are_those_of_box_and_muller():
    words = np.random.default_rng(0).integers(2**32, size=(2, 2000), dtype=np.uint64)
    words[0, :3] = 0, 1, 2**32 - 1
    found = np.array([dp_draws.normal_pair(*pair) for pair in words.T])
    radius = np.sqrt(-2 * np.log((words[0] // 2 + 0.5) / 2.0**31))
    angle = np.where(words[1] < 2**31, words[1], words[1] - 2.0**32) * math.pi / 2**33
    sine, cosine = np.sin(angle), np.cos(angle)
    swap, turn = (words[1] & 2) > 0, np.where(words[1] & 1, -1, 1)
    slow = np.where(swap, [sine, cosine], [cosine, sine]) * radius * turn
    np.testing.assert_allclose(found.T, slow, atol=5e-5)  # u rounds to 1


# --- worlds and looks ----------------------------------------------------------------------------


def test_outside_the_span_the_weights_are_the_walk_of_the_noise():
    """All that is there after t steps is noise of deviation η σ C √t / |B|."""
    x, y = records(5, 40)
    trained = audit_sgd(
        x, y, input_canary(40), runs=2000, snapshots=[4, 9], **(RECIPE | {"steps": 9})
    )
    outside = np.linalg.svd(np.concatenate([x, np.zeros((35, 40))]))[2][-1]
    outside -= trained._basis[:7].T @ (trained._basis[:7] @ outside)
    moved = trained.along(outside / np.linalg.norm(outside))
    step = 0.3 * 0.7 * 1.5 / (0.5 * 6)
    walk = np.stack([moved[:, 0] / 2, (moved[:, 1] - moved[:, 0]) / math.sqrt(5)], 1) / step
    assert np.cov(walk.T) == pytest.approx(np.eye(2), abs=5 / math.sqrt(2000))


def test_without_noise_and_sampling_the_final_sum_is_known():
    """SUB, scenario S1: no other record has a gradient, so the sum is T times the canary's."""
    g = crafted_gradient([3.0, 0.5, 2.0], clip=2.0)
    trained = audit_sgd(
        np.zeros((4, 3)), [0, 1, 0, 1], GradientCanary(g), runs=2, steps=10, sampling_rate=1.0,
        noise_multiplier=0.0, clip=2.0, learning_rate=0.1,
    )  # fmt: skip
    sums = -5 / 0.1 * trained.along(g / 2.0)[:, 0]
    np.testing.assert_allclose(sums, [[20, -20], [-20, 20]], rtol=1e-5)


def test_the_final_sum_follows_its_law():
    """SUB, eqs. (2) and (3): a mixture over how often the canary was sampled."""
    rate, sigma, steps, runs = 0.25, 0.8, 6, 6000
    trained = audit_sgd(
        np.zeros((0, 2)), [], GradientCanary([[1.0, 0.0], [-1.0, 0.0]]), runs=runs, steps=steps,
        sampling_rate=rate, noise_multiplier=sigma, clip=1.0, learning_rate=1.0,
    )  # fmt: skip
    sums = -rate * trained.along([1.0, 0.0])[:, 0] * np.where(trained.bits == 0, 1, -1)
    rng = np.random.default_rng(1)
    exact = rng.binomial(steps, rate, 20_000) + rng.normal(0, sigma * math.sqrt(steps), 20_000)
    assert ks_2samp(sums, exact).pvalue > 1e-3


def test_the_two_worlds_differ_in_the_canary_only():
    x, y = records()
    ask = {"runs": 2, "bits": [0, 0], **RECIPE}
    here, there = (
        audit_sgd(x, y, InputCanary([z, z], [0, 0]), **(ask | {"bits": bits}))
        for z, bits in ((x[0], [0, 1]), (x[0], [1, 0]))
    )
    np.testing.assert_allclose(here.weights, there.weights, rtol=1e-6)
    other = audit_sgd(x, y, InputCanary([x[0], -x[0]], [0, 0]), **(ask | {"bits": [0, 1]}))
    np.testing.assert_allclose(other.weights[0], here.weights[0], rtol=1e-6)
    assert not np.allclose(other.weights[1], here.weights[1])


def test_scores_are_high_for_the_canary():
    x, y = records(20, 8)
    z = 3 * RNG.normal(size=8)
    ask = {"runs": 200, **(RECIPE | {"noise_multiplier": 0.3})}
    mislabelled = audit_sgd(x, y, InputCanary([z, z], [1, 0]), **ask)
    planted = GradientCanary(crafted_gradient(np.arange(8.0), clip=1.5))
    gradient = audit_sgd(x, y, planted, **ask)
    for bits, scores in (
        (mislabelled.bits, logit_score(mislabelled.logits([z, z])[:, -1], [1, 0])),
        (gradient.bits, gradient.along(gradient_direction(planted.gradients))[:, -1]),
    ):
        assert scores[bits == 1].min() > scores[bits == 0].mean()
        assert scores[bits == 0].max() < scores[bits == 1].mean()


@pytest.mark.parametrize(("logits", "optimizer"), [(1, "sgd"), (3, "sgd"), (1, "adam")])
def test_logits_and_moves_are_those_of_the_weights(logits, optimizer):
    x, y = records(9, 30, max(2, logits))
    trained = audit_sgd(
        x, y, input_canary(30), runs=4, logits=logits, optimizer=optimizer, snapshots=[2, 11],
        initial=RNG.normal(size=(4, 30 * logits)), **RECIPE,
    )  # fmt: skip
    new, directions = RNG.normal(size=(5, 30)), RNG.normal(size=(2, 30 * logits))
    heads = trained.weights.reshape(4, 2, logits, 30)
    expected = np.einsum("rscd,nd->rsnc", heads, new)
    found = trained.logits(new)
    np.testing.assert_allclose(
        found[..., None] if logits == 1 else found, expected, rtol=1e-4, atol=1e-4
    )
    moved = (trained.weights - trained.initial[:, None]) @ directions.T
    np.testing.assert_allclose(trained.along(directions), moved, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(trained.along(directions[0]), moved[..., 0], rtol=1e-4, atol=1e-4)


def test_logits_of_networks_are_those_of_the_module():
    x, y = records(9, 6, 3)
    make = partial(mlp, 6, 3)
    trained = audit_sgd(x, y, input_canary(6, 3), runs=3, network=make, snapshots=[1, 11], **RECIPE)
    module = make()
    nn.utils.vector_to_parameters(torch.from_numpy(trained.weights[2, 0]), module.parameters())
    said = module(torch.from_numpy(x).float()).detach().numpy()
    np.testing.assert_allclose(trained.logits(x)[2, 0], said, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("network", [None, partial(mlp, 30, 2, hidden=(3,))])
def test_what_is_kept_is_what_the_weights_would_have_given(network, monkeypatch):
    x, y = records(9, 30)
    ask = {"runs": 7, "network": network, "snapshots": [2, 5, 11], **RECIPE}
    canary = input_canary(30)
    whole = audit_sgd(x, y, canary, **ask)
    monkeypatch.setattr(dp_heads, "WORK", 20_000)
    monkeypatch.setattr(dp_networks, "WORK", 20_000)
    kept = audit_sgd(x, y, canary, keep=lambda some: some.logits(x)[:, 0], **ask)
    np.testing.assert_allclose(kept.kept, whole.logits(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="weights were not kept"):
        _ = kept.weights
    moves = audit_sgd(x, y, canary, keep=lambda some: some.along(whole.initial[0])[:, 0], **ask)
    np.testing.assert_allclose(moves.kept, whole.along(whole.initial[0]), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="a row for each of"):
        audit_sgd(x, y, canary, keep=lambda _: [1.0], **ask)


def test_memory_does_not_grow_with_the_runs():
    """Linux's own count of the most memory held, taken anew before each call."""

    def peak(runs):
        with open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123
            file.write("5")
        before = resident("VmRSS")
        audit_sgd(x, y, canary, runs=runs, keep=lambda some: some.logits(z)[:, 0], **recipe)
        return resident("VmHWM") - before

    def resident(which):
        with open("/proc/self/status") as file:  # noqa: PTH123
            return next(int(line.split()[1]) for line in file if line.startswith(which)) / 1e3

    if not torch.sys.platform.startswith("linux"):
        pytest.skip("memory is counted by Linux")
    x, y = records(300, 600, 10)
    z = RNG.normal(size=(2, 600))
    canary = InputCanary(z, [0, 1])
    recipe = RECIPE | {"steps": 8, "sampling_rate": 0.5}
    recipe |= {"logits": 10, "learning_rate": 0.01}
    peak(20)
    assert peak(300) < 60  # megabytes


# --- the border ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"features": np.zeros(3)}, "features must have 2 dimension"),
        ({"features": [[np.nan] * 6] * 15}, "features must hold finite"),
        ({"labels": [0] * 14}, "labels must have shape"),
        ({"labels": [2] * 15}, "labels must lie in 0 to 1"),
        ({"canary": InputCanary(np.zeros((2, 5)), [0, 1])}, r"of shape \(2, 6\), got \(2, 5\)"),
        ({"canary": InputCanary(np.zeros((2, 6)), [0, 2])}, "canary.labels must lie"),
        ({"canary": GradientCanary(np.ones((2, 5)))}, "gradients must have 6 numbers"),
        ({"canary": GradientCanary(np.ones((2, 6)))}, "norm of at most clip = 1.5, got 2.4"),
        ({"runs": 0}, "runs must be a whole number of at least 1"),
        ({"steps": 0}, "steps must be a whole"),
        ({"sampling_rate": 0.0}, "sampling_rate must lie in"),
        ({"sampling_rate": 1.1}, r"sampling_rate must lie in \(0, 1\]"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"clip": 0.0}, "clip must be above 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"optimizer": "lamb"}, "optimizer must be one of 'sgd', 'adam'"),
        ({"logits": 0}, "logits must be a whole"),
        ({"logits": 2, "network": partial(mlp, 6, 2)}, "network has its own"),
        ({"network": partial(mlp, 5, 2)}, "inputs must be what network takes"),
        ({"network": partial(mlp, 6, 2), "canary": InputCanary(np.zeros((2, 5)), [0, 1])}, "like"),
        ({"initial": np.zeros(5)}, "initial must have shape"),
        ({"initial": np.zeros((3, 6))}, "initial must have shape"),
        ({"bits": [0, 1]}, "bits must hold one for each of 4 runs"),
        ({"bits": [0, 1, 2, 0]}, "bits must hold 0, 1 only"),
        ({"snapshots": []}, "snapshots must be rising steps from 1 to 11"),
        ({"snapshots": [0]}, "snapshots must be rising"),
        ({"snapshots": [3, 3]}, "snapshots must be rising"),
        ({"snapshots": [12]}, "snapshots must be rising"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(change, match):
    x, y = records()
    ask = {"features": x, "labels": y, "canary": InputCanary(x[:2], y[:2]), "runs": 4, **RECIPE}
    with pytest.raises(ValueError, match=match):
        audit_sgd(**(ask | change))


def test_a_canary_is_one_of_two_kinds():
    x, y = records()
    with pytest.raises(TypeError, match="canary must be an InputCanary or a GradientCanary"):
        audit_sgd(x, y, (x[:2], y[:2]), runs=4, **RECIPE)
    with pytest.raises(ValueError, match="features must have two rows"):
        InputCanary(x[:3], y[:2])
    with pytest.raises(ValueError, match="labels must have two rows"):
        InputCanary(x[:2], y[:3])
    with pytest.raises(ValueError, match="gradients must have two rows"):
        GradientCanary(x[:3])


def test_new_features_and_directions_must_fit():
    x, y = records()
    trained = audit_sgd(x, y, InputCanary(x[:2], y[:2]), runs=4, **RECIPE)
    with pytest.raises(ValueError, match="features must have 6 columns"):
        trained.logits(np.zeros((1, 5)))
    with pytest.raises(ValueError, match="directions must have 6 numbers"):
        trained.along(np.zeros(5))


def test_models_that_diverge_are_named():
    x, y = records()
    with pytest.raises(FloatingPointError, match="the first is number 0: take a smaller"):
        audit_sgd(
            x, y, InputCanary(x[:2], y[:2]), runs=4,
            **(RECIPE | {"learning_rate": 1e38, "noise_multiplier": 1e3}),
        )  # fmt: skip
