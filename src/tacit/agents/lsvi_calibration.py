"""How a budget is divided between Gram matrices and answers (docs/papers/linear_jdp.md#tight)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.counters import Strategy
from tacit.privacy.curator import Answers, Price, grid_rounding
from tacit.statistics.curated import CuratedTransitions
from tacit.task import Task

GRAM_SHARE = 0.5
"""Share of the budget for the Gram matrices, before the joint price gives some of it back."""

ROUNDED = 2e-5
"""More noise by this share where the counter rounds its rows: enough for ten million users."""


@dataclass(frozen=True, eq=False)
class Targets:
    """What will be asked: by target the range R_h [H], and whether r is part of it."""

    ranges: Mapping[str, Array]
    rewards: Mapping[str, bool]

    @property
    def questions(self) -> int:
        """Questions per round: stages with a positive range, over all targets."""
        return sum(int((ranges > 0).sum()) for ranges in self.ranges.values())

    @property
    def least_range(self) -> float:
        """The smallest positive range."""
        return float(min(ranges[ranges > 0].min(initial=1.0) for ranges in self.ranges.values()))

    def load(self) -> Array:
        """Sum over targets of (R / max(R, 1))^2 [H]."""
        shares = [(ranges / np.maximum(ranges, 1.0)) ** 2 for ranges in self.ranges.values()]
        load: Array = np.sum(shares, axis=0)
        return load


def one_target(horizon: int) -> Targets:
    """R + V in [0, H - h] (h from 0), at every stage."""
    return Targets({"value": np.arange(horizon, 0, -1.0)}, {"value": True})


def three_targets(task: Task) -> Targets:
    """V, its pessimistic twin and V^2; r is part of the first two unless it is revealed."""
    unknown = "reward" not in task.known
    before = np.arange(task.horizon - 1, -1, -1.0)
    ranges = before + 1.0 if unknown else before
    return Targets(
        {"hat": ranges, "check": ranges, "square": before**2},
        {"hat": unknown, "check": unknown, "square": False},
    )


@dataclass(frozen=True, eq=False)
class Shares:
    """The least noise for a budget, before it is known how often questions will be asked.

    Attributes:
        gram_std: noise of a node, per packed entry.
        answer_unit: noise of an answer of range 1 that is asked once.
        price: how the two add up.
    """

    gram_std: float
    answer_unit: float
    price: Price

    def answers(self, targets: Targets, rounds: int) -> Answers:
        """The answers, each to be asked that many times."""
        scale = self.answer_unit * math.sqrt(rounds)
        stds = {name: scale * np.maximum(r, 1.0) for name, r in targets.ranges.items()}
        return Answers(targets.ranges, stds, rounds, targets.rewards)


def tight_shares(
    statistic: CuratedTransitions,
    task: Task,
    strategy: Strategy,
    targets: Targets,
    epsilon: float,
    delta: float,
) -> Shares:
    """Split the budget in two, then spend what the joint price leaves over on all noise alike."""
    if delta <= 0.0:
        raise InvalidInput(f"delta = {delta:g}, but gaussian noise needs a delta > 0")
    mu2 = (gaussian_mu(epsilon, delta) / task.participations) ** 2
    H, w = task.horizon, statistic.largest_weight
    price = Price.joint(statistic.pairs, w)
    price = price.rounded(grid_rounding(statistic, task, targets.least_range))
    gram = w * strategy.column_norm() * math.sqrt(2 * H / (GRAM_SHARE * mu2))
    unit = w * math.sqrt(targets.questions / ((1 - GRAM_SHARE) * mu2))
    cost = price.total((strategy.column_norm() / gram) ** 2, targets.load() / unit**2)
    slack = 1e-7 if strategy.rounding_sensitivity(1, 1) == 0.0 else ROUNDED
    factor = math.sqrt(cost / mu2) * (1 + slack)
    return Shares(factor * gram, factor * unit, price)


def spectral_shift(
    gram_std: float, strategy: Strategy, dimension: int, horizon: int, users: int, beta: float
) -> float:
    """What must be added so that the noise leaves all matrices positive, with probability 1 - beta.

    s sqrt(Lv) (2 sqrt d + sqrt(2 log(2 H K / beta))), s = gram_std / sqrt 2
    (docs/papers/linear_jdp.md#tight).
    """
    s = gram_std / math.sqrt(2) * strategy.column_norm()
    return s * (2 * math.sqrt(dimension) + math.sqrt(2 * math.log(2 * horizon * users / beta)))
