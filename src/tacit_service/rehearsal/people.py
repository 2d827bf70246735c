"""Simulated people for a fleet: one kind of them, or several, with exact values for scoring.

Only a fleet imports this: it knows the truth about its people, which no collector and no planner
does.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray, frozen
from tacit.client.terms import Terms
from tacit.errors import InvalidInput, TacitError
from tacit.kernels.raw.rollout import draw_next, draw_reward, uniforms_per_episode
from tacit.kernels.sampling import draw
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.problems.catalogue import make_problem
from tacit.problems.episodic import CompiledEpisodes
from tacit.problems.tabular import TabularMDP, cumulative
from tacit.task.task import Task
from tacit.validate import number


class TablePeople:
    """People of several types, each living in a problem of its own; nobody's type is observed.

    Args:
        types: share of each type, and its problem; shares are scaled to add up to 1.
        references: policies worth comparing with, by name.
    """

    def __init__(
        self,
        types: Sequence[tuple[float, TabularMDP]],
        references: Mapping[str, Policy] | None = None,
    ) -> None:
        if not types:
            raise InvalidInput("a population needs at least one type of people")
        shares = np.array([number(share, "share", low=0.0, low_open=True) for share, _ in types])
        self.shares: Array = frozen(shares / shares.sum())
        self.problems = tuple(problem for _, problem in types)
        first = self.problems[0]
        self.sizes = first.horizon, first.states, first.actions
        self.horizon, self.states, self.actions = self.sizes
        for problem in self.problems:
            if (problem.horizon, problem.states, problem.actions) != self.sizes:
                raise InvalidInput("all types of people must have the same states and actions")
            if not np.array_equal(problem.pairs.number, first.pairs.number):
                raise InvalidInput(
                    "all types of people must have the same terminal states and allowed actions"
                )
        self.homogeneous = all(problem.homogeneous for problem in self.problems)
        uniform = uniform_policy(self.horizon, self.states, self.actions, first.pairs)
        self.references: dict[str, Policy] = {"uniform": uniform, **(references or {})}
        for policy in self.references.values():
            first.check_policy(policy)
        self._cdf = cumulative(self.shares)

    def person(self, u: float) -> TabularMDP:
        """The problem of a person drawn with the uniform number u."""
        return self.problems[int(np.searchsorted(self._cdf, u, side="right"))]

    measured = "exact"

    def live(self, episode: Any, rng: np.random.Generator, luck: float, terms: Terms) -> None:
        """One episode of a person drawn with the uniform number ``luck``."""
        truth, u = self.person(luck).truth, rng.random(uniforms_per_episode(self.horizon))
        low, high = terms.reward_range
        state = draw(truth.initial_cdf, u[0])
        for h in range(self.horizon):
            action = episode.act(state)
            reward = draw_reward(truth, h, state, action, u[3 * h + 2])
            state = draw_next(truth, h, state, action, u[3 * h + 3])
            episode.observe(low + reward * (high - low), state)
            if episode.done:
                break

    def value(self, policy: Policy) -> float:
        """Exact value of a policy, averaged over the people."""
        return float(self.shares @ [problem.value(policy) for problem in self.problems])

    def earned(self, policy: Policy, terms: Terms) -> float:
        """The same in the operator's own units."""
        return self._natural(self.value(policy), terms)

    def _natural(self, value: float, terms: Terms) -> float:
        low, high = terms.reward_range
        return self.horizon * low + (high - low) * value

    def limits(self, terms: Terms) -> dict[str, float]:
        """The value of the best policy, and what no policy can exceed."""
        ceiling = self._natural(self.ceiling(), terms)
        return {"best": self.earned(self.best(), terms), "ceiling": ceiling}

    def ceiling(self) -> float:
        """What no policy can exceed: every type with its own best policy."""
        return float(self.shares @ [problem.optimal_value() for problem in self.problems])

    def best(self) -> TabularPolicy:
        """The optimal policy of one type; of several the best that step-by-step search finds.

        Backward and again: at every step and state the action of largest value, given how many
        people of each type are there, until nothing changes. No policy is better in one place.
        """
        table = np.argmax(
            np.tensordot(self.shares, [p.optimal_q() for p in self.problems], axes=1), axis=2
        )
        for _ in range(100):
            better = self._improve(table)
            if np.array_equal(better, table):
                break
            table = better
        return TabularPolicy(table)

    def _improve(self, table: IntArray) -> IntArray:
        table = table.copy()
        for h in reversed(range(self.horizon)):
            gain = np.zeros((self.states, self.actions))
            for share, problem in zip(self.shares, self.problems, strict=True):
                V = problem.values(TabularPolicy(table))
                P, R = problem.P[h % len(problem.P)], problem.R[h % len(problem.R)]
                gain += share * _met(problem, table, h)[:, None] * (R + P @ V[h + 1])
            kept = gain[np.arange(self.states), table[h]]
            gain[self.problems[0].pairs.number < 0] = -np.inf
            best = np.argmax(gain, axis=1)
            table[h] = np.where(gain.max(axis=1) > kept + 1e-12, best, table[h])
        return table


def _met(problem: TabularMDP, table: IntArray, step: int) -> Array:
    """Chance of every state at a step under a table of actions."""
    chance = np.array(problem.initial)
    everywhere = np.arange(problem.states)
    for h in range(step):
        chance = chance @ problem.P[h % len(problem.P)][everywhere, table[h]]
    return chance


class SearchPeople:
    """People of a search, all in one world; what policies return them is found by playing."""

    measured = "mean of 200 episodes"

    def __init__(self, problem: CompiledEpisodes) -> None:
        self.problem = problem
        self.references: dict[str, Policy] = {"uniform": problem.uniform()}

    def live(self, episode: Any, rng: np.random.Generator, luck: float, terms: Terms) -> None:
        """One episode, step by step."""
        self.problem.through(int(rng.integers(2**62)), episode.act, episode.observe)

    def earned(self, policy: Policy, terms: Terms) -> float:
        """Mean return of the same 200 episodes for every policy."""
        rng = np.random.default_rng(0)
        return float(np.mean([self.problem.rollout(policy, rng).rewards[0] for _ in range(200)]))

    def limits(self, terms: Terms) -> dict[str, float]:
        """Nobody knows them."""
        return {}


def fleet_population(
    section: Mapping[str, Any], folder: Path, task: Task
) -> TablePeople | SearchPeople:
    """The people that the [fleet] section of a deployment names, if they fit its task."""
    options = dict(section)
    if "python" in options:
        made = _call(str(options.pop("python")), folder, options)
    elif "problem" in options:
        made = make_problem(str(options.pop("problem")), **options)
    else:
        raise InvalidInput(
            "the deployment has no simulated people: write [fleet] with problem = "
            '"river-swim", or python = "file.py:function"'
        )
    if task.family == "episodic":
        return _searchers(made, task)
    people = TablePeople([(1.0, made)]) if isinstance(made, TabularMDP) else made
    if not isinstance(people, TablePeople):
        raise InvalidInput(f"[fleet] makes a {type(made).__name__}; it must be a tabular problem")
    wanted = task.horizon, task.sizes["states"], task.sizes["actions"]
    if people.sizes != wanted:
        raise InvalidInput(
            f"the people of [fleet] have horizon {people.horizon}, {people.states} states and "
            f"{people.actions} actions, but [task] says {wanted[0]}, {wanted[1]} and {wanted[2]}"
        )
    theirs, ours = people.problems[0].pairs.number >= 0, task.pairs.number >= 0
    if not np.array_equal(theirs, ours):
        s = int(np.argmax((theirs != ours).any(axis=1)))
        what = [", ".join(map(str, np.flatnonzero(row[s]))) or "none" for row in (theirs, ours)]
        raise InvalidInput(
            f"the people of [fleet] have other terminal states or allowed actions than [task] "
            f"says: in state {s} they may play {what[0]}, by [task] {what[1]} (none: it is "
            'terminal); let [fleet] python = "file.py:function" make a TabularMDP with the same '
            "terminal and allowed"
        )
    if task.homogeneous and not people.homogeneous:
        raise InvalidInput(
            "the people of [fleet] behave differently from step to step, but [task] says "
            "homogeneous = true"
        )
    return people


def _searchers(made: object, task: Task) -> SearchPeople:
    if not isinstance(made, CompiledEpisodes):
        raise InvalidInput(
            f"[fleet] makes a {type(made).__name__}; people of a search live in a compiled world, "
            'such as problem = "cart-pole"'
        )
    if (made.horizon, made.sizes) != (task.horizon, dict(task.sizes)):
        raise InvalidInput(
            f"the people of [fleet] have horizon {made.horizon} and sizes {made.sizes}, but [task] "
            f"says {task.horizon} and {dict(task.sizes)}"
        )
    return SearchPeople(made)


def _call(where: str, folder: Path, parameters: Mapping[str, Any]) -> Any:
    """Run a function of a Python file of the operator's own."""
    file, _, name = where.partition(":")
    path = folder / file
    spec = importlib.util.spec_from_file_location(f"tacit_fleet_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file() or not name:
        raise InvalidInput(f'[fleet] python = "{where}", but it must be "file.py:function"')
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        return getattr(module, name)(**parameters)
    except TacitError:
        raise
    except Exception as error:
        raise InvalidInput(f"[fleet] {where} failed: {type(error).__name__}: {error}") from None
