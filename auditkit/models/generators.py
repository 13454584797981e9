"""Generators that a laptop trains in seconds: mixtures of Gaussians, and trees over a table.

They make stand-ins for examples that a model has not seen. Their quality decides what an audit with
generated examples can show, so that each comes with one dial that worsens it.

What they make has the precision of the examples that they were fitted to. A price of 1.2 in single
precision is another number than 1.2 in double, and a classifier would tell the two apart.
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from auditkit import _check
from auditkit._types import Floats, Ints, Randomness

DOUBLE: np.dtype[Any] = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples, with labels or without.

    Attributes
    ----------
    inputs : array of shape (n, ...)
        Features, pixels or tokens.
    labels : array of int, shape (n,), optional
        Class of each example.

    Examples
    --------
    >>> examples = Examples(np.zeros((3, 2)), np.array([0, 1, 1]))
    >>> len(examples), examples[[0, 2]].labels
    (3, array([0, 1]))
    """

    inputs: NDArray[Any]
    labels: Ints | None = None

    def __post_init__(self) -> None:
        inputs = np.asarray(self.inputs)
        if inputs.ndim < 2:
            raise ValueError(f"inputs must have shape (n, ...), got shape {inputs.shape}")
        object.__setattr__(self, "inputs", inputs)
        if self.labels is not None:
            object.__setattr__(self, "labels", _check.counts("labels", self.labels))
            _check.same_length(inputs=inputs, labels=self.labels)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: Any) -> "Examples":
        return Examples(self.inputs[rows], None if self.labels is None else self.labels[rows])

    def labelled(self, labels: ArrayLike | None) -> "Examples":
        """Return the examples with other labels."""
        return Examples(self.inputs, None if labels is None else np.asarray(labels))


class Generator(Protocol):
    """Whatever makes examples."""

    def sample(self, number: int, *, rng: np.random.Generator) -> Examples:
        """Return that many new examples."""


@dataclass(frozen=True, eq=False)
class GaussianMixtures:
    """A mixture of Gaussians for each class.

    Attributes
    ----------
    shares : array of shape (classes, components)
        How likely each class and component is; the sum of all is 1.
    means : array of shape (classes, components, columns)
        Their centres.
    factors : array of shape (classes, components, columns, columns)
        Lower triangles whose products with their own transposes are the covariances.
    dtype : dtype
        The precision of what is drawn; that of the examples that were fitted.
    """

    shares: Floats
    means: Floats
    factors: Floats
    dtype: np.dtype[Any] = DOUBLE

    def sample(self, number: int, *, rng: Randomness) -> Examples:
        """Draw examples with the labels of the mixtures they come from."""
        count = _check.whole("number", number, least=1)
        generator = _check.generator("rng", rng)
        components = self.shares.shape[1]
        chosen = generator.choice(self.shares.size, count, p=self.shares.ravel())
        noise = generator.normal(size=(count, self.means.shape[2]))
        inputs = np.empty_like(noise)
        for which in np.unique(chosen):
            rows = chosen == which
            place = divmod(int(which), components)
            inputs[rows] = self.means[place] + noise[rows] @ self.factors[place].T
        return Examples(inputs.astype(self.dtype), chosen // components)


def fit_gaussian_mixtures(
    examples: Examples,
    rng: Randomness,
    *,
    components: int = 4,
    covariance: Literal["full", "diag"] = "full",
) -> GaussianMixtures:
    """Fit a mixture of Gaussians to the examples of each class.

    Parameters
    ----------
    examples : Examples
        With flat inputs and labels; each class has to have as many examples as components. What is
        drawn has the precision of the inputs; of whole numbers, double precision.
    rng : Generator, int or None
        Chooses the first centres.
    components : int
        Gaussians a class.
    covariance : {"full", "diag"}
        Whether columns may vary together.

    Returns
    -------
    GaussianMixtures

    References
    ----------
    Dempster, Laird and Rubin, *Maximum likelihood from incomplete data via the EM algorithm*, 1977;
    scikit-learn's GaussianMixture.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=1000)
    >>> made = fit_gaussian_mixtures(
    ...     Examples(rng.normal(size=(1000, 2)) + 9 * y[:, np.newaxis], y), rng, components=1
    ... ).sample(500, rng=rng)
    >>> bool(((made.inputs.mean(axis=1) > 4.5) == made.labels).all())
    True
    """
    from sklearn.mixture import GaussianMixture

    inputs, labels = _labelled(examples)
    number = _check.whole("components", components, least=1)
    kind = _check.choice("covariance", covariance, ("full", "diag"))
    generator = _check.generator("rng", rng)
    classes, columns = int(labels.max()) + 1, inputs.shape[1]
    shares = np.zeros((classes, number))
    means = np.zeros((classes, number, columns))
    factors = np.zeros((classes, number, columns, columns))
    for label in np.unique(labels):
        own = inputs[labels == label]
        if len(own) < max(2, number):
            raise ValueError(f"examples of class {label} must be at least {max(2, number)}")
        fit = GaussianMixture(
            number,
            covariance_type=kind,
            reg_covar=1e-4 * float(own.var(axis=0).mean()) + 1e-12,
            max_iter=200,
            random_state=int(generator.integers(2**31)),
        ).fit(own)
        shares[label] = fit.weights_ / fit.weights_.sum() * len(own) / len(labels)
        means[label] = fit.means_
        for place, spread in enumerate(fit.covariances_):
            whole = spread if kind == "full" else np.diag(spread)
            factors[label, place] = np.linalg.cholesky(whole)
    return GaussianMixtures(shares / shares.sum(), means, factors, precision(examples.inputs))


@dataclass(frozen=True, eq=False)
class ChowLiuTree:
    """A tree over the columns of a table, in which each column depends on one other.

    Attributes
    ----------
    order : array of shape (columns,)
        The columns from the root on; the last column is the label.
    parents : array of shape (columns,)
        The column that each depends on, -1 for the root.
    laws : tuple of array
        For each column the law of its level given its parent's level, of shape (levels of the
        parent, levels); one row for the root.
    values : tuple of tuple of array
        For each column and level the numbers that were seen there, from which one is drawn.
    dtype : dtype
        Of the rows that are drawn; that of the table that was fitted.
    """

    order: Ints
    parents: Ints
    laws: tuple[Floats, ...]
    values: tuple[tuple[Floats, ...], ...]
    dtype: np.dtype[Any] = DOUBLE

    def sample(self, number: int, *, rng: Randomness) -> Examples:
        """Draw rows, column by column from the root."""
        count = _check.whole("number", number, least=1)
        generator = _check.generator("rng", rng)
        levels = np.zeros((count, len(self.order)), np.int64)
        table = np.empty((count, len(self.order)))
        for column in self.order:
            above = self.parents[column]
            steps = self.laws[column].cumsum(axis=1)
            given = np.zeros(count, np.int64) if above < 0 else levels[:, above]
            draws = generator.random(count) * steps[given, -1]
            levels[:, column] = (draws[:, np.newaxis] > steps[given, :-1]).sum(axis=1)
            for level, seen in enumerate(self.values[column]):
                rows = np.flatnonzero(levels[:, column] == level)
                table[rows, column] = generator.choice(seen, len(rows))
        return Examples(table[:, :-1].astype(self.dtype), table[:, -1].astype(np.int64))


def fit_chow_liu_tree(examples: Examples, *, bins: int = 32, smoothing: float = 1.0) -> ChowLiuTree:
    """Fit the tree over columns and label that keeps most mutual information.

    A column with more than `bins` different numbers is cut into that many levels of about equally
    many rows; a number that fills more than a level keeps one to itself.

    Parameters
    ----------
    examples : Examples
        A table of numbers, categories as codes, with labels. Rows that are drawn have its dtype.
    bins : int
        Levels of a column at most, other than categories.
    smoothing : float
        How many rows the law of a column without its parent counts for, at each of the parent's
        levels. With 0 a pair of levels that was not seen together is never made.

    Returns
    -------
    ChowLiuTree

    References
    ----------
    Chow and Liu, *Approximating discrete probability distributions with dependence trees*, 1968.
    PANORAMIA has MST, which measures such a tree with noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first = rng.integers(5, size=2000)
    >>> table = np.column_stack((first, (first + 1) % 5, rng.integers(5, size=2000)))
    >>> tree = fit_chow_liu_tree(Examples(table, first % 2), smoothing=0.0)
    >>> made = tree.sample(500, rng=0).inputs
    >>> bool(((made[:, 0] + 1) % 5 == made[:, 1]).all())
    True
    """
    inputs, labels = _labelled(examples)
    most = _check.whole("bins", bins, least=2)
    extra = _check.scalar("smoothing", smoothing, least=0.0)
    table = np.column_stack((inputs, labels)).astype(np.float64)
    coded = [_levels(column, most) for column in table.T]
    sizes = np.array([len(seen) for _, seen in coded])
    starts = np.append(0, np.cumsum(sizes))
    rows = len(table)
    # one column of 0 and 1 for each level of each column: their products count all pairs at once
    places = np.concatenate(
        [codes + start for (codes, _), start in zip(coded, starts, strict=False)]
    )
    which = np.tile(np.arange(rows), len(coded))
    hot = csr_array((np.ones(len(which)), (which, places)), shape=(rows, starts[-1]))
    counts = (hot.T @ hot).toarray()
    information = _mutual_information(counts, starts, rows)
    # weights are made positive, and the largest information the smallest weight
    weights = information.max() + 1.0 - information
    np.fill_diagonal(weights, 0.0)
    order, parents = breadth_first_order(
        minimum_spanning_tree(weights), len(coded) - 1, directed=False
    )
    parents = np.where(parents < 0, -1, parents).astype(np.int64)
    laws = []
    for column, above in enumerate(parents):
        own = slice(starts[column], starts[column + 1])
        alone = np.diag(counts)[own] / rows
        if above < 0:
            laws.append(alone[np.newaxis])
            continue
        joint = counts[starts[above] : starts[above + 1], own] + extra * alone
        laws.append(joint / joint.sum(axis=1, keepdims=True))
    return ChowLiuTree(
        order.astype(np.int64),
        parents,
        tuple(laws),
        tuple(seen for _, seen in coded),
        _own_dtype(examples.inputs),
    )


@dataclass(frozen=True, eq=False)
class Rounded:
    """A generator whose numbers are rounded to those that real examples have.

    Attributes
    ----------
    source : Generator
        What is rounded.
    seen : tuple of array
        For each column the numbers that it may have, in increasing order.
    dtype : dtype
        Of what is made; that of the examples that it is to look like.
    """

    source: Generator
    seen: tuple[Floats, ...]
    dtype: np.dtype[Any] = DOUBLE

    def sample(self, number: int, *, rng: np.random.Generator) -> Examples:
        """Draw examples, and round each number to the nearest that its column may have."""
        made = self.source.sample(number, rng=rng)
        inputs = np.empty(made.inputs.shape, self.dtype)
        for column, values in enumerate(self.seen):
            middles = (values[1:] + values[:-1]) / 2.0
            inputs[:, column] = values[np.searchsorted(middles, made.inputs[:, column])]
        return Examples(inputs, made.labels)


def rounded_like(source: Generator, examples: Examples) -> Rounded:
    """Round what a generator makes to the numbers that each column of some examples has.

    Whole numbers, codes and prices lie on a grid. A classifier tells what is off it at a glance,
    and an audit then says how well it does so, and nothing else.

    Parameters
    ----------
    source : Generator
        Makes examples with flat inputs.
    examples : Examples
        Real ones with as many columns, those that trained the generator. What is made has the dtype
        of their inputs, so that equal numbers are equal.

    Returns
    -------
    Rounded

    References
    ----------
    Not in PANORAMIA, whose generators make images of whole grey levels, tokens or codes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ages = Examples(rng.integers(20, 60, size=(500, 1)), np.zeros(500, int))
    >>> made = rounded_like(fit_gaussian_mixtures(ages, rng, components=1), ages)
    >>> made.sample(4, rng=rng).inputs.ravel()
    array([43, 40, 53, 30])
    """
    inputs = _check.numbers("examples.inputs", examples.inputs, ndim=2)
    seen = tuple(np.unique(column) for column in inputs.T)
    return Rounded(source, seen, _own_dtype(examples.inputs))


def precision(inputs: NDArray[Any]) -> np.dtype[Any]:
    """Return the floating-point type of what imitates some inputs: their own, if they have one.

    Parameters
    ----------
    inputs : ndarray
        Numbers.

    Returns
    -------
    dtype
        That of `inputs`, or double precision where they are whole numbers.

    References
    ----------
    Not in PANORAMIA, whose tables are of codes.

    Examples
    --------
    >>> precision(np.zeros(3, np.float32)), precision(np.arange(3))
    (dtype('float32'), dtype('float64'))
    """
    return inputs.dtype if inputs.dtype.kind == "f" else DOUBLE


def _own_dtype(inputs: NDArray[Any]) -> np.dtype[Any]:
    """Return the type of inputs, other than that of Python's own numbers."""
    return inputs.dtype if inputs.dtype.kind in "biuf" else DOUBLE


def _labelled(examples: Examples) -> tuple[Floats, Ints]:
    inputs = _check.numbers("examples.inputs", examples.inputs, ndim=2)
    if examples.labels is None or not len(inputs):
        raise ValueError("examples must have labels, and be at least one")
    return inputs, examples.labels


def _levels(column: Floats, bins: int) -> tuple[Ints, tuple[Floats, ...]]:
    """Return the level of each number, and the numbers of each level."""
    values, codes = np.unique(column, return_inverse=True)
    if len(values) > bins:
        cuts = np.unique(np.quantile(column, np.arange(1, bins) / bins))
        # twice as many edges, so that a number that is a cut itself has its own level
        codes = np.searchsorted(cuts, column, side="left") + np.searchsorted(cuts, column, "right")
        _, codes = np.unique(codes, return_inverse=True)
    seen = tuple(column[codes == level] for level in range(int(codes.max()) + 1))
    return codes, seen


def _mutual_information(counts: Floats, starts: Ints, rows: int) -> Floats:
    """Return the mutual information of every two columns, from the counts of pairs of levels."""
    joint = counts / rows
    alone = np.diag(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0.0, joint * np.log(joint / np.outer(alone, alone)), 0.0)
    sums: Floats = np.add.reduceat(np.add.reduceat(terms, starts[:-1], 0), starts[:-1], 1)
    return sums
