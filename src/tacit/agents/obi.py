"""Optimistic backward induction on tables: UCB-VI, OBI, and LDP-OBI under local privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents.base import TableAgent, not_private
from tacit.agents.local_tables import LocalTableAgent, Randomizer
from tacit.agents.published import Calibration
from tacit.learner import BoundAgent
from tacit.planners.obi import ObiPlanner, UcbViPlanner, Width
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
class LdpOBI(LocalTableAgent):
    """Users randomize their visit counts; the learner plans optimistically on the noisy sums.

    See docs/papers/tabular_ldp.md#ldp-obi. Pools stages, so the task must be declared homogeneous.
    The paper gives no alpha, no beta and no C for bounded noise: ours are 2, 0.1 and 1.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for; Gaussian and bounded noise need one, the others have none.
        randomizer: "laplace", "gaussian", "randomized-response", or "bounded" (simulated only).
        calibration: "corrected", "paper" or "tight".
        alpha: shift of the denominators, > 1.
        beta: failure probability.
        width: "paper", "corrected" or "tight" bonus; by default what the calibration says:
            "paper" for "paper", else "corrected".
        constant: c of the published Gaussian noise c H / epsilon: 2 sqrt(ln(24 / delta)) as in the
            "proof", or 4 ln(24 / delta) as in the "proposition".
    """

    name: ClassVar[str] = "ldp-obi"
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the paper's noise, raised where Gaussian and bounded noise fall short; "
        "widths that hold; no bonus for a transition after the last step",
        "paper": "noise and widths as stated",
        "tight": "the least noise, with the corrected widths",
    }
    tables: ClassVar[int] = 3
    later: ClassVar[frozenset[str]] = frozenset({"constant"})
    epsilon: float
    delta: float = 0.0
    randomizer: Randomizer = "laplace"
    calibration: Calibration = "corrected"
    alpha: float = 2.0
    beta: float = 0.1
    width: Width | None = None
    constant: Literal["proof", "proposition"] = "proof"

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
        return BoundAgent(task, statistic, self.privatizer(statistic, task), self._planner())

    def _planner(self) -> ObiPlanner:
        return ObiPlanner(alpha=self.alpha, beta=self.beta, width=self.chosen_width)

    def notes(self, task: Task) -> tuple[str, ...]:
        """From when on the bonus leaves something to learn from."""
        planner, privatizer = self._planner(), self.bind(task).privatizer
        law = privatizer.law(1)

        def when(target: float) -> str:
            episode = planner.break_even(task, law, target)
            return f"at episode {episode:.3g}" if math.isfinite(episode) else "never"

        shift = "no shift" if self.chosen_width == "tight" else f"alpha {self.alpha:g}"
        return (
            f"{self.chosen_width} widths, {shift}, beta {self.beta:g}: even for a pair (s, a) "
            f"visited at every step, the bonus of step 1 falls below the largest possible value "
            f"H = {task.horizon} {when(float(task.horizon))}, and below 1 {when(1.0)}; "
            f"{task.users:,} episodes are planned",
            *self.raised_noise(privatizer, task),
            *self._mended_widths(),
        )

    def _mended_widths(self) -> tuple[str, ...]:
        """What the corrected widths change in those of the paper."""
        if not self.corrected or self.chosen_width != "corrected":
            return ()
        page = "docs/papers/tabular_ldp.md"
        erratum = {"gaussian": "e4", "randomized-response": "e5"}.get(self.randomizer)
        widths = f"widths that hold for {self.randomizer} ({page}#{erratum}), and "
        last = f"no bonus for a transition after the last step ({page}#e8)"
        return (f"corrected: {widths if erratum else ''}{last}",)
