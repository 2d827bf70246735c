"""The binary tree counter: every prefix is a sum of at most log2 n + 1 noisy dyadic blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels.tree import close_block, cover, lowest_bit
from tacit.privacy.counters.base import ExactRows
from tacit.privacy.counters.state import Buffers


def trailing_zeros(t: int) -> int:
    """Level of the largest dyadic block that ends at t."""
    return (t & -t).bit_length() - 1


def levels_of(t: int) -> list[int]:
    """Levels of the blocks that cover [1, t]: the set bits of t, one block each."""
    return [level for level in range(t.bit_length()) if t >> level & 1]


@dataclass(frozen=True)
class Tree(ExactRows):
    """Publishes one noisy block sum per step: the one over (t - 2^i, t], 2^i the lowest bit of t.

    These are the only nodes a dyadic cover of a prefix ever uses (docs/papers/lq_jdp.md#counter).
    Prefix n is released too, so the first item lies in the blocks that end at 1, 2, 4, ... <= n:
    floor(log2 n) + 1 of them, one more than ceil(log2 n) when n is a power of two
    (docs/papers/mixture_jdp.md#e5). Memory: log2 n + 1 vectors, twice.
    """

    name: ClassVar[str] = "tree"

    def column_norm(self) -> float:
        """sqrt(floor(log2 n) + 1): the number of blocks that hold the first item."""
        return math.sqrt(self.length.bit_length())

    def error_std(self, t: int) -> float:
        """sqrt(popcount(t)): one unit of noise per block of the cover."""
        return math.sqrt(self._position(t).bit_count())

    def nodes(self, t: int) -> range:
        """One node per step."""
        return range(t - 1, t)

    def buffers(self, size: int, steps: int) -> tuple[Buffers, Buffers]:
        """Exact and published block sums, the current block of every level."""
        blank = np.zeros((self.length.bit_length(), size), dtype=np.int64)
        return {"blocks": blank}, {"blocks": blank.copy()}

    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """The block that ends at t: the item and all current blocks of lower levels."""
        blocks = secret["blocks"]
        close_block(blocks, t, item)
        blocks[lowest_bit(t)] = item
        return item[None]

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """Sum of the published blocks that cover [1, t]."""
        blocks, prefix = public["blocks"], np.empty_like(published[0])
        cover(blocks, t, published[0], prefix)
        blocks[lowest_bit(t)] = published[0]
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
