"""Algorithms under the names of their papers: a statistic, a privatizer and a planner each.

``from tacit.agents import LdpOBI`` works for every class that ``catalogue.py`` names. They are
imported when they are first asked for: a device needs one of them.
"""

from __future__ import annotations

import importlib
from typing import Any

from tacit.agents.base import Agent
from tacit.agents.catalogue import AGENTS, FROM_A_LOG, agents, make_agent

__all__ = ["Agent", "agents", "make_agent"]

_PLACES = [where.partition(":") for where, _ in (AGENTS | FROM_A_LOG).values()]
_MODULES = {name: module for module, _, name in _PLACES}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tacit.agents' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tacit.agents.{_MODULES[name]}"), name)
