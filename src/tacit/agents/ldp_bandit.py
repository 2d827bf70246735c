"""The locally private linear bandit: LDP-UCRL-VTR's H = 1 case, with an update of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents.base import Agent
from tacit.agents.vtr import check_privacy, check_widths, targeted_planner
from tacit.driver import BoundAgent, Every
from tacit.errors import InvalidInput
from tacit.planners.widths import PrintedLocal, TightWidths, WidthRule
from tacit.privacy.local import LocalShaped
from tacit.statistics.targets import Shape, ValueTargets
from tacit.task import Task


@dataclass(frozen=True)
class LdpBandit(Agent):
    """Users send x x^T and x y with Gaussian noise; arms by optimism.

    See docs/papers/mixture_ldp.md#bandit. Setting H = 1 in LDP-UCRL-VTR literally learns nothing,
    so rewards are regressed (docs/papers/mixture_ldp.md#e7).

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "tight": least noise for both parts together; "paper": sigma = 4 sqrt(2
            ln(2.5 / delta)) / epsilon and the published shift and radius.
        bonus_scale: c, multiplies the whole width; 1 is the theorem.
        beta: failure probability; None for 1 / K (paper: 0.01).
        ridge: lambda.
        every: users between two plans.
    """

    name: ClassVar[str] = "ldp-bandit"
    uses: ClassVar[frozenset[str] | None] = frozenset()
    epsilon: float
    delta: float = 1e-5
    calibration: Literal["tight", "paper"] = "tight"
    bonus_scale: float = 0.1
    beta: float | None = None
    ridge: float = 1.0
    every: int = 1

    def __post_init__(self) -> None:
        check_privacy(self.epsilon, self.delta, self.calibration)
        check_widths(self.bonus_scale, self.beta, self.ridge, self.every)

    def bind(self, task: Task) -> BoundAgent:
        """One regression of rewards."""
        self.require_family(task, "tabular")
        if task.horizon != 1:
            raise InvalidInput(
                f"ldp-bandit learns problems of horizon 1, but this one has {task.horizon}; "
                "ldp-ucrl-vtr learns the others"
            )
        paper = self.calibration == "paper"
        statistic = ValueTargets(
            task, Shape(paper, True, False, False, "raw" if paper else "equal")
        )
        std = None
        rule: WidthRule = TightWidths(self.bonus_scale, self.beta, self.ridge, task.users)
        if paper:
            rule = PrintedLocal(self.bonus_scale, 0.01 if self.beta is None else self.beta)
            std = 4 * math.sqrt(2 * math.log(2.5 / self.delta)) / self.epsilon
        privatizer = LocalShaped(
            statistic,
            task,
            std,
            requested_epsilon=float(self.epsilon),
            requested_delta=float(self.delta),
        )
        planner = targeted_planner(statistic, rule)
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))
