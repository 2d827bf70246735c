"""Subset selection, and k-ary response as its smallest case (docs/papers/tabular_ldp.md#b1)."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.kernels.raw import randomizers as kernels
from tacit.kernels.raw.cells import Sampler
from tacit.privacy.finite import chances as odds
from tacit.privacy.finite.channel import Pair
from tacit.privacy.finite.oracle import Oracle, domain_size, generator
from tacit.validate import integer, number

S = TypeVar("S", bound="SubsetSelection")


@dataclass(frozen=True)
class SubsetSelection(Oracle):
    """Reports ``size`` of the cells: the user's own one more often than any other.

    The own cell is reported with probability p = own / 2^64, together with a uniform subset of
    size - 1 others; else a uniform subset of size others is. An output has one of two
    probabilities, so the log ratio is exactly log(p (D - size) / ((1 - p) size)).

    Attributes:
        domain: number of cells D.
        size: omega, ones in every report.
        own: chance of the own cell, in units of 2^-64.
    """

    title: ClassVar[str] = "subset selection"
    domain: int
    size: int
    own: int

    def __post_init__(self) -> None:
        domain = domain_size(self.domain)
        size = integer(self.size, "size", low=1, high=domain - 1)
        own = integer(self.own, "own", low=1, high=odds.ONE - 1)
        if own * domain <= size * odds.ONE:
            raise InvalidInput(
                f"own = {own} / 2^{odds.BITS}, but it must be > size / domain = {size} / {domain}: "
                "the own cell has to be the likelier one"
            )

    @classmethod
    def calibrate(cls, epsilon: float, domain: int) -> Self:
        """The least noise at epsilon, with the size that has the least variance outside a cell."""
        return _calibrated(cls, epsilon, domain, best_size(epsilon, domain))

    @classmethod
    def candidates(cls, epsilon: float, domain: int) -> tuple[Self, ...]:
        """The best size."""
        return (cls.calibrate(epsilon, domain),)

    @cached_property
    def chances(self) -> tuple[Fraction, Fraction]:
        """p, and q = (size - p) / (D - 1): the ones of a report add up to its size."""
        p = Fraction(self.own, odds.ONE)
        return p, (self.size - p) / (self.domain - 1)

    @property
    def ones(self) -> int:
        """A report names exactly ``size`` cells."""
        return self.size

    @cached_property
    def blanket(self) -> float:
        """Share of reports that are a uniform subset of all cells, whatever the user's cell."""
        return float((1 - self.chances[0]) * self.domain / (self.domain - self.size))

    def rules(self) -> dict[str, Any]:
        """Size of the set and chance of the own cell."""
        domain, size = self.domain, self.size
        return {"randomizer": "subset", "domain": domain, "size": size, "own": str(self.own)}

    @property
    def sampler(self) -> Sampler:
        """Uniform subsets, some of them around the own cell: the ones of a report are dependent."""
        return Sampler(self.domain, self.size, self.blanket, self.undo)

    @cached_property
    def epsilon(self) -> float:
        """log(p (D - size) / ((1 - p) size)), rounded up."""
        rest = odds.ONE - self.own
        return odds.log_above(Fraction(self.own * (self.domain - self.size), rest * self.size))

    def channel(self) -> Pair:
        """Subsets with both cells of the pair, with one of them, with none; all pairs are alike."""
        p, others, size = self.chances[0], self.domain - 2, self.size
        one = math.comb(others, size - 1)  # of many cells these numbers are long: one is enough
        both, none = one * (size - 1) // (others - size + 2), one * (others - size + 1) // size
        with_own = odds.log_ratio(p / (both + one))
        without = odds.log_ratio((1 - p) / (one + none))
        classes = [
            (with_own, with_own, both),
            (with_own, without, one),
            (without, with_own, one),
            (without, without, none),
        ]
        first, second, outputs = zip(*(c for c in classes if c[2] > 0), strict=True)
        return Pair(np.array(first), np.array(second), outputs)

    @cached_property
    def covariance_outside(self) -> float:
        """Negative: the ones of a report are shared out."""
        p, q = self.chances
        others, size = self.domain - 1, self.size
        both = Fraction(0)  # two given cells other than the own one are reported
        if others > 1:
            both = (p * (size - 2) + (1 - p) * size) * (size - 1) / (others * (others - 1))
        return float((both - q * q) / (p - q) ** 2)

    def encode(self, cell: int, rng: np.random.Generator) -> IntArray:
        """A simulated report: D zeros and ones."""
        report = np.empty(self.domain, dtype=np.int64)
        kernels.encode_subset(self._cell(cell), self.size, self.blanket, generator(rng), report)
        return report

    def encode_secure(self, cell: int) -> IntArray:
        """A report for a real person: an exact coin and an exactly uniform subset.

        The same steps are taken on both sides of the coin, so that their number tells nothing.
        """
        cell = self._cell(cell)
        report = np.zeros(self.domain, dtype=np.int64)
        others = [x for x in range(self.domain) if x != cell]
        for i in range(self.size):  # the first steps of a Fisher-Yates shuffle
            j = i + secrets.randbelow(len(others) - i)
            others[i], others[j] = others[j], others[i]
        if odds.happens(self.own):
            others[self.size - 1] = cell
        report[others[: self.size]] = 1
        return report


@dataclass(frozen=True)
class KaryResponse(SubsetSelection):
    """One cell: the own one, or else any other (k-ary randomized response); size is 1."""

    title: ClassVar[str] = "k-ary response"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size != 1:
            raise InvalidInput(f"size = {self.size}, but a k-ary response names 1 cell")

    @classmethod
    def calibrate(cls, epsilon: float, domain: int) -> Self:
        """The least noise at epsilon."""
        return _calibrated(cls, epsilon, domain, 1)


def best_size(epsilon: float, domain: int) -> int:
    """The omega in 1..D/2 of least variance q (1-q) / (p-q)^2 (docs/papers/tabular_ldp.md#b1)."""
    excess = math.expm1(min(number(epsilon, "epsilon", low=odds.LEAST_EPSILON), float(odds.BITS)))
    cells = domain_size(domain)
    size = np.arange(1, cells // 2 + 1, dtype=np.float64)
    weight = cells + size * excess  # that is omega e^eps + D - omega
    q = size * (cells - 1 + excess * (size - 1)) / ((cells - 1) * weight)
    gain = size * (cells - size) * excess / ((cells - 1) * weight)
    return 1 + int(np.argmin(q * (1 - q) / gain**2))


def _calibrated(cls: type[S], epsilon: float, domain: int, size: int) -> S:
    cells = domain_size(domain)

    def make(growth: Fraction) -> S:
        rest = odds.ONE * (cells - size) / (size * growth + cells - size)
        return cls(cells, size, odds.ONE - math.ceil(rest))

    return odds.least_noise(epsilon, make)
