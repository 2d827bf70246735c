"""UCB-VI: the optimistic non-private baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.driver import BoundAgent
from tacit.planners import UcbViPlanner
from tacit.privacy import Exact
from tacit.statistics import VisitCounts
from tacit.task import Task
from tacit.validate import number


@dataclass(frozen=True)
class UcbVI(Agent):
    """Optimistic value iteration with a Hoeffding bonus.

    The bonus: docs/papers/tabular_ldp.md#baselines.

    Attributes:
        bonus_scale: factor c in front of the theorem's bonus; 1 is the theorem.
        beta: failure probability of the theorem's confidence statement.
    """

    name: ClassVar[str] = "ucb-vi"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    bonus_scale: float = 1.0
    beta: float = 0.1

    def __post_init__(self) -> None:
        number(self.bonus_scale, "bonus_scale", low=0.0, high=1e9)
        number(self.beta, "beta", low=1e-100, high=1.0, high_open=True)

    def _planner(self) -> UcbViPlanner:
        return UcbViPlanner(bonus_scale=self.bonus_scale, beta=self.beta)

    def bind(self, task: Task) -> BoundAgent:
        """Exact counts, optimistic planning after every user."""
        self.require_family(task, "tabular")
        statistic = VisitCounts(task)
        return BoundAgent(task, statistic, Exact(statistic, task), self._planner())

    def notes(self, task: Task) -> tuple[str, ...]:
        """How far the bonus is from mattering less than the whole range of values."""
        needed = math.ceil((self._planner().width(task) / task.horizon) ** 2)
        share = "1 (the theorem)" if self.bonus_scale == 1 else f"{self.bonus_scale:g}"
        pairs = task.sizes["states"] * task.sizes["actions"]
        return (
            f"bonus scale {share}: a pair (s, a) needs N = {needed:,} visits before its bonus "
            f"falls below the largest possible value H = {task.horizon}; {task.users:,} episodes "
            f"give {task.users * task.horizon // pairs:,} visits per pair on average",
        )
