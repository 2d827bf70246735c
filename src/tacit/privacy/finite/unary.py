"""Unary encoding: one bit per cell, each flipped on its own (docs/papers/mixture_ldp.md#b3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels import finite as kernels
from tacit.privacy.finite.bits import bit_rows, product_pmf
from tacit.privacy.finite.channel import Pair
from tacit.privacy.finite.grid import BITS, GRID, happens, least_noise, log_above, log_ratio
from tacit.privacy.finite.oracle import (
    MOST_USERS,
    Oracle,
    domain_size,
    generator,
    table_size,
    whole_numbers,
)
from tacit.validate import integer


@dataclass(frozen=True)
class UnaryEncoding(Oracle):
    """One bit per cell: the own cell's is one with probability p, any other with probability q.

    Two users differ in two bits, so the log ratio is exactly log(p (1 - q) / (q (1 - p))).

    Attributes:
        domain: number of cells D.
        keep: p in units of 2^-64.
        flip: q in units of 2^-64.
    """

    title: ClassVar[str] = "unary encoding"
    domain: int
    keep: int
    flip: int

    def __post_init__(self) -> None:
        domain_size(self.domain)
        keep = integer(self.keep, "keep", low=1, high=GRID - 1)
        flip = integer(self.flip, "flip", low=1, high=GRID - 1)
        if keep <= flip:
            raise InvalidInput(
                f"keep = {keep} / 2^{BITS}, but it must be > flip = {flip} / 2^{BITS}: "
                "the own cell has to be the likelier one"
            )

    @classmethod
    def calibrate(cls, epsilon: float, domain: int, symmetric: bool = False) -> UnaryEncoding:
        """The least noise at epsilon.

        Optimised for rare cells by default: p = 1/2, q = 1 / (e^eps + 1). The symmetric variant
        has p = 1 - q = e^(eps/2) / (e^(eps/2) + 1): better inside a cell, worse outside.
        """
        cells = domain_size(domain)

        def optimised(growth: Fraction) -> UnaryEncoding:
            return cls(cells, GRID // 2, math.ceil(GRID / (growth + 1)))

        def even(growth: Fraction) -> UnaryEncoding:
            flip = math.ceil(GRID / (Fraction(math.sqrt(growth)) + 1))
            return cls(cells, GRID - flip, flip)

        return least_noise(epsilon, even if symmetric else optimised)

    @cached_property
    def chances(self) -> tuple[Fraction, Fraction]:
        """The exact probabilities (p, q)."""
        return Fraction(self.keep, GRID), Fraction(self.flip, GRID)

    @cached_property
    def epsilon(self) -> float:
        """log(p (1 - q) / (q (1 - p))), rounded up."""
        p, q = self.chances
        return log_above(p * (1 - q) / (q * (1 - p)))

    def channel(self) -> Pair:
        """The two bits in which the users of a pair differ; the others have the same law."""
        p, q = self.chances
        first = [p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)]
        second = [first[0], first[2], first[1], first[3]]
        return Pair(_logs(first), _logs(second), (1, 1, 1, 1))

    @property
    def covariance_outside(self) -> float:
        """Bits are independent."""
        return 0.0

    def covariance(self, cell: int) -> Array:
        """Exact covariance [D, D] of one report's estimates: bits are independent."""
        diagonal = np.full(self.domain, self.variance_outside)
        diagonal[self._cell(cell)] = self.variance_inside
        return np.diag(diagonal)

    def outputs(self) -> IntArray:
        """All rows of D bits, in binary order."""
        table_size(self.domain, 2**self.domain)
        return bit_rows(self.domain)

    def pmf(self) -> Array:
        """Probability of each row given each cell [D, outputs]."""
        return product_pmf(np.eye(self.domain, dtype=np.int64), self.outputs(), self.chances)

    def encode(self, cell: int, rng: np.random.Generator) -> IntArray:
        """A simulated report: D zeros and ones."""
        bits = np.zeros(self.domain, dtype=np.int64)
        bits[self._cell(cell)] = 1
        report = np.empty_like(bits)
        kernels.encode_bits(bits, self.p, self.q, generator(rng), report)
        return report

    def encode_secure(self, cell: int) -> IntArray:
        """A report for a real person: one exact coin per bit."""
        cell = self._cell(cell)
        coins = [happens(self.keep if j == cell else self.flip) for j in range(self.domain)]
        return np.array(coins, dtype=np.int64)

    def aggregate(self, counts: IntArray, rng: np.random.Generator) -> IntArray:
        """Simulated sum of the reports of counts[x] users in each cell x, exact in joint law."""
        counts = whole_numbers(counts, "counts", self.domain, high=MOST_USERS)
        hits = np.empty(self.domain, dtype=np.int64)
        kernels.sum_bits(counts, int(counts.sum()), self.p, self.q, generator(rng), hits)
        return hits


def _logs(chances: list[Fraction]) -> Array:
    return np.array([log_ratio(chance) for chance in chances])
