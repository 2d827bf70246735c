"""What would be guaranteed, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable

from tacit.agents.base import Agent
from tacit.privacy.guarantee import Guarantee
from tacit.problems.base import Problem


def guarantee(
    agent: Agent, problem: Problem, episodes: int, reveal: Iterable[str] = ()
) -> Guarantee:
    """The guarantee of running ``agent`` on ``problem`` for that many users."""
    revealed = sorted(set(reveal) | agent.needs)
    return agent.bind(problem.task(users=episodes, reveal=revealed)).guarantee
