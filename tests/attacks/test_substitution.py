"""Scores from trained models, and a training loop with Opacus in the place of our own."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import ks_2samp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from auditkit.attacks.substitution import CanaryRun, audit_opacus, substitution_scores
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, audit_sgd
from auditkit.models.networks import mlp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the libraries that Opacus imports
    from opacus import PrivacyEngine

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_draws_in_any_order():
    """Let no test depend on which tests came before it."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


N, WIDTH, STEPS, CLIP, SIGMA, RATE = 19, 5, 6, 1.0, 0.8, 0.3
X, Y, TARGET = RNG.normal(size=(N, WIDTH)), RNG.integers(2, size=N), RNG.normal(size=WIDTH)
MISLABELLED = InputCanary([TARGET, TARGET], [0, 1])
OPPOSITE = GradientCanary(CLIP * np.eye(2 * WIDTH)[[3, 3]] * [[1.0], [-1.0]])


def loop(run, *, batch_size=5, attach=True, take=True, steps=STEPS, seen=None):
    """A training loop as in the tutorials of Opacus."""
    model = nn.Linear(WIDTH, 2, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    records = TensorDataset(torch.from_numpy(X).float(), torch.from_numpy(Y))
    if isinstance(run._canary, GradientCanary):  # as many in a batch as with a record in its place
        records = TensorDataset(*(torch.cat([part, 0 * part[:1]]) for part in records.tensors))
    loader = DataLoader(run.dataset(records) if take else records, batch_size=batch_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "secure RNG turned off", and hooks without an input
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=SIGMA,
            max_grad_norm=CLIP,
        )  # fmt: skip
        if attach:
            run.attach(model, optimizer, loader)
        done = 0
        while done < steps:
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                done += 1
                if seen is not None:
                    seen.append(model._module.weight.grad.clone())
                if done == steps:
                    break
    return model


@pytest.mark.parametrize("canary", [MISLABELLED, OPPOSITE])
def test_models_follow_the_law_of_opacus(canary):
    """Projections on some directions, in both worlds, by the test of Kolmogorov and Smirnov."""
    theirs = audit_opacus(loop, canary, runs=240, seed=1)
    planted = isinstance(canary, GradientCanary)
    x, y = (np.vstack([X, 0 * X[:1]]), np.append(Y, Y[0])) if planted else (X, Y)
    ours = audit_sgd(
        x, y, canary, runs=4000, logits=2, steps=STEPS, sampling_rate=0.25, noise_multiplier=SIGMA,
        # Opacus divides by the records of its loader, the canary's gradient not among them
        clip=CLIP, learning_rate=RATE * (len(x) + 1) / 20,
    )  # fmt: skip
    canary_direction = np.eye(2 * WIDTH)[3] if planted else np.append(TARGET, -TARGET)
    for direction in (canary_direction, *RNG.normal(size=(2, 2 * WIDTH))):
        for bit in (0, 1):
            a, b = (
                some.along(direction)[some.bits == bit, 0].astype(float) for some in (ours, theirs)
            )
            assert ks_2samp(a, b).pvalue > 1e-3
    scores = [substitution_scores(some, canary)[:, 0] for some in (ours, theirs)]
    for bit in (0, 1):
        own = [s[some.bits == bit] for s, some in zip(scores, (ours, theirs), strict=True)]
        assert ks_2samp(*own).pvalue > 1e-3
        assert own[0].std() > 0


def test_a_run_can_be_had_again_and_leaves_torch_as_it_was():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = (
        audit_opacus(loop, MISLABELLED, runs=2, seed=seed).weights for seed in (3, 3, 4)
    )
    assert torch.equal(torch.rand(3), expected)
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any()
    assert not np.isclose(first[0], first[1]).any()


@pytest.mark.parametrize("bit", [0, 1])
def test_a_gradient_is_planted_beside_the_accountant(bit):
    """The same stream with and without the canary: what differs is the gradient over |B|."""
    silent = GradientCanary(np.zeros((2, 2 * WIDTH)))
    gradients = {}
    for name, canary in (("canary", OPPOSITE), ("nothing", silent)):
        seen, accounted = [], []

        def noted(run, seen=seen, accounted=accounted):
            attach = run.attach

            def later(model, optimizer, loader):
                attach(model, optimizer, loader)
                hook = optimizer.step_hook
                optimizer.attach_step_hook(lambda opt: (accounted.append(1), hook(opt)))

            run.attach = later
            return loop(run, batch_size=20, seen=seen, steps=3)

        audit_opacus(noted, canary, runs=1, bits=[bit], seed=2)
        gradients[name] = seen[0]
        assert len(accounted) == 3
    added = (gradients["canary"] - gradients["nothing"]).flatten().numpy()
    np.testing.assert_allclose(added, np.asarray(OPPOSITE.gradients)[bit] / 20, atol=1e-6)


def test_the_gradient_is_planted_at_the_loaders_rate():
    planted = []

    class Steps:
        params, step_hook, max_grad_norm = [nn.Parameter(torch.zeros(2))], None, 1.0
        loss_reduction, expected_batch_size, accumulated_iterations = "mean", 4, 2

        def attach_step_hook(self, hook):
            self.step_hook = hook

    class Loader:
        sample_rate = 0.25

    run, steps = CanaryRun(GradientCanary([[1.0, 0.0], [0.0, -1.0]]), bit=1), Steps()
    run.attach(nn.Linear(1, 1), steps, Loader())
    for _ in range(2000):
        steps.params[0].grad = torch.zeros(2)
        steps.step_hook(steps)
        planted.append(steps.params[0].grad.numpy().copy())
    values, counts = np.unique(planted, axis=0, return_counts=True)
    np.testing.assert_array_equal(values, [[0.0, -0.125], [0.0, 0.0]])
    assert abs(counts[0] - 500) < 4 * np.sqrt(2000 * 0.25 * 0.75)


def test_a_module_with_one_logit_is_scored_too():
    def train(run):
        model = nn.Sequential(nn.Linear(WIDTH, 3), nn.Tanh(), nn.Linear(3, 1))
        run.dataset(TensorDataset(torch.from_numpy(X).float(), torch.from_numpy(Y)))

        class Steps:
            step_hook = None

            def attach_step_hook(self, hook):
                hook(self)

        run.attach(model, Steps(), None)
        made.append(model)
        return model

    made = []
    trained = audit_opacus(train, MISLABELLED, runs=3)
    assert trained.logits(X).shape == (3, 1, N)
    expected = made[2](torch.from_numpy(X).float())[:, 0].detach().numpy()
    np.testing.assert_allclose(trained.logits(X)[2, 0], expected, rtol=1e-5, atol=1e-6)
    z = torch.from_numpy(TARGET).float()
    scores = [2 * model(z[None])[0, 0].item() for model in made]
    np.testing.assert_allclose(substitution_scores(trained, MISLABELLED)[:, 0], scores, rtol=1e-4)
    np.testing.assert_allclose(trained.along(np.ones(22)), 0.0)


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_networks_and_heads_are_high_for_the_canary(classes):
    y = np.arange(N) % classes
    canary = InputCanary([3 * TARGET, 3 * TARGET], [0, classes - 1])
    ask = {"runs": 200, "steps": 30, "sampling_rate": 0.5, "noise_multiplier": 0.5, "clip": 1.0}
    ask |= {"learning_rate": 0.2, "snapshots": [5, 30]}
    for how in ({"logits": classes}, {"network": lambda: mlp(WIDTH, classes, hidden=(4,))}):
        trained = audit_sgd(X, y, canary, **ask, **how)
        scores = substitution_scores(trained, canary)
        assert scores.shape == (200, 2)
        low, high = (scores[trained.bits == bit] for bit in (0, 1))
        assert (high.mean(0) > low.mean(0)).all()


def test_one_more_record_takes_the_types_of_the_others():
    pairs = [(torch.zeros(2, dtype=torch.float64), 1)] * 3
    data = CanaryRun(InputCanary([[1.0, 2.0], [3.0, 4.0]], [0, 1]), bit=0).dataset(pairs)
    assert len(data) == 4
    x, y = data[3]
    assert x.dtype == torch.float64
    assert (x.tolist(), y) == ([1.0, 2.0], 0)
    assert data[0] is pairs[0]
    for index in (-1, 4):
        with pytest.raises(IndexError, match="index must lie in 0 to 3"):
            data[index]


@pytest.mark.parametrize(
    ("train", "canary", "ask", "match"),
    [
        (lambda run: loop(run, attach=False), MISLABELLED, {}, "train must call run.attach"),
        (lambda run: loop(run, take=False), MISLABELLED, {}, "train must learn from run.dataset"),
        (lambda run: loop(run, steps=1 + run.bit), MISLABELLED, {}, r"as many steps.*\[1, 2\]"),
        (loop, GradientCanary(np.eye(5)[:2]), {}, "gradients must have 10 numbers each"),
        (loop, GradientCanary(2 * np.eye(10)[:2]), {}, "norm of at most max_grad_norm = 1, got 2"),
        (loop, InputCanary(np.eye(4)[:2], [0, 1]), {}, r"of shape \(2, 5\), got \(2, 4\)"),
        (loop, MISLABELLED, {"runs": 0}, "runs must be"),
        (loop, MISLABELLED, {"bits": [0]}, "bits must hold one for each of 2 runs"),
        (loop, MISLABELLED, {"bits": [0, 2]}, "bits must hold 0, 1 only"),
        (loop, MISLABELLED, {"seed": -1}, "seed must be a whole number"),
    ],
)
def test_a_loop_that_would_audit_nothing_is_refused(train, canary, ask, match):
    with pytest.raises(ValueError, match=match):
        audit_opacus(train, canary, **({"runs": 2} | ask))
