"""tacit: reinforcement learning that keeps its users' secrets.

>>> import tacit
>>> problem = tacit.problem("river-swim", states=4, horizon=8)
>>> result = tacit.simulate(problem, tacit.agent("psrl"), episodes=200, runs=2)
>>> result.regret.shape == (2, len(result.episodes))
True
>>> result.guarantee.model
'none'

Everything heavy is imported on first use, so that ``import tacit`` and ``tacit --help`` are quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit._version import __version__

if TYPE_CHECKING:
    from tacit.agents import Agent
    from tacit.agents import make_agent as agent
    from tacit.auditing.agent import audit
    from tacit.bounds import RegretBound, bound
    from tacit.errors import InvalidInput, TacitError, UnknownName
    from tacit.experiment import Experiment, guarantee, simulate
    from tacit.learned_policy import LearnedPolicy, load_policy
    from tacit.logs.offline import evaluate, offline
    from tacit.privacy import Guarantee
    from tacit.problems import LinearMDP, LinearMixtureMDP, LQSystem, TabularMDP
    from tacit.problems import make_problem as problem
    from tacit.problems.environment import Environment, environment
    from tacit.sample_size import SampleSize, sample_size
    from tacit.simulation.attendance import Attendance
    from tacit.simulation.result import Result
    from tacit.task.participation import Participation

_PUBLIC = {
    "Agent": ("tacit.agents", "Agent"),
    "Attendance": ("tacit.simulation.attendance", "Attendance"),
    "Environment": ("tacit.problems.environment", "Environment"),
    "Experiment": ("tacit.experiment", "Experiment"),
    "Guarantee": ("tacit.privacy", "Guarantee"),
    "InvalidInput": ("tacit.errors", "InvalidInput"),
    "LearnedPolicy": ("tacit.learned_policy", "LearnedPolicy"),
    "LinearMDP": ("tacit.problems", "LinearMDP"),
    "LQSystem": ("tacit.problems", "LQSystem"),
    "LinearMixtureMDP": ("tacit.problems", "LinearMixtureMDP"),
    "Participation": ("tacit.task.participation", "Participation"),
    "RegretBound": ("tacit.bounds", "RegretBound"),
    "Result": ("tacit.simulation.result", "Result"),
    "SampleSize": ("tacit.sample_size", "SampleSize"),
    "TabularMDP": ("tacit.problems", "TabularMDP"),
    "TacitError": ("tacit.errors", "TacitError"),
    "UnknownName": ("tacit.errors", "UnknownName"),
    "agent": ("tacit.agents", "make_agent"),
    "audit": ("tacit.auditing.agent", "audit"),
    "bound": ("tacit.bounds", "bound"),
    "environment": ("tacit.problems.environment", "environment"),
    "evaluate": ("tacit.logs.offline", "evaluate"),
    "guarantee": ("tacit.experiment", "guarantee"),
    "load_policy": ("tacit.learned_policy", "load_policy"),
    "offline": ("tacit.logs.offline", "offline"),
    "problem": ("tacit.problems", "make_problem"),
    "sample_size": ("tacit.sample_size", "sample_size"),
    "simulate": ("tacit.experiment", "simulate"),
}

__all__ = [
    "Agent",
    "Attendance",
    "Environment",
    "Experiment",
    "Guarantee",
    "InvalidInput",
    "LearnedPolicy",
    "LinearMDP",
    "LQSystem",
    "LinearMixtureMDP",
    "Participation",
    "RegretBound",
    "Result",
    "SampleSize",
    "TabularMDP",
    "TacitError",
    "UnknownName",
    "__version__",
    "agent",
    "audit",
    "bound",
    "environment",
    "evaluate",
    "guarantee",
    "load_policy",
    "offline",
    "problem",
    "sample_size",
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
