"""LinOpt-VI and LinOpt-PO: linear mixtures with unknown random linear rewards.

See docs/papers/mixture_jdp.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents.base import Agent
from tacit.agents.vtr import check_widths, targeted_planner, units_of
from tacit.driver import BoundAgent, Every
from tacit.planners import MirrorPlanner, Planner
from tacit.planners.targeted import Rate
from tacit.planners.widths import TightWidths, WidthRule
from tacit.privacy import Exact
from tacit.statistics.targets import Scaling, Shape, ValueTargets
from tacit.task import Task
from tacit.validate import choice, flag


def tight_shape(task: Task, statistic: str, centre: bool, *, public: bool) -> Shape:
    """Rewards are regressed unless they are known; then families share the budget equally."""
    learned = "reward" not in task.known
    scaling: Scaling = "split" if learned else "equal"
    return Shape(statistic == "gram", learned, centre, public, scaling)


def mirror_planner(statistic: ValueTargets, rule: WidthRule, rate: Rate) -> MirrorPlanner:
    """The policy optimiser that reads this statistic."""
    return MirrorPlanner(
        rate=rate,
        transitions=statistic.transitions,
        rewards=statistic.rewards,
        units=units_of(statistic),
        rule=rule,
        centre=statistic.shape.centre,
    )


@dataclass(frozen=True)
class LinOptVI(Agent):
    """Optimistic value iteration with value-targeted regression, not private.

    See docs/papers/mixture_jdp.md#linopt-vi. With the reward revealed it is UCRL-VTR.

    Attributes:
        bonus_scale: c, multiplies the whole bonus; 1 is the theorem.
        beta: failure probability; None for 1 / K.
        ridge: lambda.
        centre: regress V minus its midrange.
        statistic: "gram": a full Gram matrix per stage; "block": only its non-zero blocks.
        every: users between two plans.
    """

    name: ClassVar[str] = "linopt-vi"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    bonus_scale: float = 0.1
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    statistic: Literal["gram", "block"] = "gram"
    every: int = 1

    def __post_init__(self) -> None:
        check_widths(self.bonus_scale, self.beta, self.ridge, self.every)
        choice(self.statistic, "statistic", ("gram", "block"))
        flag(self.centre, "centre")

    def bind(self, task: Task) -> BoundAgent:
        """Exact sums."""
        self.require_family(task, "tabular")
        statistic = ValueTargets(task, tight_shape(task, self.statistic, self.centre, public=False))
        rule = TightWidths(self.bonus_scale, self.beta, self.ridge, task.users)
        planner = self._planner(statistic, rule)
        return BoundAgent(task, statistic, Exact(statistic, task), planner, Every(self.every))

    def _planner(self, statistic: ValueTargets, rule: WidthRule) -> Planner:
        return targeted_planner(statistic, rule)


@dataclass(frozen=True)
class LinOptPO(LinOptVI):
    """Mirror-descent policy optimisation on the same regressions, not private.

    See docs/papers/mixture_jdp.md#linopt-po.

    Attributes:
        rate: step sizes, "tight" or as in the "paper".
    """

    name: ClassVar[str] = "linopt-po"
    rate: Literal["paper", "tight"] = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(self.rate, "rate", ("paper", "tight"))

    def _planner(self, statistic: ValueTargets, rule: WidthRule) -> Planner:
        return mirror_planner(statistic, rule, self.rate)
