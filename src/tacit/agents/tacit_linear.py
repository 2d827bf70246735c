"""tacit-linear: linear MDPs under joint privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.driver import BoundAgent, GeometricBatches
from tacit.kernels.linear_sums import Weights
from tacit.planners.ridge import RidgePlanner
from tacit.privacy.counters import Toeplitz
from tacit.privacy.joint import CountedSums, counted_noise_std
from tacit.statistics.linear import LinearSums
from tacit.task import Task
from tacit.validate import number


@dataclass(frozen=True)
class TacitLinear(Agent):
    """Additive regression sums through a continual counter, optimistic ridge prior."""

    name: ClassVar[str] = "tacit-linear"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    epsilon: float
    delta: float = 1e-5
    ratio: float = 1.1
    gram: float = 1.0
    reward: float = 1.0
    prior: float = 1.0
    floor: float = 0.5
    width: float = 0.0
    sampling: float = 0.0
    pool: bool = True

    def __post_init__(self) -> None:
        number(self.epsilon, "epsilon", low=0.0, low_open=True)

    def bind(self, task: Task) -> BoundAgent:
        """Sums on a geometric schedule."""
        if not self.pool:
            import dataclasses
            task = dataclasses.replace(task, homogeneous=False)
        weights = Weights(self.gram, 1.0, self.reward)
        statistic = LinearSums(task, weights)
        schedule = GeometricBatches(self.ratio)
        times = schedule.times(task.users)
        counter = Toeplitz(max(len(times), 1))
        batch = max(schedule(t) for t in [0, *times])
        std = counted_noise_std(statistic, task, counter, batch, self.epsilon, self.delta)
        privatizer = CountedSums(statistic, task, counter, std, batch=batch,
            requested_epsilon=float(self.epsilon), requested_delta=float(self.delta))
        planner = RidgePlanner(*weights, self.prior, self.floor, self.width, self.sampling)
        return BoundAgent(task, statistic, privatizer, planner, schedule)
