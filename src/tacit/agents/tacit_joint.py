"""tacit-joint: the joint guarantee, spent well."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from tacit.agents.base import CheckedAgent, Ranges
from tacit.driver import BoundAgent, Geometric
from tacit.errors import InvalidInput
from tacit.planners import Planner
from tacit.planners.tacit_joint import JointCountsPlanner, VFreePlanner
from tacit.privacy import accounting
from tacit.privacy.counters import strategy
from tacit.privacy.joint.counted import CountedSums
from tacit.statistics import Statistic
from tacit.statistics.counts import JointCounts
from tacit.statistics.multi_target import MultiTargets
from tacit.task import Task

PATIENCE = 30.0
"""First release after this many users over mu: before that noise drowns everything."""

GROWTH = {"mixture": 1.25, "table": 1.1}
"""Growth of the number of users between releases."""


@dataclass(frozen=True)
class TacitJoint(CheckedAgent):
    """V-free sums through a continual counter, on a public geometric schedule.

    The sums are in docs/papers/mixture_jdp.md#b1, the schedule in docs/papers/mixture_jdp.md#b5.
    Linear mixtures are learned by regression on all next states at once, with structural clipping
    and widths that know the noise; tables by counts and posterior sampling that knows the noise.
    Stages are added up where the task is declared homogeneous. Regret has no proof; privacy does
    not depend on it.

    Attributes:
        epsilon: privacy asked for.
        delta: asked for.
        counter: how running sums are released: tree, honaker, toeplitz or blt.
        bonus_scale: c, multiplies the widths of mixtures; 1 is the theorem.
        width: share of the released noise that is drawn again for tables; 1 is the posterior.
        reward_share: share of the budget for the rewards of tables.
        beta: failure probability of the widths.
        ridge: lambda.
        first: users before the first release; None for 30 / mu (times sqrt(H) with one table per
            stage), at most K / 10.
        growth: of the number of users from release to release; None for 1.25 (mixtures) or 1.1.
        least: users between two releases at least; noise is calibrated for the schedule it gives.
    """

    name: ClassVar[str] = "tacit-joint"
    masks: ClassVar[bool] = True
    families: ClassVar[tuple[str, ...]] = ("tabular", "mixture")
    models: ClassVar[tuple[str, ...]] = ("joint",)
    ranges: ClassVar[Ranges] = {
        "width": {"low": 0.0, "high": 1e3},
        "reward_share": {"low": 0.001, "high": 0.999},
        "first": {"low": 1},
        "growth": {"low": 1.001, "high": 1e6},
        "least": {"low": 1},
    }
    batch_parameter: ClassVar[str | None] = "least"
    uses: ClassVar[frozenset[str] | None] = frozenset({"reward"})
    epsilon: float
    delta: float = 1e-5
    counter: Literal["tree", "honaker", "toeplitz", "blt"] = "toeplitz"
    bonus_scale: float = 0.1
    width: float = 0.3
    reward_share: float = 0.2
    beta: float = 0.05
    ridge: float = 1.0
    first: int | None = None
    growth: float | None = None
    least: int = 1

    def schedule(self, task: Task) -> Geometric:
        """When to release: a function of K, epsilon and delta only."""
        first = self.first
        if first is None:
            mu = accounting.gaussian_mu(self.epsilon, self.delta)
            stages = 1.0 if task.homogeneous else math.sqrt(task.horizon)
            first = int(max(1.0, min(PATIENCE * stages / mu, task.users / 10)))
        kind = "mixture" if "features" in task.known else "table"
        growth = self.growth or GROWTH[kind]
        return Geometric(max(first, self.least), growth, self.least)

    def bind(self, task: Task) -> BoundAgent:
        """Regression if the task reveals features, else counts."""
        self.require_family(task, "tabular")
        schedule = self.schedule(task)
        releases = max(1, len(schedule.times(task.users)))
        statistic: Statistic
        planner: Planner
        if "features" in task.known:
            statistic = sums = MultiTargets(task)
            planner = VFreePlanner(
                geometry=sums.geometry,
                scales=sums.scales,
                columns=sums.columns,
                bonus_scale=self.bonus_scale,
                beta=self.beta,
                ridge=self.ridge,
                releases=releases,
            )
        else:
            statistic = counts = JointCounts(task, self.reward_share)
            planner = JointCountsPlanner(
                transition_scale=counts.scales["transitions"],
                reward_scale=counts.scales["reward"],
                width=self.width,
            )
        if statistic.layout.size == 0:
            raise InvalidInput("with horizon 1 and known rewards there is nothing to learn")
        counter, batch = strategy(self.counter, releases), schedule.largest_batch(task.users)
        privatizer = CountedSums(statistic, task, counter, batch=batch, **self.requested())
        return BoundAgent(task, statistic, privatizer, planner, schedule)
