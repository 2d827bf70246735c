"""Reference agents for linear systems: the floor, and two that are not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import Agent
from tacit.driver import BoundAgent, never_again
from tacit.planners.base import Planner
from tacit.planners.lq_reference import CertaintyPlanner, IdlePlanner, ThompsonPlanner
from tacit.privacy import Exact
from tacit.statistics import ControlMoments, Nothing
from tacit.task import Task
from tacit.validate import number


def every_tenth(served: int) -> int:
    """Plan anew when a tenth more users were served: geometric times of ratio 1.1."""
    return max(1, served // 10)


@dataclass(frozen=True)
class DoNothing(Agent):
    """Plays u = 0 and collects nothing: what a learner must beat to be worth anything."""

    name: ClassVar[str] = "do-nothing"
    uses: ClassVar[frozenset[str] | None] = frozenset()

    def bind(self, task: Task) -> BoundAgent:
        """One zero policy for everybody."""
        self.require_family(task, "lq")
        statistic = Nothing()
        return BoundAgent(task, statistic, Exact(statistic, task), IdlePlanner(), never_again)


@dataclass(frozen=True)
class CertaintyEquivalence(Agent):
    """Ridge regression and its optimal gains, with a little excitation. Not private.

    Attributes:
        ridge: weight of the ridge term.
        excitation: amplitude for the first users; it decays with the cube root of their number.
    """

    name: ClassVar[str] = "certainty-equivalence"
    needs: ClassVar[frozenset[str]] = frozenset({"start"})
    uses: ClassVar[frozenset[str] | None] = frozenset({"noise"})
    ridge: float = 0.1
    excitation: float = 0.1

    def __post_init__(self) -> None:
        number(self.ridge, "ridge", low=1e-9)
        number(self.excitation, "excitation", low=0.0, high=1.0)

    def bind(self, task: Task) -> BoundAgent:
        """Exact moments, replanned at geometric times."""
        self.require_family(task, "lq")
        return _not_private(task, CertaintyPlanner(float(self.ridge), float(self.excitation)))


@dataclass(frozen=True)
class Thompson(Agent):
    """Thompson sampling on exact moments. Not private.

    Attributes:
        ridge: weight of the ridge term.
    """

    name: ClassVar[str] = "thompson"
    needs: ClassVar[frozenset[str]] = frozenset({"start"})
    uses: ClassVar[frozenset[str] | None] = frozenset({"noise"})
    ridge: float = 0.1

    def __post_init__(self) -> None:
        number(self.ridge, "ridge", low=1e-9)

    def bind(self, task: Task) -> BoundAgent:
        """Exact moments, a fresh draw at geometric times."""
        self.require_family(task, "lq")
        return _not_private(task, ThompsonPlanner(float(self.ridge)))


def _not_private(task: Task, planner: Planner) -> BoundAgent:
    statistic = ControlMoments(task)
    return BoundAgent(task, statistic, Exact(statistic, task), planner, every_tenth)
