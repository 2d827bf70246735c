"""A randomizer of one number in [-1, 1]: a run of likely outputs that slides with it.

Of M outputs L neighbours, s, ..., s + L - 1, are each e^eps times as likely as each of the others;
s is the number, rounded to one of M - L + 1 places by a public coin. Two places change the chance
of an output by a factor of e^eps or not at all. M = 2 is randomized response on one bit; M = 3,
L = 1 can say "in the middle"; many outputs come near the piecewise mechanism (proofs/search.md).
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.privacy.finite.chances import least_noise, log_above
from tacit.privacy.finite.channel import Pair
from tacit.privacy.finite.oracle import generator
from tacit.validate import integer

MOST_OUTPUTS = 33
"""A report is at most six bits."""

UNLIKELY = 1 << 40
"""Weight of an output outside the run; the weight of one inside is a whole number too."""

USUAL_SQUARE = 0.1
"""E[x^2] that a randomizer is chosen for: about what the window of a search aims at."""


@dataclass(frozen=True)
class Sliding:
    """The randomizer with M outputs, L of them likely.

    Attributes:
        outputs: M.
        run: L.
        likely: weight of an output in the run; the chance of an output is its share of all weights.
        unlikely: weight of one outside.
    """

    outputs: int
    run: int
    likely: int
    unlikely: int = UNLIKELY

    def __post_init__(self) -> None:
        integer(self.outputs, "outputs", low=2, high=MOST_OUTPUTS)
        integer(self.run, "run", low=1, high=self.outputs - 1)
        unlikely = integer(self.unlikely, "unlikely", low=1)
        if integer(self.likely, "likely", low=1) <= unlikely:
            raise InvalidInput("an output in the run must be likelier than one outside")

    @classmethod
    def calibrate(cls, epsilon: float, outputs: int, run: int) -> Sliding:
        """The least noise at epsilon."""
        return least_noise(
            epsilon,
            lambda growth: cls(outputs, run, max(math.floor(growth * UNLIKELY), UNLIKELY + 1)),
        )

    def rules(self) -> dict[str, Any]:
        """What a device must know to draw a report; weights are texts, being long."""
        weights = {"likely": str(self.likely), "unlikely": str(self.unlikely)}
        return {"report": "number", "outputs": self.outputs, "run": self.run, **weights}

    @property
    def total(self) -> int:
        """All weights."""
        return self.run * self.likely + self.largest * self.unlikely

    @property
    def largest(self) -> int:
        """The largest place M - L."""
        return self.outputs - self.run

    @cached_property
    def p(self) -> float:
        """Chance of an output in the run."""
        return self.likely / self.total

    @cached_property
    def q(self) -> float:
        """Chance of one outside."""
        return self.unlikely / self.total

    @cached_property
    def epsilon(self) -> float:
        """Pure epsilon of one report, from the whole weights, rounded up."""
        return log_above(Fraction(self.likely, self.unlikely))

    def channel(self) -> Pair:
        """The first place against the last one: their runs share the fewest outputs."""
        alone = min(self.run, self.largest)
        p, q = math.log(self.p), math.log(self.q)
        rest = self.outputs - 2 * alone
        if rest == 0:
            return Pair(np.array([p, q]), np.array([q, p]), (alone, alone))
        shared = p if self.run > self.largest else q
        both = np.array([p, q, shared]), np.array([q, p, shared])
        return Pair(*both, (alone, alone, rest))

    @cached_property
    def chances(self) -> Array:
        """Chance of every output for every place [M - L + 1, M]."""
        table = np.full((self.largest + 1, self.outputs), self.q)
        for s in range(self.largest + 1):
            table[s, s : s + self.run] = self.p
        return table

    @cached_property
    def slope(self) -> float:
        """What an output's distance from the middle is divided by."""
        return self.run * (self.p - self.q) * self.largest / 2

    @cached_property
    def values(self) -> Array:
        """v_j [M], affine in j, with mean 2 s / (M - L) - 1 at place s."""
        return np.asarray((np.arange(self.outputs) - (self.outputs - 1) / 2) / self.slope)

    def _squares(self) -> tuple[float, float]:
        """k0 and k1 with E[v^2 | s] = k0 + k1 (2 s / (M - L) - 1)^2."""
        table, at = self.chances @ self.values**2, 2 * np.arange(self.largest + 1) / self.largest
        k1, k0 = np.polyfit((at - 1.0) ** 2, table, 1) if self.largest > 1 else (0.0, table[0])
        return float(k0), float(k1)

    def square_of(self, outputs: IntArray, coins: Array) -> Array:
        """Values with mean x^2, or s^2 where places are many.

        One bit: the public coin makes it 1[x > t] with t = 1 - 2 coin uniform in [-1, 1], and
        E_t[sign(x - t) 2 t] = x^2 - 1. Otherwise E[v^2 | s] is quadratic in s.
        """
        v = self.values[outputs]
        if self.largest == 1:
            return np.asarray(1.0 + v * 2.0 * (1.0 - 2.0 * coins))
        k0, k1 = self._squares()
        if abs(k1) < 1e-9:
            return np.full(len(v), 0.25)  # nothing can be seen of it
        return np.asarray((v**2 - k0) / k1)

    def moments(self, x: float) -> tuple[float, float]:
        """Of one person with number x, over rounding and chance: E[v^2], and Var of its square."""
        at = (x + 1.0) / 2.0 * self.largest
        low = min(int(at), self.largest - 1)
        law = (low + 1 - at) * self.chances[low] + (at - low) * self.chances[low + 1]
        second = float(law @ self.values**2)
        if self.largest == 1:
            return second, 4.0 * second / 3.0 - (x * x - 1.0) ** 2
        squares = self.square_of(np.arange(self.outputs), np.zeros(self.outputs))
        return second, float(law @ squares**2 - (law @ squares) ** 2)

    def encode(self, place: int, rng: np.random.Generator) -> IntArray:
        """A simulated report: one output."""
        rng, place = generator(rng), self._place(place)
        if rng.random() < self.run * self.p:
            return np.array([place + int(rng.random() * self.run)])
        return np.array([self._outside(int(rng.random() * self.largest), place)])

    def encode_many(self, places: IntArray, rng: np.random.Generator) -> IntArray:
        """The same for many people, with the same draws."""
        u = rng.random((len(places), 2))
        inside = places + (u[:, 1] * self.run).astype(np.int64)
        other = (u[:, 1] * self.largest).astype(np.int64)
        outside = np.where(other < places, other, other + self.run)
        return np.where(u[:, 0] < self.run * self.p, inside, outside)

    def encode_secure(self, place: int) -> IntArray:
        """A report for a real person: exact chances, the operating system's entropy, no seed."""
        place = self._place(place)
        if secrets.randbelow(self.total) < self.run * self.likely:
            return np.array([place + secrets.randbelow(self.run)])
        return np.array([self._outside(int(secrets.randbelow(self.largest)), place)])

    def _place(self, place: int) -> int:
        return integer(place, "place", low=0, high=self.largest)

    def _outside(self, number: int, place: int) -> int:
        """The outputs outside the run, numbered from 0."""
        return number if number < place else number + self.run


@cache
def best_sliding(epsilon: float) -> Sliding:
    """The randomizer of least variance at epsilon, for numbers with E[x^2] = 0.1.

    By exact computation: the mean of E[v^2 | x] over x = 0 and x = +-sqrt(0.1), half each. Of equal
    ones the one with the fewest outputs; M - L is even (or 1), so that there is a middle.
    """
    candidates: list[tuple[float, int, Sliding]] = []
    for outputs in range(2, MOST_OUTPUTS + 1):
        for run in range(1, outputs):
            if outputs > 2 and (outputs - run) % 2:
                continue
            made = Sliding(outputs, run, max(int(math.exp(min(epsilon, 64)) * 2**40), 2**40 + 1))
            at = [made.moments(x)[0] for x in (0.0, math.sqrt(USUAL_SQUARE))]
            candidates.append((round(sum(at) / 2, 12), outputs, made))
    _, _, best = min(candidates, key=lambda one: one[:2])
    return Sliding.calibrate(epsilon, best.outputs, best.run)
