"""The binary tree counter on plain arrays: blocks of a stream, and the prefixes they cover.

Item t closes the block over (t - 2^i, t], 2^i the lowest set bit of t. ``blocks`` and ``public``
hold the newest block of every level, exact and noisy [levels, cells].
"""

from __future__ import annotations

from tacit.arrays import IntArray
from tacit.kernels import kernel


@kernel
def trailing_zeros(t: int) -> int:
    """Level i of the largest dyadic block that ends at t."""
    level = 0
    while (t >> level) & 1 == 0:
        level += 1
    return level


@kernel
def close_block(blocks: IntArray, t: int, item: IntArray) -> None:
    """Make item t the sum of the block that ends at t: all blocks of lower levels join it."""
    for level in range(trailing_zeros(t)):
        for i in range(item.shape[0]):
            item[i] += blocks[level, i]


@kernel
def cover(public: IntArray, t: int, newest: IntArray, out: IntArray) -> None:
    """Prefix t: the noisy block that ends at t, and the earlier ones that cover the rest."""
    out[:] = newest
    for level in range(trailing_zeros(t) + 1, public.shape[0]):
        if (t >> level) & 1:
            for i in range(out.shape[0]):
                out[i] += public[level, i]
