"""Fresh noise on every running sum: what a paper without a tree does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.privacy.counters.base import ExactRows
from tacit.privacy.counters.state import Buffers


@dataclass(frozen=True)
class Independent(ExactRows):
    """Prefix t plus noise of its own: C is the matrix of prefix sums, B the identity.

    The first item is in all n published rows, so mu grows with sqrt n. Here to price the published
    DP-LSVI-UCB++ (docs/papers/linear_jdp.md#published-constants), which composes K releases of each
    Gram matrix.
    """

    name: ClassVar[str] = "independent"

    def column_norm(self) -> float:
        """sqrt n: the first item is in every row."""
        return math.sqrt(self.length)

    def error_std(self, t: int) -> float:
        """One unit of noise, always."""
        self._position(t)
        return 1.0

    def nodes(self, t: int) -> range:
        """One node per step."""
        return range(t - 1, t)

    def buffers(self, size: int) -> tuple[Buffers, Buffers]:
        """The running sum; nothing public has to be kept."""
        return {"sum": np.zeros(size, dtype=np.int64)}, {}

    def encode(self, secret: Buffers, t: int, item: IntArray) -> IntArray:
        """The prefix itself."""
        secret["sum"] += item
        return secret["sum"][None].copy()

    def decode(self, public: Buffers, t: int, published: IntArray) -> Array:
        """What was published."""
        prefix: Array = published[0].astype(np.float64)
        return prefix

    def _factors(self) -> tuple[Array, Array]:
        ones = np.tril(np.ones((self.length, self.length)))
        return np.eye(self.length), ones
