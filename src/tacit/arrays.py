"""Array types used everywhere, and how an array is made unchangeable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[Any]]
"""By name."""
IndexArray = npt.NDArray[np.uint32]
"""Lists of states that kernels look up: unsigned, since compiled code need not ask whether an index
is negative (measured: a third of the time of a plan)."""


class Rows(NamedTuple):
    """Where the next states of every pair lie in flat arrays, stage by stage.

    Those of pair x at stage g are begin[g, x] <= i < end[g, x], in increasing order of ``succ``.
    """

    begin: IntArray  # [G, X]
    end: IntArray  # [G, X]
    succ: IndexArray  # [n]


class VisitTables(NamedTuple):
    """What visits add up to, exact or released: tables of pairs [G, X], the last one [G, X, S]."""

    reward: Array
    reward_squares: Array
    """It may have no cells (G = 0)."""
    visits: Array
    transitions: Array


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A private, contiguous, read-only copy, so that nobody's later write can reach it."""
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def frozen_mapping(arrays: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, npt.NDArray[Any]]:
    """The same for a dictionary of arrays."""
    return MappingProxyType({name: frozen(array) for name, array in arrays.items()})
