"""Noisy argmax: the kernels, compiled and not."""

import numpy as np
import pytest

from auditkit.mechanisms import noisy_argmax


def test_kernels_do_the_same_when_they_are_not_compiled():
    scaled = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 90.0]])
    laws = np.zeros((2, 3))
    for row, law in zip(scaled, laws, strict=True):
        noisy_argmax._argmax_law.py_func(row, law)
    assert laws == pytest.approx(noisy_argmax.argmax_rows.py_func(scaled), rel=1e-13)
    assert laws == pytest.approx(noisy_argmax.argmax_rows(scaled), rel=1e-13)
