"""A counter that forgets: faded sums, weighed afterwards by how much each of them shows.

D_t = alpha D_{t-1} + x_t is published with noise z_t. A pair that was seen m_t times in D_t shows
its law p as m_t p + z_t, so the rows are best added with weights m_t, which the pair's *total*
tells (a cell of the same row, whose noise is independent of the other cells'). With batches that
grow by 1 / alpha the ratio of signal to noise is 1 / (1 + alpha) of that of one release of
everybody, whatever the number of releases; what was seen of a pair long ago is kept.

The weights are made from published rows alone: post-processing, whatever they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels import kernel
from tacit.privacy.counters.base import RoundedRows
from tacit.privacy.counters.state import Buffers, CounterState, Draw
from tacit.privacy.counters.toeplitz import ROUNDOFF, lower_toeplitz


@kernel
def fade(alpha: float, item: IntArray, faded: Array, row: IntArray) -> None:
    """faded = alpha faded + item; ``row`` is what is published of it, rounded."""
    for i in range(item.shape[0]):
        faded[i] = alpha * faded[i] + item[i]
        row[i] = np.int64(np.rint(faded[i]))


@kernel
def weigh(
    alpha: float,
    noise: float,
    groups: IntArray,
    totals: IntArray,
    row: IntArray,
    level: Array,
    squares: Array,
    sums: Array,
    out: Array,
) -> None:
    """Add a row to the weighted sums, and write them at the noise of one row to ``out``.

    A total is at least what is left of the last one. Cells of no group (-1) get weights 1 / alpha^t
    for what is in all batches alike; the last entry of ``squares`` is theirs.
    """
    T = totals.shape[0]
    for j in range(T):
        level[j] = max(float(row[totals[j]]), alpha * level[j])
        squares[j] += max(level[j] / noise - 1.0, 0.0) ** 2
    squares[T] = alpha * alpha * squares[T] + 1.0
    for i in range(row.shape[0]):
        j = groups[i]
        if j < 0:
            sums[i] = alpha * sums[i] + row[i]
            out[i] = sums[i] / np.sqrt(squares[T])
        else:
            sums[i] += max(level[j] / noise - 1.0, 0.0) * row[i]
            out[i] = sums[i] / np.sqrt(squares[j]) if squares[j] > 0.0 else 0.0


@dataclass(frozen=True)
class Fading(RoundedRows):
    """C_{t,s} = alpha^(t-s); what is released is not a prefix but the weighted sum of the rows.

    Memory is one vector behind the wall and two in front of it, for any number of releases. It
    ends with its last step and is not closed: the last users are one of its items.

    Attributes:
        alpha: what is left of a sum when the next batch comes.
        noise: standard deviation of a node's noise, in grid steps: a total that does not exceed it
            weighs nothing.
        groups: by cell, the number of its group; -1 for cells that are in all batches alike.
        totals: by group, the cell that says how much a row shows about the group.
    """

    name: ClassVar[str] = "fading"
    alpha: float
    noise: float
    groups: IntArray = field(repr=False, compare=False)
    totals: IntArray = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.alpha < 1.0:
            raise InvalidInput(f"alpha = {self.alpha:g}, but it must lie between 0 and 1")

    def column_norm(self) -> float:
        """Root of the sum of alpha^(2 j), j < n."""
        return math.sqrt(sum(self.alpha ** (2 * j) for j in range(self.length)))

    def error_std(self, t: int) -> float:
        """Of the weighted sum, given its weights: that of one row."""
        self._position(t)
        return 1.0

    def unit_error(self) -> float:
        """Two rounded operations a step, on sums of at most 1 / (1 - alpha), faded like them."""
        return 2.0 * ROUNDOFF / (1.0 - self.alpha) ** 2

    def buffers(self, size: int) -> tuple[Buffers, Buffers]:
        """The faded sum; the newest row, the weighted sums, and what the weights are made of."""
        if self.groups.shape != (size,):
            raise InvalidInput(
                f"groups are named for {len(self.groups)} cells, but a contribution has {size}"
            )
        T = len(self.totals)
        weights = {"level": np.zeros(T), "squares": np.zeros(T + 1), "sums": np.zeros(size)}
        return {"faded": np.zeros(size)}, {"row": np.zeros(size, dtype=np.int64), **weights}

    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """(C x)_t, rounded."""
        row = np.empty_like(item)
        fade(self.alpha, item, secret["faded"], row)
        return row[None]

    def renew(self, state: CounterState) -> CounterState:
        """Nothing of what was is left in the next row; the weighted sums go on."""
        state.secret["faded"][:] = 0.0
        state.public["level"][:] = 0.0
        return state

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """The weighted sum of all rows so far."""
        public["row"][:] = published[0]
        out = np.empty(len(self.groups))
        row, level, squares, sums = (public[k] for k in ("row", "level", "squares", "sums"))
        weigh(self.alpha, self.noise, self.groups, self.totals, row, level, squares, sums, out)
        return out

    def audit_view(self, public: Buffers, released: Array) -> Array:
        """The newest row, whose noise is Gaussian whatever the weights were."""
        return public["row"].astype(np.float64)

    def close(
        self, state: CounterState, prefix: Array, contribution: npt.ArrayLike, draw: Draw
    ) -> Array:
        """Refused: a sum of everything is not what it releases."""
        raise InvalidInput(f"this counter has {self.length} steps, and all of them were made")

    def expected(self, items: IntArray) -> IntArray:
        """The rows of these items [n, cells] without noise."""
        faded, rows = np.zeros(items.shape[1]), np.empty_like(items)
        for item, row in zip(items, rows, strict=True):
            fade(self.alpha, item, faded, row)
        return rows

    def precision(self, releases: int) -> Array:
        """Rows have independent noise."""
        return np.eye(releases)

    def _factors(self) -> tuple[Array, Array]:
        C = lower_toeplitz(np.power(self.alpha, np.arange(self.length, dtype=np.float64)))
        prefixes = np.tril(np.ones((self.length, self.length)))
        return np.asarray(prefixes @ np.linalg.inv(C)), C
