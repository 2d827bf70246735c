"""The coach: from how many people on a private app beats the best message that never thinks.

Everything is learned in the discretised world, whose optimum is known; :func:`on_people` tries a
policy on people of several kinds, who come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.agents.offline import TacitOffline
from tacit.arrays import Array
from tacit.logs.mapping import LogMapping, make_mapping
from tacit.logs.offline import offline
from tacit.logs.simulated import simulate_log
from tacit.planners.evaluation.by_log import Models
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.problems.tabular import TabularMDP
from tacit.streams import stream
from tacit.trajectory import Log
from tacit.util.intervals import Interval, mean_interval
from tacit_lab.cases.coach_world import (
    HABITUATION,
    MESSAGES,
    RISK,
    CoachEnv,
    coach,
    fixed_messages,
)
from tacit_lab.cases.outcome import CaseOutcome, HeadStart, collect, findings, head_start, online

PEOPLE, EPSILONS = (10_000, 100_000), (1.0, 2.0, 4.0, 8.0)
AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tacit-joint (joint)": ("tacit-joint", {}),
    "tacit-search (joint)": ("tacit-search", {"model": "joint"}),
    "shuffle-obi (shuffle)": ("shuffle-obi", {}),
    "tacit-search (shuffle)": ("tacit-search", {"model": "shuffle"}),
    "tacit-local (local)": ("tacit-local", {}),
    "tacit-search (local)": ("tacit-search", {"model": "local"}),
}
"""Who can be tried, by the model of trust."""

USUAL = (
    "tacit-joint (joint)",
    "tacit-search (joint)",
    "tacit-local (local)",
    "tacit-search (local)",
)
"""Who is, unless others are named: a curator or nobody is trusted."""

NOTES = (
    "What is learned is scored in the discretised world, whose optimum is known; there a person "
    "who comes back begins anew. The guarantee covers everything that one person does.",
    "Trials of the usual size (37 people in HeartSteps V1, 70 in Oralytics) are far below the "
    "numbers of people here.",
    "Counting first visits assumes that what follows depends on the declared state. Where people "
    "get used to messages and the state does not say so, first visits are those of novices and "
    "promise too much: see the table.",
)

PLANS = 200
"""Policies of the learner that promises nothing; more cost time only."""


def coach_study(
    people: Sequence[int] = PEOPLE,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 10,
    seed: int = 0,
    agents: Sequence[str] = USUAL,
    returns: int = 1,
) -> Iterator[CaseOutcome]:
    """Values of the policies that are left after so many people, ``returns`` episodes each.

    In the table a person who comes back begins anew; the guarantee covers all of their episodes.
    """
    problem = coach()
    for n in people:
        for called in agents:
            name, parameters = AGENTS[called]
            for epsilon in epsilons:
                more = {"called": called, "returns": returns, **parameters}
                yield online(problem, name, n, epsilon, runs, seed, **more)


def references(problem: TabularMDP) -> dict[str, float]:
    """Values without learning, and at best."""
    fixed = {
        name: problem.value(StochasticPolicy(table))
        for name, table in fixed_messages(problem).items()
    }
    return {
        "random messages": problem.baseline()[1],
        "no message": fixed[MESSAGES[0]],
        "best fixed message": max(fixed.values()),
        "best": problem.optimal_value(),
    }


def without_privacy(people: Sequence[int], runs: int, seed: int) -> dict[str, float]:
    """What psrl leaves, which sees everything and promises nothing: by number of people."""
    problem, found = coach(), {}
    for n in people:
        outcome = online(problem, "psrl", n, None, runs, seed, every=max(1, n // PLANS))
        found[f"not private, {n:,} people"] = outcome.mean.value
    return found


def coach_start(people: int, epsilon: float, runs: int, seed: int) -> HeadStart:
    """What the first people lose, after logs of an app that mostly keeps quiet."""
    problem = coach()
    behaviour, logs = _mostly_quiet(problem), []
    for run in range(runs):
        log = simulate_log(problem, behaviour, people, stream(seed + run, 0, "coach log"))
        mapped = _mapping(problem.states)
        made = offline(log, mapped, TacitOffline(epsilon), noise="simulated", seed=seed + run)
        logs.append(made)
    return head_start(problem, logs, people, epsilon, seed)


class Bias(NamedTuple):
    """What a log says of a policy, beside the truth."""

    inside: Interval  # habituation is part of the declared state
    outside: Interval  # it is not
    truth: float


def habituation_bias(people: int = 100_000, epsilon: float = 8.0, seed: int = 0) -> dict[str, Bias]:
    """What first visits say of fixed messages, with habituation in the declared state and without.

    First visits of a pair that leaves out habituation are those of people who are not used to
    messages yet: they promise too much for whoever gets one every day. ``OfflineResult.value_of``
    withholds that value, since what people earned shows that the models are wrong; here is what
    these say.
    """
    problem = coach()
    behaviour = _mostly_quiet(problem)
    log = simulate_log(problem, behaviour, people, stream(seed, 0, "coach log"))
    agent = TacitOffline(epsilon)
    full = offline(log, _mapping(problem.states), agent, noise="simulated", seed=seed)
    short = _without_habituation(log)
    states = 2 * len(RISK) + 1
    cut = offline(short, _mapping(states), agent, noise="simulated", seed=seed)
    models = Models(cut.mapped.task, cut.release, cut.mapped.ended, np.random.default_rng(0))
    found = {}
    for name in MESSAGES[:2]:
        table = fixed_messages(problem)[name]
        inside = full.value_of(StochasticPolicy(table))
        assert inside is not None
        outside = models.values(table[:, :states]).interval(0.0, cut.mapped.max_return)
        found[name] = Bias(inside, outside, problem.value(StochasticPolicy(table)))
    return found


def _mostly_quiet(problem: TabularMDP) -> StochasticPolicy:
    """Nothing or any message on most days: people stay, and every habituation is met."""
    row = np.array([0.35, 0.45, 0.1, 0.1])
    return StochasticPolicy(np.broadcast_to(row, (problem.horizon, problem.states, len(row))))


def _without_habituation(log: Log) -> Log:
    inner = len(HABITUATION) * len(RISK)

    def cut(states: Array) -> Array:
        place = states // inner * len(RISK) + states % len(RISK)
        return np.where(states == 2 * inner, 2 * len(RISK), place).astype(np.int32)

    return log._replace(state=cut(log.state), after=cut(log.after))


def _mapping(states: int) -> LogMapping:
    names = ("person", "step", "reward", "propensity")
    return make_mapping(
        {
            "data": {"name": "coach", "people": 10_000_000},
            "columns": {name: name for name in names},
            "state": [{"column": "state", "size": states}],
            "action": {"column": "action", "values": list(MESSAGES)},
            "task": {"horizon": 50, "terminal": [states - 1]},
        }
    )


class Tried(NamedTuple):
    """What a policy earns with people of several kinds, between the cells."""

    first: Interval  # in the first episode of a person
    again: Interval  # when they come back, as used to messages as they left


def on_people(policy: Policy, people: int = 300, seed: int = 0) -> Tried:
    """Try a policy on people, each of whom comes back once."""
    world = CoachEnv()
    earned = np.zeros((2, people))
    for k in range(people):
        rng = np.random.default_rng(seed + k)
        for time in range(2):
            options = {"return": time > 0}
            seen, _ = world.reset(seed=seed + k if time == 0 else None, options=options)
            for day in range(world.horizon):
                seen, paid, gone, _, _ = world.step(policy.act(int(seen), day, rng))
                earned[time, k] += paid
                if gone:
                    break
    return Tried(*(mean_interval(row) for row in earned))


def tried_policies(outcomes: Sequence[CaseOutcome], seed: int) -> dict[str, Tried]:
    """The message for any day, the best policy of the table, and the best that was learned."""
    problem = coach()
    best = max(outcomes, key=lambda one: one.mean.value)
    assert best.policy is not None
    table = fixed_messages(problem)[MESSAGES[1]]
    policies: dict[str, Policy] = {
        "one for any day, every day": StochasticPolicy(table),
        "the best of the table": TabularPolicy(problem.optimal_q().argmax(axis=2)),
        f"{best.agent}, {best.people:,} people, epsilon {best.epsilon:g}": best.policy,
    }
    return {name: on_people(policy, seed=seed) for name, policy in policies.items()}


def study(
    people: Sequence[int] = PEOPLE,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 10,
    seed: int = 0,
    agents: Sequence[str] = USUAL,
    returns: int = 1,
    watch: Callable[[CaseOutcome], None] = lambda outcome: None,
) -> dict[str, Any]:
    """What a private policy is worth for the coach, by people and epsilon."""
    known = references(coach()) | without_privacy(people, runs, seed)
    outcomes, starts = collect(
        coach_study(people, epsilons, runs, seed, agents, returns),
        lambda n, level: coach_start(n, level, runs, seed),
        watch,
    )
    said = habituation_bias(seed=seed)
    tried = tried_policies(outcomes, seed)
    tables = {
        "What one log says of a message every day, with 95% intervals over people and noise": (
            ["message every day", "habituation declared", "left out", "truth"],
            [[name, one.inside, one.outside, f"{one.truth:.4g}"] for name, one in said.items()],
        ),
        "Tried on people of several kinds, with 95% intervals over people": (
            ["policy", "people of several kinds", "when they come back"],
            [[name, *one] for name, one in tried.items()],
        ),
    }
    limit = "best fixed message"
    return findings("coach", known, limit, "mostly", outcomes, starts, NOTES, tables)
