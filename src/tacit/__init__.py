"""tacit: reinforcement learning that keeps its users' secrets.

>>> import tacit
>>> problem = tacit.problem("river-swim", states=4, horizon=8)
>>> result = tacit.simulate(problem, tacit.agent("psrl"), episodes=200, seeds=2)
>>> result.regret.shape == (2, len(result.episodes))
True
>>> result.guarantee.model
'none'

Everything heavy is imported on first use, so that ``import tacit`` and ``tacit --help`` are quick.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tacit._version import __version__

if TYPE_CHECKING:
    from tacit.agents import Agent
    from tacit.agents import make_agent as agent
    from tacit.auditing.agent import audit
    from tacit.errors import InvalidInput, TacitError, UnknownName
    from tacit.forecast import guarantee
    from tacit.privacy import Guarantee
    from tacit.problems import LinearMDP, LinearMixtureMDP, LQSystem, TabularMDP
    from tacit.problems import make_problem as problem
    from tacit.problems.discretized import Discretized
    from tacit.simulation import LearnResult, Result, learn, simulate

_PUBLIC = {
    "Agent": ("tacit.agents", "Agent"),
    "Discretized": ("tacit.problems.discretized", "Discretized"),
    "Guarantee": ("tacit.privacy", "Guarantee"),
    "InvalidInput": ("tacit.errors", "InvalidInput"),
    "LearnResult": ("tacit.simulation", "LearnResult"),
    "LinearMDP": ("tacit.problems", "LinearMDP"),
    "LQSystem": ("tacit.problems", "LQSystem"),
    "LinearMixtureMDP": ("tacit.problems", "LinearMixtureMDP"),
    "Result": ("tacit.simulation", "Result"),
    "TabularMDP": ("tacit.problems", "TabularMDP"),
    "TacitError": ("tacit.errors", "TacitError"),
    "UnknownName": ("tacit.errors", "UnknownName"),
    "agent": ("tacit.agents", "make_agent"),
    "audit": ("tacit.auditing.agent", "audit"),
    "guarantee": ("tacit.forecast", "guarantee"),
    "learn": ("tacit.simulation", "learn"),
    "problem": ("tacit.problems", "make_problem"),
    "simulate": ("tacit.simulation", "simulate"),
}

__all__ = [
    "Agent",
    "Discretized",
    "Guarantee",
    "InvalidInput",
    "LearnResult",
    "LinearMDP",
    "LQSystem",
    "LinearMixtureMDP",
    "Result",
    "TabularMDP",
    "TacitError",
    "UnknownName",
    "__version__",
    "agent",
    "audit",
    "guarantee",
    "learn",
    "problem",
    "simulate",
]


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _PUBLIC[name]
    except KeyError:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if "gymnasium" in sys.modules:  # then its users expect tacit's environments to be registered
    importlib.import_module("tacit.problems.environments")
