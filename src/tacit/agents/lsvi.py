"""LSVI-UCB and LSVI-UCB++: least-squares value iteration without privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import LinearAgent, not_private
from tacit.agents.published import Calibration, PublishedAgent
from tacit.learner import BoundAgent
from tacit.planners.lsvi import LsviPlanner, LsviPlusPlanner, PlusBonus, Switching
from tacit.statistics.linear import CuratedTransitions
from tacit.task.task import Task, feature_table

DEFAULT_BONUS_SCALE = 0.1
"""c of the bonus c H |phi| of tight calibration, unless chosen.

Not measured: one scale for all problems. ``benchmarks/linear.py --tuning 2`` chooses one for each
agent, by two runs: between 0 and 1 on synthetic-linear and river-swim
(docs/results/benchmarks.md).
"""

MENDED = (
    "the pessimistic values, the test for a switch, the variance and the floor of the weights are "
    "those of the proofs, not as printed (docs/papers/linear_jdp.md#e9 to #e12)"
)
"""What no published calibration of LSVI-UCB++, private or not, takes from the algorithm box."""


def dimension(task: Task) -> int:
    """d, the length of a feature vector."""
    return int(feature_table(task).shape[2])


def lsvi_bonus(task: Task, beta: float) -> float:
    """d H sqrt(log(2 d K H / beta)) (docs/papers/linear_jdp.md#lsvi-ucb)."""
    d, H, K = dimension(task), task.horizon, task.users
    return d * H * math.sqrt(math.log(2 * d * K * H / beta))


def plus_bonus(d: int, H: int, K: int, beta: float) -> PlusBonus:
    """The three factors of docs/papers/linear_jdp.md#lsvi-ucb-plus-plus."""
    ridge = 1.0 / H**2
    log = math.log(d * H * K / (beta * ridge))
    first = math.log(1 + d * K * H / (beta * ridge))
    return PlusBonus.theorem(d, H, ridge, 1.0, (first, log))


def tuned_plus(scale: float, H: int) -> PlusBonus:
    """c H for both values, weights from variances alone."""
    return PlusBonus(scale * H, scale * H, 0.0, theory=False)


def switches_at_most(d: int, H: int, K: int, weight: float, ridge: float) -> int:
    """How often a determinant can double: ceil(d H / log 2 log(1 + K w / (d ridge)))."""
    return max(1, math.ceil(d * H / math.log(2) * math.log1p(K * weight / (d * ridge))))


class LsviAgent(LinearAgent):
    """One that plans by least-squares value iteration."""

    def notes(self, task: Task) -> tuple[str, ...]:
        """What a bonus beyond the whole range means."""
        planner, horizon = self.bind(task).planner, task.horizon
        assert isinstance(planner, LsviPlanner | LsviPlusPlanner)
        bonus = planner.bonus if isinstance(planner, LsviPlanner) else planner.bonus.hat
        unseen, needed = bonus / math.sqrt(planner.ridge), (bonus / horizon) ** 2
        if unseen < horizon:
            return ()
        return (
            f"the bonus of an unseen direction is {unseen:.3g}, the largest value {horizon}: a "
            f"direction needs about {needed:.2g} visits before its bonus says anything, and until "
            "then ties decide",
        )


@dataclass(frozen=True)
class LsviUCB(LsviAgent):
    """Regression of r + V on all data after every user, Q plus bonus.

    LSVI-UCB, docs/papers/linear_jdp.md#lsvi-ucb.

    Attributes:
        bonus_scale: c in the bonus c H |phi|; None takes the theorem's constant.
        beta: failure probability of the theorem.
    """

    name: ClassVar[str] = "lsvi-ucb"
    bonus_scale: float | None = None
    beta: float = 0.01

    def fitted(self, task: Task) -> BoundAgent:
        """Exact tables, a new plan after every user."""
        planner = LsviPlanner(1.0, 0.0, self._bonus(task), stage_ranges=False)
        return not_private(task, CuratedTransitions(task), planner)

    def _bonus(self, task: Task) -> float:
        if self.bonus_scale is None:
            return lsvi_bonus(task, self.beta)
        return self.bonus_scale * task.horizon


@dataclass(frozen=True)
class LsviUCBPlusPlus(LsviAgent, PublishedAgent):
    """Variance-weighted regression with rare switching.

    LSVI-UCB++, docs/papers/linear_jdp.md#lsvi-ucb-plus-plus. Values are cut at 0. Without privacy
    "corrected" and "paper" are the same: the theorem's constants, which never switch at any size
    that can be run (docs/papers/linear_jdp.md#e17).

    Attributes:
        calibration: "corrected", "paper" or "tight".
        bonus_scale: c in the bonus c H |phi|, with weights from variances alone; None takes the
            paper's bonus and weights, or (tight) 0.1, or 1 / H where that is more.
        beta: failure probability of the theorem.
    """

    name: ClassVar[str] = "lsvi-ucb++"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the theorem's bonus and weights",
        "paper": "the same",
        "tight": "weights from variances alone, values cut by stage, bonus 0.1 H |phi| or more",
    }
    calibration: Calibration = "corrected"
    bonus_scale: float | None = None
    beta: float = 0.01

    def fitted(self, task: Task) -> BoundAgent:
        """Exact tables, a new plan when a determinant has doubled."""
        d, H, K = dimension(task), task.horizon, task.users
        statistic = CuratedTransitions(task, 1.0 / H)
        ridge = 1.0 / H**2
        switching = Switching(switches_at_most(d, H, K, 1.0 / H, ridge))
        planner = LsviPlusPlanner(
            ridge, 0.0, self._bonus(task), switching, stage_ranges=not self.published
        )
        return not_private(task, statistic, planner)

    def notes(self, task: Task) -> tuple[str, ...]:
        """With what is not as printed."""
        return (*super().notes(task), *((MENDED,) if self.published else ()))

    def _bonus(self, task: Task) -> PlusBonus:
        if self.bonus_scale is not None:
            return tuned_plus(self.bonus_scale, task.horizon)
        if self.published:
            return plus_bonus(dimension(task), task.horizon, task.users, self.beta)
        # With a ridge of 1 / H^2 less than 1 / H would not lift what was never seen to the top.
        return tuned_plus(max(DEFAULT_BONUS_SCALE, 1.0 / task.horizon), task.horizon)
