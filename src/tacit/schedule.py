"""When a learner publishes: public rules that look at the number of users served only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Every:
    """A new publication after every ``users`` users."""

    users: int = 1

    def __call__(self, served: int) -> int:
        """The same number every time."""
        return self.users


@dataclass(frozen=True)
class Geometric:
    """Releases after ``first`` users, then whenever their number has grown by ``growth``.

    Few releases mean little noise per release: the boundaries are first, then last + max(1,
    ceil(growth last) - last), cut at ``total`` (spec mixture_jdp B5).
    """

    first: int
    growth: float
    total: int

    def __call__(self, served: int) -> int:
        """Users until the next boundary."""
        if served < self.first:
            return self.first - served
        return max(1, math.ceil(self.growth * served) - served)

    def boundaries(self) -> list[int]:
        """Numbers of users at which something is released; the last batch is never released."""
        found, served = [], 0
        while True:
            served += self(served)
            if served >= self.total:
                return found
            found.append(served)

    def largest_batch(self) -> int:
        """Users in the largest batch."""
        edges = np.array([0, *self.boundaries(), self.total])
        return int(np.diff(edges).max())
