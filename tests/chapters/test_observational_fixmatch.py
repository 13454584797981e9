"""FixMatch for many networks at once is FixMatch for each of them, and does what it is for."""

import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from experiments.observational.fixmatch import AT_ONCE, fit_fixmatch

from auditkit.models.networks import linear, mlp
from auditkit.models.training import fit_many

MODELS = AT_ONCE + 3  # so that they are trained in two groups
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_draws_in_any_order():
    """Let no test depend on which tests came before it."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


X = RNG.normal(size=(60, 6)).astype(np.float32)
Y = RNG.integers(3, size=60)
WEAK = RNG.normal(size=(2, 50, 6)).astype(np.float32)
STRONG = (WEAK[0] + RNG.normal(scale=0.5, size=(3, 50, 6))).astype(np.float32)
INDICES = np.stack([RNG.permutation(60)[:20] for _ in range(MODELS)])
USUAL = {"steps": 12, "batch_size": 8, "learning_rate": 0.1, "ratio": 3, "threshold": 0.5}


def rounds(rng, size, length):
    count = math.ceil(length / size)
    return np.concatenate([rng.permutation(size) for _ in range(count)])[:length]


def one_by_one(
    network,
    seed,
    rows,
    *,
    steps,
    batch_size,
    learning_rate,
    ratio,
    threshold,
    unlabelled_weight=1.0,
    shares=None,
    momentum=0.9,
    weight_decay=0.0,
):
    """Train one model in the plainest way; also say how many guesses counted."""
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=learning_rate, momentum=momentum, weight_decay=weight_decay
    )
    slower = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: math.cos(7 * math.pi * step / 16 / steps)
    )
    rng, others = np.random.default_rng(seed), ratio * batch_size
    seen = rows[rounds(rng, len(rows), steps * batch_size)].reshape(steps, -1)
    hidden = rounds(rng, WEAK.shape[1], steps * others).reshape(steps, -1)
    calm = rng.integers(len(WEAK), size=hidden.shape)
    wild = rng.integers(len(STRONG), size=hidden.shape)
    counted, mean = 0, None if shares is None else torch.tensor(shares)
    for k in range(steps):
        optimizer.zero_grad()
        with torch.no_grad():
            chances = model(torch.from_numpy(WEAK[calm[k], hidden[k]])).softmax(1)
            if shares is not None:
                mean = 0.99 * mean + 0.01 * chances.mean(0)
                chances = chances * torch.tensor(shares) / mean
                chances = chances / chances.sum(1, keepdim=True)
        sure = chances.max(1).values >= threshold
        counted += int(sure.sum())
        loss = F.cross_entropy(model(torch.from_numpy(X[seen[k]])), torch.from_numpy(Y[seen[k]]))
        logits = model(torch.from_numpy(STRONG[wild[k], hidden[k]]))
        each = F.cross_entropy(logits, chances.argmax(1), reduction="none")
        (loss + unlabelled_weight * (each * sure).mean()).backward()
        optimizer.step()
        slower.step()
    return model.state_dict(), counted


def fit(network=partial(mlp, 6, 3), seeds=range(MODELS), indices=INDICES, **changes):  # noqa: B008
    return fit_fixmatch(
        network, X, Y, WEAK, STRONG, seeds=seeds, indices=indices, **{**USUAL, **changes}
    )


@pytest.mark.parametrize("network", [partial(mlp, 6, 3), partial(linear, 6, 3)])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"unlabelled_weight": 0.3, "momentum": 0.0, "weight_decay": 0.01},
        {"threshold": 0.4},
        {"shares": [0.2, 0.3, 0.5]},
    ],
)
def test_each_model_is_what_a_plain_loop_makes(network, changes):
    models = fit(network, **changes)
    for place in (0, 1, AT_ONCE, MODELS - 1):
        weights, counted = one_by_one(network, place, INDICES[place], **{**USUAL, **changes})
        assert 0 < counted < 12 * 8 * 3
        for name, weight in weights.items():
            assert torch.allclose(models.weights[name][place], weight, atol=1e-5)


def two_moons(rng, count):
    labels = rng.integers(2, size=count)
    angle = rng.uniform(0, np.pi, count)
    x = np.c_[np.cos(angle), np.sin(angle)] * (1 - 2 * labels)[:, None]
    return x + np.c_[labels, labels / 2] + rng.normal(scale=0.08, size=(count, 2)), labels


def test_few_labels_and_consistency_beat_the_few_labels_alone():
    rng = np.random.default_rng(1)
    x, truth = two_moons(rng, 1000)
    test, answers = two_moons(rng, 500)
    strong = x + rng.normal(scale=0.25, size=(4, *x.shape))
    few = np.stack(
        [np.r_[rng.permutation(np.flatnonzero(truth == c))[:4]] for c in (0, 1) for _ in range(6)]
    )
    few = np.concatenate((few[:6], few[6:]), axis=1)
    network, seeds = partial(mlp, 2, 2, hidden=(64,)), range(6)
    alone = fit_many(
        network, x, truth, seeds=seeds, indices=few, epochs=400, batch_size=8, learning_rate=0.3
    )
    together = fit_fixmatch(
        network,
        x,
        truth,
        x[None],
        strong,
        seeds=seeds,
        indices=few,
        steps=400,
        batch_size=8,
        learning_rate=0.3,
    )
    before = (alone.predict(test) == answers).mean(axis=1)
    after = (together.predict(test) == answers).mean(axis=1)
    assert after.mean() > before.mean() + 0.05
    assert (after >= before - 0.02).all()


def test_aligned_guesses_keep_to_the_shares():
    rng = np.random.default_rng(0)
    truth = np.arange(600) % 3
    x = np.eye(3)[truth] + rng.normal(scale=0.7, size=(600, 3))
    strong = x + rng.normal(scale=0.5, size=(2, *x.shape))
    few = np.stack([rng.permutation(600)[:6] for _ in range(8)])
    found = [
        fit_fixmatch(
            partial(mlp, 3, 3),
            x,
            truth,
            x[None],
            strong,
            seeds=range(8),
            indices=few,
            steps=300,
            batch_size=6,
            learning_rate=0.05,
            threshold=0.6,
            shares=shares,
        ).predict(x)
        for shares in (None, [1 / 3] * 3)
    ]
    free, aligned = [
        np.abs(np.stack([(guess == c).mean(axis=1) for c in range(3)]) - 1 / 3).max(axis=0)
        for guess in found
    ]
    assert aligned.mean() < 0.5 * free.mean()
    assert (found[1] == truth).mean() > (found[0] == truth).mean()


def test_a_weight_of_0_and_a_threshold_that_is_never_reached_leave_the_views_out():
    alone = fit(unlabelled_weight=0.0)
    unsure = fit(threshold=0.999999)
    for name, weight in alone.weights.items():
        assert torch.equal(weight, unsure.weights[name])
        assert not torch.equal(weight, fit().weights[name])


def test_a_model_does_not_depend_on_its_company():
    company, alone = fit(), fit(seeds=[4], indices=INDICES[4:5])
    for name, weight in alone.weights.items():
        assert torch.allclose(weight[0], company.weights[name][4], atol=1e-6)


def test_no_steps_are_the_first_weights():
    torch.manual_seed(3)
    first = mlp(6, 3).state_dict()
    for name, weight in fit(seeds=[3], indices=INDICES[3:4], steps=0).weights.items():
        assert torch.equal(weight[0], first[name])


def test_random_streams_are_left_alone():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    fit(seeds=[0], indices=None)
    after = torch.rand(1), np.random.random()  # noqa: NPY002
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    assert after == (torch.rand(1), np.random.random())  # noqa: NPY002


def test_a_model_that_diverges_is_named():
    with pytest.raises(FloatingPointError, match="models diverged"):
        fit(learning_rate=1e30)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weak": WEAK[0]}, r"weak must have shape \(views, u, 6\), got \(50, 6\)"),
        ({"strong": STRONG[..., :5]}, r"strong must have shape \(views, u, 6\), got \(3, 50, 5\)"),
        ({"strong": STRONG[:, :40]}, "weak and strong must be views of the same examples"),
        ({"weak": WEAK[:0]}, "weak must have shape"),
        ({"weak": np.zeros((1, 50, 6), int)}, "weak must hold numbers as inputs does, got int64"),
        ({"strong": np.full_like(STRONG, np.nan)}, "finite"),
        ({"labels": Y[:-1]}, r"labels must have shape \(60,\)"),
        ({"labels": Y + 1}, "labels must lie in 0 to 2"),
        ({"indices": INDICES[:2]}, "indices must have one row for each of 35 seeds"),
        ({"seeds": []}, "seeds must be a list"),
        ({"steps": -1}, "steps must be a whole number of at least 0"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"ratio": 0}, "ratio must be a whole number of at least 1"),
        ({"threshold": 1.0}, "threshold must lie strictly between 0 and 1"),
        ({"unlabelled_weight": -0.1}, "unlabelled_weight must be a finite number of at least 0"),
        ({"shares": [0.5, 0.5]}, r"shares must have shape \(3,\)"),
        ({"shares": [0.5, 0.5, 0.5]}, "shares must sum to 1"),
        ({"shares": [0.5, 0.5, 0.0]}, "shares must be above 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"momentum": 1.0}, "momentum must lie in"),
        ({"weight_decay": -1.0}, "weight_decay must be a finite number of at least 0"),
        ({"network": partial(mlp, 5, 3)}, "inputs must be what network takes"),
    ],
)
def test_bad_input_is_named(changes, message):
    usual = {"network": partial(mlp, 6, 3), "inputs": X, "labels": Y, "weak": WEAK}
    usual |= {"strong": STRONG, "seeds": range(MODELS), "indices": INDICES}
    with pytest.raises(ValueError, match=message):
        fit_fixmatch(**{**usual, **USUAL, **changes})


def test_a_network_for_texts_is_refused():
    network = partial(torch.nn.Unflatten, 1, (2, 3))
    with pytest.raises(ValueError, match=r"logits of shape \(n, classes\)"):
        fit(network)
