"""Simulation: many seeded runs of an agent against a problem, scored exactly.

Imported on first use: a service needs the streams of a planner and none of the compiled loops.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.simulation.api import simulate
    from tacit.simulation.learn_result import LearnResult
    from tacit.simulation.learning import learn
    from tacit.simulation.result import Result

_PUBLIC = {
    "LearnResult": "tacit.simulation.learn_result",
    "Result": "tacit.simulation.result",
    "learn": "tacit.simulation.learning",
    "simulate": "tacit.simulation.api",
}

__all__ = ["LearnResult", "Result", "learn", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'tacit.simulation' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
