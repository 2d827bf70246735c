"""A deployment as experiments, which ``tacit size FILE`` simulates, ``admin check`` briefly.

The library finds :func:`read` by the entry point ``deployment`` of ``tacit.experiments``.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tacit.agents.base import Agent
from tacit.errors import InvalidInput
from tacit.experiment import Experiment
from tacit.forecast import few_users
from tacit.problems.base import Problem
from tacit.sample_size import Limits, random_experiments, sample_size
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit_service.config.deployment import Deployment
from tacit_service.rehearsal.people import SearchPeople, fleet_population

CHECK_SECONDS = 5.0
"""What ``tacit admin check`` spends on it."""


def read(
    path: Path, rule: Participation, agent: Agent | None, runs: int, seed: int
) -> tuple[tuple[Experiment, ...], int]:
    """The experiments that a file asks for, with its agent or another one, and for how many people.

    ``rule`` says how often people come where the file leaves that open.
    """
    deployment = Deployment.load(path, stored=False)
    own, fallback = deployment.task.rule, rule
    counts = rule != Participation() and rule == Participation(rule.times)
    if own is not None and own.times is None and counts:  # "any" cannot be simulated
        task = dataclasses.replace(deployment.task, rule=dataclasses.replace(own, times=rule.times))
        deployment, fallback = dataclasses.replace(deployment, task=task), Participation()
    plans = experiments(deployment, agent or deployment.agent, runs, seed)
    return tuple(each.with_(participation=fallback) for each in plans), people(deployment.task)


def experiments(
    deployment: Deployment, agent: Agent, runs: int = 8, seed: int = 0
) -> tuple[Experiment, ...]:
    """What a file asks: on the problem that [fleet] names, or on random ones of its size."""
    task, fleet = deployment.task, dict(deployment.settings.fleet)
    if "problem" not in fleet:
        return random_experiments(task, agent, runs, seed)
    made = fleet_population(fleet, deployment.folder, task)
    problem: Problem = made.problem if isinstance(made, SearchPeople) else made.problems[0]
    one = Experiment(problem=problem, agent=agent, episodes=1, runs=runs, seed=seed, task=task)
    return (one,)


def people(task: Task) -> int:
    """How many people are expected: where all of their times teach, each comes so often."""
    if task.rule is not None and task.rule.teaches != "first" and task.rule.times is not None:
        return max(1, task.users // task.rule.times)
    return task.users


def outlook(path: Path, deployment: Deployment) -> tuple[str, dict[str, Any] | None]:
    """Whether a deployment's population is enough at its epsilon, by a few seconds of simulation.

    In a sentence that warns where it is not shown to be, and as JSON; None if nothing was run.
    """
    try:
        expected = people(deployment.task)
        answer = sample_size(
            experiments(deployment, deployment.agent),
            people=expected,
            epsilons=[deployment.agent.parameters()["epsilon"]],
            limits=Limits(expected, CHECK_SECONDS),
        )
    except InvalidInput as refused:
        return f"Outlook: not simulated ({refused})", None
    few = few_users(deployment.task, deployment.agent)
    runs = f"{answer.runs} simulated runs on {answer.simulated}"
    sentence = f"{answer.verdict} (With 95% confidence, by {runs}.)"
    sentence += f" Besides, {few}." if few else ""
    if not answer.warning:
        return f"Outlook: {sentence}", answer.to_json()
    more = f"`tacit size {path}` takes its time over it and tries other epsilons"
    return f"Warning: {sentence} {more}.", answer.to_json()
