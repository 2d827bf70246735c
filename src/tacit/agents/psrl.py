"""PSRL: posterior sampling, the non-private baseline to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.driver import BoundAgent
from tacit.kernels.posterior import Prior
from tacit.planners import PosteriorPlanner
from tacit.privacy import Exact
from tacit.statistics import VisitCounts
from tacit.task import Task
from tacit.validate import number


@dataclass(frozen=True)
class PSRL(Agent):
    """Posterior sampling (docs/papers/tabular_ldp.md#baselines).

    Attributes:
        alpha0: Dirichlet pseudo-count of every next state.
        lambda0: pseudo-count of the reward mean (prior mean 0).
        nu0: shape of the prior on the reward precision.
        beta0: rate of the prior on the reward precision.
    """

    name: ClassVar[str] = "psrl"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    alpha0: float = 1.0
    lambda0: float = 1.0
    nu0: float = 1.0
    beta0: float = 1.0

    def __post_init__(self) -> None:
        for name, value in self.parameters().items():
            number(value, name, low=1e-9, high=1e9)

    def bind(self, task: Task) -> BoundAgent:
        """Exact counts, a fresh posterior draw after every user."""
        self.require_family(task, "tabular")
        statistic = VisitCounts(task, squares=True)
        prior = Prior(float(self.alpha0), float(self.lambda0), float(self.nu0), float(self.beta0))
        return BoundAgent(task, statistic, Exact(statistic, task), PosteriorPlanner(prior))
