"""The law of the released label when the histogram of votes is itself random.

Each table holds the law given one vote, a row for each class that the vote may go to; the method
and its error are described at `auditkit.mechanisms.voting.vote_table`, which checks what comes in.
Where all voters are alike, the table is a coefficient of a generating function. A contour integral
picks it out or, where that has too few digits, a product of polynomials. Voters that differ are
left to `differing_voters`.
"""

import math

import numpy as np
from numba import njit, prange
from scipy.special import ndtr

from auditkit._types import Floats, Ints
from auditkit.mechanisms.differing_voters import enumerated_table
from auditkit.mechanisms.noisy_argmax import REACH, TINY

NODES = 512  # nodes of the outer integral that are worked on at once
UNRESOLVED = 1e-11  # the contour's absolute error is 1e-14, so less than this is done again
WORK = 2e11  # multiplications after which the slow way is refused, some minutes
GRID = 100_000  # nodes of the outer integral at most
LATTICE = 2.0  # noise from which on the lattice of counts is invisible: exp(-π² sigma²) < 1e-17


def vote_tables(voters: int, rows: Floats, sigma: float) -> Floats:
    """Compute the table for each query, from the rows (queries, 1 or voters, classes)."""
    queries, count, classes = rows.shape
    if count == 0:  # nobody else votes, so that any row will do
        rows = np.full((queries, 1, classes), 1.0 / classes)
    alike = (rows == rows[:, :1]).all(axis=(1, 2))
    tables = np.empty((queries, classes, classes))
    tables[alike] = _multinomial_tables(voters, rows[alike, 0], sigma)
    for query in np.flatnonzero(~alike):
        tables[query] = enumerated_table(rows[query], sigma)
    return np.maximum(tables, TINY)


def _multinomial_tables(voters: int, p: Floats, sigma: float) -> Floats:
    """Compute the table for each row of `p` when the voters are alike."""
    classes = p.shape[1]
    # totals that differ by this many from the right one have a Poisson weight below 1e-17 of it
    points = 2 * math.ceil((9.5 * math.sqrt(voters) + 10.0) / 2.0)
    counts = np.arange(voters + points + 2)
    angles = np.outer(2.0 * math.pi / points * np.arange(points // 2 + 1), counts)
    cosines, sines = np.cos(angles), np.sin(angles)
    nodes, step = _grid(voters, classes, sigma)
    tables = np.zeros((len(p), classes, classes))
    for start in range(0, len(nodes), NODES):
        below, density = _smoothed(nodes[start : start + NODES], counts, sigma)
        _add_contour(tables, p, voters, below, density * step, cosines, sines, sigma >= LATTICE)
    faint = tables.min(axis=(1, 2), initial=1.0) < UNRESOLVED
    if faint.any():
        work = 0.5 * classes**2 * float(voters) ** 2 * len(nodes)
        if work > WORK:
            raise ValueError(
                f"a label has a probability below {UNRESOLVED:g}; with teachers = {voters + 1}, "
                f"{classes} classes and sigma = {sigma:g} it would take too long to resolve"
            )
        tables[faint] = [polynomial_table(voters, row, sigma) for row in p[faint]]
    return tables


def _grid(voters: int, classes: int, sigma: float) -> tuple[Floats, float]:
    """Return the nodes of the outer integral, and their distance in units of sigma."""
    step = min(0.25, 0.8 / math.sqrt(classes))
    # the winner has voters / classes votes at least, and each class its mode above half of that
    low = 0.5 * voters / classes - REACH * sigma
    high = voters + 1.0 + (REACH + math.sqrt(2.0 * math.log(classes))) * sigma
    if high - low > GRID * step * sigma:
        raise ValueError(
            f"sigma = {sigma:g} is too small beside teachers = {voters + 1}: the integral would "
            f"take more than {GRID:,} nodes"
        )
    return np.arange(low, high + step * sigma, step * sigma), step


def _smoothed(nodes: Floats, counts: Ints, sigma: float) -> tuple[Floats, Floats]:
    """Return Φ and φ of (node - count) / sigma, of shape (counts, nodes)."""
    z = (nodes - counts[:, None]) / sigma
    return ndtr(z), np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)


@njit(cache=True)
def _poisson_weights(mean: float, least: float, weights: Floats) -> tuple[int, int]:
    """Fill in the Poisson weights above `least` of the largest; return the first and the last.

    Starting at the mode and multiplying keeps the relative error near rounding; logarithms of
    factorials would lose three digits.
    """
    weights[:] = 0.0
    mode = min(int(mean), weights.size - 1)
    weights[mode] = 1.0
    first, last = mode, mode
    while first > 0 and weights[first] * first / mean > least:
        weights[first - 1] = weights[first] * first / mean
        first -= 1
    while last < weights.size - 1 and weights[last] * mean / (last + 1) > least:
        weights[last + 1] = weights[last] * mean / (last + 1)
        last += 1
    weights /= weights.sum()
    return first, last


@njit(cache=True, parallel=True)
def _add_contour(
    tables: Floats,
    p: Floats,
    voters: int,
    below: Floats,
    density: Floats,
    cosines: Floats,
    sines: Floats,
    fades: bool,
) -> None:
    """Add the part of the outer integral that `below` and `density` cover to each table."""
    classes = p.shape[1]
    size = below.shape[0] - 1
    for query in prange(p.shape[0]):
        weights = np.empty((classes, size))
        spans = np.empty((classes, 2), dtype=np.int64)
        for i in range(classes):
            first, last = _poisson_weights(voters * p[query, i], 1e-21, weights[i])
            spans[i, 0] = first
            spans[i, 1] = last
        share = 1.0 / _total_weight(weights, spans, cosines, sines, voters)
        quiet = 0
        for turn in range(cosines.shape[0]):
            change = _add_turn(
                tables[query], weights, spans, below, density, cosines, sines, voters, turn, share
            )
            # smooth sums fade like a Gaussian along the half circle: after two turns without
            # effect there is nothing to come; sharp ones come back where the lattice resonates
            quiet = quiet + 1 if fades and change < 1e-16 else 0
            if quiet == 2:
                break


@njit(cache=True)
def _total_weight(
    weights: Floats, spans: Ints, cosines: Floats, sines: Floats, voters: int
) -> float:
    """Compute the contour sum for the total alone: what the table has to be divided by."""
    half = cosines.shape[0] - 1
    total = 0.0
    for turn in range(half + 1):
        product = complex(cosines[turn, voters], -sines[turn, voters])
        for i in range(weights.shape[0]):
            real, imaginary = 0.0, 0.0
            for j in range(spans[i, 0], spans[i, 1] + 1):
                real += weights[i, j] * cosines[turn, j]
                imaginary += weights[i, j] * sines[turn, j]
            product *= complex(real, imaginary)
        total += product.real if turn == 0 or turn == half else 2.0 * product.real
    return total


@njit(cache=True)
def _add_turn(
    table: Floats,
    weights: Floats,
    spans: Ints,
    below: Floats,
    density: Floats,
    cosines: Floats,
    sines: Floats,
    voters: int,
    turn: int,
    share: float,
) -> float:
    """Add one point of the contour, and its mirror image, to the table; return its effect."""
    sums = np.empty((weights.shape[0], 8, below.shape[1]))
    _class_sums(sums, weights, spans, below, density, cosines[turn], sines[turn])
    factor = share if turn in (0, cosines.shape[0] - 1) else 2.0 * share
    phase = complex(factor * cosines[turn, voters], -factor * sines[turn, voters])
    return _add_products(table, sums, phase)


@njit(cache=True)
def _class_sums(
    sums: Floats,
    weights: Floats,
    spans: Ints,
    below: Floats,
    density: Floats,
    cosine: Floats,
    sine: Floats,
) -> None:
    """Compute Σ w(j) e^{ijθ} g(j) for each class and node, real and imaginary parts.

    The four g are Φ and φ at j votes, then both at j + 1, for the class that gets the given vote.
    """
    sums[:] = 0.0
    for i in range(weights.shape[0]):
        for j in range(spans[i, 0], spans[i, 1] + 1):
            real = weights[i, j] * cosine[j]
            imaginary = weights[i, j] * sine[j]
            for x in range(below.shape[1]):
                sums[i, 0, x] += real * below[j, x]
                sums[i, 1, x] += imaginary * below[j, x]
                sums[i, 2, x] += real * density[j, x]
                sums[i, 3, x] += imaginary * density[j, x]
                sums[i, 4, x] += real * below[j + 1, x]
                sums[i, 5, x] += imaginary * below[j + 1, x]
                sums[i, 6, x] += real * density[j + 1, x]
                sums[i, 7, x] += imaginary * density[j + 1, x]


@njit(cache=True)
def _add_products(table: Floats, sums: Floats, phase: complex) -> float:
    """Add the products over classes to the table; return the largest change of an entry.

    With T the product of all Φ-sums, entry [c, o] is T (φ_o / Φ_o) (Φ⁺_c / Φ_c), and entry [o, o]
    is T φ⁺_o / Φ_o, where + marks one vote more.
    """
    classes = sums.shape[0]
    change = np.zeros((classes, classes))
    wins = np.empty(classes, dtype=np.complex128)
    shifts = np.empty(classes, dtype=np.complex128)
    both = np.empty(classes, dtype=np.complex128)
    for x in range(sums.shape[2]):
        product = phase
        for i in range(classes):
            base = complex(sums[i, 0, x], sums[i, 1, x])
            if abs(base.real) + abs(base.imag) < 1e-150:
                base = complex(1e-150, 0.0)  # left out of each product that is not itself 0
            product *= base
            inverse = 1.0 / base
            wins[i] = complex(sums[i, 2, x], sums[i, 3, x]) * inverse
            shifts[i] = complex(sums[i, 4, x], sums[i, 5, x]) * inverse
            both[i] = complex(sums[i, 6, x], sums[i, 7, x]) * inverse
        for o in range(classes):
            won = product * wins[o]
            for c in range(classes):
                change[c, o] += won.real * shifts[c].real - won.imag * shifts[c].imag
            change[o, o] += (product * both[o] - won * shifts[o]).real
    table += change
    return float(np.abs(change).max())


def polynomial_table(voters: int, p: Floats, sigma: float) -> Floats:
    """Compute one table by multiplying polynomials with positive coefficients."""
    nodes, step = _grid(voters, len(p), sigma)
    weights = np.empty((len(p), voters + 1))
    spans = np.array(
        [_poisson_weights(voters * p[i], 1e-300, weights[i]) for i in range(len(p))], dtype=np.int64
    )
    total = np.ones(1)
    for row in weights:
        total = np.convolve(total, row)[: voters + 1]
    table = np.zeros((len(p), len(p)))
    for start in range(0, len(nodes), NODES):
        block = nodes[start : start + NODES]
        below, density = _smoothed(block, np.arange(voters + 2), sigma)
        table += _multiply(weights, spans, below.T.copy(), density.T.copy()).sum(axis=0)
    table *= step / total[voters]
    return table


@njit(cache=True, parallel=True)
def _multiply(weights: Floats, spans: Ints, below: Floats, density: Floats) -> Floats:
    """Compute the last coefficient of the product over classes, a table for each node."""
    classes = weights.shape[0]
    parts = np.zeros((below.shape[0], classes, classes))
    for x in prange(below.shape[0]):
        _multiply_at(parts[x], weights, spans, below[x], density[x])
    return parts


@njit(cache=True)
def _multiply_at(
    part: Floats, weights: Floats, spans: Ints, below: Floats, density: Floats
) -> None:
    """Fill in the table of one node.

    Two classes of the product are special: o, which wins, and c, which has one vote more. The
    classes before the first of them are multiplied once, and so are those from the second on.
    """
    classes, size = weights.shape
    before = np.zeros((classes + 1, size))
    after = np.zeros((classes + 1, size))
    wins = np.empty((classes, size))
    shifts = np.empty((classes, size))
    run = np.empty((2, size))
    before[0, 0] = 1.0
    after[classes, 0] = 1.0
    for i in range(classes):
        _times(before[i], weights[i], below, spans[i], before[i + 1])
    for i in range(classes - 1, -1, -1):
        _times(after[i + 1], weights[i], below, spans[i], after[i])
        _times(after[i + 1], weights[i], density, spans[i], wins[i])
        _times(after[i + 1], weights[i], below[1:], spans[i], shifts[i])
    for first in range(classes):
        _times(before[first], weights[first], density[1:], spans[first], run[0])
        part[first, first] = (run[0] * after[first + 1][::-1]).sum()
        for wins_first in (True, False):
            g = density if wins_first else below[1:]
            _times(before[first], weights[first], g, spans[first], run[0])
            for second in range(first + 1, classes):
                if wins_first:
                    part[second, first] = (run[0] * shifts[second][::-1]).sum()
                else:
                    part[first, second] = (run[0] * wins[second][::-1]).sum()
                _times(run[0], weights[second], below, spans[second], run[1])
                run[0] = run[1]


@njit(cache=True)
def _times(left: Floats, weights: Floats, g: Floats, span: Ints, product: Floats) -> None:
    """Multiply the polynomials `left` and ``weights * g``, up to the length of `product`."""
    product[:] = 0.0
    for j in range(span[0], span[1] + 1):
        factor = weights[j] * g[j]
        if factor > 0.0:
            for i in range(product.size - j):
                product[i + j] += factor * left[i]
