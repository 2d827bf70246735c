"""Small symmetric positive definite systems, solved in place and in a fixed order of operations."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def factor(A: Array, L: Array, least: float) -> bool:
    """Lower Cholesky factor of A [n, n] into L; False where a pivot falls below ``least``."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if j < i:
                L[i, j] = total / L[j, j]
            elif total >= least and total < np.inf:
                L[i, i] = np.sqrt(total)
            else:
                return False
    return True


@kernel
def factor_or_floor(A: Array, L: Array, floor: float) -> None:
    """Cholesky factor of A, or of A with its eigenvalues raised to ``floor`` where A needs it.

    Noise can make a released matrix indefinite. Then its spectrum is cut at the floor: a function
    of the release alone, so nothing fails and nothing more is told. A is overwritten in that case.
    """
    if factor(A, L, 1e-3 * floor):
        return
    n = A.shape[0]
    for i in range(n):  # the lower triangle speaks; non-finite entries count as nothing
        for j in range(i + 1):
            if not np.isfinite(A[i, j]):
                A[i, j] = 0.0
            A[j, i] = A[i, j]
    values, vectors = np.linalg.eigh(A)
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += vectors[i, k] * max(values[k], floor) * vectors[j, k]
            A[i, j] = total
    if not factor(A, L, 1e-6 * floor):
        for i in range(n):
            for j in range(i):
                L[i, j] = 0.0
            L[i, i] = np.sqrt(max(A[i, i], floor))


@kernel
def solve_lower(L: Array, b: Array, out: Array) -> None:
    """Solve L out = b."""
    for i in range(L.shape[0]):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * out[k]
        out[i] = total / L[i, i]


@kernel
def solve_transposed(L: Array, b: Array, out: Array) -> None:
    """Solve L^T out = b; ``out`` may be ``b``."""
    n = L.shape[0]
    for i in range(n - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, n):
            total -= L[k, i] * out[k]
        out[i] = total / L[i, i]


@kernel
def log_determinant(L: Array) -> float:
    """log det(L L^T)."""
    total = 0.0
    for i in range(L.shape[0]):
        total += np.log(L[i, i])
    return 2.0 * total
