"""Reference agents that do not learn: the floor and the ceiling of every plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.driver import BoundAgent, never_again
from tacit.planners import OptimalPlanner, Planner, UniformPlanner
from tacit.privacy import Exact
from tacit.statistics import Nothing
from tacit.task import Task


def _without_data(task: Task, planner: Planner) -> BoundAgent:
    statistic = Nothing()
    return BoundAgent(task, statistic, Exact(statistic, task), planner, never_again)


@dataclass(frozen=True)
class Uniform(Agent):
    """Plays every action with equal probability, learns nothing, collects nothing."""

    name: ClassVar[str] = "uniform"
    uses: ClassVar[frozenset[str] | None] = frozenset()

    def bind(self, task: Task) -> BoundAgent:
        """One uniform policy for everybody."""
        self.require_family(task, "tabular")
        return _without_data(task, UniformPlanner())


@dataclass(frozen=True)
class Optimal(Agent):
    """Plays the optimal policy of the true problem, which is revealed to it."""

    name: ClassVar[str] = "optimal"
    needs: ClassVar[frozenset[str]] = frozenset({"reward", "transitions"})
    uses: ClassVar[frozenset[str] | None] = frozenset()

    def bind(self, task: Task) -> BoundAgent:
        """One optimal policy for everybody."""
        self.require_family(task, "tabular")
        return _without_data(task, OptimalPlanner())
