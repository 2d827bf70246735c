"""OBI: optimistic backward induction without privacy, the fair yardstick of LDP-OBI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.driver import BoundAgent
from tacit.kernels.obi_values import WIDTHS
from tacit.planners import ObiPlanner
from tacit.planners.obi import Width
from tacit.privacy import Exact
from tacit.statistics import VisitCounts
from tacit.task import Task
from tacit.validate import choice, number


@dataclass(frozen=True)
class OBI(Agent):
    """LDP-OBI with nothing to hide: no noise, no width for it, denominators max(N, 1).

    See docs/papers/tabular_ldp.md#baselines. Pools stages, so the task must be declared
    homogeneous.

    Attributes:
        beta: failure probability.
        width: "published" (the paper's bonus, last step included), "corrected" or "tight", as in
            ldp-obi.
    """

    name: ClassVar[str] = "obi"
    uses: ClassVar[frozenset[str] | None] = frozenset()
    beta: float = 0.1
    width: Width = "published"

    def __post_init__(self) -> None:
        number(self.beta, "beta", low=1e-100, high=1.0, high_open=True)
        choice(self.width, "width", WIDTHS)

    def bind(self, task: Task) -> BoundAgent:
        """Exact counts, optimistic planning after every user."""
        self.require_family(task, "tabular")
        self.require_homogeneous(task)
        statistic = VisitCounts(task)
        planner = ObiPlanner(alpha=1.0, beta=self.beta, width=self.width)
        return BoundAgent(task, statistic, Exact(statistic, task), planner)
