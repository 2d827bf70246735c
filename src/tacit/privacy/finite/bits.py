"""Randomizers whose bits are flipped one by one: a row of true bits, or one cell among many.

See docs/papers/tabular_ldp.md#randomizers and docs/papers/mixture_ldp.md#b3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels.raw import randomizers as kernels
from tacit.kernels.raw.cells import Sampler
from tacit.privacy.finite.chances import BITS, ONE, happens, least_noise, log_above, log_ratio
from tacit.privacy.finite.channel import Pair
from tacit.privacy.finite.oracle import (
    LARGEST_DOMAIN,
    Oracle,
    Randomizer,
    domain_size,
    generator,
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
        truth = integer(self.truth, "truth", low=1, high=ONE - 1)
        if 2 * truth <= ONE:
            raise InvalidInput(f"truth = {truth} / 2^{BITS}, but it must be > 1/2")

    @classmethod
    def calibrate(cls, epsilon: float, domain: int, differing: int) -> BinaryResponse:
        """The least noise at epsilon for the whole row, that is epsilon / differing per bit."""
        differing = integer(differing, "differing", low=1)

        def make(growth: Fraction) -> BinaryResponse:
            each = Fraction(math.exp(log_ratio(growth) / differing))
            return cls(domain, differing, ONE - math.ceil(ONE / (each + 1)))

        return least_noise(epsilon, make)

    @cached_property
    def chances(self) -> tuple[Fraction, Fraction]:
        """The exact probabilities (p, 1 - p)."""
        p = Fraction(self.truth, ONE)
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
        keep = integer(self.keep, "keep", low=1, high=ONE - 1)
        flip = integer(self.flip, "flip", low=1, high=ONE - 1)
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
            return cls(cells, ONE // 2, math.ceil(ONE / (growth + 1)))

        def even(growth: Fraction) -> UnaryEncoding:
            flip = math.ceil(ONE / (Fraction(math.sqrt(growth)) + 1))
            return cls(cells, ONE - flip, flip)

        return least_noise(epsilon, even if symmetric else optimised)

    @classmethod
    def candidates(cls, epsilon: float, domain: int) -> tuple[UnaryEncoding, ...]:
        """Both variants."""
        return cls.calibrate(epsilon, domain), cls.calibrate(epsilon, domain, symmetric=True)

    def rules(self) -> dict[str, Any]:
        """Both chances."""
        chances = {"keep": str(self.keep), "flip": str(self.flip)}
        return {"randomizer": "unary", "domain": self.domain, **chances}

    @property
    def sampler(self) -> Sampler:
        """Given the users' cells all bits are independent."""
        return Sampler(self.domain, 0, 0.0, self.undo)

    @cached_property
    def chances(self) -> tuple[Fraction, Fraction]:
        """The exact probabilities (p, q)."""
        return Fraction(self.keep, ONE), Fraction(self.flip, ONE)

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


def _logs(chances: list[Fraction]) -> Array:
    return np.array([log_ratio(chance) for chance in chances])
