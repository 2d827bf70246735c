"""What is asked of a sample size: which agent, in which problem or task, for how many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tacit.agents.base import Agent
from tacit.errors import InvalidInput
from tacit.experiment import Experiment
from tacit.problems.base import Problem
from tacit.sample_size.random_problems import random_experiments
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
    agent: Agent
    task: Task | None = None
    users: int | None = None
    rule: Participation | int = 1

    def experiments(
        self, runs: int = 8, seed: int = 0, reveal: Iterable[str] = ()
    ) -> Experiment | tuple[Experiment, ...]:
        """What is simulated: the problem, or random ones of its size."""
        rule = Participation.of(self.rule)
        if isinstance(self.problem, Task):
            if tuple(reveal) or rule != Participation():
                raise InvalidInput(
                    "a task says itself what is revealed and how often people take part"
                )
            return random_experiments(self.problem, self.agent, runs, seed)
        return Experiment(
            problem=self.problem,
            agent=self.agent,
            episodes=1,
            runs=runs,
            seed=seed,
            reveal=frozenset(reveal),
            participation=rule,
            task=self.task,
        )
