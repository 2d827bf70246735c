"""What is learned: the secret truth, its exact optimum, and the exact value of any policy."""

from tacit.problems.base import Problem
from tacit.problems.catalogue import make_problem, problems
from tacit.problems.environments import LQEnv, TabularEnv
from tacit.problems.linear import LinearMDP
from tacit.problems.lq import LQSystem
from tacit.problems.mixture import LinearMixtureMDP
from tacit.problems.tabular import TabularMDP

__all__ = [
    "LQEnv",
    "LQSystem",
    "LinearMDP",
    "LinearMixtureMDP",
    "Problem",
    "TabularEnv",
    "TabularMDP",
    "make_problem",
    "problems",
]
