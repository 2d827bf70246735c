"""tacit-control: our learner for linear systems under joint privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import ControlAgent, PrivateAgent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.tacit_control import TacitControlPlanner
from tacit.privacy.joint.batched import BatchSums
from tacit.statistics import Statistic
from tacit.statistics.lq import InstrumentedResponses
from tacit.statistics.norm_budget import NormBudget
from tacit.task.participation import Teaches
from tacit.task.task import Task


@dataclass(frozen=True)
class TacitControl(ControlAgent, PrivateAgent):
    """Responses to public instruments, one noisy sum per batch, gains where they pay.

    Attributes:
        epsilon: privacy asked for.
        delta: likewise.
    """

    name: ClassVar[str] = "tacit-control"

    def teaches(self, task: Task) -> Teaches:
        """Responses up to a norm in a life."""
        return "lifetime"

    def fitted(self, task: Task) -> BoundAgent:
        """Batches whose length the planner decides."""
        if task.rule is not None and task.rule.attendance == "private":
            raise InvalidInput(
                "what somebody tries here follows from their place in the order of all who come, "
                "so whoever stays away moves everybody after them: let attendance be public"
            )
        statistic: Statistic = InstrumentedResponses(task)
        if task.lifetime:
            statistic = NormBudget(statistic, task)
        privatizer = BatchSums(statistic, task, requested=self.requested())
        planner = TacitControlPlanner(privatizer.noise_std)
        return BoundAgent(task, statistic, privatizer, planner)
