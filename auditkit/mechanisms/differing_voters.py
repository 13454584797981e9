"""The law of the released label when the teachers differ: by enumeration, or from a sample.

Counts of voters that differ do not factorise over the classes, so no generating function helps. All
histograms that the voters allow are enumerated with their probabilities or, where they are too
many, sampled with control variates. Tables are those of `vote_laws`.
"""

import math

import numpy as np

from auditkit._types import Floats, Ints
from auditkit.mechanisms.noisy_argmax import argmax_rows

CELLS = 5_000_000  # histograms that are enumerated at most, some minutes


def enumerated_table(rows: Floats, sigma: float) -> Floats:
    """Compute the table by going through all histograms that the rows allow."""
    classes = rows.shape[1]
    histograms, weights = _histogram_law(rows)
    table = np.zeros((classes, classes))
    for start in range(0, len(weights), 1 << 16):
        block = slice(start, start + (1 << 16))
        for c, vote in enumerate(np.eye(classes)):
            table[c] += weights[block] @ argmax_rows((histograms[block] + vote) / sigma)
    return table


def _histogram_law(rows: Floats) -> tuple[Ints, Floats]:
    """Enumerate the histograms with their probabilities, adding one teacher at a time.

    The class with the most to gain follows from the others and gets no axis; nor does a class
    get more cells than there are teachers who may vote for it.
    """
    certain = (rows == 1.0).any(axis=1)
    random = rows[~certain]
    gains = (random > 0.0).sum(axis=0)
    implied = int(gains.argmax())
    axes = [i for i in range(rows.shape[1]) if gains[i] > 0 and i != implied]
    cells = math.prod(int(gains[i]) + 1 for i in axes)
    if cells > CELLS:
        raise ValueError(
            f"class_probabilities allow {cells:,} histograms, of which at most {CELLS:,} can be "
            "enumerated: take sampled_vote_table for rows like these"
        )
    state = np.ones((1,) * len(axes))
    for row in random:
        grown = np.zeros([n + (row[i] > 0.0) for n, i in zip(state.shape, axes, strict=True)])
        home = [slice(n) for n in state.shape]
        grown[tuple(home)] = row[implied] * state
        for axis, i in enumerate(axes):
            if row[i] > 0.0:
                moved = home.copy()
                moved[axis] = slice(1, state.shape[axis] + 1)
                grown[tuple(moved)] += row[i] * state
        state = grown
    reached = np.argwhere(state > 0.0)
    histograms = np.zeros((len(reached), rows.shape[1]), dtype=np.int64)
    histograms[:, axes] = reached
    histograms[:, implied] = len(random) - reached.sum(axis=1)
    votes_for_certain = (rows[certain] == 1.0).sum(axis=0)
    return histograms + votes_for_certain, state[state > 0.0]


def sampled_table(rows: Floats, sigma: float, uniforms: Floats) -> tuple[Floats, Floats]:
    """Estimate the table and its standard error from uniforms of shape (samples, voters)."""
    classes = rows.shape[1]
    histograms = _draw_histograms(rows, uniforms)
    features = _centred_features(histograms, rows)
    laws = [argmax_rows((histograms + vote) / sigma) for vote in np.eye(classes)]
    outcomes = np.concatenate(laws, axis=1)
    adjusted = _adjust(outcomes, features)
    error = adjusted.std(axis=0, ddof=1) / math.sqrt(len(uniforms))
    shape = (classes, classes)
    return adjusted.mean(axis=0).reshape(shape), error.reshape(shape)


def _draw_histograms(rows: Floats, uniforms: Floats) -> Ints:
    """Turn uniforms of shape (samples, teachers) into histograms of votes."""
    limits = np.cumsum(rows, axis=1)
    limits[:, -1] = np.inf  # rounding must not leave a teacher without a vote
    histograms = np.zeros((len(uniforms), rows.shape[1]), dtype=np.int64)
    lines = np.arange(len(uniforms))
    for teacher in range(len(rows)):
        votes = np.searchsorted(limits[teacher], uniforms[:, teacher], side="right")
        histograms[lines, votes] += 1
    return histograms


def _centred_features(histograms: Ints, rows: Floats) -> Floats:
    """Return the counts and their products, less their known means."""
    counts = (histograms - rows.sum(axis=0))[:, :-1]
    covariance = np.diag(rows.sum(axis=0)) - rows.T @ rows
    first, second = np.triu_indices(counts.shape[1])
    products = counts[:, first] * counts[:, second] - covariance[first, second]
    return np.concatenate([counts, products], axis=1)


def _adjust(outcomes: Floats, features: Floats) -> Floats:
    """Take the part that the features explain out of the outcomes, fitted on the other half."""
    adjusted = outcomes.copy()
    half = len(outcomes) // 2
    parts = slice(None, half), slice(half, None)
    for here, there in (parts, parts[::-1]):
        design = np.column_stack([np.ones(len(features[there])), features[there]])
        fitted = np.linalg.lstsq(design, outcomes[there], rcond=None)[0]
        adjusted[here] -= features[here] @ fitted[1:]
    return adjusted
