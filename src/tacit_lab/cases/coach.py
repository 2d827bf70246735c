"""The coach: from how many people on a private app beats the best message that never thinks.

Everything is learned in the discretised world, whose optimum is known; :func:`on_people` tries a
policy on people of several kinds, who come back.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tacit.agents.catalogue import make_agent
from tacit.arrays import Array
from tacit.logs.mapping import LogMapping
from tacit.planners.evaluation.by_log import Models
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.problems.tabular import TabularMDP
from tacit.trajectory import Log
from tacit.util.intervals import Interval, mean_interval
from tacit_lab.cases.coach_world import HABITUATION, MESSAGES, RISK, CoachEnv, coach, fixed_messages
from tacit_lab.cases.outcome import CaseOutcome, CaseSize, LoggedWorld, declared, findings, online

AGENTS: dict[str, dict[str, Any]] = {
    "tacit-joint (joint)": {"name": "tacit-joint"},
    "tacit-search (joint)": {"name": "tacit-search", "model": "joint"},
    "shuffle-obi (shuffle)": {"name": "shuffle-obi", "calibration": "tight"},
    "tacit-search (shuffle)": {"name": "tacit-search", "model": "shuffle"},
    "tacit-local (local)": {"name": "tacit-local"},
    "tacit-search (local)": {"name": "tacit-search", "model": "local"},
}
"""Who can be tried, by the model of trust."""

USUAL = tuple(name for name in AGENTS if not name.endswith("(shuffle)"))
"""Who is, unless others are named: a curator or nobody is trusted."""

SIZE = CaseSize(people=(10_000, 100_000), epsilons=(1.0, 2.0, 4.0, 8.0), agents=USUAL)

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


def coach_study(size: CaseSize = SIZE) -> Iterator[CaseOutcome]:
    """Values of the policies that are left after so many people, ``returns`` episodes each.

    In the table a person who comes back begins anew; the guarantee covers all of their episodes.
    """
    problem = coach()
    for n, called, epsilon in itertools.product(size.people, size.agents, size.epsilons):
        yield online(problem, make_agent(**AGENTS[called], epsilon=epsilon), n, size, called)


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


def without_privacy(size: CaseSize) -> dict[str, float]:
    """What psrl leaves, which sees everything and promises nothing: by number of people."""
    problem, values, once = coach(), {}, replace(size, returns=1)
    for n in size.people:
        agent = make_agent("psrl", every=max(1, n // PLANS))
        values[f"not private, {n:,} people"] = online(problem, agent, n, once).mean.value
    return values


def logged_coach() -> LoggedWorld:
    """The world of an app that mostly keeps quiet: people stay, and every habituation is met."""
    problem = coach()
    row = np.array([0.35, 0.45, 0.1, 0.1])
    quiet = np.broadcast_to(row, (problem.horizon, problem.states, len(row)))
    return LoggedWorld(problem, StochasticPolicy(quiet), _mapping(problem.states), "coach log")


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
    world, states = logged_coach(), 2 * len(RISK) + 1
    problem, log = world.problem, world.log(people, seed)
    full = world.learn(log, epsilon, seed)
    narrow = replace(world, mapped=_mapping(states))
    cut = narrow.learn(_without_habituation(log), epsilon, seed)
    models = Models(cut.mapped.task, cut.release, cut.mapped.ended, np.random.default_rng(0))
    biases = {}
    for name in MESSAGES[:2]:
        table = fixed_messages(problem)[name]
        inside = full.value_of(StochasticPolicy(table))
        assert inside is not None
        outside = models.values(table[:, :states]).interval(0.0, cut.mapped.max_return)
        biases[name] = Bias(inside, outside, problem.value(StochasticPolicy(table)))
    return biases


def _without_habituation(log: Log) -> Log:
    inner = len(HABITUATION) * len(RISK)

    def cut(states: Array) -> Array:
        place = states // inner * len(RISK) + states % len(RISK)
        return np.where(states == 2 * inner, 2 * len(RISK), place).astype(np.int32)

    return log._replace(state=cut(log.state), after=cut(log.after))


def _mapping(states: int) -> LogMapping:
    action = {"column": "action", "values": list(MESSAGES)}
    return declared("coach", states, action, {"horizon": 50, "terminal": [states - 1]})


class Tried(NamedTuple):
    """What a policy earns with people of several kinds, between the cells."""

    first: Interval  # in the first episode of a person
    later: Interval  # when they come back, as used to messages as they left


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


def study(size: CaseSize = SIZE) -> dict[str, Any]:
    """What a private policy is worth for the coach, by people and epsilon."""
    known = references(coach()) | without_privacy(size)
    outcomes, starts = logged_coach().collect(coach_study(size), size)
    biases = habituation_bias(seed=size.seed)
    tried = tried_policies(outcomes, size.seed)
    tables = {
        "What one log says of a message every day, with 95% intervals over people and noise": (
            ["message every day", "habituation declared", "left out", "truth"],
            [[name, one.inside, one.outside, f"{one.truth:.4g}"] for name, one in biases.items()],
        ),
        "Tried on people of several kinds, with 95% intervals over people": (
            ["policy", "people of several kinds", "when they come back"],
            [[name, *one] for name, one in tried.items()],
        ),
    }
    limit = "best fixed message"
    return findings("coach", known, limit, "mostly", outcomes, starts, NOTES, tables)
