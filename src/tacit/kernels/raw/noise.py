"""Simulated noise in whole grid steps, written into a buffer."""

from __future__ import annotations

import math

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
def draw_bounded(rng: np.random.Generator) -> float:
    """A draw on (-1, 1) with density proportional to exp(-exp(1 / (1 - x^2))), by rejection.

    Two uniforms per attempt: x in (-1, 1), accepted with probability exp(e - exp(1 / (1 - x^2)));
    42% are accepted (docs/papers/tabular_ldp.md#randomizers).
    """
    while True:
        x = 2.0 * rng.random() - 1.0
        room = 1.0 - x * x
        if room > 0.0 and rng.random() < math.exp(math.e - math.exp(min(1.0 / room, 700.0))):
            return x


@kernel
def fill_bounded(scales: Array, rng: np.random.Generator, out: IntArray) -> None:
    """Rounded draws of bounded noise; a scale is a radius."""
    for i in range(scales.shape[0]):
        out[i] = np.int64(np.rint(scales[i] * draw_bounded(rng)))


@kernel
def add_scaled(contribution: IntArray, factors: IntArray, message: IntArray) -> None:
    """Add a contribution, moved to the finer grid, to the noise that is there."""
    for i in range(message.shape[0]):
        message[i] += contribution[i] * factors[i]
