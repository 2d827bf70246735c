"""Private-LinOpt-VI and -PO: the same regressions through a continual counter.

See docs/papers/mixture_jdp.md#private-linopt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents.base import Agent
from tacit.agents.linopt import mirror_planner, tight_shape
from tacit.agents.vtr import check_privacy, check_widths, targeted_planner
from tacit.driver import BoundAgent, Every
from tacit.errors import InvalidInput
from tacit.planners import Planner
from tacit.planners.widths import PrintedJoint, TightWidths, WidthRule
from tacit.privacy import Privatizer, published
from tacit.privacy.counters import strategy
from tacit.privacy.joint import CountedSums
from tacit.privacy.local import LocalShaped
from tacit.statistics.targets import Shape, ValueTargets
from tacit.task import Task
from tacit.validate import choice, flag


@dataclass(frozen=True)
class PrivateLinOptVI(Agent):
    """Optimistic value iteration on noisy running sums.

    With a curator: docs/papers/mixture_jdp.md#private-linopt; without:
    docs/papers/mixture_jdp.md#local.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        calibration: "tight": least noise, sharp widths; "paper": as published.
        counter: how running sums are released: tree, honaker, toeplitz or blt.
        model: "joint": a trusted curator; "local": every user adds her own noise.
        bonus_scale: c, multiplies the whole bonus; None for 1 (the theorem) as published, else 0.1.
        beta: failure probability; None for 1 / K (paper: 0.05).
        ridge: lambda.
        centre: regress V minus its midrange (tight only).
        statistic: "gram": a full Gram matrix per stage; "block": only its non-zero blocks.
        every: users between two releases.
    """

    name: ClassVar[str] = "private-linopt-vi"
    batch_parameter: ClassVar[str | None] = "every"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    epsilon: float
    delta: float = 1e-5
    calibration: Literal["tight", "paper"] = "tight"
    counter: Literal["tree", "honaker", "toeplitz", "blt"] = "tree"
    model: Literal["joint", "local"] = "joint"
    bonus_scale: float | None = None
    beta: float | None = None
    ridge: float = 1.0
    centre: bool = True
    statistic: Literal["gram", "block"] = "gram"
    every: int = 1

    def __post_init__(self) -> None:
        check_privacy(self.epsilon, self.delta, self.calibration)
        check_widths(self._scale(), self.beta, self.ridge, self.every)
        choice(self.counter, "counter", ("tree", "honaker", "toeplitz", "blt"))
        choice(self.model, "model", ("joint", "local"))
        choice(self.statistic, "statistic", ("gram", "block"))
        flag(self.centre, "centre")
        if self._paper and (self.counter != "tree" or self.statistic != "gram"):
            raise InvalidInput(
                'the paper uses the tree counter on full Gram matrices: leave counter at "tree" '
                'and statistic at "gram", or choose calibration tight'
            )

    @property
    def _paper(self) -> bool:
        return self.calibration == "paper"

    def _scale(self) -> float:
        if self.bonus_scale is not None:
            return self.bonus_scale
        return 1.0 if self._paper else 0.1

    def bind(self, task: Task) -> BoundAgent:
        """Noisy sums, a release after every ``every`` users."""
        self.require_family(task, "tabular")
        local = self.model == "local"
        shape = tight_shape(task, self.statistic, self.centre, public=local)
        if self._paper:
            shape = Shape(True, shape.rewards, False, False, "printed")
        statistic = ValueTargets(task, shape)
        if statistic.layout.size == 0:
            raise InvalidInput("with horizon 1 and known rewards there is nothing to learn")
        privatizer = self._privatizer(task, statistic)
        planner = self._planner(statistic, self._rule(task))
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))

    def _releases(self, task: Task) -> int:
        """Releases with data: none is made after the last batch (docs/papers/mixture_jdp.md#e5)."""
        return max(1, math.ceil(task.users / self.every) - 1)

    def _printed_std(self, task: Task) -> tuple[float, int]:
        """Published noise per unit norm, and the number of noises in a sum."""
        levels = 1 if self.model == "local" else max(1, math.ceil(math.log2(task.users)))
        noise = published.mixture_joint(task.horizon, self.epsilon, self.delta, levels)
        terms = task.users if self.model == "local" else levels
        return noise.scales["std per unit norm"], terms

    def _rule(self, task: Task) -> WidthRule:
        if self._paper:
            std, terms = self._printed_std(task)
            return PrintedJoint(self._scale(), 0.05 if self.beta is None else self.beta, std, terms)
        return TightWidths(self._scale(), self.beta, self.ridge, self._releases(task))

    def _privatizer(self, task: Task, statistic: ValueTargets) -> Privatizer[Any]:
        std = self._printed_std(task)[0] if self._paper else None
        if self.model == "local":
            return LocalShaped(
                statistic,
                task,
                std,
                requested_epsilon=float(self.epsilon),
                requested_delta=float(self.delta),
            )
        counter = strategy(self.counter, self._releases(task))
        batch = min(self.every, task.users)
        return CountedSums(
            statistic,
            task,
            counter,
            std,
            batch=batch,
            requested_epsilon=float(self.epsilon),
            requested_delta=float(self.delta),
        )

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate is not None:
            choice(self.rate, "rate", ("paper", "tight"))

    def _planner(self, statistic: ValueTargets, rule: WidthRule) -> Planner:
        return mirror_planner(statistic, rule, self.rate or self.calibration)
