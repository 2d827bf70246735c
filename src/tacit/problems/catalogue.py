"""Problems by name; what makes one is imported when it is first asked for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidInput
from tacit.util.registry import Registered, Registry

if TYPE_CHECKING:
    from tacit.problems.base import Problem

PROBLEMS = {
    "random-mdp": (
        "tabular_benchmarks:random_mdp",
        "random transitions and 0/1 rewards, one instance per seed",
    ),
    "river-swim": (
        "tabular_benchmarks:river_swim",
        "swim upstream for a large reward: exploration matters",
    ),
    "hard-tree": (
        "tabular_benchmarks:hard_tree",
        "the lower-bound tree: one leaf is slightly better",
    ),
    "synthetic-linear": ("linear:synthetic_linear", "two states, 100 actions, ten known features"),
    "low-rank": ("linear:low_rank", "a random linear MDP: many states, few features"),
    "lq-scalar": ("lq:lq_scalar", "linear control: one state, one input"),
    "lq-double-integrator": (
        "lq:lq_double_integrator",
        "linear control: a damped double integrator",
    ),
    "lq-thermal": ("lq:lq_thermal", "linear control: two heated zones, air and wall"),
    "random-lq": ("lq:random_lq", "linear control: a random stable system per seed"),
    "remap-walk": (
        "mixture:remap_walk",
        "a linear mixture of four known kernels; S hardly matters",
    ),
    "hard-mixture": (
        "mixture:hard_mixture",
        "the lower-bound linear mixture: hidden signs per stage",
    ),
    "linear-bandit": (
        "mixture:linear_bandit",
        "a contextual linear bandit: the mixture with H = 1",
    ),
    "cart-pole": ("classic_control:cart_pole", "search: keep a pole up on a cart, 500 steps"),
    "acrobot": ("classic_control:acrobot", "search: swing up two links"),
    "mountain-car": ("classic_control:mountain_car", "search: rock a weak car up a hill"),
    "mountain-car-continuous": (
        "classic_control:mountain_car_continuous",
        "search: the same, with a price of force",
    ),
    "pendulum": ("classic_control:pendulum", "search: swing a pendulum up and keep it there"),
    "episodes": (
        "classic_control:episodes_of",
        "search: a table or a linear system, without its model",
    ),
}
"""By name, where its function is in this package, and what it is."""

problems: Registry[Problem] = Registry("problem", "tacit.problems", PROBLEMS)

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
        known = CLASSIC.get(known_id)
        if known is not None:
            raise InvalidInput(
                f"{name} has no table; it is the problem {known().name}, for agents that search "
                f"(tacit-search), and play:{known_id} plays it"
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
