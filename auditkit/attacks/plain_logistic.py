"""The regressions of `logistic` where torch is not installed: the same method, in NumPy.

The results agree to the tolerance of either, and not to the last digit.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import expit

from auditkit._types import Bools, Floats
from auditkit.attacks.logistic import MEMORY, MOST, NARROW, ROWS, TOLERANCE

Singles = NDArray[np.float32]
Step = tuple[Singles, Singles, Singles]


def fit_columns(rows: Singles, members: Bools, counts: Floats, penalty: float) -> Singles:
    """Return the weights of a regression for each column of counts; see `logistic.fit_columns`."""
    many, width = rows.shape
    target = members.astype(np.float32)[:, None]
    share = (counts / counts.sum(axis=0)).astype(np.float32)
    own = (penalty / counts.sum(axis=0)).astype(np.float32)
    inverse = _coordinates(rows, penalty, counts.shape[1])
    z = rows @ inverse.T if inverse.ndim == 2 else rows * inverse
    # the penalty in these coordinates; the last weight bears none
    bears = inverse[:, :-1] if inverse.ndim == 2 else np.diag(inverse)[:, :-1]
    form = bears @ bears.T

    def slope(v: Singles) -> Singles:
        total: Singles = (form @ v) * own
        for first in range(0, many, ROWS):
            part = slice(first, first + ROWS)
            total += z[part].T @ ((expit(z[part] @ v) - target[part]) * share[part])
        return total

    v = np.zeros((width, counts.shape[1]), np.float32)
    gradient = slope(v)
    start = np.linalg.norm(gradient, axis=0)
    steps: list[Step] = []
    for _ in range(MOST):
        size = np.linalg.norm(gradient, axis=0)
        if size.max() < TOLERANCE:
            weights: Singles = inverse.T @ v if inverse.ndim == 2 else inverse[:, None] * v
            return weights
        move = _direction(gradient, steps)
        limit = np.maximum(start, 2.0 * size)
        following = slope(v - move)
        while (far := np.linalg.norm(following, axis=0) > limit).any():
            move = np.where(far, np.float32(0.5) * move, move)
            following = slope(v - move)
        change = following - gradient
        curved = -(move * change).sum(axis=0)
        # a column that no longer moves has no curvature to remember
        known = curved > 1e-20
        steps.append((-move, change, np.where(known, 1.0 / np.where(known, curved, 1.0), 0.0)))
        steps = steps[-MEMORY:]
        v, gradient = v - move, following
    raise ArithmeticError(
        f"{int((size >= TOLERANCE).sum())} of {counts.shape[1]} logistic regressions have not "
        f"converged in {MOST} steps: their gradients are up to {size.max():.2g}. "
        "Fewer features or a larger penalty may help"
    )


def _coordinates(rows: Singles, penalty: float, columns: int) -> Singles:
    """Return what takes a row to coordinates in which the Hessian at 0 is about the identity."""
    many, width = rows.shape
    if width > NARROW and 20 * columns < width:
        return np.full(width, 2.0, np.float32)  # features are standardised
    hessian = (rows.T @ rows).astype(np.float64) / (4.0 * many)
    hessian[np.diag_indices(width)] += max(penalty / many, 1e-6)
    factor = np.linalg.cholesky(hessian)
    inverse = solve_triangular(factor, np.eye(width), lower=True)
    return np.asarray(inverse, np.float32)


def _direction(gradient: Singles, steps: list[Step]) -> Singles:
    """Return the gradient times an approximation of the inverse Hessian, for each column."""
    move, shares = gradient.copy(), []
    for step, change, weight in reversed(steps):
        share = (step * move).sum(axis=0) * weight
        shares.append(share)
        move -= share * change
    if steps:
        step, change, _ = steps[-1]
        size = (change * change).sum(axis=0)
        known = size > 0.0
        scale = np.where(known, (step * change).sum(axis=0), 1.0) / np.where(known, size, 1.0)
        move *= scale.astype(np.float32)
    for (step, change, weight), share in zip(steps, reversed(shares), strict=True):
        move += (share - (change * move).sum(axis=0) * weight) * step
    return move.astype(np.float32)
