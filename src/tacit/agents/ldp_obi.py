"""LDP-OBI: optimistic backward induction under local differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents.base import Agent
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.planners import ObiPlanner
from tacit.privacy import published
from tacit.privacy.local import LocalAdditive, gaussian_scales, laplace_scales
from tacit.statistics import Statistic, VisitCounts
from tacit.task import Task
from tacit.validate import choice, number


@dataclass(frozen=True)
class LdpOBI(Agent):
    """Users randomize their visit counts; the learner plans optimistically on the noisy sums.

    Spec tabular_ldp 3.2. Pools stages, so the task must be declared homogeneous.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for; only Gaussian noise needs one.
        randomizer: "laplace" or "gaussian".
        calibration: "tight" adds the least noise; "paper" is as published, noise and bonus.
        alpha: shift of the denominators, > 1 (the paper gives no value).
        beta: failure probability.
    """

    name: ClassVar[str] = "ldp-obi"
    uses: ClassVar[frozenset[str] | None] = frozenset()
    epsilon: float
    delta: float = 0.0
    randomizer: Literal["laplace", "gaussian"] = "laplace"
    calibration: Literal["tight", "paper"] = "tight"
    alpha: float = 2.0
    beta: float = 0.1

    def __post_init__(self) -> None:
        number(self.epsilon, "epsilon", low=0.0, low_open=True)
        number(self.delta, "delta", low=0.0, high=1.0, high_open=True)
        number(self.alpha, "alpha", low=1.0, low_open=True)
        number(self.beta, "beta", low=1e-100, high=1.0, high_open=True)
        choice(self.randomizer, "randomizer", ("laplace", "gaussian"))
        choice(self.calibration, "calibration", ("tight", "paper"))
        if self.randomizer == "gaussian" and self.delta == 0.0:
            raise InvalidInput("gaussian noise needs a delta > 0, for example 1e-5")
        if self.randomizer == "laplace" and self.delta > 0.0:
            raise InvalidInput("laplace noise is purely epsilon-private: leave delta out")

    def bind(self, task: Task) -> BoundAgent:
        """Noisy counts, planning after every user."""
        self.require_family(task, "tabular")
        if not task.homogeneous:
            raise InvalidInput(
                "ldp-obi adds up the stages, so it needs a problem declared homogeneous"
            )
        statistic = VisitCounts(task)
        privatizer = LocalAdditive(
            statistic,
            task,
            self.randomizer,
            self._scales(statistic, task),
            requested_epsilon=float(self.epsilon),
            requested_delta=float(self.delta),
        )
        planner = ObiPlanner(alpha=self.alpha, beta=self.beta, printed=self.calibration == "paper")
        return BoundAgent(task, statistic, privatizer, planner)

    def _scales(self, statistic: Statistic, task: Task) -> dict[str, float]:
        horizon, times = task.horizon, task.participations
        if self.calibration == "tight":
            if self.randomizer == "laplace":
                return laplace_scales(statistic, self.epsilon, times)
            return gaussian_scales(statistic, self.epsilon, self.delta, times)
        if self.randomizer == "laplace":
            scale = published.tabular_laplace(horizon, self.epsilon).scales["scale"]
        else:
            scale = published.tabular_gaussian(horizon, self.epsilon, self.delta).scales["std"]
        return {block.name: scale for block in statistic.layout.blocks}
