"""What a model says is read in one way for all datasets, and how is said."""

import numpy as np
import pytest
import torch

from auditkit.models.outputs import probabilities

ROWS = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


def network(last=None):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 3)] + ([last] if last else [])
    return torch.nn.Sequential(*layers)


def test_logits_and_probabilities_are_told_apart():
    (plain,), notes = probabilities(network(), ROWS)
    (soft,), told = probabilities(network(torch.nn.Softmax(dim=1)), ROWS, name="mine")
    assert notes == []
    assert "the outputs of mine were taken for probabilities and not for logits" in told[0]
    np.testing.assert_allclose(plain, soft, atol=1e-6)


def test_datasets_are_read_in_one_way():
    clamped = network(torch.nn.Hardtanh(0.0, 1.0))
    (first, second), notes = probabilities(clamped, ROWS[:25], ROWS[25:])
    assert "taken for logits, though all lie in [0, 1]" in notes[0]
    np.testing.assert_allclose(first.sum(axis=1), 1.0)
    assert len(first) == len(second) == 25


def test_what_fails_in_a_model_says_where():
    with pytest.raises(ValueError, match=r"the Sequential failed on features of shape \(50, 2\)"):
        probabilities(network(), ROWS[:, :2])
