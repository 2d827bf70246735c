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

import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tacit._version import __version__

if TYPE_CHECKING:
    from tacit.agents import Agent
    from tacit.agents import make_agent as agent
    from tacit.auditing.agent import audit
    from tacit.errors import InvalidInput, TacitError, UnknownName
    from tacit.forecast import guarantee
    from tacit.learned_policy import LearnedPolicy, load_policy
    from tacit.logs.offline import evaluate, offline
    from tacit.privacy import Guarantee
    from tacit.problems import LinearMDP, LinearMixtureMDP, LQSystem, TabularMDP
    from tacit.problems import make_problem as problem
    from tacit.problems.discretized import Discretized
    from tacit.sample_size import Plan, plan
    from tacit.simulation import LearnResult, Result, learn, simulate
    from tacit.task.participation import Participation

_PUBLIC = {
    "Agent": ("tacit.agents", "Agent"),
    "Discretized": ("tacit.problems.discretized", "Discretized"),
    "Guarantee": ("tacit.privacy", "Guarantee"),
    "InvalidInput": ("tacit.errors", "InvalidInput"),
    "LearnResult": ("tacit.simulation", "LearnResult"),
    "LearnedPolicy": ("tacit.learned_policy", "LearnedPolicy"),
    "LinearMDP": ("tacit.problems", "LinearMDP"),
    "LQSystem": ("tacit.problems", "LQSystem"),
    "LinearMixtureMDP": ("tacit.problems", "LinearMixtureMDP"),
    "Participation": ("tacit.task.participation", "Participation"),
    "Plan": ("tacit.sample_size", "Plan"),
    "Result": ("tacit.simulation", "Result"),
    "TabularMDP": ("tacit.problems", "TabularMDP"),
    "TacitError": ("tacit.errors", "TacitError"),
    "UnknownName": ("tacit.errors", "UnknownName"),
    "agent": ("tacit.agents", "make_agent"),
    "audit": ("tacit.auditing.agent", "audit"),
    "evaluate": ("tacit.logs.offline", "evaluate"),
    "guarantee": ("tacit.forecast", "guarantee"),
    "learn": ("tacit.simulation", "learn"),
    "load_policy": ("tacit.learned_policy", "load_policy"),
    "offline": ("tacit.logs.offline", "offline"),
    "plan": ("tacit.sample_size", "plan"),
    "problem": ("tacit.problems", "make_problem"),
    "simulate": ("tacit.simulation", "simulate"),
}

__all__ = [
    "Agent",
    "Discretized",
    "Guarantee",
    "InvalidInput",
    "LearnResult",
    "LearnedPolicy",
    "LinearMDP",
    "LQSystem",
    "LinearMixtureMDP",
    "Participation",
    "Plan",
    "Result",
    "TabularMDP",
    "TacitError",
    "UnknownName",
    "__version__",
    "agent",
    "audit",
    "evaluate",
    "guarantee",
    "learn",
    "load_policy",
    "offline",
    "plan",
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


class _WithGymnasium(importlib.abc.MetaPathFinder):
    """Registers tacit's environments when gymnasium is imported after tacit.

    Gymnasium reads no entry points since 1.0, and importing it here would cost everybody its time.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Gymnasium as the other finders find it, with a word to it when it has been loaded."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                importlib.import_module("tacit.problems.catalogue").register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    importlib.import_module("tacit.problems.catalogue").register()
else:
    sys.meta_path.insert(0, _WithGymnasium())
