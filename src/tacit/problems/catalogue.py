"""Problems by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from tacit.problems.base import Problem
from tacit.problems.benchmarks import hard_tree, random_mdp, river_swim
from tacit.problems.from_gymnasium import gymnasium_problem
from tacit.problems.linear import low_rank, synthetic_linear
from tacit.problems.lq import lq_double_integrator, lq_scalar, lq_thermal, random_lq
from tacit.problems.mixture import hard_mixture, linear_bandit, remap_walk
from tacit.registry import Registered, Registry

problems: Registry[Problem] = Registry("problem")
problems.add("random-mdp", random_mdp, "random transitions and 0/1 rewards, one instance per seed")
problems.add("river-swim", river_swim, "swim upstream for a large reward: exploration matters")
problems.add("hard-tree", hard_tree, "the lower-bound tree: one leaf is slightly better")
problems.add("synthetic-linear", synthetic_linear, "two states, 100 actions, ten known features")
problems.add("low-rank", low_rank, "a random linear MDP: many states, few features")
problems.add("lq-scalar", lq_scalar, "linear control: one state, one input")
problems.add(
    "lq-double-integrator", lq_double_integrator, "linear control: a damped double integrator"
)
problems.add("lq-thermal", lq_thermal, "linear control: two heated zones, air and wall")
problems.add("random-lq", random_lq, "linear control: a random stable system per seed")
problems.add("remap-walk", remap_walk, "a linear mixture of four known kernels; S hardly matters")
problems.add("hard-mixture", hard_mixture, "the lower-bound linear mixture: hidden signs per stage")
problems.add("linear-bandit", linear_bandit, "a contextual linear bandit: the mixture with H = 1")

GYMNASIUM: Registered[Problem] = Registered(
    "gym:ID", gymnasium_problem, "a Gymnasium toy-text environment, for example gym:FrozenLake-v1"
)


def problem_entry(name: str) -> Registered[Problem]:
    """The entry behind a name, also for ``gym:ID``."""
    if name.startswith("gym:"):
        return dataclasses.replace(GYMNASIUM, name=name)
    return problems.entry(name)


def make_problem(name: str, **parameters: Any) -> Problem:
    """The problem of that name."""
    if name.startswith("gym:"):
        problem_entry(name).check(parameters)
        return gymnasium_problem(name.removeprefix("gym:"), **parameters)
    return problems.make(name, parameters)
