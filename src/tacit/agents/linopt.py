"""LinOpt and Private-LinOpt, -VI and -PO: linear mixtures with unknown random linear rewards.

The private ones read the same regressions through a continual counter, or with the noise of every
user (docs/papers/mixture_jdp.md#private-linopt).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import MixtureAgent
from tacit.agents.published import Calibration, CountedAgent
from tacit.agents.vtr import ExactVTR, targeted_planner
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.vtr import Rate
from tacit.planners.widths import PaperJoint, TightWidths, WidthRule
from tacit.privacy.counters import strategy
from tacit.privacy.joint.counted import CountedSums, counted_noise
from tacit.privacy.local.weighted import LocalWeighted, weighted_noise
from tacit.schedules import Every
from tacit.statistics.targets import Scaling, Shape, ValueTargets
from tacit.task.features import Norm
from tacit.task.task import Task


def tight_shape(task: Task, statistic: str, centre: bool, *, public: bool) -> Shape:
    """Rewards are regressed unless they are known; then families share the budget equally."""
    learned = "reward" not in task.known
    scaling: Scaling = "split" if learned else "equal"
    return Shape(statistic == "gram", learned, centre, public, scaling)


@dataclass(frozen=True)
class LinOptVI(ExactVTR):
    """Optimistic value iteration with value-targeted regression, not private.

    See docs/papers/mixture_jdp.md#linopt-vi. In tight calibration, with the reward revealed, it is
    ucrl-vtr. The paper gives no alpha and no lambda: ours are 0.05 and 1.

    Attributes:
        bonus_scale: c, multiplies the whole bonus; None for 1, in tight calibration for 0.1.
        beta: failure probability; None for 0.05 (tight: 1 / K).
        ridge: lambda.
        centre: regress V minus its midrange (tight only).
        statistic: "gram": a full Gram matrix per stage; "block": only its non-zero blocks (tight
            only).
        every: users between two plans; 1 in the paper.
        calibration: "corrected", "paper" or "tight".
    """

    name: ClassVar[str] = "linopt-vi"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the widths of the paper's lemma; sums begin at lambda, not at 0",
        "paper": "the same: nothing can be planned from sums of 0",
        "tight": "our widths, a tenth of them, on values without their midrange",
    }
    bonus_scale: float | None = None
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    statistic: Literal["gram", "block"] = "gram"
    every: int = 1
    calibration: Calibration = "corrected"

    def _shape(self, task: Task) -> Shape:
        centre = self.centre and not self.published
        return tight_shape(task, self.statistic, centre, public=False)

    def _paper_rule(self) -> WidthRule:
        return PaperJoint(self.scale, 0.05 if self.beta is None else self.beta, ridge=self.ridge)

    def notes(self, task: Task) -> tuple[str, ...]:
        """What is not as printed."""
        if not self.published:
            return ()
        return ("sums begin at lambda I, not at 0 (docs/papers/mixture_jdp.md#e4)",)


@dataclass(frozen=True)
class LinOptPO(LinOptVI):
    """Mirror-descent policy optimisation on the same regressions, not private.

    See docs/papers/mixture_jdp.md#linopt-po.

    Attributes:
        rate: step sizes, "tight" or as in the "paper"; None follows the calibration.
    """

    name: ClassVar[str] = "linopt-po"
    rate: Rate | None = None

    def _rate(self) -> Rate:
        return self.rate or ("paper" if self.published else "tight")


@dataclass(frozen=True)
class PrivateLinOptVI(MixtureAgent, CountedAgent):
    """Optimistic value iteration on noisy running sums.

    With a curator: docs/papers/mixture_jdp.md#private-linopt; without:
    docs/papers/mixture_jdp.md#local.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "corrected", "paper" or "tight".
        counter: how running sums are released: the paper's tree, honaker, toeplitz, normalised or
            blt (all others tight only).
        model: "joint": a trusted curator; "local": every user adds her own noise.
        bonus_scale: c, multiplies the whole bonus; None for 1, in tight calibration for 0.1.
        beta: failure probability; None for 0.05 (tight: 1 / K).
        ridge: lambda (tight only).
        centre: regress V minus its midrange (tight only).
        statistic: "gram": a full Gram matrix per stage; "block": only its non-zero blocks (tight
            only).
        every: users between two releases; 1 in the paper.
        norm: bound on features of values that the published noise is made for: sqrt(d1) H as in the
            "assumption", or H as in the "remark" (docs/papers/mixture_jdp.md#norm).
    """

    name: ClassVar[str] = "private-linopt-vi"
    models: ClassVar[tuple[str, ...]] = ("joint", "local")
    later: ClassVar[frozenset[str]] = frozenset({"norm"})
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "the paper's noise, raised where it falls short, and the shift and the widths "
        "that belong to it",
        "paper": "noise, shift and widths as published",
        "tight": "the least noise, and our widths",
    }
    counter: Literal["tree", "honaker", "toeplitz", "normalised", "blt"] = "tree"
    model: Literal["joint", "local"] = "joint"
    bonus_scale: float | None = None
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    statistic: Literal["gram", "block"] = "gram"
    every: int = 1
    norm: Norm = "assumption"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm != "assumption" and not self.published:
            raise InvalidInput("norm is of the published noise: leave it out in tight calibration")
        if self.published and (self.counter != "tree" or self.statistic != "gram"):
            raise InvalidInput(
                'the paper uses the tree counter on full Gram matrices: leave counter at "tree" '
                'and statistic at "gram", or choose calibration tight'
            )

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy sums, a release after every ``every`` users."""
        local = self.model == "local"
        shape = tight_shape(task, self.statistic, self.centre, public=local)
        if self.published:
            scaling: Scaling = "paper" if self.norm == "assumption" else "remark"
            shape = Shape(True, shape.rewards, False, False, scaling)
        statistic = ValueTargets(task, shape)
        if statistic.layout.size == 0:
            raise InvalidInput("with horizon 1 and known rewards there is nothing to learn")
        privatizer = self._privatizer(task, statistic)
        rule: WidthRule = TightWidths(self.scale, self.beta, self.ridge, self.releases(task))
        if self.published:
            beta, terms = 0.05 if self.beta is None else self.beta, self._levels(task)
            terms = task.users if local else terms
            rule = PaperJoint(self.scale, beta, privatizer.noise_std, terms, norm=self.norm)
        planner = targeted_planner(statistic, rule, self._rate())
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))

    def _levels(self, task: Task) -> int:
        """m of the paper: of the tree, and 1 where every user adds her own noise."""
        return 1 if self.model == "local" else max(1, math.ceil(math.log2(task.users)))

    def _published_std(self, task: Task) -> float:
        """The paper's noise of a node, or of a user, per unit norm."""
        levels = self._levels(task)
        return paper_constants.mixture_joint(task.horizon, self.epsilon, self.delta, levels)

    def _privatizer(self, task: Task, statistic: ValueTargets) -> LocalWeighted | CountedSums:
        requested, std = self.requested(), self._published_std(task) if self.published else None
        if self.model == "local":
            if self.corrected and std is not None:
                std = max(std, weighted_noise(statistic, task, *requested))
            return LocalWeighted(statistic, task, std, requested=requested)
        counter = strategy(self.counter, self.releases(task))
        batch = min(self.every, task.users)
        if self.corrected and std is not None:
            std = max(std, counted_noise(statistic, task, counter, batch, *requested))
        return CountedSums(statistic, task, counter, std, batch=batch, requested=requested)

    def _rate(self) -> Rate | None:
        """Step sizes of policy optimisation."""
        return None

    def notes(self, task: Task) -> tuple[str, ...]:
        """How much noise was raised."""
        if not self.corrected:
            return ()
        privatizer = self.bind(task).privatizer
        assert isinstance(privatizer, LocalWeighted | CountedSums)
        factor = privatizer.noise_std / self._published_std(task)
        return self.raised(factor, "docs/papers/mixture_jdp.md#e2")


@dataclass(frozen=True)
class PrivateLinOptPO(PrivateLinOptVI):
    """Mirror-descent policy optimisation on noisy running sums.

    See docs/papers/mixture_jdp.md#linopt-po and docs/papers/mixture_jdp.md#private-linopt.

    Attributes:
        rate: step sizes, "tight" or as in the "paper"; None follows the calibration.
    """

    name: ClassVar[str] = "private-linopt-po"
    rate: Rate | None = None

    def _rate(self) -> Rate:
        return self.rate or ("paper" if self.published else "tight")
