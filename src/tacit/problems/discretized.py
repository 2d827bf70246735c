"""Continuous observations cut into finitely many cells, so that agents for tables can learn."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.validate import finite_array, integer, table_fits

Cut = int | Sequence[float]
"""A number of equal cells between the bounds of a coordinate, or the edges between its cells."""


class Discretized(
    gymnasium.ObservationWrapper[np.int64, Any, Any], gymnasium.utils.RecordConstructorArgs
):
    """An environment whose observation is the number of the cell that the original one falls into.

    The bins are public: choose them without looking at anybody's data.

    >>> import gymnasium
    >>> cart = Discretized(gymnasium.make("CartPole-v1"), [1, 1, [-0.05, 0.0, 0.05], [-0.5, 0.5]])
    >>> cart.observation_space
    Discrete(12)

    Args:
        env: an environment whose observations are vectors of numbers (a Box).
        bins: one cut for every coordinate, or one for all of them. A whole number n makes n equal
            cells between the coordinate's bounds, so 1 ignores it; a list of numbers is the edges
            between cells, an edge belonging to the cell above it, and the outer cells are open.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], bins: Cut | Sequence[Cut]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, bins=bins)
        gymnasium.ObservationWrapper.__init__(self, env)
        space = env.observation_space
        if not isinstance(space, Box):
            raise InvalidInput(
                f"Discretized cuts vectors of numbers (a Box), but the observations are {space}; "
                "discrete ones need no bins"
            )
        low, high = (np.asarray(bound, dtype=float).ravel() for bound in (space.low, space.high))
        cuts: Any = bins if isinstance(bins, list | tuple | np.ndarray) else [bins] * len(low)
        if len(cuts) != len(low):
            raise InvalidInput(
                f"bins has {len(cuts)} entries, but the observations have {len(low)} coordinates: "
                "give one cut for each, 1 for a coordinate that is ignored"
            )
        self.edges: tuple[Array, ...] = tuple(
            _edges(cut, f"bins[{i}]", low[i], high[i]) for i, cut in enumerate(cuts)
        )
        self._lists = [edges.tolist() for edges in self.edges]  # bisect is quick on lists
        shape = [len(edges) + 1 for edges in self.edges]
        table_fits("the cells of these bins", *shape)
        self.observation_space = Discrete(math.prod(shape))

    def observation(self, observation: Any) -> np.int64:
        """The number of the cell; the last coordinate counts fastest."""
        values = np.ravel(observation).tolist()
        cell = 0
        for value, edges in zip(values, self._lists, strict=True):
            if math.isnan(value):
                raise InvalidInput("an observation is NaN, which lies in no cell")
            cell = cell * (len(edges) + 1) + bisect_right(edges, value)
        return np.int64(cell)


def _edges(cut: object, name: str, low: float, high: float) -> Array:
    """The edges between the cells of one coordinate."""
    if isinstance(cut, list | tuple | np.ndarray):
        edges = finite_array(cut, name)
        if edges.ndim != 1 or (np.diff(edges) <= 0).any():
            raise InvalidInput(f"{name} = {list(cut)}, but edges are a list of rising numbers")
        return frozen(edges)
    cells = integer(cut, name, low=1)
    if cells > 1 and not (math.isfinite(low) and math.isfinite(high) and high - low < 1e30):
        raise InvalidInput(
            f"{name} = {cells}, but this coordinate has no bounds ({low:.3g} to {high:.3g}) to "
            "make equal cells between; give the edges, for example [-0.5, 0.5]"
        )
    if cells == 1:
        return frozen(np.zeros(0))
    return frozen(np.linspace(low, high, cells + 1)[1:-1])
