"""Means of independent samples and how far they may be off: Student t, one source for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from tacit.arrays import Array


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its confidence interval."""

    value: float
    low: float
    high: float

    def exponential(self) -> Interval:
        """The interval of exp(x), for logarithms that were averaged."""
        with np.errstate(over="ignore"):
            value, low, high = np.exp([self.value, self.low, self.high])
        return Interval(float(value), float(low), float(high))

    def below(self, limit: float) -> bool | None:
        """True or False where the interval leaves the limit out, None where it does not."""
        if self.high < limit:
            return True
        return False if self.low > limit else None

    def above(self, limit: float) -> bool | None:
        """The other way round."""
        below = self.below(limit)
        return None if below is None else not below

    def within(self, low: float, high: float) -> bool | None:
        """Above the one and below the other; the ends belong to it."""
        if low <= self.low and self.high <= high:
            return True
        return False if self.high < low or self.low > high else None


def mean_interval(samples: Array, confidence: float = 0.95, *, least: float = -np.inf) -> Interval:
    """Mean of independent samples with its Student t interval; of a single one, everything.

    Where the quantity cannot be below ``least`` (regret: 0), neither are the ends. Cutting off
    what is impossible keeps the coverage; a bootstrap of a handful of runs would not.
    """
    n, mean = len(samples), float(np.mean(samples))
    if n < 2:
        return Interval(mean, -np.inf, np.inf)
    half = float(half_width(np.asarray(samples), 1 - confidence))
    return Interval(mean, max(least, mean - half), mean + half)


def half_width(samples: Array, beta: float = 0.05) -> Array:
    """Half width of the two-sided t interval of the mean over the first axis, missing by beta."""
    n = len(samples)
    half: Array = stdtrit(n - 1, 1 - beta / 2) * samples.std(axis=0, ddof=1) / np.sqrt(n)
    return half
