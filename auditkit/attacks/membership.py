"""Membership inference: scores, and guesses made of them.

Two attacks have a reference model, and OBS compares itself with them: both need examples that the
audited model was not trained on, which label inference does not. ZERO scores by the inner product
with a released sum, and guesses where a guess is worth most. A higher score means member.
"""

import numpy as np
from numpy.typing import ArrayLike

from auditkit import _check, _keyed
from auditkit._types import Floats, Ints


def difficulty_calibration(target_losses: ArrayLike, reference_losses: ArrayLike) -> Floats:
    """Score membership by how much lower the loss is than that of a model without the example.

    Parameters
    ----------
    target_losses, reference_losses : array of shape (examples,)
        Losses of the audited model, and of a reference model that was trained on other examples.

    Returns
    -------
    ndarray of shape (examples,)
        The reference model's loss less the audited model's; a higher score means member.

    References
    ----------
    Watson, Guo, Cormode and Sablayrolles, "On the importance of difficulty calibration in
    membership inference attacks", ICLR 2022. OBS, Section 6.5.

    Examples
    --------
    >>> difficulty_calibration([0.1, 2.0], [0.9, 2.1]).round(2)
    array([0.8, 0.1])
    """
    audited = _check.numbers("target_losses", target_losses, ndim=1)
    other = _check.numbers("reference_losses", reference_losses, ndim=1)
    _check.same_length(target_losses=audited, reference_losses=other)
    scores: Floats = other - audited
    return scores


def rmia(
    target_confidences: ArrayLike,
    reference_confidences: ArrayLike,
    population_target: ArrayLike,
    population_reference: ArrayLike,
    *,
    gamma: float = 1.0,
    offline_a: float = 0.3,
) -> Floats:
    """Score membership by RMIA, offline and with one reference model.

    The audited model's confidence in an example is divided by what a model is expected to have,
    trained on it or not. The score is the share of the population with a ratio `gamma` times below.

    Parameters
    ----------
    target_confidences, reference_confidences : array of shape (examples,)
        Probability of the true label under the audited model, and under the reference model, which
        was not trained on the example.
    population_target, population_reference : array of shape (population,)
        The same for examples that neither model was trained on.
    gamma : float
        How many times the ratio of another example it has to be, at least, to count as above.
    offline_a : float
        In [0, 1). Where a model without the example has confidence p in it, one with it is expected
        to have a p + 1 - a; the mean of the two is ((1 + a) p + 1 - a) / 2.

    Returns
    -------
    ndarray of shape (examples,)
        In [0, 1]; a higher score means member.

    Notes
    -----
    With one reference model the population changes no order among examples: scores rise with the
    ratio, in steps as fine as the population is large. Both defaults are those of the authors' own
    code.

    References
    ----------
    Zarifzadeh, Liu and Shokri, "Low-cost high-power membership inference attacks", ICML 2024. OBS,
    Appendix E.

    Examples
    --------
    >>> rmia([0.99, 0.2], [0.5, 0.5], [0.5, 0.2, 0.9], [0.5, 0.6, 0.1])
    array([0.66666667, 0.33333333])
    """
    gamma = _check.positive("gamma", gamma)
    share = _check.delta("offline_a", offline_a)
    examples = _ratios(
        share,
        target_confidences=target_confidences,
        reference_confidences=reference_confidences,
    )
    population = _ratios(
        share, population_target=population_target, population_reference=population_reference
    )
    if not population.size:
        raise ValueError("population_target must hold at least 1 confidence, got none")
    below = np.searchsorted(np.sort(gamma * population), examples, side="right")
    scores: Floats = below / population.size
    return scores


def _ratios(share: float, **pair: ArrayLike) -> Floats:
    """Return the confidences of the audited model over those that any model is expected to have."""
    for name, value in pair.items():
        _check.numbers(name, value, ndim=1)
    checked = {name: _check.unit(name, value) for name, value in pair.items()}
    _check.same_length(**checked)
    audited, other = checked.values()
    ratios: Floats = audited / (((1.0 + share) * other + 1.0 - share) / 2.0)
    return ratios


def inner_product(records: ArrayLike, release: ArrayLike) -> Floats:
    """Score membership in a noisy sum by the inner product with it.

    Parameters
    ----------
    records : array of shape (examples, dimension)
        The examples.
    release : array of shape (dimension,)
        The released sum.

    Returns
    -------
    ndarray of shape (examples,)
        A higher score means member.

    References
    ----------
    ZERO, Appendix F.

    Examples
    --------
    >>> inner_product([[1.0, 0.0], [0.0, 1.0]], [2.0, 0.5])
    array([2. , 0.5])
    """
    rows, sums = np.asarray(records), _check.numbers("release", release, ndim=1)
    if rows.dtype != np.float32:  # large ones come in single precision
        rows = _check.numbers("records", rows)
    if rows.ndim != 2 or rows.shape[1] != sums.size:
        raise ValueError(
            f"records must have shape (examples, {sums.size}) as release has, got {rows.shape}"
        )
    scores: Floats = (rows @ sums.astype(rows.dtype)).astype(np.float64)
    return scores


def posterior_log_odds(scores: ArrayLike, log_odds: ArrayLike) -> Floats:
    """Add to the log-odds of membership what scores say beyond them.

    What the log-odds predict of the scores, linearly, is taken off, and the median of what is left.
    The rest is divided by its standard deviation and added. Memberships are not looked at: an
    attack must not see them.

    Parameters
    ----------
    scores : array of shape (examples,)
        Of any attack; a higher score means member.
    log_odds : array of shape (examples,)
        Of membership given the example, by a propensity model.

    Returns
    -------
    ndarray of shape (examples,)
        Log-odds given the example and the score, if a score of members lies about a standard
        deviation above that of others; else they are too bold or too timid, which costs power only.

    References
    ----------
    Not in ZERO, whose attack that knows of propensities is confidence times b (Section 7).

    Examples
    --------
    >>> posterior_log_odds([3.0, 1.0, 2.0, 0.0], [1.0, 1.0, -1.0, -1.0]).round(2)
    array([ 2.,  0.,  0., -2.])
    """
    values = _check.numbers("scores", scores, ndim=1)
    prior = _check.numbers("log_odds", log_odds, ndim=1)
    _check.same_length(scores=values, log_odds=prior)
    rest = values - values.mean()
    centred = prior - prior.mean()
    spread = centred @ centred
    if spread > 0.0:
        rest = rest - centred * (centred @ rest / spread)
    size = rest.std()
    rest -= np.median(rest)  # scores may be skewed: most losses are small
    posterior: Floats = prior + (rest / size if size > 0.0 else 0.0)
    return posterior


def top_guesses(evidence: ArrayLike, numbers: ArrayLike, *, worth: ArrayLike | None = None) -> Ints:
    """Guess by the sign of the evidence, where a guess is worth most, and abstain elsewhere.

    Examples of equal worth are guessed in an order drawn from a SHA-256 of the evidence, since a
    file may list its members first.

    Parameters
    ----------
    evidence : array of shape (examples,)
        Above 0 it speaks for a member, below 0 against; guesses at exactly 0 are for others.
    numbers : array of int
        How many guesses to make; each gives a row.
    worth : array of shape (examples,), optional
        The order in which guesses are made, from the highest; the size of the evidence if not
        given. For an attack that knows of propensities: the size times the chance that a correct
        guess is kept, or that chance times the sigmoid of the size.

    Returns
    -------
    ndarray of shape (numbers, examples)
        In {-1, 0, 1}, as `zero_run` takes it.

    References
    ----------
    ZERO, Algorithm 5 and Section 7.

    Examples
    --------
    >>> top_guesses([2.0, -3.0, 0.5], [1, 2])
    array([[ 0, -1,  0],
           [ 1, -1,  0]])
    """
    signed = _check.numbers("evidence", evidence, ndim=1)
    value = np.abs(signed) if worth is None else _check.numbers("worth", worth, ndim=1)
    _check.same_length(evidence=signed, worth=value)
    most = np.atleast_1d(_check.counts("numbers", numbers))
    if most.ndim != 1 or (most > signed.size).any():
        raise ValueError(f"numbers must hold counts of at most {signed.size}, got {most.tolist()}")
    key = _keyed.key_of(np.unique(signed, return_inverse=True)[1], np.sign(signed))
    mixed = _keyed.generator(key, "ties").permutation(signed.size)
    place = np.empty(signed.size, np.int64)
    place[mixed[np.argsort(-value[mixed], kind="stable")]] = np.arange(signed.size)
    guesses: Ints = np.where(place < most[:, np.newaxis], np.where(signed > 0.0, 1, -1), 0)
    return guesses
