"""Trends over seeds: exponents on log-log axes, the K that beats a baseline, budget forecasts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.util.intervals import Interval, mean_interval


@dataclass(frozen=True)
class Slope:
    """A fitted power law y ~ x^exponent.

    Attributes:
        exponent: mean over seeds of the fitted exponents, with its t interval.
        scale: y at x = 1, by the mean of the fitted logarithms.
        low, high: the range of x that was fitted.
    """

    exponent: Interval
    scale: float
    low: float
    high: float

    def at(self, x: Array) -> Array:
        """The fitted line."""
        line: Array = self.scale * x**self.exponent.value
        return line


def _exponents(log_x: Array, log_y: Array) -> Array:
    """Least squares on log-log axes: the slope of every row of ``log_y``."""
    centred = log_x - log_x.mean()
    slopes: Array = log_y @ centred / (centred @ centred)
    return slopes


def slope(x: Array, samples: Array) -> Slope | None:
    """Exponent of y ~ x^e: least squares on log-log axes for every seed, then mean and t interval.

    Points of one seed depend on each other (a cumulative curve, common users), seeds do not; so one
    exponent is fitted per seed and the interval is taken over seeds. It measures the spread of the
    fit, not whether the law is a power law: on a curved stretch it is a mean of exponents.

    Args:
        x: positive abscissae, at least two different ones.
        samples: values [seeds, points].

    Returns:
        None where a value is not positive and has no logarithm, or x does not vary.
    """
    if (samples <= 0).any() or (x <= 0).any() or len(np.unique(x)) < 2:
        return None
    log_x, log_y = np.log(x), np.log(samples)
    found = mean_interval(_exponents(log_x, log_y))
    scale = float(np.exp(log_y.mean() - found.value * log_x.mean()))
    return Slope(found, scale, float(x.min()), float(x.max()))


def growth(regret: Array, episodes: IntArray) -> Slope | None:
    """Exponent of regret in k over the last decade of the curve.

    Fitted at eight points equally spaced in log k, so that the density of checkpoints is no weight.
    """
    last = episodes[-1]
    wanted = last * 0.1 ** (np.arange(8) / 7)
    at = np.unique(np.searchsorted(episodes, np.clip(wanted, episodes[0], last)))
    return slope(episodes[at].astype(np.float64), regret[:, at])


@dataclass(frozen=True)
class Beats:
    """From which K on an agent beats a baseline.

    Attributes:
        verdict: "beats" with confidence from ``episodes`` on; "worse" with confidence at the last
            K; "not decided" where neither is shown.
        episodes: the smallest K shown, None where none is.
        seen: the smallest K from which on the means are below, without confidence; None if none.
        last: the largest K that was run.
    """

    verdict: Literal["beats", "worse", "not decided"]
    episodes: int | None
    seen: int | None
    last: int

    def words(self) -> str:
        """The answer as a person would say it."""
        if self.verdict == "beats":
            return f"from K = {self.episodes:,} on"
        if self.verdict == "worse":
            return f"not within K = {self.last:,} (worse, with confidence)"
        if self.seen is None:
            return f"not within K = {self.last:,}"
        return f"not decided within K = {self.last:,} (means are below from {self.seen:,} on)"


def smallest_winning(episodes: IntArray, samples: Sequence[Array], rate: float) -> Beats:
    """The smallest K from which on expected regret stays below ``rate * K``.

    Tested from the last K backwards, one-sided t at each, stopping at the first that does not
    reject. Such a fixed sequence needs no correction: a wrong K can be shown only if the first
    false statement it meets is rejected, which happens with probability at most 5%. "Worse" is one
    test of its own at the last K.

    Args:
        episodes: increasing K, checkpoints of one curve or ends of several runs.
        samples: regret over seeds at each of them.
        rate: regret per episode of the baseline.
    """
    backwards = [(int(k), values) for k, values in zip(episodes, samples, strict=True)][::-1]

    def first_of_the_last(holds: Callable[[int, Array], bool]) -> int | None:
        ks = [k for k, _ in itertools.takewhile(lambda pair: holds(*pair), backwards)]
        return ks[-1] if ks else None

    shown = first_of_the_last(lambda k, values: _surely_above(-values, -rate * k))
    seen = first_of_the_last(lambda k, values: bool(values.mean() < rate * k))
    last = backwards[0][0]
    if shown is not None:
        return Beats("beats", shown, seen, last)
    worse = _surely_above(samples[-1], rate * last)
    return Beats("worse" if worse else "not decided", None, seen, last)


def _surely_above(values: Array, limit: float) -> bool:
    """Whether a one-sided t test at 5% puts the mean above a limit; a single run shows nothing."""
    n, gap = len(values), float(values.mean() - limit)
    if n < 2:
        return False
    error = float(values.std(ddof=1) / np.sqrt(n))
    return gap > 0 if error == 0 else bool(gap / error >= stdtrit(n - 1, 0.95))


@dataclass(frozen=True)
class UsersAt:
    """Users needed at some epsilon for a stated aim, by a power law.

    Attributes:
        epsilon: the privacy asked about.
        users: how many, with an interval; the interval covers the spread over seeds if the power
            law holds, and nothing else.
        exponent: of users in epsilon.
        extrapolated: True if ``epsilon`` lies outside those that the law was fitted to.
    """

    epsilon: float
    users: Interval
    exponent: Interval
    extrapolated: bool


def first_reaching(regret: Array, episodes: IntArray, rate: float) -> Array:
    """For every run, the k from which on its regret stays below ``rate * k``; NaN if never.

    Between checkpoints the crossing is interpolated in log k.
    """
    above = regret >= rate * episodes
    found = np.full(len(regret), np.nan)
    for run, flags in enumerate(above):
        if flags[-1]:
            continue
        last = int(np.flatnonzero(flags)[-1]) if flags.any() else -1
        if last < 0:
            found[run] = episodes[0]
            continue
        excess = np.log(np.maximum(regret[run, last : last + 2], 1e-300))
        excess -= np.log(rate * episodes[last : last + 2])
        share = excess[0] / (excess[0] - excess[1])
        found[run] = episodes[last] * (episodes[last + 1] / episodes[last]) ** share
    return found


def forecast(needed: Mapping[float, Array], epsilon: float) -> UsersAt:
    """Users needed at another epsilon, by a power law through the measured ones.

    Args:
        needed: for each measured epsilon, the users needed by every seed (same seeds, same order).
        epsilon: the epsilon asked about.
    """
    usable = {e: runs for e, runs in sorted(needed.items()) if np.isfinite(runs).all()}
    if len(usable) < 2:
        raise InvalidInput(
            f"a forecast needs at least two epsilons at which every run got there; "
            f"there {'is' if len(usable) == 1 else 'are'} {len(usable) or 'none'}"
        )
    log_e = np.log(np.array(list(usable)))
    log_k = np.log(np.column_stack(list(usable.values())))
    exponents = _exponents(log_e, log_k)
    ends = log_k.mean(axis=1) + exponents * (np.log(epsilon) - log_e.mean())
    users = mean_interval(ends).exponential()
    outside = not min(usable) <= epsilon <= max(usable)
    return UsersAt(epsilon, users, mean_interval(exponents), outside)
