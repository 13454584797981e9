"""The networks themselves."""

import pytest
import torch

from auditkit.models.networks import lenet5, linear, mlp, resnet8, small_cnn, small_gpt


@pytest.mark.parametrize(
    ("network", "inputs"),
    [
        (linear(12, 3), torch.zeros(5, 3, 4)),
        (mlp(12, 3, hidden=(7, 6)), torch.zeros(5, 12)),
        (lenet5(3), torch.zeros(5, 1, 28, 28)),
        (lenet5(3, channels=3), torch.zeros(5, 3, 28, 28)),
        (small_cnn(3), torch.zeros(5, 1, 28, 28)),
        (small_cnn(3, channels=3, side=32), torch.zeros(5, 3, 32, 32)),
        (resnet8(3), torch.zeros(5, 3, 32, 32)),
        (resnet8(3, channels=1), torch.zeros(5, 1, 9, 12)),
    ],
)
def test_a_classifier_gives_a_logit_for_each_class(network, inputs):
    assert network(inputs).shape == (5, 3)


def test_a_linear_classifier_has_one_layer_of_weights():
    assert [weights.shape for weights in linear(12, 3).parameters()] == [(3, 12), (3,)]


def test_the_seed_of_torch_decides_the_weights():
    networks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        networks.append(torch.cat([w.flatten() for w in small_gpt(9, 4).parameters()]))
    assert torch.equal(networks[0], networks[1])
    assert not torch.equal(networks[0], networks[2])


def test_examples_know_nothing_of_each_other_in_a_residual_network():
    torch.manual_seed(0)
    network, images = resnet8(), torch.randn(4, 3, 8, 8)
    alone = torch.cat([network(image) for image in images.split(1)])
    torch.testing.assert_close(network(images), alone)


def test_a_language_model_does_not_look_ahead():
    torch.manual_seed(0)
    network = small_gpt(50, 8).eval()
    text = torch.randint(50, (1, 8))
    other = text.clone()
    other[0, 5] = (text[0, 5] + 1) % 50
    before, after = network(text), network(other)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.isclose(before[:, 5:], after[:, 5:]).all(dim=-1).any()


def test_a_language_model_tells_places_apart():
    torch.manual_seed(0)
    same = small_gpt(50, 8)(torch.full((1, 8), 3))
    assert not torch.isclose(same[0, 0], same[0, 1]).all()


def test_a_language_model_takes_shorter_texts():
    assert small_gpt(50, 8)(torch.zeros(2, 5, dtype=torch.int64)).shape == (2, 5, 50)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: linear(0, 2), "inputs"),
        (lambda: linear(2.5, 2), "inputs"),
        (lambda: linear(2, 1), "classes"),
        (lambda: mlp(2, 2, hidden=(0,)), "hidden"),
        (lambda: lenet5(channels=0), "channels"),
        (lambda: lenet5(1), "classes"),
        (lambda: small_cnn(channels=0), "channels"),
        (lambda: small_cnn(1), "classes"),
        (lambda: resnet8(1), "classes"),
        (lambda: resnet8(channels=0), "channels"),
        (lambda: small_cnn(side=30), "side must be a multiple of 4, got 30"),
        (lambda: small_gpt(1, 4), "vocabulary"),
        (lambda: small_gpt(9, 0), "length"),
        (lambda: small_gpt(9, 4, width=10, heads=4), "width must be a multiple of heads"),
        (lambda: small_gpt(9, 4, heads=0), "heads"),
        (lambda: small_gpt(9, 4, blocks=0), "blocks"),
    ],
)
def test_a_network_that_cannot_be_is_refused(make, name):
    with pytest.raises(ValueError, match=name):
        make()
