"""shuffle-obi: optimistic backward induction on shuffled one-step reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.driver import BoundAgent, CappedBatches
from tacit.planners import DirectionalPlanner
from tacit.privacy.shuffle import Crowd, hidden_among, shuffled_cells, useful_crowd
from tacit.statistics import OneStep
from tacit.task import Task
from tacit.validate import integer, number

FEWEST_BATCHES = 50
"""A batch is never made larger than a fiftieth of all users by default."""


@dataclass(frozen=True)
class ShuffleOBI(Agent):
    """Devices randomize one step each; a shuffler opens whole batches; the learner is optimistic.

    Spec tabular_ldp B8 on top of B1 to B4. The local noise is the least whose shuffled batches keep
    the central guarantee. One policy serves a batch.

    Attributes:
        epsilon: central privacy asked for: against whoever sees opened batches.
        delta: of the central guarantee, > 0.
        batch: users of a batch, rounded down to a multiple of the horizon; 0 chooses: as many per
            step as make privacy noise no larger than sampling noise, 8 ln(1 / delta) / epsilon^2
            plus the colluders, but at most a fiftieth of all users.
        colluders: users of a batch who may work together with the observer.
        local_epsilon: what one report may cost at most on its own, whoever sees it.
        bonus_scale: c of the widths z = c sqrt(2 L); 1 is where all confidence statements hold.
        beta: their failure probability.
    """

    name: ClassVar[str] = "shuffle-obi"
    uses: ClassVar[frozenset[str] | None] = frozenset()
    epsilon: float
    delta: float = 1e-6
    batch: int = 0
    colluders: int = 0
    local_epsilon: float = 8.0
    bonus_scale: float = 1.0
    beta: float = 0.1

    def __post_init__(self) -> None:
        number(self.epsilon, "epsilon", low=0.0, low_open=True)
        number(self.delta, "delta", low=0.0, high=1.0, low_open=True, high_open=True)
        integer(self.batch, "batch", low=0)
        integer(self.colluders, "colluders", low=0)
        number(self.local_epsilon, "local_epsilon", low=0.0, low_open=True)
        number(self.bonus_scale, "bonus_scale", low=0.0, high=1e6)
        number(self.beta, "beta", low=1e-100, high=1.0, high_open=True)

    def crowd(self, task: Task) -> int:
        """Users of a batch who report about the same step."""
        if self.batch:
            return max(int(self.batch) // task.horizon, 1)
        wanted = useful_crowd(self.epsilon, self.delta) + int(self.colluders)
        return max(min(wanted, task.users // (FEWEST_BATCHES * task.horizon)), 1)

    def bind(self, task: Task) -> BoundAgent:
        """Randomized cells behind a shuffler, one optimistic plan per batch."""
        self.require_family(task, "tabular")
        crowd = self.crowd(task)
        asked = Crowd(hidden_among(crowd, self.colluders), float(self.epsilon), float(self.delta))
        statistic = OneStep(task)
        shuffler = shuffled_cells(
            statistic,
            task,
            asked,
            crowd=crowd,
            colluders=int(self.colluders),
            most=float(self.local_epsilon),
        )
        planner = DirectionalPlanner(bonus_scale=self.bonus_scale, beta=self.beta)
        schedule = CappedBatches(shuffler.batch, shuffler.batch, 0.0)
        return BoundAgent(task, statistic, shuffler, planner, schedule)

    def notes(self, task: Task) -> tuple[str, ...]:
        """What a batch is, and what it buys."""
        crowd = self.crowd(task)
        batch = crowd * task.horizon
        left = task.users % batch
        return (
            f"batches of {batch:,} users, {crowd:,} per step, opened when full; the last "
            f"{left:,} of {task.users:,} users are in a batch that is never opened",
        )
