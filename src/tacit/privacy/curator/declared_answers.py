"""What a curator may be asked for, declared before the first user, and what it costs one of them.

Answers have a range and noise; Gram matrices and answers have a price together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.errors import InvalidInput
from tacit.grid import STEPS, require_coarse
from tacit.statistics.linear import CuratedTransitions, FeaturePairs
from tacit.task.task import Task
from tacit.validate import finite_array, flag, integer


@dataclass(frozen=True, eq=False)
class Answers:
    """Which questions may be asked, how often, and the noise of each answer.

    Attributes:
        ranges: by target, R_h [H]: the target is clipped into [0, R_h]; 0 where it is never asked.
        stds: by target, standard deviation [H] of the noise in each coordinate of an answer.
        rounds: how often each (target, stage) may be asked: a hard cap.
        rewards: by target, whether r is part of it.
        centred: whether R_h / 2 is subtracted, which halves the sensitivity
            (docs/papers/linear_jdp.md#b5).
    """

    ranges: Mapping[str, Array]
    stds: Mapping[str, Array]
    rounds: int
    rewards: Mapping[str, bool]
    centred: bool = True

    def __post_init__(self) -> None:
        integer(self.rounds, "rounds", low=0)
        flag(self.centred, "centred")
        if not self.ranges.keys() == self.stds.keys() == self.rewards.keys():
            raise InvalidInput("ranges, stds and rewards must name the same targets")
        for name in ("ranges", "stds"):
            arrays = {t: frozen(finite_array(a, name)) for t, a in getattr(self, name).items()}
            object.__setattr__(self, name, arrays)
        for target in self.ranges:
            self._check(target)

    def _check(self, target: str) -> None:
        ranges, stds = self.ranges[target], self.stds[target]
        asked = ranges > 0
        if ranges.shape != stds.shape or (ranges < 0).any() or (stds[asked] <= 0).any():
            raise InvalidInput(f"{target}: every stage that is asked needs a positive noise std")
        if self.rewards[target] and (ranges[asked] < 1.0).any():
            raise InvalidInput(f"{target}: a target with the reward in it has a range of 1 or more")
        require_coarse(f"{target}: answer noise", float(stds[asked].min(initial=np.inf)))

    @property
    def questions(self) -> list[tuple[str, int]]:
        """What one round may ask: every target at every stage with a range, last stage first."""
        stages = max((len(ranges) for ranges in self.ranges.values()), default=0)
        return [
            (target, h)
            for h in reversed(range(stages))
            for target, ranges in self.ranges.items()
            if ranges[h] > 0
        ]

    @property
    def least_range(self) -> float:
        """The smallest range that is asked, 1 if nothing is."""
        positive = [ranges[ranges > 0] for ranges in self.ranges.values()]
        return float(np.concatenate([np.ones(1), *positive]).min())

    def bounds(self, target: str, stage: int) -> tuple[int, float, float, bool]:
        """The stage, the top of V so that r + V <= R, what is taken off, whether r is in it."""
        reach, rewarded = float(self.ranges[target][stage]), bool(self.rewards[target])
        top = max(reach - (1.0 if rewarded else 0.0), 0.0)
        return stage, top, reach / 2 if self.centred else 0.0, rewarded

    def load(self) -> Array:
        """Sum over targets of (R_h / std_h)^2 [H]: what one round puts on each stage."""
        shares = [
            np.divide(ranges, self.stds[target], out=np.zeros(len(ranges)), where=ranges > 0) ** 2
            for target, ranges in self.ranges.items()
        ]
        return np.asarray(sum(shares))


def grid_rounding(statistic: CuratedTransitions, task: Task, least_range: float) -> float:
    """What the grid and floating point add to the distance of two Gram matrices or two answers.

    A Gram matrix has at most d^2 cells, each rounded by half a step for either of two users. An
    answer is evaluated in floating point from whole numbers, then rounded to the grid. Two users
    move its exact value by up to one step more, as their rewards are rounded; rounding both answers
    adds half a step to each of d coordinates, twice. The error of a floating-point sum of n terms
    is at most n 2^-53 times the sum of their sizes, here 3/2 K w R (proofs/linear.md).

    Args:
        statistic: what each user contributes.
        task: the public task.
        least_range: the smallest R of a question; the result is stated for answers of range 1.
    """
    S, A, d = map(int, statistic.phi.shape)
    chain = S * A + S + 8
    floating = 3 * chain * 2.0**-53 * task.users * statistic.largest_weight
    return max(d / STEPS, (math.sqrt(d) + 1) / STEPS / least_range + floating)


@dataclass(frozen=True, eq=False)
class Price:
    """mu^2 of one stage as a function of the load on it, by pairs of features.

    A replaced step moves the Gram matrix by w^2 ``gram`` and an answer of range 1 by w^2
    ``target``, squared, for some pair of features. The two are not worst at the same pair, and the
    pair is fixed when the user has played, before anything of hers is released: so the cost is the
    largest sum over one pair, not the sum of the largest (docs/papers/linear_jdp.md#joint-price).
    ``separate`` is that simpler sum, for any features of norm at most 1.

    Attributes:
        gram: squared Frobenius distances, by pair.
        target: squared distances of an answer of range 1, by pair.
        weight: the largest weight w.
        rounding: what rounding can add to either distance (:func:`grid_rounding`).
    """

    gram: Array
    target: Array
    weight: float
    rounding: float = 0.0

    @classmethod
    def joint(cls, pairs: FeaturePairs, weight: float) -> Price:
        """For centred answers; only pairs that can be worst for some load are kept."""
        slack = 1e-5 if pairs.bounded_only else 1e-12
        gram, target = pairs.gram * (1 + slack), pairs.target * (1 + slack)
        kept = _frontier(gram, target)
        return cls(gram[kept], target[kept], weight)

    @classmethod
    def separate(cls, weight: float, *, centred: bool) -> Price:
        """Gram sqrt2 w, answers 2 w R or, centred, w R; added up."""
        return cls(np.array([2.0]), np.array([1.0 if centred else 4.0]), weight)

    def rounded(self, by: float) -> Price:
        """The same where rounding adds that much to every distance."""
        return replace(self, rounding=by)

    def total(self, gram_load: float, target_loads: Array) -> float:
        """mu^2 of all stages.

        Args:
            gram_load: 1 / std^2 of the Gram noise, times what the counter multiplies.
            target_loads: by stage, sum of (R / std)^2 over the answers.
        """
        gram, target = self._moved
        by_pair = gram_load * gram[:, None] + target[:, None] * target_loads
        return float(by_pair.max(axis=0).sum())

    @cached_property
    def _moved(self) -> tuple[Array, Array]:
        """Squared distances, weighted and rounded."""
        gram = (self.weight * np.sqrt(self.gram) + self.rounding) ** 2
        target = (self.weight * np.sqrt(self.target) + self.rounding) ** 2
        return gram, target


def _frontier(gram: Array, target: Array) -> IntArray:
    """Indices of the pairs that no other pair beats in both."""
    order = np.lexsort((-target, -gram))
    best = np.maximum.accumulate(target[order])
    first = np.concatenate([[True], target[order][1:] > best[:-1]])
    chosen: IntArray = order[first]
    return chosen
