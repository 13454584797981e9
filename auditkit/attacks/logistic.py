"""Many logistic regressions on one table, each with weights of its own for the examples."""

from math import exp, log1p
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import expit

from auditkit._types import Bools, Floats

Single: TypeAlias = NDArray[np.float32]
Step: TypeAlias = tuple[Single, Single, Single]

TOLERANCE = 1e-5  # of the gradient of the mean loss, in coordinates that make the loss round
MEMORY = 6  # steps that the next one remembers
MOST = 500  # steps
ROWS = 1024  # of the table in one go: what they give stays in the cache
NARROW = 400  # columns up to which the table is made round whatever it costs


def fit_columns(rows: Single, members: Bools, counts: Floats, penalty: float) -> Single:
    """Return the weights of a regression for each column of counts, of shape (features, columns).

    The last feature is 1, and its weight is not penalised. Each column minimises the sum of its
    losses, every example as often as it counts, plus half the penalty times the squared weights.

    The method is that of Broyden, Fletcher, Goldfarb and Shanno with limited memory, for all
    columns in step. In the coordinates of the shared Hessian at 0 a full step is nearly Newton's,
    so none is searched for; a step that makes a gradient larger than it was at first is halved.
    """
    target = members.astype(np.float32)[:, np.newaxis]
    share = (counts / counts.sum(axis=0)).astype(np.float32)
    own = (penalty / counts.sum(axis=0)).astype(np.float32)
    inverse = _coordinates(rows, penalty, counts.shape[1])
    whole = inverse.ndim == 2
    z = rows @ inverse.T if whole else rows * inverse
    # the penalty in these coordinates; the last weight bears none
    form = inverse[:, :-1] @ inverse[:, :-1].T if whole else inverse**2
    if not whole:
        form[-1] = 0.0

    def slope(v: Single) -> Single:
        total: Single = _times(form, v) * own
        for first in range(0, len(z), ROWS):
            part, till = z[first : first + ROWS], first + ROWS
            residual = part @ v
            expit(residual, out=residual)
            residual -= target[first:till]
            residual *= share[first:till]
            total += part.T @ residual
        return total

    v = np.zeros((rows.shape[1], counts.shape[1]), np.float32)
    gradient = slope(v)
    start = _norms(gradient)
    steps: list[Step] = []
    for _ in range(MOST):
        size = _norms(gradient)
        if size.max() < TOLERANCE:
            return _times(inverse.T, v)
        move = _direction(gradient, steps)
        following = slope(v - move)
        while (far := _norms(following) > np.maximum(start, 2.0 * size)).any():
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
        f"converged in {MOST} steps: their gradients are up to {float(size.max()):.2g}. "
        "Fewer features or a larger penalty may help"
    )


def _times(form: Single, v: Single) -> Single:
    """Return a matrix, or a diagonal of one, times columns."""
    product: Single = form @ v if form.ndim == 2 else form[:, np.newaxis] * v
    return product


def _norms(columns: Single) -> Single:
    sizes: Single = np.sqrt((columns * columns).sum(axis=0))
    return sizes


def _coordinates(rows: Single, penalty: float, columns: int) -> Single:
    """Return what takes a row to coordinates in which the Hessian at 0 is about the identity.

    A matrix, the inverse of the Hessian's root. Where that costs more than it saves, for many
    features and few columns, a number for each feature.
    """
    many, width = rows.shape
    if width > NARROW and 20 * columns < width:
        return np.full(width, 2.0, np.float32)  # features are standardised
    hessian = (rows.T @ rows).astype(np.float64) / (4.0 * many)
    hessian[np.diag_indices(width)] += max(penalty / many, 1e-6)
    factor = np.linalg.cholesky(hessian)
    inverse: Single = solve_triangular(factor, np.eye(width), lower=True).astype(np.float32)
    return inverse


def _direction(gradient: Single, steps: list[Step]) -> Single:
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
        move *= np.where(known, (step * change).sum(axis=0) / np.where(known, size, 1.0), 1.0)
    for (step, change, weight), share in zip(steps, reversed(shares), strict=True):
        move += (share - (change * move).sum(axis=0) * weight) * step
    return move


def calibrate(scores: NDArray[np.floating], members: Bools) -> tuple[float, float]:
    """Return slope and offset of Platt's calibration: log-odds are slope · score + offset.

    Its targets stand off 0 and 1 by a prior of one example each, so that the fit is finite.
    """
    return _platt(np.ascontiguousarray(scores, np.float64), np.ascontiguousarray(members))


@njit(cache=True)
def _platt(scores: Floats, members: Bools) -> tuple[float, float]:
    """Minimise the loss by Newton's method, a step being halved until it helps."""
    own = members.sum()
    high, low = (own + 1.0) / (own + 2.0), 1.0 / (members.size - own + 2.0)
    slope, offset = 0.0, np.log((own + 1.0) / (members.size - own + 1.0))
    loss = _loss(scores, members, high, low, slope, offset)
    for _ in range(100):
        ga, gb, h_aa, h_ab, h_bb = 0.0, 0.0, 1e-12, 0.0, 1e-12
        for place, score in enumerate(scores):
            chance = 1.0 / (1.0 + exp(-(slope * score + offset)))
            error = chance - (high if members[place] else low)
            weight = chance * (1.0 - chance)
            ga += error * score
            gb += error
            h_aa += weight * score * score
            h_ab += weight * score
            h_bb += weight
        determinant = h_aa * h_bb - h_ab * h_ab
        da, db = (h_bb * ga - h_ab * gb) / determinant, (h_aa * gb - h_ab * ga) / determinant
        if ga * da + gb * db < 1e-12 * members.size:  # what a step gains is lost in rounding
            break
        size = 1.0
        while size > 1e-10:
            tried = _loss(scores, members, high, low, slope - size * da, offset - size * db)
            if tried <= loss:
                break
            size *= 0.5
        if size <= 1e-10:
            break
        slope, offset, loss = slope - size * da, offset - size * db, tried
    return slope, offset


@njit(cache=True)
def _loss(
    scores: Floats,
    members: Bools,
    high: float,
    low: float,
    slope: float,
    offset: float,
) -> float:
    """Return the sum of cross-entropies against the targets."""
    total = 0.0
    for place, score in enumerate(scores):
        odds = slope * score + offset
        target = high if members[place] else low
        total += log1p(exp(-abs(odds))) + max(odds, 0.0) - target * odds
    return total
