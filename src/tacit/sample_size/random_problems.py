"""Random problems of a given size, where nobody knows the one that people will live in."""

from __future__ import annotations

from functools import partial

import numpy as np

from tacit.agents.base import Agent
from tacit.errors import InvalidInput
from tacit.experiment import Experiment
from tacit.problems.tabular import TabularMDP
from tacit.task.task import Task, table_sizes
from tacit.validate import integer, table_fits

LEAST_GAP = 0.01
"""Random problems whose best policy beats uniform actions by less, per step, are drawn again."""

ATTEMPTS = 1000
"""Draws per random problem, before it is said that sizes leave nothing to gain."""

SPIKY = 0.1
"""Concentration of the random transition laws, as in the problem random-mdp."""


def random_experiments(
    task: Task, agent: Agent | str, runs: int = 8, seed: int = 0
) -> tuple[Experiment, ...]:
    """Experiments on random problems that fit a task, one per run; the same for the same seed.

    For :func:`tacit.sample_size`, where the problem that people will live in is not known.

    Args:
        task: sizes, and what is declared; also how often people take part.
        agent: who learns, or its name.
        runs: how many.
        seed: root of all random streams.
    """
    if task.family != "tabular" or "features" in task.known:
        raise InvalidInput(
            "random problems of the same size are tables without declared features; for other "
            "tasks name a problem (`tacit list problems`)"
        )
    count = integer(runs, "runs", low=2, high=10_000)
    rngs = np.random.default_rng([seed, *table_sizes(task)]).spawn(count)
    study = partial(Experiment, agent=agent, episodes=1, runs=count, seed=seed, task=task)  # type: ignore[arg-type]
    return tuple(study(problem=_random_problem(task, rng)) for rng in rngs)


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
