"""A deployment as an experiment, which ``tacit size FILE`` simulates, ``admin check`` briefly.

The library finds :func:`read` by the entry point ``deployment`` of ``tacit.experiments``.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tacit.errors import InvalidInput
from tacit.forecast import few_users
from tacit.problems.base import Problem
from tacit.sample_size import Limits, sample_size
from tacit.sample_size.question import Question
from tacit.task.participation import Participation
from tacit_service.config.deployment import Deployment
from tacit_service.rehearsal.people import SearchPeople, fleet_population

CHECK_SECONDS = 5.0
"""What ``tacit admin check`` spends on it."""


def read(path: Path, rule: Participation) -> Question:
    """What a file asks; ``rule`` says how often people come where the file leaves that open."""
    deployment, again = Deployment.load(path, stored=False), rule
    own = deployment.task.rule
    counts = rule != Participation() and rule == Participation(rule.times)
    if own is not None and own.times is None and counts:  # "any" cannot be simulated
        task = dataclasses.replace(deployment.task, rule=dataclasses.replace(own, times=rule.times))
        deployment, again = dataclasses.replace(deployment, task=task), Participation()
    return dataclasses.replace(question_of(deployment), rule=again)


def question_of(deployment: Deployment) -> Question:
    """What a file asks: on the problem that [fleet] names, or on random ones of its size."""
    task, people = deployment.task, dict(deployment.settings.fleet)
    coming = task.users
    if task.rule is not None and task.rule.teaches != "first" and task.rule.times is not None:
        coming = max(1, task.users // task.rule.times)  # people, each of whom comes so often
    if "problem" not in people:
        return Question(task, deployment.agent, None, coming)
    found = fleet_population(people, deployment.folder, task)
    problem: Problem = found.problem if isinstance(found, SearchPeople) else found.problems[0]
    return Question(problem, deployment.agent, task, coming)


def outlook(path: Path, deployment: Deployment) -> tuple[str, dict[str, Any] | None]:
    """Whether a deployment's population is enough at its epsilon, by a few seconds of simulation.

    In a sentence that warns where it is not shown to be, and as JSON; None if nothing was run.
    """
    try:
        asked = question_of(deployment)
        found = sample_size(
            asked.experiments(),
            people=asked.users,
            epsilons=[deployment.agent.parameters()["epsilon"]],
            limits=Limits(asked.users, CHECK_SECONDS),
        )
    except InvalidInput as refused:
        return f"Outlook: not simulated ({refused})", None
    few = few_users(deployment.task, deployment.agent)
    runs = f"{found.runs} simulated runs on {found.simulated}"
    said = f"{found.verdict} (With 95% confidence, by {runs}.)"
    said += f" Besides, {few}." if few else ""
    if not found.warning:
        return f"Outlook: {said}", found.to_json()
    more = f"`tacit size {path}` takes its time over it and tries other epsilons"
    return f"Warning: {said} {more}.", found.to_json()
