"""Randomized response on the steps of a trajectory, summed over the steps of each cell.

A cell of a pooled table stands for one bit per step (did the step fall into it?). The device flips
every bit with probability q and sends, per cell, how many are then set: the number of ones among
the bits decides the law of that sum, so the simulated sum is drawn without drawing the bits.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel


@kernel
def round_sums(sums: IntArray, steps: IntArray, rng: np.random.Generator, ones: IntArray) -> None:
    """Whole numbers of mean sums / steps: the fraction is rounded up as often as it is large.

    One uniform for every cell that is not whole already.
    """
    for j in range(sums.shape[0]):
        whole = sums[j]
        if steps[j] > 1:
            whole = sums[j] // steps[j]
            rest = sums[j] - whole * steps[j]
            if rest > 0 and rng.random() * steps[j] < rest:
                whole += 1
        ones[j] = whole


@kernel
def respond(
    ones: IntArray,
    trials: IntArray,
    keep: float,
    flip: float,
    rng: np.random.Generator,
    hits: IntArray,
) -> None:
    """How many of the trials[j] bits of a cell are reported as one when ones[j] of them are.

    Two binomials, by counting uniforms: a cell has at most as many bits as an episode has steps.
    """
    for j in range(ones.shape[0]):
        own = min(max(ones[j], 0), trials[j])
        count = 0
        for i in range(trials[j]):
            count += 1 if rng.random() < (keep if i < own else flip) else 0
        hits[j] = count


@kernel
def debias(
    hits: IntArray, trials: IntArray, users: int, keep: float, flip: float, out: Array
) -> None:
    """Unbiased counts (hits - users trials q) / (p - q), cell by cell."""
    for j in range(hits.shape[0]):
        out[j] = (hits[j] - users * trials[j] * flip) / (keep - flip)
