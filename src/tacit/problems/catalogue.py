"""Problems by name; what makes one is imported when it is first asked for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidInput
from tacit.util.registry import Registered, Registry

if TYPE_CHECKING:
    from tacit.problems.base import Problem

PROBLEMS = {
    "tabular_benchmarks": {
        "random-mdp": "random transitions and 0/1 rewards, one instance per seed",
        "river-swim": "swim upstream for a large reward: exploration matters",
        "hard-tree": "the lower-bound tree: one leaf is slightly better",
    },
    "linear": {
        "synthetic-linear": "two states, 100 actions, ten known features",
        "low-rank": "a random linear MDP: many states, few features",
    },
    "lq": {
        "lq-scalar": "linear control: one state, one input",
        "lq-double-integrator": "linear control: a damped double integrator",
        "lq-thermal": "linear control: two heated zones, air and wall",
        "random-lq": "linear control: a random stable system per seed",
    },
    "mixture": {
        "remap-walk": "a linear mixture of four known kernels; S hardly matters",
        "hard-mixture": "the lower-bound linear mixture: hidden signs per stage",
        "linear-bandit": "a contextual linear bandit: the mixture with H = 1",
    },
    "classic_control": {
        "cart-pole": "search: keep a pole up on a cart, 500 steps",
        "acrobot": "search: swing up two links",
        "mountain-car": "search: rock a weak car up a hill",
        "mountain-car-continuous": "search: the same, with a price of force",
        "pendulum": "search: swing a pendulum up and keep it there",
        "episodes": "search: a table or a linear system, without its model",
    },
}
"""What each module of this package makes, by functions called as the problem is, and what it is."""

problems: Registry[Problem] = Registry(
    "problem",
    "tacit.problems",
    {
        name: (f"{module}:{name.replace('-', '_')}", about)
        for module, named in PROBLEMS.items()
        for name, about in named.items()
    },
)

GYMNASIUM: Registered[Problem] = Registered(
    "gym:ID",
    problems.source("gym:ID", "tacit.problems.gymnasium.tables:gymnasium_problem"),
    "a Gymnasium toy-text environment, for example gym:FrozenLake-v1",
)


def problem_entry(name: str) -> Registered[Problem]:
    """The entry behind a name, also for ``gym:ID``."""
    if name.startswith("gym:"):
        return dataclasses.replace(GYMNASIUM, name=name)
    return problems.entry(name)


def make_problem(name: str, **parameters: Any) -> Problem:
    """The problem of that name.

    >>> make_problem("river-swim", states=4, horizon=8).name
    'river-swim'
    """
    if name.startswith("gym:"):
        from tacit.problems.classic_control import CLASSIC

        known_id = name.removeprefix("gym:")
        if known_id in CLASSIC:
            raise InvalidInput(
                f"{name} has no table; it is the problem {CLASSIC[known_id]().name}, for agents "
                f"that search (tacit-search), and play:{known_id} plays it"
            )
        if "horizon" not in parameters:
            raise InvalidInput(
                f"{name} needs the parameter 'horizon', the steps of an episode: -P horizon=100, "
                "or horizon=100 in Python"
            )
        problem_entry(name).check(parameters)
        from tacit.problems.gymnasium.tables import gymnasium_problem

        return gymnasium_problem(known_id, **parameters)
    return problems.make(name, parameters)
