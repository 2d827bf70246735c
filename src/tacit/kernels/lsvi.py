"""Determinants of regularised Gram matrices, as the switching rule of LSVI-UCB++ tests them.

A planning kernel: it sees released matrices only.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def cholesky_logdet(matrix: Array) -> float:
    """Log det of a positive definite matrix, NaN for others; ``matrix`` is overwritten."""
    d = matrix.shape[0]
    total = 0.0
    for j in range(d):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > 0.0:
            return np.nan
        root = math.sqrt(pivot)
        total += math.log(pivot)
        matrix[j, j] = root
        for i in range(j + 1, d):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / root
    return total


@kernel
def log_determinants(packed: Array, ridge: float, least: float, work: Array, logdet: Array) -> bool:
    """Log det(G + ridge I) of every stage; False if an eigenvalue is not above ``least``.

    Args:
        packed: Gram matrices [H, p], off-diagonal entries times sqrt 2.
        ridge: added to the diagonal.
        least: what every eigenvalue must exceed for the result to be used.
        work: work space [d, d].
        logdet: output [H]; complete only if True is returned.
    """
    H = packed.shape[0]
    d = work.shape[0]
    root2 = math.sqrt(2.0)
    for h in range(H):
        for attempt in range(2):
            shift = ridge - least if attempt == 0 else ridge
            k = 0
            for i in range(d):
                work[i, i] = packed[h, k] + shift
                k += 1
                for j in range(i + 1, d):
                    work[j, i] = packed[h, k] / root2
                    k += 1
            value = cholesky_logdet(work)
            if not value == value:
                return False
            logdet[h] = value
            if least == 0.0:
                break
    return True
