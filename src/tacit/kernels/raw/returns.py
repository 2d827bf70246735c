"""Returns seen through a public window: what a person contributes to a search."""

from __future__ import annotations

import math

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel


@kernel
def through_window(rewards: Array, centre: float, half: float, out: IntArray) -> None:
    """x = clip((R - centre) / half, -1, 1) of every row's sum R, in whole steps of the grid.

    What is not a number counts as -1, and so does everything in a window without width.
    """
    for k in range(rewards.shape[0]):
        total = 0.0
        for h in range(rewards.shape[1]):
            total += rewards[k, h]
        x = -1.0
        if half > 0.0:
            x = (total - centre) / half
        if x >= 1.0:
            out[k] = STEPS
        elif x > -1.0:
            out[k] = int(math.floor(x * STEPS + 0.5))
        else:
            out[k] = -STEPS


@kernel
def add_windowed(x: IntArray, z: IntArray, b: float, out: IntArray) -> None:
    """Add (x z, x, b (x^2 - 1/2)) of every person to ``out`` [d + 2], rounded towards zero."""
    n, d = z.shape
    for k in range(n):
        for j in range(d):
            product = x[k] * z[k, j]
            step = abs(product) // STEPS
            out[j] += step if product >= 0 else -step
        out[d] += x[k]
        share = x[k] / STEPS
        out[d + 1] += int(b * (share * share - 0.5) * STEPS)


@kernel
def shifts_of(x: IntArray, coins: Array, largest: int, out: IntArray) -> None:
    """(x + 1) / 2 * largest, rounded to a whole number by a public coin in (0, 1)."""
    for k in range(x.shape[0]):
        at = (x[k] / STEPS + 1.0) / 2.0 * largest
        out[k] = min(int(math.floor(at + coins[k])), largest)
