"""Reference agents: the floor and the ceiling of every plot, and two plain learners of control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.agents.base import ControlAgent, Ranges, TableAgent, not_private
from tacit.learner import BoundAgent
from tacit.planners.references import (
    CertaintyPlanner,
    IdlePlanner,
    OptimalPlanner,
    ThompsonPlanner,
    UniformPlanner,
)
from tacit.schedules import once
from tacit.statistics.counts import Nothing
from tacit.statistics.lq import ControlMoments
from tacit.task.task import Task


@dataclass(frozen=True)
class Uniform(TableAgent):
    """Plays every action with equal probability, learns nothing, collects nothing."""

    name: ClassVar[str] = "uniform"
    models: ClassVar[tuple[str, ...]] = ()

    def fitted(self, task: Task) -> BoundAgent:
        """One uniform policy for everybody."""
        return not_private(task, Nothing(), UniformPlanner(), once)


@dataclass(frozen=True)
class Optimal(TableAgent):
    """Plays the optimal policy of the true problem, which is revealed to it."""

    name: ClassVar[str] = "optimal"
    models: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset({"reward", "transitions"})

    def fitted(self, task: Task) -> BoundAgent:
        """One optimal policy for everybody."""
        return not_private(task, Nothing(), OptimalPlanner(), once)


def every_tenth(served: int) -> int:
    """Plan anew when a tenth more users were served: geometric times of ratio 1.1."""
    return max(1, served // 10)


@dataclass(frozen=True)
class DoNothing(ControlAgent):
    """Plays u = 0 and collects nothing: what a learner must beat to be worth anything."""

    name: ClassVar[str] = "do-nothing"
    models: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset()
    uses: ClassVar[frozenset[str] | None] = frozenset()

    def fitted(self, task: Task) -> BoundAgent:
        """One zero policy for everybody."""
        return not_private(task, Nothing(), IdlePlanner(), once)


@dataclass(frozen=True)
class CertaintyEquivalence(ControlAgent):
    """Ridge regression and its optimal gains, with a little excitation. Not private.

    Attributes:
        ridge: weight of the ridge term.
        excitation: amplitude for the first users; it decays with the cube root of their number.
    """

    name: ClassVar[str] = "certainty-equivalence"
    ranges: ClassVar[Ranges] = {"excitation": {"low": 0.0, "high": 1.0}}
    ridge: float = 0.1
    excitation: float = 0.1

    def fitted(self, task: Task) -> BoundAgent:
        """Exact moments, replanned at geometric times."""
        planner = CertaintyPlanner(float(self.ridge), float(self.excitation))
        return not_private(task, ControlMoments(task), planner, every_tenth)


@dataclass(frozen=True)
class Thompson(ControlAgent):
    """Thompson sampling on exact moments. Not private.

    Attributes:
        ridge: weight of the ridge term.
    """

    name: ClassVar[str] = "thompson"
    ridge: float = 0.1

    def fitted(self, task: Task) -> BoundAgent:
        """Exact moments, a fresh draw at geometric times."""
        planner = ThompsonPlanner(float(self.ridge))
        return not_private(task, ControlMoments(task), planner, every_tenth)
