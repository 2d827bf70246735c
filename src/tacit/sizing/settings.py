"""What a plan simulates: the problem that was given, or random ones of the same size."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tacit.agents.base import Agent
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.forecast import bind
from tacit.problems.base import Problem
from tacit.problems.tabular import TabularMDP
from tacit.task import Task, table_sizes
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
        participations: how often one person may take part.
    """

    problems: tuple[Problem, ...]
    task: Task | None
    reveal: tuple[str, ...] = ()
    participations: int = 1

    def bind(self, run: int, agent: Agent, users: int) -> BoundAgent:
        """The agent fitted to the task of a run with that many users."""
        problem = self.problems[run]
        if self.task is None:
            return bind(problem, agent, users, self.reveal, self.participations)
        known = problem.task(users=users, reveal=sorted(agent.needs)).known
        return agent.bind(dataclasses.replace(self.task, users=users, known=known))

    @property
    def random(self) -> bool:
        """Whether every run has a problem of its own."""
        return self.problems[0] is not self.problems[-1]

    @property
    def name(self) -> str:
        """What is simulated, in words."""
        first, runs = self.problems[0], len(self.problems)
        if not self.random:
            return f"{first.name}, {runs} run{'s' if runs > 1 else ''}"
        H, S, A = first.horizon, first.states, first.actions  # type: ignore[attr-defined]
        return f"{runs} random problems of {S} states, {A} actions, {H} steps, one run each"

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
    problem: Problem, runs: int, task: Task | None, reveal: Iterable[str], participations: int
) -> Setting:
    """The problem itself, again and again."""
    told = (reveal,) if isinstance(reveal, str) else tuple(reveal)
    return Setting((problem,) * runs, task, told, participations)


def on_random(task: Task, runs: int, seed: int) -> Setting:
    """Random problems that fit a task, one per run; the same ones for the same seed."""
    if task.family != "tabular" or "features" in task.known:
        raise InvalidInput(
            "random problems of the same size are tables without declared features; for other "
            "tasks name a problem (`tacit list problems`)"
        )
    rngs = np.random.default_rng([seed, *table_sizes(task)]).spawn(runs)
    return Setting(tuple(_random_problem(task, rng) for rng in rngs), task)


def _random_problem(task: Task, rng: np.random.Generator) -> TabularMDP:
    """Peaked random transitions, random mean rewards; one table per stage where they may differ.

    Rewards are 0 or 1 with means uniform in [0, 1]: fixed ones, as in random-mdp, would be easier
    to learn than what people report.
    """
    H, S, A = table_sizes(task)
    stages = 1 if task.homogeneous else H
    table_fits("a random problem", stages, S, A, S)
    for _ in range(ATTEMPTS):
        P = rng.dirichlet(SPIKY * np.ones(S), size=(stages, S, A))
        R = rng.random((stages, S, A))
        if task.homogeneous:
            P, R = P[0], R[0]
        problem = TabularMDP(P, R, H, rewards="bernoulli", name="random problem")
        if problem.optimal_value() - problem.baseline()[1] >= LEAST_GAP * H:
            return problem
    raise InvalidInput(
        f"random problems of {S} states, {A} actions and {H} steps leave nothing to gain over "
        "uniform actions; choose larger sizes"
    )
