"""Reference agents: the floor and the ceiling of every plot, and two plain learners of control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import CheckedAgent, Ranges
from tacit.learner import BoundAgent
from tacit.planners import Planner
from tacit.planners.references import (
    CertaintyPlanner,
    IdlePlanner,
    OptimalPlanner,
    ThompsonPlanner,
    UniformPlanner,
)
from tacit.privacy import Exact
from tacit.schedules import once
from tacit.statistics.counts import Nothing
from tacit.statistics.lq import ControlMoments
from tacit.task.task import Task


def _without_data(task: Task, planner: Planner) -> BoundAgent:
    statistic = Nothing()
    return BoundAgent(task, statistic, Exact(statistic, task), planner, once)


@dataclass(frozen=True)
class Uniform(CheckedAgent):
    """Plays every action with equal probability, learns nothing, collects nothing."""

    name: ClassVar[str] = "uniform"
    masks: ClassVar[bool] = True
    models: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[frozenset[str] | None] = frozenset()

    def bind(self, task: Task) -> BoundAgent:
        """One uniform policy for everybody."""
        self.require_family(task, "tabular")
        return _without_data(task, UniformPlanner())


@dataclass(frozen=True)
class Optimal(CheckedAgent):
    """Plays the optimal policy of the true problem, which is revealed to it."""

    name: ClassVar[str] = "optimal"
    masks: ClassVar[bool] = True
    models: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({"reward", "transitions"})
    uses: ClassVar[frozenset[str] | None] = frozenset()

    def bind(self, task: Task) -> BoundAgent:
        """One optimal policy for everybody."""
        self.require_family(task, "tabular")
        return _without_data(task, OptimalPlanner())


def every_tenth(served: int) -> int:
    """Plan anew when a tenth more users were served: geometric times of ratio 1.1."""
    return max(1, served // 10)


@dataclass(frozen=True)
class DoNothing(CheckedAgent):
    """Plays u = 0 and collects nothing: what a learner must beat to be worth anything."""

    name: ClassVar[str] = "do-nothing"
    families: ClassVar[tuple[str, ...]] = ("control",)
    models: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[frozenset[str] | None] = frozenset()

    def bind(self, task: Task) -> BoundAgent:
        """One zero policy for everybody."""
        self.require_family(task, "lq")
        return _without_data(task, IdlePlanner())


@dataclass(frozen=True)
class CertaintyEquivalence(CheckedAgent):
    """Ridge regression and its optimal gains, with a little excitation. Not private.

    Attributes:
        ridge: weight of the ridge term.
        excitation: amplitude for the first users; it decays with the cube root of their number.
    """

    name: ClassVar[str] = "certainty-equivalence"
    families: ClassVar[tuple[str, ...]] = ("control",)
    ranges: ClassVar[Ranges] = {"excitation": {"low": 0.0, "high": 1.0}}
    needs: ClassVar[frozenset[str]] = frozenset({"start"})
    uses: ClassVar[frozenset[str] | None] = frozenset({"noise"})
    ridge: float = 0.1
    excitation: float = 0.1

    def bind(self, task: Task) -> BoundAgent:
        """Exact moments, replanned at geometric times."""
        self.require_family(task, "lq")
        return _not_private(task, CertaintyPlanner(float(self.ridge), float(self.excitation)))


@dataclass(frozen=True)
class Thompson(CheckedAgent):
    """Thompson sampling on exact moments. Not private.

    Attributes:
        ridge: weight of the ridge term.
    """

    name: ClassVar[str] = "thompson"
    families: ClassVar[tuple[str, ...]] = ("control",)
    needs: ClassVar[frozenset[str]] = frozenset({"start"})
    uses: ClassVar[frozenset[str] | None] = frozenset({"noise"})
    ridge: float = 0.1

    def bind(self, task: Task) -> BoundAgent:
        """Exact moments, a fresh draw at geometric times."""
        self.require_family(task, "lq")
        return _not_private(task, ThompsonPlanner(float(self.ridge)))


def _not_private(task: Task, planner: Planner) -> BoundAgent:
    statistic = ControlMoments(task)
    return BoundAgent(task, statistic, Exact(statistic, task), planner, every_tenth)
