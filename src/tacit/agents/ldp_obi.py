"""LDP-OBI: optimistic backward induction under local differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents.base import Agent
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.kernels.obi_values import WIDTHS
from tacit.planners import ObiPlanner
from tacit.planners.obi import Width
from tacit.privacy import Privatizer, published
from tacit.privacy.bounded import paper_radius
from tacit.privacy.local import (
    LocalAdditive,
    LocalResponse,
    differing_bits,
    proportional_radii,
    response_bits,
)
from tacit.statistics import VisitCounts
from tacit.task import Task
from tacit.validate import choice, number

Randomizer = Literal["laplace", "gaussian", "randomized-response", "bounded"]
RANDOMIZERS = ("laplace", "gaussian", "randomized-response", "bounded")


@dataclass(frozen=True)
class LdpOBI(Agent):
    """Users randomize their visit counts; the learner plans optimistically on the noisy sums.

    See docs/papers/tabular_ldp.md#ldp-obi. Pools stages, so the task must be declared homogeneous.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for; Gaussian and bounded noise need one, the others have none.
        randomizer: "laplace", "gaussian", "randomized-response", or "bounded" (simulated only).
        calibration: "tight" adds the least noise; "paper" is as published, noise and bonus.
        alpha: shift of the denominators, > 1 (the paper gives no value).
        beta: failure probability.
        width: "published", "corrected" or "tight" bonus; by default what the calibration says:
            published for "paper", corrected for "tight".
    """

    name: ClassVar[str] = "ldp-obi"
    uses: ClassVar[frozenset[str] | None] = frozenset()
    epsilon: float
    delta: float = 0.0
    randomizer: Randomizer = "laplace"
    calibration: Literal["tight", "paper"] = "tight"
    alpha: float = 2.0
    beta: float = 0.1
    width: Width | None = None

    def __post_init__(self) -> None:
        number(self.epsilon, "epsilon", low=0.0, low_open=True)
        number(self.delta, "delta", low=0.0, high=1.0, high_open=True)
        number(self.alpha, "alpha", low=1.0, low_open=True)
        number(self.beta, "beta", low=1e-100, high=1.0, high_open=True)
        choice(self.randomizer, "randomizer", RANDOMIZERS)
        choice(self.calibration, "calibration", ("tight", "paper"))
        if self.width is not None:
            choice(self.width, "width", WIDTHS)
        pure = self.randomizer in ("laplace", "randomized-response")
        if not pure and self.delta == 0.0:
            raise InvalidInput(f"{self.randomizer} noise needs a delta > 0, for example 1e-5")
        if pure and self.delta > 0.0:
            raise InvalidInput(f"{self.randomizer} is purely epsilon-private: leave delta out")

    @property
    def chosen_width(self) -> Width:
        """The width asked for, else the one that goes with the calibration."""
        return self.width or ("published" if self.calibration == "paper" else "corrected")

    def parameters(self) -> dict[str, Any]:
        """Parameters by name, with the width that is used."""
        return {**super().parameters(), "width": self.chosen_width}

    def bind(self, task: Task) -> BoundAgent:
        """Randomized counts, planning after every user."""
        self.require_family(task, "tabular")
        self.require_homogeneous(task)
        statistic = VisitCounts(task)
        return BoundAgent(task, statistic, self._privatizer(statistic, task), self._planner())

    def _planner(self) -> ObiPlanner:
        return ObiPlanner(alpha=self.alpha, beta=self.beta, width=self.chosen_width)

    def _privatizer(self, statistic: VisitCounts, task: Task) -> Privatizer[Any]:
        paper, asked = self.calibration == "paper", float(self.epsilon)
        if self.randomizer == "randomized-response":
            bits = None
            if paper:
                noise = published.tabular_response(task.horizon, asked)
                per_bit = noise.scales["epsilon per bit"]
                bits = response_bits(statistic, per_bit * differing_bits(statistic))
            return LocalResponse(statistic, task, bits, requested_epsilon=asked)
        return LocalAdditive(
            statistic,
            task,
            self.randomizer,
            self._published(statistic, task) if paper else None,
            requested_epsilon=asked,
            requested_delta=self.delta,
        )

    def _published(self, statistic: VisitCounts, task: Task) -> Mapping[str, float]:
        """The bounded radius has C = 1 and the budget epsilon / (3H) of one step and table."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        if self.randomizer == "bounded":
            radius = paper_radius(self.epsilon / (3 * H), self.delta, S, A)
            return proportional_radii(statistic, radius)
        if self.randomizer == "laplace":
            scale = published.tabular_laplace(H, self.epsilon).scales["scale"]
        else:
            scale = published.tabular_gaussian(H, self.epsilon, self.delta).scales["std"]
        return {block.name: scale for block in statistic.layout.blocks}

    def notes(self, task: Task) -> tuple[str, ...]:
        """From when on the bonus leaves something to learn from."""
        planner, law = self._planner(), self.bind(task).privatizer.law(1)

        def when(target: float) -> str:
            episode = planner.break_even(task, law, target)
            return f"at episode {episode:.3g}" if math.isfinite(episode) else "never"

        shift = "no shift" if self.chosen_width == "tight" else f"alpha {self.alpha:g}"
        return (
            f"{self.chosen_width} widths, {shift}, beta {self.beta:g}: even for a pair (s, a) "
            f"visited at every step, the bonus of step 1 falls below the largest possible value "
            f"H = {task.horizon} {when(float(task.horizon))}, and below 1 {when(1.0)}; "
            f"{task.users:,} episodes are planned",
        )
