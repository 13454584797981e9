"""One convolutional network: what decides it, what it takes, and that it learns."""

import copy
from itertools import islice

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auditkit.models import convolutional
from auditkit.models.convolutional import ConvolutionalNetwork, train_convolutional

OPTIONS = {"widths": (8, 8, 16), "passes": 2, "batch": 16, "precision": "float32"}


def pictures(examples=48, side=16, channels=3, classes=2, seed=0):
    """Return noise, brighter on the right where the label is larger."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=examples)
    images = rng.integers(128, size=(examples, side, side, channels))
    images[:, :, side // 2 :] += (127 * labels // (classes - 1))[:, None, None, None]
    return images.astype(np.uint8), labels


@pytest.mark.parametrize("augment", [True, False])
def test_the_seed_decides_the_network_and_global_streams_are_left_alone(augment):
    images, labels = pictures()
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - it is the global stream that is watched
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, same, other = (
        train_convolutional(images, labels, seed=seed, augment=augment, **OPTIONS).logits(images)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.allclose(one, other, atol=0.01)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


@pytest.mark.parametrize("augment", [True, False])
@pytest.mark.parametrize("batch", [16, 20])
def test_the_network_is_that_of_a_plain_loop(batch, augment):
    images, labels = pictures()
    options = OPTIONS | {"batch": batch, "augment": augment, "passes": 4}
    ours = train_convolutional(images, labels, seed=3, **options)
    torch.manual_seed(3)
    network = ConvolutionalNetwork(3, 2, (8, 8, 16), side=16, precision="float32")
    network.whiten(torch.from_numpy(images))
    plain_loop(network, torch.from_numpy(images), torch.from_numpy(labels), batch, augment)
    with torch.no_grad():
        alone = network.eval()(torch.from_numpy(images)).numpy()
    assert np.abs(ours.logits(images) - alone).max() < 1e-3 * np.abs(alone).max()


def plain_loop(network, x, y, batch, augment, passes=4):
    """Train as the papers write it down: Nesterov's momentum, a triangle, and looking ahead."""
    peak, faster, smoothing = (0.375, 64, 0.1) if augment else (0.2, 1, 0.0)
    rng, done, steps = np.random.default_rng(3), 0, passes * round(len(x) / batch)
    views = convolutional._views(x, augment, rng)
    weights = {k: w for k, w in network.named_parameters() if w.requires_grad}
    velocity = {k: torch.zeros_like(w) for k, w in weights.items()}
    slow = copy.deepcopy(network.state_dict())
    for after in range(passes):
        seen = next(views)
        if after == 3:
            del weights["patches.bias"]
        for rows in np.array_split(rng.permutation(len(x)), steps // passes):
            part = done / steps
            network.side = 12 if augment and part < 0.6 else 16
            up, down = 0.2 + 0.8 * part / 0.23, 1.0 - 0.93 * (part - 0.23) / 0.77
            loss = F.cross_entropy(network(seen[rows]), y[rows], label_smoothing=smoothing)
            gradients = torch.autograd.grad(loss, list(weights.values()))
            with torch.no_grad():
                for (k, w), gradient in zip(weights.items(), gradients, strict=True):
                    times = faster if "bias" in k else 1
                    slope = gradient + 1.33e-3 / times * w
                    velocity[k] = 0.85 * velocity[k] + slope
                    w -= peak * min(up, down) * times * (slope + 0.85 * velocity[k])
            done += 1
            if done % 5 == 0 or done == steps:
                share = 0.95**5 * (done / steps) ** 3
                for k, value in network.state_dict().items():
                    if value.is_floating_point():
                        slow[k] = share * slow[k] + (1 - share) * value
                        value.copy_(slow[k])


def test_labels_may_be_soft():
    images, labels = pictures(classes=3)
    hard = train_convolutional(images, labels, seed=0, **OPTIONS)
    soft = train_convolutional(images, np.eye(3)[labels], seed=0, **OPTIONS)
    assert np.array_equal(hard.logits(images), soft.logits(images))
    even = train_convolutional(images, np.full((48, 3), 1 / 3), seed=0, **OPTIONS | {"passes": 20})
    assert np.exp(even.log_probabilities(images)).max() < 0.45


def test_what_is_kept_changes_nothing_else():
    images, labels = pictures()
    options = OPTIONS | {"passes": 12}
    plain = train_convolutional(images, labels, seed=0, **options)
    model = train_convolutional(images, labels, seed=0, keep=(1, 4, 12), **options)
    assert plain.kept == {}
    assert sorted(model.kept) == [1, 4]
    assert np.array_equal(plain.logits(images), model.logits(images))
    first, fourth, last = (
        -one.log_probabilities(images)[np.arange(48), labels].mean()
        for one in (model.kept[1], model.kept[4], model)
    )
    assert first > fourth > last


def test_labels_may_change_after_each_pass():
    images, labels = pictures()
    options = OPTIONS | {"passes": 6}
    seen = []

    def same(model):
        seen.append(-model.log_probabilities(images)[np.arange(48), labels].mean())
        return labels

    plain = train_convolutional(images, labels, seed=0, **options)
    kept = train_convolutional(images, labels, seed=0, relabel=same, **options)
    assert np.array_equal(plain.logits(images), kept.logits(images))
    assert len(seen) == 5
    assert seen[-1] < seen[0]
    others = 1 - labels
    turned = train_convolutional(images, labels, seed=0, relabel=lambda _: others, **options)
    right = [(model.logits(images).argmax(axis=1) == labels).mean() for model in (plain, turned)]
    assert right[0] > 0.8
    assert right[1] < 0.2


def test_training_goes_on_from_another_network():
    images, labels = pictures()
    first = train_convolutional(images, labels, seed=0, **OPTIONS | {"passes": 12})
    brighter = images // 2  # the scale of the images is that of the first network
    fresh, further = (
        train_convolutional(
            brighter, labels, seed=1, initial=initial, **OPTIONS | {"passes": 1, "batch": 48}
        )
        for initial in (None, first)
    )
    losses = [
        -one.log_probabilities(images)[np.arange(48), labels].mean() for one in (fresh, further)
    ]
    assert losses[1] < 0.7 * losses[0]
    assert np.array_equal(further.module.centre, first.module.centre)
    assert np.array_equal(further.module.patches.weight, first.module.patches.weight)
    assert not np.array_equal(further.module.head.weight, first.module.head.weight)
    with pytest.raises(ValueError, match="initial must have the widths"):
        train_convolutional(
            images, labels, seed=1, initial=first, **OPTIONS | {"widths": (8, 16, 16)}
        )


def test_without_views_labels_are_learnt_by_heart():
    images, _ = pictures(200)
    labels = np.random.default_rng(1).integers(10, size=200)
    model = train_convolutional(
        images, labels, seed=0, augment=False, widths=(16, 16, 32), passes=20, batch=20
    )
    assert (model.logits(images).argmax(axis=1) == labels).mean() > 0.95


def test_with_views_it_does_not_matter_where_a_thing_is_seen():
    images, labels = pictures(200, seed=1)
    model = train_convolutional(images, labels, seed=0, **OPTIONS | {"passes": 10})
    others, truth = pictures(200, seed=2)
    for shown in (others, others[:, :, ::-1], np.roll(others, 2, axis=1)):
        assert (model.logits(shown).argmax(axis=1) == truth).mean() > 0.9


def test_a_view_is_moved_and_mirrored_in_every_other_pass():
    images = torch.from_numpy(np.arange(50 * 14 * 14).reshape(50, 14, 14, 1))
    views = islice(convolutional._views(images, True, np.random.default_rng(0)), 2)
    first, second = (view.clone() for view in views)
    around = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)), mode="reflect")
    turned = []
    for view in (first, second):
        moves = [around[:, i : i + 14, j : j + 14] for i in range(5) for j in range(5)]
        straight = [(view.numpy() == move).all((1, 2, 3)) for move in moves]
        mirrored = [(view.numpy() == move[:, :, ::-1]).all((1, 2, 3)) for move in moves]
        assert np.logical_xor(np.any(straight, axis=0), np.any(mirrored, axis=0)).all()
        assert len(np.unique(np.argmax(straight, axis=0))) > 5
        turned.append(np.any(mirrored, axis=0))
    assert np.array_equal(turned[0], ~turned[1])
    assert 10 < turned[0].sum() < 40


def test_the_mean_with_the_mirrored_image_is_the_same_for_both():
    images, labels = pictures()
    model = train_convolutional(images, labels, seed=0, **OPTIONS)
    mirrored = images[:, :, ::-1]
    both = model.logits(images, flips=True)
    assert np.allclose(both, model.logits(mirrored, flips=True), atol=1e-6)
    assert np.allclose(both, (model.logits(images) + model.logits(mirrored)) / 2, atol=1e-6)


def test_the_layers_are_those_of_the_recipe():
    network = ConvolutionalNetwork(3, 5, (16, 32), side=16, precision="float32")
    layers = [nn.Conv2d(3, 24, 2), nn.ReLU()]
    for before, width in ((24, 16), (16, 32)):
        layers += [nn.Conv2d(before, width, 3, padding=1, bias=False), nn.MaxPool2d(2)]
        layers += [nn.BatchNorm2d(width, momentum=0.4), nn.ReLU()]
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(width, momentum=0.4), nn.ReLU()]
    plain = nn.Sequential(
        *layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(32, 5, bias=False)
    )
    values = list(network.state_dict().values())[2:]  # after centre and spread
    plain.load_state_dict(dict(zip(plain.state_dict(), values, strict=True)))
    images = torch.rand(20, 16, 16, 3, generator=torch.Generator().manual_seed(0))
    for mode in (True, False):  # the second goes by what the first has seen
        network.train(mode)
        plain.train(mode)
        assert torch.allclose(network(images), plain(images.permute(0, 3, 1, 2)) / 9, atol=1e-6)


def test_convolutions_begin_as_the_identity():
    network = ConvolutionalNetwork(3, 2, (16, 32), side=16, precision="float32")
    x = torch.rand(1, 16, 8, 8, generator=torch.Generator().manual_seed(0))
    first, second = network.blocks[7], network.blocks[11]
    assert torch.equal(first(x)[:, :16], x)
    assert torch.allclose(second(first(x)), first(x))


def test_patches_are_whitened():
    images, _ = pictures(examples=100)
    network = ConvolutionalNetwork(3, 2, (8,), side=16, precision="float32")
    network.whiten(torch.from_numpy(images))
    x = (torch.from_numpy(images).permute(0, 3, 1, 2).float() - network.centre) / network.spread
    seen = network.patches(x).movedim(1, -1).reshape(-1, 24)
    assert torch.allclose(seen[:, :12], -seen[:, 12:], atol=1e-5)
    assert torch.allclose(seen[:, :12].mT @ seen[:, :12] / len(seen), torch.eye(12), atol=0.01)


def test_pixels_may_have_any_scale():
    images, labels = pictures()
    bytes_, floats = (
        train_convolutional(x, labels, seed=0, **OPTIONS | {"passes": 1}).log_probabilities(x)
        for x in (images, images / 255.0 - 3.0)
    )
    assert np.allclose(bytes_, floats, atol=1e-3)


@pytest.mark.parametrize("shape", [(28, 28), (28, 28, 1), (16, 16, 3), (12, 12, 2), (33, 33, 3)])
def test_small_images_and_members(shape):
    images = np.random.default_rng(0).normal(size=(20, *shape))
    members = np.arange(20) < 10
    model = train_convolutional(images, members, seed=0, **OPTIONS)
    said = model.log_probabilities(images[:7])
    assert said.shape == (7, 2)
    assert np.allclose(np.exp(said).sum(axis=1), 1.0)


def test_half_precision_trains_nearly_the_same_network():
    images, labels = pictures()
    half, single = (
        train_convolutional(images, labels, seed=0, **OPTIONS | {"precision": precision})
        for precision in ("bfloat16", "float32")
    )
    assert (half.precision, single.precision) == ("bfloat16", "float32")
    said = half.log_probabilities(images), single.log_probabilities(images)
    assert 0.0 < np.abs(said[0] - said[1]).max() < 0.2
    assert len(np.unique(said[0][:, 0])) == 48  # the head does not round them together


def test_the_precision_that_was_found_is_told():
    images, labels = pictures()
    model = train_convolutional(images, labels, seed=0, **OPTIONS | {"precision": "auto"})
    assert model.precision == model.module.precision
    assert repr(model) == f"Convolutional(precision='{model.precision}')"


def test_the_module_is_an_ordinary_one():
    images, labels = pictures()
    model = train_convolutional(images, labels, seed=0, **OPTIONS)
    assert not model.module.training
    with torch.no_grad():
        said = model.module(torch.from_numpy(images)).numpy()
    assert np.allclose(said, model.logits(images), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": np.zeros((48, 16, 12, 3))}, r"images must .* got shape \(48, 16, 12, 3\)"),
        ({"images": np.full((48, 16, 16), np.nan)}, "images must hold finite numbers"),
        ({"images": np.full((48, 16, 16), "a")}, "images must be an array of numbers"),
        ({"images": np.zeros((48, 8, 8))}, "images of 8 pixels a side leave nothing"),
        ({"images": np.zeros((1, 16, 16))}, "images must be 2 at least"),
        ({"labels": np.arange(47)}, "labels must have shape"),
        ({"labels": np.full((48, 2), 0.4)}, "labels must sum to 1"),
        ({"classes": 1}, "classes must be a whole number of at least 2"),
        ({"labels": np.arange(48), "classes": 3}, "labels must lie in 0 to 2"),
        ({"widths": ()}, "widths must name a block"),
        ({"widths": (8, 0)}, "widths must be a whole number"),
        ({"passes": 0}, "passes must be"),
        ({"keep": (3,)}, "keep must lie in 1 to 2"),
        ({"batch": 1}, "batch must be"),
        ({"precision": "half"}, "precision must be one of 'auto', 'bfloat16', 'float32'"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_what_it_cannot_take_is_told(change, message):
    images, labels = pictures()
    given = {"images": images, "labels": labels, "seed": 0, **OPTIONS} | change
    with pytest.raises(ValueError, match=message):
        train_convolutional(given.pop("images"), given.pop("labels"), **given)


def test_other_channels_than_in_training_are_refused():
    images, labels = pictures()
    model = train_convolutional(images, labels, seed=0, **OPTIONS)
    with pytest.raises(ValueError, match="images must have 3 channels"):
        model.logits(images[..., :1])


def test_a_network_that_diverged_is_told(monkeypatch):
    far = convolutional.WITH_VIEWS._replace(rate=1e30)
    monkeypatch.setattr(convolutional, "WITH_VIEWS", far)
    with pytest.raises(FloatingPointError, match="the network diverged"):
        train_convolutional(*pictures(), seed=0, **OPTIONS)
