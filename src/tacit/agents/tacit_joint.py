"""tacit-joint: the joint guarantee, spent well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents.base import Agent
from tacit.driver import BoundAgent, Geometric
from tacit.planners.vfree import VFreePlanner
from tacit.privacy.counters import strategy
from tacit.privacy.joint import CountedSums, counted_noise_std
from tacit.statistics.multi_target import MultiTargets
from tacit.task import Task


@dataclass(frozen=True)
class TacitJoint(Agent):
    """V-free sums through a continual counter, on a public geometric schedule (mixture_jdp 11)."""

    name: ClassVar[str] = "tacit-joint"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    epsilon: float
    delta: float = 1e-5
    counter: Literal["tree", "honaker", "toeplitz", "blt"] = "toeplitz"
    bonus_scale: float = 0.1
    beta: float = 0.05
    ridge: float = 1.0
    first: int | None = None
    growth: float = 1.25

    def schedule(self, task: Task) -> Geometric:
        first = self.first
        if first is None:
            first = int(min(max(1000 / self.epsilon, 50), max(task.users / 10, 1)))
        return Geometric(first, self.growth, task.users)

    def bind(self, task: Task) -> BoundAgent:
        self.require_family(task, "tabular")
        statistic = MultiTargets(task)
        schedule = self.schedule(task)
        releases = max(1, len(schedule.boundaries()))
        counter = strategy(self.counter, releases)
        batch = schedule.largest_batch()
        std = counted_noise_std(statistic, task, counter, batch, self.epsilon, self.delta)
        privatizer = CountedSums(
            statistic,
            task,
            counter,
            std,
            batch=batch,
            requested_epsilon=float(self.epsilon),
            requested_delta=float(self.delta),
        )
        planner = VFreePlanner(
            geometry=statistic.geometry,
            scales=statistic.scales,
            columns=statistic.columns,
            bonus_scale=self.bonus_scale,
            beta=self.beta,
            ridge=self.ridge,
            releases=releases,
        )
        return BoundAgent(task, statistic, privatizer, planner, schedule)
