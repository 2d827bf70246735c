"""tacit-local: the local guarantee, spent well."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents.base import Ranges, TableAgent
from tacit.errors import InvalidInput
from tacit.kernels.public.questions import REWARD
from tacit.learner import BoundAgent
from tacit.planners import Planner
from tacit.planners.tacit_local import DirectionalPlanner, NoisyPosteriorPlanner
from tacit.privacy.finite import best_oracle
from tacit.privacy.finite.cell_answers import domains
from tacit.privacy.finite.oracle import LARGEST_DOMAIN
from tacit.privacy.local.one_cell import OneCell
from tacit.schedules import CappedBatches
from tacit.statistics.one_step import OneStep
from tacit.task.pairs import met_places
from tacit.task.task import Task


@dataclass(frozen=True)
class TacitLocal(TableAgent):
    """One report per user about one step, at full epsilon; posterior sampling that knows the noise.

    B1 to B4 and B6 of docs/papers/tabular_ldp.md#b1. Pure epsilon under local differential privacy.
    Regret has no proof; privacy does not depend on it.

    Attributes:
        epsilon: privacy asked for.
        exploration: "posterior" sampling, or "optimistic" planning.
        bonus_scale: c of the optimistic widths z = c sqrt(2 L); 1 is where all of them hold.
        beta: failure probability of the optimistic widths.
        batch: most users who act on one policy.
    """

    name: ClassVar[str] = "tacit-local"
    models: ClassVar[tuple[str, ...]] = ("local",)
    ranges: ClassVar[Ranges] = {"batch": {"low": 1}}
    epsilon: float
    exploration: Literal["posterior", "optimistic"] = "posterior"
    bonus_scale: float = 0.1
    beta: float = 0.1
    batch: int = 300

    def fitted(self, task: Task) -> BoundAgent:
        """Randomized cells, a fresh posterior draw after every batch."""
        statistic = OneStep(task)
        cells = max(domains(statistic.places))
        if cells > LARGEST_DOMAIN:
            raise InvalidInput(
                f"a device would answer with one of {cells:,} cells, and each report is a row of "
                f"as many bits: at most {LARGEST_DOMAIN:,}, that is about 700 states from which an "
                "episode goes on. Declare which states are terminal, merge states, or choose a "
                "joint agent"
            )
        privatizer = OneCell(statistic, task, requested_epsilon=float(self.epsilon))
        planner: Planner = NoisyPosteriorPlanner(privatizer.weighing)
        if self.exploration == "optimistic":
            planner = DirectionalPlanner(
                bonus_scale=self.bonus_scale, beta=self.beta, weighing=privatizer.weighing
            )
        least = 200 if self.epsilon < 1.0 else 50 if self.epsilon < 10.0 else 5
        schedule = CappedBatches(min(least, self.batch), self.batch, 0.02)
        return BoundAgent(task, statistic, privatizer, planner, schedule)

    def users_needed(self, task: Task) -> int:
        """H X (4 + v N H), times the stages if they differ (docs/papers/tabular_ldp.md#b9).

        X pairs, N places that can follow, v the noise of one report about a reward.
        """
        places = met_places(task.pairs)
        share = self.epsilon / task.participations
        v = best_oracle(share, domains(places)[REWARD]).variance_outside
        stages = 1 if task.homogeneous else task.horizon
        each = task.horizon * (4.0 + v * len(places.state) * task.horizon)
        return math.ceil(stages * len(task.pairs.action) * each)
