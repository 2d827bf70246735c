"""Published learners of tables under joint privacy: PUCB, Private-UCB-VI and -PO, DP-UCBVI.

All count visits, rewards and transitions in one table per stage, through a continual counter, and
plan with a bonus for sampling and for noise. The papers add Laplace noise through a tree, which is
purely epsilon-private, and release after every user. Tight calibration takes a delta > 0 as well,
which makes the noise Gaussian: far less of it is needed. The papers leave beta open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tacit.agents import paper_constants
from tacit.agents.base import Ranges, TableAgent
from tacit.agents.published import Calibration, CountedAgent
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
from tacit.privacy.joint.batched import SumsKind
from tacit.privacy.joint.counted import CountedSums, counted_noise
from tacit.schedules import Every
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task


@dataclass(frozen=True)
class _JointTable(TableAgent, CountedAgent):
    """What the four share: their parameters, the statistic and the noise."""

    calibrations: ClassVar[Mapping[Calibration, str]] = {
        "corrected": "Laplace noise as published, raised to what (6H-2) cells and the nodes of one "
        "user need; bounds on the noise grow with it",
        "paper": "Laplace noise and bonus as published: about twice the epsilon that is asked for",
        "tight": "the least noise, Gaussian with a delta; caps H-h+1 and a small bonus scale",
    }
    ranges: ClassVar[Ranges] = {"delta": {"low": 0.0, "high": 1.0, "high_open": True}}
    default_scale: ClassVar[float] = 0.001
    page: ClassVar[str]
    """In docs/papers, where this algorithm is."""
    planner: ClassVar[type[JointTablePlanner]]

    delta: float = 0.0
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

    def _planner(self, task: Task, factor: float, **more: Any) -> JointTablePlanner:
        """The planner for noise that is so many times the published."""
        return self.planner(
            bonus_scale=self.scale,
            beta=self.beta,
            releases=self.releases(task),
            paper=self.published,
            **more,
        )

    def _published_scale(self, task: Task) -> float:
        levels = max(1, math.ceil(math.log2(task.users)))
        return paper_constants.tabular_joint(task.horizon, self.epsilon, levels)

    def _factor(self, scale: float, task: Task) -> float:
        """How many times the published noise this is; 1 where none is published."""
        return scale / self._published_scale(task) if self.published else 1.0

    def fitted(self, task: Task) -> BoundAgent:
        """Noisy counts of every stage, a release after every ``every`` users."""
        statistic = VisitCounts(task, pooled=False)
        counter, batch = strategy(self.counter, self.releases(task)), min(self.every, task.users)
        kind: SumsKind = "gaussian" if self.delta > 0.0 else "laplace"
        scale = self._published_scale(task) if self.published else None
        if scale is not None and self.corrected:
            least = counted_noise(statistic, task, counter, batch, *self.requested(), kind)
            scale = max(scale, least)
        privatizer = CountedSums(
            statistic, task, counter, scale, kind=kind, batch=batch, requested=self.requested()
        )
        planner = self._planner(task, self._factor(privatizer.scale, task))
        return BoundAgent(task, statistic, privatizer, planner, Every(self.every))

    def notes(self, task: Task) -> tuple[str, ...]:
        """How many visits the bonus asks for, and what was corrected."""
        bound = self.bind(task)
        assert isinstance(bound.planner, JointTablePlanner)
        assert isinstance(bound.privatizer, CountedSums)
        needed = bound.planner.break_even(task, bound.privatizer.law(1), float(task.horizon))
        when = "never" if needed is None else f"after {needed:,} visits"
        return (
            f"bonus scale {self.scale:g}: the bonus of a pair (s, a) at a stage falls below the "
            f"largest possible value H = {task.horizon} {when}; {task.users:,} users are planned",
            "every stage has tables of its own, as published, also where stages are declared alike",
            *self.raised(self._factor(bound.privatizer.scale, task), f"{self.page}#e1"),
        )


@dataclass(frozen=True)
class PUCB(_JointTable):
    """Private upper confidence bounds.

    Vietri et al. 2020, docs/papers/pucb.md.

    Attributes:
        epsilon: privacy asked for.
        delta: 0 for Laplace noise and pure privacy, as published; above 0 for Gaussian noise (tight
            only).
        calibration: "corrected", "paper" or "tight".
        counter: how running sums are released: tree, honaker, toeplitz, normalised or blt; Laplace
            noise goes through a tree.
        bonus_scale: c, multiplies every width; None for 1, the theorem (tight: 0.001).
        beta: failure probability.
        every: users between two releases.
    """

    name: ClassVar[str] = "pucb"
    page: ClassVar[str] = "docs/papers/pucb.md"
    planner: ClassVar[type[JointTablePlanner]] = PucbPlanner

    def _planner(self, task: Task, factor: float, **more: Any) -> JointTablePlanner:
        epsilon = self.epsilon / factor if self.published else None
        return super()._planner(task, factor, epsilon=epsilon, **more)


@dataclass(frozen=True)
class PrivateUcbVI(_JointTable):
    """Optimistic value iteration with shifted denominators.

    Chowdhury and Zhou 2022, docs/papers/private_ucb.md. Parameters are those of pucb.
    """

    name: ClassVar[str] = "private-ucb-vi"
    page: ClassVar[str] = "docs/papers/private_ucb.md"
    planner: ClassVar[type[JointTablePlanner]] = PrivateUcbPlanner


@dataclass(frozen=True)
class PrivateUcbPO(_JointTable):
    """Optimistic policy optimisation on the same values.

    Chowdhury and Zhou 2022, docs/papers/private_ucb.md#po. Parameters are those of pucb, and

    Attributes:
        rate: step sizes, "tight" or as in the "paper"; None follows the calibration.
    """

    name: ClassVar[str] = "private-ucb-po"
    page: ClassVar[str] = "docs/papers/private_ucb.md"
    planner: ClassVar[type[JointTablePlanner]] = PrivateUcbMirrorPlanner
    rate: Literal["paper", "tight"] | None = None

    def _planner(self, task: Task, factor: float, **more: Any) -> JointTablePlanner:
        rate = self.rate or ("paper" if self.published else "tight")
        return super()._planner(task, factor, rate=rate, **more)


@dataclass(frozen=True)
class DpUCBVI(_JointTable):
    """Bernstein bonuses on counts that were made consistent.

    Qiao and Wang 2023, docs/papers/dp_ucbvi.md. Parameters are those of pucb, with 0.0001 for
    the bonus scale of None (tight).
    """

    name: ClassVar[str] = "dp-ucbvi"
    page: ClassVar[str] = "docs/papers/dp_ucbvi.md"
    default_scale: ClassVar[float] = 0.0001
    planner: ClassVar[type[JointTablePlanner]] = DpUcbviPlanner
