"""Exact running sums of integer reports, and their scaling to natural units."""

from __future__ import annotations

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel


@kernel
def absorb(sums: IntArray, report: IntArray) -> None:
    """Add one report; integers, so that no order of arrival can change the result."""
    for i in range(sums.shape[0]):
        sums[i] += report[i]


@kernel
def scale(sums: IntArray, unit: Array, out: Array) -> None:
    """Natural units: whole steps times the size of a step, cell by cell."""
    for i in range(sums.shape[0]):
        out[i] = sums[i] * unit[i]
