"""UCRL-VTR, its locally private form LDP-UCRL-VTR, and the linear bandit that is its H = 1 case.

See docs/papers/mixture_ldp.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import CalibratedAgent, MixtureAgent, not_private
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners import Planner
from tacit.planners.vtr import MirrorPlanner, Rate, TransitionPlanner, ValueTargetedPlanner
from tacit.planners.widths import PaperLocal, Sums, TightWidths, Units, WidthRule
from tacit.privacy.local.weighted import LocalWeighted
from tacit.schedules import Every
from tacit.statistics import Statistic
from tacit.statistics.counts import PolicyTransitions
from tacit.statistics.targets import Shape, ValueTargets
from tacit.task.features import value_caps
from tacit.task.task import Task


def targeted_planner(
    statistic: ValueTargets, rule: WidthRule, rate: Rate | None = None
) -> ValueTargetedPlanner | MirrorPlanner:
    """The optimistic planner that reads this statistic; with a rate, the policy optimiser."""
    s, centre = statistic.scales, statistic.shape.centre
    units = Units(1 / s.gram, 1 / s.target, 1 / s.reward_gram, 1 / s.reward_target, s.off)
    sums = Sums(statistic.transitions, statistic.rewards, units)
    if rate is None:
        return ValueTargetedPlanner(sums=sums, rule=rule, centre=centre)
    return MirrorPlanner(sums=sums, rule=rule, centre=centre, rate=rate)


@dataclass(frozen=True)
class UcrlVTR(MixtureAgent):
    """Value-targeted regression with known rewards, not private.

    See docs/papers/mixture_ldp.md#ucrl-vtr.

    Attributes:
        bonus_scale: c, multiplies the whole radius; 1 is the theorem.
        beta: failure probability; None for 1 / K.
        ridge: lambda.
        centre: regress V minus its midrange.
        statistic: "gram": a full Gram matrix per stage; "block": only its non-zero blocks.
        every: users between two plans.
    """

    name: ClassVar[str] = "ucrl-vtr"
    needs: ClassVar[frozenset[str]] = frozenset({"reward"})
    bonus_scale: float = 0.1
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    statistic: Literal["gram", "block"] = "gram"
    every: int = 1

    def fitted(self, task: Task) -> BoundAgent:
        """Exact sums, planning after every ``every`` users."""
        statistic = ValueTargets(task, self._shape(task))
        rule = TightWidths(self.bonus_scale, self.beta, self.ridge, task.users)
        planner = self._planner(statistic, rule)
        return not_private(task, statistic, planner, Every(self.every))

    def _shape(self, task: Task) -> Shape:
        return Shape(self.statistic == "gram", False, self.centre, True, "equal")

    def _planner(self, statistic: ValueTargets, rule: WidthRule) -> Planner:
        return targeted_planner(statistic, rule)


class _LocalVTR(MixtureAgent, CalibratedAgent):
    """Users send their sums with Gaussian noise."""

    models: ClassVar[tuple[str, ...]] = ("local",)
    bonus_scale: float
    beta: float | None
    ridge: float
    every: int

    def _targeted(self, task: Task, shape: Shape) -> BoundAgent:
        """Sums of one shape, in the paper's units where noise and radius are the paper's."""
        statistic = ValueTargets(task, replace(shape, scaling="raw") if self.as_paper else shape)
        rule: WidthRule = TightWidths(self.bonus_scale, self.beta, self.ridge, task.users)
        if self.as_paper:
            rule = PaperLocal(self.bonus_scale, 0.01 if self.beta is None else self.beta)
        return self._reported(task, statistic, targeted_planner(statistic, rule))

    def _reported(self, task: Task, statistic: Statistic, planner: Planner) -> BoundAgent:
        std = None
        if self.as_paper:
            small = bool(value_caps(task)[0] <= 1.0 + 1e-9)
            std = paper_constants.mixture_local(
                task.horizon, self.epsilon, self.delta, small_values=small
            )
        privatizer = LocalWeighted(statistic, task, std, requested=self.requested())
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))


@dataclass(frozen=True)
class LdpUcrlVTR(_LocalVTR):
    """Users send their Gram matrices and targets with Gaussian noise.

    See docs/papers/mixture_ldp.md#ldp-ucrl-vtr, for the least noise
    docs/papers/mixture_ldp.md#tight-noise.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "tight" adds the least noise, in proportion to the public size of V; "paper" is
            the paper's noise, shift and radius.
        statistic: "gram": a full Gram matrix per stage; "block": only the blocks that can be
            non-zero; "index": which transition was taken (finite problems).
        bonus_scale: c, multiplies the whole width; 1 is the theorem.
        beta: failure probability; None for 1 / K (paper: 0.01).
        ridge: lambda.
        centre: regress V minus its midrange (tight only).
        every: users between two plans.
    """

    name: ClassVar[str] = "ldp-ucrl-vtr"
    needs: ClassVar[frozenset[str]] = frozenset({"reward"})
    statistic: Literal["gram", "block", "index"] = "gram"
    bonus_scale: float = 0.1
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    every: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.as_paper and self.statistic != "gram":
            raise InvalidInput('the paper sends full Gram matrices: statistic must be "gram"')

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy reports, planning after every ``every`` users."""
        if task.horizon == 1:
            raise InvalidInput(
                "with horizon 1 there are no transitions to learn and nothing to report; the "
                "linear bandit has an agent of its own, ldp-bandit"
            )
        if self.statistic == "index":
            planner = TransitionPlanner(bonus_scale=self.bonus_scale)
            return self._reported(task, PolicyTransitions(task), planner)
        tight, gram = not self.as_paper, self.statistic == "gram"
        return self._targeted(task, Shape(gram, False, self.centre and tight, tight, "equal"))


@dataclass(frozen=True)
class LdpBandit(_LocalVTR):
    """Users send x x^T and x y with Gaussian noise; arms by optimism.

    See docs/papers/mixture_ldp.md#bandit. Setting H = 1 in LDP-UCRL-VTR literally learns nothing,
    so rewards are regressed (docs/papers/mixture_ldp.md#e7).

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "tight": least noise for both parts together; "paper": sigma = 4 sqrt(2
            ln(2.5 / delta)) / epsilon and the paper's shift and radius.
        bonus_scale: c, multiplies the whole width; 1 is the theorem.
        beta: failure probability; None for 1 / K (paper: 0.01).
        ridge: lambda.
        every: users between two plans.
    """

    name: ClassVar[str] = "ldp-bandit"
    families: ClassVar[tuple[str, ...]] = ("mixture",)
    bonus_scale: float = 0.1
    beta: float | None = None
    ridge: float = 1.0
    every: int = 1

    def fitted(self, task: Task) -> BoundAgent:
        """One regression of rewards."""
        if task.horizon != 1:
            raise InvalidInput(
                f"ldp-bandit learns problems of horizon 1, but this one has {task.horizon}; "
                "ldp-ucrl-vtr learns the others"
            )
        return self._targeted(task, Shape(self.as_paper, True, False, False, "equal"))
