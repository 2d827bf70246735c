"""Published learners of tables under joint privacy: PUCB, Private-UCB-VI and -PO, DP-UCBVI.

All count visits, rewards and transitions in one table per stage, through a continual counter, and
plan with a bonus for sampling and for noise. The papers add Laplace noise through a tree, which is
purely epsilon-private; a delta > 0 makes it Gaussian, which needs far less of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import Ranges, TableAgent
from tacit.agents.published import CountedAgent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.joint_tables import (
    DpUcbviPlanner,
    JointTablePlanner,
    PrivateUcbMirrorPlanner,
    PrivateUcbPlanner,
    PucbPlanner,
)
from tacit.privacy.counters import strategy
from tacit.privacy.joint.counted import CountedSums
from tacit.schedules import Every
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


@dataclass(frozen=True)
class _JointTable(TableAgent, CountedAgent):
    """What the four share: their parameters, the statistic and the noise."""

    ranges: ClassVar[Ranges] = {"delta": {"low": 0.0, "high": 1.0, "high_open": True}}
    default_scale: ClassVar[float] = 0.001
    planner: ClassVar[type[JointTablePlanner]]

    delta: float = 0.0
    calibration: Literal["tight", "paper"] = "tight"
    counter: Literal["tree", "honaker", "toeplitz", "normalised", "blt"] = "tree"
    bonus_scale: float | None = None
    beta: float = 0.1
    every: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published and self.delta > 0.0:
            raise InvalidInput(
                f"{self.name} as published adds Laplace noise and is purely epsilon-private: leave "
                "delta out, or choose calibration tight"
            )
        if self.delta == 0.0 and self.counter != "tree":
            raise InvalidInput(
                f"without a delta the noise is Laplace, which goes through a tree, not through "
                f"{self.counter}: leave counter out, or give a delta > 0"
            )

    def _planner(self, task: Task, **more: Any) -> JointTablePlanner:
        return self.planner(
            bonus_scale=self.scale,
            beta=self.beta,
            releases=self.releases(task),
            paper=self.published,
            **more,
        )

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy counts of every stage, a release after every ``every`` users."""
        statistic = VisitCounts(task, pooled=False)
        scale = None
        if self.published:
            levels = max(1, math.ceil(math.log2(task.users)))
            scale = paper_constants.tabular_joint(task.horizon, self.epsilon, levels)
        privatizer = CountedSums(
            statistic,
            task,
            strategy(self.counter, self.releases(task)),
            scale,
            kind="gaussian" if self.delta > 0.0 else "laplace",
            batch=min(self.every, task.users),
            requested=self.requested(),
        )
        return BoundAgent(task, statistic, privatizer, self._planner(task), Every(self.every))

    def notes(self, task: Task) -> tuple[str, ...]:
        """How many visits the bonus asks for."""
        bound = self.bind(task)
        assert isinstance(bound.planner, JointTablePlanner)
        needed = bound.planner.break_even(task, bound.privatizer.law(1), float(task.horizon))
        when = "never" if needed is None else f"after {needed:,} visits"
        return (
            f"bonus scale {self.scale:g}: the bonus of a pair (s, a) at a stage falls below the "
            f"largest possible value H = {task.horizon} {when}; {task.users:,} users are planned",
            "every stage has tables of its own, as published, also where stages are declared alike",
        )


@dataclass(frozen=True)
class PUCB(_JointTable):
    """Private upper confidence bounds.

    Vietri et al. 2020, docs/papers/pucb.md.

    Attributes:
        epsilon: privacy asked for.
        delta: 0 for Laplace noise and pure privacy, as published; above 0 for Gaussian noise.
        calibration: "tight": least noise, and a bonus for the noise that is added; "paper": as
            published.
        counter: how running sums are released: tree, honaker, toeplitz, normalised or blt; Laplace
            noise goes through a tree.
        bonus_scale: c, multiplies every width; None for 0.001 (paper: 1, the theorem).
        beta: failure probability.
        every: users between two releases.
    """

    name: ClassVar[str] = "pucb"
    planner: ClassVar[type[JointTablePlanner]] = PucbPlanner

    def _planner(self, task: Task, **more: Any) -> JointTablePlanner:
        return super()._planner(task, epsilon=self.epsilon if self.published else None, **more)


@dataclass(frozen=True)
class PrivateUcbVI(_JointTable):
    """Optimistic value iteration with shifted denominators.

    Chowdhury and Zhou 2022, docs/papers/private_ucb.md. Parameters are those of pucb.
    """

    name: ClassVar[str] = "private-ucb-vi"
    planner: ClassVar[type[JointTablePlanner]] = PrivateUcbPlanner


@dataclass(frozen=True)
class PrivateUcbPO(_JointTable):
    """Optimistic policy optimisation on the same values.

    Chowdhury and Zhou 2022, docs/papers/private_ucb.md#po. Parameters are those of pucb, and

    Attributes:
        rate: step sizes, "tight" or as in the "paper"; None follows the calibration.
    """

    name: ClassVar[str] = "private-ucb-po"
    planner: ClassVar[type[JointTablePlanner]] = PrivateUcbMirrorPlanner
    rate: Literal["paper", "tight"] | None = None

    def _planner(self, task: Task, **more: Any) -> JointTablePlanner:
        return super()._planner(task, rate=self.rate or self.calibration, **more)


@dataclass(frozen=True)
class DpUCBVI(_JointTable):
    """Bernstein bonuses on counts that were made consistent.

    Qiao and Wang 2023, docs/papers/dp_ucbvi.md. Parameters are those of pucb, with 0.0001 for
    the bonus scale of None.
    """

    name: ClassVar[str] = "dp-ucbvi"
    default_scale: ClassVar[float] = 0.0001
    planner: ClassVar[type[JointTablePlanner]] = DpUcbviPlanner
