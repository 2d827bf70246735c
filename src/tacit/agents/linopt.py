"""LinOpt and Private-LinOpt, -VI and -PO: linear mixtures with unknown random linear rewards.

The private ones read the same regressions through a continual counter, or with the noise of every
user (docs/papers/mixture_jdp.md#private-linopt).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import MixtureAgent
from tacit.agents.published import CountedAgent
from tacit.agents.vtr import UcrlVTR, targeted_planner
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners import Planner
from tacit.planners.widths import PaperJoint, TightWidths, WidthRule
from tacit.privacy import Privatizer
from tacit.privacy.counters import strategy
from tacit.privacy.joint.counted import CountedSums
from tacit.privacy.local.weighted import LocalWeighted
from tacit.schedules import Every
from tacit.statistics.targets import Scaling, Shape, ValueTargets
from tacit.task.task import Task


def tight_shape(task: Task, statistic: str, centre: bool, *, public: bool) -> Shape:
    """Rewards are regressed unless they are known; then families share the budget equally."""
    learned = "reward" not in task.known
    scaling: Scaling = "split" if learned else "equal"
    return Shape(statistic == "gram", learned, centre, public, scaling)


@dataclass(frozen=True)
class LinOptVI(UcrlVTR):
    """Optimistic value iteration with value-targeted regression, not private.

    See docs/papers/mixture_jdp.md#linopt-vi. With the reward revealed it is UCRL-VTR, whose
    parameters it has.
    """

    name: ClassVar[str] = "linopt-vi"
    needs: ClassVar[frozenset[str]] = frozenset()
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})

    def _shape(self, task: Task) -> Shape:
        return tight_shape(task, self.statistic, self.centre, public=False)


@dataclass(frozen=True)
class LinOptPO(LinOptVI):
    """Mirror-descent policy optimisation on the same regressions, not private.

    See docs/papers/mixture_jdp.md#linopt-po.

    Attributes:
        rate: step sizes, "tight" or as in the "paper".
    """

    name: ClassVar[str] = "linopt-po"
    rate: Literal["paper", "tight"] = "tight"

    def _planner(self, statistic: ValueTargets, rule: WidthRule) -> Planner:
        return targeted_planner(statistic, rule, self.rate)


@dataclass(frozen=True)
class PrivateLinOptVI(MixtureAgent, CountedAgent):
    """Optimistic value iteration on noisy running sums.

    With a curator: docs/papers/mixture_jdp.md#private-linopt; without:
    docs/papers/mixture_jdp.md#local.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "tight": least noise, sharp widths; "paper": as in the paper.
        counter: how running sums are released: tree, honaker, toeplitz, normalised or blt.
        model: "joint": a trusted curator; "local": every user adds her own noise.
        bonus_scale: c, multiplies the whole bonus; None for 0.1 (paper: 1, the theorem).
        beta: failure probability; None for 1 / K (paper: 0.05).
        ridge: lambda.
        centre: regress V minus its midrange (tight only).
        statistic: "gram": a full Gram matrix per stage; "block": only its non-zero blocks.
        every: users between two releases.
    """

    name: ClassVar[str] = "private-linopt-vi"
    models: ClassVar[tuple[str, ...]] = ("joint", "local")
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    default_scale: ClassVar[float] = 0.1
    calibration: Literal["tight", "paper"] = "tight"
    counter: Literal["tree", "honaker", "toeplitz", "normalised", "blt"] = "tree"
    model: Literal["joint", "local"] = "joint"
    bonus_scale: float | None = None
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    statistic: Literal["gram", "block"] = "gram"
    every: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
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
            shape = Shape(True, shape.rewards, False, False, "paper")
        statistic = ValueTargets(task, shape)
        if statistic.layout.size == 0:
            raise InvalidInput("with horizon 1 and known rewards there is nothing to learn")
        privatizer = self._privatizer(task, statistic)
        planner = self._planner(statistic, self._rule(task))
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))

    def _paper_std(self, task: Task) -> tuple[float, int]:
        """The paper's noise per unit norm, and the number of noises in a sum."""
        levels = 1 if self.model == "local" else max(1, math.ceil(math.log2(task.users)))
        terms = task.users if self.model == "local" else levels
        return paper_constants.mixture_joint(task.horizon, self.epsilon, self.delta, levels), terms

    def _rule(self, task: Task) -> WidthRule:
        if self.published:
            std, terms = self._paper_std(task)
            return PaperJoint(self.scale, 0.05 if self.beta is None else self.beta, std, terms)
        return TightWidths(self.scale, self.beta, self.ridge, self.releases(task))

    def _privatizer(self, task: Task, statistic: ValueTargets) -> Privatizer[Any]:
        std = self._paper_std(task)[0] if self.published else None
        if self.model == "local":
            return LocalWeighted(statistic, task, std, requested=self.requested())
        counter = strategy(self.counter, self.releases(task))
        batch = min(self.every, task.users)
        return CountedSums(statistic, task, counter, std, batch=batch, requested=self.requested())

    def _planner(self, statistic: ValueTargets, rule: WidthRule) -> Planner:
        return targeted_planner(statistic, rule)


@dataclass(frozen=True)
class PrivateLinOptPO(PrivateLinOptVI):
    """Mirror-descent policy optimisation on noisy running sums.

    See docs/papers/mixture_jdp.md#linopt-po and docs/papers/mixture_jdp.md#private-linopt.

    Attributes:
        rate: step sizes, "tight" or as in the "paper"; None follows the calibration.
    """

    name: ClassVar[str] = "private-linopt-po"
    rate: Literal["paper", "tight"] | None = None

    def _planner(self, statistic: ValueTargets, rule: WidthRule) -> Planner:
        return targeted_planner(statistic, rule, self.rate or self.calibration)
