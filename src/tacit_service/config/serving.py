"""Which agents can be served, and how a minimum batch becomes part of their schedule."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from tacit.agents.base import Agent
from tacit.agents.catalogue import make_agent
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.schedules import MinimumBatch
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.wire.messages import local_privatizer

Model = Literal["local", "joint"]

_HAIR = 1 + 1e-6


def served_model(bound: BoundAgent, agent: Agent) -> Model:
    """Whose noise protects: the device's or the curator's; other mechanisms are refused."""
    privatizer = bound.privatizer
    if not privatizer.secure:
        raise InvalidInput(
            f"there is no exact sampler for {privatizer.guarantee.mechanism}, so it cannot protect "
            "anybody: choose the randomizer laplace, gaussian or randomized-response"
        )
    batches = agent.batch_parameter or bound.task.family == "episodic"
    if privatizer.served == "local" or (privatizer.served == "joint" and batches):
        return privatizer.served
    if privatizer.guarantee.model == "shuffle" and "local" in getattr(agent, "models", ()):
        raise InvalidInput(
            f"{agent.name} cannot be served in the shuffle model: the service has no shuffler; let "
            'model in [agent] be "joint" or "local"'
        )
    raise InvalidInput(
        f"{agent.name} cannot be served: the service takes agents whose users send one randomized "
        "report each (tacit-local, ldp-obi, ldp-psrl, tacit-search) or whose curator publishes "
        "sums (tacit-joint, private-linopt-vi, private-linopt-po, pucb, private-ucb-vi, "
        "private-ucb-po, dp-ucbvi, tacit-search)"
    )


def bind(
    parameters: dict[str, Any], task: Task, rule: Participation, minimum_batch: int
) -> tuple[Agent, BoundAgent]:
    """The agent of a deployment, fitted to its task, with no batch below the minimum.

    What the rule leaves open is decided by the agent.
    """
    options = dict(parameters)
    name = options.pop("name")
    if not isinstance(name, str):
        raise InvalidInput(f"name in [agent] = {name!r}, but it must be the name of an agent")
    agent = make_agent(name, **options)
    own = agent.batch_parameter
    if own is not None:
        least = options.setdefault(own, minimum_batch)
        if isinstance(least, int) and least < minimum_batch:
            raise InvalidInput(
                f"{own} = {least} in [agent] makes batches smaller than minimum_batch = "
                f"{minimum_batch} in [updates], and the noise is calibrated for one of them; leave "
                f"{own} out, or make both equal"
            )
        agent = make_agent(name, **options)
    missing = agent.needs - set(task.known)
    if missing:
        raise InvalidInput(
            f"{name} must be told {', '.join(sorted(missing))} in advance, which a deployment "
            "cannot; choose another agent"
        )
    task = dataclasses.replace(task, rule=rule.decided(agent.teaches(task)))
    bound = _bind(agent, task)
    if served_model(bound, agent) == "local":
        local_privatizer(bound)
    _check_guarantee(bound, name)
    search = task.family == "episodic"
    if search and (size := bound.schedule(0)) < minimum_batch:  # nobody can make them larger
        raise InvalidInput(
            f"a search for {bound.task.users:,} people has batches of {size}, which is below "
            f"minimum_batch = {minimum_batch} in [updates]; lower that, or ask for more privacy or "
            "more people"
        )
    if own is None and not search:
        bound = dataclasses.replace(bound, schedule=MinimumBatch(bound.schedule, minimum_batch))
    return agent, bound


def _bind(agent: Agent, task: Task) -> BoundAgent:
    """Fit the agent; features that no regression can use are the operator's to mend."""
    try:
        return agent.bind(task)
    except InvalidInput:
        raise
    except (ValueError, ArithmeticError) as error:
        if "features" not in task.known:
            raise
        raise InvalidInput(
            f"{agent.name} cannot learn from these features ({error}); rows that are all alike "
            "teach nothing"
        ) from None


def _check_guarantee(bound: BoundAgent, name: str) -> None:
    """Refuse noise that gives less than was asked for (published constants may)."""
    stated = bound.guarantee
    asked, delta = stated.requested_epsilon, stated.requested_delta or 0.0
    at = stated.delta_at_requested_epsilon
    if asked is None or stated.epsilon > asked * _HAIR or (at or 0.0) > delta * _HAIR + 1e-300:
        raise InvalidInput(
            f"{name} as configured does not keep the epsilon that was asked for (its noise gives "
            f"epsilon {stated.epsilon:.6g}); choose calibration tight"
        )
