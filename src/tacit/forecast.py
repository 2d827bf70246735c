"""What would be guaranteed, and what the noise would allow, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tacit.agents.base import Agent
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.planners.base import least_count
from tacit.privacy.guarantee import Guarantee
from tacit.problems.base import Problem

PRECISIONS = (0.1, 0.01)


def bind(agent: Agent, problem: Problem, episodes: int, reveal: Iterable[str] = ()) -> BoundAgent:
    """The agent fitted to the public task of a problem, with the named facts revealed to it."""
    asked = {reveal} if isinstance(reveal, str) else set(reveal)
    task = problem.task(users=episodes, reveal=sorted(asked | agent.needs))
    useless = asked - agent.needs - (asked if agent.uses is None else agent.uses)
    if useless:
        raise InvalidInput(
            f"{agent.name} makes no use of {', '.join(sorted(useless))}: leave it unrevealed"
        )
    return agent.bind(task)


def guarantee(
    agent: Agent, problem: Problem, episodes: int, reveal: Iterable[str] = ()
) -> Guarantee:
    """The guarantee of running ``agent`` on ``problem`` for that many users."""
    return bind(agent, problem, episodes, reveal).guarantee


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
        found = least_count(lambda count: std(block, count) <= precision)
        assert found is not None  # averages get as fine as one likes
        return found

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
