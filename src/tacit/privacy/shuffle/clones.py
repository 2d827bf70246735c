"""Amplification by shuffling for reports other than subset selection.

See docs/papers/tabular_ldp.md#b8-clones.

Both results here are one pair of laws. Somebody counts two kinds of messages, T of them: T - 1
anonymous ones, each of either kind with probability 1/2, and the protected user's own, which is of
the first kind with probability e / (e + 1) in one world and 1 / (e + 1) in the other. Seeing N of T
messages of the first kind, the likelihood ratio of the worlds is (e N + T - N) / (N + (T - N) e).

What differs is how many of the others send an anonymous message: with probability e^-eps0 each for
an arbitrary purely eps0-private report (its clones), 2 / (e + 1) for one randomized bit (then it is
the privacy blanket of k-ary response on two cells).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.stats import binom

from tacit.arrays import Array, IntArray
from tacit.privacy.finite.channel import ROUNDING
from tacit.privacy.shuffle.blanket import LARGEST_CROWD, least_epsilon
from tacit.validate import integer, number

_LOST = 1e-18
"""Probability left out at either end of a binomial law; it is added to the result."""

_ROUND = 1e-10
"""Relative error of the binomial tails, far above what the library documents."""

_GROUPS = 512
"""Numbers of anonymous messages are rounded down to at most so many different ones: fewer of them
hide less, so this errs on the safe side."""


@dataclass(frozen=True)
class TwoCounts:
    """The pair described above.

    Attributes:
        users: n, the protected one among them.
        epsilon: log of e, the cost of the user's message on its own.
        anonymous: probability that another user's message is an anonymous one.
    """

    users: int
    epsilon: float
    anonymous: float

    def delta(self, epsilon: float) -> float:
        """An upper bound on the hockey-stick divergence at epsilon, the same both ways.

        For every T the outputs of ratio above e^epsilon are those with N above a threshold, so two
        binomial tails per T do it.
        """
        if epsilon >= self.epsilon:
            return 0.0
        e, level = math.exp(self.epsilon), math.exp(epsilon)
        others, weights, lost = self._others
        total = others + 1
        bar = total * (e * level - 1.0) / ((e - 1.0) * (1.0 + level))
        least = np.floor(bar) + 1.0
        here = binom.sf(least - 2, others, 0.5)  # own message is one of the first kind
        there = binom.sf(least - 1, others, 0.5)
        first = (e * here + there) / (e + 1.0)
        second = (here + e * there) / (e + 1.0)
        gain = np.maximum(first - level * second, 0.0) + _ROUND * first
        return min(float(weights @ gain) + lost, 1.0)

    @cached_property
    def _others(self) -> tuple[IntArray, Array, float]:
        """Numbers of anonymous messages, their probabilities, and the probability left out."""
        law = binom(self.users - 1, self.anonymous)
        low, high = max(int(law.ppf(_LOST)), 0), min(int(law.isf(_LOST)), self.users - 1)
        start = np.arange(low, high + 1, -(-(high + 1 - low) // _GROUPS), dtype=np.int64)
        edges = np.append(start - 1, high)
        below, above = law.cdf(edges), law.sf(edges)  # differences of the smaller of the two
        mass = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        return start, mass * (1.0 + _ROUND), float(below[0] + above[-1])

    def losses(self, step: float) -> tuple[dict[int, float], float]:
        """Law of the privacy loss in whole steps, rounded up, and the mass at infinity."""
        e = math.exp(self.epsilon)
        others, weights, lost = self._others
        edge = math.ceil(self.epsilon / step) + 2
        masses = np.zeros(2 * edge + 1)
        for count, weight in zip(others, weights, strict=True):
            reach = 4.6 * math.sqrt(count) + 1.0  # 2 e^(-2 reach^2 / count) is below _LOST
            low, high = max(int(count / 2 - reach), 0), min(int(count / 2 + reach) + 1, int(count))
            first = np.arange(low, high + 2)
            rest = count + 1 - first
            law = binom.pmf(np.arange(low - 1, high + 2), count, 0.5)
            mass = weight * (1.0 + _ROUND) * (e * law[:-1] + law[1:]) / (e + 1.0)
            loss = np.log(e * first + rest) - np.log(first + rest * e)
            cells = np.ceil(loss / step + 1e-9).astype(np.int64)
            masses += np.bincount(cells + edge, mass, minlength=masses.size)
            lost += _LOST * float(weight)
        return {int(i) - edge: float(masses[i]) for i in np.flatnonzero(masses)}, lost


def clone_delta(epsilon0: float, users: int, epsilon: float) -> float:
    """Upper bound on delta at epsilon of a shuffled batch of any purely epsilon0-private reports.

    Everybody's randomizer may differ, and may depend on everything published before; a report with
    a delta of its own does not qualify.
    """
    pair = _clones(number(epsilon0, "epsilon0", low=0.0), integer(users, "users", low=1))
    return pair.delta(number(epsilon, "epsilon", low=0.0))


def clone_epsilon(epsilon0: float, users: int, delta: float) -> float:
    """The least epsilon of :func:`clone_delta` at delta."""
    epsilon0 = number(epsilon0, "epsilon0", low=0.0)
    pair = _clones(epsilon0, integer(users, "users", low=1))
    return least_epsilon(pair.delta, number(delta, "delta", low=0.0, high=1.0), epsilon0)


def _clones(epsilon0: float, users: int) -> TwoCounts:
    return TwoCounts(min(users, LARGEST_CROWD), epsilon0, math.exp(-epsilon0))


def bit_pair(epsilon: float, users: int) -> TwoCounts:
    """One randomized bit per user, shuffled on its own: dominates the laws of their sum."""
    epsilon = number(epsilon, "epsilon", low=0.0, low_open=True)
    anonymous = 2.0 / (math.exp(epsilon) + 1.0)
    return TwoCounts(integer(users, "users", low=1, high=LARGEST_CROWD), epsilon, anonymous)


@lru_cache(maxsize=64)
def bits_epsilon(epsilon: float, users: int, bits: int, delta: float, step: float = 1e-4) -> float:
    """Epsilon at delta when every bit of the users' rows is shuffled separately.

    Args:
        epsilon: cost of one randomized bit.
        users: of the batch.
        bits: in how many bits two users' rows can differ; 2H(m + 2) - 2 for the paper's M_sh.
        delta: at which epsilon is stated.
        step: privacy losses are rounded up to multiples of it, then convolved (dp-accounting).

    It holds only if the bits of one user cannot be linked, for example because only sums over the
    batch are released: if they travel together, the price is that of a whole report.
    """
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    bits = integer(bits, "bits", low=1)
    delta = number(delta, "delta", low=0.0, high=1.0)
    basic = bits * number(epsilon, "epsilon", low=0.0, low_open=True)
    if delta <= ROUNDING:
        return basic
    masses, lost = bit_pair(epsilon, users).losses(step)
    with np.errstate(all="ignore"):  # its tail bounds may pass through infinity
        once = PrivacyLossDistribution.create_from_rounded_probability(masses, lost, step)
        spread = once.self_compose(bits).get_epsilon_for_delta(delta - ROUNDING)
    return min(basic, float(spread))
