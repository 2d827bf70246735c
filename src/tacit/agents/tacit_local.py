"""tacit-local: the local guarantee, spent well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.driver import BoundAgent, CappedBatches
from tacit.planners import NoisyPosteriorPlanner
from tacit.privacy.local import OneCell
from tacit.statistics import OneStep
from tacit.task import Task
from tacit.validate import integer, number


@dataclass(frozen=True)
class TacitLocal(Agent):
    """One report per user about one step, at full epsilon; posterior sampling that knows the noise.

    Spec tabular_ldp, section 8, B1 to B4 and B6. Pure epsilon under local differential privacy.
    Regret has no proof; privacy does not depend on it.

    Attributes:
        epsilon: privacy asked for.
        batch: most users who act on one policy.
    """

    name: ClassVar[str] = "tacit-local"
    uses: ClassVar[frozenset[str] | None] = frozenset()
    epsilon: float
    batch: int = 200

    def __post_init__(self) -> None:
        number(self.epsilon, "epsilon", low=0.0, low_open=True)
        integer(self.batch, "batch", low=1)

    def bind(self, task: Task) -> BoundAgent:
        """Randomized cells, a fresh posterior draw after every batch."""
        self.require_family(task, "tabular")
        statistic = OneStep(task)
        privatizer = OneCell(statistic, task, requested_epsilon=float(self.epsilon))
        return BoundAgent(task, statistic, privatizer, NoisyPosteriorPlanner(), self._schedule())

    def _schedule(self) -> CappedBatches:
        least = 200 if self.epsilon < 1.0 else 50 if self.epsilon < 10.0 else 5
        return CappedBatches(min(least, self.batch), self.batch, 0.02)
