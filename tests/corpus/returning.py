"""Mistakes about people who come back, and the checks that find them.

Checks on rows use no noise: rows show what is in them, and a bound that must hold surely is
compared with what two lives of one person make of them.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import tacit
from tacit import Participation
from tacit.agents import Agent
from tacit.arrays import Array, Arrays, IntArray
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.grid import GRID
from tacit.learner import BoundAgent, Learner
from tacit.planners.base import next_version
from tacit.policies.tabular import uniform_policy
from tacit.privacy.base import Report
from tacit.privacy.counters.fading import Fading
from tacit.privacy.joint.counted import CountedSums
from tacit.privacy.noise import GridLaw, SimulatedNoise
from tacit.publication import Publication
from tacit.schedules import Every
from tacit.simulation import resume
from tacit.simulation.attendance import attend, keep_to
from tacit.simulation.runs.base import Run
from tacit.simulation.runs.stepwise import StepwiseRun
from tacit.statistics.base import Relation
from tacit.statistics.first_visits import FirstVisits
from tacit.statistics.norm_budget import NormBudget
from tacit.streams import planner_streams
from tacit.task.task import Task
from tacit.trajectory import Lives, Trajectory

# ---- whole agents: a pair is counted in every participation -------------------------------------


def forgetful(statistic: Any) -> Any:
    """Every participation begins with a blank memory, as if somebody new came."""

    class Forgetful(type(statistic)):  # type: ignore[misc]
        def add_people(self, lives, publication, coins, who, out) -> None:  # type: ignore[no-untyped-def]
            who.taught[who.rows], who.spent[who.rows] = 0, 0
            super().add_people(lives, publication, coins, who, out)

    broken = copy.copy(statistic)
    broken.__class__ = Forgetful
    return broken


@dataclass
class ForgetfulAgent(Agent):
    """An agent that claims to bound lives, and bounds participations."""

    name: ClassVar[str] = "forgetful"
    right: Agent

    def bind(self, task: Task) -> BoundAgent:
        """As the right one, but for the memory."""
        bound = self.right.bind(task)
        return dataclasses.replace(bound, statistic=forgetful(bound.statistic))


LIVES = Participation(3, "lifetime")
SMALL = tacit.problem("random-mdp", seed=1)


def lives_are_refuted(wrap: Callable[[Agent], Agent]) -> bool:
    """Whether audits of lives refute it, by cells and by norms (false alarms: below 0.001)."""
    cells = tacit.agent("tacit-joint", epsilon=8.0, delta=1e-5, least=4)
    verdicts = {
        tacit.audit(
            SMALL, wrap(right), participations=LIVES, secure=False, trials=1000, confidence=0.999,
            seconds=1e6,
        ).verdict
        for right in (cells, tacit.agent("tacit-linear", epsilon=8.0, delta=1e-5))
    }  # fmt: skip
    return verdicts == {"violated"}


# ---- runs that are interrupted ------------------------------------------------------------------


def state_without_memory(run: Run) -> Arrays:
    """What is kept of a run, but for who taught what."""
    kept = resume.state(run)
    return {**kept, **{name: np.zeros_like(kept[name]) for name in ("taught", "spent")}}


TABLE = tacit.problem("river-swim", states=4, horizon=6)


def teaches_again_after_restarts(state: Callable[[Run], Arrays]) -> bool:
    """Whether a pair is counted more often than there are people, with restarts on the way."""
    people, users, rule = 6, 60, Participation(None, "lifetime")
    came = attend(rule, users, people, "rounds", np.random.default_rng(0))
    bound = bind(TABLE, tacit.agent("tacit-joint", epsilon=50.0), users, participation=rule)
    counted = np.zeros(bound.statistic.layout.size, dtype=np.int64)
    kept: Arrays | None = None
    for _ in range(5):
        run = StepwiseRun(TABLE, bound, 0, 0, np.array([users]), threading.Event(), people=came)
        if kept is not None:
            resume.restore(run, kept)
        counting(run, counted)
        run.advance(users // 5)
        kept = {name: np.array(array) for name, array in state(run).items()}
    totals = bound.statistic.layout.views(counted * bound.statistic.layout.units)["totals"]
    assert totals.max() >= people / 4  # half of a person is one visit
    return bool((2 * totals > people).any())


def counting(run: Run, counted: IntArray) -> None:
    """Let a run's learner add what is absorbed to ``counted`` as well."""
    learner = run.learner
    assert learner is not None
    absorb = learner.absorb

    def both(report: Report, version: int) -> None:
        counted[:] += report.values
        absorb(report, version)

    learner.absorb = both  # type: ignore[method-assign]


# ---- which participation is reported ------------------------------------------------------------


def first_of_period(periods: Sequence[int], paid: Sequence[float]) -> list[bool]:
    """Which participations of one person are reported, by the rule of the simulation."""
    count = len(periods)
    first, kept = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    who, when = np.zeros(count, dtype=np.int64), np.arange(count, dtype=np.float64)
    keep_to(who, when, np.array(periods), 1, count, 0.0, first, kept)
    return [bool(flag) for flag in first]


def best_paid_of_period(periods: Sequence[int], paid: Sequence[float]) -> list[bool]:
    """Of every period the participation that was paid best."""
    best = {p: max(paid[i] for i, q in enumerate(periods) if q == p) for p in periods}
    chosen: dict[int, int] = {}
    for i, p in enumerate(periods):
        if paid[i] == best[p]:
            chosen.setdefault(p, i)
    return [chosen[p] == i for i, p in enumerate(periods)]


def tells_by_what_is_reported(rule: Callable[[Sequence[int], Sequence[float]], list[bool]]) -> bool:
    """Whether two lives in one period tell more than one report, by the exact law of what is sent.

    What is paid is reported by randomized response at epsilon 1, in the participation that the rule
    picks; nothing is sent in the others. All lives of up to three participations, in two periods.
    """
    epsilon = 1.0
    keep = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    for periods in ((0, 0), (0, 0, 0), (0, 0, 1), (0, 1, 1)):
        laws = {}
        for paid in itertools.product((0.0, 1.0), repeat=len(periods)):
            told = rule(periods, paid)
            answers = itertools.product(*[(0.0, 1.0) if flag else (None,) for flag in told])
            laws[paid] = {
                sent: math.prod(
                    keep if answer == own else 1.0 - keep
                    for answer, own in zip(sent, paid, strict=True)
                    if answer is not None
                )
                for sent in answers
            }
        for one, two in itertools.permutations(laws, 2):
            moved = {p for p, a, b in zip(periods, one, two, strict=True) if a != b}
            most = math.exp(epsilon * len(moved)) * (1 + 1e-12)
            if any(mass > most * laws[two].get(sent, 0.0) for sent, mass in laws[one].items()):
                return True
    return False


# ---- steps, batches and periods -----------------------------------------------------------------

STEPS, BATCH = 6, 6


class AsksForAll:
    """A planner that wants every pair, always."""

    def plan(self, task, release, ask, previous, streams) -> Publication:  # type: ignore[no-untyped-def]
        """The same as before."""
        pairs = task.pairs
        policy = uniform_policy(task.horizon, *pairs.number.shape)
        return Publication(
            next_version(previous), policy, {"wanted": np.full(len(pairs.action), 2)}
        )


# ---- norm budgets -------------------------------------------------------------------------------


class FreeTrifles(NormBudget):
    """What is shorter than an eighth of what is left costs nothing."""

    def add_people(self, lives, publication, coins, who, out) -> None:  # type: ignore[no-untyped-def]
        for row, person in enumerate(who.rows):
            own = Lives(*(part[row : row + 1] for part in lives))
            before, one = int(who.spent[person]), np.zeros_like(out)
            coin, alone = coins[row : row + 1], who._replace(rows=who.rows[row : row + 1])
            super().add_people(own, publication, coin, alone, one)
            out += one
            if 8 * (who.spent[person] - before) < self.budget - before:
                who.spent[person] = before


def short_visits_exceed_the_budget(kind: type[NormBudget]) -> bool:
    """Whether a life of single steps adds more than B."""
    problem = tacit.problem("random-mdp", states=2, actions=2, horizon=100)
    agent, rule = tacit.agent("tacit-linear", epsilon=1.0), Participation("any", "lifetime")
    bound = bind(problem, agent, 1000, participation=rule)
    assert isinstance(bound.statistic, NormBudget)
    budget, who = kind(bound.statistic.inner, bound.task), np.zeros(1, dtype=np.int64)
    memory, total = budget.memory(1), 0.0
    entry = Publication(0, uniform_policy(100, 2, 2))
    here = np.zeros((1, 2), dtype=np.int64)
    step = Lives(here, here[:, :1], np.ones((1, 1)))
    for _ in range(200):
        out = np.zeros(budget.layout.size, dtype=np.int64)
        budget.add_people(step, entry, who, memory.of(who), out)
        total += float(np.linalg.norm(out * budget.layout.units))
    return total > budget.budget * GRID * (1 + 1e-9)


class Quiet(SimulatedNoise):
    """Noise of size 0, so that rows show what is in them."""

    def fill(self, law: GridLaw, out: IntArray) -> None:
        """Nothing."""
        out[:] = 0


def bound_to_lives(kind: type[CountedSums] = CountedSums) -> BoundAgent:
    """First visits of six pairs, all of which fit into one participation."""
    rule = Participation(None, "lifetime", period="1d")
    task = Task("tabular", 6, {"states": 3, "actions": 2}, True, STEPS * BATCH, rule=rule)
    visits = FirstVisits(task, 6, 6)
    counter = Fading(STEPS, 0.9, 1.0, visits.groups, visits.totals)
    asked = {"batch": BATCH, "requested": (1.0, 1e-5)}
    privatizer = kind(visits, task, counter, **asked)
    return BoundAgent(task, visits, privatizer, AsksForAll(), Every(BATCH))


def allowed(bound: BoundAgent) -> float:
    """How far apart two lives may bring the rows in one period, in natural units."""
    counter = bound.privatizer.strategy  # type: ignore[attr-defined]
    own = bound.statistic.sensitivity("l2", Relation.REPLACE_ONE) * counter.column_norm()
    return float(own + bound.privatizer.rounding)  # type: ignore[attr-defined]


def rows_of(
    learner: Learner, lived: Sequence[tuple[int, Trajectory]], renewed: Sequence[int] = ()
) -> Array:
    """The rows that are published when these people come, one after the other."""
    streams, rows = planner_streams(0, 0), []
    learner.publish(streams)
    for number, (person, trip) in enumerate(lived):
        if number in renewed:
            learner.renew()
        learner.serve(lambda _, trip=trip: trip, person)  # type: ignore[misc]
        if learner.left == 0:
            learner.publish(streams)
            rows.append(learner.secret.counter.public["row"] * learner.agent.statistic.layout.units)  # type: ignore[attr-defined]
    return np.array(rows)


def staying(state: int, action: int | None = None) -> Trajectory:
    """In one state, with one action or with both in turn."""
    actions = np.arange(6) % 2 if action is None else np.full(6, action)
    return Trajectory(np.full(7, state), actions, np.full(6, 1.0 - min(state, 1)))


EMPTY = Trajectory(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))

ONE_SIDED = 0.5
"""A life against an empty one is half as far away, in squares, as the worst pair of lives."""


def apart(
    learner: type[Learner], bound: BoundAgent, own: dict[int, Trajectory], renewed: Any = ()
) -> float:
    """How far apart the rows are if one person does these things, or nothing at the same moments.

    All others are strangers; those of one batch stay in one state, those of the next in another.
    """
    found = []
    for empty in (False, True):
        lived = [(k, staying((k // BATCH) % 2)) for k in range(STEPS * BATCH)]
        for number, trip in own.items():
            lived[number] = (0, EMPTY if empty else trip)
        found.append(rows_of(learner(bound, Quiet(np.random.default_rng(0))), lived, renewed))
    many = min(map(len, found))
    return float(np.linalg.norm(found[1][:many] - found[0][:many]))


class CountsTeachersOnly(Learner):
    """Whoever teaches nothing takes no place in the batch."""

    def absorb(self, report: Report, version: int) -> None:
        """Unless there is something in it."""
        if report.values.any():
            super().absorb(report, version)


def empty_visits_shift_the_counter(learner: type[Learner]) -> bool:
    """Whether participations without content move more than their person can."""
    bound, pairs = bound_to_lives(), itertools.product(range(3), range(2))
    moved = apart(learner, bound, {k: staying(*pair) for k, pair in enumerate(pairs)})
    assert moved > 0.5 * allowed(bound)
    return moved > allowed(bound)


class ClearsMemoryOnly(Learner):
    """At a renewal the memory is cleared, and the counter runs on."""

    def renew(self) -> None:
        """Half of it."""
        assert self.memory is not None
        self.memory.clear()


def periods_are_counted_together(learner: type[Learner]) -> bool:
    """Whether lives in several periods move rows by more than the root of their number."""
    bound = bound_to_lives()
    walk, _ = bound.statistic.worst_pair()
    begins = [BATCH * step for step in range(STEPS)]
    moved = apart(learner, bound, dict.fromkeys(begins, walk), begins[1:])
    assert moved > 0.5 * allowed(bound)
    return moved > math.sqrt(ONE_SIDED * len(begins)) * allowed(bound)


class RenewsAnyTime(CountedSums):
    """The counter begins again also while a batch is open, which is then in two periods."""

    def renew(self, secret: Any) -> None:
        """Without looking at the batch."""
        self.strategy.renew(secret.counter)


def batch_is_in_two_periods(kind: type[CountedSums]) -> bool:
    """Whether a person can teach everything twice in one batch, by a renewal in the middle."""
    bound = bound_to_lives(kind)
    walk, _ = bound.statistic.worst_pair()
    try:
        moved = apart(Learner, bound, {0: walk, 2: walk}, (2,))
    except InvalidInput:
        return False
    return moved > math.sqrt(ONE_SIDED * 2) * allowed(bound)
