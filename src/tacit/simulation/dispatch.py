"""Which run serves an agent faster than the driver: one table, by the exact types of its parts.

A subclass, a part of the user's own or an oracle that no row knows goes through the stepwise
driver. Planner and schedule of a segment run are free: ``learner.Learner`` calls them.
"""

from __future__ import annotations

from inspect import isfunction
from typing import Any, NamedTuple

from tacit.arrays import IntArray
from tacit.learner import BoundAgent
from tacit.planners.lsvi import LsviPlanner, LsviPlusPlanner
from tacit.planners.obi import ObiPlanner, UcbViPlanner
from tacit.planners.posterior import PosteriorPlanner
from tacit.planners.tacit_local import DirectionalPlanner, NoisyPosteriorPlanner
from tacit.planners.vtr import ValueTargetedPlanner
from tacit.privacy import Exact
from tacit.privacy.curator.curator import Curator
from tacit.privacy.joint.batched import BatchSums
from tacit.privacy.joint.counted import CountedSums
from tacit.privacy.local.additive import LocalAdditive
from tacit.privacy.local.one_cell import OneCell
from tacit.privacy.local.one_number import OneNumber
from tacit.privacy.local.response import LocalResponse
from tacit.privacy.local.weighted import LocalWeighted
from tacit.privacy.shuffle.shuffled import Shuffled
from tacit.schedules import CappedBatches, Every, Geometric, every_user
from tacit.simulation.attendance import AttendanceTrace
from tacit.simulation.loops.one_cell import OneCellRun
from tacit.simulation.loops.switching import SwitchingRun
from tacit.simulation.loops.value_targeted import ValueTargetedRun
from tacit.simulation.loops.visits import VisitRun
from tacit.simulation.runs.base import Run
from tacit.simulation.runs.segment import ReportRun, SegmentRun
from tacit.simulation.users import FAMILIES
from tacit.statistics.counts import JointCounts, Nothing, PolicyTransitions, VisitCounts
from tacit.statistics.first_visits import FirstReturns, FirstVisits
from tacit.statistics.linear import CuratedTransitions, LinearSums
from tacit.statistics.lq import ControlMoments, InstrumentedResponses
from tacit.statistics.multi_target import MultiTargets
from tacit.statistics.norm_budget import NormBudget
from tacit.statistics.one_step import EachStep, OneStep
from tacit.statistics.search import RoundedReturn, WindowedReturn
from tacit.statistics.targets import ValueTargets

Kinds = tuple[Any, ...]
ANY: Kinds = ()


class DispatchRow(NamedTuple):
    """A run, and the parts it serves: types, or the function itself where a schedule is one."""

    run: Any
    statistics: Kinds
    privatizers: Kinds
    planners: Kinds = ANY
    schedules: Kinds = ANY

    def serves(self, agent: BoundAgent) -> bool:
        """Whether every part is of a kind in this row, and the loop knows what is inside."""
        schedule = agent.schedule if isfunction(agent.schedule) else type(agent.schedule)
        parts = (type(agent.statistic), type(agent.privatizer), type(agent.planner), schedule)
        wanted = self[1:]
        if any(kinds and kind not in kinds for kind, kinds in zip(parts, wanted, strict=True)):
            return False
        return issubclass(self.run, SegmentRun) or bool(self.run.knows(agent))


COUNTS, TARGETS, CURATED = (VisitCounts,), (ValueTargets,), (CuratedTransitions,)
FIRST = (FirstReturns, FirstVisits)
MIXTURES = (JointCounts, MultiTargets, NormBudget, PolicyTransitions, ValueTargets)
CONTROL = (ControlMoments, InstrumentedResponses, NormBudget)
CELLS = (NoisyPosteriorPlanner, DirectionalPlanner)
EACH = (every_user, Every)
SWITCHING = (LsviPlanner, LsviPlusPlanner)

TABLE = (
    DispatchRow(VisitRun, COUNTS, (Exact,), (UcbViPlanner,), EACH),
    DispatchRow(VisitRun, COUNTS, (Exact, LocalAdditive), (PosteriorPlanner,), EACH),
    DispatchRow(VisitRun, COUNTS, (Exact, LocalAdditive, LocalResponse), (ObiPlanner,), EACH),
    DispatchRow(OneCellRun, (OneStep,), (OneCell,), CELLS, (CappedBatches,)),
    DispatchRow(
        OneCellRun, (OneStep, EachStep), (Shuffled,), (DirectionalPlanner,), (CappedBatches,)
    ),
    DispatchRow(
        ValueTargetedRun, TARGETS, (Exact, LocalWeighted), (ValueTargetedPlanner,), (Every,)
    ),
    DispatchRow(SwitchingRun, CURATED, (Exact, Curator), SWITCHING, (every_user,)),
    DispatchRow(ReportRun, (RoundedReturn,), (OneNumber,)),
    DispatchRow(SegmentRun, (*FIRST, *MIXTURES), (Exact, CountedSums, LocalWeighted)),
    DispatchRow(SegmentRun, (*COUNTS, LinearSums), (CountedSums,)),
    DispatchRow(SegmentRun, CURATED, (Curator,), ANY, (CappedBatches, Geometric)),
    DispatchRow(SegmentRun, CONTROL, (Exact, CountedSums, BatchSums)),
    DispatchRow(SegmentRun, (WindowedReturn,), (Exact, BatchSums)),
    DispatchRow(SegmentRun, (Nothing,), (Exact,)),
)
"""The first row that serves an agent is taken."""


def compiled_run(
    problem: object,
    agent: BoundAgent,
    root: int,
    run: int,
    checkpoints: IntArray,
    people: AttendanceTrace | None = None,
) -> Run | None:
    """The fastest run of this problem and agent, or None if only the driver knows them."""
    if type(problem) not in FAMILIES:
        return None
    for row in TABLE:
        if row.serves(agent):
            compiled: Run = row.run(problem, agent, root, run, checkpoints, people)
            return compiled
    return None
