"""Largest distances between what two users can contribute: closed forms and enumeration."""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array

MOST_ROWS = 4000
"""Longest list of different contributions that is compared pair by pair."""


def squared_diameter(rows: Array) -> float:
    """Largest squared distance between two rows, exact; for very long lists an upper bound.

    The bound for long lists is that of a ball around the mean, (2 radius)^2.
    """
    unique = np.unique(rows, axis=0)
    if len(unique) > MOST_ROWS:
        centre = unique.mean(axis=0)
        return 4.0 * float(((unique - centre) ** 2).sum(axis=1).max())
    worst = 0.0
    for row in unique:
        worst = max(worst, float(((unique - row) ** 2).sum(axis=1).max()))
    return worst


def outer_pair(gram: float, target: float) -> float:
    """Largest squared distance of (g x x^T, t x y) over |x| <= 1, |y| <= 1: generic features.

    2 g^2 (1 - c^2) + 2 t^2 (1 - c) with c the cosine of two unit vectors, y = 1 for both; the
    maximum is at c = -t^2 / (2 g^2) or at c = -1
    (docs/papers/mixture_ldp.md#sensitivities, docs/papers/mixture_jdp.md#sensitivities).
    """
    first = 2.0 * gram**2
    if target**2 > first or first == 0.0:
        return 4.0 * target**2
    return first * (1.0 + target**2 / first) ** 2


def orthogonal_pair(gram: float, target: float, signed: bool) -> float:
    """The same where two x are equal or orthogonal: then only equal x with opposite y compete."""
    apart = 2.0 * gram**2 + 2.0 * target**2
    return max(apart, 4.0 * target**2) if signed else apart


def triangle_pair(gram: float, target: float, states: int) -> float:
    """One-hot features, unweighted upper triangle: S (S + 1) v^4 for the matrix, in units of S v^2.

    |x| = sqrt(S) v is one unit of norm (docs/papers/mixture_ldp.md#sensitivities).
    """
    return (1.0 + 1.0 / states) * gram**2 + 2.0 * target**2


def box_pair(gram: float, target: float, dimension: int, reach: float) -> float:
    """x in [0, 1]^d, 0 <= y <= 1: every entry moves by at most 1.

    See docs/papers/mixture_jdp.md#sensitivities; ``gram`` and ``target`` are per unit of |x| =
    ``reach``.
    """
    matrix = min(2.0, (dimension / reach**2) ** 2)
    vector = min(4.0, dimension / reach**2)
    return matrix * gram**2 + vector * target**2


def packed(x: Array, off: float) -> Array:
    """x x^T of every row, lower triangle row by row, off-diagonal entries times ``off``."""
    width = x.shape[1]
    rows, columns = np.tril_indices(width)
    weights = np.where(rows == columns, 1.0, off)
    product: Array = x[:, rows] * x[:, columns] * weights
    return product


def packed_size(width: int) -> int:
    """Entries of a packed matrix."""
    return width * (width + 1) // 2


ISOMETRIC = math.sqrt(2.0)
"""Weight of off-diagonal entries that makes the packed norm the Frobenius norm."""
