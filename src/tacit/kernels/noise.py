"""Simulated noise in whole grid steps, written into a buffer."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel


@kernel
def fill_laplace(scales: Array, rng: np.random.Generator, out: IntArray) -> None:
    """Rounded Laplace draws: the difference of two exponentials, which is fast to draw."""
    for i in range(scales.shape[0]):
        draw = rng.standard_exponential() - rng.standard_exponential()
        out[i] = np.int64(np.rint(scales[i] * draw))


@kernel
def fill_gaussian(scales: Array, rng: np.random.Generator, out: IntArray) -> None:
    """Rounded normal draws."""
    for i in range(scales.shape[0]):
        out[i] = np.int64(np.rint(scales[i] * rng.standard_normal()))


@kernel
def add_scaled(contribution: IntArray, factors: IntArray, message: IntArray) -> None:
    """Add a contribution, moved to the finer grid, to the noise that is there."""
    for i in range(message.shape[0]):
        message[i] += contribution[i] * factors[i]
