"""What the best test can do against a mechanism, as far as its trade-off curve is known.

A test looks at an output and says which of two neighbouring datasets it came from. Its false alarms
a and its hits b obey b <= e^eps a + delta and 1 - a <= e^eps (1 - b) + delta at every (epsilon,
delta) that holds (Kairouz, Oh and Viswanath, 2015); for mu-Gaussian noise the best test has exactly
b = Phi(Phi^-1(a) + mu) (Dong, Roth and Su, 2022). Both are kept by whatever is done with the output
and by mixtures of datasets, so they bind whoever looks, at whatever part of it. The chance that the
odds move by more than e^eps is not such a number (proofs/sentences.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from tacit.privacy.accounting import gaussian_delta, least

_HAIR = 1.0 + 1e-12
"""Far above the rounding errors of the formulas: bounds are never below the exact value."""


@dataclass(frozen=True)
class Tradeoff:
    """The curve of a mechanism.

    Attributes:
        points: (epsilon, delta) that hold, each for itself.
        mu: where the curve is that of Gaussian noise, which says it all; else None.
    """

    points: tuple[tuple[float, float], ...]
    mu: float | None = None

    def delta(self, epsilon: float) -> float:
        """The least delta at ``epsilon`` that follows.

        From (e, d) follows (epsilon, d) for epsilon >= e, and below it
        d + (1 - d)(exp(e) - exp(epsilon)) / (1 + exp(e)), which randomized response attains.

        >>> pure = Tradeoff(((1.0, 0.0),))
        >>> pure.delta(1.5), round(pure.delta(0.0), 4)
        (0.0, 0.4621)
        """
        if self.mu is not None:
            return gaussian_delta(self.mu, epsilon)
        least = 1.0
        for e, d in self.points:
            loss = max(0.0, -math.expm1(epsilon - e)) / (1 + math.exp(-e))
            least = min(least, d + (1 - d) * loss)
        return least

    def epsilon(self, delta: float) -> float:
        """The least epsilon of these points at ``delta`` that follows; infinite where none does.

        >>> round(Tradeoff(((1.0, 0.0),)).epsilon(0.1), 4)
        0.8529
        """
        if self.delta(0.0) <= delta:
            return 0.0
        reached = [e for e, d in self.points if d <= delta]
        return least(lambda e: self.delta(e) <= delta, min(reached)) if reached else math.inf

    def best_guess(self) -> float:
        """How often a guess from fifty-fifty is right at most: (1 + delta(0)) / 2.

        That is (e^eps + delta) / (1 + e^eps) for a point, Phi(mu / 2) for Gaussian noise.
        """
        distance = self.delta(0.0)
        if distance == 0.0 and self._reveals_nothing():
            return 0.5
        return min(1.0, (1.0 + distance) / 2 * _HAIR)

    def found(self, false_alarms: float) -> float:
        """The largest share of hits at that share of false alarms.

        min(e^eps a + delta, 1 - e^-eps (1 - delta - a)) for a point, Phi(Phi^-1(a) + mu) for
        Gaussian noise.

        >>> round(Tradeoff(((1.0, 0.0),)).found(0.01), 4)
        0.0272
        """
        if self._reveals_nothing():
            return false_alarms
        if self.mu is not None:
            if false_alarms in (0.0, 1.0):
                return false_alarms
            z = NormalDist().inv_cdf(false_alarms) + self.mu
            return min(1.0, math.erfc(-z / math.sqrt(2.0)) / 2 * _HAIR)
        most = 1.0
        for e, d in self.points:
            few = math.exp(min(e, 700.0)) * false_alarms + d
            many = 1.0 - math.exp(-e) * (1.0 - d - false_alarms)
            most = min(most, few * _HAIR, many * _HAIR)
        return most

    def _reveals_nothing(self) -> bool:
        """True if the two output laws are the same."""
        return (0.0, 0.0) in self.points if self.mu is None else self.mu == 0.0
