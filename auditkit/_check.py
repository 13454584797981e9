"""The border: what every public function checks once, in one wording.

Each check returns what it was given in the form the package works with, or raises a `ValueError`
(`TypeError` for the wrong kind of thing) that names the argument, the value and what it takes.
Nothing is clipped or repaired.
"""

import re
from collections.abc import Collection, Sized
from decimal import Decimal
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditkit._types import Bools, Floats, Ints, Randomness

Choice = TypeVar("Choice", bound=object)


def fraction(name: str, value: float) -> float:
    """Return `value` as a float that lies strictly between 0 and 1."""
    number = scalar(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def rate(name: str, value: float) -> float:
    """Return `value` as a float in (0, 1]."""
    number = scalar(name, value)
    if not 0.0 < number <= 1.0:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r}")
    return number


def delta(name: str, value: float, *, gaussian: bool = False) -> float:
    """Return `value` as a float in [0, 1), or in (0, 1) where a Gaussian curve is assumed."""
    number = scalar(name, value)
    if not 0.0 <= number < 1.0:
        raise ValueError(f"{name} must lie in [0, 1), got {value!r}")
    if gaussian and number == 0.0:
        raise ValueError(
            f"{name} must be above 0 under the Gaussian assumption, got {value!r}: a Gaussian "
            "mechanism that leaks at all has no finite ε at δ = 0"
        )
    return number


def scalar(name: str, value: float, *, least: float = -np.inf) -> float:
    """Return `value` as a finite float of at least `least`."""
    array = _real(value)
    if array is None or array.ndim != 0:
        raise TypeError(f"{name} must be one number, got {_short(value)}")
    number = float(array)
    if not np.isfinite(number) or number < least:
        bound = "" if least == -np.inf else f" of at least {least:g}"
        raise ValueError(f"{name} must be a finite number{bound}, got {value!r}")
    return number


def positive(name: str, value: float) -> float:
    """Return `value` as a finite float above 0."""
    number = scalar(name, value)
    if number <= 0.0:
        raise ValueError(f"{name} must be above 0, got {value!r}")
    return number


def whole(name: str, value: float, *, least: int = 0) -> int:
    """Return `value` as a whole number of at least `least`."""
    number = scalar(name, value)
    if number != int(number) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(number)


def choice(name: str, value: Choice, options: Collection[str]) -> Choice:
    """Return `value` if it is one of `options`."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {_short(value)}")
    return bool(value)


def numbers(name: str, value: ArrayLike, *, ndim: int | None = None) -> Floats:
    """Return `value` as an array of finite floats, with `ndim` dimensions if that is given."""
    array = _real(value)
    if array is None:
        raise TypeError(f"{name} must be an array of numbers, got {_short(value)}")
    if lost := _lost(value):
        raise ValueError(
            f"{name} must hold whole numbers of at most 2**53 in size, since larger ones are not "
            f"told apart as floats, got {lost}"
        )
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must hold finite numbers, got {bad}")
    return array


def fractions(name: str, value: ArrayLike, *, ndim: int | None = None) -> Floats:
    """Return `value` as an array of floats that lie strictly between 0 and 1."""
    array = numbers(name, value, ndim=ndim)
    outside = (array <= 0.0) | (array >= 1.0)
    if outside.any():
        raise ValueError(
            f"{name} must lie strictly between 0 and 1, got {array[outside].flat[0]} "
            f"({int(outside.sum())} of {array.size} outside)"
        )
    return array


def unit(name: str, value: ArrayLike) -> Floats:
    """Return `value` as an array of floats in [0, 1]."""
    array = numbers(name, value)
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        raise ValueError(f"{name} must lie in [0, 1], got {array[outside].flat[0]:g}")
    return array


def at_least(name: str, value: ArrayLike, least: float) -> Floats:
    """Return `value` as an array of finite floats of at least `least`."""
    array = numbers(name, value)
    if (array < least).any():
        bad = array[array < least].flat[0]
        raise ValueError(f"{name} must hold numbers of at least {least:g}, got {bad:g}")
    return array


def counts(name: str, value: ArrayLike) -> Ints:
    """Return `value` as an array of whole numbers that are not negative."""
    array = numbers(name, value)
    outside = (array < 0) | (array != np.floor(array))
    if outside.any():
        bad = array[outside].flat[0]
        raise ValueError(f"{name} must hold whole numbers of at least 0, got {bad:g}")
    if (array >= 2.0**53).any():  # from there on a float no longer tells whole numbers apart
        raise ValueError(f"{name} must hold whole numbers below 2**53, got {array.max():g}")
    return array.astype(np.int64)


def one_shape(**arrays: Ints) -> tuple[Ints, ...]:
    """Return the named counts brought to one shape, as views of them that are not to be changed."""
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(f"{name} has {array.shape}" for name, array in arrays.items())
        raise ValueError(f"counts must have shapes that fit together: {shapes}") from None


def at_most(name: str, part: Ints, whole_name: str, whole: Ints) -> None:
    """Check that no count of a part is larger than that of its whole, in arrays of one shape."""
    over = part > whole
    if over.any():
        raise ValueError(
            f"{name} must be at most {whole_name}, got {part[over].flat[0]} "
            f"of {whole[over].flat[0]}"
        )


def codes(name: str, value: ArrayLike, allowed: tuple[int, ...]) -> Ints:
    """Return `value` as a one-dimensional array that holds nothing but the `allowed` integers."""
    array = numbers(name, value, ndim=1)
    outside = ~np.isin(array, allowed)
    if outside.any():
        raise ValueError(
            f"{name} must hold {', '.join(map(str, allowed))} only, got {array[outside][0]:g}"
        )
    return array.astype(np.int64)


def members(name: str, value: ArrayLike) -> Bools:
    """Return `value` as a one-dimensional array of booleans; 0 and 1 are taken too."""
    return codes(name, value, (0, 1)).astype(np.bool_)


def identifier(name: str, value: Any) -> str:
    """Return `value` if it can name a file anywhere: letters, digits, "-" and "_"."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
        raise ValueError(
            f'{name} must be letters, digits, "-" and "_", beginning with one of the first two, '
            f"got {value!r}"
        )
    return value


def figure(name: str, value: Any) -> str:
    """Return `value` if it can name a figure or a table: chapter, F or T, number."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Z]+-[FT][A-Z]?[0-9]+[a-z]?", value):
        raise ValueError(f'{name} must be as in "OBS-F2", "SUB-FA1" or "PAN-T3", got {value!r}')
    return value


def sentences(name: str, value: Any) -> str:
    """Return `value` if it is at least one sentence, of four words or more."""
    if not isinstance(value, str) or len(value.split()) < 4 or not value.rstrip().endswith("."):
        raise ValueError(f"{name} must be at least one sentence with its full stop, got {value!r}")
    return value


def orders(name: str, value: ArrayLike) -> Floats:
    """Return `value` as an array of Rényi orders: at most one dimension, above 0 and not 1."""
    array = numbers(name, value)
    if array.ndim > 1:
        raise ValueError(f"{name} must have at most 1 dimension, got shape {array.shape}")
    outside = (array <= 0.0) | (array == 1.0)
    if outside.any():
        raise ValueError(f"{name} must lie above 0 and not be 1, got {array[outside].flat[0]:g}")
    return array


def distributions(name: str, value: ArrayLike) -> Floats:
    """Return `value` as rows of probabilities, whose sums of 1 within 1e-9 are made exact."""
    array = at_least(name, value, 0.0)
    if array.ndim == 0:
        raise ValueError(f"{name} must be an array of probabilities, got {value!r}")
    sums = array.sum(axis=-1, keepdims=True)
    wrong = np.abs(sums - 1.0) > 1e-9
    if wrong.any():
        raise ValueError(f"{name} must sum to 1 within 1e-9, got {sums[wrong].flat[0]:.12g}")
    exact: Floats = array / sums
    return exact


def classes(name: str, array: NDArray[Any]) -> None:
    """Check that the last axis of `array` can be one of classes."""
    if array.ndim == 0 or array.shape[-1] < 2:
        raise ValueError(f"{name} must have at least 2 classes on its last axis, got {array.shape}")


def generator(name: str, value: Randomness) -> np.random.Generator:
    """Return `value` as a source of randomness; an integer is a seed, None draws a fresh one."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0
    if value is not None and not whole and not isinstance(value, np.random.Generator):
        raise ValueError(
            f"{name} must be a numpy Generator, a seed of at least 0 or None, got {_short(value)}"
        )
    return np.random.default_rng(value)


def aligned(**values: Any) -> None:
    """Check that pandas objects among the named values have the same index.

    Their values would be matched by place, and pandas matches by index.
    """
    indexed = {
        name: value.index
        for name, value in values.items()
        if callable(getattr(getattr(value, "index", None), "equals", None))
    }
    first = next(iter(indexed), "")
    for name, index in indexed.items():
        if not index.equals(indexed[first]):
            starts = " and ".join(str(list(each[:3])) for each in (indexed[first], index))
            raise ValueError(
                f"{first} and {name} must have the same index, got ones that begin with {starts}: "
                "align them first, or give plain arrays in one order"
            )


def same_length(**arrays: Sized) -> None:
    """Check that the named arrays have the same length."""
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(array)}" for name, array in arrays.items())
        raise ValueError(f"arrays must have the same length: {lengths}")


def _real(value: Any) -> Floats | None:
    """Return `value` as an array of floats, or None if it is no array of real numbers.

    Text, dates, complex numbers and masked arrays would all turn into floats without a word.
    """
    if np.ma.isMaskedArray(value):
        return None
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64, copy=False)
        if array.dtype.kind == "O" and all(isinstance(item, Real | Decimal) for item in array.flat):
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    return None


def _lost(value: Any) -> int:
    """Return a whole number that a float may not hold, or 0."""
    array = np.asarray(value)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        whole = [int(array.max()), int(array.min())]
    elif isinstance(value, list | tuple) or array.dtype.kind == "O":
        # numpy turns a list of large integers into floats on its way
        whole = [item for item in np.asarray(value, dtype=object).flat if isinstance(item, int)]
    else:
        return 0
    return next((item for item in whole if abs(item) > 2**53), 0)


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())  # numpy breaks the lines of an array
    return text if len(text) <= 60 else text[:57] + "..."
