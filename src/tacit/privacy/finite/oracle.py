"""What all randomizers of this package share: two chances, and how to undo them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.kernels.raw.cells import Chances, Sampler
from tacit.privacy.finite.channel import Pair
from tacit.validate import integer, number

LARGEST_DOMAIN = 2**20
"""Reports are rows of as many bits as there are cells."""


class Randomizer(ABC):
    """A report of ``domain`` bits, each set with one of two known probabilities.

    A bit is one with probability p where the user's own bit (cell) is one, with probability q
    where it is not; (hits - n q) / (p - q) then estimates without bias how many of n users have a
    one there. Everything is computed from the exact probabilities, whole units of 2^-64.
    """

    domain: int

    @property
    @abstractmethod
    def chances(self) -> tuple[Fraction, Fraction]:
        """The exact probabilities (p, q)."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Pure epsilon of one report, from the exact probabilities, rounded up."""

    @abstractmethod
    def channel(self) -> Pair:
        """The output laws of a worst pair of inputs."""

    @property
    def p(self) -> float:
        """Probability that a one is reported as one."""
        return float(self.chances[0])

    @property
    def q(self) -> float:
        """Probability that a zero is reported as one."""
        return float(self.chances[1])

    @cached_property
    def variance_outside(self) -> float:
        """Variance of one report's estimate for a user outside the cell: q (1-q) / (p-q)^2."""
        p, q = self.chances
        return float(q * (1 - q) / (p - q) ** 2)

    @cached_property
    def variance_inside(self) -> float:
        """The same for a user who is: p (1-p) / (p-q)^2."""
        p, q = self.chances
        return float(p * (1 - p) / (p - q) ** 2)

    @property
    def undo(self) -> Chances:
        """What undoes it, as kernels take it."""
        return Chances(self.p, self.q, self.variance_outside)

    def variance(self, share: float) -> float:
        """Variance per report for a cell that holds this share of the users."""
        share = number(share, "share", low=0.0, high=1.0)
        return share * self.variance_inside + (1.0 - share) * self.variance_outside


class Oracle(Randomizer):
    """A randomizer of one value in {0, ..., domain - 1}: a frequency oracle."""

    title: ClassVar[str]

    @property
    def sampler(self) -> Sampler | None:
        """How the sum of many reports is drawn at once; None where one by one is the only way."""
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        """Reports of another law are never summed up as those of the class they were made from."""
        super().__init_subclass__(**options)
        own = cls.__dict__
        if ("encode" in own or "encode_secure" in own) and "sampler" not in own:
            cls.sampler = Oracle.sampler  # type: ignore[method-assign]

    @classmethod
    def candidates(cls, epsilon: float, domain: int) -> tuple[Self, ...]:
        """All variants that may have the least variance at epsilon; none is not to be chosen."""
        return ()

    @property
    def ones(self) -> int | None:
        """Number of ones in every report, where it is always the same."""
        return None

    def rules(self) -> dict[str, Any]:
        """What a device must know to draw a report, as JSON; thresholds are texts, being long.

        Devices know what is written in docs/reference/wire.md; others of this name are of no use
        to them.
        """
        return {"randomizer": self.title, "domain": self.domain}

    @property
    @abstractmethod
    def covariance_outside(self) -> float:
        """Covariance of one report's estimates of two cells, for a user in neither of them."""

    def sum_variance(self, cells: int) -> float:
        """Variance of the summed estimates of that many cells, for a user in none of them."""
        return cells * (self.variance_outside + (cells - 1) * self.covariance_outside)

    @abstractmethod
    def encode(self, cell: int, rng: np.random.Generator) -> IntArray:
        """A simulated report: D zeros and ones."""

    @abstractmethod
    def encode_secure(self, cell: int) -> IntArray:
        """A report for a real person: exact chances, the operating system's entropy, no seed."""

    def log_ratio(self, reports: IntArray, first: Array, second: Array) -> Array:
        """Log of P(report | second) / P(report | first), one per row of zeros and ones.

        The user's cell is drawn from ``first`` or from ``second`` [D]. The probability of a report
        is proportional to exp(epsilon) if it names the user's cell and to 1 if not.
        """
        weights = np.exp(self.epsilon * reports)
        ratio: Array = np.log(weights @ second) - np.log(weights @ first)
        return ratio

    def _cell(self, cell: int) -> int:
        return integer(cell, "cell", low=0, high=self.domain - 1)


def domain_size(domain: object) -> int:
    """A number of cells that can be randomized."""
    return integer(domain, "domain", low=2, high=LARGEST_DOMAIN)


def whole_numbers(value: object, name: str, size: int, high: int) -> IntArray:
    """An int64 row of ``size`` numbers in [0, high]."""
    array = np.asarray(value)
    allowed = f"{size} whole numbers >= 0 and <= {high}"
    if array.shape != (size,) or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"{name} has shape {array.shape} and type {array.dtype}, but it must be {allowed}"
        )
    bad = (array < 0) | (array > high)
    if bad.any():
        where = int(np.argmax(bad))
        raise InvalidInput(f"{name}[{where}] = {array[where]}, but it must be {allowed}")
    return np.ascontiguousarray(array, dtype=np.int64)


def generator(rng: object) -> np.random.Generator:
    """A numpy Generator; simulation has no default source of randomness."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng = {rng!r}, but it must be a numpy Generator")
    return rng
