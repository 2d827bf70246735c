"""One agent learning in one problem: all that decides a result, before anything is run."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from tacit._version import __version__
from tacit.agents.base import Agent
from tacit.agents.catalogue import agents, make_agent
from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.forecast import NoiseForecast, forecast
from tacit.kernels.compiler import working_time
from tacit.learned_policy import LearnedPolicy
from tacit.learner import BoundAgent
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import SecureNoise
from tacit.problems.base import Problem
from tacit.problems.catalogue import make_problem, problems
from tacit.problems.environment import Environment, can_only_be_played
from tacit.simulation.attendance import Attendance, AttendanceSummary, AttendanceTrace, attend
from tacit.simulation.checkpoints import checkpoints as checkpoint_grid
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.result import Result
from tacit.simulation.resume import keeper
from tacit.simulation.runs.base import Run
from tacit.simulation.runs.stepwise import StepwiseRun
from tacit.simulation.runs.uncounted import UncountedRun
from tacit.simulation.scheduler import Progress, advance_all
from tacit.streams import stream
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.util.files import provenance
from tacit.util.registry import Registry
from tacit.validate import choice, flag, integer

MOST_EPISODES = 10**15
MOST_RUNS = 10_000

Noise = Literal["simulated", "secure"]
Checkpoints = int | str | tuple[int, ...]


class Prior(Protocol):
    """What learning may begin with besides nothing; ``tacit.logs.prior`` makes one of a log."""

    def begin(self, bound: BoundAgent, name: str) -> BoundAgent:
        """The same agent, which begins with what was learned before."""

    def stated(self, online: Guarantee) -> Guarantee:
        """The statement, and what holds for whoever is in both."""

    def digest(self) -> str:
        """Names all that a learner takes from it."""

    def to_json(self) -> dict[str, Any]:
        """What it is, as plain values."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """One agent learning in one problem: everything that decides the result, and nothing else.

    >>> study = Experiment(problem="river-swim", agent="psrl", episodes=200, runs=2)
    >>> study.guarantee.model
    'none'
    >>> study.run(workers=1).regret.shape == (2, len(study.grid))
    True

    Attributes:
        problem: the truth that simulated people live in, its name, or an Environment.
        agent: who learns, or its name.
        episodes: number of participations K, one episode each.
        runs: independent runs under one root.
        seed: root of all random streams.
        reveal: facts of the problem told to the learner, for example ``{"reward"}``.
        participation: how often one person may take part, or the whole rule; the guarantee covers
            all that one person does.
        attendance: who comes back when. In a world that is played everybody takes part once all
            the same.
        prior: what learning begins with, for tacit-joint on tables; rewards must mean the same.
        task: what the learner is told, but for the number of users, where the problem's own task
            shall not count.
        checkpoints: "log", a number n to record every n-th episode, or the episodes.
        noise: "simulated" (seeded, fast), or "secure" (as for real people; takes no seed).
        compiled: False runs the stepwise driver even where there is a faster run, for the same
            results, or in some cases the same law (docs/architecture.md#way).
    """

    problem: Problem
    agent: Agent
    episodes: int
    runs: int = 1
    seed: int = 0
    reveal: frozenset[str] = frozenset()
    participation: Participation = Participation()
    attendance: Attendance = Attendance()
    prior: Prior | None = None
    task: Task | None = None
    checkpoints: Checkpoints = "log"
    noise: Noise = "simulated"
    compiled: bool = True

    def __post_init__(self) -> None:
        problem, agent = resolve(self.problem, self.agent)
        reveal: Any = self.reveal
        asked = {reveal} if isinstance(reveal, str) else reveal
        rule = Participation.of(self.participation)
        if self.task is not None:
            own = self.task.rule or Participation()
            if asked or rule not in (Participation(), own):
                raise InvalidInput(
                    "a task says itself what is revealed and how often people take part"
                )
            rule = own
        if self.attendance != Attendance() and (rule == Participation() or problem.played):
            raise InvalidInput(
                "people and attendance are about people who come back: say how often one person "
                "may take part with participation, or leave them out; in a world that is played "
                "everybody takes part once"
            )
        if self.prior is not None and not hasattr(self.prior, "begin"):
            raise InvalidInput(
                "a prior is what tacit.logs.prior makes of a log: Prior.of(...) of what "
                "tacit.offline returned, or of the folder that tacit offline --out wrote, not "
                f"{_shown(self.prior)}"
            )
        made = {
            "problem": problem,
            "agent": agent,
            "episodes": integer(self.episodes, "episodes", low=1, high=MOST_EPISODES),
            "runs": integer(self.runs, "runs", low=1, high=MOST_RUNS),
            "seed": integer(self.seed, "seed", low=0),
            "reveal": frozenset(asked),
            "participation": rule,
            "noise": choice(self.noise, "noise", ("simulated", "secure")),
            "compiled": flag(self.compiled, "compiled"),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def with_(self, **changes: Any) -> Experiment:
        """The same experiment but for these fields."""
        return dataclasses.replace(self, **changes)

    @cached_property
    def grid(self) -> IntArray:
        """The episodes at which curves are recorded."""
        return checkpoint_grid(self.episodes, self.checkpoints)

    @cached_property
    def trace(self) -> AttendanceTrace | None:
        """Who takes part when; None where people take part once."""
        if self.participation == Participation() or self.problem.played:
            return None
        rng = stream(self.seed, 0, "attendance")
        how = self.attendance
        return attend(self.participation, self.episodes, how.people, how.law or "rounds", rng)

    @cached_property
    def bound(self) -> BoundAgent:
        """The agent, fitted for the participations that are counted."""
        bound = self._fitted(self.episodes)
        if self.trace is not None and _first_only(bound):
            bound = self._fitted(int(self.trace.first.sum()))
        return bound if self.prior is None else self.prior.begin(bound, self.agent.name)

    def _fitted(self, users: int) -> BoundAgent:
        if self.task is None:
            return bind(self.problem, self.agent, users, self.reveal, self.participation)
        known = self.problem.task(users=users, reveal=sorted(self.agent.needs)).known
        facts: dict[str, Any] = {"users": users, "known": {**known, **self.task.known}}
        if self.participation != Participation():
            facts["rule"] = self.participation.decided(self.agent.teaches(self.task))
        return self.agent.bind(dataclasses.replace(self.task, **facts))

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed to everybody who takes part, before anything is run."""
        return self._stated(self.bound.guarantee)

    def _stated(self, guarantee: Guarantee) -> Guarantee:
        return guarantee if self.prior is None else self.prior.stated(guarantee)

    def forecast(self) -> NoiseForecast:
        """What the noise allows after so many episodes, by its law alone."""
        return forecast(self.bound)

    def describe(self) -> dict[str, Any]:
        """What is run, and with which programs: the digits of a result depend on nothing else."""
        task, points = self.bound.task, self.checkpoints
        facts: dict[str, Any] = {
            "problem": self.problem.describe(),
            "agent": {"name": self.agent.name, "parameters": self.agent.parameters()},
            "episodes": self.episodes,
            "revealed": list(task.revealed),
            "participations": task.participations,
            "task": task.digest(),
            "guarantee": self.bound.guarantee.digest(),
            "versions": {"tacit": __version__, **provenance()["versions"]},
            "runs": self.runs,
            "seed": self.seed,
            "checkpoints": list(points) if isinstance(points, tuple) else points,
            "noise": self.noise,
            "compiled": self.compiled,
        }
        if self.trace is not None:
            facts |= {"people": self.trace.people, "attendance": self.trace.law}
        if self.prior is not None:
            facts["prior"] = self.prior.digest()
        return facts

    def start(
        self, stop: threading.Event | None = None, numbers: Iterable[int] | None = None
    ) -> list[Run]:
        """Its runs before their first user, or those with these numbers.

        Each is the fastest there is for this agent, or the driver itself.
        """
        stop, bound, trace = stop or threading.Event(), self.bound, self.trace
        spread = trace is not None and _first_only(bound)
        points = np.arange(1, bound.task.users + 1) if spread else self.grid
        runs = []
        for number in range(self.runs) if numbers is None else numbers:
            common = (self.problem, bound, self.seed, number, points)
            people = None if spread else trace
            run: Run | None = None
            if self.compiled and self.noise == "simulated":
                run = compiled_run(*common, people)
            if run is None:
                source = SecureNoise() if self.noise == "secure" else None
                run = StepwiseRun(*common, stop, source, people)
            if spread:
                assert trace is not None
                run = UncountedRun(run, trace, self.grid)
            runs.append(run)
        return runs

    def run(
        self,
        *,
        workers: int | None = None,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
        resume: str | Path | None = None,
    ) -> Result:
        """Run it, and score every policy exactly against the optimum, where anybody knows that.

        Results are identical on repetition and for any number of workers. Ctrl-C ends the runs
        early and returns what was done (``result.interrupted``). After its last user every run
        plans once more: ``result.policies``, and ``result.policy`` for one of them.

        Args:
            workers: threads; by default one per core, at most one per run, and a single one where
                somebody's own code plays.
            progress: called now and then with (episodes done, cumulative regret, or the mean return
                so far where there is no regret), means over runs.
            stop: set it from another thread to end the runs early, as Ctrl-C does in the main one.
            resume: a folder in which the runs keep where they stand. What it holds already is not
                done again: the result is that of runs which were never interrupted, bit for bit,
                timing apart. Another experiment is refused.
        """
        threads = 1 if self.problem.played else os.cpu_count() or 1
        if workers is not None:
            threads = integer(workers, "workers", low=1)
        stop = stop or threading.Event()
        runs = self.start(stop)
        self.problem.prepare(stream(self.seed, 0, "trial"))
        keep = None if resume is None else keeper(Path(resume), runs, self.describe())
        before, began = _done(runs), working_time()
        tell = self._telling(progress, runs)
        finished = advance_all(runs, self.episodes, threads, stop, tell, keep)
        seconds = working_time() - began
        return self._result(runs, finished, seconds, (_done(runs) - before) / max(seconds, 1e-9))

    def _telling(self, progress: Progress | None, runs: Sequence[Run]) -> Progress | None:
        """Tells of regret, or of the mean return so far where nobody knows the regret."""
        if progress is None or not self.problem.played:
            return progress

        def tell(done: int, _: float) -> None:
            if done:
                earned = np.mean([run.score.now[2] for run in runs])
                progress(done, float(self.problem.total(earned, done)) / done)

        return tell

    def _result(self, runs: Sequence[Run], finished: bool, seconds: float, rate: float) -> Result:
        """What runs that were advanced together came to."""
        guarantee = self.bound.guarantee
        guarantee = self._stated(
            guarantee.as_simulated() if self.noise == "simulated" else guarantee
        )
        recorded = min(int(run.score.at[1]) for run in runs)
        episodes = self.grid[:recorded]
        reward = np.array([run.score.reward[:recorded] for run in runs])
        regret = np.array([run.score.regret[:recorded] for run in runs])
        policies = self._policies(runs, guarantee) if finished else ()
        played = [policy.publication.policy for policy in policies]
        agent, trace = self.agent, self.trace
        return Result(
            problem=self.problem.describe(),
            agent={
                "name": agent.name,
                "parameters": agent.parameters(),
                "notes": list(agent.notes(self.bound.task)),
            },
            guarantee=guarantee,
            seed=self.seed,
            seeds=tuple(range(len(runs))),
            requested_episodes=self.episodes,
            episodes=episodes,
            regret=np.full_like(regret, np.nan) if self.problem.played else regret,
            reward=self.problem.total(reward, episodes),
            interrupted=not finished,
            seconds=seconds,
            episodes_per_second=rate,
            policies=policies,
            returning=None if trace is None else AttendanceSummary.of(trace, episodes),
            prior=None if self.prior is None else self.prior.to_json(),
            tests=self.problem.tests(played, self.seed) or {},
        )

    def _policies(self, runs: Sequence[Run], guarantee: Guarantee) -> tuple[LearnedPolicy, ...]:
        """What every run planned after its last user, without what only later users would need.

        The learning curve of a search, which was released with it, stays.
        """
        about = {"problem": self.problem.name, "agent": self.agent.name, "seed": self.seed}
        finals, learned = [run.final for run in runs if run.final is not None], []
        for i, (publication, users) in enumerate(finals):
            curve = {name: array for name, array in publication.context.items() if name == "curve"}
            bare = dataclasses.replace(publication, context=curve)
            more = about | {"run": i}
            learned.append(LearnedPolicy.of(bare, self.bound.task, guarantee, users, about=more))
        return tuple(learned)


def simulate(
    problem: Problem | Environment | str,
    agent: Agent | str,
    episodes: int,
    runs: int = 1,
    *,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    resume: str | Path | None = None,
) -> Result:
    """Run ``agent`` on ``problem``: the short form, all else is a field of :class:`Experiment`.

    Args:
        problem: the truth the simulated users live in, its name, or an Environment.
        agent: who learns, or its name.
        episodes: number of users K, one episode each.
        runs: number of independent runs.
        seed: root of all random streams.
        workers: threads; by default one per core, at most one per run.
        progress: called now and then with (episodes done, cumulative regret), means over runs.
        resume: a folder in which the runs keep where they stand (:meth:`Experiment.run`).

    Returns:
        Curves, guarantee, policies and everything needed to report them.

    >>> result = simulate("river-swim", "psrl", episodes=100, runs=2, workers=1)
    >>> result.regret.shape == (2, len(result.episodes))
    True
    """
    made = Experiment(problem=problem, agent=agent, episodes=episodes, runs=runs, seed=seed)  # type: ignore[arg-type]
    return made.run(workers=workers, progress=progress, resume=resume)


def guarantee(
    problem: Problem | Environment | str,
    agent: Agent | str,
    episodes: int,
    *,
    participation: int | Participation = 1,
    reveal: Iterable[str] = (),
) -> Guarantee:
    """The guarantee of running ``agent`` on ``problem``, before anything is run.

    Args:
        problem: the problem, or its name.
        agent: the agent, or its name.
        episodes: number of users, or of participations that count where a person may come back.
        participation: how often one person may take part, or the whole rule; all that one person
            does is covered together.
        reveal: facts of the problem told to the learner, for example ``["reward"]``.

    >>> guarantee("river-swim", "psrl", 1000).model
    'none'
    """
    return bind(problem, agent, episodes, reveal, participation).guarantee


def resolve(problem: object, agent: object) -> tuple[Problem, Agent]:
    """A problem and an agent, each given as itself or by its name; the problem comes first."""
    refuse_swapped(problem, agent)
    if isinstance(agent, str):
        agent = make_agent(agent)
    if isinstance(problem, str):
        problem = Environment(problem) if can_only_be_played(problem) else make_problem(problem)
    if not isinstance(agent, Agent):
        raise InvalidInput(
            f"agent is {_shown(agent)}, but it must be an agent, such as tacit.agent('psrl'), or "
            "a name (`tacit list agents`)"
        )
    if isinstance(problem, Environment):
        problem = problem.problem(agent)
    if isinstance(problem, type) or not isinstance(problem, Problem):
        raise InvalidInput(
            f"problem is {_shown(problem)}, but it must be a problem, such as "
            "tacit.problem('river-swim'), a name (`tacit list problems`), or what can be played, "
            "as a tacit.environment(...)"
        )
    return problem, agent


def refuse_swapped(problem: object, agent: object) -> None:
    """Refuse a swapped pair, of names or of objects, with the sentence that mends it."""
    swapped: str | None = None
    if isinstance(problem, Agent) or (_named(problem, agents) and not _named(problem, problems)):
        swapped = f"{getattr(problem, 'name', problem)} is an agent"
    elif isinstance(agent, Problem) or (_named(agent, problems) and not _named(agent, agents)):
        swapped = f"{getattr(agent, 'name', agent)} is a problem"
    if swapped and not isinstance(agent, type):
        raise InvalidInput(
            f"{swapped}, but the problem comes first and the agent second: swap the two"
        )


def _named(value: object, known: Registry[Any]) -> bool:
    return isinstance(value, str) and value in known


def _shown(value: object) -> str:
    """What was given in the place of an object, in words."""
    if isinstance(value, type):
        return f"the class {value.__name__} (call it: {value.__name__}(...))"
    text = repr(value)
    return f"{text if len(text) <= 60 else 'an object'} of type {type(value).__name__}"


def bind(
    problem: Problem | Environment | str,
    agent: Agent | str,
    episodes: int,
    reveal: Iterable[str] = (),
    participation: int | Participation = 1,
) -> BoundAgent:
    """The agent fitted to the public task of a problem, with the named facts revealed to it."""
    problem, agent = resolve(problem, agent)
    users = integer(episodes, "episodes", low=1)
    asked = {reveal} if isinstance(reveal, str) else set(reveal)
    try:
        task = problem.task(users=users, reveal=sorted(asked | agent.needs))
    except InvalidInput as error:
        if asked or not agent.needs:
            raise
        raise InvalidInput(
            f"{agent.name} learns {' and '.join(agent.families)} problems and must be told "
            f"{', '.join(sorted(agent.needs))}, but {error}; choose another agent or problem"
        ) from None
    useless = asked - agent.needs - (asked if agent.uses is None else agent.uses)
    if useless:
        raise InvalidInput(
            f"{agent.name} makes no use of {', '.join(sorted(useless))}: leave it unrevealed"
        )
    rule = Participation.of(participation)
    if rule != Participation():  # else as the problem's own task says
        task = dataclasses.replace(task, rule=rule.decided(agent.teaches(task)))
    return agent.bind(task)


def _first_only(bound: BoundAgent) -> bool:
    """Whether of everybody only the first participation of a period is counted."""
    return bound.task.rule is not None and bound.task.rule.teaches == "first"


def _done(runs: Sequence[Run]) -> int:
    return sum(int(run.score.at[0]) for run in runs)
