"""Euclidean projection onto a scaled probability simplex."""

from __future__ import annotations

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def project_to_simplex(y: Array, total: float, work: Array, out: Array) -> None:
    """The nearest point with entries >= 0 and sum ``total`` >= 0; ``work`` is sorted in place.

    out_i = max(y_i - t, 0) with the threshold t found from the sorted entries.
    """
    n = y.shape[0]
    for i in range(n):  # insertion sort, descending: rows are short
        value = y[i]
        j = i
        while j > 0 and work[j - 1] < value:
            work[j] = work[j - 1]
            j -= 1
        work[j] = value
    running = 0.0
    threshold = 0.0
    for i in range(n):
        running += work[i]
        candidate = (running - total) / (i + 1)
        if work[i] > candidate:
            threshold = candidate
    for i in range(n):
        out[i] = max(y[i] - threshold, 0.0)
