"""Audits of whole lives: one person who comes back, where what they teach in all is bounded.

The person comes at the beginning of several batches, so that everything they teach meets the
counter at different steps. Two lives come at the same moments and teach the same things at other
ones, with empty participations in between: that is where a bound on lives could fail. What they do
after the first release depends on it, in both lives alike.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import IntArray
from tacit.auditing.neighbours import NeighbourPair, aimed_at, farthest, other_step, worst_contexts
from tacit.auditing.recorder import RecordedLearner
from tacit.auditing.targets import AuditedSource, LearnerTarget
from tacit.learner import BoundAgent
from tacit.privacy import Noise
from tacit.privacy.base import AuditRecord
from tacit.problems.base import Problem
from tacit.publication import Publication
from tacit.statistics.first_visits import trip
from tacit.trajectory import Trajectory, together

MOST_VISITS = 4
"""Participations of an audited life, at most: the bound does not depend on their number."""

STEPS_MORE = 3
"""Steps of the counter after the last of them, at least: the last steps of a counter move least."""

CLIMBED = 3
"""Pairs of lives that are improved; the farthest apart of them is taken."""

Life = tuple[Trajectory, ...]
"""What one person does in each of their participations."""

LifePair = tuple[Life, Life]


@dataclass(frozen=True, eq=False)
class LifetimePair:
    """Two lives of one person, and when they take part.

    Attributes:
        lives: what is done in each participation, world 0 and world 1.
        otherwise: what is done instead if the first release says so; the first participation is
            that of ``lives``, and the two lives are exactly as far apart.
        at: how many participations of all people came before each of these.
        renewals: likewise, before which of them budgets are renewed.
        publication: the first one, ``context`` included.
        context: what takes the place of published numbers, for this person.
        distance: how far apart the lives are, over what the guarantee pays for.
    """

    lives: LifePair
    otherwise: LifePair
    at: tuple[int, ...]
    renewals: tuple[int, ...]
    publication: Publication
    context: Mapping[str, npt.NDArray[Any]]
    distance: float

    @property
    def visits(self) -> int:
        """Participations in one period."""
        return len(self.lives[0])

    @property
    def begin(self) -> NeighbourPair:
        """The first participation alone."""
        lives = self.lives[0][0], self.lives[1][0]
        return NeighbourPair("", lives, self.publication, self.context, self.distance)


def visits_of(bound: BoundAgent) -> int:
    """How often the audited person comes in a period."""
    rule = bound.task.rule
    assert rule is not None
    return min(rule.times or MOST_VISITS, MOST_VISITS)


def batches_of(bound: BoundAgent) -> list[int]:
    """How many participations came before each batch, which is one step of the counter.

    The last one is left out where nothing is released after it.
    """
    begins, served = [], 0
    while served < bound.task.users:
        if not bound.plans_again(served):
            begins.append(served)
        served += bound.schedule(served)
    return begins if bound.counts_everybody else begins[:-1]


def steps_needed(bound: BoundAgent, periods: int) -> int:
    """Steps of the counter in which so many periods of a life can be seen."""
    return periods * (visits_of(bound) + STEPS_MORE)


def worst_lives(
    bound: BoundAgent, publication: Publication, rng: np.random.Generator, periods: int = 1
) -> LifetimePair:
    """Two lives that are far apart: of some that are written down the best one, improved by search.

    In further periods the same lives are lived again.
    """
    visits, begins = visits_of(bound), batches_of(bound)
    context = next(iter(worst_contexts(bound).values()))
    starts = [len(begins) * p // periods for p in range(periods)]
    at = tuple(begins[s + i] for s in starts for i in range(visits))
    renewals = tuple(begins[s] for s in starts[1:])
    aimed = aimed_at(publication, context)
    case = LifetimePair(((), ()), ((), ()), at, renewals, aimed, context, 0.0)
    written = [_with(bound, case, lives) for lives in _written(bound, visits)]
    far = attrgetter("distance")
    best = sorted(written, key=far)[-CLIMBED:]
    case = max((farthest(one, partial(_changed, bound, rng=rng)) for one in best), key=far)
    return dataclasses.replace(case, otherwise=_reaction(bound, case))


def _with(bound: BoundAgent, case: LifetimePair, lives: LifePair) -> LifetimePair:
    made = dataclasses.replace(case, lives=lives, otherwise=lives)
    return dataclasses.replace(made, distance=distance(bound, made))


def _written(bound: BoundAgent, visits: int) -> list[LifePair]:
    """Through all pairs of the table, in some order, and in another one at later moments.

    One life begins at once, and has the time to do again what it did; the other one begins as late
    as it can, with nothing at all before. Where nothing is told apart in a life, the worst pair.
    """
    if not bound.lifetime.memory_size:
        one, two = bound.statistic.worst_pair()
        return [((one,) * visits, (two,) * visits)]
    pairs, lives = bound.task.pairs, []
    for order in (np.arange(len(pairs.action)), np.lexsort((pairs.state, pairs.action))):
        for other in (order[::-1], np.roll(order, 1), np.roll(order[::-1], 1)):
            for end in (0, len(pairs.number) - 1):
                early = _trips(bound, order, visits, 1.0, end)
                late = _trips(bound, other, visits, 0.0, end)
                repeated = (*early, *early)[:visits]
                nothing = (EMPTY,) * (visits - len(late))
                lives.append((repeated, (*nothing, *late)))
    return lives


EMPTY = Trajectory(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
"""A participation in which nothing happens."""


def _trips(bound: BoundAgent, order: IntArray, visits: int, reward: float, end: int) -> Life:
    """These pairs in order, in as few participations as they fit into."""
    many = min(visits, max(1, math.ceil(len(order) / bound.task.horizon)))
    return tuple(trip(bound.task, part, reward, end) for part in np.array_split(order, many))


def items(bound: BoundAgent, case: LifetimePair, life: Life) -> IntArray:
    """What a life adds to each step of the counter [steps, cells], by the statistic's own memory.

    The publications are those that ask for everything that the case asks for.
    """
    statistic, begins = bound.lifetime, batches_of(bound)
    memory = statistic.memory(1)
    out = np.zeros((len(begins), bound.statistic.layout.size), dtype=np.int64)
    for number, at in enumerate(case.at):
        if at in case.renewals:
            memory.clear()
        one, row = together([life[number % case.visits]]), out[begins.index(at)]
        who = np.zeros(1, dtype=np.int64)
        statistic.add_people(one, case.publication, np.array([at]), memory.of(who), row)
    return out


def distance(bound: BoundAgent, case: LifetimePair) -> float:
    """How far apart the noisy rows of both lives are, over what all periods together pay for."""
    first, second = (items(bound, case, life) for life in case.lives)
    cuts = [batches_of(bound).index(at) for at in case.renewals]
    squared = 0.0
    for one, two in zip(np.split(first, cuts), np.split(second, cuts), strict=True):
        record = AuditRecord(list(one), list(two), list(np.zeros(one.shape)))
        squared += bound.privatizer.log_likelihood_ratio(record).mu_squared
    assert bound.guarantee.mu is not None
    return math.sqrt(squared / (len(cuts) + 1)) / bound.guarantee.mu


def _changed(bound: BoundAgent, case: LifetimePair, rng: np.random.Generator) -> LifetimePair:
    """The same lives but for a step of one participation, in one of them or in both."""
    changed = [list(life) for life in case.lives]
    for life in changed if rng.random() < 0.5 else [changed[int(rng.integers(2))]]:
        visit = int(rng.choice([i for i, lived in enumerate(life) if len(lived.rewards)]))
        life[visit] = other_step(bound, life[visit], rng)
    return _with(bound, case, (tuple(changed[0]), tuple(changed[1])))


def _played(lived: Trajectory) -> list[tuple[int, int]]:
    """By step, state and action."""
    return list(zip(lived.states[:-1].tolist(), lived.actions.tolist(), strict=True))


def _reaction(bound: BoundAgent, case: LifetimePair) -> LifePair:
    """Another way to go on after the first participation, with exactly the same distance.

    Where both lives are still to teach a pair, they earn there what they would not have earned.
    """
    begun = {pair for life in case.lives for pair in _played(life[0])}

    def turned(lived: Trajectory) -> Trajectory:
        new = np.array([pair not in begun for pair in _played(lived)], dtype=bool)
        earned = np.where(new, 1.0 - lived.rewards, lived.rewards)
        return Trajectory(lived.states, lived.actions, earned)

    first, second = ((life[0], *map(turned, life[1:])) for life in case.lives)
    same = abs(_with(bound, case, (first, second)).distance - case.distance) < 1e-9
    return (first, second) if same else case.lives


class RecordedLifetime(RecordedLearner):
    """A learner under audit in which one person comes back.

    That person is remembered by the learner itself; what the life that is not lived would have
    taught is remembered beside it.
    """

    def __init__(self, agent: BoundAgent, noise: Noise, case: LifetimePair, world: int) -> None:
        self._case, self._world = case, world
        super().__init__(agent, noise, [case.begin], [world])
        self._unlived = agent.lifetime.memory(1)
        self._plan: LifePair | None = None
        self._begins = [0]
        """How many releases there were before each period."""

    def open_batch(self) -> None:
        """Where budgets are renewed nobody is remembered any more, in either world."""
        super().open_batch()
        if self.served in self._case.renewals:
            self.renew()
            self._unlived.clear()
            self._begins.append(len(self._released))

    def take_part(self, problem: Problem, rng: np.random.Generator) -> None:
        """The next one: the audited person where it is their moment, else somebody new."""
        if self.served in self._case.at:
            self._come_back(self._case.at.index(self.served))
        else:
            self._other(problem, rng)

    def _come_back(self, number: int) -> None:
        assert self.publication is not None
        publication = aimed_at(self.publication, self._case.context)
        lived, visit = self._lived_by(number), number % self._case.visits
        own = self._contributed(lived[self._world][visit], publication, 0)
        other = np.zeros_like(own)
        unlived, coins = together([lived[1 - self._world][visit]]), np.array([self.served])
        memory = self._unlived.of(np.zeros(1, dtype=np.int64))
        self.agent.lifetime.add_people(unlived, publication, coins, memory, other)
        self._instead[0][-1][1 - self._world][:] += other - own
        self._send(own, publication, self.served)

    def _lived_by(self, number: int) -> LifePair:
        """Both lives; from the second participation on they follow from the first release."""
        if number == 0:
            return self._case.lives
        if self._plan is None:
            ahead = self._released[-1].sum() > 0.0
            self._plan = self._case.otherwise if ahead else self._case.lives
        return self._plan

    def _contributed(self, life: Trajectory, publication: Publication, person: int) -> IntArray:
        """What somebody teaches under a publication, as the learner counts and remembers it."""
        out = np.zeros(self.agent.statistic.layout.size, dtype=np.int64)
        published, self.publication = self.publication, publication
        self.add_people(together([life]), np.array([self.served]), np.array([person]), out)
        self.publication = published
        return out

    def log_ratios(self) -> list[float]:
        """Of all periods together: their noise is independent."""
        first, second = self._worlds_of(0)
        total, ends = 0.0, [*self._begins[1:], len(self._released)]
        for begin, end in zip(self._begins, ends, strict=True):
            part = slice(begin, end)
            record = AuditRecord(first[part], second[part], self._released[part])
            total += self.agent.privatizer.log_likelihood_ratio(record).log_ratio
        return [total]


class LifeTarget(LearnerTarget):
    """A whole learner in which one person's life is replaced: everything it publishes.

    Args:
        problem: where the others live.
        bound: the agent, fitted to a task that bounds lives.
        case: two lives.
        source: of the noise.
    """

    def __init__(
        self, problem: Problem, bound: BoundAgent, case: LifetimePair, source: AuditedSource
    ) -> None:
        super().__init__(problem, bound, [case.begin], source)
        periods = len(case.renewals) + 1
        each = "" if periods == 1 else f" in each of {periods} periods"
        self.name = (
            f"every release of a learner with {bound.task.users} participations, {case.visits} of "
            f"them one person's, at different steps{each}"
        )
        self._case = case

    def _watched(self, noise: Noise, worlds: list[int]) -> RecordedLearner:
        return RecordedLifetime(self._bound, noise, self._case, worlds[0])
