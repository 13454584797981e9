"""One private training, against Opacus and against one example at a time in double precision."""

import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import ks_2samp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from auditkit import dp_sgd_epsilon
from auditkit.mechanisms.dp_descent import Draws
from auditkit.mechanisms.private_training import fit_private
from auditkit.models.networks import linear, mlp, resnet8, small_cnn, small_gpt

N, CLASSES = 70, 3  # more examples than have their gradients side by side
RNG = np.random.default_rng(0)
IMAGES, ROWS = RNG.normal(size=(N, 3, 8, 8)), RNG.normal(size=(N, 6))
LABELS = RNG.integers(CLASSES, size=N)
TEXTS = RNG.integers(9, size=(N, 5))
SOFT = RNG.dirichlet(np.ones(CLASSES), size=N)
ONCE = {"epsilon": math.inf, "steps": 1, "sampling_rate": 1.0, "learning_rate": 1.0, "seed": 3}
CLASSIFIERS = {
    "resnet8": (partial(resnet8, CLASSES), IMAGES, 13.5),
    "small_cnn": (partial(small_cnn, CLASSES, channels=3, side=8), IMAGES, 1.23),
    "mlp": (partial(mlp, 6, CLASSES, hidden=(5,)), ROWS, 1.2),
}


def weights_of(network):
    return nn.utils.parameters_to_vector(network.parameters()).detach()


def first(make, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def moved(make, x, y, **recipe):
    """Return how far a training goes from its start."""
    model = fit_private(make, x, y, **recipe)
    return weights_of(model.module) - weights_of(first(make, recipe["seed"]))


@pytest.fixture(scope="module")
def opacus():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that Opacus imports
        from opacus import PrivacyEngine
    return PrivacyEngine


def their_step(engine, network, x, y, *, clip, batch, noise=0.0, poisson=False, generator=None):
    """Take one step with Opacus; return the norms of the gradients."""
    data = TensorDataset(torch.from_numpy(x).float(), torch.from_numpy(y))
    private, descent, loader = engine().make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=1.0),
        data_loader=DataLoader(data, batch_size=batch, generator=generator),
        noise_multiplier=noise,
        max_grad_norm=clip,
        poisson_sampling=poisson,
        noise_generator=generator,
    )
    examples, labels = next(iter(loader))
    F.cross_entropy(private(examples), labels).backward()
    squares = sum(one.flatten(1).square().sum(1) for one in descent.grad_samples)
    descent.step()
    return squares.sqrt()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")  # of Opacus
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_clipped_gradients_are_those_of_opacus(name, opacus):
    make, x, clip = CLASSIFIERS[name]
    theirs = first(make, 3)
    norms = their_step(opacus, theirs, x, LABELS, clip=clip, batch=N)
    assert 0.1 < (norms > clip).float().mean() < 0.9
    gone = weights_of(theirs) - weights_of(first(make, 3))
    found = moved(make, x, LABELS, clip=clip, **ONCE)
    assert (found - gone).abs().max() < 1e-5 * gone.abs().max()


@pytest.mark.parametrize("name", ["resnet8", "small_cnn"])
def test_how_images_lie_in_memory_changes_nothing(name):  # with hooks of Opacus 1.6.0 it does
    make, x, clip = CLASSIFIERS[name]
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    here, there = (moved(make, images, LABELS, clip=clip, **ONCE) for images in (x, last))
    assert (here - there).abs().max() < 1e-5 * here.abs().max()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_a_step_follows_the_law_of_opacus(opacus):
    start, n, runs = first(partial(linear, 6, CLASSES), 0), 12, 200
    x, y = ROWS[:n], LABELS[:n]
    recipe = {"epsilon": 30.0, "steps": 1, "sampling_rate": 0.5, "clip": 1.0, "learning_rate": 1.0}
    generator, ours, theirs = torch.Generator().manual_seed(0), [], []
    for seed in range(runs):
        model = fit_private(partial(copy.deepcopy, start), x, y, **recipe, seed=seed)
        ours.append(weights_of(model.module) - weights_of(start))
        other, noise = copy.deepcopy(start), model.privacy.noise_multiplier
        their_step(
            opacus, other, x, y, clip=1.0, batch=n // 2, noise=noise, poisson=True,
            generator=generator,
        )  # fmt: skip
        theirs.append(weights_of(other) - weights_of(start))
    ours, theirs = torch.stack(ours), torch.stack(theirs)
    pull = ours.mean(0) / ours.mean(0).norm()
    assert pull @ theirs.mean(0) > 0.05  # the gradient is not lost in the noise
    for direction in (pull, *torch.eye(len(pull))[:3]):
        assert ks_2samp(ours @ direction, theirs @ direction).pvalue > 1e-3
    assert ours.var(0).sum() == pytest.approx(theirs.var(0).sum(), rel=0.1)


def alone(make, x, y, members, *, privacy, clip, learning_rate, averaging, seed):
    """Train as Algorithm 1 of Abadi et al. has it, with the draws that were made for it."""
    network, draws = first(make, seed).double(), Draws(seed, range(1))
    parameters = list(network.parameters())
    x, kept = torch.from_numpy(x), 0.0
    x = x.double() if x.is_floating_point() else x
    q, batch = privacy.sampling_rate, privacy.sampling_rate * len(x)
    for step in range(1, privacy.steps + 1):
        total = torch.zeros(1, sum(one.numel() for one in parameters))
        draws.add_noise(total, step, privacy.noise_multiplier * clip)
        total = total[0].double()
        for i in np.flatnonzero(draws.sampled(step, len(x), q)[0] * members):
            logits = torch.log_softmax(network(x[i : i + 1]), -1).flatten(0, -2)
            truth = np.eye(logits.shape[-1])[y[i]] if y.dtype.kind == "i" else y[i]
            truth = torch.from_numpy(truth).reshape(logits.shape)
            loss = -(truth * logits).sum(-1).mean()
            flat = torch.cat([one.flatten() for one in torch.autograd.grad(loss, parameters)])
            total += flat * min(1.0, clip / float(flat.norm()))
        with torch.no_grad():
            moved = weights_of(network) - learning_rate * total / batch
            nn.utils.vector_to_parameters(moved, parameters)
        kept = averaging * kept + (1.0 - averaging) * moved
    return kept / (1.0 - averaging**privacy.steps)


@pytest.mark.parametrize(
    ("make", "x", "y"),
    [
        (*CLASSIFIERS["resnet8"][:2], LABELS),
        (*CLASSIFIERS["small_cnn"][:2], SOFT),
        (*CLASSIFIERS["mlp"][:2], LABELS),
        (*CLASSIFIERS["mlp"][:2], SOFT),
        (partial(small_gpt, 9, 5, width=8, heads=2, blocks=1), TEXTS[:, :-1], TEXTS[:, 1:]),
    ],
    ids=["resnet8", "cnn, soft", "mlp", "mlp, soft", "language model"],
)
def test_training_is_that_of_the_paper_one_example_at_a_time(make, x, y):
    members = np.arange(len(x)) % 3 > 0
    recipe = {"clip": 0.7, "learning_rate": 0.3, "averaging": 0.6, "seed": 5}
    model = fit_private(
        make, x, y, epsilon=20.0, steps=4, sampling_rate=0.4, members=members, **recipe
    )
    expected = alone(make, x, y, members, privacy=model.privacy, **recipe)
    torch.testing.assert_close(weights_of(model.module).double(), expected, rtol=1e-4, atol=2e-6)


def test_an_empty_batch_is_a_step_of_noise():
    recipe = {"epsilon": 5.0, "steps": 9, "sampling_rate": 0.2, "clip": 2.0, "learning_rate": 0.5}
    start = first(partial(linear, 600, 10), 0)
    model = fit_private(
        partial(copy.deepcopy, start), RNG.normal(size=(40, 600)), np.zeros(40),
        members=np.zeros(40), **recipe,
    )  # fmt: skip
    walked = weights_of(model.module) - weights_of(start)
    expected = 0.5 * model.privacy.noise_multiplier * 2.0 / (0.2 * 40) * math.sqrt(9)
    assert float(walked.std()) == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_no_example_moves_a_step_by_more_than_the_clipping_norm(name):
    make, x, _ = CLASSIFIERS[name]
    x = 1e3 * x[:20]
    here, gone = (
        moved(make, x, LABELS[:20], clip=0.5, members=members, **ONCE)
        for members in (np.ones(20), np.arange(20) != 7)
    )
    assert 0.0 < (here - gone).norm() <= 0.5 / 20 * (1.0 + 1e-3)


def test_who_is_no_member_leaves_no_trace():
    make, x, _ = CLASSIFIERS["small_cnn"]
    members = np.arange(N) % 2 == 0
    recipe = {"epsilon": 8.0, "steps": 5, "sampling_rate": 0.5, "clip": 1.0, "learning_rate": 1.0}
    other = np.where(members[:, None, None, None], x, 0.0)
    wrong = np.where(members, LABELS, 0)
    first, second = (
        fit_private(make, *data, members=members, **recipe).log_probabilities(x)
        for data in ((x, LABELS), (other, wrong))
    )
    np.testing.assert_array_equal(first, second)


def test_the_promise_is_that_of_the_accountant():
    recipe = {"steps": 7, "sampling_rate": 0.3, "delta": 1e-6, "adjacency": "substitute"}
    model = fit_private(
        partial(linear, 6, CLASSES), ROWS, LABELS, epsilon=3.0, clip=1.0, learning_rate=1.0,
        **recipe,
    )  # fmt: skip
    said = vars(model.privacy)
    assert said == {"epsilon": 3.0, "noise_multiplier": said["noise_multiplier"], **recipe}
    stated = dp_sgd_epsilon(noise_multiplier=said["noise_multiplier"], **recipe)
    assert 2.99 < stated <= 3.0


def test_a_seed_decides_everything_and_the_streams_of_others_stay_as_they_were():
    make, x, _ = CLASSIFIERS["resnet8"]
    recipe = {"epsilon": 8.0, "steps": 2, "sampling_rate": 0.5, "clip": 1.0, "learning_rate": 1.0}
    before = torch.get_rng_state()
    one, again, other = (
        fit_private(make, x, LABELS, **recipe, seed=seed).log_probabilities(x) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_it_learns_and_says_probabilities_of_every_example():
    x = np.random.default_rng(1).normal(size=(1500, 1, 8, 8))
    y = (x[:, 0, :, :4].mean((1, 2)) > x[:, 0, :, 4:].mean((1, 2))).astype(int)
    model = fit_private(
        partial(small_cnn, 2, side=8), x, y, epsilon=8.0, steps=60, sampling_rate=0.1, clip=1.0,
        learning_rate=2.0, averaging=0.9,
    )  # fmt: skip
    said = model.log_probabilities(x)  # more than are looked at in one go
    np.testing.assert_allclose(np.exp(said).sum(1), 1.0, rtol=1e-12)
    assert (said.argmax(1) == y).mean() > 0.8
    whole = model.module(torch.from_numpy(x).float()).double().log_softmax(-1)
    np.testing.assert_allclose(said, whole, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"network": lambda: nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 2))},
            r"got BatchNorm1d\(6, .*; GroupNorm normalises without them",
        ),
        ({"members": np.ones(3)}, r"members must have shape \(70,\), got \(3,\)"),
        ({"averaging": 1.0}, r"averaging must lie in \[0, 1\), got 1.0"),
        ({"labels": np.full(N, 2)}, "labels must lie in 0 to 1, got 2"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"epsilon": math.nan}, "epsilon must be a finite number"),
        ({"sampling_rate": 0.0}, r"sampling_rate must lie in \(0, 1\]"),
        ({"steps": 0}, "steps must be a whole number of at least 1"),
        ({"clip": 0.0}, "clip must be above 0"),
        ({"learning_rate": -1.0}, "learning_rate must be above 0"),
        ({"seed": 0.5}, "seed must be a whole number"),
    ],
)
def test_what_cannot_be_trained_is_refused(change, message):
    asked = {
        "network": partial(linear, 6, 2), "inputs": ROWS, "labels": LABELS % 2, "epsilon": 1.0,
        "steps": 2, "sampling_rate": 0.5, "clip": 1.0, "learning_rate": 1.0,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        fit_private(**asked | change)


def test_a_training_that_diverges_says_so():
    with pytest.raises(FloatingPointError, match="diverged"):
        fit_private(
            partial(mlp, 6, CLASSES), ROWS, LABELS, epsilon=1.0, steps=3, sampling_rate=0.5,
            clip=1.0, learning_rate=1e38,
        )  # fmt: skip
