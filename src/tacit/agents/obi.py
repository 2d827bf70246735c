"""Optimistic backward induction on tables: UCB-VI, OBI, and LDP-OBI under local privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import PrivateAgent, Ranges, TableAgent, not_private
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.obi import ObiPlanner, UcbViPlanner, Width
from tacit.privacy import Privatizer
from tacit.privacy.bounded import paper_radius
from tacit.privacy.local.additive import LocalAdditive, proportional_radii
from tacit.privacy.local.response import LocalResponse, differing_bits, response_bits
from tacit.schedules import Every
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


@dataclass(frozen=True)
class UcbVI(TableAgent):
    """Optimistic value iteration with a Hoeffding bonus.

    The bonus: docs/papers/tabular_ldp.md#baselines.

    Attributes:
        bonus_scale: factor c in front of the theorem's bonus; 1 is the theorem.
        beta: failure probability of the theorem's confidence statement.
        every: users between two plans.
    """

    name: ClassVar[str] = "ucb-vi"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    bonus_scale: float = 1.0
    beta: float = 0.1
    every: int = 1

    def _planner(self) -> UcbViPlanner:
        return UcbViPlanner(bonus_scale=self.bonus_scale, beta=self.beta)

    def fitted(self, task: Task) -> BoundAgent:
        """Exact counts, optimistic planning after every user, or every so many."""
        return not_private(task, VisitCounts(task), self._planner(), Every(self.every))

    def notes(self, task: Task) -> tuple[str, ...]:
        """How far the bonus is from mattering less than the whole range of values."""
        needed = math.ceil((self._planner().width(task) / task.horizon) ** 2)
        share = "1 (the theorem)" if self.bonus_scale == 1 else f"{self.bonus_scale:g}"
        pairs = task.sizes["states"] * task.sizes["actions"]
        return (
            f"bonus scale {share}: a pair (s, a) needs N = {needed:,} visits before its bonus "
            f"falls below the largest possible value H = {task.horizon}; {task.users:,} episodes "
            f"give {task.users * task.horizon // pairs:,} visits per pair on average",
        )


@dataclass(frozen=True)
class OBI(TableAgent):
    """LDP-OBI with nothing to hide: no noise, no width for it, denominators max(N, 1).

    See docs/papers/tabular_ldp.md#baselines. Pools stages, so the task must be declared
    homogeneous.

    Attributes:
        beta: failure probability.
        width: "paper" (the paper's bonus, last step included), "corrected" or "tight", as in
            ldp-obi.
        every: users between two plans.
    """

    name: ClassVar[str] = "obi"
    beta: float = 0.1
    width: Width = "paper"
    every: int = 1

    def fitted(self, task: Task) -> BoundAgent:
        """Exact counts, optimistic planning after every user, or every so many."""
        self.require_homogeneous(task)
        planner = ObiPlanner(alpha=1.0, beta=self.beta, width=self.width)
        return not_private(task, VisitCounts(task), planner, Every(self.every))


@dataclass(frozen=True)
class LdpOBI(TableAgent, PrivateAgent):
    """Users randomize their visit counts; the learner plans optimistically on the noisy sums.

    See docs/papers/tabular_ldp.md#ldp-obi. Pools stages, so the task must be declared homogeneous.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for; Gaussian and bounded noise need one, the others have none.
        randomizer: "laplace", "gaussian", "randomized-response", or "bounded" (simulated only).
        calibration: "tight" adds the least noise; "paper" has the paper's noise and bonus.
        alpha: shift of the denominators, > 1 (the paper gives no value).
        beta: failure probability.
        width: "paper", "corrected" or "tight" bonus; by default what the calibration says:
            "paper" for "paper", "corrected" for "tight".
    """

    name: ClassVar[str] = "ldp-obi"
    models: ClassVar[tuple[str, ...]] = ("local",)
    ranges: ClassVar[Ranges] = {
        "delta": {"low": 0.0, "high": 1.0, "high_open": True},
        "alpha": {"low": 1.0, "low_open": True},
    }
    delta: float = 0.0
    randomizer: Literal["laplace", "gaussian", "randomized-response", "bounded"] = "laplace"
    calibration: Literal["tight", "paper"] = "tight"
    alpha: float = 2.0
    beta: float = 0.1
    width: Width | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        pure = self.randomizer in ("laplace", "randomized-response")
        if not pure and self.delta == 0.0:
            raise InvalidInput(f"{self.randomizer} noise needs a delta > 0, for example 1e-5")
        if pure and self.delta > 0.0:
            raise InvalidInput(f"{self.randomizer} is purely epsilon-private: leave delta out")

    @property
    def chosen_width(self) -> Width:
        """The width asked for, else the one that goes with the calibration."""
        return self.width or ("paper" if self.calibration == "paper" else "corrected")

    def parameters(self) -> dict[str, Any]:
        """Parameters by name, with the width that is used."""
        return {**super().parameters(), "width": self.chosen_width}

    def fitted(self, task: Task) -> BoundAgent:
        """Randomized counts, planning after every user."""
        self.require_homogeneous(task)
        statistic = VisitCounts(task)
        return BoundAgent(task, statistic, self._privatizer(statistic, task), self._planner())

    def _planner(self) -> ObiPlanner:
        return ObiPlanner(alpha=self.alpha, beta=self.beta, width=self.chosen_width)

    def _privatizer(self, statistic: VisitCounts, task: Task) -> Privatizer[Any]:
        as_paper, asked = self.calibration == "paper", float(self.epsilon)
        if self.randomizer == "randomized-response":
            bits = None
            if as_paper:
                per_bit = paper_constants.tabular_bit(task.horizon, asked)
                bits = response_bits(statistic, per_bit * differing_bits(statistic))
            return LocalResponse(statistic, task, bits, requested_epsilon=asked)
        scales = self._paper(statistic, task) if as_paper else None
        return LocalAdditive(statistic, task, self.randomizer, scales, requested=self.requested())

    def _paper(self, statistic: VisitCounts, task: Task) -> Mapping[str, float]:
        """The bounded radius has C = 1 and the budget epsilon / (3H) of one step and table."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        if self.randomizer == "bounded":
            radius = paper_radius(self.epsilon / (3 * H), self.delta, S, A)
            return proportional_radii(statistic, radius)
        if self.randomizer == "laplace":
            scale = paper_constants.tabular_laplace(H, self.epsilon)
        else:
            scale = paper_constants.tabular_gaussian(H, self.epsilon, self.delta)
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
