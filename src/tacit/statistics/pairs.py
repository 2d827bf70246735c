"""How far apart two steps of linear statistics can be: every pair of known features is tried.

Replacing one user replaces, at every stage, one feature vector phi (with weight w <= 1) by another
one. What that costs is a maximum over pairs of features and the corners of everything else, since
squared distances are convex in weights, rewards and values. With finitely many states and actions
it is found by looking at all pairs (docs/papers/linear_jdp.md#joint-price); too many pairs are
replaced by the bound that holds for every phi of norm at most 1.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tacit.arrays import Array, frozen

MOST_PAIRS = 4_000_000
"""Pairs of features looked at one by one."""


class FeaturePairs:
    """Inner products (|phi|^2, |phi'|^2, phi.phi') of all pairs, "nobody" (zero) included.

    Args:
        phi: features [S, A, d], clipped here to norm at most 1.
    """

    def __init__(self, phi: Array) -> None:
        flat = phi.reshape(-1, phi.shape[-1])
        flat = np.unique(flat, axis=0)
        flat = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1.0)
        self.bounded_only = len(flat) ** 2 > MOST_PAIRS
        if self.bounded_only:
            self.inner: Array = np.linspace(-1.0, 1.0, 2001)
            self.one: Array = np.ones_like(self.inner)
            self.two: Array = self.one
            return
        with_nobody = np.vstack([flat, np.zeros(flat.shape[1])])
        inner = np.clip(with_nobody @ with_nobody.T, -1.0, 1.0)
        rows, columns = np.triu_indices(len(with_nobody))
        self.inner = inner[rows, columns]
        self.one = np.diag(inner)[rows]
        self.two = np.diag(inner)[columns]

    @cached_property
    def gram(self) -> Array:
        """|phi phi^T - phi' phi'^T|_F^2 of every pair."""
        return frozen(self.one**2 + self.two**2 - 2 * self.inner**2)

    @cached_property
    def target(self) -> Array:
        """Largest |phi u - phi' u'|^2 over |u|, |u'| <= 1/2: an answer of centred range 1."""
        return frozen((self.one + self.two + 2 * np.abs(self.inner)) / 4)

    def vector(self, length2: float, least: float, largest: float) -> Array:
        """Largest |phi u^T - phi' u'^T|_F^2 for vectors u of squared length ``length2``.

        Args:
            length2: |u|^2 and |u'|^2.
            least: smallest inner product u.u'.
            largest: largest inner product u.u'.
        """
        across = np.where(self.inner >= 0.0, least, largest) * self.inner
        distance: Array = length2 * (self.one + self.two) - 2 * across
        return distance

    def worst(self, squares: Array) -> float:
        """The largest of these, with room for the angles between those looked at."""
        return float(squares.max()) * (1 + 1e-5 if self.bounded_only else 1 + 1e-12)
