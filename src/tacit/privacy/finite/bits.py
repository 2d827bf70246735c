"""Randomized response on a row of bits (docs/papers/tabular_ldp.md#randomizers)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels import finite as kernels
from tacit.privacy.finite.channel import Pair
from tacit.privacy.finite.grid import BITS, GRID, happens, least_noise, log_above, log_ratio
from tacit.privacy.finite.oracle import (
    LARGEST_DOMAIN,
    MOST_USERS,
    Randomizer,
    generator,
    table_size,
    whole_numbers,
)
from tacit.validate import integer


@dataclass(frozen=True)
class BinaryResponse(Randomizer):
    """Every bit of a row is reported truthfully with probability p, else flipped.

    With eps0 = log(p / (1 - p)) per bit, two rows that differ in at most m bits give log ratio
    exactly m eps0. For the paper's bits of a trajectory (reward, visit and transition at every
    step) m is 6H - 2; a real reward is rounded to a bit by the user before (Bernoulli(r)), which
    gives the law printed in Algorithm 5.

    Attributes:
        domain: number of bits.
        differing: m, the most bits in which the rows of two users can differ: the caller owes it.
        truth: p in units of 2^-64.
    """

    domain: int
    differing: int
    truth: int

    def __post_init__(self) -> None:
        domain = integer(self.domain, "domain", low=1, high=LARGEST_DOMAIN)
        integer(self.differing, "differing", low=1, high=domain)
        truth = integer(self.truth, "truth", low=1, high=GRID - 1)
        if 2 * truth <= GRID:
            raise InvalidInput(f"truth = {truth} / 2^{BITS}, but it must be > 1/2")

    @classmethod
    def calibrate(cls, epsilon: float, domain: int, differing: int) -> BinaryResponse:
        """The least noise at epsilon for the whole row, that is epsilon / differing per bit."""
        differing = integer(differing, "differing", low=1)

        def make(growth: Fraction) -> BinaryResponse:
            each = Fraction(math.exp(log_ratio(growth) / differing))
            return cls(domain, differing, GRID - math.ceil(GRID / (each + 1)))

        return least_noise(epsilon, make)

    @cached_property
    def chances(self) -> tuple[Fraction, Fraction]:
        """The exact probabilities (p, 1 - p)."""
        p = Fraction(self.truth, GRID)
        return p, 1 - p

    @cached_property
    def epsilon_per_bit(self) -> float:
        """eps0 = log(p / (1 - p)), rounded up."""
        p, q = self.chances
        return log_above(p / q)

    @cached_property
    def epsilon(self) -> float:
        """The sum eps0 * differing, rounded up."""
        return math.nextafter(self.differing * self.epsilon_per_bit, math.inf)

    def channel(self) -> Pair:
        """The differing bits only, by the number of them that agree with the first input.

        A pair that differs in fewer bits is this one with some bits not looked at.
        """
        honest, flipped = (log_ratio(chance) for chance in self.chances)
        m = self.differing
        first = np.array([j * honest + (m - j) * flipped for j in range(m + 1)])
        return Pair(first, first[::-1], tuple(math.comb(m, j) for j in range(m + 1)))

    def covariance(self) -> Array:
        """Exact covariance of one report's estimates: independent, and alike for both values."""
        return np.diag(np.full(self.domain, self.variance_outside))

    def outputs(self) -> IntArray:
        """All rows of that many bits, in binary order."""
        table_size(1, 2**self.domain)
        return bit_rows(self.domain)

    def pmf(self, inputs: IntArray) -> Array:
        """Probability of each output given each of these rows of true bits [inputs, outputs]."""
        rows = [whole_numbers(row, "inputs", self.domain, high=1) for row in np.asarray(inputs)]
        table_size(len(rows), 2**self.domain)
        return product_pmf(np.array(rows), self.outputs(), self.chances)

    def encode(self, bits: IntArray, rng: np.random.Generator) -> IntArray:
        """A simulated report on a row of true bits."""
        bits = whole_numbers(bits, "bits", self.domain, high=1)
        report = np.empty_like(bits)
        kernels.encode_bits(bits, self.p, self.q, generator(rng), report)
        return report

    def encode_secure(self, bits: IntArray) -> IntArray:
        """A report for a real person: one exact coin per bit, the operating system's entropy."""
        bits = whole_numbers(bits, "bits", self.domain, high=1)
        flips = [not happens(self.truth) for _ in range(self.domain)]
        return bits ^ np.array(flips, dtype=np.int64)

    def aggregate(self, ones: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """Simulated sum of n reports when ones[j] of the users hold a one at j, exact in law."""
        n = integer(n, "n", low=0, high=MOST_USERS)
        ones = whole_numbers(ones, "ones", self.domain, high=n)
        hits = np.empty_like(ones)
        kernels.sum_bits(ones, n, self.p, self.q, generator(rng), hits)
        return hits


def bit_rows(bits: int) -> IntArray:
    """All rows of that many bits, in binary order [2^bits, bits]."""
    return np.arange(2**bits)[:, None] >> np.arange(bits - 1, -1, -1)[None, :] & 1


def product_pmf(inputs: IntArray, outputs: IntArray, chances: tuple[Fraction, Fraction]) -> Array:
    """Probability of each row of independent bits given each row of true bits."""
    p, q = chances
    table = np.array([[float(1 - q), float(q)], [float(1 - p), float(p)]])  # [true, reported]
    pmf = np.ones((inputs.shape[0], outputs.shape[0]))
    for j in range(inputs.shape[1]):
        pmf *= table[inputs[:, j]][:, outputs[:, j]]
    return pmf
