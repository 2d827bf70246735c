"""Published learners of tables under joint privacy: PUCB, Private-UCB-VI and -PO, DP-UCBVI.

All count visits, rewards and transitions in one table per stage, through a continual counter, and
plan with a bonus for sampling and for noise. The papers add Laplace noise through a tree, which is
purely epsilon-private; a delta > 0 makes it Gaussian, which needs far less of it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, TypedDict

from tacit.agents import paper_constants
from tacit.agents.base import CheckedAgent, Ranges
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


class _Shared(TypedDict):
    """What all of their planners take."""

    bonus_scale: float
    beta: float
    releases: int
    paper: bool


@dataclass(frozen=True)
class _JointTable(CheckedAgent):
    """What the four share: their parameters, the statistic and the noise."""

    masks: ClassVar[bool] = True
    models: ClassVar[tuple[str, ...]] = ("joint",)
    uses: ClassVar[frozenset[str] | None] = frozenset()
    ranges: ClassVar[Ranges] = {"delta": {"low": 0.0, "high": 1.0, "high_open": True}}
    batch_parameter: ClassVar[str | None] = "every"
    default_scale: ClassVar[float]
    """Bonus scale of tight calibration, unless chosen."""

    epsilon: float
    delta: float = 0.0
    calibration: Literal["tight", "paper"] = "tight"
    counter: Literal["tree", "honaker", "toeplitz", "normalised", "blt"] = "tree"
    bonus_scale: float | None = None
    beta: float = 0.1
    every: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._paper and self.delta > 0.0:
            raise InvalidInput(
                f"{self.name} as published adds Laplace noise and is purely epsilon-private: leave "
                "delta out, or choose calibration tight"
            )
        if self.delta == 0.0 and self.counter != "tree":
            raise InvalidInput(
                f"without a delta the noise is Laplace, which goes through a tree, not through "
                f"{self.counter}: leave counter out, or give a delta > 0"
            )

    @property
    def _paper(self) -> bool:
        return self.calibration == "paper"

    @property
    def _scale(self) -> float:
        if self.bonus_scale is not None:
            return self.bonus_scale
        return 1.0 if self._paper else self.default_scale

    def _releases(self, task: Task) -> int:
        return max(1, math.ceil(task.users / self.every) - 1)

    def _shared(self, task: Task) -> _Shared:
        return _Shared(
            bonus_scale=self._scale,
            beta=self.beta,
            releases=self._releases(task),
            paper=self._paper,
        )

    @abstractmethod
    def _planner(self, task: Task) -> JointTablePlanner: ...

    def bind(self, task: Task) -> BoundAgent:
        """Noisy counts of every stage, a release after every ``every`` users."""
        self.require_family(task, "tabular")
        statistic = VisitCounts(task, pooled=False)
        scale = None
        if self._paper:
            levels = max(1, math.ceil(math.log2(task.users)))
            scale = paper_constants.tabular_joint(task.horizon, self.epsilon, levels)
        privatizer = CountedSums(
            statistic,
            task,
            strategy(self.counter, self._releases(task)),
            scale,
            kind="gaussian" if self.delta > 0.0 else "laplace",
            batch=min(self.every, task.users),
            **self.requested(),
        )
        return BoundAgent(task, statistic, privatizer, self._planner(task), Every(self.every))

    def notes(self, task: Task) -> tuple[str, ...]:
        """How many visits the bonus asks for."""
        bound = self.bind(task)
        assert isinstance(bound.planner, JointTablePlanner)
        needed = bound.planner.break_even(task, bound.privatizer.law(1), float(task.horizon))
        said = "never" if needed is None else f"after {needed:,} visits"
        return (
            f"bonus scale {self._scale:g}: the bonus of a pair (s, a) at a stage falls below the "
            f"largest possible value H = {task.horizon} {said}; {task.users:,} users are planned",
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
    default_scale: ClassVar[float] = 0.001

    def _planner(self, task: Task) -> PucbPlanner:
        epsilon = self.epsilon if self._paper else None
        return PucbPlanner(**self._shared(task), epsilon=epsilon)


@dataclass(frozen=True)
class PrivateUcbVI(_JointTable):
    """Optimistic value iteration with shifted denominators.

    Chowdhury and Zhou 2022, docs/papers/private_ucb.md. Parameters are those of pucb.
    """

    name: ClassVar[str] = "private-ucb-vi"
    default_scale: ClassVar[float] = 0.001

    def _planner(self, task: Task) -> PrivateUcbPlanner:
        return PrivateUcbPlanner(**self._shared(task))


@dataclass(frozen=True)
class PrivateUcbPO(_JointTable):
    """Optimistic policy optimisation on the same values.

    Chowdhury and Zhou 2022, docs/papers/private_ucb.md#po. Parameters are those of pucb, and

    Attributes:
        rate: step sizes, "tight" or as in the "paper"; None follows the calibration.
    """

    name: ClassVar[str] = "private-ucb-po"
    default_scale: ClassVar[float] = 0.001
    rate: Literal["paper", "tight"] | None = None

    def _planner(self, task: Task) -> PrivateUcbMirrorPlanner:
        rate = self.rate or self.calibration
        return PrivateUcbMirrorPlanner(**self._shared(task), rate=rate)


@dataclass(frozen=True)
class DpUCBVI(_JointTable):
    """Bernstein bonuses on counts that were made consistent.

    Qiao and Wang 2023, docs/papers/dp_ucbvi.md. Parameters are those of pucb, with 0.0001 for
    the bonus scale of None.
    """

    name: ClassVar[str] = "dp-ucbvi"
    default_scale: ClassVar[float] = 0.0001

    def _planner(self, task: Task) -> DpUcbviPlanner:
        return DpUcbviPlanner(**self._shared(task))
