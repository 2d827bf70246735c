"""A draw from cumulative probabilities, whoever they are about."""

from __future__ import annotations

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def draw_within(cdf: Array, low: int, high: int, u: float) -> int:
    """The first index in [low, high) whose cumulative probability exceeds u."""
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if cdf[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def draw(cdf: Array, u: float) -> int:
    """The first index whose cumulative probability exceeds u."""
    return draw_within(cdf, 0, cdf.shape[0], u)
