"""A draw from cumulative probabilities, whoever they are about."""

from __future__ import annotations

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def draw(cdf: Array, u: float) -> int:
    """The first index whose cumulative probability exceeds u."""
    low = 0
    high = cdf.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if cdf[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low
