"""Amplification of subset-selection reports by shuffling (docs/papers/tabular_ldp.md#b8-bound).

A report is a uniform subset of all cells with probability g, whatever its sender's cell: the
privacy blanket. Nobody who sees only the shuffled batch can tell the report of a given user from
the blanket reports of the others. ``proofs/shuffle.md`` has the argument.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import brentq

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.privacy.finite import SubsetSelection
from tacit.privacy.shuffle.positive_part import UNIT, expected_positive_part
from tacit.validate import integer, number

FINENESS = 32.0
"""Grid steps of the convolution per standard deviation of one term: epsilon is off by 1e-4."""

LARGEST_CROWD = 10**9
"""Users of one batch; more are counted as so many."""


@dataclass(frozen=True)
class Blanket:
    """The reports of a batch whose users all run the same randomizer.

    Attributes:
        reports: the randomizer, or one per step where every user first draws a step with a fair
            coin of its own, tells nobody, and sends the step with its report: then the batch is
            one crowd all the same.
    """

    reports: tuple[SubsetSelection, ...]

    def __post_init__(self) -> None:
        if not self.reports or not all(isinstance(r, SubsetSelection) for r in self.reports):
            raise InvalidInput(
                "a blanket is computed for subset-selection or k-ary reports; for any other purely "
                "private report use clone_delta and clone_epsilon"
            )

    @cached_property
    def epsilon(self) -> float:
        """What one report costs on its own, unshuffled."""
        return max(report.epsilon for report in self.reports)

    @cached_property
    def share(self) -> float:
        """g: the share of reports that say nothing about their senders."""
        return float(sum(_share(report) for report in self.reports) / len(self.reports))

    def delta(self, users: int, epsilon: float, fineness: float = FINENESS) -> float:
        """An upper bound on the delta at epsilon of a shuffled batch of that many users.

        Against whoever sees the batch only after shuffling; ``users`` counts the person protected
        and everybody who certainly ran the same randomizer (same policy, same step, no colluders).
        It is E[(Z_1 + ... + Z_n)_+] / (n g) and never above what the report alone gives.

        Args:
            users: n, at least 1.
            epsilon: the level asked about.
            fineness: of the convolution; more is slower and tighter.
        """
        n = min(integer(users, "users", low=1), LARGEST_CROWD)
        epsilon = number(epsilon, "epsilon", low=0.0)
        if epsilon >= self.epsilon:
            return 0.0
        return _delta(self, n, epsilon, number(fineness, "fineness", low=1.0))

    def epsilon_at(self, users: int, delta: float, near: float | None = None) -> float:
        """The least epsilon this bound gives at delta; at delta = 0 that of the report alone.

        Args:
            users: as for :meth:`delta`.
            delta: at which epsilon is wanted.
            near: a guess, returned as it is if it is right to six digits.
        """
        delta = number(delta, "delta", low=0.0, high=1.0)
        return least_epsilon(lambda level: self.delta(users, level), delta, self.epsilon, near)

    def alone(self, epsilon: float) -> float:
        """Exact delta of one report, unshuffled, on users that differ at every step."""
        each = [n * r.channel().delta(epsilon) for r, n in Counter(self.reports).items()]
        return math.fsum(each) / len(self.reports) * (1.0 + 1e-9)

    def terms(self, epsilon: float) -> tuple[Array, Array]:
        """Values (rounded up) and probabilities of one Z, without its zero.

        With e0 the ratio of the two probabilities of an output, a blanket report contains the cell
        of the first world or not, and that of the second or not: Z is g times (e0 or 1) minus
        e^epsilon (e0 or 1).
        """
        growth, g = math.exp(epsilon), self.share
        values, weights = [], []
        for report, times in Counter(self.reports).items():
            cells, size = report.domain, report.size
            ratio = float(_ratio(report))
            both = size * (size - 1) / (cells * (cells - 1))
            one = size * (cells - size) / (cells * (cells - 1))
            laws = [
                (ratio - ratio * growth, both),
                (ratio - growth, one),
                (1.0 - ratio * growth, one),
                (1.0 - growth, 1.0 - both - 2.0 * one),
            ]
            share = float(_share(report)) * times / len(self.reports)
            values += [g * (z + 8 * UNIT * ratio * growth) for z, _ in laws]
            weights += [share * max(weight, 0.0) for _, weight in laws]
        use = np.array(weights) > 0.0
        return np.array(values)[use], np.array(weights)[use]


def _ratio(report: SubsetSelection) -> Fraction:
    """e^eps0, exactly: p (D - size) / ((1 - p) size)."""
    p = report.chances[0]
    return p * (report.domain - report.size) / ((1 - p) * report.size)


def _share(report: SubsetSelection) -> Fraction:
    """The exact blanket share (1 - p) D / (D - size)."""
    return (1 - report.chances[0]) * report.domain / (report.domain - report.size)


@lru_cache(maxsize=4096)
def _delta(blanket: Blanket, n: int, epsilon: float, fineness: float) -> float:
    values, weights = blanket.terms(epsilon)
    bound = expected_positive_part(values, weights, n, fineness) / (n * blanket.share)
    return min(bound * (1.0 + 1e-12), blanket.alone(epsilon))


def least_epsilon(
    delta_at: Callable[[float], float], delta: float, most: float, near: float | None = None
) -> float:
    """The least epsilon at which a falling bound is at most delta; ``most`` always qualifies.

    The search is for the crossing of logarithms; where it stops is moved up until the bound itself
    says yes. A guess ``near`` that is right to six digits is returned.
    """
    if near is not None and near < most and delta_at(near) <= delta < delta_at(near * (1 - 1e-6)):
        return near
    if delta == 0.0 or most == 0.0 or delta_at(0.0) <= delta:
        return 0.0 if delta_at(0.0) <= delta else most
    floor = math.log(delta) - 50.0

    def excess(level: float) -> float:
        there = delta_at(level)
        return max(math.log(there) if there > 0.0 else floor, floor) - math.log(delta)

    epsilon = float(brentq(excess, 0.0, most, xtol=1e-9 * most, rtol=1e-9))
    step = 1e-9 * most
    while epsilon < most and delta_at(epsilon) > delta:
        epsilon, step = epsilon + step, 2 * step
    return min(epsilon, most)
