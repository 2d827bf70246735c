"""Inference over seeds: intervals, simultaneous bands, paired comparisons, many comparisons.

Runs of one configuration are independent; runs of different configurations with the same root and
seed meet the same users (common random numbers), so they are compared seed by seed. Everything here
is a function of arrays whose first axis is the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.intervals import Interval, half_width, mean_interval

KNOTS = 16
"""Episodes at which a band is computed. Bonferroni over more would widen it for little to see."""

EXACT_UP_TO = 16
"""Sign-flip tests of up to that many pairs go through all 2^n flips; beyond, through a sample."""

FLIPS = 20_000
"""Sampled sign flips where there are too many to enumerate."""


@dataclass(frozen=True, eq=False)
class Band:
    """A simultaneous confidence band for a mean regret curve.

    With probability at least ``confidence``, the expected cumulative regret lies between ``low``
    and ``high`` at every knot together (Student t at each, Bonferroni over the knots). Expected
    cumulative regret never falls, so on that event it also lies, between two knots, above the
    earlier ``low`` and below the later ``high``: see :meth:`between`. Measured over simulated
    curves at nominal 95%: 96% where increments are independent, 99% where runs differ by a factor,
    95% where that factor is as skewed as a lognormal with sigma 1 (6 and 10 seeds).
    """

    episodes: IntArray
    mean: Array
    low: Array
    high: Array
    confidence: float

    def between(self, episodes: IntArray) -> tuple[Array, Array]:
        """The band at any episodes up to the last knot, by monotonicity alone."""
        if len(episodes) and episodes.max() > self.episodes[-1]:
            raise InvalidInput(
                f"the band ends at episode {self.episodes[-1]}, and says nothing about "
                f"{episodes.max()}"
            )
        before = np.searchsorted(self.episodes, episodes, side="right")
        after = np.searchsorted(self.episodes, episodes, side="left")
        low: Array = np.concatenate([[0.0], self.low])[before]
        return low, self.high[after]


def knots(episodes: IntArray, number: int = KNOTS) -> IntArray:
    """Indices of up to ``number`` checkpoints, the last among them.

    Half of them equally spaced in k, half equally spaced in log k over the last three decades, so
    that a band can be read on linear and on logarithmic axes. They depend on the checkpoints only:
    knots chosen after looking at the curves would void the band.
    """
    last = episodes[-1]
    even = last * np.arange(1, number // 2 + 1) / (number // 2)
    steps = number - number // 2
    wanted = np.concatenate([even, last * 10.0 ** (-3 * np.arange(1, steps + 1) / steps)])
    return np.unique(np.searchsorted(episodes, np.clip(wanted, episodes[0], last)))


def regret_band(
    regret: Array, episodes: IntArray, confidence: float = 0.95, number: int = KNOTS
) -> Band | None:
    """The simultaneous band of a mean regret curve; None for a single run.

    The t intervals at the knots are tightened by what is known anyway: regret is not negative and
    its expectation never falls. Estimated correlations are not used: with six to ten seeds, bands
    that use them cover too little.

    Args:
        regret: cumulative regret [seeds, checkpoints].
        episodes: the checkpoints.
        confidence: probability that the whole band is right.
        number: how many knots at most.
    """
    if len(regret) < 2:
        return None
    at = knots(episodes, number)
    samples = regret[:, at]
    mean, half = samples.mean(axis=0), half_width(samples, (1 - confidence) / len(at))
    low = np.maximum.accumulate(np.maximum(mean - half, 0.0))
    high = np.minimum.accumulate((mean + half)[::-1])[::-1]
    return Band(episodes[at], mean, low, high, confidence)


@dataclass(frozen=True)
class Comparison:
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


def compare(first: Array, second: Array, confidence: float = 0.95) -> Comparison:
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
    flips = _signs(n)
    observed, flipped = differences.sum() ** 2, (flips @ differences) ** 2
    extreme = int(np.count_nonzero(flipped >= observed * (1 - 1e-12)))
    exact = n <= EXACT_UP_TO
    p = extreme / len(flips) if exact else (extreme + 1) / (len(flips) + 1)
    least = 2.0 ** (1 - n) if exact else 1 / (len(flips) + 1)
    return Comparison(mean_interval(differences, confidence), float(p), float(least), n)


def _signs(n: int) -> Array:
    """All sign vectors of length n, or a fixed sample of them."""
    if n > EXACT_UP_TO:
        bits = np.random.default_rng(n).integers(0, 2, size=(FLIPS, n))
    else:
        bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    signs: Array = (1 - 2 * bits).astype(np.float64)
    return signs


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


def price(private: Array, free: Array, confidence: float = 0.95) -> Interval | None:
    """Regret of a private agent over that of its non-private counterpart, on the same seeds.

    The geometric mean of the ratios with the paired t interval of their logarithms: ratios of
    regret are skewed, their logarithms much less. None where a regret is zero: no ratio exists.
    """
    if private.shape != free.shape or (private <= 0).any() or (free <= 0).any():
        return None
    return mean_interval(np.log(private / free), confidence).exponential()
