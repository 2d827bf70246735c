"""Comparing curves with an honest "not decided"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from tacit.experiments.evidence import LEAST, Runs


@dataclass(frozen=True)
class Ratio:
    """A ratio of regrets, paired by problem: geometric mean and its 95% t interval."""

    value: float
    low: float
    high: float

    @property
    def below_one(self) -> bool | None:
        """True or False where the interval leaves out 1, None where it does not."""
        if self.high < 1:
            return True
        return False if self.low > 1 else None


def ratio(first: Runs, second: Runs) -> Ratio:
    """Regret of ``first`` over regret of ``second`` at the end, over their common problems."""
    logs = np.log(np.maximum(first.final, LEAST) / np.maximum(second.final, LEAST))
    n, mean = len(logs), float(logs.mean())
    half = float(stdtrit(n - 1, 0.975) * logs.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    with np.errstate(over="ignore"):
        low, high = np.exp(mean - half), np.exp(mean + half)
    return Ratio(float(np.exp(mean)), float(low), float(high))


def together(verdicts: list[bool | None]) -> bool | None:
    """All of them: one failure fails, one open question leaves it open."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def reason(holds: bool | None, failed: str, undecided: str = "") -> str:
    """Why a claim does not plainly hold: nothing to say where it does."""
    if holds is None:
        return undecided or "not decided at this size: an interval includes equality"
    return "" if holds else failed
