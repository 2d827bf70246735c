"""``tacit.plan``: how many users until learning pays, and the least epsilon that does."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tacit.agents.base import Agent
from tacit.agents.catalogue import agents, make_agent
from tacit.errors import InvalidInput
from tacit.forecast import pair
from tacit.problems.base import Problem
from tacit.sample_size.answer import Answer, extrapolate
from tacit.sample_size.measure import Measured, Watch, measure
from tacit.sample_size.result import Plan
from tacit.sample_size.settings import Setting, on_problem, on_random
from tacit.sample_size.ways import Ways, compare
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.validate import integer, number

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""What is tried if nothing else is asked for."""

FIRST = 100
"""Users of the smallest simulation."""

MOST_USERS = 10**12


def plan(
    problem: Problem | Task | str,
    agent: Agent | str,
    *,
    task: Task | None = None,
    share: float = 0.5,
    users: int | None = None,
    epsilons: Iterable[float] | None = None,
    runs: int = 8,
    seed: int = 0,
    most: int | None = None,
    seconds: float | None = 60.0,
    workers: int | None = None,
    reveal: Iterable[str] = (),
    participations: int | Participation = 1,
    progress: Watch | None = None,
    stop: threading.Event | None = None,
) -> Plan:
    """How many users until a share of the gap to the best policy is closed, at several epsilons.

    Runs of 100, 300, 1,000, ... users are simulated until the share is closed with confidence, the
    time is over or ``most`` is reached. What is measured depends on the seed alone; the time only
    decides how far it gets, so with ``seconds=None`` the whole answer is the same on repetition.

    Args:
        problem: the truth that simulated users live in, or its name; or a Task, for random problems
            of its size.
        agent: who learns, or its name; its epsilon is replaced by those tried.
        task: what the learner is told, where a problem is given and its own task shall not count.
        share: of the gap between the baseline (uniform actions; for control, doing nothing) and the
            best policy.
        users: a population to judge: which epsilon is worth it there.
        epsilons: what is tried; by default 0.5 to 8, and the agent's own.
        runs: simulations of each kind; with a Task, random problems.
        seed: root of all random streams.
        most: largest number of users simulated.
        seconds: about how long it may take, compilation apart; None for as long as it takes.
        workers: threads; by default one per core.
        reveal: facts of the problem told to the learner.
        participations: how often one person may take part, or the whole rule
            (``tacit.Participation``). Then everybody who is simulated does, numbers of users are
            numbers of people, and the ways to count them are compared (``Plan.ways``).
        progress: called now and then with epsilon, users, and users done.
        stop: set it from another thread to end early, as Ctrl-C does in the main one.
    """
    share = number(share, "share", low=0.0, high=1.0, low_open=True, high_open=True)
    count = integer(runs, "runs", low=2, high=10_000)
    root = integer(seed, "seed", low=0)
    asked = None if users is None else integer(users, "users", low=10, high=MOST_USERS)
    farthest = MOST_USERS if most is None else integer(most, "most", low=10, high=MOST_USERS)
    if seconds is None and most is None:
        raise InvalidInput("seconds = None needs most, the largest number of users to simulate")
    limit = math.inf if seconds is None else number(seconds, "seconds", low=0.0, low_open=True)
    tried = _agents(agent, epsilons)
    setting = _setting(problem, task, tried[0], count, root, reveal, participations)
    search = _Search(setting, share, root, workers, limit, stop or threading.Event(), progress)
    began = time.perf_counter()
    answers = search.answers(tried, _sizes(asked, farthest))
    ways = None if search.interrupted else search.ways(tried, answers)
    return Plan(
        setting=setting,
        agent=tried[0].name,
        share=share,
        users=asked,
        answers=tuple(answers),
        seed=root,
        seconds=time.perf_counter() - began,
        interrupted=search.interrupted,
        ways=ways,
    )


def _agents(agent: Agent | str, epsilons: Iterable[float] | None) -> list[Agent]:
    """The agent at every epsilon, the largest first; itself if it takes none."""
    if isinstance(agent, str):
        private = "epsilon" in agents.entry(agent).parameters
        own: Agent = make_agent(agent, **({"epsilon": 1.0} if private else {}))
        given: set[float] = set()
    else:
        own, given = agent, {agent.parameters()["epsilon"]} if _private(agent) else set()
    if not isinstance(own, Agent) or not _private(own):
        if epsilons is not None:
            raise InvalidInput(f"{getattr(own, 'name', own)} takes no epsilon: leave epsilons out")
        return [own]
    wanted = set(EPSILONS) | given if epsilons is None else set(epsilons)
    if not wanted:
        raise InvalidInput("epsilons is empty, but at least one must be tried")
    levels = {number(e, "epsilon", low=0.0, low_open=True) for e in wanted}
    return [dataclasses.replace(own, epsilon=e) for e in sorted(levels, reverse=True)]  # type: ignore[type-var]


def _private(agent: object) -> bool:
    return isinstance(agent, Agent) and "epsilon" in agent.parameters()


def _setting(
    problem: Problem | Task | str,
    task: Task | None,
    agent: Agent,
    runs: int,
    seed: int,
    reveal: Iterable[str],
    participations: int | Participation,
) -> Setting:
    told, rule = problem if isinstance(problem, Task) else task, Participation.of(participations)
    if told is not None and (tuple(reveal) or rule != Participation()):
        raise InvalidInput("a task says itself what is revealed and how often people take part")
    if isinstance(problem, Task):
        return on_random(problem, runs, seed)
    return on_problem(pair(problem, agent)[0], runs, task, reveal, rule)


def _sizes(asked: int | None, most: int) -> Iterator[int]:
    """100, 300, 1,000, 3,000 and so on, with the population that was asked about, up to most."""
    steps = (FIRST * digit * 10**power for power in range(40) for digit in (1, 3))
    before = 0
    for size in steps:
        for each in sorted({size, *([asked] if asked and before < asked < size else [])}):
            if each > most:
                if before < most and before != most:
                    yield most
                return
            yield each
            before = each


@dataclass
class _Row:
    """One epsilon on the way."""

    agent: Agent
    measured: list[Measured] = field(default_factory=list)
    open: bool = True
    limit: str = ""
    refused: InvalidInput | None = None

    @property
    def epsilon(self) -> float | None:
        found: float | None = self.agent.parameters().get("epsilon")
        return found

    def seconds(self, users: int) -> float:
        """What so many users are expected to take."""
        if not self.measured:
            return 0.0
        last = self.measured[-1]
        return last.seconds * users / last.users


class _Search:
    """Larger and larger simulations, all epsilons at one size before the next."""

    def __init__(
        self,
        setting: Setting,
        share: float,
        seed: int,
        workers: int | None,
        seconds: float,
        stop: threading.Event,
        watch: Watch | None,
    ) -> None:
        self.setting, self.share, self.seed, self.workers = setting, share, seed, workers
        self.seconds, self.stop, self.watch = seconds, stop, watch
        self.late = self.interrupted = False

    def answers(self, tried: Sequence[Agent], sizes: Iterable[int]) -> list[Answer]:
        """One per agent."""
        if min(self.setting.gap(run) for run in range(len(self.setting.problems))) <= 0.0:
            why = f"the {self.setting.baseline} is already the best there is"
            return [Answer(_Row(a).epsilon, self.share, (), never=why) for a in tried]
        rows = [_Row(agent) for agent in tried]
        self._advance(_Row(tried[0]), FIRST)  # compiles, which the time shall not count
        deadline, timer = math.inf, None
        for users in sizes:
            for row in rows:
                row.open &= time.perf_counter() + row.seconds(users) < deadline
                if row.open and not self.stop.is_set():
                    self._advance(row, users)
            if not any(row.open for row in rows):
                break
            if self.stop.is_set():
                self.interrupted = not self.late
                break
            if timer is None and math.isfinite(self.seconds):  # the smallest size is always run
                deadline = time.perf_counter() + self.seconds
                timer = threading.Timer(self.seconds, self._time_is_over)
                timer.daemon = True
                timer.start()
        if timer is not None:
            timer.cancel()
        refusals = [row.refused for row in rows if not row.measured]
        if refusals and len(refusals) == len(rows) and refusals[0] is not None:
            raise refusals[0]
        found = [self._answer(row) for row in rows]
        ahead = extrapolate(found)
        return [
            dataclasses.replace(a, extrapolated=ahead.get(a.epsilon) if a.epsilon else None)
            for a in found
        ]

    def _advance(self, row: _Row, users: int) -> None:
        """Simulate one more size; a refusal ends the row, unless it comes before any result."""
        args = (self.setting, row.agent, users, self.seed, self.workers, self.stop, self.watch)
        try:
            found = measure(*args)
        except InvalidInput as refused:
            row.refused = refused
            if row.measured:
                row.limit, row.open = f"refuses {users:,} users: {refused}", False
            return
        if found is None:
            self.interrupted = not self.late
            row.open = False
            return
        row.measured.append(found)
        if found.interval.low >= self.share:
            row.open = False

    def ways(self, tried: Sequence[Agent], answers: Sequence[Answer]) -> Ways | None:
        """Ways to count people who come back, where that was shown to be enough at least epsilon.

        Where nothing was, at the largest epsilon and number of people. The other ways may take as
        long again as the search did.
        """
        if self.setting.who == "users":
            return None
        shown = [i for i, answer in enumerate(answers) if answer.enough is not None]
        chosen = shown[-1] if shown else 0
        answer = answers[chosen]
        sizes = [m for m in answer.measured if m.users == (answer.enough or answer.last)]
        if not sizes:
            return None
        self.stop.clear()
        timer = threading.Timer(min(self.seconds, threading.TIMEOUT_MAX), self._time_is_over)
        timer.daemon = True
        timer.start()

        def simulate(setting: Setting, agent: Agent, people: int) -> Measured | None:
            if self.stop.is_set():
                return None
            return measure(setting, agent, people, self.seed, self.workers, self.stop, self.watch)

        found = compare(self.setting, tried[chosen], sizes[0], bool(shown), simulate)
        timer.cancel()
        return found

    def _time_is_over(self) -> None:
        self.late = True
        self.stop.set()

    def _answer(self, row: _Row) -> Answer:
        """Judged; an agent that learns nothing never will."""
        guarantee = self.setting.bind(0, row.agent, FIRST).guarantee
        idle = row.epsilon is None and guarantee.model != "none"
        closed = any(size.interval.high >= self.share for size in row.measured)
        never = f"{row.agent.name} does not learn" if idle and not closed else ""
        return Answer(row.epsilon, self.share, tuple(row.measured), never, row.limit)
