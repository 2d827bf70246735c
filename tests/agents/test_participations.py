"""Every private agent is calibrated for all participations of a person, not for one.

That a stated guarantee counts them is the contract of privatizers; here it must stay as asked for.
"""

from dataclasses import replace

import pytest

import tacit
from tacit.agents import make_agent
from tacit.agents.catalogue import from_people
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.problems.classic_control import cart_pole

PROBLEMS = [
    tacit.problem("river-swim", states=3, horizon=3),
    tacit.problem("low-rank", states=2, actions=2, dimension=2, horizon=2, seed=1),
    tacit.problem("lq-scalar"),
    tacit.problem("remap-walk", horizon=3),
    tacit.problem("linear-bandit", dimension=2, arms=3, contexts=4),
    cart_pole(),
]


def bound(name: str, times: int, **more) -> BoundAgent:
    """On the first problem that the agent takes."""
    agent = make_agent(name, epsilon=1.0, **more)
    for problem in PROBLEMS:
        try:
            return agent.bind(
                replace(problem.task(users=2000, reveal=agent.needs), participations=times)
            )
        except InvalidInput:
            continue
    raise AssertionError(f"{name} takes none of these problems")


def private() -> list[tuple[str, dict]]:
    found = []
    for entry in from_people():
        if "epsilon" in entry.parameters:
            delta = entry.parameters.get("delta")
            needed = delta is not None and delta.default is delta.empty
            found.append((entry.name, {"delta": 1e-5} if needed else {}))
    gaussian = {"delta": 1e-5, "randomizer": "gaussian"}
    response = {"randomizer": "randomized-response"}
    return [
        *found,
        ("ldp-obi", gaussian),
        ("ldp-obi", response),
        ("tacit-linear", {"sums": "answered"}),
        ("tacit-search", {"model": "local"}),
    ]


PRIVATE = private()


@pytest.mark.parametrize(("name", "more"), PRIVATE)
def test_epsilon_is_kept_over_all_participations(name: str, more: dict) -> None:
    once = bound(name, 1, **more).guarantee
    for times in (2, 3):
        said = bound(name, times, **more).guarantee
        assert said.participations == times
        assert 0.99 * once.epsilon < said.epsilon <= 1.0 + 1e-9
        # Published noise that is enough for many participations is not raised, and then costs more.
        assert said.noise != once.noise or said.epsilon > 1.3 * once.epsilon
        assert " per user" not in str(said) and "each user in one" not in str(said)
