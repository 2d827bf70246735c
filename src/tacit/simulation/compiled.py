"""Which run serves an agent faster than the driver: one table, by the exact types of its parts.

A subclass, a part of the user's own or an oracle that no row knows goes through the stepwise
driver. Planner and schedule of a segment run are free: ``driver.Learner`` calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from typing import Any, NamedTuple

from tacit.arrays import IntArray
from tacit.driver import BoundAgent, CappedBatches, Every, Geometric, every_user
from tacit.planners import (
    DirectionalPlanner,
    NoisyPosteriorPlanner,
    ObiPlanner,
    PosteriorPlanner,
    UcbViPlanner,
)
from tacit.planners.lsvi import LsviPlanner
from tacit.planners.lsvi_plus import LsviPlusPlanner
from tacit.planners.targeted import ValueTargetedPlanner
from tacit.privacy import Exact
from tacit.privacy.curator import Curator
from tacit.privacy.joint import BatchSums, CountedSums
from tacit.privacy.local import LocalAdditive, LocalResponse, LocalShaped, OneCell
from tacit.privacy.shuffle import Shuffled
from tacit.simulation import one_cell, switching, value_targeted
from tacit.simulation.runs import Run, SegmentRun
from tacit.simulation.users import FAMILIES
from tacit.simulation.visits import VisitRun
from tacit.statistics import (
    ControlMoments,
    EachStep,
    InstrumentedResponses,
    Nothing,
    OneStep,
    VisitCounts,
)
from tacit.statistics.curated import CuratedTransitions
from tacit.statistics.joint_counts import JointCounts
from tacit.statistics.linear import LinearSums
from tacit.statistics.multi_target import MultiTargets
from tacit.statistics.targets import ValueTargets
from tacit.statistics.transitions import PolicyTransitions

Kinds = tuple[Any, ...]
ANY: Kinds = ()


class Row(NamedTuple):
    """A run, and the parts it serves: types, or the function itself where a schedule is one."""

    run: Any
    statistics: Kinds
    privatizers: Kinds
    planners: Kinds = ANY
    schedules: Kinds = ANY
    knows: Callable[[BoundAgent], bool] = lambda agent: True

    def serves(self, agent: BoundAgent) -> bool:
        """Whether every part is of a kind in this row."""
        schedule = agent.schedule if isfunction(agent.schedule) else type(agent.schedule)
        found = (type(agent.statistic), type(agent.privatizer), type(agent.planner), schedule)
        return self.knows(agent) if all(map(_among, found, self[1:5])) else False


def _among(kind: Any, kinds: Kinds) -> bool:
    return kind in kinds or kinds is ANY


TABLE = (
    Row(VisitRun, (VisitCounts,), (Exact,), (UcbViPlanner,), (every_user,)),
    Row(VisitRun, (VisitCounts,), (Exact, LocalAdditive), (PosteriorPlanner,), (every_user,)),
    Row(
        VisitRun,
        (VisitCounts,),
        (Exact, LocalAdditive, LocalResponse),
        (ObiPlanner,),
        (every_user,),
    ),
    Row(
        one_cell.OneCellRun,
        (OneStep,),
        (OneCell,),
        (NoisyPosteriorPlanner, DirectionalPlanner),
        (CappedBatches,),
        one_cell.knows,
    ),
    Row(
        one_cell.OneCellRun,
        (OneStep, EachStep),
        (Shuffled,),
        (DirectionalPlanner,),
        (CappedBatches,),
        one_cell.knows,
    ),
    Row(
        value_targeted.ValueTargetedRun,
        (ValueTargets,),
        (Exact, LocalShaped),
        (ValueTargetedPlanner,),
        (Every,),
        value_targeted.knows,
    ),
    Row(
        switching.SwitchingRun,
        (CuratedTransitions,),
        (Exact, Curator),
        (LsviPlanner, LsviPlusPlanner),
        (every_user,),
        switching.knows,
    ),
    Row(
        SegmentRun,
        (JointCounts, MultiTargets, PolicyTransitions, ValueTargets),
        (Exact, CountedSums, LocalShaped),
    ),
    Row(SegmentRun, (LinearSums,), (CountedSums,)),
    Row(SegmentRun, (CuratedTransitions,), (Curator,), ANY, (CappedBatches, Geometric)),
    Row(SegmentRun, (ControlMoments, InstrumentedResponses), (Exact, CountedSums, BatchSums)),
    Row(SegmentRun, (Nothing,), (Exact,)),
)


def compiled_run(
    problem: object, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
) -> Run | None:
    """The fastest run of this problem and agent, or None if only the driver knows them."""
    if type(problem) not in FAMILIES:
        return None
    for row in TABLE:
        if row.serves(agent):
            found: Run = row.run(problem, agent, root, run, checkpoints)
            return found
    return None
