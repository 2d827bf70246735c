"""Every private agent of the catalogue, and small problems to audit it on."""

import dataclasses
from typing import Any

import numpy as np

import tacit
from tacit.agents import Agent
from tacit.agents.catalogue import agents, from_people
from tacit.auditing.agent import _first_publication
from tacit.auditing.neighbours import NeighbourPair, worst_cases
from tacit.auditing.targets import AuditedSource, DeviceTarget, LearnerTarget
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.privacy.shuffle.shuffled import Shuffled
from tacit.problems.base import Problem
from tacit.problems.classic_control import cart_pole

DELTA = 1e-5

PROBLEMS: dict[str, Problem] = {
    "random-mdp": tacit.problem("random-mdp", seed=1),
    "lq": tacit.LQSystem(
        A=[[0.6]], B=[[0.3]], Q=[[1.0]], R=[[0.1]], horizon=3, noise=0.1, start=[0.9]
    ),
    "linear-bandit": tacit.problem("linear-bandit", dimension=2, arms=3, contexts=4),
    "random-mdp, larger": tacit.problem("random-mdp", states=3, actions=2, horizon=3, seed=2),
    "river-swim": tacit.problem("river-swim", states=3, horizon=4),
    "low-rank": tacit.problem(
        "low-rank", states=2, actions=2, dimension=2, horizon=2, sparsity=1.0, seed=1
    ),
    "low-rank, larger": tacit.problem(
        "low-rank", states=4, actions=3, dimension=2, horizon=3, sparsity=1.0, seed=2
    ),
    "synthetic-linear": tacit.problem("synthetic-linear", actions=5, horizon=3),
    "hard-mixture": tacit.problem("hard-mixture", dimension=3, horizon=3),
    "hard-mixture, larger": tacit.problem("hard-mixture", dimension=4, horizon=4, seed=1),
    "remap-walk": tacit.problem("remap-walk", horizon=3),
    "remap-walk, larger": tacit.problem("remap-walk"),
    "linear-bandit, larger": tacit.problem("linear-bandit", dimension=5, arms=8, contexts=10),
    "lq-scalar": tacit.problem("lq-scalar"),
    "lq-double-integrator": tacit.problem("lq-double-integrator"),
    "lq-thermal": tacit.problem("lq-thermal"),
    "random-lq": tacit.problem("random-lq", seed=1),
    "random-lq, larger": tacit.problem("random-lq", states=3, inputs=2, horizon=6, seed=2),
    "cart-pole": cart_pole(),
}
"""Of every family; the first that fits an agent is its smallest."""

ONE_STEP = tacit.problem("random-mdp", horizon=1, seed=1)
"""Where few cells move, so that Laplace noise is told apart with few trials."""


def private_agents() -> list[str]:
    """Names of all agents that take an epsilon: a new one is covered without being listed here."""
    return [entry.name for entry in from_people() if "epsilon" in entry.parameters]


PRICED_FOR_ALL = ("dp-lsvi-batch", "dp-lsvi-adaptive", "dp-lsvi-ucb++")
"""Published noise of these is priced for any features and weights, of which a problem has some."""


def made(name: str, epsilon: float = 1.0, **options: Any) -> Agent:
    """With default parameters, but priced for the problem; ``DELTA`` where delta has a default."""
    delta = agents.entry(name).parameters.get("delta")
    if delta is not None and delta.default > 0.0:
        options["delta"] = DELTA
    if name in PRICED_FOR_ALL:
        options.setdefault("calibration", "tight")
    return tacit.agent(name, epsilon=epsilon, **options)


def bound_to(agent: Agent, problem: Problem, users: int = 3) -> BoundAgent:
    """The agent fitted to a problem; behind a shuffler, with what the device does."""
    bound = agent.bind(problem.task(users=users, reveal=sorted(agent.needs)))
    if isinstance(bound.privatizer, Shuffled):
        bound = dataclasses.replace(bound, privatizer=bound.privatizer.local)
    return bound


def fitting(name: str) -> dict[str, BoundAgent]:
    """The agent on every small problem that it can learn."""
    found, agent = {}, made(name)
    for problem in PROBLEMS:
        try:
            found[problem] = bound_to(agent, PROBLEMS[problem])
        except InvalidInput:
            continue
    return found


def smallest(name: str) -> Problem:
    """The first problem that fits."""
    return PROBLEMS[next(iter(fitting(name)))]


def cases(bound: BoundAgent, seed: int = 0) -> list[NeighbourPair]:
    """The pairs that an audit looks at, under the first publication."""
    rng = np.random.default_rng(seed)
    return worst_cases(bound, _first_publication(bound, rng), rng)


def device(bound: BoundAgent, source: AuditedSource = "simulated") -> DeviceTarget:
    """What a device sends."""
    return DeviceTarget(bound, cases(bound)[0], source)


def learner(
    problem: Problem, bound: BoundAgent, source: AuditedSource = "simulated"
) -> LearnerTarget:
    """Everything that is published, with one person replaced."""
    return LearnerTarget(problem, bound, cases(bound)[:1], source)
