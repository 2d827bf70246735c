"""Inference over seeds: bands, paired and many comparisons, exponents, break-even, forecasts.

Runs of one configuration are independent; runs of different configurations with the same root and
seed meet the same users (common random numbers), so they are compared seed by seed. Everything here
is a function of arrays whose first axis is the seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit
from scipy.stats import permutation_test

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.util.intervals import Interval, half_width, mean_interval

KNOTS = 16
"""Episodes at which a band is computed. Bonferroni over more would widen it for little to see."""

CONFIDENCE = 0.95
"""Probability that a whole band is right."""

EXACT_UP_TO = 16
"""Sign-flip tests of up to that many pairs go through all 2^n flips; beyond, through a sample."""

FLIPS = 20_000
"""Sampled sign flips where there are too many to enumerate."""


@dataclass(frozen=True, eq=False)
class Band:
    """A simultaneous confidence band for a mean regret curve.

    With probability at least ``CONFIDENCE``, the expected cumulative regret lies between ``low``
    and ``high`` at every knot together (Student t at each, Bonferroni over the knots). Expected
    cumulative regret never falls, so on that event it also lies, between two knots, above the
    earlier ``low`` and below the later ``high``. Measured over simulated curves at nominal 95%:
    96% where increments are independent, 99% where runs differ by a factor, 95% where that factor
    is as skewed as a lognormal with sigma 1 (6 and 10 seeds).
    """

    episodes: IntArray
    mean: Array
    low: Array
    high: Array


def knots(episodes: IntArray) -> IntArray:
    """Indices of up to KNOTS checkpoints, the last among them.

    Half of them equally spaced in k, half equally spaced in log k over the last three decades, so
    that a band can be read on linear and on logarithmic axes. They depend on the checkpoints only:
    knots chosen after looking at the curves would void the band.
    """
    last, steps = episodes[-1], np.arange(1, KNOTS // 2 + 1) / (KNOTS // 2)
    wanted = np.concatenate([last * steps, last * 10.0 ** (-3 * steps)])
    return np.unique(np.searchsorted(episodes, np.clip(wanted, episodes[0], last)))


def regret_band(regret: Array, episodes: IntArray) -> Band | None:
    """The simultaneous band of a mean regret curve; None for a single run.

    The t intervals at the knots are tightened by what is known anyway: regret is not negative and
    its expectation never falls. Estimated correlations are not used: with six to ten seeds, bands
    that use them cover too little.

    Args:
        regret: cumulative regret [seeds, checkpoints].
        episodes: the checkpoints.
    """
    if len(regret) < 2:
        return None
    at = knots(episodes)
    samples = regret[:, at]
    mean, half = samples.mean(axis=0), half_width(samples, (1 - CONFIDENCE) / len(at))
    low = np.maximum.accumulate(np.maximum(mean - half, 0.0))
    high = np.minimum.accumulate((mean + half)[::-1])[::-1]
    return Band(episodes[at], mean, low, high)


@dataclass(frozen=True)
class PairedComparison:
    """Two configurations on the same seeds.

    Attributes:
        difference: mean of first minus second, paired t interval.
        p: two-sided p-value of the sign-flip test.
        least_p: the smallest p that this number of pairs could give.
        pairs: how many seeds they share.
    """

    difference: Interval
    p: float
    least_p: float
    pairs: int


def compare(first: Array, second: Array) -> PairedComparison:
    """Paired comparison of two samples in the same order of seeds.

    The test flips the signs of the differences. If the two configurations do the same, a
    difference is as likely as its negative, and the share of flips with a mean at least as far from
    zero is an exact p-value, whatever the law of regret. All 2^n flips are enumerated up to n = 16;
    with n pairs no p-value is below 2^(1-n), which is why few seeds cannot decide much.
    """
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise InvalidInput("a paired comparison needs two equally long, non-empty samples")
    differences = np.asarray(first - second, dtype=np.float64)
    n = len(differences)
    exact = n <= EXACT_UP_TO
    p = 1.0  # of a single pair, which scipy refuses: both flips are equally far from zero
    if n > 1:
        flips = permutation_test(
            (differences,),
            np.sum,
            permutation_type="samples",
            vectorized=True,
            n_resamples=2**n if exact else FLIPS,
            rng=np.random.default_rng(n),
        )
        p = float(flips.pvalue)
    least = 2.0 ** (1 - n) if exact else 2 / (FLIPS + 1)
    return PairedComparison(mean_interval(differences), p, least, n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: rejecting where they are below beta errs anywhere w.p. <= beta.

    Valid whatever the dependence, which here is strong: all comparisons share their users.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def price(private: Array, free: Array) -> Interval | None:
    """Regret of a private agent over that of its non-private counterpart, on the same seeds.

    The geometric mean of the ratios with the paired t interval of their logarithms: ratios of
    regret are skewed, their logarithms much less. None where a regret is zero: no ratio exists.
    """
    if private.shape != free.shape or (private <= 0).any() or (free <= 0).any():
        return None
    return mean_interval(np.log(private / free)).exponential()


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
    exponent = mean_interval(_exponents(log_x, log_y))
    scale = float(np.exp(log_y.mean() - exponent.value * log_x.mean()))
    return Slope(exponent, scale, float(x.min()), float(x.max()))


def growth(regret: Array, episodes: IntArray) -> Slope | None:
    """Exponent of regret in k over the last decade of the curve.

    Fitted at eight points equally spaced in log k, so that the density of checkpoints is no weight.
    """
    last = episodes[-1]
    wanted = last * 0.1 ** (np.arange(8) / 7)
    at = np.unique(np.searchsorted(episodes, np.clip(wanted, episodes[0], last)))
    return slope(episodes[at].astype(np.float64), regret[:, at])


@dataclass(frozen=True)
class FirstWin:
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


def smallest_winning(episodes: IntArray, samples: Sequence[Array], rate: float) -> FirstWin:
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
        return FirstWin("beats", shown, seen, last)
    worse = _surely_above(samples[-1], rate * last)
    return FirstWin("worse" if worse else "not decided", None, seen, last)


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
    reached = np.full(len(regret), np.nan)
    for run, flags in enumerate(above):
        if flags[-1]:
            continue
        last = int(np.flatnonzero(flags)[-1]) if flags.any() else -1
        if last < 0:
            reached[run] = episodes[0]
            continue
        excess = np.log(np.maximum(regret[run, last : last + 2], 1e-300))
        excess -= np.log(rate * episodes[last : last + 2])
        share = excess[0] / (excess[0] - excess[1])
        reached[run] = episodes[last] * (episodes[last + 1] / episodes[last]) ** share
    return reached


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
