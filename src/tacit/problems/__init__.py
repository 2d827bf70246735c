"""What is learned: the secret truth, its exact optimum, and the exact value of any policy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit.problems.catalogue import make_problem, problems

if TYPE_CHECKING:
    from tacit.problems.base import Problem
    from tacit.problems.linear import LinearMDP
    from tacit.problems.lq import LQSystem
    from tacit.problems.mixture import LinearMixtureMDP, bilinear_features
    from tacit.problems.tabular import TabularMDP

__all__ = [
    "LQSystem",
    "LinearMDP",
    "LinearMixtureMDP",
    "Problem",
    "TabularMDP",
    "bilinear_features",
    "make_problem",
    "problems",
]

_MODULES = {
    "LQSystem": "lq",
    "LinearMDP": "linear",
    "LinearMixtureMDP": "mixture",
    "Problem": "base",
    "TabularMDP": "tabular",
    "bilinear_features": "mixture",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tacit.problems' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tacit.problems.{_MODULES[name]}"), name)
