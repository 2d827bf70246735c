"""Checks of user input, one function per kind of value.

Each takes the value first and the name the user knows it by second, and returns the value in the
type the rest of the code expects. Every message shows the name, the value and what is allowed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput


def _allowed(low: float | None, high: float | None, low_open: bool, high_open: bool) -> str:
    parts = []
    if low is not None:
        parts.append(f"{'>' if low_open else '>='} {low:g}")
    if high is not None:
        parts.append(f"{'<' if high_open else '<='} {high:g}")
    return " and ".join(parts)


def integer(value: object, name: str, *, low: int | None = None, high: int | None = None) -> int:
    """A whole number in [low, high]; ``1e5`` counts as one, ``True`` and ``2.5`` do not.

    >>> integer(1e5, "episodes", low=1)
    100000
    """
    allowed = _allowed(low, high, False, False)
    expected = f"a whole number{' ' + allowed if allowed else ''}"
    number = value
    if isinstance(number, float | np.floating) and float(number).is_integer():
        number = int(number)
    try:
        if isinstance(number, bool | np.bool_):
            raise TypeError
        whole = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(f"{name} = {value!r}, but it must be {expected}") from None
    if (low is not None and whole < low) or (high is not None and whole > high):
        raise InvalidInput(f"{name} = {whole}, but it must be {expected}")
    return whole


def number(
    value: object,
    name: str,
    *,
    low: float | None = None,
    high: float | None = None,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """A finite real number within the given bounds."""
    allowed = _allowed(low, high, low_open, high_open)
    expected = f"a finite number{' ' + allowed if allowed else ''}"
    real = isinstance(value, int | float | np.integer | np.floating)
    if not real or isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} = {value!r}, but it must be {expected}")
    try:
        x = float(value)  # type: ignore[arg-type]
    except OverflowError:
        x = math.inf
    too_low = low is not None and (x < low or (low_open and x == low))
    too_high = high is not None and (x > high or (high_open and x == high))
    if not math.isfinite(x) or too_low or too_high:
        raise InvalidInput(f"{name} = {x:g}, but it must be {expected}")
    return x


def bounds(value: object, name: str, what: str, usual: str) -> tuple[float, float]:
    """The least and the largest ``what``, two finite numbers that rise; ``usual`` shows some."""
    wanted = f"it must be the least and the largest {what}, for example {usual}"
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray) or len(value) != 2:
        raise InvalidInput(f"{name} = {value!r}, but {wanted}")
    low, high = (number(end, name) for end in value)
    if low >= high:
        raise InvalidInput(f"{name} = ({low:g}, {high:g}), but {wanted}")
    return low, high


def choice(value: object, name: str, options: Iterable[str]) -> str:
    """One of a few words."""
    words = list(options)
    if not isinstance(value, str) or value not in words:
        raise InvalidInput(f"{name} = {value!r}, but it must be one of {', '.join(words)}")
    return value


def flag(value: object, name: str) -> bool:
    """True or False, nothing that merely looks like it."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} = {value!r}, but it must be true or false")
    return bool(value)


def finite_array(value: object, name: str) -> Array:
    """A float64 array without NaN or infinity."""
    try:
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "fiub":
            raise TypeError
        array = np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise InvalidInput(f"{name} must be an array of real numbers, got {kind}") from None
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInput(f"{name}{list(where)} = {array[where]}, but every entry must be finite")
    return array


def unit_array(value: object, name: str, *, rows: bool) -> Array:
    """A finite array of probabilities or shares, rid of the rounding of its own precision.

    In float32 the rows of a table seldom sum to 1 in float64. What is off by no more than that
    precision explains is mended; everything else is left as it is, for a check to refuse.

    Args:
        value: what was given.
        name: its name.
        rows: whether each row (last axis) is to sum to 1.
    """
    array = finite_array(value, name)
    kind = np.asarray(value).dtype
    if kind.kind != "f" or kind.itemsize >= 8 or array.ndim == 0:
        return array
    step = float(np.finfo(kind).eps)
    clipped: Array = np.clip(array, 0.0, 1.0)
    array = np.where(np.abs(clipped - array) <= step, clipped, array)
    if rows:
        sums = array.sum(axis=-1, keepdims=True)
        near = np.abs(sums - 1.0) <= step * array.shape[-1]
        array = array / np.where(near, sums, 1.0)
    return array


CELLS = 200_000_000
"""Largest dense table, in numbers (1.6 GB)."""


def table_fits(name: str, *shape: int) -> None:
    """Refuse a table too large to be kept dense, before it is allocated."""
    if math.prod(shape) > CELLS:
        sizes = " x ".join(f"{size:,}" for size in shape)
        raise InvalidInput(
            f"{name} would need a table of {sizes} numbers, but at most {CELLS:,} fit; choose "
            "smaller sizes"
        )


def distributions(array: Array, name: str) -> None:
    """Rows (last axis) must be probability distributions; says which one is not, and how."""
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise InvalidInput(
            f"{name}{list(where)} = {array[where]:g}, but probabilities cannot be negative"
        )
    sums = array.sum(axis=-1)
    off = np.abs(sums - 1.0) > 1e-8
    if off.any():
        where = tuple(int(i) for i in np.argwhere(off)[0])
        row = f"{name}{list(where)}" if where else name
        raise InvalidInput(
            f"{row} sums to {sums[where]:.9g}, but it must sum to 1; divide it by its sum"
        )
