"""Canaries: against slow loops, and scores that are high where the canary was."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from auditkit.attacks.canaries import (
    adversarial_natural,
    clipped_gradients,
    crafted_gradient,
    crafted_input,
    gradient_direction,
    logit_score,
    mislabelled,
    train_reference,
    whitened_direction,
)
from auditkit.mechanisms.dp_sgd import GradientCanary, InputCanary, audit_sgd
from auditkit.mechanisms.worst_case import FinalSum, simulate_steps

N, D = 60, 8


def records(classes=2, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(N) % classes
    centres = rng.normal(size=(classes, D))
    return centres[labels] + rng.normal(size=(N, D)), labels


def head(logits=1, bias=False):
    layer = nn.Linear(D, logits, bias=bias)
    for weight in layer.parameters():
        nn.init.zeros_(weight)
    return layer


def network(logits=3, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(D, 5), nn.Tanh(), nn.Linear(5, logits))


def slow_gradient(model, x, y):
    """The gradient of one example's loss, by autograd, from its definition."""
    model = copy.deepcopy(model).double()
    logits = model(torch.tensor(x, dtype=torch.float64)[None])[0]
    if len(logits) == 1:
        p = torch.sigmoid(logits[0])
        loss = -torch.log(p if y == 1 else 1.0 - p)
    else:
        loss = -torch.log(torch.softmax(logits, 0)[y])
    parts = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([part.flatten() for part in parts]).numpy()


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def trained(logits=1, classes=2, **options):
    x, y = records(classes)
    options = {"steps": 60, "learning_rate": 0.3, "rng": 0} | options
    return x, y, train_reference(head(logits), x, y, **options)


MODELS = [(head(), 2), (head(3, bias=True), 3), (network(), 3), (network(1), 2)]


@pytest.mark.parametrize(("model", "classes"), MODELS)
def test_gradients_are_clipped_one_by_one(model, classes):
    x, y = records(classes)
    expected = np.array([slow_gradient(model, *pair) for pair in zip(x, y, strict=True)])
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    clip = float(np.median(norms))
    found = clipped_gradients(model, x, y, clip=clip)
    assert found == pytest.approx(expected * np.minimum(1.0, clip / norms), abs=1e-12)


# --- the reference -------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "classes"), MODELS)
@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_reference_is_what_a_plain_loop_trains(model, classes, clip, optimizer):
    x, y = records(classes)
    before = nn.utils.parameters_to_vector(model.parameters()).clone()
    reference = train_reference(
        model, x, y, steps=4, learning_rate=0.1, clip=clip, optimizer=optimizer, rng=0
    )
    slow = copy.deepcopy(model).double()
    step = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer](slow.parameters(), lr=0.1)
    moved, confidence = 0.0, 0.0
    for _ in range(4):
        each = np.array([slow_gradient(slow, *pair) for pair in zip(x, y, strict=True)])
        if clip is not None:
            each *= np.minimum(1.0, clip / np.linalg.norm(each, axis=1, keepdims=True))
        mean = torch.tensor(each.sum(axis=0) / N)
        old = nn.utils.parameters_to_vector(slow.parameters()).detach().clone()
        at = 0
        for weight in slow.parameters():
            weight.grad = mean[at : at + weight.numel()].view_as(weight)
            at += weight.numel()
        step.step()
        new = nn.utils.parameters_to_vector(slow.parameters()).detach()
        moved = moved + np.abs((new - old).numpy())
        with torch.no_grad():
            logits = slow(torch.tensor(x))
        logits = logits if logits.shape[1] > 1 else torch.cat([-logits / 2, logits / 2], dim=1)
        confidence = confidence + torch.softmax(logits, 1)[range(N), y].numpy() / 4
    for own, expected in zip(reference.model.parameters(), slow.parameters(), strict=True):
        assert own.detach().numpy() == pytest.approx(expected.detach().numpy(), abs=1e-9)
    assert reference.movement == pytest.approx(np.asarray(moved), abs=1e-6)
    assert reference.confidence == pytest.approx(confidence, abs=1e-9)
    assert reference.target == confidence.argmin()
    # the model that was handed in is left as it was
    assert torch.equal(before, nn.utils.parameters_to_vector(model.parameters()))


def test_batches_are_sampled_and_divided_by_their_expected_size():
    x, y = records()
    once = [
        train_reference(head(), x, y, steps=1, learning_rate=1.0, sampling_rate=0.5, rng=seed)
        for seed in range(400)
    ]
    full = train_reference(head(), x, y, steps=1, learning_rate=1.0, rng=0)
    steps = np.array([r.model.weight.detach().numpy()[0] for r in once])
    error = steps.std(axis=0) / np.sqrt(len(once))
    assert (error > 0.0).all()
    assert (np.abs(steps.mean(axis=0) - full.model.weight.detach().numpy()[0]) < 5 * error).all()


# --- canaries ------------------------------------------------------------------------------------


def test_the_crafted_gradient_lies_along_the_parameter_that_moves_least():
    x, y = records()
    x[:, 3] *= 0.01
    reference = train_reference(head(), x, y, steps=30, learning_rate=0.3, clip=1.0, rng=0)
    pair = crafted_gradient(reference.movement, clip=2.0)
    assert pair.shape == (2, D)
    assert pair[0, 3] == 2.0
    assert (pair[1] == -pair[0]).all()
    assert np.count_nonzero(pair) == 2


@pytest.mark.parametrize(("logits", "classes"), [(1, 2), (3, 3)])
def test_the_label_is_the_one_that_points_furthest_away(logits, classes):
    x, y, reference = trained(logits, classes)
    target = reference.target
    gradient = slow_gradient(reference.model, x[target], y[target])
    cosines = [
        cosine(gradient, slow_gradient(reference.model, x[target], k)) for k in range(classes)
    ]
    chosen = mislabelled(reference.model, x[target], y[target])
    assert chosen == np.argmin(cosines) != y[target]


@pytest.mark.parametrize(("logits", "classes"), [(1, 2), (3, 3)])
def test_the_natural_canary_is_the_record_that_points_furthest_away(logits, classes):
    x, y, reference = trained(logits, classes)
    pool, labels = records(classes, seed=1)
    gradient = slow_gradient(reference.model, x[7], y[7])
    cosines = [
        cosine(gradient, slow_gradient(reference.model, *pair))
        for pair in zip(pool, labels, strict=True)
    ]
    options = {"pool_features": pool, "pool_labels": labels}
    assert adversarial_natural(reference.model, x[7], y[7], **options) == np.argmin(cosines)


def test_a_record_without_a_gradient_is_passed_over():
    pool = np.zeros((3, D))
    pool[1] = 1.0
    options = {"pool_features": pool, "pool_labels": [0, 1, 0]}
    assert adversarial_natural(head(), np.ones(D), 1, **options) == 1
    with pytest.raises(ValueError, match="pool_features must have a gradient"):
        adversarial_natural(
            head(), np.ones(D), 1, pool_features=np.zeros((2, D)), pool_labels=[0, 0]
        )


def test_the_repaired_input_points_the_other_way_and_is_as_long():
    x, y, reference = trained()
    i = reference.target
    crafted = crafted_input(reference.model, x[i], y[i], rng=0)
    target, own = (slow_gradient(reference.model, features, y[i]) for features in (x[i], crafted))
    assert cosine(target, own) < -0.9
    assert np.linalg.norm(own) == pytest.approx(np.linalg.norm(target), rel=0.15)


def test_the_input_as_printed_shrinks_towards_a_record_without_a_gradient():
    x, y, reference = trained()
    i = reference.target
    options = {"objective": "printed", "steps": 3000, "rng": 0}
    crafted = crafted_input(reference.model, x[i], y[i], **options)
    target, own = (slow_gradient(reference.model, features, y[i]) for features in (x[i], crafted))
    assert cosine(target, own) < 0.0
    assert np.linalg.norm(own) < 0.1 * np.linalg.norm(target)


def test_the_printed_objective_is_least_where_it_says():
    """One step of descent, from the start, against finite differences of the two objectives."""
    model, x, y = network(), np.arange(1.0, D + 1.0) / D, 2
    noise = np.random.default_rng(5).standard_normal((1, D))
    start = 0.1 * np.linalg.norm(x) * noise[0] / np.linalg.norm(noise)
    target = slow_gradient(model, x, y)

    def printed(point):
        own = slow_gradient(model, point, y)
        return cosine(own, target) + np.mean((own - target) ** 2)

    def norm(point):
        own = slow_gradient(model, point, y)
        return cosine(own, target) + (np.linalg.norm(own) / np.linalg.norm(target) - 1.0) ** 2

    for name, objective in (("printed", printed), ("norm", norm)):
        slope = np.array(
            [(objective(start + d) - objective(start - d)) / 2e-6 for d in 1e-6 * np.eye(D)]
        )
        crafted = crafted_input(
            model, x, y, steps=1, learning_rate=0.01, objective=name, rng=np.random.default_rng(5)
        )
        assert crafted == pytest.approx(start - 0.01 * (x @ x) * slope, abs=1e-7)


def test_at_zero_a_model_without_a_bias_has_no_gradient():
    assert not clipped_gradients(head(), np.zeros((1, D)), [1], clip=1.0).any()


# --- scores --------------------------------------------------------------------------------------


def slow_dp_sgd(x, y, canary, bits, *, q, sigma, clip, rate, steps, logits, rng):
    """DP-SGD on a linear head, a model at a time; the canary is two records or two gradients."""
    final = []
    for bit in bits:
        weights = np.zeros((logits, D))
        for _ in range(steps):
            total = rng.normal(0.0, sigma * clip, weights.shape)
            for features, label in sampled(x, y, q, rng):
                total += one_gradient(weights, features, label, clip)
            if rng.random() < q:
                own = canary[bit]
                total += one_gradient(weights, *own, clip) if isinstance(own, tuple) else own
            weights = weights - rate * total / (q * (len(x) + 1))
        final.append(weights)
    return np.array(final)


def sampled(x, y, q, rng):
    taken = rng.random(len(x)) < q
    return zip(x[taken], y[taken], strict=True)


def one_gradient(weights, features, label, clip):
    said = weights @ features
    if len(said) == 1:
        slope = 1.0 / (1.0 + np.exp(-said)) - label
    else:
        slope = np.exp(said) / np.exp(said).sum() - np.eye(len(said))[label]
    gradient = np.outer(slope, features)
    return gradient * min(1.0, clip / np.linalg.norm(gradient))


def tells(scores, bits):
    """How far apart the worlds are, in standard errors; above 0 if scores are high for z'."""
    one, two = scores[bits == 1], scores[bits == 0]
    return (one.mean() - two.mean()) / np.hypot(
        one.std() / len(one) ** 0.5, two.std() / len(two) ** 0.5
    )


SETTING = {"q": 0.5, "sigma": 0.5, "clip": 1.0, "rate": 0.5, "steps": 5}


@pytest.mark.parametrize(("logits", "classes"), [(1, 2), (3, 3)])
@pytest.mark.parametrize("scenario", ["S2", "S3", "S4", "S5"])
def test_scores_are_high_where_the_canary_was(scenario, logits, classes):
    x, y, reference = trained(logits, classes)
    i, model = reference.target, reference.model
    pool, labels = records(classes, seed=1)
    if scenario == "S2":
        canary = crafted_gradient(reference.movement, clip=1.0).reshape(2, logits, D)
    else:
        natural = adversarial_natural(model, x[i], y[i], pool_features=pool, pool_labels=labels)
        second = {
            "S3": (crafted_input(model, x[i], y[i], rng=0), y[i]),
            "S4": (x[i], mislabelled(model, x[i], y[i])),
            "S5": (pool[natural], labels[natural]),
        }[scenario]
        canary = [(x[i], y[i]), second]
    bits, rng = np.arange(80) % 2, np.random.default_rng(3)
    weights = slow_dp_sgd(x[:6], y[:6], canary, bits, **SETTING, logits=logits, rng=rng)
    if scenario == "S2":
        scores = weights.reshape(len(bits), -1) @ gradient_direction(canary.reshape(2, -1))
    else:
        said = np.einsum("rld,kd->rkl", weights, np.stack([canary[0][0], canary[1][0]]))
        said = said[..., 0] if logits == 1 else said
        scores = logit_score(said, [canary[0][1], canary[1][1]], logits=logits)
    assert tells(scores, bits) > 5.0
    if scenario != "S2":  # and so are those along the difference of the gradients
        features, own = (np.array(part) for part in zip(*canary, strict=True))
        gradients = clipped_gradients(model, features, own, clip=1.0)
        others = clipped_gradients(model, x[:6], y[:6], clip=1.0)
        noise = {"sampling_rate": 0.5, "noise_multiplier": 0.5, "clip": 1.0}
        for direction in (
            gradient_direction(gradients),
            whitened_direction(gradients, others, **noise),
        ):
            assert tells(weights.reshape(len(bits), -1) @ direction, bits) > 5.0


def test_the_score_of_the_worst_case_is_high_where_the_canary_was():
    bits = np.arange(400) % 2
    run = {"noise_multiplier": 1.0, "sampling_rate": 0.5, "steps": 20}
    seen = simulate_steps(bits, **run, rng=0)
    assert tells(FinalSum(*run.values()).log_ratio(seen.sums[:, 0]), bits) > 5.0
    assert tells(seen.log_ratios[:, 0], bits) > 5.0


def test_canaries_and_scores_fit_the_models_that_audit_sgd_trains():
    x, y, reference = trained()
    i = reference.target
    run = {
        "runs": 200,
        "steps": 10,
        "sampling_rate": 0.5,
        "noise_multiplier": 1.0,
        "clip": 1.0,
        "learning_rate": 0.5,
    }
    others, own = np.delete(x, i, axis=0), np.delete(y, i)
    gradients = crafted_gradient(reference.movement, clip=1.0)
    moved = audit_sgd(others, own, GradientCanary(gradients), **run)
    assert tells(moved.along(gradient_direction(gradients))[:, -1], moved.bits) > 5.0
    labels = [y[i], mislabelled(reference.model, x[i], y[i])]
    said = audit_sgd(others, own, InputCanary([x[i], x[i]], labels), **run)
    assert tells(logit_score(said.logits([x[i], x[i]]), labels)[:, -1], said.bits) > 5.0


def test_the_direction_of_opposite_gradients_is_that_of_the_paper():
    pair = crafted_gradient([3.0, 1.0, 2.0], clip=2.0)
    np.testing.assert_array_equal(gradient_direction(pair), pair[0] / 2.0)


@given(st.integers(1, 12), st.floats(0.01, 1.0), st.floats(0.1, 10.0), st.integers(0, 1000))
def test_whitening_is_fishers_discriminant(others, rate, noise, seed):
    rng = np.random.default_rng(seed)
    gradients, rows = rng.normal(size=(2, 5)), rng.normal(size=(others, 5))
    found = whitened_direction(
        gradients, rows, sampling_rate=rate, noise_multiplier=noise, clip=1.5
    )
    covariance = rate * (1.0 - rate) * rows.T @ rows + (1.5 * noise) ** 2 * np.eye(5)
    expected = np.linalg.solve(covariance, gradients[0] - gradients[1])
    assert found == pytest.approx(expected / np.linalg.norm(expected), abs=1e-9)


def test_without_sampling_whitening_does_nothing():
    gradients, others = np.random.default_rng(0).normal(size=(2, 2, 4))
    run = {"sampling_rate": 1.0, "noise_multiplier": 2.0, "clip": 1.0}
    assert whitened_direction(gradients, others, **run) == pytest.approx(
        gradient_direction(gradients)
    )


def test_whitening_finds_what_a_shared_direction_hides():
    rng = np.random.default_rng(0)
    shared = np.concatenate(([1.0], np.zeros(9)))
    others = shared + 0.02 * rng.normal(size=(200, 10))
    gradients = np.stack((shared + 0.3 * rng.normal(size=10), -shared))
    run = {"sampling_rate": 0.1, "noise_multiplier": 0.5, "clip": 1.0}
    bits = np.arange(2000) % 2
    sums = (rng.random((2000, 200)) < 0.1) @ others + gradients[bits] * (
        rng.random((2000, 1)) < 0.1
    )
    moved = -(sums + 0.5 * rng.normal(size=sums.shape))
    plain = tells(moved @ gradient_direction(gradients), bits)
    assert tells(moved @ whitened_direction(gradients, others, **run), bits) > plain + 2.0


def test_the_logit_is_that_of_the_records_own_label():
    said = np.array([[[1.0, 2.0, 3.0], [5.0, 7.0, 9.0]]])
    assert logit_score(said, [0, 2], logits=3).tolist() == [8.0]
    assert logit_score([[1.0, 4.0]], [1, 1]).tolist() == [3.0]
    assert logit_score([[1.0, 4.0]], [0, 0]).tolist() == [-3.0]
    snapshots = np.zeros((5, 2, 2))
    assert logit_score(snapshots, [0, 1]).shape == (5, 2)
    assert logit_score(snapshots, [0, 1], logits=2).shape == (5,)


# --- the border ----------------------------------------------------------------------------------

X, Y = records()
NOISE = {"sampling_rate": 0.5, "noise_multiplier": 1.0, "clip": 1.0}
PAIR = np.array([[1.0, 0.0], [-1.0, 0.0]])
RUN = {"steps": 1, "learning_rate": 0.1, "rng": 0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train_reference(head(), X[0], Y, **RUN), "features must hold a row a record"),
        (lambda: train_reference(head(), X, Y[1:], **RUN), "arrays must have the same length"),
        (lambda: train_reference(head(), X, Y + 1, **RUN), "labels must hold 0, 1 only, got 2"),
        (lambda: train_reference(head(), X, X, **RUN), "labels must hold whole numbers"),
        (lambda: train_reference(head(), X, Y[:, None], **RUN), "labels must have 1 dimension"),
        (lambda: train_reference(head(), X, Y, **RUN | {"steps": 0}), "steps must be a whole"),
        (lambda: train_reference(head(), X, Y, **RUN | {"learning_rate": 0}), "learning_rate must"),
        (lambda: train_reference(head(), X, Y, **RUN, sampling_rate=0), "sampling_rate must lie"),
        (lambda: train_reference(head(), X, Y, **RUN, clip=0), "clip must be above 0"),
        (lambda: train_reference(head(), X, Y, **RUN, optimizer="x"), "optimizer must be one of"),
        (lambda: train_reference(head(), X, Y, **RUN | {"rng": -1}), "rng must be"),
        (lambda: train_reference(nn.Flatten(0), X, Y, **RUN), "model must give each example"),
        (lambda: crafted_gradient([[1.0]], clip=1.0), "movement must have a number a parameter"),
        (lambda: crafted_gradient([-1.0], clip=1.0), "movement must hold numbers of at least 0"),
        (lambda: crafted_gradient([1.0], clip=-1.0), "clip must be above 0, got -1.0"),
        (lambda: crafted_input(head(), X[0], 2, rng=0), "label must hold 0, 1 only, got 2"),
        (lambda: crafted_input(head(), 1.0, 1, rng=0), "features must be those of one record"),
        (lambda: crafted_input(head(), 0 * X[0], 1, rng=0), "features must have a gradient"),
        (lambda: crafted_input(head(), X[0], 1, steps=0, rng=0), "steps must be a whole number"),
        (lambda: crafted_input(head(), X[0], 1, objective="x", rng=0), "objective must be one of"),
        (lambda: crafted_input(head(), X[0], 1, learning_rate=-1, rng=0), "learning_rate must be"),
        (lambda: crafted_input(head(), X[0], 1, rng="x"), "rng must be"),
        (lambda: mislabelled(head(), X[0], 0.5), "label must be a whole number"),
        (lambda: mislabelled(head(), X[0] / 0, 0), "features must hold finite numbers"),
        (
            lambda: adversarial_natural(head(), X[0], 0, pool_features=X[:, 1:], pool_labels=Y),
            r"pool_features must hold records of shape \(8,\), as features have, got \(7,\)",
        ),
        (
            lambda: adversarial_natural(head(), X[0], 0, pool_features=X, pool_labels=Y + 1),
            "pool_labels must hold 0, 1 only, got 2",
        ),
        (lambda: gradient_direction([[1.0]]), "gradients must have two rows"),
        (lambda: gradient_direction([[1.0], [1.0]]), "gradients must differ"),
        (lambda: whitened_direction(PAIR, X, **NOISE), "others must have 2 columns"),
        (
            lambda: whitened_direction(PAIR, PAIR, **NOISE | {"sampling_rate": 2.0}),
            r"sampling_rate must lie in \(0, 1\], got 2.0",
        ),
        (
            lambda: whitened_direction(PAIR, PAIR, **NOISE | {"noise_multiplier": 0.0}),
            "noise_multiplier must be above 0",
        ),
        (lambda: whitened_direction(PAIR, PAIR, **NOISE | {"clip": 0.0}), "clip must be above 0"),
        (lambda: logit_score([1.0, 2.0, 3.0], [0, 1]), "said must end in axes of length 2, for"),
        (lambda: logit_score(1.0, [0, 1]), "said must end in axes of length 2, for two"),
        (lambda: logit_score([1.0, 2.0], [0, 1], logits=3), "said must end in axes of length 2, 3"),
        (lambda: logit_score([1.0, 2.0], [0, 2]), "labels must hold 0, 1 only, got 2"),
        (lambda: logit_score([1.0, 2.0], [0]), "labels must be two, of z and of z', got 1"),
        (lambda: logit_score([1.0, 2.0], [0, 1], logits=0), "logits must be a whole number"),
        (lambda: clipped_gradients(head(), X, Y, clip=0), "clip must be above 0"),
        (lambda: clipped_gradients(head(), X, Y + 1, clip=1), "labels must hold 0, 1 only"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_model_has_to_be_a_model():
    with pytest.raises(TypeError, match="model must be a torch module"):
        mislabelled("logistic", X[0], 0)


def test_a_descent_that_leaves_the_numbers_says_so():
    with pytest.raises(FloatingPointError, match="take a learning_rate below 10"):
        crafted_input(head(), X[0], 1, learning_rate=10.0, rng=0)
