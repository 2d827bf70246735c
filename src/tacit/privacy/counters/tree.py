"""Counters of dyadic blocks: every prefix is a sum of at most log2 n + 1 noisy ones.

``Tree`` publishes the blocks that covers use; ``Honaker`` publishes all, and averages children into
their parents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels.tree import close_block, cover, trailing_zeros
from tacit.privacy.counters.base import ExactRows
from tacit.privacy.counters.state import Buffers


def levels_of(t: int) -> list[int]:
    """Levels of the blocks that cover [1, t]: the set bits of t, one block each."""
    return [level for level in range(t.bit_length()) if t >> level & 1]


class DyadicBlocks(ExactRows):
    """Counters of dyadic blocks."""

    def column_norm(self) -> float:
        """sqrt(floor(log2 n) + 1): the number of published blocks that hold the first item."""
        return math.sqrt(self.length.bit_length())

    def worst_std(self) -> float:
        """At the end, or where one bit of the length is cleared and all lower ones are set.

        Every set bit adds a positive amount, and lower bits add more.
        """
        filled = [(self.length >> bit << bit) - 1 for bit in levels_of(self.length)]
        return max(self.error_std(t) for t in [self.length, *filled] if t > 0)


@dataclass(frozen=True)
class Tree(DyadicBlocks):
    """Publishes one noisy block sum per step: the one over (t - 2^i, t], 2^i the lowest bit of t.

    These are the only nodes a dyadic cover of a prefix ever uses (docs/papers/lq_jdp.md#counter).
    Prefix n is released too, so the first item lies in the blocks that end at 1, 2, 4, ... <= n:
    floor(log2 n) + 1 of them, one more than ceil(log2 n) when n is a power of two
    (docs/papers/mixture_jdp.md#e5). Memory: log2 n + 1 vectors, twice.
    """

    name: ClassVar[str] = "tree"

    def column_sum(self) -> float:
        """The number of blocks that hold the first item."""
        return self.length.bit_length()

    def error_std(self, t: int) -> float:
        """sqrt(popcount(t)): one unit of noise per block of the cover."""
        return math.sqrt(self._position(t).bit_count())

    def buffers(self, size: int) -> tuple[Buffers, Buffers]:
        """Exact and published block sums, the current block of every level."""
        blank = np.zeros((self.length.bit_length(), size), dtype=np.int64)
        return {"blocks": blank}, {"blocks": blank.copy()}

    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """The block that ends at t: the item and all current blocks of lower levels."""
        blocks = secret["blocks"]
        close_block(blocks, t, item)
        blocks[trailing_zeros(t)] = item
        return item[None]

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """Sum of the published blocks that cover [1, t]."""
        blocks, prefix = public["blocks"], np.empty_like(published[0])
        cover(blocks, t, published[0], prefix)
        blocks[trailing_zeros(t)] = published[0]
        natural: Array = prefix.astype(np.float64)
        return natural

    def _factors(self) -> tuple[Array, Array]:
        n = self.length
        b, c = np.zeros((n, n)), np.zeros((n, n))
        for t in range(1, n + 1):
            lowest = t & -t
            c[t - 1, t - lowest : t] = 1.0
            b[t - 1] = b[t - lowest - 1] if t > lowest else 0.0
            b[t - 1, t - 1] = 1.0
        return b, c


@dataclass(frozen=True)
class Honaker(DyadicBlocks):
    """Publishes every dyadic block once it is complete, right children too.

    A block is estimated by its own noisy sum and by the estimates of its two halves, weighted by
    inverse variance: v_0 = 1, v_i = 1 / (1 + 1 / (2 v_{i-1})) is both the weight of its own sum and
    the variance of the result (docs/papers/mixture_jdp.md#counter-recipes). Item 1 lies in the same
    floor(log2 n) + 1 blocks as in the plain tree, so the noise costs nothing more. Memory: log2 n +
    1 vectors, twice.
    """

    name: ClassVar[str] = "honaker"

    @cached_property
    def variances(self) -> list[float]:
        """v_i of every level."""
        values = [1.0]
        for _ in range(1, self.length.bit_length()):
            values.append(1.0 / (1.0 + 0.5 / values[-1]))
        return values

    def error_std(self, t: int) -> float:
        """Root of the sum of v_i over the blocks of the cover."""
        return math.sqrt(sum(self.variances[level] for level in levels_of(self._position(t))))

    def nodes(self, t: int) -> range:
        """Blocks that end at t, smallest first; after t steps 2 t - popcount(t) are complete."""
        before = 2 * (t - 1) - (t - 1).bit_count()
        return range(before, before + trailing_zeros(t) + 1)

    def buffers(self, size: int) -> tuple[Buffers, Buffers]:
        """Exact sums and estimates, the current block of every level."""
        shape = (self.length.bit_length(), size)
        return {"blocks": np.zeros(shape, dtype=np.int64)}, {"estimates": np.zeros(shape)}

    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """Sums of the blocks that end at t: each is the one below it and its left sibling."""
        blocks, level = secret["blocks"], trailing_zeros(t)
        rows = np.concatenate([item[None], blocks[:level]])
        np.cumsum(rows, axis=0, out=rows)
        blocks[level] = rows[level]
        return rows

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """Sum of the estimates of the blocks that cover [1, t]."""
        estimates = public["estimates"]
        estimate = published[0].astype(np.float64)
        for level in range(1, len(published)):
            v = self.variances[level]
            halves = estimates[level - 1] + estimate
            estimate = v * published[level] + (1.0 - v) * halves
        estimates[len(published) - 1] = estimate
        prefix: Array = estimates[levels_of(t)].sum(axis=0)
        return prefix

    def _factors(self) -> tuple[Array, Array]:
        n = self.length
        count = self.nodes(n + 1).start
        b, c = np.zeros((n, count)), np.zeros((count, n))
        estimates = np.zeros((n.bit_length(), count))
        for t in range(1, n + 1):
            estimate = np.zeros(count)
            for level, node in enumerate(self.nodes(t)):
                v = self.variances[level]
                c[node, t - 2**level : t] = 1.0
                if level:
                    estimate = (1.0 - v) * (estimates[level - 1] + estimate)
                estimate[node] += v
            estimates[trailing_zeros(t)] = estimate
            b[t - 1] = estimates[levels_of(t)].sum(axis=0)
        return b, c
