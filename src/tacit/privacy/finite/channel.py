"""Exact privacy of a randomizer with finitely many outputs.

By brute force from its whole matrix of probabilities (:class:`Channel`), or from the two output
laws of a worst pair of inputs with equal outputs counted, not listed (:class:`Pair`), which works
at any size. For both: epsilon is the largest log ratio, and
delta(eps) = sum over outputs of (P(o) - e^eps Q(o))_+, the worse of both orders.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Array, frozen
from tacit.errors import InvalidInput
from tacit.validate import distributions, finite_array, integer, number

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

ROUNDING = 1e-12
"""What the Fourier transforms inside a composition may lose; added to every composed delta."""


def _log(masses: Array) -> Array:
    """Logarithms, with log 0 = -inf and no warning."""
    return np.log(masses, out=np.full(masses.shape, -np.inf), where=masses > 0.0)


@dataclass(frozen=True, eq=False)
class Pair:
    """The output laws of two inputs, by classes of outputs of equal probability.

    For a randomizer that treats all labels alike every pair of inputs looks like every other, and
    this is its whole privacy. Otherwise the pair must dominate every other one.

    Attributes:
        first: log-probability of one output of each class under the first input; -inf allowed.
        second: the same under the second input.
        outputs: how many outputs the class has, exactly.
    """

    first: Array
    second: Array
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        sizes = np.array([math.log(integer(m, "outputs", low=1)) for m in self.outputs])
        for name in ("first", "second"):
            logs = np.array(getattr(self, name), dtype=np.float64)
            if logs.shape != sizes.shape or logs.size == 0:
                raise InvalidInput(
                    f"{name} has shape {logs.shape}, but it must be {sizes.shape}, not empty"
                )
            if np.isnan(logs).any() or (logs > 0.0).any():
                raise InvalidInput(f"{name} = {logs}, but log-probabilities must be <= 0")
            distributions(np.exp(logs + sizes), f"exp({name}) * outputs")
            object.__setattr__(self, name, frozen(logs))

    @cached_property
    def _log_masses(self) -> tuple[Array, Array]:
        """Log-probability of each whole class under the two inputs."""
        sizes = np.array([math.log(m) for m in self.outputs])
        return self.first + sizes, self.second + sizes

    @cached_property
    def epsilon(self) -> float:
        """The largest log ratio, either way; infinite where one law has an output the other lacks.

        In floats, good to about 1e-13: randomizers compute their own from integers, rounded up.
        """
        seen = (self.first > -np.inf) | (self.second > -np.inf)
        return float(np.max(np.abs(self.first[seen] - self.second[seen])))

    def delta(self, epsilon: float) -> float:
        """Exact delta at epsilon."""
        epsilon = number(epsilon, "epsilon", low=0.0)
        first, second = self._log_masses
        return max(_hockey_stick(first, second, epsilon), _hockey_stick(second, first, epsilon))

    def composed_delta(self, participations: int, epsilon: float, step: float = 1e-4) -> float:
        """An upper bound on delta when one person's data passes ``participations`` times.

        Privacy losses are rounded up to multiples of ``step`` and convolved (dp-accounting).
        """
        epsilon = number(epsilon, "epsilon", low=0.0)
        participations = integer(participations, "participations", low=1)
        if epsilon >= participations * self.epsilon:
            return 0.0
        if participations == 1:
            return self.delta(epsilon)
        spread = self._losses(participations, step).get_delta_for_epsilon(epsilon)
        return min(1.0, float(spread) + ROUNDING)

    def _losses(self, participations: int, step: float) -> PrivacyLossDistribution:
        from dp_accounting.pld import privacy_loss_distribution

        step = number(step, "step", low=0.0, low_open=True)
        first, second = ({i: float(log) for i, log in enumerate(x)} for x in self._log_masses)
        once = privacy_loss_distribution.from_two_probability_mass_functions(
            second, first, value_discretization_interval=step, symmetric=False
        )
        return once.self_compose(participations)


@dataclass(frozen=True, eq=False)
class Channel:
    """A randomizer as the matrix of its output probabilities [inputs, outputs]: small ones only."""

    pmf: Array

    def __post_init__(self) -> None:
        pmf = finite_array(self.pmf, "pmf")
        if pmf.ndim != 2 or pmf.shape[0] < 2 or pmf.shape[1] < 1:
            raise InvalidInput(
                f"pmf has shape {pmf.shape}, but it must be [inputs >= 2, outputs >= 1]"
            )
        distributions(pmf, "pmf")
        object.__setattr__(self, "pmf", frozen(pmf))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every two inputs, with the outputs one by one."""
        logs, ones = _log(self.pmf), (1,) * self.pmf.shape[1]
        return tuple(Pair(p, q, ones) for p, q in itertools.combinations(logs, 2))

    @property
    def epsilon(self) -> float:
        """The largest log ratio over all inputs and outputs; infinite if supports differ."""
        return max(pair.epsilon for pair in self.pairs)

    def delta(self, epsilon: float) -> float:
        """The largest hockey-stick divergence over all ordered pairs of inputs."""
        return max(pair.delta(epsilon) for pair in self.pairs)


def _hockey_stick(first: Array, second: Array, epsilon: float) -> float:
    """Sum of (P - e^eps Q)_+, from log masses."""
    seen = first > -np.inf
    gain = np.minimum(epsilon + second[seen] - first[seen], 0.0)
    return float(np.sum(np.exp(first[seen]) * -np.expm1(gain)))
