"""UCRL-VTR, its locally private form LDP-UCRL-VTR, and the linear bandit that is its H = 1 case.

See docs/papers/mixture_ldp.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import MixtureAgent, not_private
from tacit.agents.published import Calibration, PublishedPrivateAgent, ScaledAgent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners import Planner
from tacit.planners.vtr import MirrorPlanner, Rate, TransitionPlanner, ValueTargetedPlanner
from tacit.planners.widths import (
    PaperExperiment,
    PaperLocal,
    Radius,
    Sums,
    TightWidths,
    Units,
    WidthRule,
)
from tacit.privacy.local.weighted import LocalWeighted, weighted_noise
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


class ExactVTR(MixtureAgent, ScaledAgent):
    """Value-targeted regression on exact sums, which its subclasses put parameters of in order."""

    beta: float | None
    ridge: float
    centre: bool
    statistic: Literal["gram", "block"]
    every: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published and self.statistic != "gram":
            raise InvalidInput(
                'the paper has full Gram matrices: leave statistic at "gram", or choose '
                "calibration tight"
            )

    def fitted(self, task: Task) -> BoundAgent:
        """Exact sums, planning after every ``every`` users."""
        statistic = ValueTargets(task, self._shape(task))
        planner = targeted_planner(statistic, self._rule(task), self._rate())
        return not_private(task, statistic, planner, Every(self.every))

    @abstractmethod
    def _shape(self, task: Task) -> Shape:
        """Of the sums."""

    def _rule(self, task: Task) -> WidthRule:
        if self.published:
            return self._paper_rule()
        return TightWidths(self.scale, self.beta, self.ridge, task.users)

    @abstractmethod
    def _paper_rule(self) -> WidthRule:
        """Widths as in the paper."""

    def _rate(self) -> Rate | None:
        """Step sizes of policy optimisation."""
        return None


@dataclass(frozen=True)
class UcrlVTR(ExactVTR):
    """Value-targeted regression with known rewards, not private.

    See docs/papers/mixture_ldp.md#ucrl-vtr. The paper divides rewards by H and does not say whether
    the H - h + 1 of its radius is divided too: here it is the largest value, so it is.

    Attributes:
        bonus_scale: c; None for 1, in tight calibration for 0.1. In the radius of the experiment it
            multiplies the first term only, else the whole radius.
        beta: failure probability; None for 1 / K (radius of the theorem: 0.01).
        ridge: lambda (radius of the theorem: 1).
        centre: regress V minus its midrange (tight only).
        statistic: "gram": a full Gram matrix per stage; "block": only its non-zero blocks (tight
            only).
        every: users between two plans; 1 in the paper.
        calibration: "corrected", "paper" or "tight".
        radius: the one of the "experiment", or of the "theorem" on LDP-UCRL-VTR without noise
            (docs/papers/mixture_ldp.md#radius); tight calibration has its own.
    """

    name: ClassVar[str] = "ucrl-vtr"
    needs: ClassVar[frozenset[str]] = frozenset({"reward"})
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "as the paper runs it, with the logarithm of K that it means",
        "paper": "the same: what is printed has a negative number under a root",
        "tight": "our radius, a tenth of it, on values without their midrange",
    }
    bonus_scale: float | None = None
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    statistic: Literal["gram", "block"] = "gram"
    every: int = 1
    calibration: Calibration = "corrected"
    radius: Radius = "experiment"

    def _shape(self, task: Task) -> Shape:
        whole, centre = self.statistic == "gram", self.centre and not self.published
        return Shape(whole, False, centre, True, "equal")

    def _paper_rule(self) -> WidthRule:
        if self.radius == "experiment":
            return PaperExperiment(self.scale, self.beta, self.ridge)
        return PaperLocal(self.scale, 0.01 if self.beta is None else self.beta)

    def notes(self, task: Task) -> tuple[str, ...]:
        """What is not as printed."""
        if not self.published or self.radius == "theorem":
            return ()
        return ("2 log K for 2 log(1 / K) in the radius (docs/papers/mixture_ldp.md#e8)",)


class _LocalVTR(MixtureAgent, ScaledAgent, PublishedPrivateAgent):
    """Users send their sums with Gaussian noise."""

    models: ClassVar[tuple[str, ...]] = ("local",)
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the paper's noise, raised where it falls short, and the shift and the radius "
        "that belong to it",
        "paper": "noise, shift and radius as published",
        "tight": "the least noise, in proportion to the public size of V, and our widths",
    }
    beta: float | None
    ridge: float
    every: int

    def _targeted(self, task: Task, shape: Shape, radius: Radius = "theorem") -> BoundAgent:
        """Sums of one shape, in the paper's units where noise and radius are the paper's."""
        statistic = ValueTargets(task, replace(shape, scaling="raw") if self.published else shape)
        rule: WidthRule = TightWidths(self.scale, self.beta, self.ridge, task.users)
        if self.published:
            rule = PaperLocal(self.scale, 0.01 if self.beta is None else self.beta, radius)
        return self._reported(task, statistic, targeted_planner(statistic, rule))

    def _reported(self, task: Task, statistic: Statistic, planner: Planner) -> BoundAgent:
        std = self._published_std(task) if self.published else None
        if self.corrected and std is not None:
            std = max(std, weighted_noise(statistic, task, *self.requested()))
        privatizer = LocalWeighted(statistic, task, std, requested=self.requested())
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))

    def _published_std(self, task: Task) -> float:
        small = bool(value_caps(task)[0] <= 1.0 + 1e-9)
        return paper_constants.mixture_local(
            task.horizon, self.epsilon, self.delta, small_values=small
        )

    def notes(self, task: Task) -> tuple[str, ...]:
        """How much noise was raised."""
        if not self.corrected:
            return ()
        privatizer = self.bind(task).privatizer
        assert isinstance(privatizer, LocalWeighted)
        factor = privatizer.noise_std / self._published_std(task)
        return self.raised(factor, "docs/papers/mixture_ldp.md#e2")


@dataclass(frozen=True)
class LdpUcrlVTR(_LocalVTR):
    """Users send their Gram matrices and targets with Gaussian noise.

    See docs/papers/mixture_ldp.md#ldp-ucrl-vtr, for the least noise
    docs/papers/mixture_ldp.md#tight-noise. The paper's line 6 bounds Q from above only. Q is cut at
    0 from below here, whatever the calibration: without that V could be of any size, no norm bound
    would hold and no noise would do. From above it is cut at the sum of the largest rewards still
    to come, H - h + 1 if they are 1. The paper gives no constant in its radius: that of the theorem
    is the sum of the three terms of its proof.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "corrected", "paper" or "tight".
        statistic: "gram": a full Gram matrix per stage; "block": only the blocks that can be
            non-zero; "index": which transition was taken (finite problems); both tight only.
        bonus_scale: c, multiplies the whole width; None for 1, in tight calibration for 0.1.
        beta: failure probability; None for 0.01 (tight: 1 / K).
        ridge: lambda (tight only; 1 in the paper).
        centre: regress V minus its midrange (tight only).
        every: users between two plans; 1 in the paper.
        radius: that of the "theorem" or of the "experiment", where c was found by a grid search
            (docs/papers/mixture_ldp.md#radius); tight calibration has its own.
    """

    name: ClassVar[str] = "ldp-ucrl-vtr"
    needs: ClassVar[frozenset[str]] = frozenset({"reward"})
    statistic: Literal["gram", "block", "index"] = "gram"
    bonus_scale: float | None = None
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    every: int = 1
    radius: Radius = "theorem"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published and self.statistic != "gram":
            raise InvalidInput(
                'the paper sends full Gram matrices: statistic must be "gram", or calibration tight'
            )

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy reports, planning after every ``every`` users."""
        if task.horizon == 1:
            raise InvalidInput(
                "with horizon 1 there are no transitions to learn and nothing to report; the "
                "linear bandit has an agent of its own, ldp-bandit"
            )
        if self.statistic == "index":
            planner = TransitionPlanner(bonus_scale=self.scale)
            return self._reported(task, PolicyTransitions(task), planner)
        tight, gram = not self.published, self.statistic == "gram"
        shape = Shape(gram, False, self.centre and tight, tight, "equal")
        return self._targeted(task, shape, self.radius)


@dataclass(frozen=True)
class LdpBandit(_LocalVTR):
    """Users send x x^T and x y with Gaussian noise; arms by optimism.

    See docs/papers/mixture_ldp.md#bandit. Setting H = 1 in LDP-UCRL-VTR literally learns nothing,
    so rewards are regressed (docs/papers/mixture_ldp.md#e7); the paper gives no radius for that:
    it is the one of its proof at H = 1.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "corrected", "paper" or "tight".
        bonus_scale: c, multiplies the whole width; None for 1, in tight calibration for 0.1.
        beta: failure probability; None for 0.01 (tight: 1 / K).
        ridge: lambda (tight only; 1 in the paper).
        every: users between two plans; 1 in the paper.
    """

    name: ClassVar[str] = "ldp-bandit"
    families: ClassVar[tuple[str, ...]] = ("mixture",)
    bonus_scale: float | None = None
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
        return self._targeted(task, Shape(self.published, True, False, False, "equal"))
