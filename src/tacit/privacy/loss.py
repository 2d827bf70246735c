"""What a list of charges adds up to, converted in both directions and never optimistic."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.privacy import accounting
from tacit.privacy.charges import (
    Charge,
    CopiesCharge,
    FiniteCharge,
    GaussianCharge,
    PureCharge,
)
from tacit.privacy.decimals import exact, root_up, rounded_up
from tacit.validate import number

_LOUD = 1e4  # a mu beyond which nothing is protected, and formulas are not trusted
_POINTS = 1_000_000  # of the grid on which privacy losses are composed
_MANY = 100_000  # charges that are composed on it
_FFT = 2e-15  # what composing one more charge there may be off by, about fifty times what is seen


def mixed_delta(mu: float, pure: float, epsilon: float) -> float:
    """Exact delta at epsilon of a mu-Gaussian mechanism together with a pure one.

    With s = 1 / (1 + e^-pure): s * delta_mu(epsilon - pure) + (1 - s) * delta_mu(epsilon + pure).
    """
    if math.isinf(pure):
        return 1.0
    share = 1.0 / (1.0 + math.exp(-pure))
    return share * _delta(mu, epsilon - pure) + (1.0 - share) * _delta(mu, epsilon + pure)


@dataclass(frozen=True)
class Loss:
    """What a fixed list of charges adds up to, in either direction, never optimistic.

    The charges may be used in any order, and the data of one release may depend on earlier ones,
    but the list itself is fixed in advance; a list chosen along the way is a filter's business.

    Attributes:
        mu_squared: sum over the Gaussian charges.
        others: the other charges, each with its number of copies.
    """

    mu_squared: Fraction
    others: tuple[tuple[PureCharge | FiniteCharge, int], ...]

    def delta(self, epsilon: float) -> float:
        """The least delta known to hold at epsilon."""
        epsilon = number(epsilon, "epsilon", low=0.0)
        deltas = [mixed_delta(self._mu, self._pure, epsilon)]
        if not self._one_term and self._mu_of_all is not None:
            deltas.append(_delta(self._mu_of_all, epsilon))
        if not self._one_term and self._pld is not None:
            composed = float(self._pld.get_delta_for_epsilon(epsilon))
            deltas.append(composed + _FFT * (1 + self._count))
        return min(1.0, *deltas)

    def epsilon(self, delta: float) -> float:
        """The least epsilon known to hold at delta; infinite where there is none."""
        delta = number(delta, "delta", low=0.0, high=1.0, high_open=True)
        if self._mu > _LOUD:
            return math.inf
        if not self.others:
            return accounting.gaussian_epsilon(self._mu, delta)
        if delta == 0.0:
            return self._pure if self.mu_squared == 0 else math.inf
        high = self._pure + accounting.gaussian_epsilon(self._mu, delta)
        if math.isinf(high) and self._pld is not None:
            high = float(self._pld.get_epsilon_for_delta(delta))
        if math.isinf(high) or self.delta(0.0) <= delta:
            return high if math.isinf(high) else 0.0
        while self.delta(high) > delta:  # a search may stop a hair short
            high *= 2
            if math.isinf(high):
                return high
        low = 0.0
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    @cached_property
    def _mu(self) -> float:
        return root_up(self.mu_squared)

    @cached_property
    def _pure(self) -> float:
        """Sum of the pure epsilons of everything that is not Gaussian."""
        total = Fraction(0)
        for charge, count in self.others:
            pure = charge.as_pure()
            if pure is None:
                return math.inf
            total += count * pure
        return rounded_up(total)

    @cached_property
    def _one_term(self) -> bool:
        """Whether one pure charge is all there is beside the Gaussian: the closed form is exact."""
        pure = all(isinstance(charge, PureCharge) for charge, _ in self.others)
        return pure and self._count <= 1

    @cached_property
    def _count(self) -> int:
        return sum(count for _, count in self.others)

    @cached_property
    def _mu_of_all(self) -> float | None:
        """Everything covered by one Gaussian."""
        total = self.mu_squared
        for charge, count in self.others:
            one = charge.as_gaussian()
            if one is None:
                return None
            total += count * one
        return root_up(total)

    @cached_property
    def _pld(self) -> Any:
        """Distribution of the privacy loss of everything together, rounded up to a grid.

        None for very many or very large charges: the grid would be too coarse, or it would take
        long, and convolutions in floating point drift, in either direction, with their number.
        """
        if self._count > _MANY:
            return None
        from dp_accounting.pld import privacy_loss_distribution as pld

        losses = [_log_pmfs(charge) for charge, _ in self.others]
        sizes = [max(_finite_losses(p, q), default=0.0) for p, q in losses]
        counts = [count for _, count in self.others]
        spans = [
            min(n * x, n * x**2 + 20 * math.sqrt(n) * x) for n, x in zip(counts, sizes, strict=True)
        ]
        finest = (self._mu**2 + 20 * self._mu + sum(spans)) / _POINTS
        if finest > 1.0:
            return None
        least = min((x for x in sizes if 0 < x >= finest), default=max(finest, 1e-4))
        step = max(finest, min(1e-4, least))
        points = max(1, math.floor(least / step))
        step = least / points
        while least / step > points:  # the least loss must fall on the grid, from above
            step = math.nextafter(step, math.inf)
        whole = None
        if self.mu_squared:
            whole = pld.from_gaussian_mechanism(1.0 / self._mu, value_discretization_interval=step)
        for (p, q), count in zip(losses, counts, strict=True):
            part = pld.from_two_probability_mass_functions(q, p, value_discretization_interval=step)
            part = part.self_compose(count) if count > 1 else part
            whole = part if whole is None else whole.compose(part)
        return whole


def total(charges: Iterable[Charge]) -> Loss:
    """What one user is charged, all together."""
    mu_squared = Fraction(0)
    others: Counter[PureCharge | FiniteCharge] = Counter()
    for charge in charges:
        copies = charge if isinstance(charge, CopiesCharge) else CopiesCharge(charge, 1)
        if isinstance(copies.charge, GaussianCharge):
            mu_squared += copies.count * exact(copies.charge.mu_squared)
        elif copies.charge.as_pure() != 0:
            others[copies.charge] += copies.count
    return Loss(mu_squared, tuple(others.items()))


def _delta(mu: float, epsilon: float) -> float:
    """The exact Gaussian delta, also at negative epsilon: 1 - e^eps + e^eps delta(-eps).

    Where the formula would underflow or cancel, a bound that is as good as exact.
    """
    if epsilon < 0:
        return -math.expm1(epsilon) + math.exp(epsilon) * _delta(mu, -epsilon)
    if mu > _LOUD:
        return 1.0
    if mu > 0.0 and epsilon / mu - mu / 2 > 38.0:  # delta < Phi(mu/2 - eps/mu) < 1e-300
        return 1e-300
    return accounting.gaussian_delta(mu, epsilon)


def _log_pmfs(charge: PureCharge | FiniteCharge) -> tuple[dict[int, float], dict[int, float]]:
    """A pair of laws that covers the charge in both directions."""
    if isinstance(charge, PureCharge):
        likely = -math.log1p(math.exp(-charge.epsilon))
        return {0: likely, 1: likely - charge.epsilon}, {0: likely - charge.epsilon, 1: likely}
    steps = list(itertools.pairwise(charge.corners))
    return (
        {i: _log(b[0] - a[0]) for i, (a, b) in enumerate(steps)},
        {i: _log(a[1] - b[1]) for i, (a, b) in enumerate(steps)},
    )


def _finite_losses(log_p: dict[int, float], log_q: dict[int, float]) -> list[float]:
    losses = [abs(log_p[i] - log_q[i]) for i in log_p]
    return [loss for loss in losses if math.isfinite(loss)]


def _log(x: Fraction) -> float:
    return math.log(x) if x else -math.inf
