"""Comparing curves with an honest "not decided"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from tacit.arrays import Array
from tacit.experiments.evidence import LEAST, Runs


@dataclass(frozen=True)
class Interval:
    """A mean over problems and its 95% t interval."""

    value: float
    low: float
    high: float

    def below(self, limit: float) -> bool | None:
        """True or False where the interval leaves the limit out, None where it does not."""
        if self.high < limit:
            return True
        return False if self.low > limit else None


def interval(samples: Array) -> Interval:
    """The mean of independent samples; with a single one the interval is everything."""
    n, mean = len(samples), float(samples.mean())
    half = float(stdtrit(n - 1, 0.975) * samples.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    return Interval(mean, mean - half, mean + half)


def ratio(first: Runs, second: Runs) -> Interval:
    """Final regret of ``first`` over ``second``: geometric mean, paired over their problems."""
    logs = np.log(np.maximum(first.final, LEAST) / np.maximum(second.final, LEAST))
    mean = interval(logs)
    with np.errstate(over="ignore"):
        value, low, high = np.exp([mean.value, mean.low, mean.high])
    return Interval(float(value), float(low), float(high))


def together(verdicts: list[bool | None]) -> bool | None:
    """All of them: one failure fails, one open question leaves it open."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def reason(holds: bool | None, failed: str, undecided: str = "") -> str:
    """Why a claim does not plainly hold: nothing to say where it does."""
    if holds is None:
        return undecided or "not decided at this size: a 95% interval includes equality"
    return "" if holds else failed
