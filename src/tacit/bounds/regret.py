"""The regret bound of an agent on a problem, beside what the worst policy loses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from tacit.agents.base import Agent
from tacit.agents.catalogue import make_agent
from tacit.agents.lsvi import dimension
from tacit.bounds.control import control_bound
from tacit.bounds.mixture import joint_bound, local_bound
from tacit.bounds.result import Kind, RegretBound, Statement
from tacit.bounds.tabular import obi_bound, theorem_2
from tacit.bounds.theorems import Scope, Theorem, theorem
from tacit.errors import InvalidInput, TacitError
from tacit.experiment import bind, resolve
from tacit.learner import BoundAgent
from tacit.problems.base import Problem
from tacit.problems.catalogue import make_problem
from tacit.problems.environment import Environment
from tacit.problems.lq import LQSystem
from tacit.problems.tabular import TabularMDP
from tacit.simulation.result import Result
from tacit.task.participation import Participation
from tacit.task.task import table_sizes
from tacit.validate import integer

PROOFS: Mapping[str, Callable[[BoundAgent, int], Statement]] = {
    "obi": obi_bound,
    "ldp-obi": obi_bound,
    "ldp-ucrl-vtr": local_bound,
    "ldp-bandit": local_bound,
    "linopt-vi": joint_bound,
    "linopt-po": joint_bound,
    "private-linopt-vi": joint_bound,
    "private-linopt-po": joint_bound,
    "ofu-rl": control_bound,
    "private-ofu-rl": control_bound,
}
"""By agent, the explicit form of the proof of its theorem."""

FEW = 1000
"""For so many users an agent is fitted where its sums for all of them would not fit its integers:
theorems speak of more users than can be counted."""

ANY_CALIBRATION = frozenset({"ldp-obi", "obi"})
"""Whose theorem is about any noise, ours too."""


def bound(
    problem: Problem | Environment | str,
    agent: Agent | str,
    episodes: int,
    *,
    participation: int | Participation = 1,
    reveal: Iterable[str] = (),
) -> RegretBound:
    """What theorems say of the regret of ``agent`` on ``problem`` after so many episodes.

    Args:
        problem: the problem, or its name.
        agent: the agent, or its name; the noise that it really adds is used.
        episodes: number of users.
        participation: as in :func:`tacit.guarantee`.
        reveal: likewise.

    >>> import tacit
    >>> learner = tacit.agent("ldp-obi", epsilon=20.0)
    >>> stated = bound(tacit.problem("random-mdp", seed=1), learner, 10**10)
    >>> f"{stated.upper:.3g}", stated.kind, stated.vacuous
    ('4.62e+09', 'proof', False)
    >>> bound("river-swim", learner, 10_000).vacuous
    True
    """
    problem, agent = resolve(problem, agent)
    if agent.source == "log":
        nobody = "it learns from a log: nobody takes part while it learns"
        return _beside(
            problem, integer(episodes, "episodes", low=1), nobody, Statement(None), "none"
        )
    try:
        fitted = bind(problem, agent, episodes, reveal, participation)
    except InvalidInput:
        fitted = bind(problem, agent, min(episodes, FEW), reveal, participation)
    return regret_bound(problem, agent, fitted, episodes)


def regret_bound(
    problem: Problem, agent: Agent, fitted: BoundAgent, users: int | None = None
) -> RegretBound:
    """The same for an agent that is fitted already, for fewer ``users`` perhaps."""
    users = fitted.task.users if users is None else users
    known = theorem({"name": agent.name, "parameters": agent.parameters()})
    tight = getattr(agent, "calibration", "") == "tight" and agent.name not in ANY_CALIBRATION
    found, source = Statement(None), known.reference
    kind: Kind = "none"
    if not agent.models:
        source = "it learns nothing"
    elif tight and (known.order or agent.name in PROOFS):
        source = (
            "noise, widths and schedule of calibration tight are ours: no theorem is about them"
        )
    elif known.order:
        found, kind = _order(known, agent, fitted, users), "order"
    elif agent.name in PROOFS:
        found = PROOFS[agent.name](fitted, users)
        kind = "none" if found.upper is None else "proof"
    lower = found.lower
    if lower is None and agent.models and kind != "order" and fitted.task.family == "tabular":
        lower = theorem_2(table_sizes(fitted.task), users, _pure(fitted))
    caveats = (found.erratum, *_departures(agent, fitted)) if kind == "proof" else (found.erratum,)
    return _beside(
        problem,
        users,
        source,
        found._replace(lower=lower, erratum="; ".join(filter(None, caveats))),
        kind,
    )


def bound_of(result: Result, episodes: int | None = None) -> RegretBound | None:
    """The same for what a result is of, at its end or before; None where a name is not known."""
    try:
        problem = make_problem(result.problem["name"], **result.problem["parameters"])
        agent = make_agent(result.agent["name"], **result.agent["parameters"])
        facts = result.guarantee.revealed
        return bound(problem, agent, episodes or result.requested_episodes, reveal=facts)
    except TacitError:
        return None


def _order(known: Theorem, agent: Agent, fitted: BoundAgent, users: int) -> Statement:
    """Orders of a theorem as numbers, at the epsilon that was asked for."""
    assert known.order is not None
    task, sums = fitted.task, getattr(fitted.planner, "sums", None)
    H, S, A = table_sizes(task)
    d = dimension(task) if sums is None else sums.transitions.dimension
    asked = (float(getattr(agent, name, 0.0)) for name in ("epsilon", "delta"))
    scope = Scope(S, A, H, users, d, *asked)
    lower = None if known.lower is None else known.lower(scope)
    return Statement(known.order(scope), None, lower, known.erratum)


def _pure(fitted: BoundAgent) -> float:
    """The epsilon of a purely private local report, infinite for all else."""
    stated = fitted.guarantee
    return stated.epsilon if stated.model == "local" and stated.delta == 0.0 else math.inf


def _departures(agent: Agent, fitted: BoundAgent) -> Iterator[str]:
    """Where the agent is not the one of the theorem."""
    if fitted.schedule(FEW) > 1:
        yield "the theorem plans before every episode, this agent more rarely"
    scale = getattr(getattr(fitted.planner, "rule", None), "bonus_scale", 1.0)
    if scale != 1.0:
        yield f"the theorem is for bonus scale 1, not {scale:g}"


def worst_loss(problem: Problem) -> tuple[float, bool]:
    """What the worst policy loses per episode, and whether that is exact or an upper bound.

    Of a table it is exact. In control no gains of at most gamma cost more than H (|Q| + gamma^2
    |R|), because states stay in the unit ball (docs/papers/lq_jdp.md#setting). Where nobody knows
    the truth it is H.
    """
    if isinstance(problem, TabularMDP):
        return problem.optimal_value() - problem.worst_value(), True
    if isinstance(problem, LQSystem):
        sizes = (float(np.linalg.norm(cost, 2)) for cost in (problem.Q, problem.R))
        state, control = sizes
        most = problem.horizon * (state + problem.gain**2 * control)
        return most - problem.optimal_cost(), False
    return float(problem.horizon), False


def _beside(problem: Problem, users: int, source: str, found: Statement, kind: Kind) -> RegretBound:
    """A statement beside the worst policy."""
    each, exact = worst_loss(problem)
    return RegretBound(
        episodes=users,
        upper=found.upper,
        lower=found.lower,
        kind=kind,
        theorem=source,
        failure=found.failure,
        erratum=found.erratum,
        worst=users * each,
        worst_exact=exact,
    )
