"""``tacit.sample_size``: how many users until learning pays, and the least epsilon that does."""

from __future__ import annotations

import dataclasses
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tacit.agents.base import Agent
from tacit.errors import InvalidInput
from tacit.experiment import Experiment
from tacit.sample_size.answer import SizeAnswer, SizeMeasurement, extrapolate
from tacit.sample_size.result import SampleSize
from tacit.simulation.scheduler import advance_all
from tacit.task.participation import Participation
from tacit.validate import integer, number

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""What is tried if nothing else is asked for."""

FIRST = 100
"""Users of the smallest simulation."""

MOST_USERS = 10**12

Watch = Callable[[float | None, int, int], None]
"""Told which epsilon and how many users are simulated, and how many are done, mean over runs."""


@dataclass(frozen=True)
class Limits:
    """How far a search goes.

    Attributes:
        most: largest number of users simulated; None for no limit.
        seconds: about how long it may take, compilation apart; None for as long as it takes.
    """

    most: int | None = None
    seconds: float | None = 60.0

    def __post_init__(self) -> None:
        if self.most is not None:
            integer(self.most, "most", low=10, high=MOST_USERS)
        if self.seconds is not None:
            number(self.seconds, "seconds", low=0.0, low_open=True)
        elif self.most is None:
            raise InvalidInput("seconds = None needs most, the largest number of users to simulate")


def sample_size(
    experiment: Experiment | Sequence[Experiment],
    *,
    share: float = 0.5,
    people: int | None = None,
    epsilons: Iterable[float] | None = None,
    limits: Limits = Limits(),  # noqa: B008, it is frozen
    workers: int | None = None,
    progress: Watch | None = None,
    stop: threading.Event | None = None,
) -> SampleSize:
    """How many users until a share of the gap to the best policy is closed, at several epsilons.

    Runs of 100, 300, 1,000, ... users are simulated until the share is closed with confidence, the
    time is over or the largest number is reached. What is measured depends on the seed alone; the
    time only decides how far it gets, so with ``Limits(most=..., seconds=None)`` the whole answer
    is the same on repetition.

    Args:
        experiment: who learns what, in how many runs; its epsilon and its episodes are replaced by
            those tried. Where people come back everybody does as often as they may, and numbers of
            users are numbers of people. Several experiments, one for every run, where the problem
            is not known (:func:`tacit.sample_size.random_problems.random_experiments`).
        share: of the gap between the baseline (uniform actions; for control, doing nothing) and the
            best policy.
        people: a population to judge: which epsilon is worth it there.
        epsilons: what is tried; by default 0.5 to 8, and the agent's own.
        limits: how far it goes.
        workers: threads; by default one per core.
        progress: called now and then with epsilon, users, and users done.
        stop: set it from another thread to end early, as Ctrl-C does in the main one.

    >>> import tacit
    >>> study = tacit.Experiment(problem="river-swim", agent="psrl", episodes=1, runs=2)
    >>> found = sample_size(study, limits=Limits(most=100, seconds=None), workers=1)
    >>> [measured.users for measured in found.answers[0].measured]
    [100]
    """
    share = number(share, "share", low=0.0, high=1.0, low_open=True, high_open=True)
    studies = (experiment,) if isinstance(experiment, Experiment) else tuple(experiment)
    first = studies[0]
    integer(first.runs, "runs", low=2)
    asked = None if people is None else integer(people, "people", low=10, high=MOST_USERS)
    if first.problem.played:
        raise InvalidInput(
            f"nobody knows the best policy of {first.problem.name}, which is only played: how many "
            "users it takes is found out on a problem with a known truth"
        )
    tried = _agents(first.agent, epsilons)
    workers, stop = workers or os.cpu_count() or 1, stop or threading.Event()
    watch = progress or (lambda epsilon, users, done: None)
    search = _Search(studies, share, workers, limits.seconds, stop, watch)
    began = time.perf_counter()
    answers = search.answers(tried, _sizes(asked, limits.most or MOST_USERS))
    return SampleSize(
        experiments=studies,
        share=share,
        users=asked,
        answers=tuple(answers),
        seconds=time.perf_counter() - began,
        interrupted=search.interrupted,
    )


def _agents(own: Agent, epsilons: Iterable[float] | None) -> list[Agent]:
    """The agent at every epsilon, the largest first; itself if it takes none."""
    epsilon = own.parameters().get("epsilon")
    if epsilon is None:
        if epsilons is not None:
            raise InvalidInput(f"{own.name} takes no epsilon: leave epsilons out")
        return [own]
    wanted = {*EPSILONS, epsilon} if epsilons is None else set(epsilons)
    if not wanted:
        raise InvalidInput("epsilons is empty, but at least one must be tried")
    levels = {number(e, "epsilon", low=0.0, low_open=True) for e in wanted}
    return [dataclasses.replace(own, epsilon=e) for e in sorted(levels, reverse=True)]  # type: ignore[type-var]


def _sizes(asked: int | None, most: int) -> list[int]:
    """100, 300, 1,000, 3,000 and so on, with the population that was asked about, up to most."""
    steps = (FIRST * digit * 10**power for power in range(40) for digit in (1, 3))
    return sorted({most, *(size for size in (*steps, asked or most) if size < most)})


@dataclass
class _Row:
    """One epsilon on the way."""

    agent: Agent
    measured: list[SizeMeasurement] = field(default_factory=list)
    open: bool = True
    limit: str = ""
    refused: InvalidInput | None = None

    @property
    def epsilon(self) -> float | None:
        level: float | None = self.agent.parameters().get("epsilon")
        return level

    def seconds(self, users: int) -> float:
        """What so many users are expected to take."""
        last = self.measured[-1] if self.measured else None
        return last.seconds * users / last.users if last else 0.0


@dataclass
class _Search:
    """Larger and larger simulations, all epsilons at one size before the next."""

    experiments: tuple[Experiment, ...]
    share: float
    workers: int
    seconds: float | None
    stop: threading.Event
    watch: Watch
    late: bool = False
    interrupted: bool = False

    @cached_property
    def gaps(self) -> list[float]:
        """By experiment, what its best policy earns above the baseline."""
        problems = [each.problem for each in self.experiments]
        return [problem.optimal_value() - problem.baseline()[1] for problem in problems]

    def answers(self, tried: Sequence[Agent], sizes: Iterable[int]) -> list[SizeAnswer]:
        """One per agent."""
        if min(self.gaps) <= 0.0:
            why = f"the {self.experiments[0].problem.baseline()[0]} is already the best there is"
            return [SizeAnswer(_Row(a).epsilon, self.share, (), never=why) for a in tried]
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
            if timer is None and self.seconds is not None:  # the smallest size is always run
                deadline = time.perf_counter() + self.seconds
                timer = threading.Timer(self.seconds, self._time_is_over)
                timer.daemon = True
                timer.start()
        if timer is not None:
            timer.cancel()
        if rows[0].refused is not None and not any(row.measured for row in rows):
            raise rows[0].refused
        answers = [self._answer(row) for row in rows]
        guesses = extrapolate(answers)
        return [dataclasses.replace(a, extrapolated=guesses.get(a.epsilon or 0.0)) for a in answers]

    def _advance(self, row: _Row, users: int) -> None:
        """Simulate one more size; a refusal ends the row, unless it comes before any result."""
        try:
            size = self._measure(row.agent, users)
        except InvalidInput as refused:
            row.refused = refused
            if row.measured:
                row.limit, row.open = f"refuses {users:,} users: {refused}", False
            return
        if size is None:
            self.interrupted = not self.late
        else:
            row.measured.append(size)
        row.open = size is not None and size.interval.low < self.share

    def _time_is_over(self) -> None:
        self.late = True
        self.stop.set()

    def _measure(self, agent: Agent, users: int) -> SizeMeasurement | None:
        """Runs with so many users on every problem; None if they were stopped before the end.

        Runs of different epsilons meet the same users. A refusal of the agent is passed on.
        """
        sized = [_sized(each, agent, users) for each in self.experiments]
        runs, episodes = [], sized[0].episodes
        began = time.perf_counter()
        for run, each in enumerate(sized):
            runs += each.start(self.stop, None if len(sized) == 1 else [run])
        epsilon = agent.parameters().get("epsilon")

        def progress(done: int, regret: float) -> None:
            self.watch(epsilon, episodes, done)

        if not advance_all(runs, episodes, self.workers, self.stop, progress):
            return None
        last = episodes - int(sized[0].grid[0])
        gaps = self.gaps if len(sized) > 1 else self.gaps * len(runs)
        late = [float(np.diff(run.score.regret)[0]) / last for run in runs]
        closed = tuple(1.0 - lost / gap for lost, gap in zip(late, gaps, strict=True))
        return SizeMeasurement(users, closed, time.perf_counter() - began)

    def _answer(self, row: _Row) -> SizeAnswer:
        """Judged; an agent that learns nothing never will."""
        model = _sized(self.experiments[0], row.agent, FIRST).guarantee.model
        idle = row.epsilon is None and model != "none"
        closed = any(size.interval.high >= self.share for size in row.measured)
        never = f"{row.agent.name} does not learn" if idle and not closed else ""
        return SizeAnswer(row.epsilon, self.share, tuple(row.measured), never, row.limit)


def _sized(experiment: Experiment, agent: Agent, users: int) -> Experiment:
    """The experiment with so many users, each of whom comes as often as they may."""
    episodes, how = users, experiment.attendance
    if experiment.participation != Participation():
        if experiment.participation.times is None:
            raise InvalidInput(
                "here everybody comes as often as they may, so any number of times will not do: "
                "say how often (participation=5, -R participations=5)"
            )
        episodes = users * experiment.participation.times
        how = dataclasses.replace(how, people=users)
    late = (-(-episodes * 9 // 10), episodes)
    return experiment.with_(agent=agent, episodes=episodes, attendance=how, checkpoints=late)
