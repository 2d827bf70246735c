"""What the noise will allow, and whether people are too few, before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tacit.agents.base import Agent
from tacit.learner import BoundAgent
from tacit.planners.base import least_count
from tacit.task.task import Task

PRECISIONS = (0.1, 0.01)


def few_users(task: Task, agent: Agent) -> str | None:
    """A sentence that warns where an agent can hardly learn from so few; None where it can.

    By the agent's own rule, so nothing is run and nothing but the task is read.
    """
    needed = agent.users_needed(task) if task.family == "tabular" else None
    if needed is None or task.users >= needed:
        return None
    return (
        f"{task.users:,} users are few for {agent.name} at epsilon "
        f"{agent.parameters()['epsilon']:g}: with {len(task.pairs.action):,} pairs of state and "
        f"action and {task.horizon:,} steps it takes about {_rounded(needed):,} until it learns "
        "anything. Take more users, a larger epsilon, fewer states or steps, or an agent of the "
        "joint model; `tacit size` simulates it"
    )


def _rounded(count: int) -> int:
    """Two digits of it, rounded up: a rule of thumb is not exact."""
    unit: int = 10 ** max(len(str(count)) - 2, 0)
    return -(-count // unit) * unit


@dataclass(frozen=True)
class NoiseForecast:
    """What the declared noise allows after ``users`` users, from its law alone.

    Attributes:
        users: number of users planned for.
        noise_std: standard deviation of the noise in one cell's average per user, by block.
        users_needed: users until that standard deviation reaches a precision, by block.
    """

    users: int
    noise_std: dict[str, float]
    users_needed: dict[str, dict[str, int]]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


def forecast(bound: BoundAgent) -> NoiseForecast:
    """How fine the released averages can get, before anybody has taken part."""
    users, privatizer = bound.task.users, bound.privatizer

    def std(block: str, count: int) -> float:
        return math.sqrt(float(privatizer.law(count).variance(block).max())) / count

    def needed(block: str, precision: float) -> int:
        least = least_count(lambda count: std(block, count) <= precision)
        assert least is not None  # averages get as fine as one likes
        return least

    every = [block.name for block in privatizer.layout.blocks]
    blocks = [block for block in every if std(block, users) > 0.0] or every
    return NoiseForecast(
        users=users,
        noise_std={block: std(block, users) for block in blocks},
        users_needed={
            f"{precision:g}": {block: needed(block, precision) for block in blocks}
            for precision in PRECISIONS
        },
    )
