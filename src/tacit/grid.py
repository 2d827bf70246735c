"""The grid that sums and noise lie on: whole steps of 2^-24.

Every contribution, report and draw of noise is a 64-bit whole number of steps, so sums are exact in
any order, and discrete samplers can be used. This module owns the size of a step and the rules
about how fine noise may be on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput

STEPS = 2**24
"""Steps of the grid in 1."""

GRID = 1.0 / STEPS
"""Size of one step."""

FINE = {"laplace": 64, "gaussian": 2**16, "bounded": 64}
"""Least noise scale in steps. Discrete Laplace noise is exact on any grid, only its variance is
rounded; the delta of discrete Gaussian noise is off by a relative 1 / steps^2, here below 1e-9.
Bounded noise is only ever a rounded draw, which is exact on any grid."""

TAIL = {"laplace": 64.0, "gaussian": 12.0, "bounded": 1.0}
"""In scales: noise beyond it has a chance below 1e-27, so a report beyond it was not made by us."""


def whole_steps(units: Array) -> IntArray:
    """How many steps of the grid one unit of each cell is; other units are refused."""
    factors = units / GRID
    if not np.array_equal(factors, np.rint(factors)):
        raise InvalidInput("the statistic's grid must be made of whole steps of 2^-24")
    return factors.astype(np.int64)


def require_coarse(what: str, scale: float, kind: str = "gaussian") -> None:
    """Refuse noise that the grid cannot carry: its price would not be that of its law."""
    least = FINE[kind] * GRID
    if scale < least:
        raise InvalidInput(
            f"{what} of {scale:.3g} is too small for the grid of 2^-24, where it must be at least "
            f"{least:.3g}; choose a smaller epsilon"
        )


def least_scale(near: float, suffices: Callable[[float], bool]) -> float:
    """The least scale of noise that suffices, a few rounding errors above ``near`` at most."""
    while not suffices(near):
        near = math.nextafter(near, math.inf)
    return near


def least_std(moved: float, mu: float) -> float:
    """The least standard deviation of Gaussian noise under which ``moved`` costs at most mu."""
    return least_scale(moved / mu, lambda std: moved / std <= mu)
