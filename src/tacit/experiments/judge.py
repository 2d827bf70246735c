"""Comparing curves with an honest "not decided": nothing is said within the error of a mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tacit.arrays import Array
from tacit.experiments.evidence import LEAST, Runs, exponent
from tacit.intervals import Interval, mean_interval

ERRORS = 2.0
"""A number closer to its limit than this many standard errors decides nothing."""


def mean(samples: Array) -> Interval:
    """The mean of independent samples, give or take two standard errors."""
    n, value = len(samples), float(samples.mean())
    half = ERRORS * float(samples.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    return Interval(value, value - half, value + half)


def jackknife(samples: Sequence[Array], statistic: Callable[[Sequence[Array]], float]) -> Interval:
    """A function of samples, give or take two standard errors.

    Args:
        samples: one or more arrays [n, ...] over the same n problems (or runs), paired.
        statistic: smooth in their means; computed with one problem left out at a time.
    """
    n, value = len(samples[0]), statistic(samples)
    if n < 2:
        return Interval(value, -np.inf, np.inf)
    without = [statistic([np.delete(one, i, axis=0) for one in samples]) for i in range(n)]
    half = ERRORS * float(np.sqrt((n - 1) * np.var(without)))
    return Interval(value, value - half, value + half)


def growth(runs: Runs) -> Interval:
    """Exponent x of regret ~ k^x over the last decade, give or take two standard errors."""
    return jackknife([runs.samples], lambda left: exponent(runs.episodes, left[0].mean(axis=0)))


def bend(first: Runs, second: Runs) -> Interval:
    """How much larger the exponent of ``first`` is than that of ``second``."""

    def difference(samples: Sequence[Array]) -> float:
        one, two = (exponent(first.episodes, each.mean(axis=0)) for each in samples)
        return one - two

    return jackknife([first.samples, second.samples], difference)


def second_half(runs: Runs) -> Interval:
    """Regret of the second half of the users over that of the first."""
    middle = int(np.searchsorted(runs.episodes, runs.curve.episodes // 2, side="right")) - 1

    def share(samples: Sequence[Array]) -> float:
        regret = samples[0].mean(axis=0)
        return float((regret[-1] - regret[middle]) / max(regret[middle], LEAST))

    return jackknife([runs.samples], share)


def ratio(first: Runs, second: Runs) -> Interval:
    """Final regret of ``first`` over ``second``: geometric mean, paired over their problems."""
    logs = np.log(np.maximum(first.final, LEAST) / np.maximum(second.final, LEAST))
    return mean_interval(logs).exponential()


def together(verdicts: list[bool | None]) -> bool | None:
    """All of them: one failure fails, one open question leaves it open."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def reason(holds: bool | None, failed: str, undecided: str = "") -> str:
    """Why a claim does not plainly hold: nothing to say where it does."""
    if holds is None:
        return undecided or "not decided at this size: the limit is within the error of the means"
    return "" if holds else failed
