"""What is asked of a sample size: which agent, in which problem or task, for how many."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.agents.base import Agent
from tacit.problems.base import Problem
from tacit.task.participation import Participation
from tacit.task.task import Task


@dataclass(frozen=True)
class Question:
    """What a file, a problem or sizes ask.

    Attributes:
        problem: what is simulated; of a task random problems of its size.
        agent: who learns.
        task: what the learner is told, where that is not the problem's own task.
        users: a population to judge.
        rule: how often one person takes part, besides what the task says itself.
    """

    problem: Problem | Task
    agent: Agent | str
    task: Task | None = None
    users: int | None = None
    rule: Participation | int = 1
