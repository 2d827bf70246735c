"""What a plan simulates: the problem that was given, or random ones of the same size."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.agents.base import Agent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.problems.base import Problem
from tacit.problems.tabular import TabularMDP
from tacit.simulation.api import bind_to
from tacit.simulation.attendance import Attendance, attend
from tacit.streams import stream
from tacit.task.participation import Participation
from tacit.task.task import Task, table_sizes
from tacit.validate import table_fits

LEAST_GAP = 0.01
"""Random problems whose best policy beats uniform actions by less, per step, are drawn again."""

ATTEMPTS = 1000
"""Draws per random problem, before it is said that sizes leave nothing to gain."""

SPIKY = 0.1
"""Concentration of the random transition laws, as in the problem random-mdp."""


@dataclass(frozen=True)
class Setting:
    """One problem for every run, and how an agent is fitted to it.

    Attributes:
        problems: the truth of each run.
        task: what the learner is told, but for the number of users; None for what the problem says.
        reveal: facts told to the learner.
        rule: how often one person may take part, and everybody who is simulated does.
    """

    problems: tuple[Problem, ...]
    task: Task | None
    reveal: tuple[str, ...] = ()
    rule: Participation = Participation()

    def attendance(self, people: int, seed: int) -> Attendance | None:
        """Who takes part when: everybody as often as they may, once a day; None for only once."""
        if self.rule == Participation():
            return None
        if self.rule.times is None:
            raise InvalidInput(
                "a plan lets everybody come as often as they may, so any number of times will not "
                "do: say how often (participations=5, --participations 5)"
            )
        rng = stream(seed, 0, "attendance")
        return attend(self.rule, people * self.rule.times, people, "rounds", rng)

    def decided(self, agent: Agent) -> Participation:
        """The rule with what the agent chooses where it leaves that open."""
        task = self.task or self.problems[0].task(users=1)
        return self.rule.decided(agent.teaches(task))

    def bind(
        self, run: int, agent: Agent, users: int, came: Attendance | None = None
    ) -> BoundAgent:
        """The agent fitted to the task of a run with that many users, of whom ``came`` may tell.

        Where people come back the users are participations.
        """
        problem = self.problems[run]
        if self.task is None:
            return bind_to(problem, agent, came, users, self.reveal, self.rule)
        revealed = problem.task(users=users, reveal=sorted(agent.needs)).known
        facts: dict[str, Any] = {"users": users, "known": {**revealed, **self.task.known}}
        if self.rule != Participation():
            facts["rule"] = self.decided(agent)
            if came is not None and facts["rule"].teaches == "first":
                facts["users"] = int(came.first.sum())
        return agent.bind(dataclasses.replace(self.task, **facts))

    @property
    def random(self) -> bool:
        """Whether every run has a problem of its own."""
        return self.problems[0] is not self.problems[-1]

    @property
    def name(self) -> str:
        """What is simulated, in words."""
        first, runs = self.problems[0], len(self.problems)
        back = f", everybody comes {self.rule.times} times" if self.who == "people" else ""
        if not self.random:
            return f"{first.name}, {runs} run{'s' if runs > 1 else ''}{back}"
        H, S, A = first.horizon, first.states, first.actions  # type: ignore[attr-defined]
        return f"{runs} random problems of {S} states, {A} actions, {H} steps, one run each{back}"

    @property
    def who(self) -> str:
        """What is counted: users, or people where they come back."""
        return "users" if self.rule == Participation() else "people"

    @property
    def varied(self) -> str:
        """What an interval is over."""
        return "random problems" if self.random else "runs"

    @property
    def baseline(self) -> str:
        """The policy that a learner must beat."""
        return self.problems[0].baseline()[0]

    def gap(self, run: int) -> float:
        """What the best policy of a run earns above the baseline, exactly."""
        problem = self.problems[run]
        return problem.optimal_value() - problem.baseline()[1]


def on_problem(
    problem: Problem,
    runs: int,
    task: Task | None,
    reveal: Iterable[str],
    rule: Participation,
) -> Setting:
    """The problem itself, again and again; the rule of a task counts before another."""
    told = (reveal,) if isinstance(reveal, str) else tuple(reveal)
    return Setting((problem,) * runs, task, told, _rule_of(task) or rule)


def on_random(task: Task, runs: int, seed: int) -> Setting:
    """Random problems that fit a task, one per run; the same ones for the same seed."""
    if task.family != "tabular" or "features" in task.known:
        raise InvalidInput(
            "random problems of the same size are tables without declared features; for other "
            "tasks name a problem (`tacit list problems`)"
        )
    rngs = np.random.default_rng([seed, *table_sizes(task)]).spawn(runs)
    problems = tuple(_random_problem(task, rng) for rng in rngs)
    return Setting(problems, task, rule=_rule_of(task) or Participation())


def _rule_of(task: Task | None) -> Participation | None:
    """How people come back to a task, where it has a rule for it."""
    return None if task is None else task.rule


def _random_problem(task: Task, rng: np.random.Generator) -> TabularMDP:
    """Peaked random transitions, random mean rewards; one table per stage where they may differ.

    Rewards are 0 or 1 with means uniform in [0, 1]: fixed ones, as in random-mdp, would be easier
    to learn than what people report. What the task declares of its table holds; where it says
    nothing of the start, that is the first state from which an episode goes on.
    """
    H, S, A = table_sizes(task)
    stages = 1 if task.homogeneous else H
    table_fits("a random problem", stages, S, A, S)
    ends = task.known.get("terminal", np.zeros(S, dtype=bool))
    start = task.known.get("initial", int(np.argmin(ends)))
    for _ in range(ATTEMPTS):
        P = rng.dirichlet(SPIKY * np.ones(S), size=(stages, S, A))
        R = rng.random((stages, S, A))
        if task.homogeneous:
            P, R = P[0], R[0]
        problem = TabularMDP(
            P,
            R,
            H,
            start,
            rewards="bernoulli",
            terminal=ends,
            allowed=task.known.get("allowed"),
            end_reward=task.end_reward,
            start_known="initial" in task.known,
            name="random problem",
        )
        if problem.optimal_value() - problem.baseline()[1] >= LEAST_GAP * H:
            return problem
    raise InvalidInput(
        f"random problems of {S} states, {A} actions and {H} steps leave nothing to gain over "
        "uniform actions; choose larger sizes"
    )
