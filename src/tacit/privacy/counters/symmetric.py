"""Symmetric matrices as vectors of the same length in the Euclidean sense.

A replaced user moves a symmetric matrix by some Frobenius distance, which counts every off-diagonal
entry twice. The packed vector holds each once, times sqrt 2, so that its Euclidean norm is the
Frobenius norm. Noise N(0, s^2 I) on the packed vector is, after unpacking, N(0, s^2) on the
diagonal and N(0, s^2 / 2) off it: what the Frobenius sensitivity needs, and no more
(docs/papers/mixture_jdp.md#composition and docs/papers/mixture_jdp.md#e6).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.errors import InvalidInput
from tacit.validate import finite_array, integer


@lru_cache(maxsize=64)
def _upper(dimension: int) -> tuple[IntArray, IntArray, Array]:
    """Rows, columns and weights of the packed entries: the upper triangle, row by row."""
    rows, columns = np.triu_indices(dimension)
    weights = np.where(rows == columns, 1.0, math.sqrt(2.0))
    return frozen(rows), frozen(columns), frozen(weights)


def packed_size(dimension: int) -> int:
    """Entries of a packed d x d matrix: d (d + 1) / 2.

    >>> packed_size(72)
    2628
    """
    dimension = integer(dimension, "dimension", low=1)
    return dimension * (dimension + 1) // 2


def pack(matrix: Array) -> Array:
    """The upper triangle row by row, off-diagonal entries times sqrt 2; leading axes are kept.

    Asymmetry from rounding (up to 1e-9 of the largest entry) is averaged out.
    """
    matrix = finite_array(matrix, "matrix")
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        raise InvalidInput(f"matrix has shape {matrix.shape}, but its last two axes must be square")
    transposed = np.swapaxes(matrix, -1, -2)
    if np.abs(matrix - transposed).max(initial=0.0) > 1e-9 * np.abs(matrix).max(initial=0.0):
        raise InvalidInput("matrix is not symmetric, but only symmetric matrices can be packed")
    rows, columns, weights = _upper(matrix.shape[-1])
    packed: Array = (matrix + transposed)[..., rows, columns] * (0.5 * weights)
    return packed


def unpack(vector: Array) -> Array:
    """The symmetric matrices of packed vectors; leading axes are kept."""
    vector = finite_array(vector, "vector")
    size = vector.shape[-1] if vector.ndim else 0
    dimension = (math.isqrt(8 * size + 1) - 1) // 2
    if size == 0 or packed_size(dimension) != size:
        raise InvalidInput(
            f"vector has shape {vector.shape}, but its last axis must have d (d + 1) / 2 entries"
        )
    rows, columns, weights = _upper(dimension)
    matrix = np.empty((*vector.shape[:-1], dimension, dimension))
    matrix[..., rows, columns] = matrix[..., columns, rows] = vector / weights
    return matrix
