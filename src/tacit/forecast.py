"""What would be guaranteed, and what the noise would allow, before anything is spent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tacit.agents.base import Agent
from tacit.agents.catalogue import agents, make_agent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.planners.base import least_count
from tacit.privacy.guarantee import Guarantee
from tacit.problems.base import Problem
from tacit.problems.catalogue import make_problem, problems
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.util.registry import Registry
from tacit.validate import integer

PRECISIONS = (0.1, 0.01)


def pair(problem: Problem | str, agent: Agent | str) -> tuple[Problem, Agent]:
    """A problem and an agent, each given as itself or by its name; the problem comes first."""
    in_order(problem, agent)
    if isinstance(problem, str):
        problem = make_problem(problem)
    if isinstance(agent, str):
        agent = make_agent(agent)
    if isinstance(problem, type) or not isinstance(problem, Problem):
        raise InvalidInput(
            f"problem is {_shown(problem)}, but it must be a problem, such as "
            "tacit.problem('river-swim'), or a name (`tacit list problems`)"
        )
    if not isinstance(agent, Agent):
        raise InvalidInput(
            f"agent is {_shown(agent)}, but it must be an agent, such as tacit.agent('psrl'), or "
            "a name (`tacit list agents`)"
        )
    return problem, agent


def in_order(problem: object, agent: object) -> None:
    """Refuse a swapped pair, of names or of objects, with the sentence that mends it."""
    swapped: str | None = None
    if isinstance(problem, Agent) or (_named(problem, agents) and not _named(problem, problems)):
        swapped = f"{getattr(problem, 'name', problem)} is an agent"
    elif isinstance(agent, Problem) or (_named(agent, problems) and not _named(agent, agents)):
        swapped = f"{getattr(agent, 'name', agent)} is a problem"
    if swapped and not isinstance(agent, type):
        raise InvalidInput(
            f"{swapped}, but the problem comes first and the agent second: swap the two"
        )


def _named(given: object, known: Registry[Any]) -> bool:
    return isinstance(given, str) and given in known


def _shown(value: object) -> str:
    """What was given in the place of an object, in words."""
    if isinstance(value, type):
        return f"the class {value.__name__} (call it: {value.__name__}(...))"
    text = repr(value)
    return f"{text if len(text) <= 60 else 'an object'} of type {type(value).__name__}"


def bind(
    problem: Problem | str,
    agent: Agent | str,
    episodes: int,
    reveal: Iterable[str] = (),
    participations: int | Participation = 1,
) -> BoundAgent:
    """The agent fitted to the public task of a problem, with the named facts revealed to it."""
    problem, agent = pair(problem, agent)
    users = integer(episodes, "episodes", low=1)
    asked = {reveal} if isinstance(reveal, str) else set(reveal)
    try:
        task = problem.task(users=users, reveal=sorted(asked | agent.needs))
    except InvalidInput as error:
        if asked or not agent.needs:
            raise
        raise InvalidInput(
            f"{agent.name} learns {' and '.join(agent.families)} problems and must be told "
            f"{', '.join(sorted(agent.needs))}, but {error}; choose another agent or problem"
        ) from None
    useless = asked - agent.needs - (asked if agent.uses is None else agent.uses)
    if useless:
        raise InvalidInput(
            f"{agent.name} makes no use of {', '.join(sorted(useless))}: leave it unrevealed"
        )
    rule = Participation.of(participations)
    if rule != Participation():  # else as the problem's own task says
        task = dataclasses.replace(task, rule=rule.decided(agent.teaches(task)))
    return agent.bind(task)


def guarantee(
    problem: Problem | str,
    agent: Agent | str,
    episodes: int,
    reveal: Iterable[str] = (),
    *,
    participations: int | Participation = 1,
) -> Guarantee:
    """The guarantee of running ``agent`` on ``problem``, before anything is run.

    Args:
        problem: the problem, or its name.
        agent: the agent, or its name.
        episodes: number of users, or of participations where a person may come back.
        reveal: facts of the problem told to the learner, for example ``["reward"]``.
        participations: how often one person may take part, or the whole rule
            (``tacit.Participation``); all that one person does is covered together.
    """
    return bind(problem, agent, episodes, reveal, participations).guarantee


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
        "joint model; `tacit plan` simulates it"
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
