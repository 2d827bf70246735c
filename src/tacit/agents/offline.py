"""Agents that learn from a log: what each counts, and how it plans on the one release."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents.base import PrivateAgent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners import Planner
from tacit.planners.offline import OfflinePlanner, Pessimism
from tacit.privacy.joint.batched import BatchSums
from tacit.schedules import once
from tacit.statistics.log_sums import LoggedOutcomes, LoggedStages, LoggedVisits, LogStatistic
from tacit.task.task import Task

LARGE_STATES = 200
"""States above which transitions drown in noise, and outcomes of pairs are counted instead.

Online, returns beat next states on made-up clinics of 100 and 600 states
(docs/results/history.md, "What was tried"). Not measured: where the line runs for logs.
"""


@dataclass(frozen=True)
class LogAgent(PrivateAgent):
    """An agent that learns from one release about all people of a log (proofs/logs.md)."""

    source: ClassVar[Literal["people", "log"]] = "log"
    masks: ClassVar[bool] = True

    def bind(self, task: Task) -> BoundAgent:
        """Nobody takes part in what this agent learns."""
        raise InvalidInput(
            f"{self.name} learns from a log that is there already, not from people who take part: "
            f"use `tacit offline LOG --agent {self.name}`, or tacit.offline"
        )

    def bind_log(self, task: Task, max_return: float, ended: int = -1) -> BoundAgent:
        """Fit the agent to a log.

        Args:
            task: the public task of its mapping.
            max_return: the most that one episode earns.
            ended: the state after a row that ends, -1 if no column says that.
        """
        statistic: Any = self.statistic(task, max_return)  # of a log: nobody contributes alone
        privatizer = BatchSums(statistic, task, requested=self.requested())
        return BoundAgent(task, statistic, privatizer, self.planner(ended), once)

    @abstractmethod
    def statistic(self, task: Task, max_return: float) -> LogStatistic:
        """What is counted."""

    @abstractmethod
    def planner(self, ended: int) -> Planner:
        """What makes a policy of the release."""


@dataclass(frozen=True)
class TacitOffline(LogAgent):
    """First visits of pairs and pessimistic planning; outcomes of pairs in large tables.

    Attributes:
        epsilon: privacy asked for, of a person over all their episodes.
        delta: likewise.
        counts: "transitions" or "outcomes"; "auto" counts outcomes above 200 states.
    """

    name: ClassVar[str] = "tacit-offline"
    counts: Literal["auto", "transitions", "outcomes"] = "auto"

    def statistic(self, task: Task, max_return: float) -> LogStatistic:
        """A person teaches as many pairs as one episode has steps; half as many outcomes."""
        large = task.sizes["states"] > LARGE_STATES
        if self.counts == "outcomes" or (self.counts == "auto" and large):
            return LoggedOutcomes(task, max(1, task.horizon // 2), max_return)
        return LoggedVisits(task, task.horizon, max_return)

    def planner(self, ended: int) -> OfflinePlanner:
        """The best policy by its lower value, or the behaviour improved by one step."""
        return OfflinePlanner("lower value", ended)


@dataclass(frozen=True)
class DpApvi(LogAgent):
    """Published pessimism on counts of every stage (Qiao and Wang 2023).

    Attributes:
        epsilon: privacy asked for, of a person over all their episodes.
        delta: likewise.
        bonus_scale: multiplies the penalty; 1 is the theorem.
    """

    name: ClassVar[str] = "dp-apvi"
    pessimism: ClassVar[Pessimism] = "apvi"
    bonus_scale: float = 1.0

    def statistic(self, task: Task, max_return: float) -> LogStatistic:
        """All steps of everybody's first episode, stage by stage."""
        return LoggedStages(task, max_return)

    def planner(self, ended: int) -> OfflinePlanner:
        """Pessimistic backward induction."""
        return OfflinePlanner(self.pessimism, ended, self.bonus_scale)


@dataclass(frozen=True)
class DpVapvi(DpApvi):
    """The same by variance-weighted regression, with one feature per pair."""

    name: ClassVar[str] = "dp-vapvi"
    pessimism: ClassVar[Pessimism] = "vapvi"
